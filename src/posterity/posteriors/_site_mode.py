"""The mode of rows that come together: Newton's method with a line search.

What was known before is a factor, the prior of these rows; each of them becomes a site row in it.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from posterity.factor import Factor
from posterity.factor.gram import ROUGH_CONDITION, Products, gram, solve
from posterity.factor.rows import SiteRows
from posterity.kernel import total_density, working_rows
from posterity.likelihoods import Likelihood, Sites

Array = NDArray[np.float64]

MOST_STEPS = 100
MOST_REWEIGHTINGS = 1000  # heavy tails are climbed by weights: surely, but not as Newton does
HALVINGS = 60
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
    it has ``ended`` at these coefficients, with this eta (n,).
    """

    matrix: Array
    eta: Array
    left: float = 1.0
    ended: tuple[Array, Array] | None = None

    def at(self, rows: SiteRows, w: Array, intercept: bool) -> Self:
        """The same for other rows like these, where the mode is near these coefficients."""
        return replace(self, eta=compute_eta(rows, w, intercept), ended=None)


def compute_eta(rows: SiteRows, w: Array, intercept: bool) -> Array:
    """The rows' linear predictors (n,)."""
    first = int(intercept)
    eta = np.asarray(rows.X @ w[first:])
    eta += rows.offsets
    eta += float(np.sum(w[:first]))
    return eta


def find_largest_move(before: Array, after: Array) -> float:
    """The largest distance between two linear predictors (n,) of a row."""
    moves = after - before
    return float(max(moves.max(initial=0.0), -moves.min(initial=0.0)))


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
    problem = _Problem(before, likelihood, rows, intercept)
    problem.curvature, problem.close = curvature, close
    w, eta, converged = _find_mode(problem, start)
    precision, target = problem.compute_working_row(eta)
    sites = Sites(precision, target + rows.offsets, precision)
    log_scale = problem.sum_densities(eta) + problem.half_site_residual
    # Far towards a maximum at infinity nothing moves any more, for the rows say nothing there.
    converged = converged and bool(precision.any() or before.determined.all() or not len(rows))
    if not converged:
        warn_of_no_maximum(likelihood)
    return Fitted(sites, log_scale, w, converged, curvature=problem.curvature)


def warn_of_no_maximum(likelihood: Likelihood) -> None:
    """Warn that the prior says how far away eta is, and not the rows."""
    warnings.warn(
        "the mode was not reached: the likelihood has no maximum, as with a flat prior and "
        f"{likelihood.without_maximum}; use a proper prior",
        stacklevel=6,
    )


class Convergence(NamedTuple):
    """Limits of a search that is not the last: squared decrement, and eta's distance.

    Where eta is further than that from the curvature's, the curvature is computed again.
    """

    decrement: float
    eta: float


def find_near_mode(
    before: Factor,
    likelihood: Likelihood,
    rows: SiteRows,
    start: Array | None,
    intercept: bool,
    curvature: Curvature | None,
    close: Convergence,
) -> tuple[Factor, Array, Curvature] | None:
    """A factor of the sites near their mode, its coefficients, and the curvature there.

    Made of products: enough to choose a prior by, at less than the cost of rotations. None where
    they have not the digits, or the mode is not reached.
    """
    problem = _Problem(before, likelihood, rows, intercept)
    problem.curvature, problem.close = curvature, close.decrement
    w, eta, converged = _find_mode(problem, start)
    if not converged:
        return None
    products, total = problem.products(w, eta, close.eta)
    triangle = products.triangle(ROUGH_CONDITION)
    if triangle is None or problem.curvature is None:
        return None
    return Factor.of(triangle, total), w, problem.curvature


def _find_mode(problem: _Problem, start: Array | None) -> tuple[Array, Array, bool]:
    """The mode from ``start``, or from that of some of the rows."""
    rows = problem.rows
    share = choose_stride(len(rows), problem.before.n_coefficients)
    if start is None and share > 1:
        some = rows.thin(share)
        few = _Problem(problem.before, problem.likelihood, some, problem.intercept)
        start = _maximize(few, few.first())[0]
    w, eta, converged = _maximize(problem, problem.first() if start is None else start)
    if problem.curvature is not None:
        problem.curvature = replace(problem.curvature, ended=(w, eta))
    return w, eta, converged


