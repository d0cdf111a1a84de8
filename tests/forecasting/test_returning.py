"""Short series that return to a level: the evidence beside dense formulas, and forecasts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import t as student

from posterity.forecasting import Forecaster, Form
from posterity.forecasting.choosing import LEVEL_ROWS, choose_forms
from posterity.forecasting.panel import Panel
from posterity.forecasting.returning import RISE, STEPS, compute_level_evidence
from posterity.forecasting.trials import LEVEL_ODDS, NEVER, compute_log_odds

Array = np.ndarray
NUMBERS = arrays(np.float64, st.integers(3, 30), elements=st.floats(-100.0, 100.0, width=32))


def compute_log_likelihood(z: Array, covariance: Array) -> float:
    """With a flat mean and a scale that are integrated out, up to a constant of n."""
    n, ones = len(z), np.ones(len(z))
    precision = np.linalg.inv(covariance)
    mean = ones @ precision @ z / (ones @ precision @ ones)
    square = (z - mean) @ precision @ (z - mean)
    log = -0.5 * np.linalg.slogdet(covariance)[1] - 0.5 * np.log(ones @ precision @ ones)
    return float(log - 0.5 * (n - 1) * np.log(square))


@pytest.mark.parametrize("n", [3, 5, 12, 40])
def test_evidence_is_that_of_dense_likelihoods(n: int) -> None:
    """By generalised least squares of the values, not of their differences."""
    z = 50.0 + 5.0 * np.random.default_rng(n).normal(size=n)
    t = np.arange(1.0, n + 1.0)
    walk, line, noise = np.minimum.outer(t, t), np.outer(t, t), np.eye(n)
    others = [noise + step * walk for step in STEPS]
    others += [walk, noise + (RISE / n) ** 2 * line, walk + line]
    each = [compute_log_likelihood(z, one) for one in others]
    expected = compute_log_likelihood(z, noise) - np.log(np.mean(np.exp(each)))
    np.testing.assert_allclose(compute_level_evidence(z[None]), [expected], rtol=1e-8)


@given(z=NUMBERS, scale=st.floats(1e-3, 1e3), shift=st.floats(-1e3, 1e3))
def test_evidence_does_not_depend_on_the_unit_or_the_level(
    z: Array, scale: float, shift: float
) -> None:
    if np.ptp(z) < 0.1:
        return
    found = compute_level_evidence(np.array([z, scale * z + shift]))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6, atol=1e-6)


def test_evidence_is_of_the_values_that_were_observed() -> None:
    z = np.random.default_rng(0).normal(size=9)
    gaps = np.insert(z, [0, 4, 9], np.nan)
    both = compute_level_evidence(np.array([gaps, np.r_[np.full(3, np.nan), z]]))
    np.testing.assert_allclose(both, compute_level_evidence(z[None]).repeat(2))
    nothing = np.array([[1.0, 1.0, 1.0, 1.0], [1.0, np.nan, np.nan, 2.0]])
    assert compute_level_evidence(nothing).tolist() == [0.0, 0.0]


def test_odds_are_of_levels_in_short_series() -> None:
    rng = np.random.default_rng(0)
    level, walk = 50.0 + 5.0 * rng.normal(size=12), 200.0 + np.cumsum(5.0 + rng.normal(size=12))
    long = 50.0 + 5.0 * rng.normal(size=LEVEL_ROWS)
    panel = Panel.of_arrays({"level": level, "walk": walk, "long": long})
    forms = (Form(), Form(0, drift=False), Form(0, (1,), drift=False), Form(0))
    odds = compute_log_odds(forms, panel)
    assert not odds[[0, 2, 3]].any()
    evidence = compute_level_evidence(level[None])
    np.testing.assert_allclose(odds[1, 0], evidence[0] + LEVEL_ODDS)
    assert odds[1, 1:].tolist() == [NEVER, 0.0]


def test_short_series_without_a_season_have_a_level() -> None:
    assert Form(0, drift=False) in choose_forms(5, ())
    assert not any(form.difference == 0 for form in choose_forms(30, (4,)))


def test_a_level_by_itself_forecasts_a_short_walk() -> None:
    """Where there is no other form, odds decide nothing."""
    y = 5.0 + np.arange(12.0) ** 2
    forecast = Forecaster(forms=[Form(0, drift=False)]).fit(y).forecast(2)
    np.testing.assert_allclose(forecast.median(), y.mean(), rtol=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "most"), [(8, 1.75), (12, 1.45), (20, 1.3)])
def test_intervals_of_a_short_level_are_near_the_right_ones(n: int, most: float) -> None:
    """Those of Student's t. Without levels they were 1.9, 1.8 and 1.6 times as wide."""
    widths, held = [], []
    for seed in range(30):
        y = 50.0 + 5.0 * np.random.default_rng(seed).normal(size=n + 4)
        low, high = Forecaster().fit(y[:n]).forecast(4).interval(0.9)
        widths.append(np.mean(high - low))
        held.append(np.mean((low <= y[n:]) & (y[n:] <= high)))
    right = 10.0 * student.ppf(0.95, n - 1) * np.sqrt(1.0 + 1.0 / n)
    assert np.mean(widths) / right < most
    assert np.mean(held) > 0.85
