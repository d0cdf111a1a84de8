"""Verdicts on models and streams: comparisons of equal models, and alarms of drift."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.signal import lfilter

from guarantees.check import Check
from posterity import BayesianLinearRegression
from posterity.evaluation import compare_predictions, progressive_validation

Array = np.ndarray


def _correlated(rng: np.random.Generator, n: int, correlation: float, count: int = 1) -> Array:
    """(n, count) autoregressions of variance 1."""
    steps = np.sqrt(1.0 - correlation**2) * rng.normal(size=(n + 500, count))
    return lfilter([1.0], [1.0, -correlation], steps, axis=0)[500:]


def _draw_garch(rng: np.random.Generator, n: int) -> Array:
    errors, variance = np.zeros(n), 1.0
    for row in range(n):
        errors[row] = np.sqrt(variance) * rng.normal()
        variance = 0.1 + 0.1 * errors[row] ** 2 + 0.8 * variance
    return errors


NOISES: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "independent errors": lambda rng, n: rng.normal(size=n),
    "errors that correlate by .7": lambda rng, n: _correlated(rng, n, 0.7)[:, 0],
    "errors that correlate by .9": lambda rng, n: _correlated(rng, n, 0.9)[:, 0],
    "Student-t errors, 3 degrees of freedom": lambda rng, n: rng.standard_t(3.0, size=n),
    "Student-t errors, 2.2 degrees of freedom": lambda rng, n: rng.standard_t(2.2, size=n),
    "log-normal errors": lambda rng, n: rng.lognormal(size=n) - np.exp(0.5),
    "errors whose variance wanders": _draw_garch,
    "2% outliers of 10 sds": lambda rng, n: (
        rng.normal(size=n) * np.where(rng.random(n) < 0.02, 10.0, 1.0)
    ),
}


def agrees(rng: np.random.Generator, *, correlation: float, n: int, noise: str) -> tuple[int, int]:
    """Count if two models, each of which has one of two exchangeable columns, do not differ."""
    X = _correlated(rng, n, correlation, 2)
    y = X.sum(axis=1) + NOISES[noise](rng, n)
    models = [BayesianLinearRegression(prior_precision=p) for p in ([1.0, 1e8], [1e8, 1.0])]
    found = compare_predictions(models, X, y)
    return int(found.between(*found.names).p_value >= 0.05), 1


def _has_drift(X: Array, y: Array) -> bool:
    return bool(progressive_validation(BayesianLinearRegression(), X, y).drift_periods())


def is_silent(rng: np.random.Generator, *, n: int, noise: str) -> tuple[int, int]:
    """Count if no drift is found in a stream of constant coefficients."""
    X = rng.normal(size=(n, 2))
    return int(not _has_drift(X, X.sum(axis=1) + NOISES[noise](rng, n))), 1


def is_found(
    rng: np.random.Generator, *, n: int, noise: str, slope: float = 0.0, noisier: float = 1.0
) -> tuple[int, int]:
    """Count if drift is found where a slope or the noise changes halfway and stays."""
    X, late = rng.normal(size=(n, 2)), np.arange(n) >= n // 2
    errors = NOISES[noise](rng, n) * np.where(late, noisier, 1.0)
    return int(_has_drift(X, X.sum(axis=1) + slope * late * X[:, 0] + errors)), 1


def checks() -> list[Check]:
    """Comparisons by correlation of features and rows; alarms by kinds of errors."""
    compared = [
        Check(
            "Comparisons of equal models: p-values of .05 and more",
            f"features that correlate by {correlation:g} from row to row, {n:,} rows, {noise}",
            0.95,
            partial(agrees, correlation=correlation, n=n, noise=noise),
            replicates=200,
            lowest=0.91,
            highest=0.98,
        )
        for correlation, n, noise in [
            *(
                (c, n, "independent errors")
                for c in (0.0, 0.8, 0.95, 0.99)
                for n in (50, 300, 2000)
            ),
            (0.0, 300, "Student-t errors, 3 degrees of freedom"),
            (0.9, 300, "errors that correlate by .9"),
        ]
    ]
    silent = [
        Check(
            "Streams without drift: no alarm",
            f"{n:,} rows, {noise}",
            0.95,
            partial(is_silent, n=n, noise=noise),
            replicates=200,
            lowest=0.92,
        )
        for noise in NOISES
        for n in (1000, 5000)
    ]
    found = [
        Check(
            "Streams with a change that stays, halfway: found",
            f"{n:,} rows, {noise}, {change}",
            0.8,
            partial(is_found, n=n, noise=noise, slope=slope, noisier=noisier),
            replicates=100,
            lowest=lowest,
        )
        for n, noise, change, slope, noisier, lowest in [
            (1000, "independent errors", "a slope by one noise sd", 1.0, 1.0, 0.7),
            (1000, "independent errors", "a slope by two noise sds", 2.0, 1.0, 0.95),
            (1000, "errors that correlate by .7", "a slope by one noise sd", 1.0, 1.0, 0.45),
            (1000, "independent errors", "noise by a half", 0.0, 1.5, 0.95),
            (5000, "independent errors", "noise by a tenth", 0.0, 1.1, 0.8),
        ]
    ]
    return compared + silent + found
