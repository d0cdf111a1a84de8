"""Options and help of the command; the work is imported when a command runs."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from typing import Any

import click

from posterity import __version__
from posterity.cli import forgetting as ways
from posterity.cli import models as words

EXAMPLES = """\b
Examples:
  posterity evaluate rides.csv --target fare
  posterity evaluate rides.parquet --target fare --drop id,when --level 0.5 --level 0.95
  posterity evaluate sensor.csv.gz --target load --missing mean --delay 24
  posterity evaluate sensor.csv --target load --forgetting adaptive
  posterity evaluate rides.csv --target fare --json > scores.json
  posterity evaluate rides.csv --target fare --report report.html
  posterity compare rides.csv --target fare --models auto,flat,spline
  posterity demo
  posterity demo drift"""

EVALUATE_EXAMPLES = """\b
Examples:
  posterity evaluate rides.csv --target fare
  posterity evaluate rides.csv --target fare --drop id --level 0.5 --level 0.95
  posterity evaluate rides.csv --target fare --forgetting adaptive
  posterity evaluate rides.csv --target fare --json | jq .coverage"""


COMPARE_EXAMPLES = """\b
Examples:
  posterity compare rides.csv --target fare --models auto,flat,ard
  posterity compare rides.csv --target fare --models auto,spline,hsgp+adaptive
  posterity compare load.csv --target load --models auto,adaptive --report compared.html

\b
Models: words with plus signs between, at most one of each kind.
  prior       auto (the default), ard, flat, prior:NUMBER
  basis       spline[:KNOTS], hsgp[:FUNCTIONS], polynomial[:DEGREE], bumps[:CENTRES],
              fourier[:FREQUENCIES], random-fourier[:FUNCTIONS]; else straight lines
  forgetting  adaptive, exponential:0.99, stabilized:0.99, directional:0.99,
              smoothing:0.8, random-walk:0.01, window:500, changepoint[:0.01]; else none"""


class Problem(click.ClickException):
    """Input that cannot be used."""

    exit_code = 2


WRITTEN = "posterity.written"


class OneLineErrors(click.Group):
    """A group that says what is wrong in one line on stderr, and is quiet when a pipe closes."""

    def main(self, *args: Any, standalone_mode: bool = True, **kwargs: Any) -> Any:
        """Run, and turn every foreseen failure into a line and an exit code."""
        if not standalone_mode:
            return self._run(*args, **kwargs)
        try:
            code = self._run(*args, **kwargs)
            sys.stdout.flush()
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.ctx.get_help() if error.ctx else "", err=True)
            sys.exit(error.exit_code)
        except click.UsageError as error:
            command = error.ctx.command_path if error.ctx else "posterity"
            _complain(f"{_one_line(error.format_message())} (see {command} --help)")
            sys.exit(error.exit_code)
        except click.ClickException as error:
            _complain(_one_line(error.format_message()))
            sys.exit(error.exit_code)
        except click.Abort:
            _complain("stopped")
            sys.exit(130)
        except BrokenPipeError:
            # The reader has gone: nothing is left to say, not even when Python closes stdout.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)
        sys.exit(code if isinstance(code, int) else 0)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep what was written, for reports to say how they were made."""
        ctx.meta[WRITTEN] = shlex.join(["posterity", *args])
        return click.Group.parse_args(self, ctx, args)

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        return click.Group.main(self, *args, standalone_mode=False, **kwargs)  # type: ignore[call-overload]


def _names(ctx: click.Context, option: click.Parameter, value: str | None) -> Any:
    """Column names, with commas between."""
    if value is None:
        return None if option.name == "features" else ()
    return tuple(name.strip() for name in value.split(",") if name.strip())


def _noise_precision(ctx: click.Context, option: click.Parameter, value: str) -> float | None:
    """Read a positive number, or `learned`, which is None."""
    if value == "learned":
        return None
    try:
        precision = float(value)
    except ValueError:
        precision = 0.0
    if not 0.0 < precision < float("inf"):
        raise click.BadParameter(f"{value!r} is neither a positive number nor 'learned'")
    return precision


