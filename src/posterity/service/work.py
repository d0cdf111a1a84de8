"""Requests that wait: those that write, and those that only have a row predicted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posterity.service.errors import RefusedError
from posterity.service.experiments import Experiment
from posterity.service.messages import Predicted
from posterity.service.predictors import Predictor
from posterity.service.store import Group, Key, LogEntries

# What a model raises, before it changes anything, where numbers are too large or too small.
NUMERICAL = (ArithmeticError, MemoryError)


@dataclass(slots=True)
class Work:
    """A request that writes: the parts of the log that it needs, and the function to run."""

    do: Callable[[LogEntries, Group], Any]
    decisions: tuple[Key, ...] = ()
    rows: tuple[Key, ...] = ()
    # Decisions that are asked for: those of a group are made together.
    decides: tuple[Experiment, list[tuple[Any, ...]]] | None = None
    answer: asyncio.Future[Any] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class Predictions:
    """Rows that are asked for while the loop is busy are predicted in one call of the model."""

    def __init__(self) -> None:
        self._waiting: dict[Predictor, list[tuple[NDArray[np.float64], asyncio.Future[Any]]]] = {}

    async def of(self, predictor: Predictor, x: NDArray[np.float64]) -> Predicted:
        """Predict a row (m,), together with those that other requests send."""
        loop = asyncio.get_running_loop()
        if predictor not in self._waiting:
            self._waiting[predictor] = []
            loop.call_soon(self._predict, predictor)
        answer: asyncio.Future[Predicted] = loop.create_future()
        self._waiting[predictor].append((x, answer))
        return await answer

    def _predict(self, predictor: Predictor) -> None:
        asked = self._waiting.pop(predictor)
        try:
            predictions: list[Any] = list(predictor.predict(np.stack([x for x, _ in asked])))
        except NUMERICAL as error:
            predictions = [explain_numerical_error(error)] * len(asked)
        except Exception as error:
            predictions = [error] * len(asked)
        for (_, answer), one in zip(asked, predictions, strict=True):
            if answer.done():  # who asked is gone
                continue
            if isinstance(one, Exception):
                answer.set_exception(one)
            else:
                answer.set_result(one)


def compute_outcome(work: Work, found: LogEntries, group: Group) -> Any:
    """Return the answer to a request, which may be a refusal."""
    try:
        return work.do(found, group)
    except RefusedError as refused:
        return refused
    except NUMERICAL as error:
        return explain_numerical_error(error)


def explain_numerical_error(error: BaseException) -> RefusedError:
    """Numbers that a model can't work with are a mistake of the one request that sent them."""
    reason = "there is not enough memory" if isinstance(error, MemoryError) else str(error)
    return RefusedError(
        422, f"the model can't work with these numbers: {reason}; check the units of the features"
    )


def answer_request(work: Work, outcome: Any) -> None:
    """Answer a request, once."""
    if work.answer.done():
        return
    if isinstance(outcome, RefusedError):
        work.answer.set_exception(outcome)
    else:
        work.answer.set_result(outcome)


def summarize_error(error: Exception) -> str:
    """The first line of what an error says."""
    return str(getattr(error, "orig", error)).splitlines()[0] if str(error) else "an error"
