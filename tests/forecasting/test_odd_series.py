"""An odd series among many: it neither stops nor changes the forecasts of the others."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from posterity.forecasting import Forecaster, ForecastWarning, Form, VectorAutoregression
from posterity.forecasting.typical import find_typical

Array = NDArray[np.float64]

SEASONS = {"seasonality": (12,)}
FORMS = [Form(), Form(1, (1, 2, 3)), Form(1, (1, 2, 3), shared=True), Form(1, (1, 2), log=True)]


def make_plain(kind: str, count: int, n: int, seed: int) -> dict[str, Array]:
    rng, t = np.random.default_rng(seed), np.arange(n)
    level = rng.uniform(40.0, 200.0, size=(count, 1))
    noise = rng.normal(size=(count, n))
    series = {
        "counts": rng.poisson(50.0, size=(count, n)).astype(np.float64),
        "noise": level * (1.0 + 0.1 * noise),
        "walk": 10.0 * level + np.cumsum(noise, axis=1),
        "season": level * (1.0 + 0.2 * np.sin(2.0 * np.pi * t / 12) + 0.05 * noise),
    }[kind]
    return {f"s{number:02}": one for number, one in enumerate(series)}


def make_odd(kind: str, n: int, seed: int) -> Array:
    rng, t = np.random.default_rng(seed), np.arange(n)
    values = 50.0 + 3.0 * rng.normal(size=n)
    return {
        "discontinued": np.where(t < n // 3, np.round(330 + 25 * rng.normal(size=n)), 0.0),
        "launched": np.where(t == n - 1, 31.0, np.nan),
        "two rows": np.where(t >= n - 2, values, np.nan),
        "missing": np.full(n, np.nan),
        "constant": np.full(n, 7.0),
        "zeros": np.zeros(n),
        "one spike": np.where(t == n // 2, 1e4, 50.0),
        "spike in noise": np.where(t == n // 2, 1e4, values),
        "huge": 1e12 * values,
        "tiny": 1e-12 * values,
        "alternating": np.where(t % 2 == 0, 10.0, 20.0),
        "two values": rng.choice([3.0, 8.0], size=n),
        "constant until the last": np.where(t == n - 1, 6.0, 5.0),
        "steep": np.exp(0.2 * t),
    }[kind]


ODD = (
    *("discontinued", "launched", "two rows", "missing", "constant", "zeros", "one spike"),
    *("spike in noise", "huge", "tiny", "alternating", "two values", "constant until the last"),
    "steep",
)


def forecast_numbers(series: dict[str, Array], names: list[str], **keywords: Any) -> Array:
    """(3, S, h) medians and ends of intervals of the named series."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ForecastWarning)
        forecast = Forecaster(**keywords).fit(series).forecast(6)
    which = [forecast.ids.index(name) for name in names]
    return np.stack([each[which] for each in (forecast.median(), *forecast.interval(0.95))])


def assert_the_others_stay(plain: dict[str, Array], odd: Array, **keywords: Any) -> None:
    alone = forecast_numbers(plain, list(plain), **keywords)
    beside = forecast_numbers(plain | {"odd": odd}, list(plain), **keywords)
    size = np.maximum(np.abs(alone), 0.1 * (alone[2] - alone[1]))
    assert (np.abs(beside - alone) <= 0.01 * size).all()


@given(
    kind=st.sampled_from(["counts", "noise", "walk", "season"]),
    odd=st.sampled_from(ODD),
    count=st.integers(10, 14),
    n=st.integers(24, 60),
    seed=st.integers(0, 200),
)
@settings(max_examples=25, deadline=None, derandomize=True)
def test_an_odd_series_changes_no_other(kind: str, odd: str, count: int, n: int, seed: int) -> None:
    plain = make_plain(kind, count, n, seed)
    assert_the_others_stay(plain, make_odd(odd, n, seed + 1000), forms=FORMS)


