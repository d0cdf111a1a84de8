# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Checked binding of posterity_policies.h: what a policy would have done with the rows of a log."""

import numpy as np

cimport numpy as cnp

cnp.import_array()

cdef extern from "posterity_policies.h" nogil:
    enum:
        PK_MOST_THRESHOLDS
    ctypedef struct pk_decisions:
        Py_ssize_t rows, arms
        const double *chances
        const double *expected
        const double *logged
        Py_ssize_t chances_stride, expected_stride, logged_stride
        const Py_ssize_t *chosen
    Py_ssize_t pk_evaluate_policy_rows(const pk_decisions *of, double *match, double *own, double *direct, double *mass, double *unsupported)
    void pk_moderated_sums(Py_ssize_t rows, const double *weight, const double *error, const double *direct, const double *thresholds, int shrinks, double (*sums)[PK_MOST_THRESHOLDS])


cdef Py_ssize_t _stride(const double[:, :] values, Py_ssize_t n, Py_ssize_t arms, str name) except -1:
    """Return the distance from one row to the next, in numbers; 0 where one row is given for all."""
    if values.shape[1] != arms or values.shape[0] != n or (arms > 1 and values.strides[1] != 8) or values.strides[0] % 8:
        raise ValueError(f"{name} must be {n} rows of {arms} numbers that lie side by side")
    return values.strides[0] // 8


def judge_rows(const double[:, :] chances, const double[:, :] expected, const double[:, :] logged,
               const Py_ssize_t[::1] chosen):
    """Of n rows and K arms: probabilities (n,) of the chosen arms, rewards (n,) expected of them and of the policy's
    arms, sums (K,) of the policy's probabilities and of those without support, and the first row that has none, or -1.

    ``chances``: (n, K) of the policy; ``expected``: (n, K) or None, rewards; ``logged``: (n, K) or None, probabilities
    of the policy that made the log; ``chosen``: (n,) places of arms.
    """
    cdef Py_ssize_t n = chosen.shape[0], arms = chances.shape[1], i, bad = -1
    cdef pk_decisions of
    cdef double[::1] match_ = np.empty(n), own_, direct_, mass_ = np.zeros(arms), unsupported_ = np.zeros(arms)
    cdef double *own = NULL
    cdef double *direct = NULL
    of.rows, of.arms = n, arms
    of.chances_stride, of.expected_stride, of.logged_stride = _stride(chances, n, arms, "chances"), 0, 0
    of.expected = of.logged = NULL
    if expected is not None:
        of.expected_stride = _stride(expected, n, arms, "expected")
    if logged is not None:
        of.logged_stride = _stride(logged, n, arms, "logged")
    for i in range(n):
        if not 0 <= chosen[i] < arms:
            raise ValueError(f"row {i} has arm {chosen[i]}, but there are {arms}")
    own_ = direct_ = match_
    if expected is not None:
        own_, direct_ = np.empty(n), np.empty(n)
    if n > 0:
        of.chances, of.chosen = &chances[0, 0], &chosen[0]
        if expected is not None:
            of.expected, own, direct = &expected[0, 0], &own_[0], &direct_[0]
        if logged is not None:
            of.logged = &logged[0, 0]
        with nogil:
            bad = pk_evaluate_policy_rows(&of, &match_[0], own, direct, &mass_[0], &unsupported_[0])
    if expected is None:
        own_ = direct_ = np.zeros(n)
    return (np.asarray(match_), np.asarray(own_), np.asarray(direct_), np.asarray(mass_), np.asarray(unsupported_), bad)


def moderated_sums(const double[::1] weight, const double[::1] error, const double[::1] direct,
                   const double[::1] thresholds, bint shrinks):
    """Sums (3, T) of g e, g e d and (g e)^2 over rows, where of a weight the share g is left.

    ``thresholds``: (T,), at most 8; ``shrinks``: t / (w^2 + t), and else 1 up to t and 0 beyond.
    """
    cdef Py_ssize_t n = weight.shape[0], count = thresholds.shape[0]
    cdef double[PK_MOST_THRESHOLDS] levels
    cdef double[3][PK_MOST_THRESHOLDS] sums
    cdef Py_ssize_t t
    if error.shape[0] != n or direct.shape[0] != n:
        raise ValueError("weight, error and direct must have the same length")
    if not 1 <= count <= PK_MOST_THRESHOLDS:
        raise ValueError(f"there are {count} thresholds: from 1 to {PK_MOST_THRESHOLDS}")
    for t in range(PK_MOST_THRESHOLDS):
        levels[t] = thresholds[min(t, count - 1)]
        sums[0][t] = sums[1][t] = sums[2][t] = 0.0
    if n > 0:
        with nogil:
            pk_moderated_sums(n, &weight[0], &error[0], &direct[0], levels, shrinks, sums)
    return np.asarray(<double[:3, :PK_MOST_THRESHOLDS]> &sums[0][0])[:, :count].copy()
