"""Nixtla's methods: frames in, frames out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("pandas", reason="needs pandas")

import pandas

from posterity import Forecaster
from posterity.adapters.nixtla import NixtlaForecaster
from posterity.forecasting import Form

FORMS = [Form(7, (1, 7)), Form(1, (1, 2))]


def frame(n: int = 60) -> Any:
    rng = np.random.default_rng(0)
    days = pandas.date_range("2026-01-01", periods=n)
    parts = [
        pandas.DataFrame(
            {"unique_id": name, "ds": days, "y": np.sin(np.arange(n)) + rng.normal(size=n)}
        )
        for name in ("a", "b")
    ]
    return pandas.concat(parts)


def test_it_says_what_the_forecaster_says() -> None:
    expected = Forecaster(forms=FORMS).fit(frame()).forecast(5)
    predictive = NixtlaForecaster(forms=FORMS).fit(frame()).predict(5, level=[80, 95])
    assert predictive.columns.tolist() == list(expected.to_columns())
    np.testing.assert_array_equal(predictive["Forecaster"], expected.median().ravel())
    np.testing.assert_array_equal(
        predictive["Forecaster-hi-95"], expected.interval(0.95)[1].ravel()
    )
    plain = NixtlaForecaster(forms=FORMS).forecast(5, frame())
    assert plain.columns.tolist() == ["unique_id", "ds", "Forecaster"]


def test_later_rows_are_learned() -> None:
    whole = frame()
    first = whole["ds"] < whole["ds"].iloc[50]
    parts = NixtlaForecaster(forms=FORMS).fit(whole[first]).update(whole[~first])
    at_once = NixtlaForecaster(forms=FORMS).fit(whole)
    np.testing.assert_allclose(parts.predict(3)["Forecaster"], at_once.predict(3)["Forecaster"])


def test_polars_in_polars_out() -> None:
    polars = pytest.importorskip("polars")
    predictive = NixtlaForecaster(forms=FORMS).forecast(2, polars.from_pandas(frame()), level=[80])
    assert isinstance(predictive, polars.DataFrame)
    assert predictive.height == 4


def test_cross_validation_knows_nothing_of_what_comes() -> None:
    whole = frame()
    whole["price"] = np.random.default_rng(1).normal(size=len(whole))
    predictive = NixtlaForecaster(forms=FORMS).cross_validation(4, whole, n_windows=2, level=[90])
    assert len(predictive) == 2 * 2 * 4
    cut = predictive["cutoff"].iloc[0]
    known = whole["ds"] <= cut
    then = NixtlaForecaster(forms=FORMS).fit(whole[known]).predict(4, whole[~known])
    np.testing.assert_allclose(predictive["Forecaster"][:8], then["Forecaster"])
    came = whole.set_index(["unique_id", "ds"])["y"]
    keys = list(zip(predictive["unique_id"], predictive["ds"], strict=True))
    np.testing.assert_array_equal(predictive["y"], came.loc[keys])


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="in percent"):
        NixtlaForecaster(forms=FORMS).fit(frame()).predict(2, level=[0.0])
    with pytest.raises(ValueError, match="columns unique_id, ds and y"):
        NixtlaForecaster().fit(np.zeros(5))
