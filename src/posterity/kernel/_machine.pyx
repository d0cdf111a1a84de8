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
    Py_ssize_t pk_room_of_machine(Py_ssize_t sides, Py_ssize_t p)
    int pk_learn_machine_row(const pk_machine *of, const Py_ssize_t *codes, const double *values, double y,
                             double weight)
    double pk_meet(const pk_machine *of, Py_ssize_t but, const Py_ssize_t *codes, const double *values, double *partners)


cdef double *_data(array, Py_ssize_t levels, Py_ssize_t p, int dimensions) except NULL:
    """The numbers of an array (levels, p) or (levels, p, p), which is checked."""
    if not (cnp.PyArray_Check(array) and cnp.PyArray_TYPE(array) == cnp.NPY_DOUBLE
            and cnp.PyArray_ISCARRAY(array) and cnp.PyArray_NDIM(array) == dimensions
            and cnp.PyArray_DIM(array, 0) == levels and cnp.PyArray_DIM(array, 1) == p
            and cnp.PyArray_DIM(array, dimensions - 1) == p):
        raise ValueError("expected a writable C array of doubles of each level's weights")
    return <double *>cnp.PyArray_DATA(array)


cdef class MachineRows:
    """Learns rows into the arrays of a factorization machine's sides, and predicts means from them.

    With ``labels`` y is 0 or 1, of log odds. ``means`` (L, p), ``covariances`` (L, p, p), ``precisions`` (L, p, p) and ``products`` (L, p) of each side are
    changed in their place; ``prior_means`` and ``prior_precisions`` are (sides, p).
    """

    cdef pk_machine of
    cdef pk_side *sides
    cdef double *room
    cdef Py_ssize_t *sizes
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
        self.room = <double *>malloc(pk_room_of_machine(n, p) * sizeof(double))
        if not self.sides or not self.sizes or not self.room:
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
        """Learn rows (n, S) one after the other; the number of those learned: fewer than n where one would overflow."""
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

    def learn_one(self, const Py_ssize_t[:, ::1] codes, const double[:, ::1] values, double y,
                  double weight, dict state, dict after):
        """Learn one row and put ``after`` into ``state``, in one step; False if it would overflow."""
        self.check(codes, values, 0)
        if pk_learn_machine_row(&self.of, &codes[0, 0], &values[0, 0], y, weight):
            return False
        state.update(after)
        return True

    def mean_of_one(self, const Py_ssize_t[:, ::1] codes, const double[:, ::1] values):
        """The mean at one row; level -1 is one that was never seen."""
        self.check(codes, values, -1)
        return pk_meet(&self.of, -1, &codes[0, 0], &values[0, 0], self.room)
