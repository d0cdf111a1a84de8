# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Checked binding of posterity_choice.h: nodes of a prior precision from the triangle of few columns."""

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
    int pk_choose(const pk_evidence *e, pk_choice *out)

MOST_COLUMNS, MOST_NODES = PK_MOST_COLUMNS, PK_MOST_NODES


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
        k = pk_choose(&asked, &outputs)
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
