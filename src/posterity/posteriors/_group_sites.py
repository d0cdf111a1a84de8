"""Rows of groups under a likelihood: each is a Gaussian row, its site, in its group's triangle.

The sites of rows that come together agree with each other and with the prior that they choose
(expectation propagation; Minka 2001): at the end the prior has the highest evidence of the
approximation, as its slope is that with the sites held fixed. A row that comes alone has its site
found once, under the prior of the stream. The first rows are kept, and found again whenever the
prior is learned anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posterity.aliases import Array, Mask
from posterity.distributions import Normal
from posterity.distributions.transformed import Transformed
from posterity.evidence.groups import EtaScale, SharedPrior
from posterity.factor.grouped import GroupBank, predict_rows
from posterity.factor.grouped_rows import GroupedRows, Slots, stack_grouped_rows
from posterity.likelihoods import Likelihood, Sites
from posterity.noise import LOG_2PI
from posterity.posteriors._site_fit import (
    SweepsByMoments,
    compute_change,
    read_sites,
    run_sweeps,
)
from posterity.posteriors._site_rows import find_sites
from posterity.posteriors._site_start import weigh_without
from posterity.posteriors.new_columns import NewColumns

PriorRule = Callable[[GroupBank, float, SharedPrior | None, EtaScale | None], SharedPrior]

# Most rows that are kept, and most values in them.
MOST_ROWS, MOST_VALUES = 4096, 2**17
# Rounds in which sites and prior agree, and until no mean moves by so many standard deviations:
# in a fit, and in a stream, which settles often.
FIT_ROUNDS, STREAM_ROUNDS = (30, 1e-3), (8, 2e-2)
# Rates of rounds that are worth going ahead of, and what precisions may change by then.
ROUNDS_AHEAD, SLOW, STUCK, MOST_CHANGE = 3, 0.2, 0.95, 3.0
# Tolerances of the prior in the first rounds and in the last ones, of the sites relative to the
# change that the last round brought, and the largest of these.
ROUGH, CLOSE, SHARE, ROUGHEST = 0.1, 1e-3, 0.03, 1e-2
# The start: steps to the level of all rows, the longest, and the variance of eta around it.
LEVEL_STEPS, LONGEST_STEP, START_VARIANCE = 30, 2.0, 1.0


@dataclass(frozen=True)
class GroupSites:
    """The likelihood of groups' rows, and what their triangles do not say of them.

    ``log_scale`` sums the logs of what the likelihoods are of the densities of the Gaussian rows,
    ``weights`` the weights of the rows. ``level`` is the eta of all rows that were last met
    together, and ``root`` (p, p) that of the mean of their x x'; None before.
    ``rows`` are all rows so far, their groups numbered by their places; None once they are many.
    """

    likelihood: Likelihood
    log_scale: float = 0.0
    weights: float = 0.0
    level: float = 0.0
    root: Array | None = None
    rows: GroupedRows | None = None

    def scale(self, intercept: bool) -> EtaScale | None:
        """What is known of eta before its rows tell; None before any came together."""
        if self.root is None:
            return None
        centre = np.zeros(len(self.root))
        centre[: int(intercept)] = self.level
        return EtaScale(self.root, centre)

    def _add(self, log_scale: float, rows: GroupedRows) -> GroupSites:
        """Count rows; without the constants of the densities of Gaussian rows."""
        weights = float(rows.all_weights.sum())
        return replace(
            self,
            log_scale=self.log_scale + log_scale + 0.5 * LOG_2PI * weights,
            weights=self.weights + weights,
        )

    def predictive(self, mean: Array, variance: Array, *, of_mean: bool) -> Any:
        """Distribution of targets where eta has these moments, or of their expectations."""
        known = self.likelihood
        if of_mean:
            return Transformed(Normal(mean, np.sqrt(variance)), known.mean, known.link_function)
        if not known.is_noise:  # as little as is believed where a row finds its site
            variance = np.where(np.isinf(variance), known.vague_variance, variance)
        return known.predictive(mean, variance)

    def join(self, rows: GroupedRows, *, begins: bool) -> GroupedRows | None:
        """All rows so far and these; None where those so far are not kept."""
        if self.rows is None:
            return stack_grouped_rows([rows]) if begins else None
        return stack_grouped_rows([self.rows, rows])

    def with_rows(self, rows: GroupedRows | None) -> GroupSites:
        """The same, with these rows kept if they are few."""
        most = 0 if rows is None else min(MOST_ROWS, MOST_VALUES // (rows.X.shape[1] + 1))
        return replace(self, rows=None if rows is None or len(rows) > most else rows)

    def of_groups(self, which: Mask, places: Slots) -> GroupSites:
        """The same with the rows of some groups alone, which have new places.

        The evidence of rows that are not kept stays with the others.
        """
        rows = self.rows
        if rows is not None:
            rows = rows.at(which[rows.numbers], places)
            rows = stack_grouped_rows([rows])
        return replace(self, rows=rows)

    def in_columns(self, columns: NewColumns) -> GroupSites:
        """The same of rows in other columns."""
        rows, root = self.rows, self.root
        if rows is not None:
            rows = replace(rows, X=columns.spread(rows.X))
        if root is not None:
            root = find_triangle(root @ columns.matrix)
        return replace(self, rows=rows, root=root)

    def without(self, rows: GroupedRows) -> GroupSites:
        """The same without kept rows; raises ``ValueError`` where one was never learned."""
        kept = self.rows
        if kept is None:
            raise ValueError(
                f"can't unlearn rows under a likelihood once more than {MOST_ROWS} were learned "
                "(with many features fewer): they are not kept; fit the remaining rows again"
            )
        one, other = (
            np.column_stack([each.X, each.y, each.all_offsets, each.slots[each.numbers]])
            for each in (kept, rows)
        )
        weights = weigh_without(one, kept.all_weights, other, rows.all_weights)
        left = replace(kept, weights=weights).at(weights > 0.0, kept.slots)
        return replace(self, rows=left)

    def merge(self, other: GroupSites, slots: Slots, *, begins: bool) -> GroupSites:
        """Both, the groups of ``other`` at ``slots`` here; rows are kept if both kept theirs."""
        more = self if self.weights > other.weights else other
        both = replace(
            self,
            log_scale=self.log_scale + other.log_scale,
            weights=self.weights + other.weights,
            level=more.level,
            root=more.root,
        )
        if other.rows is None:
            return both.with_rows(None)
        moved = replace(other.rows, slots=slots[other.rows.slots])
        return both.with_rows(self.join(moved, begins=begins))

    # ---- learning ------------------------------------------------------------------------------

    def settle(
        self,
        rows: GroupedRows,
        bank: GroupBank,
        choose_prior: PriorRule,
        prior: SharedPrior | None,
    ) -> tuple[GroupBank, GroupSites]:
        """A bank of the groups that knows these rows alone, and the evidence of their sites.

        Sites and prior are found in turns, each given the other; the search for the prior begins
        near the one given.
        """
        most, agreed = FIT_ROUNDS if prior is None else STREAM_ROUNDS
        fresh, level = bank.without_rows(), find_level(self.likelihood, rows)
        root = find_root(rows)
        nothing = replace(self, log_scale=0.0, weights=0.0, level=level, root=root)
        scale = nothing.scale(rows.intercept)
        sites = start_sites(self.likelihood, rows, level)
        if prior is not None:
            sweeps = GroupSweeps(self.likelihood, fresh, rows, prior.priors)
            first, _ = run_sweeps(sweeps, sites, ROUGHEST)
            sites, _ = read_sites(first, self.likelihood, rows.y, rows.all_weights)
        now, change, rounds = None, np.inf, list[Array]()
        for _ in range(most):
            learned = fresh.copy()
            learned.learn(make_gaussian_rows(rows, sites))
            prior = choose_prior(learned, ROUGH if change > ROUGH else CLOSE, prior, scale)
            sweeps = GroupSweeps(self.likelihood, fresh, rows, prior.priors)
            if now is not None:
                moved = sweeps.start(sites.precision, sites.target)
                change = compute_change(*now[2:], *moved[2:])
                if change <= agreed:
                    break
            tolerance = min(max(SHARE * change, SHARE * agreed), ROUGHEST)
            now, _ = run_sweeps(sweeps, sites, tolerance)
            sites, log_scale = read_sites(now, self.likelihood, rows.y, rows.all_weights)
            rounds.append(now[:2])
            if len(rounds) == ROUNDS_AHEAD:
                sites, rounds = go_ahead(rounds, sites), []
        else:
            learned = fresh.copy()
            learned.learn(make_gaussian_rows(rows, sites))
        learned.last[:], learned.clock = bank.last, bank.clock
        return learned, nothing._add(log_scale, rows)

    def learn_together(self, bank: GroupBank, rows: GroupedRows, priors: Array) -> GroupSites:
        """Learn rows together in the bank, under what was known of their groups."""
        if np.bincount(rows.numbers).max(initial=0) <= 1:  # none tells of another's group
            return self.learn_in_order(bank, rows, priors, np.empty((2, len(rows))))
        sweeps, nothing = GroupSweeps(self.likelihood, bank, rows, priors), np.zeros(len(rows))
        now, _ = run_sweeps(sweeps, Sites(nothing, nothing, nothing), ROUGHEST * SHARE)
        sites, log_scale = read_sites(now, self.likelihood, rows.y, rows.all_weights)
        bank.learn(make_gaussian_rows(rows, sites))
        return self._add(log_scale, rows)

    def find_site(
        self, row: GroupedRows, moments: tuple[float, float]
    ) -> tuple[float, float, GroupSites] | None:
        """Target and precision of the site of a row, and what this is with it.

        ``moments`` are mean and variance of its eta before, without the offset; None where the row
        tells nothing.
        """
        mean, variance = np.array(moments)[:, None]
        mean, weights = mean + row.all_offsets, row.all_weights
        self.likelihood.check_targets(row.y)
        sites = find_sites(self.likelihood, "moments", row.y, mean, variance, weights)
        if not sites.precision[0] > 0.0:
            return None
        kept = self if self.rows is None else self.with_rows(self.join(row, begins=False))
        known = kept._add(float(sites.log_scale(mean, variance)[0]), row)
        return float(sites.target[0] - row.all_offsets[0]), float(sites.precision[0]), known

    def learn_in_order(
        self, bank: GroupBank, rows: GroupedRows, priors: Array, out: Array
    ) -> GroupSites:
        """Learn row after row; ``out`` (2, n) says what eta was before each: mean and variance.

        Given the prior groups know nothing of each other: first rows of all come together, then
        second ones.
        """
        clock, known = bank.clock, self
        for places in list_waves(rows.numbers):
            some = rows.take(places)
            mean, variance = predict_etas(bank, some, priors)
            weights = some.all_weights
            sites = find_sites(self.likelihood, "moments", some.y, mean, variance, weights)
            bank.learn(make_gaussian_rows(some, sites))
            out[:, places] = mean, variance
            known = known._add(float(np.sum(sites.log_scale(mean, variance))), some)
        bank.date(rows, clock)
        return known


def go_ahead(rounds: Sequence[Array], sites: Sites) -> Sites:
    """Sites where rounds would end whose changes shrink by the rate of the last (Aitken 1926).

    ``rounds`` (2, n) are precisions and shifts; ``sites`` are those of the last round.
    """
    first, second = rounds[-2] - rounds[-3], rounds[-1] - rounds[-2]
    rate = float(np.sum(first * second) / max(float(np.sum(first * first)), 1e-300))
    if not SLOW < rate < STUCK:
        return sites
    (precision, shift), (more, further) = rounds[-1], second * (rate / (1.0 - rate))
    ends = precision / MOST_CHANGE, precision * MOST_CHANGE
    ahead = np.clip(precision + more, *ends)
    target = (shift + further) / np.where(ahead > 0.0, ahead, 1.0)
    return replace(sites, precision=ahead, target=np.where(ahead > 0.0, target, sites.target))


class GroupSweeps(SweepsByMoments):
    """Sweeps over rows of groups, under a prior of their coefficients."""

    def __init__(
        self, likelihood: Likelihood, bank: GroupBank, rows: GroupedRows, priors: Array
    ) -> None:
        super().__init__(likelihood, rows.y, rows.all_weights)
        if len(priors) == 1:  # the same for all: the other groups are not needed
            bank = bank.select(rows.slots)
            rows = replace(rows, slots=np.arange(len(rows.slots)))
        self.bank, self.rows, self.priors = bank, rows, priors

    def learn(self, precision: Array, target: Array) -> tuple[Array, Array]:
        """As in :class:`SweepsByMoments`."""
        bank = self.bank.copy()
        bank.learn(make_gaussian_rows(self.rows, Sites(precision, target, target)))
        return predict_etas(bank, self.rows, self.priors)


def predict_etas(bank: GroupBank, rows: GroupedRows, priors: Array) -> tuple[Array, Array]:
    """Mean and variance (n,) of each row's eta, offset included."""
    posteriors = bank.posteriors(priors, rows.slots)
    places = rows.numbers.astype(np.intp)
    mean, variance = predict_rows(posteriors, priors[-1], rows.X, places, intercept=rows.intercept)
    return mean + rows.all_offsets, variance


