"""Tables of coefficients that print their intervals first, in 80 columns."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from posterity.distributions._digits import count_decimals

# Columns of text that are printed beside the labels, where there are any.
BESIDE = ("group", "target", "class", "quantile", "value")
# Columns that are printed, in this order, and their headings; the last ones where there are any.
FIRST = {"mean": "mean", "low": "low", "high": "high", "sd": "sd"}
MORE = {"probability_positive": "P(> 0)"}
WIDTH, MOST_ROWS = 80, 60


def show_table(frame: Any) -> Any:
    """The data frame, of a class that prints the mean and its interval first.

    All else it is as it was: what is made of it is a plain data frame, and one whose means and
    intervals were taken out, or written as text, prints as plain ones do.
    """
    return _get_class()(frame)


@cache
def _get_class() -> Any:
    """The class, which exists where pandas is."""
    from pandas import DataFrame

    class ShownTable(DataFrame):
        """A data frame of estimates, which prints their intervals first."""

        @property
        def _constructor(self) -> Any:
            return DataFrame

        def __reduce__(self) -> Any:
            return DataFrame, (DataFrame(self),)

        def __repr__(self) -> str:
            plain = DataFrame(self)
            has_estimates = set(FIRST) <= set(plain.select_dtypes("number"))
            return _print(plain) if has_estimates else repr(plain)

    return ShownTable


def _print(frame: Any) -> str:
    """The first columns in 80, and the names of the others."""
    shown = {name: frame[name].tolist() for name in BESIDE if name in frame}
    ends = frame[["low", "high"]].to_numpy(dtype=float)
    decimals = [count_decimals(low, high) for low, high in ends.tolist()]
    for column, heading in FIRST.items():
        values = frame[column].astype(float)
        shown[heading] = [_round(*each) for each in zip(values, decimals, strict=True)]
    for column, heading in MORE.items():
        if column in frame:
            shown[heading] = [f"{value:.3f}" for value in frame[column].astype(float)]
    ratios = [name for name in frame if f"{name}_low" in frame]
    for name in ratios:
        each = frame[[name, f"{name}_low", f"{name}_high"]].astype(float).to_numpy().tolist()
        shown[name] = [f"{ratio:.3g} [{low:.3g}, {high:.3g}]" for ratio, low, high in each]
    table = frame[[]].assign(**shown)
    text = table.to_string(line_width=WIDTH, max_rows=MOST_ROWS)
    told = {
        "name",
        *BESIDE,
        *FIRST,
        *MORE,
        *(name + end for name in ratios for end in ("", "_low", "_high")),
    }
    others = [str(name) for name in frame if name not in told]
    return f"{text}\n\nand {', '.join(others)}" if others else str(text)


def _round(value: float, decimals: int) -> str:
    """A number with the decimals that its interval tells of."""
    if not math.isfinite(value) or decimals > 12 or abs(value) >= 1e12:
        return f"{value:.4g}"
    return f"{value:,.{decimals}f}"
