# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Checked binding of posterity_calibration.h: bounds that learn from their misses, without the GIL."""

import numpy as np

cimport numpy as cnp

cnp.import_array()

cdef extern from "posterity_calibration.h" nogil:
    enum: PK_MOST_LEVELS
    enum: PK_MOST_EXPERTS
    ctypedef struct pk_tracks:
        Py_ssize_t levels
        const double *tails
        const double *steps
        double gain, saturation, forgetting_rate
        double *bounds
        double *integrals
        double *scale
    ctypedef struct pk_tails:
        Py_ssize_t levels, experts, capacity
        const double *tails
        const double *rates
        const double *temperatures
        double share
        double *aims
        double *weights
        double *sorted
        double *recent
        long long *count
    void pk_normal_scores(Py_ssize_t n, const double *y, const double *loc, Py_ssize_t loc_stride, const double *scale, Py_ssize_t scale_stride, const double *df, Py_ssize_t df_stride, const double *weights, double *scores)
    void pk_targets_at(Py_ssize_t n, const double *scores, Py_ssize_t stride, const double *loc, Py_ssize_t loc_stride, const double *scale, Py_ssize_t scale_stride, const double *df, Py_ssize_t df_stride, double *targets)
    void pk_track(Py_ssize_t n, const double *scores, const pk_tracks *tracks, double *outputs)
    void pk_adapt(Py_ssize_t n, const double *scores, const pk_tails *tails, double *outputs)


cdef Py_ssize_t _stride(const double[::1] values, Py_ssize_t n, str name) except -1:
    """1 where there is a value for each row, 0 where all rows share one."""
    if values.shape[0] == n:
        return 1
    if values.shape[0] != 1:
        raise ValueError(f"{name} has length {values.shape[0]}: expected {n}, or 1 for all rows")
    return 0


cdef int _check(Py_ssize_t length, Py_ssize_t expected, str name) except -1:
    if length != expected:
        raise ValueError(f"{name} has length {length}: expected {expected}")
    return 0


cdef int _check_levels(Py_ssize_t levels) except -1:
    if not 1 <= levels <= PK_MOST_LEVELS:
        raise ValueError(f"the kernel takes from 1 to {PK_MOST_LEVELS} levels, not {levels}")
    return 0


def normal_scores(const double[::1] y, const double[::1] loc, const double[::1] scale,
                  const double[::1] df=None, const double[::1] weights=None):
    """Scores (n,) of targets under Normal(loc, scale), or Student-t with df; NaN where there is none.

    There is none where the scale is not positive and finite, df not positive, or the weight 0. Each of loc, scale
    and df has n values, or one for all rows.
    """
    cdef Py_ssize_t n = y.shape[0], df_stride = 0
    cdef Py_ssize_t loc_stride = _stride(loc, n, "loc"), scale_stride = _stride(scale, n, "scale")
    cdef const double *freedom = NULL
    cdef const double *given = NULL
    scores = np.empty(n)
    cdef double[::1] room = scores
    if n == 0:
        return scores
    if df is not None:
        df_stride = _stride(df, n, "df")
        freedom = &df[0]
    if weights is not None:
        _check(weights.shape[0], n, "weights")
        given = &weights[0]
    with nogil:
        pk_normal_scores(n, &y[0], &loc[0], loc_stride, &scale[0], scale_stride, freedom, df_stride, given, &room[0])
    return scores


def targets_at(const double[:] scores, const double[::1] loc, const double[::1] scale, const double[::1] df=None):
    """Invert the scores: return targets at given scores. Each array has one value for each row, or one for all."""
    cdef Py_ssize_t n = max(scores.shape[0], loc.shape[0], scale.shape[0]), df_stride = 0
    cdef Py_ssize_t stride = scores.strides[0] // <Py_ssize_t> sizeof(double)
    cdef Py_ssize_t loc_stride = _stride(loc, n, "loc"), scale_stride = _stride(scale, n, "scale")
    cdef const double *freedom = NULL
    targets = np.empty(n)
    cdef double[::1] room = targets
    if scores.shape[0] != n:
        _check(scores.shape[0], 1, "scores")
        stride = 0
    if n == 0:
        return targets
    if df is not None:
        df_stride = _stride(df, n, "df")
        freedom = &df[0]
    with nogil:
        pk_targets_at(n, &scores[0], stride, &loc[0], loc_stride, &scale[0], scale_stride, freedom, df_stride, &room[0])
    return targets


