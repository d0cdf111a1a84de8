# A part of _members.pyx: runs since each row at which the last change may have been.

cdef extern from "posterity_runs.h" nogil:
    ctypedef struct pk_runs:
        double *bank
        double *probability
        double *residual_df
        double *learned
        long long *first
        long long *change
        Py_ssize_t size, capacity, row
        double seen, log_evidence
    ctypedef struct pk_start:
        const double *triangle
        double residual_df, count, variance, stale
    ctypedef struct pk_run_rules:
        double known_precision, shape, rate, smallest, negligible, room, judging, outlier_scale, log_outlier
        Py_ssize_t most, between_looks
    ctypedef struct pk_run_trace:
        double *hazard
        double *log_density
        double *probability
        double *error
        double *leverage
        double *residual_df
        double *residual
        long long *size
        long long *first
        long long *begun
        long long *earlier
        Py_ssize_t most, known
    int pk_is_still_valid(const pk_runs *runs, const pk_start *start, const pk_run_rules *rules, pk_shape shape)
    Py_ssize_t pk_learn_runs(pk_runs *runs, const pk_rows *rows, Py_ssize_t first, const double *hazards, const pk_start *start, const pk_run_rules *rules, pk_run_trace *trace, double *work, double *row, unsigned char *kept, long long known, pk_shape shape)


