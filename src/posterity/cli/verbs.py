"""Verbs around model files: options and help; the work is imported when one runs."""

from __future__ import annotations

from typing import Any

import click

from posterity.cli import group
from posterity.cli.group import ReadingOption, Verb, run_guarded
from posterity.cli.options import COLUMNS, READING_OPTIONS, TABLE_OPTIONS, WIDE_OPTIONS, options
from posterity.cli.outputs import InputPath, OutputPath, ReplacedPath

FIT = """\b
Examples:
  posterity fit rides.csv --target fare --dates calendar --missing level --output fare.posterity
  posterity fit rides.csv --target fare --drop pickup --missing mean --output plain.posterity
  posterity fit visits.csv --target bought --model logistic --output bought.posterity
  posterity fit clicks.csv --target clicked --model logistic --structure diagonal \\
    --hash 2^22 --interactions site:ad --output clicks.posterity
  posterity fit rides.csv --formula 'fare ~ distance + (1|zone)' --output zones.posterity
  zcat rides-*.csv.gz | posterity fit - --target fare --drop pickup --missing skip \\
    --output fare.posterity"""

UPDATE = """\b
Examples:
  posterity update fare.posterity tomorrow.csv
  posterity update fare.posterity tomorrow.csv --output fare-2.posterity
  posterity update fare.posterity - < tomorrow.csv"""

PREDICT = """\b
Examples:
  posterity predict fare.posterity tomorrow.csv
  posterity predict fare.posterity tomorrow.csv --level 0.5 --quantile 0.1 --quantile 0.9
  posterity predict fare.posterity tomorrow.csv --output predicted.parquet
  posterity predict fare.posterity - < tomorrow.csv | head"""

MERGE = """\b
Examples:
  posterity merge north.posterity south.posterity --output all.posterity"""

UNLEARN = """\b
Examples:
  posterity unlearn fare.posterity tomorrow.csv
  posterity unlearn fare.posterity tomorrow.csv --output mended.posterity"""

SHOW = """\b
Examples:
  posterity show fare.posterity
  posterity show fare.posterity --level 0.5
  posterity show fare.posterity --base zone=centre
  posterity show fare.posterity --json | jq .coefficients"""

FORECAST = """\b
Examples:
  posterity forecast load.csv --target load --time hour --horizon 48
  posterity forecast sales.csv --target sold --time day --series shop --horizon 14 --level 0.8
  posterity forecast load.csv --target load --time hour --horizon 48 --report next.html
  posterity forecast sales.csv --target sold --time day --series shop --horizon 14 \\
    --features price,holiday --future plan.csv --output next.parquet
  posterity forecast umsatz.csv --target Umsatz --time Datum --series Filiale --horizon 28 \\
    --date-format %d.%m.%Y --decimal , --thousands . --na k.A. --drop-total"""

model_argument = click.argument("model", type=InputPath("the model"))
replaced_model = click.argument("model", type=ReplacedPath(allow_dash=True))
file_argument = click.argument("file", type=InputPath())
learned_target = click.option("--target", help="Column to predict.  [default: that of fit]")
replaced = click.option(
    "--output",
    metavar="NEW_MODEL",
    type=OutputPath(),
    help="Model file to write.  [default: MODEL is replaced]",
)
learned_missing = click.option(
    "--missing",
    cls=ReadingOption,
    type=click.Choice(["error", "skip", "mean", "level"]),
    help="Missing values: error stops, skip leaves the row out, and mean uses the mean of the "
    "column so far, including the rows of MODEL. After fit --missing level, a missing category "
    "is a level.  [default: as in fit]",
)
learned_weight = click.option(
    "--weight", metavar="COLUMN", help="Column with the weights of the rows.  [default: as in fit]"
)
learned_time = click.option(
    "--time",
    metavar="COLUMN",
    help="Column with the time of each row, not before those that MODEL has learned.  "
    "[default: as in fit]",
)
learned_offset = click.option(
    "--offset",
    metavar="COLUMN",
    help="Column that is added to the log of the expected count.  [default: as in fit]",
)
learned_exposure = click.option(
    "--exposure",
    metavar="COLUMN",
    help="Column with what each count comes from; '' for an exposure of 1.  [default: as in fit]",
)
several_quantiles = click.option(
    "--quantile",
    "quantiles",
    multiple=True,
    type=group.SHARE,
    help="Also give this quantile: 0.1 adds a column q0.1. May be given more than once.",
)


