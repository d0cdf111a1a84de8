"""Regression under any likelihood: the library's as in their own classes, and one's own."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import integrate, special, stats
from sklearn.utils.estimator_checks import check_estimator

from posterity import (
    BayesianGeneralizedLinear,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegression,
    load,
    save,
)
from posterity.basis import Polynomial
from posterity.distributions import Normal
from posterity.evaluation import progressive_validation
from posterity.files import ModelFileError
from posterity.forgetting import (
    Adaptive,
    Directional,
    Exponential,
    RandomWalk,
    Smoothing,
    Stabilized,
    Window,
)
from posterity.likelihoods import (
    Bernoulli,
    Gamma,
    Gaussian,
    LaplaceNoise,
    Likelihood,
    LogLogistic,
    NegativeBinomial,
    Poisson,
    Predictive,
    Quantile,
    SkewNormal,
    StudentT,
    Weibull,
)

Array = np.ndarray


@dataclass(frozen=True)
class Waiting(Likelihood):
    """Exponential, of the mean exp(eta): defined by its distribution alone."""

    def distribution(self, eta: Array) -> Any:
        return stats.expon(scale=np.exp(eta))


@dataclass(frozen=True)
class WaitingInFull(Likelihood):
    """The same, with all that can be said."""

    def log_density(self, y: Array, eta: Array) -> Array:
        return -eta - y * np.exp(-eta)

    def derivatives(self, y: Array, eta: Array) -> tuple[Array, Array]:
        share = y * np.exp(-eta)
        return share - 1.0, share

    def predictive(self, mean: Array, variance: Array) -> Normal:
        expected = np.exp(mean + variance / 2.0)
        return Normal(expected, expected * np.sqrt(2.0 * np.exp(variance) - 1.0))


@dataclass(frozen=True)
class Shifted(Likelihood):
    """Normal, of standard deviation 1: all is known in closed form."""

    def distribution(self, eta: Array) -> Any:
        return stats.norm(eta, 1.0)


@dataclass(frozen=True)
class Successes(Likelihood):
    trials: int = 10

    def distribution(self, eta: Array) -> Any:
        return stats.binom(self.trials, special.expit(eta))


def drawn(n: int = 200, seed: int = 0) -> tuple[Array, Array, dict[str, Array]]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    eta = 0.5 + X @ [0.6, -0.4]
    return (
        X,
        eta,
        {
            "noise": eta + 0.5 * rng.normal(size=n),
            "label": (rng.random(n) < special.expit(eta)).astype(float),
            "count": rng.poisson(np.exp(eta)).astype(float),
            "wait": rng.exponential(np.exp(eta)),
            "successes": rng.binomial(10, special.expit(eta)).astype(float),
        },
    )


X, ETA, Y = drawn()
LIKELIHOODS = {
    "probit": (Bernoulli("probit"), "label"),
    "Poisson": (Poisson(), "count"),
    "negative binomial": (NegativeBinomial(0.5), "count"),
    "Student-t": (StudentT(4.0, 0.5), "noise"),
    "Laplace": (LaplaceNoise(0.5), "noise"),
    "quantile": (Quantile(0.3, 0.5), "noise"),
    "Gaussian": (Gaussian(4.0), "noise"),
    "own": (WaitingInFull(), "wait"),
}
FORGETTING = [
    None,
    Adaptive(discounts=(1.0, 0.95)),
    Directional(discount=0.99),
    Exponential(discount=0.99),
    RandomWalk(variance=0.01),
    Smoothing(gamma=0.9),
    Stabilized(discount=0.99),
    Window(size=60),
]


# ---- as the classes that have a name ------------------------------------------------------------


def test_poisson_is_poisson_regression() -> None:
    exposure = np.linspace(0.5, 2.0, len(X))
    ours = BayesianGeneralizedLinear(Poisson()).fit(X, Y["count"], offset=np.log(exposure))
    theirs = BayesianPoissonRegression().fit(X, Y["count"], exposure=exposure)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-12)
    assert ours.log_evidence_ == pytest.approx(theirs.log_evidence_, rel=1e-12)
    predictive, expected = (
        ours.predict_distribution(X, offset=1.0).logpmf(3),
        theirs.predict_distribution(X, exposure=np.e).logpmf(3),
    )
    np.testing.assert_allclose(predictive, expected, rtol=1e-12)


def test_bernoulli_is_logistic_regression() -> None:
    ours = BayesianGeneralizedLinear(Bernoulli())
    theirs = BayesianLogisticRegression()
    predictive = ours.predict_then_learn(X, Y["label"])
    expected = theirs.predict_then_learn(X, Y["label"])
    np.testing.assert_allclose(predictive.mean(), expected.probabilities[:, 1], rtol=1e-12)
    np.testing.assert_allclose(ours.predict(X), theirs.predict_proba(X)[:, 1], rtol=1e-12)


def test_gaussian_is_linear_regression_with_known_noise() -> None:
    ours = BayesianGeneralizedLinear(Gaussian(4.0), prior_precision=2.0).fit(X, Y["noise"])
    theirs = BayesianLinearRegression(noise_precision=4.0, prior_precision=2.0).fit(X, Y["noise"])
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-10)
    np.testing.assert_allclose(ours.predict_interval(X), theirs.predict_interval(X), rtol=1e-10)
    assert ours.log_evidence_ == pytest.approx(theirs.log_evidence_, rel=1e-10)


# ---- every likelihood with every strategy --------------------------------------------------------


@pytest.mark.parametrize("name", LIKELIHOODS)
@pytest.mark.parametrize("forgetting", FORGETTING, ids=str)
@pytest.mark.parametrize(
    "prior", ["auto", *(pytest.param(other, marks=pytest.mark.slow) for other in ("ard", 1.0))]
)
def test_it_learns_predicts_and_is_saved(
    name: str, forgetting: Any, prior: Any, tmp_path: Any
) -> None:
    likelihood, kind = LIKELIHOODS[name]
    y = Y[kind]
    settings = {"forgetting": forgetting, "prior_precision": prior}
    model = BayesianGeneralizedLinear(likelihood, **settings).fit(X[:40], y[:40])
    model.partial_fit(X[40:60], y[40:60])
    predictive = model.predict_then_learn(X[60:80], y[60:80])
    model.learn_one(X[80], y[80])
    assert np.isfinite(predictive.logpdf(y[60:80])).all()
    assert model.predict_one(X[0]) == pytest.approx(model.predict(X[:1])[0], rel=1e-9)
    low, high = model.predict_interval(X[:3]).T
    assert (low <= high).all()
    low, high = model.predict_interval(X[:3], of="eta").T
    assert (low < high).all()
    if forgetting is None:
        model.merge(BayesianGeneralizedLinear(likelihood, **settings).fit(X[100:], y[100:]))
        assert model.n_observations_ == pytest.approx(181.0)
    if name != "own":
        save(model, tmp_path / "model.posterity")
        again = load(tmp_path / "model.posterity")
        np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_evaluate_scores_it(name: str) -> None:
    likelihood, kind = LIKELIHOODS[name]
    scores = progressive_validation(BayesianGeneralizedLinear(likelihood), X, Y[kind])
    assert np.isfinite(scores.log_score)


def test_a_basis_times_and_weights() -> None:
    model = BayesianGeneralizedLinear(
        Poisson(), basis=Polynomial(degree=2), forgetting=Stabilized(half_life=10.0)
    )
    model.partial_fit(X, Y["count"], np.full(len(X), 2.0), times=np.arange(len(X)) / 10.0)
    assert model.n_observations_ == 2.0 * len(X)
    assert model.n_effective_ < 2.0 * len(X)


def test_scikit_learn_accepts_it() -> None:
    check_estimator(BayesianGeneralizedLinear(Gaussian()), on_skip=None)


# ---- one's own -----------------------------------------------------------------------------------


def test_what_is_observed_is_all_that_is_needed() -> None:
    """By differences and quadrature as in closed form."""
    for way in ("fit", "predict_then_learn"):
        ours = BayesianGeneralizedLinear(Waiting())
        theirs = BayesianGeneralizedLinear(WaitingInFull())
        getattr(ours, way)(X[:60], Y["wait"][:60])
        getattr(theirs, way)(X[:60], Y["wait"][:60])
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6)
        np.testing.assert_allclose(ours.posterior_.cov, theirs.posterior_.cov, rtol=1e-5)
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-6)


def test_the_posterior_is_that_of_quadrature() -> None:
    """One coefficient, by moments, against the integral over it."""
    x, y = X[:30, :1], Y["wait"][:30]
    model = BayesianGeneralizedLinear(
        Waiting(), prior_precision=1.0, fit_intercept=False, approximation="moments"
    ).fit(x, y)

    def density(w: float) -> float:
        return float(np.exp(np.sum(-x[:, 0] * w - y * np.exp(-x[:, 0] * w) + y) - 0.5 * w * w))

    mass, mean, square = (
        integrate.quad(lambda w, k=k: w**k * density(w), -3.0, 3.0, limit=200)[0] for k in range(3)
    )
    assert model.coef_[0] == pytest.approx(mean / mass, abs=2e-3)
    std = np.sqrt(square / mass - (mean / mass) ** 2)
    assert np.sqrt(model.posterior_.cov[0, 0]) == pytest.approx(std, rel=0.02)


@pytest.mark.slow
def test_intervals_hold() -> None:
    held = []
    for seed in range(20):
        rows, _, y = drawn(260, seed)
        model = BayesianGeneralizedLinear(Waiting()).fit(rows[:60], y["wait"][:60])
        low, high = model.predict_interval(rows[60:], level=0.9).T
        held.append(np.mean((low <= y["wait"][60:]) & (y["wait"][60:] <= high)))
    assert 0.88 < np.mean(held) < 0.92


def test_predictions_by_quadrature_are_exact() -> None:
    mean, variance = np.array([0.0, 3.0]), np.array([0.5, 4.0])
    predictive, exact = Predictive(Shifted(), mean, variance), Normal(mean, np.sqrt(1.0 + variance))
    y = np.array([0.7, -2.0])
    np.testing.assert_allclose(predictive.mean(), exact.mean(), atol=1e-9)
    np.testing.assert_allclose(predictive.var(), exact.var(), rtol=1e-8)
    np.testing.assert_allclose(predictive.logpdf(y), exact.logpdf(y), atol=1e-8)
    np.testing.assert_allclose(predictive.cdf(y), exact.cdf(y), atol=1e-9)
    np.testing.assert_allclose(predictive.sf(y), exact.sf(y), atol=1e-9)
    np.testing.assert_allclose(
        predictive.ppf([[0.01], [0.5], [0.9]]), exact.ppf([[0.01], [0.5], [0.9]]), atol=1e-8
    )
    np.testing.assert_allclose(predictive.crps(y), exact.crps(y), rtol=2e-3)
    draws = predictive.rvs((20_000, 2), random_state=0)
    np.testing.assert_allclose(draws.std(axis=0), exact.std(), rtol=0.02)
    flat = Predictive(Shifted(), [0.0], [np.inf])
    assert flat.is_flat().all()
    assert flat.interval(0.9) == (-np.inf, np.inf)
    assert flat.crps(0.0) == np.inf


def test_whole_numbers() -> None:
    model = BayesianGeneralizedLinear(Successes()).fit(X, Y["successes"])
    predictive = model.predict_distribution(X[:4])
    mass = predictive.pmf(np.arange(11)[:, None])
    np.testing.assert_allclose(mass.sum(axis=0), 1.0, atol=1e-6)
    np.testing.assert_allclose(mass[:4].sum(axis=0), predictive.cdf(3), atol=1e-6)
    np.testing.assert_allclose(mass.T @ np.arange(11.0), predictive.mean(), rtol=1e-6)
    for level in (0.05, 0.5, 0.95):
        quantile = predictive.ppf(level)
        assert (quantile == np.floor(quantile)).all()
        assert (predictive.cdf(quantile) >= level).all()
        assert (predictive.cdf(quantile - 1.0) < level).all()
    truth = np.cumsum(mass, axis=0) - (np.arange(11)[:, None] >= 4)
    np.testing.assert_allclose(
        predictive.crps(4.0), np.square(truth).sum(axis=0), rtol=0.02, atol=0.01
    )


def test_a_copy_and_a_pickle_go_on() -> None:
    model = BayesianGeneralizedLinear(Waiting()).fit(X[:30], Y["wait"][:30])
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(twin.predict(X), model.predict(X))


# ---- refusals ------------------------------------------------------------------------------------


def test_what_can_not_be_is_said(tmp_path: Any) -> None:
    with pytest.raises(TypeError, match="derived from posterity"):
        BayesianGeneralizedLinear(Poisson).fit(X, Y["count"])  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError, match="define distribution"):
        BayesianGeneralizedLinear(Likelihood()).fit(X, Y["count"])
    bad = Y["wait"].copy()
    bad[7] = -1.0
    with pytest.raises(ValueError, match="y in row 7 is -1: Waiting gives it no probability"):
        BayesianGeneralizedLinear(Waiting()).fit(X, bad)
    model = BayesianGeneralizedLinear(Waiting()).fit(X[:30], Y["wait"][:30])
    before = model.coef_
    with pytest.raises(ValueError, match="offset is nan in row 0"):
        model.partial_fit(X[:1], Y["wait"][:1], offset=[np.nan])
    with pytest.raises(ValueError, match=r"offset has shape \(2,\)"):
        model.predict(X[:3], offset=[0.0, 1.0])
    with pytest.raises(ValueError, match="of is 'line'"):
        model.predict_interval(X[:1], of="line")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="offset has shape"):
        model.unlearn(X[:1], Y["wait"][:1], offset=[0.0, 1.0])
    with pytest.raises(ModelFileError, match="Waiting"):
        save(model, tmp_path / "model.posterity")
    np.testing.assert_array_equal(model.coef_, before)


@pytest.mark.parametrize("seed", range(8))
def test_first_rows_under_heavy_tails_are_predicted_sensibly(seed: int) -> None:
    """A row between two minds must not speak of a place far beyond its target."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(20, 3))
    y = rows @ [1.0, -2.0, 0.5] + 5.0 + rng.standard_t(4.0, size=20)
    predictive = BayesianGeneralizedLinear(StudentT(4.0, 1.0)).predict_then_learn(rows, y)
    assert np.abs(predictive.mean()).max() < 1e3


