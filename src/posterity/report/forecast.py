"""The report on a forecast: what comes, and would it have been right?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from posterity.aliases import AnyArray, Array
from posterity.forecasting import CoherentForecast, Forecast, Forecaster
from posterity.forecasting.effects import compute_effects
from posterity.forecasting.steps import StepsAhead
from posterity.report import charts, words
from posterity.report.page import Html, Page, cards, table, tag
from posterity.report.validation import About, describe_command, problems

LEVELS = (0.8, 0.95)
# Series that are drawn, values before the forecast in horizons, and rows in tables of series.
MOST_DRAWN, HORIZONS_BEFORE, MOST_LISTED = 12, 3, 200
# Series whose components are drawn.
MOST_EXPLAINED = 2


def forecast_report(
    forecaster: Forecaster, forecast: Forecast, about: About, sums: CoherentForecast | None = None
) -> str:
    """Make a self-contained HTML page about a forecast.

    Parameters
    ----------
    forecaster : Forecaster
        What has learned the series. As it was one horizon ago it forecasts what came since.
    forecast : Forecast
        What it says now.
    about : About
    sums : CoherentForecast, optional
        The same with sums of the series.

    Examples
    --------
    >>> forecaster = Forecaster(seasonality=()).fit(np.sin(np.arange(60.0)))
    >>> html = forecast_report(forecaster, forecaster.forecast(6), About(title="Next <six>"))
    >>> "<h1>Next &lt;six&gt;</h1>" in html
    True
    """
    page = Page(about.title)
    held = _make_past_forecast(forecaster, forecast.horizon)
    page.parts.append(cards(_make_cards(forecast, held, about)))
    drawn = [
        _make_fan(page, forecaster, forecast, number, about)
        for number in range(min(len(forecast.ids), MOST_DRAWN))
    ]
    if len(forecast.ids) > MOST_DRAWN:
        drawn.append(tag("p", f"Drawn are the first {MOST_DRAWN} of {len(forecast.ids):,} series."))
    page.section("What comes?", *drawn)
    page.section(
        f"The sum of all {forecast.horizon} steps",
        _list_sums(forecast if sums is None else sums, about),
    )
    page.section("What is it the sum of?", *_draw_components(page, forecast, about))
    page.section("What does each of these add?", *_list_effects(forecast, about))
    page.section("Would it have been right?", *_describe_trial(held, forecast.horizon))
    page.section("What is averaged?", _describe_forms(forecast))
    page.section("Which values are unusual?", *_list_outliers(forecaster, forecast, about))
    page.section("Problems found in the data", problems(about))
    describe_command(page, about)
    return page.html()


# ---- inner ---------------------------------------------------------------------------------------


def _make_past_forecast(forecaster: Forecaster, h: int) -> dict[str, Array] | None:
    """The forecast of h rows ago with the outcomes; None where there were too few rows for one.

    Scores (S, h) by name: errors of the forecast, and of the naive one of the last season or value.
    """
    values = forecaster.values_
    if h >= values.shape[1] or {*forecaster.exogenous_} - {forecaster.censored}:
        return None
    try:
        then = forecaster.before(h)
    except ValueError:
        return None
    forecast, actual = then.forecast(h), values[:, -h:]
    shape = actual.shape
    low, high = (np.reshape(end, shape) for end in forecast.interval(0.95))
    season = max((round(m) for m in then.periods_ if m < values.shape[1] - h), default=1)
    steps = values.shape[1] - h - season + np.arange(h) % season
    observed = np.isfinite(actual)
    return {
        "error": np.abs(np.reshape(forecast.median(), shape) - actual),
        "naive": np.abs(values[:, steps] - actual),
        "held": np.where(observed, (low <= actual) & (actual <= high), np.nan),
    }


def _make_cards(
    forecast: Forecast, held: dict[str, Array] | None, about: About
) -> list[tuple[str, str, str]]:
    times = np.asarray(forecast.times).reshape(len(forecast.ids), -1)
    found = [
        ("Series", f"{len(forecast.ids):,}", about.target),
        ("Steps ahead", f"{forecast.horizon:,}", f"up to {_format_time(times.max())}"),
    ]
    if held is not None:
        error, naive = np.nanmean(held["error"]), np.nanmean(held["naive"])
        found += [
            ("Mean absolute error", f"{error:.4g}",
             f"of the last {forecast.horizon} steps, held back; the naive forecast: {naive:.4g}"),
            ("95% intervals held", f"{100 * np.nanmean(held['held']):.0f}%", "of these"),
        ]  # fmt: skip
    return found


def _make_fan(
    page: Page, forecaster: Forecaster, forecast: Forecast, number: int, about: About
) -> Html:
    """History, median and bands of one series."""
    h, name = forecast.horizon, _name_series(forecast, about)[number]
    times = np.asarray(forecast.times).reshape(-1, h)[number]
    past = forecaster.values_[number, -HORIZONS_BEFORE * max(h, 12) :]
    before = forecaster.times_[number, -len(past) :]
    steps = _Steps(
        times,
        np.reshape(forecast.median(), (-1, h))[number],
        {level: np.reshape(forecast.interval(level), (2, -1, h))[:, number] for level in LEVELS},
    )
    known = charts.rows_of(t=[_time(t) for t in before], value=past)
    spec = charts.fan(known + steps.rows(), LEVELS, about.unit, dated=steps.dated)
    caption = f"{name}: what came (grey), the median, and bands of 80% and 95%."
    return page.chart(spec, caption, steps.table("median", f"Forecast of {name}"))


@dataclass(frozen=True)
class _Steps:
    """Times (h,) of steps ahead, their middles (h,), and ends (2, h) by level."""

    times: AnyArray
    middle: Array
    ends: dict[float, Array]

    @property
    def dated(self) -> bool:
        return self.times.dtype.kind == "M"

    def rows(self) -> charts.Rows:
        """For a chart."""
        ends = {
            f"{end}{100 * level:g}": each
            for level, both in self.ends.items()
            for end, each in zip(("low", "high"), both, strict=True)
        }
        return charts.rows_of(t=[_time(t) for t in self.times], median=self.middle, **ends)

    def table(self, middle: str, caption: str) -> Html:
        """For readers."""
        rows = [
            (_format_time(self.times[k]), f"{self.middle[k]:.5g}",
             *(f"{low[k]:.5g}, {high[k]:.5g}" for low, high in self.ends.values()))
            for k in range(len(self.times))
        ]  # fmt: skip
        header = ("time", middle, *(f"{100 * level:g}% from, to" for level in self.ends))
        return table(header, rows, caption)


def _name_series(forecast: StepsAhead, about: About) -> list[str]:
    """Names of the series; one that came without a name has that of the target."""
    found = [str(name) for name in forecast.ids]
    return [about.target] if found == ["y"] else found


def _format_time(time: Any) -> str:
    """Without a time of day where that is midnight."""
    return str(time).removesuffix("T00:00:00")


def _time(time: Any) -> Any:
    """Return a time for JSON: a number, or a time of UTC as text."""
    return f"{time.astype('datetime64[s]')}Z" if isinstance(time, np.datetime64) else time.item()


def _draw_components(page: Page, forecast: Forecast, about: About) -> list[Html]:
    """Trend, seasons, holidays and columns of the first series, each with its interval."""
    some = forecast.select(forecast.ids[:MOST_EXPLAINED])
    parts, drawn = some.components(), []
    for number, name in enumerate(_name_series(some, about)):
        times = np.asarray(some.times).reshape(-1, some.horizon)[number]
        for what, part in parts.items():
            mean, low, high = (
                np.reshape(one, (-1, some.horizon))[number]
                for one in (part.mean(), *part.interval())
            )
            steps, title = _Steps(times, mean, {0.95: np.stack([low, high])}), f"{name}: {what}"
            how: dict[str, Any] = {"dated": steps.dated, "title": title, "height": 150}
            spec = charts.fan(steps.rows(), (0.95,), about.unit, **how)
            caption = f"What the forecast of {name} is the sum of: {what}, with a band of 95%."
            drawn.append(page.chart(spec, caption, steps.table("mean", f"{what} of {name}")))
    if len(forecast.ids) > MOST_EXPLAINED:
        drawn.append(tag("p", f"Of the first {MOST_EXPLAINED} of {len(forecast.ids):,} series."))
    return drawn


def _list_effects(forecast: Forecast, about: About) -> list[Html]:
    """Each column, level, holiday and event, with an interval, of the first series."""
    some = forecast.select(forecast.ids[:MOST_EXPLAINED])
    if some.explanation is None:
        return []
    found = compute_effects(some.explanation, some.ids, 0.95)
    names = np.repeat(_name_series(some, about), len(found["effect"]) // len(some.ids))
    rows = [
        (name, effect, f"{mean:.4g}", f"{low:.4g}, {high:.4g}")
        for name, effect, mean, low, high in zip(
            names, *(found[key] for key in ("effect", "mean", "low", "high")), strict=True
        )
    ]
    if not rows:
        return [tag("p", "There are no columns, holidays or events.")]
    said = (
        "What one unit more of a column adds to a step, a level beside the most common one, a "
        "holiday, or an event."
    )
    header = ("series", "effect", "adds", "95% from, to")
    return [tag("p", said), table(header, rows, "Effects")]


def _list_outliers(forecaster: Forecaster, forecast: Forecast, about: About) -> list[Html]:
    """Values that are ignored, and those where a level moves, the last ones."""
    found, steps = np.argwhere(forecaster.outliers_), forecaster.steps_
    values, times, names = forecaster.values_, forecaster.times_, _name_series(forecast, about)
    rows = [
        (names[series], _format_time(times[series, place]), f"{values[series, place]:.5g}",
         "a new level begins" if steps[series, place] else "is left out")
        for series, place in found[-MOST_LISTED:]
    ]  # fmt: skip
    if not rows:
        return [tag("p", "There are none.")]
    return [table(("series", "time", "value", "what"), rows, "Values far from what was expected")]


def _list_sums(forecast: Forecast | CoherentForecast, about: About) -> Html:
    total = forecast.total()
    ends = {level: total.interval(level) for level in LEVELS}
    middle = np.reshape(total.median(), -1)
    rows = [
        (name, f"{middle[k]:.5g}",
         *(f"{np.reshape(low, -1)[k]:.5g}, {np.reshape(high, -1)[k]:.5g}"
           for low, high in ends.values()))
        for k, name in enumerate(_name_series(forecast, about)[:MOST_LISTED])
    ]  # fmt: skip
    return table(("series", "median", *(f"{level:.0%} from, to" for level in LEVELS)), rows)


def _describe_trial(held: dict[str, Array] | None, h: int) -> list[Html]:
    if held is None:
        message = "Too few rows, or exogenous columns: nothing was held back to try it on."
        return [tag("p", message)]
    n = int(np.isfinite(held["error"]).sum())
    share = float(np.nanmean(held["held"]))
    lines = [
        f"As it was {h} rows ago it forecast the {n:,} values that have come since.",
        f"95% intervals held {100 * share:.1f}% of them: "
        f"{words.judge_coverage(0.95, share, n)}. Values of one series are correlated, so a few "
        "series say little about coverage.",
    ]
    steps = np.unique(np.linspace(0, h - 1, min(h, 8)).astype(int))
    rows = [
        (f"{k + 1}", *(_mean(held[name][:, k]) for name in ("error", "naive")),
         f"{100 * np.nanmean(held['held'][:, k]):.0f}%" if np.isfinite(held["held"][:, k]).any()
         else "none")
        for k in steps
    ]  # fmt: skip
    header = ("steps ahead", "mean absolute error", "of the naive forecast", "95% held")
    return [*(tag("p", line) for line in lines), table(header, rows)]


def _mean(errors: Array) -> str:
    return f"{np.nanmean(errors):.4g}" if np.isfinite(errors).any() else "none"


def _describe_forms(forecast: Forecast) -> Html:
    weights = np.reshape(forecast.weights, (len(forecast.ids), -1)).mean(axis=0)
    order = np.argsort(-weights)
    rows = [(str(forecast.forms[k]), f"{100 * weights[k]:.1f}%") for k in order]
    return table(("autoregression", "counts for"), rows, "Mean over series, by past forecasts")
