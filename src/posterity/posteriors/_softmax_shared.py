"""Contrasts between many classes that share one factor.

A label's curvature in the contrasts, H' (diag(p) - p p') H, is taken for a multiple of the identity
with the same trace. So all K - 1 contrasts have the same rows, and one triangle of p columns with
K - 1 targets does: O(p^2 + p K) a row instead of O(K^3 p^2). The mode is exact, whatever the
curvature. The information is right on average over the contrasts: intervals of classes that are
rarer than others are too narrow, of commoner ones too wide. The way to the mode is Newton's, each
step by conjugate gradients, preconditioned by a bound of the curvature, 1/2 the identity (Boehning
1992, "Multinomial logistic regression algorithm").
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from posterity.factor import Factor
from posterity.posteriors import _softmax_likelihood as softmax
from posterity.posteriors import _softmax_sites as sites
from posterity.posteriors._softmax_prior import ContrastPrior, learned_scale

Array = NDArray[np.float64]

BOUND = 0.5
# Least precision of a row, and as a share of its slope: its target is then not infinitely far.
LEAST_CURVATURE, LEAST_SHARE = 1e-10, 1e-4
VAGUE_ROOT = 1e-2
NOT_REACHED = (
    "the mode was not reached: the classes may be separated; give a prior_precision above 0"
)
LOG_2PI = float(np.log(2.0 * np.pi))


class SharedContrasts:
    """See the module; K classes, p columns.

    Examples
    --------
    >>> known = SharedContrasts(3, 2)
    >>> prior = ContrastPrior.of(np.eye(1), intercept=True)
    >>> rows = softmax.Rows(np.array([[1.0, 0.5]]), np.array([2]), np.ones(1))
    >>> known.append(rows, prior, averaged=False)
    True
    >>> known.mean(prior).round(2)[1]
    array([3.45, 0.02])
    """

    def __init__(self, n_classes: int, n_columns: int) -> None:
        self.n_classes = n_classes
        self.n_columns = n_columns
        self.data = Factor(n_columns, n_classes - 1)
        self.constant = 0.0
        self._joined: tuple[Array, Factor] | None = None

    def copy(self) -> SharedContrasts:
        """The same knowledge, to go its own way."""
        twin = SharedContrasts(self.n_classes, self.n_columns)
        twin.data.become(self.data)
        twin.constant = self.constant
        if self._joined is not None:
            twin._joined = self._joined[0], self._joined[1].copy()
        return twin

    def add_class(self) -> None:
        """Refuse: the rows before would speak of it."""
        raise ValueError(
            f"y has a class that came late: with {self.n_classes} classes and {self.n_columns} "
            "columns the classes share one factor, which can't grow; name all classes in the first "
            "call, as in partial_fit(X, y, classes=...)"
        )

    def rule_out(self, center: Array, weight: float, prior: ContrastPrior) -> None:
        """Refuse, as :meth:`add_class`."""
        self.add_class()

    def turn(self, rotation: Array) -> None:
        """Let the contrasts V become ``rotation`` V."""
        turned = Factor(self.n_columns, self.n_classes - 1)
        turned.append(self.data.root.copy(), self.data.moments @ rotation.T)
        self.constant -= 0.5 * float(np.trace(self.data.residual()))
        self.data, self._joined = turned, None

    def merge(self, other: SharedContrasts) -> None:
        """Learn all that ``other`` has learned."""
        self.data.merge(other.data)
        self.constant += other.constant
        self._joined = None

    def fade(self, discount: float) -> None:
        """Let all that the data said count for less."""
        self.data.scale(discount)
        self.constant *= discount
        self._joined = None

    # ---- learning ------------------------------------------------------------------------------

    def fit(self, rows: softmax.Rows, prior: ContrastPrior, *, averaged: bool) -> None:
        """Learn the first rows at their mode."""
        start = np.zeros((self.n_classes - 1, self.n_columns))
        if self.data.count > 0.0:
            start = self.mean(prior)
        self.data, self.constant = Factor(self.n_columns, self.n_classes - 1), 0.0
        self._joined = None
        if not self._append(rows, prior, start):
            warnings.warn(NOT_REACHED, stacklevel=6)

    def append(self, rows: softmax.Rows, prior: ContrastPrior, *, averaged: bool) -> bool:
        """Learn rows at the mode of what is known and of them; one row by averages around it."""
        if len(rows.X) == 1:
            means, covariances = self.contrasts(rows.X, prior)
            believed = float(rows.weights[0]), means[0], covariances[0]
            around = sites.around_one(rows.labels, *believed, averaged=averaged)
            self._append_sites(rows, around)
            return True
        return self._append(rows, prior, self.mean(prior))

    def _append(self, rows: softmax.Rows, prior: ContrastPrior, start: Array) -> bool:
        mode, reached = _climb(start, rows, self.joined(prior))
        self._append_sites(rows, sites.Around(rows.X @ mode.T))
        return reached

    def _append_sites(self, rows: softmax.Rows, around: sites.Around) -> None:
        told, slope, curvature = softmax.averages(rows.labels, around.contrast, around.moved)
        size = np.sum(np.square(slope), axis=1)
        shared = np.trace(curvature, axis1=1, axis2=2) / curvature.shape[1]
        shared = np.maximum(shared, LEAST_CURVATURE + LEAST_SHARE * np.sqrt(size))
        targets = around.contrast + slope / shared[:, None]
        learned = rows.X, targets, shared * rows.weights
        self.data.append(*learned)
        if self._joined is not None:
            self._joined[1].append(*learned)
        self.constant += float(rows.weights @ (told + 0.5 * size / shared))

    # ---- reading -------------------------------------------------------------------------------

    def joined(self, prior: ContrastPrior) -> Factor:
        """The factor of prior and data."""
        if self._joined is None or self._joined[0] is not prior.root:
            joined = self.data.copy()
            joined.append(prior.root, np.zeros((self.n_columns, self.n_classes - 1)))
            self._joined = prior.root, joined
        return self._joined[1]

    def mean(self, prior: ContrastPrior) -> Array:
        """(K - 1, p) mean."""
        return self.joined(prior).coefficients().T

    def contrasts(self, X: Array, prior: ContrastPrior) -> tuple[Array, Array]:
        """Means (n, K - 1) and covariances (n, K - 1, K - 1) at the rows of ``X``."""
        joined = self.joined(prior)
        root = joined.root.copy()
        open_ = np.flatnonzero(np.diag(root) == 0.0)
        root[open_, open_] = VAGUE_ROOT
        whitened = solve_triangular(root, X.T, trans="T", check_finite=False)
        leverage = np.sum(np.square(whitened), axis=0)
        covariance = leverage[:, None, None] * np.eye(self.n_classes - 1)
        return X @ joined.coefficients(), covariance

    def scale(self, prior: ContrastPrior) -> float:
        """The prior's scale that the evidence chooses."""
        inner = slice(int(prior.intercept), None)
        shape = prior.shape()[inner]
        return learned_scale(self.data.root[inner, inner], self.data.moments[inner], shape)

    def log_evidence(self, prior: ContrastPrior) -> float:
        """Laplace's with the shared curvature; a flat direction has density 1."""
        joined, k = self.joined(prior), self.n_classes - 1
        diagonal = np.abs(np.diag(np.linalg.qr(prior.root, mode="r")))
        proper = diagonal[diagonal > 0.0]
        determinants = 2.0 * float(np.sum(np.log(proper))) - joined.log_determinant()
        value = self.constant + 0.5 * k * (determinants + (joined.rank - len(proper)) * LOG_2PI)
        return value - 0.5 * float(np.trace(joined.residual()))


