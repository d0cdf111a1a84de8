"""Expected rewards that rise with a linear predictor, as probabilities do with log odds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from posterity.aliases import Array, Mask
from posterity.bandits.beliefs import Beliefs, JointBeliefs, StudentBeliefs
from posterity.bandits.mixed import MixedBeliefs
from posterity.distributions import Normal
from posterity.distributions.transformed import NODE_SHARES, NODES, Transformed
from posterity.likelihoods import Likelihood


@dataclass(frozen=True)
class RisingBeliefs:
    """Expected rewards of arms whose linear predictors are independent and normal.

    The best arm is that of the largest predictor, and quantiles are those of the predictors.

    Parameters
    ----------
    eta
        The linear predictors of all arms.
    likelihood
        Of rewards; its mean rises with the predictor.

    Examples
    --------
    >>> from posterity.likelihoods import Bernoulli
    >>> normal = np.array([[0.0, 1.0]]), np.ones((1, 2)), np.full((1, 2), np.inf)
    >>> beliefs = RisingBeliefs(StudentBeliefs(*normal, np.ones((1, 2), dtype=bool)), Bernoulli())
    >>> beliefs.mean.round(3), beliefs.probability_best().round(3)
    (array([[0.5  , 0.697]]), array([[0.24, 0.76]]))
    """

    eta: StudentBeliefs
    likelihood: Likelihood

    are_independent: ClassVar[bool] = True

    @property
    def allowed(self) -> Mask:
        """(n, K) which arms may be chosen."""
        return self.eta.allowed

    @cached_property
    def _values(self) -> Array:
        """(57, n, K) means of the likelihood at nodes, as :class:`Transformed` has them."""
        known = self.eta.scale < np.inf
        spread = np.where(known, self.eta.scale, 0.0)  # nothing is known of the others
        with np.errstate(over="ignore", under="ignore"):
            return self.likelihood.mean(self.eta.mean + NODES[:, None, None] * spread)

    @cached_property
    def mean(self) -> Array:
        """(n, K) means."""
        return self._average(self._values)

    @cached_property
    def std(self) -> Array:
        """(n, K) standard deviations."""
        with np.errstate(over="ignore", invalid="ignore"):
            variance = self._average(np.square(self._values - self.mean))
        known = (self.eta.scale < np.inf) & np.isfinite(variance)
        return np.sqrt(np.where(known, variance, np.inf))

    @property
    def unknown(self) -> Mask:
        """(n, K) allowed arms of which nothing is known."""
        return self.eta.unknown

    @property
    def first(self) -> Mask:
        """(n, K) allowed arms that come before all others."""
        return self.eta.first

    def probability_best(self) -> Array:
        """(n, K) probabilities of being the best, by quadrature."""
        return self.eta.probability_best()

    def information_directed_shares(self, n_draws: int, rng: np.random.Generator) -> Array:
        """(n, K) shares of the two arms that pay least for what they tell, by quadrature."""
        return self._apart().information_directed_shares(n_draws, rng)

    def of(self, rows: Mask) -> RisingBeliefs:
        """Return the posteriors in some of the contexts."""
        return replace(self, eta=self.eta.of(rows))

    def scale_deviations(self, by: float) -> RisingBeliefs:
        """The same, all predictors so many times as far from their means."""
        return self if by == 1.0 else replace(self, eta=self.eta.scale_deviations(by))

    def shift(self, by: Array, allowed: Mask) -> Any:
        """The same, of each of K arms so much more, for arms that are allowed."""
        return self._apart().shift(by, allowed)

    def bound(self, weights: Array, level: float) -> Array:
        """(n,) quantiles of sums over arms with weights (n, K), as of normal distributions."""
        return self._apart().bound(weights, level)

    def quantile(self, level: float) -> Array:
        """(n, K) quantiles."""
        return self.likelihood.mean(self.eta.quantile(level))

    def quantile_margins(self, level: float) -> Array:
        """(n, K) quantiles less the means."""
        return self.quantile(level) - self.mean

    def sample(self, size: int, rng: np.random.Generator) -> Array:
        """(size, n, K) joint draws."""
        return self.likelihood.mean(self.eta.sample(size, rng))

    # ---- inner ---------------------------------------------------------------------------------

    def _average(self, values: Array) -> Array:
        """(n, K) averages of values (57, n, K) at the nodes."""
        return np.asarray(NODE_SHARES @ values.reshape(len(NODES), -1)).reshape(values.shape[1:])

    def _transform(self, mean: Array, sd: Array) -> Transformed:
        return Transformed(Normal(mean, sd), self.likelihood.mean, self.likelihood.link_function)

    def _apart(self) -> Beliefs:
        """The same as a distribution for each arm."""
        each = zip(self.eta.mean.T, self.eta.scale.T, strict=True)
        return Beliefs([self._transform(mean, sd) for mean, sd in each], self.allowed)


AnyBeliefs = Beliefs | StudentBeliefs | JointBeliefs | RisingBeliefs | MixedBeliefs
