"""Each tutorial is a notebook, too, with all code of its page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

nbformat: Any = pytest.importorskip("nbformat", reason="needs the dependency group `docs`")
for package in ("sphinx", "nbclient", "markdown_it"):
    pytest.importorskip(package, reason="needs the dependency group `docs`")

DOCS = Path(__file__).parents[1] / "docs"
if not DOCS.is_dir():
    pytest.skip("no documentation beside these tests", allow_module_level=True)
sys.path.insert(0, str(DOCS))
import notebooks  # noqa: E402

TUTORIALS = notebooks.list_tutorials(DOCS)


def read_code(page: Path) -> list[str]:
    """The lines of code of a page, without their prompts."""
    lines = page.read_text(encoding="utf-8").splitlines()
    return [line[4:] for line in lines if line.startswith((">>> ", "... ")) and line[4:].strip()]


def test_every_tutorial_of_the_index_is_found() -> None:
    wanted = {"start", "next_week", "tasks/houses", "tasks/taxis", "tasks/bikes", "tasks/wells"}
    wanted |= {f"tutorials/{path.stem}" for path in (DOCS / "tutorials").glob("*.md")}
    assert set(TUTORIALS) == wanted


@pytest.mark.parametrize("name", TUTORIALS)
def test_it_is_valid_and_has_all_code_of_its_page(name: str) -> None:
    notebook = notebooks.make_notebook(TUTORIALS[name])
    nbformat.validate(notebook)
    first, *cells = (cell.source for cell in notebook.cells if cell.cell_type == "code")
    assert "%pip install" in first
    lines = [line for cell in cells for line in cell.splitlines() if line.strip()]
    assert lines == read_code(TUTORIALS[name])
    assert len(lines) > 10


@pytest.mark.parametrize("name", TUTORIALS)
def test_its_text_needs_no_other_file(name: str) -> None:
    notebook = notebooks.make_notebook(TUTORIALS[name])
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and not cell.source.startswith("```"):
            assert ".md)" not in cell.source
            assert "{doc}" not in cell.source
            assert "](_static" not in cell.source


def test_a_cell_ends_where_something_is_printed() -> None:
    block = ">>> a = 1\n>>> a\n1\n>>> for i in range(2):\n...     b = i\n\n>>> c = 3\n"
    cells = list(notebooks.split_code(block))
    assert cells == ["a = 1\na", "for i in range(2):\n    b = i\n\nc = 3"]


def test_links_become_text_and_pictures_are_attached() -> None:
    text = "See [`a[0]`](a.md#b), {doc}`command <../command>` and [x](https://example.org).\n"
    cell = notebooks.make_text_cell(text, DOCS)
    assert cell.source == "See `a[0]`, `command` and [x](https://example.org)."
    cell = notebooks.make_text_cell("![Fan](_static/next_week.png)", DOCS)
    assert cell.source == "![Fan](attachment:next_week.png)"
    assert set(cell.attachments) == {"next_week.png"}


def test_one_that_is_run_shows_what_its_page_shows(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Page\n\n```python\n>>> import matplotlib.pyplot as plt\n>>> 1 + 1\n2\n\n```\n\n"
        "```python\n>>> ax = plt.subplots()[1]    # An empty plane\n\n```\n",
        encoding="utf-8",
    )
    notebooks.write_notebook(page, tmp_path / "page.ipynb")
    notebook = nbformat.read(tmp_path / "page.ipynb", as_version=4)
    nbformat.validate(notebook)
    _, code, drawing = (cell for cell in notebook.cells if cell.cell_type == "code")
    assert code.outputs[0].data["text/plain"] == "2"
    assert "image/png" in drawing.outputs[0].data
    ((line, comment, png),) = notebooks.list_figures(notebook)
    assert (line, comment) == (13, "An empty plane")
    assert png.startswith(b"\x89PNG")
