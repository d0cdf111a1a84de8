"""The command on a large file."""

from __future__ import annotations

import sysconfig
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import children
import numpy as np
import peers
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from river import evaluate, metrics
from river.linear_model import BayesianLinearRegression as RiverRegression
from timing import Figure, Run, alternate, rounds_of

NAME = "command"
TITLE = "`posterity evaluate` on a file"
HOW = """\
10 features and a target, numbers with six decimals; about 100 MB per million rows. Times are those
of whole processes, minus those of the same process on a file of 10 rows (start-up), in turn: the
cost of a million rows. PyArrow alone runs `for batch in pyarrow.csv.open_csv(file): pass`, with
declared column types, which makes it much faster, and with its defaults. river's
`progressive_val_score` (MAE) runs in a warm process, over rows that are already dicts in memory.
Peak memory is the resident memory of the whole process; a file four times as long may use at most
a tenth more."""

FEW, BLOCK = 10, 250_000
SCRIPTS = Path(sysconfig.get_path("scripts"))
READ = """
import sys, pyarrow as pa, pyarrow.csv as csv
names = [f"x{i}" for i in range(10)] + ["y"]
types = dict.fromkeys(names, pa.float64()) if sys.argv[2] == "declared" else None
for batch in csv.open_csv(sys.argv[1], convert_options=csv.ConvertOptions(column_types=types)):
    pass
"""


def measure(run: Run) -> list[Figure]:
    n = run.rows(1_000_000)
    with tempfile.TemporaryDirectory(prefix="posterity-benchmark-") as folder:
        files = {
            (form, rows): _write(Path(folder), form, rows)
            for form in ("csv", "parquet")
            for rows in (FEW, n, 4 * n)
        }
        return _times(files, n, run) + _memory(files, n, run)


def _times(files: dict[tuple[str, int], str], n: int, run: Run) -> list[Figure]:
    programs: dict[str, Callable[[int], children.Child]] = {
        "csv": lambda rows: _evaluate(files["csv", rows]),
        "parquet": lambda rows: _evaluate(files["parquet", rows]),
        "declared": lambda rows: children.python(READ, files["csv", rows], "declared"),
        "inferred": lambda rows: children.python(READ, files["csv", rows], "inferred"),
    }
    for program in programs.values():
        program(n)  # from here on every file is in the system's cache
    beyond = rounds_of(
        {name: partial(_beyond_start, program, n) for name, program in programs.items()},
        run.process_rounds,
    )
    a_row = {name: median(seconds) / n * 1e9 for name, seconds in beyond.items()}
    a_row["river"] = _river(run)
    what = f"{n:,} x 10"
    arrow = "PyArrow reading alone, types"
    return [
        Figure(
            f"{what}, CSV", f"{arrow} {types}", a_row["csv"], a_row[types], "ns/row", "within", t
        )
        for types, t in (("declared", 1.5), ("inferred", None))
    ] + [
        Figure(
            f"{what}, {name}",
            "river's progressive_val_score",
            a_row[form],
            a_row["river"],
            "ns/row",
            "faster",
            target,
        )
        for form, name, target in (("csv", "CSV", None), ("parquet", "Parquet", 40.0))
    ]


def _beyond_start(program: Callable[[int], children.Child], n: int) -> float:
    start = program(FEW).seconds
    return program(n).seconds - start


def _memory(files: dict[tuple[str, int], str], n: int, run: Run) -> list[Figure]:
    figures = []
    for form, name in (("csv", "CSV"), ("parquet", "Parquet")):
        rounds = range(min(run.process_rounds, 2))
        short, long = (
            median(_evaluate(files[form, rows]).peak for _ in rounds) for rows in (n, 4 * n)
        )
        what, peer = f"peak memory, {4 * n:,} rows of {name}", f"ours, {n:,} rows"
        figures.append(Figure(what, peer, long, short, "MB", "within", 1.1))
    return figures


def _river(run: Run) -> float:
    """Nanoseconds a row."""
    X, y = peers.problem(run.rows(50_000), 10)
    stream = list(zip(peers.as_dicts(X.round(6)), y.round(6).tolist(), strict=True))
    seconds = alternate(
        {"river": lambda: evaluate.progressive_val_score(stream, RiverRegression(), metrics.MAE())},
        min(run.rounds, 5),
    )
    return seconds["river"] / len(stream) * 1e9


def _evaluate(file: str) -> children.Child:
    return children.run(
        str(SCRIPTS / "posterity"), "evaluate", file, "--target", "y", "--json", "--quiet"
    )


def _write(folder: Path, form: str, n: int) -> str:
    """A file of n rows, written a block at a time."""
    path = folder / f"{n}.{form}"
    names = [*peers.feature_names(10), "y"]
    schema = pa.schema([(name, pa.float64()) for name in names])
    opened = pa.csv.CSVWriter if form == "csv" else pa.parquet.ParquetWriter
    with opened(path, schema) as writer:
        for seed, start in enumerate(range(0, n, BLOCK)):
            X, y = peers.problem(min(BLOCK, n - start), 10, seed)
            columns = np.column_stack([X, y]).round(6).T
            writer.write_table(pa.table(list(columns), schema=schema))
    return str(path)