@pytest.mark.parametrize("likelihood", [StudentT(2.0, 1.0), SkewNormal(4.0, 0.7)])
def test_first_rows_one_by_one_say_what_they_say_together(likelihood: Likelihood) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3))
    y = likelihood.distribution(X @ [1.0, -2.0, 0.5]).rvs(random_state=rng)
    together, stream = (BayesianGeneralizedLinear(likelihood) for _ in range(2))
    together.fit(X, y)
    for x, target in zip(X, y, strict=True):
        stream.learn_one(x, target)
    off = (stream.coef_ - together.coef_) / together.posterior_.std()[1:]
    assert np.abs(off).max() < 0.2


def test_likelihood_by_its_name() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = rng.poisson(np.exp(X[:, 0]))
    one, other = (BayesianGeneralizedLinear(each).fit(X, y) for each in ("poisson", Poisson()))
    assert one.coef_ == pytest.approx(other.coef_, rel=1e-12)
    assert copy.deepcopy(one).predict(X) == pytest.approx(one.predict(X))
    with pytest.raises(ValueError, match="'poison': it must be 'bernoulli', 'poisson'"):
        BayesianGeneralizedLinear("poison").fit(X, y)


@pytest.mark.parametrize("likelihood", [Gamma(), LogLogistic(), Weibull()], ids=repr)
def test_a_year_says_what_years_since_say(likelihood: Likelihood) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100, 3))
    X[:, 0] = rng.integers(2000, 2025, size=100)
    since = X - [2012.0, 0.0, 0.0]
    y = rng.gamma(3.0, np.exp(since @ [0.03, 0.3, -0.2]) / 3.0)
    one, other = (BayesianGeneralizedLinear(likelihood).fit(each, y) for each in (X, since))
    sd = one.summary()["sd"].to_numpy()[1:4]
    np.testing.assert_array_less(np.abs(one.coef_ - other.coef_), 1e-3 * sd)
    np.testing.assert_allclose(one.log_evidence_, other.log_evidence_, atol=1e-3)
