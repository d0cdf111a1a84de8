"""The joint distribution of several targets against formulas written out, and its marginals."""

from __future__ import annotations

from typing import Any

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from posterity import BayesianLinearRegression
from posterity.distributions import JointPrediction, Normal, StudentT
from posterity.forgetting import Stabilized

SETTINGS = {"prior_precision": 2.0, "noise_prior": (1.5, 0.7), "fit_intercept": False}


def data(n: int = 9, q: int = 3) -> tuple[Any, Any]:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, 2))
    mixing = rng.normal(size=(q, q))
    return X, X @ rng.normal(size=(2, q)) + rng.normal(size=(n, q)) @ mixing


def written_out(X: Any, y: Any, x: Any) -> tuple[Any, Any, float]:
    """Location, scale matrix and df of the matrix-normal inverse-Wishart, in 30 digits."""
    mp.mp.dps = 30
    shape, rate = SETTINGS["noise_prior"]
    design, targets, point = mp.matrix(X.tolist()), mp.matrix(y.tolist()), mp.matrix(x.tolist())
    q = targets.cols
    precision = design.T * design + 2 * mp.eye(2)
    mean = precision**-1 * (design.T * targets)
    psi = targets.T * targets - mean.T * precision * mean + 2 * mp.mpf(rate) * mp.eye(q)
    nu = 2 * mp.mpf(shape) + q - 1 + len(X)
    leverage = (point.T * precision**-1 * point)[0]
    df = nu - q + 1
    return mean.T * point, psi * (1 + leverage) / df, df


def test_formula_and_product_of_conditionals() -> None:
    X, y = data()
    x, value = np.array([0.3, -1.2]), np.array([0.5, -0.4, 1.1])
    loc, scale, df = written_out(X, y, x)
    predictive = BayesianLinearRegression(**SETTINGS).fit(X, y).predict_distribution(x[None])
    assert predictive.df[0] == pytest.approx(float(df), rel=1e-12)
    assert np.allclose(predictive.mean()[0], [float(one) for one in loc], rtol=1e-10)
    matrix = np.array(scale.tolist(), dtype=float)
    assert np.allclose(predictive.cov[0], matrix * float(df / (df - 2)), rtol=1e-10)

    log_density = mp.mpf(0)
    off = mp.matrix(value.tolist()) - loc
    for j in range(3):  # p(y_1) p(y_2 | y_1) p(y_3 | y_1, y_2), each by the conditional t
        mean, variance, freedom = mp.mpf(0), scale[j, j], df + j
        if j:
            known, with_known = scale[:j, :j], scale[j, :j]
            weights = with_known * known**-1
            delta = (off[:j].T * known**-1 * off[:j])[0]
            mean = (weights * off[:j])[0]
            variance = (scale[j, j] - (weights * with_known.T)[0]) * (df + delta) / freedom
        given = predictive if not j else predictive.given(list(range(j)), value[:j])
        assert given.df[0] == pytest.approx(float(freedom), rel=1e-12)
        assert given.marginal(0).scale[0] == pytest.approx(float(mp.sqrt(variance)), rel=1e-10)
        assert given.marginal(0).loc[0] == pytest.approx(float(mean + loc[j]), rel=1e-10)
        z = (off[j] - mean) / mp.sqrt(variance)
        log_density += mp.loggamma((freedom + 1) / 2) - mp.loggamma(freedom / 2)
        log_density -= mp.log(freedom * mp.pi * variance) / 2
        log_density -= (freedom + 1) / 2 * mp.log(1 + z**2 / freedom)
    assert predictive.logpdf(value[None])[0] == pytest.approx(float(log_density), rel=1e-10)


@pytest.mark.parametrize("df", [3.0, 80.0, np.inf])
def test_density_is_scipys(df: float) -> None:
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 4))
    matrix = root @ root.T + np.eye(4)
    scale = np.sqrt(np.diag(matrix))
    loc = rng.normal(size=(5, 4))
    wide = np.broadcast_to(scale, loc.shape)
    marginals = Normal(loc, wide) if np.isinf(df) else StudentT(df, loc, wide)
    predictive = JointPrediction(marginals, matrix / np.outer(scale, scale))
    y = rng.normal(size=(5, 4))
    theirs = [
        stats.multivariate_t(one, matrix, df).logpdf(at) for one, at in zip(loc, y, strict=True)
    ]
    assert np.allclose(predictive.logpdf(y), theirs, rtol=1e-10)


def test_draws_have_the_covariance_and_the_tails() -> None:
    X, y = data(20)
    predictive = BayesianLinearRegression(**SETTINGS).fit(X, y).predict_distribution(X[:2])
    draws = predictive.rvs(200_000, rng=0)
    assert draws.shape == (200_000, 2, 3)
    assert np.array_equal(predictive.rvs(3, rng=1), predictive.rvs(3, rng=1))
    size = predictive.std()[1]
    found = np.cov(draws[:, 1].T) / np.outer(size, size)
    assert np.allclose(found, predictive.cov[1] / np.outer(size, size), atol=0.02)
    off = draws[:, 0] - predictive.mean()[0]
    scale_matrix = predictive.cov[0] * (predictive.df[0] - 2.0) / predictive.df[0]
    squared = np.einsum("si,ij,sj->s", off, np.linalg.inv(scale_matrix), off) / 3.0
    assert np.mean(squared < stats.f(3, predictive.df[0]).ppf(0.95)) == pytest.approx(
        0.95, abs=0.003
    )


