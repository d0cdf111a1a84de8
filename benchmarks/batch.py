"""Fit all rows at once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pandas as pd
import peers
import sklearnex.linear_model as sklearnex
from sklearn.linear_model import LinearRegression, Ridge
from threadpoolctl import threadpool_limits
from timing import Figure, Run, alternate

from posterity import BayesianLinearRegression

NAME = "batch"
TITLE = "Fit all rows at once"
HOW = """\
All fit the same row-major array with an intercept, except for the bare product `X.T @ X`, which
fits nothing. Ours also chooses the prior by the evidence, as it does by default. All cores are
used, by BLAS and by ours; lines with "one core" restrict both to one. Runs are 0.1 s apart, so that
idle threads of one do not spin into the time of the next. Where the prior is given, `fit` is little
more than the factorisation of the rows; two cores are compared with one, and columns in other
memory orders with the row-major array. Intel's Ridge is oneDAL's, from scikit-learn-intelex: a sum
of products on all cores, without intervals or evidence."""

SIZES = {10: 1_000_000, 50: 300_000, 200: 50_000}
GRAM_TARGETS = {10: 2.0, 50: 2.5, 200: 2.5}
GIVEN_SIZES = {
    5: 1_000_000,
    10: 1_000_000,
    20: 500_000,
    50: 200_000,
    100: 100_000,
    200: 50_000,
    500: 20_000,
    1_000: 10_000,
    2_000: 5_000,
}
COLUMNS = (500_000, 20)
PAUSE = 0.1
ONEDAL = "Ridge of scikit-learn-intelex"


def measure(run: Run) -> list[Figure]:
    figures = []
    for p, full in SIZES.items():
        X, y = peers.problem(run.rows(full), p)
        what = f"{len(X):,} x {p}"
        tasks = {
            "ours": lambda X=X, y=y: BayesianLinearRegression().fit(X, y).coef_,
            "X.T @ X": lambda X=X: X.T @ X,
        }
        with one_core():
            single = alternate(tasks, run.rounds, PAUSE)
        if p == 10:
            tasks["Ridge(solver='cholesky')"] = lambda X=X, y=y: Ridge(solver="cholesky").fit(X, y)
            tasks["LinearRegression"] = lambda X=X, y=y: LinearRegression().fit(X, y)
        tasks[ONEDAL] = lambda X=X, y=y: sklearnex.Ridge().fit(X, y).coef_
        every = alternate(tasks, run.rounds, PAUSE)
        figures.append(_figure(what, "X.T @ X", every, "within", GRAM_TARGETS[p]))
        figures.append(_figure(f"{what}, one core", "X.T @ X", single, "within", None))
        if p == 10:
            figures.append(_figure(what, "Ridge(solver='cholesky')", every, "faster", 3.0))
            figures.append(_figure(what, "LinearRegression", every, "faster", 10.0))
        figures.append(_figure(what, ONEDAL, every, "faster", None))
    return figures + _given_prior(run) + _columns(run)


def _given_prior(run: Run) -> list[Figure]:
    """Against the bare product on one core, and two cores against one."""
    figures = []
    for p, full in GIVEN_SIZES.items():
        X, y = peers.problem(run.rows(full), p)
        what = f"{len(X):,} x {p}, prior given"
        tasks = {"ours": lambda X=X, y=y: _given().fit(X, y), "X.T @ X": lambda X=X: X.T @ X}
        with one_core():
            single = alternate(tasks, run.rounds, PAUSE)
        figures.append(
            _figure(f"{what}, one core", "X.T @ X", single, "within", 1.2 if p <= 20 else 2.1)
        )
        if p in SIZES:
            every = alternate({"ours": tasks["ours"]}, run.rounds, PAUSE)
            figures.append(
                _figure(what, "one core", every | {"one core": single["ours"]}, "faster", 1.8)
            )
    return figures


def _columns(run: Run) -> list[Figure]:
    """Columns that are not rows of memory."""
    n, p = COLUMNS
    X, y = peers.problem(run.rows(n), p)
    frame = peers.as_frame(X, y).drop("y")
    orders = {
        "Fortran": np.asfortranarray(X),
        "pandas": pd.DataFrame(np.asfortranarray(X)).rename(columns=str),
        "Polars": frame,
        "Arrow": frame.to_arrow(),
        "float32": X.astype(np.float32),
    }
    tasks = {name: lambda rows=rows: _given().fit(rows, y) for name, rows in orders.items()}
    with one_core():
        seconds = alternate(tasks | {"C order": lambda: _given().fit(X, y)}, run.rounds, PAUSE)
    return [
        _figure(
            f"{len(X):,} x {p}, {name}",
            "C order",
            {"ours": seconds[name], "C order": seconds["C order"]},
            "within",
            None if name == "float32" else 1.1,
        )
        for name in orders
    ]


def _given() -> BayesianLinearRegression:
    return BayesianLinearRegression(prior_precision=1.0)


def _figure(what, peer, seconds, sense, target) -> Figure:
    ours, theirs = seconds["ours"] * 1e3, seconds[peer] * 1e3
    return Figure(what, peer, ours, theirs, "ms", sense, target)


@contextmanager
def one_core() -> Iterator[None]:
    """Hold BLAS and us to one thread."""
    name = "POSTERITY_NUM_THREADS"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        with threadpool_limits(1):
            yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
