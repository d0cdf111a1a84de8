# A part of _paths.pyx: the lean paths of rows before which more is forgotten than a discount says.

cdef class ForgettingPath(RowPath):
    """Learns rows, and forgets before each of them but the first.

    Where a ``tally`` (1,) is kept the log densities of rows are added to it, as they were predicted.
    """

    cdef double[::1] tally, saved, row
    cdef double saved_count, known_precision, noise_shape, noise_rate, n_flat
    cdef double told_df, told_mean, told_scale

    def __init__(self, triangle, counts, bint intercept, names=None):
        RowPath.__init__(self, triangle, counts, intercept, names)
        self.saved, self.row = _aligned(self.shape.q * self.shape.ld), _aligned(self.shape.ld)

    def keep_tally(self, tally, noise, double n_flat):
        """Keep one of all rows of weight 1, others are left alone; ``noise`` as ``Noise.parameters``."""
        self.tally, self.n_flat = tally, n_flat
        self.known_precision, self.noise_shape, self.noise_rate = noise

    cdef int _append(self, double weight) except -1:
        cdef double error, df, scale, log_density
        if self.tally is None:
            if weight > 0.0 and self.counts[1] > 0.0:
                self._forget(weight)
            self._take(weight)
            return True
        if weight != 1.0 or not self._tell(weight, &error, &df, &scale):
            return False
        log_density = pk_log_t(error, df, scale)  # 0 where nothing is known
        if not fabs(log_density) < PK_MAX_LOG_DENSITY:
            self._restore()
            return False
        self.told_df, self.told_mean, self.told_scale = fmax(df, 0.0), self.buffer[self.shape.p] - error, scale
        self._take(weight)
        self.tally[0] += log_density
        return True

    def told(self):
        """Weight, degrees of freedom, mean and scale (4, 1) that the row learned last was predicted by, under a tally."""
        return np.array([[1.0], [self.told_df], [self.told_mean], [self.told_scale]])

    cdef bint _tell(self, double weight, double *error, double *df, double *scale) noexcept:
        """Forget, and predict the row in the buffer; False, and nothing happens, where it would be a point mass.

        Where nothing is known, as of a direction that is open, the scale is infinite.
        """
        cdef double root = sqrt(weight), spread, residual, variance
        memcpy(&self.saved[0], &self.triangle[0, 0], self.saved.shape[0] * sizeof(double))
        self.saved_count = self.counts[0]
        if self.counts[1] > 0.0:
            self._forget(weight)
        memcpy(&self.row[0], &self.buffer[0], self.row.shape[0] * sizeof(double))
        spread = pk_predict_before(&self.triangle[0, 0], &self.row[0], root, self.buffer[self.shape.p] / root, self.shape, error,
                             &residual)
        variance = self._noise(residual, df)
        if spread == INFINITY or variance == INFINITY:
            scale[0] = INFINITY
            return True
        scale[0] = sqrt(spread * variance)
        if not 0.0 < scale[0] < INFINITY:
            self._restore()
            return False
        return True

    cdef double _noise(self, double residual, double *df) noexcept:
        """Variance of the noise, infinite before it is known, and its degrees of freedom."""
        df[0] = INFINITY
        if self.known_precision > 0.0:
            return 1.0 / self.known_precision
        df[0] = self.counts[0] - self.n_flat + 2.0 * self.noise_shape
        return (residual + 2.0 * self.noise_rate) / df[0] if df[0] > 0.0 else INFINITY

    def tabulate(self, x):
        """The same of the mean at ``x``; None where little is known."""
        cdef double leverage, variance, df, last = self.triangle[self.shape.p, self.shape.p]
        self._load(x, 1.0)
        leverage = pk_predict_one(&self.triangle[0, 0], &self.buffer[0], self.shape)
        variance = leverage * self._noise(last * last, &df)
        if not (self.tally is not None and variance < INFINITY):
            return None
        return np.array([[1.0], [df], [0.0 - self.buffer[self.shape.p]], [sqrt(variance)]])

    cdef void _restore(self) noexcept:
        memcpy(&self.triangle[0, 0], &self.saved[0], self.saved.shape[0] * sizeof(double))
        self.counts[0] = self.saved_count

    cdef void _take(self, double weight) noexcept:
        pk_append_one(&self.triangle[0, 0], &self.buffer[0], self.shape)
        self.counts[0] += weight
        self.counts[1] += weight


cdef class DirectionalPath(ForgettingPath):
    """Learns rows; before each, the information beyond ``prior`` in its own direction is multiplied by ``discount``.

    So is the count of rows, but for one of each direction that is flat under the prior and no more.
    """

    cdef double[::1] work

    def __init__(self, triangle, counts, bint intercept, names, double discount, double[:, ::1] prior not None):
        ForgettingPath.__init__(self, triangle, counts, intercept, names)
        self.fade(discount, prior)
        self.work = _aligned(4 * self.shape.ld)

    cdef void _forget(self, double weight) noexcept:
        cdef Py_ssize_t j, spent = 0
        if self.discount < 1.0:
            for j in range(self.shape.p):
                spent += self.triangle[j, j] != 0.0 and self.prior[j, j] == 0.0
            memcpy(&self.work[0], &self.buffer[0], self.shape.ld * sizeof(double))
            pk_fade_along(&self.triangle[0, 0], &self.prior[0, 0], &self.work[0], self.discount, &self.work[self.shape.ld],
                          self.shape)
            self.counts[0] = spent + self.discount * (self.counts[0] - spent)


