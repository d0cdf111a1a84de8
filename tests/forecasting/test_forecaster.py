"""The estimator: laws, inputs, streams and messages."""

from __future__ import annotations

import pickle
import re
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from posterity.files import dumps, loads
from posterity.forecasting import (
    Forecaster,
    ForecastWarning,
    Form,
    GapWarning,
    VectorAutoregression,
)
from posterity.forecasting.choosing import choose_forms
from posterity.forecasting.ensemble import begin_learners
from posterity.forecasting.panel import Panel
from posterity.forecasting.rows import Levels, learn, learn_each, make_bank
from posterity.forgetting import (
    Adaptive,
    Changepoint,
    Exponential,
    RandomWalk,
    Stabilized,
    Window,
)

Array = NDArray[np.float64]
SIMPLE = [Form(1, (1, 2, 3)), Form(12, (1, 12, 13), log=True), Form(1, (), (2.0,), drift=False)]


def same(one: Forecaster, other: Forecaster, h: int = 6) -> None:
    first, second = one.forecast(h), other.forecast(h)
    np.testing.assert_allclose(first.median(), second.median(), rtol=1e-9)
    np.testing.assert_allclose(first.quantile(0.975), second.quantile(0.975), rtol=1e-9)
    np.testing.assert_array_equal(first.times, second.times)


# ---- laws ----------------------------------------------------------------------------------------


def test_parts_are_the_whole(monthly: Array) -> None:
    whole = Forecaster(forms=SIMPLE).fit(monthly)
    same(whole, Forecaster(forms=SIMPLE).fit(monthly[:60]).partial_fit(monthly[60:]))
    one_by_one = Forecaster(forms=SIMPLE).fit(monthly[:-3])
    for value in monthly[-3:]:
        one_by_one.learn_one(value)
    same(whole, one_by_one)


def test_rows_without_times_follow_the_last_ones(monthly: Array) -> None:
    """Also where the first of them was not observed, or series are of other lengths."""
    blank = monthly.copy()
    blank[100] = np.nan
    whole = Forecaster(forms=SIMPLE).fit({"a": blank, "b": monthly[:130]})
    parts = Forecaster(forms=SIMPLE).fit({"a": blank[:100], "b": monthly[:120]})
    same(whole, parts.partial_fit({"a": blank[100:], "b": monthly[120:130]}))
    later = Forecaster(forms=SIMPLE).fit({"a": blank}).partial_fit({"b": monthly[:130]})
    same(whole, later)
    pandas = pytest.importorskip("pandas")
    times = pandas.date_range("2012-01-01", periods=144, freq="MS")
    known = Forecaster(forms=SIMPLE).fit(pandas.DataFrame({"a": monthly}, index=times))
    refused(lambda: known.partial_fit({"b": monthly}), "is new, and its rows have no times")


def test_merged_is_the_whole(monthly: Array) -> None:
    pandas = pytest.importorskip("pandas")
    times = pandas.date_range("2012-01-01", periods=144, freq="MS")
    frame = pandas.DataFrame({"ds": times, "y": monthly})
    whole = Forecaster(forms=SIMPLE).fit(frame)
    parts = [Forecaster(forms=SIMPLE).fit(some) for some in (frame[:70], frame[70:])]
    same(whole, parts[0].merge(parts[1]))
    pair = {"a": monthly, "b": monthly[::-1]}
    halves = [Forecaster(forms=SIMPLE).fit({name: pair[name]}) for name in pair]
    same(Forecaster(forms=SIMPLE).fit(pair), halves[0].merge(halves[1]))


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_the_order_of_rows_does_not_matter(monthly: Array, library: str) -> None:
    pytest.importorskip(library)
    pandas = pytest.importorskip("pandas")
    times = pandas.date_range("2012-01-31", periods=144, freq="ME")
    parts = [
        pandas.DataFrame({"unique_id": name, "ds": times, "y": values})
        for name, values in {"a": monthly, "b": 5.0 + monthly[::-1]}.items()
    ]
    frame = pandas.concat(parts)
    shuffled = frame.sample(frac=1.0, random_state=0).reset_index(drop=True)
    if library == "polars":
        shuffled = pytest.importorskip("polars").from_pandas(shuffled)
    elif library == "pyarrow":
        shuffled = pytest.importorskip("pyarrow").Table.from_pandas(shuffled)
    one, other = Forecaster(forms=SIMPLE).fit(frame), Forecaster(forms=SIMPLE).fit(shuffled)
    same(one, other)
    assert one.periods_ == (12,)
    assert str(one.forecast(2).times[0, -1])[:10] == "2024-02-29"


def test_the_order_of_series_does_not_matter(monthly: Array) -> None:
    """Nor with a prior that they share, or a spread."""
    series = {name: y[:40] for name, y in panel_of(monthly).items()}
    forms = [*SIMPLE, Form(1, (1, 2, 3), shared=True)]
    one = Forecaster(forms=forms).fit(series).forecast(6)
    two = Forecaster(forms=forms).fit(dict(reversed(series.items()))).forecast(6)
    order = [two.ids.index(name) for name in one.ids]
    np.testing.assert_allclose(one.quantile(0.9), two.quantile(0.9)[order], rtol=1e-7)
    np.testing.assert_allclose(one.total().std(), two.total().std()[order], rtol=1e-7)


def test_scale_and_level(monthly: Array) -> None:
    forms = [Form(1, (1, 2, 3)), Form(12, (1, 12, 13))]
    plain = Forecaster(forms=forms).fit(monthly).forecast(5)
    scaled = Forecaster(forms=forms).fit(7.0 * monthly).forecast(5)
    moved = Forecaster(forms=forms).fit(1000.0 + monthly).forecast(5)
    np.testing.assert_allclose(scaled.median(), 7.0 * plain.median(), rtol=1e-8)
    np.testing.assert_allclose(moved.median(), 1000.0 + plain.median(), rtol=1e-8)
    np.testing.assert_allclose(
        moved.quantile(0.9) - moved.quantile(0.1),
        plain.quantile(0.9) - plain.quantile(0.1),
        rtol=1e-6,
    )


