"""Verbs around model files: options and help; the work is imported when one runs."""

from __future__ import annotations

from typing import Any

import click

from posterity.cli import group
from posterity.cli.group import describe_command, run_guarded
from posterity.cli.options import TABLE, WIDE, options

FIT = """\b
Examples:
  posterity fit rides.csv --target fare --output fare.posterity
  posterity fit rides.parquet --target fare --drop id --missing mean --output fare.posterity
  posterity fit visits.csv --target bought --model logistic --output bought.posterity
  posterity fit clicks.csv --target clicked --model logistic --structure diagonal \\
    --hash 2^22 --interactions site:ad --output clicks.posterity
  zcat rides-*.csv.gz | posterity fit - --target fare --output fare.posterity"""

UPDATE = """\b
Examples:
  posterity update fare.posterity tomorrow.csv
  posterity update fare.posterity tomorrow.csv --output fare-2.posterity
  zcat new.csv.gz | posterity update fare.posterity -"""

PREDICT = """\b
Examples:
  posterity predict fare.posterity asked.csv
  posterity predict fare.posterity asked.csv --level 0.5 --quantile 0.1 --quantile 0.9
  posterity predict fare.posterity asked.parquet --output predicted.parquet
  posterity predict fare.posterity - < asked.csv | head"""

MERGE = """\b
Examples:
  posterity merge north.posterity south.posterity --output all.posterity"""

UNLEARN = """\b
Examples:
  posterity unlearn fare.posterity mistaken.csv
  posterity unlearn fare.posterity mistaken.csv --output mended.posterity"""

SHOW = """\b
Examples:
  posterity show fare.posterity
  posterity show fare.posterity --level 0.5
  posterity show fare.posterity --json | jq .coefficients"""

FORECAST = """\b
Examples:
  posterity forecast load.csv --target load --time hour --horizon 48
  posterity forecast sales.csv --target sold --time day --series shop --horizon 14 --level 0.8
  posterity forecast load.csv --target load --time hour --horizon 48 --report next.html
  posterity forecast sales.csv --target sold --time day --series shop --horizon 14 \\
    --features price,holiday --future plan.csv --output next.parquet"""

model_argument = click.argument("model", type=click.Path())
file_argument = click.argument("file", type=click.Path(allow_dash=True))
learned_target = click.option(
    "--target", help="Column to learn to predict.  [default: the one the model was fitted to]"
)
replaced = click.option(
    "--output",
    metavar="NEW_MODEL",
    type=click.Path(),
    help="Where the model goes then.  [default: MODEL is replaced]",
)
learned_missing = click.option(
    "--missing",
    type=click.Choice(["error", "skip", "mean", "level"]),
    help="Missing values: stop, leave the row out, or use the mean of the column in the rows so "
    "far, those that MODEL has learned with --missing mean among them; where it was fitted with "
    "level, a missing category is one.  [default: as given to fit]",
)
learned_weight = click.option(
    "--weight", metavar="COLUMN", help="Column of the rows' weights.  [default: as given to fit]"
)
learned_time = click.option(
    "--time",
    metavar="COLUMN",
    help="Column of when each row came, after those that MODEL has learned.  "
    "[default: as given to fit]",
)
one_level = click.option(
    "--level",
    default=0.95,
    show_default=True,
    type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
    help="Level of the intervals.",
)
several_quantiles = click.option(
    "--quantile",
    "quantiles",
    multiple=True,
    type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
    help="Also a quantile, as 0.1, in a column q0.1. May be given more than once.",
)


@click.command(epilog=FIT, short_help="Learn a file, and keep the model in a file.")
@file_argument
@options("target")
@click.option("--output", required=True, metavar="MODEL", type=click.Path(), help="The model file.")
@options("model", "prior_precision", "noise_precision", "noise", "forgetting", "features", "drop")
@options("weight", *WIDE)
@options("time", "batch_rows", "memory", "missing", *TABLE, "log_target", "no_intercept", "quiet")
def fit(**settings: Any) -> None:
    """Learn every row of FILE, and write what was learned to a model file.

    FILE is read as by evaluate: CSV, JSON lines, Parquet or Arrow, a folder of such files, or - for
    standard input. The model file keeps the names of the columns, the target, what to do about
    missing values and the means that they are filled in with, so that update and predict know them
    again. A file of that name is replaced.
    """
    from posterity.cli.learn import FitSettings
    from posterity.cli.learn import fit as work

    run_guarded(work, FitSettings(**settings))


