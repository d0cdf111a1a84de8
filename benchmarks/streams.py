"""Predict, then learn, every row of an array."""

from __future__ import annotations

import peers
from numpy.typing import NDArray
from timing import Figure, Run, alternate

from posterity import BayesianLinearRegression

NAME = "streams"
TITLE = "Predict, then learn, every row of an array"
HOW = """\
Ours is one call of `predict_then_learn`, including `mean()` and `std()` of every row. All methods
solve the same problem (standard normal prior, no intercept), which is checked before timing.
polars-ds and polars-ols take a data frame and give no variances. river takes dicts (the conversion
is not counted) and returns the distribution. Its loop and the two methods that invert get fewer
rows. The compiled loop is ten lines of Numba that update a covariance, with the same means and
standard deviations. Halford's class is that of the blog post (2020) as published: it inverts to
predict and to learn, and returns a `scipy.stats.norm`. "One inversion a row" is the same without
SciPy and with the inverse kept."""

# p -> rows, and rows of the slow loops
SIZES = {10: (200_000, 2_000), 200: (10_000, 100)}
TARGETS = {
    10: {"polars-ds": 6.0, "river": 50.0, "Halford's class": 1000.0, "one inversion a row": 1000.0},
    200: {"polars-ds": 2.5, "river": 30.0},
}
NOISES = {"noise known": 1.0, "noise learned": None}


def ours(X: NDArray, y: NDArray, noise_precision: float | None) -> object:
    model = BayesianLinearRegression(
        prior_precision=1.0, noise_precision=noise_precision, fit_intercept=False
    )
    distribution = model.predict_then_learn(X, y)
    return distribution.mean(), distribution.std()


def coefficients(X: NDArray, y: NDArray) -> NDArray:
    model = BayesianLinearRegression(prior_precision=1.0, noise_precision=1.0, fit_intercept=False)
    model.predict_then_learn(X, y)
    return model.coef_


def measure(run: Run) -> list[Figure]:
    peers.check_agreement(coefficients)
    return [figure for p in SIZES for figure in _measure(p, run)]


def _measure(p: int, run: Run) -> list[Figure]:
    n, n_slow = (run.rows(full) for full in SIZES[p])
    X, y = peers.problem(n, p)
    frame = peers.as_frame(X, y)
    few_X, few_y = X[:n_slow], y[:n_slow]
    few_rows, few_targets = peers.as_dicts(few_X), few_y.tolist()
    mine = {name: (lambda beta=beta: ours(X, y, beta), n) for name, beta in NOISES.items()}
    others = {
        "polars-ds": (lambda: peers.polars_ds_recursive(frame), n),
        "polars-ols": (lambda: peers.polars_ols_recursive(frame), n),
        "compiled loop": (lambda: peers.compiled(X, y), n),
        "river": (lambda: peers.river_loop(few_rows, few_targets, with_dist=True), n_slow),
        "Halford's class": (lambda: peers.halford_loop(few_X, few_y), n_slow),
        "one inversion a row": (lambda: peers.inversion_loop(few_X, few_y), n_slow),
    }
    tasks = mine | others
    seconds = alternate({name: task for name, (task, _) in tasks.items()}, run.rounds)
    a_row = {name: seconds[name] / rows * 1e9 for name, (_, rows) in tasks.items()}
    return [
        Figure(
            f"p = {p}, {noise}",
            peer,
            a_row[noise],
            a_row[peer],
            "ns/row",
            "faster",
            TARGETS[p].get(peer),
        )
        for noise in mine
        for peer in others
    ]
