"""Base of all verbs: the group, errors in one line, and callbacks that read options."""

from __future__ import annotations

import csv
import os
import shlex
import sys
import warnings
from collections.abc import Callable
from typing import Any

import click

from posterity import words
from posterity.cli.outputs import check_outputs
from posterity.safety import escaped


class Share(click.FloatRange):
    """A number between 0 and 1, both left out."""

    def __init__(self) -> None:
        super().__init__(0.0, 1.0, min_open=True, max_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read the number; of a percentage, say what to give."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            percent = str(value).removesuffix("%")
            if percent.replace(".", "", 1).isdecimal() and 1.0 <= float(percent) < 100.0:
                self.fail(f"{value} is not between 0 and 1: give {float(percent) / 100:g}")
            raise


SHARE = Share()


class ReadingOption(click.Option):
    """An option of how a table is read, which stands under a heading of its own in the help."""

    heading = "Reading the file"


class Verb(click.Command):
    """A command whose options stand in the help under their headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, those of reading last."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None:
                heading = getattr(param, "heading", "Options")
                sections.setdefault(heading, []).append(record)
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records)


class Problem(click.ClickException):
    """Input that cannot be used."""

    exit_code = 2


COMMAND_LINE = "posterity.written"


# What the verbs are for, in the order of the help.
PURPOSES = {
    "Try it": ("demo",),
    "Check a model": ("evaluate", "compare"),
    "Learn and predict": ("fit", "update", "predict", "show", "merge", "unlearn"),
    "Look ahead": ("forecast",),
    "Decide": ("plan", "experiment", "off-policy"),
    "Serve": ("serve", "audit", "import"),
}


class OneLineErrors(click.Group):
    """A group that says what is wrong in one line on stderr, and is quiet when a pipe closes."""

    command_class = Verb

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs under what they are for; a group of others in one list."""
        verbs = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        purposes = PURPOSES if "fit" in verbs else {"Commands": tuple(verbs)}
        width = max(map(len, verbs))
        for purpose, names_of_verbs in purposes.items():
            lines = [
                (name.ljust(width), verb.get_short_help_str(limit=formatter.width))
                for name in names_of_verbs
                if (verb := verbs.get(name))
            ]
            with formatter.section(purpose):
                formatter.write_dl(lines)

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
    precision = words.read_precision(value)
    if not precision:
        raise click.BadParameter(f"{value!r}: give a positive number, or 'learned'")
    return precision


def prior_precision(ctx: click.Context, option: click.Parameter, value: str) -> float | str:
    """Read a number, or how the precision is to be learned."""
    if value in ("auto", "ard"):
        return value
    precision = words.read_precision(value)
    if precision is None:
        raise click.BadParameter(f"{value!r}: give a number from 0 up, 'auto' or 'ard'")
    return precision


def forgetting(ctx: click.Context, option: click.Parameter, value: str) -> str:
    """Check what was written; the strategy itself is made when the work begins."""
    from posterity.forgetting.words import parse  # here: help is to be light

    return _check(parse, value).strip()


def models(ctx: click.Context, option: click.Parameter, value: tuple[str, ...]) -> str:
    """Check what was written; the models are made when the work begins."""
    return _check(words.parse, ",".join(value))


def model(ctx: click.Context, option: click.Parameter, value: str) -> str:
    """The same for one model."""
    return _check(words.parse_one, value)


def _check(parse: Callable[[str], object], value: str) -> str:
    try:
        parse(value)
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


def named_numbers(
    ctx: click.Context, option: click.Parameter, value: tuple[str, ...]
) -> dict[str, float] | None:
    """Names and numbers, written ``A=0.8,B=0.2``, of all times the option was given."""
    found: dict[str, float] = {}
    for part in names(ctx, option, value):
        name, _, number = (one.strip() for one in part.rpartition("="))
        if name in found:
            raise click.BadParameter(f"{name!r} is given twice: give it once")
        try:
            found[name] = float(number)
        except ValueError:
            how = "write a name and its number, as in A=0.5"
            raise click.BadParameter(f"{part!r}: {how}") from None
    return found or None


def number(ctx: click.Context, option: click.Parameter, value: str) -> float:
    """A number, which is not written in percent."""
    try:
        return float(value)
    except ValueError:
        raise click.BadParameter(f"{value!r}: write a number, and 5% as 0.05") from None


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


def mark(ctx: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """One character, of which a tab may be written out."""
    return {"tab": "\t", "\\t": "\t"}.get(value or "", value)


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
        message = "; ".join([_describe(error), *getattr(error, "__notes__", ())])
        raise Problem(message.replace("(unique_id)", "(--series)")) from error
    for note in dict.fromkeys(_join_lines(str(warning.message)) for warning in caught):
        click.echo(f"note: {note}", err=True)


def _describe(error: Exception) -> str:
    """The message of an error, its remedies in options that this verb has."""
    describe = getattr(error, "describe", None)
    return str(error) if describe is None else str(describe(_write_as_options))


def _write_as_options(cure: Any) -> str | None:
    """A cure with options for a shell; None if the verb lacks one, or all were given already."""
    context = click.get_current_context()
    options = {name: option for option in context.command.params for name in option.opts}
    written, is_new = [], False
    for name, values in cure.options.items():
        long = f"--{name.replace('_', '-')}"
        option, given = options.get(long), context.params.get(name)
        for value in values if isinstance(values, list) else [values]:
            if option is None or not takes(option, value):
                return None
            written.append(long if value is True else f"{long} {_quote(option, value)}")
            is_new |= value != given and value not in (given if isinstance(given, tuple) else ())
    return cure.sentence.format(" ".join(written)) if is_new else None


def takes(option: click.Parameter, value: object) -> bool:
    """Return True unless an option has choices and this is none of them."""
    return not isinstance(option.type, click.Choice) or value in option.type.choices


def _quote(option: click.Parameter, value: str) -> str:
    """A value for a shell; in a list of names, one with a comma in it has quotes of its own."""
    if option.callback is names and ("," in value or '"' in value):
        value = '"' + value.replace('"', '""') + '"'
    quoted = shlex.quote(value)
    plain = quoted == f"'{value}'" and not set(value).intersection('"$`!\\')
    return f'"{value}"' if plain else quoted


def _report_error(message: str) -> None:
    click.echo(f"posterity: {escaped(message)}", err=True)


def _join_lines(message: str) -> str:
    return escaped(" ".join(message.split()))
