"""Contrasts between classes with all of their covariance: one factor over (K - 1) p coefficients.

Laplace's method: each row is K - 1 rows of the factor, root(A) (I (x) x'), where A is minus the
second derivative of its log likelihood at the mode (Bishop 2006, section 4.3.4).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from posterity.factor import Factor
from posterity.posteriors import _softmax_likelihood as softmax
from posterity.posteriors import _softmax_sites as sites
from posterity.posteriors._softmax_prior import VAGUE_PRECISION, ContrastPrior, learned_scale

Array = NDArray[np.float64]

# Relative to its weight, the least a row says of a direction; without it the pseudo-target of a
# row that was certain of the wrong class is infinite. The mode is not moved by it.
LEAST_CURVATURE = 1e-10
# Where nothing at all is known of a direction, probabilities are as if its sd were this.
VAGUE_ROOT = 1e-2
SEPARATED = (
    "the classes are separated, and without a proper prior no coefficients are most probable: what "
    "is reported is where the search stopped; give a prior_precision above 0"
)
NOT_REACHED = (
    "the mode was not reached: what is reported is where the search stopped; bring the features to "
    "like units, or give a larger prior_precision"
)
BLOCK_NUMBERS = 4_000_000
CONVERGED = 1e-22
# Averages over what is open: rounds of width and mean in turns, points for all rows together, and
# how near the mean is to its place, in nats.
ROUNDS, MOST_POINTS, CLOSE = 3, 3_000, 1e-7
LOG_2PI = float(np.log(2.0 * np.pi))


class FullContrasts:
    """See the module; K classes, p columns.

    Examples
    --------
    >>> known = FullContrasts(3, 2)
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
        self.data = Factor((n_classes - 1) * n_columns)
        self.constant = 0.0
        self._joined: tuple[Array, Factor] | None = None

    def copy(self) -> FullContrasts:
        """The same knowledge, to go its own way."""
        twin = FullContrasts(self.n_classes, self.n_columns)
        twin.data.become(self.data)
        twin.constant = self.constant
        if self._joined is not None:
            twin._joined = self._joined[0], self._joined[1].copy()
        return twin

    def add_class(self) -> None:
        """Make room for one class more; of its intercept little is believed."""
        p, old = self.n_columns, self.data
        self.n_classes += 1
        self.data, self._joined = Factor(old.n_coefficients + p), None
        rows = np.zeros((old.n_coefficients + 1, self.data.n_coefficients))
        rows[:-1, : old.n_coefficients] = old.root
        rows[-1, old.n_coefficients] = np.sqrt(VAGUE_PRECISION)
        self.data.append(rows, np.vstack([old.moments, np.zeros((1, 1))]))
        # What was left of the residual belongs to the rows before.
        self.constant -= 0.5 * float(old.residual()[0, 0])

    def rule_out(self, center: Array, weight: float, prior: ContrastPrior) -> None:
        """Learn that so many rows, at their ``center`` (p,), were not of the last class."""
        means, covariances = self.contrasts(center[None], prior)
        precision, target, constant = softmax.site_of_absence(
            weight, means[0], float(covariances[0, -1, -1])
        )
        row = np.zeros((1, self.data.n_coefficients))
        row[0, -self.n_columns :] = center
        self.data.append(row, np.array([[target]]), np.array([precision]))
        self.constant += constant
        self._joined = None

    def turn(self, rotation: Array) -> None:
        """Let the contrasts V become ``rotation`` V."""
        turned = Factor(self.data.n_coefficients)
        whole = self.data.root @ np.kron(rotation.T, np.eye(self.n_columns))
        turned.append(whole, self.data.moments.copy())
        self.constant -= 0.5 * float(self.data.residual()[0, 0])
        self.data, self._joined = turned, None

    def merge(self, other: FullContrasts) -> None:
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
        """Learn the first rows: Newton's method to the mode, or by averages around it."""
        start = np.zeros(self.data.n_coefficients)
        if self.data.count > 0.0:
            # The last mode; what the sites say of another prior may be far beyond both.
            last = self.joined(prior) if self._joined is None else self._joined[1]
            start = last.coefficients()[:, 0]
        fresh = FullContrasts(self.n_classes, self.n_columns)
        known = fresh.joined(prior)
        around, converged = fresh._around(rows, known, start, averaged=averaged)
        if not converged:
            # Of the intercept nothing need be believed: each class that is fitted has rows.
            flat = not np.diag(prior.root)[int(prior.intercept) :].all()
            warnings.warn(SEPARATED if flat else NOT_REACHED, stacklevel=6)
        fresh._append_sites(rows, around)
        self.data, self.constant, self._joined = fresh.data, fresh.constant, fresh._joined

    def append(self, rows: softmax.Rows, prior: ContrastPrior, *, averaged: bool) -> bool:
        """Learn rows at the mode of what is known and of them, or by averages around it."""
        reached = True
        if len(rows.X) == 1:
            means, covariances = self.contrasts(rows.X, prior)
            weight = float(rows.weights[0])
            believed = weight, means[0], covariances[0]
            around = sites.around_one(rows.labels, *believed, averaged=averaged)
        else:
            known = self.joined(prior)
            start = known.coefficients()[:, 0]
            around, reached = self._around(rows, known, start, averaged=averaged)
        self._append_sites(rows, around)
        return reached

    def _around(
        self, rows: softmax.Rows, known: Factor, start: Array, *, averaged: bool
    ) -> tuple[sites.Around, bool]:
        """Where rows that come together are looked at, and whether their mode was reached."""
        p, moved = self.n_columns, None
        mode, converged = _climb(start, _objective(rows, known, None))
        if not converged and start.any():
            # Far off, where nearly all labels are sure, a step leads anywhere.
            mode, converged = _climb(np.zeros_like(start), _objective(rows, known, None))
        n_points = max(1, MOST_POINTS // len(rows.X))
        for _ in range(ROUNDS if averaged and converged else 0):
            hessian = _objective(rows, known, moved)(mode, True)[2]
            moved = sites.points_about(_open(rows, hessian, p), n_points)
            mode, _ = _climb(mode, _objective(rows, known, moved), CLOSE)
        return sites.Around(rows.X @ mode.reshape(-1, p).T, moved), converged

    def _append_sites(self, rows: softmax.Rows, around: sites.Around) -> None:
        """Append what ``rows`` say at their contrasts (n, K - 1), as Gaussian rows."""
        k = self.n_classes - 1
        data, joined = self.data.copy(), self._joined
        block = max(1, BLOCK_NUMBERS // (k * data.n_coefficients))
        constant = self.constant
        for start in range(0, len(rows.X), block):
            part = slice(start, start + block)
            x, y, added = _sites(rows.of(part), around.of(part))
            data.append(x, y)
            if joined is not None:
                joined[1].append(x, y)
            constant += added
        self.data, self.constant = data, constant

    # ---- reading -------------------------------------------------------------------------------

    def joined(self, prior: ContrastPrior) -> Factor:
        """The factor of prior and data."""
        if self._joined is None or self._joined[0] is not prior.root:
            rows: Array = np.kron(np.eye(self.n_classes - 1), prior.root).astype(np.float64)
            joined = self.data.copy()
            joined.append(rows, np.zeros((len(rows), 1)))
            self._joined = prior.root, joined
        return self._joined[1]

    def mean(self, prior: ContrastPrior) -> Array:
        """(K - 1, p) mean."""
        return self.joined(prior).coefficients()[:, 0].reshape(-1, self.n_columns)

    def contrasts(self, X: Array, prior: ContrastPrior) -> tuple[Array, Array]:
        """Means (n, K - 1) and covariances (n, K - 1, K - 1) at the rows of ``X``."""
        n, k, p = len(X), self.n_classes - 1, self.n_columns
        covariances = np.empty((n, k, k))
        root = self.joined(prior).root.copy()
        open_ = np.flatnonzero(np.diag(root) == 0.0)
        root[open_, open_] = VAGUE_ROOT
        if n == 1:
            row = np.kron(np.eye(k), X)
            whitened = solve_triangular(root, row.T, trans="T", check_finite=False)
            covariances[0] = whitened.T @ whitened
            return X @ self.mean(prior).T, covariances
        inverse = solve_triangular(root, np.eye(k * p), check_finite=False).reshape(k, p, k * p)
        block = max(1, BLOCK_NUMBERS // (k * k * p))
        for start in range(0, n, block):
            part = slice(start, start + block)
            whitened = np.tensordot(X[part], inverse, axes=(1, 1))
            covariances[part] = whitened @ whitened.transpose(0, 2, 1)
        return X @ self.mean(prior).T, covariances

    def scale(self, prior: ContrastPrior) -> float:
        """The prior's scale that the evidence chooses."""
        k, p, offset = self.n_classes - 1, self.n_columns, int(prior.intercept)
        columns = np.arange(k * p).reshape(k, p)
        order = np.concatenate([columns[:, :offset].ravel(), columns[:, offset:].ravel()])
        turned = Factor(k * p)
        turned.append(np.ascontiguousarray(self.data.root[:, order]), self.data.moments.copy())
        inner = slice(k * offset, k * p)
        shape = np.tile(prior.shape()[offset:], k)
        return learned_scale(turned.root[inner, inner], turned.moments[inner], shape)

    def log_evidence(self, prior: ContrastPrior) -> float:
        """Laplace's; a flat direction has density 1."""
        joined, k = self.joined(prior), self.n_classes - 1
        diagonal = np.abs(np.diag(np.linalg.qr(prior.root, mode="r")))
        proper = diagonal[diagonal > 0.0]
        n_flat = joined.rank - k * len(proper)
        determinants = 2.0 * k * float(np.sum(np.log(proper))) - joined.log_determinant()
        value = self.constant + 0.5 * (determinants + n_flat * LOG_2PI)
        return value - 0.5 * float(joined.residual()[0, 0])


def _sites(rows: softmax.Rows, around: sites.Around) -> tuple[Array, Array, float]:
    """Rows (n (K - 1), (K - 1) p), targets, and the log of the constants that go with them."""
    n, k = around.contrast.shape
    told, slope, curvature = softmax.averages(rows.labels, around.contrast, around.moved)
    curvature = curvature + LEAST_CURVATURE * np.eye(k)
    lower = np.linalg.cholesky(curvature)
    ahead = np.linalg.solve(lower, slope[:, :, None])
    upper = lower.transpose(0, 2, 1)
    weight = np.sqrt(rows.weights)[:, None]
    targets = weight * (np.einsum("nba,na->nb", upper, around.contrast) + ahead[:, :, 0])
    x = np.einsum("nba,nc->nbac", weight[:, :, None] * upper, rows.X, optimize=True)
    told = told + 0.5 * np.sum(np.square(ahead), axis=(1, 2))
    if around.moved is not None:
        # What the site says on average over the points, too.
        bent = np.einsum("nsb,nab->nsa", around.moved, upper, optimize=True)
        told = told + 0.5 * np.sum(np.square(bent), axis=(1, 2)) / around.moved.shape[1]
    return x.reshape(n * k, -1), targets.reshape(n * k, 1), float(rows.weights @ told)


Objective = Callable[[Array, bool], tuple[float, Array, Array | None]]


def _objective(rows: softmax.Rows, known: Factor, moved: Array | None) -> Objective:
    """Log posterior, its gradient and minus its Hessian, at coefficients ((K - 1) p,).

    Averaged over the points ``moved`` about each row's contrasts, where there are any.
    """
    root, moments = known.root, known.moments[:, 0]
    p = rows.X.shape[1]

    def evaluate(w: Array, curved: bool) -> tuple[float, Array, Array | None]:
        contrast = rows.X @ w.reshape(-1, p).T
        left = moments - root @ w
        if not curved:
            told = softmax.log_likelihood(rows.labels, contrast, moved)
            return float(rows.weights @ told - 0.5 * left @ left), left, None
        told, slope, curvature = softmax.averages(rows.labels, contrast, moved)
        value = float(rows.weights @ told - 0.5 * left @ left)
        gradient = ((rows.weights[:, None] * slope).T @ rows.X).ravel() + root.T @ left
        curvature *= rows.weights[:, None, None]
        k = curvature.shape[1]
        hessian = root.T @ root
        for a in range(k):
            for b in range(a + 1):
                block = rows.X.T @ (curvature[:, a, b, None] * rows.X)
                hessian[a * p : (a + 1) * p, b * p : (b + 1) * p] += block
                if a != b:
                    hessian[b * p : (b + 1) * p, a * p : (a + 1) * p] += block.T
        return value, gradient, hessian

    return evaluate


def _open(rows: softmax.Rows, hessian: Array | None, p: int) -> Array:
    """(n, K - 1, K - 1) covariances of the rows' contrasts, of the coefficients' precision."""
    assert hessian is not None
    size = np.sqrt(np.diag(hessian)) + 1e-150
    scaled = hessian / size[:, None] / size
    scaled[np.diag_indices_from(scaled)] += 1e-12
    half = solve_triangular(np.linalg.cholesky(scaled), np.diag(1.0 / size), lower=True)
    shaped = half.reshape(len(half), -1, p)
    whitened = np.tensordot(rows.X, shaped, axes=(1, 2)).transpose(0, 2, 1)
    covariances: Array = whitened @ whitened.transpose(0, 2, 1)
    return covariances


def _climb(w: Array, objective: Objective, close: float = CONVERGED) -> tuple[Array, bool]:
    """Newton's method with halved steps; returns the mode and whether it was reached."""
    value = objective(w, False)[0]
    for _ in range(100):
        _, gradient, hessian = objective(w, True)
        assert hessian is not None
        # Directions of which nothing is known get a step of 0.
        hessian[np.diag_indices_from(hessian)] += 1e-14 * np.diag(hessian) + 1e-300
        try:
            step = cho_solve(cho_factor(hessian, check_finite=False), gradient)
        except np.linalg.LinAlgError:
            step = np.linalg.lstsq(hessian, gradient, rcond=None)[0]
        decrement, size = float(gradient @ step), 1.0
        least = value - 1e-13 * (1.0 + abs(value))  # less is rounding
        while (new := objective(w + size * step, False)[0]) < least and size > 1e-10:
            size *= 0.5
        if new < least:
            return w, decrement < 1e-8 + 1e-13 * abs(value)
        w, value = w + size * step, max(new, value)
        if decrement <= close * (1.0 + abs(value)):
            # Where classes are separated the way ahead is long, however little is gained.
            return w, bool(np.abs(step).max() <= 1e-3 * (1.0 + np.abs(w).max()))
        if np.abs(w).max() > 1e8:
            break
    return w, False
