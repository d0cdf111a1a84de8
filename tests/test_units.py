"""Offsets and units of columns and of the target, and columns that do not vary, change nothing.

So for every model that has an intercept and learns its prior, of rows that come together and one by
one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from combinations.axes import HEAVY, MODELS, Model
from combinations.laws import Cell
from hypothesis import given, settings
from hypothesis import strategies as st

# In standard deviations of the expected target: rounding, and where searches end.
ROUNDING, SEARCHED = 1e-6, 1e-5
# Where a parameter of the likelihood is learned, sites and prior are searched for in turns.
MOST = {"groups, counts": 0.02, "Gamma": SEARCHED, "Ordinal": SEARCHED}
# Rows that come together first, and all.
FIRST, LAST = 16, 26
OFFSETS = st.sampled_from([0.0, -3.0, 170.0, 1e4])
UNITS = st.sampled_from([1.0, 1e-6, 0.01, 1e3])
WAYS = st.sampled_from(["fit", "rows", "batches"])
OF_COLUMNS = [model for model in MODELS if model.information != "levels"]
OF_TRIANGLES = [model for model in OF_COLUMNS if model.information in ("triangle", "bank")]
WITH_LEARNED_NOISE = [
    model
    for model in OF_COLUMNS
    if model.target in ("numbers", "two")
    and model.name not in ("linear, known noise", "any likelihood")
]
few = settings(max_examples=4, deadline=None)


def each(models: list[Model]) -> pytest.MarkDecorator:
    """Every model; those of which rows take long are slow."""
    cases = [
        pytest.param(model, id=model.name, marks=[pytest.mark.slow] * (model.name in HEAVY))
        for model in models
    ]
    return pytest.mark.parametrize("model", cases)


def learn(cell: Cell, way: str) -> np.ndarray:
    """Ends of intervals of a few means."""
    if way == "fit":
        return cell.mean_of(cell.fit(slice(0, LAST)))
    model, step = cell.begin(FIRST), 1 if way == "rows" else 7
    for start in range(FIRST, LAST, step):
        cell.append(model, slice(start, min(start + step, LAST)))
    return cell.mean_of(model)


def compare(one: np.ndarray, other: np.ndarray, most: float = ROUNDING) -> None:
    """Assert that the ends are the same."""
    half = 0.5 * np.diff(one, axis=1)
    assert np.all(np.abs(other - one) <= most * half)


@few
@given(a=OFFSETS, b=OFFSETS, unit=UNITS, way=WAYS)
@each(OF_COLUMNS)
def test_offsets_and_units_of_columns(
    model: Model, a: float, b: float, unit: float, way: str
) -> None:
    cell, moved = Cell(model, {}), Cell(model, {})
    first = unit if model.information in ("sparse", "diagonal") else 1.0  # columns share a scale
    moved.rows = replace(cell.rows, X=cell.rows.X * [first, unit] + [a * first, b * unit])
    compare(learn(cell, way), learn(moved, way), MOST.get(model.name, ROUNDING))


@few
@given(a=st.sampled_from([0.0, -3.0, 1e4, 1e5]), unit=UNITS, way=WAYS)
@each(WITH_LEARNED_NOISE)
def test_offset_and_unit_of_the_target(model: Model, a: float, unit: float, way: str) -> None:
    cell, moved = Cell(model, {}), Cell(model, {})
    moved.rows = replace(cell.rows, y=(cell.rows.y + a) * unit)
    compare(learn(cell, way), learn(moved, way) / unit - a)


@few
@given(value=st.sampled_from([0.0, 1.0, 7.0]), place=st.integers(0, 2), way=WAYS)
@each(OF_TRIANGLES)
def test_columns_that_do_not_vary(model: Model, value: float, place: int, way: str) -> None:
    cell, wider = Cell(model, {}), Cell(model, {})
    wider.rows = replace(cell.rows, X=np.insert(cell.rows.X, place, value, axis=1))
    compare(learn(cell, way), learn(wider, way), MOST.get(model.name, SEARCHED))
