"""How the text of a table is written, as the options of every verb say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from posterity.aliases import Document
from posterity.io import TextFormat


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Options of the text of a table, one field each; None or nothing where it was not given."""

    date_format: tuple[str, ...] = ()
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    separator: str | None = None
    na: tuple[str, ...] = ()
    skip_rows: int | None = None
    drop_total: bool | None = None

    @property
    def text(self) -> TextFormat:
        """The format, as given."""
        return self.change({})

    def change(self, known: Mapping[str, Any]) -> TextFormat:
        """The format as known, where nothing else was given."""
        own = {field.name: getattr(self, field.name) for field in fields(Reading)}
        return TextFormat(**{**known, **{k: v for k, v in own.items() if v not in (None, ())}})


def describe_format(text: TextFormat) -> Document:
    """What is not as usual in a format, for the notes of a model file."""
    usual = TextFormat()
    found = {field.name: getattr(text, field.name) for field in fields(TextFormat)}
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in found.items()
        if value != getattr(usual, name)
    }
