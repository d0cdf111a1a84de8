"""Each page begins with who it is for, and what they have at the end."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
if not DOCS.is_dir():
    pytest.skip("no documentation beside these tests", allow_module_level=True)

# The start, lists of pages and of names, what others write, and how the library is made.
OTHERS = {"index", "examples", "tasks/index", "api", "architecture", "benchmarks", "combinations"}
OTHERS |= {"benchmarks_all", "guarantees"}
FOLDERS = (DOCS, DOCS / "tutorials", DOCS / "tasks")
PAGES = sorted(page for folder in FOLDERS for page in folder.glob("*.md"))
NAMES = [page.relative_to(DOCS).with_suffix("").as_posix() for page in PAGES]


@pytest.mark.parametrize("name", [name for name in NAMES if name not in OTHERS])
def test_a_page_speaks_to_its_reader(name: str) -> None:
    title, first, *_ = (DOCS / f"{name}.md").read_text(encoding="utf-8").split("\n\n")
    assert title.startswith("# ")
    assert len(first.split()) <= 60
    assert re.search(r"\byou", first, re.IGNORECASE)
    assert "At the end" in first or "Here is what" in first
