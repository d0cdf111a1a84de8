"""Predictions by the data's singular values are those of the nodes, each with its own triangle."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from posterity import BayesianLinearRegression
from posterity.noise import Distribution
from posterity.posteriors._nodes import LazyNodes
from posterity.posteriors.evidence import EvidencePosterior


def read_by_both(
    model: BayesianLinearRegression, X: NDArray[np.float64]
) -> tuple[Distribution, Distribution]:
    """The prediction by singular values, and by the nodes."""
    posterior = model._posterior
    assert isinstance(posterior, EvidencePosterior)
    fresh, data = posterior._fresh, posterior.state.data
    by_spectrum = fresh.predictive(data, X)
    assert by_spectrum is not None
    nodes = LazyNodes(fresh.choice).nodes(posterior.mean, data)
    return by_spectrum, nodes.predictive(X)


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(5, 120),
    p=st.integers(33, 70),  # fewer features are chosen for in the kernel
    intercept=st.booleans(),
    offset=st.sampled_from([0.0, 1.0, 1e4]),
    prior_mean=st.sampled_from([0.0, 0.7]),
    noise=st.sampled_from([None, 4.0]),
)
@settings(max_examples=25)
def test_spectrum_and_nodes_predict_the_same(
    seed: int,
    n: int,
    p: int,
    intercept: bool,
    offset: float,
    prior_mean: float,
    noise: float | None,
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * np.exp(rng.normal(size=p)) + offset * rng.normal(size=p)
    y = X @ (rng.normal(size=p) * (rng.random(p) < 0.2)) + rng.normal(size=n)
    model = BayesianLinearRegression(
        fit_intercept=intercept, prior_mean=prior_mean, noise_precision=noise
    ).fit(X, y)
    model.coef_  # noqa: B018 (chooses the prior)
    if model._posterior._fresh.choice.spectrum is None:
        return  # the features almost depend on each other
    places = np.vstack([X[:5], 3.0 * X[:5] + 1.0, rng.normal(size=(5, p)), np.zeros((1, p))])
    one, other = read_by_both(model, places)
    rounding = 1e-10 * (1.0 + offset)
    np.testing.assert_allclose(one.loc, other.loc, rtol=rounding, atol=rounding * np.ptp(y))
    np.testing.assert_allclose(one.scale, other.scale, rtol=rounding)


@pytest.mark.parametrize("intercept", [True, False])
def test_the_noise_is_the_same(intercept: bool) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 40))
    model = BayesianLinearRegression(fit_intercept=intercept).fit(X, X[:, 0] + rng.normal(size=60))
    before = model._posterior.noise_precision
    nodes = model._posterior.nodes
    each = [node.noise_precision for node in nodes.posteriors]
    assert before == pytest.approx(float(nodes.average(each)), rel=1e-12)


def test_a_prediction_does_not_depend_on_what_was_read_before() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(50, 80))
    y = X[:, 0] + rng.normal(size=50)
    fresh = BayesianLinearRegression().fit(X, y)
    read = BayesianLinearRegression().fit(X, y)
    read.summary()
    one, other = fresh.predict_interval(X), read.predict_interval(X)
    np.testing.assert_array_equal(one, other)


def test_pickles_leave_the_spectrum_out() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(50, 80))
    model = BayesianLinearRegression().fit(X, X[:, 0] + rng.normal(size=50))
    before = model.predict_interval(X)
    again = pickle.loads(pickle.dumps(model))
    assert again._posterior._fresh.choice.spectrum is None
    np.testing.assert_allclose(again.predict_interval(X), before, rtol=1e-10, atol=1e-10)
