"""Values that are in the way of numbers or dates in a column of text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from posterity.io.arrow import pa
from posterity.io.calendar import find_date_format
from posterity.io.conversions import NUMBER_WITH_UNIT, encode_text
from posterity.io.errors import Cure
from posterity.io.source import Source
from posterity.io.text_format import MISSING_WORDS, TextFormat
from posterity.io.text_stream import is_total

_AT_ONCE = 65536
# More different words than this don't all stand for a missing value.
MOST_WORDS = 5
_POINT = "if the comma is the decimal point, say so ({})"
_THOUSANDS = "if the {mark} is between thousands, say so ({{}})"
# Other formats of numbers, and when each is the right one.
_FORMATS: tuple[tuple[str, dict[str, str]], ...] = (
    (_THOUSANDS.format(mark="comma"), {"thousands": ","}),
    (_THOUSANDS.format(mark="point"), {"thousands": "."}),
    (_POINT, {"decimal": ","}),
    (_POINT, {"decimal": ",", "thousands": "."}),
)
Cures = list[Cure | str]


@dataclass(frozen=True)
class OddValues:
    """Different words in order of their first rows, of which the first is ``row``.

    ``count`` of ``n_rows`` rows hold one, and ``n_usable`` a value as it should be.
    """

    words: tuple[str, ...]
    row: int
    count: int
    n_rows: int
    n_usable: int

    @property
    def first(self) -> str:
        """The first word."""
        return self.words[0]

    def __str__(self) -> str:
        return f"{self.count:,} of {self.n_rows:,} row{'' if self.n_rows == 1 else 's'}"


def find_odd_values(
    chunks: Iterable[pa.Array], is_usable: Callable[[str], bool]
) -> OddValues | None:
    """Find the values of an Arrow column, chunk by chunk, that are not usable; None without any."""
    first_rows: dict[str, int] = {}
    known: dict[str, bool | None] = {}
    count = n_rows = n_usable = 0
    for chunk in chunks:
        codes, words = encode_text(chunk)
        for word in words:
            if word not in known:
                known[word] = None if word in MISSING_WORDS else is_usable(word)
        odd, usable = (
            np.append([known[word] is which for word in words], False)[codes]
            for which in (False, True)
        )
        rows = np.flatnonzero(odd)
        for code, place in zip(*np.unique(codes[rows], return_index=True), strict=True):
            first_rows.setdefault(words[code], n_rows + int(rows[place]))
        count, n_usable = count + len(rows), n_usable + int(usable.sum())
        n_rows += len(codes)
    if not first_rows:
        return None
    ordered = sorted(first_rows, key=first_rows.__getitem__)
    return OddValues(tuple(ordered), first_rows[ordered[0]], count, n_rows, n_usable)


def read_column(source: Source, name: str) -> Iterator[pa.Array]:
    """Yield a column, chunk by chunk; of a table that can be read only once, its first chunk."""
    batches = source.batches([name], _AT_ONCE)
    for batch, _ in batches if source.reads_again else islice(batches, 1):
        yield batch.column(0)


def suggest_number_format(text: TextFormat, odd: OddValues) -> Cures:
    """List what makes numbers, or missing values, of the odd values of a column."""
    if is_total(odd.first):
        return [Cure("give {} to leave out the row of totals", {"drop_total": True})]
    if all(NUMBER_WITH_UNIT.fullmatch(word) for word in odd.words):
        return ["take the sign out of the file"]
    return list_number_formats(text, odd.words) or _suggest_missing(odd)


def list_number_formats(text: TextFormat, words: Sequence[str]) -> Cures:
    """List other formats by which most of the words are numbers, the rest being missing values."""
    found: Cures = []
    for sentence, options in _FORMATS:
        # Two options only where one is not enough; and a mark has one meaning.
        marks = {"decimal": text.decimal, "thousands": text.thousands, **options}
        if (found and len(options) > 1) or marks["decimal"] == marks["thousands"]:
            continue
        other = replace(text, **options)  # type: ignore[arg-type]
        rest = [word for word in words if not other.reads_number(word)]
        if other != text and 2 * len(rest) < len(words) and len(rest) <= MOST_WORDS:
            found.append(Cure(sentence, {**options, **({"na": rest} if rest else {})}))
    return found


def suggest_date_format(text: TextFormat, odd: OddValues) -> Cures:
    """List what makes dates, or missing values, of the odd values of a column."""
    known = text.date_format
    form = find_date_format(odd.words, known) or find_date_format(odd.words[:1], known)
    if form and form not in text.date_format:
        also = " as well" if text.date_format else ""
        return [Cure(f"give their format{also} ({{}})", {"date_format": form})]
    if is_total(odd.first):
        return [Cure("give {} to leave out the row of totals", {"drop_total": True})]
    return _suggest_missing(odd)


def _suggest_missing(odd: OddValues) -> Cures:
    if not odd.n_usable or len(odd.words) > MOST_WORDS:
        return []
    them = "it" if len(odd.words) == 1 else "them"
    return [Cure(f"give {{}} to take {them} as missing", {"na": list(odd.words)})]