@click.command(cls=Verb, epilog=FIT, short_help="Learn a file, and save the model.")
@file_argument
@click.option("--target", help="Column to predict.")
@click.option(
    "--formula",
    help="What to learn from what, in place of --target and --features: 'y ~ x + (1 | g)', with "
    "effects of groups.",
)
@click.option("--output", required=True, metavar="MODEL", type=OutputPath(), help="The model file.")
@options("model", "prior_precision", "noise_precision", "noise", "forgetting", "features", "drop")
@options("weight", *WIDE_OPTIONS)
@options("time", "offset", "exposure", "missing", "lags", *TABLE_OPTIONS)
@options(*READING_OPTIONS, "batch_rows", "memory", "log_target", "no_intercept", "quiet")
def fit(**settings: Any) -> None:
    """Learn every row of FILE, and save the model.

    FILE is read as by evaluate: CSV, JSON lines, Parquet or Arrow, a folder of such files, or - for
    standard input. The model file also contains the names of the columns, the target, the policy
    for missing values and the means that are filled in, for update and predict. An existing file is
    replaced.
    """
    from posterity.cli.learn import FitSettings
    from posterity.cli.learn import fit as work

    if settings["target"] is None and settings["formula"] is None:
        raise click.MissingParameter(
            "Or a --formula.", param_hint="'--target'", param_type="option"
        )
    run_guarded(work, FitSettings(**settings))


@click.command(cls=Verb, epilog=UPDATE, short_help="Learn more rows.")
@replaced_model
@file_argument
@learned_target
@replaced
@learned_weight
@learned_time
@learned_offset
@learned_exposure
@learned_missing
@options(*READING_OPTIONS, "batch_rows", "memory", "quiet")
def update(**settings: Any) -> None:
    """Learn every row of FILE (or of standard input: -) in addition to those of MODEL.

    Columns are found by their names, in any order. The model file is replaced in one step after all
    rows have been learned. If a row can't be used, the old file stays as it was.
    """
    from posterity.cli.learn import update as work
    from posterity.cli.model_files import FileSettings

    run_guarded(work, FileSettings(**settings))


@click.command(cls=Verb, epilog=UNLEARN, short_help="Remove rows that the model has learned.")
@replaced_model
@file_argument
@learned_target
@replaced
@learned_weight
@learned_offset
@learned_exposure
@click.option(
    "--missing",
    cls=ReadingOption,
    type=click.Choice(["error", "skip"]),
    help="Missing values: error stops, skip leaves the row out.  [default: as in fit]",
)
@options(*READING_OPTIONS, "batch_rows", "memory", "quiet")
def unlearn(**settings: Any) -> None:
    """Remove the rows of FILE (or of standard input: -), as if MODEL had never learned them.

    The model does not keep its rows, so it refuses only rows that it can prove it never learned.
    The means for missing values do not change. The model file is replaced in one step, as by
    update.
    """
    from posterity.cli.learn import unlearn as work
    from posterity.cli.model_files import FileSettings

    run_guarded(work, FileSettings(**settings))


@click.command(cls=Verb, epilog=MERGE, short_help="Merge models that learned different rows.")
@click.argument(
    "models", nargs=-1, required=True, metavar="MODEL MODEL...", type=InputPath("one of the models")
)
@click.option("--output", required=True, metavar="MODEL", type=OutputPath(), help="The model file.")
@options("quiet")
def merge(**settings: Any) -> None:
    """Merge MODELs into one that has learned the rows of all of them.

    They must have been fitted with the same settings to the same columns. The prior counts once.
    """
    from posterity.cli.learn import merge as work

    run_guarded(work, **settings)


