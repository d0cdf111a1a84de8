"""Posteriors of the expected rewards of K arms, in n contexts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm

from posterity.aliases import Array, Mask
from posterity.bandits.probability_best import (
    probability_best,
    shares_by_draws,
    shares_by_quadrature,
    shares_of_best,
)
from posterity.distributions import Normal, StudentT
from posterity.distributions._limits import is_ordinary
from posterity.distributions._standard_t import variance
from posterity.kernel import best_arms, information_directed_shares


@dataclass(frozen=True)
class Beliefs:
    """Expected rewards of arms with independent posteriors.

    Parameters
    ----------
    arms
        A distribution over n rows for each of K arms.
    allowed
        (n, K) which arms may be chosen; at least one in each row.

    Examples
    --------
    >>> from posterity.distributions import Normal
    >>> beliefs = Beliefs([Normal([0.0], [1.0]), Normal([1.0], [1.0])], np.ones((1, 2), dtype=bool))
    >>> beliefs.mean, beliefs.sample(5, np.random.default_rng(0)).shape
    (array([[0., 1.]]), (5, 1, 2))
    """

    arms: Sequence[Any]
    allowed: Mask

    are_independent: ClassVar[bool] = True

    @cached_property
    def mean(self) -> Array:
        """(n, K) means."""
        return np.stack([arm.mean() for arm in self.arms], axis=1)

    @cached_property
    def std(self) -> Array:
        """(n, K) standard deviations."""
        return np.stack([arm.std() for arm in self.arms], axis=1)

    @cached_property
    def unknown(self) -> Mask:
        """(n, K) allowed arms of which nothing is known."""
        return self.allowed & np.stack([arm.is_flat() for arm in self.arms], axis=1)

    @property
    def first(self) -> Mask:
        """(n, K) allowed arms that come before all others."""
        return self.unknown

    def probability_best(self) -> Array:
        """(n, K) probabilities of being the best, by quadrature."""
        return probability_best(self.arms, self.allowed)

    def information_directed_shares(self, n_draws: int, rng: np.random.Generator) -> Array:
        """(n, K) shares of the two arms that pay least for what they tell, by quadrature."""
        return shares_by_quadrature(self.arms, self.allowed)

    def of(self, rows: Mask) -> Beliefs:
        """Return the posteriors in some of the contexts."""
        return Beliefs([arm[rows] for arm in self.arms], self.allowed[rows])

    def scale_deviations(self, by: float) -> Beliefs:
        """The same, all values so many times as far from their means."""
        if by == 1.0:
            return self
        return Beliefs([ScaledDistribution(arm, by) for arm in self.arms], self.allowed)

    def quantile_margins(self, level: float) -> Array:
        """(n, K) quantiles less the means."""
        return np.asarray(self.quantile(level) - self.mean)

    def shift(self, by: Array, allowed: Mask) -> Beliefs:
        """The same, of each of K arms so much more, for arms that are allowed."""
        if not by.any():
            return Beliefs(self.arms, allowed)
        moved = [
            ScaledDistribution(arm, 1.0, more) for arm, more in zip(self.arms, by, strict=True)
        ]
        return Beliefs(moved, allowed)

    def bound(self, weights: Array, level: float) -> Array:
        """(n,) quantiles of sums over arms with weights (n, K), as of normal distributions."""
        return _bound(self, weights, level)

    def quantile(self, level: float) -> Array:
        """(n, K) quantiles."""
        return np.stack([arm.ppf(level) for arm in self.arms], axis=1)

    def sample(self, size: int, rng: np.random.Generator) -> Array:
        """(size, n, K) joint draws."""
        return np.stack([_draw_arm(arm, size, rng) for arm in self.arms], axis=2)


@dataclass(frozen=True)
class StudentBeliefs:
    """The same where each arm's expected reward is Student-t, or normal.

    Parameters
    ----------
    mean, scale, df
        (n, K) locations, scales, and degrees of freedom; these infinite: normal.
    allowed
        (n, K) which arms may be chosen.
    untried
        (n, K) which arms had too few rewards to be compared: those that are allowed come first.

    Examples
    --------
    >>> from posterity.distributions import Normal
    >>> arms = [Normal([0.0], [1.0]), Normal([1.0], [1.0])]
    >>> get_beliefs(arms, np.ones((1, 2), dtype=bool)).probability_best().round(6)
    array([[0.23975, 0.76025]])
    """

    mean: Array
    scale: Array
    df: Array
    allowed: Mask
    untried: Mask | bool = False

    are_independent: ClassVar[bool] = True

    @cached_property
    def std(self) -> Array:
        """(n, K) standard deviations."""
        if self.scale.size and is_ordinary(self.scale, (self.df,)):
            with np.errstate(divide="ignore"):  # the variance of 2 degrees of freedom
                return np.asarray(np.sqrt(np.square(self.scale) * variance(self.df)))
        return np.asarray(self._flat().std().reshape(self.mean.shape))

    @cached_property
    def unknown(self) -> Mask:
        """(n, K) allowed arms of which nothing is known."""
        return np.asarray(self.allowed & ~((self.scale < np.inf) & (self.df > 0.0)))

    @property
    def first(self) -> Mask:
        """(n, K) allowed arms that come before all others."""
        return np.asarray(self.unknown | (self.allowed & self.untried))

    def probability_best(self) -> Array:
        """(n, K) probabilities of being the best, by quadrature."""
        return best_arms(self.mean, self.scale, self.df, self.allowed.view(np.uint8))[0]

    def information_directed_shares(self, n_draws: int, rng: np.random.Generator) -> Array:
        """(n, K) shares of the two arms that pay least for what they tell, by quadrature."""
        return information_directed_shares(
            self.mean, self.scale, self.df, self.allowed.view(np.uint8)
        )[0]

    def of(self, rows: Mask) -> StudentBeliefs:
        """Return the posteriors in some of the contexts."""
        return StudentBeliefs(
            self.mean[rows],
            self.scale[rows],
            self.df[rows],
            self.allowed[rows],
            np.broadcast_to(self.untried, self.allowed.shape)[rows],
        )

    def scale_deviations(self, by: float) -> StudentBeliefs:
        """The same, all values so many times as far from their means."""
        return replace(self, scale=by * self.scale)

    def shift(self, by: Array, allowed: Mask) -> StudentBeliefs:
        """The same, of each of K arms so much more, for arms that are allowed."""
        return replace(self, mean=self.mean + by, allowed=np.ascontiguousarray(allowed))

    def bound(self, weights: Array, level: float) -> Array:
        """(n,) quantiles of sums over arms with weights (n, K), as of normal distributions."""
        return _bound(self, weights, level)

    def quantile(self, level: float) -> Array:
        """(n, K) quantiles."""
        return np.asarray(self.mean + self.quantile_margins(level))

    def quantile_margins(self, level: float) -> Array:
        """(n, K) quantiles less the means; 0 where nothing is known."""
        known = np.where(self.scale < np.inf, self.scale, 0.0)
        scales = {df: scales_at(level, df) for df in set(self.df.flat)}
        if len(scales) == 1:
            return np.asarray(scales.popitem()[1] * known)
        return np.array([scales[df] for df in self.df.flat]).reshape(known.shape) * known

    def sample(self, size: int, rng: np.random.Generator) -> Array:
        """(size, n, K) joint draws; the mean where nothing is known."""
        shape = (size, *self.mean.shape)
        draws = np.empty(shape)
        normal = np.broadcast_to(np.isinf(self.df), shape)
        df = np.broadcast_to(np.maximum(self.df, 1e-3), shape)
        draws[normal] = rng.standard_normal(int(normal.sum()))
        draws[~normal] = rng.standard_t(df[~normal])
        return np.asarray(self.mean + np.where(self.scale < np.inf, self.scale, 0.0) * draws)

    def _flat(self) -> StudentT:
        return StudentT(self.df.ravel(), self.mean.ravel(), self.scale.ravel())


def _bound(beliefs: Beliefs | StudentBeliefs, weights: Array, level: float) -> Array:
    part = weights != 0.0
    with np.errstate(invalid="ignore"):
        spread = np.where(part, np.square(weights * beliefs.std), 0.0).sum(axis=1)
    mean = np.where(part, weights * beliefs.mean, 0.0).sum(axis=1)
    known = ~np.any(part & beliefs.unknown, axis=1) & np.isfinite(spread)
    return np.where(known, mean + norm.ppf(level) * np.sqrt(np.where(known, spread, 0.0)), np.inf)


@lru_cache(maxsize=256)
def scales_at(level: float, df: float) -> float:
    """A quantile of Student's t distribution; 0 without degrees of freedom.

    Examples
    --------
    >>> round(scales_at(0.975, 10.0), 3)
    2.228
    """
    return float(StudentT([df]).ppf(level)[0]) if df > 0.0 else 0.0


def get_beliefs(arms: Sequence[Any], allowed: Mask) -> Beliefs | StudentBeliefs:
    """Beliefs of distributions over n rows, one for each arm."""
    if not all(type(arm) in (Normal, StudentT) for arm in arms):
        return Beliefs(arms, allowed)
    parts = (
        [arm.loc for arm in arms],
        [arm.scale for arm in arms],
        [getattr(arm, "df", np.inf) for arm in arms],
    )
    n = len(allowed)
    mean, scale, df = (
        np.stack([np.broadcast_to(one, n) for one in part], axis=1) for part in parts
    )
    return StudentBeliefs(mean, scale, df, np.ascontiguousarray(allowed))


@dataclass(frozen=True)
class ScaledDistribution:
    """A distribution over n rows, its values so many times as far from their means, and shifted.

    Examples
    --------
    >>> from posterity.distributions import Normal
    >>> ScaledDistribution(Normal([1.0], [1.0]), 0.5).ppf(0.841345).round(3)
    array([1.5])
    """

    distribution: Any
    factor: float
    shift: float = 0.0

    def __getitem__(self, rows: Any) -> ScaledDistribution:
        return ScaledDistribution(self.distribution[rows], self.factor, self.shift)

    def is_flat(self) -> Mask:
        """(n,) whether nothing is known."""
        return np.asarray(self.distribution.is_flat())

    def mean(self) -> Array:
        """(n,) means."""
        return np.asarray(self.distribution.mean()) + self.shift

    def std(self) -> Array:
        """(n,) standard deviations."""
        return np.asarray(self.factor * self.distribution.std())

    def cdf(self, x: ArrayLike) -> Array:
        """(..., n) probabilities of values below."""
        return np.asarray(self.distribution.cdf(self._before(x)))

    def pdf(self, x: ArrayLike) -> Array:
        """(..., n) densities."""
        return np.asarray(self.distribution.pdf(self._before(x)) / self.factor)

    def ppf(self, q: ArrayLike) -> Array:
        """(..., n) quantiles."""
        return self.mean() + self.factor * (self.distribution.ppf(q) - self.distribution.mean())

    def rvs(self, size: Any, random_state: np.random.Generator) -> Array:
        """Draws."""
        draws = self.distribution.rvs(size, random_state=random_state)
        return self.mean() + self.factor * (draws - self.distribution.mean())

    def _before(self, x: ArrayLike) -> Array:
        off = np.asarray(x, dtype=np.float64) - self.mean()
        return np.asarray(self.distribution.mean() + off / self.factor)


@dataclass(frozen=True)
class JointBeliefs:
    """Expected rewards of arms that share coefficients, as draws of all of them together.

    Parameters
    ----------
    draws
        (M, n, K) joint draws.
    mean
        (n, K) means.
    allowed
        (n, K) which arms may be chosen.
    """

    draws: Array
    mean: Array
    allowed: Mask

    are_independent: ClassVar[bool] = False

    @cached_property
    def std(self) -> Array:
        """(n, K) standard deviations of the draws."""
        return np.asarray(np.std(self.draws, axis=0))

    @property
    def unknown(self) -> Mask:
        """(n, K): none, for something is drawn of each."""
        return np.zeros_like(self.allowed)

    first = unknown

    def probability_best(self) -> Array:
        """(n, K) shares of the draws in which each arm is the best."""
        return shares_of_best(self.draws, self.allowed)

    def information_directed_shares(self, n_draws: int, rng: np.random.Generator) -> Array:
        """(n, K) shares of the two arms that pay least for what they tell, from draws."""
        return shares_by_draws(self.sample(n_draws, rng), self.allowed)

    def of(self, rows: Mask) -> JointBeliefs:
        """Return the posteriors in some of the contexts."""
        return JointBeliefs(self.draws[:, rows], self.mean[rows], self.allowed[rows])

    def scale_deviations(self, by: float) -> JointBeliefs:
        """The same, all draws so many times as far from their means."""
        return JointBeliefs(self.mean + by * (self.draws - self.mean), self.mean, self.allowed)

    def quantile_margins(self, level: float) -> Array:
        """(n, K) quantiles less the means."""
        return np.asarray(self.quantile(level) - self.mean)

    def shift(self, by: Array, allowed: Mask) -> JointBeliefs:
        """The same, of each of K arms so much more, for arms that are allowed."""
        return JointBeliefs(self.draws + by, self.mean + by, allowed)

    def bound(self, weights: Array, level: float) -> Array:
        """(n,) quantiles of sums over arms with weights (n, K)."""
        sums = np.einsum("mnk,nk->mn", self.draws, weights)
        return np.asarray(np.quantile(sums, level, axis=0))

    def quantile(self, level: float) -> Array:
        """(n, K) quantiles of the draws."""
        return np.asarray(np.quantile(self.draws, level, axis=0))

    def sample(self, size: int, rng: np.random.Generator) -> Array:
        """(size, n, K): the draws that there are, each as often as any other."""
        if size == len(self.draws):
            return self.draws
        return self.draws[rng.integers(len(self.draws), size=size)]


def _draw_arm(arm: Any, size: int, rng: np.random.Generator) -> Array:
    """(size, n) draws of an arm; 0 where nothing is known of it, and it can't be chosen."""
    flat = arm.is_flat()
    if not flat.any():
        return np.asarray(arm.rvs((size, len(flat)), random_state=rng))
    draws = np.zeros((size, len(flat)))
    some = np.flatnonzero(~flat)
    draws[:, some] = arm[some].rvs((size, len(some)), random_state=rng)
    return draws
