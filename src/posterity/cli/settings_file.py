"""Settings in a file: posterity.toml, the options of the command by their names."""

from __future__ import annotations

import os
import stat
import tomllib
from typing import Any

import click

from posterity.cli.group import takes

NAME = "posterity.toml"
LARGEST = 1_000_000  # bytes


def read(path: str | None, verbs: click.Group) -> dict[str, dict[str, Any]]:
    """Return click's defaults from a file: for each verb, values by the names of its parameters.

    Parameters
    ----------
    path : str or None
        The file; None: posterity.toml in the current folder, if there is one.
    verbs : click group
        The verbs, and the options that they have.

    Raises
    ------
    ValueError
        No such file, no TOML, or a name that is no verb or option.
    """
    if path is None and not os.path.exists(NAME):
        return {}
    path = path or NAME
    written = _read(path)
    common = {name: value for name, value in written.items() if not isinstance(value, dict)}
    own = {name: value for name, value in written.items() if isinstance(value, dict)}
    known = {verb: _options(command) for verb, command in verbs.commands.items()}
    for verb in own:
        if verb not in known:
            raise ValueError(
                f"{path}: [{verb}] is not a verb; give one of {', '.join(sorted(known))}"
            )
    _check(path, common, {name for options in known.values() for name in options}, "any verb")
    _check_choices(path, common, known)
    for verb, values in own.items():
        _check(path, values, set(known[verb]), f"posterity {verb}")
    return {
        verb: {
            options[name].name or name: _format_value(options[name], value)
            for name, value in {**common, **own.get(verb, {})}.items()
            if name in own.get(verb, {}) or (name in options and takes(options[name], value))
        }
        for verb, options in known.items()
    }


def _read(path: str) -> dict[str, Any]:
    try:
        status = os.stat(path)
        # A pipe without a writer would keep the command waiting for ever.
        if not stat.S_ISREG(status.st_mode):
            raise ValueError(f"{path} is not a file: give the settings in a file")
        if status.st_size > LARGEST:
            raise ValueError(
                f"{path} has {status.st_size:,} bytes: a settings file may have at most "
                f"{LARGEST:,}: shorten it"
            )
        with open(path, "rb") as file:
            return tomllib.load(file)
    except FileNotFoundError:
        raise ValueError(f"{path}: no such file; check the path") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not TOML ({error}): correct that line") from error
    except RecursionError:
        raise ValueError(
            f"{path} has tables or lists that are nested too deeply: use one level of tables"
        ) from None


def _options(command: click.Command) -> dict[str, click.Option]:
    """Options by the name that is written, without its dashes."""
    return {
        option.opts[-1].removeprefix("--"): option
        for option in command.params
        if isinstance(option, click.Option)
    }


def _check(path: str, values: dict[str, Any], known: set[str], where: str) -> None:
    for name in values:
        if name not in known:
            raise ValueError(
                f"{path}: {name!r} is not an option of {where}; give one of "
                f"{', '.join(sorted(known))}"
            )


def _check_choices(
    path: str, common: dict[str, Any], known: dict[str, dict[str, click.Option]]
) -> None:
    """A setting for all verbs is used by those that take it: at least one must."""
    for name, value in common.items():
        having = [options[name] for options in known.values() if name in options]
        if not any(takes(option, value) for option in having):
            kinds = [option.type for option in having if isinstance(option.type, click.Choice)]
            choices = sorted({str(choice) for kind in kinds for choice in kind.choices})
            raise ValueError(f"{path}: {name} can't be {value!r}; give one of {', '.join(choices)}")


def _format_value(option: click.Option, value: Any) -> Any:
    """A value as it would come from the command line: lists of names with commas between."""
    if option.multiple:
        return value if isinstance(value, list) else [value]
    if isinstance(value, list):
        return ",".join(map(str, value))
    return value if isinstance(value, bool) else str(value)
