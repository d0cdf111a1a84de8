"""Splines whose domain grows with the rows: knots join, and the model is as if they always were."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posterity import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegression,
    BayesianQuantileRegression,
    BayesianRobustRegression,
)
from posterity.basis import Fourier, Spline
from posterity.files import dumps, loads

Array = np.ndarray[Any, np.dtype[np.float64]]


def drift(n: int, seed: int = 0) -> tuple[Array, Array]:
    """Rows of a time that goes on from 0 to 10."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(0.0, 10.0, n))[:, None]
    return x, np.sin(x[:, 0]) + 0.3 * rng.normal(size=n)


PLACES = np.linspace(-1.0, 12.0, 27)[:, None]


def with_its_knots(model: Any) -> Any:
    """A model like this one that has its knots from the start."""
    settings = model.get_params(deep=False) | {"basis": Spline(knots=model.basis_.knots_[0])}
    return type(model)(**settings)


@given(
    first=st.lists(st.integers(-1000, 1000).map(lambda k: k / 1e3), min_size=1, max_size=5),
    later=st.lists(st.integers(-1000, 1000).map(lambda k: k * 1.1), min_size=1, max_size=4),
    degree=st.integers(1, 4),
)
def test_functions_of_joined_knots_are_sums_of_the_old_ones(
    first: list[float], later: list[float], degree: int
) -> None:
    old = Spline(degree=degree).fit(np.array(first)[:, None])
    new = old.reaching(np.array(later)[:, None])
    places = np.linspace(*old.reach_[0], 50)[:, None]
    ones = np.ones((50, 1))
    columns = np.hstack([ones, old.transform(places)]) @ old.columns_of(new)
    np.testing.assert_allclose(columns, np.hstack([ones, new.transform(places)]), atol=1e-7)
    assert new.reach_[0, 0] <= min(*first, *later)
    assert new.reach_[0, 1] >= max(*first, *later)
    assert len(new.knots_[0]) <= 68
    assert new.reaching(np.array(later)[:, None]) is new
    row = np.array([later[0]])
    np.testing.assert_allclose(new.transform_row(row), new.transform(row[None])[0], atol=1e-9)


@pytest.mark.parametrize("size", [1, 7, 100])
def test_a_stream_is_the_model_that_had_its_knots_from_the_start(size: int) -> None:
    x, y = drift(300)
    stream = BayesianLinearRegression(basis=Spline())
    for first in range(0, 300, size):
        part = slice(first, first + size)
        if size == 1:
            stream.learn_one(x[first], y[first])
        else:
            stream.partial_fit(x[part], y[part])
    fixed = with_its_knots(stream).fit(x, y)
    for read in ("predict", "predict_interval"):
        expected = getattr(fixed, read)(PLACES)
        np.testing.assert_allclose(getattr(stream, read)(PLACES), expected, atol=1e-9)
    np.testing.assert_allclose(stream.log_evidence_, fixed.log_evidence_)
    assert 33 <= len(stream.basis_.knots_[0]) <= 68


@pytest.mark.parametrize("first", [1, 5, 40])
def test_a_stream_says_what_a_fit_of_all_rows_does(first: int) -> None:
    """What the first batch decides, where knots lie, makes hardly a difference."""
    x, y = drift(300)
    stream = BayesianLinearRegression(basis=Spline()).partial_fit(x[:first], y[:first])
    before = stream.predict_then_learn(x[first:], y[first:])
    whole = BayesianLinearRegression(basis=Spline()).fit(x, y)
    places = PLACES[2:-4]
    low, high = whole.predict_interval(places, of="mean").T
    moved = (stream.predict(places) - whole.predict(places)) / ((high - low) / 3.92)
    assert np.abs(moved).max() < 0.3
    assert np.sqrt(np.mean(np.square(moved))) < 0.12
    assert before.logpdf(y[first:]).mean() > -0.6


def test_a_row_is_predicted_by_rows_before_it_and_learned_where_it_lies() -> None:
    x, y = drift(60)
    one, other = (BayesianLinearRegression(basis=Spline()) for _ in range(2))
    for row, target in zip(x, y, strict=True):
        one.learn_one(row, target)
        other.predict_then_learn_one(row, target)
    np.testing.assert_allclose(one.predict(PLACES), other.predict(PLACES), atol=1e-9)
    assert one.basis_.reach_[0, 1] >= x.max()


