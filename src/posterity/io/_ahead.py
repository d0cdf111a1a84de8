"""Read the next batch while the last one is being learned."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
_END = object()


def read_ahead(items: Generator[Item, None, None], depth: int = 2) -> Generator[Item, None, None]:
    """Yield the same items, drawn in a thread of their own at most `depth` ahead.

    Worth it where drawing releases the interpreter lock, as Arrow's readers do. Nothing is drawn
    that was not asked for, so the thread ends with the generator, and at the exit of a process
    that leaves it open.
    """
    reader = ThreadPoolExecutor(1, "posterity-read-ahead")
    try:
        waiting = deque(reader.submit(next, items, _END) for _ in range(depth))
        while (item := waiting.popleft().result()) is not _END:
            waiting.append(reader.submit(next, items, _END))
            yield item  # type: ignore[misc]
    finally:
        reader.shutdown(cancel_futures=True)
        items.close()
