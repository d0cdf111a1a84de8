"""The likelihood of directions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from scipy.special import i0e

from posterity.aliases import Array
from posterity.distributions.known_by_cdf import solved_quantile
from posterity.likelihoods.frozen import freeze
from posterity.likelihoods.likelihood import (
    Kernel,
    ParametricLikelihood,
    keep_positive,
    named_row,
)
from posterity.likelihoods.parameter import Parameter

# Mean and standard deviation of the log of the concentration before data, and its ends.
MEAN, SD, ENDS = 0.5, 1.5, (np.log(1e-2), np.log(1e5))


@dataclass(frozen=True)
class VonMises(ParametricLikelihood):
    """A direction from -pi to pi, in radians, around 2 arctan(eta) (Fisher and Lee 1992).

    So a mean direction cannot turn through pi: measure angles from the usual one.

    Parameters
    ----------
    concentration : float, optional
        Positive; a large one is 1 / variance. None: it is learned; log(concentration) is
        Normal(0.5, 1.5^2) before data.

    Examples
    --------
    >>> from posterity import BayesianGeneralizedLinear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 1))
    >>> y = rng.vonmises(2.0 * np.arctan(0.3 + 0.5 * X[:, 0]), 5.0)
    >>> BayesianGeneralizedLinear(VonMises()).fit(X, y).coef_.round(1)
    array([0.5])
    """

    parameter: ClassVar[Parameter] = Parameter(
        "concentration", stats.norm(MEAN, SD).logpdf, ENDS, power=-1.0
    )
    flat_far_out: ClassVar[bool] = True

    concentration: float | None = None

    @property
    def kernel_code(self) -> Kernel:
        """The kernel has it built in."""
        k = self.concentration
        return Kernel(16, (k, 0.0 if k is None else _compute_log_constant(k), 0.0))

    def log_density(self, y: Array, eta: Array) -> Array:
        """concentration cos(y - 2 arctan(eta)) - log(2 pi I0(concentration))."""
        off, k = y - 2.0 * np.arctan(eta), self.known
        return k * (np.cos(off) - 1.0) - _compute_log_constant(k)

    def derivatives(self, y: Array, eta: Array) -> tuple[Array, Array]:
        """concentration turn sin(off), with turn = 2 / (1 + eta^2), and its curvature."""
        off, turn = y - 2.0 * np.arctan(eta), 2.0 / (1.0 + np.square(eta))
        slope = self.known * turn * np.sin(off)
        usual = self.known * turn * turn
        return slope, keep_positive(usual * np.cos(off) + slope * turn * eta, usual)

    def start(self, y: Array) -> Array:
        """Return starting values: half of the direction, shrunk to the mean one."""
        mean = np.arctan2(np.sin(y).mean(), np.cos(y).mean())
        return np.asarray(np.full(np.shape(y), np.tan(0.5 * mean)))

    def distribution(self, eta: Array) -> Any:
        """Von Mises around 2 arctan(eta)."""
        return Directions(self.known, 2.0 * np.arctan(eta))

    def check_targets(self, y: Array) -> None:
        """Raise ``ValueError`` unless all lie from -pi to pi."""
        named_row(
            y,
            np.abs(y) <= np.pi,
            "a direction under VonMises must lie from -pi to pi: of degrees give "
            "numpy.radians(degrees), and subtract 2 pi of what is above pi",
        )


def _compute_log_constant(concentration: Any) -> Any:
    return np.log(2.0 * np.pi * i0e(concentration))


class Directions:
    """Von Mises distributions from ``centre`` - pi to ``centre`` + pi, as SciPy's frozen ones."""

    def __init__(self, concentration: Any, centre: Array) -> None:
        self.concentration, self.centre = concentration, centre
        known = freeze(stats.vonmises, concentration, loc=centre)
        self.logpdf, self.cdf, self.rvs = known.logpdf, known.cdf, known.rvs

    def mean(self) -> Array:
        """The centre."""
        return self.centre

    def var(self) -> Array:
        """Average square of the angle from the centre, by the midpoints of 400 sectors."""
        angle = np.pi * (2.0 * np.arange(400.0) + 1.0) / 400.0 - np.pi
        shares = np.exp(np.multiply.outer(self.concentration, np.cos(angle) - 1.0))
        spread = (shares @ np.square(angle)) / shares.sum(axis=-1)
        return np.asarray(spread + 0.0 * self.centre)

    def ppf(self, q: ArrayLike) -> Array:
        """Quantiles, by bisection."""
        q, centre = np.broadcast_arrays(q, self.centre)
        return solved_quantile(self.cdf, q, centre - np.pi, centre + np.pi)
