"""Policies: they turn posteriors of rewards into the probabilities of choosing each arm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from posterity.aliases import AnyArray, Array, Indices, Mask
from posterity.bandits.beliefs import StudentBeliefs, scales_at
from posterity.bandits.decisions import Numbers, draw_rankings
from posterity.bandits.probability_best import shares_of_best
from posterity.bandits.rising import AnyBeliefs
from posterity.kernel import choose_arms, envelope_shares

# Draws that a policy takes.
DRAWS = 64
# The quantile that is one standard deviation above the mean of a normal distribution.
ONE_SD_QUANTILE = 0.841
# What compiled code compares arms by: draws; bounds; bounds whose width is drawn for all together.
DRAWN, BOUND, DRAWN_BOUND = 0, 1, 2


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Base class of policies.

    Parameters
    ----------
    floor
        Probability, between 0 and 1, that is shared by all arms alike, whatever is believed: each
        of K has at least ``floor / K``, also while nothing is known of some. Without it some arms
        are never seen again, and no log tells what another policy would have earned.
    """

    floor: float = 0.02

    def __post_init__(self) -> None:
        if not 0.0 <= self.floor <= 1.0:
            raise ValueError(f"floor is {self.floor}: it must lie between 0 and 1, as in 0.02")

    def propensities(self, beliefs: AnyBeliefs, rng: np.random.Generator) -> Array:
        """(n, K) probabilities of all arms; those that are not allowed have 0.

        Arms of which too little is known come first, all alike, but for the floor.
        """
        allowed, first = beliefs.allowed, beliefs.first
        preferences = first / np.maximum(first.sum(axis=1, keepdims=True), 1)
        known = np.asarray(~first.any(axis=1))
        if known.any():
            some = beliefs if known.all() else beliefs.of(known)
            preferences[known] = self._compute_preferences(some, rng)
        uniform = allowed / allowed.sum(axis=1, keepdims=True)
        return np.asarray((1.0 - self.floor) * preferences + self.floor * uniform)

    def choose(self, beliefs: AnyBeliefs, numbers: Numbers) -> tuple[Indices, Array | None]:
        """Arms (n,), and the probabilities (n, K) that they were picked from.

        None instead where these hang on the beliefs alone: :meth:`propensities` tells them then.
        """
        first = beliefs.first
        compared = None if first.any() else self.compare(beliefs)
        if compared is None:
            propensities = self.propensities(beliefs, numbers.rng)
            return draw_rankings(propensities, 1, numbers.rng)[:, 0], propensities
        (kind, mean, width), allowed = compared, beliefs.allowed.view(np.uint8)
        drawn = kind, self.floor, numbers.seed, numbers.number
        return choose_arms(mean, width, allowed, first.view(np.uint8), *drawn), None

    def compare(self, beliefs: AnyBeliefs) -> tuple[int, Array, Array] | None:
        """What arms are compared by, where something is known of all: the largest is chosen.

        A ``BOUND``, or a ``DRAWN_BOUND``, with means (n, K), and widths (n, K) above them; None
        where a policy chooses in another way.
        """
        return None

    def find_kernel_policy(self, df: float) -> tuple[int, float] | None:
        """Return the policy's code in :meth:`posterity.kernel.ArmsPath.decide`, if it has one."""
        return None

    def _compute_preferences(self, beliefs: AnyBeliefs, rng: np.random.Generator) -> Array:
        """The same without the floor, where something is known of all arms."""
        compared = self.compare(beliefs)
        if compared is None:
            raise NotImplementedError
        mean, width = map(np.ascontiguousarray, compared[1:])
        return envelope_shares(
            mean, width, np.ascontiguousarray(beliefs.allowed).view(np.uint8), 1.0
        )


