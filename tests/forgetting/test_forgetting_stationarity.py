"""Streams without end: quiet features, turnover after turnover of the factor, real data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from posterity import BayesianLinearRegression
from posterity.forgetting import (
    Adaptive,
    Changepoint,
    Directional,
    Exponential,
    Forgetting,
    RandomWalk,
    Smoothing,
    Stabilized,
    Window,
)

Stream = tuple[np.ndarray, np.ndarray]
EVERY = [
    Exponential(0.99),
    Stabilized(0.99),
    Directional(0.99),
    Smoothing(0.99),
    RandomWalk(1e-4),
    Window(size=500),
    Adaptive(),
]
LONG = [100_000, pytest.param(1_000_000, marks=pytest.mark.slow)]
CHUNK = 20_000
NOISY_AND_QUIET = {"noise_precision": 1.0, "prior_precision": 2.0, "fit_intercept": False}


def name(strategy: object) -> str:
    return type(strategy).__name__ if isinstance(strategy, Forgetting) else str(strategy)


def going_quiet(n: int, coefficient: float = 3.0, quiet_from: int = 1_000) -> Stream:
    """The last of three features, which has this coefficient, is 0 from some row on."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    X[quiet_from:, 2] = 0.0
    return X, X @ [1.0, -2.0, coefficient] + rng.normal(size=n)


@pytest.mark.parametrize("n", LONG)
@pytest.mark.parametrize("strategy", [Stabilized(0.99), Directional(0.99), Adaptive()], ids=name)
def test_a_quiet_feature_falls_back_to_its_prior_at_most(strategy: Forgetting, n: int) -> None:
    """Asked of the quiet feature at every 997th row, and after every call.

    The variance of a mixture is that of its members, at most the prior's, and that of their means,
    which lie between the prior's 0 and what was learned. All together it is at most the prior's
    where what was learned is something that the prior expects: within its sd, 0.7.
    """
    X, y = going_quiet(n, 0.5 if isinstance(strategy, Adaptive) else 3.0)
    probes = np.arange(2_000, n, 997)
    X[probes] = [0.0, 0.0, 1.0]
    weights = np.ones(n)
    weights[probes] = 0.0
    prior_spread = np.sqrt(1.0 + 1.0 / 2.0)
    model = BayesianLinearRegression(forgetting=strategy, **NOISY_AND_QUIET)
    for start in range(0, n, CHUNK):
        part = slice(start, start + CHUNK)
        predictive = model.predict_then_learn(X[part], y[part], sample_weight=weights[part])
        asked = probes[(probes >= start) & (probes < start + CHUNK)] - start
        assert np.isfinite(predictive.mean()).all()
        assert (predictive.std()[asked] <= prior_spread * (1.0 + 1e-9)).all()
        after = model.predict_distribution([[0.0, 0.0, 1.0]])
        assert after.std()[0] <= prior_spread * (1.0 + 1e-9)
        assert abs(after.mean()[0]) <= 3.2  # between the prior's 0 and what was learned
        assert after.std()[0] >= 1.0


def test_a_quiet_feature_under_adaptive_that_surprised_the_prior() -> None:
    """Members that remember say 3, those that forgot say 0: their disagreement counts as well."""
    X, y = going_quiet(30_000)
    model = BayesianLinearRegression(forgetting=Adaptive(), **NOISY_AND_QUIET).fit(X, y)
    predictive = model.predict_distribution([[0.0, 0.0, 1.0]])
    # Values between 0 and 3 have an sd of at most 1.5.
    assert predictive.std()[0] <= np.sqrt(1.5 + 1.5**2) * (1.0 + 1e-9)


@pytest.mark.parametrize("n", LONG)
@pytest.mark.parametrize("settings", [{}, NOISY_AND_QUIET], ids=["noise learned", "noise known"])
@pytest.mark.parametrize("strategy", EVERY, ids=name)
def test_no_nan_and_no_infinity(strategy: Forgetting, settings: dict[str, Any], n: int) -> None:
    """Under every strategy, with a feature that has gone quiet."""
    X, y = going_quiet(n)
    if isinstance(strategy, Smoothing):  # one row's worth of data tells no prior
        settings = {"prior_precision": 1.0} | settings
    model = BayesianLinearRegression(forgetting=strategy, **settings)
    for start in range(0, n, CHUNK):
        part = slice(start, start + CHUNK)
        predictive = model.predict_then_learn(X[part], y[part])
        assert np.isfinite(predictive.mean()).all()
        knows_its_noise = "noise_precision" in settings or not isinstance(strategy, Smoothing)
        if knows_its_noise:
            assert np.isfinite(predictive.std()[10:]).all()
        assert not np.isnan(predictive.std()).any()
        assert np.isfinite(model.coef_).all()
    assert not np.isnan(model.predict_distribution([[0.0, 0.0, 1.0]]).std()).any()
    # What is still seen is still known.
    assert model.coef_[:2] == pytest.approx([1.0, -2.0], abs=0.5)


