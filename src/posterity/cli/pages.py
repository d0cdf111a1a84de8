"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import IO


@contextmanager
def replace_atomically(path: Path) -> Iterator[IO[bytes]]:
    """Write under another name, then rename: a reader never meets half a file."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def write_text(text: str, path: Path) -> None:
    """Write text in UTF-8; what can't be encoded, as a broken name from a file, is replaced."""
    with replace_atomically(path) as file:
        file.write(text.encode("utf-8", "replace"))


def check_page(report: str) -> Path:
    """Return the path of a report; raises before any work if it can't be written."""
    path = Path(report)
    if not path.parent.is_dir():
        raise ValueError(
            f"{path.parent} is not a folder: create it first, or give another --report"
        )
    if path.is_dir():
        raise ValueError(f"{path} is a folder: give --report a file in it, as {path}/report.html")
    if find_spec("vl_convert") is None:
        raise ValueError("--report needs vl-convert-python: pip install 'posterity[report]'")
    return path
