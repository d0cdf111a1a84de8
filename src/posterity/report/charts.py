"""Vega-Lite specifications of the charts in a report.

Names and values from the data are only ever data here: never field names, never expressions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from posterity.evaluation import CoefficientPath, ValidationResult
from posterity.evaluation.residuals import Residuals

Spec = dict[str, Any]
Rows = list[dict[str, Any]]

# Okabe and Ito (2008), as in the figures; dashes tell them apart in black and white.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#A37200", "#3A7CA5"]
DASHES = [[1, 0], [6, 3], [8, 3, 2, 3], [2, 2], [10, 4], [4, 4, 1, 4]]
CONFIG = {
    "font": "system-ui, sans-serif",
    "axis": {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal",
             "labelSeparation": 6, "labelColor": "#333", "titleColor": "#333",
             "gridColor": "#e4e4e4"},
    "legend": {"labelFontSize": 12, "titleFontSize": 12, "orient": "top", "labelLimit": 400,
               "columns": 2,
               "symbolSize": 200, "symbolOpacity": 1},
    "view": {"stroke": None},
}  # fmt: skip
VEGA_LITE = "6.4"
ROWS_AXIS = {"title": "rows seen", "format": ",.0f", "tickCount": 8}


def chart(description: str, values: Rows, layers: Sequence[Spec], height: int = 280) -> Spec:
    """A chart as wide as its place, of layers over the same rows."""
    return {
        "$schema": f"https://vega.github.io/schema/vega-lite/v{VEGA_LITE[0]}.json",
        "description": description,
        "width": "container",
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "background": None,
        "config": CONFIG,
        "data": {"values": values},
        "layer": list(layers),
    }


def tooltip(**fields: tuple[str, str]) -> list[Spec]:
    """Return the fields of a tooltip: field = (title, format)."""
    return [
        {
            "field": name,
            "title": title,
            **({"format": form, "type": "quantitative"} if form else {}),
        }
        for name, (title, form) in fields.items()
    ]


def quantity(field: str, title: str | None = None, **more: Any) -> Spec:
    """A channel for a number."""
    return {"field": field, "type": "quantitative", "title": title, **more}


def names(field: str, domain: Sequence[str], *, dashes: bool = False) -> Spec:
    """A channel that tells names apart, by colour or by dashes."""
    values: list[Any] = DASHES if dashes else COLOURS
    picked = [values[i % len(values)] for i in range(len(domain))]
    scale = {"domain": list(domain), "range": picked}
    return {"field": field, "type": "nominal", "title": None, "sort": None, "scale": scale}


def error_along_time(result: ValidationResult, unit: str) -> tuple[Spec, Rows]:
    """Mean error of each stretch, over all rows so far, and the greatest error; drift is shaded."""
    along = result.along
    start = along.row_end - along.n_rows
    so_far = np.cumsum(along.mae * along.n_rows) / along.row_end
    values = [
        {
            "start": int(s),
            "end": int(e),
            "mae": to_json_number(m),
            "max": to_json_number(x),
            "so_far": to_json_number(f),
        }
        for s, e, m, x, f in zip(
            start, along.row_end, along.mae, along.max_error, so_far, strict=True
        )
    ]
    x = quantity("end", axis=ROWS_AXIS, scale={"domain": [0, result.n_rows], "nice": False})
    tooltips = tooltip(
        start=("from row", ",.0f"), end=("to row", ",.0f"), mae=("mean error", ",.4~g"),
        max=("greatest error", ",.4~g"), so_far=("mean error so far", ",.4~g"),
    )  # fmt: skip
    y = f"absolute error ({unit})"
    key = ["each stretch", "all rows so far"]
    layers: list[Spec] = []
    if drift := result.drift_periods():
        periods = [{"start": each.row_start, "end": each.row_end} for each in drift]
        ends = {"x": quantity("start", axis=ROWS_AXIS), "x2": {"field": "end"}}
        layers.append(
            {
                "data": {"values": periods},
                "mark": {"type": "rect", "color": "#dddddd", "aria": False},
                "encoding": ends,
            }
        )
    layers += [
        {
            "transform": [{"calculate": f"'{key[0]}'", "as": "what"}],
            "mark": {"type": "point", "filled": True, "size": 45, "opacity": 0.75},
            "encoding": {"x": x, "y": quantity("mae", y), "color": names("what", key),
                         "tooltip": tooltips},
        },
        {
            "transform": [{"calculate": f"'{key[1]}'", "as": "what"}],
            "mark": {"type": "line", "strokeWidth": 2.5},
            "encoding": {"x": x, "y": quantity("so_far", y), "color": names("what", key)},
        },
    ]  # fmt: skip
    return chart("Mean absolute error along the stream", values, layers), values


def extremes_along_time(result: ValidationResult, unit: str) -> tuple[Spec, Rows]:
    """The greatest error in each stretch: none is averaged away."""
    along = result.along
    start = along.row_end - along.n_rows
    values = [
        {"start": int(s), "end": int(e), "max": to_json_number(x)}
        for s, e, x in zip(start, along.row_end, along.max_error, strict=True)
    ]
    tooltips = tooltip(
        start=("from row", ",.0f"), end=("to row", ",.0f"), max=("greatest error", ",.4~g")
    )
    x = quantity("start", axis=ROWS_AXIS, scale={"domain": [0, result.n_rows], "nice": False})
    mark = {"type": "bar", "color": "#56799a", "stroke": "white", "strokeWidth": 0.3}
    encoding = {"x": x, "x2": {"field": "end"}, "tooltip": tooltips}
    encoding |= {"y": quantity("max", f"greatest error ({unit})"), "y2": {"datum": 0}}
    layer = {"mark": mark, "encoding": encoding}
    return chart("Greatest absolute error in each stretch", values, [layer], 160), values


def coverage_along_time(result: ValidationResult) -> tuple[Spec, Rows]:
    """Share of targets inside their intervals, over all rows so far and by stretch."""
    along = result.along
    scored = along.n_rows - along.n_unscored
    seen = np.maximum(np.cumsum(scored), 1)
    values, key = [], [f"{100 * level:g}%" for level in along.coverage]
    late, lowest = 20 * along.row_end >= result.n_rows, [1.0]
    for name, (level, share) in zip(key, along.coverage.items(), strict=True):
        so_far = np.cumsum(np.where(scored > 0, share, 0.0) * scored) / seen
        spread = 1.96 * np.sqrt(level * (1.0 - level) / seen)
        lowest += [level, float(so_far[late].min())]
        values += [
            {
                "level": name, "end": int(along.row_end[k]), "promised": level,
                "share": to_json_number(share[k]), "so_far": to_json_number(so_far[k]),
                "low": max(level - float(spread[k]), 0.0),
                "high": min(level + float(spread[k]), 1.0),
            }
            for k in range(len(along))
        ]  # fmt: skip
    x = quantity("end", axis=ROWS_AXIS, scale={"domain": [0, result.n_rows], "nice": False})
    # Where it happens: all of the lines, and of the dots what is not far below them.
    bottom = math.floor(10.0 * max(min(lowest) - 0.05, 0.0)) / 10.0
    scale, axis = {"domain": [bottom, 1], "clamp": True}, {"format": ".0%"}
    colour = {**names("level", key), "title": "interval"}
    title = "targets inside the interval"
    tooltips = tooltip(
        level=("interval", ""), end=("up to row", ",.0f"), share=("in this stretch", ".1%"),
        so_far=("all rows so far", ".2%"),
    )  # fmt: skip
    band = {"y": quantity("low", title, scale=scale, axis=axis), "y2": {"field": "high"}}
    layers = [
        {"mark": {"type": "area", "opacity": 0.18}, "encoding": {"x": x, **band, "color": colour}},
        {
            "mark": {"type": "point", "filled": True, "size": 40, "opacity": 0.7},
            "encoding": {"x": x, "y": quantity("share", title, scale=scale, axis=axis),
                         "color": colour, "shape": {"field": "level", "legend": None},
                         "tooltip": tooltips},
        },
        {
            "mark": {"type": "line", "strokeWidth": 2.5},
            "encoding": {"x": x, "y": quantity("so_far", title, scale=scale, axis=axis),
                         "color": colour,
                         "strokeDash": {**names("level", key, dashes=True), "title": "interval"}},
        },
    ]  # fmt: skip
    return chart("Coverage of intervals along the stream", values, layers), values


def calibration(results: dict[str, ValidationResult]) -> tuple[Spec, Rows]:
    """Coverage of central intervals by their level."""
    values: Rows = []
    for name, result in results.items():
        if result.pit is not None and result.pit.n_rows:
            shares = result.pit.coverage(result.pit.levels)
            values += [
                {"model": name, "level": float(level), "share": float(share)}
                for level, share in zip(result.pit.levels, shares, strict=True)
            ]
    scale, axis = {"domain": [0, 1]}, {"format": ".0%"}
    tooltips = tooltip(model=("model", ""), level=("level", ".0%"), share=("targets inside", ".1%"))
    encoding = {
        "x": quantity("level", "level of the interval", scale=scale, axis=axis),
        "y": quantity("share", "targets inside it", scale=scale, axis=axis),
    }
    diagonal = {
        "data": {"values": [{"level": 0, "share": 0}, {"level": 1, "share": 1}]},
        "mark": {"type": "line", "color": "#444", "strokeDash": [3, 3], "aria": False},
        "encoding": encoding,
    }
    several = list(results)
    told_apart = {
        "color": names("model", several),
        "strokeDash": names("model", several, dashes=True),
    }
    if len(several) == 1:
        told_apart = {}
    line = {"mark": {"type": "line", "strokeWidth": 2.5}, "encoding": {**encoding, **told_apart}}
    colour = {"color": told_apart["color"]} if told_apart else {}
    points = {
        "mark": {"type": "point", "filled": True, "size": 30},
        "encoding": {**encoding, **colour, "tooltip": tooltips},
    }
    return chart("Coverage of intervals by their level", values, [diagonal, line, points]), values


def pit_histogram(result: ValidationResult) -> tuple[Spec, Rows]:
    """Draw the histogram of targets' predictive cdf: flat is calibrated."""
    assert result.pit is not None
    values = [
        {"low": k / 20, "high": (k + 1) / 20, "density": to_json_number(density)}
        for k, density in enumerate(result.pit.histogram(20))
    ]
    spread = 1.96 * math.sqrt(19.0 / max(result.pit.n_rows, 1))
    tooltips = tooltip(
        low=("probability from", ".2f"), high=("to", ".2f"), density=("times as many", ".3f")
    )
    x = quantity("low", "predictive probability below the target (PIT)", scale={"domain": [0, 1]})
    bars = {
        "mark": {"type": "bar", "color": "#56799a", "stroke": "black", "strokeWidth": 0.5},
        "encoding": {"x": x, "x2": {"field": "high"}, "y": quantity("density", "density"),
                     "y2": {"datum": 0},
                     "tooltip": tooltips},
    }  # fmt: skip
    chance = {
        "data": {"values": [{"end": max(1.0 - spread, 0.0)}, {"end": 1.0 + spread}]},
        "mark": {"type": "rule", "color": "#000", "strokeDash": [6, 4], "aria": False},
        "encoding": {"y": quantity("end")},
    }
    return chart(
        "Histogram of probability integral transforms", values, [bars, chance], 220
    ), values


