"""A model's prediction with intervals that are held to what happened."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import ndtri

from posterity.aliases import Array, Estimator
from posterity.calibration.scores import PredictionScales
from posterity.distributions import LogNormalCounts


class ConformalPrediction:
    """Predictions of :class:`Conformal`: conformal intervals, and all else from the model.

    ``mean var std median pdf logpdf cdf sf ppf crps rvs is_flat shape`` are those of ``model``, so
    a ``ppf`` and an end of an interval may differ: the one is what the model believes, the other
    what held for the rows so far.

    Parameters
    ----------
    model : distribution
        What the wrapped model predicts, one per row.
    levels : (L,) array
        Levels that were learned, increasing.
    ends : (n, 2, L) or (1, 2, L) array
        Lower and upper ends for each level, as scores.

    Examples
    --------
    >>> from posterity.distributions import Normal
    >>> model = Normal([10.0, 20.0], [1.0, 2.0])
    >>> predictive = ConformalPrediction(model, np.array([0.95]), np.array([[[-1.0], [3.0]]]))
    >>> low, high = predictive.interval(0.95)
    >>> low, high
    (array([ 9., 18.]), array([13., 26.]))
    >>> predictive.mean()
    array([10., 20.])
    """

    __slots__ = ("_units", "ends", "levels", "model")

    def __init__(
        self, model: Estimator, levels: Array, ends: Array, units: PredictionScales | None = None
    ) -> None:
        self.model, self.levels, self.ends = model, levels, ends
        self._units = units

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in {"model", "levels", "ends"}:
            raise AttributeError(name)  # while it is copied or unpickled
        return getattr(self.model, name)

    def __len__(self) -> int:
        return len(self.model)

    def __getitem__(self, index: Any) -> Self:
        ends = self.ends if len(self.ends) == 1 else self.ends[index]
        ends = ends if ends.ndim == 3 else ends[None]
        return type(self)(self.model[index], self.levels, ends)

    def __repr__(self) -> str:
        levels = ", ".join(f"{level:g}" for level in self.levels)
        return f"ConformalPrediction({self.model!r}, levels=({levels}))"

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Lower and upper ends (n,), in units of the target.

        At the levels that were learned they are what has held that share of the rows. Between two
        of them ends are interpolated, in proportion to the quantiles of a Normal; beyond, they are
        those of the nearest level, stretched likewise. Where the model says nothing, or leaves
        nothing open, they are the model's own.

        Raises
        ------
        ValueError
            If the level is not between 0 and 1.
        """
        level = float(level)
        if not 0.0 <= level <= 1.0:
            raise ValueError(
                f"level must lie between 0 and 1, but it is {level:g}; give 0.95 for a 95% interval"
            )
        units = PredictionScales.of(self.model) if self._units is None else self._units
        shape = self.model.shape
        below, above = self._scores(level)
        low, high = (np.broadcast_to(units.targets(ends), shape or (1,)) for ends in (below, above))
        if isinstance(self.model, LogNormalCounts):
            low = np.maximum(low, 0.0)  # counts
        strange = ~np.broadcast_to(units.usable(), low.shape)
        if strange.any():
            own = self.model.interval(level)
            low, high = (
                np.where(strange, o, ours) for o, ours in zip(own, (low, high), strict=True)
            )
        return (low, high) if shape else (low[0], high[0])

    def _scores(self, level: float) -> tuple[Array, Array]:
        """Ends (n,) or (1,) at any level, as scores."""
        at = np.flatnonzero(self.levels == level)
        if len(at):
            return self.ends[:, 0, at[0]], self.ends[:, 1, at[0]]
        quantile, learned = ndtri(0.5 + 0.5 * level), ndtri(0.5 + 0.5 * self.levels)
        i = int(np.searchsorted(learned, quantile))
        if 0 < i < len(learned):
            share = (quantile - learned[i - 1]) / (learned[i] - learned[i - 1])
            narrow, wide = self.ends[:, :, i - 1], self.ends[:, :, i]
            ends = narrow + share * (wide - narrow)
            return ends[:, 0], ends[:, 1]
        nearest = min(i, len(learned) - 1)
        low, high = self.ends[:, 0, nearest], self.ends[:, 1, nearest]
        middle, half = 0.5 * (low + high), 0.5 * (high - low) * (quantile / learned[nearest])
        if level == 1.0:
            half = np.full_like(half, np.inf)
        return middle - half, middle + half
