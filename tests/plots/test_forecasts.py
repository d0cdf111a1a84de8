"""The fan says what the forecast says."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="needs Matplotlib (posterity[plots])")
from matplotlib.figure import Figure

from posterity.forecasting import Forecaster, Form
from posterity.plots import plot_forecast

FORMS = [Form(1, (1, 2))]


def test_median_history_and_outcomes() -> None:
    y = np.cumsum(np.random.default_rng(0).normal(size=60))
    forecast = Forecaster(forms=FORMS).fit(y[:50]).forecast(10)
    ax = plot_forecast(
        forecast, Figure().subplots(), history=y[:50], outcomes=y[50:], n_paths=3, unit="litres"
    )
    by_label = {line.get_label(): line for line in ax.lines}
    np.testing.assert_allclose(by_label["median"].get_ydata(), forecast.median())
    np.testing.assert_array_equal(by_label["what came"].get_xdata(), np.arange(50, 60))
    assert any(np.array_equal(line.get_xdata(), np.arange(50)) for line in ax.lines)
    assert len(ax.collections) == 3
    assert ax.get_ylabel() == "y (litres)"


def test_of_several_series_one_is_named() -> None:
    y = np.cumsum(np.random.default_rng(0).normal(size=(2, 40)), axis=1)
    forecast = Forecaster(forms=FORMS).fit({"a": y[0], "b": y[1]}).forecast(4)
    ax = plot_forecast(forecast, Figure().subplots(), series="b")
    np.testing.assert_allclose(ax.lines[0].get_ydata(), forecast.median()[1])
    with pytest.raises(ValueError, match="name one of the 2"):
        plot_forecast(forecast, Figure().subplots())
    with pytest.raises(ValueError, match="no series 'c'"):
        plot_forecast(forecast, Figure().subplots(), series="c")
