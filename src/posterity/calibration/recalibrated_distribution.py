"""A model's prediction seen through a map of its own probabilities."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import ndtr

from posterity.aliases import Array, Estimator, Indices
from posterity.distributions.row_distribution import RowDistribution

# Edges of the B bins, as probabilities: a normal's at every quarter of a standard deviation, and
# beyond three of them at every half.
_edges = np.concatenate(
    [np.arange(-6.0, -3.0, 0.5), np.arange(-3.0, 3.0, 0.25), np.arange(3.0, 6.25, 0.5)]
)
EDGES: Array = np.concatenate([[0.0], ndtr(_edges), [1.0]])
WIDTHS: Array = np.diff(EDGES)
N_BINS = len(WIDTHS)
# Gauss-Legendre nodes on [0, 1]: moments and CRPS are sums over them in every bin.
_roots, _shares = np.polynomial.legendre.leggauss(4)
NODES, SHARES = 0.5 * (_roots + 1.0), 0.5 * _shares
BLOCK = 1024


def find_bin(probabilities: Array) -> Indices:
    """Bins of the model's probabilities."""
    found = np.searchsorted(EDGES[1:-1], probabilities, side="right")
    return np.asarray(found, dtype=np.intp)


class RecalibratedDistribution(RowDistribution):
    """Predictions of :class:`Recalibrated`: all methods use the mapped distribution.

    With the model's cdf F and a map R of [0, 1] on itself, linear within each of B bins, the cdf
    is R(F(y)), and the density f(y) R'(F(y)). Mean, variance and CRPS are sums over four nodes in
    each bin, good to about three digits.

    Parameters
    ----------
    model : distribution
        What the wrapped model predicts, one per row; continuous.
    masses : (S, B) array
        Maps: probability of each bin.
    which : (n,) array of int
        The map of each row.

    Examples
    --------
    >>> from posterity.distributions import Normal
    >>> same = RecalibratedDistribution(Normal([0.0], [1.0]), WIDTHS[None], np.zeros(1, dtype=int))
    >>> same.interval(0.95)[1].round(3), same.std().round(3), same.crps([0.0]).round(3)
    (array([1.96]), array([1.]), array([0.234]))
    """

    __slots__ = ("masses", "model", "which")

    def __init__(self, model: Estimator, masses: Array, which: Indices) -> None:
        self.model, self.masses, self.which = model, masses, which

    def __repr__(self) -> str:
        return f"RecalibratedDistribution({self.model!r})"

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the rows: (n,), or () for a single distribution."""
        return self.model.shape

    def _rows(self, index: Any) -> Self:
        return type(self)(self.model[index], self.masses, self.which[index])

    def _flat(self) -> Any:
        return self.model.is_flat()

    # ---- probabilities ---------------------------------------------------------------------------

    def _cdf(self, y: Array) -> Array:
        u = np.asarray(self.model.cdf(y))
        at = find_bin(u)
        which = np.broadcast_to(self.which, u.shape)
        slope = self.masses[which, at] / WIDTHS[at]
        below: Array = self._below[which, at] + slope * (u - EDGES[at])
        return np.where(np.isnan(u), u, np.clip(below, 0.0, 1.0))[()]

    def _logpdf(self, y: Array) -> Array:
        u = np.asarray(self.model.cdf(y))
        at = find_bin(u)
        slope = self.masses[np.broadcast_to(self.which, u.shape), at] / WIDTHS[at]
        density: Array = self.model.logpdf(y) + np.log(slope)
        return density

    def _ppf(self, q: Array) -> Array:
        q = np.broadcast_to(q, np.broadcast_shapes(q.shape, self.shape))
        which = np.broadcast_to(self.which, q.shape)
        below = self._below
        at = np.zeros(q.shape, dtype=np.intp)
        for edge in range(1, N_BINS):
            at += q >= below[which, edge]
        inside = (q - below[which, at]) / self.masses[which, at]
        u = EDGES[at] + np.clip(inside, 0.0, 1.0) * WIDTHS[at]
        return self.model.ppf(np.where((q >= 0.0) & (q <= 1.0), u, np.nan))

    def _draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> Array:
        return self._ppf(rng.uniform(size=size))

    # ---- sums over nodes -------------------------------------------------------------------------

    def _mean(self) -> Array:
        mean = self._evaluate_at_nodes(lambda t, w, r, rows: np.einsum("jn,jn->n", w, t))
        return np.where(self._flat(), self.model.mean(), mean)[()]

    def _var(self) -> Array:
        def spread(t: Array, w: Array, r: Array, rows: slice) -> Array:
            mean = np.einsum("jn,jn->n", w, t)
            return np.einsum("jn,jn->n", w, np.square(t - mean))

        own = self.model.var()
        return np.where(np.isinf(own), own, self._evaluate_at_nodes(spread))[()]

    def _crps(self, y: Array) -> Array:
        """E|Y - y| - E[Y (2 R(U) - 1)]: Gneiting and Raftery (2007), eq. 21, as an L-moment."""
        n = self.shape
        y = np.asarray(np.broadcast_to(y, n))
        flat_y = y.reshape(-1)

        def score(t: Array, w: Array, r: Array, rows: slice) -> Array:
            near = np.einsum("jn,jn->n", w, np.abs(t - flat_y[rows]))
            return near - np.einsum("jn,jn->n", w, t * (2.0 * r - 1.0))

        own = self.model.crps(y)
        total = self._evaluate_at_nodes(score) + self._correct_for_kink(y)
        return np.where(np.isinf(own) | np.isnan(own), own, total)[()]

    def _correct_for_kink(self, y: Array) -> Array:
        """Return the correction of E|Y - y| for the kink at y, which quadrature nodes miss."""
        u = np.asarray(self.model.cdf(y))
        at = find_bin(u)
        slope = self.masses[self.which, at] / WIDTHS[at]
        gain = np.zeros(self.shape)
        for share, node in zip(SHARES, NODES, strict=True):
            for start, length, sign in (
                (EDGES[at], u - EDGES[at], 1.0),
                (u, EDGES[at + 1] - u, 1.0),
                (EDGES[at], WIDTHS[at], -1.0),
            ):
                point = self.model.ppf(np.clip(start + node * length, 1e-300, 1.0 - 2.0**-53))
                with np.errstate(invalid="ignore"):  # flat rows
                    gain += sign * share * slope * length * np.abs(point - y)
        return gain

    def _evaluate_at_nodes(self, of: Any) -> Array:
        """``of(targets, weights, probabilities, rows)``, each (nodes, rows), block after block."""
        n = int(np.prod(self.shape, dtype=int))
        u = (EDGES[:-1, None] + NODES * WIDTHS[:, None]).reshape(-1, 1)
        at = np.repeat(np.arange(N_BINS), len(NODES))
        shares, inside = np.tile(SHARES, N_BINS), np.tile(NODES, N_BINS)
        which, model = np.atleast_1d(self.which), self.model
        result = np.empty(n)
        for start in range(0, n, BLOCK):
            rows = slice(start, min(start + BLOCK, n))
            t = np.asarray((model[rows] if self.shape else model).ppf(u)).reshape(len(u), -1)
            mass = self.masses[which[rows]][:, at].T
            r = self._below[which[rows]][:, at].T + mass * inside[:, None]
            with np.errstate(invalid="ignore"):  # flat rows: their targets are infinite
                result[rows] = of(t, mass * shares[:, None], r, rows)
        return result.reshape(self.shape)

    @property
    def _below(self) -> Array:
        """(S, B) probability below each bin."""
        below: Array = np.cumsum(self.masses, axis=1) - self.masses
        return below
