"""Options and help of the command; the work is imported when a command runs."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import click

from posterity import __version__
from posterity.cli import decisions, verbs
from posterity.cli.group import OneLineErrors, models, run_guarded
from posterity.cli.options import READING_OPTIONS, TABLE_OPTIONS, WIDE_OPTIONS, options
from posterity.cli.outputs import InputPath, OutputPath

EXAMPLES = """\b
Examples:
  posterity demo --data rides.csv
  posterity evaluate rides.csv --target fare --dates calendar --missing level
  posterity evaluate rides.csv --target fare --drop pickup --missing skip --level 0.5 --level 0.95
  posterity evaluate rides.csv --target fare --dates calendar --missing level --json > scores.json
  posterity compare rides.csv --target fare --drop pickup --missing mean --models auto,robust
  posterity fit rides.csv --target fare --dates calendar --missing level --output fare.posterity
  posterity update fare.posterity tomorrow.csv
  posterity predict fare.posterity tomorrow.csv > predicted.csv
  posterity show fare.posterity
  posterity forecast load.csv --target load --time hour --horizon 48
  posterity plan --baseline 0.05 --effect 0.005
  posterity experiment visits.csv --arm variant --reward bought
  posterity off-policy decisions.csv --propensity p --policy uniform
  posterity demo drift"""

EVALUATE_EXAMPLES = """\b
Examples:
  posterity evaluate rides.csv --target fare --dates calendar --missing level
  posterity evaluate rides.csv --target fare --drop pickup --missing skip --level 0.5 --level 0.95
  posterity evaluate rides.csv --target fare --drop pickup --missing mean --forgetting adaptive
  posterity evaluate rides.csv --target fare --drop pickup --missing level --slice distance
  posterity evaluate load.csv --target load --dates calendar --lag 24 --delay 12 --report load.html
  posterity evaluate umsatz.csv --target Umsatz --dates days --date-format %d.%m.%Y --decimal , \\
    --thousands . --na k.A. --missing skip --drop-total
  posterity evaluate visits.csv --target bought --model logistic
  posterity evaluate clicks.csv --target clicked --model logistic --structure diagonal
  posterity evaluate rides.csv --target fare --drop pickup --missing skip --json | jq .coverage"""


COMPARE_EXAMPLES = """\b
Examples:
  posterity compare rides.csv --target fare --drop pickup --missing skip --models auto,flat,ard
  posterity compare rides.csv --target fare --drop pickup --missing skip --models auto,spline
  posterity compare load.csv --target load --dates calendar --models auto,adaptive --report c.html

