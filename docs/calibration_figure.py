"""Draw the figure of the page on calibration into docs/_static (needs POSTERITY_DATA)."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from posterity import BayesianLinearRegression
from posterity.calibration import Conformal

TARGET = Path(__file__).parent / "_static" / "california.png"
STRETCH = 500


def main() -> None:
    """Coverage of 95% intervals along the file, plain and wrapped."""
    path = Path(os.environ["POSTERITY_DATA"]) / "housing" / "california_sklearn_form.npz"
    with np.load(path) as file:
        X, y = file["X"], file["y"]
    model = BayesianLinearRegression(prior_precision=1.0, noise_precision=5.0, fit_intercept=False)
    figure = Figure(figsize=(9.0, 3.6), layout="constrained")
    ax = figure.subplots()
    drawn = ((model, "plain", "#d55e00", "--"), (Conformal(model), "Conformal", "#0072b2", "-"))
    for estimator, name, color, line in drawn:
        low, high = estimator.predict_then_learn(X, y).interval(0.95)
        held = (low <= y) & (y <= high)
        stretches = held[: len(y) // STRETCH * STRETCH].reshape(-1, STRETCH).mean(axis=1)
        label = f"{name}: {held.mean():.1%} of all rows"
        rows = STRETCH * (0.5 + np.arange(len(stretches)))
        ax.plot(rows, stretches, line, color=color, label=label)
    ax.axhline(0.95, color="black", linewidth=0.8)
    ax.set_ylim(0.4, 1.0)
    ax.set_xlabel("row, in file order")
    ax.set_ylabel(f"rows held, of {STRETCH}")
    ax.set_title("California housing: 95% intervals")
    ax.legend(loc="lower right")
    figure.savefig(TARGET, dpi=110)


if __name__ == "__main__":
    main()
