"""Check what users pass to a bandit before any state is touched."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, validate_data

from posterity.bandits.probability_best import Mask

Array = NDArray[np.float64]
Index = NDArray[np.intp]


def is_row(X: Any) -> bool:
    """Whether this is one context, not many."""
    kind = type(X)
    if kind is np.ndarray:
        return bool(X.ndim == 1)
    if kind is list or kind is tuple:
        return bool(X) and np.isscalar(X[0])
    return isinstance(X, Mapping) or getattr(X, "ndim", 2) == 1


def read_contexts(bandit: BaseEstimator, X: Any, *, learns: bool) -> Array:
    """Contexts (n, m), of one or of many rows; a bandit that learns takes their features over.

    Raises ``ValueError`` where features, or their names, are not those of the contexts before.
    """
    known = hasattr(bandit, "n_features_in_")
    reader = bandit if known or learns else copy.copy(bandit)
    if isinstance(X, Mapping):
        return _read_mapping(reader, X, reset=not known)
    if is_row(X):
        X = np.asarray(X, dtype=np.float64)[None]
    if known and isinstance(X, np.ndarray | Sequence):  # which has no names: none are asked for
        X = check_array(X, dtype=np.float64, order="C")
        if X.shape[1] != bandit.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} features, but contexts have had {bandit.n_features_in_}"
            )
        return np.asarray(X)
    return np.ascontiguousarray(validate_data(reader, X, reset=not known, dtype=np.float64))


def _read_mapping(reader: Any, x: Mapping[str, Any], *, reset: bool) -> Array:
    if reset:
        reader.n_features_in_ = len(x)
        reader.feature_names_in_ = np.array(list(x), dtype=object)
    names = getattr(reader, "feature_names_in_", None)
    if names is None:
        raise TypeError(
            "the context is a mapping of names, but contexts have come without names: give an "
            "array, or begin with names"
        )
    if set(names) != set(x):
        raise ValueError(
            f"the context has the features {', '.join(map(repr, x))}: expected "
            f"{', '.join(map(repr, names))}"
        )
    row = np.array([[x[name] for name in names]], dtype=np.float64)
    _refuse_not_finite(row)
    return row


def _refuse_not_finite(row: Array) -> None:
    if not np.isfinite(row).all():
        column = int(np.argmin(np.isfinite(row[0])))
        raise ValueError(f"the context is {row[0, column]} in column {column}: it must be finite")


def read_allowed(allowed: ArrayLike | None, n: int, is_open: NDArray[np.uint8]) -> Mask:
    """(n, K) arms that may be chosen: those that are allowed, and open (K,)."""
    count = len(is_open)
    mask = np.ones(count, dtype=bool) if allowed is None else np.asarray(allowed)
    if mask.dtype != bool or mask.shape not in ((count,), (n, count)):
        raise ValueError(
            f"allowed has shape {mask.shape} and type {mask.dtype}: give true or false for each of "
            f"{count} arms, or for each context and arm"
        )
    mask = np.broadcast_to(mask, (n, count)) & is_open.astype(bool)
    none = np.flatnonzero(~mask.any(axis=1))
    if len(none):
        raise ValueError(f"no arm is allowed in row {none[0]}: allow at least one")
    return mask


def as_numbers(rewards: ArrayLike) -> Array:
    """Rewards as floats, or a ``ValueError`` that says which is none."""
    try:
        return np.asarray(rewards, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"a reward is not a number: {error}") from error


def read_rewards(rewards: ArrayLike, n: int, arms: int, *, binary: bool) -> Array:
    """Rewards (n,), finite; 0 or 1 if ``binary``."""
    values = as_numbers(rewards)
    if values.shape != (n,) or arms != n:
        raise ValueError(
            f"there are {n} contexts, {arms} arms and rewards of shape {values.shape}: give one of "
            "each for each row"
        )
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise ValueError(f"the reward in row {bad[0]} is {values[bad[0]]}: it must be finite")
    if binary:
        bad = np.flatnonzero((values != 0.0) & (values != 1.0))
        if len(bad):
            raise ValueError(
                f"the reward in row {bad[0]} is {values[bad[0]]:g}, but the model is of yes and "
                "no: rewards must be 0 or 1, or another model is needed"
            )
    return values


def read_arms(arms: Any, known: Mapping[Any, int]) -> Index:
    """Places (n,) of arms."""
    names = arms.tolist() if isinstance(arms, np.ndarray) else list(arms)
    for row, name in enumerate(names):
        if not is_among(name, known):
            raise ValueError(
                f"the arm in row {row} is {name!r}: the arms are {list(known)}; add_arm adds one"
            )
    return np.array([known[name] for name in names], dtype=np.intp)


def is_among(name: Any, known: Mapping[Any, int]) -> bool:
    """Whether a name, which may be anything, is known."""
    try:
        return name in known
    except TypeError:  # a list, say, which has no hash
        return False


def as_labels(names: Sequence[Any]) -> NDArray[Any]:
    """(K,) names, as an array of their own type where there is one."""
    labels = np.empty(len(names), dtype=object)
    labels[:] = names
    plain = np.array(names) if len({type(name) for name in names}) == 1 else labels
    return plain if plain.ndim == 1 and plain.tolist() == list(names) else labels
