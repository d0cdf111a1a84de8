"""Whoever asks for a row's prediction, and in whatever way, hears the same."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from posterity import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegression,
    BayesianPoissonRegression,
    BayesianRobustRegression,
)
from posterity.forgetting import Adaptive, Exponential, Stabilized, Window

Models = Callable[[], Any]
TOGETHER: dict[str, Models] = {
    "auto": BayesianLinearRegression,
    "ard": lambda: BayesianLinearRegression(prior_precision="ard"),
    "known noise": lambda: BayesianLinearRegression(noise_precision=1.0),
    "logistic": BayesianLogisticRegression,
    "Poisson": BayesianPoissonRegression,
    "negative binomial": BayesianNegativeBinomialRegression,
    "robust": BayesianRobustRegression,
}


def make_rows(name: str, seed: int, n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows, one of which is to be predicted: the last."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + 1, p))
    eta = 0.5 * X @ rng.normal(size=p)
    if name == "logistic":
        y = (rng.random(n + 1) < 1.0 / (1.0 + np.exp(-eta))).astype(int)
        y[:2] = 0, 1
        return X, y
    if name in ("Poisson", "negative binomial"):
        return X, rng.poisson(np.exp(np.clip(eta, -3.0, 3.0)))
    return X, eta + rng.normal(size=n + 1)


def means(model: Any, x: np.ndarray, target: float, *, waits: bool = True) -> list[Any]:
    """Means at a row, in each way that can be asked; ``waits``: before the next one, too."""
    if isinstance(model, BayesianLogisticRegression):
        told = [model.predict_distribution(x[None]), model.predict_distribution_one(x)]
        if waits:
            told.append(copy.deepcopy(model).predict_then_learn(x[None], [target]))
        ones = [model.predict_proba_one(x)[1], model.predict_proba(x[None])[0, 1]]
        return ones + [np.ravel(one.probabilities)[1] for one in told]
    told = [model.predict_distribution(x[None]), model.predict_distribution_one(x)]
    if waits:
        told.append(copy.deepcopy(model).predict_then_learn(x[None], [target]))
        told.append(copy.deepcopy(model).predict_then_learn_one(x, target))
    ones = [model.predict(x[None])[0], model.predict_one(x)]
    return ones + [float(np.ravel(one.mean())[0]) for one in told]


def assert_one_answer(answers: list[Any]) -> None:
    assert answers == pytest.approx([answers[0]] * len(answers), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", TOGETHER)
@settings(max_examples=6)
@given(seed=st.integers(0, 10**6), n=st.integers(5, 60), p=st.integers(1, 4), way=st.integers(0, 3))
def test_after_rows_that_came_together(name: str, seed: int, n: int, p: int, way: int) -> None:
    X, y = make_rows(name, seed, n, p)
    half, make = max(n // 2, 3), TOGETHER[name]
    if way == 0:
        model = make().fit(X[:n], y[:n])
    elif way == 1:
        model = make().fit(X[:half], y[:half]).partial_fit(X[half:n], y[half:n])
    elif way == 2:
        model = make().fit(X[:half], y[:half])
        model.merge(make().fit(X[:half] + 0.1, y[:half]))
    else:  # single rows before, and predictions of them
        model = make().fit(X[:half], y[:half])
        for i in range(half, n):
            model.learn_one(X[i], y[i])
            means(model, X[i], y[i], waits=False)
        model.partial_fit(X[:3], y[:3])
    # A skewed posterior corrects what is read, not what a stream says ahead of its rows.
    waits = isinstance(model, BayesianLinearRegression | BayesianRobustRegression)
    assert_one_answer(means(model, X[n], y[n], waits=waits))
    # Reading and looking ahead changed nothing.
    assert_one_answer(means(model, X[n], y[n], waits=waits))


@settings(max_examples=8)
@given(seed=st.integers(0, 10**6), n=st.integers(5, 80), p=st.integers(1, 4), some=st.booleans())
def test_at_any_row_of_a_stream_under_adaptive(seed: int, n: int, p: int, some: bool) -> None:
    X, y = make_rows("auto", seed, n, p)
    model = BayesianLinearRegression(forgetting=Adaptive())
    model.predict_then_learn(X[: n // 2], y[: n // 2])
    for i in range(n // 2, n):
        if some:
            model.learn_one(X[i], y[i])
        else:
            model.partial_fit(X[i : i + 1], y[i : i + 1])
        if i % 5 == 0:
            assert_one_answer(means(model, X[n], y[n], waits=False))
    told = means(model, X[n], y[n], waits=False)
    assert_one_answer([*told, model.intercept_ + X[n] @ model.coef_])


@pytest.mark.parametrize("forgetting", [None, Exponential(0.95), Stabilized(0.95), Window(20)])
@given(seed=st.integers(0, 10**6), n=st.integers(10, 60))
@settings(max_examples=5)
def test_with_a_given_prior_at_any_row(forgetting: Any, seed: int, n: int) -> None:
    X, y = make_rows("auto", seed, n, 3)
    model = BayesianLinearRegression(prior_precision=1.0, forgetting=forgetting)
    for i in range(n):
        model.learn_one(X[i], y[i])
    # Before the next row time passes, in which the prior comes nearer.
    assert_one_answer(means(model, X[n], y[n], waits=not isinstance(forgetting, Stabilized)))


def test_rows_without_weight_leave_it_at_that() -> None:
    X, y = make_rows("Poisson", 3, 40, 3)
    for name in ("auto",):
        model = TOGETHER[name]().fit(X[:30], y[:30])
        expected = model.predict(X[30:33])
        predictive = copy.deepcopy(model).predict_then_learn(X[30:33], y[30:33], [0.0, 0.0, 1.0])
        np.testing.assert_allclose(predictive.mean(), expected, rtol=1e-9)
        model.learn_one(X[30], y[30], 0.0)
        assert model.predict_one(X[31]) == pytest.approx(expected[1], rel=1e-9)


@given(seed=st.integers(0, 10**6), n=st.integers(12, 60))
@settings(max_examples=5)
def test_in_between_it_hardly_matters(seed: int, n: int) -> None:
    """Single rows are predicted under a prior that was chosen some rows ago."""
    X, y = make_rows("auto", seed, n, 3)
    model = BayesianLinearRegression()
    for i in range(n):
        model.learn_one(X[i], y[i])
    sd = model.predict_mean_distribution(X[n:]).std()[0]
    assert abs(model.predict_one(X[n]) - model.predict(X[n:])[0]) < 0.5 * sd
