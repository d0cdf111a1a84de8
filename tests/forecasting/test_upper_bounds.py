"""Forecasts end at an upper bound, as shares do, and series that are free to pass it have none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.signal import lfilter
from scipy.stats import lognorm, norm

from posterity.forecasting import Forecaster, ForecastWarning, Form
from posterity.forecasting.bounds import Bounds, find_bounds
from posterity.forecasting.marginals import Component, Marginals

Array = NDArray[np.float64]


def shares(seed: int = 0, n: int = 120) -> Array:
    """AR(1) of log odds around .92."""
    odds = lfilter([0.4], [1.0, -0.9], np.random.default_rng(seed).normal(size=n))
    return np.asarray(1.0 / (1.0 + np.exp(-2.5 - odds)))


def find_top(values: Array, periods: tuple[int, ...] = ()) -> float:
    return float(find_bounds(values[None], "auto", "auto", periods).values[1, 0, -1])


# ---- what is found -------------------------------------------------------------------------------


def test_shares_have_no_forecasts_above_one() -> None:
    """Quantiles, probabilities, moments, scores, paths and sums."""
    forecast = Forecaster().fit(shares()).forecast(12)
    free = Forecaster(upper_bound=None).fit(shares()).forecast(12)
    assert (free.cdf(1.0)[1:] < 0.9).all()
    assert (forecast.quantile(0.999) == 1.0).all()
    assert (forecast.cdf(1.0) == 1.0).all()
    assert (forecast.logpdf(1.01) == -np.inf).all()
    paths = forecast.rvs(40_000, rng=1)
    assert paths.max() == 1.0
    np.testing.assert_allclose(forecast.mean(), paths.mean(axis=0), atol=0.001)
    np.testing.assert_allclose(forecast.std(), paths.std(axis=0), rtol=0.02)
    np.testing.assert_allclose(forecast.logpdf(1.0), np.log((paths == 1.0).mean(axis=0)), atol=0.05)
    apart = np.abs(paths[:20_000] - paths[20_000:]).mean(axis=0)
    for y in (0.8, 0.95, 1.0, 1.2):
        expected = np.abs(paths - y).mean(axis=0) - 0.5 * apart
        np.testing.assert_allclose(forecast.crps(y), expected, atol=0.001)
    total, sums = forecast.total(), paths.sum(axis=1)
    np.testing.assert_allclose(total.mean(), forecast.mean().sum(), rtol=1e-3)
    np.testing.assert_allclose(total.std(), sums.std(), rtol=0.03)
    assert total.quantile(1.0 - 1e-6)[0] <= 12.0


def test_percentages_end_at_a_hundred() -> None:
    assert find_top(100.0 * shares()) == 100.0
    assert find_top(np.round(100.0 * np.sqrt(shares()))) == 100.0
    often = np.minimum(100.0, 99.0 + 2.0 * np.random.default_rng(0).normal(size=80))
    assert find_top(often) == 100.0


def test_shares_around_a_half_end_at_both() -> None:
    found, free = [], []
    for seed in range(40):
        noise = np.random.default_rng(seed).normal(size=170)
        odds = lfilter([0.8], [1.0, -0.9], noise)[50:]
        walk = 0.5 + 0.2 * odds / np.abs(odds).max()
        found.append(np.isfinite(find_bounds(1.0 / (1.0 + np.exp(-odds))[None]).values[:, 0, -1]))
        free += [find_top(walk), find_top(0.5 + 0.15 * np.clip(noise, -3.0, 3.0))]
    assert np.mean(found) > 0.85
    assert not np.isfinite(free).any()


def test_series_that_are_free_to_pass_have_no_bound() -> None:
    """Prices near 90, seasons, indicators, and what was divided by its largest value."""
    rng, t = np.random.default_rng(0), np.arange(150)
    found = 0
    for _ in range(60):
        noise = rng.normal(size=(5, 150))
        free = [
            85.0 * np.exp(0.01 * np.cumsum(noise[0])),
            85.0 + np.cumsum(noise[1]),
            90.0 + lfilter([2.0], [1.0, -0.8], noise[2]),
            75.0 + 14.0 * np.sin(2.0 * np.pi * t / 7) + 2.0 * noise[3],
            rng.poisson(80, 150).astype(np.float64),
            np.exp(0.03 * np.cumsum(noise[4])),
        ]
        free[-1] /= free[-1].max()
        for y in free:
            if y.min() >= 0.0 and y.max() <= 100.0:
                found += np.isfinite(find_top(y, (7,)))
    assert found == 0
    assert find_top(rng.integers(0, 2, 100).astype(np.float64)) == np.inf
    assert find_top(np.full(50, 100.0)) == np.inf


@given(seed=st.integers(0, 50), rows=st.integers(1, 119), missing=st.floats(0.0, 0.3))
@settings(max_examples=40, deadline=None)
def test_bounds_before_a_row_follow_from_rows_before_it(
    seed: int, rows: int, missing: float
) -> None:
    y = shares(seed)
    y[np.random.default_rng(seed).random(len(y)) < missing] = np.nan
    whole, part = find_bounds(y[None]), find_bounds(y[None, :rows])
    np.testing.assert_array_equal(whole.values[:, :, : rows + 1], part.values)
    np.testing.assert_array_equal(whole.often[:, :, : rows + 1], part.often)


def test_a_value_above_ends_the_bound() -> None:
    y = np.append(shares(), [1.2, 0.9, 0.95])
    assert find_top(y) == np.inf
    progress = (
        Forecaster(seasonality=(), upper_bound=1.0)
        .fit(y[:110])
        .forecast_then_learn(y[110:], h=1, level=0.999)
    )
    assert (progress.high[:11] <= 1.0).all()
    assert (progress.high[11:] > 1.0).all()


def test_an_upper_bound_is_given_or_left_out() -> None:
    y = -np.random.default_rng(3).poisson(0.5, 100).astype(np.float64)

    def highest(bound: float | str | None) -> float:
        forecast = Forecaster(upper_bound=bound).fit(y).forecast(3)
        return float(forecast.quantile(1.0 - 1e-6).max())

    assert highest(0.0) == 0.0
    assert highest("auto") > 0.0
    assert highest(None) > 0.0
    with pytest.warns(ForecastWarning, match="upper_bound is -1, and the series has"):
        assert highest(-1.0) > 0.0


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"upper_bound": np.inf}, 'upper_bound is inf: give "auto", a finite number above'),
        ({"upper_bound": "none"}, "upper_bound is 'none'"),
        ({"lower_bound": "0"}, "lower_bound is '0': give \"auto\", a finite number below"),
        ({"lower_bound": 1.0, "upper_bound": 1.0}, "the lower one must be below"),
    ],
)
def test_bounds_that_are_none_are_refused(bounds: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Forecaster(**bounds).fit(shares())  # type: ignore[arg-type]


def test_means_and_variances_stay_where_the_top_is_often_reached() -> None:
    """Of two ends, nearly."""
    rng, forms = np.random.default_rng(1), [Form(0, (1, 2, 3))]
    often = np.minimum(100.0, 99.0 + 2.0 * rng.normal(size=200))
    ends, free = (
        Forecaster(forms=forms, upper_bound=bound).fit(often).forecast(7)
        for bound in ("auto", None)
    )
    assert (ends.cdf(99.999) < free.cdf(99.999) - 0.05).all()
    np.testing.assert_allclose(ends.mean(), free.mean(), rtol=1e-4)
    np.testing.assert_allclose(ends.std(), free.std(), rtol=0.01)
    for rate in (0.2, 0.5, 0.9):
        y = (rng.random((9, 120)) < rate).astype(np.float64)
        forecast = Forecaster(forms=forms, upper_bound=1.0).fit(dict(enumerate(y))).forecast(7)
        assert forecast.mean().mean() == pytest.approx(y.mean(), abs=0.06)
        assert forecast.std().mean() == pytest.approx(y.std(), rel=0.3)


# ---- the censored distributions ------------------------------------------------------------------

numbers = st.floats(-3.0, 3.0)


@given(
    means=st.lists(numbers, min_size=2, max_size=4),
    sd=st.floats(0.1, 3.0),
    low=st.floats(-4.0, 0.0),
    width=st.floats(0.5, 5.0),
    both=st.sampled_from([(True, False), (False, True), (True, True)]),
    often=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_an_upper_bound_is_the_mirror_of_a_lower_one(
    means: list[float],
    sd: float,
    low: float,
    width: float,
    both: tuple[bool, bool],
    often: bool,
) -> None:
    free = np.array([-np.inf, np.inf])
    ends = np.where(both, [low, low + width], free)[:, None]
    marks = np.array(both)[:, None] & often
    centres = np.array(means)[None, :, None]
    pair = []
    for sign, values, reached in ((1.0, ends, marks), (-1.0, -ends[::-1], marks[::-1])):
        part = Component(sign * centres, np.full(centres.shape, sd), log=False)
        pair.append(Marginals([part], np.ones((1, 1))).within(Bounds(values, reached)))
    one, other = pair
    close = {"rtol": 1e-6, "atol": 1e-8}
    np.testing.assert_allclose(one.mean(), -other.mean(), **close)
    np.testing.assert_allclose(one.variance(), other.variance(), **close)
    np.testing.assert_allclose(one.at_bounds(), other.at_bounds()[::-1], **close)
    np.testing.assert_allclose(one.quantile(0.3), -other.quantile(0.7), **close)
    for y in np.array([[[low]], [[low + 0.4]], [[low + width]], [[9.0]]]):
        np.testing.assert_allclose(one.crps(y), other.crps(-y), rtol=2e-3, atol=1e-4)
        np.testing.assert_allclose(np.exp(one.logpdf(y)), np.exp(other.logpdf(-y)), **close)


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("top", [0.3, 1.5, 4.0])
def test_moments_between_two_bounds_are_the_integrals(log: bool, top: float) -> None:
    means, sd = np.array([-0.5, 0.7]), 0.8
    part = Component(means[None, :, None], np.full((1, 2, 1), sd), log)
    mean, variance = part.censored_moments(np.array([[0.0], [top]]))
    laws = [lognorm(sd, scale=np.exp(m)) if log else norm(m, sd) for m in means]

    def moment(power: int) -> float:
        """The integral of the tail, as values are not negative."""

        def tail(x: float) -> float:
            return float(power * x ** (power - 1) * np.mean([law.sf(x) for law in laws]))

        return float(quad(tail, 0.0, top, epsabs=1e-12)[0])

    assert mean[0, 0] == pytest.approx(moment(1), rel=1e-8)
    assert variance[0, 0] == pytest.approx(moment(2) - moment(1) ** 2, rel=1e-6)


@pytest.mark.parametrize(("name", "bound"), [("upper_bound", 99.0), ("lower_bound", 101.0)])
def test_a_bound_that_values_pass_is_said(name: str, bound: float) -> None:
    y = 100.0 + np.random.default_rng(0).normal(size=60)
    with pytest.warns(ForecastWarning, match=f"{name} is {bound:g}, and the series has"):
        Forecaster(forms=[Form()], **{name: bound}).fit(y).forecast(2)
