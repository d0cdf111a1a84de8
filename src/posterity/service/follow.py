"""A server that only decides follows what the server that learns has written."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from posterity.service.groups import AWAY_ERRORS
from posterity.service.store import AT_ONCE
from posterity.service.writing import Record

# Seconds between two looks at the log.
LOOK_EVERY = 0.1
logger = logging.getLogger("posterity.service")


class Follower:
    """Learns the events that another server has written, in the order of the log.

    So its models are those of the other server, byte by byte, a tenth of a second later.

    Parameters
    ----------
    engine : Engine
    """

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._seen: tuple[int, ...] = ()
        self._following = asyncio.Lock()  # nothing is learned twice

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            try:
                if self._engine.ready:
                    await self.catch_up()
            except AWAY_ERRORS:
                continue  # there is a next time
            except Exception as error:
                logger.error("the log can't be followed", exc_info=error)

    async def catch_up(self) -> None:
        """Learn what is new."""
        engine = self._engine
        async with self._following:
            newest = await engine.read(engine.store.read_newest)
            if newest == self._seen:
                return
            for name, version in (await engine.read(engine.store.read_versions)).items():
                await self._follow(name, version)
            self._seen = newest
        for changed in engine.changed:
            changed.set()

    async def _follow(self, name: str, version: int) -> None:
        engine = self._engine
        served = engine.models.get(name)
        if served is not None and served.version == version:
            try:
                return await self._learn(served)
            except AWAY_ERRORS:
                raise
            except Exception as error:  # what was learned may be erased: a snapshot has it
                logger.warning("%r is read anew: %s", name, error)
        kept = await engine.read(engine.store.read_settings, name, version)
        await engine.read(engine.restore_served, kept)

    async def _learn(self, served: Any) -> None:
        """Learn page by page, in the thread that decides: no decision sees half of a row."""

        def page() -> list[Record]:
            return list(served.read_log(self._engine.store, served.learned_through, None, AT_ONCE))

        while events := await self._engine.read(page):
            served.replay(events, self._engine.store)
