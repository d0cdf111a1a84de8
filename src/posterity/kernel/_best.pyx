# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Checked binding of posterity_best.h: probabilities that arms are the best, and the information in knowing it."""

import numpy as np

cimport numpy as cnp
from libc.stdlib cimport free, malloc

cnp.import_array()

cdef extern from "posterity_best.h" nogil:
    enum: PK_NODES
    ctypedef struct pk_rule:
        double nodes[PK_NODES]
        double weights[PK_NODES]
        double above[PK_NODES * PK_NODES]
    ctypedef struct pk_arms:
        Py_ssize_t arms
        const double *location
        const double *scale
        const double *df
        const unsigned char *allowed
        const pk_rule *rule
    ctypedef struct pk_arm:
        double location
    Py_ssize_t pk_collect_allowed_arms(const pk_arms *of, pk_arm *arms)
    double pk_find_best(const pk_arms *of, pk_arm *arms, Py_ssize_t count, double *best, double *means)
    void pk_share_envelope(const double *mean, const double *width, const unsigned char *allowed, Py_ssize_t arms, double stretch, double *shares)
    void pk_cheapest_pair(const double *regret, const double *information, Py_ssize_t count, double *shares)

cdef pk_rule RULE


def _set_rule():
    """Gauss and Legendre's, on (0, 1) from the upper end; integrals to each node are those of the interpolant."""
    nodes, weights = np.polynomial.legendre.leggauss(PK_NODES)
    basis = np.polynomial.legendre.legvander(nodes, PK_NODES - 1)
    # Sums of products with Legendre polynomials are exact: these are the interpolant's coefficients.
    coefficients = basis * weights[:, None] * (np.arange(PK_NODES) + 0.5)
    integrals = np.stack([
        np.polynomial.legendre.legval(nodes, np.polynomial.legendre.legint(row, lbnd=-1)) for row in coefficients
    ])
    cdef Py_ssize_t i, j
    for i in range(PK_NODES):
        RULE.nodes[i], RULE.weights[i] = 0.5 * (nodes[i] + 1.0), 0.5 * weights[i]
        for j in range(PK_NODES):
            RULE.above[i * PK_NODES + j] = 0.5 * integrals[i, j]


_set_rule()


cdef pk_arms _arms_of(Py_ssize_t arms) noexcept:
    cdef pk_arms of
    of.arms, of.rule = arms, &RULE
    return of


cdef int _check(const double[:, ::1] location, const double[:, ::1] scale, const double[:, ::1] df,
                const unsigned char[:, ::1] allowed) except -1:
    cdef Py_ssize_t n = location.shape[0], size = location.shape[1]
    if not (n == scale.shape[0] == df.shape[0] == allowed.shape[0]
            and size == scale.shape[1] == df.shape[1] == allowed.shape[1]):
        raise ValueError("locations, scales, degrees of freedom and allowed must have the same shape")
    return 0


def best_arms(const double[:, ::1] location, const double[:, ::1] scale, const double[:, ::1] df,
              const unsigned char[:, ::1] allowed):
    """(n, K) probabilities that each allowed arm has the largest of independent Student-t values.

    Scales are finite, those of certain values 0; infinite ``df`` is normal. Also how far each row's sum is from 1,
    which it then is made to be.
    """
    cdef Py_ssize_t n = location.shape[0], size = location.shape[1], i, k, count
    cdef double[:, ::1] outputs = np.zeros((n, size))
    cdef double[::1] error = np.empty(n), best = np.empty(size)
    cdef pk_arms of = _arms_of(size)
    cdef pk_arm *arms
    cdef double total
    _check(location, scale, df, allowed)
    if n and size:
        arms = <pk_arm *> _room(size)
        with nogil:
            for i in range(n):
                _point(&of, &location[i, 0], &scale[i, 0], &df[i, 0], &allowed[i, 0])
                count = pk_collect_allowed_arms(&of, arms)
                total = pk_find_best(&of, arms, count, &best[0], NULL)
                error[i] = total - 1.0
                _spread(&of, &best[0], total, &outputs[i, 0])
        free(arms)
    return np.asarray(outputs), np.asarray(error)


