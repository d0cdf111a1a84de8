"""Files as streams of numbers."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow", reason="needs PyArrow (posterity[cli])")
import pyarrow.csv  # noqa: E402
import pyarrow.feather  # noqa: E402
import pyarrow.parquet  # noqa: E402

from posterity.io import TableError, TableStream, open_table  # noqa: E402

KINDS = ("csv", "csv.gz", "tsv", "jsonl", "jsonl.gz", "parquet", "arrow")


def write(path: Path, table: Any) -> Path:
    """Write an Arrow table in the format of the path's ending."""
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path, row_group_size=700)
    elif path.suffix == ".arrow":
        pyarrow.feather.write_feather(table, str(path), compression="uncompressed", chunksize=600)
    elif ".jsonl" in path.name:
        lines = "\n\n".join(json.dumps(row, default=str) for row in table.to_pylist()).encode()
        path.write_bytes(gzip.compress(lines) if path.suffix == ".gz" else lines)
    else:
        delimiter = "\t" if path.suffix == ".tsv" else ","
        plain = path.with_name("plain.csv")
        pyarrow.csv.write_csv(table, plain, pyarrow.csv.WriteOptions(delimiter=delimiter))
        text = plain.read_bytes()
        path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def text_file(folder: Path, text: str, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def read(stream: TableStream) -> tuple[np.ndarray, np.ndarray]:
    batches = list(stream)
    return np.vstack([X for X, _ in batches]), np.concatenate([y for _, y in batches])


def mixed(n: int = 2500) -> Any:
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "size": rng.normal(size=n),
            "count": rng.integers(0, 100, size=n),
            "open": rng.random(n) < 0.5,
            "kind": [("red", "green", "blue")[i] for i in rng.integers(0, 3, size=n)],
            "y": rng.normal(size=n),
        }
    )


@pytest.mark.parametrize("ending", KINDS)
@pytest.mark.parametrize("batch_rows", [1000, 65536])
def test_every_format_gives_the_same_numbers(tmp_path: Path, ending: str, batch_rows: int) -> None:
    table = mixed()
    stream = open_table(write(tmp_path / f"t.{ending}", table), "y", batch_rows=batch_rows)
    assert stream.feature_names == ("size", "count", "open", "kind=green", "kind=red")
    X, y = read(stream)
    kind = np.array(table["kind"].to_pylist())
    expected = np.column_stack(
        [table["size"], table["count"], table["open"], kind == "green", kind == "red"]
    ).astype(float)
    np.testing.assert_allclose(X, expected, rtol=1e-15)
    np.testing.assert_allclose(y, table["y"].to_numpy(), rtol=1e-15)
    assert stream.n_rows_read == 2500
    assert stream.fraction == 1.0


def test_batches_are_what_a_kernel_likes(tmp_path: Path) -> None:
    for X, y in open_table(write(tmp_path / "t.parquet", mixed()), "y", batch_rows=300):
        assert X.dtype == y.dtype == np.float64
        assert X.flags.c_contiguous
        assert y.flags.c_contiguous
        assert y.flags.writeable
        assert 0 < len(X) == len(y) <= 300


def test_batches_stay_valid_and_can_be_read_again(tmp_path: Path) -> None:
    stream = open_table(write(tmp_path / "t.csv", mixed()), "y", batch_rows=100)
    first, second = read(stream), read(stream)
    np.testing.assert_array_equal(first[0], second[0])
    assert stream.n_rows_read == 2500


def test_stopping_early_stops_the_reader(tmp_path: Path) -> None:
    path = text_file(tmp_path, "x,y\n" + "1.25,2.5\n" * 600_000)
    iterator = iter(open_table(path, "y"))
    next(iterator)
    iterator.close()  # type: ignore[attr-defined]
    assert not [t for t in threading.enumerate() if t.name == "posterity-read-ahead"]


