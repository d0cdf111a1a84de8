# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Checked binding of posterity_machine.h: rows of a factorization machine, one by one."""

cimport numpy as cnp
from libc.stdlib cimport free, malloc

cnp.import_array()

cdef extern from "posterity_machine.h" nogil:
    ctypedef struct pk_side:
        double *mean
        double *covariance
        double *precision
        double *product
        const double *prior_mean
        const double *prior_precision
    ctypedef struct pk_machine:
        Py_ssize_t sides
        Py_ssize_t p
        const pk_side *side
        double offset
        double offset_variance
        double noise_precision
        int labels
        double *room
    Py_ssize_t pk_size_of_work(Py_ssize_t sides, Py_ssize_t p)
    int pk_learn_machine_row(const pk_machine *of, const Py_ssize_t *codes, const double *values, double y,
                             double weight)
    double pk_multiply_others_factors(const pk_machine *of, Py_ssize_t but, const Py_ssize_t *codes, const double *values, double *partners)
    double pk_row_variance(const pk_machine *of, const Py_ssize_t *codes, const double *values, double *mean,
                           double *partners)


cdef double *_data(array, Py_ssize_t levels, Py_ssize_t p, int dimensions) except NULL:
    """Return a pointer to an array (levels, p) or (levels, p, p), after checks."""
    if not (cnp.PyArray_Check(array) and cnp.PyArray_TYPE(array) == cnp.NPY_DOUBLE
            and cnp.PyArray_ISCARRAY(array) and cnp.PyArray_NDIM(array) == dimensions
            and cnp.PyArray_DIM(array, 0) == levels and cnp.PyArray_DIM(array, 1) == p
            and cnp.PyArray_DIM(array, dimensions - 1) == p):
        raise ValueError("expected a writable C array of doubles of each level's weights")
    return <double *>cnp.PyArray_DATA(array)


cdef void *_kept(array, int kind, Py_ssize_t n, Py_ssize_t width) except NULL:
    """Return a pointer to row ``n`` of an array (rows, width) or (rows,), after checks."""
    if not (cnp.PyArray_Check(array) and cnp.PyArray_TYPE(array) == kind and cnp.PyArray_ISCARRAY(array)
            and cnp.PyArray_DIM(array, 0) > n
            and cnp.PyArray_SIZE(array) == width * cnp.PyArray_DIM(array, 0)):
        raise ValueError("expected writable C arrays with room for one row more")
    return <char *>cnp.PyArray_DATA(array) + n * width * cnp.PyArray_ITEMSIZE(array)


