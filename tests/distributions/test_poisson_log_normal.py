"""Counts with uncertain rates, and labels."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from posterity.distributions import Categorical, PoissonLogNormal


@pytest.mark.parametrize("y", [0, 1, 7, 500])
@pytest.mark.parametrize(("m", "v"), [(-2.0, 0.3), (2.0, 1e-6), (2.0, 4.0), (6.0, 25.0)])
def test_masses_against_quadrature(y: int, m: float, v: float) -> None:
    sd = np.sqrt(v)

    def density(eta: mpmath.mpf) -> mpmath.mpf:
        log = y * eta - mpmath.exp(eta) - mpmath.loggamma(y + 1) - (eta - m) ** 2 / (2 * v)
        return mpmath.exp(log) / mpmath.sqrt(2 * mpmath.pi * v)

    centre = np.log(y + 0.5)
    width = (y + 0.5) ** -0.5
    ends = [m + k * sd for k in (-12, -6, -3, -1, 0, 1, 3, 6, 12)]
    ends += [centre + k * width for k in (-12, -6, -3, -1, 0, 1, 3, 6) if abs(k * width) < 12 * sd]
    exact = float(mpmath.log(mpmath.quad(density, sorted(ends))))
    assert PoissonLogNormal([m], [v]).logpmf(y)[0] == pytest.approx(exact, rel=1e-7, abs=1e-7)


@given(st.floats(-3.0, 3.0), st.floats(0.0, 4.0))
def test_masses_add_up_to_the_distribution_function(m: float, v: float) -> None:
    told = PoissonLogNormal(m, v)
    counts = np.arange(300)
    assert np.allclose(np.cumsum(told.pmf(counts)), told.cdf(counts), atol=1e-8)


def test_without_uncertainty_it_is_poisson() -> None:
    rates, counts = np.array([0.1, 3.0, 1e4]), np.array([0, 4, 10_050])
    told, scipys = PoissonLogNormal(np.log(rates), 0.0), stats.poisson(rates)
    assert np.allclose(told.logpmf(counts), scipys.logpmf(counts), rtol=1e-8)
    assert np.allclose(told.cdf(counts), scipys.cdf(counts), rtol=1e-8)
    assert np.array_equal(told.ppf(0.9), scipys.ppf(0.9))
    assert np.allclose(told.mean(), rates)
    assert np.allclose(told.var(), rates)


def test_quantiles_are_least_counts() -> None:
    told = PoissonLogNormal([0.0, 3.0, 20.0, -30.0], [0.5, 2.0, 1e-4, 1.0])
    for q in (1e-6, 0.3, 0.5, 0.975):
        count = told.ppf(q)
        assert (told.cdf(count) >= q).all()
        assert ((told.cdf(count - 1.0) < q) | (count == 0.0)).all()


def test_crps_against_draws_and_draws_themselves() -> None:
    told = PoissonLogNormal([1.0, 4.0, 12.0], [0.2, 1.0, 0.5])
    y = np.array([5.0, 30.0, 1e5])
    drawn = told.rvs((200_000, 3), random_state=0)
    assert np.allclose(drawn.mean(axis=0), told.mean(), rtol=0.02)
    other = told.rvs((200_000, 3), random_state=1)
    expected = np.abs(drawn - y).mean(axis=0) - 0.5 * np.abs(drawn - other).mean(axis=0)
    assert np.allclose(told.crps(y), expected, rtol=0.03)


def test_what_is_no_count_and_what_is_flat() -> None:
    told = PoissonLogNormal([0.0, 0.0], [1.0, np.inf])
    assert told.logpmf([0.5, 0.5]).tolist() == [-np.inf, 0.0]
    assert told.is_flat().tolist() == [False, True]
    assert told.cdf(-1.0).tolist() == [0.0, 0.5]
    assert told.crps(1.0)[1] == np.inf
    with pytest.raises(ValueError, match="row 1 is improper"):
        told.rvs()


def test_labels() -> None:
    told = Categorical(["a", "b", "c"], np.log([[0.2, 0.5, 0.3], [1.0, 1e-300, 1e-300]]))
    assert told.mode().tolist() == ["b", "a"]
    assert told.logpmf(["c", "z"]).tolist() == [pytest.approx(np.log(0.3)), -np.inf]
    assert told[:1].shape == (1,)
    drawn = told.rvs(20_000, random_state=0)
    assert np.mean(drawn[:, 0] == "b") == pytest.approx(0.5, abs=0.02)
    assert set(drawn[:, 1]) == {"a"}
    assert told.entropy()[0] == pytest.approx(stats.entropy([0.2, 0.5, 0.3]))
    with pytest.raises(ValueError, match="give a column for each"):
        Categorical(["a"], [[0.0, 0.0]])


def test_mean_is_infinite_where_nothing_is_known_yet() -> None:
    told = PoissonLogNormal([1.0, 1.0], [9.0, 11.0])
    assert np.isfinite(told.mean()).tolist() == [True, False]
    assert np.isinf(told.std()[1])