def test_without_intercept_every_level_is_kept(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", mixed())
    stream = open_table(path, "y", features=["kind"], drop_first=False)
    assert stream.feature_names == ("kind=blue", "kind=green", "kind=red")
    X, _ = read(stream)
    assert (X.sum(axis=1) == 1.0).all()


def test_features_and_drop_choose_columns(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", mixed())
    assert open_table(path, "y", features=["open", "size"]).feature_names == ("open", "size")
    assert open_table(path, "y", drop=["kind", "open"]).feature_names == ("size", "count")


def test_dictionary_columns_are_categories(tmp_path: Path) -> None:
    table = mixed().set_column(3, "kind", mixed()["kind"].dictionary_encode())
    plain = read(open_table(write(tmp_path / "plain.parquet", mixed()), "y"))
    coded = read(open_table(write(tmp_path / "coded.parquet", table), "y"))
    np.testing.assert_array_equal(coded[0], plain[0])


@pytest.mark.parametrize("type_", ["int8", "uint32", "float32", "float16", "decimal", "bool"])
def test_every_kind_of_number(tmp_path: Path, type_: str) -> None:
    kind = pa.decimal128(24, 1) if type_ == "decimal" else pa.type_for_alias(type_)
    values = pa.array([1, 0, 1], pa.int64()).cast(kind)
    path = write(tmp_path / "t.parquet", pa.table({"x": values, "y": values}))
    X, y = read(open_table(path, "y"))
    assert X[:, 0].tolist() == y.tolist() == [1.0, 0.0, 1.0]


def test_whole_numbers_may_turn_into_fractions(tmp_path: Path) -> None:
    path = text_file(tmp_path, "x,y\n" + "1,2\n" * 400_000 + "1.5,2.5\n")
    X, y = read(open_table(path, "y"))
    assert X[-1, 0] == 1.5
    assert y[-1] == 2.5


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_delimiters(tmp_path: Path, mark: str) -> None:
    X, y = read(open_table(text_file(tmp_path, f"x{mark}y\n1.5{mark}2\n"), "y"))
    assert (X.tolist(), y.tolist()) == ([[1.5]], [2.0])


def test_levels_come_from_the_first_batch(tmp_path: Path) -> None:
    n = 300_000
    text = "kind,y\n" + "a,1\nb,2\n" * (n // 2) + "c,3\nc,3\nd,4\na,1\n"
    stream = open_table(text_file(tmp_path, text), "y", drop_first=False)
    X, _ = read(stream)
    assert stream.feature_names == ("kind=a", "kind=b")
    np.testing.assert_array_equal(X[-4:], [[0, 0], [0, 0], [0, 0], [1, 0]])
    assert stream.unseen_levels == {"kind": {"c": 2, "d": 1}}
    read(stream)
    assert stream.unseen_levels == {"kind": {"c": 2, "d": 1}}


def arrow_memory(path: Path) -> int:
    """Most bytes that Arrow held at a time while the table was read."""
    code = (
        "import sys, pyarrow\nfrom posterity.io import open_table\n"
        "for _ in open_table(sys.argv[1], 'y', batch_rows=8192):\n    pass\n"
        "print(pyarrow.default_memory_pool().max_memory())"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    return int(run.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_memory_does_not_grow_with_the_file(tmp_path: Path, ending: str) -> None:
    n = 3_000_000
    column = np.random.default_rng(0).normal(size=n)
    table = pa.table({"a": column, "b": column, "y": column})
    path = tmp_path / f"long.{ending}"
    if ending == "csv":
        pyarrow.csv.write_csv(table, path)
    else:
        pyarrow.parquet.write_table(table, path, row_group_size=n, use_dictionary=False)
    # How far Arrow reads ahead depends on timing (36 to 39 MB here), but not on the file's length:
    # 72 MB of numbers, and more than twice that as text.
    assert arrow_memory(path) < 55_000_000


# ---- missing values ----

HOLES = "x,kind,y\n1,a,1\n,b,2\n3,,3\n5,a,\n4,b,5\n"


def test_missing_is_an_error_that_names_line_and_column(tmp_path: Path) -> None:
    path = text_file(tmp_path, HOLES)
    with pytest.raises(
        TableError,
        match=r"t\.csv: line 3, column 'x' is missing; use missing=.skip. to leave such rows out, "
        'or missing="mean" to fill in the mean so far',
    ):
        read(open_table(path, "y"))
    with pytest.raises(TableError, match=r"line 4, column 'kind' is missing"):
        read(open_table(path, "y", drop=["x"]))
    with pytest.raises(TableError, match=r"line 5, column 'y' is missing; use missing=.skip.") as e:
        read(open_table(text_file(tmp_path, "x,y\n1,2\n\n2,3\n3,NA\n"), "y"))
    assert "mean" not in str(e.value)


def test_missing_rows_are_skipped_and_counted(tmp_path: Path) -> None:
    stream = open_table(text_file(tmp_path, HOLES), "y", missing="skip")
    X, y = read(stream)
    assert X.tolist() == [[1.0, 0.0], [4.0, 1.0]]
    assert y.tolist() == [1.0, 5.0]
    assert (stream.n_skipped, stream.n_filled, stream.n_rows_read) == (3, 0, 5)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_mean_is_of_the_rows_before(tmp_path: Path, ending: str) -> None:
    table = pa.table(
        {"x": [None, 1.0, None, 3.0, None, 100.0, None], "y": [1.0, 2, 3, 4, 5, None, 7]}
    )
    stream = open_table(write(tmp_path / f"t.{ending}", table), "y", missing="mean")
    X, y = read(stream)
    # The first has nothing before it; the one without target is left out, but its x was seen.
    assert y.tolist() == [2.0, 3.0, 4.0, 5.0, 7.0]
    np.testing.assert_allclose(X[:, 0], [1.0, 1.0, 3.0, 2.0, 104 / 3])
    assert (stream.n_skipped, stream.n_filled) == (2, 3)


def test_mean_goes_on_across_batches(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=20_000) + 5.0
    x[rng.random(20_000) < 0.2] = np.nan
    x[0] = 1.0
    path = write(
        tmp_path / "t.parquet", pa.table({"x": pa.array(x, from_pandas=True), "y": np.ones(20_000)})
    )
    X, _ = read(open_table(path, "y", missing="mean"))
    seen, total = 0, 0.0
    for value, filled in zip(x, X[:, 0], strict=True):
        if np.isnan(value):
            assert filled == pytest.approx(total / seen, rel=1e-12)
        else:
            seen, total = seen + 1, total + value


def test_mean_of_a_category_is_its_share_so_far(tmp_path: Path) -> None:
    path = text_file(tmp_path, "kind,y\na,1\nb,1\nb,1\n,1\n")
    X, _ = read(open_table(path, "y", missing="mean"))
    assert X[3, 0] == pytest.approx(2 / 3)


def test_nan_in_parquet_is_missing(tmp_path: Path) -> None:
    path = write(tmp_path / "t.parquet", pa.table({"x": [1.0, float("nan")], "y": [1.0, 2.0]}))
    with pytest.raises(TableError, match=r"t\.parquet: row 2, column 'x' is missing"):
        read(open_table(path, "y"))


def test_infinity_is_not_missing(tmp_path: Path) -> None:
    path = text_file(tmp_path, "x,y\n1,2\ninf,3\n")
    for missing in ("error", "skip", "mean"):
        with pytest.raises(TableError, match=r"line 3, column 'x' is infinite: correct or delete"):
            read(open_table(path, "y", missing=missing))  # type: ignore[arg-type]


# ---- columns that cannot be used ----


@pytest.mark.parametrize(
    ("text", "keywords", "message"),
    [
        ("Fare,x\n1,2\n", {}, "target 'fare' is not a column of the file; did you mean 'Fare'?"),
        ("price,x\n1,2\n", {}, "target 'fare' is not a column .* its columns are 'price' and 'x'"),
        ("1.5,2.5\n1,2\n", {}, r"\(the first line must hold the column names\)"),
        ("fare,x\n1,2\n", {"features": ["z"]}, "feature 'z' is not a column of the file"),
        ("fare,x\n1,2\n", {"drop": ["xx"]}, "column to drop 'xx' is not .* did you mean 'x'"),
        ("fare,x\n1,2\n", {"features": ["fare"]}, "the target 'fare' is also a feature"),
        ("fare,x\n1,2\n", {"drop": ["x"]}, "no feature columns are left besides the target 'fare'"),
        ("fare\n1\n", {}, "no feature columns are left"),
        ("fare,x,x\n1,2,3\n", {}, "more than one column named 'x': rename them"),
        ("fare,x\nlow,2\n", {}, r"'fare' holds text \(as 'low'\); it must contain numbers: to"),
        ("fare,when\n1,2020-01-31\n", {},
         r"column 'when' holds dates or times \(date32\[day\]\).* month from it "
         r"\(dates=\"calendar\"\), count days \(dates=\"days\"\), or leave"),
        ("fare,when\n1,2020-01-31 10:00:00\n", {}, "column 'when' holds dates or times"),
        ("fare,x\n1,$2\n2,$3\n3,$4\n", {}, r"numbers with a sign, as in '\$2': take the sign out"),
        ("fare,x\n1,2%\n2,3 %\n", {}, r"categories=\['x'\]"),
        ("fare,x\n€1,2\n€2,3\n", {}, r"the target 'fare' holds text.*take the sign out"),
        ("fare,x\n1,2\n2,?\n3,4\n", {},
         r"column 'x' holds text in 1 of 3 rows, first '\?' in line 3: give na=\['\?'\] to take"),
        ("fare,x\n1,a\n2,a\n", {}, "no feature is left: 'x' had only one level"),
        ("fare,x\n" + "".join(f"1,n{i}\n" for i in range(300)), {},
         "column 'x' has 300 different values in the first 300 rows, too many for categories"),
        ("fare,x\n" + "".join(f"1,n{i % 40}\n" for i in range(60)), {},
         r"column 'x' has 40 different values .* leave it out \(drop=\['x'\]\), or turn it into"),
    ],
)  # fmt: skip
def test_unusable_columns_are_named(
    tmp_path: Path, text: str, keywords: dict[str, Any], message: str
) -> None:
    with pytest.raises(TableError, match=message):
        open_table(text_file(tmp_path, text), "fare", **keywords)


def test_dates_may_be_dropped(tmp_path: Path) -> None:
    path = text_file(tmp_path, "fare,when,x\n1,2020-01-31,2\n")
    assert open_table(path, "fare", drop=["when"]).feature_names == ("x",)


def test_nested_columns_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "t.parquet", pa.table({"x": [[1], [2]], "y": [1.0, 2.0]}))
    with pytest.raises(TableError, match=r"column 'x' holds values of type list<"):
        open_table(path, "y")


def test_settings_are_checked(tmp_path: Path) -> None:
    path = text_file(tmp_path, "x,y\n1,2\n")
    with pytest.raises(ValueError, match="batch_rows must be at least 1, got 0"):
        open_table(path, "y", batch_rows=0)
    with pytest.raises(
        ValueError,
        match=r"one of error, skip, mean, level, or values by .* got 'drop'",
    ):
        open_table(path, "y", missing="drop")  # type: ignore[arg-type]


# ---- files that are not what they should be ----


def rows(n: int) -> Iterator[str]:
    yield "x,z,y"
    for i in range(n):
        yield f"{i}.5,{i}.25,{i}.125"


def test_text_among_numbers_is_placed(tmp_path: Path) -> None:
    path = text_file(tmp_path, "\n".join(rows(100_000)) + "\n1,none,3\n")
    with pytest.raises(
        TableError,
        match="column 'z' held numbers until 'none' in line 100002; correct the file, or leave the "
        r"column out \(drop=\['z'\]\)",
    ):
        read(open_table(path, "y"))
    read(open_table(path, "y", drop=["z"]))


def test_a_row_of_another_length_is_placed(tmp_path: Path) -> None:
    path = text_file(tmp_path, "x,z,y\n1,2,3\n\n1,2\n1,2,3\n")
    with pytest.raises(
        TableError, match=r"line 4 has 2 columns where the first line names 3 \('1,2'\)"
    ):
        open_table(path, "y")


@pytest.mark.parametrize("n", [10, 100_000])
def test_a_csv_cut_off_is_told(tmp_path: Path, n: int) -> None:
    text = "\n".join(rows(n))
    path = text_file(tmp_path, text[: text.rindex(",")])
    with pytest.raises(
        TableError,
        match=rf"t\.csv is cut off in the middle of a row: line {n + 1}, the last, has 2 of 3 "
        r"columns \('.*'\); copy it again, or delete that line",
    ):
        read(open_table(path, "y"))


def test_a_gzip_cut_off_is_told(tmp_path: Path) -> None:
    whole = gzip.compress("\n".join(rows(200_000)).encode())
    path = tmp_path / "t.csv.gz"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(TableError, match=r"t\.csv\.gz is cut off or damaged: gzip cannot unpack"):
        read(open_table(path, "y"))


@pytest.mark.parametrize(
    ("ending", "message"),
    [
        ("parquet", r"t\.parquet begins as Parquet but has no footer, and is probably truncated"),
        ("arrow", r"t\.arrow cannot be read as Arrow: .*; it may be truncated"),
    ],
)
def test_a_binary_file_cut_off_is_told(tmp_path: Path, ending: str, message: str) -> None:
    path = write(tmp_path / f"t.{ending}", mixed())
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(TableError, match=message):
        open_table(path, "y")


def test_a_damaged_parquet_is_told(tmp_path: Path) -> None:
    path = write(tmp_path / "t.parquet", mixed())
    content = bytearray(path.read_bytes())
    content[5000:9000] = b"\xff" * 4000
    path.write_bytes(content)
    with pytest.raises(TableError, match=r"t\.parquet is damaged after row"):
        read(open_table(path, "y"))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"PAR1....", r"\.csv means CSV, but the content is Parquet; rename it or"),
        (
            "t.csv",
            gzip.compress(b"x,y\n1,2\n", mtime=0),
            r"\.csv means CSV, but the content is gzip",
        ),
        ("t.csv", b"PK\x03\x04..", r"the content is a zip or Excel file"),
        ("t.csv", b"\x00\x01\x02", r"the content is binary data"),
        ("t.csv.gz", b"x,y\n1,2\n", r"\.csv\.gz means gzip, but the content is text"),
        ("t.parquet", b"x,y\n1,2\n", r"\.parquet means Parquet, but the content is text"),
        ("t.arrow", b"PAR1....", r"\.arrow means Arrow, but the content is Parquet"),
        ("t.csv", b"", r"t\.csv is empty"),
        ("t.csv", b"x,y\n", r"t\.csv has column names but no rows: give a table with rows"),
        ("t.csv", b"x,y", r"t\.csv has column names but no rows: give a table with rows"),
        ("t.csv", b"\n\n", r"line 1 is blank; it must hold the column names"),
        (
            "t.xlsx",
            b"PK",
            r"t\.xlsx: unknown ending; give a file that ends in one of \.arrow, \.csv, ",
        ),
        ("t.csv", b"x,y\n\xff\xfe,1\n", r"column 'x' holds bytes that are not UTF-8 text"),
    ],
)
def test_files_that_are_not_what_their_ending_says(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError, match=message):
        open_table(tmp_path / name, "y")


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"nowhere\.csv: no such file"):
        open_table(tmp_path / "nowhere.csv", "y")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(TableError, match=r"folder\.csv holds no table: give a file, a folder of"):
        open_table(tmp_path / "folder.csv", "y")


