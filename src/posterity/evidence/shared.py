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

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from posterity.evidence._covariance_prior import CovariancePrior
from posterity.evidence._covariance_search import DeviancePoint, search, search_from
from posterity.evidence.columns import PINNING_PRECISION
from posterity.factor import Factor
from posterity.factor.grouped import GroupBank, whiten_groups
from posterity.factor.grouped_rows import GroupedRows
from posterity.factor.parallel import limit_blas_threads
from posterity.noise import KnownNoise, Noise

Array = NDArray[np.float64]

# With at most this many groups, each gets a prior from the other groups.
FEW_GROUPS = 16
# Noise variance where the rows show none, relative to the variance of y.
LEAST_NOISE = 1e-20
# Strengths of the prior of D, in groups per coefficient, the strongest first.
STRENGTHS = (64.0, 8.0, 1.0)
# The tolerance at which these strengths are compared.
ROUGH = 0.03
# Largest increase of the log of an uncertain variance over groups.
MOST_SPREAD = 1.0
# Variances of eta under a likelihood: the largest expected over groups, and of their mean.
LARGEST_VARIANCE, MEAN_VARIANCE = 4.0, 25.0
# A feature with a variance below this share of its mean square is constant.
CONSTANT = 1e-20
# Largest signal variance under a unit-information prior, in units of the noise variance.
_MOST_SIGNAL = 10.0


