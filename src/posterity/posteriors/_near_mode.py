"""The mode of rows and the prior that they choose, searched for together by products of sites."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from posterity.aliases import Array
from posterity.distributions.triangles import solve_triangle
from posterity.evidence.secant import SecantSteps
from posterity.factor import Factor
from posterity.factor.gram import CONDITION, ROUGH_CONDITION
from posterity.factor.rows import SiteRows
from posterity.kernel import find_largest_difference
from posterity.likelihoods import Likelihood, Sites
from posterity.posteriors._averaged_fit import LITTLE_INFORMATION
from posterity.posteriors._site_mode import (
    CONVERGED_CHANGE,
    SAME_CURVATURE_MOVE,
    Curvature,
    ModeSearch,
)
from posterity.posteriors.gaussian import LinearPosterior

# Rounds of a prior and the mode under it until they agree; of them that brought nothing, which is
# a change of the prior that is not clearly less than the least one.
MOST_ROUNDS, MOST_STALLED, LESS = 50, 5, 0.95
# Tolerance of the prior's change, relative to the prior; and the share of the total precision
# below which a prior is not counted in it, as it can't move the mode.
PRIOR_TOLERANCE, NEGLIGIBLE_SHARE = 1e-4, 1e-3
# Tolerances of the expected change in another round, extrapolated from the last ones: of the
# result, and of its starting values.
TOLERANCE, START_TOLERANCE = 5e-7, 1e-2
# Standard deviation of a coefficient's part of eta that rows leave at the mode, which averages and
# their priors then search for from there, if that of most is known.
OPEN_SPREAD, KNOWN_SPREAD = 2.0, 0.5
# Share of the squared decrement that a step by an old curvature may leave.
SLOWEST = 0.25


class Convergence(NamedTuple):
    """Where a search for prior and mode ends.

    That is at a squared decrement, once the prior has changed by no more than ``change``, and by
    products of this condition. Coefficients may be so far ``apart`` from the mode where they choose
    a prior. The curvature was found no further away in ``eta``, times the root of the number of
    rows: a sum over them changes by less, the more there are.
    """

    decrement: float
    eta: float
    change: float
    apart: float
    condition: float = ROUGH_CONDITION


# Of some of the rows; of all of them, by whatever curvature, where there are many; of few; and as
# an answer: what is left is the square of this.
THINNED = Convergence(0.1, math.inf, 0.1, math.inf)
MANY = Convergence(1e-3, math.inf, 0.3, 1.0)
FEW = Convergence(1e-8, 2e-5, PRIOR_TOLERANCE, math.inf)
ANSWER = Convergence(1e-8, 2e-5, PRIOR_TOLERANCE, 1.0, CONDITION)


class WarmStart(NamedTuple):
    """The posterior before the rows, under a prior; a start for the mode, and curvature near it.

    ``sites`` are those that agreed in the last round. ``change`` is that of the prior in that
    round, and ``rate`` that over the one before. ``level`` is the logarithm of the prior's
    precision: sites follow the prior, and the prior the sites, so that it takes longer ``steps``.
    For so many rounds, ``stalled``, the change was not clearly below the ``least`` one.
    ``of_sites`` is the factor of the rows that chose the prior.
    """

    prior: Factor
    level: float
    start: Array | None = None
    curvature: Curvature | None = None
    change: float = math.inf
    rate: float = 1.0
    sites: Sites | None = None
    steps: SecantSteps = SecantSteps()
    least: float = math.inf
    stalled: int = 0
    of_sites: Factor | None = None

    @property
    def is_stalled(self) -> bool:
        """True if more rounds would bring nothing: a prior that is drawn moves without end."""
        return self.stalled >= MOST_STALLED

    @classmethod
    def of(cls, inner: LinearPosterior) -> WarmStart:
        """Return the start of the first round: the prior of ``inner``."""
        central = inner.central()
        begun = cls(central.factor, compute_level(central.prior))
        return begun.restart(inner.learns_prior)

    def restart(self, learns_prior: bool) -> WarmStart:
        """The same before a search by another curvature, which tells another prior."""
        change = math.inf if learns_prior else 0.0
        return self._replace(
            change=change, rate=1.0, steps=SecantSteps(), least=math.inf, stalled=0
        )

    @property
    def ahead(self) -> float:
        """The change that another round would bring."""
        return self.change * self.rate

    def continue_from(
        self,
        before: LinearPosterior,
        of_sites: Factor,
        start: Array | None,
        near: Curvature | None,
        rows: SiteRows,
    ) -> WarmStart:
        """The next, under the prior that these sites choose, unless that holds nothing."""
        known = before.factor
        chosen = before.choose_prior(of_sites.combine(known))
        prior = chosen.combine(known)
        if leaves_coefficient_open(prior.combine(of_sites), of_sites.count, rows):
            return self._replace(start=start, curvature=near, sites=None, stalled=MOST_STALLED)
        change = _relative_change(prior, self.prior, of_sites, int(before.intercept))
        rate = change / self.change if 0.0 < self.change < math.inf else self.rate
        move = compute_level(chosen) - self.level
        step, steps = self.steps.lengthen(move)
        if step != move:
            chosen.scale(math.exp(step - move))
            prior = chosen.combine(known)
        level = self.level + step
        nearer = change < LESS * self.least
        stalled, least = (0, change) if nearer else (self.stalled + 1, self.least)
        return WarmStart(
            prior, level, start, near, change, min(rate, 1.0), None, steps, least, stalled, of_sites
        )


def search_near_mode(
    before: LinearPosterior,
    likelihood: Likelihood,
    rows: SiteRows,
    begun: WarmStart,
    close: Convergence,
) -> WarmStart | None:
    """Search for prior and mode by products of the site rows; None where they have not the digits.

    Each look at the rows is a quadratic in the coefficients. It chooses a prior, and the next look
    is where both lead. Fewer rows than coefficients have not the digits.
    """
    if len(rows) < before.n_coefficients:
        return None
    search = ModeSearch(begun.prior, likelihood, rows, before.intercept)
    search.curvature, begun = begun.curvature, begun.restart(before.learns_prior)
    here = search.look(search.first() if begun.start is None else begun.start)
    most = min(close.eta * math.sqrt(len(rows)), SAME_CURVATURE_MOVE)
    last, move, farthest = math.inf, 0.0, most
    for _ in range(MOST_ROUNDS):
        search.bend(here, farthest)
        begun = begun._replace(start=here.w, curvature=search.curvature)
        wanted, decrement = search.solve_step(here, again=True)
        if begun.change > close.change and decrement <= min(begun.change, close.apart) ** 2:
            of_sites = search.summarize(here, close.condition)
            if of_sites is None:
                return None
            begun = begun.continue_from(before, of_sites, here.w, search.curvature, rows)
            if begun.is_stalled:
                return begun
            search.before = begun.prior
            wanted, decrement = search.solve_step(here, again=True)
        agree = begun.change <= close.change or begun.ahead <= TOLERANCE
        if decrement <= close.decrement and move < CONVERGED_CHANGE and agree:
            return begun._replace(of_sites=search.summarize(here, close.condition))
        if decrement > SLOWEST * last:
            last, farthest = math.inf, 0.0
            continue
        there, _, moved = search.search(here, wanted, search.value(here), decrement)
        if not moved:
            return None
        search.learn_step(here, there, most)
        move = find_largest_difference(here.eta, there.eta)
        here, last, farthest = there, decrement, most
    return None


def leaves_coefficient_open(known: Factor, count: float, rows: SiteRows) -> bool:
    """Return True if ``count`` rows that tell of most coefficients leave one anywhere.

    As of a level whose counts are all 0: the mode lies where they say nothing, and its scale grows.
    (Labels that a line separates leave all open: that scale grows by right.)
    """
    m, enough = rows.X.shape[1], count >= LITTLE_INFORMATION * known.n_coefficients
    if not (enough and m) or known.rank < known.n_coefficients:
        return False
    inverse = solve_triangle(known.root, np.eye(known.n_coefficients))[-m:]
    reach = rows.measure_reach(intercept=known.n_coefficients > m)
    spread = np.square(inverse).sum(axis=1) * np.square(reach)
    return bool(spread.max() > OPEN_SPREAD**2 and np.median(spread) < KNOWN_SPREAD**2)


def compute_level(prior: Factor) -> float:
    """Return the logarithm of a prior's precision: of the coefficient in the middle."""
    diagonal = np.abs(np.diagonal(prior.root))
    known = sorted(diagonal[diagonal > 0.0].tolist())
    return 2.0 * math.log(known[len(known) // 2]) if known else 0.0


def _relative_change(prior: Factor, last: Factor, of_sites: Factor, flat: int) -> float:
    """The largest change of a prior precision, relative to it or, where less, to all known.

    That is of features about their means, where ``flat`` is 1, for an intercept's column.
    """
    now, before = (np.square(each.root[flat:]).sum(axis=0) for each in (prior, last))
    whole = now + np.square(of_sites.root[flat:]).sum(axis=0)
    moved, felt = np.abs(now - before), np.maximum(before, NEGLIGIBLE_SHARE * whole)
    return float((moved / np.where(felt > 0.0, felt, 1.0)).max(initial=0.0))
