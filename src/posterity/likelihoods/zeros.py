"""Likelihoods of targets with more zeros, or fewer, than their distribution has."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import expit, log_expit

from posterity.aliases import Array
from posterity.distributions.with_zeros import CountsWithZeros, WithZeros
from posterity.likelihoods.likelihood import Kernel, find_differences, named_row
from posterity.likelihoods.parameter import LogNormalParameter
from posterity.likelihoods.wrapped import COUNTS, SOME, Wrapped

# Log of a probability: where counts above 0 have less, they are 1.
RAREST = -20.0


@dataclass(frozen=True)
class Zeros(Wrapped):
    """A target that is 0 with odds of its own, whatever eta is."""

    without_maximum: ClassVar[str] = "zeros alone"
    # Of the log odds of a zero, before data.
    prior: ClassVar[LogNormalParameter]
    # Codes of likelihoods in compiled code that it may be of, and what is added to them.
    kernel_zeros: ClassVar[tuple[tuple[int, ...], int]]

    zero_odds: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        given = self.zero_odds
        if given is not None and not np.all((given > 0.0) & (given < np.inf)):
            raise ValueError(f"zero_odds is {given}: odds must be positive and finite, or None")

    @property
    def parameters(self) -> tuple[LogNormalParameter, ...]:
        """Those that are open: of the likelihood, and the odds."""
        return (*super().parameters, *(() if self.zero_odds is not None else (self.prior,)))

    def with_parameter(self, value: Any) -> Self:
        """The same with these values (d,) of the open parameters, or those of each row (n, d)."""
        known = super().with_parameter(value)
        return known if self.zero_odds is not None else replace(known, zero_odds=value[..., -1])

    @property
    def kernel_code(self) -> Kernel | None:
        """That of the likelihood, if the kernel knows its zeros."""
        odds = self.zero_odds
        return self._add_zeros(*self.kernel_zeros, None if odds is None else np.log(odds))

    def of_rows(self, rows: Any) -> Self:
        """The same with the parameters of these rows, where each row has its own."""
        known = super().of_rows(rows)
        odds = known.zero_odds
        return known if np.ndim(odds) == 0 else replace(known, zero_odds=odds[rows])

    def log_zero(self, eta: Array) -> Array:
        """Log probability of a zero."""
        raise NotImplementedError

    def log_positive(self, eta: Array) -> Array:
        """Log of the factor by which all other densities change."""
        raise NotImplementedError

    def log_density(self, y: Array, eta: Array) -> Array:
        """Of zeros their own, of others the likelihood's times a factor."""
        with np.errstate(all="ignore"):
            other = self.log_positive(eta) + self.likelihood.log_density(y, eta)
            return np.where(y == 0.0, self.log_zero(eta), other)

    def distribution(self, eta: Array) -> Any:
        """That of the likelihood, with this probability of 0."""
        eta = self._near(eta)
        given, zero = self.likelihood.distribution(eta), np.exp(self.log_zero(eta))
        kind = CountsWithZeros if hasattr(given, "logpmf") else WithZeros
        return kind(given, zero, np.exp(self.log_positive(eta)))

    def mean(self, eta: Array) -> Array:
        """Mean of the likelihood, times the factor."""
        eta = self._near(eta)
        return np.asarray(np.exp(self.log_positive(eta)) * self.likelihood.mean(eta))

    def _near(self, eta: Array) -> Array:
        """The eta (n,) for which floats have the same distribution."""
        return eta


