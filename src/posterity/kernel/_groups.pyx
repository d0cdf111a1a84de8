# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Checked binding of posterity_groups.h: many factors, each with rows of its own, without the GIL."""

from itertools import pairwise

import numpy as np

cimport numpy as cnp

cnp.import_array()

cdef extern from "posterity_groups.h" nogil:
    enum: PK_LINE
    enum: PK_PANEL
    ctypedef struct pk_shape:
        Py_ssize_t p, k, q, ld
    ctypedef struct pk_rows:
        const double *X
        const double *Y
        const double *weights
        const double *discounts
        double *held
        Py_ssize_t n, columns, x_stride, x_step
        int intercept
    ctypedef struct pk_grouped:
        pk_rows all
        const int *order
        const Py_ssize_t *offset
        const Py_ssize_t *slot
        double discount
    ctypedef struct pk_group_sums:
        double *count
        double *seen
        long long *last
        long long clock
    ctypedef struct pk_predictions_out:
        double *error
        double *leverage
        double *residual_gain
        double *count_gain
    Py_ssize_t PK_GATHERING_SIZE(pk_shape shape)
    Py_ssize_t PK_TRIANGLE_SIZE(pk_shape shape)
    Py_ssize_t PK_PACKED_SIZE(pk_shape shape)
    Py_ssize_t pk_number_keys(const long long *keys, Py_ssize_t first, Py_ssize_t n, int *numbers, long long *distinct, Py_ssize_t count, Py_ssize_t room, int *table, size_t mask)
    Py_ssize_t pk_number_range(const long long *keys, Py_ssize_t n, long long low, int *numbers, long long *distinct, int *table)
    size_t pk_place(const int *table, const long long *distinct, long long key, size_t mask)
    void pk_prefetch_place(const int *table, long long key, size_t mask)
    void pk_place_keys(const long long *distinct, Py_ssize_t count, int *table, size_t mask)
    int pk_count_rows(const int *numbers, Py_ssize_t first, Py_ssize_t last, Py_ssize_t groups, Py_ssize_t *counts)
    void pk_place_rows(const int *numbers, Py_ssize_t first, Py_ssize_t last, Py_ssize_t *next, int *order)
    int pk_learn_groups(double *data, double *buffer, const pk_grouped *grouped, Py_ssize_t first, Py_ssize_t last, pk_shape shape, pk_group_sums *tallies)
    void pk_predict_then_learn_groups(double *data, const double *priors, Py_ssize_t n_priors, double *buffer, const pk_grouped *grouped, Py_ssize_t first, Py_ssize_t last, pk_shape shape, pk_group_sums *tallies, const pk_predictions_out *outputs)
    void pk_stack_groups(const double *data, const Py_ssize_t *slot, double *posterior, const double *priors, Py_ssize_t n_priors, double *work, Py_ssize_t first, Py_ssize_t last, pk_shape shape)
    void pk_merge_groups(double *data, const double *other, const Py_ssize_t *slot, double *work, Py_ssize_t groups, pk_shape shape)
    void pk_predict_groups(const double *posterior, const double *newcomer, double *work, const pk_rows *rows, const Py_ssize_t *place, Py_ssize_t first, Py_ssize_t last, pk_shape shape, double *mean, double *leverage)
    void pk_solve_groups(const double *bank, double *T, Py_ssize_t size, pk_shape shape, double *coefficients)
    void pk_whiten_groups(const double *root, const double *rows, Py_ssize_t h, double *work, Py_ssize_t wide, Py_ssize_t first, Py_ssize_t last, Py_ssize_t p, double *white, double *log_determinants)


