"""Many features: simulated clicks, each predicted before it was learned."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import click
import numpy as np
from scipy.special import expit

from posterity.aliases import Array, Figure
from posterity.cli import text
from posterity.cli.demo import write_png
from posterity.cli.outputs import check_place

MODEL = "diagonal model"
ROWS, STRETCH, BINS = 50_000, 2_500, 10
# Levels of each column, and the standard deviation of their effects on the log odds.
COLUMNS = {
    "device": (6, 0.5), "country": (60, 0.5), "hour": (24, 0.3), "ad": (500, 0.7),
    "site": (3_000, 0.6), "campaign": (40, 0.4), "word": (8_000, 0.4), "user": (40_000, 0.5),
}  # fmt: skip


def simulate_clicks(n: int, seed: int = 0) -> tuple[dict[str, Any], Array, Array]:
    """Columns of text (n,), clicks (n,) of 0 and 1, and their true probabilities (n,).

    Few levels are frequent and most are rare: a level's rank has density 1 / rank.

    Examples
    --------
    >>> columns, clicked, probability = simulate_clicks(100)
    >>> len(columns), clicked.shape, bool(probability.max() < 1.0)
    (8, (100,), True)
    """
    rng = np.random.default_rng(seed)
    eta, columns = np.full(n, -2.0), {}
    for name, (n_levels, spread) in COLUMNS.items():
        level = np.minimum((n_levels + 1.0) ** rng.random(n), n_levels).astype(int) - 1
        eta += spread * rng.normal(size=n_levels)[level]
        columns[name] = np.char.add(name[0], level.astype(str))
    probability = expit(eta)
    return columns, (rng.random(n) < probability).astype(int), probability


def run(output: str) -> None:
    """Predict, then learn, the clicks one after another; print the scores, write the figure."""
    import pyarrow as pa

    from posterity.plots._frame import require_matplotlib
    from posterity.sparse import DiagonalLogisticRegression

    path = check_place(output)
    require_matplotlib()
    columns, y, truth = simulate_clicks(ROWS)
    rows = pa.table(columns)
    model = DiagonalLogisticRegression()
    predicted = {
        "share of clicks so far": (np.cumsum(y) - y + 1.0) / (np.arange(len(y)) + 2.0),
        MODEL: model.predict_then_learn(rows, y).probabilities[:, 1],
        "true probability": truth,
    }
    _print(predicted, y, model.n_features_)
    write_png(_figure(predicted, y), path, dpi=160)
    click.echo(f"\nLog loss along time, and calibration, are drawn in {path}")


def _losses(probability: Array, y: Array) -> Array:
    return -np.log(np.where(y == 1, probability, 1.0 - probability))


def _by_probability(probability: Array, y: Array) -> tuple[Array, Array, Array]:
    """Mean probability and share of clicks (bins,), in bins of as many rows, and the rows."""
    order = np.argsort(probability, kind="stable")
    ends = np.linspace(0, len(y), BINS + 1).astype(int)
    parts = [order[low:high] for low, high in pairwise(ends)]
    means = [(probability[part].mean(), y[part].mean(), len(part)) for part in parts]
    return tuple(np.array(column) for column in zip(*means, strict=True))  # type: ignore[return-value]


def _print(predicted: dict[str, Array], y: Array, n_features: int) -> None:
    printed = text.table("model", "log loss", "in the last fifth", "calibration error")
    late = slice(len(y) * 4 // 5, None)
    for name, probability in predicted.items():
        losses = _losses(probability, y)
        mean, clicked, rows = _by_probability(probability, y)
        off = float(rows @ np.abs(mean - clicked) / len(y))
        printed.add_row(name, f"{losses.mean():.4f}", f"{losses[late].mean():.4f}", f"{off:.4f}")
    console = text.console()
    console.print(
        f"[bold]Clicks: {len(y):,} simulated views of pages, with {n_features:,} features"
        "[/bold]\n"
        f"Each was predicted before it was learned. {100 * y.mean():.1f}% were clicked.\n"
    )
    console.print(printed)


def _figure(predicted: dict[str, Array], y: Array) -> Figure:
    from posterity.plots._frame import COLOURS, MARKERS, figure_of, finish

    figure = figure_of(12.8, 6.4, "Clicks, each predicted before it was learned")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    ends = np.arange(STRETCH, len(y) + 1, STRETCH)
    for place, (name, probability) in enumerate(predicted.items()):
        losses = _losses(probability, y).reshape(-1, STRETCH).mean(axis=1)
        marker, colour = MARKERS[place], COLOURS[place]
        left.plot(ends, losses, marker=marker, color=colour, markersize=4, label=name)
        if name == MODEL:
            mean, clicked, rows = _by_probability(probability, y)
            spread = 2.0 * np.sqrt(clicked * (1.0 - clicked) / rows)
            right.errorbar(mean, clicked, spread, fmt=marker, color=colour, markersize=5)
    finish(left, f"Mean log loss of {STRETCH:,} views each", x="views so far", y="nats")
    limit = 1.1 * max(right.get_xlim()[1], right.get_ylim()[1])
    right.plot([0.0, limit], [0.0, limit], color="black", linewidth=1, linestyle="--")
    finish(right, "Do probabilities come true?", x="probability", y="share clicked, ± 2 std")
    return figure
