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
from numpy.typing import NDArray

from posterity.evidence._group_deviance import (
    MeansRegression,
    compute_expected_root,
    find_covariance,
)
from posterity.evidence._group_frame import CONSTANT, GroupFrame, triangulate
from posterity.evidence.groups import EtaScale, GroupSample, SharedPrior, make_factor
from posterity.factor import Factor
from posterity.factor.parallel import limit_blas_threads
from posterity.noise import Noise

Array = NDArray[np.float64]

# With at most this many groups, each gets a prior from the other groups.
FEW_GROUPS = 16
# Largest signal variance under a unit-information prior, in units of the noise variance.
_MOST_SIGNAL = 10.0


def learn_prior(
    sample: GroupSample,
    noise: Noise,
    mean: Array,
    free: NDArray[np.bool_],
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
    frame = GroupFrame.of(sample, noise, intercept=intercept, eta=scale)
    p = len(frame.root)
    means, free = frame.to_whitened(mean), free[frame.independent]
    if p == 0 or len(sample.rows) == 0 or not frame.is_informative:
        root = np.eye(p) / np.sqrt(frame.scale)
        return _make_shared_prior(frame, root, MeansRegression(frame, means, free, root))
    with limit_blas_threads(p * (p + 1) // 2):
        best = find_covariance(frame, noise, means, free, tolerance, near).diagonalize()
    root, expected = (
        triangulate(np.asarray(np.linalg.inv(each)))
        for each in (best.root, compute_expected_root(best))
    )
    fitted = MeansRegression(frame, means, free, root)
    prior = _make_shared_prior(frame, expected, MeansRegression(frame, means, free, expected))
    # The noise and the evidence are those of the best D: under a larger one less seems noise.
    return replace(
        prior,
        best_root=frame.expand_root(root),
        residual=fitted.residual,
        log_determinants=fitted.log_determinants,
        strength=best.prior.strength,
    )


def with_given_precision(
    sample: GroupSample,
    prior: Factor,
    free: NDArray[np.bool_],
    scale: EtaScale | None = None,
) -> SharedPrior:
    """The free means learned, under the precision of ``prior``; where that is flat they are 0."""
    frame = GroupFrame.identity(sample, scale)
    root, mean = prior.root.copy(), prior.coefficients()[:, 0]
    return _make_shared_prior(frame, root, MeansRegression(frame, mean, free, root))


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


def learn_from_all(
    sample: GroupSample,
    prior: SharedPrior,
    free: NDArray[np.bool_],
    scale: EtaScale | None = None,
) -> SharedPrior:
    """Return the statistics of all groups under a prior that was learned from some."""
    frame = GroupFrame.identity(sample, scale)
    return _make_shared_prior(
        frame, prior.root, MeansRegression(frame, prior.mean, free, prior.root)
    )


# ---- inner ---------------------------------------------------------------------------------------


def _make_shared_prior(frame: GroupFrame, root: Array, means: MeansRegression) -> SharedPrior:
    """The prior in the coefficients themselves, and the one that each group gets."""
    groups, sample = len(frame.rows), frame.sample
    noise = np.ones(groups) if sample.noise is None else sample.noise
    effects = np.ones(groups) if sample.effects is None else sample.effects
    priors = [_make_prior(frame, root, means, means.factor)]
    if groups <= FEW_GROUPS:
        priors[:0] = [
            _make_prior(frame, root, means, means.without(g), noise=noise[g], effects=effects[g])
            for g in range(groups)
        ]
    elif sample.noise is not None:  # the mean is known so well that only effects count
        priors[:0] = np.sqrt(noise / effects)[:, None, None] * priors[0]
    return SharedPrior(
        frame.expand_root(root),
        frame.from_whitened(means.mean),
        np.array(priors),
        means.residual,
        means.n_flat,
        means.log_determinants,
    )


def _make_prior(
    frame: GroupFrame,
    root: Array,
    means: MeansRegression,
    factor: Factor,
    *,
    noise: float = 1.0,
    effects: float = 1.0,
) -> Array:
    """The triangle of w where ``root (w - m) = noise`` and m has the triangle ``factor``.

    Of a group, in units of its own noise, whose effects have a variance of their own.
    """
    p, f = len(root), factor.n_coefficients
    root = root * np.sqrt(noise / effects)
    both = Factor(f + p)
    relation = np.concatenate([-root[:, means.free], root], axis=1)
    both.append(relation, (root @ means.fixed)[:, None])
    block = np.zeros((f, f + p))
    block[:, :f] = np.sqrt(noise) * factor.root
    both.append(block, np.sqrt(noise) * factor.moments)
    rows = np.zeros((p, len(frame.independent)))
    rows[:, frame.independent] = both.root[f:, f:] @ frame.root
    prior = Factor(len(frame.independent))
    prior.append(rows, np.ascontiguousarray(both.moments[f:]))
    prior.append(frame.pins, np.zeros((len(frame.pins), 1)))
    # It fits itself by construction: the residual is rounding, not data.
    prior.residual_root[...] = 0.0
    return prior.triangle