cdef class WindowPath(RowPath):
    """Learns rows as a window slides: of ``size`` rows that weigh something, or where that is 0 of a ``duration``.

    ``kept`` has the rows in the window, ``X`` (n, m), ``y`` (n, 1), ``weights`` and ``times`` (n,), old to new; it is
    given views of room that is written to behind them only.
    """

    cdef object kept, shown, room
    cdef double[:, ::1] X, Y
    cdef double[::1] weights, times, work
    cdef Py_ssize_t size, stop, counted
    cdef double duration
    cdef pk_window window
    cdef pk_rows rows

    def __init__(self, triangle, counts, bint intercept, names, double[:, ::1] prior not None, kept, Py_ssize_t size,
                 double duration):
        RowPath.__init__(self, triangle, counts, intercept, names)
        self.fade(1.0, prior)
        if kept.X.shape[1] != self.columns:
            raise ValueError(f"rows of {kept.X.shape[1]} columns are kept: expected {self.columns}")
        self.kept, self.size, self.duration = kept, size, duration
        self.work = _aligned(PK_APPEND_SIZE(self.shape))

    cdef int _make_room(self) except -1:
        """Move the stored rows to memory with room for as many more."""
        kept = self.kept
        cdef Py_ssize_t n = len(kept.X), capacity = 2 * n + 64
        self.room = np.empty((capacity, self.columns)), np.empty((capacity, 1)), np.empty(capacity), np.empty(capacity)
        for to, rows in zip(self.room, (kept.X, kept.y, kept.weights, kept.times)):
            to[:n] = rows
        if n:
            self.room[3][:n] -= kept.times[n - 1]
        self.X, self.Y, self.weights, self.times = self.room
        self.stop, self.counted = n, np.count_nonzero(self.room[2][:n])
        self.counts[0] = np.sum(self.room[2][:n])
        self.window.oldest, self.window.removed = 0, kept.removed
        self.rows.X = &self.X[0, 0] if self.columns else NULL
        self.rows.Y, self.rows.weights = &self.Y[0, 0], &self.weights[0]
        self.rows.discounts, self.rows.held = NULL, NULL
        self.rows.columns, self.rows.x_stride, self.rows.x_step = self.columns, self.columns, 1
        self.rows.intercept = self.intercept
        return 0

    cdef int _append(self, double weight) except -1:
        cdef Py_ssize_t i, c, before, after
        cdef double root = sqrt(weight)
        if not weight > 0.0:
            return False
        if self.shown is None or self.kept.X is not self.shown or self.stop == self.X.shape[0]:
            self._make_room()
        i = self.stop
        for c in range(self.columns):
            self.X[i, c] = self.buffer[self.intercept + c] / root
        self.Y[i, 0], self.weights[i] = self.buffer[self.shape.p] / root, weight
        self.times[i] = 1.0 + (self.times[i - 1] if i > 0 else 0.0)
        before = self.window.oldest if self.size else self._young(i)
        after = self._last_ones(i) if self.size else before
        for c in range(self.window.oldest, after):
            self.counts[0] -= self.weights[c]
        self.rows.n = i + 1
        self.window.rows, self.window.prior = &self.rows, &self.prior[0, 0]
        pk_slide_one(&self.triangle[0, 0], &self.work[0], &self.buffer[0], &self.window, before, after, self.shape)
        self.stop = i + 1
        self.counts[0] += weight
        self.counts[1] += weight
        self._show()
        return True

    cdef Py_ssize_t _young(self, Py_ssize_t newest) noexcept:
        """The first row that is not too old when row ``newest`` comes."""
        cdef Py_ssize_t first = self.window.oldest
        while first < newest and self.times[first] < self.times[newest] - self.duration:
            first += 1
        return first

    cdef Py_ssize_t _last_ones(self, Py_ssize_t newest) noexcept:
        """The first of as many rows as there may be, once row ``newest`` has come."""
        cdef Py_ssize_t first = self.window.oldest
        self.counted += 1
        if self.counted <= self.size:
            return first
        while self.counted > self.size or not self.weights[first] > 0.0:
            self.counted -= self.weights[first] > 0.0
            first += 1
        return first

    cdef int _show(self) except -1:
        cdef object part = slice(self.window.oldest, self.stop)
        X, y, weights, times = self.room
        kept = self.kept
        kept.X, kept.y, kept.weights, kept.times = X[part], y[part], weights[part], times[part]
        kept.removed = self.window.removed
        self.shown = kept.X
        return 0
