# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Checked binding of posterity_site_rows.h: likelihoods as rows, without the GIL."""

import numpy as np

cimport numpy as cnp

cnp.import_array()

include "_structures.pxi"
include "_likelihoods.pxi"
include "_one_target.pxi"

cdef extern from "posterity_site_rows.h" nogil:
    ctypedef struct pk_predictions_out:
        double *mean
        double *variance
        double *log_normalizer
        double *precision
        double *target
    Py_ssize_t PK_SITE_WORK_SIZE(pk_shape shape)
    void pk_find_sites(const pk_likelihood *l, Py_ssize_t n, const double *y, const double *mean, const double *variance, const double *weights, double *precision, double *target, double *log_normalizer)
    void pk_find_moments(const pk_likelihood *l, Py_ssize_t n, const double *y, const double *mean, const double *variance, const double *weights, double *log_mass, double *moved, double *ratio)
    void pk_expected_labels(Py_ssize_t n, const double *mean, const double *variance, double *log_yes, double *log_no)
    int pk_learn_sites(double *T, double *buffer, double *panel, const pk_likelihood *l, const pk_rows *rows, const double *offsets, const double *prior, const pk_walk *walk, pk_shape shape, const pk_predictions_out *outputs)

cdef extern from "posterity_matching.h" nogil:
    ctypedef struct pk_sites_now:
        const double *y
        const double *fit
        const double *leverage
        const double *weights
        const double *weight
        const double *target
        Py_ssize_t n
        double scale
    ctypedef struct pk_matched:
        double slope, evidence, move, kept
    void pk_match_rows(const pk_likelihood *l, const pk_sites_now *s, double bold, double *weight, double *target, double *step, double *square, pk_matched *outputs)

cdef extern from "posterity_sweeps.h" nogil:
    Py_ssize_t PK_APPEND_SIZE(pk_shape shape)
    ctypedef struct pk_swept:
        double *precision
        double *shift
        double *mean
        double *variance
    ctypedef struct pk_sweep_rows:
        const pk_rows *rows
        const double *offsets
        const double *before
        double *T
        double *buffer
        double *target
        pk_shape shape
    void pk_predict_with_sites(const pk_sweep_rows *s, const pk_swept *now)
    double pk_sweep_sites(const pk_likelihood *l, const pk_sweep_rows *s, const double *y, const double *weights, double step, const pk_swept *now, const pk_swept *next)

cdef extern from "posterity_softplus.h" nogil:
    void pk_average_softplus(Py_ssize_t n, const double *mean, const double *variance, double *value, double *slope, double *bend)

cdef extern from "posterity_working_rows.h" nogil:
    double pk_working_rows(const pk_likelihood *l, Py_ssize_t n, const double *y, const double *eta, const double *weights, double *precision, double *pull, double *squares)
    void pk_find_digammas(Py_ssize_t n, const double *x, double *digamma, double *trigamma)
    void pk_average_looks(const pk_likelihood *l, Py_ssize_t n, const double *y, const double *mean, const double *sd, Py_ssize_t k, const double *nodes, const double *shares, double vague, double *density, double *slope, double *curvature)
    double pk_total_density(const pk_likelihood *l, Py_ssize_t n, const double *y, const double *eta, const double *weights)


def find_sites(int code, parameters, bint moments, const double[::1] y, const double[::1] mean,
               const double[::1] variance, const double[::1] weights=None):
    """Precision, target and log normaliser (n,) of the site of each observation, eta ~ Normal(mean, variance)."""
    cdef pk_likelihood likelihood = _likelihood(code, parameters, moments)
    cdef Py_ssize_t n = y.shape[0]
    cdef const double *m = _given(mean, n, "mean")
    cdef const double *v = _given(variance, n, "variance")
    cdef const double *w = _given(weights, n, "weights")
    cdef double[::1] precision = np.empty(n), target = np.empty(n), log_normalizer = np.empty(n)
    if n > 0:
        with nogil:
            pk_find_sites(&likelihood, n, &y[0], m, v, w, &precision[0], &target[0], &log_normalizer[0])
    return np.asarray(precision), np.asarray(target), np.asarray(log_normalizer)


