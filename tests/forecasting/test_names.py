"""Names of series and columns come back as they went in, and text is named with its row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from posterity import load, save
from posterity.forecasting import Forecaster, ForecastWarning, Form, VectorAutoregression
from posterity.forecasting.plans import _widen_few

pandas = pytest.importorskip("pandas")

DAYS = pandas.date_range("2024-01-01", periods=60)
Y = np.random.default_rng(0).normal(100.0, 3.0, size=(60, 3))
MODELS = [Forecaster(forms=[Form()], seasonality=()), VectorAutoregression(lags=1)]
NAMES: list[list[Any]] = [
    [1, 2, 3],
    [("a", 1), ("a", 2), ("b", 1)],
    ["x", 1, ("c", 2)],
    [2.5, "y2", "z"],
]


@pytest.mark.parametrize("model", MODELS, ids=["forecaster", "vector"])
@pytest.mark.parametrize("names", NAMES, ids=str)
@pytest.mark.parametrize("timed", [True, False])
def test_wide_frames_keep_the_names_of_their_columns(
    model: Any, names: list[Any], timed: bool
) -> None:
    wide = pandas.DataFrame(Y, index=DAYS if timed else None, columns=names)
    learned = model.fit(wide.iloc[:50])
    assert learned.ids_ == tuple(names)
    later = wide.iloc[50:] if timed else wide.iloc[50:].reset_index(drop=True)
    learned.partial_fit(later)
    assert set(learned.ids_) == set(names)
    forecast = learned.forecast(2)
    plain = type(model)(**model.get_params()).fit(Y).forecast(2)
    for number, name in enumerate(names):
        at = forecast.ids.index(name)
        np.testing.assert_allclose(forecast.median()[at], plain.median()[number], rtol=1e-6)
    assert forecast.to_frame()["unique_id"].tolist() == [one for one in forecast.ids for _ in "ab"]


def test_two_levels_of_columns_are_tuples(tmp_path: Path) -> None:
    names = pandas.MultiIndex.from_product([["Bern"], [1, 2, 3]], names=["town", "shop"])
    model = Forecaster(forms=[Form()]).fit(pandas.DataFrame(Y, index=DAYS, columns=names))
    assert model.ids_ == (("Bern", 1), ("Bern", 2), ("Bern", 3))
    np.testing.assert_array_equal(model.predict(2, series=[("Bern", 2)])[0], model.predict(2)[1])
    save(model, tmp_path / "model.posterity")
    assert load(tmp_path / "model.posterity").ids_ == model.ids_


def test_a_pivot_of_stores_is_read() -> None:
    long = pandas.DataFrame(
        {"week": np.repeat(DAYS, 3), "store": np.tile([1, 2, 45], 60), "sold": Y.reshape(-1)}
    )
    wide = long.pivot(index="week", columns="store", values="sold")
    assert Forecaster(forms=[Form()]).fit(wide).ids_ == (1, 2, 45)


def test_names_of_several_types_are_kept_in_long_frames() -> None:
    long = pandas.DataFrame(
        {"unique_id": [1, "a"] * 60, "ds": np.repeat(DAYS, 2), "y": Y[:, :2].reshape(-1)}
    )
    assert Forecaster(forms=[Form()]).fit(long).ids_ == (1, "a")


def test_names_that_come_twice_are_refused() -> None:
    with pytest.raises(ValueError, match="two columns are called 'a'"):
        Forecaster().fit(pandas.DataFrame(Y, columns=["a", "b", "a"]))


def test_columns_of_text_are_columns_of_levels() -> None:
    frame = pandas.DataFrame({"ds": DAYS, "y": Y[:, 0], "holiday": ["no", "yes", "no"] * 20})
    ones = frame[["ds", "y"]].assign(
        **{f"holiday={level}": (frame["holiday"] == level) * 1.0 for level in ("no", "yes")}
    )
    model, coded = (Forecaster(forms=[Form()], seasonality=()) for _ in range(2))
    plan = pandas.DataFrame({"ds": [DAYS[-1] + pandas.Timedelta("1D")], "holiday": ["yes"]})
    both = plan[["ds"]].assign(**{"holiday=no": 0.0, "holiday=yes": 1.0})
    for given in (frame, frame.assign(holiday=pandas.Categorical(frame["holiday"]))):
        model = Forecaster(forms=[Form()], seasonality=()).fit(given[:40])
        assert model.exogenous_ == ("holiday=no", "holiday=yes")
        coded = Forecaster(forms=[Form()], seasonality=()).fit(ones[:40])
        model, coded = model.partial_fit(given[40:41]), coded.partial_fit(ones[40:41])
        model.partial_fit(given[41:])
        coded.partial_fit(ones[41:])
        np.testing.assert_array_equal(
            model.forecast(1, plan).mean(), coded.forecast(1, both).mean()
        )
    alone = Forecaster(forms=[Form()], seasonality=()).fit(Y[:, 0], X=frame[["holiday"]])
    assert alone.exogenous_ == ("holiday=no", "holiday=yes")
    alone.learn_one(1.0, x={"holiday": "yes"})
    with pytest.raises(ValueError, match=r"'holiday' is None at row 0 .*which is no text"):
        model.forecast(1, plan.assign(holiday=None))
    with pytest.raises(
        ValueError, match=r"exogenous columns \['when=late'\], but the learned rows had"
    ):
        model.partial_fit(plan.drop(columns="holiday").assign(when="late", y=1.0))
    assert model.n_observations_ == 60


def test_a_level_that_comes_later_is_learned_as_with_all_rows() -> None:
    sale = np.array(["no", "yes", "no"] * 20, dtype=object)
    sale[[47, 55]] = "big"
    y = Y[:, 0] + 5.0 * (sale == "big")
    frame = pandas.DataFrame({"ds": DAYS, "y": y, "sale": sale})
    plan = pandas.DataFrame({"ds": pandas.date_range(DAYS[-1], periods=3)[1:], "sale": "big"})
    forms = [Form(), Form(0, drift=False)]
    whole = Forecaster(forms=forms, seasonality=()).fit(frame)
    parts = Forecaster(forms=forms, seasonality=()).fit(frame[:40]).partial_fit(frame[40:])
    merged = Forecaster(forms=forms, seasonality=()).fit(frame[:40])
    merged.merge(Forecaster(forms=forms, seasonality=()).fit(frame[40:]))
    rows = Forecaster(forms=forms, seasonality=()).fit(frame[:40])
    for _, row in frame[40:].iterrows():
        rows.learn_one(row["y"], {"sale": row["sale"]})
    expected = whole.forecast(2, plan).quantile(0.9)
    for model in (whole, parts, merged, rows):
        assert model.exogenous_ == ("sale=big", "sale=no", "sale=yes")
        np.testing.assert_array_equal(model.forecast(2, plan).quantile(0.9), expected)
    passed = (
        Forecaster(forms=forms, seasonality=()).fit(frame[:40]).forecast_then_learn(frame[40:], 1)
    )
    assert np.isfinite(passed.median).all()


def test_a_level_that_comes_later_in_one_of_many_series() -> None:
    frame = pandas.DataFrame({"ds": np.tile(DAYS, 2), "y": Y[:, :2].T.reshape(-1), "sale": "no"})
    frame.loc[::5, "sale"] = "yes"
    frame["unique_id"] = np.repeat(["a", "b"], 60)
    model = Forecaster(forms=[Form()], seasonality=()).fit(frame)
    model.learn_one(1.0, {"sale": "yes"}, series="a").learn_one(2.0, {"sale": "big"}, series="a")
    assert model.exogenous_ == ("sale=big", "sale=no", "sale=yes")
    assert model.n_observations_ == 122


def test_an_unseen_level_of_the_plan_is_as_uncertain_as_levels_differ() -> None:
    rng = np.random.default_rng(3)
    sizes = dict(zip("abcdef", [-60.0, -30.0, -10.0, 10.0, 30.0, 60.0], strict=True))
    level = rng.choice(list(sizes), size=120)
    y = 300.0 + np.array([sizes[one] for one in level]) + rng.normal(size=120)
    days = pandas.date_range("2026-01-01", periods=122)
    frame = pandas.DataFrame({"ds": days[:120], "y": y, "menu": level})
    model = Forecaster(forms=[Form(0, drift=False)], seasonality=()).fit(frame)
    plan = pandas.DataFrame({"ds": days[120:], "menu": ["fish", "a"]})
    with pytest.warns(ForecastWarning, match="a level of 'menu' for the series at 2026-05-01"):
        forecast = model.forecast(2, plan)
    low, high = forecast.interval(0.9)
    assert 240.0 < forecast.median()[0] < 360.0
    assert 100.0 < high[0] - low[0] < 200.0
    assert high[1] - low[1] < 8.0
    low, high = forecast.components()["menu"].interval(0.9)
    assert 100.0 < high[0] - low[0] < 200.0


def test_columns_of_other_values_say_what_to_do() -> None:
    frame = pandas.DataFrame({"ds": DAYS, "y": Y[:, 0], "holiday": ["no", 1] * 30})
    said = r"exogenous column 'holiday' has a value that is not a number, 'no' at row 0 .*get_dum"
    with pytest.raises(ValueError, match=said):
        Forecaster().fit(frame)
    with pytest.raises(ValueError, match=said):
        Forecaster().fit(Y[:, 0], X=frame[["holiday"]])
    coded = frame.assign(holiday=frame["holiday"] == "yes")
    model = Forecaster(forms=[Form()], seasonality=()).fit(coded)
    plan = pandas.DataFrame({"ds": [DAYS[-1] + pandas.Timedelta("1D")], "holiday": ["maybe"]})
    with pytest.raises(ValueError, match=r"'holiday' of X_future has a value .*'maybe' at row 0"):
        model.forecast(1, plan)


def test_a_value_of_text_is_named_with_its_row() -> None:
    y = np.array([1.0, 2.0, "k.A.", 4.0], dtype=object)
    with pytest.raises(ValueError, match=r"column 'y' .* not a number, 'k.A.' at row 2"):
        Forecaster().fit(pandas.DataFrame({"ds": range(4), "y": y}))


@pytest.mark.parametrize(("value", "shown"), [(None, "nan|None"), (1, "1")])
def test_a_value_that_is_no_text_among_levels_is_named(value: Any, shown: str) -> None:
    level = ["big", value, *["none"] * 38]
    frame = pandas.DataFrame({"ds": np.arange(40), "y": np.arange(40.0) % 5, "level": level})
    with pytest.raises(ValueError, match=rf"'level' is ({shown}) at row 1 .*no text"):
        Forecaster().fit(frame)


@pytest.mark.parametrize("k", [2, 3, 6])
def test_a_new_level_is_held_as_often_as_promised_beside_few(k: int) -> None:
    effects = np.random.default_rng(k).normal(size=(20_000, k + 1))
    seen = effects[:, :k] - effects[:, :k].mean(axis=1, keepdims=True)
    sd = np.sqrt(np.square(seen).mean(axis=1) * _widen_few(k))
    held = np.abs(effects[:, k] - effects[:, :k].mean(axis=1)) < 1.6449 * sd
    assert held.mean() == pytest.approx(0.9, abs=0.01)
