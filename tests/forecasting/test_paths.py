"""From coefficients to paths: closed forms and simulation."""

from __future__ import annotations

import numpy as np
import pytest

from posterity.forecasting.forecast import Forecast, _sum_steps
from posterity.forecasting.forms import Form
from posterity.forecasting.paths import Paths, is_plausible, paths
from posterity.forecasting.posterior import Draws

LAGS = Form(1, (1, 2), drift=False)


def one(form: Form, coefficients: list[float], noise: float, last: list[float], h: int) -> Paths:
    draws = Draws(np.array([[coefficients]]), np.array([[noise]]))
    return paths(form, draws, np.array([last]), np.ones((1, h, int(form.drift))), h)


@pytest.mark.parametrize("phi", [0.3, 0.9, -0.5])
def test_variance_of_an_autoregression_of_order_one(phi: float) -> None:
    """Reference 1 and lag 2, z_t - z_{t-1} = w (z_{t-2} - z_{t-1}): with c_t = z_t - z_{t-1} it is
    c_t = -w c_{t-1} + e, an AR(1) of the differences."""
    found = one(LAGS, [-phi], 2.0, [5.0, 6.0], 10)
    k = np.arange(1, 11)
    responses = (1.0 - phi**k) / (1.0 - phi)
    np.testing.assert_allclose(found.responses[0, 0], responses, rtol=1e-10)
    np.testing.assert_allclose(found.sd[0, 0] ** 2, 4.0 * np.cumsum(responses**2), rtol=1e-10)
    np.testing.assert_allclose(found.mean[0, 0], 6.0 + phi * responses, rtol=1e-10)


def test_variance_of_a_mean_reverting_autoregression() -> None:
    """z_t = phi z_{t-1} + (1 - phi) z_{t-12} + e, of which the first eleven steps are an AR(1)."""
    phi, h = 0.7, 11
    form = Form(12, (1,), drift=False)
    found = one(form, [phi], 1.5, [0.0] * 11 + [3.0], h)
    steps = np.arange(1, h + 1)
    variance = 1.5**2 * (1.0 - phi ** (2 * steps)) / (1.0 - phi**2)
    np.testing.assert_allclose(found.sd[0, 0] ** 2, variance, rtol=1e-10)
    np.testing.assert_allclose(found.mean[0, 0], 3.0 * phi**steps, rtol=1e-10)


def test_a_walk_has_variance_of_its_steps_and_a_drift() -> None:
    found = one(Form(1), [0.25], 3.0, [10.0], 6)
    np.testing.assert_allclose(found.sd[0, 0] ** 2, 9.0 * np.arange(1, 7), rtol=1e-10)
    np.testing.assert_allclose(found.mean[0, 0], 10.0 + 0.25 * np.arange(1, 7), rtol=1e-10)


def test_covariance_is_that_of_simulated_paths() -> None:
    found = one(LAGS, [-0.4], 1.0, [1.0, 2.0], 5)
    rng = np.random.default_rng(0)
    size = 40_000
    levels = np.empty((size, 7))
    levels[:, :2] = [1.0, 2.0]
    for step in range(2, 7):
        change = levels[:, step - 1] - levels[:, step - 2]
        levels[:, step] = levels[:, step - 1] + 0.4 * change + rng.normal(size=size)
    simulated = np.cov(levels[:, 2:].T)
    np.testing.assert_allclose(simulated, found.covariance()[0, 0], rtol=0.04)


def forecast_of(path: Paths) -> Forecast:
    return Forecast.of(("y",), np.arange(5), [LAGS], [path], np.ones((1, 1)), single=True)


