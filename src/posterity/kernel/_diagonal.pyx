# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Checked binding of posterity_diagonal.h: sparse rows of many features, without the GIL."""

import numpy as np
from cpython.mem cimport PyMem_Calloc, PyMem_Free

cdef extern from "posterity_diagonal.h" nogil:
    enum: PK_MEMBERS
    enum: PK_BELIEF
    enum: PK_TOLD
    ctypedef struct pk_likelihood:
        int code, moments
        double a, b, c
    ctypedef struct pk_active:
        pass
    ctypedef struct pk_diagonal:
        double *beliefs
        double *clocks
        double *precision
        double *information
        double *squares
        double *scores
        double *rates
        double shape, faded
        int members, learns, relative, intercept
    ctypedef struct pk_sparse_rows:
        const long long *starts
        const int *features
        const int *columns
        const double *values
        const double *y
        const double *weights
        const double *discounts
        const double *offsets
        Py_ssize_t n
    void pk_learn_sparse(pk_diagonal *d, const pk_likelihood *l, const pk_sparse_rows *rows, pk_active *active, double *sums, double *outputs)
    void pk_mix_labels(Py_ssize_t n, Py_ssize_t k, const double *mean, const double *variance, const double *shares, double *probabilities)
    void pk_predict_sparse(const pk_diagonal *d, const pk_sparse_rows *rows, pk_active *active, double *outputs)

cdef extern from "posterity_centres.h" nogil:
    ctypedef struct pk_centres:
        const int *features
        const int *owners
        double *values
        double *sums
        double *counts
        Py_ssize_t *active
        Py_ssize_t *last
        Py_ssize_t k, n_active
        double n_rows, weight, due, faded, entries
        int in_matrix
    ctypedef struct pk_entries:
        int *features
        int *columns
        double *values
        Py_ssize_t *places
        long long starts[2]
    void pk_list_active(pk_centres *c)
    pk_sparse_rows pk_one_row(const pk_entries *row)
    void pk_learn_given(pk_diagonal *d, const pk_likelihood *l, const pk_sparse_rows *rows, pk_centres *c,
                        pk_entries *centred, pk_active *active, double *sums, double *output)
    void pk_predict_given(const pk_diagonal *d, const pk_sparse_rows *rows, const pk_centres *c, pk_entries *centred,
                          pk_active *active, double *output)

MEMBERS = PK_MEMBERS


cdef double *_numbers(double[::1] array, Py_ssize_t size, str name) except? NULL:
    if array.shape[0] != size:
        raise ValueError(f"{name} has length {array.shape[0]}: expected {size}")
    return &array[0] if size else NULL


cdef const double *_given(const double[::1] array, Py_ssize_t n, str name) except? NULL:
    if array is None:
        return NULL
    if array.shape[0] != n:
        raise ValueError(f"{name} has length {array.shape[0]}: expected {n}")
    return &array[0] if n else NULL


