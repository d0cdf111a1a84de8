"""Files that commands write, which must not be any of those that they read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click


class InputPath(click.Path):
    """A file, folder or pattern of names that is read; ``what`` names it in messages."""

    def __init__(self, what: str = "the table", **how: Any) -> None:
        super().__init__(allow_dash=True, **how)
        self.what = what


class OutputPath(click.Path):
    """A file that is written."""


class ReplacedPath(OutputPath):
    """A file that is read, and then written anew unless another output is given."""


def check_outputs(context: click.Context) -> None:
    """Raise ``ValueError``, before any work, where a verb would write over what it reads."""
    params = [one for one in context.command.params if context.params.get(one.name or "")]
    # What is written anew in its place: with --output it is only read, or named once more.
    replaced = [one for one in params if isinstance(one.type, ReplacedPath)]
    written = [one for one in params if isinstance(one.type, OutputPath) and one not in replaced]
    read = [(one, one.type.what) for one in params if isinstance(one.type, InputPath)]
    places: dict[tuple[int, int] | str, str] = {}
    for output in written or replaced:
        for path in _list_values(context, output):
            for source, what in read:
                for given in _list_values(context, source):
                    _refuse_input(path, _name(output), given, what)
            other = places.setdefault(_place(path), _name(output))
            if other != _name(output):
                raise ValueError(f"{other} and {_name(output)} are both {path}: give two files")


def _list_values(context: click.Context, param: click.Parameter) -> list[str]:
    value = context.params[param.name or ""]
    values = value if isinstance(value, tuple) else (value,)
    return [str(one) for one in values if one != "-"]  # standard input


def _name(param: click.Parameter) -> str:
    return param.opts[0] if isinstance(param, click.Option) else (param.name or "").upper()


def _refuse_input(output: str, option: str, given: str, what: str) -> None:
    from posterity.io.folders import find_tables, is_folder_or_pattern, is_table_of

    place, path = _place(output), Path(given)
    if place == _place(given):
        raise ValueError(f"{option} {output} is {what} itself, and would replace it: give another")
    if "://" in given or not is_folder_or_pattern(path):
        return
    if any(_place(file) == place for file in find_tables(path)):
        raise ValueError(
            f"{option} {output} is one of the files of {what}, {given}, and would replace it: "
            "give another"
        )
    folder, pattern = (path, "") if path.is_dir() else (path.parent, path.name)
    if is_table_of(Path(os.path.realpath(folder), pattern), Path(os.path.realpath(output))):
        raise ValueError(
            f"{option} {output} would be one more file of {what}, {given}, and be read with the "
            "others the next time: give one outside it"
        )


def _place(path: str | os.PathLike[str]) -> tuple[int, int] | str:
    """What a path leads to: hard links, links and mounts of one file have the same place."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return os.path.realpath(path)
    return status.st_dev, status.st_ino


def check_place(path: str, option: str = "--output") -> Path:
    """Return the path of a file; raises ``ValueError``, before any work, if it can't be written."""
    place = Path(path)
    if place.is_dir():
        raise ValueError(f"{path} is a folder: give {option} a file in it")
    if not place.absolute().parent.is_dir():
        raise ValueError(
            f"{place.parent} is not a folder: create it first, or give another {option}"
        )
    return place
