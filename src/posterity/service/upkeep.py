"""Work that is due by time alone: default rewards, erased features, rows to unlearn."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from posterity.service.errors import RefusedError
from posterity.service.experiments import Experiment
from posterity.service.groups import AWAY_ERRORS
from posterity.service.messages import Activate, Unlearn
from posterity.service.store import AT_ONCE, Key, LogEntries
from posterity.service.work import Work
from posterity.service.writing import Group, drop_deadline, keep_row, replace_contexts

# Seconds between two looks at the clock, and between two erasures: each brings a snapshot.
LOOK_EVERY, ERASE_EVERY = 0.5, 60.0
# What fails is tried so many times, and not before so many seconds after the first; each further
# pause is twice as long.
MOST_TRIES, FIRST_PAUSE = 5, 1.0
# Who set it aside, in the audit.
NAME = "upkeep"
logger = logging.getLogger("posterity.service")


class Failures:
    """What has failed, how often, and when it may be tried again."""

    def __init__(self) -> None:
        self._known: dict[Any, tuple[int, float]] = {}

    def may_try(self, key: Any) -> bool:
        """Whether it has not failed, or long enough ago."""
        return time.monotonic() >= self._known.get(key, (0, 0.0))[1]

    def note(self, key: Any) -> int:
        """Note a failure; return how many there were."""
        count = self._known.get(key, (0, 0.0))[0] + 1
        self._known[key] = count, time.monotonic() + FIRST_PAUSE * 2.0 ** (count - 1)
        return count

    def clear(self, key: Any) -> None:
        """Forget them."""
        self._known.pop(key, None)


class Upkeep:
    """Work that is due by the clock of an engine, done by the writer like a request.

    What fails is tried again some times, after longer and longer pauses, and then set aside: it
    is no longer due, and the audit says so.

    Parameters
    ----------
    engine : Engine
    """

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._heard: dict[str, float] = {}
        self._failures = Failures()
        self._erase_at = time.monotonic() + ERASE_EVERY

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            erases = time.monotonic() >= self._erase_at
            for name, served in list(self._engine.models.items()):
                try:
                    await self._look(name, served, erases)
                except AWAY_ERRORS:
                    break  # there is a next time
                except Exception as error:  # of this model: the others are looked after
                    if self._engine.ready:
                        logger.error("the upkeep of %r failed: %s", name, error)
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

        count = await self._each(
            lambda: engine.store.find_expired(name, now, after),
            lambda id: engine.record_event(name, "default", Activate(decision_id=id)),
            name,
            drop_deadline,
        )
        self._heard[name] = now - 60.0
        return count

    async def forget(self, name: str) -> int:
        """Unlearn a predictor's rows whose time has passed; how many."""
        now, engine = self._engine.clock(), self._engine
        return await self._each(
            lambda: engine.store.find_forgettable(name, now),
            lambda id: engine.record_row(name, "unlearn", Unlearn(id=id)),
            name,
            keep_row,
        )

    async def _each(
        self,
        find_due: Callable[[], Sequence[str]],
        do: Callable[[str], Awaitable[Any]],
        name: str,
        set_aside: Callable[[], Any],
    ) -> int:
        """Do all that is due, a group at a time; ``set_aside`` makes one no longer due."""
        done = 0
        while True:
            ids = await self._engine.read(find_due)
            tried = [id for id in ids if self._failures.may_try((name, id))]
            answers = await asyncio.gather(*map(do, tried), return_exceptions=True)
            count = 0
            for id, answer in zip(tried, answers, strict=True):
                if not isinstance(answer, BaseException):
                    self._failures.clear((name, id))
                    count += 1
                elif not isinstance(answer, RefusedError) or answer.status == 503:
                    continue  # nothing could be done
                elif self._failures.note((name, id)) >= MOST_TRIES:
                    await self._set_aside(name, id, set_aside(), answer.message)
            done += count
            if len(ids) < AT_ONCE or not count:
                return done

    async def _set_aside(self, name: str, id: str, statement: Any, reason: str) -> None:
        def do(_: LogEntries, group: Group) -> None:
            group.updates.append((statement, [{"of": name, "one": id}]))
            what = f"{name}: {id} is no longer due, as it failed {MOST_TRIES} times"
            self._engine.add_audit(group, NAME, what, None, reason)

        await self._engine.submit(Work(do))
        self._failures.clear((name, id))

    async def erase(self, name: str) -> int:
        """Erase the features of decisions whose time has passed; of how many decisions.

        What was learned of them stays, in a snapshot of the same transaction: the log alone would
        no longer make the model.
        """
        now, engine, done = self._engine.clock(), self._engine, 0

        def replace(keys: Sequence[Key], found: LogEntries, group: Group) -> int:
            experiment = engine.experiment(name)
            # Of those that are due alone: the group may name others.
            named = [found.decisions[key] for key in keys if key in found.decisions]
            there = [one for one in named if one["context"] is not None]
            if there:
                records = [experiment.erase_features(one, now) for one in there]
                group.updates.append((replace_contexts(), records))
                group.snapshots.add(name)
            return len(there)

        while True:
            due = await engine.read(engine.store.find_erasable, name, now)
            keys = tuple((name, id) for id in due)
            work = Work(partial(replace, keys), name, decisions=keys)
            done += await engine.submit(work) if keys else 0
            if len(keys) < AT_ONCE:
                return done
