"""Many columns of numbers: each has a prior scale of its own, Cauchy around one that they share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from posterity.sparse import (
    DiagonalLinearRegression,
    DiagonalLogisticRegression,
    DiagonalPoissonRegression,
    SparseLinearRegression,
    SparseLogisticRegression,
    SparsePoissonRegression,
)

N, P = 400, 20
# What a row tells of its predictor.
TOLD = {"Linear": 1.0, "Logistic": 0.25, "Poisson": 1.0}
KINDS = [
    SparseLinearRegression,
    SparseLogisticRegression,
    SparsePoissonRegression,
    DiagonalLinearRegression,
    DiagonalLogisticRegression,
    DiagonalPoissonRegression,
]


def draw(kind: Any, seed: int, size: float) -> tuple[pd.DataFrame, Any, np.ndarray, float]:
    """One strong effect, of this size in standard errors, beside 19 of half a standard error."""
    rng = np.random.default_rng(seed)
    name = next(name for name in TOLD if name in kind.__name__)
    error = 1.0 / np.sqrt(N * TOLD[name])
    X, truth = rng.normal(size=(N, P)), 0.5 * error * rng.normal(size=P)
    truth[0] = size * error * rng.choice([-1.0, 1.0])
    eta = X @ truth
    y: Any = eta + rng.normal(size=N)
    if name == "Logistic":
        y = (rng.random(N) < 1.0 / (1.0 + np.exp(-eta))).astype(int)
    if name == "Poisson":
        y = rng.poisson(np.exp(eta))
    return pd.DataFrame(X).add_prefix("x"), y, truth, error


@pytest.mark.parametrize("kind", KINDS)
def test_a_strong_effect_stays_and_weak_ones_are_drawn_to_0(kind: Any) -> None:
    """Flat priors lose 20 and more, one scale for all 14, and holds half of the strong."""
    held, loss, n_sets = 0, 0.0, 8
    for seed in range(n_sets):
        frame, y, truth, error = draw(kind, seed, 6.0)
        table = kind().fit(frame, y).summary().iloc[1:]
        held += bool(table["low"].iloc[0] <= truth[0] <= table["high"].iloc[0])
        loss += np.square((table["mean"] - truth) / error).sum() / n_sets
    assert held >= n_sets - 2
    assert loss < 12.0


@pytest.mark.parametrize("kind", KINDS)
def test_an_array_of_numbers_is_a_frame_of_these(kind: Any) -> None:
    frame, y, *_ = draw(kind, 0, 6.0)
    one, other = kind().fit(frame, y), kind().fit(frame.to_numpy(), y)
    np.testing.assert_allclose(other.coef_, one.coef_, rtol=1e-6, atol=1e-9)
    assert other.prior_scales_.keys() == one.prior_scales_.keys()
    np.testing.assert_allclose(other.predict(frame.to_numpy()[:5]), one.predict(frame[:5]))


def test_of_gaussian_noise_precisions_agree_with_turns() -> None:
    """Each precision is 2 / (v + m^2 + t), 1 / t the likeliest one that all share: slow twin."""
    frame, y, *_ = draw(SparseLinearRegression, 1, 6.0)
    model = SparseLinearRegression().fit(frame, y)
    X = frame.to_numpy() - frame.to_numpy().mean(axis=0)
    z, units = y - y.mean(), np.square(X).mean(axis=0)
    shape, rate = model._posterior.noise
    shared, noise, precisions = 1.0 / P, 1.0, np.full(P, float(P))
    for _ in range(4000):
        covariance = np.linalg.inv(X.T @ X + np.diag(precisions * units))
        mean = covariance @ X.T @ z
        noise = (shape + 0.5 * (N - 1)) / (rate + 0.5 * (z @ z - mean @ X.T @ z))
        squares = units * (covariance.diagonal() + noise * np.square(mean))
        precisions = 2.0 / (squares + shared)
        shared = (P + 2.0 / (1.0 + P / (0.002 * precisions.sum()))) / precisions.sum()
    np.testing.assert_allclose(model.coef_, mean, atol=2e-5)
    found = np.array(list(model.prior_scales_.values()))
    np.testing.assert_allclose(found, precisions**-0.5, rtol=2e-3)


def test_a_year_among_many_keeps_its_effect() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 40))
    y = 1.0 * X[:, 0] + rng.normal(size=300)
    X[:, 0] = 2000.0 + 3.0 * X[:, 0]
    frame = pd.DataFrame(X).add_prefix("x").rename(columns={"x0": "year"})
    for kind in (SparseLinearRegression, DiagonalLinearRegression):
        found = kind().fit(frame, y).summary().loc["year"]
        assert found["low"] < 1.0 / 3.0 < found["high"]
        assert found["sd"] < 0.025


def test_correlated_columns_of_labels_do_not_go_astray() -> None:
    """Messages that overshoot end at short steps, which are no sign that they have settled."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(1_500, 100)) + 3.0 * rng.normal(size=(1_500, 1))
    eta = X @ rng.normal(size=100) / 10.0
    y = (rng.random(1_500) < 1.0 / (1.0 + np.exp(-eta))).astype(int)
    model = DiagonalLogisticRegression().fit(X[:1_000], y[:1_000])
    own = np.take_along_axis(model.predict_proba(X[1_000:]), y[1_000:, None], 1)
    assert -np.mean(np.log(own)) < 0.8


def test_arrays_and_sparse_matrices_do_not_merge() -> None:
    frame, y, *_ = draw(SparseLinearRegression, 3, 6.0)
    numbers = frame.to_numpy()
    one = DiagonalLinearRegression().fit(numbers, y)
    other = DiagonalLinearRegression().fit((numbers > -1.0).astype(float), y)
    with pytest.raises(ValueError, match="number their features in different ways"):
        one.merge(other)
