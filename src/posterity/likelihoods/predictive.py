"""Predictive distributions under any likelihood, averaged over eta."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from posterity.aliases import Array, Indices
from posterity.distributions.any_mixture import (
    AnyCounts,
    AnyMixture,
    AskedTogether,
    any_mixture,
)
from posterity.distributions.known_by_cdf import CountsKnownByCdf, KnownByCdf, solved_quantile
from posterity.distributions.mixing import get_matcher, get_mixer, match_column_moments
from posterity.likelihoods.averages import make_quadrature_rule
from posterity.likelihoods.observation import Observation
from posterity.likelihoods.sites import moment_sites

# Standard normal nodes of the trapezoidal rule, whose error vanishes faster than any power.
NODES = np.linspace(-7.0, 7.0, 113)[:, None]
SHARES = np.exp(-0.5 * np.square(NODES)) / np.exp(-0.5 * np.square(NODES)).sum()
# Share of a mean at the last node from which on a like part, or more, of it is beyond.
# Beyond the largest mean, exponentials have been cut off.
MOST_OUTSIDE, LARGEST_MEAN = 0.01, 1e100
# Where eta is known.
ONE_NODE, ONE_SHARE = np.zeros((1, 1)), np.ones((1, 1))
# Gauss and Hermite's rules, of which the first two that agree on a probability are enough, before
# the one of all nodes: to so much, in the tails to a share, down to a least probability. Two that
# reach no tail agree on it, too: a rule says nothing of less than the share of its last node.
RULES = (*(make_quadrature_rule(k) for k in (5, 9, 17)), (NODES[:, 0], SHARES[:, 0]))
AGREED, AGREED_SHARE, LEAST_TAIL = 1e-7, 0.01, 1e-10
# Ways in which eta, which may lower targets, and noise share a score: points of half a circle.
EACH_WAY = np.exp(1j * np.linspace(0.0, np.pi, 9))[:, None]
BLOCK_ROWS = 1024
LEEWAY = 1e-9


class Predictive(KnownByCdf):
    """Predictive distributions under any likelihood, where eta ~ Normal(mean, variance).

    By quadrature of ``likelihood.distribution(eta)`` over eta: the log density as moments
    are matched, probabilities by the first of a few rules that agree, the rest by 113 nodes.
    Quantiles are solved for; the CRPS and the expected shortfall are integrals of probabilities, to
    about three digits.

    Parameters
    ----------
    likelihood : Likelihood
        One that defines ``distribution``.
    eta_mean, eta_variance : (n,) arrays
        What is believed of eta; an infinite variance is a flat row.

    Examples
    --------
    >>> import numpy as np
    >>> from dataclasses import dataclass
    >>> from scipy import stats
    >>> from posterity.likelihoods import Likelihood
    >>> @dataclass(frozen=True)
    ... class Waiting(Likelihood):
    ...     def distribution(self, eta):
    ...         return stats.expon(scale=np.exp(eta))
    >>> predictive = Predictive(Waiting(), np.array([0.0, 1.0]), np.array([0.0, 0.25]))
    >>> predictive.mean().round(4), predictive.std().round(4)
    (array([1.    , 3.0802]), array([1.    , 3.8571]))
    >>> predictive.cdf(predictive.ppf(0.9)).round(6)
    array([0.9, 0.9])
    """

    __slots__ = ("eta_mean", "eta_variance", "likelihood")
    _block_rows = 1024

    def __init__(
        self, likelihood: Observation, eta_mean: ArrayLike, eta_variance: ArrayLike
    ) -> None:
        self.likelihood = likelihood
        self.eta_mean, self.eta_variance = np.broadcast_arrays(
            np.asarray(eta_mean, dtype=np.float64), np.asarray(eta_variance, dtype=np.float64)
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the rows."""
        return self.eta_mean.shape

    @classmethod
    def stack(cls, components: Sequence[Self]) -> Self:
        """Components (K) of the same n rows, under one likelihood, as one of (n, K)."""
        moments = [[one.eta_mean, one.eta_variance] for one in components]
        return cls(components[0].likelihood, *np.stack(moments, axis=-1))

    @staticmethod
    def mix(components: Sequence[Any], weights: Array) -> AnyMixture:
        """The mixture of these under one likelihood."""
        return MixedPredictive(components, weights)

    # ---- what families say of themselves ----

    def _rows(self, index: Any) -> Self:
        rows = self._numbers[index]
        return type(self)(
            self.likelihood.of_rows(rows), self.eta_mean[index], self.eta_variance[index]
        )

    def _flat(self) -> Any:
        return np.isinf(self.eta_variance).astype(np.float64)

    def _mean(self) -> Array:
        return self._each(type(self)._expect, np.zeros(()), self.eta_mean)

    def _median(self) -> Array:
        return np.where(self.is_flat(), self.eta_mean, self._ppf(np.asarray(0.5)))

    def _var(self) -> Array:
        return self._each(type(self)._vary, np.zeros(()), np.inf)

    def _logpdf(self, y: Array) -> Array:
        return self._each(type(self)._log_density, y, 0.0)

    def _cdf(self, y: Array) -> Array:
        return self._each(type(self)._probability, y, 0.5)

    def _solve(self, q: Array, slack: float) -> Array:
        ends = np.where(q < 0.5, -np.inf, np.where(q > 0.5, np.inf, self.eta_mean))
        return self._each(partial(type(self)._quantile, slack=slack), q, ends)

    def _guess(self, q: Array) -> Array:
        return self._each(type(self)._guess_rows, q, self.eta_mean)

    def _draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> Array:
        eta = self.eta_mean + np.sqrt(self.eta_variance) * rng.standard_normal(size)
        return np.asarray(
            self.likelihood.distribution(eta).rvs(size=size, random_state=rng), dtype=np.float64
        )

    # ---- inner ----

    def _each(self, formula: Callable[..., Array], values: Array, flat: ArrayLike) -> Array:
        """``formula(part, values, mean, std)`` of all rows (n,) that are not flat, in blocks."""
        together = np.broadcast_arrays(
            values, self.eta_mean, self.eta_variance, flat, self._numbers
        )
        shape, numbers = together[0].shape, together[4].ravel()
        value, mean, variance, result = (
            np.array(one, dtype=np.float64).ravel() for one in together[:4]
        )
        asked = np.flatnonzero(np.isfinite(variance) & ~np.isnan(value))
        result[np.isnan(value)] = np.nan
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of SciPy's distributions
            for alike in (asked[variance[asked] == 0.0], asked[variance[asked] > 0.0]):
                for start in range(0, len(alike), BLOCK_ROWS):
                    some = alike[start : start + BLOCK_ROWS]
                    likelihood = self.likelihood.of_rows(numbers[some])
                    part = type(self)(likelihood, mean[some], variance[some])
                    result[some] = formula(part, value[some], mean[some], np.sqrt(variance[some]))
        return np.asarray(result.reshape(shape)[()])

    @property
    def _numbers(self) -> Indices:
        """Numbers of the rows."""
        return np.arange(self.eta_mean.size).reshape(self.shape)

    def _expect(self, _: Array, mean: Array, std: Array) -> Array:
        """The mean: infinite where the outermost node has much of it, and so more is beyond."""
        nodes, shares = (NODES, SHARES) if std.any() else (ONE_NODE, ONE_SHARE)
        parts = shares * self.likelihood.distribution(mean + std * nodes).mean()
        centre, size = np.sum(parts, axis=0), np.sum(np.abs(parts), axis=0)
        lost = (np.abs(parts[-1]) > MOST_OUTSIDE * size) | (size > LARGEST_MEAN)
        lost &= len(nodes) > 1
        return np.asarray(np.where(lost, np.copysign(np.inf, centre), centre))

    def _vary(self, _: Array, mean: Array, std: Array) -> Array:
        observed = self.likelihood.distribution(mean + std * NODES)
        # Without a mean there is no variance, either.
        both = observed.var(), observed.mean()
        within, centre = (np.broadcast_to(part, (len(NODES), len(mean))) for part in both)
        between = np.square(centre - np.sum(SHARES * centre, axis=0))
        return np.nan_to_num(np.sum(SHARES * (within + between), axis=0), nan=np.inf)

    def _log_density(self, y: Array, mean: Array, std: Array) -> Array:
        return moment_sites(self.likelihood, y, mean, np.square(std)).log_normalizer

    def _probability(self, y: Array, mean: Array, std: Array) -> Array:
        """That of a target of at most y, by the first rule that agrees with a smaller one."""
        if not std.any():
            return self._sum_nodes(y, mean, std, ONE_NODE, ONE_SHARE)
        found, rows, part = np.full(len(y), np.nan), np.arange(len(y)), self
        for rule in RULES:
            nodes, shares = (each[:, None] for each in rule)
            finer = part._sum_nodes(y[rows], mean[rows], std[rows], nodes, shares)
            tail = np.minimum(finer, 1.0 - finer) + LEAST_TAIL
            agreed = np.abs(finer - found[rows]) <= np.minimum(AGREED, AGREED_SHARE * tail)
            agreed &= tail > shares[0]
            found[rows] = finer
            if agreed.all():
                break
            if agreed.any():
                part, rows = part._rows(~agreed), rows[~agreed]
        return np.clip(found, 0.0, 1.0)

    def _sum_nodes(self, y: Array, mean: Array, std: Array, nodes: Array, shares: Array) -> Array:
        below = self.likelihood.distribution(mean + std * nodes).cdf(y)
        return np.asarray(np.sum(shares * np.broadcast_to(below, (len(nodes), len(y))), axis=0))

    def _guess_rows(self, q: Array, mean: Array, std: Array) -> Array:
        """Of a sum of normals the one that is farthest out, as eta and noise share the score."""
        z, side = ndtri(q), np.where(q < 0.5, -1.0, 1.0)
        shared = self.likelihood.distribution(mean + std * z * EACH_WAY.real)
        return np.asarray(side * np.max(side * shared.ppf(ndtr(z * EACH_WAY.imag)), axis=0))

    def _quantile(self, q: Array, mean: Array, std: Array, slack: float) -> Array:
        """Least target whose probability is at least q, or one near.

        It lies between those of the outermost nodes, where targets grow with eta or fall.
        """
        for nodes in (NODES[[0, -1]], NODES):
            observed = self.likelihood.distribution(mean + std * nodes)
            ends = np.broadcast_to(observed.ppf(q), (len(nodes), len(mean)))
            least, most = np.min(ends, axis=0), np.max(ends, axis=0)
            if not np.any((q > 0.0) & (q < 1.0)):
                return np.where(q == 0.0, least, most)
            under = np.nextafter(least - self._unit, -np.inf)  # there may be a mass at the least
            below, above = (self._probability(end, mean, std) for end in (under, most))
            if np.all((below <= q + LEEWAY) & (above >= q - LEEWAY)):
                break
        return solved_quantile(
            lambda y: self._probability(y, mean, std), q, least, most, self._unit, slack
        )


