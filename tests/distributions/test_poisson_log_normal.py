"""Counts with uncertain rates, and labels."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from posterity.distributions import Categorical, NegativeBinomialLogNormal, PoissonLogNormal

ROWS = [
    (-2.0, 0.3, 0.0),
    (2.0, 1e-6, 0.0),
    (4.2, 0.0, 0.0),
    (5.0, 0.01, 0.0),
    (7.0, 0.001, 0.0),
    (7.0, 0.05, 0.001),
    (5.0, 0.01, 0.1),
    (5.0, 0.2, 0.5),
    (1.0, 0.5, 2.0),
    (3.0, 0.0, 10.0),
    (4.5, 0.001, 2.0),
]


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
    predictive = PoissonLogNormal(m, v)
    counts = np.arange(300)
    assert np.allclose(np.cumsum(predictive.pmf(counts)), predictive.cdf(counts), atol=1e-8)


def test_without_uncertainty_it_is_poisson() -> None:
    rates, counts = np.array([0.1, 3.0, 1e4]), np.array([0, 4, 10_050])
    predictive, scipys = PoissonLogNormal(np.log(rates), 0.0), stats.poisson(rates)
    assert np.allclose(predictive.logpmf(counts), scipys.logpmf(counts), rtol=1e-8)
    assert np.allclose(predictive.cdf(counts), scipys.cdf(counts), rtol=1e-8)
    assert np.array_equal(predictive.ppf(0.9), scipys.ppf(0.9))
    assert np.allclose(predictive.mean(), rates)
    assert np.allclose(predictive.var(), rates)


def test_quantiles_are_least_counts() -> None:
    predictive = PoissonLogNormal([0.0, 3.0, 20.0, -30.0], [0.5, 2.0, 1e-4, 1.0])
    for q in (1e-6, 0.3, 0.5, 0.975):
        count = predictive.ppf(q)
        assert (predictive.cdf(count) >= q).all()
        assert ((predictive.cdf(count - 1.0) < q) | (count == 0.0)).all()


@pytest.mark.parametrize(("m", "v", "dispersion"), ROWS)
def test_scores_and_quantiles_are_sums_over_all_counts(
    m: float, v: float, dispersion: float
) -> None:
    """Which are slow and obvious: the distribution function, count by count."""
    last = int(np.exp(m + 7.0 * np.sqrt(v)) * (1.0 + 25.0 * max(dispersion, 0.1))) + 100
    one = NegativeBinomialLogNormal(m, v, dispersion)
    reached = one.cdf(np.arange(last))
    assert reached[-1] > 1.0 - 1e-9
    y = np.array([0.0, 1.0, 5.0, 63.0, 64.0, 65.0, 200.0, 1000.0])
    y = y[y < last]
    expected = [np.sum(np.square(reached - (np.arange(last) >= count))) for count in y]
    assert np.allclose(one.crps(y), expected, rtol=5e-6)
    levels = np.array([1e-6, 0.01, 0.025, 0.3, 0.5, 0.9, 0.975, 0.999])
    assert np.array_equal(one.ppf(levels), np.searchsorted(reached, levels))


def test_crps_of_what_is_no_count() -> None:
    """The integral of (cdf(t) - [t >= y])^2 dt, whatever y is."""
    predictive = PoissonLogNormal(np.full(4, 1.0), 0.2)
    reached = predictive[:1].cdf(np.arange(200))
    steps = np.arange(-20.0, 200.0, 0.01) + 0.005
    cdf = np.where(steps < 0.0, 0.0, reached[np.maximum(steps, 0.0).astype(int)])
    y = np.array([2.3, -1.7, 0.5, 70.25])
    expected = [0.01 * np.sum(np.square(cdf - (steps >= at))) for at in y]
    assert np.allclose(predictive.crps(y), expected, atol=0.006)


@given(
    st.floats(-3.0, 12.0),
    st.floats(0.0, 2.0),
    st.sampled_from([0.0, 1e-4, 0.1, 1.0, 10.0]),
    st.floats(0.001, 0.999),
)
def test_a_quantile_is_the_least_count(m: float, v: float, dispersion: float, q: float) -> None:
    predictive = NegativeBinomialLogNormal(m, v, dispersion)
    count = predictive.ppf(q)
    assert predictive.cdf(count) >= q
    assert predictive.cdf(count - 1.0) < q or count == 0.0


@pytest.mark.parametrize("dispersion", [1e-4, 0.1, 0.5, 10.0])
def test_negative_binomial_masses(dispersion: float) -> None:
    rate, counts = 5.0, np.arange(80)
    r = 1.0 / dispersion
    predictive = NegativeBinomialLogNormal(np.log(rate), 0.0, dispersion)
    scipys = stats.nbinom(r, r / (r + rate))
    assert np.allclose(predictive.logpmf(counts), scipys.logpmf(counts), rtol=1e-7, atol=1e-7)
    assert np.allclose(predictive.cdf(counts), scipys.cdf(counts), rtol=1e-8)
    assert predictive.var() == pytest.approx(rate + dispersion * rate**2)
    eta = np.linspace(-6.0, 9.0, 40_001)  # and averaged over uncertain rates
    weights = stats.norm(1.0, 0.8).pdf(eta) * (eta[1] - eta[0])
    rates = np.exp(eta)[:, None]
    expected = weights @ stats.nbinom(r, r / (r + rates)).pmf(counts)
    assert np.allclose(NegativeBinomialLogNormal(1.0, 0.64, dispersion).pmf(counts), expected)


def test_negative_binomial_draws_and_rows() -> None:
    predictive = NegativeBinomialLogNormal([1.0, 4.0], [0.2, 0.1], [0.5, 2.0])
    drawn = predictive.rvs((200_000, 2), random_state=0)
    assert np.allclose(drawn.mean(axis=0), predictive.mean(), rtol=0.02)
    assert np.allclose(drawn.var(axis=0), predictive.var(), rtol=0.08)
    assert predictive[1:].mean() == predictive.mean()[1]
    assert predictive[1:].dispersion.tolist() == [2.0]
    plain = NegativeBinomialLogNormal(1.0, 0.2, 0.0)
    assert plain.logpmf(3.0) == PoissonLogNormal(1.0, 0.2).logpmf(3.0)
    with pytest.raises(ValueError, match="a dispersion is negative or not finite"):
        NegativeBinomialLogNormal(0.0, 1.0, -1.0)


def test_crps_against_draws_and_draws_themselves() -> None:
    predictive = PoissonLogNormal([1.0, 4.0, 12.0], [0.2, 1.0, 0.5])
    y = np.array([5.0, 30.0, 1e5])
    drawn = predictive.rvs((200_000, 3), random_state=0)
    assert np.allclose(drawn.mean(axis=0), predictive.mean(), rtol=0.02)
    other = predictive.rvs((200_000, 3), random_state=1)
    expected = np.abs(drawn - y).mean(axis=0) - 0.5 * np.abs(drawn - other).mean(axis=0)
    assert np.allclose(predictive.crps(y), expected, rtol=0.03)


def test_what_is_no_count_and_what_is_flat() -> None:
    predictive = PoissonLogNormal([0.0, 0.0], [1.0, np.inf])
    assert predictive.logpmf([0.5, 0.5]).tolist() == [-np.inf, 0.0]
    assert predictive.is_flat().tolist() == [False, True]
    assert predictive.cdf(-1.0).tolist() == [0.0, 0.5]
    assert predictive.crps(1.0)[1] == np.inf
    with pytest.raises(ValueError, match="row 1 is improper"):
        predictive.rvs()


def test_labels() -> None:
    predictive = Categorical(["a", "b", "c"], np.log([[0.2, 0.5, 0.3], [1.0, 1e-300, 1e-300]]))
    assert predictive.mode().tolist() == ["b", "a"]
    assert predictive.logpmf(["c", "z"]).tolist() == [pytest.approx(np.log(0.3)), -np.inf]
    assert predictive[:1].shape == (1,)
    drawn = predictive.rvs(20_000, random_state=0)
    assert np.mean(drawn[:, 0] == "b") == pytest.approx(0.5, abs=0.02)
    assert set(drawn[:, 1]) == {"a"}
    assert predictive.entropy()[0] == pytest.approx(stats.entropy([0.2, 0.5, 0.3]))
    with pytest.raises(ValueError, match="give a column for each"):
        Categorical(["a"], [[0.0, 0.0]])


def test_mean_is_infinite_where_nothing_is_known_yet() -> None:
    predictive = PoissonLogNormal([1.0, 1.0], [9.0, 11.0])
    assert np.isfinite(predictive.mean()).tolist() == [True, False]
    assert np.isinf(predictive.std()[1])


@pytest.mark.parametrize("dispersion", [0.0, 0.05, 0.5, 68.0])
@pytest.mark.parametrize(("m", "v"), [(5.0, 20.0), (0.0, 80.0), (0.0, 390.0), (5.0, 1e4)])
def test_open_log_rates_against_quadrature(m: float, v: float, dispersion: float) -> None:
    """Of rates that nobody knows within e^±9 and more; upper ends were 64."""
    predictive = NegativeBinomialLogNormal([m], [v], dispersion)
    eta = np.linspace(m - 12.0 * np.sqrt(v), m + 12.0 * np.sqrt(v), 200_001)
    weights = stats.norm.pdf(eta, m, np.sqrt(v)) * (eta[1] - eta[0])
    rate = np.exp(np.minimum(eta, 600.0))
    a = max(dispersion, 1e-12)
    for y in (0.0, 3.0, 1e4):
        known = (
            stats.poisson(rate) if dispersion == 0.0 else stats.nbinom(1 / a, 1 / (1 + a * rate))
        )
        expected = weights @ np.nan_to_num(known.pmf(y))
        np.testing.assert_allclose(predictive.pmf(y), expected, rtol=1e-3)
    assert (predictive.logpmf(10.0 ** np.arange(20)) < 0.0).all()
    for level in (0.6, 0.9, 0.975):
        count = predictive.ppf(level)
        assert predictive.cdf(count) >= level - 2e-3
        assert predictive.cdf(count - 1.0) <= level + 2e-3


@pytest.mark.parametrize(
    ("m", "v"), [(0.0, 1e3), (1e9, 1e17), (-1e9, 1e3), (2e9, 1e-3), (800, 0.5)]
)
def test_moments_beyond_all_numbers_are_infinite_or_0(m: float, v: float) -> None:
    counts = PoissonLogNormal([m], [v])
    expected = 0.0 if m < 0.0 else np.inf
    assert counts.mean() == expected
    assert counts.var() == expected
    assert not np.isnan(counts.interval(0.9)).any()
