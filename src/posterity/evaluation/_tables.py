"""Small tables, for notebooks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from posterity.aliases import Document


def html_table(
    caption: str, header: Sequence[str], rows: Iterable[Sequence[str]], notes: Iterable[str] = ()
) -> str:
    """An HTML table whose first column names its rows; whatever the text, it stays text.

    Examples
    --------
    >>> "&lt;b&gt;" in html_table("<b>", ("name", "value"), [("a", "1")])
    True
    """
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in header)
    body = "".join(
        f'<tr><th scope="row" style="text-align:left">{escape(first)}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in others)
        + "</tr>"
        for first, *others in rows
    )
    below = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return (
        f"<div><table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>{below}</div>"
    )


def count_rows(n: int) -> str:
    """A number of rows, in words."""
    return "1 row" if n == 1 else f"{n:,} rows"


def to_plain(value: object) -> Any:
    """What JSON holds: lists for arrays, None for numbers that are not finite, text as keys.

    Examples
    --------
    >>> to_plain({0.95: np.array([0.5, np.inf]), "rows": 3})
    {'0.95': [0.5, None], 'rows': 3}
    """
    if isinstance(value, Mapping):
        return {key if isinstance(key, str) else f"{key:g}": to_plain(value[key]) for key in value}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [to_plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def pick_plain(scores: Any, *names: str) -> Document:
    """Some attributes, as JSON holds them."""
    return {name: to_plain(getattr(scores, name)) for name in names}
