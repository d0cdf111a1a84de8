# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The compiled paths for single rows: one row a call, everything checked before anything is changed."""

import numpy as np
from scipy.linalg import cython_lapack

from posterity.kernel.values import read_float, read_floats

cimport numpy as cnp
from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer
from libc.math cimport INFINITY, fabs, floor, fmax, isfinite, log, sqrt
from libc.string cimport memcmp, memcpy

cnp.import_array()

include "_structures.pxi"
include "_likelihoods.pxi"

cdef extern from "posterity_one_site.h" nogil:
    enum: PK_LOGIT
    enum: PK_POISSON
    enum: PK_NEGATIVE_BINOMIAL
    enum: PK_KINKED
    double PK_LOG_ROOT_2PI
    double PK_VAGUE_VARIANCE
    Py_ssize_t PK_SITE_WORK_SIZE(pk_shape shape)
    void pk_append_one(double *T, double *row, pk_shape shape)
    double pk_predict_one(const double *T, double *row, pk_shape shape)
    double pk_eta_moments_of_one(const double *T, double *buffer, const double *row, pk_shape shape, double *mean)
    void pk_learn_one_site(double *T, double *buffer, const double *row, double precision, double target, double mean, double variance, pk_shape shape)
    void pk_find_sites(const pk_likelihood *l, Py_ssize_t n, const double *y, const double *mean, const double *variance, const double *weights, double *precision, double *target, double *log_normalizer)
    void pk_expected_label_one(double mean, double variance, double *yes, double *no)

cdef extern from "posterity_members.h" nogil:
    void pk_fade_one(double *T, double *held, double *buffer, double discount, const double *prior, pk_shape shape)
    void pk_fade_along(double *T, const double *prior, double *x, double discount, double *work, pk_shape shape)
    Py_ssize_t PK_WALK_SIZE(pk_shape shape)
    void pk_slope_step(double *T, Py_ssize_t c, double x, double growth, int intercept, double *work, pk_shape shape)
    void pk_random_walk_step(double *T, const double *variance, double *work, pk_shape shape)
    double pk_predict_before(const double *T, double *row, double root, double y, pk_shape shape, double *error, double *residual)
    double pk_log_t(double error, double v, double scale)
    double PK_MAX_LOG_DENSITY

cdef extern from "posterity_window.h" nogil:
    ctypedef struct pk_window:
        const pk_rows *rows
        const double *prior
        Py_ssize_t oldest, removed
    Py_ssize_t PK_APPEND_SIZE(pk_shape shape)
    void pk_slide_one(double *T, double *buffer, double *row, pk_window *window, Py_ssize_t before, Py_ssize_t after, pk_shape shape)

cdef extern from "posterity_packed.h" nogil:
    void pk_unpack(double *T, const double *packed, pk_shape shape)
    void pk_pack(double *packed, const double *T, pk_shape shape)
    void pk_stack(double *P, double *T, const double *prior, pk_shape shape)

include "_values.pxi"

include "_plain_rows.pxi"

# Of a constant feature: a value further away, relative to it, is another value.
cdef double SAME = 1e-9


cdef class Scales:
    """Updates the ``scales`` of ``known``, means and squares of the features of all rows, if there are any."""

    cdef object known, scales, bound
    cdef double[::1] mean, squares

    def __init__(self, known):
        self.known = known

    cdef int bind(self) except -1:
        """Take their arrays, copied if others share them."""
        scales = self.known.scales
        if scales is not None and (scales is not self.scales or scales.mean is not self.bound):
            scales.mean, scales.squares = np.array(scales.mean), np.array(scales.squares)
            self.mean, self.squares, self.bound = scales.mean, scales.squares, scales.mean
        self.scales = scales
        return 0

    cdef int enter(self, const double[::1] row, Py_ssize_t first, Py_ssize_t columns, double root, double weight) except -1:
        """Learn as RunningScales does: ``columns`` columns of a row times ``root``, from ``first`` on."""
        cdef Py_ssize_t i
        cdef double before, share, step
        if self.scales is None:
            return 0
        before = self.scales.count
        share = weight / (before + weight)
        for i in range(columns):
            step = row[first + i] / root - self.mean[i]
            self.squares[i] += step * step * (before * share)
            self.mean[i] += step * share
        self.scales.count = before + weight
        return 0