class PredictiveCounts(CountsKnownByCdf, Predictive):
    """Predictive distributions of whole numbers under any likelihood.

    Examples
    --------
    >>> import numpy as np
    >>> from dataclasses import dataclass
    >>> from scipy import stats
    >>> from posterity.likelihoods import Likelihood
    >>> @dataclass(frozen=True)
    ... class Trials(Likelihood):
    ...     n: int
    ...     def distribution(self, eta):
    ...         return stats.binom(self.n, 1.0 / (1.0 + np.exp(-eta)))
    >>> predictive = PredictiveCounts(Trials(10), np.zeros(1), np.ones(1))
    >>> predictive.pmf([5]).round(4), predictive.interval(0.9)
    (array([0.1332]), (array([1.]), array([9.])))
    """

    __slots__ = ()

    @staticmethod
    def mix(components: Sequence[Any], weights: Array) -> AnyMixture:
        """The mixture of these under one likelihood."""
        return MixedPredictiveCounts(components, weights)


class MixedPredictive(AskedTogether):
    """Mixtures of predictive distributions under one likelihood, one per row."""

    __slots__ = ()


class MixedPredictiveCounts(AskedTogether, AnyCounts):
    """The same of whole numbers."""

    __slots__ = ()


def predictive(likelihood: Observation, eta_mean: Array, eta_variance: Array) -> Predictive:
    """Predictions under a likelihood that defines ``distribution``."""
    counts = hasattr(likelihood.distribution(np.zeros(1)), "logpmf")
    kind = PredictiveCounts if counts else Predictive
    return kind(likelihood, eta_mean, eta_variance)


@get_matcher.register
def _mix_predictions(first: Predictive, parts: Sequence[Any], weights: Array) -> Predictive:
    """Mix predictions under one likelihood: eta has the mixture's mean and variance."""
    means, variances = [one.eta_mean for one in parts], [one.eta_variance for one in parts]
    return type(first)(first.likelihood, *match_column_moments(means, variances, weights))


@get_mixer.register
def _mix_exactly(first: Predictive, parts: Sequence[Any], weights: Array) -> AnyMixture:
    shared = first.likelihood.of_rows(slice(None)) is first.likelihood
    together = shared and all(one.likelihood == first.likelihood for one in parts)
    return (first.mix if together else any_mixture)(parts, weights)
