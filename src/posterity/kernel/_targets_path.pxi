# A part of _paths.pyx: the lean path of several targets.

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
        """Name the targets."""
        if len(names) != self.shape.k:
            raise ValueError(f"there are {len(names)} names for {self.shape.k} targets")
        self.target_names = tuple(names)

    def learn(self, x, y, double weight=1.0):
        """Append the row ``x`` with targets ``y`` (array of length k, or mapping of names); as ``RowPath.learn``."""
        _check_weight(weight)
        cdef double root = sqrt(weight)
        y = self._as_plain_targets(y)
        self._fill(self._ask_before(x), root)
        self._load_targets(y, root)
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

    cdef int _load_targets(self, object y, double root) except -1:
        cdef Py_ssize_t i
        cdef double *row = &self.buffer[0] + self.shape.p
        cdef const double *values
        cdef PyObject *value
        if type(y) is dict:
            for i in range(self.shape.k):
                value = PyDict_GetItem(<dict> y, self.target_names[i])
                if value is NULL:
                    self._refuse_target_names(y)
                row[i] = <object> value
        else:
            values = <const double *> cnp.PyArray_DATA(y)
            for i in range(self.shape.k):
                row[i] = values[i]
        for i in range(self.shape.k):
            row[i] *= root
            if not fabs(row[i]) <= LARGEST:
                name = i if self.target_names is None else repr(self.target_names[i])
                raise ValueError(_complaint(f"y of target {name}", row[i] / root if root else row[i]))
        return 0

    cdef _as_plain_targets(self, y):
        """Return targets that are read without running Python, as ``_as_plain`` does features."""
        if _is_plain_array(y, self.shape.k):
            return y
        if self.target_names is not None and type(y) is dict and len(<dict> y) == self.shape.k and _is_plain_dict(y):
            return y
        return self._targets_as_array(y)

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
        array = np.ascontiguousarray(read_floats(y, "y"), dtype=np.float64)
        if array.ndim != 1 or len(array) != self.shape.k:
            raise ValueError(f"y has shape {np.shape(y)}: expected ({self.shape.k},), one value per target")
        return array

    def _refuse_target_names(self, y):
        known = ", ".join(map(repr, self.target_names))
        raise ValueError(f"y has the targets {', '.join(map(repr, y))}: the model knows {known}")
