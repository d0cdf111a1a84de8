"""Means that go on from table to table, and values that are given."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pa = pytest.importorskip("pyarrow", reason="needs PyArrow (posterity[cli])")

from posterity import BayesianLinearRegression  # noqa: E402
from posterity.io import (  # noqa: E402
    ColumnMeans,
    TableError,
    learn_stream,
    open_table,
    predict_stream,
)

N = 3000
RNG = np.random.default_rng(0)
A, B = RNG.normal(2.0, 1.0, size=N), RNG.normal(-1.0, 1.0, size=N)
ZONE = RNG.choice(["e", "n", "s"], size=N)
TABLE = pa.table(
    {
        "a": pa.array(A, mask=RNG.random(N) < 0.1),
        "b": pa.array(B, mask=RNG.random(N) < 0.1),
        "zone": pa.array(ZONE.tolist(), mask=RNG.random(N) < 0.1),
        "y": A - B + (ZONE == "n") + RNG.normal(size=N),
    }
)
LEVELS = {"zone": ["e", "n", "s"]}
GIVEN = {"a": 2.0, "b": -1.0, "zone=n": 0.25, "zone=s": 0.5}


def assert_same(model: Any, other: Any) -> None:
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-9)
    np.testing.assert_allclose(model.log_evidence_, other.log_evidence_, rtol=1e-9)


def filled(table: Any, missing: Any, **keywords: Any) -> np.ndarray:
    return np.concatenate(
        [batch[0] for batch in open_table(table, "y", missing=missing, levels=LEVELS, **keywords)]
    )


@settings(max_examples=20, deadline=None)
@given(cuts=st.lists(st.integers(1, N - 1), min_size=1, max_size=4, unique=True))
def test_means_go_on_wherever_the_table_is_cut(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), N]
    means = ColumnMeans()
    parts = [
        filled(TABLE.slice(first, last - first), means)
        for first, last in itertools.pairwise(places)
    ]
    np.testing.assert_allclose(np.concatenate(parts), filled(TABLE, "mean"), rtol=1e-12)


@settings(max_examples=20, deadline=None)
@given(cut=st.integers(1, N - 1))
def test_merged_means_are_those_of_all(cut: int) -> None:
    whole, first, second = ColumnMeans(), ColumnMeans(), ColumnMeans()
    filled(TABLE, whole)
    filled(TABLE.slice(0, cut), first)
    filled(TABLE.slice(cut), second)
    assert first.merge(second).fixed == pytest.approx(whole.fixed, rel=1e-12)


def test_means_are_those_of_the_columns() -> None:
    means = ColumnMeans()
    learn_stream(BayesianLinearRegression(), TABLE, "y", missing=means, batch_rows=500)
    a = TABLE["a"].drop_null().to_numpy()
    zone = np.array(TABLE["zone"].drop_null().to_pylist())
    assert means.fixed["a"] == pytest.approx(a.mean(), rel=1e-12)
    assert means.fixed["zone=n"] == pytest.approx((zone == "n").mean(), rel=1e-12)
    kept = ColumnMeans.of(json.loads(json.dumps(means.get_sums())))
    assert kept.fixed == means.fixed


def test_given_values_fill_in() -> None:
    X = filled(TABLE, GIVEN)
    for place, name in enumerate(["a", "b"]):
        column = TABLE[name].to_numpy(zero_copy_only=False)
        expected = np.where(np.isnan(column), GIVEN[name], column)
        assert np.array_equal(X[:, place], expected)
    absent = np.array(TABLE["zone"].is_null())
    assert (X[absent, 2:] == [0.25, 0.5]).all()


@settings(max_examples=10, deadline=None)
@given(cut=st.integers(100, N - 100))
def test_with_given_values_parts_of_a_table_merge_to_the_whole(cut: int) -> None:
    how = {"missing": GIVEN, "levels": LEVELS}
    whole, first, second = (
        learn_stream(BayesianLinearRegression(), part, "y", **how)
        for part in (TABLE, TABLE.slice(0, cut), TABLE.slice(cut))
    )
    assert_same(first.merge(second), whole)


def test_predictions_use_the_means_that_were_learned() -> None:
    means = ColumnMeans()
    model = learn_stream(BayesianLinearRegression(), TABLE, "y", missing=means)
    asked = pa.table({"zone": ["e"], "b": [0.0], "a": pa.array([None], pa.float64())})
    (predictive,) = predict_stream(model, asked, missing=means.fixed, output="numpy")
    whole = pa.table({"a": [means.fixed["a"]], "b": [0.0], "zone": ["e"]})
    (expected,) = predict_stream(model, whole, output="numpy")
    assert predictive["mean"].tolist() == expected["mean"].tolist()


def test_a_level_that_grows_was_zero_before() -> None:
    early = pa.table({"zone": ["e", "n", None, "e"], "y": [1.0, 2.0, 3.0, 4.0]})
    late = pa.table({"zone": ["s", None], "y": [1.0, 2.0]})
    means = ColumnMeans()
    model = BayesianLinearRegression(prior_precision=1.0)
    for part in (early, late):
        learn_stream(model, part, "y", missing=means, levels="growing")
    assert means.fixed == pytest.approx({"zone=e": 0.5, "zone=n": 0.25, "zone=s": 0.25})


def test_rows_without_a_target_are_left_out_of_given_values() -> None:
    table = pa.table({"a": [None, 1.0, 2.0], "y": [1.0, None, 3.0]})
    stream = open_table(table, "y", missing={"a": 7.0})
    ((X, y),) = stream
    assert (X.tolist(), y.tolist()) == ([[7.0], [2.0]], [1.0, 3.0])
    assert (stream.n_skipped, stream.n_filled) == (1, 1)


@pytest.mark.parametrize(
    ("missing", "error", "message"),
    [
        ({"age": 1.0}, TableError, "missing= has a value for 'age', which is not a feature; "
         "did you mean 'a', 'b', 'zone=n', 'zone=s'?"),
        ({"zone": 1.0}, TableError, "'zone', which is not a feature; did you mean 'zone="),
        ({"a": float("nan")}, ValueError, "missing= has nan for 'a': it must be finite"),
        ({"b": 1.0}, TableError, "column 'a' is missing, and missing= has no value for 'a'"),
        (3, ValueError, "must be one of error, skip, mean, level, or values by the names of"),
    ],
)  # fmt: skip
def test_what_is_refused(missing: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        filled(TABLE.slice(0, 100), missing)


def test_tallies_that_are_none() -> None:
    with pytest.raises(ValueError, match="sum and count of 'a' must be finite, got nan, 1"):
        ColumnMeans.of({"a": [float("nan"), 1.0]})
