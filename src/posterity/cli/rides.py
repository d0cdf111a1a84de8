"""A first look: taxi fares, predicted one at a time, with intervals that hold."""

from __future__ import annotations

import gzip

import click
import numpy as np

from posterity.aliases import Array, Figure
from posterity.cli import text
from posterity.cli.demo import write_png
from posterity.cli.outputs import check_place
from posterity.datasets import rides_file
from posterity.files.writing import replace_atomically

LEVEL = 0.95
SHOWN = 48
STRETCH = 200


def run(output: str, data: str | None) -> None:
    """Predict, then learn, the rides one after another; print the scores, write the figure."""
    from posterity import BayesianLinearRegression, BayesianRobustRegression
    from posterity.calibration import Conformal
    from posterity.io import open_table
    from posterity.plots._frame import require_matplotlib

    path = check_place(output)
    require_matplotlib()
    if data is not None:
        _write_data(data)
    table = open_table(rides_file(), target="fare", dates="calendar", missing="level")
    batches = list(table)
    X = np.vstack([batch[0] for batch in batches])
    y = np.concatenate([np.ravel(batch[1]) for batch in batches])
    models = {
        "linear": BayesianLinearRegression(),
        "robust": BayesianRobustRegression(),
        "robust, conformal": Conformal(BayesianRobustRegression()),
    }
    printed = text.table("model", "mean error", "inside 95%", "median width")
    for name, model in models.items():
        predicted = model.predict_then_learn(X, y)  # type: ignore[attr-defined]
        low, high = predicted.interval(LEVEL)
        error = np.abs(y - predicted.mean()).mean()
        held = np.mean((low <= y) & (y <= high))
        width = float(np.median(high - low))
        printed.add_row(name, f"{error:.3f}", f"{100 * held:.1f}%", f"{width:.2f}")
    console = text.console()
    console.print(
        f"[bold]Taxi fares: {len(y):,} simulated rides in the order of time, "
        f"from {X.shape[1]} features[/bold]\n"
        "Each was predicted before it was learned. A few fares are wrong on purpose: they make the "
        "intervals\nof the linear model too wide, and hardly touch those of the robust one.\n"
    )
    console.print(printed)
    write_png(_figure(y, low, high, np.asarray(predicted.median())), path, dpi=160)
    click.echo(f"\nThe last {SHOWN} rides, and how often intervals held, are drawn in {path}")


def _write_data(data: str) -> None:
    path = check_place(data, "--data")
    with gzip.open(rides_file()) as packed, replace_atomically(path) as file:
        file.write(packed.read())
    click.echo(f"The rides are in {path}: try posterity evaluate {path} --target fare "
               "--dates calendar --missing level\n")  # fmt: skip


def _figure(y: Array, low: Array, high: Array, predicted: Array) -> Figure:
    from posterity.plots._frame import COLOURS, figure_of, finish

    inside = (low <= y) & (y <= high)
    held = f"{100 * inside.mean():.1f}% of {len(y):,} lay in their 95% interval"
    figure = figure_of(12.8, 7.2, f"Taxi fares, each predicted before it was paid: {held}")
    left, right = figure.subplots(1, 2, width_ratios=(2, 1))
    last = slice(len(y) - SHOWN, None)
    places = np.arange(SHOWN)
    left.vlines(places, low[last], high[last], color=COLOURS[5], linewidth=6, alpha=0.5,
                label="95% interval")  # fmt: skip
    left.plot(places, predicted[last], "_", color=COLOURS[0], markersize=9, label="predicted")
    for here, colour, label in ((inside, "black", "paid"), (~inside, COLOURS[1], "paid, outside")):
        left.plot(places[here[last]], y[last][here[last]], "o", color=colour, markersize=5,
                  label=label)  # fmt: skip
    finish(left, f"The last {SHOWN} rides", x="ride", y="fare", columns=2)
    ends = np.arange(STRETCH, len(y) + 1, STRETCH)
    shares = [100 * inside[end - STRETCH : end].mean() for end in ends]
    spread = 100 * 2.0 * np.sqrt(LEVEL * (1 - LEVEL) / STRETCH)
    right.axhspan(100 * LEVEL - spread, min(100 * LEVEL + spread, 100), color="0.92",
                  label="where chance leaves 95%")  # fmt: skip
    right.axhline(100 * LEVEL, color="black", linewidth=1, linestyle="--")
    right.plot(ends, shares, "o-", color=COLOURS[0], label=f"of {STRETCH} rides each")
    right.set_ylim(86, 100)
    right.margins(x=0.03)
    finish(right, "Fares inside their interval, %", x="rides so far", y="")
    right.legend(frameon=False, loc="lower right", fontsize=9)
    return figure