def find_moments(int code, parameters, const double[::1] y, const double[::1] mean, const double[::1] variance,
                 const double[::1] weights):
    """Log normaliser, the mean's move and the ratio of the variances (n,), eta ~ Normal(mean, variance > 0)."""
    cdef pk_likelihood likelihood = _likelihood(code, parameters, True)
    cdef Py_ssize_t n = y.shape[0]
    cdef const double *m = _given(mean, n, "mean")
    cdef const double *v = _given(variance, n, "variance")
    cdef const double *w = _given(weights, n, "weights")
    cdef double[::1] log_mass = np.empty(n), moved = np.empty(n), ratio = np.empty(n)
    if n > 0:
        with nogil:
            pk_find_moments(&likelihood, n, &y[0], m, v, w, &log_mass[0], &moved[0], &ratio[0])
    return np.asarray(log_mass), np.asarray(moved), np.asarray(ratio)


def match_rows(int code, parameters, const double[::1] y, const double[::1] fit, const double[::1] leverage,
               const double[::1] weights, const double[::1] weight, const double[::1] target, double scale, double bold):
    """A round of matching rows by moments, at least one: what stands for each, given all others.

    Fits (n,) and their relative variances (n,) are those with the sites of this weight and target (n,), relative to
    the scale. Returns the next weight and target (n,), ``bold`` of the way; errors without their own rows (n,),
    squared, over their variances; and, over all rows, what they say of the log of the scale and add to the
    evidence, and the largest move of a fit in its standard deviations.
    """
    cdef pk_likelihood likelihood = _likelihood(code, parameters, True)
    cdef Py_ssize_t n = y.shape[0]
    cdef pk_sites_now now
    cdef pk_matched outputs
    if n < 1:
        raise ValueError("there are no rows to match")
    now.y, now.n, now.scale = &y[0], n, scale
    now.fit = _given(fit, n, "fit")
    now.leverage = _given(leverage, n, "leverage")
    now.weights = _given(weights, n, "weights")
    now.weight = _given(weight, n, "weight")
    now.target = _given(target, n, "target")
    room = np.empty((4, n))
    cdef double[:, ::1] out = room
    with nogil:
        pk_match_rows(&likelihood, &now, bold, &out[0, 0], &out[1, 0], &out[2, 0], &out[3, 0], &outputs)
    return room[0], room[1], room[3], outputs.slope, outputs.evidence, outputs.move


def expected_labels(const double[::1] mean, const double[::1] variance):
    """Log probabilities (n,) of 1 and of 0 where the log odds are Normal(mean, variance), variance at most 1."""
    cdef Py_ssize_t n = mean.shape[0]
    cdef const double *v = _given(variance, n, "variance")
    cdef double[::1] yes = np.empty(n), no = np.empty(n)
    if n > 0:
        with nogil:
            pk_expected_labels(n, &mean[0], v, &yes[0], &no[0])
    return np.asarray(yes), np.asarray(no)


def average_softplus(const double[::1] mean, const double[::1] variance):
    """Averages (n,) of log(1 + exp(eta)), of the logistic of eta and of its slope, eta ~ Normal(mean, variance)."""
    cdef Py_ssize_t n = mean.shape[0]
    cdef const double *v = _given(variance, n, "variance")
    cdef double[::1] value = np.empty(n), slope = np.empty(n), bend = np.empty(n)
    if n > 0:
        with nogil:
            pk_average_softplus(n, &mean[0], v, &value[0], &slope[0], &bend[0])
    return np.asarray(value), np.asarray(slope), np.asarray(bend)


def find_digammas(x):
    """Digamma and trigamma of positive numbers, to twelve digits; each in the shape of ``x``."""
    cdef const double[::1] at = np.asarray(x, dtype=np.float64).ravel()
    cdef Py_ssize_t n = at.shape[0]
    out = np.empty((2, n))
    cdef double[:, ::1] room = out
    if n > 0:
        with nogil:
            pk_find_digammas(n, &at[0], &room[0, 0], &room[1, 0])
    return out.reshape(2, *np.shape(x))


