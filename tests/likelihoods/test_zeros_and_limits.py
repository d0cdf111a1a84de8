"""More zeros, or fewer, and targets that nobody sees beyond a limit."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, optimize, stats

from posterity import BayesianGeneralizedLinear
from posterity.files import dumps, loads
from posterity.likelihoods import (
    Binomial,
    Censored,
    Gamma,
    Gaussian,
    Hurdle,
    NegativeBinomial,
    Poisson,
    Truncated,
    Weibull,
    ZeroInflated,
    moment_sites,
)

ETA = np.array([-1.0, 0.3, 1.5])
COUNTS = [
    ZeroInflated(Poisson(), 0.4),
    ZeroInflated(NegativeBinomial(0.5), 0.4),
    Hurdle(Poisson(), 0.4),
    Hurdle(NegativeBinomial(0.5), 2.0),
    Truncated(Poisson(), low=1),
    Truncated(Poisson(), high=4),
    Truncated(NegativeBinomial(0.5), 1, 6),
    Hurdle(Truncated(Poisson(), high=6), 0.4),
]
NUMBERS = [Truncated(Gaussian(1.0), -0.5, 2.0), Truncated(Gamma(2.0), low=0.5)]


@pytest.mark.parametrize("likelihood", COUNTS, ids=str)
def test_distributions_of_counts_agree_with_their_probabilities(likelihood):
    counts = np.arange(200.0)[:, None]
    shares = np.exp(likelihood.log_density(counts, ETA))
    given = likelihood.distribution(ETA)
    assert_allclose(shares.sum(axis=0), 1.0)
    assert_allclose(np.exp(given.logpmf(counts)), shares, rtol=1e-9, atol=1e-15)
    assert_allclose(given.cdf(counts), np.cumsum(shares, axis=0), atol=1e-10)
    mean = (counts * shares).sum(axis=0)
    assert_allclose(given.mean(), mean)
    assert_allclose(given.var(), (counts**2 * shares).sum(axis=0) - mean**2)
    assert_allclose(likelihood.mean(ETA), mean)
    q = np.linspace(0.05, 0.95, 10)[:, None]
    quantile = given.ppf(q)
    assert (given.cdf(quantile) >= q - 1e-9).all()
    assert (given.cdf(quantile - 1.0) < q).all()


@pytest.mark.parametrize("likelihood", NUMBERS, ids=str)
def test_truncated_densities_add_up_to_one(likelihood):
    high = min(likelihood.high, 200.0)

    def integral(power):
        def density(y):
            return y**power * np.exp(likelihood.log_density(np.full(1, y), ETA[1:2]))[0]

        return integrate.quad(density, likelihood.low, high)[0]

    given = likelihood.distribution(ETA[1:2])
    assert_allclose(integral(0), 1.0)
    assert_allclose(given.mean(), integral(1), rtol=1e-3)
    assert_allclose(given.var(), integral(2) - integral(1) ** 2, rtol=1e-2)
    assert_allclose(given.cdf(given.ppf(0.3)), 0.3)


@pytest.mark.parametrize("likelihood", COUNTS, ids=str)
def test_derivatives_are_those_of_the_log_density(likelihood):
    y, step = np.array([0.0, 1.0, 4.0]), 1e-4
    y = y if np.isfinite(likelihood.log_density(y, ETA)).all() else y[1:].repeat([1, 2])
    slope = likelihood.derivatives(y, ETA)[0]
    apart = likelihood.log_density(y, ETA + step) - likelihood.log_density(y, ETA - step)
    assert_allclose(slope, apart / (2.0 * step), rtol=1e-5, atol=1e-6)


def make_counts(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 1))
    return X, (rng.poisson(np.exp(1.0 + 0.5 * X[:, 0])) * (rng.random(n) < 0.7)).astype(float)


@pytest.mark.parametrize("kind", [ZeroInflated, Hurdle])
def test_coefficients_and_odds_agree_with_maximum_likelihood(kind):
    X, y = make_counts()
    model = BayesianGeneralizedLinear(kind(Poisson()), prior_precision=0.0).fit(X, y)

    def loss(w):
        return -np.sum(kind(Poisson(), np.exp(w[2])).log_density(y, w[0] + w[1] * X[:, 0]))

    best = optimize.minimize(loss, [1.0, 0.5, 0.0], method="BFGS").x
    odds = model.likelihood_parameters_["zero_odds"]
    mine = [model.intercept_, model.coef_[0], np.log(odds.median())]
    sd = [*model.posterior_.std(), np.std(np.log(odds.rvs(1000, random_state=0)))]
    assert (np.abs(mine - best) < 0.15 * np.array(sd)).all()


def test_rows_merge_and_files():
    X, y = make_counts(120)
    likelihood = ZeroInflated(NegativeBinomial())
    whole = BayesianGeneralizedLinear(likelihood).fit(X, y)
    assert set(whole.likelihood_parameters_) == {"dispersion", "zero_odds"}
    rows = BayesianGeneralizedLinear(likelihood).fit(X[:110], y[:110])
    for x, count in zip(X[110:], y[110:], strict=True):
        rows.learn_one(x, count)
    halves = BayesianGeneralizedLinear(likelihood).fit(X[:60], y[:60])
    halves.merge(BayesianGeneralizedLinear(likelihood).fit(X[60:], y[60:]))
    for other in (rows, halves):
        assert_allclose(other.coef_, whole.coef_, atol=0.3 * whole.posterior_.std()[1])
    again = loads(dumps(rows))
    assert_allclose(again.predict(X), rows.predict(X), rtol=0)


def test_predictions_are_those_of_the_target_with_its_zeros():
    X, y = make_counts(300)
    model = BayesianGeneralizedLinear(ZeroInflated(Poisson())).fit(X, y)
    told = model.predict_distribution(X)
    assert abs(told.pmf(0.0).mean() - np.mean(y == 0.0)) < 0.03
    assert abs(told.mean().mean() - y.mean()) < 0.15
    draws = told.rvs((400, len(y)), random_state=0)
    assert abs(draws.var() - told.var().mean() - told.mean().var()) < 0.5


REFUSED = [
    (ZeroInflated(Poisson()), 1.5, "row 2 is 1.5: a count must be"),
    (Hurdle(Gamma()), -1.0, "row 2 is -1: under a hurdle"),
    (Hurdle(Poisson()), 1.5, "row 2 is 1.5: a count must be"),
    (Truncated(Poisson(), low=1), 0.0, "row 2 is 0: targets are truncated to 1 to inf"),
]


@pytest.mark.parametrize(("likelihood", "bad", "message"), REFUSED, ids=str)
def test_impossible_targets_are_named(likelihood, bad, message):
    y = np.array([1.0, 2.0, bad, 3.0])
    with pytest.raises(ValueError, match=message):
        BayesianGeneralizedLinear(likelihood).fit(np.arange(4.0)[:, None], y)


def test_parameters_out_of_range_are_refused():
    with pytest.raises(ValueError, match="odds must be positive and finite"):
        ZeroInflated(Poisson(), -1.0)
    with pytest.raises(ValueError, match="low must be less"):
        Truncated(Poisson(), 4, 2)


def test_one_inside_another():
    y = np.array([[1.0, 1.0], [2.0, np.inf]])
    both = Censored(Truncated(Weibull(1.5), low=0.5))
    given = stats.weibull_min(1.5, scale=np.exp(0.3))
    expected = [given.logpdf(1.0), given.logsf(2.0)] - given.logsf(0.5)
    assert_allclose(both.log_density(y, np.full(2, 0.3)), expected)


def test_files_hold_a_limit_that_is_open() -> None:
    X, y = np.arange(8.0)[:, None], np.array([1.0, 2.0, 1.0, 3.0, 2.0, 1.0, 4.0, 2.0])
    model = BayesianGeneralizedLinear(Truncated(Poisson(), low=0.0)).fit(X, y)
    assert (loads(dumps(model)).predict(X) == model.predict(X)).all()


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_first_amount_of_a_hurdle_may_be_zero():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 1)), rng.gamma(2.0, size=20) * (np.arange(20) % 2)
    model = BayesianGeneralizedLinear(Hurdle(Gamma(2.0), 1.0))
    model.fit(X[:1], y[:1])
    assert abs(model.intercept_) < 1.0
    amounts = BayesianGeneralizedLinear(Gamma(2.0)).fit(X[1::2], y[1::2])
    assert_allclose(model.fit(X, y).coef_, amounts.coef_, atol=0.05)


@pytest.mark.parametrize(
    ("likelihood", "targets"),
    [
        (Censored(Weibull()), [[2.0, np.inf]]),
        (Truncated(Poisson(), low=1), [1.0]),
        (ZeroInflated(Poisson()), [0.0]),
        (Hurdle(Gamma()), [0.0]),
        (Binomial(5), [5.0]),
    ],
)
def test_rows_that_say_only_on_which_side_eta_lies_warn_and_leave_it_wide(likelihood, targets):
    X = np.random.default_rng(0).normal(size=(20, 1))
    model = BayesianGeneralizedLinear(likelihood)
    with pytest.warns(UserWarning, match="no maximum"):
        model.fit(X, np.repeat(targets, 20, axis=0))
    assert model.posterior_.std()[0] > 1.0


def test_hardly_anything_between_limits_lies_at_the_nearer_one():
    given = Truncated(Poisson(), low=1.0, high=9.0).distribution(np.array([-50.0, 15.0]))
    assert_allclose(given.ppf(0.5), [1.0, 9.0])
    assert_allclose(given.mean(), [1.0, 9.0], rtol=1e-6)
    assert_allclose(given.logpmf(np.array([1.0, 9.0])), 0.0)
    assert_allclose(given.cdf(np.array([1.0, 8.0])), [1.0, 0.0], atol=1e-5)


@pytest.mark.parametrize("given", [Poisson(), NegativeBinomial(0.4)])
def test_a_positive_count_of_a_tiny_rate_is_one(given):
    likelihood, eta = Hurdle(given, 1.0), np.array([-1000.0, -40.0, -30.0])
    ones, twos = likelihood.log_density(np.ones(3), eta), likelihood.log_density(np.full(3, 2), eta)
    assert_allclose(ones, np.log(0.5), rtol=1e-12)
    assert_allclose(np.diff(twos), np.diff(eta), rtol=1e-9)
    sites = moment_sites(likelihood, np.ones(1), np.zeros(1), np.full(1, 1e4))
    assert np.isfinite(sites.target).all()
    assert np.isfinite(sites.log_normalizer).all()
