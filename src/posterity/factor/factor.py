"""Floor 1: the factor, a square root of the information in all rows learned.

Stack rows ``(x, y)``, ``x`` of length p and ``y`` of length k, and rotate the stack to a triangle::

    F = [ R  Z ]      R (p, p)   R'R = X'X
        [ 0  S ]      Z (p, k)   R^-1 Z = least-squares coefficients
                      S (k, k)   S'S = residual sums of squares and products

Laws: appending is associative and commutative (up to rounding), the empty factor is its zero,
removing undoes appending, and scaling by g weights every row by g. The factor knows nothing of
priors or noise: a Gaussian prior is p more rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from posterity import kernel
from posterity.aliases import Array, Mask
from posterity.distributions.triangles import solve_triangle
from posterity.factor import removal
from posterity.factor.gram import compute_reliable_triangle
from posterity.factor.parallel import run_together, split_rows
from posterity.factor.usable import LARGEST_IN_TRIANGLE, check_learned, check_usable
from posterity.safety import check_memory

Path = TypeVar("Path")
SMALLEST = 1e-140  # squares of smaller values vanish


# If the smallest cosine is below this, rounding may dominate what is left of a direction.
DOUBTFUL_COSINE = 1e-3


class NotInFactorError(ValueError):
    """The rows to remove can't have been learned; ``row`` (from 0) is the first that shows it.

    It is None where each row can have been learned, but not all of them together.
    """

    def __init__(self, row: int | None) -> None:
        which = "these rows are not all" if row is None else f"row {row} is not"
        super().__init__(f"{which} in the factor: they can't be removed")
        self.row = row


class LostInRoundingError(ValueError):
    """The targets to remove are so large that rounding of them is what would be left."""

    def __init__(self) -> None:
        super().__init__(
            "the targets to unlearn are more than a million times as large as all others together, "
            "which were lost in their rounding: fit the model again without these rows"
        )


@dataclass(frozen=True)
class OneStepPredictions:
    """The factor's prediction of each row before it was learned.

    ``error`` (n, k) is the target minus its prediction, ``leverage`` (n,), ``residual`` (n, k) the
    residual sum of squares, ``count`` (n,) the sum of weights.
    """

    error: Array
    leverage: Array
    residual: Array
    count: Array


class Factor:
    """The triangular factor of learned rows, with their number and total weight.

    Parameters
    ----------
    n_coefficients
        p, the length of ``x``, intercept included.
    n_targets
        k, the length of ``y``.

    Notes
    -----
    Methods that take rows take ``X`` (n, m) by rows, ``Y`` (n, k), ``weights`` (n,) or None, and
    ``intercept``: whether a 1 comes before each x, so that p = m + 1; rows of all p columns bring
    what stands there, as rows in units of their own noise do. They raise ``FloatingPointError``,
    and leave the factor as it was, when the rows are not finite or too large to square.

    Examples
    --------
    >>> import numpy as np
    >>> factor = Factor(2)
    >>> X = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> factor.append(X, np.array([[1.0], [3.0], [5.0]]))
    >>> factor.coefficients().round(12).ravel().tolist()
    [1.0, 2.0]
    >>> factor.count
    3.0
    """

    __slots__ = ("_counts", "n_targets", "triangle")

    def __init__(self, n_coefficients: int, n_targets: int = 1) -> None:
        self.n_targets = n_targets
        size = n_coefficients + n_targets
        check_memory(8.0 * size * size, f"a model of {n_coefficients:,} columns")
        self.triangle = kernel.empty_triangle(n_coefficients + n_targets)
        self._counts = np.zeros(2)

    @classmethod
    def of(cls, triangle: tuple[Array, Array, Array], count: float) -> Self:
        """Return a factor of R (p, p), Z (p, k) and S (k, k), with this sum of weights.

        Examples
        --------
        >>> root, moments, residual = np.eye(1), np.array([[2.0]]), np.array([[1.0]])
        >>> Factor.of((root, moments, residual), 3.0).coefficients()
        array([[2.]])
        """
        root, moments, residual = triangle
        factor = cls(len(root), moments.shape[1])
        factor.root[...], factor.moments[...] = root, moments
        factor.residual_root[...] = residual
        factor._counts[...] = count
        return factor

    @classmethod
    def of_memory(cls, triangle: Array, count: float, seen: float) -> Self:
        """Return a factor of one target whose triangle (q, ld) this array is, and stays."""
        factor = object.__new__(cls)
        factor.triangle, factor.n_targets = triangle, 1
        factor._counts = np.array([count, seen])
        return factor

    def __getstate__(self) -> dict[str, Any]:
        return {"triangle": self.triangle, "counts": self._counts, "n_targets": self.n_targets}

    def __setstate__(self, state: dict[str, Any]) -> None:
        n_targets = state["n_targets"]
        Factor.__init__(self, len(state["triangle"]) - n_targets, n_targets)
        self._replace(state["triangle"], state["counts"])

    # ---- views ---------------------------------------------------------------------------------

    @property
    def n_coefficients(self) -> int:
        """p, intercept included."""
        return len(self.triangle) - self.n_targets

    @property
    def count(self) -> float:
        """Sum of the weights of the rows in the factor, as they have faded."""
        return float(self._counts[0])

    @property
    def seen(self) -> float:
        """Sum of the weights of the rows in the factor, as they came."""
        return float(self._counts[1])

    @property
    def root(self) -> Array:
        """R (p, p), a view: the upper-triangular square root of the information."""
        return self.triangle[: self.n_coefficients, : self.n_coefficients]

    @property
    def moments(self) -> Array:
        """Z (p, k), a view."""
        return self.triangle[: self.n_coefficients, self.n_coefficients : len(self.triangle)]

    @property
    def residual_root(self) -> Array:
        """S (k, k), a view."""
        return self.triangle[self.n_coefficients :, self.n_coefficients : len(self.triangle)]

    def row_path(self, intercept: bool, names: Sequence[str] | None = None) -> kernel.RowPath:
        """A fast path that learns and predicts single rows in this factor, in place."""
        if self.n_targets == 1:
            return kernel.RowPath(self.triangle, self._counts, intercept, names)
        return kernel.TargetsPath(self.triangle, self._counts, intercept, names, self.n_targets)

    def open_path(
        self, kind: Callable[..., Path], intercept: bool, names: Sequence[str] | None, *how: Any
    ) -> Path:
        """A path of this kind, which learns rows of one target in this factor, in place."""
        return kind(self.triangle, self._counts, intercept, names, *how)

    def fading(self, prior: Factor, discount: float) -> kernel.FadingMember:
        """The same, to learn rows before which all but the prior, which is in it, is discounted."""
        return kernel.FadingMember(self.triangle, self._counts, prior.triangle, discount)

    # ---- algebra -------------------------------------------------------------------------------

    def copy(self) -> Factor:
        """An independent factor with the same content."""
        twin = Factor(self.n_coefficients, self.n_targets)
        twin.copy_from(self)
        return twin

    def copy_from(self, other: Factor) -> None:
        """Copy the content of a factor of the same shape, in place."""
        self._replace(other.triangle, other._counts)

    def append(
        self,
        X: Array,
        Y: Array,
        weights: Array | None = None,
        *,
        intercept: bool = False,
        threads: int | None = None,
        largest: float = LARGEST_IN_TRIANGLE,
    ) -> None:
        """Learn all rows at once, by Householder panels; large blocks use every core.

        Where many rows of many columns are well conditioned, their products say as much, sooner.
        ``threads`` limits them (1: stay on one core); the default is described in
        :func:`posterity.factor.parallel.count_workers`. No value, times the root of its weight, may
        be beyond ``largest``.
        """
        ones = self.lacks_intercept_column(X, intercept)
        triangle = self.triangle.copy()
        known = triangle[:, : len(triangle)]
        sure = compute_reliable_triangle(X, Y, weights, known, intercept=ones, threads=threads)
        if sure is None:
            self._rotate_rows(triangle, X, Y, weights, ones, threads)
        else:
            known[...] = sure
        self.check_underflow(triangle, X, Y, weights)
        check_learned(triangle, X, Y, weights, largest=largest)
        self._replace(triangle, self._counts + _total(weights, len(X)))

    def learn(
        self,
        X: Array,
        Y: Array,
        weights: Array | None = None,
        *,
        intercept: bool = False,
        largest: float = LARGEST_IN_TRIANGLE,
    ) -> OneStepPredictions:
        """Learn the rows one after another; returns the prediction made before each."""
        triangle = self.triangle.copy()
        ones = self.lacks_intercept_column(X, intercept)
        before = kernel.learn_rows(triangle, self.n_targets, X, Y, weights, ones)
        if weights is None:
            counts = self.count + np.arange(len(X) + 1.0)
        else:
            counts = self.count + np.concatenate([[0.0], np.cumsum(weights)])
        self.check_underflow(triangle, X, Y, weights)
        check_learned(triangle, X, Y, weights, largest=largest)
        self._replace(triangle, [counts[-1], self.seen + counts[-1] - self.count])
        return OneStepPredictions(*before, counts[:-1])

    def set_triangle(self, triangle: Array, count: float, seen: float) -> None:
        """Set the triangle and the sums of weights, if all values are usable."""
        self._replace_checked(triangle, [count, seen])

    def remove(
        self,
        X: Array,
        Y: Array,
        weights: Array | None = None,
        *,
        intercept: bool = False,
        stay: Factor | None = None,
    ) -> float:
        """Unlearn rows, by hyperbolic rotations, or together where those are in doubt.

        Returns the smallest cosine met, from 1 (nothing lost) to 0: each factor of ten below one
        is a digit lost. A direction that only these rows knew is not known any more, but for what
        ``stay``, a prior that was merged, says of it. Raises :class:`NotInFactorError`, and
        changes nothing, when a row can't have been learned, and :class:`LostInRoundingError` where
        its target is so large that nothing right would be left.
        """
        triangle = self.triangle.copy()
        status, least = kernel.remove_rows(triangle, self.n_targets, X, Y, weights, intercept)
        if status or not least > DOUBTFUL_COSINE:
            triangle, least = self._remove_rows(X, Y, weights, intercept, stay)
        counts = self._counts - _total(weights, len(X))
        some_are_left = counts[0] > 1e-12 * self._counts[0]
        if some_are_left and removal.loses_targets(self.triangle, triangle, self.n_targets):
            raise LostInRoundingError
        self._replace_checked(triangle, counts)
        return least

    def reduce(
        self,
        X: Array,
        Y: Array,
        weights: Array | None = None,
        *,
        intercept: bool = False,
        rounding: float = 1e-5,
        exact: bool = True,
    ) -> None:
        """Unlearn rows of one target that are nearly, but not exactly, those learned.

        Of a direction of which they say more than all that is known, or as much but for
        ``rounding``, all goes; unless what they said is ``exact``, the mean does not leap where
        little is left. Raises :class:`NotInFactorError`, and changes nothing, where nothing
        is known of it.
        """
        gone = Factor(self.n_coefficients)
        gone.append(X, Y, weights, intercept=intercept)
        triangle = removal.remove_uncertain_rows(
            self.triangle, gone.triangle[:, : len(self.triangle)], rounding, exact=exact
        )
        if triangle is None:
            raise NotInFactorError(None)
        left = np.maximum(self._counts - _total(weights, len(X)), 0.0)
        self._replace_checked(triangle, left)

    def merge(self, other: Factor) -> None:
        """Learn every row that ``other`` has learned."""
        self.copy_from(self.combine(other))

    def combine(self, other: Factor) -> Factor:
        """Return a new factor that has learned the rows of both."""
        both = self.copy()
        self._append_triangle(both.triangle, other.triangle)
        check_usable(both.triangle)
        both._counts += other._counts
        return both

    def take_out(self, other: Factor) -> float:
        """Unlearn every row that ``other`` has learned; returns and raises as :meth:`remove`."""
        p = self.n_coefficients
        rows = other.triangle[:, : len(self.triangle)]
        least = self.remove(rows[:, :p], np.ascontiguousarray(rows[:, p:]))
        self._counts += len(rows) - other._counts
        return least

    def check_underflow(self, triangle: Array, X: Array, Y: Array, weights: Array | None) -> None:
        """Raise ``FloatingPointError`` where columns are lost in a new triangle for being small.

        A target alone may be as small as it likes: it does not tell the unit.
        """
        size = len(triangle)
        gone = np.abs(triangle[:1, :size]).max(axis=0, initial=0.0) < SMALLEST
        if gone.any():  # most columns show in the first row
            gone[gone] = np.abs(triangle[:, :size][:, gone]).max(axis=0) < SMALLEST
        if gone.any():
            if weights is not None:
                X, Y = X[weights > 0.0], Y[weights > 0.0]
            p = self.n_coefficients
            lost = [X[:, gone[p - X.shape[1] : p]], Y[:, gone[p:] & (len(Y) > 1)]]
            sizes = np.abs(np.hstack(lost)).max(axis=0, initial=0.0)
            if ((sizes > 0.0) & (sizes < np.sqrt(SMALLEST))).any():
                raise FloatingPointError(
                    "the values in the rows are so small that their squares are 0: use smaller "
                    "units, as in X * 1e100"
                )

    def scale(self, weight: float) -> None:
        """Multiply the weight of every row by ``weight``, which is at least 0."""
        self._replace_checked(self.triangle * math.sqrt(weight), [self.count * weight, self.seen])

    def reset_counts(self) -> None:
        """Set the counts to 0, because the rows of a prior are not observations."""
        self._counts[...] = 0.0

    # ---- read-outs -----------------------------------------------------------------------------

    @property
    def determined(self) -> Mask:
        """(p,) False where a coefficient depends on those before it in all that was learned."""
        return self.root.diagonal() != 0.0

    @property
    def rank(self) -> int:
        """Number of directions of which something is known, at most p."""
        return int(np.count_nonzero(self.root.diagonal()))

    def coefficients(self) -> Array:
        """(p, k) least-squares coefficients; those that are not determined are 0."""
        solution = np.zeros((self.n_coefficients, self.n_targets))
        kept = self.determined
        if kept.all():
            return solve_triangle(self.root, self.moments) if len(kept) else solution
        if kept.any():
            solution[kept] = solve_triangle(self.root[np.ix_(kept, kept)], self.moments[kept])
        return solution

    def covariance(self) -> Array:
        """(p, p) inverse of the information R'R.

        Without full rank the diagonal is infinite, and the rest of its row and column NaN, where
        the rows leave a coefficient open.
        """
        p, kept = self.n_coefficients, self.determined
        inverse = np.zeros((p, p))
        inverse[np.ix_(kept, kept)] = solve_triangle(
            self.root[np.ix_(kept, kept)], np.eye(self.rank)
        )
        covariance = inverse @ inverse.T
        if not kept.all():
            open_ = np.isinf(self.predict(np.eye(p))[1])
            covariance[open_, :] = covariance[:, open_] = np.nan
            covariance[open_, open_] = np.inf
        return covariance

    def predict(self, X: Array, *, intercept: bool = False) -> tuple[Array, Array]:
        """Means (n, k) and leverages (n,), infinite where ``x`` has a direction never seen."""
        ones = self.lacks_intercept_column(X, intercept)
        return kernel.predict_rows(self.triangle, self.n_targets, X, ones)

    def log_determinant(self) -> float:
        """Log determinant of R'R over the determined directions."""
        diagonal = np.diag(self.root)
        return 2.0 * float(np.sum(np.log(diagonal[diagonal != 0.0])))

    def residual(self) -> Array:
        """(k, k) residual sums of squares and products S'S."""
        return self.residual_root.T @ self.residual_root

    def lacks_intercept_column(self, X: Array, intercept: bool) -> bool:
        """Return True if a 1 must be put before each row of ``X``, as none has a column for it."""
        return intercept and X.shape[1] < self.n_coefficients

    # ---- inner ---------------------------------------------------------------------------------

    def _rotate_rows(
        self,
        triangle: Array,
        X: Array,
        Y: Array,
        weights: Array | None,
        ones: bool,
        threads: int | None,
    ) -> None:
        """Learn rows in the triangle by rotations; a part of them on each core, then merged."""
        parts = split_rows(len(X), X.shape[1] + 1, threads)
        triangles = [triangle, *(kernel.empty_triangle(len(triangle)) for _ in parts[1:])]

        def learn(one: Array, part: slice) -> None:
            some = X[part], Y[part], None if weights is None else weights[part]
            kernel.append_block(one, self.n_targets, *some, ones)

        run_together(learn, triangles, parts)
        for other in triangles[1:]:
            self._append_triangle(triangle, other)

    def _append_triangle(self, triangle: Array, other: Array) -> None:
        p, q = self.n_coefficients, len(self.triangle)
        targets = np.ascontiguousarray(other[:, p:q])
        kernel.append_block(triangle, self.n_targets, other[:, :p], targets, None, False)

    def _remove_rows(
        self, X: Array, Y: Array, weights: Array | None, intercept: bool, stay: Factor | None
    ) -> tuple[Array, float]:
        """The triangle without the rows, all at once, and the smallest cosine."""
        gone = Factor(self.n_coefficients, self.n_targets)
        gone.append(X, Y, weights, intercept=intercept)
        q = len(self.triangle)
        prior = None if stay is None or not stay.rank else stay.triangle[:, :q]
        left = removal.remove_rows(self.triangle, self.n_targets, gone.triangle[:, :q], prior)
        if left is None:
            roots = np.ones(len(X)) if weights is None else np.sqrt(weights)
            first = [np.ones((len(X), 1))] if intercept else []
            rows = roots[:, None] * np.hstack([*first, X, Y])
            raise NotInFactorError(removal.find_first_impossible(self.triangle, rows))
        return left

    def _replace_checked(self, triangle: Array, counts: ArrayLike) -> None:
        check_usable(triangle)
        self._replace(triangle, counts)

    def _replace(self, triangle: Array, counts: ArrayLike) -> None:
        self.triangle[...] = triangle
        self._counts[...] = counts


def _total(weights: Array | None, n: int) -> float:
    return float(n) if weights is None else float(np.sum(weights))
