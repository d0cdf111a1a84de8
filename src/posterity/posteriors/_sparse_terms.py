"""Weights whose columns vary together by level: each term has one covariance matrix for all levels.

Of a term the coordinates are the logs of standard deviations, in units of the noise and of columns
of mean square 1, and then canonical partial correlations, by their inverse hyperbolic tangents
(Lewandowski, Kurowicka & Joe 2009). After those of all terms come logs of the likelihood's
parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.special import gammaln

from posterity.aliases import AnyArray, Array, Indices, Mask
from posterity.likelihoods.parameter import LogNormalParameter, Parameter
from posterity.posteriors._sparse_search import LONGEST_STEP, Step
from posterity.posteriors._sparse_sites import PriorPrecision, Sweep

# The prior of a standard deviation is a half Student-t: its degrees of freedom, and its scale in
# standard deviations of the targets, or of labels and counts in units of eta.
DEGREES, SCALE = 3.0, 2.5
# The least share of a column's squares that is left beside another one.
LEAST_LEFT = 1e-10
# Values of a parameter among which a search finds its start, and the least curvature by its log.
N_STARTS, LEAST_BEND = 101, 0.1
# Limits of coordinates, and the step of differences.
LEAST_LOG, LARGEST_LOG, LARGEST_TANGENT, DIFFERENCE = -8.0, 6.0, 4.0, 1e-4


class Term(NamedTuple):
    """Columns (k,) that vary together; the k features of each of its levels."""

    columns: tuple[int, ...]
    features: Indices  # (levels, k) among those met
    entries: Indices  # (levels, k, k) of the pattern
    unit: Array  # (k, k) from weights of columns of mean square 1: see scale_columns

    @property
    def size(self) -> int:
        """Number of coordinates."""
        k = len(self.columns)
        return k * (k + 1) // 2

    def covariance(self, at: Array) -> Array:
        """(k, k) of one level's weights, in units of the noise."""
        root = self._root(at)
        return root @ root.T

    def precision(self, at: Array) -> Array:
        """(k, k) the inverse of the covariance."""
        root = np.linalg.inv(self._root(at))
        return root.T @ root

    def precision_slopes(self, at: Array) -> Array:
        """(size, k, k) derivatives of the precision matrix."""
        found = []
        for change in np.eye(self.size) * DIFFERENCE:
            ends = [self.precision(at + sign * change) for sign in (1.0, -1.0)]
            found.append((ends[0] - ends[1]) / (2.0 * DIFFERENCE))
        return np.array(found)

    def log_prior(self, at: Array, scale: float) -> float:
        """Log density of standard deviations (half Student-t) and correlations (uniform)."""
        k = len(self.columns)
        tail = np.log1p(np.exp(2.0 * at[:k]) / (DEGREES * scale * scale))
        return float(np.sum(at[:k] - 0.5 * (DEGREES + 1.0) * tail)) + _correlate(at[k:], k)[1]

    @property
    def log_constant(self) -> float:
        """What the log prior leaves out, but for the scale of standard deviations."""
        k = len(self.columns)
        half = gammaln(0.5 * (DEGREES + 1.0)) - gammaln(0.5 * DEGREES)
        constant = k * (np.log(2.0) + half - 0.5 * np.log(DEGREES * np.pi))
        # Of partial correlations in the j-th column, (1 - c^2)^(b - 1).
        b = np.concatenate([[0.5 * (k - j)] * (k - 1 - j) for j in range(k)])
        return float(constant - np.sum(0.5 * np.log(np.pi) + gammaln(b) - gammaln(b + 0.5)))

    def _root(self, at: Array) -> Array:
        k = len(self.columns)
        return self.unit @ (np.exp(at[:k, None]) * _correlate(at[k:], k)[0])


def scale_columns(gram: Array, n: float, mean_squares: Array) -> Array:
    """(k, k) weights of columns, from those of columns of mean square 1 over n rows.

    Of all but the first what the first explains is taken off, which is their mean beside an
    intercept: the prior does not depend on where they have their zero. ``gram`` (k, k): sums of
    products of columns. What the first explains wholly stays as it is.
    """
    unit = np.diag(1.0 / np.sqrt(mean_squares))
    shares = gram[0] / (gram[0, 0] or 1.0)
    left = gram.diagonal() - shares * gram[0]
    some = left > LEAST_LEFT * gram.diagonal()  # not of the first itself
    unit[some, some] = np.sqrt(n / left[some])
    unit[0, some] = -shares[some] * unit[some, some]
    return unit


