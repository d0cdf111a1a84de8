"""The likelihood of targets of which only an interval is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from posterity.likelihoods.likelihood import named_row
from posterity.likelihoods.wrapped import Wrapped

Array = NDArray[np.float64]

# The least distance of two logs whose difference has a log.
LEAST_GAP = 1e-300


@dataclass(frozen=True)
class Censored(Wrapped):
    """A target between two ends: observed, or known to lie above, below or between numbers.

    Targets are (n, 2), the lower and the upper end. Where both are equal the target was observed;
    an infinite upper end says that it is at least the lower one (a patient who left a study alive),
    an infinite lower end that it is at most the upper one. Both ends belong to the interval. What a
    row says of eta is log(F(upper) - F(lower)), as in Klein and Moeschberger 2003, section 3.5;
    what is predicted is the target itself.

    Parameters
    ----------
    likelihood : Likelihood
        Of the target, with ``log_tails``, or a ``distribution`` that has ``logcdf`` and ``logsf``.
        What it leaves open is learned.

    Examples
    --------
    >>> from posterity import BayesianGeneralizedLinear
    >>> from posterity.likelihoods import Gamma
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 1))
    >>> lasted = rng.gamma(4.0, np.exp(1.0 + 0.5 * X[:, 0]) / 4.0)
    >>> ended = lasted < 3.0
    >>> y = np.column_stack([np.minimum(lasted, 3.0), np.where(ended, lasted, np.inf)])
    >>> model = BayesianGeneralizedLinear(Censored(Gamma())).fit(X, y)
    >>> model.coef_.round(1), round(model.intercept_, 1)
    (array([0.5]), 1.0)
    """

    n_numbers: ClassVar[int] = 2
    without_maximum: ClassVar[str] = "targets that are all censored on the same side"

    def log_density(self, y: Array, eta: Array) -> Array:
        """Log density of what was observed, log probability of what was not."""
        low, high = y[..., 0], y[..., 1]
        with np.errstate(all="ignore"):
            observed = self.likelihood.log_density(np.where(low > -np.inf, low, high), eta)
            return np.where(low == high, observed, self._log_probability(low, high, eta))

    def derivatives(self, y: Array, eta: Array) -> tuple[Array, Array]:
        """Those of what was observed by its own formulas, others by differences."""
        low, observed = y[..., 0], y[..., 0] == y[..., 1]
        with np.errstate(all="ignore"):
            own, other = self.likelihood.derivatives(low, eta), super().derivatives(y, eta)
        slope, curvature = (np.where(observed, *pair) for pair in zip(own, other, strict=True))
        return slope, curvature

    @property
    def closeness(self) -> float:
        """That of differences."""
        return max(1e-9, self.likelihood.closeness)

    def start(self, y: Array) -> Array:
        """Starting values of the middle of each interval, or of the end that it has."""
        ends = np.where(np.isfinite(y), y, y[:, ::-1])
        return super().start(ends.mean(axis=1))

    def check_targets(self, y: Array) -> None:
        """Raise ``ValueError`` for ends in the wrong order, and for what can't have been."""
        low, high = y.T
        named_row(y, low <= high, "the lower end must not be above the upper one")
        known = np.isfinite(y).any(axis=1) & (low < np.inf) & (high > -np.inf)
        named_row(y, known, "one end must be finite, and it is the lower one that may be -inf")
        self._check_some(low, low == high)
        known = self.with_parameter(np.ones(len(self.parameters)))
        possible = known.log_density(y, known.start(y)) > -np.inf
        named_row(y, possible, f"{type(self.likelihood).__name__} has no targets between these")

    def _log_probability(self, low: Array, high: Array, eta: Array) -> Array:
        """Log of the probability between two ends, from the nearer tail."""
        # A count may be the lower end itself.
        up_to_low, above_low = self.likelihood.log_tails(np.nextafter(low, -np.inf), eta)
        up_to_high, above_high = self.likelihood.log_tails(high, eta)
        above = self._tail(above_low, low, eta), above_high
        under = self._tail(up_to_high, high, eta), up_to_low
        more, less = (
            np.where(above[0] < under[0], one, other)
            for one, other in zip(above, under, strict=True)
        )
        return np.asarray(more + np.log(-np.expm1(np.minimum(less - more, -LEAST_GAP))))

    def _tail(self, log_probability: Array, end: Array, eta: Array) -> Array:
        """Where it is too small for a float, the density there, which falls as it does."""
        lost = np.isneginf(log_probability) & np.isfinite(end)
        return np.where(lost, self.likelihood.log_density(end, eta), log_probability)