def test_a_parquet_without_rows(tmp_path: Path) -> None:
    path = write(tmp_path / "t.parquet", mixed().slice(0, 0))
    with pytest.raises(
        TableError,
        match="has column names but no rows: give a table with rows",
    ):
        open_table(path, "y")


def test_a_row_longer_than_a_block(tmp_path: Path) -> None:
    path = text_file(tmp_path, "x,y\n1,2\n" + "1" * 3_000_000 + ",2\n")
    with pytest.raises(TableError, match=r"row longer than 1,048,576 bytes: is a quote left open"):
        read(open_table(path, "y"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"x": "high", "y": 1}', "column 'x' held a number until line 41, where it holds text"),
        ('{"x": 1,', "line 41 is not JSON, or cut off"),
        ("[1, 2]", "line 41 is not an object but an array"),
        ('{"x": 1, "y": null}', "line 41, column 'y' is missing"),
    ],
)
def test_json_lines_say_where_they_are_wrong(tmp_path: Path, line: str, message: str) -> None:
    rows = [f'{{"x": {i % 3}, "y": {i}, "when": "2021-04-30T12:00:00.5Z"}}' for i in range(20)]
    path = text_file(tmp_path, "\n\n".join([*rows, line]), "t.jsonl")
    with pytest.raises(TableError, match=message):
        read(open_table(path, "y", drop=["when"]))


def test_times_in_json_lines_are_times(tmp_path: Path) -> None:
    rows = [f'{{"y": {i}, "when": "2021-04-{i + 1:02d}T12:00:00.5"}}' for i in range(20)]
    stream = open_table(text_file(tmp_path, "\n".join(rows), "t.jsonl"), "y", dates="days")
    X, _ = read(stream)
    assert np.allclose(np.diff(X[:, 0]), 1.0)


def test_json_in_a_csv_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="the content is JSON lines"):
        open_table(text_file(tmp_path, '{"x": 1, "y": 2}\n'), "y")
