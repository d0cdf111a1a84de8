"""Figures of one model or several say what the model says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("matplotlib", reason="needs Matplotlib (posterity[plots])")
from matplotlib.figure import Figure
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from posterity import Averaged, BayesianLinearRegression, BayesianLogisticRegression
from posterity.basis import Polynomial, RadialBasis
from posterity.evaluation import Comparison, compare
from posterity.forgetting import Adaptive
from posterity.plots import (
    plot_coefficients,
    plot_evidence,
    plot_posterior_density,
    plot_predictions,
    plot_sampled_lines,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = 1.0 + X @ [2.0, -1.0, 0.0] + 0.5 * RNG.normal(size=40)
PLACES = np.linspace(-2.0, 2.0, 41)


@pytest.fixture
def ax() -> Any:
    return Figure().subplots()


@pytest.fixture
def model() -> BayesianLinearRegression:
    return BayesianLinearRegression().fit(X, Y)


def line_of(ax: Any, label: str) -> Any:
    return next(line for line in ax.lines if line.get_label() == label)


# ---- density -------------------------------------------------------------------------------------


def contour_lengths(ax: Any) -> list[np.ndarray]:
    return [np.concatenate(path.to_polygons()) for path in ax.collections[0].get_paths()]


@pytest.mark.parametrize("noise_precision", [4.0, None], ids=["normal", "Student-t"])
@pytest.mark.parametrize("forgetting", [None, Adaptive()], ids=["one", "mixture"])
def test_contours_hold_their_probability(
    ax: Any, noise_precision: float | None, forgetting: Any
) -> None:
    model = BayesianLinearRegression(noise_precision=noise_precision, forgetting=forgetting)
    model.partial_fit(X[:12], Y[:12])
    plot_posterior_density(model, ax, coefficients=("x0", "intercept"), levels=(0.5, 0.95))
    from matplotlib.path import Path

    draws = model.posterior_.rvs(20_000, random_state=1)[:, [1, 0]]
    outer, inner = contour_lengths(ax)  # by density: the lowest first
    for polygon, level in ((outer, 0.95), (inner, 0.5)):
        inside = np.mean(Path(polygon).contains_points(draws))
        assert inside == pytest.approx(level, abs=0.015)


def test_the_contour_of_a_normal_is_its_ellipse(ax: Any) -> None:
    model = BayesianLinearRegression(noise_precision=4.0).fit(X, Y)
    plot_posterior_density(model, ax, coefficients=(1, 3), levels=(0.9,))
    joint = model.posterior_
    off = contour_lengths(ax)[0] - joint.mean[[1, 3]]
    covariance = joint.cov[np.ix_([1, 3], [1, 3])]
    squared = np.einsum("ij,ij->i", off @ np.linalg.inv(covariance), off)
    assert squared == pytest.approx(np.full(len(off), -2.0 * np.log(0.1)), rel=0.05)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x0", "x2")


def test_the_density_of_two_is_the_marginal_of_all(ax: Any, model: Any) -> None:
    plot_posterior_density(model, ax, coefficients=(0, 2))
    shown = ax.images[0].get_array()
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    row, column = np.unravel_index(np.argmax(shown), shown.shape)
    assert np.linspace(left, right, 161)[column] == pytest.approx(model.intercept_, abs=0.02)
    assert np.linspace(low, high, 161)[row] == pytest.approx(model.coef_[1], abs=0.02)


def test_limits_set_before_are_kept_and_the_truth_is_marked(ax: Any, model: Any) -> None:
    ax.set(xlim=(-50.0, 50.0), ylim=(-40.0, 60.0))
    plot_posterior_density(model, ax, truth=(1.0, 2.0), levels=(0.5, 0.8, 0.95))
    assert ax.get_xlim() == (-50.0, 50.0)
    assert ax.get_ylim() == (-40.0, 60.0)
    assert line_of(ax, "truth").get_xydata().tolist() == [[1.0, 2.0]]
    assert len(contour_lengths(ax)) == 3  # far finer than the image
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["50%", "80%", "95%", "truth"]


@pytest.mark.parametrize(
    ("coefficients", "message"),
    [
        ((0, 4), "there is no coefficient 4: give 0 to 3"),
        (("x0", "age"), "there is no coefficient 'age': give one of intercept, x0, x1, x2"),
        ((1, "x0"), "give two different ones"),
    ],
)
def test_coefficients_that_are_not_there(
    ax: Any, model: Any, coefficients: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        plot_posterior_density(model, ax, coefficients=coefficients)


def test_an_improper_posterior_has_no_density(ax: Any) -> None:
    flat = BayesianLinearRegression(prior_precision=0.0, noise_precision=1.0).fit(X[:2], Y[:2])
    with pytest.raises(ValueError, match=r"the posterior is improper: coefficient 2 \(x1\)"):
        plot_posterior_density(flat, ax)


# ---- predictions ---------------------------------------------------------------------------------


def test_bands_are_the_intervals_of_the_model(ax: Any, model: Any) -> None:
    at = np.array([0.3, 0.0, -1.0])
    plot_predictions(model, PLACES, ax, feature="x1", at=at, levels=(0.8,), data=(X, Y))
    rows = np.tile(at, (41, 1))
    rows[:, 1] = PLACES
    assert line_of(ax, "mean").get_ydata() == pytest.approx(model.predict(rows))
    low, high = model.predict_interval(rows, 0.8).T
    drawn = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert drawn.min() == pytest.approx(low.min())
    assert drawn.max() == pytest.approx(high.max())
    dots = next(c for c in ax.collections if c.get_label() == "rows").get_offsets()
    assert np.allclose(dots, np.column_stack([X[:, 1], Y]))
    assert ax.get_xlabel() == "x1"
    assert ax.get_legend() is not None


def test_the_widest_band_is_behind(ax: Any) -> None:
    model = BayesianLinearRegression().fit(X[:, :1], Y)
    plot_predictions(model, PLACES, ax, levels=(0.5, 0.95), truth=np.zeros(41), unit="metres")
    bands = [band.get_label() for band in ax.collections]
    assert bands == ["95% of new observations", "50% of new observations"]
    assert not line_of(ax, "truth").get_ydata().any()
    assert ax.get_ylabel() == "y (metres)"


def test_what_is_flat_is_said(ax: Any) -> None:
    model = BayesianLinearRegression().fit([[0.0]], [1.0])
    plot_predictions(model, PLACES, ax)
    assert [text.get_text() for text in ax.texts] == ["bands infinitely wide"]
    assert np.isfinite(ax.get_ylim()).all()


@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(StandardScaler(), PolynomialFeatures(2), BayesianLinearRegression()),
        make_pipeline(BayesianLinearRegression(forgetting=Adaptive())),
        Averaged([BayesianLinearRegression(), BayesianLinearRegression(noise_precision=1.0)]),
        BayesianLinearRegression(basis=RadialBasis()),
    ],
    ids=["pipeline", "alone in a pipeline", "averaged", "basis"],
)
def test_predictions_of_any_model(ax: Any, model: Any) -> None:
    model.fit(X[:, :1], Y)
    plot_predictions(model, PLACES, ax, data=(X[:, 0], Y))
    expected = model.predict(PLACES[:, None])
    assert line_of(ax, "mean").get_ydata() == pytest.approx(expected)


def test_models_of_data_frames_have_names(ax: Any) -> None:
    frame = pd.DataFrame(X[:, :2], columns=["age", "size"])
    model = BayesianLinearRegression().fit(frame, Y)
    plot_predictions(model, PLACES, ax, feature="size", at=[1.0, 0.0], data=(frame, Y))
    assert ax.get_xlabel() == "size"
    scaled = make_pipeline(StandardScaler(), BayesianLinearRegression()).fit(frame, Y)
    plot_sampled_lines(scaled, (-1.0, 1.0), 2, ax, feature="age", at=[1.0, 0.0])
    assert ax.get_xlabel() == "age"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "the model has 3 features: give at=, a row with the values at which all but x0"),
        ({"feature": 3, "at": np.zeros(3)}, "feature is 3: give 0 to 2"),
        ({"feature": "age"}, "feature is 'age': give one of the model's features, x0, x1, x2"),
        ({"at": [1.0]}, r"at has shape \(1,\): expected \(3,\)"),
    ],
)
def test_features_that_are_not_there(ax: Any, model: Any, settings: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plot_predictions(model, PLACES, ax, **settings)


# ---- sampled lines -------------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("basis", [None, Polynomial(degree=3), PolynomialFeatures(2)], ids=str)
def test_lines_are_drawn_from_the_posterior(ax: Any, basis: Any, fit_intercept: bool) -> None:
    if isinstance(basis, PolynomialFeatures):
        basis = PolynomialFeatures(2, include_bias=not fit_intercept)
    model = BayesianLinearRegression(basis=basis, fit_intercept=fit_intercept)
    model.fit(X[:, :1], Y)
    plot_sampled_lines(model, (-2.0, 2.0), 400, ax, rng=0)
    lines = np.array([line.get_ydata() for line in ax.lines])
    x = ax.lines[0].get_xdata()[:, None]
    assert lines.shape == (400, 301)
    # Of the function itself: that of the coefficients, in the columns that they multiply.
    predictive, columns = model.predict_distribution(x), model._columns(x)
    if fit_intercept:
        columns = np.column_stack([np.ones(len(x)), columns])
    covariance = model.posterior_.cov
    function = np.sqrt(np.einsum("ij,jk,ik->i", columns, covariance, columns))
    assert np.abs(lines.mean(axis=0) - predictive.mean()).max() < 5.0 * function.max() / 20.0
    assert lines.std(axis=0) == pytest.approx(function, rel=0.2, abs=1e-6)


def test_the_same_rng_draws_the_same_lines(model: Any) -> None:
    first, second = Figure().subplots(1, 2)
    for panel in (first, second):
        plot_sampled_lines(model, (0.0, 1.0), 3, panel, at=np.zeros(3), rng=7, data=(X, Y))
    for one, other in zip(first.lines, second.lines, strict=True):
        assert np.array_equal(one.get_ydata(), other.get_ydata())
    assert len({line.get_linestyle() for line in first.lines}) == 3
    assert first.get_title(loc="left") == "3 draws from the posterior"


def test_an_average_has_no_coefficients_to_draw(ax: Any) -> None:
    average = Averaged([BayesianLinearRegression()]).fit(X[:, :1], Y)
    with pytest.raises(
        TypeError, match=r"Averaged has no posterior_ to draw from.* models_, or use"
    ):
        plot_sampled_lines(average, (0.0, 1.0), ax=ax)


# ---- coefficients --------------------------------------------------------------------------------


def test_coefficients_with_their_intervals(ax: Any, model: Any) -> None:
    plot_coefficients(model, ax, levels=(0.5, 0.9), truth=[2.0, -1.0, 0.0])
    thin, thick = ax.collections
    ends = np.array([segment[:, 0] for segment in thin.get_segments()])
    assert ends == pytest.approx(model.posterior_.interval(0.9)[1:])
    assert thin.get_label() == "90% interval"
    assert thick.get_linewidth()[0] > thin.get_linewidth()[0]
    assert line_of(ax, "truth").get_xdata().tolist() == [2.0, -1.0, 0.0]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["x0", "x1", "x2"]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first on top


def test_intervals_of_few_labels_are_those_of_the_summary(ax: Any) -> None:
    model = BayesianLogisticRegression(prior_precision=1.0).fit(X[:12], Y[:12] > 1.0)
    plot_coefficients(model, ax, levels=(0.5, 0.95))
    ends = [segment[:, 0] for segment in ax.collections[0].get_segments()]
    table = model.summary()
    assert np.array(ends) == pytest.approx(table[["low", "high"]].to_numpy(float)[1:])
    assert ends != pytest.approx(model.posterior_.interval(0.95)[1:], abs=1e-3)  # skewed


def test_the_intercept_if_it_is_asked_for(ax: Any, model: Any) -> None:
    plot_coefficients(model, ax, intercept=True)
    assert [text.get_text() for text in ax.get_yticklabels()][:2] == ["intercept", "x0"]


def test_an_open_coefficient_is_marked(ax: Any) -> None:
    model = BayesianLinearRegression(prior_precision=[0.0, 1.0, 1.0], noise_precision=1.0)
    constant = X.copy()
    constant[:, 0] = 0.0
    plot_coefficients(model.fit(constant, Y), ax)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["x0 (open)", "x1", "x2"]
    assert len(ax.collections[0].get_segments()) == 2


# ---- evidence ------------------------------------------------------------------------------------


def test_the_best_model_is_marked(ax: Any) -> None:
    models = {str(a): BayesianLinearRegression(prior_precision=a) for a in (0.01, 1.0, 1e4)}
    result = compare(models, X, Y)
    plot_evidence(result, ax)
    best = line_of(ax, "best")
    assert best.get_xydata().tolist() == [[0.0, result.log_scores.max()]]
    assert [text.get_text() for text in ax.get_xticklabels()] == ["0.01", "1.0", "10000.0"]
    written = {text.get_text() for text in ax.texts}
    assert f"{100 * result.weights[0]:.0f}%" in written
    assert ax.get_ylabel() == "log evidence (nats)"


def test_scores_that_are_not_finite_are_at_the_edge(ax: Any) -> None:
    scores, weights = np.array([-3.0, -np.inf, -4.0]), np.array([0.7, 0.0, 0.3])
    predictive = Comparison(("a", "b", "c"), "prequential", scores, weights, np.ones(3) / 3.0, 5)
    plot_evidence(predictive, ax)
    assert np.isfinite(ax.get_ylim()).all()
    assert {text.get_text() for text in ax.texts} == {"\N{MINUS SIGN}\N{INFINITY}", "70%", "30%"}
    assert ax.get_ylabel() == "prequential log score (nats)"


@pytest.mark.parametrize("draw", [plot_posterior_density, plot_coefficients])
def test_axes_are_made_where_none_are_given(model: Any, draw: Any) -> None:
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    before = mpl.get_backend()
    plt.switch_backend("agg")
    try:
        assert draw(model).figure is not draw(model).figure
    finally:
        plt.close("all")
        plt.switch_backend(before)


def test_every_figure_draws(model: Any) -> None:
    figure = Figure(layout="constrained")
    panels = figure.subplots(2, 3).ravel()
    plot_posterior_density(model, panels[0])
    plot_predictions(model, PLACES, panels[1], at=np.zeros(3))
    plot_sampled_lines(model, (0.0, 1.0), ax=panels[2], at=np.zeros(3), rng=0)
    plot_coefficients(model, panels[3])
    plot_evidence(compare([model], X, Y), panels[4])
    figure.draw_without_rendering()
    assert all(panel.get_title(loc="left") for panel in panels[:5])
