"""Numbers beyond all floats, dates and masked values, at every door: refused where they stand."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pytest

from posterity.factorization import BayesianFactorizationMachine
from posterity.sparse import (
    DiagonalLinearRegression,
    DiagonalLogisticRegression,
    DiagonalPoissonRegression,
    SparseLinearRegression,
    SparseLogisticRegression,
    SparsePoissonRegression,
)

DIAGONAL = [DiagonalLinearRegression, DiagonalLogisticRegression, DiagonalPoissonRegression]
SPARSE = [SparseLinearRegression, SparseLogisticRegression, SparsePoissonRegression]
OF_NUMBERS = [one for one in DIAGONAL + SPARSE if "Logistic" not in one.__name__]
HUGE = 10**400
ROWS = [{"shop": "abc"[i % 3], "price": float(i)} for i in range(12)]
Y = np.arange(12) % 2


@pytest.mark.parametrize("model", OF_NUMBERS)
def test_a_target_beyond_all_floats_is_refused(model: Any) -> None:
    learned = model().fit(ROWS, Y)
    y = [0, 1, HUGE, *Y[3:]]
    doors = [learned.fit, learned.partial_fit]
    doors += [learned.predict_then_learn] if model in DIAGONAL else [learned.unlearn]
    for door in doors:
        for given in (y, np.array(y, dtype=object)):
            with pytest.raises(ValueError, match="y has a value that is not a number: in row 2"):
                door(ROWS, given)
    with pytest.raises(ValueError, match="in row 0, the value is a whole number beyond"):
        learned.learn_one(ROWS[0], HUGE)
    with pytest.raises(TypeError, match="y holds dates or times"):
        learned.partial_fit(ROWS[:1], np.array(["2024-02-29"], dtype="M8[D]"))
    with pytest.raises(TypeError, match="is a date or time"):
        learned.partial_fit(ROWS[:1], [datetime.date(2024, 2, 29)])
    with pytest.raises(ValueError, match="y is masked in row 1"):
        learned.partial_fit(ROWS[:2], np.ma.array([0.0, 1.0], mask=[False, True]))


@pytest.mark.parametrize("model", DIAGONAL + SPARSE)
def test_a_value_beyond_all_floats_is_refused_by_its_key(model: Any) -> None:
    learned = model().fit(ROWS, Y)
    before = learned.predict(ROWS)
    bad = {"shop": "a", "price": HUGE}
    for door in (
        lambda: learned.learn_one(bad, 1),
        lambda: learned.predict_one(bad),
        lambda: learned.predict([ROWS[0], bad]),
        lambda: learned.partial_fit([ROWS[0], bad], [0, 1]),
    ):
        with pytest.raises(ValueError, match=r"'price' can't be used in row [01]: the value is a"):
            door()
    np.testing.assert_array_equal(learned.predict(ROWS), before)


@pytest.mark.parametrize("model", [DiagonalPoissonRegression, SparsePoissonRegression])
def test_a_count_is_no_larger_than_a_float_can_count(model: Any) -> None:
    learned = model().fit(ROWS, Y)
    for door in (
        lambda: learned.learn_one(ROWS[0], 2**54),
        lambda: learned.partial_fit(ROWS[:1], [1e60]),
    ):
        with pytest.raises(ValueError, match="row 0"):
            door()


def test_machines_refuse_them_too() -> None:
    rows = [["ann", 1.0], ["bob", 2.0]] * 6
    learned = BayesianFactorizationMachine(rank=1, numeric=[1]).fit(rows, Y)
    before = learned.predict(rows)
    for door in (
        lambda: learned.learn_one(rows[0], HUGE),
        lambda: learned.partial_fit(rows[:2], [0, HUGE]),
        lambda: learned.fit(rows[:2], [0, HUGE]),
        lambda: learned.learn_one(["ann", HUGE], 1.0),
        lambda: learned.predict_one(["ann", HUGE]),
    ):
        with pytest.raises(ValueError, match=r"in row [01], the value is a whole number beyond"):
            door()
    with pytest.raises(
        ValueError, match="y is 1e\\+200 in row 1, which is not finite, or too large"
    ):
        learned.partial_fit(rows[:2], [0.0, 1e200])
    np.testing.assert_array_equal(learned.predict(rows), before)


@pytest.mark.parametrize("model", DIAGONAL + SPARSE)
def test_parameters_that_were_changed_are_checked_when_they_are_used(model: Any) -> None:
    learned = model().fit(ROWS, Y)
    learned.forgetting = "soon"
    for door in (
        lambda: learned.learn_one(ROWS[0], 1),
        lambda: learned.partial_fit(ROWS, Y),
    ):
        with pytest.raises(ValueError, match="forgetting is 'soon'"):
            door()


@pytest.mark.parametrize("model", [DiagonalLinearRegression, SparseLinearRegression])
def test_a_noise_precision_of_nothing_is_refused_when_it_is_read(model: Any) -> None:
    learned = model().fit(ROWS, Y)
    learned.noise_precision = 0
    with pytest.raises(ValueError, match="noise_precision is 0: it must be positive and finite"):
        _ = learned.coef_std_
