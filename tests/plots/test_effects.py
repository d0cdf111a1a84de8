"""Figures of one feature's effect, of groups, and of coefficients that are to be compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("matplotlib", reason="needs Matplotlib (posterity[plots])")
from matplotlib.figure import Figure

from posterity import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianQuantileRegression,
    GroupedRegression,
)
from posterity.basis import Fourier
from posterity.plots import (
    plot_coefficients,
    plot_groups,
    plot_intervals,
    plot_partial_effect,
    plot_posterior_density,
)

RNG = np.random.default_rng(0)
X = pd.DataFrame({"hour": RNG.uniform(0, 24, 300), "load": 1000.0 * RNG.normal(size=300)})
Y = 3.0 * np.sin(2.0 * np.pi * X["hour"] / 24.0) + 0.002 * X["load"] + RNG.normal(size=300)
SHOP = RNG.integers(0, 8, 300)


@pytest.fixture
def ax() -> Any:
    return Figure().subplots()


def line_of(ax: Any, label: str) -> Any:
    return next(line for line in ax.lines if line.get_label() == label)


def shown(ax: Any) -> list[str]:
    return [label.get_text() for label in ax.get_yticklabels()]


def test_a_partial_effect_is_the_average_over_rows(ax: Any) -> None:
    model = BayesianLinearRegression(basis={"hour": Fourier(period=24.0)}).fit(X, Y)
    plot_partial_effect(model, X, "hour", ax, x=[3.0, 6.0, 18.0], size=2000)
    places, drawn = line_of(ax, "mean").get_xydata().T
    expected = [model.predict(X.assign(hour=place)).mean() for place in places]
    np.testing.assert_allclose(drawn, expected, atol=0.02)
    np.testing.assert_allclose(drawn, 3.0 * np.sin(2.0 * np.pi * places / 24.0), atol=0.5)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("hour", "expected y (units of y)")


def test_a_partial_effect_of_probabilities_and_what_has_none(ax: Any) -> None:
    labels = BayesianLogisticRegression().fit(X, Y > 0.0)
    plot_partial_effect(labels, X, 1, ax)
    assert 0.0 < line_of(ax, "mean").get_ydata().min() < line_of(ax, "mean").get_ydata().max() < 1.0
    several = BayesianQuantileRegression(quantile=[0.1, 0.9]).fit(X, Y)
    with pytest.raises(ValueError, match="several numbers are expected"):
        plot_partial_effect(several, X, "hour", ax)
    with pytest.raises(
        ValueError, match="feature is 'rain': give one of the model's features, hour, load"
    ):
        plot_partial_effect(labels, X, "rain", ax)


def test_groups_stand_in_order(ax: Any) -> None:
    model = GroupedRegression().fit(X, Y + SHOP, groups=SHOP)
    plot_groups(model, "intercept", ax)
    means = {str(key): model.model_of(key).intercept_ for key in model.groups_}
    assert shown(ax) == sorted(means, key=lambda key: means[key])
    assert line_of(ax, "mean over groups").get_xdata()[0] == pytest.approx(model.shared_mean_[0])
    plot_groups(model, 2, some := Figure().subplots(), groups=[3, 4])
    assert sorted(shown(some)) == ["3", "4"]
    with pytest.raises(ValueError, match="there is no coefficient 'rain': give one of intercept"):
        plot_groups(model, "rain", ax)
    with pytest.raises(ValueError, match="there is no coefficient 3: give 0 to 2"):
        plot_groups(model, 3, ax)


def test_many_groups_have_no_names(ax: Any) -> None:
    groups = np.arange(300) % 60
    plot_groups(GroupedRegression().fit(X, Y, groups=groups), 0, ax)
    assert shown(ax) == []
    assert ax.get_title(loc="left") == "intercept by group (60 groups)"


def test_coefficients_per_standard_deviation(ax: Any) -> None:
    model = BayesianLinearRegression().fit(X, Y)
    plot_coefficients(model, ax, per="sd")
    dots = ax.lines[1].get_xdata()
    np.testing.assert_allclose(dots, model.coef_ * X.std(ddof=0), rtol=1e-6)
    assert ax.get_xlabel() == "change of y per standard deviation of the feature"
    plot_coefficients(model, one := Figure().subplots(), most=1)
    assert shown(one) == ["load"]  # the larger effect, of the smaller coefficient
    bare = BayesianLinearRegression(fit_intercept=False).fit(X, Y)
    with pytest.raises(ValueError, match="not known without an intercept"):
        plot_coefficients(bare, ax, per="sd")


def test_coefficients_of_one_of_several(ax: Any) -> None:
    quantiles = BayesianQuantileRegression(quantile=[0.1, 0.9]).fit(X, Y)
    with pytest.raises(ValueError, match=r"several quantiles, 0\.1, 0\.9: say which"):
        plot_coefficients(quantiles, ax)
    plot_coefficients(quantiles, ax, target="0.9")
    np.testing.assert_allclose(ax.lines[1].get_xdata(), quantiles.coef_[1])
    targets = BayesianLinearRegression().fit(X, np.column_stack([Y, -Y]))
    plot_coefficients(targets, two := Figure().subplots(), target="y1")
    np.testing.assert_allclose(two.lines[1].get_xdata(), targets.coef_[1])


def test_coefficients_of_what_groups_share(ax: Any) -> None:
    model = GroupedRegression().fit(X, Y, groups=SHOP)
    plot_coefficients(model, ax)
    np.testing.assert_allclose(ax.lines[1].get_xdata(), model.shared_mean_[1:])


def test_many_coefficients_fit_a_page() -> None:
    rows = RNG.normal(size=(100, 250))
    ax = plot_coefficients(BayesianLinearRegression().fit(rows, rows[:, 0]))
    assert ax.figure.get_figheight() <= 12.0
    assert shown(ax) == []
    assert (
        len(shown(plot_coefficients(BayesianLinearRegression().fit(rows, rows[:, 0]), most=9))) == 9
    )


def test_a_table_is_drawn_in_its_order(ax: Any) -> None:
    table = pd.DataFrame(
        {"ratio": [1.2, 0.8], "low": [1.1, 0.7], "high": [1.3, np.nan]}, list("ba")
    )
    plot_intervals(table, ax, estimate="ratio", reference=1.0)
    assert shown(ax) == ["b", "a"]
    assert [len(lines.get_segments()) for lines in ax.collections] == [1]  # the other is open
    np.testing.assert_allclose(ax.lines[1].get_xdata(), [1.2, 0.8])
    plot_intervals(pd.concat([table] * 21), Figure().subplots(), estimate="ratio")
    with pytest.raises(ValueError, match="no column 'mean': it has ratio, low, high"):
        plot_intervals(table, ax)


def test_a_density_is_of_one_of_several_targets(ax: Any) -> None:
    model = BayesianLinearRegression().fit(X, np.column_stack([Y, 2.0 * Y]))
    with pytest.raises(ValueError, match="several targets"):
        plot_posterior_density(model, ax)
    plot_posterior_density(model, ax, coefficients=("hour", "load"), target="y1")
    left, right = ax.get_xlim()
    assert left < model.coef_[1, 0] < right


@pytest.mark.parametrize("projection", ["polar", "3d"])
def test_other_axes_are_refused(projection: str) -> None:
    other = Figure().add_subplot(projection=projection)
    with pytest.raises(TypeError, match=r"give one of the axes of figure\.subplots"):
        plot_coefficients(BayesianLinearRegression().fit(X, Y), ax=other)


def test_intervals_of_a_frame_of_polars(ax: Any) -> None:
    polars = pytest.importorskip("polars")
    table = polars.DataFrame({"of": ["a", "b"], "mean": [1.0, 2.0], "low": [0, 1], "high": [2, 3]})
    plot_intervals(table, ax, label="of")
    assert shown(ax) == ["a", "b"]
    assert shown(plot_intervals(table, Figure().subplots())) == ["0", "1"]
