"""Quantiles scored as quantiles: the share of targets below, and the loss they minimise."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from posterity.aliases import Array, Document, Estimator
from posterity.evaluation._batches import limit_batches, refuse_nothing
from posterity.evaluation._tables import to_plain

# Targets that the quantile so far is taken of, and rows after which it is taken anew.
_KEPT, _BATCH_ROWS, _UPDATE_SHARE = 65536, 16384, 0.02


@dataclass(frozen=True)
class QuantileResult:
    """Scores of a quantile that was predicted for each row before it was learned.

    Attributes
    ----------
    quantile : float
        q.
    n_rows, n_unscored : int
        Rows, and those of them for which nothing was known yet: they are in no score.
    share_below : float
        Share of the targets at or below the prediction; q is right.
    pinball_loss : float
        Mean of q (y - f) above the prediction f and (1 - q) (f - y) below (Koenker and Bassett
        1978), in units of y: what the true quantile makes least.
    baseline_loss : float
        The same of the quantile of the targets so far.
    """

    quantile: float
    n_rows: int
    n_unscored: int
    share_below: float
    pinball_loss: float
    baseline_loss: float

    @property
    def skill(self) -> float:
        """1 - pinball_loss / baseline_loss: 1 is perfect, 0 no better than the quantile so far."""
        known = 0.0 < self.baseline_loss < math.inf
        return 1.0 - self.pinball_loss / self.baseline_loss if known else math.nan

    def to_dict(self) -> Document:
        """Plain numbers, and None for what is not finite."""
        plain: Document = to_plain({**asdict(self), "skill": self.skill})
        return plain


def progressive_quantiles(
    model: Estimator,
    stream: object,
    y: Any = None,
    *,
    progress: Callable[[int], object] | None = None,
) -> QuantileResult:
    """Score a model of a quantile on a stream; each row is predicted before it is learned.

    Examples
    --------
    >>> from posterity.generalized import BayesianQuantileRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(2000, 1))
    >>> y = X[:, 0] * (1.0 + rng.exponential(size=2000))
    >>> model = BayesianQuantileRegression(quantile=0.9)
    >>> result = progressive_quantiles(model, X, y)
    >>> abs(result.share_below - 0.9) < 0.03, result.skill > 0.1
    (True, True)
    """
    if np.ndim(model.quantile):
        raise ValueError(
            f"quantile is {model.quantile!r}: score one at a time, as of "
            "BayesianQuantileRegression(quantile=0.9)"
        )
    q, so_far, n_rows = float(model.quantile), _RunningQuantile(float(model.quantile)), 0
    sums = np.zeros(4)  # rows, below, loss, loss of the baseline
    for batch in limit_batches(stream, y, None, _BATCH_ROWS):
        target = batch.y
        predictive = model.predict_then_learn(batch.X, target, **batch.keywords())
        predicted, usual = np.asarray(predictive.ppf(q)), so_far.before(target)
        scored = np.isfinite(predicted) & np.isfinite(usual)
        predicted, usual, target = predicted[scored], usual[scored], target[scored]
        losses = [pinball(target - forecast, q).sum() for forecast in (predicted, usual)]
        sums += (len(target), (target <= predicted).sum(), *losses)
        n_rows += len(scored)
        if progress is not None:
            progress(n_rows)
    refuse_nothing(n_rows)
    n_scored = int(sums[0])
    below, loss, usual_loss = (sums[1:] / n_scored if n_scored else np.full(3, np.nan)).tolist()
    return QuantileResult(q, n_rows, n_rows - n_scored, below, loss, usual_loss)


def pinball(error: Array, quantile: float) -> Array:
    """The check loss of y - f, for each row.

    Examples
    --------
    >>> pinball(np.array([2.0, -2.0]), 0.9).round(6).tolist()
    [1.8, 0.2]
    """
    return np.where(error >= 0.0, quantile * error, (quantile - 1.0) * error)


class _RunningQuantile:
    """The quantile of the targets so far: of all, or of a sample of them where there are many."""

    def __init__(self, quantile: float) -> None:
        self._quantile, self._kept, self._n = quantile, np.empty(0), 0
        self._rng = np.random.default_rng(0)

    def before(self, y: Array) -> Array:
        """Return the quantile before each row, renewed every few percent of rows; then learn."""
        found, start = np.empty(len(y)), 0
        while start < len(y):
            end = min(len(y), start + max(1, int(_UPDATE_SHARE * self._n)))
            known = len(self._kept) > 0
            found[start:end] = np.quantile(self._kept, self._quantile) if known else np.nan
            self._learn(y[start:end])
            start = end
        return found

    def _learn(self, y: Array) -> None:
        """Keep the first, then each with the same probability (Vitter 1985, algorithm R)."""
        room = max(_KEPT - len(self._kept), 0)
        self._kept = np.concatenate([self._kept, y[:room]])
        late = y[room:]
        rows = self._n + len(y) - len(late) + np.arange(len(late))
        places = self._rng.integers(0, rows + 1) if len(late) else np.empty(0, dtype=np.int64)
        chosen = places < _KEPT
        self._kept[places[chosen]] = late[chosen]
        self._n += len(y)
