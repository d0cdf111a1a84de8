"""Vega-Lite specifications of the charts in a report.

Names and values from the data are only ever data here: never field names, never expressions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import Document
from posterity.evaluation import PIT, CoefficientPath, ValidationResult
from posterity.evaluation._tables import to_plain
from posterity.evaluation.residuals import Residuals

Spec = Document
Rows = list[Document]

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


def rows_seen(n_rows: int, field: str = "end") -> Spec:
    """The channel along a stream."""
    return quantity(field, axis=ROWS_AXIS, scale={"domain": [0, int(n_rows)], "nice": False})


def rows_of(**columns: ArrayLike) -> Rows:
    """A row for each entry of the columns, of which some may be one value for all."""
    each = zip(*map(to_plain, np.broadcast_arrays(*columns.values())), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in each]


def layer(
    mark: str, encoding: Spec, *, values: Rows | None = None, what: str = "", **look: Any
) -> Spec:
    """Marks of one kind: of ``values`` of their own, and by the name ``what`` in the legend."""
    spec: Spec = {"mark": {"type": mark, **look}, "encoding": encoding}
    if values is not None:
        spec["data"] = {"values": values}
    if what:
        spec["transform"] = [{"calculate": f"'{what}'", "as": "what"}]
    return spec


def curves(
    field: str, several: Sequence[str], x: Spec, y: Spec, tooltips: list[Spec], opacity: float = 0.0
) -> tuple[Spec, Spec]:
    """Bands from ``low`` to ``high``, and lines, one for each of the names in ``field``."""
    colour, dash = names(field, several), names(field, several, dashes=True)
    ends = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour}
    encoding = {"x": x, "y": y, "color": colour, "strokeDash": dash, "tooltip": tooltips}
    return (
        layer("area", ends, opacity=opacity, clip=True),
        layer("line", encoding, strokeWidth=2.5, clip=True, point={"size": 25}),
    )


def error_along_time(result: ValidationResult, unit: str) -> tuple[Spec, Rows]:
    """Mean error of each stretch, over all rows so far, and the greatest error; drift is shaded."""
    along = result.along
    start = along.row_end - along.n_rows
    so_far = np.cumsum(along.mae * along.n_rows) / along.row_end
    values = rows_of(
        start=start, end=along.row_end, mae=along.mae, max=along.max_error, so_far=so_far
    )
    x = rows_seen(result.n_rows)
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
        layers.append(layer("rect", ends, values=periods, color="#dddddd", aria=False))
    colour = names("what", key)
    each = {"x": x, "y": quantity("mae", y), "color": colour, "tooltip": tooltips}
    line = {"x": x, "y": quantity("so_far", y), "color": colour}
    layers += [
        layer("point", each, what=key[0], filled=True, size=45, opacity=0.75),
        layer("line", line, what=key[1], strokeWidth=2.5),
    ]
    return chart("Mean absolute error along the stream", values, layers), values


def extremes_along_time(result: ValidationResult, unit: str) -> tuple[Spec, Rows]:
    """The greatest error in each stretch: none is averaged away."""
    along = result.along
    start = along.row_end - along.n_rows
    values = rows_of(start=start, end=along.row_end, max=along.max_error)
    tooltips = tooltip(
        start=("from row", ",.0f"), end=("to row", ",.0f"), max=("greatest error", ",.4~g")
    )
    x = rows_seen(result.n_rows, "start")
    encoding = {"x": x, "x2": {"field": "end"}, "tooltip": tooltips}
    encoding |= {"y": quantity("max", f"greatest error ({unit})"), "y2": {"datum": 0}}
    bars = layer("bar", encoding, color="#56799a", stroke="white", strokeWidth=0.3)
    return chart("Greatest absolute error in each stretch", values, [bars], 160), values


def coverage_along_time(result: ValidationResult) -> tuple[Spec, Rows]:
    """Share of targets inside their intervals, over all rows so far and by stretch."""
    along = result.along
    scored = along.n_rows - along.n_unscored
    seen = np.maximum(np.cumsum(scored), 1)
    values: Rows = []
    key = [f"{100 * level:g}%" for level in along.coverage]
    late, lowest = 20 * along.row_end >= result.n_rows, [1.0]
    for name, (level, share) in zip(key, along.coverage.items(), strict=True):
        so_far = np.cumsum(np.where(scored > 0, share, 0.0) * scored) / seen
        spread = 1.96 * np.sqrt(level * (1.0 - level) / seen)
        lowest += [level, float(so_far[late].min())]
        low, high = np.maximum(level - spread, 0.0), np.minimum(level + spread, 1.0)
        values += rows_of(
            level=name, end=along.row_end, promised=level, share=share, so_far=so_far,
            low=low, high=high,
        )  # fmt: skip
    x = rows_seen(result.n_rows)
    # Where it happens: all of the lines, and of the dots what is not far below them.
    bottom = math.floor(10.0 * max(min(lowest) - 0.05, 0.0)) / 10.0
    scale, axis = {"domain": [bottom, 1], "clamp": True}, {"format": ".0%"}
    colour = {**names("level", key), "title": "interval"}
    title = "targets inside the interval"
    tooltips = tooltip(
        level=("interval", ""), end=("up to row", ",.0f"), share=("in this stretch", ".1%"),
        so_far=("all rows so far", ".2%"),
    )  # fmt: skip
    band, dots, line = (
        {"x": x, "y": quantity(field, title, scale=scale, axis=axis), "color": colour}
        for field in ("low", "share", "so_far")
    )
    told = {"shape": {"field": "level", "legend": None}, "tooltip": tooltips}
    dash = {**names("level", key, dashes=True), "title": "interval"}
    layers = [
        layer("area", band | {"y2": {"field": "high"}}, opacity=0.18),
        layer("point", dots | told, filled=True, size=40, opacity=0.7),
        layer("line", line | {"strokeDash": dash}, strokeWidth=2.5),
    ]
    return chart("Coverage of intervals along the stream", values, layers), values


def calibration(results: dict[str, ValidationResult]) -> tuple[Spec, Rows]:
    """Coverage of central intervals by their level."""
    values: Rows = []
    for name, result in results.items():
        if result.pit is not None and result.pit.n_rows:
            levels = result.pit.levels
            values += rows_of(model=name, level=levels, share=result.pit.coverage(levels))
    scale, axis = {"domain": [0, 1]}, {"format": ".0%"}
    tooltips = tooltip(model=("model", ""), level=("level", ".0%"), share=("targets inside", ".1%"))
    encoding = {
        "x": quantity("level", "level of the interval", scale=scale, axis=axis),
        "y": quantity("share", "targets inside it", scale=scale, axis=axis),
    }
    ends = [{"level": 0, "share": 0}, {"level": 1, "share": 1}]
    diagonal = layer("line", encoding, values=ends, color="#444", strokeDash=[3, 3], aria=False)
    several = list(results)
    colour = {"color": names("model", several)} if len(several) > 1 else {}
    dash = {"strokeDash": names("model", several, dashes=True)} if colour else {}
    line = layer("line", encoding | colour | dash, strokeWidth=2.5)
    points = layer("point", encoding | colour | {"tooltip": tooltips}, filled=True, size=30)
    return chart("Coverage of intervals by their level", values, [diagonal, line, points]), values


def pit_histogram(pit: PIT) -> tuple[Spec, Rows]:
    """Draw the histogram of targets' predictive cdf: flat is calibrated."""
    bins = np.arange(20)
    values = rows_of(low=bins / 20, high=(bins + 1) / 20, density=pit.histogram(20))
    spread = 1.96 * math.sqrt(19.0 / max(pit.n_rows, 1))
    tooltips = tooltip(
        low=("probability from", ".2f"), high=("to", ".2f"), density=("times as many", ".3f")
    )
    x = quantity("low", "predictive probability below the target (PIT)", scale={"domain": [0, 1]})
    encoding = {"x": x, "x2": {"field": "high"}, "tooltip": tooltips}
    encoding |= {"y": quantity("density", "density"), "y2": {"datum": 0}}
    bars = layer("bar", encoding, color="#56799a", stroke="black", strokeWidth=0.5)
    ends = rows_of(end=[max(1.0 - spread, 0.0), 1.0 + spread])
    end = {"y": quantity("end")}
    chance = layer("rule", end, values=ends, color="#000", strokeDash=[6, 4], aria=False)
    return chart(
        "Histogram of probability integral transforms", values, [bars, chance], 220
    ), values


