"""Predict, then learn, every row of an array, in a model that forgets."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import peers
import polars as pl
import polars_ols
from numpy.typing import NDArray
from river.linear_model import BayesianLinearRegression as RiverRegression
from timing import Figure, Run, alternate

from posterity import BayesianLinearRegression
from posterity import forgetting as ways

NAME = "forgetting"
TITLE = "Predict, then learn, and forget"
HOW = """\
Ours is one call of `predict_then_learn` for each way to forget, including `mean()` and `std()` of
every row; the noise is learned, the prior standard normal, without an intercept. "Plain" is the
same without forgetting. polars-ols takes a data frame and gives predictions without variances: its
`rls` with the same discount, as a half-life, and its rolling regression over the same 500 rows,
whose predictions include the row itself. river's only way to forget is smoothing: a loop, over
fewer rows, without variances."""

DISCOUNT, WINDOW = 0.99, 500
LEARNED = "Adaptive, prior learned (default)"
# p -> rows, and rows of river's loop
SIZES = {10: (200_000, 2_000), 50: (40_000, 500)}
# Strategy, and how many times as long as plain it may take.
STRATEGIES: dict[str, tuple[ways.Forgetting, float | None]] = {
    "Exponential": (ways.Exponential(DISCOUNT), 1.2),
    "Stabilized": (ways.Stabilized(DISCOUNT), 3.0),
    "Window(500)": (ways.Window(size=WINDOW), 4.0),
    "Adaptive, 8 discounts": (ways.Adaptive(ways.Adaptive.grid(10)), 10.0),
    "Directional": (ways.Directional(DISCOUNT), None),
}


def ours(
    X: NDArray, y: NDArray, forgetting: ways.Forgetting | None, prior_precision: Any = 1.0
) -> object:
    model = BayesianLinearRegression(
        prior_precision=prior_precision, fit_intercept=False, forgetting=forgetting
    )
    distribution = model.predict_then_learn(X, y)
    return distribution.mean(), distribution.std()


def polars_rls(frame: pl.DataFrame) -> pl.DataFrame:
    half_life = math.log(0.5) / math.log(DISCOUNT)
    return frame.select(
        polars_ols.compute_recursive_least_squares(
            pl.col("y"),
            *map(pl.col, frame.columns[:-1]),
            mode="predictions",
            rls_kwargs=polars_ols.RLSKwargs(half_life=half_life, initial_state_covariance=1.0),
        )
    )


def polars_rolling(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.select(
        polars_ols.compute_rolling_least_squares(
            pl.col("y"),
            *map(pl.col, frame.columns[:-1]),
            mode="predictions",
            rolling_kwargs=polars_ols.RollingKwargs(window_size=WINDOW),
        )
    )


def river_smoothing(rows: list[dict[str, float]], targets: list[float]) -> object:
    model = RiverRegression(alpha=1, beta=1, smoothing=DISCOUNT)
    for x, y in zip(rows, targets, strict=True):
        model.predict_one(x)
        model.learn_one(x, y)
    return model


def measure(run: Run) -> list[Figure]:
    return [figure for p in SIZES for figure in _measure(p, run)]


def _measure(p: int, run: Run) -> list[Figure]:
    n, n_slow = (run.rows(full) for full in SIZES[p])
    X, y = peers.problem(n, p)
    frame = peers.as_frame(X, y)
    few_rows, few_targets = peers.as_dicts(X[:n_slow]), y[:n_slow].tolist()
    tasks: dict[str, tuple[Callable[[], object], int]] = {"plain": (lambda: ours(X, y, None), n)}
    for name, (strategy, _) in STRATEGIES.items():
        tasks[name] = (lambda strategy=strategy: ours(X, y, strategy), n)
    tasks[LEARNED] = (lambda: ours(X, y, ways.Adaptive(), "auto"), n)
    tasks["polars-ols rls"] = (lambda: polars_rls(frame), n)
    tasks["polars-ols rolling"] = (lambda: polars_rolling(frame), n)
    tasks["river smoothing"] = (lambda: river_smoothing(few_rows, few_targets), n_slow)
    seconds = alternate({name: task for name, (task, _) in tasks.items()}, run.rounds)
    a_row = {name: seconds[name] / rows * 1e9 for name, (_, rows) in tasks.items()}

    def figure(
        name: str, peer: str, sense: Literal["faster", "within"], target: float | None
    ) -> Figure:
        what = f"p = {p}, {name}"
        return Figure(what, peer, a_row[name], a_row[peer], "ns/row", sense, target)

    beside_plain = [figure(name, "plain", "within", most) for name, (_, most) in STRATEGIES.items()]
    beside_plain.append(figure(LEARNED, "plain", "within", None))
    ahead = [
        figure(name, peer, "faster", 1.0 if most else None)
        for name, (_, most) in STRATEGIES.items()
        for peer in ("polars-ols rls", "polars-ols rolling", "river smoothing")
    ]
    return beside_plain + ahead
