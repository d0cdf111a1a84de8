"""The prior that many groups share, learned from all of them (empirical Bayes).

    y = x . w_g + noise,     w_g ~ Normal(m, sigma^2 D),     noise ~ Normal(0, sigma^2)

Each group g comes as the triangle [R, z] of its rows. With its own coefficients integrated it says
``o = W m + noise``, W'W = R' (I + R D R')^-1 R (:func:`posterity.factor.grouped.whitened`), so that
all groups stacked are an ordinary regression for m, with the triangle [S, t; 0, r]. The prior of m
is flat; with m and sigma integrated, the evidence of D is

    log p(y | D) = -1/2 sum log |I + R D R'| - 1/2 log |S'S| - a_n log(b_0 + r^2 / 2) + const

(restricted maximum likelihood: Laird and Ware 1982). A maximum of that alone is often singular, or
infinite where there are few groups, and where groups have fewer rows than coefficients the best D
explains the noise. So D has a prior (:mod:`posterity.evidence._covariance_prior`) that draws it
towards a multiple of the inverse of the mean of x x'; how strongly is what the evidence favours,
with D integrated by Laplace's formula. Groups are predicted with the mean of D over what the
evidence leaves open, to first order, and described by the best D.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from posterity.aliases import Array, Mask
from posterity.evidence._group_deviance import (
    MeansRegression,
    compute_expected_root,
    find_covariance,
    triangulate_groups,
)
from posterity.evidence._group_frame import CONSTANT, Frame, triangulate
from posterity.evidence.groups import EtaScale, GroupSample, SharedPrior, make_factor
from posterity.factor import Factor
from posterity.factor.grouped import GroupBank
from posterity.factor.parallel import limit_blas_threads
from posterity.noise import Noise

# With at most this many groups, each gets a prior from the other groups.
FEW_GROUPS = 16
# Largest signal variance under a unit-information prior, in units of the noise variance.
_MOST_SIGNAL = 10.0


def learn_prior(
    sample: GroupSample,
    noise: Noise,
    mean: Array,
    free: Mask,
    *,
    intercept: bool,
    tolerance: float = 1e-4,
    near: SharedPrior | None = None,
    scale: EtaScale | None = None,
) -> SharedPrior:
    """The prior of the highest evidence.

    Parameters
    ----------
    sample
        The groups; ``sample.rows`` (g, p, p + 1).
    noise
        Its precision is known, or learned with the rest.
    mean, free
        (p,) prior means, and whether each is to be learned instead.
    intercept
        Whether the first coefficient is an intercept: then the variance of y is that around its
        mean.
    tolerance
        How far D may be from the best one, in standard deviations of what the groups leave open.
    near
        The prior that nearly the same groups chose: the search begins there, with its strength.
    scale
        What is known beforehand of rows under a likelihood.
    """
    frame = Frame.of(sample, noise, intercept=intercept, eta=scale)
    p = len(frame.root)
    means, free = frame.to_whitened(mean), free[frame.independent]
    if p == 0 or len(sample.rows) == 0 or not frame.is_informative:
        root = np.eye(p) / np.sqrt(frame.scale)
        return make_shared_prior(root, MeansRegression(frame, means, free, root))
    with limit_blas_threads(p * (p + 1) // 2):
        best = find_covariance(frame, noise, means, free, tolerance, near).diagonalize()
    root, expected = (
        triangulate(np.asarray(np.linalg.inv(each)))
        for each in (best.root, compute_expected_root(best))
    )
    fitted = MeansRegression(frame, means, free, root)
    prior = make_shared_prior(expected, MeansRegression(frame, means, free, expected))
    # The noise and the evidence are those of the best D: under a larger one less seems noise.
    return replace(
        prior,
        best_root=frame.expand_root(root),
        residual=fitted.residual,
        log_determinants=fitted.log_determinants,
        strength=best.prior.strength,
    )


def make_unit_information_prior(sample: GroupSample, mean: Array, *, intercept: bool) -> Factor:
    """A prior that says as much of each coefficient as one row (Kass and Wasserman 1995).

    Its precision is the mean square of the feature over all rows, so that no unit matters; with an
    intercept the mean square about the feature's mean, where the prior of the intercept holds, so
    that no shift matters. Under such a prior p coefficients together explain p times the variance
    of the noise on average. With more than ten the precision is p / 10 times as large, so that they
    explain ten times as much.
    """
    R, count = sample.rows[:, :, :-1], max(sample.count, 1e-300)
    squares = np.sum(np.square(R), axis=(0, 1)) / count
    root = np.diag(np.sqrt(squares))
    if intercept:
        roots = R[:, 0, 0]  # of the groups' numbers of rows
        means = R[:, 0] / np.where(roots > 0.0, roots, 1.0)[:, None]
        centre = np.square(roots) @ means / max(float(roots @ roots), 1e-300)
        within = np.sum(np.square(R[:, 1:]), axis=(0, 1))
        around = (within + np.square(roots) @ np.square(means - centre)) / count
        varies = around > CONSTANT * squares
        root = np.diag(np.sqrt(np.where(varies, around, squares)))
        root[0] = np.where(varies, root[0, 0] * centre, 0.0)
        root[0, 0] = np.sqrt(squares[0])
    rows = max(1.0, len(squares) / _MOST_SIGNAL)
    return make_factor(np.sqrt(rows) * root, mean)


# ---- inner ---------------------------------------------------------------------------------------


def make_shared_prior(root: Array, means: MeansRegression) -> SharedPrior:
    """The prior in the coefficients themselves, and the one that each group gets."""
    frame, sample, groups = means.frame, means.frame.sample, len(means.target)
    noise = np.ones(groups) if sample.noise is None else sample.noise
    effects = np.ones(groups) if sample.effects is None else sample.effects
    own = groups if groups <= FEW_GROUPS else 0
    each = np.append(noise[:own], 1.0), np.append(effects[:own], 1.0)
    priors = _make_priors(root, means, *each)
    if not own and sample.noise is not None:  # the mean is known so well that only effects count
        priors = np.concatenate([np.sqrt(noise / effects)[:, None, None] * priors, priors])
    return SharedPrior(
        frame.expand_root(root),
        frame.from_whitened(means.mean),
        priors,
        means.residual,
        means.n_flat,
        means.log_determinants,
    )


def _make_priors(root: Array, means: MeansRegression, noise: Array, effects: Array) -> Array:
    """The triangles of w where ``root (w - m) = noise``, for m what all other groups say.

    Of each group in units of its own noise, whose effects have a variance of their own; the last is
    that of a group that is in no others.
    """
    frame, (p, f), groups = means.frame, (len(root), means.columns.shape[2]), len(noise)
    relation = np.column_stack([-root[:, means.free], root, root @ means.fixed])
    both = np.zeros((groups, f + p, f + p + 1))
    known = np.sqrt(noise)[:, None, None] * means.without_each(groups - 1)
    both[:, :f, :f], both[:, :f, -1] = known[:, :, :-1], known[:, :, -1]
    both[:, f:] = np.sqrt(noise / effects)[:, None, None] * relation
    told = triangulate_groups(both).rows()[:, f:, f:]
    pins = frame.pins
    rows = np.zeros((groups, p + len(pins), len(frame.independent) + 1))
    rows[:, :p, :-1][:, :, frame.independent] = told[:, :, :-1] @ frame.root
    rows[:, :p, -1], rows[:, p:, :-1] = told[:, :, -1], pins
    # Without columns that depend on others these are triangles.
    bank = GroupBank.of(rows) if frame.independent.all() else triangulate_groups(rows)
    # They fit themselves by construction: the residuals are rounding, not data.
    bank.packed[:, -1] = 0.0
    return bank.triangles
