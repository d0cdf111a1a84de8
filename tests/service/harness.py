"""A service in this process, spoken to as over HTTP, and its log in a folder."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import httpx

from posterity.service.app import create_app
from posterity.service.engine import Engine
from posterity.service.store import Store

ARMS = {"arms": ["red", "blue"], "features": ["age"]}


class Service:
    """A service on a folder, which can be stopped, or cut off, and started again."""

    def __init__(
        self,
        folder: Path,
        clock: Callable[[], float] | None = None,
        database: str | None = None,
        learns: bool = True,
    ) -> None:
        self.learns = learns
        self.folder, self.token, self.clock = folder, "", clock
        self.database = database or f"sqlite:///{folder / 'posterity.db'}"

    async def start(self) -> None:
        store = Store(self.database)
        self.engine = Engine(store, self.clock or time.time, learns=self.learns)
        self.app = create_app(self.engine, announce=self._keep)
        self._life = self.app.live()
        await self._life.__aenter__()
        self.client = httpx.AsyncClient(
            transport=httpx.ASGITransport(self.app), base_url="http://posterity"
        )

    def _keep(self, token: str) -> None:
        self.token = token

    async def stop(self) -> None:
        await self.client.aclose()
        await self._life.__aexit__(None, None, None)

    async def crash(self) -> None:
        """What a kill leaves: the log, and nothing that only the process knew."""
        for task in self.engine._tasks:
            task.cancel()
        await asyncio.gather(*self.engine._tasks, return_exceptions=True)
        self.engine.end_threads()
        self.engine.store.close()
        await self.client.aclose()

    async def pause(self) -> None:
        """Let a service that recovers do so."""
        await asyncio.sleep(0.1)

    async def ask(self, method: str, path: str, body: Any = None, **how: Any) -> httpx.Response:
        headers = how.pop("headers", {"authorization": f"Bearer {self.token}"})
        return await self.client.request(method, path, json=body, headers=headers, **how)

    async def post(self, path: str, body: Any) -> Any:
        answer = await self.ask("POST", path, body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def put(self, path: str, body: Any) -> Any:
        answer = await self.ask("PUT", path, body)
        assert answer.status_code == 200, answer.text
        return answer.json()


def with_service(
    folder: Path,
    do: Callable[[Service], Coroutine[Any, Any, Any]],
    clock: Callable[[], float] | None = None,
    database: str | None = None,
) -> Any:
    """Start, do, stop."""

    async def run() -> Any:
        service = Service(folder, clock, database)
        await service.start()
        try:
            return await do(service)
        finally:
            await service.stop()

    return asyncio.run(run())