def test_series_without_a_shared_prior_do_not_see_each_other(monthly: Array) -> None:
    """But for the spread, which is found from all windows together."""
    alone = Forecaster(forms=SIMPLE[:1]).fit(monthly).forecast(5)
    beside = Forecaster(forms=SIMPLE[:1]).fit({"a": monthly, "b": monthly[::-1]}).forecast(5)
    np.testing.assert_allclose(beside.median()[0], alone.median(), rtol=0.01)


def test_reading_leaves_the_model_as_it_was(monthly: Array) -> None:
    model = Forecaster(forms=SIMPLE).fit(monthly)
    before = pickle.dumps(model)
    first = model.forecast(5).median()
    assert pickle.dumps(model) == before
    np.testing.assert_array_equal(model.forecast(5).median(), first)
    same(pickle.loads(before), model)
    assert clone(model).get_params() == model.get_params()


# ---- what is forecast ----------------------------------------------------------------------------


def test_a_season_and_a_trend_are_continued(monthly: Array) -> None:
    forecast = Forecaster().fit(monthly).forecast(12)
    t = np.arange(144, 156)
    truth = 100.0 * np.exp(0.01 * t + 0.2 * np.sin(2.0 * np.pi * t / 12.0))
    assert np.abs(forecast.median() / truth - 1.0).mean() < 0.05
    low, high = forecast.interval(0.95)
    assert ((low < truth) & (truth < high)).all()


def test_exogenous_columns() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=126)
    y = np.cumsum(0.1 * rng.normal(size=126)) + 3.0 * x
    model = Forecaster(seasonality=()).fit(y[:120], X=x[:120])
    forecast = model.forecast(6, X_future=x[120:])
    np.testing.assert_allclose(forecast.median(), y[120:], atol=1.0)
    without = Forecaster(seasonality=()).fit(y[:120]).forecast(6)
    assert forecast.crps(y[120:]).mean() < 0.3 * without.crps(y[120:]).mean()


def test_exogenous_columns_of_frames() -> None:
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    days = pandas.date_range("2024-01-01", periods=100, freq="D")
    frames = []
    for name, slope in (("a", 2.0), ("b", -2.0)):
        x = rng.normal(size=100)
        y = 10.0 + slope * x + 0.1 * np.cumsum(rng.normal(size=100))
        frames.append(pandas.DataFrame({"unique_id": name, "ds": days, "y": y, "price": x}))
    known = pandas.concat([frame[:95] for frame in frames])
    future = pandas.concat([frame[95:] for frame in frames]).sample(frac=1.0, random_state=1)
    forecast = Forecaster().fit(known).forecast(5, X_future=future.drop(columns="y"))
    truth = np.array([frame["y"].to_numpy()[95:] for frame in frames])
    np.testing.assert_allclose(forecast.median(), truth, atol=1.5)


def test_noise_seldom_has_a_period() -> None:
    rng, week = np.random.default_rng(0), np.arange(100) % 7
    noise, season = rng.normal(size=(60, 100)), rng.normal(size=(60, 7))[:, week]
    alone = [Forecaster().fit(y).periods_ != () for y in noise]
    found = [7 in Forecaster().fit(y).periods_ for y in season + 0.5 * noise]
    assert np.mean(alone) < 0.2
    assert np.mean(found) > 0.8


@pytest.mark.filterwarnings("ignore::posterity.forecasting.ForecastWarning")
def test_periods_are_found_from_times_and_without_them(monthly: Array) -> None:
    pandas = pytest.importorskip("pandas")
    assert Forecaster().fit(monthly).periods_ == (12,)
    walk = np.cumsum(np.random.default_rng(0).normal(size=200))
    assert Forecaster().fit(walk).periods_ == ()
    for frequency, periods in {
        "h": (24, 168),
        "30min": (48, 336),
        "D": (7,),
        "B": (5,),
        "W": (52,),
        "MS": (12,),
        "QS": (4,),
        "YS": (),
    }.items():
        times = pandas.date_range("2001-01-01", periods=60, freq=frequency)
        model = Forecaster().fit(pandas.DataFrame({"ds": times, "y": walk[:60]}))
        assert model.periods_ == periods, frequency
        after = pandas.date_range(times[-1], periods=4, freq=frequency)[1:]
        np.testing.assert_array_equal(
            model.forecast(3).times.astype("datetime64[D]"),
            after.to_numpy().astype("datetime64[D]"),
        )


def test_many_short_series_share_a_prior() -> None:
    rng = np.random.default_rng(3)
    series = {}
    for name in range(60):
        y = np.zeros(30)
        for t in range(2, 30):
            y[t] = y[t - 1] + 0.8 * (y[t - 1] - y[t - 2]) + rng.normal()
        series[name] = y
    known = {name: y[:24] for name, y in series.items()}
    truth = np.array([y[24:] for y in series.values()])
    error = {}
    for shared in (False, True):
        forms = [Form(1, (1, 2, 3, 4), drift=False, shared=shared)]
        forecast = Forecaster(forms=forms).fit(known).forecast(6)
        error[shared] = forecast.crps(truth).mean()
    assert error[True] < error[False]


# ---- streams -------------------------------------------------------------------------------------


