"""Against other people's numbers: statsmodels, quadrature, many digits, and simulation."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import statsmodels.api as sm
from scipy import integrate, stats

from posterity import BayesianLinearRegression


def problem(n: int = 40, m: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m))
    return X, 2.0 + X @ np.arange(1.0, m + 1.0) + rng.normal(size=n)


def test_the_flat_prior_is_ordinary_least_squares() -> None:
    X, y = problem()
    new = problem(5, seed=1)[0]
    ols = sm.OLS(y, sm.add_constant(X)).fit()
    model = BayesianLinearRegression(prior_precision=0.0).fit(X, y)
    predicted = model.predict_distribution(new)
    theirs = ols.get_prediction(sm.add_constant(new)).summary_frame(alpha=0.1)
    assert np.allclose([model.intercept_, *model.coef_], ols.params, rtol=1e-12)
    assert np.allclose(model.posterior_.marginal().scale, ols.bse, rtol=1e-12)
    assert np.allclose(model.posterior_.interval(0.95), ols.conf_int(0.05), rtol=1e-11)
    assert np.allclose(model.predict_interval(new, 0.9), theirs[["obs_ci_lower", "obs_ci_upper"]])
    assert np.allclose(predicted.mean(), theirs["mean"], rtol=1e-12)
    assert model.noise_precision_ == pytest.approx(1.0 / ols.mse_resid, rel=1e-12)


def test_weights_are_repeated_rows_in_least_squares_too() -> None:
    X, y = problem()
    weights = np.arange(len(X)) % 4
    repeated = sm.OLS(y.repeat(weights), sm.add_constant(X.repeat(weights, axis=0))).fit()
    model = BayesianLinearRegression(prior_precision=0.0).fit(X, y, sample_weight=weights)
    assert np.allclose([model.intercept_, *model.coef_], repeated.params)
    assert np.allclose(model.posterior_.marginal().scale, repeated.bse)
    assert model.n_observations_ == weights.sum()


def test_known_noise_is_the_textbook_posterior() -> None:
    # Bishop (2006), eq. 3.50-3.51 and 3.58-3.59, for any prior.
    X, y = problem(12, 3)
    root = np.random.default_rng(2).normal(size=(3, 3))
    prior_mean, prior_precision, noise_precision = np.array([1.0, -2.0, 0.5]), root @ root.T, 3.0
    model = BayesianLinearRegression(
        prior_mean=prior_mean,
        prior_precision=prior_precision,
        noise_precision=noise_precision,
        fit_intercept=False,
    ).fit(X, y)
    covariance = np.linalg.inv(prior_precision + noise_precision * X.T @ X)
    mean = covariance @ (prior_precision @ prior_mean + noise_precision * X.T @ y)
    variance = 1.0 / noise_precision + np.einsum("ij,jk,ik->i", X, covariance, X)
    assert np.allclose(model.coef_, mean)
    assert np.allclose(model.posterior_.cov, covariance)
    assert np.allclose(model.predict_distribution(X).var(), variance)
    # The marginal of y is one big normal.
    marginal = np.linalg.inv(prior_precision)
    marginal = X @ marginal @ X.T + np.eye(12) / noise_precision
    expected = stats.multivariate_normal(X @ prior_mean, marginal).logpdf(y)
    assert model.log_evidence_ == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("noise_precision", [None, 2.0])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_log_evidence_by_quadrature(noise_precision: float | None, fit_intercept: bool) -> None:
    x, y = np.array([0.3, -1.2, 0.8, 2.0]), np.array([1.0, -0.5, 1.2, 2.2])
    alpha, mean, shape, rate = 0.7, 0.4, 2.0, 1.5
    model = BayesianLinearRegression(
        prior_mean=mean,
        prior_precision=alpha,
        noise_precision=noise_precision,
        noise_prior=(shape, rate),
        fit_intercept=fit_intercept,
    ).fit(x[:, None], y)

    def joint(slope: float, beta: float) -> float:
        """Density of y and the slope, given the noise precision."""
        left = y - slope * x
        # The integral over a flat intercept is Gaussian, around the mean of what is left.
        centre = left.mean() if fit_intercept else 0.0
        flat = np.sqrt(2.0 * np.pi / (beta * len(x))) if fit_intercept else 1.0
        precision = alpha if noise_precision is not None else alpha * beta
        prior = np.sqrt(precision / (2.0 * np.pi)) * np.exp(-precision * (slope - mean) ** 2 / 2.0)
        square = np.sum((left - centre) ** 2)
        return prior * flat * (beta / (2.0 * np.pi)) ** (len(x) / 2) * np.exp(-beta * square / 2.0)

    exact = {"epsabs": 0.0, "epsrel": 1e-11, "limit": 200}
    if noise_precision is not None:
        evidence = integrate.quad(joint, -8.0, 10.0, args=(noise_precision,), **exact)[0]
    else:
        noise = stats.gamma(shape, scale=1.0 / rate)

        def given_noise(beta: float) -> float:
            width = 12.0 / np.sqrt(beta)
            inner = integrate.quad(joint, 1.0 - width, 1.0 + width, args=(beta,), **exact)[0]
            return inner * noise.pdf(beta)

        evidence = sum(
            integrate.quad(given_noise, *ends, **exact)[0] for ends in ((0.0, 2.0), (2.0, 30.0))
        )
    assert model.log_evidence_ == pytest.approx(np.log(evidence), abs=1e-8)


def test_a_target_far_from_zero_keeps_its_noise() -> None:
    # Noise by subtraction of squares is 160 times too large here.
    rng = np.random.default_rng(5)
    X = rng.normal(size=(5000, 2))
    y = 1e7 + X @ [1.0, -2.0] + rng.normal(scale=0.1, size=5000)
    model = BayesianLinearRegression(prior_precision=1.0)
    for x, target in zip(X, y, strict=True):
        model.learn_one(x, target)
    mpmath.mp.dps = 50
    # The normal equations, in 50 digits.
    rows = [[mpmath.mpf(1), *map(mpmath.mpf, x), mpmath.mpf(t)] for x, t in zip(X, y, strict=True)]
    gram = mpmath.matrix(4, 4)
    for i in range(4):
        for j in range(4):
            gram[i, j] = mpmath.fdot((row[i], row[j]) for row in rows)
    information = gram[:3, :3] + mpmath.diag([0, 1, 1])
    residual = gram[3, 3] - (gram[:3, 3].T * mpmath.lu_solve(information, gram[:3, 3]))[0]
    exact = (5000 - 1) / residual
    assert model.noise_precision_ == pytest.approx(float(exact), rel=1e-6)


def test_the_residual_is_never_negative() -> None:
    for offset in (0.0, 1e6, 1e12):
        X = np.arange(30.0)[:, None]
        model = BayesianLinearRegression(prior_precision=0.0)
        for x in X:
            model.learn_one(x, offset + 2.0 * x[0])
            assert model._posterior.residual >= 0.0
        assert model.predict_distribution(X).std() == pytest.approx(
            np.zeros(30), abs=1e-15 * offset + 1e-13
        )


@pytest.mark.slow
def test_intervals_of_five_rows_cover_what_they_promise() -> None:
    rng = np.random.default_rng(6)
    covered = 0
    for _ in range(10_000):
        slope, intercept, noise = rng.normal(size=3)
        X = rng.normal(size=(6, 1))
        y = intercept + slope * X[:, 0] + abs(noise) * rng.normal(size=6)
        model = BayesianLinearRegression(prior_precision=0.0).fit(X[:5], y[:5])
        low, high = model.predict_interval(X[5:], 0.95)[0]
        covered += low <= y[5] <= high
    assert 0.945 <= covered / 10_000 <= 0.955


def test_near_collinear_features_on_a_large_scale() -> None:
    rng = np.random.default_rng(7)
    first = rng.normal(size=3000)
    X = 1e6 * np.column_stack([first, first + 1e-6 * rng.normal(size=3000)])
    y = X @ [2.0, -1.0] + rng.normal(size=3000)
    model = BayesianLinearRegression(prior_precision=0.0)
    for x, target in zip(X, y, strict=True):
        model.learn_one(x, target)
    assert np.allclose(model.coef_, [2.0, -1.0], atol=0.1)
    exact = np.linalg.lstsq(np.column_stack([np.ones(3000), X]), y, rcond=None)[0]
    assert np.allclose(model.coef_, exact[1:], rtol=1e-6)