@pytest.mark.slow
@given(
    kind=st.sampled_from(["counts", "noise", "walk", "season"]),
    odd=st.sampled_from(ODD),
    count=st.integers(10, 14),
    n=st.integers(24, 200),
    seed=st.integers(0, 10_000),
)
@settings(max_examples=25, deadline=None, derandomize=True)
def test_odd_series_of_all_kinds_change_no_other(
    kind: str, odd: str, count: int, n: int, seed: int
) -> None:
    plain = make_plain(kind, count, n, seed)
    assert_the_others_stay(plain, make_odd(odd, n, seed + 1000))


def test_odd_series_are_not_typical_and_plain_ones_are() -> None:
    missed = 0
    for seed in range(10):
        for kind in ("counts", "noise", "walk", "season"):
            plain = make_plain(kind, 12, 36, seed)
            for odd in ODD:
                if odd == "spike in noise":  # a value that is left out
                    continue
                values = np.array([*plain.values(), make_odd(odd, 36, seed)])
                found = find_typical(values)
                assert not found[-1], (kind, odd)
                missed += np.count_nonzero(~found[:-1])
    assert missed < 0.001 * 10 * 4 * 13 * 12


def test_a_series_that_was_constant_lately_says_so() -> None:
    with pytest.warns(ForecastWarning, match="the series is constant, at least lately"):
        low, high = Forecaster().fit([1.1] + 19 * [1.0]).forecast(3).interval(0.95)
    np.testing.assert_array_equal([low, high], 1.0)


def test_where_nothing_moves_all_series_are_typical() -> None:
    assert find_typical(np.ones((3, 10))).all()
    assert find_typical(np.ones((3, 1))).all()


def test_a_discontinued_series_stops_no_panel() -> None:
    rng = np.random.default_rng(0)
    plain = {str(number): rng.poisson(50, 192).astype(np.float64) for number in range(13)}
    begin = np.round(330 + 25 * np.random.default_rng(0).normal(size=12))
    gone = np.concatenate([begin, np.zeros(144)])
    assert_the_others_stay(plain, gone, **SEASONS)
    with pytest.warns(ForecastWarning, match="series 'gone' is constant, at least lately"):
        forecast = Forecaster(**SEASONS).fit(plain | {"gone": gone}).forecast(12)
    low, high = forecast.interval(0.95)
    assert np.isfinite([low, high]).all()
    assert abs(forecast.median()[forecast.ids.index("gone")]).max() < 1.0


def test_panels_of_odd_series_alone_have_forecasts() -> None:
    rng = np.random.default_rng(0)
    begin = np.round(330 + 25 * rng.normal(size=(12, 12)))
    gone = np.hstack([begin, np.zeros((12, 144))])
    with pytest.warns(ForecastWarning, match="are constant, at least lately"):
        forecast = Forecaster(**SEASONS).fit(gone.T).forecast(3)
    assert np.isfinite(forecast.interval(0.95)).all()


# ---- too few values ------------------------------------------------------------------------------


def make_shops(values: list[float], count: int = 10) -> dict[str, Array]:
    rng = np.random.default_rng(0)
    shops = {f"s{i}": rng.poisson(30, 60).astype(float) for i in range(count)}
    return shops | {"new": np.concatenate([np.full(60 - len(values), np.nan), values])}


@pytest.mark.parametrize(
    ("values", "near"),
    [([31.0], 31.0), ([310.0], 310.0), ([28.0, 35.0], 31.5), ([3e5, 3.3e5, 2.7e5], 3e5)],
)
def test_a_new_series_is_forecast_at_its_level(values: list[float], near: float) -> None:
    with pytest.warns(ForecastWarning, match="series 'new' is too short for every form.* other"):
        forecast = Forecaster().fit(make_shops(values)).forecast(3)
    at = forecast.ids.index("new")
    low, high = (end[at] for end in forecast.interval(0.95))
    assert (abs(forecast.median()[at] - near) < 0.1 * near).all()
    # Of counts of 30: noise of 18%, of the next value and of the level, which one to three say.
    spread = 0.18 * np.sqrt(1.0 + 1.0 / len(values))
    assert (0.6 * spread * near < (high - low) / 4.0).all()
    assert ((high - low) / 4.0 < 1.6 * spread * near).all()
    paths = forecast.rvs(200, rng=0)[:, at]
    assert (abs(np.median(paths, axis=0) - near) < 0.15 * near).all()


