"""Reports: HTML pages that are written whole or not at all."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from posterity.cli.outputs import check_place
from posterity.files.writing import replace_atomically


def write_text(text: str, path: Path) -> None:
    """Write text in UTF-8; what can't be encoded, as a broken name from a file, is replaced."""
    with replace_atomically(path) as file:
        file.write(text.encode("utf-8", "replace"))


def check_page(report: str | None) -> Path | None:
    """The path of a report, None without one; raises before any work if it can't be written."""
    if report is None:
        return None
    path = check_place(report, "--report")
    if find_spec("vl_convert") is None:
        raise ValueError("--report needs vl-convert-python: pip install 'posterity[report]'")
    return path