def make_gaussian_rows(rows: GroupedRows, sites: Sites) -> GroupedRows:
    """Rows of noise 1 that stand for rows with these sites, and weigh as much as they did."""
    weights = rows.all_weights
    size = np.sqrt(sites.precision / np.where(weights > 0.0, weights, 1.0))
    X = rows.X * size[:, None]
    if rows.intercept:
        X = np.column_stack([size, X])
    y = (sites.target - rows.all_offsets) * size
    return replace(rows, X=np.ascontiguousarray(X), y=y, intercept=False, offsets=None)


def find_level(likelihood: Likelihood, rows: GroupedRows) -> float:
    """The level of eta of all rows, its mode without features, under a vague prior."""
    offsets, weights, level = rows.all_offsets, rows.all_weights, 0.0
    for _ in range(LEVEL_STEPS):
        slope, curvature = likelihood.derivatives(rows.y, level + offsets)
        pull = float(weights @ slope) - level / likelihood.vague_variance
        step = pull / (float(weights @ curvature) + 1.0 / likelihood.vague_variance)
        level += min(max(step, -LONGEST_STEP), LONGEST_STEP)
        if abs(step) < ROUGHEST:
            break
    return level


def find_root(rows: GroupedRows) -> Array:
    """The root (p, p) of the mean of x x' over rows."""
    X = np.column_stack([np.ones((len(rows), int(rows.intercept))), rows.X])
    weights = rows.all_weights
    return find_triangle(X * np.sqrt(weights / max(float(np.sum(weights)), 1e-300))[:, None])