cdef class _Centring:
    """Where numbers are centred, and room for one row: as it came, and centred."""

    cdef pk_centres centres
    cdef pk_entries given, centred
    cdef pk_active *active
    cdef Py_ssize_t features, columns
    cdef void *room
    cdef object kept

    def __cinit__(self, const int[::1] owners, dict centres, Py_ssize_t features, Py_ssize_t columns, Py_ssize_t longest):
        """``centres``: attributes of these; ``longest``: most entries of a row as it comes."""
        cdef const int[::1] numbers = centres["features"]
        cdef double[::1] values, sums, counts
        cdef Py_ssize_t k = numbers.shape[0], most = longest + k + 1, i
        self.features, self.columns, self.centres.k = features, columns, k
        self.centres.n_rows, self.centres.in_matrix = centres["n_rows"], centres["in_matrix"]
        self.centres.weight, self.centres.due, self.centres.faded = centres["weight"], centres["due"], 1.0
        if owners.shape[0] != features:
            raise ValueError(f"owners has length {owners.shape[0]}: expected {features}")
        self.centres.owners = &owners[0]
        if k:
            values, sums, counts = centres["values"], centres["sums"], centres["counts"]
            self.centres.features = &numbers[0]
            self.centres.values, self.centres.sums = _numbers(values, k, "values"), _numbers(sums, k, "sums")
            self.centres.counts = _numbers(counts, k, "counts")
            self.kept = (numbers, values, sums, counts, owners)
        for i in range(k):
            if not 0 <= numbers[i] < features or not 0 <= owners[numbers[i]] < columns:
                raise ValueError(f"there is no feature {numbers[i]}")
            self.centres.entries += counts[i]
        self.room = PyMem_Calloc(1, 2 * most * (2 * sizeof(int) + sizeof(double) + sizeof(Py_ssize_t))
                                 + 2 * k * sizeof(Py_ssize_t) + most * sizeof(pk_active) + 64)
        if self.room == NULL:
            raise MemoryError
        self._lay_out(most)
        for i in range(k):
            self.centres.last[i] = -1
        pk_list_active(&self.centres)

    cdef void _lay_out(self, Py_ssize_t most) noexcept:
        """Divide the room: what is aligned the most comes first."""
        self.active = <pk_active *> ((<size_t> self.room + 63) & ~<size_t> 63)
        cdef double *numbers = <double *> (self.active + most)
        cdef Py_ssize_t *places = <Py_ssize_t *> (numbers + 2 * most)
        self.centres.active, self.centres.last = places + 2 * most, places + 2 * most + self.centres.k
        cdef int *ints = <int *> (self.centres.last + self.centres.k)
        self.given.values, self.centred.values = numbers, numbers + most
        self.given.places, self.centred.places = places, places + most
        self.given.features, self.given.columns = ints, ints + most
        self.centred.features, self.centred.columns = ints + 2 * most, ints + 3 * most

    cdef pk_sparse_rows read(self, list row) except *:
        """A row of (feature, column, value)."""
        cdef Py_ssize_t i
        for i in range(len(row)):
            self.given.features[i], self.given.columns[i], self.given.values[i] = row[i]
            if not 0 <= self.given.features[i] < self.features:
                raise ValueError(f"there is no feature {self.given.features[i]}")
            if not 0 <= self.given.columns[i] < self.columns:
                raise ValueError(f"there is no column {self.given.columns[i]}")
        self.given.starts[1] = len(row)
        return pk_one_row(&self.given)

    cdef void write(self, dict centres) except *:
        centres["n_rows"], centres["weight"] = self.centres.n_rows, self.centres.weight
        centres["due"], centres["_active"] = self.centres.due, None

    def __dealloc__(self):
        PyMem_Free(self.room)


