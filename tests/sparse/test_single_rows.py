"""Rows that come one by one, by the compiled path, beside the same rows at once."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from posterity.files import dumps, loads
from posterity.forgetting import Stabilized
from posterity.sparse import (
    DiagonalLinearRegression,
    DiagonalLogisticRegression,
    DiagonalPoissonRegression,
)

MODELS = [DiagonalLinearRegression, DiagonalLogisticRegression, DiagonalPoissonRegression]
SETTINGS: list[dict[str, Any]] = [
    {},
    {"fit_intercept": False},
    {"prior_precision": 2.0},
    {"forgetting": Stabilized(0.97)},
]
# Every column in the first row, so that features are numbered alike.
FIRST = {"shop": "a", "price": 2.5, "rare": 1.5}
ROWS = st.lists(
    st.fixed_dictionaries(
        {"shop": st.sampled_from("abcdef")},
        optional={"price": st.floats(-3.0, 8.0), "rare": st.sampled_from([1.5, -2.0])},
    ),
    min_size=30,
    max_size=90,
)


def make_targets(n: int) -> list[int]:
    return [(7 * i * i + i) % 5 % 2 for i in range(n)]


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("model", MODELS)
@settings(max_examples=3, deadline=None)
@given(rows=ROWS)
def test_single_rows_are_learned_as_a_batch(
    model: Any, setting: dict[str, Any], rows: list[dict[str, Any]]
) -> None:
    rows = [FIRST, *rows]
    y = make_targets(len(rows))
    single, batch = model(**setting), model(**setting).partial_fit(rows, y)
    for row, target in zip(rows, y, strict=True):
        single.learn_one(row, target)
    answer = "predict_proba" if hasattr(batch, "predict_proba") else "predict"
    expected = getattr(batch, answer)(rows)
    np.testing.assert_allclose(getattr(single, answer)(rows), expected, rtol=1e-8, atol=1e-10)
    assert single.n_effective_ == pytest.approx(batch.n_effective_)
    by_one = [getattr(single, answer)([row])[0] for row in rows]
    np.testing.assert_allclose(by_one, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("model", MODELS)
def test_numbers_that_were_0_in_all_rows_before(model: Any) -> None:
    values = np.random.default_rng(0).integers(0, 3, size=(30, 4)) / 2.0
    values[:6] = 0.0
    values[:12, 3] = 0.0
    rows = [dict(zip("abcd", row, strict=True)) for row in values.tolist()]
    y = make_targets(len(rows))
    single, batch = model().partial_fit(rows[:2], y[:2]), model().partial_fit(rows, y)
    for row, target in zip(rows[2:], y[2:], strict=True):
        single.learn_one(row, target)
    answer = "predict_proba" if hasattr(batch, "predict_proba") else "predict"
    expected = getattr(batch, answer)(rows)
    np.testing.assert_allclose(getattr(single, answer)(rows), expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("model", MODELS)
def test_copies_and_files_go_on_alike(model: Any) -> None:
    rows = [FIRST, *({"shop": "abc"[i % 3], "price": 0.3 * i} for i in range(40))]
    y = make_targets(len(rows))
    learned = model().partial_fit(rows, y)
    learned.learn_one(rows[1], y[1])
    before = dumps(learned)
    copies = [copy.deepcopy(learned), pickle.loads(pickle.dumps(learned)), loads(before)]
    for one in copies:
        one.learn_one(rows[2], y[2])
    assert dumps(learned) == before
    learned.learn_one(rows[2], y[2])
    assert {dumps(one) for one in copies} == {dumps(learned)}
