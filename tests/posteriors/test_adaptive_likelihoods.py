"""Adaptive around posteriors of every kind: as good as the best memory, and read as a mixture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from posterity import (
    BayesianGeneralizedLinear,
    BayesianQuantileRegression,
    BayesianRobustRegression,
)
from posterity.distributions import Mixture
from posterity.files import dumps, loads
from posterity.forgetting import Adaptive, Stabilized
from posterity.likelihoods import LaplaceNoise

DISCOUNTS = (1.0, 0.97, 0.85)
N = 200
RNG = np.random.default_rng(7)
X = RNG.normal(size=(N, 2))
W = np.where(np.arange(N) < 100, 2.0, -2.0)
Y = 1.0 + W * X[:, 0] + 0.5 * RNG.standard_t(3.0, size=N)

Make = Callable[[Any], Any]
MODELS: dict[str, Make] = {
    "student_t": lambda f: BayesianRobustRegression(prior_precision=0.1, forgetting=f),
    "laplace": lambda f: BayesianRobustRegression(
        likelihood="laplace", prior_precision=0.1, forgetting=f
    ),
    "quantile": lambda f: BayesianQuantileRegression(
        quantile=0.3, prior_precision=0.1, forgetting=f
    ),
    "a likelihood": lambda f: BayesianGeneralizedLinear(
        LaplaceNoise(0.5), prior_precision=0.1, forgetting=f
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_it_is_as_good_as_the_best_memory_and_reads_are_mixtures(name: str) -> None:
    make = MODELS[name]
    model = make(Adaptive(discounts=DISCOUNTS))
    predictive = model.predict_then_learn(X, Y)
    scores = [
        make(Stabilized(one)).predict_then_learn(X, Y).logpdf(Y)[20:].mean() for one in DISCOUNTS
    ]
    assert predictive.logpdf(Y)[20:].mean() > max(scores) - 0.03
    # A likelihood's predictions of heavy tails are near its densities, to three digits.
    near = 1e-3 if name == "a likelihood" else 1e-9
    assert predictive.logpdf(Y).sum() == pytest.approx(model.log_evidence_, rel=near)
    assert model.coef_[0] < -1.5
    assert model.n_effective_ < 150.0
    # What is read is the members' mixture.
    runs, weights = model._posterior.ahead()
    assert model.coef_ == pytest.approx(weights @ [run.coefficients()[1:] for run in runs])
    assert np.allclose(model.posterior_.mean[1:], model.coef_)
    ahead = model.predict_distribution(X[:4])
    parts = [run.predictive(X[:4]) for run in runs]
    mixture = weights @ [part.pdf(Y[:4]) for part in parts]
    assert ahead.logpdf(Y[:4]) == pytest.approx(np.log(mixture), rel=1e-9)
    low, high = ahead.interval(0.8)
    assert np.allclose(ahead.cdf(high) - ahead.cdf(low), 0.8, atol=1e-6)
    content = dumps(model)
    assert model.predict_one(X[0]) == pytest.approx(model.predict(X[:1])[0])
    assert model.predict_interval(X[:3]).shape == (3, 2)
    assert dumps(model) == content
    loaded = loads(content)
    for one in (model, loaded):
        one.partial_fit(X[:10], Y[:10])
    assert dumps(loaded) == dumps(model)


def test_the_quantiles_own_interval_is_the_members_mixture() -> None:
    model = MODELS["quantile"](Adaptive(discounts=DISCOUNTS)).fit(X, Y)
    own = model.predict_quantile(X[:3])
    assert isinstance(own, Mixture)
    runs, weights = model._posterior.ahead()
    assert own.mean() == pytest.approx(
        weights @ [run.quantile_distribution(X[:3]).mean() for run in runs]
    )
    assert np.allclose(model.predict_interval(X[:3]), np.stack(own.interval(0.95), axis=1))
    assert np.allclose(model.predict(X[:3], return_std=True)[1], own.std())
    scales = [run.scale for run in runs]
    assert model.noise_scale_ == pytest.approx(weights @ scales)


def test_intervals_of_rows_that_are_no_outliers_hold_them() -> None:
    rng = np.random.default_rng(3)
    x, noise = rng.normal(size=(300, 1)), 0.5 * rng.normal(size=300)
    y = np.where(np.arange(300) < 150, 2.0, -2.0) * x[:, 0] + noise
    y[::10] += 50.0
    model = BayesianRobustRegression(
        prior_precision=0.1, forgetting=Adaptive(discounts=DISCOUNTS)
    ).fit(x, y)
    assert model.coef_[0] == pytest.approx(-2.0, abs=0.3)
    assert model.core_std_ == pytest.approx(0.5, abs=0.2)
    new = rng.normal(size=(400, 1))
    target = -2.0 * new[:, 0] + 0.5 * rng.normal(size=400)
    low, high = model.predict_interval(new).T
    assert 0.88 < np.mean((low < target) & (target < high)) <= 1.0
    assert (high - low).max() < 5.0


def test_rows_one_by_one_are_rows_in_a_call() -> None:
    """But for how firmly a call over many rows holds the prior."""
    flat = {"prior_precision": 0.0, "forgetting": Adaptive(discounts=(1.0, 0.9))}
    whole, rows = (BayesianRobustRegression(**flat) for _ in range(2))
    whole.partial_fit(X[:90], Y[:90])
    for i in range(90):
        rows.learn_one(X[i], Y[i])
    assert np.allclose(rows.coef_, whole.coef_, rtol=1e-6)
    assert rows.log_evidence_ == pytest.approx(whole.log_evidence_, rel=1e-6)


def test_what_rests_on_the_order_is_refused() -> None:
    model = BayesianRobustRegression(forgetting=Adaptive(discounts=(1.0, 0.9))).fit(X[:30], Y[:30])
    with pytest.raises(ValueError, match="can't unlearn rows under Adaptive"):
        model.unlearn(X[:1], Y[:1])
    with pytest.raises(ValueError, match="can't merge models under Adaptive"):
        model.merge(
            BayesianRobustRegression(forgetting=Adaptive(discounts=(1.0, 0.9))).fit(X[:30], Y[:30])
        )
