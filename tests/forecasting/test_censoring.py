"""Values that are the least of what there was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import truncnorm

from posterity import load, save
from posterity.forecasting import Forecaster, Form
from posterity.forecasting.censoring import raise_censored
from posterity.forecasting.panel import Panel

pandas = pytest.importorskip("pandas")
Array = NDArray[np.float64]
FORMS = [Form(0, drift=False), Form(1, (1, 2))]


def sales(n: int = 120, seed: int = 0) -> tuple[Array, Array, Array]:
    """Demand, what was sold, and where the shelf was empty."""
    rng = np.random.default_rng(seed)
    demand = 100.0 + 10.0 * rng.normal(size=n)
    stock = np.where(rng.random(n) < 0.5, 100.0, 200.0)
    return demand, np.minimum(demand, stock), (demand >= stock).astype(float)


def frame(sold: Array, empty: Array) -> pandas.DataFrame:
    days = pandas.date_range("2026-01-01", periods=len(sold))
    return pandas.DataFrame({"ds": days, "y": sold, "empty": empty})


def test_demand_is_forecast_and_not_what_was_sold() -> None:
    errors = []
    for seed in range(8):
        _, sold, empty = sales(seed=seed)
        model = Forecaster(forms=FORMS, seasonality=(), censored="empty").fit(frame(sold, empty))
        plain = Forecaster(forms=FORMS, seasonality=()).fit(sold)
        left = Forecaster(forms=FORMS, seasonality=()).fit(np.where(empty > 0, np.nan, sold))
        errors.append([one.forecast(5).mean().mean() - 100.0 for one in (model, plain, left)])
    ours, as_sold, left_out = np.mean(errors, axis=0)
    assert abs(ours) < 1.0
    assert as_sold < -1.5
    assert left_out < -2.5


def test_a_value_is_raised_to_the_mean_of_the_normal_above_it() -> None:
    _, sold, empty = sales(60)
    empty[:] = 0.0
    empty[50] = 1.0
    for y in (20.0, 100.0, 140.0):
        sold[50] = y
        panel = Panel.of_arrays({"a": sold})
        marked = Panel(
            panel.ids, panel.values, panel.ends, panel.calendar, empty[None, :, None], ("empty",)
        )
        raised = raise_censored(marked, "empty", ())
        assert raised.names == ()
        assert raised.columns.shape == (1, 60, 0)
        np.testing.assert_array_equal(np.delete(raised.values[0], 50), np.delete(sold, 50))
        mean, last = sold[45:50].mean(), sold[49]
        errors = [
            np.abs(sold[5:50] - [sold[t - 5 : t].mean() for t in range(5, 50)]).mean(),
            np.abs(np.diff(sold[:50])).mean(),
        ]
        centre = (mean, last)[int(np.argmin(errors))]
        sd = np.sqrt(np.pi / 2) * min(errors)
        right = truncnorm.mean((y - centre) / sd, np.inf, loc=centre, scale=sd)
        assert abs(raised.values[0, 50] - right) < 0.03 * sd


def test_rows_one_by_one_are_all_at_once_and_files_keep_them(tmp_path: object) -> None:
    _, sold, empty = sales(60)
    table = frame(sold, empty)
    whole = Forecaster(forms=FORMS, seasonality=(), censored="empty").fit(table)
    rows = Forecaster(forms=FORMS, seasonality=(), censored="empty").fit(table[:40])
    for _, row in table[40:50].iterrows():
        rows.learn_one(row["y"], {"empty": row["empty"]})
    rows.partial_fit(table[50:])
    expected = whole.forecast(3).quantile(0.9)
    np.testing.assert_array_equal(rows.forecast(3).quantile(0.9), expected)
    path = f"{tmp_path}/model.safetensors"
    save(whole, path)
    np.testing.assert_array_equal(load(path).forecast(3).quantile(0.9), expected)
    progress = Forecaster(forms=FORMS, seasonality=(), censored="empty").fit(table[:40])
    assert np.isfinite(progress.forecast_then_learn(table[40:], h=1).median).all()


def test_nothing_else_changes_where_nothing_is_censored() -> None:
    demand, _, empty = sales(60)
    table = frame(demand, 0.0 * empty).assign(price=empty)
    model = Forecaster(forms=FORMS, seasonality=(), censored="empty").fit(table)
    plain = Forecaster(forms=FORMS, seasonality=()).fit(table.drop(columns="empty"))
    plan = pandas.DataFrame({"price": [1.0, 0.0]})
    np.testing.assert_array_equal(
        model.forecast(2, plan).quantile(0.9), plain.forecast(2, plan).quantile(0.9)
    )


def test_columns_that_say_nothing_are_refused() -> None:
    _, sold, empty = sales(40)
    with pytest.raises(ValueError, match=r"censored is 'full', and the rows have .*\['empty'\]"):
        Forecaster(censored="full").fit(frame(sold, empty))
    with pytest.raises(ValueError, match=r"that column has the value 0\.5"):
        Forecaster(censored="empty").fit(frame(sold, 0.5 * empty))
    model = Forecaster(forms=FORMS, censored="empty").fit(frame(sold, empty))
    with pytest.raises(ValueError, match="that column has the value 2"):
        model.learn_one(1.0, {"empty": 2.0})
    assert model.n_observations_ == 40


@pytest.mark.parametrize("limit", [{"capacity": 100.0}, {"upper_bound": 100.0}])
def test_what_is_asked_for_ends_where_values_do(limit: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    seats = np.minimum(90.0 + 5.0 * rng.normal(size=150), 99.0)
    full = (seats > 93.0)[:, None] * 1.0
    forecaster = Forecaster(censored="x0", **limit).fit(seats, full)
    for rows in (0, 40):  # also as it was before
        ends = forecaster.before(rows).forecast(3).interval(0.999)
        assert (ends[1] <= 100.0).all()
        assert (ends[1] > 95.0).all()
