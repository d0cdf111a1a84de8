"""Columns beside the features of a row: a number, a label, or the row's own number."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from posterity.io.columns import check_numbers, require
from posterity.io.conversions import as_floats, get_codes

FloatArray = NDArray[np.float64]


class Target(Protocol):
    """Turns a column, or the lack of one, into numbers while missing values are dealt with."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that it needs."""
        ...

    def check(self, schema: Any) -> None:
        """Raise ``TableError`` if a column is missing or of the wrong kind."""
        ...

    def numbers(self, batch: Any, first_row: int) -> FloatArray:
        """(n,) numbers for the rows of a record batch; NaN where missing."""
        ...

    def restore_targets(self, numbers: FloatArray) -> Any:
        """(m,) what the numbers of the rows that are left stand for."""
        ...


class TargetNumbers:
    """A column of numbers or booleans."""

    def __init__(self, column: str) -> None:
        self.columns = (column,)

    def check(self, schema: Any) -> None:
        """Refuse what are not numbers."""
        require(self.columns, schema.names, "target")
        check_numbers(schema, self.columns[0], "target")

    def numbers(self, batch: Any, first_row: int) -> FloatArray:
        """The column."""
        return np.array(as_floats(batch.column(self.columns[0])))  # Arrow's own is read-only

    def restore_targets(self, numbers: FloatArray) -> FloatArray:
        """Themselves."""
        return numbers


class TargetLabels:
    """A column of labels: text, or whatever else Arrow can count apart."""

    def __init__(self, column: str) -> None:
        self.columns = (column,)
        self._label_numbers: dict[Any, int] = {}

    def check(self, schema: Any) -> None:
        """Refuse a column that is not there."""
        require(self.columns, schema.names, "target")

    def numbers(self, batch: Any, first_row: int) -> FloatArray:
        """A number for each label, in the order in which labels first came."""
        codes, labels = get_codes(batch.column(self.columns[0]))
        places = [
            self._label_numbers.setdefault(label, len(self._label_numbers)) for label in labels
        ]
        return np.array([*places, np.nan])[codes]

    def restore_targets(self, numbers: FloatArray) -> NDArray[Any]:
        """The labels."""
        return np.array(list(self._label_numbers))[numbers.astype(np.intp)]


class TargetRows:
    """Target without a column: the number of the row, so that it is known which rows are left."""

    columns: tuple[str, ...] = ()

    def check(self, schema: Any) -> None:
        """Do nothing: no column is needed."""

    def numbers(self, batch: Any, first_row: int) -> FloatArray:
        """Row numbers, from 0; exact up to 2^53."""
        return np.arange(first_row, first_row + batch.num_rows, dtype=np.float64)

    def restore_targets(self, numbers: FloatArray) -> NDArray[np.intp]:
        """Row numbers."""
        return numbers.astype(np.intp)


__all__ = ["Target", "TargetLabels", "TargetNumbers", "TargetRows"]