@click.command(cls=Verb, epilog=PREDICT, short_help="Predict the rows of a file, with intervals.")
@model_argument
@file_argument
@click.option(
    "--output",
    type=OutputPath(),
    help="Where predictions go: .csv, .parquet or .arrow.  [default: standard output, as CSV]",
)
@options("level")
@several_quantiles
@click.option(
    "--above",
    multiple=True,
    type=float,
    help="Also give the probability that the target is larger than this: 12 adds a column above12, "
    "of lifetimes who lives longer than 12. May be given more than once.",
)
@click.option("--keep", **COLUMNS, help="Columns of FILE to copy to the predictions.")
@learned_offset
@learned_exposure
@learned_missing
@options(*READING_OPTIONS, "batch_rows", "memory", "quiet")
def predict(**settings: Any) -> None:
    """Predict the rows of FILE (or of standard input: -), with intervals.

    Writes for each row its number, from 0, the mean and standard deviation of the target, and the
    ends of its prediction interval. A classifier gives the most probable label, and the probability
    of each label. Columns that the model does not know are ignored, and so is the target.
    """
    from posterity.cli.predict import Settings, run

    run_guarded(run, Settings(**settings))


@click.command(cls=Verb, epilog=SHOW, short_help="Print what a model has learned.")
@model_argument
@options("level")
@click.option(
    "--base",
    metavar="mean|first|COLUMN=LEVEL",
    multiple=True,
    help="What levels of categories are compared with: the mean of their column's levels, its "
    "first level, or the one named; may be given for several columns.",
)
@options("as_json")
def show(**settings: Any) -> None:
    """Print what MODEL has learned: coefficients with intervals, noise, counts, columns.

    MODEL may be - for standard input.
    """
    from posterity.cli.show import run

    run_guarded(run, **settings)


@click.command(cls=Verb, epilog=FORECAST, short_help="Forecast the next steps of series.")
@file_argument
@options("target")
@click.option(
    "--time",
    metavar="COLUMN",
    help="Column with the time of each row: dates, or whole numbers, in any order.  "
    "[default: rows are in their order]",
)
@click.option("--series", metavar="COLUMN", help="Column with the name of the series of each row.")
@click.option(
    "--horizon", required=True, type=click.IntRange(min=1), help="Number of steps to forecast."
)
@click.option(
    "--seasonality",
    multiple=True,
    type=click.IntRange(min=2),
    help="Steps in a season, such as 24 for the hours of a day. May be given more than once.  "
    "[default: from the times, or found]",
)
@click.option(
    "--features",
    **COLUMNS,
    help="Other columns to forecast from. Their future values must be given by --future.",
)
@click.option(
    "--future",
    metavar="TABLE",
    type=InputPath("the table of --future"),
    help="Table with the --features in the next steps, and the columns of time and series.",
)
@click.option(
    "--holidays",
    metavar="COUNTRY",
    multiple=True,
    help="Country whose public holidays have effects, such as DE, DE-BY or US. May be given more "
    "than once.",
)
@click.option(
    "--events",
    metavar="TABLE",
    type=InputPath("the table of --events"),
    help="Table with own days that have effects, past and coming: columns ds and event, and "
    "lower_window and upper_window for days around them.",
)
@click.option(
    "--censored",
    metavar="COLUMN",
    help="Column that is 1 where the value is the least that there was, as what was sold on a day "
    "on which the shelf was empty, and else 0. --future does not need it.",
)
@click.option(
    "--capacity",
    type=float,
    help="What values can grow to and never reach, such as the households of a town.",
)
@click.option("--floor", type=float, default=0.0, help="Where values with a --capacity end below.")
@click.option(
    "--sum",
    "region",
    metavar="COLUMN",
    help="Column by which series are summed, such as a region: its sums are forecast, too.",
)
@click.option(
    "--output",
    type=OutputPath(),
    help="Where forecasts go: .csv, .parquet or .arrow.  [default: standard output, as CSV]",
)
@options("level")
@several_quantiles
@options(*READING_OPTIONS, "report", "quiet")
def forecast(**settings: Any) -> None:
    """Forecast the next steps of each series in FILE (or on standard input: -).

    Writes for each series and step the median, which is the point forecast, the mean, the standard
    deviation, and the ends of the interval. Only the horizon has to be chosen: several
    autoregressions are averaged, weighted by how well they have forecast so far. Missing values and
    times count as not observed. All of FILE is read into memory.
    """
    from posterity.cli.forecast import Settings, run

    run_guarded(run, Settings(**settings))


VERBS = (fit, update, predict, show, merge, unlearn, forecast)
