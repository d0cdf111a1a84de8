"""Partitions merged on Spark, beside MLlib; python benchmarks/cluster.py ROWS runs Spark alone."""

from __future__ import annotations

import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from timing import Figure, Run, alternate

from posterity import BayesianLinearRegression
from posterity.adapters import _partitions as core

NAME = "cluster"
TITLE = "Many machines: partitions merged"
HOW = """\
The driver merges one model file for each partition. This is measured with 100 and with 10,000 rows
in each, because the time must not grow with them; on Spark a tree of merges leaves the driver at
most 16 files. Spark: the same Parquet files of p = 20 features, in one session of `local[2]`,
through `posterity.adapters.spark.fit` (flat prior) and MLlib's `LinearRegression` (normal
equations), whose coefficients agree."""

P = 20
FILES = 8


def measure(run: Run) -> list[Figure]:
    figures = [_driver(run, n_parts, p) for p in (10, 50, 200) for n_parts in (1, 4, 16, 64)]
    with tempfile.TemporaryDirectory() as folder, session(Path(folder)) as spark:
        rows = run.rows(2_000_000)
        path = written(Path(folder) / "rows", rows)
        tasks = both(spark, path)
        predictive = [task() for task in tasks.values()]
        if not np.allclose(*predictive, rtol=1e-8):
            raise RuntimeError("MLlib solves another problem")
        seconds = alternate(tasks, max(run.rounds // 3, 1))
        ours, theirs = (seconds[name] / rows * 1e9 for name in tasks)
        what = f"fit, {rows:,} x {P} on Spark"
        figures.append(Figure(what, "MLlib", ours, theirs, "ns/row", "faster", 1.0))
    return figures


# ---- the driver's work ---------------------------------------------------------------------------


def _driver(run: Run, n_parts: int, p: int) -> Figure:
    """Merge the files of partitions of 10,000 rows, beside those of partitions of 100."""
    tasks = {
        f"{n_rows}": partial(core.merge_contents, _files(n_parts, p, n_rows))
        for n_rows in (10_000, 100)
    }
    seconds = alternate(tasks, run.rounds)
    many, few = (value * 1e3 for value in seconds.values())
    what = f"merge {n_parts} files, p = {p}"
    return Figure(what, "of 100 rows each", many, few, "ms", "within", 1.2)


def _files(n_parts: int, p: int, n_rows: int) -> list[bytes]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, p))
    names = [f"x{j}" for j in range(p)]
    batch = pa.record_batch([*X.T, X.sum(axis=1) + rng.normal(size=n_rows)], names=[*names, "y"])
    model = BayesianLinearRegression(prior_precision=1.0)
    task = core.plan(model, batch.schema, core.Columns(target="y"))
    content = core.learn(task, [batch])
    assert content is not None
    return [content] * n_parts


# ---- Spark ---------------------------------------------------------------------------------------


@contextmanager
def session(folder: Path) -> Iterator[Any]:
    """A session of Spark on this machine alone."""
    os.environ |= {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_HOSTNAME": "localhost",
        "SPARK_LOCAL_DIRS": str(folder),
        "OMP_NUM_THREADS": "1",  # for the workers: Spark runs one on each core
    }
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "2g",
    }.items():
        builder = builder.config(name, value)
    running = builder.getOrCreate()
    try:
        yield running
    finally:
        running.stop()


def written(path: Path, n_rows: int) -> Path:
    """Parquet files of a regression, one row group of 250,000 rows in memory at a time."""
    rng = np.random.default_rng(0)
    coefficients = rng.normal(size=P)
    path.mkdir()
    schema = pa.schema([(name, pa.float64()) for name in [*(f"x{j}" for j in range(P)), "y"]])
    for number in range(FILES):
        left = n_rows // FILES
        with parquet.ParquetWriter(
            path / f"{number}.parquet", schema, use_dictionary=False
        ) as file:
            while left:
                n = min(left, 250_000)
                X = rng.normal(size=(n, P))
                y = X @ coefficients + rng.normal(size=n)
                file.write_table(pa.table([*X.T, y], schema=schema))
                left -= n
    return path


def both(spark: Any, path: Path) -> dict[str, Callable[[], Any]]:
    return {"ours": partial(_ours, spark, str(path)), "MLlib": partial(_theirs, spark, str(path))}


def _ours(spark: Any, path: str) -> Any:
    from posterity.adapters.spark import fit

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # PySpark, of the pandas that it finds
        model = fit(BayesianLinearRegression(prior_precision=0.0), spark.read.parquet(path), "y")
    return model.coef_


def _theirs(spark: Any, path: str) -> Any:
    from pyspark.ml.feature import VectorAssembler
    from pyspark.ml.regression import LinearRegression

    assembler = VectorAssembler(inputCols=[f"x{j}" for j in range(P)], outputCol="features")
    regression = LinearRegression(labelCol="y", solver="normal", standardization=False)
    return regression.fit(assembler.transform(spark.read.parquet(path))).coefficients.toArray()


def main() -> None:
    n_rows = int(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder, session(Path(folder)) as spark:
        for task in both(spark, written(Path(folder) / "few", 80_000)).values():
            task()  # Java has compiled what both need
        tasks = both(spark, written(Path(folder) / "rows", n_rows))
        for name, task in 2 * list(tasks.items()):
            start = time.perf_counter()
            task()
            seconds = time.perf_counter() - start
            print(f"{name}: {seconds:.1f} s, {seconds / n_rows * 1e9:.0f} ns/row", flush=True)


if __name__ == "__main__":
    main()
