"""Marginals beyond the normal: what the exact likelihoods of a few rows say along one direction.

Where a posterior is skewed, as with a level that has only zeros, a normal has the wrong tails. The
rows that make it so are kept with their sites. To read, their sites are found again under each
hypothesis of the prior, until they agree (expectation propagation), equal rows as one row of a
likelihood to a power. Let a be a sum of coefficients with the normal marginal q(a). Then

    p(a)  ~  q(a) prod_i E[t_i(eta_i) / s_i(eta_i) | a] ,

t_i the exact likelihood of a row, s_i its site, and the expectation over the normal of eta_i given
a (Cseke and Heskes 2011, "Approximate marginals in latent Gaussian models"). What this integrates
to corrects the evidence of the hypothesis, and goes with its weight.

All is done in coordinates in which the posterior that was learned is a standard normal: with w =
mean + root^-1 e and rows b = root^-T x it is e ~ Normal(0, I), and eta = mean'x + b'e.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, Self

import numpy as np

from posterity.aliases import Array, Indices, Mask
from posterity.distributions.bent_normal import NODES
from posterity.distributions.triangles import solve_triangle
from posterity.factor import Factor
from posterity.factor.rows import SiteRows
from posterity.likelihoods import Likelihood, Sites
from posterity.likelihoods.averages import make_quadrature_rule
from posterity.posteriors._marginal_densities import (
    POINTS,
    compare_log_gamma,
    find_ends,
    integrate,
    mix,
)
from posterity.posteriors._site_fit import compute_change
from posterity.posteriors.gaussian import LinearPosterior

# Standard deviation of eta below which its distribution is taken as normal, and skewness, which
# moves the ends of a 95% interval by half as many standard deviations: of new rows, and of
# coefficients, for which third moments are enough up to the other one.
NORMAL_BELOW, NORMAL_SKEWNESS, LEAST_OF_COEFFICIENTS = 0.3, 0.3, 0.1
# Rows are kept whose eta is known less than to this, but not open, and is made more skewed than
# that by their likelihood; at most so many, and so many a coefficient, each of so many equal ones
# in the mean; and looked for among at most so many values.
LEAST_SD, OPEN_VARIANCE, LEAST_SKEWNESS = 0.1, 1e12, 3e-4
MOST_ROWS, MOST_A_COEFFICIENT, MOST_EQUAL, MOST_VALUES = 400, 20, 16, 2**20
# Points of each eta given a, few up to some sd of it; and of each eta alone, few up to another.
FEW, MANY, FEW_BELOW = 5, 9, 1.0
FEW_OF_ETA, MANY_OF_ETA, FEW_OF_ETA_BELOW = 9, 21, 0.5
# All rows that are kept have their sites found again. Those that skew most correct densities by
# their likelihoods, and the others by their third moments: of coefficients so many rows; of new
# rows, which may be many, only where a few rows make most of the skewness.
MOST_CORRECTING, FEW_CORRECTING, MOST_OF_IT = 100, 24, 0.9
# Sweeps in which sites agree, to how much, and how many times as narrow as what was learned.
MOST_SWEEPS, TOLERANCE, NARROWEST = 200, 1e-4, 1e6
# Values in memory at once.
AT_ONCE = 2**19
# A node that weighs less is not read, and of a variance, a precision below 0 that is none.
LEAST_WEIGHT, LEAST_BENT = 0.01, 1e-4
# The variance of an eta that is known exactly; and what a row leaves of one in a sweep, at least.
TINY, LEAST_LEFT = 1e-60, 1e-4


@dataclass(frozen=True)
class SkewedRows:
    """Rows that are kept with the sites that were learned for them.

    Features (n, m), targets, weights > 0, offsets, precision of the sites and this times their
    target, all (n,).
    """

    X: Array
    y: Array
    weights: Array
    offsets: Array
    precision: Array
    shift: Array

    @classmethod
    def of(cls, rows: SiteRows, sites: Sites) -> Self:
        """Rows, and the sites that were learned for them."""
        told = rows.weights > 0.0
        some = slice(None) if told.all() else told  # those that are kept are copied later
        X, y, weights, offsets = rows.X, rows.y, rows.weights, rows.offsets
        each = (X, y, weights, offsets, sites.precision, sites.precision * sites.target)
        return cls(*(np.asarray(one[some], dtype=np.float64) for one in each))

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, part: Indices | Mask) -> Self:
        return type(self)(*(one[part] for one in self._each))

    def join(self, other: SkewedRows) -> Self:
        """These rows and others."""
        pairs = zip(self._each, other._each, strict=True)
        return type(self)(*(np.concatenate(pair) for pair in pairs))

    def join_equal(self) -> Self:
        """One row of each group of equal ones."""
        return self._add_up(self._group())

    def select(self, likelihood: Likelihood, mean: Array, variance: Array) -> Self:
        """The most skewed rows, equal ones as one, where eta ~ Normal(mean, variance) (n,).

        The curvature of log rates and log odds changes by up to its own size as eta moves by 1, so
        that the third derivative of a row's likelihood is at most about its curvature: that of its
        site, or where that was found under a prior that was still too wide, its average today.
        """
        most = max(MOST_ROWS, MOST_A_COEFFICIENT * self.X.shape[1])
        open_ = np.flatnonzero((variance > LEAST_SD**2) & (variance < OPEN_VARIANCE))
        some, variance = self[open_], variance[open_]
        with np.errstate(all="ignore"):
            bend = some.weights * likelihood.average(some.y, mean[open_], variance)[2]
        skewness = np.fmax(some.precision, np.abs(bend)) * variance**1.5
        first = np.argsort(-skewness, kind="stable")[: MOST_EQUAL * most]
        some, skewness = some[first], skewness[first]
        places = some._group()
        skewness = _sum_by(places, skewness)
        best = np.argsort(-skewness, kind="stable")[:most]
        return some._add_up(places)[np.sort(best[skewness[best] > LEAST_SKEWNESS])]

    def without(self, rows: SiteRows) -> Self:
        """These rows less others: what is left of the weight has the same part of the site."""
        left = self.weights.copy()
        kept, gone = (np.column_stack([one.X, one.y, one.offsets]) for one in (self, rows))
        for row, weight in zip(gone, rows.weights, strict=True):
            same = (row == kept).all(axis=1)
            left = np.where(same, np.maximum(left - weight, 0.0), left)
        share = left / self.weights
        some = share > 1e-9
        precision, shift = share * self.precision, share * self.shift
        return replace(self, weights=left, precision=precision, shift=shift)[some]

    def settle(
        self, nodes: Sequence[tuple[float, LinearPosterior]], likelihood: Likelihood
    ) -> list[tuple[float, Hypothesis]]:
        """Log weights and hypotheses of all nodes that count, found once for the same nodes."""
        seen = [node.factor.seen for _, node in nodes]
        key = [likelihood, *(weight for weight, _ in nodes), *seen]
        known, same, found = self.__dict__.get("_settled", ((), (), []))
        if known == key and all(one is node for one, (_, node) in zip(same, nodes, strict=True)):
            return list(found)
        some = [(math.log(weight), node) for weight, node in nodes if weight > LEAST_WEIGHT]
        tried = [(log, Hypothesis.settle(node, likelihood, self)) for log, node in some]
        found = [(log + one.log_evidence, one) for log, one in tried if one is not None]
        self.__dict__["_settled"] = key, [node for _, node in nodes], found
        return found

    def __getstate__(self) -> dict[str, object]:
        return {name: one for name, one in self.__dict__.items() if not name.startswith("_")}

    @property
    def _each(self) -> tuple[Array, ...]:
        return self.X, self.y, self.weights, self.offsets, self.precision, self.shift

    def _group(self) -> Indices:
        """(n,) number of the group of equal rows that each belongs to."""
        keys = np.column_stack([self.X, self.y, self.offsets])
        return np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)

    def _add_up(self, places: Indices) -> Self:
        """One row of each group of equal ones, in the order of their numbers."""
        first = self[np.unique(places, return_index=True)[1]]
        sums = (_sum_by(places, one) for one in (self.weights, self.precision, self.shift))
        weights, precision, shift = sums
        return replace(first, weights=weights, precision=precision, shift=shift)


@dataclass(frozen=True)
class Hypothesis:
    """The posterior under one prior, with sites of the kept rows that agree.

    ``node`` is the posterior that was learned. In its coordinates e ~ Normal(mean, covariance), and
    the kept rows are ``b`` (n, d), of this ``likelihood``. Each has its eta ~ Normal(eta,
    variance), and the site exp(constant + shift eta - precision eta^2 / 2). ``cubic`` is the third
    cumulant of each by its exact likelihood, over its variance cubed. ``log_evidence`` is known up
    to what all share.
    """

    node: LinearPosterior
    likelihood: Likelihood
    mean: Array
    covariance: Array
    b: Array
    eta: Array
    variance: Array
    constant: Array
    precision: Array
    shift: Array
    cubic: Array
    log_evidence: float

    @classmethod
    def settle(
        cls,
        node: LinearPosterior,
        likelihood: Likelihood,
        rows: SkewedRows,
        data: Factor | None = None,
        near: Hypothesis | None = None,
    ) -> Self | None:
        """Find the sites of the rows until they agree, from those ``near``; None if they do not.

        ``data`` is all that ``node`` knows of rows, where these are all of them.
        """
        columns = np.column_stack([np.ones(len(rows)), rows.X]) if node.intercept else rows.X
        b, learned = _whiten(node, columns)
        learned = learned + rows.offsets
        known, towards, before = _take_away(node, rows, b, learned, data)
        begin = rows if near is None else near
        precision, shift, step, last = begin.precision, begin.shift, 1.0, math.inf
        for _ in range(MOST_SWEEPS):
            root = _find_root(known + (b.T * precision) @ b)
            if root is None or np.diagonal(root).max(initial=0.0) > NARROWEST:
                return None  # no posterior, or one where no likelihood has digits
            inverse = solve_triangle(root, np.eye(len(root)), lower=True)
            covariance = inverse.T @ inverse
            pull = towards + b.T @ (shift - precision * learned)
            mean = covariance @ pull
            eta, variance = learned + b @ mean, np.einsum("ij,ij->i", b @ covariance, b)
            tilted = _tilt(likelihood, rows, eta, variance, precision, shift)
            change = compute_change(eta, variance, tilted.mean, tilted.variance)
            if change < TOLERANCE:
                break
            step, last = (max(0.7 * step, 0.1) if change > last else step), change
            # Where a log density bends upwards, it has less precision than none.
            told, before_told = (np.maximum(one, TINY) for one in (tilted.variance, variance))
            precision = precision + step * (1.0 / told - 1.0 / before_told)
            shift = shift + step * (tilted.mean / told - eta / before_told)
        else:
            return None
        log_evidence = float(np.sum(tilted.constant + _log_site(learned, precision, shift)))
        log_evidence += 0.5 * float(pull @ mean) - float(np.sum(np.log(np.diagonal(root)))) - before
        cubic = tilted.third / np.maximum(variance, TINY) ** 3
        found = b, eta, variance, tilted.constant, precision, shift, cubic, log_evidence
        return cls(node, likelihood, mean, covariance, *found)

    @property
    def bends_upwards(self) -> bool:
        """True if a row says less than nothing, for which the posterior learned has no site."""
        return bool(float(np.min(self.precision * self.variance)) < -LEAST_BENT)

    def find_skewness(self, directions: Array, few: bool) -> Array:
        """(n,) of sums of coefficients (n, d), by the third cumulants of the rows.

        0 where a ``few`` rows are to make it, and do not.
        """
        moved, sd = self._move(_whiten(self.node, directions)[0])
        each = _cube(moved @ self.b.T / sd[:, None]) * self.cubic
        skewness = np.asarray(each.sum(axis=1))
        if few and each.shape[1] > FEW_CORRECTING:
            sizes = np.partition(np.abs(each), -FEW_CORRECTING, axis=1)
            share = sizes[:, -FEW_CORRECTING:].sum(axis=1)
            skewness = np.where(share >= MOST_OF_IT * sizes.sum(axis=1), skewness, 0.0)
        return skewness

    def _move(self, a: Array) -> tuple[Array, Array]:
        """Covariances (n, d) of sums a (n, d) with all coordinates, and their sds (n,)."""
        moved = a @ self.covariance
        return moved, np.sqrt(np.einsum("ij,ij->i", moved, a))

    def find_densities(
        self, rows: SkewedRows, directions: Array, n_exact: int
    ) -> tuple[Array, Array]:
        """Points and masses (n, k) of directions (n, d); their sums correct the evidence.

        The likelihoods of so many rows are asked, those that skew each most.
        """
        a, centre = _whiten(self.node, directions)
        moved, sd = self._move(a)
        each = moved @ self.b.T / sd[:, None]
        skewness = _cube(each) * self.cubic
        chosen = np.argsort(-np.abs(skewness), axis=1, kind="stable")[:, :n_exact]
        each, asked = (np.take_along_axis(one, chosen, axis=1) for one in (each, skewness))
        rest = skewness.sum(axis=1) - asked.sum(axis=1)
        size = max(1, AT_ONCE // max(1, chosen.shape[1] * len(POINTS) * FEW))
        found = []
        for start in range(0, len(a), size):
            part = slice(start, start + size)
            ask = partial(self._find_log_density, rows, chosen[part], each[part])
            z = np.broadcast_to(POINTS, (len(chosen[part]), len(POINTS)))
            logs = ask(z) + compare_log_gamma(rest[part], z)
            if n_exact:
                more = find_ends(logs)
                both = z, logs, more, ask(more) + compare_log_gamma(rest[part], more)
                z, logs = (np.concatenate(one, axis=1) for one in (both[::2], both[1::2]))
                order = np.argsort(z, axis=1)
                z, logs = (np.take_along_axis(one, order, axis=1) for one in (z, logs))
            found.append(integrate(z, logs))
        z, masses = (np.concatenate(one) for one in zip(*found, strict=True))
        return (centre + a @ self.mean)[:, None] + sd[:, None] * z, masses

    def _find_log_density(
        self,
        rows: SkewedRows,
        chosen: Indices,
        each: Array,
        z: Array,
    ) -> Array:
        """(n, k) at ``z`` sds of a, where eta of the rows ``chosen`` (n, r) moves by ``each``."""
        if not chosen.size:
            return -0.5 * np.square(z)
        variance = self.variance[chosen]
        narrow = np.sqrt(np.maximum(variance - np.square(each), 0.0))
        n_nodes = FEW if float(np.max(self.variance)) <= FEW_BELOW**2 else MANY
        nodes, shares = make_quadrature_rule(n_nodes)
        at = z[:, :, None, None] * each[:, None, :, None] + self.eta[chosen][:, None, :, None]
        at = at + narrow[:, None, :, None] * nodes
        y, weights, precision, shift = (
            one[chosen][:, None, :, None]
            for one in (rows.y, rows.weights, self.precision, self.shift)
        )
        with np.errstate(all="ignore"):
            logs = weights * self.likelihood.log_density(y, at) - _log_site(at, precision, shift)
            most = logs.max(axis=-1)
            averages = np.exp(logs - most[..., None]) @ shares
            corrections = np.log(averages) + most - self.constant[chosen][:, None, :]
        whole = np.nan_to_num(corrections, nan=-np.inf).sum(axis=-1) - 0.5 * np.square(z)
        return np.maximum(whole, -1e12)


class Tilted(NamedTuple):
    """Each eta (n,) by its exact likelihood in place of its site.

    ``constant`` is the log of the mean ratio of both, ``third`` the third cumulant.
    """

    constant: Array
    mean: Array
    variance: Array
    third: Array


def _tilt(
    likelihood: Likelihood,
    rows: SkewedRows,
    eta: Array,
    variance: Array,
    precision: Array,
    shift: Array,
) -> Tilted:
    """Each Normal(eta, variance) with its exact likelihood in place of its site, by quadrature."""
    sd = np.sqrt(variance)
    narrow = float(np.max(sd)) <= FEW_OF_ETA_BELOW
    nodes, shares = make_quadrature_rule(FEW_OF_ETA if narrow else MANY_OF_ETA)
    at = eta[:, None] + sd[:, None] * nodes
    with np.errstate(all="ignore"):
        logs = rows.weights[:, None] * likelihood.log_density(rows.y[:, None], at)
        logs = logs - _log_site(at, precision[:, None], shift[:, None])
        logs = np.nan_to_num(logs, nan=-np.inf)
        most = logs.max(axis=1)
        ratio = np.exp(logs - most[:, None]) * shares
        total = ratio.sum(axis=1)
        ratio /= total[:, None]
        moved = ratio @ nodes
        off = nodes - moved[:, None]
        square, cube = np.sum(ratio * off**2, axis=1), np.sum(ratio * off**3, axis=1)
        square = np.maximum(square, LEAST_LEFT)  # no narrower than points so far apart can tell
        return Tilted(most + np.log(total), eta + sd * moved, variance * square, sd**3 * cube)


def find_quantiles(
    settled: Sequence[tuple[float, Hypothesis]],
    rows: SkewedRows,
    directions: Array,
    *,
    few: bool,
    least: float | None = None,
) -> tuple[Mask, Array]:
    """Which sums of coefficients (n, d) are skewed, and their quantiles (k, 57).

    These are mixed over the hypotheses ``settled``, by their log weights. By default none is skewed
    where no kept row is known so little that this would matter; nor, where a ``few`` rows are to
    make it so, where many do, each a little.
    """
    skewness = np.zeros(len(directions))
    widest = max((float(np.max(one.variance)) for _, one in settled), default=0.0)
    if not few and any(one.bends_upwards for _, one in settled):
        least = 0.0
    if settled and (least is not None or not few or widest > NORMAL_BELOW**2):
        for start in range(0, len(directions), AT_ONCE // len(rows)):
            some = slice(start, start + AT_ONCE // len(rows))
            each = [one.find_skewness(directions[some], few) for _, one in settled]
            skewness[some] = np.abs(each).max(axis=0)
    if least is None:
        least = NORMAL_SKEWNESS if few else LEAST_OF_COEFFICIENTS
    skewed, much = skewness > least, skewness > NORMAL_SKEWNESS
    most = FEW_CORRECTING if few else MOST_CORRECTING
    quantiles = np.empty((len(directions), len(NODES)))
    for these, n_exact in ((skewed & ~much, 0), (much, most)):
        if these.any():
            unique, places = np.unique(directions[these], axis=0, return_inverse=True)
            found = [(log, *one.find_densities(rows, unique, n_exact)) for log, one in settled]
            quantiles[these] = mix(found)[places.ravel()]
    return skewed, quantiles[skewed]


def _whiten(node: LinearPosterior, columns: Array) -> tuple[Array, Array]:
    """Rows (n, d) in coordinates in which the posterior is standard normal, and their mean eta."""
    factor = node.factor
    b = solve_triangle(factor.root, columns.T, transposed=True).T
    return b, b @ factor.moments[:, 0]


def _take_away(
    node: LinearPosterior, rows: SkewedRows, b: Array, learned: Array, data: Factor | None
) -> tuple[Array, Array, float]:
    """What ``node`` says of e without the rows: precision, this times the mean, and what they add.

    That is the log of what was learned of them at e = 0, the mean of ``node``.
    """
    if data is None:
        known = (b.T * rows.precision) @ b
        towards = b.T @ (rows.shift - rows.precision * learned)
        before = float(np.sum(_log_site(learned, rows.precision, rows.shift)))
    else:
        told = solve_triangle(node.factor.root, data.root.T, transposed=True).T
        left = data.moments[:, 0] - told @ node.factor.moments[:, 0]
        known, towards, before = told.T @ told, told.T @ left, -0.5 * float(left @ left)
    return np.eye(len(known)) - known, -towards, before


def _find_root(matrix: Array) -> Array | None:
    """Lower Cholesky factor; None where the matrix is not positive."""
    try:
        return np.asarray(np.linalg.cholesky(matrix), np.float64)
    except np.linalg.LinAlgError:
        return None


def _cube(values: Array) -> Array:
    return values * values * values  # many times as fast as a power


def _sum_by(places: Indices, values: Array) -> Array:
    return np.asarray(np.bincount(places, values), dtype=np.float64)


def _log_site(eta: Array, precision: Array, shift: Array) -> Array:
    return np.asarray((shift - 0.5 * precision * eta) * eta)


__all__ = ["MOST_VALUES", "NORMAL_BELOW", "SkewedRows", "find_quantiles"]
