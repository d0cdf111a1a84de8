"""Policies for missing values, which leave out rows or fill in values, and count them."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Self

import numpy as np

from posterity.aliases import Array, Mask
from posterity.factor.usable import LARGEST
from posterity.io.errors import Cure, TableError
from posterity.kernel.values import is_word

Place = Callable[[int, int], str]
WAYS = ("error", "skip", "mean", "level")
# What to do about a missing value.
LEAVE_OUT = Cure("use {} to leave such rows out", {"missing": "skip"})
MEAN = Cure("{} to fill in the mean so far", {"missing": "mean"})
LEVEL = Cure("{} to make missing text a level of its own", {"missing": "level"})


class ColumnMeans:
    """Means of features so far, which continue from one table to the next.

    Give one object to every :func:`learn_stream` of a model as ``missing=``, and its ``fixed``
    values to :func:`predict_stream`. A value that is missing in a row is filled in with the mean
    over the rows before, in whichever table they were; rows count once, whatever their weights.

    Attributes
    ----------
    fixed : dict of str to float
        Mean of each feature that has come so far; what ``missing=`` takes as it stands.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from posterity import BayesianLinearRegression
    >>> from posterity.io import ColumnMeans, learn_stream
    >>> means = ColumnMeans()
    >>> model = BayesianLinearRegression()
    >>> for km in ([1.0, 3.0], [None, 5.0]):
    ...     model = learn_stream(model, pa.table({"km": km, "y": km}), "y", missing=means)
    >>> means.fixed, model.n_observations_
    ({'km': 3.0}, 3.0)
    """

    def __init__(self) -> None:
        self._tallies: dict[str, tuple[float, float]] = {}

    @classmethod
    def of(cls, tallies: Mapping[str, Sequence[float]]) -> Self:
        """Continue from what :meth:`get_sums` returned. Raises ``ValueError`` for anything else."""
        means = cls()
        for name, (total, count) in tallies.items():
            if not (math.isfinite(total) and math.isfinite(count) and count >= 0.0):
                raise ValueError(f"sum and count of {name!r} must be finite, got {total}, {count}")
            means._tallies[str(name)] = float(total), float(count)
        return means

    @property
    def fixed(self) -> dict[str, float]:
        """Mean of each feature so far."""
        return {name: total / count for name, (total, count) in self._tallies.items() if count}

    def get_sums(self) -> dict[str, list[float]]:
        """Sum and count of each feature, in numbers that a file can keep."""
        return {name: [total, count] for name, (total, count) in self._tallies.items()}

    def merge(self, other: ColumnMeans) -> Self:
        """Add the sums and counts of ``other``."""
        for name, (total, count) in other._tallies.items():
            mine = self._tallies.get(name, (0.0, 0.0))
            self._tallies[name] = mine[0] + total, mine[1] + count
        return self

    def collect_sums(self, names: Sequence[str]) -> Array:
        """(2, p): sums and counts of these features; those that are new have none."""
        return np.array([self._tallies.get(name, (0.0, 0.0)) for name in names]).reshape(-1, 2).T

    def join(self, name: str, like: str) -> None:
        """Add a level, which was zero wherever another level of its column was seen."""
        self._tallies[name] = 0.0, self._tallies.get(like, (0.0, 0.0))[1]

    def add(self, names: Sequence[str], sums: Array, counts: Array) -> None:
        """Count more values, by their sums and counts (p,)."""
        totals = (self.collect_sums(names) + np.stack([sums, counts])).T.tolist()
        for name, (total, count) in zip(names, totals, strict=True):
            self._tallies[name] = total, count


Missing = Literal["error", "skip", "mean", "level"] | Mapping[str, float] | ColumnMeans


class Policy:
    """What becomes of missing values; it takes the batches of a stream in order.

    ``fills`` is True if values are filled in, ``means`` are those to fill in so far, if learned.
    """

    fills = False
    means: ColumnMeans | None = None

    def __init__(self) -> None:
        self.n_skipped = self.n_filled = 0

    def apply(self, X: Array, y: Array, place: Place) -> Mask | None:
        """Fill NaN in, in place; say which rows (n,) can be used, None being all.

        ``place(row, column)`` names a value, column -1 being y.
        """
        raise NotImplementedError


class Refuse(Policy):
    """The first missing value is an error."""

    def apply(self, X: Array, y: Array, place: Place) -> Mask | None:
        """Let all rows through, or raise."""
        bad = find_first(np.isnan, X, y)
        if bad is not None:
            cures = [LEAVE_OUT] if bad[1] < 0 else [LEAVE_OUT, MEAN]
            raise TableError(f"{place(*bad)} is missing", cures, before="; ")
        return None


class Skip(Policy):
    """Rows with a missing value are left out and counted."""

    def apply(self, X: Array, y: Array, place: Place) -> Mask | None:
        """Leave rows out."""
        if sum_is_usable(X, y):
            return None
        return self._count_values(~(np.isnan(X).any(axis=1) | np.isnan(y)))

    def _count_values(self, kept: Mask) -> Mask:
        self.n_skipped += int(len(kept) - kept.sum())
        return kept

    def _mark_filled(self, absent: Mask, X: Array, y: Array) -> Mask:
        """Count rows with values filled in; return which rows stay: those complete by now."""
        kept: Mask = ~(np.isnan(X).any(axis=1) | np.isnan(y))
        self.n_filled += int(absent[kept].any(axis=1).sum())
        return self._count_values(kept)


class RunningMean(Skip):
    """A missing feature becomes the mean of its values in the rows before: nothing later leaks in.

    Rows whose target is missing are left out, and so are rows in which a feature is missing before
    any value of it was seen.
    """

    fills = True

    def __init__(self, means: ColumnMeans, names: Callable[[], Sequence[str]]) -> None:
        super().__init__()
        self.means: ColumnMeans = means
        self._names = names

    def apply(self, X: Array, y: Array, place: Place) -> Mask | None:
        """Fill in, then leave out what cannot be."""
        names = self._names()
        if sum_is_usable(X, y):
            self.means.add(names, X.sum(axis=0), np.full(len(names), float(len(X))))
            return None
        absent = np.isnan(X)
        observed, sums = np.where(absent, 0.0, X), self.means.collect_sums(names)
        for j in np.flatnonzero(absent.any(axis=0)):
            rows = np.flatnonzero(absent[:, j])
            # A missing value adds nothing, so sums up to and before its row are the same.
            seen = sums[1, j] + np.cumsum(~absent[:, j])[rows]
            total = sums[0, j] + np.cumsum(observed[:, j])[rows]
            X[rows, j] = np.where(seen > 0, total / np.maximum(seen, 1.0), np.nan)
        self.means.add(names, observed.sum(axis=0), len(X) - absent.sum(axis=0))
        return self._mark_filled(absent, X, y)


class Constant(Skip):
    """A missing feature becomes the value given for it; one without such a value is refused.

    Rows whose target is missing are left out.
    """

    fills = True

    def __init__(self, values: Mapping[str, float], names: Callable[[], Sequence[str]]) -> None:
        super().__init__()
        self._values, self._names = values, names
        known = names()
        for name in values:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1) or known[:20]
                raise TableError(
                    f"missing= has a value for {name!r}, which is not a feature; did you mean "
                    f"{', '.join(map(repr, near))}?"
                )

    def apply(self, X: Array, y: Array, place: Place) -> Mask | None:
        """Fill in, or raise."""
        if sum_is_usable(X, y):
            return None
        absent = np.isnan(X)
        for j, name in enumerate(self._names()):
            rows = np.flatnonzero(absent[:, j])
            if not len(rows):
                continue
            if name not in self._values:
                raise TableError(
                    f"{place(int(rows[0]), j)} is missing, and missing= has no value for "
                    f"{name!r}: add one"
                )
            X[rows, j] = self._values[name]
        return self._mark_filled(absent, X, y)


def check_missing(missing: Missing) -> None:
    """Raise ``ValueError`` for what is no way to deal with missing values."""
    if isinstance(missing, ColumnMeans) or is_word(missing, *WAYS):
        return
    if not isinstance(missing, Mapping):
        raise ValueError(
            f"missing must be one of {', '.join(WAYS)}, or values by the names of features; got "
            f"{missing!r}"
        )
    for name, value in missing.items():
        if not math.isfinite(value):
            raise ValueError(f"missing= has {value} for {name!r}: it must be finite")


def make_policy(missing: Missing, names: Callable[[], Sequence[str]]) -> Policy:
    """A policy that begins; ``names()`` are the features at the time."""
    if isinstance(missing, ColumnMeans):
        return RunningMean(missing, names)
    if isinstance(missing, Mapping):
        return Constant(missing, names)
    if missing in ("mean", "level"):
        return RunningMean(ColumnMeans(), names)
    return Skip() if missing == "skip" else Refuse()


def describe_holes(holes: Mapping[str, int], most: int = 8) -> str:
    """Columns and their holes, the most first, in words.

    Examples
    --------
    >>> describe_holes({"age": 3, "pool": 1200})
    "'pool' 1,200, 'age' 3"
    """
    ranked = sorted(holes.items(), key=lambda one: -one[1])
    words = ", ".join(f"{column!r} {count:,}" for column, count in ranked[:most])
    return f"{words}, and {len(ranked) - most:,} columns more" if len(ranked) > most else words


def refuse_too_large(X: Array, y: Array, place: Place) -> None:
    """Infinity is never a missing value, nor is 1e300: they are errors under every policy."""
    bad = find_first(lambda values: np.abs(values) > LARGEST, X, y)
    if bad is None:
        return
    row, column = bad
    value = y[row] if column < 0 else X[row, column]
    if np.isinf(value):
        raise TableError(f"{place(*bad)} is infinite: correct or delete that row")
    raise TableError(
        f"{place(*bad)} is {value:g}: beyond {LARGEST:g} products overflow; correct or delete that "
        "row, or use smaller units"
    )


def find_first(test: Callable[[Array], Mask], X: Array, y: Array) -> tuple[int, int] | None:
    """Row and column of the first value the test holds for, row by row; column -1 is y."""
    if sum_is_usable(X, y):
        return None
    in_X = test(X)
    rows = np.flatnonzero(np.any(in_X, axis=1) | test(y))
    if not len(rows):
        return None
    row = int(rows[0])
    columns = np.flatnonzero(in_X[row])
    return row, int(columns[0]) if len(columns) else -1


def sum_is_usable(X: Array, y: Array) -> bool:
    """A sum that is neither NaN nor very large has such terms, or terms that cancel."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(abs(X.sum() + y.sum()) <= LARGEST)
