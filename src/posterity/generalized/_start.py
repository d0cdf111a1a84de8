"""The most probable fit of rows that are there at once, as a posterior that has learned them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from posterity.aliases import Array, Mask
from posterity.evidence import Choice
from posterity.factor import Factor
from posterity.generalized._few_rows import (
    LEAST_ROWS,
    NormalNodes,
    are_few,
    estimate_spread,
    integrate,
)
from posterity.generalized._working_noise import Mode, Rows, SearchStart, Spread, WorkingNoise
from posterity.noise import KnownNoise
from posterity.posteriors import EvidencePosterior, LinearPosterior
from posterity.posteriors._site_start import weigh_without

MOST_ROUNDS = 100
TOLERANCE = 1e-7
# Rounds and tolerance of a fit that others will follow soon.
FEW_ROUNDS, ROUGH_TOLERANCE = 3, 1e-2
SMALLEST_DAMPING = 1e-3
# A scale of so many times the rounding of the targets is that of rows that were fitted exactly.
EXACT = 10.0
# Targets all smaller than this are refused: their squares, times a tolerance, would be lost.
LEAST_TARGET = 1e-130


@dataclass(frozen=True)
class StoredRows:
    """Rows as they came: (n, m), (n,), weights >= 0 (n,) and the time before each (n,)."""

    X: Array
    y: Array
    weights: Array
    elapsed: Array

    def join(self, X: Array, y: Array, weights: Array, elapsed: Array) -> StoredRows:
        """Return these rows and more."""
        return StoredRows(
            np.concatenate([self.X, X]),
            np.concatenate([self.y, y]),
            np.concatenate([self.weights, weights]),
            np.concatenate([self.elapsed, elapsed]),
        )

    def without(self, gone: StoredRows) -> StoredRows:
        """Return these rows less others among them; raises ``ValueError`` if one is not."""
        kept, those = (np.column_stack([one.X, one.y]) for one in (self, gone))
        weights = weigh_without(kept, self.weights, those, gone.weights)
        some = weights > 0.0
        return StoredRows(self.X[some], self.y[some], weights[some], self.elapsed[some])


@dataclass(frozen=True)
class WarmStart:
    """Results of the last fit, from which the next begins: coefficients, scale, prior precision.

    Nothing of the rows that were learned since: so a fit depends on rows alone, and not on how
    they came.
    """

    coefficients: Array | None = None
    scale: float = math.nan
    precision: Array | None = None


@dataclass(frozen=True)
class ModeFit:
    """A posterior that has learned rows at their mode; no mode where they leave the noise open."""

    inner: LinearPosterior
    rows: Rows
    mode: Mode | None
    log_evidence: float
    spread: Spread | None = None
    precision: Array | None = None

    @property
    def warm_start(self) -> WarmStart:
        """The starting values of the next search."""
        if self.mode is None:
            return WarmStart()
        return WarmStart(self.inner.coefficients(), self.mode.scale, self.precision)


def most_probable(
    fresh: LinearPosterior,
    noise: WorkingNoise,
    known_scale: float | None,
    kept: StoredRows,
    discounts: Array,
    warm_start: WarmStart | None = None,
    *,
    in_order: bool = False,
) -> ModeFit:
    """Search for the mode of the rows; where the prior is learned, for both in turns.

    ``fresh`` has seen nothing; ``discounts`` (n,) is what is left of the past before each row.
    ``warm_start`` asks for a rough answer, as of rows that more will follow: quickly, from what was
    known before, and without the evidence; ``in_order`` is as in :class:`SearchStart`.
    """
    _check_size(kept.y)
    some = kept.weights > 0.0
    fade = np.append(np.cumprod(discounts[::-1])[::-1][1:], 1.0)
    weights = (fade * kept.weights)[some]
    rows = Rows(kept.X[some], kept.y[some], weights, fresh.intercept, fresh.n_flat)
    if known_scale is None and _leave_noise_open(rows, fresh):
        return _learn_as_they_are(fresh, kept, rows)
    nodes: NormalNodes | None = None
    choice: Choice | None = None
    if known_scale is None and fresh.learns_prior and are_few(rows):
        nodes = integrate(cast(EvidencePosterior, fresh), rows)
        known_scale = noise.scale_of_normal * nodes.scale
    prior, last = _begin(fresh, rows, known_scale)
    if nodes is not None:
        choice = nodes.nodes.choice.average().scale(noise.scale_of_normal)
        prior = _make_prior(fresh, choice.whole_precisions[0])
    last = replace(last, rough=warm_start is not None, in_order=in_order, nearly=fresh.learns_prior)
    rounds, agreed = MOST_ROUNDS, TOLERANCE
    if warm_start is not None:
        rounds, agreed = FEW_ROUNDS, ROUGH_TOLERANCE
        if warm_start.coefficients is not None and nodes is None:
            scale = max(known_scale or warm_start.scale, rows.floor)
            last = replace(last, scale=scale, fit=rows.compute_fitted(warm_start.coefficients))
        if warm_start.precision is not None and fresh.learns_prior and nodes is None:
            prior = _make_prior(fresh, warm_start.precision)
    damping, last_move = 1.0, math.inf
    for _ in range(rounds):
        mode = noise.mode(rows, prior, known_scale, last)
        inner = _learn_sites(fresh, kept, some, mode)
        move = _move(mode, last)
        # If mode and prior affect each other too strongly, the prior's steps are damped.
        damping = (
            max(0.5 * damping, SMALLEST_DAMPING) if move > last_move else min(1.1 * damping, 1.0)
        )
        last, last_move = mode, move
        learning = nodes is None and fresh.learns_prior
        if move < agreed or not (learning or (prior.rank and not mode.settled)):
            break
        if learning:
            chosen = cast(EvidencePosterior, inner).current().choice
            choice = chosen if choice is None else choice.move_towards(chosen, damping)
            prior = _make_prior(fresh, choice.whole_precisions[0])
    if in_order and rows.strays(rows.compute_fitted(inner.coefficients())):
        # Most rows are met exactly, so that errors have no core: the evidence says the scale.
        return most_probable(fresh, noise, known_scale, kept, discounts, warm_start)
    if nodes is None or choice is None:
        spread = noise.estimate_scale_uncertainty(rows, prior, known_scale, mode)
    else:
        cast(EvidencePosterior, inner).use_prior(choice)
        spread = estimate_spread(nodes, inner.central(), rows, mode.scale)
        spread = replace(spread, log_evidence=_approximate_log_evidence(rows, noise, prior, mode))
    if known_scale is None and mode.scale <= EXACT * rows.rounding and (last.rough or in_order):
        return _learn_as_they_are(fresh, kept, rows)
    if warm_start is not None:
        precision = None if choice is None else choice.whole_precisions[0]
        return ModeFit(inner, rows, mode, 0.0, spread, precision)
    if spread is None:
        return ModeFit(inner, rows, mode, _approximate_log_evidence(rows, noise, prior, mode))
    return ModeFit(inner, rows, mode, spread.log_evidence, spread)


def _leave_noise_open(rows: Rows, fresh: LinearPosterior) -> bool:
    """Return True for rows that a line may go through exactly, whatever the noise is.

    A row that comes again, or weighs more, tells no more of the noise than it did.
    """
    told = rows.count_distinct(most=rows.n_told + LEAST_ROWS)
    few = told < rows.n_flat + LEAST_ROWS
    free = rows.n_told if fresh.learns_prior and few else rows.n_flat
    return min(told, rows.total) <= free


def _learn_as_they_are(fresh: LinearPosterior, kept: StoredRows, rows: Rows) -> ModeFit:
    """Return the fit of rows that say nothing of the noise: a prior is learned in their units."""
    inner = fresh.with_noise(make_noise(rows.estimate_size(rows.y - rows.median(rows.y))))
    inner.append(kept.X, kept.y[:, None], kept.weights, kept.elapsed)
    return ModeFit(inner, rows, None, 0.0)


def _check_size(y: Array) -> None:
    largest = float(np.abs(y).max(initial=0.0))
    if 0.0 < largest < LEAST_TARGET:
        raise ValueError(
            f"the targets are too small to square: the largest is {largest:.3g}; give them in "
            "larger units, as in y * 1e100"
        )


def _learn_sites(
    fresh: LinearPosterior, kept: StoredRows, some: Mask, mode: Mode
) -> LinearPosterior:
    """A posterior that has learned the rows that stand for the likelihood at its mode."""
    inner = fresh.with_noise(make_noise(mode.scale))
    target, weight = np.zeros((len(kept.y), 1)), np.zeros(len(kept.y))
    target[some, 0], weight[some] = mode.target, mode.weight * kept.weights[some]
    inner.append_sites(kept.X, target, weight, kept)
    return inner


def _begin(
    fresh: LinearPosterior, rows: Rows, known_scale: float | None
) -> tuple[Factor, SearchStart]:
    """A prior to begin the search with, and a scale."""
    off = np.abs(rows.y - rows.median(rows.y))
    size = max(float(rows.weights @ off) / rows.total, rows.floor)
    prior = fresh.prior
    if fresh.learns_prior:
        # As much information as one row has.
        centre = rows.weights @ rows.X / rows.total if fresh.intercept else 0.0
        squares = rows.weights @ np.square(rows.X - centre) / rows.total
        prior = _make_prior(fresh, np.where(squares > 0.0, squares, 1.0))
    return prior, SearchStart(known_scale or size, None)


def _make_prior(fresh: LinearPosterior, precision: Array) -> Factor:
    belief = replace(fresh.belief, precision=precision)
    return belief.factor(len(precision), intercept=fresh.intercept)


def _approximate_log_evidence(rows: Rows, noise: WorkingNoise, prior: Factor, mode: Mode) -> float:
    """Laplace's approximation of log p(y), the scale plugged in (MacKay 1992).

    log p(y | mode) - |R0 w - z0|^2 / 2 s^2 + (log |Lambda_0| - log |Lambda_n|) / 2
    + d / 2 log(2 pi s^2), flat directions having density 1.
    """
    posterior = prior.copy()
    rows.append_to(posterior, mode.target, mode.weight)
    off = prior.root @ posterior.coefficients()[:, 0] - prior.moments[:, 0]
    d = prior.n_coefficients - prior.rank
    value = float(rows.weights @ noise.with_scale(mode.scale).log_density(rows.y, mode.fit))
    value -= 0.5 * float(off @ off) / mode.scale**2
    value += 0.5 * (prior.log_determinant() - posterior.log_determinant())
    return value + 0.5 * d * math.log(2.0 * math.pi * mode.scale**2)


def _move(one: SearchStart, other: SearchStart) -> float:
    """Return the distance between two rounds, relative to the scale."""
    if one.fit is None or other.fit is None:
        return math.inf
    moved = float(np.abs(one.fit - other.fit).max(initial=0.0)) / one.scale
    return max(moved, abs(other.scale / one.scale - 1.0))


def make_noise(scale: float) -> KnownNoise:
    """The noise whose standard deviation is this scale; 1 where nothing is known of it."""
    return KnownNoise(min(max(scale**-2.0, 1e-290), 1e290) if math.isfinite(scale) else 1.0)
