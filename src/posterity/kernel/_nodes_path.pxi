# A part of _paths.pyx: the lean path under a prior that is learned.

cdef class NodesPath:
    """Learns rows where the prior is learned, and predicts them by the nodes that stand for it in a stream.

    ``data`` is the path of the data, which goes together with a clock. ``known`` has what else is known of them:
    ``scales`` of the features, if there are any, and the ``stream``, nodes that learn each row; None where they are
    to be made. ``open_nodes()`` tells these, or makes them, with their paths and weights; ``begin_turn(rows)`` when
    the prior is chosen anew, after so many rows: a factor for the data as they are then, if that is kept, its path,
    and the number of rows at which it is chosen next. Nodes that only reading asked for are the path's own. Where it
    ``tallies``, the log densities of rows as the nodes predicted them are added to the ``tally`` of what is known.
    """

    cdef readonly RowPath data
    cdef object known, open_nodes, begin_turn, stream
    cdef Scales scales
    cdef bint forgets, tallies
    cdef double log_predictive, told_df, told_mean, told_scale
    cdef list nodes
    cdef double[::1] weights, errors, scales_told

    def __init__(self, RowPath data not None, known, bint forgets, open_nodes, begin_turn, bint tallies=False):
        self.data, self.known, self.forgets, self.tallies = data, known, forgets, tallies
        if tallies:
            (<ForgettingPath?> data).tally = None
        self.open_nodes, self.begin_turn = open_nodes, begin_turn
        self.nodes, self.scales = [], Scales(known)

    @property
    def names(self):
        """Names of the features, if they have any."""
        return self.data.names

    def values(self, x):
        """The features of ``x`` as an array (1, m), checked."""
        return self.data.values(x)

    def close(self):
        """Learn no more rows: whoever has this path must open another one."""
        self.data.closed = True

    def predict_mean(self, x):
        """Mean at ``x``."""
        cdef RowPath data = self.data, node
        cdef Py_ssize_t k, p = data.shape.p
        cdef double mean = 0.0
        if not self._in_step():
            self._open()
        data._load(x, 1.0)
        for k in range(self.weights.shape[0]):
            node = self.nodes[k]
            memcpy(&node.buffer[0], &data.buffer[0], data.shape.ld * sizeof(double))
            pk_predict_one(&node.triangle[0, 0], &node.buffer[0], data.shape)
            mean -= self.weights[k] * node.buffer[p]
        return mean

    def learn(self, x, double y, double weight=1.0):
        """Append the row ``x``, target ``y``; False, and nothing happens, where it must be learned in another way."""
        cdef RowPath data = self.data
        cdef double root
        cdef bint teaches
        cdef long long rows = data.clock[0]
        _check_weight(weight)
        root = sqrt(weight)
        if not fabs(y) * root <= LARGEST:
            raise ValueError(_complaint("y", y))
        # All that calls Python comes first: from the row's arrival in the buffer on, nobody comes between.
        turn = self.begin_turn(rows + 1) if weight > 0.0 and rows + 1 >= data.clock[1] else None
        teaches = weight > 0.0 and (self.tallies or (self.forgets and turn is None))
        if teaches and not self._in_step():
            self._open()
        data._ask_what_waits()
        self.scales.bind()
        if not data._fill(x, root):
            return self.learn(data._as_array(x), y, weight)
        data.buffer[data.shape.p] = root * y
        if data.closed or data.clock[0] != rows or data._moves(root):
            return False
        # What forgets can't make its nodes anew.
        if teaches and not self._in_step():
            return False
        if teaches and self.tallies and not self._tell(weight):
            return False
        if weight > 0.0:
            if self.tallies:
                self._take_told(weight)
            elif turn is None:
                self._teach_nodes(weight)
            self.scales.enter(data.buffer, data.intercept, data.columns, root, weight)
            data._append(weight)
            data._count(weight)
            if turn is not None:
                self._turn(turn)
        return True

    def told(self):
        """As of ``ForgettingPath``: the one prediction that stands for those of all nodes."""
        return np.array([[1.0], [self.told_df], [self.told_mean], [self.told_scale]])

    cdef bint _in_step(self):
        """Return True if there are nodes, those of the stream, that have learned all rows."""
        cdef RowPath node
        if self.stream is None:
            return False
        stream = self.known.stream
        if stream is not None and stream is not self.stream:
            return False
        for node in self.nodes:
            if node.counts[1] != self.data.counts[1]:
                return False
        return True

    cdef int _open(self) except -1:
        self.stream, paths, self.weights = self.open_nodes()
        self.nodes = list(paths)
        if self.tallies:
            self.errors, self.scales_told = np.empty(len(self.nodes)), np.empty(len(self.nodes))
        return 0

    cdef int _teach_nodes(self, double weight) except -1:
        cdef RowPath node
        if not self._in_step():
            return 0
        for node in self.nodes:
            memcpy(&node.buffer[0], &self.data.buffer[0], self.data.shape.ld * sizeof(double))
            node._append(weight)
        if self.forgets:  # they can't be made from the data any more
            self.known.stream = self.stream
        return 0

    cdef bint _tell(self, double weight) except -1:
        """Have all nodes forget, and predict the row in the buffer; False, and nothing happens, where one can't."""
        cdef ForgettingPath node
        cdef Py_ssize_t k, done = 0, count = self.weights.shape[0]
        cdef double df = INFINITY, mean = 0.0, square = 0.0
        for k in range(count):
            node = self.nodes[k]
            memcpy(&node.buffer[0], &self.data.buffer[0], self.data.shape.ld * sizeof(double))
            if not node._tell(weight, &self.errors[k], &df, &self.scales_told[k]):
                break
            done += 1
            square += self.scales_told[k]
        if done == count and isfinite(square):
            square = 0.0
            for k in range(count):
                mean += self.weights[k] * self.errors[k]
            for k in range(count):
                square += self.weights[k] * (self.scales_told[k] ** 2 + (self.errors[k] - mean) ** 2)
            self.told_df, self.told_scale = df, sqrt(square)
            self.told_mean = self.data.buffer[self.data.shape.p] / sqrt(weight) - mean
            self.log_predictive = pk_log_t(mean, df, self.told_scale)
            if fabs(self.log_predictive) < PK_MAX_LOG_DENSITY:
                return True
        for k in range(done):
            node = self.nodes[k]
            node._restore()
        return False

    cdef int _take_told(self, double weight) except -1:
        cdef ForgettingPath node
        for node in self.nodes:
            node._take(weight)
        self.known.stream = self.stream
        self.known.tally += weight * self.log_predictive
        return 0

    cdef int _turn(self, turn) except -1:
        cdef RowPath kept
        factor, path, due = turn
        if path is not None:
            kept = path
            memcpy(&kept.triangle[0, 0], &self.data.triangle[0, 0],
                   kept.shape.q * kept.shape.ld * sizeof(double))
            kept.counts[:] = self.data.counts
        self.known.turn = factor
        self.known.stream = self.stream = None
        self.nodes = []
        self.data.clock[1] = due
        self.data.rows = -1  # the first row tells what is constant
        return 0
