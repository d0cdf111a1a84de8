# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The compiled path of an average over members that fade towards their priors: one row a call."""

import numpy as np

cimport numpy as cnp
from cpython.object cimport PyObject
from libc.math cimport INFINITY, fabs, fmax, fmin, isfinite, sqrt
from libc.string cimport memcpy

cnp.import_array()

include "_structures.pxi"

cdef extern from "posterity_members.h" nogil:
    int pk_try_row(const double *T, double *after, double *buffer, double *flight, const pk_rows *row, pk_shape shape, const double *prior, const pk_before *before)
    void pk_copy_triangle(double *to, const double *origin, pk_shape shape)
    double pk_predict_row(const double *T, double *row, pk_shape shape)
    Py_ssize_t PK_APPEND_SIZE(pk_shape shape)
    enum: PK_MEMORIES
    ctypedef struct pk_noises:
        Py_ssize_t memories, lanes
        double *state
        double rates[PK_MEMORIES]
        double caps[PK_MEMORIES]
        double grace, persistence, prior_count, prior_sum
    void pk_score_members(const pk_noises *noises, Py_ssize_t members, Py_ssize_t n, const double *y, const double *weights, const double *loc, double *scale, double *df, double *densities, unsigned char *ranks)

include "_values.pxi"


cdef class FadingMember:
    """A triangle (q, ld) of which all but ``prior``, which is in it, is discounted before each row; with its counts (2,).

    Where the prior is learned it is a node's, and ``behind`` it are the data that the node is made from.
    """

    cdef double[:, ::1] triangle
    cdef const double[:, ::1] prior
    cdef double[::1] counts, after
    cdef double discount, error, leverage, residual
    cdef bint flat
    cdef LearnedPrior behind

    def __init__(self, double[:, ::1] triangle not None, double[::1] counts not None, const double[:, ::1] prior not None,
                 double discount):
        if prior.shape[0] != triangle.shape[0] or prior.shape[1] != triangle.shape[1]:
            raise ValueError(f"prior has shape ({prior.shape[0]}, {prior.shape[1]}): it is none of this triangle")
        self.triangle, self.counts, self.prior, self.discount = triangle, counts, prior, discount
        self.flat = not np.any(prior)
        self.after = _aligned(triangle.shape[0] * triangle.shape[1])

    cdef bint begins(self) noexcept:
        return self.counts[1] == 0.0

    cdef int try_row(self, pk_rows *row, double[::1] buffer, double[::1] flight, pk_shape shape) noexcept:
        """Learn the row in ``after``; return True if that was possible."""
        cdef pk_before before
        # Before the first row there is nothing to forget, and a row that weighs nothing takes no time.
        cdef double discount = 1.0 if self.begins() or row.weights[0] == 0.0 else self.discount
        before.error, before.leverage, before.residual = &self.error, &self.leverage, &self.residual
        if self.behind is not None and not self.behind.data.try_row(row, buffer, flight, shape):
            return False
        row.discounts = &discount
        return pk_try_row(&self.triangle[0, 0], &self.after[0], &buffer[0], &flight[0], row, shape,
                          NULL if self.flat else &self.prior[0, 0], &before)

    cdef int take(self, const double[:, ::1] values, double weight, pk_shape shape) except -1:
        if not self.begins() and weight > 0.0:
            self.counts[0] *= self.discount
        pk_copy_triangle(&self.triangle[0, 0], &self.after[0], shape)
        self.counts[0] += weight
        self.counts[1] += weight
        if self.behind is not None:
            self.behind.take(values, weight, shape)
        return 0


