"""Read the bodies of requests: none is too large, and none is waited for without end."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from starlette.types import Receive

from posterity.service.errors import RefusedError

# Seconds that a body may take to come, and between two looks for those that take longer.
LONGEST, LOOK_EVERY = 30.0, 1.0


class Bodies:
    """Bodies that are being read.

    One task looks after all of them: a timer for each request would cost a tenth of the request.
    """

    def __init__(self) -> None:
        self._since: dict[asyncio.Task[Any], float] = {}
        self._late: set[asyncio.Task[Any]] = set()

    async def watch(self) -> None:
        """End the requests whose bodies take too long, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            before = time.monotonic() - LONGEST
            for task, since in self._since.items():
                if since < before and task not in self._late:
                    self._late.add(task)
                    task.cancel()

    async def read(self, receive: Receive, largest: int) -> bytes:
        """The whole body.

        Raises
        ------
        RefusedError
            It is larger, took too long, or ended with the connection.
        """
        task = asyncio.current_task()
        assert task is not None
        self._since[task] = time.monotonic()
        try:
            return await _join_parts(receive, largest)
        except asyncio.CancelledError:
            if task not in self._late:
                raise
            task.uncancel()
            raise RefusedError(
                408, f"the body took longer than {LONGEST:g} seconds: send it again"
            ) from None
        finally:
            del self._since[task]
            self._late.discard(task)


async def _join_parts(receive: Receive, largest: int) -> bytes:
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RefusedError(
                400, "the connection ended before the whole body had come: send it again"
            )
        part = message.get("body", b"")
        size += len(part)
        if size > largest:
            raise RefusedError(
                413, f"the body is larger than {largest} bytes: send fewer rows at a time"
            )
        parts.append(part)
        more = message.get("more_body", False)
    return b"".join(parts)
