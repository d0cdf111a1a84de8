"""Check what users pass to a bandit before any state is touched."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, validate_data

from posterity.aliases import AnyArray, Array, Indices, Mask
from posterity.bandits.decisions import Decision, Decisions
from posterity.bandits.roster import Roster, is_among
from posterity.kernel.tables import find_table
from posterity.kernel.values import read_float, read_floats
from posterity.linear.inputs import name_text_column
from posterity.linear.named import get_feature_names, has_learned

# Contexts are read so; values that are not finite are named by us.
FLOATS: dict[str, Any] = {"dtype": np.float64, "order": "C", "ensure_all_finite": False}


def is_row(X: Any) -> bool:
    """Return True for one context, False for many."""
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
    known = has_learned(bandit)
    if type(X) is np.ndarray and X.ndim == 1:
        X = X[None]
    if known and _are_clean(X, bandit.n_features_in_):
        return np.asarray(X)
    sized = is_row(X) or isinstance(X, Sequence)
    if X is None or (sized and not len(X)) or getattr(X, "shape", ())[-1:] == (0,):
        raise ValueError(
            "the context has no features: if there are none, give every context the same "
            "number, as in [1.0]"
        )
    reader = bandit if known or learns else copy.copy(bandit)
    if isinstance(X, Mapping) or _has_labels(X):
        return _read_mappings(reader, [X], reset=not known)
    if isinstance(X, list | tuple) and X and (isinstance(X[0], Mapping) or _has_labels(X[0])):
        return _read_mappings(reader, X, reset=not known)
    _refuse_text(X)
    if is_row(X):
        X = [X]
    if known and isinstance(X, np.ndarray | Sequence):  # which has no names: none are asked for
        X = _read_numbers(X, lambda: check_array(X, **FLOATS))
        if X.shape[1] != bandit.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} features, but earlier contexts had "
                f"{bandit.n_features_in_}: give the same features"
            )
        return np.asarray(X)
    X = _in_order(X, get_feature_names(bandit))
    return _read_numbers(X, lambda: validate_data(reader, X, reset=not known, **FLOATS))


def _refuse_text(X: Any) -> None:
    if isinstance(X, str):
        raise TypeError(f"the context is the text {X!r}: give numbers, or a mapping of names")


def _read_numbers(X: Any, read: Callable[[], Any]) -> Array:
    """Contexts (n, m) as scikit-learn reads them; what is no number, or not finite, is named."""
    try:
        contexts = np.asarray(read())
    except OverflowError:
        contexts = read_floats(X, "the context")
    except (TypeError, ValueError) as error:
        name_text_column(X, error)
        raise
    _refuse_not_finite(contexts)
    return contexts


def _are_clean(X: Any, m: int) -> bool:
    """Return True if these rows need neither conversion nor a message."""
    return (
        type(X) is np.ndarray
        and X.dtype == np.float64
        and X.ndim == 2
        and X.flags.c_contiguous
        and X.shape[0] > 0
        and X.shape[1] == m
        and bool(np.isfinite(X).all())
    )


def _has_labels(X: Any) -> bool:
    """Return True for one row with names, such as a pandas series."""
    return (
        is_row(X) and hasattr(X, "keys") and all(isinstance(name, str) for name in list(X.keys()))
    )


def _in_order(X: Any, names: AnyArray | None) -> Any:
    """A table whose columns have these names, in this order; any other as it is."""
    table = find_table(X)
    if names is None or table is None or len(table.names) != len(names):
        return X
    return table.select(list(names)) if set(table.names) == set(names) else X


def _read_mappings(reader: Any, rows: Sequence[Any], *, reset: bool) -> Array:
    """Contexts (n, m) of mappings from names to values; the first one's order is kept."""
    if reset:
        reader.n_features_in_ = len(rows[0])
        reader.feature_names_in_ = np.array(list(rows[0].keys()), dtype=object)
    return np.concatenate([_read_mapping(reader, x) for x in rows])