@dataclass(frozen=True)
class Terms:
    """The prior of terms, and of features (p,) beside them, whose precision is ``given``.

    ``trust`` 0: the evidence alone counts, as in restricted maximum likelihood; 1: the prior of
    standard deviations, correlations and parameters, too. ``spread``: standard deviation of the
    targets. ``parameters`` (m,): those of the likelihood that are learned.
    """

    terms: tuple[Term, ...]
    given: Array
    spread: float
    trust: float = 1.0
    parameters: tuple[Parameter | LogNormalParameter, ...] = ()

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return sum(term.size for term in self.terms) + len(self.parameters)

    @property
    def start(self) -> Array:
        """Where a search begins: parameters where they are likeliest before data."""
        grids = [np.linspace(*one.ends, N_STARTS) for one in self.parameters]
        found = [
            grid[np.argmax(one.log_density(grid))]
            for one, grid in zip(self.parameters, grids, strict=True)
        ]
        return np.append(np.zeros(self.size - len(found)), found)

    def phi(self, at: Array) -> Array:
        """(m,) logs of the likelihood's parameters."""
        return at[self.size - len(self.parameters) :]

    @property
    def uncertain(self) -> Mask:
        """(p,) none: covariances are integrated over."""
        return np.zeros(len(self.given), dtype=bool)

    def split(self, at: Array) -> list[Array]:
        """The coordinates of each term."""
        ends = np.cumsum([term.size for term in self.terms], dtype=np.intp)
        return np.split(at, ends)[:-1]

    def covariances(self, at: Array) -> list[Array]:
        """The covariance matrix of each term."""
        each = zip(self.terms, self.split(at), strict=True)
        return [term.covariance(own) for term, own in each]

    def prior(self, at: Array) -> PriorPrecision:
        """The prior precision of all features."""
        diagonal = self.given.copy()
        pairs: list[tuple[AnyArray, ...]] = [PriorPrecision.of_diagonal(diagonal[:0]).pairs]
        for term, own in zip(self.terms, self.split(at), strict=True):
            precision = term.precision(own)
            diagonal[term.features] = precision.diagonal()
            for i, j in zip(*np.tril_indices(len(precision), -1), strict=True):
                ends = term.features[:, i], term.features[:, j]
                values = np.full(len(term.features), precision[i, j])
                pairs.append((*ends, values, term.entries[:, i, j]))
        rows, columns, values, places = (np.concatenate(one) for one in zip(*pairs, strict=True))
        return PriorPrecision(diagonal, rows, columns, values, places, self.phi(at))

    def log_determinant(self, at: Array) -> float:
        """Of the prior precision, but for what does not depend on the coordinates."""
        each = zip(self.terms, self.covariances(at), strict=True)
        return -sum(len(term.features) * np.linalg.slogdet(one)[1] for term, one in each)

    def log_prior(self, at: Array, noise: float) -> float:
        """Log density of the coordinates, where the noise has this precision."""
        scale = SCALE * self.spread * np.sqrt(noise)
        each = zip(self.terms, self.split(at), strict=True)
        found = sum(term.log_prior(own, scale) for term, own in each)
        learned = zip(self.parameters, self.phi(at), strict=True)
        return self.trust * (found + sum(float(one.log_density(t)) for one, t in learned))

    @property
    def log_constant(self) -> float:
        """What the log prior leaves out: of parameters nothing."""
        scales = sum(len(term.columns) for term in self.terms) * np.log(SCALE * self.spread)
        return sum(term.log_constant for term in self.terms) - scales

    def score(self, at: Array, sweep: Sweep, noise: float) -> tuple[Array, Array]:
        """The gradient (size,) of the log posterior density, and an information (size, size).

        Fisher's, or in directions in which that is larger the average of it and of the observed one
        (Gilmour, Thompson & Cullis 1995).
        """
        gradient, bend = self._prior_slopes(at, noise)
        information = np.diag(np.maximum(-bend, 0.0) + 1e-9)
        start, pulls = 0, np.zeros((len(self.given), self.size))
        drawn = np.zeros_like(information)
        for term, own in zip(self.terms, self.split(at), strict=True):
            covariance, slopes = term.covariance(own), term.precision_slopes(own)
            mean, variances = sweep.mean[term.features], sweep.inverse[term.entries]
            known = covariance - variances  # by data
            left = known.sum(axis=0) - noise * mean.T @ mean
            some = slice(start, start + term.size)
            gradient[some] += 0.5 * np.einsum("aij,ji->a", slopes, left)
            moved = np.einsum("aij,ljk->alik", slopes, known)
            information[some, some] += 0.5 * np.einsum("alij,blji->ab", moved, moved)
            pull = np.einsum("aij,lj->lia", slopes, mean)
            drawn[some, some] = np.einsum("lia,ij,ljb->ab", pull, covariance, pull)
            pulls[term.features, some] = pull
            start += term.size
        by_phi = np.arange(start, self.size)
        slopes, bends = sweep.slopes()
        gradient[by_phi] += slopes
        information[by_phi, by_phi] += np.maximum(-bends, LEAST_BEND)
        average = 0.5 * noise * (drawn - pulls.T @ sweep.factor.solve(pulls))
        return gradient, _join_larger(information, average)

    def step(self, at: Array, sweep: Sweep, noise: float) -> Step:
        """Fisher's scoring."""
        gradient, information = self.score(at, sweep, noise)
        step = np.linalg.solve(information, gradient)
        # Shortened as a whole: cut coordinate by coordinate it may lead down.
        step *= min(1.0, LONGEST_STEP / np.abs(step).max(initial=LONGEST_STEP))
        step = self.limit(at + step) - at
        return Step(step, float(np.abs(gradient @ step)), np.sqrt(information.diagonal()))

    def limit(self, at: Array) -> Array:
        """The coordinates, where they are beyond what is allowed moved to its end."""
        parts = []
        for term, own in zip(self.terms, self.split(at), strict=True):
            k = len(term.columns)
            parts.append(np.clip(own[:k], LEAST_LOG, LARGEST_LOG))
            parts.append(np.clip(own[k:], -LARGEST_TANGENT, LARGEST_TANGENT))
        for one, t in zip(self.parameters, self.phi(at), strict=True):
            parts.append(np.clip([t], *one.ends))
        return np.concatenate([at[:0], *parts])

    def _prior_slopes(self, at: Array, noise: float) -> tuple[Array, Array]:
        """First and second derivatives of the log prior, by differences."""
        here, step = self.log_prior(at, noise), 10.0 * DIFFERENCE
        ends = np.array(
            [
                [self.log_prior(at + sign * change, noise) for sign in (1.0, -1.0)]
                for change in np.eye(len(at)) * step
            ]
        ).reshape(-1, 2)
        bend = (ends.sum(axis=1) - 2.0 * here) / step**2
        return (ends[:, 0] - ends[:, 1]) / (2.0 * step), bend


def _join_larger(one: Array, other: Array) -> Array:
    """The larger of two matrices (d, d) in each direction; the first is positive definite."""
    values, vectors = eigh(other, one)
    inverse = np.linalg.inv(vectors)
    return np.asarray(inverse.T @ (np.maximum(values, 1.0)[:, None] * inverse))


def _correlate(tangents: Array, k: int) -> tuple[Array, float]:
    """Root (k, k) of the correlation matrix, and the log density of uniform ones.

    By canonical partial correlations; the density is that of their inverse hyperbolic tangents.
    """
    root, partial, log_density = np.eye(k), np.tanh(tangents), 0.0
    places = iter(range(len(partial)))
    for i in range(1, k):
        left = 1.0
        for j in range(i):
            correlation = partial[next(places)]
            root[i, j] = correlation * np.sqrt(left)
            log_density += 0.5 * np.log(left) + np.log1p(-correlation * correlation)
            left -= root[i, j] ** 2
        root[i, i] = np.sqrt(left)
        log_density += (k - i - 1) * np.log(root[i, i])
    return root, float(log_density)


__all__ = ["Term", "Terms", "scale_columns"]
