"""The mode of rows that come together: Newton's method with a line search.

What was known before is a factor, the prior of these rows; each of them becomes a site row in it.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from posterity.aliases import Array
from posterity.factor import Factor
from posterity.factor.gram import Products, bend_products, gram, solve
from posterity.factor.rows import SiteRows
from posterity.kernel import find_largest_difference, total_density, working_rows
from posterity.likelihoods import Likelihood, Sites

MOST_STEPS = 100
MOST_REWEIGHTINGS = 1000  # heavy tails are climbed by weights: surely, but not as Newton does
HALVINGS = 60
# Values of features that stay near the processor while rows are looked at, and rows at least.
VALUES_AT_HAND, FEWEST_AT_HAND = 2**17, 512
VALUES_TO_COMPARE = 2**13
# A search starts on every 16th or 4th row, if these are at least this many for each coefficient.
SHARES, ROWS_EACH, FEWEST_ROWS = (16, 4), 20, 500
# Newton decrement squared, twice the log posterior's remaining gain in nats: the mode is then
# within 1e-9 posterior standard deviations of the point before the last step.
DECREMENT_TOLERANCE = 1e-18
# An observation's precision, relative to its gradient, where its curvature vanishes. It damps the
# step a little there, and does not move the mode.
LEAST_CURVATURE = 1e-8
# A curvature is used again while eta has moved by no more than this, and while a step reduces the
# squared decrement to this share; otherwise it is computed again.
SAME_CURVATURE_MOVE, SMALLEST_DECREMENT_GAIN = 2.0, 0.1
CONVERGED_CHANGE = 0.1
# Of the last squared decrement, what a step leaves where only rounding is left; and this, relative.
STAGNANT_SHARE, ROUNDING = 0.5, 1e-15


@dataclass(frozen=True)
class Curvature:
    """The sum of precision x x' over the rows, and the eta (n,) where their precisions are so.

    The last Newton step by it left the share ``left`` of the squared decrement. The last search by
    it has ``ended`` where the rows looked so. It ``is_exact`` if it is that of all these rows.
    """

    matrix: Array
    eta: Array
    left: float = 1.0
    ended: Look | None = None
    is_exact: bool = True

    def of_some(self) -> Self:
        """The same for all of the rows, of which these are some: eta is where they look first."""
        return replace(self, eta=np.empty(0), ended=None, is_exact=False)


def compute_eta(rows: SiteRows, w: Array, intercept: bool) -> Array:
    """The rows' linear predictors (n,)."""
    first = int(intercept)
    eta = np.asarray(rows.X @ w[first:])
    eta += rows.offsets
    eta += float(np.sum(w[:first]))
    return eta


class Look(NamedTuple):
    """What rows say at coefficients ``w``: eta (n,), and of the site rows there the precision (n,).

    And that times (target - eta) (n,), half of the sum of precision (target - eta)^2, the log
    likelihood but for what depends on the targets alone, and its slopes (p,).
    """

    w: Array
    eta: Array
    precision: Array
    pull: Array
    half_site_residual: float
    density: float
    slope: Array

    def find_targets(self, offsets: Array | float = 0.0) -> Array:
        """The sites' targets (n,), less offsets."""
        step = np.zeros(len(self.pull))
        np.divide(self.pull, self.precision, out=step, where=self.precision > 0.0)
        return self.eta + step - offsets


@dataclass(frozen=True)
class Fitted:
    """The rows' sites, and the log of each one's constant summed.

    Sites that did not settle are those at the mode, where that has any; ``averaged`` ones are
    averages over the posterior. The last curvature of the rows serves the search for their mode
    under another prior.
    """

    sites: Sites
    log_scale: float
    coefficients: Array
    converged: bool
    settled: bool = True
    averaged: bool = False
    curvature: Curvature | None = None