@dataclass(frozen=True, kw_only=True)
class ThompsonSampling(Policy):
    """Choose each arm with its posterior probability of being the best (Thompson 1933).

    Arms with models of their own are picked by one draw of each; the probabilities of that are
    integrals, which are worked out when they are asked for. Where arms share coefficients, the
    probabilities are shares of a few joint draws, and the arm is picked from these very shares:
    they are exact as propensities, and on average those of Thompson sampling.

    Parameters
    ----------
    width
        Draws lie so many times as far from the mean; less than 1 explores less.

    Examples
    --------
    >>> from posterity.bandits.beliefs import get_beliefs
    >>> from posterity.distributions import Normal
    >>> arms = [Normal([0.0], [1.0]), Normal([9.0], [1.0])]
    >>> beliefs = get_beliefs(arms, np.ones((1, 2), dtype=bool))
    >>> ThompsonSampling().propensities(beliefs, np.random.default_rng(0)).round(6)
    array([[0.01, 0.99]])
    """

    width: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < self.width < np.inf:
            raise ValueError(f"width is {self.width}: it must be above 0, as in 0.5")

    def find_kernel_policy(self, df: float) -> tuple[int, float] | None:
        """See :class:`Policy`."""
        return DRAWN, self.width

    def choose(self, beliefs: AnyBeliefs, numbers: Numbers) -> tuple[Indices, Array | None]:
        """See :class:`Policy`."""
        if not beliefs.are_independent:
            return super().choose(beliefs, numbers)
        first, rng = beliefs.first, numbers.rng
        floored = rng.random(len(first)) < self.floor
        comes_first = np.asarray(first.any(axis=1)) & ~floored
        may = np.where(comes_first[:, None], first, beliefs.allowed)
        anything = comes_first | floored
        draws = np.where(may, rng.random(may.shape), -np.inf)
        if not anything.all():
            wide = beliefs.of(~anything).scale_deviations(self.width)
            draws[~anything] = np.where(may[~anything], wide.sample(1, rng)[0], -np.inf)
        best = draws == draws.max(axis=1, keepdims=True)
        return np.where(best, rng.random(best.shape), -1.0).argmax(axis=1), None

    def _compute_preferences(self, beliefs: AnyBeliefs, rng: np.random.Generator) -> Array:
        return beliefs.scale_deviations(self.width).probability_best()


@dataclass(frozen=True, kw_only=True)
class UpperConfidenceBound(Policy):
    """Choose the arm of the largest upper quantile (Kaufmann, Cappe and Garivier 2012).

    Parameters
    ----------
    level
        Of the quantile, between 0.5 (greedy) and 1; the default is one standard deviation above
        the mean of a normal distribution.
    """

    level: float = ONE_SD_QUANTILE

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.5 <= self.level < 1.0:
            raise ValueError(f"level is {self.level}: it must be 0.5 or more, and below 1")

    def find_kernel_policy(self, df: float) -> tuple[int, float] | None:
        """See :class:`Policy`."""
        return BOUND, scales_at(self.level, df)

    def compare(self, beliefs: AnyBeliefs) -> tuple[int, Array, Array]:
        """See :class:`Policy`."""
        bound = beliefs.quantile(self.level)
        return BOUND, bound, np.zeros_like(bound)


@dataclass(frozen=True, kw_only=True)
class RandomizedUpperConfidenceBound(Policy):
    r"""Choose the arm of the largest bound, whose width is drawn (Vaswani and others 2020).

    The bound is the mean and :math:`z` standard deviations, with one :math:`z` for all arms, half a
    normal distribution's. So arms are the best on intervals of z, and their probabilities are in
    closed form. A standard deviation is that of a normal distribution with the same quantile of
    0.841.

    Parameters
    ----------
    width
        Times so many.

    Examples
    --------
    >>> from posterity.bandits.beliefs import get_beliefs
    >>> from posterity.distributions import Normal
    >>> arms = [Normal([0.0], [1.0]), Normal([0.5], [0.5])]
    >>> beliefs = get_beliefs(arms, np.ones((1, 2), dtype=bool))
    >>> policy = RandomizedUpperConfidenceBound()
    >>> policy.propensities(beliefs, np.random.default_rng(0)).round(2)
    array([[0.32, 0.68]])
    """

    width: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < self.width < np.inf:
            raise ValueError(f"width is {self.width}: it must be above 0, as in 0.5")

    def find_kernel_policy(self, df: float) -> tuple[int, float] | None:
        """See :class:`Policy`."""
        return DRAWN_BOUND, self.width * scales_at(ONE_SD_QUANTILE, df)

    def compare(self, beliefs: AnyBeliefs) -> tuple[int, Array, Array]:
        """See :class:`Policy`."""
        spread = np.maximum(beliefs.quantile_margins(ONE_SD_QUANTILE), 0.0)
        return DRAWN_BOUND, beliefs.mean, self.width * spread


@dataclass(frozen=True, kw_only=True)
class Greedy(Policy):
    """Choose the arm of the largest expected reward."""

    def find_kernel_policy(self, df: float) -> tuple[int, float] | None:
        """See :class:`Policy`."""
        return BOUND, 0.0

    def compare(self, beliefs: AnyBeliefs) -> tuple[int, Array, Array]:
        """See :class:`Policy`."""
        return BOUND, beliefs.mean, np.zeros_like(beliefs.mean)


@dataclass(frozen=True, kw_only=True)
class EpsilonGreedy(Greedy):
    """Choose the arm of the largest expected reward, or any arm with probability ``floor``."""

    floor: float = 0.1