\b
Models: words with plus signs between, at most one of each kind.
  target      linear (the default), robust[:DF], quantile[:0.9], poisson; logistic elsewhere;
              or a likelihood, as gamma, weibull, beta, tweedie[:1.5], ordinal:5
  prior       auto (the default), ard, flat, prior:NUMBER
  basis       spline[:KNOTS], hsgp[:FUNCTIONS], polynomial[:DEGREE], bumps[:CENTRES],
              fourier[:FREQUENCIES], random-fourier[:FUNCTIONS]; else straight lines
  forgetting  adaptive, exponential:0.99, stabilized:0.99, directional:0.99,
              smoothing:0.8, random-walk:0.01, window:500, changepoint[:0.01]; else none"""


@click.group(
    cls=OneLineErrors,
    epilog=EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
@click.version_option(__version__, message="posterity %(version)s")
@click.option(
    "--settings",
    metavar="FILE.toml",
    type=click.Path(),
    help="File with defaults of options, by their names; those of one verb under its name, "
    "as in [fit].  "
    "[default: posterity.toml in this folder, if there is one]",
)
@click.pass_context
def posterity(ctx: click.Context, settings: str | None) -> None:
    """Bayesian regression on streams of data.

    evaluate and compare predict every row of a file before the model learns it, and score these
    predictions.

    fit learns a file and saves the model. update learns more rows, unlearn removes rows, and merge
    combines models that learned different rows. predict predicts new rows, and show prints what a
    model has learned. forecast forecasts the next steps of series. plan finds how many rows a
    randomised experiment takes, experiment compares its arms, and off-policy evaluates policies
    from the log of another one.
    """
    run_guarded(_take_settings, ctx, settings)


def _take_settings(ctx: click.Context, path: str | None) -> None:
    from posterity.cli.settings_file import read

    ctx.default_map = dict(read(path, posterity))


@posterity.command(epilog=EVALUATE_EXAMPLES, short_help="Score predictions of each row of a file.")
@click.argument("file", type=InputPath())
@options("target", "model", "levels", "prior_precision", "noise_precision", "noise", "forgetting")
@options("features", "drop", "weight", "time", "offset", "exposure", "delay", "missing")
@options("lags", *TABLE_OPTIONS)
@options(*READING_OPTIONS, "batch_rows", "memory", "log_target", "period", "slices", *WIDE_OPTIONS)
@options("report", "no_intercept", "as_json", "quiet")
def evaluate(**options: Any) -> None:
    """Predict every row of FILE before learning it, and score the predictions.

    FILE is CSV (.csv, .tsv, .txt, also with .gz; column names in the first line), JSON
    lines (.jsonl, .ndjson, also with .gz; an object in each line), Parquet (.parquet) or Arrow
    (.arrow, .feather), a folder or pattern ('rides-*.csv') of such files, or - for standard input.
    It is read in batches. Numbers and booleans are used as they are. Text columns are categories
    with the levels of the first batch; later levels count as none of these. Dates are refused,
    unless --dates says how to use them.
    """
    from posterity.cli.evaluate import Settings, run

    run_guarded(run, Settings(**options))


@posterity.command(
    epilog=COMPARE_EXAMPLES, short_help="Rank several models by their predictions of a file."
)
@click.argument("file", type=InputPath())
@options("target")
@click.option(
    "--models",
    required=True,
    metavar="a,b+c,...",
    multiple=True,
    callback=models,
    help="Models to compare, separated by commas. The words are listed below.",
)
@click.option(
    "--loss",
    default="log_score",
    type=click.Choice(["log_score", "crps", "absolute", "squared"]),
    help="What they are ranked by: minus the log density of the targets, or an error.",
)
@options("levels", "noise_precision", "features", "drop", "weight", "offset", "exposure", "delay")
@options("missing", "lags", *TABLE_OPTIONS)
@options(*READING_OPTIONS, "batch_rows", "memory", "period", "slices", "report", "as_json", "quiet")
def compare(**options: Any) -> None:
    """Predict every row of FILE with several models before learning it, and rank the models.

    All models predict the same rows, so their losses are compared in pairs. Standard errors allow
    for correlation along time (Diebold and Mariano 1995). FILE is read as by evaluate.
    """
    from posterity.cli.compare import Settings, run

    run_guarded(run, Settings(**options))


@posterity.command(short_help="Run an example, and draw a figure.")
@click.argument(
    "what", type=click.Choice(["rides", "diabetes", "drift", "bandit", "clicks"]), default="rides"
)
@click.option(
    "--output",
    type=OutputPath(dir_okay=False),
    help="Where to write the figure (PNG).  "
    "[default: posterity-demo.png, or posterity-demo-drift.png and so on]",
)
@click.option(
    "--data",
    metavar="rides.csv",
    type=OutputPath(dir_okay=False),
    help="With rides: also write the table, to try the other verbs on.",
)
@click.option(
    "--open/--no-open",
    "opened",
    default=None,
    help="Whether to open the figure.  [default: on a terminal]",
)
def demo(what: str, output: str | None, data: str | None, opened: bool | None) -> None:
    """Predict each row of a stream before learning it, and draw the results.

    rides (the default): 4,000 simulated taxi rides, with dates, categories, missing values and a
    few wrong fares. Draws the intervals of the last rides, and the coverage.

    diabetes: scikit-learn's data on 442 patients (Efron, Hastie, Johnstone and Tibshirani 2004),
    with ten measurements of each patient, and the progression of the disease a year later. Draws
    coverage and error along time.

    drift: a line that turns into another one (Halford 2020), 250 rows. Compares ways to forget,
    and draws their errors along time.

    bandit: scikit-learn's 1,797 written digits. The bandit chooses a digit, and learns only whether
    the choice was right. Draws rewards and propensities along time, and evaluates other policies
    from the log.

    clicks: 50,000 simulated page views, with some 30,000 levels in eight columns. Draws the log
    loss along time, with that of the true probabilities, and the calibration of the probabilities.
    """
    work = f"posterity.cli.{'demo' if what == 'diabetes' else what}"
    path = output or ("posterity-demo.png" if what == "rides" else f"posterity-demo-{what}.png")
    if data is not None and what != "rides":
        raise click.UsageError(
            f"--data is only for the demo of rides, not for {what}: leave it out"
        )
    given = {"data": data} if what == "rides" else {}
    run_guarded(import_module(work).run, path, **given)
    if sys.stdout.isatty() if opened is None else opened:
        click.launch(path)


@posterity.command(short_help="Serve decisions and predictions over HTTP.")
@click.argument("folder", type=click.Path(file_okay=False))
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option("--port", default=7067, type=click.IntRange(0, 65535))
@click.option("--database", metavar="URL", help="postgresql://...; default: a file in FOLDER.")
@click.option("--public", is_flag=True, help="Listen on an address that others can reach.")
@click.option("--demo", is_flag=True, help="Serve an example too, with simulated traffic.")
@click.option(
    "--decide-only", is_flag=True, help="Decide beside a server that learns, in one PostgreSQL."
)
@click.option(
    "--new-token", is_flag=True, help="Print a new token of role admin, if the first one was lost."
)
def serve(folder: str, **how: Any) -> None:
    """Serve experiments and predictors from FOLDER, until stopped.

    Prints its address, which shows a live page in a browser, and at the first start a token of role
    admin. Everything is written to disk before it is answered.
    """
    from posterity.cli.serve import run

    run_guarded(run, folder, **how)


@posterity.command(short_help="Compute a served decision again.")
@click.argument("folder", type=click.Path(exists=True, file_okay=False))
@click.argument("experiment")
@click.argument("decision")
@click.option("--database", metavar="URL", help="As in serve.")
def audit(folder: str, experiment: str, decision: str, database: str | None) -> None:
    """Compute DECISION of EXPERIMENT again from the log in FOLDER, and compare."""
    from posterity.cli.serve import run_audit

    run_guarded(run_audit, folder, experiment, decision, database)


@posterity.group("import", short_help="Import the log of another service.")
def import_() -> None:
    """Import the log of another service into an experiment."""


@import_.command("dsjson", short_help="A log of Vowpal Wabbit or Azure Personalizer.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.argument("folder", type=click.Path(file_okay=False))
@click.argument("experiment")
@click.option("--database", metavar="URL", help="As in serve.")
def import_dsjson(file: str, folder: str, experiment: str, database: str | None) -> None:
    """Import FILE into EXPERIMENT of the service in FOLDER, which must not be running.

    If there is no such experiment, it is created with the arms and features of FILE. The logged
    propensities are kept, and rewards are learned in order. Decisions imported earlier are skipped.
    """
    from posterity.cli.serve import run_import

    run_guarded(run_import, file, folder, experiment, database)


for verb in (*verbs.VERBS, *decisions.VERBS):
    posterity.add_command(verb)
