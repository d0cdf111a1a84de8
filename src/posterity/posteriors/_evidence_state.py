"""State of a posterior whose prior is learned: the data's factor, and the prior chosen last."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from posterity.evidence import RunningScales
from posterity.factor import Factor
from posterity.posteriors._faded_rows import restore_weight
from posterity.posteriors._nodes import Nodes
from posterity.posteriors.gaussian import LinearPosterior


@dataclass
class EvidenceState:
    """State: the data under a flat prior, and the statistics that the stream's prior is chosen by.

    ``clock`` counts the rows learned; when they are as many as its second number, the stream's
    nodes are chosen anew, from ``turn``, the data as they were then (None: as they are). ``stream``
    are those nodes. Where nothing is forgotten they can be made at any time, and are only kept
    while the stream goes on; row paths may learn in the factor of a single one: ``shared``.
    ``fresh``, which was read last, knows rows of the total weight ``fresh_at``. ``tally`` sums the
    log densities of the rows as they came. ``scales`` are the features' where data fade.
    """

    data: LinearPosterior
    stream: Nodes | None = None
    fresh: Nodes | None = None
    fresh_at: float = -1.0
    scales: RunningScales | None = None
    clock: NDArray[np.int64] = field(default_factory=lambda: np.array([0, 1]))
    tally: float = 0.0
    turn: Factor | None = None
    shared: Factor | None = None

    def copy(self) -> EvidenceState:
        """An independent copy."""
        stream = None if self.stream is None else self.stream.copy()
        scales = None if self.scales is None else self.scales.copy()
        data, clock = self.data.copy(), self.clock.copy()
        return EvidenceState(
            data, stream, self.fresh, self.fresh_at, scales, clock, self.tally, self.turn
        )

    def copy_from(self, other: EvidenceState) -> None:
        """Take over what another one knows, in the memory that is there."""
        self.data.copy_from(other.data)
        self.follow(other.stream)
        self.fresh, self.scales, self.turn = None, other.scales, other.turn
        self.clock[:] = other.clock
        self.tally = other.tally

    def rows_for_prior(self, turn: Factor | None = None) -> Factor:
        """Return the factor that the prior is chosen from: all data, or ``turn``, unfaded."""
        if turn is not None:
            return turn
        factor = self.data.factor
        if self.scales is None or not (self.data.forgets and self.data.only_discounts):
            return factor
        return restore_weight(factor, self.scales.count)

    def follow(self, stream: Nodes | None) -> None:
        """Make these the stream's nodes; a single one takes the factor that row paths share."""
        if stream is not None and self.shared is not None:
            (node,) = stream.posteriors
            self.shared.copy_from(node.factor)
            stream = Nodes(
                stream.choice, (node._copy_with(factor=self.shared),), stream.log_weights
            )
        self.stream = stream
