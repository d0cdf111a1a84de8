"""Groups whose noise, or whose effects, vary by more in some than in others.

The variances of a group's noise and of its effects are those of all groups times a factor each,

    f ~ scaled inverse chi-squared(df, 1),

(Gelman et al. 2013, sections 5.7 and 17.2: effects of such a variance are Student-t). What a group
tells of its factor are values q_i ~ Normal(0, own_i f + other_i). As a function of log f their
posterior is matched, at its mode and with its expected curvature a there, by that of an inverse
gamma, 1 / f ~ Gamma(a, a f); where ``other`` is 0 this is exact. Its integral is the evidence of
``df``: if none is better than an infinite one, groups are alike. What all groups share is learned
from rows that are divided by the roots of their factors, and these from what is shared, in turns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammaln, stdtr, stdtrit

from posterity.aliases import Array
from posterity.evidence.groups import GroupSample, SharedPrior
from posterity.factor.grouped import GroupBank
from posterity.noise import Noise

# Degrees of freedom that are compared; with the last one groups are as good as alike.
DEGREES = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 1e6])
# By so much the log evidence of groups that differ has to be higher where their covariance is
# learned from them, too, and where its slope is at least so many standard deviations above 0 where
# they are alike: else it need not be worked out.
LEAST_GAIN, LEAST_SLOPE = 2.0, 0.5
# Rows may lack so much weight for their directions: the least degrees of freedom outweigh it.
MOST_LACKING = 0.5
MOST_STEPS, LONGEST_STEP, TOLERANCE, HALVINGS = 30, 2.0, 0.01, 20
# Turns between factors and what is shared, until no logarithm of a factor moves further.
MOST_TURNS, NEAR = 8, 0.1


@dataclass(frozen=True)
class Spread:
    """What groups vary by: values (g, h) and the parts of their variances.

    ``squares`` (g, h) of the values; the variance of each is ``own`` f + ``other``. ``count`` (g,)
    more values have the variance f, and the sum of squares ``residual`` (g,).
    """

    squares: Array
    own: Array
    other: Array
    count: Array
    residual: Array

    def log_density(self, logs: Array) -> Array:
        """(..., g) log densities at the logarithms of the factors, up to a constant."""
        factor = np.exp(logs)
        variance = self.own * factor[..., None] + self.other
        terms = np.sum(np.log(variance) + self.squares / variance, axis=-1)
        return -0.5 * (terms + self.count * logs + self.residual / factor)

    def evaluate(self, logs: Array) -> tuple[Array, Array]:
        """(..., g) slopes by the logarithms of the factors, and expected curvatures."""
        factor = np.exp(logs)
        own = self.own * factor[..., None]
        variance = own + self.other
        share = own / variance
        slope = np.sum(share * (self.squares / variance - 1.0), axis=-1)
        slope += self.residual / factor - self.count
        return 0.5 * slope, 0.5 * (np.square(share).sum(axis=-1) + self.count)


@dataclass(frozen=True)
class GroupFactors:
    """Factors of variances, ``values`` (g,), each known as if by so many ``degrees`` (g,).

    They are relative to their prior's scale, ``scale``, of ``df`` degrees of freedom. ``gain`` is
    the log evidence of groups that differ, and ``log_volume`` the log of the integral over all
    factors, relative to the density there.
    """

    values: Array
    degrees: Array
    df: float
    scale: float
    gain: float
    log_volume: float

    @classmethod
    def alike(cls, groups: int) -> GroupFactors:
        """Those of groups that do not differ."""
        return cls(np.ones(groups), np.full(groups, np.inf), np.inf, 1.0, 0.0, 0.0)

    def match_interval(self) -> float:
        """The scale with which the prior has the 95% interval of the groups at hand.

        The inverse gamma need not hold: as where groups are of two kinds. Found by bisection.
        """
        roots = np.sqrt(self.values)
        ends = np.log(roots * stdtrit(self.degrees, 0.975))
        low, high = ends.min(), ends.max()
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            if np.mean(stdtr(self.degrees, np.exp(middle) / roots)) < 0.975:
                low = middle
            else:
                high = middle
        return float((np.exp(high) / stdtrit(self.df, 0.975)) ** 2)


@dataclass(frozen=True)
class FactorModes:
    """The likeliest logarithms of factors under each of d numbers of degrees of freedom.

    ``logs`` (d, g); their ``curvature`` (d, g), and what rows alone say of them, ``log_density``
    (d, g); ``log_scale`` (d,) is the logarithm of the prior's scale.
    """

    logs: Array
    log_scale: Array
    curvature: Array
    log_density: Array

    def average(self, least_gain: float, alike: float) -> GroupFactors:
        """The average over degrees of freedom; all factors are 1 if they gain less evidence.

        Groups that are alike weigh ``alike`` times as much as by their evidence.
        """
        df, away, a = DEGREES[:, None], self.log_scale[:, None] - self.logs, self.curvature
        volume = 0.5 * df * (away - np.exp(away) + np.log(0.5 * df)) - gammaln(0.5 * df)
        volume += gammaln(a) - a * (np.log(a) - 1.0)
        evidence = np.sum(self.log_density + volume, axis=1)
        weights = np.exp(evidence - evidence.max())
        gain = float(np.log(np.mean(weights[:-1]) / max(weights[-1], 1e-300)))
        if not gain > least_gain:
            return GroupFactors.alike(self.logs.shape[1])
        weights[-1] *= alike
        weights /= weights.sum()
        # The mean and the variance of 1 / f, of the mixture over degrees of freedom.
        precision = np.exp(away)
        mean = weights @ precision
        shape = mean**2 / (weights @ (precision**2 / a + (precision - mean) ** 2))
        degrees = float(1.0 / (weights @ (1.0 / DEGREES)))
        scale = float(weights @ np.exp(self.log_scale))
        inside = float(weights @ volume.sum(axis=1))
        return GroupFactors(1.0 / mean, 2.0 * shape, degrees, scale, gain, inside)


def learn_factors(spread: Spread) -> GroupFactors:
    """The factors, averaged over their priors; all are 1 if these do not gain enough evidence."""
    groups = len(spread.count)
    if not _seem_to_differ(spread):
        return GroupFactors.alike(groups)
    logs, log_scale, df = np.zeros((len(DEGREES), groups)), np.zeros(len(DEGREES)), DEGREES[:, None]
    for _ in range(MOST_STEPS):
        slope, curvature = spread.evaluate(logs)
        slope += 0.5 * df * (np.exp(log_scale[:, None] - logs) - 1.0)
        step = np.clip(slope / (curvature + 0.5 * df), -LONGEST_STEP, LONGEST_STEP)
        logs = logs + step
        # The mean of log f is that of the prior: one group without any noise is not the scale.
        a = curvature + 0.5 * df
        last, log_scale = log_scale, np.mean(logs + skew(a) - skew(0.5 * df), axis=1)
        if max(np.abs(step).max(), np.abs(last - log_scale).max()) < TOLERANCE:
            break
    curvature = spread.evaluate(logs)[1] + 0.5 * df
    modes = FactorModes(logs, log_scale, curvature, spread.log_density(logs))
    return modes.average(LEAST_GAIN, alike=0.0)


def _seem_to_differ(spread: Spread) -> bool:
    """Return True if the evidence rises by 1 / df where groups are alike."""
    slope, curvature = spread.evaluate(np.zeros(len(spread.count)))
    excess = np.sum(slope**2 - curvature)
    return bool(excess > LEAST_SLOPE * np.sqrt(2.0 * np.sum(curvature**2)))


def skew(shape: Array) -> Array:
    """By how much the mean of a log inverse gamma lies above its mode: log(a) - digamma(a)."""
    return 1.0 / (2.0 * shape) + 1.0 / (12.0 * shape**2)


# ---- groups --------------------------------------------------------------------------------------


def let_groups_differ(
    prior: SharedPrior,
    sample: GroupSample,
    noise: Noise,
    learn: Callable[[GroupSample, SharedPrior], SharedPrior],
) -> SharedPrior:
    """What groups share, given a factor for the noise of each, and for its effects.

    Parameters
    ----------
    prior
        That of groups that are alike; it is returned where the evidence finds them so.
    sample
        The groups.
    noise
        Where it is known, or has a given prior, it is the same in all groups.
    learn
        Learns what groups share from a sample in which they do not differ, near another prior.
    """
    factors = _Factors.even(len(sample.rows))
    for _ in range(MOST_TURNS):
        last, factors = factors, factors.learn(sample, prior, noise)
        if not factors.differ:
            return prior if not last.differ else learn(sample, prior)
        prior = learn(sample.scale(factors.noise.values, factors.effects.values), prior)
        if factors.distance(last) <= NEAR:
            break
    return factors.tell(prior, sample, noise)


@dataclass(frozen=True)
class _Factors:
    """The factors of each group's noise and effects."""

    noise: GroupFactors
    effects: GroupFactors

    @classmethod
    def even(cls, groups: int) -> _Factors:
        return cls(GroupFactors.alike(groups), GroupFactors.alike(groups))

    @property
    def differ(self) -> bool:
        return bool(np.isfinite(min(self.noise.df, self.effects.df)))

    def distance(self, other: _Factors) -> float:
        """The largest change of the logarithm of a factor."""
        noise = np.log(self.noise.values / other.noise.values)
        effects = np.log(self.effects.values / other.effects.values)
        return float(np.abs(np.append(noise, effects)).max(initial=0.0))

    def learn(self, sample: GroupSample, prior: SharedPrior, noise: Noise) -> _Factors:
        """The factors given what groups share; first those that differ more."""
        variance = compute_noise_variance(sample.count, prior.n_means, prior.residual, noise)
        if not 0.0 < variance < np.inf:
            return _Factors.even(len(sample.rows))
        parts = _compute_parts(sample, prior, variance)
        effects = learn_factors(parts.of_effects(self.noise.values))
        if any(noise.parameters):
            return _Factors(self.noise, effects)
        noises = learn_factors(parts.of_noise(self.effects.values))
        if noises.gain < effects.gain:
            return _Factors(learn_factors(parts.of_noise(effects.values)), effects)
        return _Factors(noises, learn_factors(parts.of_effects(noises.values)))

    def tell(self, prior: SharedPrior, sample: GroupSample, noise: Noise) -> SharedPrior:
        """The prior with the noise of each group, and with the evidence of all factors."""
        logs = np.log(self.noise.values) @ sample.counts
        volume = self.noise.log_volume + self.effects.log_volume
        told = replace(
            prior,
            log_determinants=prior.log_determinants + 2.0 * volume - float(logs),
            ratio=np.append(self.noise.values / self.effects.values, 1.0),
        )
        if np.isinf(self.noise.df):
            return told
        variance = compute_noise_variance(sample.count, prior.n_means, prior.residual, noise)
        df, flat = self.noise.df, count_flat(prior)
        rows = GroupBank.of(sample.rows).posteriors(prior.priors)[:, -1] ** 2 + sample.residuals
        new = [[df - flat, df * variance * self.noise.match_interval()]]
        known, variance = self.noise.degrees, variance * self.noise.scale
        residual = known * self.noise.values * variance - rows
        own = np.column_stack([known - sample.counts, np.maximum(residual, 0.0)])
        own = np.concatenate([own, new])
        return replace(told, own_noise=own)


