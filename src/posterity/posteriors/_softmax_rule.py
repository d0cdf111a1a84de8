"""The prior of many classes, learned by any strategy from the data of all contrasts."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np

from posterity.aliases import Array
from posterity.evidence import (
    Choice,
    FeatureScales,
    LocalScales,
    OddsScale,
    Spectrum,
    Strategy,
)
from posterity.evidence.columns import LARGEST
from posterity.evidence.members import use_single_node
from posterity.evidence.secant import SecantSteps
from posterity.noise import KnownNoise
from posterity.posteriors._softmax_contrasts import Contrasts, Joined
from posterity.posteriors._softmax_likelihood import Rows
from posterity.posteriors._softmax_prior import VARIED, ContrastPrior, find_maximum
from posterity.posteriors.new_columns import transform_factor

NOISE = KnownNoise(1.0)  # rows that stand for labels are in units of their own
SEPARATED = (
    "the classes are separated, and without a proper prior no coefficients are most probable: what "
    "is reported is where the search stopped; give a prior_precision above 0"
)
NOT_REACHED = (
    "the mode was not reached: what is reported is where the search stopped; bring the features to "
    "like units, or give a larger prior_precision"
)
# Of the log of the prior's scale, between which the best one is looked for.
STEP = math.log(4.0)
# Logs of precisions that agree, where sites and prior are found in turns.
AGREE, MOST_TURNS = 3e-2, 20


def begin(
    before: Contrasts,
    prior: ContrastPrior,
    rows: Rows,
    strategy: Strategy | None,
    shapes: Array | None,
    *,
    averaged: bool,
) -> tuple[Contrasts, ContrastPrior]:
    """A copy of ``before`` that has learned the first rows, and the prior that they choose."""
    if isinstance(strategy, OddsScale) and shapes is None and not averaged:
        prior = prior.scaled(_search_scale(before, prior, rows, strategy))
        known = _begin_under(before, prior, rows, None, averaged=averaged)
        if before.separate:
            return known, prior
        choose = partial(_keep_or_divide, strategy=strategy)
        return _begin_in_turns(before, prior, rows, known, choose, averaged=averaged)
    if strategy is not None:
        # The sizes of the features are taken into account anew, too.
        prior = prior.scaled(prior.scale)
    known = _begin_under(before, prior, rows, None, averaged=averaged)
    if strategy is None:
        return known, prior
    choose = partial(choose_prior, strategy=strategy, shapes=shapes)
    return _begin_in_turns(before, prior, rows, known, choose, averaged=averaged)


def _begin_in_turns(
    before: Contrasts,
    prior: ContrastPrior,
    rows: Rows,
    known: Contrasts,
    choose: Callable[[Contrasts, ContrastPrior], ContrastPrior],
    *,
    averaged: bool,
) -> tuple[Contrasts, ContrastPrior]:
    """Choose the prior by what is known of the rows, and learn these under it, in turns.

    What is known follows the scale, and the scale what is known: so it takes longer steps.
    """
    steps = SecantSteps()
    for _ in range(MOST_TURNS):
        start, last, chosen = known.join_prior(prior), prior, choose(known, prior)
        move = math.log(chosen.scale / last.scale)
        step, steps = steps.lengthen(move)
        prior = chosen.times(math.exp(step - move))
        known = _begin_under(before, prior, rows, start, averaged=averaged)
        if chosen.change_from(last) < AGREE:
            break
    return known, prior


def _begin_under(
    before: Contrasts, prior: ContrastPrior, rows: Rows, start: Joined | None, *, averaged: bool
) -> Contrasts:
    known = before.copy()
    if not known.learn(rows, prior, averaged=averaged, start=start):
        # Of the intercept nothing need be believed: each class that is fitted has rows.
        warnings.warn(NOT_REACHED if prior.proper else SEPARATED, stacklevel=7)
    return known


def _search_scale(
    before: Contrasts, prior: ContrastPrior, rows: Rows, strategy: OddsScale
) -> float:
    """Return the prior's scale that maximizes the evidence of rows, each time at their mode.

    Curvatures found at a mode speak for the scale that led there: taken as they are, as those of
    averages are, they would keep it where it is.
    """
    start: Joined | None = None

    def log_posterior(log_scale: float) -> float:
        nonlocal start
        scaled, trial = prior.scaled(math.exp(log_scale)), before.copy()
        trial.learn(rows, scaled, averaged=False, start=start)
        start = trial.join_prior(scaled)
        return trial.log_density(scaled) + float(strategy.log_scale_prior(np.asarray(log_scale)))

    return math.exp(find_maximum(log_posterior, math.log(prior.scale), STEP))


def choose_prior(
    contrasts: Contrasts, prior: ContrastPrior, strategy: Strategy, shapes: Array | None
) -> ContrastPrior:
    """The one prior that stands for all that the strategy would choose."""
    one = use_single_node(strategy)
    if contrasts.separate:
        assert isinstance(one, OddsScale)
        return prior.scaled(_choose_shared_scale(contrasts, prior, one))
    choice = choose_by_coefficient(contrasts, prior, one, shapes)
    # Of several the mean of the variances: labels are met with caution.
    variances = choice.weights @ (1.0 / np.minimum(choice.precisions, LARGEST))
    after = prior.with_precisions((1.0 / variances).reshape(contrasts.n_classes - 1, -1))
    after.scale = float(np.exp(choice.weights @ np.log(choice.ratios)))
    divides = isinstance(one, OddsScale) and shapes is None  # the shapes of a basis are its prior
    return _divide_by_feature(contrasts, after, choice) if divides else after


def _keep_or_divide(
    contrasts: Contrasts, prior: ContrastPrior, strategy: Strategy
) -> ContrastPrior:
    of_one = choose_by_coefficient(contrasts, prior, strategy, None)
    return _divide_by_feature(contrasts, prior, of_one)


def _divide_by_feature(contrasts: Contrasts, prior: ContrastPrior, of_one: Choice) -> ContrastPrior:
    """Divide the variance of one scale by local scales of the features, if the evidence prefers it.

    These are found in contrasts along the principal axes of the coefficients, and each feature has
    the mean of its variances there: so the order of the classes makes no difference.
    """
    offset = int(prior.intercept)
    squares = prior.mean_squares()[offset:]
    means = contrasts.coordinates(contrasts.join_prior(prior))[:, offset:]
    axes = np.linalg.svd(means * np.sqrt(squares))[0]
    told = _weigh_sites(contrasts, prior) / len(means)
    rule = LocalScales(most_nodes=1).for_sites(told, prior.count, len(squares))
    local = choose_by_coefficient(contrasts, prior, rule, None, axes)
    if local.log_evidence <= of_one.log_evidence:
        return prior.scaled(prior.scale)
    shares = (1.0 / local.precisions).reshape(len(means), -1).mean(axis=0) * squares
    free = ~local.pinned.reshape(len(means), -1).any(axis=0)
    shares = np.where(free, shares / shares[free].mean(), 1.0)
    after = prior.with_precisions((prior.scale * squares / shares)[None])
    after.scale = prior.scale
    return after


def choose_by_coefficient(
    contrasts: Contrasts,
    prior: ContrastPrior,
    strategy: Strategy,
    shapes: Array | None,
    axes: Array | None = None,
) -> Choice:
    """The strategy's choice for each coefficient of each contrast, or of those along ``axes``."""
    k, offset = contrasts.n_classes - 1, int(prior.intercept)
    columns = np.arange(k * contrasts.n_columns).reshape(k, -1)
    # The intercepts in front of all.
    order = np.concatenate([columns[:, :offset].ravel(), columns[:, offset:].ravel()])
    turned = np.asarray(np.kron(np.eye(k) if axes is None else axes, np.eye(contrasts.n_columns)))
    data = transform_factor(contrasts.one.factor, turned[:, order])
    shape = np.tile(prior.mean_squares()[offset:], k)
    data.set_triangle(data.triangle, _weigh_sites(contrasts, prior), data.seen)
    # A column that does not vary is a second intercept: it has no part in the scale.
    constant = prior.squares <= VARIED * prior.count * np.square(prior.center)
    never = np.square(data.root).sum(axis=0)[k * offset :] == 0.0
    never |= np.tile(constant[offset:], k) & bool(offset)
    return strategy.choose(
        data,
        NOISE,
        intercept=k * offset,
        mean=np.zeros(len(shape)),
        shapes=None if shapes is None else np.tile(shapes, k),
        scales=FeatureScales(shape, never if axes is not None else np.zeros_like(never)),
    )


def _weigh_sites(contrasts: Contrasts, prior: ContrastPrior) -> float:
    """As many rows of precision 1: curvatures, which the intercepts' columns add up."""
    root = contrasts.one.factor.root
    if prior.intercept:
        return float(np.square(root[:, :: contrasts.n_columns]).sum())
    squares = prior.squares / prior.count + np.square(prior.center)
    return float(np.square(root).sum() / max(np.sum(squares), 1e-300))


def _choose_shared_scale(contrasts: Contrasts, prior: ContrastPrior, strategy: OddsScale) -> float:
    """The scale that the data of all classes, each by itself, choose."""
    offset = int(prior.intercept)
    shape = prior.mean_squares()[offset:]
    spectra = [
        Spectrum.of(part.factor, intercept=offset, mean=np.zeros(len(shape)), shape=shape)
        for part in contrasts.parts
    ]
    return math.exp(strategy.average(spectra, NOISE).log_ratio)
