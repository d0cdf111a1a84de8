"""The likelihood of positive amounts whose spread grows with their mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import stats
from scipy.special import gammainc, gammaincc, gammaln

from posterity.aliases import Array
from posterity.likelihoods.frozen import freeze
from posterity.likelihoods.likelihood import Kernel, ParametricLikelihood, named_row
from posterity.likelihoods.parameter import Parameter
from posterity.likelihoods.positive import exp_up_to, log_both_tails, log_near_mean

# Beyond this exp overflows; and a share that no target has near its mean.
LARGEST_LOG, LARGEST = 700.0, 1e290
# Mean and standard deviation of the log of the shape before data.
MEAN, SD = 1.0, 2.0


@dataclass(frozen=True)
class Gamma(ParametricLikelihood):
    """A positive amount of the mean exp(eta), whose standard deviation is a share of that.

    A duration, a claim, a price: ``y ~ Gamma(shape, scale=exp(eta) / shape)``, so that the
    coefficient of variation is ``shape ** -0.5`` (McCullagh and Nelder 1989, chapter 8).

    Parameters
    ----------
    shape : float, optional
        Positive. None: it is learned; log(shape) is Normal(1, 2^2) before data.

    Examples
    --------
    >>> from posterity import BayesianGeneralizedLinear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 1))
    >>> y = rng.gamma(4.0, np.exp(1.0 + 0.5 * X[:, 0]) / 4.0)
    >>> model = BayesianGeneralizedLinear(Gamma()).fit(X, y)
    >>> model.coef_.round(1), model.likelihood_parameters_["shape"].mean().round(0)
    (array([0.5]), np.float64(4.0))
    """

    parameter: ClassVar[Parameter] = Parameter(
        "shape", stats.norm(MEAN, SD).logpdf, (np.log(1e-2), np.log(1e6)), power=-1.0
    )

    shape: float | None = None

    @property
    def kernel_code(self) -> Kernel:
        """The kernel has it built in."""
        return Kernel(8, (self.shape, 0.0, 0.0))

    @property
    def ratio(self) -> str:
        """Eta is the log of the mean."""
        return "mean_ratio"

    def log_density(self, y: Array, eta: Array) -> Array:
        """shape (log(shape y) - eta - y exp(-eta)) - log y - log Gamma(shape)."""
        return self._compute_log_density(y, eta, self._compute_share(y, -eta))

    def derivatives(self, y: Array, eta: Array) -> tuple[Array, Array]:
        """shape (y exp(-eta) - 1) and shape y exp(-eta)."""
        share = self._compute_share(y, -eta)
        return self.known * (share - 1.0), self.known * share

    def average(self, y: Array, mean: Array, variance: Array) -> tuple[Array, Array, Array]:
        """The same with the average of exp(-eta): exp(-mean + variance / 2)."""
        share = self._compute_share(y, 0.5 * variance - mean)
        value = self._compute_log_density(y, mean, share)
        return value, self.known * (share - 1.0), self.known * share

    def start(self, y: Array) -> Array:
        """Return starting values: the log of the target, shrunk to that of the mean."""
        return log_near_mean(y)

    def mean(self, eta: Array) -> Array:
        """The mean exp(eta)."""
        return exp_up_to(LARGEST_LOG, eta)

    def link_function(self, mean: Array) -> Array:
        """The log of the mean."""
        return np.asarray(np.log(mean))

    def log_tails(self, y: Array, eta: Array) -> tuple[Array, Array]:
        """By the incomplete gamma function."""
        share = self.known * self._compute_share(y, -eta)
        return log_both_tails(y, gammainc(self.known, share), gammaincc(self.known, share))

    def distribution(self, eta: Array) -> Any:
        """Gamma of this shape and the mean exp(eta)."""
        # Of a scale of 0 SciPy knows nothing.
        mean = exp_up_to(LARGEST_LOG, np.maximum(eta, -LARGEST_LOG))
        return freeze(stats.gamma, self.known, scale=mean / self.known)

    def check_targets(self, y: Array) -> None:
        """Raise ``ValueError`` unless all are positive and finite."""
        named_row(
            y,
            (y > 0.0) & (y < np.inf),
            "an amount under Gamma must be positive and finite: leave zeros out, or model whether "
            "there is an amount on its own",
        )

    @staticmethod
    def _compute_share(y: Array, log_factor: Array) -> Array:
        """Targets over their mean, exp(-log_factor)."""
        with np.errstate(over="ignore", under="ignore"):
            return np.minimum(y * exp_up_to(LARGEST_LOG, log_factor), LARGEST)

    def _compute_log_density(self, y: Array, eta: Array, share: Array) -> Array:
        shape = self.known
        log = shape * (np.log(shape * y) - eta - share)
        return np.asarray(log - np.log(y) - gammaln(shape))
