"""Progressive validation: test on each row, then train on it (the prequential way)."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from operator import index
from typing import Any

import numpy as np

from posterity.evaluation._batches import Batch, bounded_batches, take
from posterity.evaluation._ledger import StretchLedger
from posterity.evaluation._scores import Column, n_columns, score_columns
from posterity.evaluation.result import ValidationResult, summarize


def progressive_validation(
    model: Any,
    stream: Any,
    y: Any = None,
    *,
    levels: Sequence[float] = (0.95,),
    delay: int = 0,
    batch_rows: int = 4096,
    sample_weight: Any = None,
    progress: Callable[[int], object] | None = None,
) -> ValidationResult:
    """Score predictions of a stream, each made before its row was learned.

    No row is ever predicted by a model that has seen it, so the scores are honest, and every row is
    scored, so none is wasted. The sum of the log scores is the log evidence of the model
    (Dawid 1984, "Statistical theory: the prequential approach", J. R. Stat. Soc. A 147, 278-292).
    The model learns in place: afterwards it knows the whole stream. Memory does not grow with the
    stream.

    Parameters
    ----------
    model : object
        Anything with ``predict_then_learn(X, y, sample_weight=None)`` that returns the predictive
        distribution of each row before it was learned. With `delay`, also ``predict_distribution``
        and ``partial_fit``.
    stream : (n, p) array or data frame, tuple, or iterable
        X (give `y` too); or a tuple ``(X, y)``; or any iterable of batches ``(X, y)`` or
        ``(X, y, sample_weight)``, of any length.
    y : (n,) array, optional
        Targets, when `stream` is X.
    levels : sequence of float
        Levels of the central intervals whose coverage and width are measured, between 0 and 1.
    delay : int
        Labels arrive so many rows later: row i is predicted by a model that has learned rows up to
        i - delay - 1. What is still waiting at the end is then learned. The order of the rows does
        not matter for what is learned, but each row costs a call of its own.
    batch_rows : int
        Larger batches are cut into pieces of so many rows. Changes memory and speed, not results.
    sample_weight : (n,) array, optional
        With arrays only. Weights say how much the model learns from a row; each row counts once in
        the scores, whatever its weight.
    progress : callable, optional
        Called with the number of rows done, after each batch.

    Returns
    -------
    ValidationResult
        MAE, RMSE, log score, CRPS, and coverage and width of the intervals, overall and along time.

    Raises
    ------
    ValueError
        Levels outside (0, 1), a negative delay, an empty stream, or X, y and the weights not of one
        length; the batch is named. What the model finds wrong in a batch passes through with a note
        that says which rows of the stream it was given; earlier rows stay learned.
    TypeError
        The stream is not iterable, or the model has no ``predict_then_learn``.

    Examples
    --------
    >>> import numpy as np
    >>> from posterity import BayesianLinearRegression
    >>> from posterity.evaluation import progressive_validation
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3))
    >>> y = X @ [1.0, -2.0, 0.5] + 3.0 + 0.1 * rng.normal(size=2000)
    >>> result = progressive_validation(BayesianLinearRegression(), X, y, levels=(0.5, 0.95))
    >>> result.n_rows
    2000
    >>> 0.93 < result.coverage[0.95] < 0.97
    True
    >>> bool(result.along.row_end[-1] == 2000)
    True
    """
    levels = _checked_levels(levels)
    delay, batch_rows = (
        _checked_count("delay", delay, 0),
        _checked_count("batch_rows", batch_rows, 1),
    )
    _check_model(model, delay)
    batches = bounded_batches(stream, y, sample_weight, batch_rows)
    scored = _delayed(model, batches, levels, delay) if delay else _at_once(model, batches, levels)
    ledger = StretchLedger(n_columns(levels))
    for columns in scored:
        ledger.add(columns)
        if progress is not None:
            progress(ledger.n_rows)
    if ledger.n_rows == 0:
        raise ValueError("the stream is empty: there is no row to predict")
    return summarize(ledger, levels)


def _at_once(
    model: Any, batches: Iterator[Batch], levels: Sequence[float]
) -> Iterator[list[Column]]:
    """Labels arrive with their rows: one pass predicts and learns a whole batch."""
    seen = 0
    for X, y, weight in batches:
        if len(y) == 0:
            continue
        try:
            distribution = model.predict_then_learn(X, y, sample_weight=weight)
        except (ValueError, TypeError) as error:
            error.add_note(f"in rows {seen} to {seen + len(y) - 1} of the stream (the first is 0)")
            raise
        seen += len(y)
        yield score_columns(distribution, y, levels)


def _delayed(
    model: Any, batches: Iterator[Batch], levels: Sequence[float], delay: int
) -> Iterator[list[Column]]:
    """Labels arrive `delay` rows later: every row needs a model of its own."""
    pending: deque[Batch] = deque()
    seen = 0
    for X, y, weight in batches:
        scores = []
        for i in range(len(y)):
            rows = slice(i, i + 1)
            row = (take(X, rows), y[rows], None if weight is None else weight[rows])
            try:
                if len(pending) == delay:
                    _learn(model, pending.popleft())
                scores.append(score_columns(_predict(model, row), row[1], levels))
            except (ValueError, TypeError) as error:
                error.add_note(f"at row {seen + i} of the stream (the first is 0)")
                raise
            pending.append(row)
        seen += len(y)
        if scores:
            yield [np.concatenate(column) for column in zip(*scores, strict=True)]
    for row in pending:
        _learn(model, row)


def _learn(model: Any, row: Batch) -> None:
    X, y, weight = row
    model.partial_fit(X, y, sample_weight=weight)


def _predict(model: Any, row: Batch) -> Any:
    """The distribution of one row by what the model knows now, which may be its prior alone."""
    from sklearn.exceptions import NotFittedError

    try:
        return model.predict_distribution(row[0])
    except NotFittedError:
        # A model that has learned nothing does not know its features yet: a copy is shown the row,
        # and answers from the prior before it learns.
        return copy.deepcopy(model).predict_then_learn(*row[:2])


def _checked_levels(levels: Sequence[float]) -> tuple[float, ...]:
    if isinstance(levels, (int, float)):
        raise TypeError(f"levels must be a sequence of numbers, as in levels=({levels},)")
    checked = tuple(dict.fromkeys(float(level) for level in levels))
    for level in checked:
        if not 0.0 < level < 1.0:
            raise ValueError(f"levels must lie between 0 and 1, as in 0.95; got {level:g}")
    return checked


def _checked_count(name: str, value: int, least: int) -> int:
    try:
        count = index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, got {value!r}") from None
    if count < least:
        raise ValueError(f"{name} must be at least {least}, got {count}")
    return count


def _check_model(model: Any, delay: int) -> None:
    needed = ["predict_then_learn"] + (["predict_distribution", "partial_fit"] if delay else [])
    missing = [name for name in needed if not hasattr(model, name)]
    if missing:
        raise TypeError(
            f"{type(model).__name__} cannot be validated progressively: it has no "
            + " and no ".join(missing)
        )


__all__ = ["progressive_validation"]
