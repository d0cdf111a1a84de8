"""Marginals of skewed posteriors against exact quadrature, under the same given prior."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import logsumexp

from posterity import (
    BayesianGeneralizedLinear,
    BayesianLogisticRegression,
    BayesianPoissonRegression,
)
from posterity.files.store import dumps, loads
from posterity.likelihoods import Bernoulli, Likelihood, NegativeBinomial, Poisson

Array = NDArray[np.float64]

# A public report: four treatments, the last has counts of zero only.
COUNTS = np.array([15, 12, 10, 9, 6, 8, 9, 5, 3, 3, 2, 1, 0, 0, 0, 0], dtype=float)
GROUPS = np.repeat(range(4), 4)
LABELS = np.array([0, 1, 0, 1, 1, 0] + [1, 1, 0, 1, 0, 1] + [0] * 6, dtype=float)
LEVELS = (0.025, 0.5, 0.975)


def make_dummies(groups: NDArray[np.int64]) -> Array:
    return (groups[:, None] == np.arange(1, groups.max() + 1)).astype(float)


def integrate_last_level(
    likelihood: Likelihood, y: Array, groups: NDArray[np.int64], sd: float
) -> tuple[Array, Array, Array]:
    """Values of the last level's coefficient and of its eta, and their masses.

    The intercept is flat; given it, levels are independent, each Normal(0, sd^2).
    """
    a = np.linspace(-9.0, 6.0, 600)
    b = np.linspace(-6.0 * sd, min(6.0 * sd, 9.0), 1_500)
    eta = a[:, None] + b
    of_levels = [
        sum(likelihood.log_density(one, eta) for one in y[groups == level])
        - 0.5 * np.square(b / sd)
        for level in range(1, groups.max() + 1)
    ]
    of_intercept = sum(likelihood.log_density(one, a) for one in y[groups == 0])
    others = sum(logsumexp(each, axis=1) for each in of_levels[:-1])
    logs = of_levels[-1] + (of_intercept + others)[:, None]
    masses = np.exp(logs - logs.max())
    return np.broadcast_to(b, eta.shape), eta, masses / masses.sum()


def quantiles(values: Array, masses: Array) -> Array:
    order = np.argsort(values, axis=None)
    return np.interp(LEVELS, np.cumsum(masses.ravel()[order]), values.ravel()[order])


def learn_rows(model: Any, X: Array, y: Array) -> Any:
    for row, target in zip(X, y, strict=True):
        model.learn_one(row, target)
    return model


CASES: list[tuple[Callable[[float], Any], Likelihood, Array, NDArray[np.int64], float]] = [
    (
        lambda sd: BayesianPoissonRegression(prior_precision=sd**-2),
        Poisson(),
        COUNTS,
        GROUPS,
        3.0,
    ),
    (
        lambda sd: BayesianLogisticRegression(prior_precision=sd**-2),
        Bernoulli(),
        LABELS,
        np.repeat(range(3), 6),
        2.5,
    ),
    (
        lambda sd: BayesianLogisticRegression(prior_precision=sd**-2),
        Bernoulli(),
        np.repeat([0.0, 1.0], 5),
        np.repeat(range(2), 5),
        2.5,
    ),
    (
        lambda sd: BayesianGeneralizedLinear(NegativeBinomial(0.5), prior_precision=sd**-2),
        NegativeBinomial(0.5),
        np.array([4, 7, 2, 5, 1, 3, 8, 2, 0, 0, 0, 0], dtype=float),
        np.repeat(range(3), 4),
        3.0,
    ),
]


@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize("case", CASES, ids=["zeros", "0 of 6", "separated", "negative binomial"])
def test_quantiles_are_those_of_quadrature(case: Any, one_by_one: bool) -> None:
    make, likelihood, y, groups, sd = case
    coefficient, eta, masses = integrate_last_level(likelihood, y, groups, sd)
    X = make_dummies(groups)
    model = learn_rows(make(sd), X, y) if one_by_one else make(sd).fit(X, y)
    expected = quantiles(coefficient, masses)
    # The separated coefficient is within 0.2, all others within 0.15.
    unit = (expected[2] - expected[0]) / 3.92
    ends = model.summary().iloc[-1][["low", "high"]].to_numpy(float)
    assert (np.abs(ends - expected[[0, 2]]) < 0.2 * unit).all()
    if one_by_one:  # whose rows are predicted by the normal distribution
        return
    expected = quantiles(eta, masses)
    unit = (expected[2] - expected[0]) / 3.92
    means = model.predict_interval(X[-1:], of="mean")[0]
    assert (np.abs(likelihood.link_function(means) - expected[[0, 2]]) < 0.15 * unit).all()
    predicted = model.predict_mean_distribution(X[-1:]).mean()[0]
    assert predicted == pytest.approx(np.sum(likelihood.mean(eta) * masses), rel=0.05)


def test_new_counts_of_a_level_of_zeros() -> None:
    _, eta, masses = integrate_last_level(Poisson(), COUNTS, GROUPS, 3.0)
    X = make_dummies(GROUPS)
    model = BayesianPoissonRegression(prior_precision=1.0 / 9.0).fit(X, COUNTS)
    predictive = model.predict_distribution(X[-1:])
    rate = np.exp(eta)
    for count in range(3):
        expected = np.sum(np.exp(Poisson().log_density(float(count), eta)) * masses)
        assert predictive.pmf([count])[0] == pytest.approx(expected, abs=0.002)
    mean = np.sum(rate * masses)
    assert predictive.mean()[0] == pytest.approx(mean, rel=0.01)
    assert predictive.var()[0] == pytest.approx(
        np.sum(rate * masses + (rate - mean) ** 2 * masses), rel=0.02
    )
    assert model.predict_one(X[-1]) == pytest.approx(predictive.mean()[0], rel=1e-12)
    draws = model.sample_mean(X[-1:], 20_000, rng=0)[:, 0]
    assert np.allclose(np.log(np.quantile(draws, LEVELS)), quantiles(eta, masses), atol=0.1)


@pytest.mark.parametrize("sd", [1.0, 30.0])
def test_no_mean_is_infinite_under_a_wide_prior(sd: float) -> None:
    X = make_dummies(GROUPS)
    _, eta, masses = integrate_last_level(Poisson(), COUNTS, GROUPS, sd)
    for model in (
        BayesianPoissonRegression(prior_precision=sd**-2).fit(X, COUNTS),
        BayesianPoissonRegression(prior_precision=sd**-2).partial_fit(X, COUNTS),
    ):
        mean = model.predict(X[-1:])[0]
        assert mean == pytest.approx(np.sum(np.exp(eta) * masses), rel=0.05)


def test_default_prior_has_finite_means_and_narrow_intervals() -> None:
    X = make_dummies(GROUPS)
    for model in (
        BayesianPoissonRegression().fit(X, COUNTS),
        BayesianPoissonRegression().partial_fit(X[:8], COUNTS[:8]).partial_fit(X[8:], COUNTS[8:]),
    ):
        predictive = model.predict_distribution(X[-1:])
        assert predictive.mean()[0] < 0.5
        assert predictive.interval(0.95)[1][0] <= 2.0
        assert model.predict_interval(X[-1:], of="mean")[0, 1] < 1.5


def test_what_is_known_well_stays_normal() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    model = BayesianPoissonRegression(prior_precision=1.0).fit(X, rng.poisson(np.exp(X[:, 0])))
    rows = np.array([[0.0, 0.0], [1.0, -1.0]])
    joint = model.posterior_
    eta = joint.project(np.column_stack([np.ones(2), rows]))
    assert (eta.std() < 0.3).all()
    expected = np.exp(np.column_stack(eta.interval(0.95)))
    assert np.allclose(model.predict_interval(rows, of="mean"), expected, rtol=1e-12)
    assert np.allclose(model.summary()["low"], joint.interval(0.95)[:, 0], rtol=1e-12)


def test_kept_rows_are_saved_merged_unlearned_and_grow() -> None:
    groups = np.repeat(range(30), 8)
    rng = np.random.default_rng(3)
    y = rng.poisson(np.exp(0.5 + 1.2 * rng.normal(size=30))[groups]).astype(float)
    y[-8:] = 0.0
    X, how = make_dummies(groups), {"prior_precision": 0.25}
    whole = BayesianPoissonRegression(**how).fit(X, y)
    high = whole.predict_interval(X[-1:], of="mean")[0, 1]

    def check(model: BayesianPoissonRegression, rtol: float) -> None:
        assert np.allclose(model.predict_interval(X[-1:], of="mean")[0, 1], high, rtol=rtol)

    check(loads(dumps(whole)), 1e-12)
    halves = [BayesianPoissonRegression(**how).partial_fit(X[i::2], y[i::2]) for i in (0, 1)]
    check(halves[0].merge(halves[1]), 0.2)  # by the normal distribution
    more = np.concatenate([X, X[:3]]), np.concatenate([y, y[:3]])
    check(BayesianPoissonRegression(**how).fit(*more).unlearn(X[:3], y[:3]), 0.2)


def test_all_kept_rows_may_be_unlearned_and_rows_do_not_depend_on_others() -> None:
    rng = np.random.default_rng(0)
    X, y = np.zeros((3000, 2)), (rng.random(3000) < 0.5).astype(float)
    X[:, 0], X[-5:], y[-5:] = rng.normal(size=3000), [0.0, 1.0], 0.0
    model = BayesianPoissonRegression(prior_precision=1.0).fit(X, y)
    together, alone = model.predict(X[-9:]), [model.predict(x[None])[0] for x in X[-9:]]
    np.testing.assert_allclose(together, alone, rtol=1e-9)
    drawn = model.sample_mean(X[-9:], 50, rng=1)
    np.testing.assert_allclose(drawn[:, :2], model.sample_mean(X[-9:-7], 50, rng=1), rtol=1e-9)
    model.unlearn(X[-5:], y[-5:])
    assert np.isfinite(model.predict_distribution(X[-1:]).mean()).all()
