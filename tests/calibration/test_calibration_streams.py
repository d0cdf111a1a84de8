"""Public streams: intervals of plain models fail on them, those of wrapped ones hold."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from posterity import BayesianLinearRegression
from posterity.calibration import Conformal

Array = NDArray[np.float64]
Stream = tuple[BayesianLinearRegression, Array, Array]


def table(path: Path, target: str, left_out: set[str]) -> tuple[Array, Array]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    columns = [name for name in rows[0] if name != target and name not in left_out]
    X = np.array([[float(row[name]) for name in columns] for row in rows])
    return X, np.array([float(row[target]) for row in rows])


def california(folder: Path) -> tuple[Array, Array]:
    with np.load(folder / "housing" / "california_sklearn_form.npz") as file:
        return file["X"], file["y"]


def as_in_the_source(folder: Path) -> Stream:
    model = BayesianLinearRegression(prior_precision=1.0, noise_precision=5.0, fit_intercept=False)
    return model, *california(folder)


def with_defaults(folder: Path) -> Stream:
    return BayesianLinearRegression(), *california(folder)


def bikes(folder: Path) -> Stream:
    left_out = {"instant", "dteday", "casual", "registered"}
    path = folder / "streams" / "bike-sharing-hour.csv"
    return BayesianLinearRegression(), *table(path, "cnt", left_out)


def prices(folder: Path) -> Stream:
    path = folder / "streams" / "elec2.csv"
    return BayesianLinearRegression(), *table(path, "nswprice", {"class"})


def passengers(folder: Path) -> Stream:
    _, y = table(folder / "streams" / "airline-passengers.csv", "passengers", {"month"})
    return BayesianLinearRegression(), np.stack([y[11:-1], y[:-12]], axis=1), y[12:]


def approval(folder: Path) -> Stream:
    path = folder / "streams" / "trump_approval.csv"
    return BayesianLinearRegression(), *table(path, "five_thirty_eight", set())


def figures(predictive: object, y: Array) -> tuple[float, Array, Array, Array]:
    """Coverage, coverage of stretches of 1,000 rows, low, high."""
    low, high = predictive.interval(0.95)  # type: ignore[attr-defined]
    held = (low <= y) & (y <= high)
    stretches = held[: len(y) // 1000 * 1000].reshape(-1, 1000).mean(axis=1)
    return float(held.mean()), stretches, low, high


# What the plain model covers, and how much narrower than constant ones intervals must be.
CASES: dict[str, tuple[Callable[[Path], Stream], float, float]] = {
    "California, as in the source": (as_in_the_source, 0.819, 0.95),
    "California, defaults": (with_defaults, 0.934, 0.95),
    "bikes": (bikes, 0.894, 0.95),
    "prices": (prices, 0.984, 0.95),
    "passengers": (passengers, 0.886, 1.11),
    "approval": (approval, 0.943, 1.00),
}


@pytest.mark.parametrize("case", CASES)
def test_intervals_hold(case: str, data_folder: Path, report: Callable[[str], None]) -> None:
    stream, unwrapped, narrower = CASES[case]
    model, X, y = stream(data_folder)
    plain, _, _, _ = figures(model.predict_then_learn(X, y), y)
    assert plain == pytest.approx(unwrapped, abs=0.001)
    predictive = Conformal(model).predict_then_learn(X, y)
    coverage, stretches, low, high = figures(predictive, y)
    assert abs(coverage - 0.95) <= 0.0031
    assert (np.abs(stretches - 0.95) <= 0.02).all()
    infinite = np.isinf(high - low)
    assert infinite.sum() == (0 if case.endswith("source") else 2)  # flat: nothing is known yet
    assert not infinite[2:].any()
    # Constant quantiles of the errors, in hindsight; the two rows after the flat ones left out.
    settled = slice(4, None)
    errors, widths = (y - predictive.mean())[settled], (high - low)[settled]
    constant = np.diff(np.quantile(errors, [0.025, 0.975]))[0]
    assert widths.mean() <= narrower * constant
    report(
        f"{case}: 95% intervals cover {plain:.4f}, wrapped {coverage:.4f}, stretches of 1,000 rows "
        f"{stretches.min():.3f} to {stretches.max():.3f}, width {widths.mean() / constant:.3f}"
        if len(stretches)
        else f"{case}: 95% intervals cover {plain:.4f}, wrapped {coverage:.4f}"
    )
