"""The prior of many classes, learned by any strategy from the data of all contrasts."""

from __future__ import annotations

import math

import numpy as np

from posterity.evidence import (
    Choice,
    FeatureScales,
    OddsScale,
    Spectrum,
    Strategy,
)
from posterity.evidence.columns import LARGEST
from posterity.evidence.members import use_single_node
from posterity.noise import KnownNoise
from posterity.posteriors._softmax_contrasts import Contrasts
from posterity.posteriors._softmax_likelihood import Array
from posterity.posteriors._softmax_prior import ContrastPrior

NOISE = KnownNoise(1.0)  # rows that stand for labels are in units of their own


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
    return after


def choose_by_coefficient(
    contrasts: Contrasts, prior: ContrastPrior, strategy: Strategy, shapes: Array | None
) -> Choice:
    """The strategy's choice for each coefficient of each contrast."""
    k, offset = contrasts.n_classes - 1, int(prior.intercept)
    data, shape = contrasts.data_of(0, offset), np.tile(prior.mean_squares()[offset:], k)
    # As many rows as of precision 1: their curvatures, which the intercepts' columns add up.
    weight = float(np.square(data.root[:, : k * offset]).sum())
    if not offset:
        squares = prior.squares / prior.count + np.square(prior.center)
        weight = float(np.square(data.root).sum() / max(np.sum(squares), 1e-300))
    data.set_triangle(data.triangle, weight, data.seen)
    return strategy.choose(
        data,
        NOISE,
        intercept=k * offset,
        mean=np.zeros(len(shape)),
        shapes=None if shapes is None else np.tile(shapes, k),
        scales=FeatureScales(shape, np.zeros(len(shape), dtype=bool)),
    )


def _choose_shared_scale(contrasts: Contrasts, prior: ContrastPrior, strategy: OddsScale) -> float:
    """The scale that the data of all classes, each by itself, choose."""
    offset = int(prior.intercept)
    shape = prior.mean_squares()[offset:]
    spectra = [
        Spectrum.of(part.factor, intercept=offset, mean=np.zeros(len(shape)), shape=shape)
        for part in contrasts.parts
    ]
    return math.exp(strategy.average(spectra, NOISE).log_ratio)
