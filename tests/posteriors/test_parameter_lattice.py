"""Parameters and coefficients of few rows, read together, against exact sums."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from posterity import BayesianGeneralizedLinear
from posterity.distributions.bent_log import make_bent_log
from posterity.distributions.bent_normal import NODES
from posterity.files.store import dumps, loads
from posterity.likelihoods import (
    Censored,
    Gamma,
    InverseGaussian,
    Likelihood,
    LogNormal,
    Poisson,
    Weibull,
    ZeroInflated,
)

Array = NDArray[np.float64]

LEVELS = (0.025, 0.5, 0.975)
PRECISION = 0.25


def make_rows(n: int = 25) -> tuple[Array, Array]:
    draws = np.random.default_rng(3)
    x = draws.normal(size=n)
    return x[:, None], draws.gamma(2.0, np.exp(0.3 + 0.5 * x) / 2.0)


def fit(likelihood: Likelihood, X: Array, y: Array) -> BayesianGeneralizedLinear:
    return BayesianGeneralizedLinear(likelihood, prior_precision=PRECISION).fit(X, y)


def read(model: Any) -> Array:
    """(3, 2 + d) quantiles of the intercept, the coefficient and logs of the parameters."""
    ends, middle = model.summary(), model.summary(level=1e-9)["low"]
    of_effects = np.array([ends["low"], middle, ends["high"]])
    logs = [np.log(one.ppf(LEVELS)) for one in model.likelihood_parameters_.values()]
    return np.column_stack([of_effects, *logs])


def sum_exactly(likelihood: Likelihood, X: Array, y: Array) -> Array:
    """The same by a grid over the three numbers, around where they may lie."""
    known = likelihood.parameters[0].stated
    axes = [np.linspace(-1.5, 2.5, 90), np.linspace(-1.5, 2.5, 90), np.linspace(-3.0, 4.0, 70)]
    a, b = np.meshgrid(*axes[:2], indexing="ij")
    eta = a[..., None] + b[..., None] * X[:, 0]
    prior = -0.5 * PRECISION * b * b
    logs = np.array(
        [
            likelihood.with_parameters(np.exp(np.array([t]))).log_density(y, eta).sum(axis=-1)
            + (prior + known.log_density(np.array(t)))
            for t in axes[2]
        ]
    )
    masses = np.moveaxis(np.exp(logs - logs.max()), 0, -1)
    each = []
    for axis, values in enumerate(axes):
        of_axis = masses.sum(axis=tuple({0, 1, 2} - {axis}))
        each.append(
            np.interp(LEVELS, np.cumsum(of_axis) / of_axis.sum(), values + 0.5 * np.diff(values)[0])
        )
    return np.array(each).T


@pytest.mark.parametrize("likelihood", [Gamma(), Weibull(), LogNormal()], ids=str)
def test_few_rows_are_read_as_exact_sums_are(likelihood: Likelihood) -> None:
    X, y = make_rows()
    found, exact = read(fit(likelihood, X, y)), sum_exactly(likelihood, X, y)
    sd = (exact[2] - exact[0]) / 4.0
    assert np.abs((found - exact) / sd).max() < 0.1


@pytest.mark.parametrize("likelihood", [Gamma(), Censored(Weibull())], ids=str)
def test_batches_merged_models_and_files_are_read_as_a_fit(likelihood: Likelihood) -> None:
    X, y = make_rows(40)
    if likelihood.n_numbers == 2:
        y = np.column_stack([np.minimum(y, 2.0), np.where(y < 2.0, y, np.inf)])
    whole = fit(likelihood, X, y)
    halves = [fit(likelihood, X[some], y[some]) for some in (slice(20), slice(20, 40))]
    batches = pickle.loads(pickle.dumps(halves[0])).partial_fit(X[20:], y[20:])
    rows = BayesianGeneralizedLinear(likelihood, prior_precision=PRECISION)
    for x, one in zip(X, y, strict=True):
        rows.learn_one(x, one)
    expected = read(whole)
    sd = (expected[2] - expected[0]) / 4.0
    for model in (batches, rows, halves[0].merge(halves[1])):
        assert np.abs((read(model) - expected) / sd).max() < 0.03
    np.testing.assert_allclose(read(loads(dumps(whole))), expected, rtol=1e-9)


def test_unlearned_rows_are_read_as_if_they_had_not_come() -> None:
    X, y = make_rows(40)
    left = fit(Gamma(), X, y).unlearn(X[30:], y[30:])
    found, expected = read(left), read(fit(Gamma(), X[:30], y[:30]))
    sd = (expected[2] - expected[0]) / 4.0
    assert np.abs((found - expected) / sd).max() < 0.03


def test_rows_that_bend_upwards_say_less_than_nothing() -> None:
    X, _ = make_rows(200)
    columns, known = np.column_stack([np.ones(200), X]), InverseGaussian(0.5)
    y = known.distribution(columns @ [0.5, 0.5]).rvs(random_state=1)
    told = fit(known, X, y).summary(level=0.6826895)
    mean, step = np.asarray(told["mean"], float), 1e-3
    slopes = [
        [columns.T @ known.derivatives(y, columns @ (mean + far))[0] for far in (each, -each)]
        for each in step * np.eye(2)
    ]
    information = np.array([low - high for high, low in slopes]) / (2.0 * step)
    sd = np.sqrt(np.diag(np.linalg.inv(information + np.diag([0.0, PRECISION]))))
    found = 0.5 * (np.asarray(told["high"], float) - np.asarray(told["low"], float))
    np.testing.assert_allclose(found, sd, rtol=0.03)


def test_a_parameter_that_may_vanish_has_a_long_tail() -> None:
    draws = np.random.default_rng(0)
    X = draws.normal(size=(60, 1))
    model = fit(
        ZeroInflated(Poisson()), X, draws.poisson(np.exp(0.5 + 0.3 * X[:, 0])).astype(float)
    )
    low, middle, high = read(model)[:, -1]
    assert middle - low > 1.3 * (high - middle)


def test_rows_that_came_later_end_it() -> None:
    X, y = make_rows()
    model = fit(Gamma(), np.tile(X, (17, 1)) + np.arange(425)[:, None] * 1e-9, np.tile(y, 17))
    known = model.likelihood_parameters_["shape"]
    assert known.dist.name != "bent_log"


def test_a_distribution_of_bent_logs_is_that_of_its_quantiles() -> None:
    gamma = stats.gamma(3.0, scale=2.0)
    told = make_bent_log(np.log(gamma.ppf(stats.norm.cdf(NODES))))
    q = np.array([1e-3, 0.1, 0.5, 0.9, 0.999])
    np.testing.assert_allclose(told.ppf(q), gamma.ppf(q), rtol=0.01)
    np.testing.assert_allclose(told.cdf(told.ppf(q)), q, rtol=1e-9)
    np.testing.assert_allclose(told.sf(gamma.isf(q)), q, rtol=0.05)
    np.testing.assert_allclose(told.pdf([1.0, 6.0]), gamma.pdf([1.0, 6.0]), rtol=0.05)
    np.testing.assert_allclose([told.mean(), told.std()], [gamma.mean(), gamma.std()], rtol=0.01)
