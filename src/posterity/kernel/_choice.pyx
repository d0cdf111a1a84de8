# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Checked binding of posterity_choice.h and posterity_scales.h: prior precisions from the triangle of few columns."""

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
        double count, known_precision, shape, rate
        Py_ssize_t points
        const double *grid
        const double *log_hyperprior
        double *ratio
        double *weight
        double *share
        Py_ssize_t most, of_observations
        double tolerance
    ctypedef struct pk_choice:
        Py_ssize_t nodes, solved
        double ratios[PK_MOST_NODES]
        double weights[PK_MOST_NODES]
        double scales[PK_MOST_COLUMNS]
        double coefficients[PK_MOST_NODES][PK_MOST_COLUMNS + 1]
        double log_evidence, disagreement, n_parameters
    int pk_choose_ratios(const pk_evidence *e, pk_choice *out)

cdef extern from "posterity_scales.h" nogil:
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

MOST_COLUMNS, MOST_SCALES, MOST_NODES = PK_MOST_COLUMNS, PK_MOST_SCALES, PK_MOST_NODES


def choose_ratios(const double[:, :] triangle, double count, bint intercept, const double[::1] mean, noise, grid,
                  Py_ssize_t most, double tolerance, bint of_observations):
    """Ratios (K,), weights (K,), mean squares of the features (m,), coefficients (K, p) or None, log evidence,
    disagreement and number of parameters, of data in a triangle (q, >= q) with one target; None where it is not plain.

    ``noise``: known precision (0: learned), shape and rate; ``grid``: (g,) logs of ratio over signal, and of the
    hyperprior.
    """
    cdef pk_evidence asked
    cdef pk_choice outputs
    cdef Py_ssize_t m = mean.shape[0], k, j
    cdef const double[::1] places = grid[0], hyperprior = grid[1]
    cdef Py_ssize_t points = places.shape[0]
    if m < 1 or m > PK_MOST_COLUMNS or most < 1 or most > PK_MOST_NODES:
        raise ValueError(f"{m} columns and {most} nodes: from 1 to {MOST_COLUMNS} and {MOST_NODES}")
    if triangle.shape[0] != m + intercept + 1 or triangle.shape[1] < triangle.shape[0] or triangle.strides[1] != 8:
        raise ValueError("the triangle is not that of so many columns")
    if hyperprior.shape[0] != points or points < 1:
        raise ValueError("the grid has no points, or no weight for each")
    cdef double[::1] room = np.empty(points * (m + 2))
    asked.m, asked.offset, asked.ld = m, intercept, triangle.strides[0] // 8
    asked.triangle, asked.mean, asked.count = &triangle[0, 0], &mean[0], count
    asked.known_precision, asked.shape, asked.rate = noise
    asked.points, asked.grid, asked.log_hyperprior = points, &places[0], &hyperprior[0]
    asked.ratio, asked.weight, asked.share = &room[0], &room[points], &room[2 * points]
    asked.most, asked.of_observations, asked.tolerance = most, of_observations, tolerance
    with nogil:
        k = pk_choose_ratios(&asked, &outputs)
    if not k:
        return None
    k = outputs.nodes
    ratios = np.asarray(<double[:k]> outputs.ratios).copy()
    weights = np.asarray(<double[:k]> outputs.weights).copy()
    scales = np.asarray(<double[:m]> outputs.scales).copy()
    coefficients = None
    if outputs.solved:
        width = m + intercept
        coefficients = np.asarray(<double[:k, :PK_MOST_COLUMNS + 1]> &outputs.coefficients[0][0])[:, :width].copy()
    return ratios, weights, scales, coefficients, outputs.log_evidence, outputs.disagreement, outputs.n_parameters


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
    precisions, nodes = np.empty(m), np.empty((PK_PARTS, m))
    cdef double[::1] to = precisions
    cdef double[:, ::1] each = nodes
    for i in range(m):
        to[i] = outputs.precisions[i]
        for k in range(PK_PARTS):
            each[k, i] = outputs.nodes[k][i]
    return (precisions, nodes, outputs.energy, outputs.log_determinant, outputs.log_gain, outputs.disagreement,
            outputs.n_parameters)
