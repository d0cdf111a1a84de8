"""Tails: any new row among outliers, extreme quantiles of few rows, one column with loud noise."""

from __future__ import annotations

from functools import partial

import numpy as np

from guarantees.check import Check, Simulation
from posterity import (
    BayesianLinearRegression,
    BayesianQuantileRegression,
    BayesianRobustRegression,
)

NEW = 1000


def any_row(rng: np.random.Generator, *, share: float, rows: bool) -> tuple[int, int]:
    """New rows of which a share is wrong by ten standard deviations, as of the 200 learned."""
    X = rng.normal(size=(200 + NEW, 3))
    wrong = (rng.random(len(X)) < share) * rng.choice([-10.0, 10.0], size=len(X))
    y = X @ [2.0, 0.5, -1.0] + rng.normal(size=len(X)) + wrong
    model = BayesianRobustRegression()
    (model.partial_fit if rows else model.fit)(X[:200], y[:200])
    low, high = model.predict_interval(X[200:], outliers=True).T
    return int(((low <= y[200:]) & (y[200:] <= high)).sum()), NEW


def quantile(rng: np.random.Generator, *, q: float, n: int, rows: bool) -> tuple[int, int]:
    """The quantile at one row, of exponential noise that points away from the middle."""
    sign = 1.0 if q > 0.5 else -1.0
    x = rng.uniform(size=(n, 1))
    y = 1.0 + x[:, 0] + sign * rng.standard_exponential(n)
    model = BayesianQuantileRegression(quantile=q)
    (model.partial_fit if rows else model.fit)(x, y)
    low, high = model.predict_interval([[0.5]])[0]
    return int(low <= 1.5 - sign * np.log(min(q, 1.0 - q)) <= high), 1


def loud_column(
    rng: np.random.Generator, *, p: int, n: int, loud: bool, rows: bool
) -> tuple[int, int]:
    """New rows in the loudest or the quietest tenth, by one column of many."""
    X = rng.normal(size=(n + NEW, p))
    y = X @ np.linspace(1.0, -1.0, p) + np.exp(X[:, 0]) * rng.normal(size=len(X))
    model = BayesianLinearRegression(noise="linear")
    for part in np.array_split(np.arange(n), 10 if rows else 1):
        model.partial_fit(X[part], y[part])
    low, high = model.predict_interval(X[n:]).T
    order = np.argsort(X[n:, 0])
    tenth = order[-NEW // 10 :] if loud else order[: NEW // 10]
    return int(((low <= y[n:]) & (y[n:] <= high))[tenth].sum()), len(tenth)


def checks() -> list[Check]:
    """One row a kind."""

    def check(setting: str, simulate: Simulation, replicates: int, *bounds: float) -> Check:
        return Check("Tails", setting, 0.95, simulate, replicates, *bounds)

    found = [
        check(
            f"robust, any row: {share:.0%} are wrong by 10 sds, {'rows' if rows else 'fit'}",
            partial(any_row, share=share, rows=rows),
            40,
            *bounds,
        )
        for share, rows, *bounds in (
            (0.0, False, 0.95, 0.99),
            (0.1, False, 0.91, 0.97),
            (0.1, True, 0.89, 0.97),
            (0.3, False, 0.95, 1.0),
            (0.3, True, 0.93, 1.0),
        )
    ]
    found += [
        check(
            f"quantile {q}, exponential noise, n = {n}, {'rows' if rows else 'fit'}",
            partial(quantile, q=q, n=n, rows=rows),
            100,
            0.82 if rows else 0.9,
        )
        for q, n in ((0.95, 20), (0.99, 50), (0.99, 100), (0.05, 20))
        for rows in (False, True)
    ]
    found += [
        check(
            f"noise='linear', {p} columns, n = {n}: {'loudest' if loud else 'quietest'} tenth"
            + (", ten batches" if rows else ""),
            partial(loud_column, p=p, n=n, loud=loud, rows=rows),
            20,
            *((0.91, 0.97) if loud else (0.94, 0.99)),
        )
        for p, n, rows in ((20, 200, False), (20, 200, True), (50, 300, False))
        for loud in (True, False)
    ]
    return found
