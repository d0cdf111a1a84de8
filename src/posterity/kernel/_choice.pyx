# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Checked binding of posterity_choice.h and posterity_local.h: prior precisions from the triangle of few columns."""

import numpy as np

cimport numpy as cnp

cnp.import_array()

cdef extern from "posterity_choice.h" nogil:
    enum:
        PK_MOST_COLUMNS
        PK_MOST_NODES
    ctypedef struct pk_evidence:
        Py_ssize_t m, offset, ld
        const double *triangle
        const double *mean
        double count, residual, residual_df, log_information, known_precision, shape, rate
        Py_ssize_t points
        const double *grid
        const double *log_hyperprior
        double *ratio
        double *weight
        double *share
        double *average
        Py_ssize_t most, of_observations
        double tolerance
    ctypedef struct pk_choice:
        Py_ssize_t nodes
        double ratios[PK_MOST_NODES]
        double weights[PK_MOST_NODES]
        double scales[PK_MOST_COLUMNS]
        double log_evidence, disagreement, n_parameters
    int pk_integrate_ratios(const pk_evidence *e, Py_ssize_t r, const double *squares, const double *q, pk_choice *out)
    int pk_choose_ratios(pk_evidence *e, pk_choice *out)

cdef extern from "posterity_local.h" nogil:
    enum:
        PK_MOST_SCALES
        PK_MOST_POINTS
        PK_PARTS
        PK_BEFORE
    ctypedef struct pk_scales:
        Py_ssize_t m, rows, terms
        const Py_ssize_t *ends
        const double *matrix
        const double *target
        double rest, shape, known, least, smallest, least_share, above
        Py_ssize_t longest, sweeps
        double tolerance, alike, apart
        const double *shares
        const double *hyperprior
        const double *local
        double base
    ctypedef struct pk_precisions:
        double precisions[PK_MOST_SCALES]
        double nodes[PK_PARTS][PK_MOST_SCALES]
        double energy, log_determinant, log_gain, disagreement, n_parameters
    void pk_find_precisions(pk_scales *e, pk_precisions *out)
    ctypedef struct pk_hyperprior:
        double weak[2]
        double unshown, most_unshown, first_rows, exponent
    ctypedef struct pk_told_rows:
        const double *T
        const double *mean
        Py_ssize_t ld, offset
        double count
    int pk_choose_scales(const pk_told_rows *t, const pk_hyperprior *h, double shape, double rate, pk_scales *e, double *room, double *squares, pk_precisions *out)

MOST_COLUMNS, MOST_SCALES, MOST_NODES = PK_MOST_COLUMNS, PK_MOST_SCALES, PK_MOST_NODES


cdef class _Grid:
    """What is asked of the evidence: noise, grid and nodes; and room for so many directions."""

    cdef pk_evidence asked
    cdef const double[::1] places, hyperprior
    cdef double[::1] room

    def __cinit__(self, Py_ssize_t directions, double count, noise, grid, Py_ssize_t most, double tolerance, bint of_observations):
        self.places, self.hyperprior = grid
        cdef Py_ssize_t points = self.places.shape[0]
        if most < 1 or most > PK_MOST_NODES:
            raise ValueError(f"{directions} columns and {most} nodes: at most {MOST_NODES} nodes")
        if self.hyperprior.shape[0] != points or points < 1:
            raise ValueError("the grid has no points, or no weight for each")
        self.room = np.empty(points * (directions + 2) + directions)
        self.asked.count = count
        self.asked.known_precision, self.asked.shape, self.asked.rate = noise
        self.asked.points, self.asked.grid, self.asked.log_hyperprior = points, &self.places[0], &self.hyperprior[0]
        self.asked.ratio, self.asked.weight, self.asked.share = &self.room[0], &self.room[points], &self.room[2 * points]
        self.asked.average = self.asked.share + points * directions
        self.asked.most, self.asked.of_observations, self.asked.tolerance = most, of_observations, tolerance


