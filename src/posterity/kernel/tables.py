"""Tables of other libraries: what a room asks of a data frame or an Arrow table is asked here."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Framed(Protocol):
    """Rows and columns of another library: a data frame, an Arrow table, a sparse matrix."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of rows, and of columns."""
        ...


# What estimators take for X, and for y.
TableLike = ArrayLike | Framed
# How names of types begin, in all of these libraries.
_KINDS = re.compile(
    "(?P<dates>date|time|duration|period)|(?P<categories>categor|enum|dictionary)"
    r"|(?P<text>str|utf8|large_string)|(?P<numbers>u?int\d|float|double|half|bool|decimal)",
    re.IGNORECASE,
)


class Table:
    """A data frame of pandas, by its columns; those of other libraries derive from it."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    @property
    def names(self) -> list[Any]:
        """What it calls its columns: text, or numbers and tuples."""
        return list(self.frame.columns)

    @property
    def types(self) -> list[Any]:
        """The types of the columns, as the library has them; nothing is copied."""
        return list(self.frame.dtypes)

    @property
    def columns(self) -> list[Any]:
        """The columns, as the library has them."""
        return [column for _, column in self.frame.items()]

    def select(self, names: Sequence[Hashable]) -> Any:
        """A table of these columns, in this order."""
        return self.frame[list(names)]

    def rows(self, some: slice | NDArray[np.intp]) -> Any:
        """A table of some rows, by position."""
        return self.frame.iloc[some]

    def replace(self, columns: Mapping[int, NDArray[Any]]) -> Any:
        """A table with other columns at these places."""
        frame = self.frame.copy(deep=False)
        for place, column in columns.items():
            frame.isetitem(place, column)
        return frame

    def by_name(self) -> dict[str, Any]:
        """The columns that are read by name.

        As in scikit-learn, names that are no text are none: such columns are called by their
        places, "0" and on.

        Raises
        ------
        TypeError
            If some names are text, and some are not.
        ValueError
            If two columns have one name.

        Examples
        --------
        >>> import pandas as pd
        >>> list(Table(pd.DataFrame({7: [1.0], 3: [2.0]})).by_name())
        ['0', '1']
        """
        names = self.names
        texts = [name for name in names if isinstance(name, str)]
        if texts and len(texts) < len(names):
            other = next(name for name in names if not isinstance(name, str))
            raise TypeError(
                f"X has the column {texts[0]!r} and the column {other!r}: name all columns by "
                "text, as by X.columns.astype(str), or none"
            )
        twice = next((name for name, count in Counter(names).items() if count > 1), None)
        if twice is not None:
            raise ValueError(f"X has two columns of the name {twice!r}: rename or drop one")
        return dict(zip(texts or map(str, range(len(names))), self.columns, strict=True))


class PolarsTable(Table):
    """A data frame of Polars."""

    @property
    def columns(self) -> list[Any]:
        """The columns, as the library has them."""
        return list(self.frame.get_columns())

    def rows(self, some: slice | NDArray[np.intp]) -> Any:
        """A table of some rows, by position."""
        return self.frame[some]

    def replace(self, columns: Mapping[int, NDArray[Any]]) -> Any:
        """A table with other columns at these places."""
        names, make = self.names, type(self.columns[0])
        return self.frame.with_columns(*(make(names[at], one) for at, one in columns.items()))


class ArrowTable(PolarsTable):
    """A table of Arrow, or a record batch."""

    @property
    def names(self) -> list[Any]:
        """What it calls its columns."""
        return list(self.frame.column_names)

    @property
    def types(self) -> list[Any]:
        """The types of the columns."""
        return list(self.frame.schema.types)

    @property
    def columns(self) -> list[Any]:
        """The columns, as the library has them."""
        return list(self.frame.columns)

    def select(self, names: Sequence[Hashable]) -> Any:
        """A table of these columns, in this order."""
        return self.frame.select(list(names))

    def replace(self, columns: Mapping[int, NDArray[Any]]) -> Any:
        """A table with other columns at these places."""
        frame = self.frame
        for place, column in columns.items():
            frame = frame.set_column(place, frame.column_names[place], [column])
        return frame


def find_table(X: object) -> Table | None:
    """A data frame of pandas or Polars, or an Arrow table, as a table; None of all else.

    Examples
    --------
    >>> import pandas as pd
    >>> find_table(pd.DataFrame({"a": [1]})).names
    ['a']
    >>> find_table([[1]]) is None
    True
    """
    if hasattr(X, "column_names"):
        return ArrowTable(X)
    if hasattr(X, "get_columns"):
        return PolarsTable(X)
    return Table(X) if hasattr(X, "iloc") and hasattr(X, "columns") else None


def take_rows(X: Any, rows: slice | NDArray[np.intp]) -> Any:
    """Rows of a table, or of an array or a sparse matrix, by position."""
    table = find_table(X)
    return X[rows] if table is None else table.rows(rows)


def type_of(column: Any) -> Any:
    """The type of the values of a column, as its library has it."""
    return column.dtype if hasattr(column, "dtype") else column.type


def kind_of(type_: object) -> str:
    """What a type of NumPy, pandas, Polars or Arrow holds.

    It is "numbers", "text", "categories", "dates" (times and durations, too) or "other".

    Examples
    --------
    >>> kind_of(np.dtype("datetime64[D]")), kind_of(np.dtype(">f4")), kind_of(np.dtype(object))
    ('dates', 'numbers', 'other')
    """
    found = _KINDS.match(str(type_))
    if found is not None and found.lastgroup is not None:
        return found.lastgroup
    return "numbers" if getattr(type_, "kind", "O") in "biuf" else "other"


def read_names(x: Any) -> dict[Any, Any] | None:
    """The values of one row by their names, of a mapping or a row of a data frame; None without.

    Examples
    --------
    >>> read_names({"age": 3.0}), read_names([3.0])
    ({'age': 3.0}, None)
    """
    return dict(x) if hasattr(x, "keys") else None