cdef class RowPath:
    """Learns and predicts rows of one target.

    Shares ``triangle`` (q, ld) and ``counts`` (2,), the sums of weights as they fade and as they came,
    with the factor that owns them.
    """

    # Another factor that learns the same rows, and a clock (rows, due): a row that makes it due is left alone.
    cdef RowPath companion
    cdef Scales scales
    cdef object known, stream
    cdef long long[::1] clock
    cdef bint closed
    # Features that were constant so far, and their values, when the clock counted so many rows.
    cdef object waiting
    cdef long long rows
    cdef Py_ssize_t[::1] constant
    cdef double[::1] constants

    # What is left of all that is known before a row, but of a prior that keeps its weight, if there is one.
    cdef double discount
    cdef double[:, ::1] prior
    cdef double[::1] held, panel
    # How far coefficients move before a row, if they do.
    cdef double[::1] variance, moves
    cdef Py_ssize_t slope
    cdef bint forgets

    cdef double[:, ::1] triangle
    cdef double[::1] counts, buffer
    cdef pk_shape shape
    cdef bint intercept
    cdef readonly tuple names
    cdef dict places
    cdef Py_ssize_t columns

    def __init__(self, triangle, counts, bint intercept, names=None):
        self.triangle, self.counts, self.intercept = triangle, counts, intercept
        self.shape.q, self.shape.ld, self.shape.k = self.triangle.shape[0], self.triangle.shape[1], 1
        self.shape.p = self.shape.q - 1
        if self.shape.p < 0 or self.shape.ld != (self.shape.q + PK_LINE - 1) // PK_LINE * PK_LINE:
            raise ValueError(f"triangle has shape ({self.shape.q}, {self.shape.ld}): it is none of one target")
        self.columns = self.shape.p - intercept
        self.buffer = _aligned(self.shape.ld)
        self.names = None if names is None else tuple(names)
        self.places = {name: place for place, name in enumerate(self.names or ())}
        self.discount, self.variance = 1.0, None

    def fade(self, double discount, double[:, ::1] prior=None):
        """Discount all information by ``discount``, in (0, 1], before each row but the first; not ``prior``, if given."""
        if not 0.0 < discount <= 1.0:
            raise ValueError(f"discount is {discount}: it must be above 0 and at most 1")
        if prior is not None and (prior.shape[0] != self.shape.q or prior.shape[1] != self.shape.ld):
            raise ValueError(f"prior has shape ({prior.shape[0]}, {prior.shape[1]}): it is none of this triangle")
        self.discount, self.prior, self.forgets = discount, prior, discount < 1.0
        self.held, self.panel = _aligned(self.shape.q), _aligned(PK_APPEND_SIZE(self.shape))

    def wander(self, variance, Py_ssize_t slope=-1):
        """Let coefficients move by Normal(0, ``variance`` (p,)), relative to the noise's, before each row but the first.

        Or one ``slope`` alone: as ``learn_random_walk``.
        """
        self.variance, self.forgets = np.array(variance, dtype=np.float64), self.shape.p > 0
        self.slope = slope
        if self.variance.shape[0] != self.shape.p or not (slope < 0 or self.intercept <= slope < self.shape.p):
            raise ValueError(f"variance has length {self.variance.shape[0]}: expected {self.shape.p}")
        self.moves = _aligned(PK_WALK_SIZE(self.shape))

    def learn(self, x, double y, double weight=1.0):
        """Append the row ``x`` (array of length m, or mapping of names), target ``y``.

        False, and nothing happens, where the row must be learned in another way: see ``go_together``
        and ``close``.
        """
        _check_weight(weight)
        cdef double root = sqrt(weight)
        if not fabs(y) * root <= LARGEST:
            raise ValueError(_complaint("y", y))
        self._ask_what_waits()
        if not self._fill(x, root):
            return self.learn(self._as_array(x), y, weight)
        self.buffer[self.shape.p] = root * y
        if self._is_due(root) or self.closed:
            return False
        if self.companion is not None:
            self.companion.buffer[:] = self.buffer
            self.companion._append(weight)
        if not self._append(weight):
            return False
        self._count(weight)
        return True

    def close(self):
        """Learn no more rows: whoever has this path must open another one."""
        self.closed = True

    cdef int _append(self, double weight) except -1:
        """Forget, then learn the row in the buffer, which is times the root of its weight; False if it can't."""
        if self.forgets and weight > 0.0 and self.counts[1] > 0.0:
            self._forget(weight)
        pk_append_one(&self.triangle[0, 0], &self.buffer[0], self.shape)
        self.counts[0] += weight
        self.counts[1] += weight
        return True

    cdef void _forget(self, double weight) noexcept:
        """Forget, before the row in the buffer, which is times the root of its weight, is learned."""
        self._fade(&self.triangle[0, 0], sqrt(weight))
        self.counts[0] *= self.discount

    cdef void _fade(self, double *triangle, double root) noexcept:
        if self.discount < 1.0:
            pk_fade_one(triangle, &self.held[0], &self.panel[0], self.discount,
                        NULL if self.prior is None else &self.prior[0, 0], self.shape)
        if self.variance is None:
            return
        if self.slope < 0:
            pk_random_walk_step(triangle, &self.variance[0], &self.moves[0], self.shape)
        else:
            pk_slope_step(triangle, self.slope, self.buffer[self.slope] / root, self.variance[self.slope], self.intercept,
                          &self.moves[0], self.shape)

    def go_together(self, RowPath companion, long long[::1] clock not None, waiting, known=None, stream=None):
        """Let the factor of ``companion``, of the same shape, learn every row as well, if there is one.

        ``clock`` (2,) counts the rows that weigh something. The one that makes it reach its second number
        is not learned. ``waiting()`` returns the places and values of the features that were constant
        so far: a row in which one of them changes is not learned either. What learns sites keeps up the
        ``scales`` of ``known``, if it has any; from the first row on its ``stream`` is this one.
        """
        self.known, self.stream, self.scales = known, stream, None if known is None else Scales(known)
        self.companion, self.clock, self.waiting = companion, clock, waiting
        self.rows = -1

    cdef bint _is_due(self, double root) noexcept:
        """Return True if the row in the buffer, times ``root``, must be left to other code."""
        if self.waiting is None:
            return False
        return self.clock[0] != self.rows or self._moves(root) or self.clock[0] + (root > 0.0) >= self.clock[1]

    cdef int _ask_what_waits(self) except -1:
        """Ask which features were constant so far: before a row is in the buffer, as this runs Python."""
        cdef long long rows
        if self.waiting is None or self.clock[0] == self.rows:
            return 0
        rows = self.clock[0]  # others have learned rows since, and may learn more meanwhile
        self.constant, self.constants = self.waiting()
        self.rows = rows
        return 0

    cdef bint _moves(self, double root) noexcept:
        """Return True if a feature that was constant so far differs in the buffer, times ``root``."""
        cdef Py_ssize_t i
        cdef double value
        for i in range(self.constant.shape[0]):
            value = self.buffer[self.intercept + self.constant[i]]
            if fabs(value - root * self.constants[i]) > SAME * fabs(root * self.constants[i]):
                return True
        return False

    cdef int _count(self, double weight) except -1:
        if self.waiting is not None:
            self.clock[0] += weight > 0.0
            self.rows = self.clock[0]
        if self.known is not None:
            self.known.stream = self.stream
        return 0

    def values(self, x):
        """The features of ``x`` as an array (1, m), checked."""
        cdef cnp.npy_intp[2] size
        size[0], size[1] = 1, self.columns
        cdef cnp.ndarray values = cnp.PyArray_SimpleNew(2, size, cnp.NPY_DOUBLE)
        self._load(x, 1.0)
        memcpy(cnp.PyArray_DATA(values), &self.buffer[self.intercept], self.columns * sizeof(double))
        return values

    def predict_mean(self, x):
        """Mean at ``x``."""
        self._load(x, 1.0)
        pk_predict_one(&self.triangle[0, 0], &self.buffer[0], self.shape)
        return 0.0 - self.buffer[self.shape.p]  # not -0.0

    def predict(self, x):
        """Mean and leverage at ``x``, as ``predict_rows``."""
        self._load(x, 1.0)
        cdef double leverage = pk_predict_one(&self.triangle[0, 0], &self.buffer[0], self.shape)
        return 0.0 - self.buffer[self.shape.p], leverage

    cdef int _load(self, object x, double root) except -1:
        """Fill the buffer with any row, times ``root``."""
        if not self._fill(x, root):
            self._fill(self._as_array(x), root)
        return 0

    cdef bint _fill(self, object x, double root) except -1:
        """Fill the buffer with a row, times ``root``; False where reading it may run Python.

        Other threads may learn in between: read as an array, the row is learned from the start.
        """
        cdef Py_ssize_t i
        cdef double *row = &self.buffer[0]
        for i in range(self.shape.p, self.shape.ld):
            row[i] = 0.0
        row[0] = root  # overwritten when there is no intercept
        row += self.intercept
        if not _read_row(x, self.columns, self.names, self.places, row):
            return False
        for i in range(self.columns):
            row[i] *= root
            if not fabs(row[i]) <= LARGEST:
                raise ValueError(_complaint(self._column(i), row[i] / root if root else row[i]))
        return True

    def _as_array(self, x):
        """Read a row in the general case: mappings of any kind, lists, other dtypes."""
        if hasattr(x, "keys"):
            if self.names is None:
                raise TypeError(
                    "x is a mapping of names, but the model learned from rows without names: "
                    "pass an array, or learn from the start with named features"
                )
            if len(x) != self.columns or any(name not in x for name in self.names):
                self._refuse_names(x)
            x = [x[name] for name in self.names]
        try:
            array = np.array(read_floats(x, "x"), dtype=np.float64, order="C", ndmin=1)
        except (TypeError, ValueError):
            self._refuse_values(x)
            raise
        if array.ndim != 1 or len(array) != self.columns:
            raise ValueError(
                f"x has shape {np.shape(x)}: expected ({self.columns},), one value per feature"
            )
        return array

    def _refuse_values(self, values):
        """Raise an error that names the value that is not a number, if one is not."""
        for i, value in enumerate(values if np.ndim(values) == 1 and len(values) == self.columns else ()):
            try:
                read_float(value)
            except (TypeError, ValueError) as error:
                held = "beyond 1.8e308, the largest float" if isinstance(value, int) else f"{value!r}, which is not a number"
                raise type(error)(
                    f"{self._column(i)} is {held}: leave the row out, fill the value in, or encode it as numbers ({error})"
                ) from None

    def _refuse_names(self, x):
        if getattr(x, "ndim", 1) != 1:
            raise TypeError(
                f"x is a {type(x).__name__} of shape {x.shape}: give one row, as a mapping or a series (of a data "
                "frame, x.iloc[0]), or all rows to the method for many rows"
            )
        missing = [name for name in self.names if name not in x]
        unexpected = [name for name in x if name not in self.names]
        raise ValueError(
            "x does not have the features the model knows: "
            + "; ".join(
                f"{word} {', '.join(map(repr, names))}"
                for word, names in (("missing", missing), ("unexpected", unexpected)) if names
            )
        )

    def _column(self, Py_ssize_t i):
        return f"x in column {i}" if self.names is None else f"x in column {self.names[i]!r}"