cdef class MachineRows:
    """Learns rows into the arrays of a factorization machine's sides, and predicts from them.

    With ``labels`` y is 0 or 1, of log odds. ``means`` (L, p), ``covariances`` (L, p, p), ``precisions`` (L, p, p)
    and ``products`` (L, p) of each side are changed in their place; ``prior_means`` and ``prior_precisions`` are
    (sides, p). Single rows are lists of the levels' places and of their features.
    """

    cdef pk_machine of
    cdef pk_side *sides
    cdef double *room
    cdef Py_ssize_t *sizes
    cdef Py_ssize_t *codes
    cdef double *values
    cdef object arrays

    def __cinit__(self, list means, list covariances, list precisions, list products,
                  const double[:, ::1] prior_means, const double[:, ::1] prior_precisions,
                  double offset, double offset_variance, double noise_precision, bint labels=False):
        cdef Py_ssize_t n = prior_means.shape[0], p = prior_means.shape[1], s
        if not (n == len(means) == len(covariances) == len(precisions) == len(products)
                == prior_precisions.shape[0] and p == prior_precisions.shape[1]):
            raise ValueError("means, covariances, sums and priors must be of the same sides")
        self.sides = <pk_side *>malloc(n * sizeof(pk_side))
        self.sizes = <Py_ssize_t *>malloc(n * sizeof(Py_ssize_t))
        self.room = <double *>malloc(pk_size_of_work(n, p) * sizeof(double))
        self.codes = <Py_ssize_t *>malloc(n * sizeof(Py_ssize_t))
        self.values = <double *>malloc(n * sizeof(double))
        if not self.sides or not self.sizes or not self.room or not self.codes or not self.values:
            raise MemoryError
        self.arrays = (list(means), list(covariances), list(precisions), list(products), prior_means, prior_precisions)
        for s in range(n):
            self.sizes[s] = len(means[s])
            self.sides[s].mean = _data(means[s], self.sizes[s], p, 2)
            self.sides[s].covariance = _data(covariances[s], self.sizes[s], p, 3)
            self.sides[s].precision = _data(precisions[s], self.sizes[s], p, 3)
            self.sides[s].product = _data(products[s], self.sizes[s], p, 2)
            self.sides[s].prior_mean = &prior_means[s, 0]
            self.sides[s].prior_precision = &prior_precisions[s, 0]
        self.of = pk_machine(n, p, self.sides, offset, offset_variance, noise_precision, labels, self.room)

    def __dealloc__(self):
        free(self.sides)
        free(self.sizes)
        free(self.room)
        free(self.codes)
        free(self.values)

    cdef int take(self, list codes, list values, Py_ssize_t lowest) except -1:
        """Read one row's levels and features as numbers."""
        cdef Py_ssize_t s
        if len(codes) != self.of.sides or len(values) != self.of.sides:
            raise ValueError("codes and values must have an item for each side")
        for s in range(self.of.sides):
            self.codes[s], self.values[s] = codes[s], values[s]
            if not lowest <= self.codes[s] < self.sizes[s]:
                raise IndexError(f"level {self.codes[s]} of side {s}, which has {self.sizes[s]} levels")
        return 0

    cdef int check(self, const Py_ssize_t[:, ::1] codes, const double[:, ::1] values, Py_ssize_t lowest) except -1:
        cdef Py_ssize_t n = codes.shape[0], i, s
        if codes.shape[1] != self.of.sides or values.shape[1] != self.of.sides or values.shape[0] != n:
            raise ValueError("codes and values must have a column for each side")
        for s in range(self.of.sides):
            for i in range(n):
                if not lowest <= codes[i, s] < self.sizes[s]:
                    raise IndexError(f"row {i} has level {codes[i, s]} of side {s}, which has {self.sizes[s]} levels")
        return 0

    def learn(self, const Py_ssize_t[:, ::1] codes, const double[:, ::1] values, const double[::1] y,
              const double[::1] weights):
        """Learn rows (n, S) in order; return how many were learned: fewer than n where one would overflow."""
        cdef Py_ssize_t i, n = codes.shape[0]
        self.check(codes, values, 0)
        if y.shape[0] != n or weights.shape[0] != n:
            raise ValueError("y and weights must have a number for each row")
        with nogil:
            for i in range(n):
                if pk_learn_machine_row(&self.of, &codes[i, 0], &values[i, 0], y[i], weights[i]):
                    break
            else:
                i = n
        return i

    def learn_one(self, list codes, list values, double y, double unit, double weight, tuple room, dict state):
        """Learn one row, and append it to those of ``state``, in one step; False if it would overflow.

        ``room``: the arrays that the rows of ``state``, its codes, values, y and weights, are the first of.
        """
        cdef Py_ssize_t n = len(state["y"]), s
        cdef Py_ssize_t *kept_codes = <Py_ssize_t *>_kept(room[0], cnp.NPY_INTP, n, self.of.sides)
        cdef double *kept_values = <double *>_kept(room[1], cnp.NPY_DOUBLE, n, self.of.sides)
        cdef double *kept_y = <double *>_kept(room[2], cnp.NPY_DOUBLE, n, 1)
        cdef double *kept_weight = <double *>_kept(room[3], cnp.NPY_DOUBLE, n, 1)
        self.take(codes, values, 0)
        after = {"codes": room[0][:n + 1], "values": room[1][:n + 1], "y": room[2][:n + 1], "weights": room[3][:n + 1]}
        for s in range(self.of.sides):
            kept_codes[s], kept_values[s] = self.codes[s], self.values[s]
        kept_y[0], kept_weight[0] = y, weight
        if pk_learn_machine_row(&self.of, self.codes, self.values, y / unit, weight):
            return False
        state.update(after)
        return True

    def mean_of_one(self, list codes, list values):
        """Return the mean at one row; level -1 is one that was never seen."""
        self.take(codes, values, -1)
        return pk_multiply_others_factors(&self.of, -1, self.codes, self.values, self.room)

    def moments_of_one(self, list codes, list values):
        """Mean and variance, the noise aside, at one row of known levels."""
        cdef double mean, variance
        self.take(codes, values, 0)
        variance = pk_row_variance(&self.of, self.codes, self.values, &mean, self.room)
        return mean, variance