@dataclass(frozen=True, kw_only=True)
class Softmax(Policy):
    """Choose arms with probabilities in proportion to exp(mean / temperature).

    Parameters
    ----------
    temperature
        In units of the reward.
    """

    temperature: float = 0.1

    def _compute_preferences(self, beliefs: AnyBeliefs, rng: np.random.Generator) -> Array:
        shown = np.where(beliefs.allowed, beliefs.mean, -np.inf)
        return np.asarray(softmax(shown / self.temperature, axis=1))


@dataclass(frozen=True, kw_only=True)
class InverseGap(Policy):
    """Choose arms less often the larger the gap to the best (SquareCB; Foster and Rakhlin 2020).

    Of K arms each but the best has 1 / (K + gamma gap), and the best has the rest. gamma is
    sqrt(K) over the root mean square of the arms' standard deviations, which are the regression's
    error: so it needs no schedule.
    """

    def _compute_preferences(self, beliefs: AnyBeliefs, rng: np.random.Generator) -> Array:
        allowed = beliefs.allowed
        mean = np.where(allowed, beliefs.mean, -np.inf)
        count = allowed.sum(axis=1, keepdims=True)
        best = mean.argmax(axis=1)[:, None]
        gap = np.where(allowed, np.take_along_axis(mean, best, axis=1) - mean, np.inf)
        spread = np.where(allowed, np.square(beliefs.std), 0.0).sum(axis=1, keepdims=True) / count
        with np.errstate(divide="ignore", invalid="ignore"):
            gamma = np.sqrt(count / spread)
            shares = np.where(gap > 0.0, 1.0 / (count + gamma * gap), 1.0 / count)
        shares = np.where(allowed, shares, 0.0)
        np.put_along_axis(shares, best, 0.0, axis=1)
        np.put_along_axis(shares, best, 1.0 - shares.sum(axis=1, keepdims=True), axis=1)
        return shares


@dataclass(frozen=True, kw_only=True)
class TopTwo(Policy):
    r"""Choose the best arm of a draw, or of another draw with another best arm (Russo 2020).

    For finding the best arm sooner than Thompson sampling would. Where arms are believed in
    independently, the probabilities are those of :class:`ThompsonSampling`, exact, and the second's
    is :math:`\sum_{b \ne a} p_b\, p_a / (1 - p_b)`.

    Parameters
    ----------
    share
        Probability of the first, between 0 and 1.
    n_draws
        Draws for each context, where arms share coefficients.
    """

    share: float = 0.5
    n_draws: int = DRAWS

    def _compute_preferences(self, beliefs: AnyBeliefs, rng: np.random.Generator) -> Array:
        allowed = beliefs.allowed
        if beliefs.are_independent:
            best, least = beliefs.probability_best(), 1e-12
        else:
            best = shares_of_best(beliefs.sample(self.n_draws, rng), allowed)
            least = 0.5 / self.n_draws
        # Where one arm always wins, the others come next, all alike.
        hope = (best + least) * allowed
        others = hope.sum(axis=1, keepdims=True) - hope
        odds = np.where(others > 0.0, hope / np.where(others > 0.0, others, 1.0), 0.0)
        second = hope * (odds.sum(axis=1, keepdims=True) - odds)
        total = second.sum(axis=1, keepdims=True)
        second = np.where(total > 0.0, second / np.where(total > 0.0, total, 1.0), best)
        return self.share * best + (1.0 - self.share) * second


@dataclass(frozen=True, kw_only=True)
class InformationDirected(Policy):
    """Minimise squared regret per information about the best arm, over pairs of arms.

    The ratio of squared expected regret to the variance that knowing the best arm would take from
    an arm's reward is minimised over all mixtures of two arms (Russo and Van Roy 2018). Where arms
    are believed in independently of each other, both are integrals.

    Parameters
    ----------
    n_draws
        Draws for each context, from which both are estimated where arms share coefficients.
    """

    n_draws: int = 4 * DRAWS

    def _compute_preferences(self, beliefs: AnyBeliefs, rng: np.random.Generator) -> Array:
        return beliefs.information_directed_shares(self.n_draws, rng)


def compute_student_propensities(
    policy: Policy,
    df: float,
    mean: Array,
    scale: Array,
    allowed: AnyArray,
    untried: Mask,
) -> Array:
    """(n, K) what a policy picks from, of Student-t beliefs with the same degrees of freedom.

    Of one context, arrays may be (K,).
    """
    mean, scale, allowed = np.atleast_2d(mean, scale, allowed)
    beliefs = StudentBeliefs(mean, scale, np.full(mean.shape, df), allowed.astype(bool), untried)
    return policy.propensities(beliefs, np.random.default_rng(0))
