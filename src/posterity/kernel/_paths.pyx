# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The lean paths: one row a call, everything checked before anything is touched."""

import numpy as np

cimport numpy as cnp
from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject
from libc.math cimport INFINITY, fabs, floor, isfinite, log, sqrt
from libc.string cimport memcpy

cnp.import_array()

cdef extern from "posterity_one_site.h" nogil:
    enum: PK_LINE
    enum: PK_LOGIT
    enum: PK_POISSON
    enum: PK_NEGATIVE_BINOMIAL
    double PK_LOG_ROOT_2PI
    double PK_VAGUE_VARIANCE
    ctypedef struct pk_shape:
        Py_ssize_t p, k, q, ld
    ctypedef struct pk_likelihood:
        int code, moments
        double a, b, c
    Py_ssize_t PK_SITE_WORK_SIZE(pk_shape shape)
    void pk_append_one(double *T, double *row, pk_shape shape)
    double pk_predict_one(const double *T, double *row, pk_shape shape)
    double pk_believe_one(const double *T, double *buffer, const double *row, pk_shape shape, double *mean)
    void pk_take_one(double *T, double *buffer, const double *row, double precision, double target, double mean, double variance, pk_shape shape)
    void pk_find_sites(const pk_likelihood *l, Py_ssize_t n, const double *y, const double *mean, const double *variance, const double *weights, double *precision, double *target, double *log_normalizer)
    void pk_expected_label_one(double mean, double variance, double *yes, double *no)

cdef extern from "posterity_forgetting.h" nogil:
    enum: PK_PANEL
    void pk_fade_one(double *T, double *held, double *buffer, double discount, const double *prior, pk_shape shape)

cdef extern from "posterity_packed.h" nogil:
    void pk_unpack(double *T, const double *packed, pk_shape shape)
    void pk_pack(double *packed, const double *T, pk_shape shape)
    void pk_stack(double *P, double *T, const double *prior, pk_shape shape)

# Squares of larger values would overflow.
cdef double LARGEST = 1e150
# Of a constant feature: a value further away, relative to it, is another value.
cdef double SAME = 1e-9


