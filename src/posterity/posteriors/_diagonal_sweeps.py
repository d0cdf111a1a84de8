"""Rows of a diagonal model that are there together: visited again until their messages settle.

One pass weighs a row by what was known when it came. Here each row's message to each of its weights
is found given all other rows (expectation propagation: Minka 2001), a block of rows at once. The
prior scale of each column is the most probable one given these messages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from posterity.aliases import AnyArray, Array, Indices
from posterity.kernel import MEMBERS
from posterity.likelihoods import Likelihood
from posterity.posteriors._site_rows import find_sites
from posterity.posteriors._sparse_rows import Observations, SparseRows
from posterity.posteriors._sparse_search import KNOWN_WEIGHTS, Columns, find_numbers
from posterity.posteriors._wide import Pairs
from posterity.posteriors.diagonal import DiagonalPosterior

MOST_SWEEPS, BLOCKS = 30, 16
# With more entries than this, rows are visited in one pass only; so are fewer rows than these where
# the noise is learned.
MOST_ENTRIES, FEW_ROWS = 2_000_000, 8
# Hypotheses on all scales together once rows were revisited, in standard deviations of a log
# precision: with these weights they have mean 0 and variance 1.
LOG_PRECISION_NODES = np.array([-1.75, 0.645, 0.0, 0.0])
# Step size, at first and at least, and the tolerance: change of a mean, in standard deviations, and
# of a log precision.
STEP, LEAST_STEP, TOLERANCE = 0.7, 0.05, 2e-2
# The tolerance for Gaussian rows, whose means are exact once messages converge.
EXACT_TOLERANCE = 1e-10
# If the last change, had its step been as long as the first, is larger than this, the result of a
# single pass is better.
DIVERGED_CHANGE, FAR_DIVERGED_CHANGE = 0.3, 1e6
# Prior of the log of a column's precision, relative to its values: Normal about 0.
LOG_PRECISION_SD = 1.5
NEWTON_STEPS, LONGEST_STEP = 4, 1.0


class Messages(NamedTuple):
    """Sums of rows' weights, precisions and shifts, by stored entry of the rows or (P,) in all."""

    precision: Array
    shift: Array

    def add(self, other: Messages) -> Messages:
        """The sum of both."""
        return Messages(self.precision + other.precision, self.shift + other.shift)

    def step_towards(self, other: Messages, step: float) -> Messages:
        """A part of the difference to others."""
        return Messages(
            step * (other.precision - self.precision), step * (other.shift - self.shift)
        )

    def combine_with_prior(self, prior: Array) -> tuple[Array, Array]:
        """Mean and variance (P,) of the weights under a prior precision."""
        total = np.maximum(prior + self.precision, 1e-300)
        return self.shift / total, 1.0 / total


@dataclass(frozen=True)
class Block:
    """Active features of some rows: row, feature and value of each entry.

    And the rows' targets, weights, and offsets, which are added to eta.
    """

    rows: Indices
    features: Indices
    values: Array
    y: Array
    weights: Array
    offsets: Array

    def sum_rows(self, values: Array) -> Array:
        """(n,) sums of the entries' values."""
        return _sum_by(self.rows, values, len(self.y))

    def sum_features(self, messages: Messages, n_features: int) -> Messages:
        """(P,) sums of the entries' messages."""
        return Messages(*(_sum_by(self.features, one, n_features) for one in messages))


@dataclass(frozen=True)
class ColumnPriors:
    """Prior precisions (columns,) of columns' weights, relative to their values' mean squares."""

    columns: Columns
    precisions: Array

    @property
    def of_weights(self) -> Array:
        """(P,) prior precisions."""
        return self.columns.spread(self.precisions)

    def choose(self, total: Messages, noise_precision: float) -> ColumnPriors:
        """The most probable ones given what rows say of the weights, by Newton's method.

        Precisions are in units of the noise's.
        """
        one, learned = self, self.columns.learned
        beforehand = np.where(self.columns.numbers[learned], 0.0, LOG_PRECISION_SD**-2.0)
        for _ in range(NEWTON_STEPS):
            slope, information = one._differentiate(total, noise_precision)
            slope = slope - np.log(one.precisions[learned]) * beforehand
            step = slope / (information + beforehand)
            precisions = one.precisions.copy()
            precisions[learned] *= np.exp(np.clip(step, -LONGEST_STEP, LONGEST_STEP))
            one = replace(one, precisions=precisions)
        return one

    def compute_information(self, total: Messages) -> Array:
        """(c,) Fisher information of the messages on the log of each learned column's precision."""
        return self._differentiate(total, 1.0)[1]

    def _differentiate(self, total: Messages, noise_precision: float) -> tuple[Array, Array]:
        mean, variance = total.combine_with_prior(self.of_weights)
        return self.columns.score(self.precisions, mean, variance, noise_precision)


