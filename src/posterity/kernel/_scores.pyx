# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Checked binding of posterity_scores.h and posterity_mixtures.h: scores of many predictions, and quantiles of mixtures."""

import numpy as np

cimport numpy as cnp
from libc.math cimport INFINITY, M_PI, exp, fabs, fmax, fmin, isfinite, log1p, sqrt
from scipy.special.cython_special cimport ndtri, stdtr

cnp.import_array()

cdef extern from "posterity_scores.h" nogil:
    ctypedef struct pk_predictions:
        const double *y
        const double *loc
        const double *scale
        const double *df
        Py_ssize_t loc_stride, scale_stride, df_stride
    void pk_score(Py_ssize_t n, const pk_predictions *p, double *log_density, double *crps, double *central)
    void pk_half_widths(Py_ssize_t n, const pk_predictions *p, double u, double *halves)
    void pk_running_mean(Py_ssize_t n, const double *news, double *known, double *df, double *loc, double *scale)
    void pk_running_steps(Py_ssize_t n, const double *news, double *known, double *df, double *scale)

cdef extern from "posterity_members.h" nogil:
    double pk_log_t_constant(double df)

cdef extern from "posterity_mixtures.h" nogil:
    ctypedef struct pk_mixtures:
        const double *weight
        const double *mean
        const double *precision
        Py_ssize_t size
    void pk_mixture_at(const pk_mixtures *m, Py_ssize_t which, double y, double *cdf, double *density)


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


def t_scores(const double[::1] y, const double[::1] loc, const double[::1] scale, const double[::1] df):
    """Of each target: log density but for - log(scale), CRPS, and 2 F(y) - 1; each (n,).

    NaN where the series do not serve: fewer than 64 degrees of freedom, far tails, a scale that is not positive and
    finite. Infinite df is the normal distribution. Each of loc, scale and df has n values, or one for all rows.
    """
    cdef pk_predictions outputs
    cdef Py_ssize_t n = y.shape[0]
    cdef double[::1] density, error, middle
    log_density, crps, central = np.empty(n), np.empty(n), np.empty(n)
    outputs.loc_stride, outputs.scale_stride = _stride(loc, n, "loc"), _stride(scale, n, "scale")
    outputs.df_stride = _stride(df, n, "df")
    if n > 0:
        density, error, middle = log_density, crps, central
        outputs.y, outputs.loc, outputs.scale, outputs.df = &y[0], &loc[0], &scale[0], &df[0]
        with nogil:
            pk_score(n, &outputs, &density[0], &error[0], &middle[0])
    return log_density, crps, central


def t_half_widths(Py_ssize_t n, const double[::1] scale, const double[::1] df, double quantile):
    """Half the widths (n,) of central intervals whose upper end is this quantile of Normal(0, 1); NaN as in `t_scores`."""
    cdef pk_predictions outputs
    cdef double[::1] room
    halves = np.empty(n)
    outputs.y = outputs.loc = NULL
    outputs.scale_stride, outputs.df_stride = _stride(scale, n, "scale"), _stride(df, n, "df")
    if n > 0:
        room = halves
        outputs.scale, outputs.df = &scale[0], &df[0]
        with nogil:
            pk_half_widths(n, &outputs, quantile, &room[0])
    return halves


def running_mean(const double[::1] news, double[::1] known):
    """Student-t predictions (df, loc, scale), each (n,), by the mean and spread of all news so far.

    ``known`` (3,), changed in place: count, mean, sum of squared deviations.
    """
    cdef Py_ssize_t n = news.shape[0]
    cdef double[::1] freedom, middle, spread
    _check(known.shape[0], 3, "known")
    df, loc, scale = np.empty(n), np.empty(n), np.empty(n)
    if n > 0:
        freedom, middle, spread = df, loc, scale
        with nogil:
            pk_running_mean(n, &news[0], &known[0], &freedom[0], &middle[0], &spread[0])
    return df, loc, scale


def running_steps(const double[::1] news, double[::1] known):
    """Degrees of freedom and scales (n,) of steps around zero, by all news so far.

    ``known`` (2,), changed in place: count, sum of squares.
    """
    cdef Py_ssize_t n = news.shape[0]
    cdef double[::1] freedom, spread
    _check(known.shape[0], 2, "known")
    df, scale = np.empty(n), np.empty(n)
    if n > 0:
        freedom, spread = df, scale
        with nogil:
            pk_running_steps(n, &news[0], &known[0], &freedom[0], &spread[0])
    return df, scale


