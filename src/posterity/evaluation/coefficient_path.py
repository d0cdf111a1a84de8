"""Coefficients along a stream: what a model believed, and when."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from sys import maxsize
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posterity.aliases import Array, Estimator
from posterity.evaluation._batches import Batch, limit_batches, refuse_nothing

FEWEST_ROWS = 32


@dataclass(frozen=True, eq=False)
class CoefficientPath:
    """Posterior means and intervals of coefficients along a stream.

    Attributes
    ----------
    row_end : (s,) int array
        Rows learned.
    mean, low, high : (s, m) arrays
        Of intercept (if there is one) and coefficients: posterior mean, and ends of the central
        interval of `level`; infinite where nothing is known yet.
    names : tuple of str
    level : float
    """

    row_end: NDArray[np.int64]
    mean: Array
    low: Array
    high: Array
    names: tuple[str, ...]
    level: float


def follow_coefficients(
    model: Estimator,
    stream: object,
    y: Any = None,
    *,
    points: int = 100,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
) -> CoefficientPath:
    """Learn a stream, and record the model's coefficients along the way.

    The model learns in place, by ``partial_fit``.

    Parameters
    ----------
    model : estimator
        With a joint posterior of its coefficients.
    stream : (n, p) array or data frame, tuple, or iterable
        As in :func:`progressive_validation`.
    y : (n,) array, optional
        Targets, when `stream` is X.
    points : int
        An array is noted at so many places, evenly; each batch of an iterable of batches likewise.
    level : float
        Level of the intervals.
    sample_weight : (n,) array, optional
        With arrays only.

    Returns
    -------
    CoefficientPath

    Raises
    ------
    ValueError
        If `points` is below 1, or there is no row.
    TypeError
        If the model has no joint posterior of its coefficients.

    Examples
    --------
    >>> import numpy as np
    >>> from posterity import BayesianLinearRegression
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> path = follow_coefficients(BayesianLinearRegression(), X, X @ [1.0, -2.0], points=10)
    >>> path.names, path.mean.shape
    (('intercept', 'x0', 'x1'), (10, 3))
    """
    if points < 1:
        raise ValueError(f"points must be at least 1, got {points}")
    _check_followed(model)
    notes = _Notes(level)
    seen = 0
    for batch in limit_batches(stream, y, sample_weight, maxsize):
        borders = np.unique(np.linspace(0, len(batch.y), points + 1).astype(int))
        for start, end in pairwise(borders):
            part = batch.select(slice(start, end))
            model.partial_fit(part.X, part.y, **part.keywords())
            notes.add(seen + int(end), model.posterior_)
        seen += len(batch.y)
    refuse_nothing(seen)
    return notes.path()


class _Notes:
    """Means and intervals of coefficients, noted one after another."""

    def __init__(self, level: float) -> None:
        self._level = level
        self._names: tuple[str, ...] = ()
        self.rows: list[int] = []
        self._means: list[Array] = []
        self._ends: list[Array] = []

    def add(self, n_rows: int, joint: Any) -> None:
        """Note a posterior after so many rows."""
        self.rows.append(n_rows)
        self._means.append(np.asarray(joint.mean))
        self._ends.append(np.asarray(joint.interval(self._level)))
        names = joint.names or (f"coefficient {k}" for k in range(len(joint.mean)))
        self._names = tuple(str(name) for name in names)

    def halve(self) -> None:
        """Keep every second note."""
        for kept in (self.rows, self._means, self._ends):
            del kept[::2]

    def path(self) -> CoefficientPath:
        interval = np.stack(self._ends)
        return CoefficientPath(
            np.array(self.rows),
            np.stack(self._means),
            interval[..., 0],
            interval[..., 1],
            self._names,
            self._level,
        )


class CoefficientFollower:
    """Notes coefficients of a model while it learns elsewhere, at evenly spaced rows.

    A note costs about a millisecond, so as many are taken as are kept where the number of rows is
    known (`expected_rows`, asked when the first rows are there; 0 if it is not). Else the first
    spacing is 32 rows, or four for each feature. When there are `points` notes, every second one
    goes and the spacing doubles: of a stream of any length at least points/2 are kept.
    """

    def __init__(
        self, model: Estimator, points: int, expected_rows: Callable[[], float], level: float = 0.95
    ) -> None:
        _check_followed(model)
        self._model = model
        self._points = points + points % 2
        self._expected_rows = expected_rows
        self._notes = _Notes(level)
        self._spacing = 0
        self._seen = 0

    def pieces(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Cut batches where a note is due; it is taken when the next piece is asked for."""
        for batch in batches:
            n, start = len(batch.y), 0
            if not self._spacing:
                evenly = int(self._expected_rows() / max(self._points - 1, 1)) + 1
                self._spacing = max(FEWEST_ROWS, 4 * batch.X.shape[1], evenly)
            while start < n:
                end = min(n, start + self._spacing - self._seen % self._spacing)
                whole = start == 0 and end == n
                yield batch if whole else batch.select(slice(start, end))
                self._seen += end - start
                start = end
                if self._seen % self._spacing == 0:
                    self._note()

    def _note(self) -> None:
        self._notes.add(self._seen, self._model.posterior_)
        if len(self._notes.rows) == self._points:
            self._notes.halve()
            self._spacing *= 2

    def path(self) -> CoefficientPath:
        """Return the coefficients noted, up to the last row."""
        if self._notes.rows[-1:] != [self._seen]:
            self._notes.add(self._seen, self._model.posterior_)
        return self._notes.path()


def _check_followed(model: Estimator) -> None:
    if not hasattr(type(model), "posterior_"):
        raise TypeError(
            f"{type(model).__name__} has no posterior_, so there are no coefficients to follow: "
            "give a model of posterity"
        )
