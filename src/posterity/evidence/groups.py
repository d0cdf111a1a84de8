"""What the prior of groups is learned from, and what it says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from posterity.aliases import Array
from posterity.factor import Factor


@dataclass(frozen=True)
class GroupSample:
    """Groups to learn from: ``rows`` (g, p, p + 1) [R, z], and what they left over.

    ``counts`` and ``residuals`` (g,) are each group's sums of weights, and of squares that no
    coefficients explain. ``is_whole`` says whether there are no others. ``noise`` and ``effects``
    (g,) are the variances of each group's noise, and of its effects, relative to those of all: rows
    and residuals are in units in which these do not differ. No groups are ``left`` to be copied.
    """

    left: ClassVar[frozenset[int]] = frozenset()

    rows: Array
    counts: Array
    residuals: Array
    is_whole: bool = True
    noise: Array | None = None
    effects: Array | None = None

    @property
    def count(self) -> float:
        """The sum of all weights."""
        return float(self.counts.sum())

    @property
    def residual(self) -> float:
        """The sum of all residual sums of squares."""
        return float(self.residuals.sum())

    @property
    def stretch(self) -> Array | float:
        """(g, 1, 1) by how much more features count for effects than for the means."""
        return 1.0 if self.effects is None else np.sqrt(self.effects)[:, None, None]

    def keep(self, slots: Sequence[int]) -> None:
        """Nothing is left to copy of groups that are about to change."""

    def read(self) -> GroupSample:
        """The sample; of one whose groups are copied late, all of it."""
        return self

    def scale(self, noise: Array, effects: Array) -> GroupSample:
        """The same groups, which differ, in units in which they do not."""
        rows = self.rows / np.sqrt(noise)[:, None, None]
        rows[:, :, :-1] *= np.sqrt(effects)[:, None, None]
        return GroupSample(rows, self.counts, self.residuals / noise, self.is_whole, noise, effects)


@dataclass(frozen=True)
class EtaScale:
    """What is known beforehand where rows stand for others under a likelihood.

    Of their linear predictor eta a change of 1 is substantial: its variance over groups is some
    units at most, and its mean is near that at ``centre`` (p,), by some units. ``root`` (p, p) is
    that of the mean of x x' over rows as they came. What targets tell of these is no scale: rows
    without events lie as far off as the prior lets them.
    """

    root: Array
    centre: Array


@dataclass(frozen=True)
class SharedPrior:
    """The prior that groups share.

    ``root`` (p, p) upper triangular, root'root the inverse of the D that groups are predicted with,
    0 where that is flat; ``mean`` (p,); ``priors`` (k + 1, q, ld): as triangles, what each of the
    first k groups comes from all others, and that of any other group, the uncertainty of the
    mean included. ``residual`` is r^2, ``n_means`` that of means with a flat prior,
    ``log_determinants`` what they and D bring to the evidence. ``best_root`` is that of the best D,
    None where it is the same, and ``strength`` that of D's prior which the evidence favours.
    ``own_noise`` (j + 1, 2) are the count and the residual that each of the first j groups, and any
    other, has for noise of its own beside those of its rows; None where all have the same noise.
    ``ratio`` (j + 1,) is by how much the variance of each one's noise differs more than that of its
    effects; None: not at all.
    """

    root: Array
    mean: Array
    priors: Array
    residual: float = 0.0
    n_means: int = 0
    log_determinants: float = 0.0
    best_root: Array | None = None
    strength: float = 0.0
    own_noise: Array | None = None
    ratio: Array | None = None

    @property
    def new_group_prior(self) -> Array:
        """(q, ld) prior of a group of which no row has come."""
        return self.priors[-1]

    def of_group(self, slot: int) -> Array:
        """(q, ld) prior of the group at a slot, -1 for one of which no row has come."""
        return np.asarray(self.priors[slot if 0 <= slot < len(self.priors) else -1])

    def covariance(self) -> Array:
        """(p, p) the best D, relative to the noise; infinite variances where nothing is known."""
        root = self.root if self.best_root is None else self.best_root
        return make_factor(root, self.mean).covariance()


def make_factor(root: Array, mean: Array) -> Factor:
    """The triangle of w where ``root (w - mean) = noise``."""
    factor = Factor(len(root))
    factor.append(root, (root @ mean)[:, None])
    return factor
