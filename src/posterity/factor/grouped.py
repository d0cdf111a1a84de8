"""A factor for each of many groups, in one growing block of memory (one target)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from posterity import kernel
from posterity.factor.factor import Factor
from posterity.factor.grouped_rows import GroupedRows, Slots, shares, sorted_rows
from posterity.factor.parallel import partitions, run_together

Array = NDArray[np.float64]

# Shares of what is known of a direction: beyond rounding, and no more than rounding.
FOREIGN, EXHAUSTED = 1e-6, 1e-11


class NotInGroupError(ValueError):
    """Rows to remove can't have been learned by their group; ``row`` (from 0) is the last."""

    def __init__(self, row: int) -> None:
        super().__init__(f"row {row} is not in the factor of its group: it can't be removed")
        self.row = row


class GroupBank:
    """The triangles of the rows of each group, and how much they weigh.

    Beside them there may be a second triangle for each: the same rows on top of a prior, which
    :meth:`stack` makes and :meth:`tell` keeps up.

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
    >>> bank.count.tolist(), kernel.solve_groups(bank.triangles).ravel().tolist()
    ([1.0, 2.0], [5.0, 3.0])
    """

    __slots__ = ("_arrays", "_posterior", "clock", "size")

    def __init__(self, n_coefficients: int) -> None:
        q = n_coefficients + 1
        shape = (0, q, kernel.leading_dimension(q))
        self._arrays: list[NDArray[Any]]
        self._arrays = [np.zeros(shape), np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.int64)]
        self._posterior: Array | None = None
        self.size = 0
        self.clock = 0

    def __getstate__(self) -> dict[str, Any]:
        arrays = [array[: self.size] for array in self._arrays]
        posterior = None if self._posterior is None else self.posterior
        return {"arrays": arrays, "posterior": posterior, "clock": self.clock}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._arrays = [np.array(array) for array in state["arrays"]]
        posterior = state["posterior"]
        self._posterior = None if posterior is None else np.array(posterior)
        self.size, self.clock = len(self._arrays[0]), state["clock"]

    # ---- views ---------------------------------------------------------------------------------

    @property
    def n_coefficients(self) -> int:
        """p, intercept included."""
        return self._arrays[0].shape[1] - 1

    @property
    def triangles(self) -> Array:
        """(size, q, leading dimension), a view: each group's rows, as ``Factor.triangle``."""
        return self._arrays[0][: self.size]

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

    @property
    def stacked(self) -> bool:
        """Whether there are posterior triangles."""
        return self._posterior is not None

    @property
    def posterior(self) -> Array:
        """(size, q, leading dimension), a view: prior and rows."""
        assert self._posterior is not None
        return self._posterior[: self.size]

    def residuals(self, which: slice | Slots = slice(None)) -> Array:
        """Residual sums of squares of the rows alone."""
        root = self.triangles[which, -1, self.n_coefficients]
        return root * root

    def rows(self, which: slice | Slots = slice(None)) -> Array:
        """(size, p, p + 1) triangles [R, z] of the rows, a copy."""
        p = self.n_coefficients
        return np.ascontiguousarray(self.triangles[which, :p, : p + 1])

    # ---- room ----------------------------------------------------------------------------------

    def grow(self, size: int, newcomer: Array | None = None) -> None:
        """Make room for ``size`` groups; the new ones know nothing, or what ``newcomer`` does."""
        room = len(self._arrays[0])
        if size > room:
            self.reserve(max(size, 2 * room, 4))
        if self._posterior is not None and size > self.size:
            assert newcomer is not None
            self._posterior[self.size : size] = newcomer
        self.size = max(self.size, size)

    def reserve(self, size: int) -> None:
        """Make room for ``size`` groups, which are still to come."""
        if size > len(self._arrays[0]):
            self._arrays = [_longer(array, size) for array in self._arrays]
            if self._posterior is not None:
                self._posterior = _longer(self._posterior, size)

    def keep(self, which: NDArray[np.bool_]) -> None:
        """Drop the groups for which ``which`` (size,) is False; the rest stay in order."""
        self._arrays = [array[: self.size][which] for array in self._arrays]
        if self._posterior is not None:
            self._posterior = self.posterior[which]
        self.size = len(self._arrays[0])

    def taken(self, which: NDArray[np.bool_]) -> GroupBank:
        """A bank of copies of the groups for which ``which`` (size,) is True, without a prior."""
        some = GroupBank(self.n_coefficients)
        some._arrays = [array[: self.size][which] for array in self._arrays]
        some.size, some.clock = len(some._arrays[0]), self.clock
        return some

    def copy(self) -> GroupBank:
        """An independent bank with the same content."""
        twin = GroupBank.__new__(GroupBank)
        twin.__setstate__(self.__getstate__())
        return twin

    # ---- learning ------------------------------------------------------------------------------

    def learn(self, rows: GroupedRows, discount: float = 1.0) -> None:
        """Learn rows, of groups in the bank; posterior triangles are dropped.

        Before each row of a group but its first, what is known of the group weighs ``discount`` of
        what it did.
        """
        self._posterior = None
        order = sorted_rows(rows.numbers, rows.slots)
        tallies = self._tallies
        X, y, weights, intercept = rows.X, rows.y, rows.weights, rows.intercept

        def learn(share: tuple[int, int]) -> None:
            kernel.learn_groups(
                self._arrays[0], order, X, y, weights, intercept, discount, tallies, share
            )

        run_together(learn, order.shares(len(partitions(len(rows), self.n_coefficients))))
        self.clock += len(rows)

    def count_row(self, slot: int, weight: float) -> None:
        """Account for a row that was appended to the triangles of a group."""
        self.clock += 1
        self.count[slot] += weight
        self.seen[slot] += weight
        self.last[slot] = self.clock

    def tell(
        self, rows: GroupedRows, priors: Array, discount: float = 1.0, out: Array | None = None
    ) -> Array:
        """Learn rows in both triangles; (4, n) says what each row was before it was learned.

        Error, leverage, and by how much the row raises residual sum of squares and count of its
        group; the last is not told where each row raises it by 1. ``priors`` (k, q, ld): of the
        first k - 1 slots, and of all others.
        """
        order = sorted_rows(rows.numbers, rows.slots)
        tallies = self._tallies
        X, y, weights, intercept = rows.X, rows.y, rows.weights, rows.intercept
        told = np.empty((4, len(rows))) if out is None else out
        posterior = self._posterior
        assert posterior is not None

        def learn(share: tuple[int, int]) -> None:
            kernel.tell_groups(
                self._arrays[0],
                posterior,
                priors,
                order,
                X,
                y,
                weights,
                intercept,
                discount,
                tallies,
                share,
                told,
            )

        run_together(learn, order.shares(len(partitions(len(rows), self.n_coefficients))))
        self.clock += len(rows)
        return told

    def stacked_on(self, priors: Array) -> GroupBank:
        """The same bank with posterior triangles: the rows on ``priors``, as in :meth:`tell`."""
        whole = np.empty_like(self._arrays[0])
        posterior = whole[: self.size]

        def stack(share: tuple[int, int]) -> None:
            kernel.stack_groups(self.triangles, posterior, priors, share)

        run_together(stack, shares(self.size, self.n_coefficients))
        twin = self._twin()
        twin._posterior = whole
        return twin

    def some_stacked_on(self, priors: Array, slots: Slots) -> tuple[GroupBank, Slots]:
        """A bank that has posterior triangles at least of the groups at ``slots`` (-1: of none).

        Also where those are in it. Of few slots it costs as many triangles.
        """
        if len(slots) >= self.size:
            return self.stacked_on(priors), slots
        distinct, places = np.unique(slots, return_inverse=True)
        strangers = int(np.searchsorted(distinct, 0))
        distinct = distinct[strangers:]
        own = distinct[distinct < len(priors) - 1]
        some = GroupBank(self.n_coefficients)
        some._arrays = [array[distinct] for array in self._arrays]
        some.size, some.clock = len(distinct), self.clock
        priors = np.concatenate([priors[own], priors[-1:]])
        return some.stacked_on(priors), places.reshape(-1) - strangers

    def _twin(self) -> GroupBank:
        """A bank with the same arrays."""
        twin = GroupBank.__new__(GroupBank)
        twin._arrays, twin._posterior = list(self._arrays), self._posterior
        twin.size, twin.clock = self.size, self.clock
        return twin

    def image(self, slots: Slots) -> BankImage:
        """What is needed to undo changes of the groups at ``slots``, and of new ones."""
        arrays = self._arrays if self._posterior is None else [*self._arrays, self._posterior]
        return BankImage(self, self._twin(), slots, [array[slots] for array in arrays])

    def drop_posterior(self) -> None:
        """Forget the posterior triangles, which no longer fit."""
        self._posterior = None

    def remove(self, rows: GroupedRows) -> None:
        """Unlearn rows; posterior triangles are dropped.

        Raises :class:`NotInGroupError`, and changes nothing, when a row can't have been learned.
        """
        slots = rows.slots
        removed = np.bincount(rows.numbers, rows.weights, minlength=len(slots))
        left = self.count[slots] - removed
        left[np.abs(left) <= 1e-12 * np.maximum(removed, self.count[slots])] = 0.0
        triangles = self.triangles[slots]
        stacked = rows.stacked()
        order = np.argsort(rows.numbers, kind="stable")
        ends = np.cumsum(np.bincount(rows.numbers, minlength=len(slots)))
        for group, some in enumerate(np.split(order, ends[:-1])):
            without = _without(triangles[group], stacked[some], empty=left[group] == 0.0)
            if without is None or left[group] < 0.0:
                raise NotInGroupError(int(some[-1]))
            triangles[group] = without
        self.triangles[slots] = triangles
        self.count[slots] = left
        self.seen[slots] = np.where(left == 0.0, 0.0, self.seen[slots] - removed)
        self._posterior = None

    def merge(self, other: GroupBank, slots: Slots) -> None:
        """Learn all rows of ``other``, whose groups are at ``slots`` here; no posterior is left."""
        self._posterior = None
        kernel.merge_groups(self.triangles, other.triangles, slots)
        self.count[slots] += other.count
        self.seen[slots] += other.seen
        self.last[slots] = np.maximum(self.last[slots], other.last)
        self.clock = max(self.clock, other.clock)

    # ---- reading -------------------------------------------------------------------------------

    def predict(
        self, X: Array, slots: Slots, newcomer: Array, *, intercept: bool
    ) -> tuple[Array, Array]:
        """Means (n,) and leverages (n,) under the posterior of each row's slot.

        Slot -1 is a group that is not in the bank: ``newcomer``'s.
        """
        mean, leverage = np.empty(len(X)), np.empty(len(X))
        posterior = self.posterior

        def predict(share: tuple[int, int]) -> None:
            kernel.predict_groups(posterior, newcomer, X, slots, intercept, share, mean, leverage)

        run_together(predict, shares(len(X), self.n_coefficients, rows_each=1))
        return mean, leverage

    def coefficients(self) -> Array:
        """(size, p) posterior means."""
        return kernel.solve_groups(self.posterior)