def mixture_scores(const double[:, ::1] y, const cnp.intp_t[::1] which, const double[:, ::1] weight,
                   const double[:, ::1] mean, const double[:, ::1] precision):
    """Distribution functions and densities (n, m) of mixtures ``which`` (n,) of normals at points ``y`` (n, m).

    Mixtures (N, K) have weights, means, and inverses of standard deviations, all finite.
    """
    cdef pk_mixtures mixtures
    cdef Py_ssize_t n = y.shape[0], m = y.shape[1], count = weight.shape[0], i, j
    cdef double[:, ::1] below, height
    _check(which.shape[0], n, "which")
    mixtures.size = weight.shape[1]
    _check(mean.shape[0], count, "mean")
    _check(mean.shape[1], mixtures.size, "mean")
    _check(precision.shape[0], count, "precision")
    _check(precision.shape[1], mixtures.size, "precision")
    for i in range(n):
        if not 0 <= which[i] < count:
            raise ValueError(f"which is {which[i]} at {i}: there are {count} mixtures")
    cdf, density = np.zeros((n, m)), np.zeros((n, m))
    if n > 0 and m > 0 and mixtures.size > 0:
        below, height = cdf, density
        mixtures.weight, mixtures.mean, mixtures.precision = &weight[0, 0], &mean[0, 0], &precision[0, 0]
        with nogil:
            for i in range(n):
                for j in range(m):
                    pk_mixture_at(&mixtures, which[i], y[i, j], &below[i, j], &height[i, j])
    return cdf, density


# Newton's steps for a quantile: the last moves it by less than this share of the spread, so that about the square of it is
# left, or of itself.
cdef int MOST_STEPS = 60
cdef double LAST_STEP = 1e-7, ROUNDING = 1e-15


def mixture_quantiles(const double[:, :, ::1] tables not None, double level):
    """Quantiles (n,) of n mixtures of Student-t distributions, by Newton's steps on the scale of normal scores.

    ``tables`` (4, n, k) has their weights, degrees of freedom, at most 1e18, locations and scales, all positive. On that scale
    a distribution function of one hill is nearly straight. Steps stay in a bracket; the first is no longer than the spread,
    and each may be twice as long as the one before: where the one wide component of many has led far out, a slope there
    tells nothing.
    """
    cdef Py_ssize_t n = tables.shape[1], k = tables.shape[2], i
    cdef double[::1] quantiles = np.empty(n), work = np.empty(k)
    if tables.shape[0] != 4 or k == 0:
        raise ValueError("tables has another shape than (4, n, k)")
    for i in range(n):
        quantiles[i] = _find_quantile(&tables[0, i, 0], n * k, k, ndtri(level), &work[0])
    return np.asarray(quantiles)


cdef double _find_quantile(const double *table, Py_ssize_t part, Py_ssize_t k, double score, double *log_constants) noexcept:
    cdef const double *weight = table
    cdef const double *df = table + part
    cdef const double *loc = table + 2 * part
    cdef const double *scale = table + 3 * part
    cdef double mean = 0.0, spread = 0.0, square = 0.0, low = -INFINITY, high = INFINITY, x, z, u, below, density, step, longest, there
    cdef Py_ssize_t j
    cdef int turn
    for j in range(k):
        mean += weight[j] * loc[j]
    for j in range(k):
        spread += weight[j] * (scale[j] + fabs(loc[j] - mean))
        square += weight[j] * (scale[j] * scale[j] + (loc[j] - mean) * (loc[j] - mean))
        log_constants[j] = pk_log_t_constant(df[j])
    x, longest = mean + score * sqrt(square), spread
    for turn in range(MOST_STEPS):
        below = density = 0.0
        for j in range(k):
            if weight[j] > 0.0:
                z = (x - loc[j]) / scale[j]
                below += weight[j] * stdtr(df[j], z)
                density += weight[j] * exp(log_constants[j] - 0.5 * (df[j] + 1.0) * log1p(z * z / df[j])) / scale[j]
        u = ndtri(below)
        step = fmax(-longest, fmin(longest, (score - u) * exp(-0.5 * u * u) / (sqrt(2.0 * M_PI) * density)))
        if u < score:
            low = x
        else:
            high = x
        there = 0.5 * (low + high)
        if not isfinite(there):
            there = x + longest if u < score else x - longest
        if fabs(step) <= fmax(LAST_STEP * spread, ROUNDING * fabs(x)):
            return x + step
        x = x + step if low < x + step < high else there
        longest *= 2.0
    return x
