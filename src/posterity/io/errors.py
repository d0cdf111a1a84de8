"""What is wrong with a file, and what to do about it."""

from __future__ import annotations


class TableError(ValueError):
    """A file that cannot be read as a stream of numbers; the message names the place and a cure."""
