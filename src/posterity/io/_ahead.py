"""Read the next batch while the last one is being learned."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator
from typing import TypeVar

Item = TypeVar("Item")


class _End:
    """The end of the reader's items, with the error that stopped it, if any."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


def read_ahead(items: Generator[Item, None, None], depth: int = 2) -> Generator[Item, None, None]:
    """Yield the same items, drawn in a thread of their own at most `depth` ahead.

    Worth it where drawing releases the interpreter lock, as Arrow's readers do. Closing the
    generator early stops the thread.
    """
    slots: queue.Queue[Item | _End] = queue.Queue(maxsize=depth)
    stop = threading.Event()

    def offer(item: Item | _End) -> bool:
        while not stop.is_set():
            try:
                slots.put(item, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    def draw() -> None:
        end = _End(None)
        try:
            for item in items:
                if not offer(item):
                    return
        except BaseException as error:  # handed to the consumer, whatever it is
            end = _End(error)
        finally:
            items.close()
        offer(end)

    reader = threading.Thread(target=draw, name="posterity-read-ahead", daemon=True)
    reader.start()
    try:
        while True:
            item = slots.get()
            if isinstance(item, _End):
                if item.error is not None:
                    raise item.error
                return
            yield item
    finally:
        stop.set()
        reader.join()
