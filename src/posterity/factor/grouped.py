"""A factor for each of many groups, in one growing block of memory (one target)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posterity import kernel
from posterity.aliases import AnyArray, Array, Mask
from posterity.distributions.triangles import solve_triangle
from posterity.factor.factor import Factor, LostInRoundingError
from posterity.factor.grouped_rows import GroupedRows, Slots, shares, sort_rows
from posterity.factor.packed import packed, unpacked, unpacked_rows
from posterity.factor.parallel import run_together, split_rows
from posterity.factor.removal import loses_targets
from posterity.transaction import Undo

# Shares of a direction's information: beyond rounding, and no more than rounding.
FOREIGN_TOLERANCE, ZERO_TOLERANCE = 1e-6, 1e-11
# Targets differ by rounding whose sum of squares about their mean is less than this share of all.
ROUNDING = 1e-20


class NotInGroupError(ValueError):
    """Rows to remove can't have been learned by their group; ``row`` (from 0) is the last."""

    def __init__(self, row: int) -> None:
        super().__init__(f"row {row} is not in the factor of its group: it can't be removed")
        self.row = row


class GroupBank:
    """The triangles of the rows of each group, packed, and how much they weigh.

    A prior is stacked on them where it is needed: what is kept is what the rows said.

    Examples
    --------
    >>> bank = GroupBank(n_coefficients=1)
    >>> bank.grow(2)
    >>> rows = GroupedRows(
    ...     np.array([[1.0], [2.0], [1.0]]),
    ...     np.array([3.0, 10.0, 3.0]),
    ...     None,
    ...     False,
    ...     np.array([1, 0, 1], dtype=np.int32),
    ...     np.arange(2),
    ... )
    >>> bank.learn(rows)
    >>> bank.count.tolist(), solve_groups(bank.packed, 1).ravel().round(9).tolist()
    ([1.0, 2.0], [5.0, 3.0])
    """

    __slots__ = ("_arrays", "clock", "n_coefficients", "size")

    def __init__(self, n_coefficients: int) -> None:
        q = n_coefficients + 1
        self.n_coefficients = n_coefficients  # p, intercept included
        # Replaced together, never one by one: paths that share their memory check for new arrays.
        self._arrays: list[AnyArray]
        self._arrays = [
            np.zeros((0, q * (q + 1) // 2)),
            np.zeros(0),
            np.zeros(0),
            np.zeros(0, dtype=np.int64),
        ]
        self.size = 0
        self.clock = 0

    @classmethod
    def of(cls, rows: Array) -> GroupBank:
        """A bank with the triangles [R, z] (n, p, p + 1) of some rows, and no residual."""
        groups, p, _ = rows.shape
        bank = cls(p)
        bank.grow(groups)
        bank.packed[...] = packed(np.concatenate([rows, np.zeros((groups, 1, p + 1))], axis=1))
        return bank

    def __getstate__(self) -> dict[str, Any]:
        arrays = [array[: self.size] for array in self._arrays]
        return {"arrays": arrays, "coefficients": self.n_coefficients, "clock": self.clock}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._arrays = [np.array(array) for array in state["arrays"]]
        self.n_coefficients = state["coefficients"]
        self.size, self.clock = len(self._arrays[0]), state["clock"]

    # ---- views ---------------------------------------------------------------------------------

    @property
    def packed(self) -> Array:
        """(size, q (q + 1) / 2), a view: each group's rows, as :mod:`posterity.factor.packed`."""
        return self._arrays[0][: self.size]

    @property
    def triangles(self) -> Array:
        """(size, q, leading dimension), a copy: each group's rows, as ``Factor.triangle``."""
        return unpacked(self.packed, self.n_coefficients + 1)

    @property
    def count(self) -> Array:
        """(size,) sums of the weights of the rows, as they have faded."""
        return self._arrays[1][: self.size]

    @property
    def seen(self) -> Array:
        """(size,) sums of the weights of the rows, as they came."""
        return self._arrays[2][: self.size]

    @property
    def last(self) -> NDArray[np.int64]:
        """(size,) how many rows the bank had learned when the group's last one had come."""
        return self._arrays[3][: self.size]

    @property
    def _tallies(self) -> tuple[Array, Array, NDArray[np.int64], int]:
        _, count, seen, last = self._arrays
        return count, seen, last, self.clock

    def residuals(self, which: slice | Slots = slice(None)) -> Array:
        """Residual sums of squares of the rows alone."""
        return self.packed[which, -1] ** 2

    def rows(self, which: slice | Slots = slice(None)) -> Array:
        """(size, p, p + 1) triangles [R, z] of the rows, a copy."""
        return unpacked_rows(self.packed[which], self.n_coefficients)

    # ---- room ----------------------------------------------------------------------------------

    def grow(self, size: int) -> None:
        """Make room for ``size`` groups; the new ones know nothing."""
        self.reserve(size)
        self.size = max(self.size, size)

    def reserve(self, size: int) -> None:
        """Make room for ``size`` groups, which are still to come."""
        room = len(self._arrays[0])
        if size > room:
            room = max(size, room + room // 2)
            self._arrays = [_lengthen(array, room) for array in self._arrays]

    def keep(self, which: Mask) -> None:
        """Drop the groups for which ``which`` (size,) is False; the rest stay in order."""
        self._arrays = [array[: self.size][which] for array in self._arrays]
        self.size = len(self._arrays[0])

    def select(self, which: Mask | Slots) -> GroupBank:
        """A bank of copies of the groups for which ``which`` (size,) is True, or at these slots."""
        some = GroupBank(self.n_coefficients)
        some._arrays = [array[: self.size][which] for array in self._arrays]
        some.size, some.clock = len(some._arrays[0]), self.clock
        return some

    def without_rows(self) -> GroupBank:
        """A bank of as many groups that know nothing."""
        bank = GroupBank(self.n_coefficients)
        bank.grow(self.size)
        return bank

    def repeat(self, times: int) -> GroupBank:
        """A bank with so many copies of all groups, one after another."""
        many = GroupBank(self.n_coefficients)
        many._arrays = [np.concatenate([array[: self.size]] * times) for array in self._arrays]
        many.size, many.clock = len(many._arrays[0]), self.clock
        return many

    def copy(self) -> GroupBank:
        """An independent bank with the same content."""
        twin = GroupBank.__new__(GroupBank)
        twin.__setstate__(self.__getstate__())
        return twin

    # ---- learning ------------------------------------------------------------------------------

    def learn(self, rows: GroupedRows, discount: float = 1.0) -> None:
        """Learn rows, of groups in the bank.

        Before each row of a group but its first, what is known of the group weighs ``discount`` of
        what it did.
        """
        order = sort_rows(rows.numbers, rows.slots)
        tallies = self._tallies
        X, y, weights, intercept = rows.X, rows.y, rows.weights, rows.intercept

        def learn(share: tuple[int, int]) -> None:
            kernel.learn_groups(
                self._arrays[0], order, X, y, weights, intercept, discount, tallies, share
            )

        run_together(learn, order.shares(len(split_rows(len(rows), self.n_coefficients))))
        self.clock += len(rows)

    def predict_then_learn_rows(
        self, rows: GroupedRows, priors: Array, discount: float = 1.0, out: Array | None = None
    ) -> Array:
        """Learn rows; (4, n) says what each was before it, the group's rows stacked on its prior.

        Error, leverage, and by how much the row raises residual sum of squares and count of its
        group; the last is left out where each row raises it by 1. ``priors`` (k, q, ld): of the
        first k - 1 slots, and of all others.
        """
        order = sort_rows(rows.numbers, rows.slots)
        tallies = self._tallies
        X, y, weights, intercept = rows.X, rows.y, rows.weights, rows.intercept
        before = np.empty((4, len(rows))) if out is None else out

        def learn(share: tuple[int, int]) -> None:
            kernel.predict_then_learn_groups(
                self._arrays[0],
                priors,
                order,
                X,
                y,
                weights,
                intercept,
                discount,
                tallies,
                share,
                before,
            )

        run_together(learn, order.shares(len(split_rows(len(rows), self.n_coefficients))))
        self.clock += len(rows)
        return before

    def date(self, rows: GroupedRows, clock: int) -> None:
        """Date rows that were learned in any order as they came after so many others."""
        self.last[rows.slots[rows.numbers]] = clock + 1 + np.arange(len(rows))
        self.clock = clock + len(rows)

    def posteriors(self, priors: Array, slots: Slots | None = None) -> Array:
        """(n, q (q + 1) / 2) rows and ``priors`` of the groups at ``slots``, or of all.

        Packed triangles; ``priors`` are as in :meth:`predict_then_learn_rows`.
        """
        slots = np.arange(self.size) if slots is None else slots
        posterior = np.empty((len(slots), self._arrays[0].shape[1]))

        def stack(share: tuple[int, int]) -> None:
            kernel.stack_groups(self._arrays[0], slots, priors, share, posterior)

        run_together(stack, shares(len(slots), self.n_coefficients))
        return posterior

    def keep_state(self, undo: Undo, slots: Slots) -> None:
        """Have ``undo`` put back the groups at ``slots``, and take back those that are new."""
        for array in self._arrays:
            undo.keep_entries(array, slots)
            undo.add(partial(array.__setitem__, slice(self.size, None), 0))
        for name in ("_arrays", "size", "clock"):
            undo.add(partial(setattr, self, name, getattr(self, name)))

    def remove(self, rows: GroupedRows) -> None:
        """Unlearn rows.

        Raises :class:`NotInGroupError`, and changes nothing, when a row can't have been learned.
        """
        slots = rows.slots
        removed = np.bincount(rows.numbers, rows.weights, minlength=len(slots))
        left = self.count[slots] - removed
        left[np.abs(left) <= 1e-12 * np.maximum(removed, self.count[slots])] = 0.0
        triangles = unpacked(self.packed[slots], self.n_coefficients + 1)
        stacked = rows.stack_rows()
        order = np.argsort(rows.numbers, kind="stable")
        ends = np.cumsum(np.bincount(rows.numbers, minlength=len(slots)))
        for group, some in enumerate(np.split(order, ends[:-1])):
            without = _remove_rows(triangles[group], stacked[some], empty=left[group] == 0.0)
            if without is None or left[group] < 0.0:
                raise NotInGroupError(int(some[-1]))
            if left[group] > 0.0 and loses_targets(triangles[group], without, 1):
                raise LostInRoundingError
            triangles[group] = without
        self.packed[slots] = packed(triangles)
        self.count[slots] = left
        self.seen[slots] = np.where(left == 0.0, 0.0, self.seen[slots] - removed)

    def merge(self, other: GroupBank, slots: Slots) -> None:
        """Learn all rows of ``other``, whose groups are at ``slots`` here."""
        kernel.merge_groups(self.packed, other.packed, slots, self.n_coefficients)
        self.count[slots] += other.count
        self.seen[slots] += other.seen
        self.last[slots] = np.maximum(self.last[slots], other.last)
        self.clock = max(self.clock, other.clock)


def _remove_rows(triangle: Array, rows: Array, *, empty: bool) -> Array | None:
    """Return a triangle (q, ld) without ``rows`` (k, q); None if they can't be in it.

    With the rows as B T and B = U diag(s) V', what is left is T' V (1 - s^2) V' T. All rows go at
    once: a group may have as many as it has coefficients, and rotating them out one after the
    other would lose more digits with each.
    """
    q = len(triangle)
    T = triangle[np.diag(triangle) != 0.0, :q]
    kept = np.flatnonzero(np.diag(triangle))
    B = solve_triangle(T[:, kept], rows[:, kept].T, transposed=True).T
    size = np.sqrt(np.sum(T**2, axis=0))
    if (np.abs(rows - B @ T) > FOREIGN_TOLERANCE * size).any():
        return None
    if len(B) > len(kept):
        B = np.asarray(np.linalg.qr(B, mode="r"))
    _, s, V = np.linalg.svd(B, full_matrices=True)
    share = np.ones(len(kept))
    share[: len(s)] = (1.0 - s) * (1.0 + s)
    if (share < -FOREIGN_TOLERANCE).any() or (empty and (share > FOREIGN_TOLERANCE).any()):
        return None
    alive = share > ZERO_TOLERANCE
    left = Factor(q - 1)
    if not empty:
        remains = np.sqrt(np.maximum(share, 0.0))[:, None] * (V @ T)
        remains[~alive, :-1] = 0.0  # no direction any more, but a residual may be left
        # A column that no row is left of, as of a level, is 0; rounding is no direction.
        gone = np.abs(remains).max(axis=0) <= ZERO_TOLERANCE * size
        remains[:, :-1][:, gone[:-1]] = 0.0
        left.append(remains[:, :-1], np.ascontiguousarray(remains[:, -1:]))
    return left.triangle


def predict_rows(
    posteriors: Array, newcomer: Array, X: Array, places: Slots, *, intercept: bool
) -> tuple[Array, Array]:
    """Means (n,) and leverages (n,) of rows, each under the packed posterior at its place.

    Place -1 is a group of which nothing is known: ``newcomer``'s, a triangle (q, ld).
    """
    mean, leverage = np.empty(len(X)), np.empty(len(X))

    def predict(share: tuple[int, int]) -> None:
        kernel.predict_groups(posteriors, newcomer, X, places, intercept, share, mean, leverage)

    run_together(predict, shares(len(X), len(newcomer) - 1, rows_each=1))
    return mean, leverage


def solve_groups(posteriors: Array, p: int) -> Array:
    """(n, p) coefficients of packed triangles; 0 where they are not determined."""
    return kernel.solve_groups(posteriors, p)


def whiten_groups(root: Array, rows: Array) -> tuple[Array, Array]:
    """Rows (g, h, p + 1) of each group, its coefficients integrated under a prior.

    The prior has the root ``root`` (p, p), upper triangular. Returns [W, o] (g, h, p + 1), where
    ``o = W m + noise`` of variance 1, m the prior's mean, and log |root'root + R'R| (g,).

    Examples
    --------
    >>> white, log_determinants = whiten_groups(np.array([[1.0]]), np.array([[[2.0, 6.0]]]))
    >>> (white[0, 0] / white[0, 0, 0]).round(12).tolist()
    [1.0, 3.0]
    >>> float(np.exp(log_determinants[0]).round(9))
    5.0
    """
    white, log_determinants = np.empty_like(rows), np.empty(len(rows))

    def whiten(share: tuple[int, int]) -> None:
        kernel.whiten_groups(root, rows, share, white, log_determinants)

    run_together(whiten, shares(len(rows), len(root)))
    return white, log_determinants


def have_equal_targets(moments: Array, residuals: Array) -> Mask:
    """(g,) groups whose targets are all the same, up to rounding.

    From z (g, p), of which the first says how large the targets are, and residual sums of squares.

    Examples
    --------
    >>> have_equal_targets(np.array([[2.0, 0.0], [2.0, 0.5]]), np.zeros(2)).tolist()
    [True, False]
    """
    differences = np.sum(np.square(moments[:, 1:]), axis=1) + residuals
    return np.asarray(differences <= ROUNDING * np.square(moments[:, 0]))


def _lengthen(array: AnyArray, length: int) -> AnyArray:
    longer: AnyArray = np.zeros((length, *array.shape[1:]), dtype=array.dtype)
    longer[: len(array)] = array
    return longer
