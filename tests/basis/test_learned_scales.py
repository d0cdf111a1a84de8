"""Length scales learned for each feature, and the basis that learns how much of what there is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import approx_fprime
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from sklearn.utils.estimator_checks import check_estimator

from posterity import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegression,
    BayesianQuantileRegression,
    BayesianRobustRegression,
)
from posterity.basis import AutoBasis, HilbertSpaceGP, RandomFourier
from posterity.basis._marginal_likelihood import _Problem, maximize_posterior
from posterity.files import dumps, loads

Array = np.ndarray
KERNELS = {"squared_exponential": RBF, "matern52": Matern, "matern32": Matern}
BASES: list[Any] = [
    "auto",
    RandomFourier(length_scale="ard"),
    HilbertSpaceGP(length_scale="ard", n_functions=100),
]
# Rows beyond the first batch widen a domain, whose functions are nearly sums of the old ones.
NEARLY = dict(zip(map(str, BASES), (1e-6, 1e-6, 0.02), strict=True))
every = pytest.mark.parametrize("basis", BASES, ids=repr)


def draw(n: int, d: int = 3, seed: int = 0) -> tuple[Array, Array]:
    """A line and a wave of the first two features; the others are of no use."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, 0] + np.sin(2.0 * X[:, 1]) + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("kernel", list(KERNELS))
def test_the_marginal_likelihood_is_that_of_scikit_learn(kernel: str) -> None:
    X, y = draw(40)
    y = y - y.mean()
    scales, variance, noise = np.array([1.5, 0.7, 3.0]), 1.3, 0.2
    nu = {"matern52": {"nu": 2.5}, "matern32": {"nu": 1.5}}.get(kernel, {})
    theirs = ConstantKernel(variance) * KERNELS[kernel](scales, **nu) + WhiteKernel(noise)
    exact = GaussianProcessRegressor(theirs, optimizer=None).fit(X, y)
    problem = _Problem(X, y[:, None], kernel, [])
    ours, _ = problem.log_density(np.log([*scales, variance, noise]))
    constant = 0.5 * len(y) * np.log(2.0 * np.pi)
    assert ours - constant == pytest.approx(exact.log_marginal_likelihood(), rel=1e-7)


@pytest.mark.parametrize("kernel", list(KERNELS))
def test_its_gradient_is_that_of_differences(kernel: str) -> None:
    X, y = draw(30)
    lines = np.cumsum(X, axis=1)
    problem = _Problem(X, np.column_stack([y, -(y**2)]), kernel, [lines @ lines.T])
    place = np.log([1.5, 0.7, 3.0, 0.5, 1.3, 0.2])
    differences = approx_fprime(place, lambda at: problem.log_density(at)[0], 1e-6)
    np.testing.assert_allclose(problem.log_density(place)[1], differences, rtol=1e-4, atol=1e-4)


def test_a_useless_feature_has_a_long_scale_and_units_make_no_difference() -> None:
    X, y = draw(300)
    scales = maximize_posterior(X, y, "squared_exponential").length_scales
    assert scales[2] > 5.0 * scales[:2].max()
    units = np.array([1e-6, 3.0, 1e5])
    again = maximize_posterior(
        X * units + 7.0 * units, 1e40 * y, "squared_exponential"
    ).length_scales
    np.testing.assert_allclose(again / units, scales, rtol=1e-3)


def test_what_has_no_target_or_no_weight_counts_for_nothing() -> None:
    X, y = draw(120)
    whole = maximize_posterior(X, y, "squared_exponential").length_scales
    assert np.isfinite(maximize_posterior(X[:5], np.zeros(5), "matern52").length_scales).all()
    holes = np.column_stack([y, y])
    holes[:20, 1] = np.nan
    some = maximize_posterior(X, holes, "squared_exponential").length_scales
    assert not np.array_equal(some, whole)
    weights = (np.arange(120) >= 20).astype(float)
    spoilt = np.where(weights > 0.0, y, 1e100)
    one = BayesianLinearRegression(basis="auto").fit(X, spoilt, weights)
    other = BayesianLinearRegression(basis="auto").fit(X[20:], y[20:])
    np.testing.assert_allclose(one.predict(X), other.predict(X), atol=1e-8)


@pytest.mark.parametrize("basis", BASES[1:], ids=repr)
def test_they_are_learned_and_not_asked_for(basis: Any) -> None:
    X, y = draw(200)
    fitted = BayesianLinearRegression(basis=basis).fit(X, y)
    assert fitted.basis_.length_scales_.shape == (1, 3)
    fresh, known = draw(400, seed=1)
    assert np.sqrt(np.mean(np.square(fitted.predict(fresh) - known))) < 0.25


@every
def test_batches_and_rows_and_files_are_as_all_at_once(basis: Any) -> None:
    X, y = draw(160)
    whole = BayesianLinearRegression(basis=basis).fit(X[:100], y[:100])
    parts = loads(dumps(whole))
    assert not np.shares_memory(whole.coef_, parts.coef_)
    whole.partial_fit(X[100:], y[100:])
    parts.predict_then_learn(X[100:150], y[100:150])
    for row, target in zip(X[150:], y[150:], strict=True):
        parts.learn_one(row, target)
    nearly = NEARLY[str(basis)]
    np.testing.assert_allclose(parts.predict(X), whole.predict(X), atol=nearly)
    assert parts.predict_one(X[0]) == pytest.approx(whole.predict(X[:1])[0], abs=0.02)


