"""What two diagonal posteriors, each of its own rows, know together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from posterity.aliases import Array
from posterity.kernel import MEMBERS
from posterity.posteriors.diagonal import DiagonalPosterior
from posterity.transaction import Undo

Numbers = NDArray[np.int32]

# Weight of a scale's prior, in rows.
PRIOR_INFORMATION = 0.5


def merge_diagonal(
    mine: DiagonalPosterior, other: DiagonalPosterior, features: Numbers, columns: Numbers
) -> None:
    """Add what ``other`` has learned; its features and columns are these of ``mine``."""
    other = _join_centres(mine, other, features)
    _join_offsets(mine, other)
    _average_scales(mine, other, columns)
    mine.squares[columns] += other.squares
    own, theirs = mine.discounted_beliefs().copy(), other.discounted_beliefs()[: len(features)]
    if other.noise is not None:
        prior = mine.compute_prior_precisions(features)
        mine.shape += other.shape - other.noise[0]
        mine.rates += other.rates - other.noise[1]
        mine.rates += _compute_disagreement(prior, own[features], theirs)
    own[features] += theirs
    mine.beliefs[:] = own.ravel()
    mine.clocks = None if mine.clocks is None else np.full(len(mine.owners), mine.faded)
    scores = other.scores - other.initial_scores * np.exp(other.faded)
    mine.scores[: mine.members] += scores[: mine.members]
    mine.n_observations += other.n_observations
    mine.n_effective += other.n_effective
    mine.centre_numbers()


def _join_centres(
    mine: DiagonalPosterior, other: DiagonalPosterior, features: Numbers
) -> DiagonalPosterior:
    """Return ``other``, its numbers centred where those of ``mine`` are; their rows are counted."""
    theirs, own = other.centres.renumber(features), mine.centres
    other = other.copy()
    own.add(theirs.features)
    own.due = max(own.due, theirs.due)
    order = np.argsort(features[other.centres.features], kind="stable")
    by = np.empty(len(order))
    by[order] = own.values[own.find(theirs.features)] - theirs.values
    other.move(by, Undo())
    theirs.add(own.features)
    theirs.move(own.values - theirs.values)
    own.absorb(theirs)
    return other


def _join_offsets(mine: DiagonalPosterior, other: DiagonalPosterior) -> None:
    """Have the other's offsets centred where those of ``mine`` are."""
    if mine.n_observations == 0.0:
        mine.offset_centre = other.offset_centre
    known, shift = other.beliefs.reshape(-1, 2, MEMBERS)[0]
    shift += known * (mine.offset_centre - other.offset_centre)
    other.offset_centre = mine.offset_centre


def _average_scales(mine: DiagonalPosterior, other: DiagonalPosterior, columns: Numbers) -> None:
    """Average the logs of learned precisions, each weighed by what is known of it."""
    if not mine.learns:
        return
    own, some = columns[1:], slice(1, None)  # the intercept's precision is given
    learned = other.information - other.initial_information
    known = mine.information[own] - mine.initial_information + PRIOR_INFORMATION
    theirs = learned[some] + PRIOR_INFORMATION
    logs = known * np.log(mine.precision[own]) + theirs * np.log(other.precision[some])
    mine.precision[own] = np.exp(logs / (known + theirs))
    mine.information[columns] += learned


def _compute_disagreement(prior: Array, mine: Array, theirs: Array) -> Array:
    """(members,) half the sum of squares by which the weights of two models differ.

    Of a weight with means m and n, precisions a and b, prior p each: what a m^2 + b n^2 loses when
    the data are together, (a b (m - n)^2 - p (a m^2 + b n^2)) / (a + b - p).
    """
    one, two = mine.reshape(-1, 2, MEMBERS), theirs.reshape(-1, 2, MEMBERS)
    a, b = prior + one[:, 0], prior + two[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        m, n = one[:, 1] / a, two[:, 1] / b
        lost = a * b * np.square(m - n) - prior * (a * np.square(m) + b * np.square(n))
        lost /= a + b - prior
    known = (a > 0.0) & (b > 0.0)
    return np.asarray(0.5 * np.sum(np.where(known, lost, 0.0), axis=0))


__all__ = ["merge_diagonal"]