cdef class LearnedPrior:
    """Data that a node is built from, their state ``known``, and the schedule of its choice.

    ``known`` has a ``clock`` (rows, due), the ``scales`` of the features, and keeps ``stream``, the node, once it has
    learned; ``next_turn(rows)`` tells when the prior is next chosen. Before it is ``ready``, compiled code does not learn it.
    """

    cdef FadingMember data
    cdef object known, stream, next_turn, bound
    cdef double[::1] mean, squares
    cdef long long[::1] clock
    cdef long long due
    cdef bint ready, turns

    def __init__(self, FadingMember data not None, known, stream, next_turn, bint ready):
        self.data, self.known, self.stream, self.next_turn, self.ready = data, known, stream, next_turn, ready
        self.clock = known.clock

    def before(self, FadingMember node not None):
        """Attach these data to the node, which has them learn each row too; return the node."""
        node.behind = self
        return node

    cdef bint keeps_up(self, FadingMember node) except -1:
        """Return True if the node is that of the stream, if there is one, and has learned all rows."""
        stream = self.known.stream
        return (stream is None or stream is self.stream) and node.counts[1] == self.data.counts[1]

    cdef int prepare(self, double weight) except -1:
        """Find when the prior is next chosen, before a row is learned."""
        self.turns = weight > 0.0 and self.clock[0] + 1 >= self.clock[1]
        if self.turns:
            self.due = self.next_turn(self.clock[0] + 1)
        scales = self.known.scales
        if scales.mean is not self.bound:
            scales.mean, scales.squares = np.array(scales.mean), np.array(scales.squares)
            self.mean, self.squares, self.bound = scales.mean, scales.squares, scales.mean
        return 0

    cdef int take(self, const double[:, ::1] values, double weight, pk_shape shape) except -1:
        cdef Py_ssize_t i
        cdef double before, share, step
        self.data.take(values, weight, shape)
        if not weight > 0.0:
            return 0
        scales = self.known.scales
        before = scales.count
        share = weight / (before + weight)
        for i in range(values.shape[1]):
            step = values[0, i] - self.mean[i]
            self.squares[i] += step * step * (before * share)
            self.mean[i] += step * share
        scales.count = before + weight
        self.clock[0] += 1
        self.known.stream = None if self.turns else self.stream
        if self.turns:
            self.clock[1] = self.due
        return 0


cdef class MemberNoises:
    """Tracker of members' noises, each at m <= 8 memories.

    The ``states`` (4, m), one a member, hold sums of squared errors, each relative to what its variance would be if the
    noise's were 1, sums of weights and scores for each memory, and in the last row what weight was seen (m times). What a
    memory holds is multiplied by its ``rates`` (m,) at every row; a squared error counts for at most ``caps`` (m,)
    variances once more weight than ``grace`` was seen. ``prior`` is (count, sum of squares).
    """

    cdef list states
    cdef Py_ssize_t[::1] addresses
    cdef double[:, ::1] lanes
    cdef pk_noises noises

    def __init__(self, list states not None, const double[::1] rates, const double[::1] caps, double grace, double persistence,
                 prior):
        cdef Py_ssize_t m = rates.shape[0], l
        if not 1 <= m <= PK_MEMORIES or caps.shape[0] != m or not states or any(state.shape != (4, m) for state in states):
            raise ValueError(f"there must be 1 to {PK_MEMORIES} memories, as many in each argument")
        self.states, self.addresses = states, np.array([_address(state) for state in states], dtype=np.intp)
        self.noises.memories, self.noises.lanes = m, (len(states) + PK_LINE - 1) // PK_LINE * PK_LINE
        self.lanes = _aligned((3 * m + 1) * self.noises.lanes).reshape(3 * m + 1, self.noises.lanes)
        self.noises.state = &self.lanes[0, 0]
        for l in range(m):
            self.noises.rates[l], self.noises.caps[l] = rates[l], caps[l]
        self.noises.grace, self.noises.persistence = grace, persistence
        self.noises.prior_count, self.noises.prior_sum = prior

    def score(self, const double[::1] y not None, const double[:, ::1] loc not None, double[:, ::1] scale not None,
              const double[::1] weights):
        """Return k members' predictions of rows from ``loc`` and ``scale`` (k, n) under unit noise, then learn ``y`` (n,).

        Scales become those with their noises, in place. Returns degrees of freedom and log densities times ``weights``
        (k, n), and ranks (k, n).
        """
        cdef Py_ssize_t k = loc.shape[0], n = y.shape[0]
        cdef double[:, ::1] df = np.empty((k, n)), densities = np.empty((k, n))
        cdef unsigned char[:, ::1] ranks = np.empty((k, n), dtype=np.uint8)
        if k != len(self.states) or scale.shape[0] != k or loc.shape[1] != n or scale.shape[1] != n:
            raise ValueError("loc and scale are not those of so many members and rows")
        if weights is not None and weights.shape[0] != n:
            raise ValueError(f"weights has length {weights.shape[0]}: expected {n}")
        if n > 0:
            self.load()
            with nogil:
                pk_score_members(&self.noises, k, n, &y[0], NULL if weights is None else &weights[0], &loc[0, 0],
                                 &scale[0, 0], &df[0, 0], &densities[0, 0], &ranks[0, 0])
            self.take()
        return np.asarray(df), np.asarray(densities), np.asarray(ranks)

    cdef void load(self) noexcept nogil:
        """Copy the states to lanes."""
        cdef Py_ssize_t k, i, m = self.noises.memories
        for k in range(self.addresses.shape[0]):
            for i in range(3 * m + 1):
                self.lanes[i, k] = (<double *> self.addresses[k])[i]

    cdef void take(self) noexcept nogil:
        """Copy the lanes back to the states."""
        cdef Py_ssize_t k, i, m = self.noises.memories
        for k in range(self.addresses.shape[0]):
            for i in range(4 * m):
                (<double *> self.addresses[k])[i] = self.lanes[min(i, 3 * m), k]