cdef class GroupPath(RowPath):
    """Learns and predicts single rows of the groups of a bank, whose triangles are packed; for ``p`` coefficients."""

    cdef double[:, ::1] packed, posterior
    cdef double[::1] count, seen
    cdef long long[::1] last
    cdef object arrays

    def __init__(self, Py_ssize_t p, bint intercept, names=None):
        room = np.zeros((2, p + 1, (p + 1 + PK_LINE - 1) // PK_LINE * PK_LINE))
        RowPath.__init__(self, room[0], np.zeros(2), intercept, names)
        self.posterior = room[1]

    cdef int _open(self, bank, Py_ssize_t slot, Py_ssize_t least) except -1:
        """Take the arrays of a bank, which replaces them all together."""
        if bank._arrays is not self.arrays:
            self.packed, self.count, self.seen, self.last = bank._arrays
            self.arrays = bank._arrays
        if self.packed.shape[1] != self.shape.q * (self.shape.q + 1) // 2 or not least <= slot < self.packed.shape[0]:
            raise ValueError(f"there is no slot {slot} in the bank")
        return 0

    def learn_in(self, bank, Py_ssize_t slot, x, double y, double weight):
        """Append the row ``x``, ``y`` to the triangle of a group, and count it."""
        _check_weight(weight)
        cdef double root = sqrt(weight)
        if not fabs(y) * root <= LARGEST:
            raise ValueError(_complaint("y", y))
        self._load(x, root)
        self.buffer[self.shape.p] = root * y
        self._learn_loaded(bank, slot, weight)

    cdef int _learn_loaded(self, bank, Py_ssize_t slot, double weight) except -1:
        """Learn the row in the buffer, which is times the root of its weight."""
        self._open(bank, slot, 0)
        clock = bank.clock + 1
        pk_unpack(&self.triangle[0, 0], &self.packed[slot, 0], self.shape)
        pk_append_one(&self.triangle[0, 0], &self.buffer[0], self.shape)
        pk_pack(&self.packed[slot, 0], &self.triangle[0, 0], self.shape)
        self.count[slot] += weight
        self.seen[slot] += weight
        self.last[slot] = clock
        bank.clock = clock
        return 0

    def predict_in(self, bank, Py_ssize_t slot, x, const double[:, ::1] prior):
        """Mean and leverage at ``x`` in a group, its rows stacked on ``prior`` (q, ld); slot -1: on the prior alone."""
        cdef const double *P = &prior[0, 0]
        cdef double leverage
        if prior.shape[0] != self.shape.q or prior.shape[1] != self.shape.ld:
            raise ValueError(f"prior has shape ({prior.shape[0]}, {prior.shape[1]}): it is none of these groups")
        self._load(x, 1.0)
        self._open(bank, slot, -1)
        if slot >= 0:
            pk_unpack(&self.triangle[0, 0], &self.packed[slot, 0], self.shape)
            pk_stack(&self.posterior[0, 0], &self.triangle[0, 0], P, self.shape)
            P = &self.posterior[0, 0]
        leverage = pk_predict_one(P, &self.buffer[0], self.shape)
        return 0.0 - self.buffer[self.shape.p], leverage


cdef _complaint(str where, double value):
    if isfinite(value):
        return f"{where} is {value:g}: beyond {LARGEST:g}, times the root of its weight, products overflow; use smaller units"
    return f"{where} is not finite ({value}): remove the row or fill the value in"

include "_forgetting_paths.pxi"

include "_targets_path.pxi"

include "_site_path.pxi"

include "_softmax_path.pxi"

include "_nodes_path.pxi"

include "_arms_path.pxi"
