"""Options that several verbs take, with the same help everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from posterity.cli import group
from posterity.cli.outputs import OutputPath

# Of an option that takes the names of columns.
COLUMNS: dict[str, Any] = {"metavar": "a,b,...", "multiple": True, "callback": group.names}
# Each by the name of its parameter, which is its flag, too, unless another is given.
OPTIONS: dict[str, dict[str, Any]] = {
    "target": {"required": True, "help": "Column to predict."},
    "levels": {
        "flag": "--level",
        "multiple": True,
        "default": (0.95,),
        "type": group.SHARE,
        "help": "Level of the intervals whose coverage is measured. May be given more than once.",
    },
    "level": {"default": 0.95, "type": group.SHARE, "help": "Level of the intervals."},
    "model": {
        "default": "linear",
        "metavar": "WORDS",
        "callback": group.model,
        "help": (
            "Kind of target: linear (a number with normal noise), robust (a number with "
            "outliers), quantile:0.9, poisson (a count) or logistic (a label). Add a basis to "
            "fit curves, as in robust+spline. posterity compare --help lists all words."
        ),
    },
    "prior_precision": {
        "default": "auto",
        "metavar": "NUMBER|auto|ard",
        "callback": group.prior_precision,
        "help": (
            "How strongly coefficients are shrunk to 0. auto: learned from the rows, whatever "
            "their units. ard: learned for each feature separately. Or a number, which is "
            "relative to the noise if the noise is learned; 0 does not shrink them."
        ),
    },
    "noise_precision": {
        "default": "learned",
        "metavar": "NUMBER|learned",
        "callback": group.noise_precision,
        "help": "1 / variance of the noise, if it is known.",
    },
    "noise": {
        "default": "constant",
        "type": click.Choice(["constant", "linear"]),
        "help": (
            "constant: the noise is the same for all rows. linear: its log variance is linear "
            "in the features."
        ),
    },
    "forgetting": {
        "default": "none",
        "metavar": "HOW",
        "callback": group.forgetting,
        "help": (
            "How old rows lose weight, so that the model can follow changes: none; adaptive, "
            "which needs no number; or one of exponential:0.99, stabilized:0.99, "
            "directional:0.99, smoothing:0.8, random-walk:0.01 (variance of a step), window:500 "
            "(rows), changepoint[:0.01] (probability of a change)."
        ),
    },
    "structure": {
        "default": "full",
        "type": click.Choice(["full", "diagonal", "sparse"]),
        "help": (
            "Which covariances of coefficients are kept. full: all, for up to some thousand "
            "features. diagonal: variances only, for millions of features, with levels that may "
            "be new at any row. sparse: all, in a sparse factor, for tens of thousands."
        ),
    },
    "hash_size": {
        "flag": "--hash",
        "metavar": "2^22",
        "callback": group.hash_size,
        "help": (
            "With diagonal or sparse: hash levels into this number of features, to bound the "
            "memory."
        ),
    },
    "interactions": {
        "metavar": "2|a:b,...",
        "callback": group.interactions,
        "help": (
            "With diagonal or sparse: add products of all pairs of features, or of the given "
            "pairs of columns."
        ),
    },
    "features": {
        **COLUMNS,
        "help": "Columns to predict from, in this order. By default, all but the target.",
    },
    "drop": {
        **COLUMNS,
        "metavar": "c,d,...",
        "help": (
            "Columns to leave out. Put a name that contains a comma in double quotes: '\"Item, "
            "name\",id'."
        ),
    },
    "weight": {
        "metavar": "COLUMN",
        "help": (
            "Column with the weights of the rows, from 0 up: weight 2 is the same as the row "
            "twice. It is not used as a feature."
        ),
    },
    "time": {
        "metavar": "COLUMN",
        "help": (
            "Column with the time of each row, which must not decrease. --forgetting counts in "
            "its unit: numbers, or dates and times, which become days. It is not used as a "
            "feature."
        ),
    },
    "offset": {
        "metavar": "COLUMN",
        "help": (
            "Of counts: column that is added to the log of the expected count. It is not used as "
            "a feature."
        ),
    },
    "exposure": {
        "metavar": "COLUMN",
        "help": (
            "Of counts: column with the time, area or people that each count comes from, above 0. "
            "It is not used as a feature."
        ),
    },
    "batch_rows": {
        "default": 65536,
        "type": click.IntRange(min=1),
        "help": "Rows held in memory at a time. This changes memory and speed, but not the scores.",
    },
    "memory": {
        "default": "512MB",
        "metavar": "AMOUNT",
        "help": (
            "Memory for batches. If rows are wide, fewer are read at a time. Python and its "
            "libraries need memory in addition."
        ),
    },
    "delay": {
        "default": 0,
        "type": click.IntRange(min=0),
        "help": "Targets become known this number of rows later.",
    },
    "missing": {
        "default": "error",
        "type": click.Choice(["error", "skip", "mean", "level"]),
        "help": (
            "Missing values: error stops, skip leaves the row out, mean uses the mean of the "
            "column so far, and level makes them a level of their own in categories and uses "
            "the mean for numbers."
        ),
    },
    "dates": {
        "default": "error",
        "type": click.Choice(["error", "days", "calendar"]),
        "help": (
            "Columns of dates and times: error stops, days counts days, and calendar makes "
            "categories of hour, weekday and month, and also counts days if the dates never "
            "decrease."
        ),
    },
    "lags": {
        "flag": "--lag",
        "multiple": True,
        "metavar": "1,24,...",
        "callback": group.lags,
        "help": (
            "Also predict from the target this number of rows earlier. The first rows are then "
            "used only as the past of the others."
        ),
    },
    "categories": {
        **COLUMNS,
        "help": "Columns of numbers, such as codes, that are to be treated as categories.",
    },
    "category_levels": {
        "flag": "--levels",
        "multiple": True,
        "metavar": "COLUMN=a,b,...",
        "callback": group.categories,
        "help": (
            "All levels of a category, if the first batch may lack some, or if models are to be "
            "merged. May be given more than once."
        ),
    },
    "period": {
        "type": click.IntRange(min=1),
        "help": (
            "Rows in a season, such as 24 for the hours of a day: also compare with the value "
            "one season ago."
        ),
    },
    "date_format": {
        "multiple": True,
        "metavar": "FORMAT",
        "help": (
            "Format of dates, besides 2021-04-30: %d.%m.%Y for 30.04.2021. May be given more than "
            "once; the first that fits a date is taken."
        ),
    },
    "decimal": {"type": click.Choice([".", ","]), "help": "Decimal mark of numbers.  [default: .]"},
    "thousands": {
        "metavar": "MARK",
        "help": "Thousands separator, as in 1.234.567,8.  [default: nothing]",
    },
    "na": {
        "multiple": True,
        "metavar": "WORD",
        "help": (
            "A word that stands for a missing value, besides an empty field, NA, NaN and null. "
            "May be given more than once."
        ),
    },
    "encoding": {
        "metavar": "NAME",
        "help": "Encoding, such as latin-1 or utf-16.  [default: utf-8]",
    },
    "separator": {
        "metavar": "MARK",
        "callback": group.mark,
        "help": "What is between columns, such as ';' or tab.  "
        "[default: found in the line of names]",
    },
    "skip_rows": {
        "type": click.IntRange(min=0),
        "help": "Number of lines before the column names that are left out.  [default: 0]",
    },
    "drop_total": {
        "flag": "--drop-total/--keep-total",
        "default": None,
        "help": (
            "Leave out the rows at the end that begin with Total, Sum, Summe or the like.  "
            "[default: keep]"
        ),
    },
    "slices": {
        "flag": "--slice",
        "multiple": True,
        "metavar": "COLUMN",
        "help": (
            "Also give scores by slices of this feature: the quarters of a number (in the first "
            "batch), or the levels of a category. May be given more than once."
        ),
    },
    "report": {
        "metavar": "PAGE.html",
        "type": OutputPath(),
        "help": "Also write a self-contained page with charts, to open in a browser.",
    },
    "no_intercept": {"is_flag": True, "help": "Predict 0 where all features are 0."},
    "log_target": {
        "is_flag": True,
        "help": (
            "Learn the log of the target, which must be above 0. Effects are then "
            "multiplicative, and the noise grows with the target. Predictions, by the median, "
            "and scores are on the scale of the target."
        ),
    },
    "as_json": {"flag": "--json", "is_flag": True, "help": "Print JSON, for other programs."},
    "quiet": {"is_flag": True, "help": "No progress bar and no notes on stderr."},
}


# Models of many features.
WIDE_OPTIONS = ("structure", "hash_size", "interactions")
# How columns of a table are read, beside which of them are.
TABLE_OPTIONS = ("dates", "categories", "category_levels")
# How the text of a table is written.
READING_OPTIONS = (
    "date_format", "decimal", "thousands", "na", "encoding", "separator", "skip_rows", "drop_total",
)  # fmt: skip


# Options that stand under the heading of reading in the help.
_OF_READING = {"batch_rows", "memory", "missing", *TABLE_OPTIONS, *READING_OPTIONS}


def options(*names: str) -> Callable[[Any], Any]:
    """Give a verb these options, in this order."""

    def add(function: Any) -> Any:
        for name in reversed(names):
            how = {"flag": f"--{name.replace('_', '-')}", **OPTIONS[name]}
            kind = group.ReadingOption if name in _OF_READING else click.Option
            function = click.option(how.pop("flag"), name, cls=kind, **how)(function)
        return function

    return add