def information_directed_shares(const double[:, ::1] location, const double[:, ::1] scale, const double[:, ::1] df,
                    const unsigned char[:, ::1] allowed):
    """(n, K) shares of the two arms that pay least squared regret for what they tell of the best arm.

    What an arm tells is the variance of its expected value by which arm is the best (Russo and Van Roy 2018). Also
    the expected regrets, and the information gained (n, K).
    """
    cdef Py_ssize_t n = location.shape[0], size = location.shape[1], i, a, b, count
    cdef double[:, ::1] shares = np.zeros((n, size)), regrets = np.zeros((n, size)), tellings = np.zeros((n, size))
    cdef double[::1] best = np.empty(size), means = np.empty(size * size), regret = np.empty(size)
    cdef double[::1] return_predictions = np.empty(size), share = np.empty(size)
    cdef pk_arms of = _arms_of(size)
    cdef pk_arm *arms
    cdef double total, mean, most, gap
    _check(location, scale, df, allowed)
    if n and size:
        arms = <pk_arm *> _room(size)
        with nogil:
            for i in range(n):
                _point(&of, &location[i, 0], &scale[i, 0], &df[i, 0], &allowed[i, 0])
                count = pk_collect_allowed_arms(&of, arms)
                total = pk_find_best(&of, arms, count, &best[0], &means[0])
                most = 0.0
                for a in range(count):
                    most += means[a * count + a] / total
                for a in range(count):
                    mean, return_predictions[a] = 0.0, 0.0
                    for b in range(count):
                        mean += means[a * count + b] / total
                    regret[a] = max(most - mean, 0.0)
                    for b in range(count):
                        if best[b] > 0.0:
                            gap = means[a * count + b] / best[b] - mean
                            return_predictions[a] += best[b] / total * gap * gap
                pk_cheapest_pair(&regret[0], &return_predictions[0], count, &share[0])
                _spread(&of, &share[0], 1.0, &shares[i, 0])
                _spread(&of, &regret[0], 1.0, &regrets[i, 0])
                _spread(&of, &return_predictions[0], 1.0, &tellings[i, 0])
        free(arms)
    return np.asarray(shares), np.asarray(regrets), np.asarray(tellings)


def cheapest_pairs(const double[:, ::1] regret, const double[:, ::1] information, const unsigned char[:, ::1] allowed):
    """(n, K) shares of the two allowed arms whose mixture has the least squared regret for what it tells."""
    cdef Py_ssize_t n = regret.shape[0], size = regret.shape[1], i, k, count
    cdef double[:, ::1] shares = np.zeros((n, size))
    cdef double[::1] cost = np.empty(size), gain = np.empty(size), share = np.empty(size)
    cdef pk_arms of = _arms_of(size)
    if not n == information.shape[0] == allowed.shape[0] or not size == information.shape[1] == allowed.shape[1]:
        raise ValueError("regret, information and allowed must have the same shape")
    with nogil:
        for i in range(n if size else 0):
            count = 0
            for k in range(size):
                if allowed[i, k]:
                    cost[count], gain[count] = regret[i, k], information[i, k]
                    count += 1
            of.allowed = &allowed[i, 0]
            pk_cheapest_pair(&cost[0], &gain[0], count, &share[0])
            _spread(&of, &share[0], 1.0, &shares[i, 0])
    return np.asarray(shares)


def envelope_shares(const double[:, ::1] mean, const double[:, ::1] width, const unsigned char[:, ::1] allowed,
                    double stretch):
    """(n, K) how often each allowed arm has the largest ``mean + z width``, z being ``stretch`` times half a standard
    normal distribution. Widths are finite and not negative.
    """
    cdef Py_ssize_t n = mean.shape[0], size = mean.shape[1], i
    cdef double[:, ::1] shares = np.zeros((n, size))
    _check(mean, width, width, allowed)
    if n and size:
        with nogil:
            for i in range(n):
                pk_share_envelope(&mean[i, 0], &width[i, 0], &allowed[i, 0], size, stretch, &shares[i, 0])
    return np.asarray(shares)


cdef void *_room(Py_ssize_t arms) except NULL:
    cdef void *room = malloc(arms * sizeof(pk_arm))
    if room is NULL:
        raise MemoryError
    return room


cdef void _point(pk_arms *of, const double *location, const double *scale, const double *df,
                 const unsigned char *allowed) noexcept nogil:
    """Evaluate the integrals at one row."""
    of.location, of.scale, of.df, of.allowed = location, scale, df, allowed


cdef void _spread(const pk_arms *of, const double *values, double total, double *to) noexcept nogil:
    """Write the allowed arms' values, divided by their total, to the arms' places."""
    cdef Py_ssize_t k, count = 0
    for k in range(of.arms):
        if of.allowed[k]:
            to[k] = values[count] / total
            count += 1
