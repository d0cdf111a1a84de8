"""Progressive validation: test on each row, then train on it (the prequential way)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from operator import index
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier

from posterity.aliases import Estimator
from posterity.evaluation._batches import (
    Batch,
    join_batches,
    limit_batches,
    locate_rows,
    note_refusals,
)
from posterity.evaluation._scores import score_columns
from posterity.evaluation._tally import RunningScores, ScoredBatch
from posterity.evaluation.coefficient_path import CoefficientFollower
from posterity.evaluation.result import ValidationResult
from posterity.evaluation.slices import Sliced
from posterity.linear.offsets import RateOffsets


def progressive_validation(
    model: Estimator,
    stream: object,
    y: Any = None,
    *,
    levels: Sequence[float] = (0.95,),
    delay: int = 0,
    period: int | None = None,
    slices: Sliced | None = None,
    follow: int = 0,
    batch_rows: int = 16384,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
    progress: Callable[[int], object] | None = None,
) -> ValidationResult:
    """Score the predictions of a stream, each made before its row was learned.

    No row is ever predicted by a model that has seen it, so the scores are honest, and every row is
    scored, so none is wasted. The sum of the log scores is the log evidence of the model
    (Dawid 1984, "Statistical theory: the prequential approach", J. R. Stat. Soc. A 147, 278-292).
    The model learns in place: afterwards it knows the whole stream. Memory does not grow with the
    stream.

    Parameters
    ----------
    model : object
        Anything with ``predict_then_learn(X, y, sample_weight=None)`` that returns the predictive
        distribution of each row before it was learned. With `delay`, a row of weight zero must be
        predicted and not learned.
    stream : (n, p) array or data frame, tuple, or iterable
        X (give `y` too); or a tuple ``(X, y)``; or any iterable of batches ``(X, y)``,
        ``(X, y, sample_weight)``, ``(X, y, sample_weight, times)`` or ``(X, y, sample_weight,
        times, offset)``, of any length. Weights and times may be None. Times and offsets are passed
        on to the model; times exclude a `delay`.
    y : (n,) array, optional
        Targets, when `stream` is X.
    levels : sequence of float
        Levels of the central intervals whose coverage and width are measured, between 0 and 1.
    delay : int
        Labels arrive so many rows later: row i is predicted by a model that has learned rows up to
        i - delay - 1. What is still waiting at the end is then learned. Costs about twice the time.
    period : int, optional
        Rows in a season, 24 for hours of a day: the value one season ago is a baseline too, beside
        the mean so far and the last value. Baselines know no more targets than the model.
    slices : mapping of feature to int or edges, optional
        Scores by slice of a feature (its name in a data frame, or its number): so many slices of
        equal numbers of rows in the first batch, or increasing edges between them; or, by any name,
        :class:`SlicedNumbers` or :class:`SlicedLevels`.
    follow : int
        Note the model's coefficients at up to so many places along the stream: `path` of the
        result. 0: at none.
    batch_rows : int
        Larger batches are cut into pieces of so many rows. Changes memory and speed, not results.
    sample_weight : (n,) array, optional
        With arrays only. Weights say how much the model learns from a row; each row counts once in
        the scores, whatever its weight.
    offset, exposure : (n,) array or float, optional
        With arrays only, of models of counts: what is added to each log rate, and what each count
        comes from. The baselines are those of rates, times the exposure.
    progress : callable, optional
        Called with the number of rows done, after each batch.

    Returns
    -------
    ValidationResult
        MAE, RMSE, log score, CRPS, and coverage and width of the intervals, overall, along time and
        by slice; where y fell in its predictive distribution; and skill over baselines.

    Raises
    ------
    ValueError
        Levels outside (0, 1), a negative delay or `follow`, a period below 1, slices of a feature
        that is not there, an empty stream, or X, y and the weights not of one length; the batch is
        named. What the model finds wrong in a batch passes through with a note that says which rows
        of the stream it was given; earlier rows stay learned.
    TypeError
        The stream is not iterable, or the model has no ``predict_then_learn``, or no coefficients
        to follow.

    Examples
    --------
    >>> import numpy as np
    >>> from posterity import BayesianLinearRegression
    >>> from posterity.evaluation import progressive_validation
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3))
    >>> y = X @ [1.0, -2.0, 0.5] + 3.0 + rng.normal(size=2000)
    >>> result = progressive_validation(BayesianLinearRegression(), X, y, levels=(0.5, 0.95))
    >>> result.n_rows
    2000
    >>> 0.93 < result.coverage[0.95] < 0.97
    True
    >>> bool(result.along.row_end[-1] == 2000)
    True
    >>> result.baselines["mean so far"].skill > 0.5
    True
    """
    levels = check_levels(levels)
    delay = check_count("delay", delay, 0)
    batch_rows = check_count("batch_rows", batch_rows, 1)
    follow = check_count("follow", follow, 0)
    if period is not None:
        period = check_count("period", period, 1)
    _check_model(model)
    tally = RunningScores(levels, delay=delay, period=period, slices=slices)
    added = RateOffsets(offset, exposure)
    batches = limit_batches(stream, y, sample_weight, batch_rows, added)
    follower = None
    if follow:
        follower = CoefficientFollower(model, follow, lambda: _estimate_rows(stream, y))
        batches = follower.pieces(batches)
    for scored in scored_batches(model, batches, levels, delay):
        tally.add(scored)
        if progress is not None:
            progress(tally.n_rows)
    result = tally.result()
    return result if follower is None else replace(result, path=follower.path())


def scored_batches(
    model: Estimator, batches: Iterator[Batch], levels: Sequence[float], delay: int
) -> Iterator[ScoredBatch]:
    """Predict, score, then learn, batch by batch; empty batches are passed over."""
    return (
        _validate_with_delay(model, batches, levels, delay)
        if delay
        else _validate_immediately(model, batches, levels)
    )


def _validate_immediately(
    model: Estimator, batches: Iterator[Batch], levels: Sequence[float]
) -> Iterator[ScoredBatch]:
    """Labels arrive with their rows: one pass predicts and learns a whole batch."""
    seen = 0
    for batch in batches:
        X, y = batch.X, batch.y
        distribution = _predict_then_learn(model, batch, seen)
        seen += len(y)
        yield ScoredBatch(X, y, *score_columns(distribution, y, levels), batch.offset)


def _validate_with_delay(
    model: Estimator, batches: Iterator[Batch], levels: Sequence[float], delay: int
) -> Iterator[ScoredBatch]:
    """Labels arrive `delay` rows later.

    Weight w is the row w times, so a row of weight zero is predicted and not learned. A pass over
    the rows in the order of what happens (row i is predicted, with weight zero; then row i - delay
    is learned) is exact, and costs two rows for each row.
    """
    waiting: Batch | None = None
    seen = 0
    for batch in batches:
        n, n_waiting = len(batch.y), 0 if waiting is None else len(waiting.y)
        if batch.times is not None:
            raise ValueError(
                "times and delay can't go together, as rows would be learned out of order: leave "
                "one of them out"
            )
        rows = join_batches(waiting, batch)
        predicted = np.arange(n_waiting, n_waiting + n)
        events = np.stack([predicted, predicted - delay], axis=1).ravel()
        is_prediction = np.tile([True, False], n)
        happens = events >= 0
        events, is_prediction = events[happens], is_prediction[happens]
        asked = rows.select(events)
        weights = np.where(is_prediction, 0.0, np.asarray(asked.sample_weight))
        asked = asked._replace(sample_weight=weights)
        try:
            distribution = model.predict_then_learn(asked.X, asked.y, **asked.keywords())
        except (ValueError, TypeError):
            # Asked of the batch alone, the model counts the rows as they were given.
            _predict_then_learn(copy.deepcopy(model), batch, seen)
            raise
        seen += n
        still = slice(max(n_waiting + n - delay, 0), None)
        waiting = rows.select(still)
        columns, u, error = score_columns(distribution, asked.y, levels)
        yield ScoredBatch(
            batch.X,
            batch.y,
            [column[is_prediction] for column in columns],
            None if u is None else u[is_prediction],
            error[is_prediction],
            batch.offset,
        )
    if waiting is not None:
        model.predict_then_learn(waiting.X, waiting.y, **waiting.keywords())


def _estimate_rows(stream: Any, y: Any) -> float:
    """Return the number of rows: known of arrays, estimated of a table on disk, or 0."""
    if y is not None or (isinstance(stream, tuple) and len(stream) > 1):
        return len(stream[1] if y is None else y)
    share = getattr(stream, "fraction", 0.0)
    return float(stream.n_rows_read / share) if share > 0.0 else 0.0


def _predict_then_learn(model: Estimator, batch: Batch, seen: int) -> Any:
    """Ask the model, and say where in the stream the rows are that it refuses."""
    with note_refusals(locate_rows(seen, len(batch.y))):
        return model.predict_then_learn(batch.X, batch.y, **batch.keywords())


def check_levels(levels: Sequence[float]) -> tuple[float, ...]:
    """Levels of intervals as they were given, all between 0 and 1; or a message."""
    if isinstance(levels, (int, float)):
        raise TypeError(f"levels must be a sequence of numbers, as in levels=({levels},)")
    checked = tuple(dict.fromkeys(float(level) for level in levels))
    for level in checked:
        if not 0.0 < level < 1.0:
            raise ValueError(f"levels must lie between 0 and 1, as in 0.95; got {level:g}")
    return checked


def check_count(name: str, value: int, least: int) -> int:
    """The number, whole and at least the least; or a message."""
    try:
        count = index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, got {value!r}") from None
    if count < least:
        raise ValueError(f"{name} must be at least {least}, got {count}")
    return count


def check_learns(model: Estimator) -> None:
    """Raise ``TypeError`` for a model that cannot predict rows before it learns them."""
    if not hasattr(model, "predict_then_learn"):
        raise TypeError(
            f"{type(model).__name__} cannot be validated progressively: it has no "
            "predict_then_learn"
        )


def _check_model(model: Estimator) -> None:
    check_learns(model)
    if hasattr(model, "__sklearn_tags__") and is_classifier(model):
        raise TypeError(
            f"{type(model).__name__} predicts labels: use progressive_classification(model, X, y)"
        )
