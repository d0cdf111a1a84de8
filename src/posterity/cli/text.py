"""Text for a terminal: neither its control characters nor rich's markup is obeyed."""

from __future__ import annotations

import click

from posterity.safety import escaped


def escape(text: str) -> str:
    """For rich's console."""
    from rich.markup import escape as without_markup

    return without_markup(escaped(text))


def say_note(text: str) -> None:
    """Say something on standard error."""
    click.echo(f"note: {escaped(text)}", err=True)


__all__ = ["escape", "say_note"]
