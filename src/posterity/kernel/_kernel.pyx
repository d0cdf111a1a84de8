# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Checked binding of posterity_kernel.h. Every loop over rows runs without the GIL."""

import numpy as np
from scipy.linalg import cython_blas

from posterity.kernel.columns import Columns

cimport numpy as cnp
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer
from libc.math cimport INFINITY, sqrt
from libc.string cimport memcpy, memset

cnp.import_array()

include "_structures.pxi"

cdef extern from "posterity_kernel.h" nogil:
    Py_ssize_t PK_APPEND_SIZE(pk_shape shape)
    void pk_learn_rows(double *T, double *buffer, const pk_rows *rows, pk_shape shape, const pk_before *before)
    void pk_predict_rows(const double *T, double *buffer, const pk_rows *rows, pk_shape shape, double *mean, double *leverage)
    void pk_append_block(double *T, double *buffer, const pk_rows *rows, pk_shape shape)
    Py_ssize_t pk_remove_rows(double *T, double *buffer, const pk_rows *rows, pk_shape shape, double *least)
    int pk_learn_stabilized(double *T, double *buffer, double *flight, const pk_rows *rows, pk_shape shape, const double *prior, const pk_before *before)
    void pk_learn_directional(double *T, double *buffer, const pk_rows *rows, pk_shape shape, const double *prior, const pk_before *before)
    void pk_learn_random_walk(double *T, double *buffer, const pk_rows *rows, pk_shape shape, const pk_walk *walk, const pk_before *before)
    void pk_slide(double *T, double *buffer, double *flight, const pk_rows *rows, const double *prior, Py_ssize_t oldest, Py_ssize_t start, const Py_ssize_t *leave, pk_shape shape, const pk_before *before)
    void pk_append_triangle(double *T, double *buffer, const double *other, double root, pk_shape shape)
    void pk_learn_bank(double *bank, Py_ssize_t count, double *buffer, const pk_rows *rows, pk_shape shape, const pk_before *before)

# BLAS's routine for products of rows. SciPy's own binding holds the GIL, so that threads would take turns.
ctypedef void (*products_routine)(char *, char *, int *, int *, double *, double *, int *, double *, double *, int *) noexcept nogil
cdef object _dsyrk = cython_blas.__pyx_capi__["dsyrk"]
cdef products_routine dsyrk = <products_routine> PyCapsule_GetPointer(_dsyrk, PyCapsule_GetName(_dsyrk))

# So that no number of bytes overflows, of a triangle or of a panel as wide.
cdef Py_ssize_t MOST_COLUMNS = 1 << 24