def residuals(found: Residuals, unit: str) -> tuple[Spec, Rows]:
    """Standardised residuals by predicted mean, and their running mean."""
    values = [
        {"row": int(row), "predicted": to_json_number(mean), "residual": to_json_number(residual)}
        for row, mean, residual in zip(found.row, found.predicted, found.standardised, strict=True)
    ]
    means = [
        {"predicted": to_json_number(mean), "residual": to_json_number(residual)}
        for mean, residual in zip(*found.running_mean(), strict=True)
    ]
    tooltips = tooltip(
        row=("row", ",.0f"), predicted=("predicted", ",.4~g"), residual=("residual", ".2f")
    )
    x = quantity("predicted", f"predicted mean ({unit})", scale={"zero": False})
    y = quantity("residual", "standardised residual")
    key = ["a row", "mean of neighbours"]
    layers: list[Spec] = [
        {
            "data": {"values": [{"end": -1.96}, {"end": 0.0}, {"end": 1.96}]},
            "mark": {"type": "rule", "color": "#767676", "strokeDash": [4, 4], "aria": False},
            "encoding": {"y": quantity("end")},
        },
        {
            "transform": [{"calculate": f"'{key[0]}'", "as": "what"}],
            "mark": {"type": "point", "filled": True, "size": 18, "opacity": 0.55},
            "encoding": {"x": x, "y": y, "color": names("what", key), "tooltip": tooltips},
        },
        {
            "data": {"values": means},
            "transform": [{"calculate": f"'{key[1]}'", "as": "what"}],
            "mark": {"type": "line", "strokeWidth": 2.5},
            "encoding": {"x": x, "y": y, "color": names("what", key)},
        },
    ]
    return chart("Residuals by predicted mean", values, layers), values


