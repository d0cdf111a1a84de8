"""Forecasts that end at a lower bound keep their means and variances."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad

from posterity.forecasting import Forecaster, Form
from posterity.forecasting.bounds import (
    LOWEST_MEAN,
    SMALLEST_CENSORED_MEAN,
    UNCENSORED_MEAN,
    find_bounds,
    move_to_moments,
)


def censored(mean: float, sd: float) -> tuple[float, float]:
    """Mean and variance of max(x, 0) by quadrature."""

    def moment(power: int) -> float:
        def part(x: float) -> float:
            return x**power * math.exp(-0.5 * ((x - mean) / sd) ** 2)

        scale = sd * math.sqrt(2.0 * math.pi)
        return (
            float(quad(part, 0.0, max(mean, 0.0) + 12.0 * sd, epsabs=1e-13, limit=500)[0]) / scale
        )

    return moment(1), moment(2) - moment(1) ** 2


@pytest.mark.parametrize("z", [0.2, 0.25, 0.5, 1.0, 2.0, 4.0, 4.99])
def test_censored_moments_are_those_of_the_forecast(z: float) -> None:
    mean, sd = move_to_moments(np.array([z]))
    assert censored(float(mean[0]), float(sd[0])) == pytest.approx((z, 1.0), abs=1e-5)


def test_means_far_from_the_bound_stay() -> None:
    z = np.array([LOWEST_MEAN, -3.0, UNCENSORED_MEAN, 100.0])
    mean, sd = move_to_moments(z)
    np.testing.assert_array_equal(mean, z)
    np.testing.assert_array_equal(sd, np.ones(4))


def test_means_grow_with_the_forecast_without_jumps() -> None:
    z = np.linspace(-1.0, 6.0, 1401)
    centre, sd = move_to_moments(z)
    mean, variance = np.array([censored(*pair) for pair in zip(centre, sd, strict=True)]).T
    assert (np.diff(mean) > -1e-6).all()
    assert np.abs(np.diff(mean)).max() < 0.0055
    assert np.abs(np.diff(variance)).max() < 0.011
    assert mean[(z > LOWEST_MEAN) & (z < SMALLEST_CENSORED_MEAN)] == pytest.approx(
        SMALLEST_CENSORED_MEAN, abs=1e-4
    )


@pytest.mark.parametrize(("rate", "off"), [(0.3, 0.3), (4.0, 0.1)])
def test_means_and_totals_of_counts_are_those_of_the_series(rate: float, off: float) -> None:
    counts = np.random.default_rng(0).poisson(rate, size=(9, 120)).astype(np.float64)
    forms = [Form(1, tuple(range(1, 14))), Form(1, (), (1.0, 3.0))]
    forecast = Forecaster(forms=forms).fit(dict(enumerate(counts))).forecast(7)
    assert forecast.mean().mean() == pytest.approx(counts.mean(), rel=off)
    assert forecast.total().mean().mean() == pytest.approx(7.0 * counts.mean(), rel=off)
    free = Forecaster(forms=forms, lower_bound=None).fit(dict(enumerate(counts))).forecast(7)
    assert forecast.std().mean() == pytest.approx(free.std().mean(), rel=0.1)


def test_amounts_that_come_near_zero_end_there() -> None:
    """What is as free to fall below as to rise has no bound."""
    rng = np.random.default_rng(0)
    t = np.arange(132)
    sales = np.exp(3.0 - 1.5 * (t > 80) + np.sin(t * np.pi / 6.0) + 0.4 * rng.normal(size=132))
    walk = np.abs(8.0 + np.cumsum(rng.normal(size=132))) + 0.1
    warmth = 12.0 + 10.0 * np.sin(t * np.pi / 6.0) + rng.normal(size=132)
    bounds = find_bounds(np.array([sales, walk, warmth]), periods=(12,)).values[0]
    assert bounds[:, -1].tolist() == [0.0, -np.inf, -np.inf]
    assert np.isinf(bounds[0, :40]).all()
    assert (Forecaster(seasonality=12).fit(sales).forecast(24).interval(0.99)[0] >= 0.0).all()


def test_values_that_are_multiplied_by_chance_end_at_zero_and_added_ones_do_not() -> None:
    shocks = np.random.default_rng(0).normal(size=(100, 150))
    multiplied = find_bounds(50.0 * np.exp(np.cumsum(0.15 * shocks, axis=1)))
    assert (multiplied.values[0, :, -1] == 0.0).mean() > 0.85
    for start in (5.0, 20.0):
        added = find_bounds(start + np.cumsum(shocks, axis=1))
        assert np.isinf(added.values[0]).all()
