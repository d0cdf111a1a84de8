"""The rule by which a model chooses its prior, and what it chooses from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from posterity.evidence import Choice, Integrated, Strategy
from posterity.evidence.columns import FeatureScales
from posterity.evidence.members import use_single_node
from posterity.factor import Factor
from posterity.factor.parallel import limit_blas_threads
from posterity.noise import Noise
from posterity.posteriors._evidence_state import EvidenceState

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Chooser:
    """The rule that chooses a model's prior; its parameters are those of :class:`Strategy`."""

    strategy: Strategy
    noise: Noise
    intercept: bool
    mean: Array
    shapes: Array | None

    def choice(
        self,
        state: EvidenceState,
        turn: Factor | None = None,
        *,
        stream: bool = False,
        single: bool = False,
    ) -> Choice:
        """Choose the prior by the evidence of all data, or as they were at a turn of the stream."""
        strategy = self.select_strategy(stream=stream, single=single)
        rows = state.rows_for_prior(turn)
        if isinstance(strategy, Integrated) and self.noise.parameters[0]:  # as that of sites is
            strategy = strategy.for_sites(rows.count, float(state.clock[0]), len(self.mean))
        with limit_blas_threads(len(self.mean)):
            return strategy.choose(
                rows,
                self.noise,
                intercept=self.intercept,
                mean=self.mean,
                shapes=self.shapes,
                scales=self.scales(state),
            )

    def select_strategy(self, *, stream: bool, single: bool) -> Strategy:
        """Return the strategy of nodes that a stream learns, or that are read, or of one node."""
        strategy = use_single_node(self.strategy) if single else self.strategy
        return strategy.for_stream if stream and isinstance(strategy, Integrated) else strategy

    def scales(self, state: EvidenceState) -> FeatureScales | None:
        """Return the scales of the features, over all rows that ever came, where they are kept."""
        return None if state.scales is None else state.scales.read(intercept=self.intercept)