def test_draws_of_coefficients_are_matrix_t() -> None:
    X, y = data(20)
    model = BayesianLinearRegression(**SETTINGS).fit(X, y)
    draws = model.sample_coefficients(200_000, rng=0)
    assert draws.shape == (200_000, 3, 2)
    information = np.linalg.inv(X.T @ X + 2.0 * np.eye(2))
    predictive = model.predict_distribution(np.zeros((1, 2)))
    expected = np.kron(
        predictive.cov[0], information
    )  # of the noise, times that of one's coefficients
    found = np.cov(draws.reshape(len(draws), -1).T)
    size = np.sqrt(np.diag(expected))
    assert np.allclose(found / np.outer(size, size), expected / np.outer(size, size), atol=0.02)
    learned = BayesianLinearRegression().fit(X, y)
    drawn = learned.posterior_.rvs(100_000, random_state=1)
    for j in range(3):
        std = learned.posterior_.marginal(j).std()
        assert np.allclose(drawn[:, j].std(axis=0), std, rtol=0.05)


def test_marginals_answer_as_elsewhere() -> None:
    X, y = data(20)
    predictive = BayesianLinearRegression().fit(X, y).predict_distribution(X[:4])
    one = predictive.marginal(1)
    low, high = predictive.interval(0.9)
    assert np.array_equal(np.stack([low, high], axis=-1)[:, 1], np.stack(one.interval(0.9), axis=1))
    assert np.array_equal(predictive.crps(y[:4])[:, 1], one.crps(y[:4, 1]))
    assert np.array_equal(predictive.cdf(y[:4])[:, 1], one.cdf(y[:4, 1]))
    assert np.array_equal(predictive.ppf(0.3)[:, 1], one.ppf(0.3))
    assert np.array_equal(predictive.median(), predictive.mean())
    assert np.allclose(np.sqrt(np.einsum("nii->ni", predictive.cov)), predictive.std())
    assert len(predictive[1:3]) == 2
    assert np.array_equal(predictive[[2]].mean(), predictive.mean()[[2]])


def test_what_is_known_is_read() -> None:
    marginals = StudentT(
        5.0, [[0.0, 1.0, 2.0], [1.0, 1.0, 1.0]], [[1.0, 2.0, 1.0], [1.0, 1.0, 1.0]]
    )
    correlation = [[1.0, 0.5, 0.2], [0.5, 1.0, 0.1], [0.2, 0.1, 1.0]]
    predictive = JointPrediction(marginals, correlation, names=["A", "B", "C"])
    one = predictive.given({"A": 3.0})
    assert one.names == ("B", "C")
    for other in (
        predictive.given("A", 3.0),
        predictive.given(0, [3.0, 3.0]),
        predictive.given([0], [[3.0], [3.0]]),
    ):
        assert np.array_equal(one.mean(), other.mean())
    both = predictive.given({"C": [0.0, 1.0], "A": 1.0})
    assert np.allclose(both.mean(), predictive.given([0, 2], [[1.0, 0.0], [1.0, 1.0]]).mean())
    again = predictive.given({"A": 1.0}).given({"C": [0.0, 1.0]})
    assert np.allclose(both.cov, again.cov)
    assert np.allclose(both.mean(), again.mean())


@pytest.mark.parametrize(
    ("known", "values", "message"),
    [
        ({"Z": 1.0}, None, "there is no target 'Z': the targets are"),
        (3, 1.0, "there is no target 3: give a number from 0 to 1"),
        ([0, 0], [1.0, 1.0], "a target is named twice: name each once"),
        ([0, 1], [1.0, 1.0], "all targets are known"),
        ("A", np.nan, "a known target is not finite"),
        ("A", None, "no values are given"),
        ("A", [1.0, 2.0, 3.0], "values has shape"),
    ],
)
def test_what_cannot_be_known(known: Any, values: Any, message: str) -> None:
    predictive = JointPrediction(Normal([[0.0, 1.0]], [[1.0, 1.0]]), np.eye(2), names=["A", "B"])
    with pytest.raises(ValueError, match=message):
        predictive.given(known, values)


def test_flat_rows_and_point_masses() -> None:
    marginals = StudentT([[5.0], [5.0]], [[0.0, 1.0]] * 2, [[np.inf, 2.0], [0.0, 2.0]])
    predictive = JointPrediction(marginals, np.eye(2))
    assert predictive.logpdf([[3.0, 3.0], [0.0, 3.0]]).tolist() == [0.0, np.inf]
    assert predictive.logpdf([[np.nan, 3.0], [1.0, 3.0]])[1] == -np.inf
    assert np.isnan(predictive.logpdf([[np.nan, 3.0], [1.0, 3.0]])[0])
    with pytest.raises(ValueError, match="cannot draw: row 0 is improper"):
        predictive.rvs()
    with pytest.raises(ValueError, match="a column for each target"):
        predictive.logpdf([1.0, 2.0, 3.0])
    assert np.isinf(predictive.cov[0, 0, 0])
    assert predictive[[1]].given(0, 7.0).mean().tolist() == [[1.0]]
    fresh = BayesianLinearRegression().partial_fit(np.zeros((1, 2)), np.zeros((1, 2)))
    assert fresh.predict_distribution(np.ones((1, 2))).logpdf(np.ones((1, 2))) == 0.0


@pytest.mark.parametrize("prior", [1.0, "auto"])
def test_correlations_follow_what_changes(prior: Any) -> None:
    rng = np.random.default_rng(0)
    X, e = rng.normal(size=(600, 2)), rng.normal(size=(600, 2))
    e[:, 1] = 0.9 * np.where(np.arange(600) < 300, 1.0, -1.0) * e[:, 0] + 0.44 * e[:, 1]
    model = BayesianLinearRegression(prior_precision=prior, forgetting=Stabilized(0.96))
    correlation = model.predict_then_learn(X, X + e).correlation
    assert correlation[295, 0, 1] > 0.7
    assert correlation[-1, 0, 1] < -0.7
