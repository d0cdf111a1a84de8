"""Targets in several columns: reading y (n, q), and the names of its columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from posterity.aliases import Array
from posterity.kernel.values import read_floats, read_scalar


def targets_of(model: BaseEstimator) -> tuple[int | None, list[str] | None]:
    """Number and names of a model's targets that came as columns; None where there are none."""
    names = getattr(model, "target_names_", None)
    return getattr(model, "n_targets_", None), None if names is None else names.tolist()


def has_columns(model: BaseEstimator, y: Any, *, reset: bool) -> bool:
    """Return True if ``y`` is (n, q) and the model takes several targets.

    A model that has learned a vector reads one column as it always did, with scikit-learn's
    warning.
    """
    if not getattr(model, "takes_targets", False):
        return False
    if hasattr(model, "n_targets_"):
        return True
    shape = np.asarray(y).shape
    return len(shape) == 2 and (reset or shape[1] > 1)


def read_targets(model: BaseEstimator, y: Any, *, reset: bool) -> Array:
    """``y`` (n, q) as floats; with ``reset`` the model takes number and names of its columns.

    Raises ``ValueError`` for text, and where they are not those that the model has learned.
    """
    shape = np.asarray(y).shape
    if len(shape) != 2:
        raise ValueError(
            f"y has shape {shape}, and the model has learned {model.n_targets_} targets: give a "
            f"column for each, (n, {model.n_targets_})"
        )
    names = [str(name) for name in y.columns] if hasattr(y, "columns") else None
    columns = np.ascontiguousarray(read_floats(y, "y"))
    count = columns.shape[1]
    if reset:
        set_targets(model, count, names)
    known, theirs = targets_of(model)
    if known is None and count > 1:
        raise ValueError(
            f"y has {count} columns, and the model has learned a single target: call fit to "
            "start again"
        )
    if known is not None and count != known:
        raise ValueError(
            f"y has {count} columns, and the model has learned {known} targets: give as many"
        )
    if names is not None and theirs is not None and theirs != names:
        raise ValueError(
            f"y has the columns {', '.join(map(repr, names))}; the model has learned the targets "
            f"{', '.join(map(repr, theirs))}: give them in this order"
        )
    return columns


def lacks_targets(model: BaseEstimator, y: Array) -> bool:
    """Return True if rows of ``y`` (n, q) lack some of several targets: they are NaN."""
    if getattr(model, "n_targets_", 1) <= 1 or not np.isnan(y.sum()):
        return False
    return bool(np.isnan(y).any())  # infinities of both signs sum to NaN, too


def check_targets_seen(model: BaseEstimator, y: Array) -> None:
    """Raise ``ValueError``, naming the first, where no row of ``y`` (n, q) brings a target."""
    never = np.flatnonzero(np.isnan(y).all(axis=0))
    if len(never):
        names = targets_of(model)[1]
        name = never[0] if names is None else repr(names[never[0]])
        raise ValueError(
            f"target {name} is NaN in all {len(y)} rows: leave it out, or use partial_fit, "
            "where its values may come later"
        )


def row_lacks_targets(model: BaseEstimator, y: Any) -> bool:
    """The same of the targets of one row."""
    return hasattr(model, "n_targets_") and lacks_targets(model, read_target_row(model, y))


def fill_missing_targets(model: BaseEstimator, y: Array) -> Array:
    """``y``, with 0 for targets that may be missing, or ends that may be infinite, and are."""
    if getattr(model, "_numbers_of_target", 1) > 1:
        return np.where(np.isinf(y), 0.0, y)
    return np.where(np.isnan(y), 0.0, y) if lacks_targets(model, y) else y


def set_targets(model: BaseEstimator, count: int, names: list[str] | None) -> None:
    """Let a model that has learned nothing take number and names of its targets."""
    if count < 1:
        raise ValueError("y has no columns: give at least one target")
    model.n_targets_ = count
    if names is not None:
        model.target_names_ = np.asarray(names, dtype=object)


def set_targets_of_row(model: BaseEstimator, y: Any) -> None:
    """The same from the targets of one row: a mapping of names, an array, or one number."""
    if isinstance(y, Mapping):
        set_targets(model, len(y), [str(name) for name in y])
    elif np.ndim(y) == 1:
        set_targets(model, len(y), None)


def read_target_row(model: BaseEstimator, y: Any) -> Array:
    """The targets of one row, a number, (q,) or a mapping of names, as (1, q)."""
    count, names = targets_of(model)
    if count is None:
        return np.array([[read_scalar(y, "y")]])
    if isinstance(y, Mapping):
        if names is None:
            raise TypeError(
                "y is a mapping of names, but the model learned from targets without names: pass "
                "an array, or learn from the start with named targets"
            )
        if set(y) != set(names):
            raise ValueError(
                f"y has the targets {', '.join(map(repr, y))}: the model has learned "
                f"{', '.join(map(repr, names))}"
            )
        y = [y[name] for name in names]
    row = read_floats(y, "y")
    if row.shape != (count,):
        raise ValueError(f"y has shape {row.shape}: expected ({count},), a value for each target")
    return row[None]


def target_row(model: BaseEstimator, values: Array) -> Any:
    """Return the prediction of one row: a number, (q,) or a mapping of names, as targets come."""
    if values.ndim == 0:
        return float(values)
    names = targets_of(model)[1]
    return values if names is None else dict(zip(names, values.tolist(), strict=True))


def check_same_targets(model: BaseEstimator, other: BaseEstimator) -> None:
    """Raise ``ValueError`` unless both models have the same targets in the same order."""
    (mine, names), (theirs, others) = targets_of(model), targets_of(other)
    if mine != theirs:
        counts = ["a single target" if one is None else f"{one} targets" for one in (theirs, mine)]
        raise ValueError(
            f"the other model has learned {counts[0]}, this one {counts[1]}: merge models with the "
            "same targets"
        )
    if names is not None and others is not None and names != others:
        raise ValueError(
            f"the other model's targets are {', '.join(map(repr, others))}; this one's are "
            f"{', '.join(map(repr, names))}"
        )


def refuse_several_targets(model: BaseEstimator, what: str) -> None:
    """Raise ``ValueError`` where a model has learned targets that came as columns."""
    count, _ = targets_of(model)
    if count is not None:
        raise ValueError(
            f"{what} needs a model of a single target, and this one has {count}: fit a model to "
            "each, y[:, j]"
        )