def test_progressive_forecasts_are_those_of_models_that_know_the_past(monthly: Array) -> None:
    model = Forecaster(forms=SIMPLE).fit(monthly[:100])
    progress = model.forecast_then_learn(monthly[100:103], h=2)
    np.testing.assert_allclose(
        progress.median[0, 0], Forecaster(forms=SIMPLE).fit(monthly[:100]).predict(2)
    )
    np.testing.assert_array_equal(progress.outcomes[0, 0], monthly[100:102])
    assert np.isnan(progress.median[2, 0, 1])
    same(model, Forecaster(forms=SIMPLE).fit(monthly[:103]))


@pytest.mark.parametrize("shared", [False, True])
def test_forms_are_weighed_in_a_stream_as_at_rest(monthly: Array, shared: bool) -> None:
    """What forms say on the way is what they are tried by when they are weighed anew."""
    forms = [*SIMPLE, Form(1, (1, 2, 3), log=True, shared=shared)]
    series = panel_of(monthly) if shared else {"a": monthly}
    model = Forecaster(forms=forms).fit({name: y[:60] for name, y in series.items()})
    progress = model.forecast_then_learn({name: y[60:84] for name, y in series.items()}, h=6)
    for row in (0, 6, 12, 19):  # where they are weighed anew
        then = Forecaster(forms=forms).fit({name: y[: 60 + row] for name, y in series.items()})
        expected = then.forecast(6).median()[..., :3]
        near = 0.01 if shared else 1e-9
        np.testing.assert_allclose(
            progress.median[row, :, :3].reshape(expected.shape), expected, rtol=near
        )


def test_rows_learned_together_are_those_learned_one_by_one(monthly: Array) -> None:
    rng = np.random.default_rng(0)
    y = np.stack([monthly, monthly[::-1], rng.normal(size=144)])
    y[1, 50:53] = np.nan
    panel = Panel.of_arrays(dict(enumerate(y)))
    levels, form = Levels.of(panel, log=False), Form(1, (1, 2, 12), discount=0.97)
    together, one_by_one = make_bank(form, levels), make_bank(form, levels)
    learn(together, levels, form, 0, 5)
    learn(one_by_one, levels, form, 0, 5)
    banks = list(learn_each(together, levels, form, 5, 80))
    triangles = np.concatenate([bank.triangles for bank in banks]).reshape(
        75, 3, *one_by_one.triangles.shape[1:]
    )
    counts = np.concatenate([bank.count for bank in banks]).reshape(75, 3)
    for column, (triangle, count) in enumerate(zip(triangles, counts, strict=True), start=5):
        learn(one_by_one, levels, form, column, column + 1)
        np.testing.assert_allclose(triangle, one_by_one.triangles, rtol=1e-12, atol=1e-9)
        np.testing.assert_allclose(count, one_by_one.count)


