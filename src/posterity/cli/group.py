"""Base of all verbs: the group, errors in one line, and callbacks that read options."""

from __future__ import annotations

import csv
import os
import re
import shlex
import sys
import warnings
from typing import Any

import click

from posterity.cli import forgetting as ways
from posterity.cli import models as words
from posterity.cli.outputs import check_outputs
from posterity.safety import escaped


class Problem(click.ClickException):
    """Input that cannot be used."""

    exit_code = 2


COMMAND_LINE = "posterity.written"


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
            _report_error(f"{_join_lines(error.format_message())} (see {command} --help)")
            sys.exit(error.exit_code)
        except click.ClickException as error:
            _report_error(_join_lines(error.format_message()))
            sys.exit(error.exit_code)
        except click.Abort:
            _report_error("stopped")
            sys.exit(130)
        except BrokenPipeError:
            # The reader has gone: nothing is left to say, not even when Python closes stdout.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)
        sys.exit(code if isinstance(code, int) else 0)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep what was written, for reports to say how they were made."""
        ctx.meta[COMMAND_LINE] = shlex.join(["posterity", *args])
        return click.Group.parse_args(self, ctx, args)

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        return click.Group.main(self, *args, standalone_mode=False, **kwargs)  # type: ignore[call-overload]


def names(ctx: click.Context, option: click.Parameter, value: tuple[str, ...]) -> Any:
    """Column names, with commas between, of all times the option was given; quoted if need be."""
    if not value:
        return None if option.name == "features" else ()
    found = [name for row in csv.reader(value, skipinitialspace=True) for name in row]
    return tuple(name.strip() for name in found if name.strip())


def lags(ctx: click.Context, option: click.Parameter, value: tuple[str, ...]) -> tuple[int, ...]:
    """Numbers of rows, with commas between, of all times the option was given."""
    found = [word.strip() for text in value for word in text.split(",") if word.strip()]
    for word in found:
        if not (word.isdecimal() and int(word) > 0):
            raise click.BadParameter(
                f"{word!r} is not a number of rows from 1 up, as in --lag 1,24"
            )
    return tuple(map(int, found))


def noise_precision(ctx: click.Context, option: click.Parameter, value: str) -> float | None:
    """Read a positive number, or `learned`, which is None."""
    if value == "learned":
        return None
    try:
        precision = float(value)
    except ValueError:
        precision = 0.0
    if not 0.0 < precision < float("inf"):
        raise click.BadParameter(f"{value!r}: give a positive number, or 'learned'")
    return precision


def prior_precision(ctx: click.Context, option: click.Parameter, value: str) -> float | str:
    """Read a number, or how the precision is to be learned."""
    if value in ("auto", "ard"):
        return value
    try:
        precision = float(value)
    except ValueError:
        precision = -1.0
    if not 0.0 <= precision < float("inf"):
        raise click.BadParameter(f"{value!r}: give a number from 0 up, 'auto' or 'ard'")
    return precision


def forgetting(ctx: click.Context, option: click.Parameter, value: str) -> str:
    """Check what was written; the strategy itself is made when the work begins."""
    try:
        ways.parse(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    return value.strip()


def models(ctx: click.Context, option: click.Parameter, value: tuple[str, ...]) -> str:
    """Check what was written; the models are made when the work begins."""
    joined = ",".join(value)
    try:
        words.parse(joined)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    return joined


def model(ctx: click.Context, option: click.Parameter, value: str) -> str:
    """The same for one model."""
    try:
        words.parse_one(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    return value


def categories(
    ctx: click.Context, option: click.Parameter, value: tuple[str, ...]
) -> dict[str, tuple[str, ...]]:
    """Columns and their levels, each written ``zone=a,b,c``."""
    found: dict[str, tuple[str, ...]] = {}
    for text in value:
        column, sign, named = text.partition("=")
        levels = tuple(level.strip() for level in named.split(",") if level.strip())
        if not (column and sign and levels):
            raise click.BadParameter(f"{text!r}: write a column and its levels, as in zone=a,b,c")
        if column in found:
            raise click.BadParameter(f"the levels of {column!r} are given twice: give them once")
        found[column] = levels
    return found


def shares(
    ctx: click.Context, option: click.Parameter, value: str | None
) -> dict[str, float] | None:
    """Names and numbers, written ``A=0.8,B=0.2``."""
    if value is None:
        return None
    found = {}
    for part in value.split(","):
        name, _, number = part.rpartition("=")
        try:
            found[name.strip()] = float(number)
        except ValueError:
            raise click.BadParameter(f"{part!r}: write an arm and its share, as in A=0.5") from None
    return found


def pair(
    ctx: click.Context, option: click.Parameter, value: str | None
) -> tuple[float, float] | None:
    """Two numbers, with a comma between."""
    if value is None:
        return None
    try:
        low, high = (float(part) for part in value.split(","))
    except ValueError:
        raise click.BadParameter(f"{value!r}: write two numbers, as in 0,1") from None
    return low, high


def hash_size(ctx: click.Context, option: click.Parameter, value: str | None) -> int | None:
    """A whole number, which may be written as a power: 2^22."""
    if value is None:
        return None
    base, _, exponent = value.replace("**", "^").partition("^")
    try:
        size = int(base) ** min(int(exponent or 1), 99)
    except ValueError:
        size = 0
    if not 1 <= size < 2**31:
        raise click.BadParameter(f"{value!r}: write a whole number below 2^31, as in 2^22")
    return size


def interactions(
    ctx: click.Context, option: click.Parameter, value: str | None
) -> int | list[tuple[str, str]] | None:
    """All pairs, written ``2``, or pairs of columns, written ``user:item,user:shop``."""
    if value is None or value.strip() == "2":
        return None if value is None else 2
    pairs = []
    for text in value.split(","):
        one, sign, other = (part.strip() for part in text.partition(":"))
        if not (one and sign and other):
            raise click.BadParameter(f"{text!r}: write 2, or pairs of columns, as in user:item")
        pairs.append((one, other))
    return pairs


def describe_command() -> str:
    """The command line of this run."""
    return str(click.get_current_context().meta.get(COMMAND_LINE, ""))


def run_guarded(work: Any, *arguments: Any, **keywords: Any) -> None:
    """Run, and let every error that is about the input reach the user as one line."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            check_outputs(click.get_current_context())
            work(*arguments, **keywords)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "posterity"):
            raise
        extra = "plots" if package == "matplotlib" else "cli"
        raise Problem(f"this needs {package}: pip install 'posterity[{extra}]'") from error
    except BrokenPipeError:
        raise
    except (ValueError, TypeError, OSError) as error:
        message = "; ".join([str(error), *getattr(error, "__notes__", ())])
        raise Problem(_format_as_option(message)) from error
    for warning in caught:
        click.echo(f"note: {_join_lines(str(warning.message))}", err=True)


def _format_as_option(message: str) -> str:
    """Write drop=['x'] or dates="days" in the library's messages as --drop x or --dates days."""
    message = message.replace("(unique_id)", "(--series)")
    message = re.sub(r"\bdrop=\[(['\"])(.*?)\1\]", _format_dropped, message)
    message = message.replace(
        "take a classifier (BayesianLogisticRegression)", "say --model logistic"
    )
    message = re.sub(r'\bdate_format="(.*?)"', r'--date-format "\1"', message)
    return re.sub(r'\b(missing|dates|decimal|thousands)="([\w,]+)"', r"--\1 \2", message)


def _format_dropped(found: re.Match[str]) -> str:
    """The option, for a shell: a name with a comma in it quoted twice."""
    name = found[2]
    if "," in name or '"' in name:
        name = '"' + name.replace('"', '""') + '"'
    return f"--drop {shlex.quote(name)}"


def _report_error(message: str) -> None:
    click.echo(f"posterity: {escaped(message)}", err=True)


def _join_lines(message: str) -> str:
    return escaped(" ".join(message.split()))
