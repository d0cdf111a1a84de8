"""Calibration, differences, coefficients along time, change points and residuals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib")
from matplotlib.figure import Figure
from scipy import stats

from posterity import BayesianLinearRegression
from posterity.distributions import Normal
from posterity.evaluation import (
    compare_predictions,
    follow_coefficients,
    progressive_validation,
)
from posterity.forgetting import Changepoint
from posterity.plots import (
    plot_calibration,
    plot_changepoints,
    plot_coefficients_along_time,
    plot_coverage_by_slice,
    plot_differences,
    plot_error_along_time,
    plot_pit,
    plot_residuals,
)


def ax() -> Any:
    return Figure().subplots()


def stream(n: int = 600) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return X, X @ [1.0, -2.0] + rng.normal(size=n)


def legend(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_pit_bars_are_the_histogram() -> None:
    result = progressive_validation(BayesianLinearRegression(), *stream())
    axes = plot_pit(result, ax(), bins=10)
    heights = [bar.get_height() for bar in axes.containers[0]]
    assert result.pit is not None
    assert heights == pytest.approx(result.pit.histogram(10))


def test_calibration_of_several_models() -> None:
    X, y = stream()
    models = {str(a): BayesianLinearRegression(prior_precision=a) for a in (1.0, 1e4)}
    result = compare_predictions(models, X, y)
    axes = plot_calibration(result.results, ax())
    assert len(axes.lines) == 3
    assert legend(axes)[1].startswith("1.0: off by ")
    axes = plot_differences(result, ax())
    assert set(legend(axes)) == {"1.0", "10000.0"}
    assert axes.get_title(loc="left") == f"Mean loss less that of {result.best}"


def test_slices_are_drawn_and_missing_ones_named() -> None:
    result = progressive_validation(BayesianLinearRegression(), *stream(), slices={1: 5})
    assert len(plot_coverage_by_slice(result, 1, ax()).get_xticks()) == 5
    with pytest.raises(ValueError, match="there are no slices of '0', only of: 1; give slices="):
        plot_coverage_by_slice(result, 0, ax())


def test_drift_is_shaded() -> None:
    X, y = stream(4000)
    y[2000:2600] += 8.0
    result = progressive_validation(BayesianLinearRegression(), X, y)
    assert "worse than before" in legend(plot_error_along_time(result, ax()))
    assert "worse than before" not in legend(plot_error_along_time(result, ax(), shade=()))
    axes = plot_error_along_time(result, ax(), shade=[(100, 200)])
    span = axes.patches[0].get_extents().transformed(axes.transData.inverted())
    assert span.x0 == pytest.approx(100)


def test_coefficients_end_where_the_model_does() -> None:
    X, y = stream()
    model = BayesianLinearRegression()
    path = follow_coefficients(model, X, y, points=20)
    assert path.mean[-1, 1:] == pytest.approx(model.coef_)
    assert path.row_end[-1] == 600
    whole = BayesianLinearRegression().fit(X, y)
    assert path.mean[-1, 1:] == pytest.approx(whole.coef_, rel=1e-6)
    axes = plot_coefficients_along_time(path, ax(), truth=[1.0, -2.0])
    assert legend(axes) == ["x0", "x1", "truth"]
    only = plot_coefficients_along_time(path, ax(), coefficients=["x1"])
    assert only.lines[0].get_ydata()[-1] == pytest.approx(model.coef_[1])
    with pytest.raises(ValueError, match="no coefficient 'x9': there are intercept, x0, x1"):
        plot_coefficients_along_time(path, ax(), coefficients=["x9"])
    with pytest.raises(ValueError, match="points must be at least 1, got 0"):
        follow_coefficients(model, X, y, points=0)


def test_changepoints() -> None:
    axes = plot_changepoints([0.0, 0.9, 0.1], ax(), first_row=10)
    assert axes.get_xlim() == (10, 13)
    with pytest.raises(ValueError, match="all values between 0 and 1"):
        plot_changepoints([2.0], ax())


def test_changes_of_a_model() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([0.0, 20.0], 30) + rng.normal(size=60)
    model = BayesianLinearRegression(forgetting=Changepoint())
    model.predict_then_learn(np.ones((60, 1)), y)
    axes = plot_changepoints(model, ax())
    assert axes.get_ylabel() == "probability of a change"


def test_residuals_are_quantile_residuals() -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(3.0, 2.0, size=300)
    predictive = Normal(np.full(300, 3.0), np.full(300, 2.0))
    axes = plot_residuals(predictive, y, ax(), against="time")
    assert axes.lines[-1].get_ydata() == pytest.approx((y - 3.0) / 2.0)
    axes = plot_residuals(predictive, y, ax(), against="quantiles")
    ordered = np.sort(axes.lines[-1].get_ydata())
    expected = np.sort((y - 3.0) / 2.0)
    assert ordered == pytest.approx(expected)
    assert stats.kstest(ordered, "norm").pvalue > 0.01
    with pytest.raises(ValueError, match="against is 'x': it must be one of 'mean', 'time'"):
        plot_residuals(predictive, y, ax(), against="x")


def test_thinned_residuals_keep_the_extremes() -> None:
    y = np.random.default_rng(0).normal(size=50_000)
    y[33_333] = 7.5
    axes = plot_residuals(Normal(np.zeros(50_000), np.ones(50_000)), y, ax(), against="time")
    drawn = axes.lines[-1].get_ydata()
    assert len(drawn) < 6000
    assert drawn.max() == pytest.approx(7.5, rel=1e-3)
