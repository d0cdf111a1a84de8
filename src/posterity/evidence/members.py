"""Strategies for one member of an average, which is weighted by its predictions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from posterity.aliases import Array
from posterity.evidence.choice import Choice, Strategy
from posterity.evidence.columns import FeatureScales, compute_prior_shapes
from posterity.evidence.integration import Integrated
from posterity.evidence.relevance import Relevance
from posterity.factor import Factor
from posterity.noise import Noise

DEFAULT_NODES = Integrated().most_nodes


@dataclass(frozen=True)
class UnitInformation:
    """Strategy of a unit-information prior: it is worth a fraction of a row of data.

    w_j ~ N(m_j, sigma^2 / (rows s_j^2)), s_j^2 the mean square of feature j.

    Parameters
    ----------
    rows
        How many rows the prior is worth, above 0.

    Examples
    --------
    >>> data = Factor(2)
    >>> X, y = np.array([[0.0], [2.0]]), np.array([[0.1], [0.9]])
    >>> data.append(X, y, intercept=True)
    >>> from posterity.noise import LearnedNoise
    >>> strategy = UnitInformation(0.1)
    >>> choice = strategy.choose(data, LearnedNoise(), intercept=True, mean=np.zeros(1))
    >>> choice.precisions.round(9)
    array([[0.1]])
    """

    rows: float = 0.1

    def choose(
        self,
        data: Factor,
        noise: Noise,
        *,
        intercept: int,
        mean: Array,
        shapes: Array | None = None,
        scales: FeatureScales | None = None,
    ) -> Choice:
        """The first of the shapes, whatever the data say; parameters as in :class:`Strategy`."""
        return Choice.of_ratios(
            np.array([self.rows]),
            np.zeros(1, dtype=np.intp),
            np.ones(1),
            noise,
            compute_prior_shapes(data, shapes, scales, intercept=intercept),
            data,
            intercept=intercept,
            log_evidence=0.0,
            found="given",
        )


@dataclass(frozen=True)
class InUnits:
    """Strategy that chooses by another one, in units of a noise that is learned elsewhere.

    Examples
    --------
    >>> from posterity.noise import LearnedNoise
    >>> data = Factor(2)
    >>> data.append(np.array([[0.0], [2.0]]), np.array([[0.1], [0.9]]), intercept=True)
    >>> strategy = InUnits(UnitInformation())
    >>> strategy.choose(data, LearnedNoise(), intercept=True, mean=np.zeros(1)).noise
    UnitNoise(shape=0.0, rate=0.0)
    """

    strategy: Strategy

    def choose(self, data: Factor, noise: Noise, **how: Any) -> Choice:
        """The other's choice, with the noise as a unit; parameters as in :class:`Strategy`."""
        return replace(self.strategy.choose(data, noise, **how), noise=noise.unit)


def use_stream_nodes(strategy: Strategy) -> Strategy:
    """The strategy that integrates as a stream does, where this one would choose a single prior.

    Examples
    --------
    >>> use_stream_nodes(use_single_node(Integrated())).most_nodes
    5
    """
    if isinstance(strategy, Integrated):
        return replace(strategy, most_nodes=DEFAULT_NODES).for_stream
    return strategy


def use_single_node(strategy: Strategy) -> Strategy:
    """The strategy that chooses one prior where this one would choose several.

    Examples
    --------
    >>> use_single_node(Integrated()).most_nodes
    1
    """
    if isinstance(strategy, Integrated | Relevance):
        return replace(strategy, most_nodes=1)
    return strategy