@click.command(epilog=UPDATE, short_help="Learn more rows into a model file.")
@model_argument
@file_argument
@learned_target
@replaced
@learned_weight
@learned_time
@learned_missing
@options("batch_rows", "memory", "quiet")
def update(**settings: Any) -> None:
    """Learn every row of FILE (or of standard input: -) on top of what MODEL knows.

    The columns are found by their names, in whatever order they are. The model file is replaced in
    one step once all rows are learned: whatever happens, it is the old model or the new one. Where
    a row can't be used, the old one stays as it was.
    """
    from posterity.cli.learn import update as work

    run_guarded(work, **settings)


@click.command(epilog=UNLEARN, short_help="Take rows back out of a model file.")
@model_argument
@file_argument
@learned_target
@replaced
@learned_weight
@click.option(
    "--missing",
    type=click.Choice(["error", "skip"]),
    help="Missing values: stop, or leave the row out.  [default: as fit did]",
)
@options("batch_rows", "memory", "quiet")
def unlearn(**settings: Any) -> None:
    """Forget the rows of FILE (or of standard input: -) as if MODEL had never learned them.

    The model does not keep its rows, so it refuses only what it can prove was never learned; the
    means that missing values are filled in with stay as they are. The model file is replaced in one
    step, as by update.
    """
    from posterity.cli.learn import unlearn as work

    run_guarded(work, **settings)


@click.command(epilog=MERGE, short_help="Join models that learned apart into one.")
@click.argument("models", nargs=-1, required=True, metavar="MODEL MODEL...", type=click.Path())
@click.option("--output", required=True, metavar="MODEL", type=click.Path(), help="The model file.")
@options("quiet")
def merge(**settings: Any) -> None:
    """Write the model that would have learned the rows of all MODELs.

    They must have been fitted with the same settings to the same columns; the prior counts once.
    """
    from posterity.cli.learn import merge as work

    run_guarded(work, **settings)


@click.command(epilog=PREDICT, short_help="Predict the rows of a file, with intervals.")
@model_argument
@file_argument
@click.option(
    "--output",
    type=click.Path(),
    help="Where predictions go: .csv, .parquet or .arrow.  [default: standard output, as CSV]",
)
@one_level
@several_quantiles
@click.option(
    "--keep",
    metavar="a,b,...",
    multiple=True,
    callback=group.names,
    help="Columns of FILE to write beside the predictions, as they are.",
)
@learned_missing
@options("batch_rows", "memory", "quiet")
def predict(**settings: Any) -> None:
    """Say what the rows of FILE (or of standard input: -) will bring.

    For each row: its number, from 0; the mean, the standard deviation and the ends of the interval
    of the observation to come. Of a classifier: the most probable label, and the probability of
    each. Columns that the model does not know, the target among them, are passed over.
    """
    from posterity.cli.predict import run

    run_guarded(run, **settings)


@click.command(epilog=SHOW, short_help="Tell what a model file holds.")
@model_argument
@one_level
@options("as_json")
def show(**settings: Any) -> None:
    """Tell what MODEL has learned: coefficients with intervals, noise, counts, columns.

    MODEL may be - for standard input.
    """
    from posterity.cli.show import run

    run_guarded(run, **settings)


@click.command(epilog=FORECAST, short_help="Say what comes in the next steps of series.")
@file_argument
@options("target")
@click.option(
    "--time",
    metavar="COLUMN",
    help="Column of when each row was: dates, or whole numbers, in any order.  "
    "[default: rows are in their order]",
)
@click.option("--series", metavar="COLUMN", help="Column of which series a row is of.")
@click.option(
    "--horizon", required=True, type=click.IntRange(min=1), help="How many steps to forecast."
)
@click.option(
    "--seasonality",
    multiple=True,
    type=click.IntRange(min=2),
    help="Steps in a season, 24 for hours of a day. May be given more than once.  "
    "[default: from the times, or found]",
)
@click.option(
    "--features",
    metavar="a,b,...",
    multiple=True,
    callback=group.names,
    help="Other columns to forecast from; what they will be must be known, in --future.",
)
@click.option(
    "--future",
    metavar="TABLE",
    type=click.Path(),
    help="Table of the --features in the next steps, with columns of time and series as FILE has.",
)
@click.option(
    "--output",
    type=click.Path(),
    help="Where forecasts go: .csv, .parquet or .arrow.  [default: standard output, as CSV]",
)
@one_level
@several_quantiles
@options("report", "quiet")
def forecast(**settings: Any) -> None:
    """Forecast the next steps of each series in FILE (or on standard input: -).

    For each series and step: the median, which is the point forecast; mean, standard deviation and
    the ends of the interval of what will be. Nothing has to be chosen but the horizon: several
    autoregressions are averaged by how they have forecast so far. Values that are missing, and
    times that are, were not observed. FILE is read whole.
    """
    from posterity.cli.forecast import Settings, run

    run_guarded(run, Settings(**settings, command=describe_command()))


VERBS = (fit, update, predict, show, merge, unlearn, forecast)