def coefficients(rows: Rows, unit: str) -> Spec:
    """Coefficients times the spread of their features, with intervals: the largest on top."""
    tooltips = tooltip(
        name=("feature", ""), mean=("coefficient", ",.4~g"), low=("95% from", ",.4~g"),
        high=("to", ",.4~g"),
    )  # fmt: skip
    y = {"field": "name", "type": "nominal", "sort": None, "title": None,
         "axis": {"labelLimit": 260}}  # fmt: skip
    title = f"coefficient ({unit})"
    # On a phone names leave little room: the title ends where the axis does.
    axis = {"titleAnchor": "end", "titleAlign": "right"}
    layers = [
        {"data": {"values": [{"zero": 0}]}, "mark": {"type": "rule", "color": "#767676"},
         "encoding": {"x": quantity("zero", title, axis=axis)}},
        {"mark": {"type": "rule", "strokeWidth": 3, "color": COLOURS[0]},
         "encoding": {"y": y, "x": quantity("low_drawn", title), "x2": {"field": "high_drawn"},
                      "tooltip": tooltips}},
        {"mark": {"type": "point", "filled": True, "size": 70, "color": "black"},
         "encoding": {"y": y, "x": quantity("drawn", title), "tooltip": tooltips}},
    ]  # fmt: skip
    return chart("Coefficients with 95% intervals", rows, layers, max(90, 24 * len(rows) + 40))