@pytest.mark.parametrize("log", [False, True])
def test_drawn_paths_have_the_marginals_and_the_sum_that_formulas_say(log: bool) -> None:
    found = one(LAGS, [-0.4], 0.1, [1.0, 1.1], 5)
    path = Paths(found.mean, found.responses, found.noise, log)
    forecast = forecast_of(path)
    drawn = forecast.rvs(40_000, random_state=0)
    np.testing.assert_allclose(drawn.mean(axis=0), forecast.mean(), rtol=0.01)
    np.testing.assert_allclose(drawn.std(axis=0), forecast.std(), rtol=0.03)
    total = forecast.total()
    summed = drawn.sum(axis=1)
    np.testing.assert_allclose(summed.mean(), total.mean()[0], rtol=0.01)
    np.testing.assert_allclose(summed.std(), total.std()[0], rtol=0.03)
    low, high = total.interval(0.9)
    assert np.mean((low < summed) & (summed < high)) == pytest.approx(0.9, abs=0.012)


def test_sum_of_an_autoregression_in_closed_form() -> None:
    found = one(LAGS, [-0.4], 1.5, [1.0, 2.0], 5)
    ones = np.ones(5)
    part = _sum_steps(found, ones[None])
    np.testing.assert_allclose(
        part.sd[0, 0, 0] ** 2, ones @ found.covariance()[0, 0] @ ones, rtol=1e-10
    )
    mask = np.array([0.0, 1.0, 1.0, 0.0, 0.0])
    some = _sum_steps(found, mask[None])
    np.testing.assert_allclose(
        some.sd[0, 0, 0] ** 2, mask @ found.covariance()[0, 0] @ mask, rtol=1e-10
    )
    np.testing.assert_allclose(some.mean[0, 0, 0], mask @ found.mean[0, 0], rtol=1e-12)


def test_explosive_draws_are_left_out() -> None:
    """z_t - z_{t-1} = 3 (z_{t-1} - z_{t-2}) has an impulse that triples; so has one draw of two."""
    draws = Draws(np.array([[[-3.0], [-0.5]]]), np.array([[1.0, 2.0]]))
    found = paths(LAGS, draws, np.array([[0.0, 1.0]]), np.zeros((1, 20, 0)), 20)
    assert is_plausible(found.responses).all()
    np.testing.assert_array_equal(found.noise, [[2.0, 2.0]])


def test_where_all_draws_explode_they_are_drawn_to_the_naive_forecast() -> None:
    draws = Draws(np.array([[[-3.0], [-5.0]]]), np.array([[1.0, 2.0]]))
    found = paths(LAGS, draws, np.array([[0.0, 1.0]]), np.zeros((1, 20, 0)), 20)
    assert is_plausible(found.responses).all()
    assert np.abs(found.mean).max() < 25.0


@pytest.mark.parametrize("log", [False, True])
def test_steps_after_a_gap_are_those_of_a_longer_horizon(log: bool) -> None:
    draws = Draws(np.array([[[0.5]], [[0.3]]]), np.array([[0.1], [0.2]]))
    last, behind, h = np.array([[1.0, 1.2, 1.1]] * 2), np.array([2, 7]), 3
    form = Form(1, (1, 2), drift=False, log=log)
    longer = paths(form, draws, last, np.zeros((2, 10, 0)), 10)
    found = longer.skip(behind, h)
    for series, skipped in enumerate(behind):
        steps = slice(skipped, skipped + h)
        np.testing.assert_allclose(found.mean[series], longer.mean[series, :, steps])
        np.testing.assert_allclose(found.sd[series], longer.sd[series, :, steps])
        np.testing.assert_allclose(
            found.covariance()[series], longer.covariance()[series, :, steps, steps]
        )
        counted = np.zeros(longer.mean.shape[::2])
        counted[:, skipped : skipped + h] = 1.0
        of_longer = _sum_steps(longer, counted)
        of_found = _sum_steps(found, np.ones(found.mean.shape[::2]))
        np.testing.assert_allclose(of_found.mean[series], of_longer.mean[series])
        np.testing.assert_allclose(of_found.sd[series], of_longer.sd[series])
    forecast = Forecast.of(
        ("a", "b"), np.zeros((2, h)), [form], [found], np.ones((2, 1)), single=False
    )
    drawn = forecast.rvs(40_000, random_state=0)
    drawn = np.log(drawn) if log else drawn
    np.testing.assert_allclose(drawn.std(axis=0), found.sd[:, 0], rtol=0.02)