cdef _aligned(Py_ssize_t size):
    cdef cnp.ndarray storage = np.zeros(size + 7)
    cdef Py_ssize_t offset = (-(<Py_ssize_t> cnp.PyArray_DATA(storage)) // 8) & 7
    return storage[offset:offset + size]


cdef class RowPath:
    """Learns and predicts rows of one target.

    Shares ``triangle`` (q, ld) and ``counts`` (2,), the sums of weights as they fade and as they came,
    with the factor that owns them.
    """

    # Another factor that learns the same rows, and a clock (rows, due): a row that makes it due is left alone.
    cdef RowPath beside
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

    cdef double[:, ::1] triangle
    cdef double[::1] counts, buffer
    cdef pk_shape shape
    cdef bint intercept
    cdef readonly object names
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
        self.discount = 1.0

    def fade(self, double discount, double[:, ::1] prior=None):
        """Multiply what is known by ``discount``, in (0, 1], before each row but the first; not ``prior``, if given."""
        if not 0.0 < discount <= 1.0:
            raise ValueError(f"discount is {discount}: it must be above 0 and at most 1")
        if prior is not None and (prior.shape[0] != self.shape.q or prior.shape[1] != self.shape.ld):
            raise ValueError(f"prior has shape ({prior.shape[0]}, {prior.shape[1]}): it is none of this triangle")
        self.discount, self.prior = discount, prior
        self.held, self.panel = _aligned(self.shape.q), _aligned(PK_PANEL * self.shape.q)

    def learn(self, x, double y, double weight=1.0):
        """Append the row ``x`` (array of length m, or mapping of names), target ``y``.

        False, and nothing happens, where the row must be learned in another way: see ``go_together``
        and ``close``.
        """
        _check_weight(weight)
        cdef double root = sqrt(weight)
        if not fabs(y) * root <= LARGEST:
            raise ValueError(_complaint("y", y))
        self._load(x, root)
        self.buffer[self.shape.p] = root * y
        if self.waiting is not None and self._is_due(root):
            return False
        # Asked last: whoever reads Python's objects, as above, may have let another thread close this.
        if self.closed:
            return False
        if self.beside is not None:
            self.beside.buffer[:] = self.buffer
            self.beside._append(weight)
        self._append(weight)
        self._count(weight)
        return True

    def close(self):
        """Learn no rows any more: whoever has this path must ask for another one."""
        self.closed = True

    cdef void _append(self, double weight) noexcept:
        if self.discount < 1.0 and weight > 0.0 and self.counts[1] > 0.0:
            pk_fade_one(&self.triangle[0, 0], &self.held[0], &self.panel[0], self.discount,
                        NULL if self.prior is None else &self.prior[0, 0], self.shape)
            self.counts[0] *= self.discount
        pk_append_one(&self.triangle[0, 0], &self.buffer[0], self.shape)
        self.counts[0] += weight
        self.counts[1] += weight

    def go_together(self, RowPath beside, long long[::1] clock not None, waiting):
        """Let the factor of ``beside``, of the same shape, learn every row as well, if there is one.

        ``clock`` (2,) counts the rows that weigh something. The one that makes it reach its second number
        is not learned. ``waiting()`` returns the places and values of the features that were constant
        so far: a row in which one of them changes is not learned either.
        """
        self.beside, self.clock, self.waiting = beside, clock, waiting
        self.rows = -1

    cdef int _is_due(self, double root) except -1:
        """Whether a row of some weight, in the buffer times ``root``, is one to be left alone."""
        self._ask_what_waits()
        return self._moves(root) or self.clock[0] + (root > 0.0) >= self.clock[1]

    cdef int _ask_what_waits(self) except -1:
        if self.clock[0] != self.rows:  # others have learned rows since
            self.constant, self.constants = self.waiting()
            self.rows = self.clock[0]
        return 0

    cdef bint _moves(self, double root) noexcept:
        """Whether a feature that was constant so far is another in the buffer, times ``root``."""
        cdef Py_ssize_t i
        cdef double value
        for i in range(self.constant.shape[0]):
            value = self.buffer[self.intercept + self.constant[i]]
            if fabs(value - root * self.constants[i]) > SAME * fabs(root * self.constants[i]):
                return True
        return False

    cdef void _count(self, double weight) noexcept:
        if self.waiting is not None:
            self.clock[0] += weight > 0.0
            self.rows = self.clock[0]

    def values(self, x):
        """The features of ``x`` as an array (1, m), checked."""
        cdef cnp.npy_intp[2] size
        self._load(x, 1.0)
        size[0], size[1] = 1, self.columns
        cdef cnp.ndarray values = cnp.PyArray_SimpleNew(2, size, cnp.NPY_DOUBLE)
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
        cdef Py_ssize_t i
        cdef double *row = &self.buffer[0]
        cdef const double *values
        for i in range(self.shape.p, self.shape.ld):
            row[i] = 0.0
        row[0] = root  # overwritten when there is no intercept
        row += self.intercept
        if type(x) is dict and self.names is not None and len(<dict> x) == self.columns:
            self._load_dict(<dict> x, row)
        elif not (cnp.PyArray_Check(x) and cnp.PyArray_TYPE(x) == cnp.NPY_DOUBLE and cnp.PyArray_NDIM(x) == 1
                  and cnp.PyArray_DIM(x, 0) == self.columns and cnp.PyArray_IS_C_CONTIGUOUS(x)
                  and cnp.PyArray_ISALIGNED(x)):
            x = self._as_array(x)
            values = <const double *> cnp.PyArray_DATA(x)
            for i in range(self.columns):
                row[i] = values[i]
        else:
            values = <const double *> cnp.PyArray_DATA(x)
            for i in range(self.columns):
                row[i] = values[i]
        for i in range(self.columns):
            row[i] *= root
            if not fabs(row[i]) <= LARGEST:
                raise ValueError(_complaint(self._column(i), row[i] / root if root else row[i]))
        return 0

    cdef int _load_dict(self, dict x, double *row) except -1:
        cdef Py_ssize_t i
        cdef PyObject *value
        for i in range(self.columns):
            value = PyDict_GetItem(x, self.names[i])
            if value is NULL:
                self._refuse_names(x)
            row[i] = <object> value
        return 0

    def _as_array(self, x):
        """The general case: mappings of any kind, lists, other dtypes."""
        if hasattr(x, "keys"):
            if self.names is None:
                raise TypeError(
                    "x is a mapping of names, but the model learned from rows without names: "
                    "pass an array, or learn from the start with named features"
                )
            if len(x) != self.columns or any(name not in x for name in self.names):
                self._refuse_names(x)
            x = [x[name] for name in self.names]
        array = np.ascontiguousarray(x, dtype=np.float64)
        if array.ndim != 1 or len(array) != self.columns:
            raise ValueError(
                f"x has shape {np.shape(x)}: expected ({self.columns},), one value per feature"
            )
        return array

    def _refuse_names(self, x):
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
        """Reach for the arrays of a bank, which replaces them all together."""
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
        self._open(bank, slot, 0)
        clock = bank.clock + 1
        pk_unpack(&self.triangle[0, 0], &self.packed[slot, 0], self.shape)
        pk_append_one(&self.triangle[0, 0], &self.buffer[0], self.shape)
        pk_pack(&self.packed[slot, 0], &self.triangle[0, 0], self.shape)
        self.count[slot] += weight
        self.seen[slot] += weight
        self.last[slot] = clock
        bank.clock = clock

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


cdef class SitePath(RowPath):
    """Learns rows through the sites of their targets, and tells of their eta; noise has precision 1.

    ``likelihood`` is (code, parameters, moments); ``account`` has the sums ``log_sites``, ``told``,
    ``seen`` and ``effective``; ``check_targets`` refuses targets (1,) that the likelihood does not know.
    """

    cdef pk_likelihood likelihood
    cdef object account, check_targets
    cdef double[::1] work, spare
    # Labels in order, and the target that each stands for.
    cdef object labels
    cdef dict targets

    def __init__(self, triangle, counts, bint intercept, names, likelihood, account, check_targets):
        RowPath.__init__(self, triangle, counts, intercept, names)
        code, parameters, moments = likelihood
        self.likelihood.code, self.likelihood.moments = code, moments
        self.likelihood.a, self.likelihood.b, self.likelihood.c = parameters
        self.account, self.check_targets = account, check_targets
        self.work, self.spare = _aligned(PK_SITE_WORK_SIZE(self.shape)), _aligned(self.shape.q * self.shape.ld)
        self.labels, self.targets = (), {}

    def learn(self, x, double y, double weight=1.0):
        """Learn the row ``x`` (array of length m, or mapping of names), target ``y``; as ``RowPath.learn``."""
        cdef double mean, variance, precision, target, log_normalizer
        _check_weight(weight)
        if not self._knows(y):
            if not fabs(y) <= LARGEST:
                raise ValueError(_complaint("y", y))
            self.check_targets(np.array([y]))
        self._load(x, 1.0)
        cdef double left = self.discount if weight > 0.0 and self.counts[1] > 0.0 else 1.0
        cdef double *triangle = self._faded(left)
        variance = pk_believe_one(triangle, &self.work[0], &self.buffer[0], self.shape, &mean)
        pk_find_sites(&self.likelihood, 1, &y, &mean, &variance, &weight, &precision, &target, &log_normalizer)
        self._refuse_overflow(sqrt(precision), target)
        if self.waiting is not None and precision > 0.0 and self._is_due(1.0):
            return False
        if self.closed:
            return False
        if left < 1.0:
            memcpy(&self.triangle[0, 0], triangle, self.shape.q * self.shape.ld * sizeof(double))
            self.counts[0] *= left
        if precision > 0.0:
            self._take(precision, target, mean, variance)
        self._enter(weight, mean, variance, precision, target, log_normalizer, left)
        self._count(precision)
        return True

    cdef bint _knows(self, double y) noexcept:
        # Labels are 0 and 1, which all others know as well; counts are whole.
        if y == 0.0 or y == 1.0:
            return True
        counts = self.likelihood.code == PK_POISSON or self.likelihood.code == PK_NEGATIVE_BINOMIAL
        return counts and 0.0 <= y <= LARGEST and floor(y) == y

    cdef double *_faded(self, double left) noexcept:
        """The triangle, or a copy of it that counts for so much less."""
        if left == 1.0:
            return &self.triangle[0, 0]
        memcpy(&self.spare[0], &self.triangle[0, 0], self.shape.q * self.shape.ld * sizeof(double))
        pk_fade_one(&self.spare[0], &self.held[0], &self.panel[0], left,
                    NULL if self.prior is None else &self.prior[0, 0], self.shape)
        return &self.spare[0]

    cdef double _believe(self, double *mean) noexcept:
        return pk_believe_one(&self.triangle[0, 0], &self.work[0], &self.buffer[0], self.shape, mean)

    cdef int _refuse_overflow(self, double root, double target) except -1:
        cdef Py_ssize_t i
        cdef bint usable = fabs(target) * root <= LARGEST and root <= LARGEST
        for i in range(self.shape.p):
            usable = usable and fabs(self.buffer[i]) * root <= LARGEST
        if not usable:
            raise ValueError("learning this row overflows: its values and weight are too large together")
        return 0

    cdef void _take(self, double precision, double target, double mean, double variance) noexcept:
        cdef double root = sqrt(precision)
        cdef Py_ssize_t i
        pk_take_one(&self.triangle[0, 0], &self.work[0], &self.buffer[0], precision, target, mean, variance, self.shape)
        self.counts[0] += precision
        self.counts[1] += precision
        if self.beside is not None:
            for i in range(self.shape.ld):
                self.beside.buffer[i] = root * self.buffer[i]
            self.beside.buffer[self.shape.p] = root * target
            self.beside._append(precision)

    cdef int _enter(self, double weight, double mean, double variance, double precision, double target,
                    double log_normalizer, double left) except -1:
        """Enter a row into the account, as Sites.log_scale has it."""
        cdef double off = target - mean, spread = 1.0 + precision * variance, log_scale = log_normalizer
        if variance < INFINITY:
            log_scale += 0.5 * (log(spread) + precision * off * off / spread)
        elif precision > 0.0:
            log_scale += 0.5 * log(precision) - PK_LOG_ROOT_2PI
        account = self.account
        account.log_sites += log_scale + PK_LOG_ROOT_2PI * precision
        account.told += log_normalizer
        account.seen += weight
        account.effective = account.seen if self.discount == 1.0 else left * account.effective + weight
        return 0

    def believe(self, x):
        """Mean and variance of eta at ``x``; infinite where a direction is open."""
        cdef double mean, variance
        self._load(x, 1.0)
        variance = self._believe(&mean)
        return mean, variance

    # ---- labels ------------------------------------------------------------------------------

    def name_labels(self, labels, bint flipped):
        """Name one label or two, in order; the second stands for 1, if ``flipped`` the first."""
        self.labels = tuple(labels)
        self.targets = {label: float(place != flipped) for place, label in enumerate(self.labels)}

    def learn_label(self, x, label, double weight=1.0):
        """As ``learn``, with a label; False, too, for one without a name."""
        cdef PyObject *target = PyDict_GetItem(self.targets, label)
        if target is NULL:
            return False
        return self.learn(x, <object> target, weight)

    def probabilities(self, x):
        """Probability of each label at ``x``, where eta is the log odds: averaged over eta.

        None where a feature that was constant so far is another, of which this path does not know enough.
        """
        cdef double mean, variance, yes, no
        self._load(x, 1.0)
        if self.waiting is not None:
            self._ask_what_waits()
            if self._moves(1.0):
                return None
        if len(self.labels) == 1:
            return {self.labels[0]: 1.0}
        variance = self._believe(&mean)
        # As little is believed of eta as when the first row is learned.
        pk_expected_label_one(mean, variance if variance < INFINITY else PK_VAGUE_VARIANCE, &yes, &no)
        first, second = self.labels
        if self.targets[first] == 1.0:
            return {first: yes, second: no}
        return {first: no, second: yes}


cdef class TargetsPath(RowPath):
    """Learns and predicts rows of ``n_targets`` targets."""

    # Names of the targets, by which they may come as a mapping, and are predicted as one.
    cdef readonly object target_names

    def __init__(self, triangle, counts, bint intercept, names, Py_ssize_t n_targets):
        RowPath.__init__(self, triangle, counts, intercept, names)
        self.shape.k, self.shape.p = n_targets, self.shape.q - n_targets
        self.columns = self.shape.p - intercept
        if n_targets < 1 or self.columns < 0:
            raise ValueError(f"a triangle of {self.shape.q} columns can't have {n_targets} targets")

    def name_targets(self, names):
        """Let the targets have names."""
        if len(names) != self.shape.k:
            raise ValueError(f"there are {len(names)} names for {self.shape.k} targets")
        self.target_names = tuple(names)

    def learn(self, x, y, double weight=1.0):
        """Append the row ``x`` with targets ``y`` (array of length k, or mapping of names); as ``RowPath.learn``."""
        _check_weight(weight)
        cdef double root = sqrt(weight)
        self._load(x, root)
        self._load_targets(y, root)
        if self.waiting is not None and self._is_due(root):
            return False
        if self.closed:
            return False
        self._append(weight)
        self._count(weight)
        return True

    def predict_mean(self, x):
        """Means (k,) at ``x``; by name, where the targets have names."""
        self._load(x, 1.0)
        pk_predict_one(&self.triangle[0, 0], &self.buffer[0], self.shape)
        cdef Py_ssize_t i, p = self.shape.p
        if self.target_names is not None:
            return {self.target_names[i]: 0.0 - self.buffer[p + i] for i in range(self.shape.k)}
        return 0.0 - np.asarray(self.buffer[p:self.shape.q])

    def predict(self, x):
        """Means (k,) and leverage at ``x``."""
        self._load(x, 1.0)
        cdef double leverage = pk_predict_one(&self.triangle[0, 0], &self.buffer[0], self.shape)
        return 0.0 - np.asarray(self.buffer[self.shape.p:self.shape.q]), leverage

    cdef int _load_targets(self, object y, double root) except -1:
        cdef Py_ssize_t i
        cdef double *row = &self.buffer[0] + self.shape.p
        cdef const double *values
        cdef PyObject *value
        if type(y) is dict and self.target_names is not None and len(<dict> y) == self.shape.k:
            for i in range(self.shape.k):
                value = PyDict_GetItem(<dict> y, self.target_names[i])
                if value is NULL:
                    self._refuse_target_names(y)
                row[i] = <object> value
        else:
            if not (cnp.PyArray_Check(y) and cnp.PyArray_TYPE(y) == cnp.NPY_DOUBLE and cnp.PyArray_NDIM(y) == 1
                    and cnp.PyArray_DIM(y, 0) == self.shape.k and cnp.PyArray_IS_C_CONTIGUOUS(y)
                    and cnp.PyArray_ISALIGNED(y)):
                y = self._targets_as_array(y)
            values = <const double *> cnp.PyArray_DATA(y)
            for i in range(self.shape.k):
                row[i] = values[i]
        for i in range(self.shape.k):
            row[i] *= root
            if not fabs(row[i]) <= LARGEST:
                name = i if self.target_names is None else repr(self.target_names[i])
                raise ValueError(_complaint(f"y of target {name}", row[i] / root if root else row[i]))
        return 0

    def _targets_as_array(self, y):
        """The general case: mappings of any kind, lists, other dtypes."""
        if hasattr(y, "keys"):
            if self.target_names is None:
                raise TypeError(
                    "y is a mapping of names, but the model learned from targets without names: "
                    "pass an array, or learn from the start with named targets"
                )
            if len(y) != self.shape.k or any(name not in y for name in self.target_names):
                self._refuse_target_names(y)
            y = [y[name] for name in self.target_names]
        array = np.ascontiguousarray(y, dtype=np.float64)
        if array.ndim != 1 or len(array) != self.shape.k:
            raise ValueError(f"y has shape {np.shape(y)}: expected ({self.shape.k},), one value per target")
        return array

    def _refuse_target_names(self, y):
        known = ", ".join(map(repr, self.target_names))
        raise ValueError(f"y has the targets {', '.join(map(repr, y))}: the model knows {known}")


cdef int _check_weight(double weight) except -1:
    if not (weight >= 0.0 and isfinite(weight)):
        raise ValueError(f"weight is {weight}: it must be finite and not negative")
    return 0


cdef _complaint(str where, double value):
    if isfinite(value):
        return f"{where} is {value:g}: beyond 1e150 its square overflows; use smaller units"
    return f"{where} is not finite ({value}): remove the row or fill the value in"

include "_softmax_path.pxi"

include "_nodes_path.pxi"

include "_arms_path.pxi"
