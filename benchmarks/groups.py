"""One model for each of many groups, beside one model for all rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from timing import Figure, Run, alternate

from posterity import BayesianLinearRegression, GroupedRegression

NAME = "groups"
TITLE = "A hundred thousand groups"
HOW = """\
Ten million rows of eight features in random order of their keys, which are whole numbers; a group
has about a hundred rows. The peer is one of our own models, with a given prior, over the same rows
without their keys. `fit` does not compute the shared prior before it is first read, which the
second line includes; `predict_then_learn` learns it on the way."""

ROWS, GROUPS, P = 10_000_000, 100_000, 8
MOST_ROUNDS = 3  # a round takes half a minute


def measure(run: Run) -> list[Figure]:
    n, groups = run.rows(ROWS), run.rows(GROUPS)
    X, y, keys = problem(n, groups)
    tasks = {
        "fit": lambda: GroupedRegression().fit(X, y, groups=keys),
        "fit, prior read": lambda: GroupedRegression().fit(X, y, groups=keys).shared_mean_,
        "fit of one": lambda: one().fit(X, y),
        "stream": lambda: GroupedRegression().predict_then_learn(X, y, groups=keys),
        "stream of one": lambda: one().predict_then_learn(X, y),
    }
    seconds = alternate(tasks, min(run.rounds, MOST_ROUNDS))
    pairs = {
        "fit": ("fit", "fit of one", 3.0),
        "fit, and read the shared prior": ("fit, prior read", "fit of one", None),
        "predict, then learn": ("stream", "stream of one", 3.0),
    }
    return [
        Figure(
            f"{groups:,} groups, {n:,} x {P}: {what}",
            "one model",
            seconds[ours] / n * 1e9,
            seconds[theirs] / n * 1e9,
            "ns/row",
            "within",
            target,
        )
        for what, (ours, theirs, target) in pairs.items()
    ]


def one() -> BayesianLinearRegression:
    return BayesianLinearRegression(prior_precision=1.0)


def problem(n: int, groups: int) -> tuple[NDArray, NDArray, NDArray]:
    rng = np.random.default_rng(0)
    X, keys = rng.normal(size=(n, P)), rng.integers(0, groups, size=n)
    w = 1.0 + 0.5 * rng.normal(size=(groups, P))
    y = np.einsum("ij,ij->i", X, w[keys]) + rng.normal(size=n)
    return X, y, keys
