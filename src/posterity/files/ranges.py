"""Checks of the numbers of an object, by the fields that they stand in.

What holds for all classes is said once: numbers are finite and their squares do not overflow, whole
numbers are not negative, and a field that is called a weight, a count or a scale has the sign of
one. The few that may be otherwise are named.
"""

from __future__ import annotations

import inspect
import typing
from functools import cache
from typing import Any, get_args

import numpy as np

from posterity.files.types import get_type_hints_of

# Sums of squares of all values that rows may have are below; what is positive is not so small that
# one divided by it is above.
LARGEST, SMALLEST = 1e200, 1e-200

# Fields, of one class or of any, that hold padding of the largest numbers, and those that may be
# infinite, or not known yet (NaN).
PADDED = frozenset({"TwoLevelWeights.members", "TwoLevelWeights.rates"})
NOT_FINITE = frozenset({
    "Baseline.largest_loss",
    "Choice.disagreement", "DiagonalPosterior.scores", "FactorizationPosterior.noise_shape",
    "Ledger.recent", "Ensemble.scores", "Ensemble.log_prior", "WarmStart.scale",
    "Panel.columns", "Panel.values", "Start.variance", "RareFeatureScales.low",
    "RareFeatureScales.high", "FactorizationPosterior.log_evidence", "Spread.df",
})  # fmt: skip
# Where one end of an interval may be infinite, or equal rows leave no noise.
INFINITE = frozenset({
    "Choice.log_evidence", "SkewedRows.y", "SparsePosterior.targets", "StartRows.y",
    "Truncated.high", "Truncated.low", "WindowRows.y",
})  # fmt: skip
SIGNED = frozenset({"phase", "ends"})
NOT_NEGATIVE = frozenset({
    "Choice.precisions", "Choice.ratios", "ContrastPrior.scale", "DiagonalPosterior.precision",
    "SkewedRows.precision",
    "agreed", "allowance", "core_square", "core_weight", "count", "counts", "decisions",
    "effective", "elapsed", "found", "freed", "information", "intercept_precision", "learned",
    "n_effective", "n_observations", "offset_variance", "probability", "rate", "residual",
    "row_weights", "seen", "square", "squares", "tails", "tolerance", "waiting",
    "weights",
})  # fmt: skip
POSITIVE = frozenset({
    "Choice.weights", "EvidencePosterior.shapes", "SkewedRows.weights", "_scales",
    "df", "dispersion", "discount", "gamma", "half_life", "known_precision", "memory",
    "most_nodes", "noise_precision", "noise_scale", "prior_precisions", "scale", "sd",
    "start", "steps", "temperature",
    "temperatures", "trust", "unit", "value", "width", "widened",
})  # fmt: skip
BETWEEN_0_AND_1 = frozenset({
    "AdaptedTails.levels", "TrackedTails.levels",
    "AsymmetricLaplaceNoise.quantile", "DoubleExponentialNoise.quantile",
})  # fmt: skip
# Sums of logarithms, which larger ones would leave no digits.
LARGEST_LOGARITHM = 1e15
# What a count may ask for: more is not used, and would take memory and time without end.
LARGEST_COUNTS = {
    "ByColumn.n_features_in_": 1_000_000, "ConformalForecaster.horizon": 10_000,
    "VectorAutoregression.lags": 1_000,
    "degree": 1_000, "difference": 100_000, "lags": 100_000, "max_runs": 1_000_000,
    "max_sweeps": 100_000, "memory": 10**9, "most_nodes": 1_000, "n_centers": 100_000,
    "n_draws": 100_000, "n_frequencies": 100_000, "n_functions": 1_000_000, "n_knots": 100_000,
    "powers_": 1_000, "rank": 1_000, "seasonality": 100_000,
}  # fmt: skip


def check_numbers(kind: type, name: str, values: dict[str, Any]) -> None:
    """Raise ``ValueError`` where a field holds a number that it can't."""
    hints = _get_hints(kind)
    for key, value in values.items():
        where = f"{name}.{key}"
        for one in _list_numbers(value, hints.get(key, Any)):
            problem = _find_problem(where, key, one)
            if problem:
                raise ValueError(f"{where} {problem}")


@cache
def _get_hints(kind: type) -> dict[str, Any]:
    """Types of attributes, and of the parameters that an estimator keeps."""
    start = inspect.getattr_static(kind, "__init__")
    try:
        parameters = typing.get_type_hints(start)
    except (TypeError, NameError):  # of a parent in another language, or for type checkers only
        parameters = {}
    return parameters | get_type_hints_of(kind)


def _list_numbers(value: object, hint: object) -> list[Any]:
    """All numbers and arrays of numbers in a field; none of names, which may be any."""
    if isinstance(value, np.ndarray):
        return [value] if value.dtype.kind in "fiu" and not _is_any(hint) else []
    if isinstance(value, bool | str) or value is None or hasattr(value, "_fields"):
        return []  # a named tuple is an object with checks of its own
    if _is_any(hint):
        return []
    if isinstance(value, list | tuple):
        inner = [one for one in get_args(hint) if one is not Ellipsis] or [hint]
        hints = inner if len(inner) == len(value) else [inner[-1]] * len(value)
        return [n for one, its in zip(value, hints, strict=True) for n in _list_numbers(one, its)]
    return [value] if isinstance(value, int | float | np.number) else []


def _is_any(hint: object) -> bool:
    return hint is Any or hint == np.ndarray[typing.Any, np.dtype[typing.Any]]


def _find_problem(where: str, key: str, value: object) -> str:
    """What is wrong with a number, or with one of an array; nothing where all are right."""
    numbers = np.asarray(value)
    if not NOT_FINITE.isdisjoint((where, key)):
        numbers = numbers[np.isfinite(numbers)]
    if where in INFINITE:
        numbers = numbers[~np.isinf(numbers)]
    whole = numbers.dtype.kind in "iu"
    positive = not POSITIVE.isdisjoint((key, where))
    if numbers.dtype == object:
        return f"is {value}, beyond all numbers"
    if not numbers.size:
        return ""
    low, high = numbers.min(), numbers.max()
    if positive and low < SMALLEST:
        return f"is {low}, and must be positive"
    if where in BETWEEN_0_AND_1 and not 0.0 < low <= high < 1.0:
        return "must lie between 0 and 1"
    if whole and key not in SIGNED and low < 0:
        return f"is {low}, and can't be negative"
    if whole:
        most = LARGEST_COUNTS.get(where, LARGEST_COUNTS.get(key, 2**63 - 1))
        return f"is {high}: at most {most:,} make sense" if high > most else ""
    if where in PADDED:
        return "" if np.isfinite(numbers).all() else "has a value that is not finite"
    if not (abs(low) <= LARGEST and abs(high) <= LARGEST):
        return "has a value that is not finite, or too large"
    if key.startswith("log_") and max(abs(low), abs(high)) > LARGEST_LOGARITHM:
        return f"is {high}, and no logarithm is so large"
    if not NOT_NEGATIVE.isdisjoint((key, where)) and low < 0.0:
        return f"is {low}, and can't be negative"
    return ""
