cdef extern from "posterity_arms.h" nogil:
    enum: PK_LANES
    enum: PK_FEW_COLUMNS
    ctypedef struct pk_rows:
        const double *X
        const double *Y
        const double *weights
        const double *discounts
        double *held
        Py_ssize_t n, columns, x_stride, x_step
        int intercept
    ctypedef struct pk_chooser:
        int values
        double df, stretch, floor
        unsigned long long seed
        const unsigned char *first
    Py_ssize_t PK_LANES_SIZE(Py_ssize_t arms, pk_shape shape)
    int pk_is_deficient(const double *T, pk_shape shape)
    Py_ssize_t pk_choose_arm(const double *mean, const double *width, const unsigned char *allowed, Py_ssize_t arms, const pk_chooser *how, unsigned long long number)
    void pk_pack_arm(double *lanes, const double *T, Py_ssize_t arm, pk_shape shape)
    void pk_pad_lanes(double *lanes, Py_ssize_t arms, pk_shape shape)
    void pk_expect_arms(const double *posteriors, const double *lanes, const unsigned char *open, Py_ssize_t arms, const double *row, double *work, pk_shape shape, double *mean, double *leverage)
    void pk_predict_rows(const double *T, double *buffer, const pk_rows *rows, pk_shape shape, double *mean, double *leverage)
    Py_ssize_t PK_APPEND_SIZE(pk_shape shape)


cdef int _check_expected(const double *mean, Py_ssize_t arms) except -1:
    """Refuse means that are no numbers: no arm is the best of them."""
    cdef Py_ssize_t k
    for k in range(arms):
        if mean[k] != mean[k]:
            raise ValueError(
                f"what is expected of arm {k} is not a number: contexts or rewards were too large; "
                "use smaller units")
    return 0


def choose_arms(means, widths, allowed, first, int values, double floor, unsigned long long seed,
                unsigned long long number):
    """Choose the arms (n,) of the largest values at n contexts, as ``ArmsPath.decide_rows`` does.

    Values are so many ``widths`` (n, K) above ``means``, by their kind, of the arms that are ``allowed``.
    """
    cdef const double[:, ::1] mean = np.ascontiguousarray(means), width = np.ascontiguousarray(widths)
    cdef Py_ssize_t n = mean.shape[0], size = mean.shape[1], i
    cdef Py_ssize_t[::1] arms = np.empty(n, dtype=np.intp)
    cdef const unsigned char[:, ::1] may = np.ascontiguousarray(allowed), untried = np.ascontiguousarray(first)
    cdef pk_chooser chooser
    if not (width.shape[0] == may.shape[0] == untried.shape[0] == n
            and width.shape[1] == may.shape[1] == untried.shape[1] == size > 0):
        raise ValueError(f"widths, and what is allowed and first, must have the shape {(n, size)} of the means")
    chooser.values, chooser.stretch, chooser.df, chooser.floor, chooser.seed = values, 1.0, INFINITY, floor, seed
    for i in range(n):
        chooser.first = &untried[i, 0]
        arms[i] = pk_choose_arm(&mean[i, 0], &width[i, 0], &may[i, 0], size, &chooser, number + i)
    return np.asarray(arms)


def believe_arms(list arms not None, X):
    """Means and variances (2, n, K) of eta at rows ``X`` (n, m), by K paths, each with the sign of its means.

    NaN where there is no path, or it knows too little, as ``SitePath.believe`` says.
    """
    cdef Py_ssize_t n = len(X), size = len(arms), i, k
    cdef double[:, :, ::1] believed = np.full((2, n, size), np.nan)
    cdef double sign
    cdef SitePath path
    for i in range(n):
        x = X[i]
        for k in range(size):
            path, sign = arms[k]
            if path is not None and path._load_known(x):
                believed[1, i, k] = path._believe(&believed[0, i, k])
                believed[0, i, k] *= sign
    return np.asarray(believed)


