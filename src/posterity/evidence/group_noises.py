"""Groups under a given prior of their effects: learned are the means of these, and their noises.

Effects vary in units of the noise of their own group. So what a group says of the means, its
coefficients integrated, is the same whatever its noise, but for its unit: it is found once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from posterity.aliases import Array, Mask
from posterity.evidence._group_deviance import MeansRegression, triangulate_groups
from posterity.evidence._group_frame import Frame
from posterity.evidence.group_variances import (
    DEGREES,
    LONGEST_STEP,
    MOST_STEPS,
    MOST_TURNS,
    NEAR,
    TOLERANCE,
    FactorModes,
    GroupFactors,
    compute_noise_variance,
    count_flat,
    skew,
)
from posterity.evidence.groups import EtaScale, GroupSample, SharedPrior
from posterity.evidence.shared import make_shared_prior
from posterity.factor import Factor
from posterity.factor.grouped import GroupBank, have_equal_targets, whiten_groups
from posterity.noise import Noise

# Groups that are alike and groups that differ are averaged, unless 20 to 1 are for the former
# (Madigan and Raftery 1994): a few rows of a few groups hardly tell.
OCCAM_WINDOW = -np.log(20.0)


@dataclass(frozen=True)
class GivenPrior:
    """Groups whose effects have a given precision around means, which are learned where ``free``.

    ``root`` (p, p) is that of the precision; where that is flat effects are 0.
    """

    sample: GroupSample
    root: Array
    mean: Array
    free: Mask
    scale: EtaScale | None = None

    @classmethod
    def of(
        cls,
        sample: GroupSample,
        prior: Factor,
        free: Mask,
        scale: EtaScale | None = None,
    ) -> GivenPrior:
        """The groups of a sample under the precision and the means of ``prior``."""
        return cls(sample, prior.root.copy(), prior.coefficients()[:, 0], free, scale)

    @cached_property
    def _frame(self) -> Frame:
        return Frame.identity(self.sample, self.scale)

    @cached_property
    def _told(self) -> tuple[Array, Array]:
        """Rows (g, f + 1, p + 1) that say of the means what each group does, and determinants."""
        white, log_determinants = whiten_groups(self.root, self._frame.rows)
        fixed = np.where(self.free, 0.0, self.mean)
        left = white[:, :, -1:] - (white[:, :, :-1] @ fixed)[:, :, None]
        rows = np.concatenate([white[:, :, :-1][:, :, self.free], left], axis=2)
        f = rows.shape[2]
        told = np.zeros((len(rows), f, white.shape[2]))
        told[:, :, np.append(self.free, True)] = triangulate_groups(rows).triangles[:, :, :f]
        return told, log_determinants

    def regress(self, noise: Array | None = None) -> MeansRegression:
        """The means, where groups have ``noise`` (g,), variances relative to that of all."""
        frame, (told, log_determinants) = self._frame, self._told
        if noise is not None:
            residuals = self.sample.residuals / noise
            alike = replace(self.sample, residuals=residuals, noise=noise, effects=noise)
            frame, told = replace(frame, sample=alike), told.copy()
            told[:, :, -1] /= np.sqrt(noise)[:, None]
        return MeansRegression(frame, self.mean, self.free, self.root, (told, log_determinants))

    def share(self, noise: Array | None = None) -> SharedPrior:
        """What groups with such noises share."""
        return make_shared_prior(self.root, self.regress(noise))

    @cached_property
    def _counts(self) -> Array:
        """(g,) errors that tell of each group's noise.

        None where all targets are the same: a group may pay rarely, and has not yet.
        """
        flat = np.count_nonzero(np.diag(self.root) == 0.0)
        return np.where(self._equal, 0.0, np.maximum(self.sample.counts - flat, 0.0))

    @cached_property
    def _equal(self) -> Mask:
        return have_equal_targets(self.sample.rows[:, :, -1], self.sample.residuals)

    def learn_noises(self, means: MeansRegression, noise: Noise) -> GroupFactors:
        """Factors of the variances of noises, by the errors of groups."""
        count, told = self._counts, self._told[0]
        variance = compute_noise_variance(self.sample.count, means.n_flat, means.residual, noise)
        if not 0.0 < variance < np.inf or count.sum() <= means.n_flat:
            return GroupFactors.alike(len(count))
        errors = told[:, :, -1] - told[:, :, :-1] @ (means.mean * self.free)
        residual = (np.sum(errors**2, axis=1) + self.sample.residuals) / variance
        modes = _find_modes(count, np.where(count > 0.0, residual, 0.0))
        # Groups that are alike are as probable as all others together.
        return modes.average(OCCAM_WINDOW, alike=len(DEGREES) - 1.0)

    def share_noises(self, factors: GroupFactors, noise: Noise) -> SharedPrior:
        """What groups share, with what is known of the noise of each."""
        sample, prior = self.sample, self.share(factors.values)
        variance = compute_noise_variance(sample.count, prior.n_means, prior.residual, noise)
        # How far factors lie apart is one thing, and how well the others tell their scale.
        others = np.append(self._counts.sum() - self._counts, self._counts.sum()) - prior.n_means
        others, flat = np.maximum(others, 0.0), count_flat(prior)
        degrees = factors.df * others / (factors.df + others)
        own = np.column_stack([degrees - flat, degrees * variance * factors.scale])
        rows = GroupBank.of(sample.rows).posteriors(prior.priors)[:, -1] ** 2 + sample.residuals
        told = np.column_stack([np.maximum(sample.counts - flat, 0.0), rows])
        own[:-1] -= self._equal[:, None] * told
        logs = float(np.log(factors.values) @ sample.counts)
        evidence = prior.log_determinants + 2.0 * factors.log_volume - logs
        return replace(prior, log_determinants=evidence, own_noise=own)


def _find_modes(count: Array, residual: Array) -> FactorModes:
    """The likeliest factors (d, g) of errors of these numbers and sums of squares (g,).

    They are (residual + df scale) / (count + df), so that only the scale is searched, by Newton's
    steps: the mean of log f is that of the prior. It is 1 where groups are as good as alike.
    """
    df = DEGREES[:, None]
    curvature, scale = 0.5 * (count + df), np.ones((len(DEGREES), 1))
    above = np.mean(skew(curvature) - skew(0.5 * df), axis=1, keepdims=True)
    for _ in range(MOST_STEPS):
        factors = (residual + df * scale) / (count + df)
        off = np.mean(np.log(factors), axis=1, keepdims=True) + above - np.log(scale)
        slope = 1.0 - np.mean(df * scale / (residual + df * scale), axis=1, keepdims=True)
        step = np.clip(off / np.maximum(slope, 1e-12), -LONGEST_STEP, LONGEST_STEP)
        step[-1] = 0.0
        scale = scale * np.exp(step)
        if np.abs(step).max() < TOLERANCE:
            break
    factors = (residual + df * scale) / (count + df)
    density = -0.5 * (count * np.log(factors) + residual / factors)
    return FactorModes(np.log(factors), np.log(scale)[:, 0], curvature, density)


def let_noises_differ(given: GivenPrior, noise: Noise) -> SharedPrior:
    """What groups share, given a factor for the noise of each.

    Where the noise is known, or has a given prior, it is the same in all groups, as it is where the
    evidence finds them alike.
    """
    factors = GroupFactors.alike(len(given.sample.rows))
    alike = means = given.regress()
    for _ in range(0 if any(noise.parameters) else MOST_TURNS):
        last, factors = factors, given.learn_noises(means, noise)
        if np.isinf(factors.df):
            break
        if np.abs(np.log(factors.values / last.values)).max(initial=0.0) <= NEAR:
            break
        means = given.regress(factors.values)
    if np.isinf(factors.df):
        return make_shared_prior(given.root, alike)
    return given.share_noises(factors, noise)


__all__ = ["GivenPrior", "let_noises_differ"]
