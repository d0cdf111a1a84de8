"""Growth to a capacity: log odds as a scale of forms, laws of the scale, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import integrate, stats

from posterity import Forecaster, load, save
from posterity.forecasting import Form
from posterity.forecasting.log_scale import LOGARITHMS, LogScale
from posterity.forecasting.marginals import Component, Marginals, compute_normal_crps

ODDS = LogScale(2.0, 5.0)
SCALES = [LOGARITHMS, LogScale(2.0), ODDS]


def grow(n: int, seed: int = 0, capacity: float = 1000.0) -> NDArray[np.float64]:
    """Users of a town: log odds that walk up."""
    shocks = np.random.default_rng(seed).normal(size=n)
    return np.asarray(capacity / (1.0 + np.exp(3.0 - np.cumsum(0.05 + 0.08 * shocks))))


@pytest.mark.parametrize("scale", SCALES)
def test_the_scale_there_and_back(scale: LogScale) -> None:
    z = np.linspace(-6.0, 3.0, 40)
    y = scale.values(z)
    np.testing.assert_allclose(scale.find(y), z, atol=1e-12)
    np.testing.assert_allclose(
        scale.slopes(y), (scale.values(z + 1e-6) - scale.values(z - 1e-6)) / 2e-6, rtol=1e-6
    )
    np.testing.assert_allclose(scale.changes(z, 0.7), scale.values(z + 0.7) - y, rtol=1e-12)
    assert scale.find(np.array([scale.floor]))[0] == -np.inf


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("sd", [0.01, 0.3, 1.5])
def test_moments_and_score_are_integrals(scale: LogScale, sd: float) -> None:
    normal, at = stats.norm(0.4, sd), np.array(0.4)
    ends = 0.4 - 12.0 * sd, 0.4 + 12.0 * sd
    first, second = (
        integrate.quad(lambda z: scale.values(z) ** k * normal.pdf(z), *ends, points=[0.4])[0]  # noqa: B023
        for k in (1, 2)
    )
    mean, variance = scale.means(at, np.array(sd)), scale.variances(at, np.array(sd))
    np.testing.assert_allclose([mean, variance], [first, second - first**2], rtol=1e-4)
    for z in (0.4 - 8.0 * sd, 0.1, 0.6, 0.4 + 8.0 * sd):
        y = scale.values(np.array(z))
        grid = np.linspace(min(ends[0], z), max(ends[1], z), 200_001)
        off = np.square(normal.cdf(grid) - (grid >= z)) * scale.slopes(scale.values(grid))
        found = compute_normal_crps(at, np.array(sd), y, log=True, scale=scale)
        np.testing.assert_allclose(found, integrate.trapezoid(off, grid), rtol=2e-3)


def test_a_far_capacity_is_none() -> None:
    y, far = np.linspace(0.1, 9.0, 20), LogScale(0.0, 1e12)
    np.testing.assert_allclose(far.find(y), LOGARITHMS.find(y), atol=1e-10)
    mean, sd = np.linspace(-1.0, 1.0, 20), np.full(20, 0.5)
    np.testing.assert_allclose(far.means(mean, sd), LOGARITHMS.means(mean, sd), rtol=1e-6)
    np.testing.assert_allclose(far.crps(mean, sd, y), LOGARITHMS.crps(mean, sd, y), rtol=1e-4)


def test_a_mixture_with_log_odds_is_a_distribution() -> None:
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(2, 8, 3))
    parts = [Component(centres, np.full(centres.shape, 0.7), True, one) for one in SCALES[::2]]
    mixed = Marginals(parts, np.array([[0.3, 0.7], [1.0, 0.0]]))
    for q in (0.01, 0.5, 0.99):
        at = mixed.quantile(q)
        np.testing.assert_allclose(mixed.cdf(at), q, atol=1e-7)
        slope = (mixed.cdf(at + 1e-6) - mixed.cdf(at - 1e-6)) / 2e-6
        np.testing.assert_allclose(np.exp(mixed.logpdf(at)), slope, rtol=1e-5)


@pytest.fixture(scope="module")
def town() -> Any:
    return Forecaster(capacity=1000.0, seasonality=()).fit(grow(80)).forecast(24)


def test_growth_ends_at_the_capacity(town: Any) -> None:
    low, high = town.interval(0.95)
    assert all(form.between == (0.0, 1000.0) for form in town.forms)
    assert (low > 0.0).all()
    assert (high < 1000.0).all()
    np.testing.assert_allclose(town.cdf(1000.0) - town.cdf(0.0), 1.0, rtol=1e-12)
    came = grow(104)[80:]
    free = Forecaster(seasonality=()).fit(grow(80)).forecast(24)
    assert town.crps(came).mean() < 0.6 * free.crps(came).mean()


def test_paths_totals_and_moments_agree(town: Any) -> None:
    drawn = town.rvs(20_000, random_state=0)
    assert drawn.min() > 0.0
    assert drawn.max() < 1000.0
    np.testing.assert_allclose(drawn.mean(axis=0), town.mean(), rtol=0.01)
    np.testing.assert_allclose(drawn.std(axis=0), town.std(), rtol=0.08)
    total = town.total()
    np.testing.assert_allclose(total.mean(), town.mean().sum(), rtol=1e-6)
    np.testing.assert_allclose(total.std(), drawn.sum(axis=1).std(), rtol=0.08)
    assert total.quantile(0.999) < 24_000.0


def test_components_and_effects_on_log_odds() -> None:
    rng = np.random.default_rng(1)
    n, sale = 150, (rng.random(164) < 0.15) * 1.0
    t = np.arange(n + 14)
    z = -1.5 + 0.01 * t + 0.5 * sale + 0.4 * np.sin(2 * np.pi * t / 7) + 0.05 * rng.normal(size=164)
    y = 100.0 / (1.0 + np.exp(-z))
    forecast = (
        Forecaster(capacity=100.0, seasonality=7)
        .fit(y[:n], sale[:n, None])
        .forecast(14, sale[n:, None])
    )
    parts = forecast.components()
    whole = sum(part.mean() for part in parts.values())
    np.testing.assert_allclose(whole, forecast.mean(), rtol=0.02)
    effect = forecast.effects().iloc[0]
    v = forecast.median()[0] - parts["x0"].mean()[0]
    right = 100.0 / (1.0 + (100.0 / v - 1.0) * np.exp(-0.5)) - v
    assert effect["low"] < right < effect["high"]
    assert abs(effect["mean"] - right) < 1.5


def test_parts_units_and_files(tmp_path: Any) -> None:
    y, other = grow(70), grow(90, seed=1)
    whole = Forecaster(capacity=1000.0, seasonality=()).fit(y)
    parts = Forecaster(capacity=1000.0, seasonality=()).fit(y[:50])
    parts.partial_fit(y[50:69]).learn_one(y[69])
    expected = whole.forecast(5).median()
    np.testing.assert_array_equal(parts.forecast(5).median(), expected)
    shifted = Forecaster(capacity=10_007.0, floor=7.0, seasonality=()).fit(7.0 + 10.0 * y)
    np.testing.assert_allclose(shifted.forecast(5).median(), 7.0 + 10.0 * expected, rtol=1e-6)
    save(whole, tmp_path / "town.posterity")
    np.testing.assert_array_equal(load(tmp_path / "town.posterity").predict(5), expected)
    walk = Forecaster(forms=[Form(log=True, between=(0, 1000))]).fit(other[:80])
    progress = walk.forecast_then_learn(other[80:], h=2)
    first = Forecaster(forms=walk.forms).fit(other[:80]).forecast(2)
    np.testing.assert_allclose(progress.median[0, 0], first.median(), rtol=1e-6)


def test_a_capacity_below_the_data_says_where() -> None:
    days = pd.date_range("2026-01-01", periods=80)
    frame = pd.DataFrame({"unique_id": "Bonn", "ds": days, "y": grow(80)})
    most = frame["y"].max()
    with pytest.raises(
        ValueError, match=r"capacity is 500, and .*'Bonn' has the value 50.* at 2026"
    ):
        Forecaster(capacity=500).fit(frame)
    with pytest.raises(ValueError, match=r"floor is 60, and .*'Bonn'.* at 2026-01-01"):
        Forecaster(capacity=1000, floor=60).fit(frame)
    model = Forecaster(capacity=most + 1.0).fit(frame)
    before = model.predict(3)
    later = pd.DataFrame({"unique_id": "Bonn", "ds": [pd.Timestamp("2026-03-22")], "y": most + 1.0})
    for learn in (
        lambda: model.partial_fit(later),
        lambda: model.learn_one(most + 2.0, series="Bonn"),
        lambda: model.forecast_then_learn(later, h=1),
    ):
        with pytest.raises(ValueError, match="all values must be above the floor and below"):
            learn()
        np.testing.assert_array_equal(model.predict(3), before)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"capacity": np.inf}, "capacity is inf: give a finite number"),
        ({"capacity": "much"}, "capacity is 'much': give a finite number"),
        ({"capacity": 5.0, "floor": 5.0}, "above all values and the floor, 5"),
        ({"floor": 5.0}, "floor is 5.0: give a finite number, and capacity"),
        ({"capacity": 5.0, "upper_bound": 5.0}, "leave out both bounds"),
    ],
)
def test_a_capacity_that_is_none(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Forecaster(**given).fit([1.0, 2.0, 3.0, 4.0])


def test_a_form_between_ends_that_are_none() -> None:
    with pytest.raises(ValueError, match="a floor and a capacity above it"):
        Form(log=True, between=(5, 5))
    assert str(Form(log=True, between=(0, 100))) == "log odds from 0 to 100, difference 1"
