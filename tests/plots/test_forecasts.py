"""The fan says what the forecast says."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="needs Matplotlib (posterity[plots])")
from matplotlib.figure import Figure

from posterity.forecasting import Forecaster, Form
from posterity.plots import (
    plot_autocorrelation,
    plot_components,
    plot_coverage_by_step,
    plot_forecast,
    plot_forms,
)

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
    assert ax.get_ylabel() == "litres"


def test_history_is_drawn_by_itself_and_the_series_is_named() -> None:
    y = np.cumsum(np.random.default_rng(0).normal(size=(2, 80)), axis=1)
    forecast = Forecaster(forms=FORMS).fit({"a": y[0], "b": y[1]}).forecast(4)
    ax = plot_forecast(forecast, Figure().subplots(), series="b")
    np.testing.assert_array_equal(ax.lines[1].get_ydata(), y[1, -30:])
    np.testing.assert_array_equal(ax.lines[1].get_xdata(), np.arange(50, 80))
    assert ax.get_title(loc="left") == "Forecast of b"
    assert {text.get_text() for text in ax.get_legend().get_texts()} >= {"50%", "80%", "95%"}
    assert not len(plot_forecast(forecast, series="b", history=None).lines[1].get_xdata())


def test_components_are_drawn_one_below_the_other() -> None:
    y = np.sin(np.arange(80) * 2 * np.pi / 7) + np.arange(80)
    forecast = Forecaster(seasonality=7, forms=FORMS).fit(y).forecast(14)
    axes = plot_components(forecast, unit="MW").axes
    assert [ax.get_title(loc="left") for ax in axes] == ["trend", "season 7"]
    trend = forecast.components()["trend"]
    np.testing.assert_allclose(axes[0].lines[0].get_ydata(), trend.mean())
    assert axes[1].get_ylabel() == "MW"


def test_of_several_series_one_is_named() -> None:
    y = np.cumsum(np.random.default_rng(0).normal(size=(2, 40)), axis=1)
    forecast = Forecaster(forms=FORMS).fit({"a": y[0], "b": y[1]}).forecast(4)
    ax = plot_forecast(forecast, Figure().subplots(), series="b")
    np.testing.assert_allclose(ax.lines[0].get_ydata(), forecast.median()[1])
    with pytest.raises(ValueError, match="name one of the 2"):
        plot_forecast(forecast, Figure().subplots())
    with pytest.raises(ValueError, match="no series 'c'"):
        plot_forecast(forecast, Figure().subplots(), series="c")


def test_coverage_by_step_is_that_of_the_progress() -> None:
    y = np.cumsum(np.random.default_rng(0).normal(size=80))
    progress = Forecaster(forms=FORMS).fit(y[:50]).forecast_then_learn(y[50:], h=4)
    ax = plot_coverage_by_step(progress, Figure().subplots())
    by_label = {line.get_label(): line for line in ax.lines}
    np.testing.assert_allclose(by_label["held"].get_ydata(), progress.by_step()["coverage"])
    assert by_label["should be 95%"].get_ydata()[0] == 0.95


def test_autocorrelation_shows_what_a_model_leaves_out() -> None:
    """The errors of a naive forecast of white noise go back and forth."""
    y = np.random.default_rng(0).normal(size=200)
    naive = Forecaster(forms=[Form(drift=False)], outliers="learn").fit(y[:50])
    y[120] = np.nan
    ax = plot_autocorrelation(naive.forecast_then_learn(y[50:], h=1), Figure().subplots(), n_lags=8)
    bars = [bar.get_height() for bar in ax.patches]
    assert len(bars) == 8
    assert bars[0] == pytest.approx(-0.5, abs=0.15)
    assert np.abs(bars[1:]).max() < 0.25


def test_forms_are_drawn_by_weight() -> None:
    y = np.cumsum(np.random.default_rng(0).normal(size=(2, 60)), axis=1)
    forecast = Forecaster(forms=[*FORMS, Form()]).fit({"a": y[0], "b": y[1]}).forecast(2)
    ax = plot_forms(forecast, Figure().subplots(), series="b")
    np.testing.assert_allclose(
        [bar.get_width() for bar in ax.patches], np.sort(forecast.weights[1])
    )
    with pytest.raises(ValueError, match="name one of the 2"):
        plot_forms(forecast, Figure().subplots())