@dataclass(frozen=True)
class ZeroInflated(Zeros):
    """A count, or a 0 for a reason of its own: some go fishing and catch none, some do not fish.

    P(0) = p + (1 - p) f(0) and P(y) = (1 - p) f(y), where p = odds / (1 + odds) (Lambert 1992).

    Parameters
    ----------
    likelihood : Likelihood
        Of a count, as ``Poisson()``. What it leaves open is learned.
    zero_odds : float, optional
        Odds of a zero of the second kind, positive. None: they are learned; their log is
        Normal(-1, 1.5^2) before data.

    Examples
    --------
    >>> from posterity import BayesianGeneralizedLinear
    >>> from posterity.likelihoods import Poisson
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 1))
    >>> y = rng.poisson(np.exp(1.0 + 0.5 * X[:, 0])) * (rng.random(500) < 0.7)
    >>> model = BayesianGeneralizedLinear(ZeroInflated(Poisson())).fit(X, y)
    >>> model.coef_.round(1), model.likelihood_parameters_["zero_odds"].median().round(1)
    (array([0.5]), np.float64(0.5))
    """

    prior: ClassVar[LogNormalParameter] = LogNormalParameter("zero_odds", -1.0, 1.5)
    kernel_zeros: ClassVar[tuple[tuple[int, ...], int]] = COUNTS, 32

    def log_zero(self, eta: Array) -> Array:
        """log(p + (1 - p) f(0))."""
        none = self.likelihood.log_density(np.zeros(()), eta)
        return np.asarray(np.logaddexp(none, np.log(self.zero_odds)) - np.log1p(self.zero_odds))

    def log_positive(self, eta: Array) -> Array:
        """log(1 - p)."""
        return np.zeros_like(eta) - np.log1p(self.zero_odds)

    def derivatives(self, y: Array, eta: Array) -> tuple[Array, Array]:
        """The likelihood's, those of zeros times the probability w that they are its own.

        And less w (1 - w) times the square of the slope.
        """
        slope, curvature = self.likelihood.derivatives(y, eta)
        none = self.likelihood.log_density(np.zeros(()), eta)
        own = np.where(y == 0.0, expit(none - np.log(self.zero_odds)), 1.0)
        bend = own * (curvature - (1.0 - own) * slope * slope)
        return own * slope, np.maximum(np.nan_to_num(bend), 0.0)

    def check_targets(self, y: Array) -> None:
        """Raise ``ValueError`` unless all are known to the likelihood."""
        self.likelihood.check_targets(y)


@dataclass(frozen=True)
class Hurdle(Zeros):
    """Nothing, or an amount or count that is more: two questions, each with an answer of its own.

    P(0) = p = odds / (1 + odds), and f(y) (1 - p) / (1 - F(0)) of others (Mullahy 1986): eta says
    how much there is where there is something, and the odds are the same for all rows.

    Parameters
    ----------
    likelihood : Likelihood
        Of a count or amount, as ``Poisson()`` or ``Gamma()``. What it leaves open is learned.
    zero_odds : float, optional
        Odds of a zero, positive. None: they are learned; their log is Normal(0, 2^2) before data.

    Examples
    --------
    >>> from posterity import BayesianGeneralizedLinear
    >>> from posterity.likelihoods import Gamma
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 1))
    >>> y = rng.gamma(2.0, np.exp(0.5 * X[:, 0])) * (rng.random(500) < 0.5)
    >>> model = BayesianGeneralizedLinear(Hurdle(Gamma())).fit(X, y)
    >>> model.coef_.round(1), model.likelihood_parameters_["zero_odds"].median().round(0)
    (array([0.5]), np.float64(1.0))
    """

    prior: ClassVar[LogNormalParameter] = LogNormalParameter("zero_odds", 0.0, 2.0)
    kernel_zeros: ClassVar[tuple[tuple[int, ...], int]] = SOME, 64

    def log_zero(self, eta: Array) -> Array:
        """log p."""
        return np.zeros_like(eta) + log_expit(np.log(self.zero_odds))

    def log_positive(self, eta: Array) -> Array:
        """log((1 - p) / (1 - F(0)))."""
        return np.asarray(log_expit(-np.log(self.zero_odds)) - self._log_above(eta))

    def derivatives(self, y: Array, eta: Array) -> tuple[Array, Array]:
        """The likelihood's, those of log(1 - F(0)) by differences; zeros say nothing of eta."""
        slope, curvature = self.likelihood.derivatives(np.where(y == 0.0, 1.0, y), eta)
        rise, bend = find_differences(self._log_above, eta)
        above, curved = np.isfinite(rise) & (y > 0.0), np.maximum(curvature + bend, 0.0)
        return np.where(above, slope - rise, 0.0), np.where(above, curved, 0.0)

    def _log_above(self, eta: Array) -> Array:
        """log(1 - F(0)); a count too rare for floats is 1, if it is not 0."""
        with np.errstate(all="ignore"):
            zero = np.zeros(())
            return self._tail(self.likelihood.log_tails(zero, eta)[1], np.ones(()), eta)

    def _near(self, eta: Array) -> Array:
        """Where a count above 0 is so rare that more than 1 has no digits, one that is no rarer."""
        return eta - np.minimum(self._log_above(eta) - RAREST, 0.0)

    def start(self, y: Array) -> Array:
        """Starting values of the likelihood: zeros, which say nothing of eta, have the mean."""
        some = y > 0.0
        return super().start(np.where(some, y, np.mean(y[some]) if some.any() else 1.0))

    def check_targets(self, y: Array) -> None:
        """Raise ``ValueError`` unless others than zeros are positive, and the likelihood's."""
        named_row(y, y >= 0.0, "under a hurdle a target is 0 or positive")
        self._check_some(y, y > 0.0)
