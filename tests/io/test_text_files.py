"""Text files as they come: encodings, separators, totals, columns without names, damage."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posterity import BayesianLinearRegression
from posterity.experiments import Experiment
from posterity.io import (
    Cure,
    TableError,
    TextFormat,
    learn_stream,
    open_source,
    open_table,
    predict_stream,
)
from posterity.off_policy import Log

pa = pytest.importorskip("pyarrow", reason="needs PyArrow (posterity[cli])")
pd = pytest.importorskip("pandas")

LINES = ["Größe;Menge;y", "1,5;1.000;1", "2,5;k.A.;2", "3,5;3.000;3", "4,5;4.000;4"]
TEXT = TextFormat(decimal=",", thousands=".", na=["k.A."])


def write(path: Path, lines: list[str], encoding: str = "utf-8", end: str = "\n") -> Path:
    content = end.join([*lines, ""]).encode(encoding)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def rows(path: object, **how: object) -> tuple[list[list[float]], list[float]]:
    batches = list(open_table(path, "y", **how))  # type: ignore[arg-type]
    return np.vstack([X for X, _ in batches]).tolist(), np.hstack([y for _, y in batches]).tolist()


@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "cp1252", "utf-16"])
def test_encodings_ends_of_lines_lines_before_and_totals(
    tmp_path: Path, encoding: str, ending: str
) -> None:
    lines = ["Bericht;von;gestern;und;heute", "", *LINES, "Summe;8.000;10", ";;"]
    path = write(tmp_path / f"t.{ending}", lines, encoding, "\r\n")
    text = TextFormat(
        decimal=",", thousands=".", na="k.A.", skip_rows=2, drop_total=True,
        encoding=encoding.removesuffix("-sig"),
    )  # fmt: skip
    X, y = rows(path, text=text, missing="skip")
    assert X == [[1.5, 1000.0], [3.5, 3000.0], [4.5, 4000.0]]
    assert y == [1.0, 3.0, 4.0]
    stream = open_table(path, "y", text=text)
    assert stream.feature_names == ("Größe", "Menge")
    assert stream.notes == ("line 8 was left out as a total: 'Summe;8.000;10'",)
    with pytest.raises(TableError, match="line 5, column 'Menge' is missing"):
        list(stream)


def test_what_is_no_total_stays(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", ["x,y", "1,2", "2,3"])
    stream = open_table(path, "y", text=TextFormat(drop_total=True))
    assert sum(len(y) for _, y in stream) == 2
    assert stream.notes == ()


def test_a_total_is_named_with_what_leaves_it_out(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", ["day,y", "2024-01-01,1", "2024-01-02,2", "Total,3"])
    with pytest.raises(
        TableError, match=r"in 1 of 3 rows, first 'Total' in line 4.*drop_total=True"
    ):
        open_table(path, "y", dates="days")
    long = ["day,y", *["2024-01-01,1"] * 100_000, "Total,3"]
    stream = open_table(write(path, long), "y", dates="days")
    with pytest.raises(
        TableError, match=r"held dates or times until 'Total' in line 100002.*drop_tot"
    ):
        list(stream)


@pytest.mark.parametrize("mark", [";", "\t", "|", "~"])
def test_separators(tmp_path: Path, mark: str) -> None:
    lines = [line.replace(",", mark) for line in ("x,y", "1,2", "2,3")]
    path = write(tmp_path / "t.csv", lines)
    assert rows(path, text=TextFormat(separator=mark)) == ([[1.0], [2.0]], [2.0, 3.0])
    named = write(tmp_path / "named.csv", ["Preis, netto;Menge;y", "1;2;3", "2;4;7"])
    assert open_table(named, "y").feature_names == ("Preis, netto", "Menge")


def test_words_for_missing_values(tmp_path: Path) -> None:
    lines = ["x,y", *(f"{i},{i}" for i in range(600)), "-,1", "?,2", "-,3"]
    path = write(tmp_path / "t.csv", lines)
    with pytest.raises(
        TableError,
        match=r"column 'x' holds text in 3 of 603 rows, first '-' in line 602: "
        r"give na=\['-', '\?'\] to take them as missing",
    ):
        open_table(path, "y")
    assert len(rows(path, text=TextFormat(na=["-", "?"]), missing="skip")[1]) == 600
    late = write(path, ["x,y", *["1.25,1"] * 200_000, "k.A.,2"])
    with pytest.raises(
        TableError, match=r"1 of 200,001 rows.*'k.A.' in line 200002.*na=\['k.A.'\]"
    ):
        rows(late)


def test_the_advice_is_never_what_was_given(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", LINES)
    for text, advice in (
        (TextFormat(), 'decimal=","'),
        (TextFormat(decimal=","), 'thousands="."'),
        (TextFormat(decimal=",", thousands="."), "na=['k.A.']"),
    ):
        with pytest.raises(TableError) as raised:
            open_table(path, "y", text=text)
        assert advice in str(raised.value)
    assert "decimal" not in str(raised.value)


def test_several_forms_of_dates(tmp_path: Path) -> None:
    lines = ["day,y", *["2024-01-01,1"] * 100_000, "1/31/2024,2", "01-02-2024,3"]
    path = write(tmp_path / "t.csv", lines)
    text = TextFormat(date_format=["%m/%d/%Y", "%d-%m-%Y"])
    X, _ = rows(path, text=text, dates="days")
    assert np.diff(np.ravel(X)[-3:]).tolist() == [30.0, 1.0]
    stream = open_table(path, "y", text=TextFormat(date_format="%m/%d/%Y"), dates="days")
    with pytest.raises(
        TableError,
        match=r'until .01-02-2024. in line 100003.*format as well .date_format="%m-%d-%Y"',
    ):
        list(stream)


def test_columns_without_names(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", [",a,y,,,", "0,1,2,,,x", "1,3,4,,,z", "2,5,6,,,x"])
    stream = open_table(path, "y")
    assert stream.feature_names == ("a", "column 6=z")
    assert stream.notes == (
        "'column 1' has no name and numbers the rows: left out",
        "'column 4' has no name and no values: left out",
        "'column 5' has no name and no values: left out",
    )
    assert rows(path) == ([[1.0, 0.0], [3.0, 1.0], [5.0, 0.0]], [2.0, 4.0, 6.0])
    assert open_table(path, "y", features=["column 1"]).feature_names == ("column 1",)


@pytest.mark.parametrize("ending", ["csv", "arrow", "parquet"])
def test_the_index_of_a_frame_is_no_feature(tmp_path: Path, ending: str) -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, 4.0], "y": [1.0, 2.0, 3.0]}, index=[5, 3, 9])
    path = tmp_path / f"t.{ending}"
    if ending == "csv":
        frame.to_csv(path)
    elif ending == "parquet":
        frame.to_parquet(path)
    else:
        with pa.OSFile(str(path), "wb") as file:
            table = pa.Table.from_pandas(frame)
            with pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)
    stream = open_table(path, "y")
    assert stream.feature_names == ("x",)
    assert len(stream.notes) == 1
    assert learn_stream(BayesianLinearRegression(), path, "y").feature_names_in_.tolist() == ["x"]


def test_models_learn_and_predict_by_the_format(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", LINES)
    model = learn_stream(BayesianLinearRegression(), path, "y", text=TEXT, missing="mean")
    (predicted,) = predict_stream(model, path, text=TEXT, missing="skip")
    assert predicted["row"].to_pylist() == [0, 2, 3]


def test_rewards_of_yes_and_no() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"arm": rng.choice(["a", "b"], 300), "reward": rng.integers(0, 2, 300)})
    words = frame.assign(reward=np.where(frame["reward"] == 1, "yes", "No"))
    first, second = (Experiment(["a", "b"]).observe(table) for table in (frame, words))
    third = Experiment(["a", "b"]).observe_rows(words["arm"], words["reward"])
    for other in (second, third):
        pd.testing.assert_frame_equal(first.to_frame(), other.to_frame())
    assert Log.open(words).mean_reward() == Log.open(frame).mean_reward()


def test_a_source_goes_wherever_a_table_goes(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", ["arm;reward", "a;0,5", "b;1,5", "a;0,25", "b;k.A."])
    source = open_source(path, TEXT)
    assert Log.open(source, missing="skip").mean_reward() == pytest.approx(0.75)
    assert Experiment(["a", "b"]).observe(source, missing="skip").n_observations_ == 3


def test_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", LINES, "latin-1")
    utf16 = write(tmp_path / "utf16.csv", LINES, "utf-16")
    with pytest.raises(TableError, match='is UTF-16: give encoding="utf-16"'):
        open_table(utf16, "y")
    with pytest.raises(TableError, match=r"line 1 is not UTF-8 \(byte 3 of the line\).*encoding="):
        open_table(path, "y")
    path.write_bytes(b"x,y\na,1\nb,2\n" * 1 + b"\xfcl,3\n")
    with pytest.raises(TableError, match=r"line 4 is not UTF-8 \(byte 1.*encoding=\"latin-1\""):
        open_table(path, "y")
    # A row of too many columns: nothing but the error is said.
    path.write_bytes(b"y,x\n1,2\n3,\xff4,9\n5,6\n")
    with pytest.raises(TableError, match="line 3 has 3 columns where the first line names 2"):
        open_table(path, "y")


def test_an_arrow_file_that_becomes_shorter_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "t.arrow"
    table = pa.table({"x": np.arange(400_000.0), "y": np.arange(400_000.0)})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=20_000)
    batches = iter(open_table(path, "y", batch_rows=1000))
    next(batches)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 10)
    with pytest.raises(TableError, match="damaged"):
        list(batches)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
def test_no_thread_outlives_an_interpreter_that_stops_midway(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"t.{ending}"
    frame = pd.DataFrame({"x": np.arange(300_000.0), "y": np.arange(300_000.0)})
    frame.to_parquet(path) if ending == "parquet" else frame.to_csv(path, index=False)
    code = (
        "import sys\nfrom posterity.io import open_table\n"
        "batches = iter(open_table(sys.argv[1], 'y', batch_rows=1000))\n"
        "next(batches)\nraise SystemExit(3)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (3, "")


@given(
    st.integers(-(10**9), 10**9).map(lambda n: n / 100),
    st.sampled_from([(",", "."), (".", ","), (",", " "), (",", ""), (".", "")]),
)
def test_numbers_are_read_as_they_are_written(number: float, marks: tuple[str, str]) -> None:
    decimal, thousands = marks
    written = f"{number:,.2f}".translate(str.maketrans({",": thousands, ".": decimal}))
    assert TextFormat(decimal=decimal, thousands=thousands).number(written) == number


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"encoding": "utf-9"}, "encoding 'utf-9' is not known: give utf-8"),
        ({"separator": ";;"}, "separator must be one character"),
        ({"skip_rows": -1}, "skip_rows must be 0 or more"),
        ({"date_format": ["%d", "dd.mm"]}, "date_format must contain day, month and year"),
    ],
)
def test_formats_are_checked(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TextFormat(**wrong)  # type: ignore[arg-type]


def test_an_error_is_written_as_its_reader_needs_it() -> None:
    error = TableError("column 'x' is text", [Cure("give {}", {"na": ["-"]}), "correct the file"])
    assert str(error) == "column 'x' is text: give na=['-'], or correct the file"
    assert error.describe(lambda cure: None) == "column 'x' is text: correct the file"
