"""What is wrong with a file, and what to do about it."""

from __future__ import annotations

from posterity.safety import escaped


class TableError(ValueError):
    """A file that cannot be read as a stream of numbers; the message names the place and a cure."""

    def __init__(self, message: str) -> None:
        super().__init__(escaped(message))
