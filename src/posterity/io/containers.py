"""Columns of numbers, in the container that a table came in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

from posterity.aliases import AnyArray, DataFrame, Indices
from posterity.io.arrow import pa

Output = Literal["same", "arrow", "pandas", "polars", "numpy"]
Columns = Mapping[str, AnyArray]
Wrap = Callable[[Indices, Columns], Any]


def make_container(table: object, output: Output) -> Wrap:
    """Return the function that makes a container of row numbers (n,) and columns (n,).

    Raises ``ValueError`` for an output that there is not.

    Examples
    --------
    >>> import numpy as np
    >>> wrap = make_container("rides.csv", "numpy")
    >>> wrap(np.arange(2), {"mean": np.array([0.5, 1.0])})
    {'row': array([0, 1]), 'mean': array([0.5, 1. ])}
    """
    if output not in get_args(Output):
        raise ValueError(f"output must be one of {', '.join(get_args(Output))}; got {output!r}")
    module = type(table).__module__.partition(".")[0]
    if output == "same":
        output = module if module in ("pandas", "polars") else "arrow"  # type: ignore[assignment]
    if output == "pandas":
        index = table.index if module == "pandas" and hasattr(table, "index") else None
        return lambda rows, columns: _pandas(index, rows, columns)
    return {"arrow": _arrow, "polars": _polars, "numpy": _numpy}[output]


def _numpy(rows: Indices, columns: Columns) -> dict[str, AnyArray]:
    return {"row": rows, **columns}


def _pandas(index: Any, rows: Indices, columns: Columns) -> DataFrame:
    import pandas as pd

    return pd.DataFrame(dict(columns), index=rows if index is None else index[rows])


def _polars(rows: Indices, columns: Columns) -> Any:
    import polars as pl

    return pl.DataFrame({"row": rows, **columns})


def _arrow(rows: Indices, columns: Columns) -> pa.RecordBatch:
    arrays = [
        pa.array(values.tolist() if values.dtype == object else values)
        for values in (rows, *columns.values())
    ]
    return pa.RecordBatch.from_arrays(arrays, names=["row", *columns])
