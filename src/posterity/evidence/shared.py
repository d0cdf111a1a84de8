"""The prior that many groups share, learned from all of them (empirical Bayes).

    y = x . w_g + noise,     w_g ~ Normal(m, sigma^2 D),     noise ~ Normal(0, sigma^2)

Each group g comes as the triangle [R, z] of its rows. With its own coefficients integrated it says
``o = W m + noise``, W'W = R' (I + R D R')^-1 R (:func:`posterity.factor.grouped.whitened`), so that
all groups stacked are an ordinary regression for m, with the triangle [S, t; 0, r]. The prior of m
is flat; with m and sigma integrated, the evidence of D is

    log p(y | D) = -1/2 sum log |I + R D R'| - 1/2 log |S'S| - a_n log(b_0 + r^2 / 2) + const

(restricted maximum likelihood: Laird and Ware 1982). A maximum of that alone is often singular, or
infinite where there are few groups. So D has a weak prior: Wishart with p + 2 degrees of freedom,
|D|^(1/2) exp(-tr(D V) / 2s), which keeps it off its boundary (Chung, Gelman, Rabe-Hesketh, Liu and
Dorie 2015). V is the mean of x x' and s the variance of y in units of the noise's: no units matter,
and that groups differ by more than y does is not expected.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.optimize import minimize

from posterity.factor import Factor
from posterity.factor.grouped import whitened
from posterity.noise import KnownNoise, Noise

Array = NDArray[np.float64]

# So few groups are each told what the others say, and not what all do.
FEW_GROUPS = 16
# How many variances, from a tenth of a row's say to the variance of y, are tried for a start.
STARTS = 4
# Slopes at which the search begins anew, from what it has found.
ROUGH = (3.0, 0.3)
# Steps of Fisher scoring at most, and the longest logarithm in one.
MOST_STEPS, LONGEST_STEP = 30, 1.5
# Columns up to which the search knows how each two variances or covariances go together.
FEW_COLUMNS = 32
# Noise of which nothing is seen is taken for this part of the variance of y.
LEAST_NOISE = 1e-20


@dataclass(frozen=True)
class GroupSample:
    """Groups to learn from: ``rows`` (g, p, p + 1) [R, z], the sums of weights and of residuals."""

    rows: Array
    count: float
    residual: float


@dataclass(frozen=True)
class SharedPrior:
    """What groups share.

    ``root`` (p, p) upper triangular, root'root the inverse of D, 0 where that is flat; ``mean``
    (p,); ``priors`` (k + 1, q, ld): as triangles, what each of the first k groups is told by all
    others, and what any other group is told, the uncertainty of the mean included. ``residual`` is
    r^2, ``n_means`` the number of means learned, ``log_determinants`` what they and D bring to the
    evidence.
    """

    root: Array
    mean: Array
    priors: Array
    residual: float = 0.0
    n_means: int = 0
    log_determinants: float = 0.0

    @property
    def newcomer(self) -> Array:
        """(q, ld) prior of a group of which no row has come."""
        return self.priors[-1]

    def covariance(self) -> Array:
        """(p, p) D, relative to the noise; infinite variances where nothing is known."""
        return _factor_of(self.root, self.mean).covariance()


def learned(
    sample: GroupSample,
    noise: Noise,
    mean: Array,
    free: NDArray[np.bool_],
    *,
    intercept: bool,
    tolerance: float = 1e-4,
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
    """
    frame = _Frame.of(sample, noise, intercept=intercept)
    p = len(frame.root)
    means, freed = frame.into(mean), free[frame.kept]
    if p == 0 or len(sample.rows) == 0 or not frame.tells:
        scale = np.sqrt(frame.scale)
        return _told(frame, np.eye(p) / scale, _Means(frame, means, freed, np.eye(p) / scale))
    task = _Deviance(frame, noise, means, freed)
    best, found = _scored(task, _starting_point(task), tolerance)
    for until in () if found else (*ROUGH, tolerance):
        best = _searched(task, best, until)
    root = _upper(np.asarray(np.linalg.inv(best.root)))
    return _told(frame, root, _Means(frame, means, freed, root))


def with_given_precision(
    sample: GroupSample, prior: Factor, free: NDArray[np.bool_]
) -> SharedPrior:
    """The mean learned, where the precision is ``prior``'s; what is flat there has mean 0."""
    frame = _Frame.plain(sample)
    root, mean = prior.root.copy(), prior.coefficients()[:, 0]
    return _told(frame, root, _Means(frame, mean, free, root))


def of_all(sample: GroupSample, prior: SharedPrior, free: NDArray[np.bool_]) -> SharedPrior:
    """What groups, all of them, say at a prior that was learned from some."""
    frame = _Frame.plain(sample)
    return _told(frame, prior.root, _Means(frame, prior.mean, free, prior.root))


