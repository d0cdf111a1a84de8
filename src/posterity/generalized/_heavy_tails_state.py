"""State of a posterior under heavy tails, and its one-step-ahead predictions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from posterity.aliases import Array
from posterity.generalized._noise_tally import NoiseSums
from posterity.generalized._start import ModeFit, StoredRows, WarmStart
from posterity.generalized._working_noise import Spread
from posterity.posteriors import LinearPosterior


@dataclass(frozen=True)
class RowPredictions:
    """Rows' predictions before they were learned: mean, relative leverage, scale and its df."""

    mean: Array
    leverage: Array
    scale: Array
    df: Array


@dataclass
class HeavyTailsState:
    """State: ``inner`` has learned the reweighted rows, ``tally`` the scale's statistics.

    ``spread`` is how well a fit knows the scale, None once other rows were learned in order;
    ``kept`` are all rows so far, until there are enough, and ``warm_start`` is where their next fit
    begins. ``clock`` counts rows, and at ``due`` of them the prior, or that fit, is due anew.
    ``log_predictive`` sums the log densities of the rows, ``seen`` their weights.
    """

    inner: LinearPosterior
    tally: NoiseSums
    kept: StoredRows | None
    clock: int = 0
    due: int = 1
    log_predictive: float = 0.0
    seen: float = 0.0
    spread: Spread | None = None
    warm_start: WarmStart = field(default_factory=WarmStart)

    def copy(self) -> HeavyTailsState:
        """An independent copy."""
        return replace(self, inner=self.inner.copy(), tally=self.tally.copy())

    def copy_from(self, other: HeavyTailsState) -> None:
        """Take over all of another one."""
        self.__dict__.update(other.__dict__)

    def set_mode(self, found: ModeFit) -> None:
        """Know the most probable fit of some rows, and nothing else of them."""
        tally = self.tally = self.tally.copy()
        self.inner, self.warm_start, self.spread = found.inner, found.warm_start, found.spread
        if found.mode is None:
            tally.leave_open(found.rows.total)
        else:
            scale = found.mode.scale if found.spread is None else found.spread.scale
            tally.set_mode(found.rows, found.mode, scale)

    def learn_in_order_from_now(self) -> None:
        """From now on rows are learned in order."""
        self.kept, self.spread, self.warm_start = None, None, WarmStart()
