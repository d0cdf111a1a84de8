"""Batches of rows, all of which are learned or none, while other requests are answered."""

from __future__ import annotations

from collections.abc import Generator
from copy import deepcopy

from posterity.service.engine import Engine
from posterity.service.errors import naming_place
from posterity.service.messages import Learned, Row
from posterity.service.store import LogEntries
from posterity.service.work import Work
from posterity.service.writing import Group


async def learn(engine: Engine, name: str, asked: list[Row]) -> list[Learned]:
    """Have a predictor learn rows: a copy of it learns one after another, and takes its place."""
    engine.predictor(name)

    def do(found: LogEntries, group: Group) -> Generator[None, None, list[Learned]]:
        predictor, outcomes = deepcopy(engine.predictor(name)), []
        for place, one in enumerate(asked):
            yield
            with naming_place("rows", place, len(asked)):
                outcomes.append(predictor.learn(one, found, group, 0, engine.clock()))
        for _, entry in group.inserts:  # numbers are in the order of commits
            predictor.learned_through = entry["seq"] = engine.next_number()
        engine.models[name] = predictor
        return outcomes

    keys = tuple((name, one.id) for one in asked)
    answer: list[Learned] = await engine.submit(Work(do, name, rows=keys, long=True))
    return answer
