# A part of _paths.pyx: the lean path of several targets.

cdef class TargetsPath(RowPath):
    """Learns and predicts rows of ``n_targets`` targets."""

    # Names of the targets, by which they may come as a mapping, and are predicted as one.
    cdef readonly tuple target_names
    cdef dict target_places

    def __init__(self, triangle, counts, bint intercept, names, Py_ssize_t n_targets):
        RowPath.__init__(self, triangle, counts, intercept, names)
        self.shape.k, self.shape.p = n_targets, self.shape.q - n_targets
        self.columns = self.shape.p - intercept
        if n_targets < 1 or self.columns < 0:
            raise ValueError(f"a triangle of {self.shape.q} columns can't have {n_targets} targets")

    def name_targets(self, names):
        """Name the targets."""
        if len(names) != self.shape.k:
            raise ValueError(f"there are {len(names)} names for {self.shape.k} targets")
        self.target_names = tuple(names)
        self.target_places = {name: place for place, name in enumerate(self.target_names)}

    def learn(self, x, y, double weight=1.0):
        """Append the row ``x`` with targets ``y`` (array of length k, or mapping of names); as ``RowPath.learn``."""
        _check_weight(weight)
        cdef double root = sqrt(weight)
        self._ask_what_waits()
        if not self._fill(x, root):
            return self.learn(self._as_array(x), y, weight)
        if not self._fill_targets(y, root):
            return self.learn(x, self._targets_as_array(y), weight)
        if self._is_due(root) or self.closed:
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

    cdef bint _fill_targets(self, object y, double root) except -1:
        """Fill the buffer with targets, times ``root``; False where reading them may run Python."""
        cdef Py_ssize_t i
        cdef double *row = &self.buffer[0] + self.shape.p
        if not _read_row(y, self.shape.k, self.target_names, self.target_places, row):
            return False
        for i in range(self.shape.k):
            row[i] *= root
            if not fabs(row[i]) <= LARGEST:
                name = i if self.target_names is None else repr(self.target_names[i])
                raise ValueError(_complaint(f"y of target {name}", row[i] / root if root else row[i]))
        return True

    def _targets_as_array(self, y):
        """Read targets in the general case: mappings of any kind, lists, other dtypes."""
        if hasattr(y, "keys"):
            if self.target_names is None:
                raise TypeError(
                    "y is a mapping of names, but the model learned from targets without names: "
                    "pass an array, or learn from the start with named targets"
                )
            if len(y) != self.shape.k or any(name not in y for name in self.target_names):
                self._refuse_target_names(y)
            y = [y[name] for name in self.target_names]
        array = np.array(read_floats(y, "y"), dtype=np.float64, order="C", ndmin=1)
        if array.ndim != 1 or len(array) != self.shape.k:
            raise ValueError(f"y has shape {np.shape(y)}: expected ({self.shape.k},), one value per target")
        return array

    def _refuse_target_names(self, y):
        known = ", ".join(map(repr, self.target_names))
        raise ValueError(f"y has the targets {', '.join(map(repr, y))}: the model knows {known}")
