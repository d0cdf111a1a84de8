"""What is known of several parameters of a likelihood: a Gaussian over their logs t and over u.

Parameters that depend on the coefficients u (the cut points of ratings on the intercept and on the
size of effects) are learned with them. What the rows say of both is a quadratic in (u, t): the
posterior of the coefficients keeps what they say of u given t, and here is the rest. For each row
it is found from the average log density, slope and their changes at a few values of t (the
variational Gaussian approximation, Opper and Archambeau 2009), and is added up; so rows, batches
and merged models are sums, and removed rows are subtracted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from posterity.aliases import Array
from posterity.evidence.secant import SecantSteps
from posterity.factor import Factor
from posterity.likelihoods import Likelihood
from posterity.posteriors._site_rows import find_sites
from posterity.posteriors.gaussian import LinearPosterior
from posterity.posteriors.phi import (
    MANY_ROWS,
    NARROW_STEP,
    NARROW_VARIANCE,
    ApartFromCoefficients,
    BelievedRows,
    LearnedParameter,
)

# In standard deviations: the distance of values of t at which averages over three of them are
# exact to the fifth power, the longest step of all, the change at which they agree, and what the
# next one may be then.
REACH, LONGEST, AGREED, AHEAD = math.sqrt(3.0), 1.0, 0.03, 0.001
# In standard deviations before data, where a search does not begin that need not.
FAR_OUT = 2.0
# Of the prior's precision, what is left of it at least; of a direction of u, what t may not take.
LEAST_PRECISION, MOST_TAKEN = 0.25, 1.0 - 1e-9
# Of a log, where u takes all that the rows say: beyond, parameters would have no floats.
LARGEST_VARIANCE = 16.0
# Values of t at which rows are so much less likely, together, say nothing of those in force.
MOST_FALL, HALVINGS = 16.0, 20
# Averages over an eta that hardly any row has told of would be those of rates beyond all bounds.
MOST_VARIANCE = 1.0
# Singular values of a triangle, relative to the largest, that are none.
ROUNDING = 1e-10
# Both are found together whenever rows have grown by this share.
GROWTH_DIVISOR = 32


class Quadratic(NamedTuple):
    """-t'Pt / 2 - u'Bt + h't: precision P (d, d), cross B (p, d) and shift h (d,)."""

    precision: Array
    cross: Array
    shift: Array

    def add(self, other: Quadratic, times: float = 1.0) -> Quadratic:
        """The sum with so many times another one."""
        return Quadratic(*(one + times * its for one, its in zip(self, other, strict=True)))


