"""Tables of many files: a folder of them, or a pattern of names."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from posterity.io.columns import describe_type
from posterity.io.errors import TableError
from posterity.io.source import Batches, Source
from posterity.io.sources import find_ending, open_file
from posterity.io.text_format import TextFormat


class FolderSource(Source):
    """Files with the same columns, one after the other in the order of their names.

    The first says what the columns are; each of the others is opened, and compared with it, when
    its turn comes.
    """

    path: Path

    def __init__(self, path: Path, files: Sequence[Path], text: TextFormat | None = None) -> None:
        self.path, self._files, self.text = path, list(files), text or TextFormat()
        self._first = open_file(files[0], text)
        self.schema = self._first.schema
        # Source and first row of each file that was begun.
        self._begun: list[tuple[Source, int]] = []

    def batches(self, columns: Sequence[str], rows: int) -> Batches:
        """Record batches, file by file."""
        sizes = [file.stat().st_size for file in self._files]
        done, self._begun = 0, []
        for number, file in enumerate(self._files):
            source = self._first if number == 0 else open_file(file, self.text)
            self._compare(source, columns)
            self._begun.append((source, done))
            before = sum(sizes[:number])
            for batch, share in source.batches(columns, rows):
                done += batch.num_rows
                yield batch, (before + share * sizes[number]) / sum(sizes)

    def row_name(self, row: int) -> str:
        """The file, and the row in it."""
        source, first = next(one for one in reversed(self._begun) if one[1] <= row)
        name = Path(source.path).relative_to(self._root)
        return f"{source.row_name(row - first)} of {name}"

    @property
    def set_aside(self) -> Mapping[str, str]:
        """Columns of the first file that are no features unless asked for."""
        return self._first.set_aside

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out of the files that were begun."""
        begun = [source for source, _ in self._begun] or [self._first]
        return tuple(dict.fromkeys(note for source in begun for note in source.notes))

    @property
    def _root(self) -> Path:
        return self.path if self.path.is_dir() else self.path.parent

    def _compare(self, source: Source, columns: Sequence[str]) -> None:
        first = self._files[0].name
        for name in columns:
            if name not in source.schema.names:
                raise TableError(
                    f"{source.path} has no column {name!r}, which {first} has: add the column, or "
                    "move the file out of the folder"
                )
            kinds = [describe_type(one.field(name).type) for one in (source.schema, self.schema)]
            if kinds[0] != kinds[1]:
                raise TableError(
                    f"{source.path}: column {name!r} holds {kinds[0]}, and {kinds[1]} in {first}: "
                    "write the column alike in all files of the folder"
                )


def open_folder(path: Path, text: TextFormat | None = None) -> Source:
    """Open all tables in a folder and those below it, or with names like ``rides-*.csv``, as one.

    Raises
    ------
    TableError
        Where there is none, or files of different endings.
    """
    root, files = _find_root(path), find_tables(path)
    if not files:
        raise TableError(
            f"{path} {'holds no table' if path.is_dir() else 'matches no table'}: give a file, a "
            "folder of files, or a pattern as 'rides-*.csv', in a format that can be read"
        )
    endings = sorted({str(find_ending(file)) for file in files})
    if len(endings) > 1:
        raise TableError(
            f"{path} contains files of several formats, {' and '.join(endings)}: choose one, as in "
            f"{root / ('*' + endings[0])}"
        )
    return open_file(files[0], text) if len(files) == 1 else FolderSource(path, files, text)


def open_source(path: str | os.PathLike[str], text: TextFormat | None = None) -> Source:
    r"""Open a table in a file, or in a folder of such, by how its text is written.

    What comes back goes wherever a table goes: to :func:`open_table`, :func:`learn_stream` and
    :func:`open_formula`, and to the logs and experiments that read tables.

    Parameters
    ----------
    path : path
        A file, a folder, or a pattern, as in :func:`open_table`.
    text : TextFormat, optional
        How a text file is written.

    Returns
    -------
    Source
        Its ``schema`` names the columns; its ``notes`` say what was left out.

    Raises
    ------
    TableError
        Unknown ending, no such file, an empty file, or content that is not what the ending says.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from posterity.io import TextFormat, open_source
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "sold.csv"
    >>> _ = path.write_text("shop;sold\nNord;1,5\nWest;2,5\nSumme;4,0\n")
    >>> source = open_source(path, TextFormat(decimal=",", drop_total=True))
    >>> source.schema.names, source.notes
    (['shop', 'sold'], ("line 4 was left out as a total: 'Summe;4,0'",))
    >>> folder.cleanup()
    """
    file = Path(path)
    return open_folder(file, text) if is_folder_or_pattern(file) else open_file(file, text)


def is_folder_or_pattern(path: Path) -> bool:
    """True of a folder, or of a pattern of names; a file of that very name is a file."""
    return path.is_dir() or (not path.exists() and bool(set("*?[") & set(path.name)))


def find_tables(path: Path) -> list[Path]:
    """Return the tables in a folder and those below it, or with names that match, in order."""
    found = path.rglob("*") if path.is_dir() else path.parent.glob(path.name)
    return sorted(file for file in found if file.is_file() and is_table_of(path, file))


def is_table_of(path: Path, file: Path) -> bool:
    """True if a file of this name, there or not yet, belongs to a folder or a pattern."""
    root = _find_root(path)
    if root not in file.parents or find_ending(file) is None:
        return False
    inside = file.relative_to(root)
    matches = path.is_dir() or (len(inside.parts) == 1 and inside.match(path.name))
    return matches and not any(part.startswith((".", "_")) for part in inside.parts)


def _find_root(path: Path) -> Path:
    return path if path.is_dir() else path.parent