def visit_again(of: DiagonalPosterior, data: Observations, pairs: Pairs | None) -> None:
    """Visit rows that were learned in one pass, and no others, until their messages settle.

    In place; where rows fade, are too few for the noise or too many, one pass has to do.
    Hypotheses are then those of all columns' scales together, around the most probable ones.
    """
    of.centre_numbers()
    rows = of.centre_rows(data.rows, of.centres, pairs)
    entries = len(rows.features) + of.intercept * len(rows)
    few = of.likelihood.is_noise and len(data) < FEW_ROWS
    if few or of.clocks is not None or entries > MOST_ENTRIES:
        return
    of.squares = _sum_squares_of_columns(of, rows, data.weights)
    data = replace(data, rows=rows, offsets=of.centre_offsets(data))
    blocks, active = make_blocks(data, intercept=of.intercept)
    begun = _average_priors(of, active), _get_likeliest_messages(of, active)

    def noise_precision(square: float) -> float:
        if of.noise is None:
            return of.known_precision
        return of.shape / max(of.noise[1] + 0.5 * square, 1e-300)

    with np.errstate(all="ignore"):  # of what goes astray
        found = propagate_messages(of.likelihood, blocks, *begun, noise_precision)
    if found is not None:
        priors, messages, found_precision = found
        _set_messages(of, active, priors, messages)
        if of.noise is not None:
            of.rates[: of.members] = of.shape / found_precision


def make_blocks(data: Observations, *, intercept: bool) -> tuple[Sequence[Block], Indices]:
    """Divide rows of positive weight into blocks: with k blocks, each has every k-th row.

    The intercept is feature 0 of each row. Features are numbered anew; also returned are those
    that rows have, as they were numbered before.
    """
    rows, y, g = data.rows, data.y, data.own_weights
    added = data.own_offsets
    number = np.flatnonzero(g > 0.0)
    place = np.full(len(y), -1)
    place[number] = np.arange(len(number))
    row, values = place[rows.row_numbers], rows.values
    features = rows.features.astype(np.intp)
    if intercept:
        row = np.concatenate([row, np.arange(len(number))])
        features = np.concatenate([features, np.zeros(len(number), dtype=np.intp)])
        values = np.concatenate([values, np.ones(len(number))])
    active, features = np.unique(features, return_inverse=True)
    count = min(BLOCKS, len(number))
    blocks = []
    for first in range(count):
        some = (row >= 0) & (row % count == first)
        own = number[first::count]
        entries = row[some] // count, features[some], values[some]
        blocks.append(Block(*entries, y[own], g[own], added[own]))
    return blocks, active


def propagate_messages(
    likelihood: Likelihood,
    blocks: Sequence[Block],
    priors: ColumnPriors,
    total: Messages,
    compute_noise_precision: Callable[[float], float],
) -> tuple[ColumnPriors, Messages, float] | None:
    """Return the priors, the messages of all rows (P,), and the noise's precision, after one pass.

    The last follows from the sum of squared residuals and penalties of the weights' means.

    Each row is taken to have brought an equal part of these. ``None`` where sweeps go astray, as
    they may with many columns that are correlated.
    """
    messages = _split_equally(blocks, total)
    step, last, change, tau = STEP, np.inf, np.inf, 1.0
    for _ in range(MOST_SWEEPS):
        prior = priors.of_weights
        before, _ = total.combine_with_prior(prior)
        total = _sweep(likelihood, blocks, messages, prior, total, step)
        mean, variance = total.combine_with_prior(prior)
        tau = compute_noise_precision(_sum_squares(blocks, prior, mean))
        chosen = priors.choose(total, tau)
        moved = np.abs((mean - before) * np.sqrt(tau / variance)).max(initial=0.0)
        changed = np.abs(np.log(chosen.precisions / priors.precisions)).max(initial=0.0)
        change, priors = float(max(moved, changed)), chosen
        if not (change < FAR_DIVERGED_CHANGE and 0.0 < tau < np.inf):
            return None
        if change < (EXACT_TOLERANCE if likelihood.is_noise else TOLERANCE):
            break
        if change > last:
            step = max(0.7 * step, LEAST_STEP)
        last = change
    return (priors, total, tau) if change < DIVERGED_CHANGE * step / STEP else None


