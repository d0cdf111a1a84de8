"""Take the keys of the rows out of what users pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import Array
from posterity.factor.grouped_rows import GroupedRows, check_together
from posterity.grouped.index import KeyIndex
from posterity.kernel.tables import find_table
from posterity.linear.inputs import read_rows
from posterity.linear.keys import Keys, key_of, read_keys, select_labels
from posterity.linear.offsets import RateOffsets

By = str | Sequence[str] | None

# The one group of rows that come without keys.
NO_KEY, NO_KIND = "all", ("none",)


@dataclass(frozen=True)
class Input:
    """Rows as arrays, and the keys of their groups; offsets are those of linear predictors."""

    X: Array
    y: Array
    weights: Array | None
    keys: Keys
    offsets: Array | None = None

    def check_usable(self) -> None:
        """Raise ``FloatingPointError`` when the values are not finite, or too large to square."""
        check_together(self.X, self.y, self.weights)

    def rows(self, index: KeyIndex, intercept: bool, *, new: bool = True) -> GroupedRows:
        """The rows with the places of their groups, which are made where they are new."""
        slots, numbers = index.places(self.keys, new=new), self.keys.numbers
        return GroupedRows(self.X, self.y, self.weights, intercept, numbers, slots, self.offsets)


def key_names(by: By) -> list[str]:
    """The names of the key columns."""
    if by is None:
        return []
    names: list[Any] = list(by) if isinstance(by, list | tuple) else [by]
    if not names or not all(isinstance(name, str) for name in names):
        raise TypeError(f"by is {by!r}: it must be the name of a column, or a list of names")
    return names


def split(X: Any, by: By, groups: Any, known: bool | None = None) -> tuple[Any, Keys]:
    """The features alone, and the keys of the rows.

    ``known`` says whether rows so far came with keys (None: there were none).
    """
    names, table = key_names(by), find_table(X)
    if table is not None:
        if names and groups is not None:
            raise ValueError(f"the keys are in the column {names[0]!r} already: leave groups out")
        if names:
            _check_columns(names, table.names)
            rest = table.select([name for name in table.names if name not in names])
            return rest, read_keys([X[name] for name in names], names)
    elif names and groups is None:
        raise ValueError(
            f"by is {by!r}, but X has no columns with names: give a data frame, or groups="
        )
    if groups is None:
        if known:
            raise ValueError(
                "earlier rows had keys: give groups= for these as well; a model with by='column' "
                "finds them in frames, as plots need it"
            )
        return X, Keys(np.zeros(_length(X), dtype=np.int32), [NO_KEY], NO_KIND)
    if isinstance(groups, str):
        raise ValueError(
            f"groups is the text {groups!r}: give the keys of the rows, as groups=X[{groups!r}], "
            f"or by={groups!r} to the model"
        )
    keys = _check_given(groups)
    if len(keys.numbers) != _length(X):
        raise ValueError(
            f"groups has {len(keys.numbers)} keys, but X has {_length(X)} rows: give one for each"
        )
    return X, keys


def split_one(
    x: ArrayLike | Mapping[str, float], by: By, group: Any, n_parts: int
) -> tuple[Any, Keys]:
    """The same for one row: of a mapping the keys may be a part."""
    names = key_names(by)
    x, group = separate_key(x, names, group)
    if group is None:
        if names:
            raise ValueError(f"by is {by!r}, but x has no names: give a mapping, or group=")
        return x, Keys(np.zeros(1, dtype=np.int32), [NO_KEY], NO_KIND)
    return x, key_of(group, max(n_parts, len(names)))


def separate_key(x: Any, names: list[str], group: Any) -> tuple[Any, Any]:
    """The features and the key of a row; a mapping may have both, of several names a tuple."""
    if group is not None or not names or not hasattr(x, "keys"):
        return x, group
    rest = dict(x)
    missing = [name for name in names if name not in rest]
    if missing:
        raise ValueError(f"x lacks the key {missing[0]!r}: give a value for each column of by")
    parts = [rest.pop(name) for name in names]
    return rest, parts[0] if len(parts) == 1 else tuple(parts)


def read(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: ArrayLike | None,
    keys: Keys,
    added: RateOffsets,
    *,
    reset: bool,
) -> Input:
    """Rows to learn, checked but for their values; those of weight 0 are left in."""
    features, target, weights = read_rows(model, X, y, sample_weight, reset=reset)
    columns = np.ascontiguousarray(model._columns(features))
    offsets = read_offsets(model, added, len(columns))
    return Input(columns, target[:, 0], weights, keys, offsets)


def read_offsets(model: Any, added: RateOffsets, n: int) -> Array | None:
    """What is added to the linear predictors of rows (n,), where the likelihood has such."""
    likelihood = model._likelihood()
    if added.offset is not None and likelihood is None:
        raise ValueError(
            "offset is of linear predictors under a likelihood, as of counts: give "
            'likelihood="poisson" to the model, or subtract it from y'
        )
    if added.exposure is not None and getattr(likelihood, "ratio", "") != "rate_ratio":
        raise ValueError(
            'exposure is of counts: give likelihood="poisson" to the model, or leave it out'
        )
    return added.read(n)


def drop_weightless_rows(given: Input) -> Input:
    """The rows that weigh something: only they make a group."""
    if given.weights is None or given.weights.all():
        return given
    some = given.weights > 0.0
    left = given.keys.numbers[some]
    used = np.unique(left)
    place = np.zeros(len(given.keys.labels), dtype=np.int32)
    place[used] = np.arange(len(used))
    keys = Keys(place[left], select_labels(given.keys.labels, used), given.keys.kinds)
    offsets = None if given.offsets is None else given.offsets[some]
    return Input(given.X[some], given.y[some], given.weights[some], keys, offsets)


def _check_given(groups: Any) -> Keys:
    table = find_table(groups)
    if table is not None:
        return read_keys(table.columns, list(map(str, table.names)))
    if isinstance(groups, np.ndarray) and groups.ndim == 2:
        columns = list(groups.T)
        return read_keys(columns, [f"column {i} of groups" for i in range(len(columns))])
    if not hasattr(groups, "dtype") and not hasattr(groups, "type"):  # as columns have
        groups = list(groups)
    tuples = isinstance(groups, list) and groups and isinstance(groups[0], tuple)
    if tuples and all(isinstance(g, tuple) and len(g) == len(groups[0]) for g in groups):
        columns = [list(part) for part in zip(*groups, strict=True)]
        return read_keys(columns, [f"part {i} of groups" for i in range(len(columns))])
    return read_keys([groups], ["groups"])


def _check_columns(names: list[str], known: list[Any]) -> None:
    for name in names:
        if name not in known:
            raise ValueError(
                f"X has no column {name!r} to group by: name one of {', '.join(map(repr, known))}"
            )


def _length(X: Any) -> int:
    if hasattr(X, "shape"):
        return int(X.shape[0]) if X.shape else 0
    return len(X) if hasattr(X, "__len__") else len(np.asarray(X))