def add_products(double[::1, :] total, rows):
    """Add the products of the columns of ``rows`` (n, q), in either order, to the upper triangle of ``total`` (q, q)."""
    cdef const double[:, :] values = rows
    cdef int n = <int> values.shape[0], q = <int> values.shape[1], leading
    cdef char upper = b"U", transposed = b"N"
    cdef double one = 1.0
    if total.shape[0] != q or total.shape[1] != q:
        raise ValueError(f"total has shape {(total.shape[0], total.shape[1])}: rows of {q} columns have {(q, q)} products")
    if n == 0 or q == 0:
        return
    if values.strides[1] == sizeof(double) and (n == 1 or values.strides[0] >= q * <Py_ssize_t> sizeof(double)):
        leading = max(q, <int> (values.strides[0] // sizeof(double)))
    elif values.strides[0] == sizeof(double) and (q == 1 or values.strides[1] >= n * <Py_ssize_t> sizeof(double)):
        leading, transposed = max(n, <int> (values.strides[1] // sizeof(double))), b"T"
    else:
        raise ValueError("neither the rows nor the columns lie side by side in memory: copy them first")
    with nogil:
        dsyrk(&upper, &transposed, &q, &n, &one, <double *> &values[0, 0], &leading, &one, &total[0, 0], &q)


def leading_dimension(Py_ssize_t q):
    """Return the doubles that a row of a triangle of size ``q`` takes, padding included."""
    return (q + PK_LINE - 1) // PK_LINE * PK_LINE


def empty_triangle(Py_ssize_t q):
    """Zeros (q, leading_dimension(q)), each row on a cache line of its own."""
    if not 0 <= q <= MOST_COLUMNS:
        raise ValueError(f"a triangle of {q} columns can't be made: the most is {MOST_COLUMNS}")
    cdef Py_ssize_t ld = leading_dimension(q)
    return _aligned(q * ld).reshape(q, ld)


cdef double *_address(double[::1] array) noexcept:
    return &array[0] if array.shape[0] else NULL


cdef pk_shape _shape(const double[:, ::1] triangle, Py_ssize_t n_targets) except *:
    cdef pk_shape shape
    shape.q, shape.ld, shape.k = triangle.shape[0], triangle.shape[1], n_targets
    shape.p = shape.q - shape.k
    if shape.k < 1 or shape.p < 0 or shape.ld != leading_dimension(shape.q):
        raise ValueError(
            f"triangle has shape ({shape.q}, {shape.ld}): expected (q, {leading_dimension(shape.q)}) "
            f"with q = p + {n_targets}"
        )
    return shape


cdef pk_rows _rows_without(pk_shape shape, Py_ssize_t n, Py_ssize_t columns, const double[:, ::1] Y,
                           const double[::1] weights, bint intercept) except *:
    """Check rows to be added, and their number of features."""
    cdef pk_rows rows
    rows.n, rows.columns, rows.intercept = n, columns, intercept
    rows.x_stride, rows.x_step, rows.each = 0, 0, NULL
    rows.X, rows.Y, rows.weights, rows.discounts, rows.held = NULL, NULL, NULL, NULL, NULL
    if rows.columns + rows.intercept != shape.p:
        raise ValueError(f"X has {rows.columns} columns: the triangle expects {shape.p - rows.intercept}")
    if Y is not None and (Y.shape[0] != rows.n or Y.shape[1] != shape.k):
        raise ValueError(f"Y has shape ({Y.shape[0]}, {Y.shape[1]}): expected ({rows.n}, {shape.k})")
    if weights is not None and weights.shape[0] != rows.n:
        raise ValueError(f"weights has length {weights.shape[0]}: expected {rows.n}")
    if rows.n > 0:
        if Y is not None:
            rows.Y = &Y[0, 0]
        if weights is not None:
            rows.weights = &weights[0]
    return rows


cdef pk_rows _rows(pk_shape shape, const double[:, :] X, const double[:, ::1] Y, const double[::1] weights,
                   bint intercept) except *:
    cdef pk_rows rows = _rows_without(shape, X.shape[0], X.shape[1], Y, weights, intercept)
    rows.x_stride = X.strides[0] // <Py_ssize_t> sizeof(double)
    rows.x_step = X.strides[1] // <Py_ssize_t> sizeof(double)
    if rows.n > 0 and rows.columns > 0:
        rows.X = &X[0, 0]
    return rows


# Of a dtype, without the order of its bytes, which is this machine's.
cdef dict KINDS = {
    "f8": PK_DOUBLE, "f4": PK_SINGLE, "b1": PK_UINT8, "i1": PK_INT8, "i2": PK_INT16, "i4": PK_INT32, "i8": PK_INT64,
    "u1": PK_UINT8, "u2": PK_UINT16, "u4": PK_UINT32, "u8": PK_UINT64,
}


cdef class _Source:
    """The memory that features of rows are read from: an array (n, m), or Columns; kept alive."""

    cdef const double[:, :] array
    cdef tuple arrays
    cdef pk_column *each
    cdef Py_ssize_t n

    def __cinit__(self, X):
        cdef cnp.ndarray array
        cdef Py_ssize_t place
        self.each = NULL
        if not isinstance(X, Columns):
            self.array = X
            return
        self.arrays, self.n = X.arrays, len(X)
        self.each = <pk_column *> PyMem_Malloc(max(len(self.arrays), 1) * sizeof(pk_column))
        if self.each == NULL:
            raise MemoryError()
        for place, array in enumerate(self.arrays):
            kind = KINDS.get(array.dtype.str[1:])
            if kind is None or not array.dtype.isnative or not array.flags.aligned or array.ndim != 1 or len(array) != self.n:
                raise ValueError(f"column {place} is {array.dtype}, {len(array)} of {self.n}: it can't be read as numbers")
            self.each[place].at = <const char *> cnp.PyArray_DATA(array)
            self.each[place].step = array.strides[0]
            self.each[place].kind = kind

    def __dealloc__(self):
        PyMem_Free(self.each)

    cdef pk_rows rows(self, pk_shape shape, const double[:, ::1] Y, const double[::1] weights, bint intercept) except *:
        if self.each == NULL:
            return _rows(shape, self.array, Y, weights, intercept)
        cdef pk_rows rows = _rows_without(shape, self.n, len(self.arrays), Y, weights, intercept)
        rows.x_step, rows.each = PK_EACH, self.each
        return rows


cdef class _Before:
    """Room for the prediction of each row before it is learned."""

    cdef double[:, ::1] error, residual
    cdef double[::1] leverage
    cdef pk_before pointers

    def __init__(self, Py_ssize_t n, Py_ssize_t k):
        self.error, self.residual, self.leverage = np.empty((n, k)), np.empty((n, k)), np.empty(n)
        self.pointers.error, self.pointers.leverage, self.pointers.residual = NULL, NULL, NULL
        if n > 0:
            self.pointers.error = &self.error[0, 0]
            self.pointers.leverage = &self.leverage[0]
            self.pointers.residual = &self.residual[0, 0]

    def arrays(self, Py_ssize_t first=0):
        error, leverage, residual = np.asarray(self.error), np.asarray(self.leverage), np.asarray(self.residual)
        return error[first:], leverage[first:], residual[first:]


cdef int _check_length(const double[::1] array, Py_ssize_t n, str name) except -1:
    if array is not None and array.shape[0] != n:
        raise ValueError(f"{name} has length {array.shape[0]}: expected {n}")
    return 0


cdef int _check_prior(double[:, ::1] triangle, double[:, ::1] prior) except -1:
    if prior.shape[0] != triangle.shape[0] or prior.shape[1] != triangle.shape[1]:
        raise ValueError("the prior's triangle does not have the shape of the triangle")
    return 0


def learn_rows(double[:, ::1] triangle, Py_ssize_t n_targets, const double[:, :] X, const double[:, ::1] Y,
               const double[::1] weights, bint intercept, const double[::1] discounts=None):
    """Append rows one by one, in place; all before row i is first discounted by discounts[i].

    Returns, for each row before it was learned, the prediction error (n, k), leverage (n,) and
    residual sum of squares (n, k).
    """
    cdef pk_shape shape = _shape(triangle, n_targets)
    cdef pk_rows rows = _rows(shape, X, Y, weights, intercept)
    cdef double[::1] buffer = _aligned(PK_FLIGHT_SIZE(shape)), held = np.zeros(shape.p + 1)
    cdef _Before before = _Before(rows.n, shape.k)
    _check_length(discounts, rows.n, "discounts")
    if rows.n > 0:
        if discounts is not None:
            rows.discounts, rows.held = &discounts[0], &held[0]
        with nogil:
            pk_learn_rows(&triangle[0, 0], &buffer[0], &rows, shape, &before.pointers)
    return before.arrays()


def learn_stabilized(double[:, ::1] triangle, Py_ssize_t n_targets, const double[:, :] X, const double[:, ::1] Y,
                     const double[::1] weights, bint intercept, const double[::1] discounts not None,
                     double[:, ::1] prior):
    """As ``learn_rows``, but the prior, the triangle's least content, is never discounted.

    Discounts are at least 1e-12. Between rows the prior weighs between 1 and about 1.2, at the end 1.
    """
    cdef pk_shape shape = _shape(triangle, n_targets)
    cdef pk_rows rows = _rows(shape, X, Y, weights, intercept)
    cdef double[::1] buffer = _aligned(PK_APPEND_SIZE(shape)), flight = _aligned(PK_FLIGHT_SIZE(shape))
    cdef _Before before = _Before(rows.n, shape.k)
    cdef int status = 0
    _check_length(discounts, rows.n, "discounts")
    _check_prior(triangle, prior)
    if rows.n > 0:
        rows.discounts = &discounts[0]
        with nogil:
            status = pk_learn_stabilized(&triangle[0, 0], &buffer[0], &flight[0], &rows, shape, &prior[0, 0],
                                         &before.pointers)
    if status:
        raise ArithmeticError("the triangle holds less than its prior")
    return before.arrays()


def learn_directional(double[:, ::1] triangle, Py_ssize_t n_targets, const double[:, :] X, const double[:, ::1] Y,
                      const double[::1] weights, bint intercept, const double[::1] discounts not None,
                      double[:, ::1] prior):
    """As ``learn_rows``, but only what is known beyond the prior of a row's own direction is discounted."""
    cdef pk_shape shape = _shape(triangle, n_targets)
    cdef pk_rows rows = _rows(shape, X, Y, weights, intercept)
    cdef double[::1] buffer = _aligned(4 * shape.ld)
    cdef _Before before = _Before(rows.n, shape.k)
    _check_length(discounts, rows.n, "discounts")
    _check_prior(triangle, prior)
    if rows.n > 0:
        rows.discounts = &discounts[0]
        with nogil:
            pk_learn_directional(&triangle[0, 0], &buffer[0], &rows, shape, &prior[0, 0], &before.pointers)
    return before.arrays()


cdef Py_ssize_t _check_slope(Py_ssize_t slope, pk_shape shape, bint intercept) except -2:
    if slope >= 0 and not intercept <= slope < shape.p:
        raise ValueError(f"slope is {slope}: there is no such coefficient of a feature")
    return slope


def learn_random_walk(double[:, ::1] triangle, Py_ssize_t n_targets, const double[:, :] X, const double[:, ::1] Y,
                    const double[::1] weights, bint intercept, const double[::1] elapsed not None,
                    const double[::1] variance not None, Py_ssize_t slope=-1):
    """As ``learn_rows``, but before row i the coefficients move by Normal(0, variance * elapsed[i]).

    A coefficient ``slope`` of a feature moves alone, where it is given, and its variance is relative to what is known
    of it, and to what the row tells of it: pk_slope_step.
    """
    cdef pk_shape shape = _shape(triangle, n_targets)
    cdef pk_rows rows = _rows(shape, X, Y, weights, intercept)
    cdef double[::1] buffer = _aligned(shape.ld), step = np.empty(shape.p + 1), work = _aligned(PK_WALK_SIZE(shape))
    cdef _Before before = _Before(rows.n, shape.k)
    cdef pk_walk walk
    _check_length(elapsed, rows.n, "elapsed")
    _check_length(variance, shape.p, "variance")
    if rows.n > 0 and shape.p > 0:
        walk.variance, walk.elapsed, walk.step, walk.work = &variance[0], &elapsed[0], &step[0], &work[0]
        walk.slope = _check_slope(slope, shape, intercept)
        with nogil:
            pk_learn_random_walk(&triangle[0, 0], &buffer[0], &rows, shape, &walk, &before.pointers)
    return before.arrays()


def slide(double[:, ::1] triangle, Py_ssize_t n_targets, const double[:, :] X, const double[:, ::1] Y,
          const double[::1] weights, bint intercept, Py_ssize_t start, const Py_ssize_t[::1] leave,
          double[:, ::1] prior):
    """Slide a window over rows start..n, in place; the triangle holds the prior and rows 0..start.

    Rows before leave[i] are out when row start + i is predicted, and rows before the last of ``leave``
    (n - start + 1,) at the end. Returns as ``learn_rows``, of the rows from ``start`` on.
    """
    cdef pk_shape shape = _shape(triangle, n_targets)
    cdef pk_rows rows = _rows(shape, X, Y, weights, intercept)
    cdef double[::1] buffer = _aligned(PK_APPEND_SIZE(shape)), flight = _aligned(PK_FLIGHT_SIZE(shape))
    cdef _Before before = _Before(rows.n, shape.k)
    _check_prior(triangle, prior)
    if not 0 <= start <= rows.n or leave.shape[0] != rows.n - start + 1:
        raise ValueError(f"leave has length {leave.shape[0]}: expected {rows.n - start + 1}")
    if np.any(np.diff(leave) < 0) or leave[0] < 0 or np.any(np.asarray(leave) > np.arange(start, rows.n + 1)):
        raise ValueError("leave must not decrease, nor reach beyond the rows that have come")
    if rows.n > start:
        with nogil:
            pk_slide(&triangle[0, 0], &buffer[0], &flight[0], &rows, &prior[0, 0], 0, start, &leave[0], shape,
                     &before.pointers)
    return before.arrays(start)


def learn_bank(double[:, :, ::1] bank, Py_ssize_t n_targets, const double[:, :] X, const double[:, ::1] Y,
               const double[::1] weights, bint intercept):
    """Learn one row, X (1, m), in each triangle of ``bank`` (b, q, ld), in place.

    Returns, for each triangle before the row, the error (b, k), leverage (b,) and residual (b, k).
    """
    cdef Py_ssize_t count = bank.shape[0]
    cdef _Before before = _Before(count, n_targets)
    if count == 0:
        return before.arrays()
    cdef pk_shape shape = _shape(bank[0], n_targets)
    cdef pk_rows rows = _rows(shape, X, Y, weights, intercept)
    cdef double[::1] buffer = _aligned(shape.ld)
    if rows.n != 1:
        raise ValueError(f"X has {rows.n} rows: a bank learns one at a time")
    with nogil:
        pk_learn_bank(&bank[0, 0, 0], count, &buffer[0], &rows, shape, &before.pointers)
    return before.arrays()


cdef void _lay_prior(double *T, pk_shape shape, const double[::1] mean, const double[::1] precision) noexcept nogil:
    """Lay independent priors of the last coefficients into an empty triangle of one target."""
    cdef Py_ssize_t j, row, first = shape.p - mean.shape[0]
    for j in range(mean.shape[0]):
        row = (first + j) * shape.ld
        T[row + first + j] = sqrt(precision[j])
        T[row + shape.p] = T[row + first + j] * mean[j]


def predict_by_nodes(const double[:, ::1] triangle, const double[:, :] X, const double[:, ::1] Y, const double[::1] weights,
                     bint intercept, const double[::1] mean, const double[:, ::1] precisions, const double[::1] shares,
                     double count, noise):
    """Location, scale and degrees of freedom (n,) of each row before it is learned, matched to those of several nodes.

    ``triangle`` has the data of one target, of the sum of weights ``count``, and is left as it is. Node k believes that
    coefficients, but for the first where there are more than ``mean`` (m,), have this mean and ``precisions`` (K, m), and
    counts for ``shares`` (K,); ``noise`` is its known precision (0: learned), shape and rate.
    """
    cdef pk_shape shape = _shape(triangle, 1)
    cdef pk_rows rows = _rows(shape, X, Y, weights, intercept)
    cdef Py_ssize_t n = rows.n, count_of = precisions.shape[0], m = mean.shape[0], first = shape.p - m, k, i
    cdef double[::1] T = _aligned(shape.q * shape.ld), panel = _aligned(PK_APPEND_SIZE(shape))
    cdef double[::1] buffer = _aligned(PK_FLIGHT_SIZE(shape)), loc = np.zeros(n), square = np.zeros(n), df = np.empty(n)
    cdef double[:, ::1] means = np.empty((count_of, n))
    cdef _Before before = _Before(n, 1)
    cdef double known, prior_shape, rate, scale
    if first < 0 or precisions.shape[1] != m or shares.shape[0] != count_of:
        raise ValueError("mean, precisions and shares are not those of nodes of so many coefficients")
    known, prior_shape, rate = noise
    for i in range(n):
        df[i] = INFINITY if known > 0.0 else max(count - first + 2.0 * prior_shape, 0.0)
        count += 1.0 if weights is None else weights[i]
    for k in range(count_of if n else 0):
        T[:] = 0.0
        with nogil:
            _lay_prior(&T[0], shape, mean, precisions[k])
            pk_append_triangle(&T[0], &panel[0], &triangle[0, 0], 1.0, shape)
            pk_learn_rows(&T[0], &buffer[0], &rows, shape, &before.pointers)
        for i in range(n):
            means[k, i] = Y[i, 0] - before.error[i, 0]
            loc[i] += shares[k] * means[k, i]
            scale = 1.0 + before.leverage[i]
            scale *= 1.0 / known if known > 0.0 else (before.residual[i, 0] + 2.0 * rate) / df[i]
            square[i] += shares[k] * (scale if scale >= 0.0 else INFINITY)  # without noise, or before there is any
    for k in range(count_of if n else 0):
        for i in range(n):
            square[i] += shares[k] * (means[k, i] - loc[i]) ** 2
    for i in range(n):
        square[i] = sqrt(square[i]) if square[i] >= 0.0 else INFINITY
    return np.asarray(loc), np.asarray(square), np.asarray(df)


def stack_nodes(const double[:, ::1] triangle, const double[::1] mean, const double[:, ::1] precisions):
    """Triangles of K priors, and of each with the data of one target: arrays (K, q, leading_dimension(q)).

    Coefficients, but for the first where there are more than ``mean`` (m,), have this mean and ``precisions`` (K, m).
    """
    cdef pk_shape shape = _shape(triangle, 1)
    cdef Py_ssize_t count = precisions.shape[0], m = mean.shape[0], first = shape.p - m, size = shape.q * shape.ld, k, j
    if first < 0 or precisions.shape[1] != m:
        raise ValueError("mean and precisions are not those of nodes of so many coefficients")
    cdef double[::1] priors = _aligned(count * size), nodes = _aligned(count * size)
    cdef double[::1] buffer = _aligned(PK_APPEND_SIZE(shape)), targets = np.empty(shape.q)
    cdef pk_rows rows
    memset(&rows, 0, sizeof(rows))
    rows.X, rows.Y = &triangle[0, 0], &targets[0]
    rows.n, rows.columns, rows.x_stride, rows.x_step = shape.q, shape.p, shape.ld, 1
    for j in range(shape.q):
        targets[j] = triangle[j, shape.p]
    with nogil:
        for k in range(count):
            _lay_prior(&priors[k * size], shape, mean, precisions[k])
            memcpy(&nodes[k * size], &priors[k * size], size * sizeof(double))
            pk_append_block(&nodes[k * size], &buffer[0], &rows, shape)
    stacked = count, shape.q, shape.ld
    return np.asarray(priors).reshape(stacked), np.asarray(nodes).reshape(stacked)


def append_block(double[:, ::1] triangle, Py_ssize_t n_targets, X, const double[:, ::1] Y,
                 const double[::1] weights, bint intercept):
    """Append all rows, of an array or of Columns, in place, a Householder panel at a time."""
    cdef pk_shape shape = _shape(triangle, n_targets)
    cdef _Source source = _Source(X)
    cdef pk_rows rows = source.rows(shape, Y, weights, intercept)
    cdef double[::1] buffer = _aligned(PK_APPEND_SIZE(shape))
    if rows.n > 0:
        with nogil:
            pk_append_block(&triangle[0, 0], &buffer[0], &rows, shape)


def remove_rows(double[:, ::1] triangle, Py_ssize_t n_targets, const double[:, :] X, const double[:, ::1] Y,
                const double[::1] weights, bint intercept):
    """Unlearn rows one by one, in place.

    Returns the 1-based row that was never in (0: all were; otherwise the triangle is spoilt) and
    the smallest cosine met: the smaller, the more digits were lost.
    """
    cdef pk_shape shape = _shape(triangle, n_targets)
    cdef pk_rows rows = _rows(shape, X, Y, weights, intercept)
    cdef double[::1] buffer = _aligned(shape.ld)
    cdef double least = 1.0
    cdef Py_ssize_t status = 0
    if rows.n > 0:
        with nogil:
            status = pk_remove_rows(&triangle[0, 0], &buffer[0], &rows, shape, &least)
    return status, least


def predict_rows(const double[:, ::1] triangle, Py_ssize_t n_targets, X, bint intercept):
    """Mean (n, k) and leverage (n,) of rows; a direction without information has infinite leverage."""
    cdef pk_shape shape = _shape(triangle, n_targets)
    cdef _Source source = _Source(X)
    cdef pk_rows rows = source.rows(shape, None, None, intercept)
    cdef double[:, ::1] mean = np.empty((rows.n, shape.k))
    cdef double[::1] leverage = np.empty(rows.n), buffer = _aligned(PK_APPEND_SIZE(shape))
    if rows.n > 0:
        with nogil:
            pk_predict_rows(&triangle[0, 0], &buffer[0], &rows, shape, &mean[0, 0], &leverage[0])
    return np.asarray(mean), np.asarray(leverage)


def average_members(const double[:, ::1] densities, const unsigned char[:, ::1] ranks, double[:, ::1] scores,
                    double[::1] outer, const double[::1] persistence, double outer_persistence):
    """Weights (n, k) of members before each row, by their log densities (k, n) of the rows before it.

    A member counts at a row unless another one's ``ranks`` (k, n) is higher; rows where all ranks are 0
    judge nobody. ``scores`` (a, leading_dimension(k)) and ``outer`` (leading_dimension(a),) are discounted
    sums of log densities, updated in place. Returns the weights and the sum of the mixture's log densities.
    """
    cdef Py_ssize_t k = densities.shape[0], n = densities.shape[1], rates = persistence.shape[0]
    cdef double[:, ::1] weights = np.empty((n, k))
    cdef double[::1] work = _aligned((rates + 4) * leading_dimension(k))
    cdef pk_expert_weights standing
    cdef double evidence = 0.0
    if not 1 <= rates <= 64 or scores.shape[0] != rates or outer.shape[0] != leading_dimension(rates):
        raise ValueError("there must be 1 to 64 rates, as many in each argument")
    if ranks.shape[0] != k or ranks.shape[1] != n or scores.shape[1] != leading_dimension(k) or k == 0:
        raise ValueError("densities, ranks and scores do not have the same members")
    standing.rates, standing.members, standing.lanes = rates, k, scores.shape[1]
    standing.persistence, standing.outer_persistence = &persistence[0], outer_persistence
    standing.scores, standing.outer, standing.work = &scores[0, 0], &outer[0], &work[0]
    if n > 0:
        with nogil:
            evidence = pk_average(&standing, n, &densities[0, 0], &ranks[0, 0], &weights[0, 0])
    return np.asarray(weights), evidence


def fading_counts(double count, Py_ssize_t n, const double[::1] weights, const double[::1] discounts):
    """Sums of weights (n + 1,): before each row, after all before it was discounted, and at the end."""
    cdef double[::1] counts = np.empty(n + 1)
    cdef Py_ssize_t i
    for i in range(n):
        count *= discounts[i]
        counts[i] = count
        count += 1.0 if weights is None else weights[i]
    counts[n] = count
    return np.asarray(counts)
