"""What likelihoods find quickly, beside what they find plainly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from posterity.likelihoods import BetaBinomial, Gamma, Geometric, NegativeBinomial, Poisson
from posterity.likelihoods.frozen import freeze
from posterity.likelihoods.likelihood import Likelihood


@pytest.mark.parametrize(
    "likelihood", [Poisson(), Geometric(), NegativeBinomial(0.7), Gamma(2.3), Gamma(50.0)]
)
def test_tails_are_those_of_the_distribution(likelihood: Likelihood) -> None:
    y = np.array([-np.inf, -1.0, np.nextafter(0.0, -1.0), 0.0, 0.5, 1.0, 2.7, 30.0, np.inf])
    eta = np.linspace(-5.0, 5.0, 41)[:, None]
    with np.errstate(divide="ignore"):
        plain = Likelihood.log_tails(likelihood, y, eta)
    for found, exact in zip(likelihood.log_tails(y, eta), plain, strict=True):
        np.testing.assert_allclose(found, exact, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("likelihood", [NegativeBinomial(0.5), BetaBinomial(10, 6.0)])
def test_many_rows_are_looked_up_as_each_is_found(likelihood: Likelihood) -> None:
    rng = np.random.default_rng(0)
    y, eta = rng.integers(0, 11, size=500).astype(float), rng.normal(size=500)
    each = np.concatenate([likelihood.log_density(y[i : i + 1], eta[i : i + 1]) for i in range(50)])
    np.testing.assert_allclose(likelihood.log_density(y, eta)[:50], each, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(each, likelihood.distribution(eta[:50]).logpmf(y[:50]), rtol=1e-9)


def test_a_frozen_distribution_is_scipys() -> None:
    shapes, y = np.array([0.5, 2.0, 30.0]), np.array([0.1, 1.0, 40.0])
    quick, plain = freeze(stats.gamma, shapes, scale=1.5), stats.gamma(shapes, scale=1.5)
    for of in ("logpdf", "cdf", "sf"):
        np.testing.assert_array_equal(getattr(quick, of)(y), getattr(plain, of)(y))
    np.testing.assert_array_equal(quick.ppf(0.3), plain.ppf(0.3))
    rng = np.random.default_rng
    np.testing.assert_array_equal(
        quick.rvs(size=3, random_state=rng(0)), plain.rvs(size=3, random_state=rng(0))
    )


@pytest.mark.parametrize(
    ("family", "shapes", "place"),
    [
        (stats.binom, (8, 0.3), {}),
        (stats.norm, (1.0, 2.0), {}),
        (stats.gamma, (2.0,), {"scale": 3.0}),
    ],
)
def test_a_quick_distribution_ends_where_scipys_does(family: Any, shapes: Any, place: Any) -> None:
    quick, slow = freeze(family, *shapes, **place), family(*shapes, **place)
    assert (quick.a, quick.b) == (slow.a, slow.b)