def integrate_ratios(const double[::1] squares, const double[::1] projections, double residual, double residual_df,
                     double log_information, double count, *asked):
    """Ratios and weights (K,), log evidence, disagreement and number of parameters, by a Spectrum's squares (r,) and
    projections (r,); None where noise is found to be none. ``asked`` as of ``choose_ratios``, from ``noise`` on.
    """
    cdef Py_ssize_t r = squares.shape[0], k
    cdef _Grid grid = _Grid(r, count, *asked)
    cdef pk_choice outputs
    if projections.shape[0] != r or not count > 0.0:
        raise ValueError(f"{projections.shape[0]} projections of {r} directions, and rows that weigh {count}")
    grid.asked.residual, grid.asked.residual_df, grid.asked.log_information = residual, residual_df, log_information
    with nogil:
        k = pk_integrate_ratios(&grid.asked, r, &squares[0] if r else NULL, &projections[0] if r else NULL, &outputs)
    return _read_nodes(&outputs) if k else None


cdef tuple _read_nodes(pk_choice *outputs):
    ratios = np.asarray(<double[:outputs.nodes]> outputs.ratios).copy()
    weights = np.asarray(<double[:outputs.nodes]> outputs.weights).copy()
    return ratios, weights, outputs.log_evidence, outputs.disagreement, outputs.n_parameters


def choose_ratios(const double[:, :] triangle, double count, bint intercept, const double[::1] mean, noise, grid,
                  Py_ssize_t most, double tolerance, bint of_observations):
    """Ratios and weights (K,), log evidence, disagreement, number of parameters, and mean squares (m,) of the features,
    of data in a triangle (q, >= q) with one target; None where it is not plain.

    ``noise``: known precision (0: learned), shape and rate; ``grid``: (g,) logs of ratio over signal, and of the
    hyperprior.
    """
    cdef pk_choice outputs
    cdef Py_ssize_t m = mean.shape[0], k
    if m < 1 or m > PK_MOST_COLUMNS:
        raise ValueError(f"{m} columns: from 1 to {MOST_COLUMNS}")
    if triangle.shape[0] != m + intercept + 1 or triangle.shape[1] < triangle.shape[0] or triangle.strides[1] != 8:
        raise ValueError("the triangle is not that of so many columns")
    cdef _Grid on = _Grid(m, count, noise, grid, most, tolerance, of_observations)
    on.asked.m, on.asked.offset, on.asked.ld = m, intercept, triangle.strides[0] // 8
    on.asked.triangle, on.asked.mean = &triangle[0, 0], &mean[0]
    with nogil:
        k = pk_choose_ratios(&on.asked, &outputs)
    if not k:
        return None
    scales = np.asarray(<double[:m]> outputs.scales).copy()
    return *_read_nodes(&outputs), scales


def find_local_precisions(const double[:, ::1] matrix, const double[::1] target, const Py_ssize_t[::1] ends, noise,
                          const double[::1] shares, const double[:, ::1] hyperprior, const double[::1] local, alike,
                          lattice, ending):
    """Precisions (m,) and those of the nodes (k, m); energy, log determinant, gain in log evidence, disagreement and
    number of parameters, of standardised rows (r, m) with a target.

    ``ends``: where each term of neighbouring columns ends; ``noise``: 2 b_n without coefficients, a_n, the known
    precision (0: learned) and the smallest 2 b_n; ``hyperprior`` (2, g) and ``local`` (g + 5,) are on the lattice,
    whose first log and end above the largest effect are ``lattice``; ``alike``: log probabilities that a term's columns
    have one scale, or each its own; ``ending``: sweeps, tolerance, the smallest precision relative to a column, and the least information relative to
    the best told one.
    """
    cdef pk_scales asked
    cdef pk_precisions outputs
    cdef Py_ssize_t m = matrix.shape[1], rows = matrix.shape[0], points = hyperprior.shape[1]
    if m < 1 or m > PK_MOST_SCALES or rows < 1 or target.shape[0] != rows:
        raise ValueError(f"{rows} rows of {m} columns: from 1 to {MOST_SCALES} columns, and a target for each row")
    if hyperprior.shape[0] != 2 or points < 1 or points > PK_MOST_POINTS or local.shape[0] != points + PK_BEFORE:
        raise ValueError(f"a lattice of {points} points: from 1 to {PK_MOST_POINTS}, with a prior for each")
    cdef Py_ssize_t i, k, end = 0, rising = ends.shape[0] > 0
    for i in range(ends.shape[0]):
        rising, end = rising and ends[i] > end, ends[i]
    if not rising or end != m:
        raise ValueError(f"terms end at {np.asarray(ends).tolist()}: they rise from 1 to {m}")
    if shares.shape[0] != PK_PARTS:
        raise ValueError(f"{shares.shape[0]} nodes: there are {PK_PARTS}")
    asked.m, asked.rows, asked.matrix, asked.target = m, rows, &matrix[0, 0], &target[0]
    asked.rest, asked.shape, asked.known, asked.least = noise
    asked.terms, asked.ends = ends.shape[0], &ends[0]
    asked.alike, asked.apart = alike
    asked.base, asked.above = lattice
    asked.sweeps, asked.tolerance, asked.smallest, asked.least_share = ending
    asked.longest, asked.shares, asked.hyperprior, asked.local = points, &shares[0], &hyperprior[0, 0], &local[0]
    with nogil:
        pk_find_precisions(&asked, &outputs)
    return _read_precisions(m, &outputs)


