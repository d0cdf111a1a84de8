"""Requests that wait: those that write, and those that only have a row predicted."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from posterity.service.errors import RefusedError, naming_place
from posterity.service.experiments import Experiment
from posterity.service.messages import Predicted
from posterity.service.predictors import Predictor
from posterity.service.schema import decision
from posterity.service.store import Key, LogEntries
from posterity.service.writing import Group, Record

# Requests of a group, at most.
MOST_AT_ONCE = 1_000
# What a model raises where numbers are too large or too small.
NUMERICAL = (ArithmeticError, MemoryError)
logger = logging.getLogger("posterity.service")


@dataclass(slots=True)
class Questions:
    """What an experiment is asked to decide, and the decisions once they are made."""

    experiment: Experiment
    asked: list[tuple[Any, ...]]
    # For each one a decision, why there is none, or None where the log has it already.
    made: list[Record | RefusedError | None] = field(default_factory=list)

    def take(self, place: int, entries: LogEntries, group: Group) -> Record:
        """The decision that answers a question: that of its id, or the one made, now added."""
        given, made = self.asked[place], self.made[place]
        key = (self.experiment.name, given[1])
        if key in entries.decisions:
            known = entries.decisions[key]
            if given[0].id is not None:  # it may have been made before, for another request
                with naming_place("decisions", place, len(self.asked)):
                    _refuse_another(self.experiment, given, known)
            return known
        if isinstance(made, RefusedError):
            raise made
        assert made is not None
        entries.decisions[key] = made
        group.inserts.append((decision, made))
        return made


def _refuse_another(experiment: Experiment, given: tuple[Any, ...], made: Record) -> None:
    """Refuse a request whose id is that of a decision which answers another question."""
    asked, _, context, allowed = given
    gone = made["context"] is None
    same = gone or experiment.matches_context(made, context)
    if gone or not (same and experiment.matches_arms(made, asked, allowed)):
        other = "with other arms allowed" if same else "in another context"
        message = f"was made {other}: give each decision an id of its own"
        if gone:
            message = "was deleted: send another id"
        raise RefusedError(410 if gone else 409, f"decision {made['id']!r} {message}", "id")


@dataclass(slots=True)
class Work:
    """A request that writes: the parts of the log that it needs, and the function to run."""

    do: Callable[[LogEntries, Group], Any]
    model: str = ""  # the one that it may change
    decisions: tuple[Key, ...] = ()
    rows: tuple[Key, ...] = ()
    # It takes long, and changes nothing before its end: ``do`` is a generator, and others are done
    # between its steps. Once begun, it has its own entries of the log, and what it adds to them.
    long: bool = False
    begun: tuple[Iterator[None], LogEntries, Group] | None = None
    # Those of a group are decided together, before anything is done.
    questions: Questions | None = None
    since: float = field(default_factory=time.perf_counter)
    answer: asyncio.Future[Any] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


@dataclass(slots=True)
class Attempt:
    """A request of a group, and what it adds if it succeeds."""

    work: Work
    outcome: Any = None
    part: Group = field(default_factory=Group)
    added: LogEntries | None = None  # None unless it was done
    failed: bool = False  # it is not tried again
    waits: bool = False  # for the next group

    def clear(self) -> None:
        """Forget what it added, so that it can be done again."""
        self.outcome, self.part, self.added, self.waits = None, Group(), None, False
        self.work.begun = None

    def fail(self, error: Exception) -> None:
        """Have it add nothing, and be told why."""
        self.clear()
        self.outcome, self.failed = explain_failure(error), True


class Waiting:
    """Requests that wait: decisions, batches that have begun, and all others as they came."""

    def __init__(self) -> None:
        self._decisions: deque[Work] = deque()
        self._begun: list[Work] = []
        self._others: deque[Work] = deque()

    def __len__(self) -> int:
        return len(self._decisions) + len(self._begun) + len(self._others)

    def put(self, work: Work) -> None:
        """Have it wait."""
        (self._others if work.questions is None else self._decisions).append(work)

    def put_back(self, works: list[Work]) -> None:
        """Have those that were taken, in this order, wait before all others."""
        left = [one for one in works if one.begun is None]
        self._begun = [one for one in works if one.begun is not None]
        self._others.extendleft(reversed(left))

    def take(self, most: int = MOST_AT_ONCE) -> list[Work]:
        """The decisions, what has begun, and so many others, but for those of a begun model.

        Batches and what is short are counted apart, as neither waits for the other. While a batch
        has begun no other one is taken, and what comes after one for its model waits with it.
        """
        decisions, others = self._decisions, self._others
        taken = [decisions.popleft() for _ in range(min(len(decisions), MOST_AT_ONCE))]
        held, most = {one.model for one in self._begun}, min(most, MOST_AT_ONCE)
        room = [most, 0 if self._begun else most]
        taken, self._begun, self._others = taken + self._begun, [], deque()
        for one in others:
            if room[one.long] and one.model not in held:
                room[one.long] -= 1
                taken.append(one)
            else:
                held.add(one.model)
                self._others.append(one)
        return taken


class Predictions:
    """Rows that are asked for while the loop is busy are predicted in one call of the model."""

    def __init__(self) -> None:
        self._waiting: dict[Predictor, list[tuple[bytes, asyncio.Future[Any]]]] = {}

    async def of(self, predictor: Predictor, x: bytes) -> Predicted:
        """Predict a row, together with those that other requests send."""
        loop = asyncio.get_running_loop()
        if predictor not in self._waiting:
            self._waiting[predictor] = []
            loop.call_soon(self._predict, predictor)
        answer: asyncio.Future[Predicted] = loop.create_future()
        self._waiting[predictor].append((x, answer))
        return await answer

    def _predict(self, predictor: Predictor) -> None:
        asked = self._waiting.pop(predictor)
        predictions = do_together(predictor.predict, [x for x, _ in asked])
        for (_, answer), one in zip(asked, predictions, strict=True):
            answer_request(answer, one)


def do_together(do: Callable[[list[Any]], list[Any]], asked: list[Any]) -> list[Any]:
    """Answers to all that is asked, found in one call; if it fails, each is found by itself.

    So the one that can't be answered has its own refusal, and the others have their answers.
    """
    try:
        return do(asked)
    except Exception as error:
        if len(asked) == 1:
            return [explain_failure(error)]
    return [do_together(do, [one])[0] for one in asked]


def explain_failure(error: Exception) -> RefusedError:
    """What the one request is told that failed; what nobody expected is logged.

    Numbers that a model can't work with are a mistake of the request that sent them.
    """
    if isinstance(error, RefusedError):
        return error
    logger.error("a request failed: %s", summarize_error(error), exc_info=error)
    if not isinstance(error, NUMERICAL):
        message = "an error of the service's own, which its log describes; nothing was done"
        return RefusedError(500, message)
    reason = "there is not enough memory" if isinstance(error, MemoryError) else str(error)
    return RefusedError(
        422, f"the model can't work with these numbers: {reason}; check the units of the features"
    )


def answer_request(answer: asyncio.Future[Any], outcome: Any) -> None:
    """Answer a request, once, unless who asked is gone."""
    if answer.done():
        return
    if isinstance(outcome, RefusedError):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)


def summarize_error(error: Exception) -> str:
    """The first line of what an error says."""
    return str(getattr(error, "orig", error)).splitlines()[0] if str(error) else "an error"
