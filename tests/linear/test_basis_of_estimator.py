"""`basis=`: the model is linear in functions of its features, everywhere."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils.estimator_checks import check_estimator

from posterity import BayesianLinearRegression
from posterity.basis import (
    Basis,
    Fourier,
    HilbertSpaceGP,
    Polynomial,
    RadialBasis,
    RandomFourier,
    Spline,
)

BASES = [
    Polynomial(degree=5, domain=(0.0, 1.0)),
    Fourier(n_frequencies=4, period=1.0),
    Spline(n_knots=8, domain=(0.0, 1.0)),
    HilbertSpaceGP(domain=(0.0, 1.0), n_functions=20),
    RandomFourier(n_functions=30, domain=(0.0, 1.0)),
    PolynomialFeatures(degree=3, include_bias=False),
]


def curve(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.0, 1.0, (n, 1))
    return x, 5.0 + np.sin(2.0 * np.pi * x[:, 0]) + 0.2 * rng.normal(size=n)


@pytest.mark.parametrize("basis", BASES, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("prior_precision", ["auto", 0.1])
def test_all_ways_to_learn_agree(basis: Any, prior_precision: Any) -> None:
    x, y = curve(120)
    settings = {"basis": basis, "prior_precision": prior_precision}
    if prior_precision != "auto" and hasattr(basis, "length_scale"):
        settings["basis"] = clone(basis).set_params(length_scale=0.3)
    whole = BayesianLinearRegression(**settings).fit(x, y)
    chunks = BayesianLinearRegression(**settings).fit(x[:30], y[:30]).partial_fit(x[30:], y[30:])
    predictive = BayesianLinearRegression(**settings)
    predictive.predict_then_learn(x, y)
    loop = BayesianLinearRegression(**settings)
    for row, target in zip(x, y, strict=True):
        loop.learn_one(row, target)
    merged = BayesianLinearRegression(**settings).fit(x[:60], y[:60])
    merged.merge(BayesianLinearRegression(**settings).fit(x[60:], y[60:]))
    more = BayesianLinearRegression(**settings).fit(np.vstack([x, x[:5] / 2]), np.append(y, y[:5]))
    more.unlearn(x[:5] / 2, y[:5])
    expected = whole.predict_distribution(x)
    for model in (chunks, predictive, loop, merged, more):
        found = model.predict_distribution(x)
        assert found.mean() == pytest.approx(expected.mean(), rel=1e-7, abs=1e-7)
        assert found.std() == pytest.approx(expected.std(), rel=1e-6)
    one, predictive = whole.predict_one(x[3]), whole.predict_then_learn(x[3:4], y[3:4]).mean()[0]
    assert one == pytest.approx(predictive, rel=1e-9)
    assert len(whole.coef_) == whole.basis_.transform(x).shape[1]


def test_the_curve_is_found_with_honest_bands() -> None:
    x, y = curve(2000)
    model = BayesianLinearRegression(basis=HilbertSpaceGP())
    predictive = model.predict_then_learn(x, y)
    low, high = predictive.interval(0.95)
    assert 0.93 <= np.mean((low <= y) & (y <= high)) <= 0.97
    truth = 5.0 + np.sin(2.0 * np.pi * x[:, 0])
    assert np.sqrt(np.mean((model.predict(x) - truth) ** 2)) < 0.04


def test_a_number_multiplies_the_prior_that_a_basis_brings() -> None:
    x, y = curve(50)
    basis = HilbertSpaceGP(length_scale=0.2, domain=(0.0, 1.0))
    model = BayesianLinearRegression(basis=basis, prior_precision=3.0, noise_precision=25.0)
    brought = clone(basis).fit(x).prior_precisions()[0]
    assert model.fit(x, y).prior_precision_ == pytest.approx(3.0 * brought)
    open_ = BayesianLinearRegression(basis=HilbertSpaceGP(), prior_precision=3.0)
    with pytest.raises(ValueError, match="the length scale of the basis is unknown"):
        open_.fit(x, y)


def test_names_are_the_functions() -> None:
    x, y = curve(40)
    frame = pd.DataFrame({"hour": x[:, 0]})
    model = BayesianLinearRegression(basis=Fourier(n_frequencies=1, period=1.0)).fit(frame, y)
    assert model.feature_names_in_.tolist() == ["hour"]
    assert model.posterior_.names == ("intercept", "hour_sin1", "hour_cos1")
    assert model.learn_one({"hour": 0.5}, 5.0).n_observations_ == 41.0


def test_models_of_different_domains_do_not_merge() -> None:
    x, y = curve(60)
    one = BayesianLinearRegression(basis=Spline(n_knots=9)).fit(x[:30], y[:30])
    other = BayesianLinearRegression(basis=Spline(n_knots=9)).fit(x[30:], y[30:])
    with pytest.raises(ValueError, match="the models differ in their basis"):
        one.merge(other)


def test_bad_values_are_named_and_nothing_changes() -> None:
    x, y = curve(60)
    model = BayesianLinearRegression(basis=Spline(domain=(0.0, 1.0))).fit(x, y)
    before = copy.deepcopy(model)
    bad = x.copy()
    bad[7] = np.nan
    for call in (model.partial_fit, model.predict_then_learn):
        with pytest.raises(ValueError, match="NaN in row 7, column 0"):
            call(bad, y)
    with pytest.raises(ValueError, match="NaN in row 7"):
        model.predict(bad)
    assert np.array_equal(model.predict(x), before.predict(x))
    with pytest.raises(TypeError, match="must be None, 'auto' or a transformer"):
        BayesianLinearRegression(basis=Spline).fit(x, y)


def test_scikit_learn_tools_reach_the_basis() -> None:
    x, y = curve(200)
    search = GridSearchCV(
        BayesianLinearRegression(basis=Polynomial()), {"basis__degree": [1, 3, 5]}, cv=3
    ).fit(x, y)
    assert search.best_params_["basis__degree"] >= 3
    assert cross_val_score(search.best_estimator_, x, y, cv=3).min() > 0.8


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        BayesianLinearRegression(prior_precision="ard"),
        BayesianLinearRegression(basis=Polynomial(degree=2, interactions=False)),
    ],
    ids=["ard", "polynomial"],
)
def test_scikit_learn_accepts_it(model: BayesianLinearRegression) -> None:
    check_estimator(model, on_skip=None)


@pytest.mark.parametrize("basis", [Spline(), RadialBasis()], ids=["spline", "bumps"])
def test_functions_without_rows_so_far_cannot_be_anything(basis: Basis) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))  # the ends of the domain are rarely visited
    y = X[:, 0] + rng.normal(size=2000)
    predictive = BayesianLinearRegression(basis=basis).predict_then_learn(X, y)
    assert np.abs(predictive.mean() - y).max() < 10.0


def test_a_number_is_the_precision_of_each_local_function() -> None:
    x, y = curve(40)
    model = BayesianLinearRegression(basis=Spline(smooth=False), prior_precision=2.0).fit(x, y)
    by_hand = BayesianLinearRegression(prior_precision=2.0).fit(model.basis_.transform(x), y)
    np.testing.assert_allclose(model.coef_, by_hand.coef_, rtol=1e-9)
    assert model.prior_precision_ == 2.0
