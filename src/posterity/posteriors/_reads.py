"""What an object reads from its parts, without a method for each."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, NoReturn


def read_along(path: str) -> Any:
    """A property, or a method, that is found along ``path``.

    Examples
    --------
    >>> from fractions import Fraction
    >>> class Held:
    ...     part = Fraction(3, 4)
    ...     top = read_along("part.numerator")
    >>> Held().top
    3
    """
    return property(attrgetter(path))


def refuse(message: str) -> Any:
    """An attribute that this kind of object lacks, which says so by an ``AttributeError``."""

    def read(_: object) -> NoReturn:
        raise AttributeError(message)

    return property(read)
