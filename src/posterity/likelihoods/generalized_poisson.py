"""The likelihood of counts of events each of which may lead to others."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from scipy.special import gammaln

from posterity.likelihoods.counts import LEAST_SIZE, Counts, rate_of
from posterity.likelihoods.likelihood import keep_positive
from posterity.likelihoods.parameter import LogNormalParameter

Array = NDArray[np.float64]

# Probabilities of a larger mean are those of a negative binomial of the same two moments.
MOST_SUMMED = 2000.0
# Sums go no further.
FURTHEST = 100_000


@dataclass(frozen=True)
class GeneralizedPoisson(Counts):
    """A count of the rate exp(eta) and the variance (1 + excess)^2 rate.

    As of all who fall ill where each infects others: the tail is longer than that of
    :class:`LinearNegativeBinomial`. With theta = rate / (1 + excess) and share = excess /
    (1 + excess), P(y) = theta (theta + share y)^(y - 1) exp(-theta - share y) / y! (Consul and
    Jain 1973).

    Parameters
    ----------
    excess : float, optional
        Positive; towards 0 this becomes :class:`Poisson`. None: it is learned together with the
        coefficients; log(excess) is Normal(-1, 1.5^2) before data.

    Raises
    ------
    ValueError
        For an excess that is not positive and finite.

    Examples
    --------
    >>> import numpy as np
    >>> GeneralizedPoisson(0.5).distribution(np.log([2.0])).var()
    array([4.5])
    """

    prior: ClassVar[LogNormalParameter] = LogNormalParameter("excess", -1.0, 1.5)

    excess: Any = None

    def __post_init__(self) -> None:
        given = self.excess
        if given is not None and not np.all((given > 0.0) & (given < np.inf)):
            raise ValueError(f"excess is {given}: it must be positive and finite, or None")

    @property
    def parameters(self) -> tuple[LogNormalParameter, ...]:
        """The excess, on which the intercept depends."""
        return (self.prior,)

    @property
    def learns_parameter(self) -> bool:
        """True if it is not given."""
        return self.excess is None

    def with_parameter(self, value: Any) -> Self:
        """The same with this excess (1,), or one of each row (n, 1)."""
        return replace(self, excess=value[..., 0])

    def of_rows(self, rows: Any) -> Self:
        """The same with the excess of these rows, where each row has its own."""
        return self if np.ndim(self.excess) == 0 else replace(self, excess=self.excess[rows])

    @property
    def share(self) -> Any:
        """How many others each infects, on average."""
        return self.excess / (1.0 + self.excess)

    def first_cases(self, eta: Array) -> Array:
        """Theta, the mean number of those whom nobody infected."""
        return np.maximum(rate_of(eta) / (1.0 + self.excess), LEAST_SIZE)

    def log_density(self, y: Array, eta: Array) -> Array:
        """log theta + (y - 1) log(theta + share y) - theta - share y - log y!."""
        theta = self.first_cases(eta)
        total = theta + self.share * y
        return np.log(theta) + (y - 1.0) * np.log(total) - total - gammaln(y + 1.0)

    def derivatives(self, y: Array, eta: Array) -> tuple[Array, Array]:
        """1 + (y - 1) theta / (theta + share y) - theta, and its curvature."""
        theta = self.first_cases(eta)
        own = theta / (theta + self.share * y)
        bend = theta - (y - 1.0) * own * (1.0 - own)
        return 1.0 + (y - 1.0) * own - theta, keep_positive(bend, theta / (1.0 + self.excess))

    def distribution(self, eta: Array) -> Any:
        """Generalized Poisson of the mean exp(eta)."""
        return GeneralizedPoissonCounts(self, np.asarray(eta))

    def log_tails(self, y: Array, eta: Array) -> tuple[Array, Array]:
        """From the sum of the probabilities."""
        below = self.distribution(eta).cdf(y)
        with np.errstate(divide="ignore"):
            return np.log(below), np.log1p(-below)


class GeneralizedPoissonCounts:
    """Generalized Poisson distributions, as SciPy's frozen ones."""

    def __init__(self, likelihood: GeneralizedPoisson, eta: Array) -> None:
        self.likelihood, more = likelihood, (1.0 + likelihood.excess) ** 2
        self.eta, self.rate, more = np.broadcast_arrays(eta, rate_of(eta), more)
        self.variance = more * self.rate
        size = np.maximum(self.rate / (more - 1.0), LEAST_SIZE)
        self.of_many = stats.nbinom(size, 1.0 / more)

    def logpmf(self, y: ArrayLike) -> Array:
        """Log probability."""
        y = np.asarray(y, dtype=np.float64)
        whole = (y >= 0.0) & (y == np.floor(y))
        return np.where(
            whole, self.likelihood.log_density(np.where(whole, y, 0.0), self.eta), -np.inf
        )

    def mean(self) -> Array:
        """The rate exp(eta)."""
        return self.rate

    def var(self) -> Array:
        """(1 + excess)^2 times the rate."""
        return self.variance

    def cdf(self, y: ArrayLike) -> Array:
        """Sum of the probabilities up to y."""
        y, rate = np.broadcast_arrays(y, self.rate)
        few = (rate <= MOST_SUMMED) & (y >= 0.0)
        last = min(np.max(y[few], initial=-1.0), FURTHEST)
        found = np.where(few, 0.0, self.of_many.cdf(y))
        for number, below in self._add_up():
            if number > last:
                break
            found = np.where(few & (number <= y), below, found)
        return found

    def sf(self, y: ArrayLike) -> Array:
        """Probability of more."""
        return 1.0 - self.cdf(y)

    def ppf(self, q: ArrayLike) -> Array:
        """The least count up to which the probability is at least q."""
        q, rate = np.broadcast_arrays(q, self.rate)
        few = (rate <= MOST_SUMMED) & (q > 0.0) & (q < 1.0)
        found = np.where(few, 0.0, self.of_many.ppf(q))
        for number, below in self._add_up():
            short = few & (below < q)
            if not short.any() or number > FURTHEST:
                break
            found = found + short
        return found

    def isf(self, q: ArrayLike) -> Array:
        """The least count up to which the probability is at least 1 - q."""
        return self.ppf(1.0 - np.asarray(q))

    def rvs(self, size: Any = None, random_state: Any = None) -> Array:
        """Draws: a Poisson number of first cases, and those whom each generation infects."""
        rng = np.random.default_rng(random_state)
        new = rng.poisson(self.likelihood.first_cases(self.eta), size)
        total = new
        while np.any(new):
            new = rng.poisson(self.likelihood.share * new)
            total = total + new
        return np.asarray(total)

    def _add_up(self) -> Iterator[tuple[int, Array]]:
        """Each count, and the probability of at most as many."""
        below = np.zeros(self.rate.shape)
        for number in itertools.count():
            below = below + np.exp(self.likelihood.log_density(np.float64(number), self.eta))
            yield number, below
