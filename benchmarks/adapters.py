"""posterity's regression in river, beside river's own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import peers
from river.linear_model import BayesianLinearRegression as RiverRegression
from timing import Figure, Run, alternate

from posterity.adapters.river import BayesianLinearRegression

NAME = "adapters"
TITLE = "In river: one dictionary a row"
HOW = """\
`predict_one` and `learn_one` of each row, p = 10, through `posterity.adapters.river` and in river's
own `BayesianLinearRegression`, with the same prior, noise and predictions, which is checked first.
With `with_dist=True` both return river's `Gaussian`."""

TARGETS: dict[bool, float | None] = {False: 8.0, True: 8.0}


def loop(model: Any, rows: list[dict[str, float]], targets: list[float], with_dist: bool) -> Any:
    """Predict, then learn, each row."""
    predict, learn = model.predict_one, model.learn_one
    for x, y in zip(rows, targets, strict=True):
        predict(x, with_dist=with_dist)
        learn(x, y)
    return model


def run_through(
    make: Callable[[], Any], rows: list[dict[str, float]], targets: list[float], with_dist: bool
) -> Any:
    return loop(make(), rows, targets, with_dist)


def ours() -> Any:
    return BayesianLinearRegression(noise_precision=1.0, fit_intercept=False)


def measure(run: Run) -> list[Figure]:
    n = run.rows(10_000)
    X, y = peers.problem(n, 10)
    rows, targets = peers.as_dicts(X), y.tolist()
    _check_agreement(rows[:300], targets[:300])
    figures = []
    for with_dist, target in TARGETS.items():
        tasks = {
            name: partial(run_through, make, rows, targets, with_dist)
            for name, make in {"ours": ours, "river": RiverRegression}.items()
        }
        seconds = alternate(tasks, run.rounds)
        what = "mean and distribution" if with_dist else "mean"
        figures.append(
            Figure(
                f"p = 10, {what}",
                "river's own",
                seconds["ours"] / n * 1e6,
                seconds["river"] / n * 1e6,
                "us/row",
                "faster",
                target,
            )
        )
    return figures


def _check_agreement(rows: list[dict[str, float]], targets: list[float]) -> None:
    predictive = [
        loop(model, rows, targets, True).predict_one(rows[0], with_dist=True)
        for model in (ours(), RiverRegression())
    ]
    for one, other in (
        (predictive[0].mu, predictive[1].mu),
        (predictive[0].sigma, predictive[1].sigma),
    ):
        if abs(one - other) > 1e-8 * abs(other):
            raise RuntimeError(f"river solves another problem: {one} is not {other}")
