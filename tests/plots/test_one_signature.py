"""Figures take (model or pipeline, X, y), in the columns and units that these were given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("matplotlib", reason="needs Matplotlib (posterity[plots])")
from matplotlib.figure import Figure
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from posterity import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegression,
    GroupedRegression,
    Model,
    plots,
)
from posterity.evaluation import progressive_validation

RNG = np.random.default_rng(0)
X = pd.DataFrame({"area": RNG.uniform(20, 120, 300), "age": RNG.uniform(0, 80, 300)})
NUMBERS, X["zone"] = X.copy(), RNG.choice(["east", "north", "west"], 300)
Y = 3.0 * X["area"] - 0.5 * X["age"] + 20.0 * (X["zone"] == "north") + 10.0 * RNG.normal(size=300)
ENCODED = make_column_transformer(
    (StandardScaler(), ["area", "age"]),
    (OneHotEncoder(drop="first", sparse_output=False), ["zone"]),
)
MODEL = BayesianLinearRegression().fit(X, Y)
PIPELINE = make_pipeline(ENCODED, BayesianLinearRegression()).fit(X, Y)
SCALED = make_pipeline(StandardScaler(), BayesianLinearRegression()).fit(NUMBERS, Y)
ALL = [MODEL, PIPELINE]


@pytest.fixture
def ax() -> Any:
    return Figure().subplots()


def labels(ax: Any) -> list[str]:
    return [label.get_text() for label in ax.get_yticklabels()]


@pytest.mark.parametrize("model", ALL, ids=["model", "pipeline"])
@pytest.mark.parametrize(
    "draw", [plots.plot_predictions, plots.plot_residuals, plots.plot_pit, plots.plot_calibration]
)
def test_rows_and_targets(ax: Any, draw: Callable[..., Any], model: Any) -> None:
    assert draw(model, X, Y, ax) is ax
    draw(model, X, y=Y, ax=ax)


@pytest.mark.parametrize("model", ALL, ids=["model", "pipeline"])
def test_others_are_held_at_the_typical_row(ax: Any, model: Any) -> None:
    plots.plot_predictions(model, X, Y, ax, feature="age")
    (mean,) = (line for line in ax.lines if line.get_label() == "mean")
    middle = X.drop(columns="zone").median().to_dict() | {"zone": X["zone"].mode()[0]}
    rows = pd.DataFrame([middle, middle]).assign(age=[X["age"].min(), X["age"].max()])
    assert mean.get_ydata()[[0, -1]] == pytest.approx(model.predict(rows))
    assert mean.get_xdata()[[0, -1]].tolist() == rows["age"].tolist()
    dots = next(c for c in ax.collections if c.get_label() == "rows").get_offsets()
    assert np.allclose(dots, np.column_stack([X["age"], Y]))
    with pytest.raises(ValueError, match="'zone' holds text: give one of numbers"):
        plots.plot_predictions(model, X, Y, ax, feature="zone")


def test_a_pipeline_has_the_partial_effect_of_its_own_column(ax: Any) -> None:
    plots.plot_partial_effect(PIPELINE, X, "area", ax, x=[50.0, 60.0], size=4000)
    (line,) = (line for line in ax.lines if line.get_label() == "mean")
    expected = [PIPELINE.predict(X.assign(area=place)).mean() for place in (50.0, 60.0)]
    assert line.get_ydata() == pytest.approx(expected, abs=0.2)
    plots.plot_partial_effect(MODEL, X, "area", ax)


def test_coefficients_of_a_pipeline_are_in_the_units_of_its_columns(ax: Any) -> None:
    plots.plot_coefficients(PIPELINE, ax)
    assert labels(ax) == ["area", "age", "zone_north", "zone_west"]
    change = PIPELINE.predict(X.assign(area=51.0)) - PIPELINE.predict(X.assign(area=50.0))
    assert ax.lines[1].get_xdata()[0] == pytest.approx(change[0])
    plots.plot_coefficients(SCALED, one := Figure().subplots())
    assert one.lines[1].get_xdata() == pytest.approx(SCALED[-1].coef_ / SCALED[0].scale_)
    plots.plot_coefficients(SCALED, other := Figure().subplots(), per="sd")
    assert other.lines[1].get_xdata() == pytest.approx(SCALED[-1].coef_, rel=1e-6)


def test_an_explanation_of_a_pipeline_has_the_values_of_its_row(ax: Any) -> None:
    plots.plot_explanation(SCALED, NUMBERS.iloc[0], ax)
    assert set(labels(ax)) == {f"{name} = {NUMBERS[name][0]:.6g}" for name in NUMBERS}
    values = NUMBERS.to_numpy()
    bare = make_pipeline(StandardScaler(), BayesianLinearRegression()).fit(values, Y)
    plots.plot_explanation(bare, values[0], one := Figure().subplots(), X=values)
    assert f"x0 = {values[0, 0]:.6g}" in labels(one)
    for model in (MODEL, PIPELINE):
        with pytest.raises(TypeError, match=r"give one row, .* x.iloc\[0\]"):
            plots.plot_explanation(model, X)


def test_scores_of_held_out_rows_are_those_of_their_predictions(ax: Any) -> None:
    fitted = BayesianLinearRegression().fit(X[:200], Y[:200])
    bars = plots.plot_pit(fitted, X[200:], Y[200:], ax, bins=10).containers[0]
    u = fitted.predict_distribution(X[200:]).cdf(Y[200:].to_numpy())
    assert [bar.get_height() for bar in bars] == pytest.approx(np.histogram(u, 10, (0, 1))[0] / 10)
    result = progressive_validation(BayesianLinearRegression(), X, Y)
    assert plots.plot_calibration({"fitted": fitted, "stream": result}, X[200:], Y[200:]).lines
    plots.plot_residuals(fitted.predict_distribution(X[200:]), Y[200:], ax)


CALLS = {
    "plot_error_along_time(MODEL, X, Y)": r"draws what progressive_validation\(model, X, y\)",
    "plot_coefficients_along_time(MODEL, X, Y)": r"follow_coefficients\(model, X, y\)",
    "plot_evidence(MODEL, X, Y)": r"plot_evidence\(compare\(models, X, y\)\)",
    "plot_forecast(Y)": r"not a Series: plot_forecast\(Forecaster\(\)",
    "plot_groups(MODEL)": "GroupedRegression",
    "plot_coefficients(MODEL, X, Y)": r"the call is plot_coefficients\(model, ax=...,",
    "plot_coefficients('model')": r"draws what model.fit\(X, y\) returns, not a str",
    "plot_residuals(MODEL, Y)": r"plot_residuals\(model, X, y\)",
    "plot_pit(MODEL)": r"plot_pit\(model, X, y\)",
    "plot_pit(LABELS, X, LABELS.predict(X))": "CalibrationDisplay",
    "plot_predictions(LABELS, X)": r"plot_partial_effect\(model, X, feature\)",
    "plot_sampled_lines(MODEL, X, Y)": r"plot_sampled_lines\(model, \(0.0, 1.0\)\)",
}
LABELS = BayesianLogisticRegression().fit(X, Y.mean() < Y)


@pytest.mark.parametrize("call", CALLS)
def test_a_wrong_call_is_told_the_right_one(call: str) -> None:
    with pytest.raises(TypeError, match=CALLS[call]):
        eval(f"plots.{call}")


def test_counts_have_no_histogram_of_probabilities() -> None:
    counts = BayesianPoissonRegression().fit(NUMBERS, RNG.poisson(3.0, 300))
    with pytest.raises(ValueError, match="those of counts"):
        plots.plot_pit(counts, NUMBERS, RNG.poisson(3.0, 300))


def test_a_model_of_a_formula_is_drawn_along_a_column(ax: Any) -> None:
    frame = X.iloc[:60].assign(price=Y[:60])
    model = Model("price ~ area + age + (1 | zone)").fit(frame)
    assert plots.plot_predictions(model, frame, frame["price"], ax, feature="age") is ax
    assert ax.get_xlabel() == "age"


@pytest.mark.parametrize(
    "draw",
    [
        lambda model: plots.plot_coefficients(model),
        lambda model: plots.plot_posterior_density(model),
        lambda model: plots.plot_partial_effect(model, X, "area"),
        lambda model: plots.plot_explanation(model, X.iloc[0]),
        lambda model: plots.plot_sampled_lines(model, (0.0, 1.0)),
    ],
)
def test_what_a_model_of_a_formula_does_not_have_is_named(draw: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match=r"Model has no .*average_effects\(frame\)"):
        draw(Model("price ~ area"))


def test_groups_have_no_partial_effect_but_one_has() -> None:
    with pytest.raises(TypeError, match=r"model\.model_of\(group\)"):
        plots.plot_partial_effect(GroupedRegression(by="zone").fit(X, Y), X, "area")


def test_a_density_of_a_pipeline_is_in_the_units_of_its_columns(ax: Any) -> None:
    plain = BayesianLinearRegression().fit(NUMBERS, Y)
    which = {"coefficients": ("area", "age")}
    plots.plot_posterior_density(plain, ax, **which)
    limits = (*ax.get_xlim(), *ax.get_ylim())
    other = plots.plot_posterior_density(SCALED, Figure().subplots(), **which)
    np.testing.assert_allclose((*other.get_xlim(), *other.get_ylim()), limits, rtol=1e-3)


def test_a_level_that_no_row_had_does_not_hinder_a_density(ax: Any) -> None:
    plots.plot_posterior_density(MODEL, ax, coefficients=("area", "age"))
    ends = MODEL.posterior_.interval(0.995)[[MODEL.posterior_.names.index("area")]]
    np.testing.assert_allclose(ax.get_xlim(), ends[0], rtol=1e-6)


def test_figures_of_one_number_refuse_several_targets() -> None:
    pair = BayesianLinearRegression().fit(NUMBERS, np.column_stack([Y, 2.0 * Y]))
    for draw in (plots.plot_predictions, plots.plot_residuals, plots.plot_pit):
        with pytest.raises(TypeError, match="several: fit one for each"):
            draw(pair, NUMBERS, np.column_stack([Y, 2.0 * Y]))


def test_columns_of_groups_and_of_yes_and_no_are_held(ax: Any) -> None:
    frame = X[["zone", "area", "age"]].assign(open=X["age"] > 40.0)
    by_zone = GroupedRegression(by="zone").fit(frame[["zone", "area", "age"]], Y)
    plots.plot_predictions(by_zone, frame[["zone", "area", "age"]], Y, ax, feature="area")
    assert ax.get_xlim()[1] > 100.0
    plots.plot_predictions(BayesianLinearRegression().fit(frame, Y), frame, Y, ax, feature="area")
