"""The thread of the log does what it is given in order, whoever still waits for it."""

from __future__ import annotations

import asyncio
import threading

import pytest

from posterity.service.disk import Disk


def test_answers_and_errors_come_back_in_order() -> None:
    done: list[int] = []

    async def do() -> None:
        disk = Disk()
        answers = [disk.run(done.append, n) for n in range(20)]
        with pytest.raises(ZeroDivisionError):
            await disk.run(lambda: 1 / 0)
        await asyncio.gather(*answers)
        names = {await disk.run(lambda: threading.current_thread().name) for _ in range(3)}
        assert names == {"posterity-disk"}
        disk.shutdown()
        assert await disk.run(len, "begun again") == 11
        disk.shutdown()

    asyncio.run(do())
    assert done == [*range(20)]


def test_what_nobody_waits_for_any_more_is_done() -> None:
    begun, may_end, done = threading.Event(), threading.Event(), list[int]()

    def work() -> None:
        begun.set()
        may_end.wait()
        done.append(1)

    async def do(disk: Disk) -> None:
        waiting = asyncio.create_task(disk.run(work))
        await asyncio.to_thread(begun.wait)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        may_end.set()
        assert await disk.run(len, done) == 1

    disk = Disk()
    asyncio.run(do(disk))
    asyncio.run(disk.run(done.append, 2))  # by another loop, as the first has ended
    disk.shutdown()
    disk.shutdown()
    assert done == [1, 2]