def given(prior: Factor) -> SharedPrior:
    """A prior that is known."""
    log_determinants = prior.log_determinant()
    mean = prior.coefficients()[:, 0]
    return SharedPrior(
        prior.root.copy(), mean, prior.triangle[None].copy(), 0.0, 0, log_determinants
    )


# ---- coordinates ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Frame:
    """Coordinates u = U w in which the mean of x x' is I, so that no unit of a feature matters.

    ``root`` is U over the columns ``kept``: those that do not depend on others. A residual below
    ``least`` is none.
    """

    kept: NDArray[np.bool_]
    root: Array
    rows: Array
    sample: GroupSample
    scale: float
    tells: bool
    least: float = 1e-300

    @classmethod
    def of(cls, sample: GroupSample, noise: Noise, *, intercept: bool) -> _Frame:
        g, p, _ = sample.rows.shape
        pooled = Factor(p)
        stacked = sample.rows.reshape(g * p, p + 1)
        pooled.append(stacked[:, :p], np.ascontiguousarray(stacked[:, p:]))
        kept = pooled.determined
        root = pooled.root[np.ix_(kept, kept)] / np.sqrt(max(sample.count, 1e-300))
        # Group by group, here and below: many small products, for which BLAS starts no threads.
        within = sample.rows[:, :, :p][:, :, kept] @ np.linalg.inv(root)
        rows = np.concatenate([within, sample.rows[:, :, p:]], axis=2)
        residual = float(pooled.residual()[0, 0]) + sample.residual
        around = pooled.moments[int(intercept) :, 0]
        total = float(around @ around) + residual
        scale, tells = _signal(sample, noise, total, residual, int(kept.sum()))
        least = max(LEAST_NOISE * total, 1e-300)
        return cls(kept, root, np.ascontiguousarray(rows), sample, scale, tells, least)

    @classmethod
    def plain(cls, sample: GroupSample) -> _Frame:
        """The coefficients themselves."""
        p = sample.rows.shape[1]
        return cls(np.ones(p, dtype=bool), np.eye(p), sample.rows, sample, 1.0, True)

    def into(self, coefficients: Array) -> Array:
        return self.root @ coefficients[self.kept]

    def back(self, coefficients: Array) -> Array:
        whole = np.zeros(len(self.kept))
        whole[self.kept] = solve_triangular(self.root, coefficients, check_finite=False)
        return whole


def _signal(
    sample: GroupSample, noise: Noise, total: float, residual: float, rank: int
) -> tuple[float, bool]:
    """Variance of y relative to the noise's, at least 1, and whether the rows tell of any noise."""
    count = sample.count
    ranks = float(np.count_nonzero(np.diagonal(sample.rows, axis1=1, axis2=2)))
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


# ---- evidence ------------------------------------------------------------------------------------


class _Means:
    """The regression for the means, at one root of D^-1: [S, t; 0, r] and what it was made from."""

    def __init__(self, frame: _Frame, mean: Array, free: NDArray[np.bool_], root: Array) -> None:
        white, log_determinants = whitened(root, frame.rows)
        g, h, _ = white.shape
        self.W = white[:, :, :-1]
        target = white[:, :, -1] - self.W[:, :, ~free] @ mean[~free]
        self.columns = np.ascontiguousarray(self.W[:, :, free])
        self.target = target
        self.free = free
        self.factor = Factor(int(free.sum()))
        self.factor.append(self.columns.reshape(g * h, int(free.sum())), target.reshape(-1, 1))
        self.fixed = np.where(free, 0.0, mean)
        self.mean = self.fixed.copy()
        self.mean[free] = self.factor.coefficients()[:, 0]
        self.residual = float(self.factor.residual()[0, 0]) + frame.sample.residual
        diagonal = np.diag(root)
        own = 2.0 * float(np.sum(np.log(diagonal[diagonal > 0.0])))
        self.log_determinants = (
            g * own - float(np.sum(log_determinants)) - self.factor.log_determinant()
        )

    def without(self, group: int) -> Factor:
        """The triangle of the means, but for what one group says."""
        some = np.arange(len(self.target)) != group
        factor = Factor(self.factor.n_coefficients)
        target = self.target[some].reshape(-1, 1)
        columns = self.columns[some].reshape(len(target), factor.n_coefficients)
        factor.append(columns, target)
        return factor