def _maximize(problem: _Problem, w: Array) -> tuple[Array, Array, bool]:
    """The mode, its eta, and whether it was reached."""
    eta = problem.eta(w)
    value = problem.value(w, eta)
    usable: tuple[Array, Array] | None = None
    last = math.inf
    for _ in range(MOST_STEPS if not problem.likelihood.is_noise else MOST_REWEIGHTINGS):
        try:
            wanted, decrement = problem.compute_newton_target(w, eta, last)
        except FloatingPointError:
            if usable is None:
                raise
            return *usable, False  # on the way to a maximum at infinity, and nearly there
        usable = w, eta
        here, before, last = eta, last, decrement
        w, eta, value, moved = problem.search(w, wanted, eta, value, decrement)
        # With very many rows the rounding of the sum is the limit. Towards a maximum at infinity
        # the gain is small, but eta still moves by about 1 a step.
        settled = find_largest_move(here, eta) < CONVERGED_CHANGE
        left = decrement * problem.measure_gain(decrement / before)
        near = left <= problem.close or decrement <= max(problem.tolerance, 1e-16 * abs(value))
        if near and settled:
            return w, eta, True
        if not moved or decrement > STAGNANT_SHARE * before:
            if settled and decrement <= problem.compute_rounding(w):
                return w, eta, True
            if not moved:
                break
    return w, eta, False