@pytest.mark.parametrize("values", [[0.0], [-5.0, 3.0]])
def test_a_level_that_is_no_scale_is_a_shift(values: list[float]) -> None:
    with pytest.warns(ForecastWarning, match="'new'"):
        forecast = Forecaster().fit(make_shops(values)).forecast(3)
    at = forecast.ids.index("new")
    assert (abs(forecast.median()[at] - np.mean(values)) < 4.0).all()
    assert (forecast.interval(0.95)[1][at] > 8.0).all()


@pytest.mark.parametrize(
    ("values", "count"), [([], 10), ([31.0], 7), ([31.0, 30.0, 29.0], 3)], ids=str
)
def test_where_nothing_is_known_forecasts_are_nan(values: list[float], count: int) -> None:
    shops = make_shops(values, count)
    plain = {name: shops[name] for name in shops if name != "new"}
    with pytest.warns(ForecastWarning, match="series 'new' is too short.*forecasts are NaN"):
        forecast = Forecaster().fit(shops).forecast(3)
    new, others = forecast.ids.index("new"), [forecast.ids.index(name) for name in plain]
    for found in (
        *(forecast.median(), forecast.mean(), forecast.std(), *forecast.interval(0.5)),
        *(forecast.cdf(30.0), forecast.logpdf(30.0), forecast.crps(30.0)),
        *(forecast.rvs(50, rng=0)[0], forecast.total().median()),
    ):
        assert np.isnan(found[new]).all()
        assert np.isfinite(found[others]).all()
    np.testing.assert_allclose(
        forecast.median()[others], Forecaster().fit(plain).forecast(3).median(), rtol=1e-9
    )


def test_some_series_are_forecast_as_all_are() -> None:
    model = Forecaster().fit(make_shops([31.0]))
    with pytest.warns(ForecastWarning, match="'new'"):
        whole = model.forecast(3)
    part = model.forecast(3, series=["new", "s3"])
    assert part.ids == ("s3", "new") or part.ids == ("new", "s3")
    for name in part.ids:
        for mine, all_of in zip(part.interval(0.9), whole.interval(0.9), strict=True):
            np.testing.assert_allclose(
                mine[part.ids.index(name)], all_of[whole.ids.index(name)], rtol=1e-9
            )
    assert part.rvs(5, rng=0).shape == (5, 2, 3)


def test_a_new_series_begins_in_a_stream() -> None:
    shops = make_shops([31.0, 29.0, 28.0, 35.0, 33.0, 30.0])
    model = Forecaster(forms=[Form(1, (1, 2)), Form()]).fit(
        {name: one[:50] for name, one in shops.items() if name != "new"}
    )
    progress = model.forecast_then_learn({name: one[50:] for name, one in shops.items()}, h=2)
    found = progress.median[:, progress.ids.index("new"), 0]
    assert np.isnan(found[:5]).all()  # before its first value
    assert (abs(found[5:] - 31.0) < 8.0).all()
    assert np.isfinite(progress.median[:, progress.ids.index("s0"), 0]).all()
    scores = progress.by_step()
    assert np.isfinite([scores["mae"], scores["crps"]]).all()


def test_a_signal_that_was_hardly_seen_stops_no_vector() -> None:
    rng = np.random.default_rng(0)
    signals = {"a": rng.normal(size=80), "b": rng.normal(size=80)}
    new = np.where(np.arange(80) > 77, 3.0, np.nan)
    alone = VectorAutoregression(lags=2).fit(signals).forecast(3)
    with pytest.warns(ForecastWarning, match="series 'new' is too short"):
        beside = VectorAutoregression(lags=2).fit(signals | {"new": new}).forecast(3)
    assert beside.ids == ("a", "b", "new")
    np.testing.assert_allclose(beside.median()[:2], alone.median(), rtol=0.01, atol=0.01)
    assert np.isnan(beside.median()[2]).all()
    with pytest.raises(ValueError, match="series 'none' has 0 values"):
        VectorAutoregression(lags=2).fit({"none": np.full(80, np.nan)})
