"""Forecasts of a single series with the defaults: what intervals of the next twelve steps hold."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from guarantees.check import Check
from posterity.calibration import ConformalForecaster
from posterity.forecasting import Forecaster, ForecastWarning, Form, reconcile

Array = NDArray[np.float64]
HORIZON = 12


def autoregression(rng: np.random.Generator, n: int) -> Array:
    """z_t = 0.8 z_{t-1} + noise."""
    y = np.zeros(n + 50)
    noise = rng.normal(size=n + 50)
    for t in range(1, n + 50):
        y[t] = 0.8 * y[t - 1] + noise[t]
    return y[50:]


def walk(rng: np.random.Generator, n: int) -> Array:
    """A random walk."""
    return np.cumsum(rng.normal(size=n))


def season(rng: np.random.Generator, n: int) -> Array:
    """A season of twelve around an autoregression."""
    phase = rng.uniform(0.0, 2.0 * np.pi)
    wave = 5.0 * np.sin(2.0 * np.pi * np.arange(n) / 12.0 + phase)
    return 50.0 + wave + autoregression(rng, n)


def steps(
    rng: np.random.Generator, *, make: Callable[..., Array], n: int, periods: tuple[int, ...]
) -> tuple[int, int]:
    """Intervals of each of the next twelve steps."""
    y = make(rng, n + HORIZON)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ForecastWarning)
        forecast = Forecaster(seasonality=periods).fit(y[:n]).forecast(HORIZON)
    low, high = forecast.interval(0.95)
    return int(np.sum((low <= y[n:]) & (y[n:] <= high))), HORIZON


def total(rng: np.random.Generator, *, make: Callable[..., Array], n: int) -> tuple[int, int]:
    """The interval of the sum of the next twelve."""
    y = make(rng, n + HORIZON)
    sum_ = Forecaster(seasonality=()).fit(y[:n]).forecast(HORIZON).total()
    low, high = sum_.interval(0.95)
    return int(low[0] <= y[n:].sum() <= high[0]), 1


def with_sales(rng: np.random.Generator) -> tuple[int, int]:
    """Intervals of the next twelve steps, some of which are rare sales whose effect is learned."""
    n = 120
    sales = (rng.random((n + HORIZON, 1)) < 0.1).astype(float)
    y = season(rng, n + HORIZON) + 30.0 * sales[:, 0]
    forecast = Forecaster(seasonality=12).fit(y[:n], sales[:n]).forecast(HORIZON, sales[n:])
    low, high = forecast.interval(0.95)
    return int(np.sum((low <= y[n:]) & (y[n:] <= high))), HORIZON


def flawed(rng: np.random.Generator) -> tuple[int, int]:
    """Intervals of the next twelve steps after a glitch, and with a value of the season missing."""
    n = 120
    y = season(rng, n + HORIZON)
    learned = y[:n].copy()
    learned[rng.integers(30, n - 15)] = 9999.0
    learned[n - 12] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ForecastWarning)
        low, high = Forecaster(seasonality=12).fit(learned).forecast(HORIZON).interval(0.95)
    return int(np.sum((low <= y[n:]) & (y[n:] <= high))), HORIZON


def counts(rng: np.random.Generator, *, rate: float) -> tuple[int, int]:
    """Intervals of the next twelve counts, a negative binomial of this mean and dispersion 1."""
    n = 120
    y = rng.negative_binomial(1.0, 1.0 / (1.0 + rate), size=n + HORIZON).astype(float)
    low, high = Forecaster(seasonality=()).fit(y[:n]).forecast(HORIZON).interval(0.95)
    return int(np.sum((low <= y[n:]) & (y[n:] <= high))), HORIZON


def reconciled(rng: np.random.Generator, *, common: float) -> tuple[int, int]:
    """Intervals of the sum of four random walks, from forecasts of all five that are made agree."""
    n, h = 100, 6
    noise = rng.normal(size=(4, n + h)) + common * rng.normal(size=n + h)
    walks = np.cumsum(noise, axis=1)
    parts = dict(zip("abcd", walks[:, :n], strict=True))
    forecast = Forecaster(seasonality=()).fit(parts | {"all": walks[:, :n].sum(axis=0)}).forecast(h)
    agreed = reconcile(forecast, {"all": list("abcd")})
    row, true = agreed.ids.index("all"), walks[:, n:].sum(axis=0)
    low, high = (end[row] for end in agreed.interval(0.95))
    return int(np.sum((low <= true) & (true <= high))), h


def moved(rng: np.random.Generator) -> tuple[int, int]:
    """Intervals of three steps of a walk whose noise trebles, moved by what was missed."""
    y = np.cumsum(np.where(np.arange(330) < 80, 1.0, 3.0) * rng.normal(size=330))
    walk = Forecaster(forms=[Form(drift=False)], n_draws=8).fit(y[:80])
    progress = ConformalForecaster(walk, horizon=3).forecast_then_learn(y[80:])
    held = (progress.low <= progress.outcomes) & (progress.outcomes <= progress.high)
    known = np.isfinite(progress.outcomes)
    return int(held[known].sum()), int(known.sum())


def checks() -> list[Check]:
    """Series short and long, with a season and without."""
    settings = [
        ("autoregression", autoregression, 40, (), 0.93, 0.99),
        ("autoregression", autoregression, 120, (), 0.92, 0.98),
        ("random walk", walk, 40, (), 0.91, 0.98),
        ("random walk", walk, 120, (), 0.91, 0.98),
        ("season of 12", season, 60, (12,), 0.92, 0.99),
    ]
    each = [
        Check(
            "Forecasts of the next 12 steps",
            f"{name}, {n} values",
            0.95,
            partial(steps, make=make, n=n, periods=periods),
            replicates=150,
            lowest=lowest,
            highest=highest,
        )
        for name, make, n, periods, lowest, highest in settings
    ]
    whole = Check(
        "Forecasts of the sum of the next 12 steps",
        "random walk, 80 values",
        0.95,
        partial(total, make=walk, n=80),
        replicates=200,
        lowest=0.90,
        highest=0.99,
    )
    conformal = Check(
        "Conformal forecasts (ConformalForecaster)",
        "random walk, its noise trebles after 80 of 330 values",
        0.95,
        moved,
        replicates=5,
        lowest=0.92,
        highest=0.97,
    )
    others = [
        Check(
            "Forecasts of the next 12 steps",
            setting,
            0.95,
            task,
            replicates=150,
            lowest=0.92,
            highest=0.99,
        )
        for setting, task in (
            ("season of 12, 120 values, sales on a tenth of the days", with_sales),
            ("season of 12, 120 values, a glitch and a value missing a season back", flawed),
            ("counts of mean 0.3, 120 values", partial(counts, rate=0.3)),
            ("counts of mean 3, 120 values", partial(counts, rate=3.0)),
        )
    ]
    sums = [
        Check(
            "Reconciled forecasts of the sum of four random walks",
            f"100 values, {name}",
            0.95,
            partial(reconciled, common=common),
            replicates=100,
            lowest=0.90,
            highest=0.98,
        )
        for name, common in (("independent", 0.0), ("with a common factor", 1.0))
    ]
    return [*each, *others, whole, *sums, conformal]
