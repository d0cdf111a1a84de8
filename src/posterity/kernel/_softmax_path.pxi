# Part of _paths.pyx: rows with labels of several classes.

# LAPACK's routine for eigenvectors, without what stands before it in NumPy: that takes ten times as long for few classes.
ctypedef void (*eigenvectors_routine)(char *, char *, int *, double *, int *, double *, double *, int *, int *, int *, int *) noexcept nogil
cdef object _dsyevd = cython_lapack.__pyx_capi__["dsyevd"]
cdef eigenvectors_routine dsyevd = <eigenvectors_routine> PyCapsule_GetPointer(_dsyevd, PyCapsule_GetName(_dsyevd))

cdef extern from "posterity_softmax.h" nogil:
    ctypedef struct pk_softmax:
        Py_ssize_t classes, contrasts, points, stride
        const double *basis
        const double *units
        double *room
    ctypedef struct pk_rows:
        const double *X
        const double *Y
        const double *weights
        const double *discounts
        double *held
        Py_ssize_t n, columns, x_stride, x_step
        int intercept
    Py_ssize_t PK_APPEND_SIZE(pk_shape shape)
    void pk_append_block(double *T, double *buffer, const pk_rows *rows, pk_shape shape)
    ctypedef struct pk_label:
        Py_ssize_t label
        double weight
        const double *mean
        const double *covariance
        const double *moved
    Py_ssize_t PK_LOOK_SIZE(Py_ssize_t classes, Py_ssize_t contrasts)
    Py_ssize_t PK_PLACE_SIZE(Py_ssize_t contrasts)
    Py_ssize_t PK_BELIEF_SIZE(Py_ssize_t contrasts, pk_shape shape)
    void pk_contrast_moments(const double *T, const double *x, Py_ssize_t R, pk_shape shape, double *mean, double *covariance, double *room)
    void pk_expected_shares(const pk_softmax *s, const double *mean, const double *root, double *moved, double *outputs)
    void pk_around_label(const pk_softmax *s, pk_label label, int averaged, double *place, double *moved, double *room)
    double pk_label_rows(const pk_softmax *s, const pk_label *l, const double *place, double *lower, double *target, double *room)
    void pk_append_label(double *T, double *panel, const double *x, const double *lower, const double *target, Py_ssize_t R, pk_shape shape)
    void pk_evaluate_labels(const pk_softmax *s, Py_ssize_t n, const Py_ssize_t *labels, const double *places, const double *moved, double *turned, double *values, double *slopes, double *curvatures)


cdef double TINY = 1e-300