@dataclass(frozen=True)
class GroupSample:
    """Groups to learn from: ``rows`` (g, p, p + 1) [R, z], and what they left over.

    ``counts`` and ``residuals`` (g,) are each group's sums of weights, and of squares that no
    coefficients explain. ``is_whole`` says whether there are no others. ``noise`` and ``effects``
    (g,) are the variances of each group's noise, and of its effects, relative to those of all: rows
    and residuals are in units in which these do not differ.
    """

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

    def covariance(self) -> Array:
        """(p, p) the best D, relative to the noise; infinite variances where nothing is known."""
        root = self.root if self.best_root is None else self.best_root
        return make_factor(root, self.mean).covariance()


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
    frame = Frame.of(sample, noise, intercept=intercept, eta=scale)
    p = len(frame.root)
    means, free = frame.to_whitened(mean), free[frame.independent]
    if p == 0 or len(sample.rows) == 0 or not frame.is_informative:
        root = np.eye(p) / np.sqrt(frame.scale)
        return make_shared_prior(root, MeansRegression(frame, means, free, root))
    with limit_blas_threads(p * (p + 1) // 2):
        best = _find_covariance(frame, noise, means, free, tolerance, near).diagonalize()
    root, expected = (
        _triangulate(np.asarray(np.linalg.inv(each)))
        for each in (best.root, _compute_expected_root(best))
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


# ---- coordinates ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Frame:
    """Coordinates u = U w in which the mean of x x' is I: results do not depend on features' units.

    ``root`` is U over the linearly ``independent`` columns. A residual below ``least`` is none.
    ``mean_rows`` (d, p + 1) are the prior of the means, rows and targets: none where it is flat.
    """

    independent: NDArray[np.bool_]
    root: Array
    rows: Array
    sample: GroupSample
    scale: float
    is_informative: bool
    mean_rows: Array
    least: float = 1e-300

    @classmethod
    def of(
        cls, sample: GroupSample, noise: Noise, *, intercept: bool, eta: EtaScale | None = None
    ) -> Frame:
        """The coordinates of a sample."""
        g, p, _ = sample.rows.shape
        pooled = Factor(p)
        stacked = sample.rows.reshape(g * p, p + 1)
        pooled.append(stacked[:, :p], np.ascontiguousarray(stacked[:, p:]))
        kept = pooled.determined
        root = pooled.root[np.ix_(kept, kept)] / np.sqrt(max(sample.count, 1e-300))
        if eta is not None:
            own = _triangulate(eta.root[:, kept])
            if (np.diag(own) > CONSTANT**0.5 * np.sqrt(np.sum(own**2, axis=0))).all():
                root = own
        # Group by group, here and below: many small products, for which BLAS starts no threads.
        filled = _drop_empty_rows(sample.rows)
        within = filled[:, :, :p][:, :, kept] @ np.linalg.inv(root)
        rows = np.concatenate([within, filled[:, :, p:]], axis=2)
        residual = float(pooled.residual()[0, 0]) + sample.residual
        around = pooled.moments[int(intercept) :, 0]
        total = float(around @ around) + residual
        scale, is_informative = _compute_signal(sample, noise, total, residual, int(kept.sum()))
        if eta is not None and is_informative:
            scale = LARGEST_VARIANCE
        own = _make_mean_rows(np.eye(len(root)), root, kept, eta)
        least = max(LEAST_NOISE * total, 1e-300)
        rows = np.ascontiguousarray(rows)
        return cls(kept, root, rows, sample, scale, is_informative, own, least)

    @classmethod
    def identity(cls, sample: GroupSample, eta: EtaScale | None) -> Frame:
        """The coefficients themselves."""
        p, all_ = sample.rows.shape[1], np.ones(sample.rows.shape[1], dtype=bool)
        root = np.eye(p) if eta is None else eta.root
        own = _make_mean_rows(root, root, all_, eta)
        return cls(all_, np.eye(p), _drop_empty_rows(sample.rows), sample, 1.0, True, own)

    @property
    def pins(self) -> Array:
        """(d, p) rows that hold at 0 the coefficients of columns that depend on others.

        None where there are other groups, whose columns may vary.
        """
        squares = np.sum(np.square(self.sample.rows[:, :, :-1]), axis=(0, 1))
        sizes = np.sqrt(np.where(squares > 0.0, PINNING_PRECISION * squares, PINNING_PRECISION))
        return np.asarray(np.diag(sizes)[~self.independent & self.sample.is_whole])

    @property
    def residual_df(self) -> float:
        """Rows beyond those that each group's own coefficients fit."""
        return self.sample.count - _count_ranks(self.sample)

    def to_whitened(self, coefficients: Array) -> Array:
        """Coefficients in these coordinates."""
        return self.root @ coefficients[self.independent]

    def from_whitened(self, coefficients: Array) -> Array:
        """Coefficients (p,) of the features, 0 where columns depend on others."""
        whole = np.zeros(len(self.independent))
        whole[self.independent] = solve_triangular(self.root, coefficients, check_finite=False)
        return whole

    def expand_root(self, root: Array) -> Array:
        """A root (p, p) for the coefficients themselves, 0 where columns depend on others."""
        whole = np.zeros((len(self.independent),) * 2)
        whole[np.ix_(self.independent, self.independent)] = root @ self.root
        return whole


def _make_mean_rows(
    columns: Array, root: Array, kept: NDArray[np.bool_], eta: EtaScale | None
) -> Array:
    """The rows, in columns of a frame, of u ~ Normal(U centre, MEAN_VARIANCE / p)."""
    if eta is None:
        return np.zeros((0, len(columns) + 1))
    size = np.sqrt(len(columns) / MEAN_VARIANCE)
    return np.asarray(size * np.column_stack([columns, root @ eta.centre[kept]]))


def _drop_empty_rows(rows: Array) -> Array:
    """Drop rows of zeros from triangles (g, p, p + 1): most are, in groups of few rows."""
    filled = rows.any(axis=2)
    most = max(int(filled.sum(axis=1).max(initial=0)), 1)
    if most == rows.shape[1]:
        return rows
    places = np.argsort(~filled, axis=1, kind="stable")[:, :most]
    return np.ascontiguousarray(np.take_along_axis(rows, places[:, :, None], axis=1))


def _compute_signal(
    sample: GroupSample, noise: Noise, total: float, residual: float, rank: int
) -> tuple[float, bool]:
    """Variance of y relative to the noise's, at least 1, and whether the rows tell of any noise."""
    count = sample.count
    ranks = _count_ranks(sample)
    if total <= 0.0 or count <= 0.0:
        return 1.0, False
    known = isinstance(noise, KnownNoise)
    if count <= rank and not known:
        return 1.0, False
    if known:
        variance = 1.0 / noise.precision(count, residual)
    elif count - ranks >= 1.0:
        variance = sample.residual / (count - ranks)
    else:
        variance = residual / (count - rank)
    variance = max(variance, LEAST_NOISE * total / count)
    return max(total / (count * variance), 1.0), True


def _count_ranks(sample: GroupSample) -> float:
    """Sum of the ranks of all groups."""
    return float(np.count_nonzero(np.diagonal(sample.rows, axis1=1, axis2=2)))


# ---- evidence ------------------------------------------------------------------------------------


def _find_covariance(
    frame: Frame,
    noise: Noise,
    mean: Array,
    free: NDArray[np.bool_],
    tolerance: float,
    near: SharedPrior | None,
) -> DeviancePoint:
    """The best D under the prior of that strength for which the evidence is highest.

    From the most strict prior on, each from where the last one ended, until none is better. The
    least is worth one group, but only where groups have rows to spare that tell of the noise.
    """
    p = len(frame.root)
    known = None if near is None or p != len(near.root) else near.best_root
    # Where columns depended on others their part of the root is 0: then the search begins anew.
    if near is not None and near.strength and known is not None and np.diagonal(known).all():
        task = _Deviance(frame, noise, mean, free, CovariancePrior(near.strength, frame.scale))
        return search_from(task, frame.root @ np.linalg.inv(known), tolerance)
    strengths = [each * p for each in STRENGTHS if p > 1]
    if p == 1 or frame.residual_df >= len(frame.rows):
        strengths.append(1.0)
    lower: Any = np.tril_indices(p)
    least = 0.1 * min(len(frame.rows) / frame.sample.count, 1.0)
    tasks = [
        _Deviance(frame, noise, mean, free, CovariancePrior(strength, frame.scale))
        for strength in strengths
    ]
    best = search(tasks[0], p, least, frame.scale, ROUGH)
    chosen, lowest = tasks[0], best.value + best.compute_volume(lower)
    for task in tasks[1:]:
        point = search_from(task, best.root, ROUGH)
        deviance = point.value + point.compute_volume(lower)
        if deviance >= lowest:
            break
        chosen, best, lowest = task, point, deviance
    return search_from(chosen, best.root, tolerance)


def _compute_expected_root(point: DeviancePoint) -> Array:
    """A root of the mean of D over what the groups leave open of it."""
    spread = point.compute_spread(np.tril_indices(len(point.root)))
    return np.asarray(point.root * np.exp(0.5 * np.minimum(spread, MOST_SPREAD)))


class MeansRegression:
    """The regression for the means, at one root of D^-1: [S, t; 0, r] and what it was made from."""

    def __init__(
        self,
        frame: Frame,
        mean: Array,
        free: NDArray[np.bool_],
        root: Array,
        whitened: tuple[Array, Array] | None = None,
    ) -> None:
        white, log_determinants = whitened or whiten_groups(root, frame.rows)
        g, self.frame = len(white), frame
        self.W = white[:, :, :-1]
        of_means = self.W / frame.sample.stretch
        target = white[:, :, -1] - of_means[:, :, ~free] @ mean[~free]
        self.columns = np.ascontiguousarray(of_means[:, :, free])
        self.target = target
        self.free = free
        # Of fixed means the prior says nothing.
        self.own = frame.mean_rows[:, np.append(free, True)]
        self.factor = self._regress(self.columns, target)
        self.fixed = np.where(free, 0.0, mean)
        self.mean = self.fixed.copy()
        self.mean[free] = self.factor.coefficients()[:, 0]
        self.residual = float(self.factor.residual()[0, 0]) + frame.sample.residual
        diagonal = np.diag(root)
        own = 2.0 * float(np.sum(np.log(diagonal[diagonal > 0.0])))
        self.log_determinants = (
            g * own - float(np.sum(log_determinants)) - self.factor.log_determinant()
        )
        prior = self._regress(self.columns[:0], target[:0])
        self.n_flat = self.factor.rank - prior.rank
        self.log_determinants += prior.log_determinant()
        if self.n_flat:  # their density is 1 in units of w: U is triangular, free the first or all
            self.log_determinants -= 2.0 * float(np.sum(np.log(np.diag(frame.root)[free])))

    def without_each(self, groups: int) -> Array:
        """(groups + 1, f, f + 1) triangles [S, t] of the means: but for one group, and of all."""
        rows = np.concatenate([self.columns, self.target[:, :, None]], axis=2)
        left = np.repeat(rows[None], groups + 1, axis=0)
        left[range(groups), range(groups)] = 0.0
        own = np.repeat(self.own[None], groups + 1, axis=0)
        flat = left.reshape(groups + 1, -1, rows.shape[2])
        return triangulate_groups(np.concatenate([flat, own], axis=1)).rows()

    def _regress(self, columns: Array, target: Array) -> Factor:
        factor = Factor(columns.shape[-1])
        factor.append(columns.reshape(target.size, columns.shape[-1]), target.reshape(-1, 1))
        if len(self.own):
            factor.append(self.own[:, :-1].copy(), self.own[:, -1:].copy())
        return factor


@dataclass(frozen=True)
class _Deviance:
    """-2 log posterior density as a function of a root L of D = L L'."""

    frame: Frame
    noise: Noise
    mean: Array
    free: NDArray[np.bool_]
    prior: CovariancePrior

    def value(self, root: Array) -> float:
        """Return -2 log evidence at a root, up to a constant."""
        return self._compute_value(root, self._compute_means(root))

    def evaluate(self, root: Array) -> DeviancePoint:
        """Return the deviance at a root, with its gradient and information.

        With M = W'W and a = W' e, e the residuals of the regression for m, K = (S'S)^-1 and c the
        noise precision, the slope by D is sum(M - M K M - c a a').
        """
        means, noise = self._compute_means(root), self.noise
        residual_df, residual = self._compute_noise(means)
        precision = noise.precision(residual_df, residual) if means.residual >= residual else 0.0
        error = means.target - means.columns @ means.mean[self.free]
        W = means.W @ root
        transposed = np.swapaxes(W, 1, 2)
        information = transposed @ W
        pull = (transposed @ error[:, :, None])[:, :, 0]
        spread = (transposed @ means.columns) @ _compute_inverse_root(means.factor)
        each = information - spread @ np.swapaxes(spread, 1, 2)
        slope = each.sum(axis=0) - precision * (pull.T @ pull)
        slope += self.prior.slope(root)
        learns = not isinstance(noise, KnownNoise)
        value = self._compute_value(root, means)
        return DeviancePoint(
            root, value, slope, each, residual_df if learns else np.inf, self.prior
        )

    def _compute_means(self, root: Array) -> MeansRegression:
        inverse = _triangulate(np.asarray(np.linalg.inv(root)))
        return MeansRegression(self.frame, self.mean, self.free, inverse)

    def _compute_noise(self, means: MeansRegression) -> tuple[float, float]:
        """Return the residual degrees of freedom, and the residual sum of squares."""
        residual_df = self.frame.sample.count - means.n_flat
        return residual_df, max(means.residual, self.frame.least)

    def _compute_value(self, root: Array, means: MeansRegression) -> float:
        value = -2.0 * self.noise.log_evidence(*self._compute_noise(means), means.log_determinants)
        return value + self.prior.penalty(root)


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


def make_factor(root: Array, mean: Array) -> Factor:
    factor = Factor(len(root))
    factor.append(root, (root @ mean)[:, None])
    return factor


def _compute_inverse_root(factor: Factor) -> Array:
    """(f, f) T with T T' the inverse of the information, 0 where there is none."""
    kept, f = factor.determined, factor.n_coefficients
    inverse = np.zeros((f, f))
    own = factor.root[np.ix_(kept, kept)]
    inverse[np.ix_(kept, kept)] = np.linalg.inv(own)
    return inverse


def triangulate_groups(rows: Array) -> GroupBank:
    """The triangles of rows (g, n, p + 1)."""
    groups, n, q = rows.shape
    bank = GroupBank(q - 1)
    bank.reserve(max(groups, 1))
    bank.grow(groups)
    flat, numbers = rows.reshape(groups * n, q), np.repeat(np.arange(groups, dtype=np.int32), n)
    X, y = np.ascontiguousarray(flat[:, :-1]), np.ascontiguousarray(flat[:, -1])
    bank.learn(GroupedRows(X, y, None, False, numbers, np.arange(groups)))
    return bank


def _triangulate(matrix: Array) -> Array:
    """The upper triangular R >= 0 on its diagonal with R'R = matrix'matrix."""
    upper = np.asarray(np.linalg.qr(matrix, mode="r"))
    signs = np.where(np.diag(upper) < 0.0, -1.0, 1.0)
    return np.ascontiguousarray(signs[:, None] * upper)


__all__ = [
    "EtaScale",
    "Frame",
    "GroupSample",
    "MeansRegression",
    "SharedPrior",
    "learn_prior",
    "make_shared_prior",
    "make_unit_information_prior",
    "triangulate_groups",
]
