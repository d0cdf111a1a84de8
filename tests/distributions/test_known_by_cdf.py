"""Quantiles, scores and shortfalls that are solved for, beside dense sums of probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammainc

from posterity.distributions.known_by_cdf import solved_quantile
from posterity.distributions.mixing import mix_exactly
from posterity.likelihoods import (
    Beta,
    Gamma,
    Hurdle,
    InverseGaussian,
    LinearNegativeBinomial,
    LogNormal,
    Poisson,
    SkewNormal,
    Truncated,
    Tweedie,
    VonMises,
    Weibull,
    ZeroInflated,
)

MEAN, VARIANCE = np.array([0.3, -0.5, 1.0]), np.array([0.0025, 0.3, 0.0])
NUMBERS = [
    Gamma(3.0),
    Gamma(0.3),
    InverseGaussian(0.3),
    LogNormal(0.4),
    Weibull(1.7),
    Beta(5.0),
    VonMises(3.0),
    SkewNormal(3.0, 0.7),
    Tweedie(1.5, 1.0),
    Hurdle(Gamma(3.0), 0.5),
    Hurdle(LogNormal(0.5), 9.0),
    Hurdle(Tweedie(1.5, 1.0), 0.5),
    Truncated(Gamma(3.0), 0.3),
]
COUNTS = [
    LinearNegativeBinomial(1.5),
    ZeroInflated(Poisson(), 0.4),
    Hurdle(Poisson(), 1.0),
    Truncated(Poisson(), 1.0),
]


def predict(likelihood: Any) -> Any:
    """Three rows, whose eta is hardly, poorly and exactly known; and half of them more."""
    one = likelihood.predictive(MEAN, VARIANCE)
    return mix_exactly([one, likelihood.predictive(MEAN + 0.1, VARIANCE)], [0.5, 0.5])


def list_places(told: Any, row: int, y: Any) -> Any:
    """Numbers beyond which there is nearly nothing, and their distribution function."""
    low, high = told.ppf(1e-10)[row], told.ppf(1.0 - 1e-10)[row]
    middle, near = told.ppf(0.5)[row], np.geomspace(1e-7, 1.0, 1000)
    above, below = middle + (high - middle) * near, middle - (middle - low) * near
    places = np.unique(np.concatenate([[low], below, [middle], above, y]))
    return places, told[row : row + 1].cdf(places[:, None])[:, 0]


def integrate(values: Any, places: Any) -> float:
    return float(np.sum(0.5 * (values[1:] + values[:-1]) * np.diff(places)))


@pytest.mark.parametrize("likelihood", NUMBERS, ids=repr)
def test_scores_and_shortfalls_are_integrals(likelihood: Any) -> None:
    told = predict(likelihood)
    levels = np.array([[0.02], [0.6], [0.999]])
    y = told.ppf(levels)
    found, beyond = told.crps(y), told.expected_shortfall(0.6)
    for row in (0, 1, 2):
        places, below = list_places(told, row, y[:, row])
        for k in range(len(levels)):
            i = int(np.flatnonzero(places == y[k, row])[0])
            lower = integrate(below[: i + 1] ** 2, places[: i + 1])
            upper = integrate((1.0 - below[i:]) ** 2, places[i:])
            assert found[k, row] == pytest.approx(lower + upper, rel=1e-3)
        i = int(np.flatnonzero(places == y[1, row])[0])
        tail = integrate(1.0 - below[i:], places[i:])
        assert beyond[row] == pytest.approx(y[1, row] + tail / 0.4, rel=1e-3)


@pytest.mark.parametrize("likelihood", COUNTS, ids=repr)
def test_scores_and_shortfalls_of_counts_are_sums(likelihood: Any) -> None:
    told, counts = predict(likelihood), np.arange(400.0)[:, None]
    below = told.cdf(counts)
    for y in (0.0, 1.0, 3.0, 40.0):
        expected = np.sum((below - (counts >= y)) ** 2, axis=0)
        assert told.crps(y) == pytest.approx(expected, rel=1e-8)
    least = told.ppf(0.9)
    expected = least + np.sum((1.0 - below) * (counts >= least), axis=0) / 0.1
    assert told.expected_shortfall(0.9) == pytest.approx(expected, rel=1e-8)
    assert np.all(told.cdf(least) >= 0.9)
    assert np.all(told.cdf(least - 1.0) < 0.9)


@pytest.mark.parametrize(
    ("likelihood", "mean"),
    [(Truncated(Poisson(), 1.0), 8.0), (Weibull(20.0), 1.0), (Gamma(1e3), 1.0)],
    ids=("counts", "lifetimes", "amounts"),
)
def test_tails_have_digits_where_targets_hardly_vary_around_their_means(
    likelihood: Any, mean: float
) -> None:
    told, nodes = likelihood.predictive([mean], [0.04]), np.linspace(-9.0, 9.0, 4001)
    shares = np.exp(-0.5 * nodes**2) / np.exp(-0.5 * nodes**2).sum()
    of_nodes = likelihood.distribution((mean + 0.2 * nodes)[:, None])
    q = np.array([1e-6, 1e-4, 0.01])
    for tail, beyond in ((q, lambda y: of_nodes.cdf(y)), (1.0 - q, lambda y: of_nodes.sf(y))):
        found = np.array([told.ppf(one)[0] for one in tail])
        assert shares @ beyond(found) == pytest.approx(q, rel=0.02)


@pytest.mark.parametrize("likelihood", NUMBERS + COUNTS, ids=repr)
def test_a_row_is_what_it_is_among_others(likelihood: Any) -> None:
    told = predict(likelihood)
    y = told.ppf(0.7)
    for name, values in (("crps", y), ("cdf", y), ("ppf", np.full(3, 0.95))):
        alone = [getattr(told[i : i + 1], name)(values[i : i + 1])[0] for i in range(3)]
        assert getattr(told, name)(values) == pytest.approx(alone, rel=1e-10)
    alone = [told[i : i + 1].expected_shortfall()[0] for i in range(3)]
    assert told.expected_shortfall() == pytest.approx(alone, rel=1e-10)


@pytest.mark.parametrize(
    ("family", "least", "most"),
    [
        (stats.norm(1e6), 1e6 - 40.0, 1e6 + 40.0),
        (stats.t(2.0), -1e6, 1e6),
        (stats.gamma(0.3), 0.0, 100.0),
        (stats.gamma(50.0), 0.0, 1e6),
        (stats.lognorm(3.0), 1e-12, 1e12),
        (stats.beta(0.5, 0.5), 0.0, 1.0),
    ],
    ids=("normal", "t", "gamma", "large gamma", "log-normal", "beta"),
)
def test_quantiles_are_found_wherever_they_are(family: Any, least: float, most: float) -> None:
    q = np.array([0.0001, 0.05, 0.5, 0.9, 0.9999])
    asked: list[Any] = []

    def cdf(y: Any) -> Any:
        asked.append(y)
        return family.cdf(y)

    found = solved_quantile(cdf, q, np.full(5, least), np.full(5, most))
    np.testing.assert_allclose(found, family.ppf(q), rtol=1e-9, atol=1e-12)
    assert len(asked) < 60
    levels = np.array([0.0, 1.0, -1.0, np.nan])
    ends = solved_quantile(cdf, levels, np.full(4, least), np.full(4, most))
    np.testing.assert_array_equal(ends, [least, most, np.nan, np.nan])


@pytest.mark.parametrize(("power", "dispersion"), [(1.1, 0.5), (1.5, 1.0), (1.9, 3.0), (1.02, 0.1)])
def test_sums_of_payments_are_mixtures_of_gammas(power: float, dispersion: float) -> None:
    told = Tweedie(power, dispersion).distribution(np.array([-6.0, 0.0, 2.0]))
    y, number = np.array([0.001, 1.0, 20.0])[:, None, None], np.arange(1.0, 2000.0)
    shares = stats.poisson.pmf(number, told.rate[:, None])
    sums = gammainc(number * told.shape, y / np.reshape(told.scale, (3, 1)))
    expected = np.exp(-told.rate) + np.sum(shares * sums, axis=-1)
    np.testing.assert_allclose(told.cdf(y[:, 0]), expected, atol=1e-12)
    assert np.all(told.cdf([-1.0, -1.0, -1.0]) == 0.0)