@dataclass(frozen=True)
class _Parts:
    """Independent values (g, p) of groups: squares, and variances that effects add to the noise's.

    In units of the noise's variance; ``count`` and ``residual`` (g,) are of noise alone.
    """

    squares: Array
    effects: Array
    count: Array
    residual: Array

    def of_noise(self, effects: Array) -> Spread:
        ones = np.ones_like(self.squares)
        other = effects[:, None] * self.effects
        return Spread(self.squares, ones, other, self.count, self.residual)

    def of_effects(self, noise: Array) -> Spread:
        none = np.zeros(len(noise))
        other = np.broadcast_to(noise[:, None], self.squares.shape)
        return Spread(self.squares, self.effects, other, none, none)


def _compute_parts(sample: GroupSample, prior: SharedPrior, variance: float) -> _Parts:
    """The values of each group along the axes in which its effects are independent."""
    kept, sample = np.diag(prior.root) > 0.0, _drop_light_groups(sample)
    R, z = sample.rows[:, :, :-1], sample.rows[:, :, -1]
    A = R[:, :, kept] @ np.linalg.inv(prior.root[np.ix_(kept, kept)])
    effects, axes = np.linalg.eigh(A @ np.swapaxes(A, 1, 2))
    values = (np.swapaxes(axes, 1, 2) @ (z - R @ prior.mean)[:, :, None])[:, :, 0]
    count = sample.counts - z.shape[1]
    squares, residual = values**2 / variance, sample.residuals / variance
    return _Parts(squares, np.maximum(effects, 0.0), count, residual)


def _drop_light_groups(sample: GroupSample) -> GroupSample:
    """The sample without the rows of groups that weigh less than they have directions.

    Such weights, as of rows that have faded, leave a negative count for the noise.
    """
    ranks = np.count_nonzero(np.diagonal(sample.rows, axis1=1, axis2=2), axis=1)
    told = sample.counts > ranks - MOST_LACKING
    rows = np.where(told[:, None, None], sample.rows, 0.0)
    return replace(
        sample, rows=rows, counts=sample.counts * told, residuals=sample.residuals * told
    )


def compute_noise_variance(count: float, n_means: int, residual: float, noise: Noise) -> float:
    """The variance of the noise that all groups share."""
    precision = noise.precision(count - n_means, residual)
    return 1.0 / precision if precision > 0.0 else np.inf


def count_flat(prior: SharedPrior) -> float:
    """The number of directions in which a new group's prior is flat."""
    return float(np.count_nonzero(np.diagonal(prior.new_group_prior)[:-1] == 0.0))


__all__ = [
    "FactorModes",
    "GroupFactors",
    "Spread",
    "compute_noise_variance",
    "count_flat",
    "learn_factors",
    "let_groups_differ",
    "skew",
]