@dataclass(frozen=True)
class JointParameters(ApartFromCoefficients):
    """The logs t (d,) of parameters: ``told`` is all that prior and rows say of t and u.

    ``mean`` is in force: what the coefficients' posterior says is said given it. ``covariance`` is
    that of t, with u unknown, when ``mean`` was found; it is found again when there are ``due``
    rows.
    """

    mean: Array
    covariance: Array
    told: Quadratic
    rows: float = 0.0
    due: float = 1.0

    moves_coefficients: ClassVar[bool] = True  # t would follow what rows leave open

    @classmethod
    def before_data(cls, likelihood: Likelihood, n_coefficients: int) -> Self:
        """Begin from the prior."""
        mean, sd = (
            np.array([float(getattr(one, of)) for one in likelihood.parameters])
            for of in ("mean", "sd")
        )
        precision = np.diag(sd**-2.0)
        cross = np.zeros((n_coefficients, len(mean)))
        return cls(mean, np.diag(sd * sd), Quadratic(precision, cross, precision @ mean))

    @property
    def value(self) -> Array:
        """(d,) parameters in force."""
        return np.exp(self.mean)

    @property
    def n_missing(self) -> int:
        """The number of rows still to come before other values are in force."""
        return max(int(self.due - self.rows), 1)

    def search_from(self, prior: Self) -> Self:
        """Where a fit begins, unless that is far out, where rows before may have held it."""
        away = np.abs(self.mean - prior.mean) / np.sqrt(np.diag(prior.covariance))
        return self if away.max(initial=0.0) < FAR_OUT else prior

    def compile_nodes(self, likelihood: Likelihood) -> None:
        """None: it asks for slopes, too."""

    # ---- learning ------------------------------------------------------------------------------

    def learn(self, likelihood: Likelihood, rows: BelievedRows) -> Self:
        """Learn rows that came one after another."""
        return self._add(self._find(likelihood, rows), rows.n_rows)

    def learn_row(self, likelihood: Likelihood, *told: Array) -> Self:
        """Learn one: target, mean and variance of its eta, weight (1,), and features (m,)."""
        y, mean, variance, weight, x = told
        return self.learn(likelihood, BelievedRows(y, mean, variance, weight, x[None], np.zeros(1)))

    def learn_together(
        self, likelihood: Likelihood, near: Self, rows: BelievedRows
    ) -> tuple[Self, Callable[[], float]]:
        """Learn rows of which each eta is given by all others, with ``near.value`` in force."""
        now = self._add(near._find(likelihood, rows), rows.n_rows)
        now = replace(now, mean=near.mean, covariance=near.covariance, due=0.0)
        return now, lambda: 0.0  # what is integrated over it is gained when it settles

    def unlearn(self, likelihood: Likelihood, rows: BelievedRows) -> Self:
        """Unlearn rows: what they would tell if they came again."""
        left = self._add(self._find(likelihood, rows), -rows.n_rows, times=-1.0)
        if np.linalg.eigvalsh(left.told.precision).min(initial=np.inf) <= 0.0:
            raise ValueError(
                "less than nothing would be left of what rows say of "
                f"{', '.join(one.name for one in likelihood.parameters)}: rows that came early "
                "said less then than is taken out now; fit the remaining rows again"
            )
        return replace(left, due=0.0)

    def merge(self, other: Self, likelihood: Likelihood) -> Self:
        """Learn what ``other`` learned; the prior counts once."""
        prior = self.before_data(likelihood, len(self.told.cross))
        both = self._add(other.told, other.rows)._add(prior.told, 0.0, times=-1.0)
        return replace(both, due=0.0)

    def settle_in(self, inner: LinearPosterior, before: Self | None = None) -> tuple[Self, float]:
        """Find t and u together if it is due: ``inner``, which knows u given t, moves along.

        Returns the log of what it moves the evidence by: of rows that are learned together, after
        what was known ``before`` of t, with the integral over it; of others under the prior that
        finds the next site.
        """
        if self.rows < self.due:
            return self, 0.0
        told, mean = self.told, self.mean
        find = inner.central_ahead if before is None else lambda: inner
        node = find()
        slope = told.shift - told.cross.T @ node.coefficients() - told.precision @ mean
        covariance = self._invert(
            told.precision - told.cross.T @ _solve(node.central(), told.cross)
        )
        step = covariance @ slope
        step *= min(1.0, LONGEST / max(float(np.abs(step).max(initial=0.0)), 1e-300))
        left = move(inner, -told.cross @ step, find)
        found = replace(self, mean=mean + step, covariance=covariance)
        found = replace(found, due=self.rows + max(1.0, self.rows // GROWTH_DIVISOR))
        return found, left + (0.0 if before is None else found._integrate(before))

    def move_to(self, near: Self, inner: LinearPosterior) -> float:
        """As in the base."""
        return move(inner, -self.told.cross @ (near.mean - self.mean), lambda: inner)

    def agrees_with(self, last: Self, within: float = 0.0, rate: float = 1.0) -> bool:
        """Return True if nothing is gained by finding it again; or within so many sds.

        So too where the next change, the ``rate`` times this one, would be nothing.
        """
        away = self._measure(last)
        return away < max(AGREED, within) or (away < 1.0 and rate * away < AHEAD)

    def extrapolate(self, last: Self, steps: SecantSteps) -> tuple[Self, SecantSteps]:
        """As it was found: steps are those of Newton's method, of which two tell the rate."""
        away = self._measure(last)
        return self, replace(steps.lengthen(away)[1], last=(away, away))

    # ---- reading -------------------------------------------------------------------------------

    def moments(self, likelihood: Likelihood) -> Array:
        """Means of t and of its squares (2, d)."""
        return np.array([self.mean, np.square(self.mean) + np.diag(self.covariance)])

    def marginalize(self, inner: LinearPosterior) -> LinearPosterior:
        """What is known of u whatever t is, from what is known given t."""
        if not self.told.cross.any():
            return inner
        # The information of u falls by D'D, with D = P^-1/2 B': R'R becomes R'(1 - E E')R.
        root = np.linalg.cholesky(self.told.precision)
        less = np.linalg.solve(root, self.told.cross.T)
        data = inner.without_prior().factor
        taken = _find_moments(data.root, less.T)
        u, s, _ = np.linalg.svd(taken, full_matrices=False)
        left = np.sqrt(1.0 - np.minimum(s * s, MOST_TAKEN))
        moments = data.moments[:, 0] - taken @ (less @ inner.coefficients())
        moments += (u * (1.0 / left - 1.0)) @ (u.T @ moments)
        rows = data.root - (u * (1.0 - left)) @ (u.T @ data.root)
        trial = inner.copy()
        trial.keep(_replace_rows(data, rows, moments), 0)
        return trial

    def spread(self, find_node: Callable[[], LinearPosterior], X: Array) -> Array:
        """(2 d, n, 1 + d): what moves the means of eta, and values, at points of equal weight."""
        d = len(self.mean)
        turned = math.sqrt(d) * np.linalg.cholesky(self.covariance).T
        steps = np.concatenate([turned, -turned])
        moved = -_add_ones(X, self.told.cross) @ _solve(find_node(), self.told.cross) @ steps.T
        values = np.broadcast_to(np.exp(self.mean + steps)[:, None], (2 * d, len(X), d))
        return np.concatenate([moved.T[:, :, None], values], axis=2)

    # ---- inner ---------------------------------------------------------------------------------

    def _measure(self, last: Self) -> float:
        """The largest change, in standard deviations."""
        away = np.abs(self.mean - last.mean) / np.sqrt(np.diag(self.covariance))
        return float(away.max(initial=0.0))

    def _add(self, told: Quadratic, rows: float, times: float = 1.0) -> Self:
        return replace(self, told=self.told.add(told, times), rows=max(self.rows + rows, 0.0))

    def _find(self, likelihood: Likelihood, rows: BelievedRows) -> Quadratic:
        """What rows say of t and u, around what is in force."""
        mean, variance = _include(likelihood.with_parameter(self.value), rows)
        rows, d = rows._replace(mean=mean, variance=variance), len(self.mean)
        reach = REACH * np.sqrt(np.diag(self.covariance))
        for _ in range(HALVINGS):
            total, slopes, curvatures = self._look(likelihood, rows, reach)
            here, up, down = total[0], total[1 : 1 + d], total[1 + d : 1 + 2 * d]
            near = 2.0 * here - up - down < MOST_FALL
            if near.all():
                break
            reach = np.where(near, reach, 0.5 * reach)
        precision = np.diag((2.0 * here - up - down) / reach**2)
        both = (total[1 + 2 * d :]).reshape(2, -1).sum(axis=0)
        for (j, k), of_both in zip(combinations(range(d), 2), both, strict=True):
            bend = up[j] + down[j] + up[k] + down[k] - 2.0 * here - of_both
            precision[j, k] = precision[k, j] = 0.5 * bend / (reach[j] * reach[k])
        values, vectors = np.linalg.eigh(precision)
        precision = (vectors * np.maximum(values, 0.0)) @ vectors.T
        # As much of eta's curvature as its site has, though it is another further away.
        alone = np.maximum(curvatures[0], 1e-300)
        share = 6.0 * alone / (4.0 * alone + curvatures[1 : 1 + d] + curvatures[1 + d :])
        change = slopes[1 + d :] - slopes[1 : 1 + d]
        bend = rows.weights * share * change / (2.0 * reach[:, None])
        # No row says more of both together than it says of its eta, and all rows of t.
        most = np.sqrt(np.outer(np.diag(precision), rows.weights * curvatures[0]))
        bend = np.clip(bend, -most, most)
        shift = (up - down) / (2.0 * reach) + precision @ self.mean
        if not rows.X.size:
            return Quadratic(precision, np.zeros_like(self.told.cross), shift)
        cross = (bend @ _add_ones(rows.X, self.told.cross)).T
        return Quadratic(precision, cross, shift + bend @ (mean - rows.offsets))

    def _look(
        self, likelihood: Likelihood, rows: BelievedRows, reach: Array
    ) -> tuple[Array, Array, Array]:
        """Average log densities (k,) of all rows where t is in force, and that far away.

        Each alone, and pairs. Average slopes and curvatures, not negative, (1 + 2 d, n) of all but
        the pairs.
        """
        one, n, given = np.diag(reach), len(rows.y), rows[:3]
        two = np.array([j + k for j, k in combinations(one, 2)]).reshape(-1, len(reach))
        steps = np.concatenate([0.0 * one[:1], one, -one, two, -two])
        tried, n_alone = np.exp(self.mean + steps), 1 + 2 * len(reach)
        if n > MANY_ROWS:  # compiled code knows one value at a time
            total, bends = np.empty(len(steps)), np.empty((2, n_alone, n))
            for place, value in enumerate(tried):
                logs, *of_eta = likelihood.with_parameter(value).average(*given)
                total[place] = logs @ rows.weights
                if place < n_alone:
                    bends[:, place] = of_eta
            slopes, curvatures = bends
        else:
            tiled = (np.concatenate([each] * len(steps)) for each in given)
            repeated = likelihood.with_parameter(np.repeat(tried, n, axis=0))
            looks = (each.reshape(-1, n) for each in repeated.average(*tiled))
            logs, slopes, curvatures = looks
            total = logs @ rows.weights
        return total, slopes[:n_alone], np.maximum(curvatures[:n_alone], 0.0)

    def _invert(self, precision: Array) -> Array:
        """The inverse, where the prior is left its share."""
        values, vectors = np.linalg.eigh(0.5 * (precision + precision.T))
        least = LEAST_PRECISION * min(1.0, 1.0 / float(np.diag(self.covariance).max()))
        least = max(least, 1.0 / LARGEST_VARIANCE)
        inverse = (vectors / np.maximum(values, least)) @ vectors.T
        return np.asarray(inverse)

    def _integrate(self, before: Self) -> float:
        """Log of the integral over t of what was known before times what was learned."""
        root = np.linalg.cholesky(before.covariance)
        away = np.linalg.solve(root, self.mean - before.mean)
        shrunk = np.linalg.slogdet(self.covariance)[1] - np.linalg.slogdet(before.covariance)[1]
        return 0.5 * float(shrunk - away @ away)


def begin_to_learn(likelihood: Likelihood, n_coefficients: int) -> Any:
    """What is known before data of a likelihood's parameter, or of several."""
    if likelihood.parameter is not None:
        return LearnedParameter.before_data(likelihood)
    return JointParameters.before_data(likelihood, n_coefficients)


def move(inner: LinearPosterior, shift: Array, find: Callable[[], LinearPosterior]) -> float:
    """Add ``shift`` (p,) to the precision-weighted mean of u, in place.

    Returns the log of what the evidence loses, by the posterior that it can ``find`` in ``inner``.
    """
    if not shift.any():
        return 0.0
    known, data = find().log_evidence, inner.without_prior().factor
    data.moments[:, 0] += _find_moments(data.root, shift)
    inner.replace_rows(data)
    return known - find().log_evidence if math.isfinite(known) else 0.0


def _replace_rows(data: Factor, rows: Array, moments: Array) -> Factor:
    """The factor of these rows, with the residuals and counts of ``data``."""
    made = Factor(data.n_coefficients)
    made.append(np.ascontiguousarray(rows), moments[:, None])
    made.residual_root[...] = data.residual_root
    made.set_triangle(made.triangle, data.count, data.seen)
    return made


def _solve(node: LinearPosterior, cross: Array) -> Array:
    """The covariance of u, given t, times ``cross`` (p, d)."""
    root = node.factor.root
    sizes = _find_sizes(root)  # a column that is held has a huge one
    half = _find_moments(root, cross)
    return np.asarray((np.linalg.lstsq(root / sizes, half, rcond=None)[0].T / sizes).T)


def _find_moments(root: Array, shift: Array) -> Array:
    """z with R'z = ``shift`` (p,) or (p, d); nothing in directions of which no row tells."""
    sizes = _find_sizes(root)
    return np.asarray(np.linalg.lstsq((root / sizes).T, (shift.T / sizes).T, rcond=ROUNDING)[0])


def _find_sizes(root: Array) -> Array:
    sizes = np.sqrt(np.square(root).sum(axis=0))
    return np.where(sizes > 0.0, sizes, 1.0)


def _include(known: Likelihood, rows: BelievedRows) -> tuple[Array, Array]:
    """Mean and variance (n,) of each eta with its own row; a step of Newton's where that is all."""
    if float(rows.variance.max(initial=0.0)) < NARROW_VARIANCE:
        slope, curvature = known.derivatives(rows.y, rows.mean)
        after = rows.variance / (1.0 + rows.variance * rows.weights * curvature)
        step = after * rows.weights * slope
        if float(np.abs(step).max(initial=0.0)) < NARROW_STEP:
            return rows.mean + step, after
    sites = find_sites(known, "moments", rows.y, rows.mean, rows.variance, rows.weights)
    with np.errstate(divide="ignore"):
        total = np.where(rows.variance > 0.0, 1.0 / rows.variance, np.inf) + sites.precision
        variance = np.minimum(1.0 / total, MOST_VARIANCE)
    gain = sites.precision / np.maximum(total, 1e-300)
    return rows.mean + gain * (sites.target - rows.mean), variance


def _add_ones(X: Array, cross: Array) -> Array:
    """Rows with the intercept's 1, where ``cross`` has a row for it."""
    return X if X.shape[1] == len(cross) else np.column_stack([np.ones(len(X)), X])