cdef double[::1] _aligned(Py_ssize_t size):
    cdef cnp.ndarray storage = np.zeros(size + 7)
    cdef Py_ssize_t offset = (-(<Py_ssize_t> cnp.PyArray_DATA(storage)) // 8) & 7
    return storage[offset:offset + size]


cdef pk_shape _shape(const double[:, ::1] bank, Py_ssize_t p) except *:
    """Check ``bank`` (size, q (q + 1) / 2), packed triangles of ``p`` coefficients, and return its shape."""
    cdef pk_shape shape
    shape.p, shape.q, shape.k = p, p + 1, 1
    shape.ld = (shape.q + PK_LINE - 1) // PK_LINE * PK_LINE
    if p < 0 or bank.shape[1] != PK_PACKED_SIZE(shape):
        raise ValueError(f"triangles of {p} coefficients are packed in {bank.shape[1]} numbers")
    return shape


cdef int _is_triangle(pk_shape shape, const double[:, ::1] triangle) except -1:
    if triangle.shape[0] != shape.q or triangle.shape[1] != shape.ld:
        raise ValueError("a prior's triangle does not have the shape of the others")
    return 0


cdef int _are_inside(const Py_ssize_t[::1] slots, Py_ssize_t size, Py_ssize_t least=0) except -1:
    if slots.shape[0] and not least <= np.min(slots) <= np.max(slots) < size:
        raise ValueError("a slot is outside the bank")
    return 0


cdef pk_rows _rows(pk_shape shape, const double[:, ::1] X, const double[::1] y, const double[::1] weights,
                   bint intercept) except *:
    cdef pk_rows rows
    rows.n, rows.columns, rows.x_stride, rows.intercept = X.shape[0], X.shape[1], X.shape[1], intercept
    rows.x_step = 1
    rows.X, rows.Y, rows.weights, rows.discounts, rows.held = NULL, NULL, NULL, NULL, NULL
    if rows.columns + rows.intercept != shape.p:
        raise ValueError(f"X has {rows.columns} columns: the triangles expect {shape.p - rows.intercept}")
    if y is not None and y.shape[0] != rows.n:
        raise ValueError(f"y has length {y.shape[0]}: expected {rows.n}")
    if weights is not None and weights.shape[0] != rows.n:
        raise ValueError(f"weights has length {weights.shape[0]}: expected {rows.n}")
    if rows.n > 0:
        if rows.columns > 0:
            rows.X = &X[0, 0]
        if y is not None:
            rows.Y = &y[0]
        if weights is not None:
            rows.weights = &weights[0]
    return rows


def number_keys(const long long[::1] keys):
    """Number keys by first appearance: numbers (n,), and the distinct keys."""
    cdef Py_ssize_t n = keys.shape[0], room = 1024, known
    if n > 2**31 - 2:
        raise ValueError(f"{n} rows at once: learn at most 2,147,483,646 in one call")
    cdef int[::1] numbers = np.empty(n, dtype=np.int32), table
    cdef long long[::1] distinct = np.empty(room, dtype=np.int64)
    cdef Py_ssize_t first = 0, count = 0
    if n == 0:
        return np.asarray(numbers), np.asarray(distinct)[:0]
    while True:
        table = np.full(4 * room, -1, dtype=np.int32)
        with nogil:
            pk_place_keys(&distinct[0], count, &table[0], 4 * room - 1)
            known = pk_number_keys(&keys[0], first, n, &numbers[0], &distinct[0], count, room, &table[0], 4 * room - 1)
        if known >= 0:
            return np.asarray(numbers), np.asarray(distinct)[:known]
        first, count, room = -1 - known, room, 4 * room
        distinct = np.concatenate([distinct, np.empty(room - count, dtype=np.int64)])


def number_range(const long long[::1] keys, long long low, Py_ssize_t length):
    """Number keys by first appearance that all are from ``low`` to below ``low + length``, which is not checked."""
    cdef Py_ssize_t n = keys.shape[0], known
    cdef int[::1] numbers = np.empty(n, dtype=np.int32), table = np.full(length, -1, dtype=np.int32)
    cdef long long[::1] distinct = np.empty(min(length, n), dtype=np.int64)
    if n == 0 or n > 2**31 - 2:
        raise ValueError(f"{n} rows at once: learn at most 2,147,483,646 in one call")
    with nogil:
        known = pk_number_range(&keys[0], n, low, &numbers[0], &distinct[0], &table[0])
    return np.asarray(numbers), np.asarray(distinct)[:known]


def count_rows(const int[::1] numbers, Py_ssize_t first, Py_ssize_t last, Py_ssize_t groups):
    """Count the rows, from first to last, of each of ``groups`` groups."""
    cdef Py_ssize_t[::1] counts = np.zeros(groups, dtype=np.intp)
    cdef int failed = 0
    if not 0 <= first <= last <= numbers.shape[0]:
        raise ValueError(f"there are no rows {first} to {last}")
    if first < last:
        if groups == 0:
            raise ValueError("a row is of a group that has no slot")
        with nogil:
            failed = pk_count_rows(&numbers[0], first, last, groups, &counts[0])
    if failed:
        raise ValueError("a row is of a group that has no slot")
    return np.asarray(counts)


cdef class KeyTable:
    """Distinct whole numbers in the order in which they came, and the place of each: 8 bytes a key, and 8 to 16 more
    once one is looked up.

    Examples
    --------
    >>> table = KeyTable(np.array([7, 3]))
    >>> table.places(np.array([3, 5, 7]), True).tolist(), table.keys.tolist()
    ([1, 2, 0], [7, 3, 5])
    """

    cdef long long[::1] stored
    cdef int[::1] table
    cdef Py_ssize_t size, hashed

    def __init__(self, keys):
        self.stored = np.ascontiguousarray(keys, dtype=np.int64)
        self.size, self.hashed = self.stored.shape[0], 0
        if self.size > 2**30:
            raise ValueError(f"{self.size} keys: at most 1,073,741,824 can be told apart")

    def __reduce__(self):
        return KeyTable, (self.keys.copy(),)

    def __len__(self):
        return self.size

    @property
    def keys(self):
        """(size,) the keys, a view."""
        return np.asarray(self.stored)[:self.size]

    @property
    def is_distinct(self):
        """True if no key is here twice."""
        cdef Py_ssize_t k
        self._hash()
        for k in range(self.size):
            if self.table[<Py_ssize_t> self._at(self.stored[k])] != k:
                return False
        return True

    cdef int _hash(self) except -1:
        """Put all keys into the table, which is at most half full."""
        cdef Py_ssize_t length = 16, k
        while length < 2 * self.size:
            length *= 2
        if self.table is None or self.table.shape[0] < length:
            self.table = np.full(length, -1, dtype=np.int32)
            self.hashed = 0
        for k in range(self.hashed, self.size):
            self.table[<Py_ssize_t> self._at(self.stored[k])] = <int> k
        self.hashed = self.size
        return 0

    cdef size_t _at(self, long long key) noexcept:
        return pk_place(&self.table[0], &self.stored[0], key, <size_t> self.table.shape[0] - 1)

    cdef int _add(self, long long key) except -1:
        if self.size == self.stored.shape[0]:
            longer = np.empty(max(2 * self.size, 16), dtype=np.int64)
            longer[:self.size] = self.stored[:self.size]
            self.stored = longer
        self.stored[self.size] = key
        self.size += 1
        if 2 * self.size > self.table.shape[0]:
            self._hash()
        else:
            self.table[<Py_ssize_t> self._at(key)] = <int> (self.size - 1)
            self.hashed = self.size
        return 0

    def place(self, long long key):
        """Return the place of a key, -1 where it is not here."""
        self._hash()
        return self.table[<Py_ssize_t> self._at(key)] if self.size else -1

    def places(self, const long long[::1] keys, bint new):
        """Places (n,) of distinct keys; those that are not here get one if ``new``, or -1."""
        cdef Py_ssize_t[::1] places = np.empty(keys.shape[0], dtype=np.intp)
        cdef Py_ssize_t i
        self._hash()
        if self.stored.shape[0] == 0:
            self.stored = np.empty(16, dtype=np.int64)
        for i in range(keys.shape[0]):
            if i + 8 < keys.shape[0]:
                pk_prefetch_place(&self.table[0], keys[i + 8], <size_t> self.table.shape[0] - 1)
            places[i] = self.table[<Py_ssize_t> self._at(keys[i])]
            if places[i] < 0 and new:
                self._add(keys[i])
                places[i] = self.size - 1
        return np.asarray(places)

    def cut(self, Py_ssize_t size):
        """Drop all keys but the first ``size``."""
        if size < self.size:
            self.size, self.hashed, self.table = size, 0, None


cdef class SortedRows:
    """Rows in the order of their groups, those of each as they came. ``slots`` says where each group is.

    ``counts`` (parts, groups) has the rows of each group in each of several runs of rows, which
    :meth:`place` then has to put in their order.
    """

    cdef readonly Py_ssize_t groups
    cdef readonly int[::1] order
    cdef Py_ssize_t[::1] offset, slots
    cdef Py_ssize_t[:, ::1] next

    def __init__(self, counts, Py_ssize_t[::1] slots):
        parts, self.groups = counts.shape
        if slots.shape[0] != self.groups:
            raise ValueError(f"there are {slots.shape[0]} slots for {self.groups} groups")
        self.slots = slots
        self.offset = np.concatenate([[0], np.cumsum(counts.sum(axis=0))]).astype(np.intp)
        self.next = np.asarray(self.offset)[:self.groups] + np.cumsum(counts, axis=0) - counts
        self.order = np.empty(self.offset[self.groups], dtype=np.int32)

    def place(self, const int[::1] numbers, Py_ssize_t first, Py_ssize_t last, Py_ssize_t part):
        """Put rows first to last, which are those of a part that was counted, in their places."""
        if not 0 <= first <= last <= numbers.shape[0] == self.order.shape[0] or not 0 <= part < self.next.shape[0]:
            raise ValueError(f"there are no rows {first} to {last} in part {part}")
        if first < last:
            with nogil:
                pk_place_rows(&numbers[0], first, last, &self.next[part, 0], &self.order[0])

    def shares(self, Py_ssize_t count):
        """Cut the groups into ``count`` runs of about as many rows."""
        total = len(self.order)
        within = [total * part // count for part in range(1, count)]
        edges = [0, *np.searchsorted(self.offset, within).tolist(), self.groups]
        return list(pairwise(edges))

    cdef pk_grouped pointers(self, pk_rows rows, double discount, Py_ssize_t size, object share) except *:
        cdef pk_grouped grouped
        grouped.all, grouped.discount = rows, discount
        grouped.order = &self.order[0] if self.order.shape[0] else NULL
        grouped.offset = &self.offset[0]
        grouped.slot = &self.slots[0] if self.groups else NULL
        if self.order.shape[0] != rows.n:
            raise ValueError(f"{self.order.shape[0]} rows were sorted, but there are {rows.n}")
        if not 0 <= share[0] <= share[1] <= self.groups:
            raise ValueError(f"there are no groups {share[0]} to {share[1]}")
        if self.groups and (np.max(self.slots) >= size or np.min(self.slots) < 0):
            raise ValueError("a slot is outside the bank")
        return grouped


cdef pk_group_sums _tallies(arrays, Py_ssize_t size) except *:
    cdef pk_group_sums tallies
    cdef double[::1] count = arrays[0], seen = arrays[1]
    cdef long long[::1] last = arrays[2]
    if not size <= min(count.shape[0], seen.shape[0], last.shape[0]) or size == 0:
        raise ValueError("the tallies are not as long as the bank")
    tallies.count, tallies.seen, tallies.last, tallies.clock = &count[0], &seen[0], &last[0], arrays[3]
    return tallies


def learn_groups(double[:, ::1] bank, SortedRows order, const double[:, ::1] X, const double[::1] y,
                 const double[::1] weights, bint intercept, double discount, tallies, share):
    """Learn each row in the packed triangle of its group, in place; ``tallies`` are (count, seen, last, clock).

    ``share`` (first, last) limits it to these groups. Before each row of a group but the first, what its
    triangle holds is multiplied by ``discount``. Raises ``FloatingPointError``, with the bank spoilt, for
    rows that are not finite or too large to square.
    """
    cdef pk_shape shape = _shape(bank, X.shape[1] + intercept)
    cdef pk_rows rows = _rows(shape, X, y, weights, intercept)
    cdef pk_group_sums counts = _tallies(tallies, bank.shape[0])
    cdef pk_grouped grouped = order.pointers(rows, discount, bank.shape[0], share)
    cdef double[::1] buffer = _aligned(PK_GATHERING_SIZE(shape))
    cdef Py_ssize_t first = share[0], last = share[1]
    cdef int failed = 0
    if first < last:
        with nogil:
            failed = pk_learn_groups(&bank[0, 0], &buffer[0], &grouped, first, last, shape, &counts)
    if failed:
        raise FloatingPointError("a row holds NaN, infinity or a number beyond 1e150, which can't be squared: "
                                 "leave it out, or use larger units, so that numbers are smaller")


def predict_then_learn_groups(double[:, ::1] bank, const double[:, :, ::1] priors, SortedRows order, const double[:, ::1] X,
                const double[::1] y, const double[::1] weights, bint intercept, double discount, tallies, share, outputs):
    """Learn as ``learn_groups`` does, and predict each row before it is learned, the group's prior, of ``priors`` (k, q, ld),
    stacked on its rows: slot s has prior s, or the last one.

    ``outputs`` (4, n) is filled with its error and leverage, and by how much it raises the group's residual sum of
    squares and its count; the last is left as it is without weights and discount.
    """
    cdef pk_shape shape = _shape(bank, X.shape[1] + intercept)
    cdef pk_rows rows = _rows(shape, X, y, weights, intercept)
    cdef pk_group_sums counts = _tallies(tallies, bank.shape[0])
    cdef pk_grouped grouped = order.pointers(rows, discount, bank.shape[0], share)
    cdef double[::1] buffer = _aligned(PK_GATHERING_SIZE(shape))
    cdef double[:, :] predictions = outputs
    cdef pk_predictions_out pointers
    cdef Py_ssize_t first = share[0], last = share[1]
    if priors.shape[0] == 0:
        raise ValueError("there must be a prior")
    _is_triangle(shape, priors[0])
    if predictions.shape[0] != 4 or predictions.shape[1] != rows.n or (rows.n > 1 and predictions.strides[1] != sizeof(double)):
        raise ValueError(f"outputs has shape ({predictions.shape[0]}, {predictions.shape[1]}): expected (4, {rows.n})")
    if first < last:
        pointers.error, pointers.leverage = &predictions[0, 0], &predictions[1, 0]
        pointers.residual_gain, pointers.count_gain = &predictions[2, 0], &predictions[3, 0]
        with nogil:
            pk_predict_then_learn_groups(&bank[0, 0], &priors[0, 0, 0], priors.shape[0], &buffer[0], &grouped, first, last,
                                         shape, &counts, &pointers)


def stack_groups(const double[:, ::1] bank, const Py_ssize_t[::1] slots, const double[:, :, ::1] priors, share,
                 double[:, ::1] posterior):
    """Packed posteriors of the groups at slots[first..last) of ``share``: priors[slot], or the last, and the rows."""
    cdef pk_shape shape = _shape(bank, priors.shape[1] - 1)
    cdef double[::1] work = _aligned(2 * PK_TRIANGLE_SIZE(shape))
    cdef Py_ssize_t first = share[0], last = share[1]
    _shape(posterior, shape.p)
    _are_inside(slots, bank.shape[0])
    if not 0 <= first <= last <= slots.shape[0] == posterior.shape[0] or priors.shape[0] == 0:
        raise ValueError(f"there are no slots {first} to {last}")
    if first < last:
        _is_triangle(shape, priors[0])
        with nogil:
            pk_stack_groups(&bank[0, 0], &slots[0], &posterior[0, 0], &priors[0, 0, 0], priors.shape[0], &work[0],
                            first, last, shape)


def merge_groups(double[:, ::1] bank, const double[:, ::1] other, const Py_ssize_t[::1] slots, Py_ssize_t p):
    """Append each packed triangle of ``other`` to that of its slot, in place."""
    cdef pk_shape shape = _shape(bank, p)
    cdef double[::1] work = _aligned(2 * PK_TRIANGLE_SIZE(shape))
    _shape(other, p)
    _are_inside(slots, bank.shape[0])
    if slots.shape[0] != other.shape[0]:
        raise ValueError(f"there are {other.shape[0]} triangles, and {slots.shape[0]} slots")
    if other.shape[0]:
        with nogil:
            pk_merge_groups(&bank[0, 0], &other[0, 0], &slots[0], &work[0], slots.shape[0], shape)


def predict_groups(const double[:, ::1] posterior, const double[:, ::1] newcomer, const double[:, ::1] X,
                   const Py_ssize_t[::1] places, bint intercept, share, double[::1] mean, double[::1] leverage):
    """Mean and leverage, filled in, of rows first to last of ``share``, each under the packed posterior at its place.

    Place -1 is that of the newcomer's triangle (q, ld).
    """
    cdef pk_shape shape = _shape(posterior, X.shape[1] + intercept)
    cdef pk_rows rows = _rows(shape, X, None, None, intercept)
    cdef double[::1] work = _aligned(PK_TRIANGLE_SIZE(shape) + shape.ld)
    cdef Py_ssize_t first = share[0], last = share[1]
    cdef const double *bank = &posterior[0, 0] if posterior.shape[0] else NULL
    _is_triangle(shape, newcomer)
    if not (places.shape[0] == mean.shape[0] == leverage.shape[0] == rows.n and 0 <= first <= last <= rows.n):
        raise ValueError(f"places, mean and leverage must have length {rows.n}")
    if first < last:
        _are_inside(places, posterior.shape[0], -1)
        with nogil:
            pk_predict_groups(bank, &newcomer[0, 0], &work[0], &rows, &places[0], first, last, shape, &mean[0],
                              &leverage[0])


def solve_groups(const double[:, ::1] bank, Py_ssize_t p):
    """Coefficients (size, p) of the packed triangles; those that are not determined are 0."""
    cdef pk_shape shape = _shape(bank, p)
    cdef double[:, ::1] coefficients = np.zeros((bank.shape[0], p))
    cdef double[::1] work = _aligned(PK_TRIANGLE_SIZE(shape))
    if bank.shape[0] and p:
        with nogil:
            pk_solve_groups(&bank[0, 0], &work[0], bank.shape[0], shape, &coefficients[0, 0])
    return np.asarray(coefficients)


def whiten_groups(const double[:, ::1] root, const double[:, :, ::1] rows, share, double[:, :, ::1] white,
                  double[::1] log_determinants):
    """Rows [H, z] of each group with its coefficients integrated under the prior with this root (p, p).

    Fills in white (groups, h, p + 1), [W, o] with o = W m + noise of variance 1 where m is the prior's
    mean, and log |P'P + H'H| (groups,).
    """
    cdef Py_ssize_t p = root.shape[0], h = rows.shape[1], first = share[0], last = share[1]
    cdef Py_ssize_t wide = (2 * p + 1 + PK_LINE - 1) // PK_LINE * PK_LINE
    cdef double[::1] work = _aligned((p + h) * wide + 1)
    if root.shape[1] != p or rows.shape[2] != p + 1:
        raise ValueError(f"rows have {rows.shape[2]} columns: expected {p + 1}")
    if not (white.shape[0] == rows.shape[0] == log_determinants.shape[0] and white.shape[1] == h
            and white.shape[2] == p + 1 and 0 <= first <= last <= rows.shape[0]):
        raise ValueError("white and log_determinants do not have the shape of the rows")
    if first < last and p > 0 and h > 0:
        with nogil:
            pk_whiten_groups(&root[0, 0], &rows[0, 0, 0], h, &work[0], wide, first, last, p, &white[0, 0, 0],
                             &log_determinants[0])
