"""What the strategies are, held against weighted least squares, a Kalman filter and fresh fits."""

from __future__ import annotations

import numpy as np
import pytest

from posterity import BayesianLinearRegression
from posterity.forgetting import Exponential, RandomWalk, Stabilized, Window

sm = pytest.importorskip("statsmodels.api", reason="needs statsmodels")


def stream(n: int, p: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, 2.0 + X @ rng.normal(size=p) + rng.normal(size=n)


def relative(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.max(np.abs(a - b)) / np.max(np.abs(b)))


@pytest.mark.parametrize("discount", [0.5, 0.9, 0.99, 0.999])
def test_exponential_is_weighted_least_squares(discount: float) -> None:
    n, p = 600, 4
    X, y = stream(n, p)
    weights = discount ** np.arange(n - 1, -1, -1.0)
    expected = sm.WLS(y, sm.add_constant(X), weights=weights).fit()
    model = BayesianLinearRegression(prior_precision=0.0, forgetting=Exponential(discount))
    model.fit(X, y)
    ours = np.array([model.intercept_, *model.coef_])
    assert ours == pytest.approx(expected.params, rel=1e-10)
    assert model.n_effective_ == pytest.approx(weights.sum(), rel=1e-12)
    # statsmodels counts rows; what is left for the noise here are the weights, as they have faded.
    left = weights.sum() - p - 1
    if left > 0.0:
        scale = expected.ssr / left
        assert 1.0 / model.noise_precision_ == pytest.approx(scale, rel=1e-10)
        joint = model.posterior_
        covariance = np.asarray(expected.normalized_cov_params) * scale
        if left > 2.0:
            assert relative(joint.cov * (left - 2.0) / left, covariance) < 1e-9


def test_exponential_with_weights_and_times_is_weighted_least_squares() -> None:
    n, p, half_life = 400, 3, 20.0
    X, y = stream(n, p, seed=1)
    rng = np.random.default_rng(2)
    times = np.cumsum(rng.exponential(size=n))
    own = rng.uniform(0.2, 3.0, size=n)
    weights = own * 0.5 ** ((times[-1] - times) / half_life)
    expected = sm.WLS(y, sm.add_constant(X), weights=weights).fit()
    model = BayesianLinearRegression(
        prior_precision=0.0, forgetting=Exponential(half_life=half_life)
    ).fit(X, y, sample_weight=own, times=times)
    assert np.array([model.intercept_, *model.coef_]) == pytest.approx(expected.params, rel=1e-10)
    assert model.n_effective_ == pytest.approx(weights.sum(), rel=1e-12)
    assert model.n_observations_ == pytest.approx(own.sum(), rel=1e-12)


@pytest.mark.parametrize("discount", [0.5, 0.97, 0.999])
@pytest.mark.parametrize("noise_precision", [None, 4.0])
def test_stabilized_is_the_prior_and_discounted_data(
    discount: float, noise_precision: float | None
) -> None:
    X, y = stream(300, 5, seed=3)
    settings = {"prior_mean": 0.5, "prior_precision": 3.0, "noise_precision": noise_precision}
    weights = discount ** np.arange(len(X) - 1, -1, -1.0)
    expected = BayesianLinearRegression(**settings).fit(X, y, sample_weight=weights)
    model = BayesianLinearRegression(**settings, forgetting=Stabilized(discount)).fit(X, y)
    assert model.coef_ == pytest.approx(expected.coef_, rel=1e-9)
    assert model.noise_precision_ == pytest.approx(expected.noise_precision_, rel=1e-9)
    assert model.log_evidence_ == pytest.approx(expected.log_evidence_, rel=1e-9)
    at = model.predict_distribution(X[:5]).std()
    assert at == pytest.approx(expected.predict_distribution(X[:5]).std(), rel=1e-9)


def kalman(
    X: np.ndarray, y: np.ndarray, variance: np.ndarray, precision: float, noise: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Mean and variance of each target before its row, and the state at the end: textbook form."""
    mean, covariance = np.zeros(X.shape[1]), np.eye(X.shape[1]) / precision
    means, variances = [], []
    for i, x in enumerate(X):
        if i > 0:
            covariance = covariance + np.diag(variance)
        gain = covariance @ x / (x @ covariance @ x + noise)
        means.append(x @ mean)
        variances.append(x @ covariance @ x + noise)
        mean = mean + gain * (y[i] - x @ mean)
        covariance = covariance - np.outer(gain, x @ covariance)
    return np.array(means), np.array(variances), mean, covariance


@pytest.mark.parametrize("variance", [0.0, 0.01, 0.5, (0.1, 0.0, 0.2)], ids=str)
def test_random_walk_is_a_kalman_filter(variance: float | tuple[float, ...]) -> None:
    X, y = stream(400, 3, seed=4)
    steps = np.broadcast_to(variance, 3)
    means, variances, mean, covariance = kalman(X, y, steps, 2.0, 0.25)
    model = BayesianLinearRegression(
        prior_precision=2.0,
        noise_precision=4.0,
        fit_intercept=False,
        forgetting=RandomWalk(variance),
    )
    predicted = model.predict_then_learn(X, y)
    assert predicted.mean() == pytest.approx(means, rel=1e-9, abs=1e-10)
    assert predicted.var() == pytest.approx(variances, rel=1e-9)
    assert model.coef_ == pytest.approx(mean, rel=1e-9)
    assert relative(model.posterior_.cov, covariance) < 1e-9


def test_random_walk_is_the_state_space_model_of_statsmodels() -> None:
    """Regression with wandering coefficients, its likelihood by statsmodels' Kalman filter."""
    X, y = stream(200, 2, seed=5)
    space = sm.tsa.statespace.MLEModel(y, k_states=2, k_posdef=2)
    space["design"] = X.T[None]
    space["transition"], space["selection"] = np.eye(2), np.eye(2)
    space["obs_cov"], space["state_cov"] = np.array([[0.25]]), 0.03 * np.eye(2)
    space.ssm.initialize_known(np.zeros(2), np.eye(2))
    space.ssm.loglikelihood_burn = 0
    filtered = space.ssm.filter()
    model = BayesianLinearRegression(
        prior_precision=1.0, noise_precision=4.0, fit_intercept=False, forgetting=RandomWalk(0.03)
    )
    predicted = model.predict_then_learn(X, y)
    assert predicted.mean() == pytest.approx(filtered.forecasts[0], rel=1e-8, abs=1e-10)
    assert predicted.var() == pytest.approx(filtered.forecasts_error_cov[0, 0], rel=1e-9)
    assert predicted.logpdf(y).sum() == pytest.approx(filtered.llf, rel=1e-9)
    assert model.coef_ == pytest.approx(filtered.filtered_state[:, -1], rel=1e-9)


def test_random_walk_with_times_diffuses_in_proportion() -> None:
    """A gap of 10 is ten steps: rows of weight 0 stand for what did not come."""
    X, y = stream(60, 2, seed=6)
    strategy = RandomWalk(0.1)
    gaps = BayesianLinearRegression(noise_precision=1.0, forgetting=strategy)
    gaps.fit(X, y, times=np.arange(60) * 10.0)
    filled = BayesianLinearRegression(noise_precision=1.0, forgetting=strategy)
    weights = (np.arange(591) % 10 == 0).astype(float)
    X, y = np.repeat(X, 10, axis=0)[:591], np.repeat(y, 10)[:591]
    filled.fit(X, y, sample_weight=weights, times=np.arange(591.0))
    assert gaps.coef_ == pytest.approx(filled.coef_, rel=1e-9)
    assert relative(gaps.posterior_.cov, filled.posterior_.cov) < 1e-9


@pytest.mark.parametrize(
    ("n", "glitch"),
    [
        (20_000, None),
        (20_000, 1e8),
        pytest.param(1_000_000, None, marks=pytest.mark.slow),
        pytest.param(1_000_000, 1e8, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("prior_precision", [0.0, 1.0])
def test_a_window_is_a_fresh_fit_on_its_rows(
    n: int, glitch: float | None, prior_precision: float
) -> None:
    size, p = 500, 5
    X, y = stream(n, p, seed=7)
    if glitch is not None:
        X[n // 3] *= glitch
    model = BayesianLinearRegression(prior_precision=prior_precision, forgetting=Window(size=size))
    # Before the glitch, long after it, and at the end; stretches of no special length.
    stops = (n // 3 - 7, n // 3 + size + 3, n // 2 + 11, n)
    for start, stop in zip((0, *stops), stops, strict=False):
        predicted = model.predict_then_learn(X[start:stop], y[start:stop])
        assert np.isfinite(predicted.mean()).all()
        last = slice(stop - size, stop)
        fresh = BayesianLinearRegression(prior_precision=prior_precision).fit(X[last], y[last])
        assert relative(model.coef_, fresh.coef_) < 1e-9
        assert model.intercept_ == pytest.approx(fresh.intercept_, rel=1e-9)
        assert relative(model.posterior_.cov, fresh.posterior_.cov) < 1e-9
        assert model.noise_precision_ == pytest.approx(fresh.noise_precision_, rel=1e-9)
        assert model.n_effective_ == size


def test_window_predictions_are_those_of_the_rows_before() -> None:
    X, y = stream(200, 3, seed=8)
    model = BayesianLinearRegression(prior_precision=1.0, forgetting=Window(size=40))
    predicted = model.predict_then_learn(X, y)
    means, scales = predicted.mean(), predicted.std()
    for i in (1, 25, 40, 41, 120, 199):
        last = slice(max(i - 40, 0), i)
        fresh = BayesianLinearRegression(prior_precision=1.0).fit(X[last], y[last])
        fresh = fresh.predict_distribution(X[i : i + 1])
        assert means[i] == pytest.approx(fresh.mean()[0], rel=1e-9)
        assert scales[i] == pytest.approx(fresh.std()[0], rel=1e-9)


def test_a_window_of_time_keeps_what_is_young_enough() -> None:
    X, y = stream(300, 2, seed=9)
    times = np.cumsum(np.random.default_rng(9).exponential(size=300))
    model = BayesianLinearRegression(prior_precision=1.0, forgetting=Window(duration=25.0))
    for part in (slice(0, 120), slice(120, 300)):
        model.partial_fit(X[part], y[part], times=times[part])
    inside = times >= times[-1] - 25.0
    fresh = BayesianLinearRegression(prior_precision=1.0).fit(X[inside], y[inside])
    assert model.coef_ == pytest.approx(fresh.coef_, rel=1e-9)
    assert model.n_effective_ == inside.sum()
    assert model.n_observations_ == 300.0


def test_a_random_walk_is_the_regression_of_unobserved_components() -> None:
    """The level walks, coefficients stay; unknown before the first row: exact diffuse start."""
    X, y = stream(120, 2, seed=5)
    y = y + np.cumsum(0.3 * np.random.default_rng(6).normal(size=120))
    noise, step = 0.8, 0.09
    twin = sm.tsa.UnobservedComponents(
        y, level="local level", exog=X, mle_regression=False, use_exact_diffuse=True
    )
    filtered = twin.filter([noise, step])
    model = BayesianLinearRegression(
        prior_precision=0.0,
        noise_precision=1.0 / noise,
        forgetting=RandomWalk([step, 0.0, 0.0]),
    )
    predictive = model.predict_then_learn(X, y)
    ours = np.array([model.intercept_, *model.coef_])
    assert relative(ours, filtered.filtered_state[:, -1]) < 1e-8
    assert relative(model.posterior_.cov, filtered.filtered_state_cov[:, :, -1]) < 1e-8
    assert relative(predictive.mean()[5:], filtered.forecasts[0, 5:]) < 1e-8
    assert relative(predictive.var()[5:], filtered.forecasts_error_cov[0, 0, 5:]) < 1e-8