def learn_sites(double[:, ::1] triangle, int code, parameters, bint moments, const double[:, :] X,
                const double[::1] y, const double[::1] weights, bint intercept, const double[::1] offsets=None,
                const double[::1] discounts=None, const double[:, ::1] prior=None, const double[::1] variance=None,
                const double[::1] elapsed=None, Py_ssize_t slope=-1):
    """Learn observations one by one, in place, each through its site; the noise of the rows has precision 1.

    All before row i is first discounted by discounts[i]; with ``prior``, which the triangle holds, all but
    that. Or the coefficients move by Normal(0, variance (p,) * elapsed[i]), or one ``slope`` alone: ``learn_random_walk``. ``offsets`` are added to eta = x.w. Returns mean and variance (n,) of eta before each row, offset
    included, and the log normaliser, precision and target (n,) of its site.
    """
    cdef pk_likelihood likelihood = _likelihood(code, parameters, moments)
    cdef pk_shape shape = _shape_of(triangle)
    cdef pk_rows rows = _rows_of(X, intercept, shape)
    cdef pk_predictions_out outputs
    cdef Py_ssize_t n = X.shape[0]
    cdef int status = 0
    if prior is not None and (prior.shape[0] != shape.q or prior.shape[1] != shape.ld):
        raise ValueError("the prior's triangle does not have the shape of the triangle")
    rows.Y = _given(y, n, "y")
    rows.weights = _given(weights, n, "weights")
    rows.discounts = _given(discounts, n, "discounts")
    cdef const double *added = _given(offsets, n, "offsets")
    cdef const double *kept = NULL if prior is None else &prior[0, 0]
    cdef double[::1] buffer = _aligned(PK_SITE_WORK_SIZE(shape)), held = np.zeros(shape.p + 1)
    cdef double[::1] panel = _aligned(PK_APPEND_SIZE(shape) if prior is not None else 0)
    cdef double[::1] step = np.empty(shape.p + 1), moves = _aligned(0 if variance is None else PK_WALK_SIZE(shape))
    cdef pk_walk walk
    cdef double *work = NULL
    walk.variance, walk.elapsed = _given(variance, shape.p, "variance"), _given(elapsed, n, "elapsed")
    walk.slope = slope
    if (variance is None) != (elapsed is None) or (slope >= 0 and not intercept <= slope < shape.p):
        raise ValueError("variance and elapsed belong together, and a slope is the place of a feature's coefficient")
    out = np.empty((5, n))
    cdef double[:, ::1] room = out
    if n > 0:
        rows.held = &held[0]
        work = &panel[0] if panel.shape[0] else NULL
        outputs.mean, outputs.variance, outputs.log_normalizer = &room[0, 0], &room[1, 0], &room[2, 0]
        outputs.precision, outputs.target = &room[3, 0], &room[4, 0]
        walk.step, walk.work = &step[0], &moves[0] if moves.shape[0] else NULL
        with nogil:
            status = pk_learn_sites(&triangle[0, 0], &buffer[0], work, &likelihood, &rows, added, kept,
                                    &walk if walk.variance else NULL, shape, &outputs)
    if status:
        raise ArithmeticError("the triangle holds less than its prior")
    return tuple(out)


cdef pk_swept _swept(double[:, ::1] room):
    cdef pk_swept swept
    swept.precision, swept.shift = &room[0, 0], &room[1, 0]
    swept.mean, swept.variance = &room[2, 0], &room[3, 0]
    return swept


