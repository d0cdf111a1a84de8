"""Adaptive: the averaging itself, and what it promises on drift and in calm."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from posterity import BayesianLinearRegression
from posterity.forgetting import Adaptive, Stabilized
from posterity.kernel import average_members, leading_dimension


def plainly(
    densities: np.ndarray, counts: np.ndarray, persistence: list[float], outer: float
) -> tuple[np.ndarray, float]:
    """The averaging, a row at a time."""
    n, k = densities.shape
    scores, rates = np.zeros((len(persistence), k)), np.zeros(len(persistence))
    weights, evidence = np.empty((n, k)), 0.0
    for i in range(n):
        predictive = np.where(counts[i] > 0, densities[i], densities[i][counts[i] > 0].min())
        allowed = np.where(counts[i] > 0, 0.0, -np.inf)
        inner = np.array(persistence)[:, None] * scores + allowed
        inner -= logsumexp(inner, axis=1, keepdims=True)
        over = outer * rates - logsumexp(outer * rates)
        averages = logsumexp(inner + predictive, axis=1)
        weights[i] = np.exp(logsumexp(over[:, None] + inner, axis=0))
        evidence += logsumexp(over + averages)
        scores = np.array(persistence)[:, None] * scores + predictive
        rates = outer * rates + averages
    return weights, evidence


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 60),
    k=st.integers(1, 11),
    persistence=st.lists(st.sampled_from([1.0, 0.99, 0.9, 0.5]), min_size=1, max_size=4),
    spread=st.sampled_from([0.1, 3.0, 300.0]),
)
def test_weights_are_those_of_the_plain_recursion(
    seed: int, n: int, k: int, persistence: list[float], spread: float
) -> None:
    rng = np.random.default_rng(seed)
    densities = spread * rng.normal(size=(n, k)) - 5.0
    counts = (rng.random((n, k)) < 0.8).astype(float)
    counts[counts.sum(axis=1) == 0] = 1.0
    scores = np.zeros((len(persistence), leading_dimension(k)))
    rates = np.zeros(leading_dimension(len(persistence)))
    expected = plainly(densities, counts, persistence, 0.95)
    half = n // 2
    parts = [
        average_members(
            np.ascontiguousarray(densities[part].T),
            np.ascontiguousarray(counts[part].T, dtype=np.uint8),
            scores,
            rates,
            np.array(persistence),
            0.95,
        )
        for part in (slice(0, half), slice(half, n))
    ]
    assert np.allclose(np.concatenate([part[0] for part in parts]), expected[0], atol=1e-10)
    assert sum(part[1] for part in parts) == pytest.approx(expected[1], rel=1e-10, abs=1e-9)


def blog_stream() -> tuple[np.ndarray, np.ndarray]:
    """The drift of a well-known tutorial (Halford 2020): 100 rows, 50 of transition, 100 rows."""
    rng = np.random.RandomState(42)
    before, after = np.array([-0.3, 0.5]), np.array([1.0, -0.7])
    X, y = np.empty((250, 2)), np.empty(250)
    for i in range(250):
        share = min(max((i - 100) / 50, 0.0), 1.0)
        w = before if i < 100 else share * before + (1 - share) * after if i < 150 else after
        X[i] = 1.0, rng.uniform(-1, 1)
        y[i] = w @ X[i] + rng.normal(0, 0.2)
    return X, y


def test_the_drift_of_the_tutorial_untuned() -> None:
    X, y = blog_stream()
    model = BayesianLinearRegression(
        prior_precision=0.5, noise_precision=25.0, fit_intercept=False, forgetting=Adaptive()
    )
    predicted = model.predict_then_learn(X, y)
    assert np.mean(np.abs(y - predicted.mean())) <= 0.215
    assert np.mean(predicted.logpdf(y)) >= -0.16
    assert np.sum(predicted.logpdf(y)) == pytest.approx(model.log_evidence_)


def drifts(seed: int, n: int = 1500) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(seed)
    i, X, noise = np.arange(n), rng.normal(size=(n, 3)), 0.5 * rng.normal(size=n)
    old, new = np.array([1.0, -2.0, 0.5]), np.array([-1.0, 1.0, 2.0])

    def moved(share: np.ndarray) -> np.ndarray:
        return np.einsum("ij,ij->i", X, old + share[:, None] * (new - old)) + noise

    yield "abrupt", X, moved(i >= n // 2)
    yield "gradual", X, moved(rng.random(n) < np.clip((i - 0.4 * n) / (0.2 * n), 0.0, 1.0))
    yield "incremental", X, moved(np.clip((i - 0.25 * n) / (0.5 * n), 0.0, 1.0))
    yield "recurring", X, moved(i // (n // 6) % 2)
    yield "one feature", X, X @ old + 3.0 * X[:, 1] * (i >= n // 2) + noise
    yield "noise level", X, X @ old + np.where(i < n // 2, 0.6, 3.0) * noise
    yield "none", X, X @ old + noise
    yield "outliers", X, X @ old + noise * np.where(rng.random(n) < 0.02, 20.0, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, _, _ in drifts(0, 12)])
def test_as_good_as_the_best_discount_in_hindsight(name: str) -> None:
    X, y = next((X, y) for drift, X, y in drifts(0) if drift == name)
    scores = [
        np.mean(
            BayesianLinearRegression(forgetting=forgetting).predict_then_learn(X, y).logpdf(y)[6:]
        )
        for forgetting in (Adaptive(), *map(Stabilized, (1.0, 0.999, 0.99, 0.98, 0.95, 0.9, 0.8)))
    ]
    allowed = 0.01 if name == "none" else 0.03
    assert scores[0] >= max(scores[1:]) - allowed * abs(max(scores[1:]))


def test_rows_in_any_pieces_and_one_by_one() -> None:
    X, y = blog_stream()
    model, pieces, lean = (BayesianLinearRegression(forgetting=Adaptive()) for _ in range(3))
    model.predict_then_learn(X, y)
    for start in range(0, 250, 60):
        pieces.partial_fit(X[start : start + 60], y[start : start + 60])
    for x, target in zip(X, y, strict=True):
        lean.learn_one(x, target)
    for other in (pieces, lean):
        # Inside a call the short memories hold their prior a little too firmly: weights differ.
        assert np.allclose(other.coef_, model.coef_, atol=0.02)
        assert other.n_observations_ == 250.0
    # The stream's prior is a few rows old.
    assert model.predict_one(X[0]) == pytest.approx(model.predict(X[:1])[0], abs=0.01)
    assert model.posterior_.mean.shape == (3,)
    assert model.predict_interval(X[:3]).shape == (3, 2)


def test_a_call_that_fails_changes_nothing() -> None:
    X, y = blog_stream()
    model = BayesianLinearRegression(forgetting=Adaptive()).fit(X, y)
    before = model.coef_, model.log_evidence_, model.n_effective_
    broken = X.copy()
    broken[7, 1] = np.nan
    with pytest.raises(ValueError, match="X contains NaN in row 7"):
        model.partial_fit(broken, y)
    assert np.array_equal(model.coef_, before[0])
    assert (model.log_evidence_, model.n_effective_) == before[1:]
    for refused in (lambda: model.unlearn(X[:1], y[:1]), lambda: model.merge(model)):
        with pytest.raises(ValueError, match="under Adaptive"):
            refused()


def test_settings_out_of_range() -> None:
    for settings in ({"discounts": (1.0, 0.0)}, {"persistence": ()}, {"outer_persistence": 1.5}):
        with pytest.raises(ValueError, match=f"{next(iter(settings))} is .* at most 1"):
            Adaptive(**settings)


def test_a_quiet_feature_is_never_less_known_than_by_the_prior() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 2))
    X[100:, 1] = 0.0
    y = X[:, 0] + 0.1 * rng.normal(size=20_000)
    model = BayesianLinearRegression(
        prior_precision=4.0, noise_precision=100.0, fit_intercept=False, forgetting=Adaptive()
    )
    spread = model.predict_then_learn(X, y).std()
    assert np.isfinite(spread).all()
    assert model.predict_distribution([[0.0, 1.0]]).std()[0] <= np.sqrt(0.25 + 0.01)


def jumps(seed: int, n: int = 1500) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients that jump every hundred rows or so, and noise of sd 0.5 throughout."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    moves = 2.0 * rng.normal(size=(n, 3)) * (rng.random((n, 1)) < 0.01)
    return X, np.sum(X * np.cumsum(moves, axis=0), axis=1) + 0.5 * rng.normal(size=n)


def test_intervals_are_no_wider_than_they_say_where_the_world_jumps() -> None:
    """Noise that faded with the coefficients stayed too large: 95% intervals held 98%."""
    held = []
    for seed in range(4):
        X, y = jumps(seed)
        predictive = BayesianLinearRegression(forgetting=Adaptive()).predict_then_learn(X, y)
        probability = predictive.cdf(y)[30:]
        held.append(np.mean((probability > 0.025) & (probability < 0.975)))
    assert 0.94 <= np.mean(held) <= 0.97


def test_the_default_prior_is_as_good_as_a_given_one_with_outliers() -> None:
    X, y = next((X, y) for drift, X, y in drifts(0) if drift == "outliers")
    learned, given = (
        np.mean(
            BayesianLinearRegression(forgetting=Adaptive(), **settings)
            .predict_then_learn(X, y)
            .logpdf(y)[30:]
        )
        for settings in ({}, {"prior_precision": 0.1})
    )
    assert learned >= given - 0.02


def test_an_outlier_does_not_stay_in_the_noise() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(600, 2))
    y = X[:, 0] + rng.normal(size=600)
    y[500] += 30.0
    spread = BayesianLinearRegression(forgetting=Adaptive()).predict_then_learn(X, y).interval(0.95)
    widths = spread[1] - spread[0]
    assert np.median(widths[550:]) <= 1.3 * np.median(widths[450:500])


def test_a_noise_that_grows_by_orders_of_magnitude_is_found_at_once() -> None:
    rng = np.random.default_rng(6)
    X = rng.normal(size=(400, 2))
    y = X[:, 0] + np.where(np.arange(400) < 200, 1e-6, 1.0) * rng.normal(size=400)
    predictive = BayesianLinearRegression(forgetting=Adaptive()).predict_then_learn(X, y)
    assert np.mean(predictive.logpdf(y)[210:]) >= -2.0


def test_reads_change_nothing() -> None:
    X, y = jumps(9, 200)
    model = BayesianLinearRegression(forgetting=Adaptive()).fit(X, y)
    before = pickle.dumps(model)
    first = model.predict_distribution(X[:5])
    model.predict_one(X[0])
    assert np.isfinite(model.posterior_.cov).all()
    assert np.isfinite(model.noise_precision_)
    again = model.predict_distribution(X[:5])
    assert np.array_equal(first.std(), again.std())
    fresh = pickle.loads(before)
    predictive = [one.predict_then_learn(X[:20], y[:20]) for one in (model, fresh)]
    assert np.array_equal(predictive[0].std(), predictive[1].std())
    assert np.array_equal(predictive[0].mean(), predictive[1].mean())


def test_the_noise_that_is_read_is_the_noise_that_the_next_row_is_predicted_with() -> None:
    X, y = jumps(10, 300)
    model = BayesianLinearRegression(prior_precision=0.1, forgetting=Adaptive((1.0,)))
    model.fit(X[:-1], y[:-1])
    read = model.predict_distribution(X[-1:])
    predictive = model.predict_then_learn(X[-1:], y[-1:])
    assert predictive.std() == pytest.approx(read.std())
    assert predictive.logpdf(y[-1:]) == pytest.approx(read.logpdf(y[-1:]))


def test_calm_rows_are_predicted_as_without_forgetting() -> None:
    """Where nothing fades or is capped, errors add up to the residual sum of squares."""
    rng = np.random.default_rng(11)
    X, noise = rng.normal(size=(8, 1)), rng.normal(size=8)
    settings = {"prior_precision": 0.5, "fit_intercept": False, "noise_prior": (2.0, 1.0)}
    model = BayesianLinearRegression(forgetting=Adaptive((1.0,)), **settings).fit(X, noise)
    plain = BayesianLinearRegression(**settings).fit(X, noise)
    assert model.coef_ == pytest.approx(plain.coef_)
    assert model.noise_precision_ == pytest.approx(plain.noise_precision_, rel=0.25)
