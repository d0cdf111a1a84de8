"""Columns of text that should be numbers or dates: which values are in the way, and a way out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from posterity.io.calendar import find_date_format, looks_like_date
from posterity.io.conversions import NUMBER_WITH_UNIT
from posterity.io.errors import Cure, TableError
from posterity.io.odd_values import (
    find_odd_values,
    list_number_formats,
    read_column,
    suggest_date_format,
    suggest_number_format,
)
from posterity.io.source import Source


def explain_text(
    source: Source,
    name: str,
    subject: str,
    ways: Sequence[Cure | str] = (),
    *,
    dates: bool = False,
    is_usable: Callable[[str], bool] | None = None,
    was: str = "",
) -> TableError:
    """Return the error for text where numbers, or ``dates``, should be: its values, row and count.

    ``is_usable`` says which values are as they should be; ``ways`` are others out; ``was`` says
    what the column held when it was learned.
    """
    text = source.text
    usable = is_usable or (text.reads_date if dates else text.reads_number)
    odd = find_odd_values(read_column(source, name), usable)
    wanted = "dates" if dates else "numbers"
    learned = f", and was {was} when it was learned" if was else ""
    if odd is None:
        problem = f"{subject} holds text{learned or f'; it must contain {wanted}'}"
        return TableError(problem, ways or [f"convert it to {wanted} first"])
    if not dates and looks_like_date(odd.first):
        return explain_text(source, name, subject, ways, dates=True, was=was)
    cures = (suggest_date_format if dates else suggest_number_format)(text, odd)
    place = f"in {odd}, first {odd.first!r} in {source.row_name(odd.row)}"
    if was:
        problem = f"{subject} holds text{learned} ({place})"
    elif odd.n_usable or list_number_formats(text, odd.words):
        problem = f"{subject} holds text {place}"
    else:
        # The values of a table in memory are at hand.
        example = f" (as {odd.first!r})" if source.reads_ahead else ""
        problem = f"{subject} holds text{example}; it must contain {wanted}"
    last = "correct the file" if odd.n_usable else f"give a column of {wanted}"
    return TableError(problem, [*cures, *ways, *([] if cures or ways else [last])])


def refuse_odd_dates(source: Source, name: str) -> None:
    """Raise for text of dates among which are other values, or which are in another form."""
    odd = find_odd_values(read_column(source, name), source.text.reads_date)
    if odd is not None and (odd.n_usable or looks_like_date(odd.first)):
        raise explain_text(source, name, f"column {name!r}", dates=True)


def refuse_numbers_and_dates(source: Source, name: str, levels: Sequence[str]) -> None:
    """Raise for levels of which most are numbers or dates, or would be in another format."""
    text, subject = source.text, f"column {name!r}"
    numbers = sum(map(text.reads_number, levels))
    if numbers == len(levels):
        return
    drop = Cure("leave it out ({})", {"drop": [name]})
    categories = Cure("take its values as categories ({})", {"categories": [name]})
    if all(NUMBER_WITH_UNIT.fullmatch(level) for level in levels) and len(levels) > 1:
        raise TableError(
            f"{subject} holds numbers with a sign, as in {levels[0]!r}",
            ["take the sign out of the file", categories],
        )
    others = [level for level in levels if not text.reads_number(level)]
    dates = sum(looks_like_date(level) or text.reads_date(level) for level in others)
    if 2 * dates > len(levels):
        how = find_date_format(levels)
        if how and not text.date_format:
            raise TableError(
                f"{subject} looks like dates, as in {levels[0]!r}",
                [Cure("give their format ({})", {"date_format": how}), drop],
            )
        raise explain_text(source, name, subject, [drop], dates=True)
    if 2 * numbers > len(levels) or list_number_formats(text, others):
        raise explain_text(source, name, subject, [categories, drop])
