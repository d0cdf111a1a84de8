"""Options that several verbs take, with the same help everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from posterity.cli import group

KNOWN: dict[str, Callable[[Any], Any]] = {
    "target": click.option("--target", required=True, help="Column to predict."),
    "levels": click.option(
        "--level",
        "levels",
        multiple=True,
        default=(0.95,),
        show_default=True,
        type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
        help="Level of the intervals whose coverage is measured. May be given more than once.",
    ),
    "model": click.option(
        "--model",
        default="linear",
        show_default=True,
        metavar="WORDS",
        callback=group.model,
        help="What the target is like: linear (a number, normal noise), robust (with outliers), "
        "quantile:0.9, poisson (a count), logistic (a label); with a basis for curves, as in "
        "robust+spline. posterity compare --help has all words.",
    ),
    "prior_precision": click.option(
        "--prior-precision",
        default="auto",
        show_default=True,
        metavar="NUMBER|auto|ard",
        callback=group.prior_precision,
        help="How firmly coefficients are held near 0. auto: learned from the rows, whatever their "
        "units; ard: learned for each feature by itself; or a number, relative to the noise where "
        "that is learned: 0 leaves coefficients free.",
    ),
    "noise_precision": click.option(
        "--noise-precision",
        default="learned",
        show_default=True,
        metavar="NUMBER|learned",
        callback=group.noise_precision,
        help="1 / variance of the noise, when it is known.",
    ),
    "noise": click.option(
        "--noise",
        default="constant",
        show_default=True,
        type=click.Choice(["constant", "linear"]),
        help="Whether the noise is the same for all rows, or its log variance linear in the "
        "features, as the prediction is.",
    ),
    "forgetting": click.option(
        "--forgetting",
        default="none",
        show_default=True,
        metavar="HOW",
        callback=group.forgetting,
        help="How old rows lose weight when the regression changes: none; adaptive, which needs no "
        "number; or one of exponential:0.99, stabilized:0.99, directional:0.99, smoothing:0.8, "
        "random-walk:0.01 (variance of a step), window:500 (rows), changepoint[:0.01] (chance of a "
        "change).",
    ),
    "structure": click.option(
        "--structure",
        default="full",
        show_default=True,
        type=click.Choice(["full", "diagonal", "sparse"]),
        help="What is kept of how coefficients depend on each other. full: all, for up to some "
        "thousand features; diagonal: nothing, for millions, with levels that may be new at any "
        "row; sparse: all, in a sparse factor, for tens of thousands.",
    ),
    "hash_size": click.option(
        "--hash",
        "hash_size",
        metavar="2^22",
        callback=group.hash_size,
        help="With diagonal or sparse: hash levels into so many features, to bound the memory.",
    ),
    "interactions": click.option(
        "--interactions",
        metavar="2|a:b,...",
        callback=group.interactions,
        help="With diagonal or sparse: products of all pairs of features too, or of those of "
        "chosen pairs of columns.",
    ),
    "features": click.option(
        "--features",
        metavar="a,b,...",
        multiple=True,
        callback=group.names,
        help="Columns to predict from, in this order. All but the target by default.",
    ),
    "drop": click.option(
        "--drop",
        metavar="c,d,...",
        multiple=True,
        callback=group.names,
        help="Columns to leave out. A name with a comma in it stands in double quotes: "
        "'\"Item, name\",id'.",
    ),
    "weight": click.option(
        "--weight",
        metavar="COLUMN",
        help="Column of the rows' weights, from 0 up: weight 2 is the row twice. It is no feature.",
    ),
    "time": click.option(
        "--time",
        metavar="COLUMN",
        help="Column of when each row came, not going back; what --forgetting counts in. Numbers, "
        "or dates and times, which become days. It is no feature.",
    ),
    "batch_rows": click.option(
        "--batch-rows",
        default=65536,
        show_default=True,
        type=click.IntRange(min=1),
        help="Rows held in memory at a time. Changes memory and speed, not the scores.",
    ),
    "memory": click.option(
        "--memory",
        default="512MB",
        show_default=True,
        metavar="AMOUNT",
        help="What batches may take of it; where rows are wide, fewer are read at a time. Python "
        "and its libraries come on top.",
    ),
    "delay": click.option(
        "--delay",
        default=0,
        show_default=True,
        type=click.IntRange(min=0),
        help="Targets become known so many rows later.",
    ),
    "missing": click.option(
        "--missing",
        default="error",
        show_default=True,
        type=click.Choice(["error", "skip", "mean", "level"]),
        help="Missing values: stop, leave the row out, use the mean of the column so far, or make "
        "them a level of their own in categories, and use the mean for numbers (level).",
    ),
    "dates": click.option(
        "--dates",
        default="error",
        show_default=True,
        type=click.Choice(["error", "days", "calendar"]),
        help="Columns of dates and times: stop, count days, or (calendar) take hour, weekday and "
        "month as categories, and days as well where time goes on.",
    ),
    "date_format": click.option(
        "--date-format",
        default="",
        metavar="FORMAT",
        help="How dates are written in a text file, beside 2021-04-30: %m/%d/%y for 04/30/21.",
    ),
    "decimal": click.option(
        "--decimal",
        default=".",
        show_default=True,
        type=click.Choice([".", ","]),
        help="What is before the fraction of a number in a text file.",
    ),
    "thousands": click.option(
        "--thousands",
        default="",
        metavar="MARK",
        help="What is between thousands in a text file, as in 1.234.567,8.  [default: nothing]",
    ),
    "lags": click.option(
        "--lag",
        "lags",
        multiple=True,
        metavar="1,24,...",
        callback=group.lags,
        help="Predict also from the target so many rows before. The first rows are then only the "
        "past of the others.",
    ),
    "categories": click.option(
        "--categories",
        metavar="a,b,...",
        multiple=True,
        callback=group.names,
        help="Columns of numbers, such as codes, that are categories all the same.",
    ),
    "category_levels": click.option(
        "--levels",
        "category_levels",
        multiple=True,
        metavar="COLUMN=a,b,...",
        callback=group.categories,
        help="All levels of a category, where the first batch may lack some, or models are to be "
        "merged. May be given more than once.",
    ),
    "period": click.option(
        "--period",
        type=click.IntRange(min=1),
        help="Rows in a season, 24 for hours of a day: compare with the value one season ago as "
        "well.",
    ),
    "slices": click.option(
        "--slice",
        "slices",
        multiple=True,
        metavar="COLUMN",
        help="Scores by slice of this feature as well: a number by its quarters (of the first "
        "batch), a category by its levels. May be given more than once.",
    ),
    "report": click.option(
        "--report",
        metavar="PAGE.html",
        type=click.Path(),
        help="Also write a page with charts, to be opened in a browser; it needs nothing else.",
    ),
    "no_intercept": click.option(
        "--no-intercept", is_flag=True, help="Predict 0 where all features are 0."
    ),
    "log_target": click.option(
        "--log-target",
        is_flag=True,
        help="Learn the log of the target, which must be above 0: effects then multiply, and noise "
        "grows with the target. Predictions and scores are of the target itself, by its median.",
    ),
    "as_json": click.option("--json", "as_json", is_flag=True, help="Print JSON, for machines."),
    "quiet": click.option("--quiet", is_flag=True, help="No progress bar and no notes on stderr."),
}


# Models of many features.
WIDE = ("structure", "hash_size", "interactions")
# How columns of a table are read, beside which of them are.
TABLE = (
    "dates", "date_format", "decimal", "thousands", "lags", "categories", "category_levels",
)  # fmt: skip


def options(*names: str) -> Callable[[Any], Any]:
    """Give a verb these options, in this order."""

    def add(function: Any) -> Any:
        for name in reversed(names):
            function = KNOWN[name](function)
        return function

    return add
