"""What works with what: the page, and some cells of the table.

All of them are in test_combinations.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from combinations import page
from combinations.axes import COLUMNS, MODELS, REFUSED, Model
from combinations.laws import METHODS, all_cells, try_cell

PAGE = Path(__file__).parents[1] / "docs" / "combinations.md"
# Has no common divisor with the numbers of columns and of methods.
STEP = 41


def test_the_page_is_what_the_lists_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page.write(), (
        "write it anew: PYTHONPATH=tests/oracles python -m combinations docs/combinations.md"
    )


def test_what_is_refused_is_in_the_table() -> None:
    named = {*COLUMNS, *METHODS}
    assert {model for model, _ in REFUSED} <= {model.name for model in MODELS}
    assert {column for _, column in REFUSED} <= named
    assert {refused.reason for refused in REFUSED.values()} <= set(page.REASONS)


@pytest.mark.parametrize(
    ("model", "column", "method"), [cell for cell in all_cells() if not cell.marks][::STEP]
)
def test_a_cell(model: Model, column: str, method: str) -> None:
    try_cell(model, column, method)