class _Problem:
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
        self.working_row = np.empty((2, len(rows)))
        # Of the last sites: their eta, log density, and sum of precision (eta - target)^2 / 2.
        self.looked_at: Array | None = None
        self.density = self.half_site_residual = 0.0
        self.curvature: Curvature | None = None  # where it was last looked at

    def eta(self, w: Array) -> Array:
        ended = None if self.curvature is None else self.curvature.ended
        if ended is not None and ended[0] is w:
            return ended[1]
        return compute_eta(self.rows, w, self.intercept)

    def value(self, w: Array, eta: Array) -> float:
        off = self.before.root @ w - self.before.moments[:, 0]
        value = self.fit(eta) - 0.5 * float(off @ off)
        return value if math.isfinite(value) else -math.inf

    def compute_rounding(self, w: Array) -> float:
        """Return the squared decrement that is rounding: eta may be a difference of large terms."""
        rows, first = self.rows, int(self.intercept)
        terms = np.abs(rows.X).max(axis=0, initial=0.0) @ np.abs(w[first:])
        error = ROUNDING * (terms + float(np.sum(np.abs(w[:first]))))
        precision = self.compute_working_row(self.eta(w))[0]
        return float(np.sum(precision)) * error * error

    def fit(self, eta: Array) -> float:
        """Log likelihood, but for what depends on the targets alone."""
        if self.known is None:
            return self.sum_densities(eta)
        self.compute_working_row(eta)
        return self.density

    def sum_densities(self, eta: Array) -> float:
        """Log likelihood."""
        code, rows = self.likelihood.compiled, self.rows
        if code is not None:
            return total_density(*code, rows.y, eta, rows.weights)
        with np.errstate(over="ignore", invalid="ignore"):
            return float(rows.weights @ self.likelihood.log_density(rows.y, eta))

    def first(self) -> Array:
        """Return the starting eta: least squares on the targets' own, where there is such."""
        start = getattr(self.likelihood, "start", None)
        nothing = self.before.coefficients()[:, 0]
        if start is None:
            return nothing
        w = self.solve_step(
            nothing, self.eta(nothing), *self.compute_working_row(start(self.rows.y))
        )[0]
        return w if math.isfinite(self.value(w, self.eta(w))) else nothing

    def compute_newton_target(self, w: Array, eta: Array, last: float) -> tuple[Array, float]:
        """Return the end of Newton's step, and its squared decrement; ``last`` is the one before.

        Near the mode the curvature that was found last is near enough.
        """
        sites = self.compute_working_row(eta)
        known = self.curvature
        if known is not None and find_largest_move(known.eta, eta) < SAME_CURVATURE_MOVE:
            there, decrement = self.solve_step(w, eta, *sites, again=True)
            if decrement <= SMALLEST_DECREMENT_GAIN * last:
                return there, decrement
        return self.solve_step(w, eta, *sites)

    def measure_gain(self, share: float) -> float:
        """The share of the squared decrement that the next step by this curvature will leave.

        As the last one did, which left this ``share``, or 0 if there was none.
        """
        if self.curvature is None:
            return 1.0
        if share > 0.0:
            self.curvature = replace(self.curvature, left=min(share, 1.0))
        return self.curvature.left

    def solve_step(
        self, w: Array, eta: Array, precision: Array, target: Array, *, again: bool = False
    ) -> tuple[Array, float]:
        """The least-squares solution of these rows and what was known, seen from ``w``.

        By the normal equations where they have the digits: the mode is where the gradient, which
        has all of them, vanishes, and the factor is made there. Else by rotations, as there.
        """
        root = self.before.root
        gradient = root.T @ (self.before.moments[:, 0] - root @ w)
        gradient += self.compute_slope(eta, precision, target)
        if not again or self.curvature is None:
            matrix = gram(self.rows.X, precision, intercept=self.intercept)
            self.curvature = Curvature(matrix, eta)
        step = solve(root.T @ root + self.curvature.matrix, gradient)
        if step is not None:
            return w + step, float(step @ gradient)
        factor = self.before.copy()
        factor.append(self.rows.X, target[:, None], precision, intercept=self.intercept)
        there = factor.coefficients()[:, 0]
        return there, float(np.sum(np.square(factor.root @ (there - w))))

    def products(self, w: Array, eta: Array, close: float) -> tuple[Products, float]:
        """Return the site rows' products at ``eta``, with a curvature as ``close``, and weight."""
        rows = self.rows
        precision, target = self.compute_working_row(eta)
        known = self.curvature
        if known is None or find_largest_move(known.eta, eta) > close:
            known = self.curvature = Curvature(
                gram(rows.X, precision, intercept=self.intercept), eta
            )
        moments = known.matrix @ w + self.compute_slope(eta, precision, target)
        square = float(precision @ np.square(target))
        return Products(known.matrix, moments[:, None], square), float(np.sum(precision))

    def compute_slope(self, eta: Array, precision: Array, target: Array) -> Array:
        """Slopes of the log likelihood in the coefficients: site rows less ``eta``, summed."""
        off = eta - self.rows.offsets
        np.subtract(target, off, out=off)
        off *= precision
        slopes = off @ self.rows.X
        return np.concatenate([[np.sum(off)], slopes]) if self.intercept else slopes

    def compute_working_row(self, eta: Array) -> tuple[Array, Array]:
        """Precision and target, without the offset, of the row that each site is at ``eta``.

        They are good until those of the next ``eta`` take their place.
        """
        rows = self.rows
        if self.known is not None:
            precision, target = self.working_row
            if eta is not self.looked_at:
                self.density, self.half_site_residual = working_rows(
                    *self.known, rows.y, eta, rows.offsets, rows.weights, precision, target
                )
                self.looked_at = eta
            return precision, target
        slope, curvature = self.likelihood.derivatives(rows.y, eta)
        floored = np.maximum(curvature, LEAST_CURVATURE * np.abs(slope))
        step = slope / np.maximum(floored, 1e-300)
        self.half_site_residual = 0.5 * float(rows.weights @ (slope * step))
        return rows.weights * np.minimum(floored, 1e200), eta + step - rows.offsets

    def search(
        self, w: Array, wanted: Array, eta: Array, value: float, decrement: float
    ) -> tuple[Array, Array, float, bool]:
        """The first of the steps 1, 1/2, 1/4, ... that gains what its length lets expect."""
        goal = self.eta(wanted)
        share = 1.0
        # Beside a sum over very many rows, this much is rounding.
        slack = 1e-13 * (abs(value) + 1.0) if math.isfinite(value) else 0.0
        for _ in range(HALVINGS):
            there = w + share * (wanted - w)
            eta_there = goal if share == 1.0 else eta + share * (goal - eta)
            reached = self.value(there, eta_there)
            if reached > -math.inf and reached >= value + 1e-4 * share * decrement - slack:
                return there, eta_there, reached, True
            share *= 0.5
        return w, eta, value, False
