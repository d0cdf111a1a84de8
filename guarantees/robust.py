"""Robust and quantile regression: coefficients, predictions and quantiles, fit and rows."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy import stats

from guarantees.check import Check
from posterity import BayesianQuantileRegression, BayesianRobustRegression


def coefficients(
    rng: np.random.Generator, *, likelihood: str, n: int, p: int, rows: bool
) -> tuple[int, int]:
    """Intervals of the coefficients; noise as the model has it, a flat prior."""
    X, y, truth, model = _drawn(rng, likelihood, n, p)
    model = model.partial_fit(X[:n], y[:n]) if rows else model.fit(X[:n], y[:n])
    low, high = model.posterior_.interval(0.95).T
    return int(np.sum((low <= truth) & (truth <= high))), p + 1


def predictions(
    rng: np.random.Generator, *, likelihood: str, n: int, p: int, rows: bool
) -> tuple[int, int]:
    """Intervals of 20 new observations of the same noise."""
    X, y, _, model = _drawn(rng, likelihood, n, p)
    model = model.partial_fit(X[:n], y[:n]) if rows else model.fit(X[:n], y[:n])
    low, high = model.predict_distribution(X[n:]).interval(0.95)
    return int(np.sum((low <= y[n:]) & (y[n:] <= high))), 20


def lines(rng: np.random.Generator, *, median: bool, n: int, p: int, rows: bool) -> tuple[int, int]:
    """Intervals of the line at 50 new rows, five features of ``p`` mattering; all by default."""
    effects = np.zeros(p)
    effects[:5] = rng.normal(size=min(p, 5)) / np.sqrt(5.0)
    X = rng.normal(size=(n + 50, p))
    y = X @ effects + 0.5 * rng.standard_t(4, size=n + 50)
    model = BayesianQuantileRegression() if median else BayesianRobustRegression()
    model = model.partial_fit(X[:n], y[:n]) if rows else model.fit(X[:n], y[:n])
    low, high = model.predict_interval(X[n:], of="quantile" if median else "mean").T
    return int(np.sum((low <= X[n:] @ effects) & (X[n:] @ effects <= high))), 50


def quantiles(rng: np.random.Generator, *, q: float, n: int, rows: bool) -> tuple[int, int]:
    """Intervals of the quantile at 10 new rows; two features, exponential noise."""
    X = rng.normal(size=(n + 10, 2))
    line = 1.0 + X @ [1.0, 2.0]
    y = line[:n] + rng.exponential(size=n)
    model = BayesianQuantileRegression(quantile=q, prior_precision=0.0)
    model = model.partial_fit(X[:n], y) if rows else model.fit(X[:n], y)
    low, high = model.predict_interval(X[n:], 0.95).T
    truth = line[n:] + stats.expon.ppf(q)
    return int(np.sum((low <= truth) & (truth <= high))), 10


def _drawn(
    rng: np.random.Generator, likelihood: str, n: int, p: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, BayesianRobustRegression]:
    X = rng.normal(size=(n + 20, p))
    truth = rng.normal(size=p + 1)
    noise = (
        rng.standard_t(4, size=n + 20) if likelihood == "student_t" else rng.laplace(size=n + 20)
    )
    model = BayesianRobustRegression(likelihood=likelihood, prior_precision=0.0)
    return X, truth[0] + X @ truth[1:] + noise, truth, model


def checks() -> list[Check]:
    """Few and many coefficients, and quantiles of skewed noise."""
    found = []
    for likelihood in ("student_t", "laplace"):
        for n, p, rows in ((20, 2, False), (100, 50, False), (300, 3, True)):
            way = "one pass" if rows else "fit"
            setting = f"{likelihood} noise, p = {p}, n = {n}, {way}"
            chosen = {"likelihood": likelihood, "n": n, "p": p, "rows": rows}
            for topic, simulate, highest in (
                ("Coefficients of robust regression", coefficients, 0.975),
                ("Predictions of robust regression", predictions, 0.97),
            ):
                found.append(
                    Check(topic, setting, 0.95, partial(simulate, **chosen), 40, 0.93, highest)
                )
    # As many coefficients as rows: one scale and prior stand for all that are possible.
    for median in (False, True):
        for n, p in ((30, 10), (40, 30), (60, 200), (100, 100), (300, 30)):
            for rows in (False, True):
                kind, way = "median" if median else "robust", "one pass" if rows else "fit"
                simulate = partial(lines, median=median, n=n, p=p, rows=rows)
                setting = f"{kind}, learned prior, p = {p}, n = {n}, {way}"
                found.append(
                    Check("Lines under heavy tails", setting, 0.95, simulate, 20, 0.85, 0.99)
                )
    for q, n, rows in (
        (0.1, 50, False),
        (0.5, 50, False),
        (0.9, 50, False),
        (0.9, 200, False),
        (0.9, 200, True),
        (0.95, 100, False),
    ):
        setting = f"quantile {q}, exponential noise, n = {n}, {'one pass' if rows else 'fit'}"
        simulate = partial(quantiles, q=q, n=n, rows=rows)
        found.append(Check("Lines of quantile regression", setting, 0.95, simulate, 100, 0.90))
    return found