def residuals(found: Residuals, unit: str) -> tuple[Spec, Rows]:
    """Standardised residuals by predicted mean, and their running mean."""
    values = rows_of(row=found.row, predicted=found.predicted, residual=found.standardised)
    middle, mean = found.running_mean()
    means = rows_of(predicted=middle, residual=mean)
    tooltips = tooltip(
        row=("row", ",.0f"), predicted=("predicted", ",.4~g"), residual=("residual", ".2f")
    )
    x = quantity("predicted", f"predicted mean ({unit})", scale={"zero": False})
    y = quantity("residual", "standardised residual")
    key = ["a row", "mean of neighbours"]
    encoding = {"x": x, "y": y, "color": names("what", key)}
    each = encoding | {"tooltip": tooltips}
    end, ends = {"y": quantity("end")}, rows_of(end=[-1.96, 0.0, 1.96])
    layers = [
        layer("rule", end, values=ends, color="#767676", strokeDash=[4, 4], aria=False),
        layer("point", each, what=key[0], filled=True, size=18, opacity=0.55),
        layer("line", encoding, values=means, what=key[1], strokeWidth=2.5),
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
    zero = {"x": quantity("zero", title, axis=axis)}
    ends = {"y": y, "x": quantity("low_drawn", title), "x2": {"field": "high_drawn"}}
    mean = {"y": y, "x": quantity("drawn", title), "tooltip": tooltips}
    layers = [
        layer("rule", zero, values=[{"zero": 0}], color="#767676"),
        layer("rule", ends | {"tooltip": tooltips}, strokeWidth=3, color=COLOURS[0]),
        layer("point", mean, filled=True, size=70, color="black"),
    ]
    return chart("Coefficients with 95% intervals", rows, layers, max(90, 24 * len(rows) + 40))


def coefficients_along_time(
    path: CoefficientPath, drawn: Sequence[tuple[int, str, float]], unit: str
) -> tuple[Spec, Rows]:
    """Coefficients with bands along the stream, of those drawn: place, name, factor."""
    values: Rows = []
    for place, name, factor in drawn:
        value, low, high = (factor * one[:, place] for one in (path.mean, path.low, path.high))
        values += rows_of(name=name, end=path.row_end, value=value, low=low, high=high)
    # The first rows swing much: the later half sets the scale.
    later = [row for row in values if 2 * row["end"] >= path.row_end[-1]]
    ends = [row[key] for row in later for key in ("low", "high") if row[key] is not None]
    least, most = min([0.0, *ends]), max([0.0, *ends])
    room = 0.15 * (most - least) or 1.0
    y = quantity("value", f"coefficient ({unit})", scale={"domain": [least - room, most + room]})
    tooltips = tooltip(
        name=("feature", ""), end=("after row", ",.0f"), value=("coefficient", ",.4~g"),
        low=(f"{100 * path.level:g}% from", ",.4~g"), high=("to", ",.4~g"),
    )  # fmt: skip
    x, several = rows_seen(path.row_end[-1]), [name for _, name, _ in drawn]
    layers = curves("name", several, x, y, tooltips, 0.18)
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

    def along(field: str, **more: Any) -> Spec:
        return {"x": x, "y": quantity(field, unit, scale={"zero": False}), **more}

    bands = [
        along(f"low{100 * level:g}", y2={"field": f"high{100 * level:g}"})
        for level in sorted(levels, reverse=True)
    ]
    median = along("median", tooltip=tooltips)
    layers = [
        *(layer("area", band, opacity=0.22, color=COLOURS[0]) for band in bands),
        layer("line", along("value"), strokeWidth=1.5, color="#555"),
        layer("line", median, strokeWidth=2.5, color=COLOURS[0], point=True),
    ]
    return chart(title, values, layers, height)