@every
def test_models_that_began_together_are_merged(basis: Any) -> None:
    X, y = draw(160)
    begun = BayesianLinearRegression(basis=basis).fit(X[:100], y[:100])
    other = loads(dumps(begun)).partial_fit(X[100:], y[100:])
    twice = loads(dumps(begun)).partial_fit(X, y)
    nearly = NEARLY[str(basis)]
    np.testing.assert_allclose(begun.merge(other).predict(X), twice.predict(X), atol=nearly)
    apart = BayesianLinearRegression(basis=basis).fit(X[100:], y[100:])
    with pytest.raises(ValueError, match="differ in their basis"):
        begun.merge(apart)


@every
@pytest.mark.parametrize(("n", "d"), [(2, 1), (5, 3), (60, 100)])
def test_few_rows_and_many_features(basis: Any, n: int, d: int) -> None:
    X, y = draw(n, d=max(d, 2))
    X = X[:, :d]
    model = BayesianLinearRegression(basis=basis).fit(X, y)
    mean, std = model.predict(X, return_std=True)
    assert np.isfinite(mean).all()
    assert (std > 0.0).all()


@every
def test_constant_columns_stay_lines(basis: Any) -> None:
    X, y = draw(80)
    X = np.insert(X, 1, 4.0, axis=1)
    model = BayesianLinearRegression(basis=basis).fit(X, y)
    X[:, 1] = np.arange(80.0)
    assert np.isfinite(model.partial_fit(X, y).learn_one(X[0], y[0]).predict(X)).all()
    assert np.isfinite(BayesianLinearRegression(basis=basis).fit(X, 0.0 * y + 3.0).coef_).all()


def test_what_there_is_not_gets_no_say() -> None:
    X, _ = draw(150)
    rng = np.random.default_rng(3)
    line = X @ [1.0, -2.0, 0.0] + 0.5 * rng.normal(size=150)
    fresh = rng.normal(size=(200, 3))
    for target, truth in ((line, fresh @ [1.0, -2.0, 0.0]), (line * X[:, 2], None)):
        auto = BayesianLinearRegression(basis="auto").fit(X, target)
        plain = BayesianLinearRegression().fit(X, target)
        if truth is None:
            assert auto.log_evidence_ > plain.log_evidence_ + 20.0
        else:
            assert np.sqrt(np.mean(np.square(auto.predict(fresh) - truth))) < 0.25


@pytest.mark.parametrize("sd", [0.1, 1.0])
def test_intervals_hold(sd: float) -> None:
    rng = np.random.default_rng(4)
    held = []
    for _ in range(6):
        X = rng.uniform(-2.0, 2.0, size=(260, 2))
        y = np.sin(2.0 * X[:, 0]) * X[:, 1] + sd * rng.normal(size=260)
        model = BayesianLinearRegression(basis="auto").fit(X[:60], y[:60])
        ends = model.predict_interval(X[60:], level=0.9)
        held.append(np.mean((ends[:, 0] < y[60:]) & (y[60:] < ends[:, 1])))
    assert 0.83 < np.mean(held) < 0.96


def test_names_and_frames() -> None:
    X, y = draw(80)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    names = BayesianLinearRegression(basis="auto").fit(frame, y).posterior_.names
    assert len(set(names)) == len(names)
    assert {"a", "b_spline1", "a^2", "a c", "random_cos0"} <= set(names)


@pytest.mark.slow
def test_scikit_learn_accepts_it() -> None:
    check_estimator(AutoBasis(n_functions=10), on_skip=None)


@pytest.mark.parametrize("kind", [BayesianRobustRegression, BayesianQuantileRegression])
def test_what_one_hypothesis_leaves_out_others_may_need(kind: Any) -> None:
    """With fewer than four rows a column one prior stands for all hypotheses."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.0, 1.0, size=(150, 1))
    y = np.sin(3.0 * x[:, 0]) + 0.3 * rng.standard_t(3, size=150)
    error = kind(basis="auto").fit(x, y).predict(x) - np.sin(3.0 * x[:, 0])
    assert np.sqrt(np.mean(np.square(error))) < 0.15


def test_labels_and_counts() -> None:
    X, y = draw(150, d=2)
    two = BayesianLogisticRegression(basis="auto").fit(X, y > 0.0)
    assert two.score(X, y > 0.0) > 0.9
    three = np.digitize(y, [-0.5, 0.5])
    few = RandomFourier(length_scale="ard", n_functions=40)
    assert BayesianLogisticRegression(basis=few).fit(X, three).score(X, three) > 0.75
    counts = np.random.default_rng(0).poisson(np.exp(y))
    rates = BayesianPoissonRegression(basis=few).fit(X, counts).predict(X)
    assert np.corrcoef(np.log(rates), y)[0, 1] > 0.8


def test_what_is_refused() -> None:
    X, y = draw(20)
    with pytest.raises(ValueError, match="learned from targets"):
        RandomFourier(length_scale="ard").fit(X)
    with pytest.raises(ValueError, match="does not work with additive=True"):
        HilbertSpaceGP(length_scale="ard", additive=True).fit(X, y)
    with pytest.raises(TypeError, match="must be None, 'auto' or a transformer"):
        BayesianLinearRegression(basis="splines").fit(X, y)
