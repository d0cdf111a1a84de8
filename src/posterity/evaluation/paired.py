"""Models beside one another on one stream: is the difference of their losses more than chance?"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import tee
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import Array, Estimator
from posterity.averaging.members import (
    check_member,
    copy_unfitted,
    get_final_step,
    transform_for_last,
)
from posterity.evaluation import _scores as column
from posterity.evaluation._batches import limit_batches, note_refusals
from posterity.evaluation._ledger import StretchLedger
from posterity.evaluation._names import name_models
from posterity.evaluation._tally import RunningScores, ScoredBatch
from posterity.evaluation.paired_result import PairedComparison
from posterity.evaluation.progressive import check_count, check_levels, scored_batches
from posterity.evaluation.slices import Sliced
from posterity.linear.offsets import RateOffsets

# Column of the loss, its sign, and the column that says which rows have it.
LOSSES = {
    "log_score": (column.LOG_SCORE, -1.0, column.WITH_DENSITY),
    "crps": (column.CRPS, 1.0, column.WITH_CRPS),
    "absolute": (column.ABSOLUTE, 1.0, column.ROWS),
    "squared": (column.SQUARED, 1.0, column.ROWS),
}


class _Learner:
    """A copy of a model, or of a pipeline whose steps are fitted on the first batch."""

    def __init__(self, name: str, model: Estimator) -> None:
        check_member(name, model, ("predict_then_learn",))
        self.name, self.model = name, copy_unfitted(model)
        self._began = False

    def predict_then_learn(self, X: Any, y: Any, **keywords: Any) -> Any:
        rows = transform_for_last(self.model, X, y, first=not self._began)
        self._began = True
        with note_refusals(f"model {self.name!r}"):
            return get_final_step(self.model).predict_then_learn(rows, y, **keywords)


def compare_predictions(
    models: Mapping[str, Any] | Sequence[Any],
    X: Any,
    y: Any = None,
    *,
    loss: str = "log_score",
    levels: Sequence[float] = (0.95,),
    delay: int = 0,
    period: int | None = None,
    slices: Sliced | None = None,
    batch_rows: int = 16384,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
    progress: Callable[[int], object] | None = None,
) -> PairedComparison:
    """Compare models along a stream, with standard errors of their differences.

    Each model predicts every row, then learns it, as in :func:`progressive_validation`. Losses of
    two models in the same row are paired: what is hard for both does not blur the difference.
    The standard error of the mean difference allows for rows that go together (Diebold and Mariano
    1995, J. Bus. Econ. Stat. 13, 253-263; variance by Lazarus and others 2018): over a few rows, as
    errors of forecasts made long before do, or over a large part of the stream, as features do that
    vary slowly. The models given are not changed: copies learn, from nothing. Memory does not grow
    with the stream.

    Parameters
    ----------
    models : mapping of name to model, or list of models
        As in :func:`compare`.
    X, y, sample_weight, offset, exposure, batch_rows, progress
        As in :func:`compare`.
    loss : {"log_score", "crps", "absolute", "squared"}
        What is compared, in the rows where every model has it; "log_score" is minus the log
        predictive density.
    levels, delay, period, slices
        As in :func:`progressive_validation`.

    Returns
    -------
    PairedComparison
        Mean losses, differences with their standard errors, and every model's own validation.

    Raises
    ------
    ValueError
        If there are fewer than two models, or no row that all of them scored; an unknown loss;
        or as in :func:`progressive_validation`.
    TypeError
        If a model has no ``predict_then_learn``.

    Examples
    --------
    >>> import numpy as np
    >>> from posterity import BayesianLinearRegression
    >>> from posterity.basis import Polynomial
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1.0, 1.0, size=(500, 1))
    >>> y = X[:, 0] ** 2 + 0.1 * rng.normal(size=500)
    >>> result = compare_predictions(
    ...     {
    ...         "line": BayesianLinearRegression(),
    ...         "parabola": BayesianLinearRegression(basis=Polynomial(degree=2)),
    ...     },
    ...     X,
    ...     y,
    ... )
    >>> result.best
    'parabola'
    >>> difference = result.between("line", "parabola")
    >>> difference.mean > 0.5, difference.p_value < 1e-6
    (True, True)
    """
    if loss not in LOSSES:
        raise ValueError(f"loss is {loss!r}: it must be one of {', '.join(map(repr, LOSSES))}")
    levels = check_levels(levels)
    delay = check_count("delay", delay, 0)
    if period is not None:
        period = check_count("period", period, 1)
    names, given = name_models(models)
    if len(names) < 2:
        raise ValueError(f"give two models or more to compare, got {len(names)}")
    learners = [_Learner(name, model) for name, model in zip(names, given, strict=True)]
    tallies = [RunningScores(levels, delay=delay, period=period, slices=slices) for _ in names]
    pairs = _Pairs(len(names), loss)
    batch_rows, added = check_count("batch_rows", batch_rows, 1), RateOffsets(offset, exposure)
    batches = limit_batches(X, y, sample_weight, batch_rows, added)
    predictions = [
        scored_batches(learner, own, levels, delay)
        for learner, own in zip(learners, tee(batches, len(learners)), strict=True)
    ]
    for together in zip(*predictions, strict=True):
        for tally, scored in zip(tallies, together, strict=True):
            tally.add(scored)
        pairs.add(together)
        if progress is not None:
            progress(tallies[0].n_rows)
    results = dict(zip(names, [tally.result() for tally in tallies], strict=True))
    row_end, sums = pairs.along.stretches()
    if not sums[:, 0].any():
        raise ValueError(
            f"none of the {tallies[0].n_rows} rows has a loss by all models: give proper priors or "
            'more rows, or loss="absolute"'
        )
    return PairedComparison(
        names=names,
        loss=loss,
        results=results,
        row_end=row_end,
        n_scored=sums[:, 0].astype(np.int64),
        losses=_compute_mean_losses(sums[:, : 1 + len(names)]),
        models={learner.name: learner.model for learner in learners},
        _sums=sums[:, 1 + len(names) :].T,
    )


class _Pairs:
    """Losses of all models in the rows that all of them scored."""

    def __init__(self, n_models: int, loss: str) -> None:
        self._column, self._sign, self._has = LOSSES[loss]
        self.along = StretchLedger(1 + 2 * n_models)

    def add(self, together: Sequence[ScoredBatch]) -> None:
        """Add a batch, scored by each model.

        Losses are kept relative to those of the other models in the same row, too: differences lose
        no digits to what all share.
        """
        scored = np.ones(len(together[0].y), dtype=bool)
        for one in together:
            scored &= one.columns[self._has].astype(bool)
        losses = np.stack([self._sign * one.columns[self._column] for one in together])
        losses = np.where(scored, losses, 0.0)
        self.along.add([scored, *losses, *(losses - losses.mean(axis=0))])


def _compute_mean_losses(sums: Array) -> Array:
    """Mean loss in each stretch by each model, (k, s); NaN where no row was scored."""
    rows = sums[:, 0]
    return np.where(rows > 0, sums[:, 1:].T / np.maximum(rows, 1.0), math.nan)