def _climb(mode: Array, rows: softmax.Rows, known: Factor) -> tuple[Array, bool]:
    """Newton's method; each step by conjugate gradients, preconditioned by the bound itself.

    Returns the mode, and whether it was reached.
    """
    root, moments = known.root, known.moments.T
    bounded = Factor(known.n_coefficients)
    bounded.append(rows.X, np.zeros((len(rows.X), 1)), BOUND * rows.weights)
    bounded.append(root, np.zeros((len(root), 1)))
    triangle = bounded.root.copy()
    small = np.flatnonzero(np.diag(triangle) == 0.0)
    triangle[small, small] = 1.0

    def preconditioned(gradient: Array) -> Array:
        half = solve_triangular(triangle, gradient.T, trans="T", check_finite=False)
        return solve_triangular(triangle, half, check_finite=False).T

    def value_at(w: Array) -> float:
        told = softmax.log_likelihood(rows.labels, rows.X @ w.T)
        return float(rows.weights @ told - 0.5 * np.sum(np.square(w @ root.T - moments)))

    value = value_at(mode)
    for _ in range(200):
        told = np.exp(softmax.log_softmax(rows.X @ mode.T))
        slope = (np.eye(told.shape[1])[rows.labels] - told) @ softmax.helmert(told.shape[1])
        gradient = (rows.weights[:, None] * slope).T @ rows.X + (moments - mode @ root.T) @ root
        step = _newton_step(gradient, rows, told, root, preconditioned)
        decrement, size = float(np.sum(gradient * step)), 1.0
        least = value - 1e-13 * (1.0 + abs(value))  # less is rounding
        while (new := value_at(mode + size * step)) < least and size > 1e-10:
            size *= 0.5
        if new < least:
            return mode, True
        mode, value = mode + size * step, max(new, value)
        if decrement <= 1e-20 * (1.0 + abs(value)):
            return mode, True
        if np.abs(mode).max() > 1e8:
            break
    return mode, False


def _newton_step(
    gradient: Array, rows: softmax.Rows, probabilities: Array, root: Array, preconditioned: object
) -> Array:
    """Solve minus Hessian times step = gradient, to a part of it that shrinks with it."""
    assert callable(preconditioned)
    contrasts = softmax.helmert(probabilities.shape[1])
    weights = rows.weights[:, None]

    def product(direction: Array) -> Array:
        moved = (rows.X @ direction.T) @ contrasts.T
        moved -= np.sum(probabilities * moved, axis=1, keepdims=True)
        curved = (weights * probabilities * moved) @ contrasts
        return curved.T @ rows.X + (direction @ root.T) @ root

    step, left = np.zeros_like(gradient), gradient.copy()
    ahead = preconditioned(left)
    direction, size = ahead.copy(), float(np.sum(left * ahead))
    goal = size * min(1e-2, size) ** 2
    for _ in range(500):
        if size <= goal or size == 0.0:
            break
        moved = product(direction)
        length = size / float(np.sum(direction * moved))
        step += length * direction
        left -= length * moved
        ahead = preconditioned(left)
        new = float(np.sum(left * ahead))
        direction = ahead + new / size * direction
        size = new
    return step
