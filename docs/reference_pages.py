"""A page for each public name: api.md lists them, and becomes the index of these pages.

They stand in no table of contents: the side bar of every page would hold them all, which takes most
of the time of a build.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from sphinx.application import Sphinx

FOLDER = "reference"
START = re.compile(r"\.\. (currentmodule|autoclass|autofunction|autoexception|py:class):: (\S+)")
FENCE = re.compile(r"```\{eval-rst\}\n(.*?)```", re.DOTALL)


def read_entries(block: str) -> Iterator[tuple[str, str, str]]:
    """Module, name and directive, with its options, of each name in a block."""
    module, lines = "posterity", block.splitlines()
    starts = [n for n, line in enumerate(lines) if START.match(line)]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        found = START.match(lines[start])
        assert found is not None
        kind, name = found.groups()
        if kind == "currentmodule":
            module = name
        else:
            yield module, name, "\n".join(lines[start:end]).strip()


def make_full_name(module: str, name: str) -> str:
    """A name with the module that it is in."""
    return name if name.startswith("posterity.") else f"{module}.{name}"


def write_pages(app: Sphinx) -> None:
    """Write a page for each name that api.md lists, where it has changed."""
    source, folder = Path(app.srcdir, "api.md"), Path(app.srcdir, FOLDER)
    folder.mkdir(exist_ok=True)
    left = set(folder.glob("*.rst"))
    for block in FENCE.findall(source.read_text(encoding="utf-8")):
        for module, name, directive in read_entries(block):
            page = folder / f"{make_full_name(module, name)}.rst"
            title = name.rpartition(".")[2]
            heading = f":orphan:\n\n{title}\n{'=' * len(title)}\n\n:doc:`/api`\n\n"
            text = f"{heading}.. currentmodule:: {module}\n\n{directive}\n"
            if page not in left or page.read_text(encoding="utf-8") != text:
                page.write_text(text, encoding="utf-8")
            left.discard(page)
    for page in left:
        page.unlink()


def list_pages(app: Sphinx, page: str, source: list[str]) -> None:
    """Let api.md be tables of the names, with the first lines of what they are."""
    if page != "api":
        return

    def make_table(block: re.Match[str]) -> str:
        here = [make_full_name(module, name) for module, name, _ in read_entries(block[1])]
        rows = "\n".join(f"   ~{name}" for name in here)
        return f"```{{eval-rst}}\n.. autosummary::\n   :nosignatures:\n\n{rows}\n```"

    source[0] = FENCE.sub(make_table, source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Make the pages before the build, and the index as it is read."""
    app.connect("builder-inited", write_pages)
    app.connect("source-read", list_pages)
    return {"parallel_read_safe": True}