def choose_stride(n_rows: int, n_coefficients: int) -> int:
    """Return n where every n-th row finds the neighbourhood cheaply; 1 where all are needed."""
    return next((share for share in SHARES if are_many(n_rows // share, n_coefficients)), 1)


def are_many(n_rows: int, n_coefficients: int) -> bool:
    """Return True if so many rows find the neighbourhood of the mode."""
    return n_rows >= max(ROWS_EACH * n_coefficients, FEWEST_ROWS)


def find_mode(
    before: Factor,
    likelihood: Likelihood,
    rows: SiteRows,
    start: Array | None,
    intercept: bool,
    curvature: Curvature | None = None,
    close: float = 0.0,
) -> Fitted:
    """Find the mode by Newton's method (iteratively reweighted least squares) and a line search.

    Maximises log p(y | w) - |R w - z|^2 / 2, with [R z] the factor ``before``. Each step is the
    least-squares solution of the site rows at the present eta, appended to it. ``curvature`` is
    one of the same rows that is known already, and ``close`` a squared decrement that will do.
    """
    problem = ModeSearch(before, likelihood, rows, intercept)
    problem.curvature, problem.close = curvature, close
    there, converged = _find_mode(problem, start)
    # Far towards a maximum at infinity nothing moves any more, for the rows say nothing there.
    told = bool(there.precision.any() or before.determined.all() or not len(rows))
    if not (converged and told):
        warn_of_no_maximum(likelihood)
    return problem.read_sites(there, converged and told)


def warn_of_no_maximum(likelihood: Likelihood) -> None:
    """Warn that the prior says how far away eta is, and not the rows."""
    warnings.warn(
        "the mode was not reached: the likelihood has no maximum, as with a flat prior and "
        f"{likelihood.without_maximum}; use a proper prior",
        stacklevel=6,
    )


def _find_mode(problem: ModeSearch, start: Array | None) -> tuple[Look, bool]:
    """The mode from ``start``, or from that of some of the rows; and whether it was reached."""
    rows = problem.rows
    share = choose_stride(len(rows), problem.before.n_coefficients)
    if start is None and share > 1:
        some = rows.thin(share)
        few = ModeSearch(problem.before, problem.likelihood, some, problem.intercept)
        start = _maximize(few, few.first())[0].w
    there, converged = _maximize(problem, problem.first() if start is None else start)
    if problem.curvature is not None:
        problem.curvature = replace(problem.curvature, ended=there)
    return there, converged


def _maximize(problem: ModeSearch, w: Array) -> tuple[Look, bool]:
    """What the rows say at the mode, and whether it was reached."""
    here = problem.look(w)
    value = problem.value(here)
    usable: Look | None = None
    last = math.inf
    for _ in range(MOST_STEPS if not problem.likelihood.is_noise else MOST_REWEIGHTINGS):
        try:
            wanted, decrement = problem.compute_newton_target(here, last)
        except FloatingPointError:
            if usable is None:
                raise
            return usable, False  # on the way to a maximum at infinity, and nearly there
        usable = here
        before, last = last, decrement
        here, value, moved = problem.search(here, wanted, value, decrement)
        # With very many rows the rounding of the sum is the limit. Towards a maximum at infinity
        # the gain is small, but eta still moves by about 1 a step.
        settled = find_largest_difference(usable.eta, here.eta) < CONVERGED_CHANGE
        left = decrement * problem.measure_gain(decrement / before)
        near = left <= problem.close or decrement <= max(problem.tolerance, 1e-16 * abs(value))
        if near and settled:
            return here, True
        if not moved or decrement > STAGNANT_SHARE * before:
            if settled and decrement <= problem.compute_rounding(here):
                return here, True
            if not moved:
                break
    return here, False


class ModeSearch:
    """The log posterior of the coefficients, and its site rows."""

    def __init__(
        self, before: Factor, likelihood: Likelihood, rows: SiteRows, intercept: bool
    ) -> None:
        self.before, self.likelihood, self.rows, self.intercept = (
            before,
            likelihood,
            rows,
            intercept,
        )
        self.known = likelihood.kernel_code
        # A gradient by finite differences has no more digits than this.
        self.tolerance = max(DECREMENT_TOLERANCE, likelihood.closeness)
        self.close = 0.0  # squared decrement that may be left
        self.curvature: Curvature | None = None  # where it was last looked at

    def look(self, w: Array) -> Look:
        """What the rows say at ``w``, in one pass over them: of some, while these are at hand."""
        ended = None if self.curvature is None else self.curvature.ended
        if ended is not None and ended.w is w:
            return ended
        rows, first, n = self.rows, int(self.intercept), len(self.rows)
        eta, precision, pull = np.empty((3, n))
        slope, density, half = np.zeros(len(w)), 0.0, 0.0
        size = max(n if self.known is None else VALUES_AT_HAND // max(len(w), 1), FEWEST_AT_HAND)
        for part in (slice(start, start + size) for start in range(0, n, size)):
            some = np.dot(rows.X[part], w[first:], out=eta[part])
            some += rows.offsets[part]
            some += float(np.sum(w[:first]))
            values = self._say(some, part, precision[part], pull[part])
            density, half = density + values[0], half + values[1]
            slope[first:] += pull[part] @ rows.X[part]
        slope[:first] = np.sum(pull)
        if self.curvature is not None and len(self.curvature.eta) < n:
            self.curvature = replace(self.curvature, eta=eta)
        return Look(w, eta, precision, pull, half, density, slope)

    def _say(self, eta: Array, part: slice, precision: Array, pull: Array) -> tuple[float, float]:
        """Write precision and pull of some rows; their log density, and half their residual."""
        rows = self.rows
        if self.known is not None:
            given = rows.y[part], eta, rows.weights[part]
            return working_rows(*self.known, *given, precision, pull)
        slope, curvature = self.likelihood.derivatives(rows.y, eta)
        floored = np.maximum(curvature, LEAST_CURVATURE * np.abs(slope))
        np.multiply(rows.weights, np.minimum(floored, 1e200), out=precision)
        np.multiply(rows.weights, slope, out=pull)
        half = 0.5 * float(pull @ (slope / np.maximum(floored, 1e-300)))
        return self.sum_densities(eta), half

    def value(self, at: Look) -> float:
        """Log posterior, but for a constant."""
        off = self.before.root @ at.w - self.before.moments[:, 0]
        value = at.density - 0.5 * float(off @ off)
        return value if math.isfinite(value) else -math.inf

    def compute_rounding(self, at: Look) -> float:
        """Return the squared decrement that is rounding: eta may be a difference of large terms."""
        rows, first, w = self.rows, int(self.intercept), at.w
        terms = np.abs(rows.X).max(axis=0, initial=0.0) @ np.abs(w[first:])
        error = ROUNDING * (terms + float(np.sum(np.abs(w[:first]))))
        return float(np.sum(at.precision)) * error * error

    def sum_densities(self, eta: Array) -> float:
        """Log likelihood."""
        code, rows = self.likelihood.compiled, self.rows
        if code is not None:
            return total_density(*code, rows.y, eta, rows.weights)
        with np.errstate(over="ignore", invalid="ignore"):
            return float(rows.weights @ self.likelihood.log_density(rows.y, eta))

    def first(self) -> Array:
        """Where to begin: at least squares on the targets' own eta, where there is such."""
        start = getattr(self.likelihood, "start", None)
        nothing = self.before.coefficients()[:, 0]
        if start is None:
            return nothing
        own, at = start(self.rows.y), self.look(nothing)
        self._say(own, slice(None), at.precision, at.pull)
        pull = at.pull + at.precision * (own - at.eta)
        slope = np.concatenate([[np.sum(pull)][: int(self.intercept)], pull @ self.rows.X])
        w = self.solve_step(at._replace(pull=pull, slope=slope))[0]
        return w if math.isfinite(self.value(self.look(w))) else nothing

    def compute_newton_target(self, at: Look, last: float) -> tuple[Array, float]:
        """Return the end of Newton's step, and its squared decrement; ``last`` is the one before.

        Near the mode the curvature that was found last is near enough.
        """
        known = self.curvature
        if known is not None and find_largest_difference(known.eta, at.eta) < SAME_CURVATURE_MOVE:
            there, decrement = self.solve_step(at, again=True)
            if decrement <= SMALLEST_DECREMENT_GAIN * last:
                return there, decrement
        return self.solve_step(at)

    def measure_gain(self, share: float) -> float:
        """The share of the squared decrement that the next step by this curvature will leave.

        As the last one did, which left this ``share``, or 0 if there was none.
        """
        if self.curvature is None:
            return 1.0
        if share > 0.0:
            self.curvature = replace(self.curvature, left=min(share, 1.0))
        return self.curvature.left

    def solve_step(self, at: Look, *, again: bool = False) -> tuple[Array, float]:
        """The least-squares solution of the site rows and what was known, seen from there.

        By the normal equations where they have the digits: the mode is where the gradient, which
        has all of them, vanishes, and the factor is made there. Else by rotations, as there.
        """
        root, rows = self.before.root, self.rows
        gradient = root.T @ (self.before.moments[:, 0] - root @ at.w) + at.slope
        if not again or self.curvature is None:
            self.curvature = self._bend(at)
        step = solve(root.T @ root + self.curvature.matrix, gradient)
        if step is not None:
            return at.w + step, float(step @ gradient)
        factor, target = self.before.copy(), at.find_targets(rows.offsets)
        factor.append(rows.X, target[:, None], at.precision, intercept=self.intercept)
        there = factor.coefficients()[:, 0]
        return there, float(np.sum(np.square(factor.root @ (there - at.w))))

    def bend(self, at: Look, farthest: float) -> None:
        """Find the curvature again where that of these rows is ``farthest`` away in eta, or more.

        Any will do where that is as far as one is used again.
        """
        known, rough = self.curvature, farthest >= SAME_CURVATURE_MOVE
        if known is None or not (rough or known.is_exact):
            known = self._bend(at)
        known = self._bend(at) if find_largest_difference(known.eta, at.eta) > farthest else known
        self.curvature = replace(known, ended=at)

    def summarize(self, at: Look, condition: float) -> Factor | None:
        """A factor of the sites there by products; None where their condition takes the digits."""
        if self.curvature is None:
            return None
        # As seen from there nothing is subtracted that is large beside what is left.
        away = Products(self.curvature.matrix, at.slope[:, None], 2.0 * at.half_site_residual)
        triangle = away.triangle(condition)
        if triangle is None:
            return None
        root, moments, residual = triangle
        moments += (root @ at.w)[:, None]
        return Factor.of((root, moments, residual), float(np.sum(at.precision)))

    def learn_step(self, before: Look, after: Look, near: float) -> None:
        """Let a curvature that is not so near agree with what a step has shown."""
        known = self.curvature
        if known is None or (
            known.is_exact and find_largest_difference(known.eta, after.eta) <= near
        ):
            return
        step, change = after.w - before.w, before.slope - after.slope
        matrix = bend_products(known.matrix, step, change)
        self.curvature = replace(known, matrix=matrix, is_exact=False)

    def read_sites(self, at: Look, converged: bool) -> Fitted:
        """The sites there."""
        sites = Sites(at.precision, at.find_targets(), at.precision)
        log_scale = self.sum_densities(at.eta) + at.half_site_residual
        return Fitted(sites, log_scale, at.w, converged, curvature=self.curvature)

    def _bend(self, at: Look) -> Curvature:
        return Curvature(gram(self.rows.X, at.precision, intercept=self.intercept), at.eta)

    def search(
        self, here: Look, wanted: Array, value: float, decrement: float
    ) -> tuple[Look, float, bool]:
        """The first of the steps 1, 1/2, 1/4, ... that gains what its length lets expect."""
        step, share = wanted - here.w, 1.0
        # Beside a sum over very many rows, this much is rounding.
        slack = 1e-13 * (abs(value) + 1.0) if math.isfinite(value) else 0.0
        for _ in range(HALVINGS):
            there = self.look(here.w + share * step)
            reached = self.value(there)
            if reached > -math.inf and reached >= value + 1e-4 * share * decrement - slack:
                return there, reached, True
            share *= 0.5
        return here, value, False
