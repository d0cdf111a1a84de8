"""Generalized Poisson counts, beside direct sums and a grid."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from posterity import BayesianGeneralizedLinear
from posterity.files import load, save
from posterity.likelihoods import GeneralizedPoisson, Hurdle, Poisson, ZeroInflated

Array = np.ndarray


def draw(n: int, excess: float = 0.5) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 1))
    known = GeneralizedPoisson(excess).distribution(0.3 + 0.5 * X[:, 0])
    return X, known.rvs(random_state=rng).astype(float)


@pytest.mark.parametrize("excess", [0.1, 0.5, 2.0])
def test_probabilities_sum_to_one(excess: float) -> None:
    known, y = GeneralizedPoisson(excess), np.arange(20_000.0)
    mass = np.exp(known.log_density(y, np.full(len(y), 1.0)))
    mean = float(mass @ y)
    assert mass.sum() == pytest.approx(1.0, abs=1e-9)
    assert mean == pytest.approx(np.e, rel=1e-9)
    told = known.distribution(np.ones(1))
    assert mass @ np.square(y - mean) == pytest.approx(told.var()[0], rel=1e-9)
    below = np.cumsum(mass)
    np.testing.assert_allclose(told.cdf(np.arange(-1.0, 50.0)), [0.0, *below[:50]], atol=1e-12)
    levels = np.array([0.01, 0.3, 0.5, 0.9, 0.999])
    np.testing.assert_array_equal(told.ppf(levels), np.searchsorted(below, levels))
    np.testing.assert_array_equal(told.logpmf([-1.0, 0.5]), -np.inf)
    draws = told.rvs((20_000, 1), np.random.default_rng(0))
    assert draws.mean() == pytest.approx(np.e, abs=4.0 * (told.var()[0] / 20_000) ** 0.5)
    assert np.mean(draws == 0) == pytest.approx(mass[0], abs=0.02)


def test_small_excess_is_poisson() -> None:
    y, eta = np.arange(6.0), np.linspace(-1.0, 2.0, 6)
    found = GeneralizedPoisson(1e-9).log_density(y, eta)
    np.testing.assert_allclose(found, Poisson().log_density(y, eta), atol=1e-7)


def test_sums_meet_what_stands_for_many() -> None:
    few, many = (GeneralizedPoisson(0.5).distribution(np.log([mean])) for mean in (1999.0, 2001.0))
    levels = np.array([0.05, 0.5, 0.95])
    np.testing.assert_allclose(many.ppf(levels) - few.ppf(levels), 2.0, atol=2.0)


def test_what_is_learned_is_that_of_a_grid() -> None:
    X, y = draw(100)
    model = BayesianGeneralizedLinear(GeneralizedPoisson(), prior_precision=1.0).fit(X, y)
    mean, sd = np.append(model.intercept_, model.coef_), model.posterior_.std()
    told = model.likelihood_parameters_["excess"]
    log, log_sd = np.log(told.median()), told.args[0]
    places = np.linspace(-6.0, 6.0, 31)
    a, b = (axis.ravel() for axis in np.meshgrid(*(mean[:, None] + sd[:, None] * places)))
    t = log + log_sd * places
    logs = np.array(
        [
            GeneralizedPoisson(float(np.exp(one))).log_density(y[:, None], a + X * b).sum(axis=0)
            + GeneralizedPoisson.prior.log_density(one)
            - 0.5 * b * b
            for one in t
        ]
    )
    mass = np.exp(logs - logs.max())
    mass /= mass.sum()
    for values, found, spread in (
        (a, mean[0], sd[0]),
        (b, mean[1], sd[1]),
        (t[:, None] + 0.0 * a, log, log_sd),
    ):
        exact = float(np.sum(mass * values))
        exact_sd = float(np.sum(mass * (values - exact) ** 2)) ** 0.5
        assert abs(found - exact) < 0.2 * exact_sd
        assert 0.9 < spread / exact_sd < 1.1


def test_rows_batches_files_and_merging(tmp_path: Path) -> None:
    X, y = draw(80)
    whole = BayesianGeneralizedLinear("generalized poisson").fit(X, y)
    parts = BayesianGeneralizedLinear(GeneralizedPoisson()).partial_fit(X[:50], y[:50])
    for x, target in zip(X[50:55], y[50:55], strict=True):
        parts.learn_one(x, target)
    parts.partial_fit(X[55:], y[55:])
    sd = whole.posterior_.std()[1]
    assert abs(parts.coef_ - whole.coef_)[0] < 0.4 * sd
    save(parts, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(X), parts.predict(X))
    rest = BayesianGeneralizedLinear(GeneralizedPoisson()).fit(X[40:], y[40:])
    merged = BayesianGeneralizedLinear(GeneralizedPoisson()).fit(X[:40], y[:40]).merge(rest)
    assert abs(merged.coef_ - whole.coef_)[0] < 0.4 * sd


def test_zeros_of_another_kind() -> None:
    for around in (ZeroInflated, Hurdle):
        likelihood = around(GeneralizedPoisson(0.5), 0.3)
        y = np.arange(300.0)
        mass = np.exp(likelihood.log_density(y, np.full(300, 0.5)))
        assert mass.sum() == pytest.approx(1.0, abs=1e-9)
        told = likelihood.distribution(np.full(1, 0.5))
        assert told.cdf(np.array([3.0]))[0] == pytest.approx(mass[:4].sum(), abs=1e-9)
        assert told.ppf(np.array([0.9]))[0] == np.searchsorted(np.cumsum(mass), 0.9)


@pytest.mark.parametrize("excess", [0.0, -1.0, np.inf, np.nan])
def test_what_cannot_be(excess: float) -> None:
    with pytest.raises(ValueError, match=r"excess is .*: it must be positive and finite"):
        GeneralizedPoisson(excess)