def find_triangle(X: Array) -> Array:
    """The triangle R (p, p) of the QR decomposition of rows (n, p), however few."""
    p = X.shape[1]
    return np.asarray(np.linalg.qr(np.vstack([X, np.zeros((p, p))]), mode="r"))


def start_sites(likelihood: Likelihood, rows: GroupedRows, level: float) -> Sites:
    """Sites of rows whose eta is near one level."""
    variance = np.full(len(rows), np.inf if likelihood.is_noise else START_VARIANCE)
    return find_sites(
        likelihood, "moments", rows.y, level + rows.all_offsets, variance, rows.all_weights
    )


def list_waves(numbers: NDArray[np.int32]) -> Iterator[Slots]:
    """Places of the first row of each group, of the second ones, and so on.

    Examples
    --------
    >>> [wave.tolist() for wave in list_waves(np.array([0, 1, 0], dtype=np.int32))]
    [[0, 1], [2]]
    """
    order = np.argsort(numbers, kind="stable")
    starts = np.searchsorted(numbers[order], numbers[order])
    rank = np.empty(len(numbers), dtype=np.intp)
    rank[order] = np.arange(len(numbers)) - starts
    by_rank = np.argsort(rank, kind="stable")
    yield from np.split(by_rank, np.cumsum(np.bincount(rank))[:-1]) if len(numbers) else ()


__all__ = ["GroupSites"]
