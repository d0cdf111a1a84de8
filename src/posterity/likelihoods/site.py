"""Sites: Gaussian approximations of likelihoods, as rows in the linear predictor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from posterity.aliases import Array


@dataclass(frozen=True)
class Sites:
    """Gaussian approximations of the likelihoods of observations, as functions of their eta.

    Each stands for the likelihood up to a constant: exp(-precision (eta - target)^2 / 2).

    Parameters
    ----------
    precision
        (n,) not negative; 0 where an observation says nothing.
    target
        (n,) pseudo-targets, in units of eta.
    log_normalizer
        (n,) log of the integral of the likelihood over what was believed of eta: the log
        predictive density of the observation.

    Examples
    --------
    >>> import numpy as np
    >>> sites = Sites(np.ones(1), np.ones(1), np.full(1, -1.5))
    >>> sites.log_scale(np.zeros(1), np.ones(1)).round(4)
    array([-0.9034])
    """

    precision: Array
    target: Array
    log_normalizer: Array

    def log_scale(self, mean: Array, variance: Array) -> Array:
        """(n,) log of the constant, given what was believed of eta: Normal(mean, variance).

        log Z = log constant + log of the integral of Normal(eta; mean, variance) times
        exp(-precision (eta - target)^2 / 2); with spread = 1 + precision variance, that is
        -(log spread + precision (target - mean)^2 / spread) / 2.
        """
        known = np.isfinite(variance)
        spread = 1.0 + self.precision * np.where(known, variance, 0.0)
        off = self.target - mean
        value = 0.5 * (np.log(spread) + self.precision * off * off / spread)
        # A flat cavity had density 1 everywhere, or a vague one that is part of the site.
        with np.errstate(divide="ignore"):
            whole = 0.5 * np.log(self.precision / (2.0 * np.pi))
        value = np.where(known, value, np.where(self.precision > 0.0, whole, 0.0))
        return self.log_normalizer + value