@pytest.mark.parametrize(
    ("kind", "settings", "bound"),
    [
        (BayesianLinearRegression, {"prior_precision": 2.0}, 1e-9),
        (BayesianLinearRegression, {"forgetting": "stabilized:0.99"}, 1e-9),
        (BayesianLinearRegression, {"forgetting": "window:50"}, 1e-9),
        (BayesianLinearRegression, {"forgetting": "exponential:0.99"}, 0.05),
        pytest.param(
            BayesianLinearRegression, {"forgetting": "adaptive"}, 0.05, marks=pytest.mark.slow
        ),
        (BayesianLinearRegression, {"noise": "linear"}, 0.05),
        (BayesianPoissonRegression, {}, 0.05),
        pytest.param(BayesianLogisticRegression, {}, 0.05, marks=pytest.mark.slow),
        pytest.param(BayesianQuantileRegression, {}, 0.05, marks=pytest.mark.slow),
        pytest.param(BayesianRobustRegression, {}, 0.05, marks=pytest.mark.slow),
    ],
)
def test_every_model_grows(kind: Any, settings: dict[str, Any], bound: float) -> None:
    x, y = drift(90)
    if kind is BayesianPoissonRegression:
        y = np.random.default_rng(0).poisson(np.exp(y)).astype(float)
    elif kind is BayesianLogisticRegression:
        y = (y > 0.0).astype(float)
    stream = kind(basis=Spline(), **settings)
    for first in range(0, 90, 30):
        stream.partial_fit(x[first : first + 30], y[first : first + 30])
    fixed = with_its_knots(stream)
    for first in range(0, 90, 30):
        fixed.partial_fit(x[first : first + 30], y[first : first + 30])
    expected = fixed.predict(x)
    scale = max(1.0, float(np.std(expected)))
    np.testing.assert_allclose(stream.predict(x), expected, atol=bound * scale)
    if kind is not BayesianLogisticRegression:
        widths, right = (np.diff(one.predict_interval(x))[:, 0] for one in (stream, fixed))
        np.testing.assert_allclose(widths.mean(), right.mean(), rtol=0.1)


def test_models_of_different_domains_merge() -> None:
    x, y = drift(400)
    parts = [slice(0, 180), slice(150, 400)]
    x, y = np.vstack([x[part] for part in parts]), np.concatenate([y[part] for part in parts])
    parts = [slice(0, 180), slice(180, 430)]
    one, other = (BayesianLinearRegression(basis=Spline()).fit(x[p], y[p]) for p in parts)
    before = dumps(other)
    turned = loads(before).merge(one)
    merged = one.merge(other)
    assert dumps(other) == before
    np.testing.assert_allclose(turned.predict(PLACES), merged.predict(PLACES), atol=1e-9)
    whole = BayesianLinearRegression(basis=Spline()).fit(x, y)
    places = PLACES[2:-4]
    low, high = whole.predict_interval(places, of="mean").T
    moved = (merged.predict(places) - whole.predict(places)) / ((high - low) / 3.92)
    assert np.abs(moved).max() < 0.3
    empty = BayesianLinearRegression(basis=Spline()).merge(merged)
    np.testing.assert_allclose(empty.predict(PLACES), merged.predict(PLACES))


def test_parts_of_one_model_merge_exactly() -> None:
    x, y = drift(300)
    start = dumps(BayesianLinearRegression(basis=Spline()).fit(x[100:140], y[100:140]))
    one, other = (
        loads(start).partial_fit(x[140:], y[140:]),
        loads(start).partial_fit(x[:99], y[:99]),
    )
    one.merge(other)
    rows = np.r_[:99, 100:300, 100:140]  # of the start twice
    expected = with_its_knots(one).fit(x[rows], y[rows]).predict(x)
    np.testing.assert_allclose(one.predict(x), expected, atol=1e-8)


def test_a_feature_with_a_single_value_is_a_line_until_it_varies() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(200, 2))
    X[:100, 1] = 2.0
    y = np.sin(3.0 * X[:, 0]) + np.square(X[:, 1]) + 0.1 * rng.normal(size=200)
    model = BayesianLinearRegression(basis=Spline()).fit(X[:100], y[:100])
    assert [len(knots) for knots in model.basis_.knots_] == [48, 1]
    assert model.posterior_.names[-1] == "x1_line"
    again = loads(dumps(model)).partial_fit(X[100:], y[100:])
    assert np.std(again.predict(X) - y) < 0.15
    assert len(again.basis_.knots_[1]) == 48


def test_levels_and_other_bases_stay_as_they_are() -> None:
    x, y = drift(200)
    frame = pd.DataFrame({"time": x[:, 0], "hour": np.arange(200.0) % 24, "shop": ["a", "b"] * 100})
    bases = {"time": Spline(), "hour": Fourier(period=24.0)}
    model = BayesianLinearRegression(basis=bases, categorical_features="auto")
    for first in range(0, 200, 50):
        model.partial_fit(frame[first : first + 50], y[first : first + 50])
    fixed = BayesianLinearRegression(
        basis=bases | {"time": Spline(knots=model.basis_.blocks_[0][1].knots_[0])},
        categorical_features="auto",
    ).fit(frame, y)
    np.testing.assert_allclose(model.predict(frame), fixed.predict(frame), atol=1e-8)
    np.testing.assert_allclose(loads(dumps(model)).predict(frame), model.predict(frame))


