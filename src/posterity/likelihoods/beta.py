"""The likelihood of shares between 0 and 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import stats
from scipy.special import betaln, expit, logit

from posterity.aliases import Array
from posterity.kernel import find_digammas
from posterity.likelihoods.frozen import freeze
from posterity.likelihoods.likelihood import (
    Kernel,
    ParametricLikelihood,
    keep_positive,
    named_row,
)
from posterity.likelihoods.parameter import Parameter
from posterity.likelihoods.shares import Share, split_precision

# Mean and standard deviation of the log of the precision before data, and its ends.
MEAN, SD, ENDS = 2.0, 2.0, (np.log(1e-2), np.log(1e6))


@dataclass(frozen=True)
class Beta(ParametricLikelihood, Share):
    """A share between 0 and 1, both excluded, of the mean sigmoid(eta).

    ``y ~ Beta(mean precision, (1 - mean) precision)``, so that the variance is
    mean (1 - mean) / (1 + precision) (Ferrari and Cribari-Neto 2004).

    Parameters
    ----------
    precision : float, optional
        Positive. None: it is learned; log(precision) is Normal(2, 2^2) before data.

    Examples
    --------
    >>> from posterity import BayesianGeneralizedLinear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 1))
    >>> mean = expit(0.5 + X[:, 0])
    >>> y = rng.beta(8.0 * mean, 8.0 * (1.0 - mean))
    >>> model = BayesianGeneralizedLinear(Beta()).fit(X, y)
    >>> model.coef_.round(1), model.likelihood_parameters_["precision"].mean().round(0)
    (array([1.]), np.float64(8.0))
    """

    parameter: ClassVar[Parameter] = Parameter(
        "precision", stats.norm(MEAN, SD).logpdf, ENDS, power=-1.0
    )

    precision: float | None = None

    @property
    def kernel_code(self) -> Kernel:
        """The kernel has it built in."""
        return Kernel(13, (self.precision, 0.0, 0.0))

    def log_density(self, y: Array, eta: Array) -> Array:
        """(a - 1) log y + (b - 1) log(1 - y) - log B(a, b)."""
        a, b = split_precision(self.known, eta)
        return (a - 1.0) * np.log(y) + (b - 1.0) * np.log1p(-y) - betaln(a, b)

    def derivatives(self, y: Array, eta: Array) -> tuple[Array, Array]:
        """The slope, and its curvature, which is a sum over digammas less a share of the slope."""
        a, b = split_precision(self.known, eta)
        rise, (of_a, fall_a), (of_b, fall_b) = a * expit(-eta), find_digammas(a), find_digammas(b)
        slope = rise * (logit(y) - of_a + of_b)
        usual = rise * rise * (fall_a + fall_b)
        return slope, keep_positive(usual + slope * np.tanh(0.5 * eta), usual)

    def distribution(self, eta: Array) -> Any:
        """Beta of this precision and the mean sigmoid(eta)."""
        return freeze(stats.beta, *split_precision(self.known, eta))

    def check_targets(self, y: Array) -> None:
        """Raise ``ValueError`` unless all lie between 0 and 1."""
        named_row(
            y,
            (y > 0.0) & (y < 1.0),
            "a share under Beta must lie between 0 and 1, both excluded: divide percentages by "
            "100, and move zeros and ones in, as by (y (n - 1) + 1/2) / n of n rows (Smithson and "
            "Verkuilen 2006), or model apart whether a share is 0 or 1",
        )
