# A part of _paths.pyx: the lean path of rows that are learned through the sites of their targets.

# Beyond it not every whole number is a float.
cdef double MOST_COUNT = 2.0 ** 53


cdef class SitePath(RowPath):
    """Learns rows through the sites of their targets, and predicts their eta; noise has precision 1.

    ``likelihood`` is (code, parameters, moments); ``statistics`` has the sums ``log_sites``, ``log_predictive``,
    ``seen`` and ``effective``, ``start``, the first rows as long as they are kept, and ``phi``, what is known of the
    likelihood's parameter, where that is learned: at these ``nodes`` (k, 3), parameters of the kernel's, or, without
    these, as it does itself. ``of_targets`` is the likelihood as it was given, which refuses targets.
    """

    cdef pk_likelihood likelihood
    cdef object statistics, of_targets
    cdef double[:, ::1] nodes
    cdef double[::1] work, spare
    # Labels in order, and the target that each stands for.
    cdef object labels
    cdef dict targets

    def __init__(self, triangle, counts, bint intercept, names, likelihood, statistics, of_targets, nodes=None):
        RowPath.__init__(self, triangle, counts, intercept, names)
        code, parameters, moments = likelihood
        self.likelihood = _likelihood(code, parameters, moments)
        self.statistics, self.of_targets, self.nodes = statistics, of_targets, nodes
        self.work, self.spare = _aligned(PK_SITE_WORK_SIZE(self.shape)), _aligned(self.shape.q * self.shape.ld)
        self.labels, self.targets = (), {}

    def learn(self, x, double y, double weight=1.0):
        """Learn the row ``x`` (array of length m, or mapping of names), target ``y``; as ``RowPath.learn``."""
        cdef double mean, variance, precision, target, log_normalizer
        _check_weight(weight)
        if not self._knows(y):
            if not fabs(y) <= LARGEST:
                raise ValueError(_complaint("y", y))
            self.of_targets.check_targets(np.array([y]))
        self._ask_what_waits()
        if self.scales is not None:
            self.scales.bind()
        before = start = self.statistics.start
        phi = learned = self.statistics.phi
        if phi is not None and phi.n_missing <= 1:
            return False  # another value of the parameter is due to be in force
        cdef double[::1] row = None
        if before is not None and weight > 0.0:
            if before.count_missing() <= 1:
                return False  # the first rows are due to be fitted together
            if not self._fill(x, 1.0):
                return self.learn(self._as_array(x), y, weight)
            kept = np.array(self.buffer[self.intercept : self.shape.p])
            row, start = kept, before.with_row(kept, y, weight)
        if not self._fill(x, 1.0):
            return self.learn(self._as_array(x), y, weight)
        cdef bint forgets = self.forgets and weight > 0.0 and self.counts[1] > 0.0
        cdef double left = self.discount if forgets else 1.0
        cdef double *triangle = self._faded() if forgets else &self.triangle[0, 0]
        variance = pk_eta_moments_of_one(triangle, &self.work[0], &self.buffer[0], self.shape, &mean)
        pk_find_sites(&self.likelihood, 1, &y, &mean, &variance, &weight, &precision, &target, &log_normalizer)
        self._refuse_overflow(sqrt(precision), target)
        if phi is not None and weight > 0.0:
            row = np.array(self.buffer[self.intercept : self.shape.p])
            if self.nodes is not None:
                learned = phi.add(weight * self._look_at_nodes(y, mean, variance), 1.0)
            else:
                told = [np.array([one]) for one in (y, mean, variance, weight)]
                # Coefficients that move are no longer those that parameters met.
                learned = phi.learn_row(self.of_targets, *told, np.asarray(row[: 0 if self.forgets else row.shape[0]]))
        if precision > 0.0 and self._is_due(1.0):
            return False
        # Asked last: whoever reads Python's objects, as above, may have let another thread learn or close this.
        if self.closed or self.statistics.start is not before or self.statistics.phi is not phi or not self._holds(row):
            return False
        # What goes along fades with what it learns: the row must weigh something there, too.
        if self.companion is not None and forgets and not precision > 0.0:
            return False
        if forgets:
            memcpy(&self.triangle[0, 0], triangle, self.shape.q * self.shape.ld * sizeof(double))
            self.counts[0] *= left
        if precision > 0.0:
            self._take(precision, target, mean, variance)
        self._enter(weight, mean, variance, precision, target, log_normalizer, left)
        self.statistics.start, self.statistics.phi = start, learned
        self._count(precision)
        return True

    cdef _look_at_nodes(self, double y, double mean, double variance):
        """Log densities (k,) of a target at the nodes of the parameter, by Laplace's method."""
        cdef pk_likelihood one = self.likelihood
        cdef double precision, target
        cdef Py_ssize_t k
        cdef double[::1] logs = np.empty(self.nodes.shape[0])
        one.moments = 0
        for k in range(self.nodes.shape[0]):
            one.a, one.b, one.c = self.nodes[k, 0], self.nodes[k, 1], self.nodes[k, 2]
            pk_find_sites(&one, 1, &y, &mean, &variance, NULL, &precision, &target, &logs[k])
        return np.asarray(logs)

    cdef bint _holds(self, double[::1] row) noexcept:
        """Return True if the features in the buffer are these, or None are given."""
        cdef Py_ssize_t i
        if row is not None:
            for i in range(row.shape[0]):
                if self.buffer[self.intercept + i] != row[i]:
                    return False
        return True

    cdef bint _knows(self, double y) noexcept:
        # Labels are 0 and 1, which counts and noise know as well; counts are whole.
        if self.likelihood.code > PK_KINKED:
            return False
        if y == 0.0 or y == 1.0:
            return True
        counts = self.likelihood.code == PK_POISSON or self.likelihood.code == PK_NEGATIVE_BINOMIAL
        return counts and 0.0 <= y <= MOST_COUNT and floor(y) == y

    cdef double *_faded(self) noexcept:
        """A copy of the triangle, as it is before the next row."""
        memcpy(&self.spare[0], &self.triangle[0, 0], self.shape.q * self.shape.ld * sizeof(double))
        self._fade(&self.spare[0], 1.0)
        return &self.spare[0]

    cdef double _believe(self, double *mean) noexcept:
        return pk_eta_moments_of_one(&self.triangle[0, 0], &self.work[0], &self.buffer[0], self.shape, mean)

    cdef int _refuse_overflow(self, double root, double target) except -1:
        cdef Py_ssize_t i
        cdef bint usable = fabs(target) * root <= LARGEST and root <= LARGEST
        for i in range(self.shape.p):
            usable = usable and fabs(self.buffer[i]) * root <= LARGEST
        if not usable:
            raise ValueError("learning this row overflows: its values and weight are too large together")
        return 0

    cdef int _take(self, double precision, double target, double mean, double variance) except -1:
        cdef double root = sqrt(precision)
        cdef Py_ssize_t i
        pk_learn_one_site(&self.triangle[0, 0], &self.work[0], &self.buffer[0], precision, target, mean, variance, self.shape)
        self.counts[0] += precision
        self.counts[1] += precision
        if self.companion is not None:
            for i in range(self.shape.ld):
                self.companion.buffer[i] = root * self.buffer[i]
            self.companion.buffer[self.shape.p] = root * target
            self.companion._append(precision)
        if self.scales is not None:
            self.scales.enter(self.buffer, self.intercept, self.columns, 1.0, precision)
        return 0

    cdef int _enter(self, double weight, double mean, double variance, double precision, double target,
                    double log_normalizer, double left) except -1:
        """Add a row to the statistics, as Sites.log_scale has it."""
        cdef double off = target - mean, spread = 1.0 + precision * variance, log_scale = log_normalizer
        if variance < INFINITY:
            log_scale += 0.5 * (log(spread) + precision * off * off / spread)
        elif precision > 0.0:
            log_scale += 0.5 * log(precision) - PK_LOG_ROOT_2PI
        statistics = self.statistics
        statistics.log_sites += log_scale + PK_LOG_ROOT_2PI * precision
        statistics.log_predictive += log_normalizer
        statistics.seen += weight
        statistics.effective = statistics.seen if self.discount == 1.0 else left * statistics.effective + weight
        return 0

    cdef bint _load_known(self, x) except -1:
        """Fill the buffer with a row; False where less is known: a feature that was constant so far is another."""
        self._ask_what_waits()
        if not self._fill(x, 1.0):
            return self._load_known(self._as_array(x))
        return self.waiting is None or (self.clock[0] == self.rows and not self._moves(1.0))

    def believe(self, x):
        """Mean and variance of eta at ``x``; infinite where a direction is open.

        None where a feature that was constant so far is another, of which this path does not know enough.
        """
        cdef double mean, variance
        if not self._load_known(x):
            return None
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
        if not self._load_known(x):
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