@dataclass(frozen=True)
class _Point:
    """What a root L of D is worth: -2 log evidence, and how it changes.

    To L (I + A) L', A symmetric: ``slope`` (p, p) is the one by A, ``information`` (g, p, p) what
    each group says: the deviance curves by sum tr(N A N A), but for what the noise takes back, of
    which there are ``freed`` observations.
    """

    root: Array
    value: float
    slope: Array
    information: Array
    freed: float

    def turned(self) -> _Point:
        """The same D, with a root in which what the groups say together is diagonal."""
        basis = np.linalg.eigh(self.information.sum(axis=0)).eigenvectors
        slope, information = basis.T @ self.slope @ basis, basis.T @ self.information @ basis
        return _Point(self.root @ basis, self.value, slope, information, self.freed)

    def units(self, lower: tuple[Array, Array]) -> Array:
        """Directions of the entries of K, D = L K K' L', as long as their standard deviations.

        From the expected curvature, where D's own prior counts as curvature 1. Of many columns each
        entry by itself.
        """
        N, (i, j) = self.information, lower
        own = np.where(i == j, 4.0, 2.0)
        if len(self.root) > FEW_COLUMNS:
            diagonals = np.diagonal(N, axis1=1, axis2=2)
            by_pair = (diagonals.T @ diagonals + np.sum(N**2, axis=0))[i, j]
            return np.diag(1.0 / np.sqrt(2.0 * by_pair + own))
        p = len(self.root)
        flat = N.reshape(len(N), p * p)
        products = (flat.T @ flat).reshape(p, p, p, p)
        one, two = (i[:, None], j[:, None]), (i[None], j[None])
        both = products[one[0], two[0], one[1], two[1]] + products[one[0], two[1], one[1], two[0]]
        total = N.sum(axis=0)[i, j]
        both -= np.outer(total, total) * (2.0 / max(self.freed, 1.0))
        values, directions = np.linalg.eigh(2.0 * both + np.diag(own))
        return directions / np.sqrt(np.maximum(values, 1.0))


class _Deviance:
    """-2 log evidence as a function of a root L of D = L L'."""

    def __init__(self, frame: _Frame, noise: Noise, mean: Array, free: NDArray[np.bool_]) -> None:
        self.frame, self.noise, self.mean, self.free = frame, noise, mean, free
        self.width = len(frame.root)

    def value(self, root: Array) -> float:
        """-2 log evidence at a root, but for constants."""
        return self._value_of(root, self._means(root))

    def at(self, root: Array) -> _Point:
        """What is known at a root.

        With M = W'W and a = W' e, e the residuals of the regression for m, K = (S'S)^-1 and c the
        noise precision, the slope by D is sum(M - M K M - c a a').
        """
        means, noise = self._means(root), self.noise
        freed, residual = self._noise_of(means)
        precision = noise.precision(freed, residual) if means.residual >= residual else 0.0
        error = means.target - means.columns @ means.mean[self.free]
        W = means.W @ root
        transposed = np.swapaxes(W, 1, 2)
        information = transposed @ W
        pull = (transposed @ error[:, :, None])[:, :, 0]
        spread = (transposed @ means.columns) @ _inverse_root(means.factor)
        each = information - spread @ np.swapaxes(spread, 1, 2)
        slope = each.sum(axis=0) - precision * (pull.T @ pull)
        slope += root.T @ root / self.frame.scale - np.eye(self.width)
        learns = not isinstance(noise, KnownNoise)
        value = self._value_of(root, means)
        return _Point(root, value, slope, each, freed if learns else np.inf)

    def _means(self, root: Array) -> _Means:
        inverse = _upper(np.asarray(np.linalg.inv(root)))
        return _Means(self.frame, self.mean, self.free, inverse)

    def _noise_of(self, means: _Means) -> tuple[float, float]:
        """Observations that are left for the noise, and their residual."""
        freed = self.frame.sample.count - means.factor.rank
        return freed, max(means.residual, self.frame.least)

    def _value_of(self, root: Array, means: _Means) -> float:
        value = -2.0 * self.noise.log_evidence(*self._noise_of(means), means.log_determinants)
        # The prior: log |D| / 2 - tr(D) / 2s.
        value += float(np.sum(root**2)) / self.frame.scale
        return value - 2.0 * float(np.linalg.slogdet(root)[1])


def _starting_point(task: _Deviance) -> _Point:
    """The best root of D of those proportional to I."""
    frame = task.frame
    least = 0.1 * min(len(frame.rows) / frame.sample.count, 1.0)
    scales = np.geomspace(least, frame.scale, STARTS)
    roots = [np.sqrt(scale) * np.eye(task.width) for scale in scales]
    return task.at(min(roots, key=task.value))


