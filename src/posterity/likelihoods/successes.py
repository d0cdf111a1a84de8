"""Likelihoods of successes among a number of trials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import stats
from scipy.special import expit, gammaln, log_expit

from posterity.aliases import Array
from posterity.kernel import average_softplus, find_digammas
from posterity.kernel.values import read_scalar
from posterity.likelihoods.beta import Beta
from posterity.likelihoods.frozen import freeze
from posterity.likelihoods.likelihood import (
    Kernel,
    ParametricLikelihood,
    keep_positive,
    named_row,
)
from posterity.likelihoods.parameter import Parameter
from posterity.likelihoods.shares import Share, split_precision
from posterity.likelihoods.whole import look_up


class Successes(Share):
    """A number of successes of so many trials."""

    trials: int

    def __post_init__(self) -> None:
        trials = read_scalar(self.trials, "trials")
        if not (trials >= 1 and trials % 1 == 0):
            raise ValueError(f"trials is {self.trials}: it must be a whole number, 1 or more")
        object.__setattr__(self, "trials", int(trials))

    @property
    def whole(self) -> float:
        """The number of trials."""
        return float(self.trials)

    def check_targets(self, y: Array) -> None:
        """Raise ``ValueError`` unless all are whole numbers from 0 to the number of trials."""
        named_row(
            y,
            (y >= 0.0) & (y <= self.trials) & (y == np.floor(y)),
            f"a number of successes must be a whole number, 0 to {self.trials}, the trials",
        )

    def _log_choices(self, y: Array) -> Array:
        n = self.trials
        return look_up(lambda k: gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0), y)


@dataclass(frozen=True)
class Binomial(Successes):
    """The number of successes of ``trials``, each of which succeeds with odds exp(eta).

    Rows with other numbers of trials are learned as two rows of :class:`Bernoulli`: a 1 whose
    weight is the number of successes, and a 0 whose weight is that of failures.

    Parameters
    ----------
    trials : int
        The same for all rows.

    Examples
    --------
    >>> from posterity import BayesianGeneralizedLinear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 1))
    >>> y = rng.binomial(10, expit(0.5 + X[:, 0]))
    >>> BayesianGeneralizedLinear(Binomial(10)).fit(X, y).coef_.round(1)
    array([1.])
    """

    trials: int = 1

    def log_density(self, y: Array, eta: Array) -> Array:
        """y log sigmoid(eta) + (trials - y) log sigmoid(-eta) + log choices."""
        failures = self.trials - y
        return y * log_expit(eta) + failures * log_expit(-eta) + self._log_choices(y)

    def derivatives(self, y: Array, eta: Array) -> tuple[Array, Array]:
        """y - trials p, and trials p (1 - p)."""
        p = expit(eta)
        return y - self.trials * p, self.trials * p * expit(-eta)

    def average(self, y: Array, mean: Array, variance: Array) -> tuple[Array, Array, Array]:
        """Averages of log density, slope and curvature, of those of the logistic."""
        value, slope, bend = (self.trials * each for each in average_softplus(mean, variance))
        return y * mean - value + self._log_choices(y), y - slope, bend

    def distribution(self, eta: Array) -> Any:
        """Binomial."""
        return freeze(stats.binom, self.trials, expit(eta))


@dataclass(frozen=True)
class BetaBinomial(ParametricLikelihood, Successes):
    """The same where the probability varies between rows: Beta(mean precision, ...).

    The variance is that of :class:`Binomial` times 1 + (trials - 1) / (1 + precision).

    Parameters
    ----------
    trials : int
        The same for all rows; of 1 nothing tells the precision.
    precision : float, optional
        Positive. None: it is learned; log(precision) is Normal(2, 2^2) before data.

    Examples
    --------
    >>> BetaBinomial(10, 4.0).distribution(np.zeros(1)).var().round(6)
    array([7.])
    """

    # It may be as large as can be, as for Binomial.
    parameter: ClassVar[Parameter] = Beta.parameter._replace(exponent=-1.0)

    trials: int = 1
    precision: float | None = None

    @property
    def kernel_code(self) -> Kernel:
        """The kernel has it built in."""
        return Kernel(14, (self.precision, self.whole, 0.0))

    def __post_init__(self) -> None:
        ParametricLikelihood.__post_init__(self)
        Successes.__post_init__(self)

    def log_density(self, y: Array, eta: Array) -> Array:
        """log B(y + a, trials - y + b) - log B(a, b) + log choices."""
        a, b = split_precision(self.known, eta)
        successes, failures = gammaln(y + a) - gammaln(a), gammaln(self.trials - y + b) - gammaln(b)
        whole = gammaln(self.known + self.whole) - gammaln(self.known)
        return successes + failures - whole + self._log_choices(y)

    def derivatives(self, y: Array, eta: Array) -> tuple[Array, Array]:
        """The slope, and its curvature, which is a sum over digammas less a share of the slope."""
        (a, b), failures = split_precision(self.known, eta), self.trials - y
        of_a, of_b = (find_digammas(n + c) - find_digammas(c) for n, c in ((y, a), (failures, b)))
        rise = a * expit(-eta)
        slope = rise * (of_a[0] - of_b[0])
        usual = rise * rise * np.maximum(-of_a[1] - of_b[1], 0.0)
        return slope, keep_positive(usual + slope * np.tanh(0.5 * eta), usual)

    def distribution(self, eta: Array) -> Any:
        """Beta-binomial of this precision."""
        return freeze(stats.betabinom, self.trials, *split_precision(self.known, eta))