def _read_mapping(reader: Any, x: Any) -> Array:
    names = get_feature_names(reader)
    if names is None:
        raise TypeError(
            "the context is a mapping of names, but earlier contexts had no names: give an "
            "array, or use names from the start"
        )
    if set(names) != set(x.keys()):
        raise ValueError(
            f"the context has the features {', '.join(map(repr, x.keys()))}: expected "
            f"{', '.join(map(repr, names))}"
        )
    row = np.array([[_as_number(name, x[name]) for name in names]])
    _refuse_not_finite(row)
    return row


def _as_number(name: str, value: Any) -> float:
    try:
        return read_float(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"the context's feature {name!r} is {value!r}, which is not a number: encode "
            "categories as a number for each of their values, 0 or 1"
        ) from None


def _refuse_not_finite(contexts: Array) -> None:
    bad = np.argwhere(~np.isfinite(contexts))
    if len(bad):
        row, column = bad[0]
        where = f"column {column}" if len(contexts) == 1 else f"row {row}, column {column}"
        raise ValueError(
            f"the context is {contexts[row, column]} in {where}: it must be finite; leave the row "
            "out, or fill the value in"
        )


def read_allowed(allowed: Any, n: int, roster: Roster) -> Mask:
    """(n, K) arms that may be chosen: those that are allowed, and have not retired.

    Allowed are given as true or false for each arm, or by their names; for all contexts, or for
    each of them.
    """
    if allowed is None:
        return np.repeat(roster.open.view(bool)[None], n, axis=0)
    count, mask = len(roster), _convert_to_mask(allowed, n, roster.places)
    if mask.dtype != bool or mask.shape not in ((count,), (n, count)):
        raise ValueError(
            f"allowed has shape {mask.shape} and type {mask.dtype}: give true or false for each of "
            f"{count} arms, or for each context and arm; or the names of arms, which are "
            f"{list(roster.names)}"
        )
    mask = np.broadcast_to(mask, (n, count)) & roster.open.astype(bool)
    none = np.flatnonzero(~mask.any(axis=1))
    if len(none):
        raise ValueError(f"no arm is allowed in row {none[0]}: allow at least one")
    return mask


def check_ranking_length(k: Any, mask: Mask) -> None:
    """Refuse a length ``k`` of rankings that no context, or not each, has arms for."""
    if k is None:
        return
    if isinstance(k, bool) or not isinstance(k, int | np.integer):
        raise TypeError(f"k is {k!r}: it must be an integer, the length of a ranking")
    if not 1 <= k <= int(mask.sum(axis=1).min()):
        raise ValueError(f"k is {k}: it must be at least 1, and at most the number of allowed arms")


def _convert_to_mask(allowed: Any, n: int, places: Mapping[Any, int]) -> AnyArray:
    """Convert truth values, or names of arms, to a mask (K,) or (n, K)."""
    if type(allowed) is np.ndarray and allowed.dtype == bool:
        return allowed
    if isinstance(allowed, str) or is_among(allowed, places):
        return _find_named_arms([allowed], places)
    given = list(allowed) if isinstance(allowed, set | frozenset | Sequence) else allowed
    try:
        values = np.asarray(given)
    except ValueError:  # rows of several lengths, as names have
        values = np.empty(0, dtype=object)
    count = len(places)
    flags = values.shape in ((count,), (n, count)) and np.isin(values, (0, 1)).all()
    if flags or values.dtype == bool or not isinstance(given, list | np.ndarray):
        return values
    if len(given) and not any(isinstance(one, str) or is_among(one, places) for one in given):
        return np.stack([_find_named_arms(row, places) for row in given])
    return _find_named_arms(given, places)


