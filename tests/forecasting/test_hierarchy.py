"""Forecasts that add up: coherent, and of least variance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from posterity.forecasting import Forecast, Forecaster, VectorAutoregression, reconcile
from posterity.forecasting.forms import Form
from posterity.forecasting.paths import Paths

GROUPS = {"all": ["north", "south"], "north": ["a", "b"]}
IDS = ("a", "b", "south", "north", "all")
# The textbook's summing matrix, from the parts to all.
SUMMING = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]], dtype=float)


def gaussian(mean: Any, sd: Any) -> Forecast:
    """One step of independent normals."""
    paths = Paths(np.reshape(mean, (-1, 1, 1)), np.ones((len(mean), 1, 1)), sd[:, None], log=False)
    times = np.zeros((len(mean), 1), dtype=np.int64)
    ones = np.ones((len(mean), 1))
    return Forecast.of(IDS, times, [Form()], [paths], ones, single=False)


@pytest.mark.parametrize("seed", range(5))
def test_means_and_widths_are_those_of_least_trace(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mean, sd = rng.normal(size=5), rng.uniform(0.5, 3.0, size=5)
    predictive = reconcile(gaussian(mean, sd), GROUPS)
    # Generalized least squares: parts = (S' W^-1 S)^-1 S' W^-1 m.
    weighted = SUMMING.T / np.square(sd)
    among = np.linalg.inv(weighted @ SUMMING)
    assert np.allclose(predictive.mean()[:, 0], SUMMING @ among @ weighted @ mean)
    assert np.allclose(predictive.covariance()[0], SUMMING @ among @ SUMMING.T)
    assert np.allclose(predictive.std()[:, 0], np.sqrt(np.diag(SUMMING @ among @ SUMMING.T)))
    assert (predictive.std()[:, 0] < sd).all()
    drawn = predictive.rvs(4000, random_state=0)[:, :, 0]
    assert np.allclose(drawn[:, 4], drawn[:, 2] + drawn[:, 3])
    assert np.allclose(drawn[:, 3], drawn[:, 0] + drawn[:, 1])
    assert np.allclose(drawn.std(axis=0), predictive.std()[:, 0], rtol=0.06)


def test_bottom_up_is_the_sum_of_the_parts() -> None:
    mean, sd = np.array([1.0, 2.0, 4.0, 9.0, 9.0]), np.array([1.0, 2.0, 2.0, 5.0, 5.0])
    predictive = reconcile(gaussian(mean, sd), GROUPS, bottom_up=True)
    assert np.allclose(predictive.mean()[:, 0], [1.0, 2.0, 4.0, 3.0, 7.0])
    assert np.allclose(predictive.std()[:, 0], [1.0, 2.0, 2.0, np.sqrt(5.0), 3.0])


def test_sums_that_were_not_forecast_are_added() -> None:
    rng = np.random.default_rng(0)
    parts = {"a": rng.normal(size=60), "b": 5.0 + rng.normal(size=60)}
    forecast = Forecaster(forms=[Form(drift=False)]).fit(parts).forecast(3)
    predictive = reconcile(forecast, {"both": ["a", "b"], "twice": ["both", "both"]})
    assert predictive.ids == ("a", "b", "both", "twice")
    assert np.allclose(predictive.mean()[:2], forecast.mean())
    assert np.allclose(predictive.mean()[2], forecast.mean().sum(axis=0))
    assert np.allclose(predictive.std()[2], np.sqrt(forecast.var().sum(axis=0)))
    assert np.allclose(predictive.mean()[3], 2.0 * predictive.mean()[2])
    assert predictive.times.shape == (4, 3)
    assert predictive.to_columns()["unique_id"].tolist()[6:9] == ["both"] * 3


def test_signals_that_depend_on_each_other_are_conditioned_with_their_covariance() -> None:
    rng = np.random.default_rng(0)
    common = rng.normal(size=(80, 1))
    y = common + 0.3 * rng.normal(size=(80, 2))
    model = VectorAutoregression(lags=1).fit({"a": y[:, 0], "b": y[:, 1], "sum": y.sum(axis=1)})
    predictive = reconcile(model.forecast(4), {"sum": ["a", "b"]})
    assert np.allclose(predictive.mean()[2], predictive.mean()[0] + predictive.mean()[1])
    covariance = predictive.covariance()
    both = covariance[:, 0, 0] + covariance[:, 1, 1] + 2.0 * covariance[:, 0, 1]
    assert np.allclose(covariance[:, 2, 2], both)


def test_totals_are_those_of_paths_and_of_parts() -> None:
    rng = np.random.default_rng(0)
    y = np.cumsum(rng.normal(size=(80, 2)), axis=0)
    model = VectorAutoregression(lags=1).fit({"a": y[:, 0], "b": y[:, 1]})
    base = model.forecast(5)
    predictive = reconcile(base, {"sum": ["a", "b"]})
    total = predictive.total(3)
    assert np.allclose(total.mean()[:, 0], predictive.mean()[:, :3].sum(axis=1))
    assert np.allclose(total.mean()[2], total.mean()[:2].sum())
    assert np.allclose(total.std()[:2], base.total(3).std(), rtol=0.05)
    paths = predictive.rvs(20_000, random_state=1)[:, :, :3].sum(axis=2)
    assert np.allclose(total.std()[:, 0], paths.std(axis=0), rtol=0.05)
    assert np.array_equal(total.std(), predictive.total(slice(0, 3)).std())
    with pytest.raises(ValueError, match="5 were forecast"):
        predictive.total(6)


def test_what_is_refused() -> None:
    forecast = gaussian(np.zeros(5), np.ones(5))
    with pytest.raises(ValueError, match="'c', a part of 'all', was not forecast"):
        reconcile(forecast, {"all": ["a", "c"]})
    with pytest.raises(ValueError, match="a part of itself"):
        reconcile(forecast, {"x": ["y"], "y": ["x"]})
    with pytest.raises(ValueError, match="has no parts"):
        reconcile(forecast, {"x": []})
    y = np.random.default_rng(0).normal(size=60)
    uneven = Forecaster(forms=[Form()]).fit({"a": y, "b": y[:50], "c": y}).forecast(2)
    with pytest.raises(ValueError, match=r"different times: 'a' for 60 to 61 and 'b' for 50 to 51"):
        reconcile(uneven, {"all": ["a", "b"]})
    with pytest.raises(ValueError, match="the sum 'b' would add up different times"):
        reconcile(uneven, {"b": ["a", "c"]})
    assert reconcile(uneven, {"all": ["a", "c"]}).ids == ("a", "b", "c", "all")
    with pytest.raises(ValueError, match="there is a single series"):
        reconcile(Forecaster().fit(np.arange(20.0) % 3).forecast(2), {"x": ["y"]})


@pytest.mark.parametrize("bottom_up", [False, True])
def test_sums_end_where_all_of_their_parts_do(bottom_up: bool) -> None:
    rng = np.random.default_rng(0)
    parts = {name: rng.poisson(0.5, size=80).astype(float) for name in "ab"}
    parts |= {"c": np.exp(0.8 * rng.normal(size=80)), "d": rng.normal(size=80)}
    parts["all"] = parts["a"] + parts["b"] + parts["c"]
    forms = [Form(0, drift=False), Form(0, drift=False, log=True)]
    forecast = Forecaster(forms=forms, seasonality=()).fit(parts).forecast(6)
    groups = {"all": ["a", "b", "c"], "free": ["a", "d"]}
    agreed = reconcile(forecast, groups, bottom_up=bottom_up)
    low = agreed.quantile(0.001)
    assert (low[[0, 1, 2, 4]] >= 0.0).all()
    assert (low[[3, 5]] < 0.0).all()
    np.testing.assert_allclose(agreed.mean()[4], agreed.mean()[:3].sum(axis=0), rtol=1e-3)
    total = agreed.total().quantile(0.001)[:, 0]
    assert (total[[0, 1, 2, 4]] >= 0.0).all()
    assert (total[[3, 5]] < 0.0).all()
