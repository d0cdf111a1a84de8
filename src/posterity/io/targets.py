"""Columns beside the features of a row: a number, a label, or the row's own number."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from posterity.aliases import AnyArray, Array, Indices
from posterity.io.arrow import pa
from posterity.io.columns import check_numbers, require
from posterity.io.conversions import as_floats, encode_text, get_codes, is_text
from posterity.io.errors import TableError
from posterity.io.odd_values import find_odd_values, read_column
from posterity.io.source import Source
from posterity.io.text_columns import explain_text


class Target:
    """Turns a column, or the lack of one, into numbers while missing values are dealt with."""

    # Names of the columns that it needs.
    columns: tuple[str, ...] = ()

    def check(self, source: Source) -> None:
        """Raise ``TableError`` if a column is missing or of the wrong kind."""
        require(self.columns, source.schema.names, "target")

    def numbers(self, batch: pa.RecordBatch, first_row: int) -> Array:
        """(n,) numbers for the rows of a record batch; NaN where missing."""
        raise NotImplementedError

    def restore_targets(self, numbers: Array) -> Any:
        """(m,) what the numbers of the rows that are left stand for: themselves."""
        return numbers


class TargetNumbers(Target):
    """A column of numbers or booleans."""

    def __init__(self, column: str) -> None:
        self.columns = (column,)

    def check(self, source: Source) -> None:
        """Refuse what are not numbers."""
        super().check(source)
        check_numbers(source, self.columns[0], "target")

    def numbers(self, batch: pa.RecordBatch, first_row: int) -> Array:
        """The column."""
        return np.array(as_floats(batch.column(self.columns[0])))  # Arrow's own is read-only


class TargetLifetimes(Target):
    """A column of times, and one of whether they ended (1) or go on (0)."""

    def __init__(self, time: str, ended: str) -> None:
        self.columns = (time, ended)

    def check(self, source: Source) -> None:
        """Refuse what are not numbers."""
        super().check(source)
        for name, role in zip(self.columns, ("time", "end"), strict=True):
            check_numbers(source, name, role)

    def numbers(self, batch: pa.RecordBatch, first_row: int) -> Array:
        """Times that ended, and minus those that go on."""
        time, ended = (np.array(as_floats(batch.column(name))) for name in self.columns)
        rules = "a lifetime must be above 0", "1 says that the time ended, 0 that it goes on"
        wrong = time <= 0.0, ~(np.isnan(ended) | (ended == 0.0) | (ended == 1.0))
        for name, values, bad, rule in zip(self.columns, (time, ended), wrong, rules, strict=True):
            if bad.any():
                row = int(np.argmax(bad))
                raise TableError(f"row {first_row + row:,}, {name!r} is {values[row]:g}: {rule}")
        return np.asarray(time * np.where(np.isnan(ended), np.nan, 2.0 * ended - 1.0))

    def restore_targets(self, numbers: Array) -> Array:
        """(m, 2) ends of the lifetimes, as ``Censored`` takes them."""
        return np.column_stack([np.abs(numbers), np.where(numbers > 0.0, numbers, np.inf)])


def find_lifetime(target: str | None) -> tuple[str, ...]:
    """Names of the two columns of a target ``Surv(time, ended)``; none of another.

    Examples
    --------
    >>> find_lifetime("Surv(months, broke)"), find_lifetime("fare")
    (('months', 'broke'), ())
    """
    found = re.fullmatch(r"\s*Surv\(\s*([^,]+?)\s*,\s*([^,]+?)\s*\)\s*", target or "")
    if found is None and re.match(r"\s*surv\s*\(", target or "", re.IGNORECASE):
        how = "write Surv(time, ended), where ended is 1, or 0 where the time goes on"
        raise TableError(f"the target {target!r} does not name two columns: {how}")
    return () if found is None else found.groups()


# What a reward counts as where it is a word.
YES, NO = ("yes", "y", "true", "ja", "oui"), ("no", "n", "false", "nein", "non")


def read_yes_and_no(value: object) -> Any:
    """Return 1.0 for yes and 0.0 for no, in capitals or not; anything else as it is.

    Examples
    --------
    >>> read_yes_and_no("Yes"), read_yes_and_no("no"), read_yes_and_no(2.5)
    (1.0, 0.0, 2.5)
    """
    word = value.strip().casefold() if isinstance(value, str) else ""
    return 1.0 if word in YES else 0.0 if word in NO else value


def _is_yes_or_no(word: str) -> bool:
    return read_yes_and_no(word) in (0.0, 1.0)


class TargetRewards(TargetNumbers):
    """A column of numbers, or of yes and no."""

    def check(self, source: Source) -> None:
        """Refuse text other than yes and no."""
        (name,) = self.columns
        require(self.columns, source.schema.names, "reward")
        if not is_text(source.schema.field(name).type):
            check_numbers(source, name, "reward")
            return
        odd = find_odd_values(read_column(source, name), _is_yes_or_no)
        if odd is not None:
            usable = _is_yes_or_no if odd.n_usable else source.text.reads_number
            ways = ["give numbers, or yes and no"]
            raise explain_text(source, name, f"the reward {name!r}", ways, is_usable=usable)

    def numbers(self, batch: pa.RecordBatch, first_row: int) -> Array:
        """The column, with 1 for yes and 0 for no."""
        values = batch.column(self.columns[0])
        if not is_text(values.type):
            return super().numbers(batch, first_row)
        codes, words = encode_text(values)
        try:
            return np.array([*map(read_yes_and_no, words), np.nan], dtype=np.float64)[codes]
        except ValueError as error:
            raise TableError(
                f"the reward {self.columns[0]!r} is no number: {error}",
                ["give numbers, or yes and no"],
                before="; ",
            ) from error


class TargetLabels(Target):
    """A column of labels: text, or whatever else Arrow can count apart."""

    def __init__(self, column: str) -> None:
        self.columns = (column,)
        self._label_numbers: dict[Any, int] = {}

    def numbers(self, batch: pa.RecordBatch, first_row: int) -> Array:
        """A number for each label, in the order in which labels first came."""
        codes, labels = get_codes(batch.column(self.columns[0]))
        places = [
            self._label_numbers.setdefault(label, len(self._label_numbers)) for label in labels
        ]
        return np.array([*places, np.nan])[codes]

    def restore_targets(self, numbers: Array) -> AnyArray:
        """The labels."""
        return np.array(list(self._label_numbers))[numbers.astype(np.intp)]


class TargetRows(Target):
    """Target without a column: the number of the row, so that it is known which rows are left."""

    def numbers(self, batch: pa.RecordBatch, first_row: int) -> Array:
        """Row numbers, from 0; exact up to 2^53."""
        return np.arange(first_row, first_row + batch.num_rows, dtype=np.float64)

    def restore_targets(self, numbers: Array) -> Indices:
        """Row numbers."""
        return numbers.astype(np.intp)


def make_target(words: str, *, labels: bool = False) -> Target:
    """The target that a column name, or ``Surv(time, ended)``, describes."""
    if labels:
        return TargetLabels(words)
    lifetime = find_lifetime(words)
    return TargetLifetimes(*lifetime) if lifetime else TargetNumbers(words)
