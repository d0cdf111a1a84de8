"""As many events are expected, over the rows learned, as came.

Under a flat prior of the intercept that is so of the posterior itself, whatever the prior of the
slopes: the integral of its derivative along the intercept is 0.
"""

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, gammaln

from posterity import (
    BayesianGeneralizedLinear,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegression,
    BayesianPoissonRegression,
)
from posterity.kernel import average_softplus
from posterity.likelihoods import Bernoulli, NegativeBinomial, Poisson
from posterity.likelihoods.averages import integrate_derivatives

LABELS, COUNTS = BayesianLogisticRegression, BayesianPoissonRegression


def draw_rows(n: int, p: int, events: int) -> tuple[Any, Any]:
    """The first rows have the events; none is so far out that a plane separates them."""
    X = np.random.default_rng([n, p, events]).normal(size=(n, p))
    X[:events] *= 0.2
    return X, (np.arange(n) < events).astype(int)


def count_expected(model: Any, X: Any) -> float:
    if isinstance(model, BayesianLogisticRegression):
        return float(model.predict_proba(X)[:, 1].sum())
    expected = model.predict(X)
    assert np.allclose(expected, model.predict_distribution(X).mean(), rtol=1e-12)
    return float(expected.sum())


@pytest.mark.parametrize("prior", ["auto", 1.0, 0.0])
@pytest.mark.parametrize("kind", [LABELS, COUNTS])
@pytest.mark.parametrize(("n", "p", "events"), [(60, 2, 1), (60, 5, 3), (300, 1, 1), (300, 5, 5)])
def test_as_many_events_are_expected_as_came(
    kind: Any, prior: Any, n: int, p: int, events: int
) -> None:
    X, y = draw_rows(n, p, events)
    model = kind(prior_precision=prior).fit(X, y)
    assert count_expected(model, X) == pytest.approx(events, abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("prior", ["auto", 1.0, 0.0])
@pytest.mark.parametrize("kind", [LABELS, COUNTS])
def test_as_many_events_are_expected_as_came_wherever(kind: Any, prior: Any) -> None:
    for n, p, events in itertools.product((60, 100, 200, 300), range(1, 6), range(1, 6)):
        X, y = draw_rows(n, p, events)
        model = kind(prior_precision=prior).fit(X, y)
        assert count_expected(model, X) == pytest.approx(events, abs=0.1), (n, p, events)


def test_one_event_in_sixty_rows() -> None:
    """Of the posterior itself (draws): .0116 and .0114 where features are 0, in all 1."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 2)), np.arange(60) == 0
    labels = LABELS(prior_precision=1.0).fit(X, y.astype(int))
    counts = COUNTS(prior_precision=1.0).fit(X, y.astype(int))
    assert labels.predict_proba([[0.0, 0.0]])[0, 1] == pytest.approx(0.0116, rel=0.1)
    assert counts.predict([[0.0, 0.0]])[0] == pytest.approx(0.0114, rel=0.1)
    for prior in ("auto", 1.0, 0.0):
        for kind in (LABELS, COUNTS):
            model = kind(prior_precision=prior).fit(X, y.astype(int))
            assert count_expected(model, X) == pytest.approx(1.0, abs=0.1)


def test_weights_and_offsets_and_likelihoods_of_ones_own() -> None:
    X, y = draw_rows(80, 2, 3)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, size=80)
    offset = np.linspace(-1.0, 1.0, 80)
    for likelihood in (Poisson(), Bernoulli()):
        model = BayesianGeneralizedLinear(likelihood, prior_precision=1.0)
        model.fit(X, y, weights, offset=offset)
        expected = weights @ model.predict(X, offset=offset)
        assert expected == pytest.approx(weights @ y, abs=0.1)


def test_negative_binomial_counts_expect_what_their_posterior_does() -> None:
    """The slope of their likelihood is not target minus expectation, which is not exact there."""
    X, y = draw_rows(300, 1, 3)
    model = BayesianNegativeBinomialRegression(dispersion=0.5, prior_precision=1.0).fit(X, y)
    grid = np.meshgrid(np.linspace(-12, 0, 300), np.linspace(-5, 5, 200), indexing="ij")
    log_posterior, total = -0.5 * grid[1] ** 2, np.zeros_like(grid[0])
    for x, count in zip(X[:, 0], y, strict=True):
        eta = grid[0] + x * grid[1]
        log_posterior += count * eta - (count + 2.0) * np.log1p(0.5 * np.exp(eta))
        total += np.exp(eta)
    share = np.exp(log_posterior - log_posterior.max())
    truth = float((share * total).sum() / share.sum())
    assert count_expected(model, X) == pytest.approx(truth, abs=0.1)


@pytest.mark.parametrize("kind", [LABELS, COUNTS])
def test_the_evidence_is_that_of_quadrature(kind: Any) -> None:
    X, y = draw_rows(60, 1, 5)
    model = kind(prior_precision=1.0).fit(X, y)
    intercept, slope = np.linspace(-9, 3, 400), np.linspace(-5, 5, 300)
    eta = intercept[:, None, None] + slope[None, :, None] * X[:, 0]
    if kind is LABELS:
        terms = y * eta - np.logaddexp(0.0, eta)
    else:
        terms = y * eta - np.exp(eta) - gammaln(y + 1.0)
    logs = terms.sum(axis=2) - 0.5 * slope**2 - 0.5 * np.log(2.0 * np.pi)
    area = (intercept[1] - intercept[0]) * (slope[1] - slope[0])
    truth = np.log(np.exp(logs - logs.max()).sum() * area) + logs.max()
    assert model.log_evidence_ == pytest.approx(truth, abs=0.1)


@pytest.mark.parametrize("likelihood", [Bernoulli(), Poisson(), NegativeBinomial(0.7)])
def test_averages_are_those_of_quadrature(likelihood: Any) -> None:
    mean, variance = np.meshgrid([-8.0, -1.0, 0.0, 3.0], [1e-4, 0.04, 0.3, 0.9, 2.0])
    mean, variance = mean.ravel(), variance.ravel()
    for target in (0.0, 1.0):
        y = np.full(len(mean), target)
        found = likelihood.average(y, mean, variance)
        plain = integrate_derivatives(likelihood, y, mean, variance)
        for one, other in zip(found, plain, strict=True):
            assert np.allclose(one, other, rtol=2e-5, atol=1e-7)


@pytest.mark.parametrize("variance", [1e-6, 2e-3, 3e-3, 0.05, 0.051, 1.0, 1.01, 50.0, 9e3, 1.1e4])
def test_averages_of_softplus_at_any_width(variance: float) -> None:
    mean = np.linspace(-20.0, 20.0, 11)
    step = np.linspace(-9.0, 9.0, 200_001)
    share = np.exp(-0.5 * step**2)
    share /= share.sum()
    eta = mean[:, None] + np.sqrt(variance) * step
    plain = np.logaddexp(0.0, eta) @ share, expit(eta) @ share, (expit(eta) * expit(-eta)) @ share
    for one, other in zip(average_softplus(mean, np.full(11, variance)), plain, strict=True):
        assert np.allclose(one, other, rtol=3e-4 if variance > 1e4 else 2e-7, atol=1e-9)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("offset", [1e6, 1e9, 1e11])
@pytest.mark.parametrize("approximation", ["auto", "laplace"])
@pytest.mark.parametrize("kind", [LABELS, COUNTS])
def test_a_column_far_from_0_is_no_reason_to_warn(
    kind: Any, approximation: str, offset: float
) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = (rng.random(200) < expit(X[:, 0])).astype(int)
    here = kind(prior_precision=1.0, approximation=approximation).fit(X, y)
    there = kind(prior_precision=1.0, approximation=approximation).fit(
        X + np.array([offset, 0.0]), y
    )
    assert np.allclose(here.coef_, there.coef_, rtol=1e-3)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", [LABELS, COUNTS])
def test_rows_of_a_column_far_from_0_do_not_warn(kind: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2)) + np.array([1e9, 0.0])
    y = (rng.random(100) < 0.5).astype(int)
    model = kind(prior_precision=1.0)
    for x, target in zip(X, y, strict=True):
        model.learn_one(x, target)


def test_a_count_without_a_maximum_is_not_a_class() -> None:
    model = COUNTS(prior_precision=0.0)
    with pytest.warns(UserWarning, match="counts that are all 0") as caught:
        model.fit(np.arange(6.0)[:, None], np.zeros(6))
    assert "class" not in str(caught[0].message)


@pytest.mark.parametrize(("n", "p"), [(60, 3), (200, 10)])
def test_as_many_events_as_came_where_a_line_separates_them(n: int, p: int) -> None:
    """Far from where the mode is: ten of its standard deviations."""
    X = np.random.default_rng([n, p]).normal(size=(n, p))
    y = (X[:, 0] > 0.0).astype(int)
    assert count_expected(LABELS().fit(X, y), X) == pytest.approx(y.sum(), abs=0.05)
