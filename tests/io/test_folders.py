"""Many files as one table, and batches within a budget of memory."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow", reason="needs PyArrow (posterity[cli])")
import pyarrow.csv  # noqa: E402
import pyarrow.parquet  # noqa: E402

from posterity import BayesianLinearRegression  # noqa: E402
from posterity.io import TableError, learn_stream, open_table, predict_stream  # noqa: E402

N = 20_000
RNG = np.random.default_rng(0)
A, B = RNG.normal(size=N), RNG.integers(0, 9, size=N)
TABLE = pa.table(
    {"a": A, "b": B, "zone": ["en"[b % 2] for b in B], "y": A + B + RNG.normal(size=N)}
)
EXPECTED = learn_stream(BayesianLinearRegression(), TABLE, "y")
CUTS = [(0, 9000), (9000, 9000), (9000, 9001), (9001, N)]


def write(path: Path, table: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    elif path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=3000)


def parts(folder: Path, ending: str) -> Path:
    for i, (first, last) in enumerate(CUTS):
        if first < last or ending != "csv":
            write(folder / f"part-{i}.{ending}", TABLE.slice(first, last - first))
    (folder / "_SUCCESS").touch()
    (folder / ".hidden.csv").write_text("a\n1\n")
    return folder


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
@pytest.mark.parametrize("pattern", ["", "part-*"])
def test_a_folder_is_one_table(tmp_path: Path, ending: str, pattern: str) -> None:
    folder = parts(tmp_path / "rides", ending)
    stream = open_table(folder / pattern, "y", batch_rows=4096)
    shares = [(stream.fraction, len(batch[1])) for batch in stream]
    assert sum(n for _, n in shares) == N
    assert [share for share, _ in shares] == sorted(share for share, _ in shares)
    model = learn_stream(BayesianLinearRegression(), folder / pattern, "y")
    np.testing.assert_allclose(model.coef_, EXPECTED.coef_, rtol=1e-9)


def test_folders_below_are_part_of_it(tmp_path: Path) -> None:
    write(tmp_path / "rides" / "2023" / "t.parquet", TABLE.slice(0, 9000))
    write(tmp_path / "rides" / "2024" / "t.parquet", TABLE.slice(9000))
    rows = np.concatenate([batch[0] for batch in open_table(tmp_path / "rides", "y")])
    assert np.array_equal(rows[:, 0], A)


def test_places_are_those_in_the_file(tmp_path: Path) -> None:
    folder = parts(tmp_path / "rides", "parquet")
    a = A[9001:].copy()
    a[9999] = np.nan
    write(folder / "part-3.parquet", TABLE.slice(9001).set_column(0, "a", pa.array(a)))
    with pytest.raises(TableError, match=r"rides: row 10000 of part-3.parquet, column 'a' is miss"):
        learn_stream(BayesianLinearRegression(), folder, "y")


def test_predictions_of_a_folder(tmp_path: Path) -> None:
    folder = parts(tmp_path / "rides", "parquet")
    predictive = list(predict_stream(EXPECTED, folder, output="numpy", batch_rows=5000))
    assert np.array_equal(np.concatenate([one["row"] for one in predictive]), np.arange(N))


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "rides holds no table: give a file, a folder of files, or a pattern as 'rides-*.csv'"),
        (
            {"a.csv": TABLE, "b.parquet": TABLE},
            "contains files of several formats, .csv and .parquet",
        ),
        ({"a.csv": TABLE, "b.csv": TABLE.drop_columns("b")},
         "b.csv has no column 'b', which a.csv has"),
        ({"a.parquet": TABLE, "b.parquet": TABLE.set_column(1, "b", TABLE["zone"])},
         "b.parquet: column 'b' holds text, and numbers in a.parquet: write the column alike"),
    ],
)  # fmt: skip
def test_folders_that_are_no_table(tmp_path: Path, files: dict[str, Any], message: str) -> None:
    (tmp_path / "rides").mkdir()
    for name, table in files.items():
        write(tmp_path / "rides" / name, table)
    with pytest.raises(TableError, match=re.escape(message)):
        learn_stream(BayesianLinearRegression(), tmp_path / "rides", "y")


def test_a_pattern_that_matches_nothing(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"no-\*\.csv matches no table: give a file"):
        open_table(tmp_path / "no-*.csv", "y")


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
def test_a_budget_makes_batches_smaller(tmp_path: Path, ending: str) -> None:
    write(tmp_path / f"t.{ending}", TABLE)
    # 4 batches of 4 columns and 2 of 3 features, 8 bytes each, and 8 to spare.
    stream = open_table(tmp_path / f"t.{ending}", "y", memory=1000 * 8 * (4 * 4 + 2 * 3 + 1))
    lengths = [len(batch[1]) for batch in stream]
    assert (sum(lengths), max(lengths)) == (N, 1000)


@pytest.mark.parametrize("memory", ["a lot", "0MB", -1, 0, "MB"])
def test_budgets_that_are_none(memory: Any) -> None:
    with pytest.raises(ValueError, match="memory must be an amount, as in '512MB' or '2GB'; got"):
        open_table(TABLE, "y", memory=memory)
