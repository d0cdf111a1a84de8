"""The likelihood of targets of which only an interval is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from posterity.aliases import Array
from posterity.likelihoods.likelihood import named_row
from posterity.likelihoods.wrapped import Wrapped

# A smaller probability between two ends is a matter of rounding.
LEAST_PROBABILITY = 1e-300


def score_ends(predictive: Any, low: Array, high: Array) -> Array:
    """Log density (n,) where both ends are one number, log probability between them elsewhere."""
    seen, end = low == high, np.where(np.isfinite(low), low, high)
    under = np.where(low > -np.inf, predictive.cdf(np.nextafter(end, -np.inf)), 0.0)
    below = np.where(high < np.inf, predictive.cdf(np.where(high < np.inf, high, end)), 1.0)
    between = np.log(np.maximum(below - under, LEAST_PROBABILITY))
    return np.where(seen, predictive.logpdf(end), between)


def ends_of(time: Array, ended: Array) -> Array:
    """(n, 2) ends of times (n,), of which those that had not ``ended`` (1 or 0) go on.

    Raises ``ValueError`` for what is neither, naming the row.
    """
    named_row(
        ended, (ended == 0.0) | (ended == 1.0), "1 says that the time ended, 0 that it goes on"
    )
    return np.column_stack([time, np.where(ended == 1.0, time, np.inf)])


def middle_of(ends: Array) -> Array:
    """The middle (n,) of each interval (n, 2), or the end that it has."""
    return np.asarray(np.where(np.isfinite(ends), ends, ends[:, ::-1]).mean(axis=1))


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

    def start(self, y: Array) -> Array:
        """Starting values of the middle of each interval, or of the end that it has."""
        return super().start(middle_of(y))

    def check_targets(self, y: Array) -> None:
        """Raise ``ValueError`` for ends in the wrong order, and for what can't have been."""
        low, high = y.T
        order = (
            "the lower end must not be above the upper one; both are the time if its end was seen"
        )
        named_row(y, low <= high, order)
        known = np.isfinite(y).any(axis=1) & (low < np.inf) & (high > -np.inf)
        named_row(y, known, "one end must be finite, and it is the lower one that may be -inf")
        self._check_some(low, low == high)
        known = self.with_parameter(np.ones(len(self.parameters)))
        with np.errstate(all="ignore"):
            possible = known.log_density(y, known.start(y)) > -np.inf
        named_row(y, possible, f"{type(self.likelihood).__name__} has no targets between these")

    def mean(self, eta: Array) -> Array:
        """As of the likelihood."""
        return self.likelihood.mean(eta)

    def link_function(self, mean: Array) -> Array:
        """As of the likelihood."""
        return self.likelihood.link_function(mean)

    def distribution(self, eta: Array) -> Any:
        """As of the likelihood."""
        return self.likelihood.distribution(eta)

    def predictive(self, mean: Array, variance: Array) -> Any:
        """As of the likelihood."""
        return self.likelihood.predictive(mean, variance)
