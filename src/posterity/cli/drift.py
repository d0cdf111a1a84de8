"""A world that changes: ways to forget, side by side on a line that turns into another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import click
import numpy as np

from posterity.aliases import Array
from posterity.cli import text
from posterity.cli.demo import write_png
from posterity.cli.outputs import check_place

CHANGE = (100, 150)  # rows between the first line and the second
ROWS = 250
DISCOUNTS = tuple(float(discount) for discount in np.round(np.arange(0.5, 0.995, 0.01), 2))


@dataclass(frozen=True)
class Trial:
    """Results of one strategy of forgetting: scores, and the absolute error of each row (n,)."""

    name: str
    mae: float
    log_score: float
    coverage: float
    errors: Array


def drift_stream() -> tuple[Array, Array]:
    """Rows [1, x] (250, 2) and targets (250,) of Halford's drifting line (2020).

    In between the share of the first line is (i - 100) / 50, as published: it jumps to 0 and grows.

    Examples
    --------
    >>> X, y = drift_stream()
    >>> X.shape, float(y[0].round(3))
    ((250, 2), -0.648)
    """
    random = np.random.RandomState(42)
    first, second = np.array([-0.3, 0.5]), np.array([1.0, -0.7])
    X, y = np.ones((ROWS, 2)), np.empty(ROWS)
    for i in range(ROWS):
        share = 1.0 if i < CHANGE[0] else (i - CHANGE[0]) / 50 if i < CHANGE[1] else 0.0
        X[i, 1] = random.uniform(-1.0, 1.0)
        y[i] = X[i] @ (share * first + (1.0 - share) * second) + random.normal(0.0, 0.2)
    return X, y


def run(output: str) -> None:
    """Compare, print the table, write the figure."""
    from posterity.plots.drift import plot_errors

    path = check_place(output)
    trials = list(compare(*drift_stream()))
    _print(trials)
    figure = plot_errors(
        {trial.name: trial.errors for trial in trials}, CHANGE, "A line turns into another"
    )
    write_png(figure, path, dpi=90)
    click.echo(f"\nErrors along time are drawn in {path}")


def compare(X: Array, y: Array) -> Iterator[Trial]:
    """Try each way to forget; of the fixed discounts, the one with the smallest error."""
    from posterity.forgetting import Adaptive, Smoothing, Stabilized

    yield _trial("no forgetting", None, X, y)
    yield _trial("Smoothing(0.8)", Smoothing(0.8), X, y)
    fixed = [_trial(f"Stabilized({d:g})", Stabilized(d), X, y) for d in DISCOUNTS]
    best = min(fixed, key=lambda trial: trial.mae)
    yield Trial(f"{best.name}, best in hindsight", *_scores(best))
    yield _trial("Adaptive()", Adaptive(), X, y)


def _scores(trial: Trial) -> tuple[float, float, float, Array]:
    return trial.mae, trial.log_score, trial.coverage, trial.errors


def _trial(name: str, forgetting: Any, X: Array, y: Array) -> Trial:
    """Predict each row before it is learned, with the published prior and noise."""
    from posterity import BayesianLinearRegression

    model = BayesianLinearRegression(
        prior_precision=0.5, noise_precision=25.0, fit_intercept=False, forgetting=forgetting
    )
    predictive = model.predict_then_learn(X, y)
    low, high = predictive.interval(0.95)
    errors = np.abs(y - predictive.mean())
    return Trial(
        name,
        float(np.mean(errors)),
        float(np.mean(predictive.logpdf(y))),
        float(np.mean((low <= y) & (y <= high))),
        errors,
    )


def _print(trials: list[Trial]) -> None:
    console = text.console()
    console.print(
        f"[bold]Drift: from row {CHANGE[0]} to {CHANGE[1]} of {ROWS} a line turns into another"
        "[/bold]"
    )
    console.print("Each row was predicted before it was learned.\n")
    table = text.table("way to forget", "mean error", "log score", "95% held")
    for trial in trials:
        held = f"{100 * trial.coverage:.1f}%"
        table.add_row(trial.name, f"{trial.mae:.5f}", f"{trial.log_score:.4f}", held)
    console.print(table)
    console.print(
        "\nmean error: mean absolute error. log score: mean log density of the targets, more is "
        "better.\n95% held: share of the targets inside their 95% intervals."
    )
