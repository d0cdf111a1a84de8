"""Files larger than memory: python benchmarks/out_of_core.py --rows 50000000 [--folder FOLDER].

Alone it measures that many rows once; under run.py a tenth of them, in rounds.
"""

from __future__ import annotations

import argparse
import sysconfig
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import children
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from timing import Figure, Run, rounds_of

NAME = "out_of_core"
TITLE = "Files larger than memory"
HOW = """\
20 features and a target, float64, standard normal, as Parquet (PyArrow's defaults), Arrow (batches
of 65,536 rows) and CSV (six decimals, a tenth of the rows). Times are those of whole processes,
minus those of the same process on 1,000 rows, in turn. PyArrow alone reads batches of 65,536 rows
of all columns, on its own threads, and casts each to float64. It reads Parquet with its defaults
(`ParquetFile(file).iter_batches()`), and with `pre_buffer=False` and a small buffer, as posterity
does, which is faster and takes a tenth of the memory. Peak memory is the resident memory of the
whole process."""

FEW, BLOCK, FEATURES = 1000, 500_000, 20
NAMES = [*(f"x{i}" for i in range(FEATURES)), "y"]
SCHEMA = pa.schema([(name, pa.float64()) for name in NAMES])
SCRIPTS = Path(sysconfig.get_path("scripts"))
READ = """
import sys, mmap, pyarrow as pa
import pyarrow.csv as csv, pyarrow.parquet as pq
file, how = sys.argv[1:]
if how == "csv":
    batches = csv.open_csv(file)
elif how == "arrow":
    reader = pa.ipc.open_file(pa.memory_map(file))
    batches = map(reader.get_batch, range(reader.num_record_batches))
else:
    settings = {"pre_buffer": False, "buffer_size": 1 << 18} if how == "buffered" else {}
    batches = pq.ParquetFile(file, **settings).iter_batches(65536)
for batch in batches:
    for column in batch.columns:
        column.cast(pa.float64())
"""
Program = Callable[[int], children.Child]


def measure(run: Run) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="posterity-benchmark-") as folder:
        return _measured(run, run.rows(5_000_000), Path(folder))


def _measured(run: Run, n: int, folder: Path) -> list[Figure]:
    figures = _parquet(run, n, folder)
    for form, rows in (("arrow", n), ("csv", n // 10)):
        figures += _other(run, form, rows, folder)
    return figures


def _parquet(run: Run, n: int, folder: Path) -> list[Figure]:
    file = {rows: _write(folder, "parquet", rows) for rows in (FEW, n)}
    model = str(folder / "model")
    programs: dict[str, Program] = {
        "fit": lambda rows: _fit(file[rows], model),
        "as it comes": lambda rows: children.python(READ, file[rows], "default"),
        "buffered": lambda rows: children.python(READ, file[rows], "buffered"),
    }
    a_row, peaks = _beyond_start(programs, n, run.process_rounds)
    predicted = children.run(
        str(SCRIPTS / "posterity"), "predict", model, file[n], "--quiet",
        "--output", str(folder / "predicted.parquet"),
    )  # fmt: skip
    evaluated = children.run(
        str(SCRIPTS / "posterity"), "evaluate", file[n], "--target", "y", "--json", "--quiet"
    )
    Path(file[n]).unlink()
    (folder / "predicted.parquet").unlink()
    what = f"{n:,} x {FEATURES}, Parquet"
    return [
        Figure(f"`posterity fit`, {what}", f"PyArrow reading alone, {how}", a_row["fit"],
               a_row[how], "ns/row", "within", 2.0)
        for how in ("as it comes", "buffered")
    ] + [
        Figure(f"peak memory of `posterity {verb}`, {what}", "1 GB", peak, 1000.0, "MB", "within",
               1.0)
        for verb, peak in (
            ("fit", peaks["fit"]), ("predict", predicted.peak), ("evaluate", evaluated.peak),
        )
    ]  # fmt: skip


def _other(run: Run, form: str, n: int, folder: Path) -> list[Figure]:
    file = {rows: _write(folder, form, rows) for rows in (FEW, n)}
    programs: dict[str, Program] = {
        "fit": lambda rows: _fit(file[rows], str(folder / "model")),
        "alone": lambda rows: children.python(READ, file[rows], form),
    }
    a_row, peaks = _beyond_start(programs, n, run.process_rounds)
    Path(file[n]).unlink()
    what = f"{n:,} x {FEATURES}, {'CSV' if form == 'csv' else 'Arrow'}"
    # A mapped Arrow file is not read at all by a cast to what it is already.
    target = 2.0 if form == "csv" else None
    return [
        Figure(f"`posterity fit`, {what}", "PyArrow reading alone", a_row["fit"], a_row["alone"],
               "ns/row", "within", target),
        Figure(f"peak memory of `posterity fit`, {what}", "1 GB", peaks["fit"], 1000.0, "MB",
               "within", 1.0),
    ]  # fmt: skip


def _beyond_start(
    programs: dict[str, Program], n: int, rounds: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Nanoseconds a row beyond start-up, and peak memory in MB, of each program."""
    peaks = {name: program(n).peak for name, program in programs.items()}  # and warms the cache

    def seconds(program: Program) -> float:
        start = program(FEW).seconds
        return program(n).seconds - start

    timed = rounds_of({name: partial(seconds, one) for name, one in programs.items()}, rounds)
    return {name: median(values) / n * 1e9 for name, values in timed.items()}, peaks


def _fit(file: str, model: str) -> children.Child:
    return children.run(
        str(SCRIPTS / "posterity"), "fit", file, "--target", "y", "--output", model, "--quiet"
    )


def _write(folder: Path, form: str, n: int) -> str:
    """A file of n rows, written a block at a time."""
    path = folder / f"{n}.{form}"
    opened = {
        "csv": pa.csv.CSVWriter,
        "parquet": pa.parquet.ParquetWriter,
        "arrow": pa.ipc.new_file,
    }[form]
    rng, w = np.random.default_rng(0), np.linspace(-1.0, 1.0, FEATURES)
    with opened(str(path), SCHEMA) as writer:
        for start in range(0, n, BLOCK):
            X = rng.normal(size=(FEATURES, min(BLOCK, n - start)))
            columns = [*X, w @ X + rng.normal(size=X.shape[1])]
            if form == "csv":
                columns = [column.round(6) for column in columns]
            table = pa.table(columns, schema=SCHEMA)
            if form == "arrow":
                writer.write_table(table, max_chunksize=65536)
            else:
                writer.write_table(table)
    return str(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--folder", type=Path, help="where there is room; files are deleted")
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    run = Run(rounds=1, process_rounds=options.rounds, scale=1.0)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for figure in _measured(run, options.rows, Path(folder)):
            print(
                f"{figure.what}: {figure.ours:.0f} {figure.unit}; {figure.peer_name}: "
                f"{figure.peer:.0f}; {figure.sense} {figure.ratio:.2f} (asked: {figure.target})"
            )


if __name__ == "__main__":
    main()
