"""Priors learned from the evidence: in one fit, and in a stream."""

from __future__ import annotations

from typing import Any

import numpy as np
import peers
from sklearn.linear_model import ARDRegression, BayesianRidge
from timing import Figure, Run, alternate

from posterity import BayesianLinearRegression
from posterity.evidence import Maximized

NAME = "evidence"
TITLE = "Priors learned from the evidence"
HOW = """\
Fits: all rows at once with an intercept, the coefficients read; scikit-learn's `BayesianRidge` and
`ARDRegression` with their defaults. For the latter every fifth coefficient is not 0. Streams: one
call of `predict_then_learn` with learned noise and `prior_precision="auto"`, compared with the same
under a given prior, including `mean()` and `std()` of every row."""

PAUSE = 0.1
# Rows and columns: how long a stream is decides how much each choice of the prior costs a row.
STREAMS = ((300, 10), (3_000, 10), (30_000, 10), (300_000, 10), (100_000, 50), (10_000, 200))
SHORT = 10_000


def fitted(prior_precision: Any, X: Any, y: Any) -> object:
    return BayesianLinearRegression(prior_precision=prior_precision).fit(X, y).coef_


def streamed(prior_precision: Any, X: Any, y: Any) -> object:
    predictive = BayesianLinearRegression(prior_precision=prior_precision).predict_then_learn(X, y)
    return predictive.mean(), predictive.std()


def measure(run: Run) -> list[Figure]:
    return [*_fits(run), *_streams(run)]


def _fits(run: Run) -> list[Figure]:
    X, y = peers.problem(run.rows(1_000_000), 10)
    seconds = alternate(
        {
            "maximized": lambda: fitted(Maximized(), X, y),
            "auto": lambda: fitted("auto", X, y),
            "BayesianRidge": lambda: BayesianRidge().fit(X, y),
        },
        run.rounds,
        PAUSE,
    )
    what, ridge = f"{len(X):,} x 10", seconds["BayesianRidge"] * 1e3
    figures = [
        Figure(f"{what}, {name}", "BayesianRidge", seconds[key] * 1e3, ridge, "ms", "faster", 20.0)
        for key, name in (("maximized", "maximised"), ("auto", "integrated (default)"))
    ]
    X, _ = peers.problem(run.rows(100_000), 50)
    rng = np.random.default_rng(1)
    y = X[:, ::5] @ rng.normal(size=10) + rng.normal(size=len(X))
    seconds = alternate(
        {
            "ours": lambda: fitted("ard", X, y),
            "ARDRegression": lambda: ARDRegression().fit(X, y),
        },
        run.rounds,
        PAUSE,
    )
    ours, theirs = seconds["ours"] * 1e3, seconds["ARDRegression"] * 1e3
    what = f"{len(X):,} x 50, ard"
    return [*figures, Figure(what, "ARDRegression", ours, theirs, "ms", "faster", 20.0)]


def _streams(run: Run) -> list[Figure]:
    figures = []
    for full, p in STREAMS:
        X, y = peers.problem(full if full < SHORT else run.rows(full), p)
        seconds = alternate(
            {
                "auto": lambda X=X, y=y: streamed("auto", X, y),
                "given": lambda X=X, y=y: streamed(1.0, X, y),
            },
            run.rounds,
        )
        ours, plain = (seconds[name] / len(X) * 1e9 for name in ("auto", "given"))
        what = f"stream of {len(X):,} x {p}, auto"
        figures.append(Figure(what, "a given prior", ours, plain, "ns/row", "within", 2.5))
    return figures
