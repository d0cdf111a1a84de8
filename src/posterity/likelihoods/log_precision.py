"""The likelihood of the log precision of noise, of which one squared residual tells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from posterity.aliases import Array
from posterity.distributions import Normal
from posterity.likelihoods.counts import Poisson
from posterity.likelihoods.likelihood import named_row


@dataclass(frozen=True)
class LogPrecision(Poisson):
    """A squared residual r^2 of noise Normal(0, exp(-eta)), as half a count.

    Its log density is eta / 2 - exp(eta) r^2 / 2: but for a constant that of half a Poisson count
    with the exposure r^2 / 2. So every target is 1/2, and r^2 comes as the offset of eta,
    log(r^2 / 2), which :meth:`offsets` makes. (The Gamma likelihood of a variance model: Smyth
    1989, "Generalized linear models with varying dispersion".)

    Examples
    --------
    >>> import numpy as np
    >>> likelihood = LogPrecision()
    >>> offset = likelihood.offsets(np.array([4.0]))
    >>> gradient, curvature = likelihood.derivatives(0.5, np.log([0.25]) + offset)
    >>> gradient.round(9), curvature.round(9)
    (array([0.]), array([0.5]))
    """

    # Smaller squares, of residuals in units of their noise, count as this.
    least_square: ClassVar[float] = 1e-6

    def offsets(self, squares: Array) -> Array:
        """log(r^2 / 2) of squared residuals (n,)."""
        return np.log(0.5 * np.maximum(squares, self.least_square))

    def check_targets(self, y: Array) -> None:
        """Raise ``ValueError`` unless all are 1/2."""
        named_row(y, np.asarray(y) == 0.5, "the square goes into the offset; the target is 1/2")

    def predictive(self, mean: Array, variance: Array) -> Normal:  # type: ignore[override]
        """The log precision itself."""
        return Normal(mean, np.sqrt(variance))
