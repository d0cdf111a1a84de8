"""Ways to forget as they are written, for a model or on the command line: stabilized:0.99."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from posterity.forgetting.averages import Adaptive, Changepoint
from posterity.forgetting.fading import (
    Directional,
    Exponential,
    RandomWalk,
    Smoothing,
    Stabilized,
)
from posterity.forgetting.window import Window


@dataclass(frozen=True)
class _Kind:
    """A strategy, the field its number goes to, and an example of one."""

    strategy: type
    field: str | None = None
    example: str = ""
    optional: bool = False

    @property
    def number(self) -> str:
        """The meaning of the number, in words."""
        return {"size": "a number of rows"}.get(self.field or "", f"a {self.field}")


KINDS = {
    "adaptive": _Kind(Adaptive),
    "exponential": _Kind(Exponential, "discount", "0.99"),
    "stabilized": _Kind(Stabilized, "discount", "0.99"),
    "directional": _Kind(Directional, "discount", "0.99"),
    "smoothing": _Kind(Smoothing, "gamma", "0.8"),
    "random-walk": _Kind(RandomWalk, "variance", "0.01"),
    "window": _Kind(Window, "size", "500"),
    "changepoint": _Kind(Changepoint, "hazard", "0.01", optional=True),
}


@cache
def parse(text: str) -> Any:
    """Read ``name`` or ``name:number``; raises ``ValueError`` that says what could be written.

    Examples
    --------
    >>> parse("stabilized:0.95")
    Stabilized(discount=0.95, half_life=None)
    >>> parse("window:500").size
    500
    >>> parse("none") is None
    True
    """
    name, colon, number = (part.strip() for part in text.partition(":"))
    name = name.lower().replace("_", "-")
    if name == "none" and not colon:
        return None
    if name not in KINDS:
        listed = ", ".join(["none", *(_format_setting(listed) for listed in KINDS)])
        raise ValueError(f"{text!r} is not a way to forget: give one of {listed}")
    kind = KINDS[name]
    if kind.field is None:
        if colon:
            raise ValueError(f"{text!r}: {name} takes no number; write {name} alone")
        return kind.strategy()
    if not number:
        if kind.optional and not colon:
            return kind.strategy()
        raise ValueError(f"{text!r}: {name} needs {kind.number}, as in {name}:{kind.example}")
    return kind.strategy(**{kind.field: _read(text, number, name, kind)})


def read_forgetting(forgetting: Any) -> Any:
    """A strategy, or None, as it is; one in words as a strategy.

    Examples
    --------
    >>> read_forgetting("window:50"), read_forgetting(None)
    (Window(size=50, duration=None), None)
    """
    if not isinstance(forgetting, str):
        return forgetting
    try:
        return parse(forgetting)
    except ValueError as error:
        raise ValueError(f"forgetting is {forgetting!r}: {error}") from error


def _read(text: str, number: str, name: str, kind: _Kind) -> float:
    try:
        return int(number) if kind.field == "size" else float(number)
    except ValueError:
        raise ValueError(
            f"{text!r}: {number!r} is not {kind.number}; write it as in {name}:{kind.example}"
        ) from None


def _format_setting(name: str) -> str:
    kind = KINDS[name]
    if kind.optional:
        return f"{name}[:{kind.example}]"
    return f"{name}:{kind.example}" if kind.field else name
