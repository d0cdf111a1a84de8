"""Groups under a given prior of their effects: learned are the means of these, and their noises.

Effects vary in units of the noise of their own group. So the rows of a group, its coefficients
integrated, are the same whatever its noise, but for their unit: they are found once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from posterity.evidence.group_variances import (
    MOST_TURNS,
    NEAR,
    GroupFactors,
    Spread,
    compute_noise_variance,
    count_flat,
    learn_factors,
)
from posterity.evidence.shared import (
    EtaScale,
    Frame,
    GroupSample,
    MeansRegression,
    SharedPrior,
    make_shared_prior,
)
from posterity.factor import Factor
from posterity.factor.grouped import GroupBank, have_equal_targets, whiten_groups
from posterity.noise import Noise

Array = NDArray[np.float64]

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
    free: NDArray[np.bool_]
    scale: EtaScale | None = None

    @classmethod
    def of(
        cls,
        sample: GroupSample,
        prior: Factor,
        free: NDArray[np.bool_],
        scale: EtaScale | None = None,
    ) -> GivenPrior:
        """The groups of a sample under the precision and the means of ``prior``."""
        return cls(sample, prior.root.copy(), prior.coefficients()[:, 0], free, scale)

    @cached_property
    def _white(self) -> tuple[Array, Array]:
        return whiten_groups(self.root, Frame.identity(self.sample, self.scale).rows)

    def regress(self, noise: Array | None = None) -> MeansRegression:
        """The means, where groups have ``noise`` (g,), variances relative to that of all."""
        sample, (white, log_determinants) = self.sample, self._white
        if noise is not None:
            sample, white = sample.scale(noise, noise), white.copy()
            white[:, :, -1] /= np.sqrt(noise)[:, None]
        frame = Frame.identity(sample, self.scale)
        return MeansRegression(
            frame, self.mean, self.free, self.root, whitened=(white, log_determinants)
        )

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
    def _equal(self) -> NDArray[np.bool_]:
        return have_equal_targets(self.sample.rows[:, :, -1], self.sample.residuals)

    def learn_noises(self, means: MeansRegression, noise: Noise) -> GroupFactors:
        """Factors of the variances of noises, by the errors of groups."""
        variance = compute_noise_variance(self.sample.count, means.n_flat, means.residual, noise)
        if not 0.0 < variance < np.inf or self._counts.sum() <= means.n_flat:
            return GroupFactors.alike(len(self._counts))
        white = self._white[0]
        errors = white[:, :, -1] - white[:, :, :-1] @ means.mean
        residual = (np.sum(errors**2, axis=1) + self.sample.residuals) / variance
        none = np.zeros((len(errors), 0))
        residual = np.where(self._counts > 0.0, residual, 0.0)
        return learn_factors(Spread(none, none, none, self._counts, residual), OCCAM_WINDOW)

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


def let_noises_differ(given: GivenPrior, noise: Noise) -> SharedPrior:
    """What groups share, given a factor for the noise of each.

    Where the noise is known, or has a given prior, it is the same in all groups, as it is where the
    evidence finds them alike.
    """
    factors = GroupFactors.alike(len(given.sample.rows))
    means = given.regress()
    for _ in range(0 if any(noise.parameters) else MOST_TURNS):
        last, factors = factors, given.learn_noises(means, noise)
        if np.isinf(factors.df):
            break
        if np.abs(np.log(factors.values / last.values)).max(initial=0.0) <= NEAR:
            break
        means = given.regress(factors.values)
    return given.share() if np.isinf(factors.df) else given.share_noises(factors, noise)


__all__ = ["GivenPrior", "let_noises_differ"]
