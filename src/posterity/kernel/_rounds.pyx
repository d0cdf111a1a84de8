# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Checked binding of posterity_rounds.h: rounds in which sites and what is known follow each other."""

import numpy as np

cimport numpy as cnp

cnp.import_array()

from libc.math cimport INFINITY, fabs, sqrt

include "_structures.pxi"
include "_one_target.pxi"

cdef extern from "posterity_rounds.h" nogil:
    enum: PK_REMEMBERED
    ctypedef struct pk_mixing:
        Py_ssize_t n, rounds
        const double *share
        double *now
        double *ahead
        double *moves
        double *changes
        double *turned
    void pk_mix_rounds(pk_mixing *m, const double *now, const double *wanted, const double *mean, const double *variance, double *next)
    void pk_measure_round(const double *T, pk_shape shape, const pk_rows *rows, const double *sites, const double *wanted, const double *mean, const double *variance, double *pull, double *move, double *spread)
    void pk_add_moments(Py_ssize_t n, double before, double share, const double *mean, const double *variance, double *means, double *variances)
    Py_ssize_t PK_APPEND_SIZE(pk_shape shape)
    void pk_predict_rows(const double *T, double *buffer, const pk_rows *rows, pk_shape shape, double *mean, double *leverage)


cdef const double *_pair(const double[:, ::1] sites, Py_ssize_t n) except? NULL:
    if sites.shape[0] != 2 or sites.shape[1] != n:
        raise ValueError(f"sites have shape ({sites.shape[0]}, {sites.shape[1]}): expected (2, {n})")
    return &sites[0, 0] if n else NULL


cdef class Mixing:
    """Extrapolates rounds whose errors shrink slowly, or change sides (Anderson mixing), of rows with weights (n,).

    The differences of the last rounds tell which combination of them would have led nearest to where nothing changes
    (Walker and Ni 2011, "Anderson acceleration for fixed-point iterations").
    """

    cdef double[::1] room
    cdef pk_mixing mixing

    def __init__(self, const double[::1] weights):
        cdef Py_ssize_t n = weights.shape[0], size = 2 * n, i
        self.room = np.zeros(n + (3 + 3 * PK_REMEMBERED) * size)
        for i in range(n):
            self.room[i] = 1.0 / sqrt(weights[i]) if weights[i] > 0.0 else 0.0
        self.mixing.n, self.mixing.rounds = n, 0
        if n:
            self.mixing.share, self.mixing.now, self.mixing.ahead = &self.room[0], &self.room[n], &self.room[n + size]
            self.mixing.moves = &self.room[n + 2 * size]
            self.mixing.changes = self.mixing.moves + PK_REMEMBERED * size
            self.mixing.turned = self.mixing.changes + PK_REMEMBERED * size

    def restart(self):
        """Forget all rounds."""
        self.mixing.rounds = 0

    def extrapolate(self, const double[:, ::1] now, const double[:, ::1] wanted, const double[::1] mean,
                    const double[::1] variance):
        """The next sites (2, n), precisions and precisions times targets.

        ``wanted`` are those that follow from ``now``, under which each eta has this mean and variance (n,).
        """
        cdef Py_ssize_t n = self.mixing.n
        cdef const double *sites = _pair(now, n)
        cdef const double *goal = _pair(wanted, n)
        cdef const double *m = _given(mean, n, "mean")
        cdef const double *v = _given(variance, n, "variance")
        following = np.empty((2, n))
        cdef double[:, ::1] out = following
        if n:
            with nogil:
                pk_mix_rounds(&self.mixing, sites, goal, m, v, &out[0, 0])
        return following


def measure_round(const double[:, ::1] triangle, const double[:, :] X, const double[:, ::1] sites,
                  const double[:, ::1] wanted, const double[::1] mean, const double[::1] variance):
    """By how much sites ``wanted`` (2, n) change what is known with those of the rows X in the triangle.

    Under these each eta has this mean and variance (n,). Returns the length of the mean's move, in
    standard deviations, and the share by which the precision changes, over all directions.
    """
    cdef pk_shape shape = _shape_of(triangle)
    cdef pk_rows rows = _rows_of(X, shape.p > X.shape[1], shape)
    cdef Py_ssize_t n = rows.n
    cdef const double *now = _pair(sites, n)
    cdef const double *goal = _pair(wanted, n)
    cdef const double *m = _given(mean, n, "mean")
    cdef const double *v = _given(variance, n, "variance")
    cdef double[::1] pull = np.empty(shape.p + 1)
    cdef double move = 0.0, spread = 0.0
    with nogil:
        pk_measure_round(&triangle[0, 0], shape, &rows, now, goal, m, v, &pull[0], &move, &spread)
    return move, spread


def mix_moments(triangles, const double[::1] shares, const double[:, :] X, const double[:, ::1] added=None):
    """Mean and variance (n,) of x.w, matched to those under several triangles, by shares (K,) of sum 1.

    ``added`` (K, n) is variance that each does not know of. A direction without information has infinite variance.
    """
    cdef Py_ssize_t n = X.shape[0], i, k
    cdef double[::1] means = np.zeros(n), variances = np.zeros(n), mean = np.empty(n), variance = np.empty(n)
    cdef double[::1] buffer = None
    cdef const double[:, ::1] triangle
    cdef pk_shape shape
    cdef pk_rows rows
    cdef double before = 0.0
    if len(triangles) != shares.shape[0] or (added is not None and (added.shape[0] != shares.shape[0] or added.shape[1] != n)):
        raise ValueError("there is a triangle, a share and what is added for each of several")
    for k in range(shares.shape[0] if n else 0):
        triangle = triangles[k]
        shape = _shape_of(triangle)
        rows = _rows_of(X, shape.p > X.shape[1], shape)
        if buffer is None or buffer.shape[0] != PK_APPEND_SIZE(shape):
            buffer = _aligned(PK_APPEND_SIZE(shape))
        with nogil:
            pk_predict_rows(&triangle[0, 0], &buffer[0], &rows, shape, &mean[0], &variance[0])
            if added is not None:
                for i in range(n):
                    variance[i] += added[k, i]
            pk_add_moments(n, before, shares[k], &mean[0], &variance[0], &means[0], &variances[0])
        before += shares[k]
    for i in range(n):
        if not variances[i] == variances[i]:  # a share of 0 of infinite variance
            variances[i] = INFINITY
    return np.asarray(means), np.asarray(variances)


def find_largest_difference(const double[::1] one, const double[::1] other):
    """The largest distance between two values of a row (n,)."""
    cdef Py_ssize_t n = one.shape[0], i
    cdef double largest = 0.0, off
    _given(other, n, "other")
    with nogil:
        for i in range(n):
            off = fabs(one[i] - other[i])
            largest = off if off > largest or off != off else largest
    return largest
