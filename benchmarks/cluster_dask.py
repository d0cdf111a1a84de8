"""Partitions merged on Dask, beside dask-ml; python benchmarks/cluster_dask.py ROWS: one run."""

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

import cluster
import numpy as np
from timing import Figure, Run, alternate

from posterity import BayesianLinearRegression

NAME = "cluster_dask"
TITLE = "Many machines: Dask"
HOW = """\
A `LocalCluster` of two processes with a thread each. The same rows of p = 20 features, as Dask
arrays in the memory of the workers, and as Parquet files that are read each time. Ours is
`posterity.adapters.dask.fit` (flat prior). dask-ml's is `LinearRegression` with `newton`, its
fastest solver here and the closest to least squares, and, in memory, its default, `admm`. Both
regularise by default, and agree with ours to 1e-4 and 1e-2. `lstsq` is Dask's own, on a column of
ones and the features."""

FIT = "fit, {rows:,} x {p}, {where}"
NAMES = [f"x{j}" for j in range(cluster.P)]
Task = Callable[[], Any]


def measure(run: Run) -> list[Figure]:
    rows, rounds = run.rows(1_000_000), max(run.rounds // 3, 1)
    with tempfile.TemporaryDirectory() as folder, workers():
        path = cluster.written(Path(folder) / "rows", rows)
        groups = {"in memory": in_memory(path), "from Parquet": from_parquet(path)}
        return [
            figure
            for where, tasks in groups.items()
            for figure in _figures(FIT.format(rows=rows, p=cluster.P, where=where), tasks, rounds)
        ]


def _figures(what: str, tasks: dict[str, Task], rounds: int) -> list[Figure]:
    wanted = tasks["ours"]()
    for name, task in tasks.items():
        if not np.allclose(task(), wanted, atol=1e-2 if "admm" in name else 1e-4):
            raise RuntimeError(f"{name} solves another problem")
    seconds = alternate(tasks, rounds)
    ours = seconds.pop("ours")
    return [
        Figure(what, name, ours, theirs, "s", "faster", 1.0) for name, theirs in seconds.items()
    ]


@contextmanager
def workers() -> Iterator[Any]:
    """A cluster on this machine alone."""
    os.environ["OMP_NUM_THREADS"] = "1"  # for the workers: there is one on each core
    from distributed import Client, LocalCluster

    quiet = {"dashboard_address": None, "host": "127.0.0.1", "silence_logs": 50}
    with (
        warnings.catch_warnings(),
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit=None, **quiet) as running,
        Client(running) as client,
    ):
        warnings.simplefilter("ignore")  # dask-ml, of the names of Dask's settings
        yield client


def in_memory(path: Path) -> dict[str, Task]:
    from dask import array, persist
    from distributed import wait

    X, y = persist(*_arrays(path))
    wait([X, y])
    ones = array.concatenate([array.ones_like(X[:, :1]), X], axis=1).rechunk({1: -1})
    return {
        "ours": partial(_ours, X, y),
        "dask-ml, newton": partial(_theirs, "newton", X, y),
        "dask-ml, admm": partial(_theirs, "admm", X, y),
        "lstsq": lambda: array.linalg.lstsq(ones, y)[0].compute()[1:],
    }


def from_parquet(path: Path) -> dict[str, Task]:
    import dask.dataframe as dd

    return {
        "ours": lambda: _ours(dd.read_parquet(path), "y"),
        "dask-ml, newton": lambda: _theirs("newton", *_arrays(path)),
    }


def _arrays(path: Path) -> tuple[Any, Any]:
    import dask.dataframe as dd

    # Optimized first: reading some of the columns, Dask puts small files together.
    rows = dd.read_parquet(path)[[*NAMES, "y"]].optimize().to_dask_array(lengths=True)
    return rows[:, :-1], rows[:, -1]


def _ours(table: Any, target: Any) -> Any:
    from posterity.adapters.dask import fit

    return fit(BayesianLinearRegression(prior_precision=0.0), table, target).coef_


def _theirs(solver: str, X: Any, y: Any) -> Any:
    from dask_ml.linear_model import LinearRegression

    return LinearRegression(solver=solver).fit(X, y).coef_


def main() -> None:
    n_rows = int(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder, workers():
        for task in from_parquet(cluster.written(Path(folder) / "few", 8_000)).values():
            task()  # the workers import what they need
        for name, task in from_parquet(cluster.written(Path(folder) / "rows", n_rows)).items():
            start = time.perf_counter()
            task()
            seconds = time.perf_counter() - start
            print(f"{name}: {seconds:.1f} s, {seconds / n_rows * 1e9:.0f} ns/row", flush=True)


if __name__ == "__main__":
    main()
