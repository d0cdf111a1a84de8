"""Work that is due by time alone: default rewards, erased features, rows to unlearn."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from posterity.service.errors import RefusedError
from posterity.service.experiments import Experiment
from posterity.service.messages import Activate, Unlearn
from posterity.service.store import AT_ONCE, Group, LogEntries, replace_contexts
from posterity.service.work import Work

# Seconds between two looks at the clock, and between two erasures: each brings a snapshot.
LOOK_EVERY, ERASE_EVERY = 0.5, 60.0


class Upkeep:
    """Work that is due by the clock of an engine, done by the writer like a request.

    Parameters
    ----------
    engine : Engine
    """

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._heard: dict[str, float] = {}
        self._erase_at = time.monotonic() + ERASE_EVERY

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            erases = time.monotonic() >= self._erase_at
            for name, served in list(self._engine.models.items()):
                try:
                    await self._look(name, served, erases)
                except (SQLAlchemyError, OSError, RefusedError):
                    break  # the database is away: there is a next time
            if erases:
                self._erase_at = time.monotonic() + ERASE_EVERY

    async def _look(self, name: str, served: Any, erases: bool) -> None:
        if not self._engine.ready:
            return
        if not isinstance(served, Experiment):
            if served.settings.forget_after is not None:
                await self.forget(name)
            return
        if served.settings.horizon is not None:
            await self.expire(name)
        if erases and served.settings.erase_after:
            await self.erase(name)

    async def expire(self, name: str) -> int:
        """Learn the default of an experiment's decisions whose horizon has passed; how many."""
        now, engine = self._engine.clock(), self._engine
        after = self._heard.get(name, 0.0)

        async def learn_default(id: str) -> Any:
            return await engine.record_event(name, "default", Activate(decision_id=id))

        count = await self._each(lambda: engine.store.find_expired(name, now, after), learn_default)
        self._heard[name] = now - 60.0
        return count

    async def forget(self, name: str) -> int:
        """Unlearn a predictor's rows whose time has passed; how many."""
        now, engine = self._engine.clock(), self._engine

        async def unlearn(id: str) -> Any:
            return await engine.record_row(name, "unlearn", Unlearn(id=id))

        return await self._each(lambda: engine.store.find_forgettable(name, now), unlearn)

    async def _each(
        self, due: Callable[[], Sequence[str]], do: Callable[[str], Awaitable[Any]]
    ) -> int:
        """Do all that is due, a group at a time; refused items wait for the next time."""
        done = 0
        while True:
            ids = await self._engine.read(due)
            answers = await asyncio.gather(*map(do, ids), return_exceptions=True)
            count = sum(not isinstance(one, BaseException) for one in answers)
            done += count
            if len(ids) < AT_ONCE or not count:
                return done

    async def erase(self, name: str) -> int:
        """Erase the features of decisions whose time has passed; of how many decisions.

        What was learned of them stays, in a snapshot of the same transaction: the log alone would
        no longer make the model.
        """
        now, engine, done = self._engine.clock(), self._engine, 0

        def replace(found: LogEntries, group: Group) -> int:
            experiment = engine.experiment(name)
            there = [one for one in found.decisions.values() if one["context"] is not None]
            if there:
                records = [experiment.erase_features(one, now) for one in there]
                group.updates.append((replace_contexts(), records))
                engine.request_snapshot(name)
            return len(there)

        while True:
            due = await engine.read(engine.store.find_erasable, name, now)
            keys = tuple((name, id) for id in due)
            done += await engine.submit(Work(replace, decisions=keys)) if keys else 0
            if len(keys) < AT_ONCE:
                return done