cdef Py_ssize_t _address(double[:, ::1] state):
    return <Py_ssize_t> &state[0, 0]


include "_average_path.pxi"


cdef class MembersPath(WeighedPath):
    """Learns and predicts rows by members, weighed as :class:`WeighedPath` says.

    ``open_members()`` tells these, :class:`FadingMember`; ``noises`` are theirs, :class:`MemberNoises`, or None where
    ``precision`` is that of a known noise.
    """

    cdef object open_members, predicted
    cdef list members
    cdef MemberNoises noises
    cdef pk_noises known
    cdef bint intercept
    cdef double precision
    cdef double[::1] buffer, flight, row, loc, scale, df
    cdef pk_shape shape

    def __init__(self, reader, Py_ssize_t n_coefficients, bint intercept, Py_ssize_t count, open_members, MemberNoises noises,
                 double precision, standing, rules):
        WeighedPath.__init__(self, reader, count, standing, rules)
        self.intercept, self.open_members = intercept, open_members
        self.noises, self.precision = noises, precision
        self.shape.k, self.shape.p = 1, n_coefficients
        self.shape.q = self.shape.p + 1
        self.shape.ld = (self.shape.q + PK_LINE - 1) // PK_LINE * PK_LINE
        if noises is not None and len(noises.states) != count:
            raise ValueError("noises are not those of so many members")
        self.buffer, self.flight = _aligned(PK_APPEND_SIZE(self.shape)), _aligned(PK_FLIGHT_SIZE(self.shape))
        self.row = _aligned(self.shape.ld)
        self.predicted = np.empty((4, count))
        self.weights, self.df, self.loc, self.scale = self.predicted

    def predict_mean(self, x):
        """Mean at ``x``: the members', weighed for the next row."""
        cdef const double[:, ::1] values = self.reader.values(x)
        cdef Py_ssize_t k
        cdef double mean = 0.0
        self._open()
        self._look_ahead()
        for k in range(self.weights.shape[0]):
            if self.weights[k] > 0.0:
                mean -= self.weights[k] * self._predict(k, values)
        return mean

    def learn(self, x, double y, double weight=1.0):
        """Learn the row ``x``, target ``y``; False, and nothing happens, where it must be learned in another way."""
        _check_weight(weight)
        cdef const double[:, ::1] values = self.reader.values(x)
        cdef double most = fmax(sqrt(weight), 1.0), evidence
        cdef Py_ssize_t k
        # Whatever can't be learned is refused by the other way, which says why.
        if values.shape[1] + self.intercept != self.shape.p:
            raise ValueError(f"x has {values.shape[1]} features: that is not what the members learn")
        if not _are_within(values, y, LARGEST / most) or not self._prepare(weight) or self.closed:
            return False
        for k in range(len(self.members)):
            if not self._try_member(k, values, y, weight):
                return False
        self._score(y, weight)
        evidence = self._average()
        if not isfinite(evidence):
            return False
        self._take(values, weight, evidence)
        return True

    def told(self):
        """Weights, degrees of freedom, means and scales (4, k) that the row learned last was predicted by."""
        return self.predicted.copy()

    def tabulate(self, x):
        """The same of the mean at ``x``; None where little is known."""
        cdef const double[:, ::1] values = self.reader.values(x)
        cdef FadingMember member
        cdef double[:, ::1] table
        cdef Py_ssize_t k
        self._open()
        for member in self.members:
            if member.behind is not None and not member.behind.ready:
                return None
        self._look_ahead()
        predicted = np.stack([self.weights, self.df, self.loc, self.scale])
        table = predicted
        for k in range(self.weights.shape[0]):
            member = self.members[k]
            table[2, k] = 0.0 - self._predict(k, values)
            table[3, k] *= sqrt(member.leverage)
        return predicted if np.isfinite(predicted[3]).all() else None

    cdef int _look_ahead(self) except -1:
        """Compute the weights of the next row, and what the scale of its noise is."""
        cdef FadingMember member
        cdef Py_ssize_t k
        for k in range(self.densities.shape[0]):
            self._predict_origin(k)
        self._score(0.0, 0.0)
        self._average()
        for k in range(self.densities.shape[0]):
            member = self.members[k]
            self.scale[k] /= sqrt(1.0 + member.leverage)
        return 0

    cdef int _open(self) except -1:
        """Open members that have learned all rows."""
        cdef FadingMember member
        cdef bint keeps_up = self.members is not None
        for member in self.members or ():
            keeps_up = keeps_up and (member.behind is None or member.behind.keeps_up(member))
        if not keeps_up:
            self.members = self.open_members()
            for member in self.members:
                if member.triangle.shape[0] != self.shape.q or member.triangle.shape[1] != self.shape.ld:
                    raise ValueError("a member's triangle is not that of so many features")
        return 0

    cdef bint _prepare(self, double weight) except -1:
        """Return True if all members can learn a row; all calls of Python come before one does."""
        cdef FadingMember member
        self._open()
        for member in self.members:
            if member.behind is not None:
                if not member.behind.ready:
                    self._hand_over()
                    return False
                member.behind.prepare(weight)
        return True

    cdef int _hand_over(self) except -1:
        """Let the other way, which learns the row, have the nodes that were chosen."""
        cdef FadingMember member
        for member in self.members:
            if member.behind is not None:
                member.behind.known.stream = member.behind.stream
        return 0

    cdef bint _try_member(self, Py_ssize_t k, const double[:, ::1] values, double y, double weight) except -1:
        cdef FadingMember member = self.members[k]
        cdef pk_rows row
        row.X, row.Y, row.weights, row.held = &values[0, 0] if values.shape[1] else NULL, &y, &weight, NULL
        row.n, row.columns, row.x_stride, row.x_step = 1, values.shape[1], values.shape[1], 1
        row.intercept = self.intercept
        if not member.try_row(&row, self.buffer, self.flight, self.shape):
            return False
        self.loc[k], self.scale[k] = y - member.error, sqrt((1.0 + member.leverage) / self.precision)
        return True

    cdef int _predict_origin(self, Py_ssize_t k) except -1:
        """Return a member's prediction of a row at the origin, for its scale."""
        cdef FadingMember member = self.members[k]
        cdef Py_ssize_t i
        for i in range(self.shape.ld):
            self.row[i] = 0.0
        if self.intercept:
            self.row[0] = 1.0
        member.leverage = pk_predict_row(&member.triangle[0, 0], &self.row[0], self.shape)
        self.loc[k], self.scale[k] = 0.0, sqrt((1.0 + member.leverage) / self.precision)
        return 0

    cdef int _score(self, double y, double weight) except -1:
        """Compute log densities and ranks of the members' predictions, which the noises learn, in lanes."""
        if self.noises is not None:
            self.noises.load()
        pk_score_members(&self.known if self.noises is None else &self.noises.noises, self.densities.shape[0], 1, &y, &weight,
                         &self.loc[0], &self.scale[0], &self.df[0], &self.densities[0], &self.ranks[0])
        return 0

    cdef double _predict(self, Py_ssize_t k, const double[:, ::1] values) noexcept:
        """Return minus the mean of a member, whose leverage is kept."""
        cdef FadingMember member = self.members[k]
        cdef Py_ssize_t i
        for i in range(self.shape.p, self.shape.ld):
            self.row[i] = 0.0
        self.row[0] = 1.0  # overwritten when there is no intercept
        for i in range(values.shape[1]):
            self.row[self.intercept + i] = values[0, i]
        member.leverage = pk_predict_row(&member.triangle[0, 0], &self.row[0], self.shape)
        return self.row[self.shape.p]

    cdef int _take(self, const double[:, ::1] values, double weight, double evidence) except -1:
        cdef FadingMember member
        cdef bint turned = False
        for member in self.members:
            member.take(values, weight, self.shape)
            turned = turned or (member.behind is not None and member.behind.turns)
        if self.noises is not None:
            self.noises.take()
        self._keep(evidence)
        if turned:
            self.members = None
        return 0


include "_runs.pxi"