def _scored(task: _Deviance, best: _Point, tolerance: float) -> tuple[_Point, bool]:
    """Fisher scoring as long as each step is for the better; also whether it has come to its end.

    In units of their own standard deviations, so that ``tolerance`` is how far each entry may be
    from the best one in these.
    """
    lower = np.tril_indices(task.width)
    for _ in range(MOST_STEPS):
        best = best.turned()
        unit = best.units(lower)
        entries = 2.0 * best.slope[lower]
        steps = -unit.T @ entries
        if np.abs(steps).max(initial=0.0) <= tolerance:
            return best, True
        entries = unit @ steps
        entries *= min(1.0, LONGEST_STEP / np.abs(entries).max())
        point = task.at(best.root @ _factor(entries, lower))
        if not point.value < best.value:
            break
        best = point
    return best, False


def _searched(task: _Deviance, start: _Point, tolerance: float) -> _Point:
    """The best D by its slopes alone, in the same units around ``start``."""
    start = start.turned()
    lower = np.tril_indices(task.width)
    unit = start.units(lower)
    found = [start]

    def deviance(steps: Array) -> tuple[float, Array]:
        K = _factor(unit @ steps, lower)
        point = task.at(start.root @ K)
        if point.value < found[0].value:
            found[0] = point
        by_entry = 2.0 * np.linalg.solve(K.T, point.slope)[lower]
        by_entry *= np.where(lower[0] == lower[1], K[lower], 1.0)
        return point.value, unit.T @ by_entry

    minimize(
        deviance,
        np.zeros(len(lower[0])),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 300, "maxcor": 20, "gtol": tolerance, "ftol": 1e-15},
    )
    return found[0]


def _factor(entries: Array, lower: tuple[Array, Array]) -> Array:
    """K from its entries, those of the diagonal in logarithms; none is out of all proportion."""
    p = int(lower[0][-1]) + 1
    K = np.zeros((p, p))
    logs = np.exp(np.clip(entries, -10.0, 10.0))
    K[lower] = np.where(lower[0] == lower[1], logs, np.clip(entries, -1e4, 1e4))
    return K


# ---- inner ---------------------------------------------------------------------------------------


def _told(frame: _Frame, root: Array, means: _Means) -> SharedPrior:
    """The prior in the coefficients themselves, and what each group is told."""
    groups = len(frame.rows)
    others = [means.without(g) for g in range(groups)] if groups <= FEW_GROUPS else []
    tell: Callable[[Factor], Array] = lambda factor: _prior(frame, root, means, factor)  # noqa: E731
    p = len(frame.kept)
    whole = np.zeros((p, p))
    whole[np.ix_(frame.kept, frame.kept)] = root @ frame.root
    return SharedPrior(
        whole,
        frame.back(means.mean),
        np.array([tell(factor) for factor in [*others, means.factor]]),
        means.residual,
        means.factor.rank,
        means.log_determinants,
    )


def _prior(frame: _Frame, root: Array, means: _Means, factor: Factor) -> Array:
    """The triangle of w where ``root (w - m) = noise`` and m has the triangle ``factor``."""
    p, f = len(root), factor.n_coefficients
    both = Factor(f + p)
    relation = np.concatenate([-root[:, means.free], root], axis=1)
    both.append(relation, (root @ means.fixed)[:, None])
    said = np.zeros((f, f + p))
    said[:, :f] = factor.root
    both.append(said, np.ascontiguousarray(factor.moments))
    rows = np.zeros((p, len(frame.kept)))
    rows[:, frame.kept] = both.root[f:, f:] @ frame.root
    prior = Factor(len(frame.kept))
    prior.append(rows, np.ascontiguousarray(both.moments[f:]))
    # By construction it fits itself: what rounding left is not data.
    prior.residual_root[...] = 0.0
    return prior.triangle


def _factor_of(root: Array, mean: Array) -> Factor:
    factor = Factor(len(root))
    factor.append(root, (root @ mean)[:, None])
    return factor


def _inverse_root(factor: Factor) -> Array:
    """(f, f) T with T T' the inverse of the information, 0 where there is none."""
    kept, f = factor.determined, factor.n_coefficients
    inverse = np.zeros((f, f))
    own = factor.root[np.ix_(kept, kept)]
    inverse[np.ix_(kept, kept)] = np.linalg.inv(own)
    return inverse


def _upper(matrix: Array) -> Array:
    """The upper triangular R >= 0 on its diagonal with R'R = matrix'matrix."""
    upper = np.asarray(np.linalg.qr(matrix, mode="r"))
    signs = np.where(np.diag(upper) < 0.0, -1.0, 1.0)
    return np.ascontiguousarray(signs[:, None] * upper)


__all__ = ["GroupSample", "SharedPrior", "given", "learned", "of_all", "with_given_precision"]
