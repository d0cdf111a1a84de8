"""Averages and calibrated models of frames with text, categories and truth values."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from posterity import BayesianLinearRegression, BayesianRobustRegression
from posterity.averaging import Averaged
from posterity.calibration import Conformal, Recalibrated

rng = np.random.default_rng(3)
N = 60
FRAME = pd.DataFrame(
    {
        "km": rng.normal(size=N),
        "zone": rng.choice(list("bca"), size=N),
        "kind": pd.Categorical(rng.choice(["x", "y"], size=N)),
        "wet": rng.random(N) < 0.4,
        "hour": pd.array(rng.integers(0, 3, size=N), dtype="Int64"),
    }
)
Y = (FRAME.km + 2.0 * (FRAME.zone == "b") + rng.normal(size=N)).to_numpy()
ROWS = FRAME.to_dict("records")
UNKNOWN = FRAME.assign(zone="elsewhere")
WRAP: dict[str, Callable[[Any], Any]] = {
    "averaged": lambda model: Averaged([model]),
    "conformal": Conformal,
    "recalibrated": Recalibrated,
}


@pytest.mark.parametrize("name", WRAP)
def test_a_wrapped_model_learns_what_it_would_alone(name: str) -> None:
    alone = BayesianLinearRegression().fit(FRAME, Y)
    for table in (FRAME, pl.from_pandas(FRAME), pa.Table.from_pandas(FRAME)):
        wrapped = WRAP[name](BayesianLinearRegression()).fit(table, Y)
        model = wrapped.models_[0] if name == "averaged" else wrapped.model_
        np.testing.assert_allclose(model.predict(table), alone.predict(FRAME), rtol=1e-9)
        np.testing.assert_allclose(wrapped.predict(table), alone.predict(FRAME), atol=0.05)
        assert list(wrapped.feature_names_in_) == list(FRAME.columns)
        assert wrapped.predict_interval(table).shape == (N, 2)
    assert [one.name for one in model.categories_.each] == ["zone", "kind"]
    np.testing.assert_allclose(wrapped.predict(UNKNOWN), alone.predict(UNKNOWN), atol=0.05)
    again = pickle.loads(pickle.dumps(wrapped))
    np.testing.assert_array_equal(again.predict(FRAME), wrapped.predict(FRAME))


@pytest.mark.parametrize("name", WRAP)
def test_rows_are_batches_and_new_levels_join(name: str) -> None:
    rows, batches = (WRAP[name](BayesianLinearRegression(prior_precision=1.0)) for _ in range(2))
    for row, target in zip(ROWS[:20], Y, strict=False):
        rows.learn_one(row, target)
    rows.learn_one({**ROWS[20], "zone": "new"}, Y[20])
    batches.fit(FRAME[:20], Y[:20]).partial_fit(FRAME[20:21].assign(zone="new"), Y[20:21])
    np.testing.assert_allclose(rows.predict(FRAME), batches.predict(FRAME))
    new = {**ROWS[0], "zone": "new"}
    assert rows.predict_one(new) == pytest.approx(batches.predict(FRAME[:1].assign(zone="new"))[0])
    low, high = rows.predict_interval_one({**new, "zone": "elsewhere"})
    assert low < high


def test_weights_are_those_of_columns_of_zeros_and_ones() -> None:
    models = [BayesianLinearRegression(prior_precision=a) for a in (0.1, 1.0, 10.0)]
    model = Averaged(models).fit(FRAME[["km", "zone"]], Y)
    coded = pd.get_dummies(FRAME[["km", "zone"]], dtype=float)
    np.testing.assert_allclose(model.weights_, Averaged(models).fit(coded, Y).weights_)
    half = Averaged(models).fit(FRAME[["km", "zone"]][:30], Y[:30])
    half.merge(Averaged(models).fit(FRAME[["km", "zone"]][30:], Y[30:]))
    np.testing.assert_allclose(half.weights_, model.weights_)
    predictive = Averaged(models).predict_then_learn(FRAME[["km", "zone"]], Y)
    assert predictive.logpdf(Y).shape == (N,)


def test_averages_of_different_models() -> None:
    models = [BayesianLinearRegression(), BayesianRobustRegression()]
    table = FRAME.assign(zone=pd.Categorical(FRAME.zone))
    model = Averaged(models).fit(table, Y)
    expected = [one.fit(table, Y) for one in models]
    mixed = model.weights_ @ np.stack([one.predict(table) for one in expected])
    np.testing.assert_allclose(model.predict(table), mixed, atol=0.05)


@pytest.mark.parametrize("name", WRAP)
def test_what_can_not_be_learned(name: str) -> None:
    wrap = WRAP[name]
    holes = FRAME.assign(zone=FRAME.zone.where(FRAME.index != 7))
    with pytest.raises(ValueError, match=r"column 'zone' is missing in row 7: drop the row, fill"):
        wrap(BayesianLinearRegression()).fit(holes, Y)
    model = wrap(BayesianLinearRegression(missing="level")).fit(holes, Y)
    assert np.isfinite(model.predict(holes)).all()
    model = wrap(BayesianLinearRegression()).fit(FRAME[["km"]], Y)
    with pytest.raises(ValueError, match="zone"):
        model.partial_fit(FRAME[["km", "zone"]], Y)
    with pytest.raises(ValueError, match=r"could not convert '.' to a number"):
        wrap(BayesianLinearRegression(categorical_features=None)).fit(FRAME[["km", "zone"]], Y)
    model = wrap(BayesianLinearRegression()).fit(FRAME, Y)
    with pytest.raises(ValueError, match="x has no 'zone': give every feature a value"):
        model.learn_one({k: v for k, v in ROWS[0].items() if k != "zone"}, 1.0)
    before = model.predict(FRAME)
    with pytest.raises(ValueError, match="km"):
        model.partial_fit(FRAME.assign(km=np.inf), Y)
    np.testing.assert_array_equal(model.predict(FRAME), before)