cdef class DiagonalState:
    """State of a diagonal model, in arrays that its owner keeps and may lengthen between calls.

    ``beliefs`` (8 p), ``clocks`` (p) or None, ``precision`` and ``information`` (4 columns), ``squares``
    (2 columns), ``scores`` and ``rates`` (4): as in posterity_diagonal.h.
    """

    cdef pk_diagonal state
    cdef Py_ssize_t features, columns
    cdef object kept
    cdef public tuple source

    def __init__(self, double[::1] beliefs, double[::1] clocks, double[::1] precision, double[::1] information,
                 double[::1] squares, double[::1] scores, double[::1] rates, double shape, double faded,
                 int members, bint learns, bint relative, bint intercept):
        self.features, self.columns = beliefs.shape[0] // PK_BELIEF, squares.shape[0] // 2
        if self.features < 1 or self.columns < 2 or not 1 <= members <= PK_MEMBERS:
            raise ValueError("a state has a place for the intercept, and 1 to 4 members")
        self.state.beliefs = _numbers(beliefs, PK_BELIEF * self.features, "beliefs")
        self.state.clocks = NULL if clocks is None else _numbers(clocks, self.features, "clocks")
        self.state.precision = _numbers(precision, PK_MEMBERS * self.columns, "precision")
        self.state.information = _numbers(information, PK_MEMBERS * self.columns, "information")
        self.state.squares = _numbers(squares, 2 * self.columns, "squares")
        self.state.scores = _numbers(scores, PK_MEMBERS, "scores")
        self.state.rates = _numbers(rates, PK_MEMBERS, "rates")
        self.state.shape, self.state.faded = shape, faded
        self.state.members, self.state.learns = members, learns
        self.state.relative, self.state.intercept = relative, intercept
        self.kept = (beliefs, clocks, precision, information, squares, scores, rates)

    @property
    def shape(self):
        """Shape of the noise's posterior, or -1 where it is known."""
        return self.state.shape

    @property
    def faded(self):
        """Log of all discounts so far."""
        return self.state.faded

    cdef Py_ssize_t _rows(self, pk_sparse_rows *rows, const long long[::1] starts, const int[::1] features,
                          const int[::1] columns, const double[::1] values, bint unknown) except -1:
        """Fill in ``rows``, check all numbers, and return the length of the longest row."""
        cdef Py_ssize_t n = starts.shape[0] - 1, size = features.shape[0], i, longest = 0
        cdef int least = -1 if unknown else 0
        if n < 0 or starts[0] != 0 or starts[n] != size:
            raise ValueError("starts do not fit the features")
        for i in range(n):
            if starts[i + 1] < starts[i]:
                raise ValueError("starts go back")
            longest = max(longest, <Py_ssize_t> (starts[i + 1] - starts[i]))
        for i in range(size):
            if features[i] < least or features[i] >= self.features:
                raise ValueError(f"there is no feature {features[i]}")
        if columns is not None:
            if columns.shape[0] != size:
                raise ValueError(f"columns has length {columns.shape[0]}: expected {size}")
            for i in range(size):
                if columns[i] < 0 or columns[i] >= self.columns:
                    raise ValueError(f"there is no column {columns[i]}")
        rows.n, rows.starts = n, &starts[0]
        rows.features = &features[0] if size else NULL
        rows.columns = &columns[0] if size and columns is not None else NULL
        rows.values = _given(values, size, "values")
        rows.y = rows.weights = rows.discounts = rows.offsets = NULL
        return longest

    def learn(self, int code, parameters, const long long[::1] starts, const int[::1] features,
              const int[::1] columns, const double[::1] values, const double[::1] y, const double[::1] weights,
              const double[::1] discounts, const double[::1] offsets, bint tell):
        """Learn rows in order; with ``tell`` what was believed before each: (n, 6, 4)."""
        cdef pk_sparse_rows rows
        cdef pk_likelihood likelihood
        cdef Py_ssize_t longest = self._rows(&rows, starts, features, columns, values, False)
        if not 1 <= code <= 7:
            raise ValueError(f"the kernel knows no likelihood {code}")
        likelihood.code, likelihood.moments = code, 1
        likelihood.a, likelihood.b, likelihood.c = parameters
        rows.y = _given(y, rows.n, "y")
        rows.weights = _given(weights, rows.n, "weights")
        rows.discounts = _given(discounts, rows.n, "discounts")
        rows.offsets = _given(offsets, rows.n, "offsets")
        cdef unsigned char[::1] active = np.empty((longest + 1) * sizeof(pk_active), dtype=np.uint8)
        cdef double[::1] sums = np.zeros(PK_BELIEF * self.columns if self.state.learns else 1)
        outputs = np.empty((rows.n, 6, PK_MEMBERS)) if tell else None
        cdef double[:, :, ::1] out = outputs
        cdef double *to = &out[0, 0, 0] if tell and rows.n else NULL
        if rows.n:
            with nogil:
                pk_learn_sparse(&self.state, &likelihood, &rows, <pk_active *> &active[0], &sums[0], to)
        return outputs

    def resume(self, tuple arrays, double shape, double faded):
        """Return True if the state was made of these very arrays; it then goes on from this shape and fading."""
        cdef Py_ssize_t i
        if self.source is None or len(self.source) != len(arrays):
            return False
        for i in range(len(arrays)):
            if self.source[i] is not arrays[i]:
                return False
        self.state.shape, self.state.faded = shape, faded
        return True

    cdef object _learn_given(self, int code, parameters, const pk_sparse_rows *rows, _Centring centring,
                             dict posterior, dict centres, bint tell):
        """Learn rows of which all is checked, and set what changes in ``posterior`` and ``centres``."""
        cdef pk_likelihood likelihood
        cdef double n_observations = posterior["n_observations"], n_effective = posterior["n_effective"], weight
        cdef Py_ssize_t i
        if not 1 <= code <= 7:
            raise ValueError(f"the kernel knows no likelihood {code}")
        likelihood.code, likelihood.moments = code, 1
        likelihood.a, likelihood.b, likelihood.c = parameters
        outputs = np.empty((rows.n, 6, PK_MEMBERS)) if tell else None
        cdef double[:, :, ::1] out = outputs
        cdef double *to = &out[0, 0, 0] if tell and rows.n else NULL
        cdef double *sums = <double *> PyMem_Calloc(PK_BELIEF * self.columns if self.state.learns else 1, sizeof(double))
        if sums == NULL:
            raise MemoryError
        with nogil:
            pk_learn_given(&self.state, &likelihood, rows, &centring.centres, &centring.centred, centring.active, sums, to)
            for i in range(rows.n):
                weight = rows.weights[i] if rows.weights else 1.0
                n_observations += weight
                n_effective = (rows.discounts[i] if rows.discounts else 1.0) * n_effective + weight
        PyMem_Free(sums)
        posterior["shape"], posterior["faded"] = self.state.shape, self.state.faded
        posterior["n_observations"], posterior["n_effective"] = n_observations, n_effective
        centring.write(centres)
        return outputs

    def learn_given(self, int code, parameters, const long long[::1] starts, const int[::1] features,
                    const int[::1] columns, const double[::1] values, const double[::1] y, const double[::1] weights,
                    const double[::1] discounts, const double[::1] offsets, bint tell, owners, dict posterior,
                    dict centres):
        """Learn rows as they came, and move the centres of numbers between them, in one step.

        ``posterior`` and ``centres``: attributes of these, of which those that change are set. With ``tell`` return
        what was believed before each row: (n, 6, 4).
        """
        cdef pk_sparse_rows rows
        cdef Py_ssize_t longest = self._rows(&rows, starts, features, columns, values, False)
        rows.y = _given(y, rows.n, "y")
        rows.weights = _given(weights, rows.n, "weights")
        rows.discounts = _given(discounts, rows.n, "discounts")
        rows.offsets = _given(offsets, rows.n, "offsets")
        cdef _Centring centring = _Centring(owners, centres, self.features, self.columns, longest)
        return self._learn_given(code, parameters, &rows, centring, posterior, centres, tell)

    def learn_row(self, int code, parameters, list row, double y, double discount, double offset, owners,
                  dict posterior, dict centres):
        """The same of one row of (feature, column, value)."""
        cdef _Centring centring = _Centring(owners, centres, self.features, self.columns, len(row))
        cdef pk_sparse_rows one = centring.read(row)
        one.y, one.discounts, one.offsets = &y, &discount, &offset
        self._learn_given(code, parameters, &one, centring, posterior, centres, False)

    cdef object _predict_given(self, const pk_sparse_rows *rows, _Centring centring):
        outputs = np.empty((rows.n, 2, PK_MEMBERS))
        cdef double[:, :, ::1] out = outputs
        if rows.n:
            with nogil:
                pk_predict_given(&self.state, rows, &centring.centres, &centring.centred, centring.active, &out[0, 0, 0])
        return outputs

    def predict_given(self, const long long[::1] starts, const int[::1] features, const int[::1] columns,
                      const double[::1] values, owners, dict centres):
        """Mean and variance of eta at rows as they came, under each member: (n, 2, 4); features may be -1."""
        cdef pk_sparse_rows rows
        cdef Py_ssize_t longest = self._rows(&rows, starts, features, columns, values, True)
        return self._predict_given(&rows, _Centring(owners, centres, self.features, self.columns, longest))

    def predict_row(self, list row, owners, dict centres):
        """The same at one row of (feature, column, value)."""
        cdef _Centring centring = _Centring(owners, centres, self.features, self.columns, len(row))
        cdef pk_sparse_rows one = centring.read(row)
        return self._predict_given(&one, centring)

    def predict_then_learn_rows(self, const long long[::1] starts, const int[::1] features, const int[::1] columns,
             const double[::1] values):
        """Mean and variance of eta at rows under each member: (n, 2, 4); features may be -1."""
        cdef pk_sparse_rows rows
        cdef Py_ssize_t longest = self._rows(&rows, starts, features, columns, values, True)
        cdef unsigned char[::1] active = np.empty((longest + 1) * sizeof(pk_active), dtype=np.uint8)
        outputs = np.empty((rows.n, 2, PK_MEMBERS))
        cdef double[:, :, ::1] out = outputs
        if rows.n:
            with nogil:
                pk_predict_sparse(&self.state, &rows, <pk_active *> &active[0], &out[0, 0, 0])
        return outputs


def mix_labels(const double[:, ::1] mean, const double[:, ::1] variance, const double[:, ::1] shares):
    """Probabilities (n, 2) of 0 and 1, log odds Normal (n, k) under hypotheses with these shares (n, k)."""
    cdef Py_ssize_t n = mean.shape[0], k = mean.shape[1]
    if not (variance.shape[0] == shares.shape[0] == n and variance.shape[1] == shares.shape[1] == k):
        raise ValueError(f"mean has shape ({n}, {k}): variance and shares must have it, too")
    outputs = np.empty((n, 2))
    cdef double[:, ::1] out = outputs
    if n and k:
        with nogil:
            pk_mix_labels(n, k, &mean[0, 0], &variance[0, 0], &shares[0, 0], &out[0, 0])
    return outputs
