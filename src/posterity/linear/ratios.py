"""Ratios in tables of coefficients: what a unit of a feature multiplies odds or rates by."""

from __future__ import annotations

from typing import Any

import numpy as np

from posterity.aliases import DataFrame


def add_ratios(table: Any, name: str) -> DataFrame:
    """The table, with columns of exp(mean) and its ends: ``name``, and with ``_low`` and ``_high``.

    None are added where the name is empty.

    Examples
    --------
    >>> table = {"mean": np.zeros(1), "low": -np.ones(1), "high": np.ones(1)}
    >>> add_ratios(table, "rate_ratio")["rate_ratio_high"].round(2)
    array([2.72])
    """
    endings = (("", "mean"), ("_low", "low"), ("_high", "high")) if name else ()
    with np.errstate(over="ignore"):  # of features whose unit is tiny it is infinite
        for ending, column in endings:
            table[name + ending] = np.exp(table[column])
    return table