def _find_named_arms(names: Any, places: Mapping[Any, int]) -> AnyArray:
    """(K,) whether each arm is among these names."""
    mask = np.zeros(len(places), dtype=bool)
    for name in names.tolist() if isinstance(names, np.ndarray) else names:
        if not is_among(name, places):
            raise ValueError(
                f"allowed has {name!r}, which is not an arm: use these names, {list(places)}"
            )
        mask[places[name]] = True
    return mask


def as_numbers(rewards: ArrayLike) -> Array:
    """Convert rewards to floats; a ``ValueError`` names one that is not a number."""
    try:
        return read_floats(rewards, "rewards")
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"a reward is not a number: {error}; write yes and no as 1 and 0"
        ) from error


def read_reward(reward: Any, *, binary: bool = False) -> None:
    """Refuse one reward that is not finite, or neither 0 nor 1 if ``binary``."""
    if type(reward) is float and reward in (0.0, 1.0):
        return
    value = as_numbers(reward)
    if value.ndim or not np.isfinite(value):
        raise ValueError(f"the reward is {reward!r}: it must be a finite number")
    if binary and value not in (0.0, 1.0):
        raise ValueError(
            f"the reward is {value:g}, but the model is for rewards of 0 and 1: give 0 or 1, or "
            "use another model"
        )


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
                f"the reward in row {bad[0]} is {values[bad[0]]:g}, but the model is for "
                "rewards of 0 and 1: give 0 or 1, or use another model"
            )
    return values


def read_correction(
    X: Any, arms: Any, former: ArrayLike, rewards: ArrayLike
) -> tuple[list[Any], Array, Array]:
    """Names of arms, former and corrected rewards, one of each for each context; NaN is none."""
    _refuse_text(X)
    names, before, after = list(arms), as_numbers(former), as_numbers(rewards)
    n = len(X)
    if len(names) != n or before.shape != (n,) or after.shape != (n,):
        raise ValueError(
            f"there are {n} contexts, {len(names)} arms, former rewards of shape {before.shape} "
            f"and rewards of shape {after.shape}: give one of each for each row"
        )
    return names, before, after


def read_arms(arms: Any, known: Mapping[Any, int], n: int | None = None) -> Indices:
    """Return the places (n,) of arms; one name stands for all of ``n`` rows."""
    if n is not None and is_among(arms, known):
        return np.full(n, known[arms], dtype=np.intp)
    names = arms.tolist() if isinstance(arms, np.ndarray) else list(arms)
    for row, name in enumerate(names):
        if not is_among(name, known):
            raise ValueError(
                f"the arm in row {row} is {name!r}: the arms are {list(known)}; add_arm adds one"
            )
    return np.array([known[name] for name in names], dtype=np.intp)


def read_decided(X: Any, arms: Any, rewards: Any) -> tuple[Any, Any, Any]:
    """Contexts, arms and rewards, of which the first two may be those of decisions.

    Of one context, arm and reward are single ones; a ranking has a reward for each of its places.
    """
    if isinstance(X, Decision | Decisions):
        X, arms, rewards = _read_decisions(X, arms if rewards is None else rewards)
    if rewards is None:
        raise TypeError(
            "rewards are missing: give contexts, arms and rewards, or decisions and rewards"
        )
    return X, arms, rewards if not is_row(X) or np.ndim(rewards) else [rewards]


def _read_decisions(made: Decision | Decisions, rewards: Any) -> tuple[Any, Any, Any]:
    """Rows of decisions; one for each place of rankings."""
    _, X, arms, places = made._columns
    if rewards is None:
        return X, arms, None
    earned = as_numbers(rewards) if isinstance(made, Decisions) else as_numbers(rewards)[None]
    if places.ndim == 1:
        return X, arms, earned
    if earned.shape != places.shape:
        raise ValueError(
            f"rewards have shape {np.shape(rewards)}: give one for each of {places.shape[1]} "
            "places of a ranking"
        )
    names = [name for ranking in arms for name in ranking]
    return [x for x in X for _ in range(places.shape[1])], names, earned.ravel()
