"""What is not known of expected targets: distributions and draws, of every model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from posterity import (
    BayesianGeneralizedLinear,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegression,
    BayesianPoissonRegression,
    BayesianQuantileRegression,
    BayesianRobustRegression,
)
from posterity.basis import Spline
from posterity.distributions import MultivariateMixture, MultivariateNormal, Normal, Transformed
from posterity.forgetting import Adaptive, Changepoint, Exponential, Window
from posterity.likelihoods import Bernoulli, Gaussian, Likelihood, Poisson

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 2))
ETA = 0.3 + X @ np.array([0.5, -1.0])
NUMBERS = ETA + RNG.normal(size=120)
LABELS = (RNG.random(120) < expit(ETA)).astype(int)
COUNTS = RNG.poisson(np.exp(ETA))
NEW = RNG.normal(size=(7, 2))

MODELS: dict[str, tuple[Any, Any]] = {
    "linear": (BayesianLinearRegression(), NUMBERS),
    "given": (BayesianLinearRegression(prior_precision=1.0, fit_intercept=False), NUMBERS),
    "known noise": (BayesianLinearRegression(noise_precision=1.0), NUMBERS),
    "relevance": (BayesianLinearRegression(prior_precision="ard"), NUMBERS),
    "noise linear": (BayesianLinearRegression(noise="linear"), NUMBERS),
    "basis": (BayesianLinearRegression(basis=Spline()), NUMBERS),
    "exponential": (BayesianLinearRegression(forgetting=Exponential(0.99)), NUMBERS),
    "window": (BayesianLinearRegression(forgetting=Window(size=50)), NUMBERS),
    "adaptive": (BayesianLinearRegression(forgetting=Adaptive()), NUMBERS),
    "changepoint": (
        BayesianLinearRegression(prior_precision=1.0, forgetting=Changepoint()),
        NUMBERS,
    ),
    "robust": (BayesianRobustRegression(), NUMBERS),
    "quantile": (BayesianQuantileRegression(quantile=0.8), NUMBERS),
    "logistic": (BayesianLogisticRegression(), LABELS),
    "logistic, moments": (BayesianLogisticRegression(approximation="moments"), LABELS),
    "Poisson": (BayesianPoissonRegression(), COUNTS),
    "negative binomial": (BayesianNegativeBinomialRegression(), COUNTS),
    "Bernoulli": (BayesianGeneralizedLinear(Bernoulli("probit")), LABELS),
    "Gaussian": (BayesianGeneralizedLinear(Gaussian(1.0)), NUMBERS),
}


@pytest.mark.parametrize("name", MODELS)
def test_draws_are_from_the_distribution(name: str) -> None:
    model, y = MODELS[name]
    model = model.fit(X, y)
    predictive, draws = model.predict_mean_distribution(NEW), model.sample_mean(NEW, 20_000, rng=0)
    assert draws.shape == (20_000, 7)
    levels = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    held = [(draws <= predictive.ppf(level)).mean(axis=0) for level in levels]
    np.testing.assert_allclose(held, np.repeat(levels[:, None], 7, axis=1), atol=0.015)
    np.testing.assert_allclose(
        predictive.mean(), draws.mean(axis=0), atol=5 * draws.std(axis=0).max() / 141
    )
    np.testing.assert_allclose(predictive.cdf(predictive.ppf(0.3)), 0.3, atol=1e-6)


@pytest.mark.parametrize("name", [name for name in MODELS if name not in ("quantile", "robust")])
def test_the_mean_is_that_of_new_observations_and_the_width_less(name: str) -> None:
    model, y = MODELS[name]
    model = model.fit(X, y)
    predictive, new = model.predict_mean_distribution(NEW), model.predict_distribution(NEW)
    if not hasattr(new, "var"):
        np.testing.assert_allclose(predictive.mean(), new.probabilities[:, 1], rtol=2e-3)
        return
    np.testing.assert_allclose(predictive.mean(), new.mean(), rtol=5e-3, atol=1e-9)
    assert (predictive.var() < new.var()).all()


def test_the_textbook_s_formula() -> None:
    model = BayesianLinearRegression(prior_precision=2.0, noise_precision=4.0, fit_intercept=False)
    predictive = model.fit(X, NUMBERS).predict_mean_distribution(NEW)
    covariance = np.linalg.inv(2.0 * np.eye(2) + 4.0 * X.T @ X)
    np.testing.assert_allclose(
        predictive.std(), np.sqrt(np.einsum("ia,ab,ib->i", NEW, covariance, NEW))
    )
    np.testing.assert_allclose(predictive.mean(), NEW @ covariance @ (4.0 * X.T @ NUMBERS))


def test_several_targets_are_drawn_together() -> None:
    model = BayesianLinearRegression().fit(X, np.column_stack([NUMBERS, -NUMBERS]))
    draws = model.sample_mean(NEW, 4_000, rng=0)
    assert draws.shape == (4_000, 7, 2)
    np.testing.assert_allclose(draws.mean(axis=0), model.predict(NEW), atol=0.02)
    with pytest.raises(ValueError, match="2 targets"):
        model.predict_mean_distribution(NEW)


def test_rows_of_a_draw_belong_together() -> None:
    model = BayesianLinearRegression().fit(X, NUMBERS)
    draws = model.sample_mean(np.vstack([NEW[:1], -NEW[:1], np.zeros((1, 2))]), 50, rng=1)
    np.testing.assert_allclose(draws[:, 0] + draws[:, 1], 2.0 * draws[:, 2])


def test_exposures_and_offsets_shift_the_rate() -> None:
    model = BayesianPoissonRegression().fit(X, COUNTS)
    once, twice = (model.predict_mean_distribution(NEW, exposure=e) for e in (1.0, 2.0))
    np.testing.assert_allclose(twice.interval(0.9)[1], 2.0 * once.interval(0.9)[1])
    np.testing.assert_allclose(
        once.interval(0.9)[1], model.predict_interval(NEW, 0.9, of="rate")[:, 1], rtol=0.02
    )
    draws = [model.sample_mean(NEW, 3, rng=0, exposure=e) for e in (1.0, 2.0)]
    np.testing.assert_allclose(draws[1], 2.0 * draws[0])
    linear = BayesianGeneralizedLinear(Poisson()).fit(X, COUNTS)
    np.testing.assert_allclose(
        linear.predict_mean_distribution(NEW, offset=np.arange(7.0))[3].median(),
        np.exp(3.0) * linear.predict_mean_distribution(NEW)[3].median(),
    )


def test_labels_that_came_late_and_many_classes() -> None:
    late = (
        BayesianLogisticRegression()
        .partial_fit(X[:1], ["b"])
        .partial_fit(X, np.where(LABELS, "a", "b"))
    )
    predictive = late.predict_mean_distribution(NEW)
    np.testing.assert_allclose(predictive.mean(), late.predict_proba(NEW)[:, 1], atol=1e-3)
    three = BayesianLogisticRegression().fit(X, LABELS + (X[:, 0] > 1.0))
    draws = three.sample_mean(NEW, 4_000, rng=0)
    assert draws.shape == (4_000, 7, 3)
    np.testing.assert_allclose(draws.sum(axis=2), 1.0)
    np.testing.assert_allclose(draws.mean(axis=0), three.predict_proba(NEW), atol=0.02)
    with pytest.raises(ValueError, match="3 classes"):
        three.predict_mean_distribution(NEW)


@dataclass(frozen=True)
class Waiting(Likelihood):
    def distribution(self, eta: Any) -> Any:
        return stats.expon(scale=np.exp(eta))


def test_a_likelihood_of_one_s_own() -> None:
    y = RNG.exponential(np.exp(ETA))
    model = BayesianGeneralizedLinear(Waiting()).fit(X, y)
    predictive = model.predict_mean_distribution(NEW)
    np.testing.assert_allclose(predictive.mean(), model.predict_distribution(NEW).mean(), rtol=5e-3)
    np.testing.assert_allclose(predictive.cdf(predictive.median()), 0.5, atol=1e-6)


def test_what_is_open_has_no_end() -> None:
    model = BayesianLinearRegression(prior_precision=0.0, noise_precision=1.0).fit(
        [[1.0, 0.0], [2.0, 0.0]], [1.0, 2.0]
    )
    predictive = model.predict_mean_distribution([[1.0, 0.0], [1.0, 1.0]])
    assert np.isfinite(predictive.std()[0])
    assert np.isinf(predictive.std()[1])
    with pytest.raises(ValueError, match="improper"):
        model.sample_mean([[1.0, 0.0]], 2)


def test_a_function_of_a_distribution() -> None:
    rate = Transformed(Normal([0.0, 1.0], [0.2, 1.5]), np.exp, np.log)
    truth = stats.lognorm([0.2, 1.5], scale=np.exp([0.0, 1.0]))
    np.testing.assert_allclose(rate.mean(), truth.mean(), rtol=1e-6)
    np.testing.assert_allclose(rate.var(), truth.var(), rtol=2e-3)
    np.testing.assert_allclose(rate.logpdf([0.7, 4.0]), truth.logpdf([0.7, 4.0]), rtol=1e-8)
    np.testing.assert_allclose(rate.sf([0.7, 4.0]), truth.sf([0.7, 4.0]))
    np.testing.assert_allclose(rate.interval(0.9), truth.interval(0.9))
    assert rate.logpdf([-1.0, 1.0])[0] == -np.inf
    # Baran and Lerch 2015.
    mean, sd = np.array([0.0, 1.0]), np.array([0.2, 1.5])
    place = (np.log(2.0) - mean) / sd
    score = 2.0 * (2.0 * stats.norm.cdf(place) - 1.0) - 2.0 * np.exp(mean + 0.5 * sd**2) * (
        stats.norm.cdf(place - sd) + stats.norm.cdf(sd / np.sqrt(2.0)) - 1.0
    )
    np.testing.assert_allclose(rate.crps([2.0, 2.0]), score, rtol=2e-3)
    assert len(rate[:1]) == 1
    assert not rate.is_flat().any()
    assert rate.rvs(random_state=0).shape == (2,)


def test_sums_of_coefficients() -> None:
    one = MultivariateNormal([1.0, 2.0], [[2.0, 0.5], [0.0, 1.0]])
    both = MultivariateMixture(
        [one, MultivariateNormal([3.0, 2.0], [[1.0, 0.0], [0.0, 1.0]])], [0.5, 0.5]
    )
    rows = np.array([[1.0, -1.0], [0.0, 0.0]])
    draws = both.rvs(100_000, random_state=0) @ rows.T
    np.testing.assert_allclose(both.project(rows).mean(), [0.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(both.project(rows).var(), draws.var(axis=0), rtol=0.02, atol=1e-12)
    np.testing.assert_allclose(one.project(rows, [1.0, 2.0]).mean(), [0.0, 2.0])
    with pytest.raises(ValueError, match="2 coefficients"):
        one.project([[1.0]])