def outages(n: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows one unit apart, and after every tenth of them 10,000 units of nothing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    times = np.arange(n) + 10_000.0 * (np.arange(n) // 10)
    return X, X @ [1.0, -2.0, 3.0] + rng.normal(size=n), times


@pytest.mark.parametrize(
    "strategy",
    [Exponential(0.99), Stabilized(0.99), Directional(0.99), Smoothing(0.99), RandomWalk(0.1)],
    ids=name,
)
def test_a_hundred_million_units_of_forgetting(strategy: Forgetting) -> None:
    """100,000 rows over 10^8 units of time: all is multiplied by 0.99^(10^8) = e^(-1,005,034).

    What a factor goes through in 10^8 rows is that product (and its rotations, whose rounding
    fades with what they rotated). Here it is the same product in fewer rows. At the end the model
    is the one that learned the last of the rows only.
    """
    X, y, times = outages(100_000)
    assert times[-1] > 0.99e8
    model = BayesianLinearRegression(forgetting=strategy, **NOISY_AND_QUIET)
    for part in np.array_split(np.arange(len(X)), 7):
        predictive = model.predict_then_learn(X[part], y[part], times=times[part])
        assert np.isfinite(predictive.mean()).all()
        assert np.isfinite(predictive.std()).all()
    last = slice(-1_000, None)
    fresh = BayesianLinearRegression(forgetting=strategy, **NOISY_AND_QUIET)
    fresh.fit(X[last], y[last], times=times[last])
    assert model.coef_ == pytest.approx(fresh.coef_, rel=1e-9)
    if not isinstance(strategy, Smoothing | Exponential):
        assert model.posterior_.cov == pytest.approx(fresh.posterior_.cov, rel=1e-8, abs=1e-12)
    assert model.n_effective_ == pytest.approx(
        100_000 if isinstance(strategy, RandomWalk) else fresh.n_effective_, rel=1e-12
    )


@pytest.mark.parametrize("strategy", [Exponential(0.3), Stabilized(0.3)], ids=name)
def test_as_much_forgetting_by_rows(strategy: Forgetting) -> None:
    """e^(-1,005,034) again, by 835,000 rows that come without a gap, each fading by 0.3."""
    n = 835_000
    rng = np.random.default_rng(2)
    X = rng.normal(size=(n, 2))
    y = X @ [1.0, -2.0] + rng.normal(size=n)
    model = BayesianLinearRegression(forgetting=strategy, **NOISY_AND_QUIET)
    predictive = model.predict_then_learn(X, y)
    assert np.isfinite(predictive.mean()).all()
    assert np.isfinite(predictive.std()).all()
    fresh = BayesianLinearRegression(forgetting=strategy, **NOISY_AND_QUIET)
    fresh.fit(X[-200:], y[-200:])
    assert model.coef_ == pytest.approx(fresh.coef_, rel=1e-9)
    assert model.n_effective_ == pytest.approx(1.0 / 0.7, rel=1e-12)


@pytest.mark.parametrize("n", [60_000, pytest.param(1_200_000, marks=pytest.mark.slow)])
def test_a_window_turned_over_as_often(n: int) -> None:
    """10^8 rows turn a window of 500 over 200,000 times; so do 1,200,000 rows one of six.

    The faster version turns over 10,000 times, with rows of all sizes.
    """
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 2)) * 10.0 ** rng.integers(-4, 4, size=(n, 1))
    y = X @ [1.0, -2.0] + rng.normal(size=n)
    model = BayesianLinearRegression(forgetting=Window(size=6), **NOISY_AND_QUIET)
    predictive = model.predict_then_learn(X, y)
    assert np.isfinite(predictive.mean()).all()
    assert np.isfinite(predictive.std()).all()
    fresh = BayesianLinearRegression(**NOISY_AND_QUIET).fit(X[-6:], y[-6:])
    assert model.coef_ == pytest.approx(fresh.coef_, rel=1e-9)


@pytest.mark.parametrize("discount", [0.99, 0.9])
@pytest.mark.parametrize("prior_precision", [0.0, 1.0])
@pytest.mark.parametrize(
    "kind",
    [
        Exponential,
        Stabilized,
        Directional,
        Smoothing,
        RandomWalk,
        Window,
        Adaptive,
        pytest.param(Changepoint, marks=pytest.mark.slow),
    ],
)
def test_electricity(
    electricity: Stream, kind: type, prior_precision: float, discount: float
) -> None:
    """A feature that is constant for months: plain covariance forgetting turns into NaN on it."""
    X, y = electricity
    strategies: dict[type, Any] = {
        RandomWalk: {"variance": 1.0 - discount},
        Window: {"size": round(5.0 / (1.0 - discount))},
        Adaptive: {},
        Changepoint: {"hazard": 1.0 - discount},
        Smoothing: {"gamma": discount},
    }
    strategy = kind(**strategies.get(kind, {"discount": discount}))
    model = BayesianLinearRegression(prior_precision=prior_precision, forgetting=strategy)
    predictive = model.predict_then_learn(X, y)
    assert np.isfinite(predictive.mean()).all()
    assert not np.isnan(predictive.std()).any()
    assert not np.isnan(predictive.logpdf(y)).any()
    assert np.isfinite(model.coef_).all()
    if prior_precision > 0.0 and kind is not Smoothing:
        assert np.isfinite(predictive.std()[20:]).all()
        assert np.mean(np.abs(y - predictive.mean())) < np.mean(np.abs(y - np.mean(y)))


def test_targets_too_small_to_square() -> None:
    """Their squares underflow; the prior that is refreshed and taken out again must not mind."""
    model = BayesianLinearRegression(prior_precision=1.0, forgetting=Stabilized(discount=0.9))
    model.learn_one(np.zeros(2), 0.0).learn_one(np.ones(2), 1e-200)
    assert np.isfinite(model.coef_).all()