cdef class RunsKernel:
    """Learns rows (n, m) in runs: ``runs`` and ``trace`` as in posteriors/banked_runs.py, in place.

    ``noise`` is its known precision (0: learned), shape and rate; ``rules`` are smallest, negligible, room, stale, most,
    between_looks, judging, outlier_scale and log_outlier. ``begun`` and ``earlier`` tell of the changes that are new, numbered
    from those ``known`` on.
    """

    cdef object runs, held
    cdef readonly object begun, earlier
    cdef Py_ssize_t known
    cdef double stale
    cdef pk_runs s
    cdef pk_rows rows
    cdef pk_run_rules rules
    cdef pk_run_trace trace
    cdef pk_shape shape
    cdef double[::1] hazards, work, row
    cdef unsigned char[::1] kept

    def __init__(self, runs, trace, double[:, :, ::1] bank not None, const double[:, :] X, const double[:, ::1] Y,
                 const double[::1] weights, double[::1] hazards not None, bint intercept, noise, rules):
        cdef double[::1] probability = runs.probability, residual_df = runs.residual_df, learned = runs.learned
        cdef long long[::1] first = runs.first, change, begun, earlier, size = trace.size
        cdef double[:, ::1] outputs, belief = trace.probability
        cdef long long[:, ::1] firsts = trace.first
        cdef double[::1] hazard = trace.hazard, log_density = trace.log_density
        cdef Py_ssize_t n = X.shape[0], capacity = probability.shape[0]
        self.shape.k, self.shape.p, self.shape.q, self.shape.ld = 1, bank.shape[1] - 1, bank.shape[1], bank.shape[2]
        if bank.shape[0] != capacity + 1 or X.shape[1] + intercept != self.shape.p or belief.shape[1] != capacity:
            raise ValueError("bank, runs, trace and rows do not go together")
        if n == 0 or Y.shape[0] != n or Y.shape[1] != 1 or hazards.shape[0] != n or hazard.shape[0] != n or log_density.shape[0] != n:
            raise ValueError("rows, hazards and trace do not go together")
        if self.shape.ld != (self.shape.q + PK_LINE - 1) // PK_LINE * PK_LINE or runs.size < 1:
            raise ValueError("the bank holds no triangles")
        if weights is not None and weights.shape[0] != n:
            raise ValueError(f"weights has length {weights.shape[0]}: expected {n}")
        self.runs, self.known = runs, len(runs.changes)
        self.begun, self.earlier = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
        ids = np.zeros(capacity, dtype=np.int64)
        ids[: self.known] = np.arange(self.known)
        change, begun, earlier = ids, self.begun, self.earlier
        self.held = [bank, X, Y, weights, trace, ids, runs.probability, runs.residual_df, runs.learned, runs.first]
        self.s.bank, self.s.probability, self.s.residual_df = &bank[0, 0, 0], &probability[0], &residual_df[0]
        self.s.learned, self.s.first, self.s.change = &learned[0], &first[0], &change[0]
        self.s.capacity = capacity
        self.rows.X, self.rows.Y, self.rows.weights = &X[0, 0] if X.shape[1] else NULL, &Y[0, 0], NULL
        if weights is not None:
            self.rows.weights = &weights[0]
        self.rows.discounts, self.rows.held = NULL, NULL
        self.rows.n, self.rows.columns, self.rows.intercept = n, X.shape[1], intercept
        self.rows.x_stride = X.strides[0] // <Py_ssize_t> sizeof(double)
        self.rows.x_step = X.strides[1] // <Py_ssize_t> sizeof(double)
        self.rules.known_precision, self.rules.shape, self.rules.rate = noise
        self.rules.smallest, self.rules.negligible, self.rules.room, self.stale = rules[:4]
        self.rules.most, self.rules.between_looks = rules[4:6]
        self.rules.judging, self.rules.outlier_scale, self.rules.log_outlier = rules[6:]
        self.trace.hazard, self.trace.size, self.trace.first = &hazard[0], &size[0], &firsts[0, 0]
        self.trace.probability, self.trace.begun, self.trace.earlier = &belief[0, 0], &begun[0], &earlier[0]
        self.trace.log_density, self.trace.most, self.trace.known = &log_density[0], capacity, 0
        self.trace.error = self.trace.leverage = self.trace.residual_df = self.trace.residual = NULL
        if len(trace.error):
            outputs = trace.error
            self.trace.error = &outputs[0, 0]
            outputs = trace.leverage
            self.trace.leverage = &outputs[0, 0]
            outputs = trace.residual_df
            self.trace.residual_df = &outputs[0, 0]
            outputs = trace.residual
            self.trace.residual = &outputs[0, 0]
        self.hazards, self.work, self.row = hazards, np.empty(5 * capacity), _aligned(self.shape.ld)
        self.kept = np.empty(capacity, dtype=np.uint8)

    def learn(self, Py_ssize_t i, start):
        """Learn rows from row i on, for as long as ``start`` serves new runs (None: of this row no run); returns the next row.

        That is row i itself where it has to be learned in another way.
        """
        cdef const double[:, ::1] triangle
        cdef pk_start of_new
        of_new.triangle, of_new.residual_df, of_new.count, of_new.variance, of_new.stale = NULL, 0.0, 0.0, 0.0, self.stale
        if start is not None:
            triangle = start.triangle
            if triangle.shape[0] != self.shape.q or triangle.shape[1] != self.shape.ld:
                raise ValueError("the start's triangle is not that of a run")
            of_new.triangle, of_new.residual_df = &triangle[0, 0], start.residual_df
            of_new.count, of_new.variance = start.count, start.variance
        runs = self.runs
        self.s.size, self.s.row, self.s.seen, self.s.log_evidence = runs.size, runs.row, runs.seen, runs.log_evidence
        with nogil:
            i = pk_learn_runs(&self.s, &self.rows, i, &self.hazards[0], &of_new, &self.rules, &self.trace, &self.work[0],
                              &self.row[0], &self.kept[0], self.known, self.shape)
        runs.bank.size, runs.row, runs.seen, runs.log_evidence = self.s.size + 1, self.s.row, self.s.seen, self.s.log_evidence
        return i

    def changes(self):
        """Of each run the number of its change, and of each new change its row and the number of the one before it."""
        cdef Py_ssize_t known = self.trace.known
        return self.held[5][: self.s.size].tolist(), self.begun[:known], self.earlier[:known]

    def again(self):
        """Start at the first row again: changes are numbered as the runs have them."""
        cdef long long[::1] change = self.held[5]
        cdef Py_ssize_t k
        self.known, self.trace.known = len(self.runs.changes), 0
        for k in range(self.known):
            change[k] = k

    cdef bint _open(self, start, pk_start *of_new) except -1:
        cdef const double[:, ::1] triangle = start.triangle
        runs = self.runs
        if triangle.shape[0] != self.shape.q or triangle.shape[1] != self.shape.ld:
            raise ValueError("the start's triangle is not that of a run")
        self.s.size, self.s.seen = runs.size, runs.seen
        of_new.triangle, of_new.residual_df, of_new.stale = &triangle[0, 0], start.residual_df, self.stale
        of_new.count, of_new.variance = start.count, start.variance
        return True

    def serves(self, start):
        """Return True if a run that begins now would still begin as ``start``."""
        cdef pk_start of_new
        return self._open(start, &of_new) and pk_is_still_valid(&self.s, &of_new, &self.rules, self.shape) != 0

    def predict_mean(self, const double[:, ::1] values not None, start, double hazard):
        """Mean at ``values`` (1, m): the runs', and where there is a ``start`` that of a new one, by the ``hazard``."""
        table = self.tabulate(values, start, hazard)
        return float(table[0] @ table[2])

    def tabulate(self, const double[:, ::1] values not None, start, double hazard):
        """Weights, degrees of freedom, means and scales (4, k) of that."""
        cdef pk_start of_new
        cdef Py_ssize_t k
        self.s.size = self.runs.size
        if values.shape[1] + self.rows.intercept != self.shape.p:
            raise ValueError(f"x has {values.shape[1]} features: that is not what the runs learn")
        cdef double[:, ::1] table = np.empty((4, self.s.size + (start is not None)))
        for k in range(self.s.size):
            table[0, k] = self.s.probability[k] * (1.0 - hazard if start is not None else 1.0)
            self._tabulate(self.s.bank + (k + 1) * self.shape.q * self.shape.ld, values, self.s.residual_df[k], table[:, k])
        if start is not None:
            self._open(start, &of_new)
            table[0, self.s.size] = hazard
            self._tabulate(of_new.triangle, values, of_new.residual_df, table[:, self.s.size])
        return np.asarray(table)

    cdef void _tabulate(self, const double *T, const double[:, ::1] values, double residual_df, double[:] told) noexcept:
        cdef double leverage, residual = T[self.shape.p * self.shape.ld + self.shape.p]
        cdef Py_ssize_t i
        for i in range(self.shape.p, self.shape.ld):
            self.row[i] = 0.0
        self.row[0] = 1.0  # overwritten when there is no intercept
        for i in range(values.shape[1]):
            self.row[self.rows.intercept + i] = values[0, i]
        leverage = pk_predict_row(T, &self.row[0], self.shape)
        told[1], told[2] = INFINITY, 0.0 - self.row[self.shape.p]
        if self.rules.known_precision > 0.0:
            told[3] = sqrt(leverage / self.rules.known_precision)
            return
        told[1] = fmax(residual_df + 2.0 * self.rules.shape, 0.0)
        told[3] = sqrt(leverage * (residual * residual + 2.0 * self.rules.rate) / told[1])


