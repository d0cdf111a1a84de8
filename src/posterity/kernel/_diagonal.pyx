# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Checked binding of posterity_diagonal.h: sparse rows of many features, without the GIL."""

import numpy as np

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
        Py_ssize_t n
    void pk_learn_sparse(pk_diagonal *d, const pk_likelihood *l, const pk_sparse_rows *rows, pk_active *active, double *sums, double *outputs)
    void pk_mix_labels(Py_ssize_t n, Py_ssize_t k, const double *mean, const double *variance, const double *shares, double *probabilities)
    void pk_predict_sparse(const pk_diagonal *d, const pk_sparse_rows *rows, pk_active *active, double *outputs)

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


cdef class DiagonalState:
    """State of a diagonal model, in arrays that its owner keeps and may lengthen between calls.

    ``beliefs`` (8 p), ``clocks`` (p) or None, ``precision`` and ``information`` (4 columns), ``squares``
    (2 columns), ``scores`` and ``rates`` (4): as in posterity_diagonal.h.
    """

    cdef pk_diagonal state
    cdef Py_ssize_t features, columns
    cdef object kept

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
        rows.y = rows.weights = rows.discounts = NULL
        return longest

    def learn(self, int code, parameters, const long long[::1] starts, const int[::1] features,
              const int[::1] columns, const double[::1] values, const double[::1] y, const double[::1] weights,
              const double[::1] discounts, bint tell):
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
        cdef unsigned char[::1] active = np.empty((longest + 1) * sizeof(pk_active), dtype=np.uint8)
        cdef double[::1] sums = np.zeros(PK_BELIEF * self.columns if self.state.learns else 1)
        outputs = np.empty((rows.n, 6, PK_MEMBERS)) if tell else None
        cdef double[:, :, ::1] out = outputs
        cdef double *to = &out[0, 0, 0] if tell and rows.n else NULL
        if rows.n:
            with nogil:
                pk_learn_sparse(&self.state, &likelihood, &rows, <pk_active *> &active[0], &sums[0], to)
        return outputs

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
