"""Plans far outside what was learned: the forecast stays sane, is wide, and says why."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from posterity.forecasting import Forecast, Forecaster, ForecastWarning, Form

Array = NDArray[np.float64]
N = 90
DAYS = pd.date_range("2024-01-01", periods=N)


def forecast_plan(y: Array, column: Array, plan: list[float]) -> Forecast:
    return Forecaster().fit(y, X=column[:, None]).forecast(len(plan), np.array(plan)[:, None])


@pytest.mark.parametrize("seed", [37, 0, 1, 2])
def test_a_price_that_was_never_near(seed: int) -> None:
    rng = np.random.default_rng(seed)
    price = rng.choice([4980.0, 4990.0], size=N, p=[0.1, 0.9])
    sold = np.where(price < 4985, 20.0, 30.0) + rng.normal(size=N)
    frame = pd.DataFrame({"ds": DAYS, "price": price, "y": sold})
    days = pd.date_range("2024-03-31", periods=3)
    model = Forecaster().fit(frame)
    said = r"'price' = 6,590 for the series at 2024-04-01, .* from 4,980 to 4,990: its effect"
    with pytest.warns(ForecastWarning, match=said):
        far = model.forecast(3, pd.DataFrame({"ds": days, "price": [4990, 6590, 4980]}))
    near = model.forecast(3, pd.DataFrame({"ds": days, "price": [4990, 4990, 4980]}))
    low, high = far.interval(0.95)
    assert 0.0 < far.median()[1] < 100.0
    assert low[1] < 5.0
    assert 100.0 < high[1] < 1e4
    assert far.total().mean()[0] < 1e4
    assert far.rvs(1000, rng=0)[:, 1].std() > 10.0
    # Steps whose plan is inside the range are as they would be, but for what lags echo.
    for mine, theirs in zip(
        (far.median(), *far.interval(0.95)), (near.median(), *near.interval(0.95)), strict=True
    ):
        np.testing.assert_allclose(mine[[0, 2]], theirs[[0, 2]], rtol=0.02)


def test_a_column_that_hardly_varied() -> None:
    rng = np.random.default_rng(0)
    y = 100.0 + 3.0 * rng.normal(size=N)
    with pytest.warns(ForecastWarning, match=r"'x0' = -0.5 for the series at 91, .* from -0.9000"):
        found = forecast_plan(y, -0.9 + 1e-9 * rng.normal(size=N), [-0.9, -0.5])
    low, high = found.interval(0.95)
    assert (np.abs(found.median() - 100.0) < 15.0).all()
    assert high[0] - low[0] < 30.0
    assert 100.0 < high[1] - low[1] < 5000.0


def test_a_typing_error_in_a_column_of_yes_and_no() -> None:
    rng = np.random.default_rng(0)
    sale = (rng.random(N) < 0.2).astype(float)
    y = 100.0 + 20.0 * sale + 3.0 * rng.normal(size=N)
    with pytest.warns(ForecastWarning, match="'x0' = 100 for the series at 92, .* from 0 to 1"):
        found = forecast_plan(y, sale, [0.0, 1.0, 100.0, 0.0])
    low, high = found.interval(0.95)
    assert (np.abs(found.median()[[0, 1, 3]] - [100.0, 120.0, 100.0]) < 6.0).all()
    assert found.median()[2] < 200.0
    assert (high - low)[[0, 1, 3]].max() < 30.0
    assert 100.0 < (high - low)[2] < 5000.0


@pytest.mark.parametrize(("value", "other"), [(0.0, 1.0), (1.0, 0.0)])
def test_a_column_that_never_varied_has_no_known_effect(value: float, other: float) -> None:
    y = 100.0 + 3.0 * np.random.default_rng(0).normal(size=N)
    with pytest.warns(ForecastWarning, match=f"'x0' = {other:g} .* it was always {value:g}: its"):
        found = forecast_plan(y, np.full(N, value), [value, other, value])
    low, high = found.interval(0.95)
    assert (high - low)[[0, 2]].max() < 25.0
    assert low[1] < 50.0
    assert high[1] > 150.0


def test_steps_far_outside_have_their_shock_in_common() -> None:
    y = 100.0 + 3.0 * np.random.default_rng(0).normal(size=N)
    with pytest.warns(ForecastWarning, match=r"'x0' = 1 .*at 90 \(and at 2 more\)"):
        found = forecast_plan(y, np.zeros(N), [1.0, 1.0, 1.0])
    paths = found.rvs(4000, rng=0)
    assert np.corrcoef(paths[:, 0], paths[:, 2])[0, 1] > 0.9
    assert abs(found.total().std()[0] / paths.sum(axis=1).std() - 1.0) < 0.2


@pytest.mark.parametrize("beyond", [0.0, 0.3, 0.99])
def test_a_plan_near_what_was_learned_says_nothing(beyond: float) -> None:
    rng = np.random.default_rng(0)
    column = rng.uniform(0.0, 1.0, size=N)
    column[:2] = 0.0, 1.0
    y = 10.0 + 4.0 * column + 0.1 * rng.normal(size=N)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = forecast_plan(y, column, [0.5, 1.0 + beyond, -beyond])
    expected = 10.0 + 4.0 * np.array([0.5, 1.0 + beyond, -beyond])
    assert (np.abs(found.median() - expected) < 0.5).all()
    low, high = found.interval(0.95)
    assert (high - low).max() < 3.0


def test_series_of_a_panel_have_ranges_of_their_own() -> None:
    rng = np.random.default_rng(0)
    frames = [
        pd.DataFrame({"unique_id": name, "ds": DAYS, "price": scale * rng.uniform(1, 2, N), "y": y})
        for name, scale, y in (
            ("cheap", 1.0, 50.0 + rng.normal(size=N)),
            ("dear", 100.0, 50.0 + rng.normal(size=N)),
        )
    ]
    model = Forecaster(forms=[Form(), Form(1, (1, 2))]).fit(pd.concat(frames))
    plan = pd.DataFrame(
        {"unique_id": ["cheap", "dear"], "ds": DAYS[-1] + pd.Timedelta("1D"), "price": 150.0}
    )
    with pytest.warns(ForecastWarning, match="'price' = 150 for series 'cheap' at 2024-03-31, "):
        low, high = model.forecast(1, plan).interval(0.95)
    assert (high - low)[0, 0] > 3.0 * (high - low)[1, 0]
