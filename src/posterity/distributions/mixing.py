"""Mixtures of several predictions of the same rows, exact or matched by moments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from posterity.distributions._rows import FloatArray, as_floats
from posterity.distributions.any_mixture import any_mixture
from posterity.distributions.categorical import Categorical
from posterity.distributions.location_scale import LocationScale
from posterity.distributions.log_normal_counts import LogNormalCounts, MixedLogNormalCounts
from posterity.distributions.mixture import Mixture
from posterity.distributions.normal import Normal
from posterity.distributions.student_t import StudentT


@singledispatch
def get_mixer(first: Any, parts: Sequence[Any], weights: FloatArray) -> Any:
    """Mix predictions like ``first``: each kind registers its function, others use this."""
    return any_mixture(parts, weights)


@singledispatch
def get_matcher(first: Any, parts: Sequence[Any], weights: FloatArray) -> Any:
    """Match predictions like ``first`` by one of their kind; by default they are mixed exactly."""
    return mix_exactly(parts, weights)


def mix_exactly(parts: Sequence[Any], weights: ArrayLike) -> Any:
    """The mixture of predictions, for each row: of densities a :class:`Mixture`, or of anything.

    Labels and classes add their probabilities up. Parameters as of :func:`mix_predictions`.

    Examples
    --------
    >>> from posterity.distributions import Normal, PoissonLogNormal
    >>> mix_exactly([Normal([0.0], 1.0), Normal([4.0], 1.0)], [0.75, 0.25]).mean()
    array([1.])
    >>> mix_exactly([PoissonLogNormal([0.0], [0.1]), PoissonLogNormal([1.0], [0.1])], [0.5, 0.5])
    MixedLogNormalCounts(2 components, 1 rows)
    """
    return _group_by_kind(get_mixer, parts, weights)


def mix_predictions(parts: Sequence[Any], weights: ArrayLike) -> Any:
    """Return one prediction for each row in place of several that hardly differ.

    As :func:`mix_exactly`, but counts whose log rates are normal stay so, with the mixture's mean
    and variance of the log rate, and so do predictions under one likelihood of one's own.

    Parameters
    ----------
    parts : sequence of K distributions
        Each over the same n rows.
    weights : (K,) or (n, K) array
        Of each row to sum to 1.

    Examples
    --------
    >>> from posterity.distributions import PoissonLogNormal
    >>> parts = [PoissonLogNormal([0.0], [0.1]), PoissonLogNormal([1.0], [0.1])]
    >>> mix_predictions(parts, [0.5, 0.5])
    PoissonLogNormal(log_mean=[0.5], log_variance=[0.35])
    """
    return _group_by_kind(get_matcher, parts, weights)


def _group_by_kind(way: Any, parts: Sequence[Any], weights: ArrayLike) -> Any:
    if len(parts) == 1:
        return parts[0]
    ways = {way.dispatch(type(part)) for part in parts}
    mix = ways.pop() if len(ways) == 1 else way.dispatch(object)
    return mix(parts[0], parts, as_floats(weights))


def tabulate(prediction: LocationScale, weights: ArrayLike = 1.0) -> FloatArray:
    """Weights, degrees of freedom, locations and scales (4, K) of K predictions."""
    df = prediction._shape_parameters() or (math.inf,)
    return np.stack(np.broadcast_arrays(weights, *df, prediction.loc, prediction.scale))


def tabulate_row(prediction: LocationScale | Mixture) -> FloatArray:
    """The same of the components of a prediction of one row."""
    mixture = Mixture.of([prediction, prediction], [[1.0, 0.0]])
    parts = [tabulate(one[0] if one.shape else one) for one in mixture.components]
    table = np.stack(parts, axis=1)
    table[0] = mixture.weights[0]
    return table


def mix_table(table: FloatArray, *shape: int) -> Mixture:
    """The mixture, of this shape, of the predictions of one row that :func:`tabulate` wrote down.

    Examples
    --------
    >>> from posterity.distributions import Normal
    >>> table = tabulate(Normal([0.0, 4.0], 1.0), [0.75, 0.25])
    >>> mix_table(table).mean(), mix_table(table, 1).mean()
    (np.float64(1.0), array([1.]))
    """
    weights, *parameters = table[:, table[0] > 0.0]
    kind: type[LocationScale] = StudentT
    if np.isinf(parameters[0]).all():
        kind, parameters = Normal, parameters[1:]
    return Mixture(list(map(kind, *parameters)), weights.reshape(*shape, len(weights)))


def match_moments(location: FloatArray, scale: FloatArray, weights: FloatArray) -> tuple[Any, Any]:
    """Location and scale of the single distribution matched to a mixture.

    Parameters
    ----------
    location, scale
        (K, n) of K distributions for each of n targets, alike but for these two (Student-t of the
        same degrees of freedom, or Normal).
    weights
        (K,), or (K, n) one for each target, of sum 1.

    Returns
    -------
    location, scale : (n,) arrays
        The mixture's mean, and the root of its mean squared scale plus the variance of its
        locations. For the Normal that is the mixture's variance; for Student-t the mixture's is a
        little less, by 2 / df of the variance of the locations, which keeps the tails that a
        single Student-t would lose, and exists for every df.

    Examples
    --------
    >>> import numpy as np
    >>> match_moments(np.array([[0.0], [2.0]]), np.array([[1.0], [1.0]]), np.array([0.5, 0.5]))
    (array([1.]), array([1.41421356]))
    """
    if weights.ndim == 1:
        weights = weights[:, None]
    mean = (weights * location).sum(axis=0)
    square = (weights * (np.square(scale) + np.square(location - mean))).sum(axis=0)
    return mean, np.sqrt(square)


def mix_logs(logs: Sequence[FloatArray], weights: FloatArray) -> FloatArray:
    """Logs of the weighted sums of probabilities: K arrays (n,) or (n, c) of their logs."""
    stacked = np.stack(logs)
    # Weights as (K, n or 1) columns, with as many axes as the logs have.
    shares = np.atleast_2d(weights.T if weights.ndim == 2 else weights[:, None])
    shares = shares.reshape(*shares.shape, *(1,) * (stacked.ndim - 2))
    with np.errstate(divide="ignore"):
        terms = stacked + np.log(shares)
    most = terms.max(axis=0)
    shift = np.where(np.isfinite(most), most, 0.0)
    with np.errstate(divide="ignore"):
        together: FloatArray = np.log(np.exp(terms - shift).sum(axis=0)) + shift
    return together


def match_column_moments(
    means: Sequence[FloatArray], variances: Sequence[FloatArray], weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance (n,) of a mixture, from K of each (n,); weights (K,) or (n, K)."""
    if len(means) == 1:
        return means[0], variances[0]
    columns = weights.T if weights.ndim == 2 else weights
    with np.errstate(invalid="ignore"):
        mean, scale = match_moments(np.stack(means), np.sqrt(np.stack(variances)), columns)
    return mean, np.where(np.isnan(scale), np.inf, scale * scale)


@get_mixer.register(LocationScale)
@get_mixer.register(Mixture)
def _densities(first: Any, parts: Sequence[Any], weights: FloatArray) -> Mixture:
    return Mixture.of(parts, weights)


@get_mixer.register
def _mix_counts(
    first: LogNormalCounts, parts: Sequence[Any], weights: FloatArray
) -> MixedLogNormalCounts:
    return MixedLogNormalCounts(parts, weights)


@get_matcher.register
def _counts(first: LogNormalCounts, parts: Sequence[Any], weights: FloatArray) -> LogNormalCounts:
    columns = weights.T if weights.ndim == 2 else weights[:, None]
    dispersion = np.sum(columns * np.stack([one.dispersion for one in parts]), axis=0)
    means, variances = [one.log_mean for one in parts], [one.log_variance for one in parts]
    return first.like(*match_column_moments(means, variances, weights), dispersion)


@get_mixer.register
def _get_classes(first: Categorical, parts: Sequence[Any], weights: FloatArray) -> Categorical:
    return Categorical(first.classes, mix_logs([one.log_probabilities for one in parts], weights))
