"""The likelihood of directions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import i0e

from posterity.likelihoods.likelihood import ParametricLikelihood, named_row
from posterity.likelihoods.parameter import Parameter

Array = NDArray[np.float64]

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

    concentration: float | None = None

    def log_density(self, y: Array, eta: Array) -> Array:
        """concentration cos(y - 2 arctan(eta)) - log(2 pi I0(concentration))."""
        off, k = y - 2.0 * np.arctan(eta), self.known
        return k * (np.cos(off) - 1.0) - np.log(2.0 * np.pi * i0e(k))

    def derivatives(self, y: Array, eta: Array) -> tuple[Array, Array]:
        """The slope, and the curvature but for a part that is 0 on average, where positive."""
        off, turn = y - 2.0 * np.arctan(eta), 2.0 / (1.0 + np.square(eta))
        slope = self.known * turn * np.sin(off)
        return slope, self.known * turn * turn * np.maximum(np.cos(off), 0.0)

    def start(self, y: Array) -> Array:
        """Return starting values: half of the direction, shrunk to the mean one."""
        mean = np.arctan2(np.sin(y).mean(), np.cos(y).mean())
        return np.asarray(np.full(np.shape(y), np.tan(0.5 * mean)))

    def distribution(self, eta: Array) -> Any:
        """Von Mises around 2 arctan(eta)."""
        return stats.vonmises(self.known, loc=2.0 * np.arctan(eta))

    def check_targets(self, y: Array) -> None:
        """Raise ``ValueError`` unless all lie from -pi to pi."""
        named_row(
            y,
            np.abs(y) <= np.pi,
            "a direction under VonMises must lie from -pi to pi: of degrees give "
            "numpy.radians(degrees), and subtract 2 pi of what is above pi",
        )