cdef tuple _read_precisions(Py_ssize_t m, const pk_precisions *outputs):
    cdef double[::1] to = np.empty(m)
    cdef double[:, ::1] each = np.empty((PK_PARTS, m))
    cdef Py_ssize_t i, k
    for i in range(m):
        to[i] = outputs.precisions[i]
        for k in range(PK_PARTS):
            each[k, i] = outputs.nodes[k][i]
    return (np.asarray(to), np.asarray(each), outputs.energy, outputs.log_determinant, outputs.log_gain,
            outputs.disagreement, outputs.n_parameters)


def choose_scales(const double[:, ::1] triangle, double count, bint intercept, const double[::1] mean, noise,
                  const double[::1] shares, local, alike, hyperprior, lattice, ending):
    """What ``find_local_precisions`` finds of data in a triangle (q, >= q) with one target, where each feature is a term.

    And the mean squares (m,) of the features, what there is of 2 b_n without coefficients, and of the target's square;
    None where the case is not plain. ``noise``: known precision (0: learned), shape and rate; ``hyperprior``: where
    signals are weak (2,), what few rows can't show, at most, and of first rows, and the exponent; ``lattice``: its
    points, and the end above the largest effect; ``ending``: sweeps, tolerance, the smallest precision relative to a
    column, the least information relative to the best told one, and the smallest 2 b_n relative to the target's square.
    """
    cdef pk_scales asked
    cdef pk_precisions outputs
    cdef pk_told_rows told
    cdef pk_hyperprior prior
    cdef Py_ssize_t m = mean.shape[0]
    cdef const double[::1] density = local
    cdef double shape, rate
    cdef int plain
    if not 2 <= m <= PK_MOST_SCALES:
        raise ValueError(f"{m} columns: from 2 to {MOST_SCALES}")
    if triangle.shape[0] != m + intercept + 1 or triangle.shape[1] < triangle.shape[0]:
        raise ValueError("the triangle is not that of so many columns")
    asked.known, shape, rate = noise
    (prior.weak[0], prior.weak[1]), prior.unshown, prior.most_unshown, prior.first_rows, prior.exponent = hyperprior
    asked.alike, asked.apart = alike
    asked.longest, asked.above = lattice
    if not 1 <= asked.longest <= PK_MOST_POINTS or density.shape[0] != asked.longest + PK_BEFORE or shares.shape[0] != PK_PARTS:
        raise ValueError(f"a lattice of {asked.longest} points, and {shares.shape[0]} nodes: from 1 to {PK_MOST_POINTS}, and {PK_PARTS}")
    asked.sweeps, asked.tolerance, asked.smallest, asked.least_share, asked.least = ending
    cdef Py_ssize_t[::1] ends = np.arange(1, m + 1)
    cdef double[::1] room = np.empty(m * m + m + 2 * asked.longest), squares = np.empty(m)
    told.T, told.mean, told.ld, told.offset, told.count = &triangle[0, 0], &mean[0], triangle.shape[1], intercept, count
    asked.m, asked.terms, asked.ends, asked.shares, asked.local = m, m, &ends[0], &shares[0], &density[0]
    cdef double least = asked.least
    with nogil:
        plain = pk_choose_scales(&told, &prior, shape, rate, &asked, &room[0], &squares[0], &outputs)
    if not plain:
        return None
    return _read_precisions(m, &outputs), np.asarray(squares), asked.rest, asked.least / least