def _average_priors(of: DiagonalPosterior, active: Indices) -> ColumnPriors:
    """Return the priors of the columns: those of the hypotheses, averaged in logarithms."""
    logs = np.log(np.maximum(of.precision[:, : of.members], np.finfo(float).tiny))
    numbers = np.arange(len(of.precision))
    learned = (numbers > 0) & (of.squares[:, 1] > 0.0) & of.learns
    owners, nothing = of.owners[active], np.zeros(len(of.precision))
    single = find_numbers(np.where(learned, np.bincount(owners, minlength=len(numbers)), 0))
    known, found = np.where(single, KNOWN_WEIGHTS, nothing), np.exp(logs @ of.weights)
    named = owners, np.flatnonzero(learned), of.mean_squares
    return ColumnPriors(Columns(*named, known, 1.0, nothing > 0.0, found, single), found)


def _get_likeliest_messages(of: DiagonalPosterior, active: Indices) -> Messages:
    """Return the messages of rows under the most probable hypothesis."""
    best = int(np.argmax(of.scores[: of.members]))
    return Messages(*of.beliefs.reshape(-1, 2, MEMBERS)[active, :, best].T)


def _set_messages(
    of: DiagonalPosterior, active: Indices, priors: ColumnPriors, messages: Messages
) -> None:
    learned = priors.columns.learned
    of.beliefs.reshape(-1, 2, MEMBERS)[active] = np.stack(messages, axis=1)[:, :, None]
    information = priors.compute_information(messages)
    sd = min(1.0, float(np.sum(information)) ** -0.5) if len(learned) else 0.0
    around = np.exp(sd * LOG_PRECISION_NODES)
    of.precision[learned] = priors.precisions[learned, None] * around
    of.scores[: of.members] = of.initial_scores[: of.members]
    of.information[learned] = information[:, None] + of.initial_information


def _sum_squares_of_columns(
    of: DiagonalPosterior, rows: SparseRows, weights: Array | None
) -> Array:
    """(columns, 2) sum of squares of each column's values, and their number."""
    size, some = len(of.squares), np.ones(len(rows.features), dtype=bool)
    if weights is not None:
        some = (weights > 0.0)[rows.row_numbers]
    columns = np.ones(len(some), dtype=np.int32) if rows.columns is None else rows.columns
    sums = np.bincount(columns[some], np.square(rows.values[some]), size)
    found = np.stack([sums, np.bincount(columns[some], None, size)], axis=1).astype(np.float64)
    found[0] = of.squares[0]
    return found


def _split_equally(blocks: Sequence[Block], total: Messages) -> list[Messages]:
    """An equal part of the message on each weight to each of its entries."""
    n = len(total.precision)
    counts = np.maximum(sum(np.bincount(one.features, minlength=n) for one in blocks), 1)
    part = Messages(total.precision / counts, total.shift / counts)
    return [Messages(*(each[one.features] for each in part)) for one in blocks]


def _sweep(
    likelihood: Likelihood,
    blocks: Sequence[Block],
    messages: list[Messages],
    prior: Array,
    total: Messages,
    step: float,
) -> Messages:
    """The total after each block's messages, in place, made a step."""
    for place, block in enumerate(blocks):
        new = _find_messages(likelihood, block, prior, total, messages[place])
        move = messages[place].step_towards(new, step)
        messages[place] = messages[place].add(move)
        total = total.add(block.sum_features(move, len(prior)))
    return total


def _find_messages(
    likelihood: Likelihood, block: Block, prior: Array, total: Messages, own: Messages
) -> Messages:
    """Return each entry's message, given all other rows."""
    x, features, row = block.values, block.features, block.rows
    left = (prior + total.precision)[features] - own.precision
    variance = 1.0 / np.maximum(left, 1e-300)
    cavity = variance * (total.shift[features] - own.shift)
    each = np.square(x) * variance
    mean, spread = block.offsets + block.sum_rows(x * cavity), block.sum_rows(each)
    known, target = block.weights, block.y
    if not likelihood.is_noise:
        sites = find_sites(likelihood, "moments", block.y, mean, spread, block.weights)
        known, target = sites.precision, sites.target
    precision, off = known[row], (target - mean)[row]
    precision = precision / (1.0 + precision * np.maximum(spread[row] - each, 0.0))
    return Messages(np.square(x) * precision, x * precision * (off + x * cavity))


def _sum_squares(blocks: Sequence[Block], prior: Array, mean: Array) -> float:
    """Return squared residuals of weights of this mean (P,), and its penalty."""
    total = float(prior @ np.square(mean))
    for block in blocks:
        residual = block.y - block.offsets - block.sum_rows(block.values * mean[block.features])
        total += float(block.weights @ np.square(residual))
    return total


def _sum_by(places: AnyArray, values: Array, n: int) -> Array:
    """(n,) sums of the values at each place."""
    return np.asarray(np.bincount(places, values, n), dtype=np.float64)


__all__ = ["visit_again"]
