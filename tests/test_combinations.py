"""What works with what: every cell of the table is tried, also those that are refused.

A thin diagonal of it is in test_some_combinations.py.
"""

from __future__ import annotations

import pytest
from combinations.axes import Model
from combinations.laws import all_cells, try_cell


@pytest.mark.parametrize(("model", "column", "method"), all_cells())
def test_a_cell(model: Model, column: str, method: str) -> None:
    try_cell(model, column, method)