def _prior_precision(ctx: click.Context, option: click.Parameter, value: str) -> float | str:
    """Read a number, or how the precision is to be learned."""
    if value in ("auto", "ard"):
        return value
    try:
        precision = float(value)
    except ValueError:
        precision = -1.0
    if not 0.0 <= precision < float("inf"):
        raise click.BadParameter(f"{value!r} is neither a number from 0 up, nor 'auto' or 'ard'")
    return precision


def _forgetting(ctx: click.Context, option: click.Parameter, value: str) -> str:
    """Check what was written; the strategy itself is made when the work begins."""
    try:
        ways.parse(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    return value.strip()


@click.group(
    cls=OneLineErrors,
    epilog=EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, message="posterity %(version)s")
def posterity() -> None:
    """Bayesian regression on data that keeps coming.

    Every row of a file is predicted, with an interval, by a model that has learned only the rows
    before it; then it is learned. The scores that result are honest: no row was known before it
    was predicted.
    """


def _models(ctx: click.Context, option: click.Parameter, value: str) -> str:
    """Check what was written; the models are made when the work begins."""
    try:
        words.parse(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    return value


def _options_of(command: click.Command, *names: str) -> Callable[[Any], Any]:
    """The same options as another command's, with the same help."""

    def add(function: Any) -> Any:
        known = {parameter.name: parameter for parameter in command.params}
        own = getattr(function, "__click_params__", [])
        function.__click_params__ = own + [known[name] for name in reversed(names)]
        return function

    return add


report_option = click.option(
    "--report",
    metavar="PAGE.html",
    type=click.Path(),
    help="Also write a page with charts, to be opened in a browser; it needs nothing else.",
)
period_option = click.option(
    "--period",
    type=click.IntRange(min=1),
    help="Rows in a season, 24 for hours of a day: compare with the value one season ago as well.",
)


@posterity.command(epilog=EVALUATE_EXAMPLES, short_help="Score predictions of each row of a file.")
@click.argument("file", type=click.Path())
@click.option("--target", required=True, help="Column to predict.")
@click.option(
    "--level",
    "levels",
    multiple=True,
    default=(0.95,),
    show_default=True,
    type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
    help="Level of the intervals whose coverage is measured. May be given more than once.",
)
@click.option(
    "--prior-precision",
    default="auto",
    show_default=True,
    metavar="NUMBER|auto|ard",
    callback=_prior_precision,
    help="How firmly coefficients are held near 0. auto: learned from the rows, whatever their "
    "units; ard: learned for each feature by itself; or a number, relative to the noise where that "
    "is learned: 0 leaves coefficients free.",
)
@click.option(
    "--noise-precision",
    default="learned",
    show_default=True,
    metavar="NUMBER|learned",
    callback=_noise_precision,
    help="1 / variance of the noise, when it is known.",
)
@click.option(
    "--forgetting",
    default="none",
    show_default=True,
    metavar="HOW",
    callback=_forgetting,
    help="How old rows lose their say, where the world changes: none; adaptive, which needs no "
    "number; or one of exponential:0.99, stabilized:0.99, directional:0.99, smoothing:0.8, "
    "random-walk:0.01 (variance of a step), window:500 (rows), changepoint[:0.01] (chance of a "
    "change).",
)
@click.option(
    "--features",
    metavar="a,b,...",
    callback=_names,
    help="Columns to predict from, in this order. All but the target by default.",
)
@click.option("--drop", metavar="c,d,...", callback=_names, help="Columns to leave out.")
@click.option(
    "--batch-rows",
    default=65536,
    show_default=True,
    type=click.IntRange(min=1),
    help="Rows held in memory at a time. Changes memory and speed, not the scores.",
)
@click.option(
    "--delay",
    default=0,
    show_default=True,
    type=click.IntRange(min=0),
    help="Targets become known so many rows later.",
)
@click.option(
    "--missing",
    default="error",
    show_default=True,
    type=click.Choice(["error", "skip", "mean"]),
    help="Missing values: stop, leave the row out, or use the mean of the column so far.",
)
@period_option
@report_option
@click.option("--no-intercept", is_flag=True, help="Predict 0 where all features are 0.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for machines.")
@click.option("--quiet", is_flag=True, help="No progress bar and no notes on stderr.")
def evaluate(**options: Any) -> None:
    """Predict, then learn, every row of FILE, and say how good the predictions were.

    FILE is CSV (.csv, .tsv, .txt, also with .gz; column names in the first line), Parquet
    (.parquet) or Arrow (.arrow, .feather). It is read in batches, never whole. Numbers and
    booleans are used as they are. Text columns are categories: their levels are those of the first
    batch, and a level that turns up later counts as none of them. Dates must be dropped or turned
    into numbers.
    """
    from posterity.cli.evaluate import Settings, run

    _guarded(run, Settings(**options, command=_written()))


@posterity.command(
    epilog=COMPARE_EXAMPLES, short_help="Rank several models by their predictions of a file."
)
@click.argument("file", type=click.Path())
@click.option("--target", required=True, help="Column to predict.")
@click.option(
    "--models",
    required=True,
    metavar="a,b+c,...",
    callback=_models,
    help="Models to compare, with commas between; their words are listed below.",
)
@click.option(
    "--loss",
    default="log_score",
    show_default=True,
    type=click.Choice(["log_score", "crps", "absolute", "squared"]),
    help="What they are ranked by: minus the log density of the targets, or an error.",
)
@_options_of(evaluate, "levels", "noise_precision", "features", "drop", "batch_rows", "delay")
@_options_of(evaluate, "missing", "period", "report", "as_json", "quiet")
def compare(**options: Any) -> None:
    """Let several models predict, then learn, every row of FILE, and rank them.

    All models predict the same rows, so their losses are compared in pairs; standard errors allow
    for rows that go together in time (Diebold and Mariano 1995). FILE is read as by evaluate.
    """
    from posterity.cli.compare import Settings, run

    _guarded(run, Settings(**options, command=_written()))


@posterity.command(short_help="See it work, and draw a figure.")
@click.argument("what", type=click.Choice(["diabetes", "drift"]), default="diabetes")
@click.option(
    "--output",
    type=click.Path(dir_okay=False),
    help="Where to write the figure (PNG).  "
    "[default: posterity-demo.png, or posterity-demo-drift.png]",
)
def demo(what: str, output: str | None) -> None:
    """Predict, then learn, a stream row by row, and draw how it went.

    diabetes (the default): scikit-learn's set of 442 patients (Efron, Hastie, Johnstone and
    Tibshirani 2004): ten measurements of each patient, and the progression of the disease a year
    later. Draws coverage and error along time.

    drift: a line that turns into another one (Halford 2020), 250 rows. Compares ways to forget,
    and draws their errors along time.
    """
    if what == "drift":
        from posterity.cli.drift import run as run_drift

        _guarded(run_drift, output or "posterity-demo-drift.png")
        return
    from posterity.cli.demo import run

    _guarded(run, output or "posterity-demo.png")


def _written() -> str:
    return str(click.get_current_context().meta.get(WRITTEN, ""))


def _guarded(work: Any, *arguments: Any) -> None:
    """Run, and let every error that is about the input reach the user as one line."""
    try:
        work(*arguments)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "posterity"):
            raise
        extra = "plots" if package == "matplotlib" else "cli"
        raise Problem(f"this needs {package}: pip install 'posterity[{extra}]'") from error
    except BrokenPipeError:
        raise
    except (ValueError, TypeError, OSError) as error:
        raise Problem("; ".join([str(error), *getattr(error, "__notes__", ())])) from error


def _complain(message: str) -> None:
    click.echo(f"posterity: {message}", err=True)


def _one_line(message: str) -> str:
    return " ".join(message.split())