@pytest.mark.parametrize("form", [Form(1, (1, 2, 12)), Form(12, (1,), rows=30)])
def test_origins_near_and_apart_are_those_learned_one_by_one(monthly: Array, form: Form) -> None:
    panel = Panel.of_arrays({"a": monthly, "b": monthly[::-1]})
    columns, none = [10, 20, 23, 24, 60, 61, 100], np.zeros((2, 147, 0))

    def find(some: list[int]) -> Array:
        (learner,), levels = begin_learners([form], panel)
        origin = learner.find_origins(levels[form], some, none, 3)
        assert learner.learned == some[-1]
        return np.column_stack([origin.triangles.reshape(2 * len(some), -1), origin.count])

    apart = np.concatenate([find([column]) for column in columns])
    np.testing.assert_allclose(find(columns), apart, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("h", [1, 3])
def test_a_series_that_goes_on_is_forecast_as_one_learned_at_once(monthly: Array, h: int) -> None:
    """With rows between that are not forecast, an outlier, and one that has no logarithm."""
    y = monthly.copy()
    y[131], y[134] = 40.0 * y[131], -1.0
    forms = [Form(), Form(1, (1, 2, 12), log=True), Form(12)]
    stream = Forecaster(forms=forms, seasonality=12).fit(y[:120])
    for row in range(120, 138):
        stream.learn_one(y[row])
        if row in (123, 124):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answers = [
                np.stack([*some.interval(0.9), some.median()])
                for some in (
                    stream.forecast(h),
                    Forecaster(**stream.get_params()).fit(y[: row + 1]).forecast(h),
                )
            ]
        np.testing.assert_allclose(*answers, rtol=1e-7)


def test_branches_of_a_series_that_goes_on_do_not_disturb_each_other(monthly: Array) -> None:
    one = Forecaster(forms=[Form(), Form(1, (1, 2))]).fit(monthly[:60])
    expected = one.forecast(2)
    other = one.before(0)
    other.learn_one(1.1 * monthly[60])
    other.forecast(2)
    np.testing.assert_array_equal(one.forecast(2).median(), expected.median())
    again = Forecaster(forms=one.forms).fit(monthly[:61]).forecast(2)
    np.testing.assert_allclose(one.learn_one(monthly[60]).forecast(2).median(), again.median())


def test_a_slope_that_turned_is_followed() -> None:
    t = np.arange(110)
    course = 100.0 + np.where(t < 70, 0.5 * t, 35.0 - 0.5 * (t - 70))
    y = course + np.random.default_rng(1).normal(size=110)
    forms = Forecaster(seasonality=()).fit(y).forms_
    steep = [form for form in forms if form.half_lives == (3.0, 9.0)]
    assert [form.log for form in steep] == [True, False]
    forecast = Forecaster(forms=steep).fit(y).forecast(10)
    assert np.abs(forecast.median() - (course[-1] - 0.5 * np.arange(1, 11))).mean() < 2.0
    assert not any(
        form.half_lives == (3.0, 9.0) for form in Forecaster(seasonality=12).fit(y).forms_
    )


def test_progressive_validation_from_nothing(monthly: Array) -> None:
    progress = Forecaster(forms=SIMPLE).forecast_then_learn(monthly, h=3)
    assert progress.median.shape == (108, 1, 3)
    scores = progress.by_step()
    assert scores["coverage"].min() > 0.85
    assert scores["crps"][0] < scores["mae"][0]


def test_progressive_forecasts_know_nothing_of_what_comes() -> None:
    """Values that later turn negative, or change, change no forecast made before."""
    rng = np.random.default_rng(0)
    y = 10.0 + np.cumsum(rng.normal(size=60) * 0.1)
    other = y.copy()
    other[55:] = -100.0
    forms = [Form(1, (1, 2), log=True), Form(1, (1, 2))]
    one = Forecaster(forms=forms).fit(y[:50]).forecast_then_learn(y[50:], h=2)
    two = Forecaster(forms=forms).fit(other[:50]).forecast_then_learn(other[50:], h=2)
    np.testing.assert_allclose(one.median[:6], two.median[:6])
    assert np.isfinite(two.median[:, 0, 0]).all()


def test_anomalies_are_what_no_forecast_expected() -> None:
    """p-values are uniform where the forecaster is right, and of one step those of its forecast."""
    rng = np.random.default_rng(0)
    y = np.cumsum(rng.normal(size=260))
    y[200] += 9.0
    model = Forecaster(forms=[Form(drift=False)], n_draws=16).fit(y[:60])
    expected = float(model.forecast(1).p_value(y[60])[0])
    p = model.forecast_then_learn(y[60:], h=1).p_values()[:, 0, 0]
    assert p[0] == pytest.approx(expected, rel=1e-9)
    assert np.flatnonzero(p < 1e-6).tolist() == [140, 141]  # there and back
    usual = np.sort(np.delete(p, [140, 141]))
    assert np.abs(usual - np.linspace(0.0, 1.0, len(usual))).max() < 0.1


def panel_of(monthly: Array, n: int = 9) -> dict[str, Array]:
    rng = np.random.default_rng(2)
    noise = np.exp(0.03 * rng.normal(size=(n, 144)))
    return {f"s{k}": monthly[k % 3 :] * noise[k, k % 3 :] for k in range(n)}


@pytest.mark.filterwarnings("ignore::posterity.forecasting.ForecastWarning")
def test_some_series_are_those_of_all(monthly: Array) -> None:
    """Also where forms share a prior, and a shorter series has fewer rows than forms need."""
    forms = [*SIMPLE, Form(1, (1, 2), shared=True), Form(12, (1, 2, 12), shared=True)]
    series = panel_of(monthly) | {"short": monthly[-20:]}
    model = Forecaster(forms=forms).fit(series)
    whole = model.forecast(6)
    some = model.forecast(6, series=["s4", "short"])
    assert some.ids == ("s4", "short")
    for name in some.ids:
        row, place = whole.ids.index(name), some.ids.index(name)
        np.testing.assert_allclose(some.median()[place], whole.median()[row], rtol=1e-12)
        np.testing.assert_allclose(some.quantile(0.9)[place], whole.quantile(0.9)[row], rtol=1e-12)
        np.testing.assert_allclose(some.weights[place], whole.weights[row], rtol=1e-12)
    refused(lambda: model.forecast(6, series=["s44"]), "'s44' is unknown: the series are 's0'")
    refused(lambda: model.forecast(6, series=[]), "series is empty")
    alone = Forecaster(forms=SIMPLE).fit({"a": monthly}).learn_one(100.0)
    assert (alone.ids_, alone.n_observations_) == (("a",), 145)


@pytest.mark.filterwarnings("ignore::posterity.forecasting.ForecastWarning")
def test_a_value_of_one_series_leaves_the_others(monthly: Array) -> None:
    """What is its own is that of all its rows; what all share comes when a tenth more came."""
    series = panel_of(monthly)
    known = {name: y[:-20] for name, y in series.items()}
    model = Forecaster(forms=SIMPLE).fit(known)
    others = model.forecast(5, series=["s2", "s3"]).median()
    for value in series["s1"][-20:-15]:
        model.learn_one(value, series="s1")
    np.testing.assert_array_equal(model.forecast(5, series=["s2", "s3"]).median(), others)
    some = model.forecast(5, series=["s1"])
    assert some.times.tolist() == [[128, 129, 130, 131, 132]]
    whole = Forecaster(forms=SIMPLE).fit(known | {"s1": series["s1"][:-15]})
    assert model.n_observations_ == whole.n_observations_
    expected = whole.forecast(5, series=["s1"])
    np.testing.assert_allclose(some.weights, expected.weights, rtol=1e-9)
    np.testing.assert_allclose(some.median(), expected.median(), rtol=1e-3)
    np.testing.assert_allclose(model.forecast(5).median()[1], some.median()[0], rtol=1e-12)
    same(model.partial_fit({"s0": [100.0]}), whole.partial_fit({"s0": [100.0]}))


@pytest.mark.filterwarnings("ignore::posterity.forecasting.ForecastWarning")
def test_values_one_by_one_are_the_whole_when_a_tenth_more_have_come(monthly: Array) -> None:
    forms = [*SIMPLE, Form(1, (1, 2), shared=True)]
    series = panel_of(monthly)
    model = Forecaster(forms=forms).fit({name: y[:-20] for name, y in series.items()})
    for step in range(20, 5, -1):
        for name, y in series.items():
            model.learn_one(y[-step], series=name)
    assert model._recent is not None
    learned = model._learned.observed.sum()
    assert model._recent.observed.sum() <= 0.1 * learned
    assert learned > 9 * 122  # learned anew on the way
    np.testing.assert_array_equal(model.values_[4, -15:], series["s4"][-20:-5])
    same(
        model.partial_fit({"s0": [1.0]}),
        Forecaster(forms=forms).fit(
            {name: np.append(y[:-5], [1.0] * (name == "s0")) for name, y in series.items()}
        ),
    )


def test_values_one_by_one_in_a_file(monthly: Array) -> None:
    model = Forecaster(forms=SIMPLE).fit(panel_of(monthly)).learn_one(90.0, series="s1")
    again = pickle.loads(pickle.dumps(model))
    for other in (again, loads(dumps(model))):
        np.testing.assert_array_equal(other.forecast(3).median(), model.forecast(3).median())
    before = dumps(model)
    model.forecast(4, series=["s1"])
    assert dumps(model) == before


def test_exogenous_columns_one_by_one() -> None:
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(
        {"unique_id": np.repeat(["a", "b"], 60), "ds": np.tile(np.arange(60), 2),
         "price": rng.normal(size=120)}
    )  # fmt: skip
    frame["y"] = 5.0 * frame["price"] + 0.1 * rng.normal(size=120)
    model = Forecaster(forms=[Form(1, (1, 2))]).fit(frame)
    model.learn_one(5.0, [1.0], series="b")
    ahead = pandas.DataFrame({"unique_id": "b", "ds": [61], "price": [2.0]})
    assert model.forecast(1, ahead, series="b").median() == pytest.approx(10.0, abs=0.5)
    refused(lambda: model.learn_one(1.0, series="b"), "a finite number for each")
    refused(lambda: model.learn_one(1.0, [1.0]), "series is missing: name the one of the 2")
    refused(lambda: model.learn_one(1.0, [1.0], series="c"), "'c' is unknown")
    refused(lambda: model.learn_one(np.inf, [1.0], series="b"), "infinite")
    refused(lambda: model.learn_one(1.0, {"cost": 1.0}, series="b"), r"columns \['price'\]")
    refused(lambda: model.learn_one(1.0, {"price": 1.0, "cost": 1.0}, series="b"), "a finite")
    assert model.n_observations_ == 121
    model.learn_one(5.0, {"price": 1.0}, series="b")
    np.testing.assert_array_equal(model._fitted_panel.columns[1, -2:], [[1.0], [1.0]])


@pytest.mark.parametrize("named", [False, True])
def test_named_exogenous_columns_of_one_series_one_by_one(named: bool) -> None:
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    days = pandas.date_range("2026-01-01", periods=60)
    frame = pandas.DataFrame({"ds": days, "cost": rng.random(60), "sale": rng.random(60)})
    frame["y"] = frame["cost"] - 5.0 * frame["sale"] + 0.1 * rng.normal(size=60)
    whole = Forecaster(forms=SIMPLE[:1]).fit(frame)
    parts = Forecaster(forms=SIMPLE[:1]).fit(frame[:57])
    for row in frame[57:].to_dict("records"):
        x = {"sale": row["sale"], "cost": row["cost"]} if named else [row["cost"], row["sale"]]
        parts.learn_one(row["y"], x)
    np.testing.assert_array_equal(parts.predict(2, np.eye(2)), whole.predict(2, np.eye(2)))
    refused(lambda: parts.learn_one(1.0), "a finite number for each of the exogenous columns")
    refused(lambda: parts.learn_one(1.0, {"cost": 1.0}), r"\['cost', 'sale'\]")
    with pytest.raises(NotFittedError, match="call fit first"):
        Forecaster().learn_one(1.0)


# ---- messages ------------------------------------------------------------------------------------


def refused(call: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()  # type: ignore[operator]


def test_what_is_refused(monthly: Array) -> None:
    with pytest.raises(NotFittedError):
        Forecaster().forecast(3)
    model = Forecaster(forms=SIMPLE).fit(monthly)
    refused(lambda: model.forecast(0), "horizon must be a whole number of steps")
    refused(lambda: model.forecast(10**9), "144 rows were learned, which say nothing so far")
    refused(lambda: model.forecast(2, X_future=[[1.0], [2.0]]), "no exogenous columns were learned")
    refused(lambda: Forecaster().fit([1.0, 2.0]), "has 2 values: a forecast needs at least 4")
    refused(lambda: Forecaster().fit([1.0, np.inf, 2.0, 3.0]), "infinite at row 1")
    refused(lambda: Forecaster().fit(np.zeros((2, 2, 2))), r"expected \(n,\) or \(n, k\)")
    refused(lambda: Forecaster().fit([]), "no row to learn")
    refused(lambda: Forecaster(seasonality=1).fit(monthly), "at least 2")
    refused(lambda: Forecaster(forms=[]).fit(monthly), "forms is empty")
    refused(lambda: Forecaster(n_draws=1).fit(monthly), "must be at least 2")
    refused(lambda: Forecaster().fit(monthly, X=np.zeros(3)), "X has 3 rows and y has 144")
    refused(lambda: Form(-1), "must be positive, and difference not negative")
    refused(lambda: Form(0, waves=((7, 0),)), "waves are pairs of a period and a number")
    refused(lambda: Form(0, seasonal_half_lives=(3.0,)), "means over seasons need a season")
    refused(lambda: Form(discount=0.0), "above 0 and at most 1")
    with pytest.raises(TypeError, match="sequence of Form"):
        Forecaster(forms=["arima"]).fit(monthly)  # type: ignore[list-item]


def test_a_series_without_a_name_has_none_in_messages(monthly: Array) -> None:
    pandas = pytest.importorskip("pandas")
    days = pandas.date_range("2024-01-01", periods=40, freq="D")
    frame = pandas.DataFrame({"ds": days, "y": monthly[:40]})
    twice = frame.assign(ds=[days[0], *days[:-1]])
    refused(lambda: Forecaster().fit(twice), "^the series has the time 2024-01-01 twice")
    with pytest.warns(GapWarning, match=r"1 day apart.* after 2024-01-03 of the series \(1 miss"):
        Forecaster(forms=SIMPLE).fit(frame.drop(index=3))
    refused(lambda: Forecaster().fit(frame.assign(y="a")), "^column 'y' has a value that is not a")
    refused(lambda: Forecaster().fit([*monthly, np.inf]), "^the series is infinite at row 144")
    refused(lambda: Forecaster().fit(frame.assign(ds=[None, *days[1:]])), "time of row 0")
    refused(
        lambda: Forecaster().fit(monthly, X=["a"] * 144),
        "^X has a value that is not a number: in row 0",
    )
    model = Forecaster(forms=SIMPLE).fit(frame.assign(price=1.0))
    ahead = pandas.DataFrame({"ds": days[-1] + pandas.to_timedelta([1, 2], "D"), "price": np.nan})
    refused(lambda: model.forecast(2, ahead), "'price' of X_future is missing at row 0")


def test_forms_that_can_learn_nothing_say_why(monthly: Array) -> None:
    series = {"a": monthly, "b": monthly - 150.0}
    logs = Forecaster(forms=[Form(log=True)]).fit(series)
    with pytest.warns(ForecastWarning, match="series 'b' is too short for every form, or not"):
        found = logs.forecast(2).median()
    np.testing.assert_array_equal(np.isnan(found), [[False, False], [True, True]])
    alone = Forecaster(forms=[Form(log=True)]).fit(monthly - 150.0)
    refused(lambda: alone.forecast(2), "the series, of 144 rows, has values that are not positive")
    long = Forecaster(forms=[Form(1, (150,))]).fit(monthly)
    refused(lambda: long.forecast(2), "the series, of 144 rows, is shorter than the lags of every")
    some = Forecaster(forms=[Form(1, (150,)), Form()]).fit(monthly)  # the simpler one is left
    assert [form.length for form in some.forecast(2).forms] == [1]


def test_what_is_refused_of_times(monthly: Array) -> None:
    pandas = pytest.importorskip("pandas")
    times = pandas.date_range("2012-01-01", periods=144, freq="MS")
    frame = pandas.DataFrame({"unique_id": "a", "ds": times, "y": monthly})
    refused(
        lambda: Forecaster().fit(frame.assign(ds=times[0])),
        "series 'a' has the time 2012-01-01 twice",
    )
    refused(lambda: Forecaster().fit(frame).partial_fit(frame), "were learned already")
    refused(lambda: Forecaster().fit(frame.drop(columns="ds")), "needs the column 'ds'")
    refused(lambda: Forecaster().fit(frame.assign(ds="soon")), "can't be read")
    unnamed = frame.assign(unique_id=["a", None] * 72)
    refused(lambda: Forecaster().fit(unnamed), "unique_id is missing at row 1")
    later = pandas.DataFrame(
        {"unique_id": ["a"], "ds": [times[-1] + pandas.Timedelta(hours=1)], "y": 1.0}
    )
    model = Forecaster(forms=SIMPLE).fit(frame)
    before = model.predict(3)
    refused(lambda: model.partial_fit(later), "2023-12-01")
    np.testing.assert_array_equal(model.predict(3), before)
    uneven = pandas.DataFrame(
        {
            "unique_id": ["a", "a", "b", "b", "b"],
            "ds": [*(times[-1] + pandas.DateOffset(months=k) for k in (1, 2)), *times[:3]],
            "y": 1.0,
        }
    )
    refused(lambda: model.forecast_then_learn(uneven, h=1), "the same number of new rows for each")


def test_what_is_refused_of_exogenous_columns() -> None:
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    days = pandas.date_range("2024-01-01", periods=40, freq="D")
    frame = pandas.DataFrame({"ds": days, "y": rng.normal(size=40), "price": rng.normal(size=40)})
    model = Forecaster().fit(frame[:35])
    refused(lambda: model.forecast(5), r"X_future is missing: .*\['price'\]")
    refused(lambda: model.forecast(5, X_future=frame[35:][["ds"]]), "lacks the column 'price'")
    refused(
        lambda: model.forecast(5, X_future=frame[35:38]),
        "no value of 'price' for the series in step 4 of 5: give it",
    )
    refused(lambda: model.partial_fit(frame[35:][["ds", "y"]]), "exogenous columns")
    frame.loc[3, "price"] = np.nan
    refused(lambda: Forecaster().fit(frame), "'price' is missing at row 3")


def test_what_is_warned_of(monthly: Array) -> None:
    pandas = pytest.importorskip("pandas")
    times = pandas.date_range("2012-01-01", periods=144, freq="MS")
    frame = pandas.DataFrame({"unique_id": "a", "ds": times, "y": monthly})
    with pytest.warns(GapWarning, match=r"1 month apart.* after 2016-02-01 of series 'a' \(2 miss"):
        gaps = Forecaster(forms=SIMPLE).fit(frame.drop(index=[50, 51]))
    blank = frame.assign(y=np.where(np.isin(np.arange(144), [50, 51]), np.nan, monthly))
    same(gaps, Forecaster(forms=SIMPLE).fit(blank))
    with pytest.warns(ForecastWarning, match="the series is constant"):
        forecast = Forecaster().fit(np.full(20, 3.0)).forecast(2)
    np.testing.assert_array_equal(forecast.median(), [3.0, 3.0])
    with pytest.warns(ForecastWarning, match="shorter than two seasons of 12"):
        short = Forecaster(seasonality=12).fit(monthly[:20]).forecast(3)
    assert np.isfinite(short.interval()).all()


def test_values_that_are_not_positive_have_no_logarithms(monthly: Array) -> None:
    both = Forecaster(forms=SIMPLE).fit({"a": monthly, "b": monthly - 150.0}).forecast(3)
    log = [form.log for form in both.forms].index(True)
    assert both.weights[0, log] > 0.0
    assert both.weights[1, log] == 0.0
    assert np.isfinite(both.median()).all()


@pytest.mark.parametrize("n", [4, 5, 6, 8, 13, 25])
@pytest.mark.filterwarnings("ignore::posterity.forecasting.ForecastWarning")
def test_few_values_have_forecasts_that_are_wide(n: int) -> None:
    y = np.cumsum(np.random.default_rng(n).normal(size=n))
    low, high = Forecaster().fit(y).forecast(4).interval(0.95)
    assert np.isfinite(low).all()
    assert np.isfinite(high).all()
    assert (high - low > 1.0).all()


def test_columns_for_data_frames(monthly: Array) -> None:
    columns = (
        Forecaster(forms=SIMPLE).fit({"a": monthly, "b": monthly}).forecast(2).to_columns([0.9])
    )
    assert list(columns) == [
        "unique_id",
        "ds",
        "Forecaster",
        "Forecaster-lo-90",
        "Forecaster-hi-90",
    ]
    assert columns["unique_id"].tolist() == ["a", "a", "b", "b"]
    assert columns["ds"].tolist() == [144, 145, 144, 145]


@pytest.mark.parametrize("n", [16, 20, 23])
@pytest.mark.filterwarnings("ignore::posterity.forecasting.ForecastWarning")
def test_a_season_that_came_once_is_seen_to_return(n: int) -> None:
    rng = np.random.default_rng(n)
    t = np.arange(n + 6)
    months = 20.0 * np.sin(2 * np.pi * t / 12) + rng.normal(size=(12, 1)) * t / 10
    series = 100.0 + months + rng.normal(size=(12, n + 6))
    known = {f"s{k}": y[:n] for k, y in enumerate(series)}
    error = np.abs(Forecaster(seasonality=12).fit(known).forecast(6).median() - series[:, n:])
    alone = Forecaster(seasonality=12).fit(series[0, :n]).forecast(6).median()
    assert error.mean() < 6.0  # of the last value: more than 15
    assert np.abs(alone - series[0, n:]).mean() < 10.0


@pytest.mark.filterwarnings("ignore::posterity.forecasting.ForecastWarning")
def test_logarithms_that_explode_do_not_count() -> None:
    rng = np.random.default_rng(0)
    walks = 100.0 * np.exp(np.cumsum(0.1 * rng.normal(size=(60, 11)), axis=1))
    forms = [Form(), *(Form(7, lags, log=True) for lags in ((1, 8), (8,)))]
    forecast = Forecaster(forms=forms).fit(dict(enumerate(walks))).forecast(7)
    low, high = forecast.interval(0.95)
    assert (high - low < 40.0 * walks.std()).all()


# ---- forgetting ----------------------------------------------------------------------------------


def test_a_discount_is_that_of_each_form(monthly: Array) -> None:
    forgets = Forecaster(forms=SIMPLE, forgetting=Stabilized(discount=0.97)).fit(monthly)
    same(forgets, Forecaster(forms=[replace(form, discount=0.97) for form in SIMPLE]).fit(monthly))
    assert all(form.discount == 0.97 for form in forgets.forms_)


def test_a_window_knows_nothing_of_what_was_before(monthly: Array) -> None:
    """The rows of 30 targets, and the lags that they look at."""
    form, other = Form(1, (1, 2, 3)), monthly.copy()
    other[:100] = 500.0 - 3.0 * monthly[:100]
    one, two = (
        Forecaster(forms=[form], forgetting=Window(size=30), seasonality=(), outliers="learn").fit(
            y
        )
        for y in (monthly, other)
    )
    # How wide they are is learned from windows that begin 30 rows before other origins.
    np.testing.assert_allclose(one.forecast(1).mean(), two.forecast(1).mean(), rtol=1e-9)
    plain = Forecaster(forms=[form], seasonality=()).fit(monthly[-33:]).forecast(1)
    np.testing.assert_allclose(one.forecast(1).mean(), plain.mean(), rtol=1e-9)


@pytest.mark.parametrize(
    "forgetting",
    [Exponential(0.98), Window(size=40), Adaptive(discounts=(1.0, 0.95)), Changepoint(1 / 40)],
)
def test_forgetting_streams_as_it_fits(monthly: Array, forgetting: Any) -> None:
    def made() -> Forecaster:
        return Forecaster(forms=SIMPLE, forgetting=forgetting).fit(monthly[:120])

    progress = made().forecast_then_learn(monthly[120:123], h=2)
    np.testing.assert_allclose(progress.median[0, 0], made().predict(2))
    same(made().partial_fit(monthly[120:]), loads(dumps(made().partial_fit(monthly[120:]))))
    clone(made())


def test_who_forgets_follows_a_world_that_changed() -> None:
    rng = np.random.default_rng(0)
    y = np.zeros(340)
    for t in range(1, 340):
        y[t] = (0.9 if t < 250 else -0.9) * y[t - 1] + rng.normal()
    forms = [Form(1, (1, 2), drift=False)]
    error = {}
    for name, forgetting in (
        ("none", None),
        ("adaptive", Adaptive(discounts=(1.0, 0.95))),
        ("changepoint", Changepoint(1 / 100)),
    ):
        model = Forecaster(forms=forms, forgetting=forgetting, seasonality=()).fit(y[:300])
        error[name] = float(np.nanmean(model.forecast_then_learn(y[300:], h=1).crps))
    assert error["adaptive"] < 0.95 * error["none"]
    assert error["changepoint"] < 0.95 * error["none"]


@pytest.mark.parametrize(
    ("words", "strategy"),
    [("exponential:0.98", Exponential(0.98)), ("window:40", Window(40)), ("none", None)],
)
def test_a_way_to_forget_in_words(monthly: Array, words: str, strategy: Any) -> None:
    by_name, given = (
        Forecaster(forms=SIMPLE, forgetting=one).fit(monthly) for one in (words, strategy)
    )
    same(by_name, given)
    assert by_name.get_params()["forgetting"] == words
    same(loads(dumps(by_name)), given)


def test_ways_to_forget_that_forms_do_not_have() -> None:
    for forgetting in (RandomWalk(variance=0.1), "random-walk:0.1"):
        with pytest.raises(TypeError, match="give Exponential"):
            Forecaster(forgetting=forgetting).fit(np.arange(20.0))
    with pytest.raises(ValueError, match="'adaptiv' is not a way to forget: give one of none, "):
        Forecaster(forgetting="adaptiv").fit(np.arange(20.0))
    with pytest.raises(ValueError, match="needs a size, in steps"):
        Forecaster(forgetting=Window(duration=3.0)).fit(np.arange(20.0)).forecast(1)


def test_hours_with_a_zone_are_forecast_as_others_where_clocks_do_not_change() -> None:
    pandas = pytest.importorskip("pandas")
    times = pandas.date_range("2024-04-02", periods=72, freq="h", tz="UTC")
    y = np.random.default_rng(0).normal(size=72)
    local = pandas.DataFrame({"ds": times.tz_convert("Europe/Zurich"), "y": y})
    plain = pandas.DataFrame({"ds": times.tz_localize(None), "y": y})
    zoned = Forecaster(forms=SIMPLE[:1]).fit(local).forecast(6)
    naive = Forecaster(forms=SIMPLE[:1]).fit(plain).forecast(6)
    np.testing.assert_allclose(zoned.interval(0.9), naive.interval(0.9), rtol=1e-9)
    ahead = times[-1] + pandas.to_timedelta(np.arange(1, 7), "h")
    assert list(zoned.times) == list(ahead)
    assert list(naive.times) == list(ahead.tz_localize(None))


def test_long_periods_need_few_lags() -> None:
    assert max(form.window.shape[1] for form in choose_forms(30_000, (1440, 10_080))) < 20


def test_sums_are_of_steps_that_were_forecast() -> None:
    forecast = Forecaster(forms=[Form()]).fit(np.arange(20.0) % 3).forecast(4)
    np.testing.assert_array_equal(forecast.total(np.int64(2)).mean(), forecast.total(2).mean())
    for steps in (0, 5, -1):
        with pytest.raises(ValueError, match=f"steps is {steps}, but 4 were forecast"):
            forecast.total(steps)
    with pytest.raises(ValueError, match="there is no step in"):
        forecast.total(slice(7, 9))
    signals = VectorAutoregression(lags=1).fit(np.random.default_rng(0).normal(size=(30, 2)))
    with pytest.raises(ValueError, match="steps is 3, but 2 were forecast"):
        signals.forecast(2).total(3)


def test_a_forecast_says_what_it_is() -> None:
    forecast = Forecaster(forms=[Form()]).fit(np.arange(20.0) % 3).forecast(4)
    assert re.match(
        r"Forecast\(4 steps; median and 95% interval: \S+ \[\S+, \S+\], ", repr(forecast)
    )
    rng = np.random.default_rng(0)
    several = Forecaster(forms=[Form()]).fit({"a": rng.random(9), "b": rng.random(9)}).forecast(1)
    assert repr(several).startswith("Forecast(2 series, 1 step each; median of 'a' and 95%")
    assert repr(forecast.total(2)).startswith("StepDistribution(1 step; ")
    with pytest.raises(AttributeError, match=r"has no attribute 'sum': use total\(steps\)"):
        forecast.sum()
    assert not hasattr(forecast, "nothing")


def test_a_new_series_needs_values_and_leaves_the_others_as_they_were() -> None:
    pandas = pytest.importorskip("pandas")
    days = pandas.date_range("2024-01-01", periods=30)
    y = np.random.default_rng(0).normal(size=30)
    frame = pandas.DataFrame({"unique_id": "a", "ds": days, "y": y})
    model = Forecaster(forms=[Form()]).fit(frame)
    before = model.predict(2)
    again = frame.iloc[:1]
    with pytest.raises(ValueError, match="were learned already"):
        model.partial_fit(again)
    np.testing.assert_array_equal(model.predict(2), before)
    more = Forecaster(forms=[Form()]).fit(frame).partial_fit(again.assign(unique_id="z"))
    with pytest.warns(ForecastWarning, match="series 'z' is too short for every form"):
        np.testing.assert_allclose(more.predict(2)[0], before[0])
    model.seasonality = ()
    both = model.partial_fit(frame.iloc[:4].assign(unique_id="z"))
    np.testing.assert_array_equal(both.predict(2, series=["a"]), both.predict(2)[:1])


@pytest.mark.parametrize("missing", [[194], [200], [194, 200], [198, 199, 200]])
def test_a_gap_is_bridged_by_the_season_before(missing: list[int]) -> None:
    rng = np.random.default_rng(0)
    y = 20.0 * np.sin(2.0 * np.pi * np.arange(202) / 7.0) + rng.normal(size=202)
    gap = y[:201].copy()
    gap[missing] = np.nan
    whole, lost = (Forecaster(seasonality=7).fit(one).predict(1) for one in (y[:201], gap))
    assert abs(whole[0] - lost[0]) < 1.5
    walk = np.cumsum(rng.normal(size=120))
    walk[118:] = np.nan
    assert abs(Forecaster(seasonality=7).fit(walk).predict(1)[0] - walk[117]) < 1.0
