"""Each tutorial is also a notebook: made of the page's Markdown, run, and linked at its top.

The figures that the notebook draws are shown on the page, below the code that draws them.
"""

from __future__ import annotations

import base64
import logging
import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from doctest import DocTestParser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import nbformat
from markdown_it import MarkdownIt
from nbclient import NotebookClient
from nbformat import NotebookNode, v4
from sphinx.application import Sphinx
from traitlets.config import Config

FOLDER = "_notebooks"
TUTORIALS = ":caption: Tutorials"
TOCTREE = "{toctree}"
# Not run: the package index does not have it yet.
INSTALL = "# %pip install 'posterity[plots,holidays]' pandas"
FIGURES = {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])+)\]\((?!https?:)[^)]+\)")
ROLE = re.compile(r"\{\w+\}`~?([^`<]+?)(?:\s*<[^>]*>)?`")
IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)]+\.png)\)")


class Block(NamedTuple):
    """A stretch of a page: text if `language` is empty, or else a fence."""

    language: str
    text: str
    end: int
    """The line after it."""


def read_blocks(text: str) -> Iterator[Block]:
    """Yield the stretches of a page, in order."""
    lines, end = text.splitlines(), 0
    for token in MarkdownIt().parse(text):
        if token.type == "fence" and token.level == 0 and token.map is not None:
            start, after = token.map
            yield Block("", "\n".join(lines[end:start]), start)
            yield Block(token.info.strip(), token.content, after)
            end = after
    yield Block("", "\n".join(lines[end:]), len(lines))


def list_tutorials(docs: Path) -> dict[str, Path]:
    """Find the pages with code under the caption "Tutorials" of the index, and those they list."""
    found: dict[str, Path] = {}

    def walk(name: str, caption: str = "") -> None:
        path = docs / f"{name}.md"
        blocks = list(read_blocks(path.read_text(encoding="utf-8")))
        if any(block.language == "python" for block in blocks) and not caption:
            found[name] = path
        for block in blocks:
            if block.language == TOCTREE and caption in block.text:
                for entry in re.findall(r"^[^:\s]\S*", block.text, re.MULTILINE):
                    walk((Path(name).parent / entry).as_posix())

    walk("index", TUTORIALS)
    return found


def split_code(text: str) -> Iterator[str]:
    """Yield the sources of a block's examples: a cell ends where something is printed."""
    cell, line = "", 0
    for example in DocTestParser().get_examples(text):
        cell += "\n" if cell and example.lineno > line else ""
        cell += example.source
        line = example.lineno + example.source.count("\n")
        if example.want:
            yield cell.rstrip()
            cell = ""
    if cell:
        yield cell.rstrip()


def make_text_cell(text: str, folder: Path) -> NotebookNode:
    """Make a cell that needs no other file: links become their text, pictures are attached."""
    attachments = {}

    def attach(image: re.Match[str]) -> str:
        path = folder / image[2]
        attachments[path.name] = {"image/png": base64.b64encode(path.read_bytes()).decode()}
        return f"![{image[1]}](attachment:{path.name})"

    text = IMAGE.sub(attach, ROLE.sub(r"`\1`", LINK.sub(r"\1", text)))
    return v4.new_markdown_cell(text.strip(), attachments=attachments)


def make_notebook(page: Path) -> NotebookNode:
    """Make the notebook of a page; it is not yet run."""
    cells = [v4.new_code_cell(INSTALL)]
    for language, text, end in read_blocks(page.read_text(encoding="utf-8")):
        if language == "python":
            codes = split_code(text)
            cells += [v4.new_code_cell(code, metadata={"line": end}) for code in codes]
        elif language and not language.startswith("{"):
            cells.append(v4.new_markdown_cell(f"```{language}\n{text}```"))
        elif not language and text.strip():
            cells.append(make_text_cell(text, page.parent))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"  # not drawn at random
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})


def write_notebook(page: Path, target: Path) -> None:
    """Make and run the notebook of a page, unless neither has changed."""
    newest = max(file.stat().st_mtime for file in (page, Path(__file__)))
    if target.exists() and target.stat().st_mtime >= newest:
        return
    notebook = make_notebook(page)
    with TemporaryDirectory() as folder:  # of the kernel's sockets, which nobody else can open
        sockets = {"transport": "ipc", "ip": f"{folder}/kernel"}
        client = NotebookClient(
            notebook, timeout=300, record_timing=False, config=Config({"KernelManager": sockets})
        )
        client.execute(env=os.environ | FIGURES)
    target.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, target)


def write_notebooks(app: Sphinx) -> None:
    """Make and run the notebooks of all tutorials, two at a time."""
    pages = list_tutorials(Path(app.srcdir))
    targets = [Path(app.srcdir, FOLDER, f"{name}.ipynb") for name in pages]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write_notebook, pages.values(), targets))


def list_figures(notebook: NotebookNode) -> Iterator[tuple[int, str, bytes]]:
    """Yield what each figure goes below, how a comment in its cell describes it, and its PNG."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            picture = output.get("data", {}).get("image/png")
            if picture:
                comment = cell.source.rpartition("# ")[2]
                yield cell.metadata["line"], comment, base64.b64decode(picture)


def add_to_page(app: Sphinx, name: str, source: list[str]) -> None:
    """Put a link to the notebook below the heading of a tutorial, and its figures on the page."""
    path = Path(app.srcdir, FOLDER, f"{name}.ipynb")
    if not path.exists():
        return
    lines = source[0].splitlines()
    for number, (line, comment, png) in enumerate(list_figures(nbformat.read(path, as_version=4))):
        figure = path.with_name(f"{path.stem}_{number}.png")
        figure.write_bytes(png)
        where = figure.relative_to(app.srcdir).as_posix()
        lines[line - 1] += f"\n\n![{comment}](/{where})\n"
    link = f"{{download}}`Download this tutorial as a notebook </{FOLDER}/{name}.ipynb>`"
    source[0] = "\n".join([lines[0], "", link, *lines[1:]])


def setup(app: Sphinx) -> dict[str, bool]:
    """Make the notebooks before the build, and add them to the pages as these are read."""
    logging.getLogger("traitlets").setLevel(logging.WARNING)
    app.connect("builder-inited", write_notebooks)
    app.connect("source-read", add_to_page)
    return {"parallel_read_safe": True}
