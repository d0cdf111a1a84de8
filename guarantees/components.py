"""Components of forecasts by default: what intervals of trends, seasons and holidays hold."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from guarantees.check import Check
from posterity.forecasting import Forecaster, ForecastWarning
from posterity.forecasting.holidays import Events
from posterity.forecasting.reading import read

Array = NDArray[np.float64]
ENDS = "2025-12-17", "2026-04-19"
DAYS, MONTHS = 28, 12


def make_trend(rng: np.random.Generator, n: int, kind: str) -> Array:
    """A level that stays, walks or rises."""
    moved = {
        "stays": np.zeros(n),
        "walks": np.cumsum(rng.normal(0.0, 2.0, n)),
        "rises": 0.1 * np.arange(n),
    }
    return 200.0 + moved[kind]


def components(
    rng: np.random.Generator, *, what: str, kind: str, n: int, period: int
) -> tuple[int, int]:
    """Intervals of one component: in the steps that come, of holidays on the days that have one."""
    steps = DAYS if period == 7 else MONTHS
    times = (
        pd.date_range(
            end=pd.Timestamp(ENDS[rng.integers(2)]) + pd.Timedelta(days=DAYS), periods=n + steps
        )
        if period == 7
        else pd.date_range("2010-01-01", periods=n + steps, freq="MS")
    )
    trend = make_trend(rng, n + steps, kind)
    season = rng.normal(0.0, 20.0 if period == 7 else 10.0, period)
    season = (season - season.mean())[np.arange(n + steps) % period]
    effects, noise = np.zeros(n + steps), rng.normal(0.0, 8.0 if period == 7 else 4.0, n + steps)
    if period == 7:
        panel = read(pd.DataFrame({"ds": times, "y": noise}))
        known = Events.of("DE", None, panel)
        single = known.find_holidays(0)[1:]
        columns = known.add_to(panel).columns[0][:, single]
        effects = columns @ rng.normal(-60.0, 25.0, len(single))
    y = pd.Series(trend + season + effects + noise, index=times)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ForecastWarning)
        model = Forecaster(holidays="DE" if period == 7 else None).fit(y[:n])
        parts = model.forecast(steps).components()
    low, high = parts[f"season {period}" if what == "season" else what].interval(0.95)
    truth = {"trend": trend, "season": season, "holidays": effects}[what][n:]
    counted = truth != 0.0
    held = (low <= truth) & (truth <= high)
    return int(held[counted].sum()), int(counted.sum())


def checks() -> list[Check]:
    """Levels that stay, walk and rise, with a week and holidays, and months."""
    days = [
        ("trend", kind, n, 7, lowest)
        for kind, n, lowest in (
            ("stays", 400, 0.94), ("stays", 1096, 0.90), ("walks", 400, 0.85),
            ("walks", 1096, 0.80), ("rises", 1096, 0.92),
        )
    ]  # fmt: skip
    seasons = [
        ("season", kind, n, 7, 0.88) for kind in ("stays", "walks") for n in (150, 400, 1096)
    ]
    holidays = [("holidays", kind, 1096, 7, 0.84) for kind in ("stays", "walks", "rises")]
    months = [("trend", "walks", 120, 12, 0.78), ("season", "walks", 120, 12, 0.88)]
    names = {7: "days with a week and holidays", 12: "months"}
    return [
        Check(
            "Components of forecasts",
            f"{what}, {n:,} {names[period]}, the level {kind}",
            0.95,
            partial(components, what=what, kind=kind, n=n, period=period),
            replicates=30,
            lowest=lowest,
            highest=1.0,
        )
        for what, kind, n, period, lowest in (*days, *seasons, *holidays, *months)
    ]