def test_what_is_beyond_all_knots_is_on_a_line() -> None:
    made = Spline().fit([[0.0], [1e-3]]).reaching(np.array([[1e308]]))
    assert len(made.knots_[0]) == 48
    np.testing.assert_allclose(made.transform([[0.5e-3]])[0, 0], 0.0, atol=1e-9)


def learn_a_sine_beside(far: list[float], size: int, unit: float = 1.0) -> tuple[Any, ...]:
    """150 rows in [0, 6], then 150 with those far away in front, in batches; and all rows."""
    rng = np.random.default_rng(0)
    x = np.insert(rng.uniform(0.0, 6.0, 300), 150, far)[:, None]
    y = np.sin(x[:, 0]) + 0.1 * rng.normal(size=len(x))
    model = BayesianLinearRegression(basis=Spline()).partial_fit(unit * x[:150], y[:150])
    for first in range(150, len(x), size):
        part = slice(first, first + size)
        model.partial_fit(unit * x[part], y[part])
    return model, x, y


INSIDE = np.linspace(0.1, 5.9, 50)[:, None]


def measure_error(model: Any) -> float:
    return float(np.sqrt(np.mean(np.square(model.predict(INSIDE) - np.sin(INSIDE[:, 0])))))


@pytest.mark.parametrize("size", [50, 1000])
@pytest.mark.parametrize("far", [[29.0], [31.0], [1e3], [1e6], [-1e6], [-1e3, 1e4]])
def test_a_few_rows_far_away_leave_the_curve_of_many(far: list[float], size: int) -> None:
    model, x, y = learn_a_sine_beside(far, size)
    assert measure_error(model) < 0.035
    fixed = with_its_knots(model).fit(x, y)
    np.testing.assert_allclose(model.predict(INSIDE), fixed.predict(INSIDE), atol=1e-5)
    assert model.basis_.reach_[0, 0] <= x.min()
    assert model.basis_.reach_[0, 1] >= x.max()


def test_far_rows_are_far_in_any_unit_and_the_other_side_goes_on() -> None:
    model, _, y = learn_a_sine_beside([1e5], 50)
    other, _, _ = learn_a_sine_beside([1e5], 50, unit=1024.0)
    np.testing.assert_allclose(other.predict(1024.0 * INSIDE), model.predict(INSIDE), atol=1e-6)
    last = model.basis_.knots_[0][-1]
    again = loads(dumps(model)).partial_fit(-INSIDE, y[:50])
    assert again.basis_.knots_[0][0] <= -5.9
    assert again.basis_.knots_[0][-1] == last
    np.testing.assert_array_equal(again.basis_.reach_[0, 1], 1e5)


def test_merging_with_a_model_that_met_a_far_row_leaves_the_curve() -> None:
    wild, _, _ = learn_a_sine_beside([1e6], 50)
    calm, _, _ = learn_a_sine_beside([], 50)
    for merged in (loads(dumps(wild)).merge(calm), loads(dumps(calm)).merge(wild)):
        assert measure_error(merged) < 0.035
        assert merged.basis_.knots_[0][-1] < 10.0


def test_what_was_asked_for_does_not_grow() -> None:
    far = np.array([[5.0]])
    for basis in (
        Spline(n_knots=9),
        Spline(domain=(0.0, 1.0)),
        Spline(outside="clip"),
        Spline(knots="quantiles"),
        Spline(knots=[0.0, 0.5, 1.0]),
    ):
        made = basis.fit([[0.0], [1.0]])
        assert made.reaching(far) is made
    x, y = drift(60)
    through_origin = BayesianLinearRegression(basis=Spline(), fit_intercept=False)
    through_origin.partial_fit(x[:30], y[:30]).partial_fit(x[30:], y[30:])
    assert through_origin.basis_.reach_[0, 1] == x[29, 0]


def test_a_call_that_raises_and_rows_of_no_weight_leave_the_domain() -> None:
    x, y = drift(60)
    model = BayesianLinearRegression(basis=Spline()).fit(x[:30], y[:30])
    before = dumps(model)
    with pytest.raises(ValueError, match="NaN in row 0"):
        model.partial_fit([[np.nan]], [1.0])
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit([[9.0]], [np.nan])
    model.predict(x)
    assert dumps(model) == before
    model.partial_fit([[99.0]], [1.0], [0.0])
    assert model.basis_.reach_[0, 1] == x[29, 0]
