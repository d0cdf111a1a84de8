# A part of _members.pyx: paths of single rows of hypotheses, and of members of any kind, each with a path of its own.

# Rows with larger values are learned in the general way, which changes nothing where it fails: here no member must refuse,
# for products that overflow, what others have learned.
cdef double LARGEST_OF_MEMBERS = 1e35
# As posterity.posteriors.ensemble has them: most that a log density says, and the rank of what has a variance.
cdef double LARGEST_LOG_DENSITY = 1e4
cdef unsigned char HAS_VARIANCE = 2


cdef class ReadingPath:
    """Base of the paths of single rows of hypotheses; ``reader`` reads these."""

    cdef readonly object reader
    cdef bint closed

    @property
    def names(self):
        """Names of the features, if they have any."""
        return self.reader.names

    def values(self, x):
        """The features of ``x`` as an array (1, m), checked."""
        return self.reader.values(x)

    def close(self):
        """Learn no more rows: whoever has this path must open another one."""
        self.closed = True


cdef bint _are_within(const double[:, ::1] values, double y, double most) noexcept:
    """Return True if no number of a row is larger."""
    cdef Py_ssize_t i
    for i in range(values.shape[1]):
        if not fabs(values[0, i]) <= most:
            return False
    return fabs(y) <= most


cdef class WeighedPath(ReadingPath):
    """Base of those of ``count`` members that are weighed as ``average_members`` does, with its ``rules``.

    These are the persistences of each rate and the outer one. ``standing`` has ``members`` (a, lanes) and ``rates``, the
    discounted scores, and the sum ``log_evidence``.
    """

    cdef object standing
    cdef double outer_persistence
    cdef double[::1] persistence, scores, outer, work, densities, weights
    cdef unsigned char[::1] ranks

    def __init__(self, reader, Py_ssize_t count, standing, rules):
        cdef Py_ssize_t lanes = (count + PK_LINE - 1) // PK_LINE * PK_LINE
        persistence, self.outer_persistence = rules
        if standing.members.shape != (len(persistence), lanes) or not 1 <= len(persistence) <= 64:
            raise ValueError("standing is not that of so many members and rates")
        self.reader, self.standing, self.persistence = reader, standing, np.array(persistence, dtype=np.float64)
        self.scores, self.outer = _aligned(standing.members.size), _aligned(standing.rates.size)
        self.work = _aligned((len(persistence) + 4) * lanes)
        self.densities, self.weights, self.ranks = np.empty(count), np.empty(count), np.empty(count, dtype=np.uint8)

    cdef double _average(self) except? -1e308:
        """Compute the weights before the row, on copies of the scores; return the mixture's log density."""
        cdef double[:, ::1] scores = self.standing.members
        cdef double[::1] outer = self.standing.rates
        cdef pk_expert_weights standing
        memcpy(&self.scores[0], &scores[0, 0], self.scores.shape[0] * sizeof(double))
        memcpy(&self.outer[0], &outer[0], self.outer.shape[0] * sizeof(double))
        standing.rates, standing.members, standing.lanes = scores.shape[0], self.weights.shape[0], scores.shape[1]
        standing.persistence, standing.outer_persistence = &self.persistence[0], self.outer_persistence
        standing.scores, standing.outer, standing.work = &self.scores[0], &self.outer[0], &self.work[0]
        return pk_average(&standing, 1, &self.densities[0], &self.ranks[0], &self.weights[0])

    cdef int _keep(self, double evidence) except -1:
        """Let the standing be that of the copies, after a row of this log density."""
        cdef double[:, ::1] scores = self.standing.members
        cdef double[::1] outer = self.standing.rates
        memcpy(&scores[0, 0], &self.scores[0], self.scores.shape[0] * sizeof(double))
        memcpy(&outer[0], &self.outer[0], self.outer.shape[0] * sizeof(double))
        self.standing.log_evidence += evidence
        return 0


cdef class AveragePath(WeighedPath):
    """Learns single rows in the members of ``averaged``, in place, as a call for each row would.

    The log density of a row is what it adds to a member's evidence. All members but the first wait for their noise to have
    a variance, for as many rows as ``averaged.n_waiting``, and where a row adds nothing; where that is negative none waits.
    What a member's path leaves alone ``learn_apart(place, row, y)`` learns.
    """

    cdef readonly object averaged
    cdef readonly list paths
    # How members that learned the last row in another way predicted it.
    cdef readonly dict told_apart
    cdef double[::1] before

    def __init__(self, reader, averaged):
        cdef Py_ssize_t count = len(averaged.members)
        WeighedPath.__init__(self, reader, count, averaged.scores, (averaged.persistence, averaged.outer_persistence))
        self.averaged, self.told_apart, self.before = averaged, {}, np.empty(count)
        self.paths = [one.row_path(reader.names) for one in averaged.members]

    def learn(self, x, double y, double weight=1.0):
        """Learn the row; False, and nothing happens, where it must be learned in another way."""
        row = self.reader.values(x)
        cdef tuple members = self.averaged.members
        cdef double count = members[0].n_observations
        cdef Py_ssize_t k
        # Rows that can't be learned are left to the general code, which says why.
        if self.closed or weight != 1.0 or not _are_within(row, y, LARGEST_OF_MEMBERS):
            return False
        for k in range(self.before.shape[0]):
            self.before[k] = members[k].log_evidence
        self.told_apart = {}
        try:
            self._learn_each(members, row[0], y, -1.0)
            self._learn_weights(members)
        except BaseException:
            if members[0].n_observations > count:  # learned by some: then by all; and weights are kept last
                self._learn_each(members, row[0], y, count)
                self._learn_weights(members)
            raise
        return True

    cdef int _learn_each(self, tuple members, row, double y, double count) except -1:
        """Let members learn a row: those of so many rows, or if that is negative all."""
        cdef Py_ssize_t k
        for k in range(len(members)):
            if count >= 0.0 and members[k].n_observations != count:
                continue
            if not self.paths[k].learn(row, y):
                self.told_apart[k] = self.learn_apart(k, row, y)
                self.paths[k] = members[k].row_path(self.reader.names)
        return 0

    cdef int _learn_weights(self, tuple members) except -1:
        cdef double waiting = self.averaged.n_waiting, count = members[0].n_observations - 1.0, gained
        cdef Py_ssize_t k
        for k in range(self.densities.shape[0]):
            gained = members[k].log_evidence - self.before[k]
            self.ranks[k] = HAS_VARIANCE
            if waiting >= 0.0 and (gained == 0.0 or (k > 0 and count <= waiting)):
                self.ranks[k] = 0
            # NaN becomes the least.
            self.densities[k] = fmin(gained, LARGEST_LOG_DENSITY) if gained > -LARGEST_LOG_DENSITY else -LARGEST_LOG_DENSITY
        return self._keep(self._average())

    def told(self):
        """Weights (k,) of the members before the row learned last."""
        return np.array(self.weights)

    def tabulate(self, x):
        """Weights, degrees of freedom, means and scales (4, k) of the mean at ``x``; None where little is known."""
        cdef bint all_count = not self.averaged.members[0].n_observations <= self.averaged.n_waiting
        cdef Py_ssize_t k
        tables = []
        for k in range(self.densities.shape[0]):
            self.densities[k], self.ranks[k] = 0.0, HAS_VARIANCE if k == 0 or all_count else 0
        self._average()
        for k in range(self.densities.shape[0]):
            if self.weights[k] > 0.0:
                table = self.paths[k].tabulate(x)
                if table is None:
                    return None
                table[0] *= self.weights[k]
                tables.append(table)
        return np.concatenate(tables, axis=1)
