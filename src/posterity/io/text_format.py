"""Format of a text file: its bytes, its lines, and its numbers, dates and missing values."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

# What Arrow reads as missing in CSV files.
MISSING_WORDS = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class TextFormat:
    r"""Format of a text file.

    Attributes
    ----------
    decimal : str
        What is before the fraction of a number, a point or a comma.
    thousands : str
        What is between the thousands of a number, as in 1.234.567,8; "" for nothing.
    date_format : str or sequence of str
        How dates are written beside 2021-04-30, 2021-04-30 12:00 and 2021-04, in the letters of
        ``strftime``: "%m/%d/%y" for 04/30/21. Of several, the first that reads a value counts.
    encoding : str
        Name of the encoding, as of Python's codecs: "latin-1", "cp1252", "utf-16".
    separator : str
        What is between the columns, one character; "" for comma, semicolon, tab or bar, whichever
        is most frequent in the line of column names.
    na : sequence of str
        Words that stand for a missing value, beside an empty field, NA, N/A, NaN and null.
    skip_rows : int
        Lines before the column names that are left out.
    drop_total : bool
        Leave out the rows at the end that begin with Total, Sum, Summe, Gesamt or the like.

    Examples
    --------
    >>> TextFormat(decimal=",", thousands=".").number("1.234,5")
    1234.5
    """

    decimal: str = "."
    thousands: str = ""
    date_format: str | Sequence[str] = ()
    encoding: str = "utf-8"
    separator: str = ""
    na: Sequence[str] = ()
    skip_rows: int = 0
    drop_total: bool = False

    def __post_init__(self) -> None:
        # A frozen dataclass that was read from a file holds lists.
        for name in ("date_format", "na"):
            value = getattr(self, name)
            words = tuple(filter(None, [value])) if isinstance(value, str) else tuple(value)
            object.__setattr__(self, name, words)
        if self.decimal not in (".", ","):
            raise ValueError(f"decimal must be a point or a comma, got {self.decimal!r}")
        if self.thousands and (len(self.thousands) > 1 or self.thousands in "0123456789+-eE"):
            raise ValueError(f"thousands must be one character, as in '.', got {self.thousands!r}")
        if self.thousands == self.decimal:
            raise ValueError(
                f"thousands and decimal can't both be {self.decimal!r}: give different characters"
            )
        for form in self.date_format:
            if "%" not in form:
                raise ValueError(
                    f"date_format must contain day, month and year, as in '%d.%m.%Y'; got {form!r}"
                )
        self._check_bytes()

    def _check_bytes(self) -> None:
        mark = self.separator
        if mark and (len(mark) > 1 or not mark.isascii() or mark in '\r\n"'):
            raise ValueError(f"separator must be one character, as in ';', got {mark!r}")
        if self.skip_rows < 0:
            raise ValueError(f"skip_rows must be 0 or more, got {self.skip_rows}")
        try:
            "".encode(self.encoding)
        except LookupError:
            raise ValueError(
                f"encoding {self.encoding!r} is not known: give utf-8, latin-1, cp1252 or utf-16"
            ) from None

    @property
    def grouped(self) -> re.Pattern[str]:
        """A number, whose thousands may be grouped."""
        mark, point = re.escape(self.thousands), re.escape(self.decimal)
        return re.compile(rf"\s*[-+]?(\d{{1,3}}({mark}\d{{3}})+|\d+)({point}\d+)?\s*")

    def number(self, word: str) -> float:
        """Parse a number; raises ``ValueError`` for other text."""
        if self.thousands:
            if not self.grouped.fullmatch(word):
                raise ValueError(f"{word!r} is not a number")
            word = word.replace(self.thousands, "")
        elif self.decimal == "," and "." in word:
            raise ValueError(f"{word!r} is not a number")
        return float(word.replace(self.decimal, "."))

    def reads_number(self, word: str) -> bool:
        """Return True if a word is a number in this format, or stands for a missing one."""
        if word in MISSING_WORDS or word in self.na:
            return True
        try:
            self.number(word)
        except ValueError:
            return False
        return True

    def reads_date(self, word: str) -> bool:
        """Return True if a word is a date in this format, or stands for a missing one."""
        if word in MISSING_WORDS or word in self.na:
            return True
        for parse in (datetime.fromisoformat, *map(_parser, (*self.date_format, "%Y-%m"))):
            try:
                parse(word.strip())
            except ValueError:
                continue
            return True
        return False


def _parser(form: str) -> Callable[[str], datetime]:
    return lambda word: datetime.strptime(word, form)
