"""Indexes of periods and of times with a zone are times, and nothing warns."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from posterity.forecasting import Forecaster


@pytest.mark.parametrize(
    ("index", "following"),
    [
        (pd.period_range("2020-01", periods=40, freq="M"), "2023-05"),
        (pd.date_range("2020-03-20", periods=60, freq="h", tz="Europe/Berlin"), "2020-03-22T11"),
        (pd.date_range("2020-01-31", periods=40, freq="ME"), "2023-05-31"),
    ],
)
def test_an_index_says_when(index: pd.Index, following: str) -> None:
    values = pd.Series(np.random.default_rng(0).normal(size=len(index)), index)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        forecast = Forecaster().fit(values).forecast(1)
    assert forecast.times[0] == np.datetime64(following)
