"""Few rows for each coefficient: how large noise and prior may be, before heavy tails are fitted.

Nearly as many coefficients as rows can explain all rows without noise, and a search for the most
probable scale and prior ends there. So both are first integrated under normal noise, as
:class:`~posterity.evidence.Integrated` does, with errors that are cut off where outliers begin
(Huber 1981, section 7.7: pseudo-values). The fit under heavy tails then takes their scale, and the
posterior is as wide as the mixture says.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import polygamma

from posterity.aliases import Array
from posterity.factor import Factor
from posterity.generalized._matching import invert_trigamma
from posterity.generalized._working_noise import Rows, Spread
from posterity.noise import LearnedNoise
from posterity.posteriors import EvidencePosterior, LinearPosterior
from posterity.posteriors._nodes import Nodes

# Rows a coefficient below which rows are few; and fewest rows beyond the flat directions.
ROWS_A_COEFFICIENT, LEAST_ROWS = 4, 4
# Limits at which targets, and errors, are clipped, in standard deviations; and the rounds.
FAR, OUTLYING, ROUNDS = 5.0, 3.0, 3
# Student's t with fewer degrees of freedom has no variance to match.
LEAST_SHARE = 0.5


@dataclass(frozen=True)
class NormalNodes:
    """Posteriors of the rows under normal noise; noise below ``floor`` is rounding."""

    nodes: Nodes
    floor: float

    @property
    def weights(self) -> Array:
        """(K,) of sum 1."""
        return self.nodes.weights

    @property
    def noise(self) -> Array:
        """(K,) standard deviation of the noise of each."""
        precisions = np.array([node.noise_precision for node in self.nodes.posteriors])
        return np.maximum(precisions**-0.5, self.floor)

    @property
    def scale(self) -> float:
        """Geometric mean of these."""
        return float(np.exp(self.weights @ np.log(self.noise)))

    def moments(self, X: Array) -> tuple[Array, Array]:
        """(K, n) means at the rows of ``X``, and their variances."""
        noise = np.square(self.noise)
        each = [node.factor.predict(X, intercept=node.intercept) for node in self.nodes.posteriors]
        means = np.array([mean[:, 0] for mean, _ in each])
        return means, noise[:, None] * np.array([leverage for _, leverage in each])


def are_few(rows: Rows) -> bool:
    """Return True for few rows a coefficient, but enough to say how large the noise may be."""
    beyond = rows.total - rows.n_flat
    return beyond >= LEAST_ROWS and rows.total < ROWS_A_COEFFICIENT * rows.n_told


def integrate(fresh: EvidencePosterior, rows: Rows) -> NormalNodes:
    """The posterior of the rows under normal noise, less their outliers."""
    centre = rows.median(rows.y)
    size = rows.estimate_size(rows.y - centre)
    y = np.clip(rows.y, centre - FAR * size, centre + FAR * size)
    nodes = _learn_rows(fresh, rows, y)
    for _ in range(ROUNDS):
        mean, variance = _mix_fits(nodes, nodes.moments(rows.X))
        reach = OUTLYING * np.sqrt(variance + nodes.weights @ np.square(nodes.noise))
        y = mean + np.clip(rows.y - mean, -reach, reach)
        nodes = _learn_rows(fresh, rows, y)
    return nodes


def estimate_spread(nodes: NormalNodes, inner: LinearPosterior, rows: Rows, scale: float) -> Spread:
    """Return the uncertainty of scale and fit, for a posterior ``inner`` under noise of this scale.

    At others like them, whose features come from different rows: their own fits know too much.
    """
    places = _shuffle_columns(rows.X)
    means, variances = nodes.moments(places)
    mean, _ = inner.factor.predict(places, intercept=inner.intercept)
    leverage = np.maximum(inner.predictive(places).var() * inner.noise_precision - 1.0, 1e-300)
    wider = nodes.weights @ (variances + np.square(means - mean[:, 0]))
    # Of a prediction's width: that of the noise alone the rows may leave open altogether.
    log_widths = 0.5 * np.log(variances + np.square(nodes.noise)[:, None])
    off = log_widths - nodes.weights @ log_widths
    own = polygamma(1, 0.5 * max(rows.residual_df, 1.0)) / 4.0
    df = 2.0 * float(invert_trigamma(np.array([4.0 * (own + np.mean(nodes.weights @ off**2))]))[0])
    ratio = float(np.mean(wider) / (scale**2 * np.mean(leverage)))
    return Spread(scale, df, math.sqrt(ratio * max(1.0 - 2.0 / df, LEAST_SHARE)), 0.0)


def _learn_rows(fresh: EvidencePosterior, rows: Rows, y: Array) -> NormalNodes:
    factor = Factor(fresh.n_coefficients)
    factor.append(rows.X, y[:, None], rows.weights, intercept=rows.intercept)
    nodes = fresh.integrate_prior(factor, LearnedNoise())
    return NormalNodes(nodes, replace(rows, y=y).floor)


def _mix_fits(nodes: NormalNodes, moments: tuple[Array, Array]) -> tuple[Array, Array]:
    means, variances = moments
    mean = nodes.weights @ means
    return mean, nodes.weights @ (variances + np.square(means - mean))


def _shuffle_columns(X: Array) -> Array:
    """Rows of the same features, each column turned by another number of rows."""
    n, m = X.shape
    places = (np.arange(n)[:, None] + np.arange(1, m + 1)) % n
    return np.take_along_axis(X, places, axis=0)