def track(const double[::1] scores, const double[::1] tails, const double[::1] steps, integrator, double forgetting_rate,
          double[:, ::1] bounds, double[:, ::1] integrals, double[::1] scale, bint return_predictions):
    """Conformal PID: learn scores in order; bounds, integrals (2, L) and scale (3,) are changed in place.

    ``integrator`` is its gain and its saturation. Returns the ends (n, 2, L) before each score, or None.
    """
    cdef pk_tracks tracks
    cdef Py_ssize_t n = scores.shape[0], levels = tails.shape[0]
    cdef double *outputs = NULL
    cdef double[:, :, ::1] room
    _check_levels(levels)
    _check(steps.shape[0], levels, "steps")
    for array, name in ((bounds, "bounds"), (integrals, "integrals")):
        _check(array.shape[0], 2, name)
        _check(array.shape[1], levels, name)
    _check(scale.shape[0], 3, "scale")
    tracks.levels, tracks.forgetting_rate = levels, forgetting_rate
    tracks.gain, tracks.saturation = integrator
    tracks.tails, tracks.steps = &tails[0], &steps[0]
    tracks.bounds, tracks.integrals, tracks.scale = &bounds[0, 0], &integrals[0, 0], &scale[0]
    ends = np.empty((n, 2, levels)) if return_predictions else None
    if n > 0:
        if return_predictions:
            room = ends
            outputs = &room[0, 0, 0]
        with nogil:
            pk_track(n, &scores[0], &tracks, outputs)
    return ends


def adapt(const double[::1] scores, const double[::1] tails, const double[::1] rates, const double[::1] temperatures,
          double share, double[:, :, ::1] aims, double[:, :, ::1] weights, double[::1] sorted_scores,
          double[::1] recent, long long[::1] count, bint return_predictions):
    """Adaptive conformal inference: learn scores in order; all from ``aims`` on is changed in place.

    aims and weights are (2, L, K), sorted_scores and recent (capacity,), count (2,). Returns the ends (n, 2, L) told
    before each score, or None.
    """
    cdef pk_tails state
    cdef Py_ssize_t n = scores.shape[0], levels = tails.shape[0], experts = rates.shape[0]
    cdef double *outputs = NULL
    cdef double[:, :, ::1] room
    _check_levels(levels)
    if not 1 <= experts <= PK_MOST_EXPERTS:
        raise ValueError(f"the kernel takes from 1 to {PK_MOST_EXPERTS} rates, not {experts}")
    _check(temperatures.shape[0], levels, "temperatures")
    for array, name in ((aims, "aims"), (weights, "weights")):
        _check(array.shape[0], 2, name)
        _check(array.shape[1], levels, name)
        _check(array.shape[2], experts, name)
    _check(recent.shape[0], sorted_scores.shape[0], "recent")
    _check(count.shape[0], 2, "count")
    if not 2 <= count[0] <= sorted_scores.shape[0] or not 0 <= count[1] < sorted_scores.shape[0]:
        raise ValueError("the window must hold from 2 scores to its capacity")
    state.levels, state.experts, state.capacity, state.share = levels, experts, sorted_scores.shape[0], share
    state.tails, state.rates, state.temperatures = &tails[0], &rates[0], &temperatures[0]
    state.aims, state.weights = &aims[0, 0, 0], &weights[0, 0, 0]
    state.sorted, state.recent, state.count = &sorted_scores[0], &recent[0], &count[0]
    ends = np.empty((n, 2, levels)) if return_predictions else None
    if n > 0:
        if return_predictions:
            room = ends
            outputs = &room[0, 0, 0]
        with nogil:
            pk_adapt(n, &scores[0], &state, outputs)
    return ends
