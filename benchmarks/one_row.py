"""Distributions of single rows, and scores of counts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import peers
from timing import Figure, Run, alternate

from posterity import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegression,
)
from posterity.calibration import Conformal
from posterity.evaluation import progressive_validation

NAME = "one_row"
TITLE = "Distributions of one row, and counts scored"
HOW = """\
`predict_distribution_one` and `predict_interval_one` of a dict of five numbers, after 500 rows; the
peer is the same of a data frame of one row. Counts: progressive validation of a Poisson regression
of ten features, its CRPS included, beside that of a linear one."""

CALLS = 200


def measure(run: Run) -> list[Figure]:
    return [*_calls(run), *_counts(run)]


def _calls(run: Run) -> list[Figure]:
    X, y = peers.problem(500, 5)
    frame = pd.DataFrame(X, columns=list("abcde"))
    row: dict[str, float] = frame.iloc[0].to_dict()
    models: dict[str, Any] = {
        "prior learned": BayesianLinearRegression().fit(frame, y),
        "prior given": BayesianLinearRegression(prior_precision=1.0).fit(frame, y),
        "labels": BayesianLogisticRegression().fit(frame, y > 0.0),
        "conformal": Conformal(BayesianLinearRegression()).fit(frame, y),
    }
    tasks: dict[str, Callable[[], object]] = {}
    for name, model in models.items():
        for what in ("distribution", "interval"):
            one, many = (getattr(model, f"predict_{what}{end}") for end in ("_one", ""))
            tasks[f"{what}, {name}"] = partial(_repeat, one, row)
            tasks[f"{what}, {name}, frame"] = partial(_repeat_frame, many, row)
    seconds = alternate(tasks, run.rounds)
    return [
        Figure(
            name,
            "a frame of one row",
            seconds[name] / CALLS * 1e6,
            seconds[f"{name}, frame"] / CALLS * 1e6,
            "us/row",
            "faster",
        )
        for name in tasks
        if not name.endswith("frame")
    ]


def _repeat(call: Callable[..., object], row: dict[str, float]) -> None:
    for _ in range(CALLS):
        call(row)


def _repeat_frame(call: Callable[..., object], row: dict[str, float]) -> None:
    for _ in range(CALLS):
        call(pd.DataFrame([row]))


def _counts(run: Run) -> list[Figure]:
    X, y = peers.problem(run.rows(20_000), 10)
    counts = np.random.default_rng(0).poisson(np.exp(np.clip(0.3 * y / y.std(), -3.0, 3.0)))
    seconds = alternate(
        {
            "poisson": lambda: progressive_validation(BayesianPoissonRegression(), X, counts),
            "linear": lambda: progressive_validation(BayesianLinearRegression(), X, counts),
        },
        run.rounds,
    )
    ours, linear = (seconds[name] / len(X) * 1e6 for name in ("poisson", "linear"))
    return [Figure("counts scored", "linear", ours, linear, "us/row", "within")]