cdef double _scale_of(double scale, double leverage) noexcept nogil:
    """The scale of an expected target."""
    cdef double width = scale * sqrt(leverage)
    # 0 * inf: without noise so far, what is unknown is still unknown.
    return width if width == width else INFINITY


cdef class ArmsPath(RowPath):
    """Chooses among the groups of a bank by their expected targets, and learns single rows of them.

    ``posteriors`` (K, q, ld), those of the groups at ``slots`` (-1: unknown ones), are copied. What is expected is
    Student-t, with ``df`` degrees of freedom (infinite: normal) and the root of the leverage times ``scale`` (K,).
    Where arms have noise of their own, ``own_noise`` (K, 2) has its count and the residual beside that of the
    posterior: their scales change with each row. Arms that come ``first`` (K,) are chosen before all others.
    """

    cdef double[::1] posteriors, lanes, work
    cdef double[:, ::1] own_noise
    cdef const double[:, ::1] span
    cdef unsigned char[::1] open_arms
    cdef Py_ssize_t[::1] slots
    cdef unsigned char[::1] comes_first
    cdef Py_ssize_t clock, until, size
    cdef object known, reading, bank
    cdef readonly object first
    cdef GroupPath path
    cdef readonly Py_ssize_t arms
    cdef readonly double df
    cdef double[::1] scale

    def __init__(self, posteriors, bint intercept, names, double df, scale, own_noise, slots, first):
        cdef Py_ssize_t k
        self.arms, q, ld = posteriors.shape
        RowPath.__init__(self, np.zeros((q, ld)), np.zeros(2), intercept, names)
        self.posteriors = _aligned(max(self.arms * q * ld, 1))
        np.asarray(self.posteriors)[:self.arms * q * ld] = posteriors.reshape(-1)
        self.work, self.open_arms = _aligned(self.shape.ld * PK_LANES), np.zeros(max(self.arms, 1), dtype=np.uint8)
        self.slots = np.array(slots, dtype=np.intp)
        if self.slots.shape[0] != self.arms:
            raise ValueError(f"there are {self.slots.shape[0]} slots for {self.arms} arms")
        self.df, self.scale = df, np.array(scale, dtype=np.float64)
        self.own_noise = np.array(own_noise, dtype=np.float64)
        self.first, self.comes_first = np.array(first, dtype=bool), np.append(first, True).astype(np.uint8)
        if self.scale.shape[0] != self.arms or self.own_noise.shape[0] not in (0, self.arms):
            raise ValueError(f"scales and noise are of {self.scale.shape[0]} arms: expected {self.arms}")
        if q <= PK_FEW_COLUMNS:
            self.lanes = _aligned(max(PK_LANES_SIZE(self.arms, self.shape), 1))
            pk_pad_lanes(&self.lanes[0], self.arms, self.shape)
            for k in range(self.arms):
                self._lay(k)

    def use_prior_precision(self, known):
        """Take over the state of ``known``; see :meth:`is_of`."""
        self.known, self.reading, self.bank = known, known.read, known.bank
        self.clock, self.size, self.until = self.bank.clock, self.bank.size, 0

    def is_of(self, known):
        """Return True if this is the state of ``known``: nothing was learned since, and its prior is the same."""
        return (self.known is known and self.reading is known.read and self.bank is known.bank
                and self.clock == self.bank.clock and self.size == self.bank.size)

    def open(self, GroupPath path not None, Py_ssize_t until, span=None):
        """Learn rows from now on, by ``path``, until the bank's clock is there.

        Only rows in the ``span`` (q, ld), a triangle; None: all rows.
        """
        if path.shape.q != self.shape.q:
            raise ValueError(f"path is of {path.shape.p} coefficients: expected {self.shape.p}")
        if span is not None and span.shape != (self.shape.q, self.shape.ld):
            raise ValueError(f"span has shape {span.shape}: expected {(self.shape.q, self.shape.ld)}")
        self.path, self.until, self.span = path, until, span

    def close(self):
        """Learn no more rows: whoever has this path must open another one."""
        self.until = 0

    def learn_row(self, Py_ssize_t arm, x, double y, double weight):
        """Learn the row ``x``, ``y`` of an arm, here and in the bank, as ``GroupedPosterior.learn_row``.

        False, and nothing happens, where it must be learned in another way.
        """
        cdef Py_ssize_t slot
        cdef double root = sqrt(weight)
        if not 0 <= arm < self.arms:
            raise ValueError(f"there is no arm {arm}")
        slot = self.slots[arm]
        if self.until == 0 or slot < 0 or self.comes_first[arm] or not weight > 0.0:
            return False
        _check_weight(weight)
        if not fabs(y) * root <= LARGEST:
            raise ValueError(_complaint("y", y))
        self._load(x, root)
        self.buffer[self.shape.p] = root * y
        # Asked last: reading Python's objects may have let another thread close this, or learn.
        if self.clock + 1 >= self.until or not self.is_of(self.known):
            return False
        if self.span is not None:
            memcpy(&self.path.buffer[0], &self.buffer[0], self.shape.ld * sizeof(double))
            if pk_predict_one(&self.span[0, 0], &self.path.buffer[0], self.shape) == INFINITY:
                return False
        self.known.forget_reading()
        memcpy(&self.path.buffer[0], &self.buffer[0], self.shape.ld * sizeof(double))
        self.path._learn_loaded(self.bank, slot, weight)
        self.clock += 1
        cdef double *T = &self.posteriors[arm * self.shape.q * self.shape.ld]
        cdef double before = T[self.shape.q * self.shape.ld - self.shape.ld + self.shape.p]
        pk_append_one(T, &self.buffer[0], self.shape)
        if self.own_noise.shape[0]:
            self._learn_noise(arm, before, T[self.shape.q * self.shape.ld - self.shape.ld + self.shape.p], weight)
        if self.shape.q <= PK_FEW_COLUMNS:  # a view that was never set is not None
            self._lay(arm)
        return True

    cdef void _learn_noise(self, Py_ssize_t arm, double before, double after, double weight) noexcept:
        """Learn the noise of an arm from the roots of its posterior's residual before and after a row."""
        cdef double then = (self.own_noise[arm, 1] + before * before) / self.own_noise[arm, 0]
        self.own_noise[arm, 0] += weight
        self.scale[arm] *= sqrt((self.own_noise[arm, 1] + after * after) / self.own_noise[arm, 0] / then)

    cdef void _lay(self, Py_ssize_t arm) noexcept:
        cdef const double *T = &self.posteriors[arm * self.shape.q * self.shape.ld]
        pk_pack_arm(&self.lanes[0], T, arm, self.shape)
        self.open_arms[arm] = pk_is_deficient(T, self.shape)

    cdef void _expect(self, const double *row, double *mean, double *width) noexcept nogil:
        pk_expect_arms(&self.posteriors[0], &self.lanes[0] if self.shape.q <= PK_FEW_COLUMNS else NULL,
                       &self.open_arms[0], self.arms, row, &self.work[0], self.shape, mean, width)
        cdef Py_ssize_t k
        for k in range(self.arms):
            width[k] = _scale_of(self.scale[k], width[k])

    cdef pk_chooser _chooser(self, how, double floor, unsigned long long seed) except *:
        cdef pk_chooser chooser
        chooser.values, chooser.stretch = how
        chooser.df, chooser.floor, chooser.seed, chooser.first = self.df, floor, seed, &self.comes_first[0]
        return chooser

    def decide(self, x, const unsigned char[::1] allowed, how, double floor, unsigned long long seed,
               unsigned long long number):
        """Choose an arm at ``x``; return it, and mean and scale (K,) of all arms' expected targets.

        The arm of the largest value, by ``how`` (kind, stretch): a draw (0) stretched so, or so many scales above the
        mean (1), times a number (2) that is drawn once for all arms, from half a standard normal distribution.
        """
        cdef pk_chooser chooser = self._chooser(how, floor, seed)
        cdef cnp.npy_intp size = self.arms
        if allowed.shape[0] != self.arms:
            raise ValueError(f"allowed has length {allowed.shape[0]}: there are {self.arms} arms")
        self._load(x, 1.0)
        cdef cnp.ndarray means = cnp.PyArray_SimpleNew(1, &size, cnp.NPY_DOUBLE)
        cdef cnp.ndarray scales = cnp.PyArray_SimpleNew(1, &size, cnp.NPY_DOUBLE)
        cdef double *mean = <double *> cnp.PyArray_DATA(means)
        cdef double *width = <double *> cnp.PyArray_DATA(scales)
        self._expect(&self.buffer[0], mean, width)
        _check_expected(mean, self.arms)
        return pk_choose_arm(mean, width, &allowed[0], self.arms, &chooser, number), means, scales

    def decide_rows(self, const double[:, ::1] X, const unsigned char[:, :] allowed, how, double floor,
                    unsigned long long seed, unsigned long long number):
        """Choose arms at rows ``X`` (n, m) of consecutive numbers: arms (n,), means and scales (n, K)."""
        cdef Py_ssize_t n = X.shape[0], i
        cdef double[:, ::1] mean = np.empty((n, self.arms)), width = np.empty((n, self.arms))
        cdef Py_ssize_t[::1] arms = np.empty(n, dtype=np.intp)
        cdef const unsigned char[:, ::1] may = np.ascontiguousarray(np.broadcast_to(allowed, (n, self.arms)))
        cdef pk_chooser chooser = self._chooser(how, floor, seed)
        if X.shape[1] != self.columns:
            raise ValueError(f"X has {X.shape[1]} columns: expected {self.columns}")
        if self.shape.q > PK_FEW_COLUMNS:
            self._expect_rows(X, np.asarray(mean), np.asarray(width))
        for i in range(self.shape.p, self.shape.ld):
            self.buffer[i] = 0.0
        for i in range(n):
            if self.shape.q <= PK_FEW_COLUMNS:
                self.buffer[0] = 1.0  # overwritten when there is no intercept
                memcpy(&self.buffer[self.intercept], &X[i, 0], self.columns * sizeof(double))
                self._expect(&self.buffer[0], &mean[i, 0], &width[i, 0])
            _check_expected(&mean[i, 0], self.arms)
            arms[i] = pk_choose_arm(&mean[i, 0], &width[i, 0], &may[i, 0], self.arms, &chooser, number + i)
        return np.asarray(arms), np.asarray(mean), np.asarray(width)

    cdef int _expect_rows(self, const double[:, ::1] X, means, widths) except -1:
        """Compute means and leverages of many rows and columns, by panels, arm after arm."""
        cdef Py_ssize_t n = X.shape[0], k, i
        cdef double[::1] mean = np.empty(n), width = np.empty(n), buffer = _aligned(PK_APPEND_SIZE(self.shape))
        cdef pk_rows rows
        rows.X = &X[0, 0] if n and self.columns else NULL
        rows.Y, rows.weights, rows.discounts, rows.held = NULL, NULL, NULL, NULL
        rows.n, rows.columns, rows.x_stride, rows.x_step = n, self.columns, self.columns, 1
        rows.intercept = self.intercept
        for k in range(self.arms if n else 0):
            pk_predict_rows(&self.posteriors[k * self.shape.q * self.shape.ld], &buffer[0], &rows, self.shape,
                            &mean[0], &width[0])
            for i in range(n):
                width[i] = _scale_of(self.scale[k], width[i])
            means[:, k], widths[:, k] = mean, width
        return 0
