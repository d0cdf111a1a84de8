"""The error of a damaged file, which says what to do about it."""

from __future__ import annotations

from posterity.safety import escaped


class TableError(ValueError):
    """A table cannot be read as a stream of numbers; the message says where and what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(escaped(message))