cdef class SiteSweeps:
    """Sweeps of expectation propagation over rows, from the factor that was known ``before`` them.

    What a sweep ends with are arrays (4, n): precision of each site, that times its target, and mean and variance
    of each eta = x.w + offset under all of them. ``triangle`` then holds what is known with them.
    """

    cdef const double[:, ::1] before
    cdef readonly object triangle
    cdef double[:, ::1] T
    cdef const double[:, :] X
    cdef const double[::1] y, weights, offsets
    cdef double[::1] buffer, target
    cdef pk_likelihood likelihood
    cdef pk_rows rows
    cdef pk_sweep_rows sweep_rows

    def __init__(self, const double[:, ::1] before, int code, parameters, const double[:, :] X, const double[::1] y,
                 const double[::1] weights, const double[::1] offsets, bint intercept):
        cdef Py_ssize_t n = X.shape[0]
        cdef pk_shape shape = _shape_of(before)
        if n < 1:
            raise ValueError("there are no rows to sweep over")
        self.likelihood = _likelihood(code, parameters, True)
        self.rows = _rows_of(X, intercept, shape)
        self.triangle = _aligned(shape.q * shape.ld).reshape(shape.q, shape.ld)
        self.before, self.T, self.X, self.y, self.weights, self.offsets = before, self.triangle, X, y, weights, offsets
        self.buffer, self.target = _aligned(PK_APPEND_SIZE(shape)), np.empty(n)
        self.sweep_rows.rows, self.sweep_rows.shape = &self.rows, shape
        self.sweep_rows.before, self.sweep_rows.T = &before[0, 0], &self.T[0, 0]
        self.sweep_rows.buffer, self.sweep_rows.target = &self.buffer[0], &self.target[0]
        self.sweep_rows.offsets = _given(offsets, n, "offsets")
        _given(y, n, "y")
        _given(weights, n, "weights")

    def start(self, const double[::1] precision, const double[::1] target):
        """What is known with these sites (n,)."""
        cdef Py_ssize_t n = self.rows.n
        _given(precision, n, "precision")
        _given(target, n, "target")
        now = np.empty((4, n))
        now[0], now[1] = precision, np.multiply(precision, target)
        cdef pk_swept swept = _swept(now)
        with nogil:
            pk_predict_with_sites(&self.sweep_rows, &swept)
        return now

    def advance(self, double[:, ::1] now, double step):
        """The next sweep's, each site ``step`` of the way, and its largest change, in standard deviations."""
        if now.shape[0] != 4 or now.shape[1] != self.rows.n:
            raise ValueError(f"sites have shape ({now.shape[0]}, {now.shape[1]}): expected (4, {self.rows.n})")
        following = np.empty((4, self.rows.n))
        cdef double[:, ::1] room = following
        cdef pk_swept old = _swept(now), new = _swept(room)
        cdef double change
        with nogil:
            change = pk_sweep_sites(&self.likelihood, &self.sweep_rows, &self.y[0], &self.weights[0], step, &old, &new)
        return following, change


def working_rows(int code, parameters, const double[::1] y, const double[::1] eta, const double[::1] weights,
                 double[::1] precision, double[::1] pull):
    """Site rows of Newton's method at eta: precision, and that times (target - eta), written to the last two.

    Returns the sum of the weights times log p(y | eta), but for what depends on y alone, and that of
    precision (target - eta)^2 / 2.
    """
    cdef pk_likelihood likelihood = _likelihood(code, parameters, False)
    cdef Py_ssize_t n = y.shape[0]
    cdef const double *e = _given(eta, n, "eta")
    cdef const double *w = _given(weights, n, "weights")
    cdef double total = 0.0, squares = 0.0
    if _given(precision, n, "precision") is not NULL and _given(pull, n, "pull") is not NULL:
        with nogil:
            total = pk_working_rows(&likelihood, n, &y[0], e, w, &precision[0], &pull[0], &squares)
    return total, squares


def total_density(int code, parameters, const double[::1] y, const double[::1] eta, const double[::1] weights):
    """Sum of the weights times log p(y | eta)."""
    cdef pk_likelihood likelihood = _likelihood(code, parameters, False)
    cdef Py_ssize_t n = y.shape[0]
    cdef const double *e = _given(eta, n, "eta")
    cdef const double *w = _given(weights, n, "weights")
    cdef double total = 0.0
    if n > 0:
        with nogil:
            total = pk_total_density(&likelihood, n, &y[0], e, w)
    return total


def average_densities(int code, parameters, const double[::1] y, const double[::1] mean, const double[::1] sd,
                      const double[::1] nodes, const double[::1] shares, double vague):
    """Averages (n,) of log p(y | eta), its slope and its curvature, which may be negative below a ``vague`` variance.

    Over eta = mean + sd node, each node (k,) with its share (k,).
    """
    cdef pk_likelihood likelihood = _likelihood(code, parameters, False)
    cdef Py_ssize_t n = y.shape[0], k = nodes.shape[0]
    cdef const double *m = _given(mean, n, "mean")
    cdef const double *s = _given(sd, n, "sd")
    cdef const double *w = _given(shares, k, "shares")
    out = np.empty((3, n))
    cdef double[:, ::1] room = out
    if n > 0 and k > 0:
        with nogil:
            pk_average_looks(&likelihood, n, &y[0], m, s, k, &nodes[0], w, vague, &room[0, 0], &room[1, 0], &room[2, 0])
    return tuple(out)
