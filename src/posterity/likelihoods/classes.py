"""Likelihoods of yes or no."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from scipy.special import expit, log_expit, log_ndtr, logit, ndtr, ndtri

from posterity.aliases import Array
from posterity.kernel import average_softplus
from posterity.likelihoods.averages import integrate_derivatives
from posterity.likelihoods.labels import Labels
from posterity.likelihoods.likelihood import Kernel, Likelihood, named_row
from posterity.likelihoods.moderation import log_expected_normal, log_odds_averaged

LOG_ROOT_2PI = 0.5 * float(np.log(2.0 * np.pi))


def check_link(link: str) -> None:
    """Raise ``ValueError`` for a link that is not known."""
    if link not in ("logit", "probit"):
        raise ValueError(f"link is {link!r}: it must be 'logit' or 'probit'")


@dataclass(frozen=True)
class Bernoulli(Likelihood):
    """A label 0 or 1; eta is the log odds of 1 ("logit") or its normal quantile ("probit").

    Parameters
    ----------
    link
        "logit" or "probit".

    Examples
    --------
    >>> import numpy as np
    >>> yes = Bernoulli()
    >>> yes.log_density(np.array([1.0]), np.array([0.0])).round(4)
    array([-0.6931])
    >>> yes.predictive(np.array([10.0]), np.array([100.0])).mean().round(3)
    array([0.837])
    """

    without_maximum: ClassVar[str] = "classes that a line separates"

    link: Literal["logit", "probit"] = "logit"

    def __post_init__(self) -> None:
        check_link(self.link)

    @property
    def ratio(self) -> str:
        """Eta is the log odds of a 1, with the logit link."""
        return "odds_ratio" if self.link == "logit" else ""

    @property
    def kernel_code(self) -> Kernel:
        """The kernel has it built in."""
        return Kernel(1 if self.link == "logit" else 2)

    def log_density(self, y: Array, eta: Array) -> Array:
        """log sigmoid(eta), or of its normal counterpart; of -eta where y is 0."""
        signed = np.where(y > 0.5, eta, -np.asarray(eta))
        return log_expit(signed) if self.link == "logit" else log_ndtr(signed)

    def derivatives(self, y: Array, eta: Array) -> tuple[Array, Array]:
        """y - sigmoid(eta) and sigmoid(eta) sigmoid(-eta); for probit by Mills' ratio.

        For probit, of z = eta or -eta with r = density(z) / cdf(z): r and r (r + z).
        """
        sign = np.where(y > 0.5, 1.0, -1.0)
        signed = sign * eta
        if self.link == "logit":
            return sign * expit(-signed), expit(-signed) * expit(signed)
        with np.errstate(over="ignore", under="ignore"):
            ratio = np.exp(-0.5 * signed * signed - LOG_ROOT_2PI - log_ndtr(signed))
            # Where the ratio is -z to all digits: r (r + z) = 1 - 2 / z^2 + ...
            far = signed < -1e4
            ratio = np.where(far, -signed, ratio)
            curvature = np.where(far, 1.0, np.clip(ratio * (ratio + signed), 0.0, 1.0))
        return sign * ratio, curvature

    def average(self, y: Array, mean: Array, variance: Array) -> tuple[Array, Array, Array]:
        """Averages of log density, slope and curvature; for probit by quadrature."""
        if self.link != "logit":
            return integrate_derivatives(self, y, mean, variance)
        value, slope, bend = average_softplus(mean, variance)
        return y * mean - value, y - slope, bend

    def mean(self, eta: Array) -> Array:
        """The probability of 1."""
        return np.asarray(expit(eta) if self.link == "logit" else ndtr(eta))

    def link_function(self, mean: Array) -> Array:
        """Log odds, or the normal quantile."""
        return np.asarray(logit(mean) if self.link == "logit" else ndtri(mean))

    def check_targets(self, y: Array) -> None:
        """Raise ``ValueError`` unless all are 0 or 1."""
        named_row(y, (y == 0.0) | (y == 1.0), "a label must be 0 or 1")

    def predictive(self, mean: Array, variance: Array) -> Labels:
        """Probabilities averaged over eta (MacKay 1992's moderated output, to 9 digits)."""
        mean, variance = np.asarray(mean, float), np.asarray(variance, float)
        if self.link == "logit":
            return Labels(*log_odds_averaged(mean, variance))
        return Labels(log_expected_normal(mean, variance), log_expected_normal(-mean, variance))
