"""The prior's scale is integrated out under other likelihoods, too: quadrature and A/B tests."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from posterity import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegression,
    BayesianRobustRegression,
)
from posterity.evidence.columns import mean_squares

Array = np.ndarray


def integrated(log_likelihood: Callable[[Array], Array], square: float) -> tuple[float, float]:
    """Mean and sd of a slope of x in {0, 1} by brute force: over intercept, slope and scale.

    ``log_likelihood`` takes eta (..., 2) of both values of x. The prior is w ~ N(0, g / square),
    g / 0.02 ~ Lomax(1/10): its density in w is found by quadrature over log g.
    """
    slopes, intercepts = np.linspace(-4.0, 4.0, 1001), np.linspace(-9.0, 5.0, 701)
    eta = np.stack(
        np.broadcast_arrays(intercepts, intercepts + slopes[:, None]), axis=-1
    )  # (slopes, intercepts, 2)
    log_weights = log_likelihood(eta)
    likelihood = np.exp(log_weights - log_weights.max()).sum(axis=1)
    logs = np.arange(-12.0, 40.0, 0.05)
    linear_moments = stats.lomax(0.1, scale=0.02).pdf(np.exp(logs)) * np.exp(logs)
    density = (
        stats.norm.pdf(slopes[:, None], scale=np.exp(0.5 * logs) / np.sqrt(square)) @ linear_moments
    )
    weights = likelihood * density
    weights /= weights.sum()
    mean = weights @ slopes
    return float(mean), float(np.sqrt(weights @ np.square(slopes - mean)))


@pytest.mark.parametrize("model", [BayesianLogisticRegression, BayesianPoissonRegression])
@pytest.mark.parametrize("counts", [(12, 18), (40, 60), (15, 15), (10, 35)])
def test_a_slope_is_what_quadrature_finds(model: type, counts: tuple[int, int]) -> None:
    n = 1000
    x = np.repeat([0.0, 1.0], n)
    y = np.zeros(2 * n)
    y[: counts[0]] = y[n : n + counts[1]] = 1.0

    def log_likelihood(eta: Array) -> Array:
        each = np.array(counts) * eta
        if model is BayesianLogisticRegression:
            return np.sum(each - n * np.logaddexp(0.0, eta), axis=-1)
        return np.sum(each - n * np.exp(eta), axis=-1)

    fitted = model(approximation="moments").fit(x[:, None], y)
    inner = fitted._posterior.inner
    # Where the mean is 0 at every node, one is enough: its share is the posterior mean of theirs.
    assert len(inner.nodes.weights) == (1 if counts[0] == counts[1] else 5)
    square = mean_squares(inner.factor, intercept=True).squares[0]
    mean, sd = integrated(log_likelihood, square)
    assert fitted.coef_.ravel()[0] == pytest.approx(mean, abs=0.05 * sd)
    assert np.sqrt(fitted.posterior_.cov[1, 1]) == pytest.approx(sd, rel=0.06)


@pytest.mark.parametrize("model", [BayesianLogisticRegression, BayesianPoissonRegression])
def test_a_small_difference_is_not_taken_for_none(model: type) -> None:
    """1.2% against 1.8%, over what two arms of 1,000 can show of them."""
    n, rates = 1000, np.array([0.012, 0.018])
    logistic = model is BayesianLogisticRegression
    truth = np.log(rates[1] / rates[0]) - logistic * np.log((1 - rates[1]) / (1 - rates[0]))
    x = np.repeat([0.0, 1.0], n)
    held, estimates, least_squares = 0, [], []
    rng = np.random.default_rng(0)
    for counts in rng.binomial(n, rates, (60, 2)):
        y = np.zeros(2 * n)
        y[: counts[0]] = y[n : n + counts[1]] = 1.0
        fitted = model().fit(x[:, None], y)
        low, high = fitted.posterior_.marginal(slice(1, None)).interval(0.95)
        held += int(low[0] <= truth <= high[0])
        estimates.append(fitted.coef_.ravel()[0])
        least_squares.append(np.log(counts[1] / counts[0]))
    assert held >= 54
    assert np.mean(estimates) > 0.65 * np.mean(least_squares)


def test_one_row_is_predicted_as_many_are() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3))
    y = (rng.random(60) < expit(X[:, 0])).astype(int)
    model = BayesianLogisticRegression().fit(X, y)
    assert len(model._posterior.inner.nodes.weights) > 1
    assert model.predict_proba_one(X[0])[1] == pytest.approx(model.predict_proba(X[:1])[0, 1])


@pytest.mark.parametrize(
    "estimator",
    [
        BayesianLinearRegression,
        BayesianLogisticRegression,
        BayesianPoissonRegression,
        BayesianRobustRegression,
    ],
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_number_of_numpy_is_a_number(estimator: type, n_classes: int) -> None:
    """Which has a method ``choose``, as strategies have."""
    X = np.random.default_rng(0).normal(size=(30, 2))
    y = np.digitize(X[:, 0], np.linspace(-0.5, 0.5, n_classes - 1)).astype(float)
    predictive = [
        estimator(prior_precision=precision).fit(X, y).predict_interval(X)
        for precision in (0.5, np.float64(0.5), np.array(0.5))
    ]
    assert np.array_equal(predictive[0], predictive[1])
    assert np.array_equal(predictive[0], predictive[2])
