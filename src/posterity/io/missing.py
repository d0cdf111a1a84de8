"""What to do where a value is missing: one policy, told which rows it left out or filled in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from posterity.io.errors import TableError

FloatArray = NDArray[np.float64]
Missing = Literal["error", "skip", "mean"]


class Policy(Protocol):
    """One batch after the other, in the order of the stream."""

    n_skipped: int
    n_filled: int

    def apply(
        self, X: FloatArray, y: FloatArray, place: Callable[[int, int], str]
    ) -> tuple[FloatArray, FloatArray]:
        """Rows (m, p) and (m,) without NaN. `place(row, column)` names one, column -1 being y."""
        ...


class Refuse:
    """The first missing value is an error."""

    def __init__(self) -> None:
        self.n_skipped = self.n_filled = 0

    def apply(
        self, X: FloatArray, y: FloatArray, place: Callable[[int, int], str]
    ) -> tuple[FloatArray, FloatArray]:
        """Return X and y as they are, or raise."""
        bad = first_where(np.isnan, X, y)
        if bad is not None:
            raise TableError(
                f"{place(*bad)} is missing; use --missing skip to leave such rows out"
                + ("" if bad[1] < 0 else ", or --missing mean to fill in the mean seen so far")
            )
        return X, y


class Skip:
    """Rows with a missing value are left out and counted."""

    def __init__(self) -> None:
        self.n_skipped = self.n_filled = 0

    def apply(
        self, X: FloatArray, y: FloatArray, place: Callable[[int, int], str]
    ) -> tuple[FloatArray, FloatArray]:
        """Leave rows out."""
        if _surely_finite(X, y):
            return X, y
        return self._keep(~(np.isnan(X).any(axis=1) | np.isnan(y)), X, y)

    def _keep(
        self, kept: NDArray[np.bool_], X: FloatArray, y: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        self.n_skipped += int(len(kept) - kept.sum())
        return (X, y) if kept.all() else (X[kept], y[kept])


class RunningMean(Skip):
    """A missing feature becomes the mean of its values in the rows before: nothing later leaks in.

    Rows whose target is missing are left out, and so are rows in which a feature is missing before
    any value of it was seen.
    """

    def __init__(self) -> None:
        super().__init__()
        self._sum: FloatArray | None = None
        self._count: FloatArray | None = None

    def apply(
        self, X: FloatArray, y: FloatArray, place: Callable[[int, int], str]
    ) -> tuple[FloatArray, FloatArray]:
        """Fill in, then leave out what cannot be."""
        if self._sum is None or self._count is None:
            self._sum, self._count = np.zeros(X.shape[1]), np.zeros(X.shape[1])
        if _surely_finite(X, y):
            self._sum += X.sum(axis=0)
            self._count += len(X)
            return X, y
        absent = np.isnan(X)
        observed = np.where(absent, 0.0, X)
        for j in np.flatnonzero(absent.any(axis=0)):
            rows = np.flatnonzero(absent[:, j])
            # A missing value adds nothing, so sums up to and before its row are the same.
            seen = self._count[j] + np.cumsum(~absent[:, j])[rows]
            total = self._sum[j] + np.cumsum(observed[:, j])[rows]
            X[rows, j] = np.where(seen > 0, total / np.maximum(seen, 1.0), np.nan)
        self._sum += observed.sum(axis=0)
        self._count += len(X) - absent.sum(axis=0)
        kept: NDArray[np.bool_] = ~(np.isnan(X).any(axis=1) | np.isnan(y))
        self.n_filled += int(absent[kept].any(axis=1).sum())
        return self._keep(kept, X, y)


def make_policy(missing: Missing) -> Policy:
    """A fresh policy by its name."""
    policies: dict[str, type[Refuse | Skip]] = {"error": Refuse, "skip": Skip, "mean": RunningMean}
    if missing not in policies:
        raise ValueError(f"missing must be one of {', '.join(get_args(Missing))}; got {missing!r}")
    return policies[missing]()


def refuse_infinite(X: FloatArray, y: FloatArray, place: Callable[[int, int], str]) -> None:
    """Infinity is never a missing value: it is an error under every policy."""
    bad = first_where(np.isinf, X, y)
    if bad is not None:
        raise TableError(f"{place(*bad)} is infinite: mend or delete that row")


def first_where(
    test: Callable[[FloatArray], NDArray[np.bool_]], X: FloatArray, y: FloatArray
) -> tuple[int, int] | None:
    """Row and column of the first value the test holds for, row by row; column -1 is y."""
    if _surely_finite(X, y):
        return None
    in_X = test(X)
    rows = np.flatnonzero(np.any(in_X, axis=1) | test(y))
    if not len(rows):
        return None
    row = int(rows[0])
    columns = np.flatnonzero(in_X[row])
    return row, int(columns[0]) if len(columns) else -1


def _surely_finite(X: FloatArray, y: FloatArray) -> bool:
    """A finite sum has finite terms; the other way round a closer look is due."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(X.sum() + y.sum()))
