"""Rounds in which all sites follow what is known, and that follows the sites, in NumPy."""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from posterity.factor import Factor

Array = NDArray[np.float64]

# Rounds that are remembered, and the share of its next precision that a site keeps at least.
MOST_REMEMBERED, LEAST_SHARE = 5, 0.1
# Of the largest product, what keeps those of rounds that do not differ apart.
ROUNDING = 1e-12


class Mixing:
    """Extrapolates rounds whose errors shrink slowly, or change sides (Anderson mixing).

    The differences of the last rounds tell which combination of them would have led nearest to
    where nothing changes (Walker and Ni 2011, "Anderson acceleration for fixed-point iterations").

    Examples
    --------
    >>> ones = np.ones(1)
    >>> mixing = Mixing(ones)
    >>> sites = np.array([[0.1], [0.0]])
    >>> for _ in range(3):
    ...     wanted = np.array([[2.8], [0.0]]) - 0.9 * sites
    ...     sites = mixing.extrapolate(sites, wanted, 0.0 * ones, ones)
    >>> bool(abs(sites[0, 0] - 2.8 / 1.9) < 1e-9)
    True
    """

    def __init__(self, weights: Array) -> None:
        # A row of weight w counts as w rows that are the same.
        self._shares = np.sqrt(
            np.divide(1.0, weights, out=np.zeros_like(weights), where=weights > 0.0)
        )
        self.restart()

    def restart(self) -> None:
        """Forget all rounds."""
        self._last: tuple[Array, Array] | None = None
        self._moves: deque[tuple[Array, Array]] = deque(maxlen=MOST_REMEMBERED)

    def extrapolate(self, now: Array, wanted: Array, mean: Array, variance: Array) -> Array:
        """Return the next sites (2, n), precisions and precisions times targets.

        ``wanted`` are those that follow from ``now``, under which each eta has this mean and
        variance (n,).
        """
        ahead = wanted - now
        if self._last is not None:
            self._moves.append((now - self._last[0], ahead - self._last[1]))
        self._last = now, ahead
        mixed = wanted.copy()
        if self._moves:
            moves, changes = np.moveaxis(np.array(self._moves), 1, 0)
            turned = self._standardize(changes, mean, variance)
            off = self._standardize(ahead[None], mean, variance)[0]
            mixed -= np.tensordot(_regress(turned, off), moves + changes, axes=1)
        return np.where(mixed[0] >= LEAST_SHARE * wanted[0], mixed, wanted)

    def _standardize(self, changes: Array, mean: Array, variance: Array) -> Array:
        """Changes of sites (k, 2, n) as (k, 2n), standardized by eta's variance."""
        moved = np.sqrt(variance) * (changes[:, 1] - changes[:, 0] * mean)
        grown = changes[:, 0] * variance
        return np.concatenate([grown * self._shares, moved * self._shares], axis=1)


def _regress(changes: Array, off: Array) -> Array:
    """Shares (k,) of the changes (k, 2n) that leave least of ``off`` (2n,)."""
    products = changes @ changes.T
    products[np.diag_indices(len(products))] += ROUNDING * products.max()
    _, shares, failed = dposv(products, changes @ off)
    return np.zeros(len(changes)) if failed else np.asarray(shares)


def measure_round(
    known: Factor, X: Array, sites: Array, wanted: Array, mean: Array, variance: Array
) -> tuple[float, float]:
    """Length of the mean's move in standard deviations, and the share of the precision's change."""
    ahead, kept = wanted - sites, known.determined
    rows = np.hstack([np.ones((len(X), known.n_coefficients - X.shape[1])), X])
    pull = rows.T @ (ahead[1] - ahead[0] * mean)
    move = np.linalg.solve(known.root[np.ix_(kept, kept)].T, pull[kept])
    return float(np.linalg.norm(move)), float(np.abs(ahead[0]) @ variance)


def mix_moments(
    factors: list[Factor], shares: Array, X: Array, added: Array
) -> tuple[Array, Array]:
    """Mean and variance (n,) of x.w under a mixture of posteriors; ``added`` is (K, n)."""
    ones = factors[0].n_coefficients > X.shape[1]
    each = [one.predict(X, intercept=ones) for one in factors]
    means = np.array([mean[:, 0] for mean, _ in each])
    variances = np.array([variance for _, variance in each]) + added
    mean = shares @ means
    return mean, shares @ (variances + np.square(means - mean))