@dataclass(frozen=True)
class BankImage:
    """A bank as it was: its arrays, and what was in those rows that may change."""

    bank: GroupBank
    before: GroupBank
    slots: Slots
    rows: list[NDArray[Any]]

    def restore(self) -> None:
        """Put all of it back."""
        bank, before = self.bank, self.before
        posterior = [] if before._posterior is None else [before._posterior]
        for array, rows in zip([*before._arrays, *posterior], self.rows, strict=True):
            array[before.size :] = 0
            array[self.slots] = rows
        bank._arrays, bank._posterior = list(before._arrays), before._posterior
        bank.size, bank.clock = before.size, before.clock


def _without(triangle: Array, rows: Array, *, empty: bool) -> Array | None:
    """What is left of a triangle (q, ld) without ``rows`` (k, q); None if they can't be in it.

    With the rows as B T and B = U diag(s) V', what is left is T' V (1 - s^2) V' T. All rows go at
    once: a group may have as many as it has coefficients, and rotating them out one after the
    other would lose more digits with each.
    """
    q = len(triangle)
    T = triangle[np.diag(triangle) != 0.0, :q]
    kept = np.flatnonzero(np.diag(triangle))
    B = solve_triangular(T[:, kept], rows[:, kept].T, trans="T", check_finite=False).T
    size = np.sqrt(np.sum(T**2, axis=0))
    if (np.abs(rows - B @ T) > FOREIGN * size).any():
        return None
    if len(B) > len(kept):
        B = np.linalg.qr(B, mode="r")
    _, s, V = np.linalg.svd(B, full_matrices=True)
    share = np.ones(len(kept))
    share[: len(s)] = (1.0 - s) * (1.0 + s)
    if (share < -FOREIGN).any() or (empty and (share > FOREIGN).any()):
        return None
    alive = share > EXHAUSTED
    left = Factor(q - 1)
    if not empty:
        remains = np.sqrt(share[alive])[:, None] * (V[alive] @ T)
        left.append(remains[:, :-1], np.ascontiguousarray(remains[:, -1:]))
    return left.triangle


def whitened(root: Array, rows: Array) -> tuple[Array, Array]:
    """Rows (g, h, p + 1) of each group, its coefficients integrated under a prior.

    The prior has the root ``root`` (p, p), upper triangular. Returns [W, o] (g, h, p + 1), where
    ``o = W m + noise`` of variance 1, m the prior's mean, and log |root'root + R'R| (g,).

    Examples
    --------
    >>> white, log_determinants = whitened(np.array([[1.0]]), np.array([[[2.0, 6.0]]]))
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


def _longer(array: NDArray[Any], length: int) -> NDArray[Any]:
    longer: NDArray[Any] = np.zeros((length, *array.shape[1:]), dtype=array.dtype)
    longer[: len(array)] = array
    return longer


__all__ = ["GroupBank", "NotInGroupError", "whitened"]
