"""Rows that are equal, or weigh more: weight 2 is the row twice, and says nothing of the noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from posterity import (
    BayesianLogisticRegression,
    BayesianQuantileRegression,
    BayesianRobustRegression,
)

X = np.array([[1.0], [1.0], [2.0], [4.0], [3.0]])
Y = np.array([1.0, 1.0, 2.5, 3.0, 7.0])
MODELS: list[tuple[type[Any], dict[str, Any]]] = [
    (BayesianRobustRegression, {"likelihood": "student_t"}),
    (BayesianRobustRegression, {"likelihood": "laplace"}),
    (BayesianQuantileRegression, {"quantile": 0.5}),
    (BayesianQuantileRegression, {"quantile": 0.8}),
]
WEIGHTS = [[1.0] * 5, [2.0, 1.0, 1.0, 1.0, 1.0], [2.0] * 5]


@pytest.mark.parametrize("weights", WEIGHTS, ids=str)
@pytest.mark.parametrize("prior", ["auto", 0.0, 1.0])
@pytest.mark.parametrize(("kind", "given"), MODELS, ids=str)
def test_the_evidence_of_a_stream_is_near_that_of_fit(
    kind: type[Any], given: dict[str, Any], prior: Any, weights: list[float]
) -> None:
    model = kind(prior_precision=prior, **given)
    predictive = model.predict_then_learn(X, Y, weights)
    assert np.all(predictive.std() > 0.3)
    fitted = kind(prior_precision=prior, **given).fit(X, Y, weights)
    assert model.log_evidence_ == pytest.approx(weights @ predictive.logpdf(Y), abs=10.0)
    assert model.log_evidence_ == pytest.approx(fitted.log_evidence_, abs=20.0)
    assert -30.0 < fitted.log_evidence_ < -5.0
    rows = kind(prior_precision=prior, **given)
    for x, y, weight in zip(X, Y, weights, strict=True):
        rows.learn_one(x, y, weight=weight)
    assert rows.log_evidence_ == pytest.approx(model.log_evidence_, rel=1e-6)


@pytest.mark.parametrize(("kind", "given"), MODELS, ids=str)
def test_half_of_the_targets_may_be_equal(kind: type[Any], given: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 2))
    y = np.where(np.arange(60) < 20, 5.0, 5.0 + rows[:, 0] + rng.normal(size=60))
    model = kind(**given)
    predictive = model.predict_then_learn(rows, y)
    assert np.isfinite(model.log_evidence_)
    assert np.all(predictive.std()[20:] > 0.0)
    assert 0.02 < model.noise_scale_ < 2.0


@pytest.mark.parametrize("n", [20, 40, 100])
@pytest.mark.parametrize("prior", ["auto", 0.0, 1.0])
@pytest.mark.parametrize("kind", [0.2, 0.5, 0.9, "labels"])
def test_weight_two_is_the_row_twice(kind: Any, prior: Any, n: int) -> None:
    rng = np.random.default_rng(n)
    rows = rng.normal(size=(n, 2))
    y, make = rows @ [0.8, -0.5] + rng.normal(size=n), BayesianQuantileRegression
    given: dict[str, Any] = {"quantile": kind}
    if kind == "labels":
        y, make, given = (
            (2.0 * y > rng.logistic(size=n)).astype(int),
            BayesianLogisticRegression,
            {},
        )
    times = np.arange(n) % 3
    models = [
        make(prior_precision=prior, **given).fit(rows, y, times),
        make(prior_precision=prior, **given).fit(np.repeat(rows, times, 0), np.repeat(y, times)),
    ]
    one, other = (np.concatenate([m.posterior_.mean, np.log(m.posterior_.std())]) for m in models)
    np.testing.assert_allclose(one, other, atol=1e-4)


@pytest.mark.parametrize("prior", ["auto", 1.0])
@pytest.mark.parametrize(("kind", "given"), MODELS, ids=str)
def test_a_prior_is_no_rows_of_features(kind: type[Any], given: dict[str, Any], prior: Any) -> None:
    rows = np.random.default_rng(1).normal([0.0, 5.0], [1.0, 10.0], size=(30, 2))
    y = 0.05 * rows[:, 0] + np.random.default_rng(2).normal(size=30)
    scales = kind(prior_precision=prior, **given).fit(rows, y).feature_scales_
    assert np.abs(np.log(scales / rows.std(axis=0))).max() < 0.45
