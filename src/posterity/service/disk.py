"""The one thread that reads and writes the log for the loop that answers requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any


class Disk:
    """A thread that does what it is given, one after another.

    An executor does the same with a future of its own for each call, which costs as much as the
    commit of a decision.
    """

    def __init__(self) -> None:
        self._given: SimpleQueue[Any] = SimpleQueue()
        self._thread: Thread | None = None

    async def run(self, do: Callable[..., Any], *given: Any) -> Any:
        """Wait for what a function returns or raises there."""
        if self._thread is None:
            self._thread = Thread(target=self._work, name="posterity-disk", daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        answer = loop.create_future()
        self._given.put((do, given, loop, answer))
        return await answer

    def shutdown(self) -> None:
        """Wait until all that was given is done, and end the thread."""
        if self._thread is not None:
            self._given.put(None)
            self._thread.join()
            self._thread = None

    def _work(self) -> None:
        while (asked := self._given.get()) is not None:
            do, given, loop, answer = asked
            try:
                settle, outcome = answer.set_result, do(*given)
            except Exception as error:
                settle, outcome = answer.set_exception, error
            with suppress(RuntimeError):  # the loop has ended, and nobody waits
                loop.call_soon_threadsafe(_settle, answer, settle, outcome)
            del asked, do, given, answer, settle, outcome  # nothing is held while it waits


def _settle(answer: asyncio.Future[Any], settle: Callable[[Any], None], outcome: Any) -> None:
    if not answer.done():  # who waited was not cancelled meanwhile
        settle(outcome)
