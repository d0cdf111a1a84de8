cdef extern from "posterity_arms.h" nogil:
    ctypedef struct pk_rows:
        const double *X
        const double *Y
        const double *weights
        const double *discounts
        double *held
        Py_ssize_t n, columns, x_stride, x_step
        int intercept
    ctypedef struct pk_thompson:
        double df, stretch, floor
        unsigned long long seed
    Py_ssize_t pk_choose_arm(const double *mean, const double *width, Py_ssize_t step, const unsigned char *allowed, Py_ssize_t arms, const pk_thompson *how, unsigned long long number)
    void pk_expect_arms(const double *posteriors, Py_ssize_t arms, const double *row, double *work, pk_shape shape, double *mean, double *leverage)
    void pk_predict_rows(const double *T, double *buffer, const pk_rows *rows, pk_shape shape, double *mean, double *leverage)
    Py_ssize_t PK_APPEND_SIZE(pk_shape shape)


cdef class ArmsPath(RowPath):
    """Chooses among arms by a draw of what is expected of each, and learns single rows of them.

    ``posteriors`` (K, q, ld) are copied. What is expected is Student-t, with ``df`` degrees of freedom (infinite:
    normal) and the root of the leverage times ``scale``.
    """

    cdef double[::1] posteriors, work
    cdef readonly Py_ssize_t arms
    cdef readonly double df, scale

    def __init__(self, posteriors, bint intercept, names, double df, double scale):
        self.arms, q, ld = posteriors.shape
        RowPath.__init__(self, np.zeros((q, ld)), np.zeros(2), intercept, names)
        self.posteriors = _aligned(max(self.arms * q * ld, 1))
        np.asarray(self.posteriors)[:self.arms * q * ld] = posteriors.reshape(-1)
        self.work = _aligned(self.shape.ld)
        self.df, self.scale = df, scale

    cdef pk_thompson _how(self, double floor, double stretch, unsigned long long seed) except *:
        cdef pk_thompson how
        how.df, how.stretch, how.floor, how.seed = self.df, stretch, floor, seed
        return how

    def decide(self, x, const unsigned char[::1] allowed, double floor, double stretch, unsigned long long seed,
               unsigned long long number):
        """The arm at ``x``; mean and scale (K,) of what is expected of all of them."""
        cdef pk_thompson how = self._how(floor, stretch, seed)
        cdef cnp.npy_intp size = self.arms
        cdef Py_ssize_t k
        if allowed.shape[0] != self.arms:
            raise ValueError(f"allowed has length {allowed.shape[0]}: there are {self.arms} arms")
        self._load(x, 1.0)
        cdef cnp.ndarray means = cnp.PyArray_SimpleNew(1, &size, cnp.NPY_DOUBLE)
        cdef cnp.ndarray scales = cnp.PyArray_SimpleNew(1, &size, cnp.NPY_DOUBLE)
        cdef double *mean = <double *> cnp.PyArray_DATA(means)
        cdef double *width = <double *> cnp.PyArray_DATA(scales)
        pk_expect_arms(&self.posteriors[0], self.arms, &self.buffer[0], &self.work[0], self.shape, mean, width)
        self._scale(width, self.arms)
        return pk_choose_arm(mean, width, 1, &allowed[0], self.arms, &how, number), means, scales

    def decide_rows(self, const double[:, ::1] X, const unsigned char[:, :] allowed, double floor, double stretch,
                    unsigned long long seed, unsigned long long number):
        """The same for rows ``X`` (n, m) of consecutive numbers: arms (n,), means and scales (n, K)."""
        cdef Py_ssize_t n = X.shape[0], k
        cdef double[:, ::1] mean = np.empty((self.arms, n)), width = np.empty((self.arms, n))
        cdef Py_ssize_t[::1] arms = np.empty(n, dtype=np.intp)
        cdef const unsigned char[:, ::1] may = np.ascontiguousarray(np.broadcast_to(allowed, (n, self.arms)))
        cdef double[::1] buffer = _aligned(PK_APPEND_SIZE(self.shape))
        cdef pk_thompson how = self._how(floor, stretch, seed)
        cdef pk_rows rows
        if X.shape[1] != self.columns:
            raise ValueError(f"X has {X.shape[1]} columns: expected {self.columns}")
        rows.X = &X[0, 0] if n and self.columns else NULL
        rows.Y, rows.weights, rows.discounts, rows.held = NULL, NULL, NULL, NULL
        rows.n, rows.columns, rows.x_stride, rows.x_step = n, self.columns, self.columns, 1
        rows.intercept = self.intercept
        with nogil:
            for k in range(self.arms if n else 0):
                pk_predict_rows(&self.posteriors[k * self.shape.q * self.shape.ld], &buffer[0], &rows, self.shape,
                                &mean[k, 0], &width[k, 0])
                self._scale(&width[k, 0], n)
            for k in range(n):
                arms[k] = pk_choose_arm(&mean[0, k], &width[0, k], n, &may[k, 0], self.arms, &how, number + k)
        return np.asarray(arms), np.asarray(mean).T, np.asarray(width).T

    cdef void _scale(self, double *leverage, Py_ssize_t n) noexcept nogil:
        """Leverages, in place, to scales of what is expected."""
        cdef Py_ssize_t i
        for i in range(n):
            leverage[i] = self.scale * sqrt(leverage[i])
            # 0 * inf: without noise so far, what is unknown is still unknown.
            if leverage[i] != leverage[i]:
                leverage[i] = INFINITY

    def learn_in(self, Py_ssize_t arm, x, double y, double weight):
        """Append the row ``x``, ``y`` to an arm's posterior."""
        _check_weight(weight)
        cdef double root = sqrt(weight)
        if not fabs(y) * root <= LARGEST:
            raise ValueError(_complaint("y", y))
        if not 0 <= arm < self.arms:
            raise ValueError(f"there is no arm {arm}")
        self._load(x, root)
        self.buffer[self.shape.p] = root * y
        pk_append_one(&self.posteriors[arm * self.shape.q * self.shape.ld], &self.buffer[0], self.shape)
