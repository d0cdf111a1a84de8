"""What each column, holiday and event adds to a step, as a table."""

from __future__ import annotations

import numpy as np
import pytest

from posterity.forecasting import Forecast, Forecaster, Form
from posterity.forecasting.paths import Paths

pandas = pytest.importorskip("pandas")
DAYS = pandas.date_range("2024-01-01", periods=500)
FAIRS = ["2024-06-01", "2024-09-01", "2025-02-01"]


def table(log: bool) -> pandas.DataFrame:
    rng = np.random.default_rng(0)
    menu = rng.choice(["fish", "meat", "soup"], p=[0.2, 0.6, 0.2], size=500)
    price = rng.normal(size=500)
    effects = 30.0 * (menu == "fish") - 20.0 * (menu == "soup") - 10.0 * price
    effects += 50.0 * DAYS.isin(pandas.to_datetime(FAIRS))
    y = 200.0 * np.exp(effects / 200.0) if log else 200.0 + effects
    y *= 1.0 + 0.01 * rng.normal(size=500)
    return pandas.DataFrame({"ds": DAYS, "y": y, "menu": menu, "price": price})


@pytest.mark.parametrize("log", [False, True])
def test_effects_are_those_that_the_values_have(log: bool) -> None:
    model = Forecaster(
        forms=[Form(0, drift=False, log=log)], seasonality=(), events={"fair": FAIRS}
    ).fit(table(log))
    plan = {"menu": ["soup"], "price": [0.0], "ds": [DAYS[-1] + pandas.Timedelta("1D")]}
    found = model.forecast(1, pandas.DataFrame(plan)).effects(0.99).set_index("effect")
    assert found.index.tolist() == ["menu=fish", "menu=soup", "price", "fair"]
    right = np.array([30.0, -20.0, -10.0, 50.0])
    right = 200.0 * np.expm1(right / 200.0) if log else right
    assert ((found["low"] < right) & (right < found["high"])).all()
    assert (found["std"] < 3.0).all()
    np.testing.assert_allclose(found["mean"], right, atol=4.0)


def test_effects_of_holidays_and_of_several_series() -> None:
    pytest.importorskip("holidays")
    labor = DAYS.isin(pandas.to_datetime(["2024-05-01", "2025-05-01"])) * 1.0
    noise = np.random.default_rng(1).normal(size=(2, 500))
    wide = pandas.DataFrame({"a": 100 - 40 * labor + noise[0], "b": 10 + noise[1]}, index=DAYS)
    forecast = Forecaster(forms=[Form(0, drift=False)], seasonality=(), holidays="DE").fit(wide)
    found = forecast.forecast(1).effects().set_index(["unique_id", "effect"])
    assert found.loc[("a", "Labor Day"), "low"] < -40.0 < found.loc[("a", "Labor Day"), "high"]
    assert abs(found.loc[("b", "Labor Day"), "mean"]) < 3.0
    assert "day before a holiday" in found.loc["a"].index
    some = forecast.forecast(1).select(["b"]).effects()
    assert set(some["unique_id"]) == {"b"}
    np.testing.assert_array_equal(some["mean"], found.loc["b"]["mean"])


def test_no_effects() -> None:
    assert not len(Forecaster(forms=[Form()]).fit(np.arange(20.0) ** 2).forecast(1).effects())
    paths = Paths(np.zeros((1, 1, 1)), np.ones((1, 1, 1)), np.ones((1, 1)), log=False)
    by_hand = Forecast.of(
        ("a",), np.zeros((1, 1)), [Form()], [paths], np.ones((1, 1)), single=False
    )
    with pytest.raises(ValueError, match="put together by hand"):
        by_hand.effects()
