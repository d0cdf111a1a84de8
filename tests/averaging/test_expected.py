"""Intervals of what is expected, and single rows, in every kind of model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from posterity import Averaged, BayesianLinearRegression, GroupedRegression
from posterity.sparse import (
    DiagonalLinearRegression,
    DiagonalPoissonRegression,
    SparseLinearRegression,
    SparsePoissonRegression,
)

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(120, 2)), columns=["a", "b"])
Y = 1.0 + X["a"] + 0.5 * RNG.normal(size=120)
COUNTS = RNG.poisson(np.exp(0.5 * X["a"]))
GROUPS = np.arange(120) % 5


@pytest.mark.parametrize("noise_precision", [None, 4.0])
def test_an_average_of_one_is_the_model(noise_precision: float | None) -> None:
    plain = BayesianLinearRegression(prior_precision=1.0, noise_precision=noise_precision)
    average = Averaged([plain]).fit(X, Y)
    plain.fit(X, Y)
    for of in ("observation", "mean"):
        ends: Any = average.predict_interval(X, 0.9, of=of)
        np.testing.assert_allclose(ends, plain.predict_interval(X, 0.9, of=of), rtol=1e-6)
    row = {"b": 0.5, "a": 1.0}
    told = average.predict_interval_one(row)
    np.testing.assert_allclose(told, plain.predict_interval_one(row), rtol=1e-6)


def test_one_row_of_a_group() -> None:
    model = GroupedRegression(by="shop").fit(X.assign(shop=GROUPS), Y)
    frame = X[:3].assign(shop=[1, 2, 99])
    whole = model.predict_distribution(frame)
    for place, row in enumerate(frame.to_dict("records")):
        one = model.predict_distribution_one(row)
        assert one.mean() == pytest.approx(whole.mean()[place])
        assert model.predict_interval_one(row) == pytest.approx(
            tuple(model.predict_interval(frame)[place])
        )
    keyed = GroupedRegression().fit(X, Y, groups=GROUPS)
    low, high = keyed.predict_interval_one({"a": 1.0, "b": 0.0}, 0.5, group=3)
    expected = keyed.predict_interval(pd.DataFrame({"a": [1.0], "b": [0.0]}), 0.5, groups=[3])[0]
    assert (low, high) == pytest.approx(tuple(expected))


def test_expected_values_of_several_targets() -> None:
    both = BayesianLinearRegression().fit(X, np.column_stack([Y, -Y]))
    one = BayesianLinearRegression().fit(X, Y)
    ends = both.predict_interval(X, 0.8, of="mean")
    assert ends.shape == (120, 2, 2)
    np.testing.assert_allclose(ends[:, 0], one.predict_interval(X, 0.8, of="mean"), rtol=1e-6)
    np.testing.assert_allclose(ends[:, 1], -ends[:, 0, ::-1], rtol=1e-6)


@pytest.mark.parametrize("kind", [DiagonalLinearRegression, SparseLinearRegression])
def test_expected_values_of_many_features(kind: Any) -> None:
    model = kind(noise_precision=4.0).fit(X, Y)
    mean, wide = (model.predict_interval(X, of=of) for of in ("mean", "observation"))
    assert np.all(mean[:, 0] > wide[:, 0])
    assert np.all(mean[:, 1] < wide[:, 1])
    variance = model.predict_distribution(X).var() - 0.25
    np.testing.assert_allclose(model.predict_mean_distribution(X).var(), variance, rtol=1e-6)
    with pytest.raises(ValueError, match="'observation' or 'mean'"):
        model.predict_interval(X, of="median")


@pytest.mark.parametrize("kind", [DiagonalPoissonRegression, SparsePoissonRegression])
def test_expected_counts_of_many_features(kind: Any) -> None:
    model = kind().fit(X, COUNTS)
    low, high = model.predict_interval(X, of="mean").T
    assert np.all(low < model.predict(X))
    assert np.all(model.predict(X) < high)
    with pytest.raises(ValueError, match="'observation' or 'mean'"):
        model.predict_interval(X, of="rate")


def test_a_table_of_many_features() -> None:
    rows = X.assign(shop=[f"s{k}" for k in GROUPS])
    model = SparseLinearRegression().fit(rows, Y)
    table = model.summary(0.9)
    assert table["name"].tolist() == ["intercept", *model.feature_names_]
    np.testing.assert_allclose(table["mean"].iloc[1:], model.coef_)
    np.testing.assert_allclose(table["sd"].iloc[1:], model.coef_std_)
    assert (table.loc[table["column"] == "shop", "name"].str.startswith("shop=")).all()
    assert (table["column"] == "shop").sum() == 5