def coefficients_along_time(
    path: CoefficientPath, drawn: Sequence[tuple[int, str, float]], unit: str
) -> tuple[Spec, Rows]:
    """Coefficients with bands along the stream, of those drawn: place, name, factor."""
    values: Rows = [
        {
            "name": name, "end": int(end), "value": to_json_number(factor * path.mean[k, place]),
            "low": to_json_number(factor * path.low[k, place]),
            "high": to_json_number(factor * path.high[k, place]),
        }
        for place, name, factor in drawn
        for k, end in enumerate(path.row_end)
    ]  # fmt: skip
    # The first rows swing much: the later half sets the scale.
    later = [row for row in values if 2 * row["end"] >= path.row_end[-1]]
    ends = [row[key] for row in later for key in ("low", "high") if row[key] is not None]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    room = 0.15 * (high - low) or 1.0
    several = [name for _, name, _ in drawn]
    x = quantity("end", axis=ROWS_AXIS, scale={"domain": [0, int(path.row_end[-1])], "nice": False})
    y = quantity("value", f"coefficient ({unit})", scale={"domain": [low - room, high + room]})
    tooltips = tooltip(
        name=("feature", ""), end=("after row", ",.0f"), value=("coefficient", ",.4~g"),
        low=(f"{100 * path.level:g}% from", ",.4~g"), high=("to", ",.4~g"),
    )  # fmt: skip
    colour, dash = names("name", several), names("name", several, dashes=True)
    band = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour}
    layers = [
        {"mark": {"type": "area", "opacity": 0.18, "clip": True}, "encoding": band},
        {
            "mark": {"type": "line", "strokeWidth": 2.5, "clip": True, "point": {"size": 25}},
            "encoding": {"x": x, "y": y, "color": colour, "strokeDash": dash, "tooltip": tooltips},
        },
    ]
    return chart("Coefficients along the stream, with intervals", values, layers, 320), values


def fan(
    values: Rows,
    levels: Sequence[float],
    unit: str,
    *,
    dated: bool,
    title: str = "Forecast, with bands and what came before",
    height: int = 280,
) -> Spec:
    """Values before a forecast (``value``), its median, and bands ``low95`` to ``high95``."""
    x = {"field": "t", "type": "temporal" if dated else "quantitative", "title": None,
         "axis": {"tickCount": 8}, "scale": {"type": "utc"} if dated else {"zero": False},
    }  # fmt: skip
    fields = {
        f"{end}{100 * level:g}": (f"{100 * level:g}% {word}", ",.4~g")
        for level in levels
        for end, word in (("low", "from"), ("high", "to"))
    }
    tooltips = tooltip(t=("time", ""), median=("median", ",.4~g"), **fields)
    scale = {"zero": False}
    layers: list[Spec] = [
        {
            "mark": {"type": "area", "opacity": 0.22, "color": COLOURS[0]},
            "encoding": {"x": x, "y": quantity(f"low{100 * level:g}", unit, scale=scale),
                         "y2": {"field": f"high{100 * level:g}"}},
        }
        for level in sorted(levels, reverse=True)
    ]  # fmt: skip
    layers += [
        {
            "mark": {"type": "line", "strokeWidth": 1.5, "color": "#555"},
            "encoding": {"x": x, "y": quantity("value", unit, scale=scale)},
        },
        {
            "mark": {"type": "line", "strokeWidth": 2.5, "color": COLOURS[0], "point": True},
            "encoding": {"x": x, "y": quantity("median", unit, scale=scale), "tooltip": tooltips},
        },
    ]
    return chart(title, values, layers, height)


def to_json_number(value: Any) -> float | None:
    """A number for JSON; what is not finite is missing."""
    number = float(value)
    return number if math.isfinite(number) else None