cdef class RunsPath(ReadingPath):
    """Learns and predicts single rows in ``runs``, in place, as a call for each row would.

    ``open_kernel(row)`` makes a :class:`RunsKernel` for a row, X, y, weights and hazards, and the history that it writes.
    """

    cdef readonly object runs, history
    cdef readonly tuple row
    cdef object open_kernel, bank
    cdef RunsKernel kernel
    cdef readonly double hazard
    cdef double[:, ::1] X, Y
    cdef double[::1] weights

    def __init__(self, reader, runs, Py_ssize_t columns, open_kernel):
        self.reader, self.runs, self.open_kernel, self.hazard = reader, runs, open_kernel, runs.next_hazard
        self.row = np.zeros((1, columns)), np.zeros((1, 1)), np.ones(1), np.full(1, self.hazard)
        self.X, self.Y, self.weights, _ = self.row

    def learn(self, x, double y, double weight=1.0):
        """Learn the row; False, and nothing happens, where it must be learned in another way."""
        _check_weight(weight)
        cdef const double[:, ::1] values = self.reader.values(x)
        if values.shape[1] != self.X.shape[1]:
            raise ValueError(f"x has {values.shape[1]} features: give {self.X.shape[1]}, as in the rows learned")
        # Rows that can't be learned are left to the general code, which says why.
        if self.closed or weight == 0.0 or not _are_within(values, y, LARGEST / fmax(sqrt(weight), 1.0)):
            return False
        runs, kernel = self.runs, self._open()
        self.X[...], self.Y[0, 0], self.weights[0] = values, y, weight
        row, changes, start = runs.row, runs.changes, self._start()
        try:
            kernel.learn(0, start)
            if runs.row != row:
                self._record(row, changes, start)
        except BaseException:
            if runs.row != row:  # the row is learned: an interrupt must not leave half of it
                self._record(row, changes, start)
            raise
        return runs.row != row

    cdef int _record(self, Py_ssize_t row, changes, start) except -1:
        """Note start and changes after ``row`` was learned; to do so twice is to do so once."""
        runs = self.runs
        cdef Py_ssize_t last
        if start is not None:
            runs.latest_start = start
        if runs.changes is changes:
            runs.take_changes(self.kernel)
        last = runs.size - 1
        runs.found = np.full(1, min(runs.probability[last], 1.0) if row > 0 and runs.first[last] == row else 0.0)
        self.kernel.again()
        return 0

    def predict_mean(self, x):
        """Mean at ``x``, as the next row."""
        values, kernel = self.values(x), self._open()
        return kernel.predict_mean(values, self._start(), self.hazard)

    def tabulate(self, x):
        """Weights, degrees of freedom, means and scales (4, k) of the mean at ``x``; None where little is known."""
        values, kernel = self.values(x), self._open()
        table = kernel.tabulate(values, self._start(), self.hazard)
        return table if np.isfinite(table[3]).all() else None

    cdef RunsKernel _open(self):
        """The kernel of the runs as they are now, which calls of another way replace."""
        if self.runs.bank is not self.bank:
            self.kernel, self.history = self.open_kernel(self.row)
            self.bank = self.runs.bank
        return self.kernel

    cdef _start(self):
        """The start of a run that begins now; changes nothing."""
        runs = self.runs
        if runs.seen == 0.0:
            return None
        if runs.latest_start is not None and self.kernel.serves(runs.latest_start):
            return runs.latest_start
        return runs.find_start()