def _by_lanes(points):
    """Points (S, R) as (R, stride), 0 beyond the last."""
    n, r = np.shape(points)
    padded = np.zeros((r, (n + PK_LINE - 1) // PK_LINE * PK_LINE))
    padded[:, :n] = np.transpose(points)
    return padded


def look_at_labels(const Py_ssize_t[::1] labels, const double[:, ::1] places, const double[:, ::1] basis,
                   const double[:, :, ::1] moved=None):
    """Log likelihood (n,) of labels at ``places`` (n, R), its gradient (n, R), and minus its second derivative (n, R, R).

    Linear predictors are ``basis`` (K, R) times places; averages over points ``moved`` (n, S, R) about these and
    mirrored, where there are any.
    """
    cdef Py_ssize_t n = places.shape[0], K = basis.shape[0], R = basis.shape[1], S = 1 if moved is None else moved.shape[1], i
    cdef pk_softmax softmax
    if labels.shape[0] != n or places.shape[1] != R or (moved is not None and (moved.shape[0] != n or moved.shape[2] != R or S < 1)):
        raise ValueError(f"there are {labels.shape[0]} labels for {n} places of {places.shape[1]}, with a basis of {R}")
    for i in range(n):
        if not 0 <= labels[i] < K:
            raise ValueError(f"label {labels[i]} is none of {K} classes")
    values, slopes, curvatures = np.empty(n), np.empty((n, R)), np.empty((n, R, R))
    cdef double[::1] value = values, room = _aligned(PK_LOOK_SIZE(K, R))
    cdef double[:, ::1] slope = slopes
    cdef double[:, :, ::1] curvature = curvatures
    softmax.classes, softmax.contrasts, softmax.points = K, R, S
    softmax.stride = (S + PK_LINE - 1) // PK_LINE * PK_LINE
    cdef double[::1] turned = _aligned(R * softmax.stride)
    if n == 0 or R == 0:
        return values, slopes, curvatures
    cdef const double *points = NULL
    if moved is not None:
        points = &moved[0, 0, 0]
    softmax.basis = &basis[0, 0]
    softmax.units = NULL
    softmax.room = &room[0]
    with nogil:
        pk_evaluate_labels(&softmax, n, &labels[0], &places[0, 0], points, &turned[0], &value[0], &slope[0, 0],
                          &curvature[0, 0, 0])
    return values, slopes, curvatures


cdef class SoftmaxPath(RowPath):
    """Learns labels, the places of their classes, and predicts their probabilities; see posterity_softmax.h.

    ``data`` (q, ld) is a triangle of all contrasts, contrast by contrast, ``counts`` (2,) sums of weights, ``prior``
    (n, q - 1) rows with targets 0; no direction of both together is open. ``basis`` is (K, R). Averages for learning are over
    the standard points ``near`` (S, R), or none where that is None, those for predicting over ``wide``.

    ``statistics`` is what else knows of rows: it has ``constant`` in ``contrasts``, the sum of the logs of the sites'
    constants, ``count``, ``center`` (p,) and ``squares`` (p,) in ``prior``, of the rows seen, and ``X``, ``labels``,
    ``weights`` and ``fresh`` in ``recent``, the last rows, if they are kept. ``nodes`` are read anew.
    Of rows there are at most ``limit`` to learn, and of weights less than ``due`` in all.
    """

    cdef pk_softmax near, wide
    cdef pk_shape whole
    cdef double[:, ::1] data, joined, basis, near_units, wide_units
    cdef double[::1] sums, room, look_room, panel, read, mean, covariance, root, place, moved, lower, target, shares
    cdef double[::1] center, squares, axes, variances, work
    cdef int[::1] int_work
    cdef object statistics, contrasts, seen, recent
    # Of the last rows.
    cdef tuple kept_arrays
    cdef double[:, ::1] kept_rows
    cdef Py_ssize_t[::1] kept_labels
    cdef double[::1] kept_weights
    cdef Py_ssize_t left, kept
    cdef double due
    cdef bint averaged, stale
    cdef pk_rows prior_rows
    cdef double[:, ::1] prior, nothing
    cdef tuple labels
    cdef dict targets

    def __init__(self, bint intercept, names, data, counts, prior, basis, near, wide, statistics, Py_ssize_t limit, double due):
        cdef Py_ssize_t K, R, p
        self.data, self.prior, self.basis, self.sums = data, np.array(prior), np.array(basis), counts
        K, R = self.basis.shape[0], self.basis.shape[1]
        p = (self.data.shape[0] - 1) // R
        RowPath.__init__(self, np.zeros((p + 1, (p + PK_LINE) // PK_LINE * PK_LINE)), np.zeros(2), intercept, names)
        self.whole.q, self.whole.ld, self.whole.k = self.data.shape[0], self.data.shape[1], 1
        self.whole.p = self.whole.q - 1
        if (R * p != self.whole.p or self.prior.shape[1] != self.whole.p
                or self.whole.ld != (self.whole.q + PK_LINE - 1) // PK_LINE * PK_LINE):
            raise ValueError(f"data and prior have shapes {np.shape(data)} and {np.shape(prior)}: they are none of {R} contrasts")
        self.joined = _aligned(self.whole.q * self.whole.ld).reshape(self.whole.q, self.whole.ld)
        self.nothing = np.zeros((self.prior.shape[0], 1))
        self.prior_rows.X = &self.prior[0, 0]
        self.prior_rows.Y = &self.nothing[0, 0]
        self.prior_rows.weights = NULL
        self.prior_rows.discounts = NULL
        self.prior_rows.held = NULL
        self.prior_rows.n, self.prior_rows.columns, self.prior_rows.intercept = self.prior.shape[0], self.whole.p, False
        self.prior_rows.x_stride, self.prior_rows.x_step = self.whole.p, 1
        self.stale = True
        self.averaged = near is not None
        self.near_units, self.wide_units = _by_lanes(near if self.averaged else np.zeros((1, R))), _by_lanes(wide)
        self.look_room, self.room = _aligned(PK_LOOK_SIZE(K, R)), _aligned(PK_PLACE_SIZE(R) + PK_BELIEF_SIZE(R, self.whole))
        self.panel, self.moved = _aligned(max(self.whole.q * PK_PANEL, PK_APPEND_SIZE(self.whole))), _aligned(R * self.wide_units.shape[1])
        self.read, self.mean, self.place = np.zeros(p), np.zeros(R), np.zeros(R)
        self.covariance, self.root, self.axes = np.zeros(R * R), np.zeros(R * R), np.zeros(R * R)
        self.variances, self.work = np.zeros(R), np.zeros(1 + 6 * R + 2 * R * R)
        self.int_work = np.zeros(3 + 5 * R, dtype=np.intc)
        self.lower, self.target, self.shares = np.zeros(R * R), np.zeros(R), np.zeros(K)
        self._let(&self.near, self.near_units, len(near) if self.averaged else 1)
        self._let(&self.wide, self.wide_units, len(wide))
        if self.moved.shape[0] < R * self.near.stride:
            raise ValueError(f"there are {self.near.points} points to learn with: they may not be more than {self.wide.points}")
        self.statistics, self.contrasts, self.seen = statistics, statistics.contrasts, statistics.prior
        self.center, self.squares = self.seen.center, self.seen.squares
        self.recent, self.left, self.due = statistics.recent, limit, due
        if self.recent is not None:
            self._keep(limit)
        self.labels, self.targets = tuple(range(K)), {place: place for place in range(K)}

    cdef void _let(self, pk_softmax *softmax, double[:, ::1] units, Py_ssize_t points):
        softmax.classes, softmax.contrasts = self.basis.shape[0], self.basis.shape[1]
        softmax.points, softmax.stride = points, units.shape[1]
        softmax.basis = &self.basis[0, 0]
        softmax.units = &units[0, 0]
        softmax.room = &self.look_room[0]

    cdef _keep(self, Py_ssize_t limit):
        """Make room for so many more of the last rows."""
        recent = self.recent
        self.kept = len(recent.X)
        self.kept_arrays = tuple(
            np.concatenate([rows, np.zeros((limit, *rows.shape[1:]), rows.dtype)])
            for rows in (recent.X, recent.labels, recent.weights)
        )
        self.kept_rows, self.kept_labels, self.kept_weights = self.kept_arrays

    def name_labels(self, labels, bint flipped=False):
        """Name the classes, in order."""
        self.labels = tuple(labels)
        self.targets = {label: place for place, label in enumerate(self.labels)}

    def probabilities(self, x):
        """Probability of each label at ``x``, averaged over the posterior."""
        self._tell(x)
        return {self.labels[k]: self.shares[k] for k in range(self.wide.classes)}

    def log_probabilities(self, x):
        """The logs of these, as an array (K,)."""
        self._tell(x)
        return np.log(np.maximum(self.shares, TINY))

    cdef int _tell(self, x) except -1:
        cdef Py_ssize_t R = self.wide.contrasts
        self._load(x, 1.0)
        self._believe()
        self._find_principal_root()
        pk_expected_shares(&self.wide, &self.mean[0], &self.root[0], &self.moved[0], &self.shares[0])
        return 0

    cdef int _find_principal_root(self) except -1:
        """The root of the covariance along its principal axes, as whoever predicts many rows has it."""
        cdef int n = <int> self.wide.contrasts, info = 0, size = <int> self.work.shape[0], int_size = <int> self.int_work.shape[0]
        cdef Py_ssize_t i, k
        cdef char vectors = b"V", lower = b"L"
        memcpy(&self.axes[0], &self.covariance[0], n * n * sizeof(double))
        dsyevd(&vectors, &lower, &n, &self.axes[0], &n, &self.variances[0], &self.work[0], &size, &self.int_work[0], &int_size, &info)
        if info:
            raise np.linalg.LinAlgError("Eigenvalues did not converge")
        for i in range(n):
            for k in range(n):
                self.root[k * n + i] = sqrt(max(self.variances[i], 0.0)) * self.axes[i * n + k]
        return 0

    cdef void _believe(self) noexcept:
        if self.stale:  # made from both each time, so that it depends on nothing else
            memcpy(&self.joined[0, 0], &self.data[0, 0], self.whole.q * self.whole.ld * sizeof(double))
            pk_append_block(&self.joined[0, 0], &self.panel[0], &self.prior_rows, self.whole)
            self.stale = False
        elif memcmp(&self.read[0], &self.buffer[0], self.shape.p * sizeof(double)) == 0:
            return  # a row that is learned right after it was predicted
        memcpy(&self.read[0], &self.buffer[0], self.shape.p * sizeof(double))
        pk_contrast_moments(&self.joined[0, 0], &self.buffer[0], self.near.contrasts, self.whole, &self.mean[0],
                             &self.covariance[0], &self.room[0])

    def learn_label(self, x, label, double weight=1.0):
        """Learn the row ``x`` and its label; False, and nothing happens, where that must be done in another way."""
        cdef PyObject *place = PyDict_GetItem(self.targets, label)
        if place is NULL:
            return False
        return self.learn(x, <object> place, weight)

    def learn(self, x, double y, double weight=1.0):
        """As ``learn_label``, with the place of its class."""
        cdef pk_label label
        cdef double constant
        _check_weight(weight)
        self._load(x, 1.0)
        if self.left <= 0 or weight == 0.0 or not self.sums[1] + weight < self.due:
            return False
        self._believe()
        label.label, label.weight = <Py_ssize_t> y, weight
        label.moved = NULL
        label.mean = &self.mean[0]
        label.covariance = &self.covariance[0]
        pk_around_label(&self.near, label, self.averaged, &self.place[0], &self.moved[0], &self.room[0])
        if self.averaged:
            label.moved = &self.moved[0]
        constant = pk_label_rows(&self.near, &label, &self.place[0], &self.lower[0], &self.target[0], &self.room[0])
        if not self._is_usable(constant) or self.closed:
            return False
        pk_append_label(&self.data[0, 0], &self.panel[0], &self.buffer[0], &self.lower[0], &self.target[0],
                        self.near.contrasts, self.whole)
        self.stale = True
        self.sums[0] += weight
        self.sums[1] += weight
        self.left -= 1
        self._enter(label.label, weight, constant)
        return True

    cdef bint _is_usable(self, double constant) noexcept:
        cdef Py_ssize_t i, R = self.near.contrasts
        cdef double largest = 0.0, steepest = 0.0
        cdef bint usable = isfinite(constant)
        for i in range(self.shape.p):
            largest = max(largest, fabs(self.buffer[i]))
        for i in range(R * R):
            usable = usable and fabs(self.lower[i]) * largest <= LARGEST
        for i in range(R):
            usable = usable and fabs(self.target[i]) <= LARGEST
        return usable

    cdef int _enter(self, Py_ssize_t place, double weight, double constant) except -1:
        """Add a row that was learned to the statistics."""
        cdef Py_ssize_t i, n
        cdef double before = self.seen.count, total = before + weight, shift
        self.contrasts.constant += constant
        self.contrasts.read = None
        for i in range(self.shape.p):
            shift = self.buffer[i] - self.center[i]
            self.squares[i] += shift * shift * before * weight / total
            self.center[i] += shift * weight / total
        self.seen.count = total
        self.statistics.nodes = None
        recent = self.recent
        if recent is not None:
            n = self.kept
            self.kept_rows[n, :] = self.buffer[:self.shape.p]
            self.kept_labels[n], self.kept_weights[n] = place, weight
            self.kept = n + 1
            recent.X, recent.labels, recent.weights = [rows[:self.kept] for rows in self.kept_arrays]
            recent.fresh += 1
        return 0
