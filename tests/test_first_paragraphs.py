"""Each page begins with who it is for and what they get, in words of its own."""

from __future__ import annotations

import re
from collections import Counter
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


FIRST = {
    name: (DOCS / f"{name}.md").read_text(encoding="utf-8").split("\n\n")[:2]
    for name in NAMES
    if name not in OTHERS
}


@pytest.mark.parametrize("name", FIRST)
def test_a_page_speaks_to_its_reader(name: str) -> None:
    title, first = FIRST[name]
    assert title.startswith("# ")
    assert 12 <= len(first.split()) <= 60
    assert re.search(r"\byou", first, re.IGNORECASE)


def test_pages_do_not_all_begin_alike() -> None:
    texts = [" ".join(first.split()) for _, first in FIRST.values()]
    phrases = Counter(
        " ".join(words[at : at + 3])
        for words in (text.lower().split() for text in texts)
        for at in range(len(words) - 2)
    )
    assert not {phrase: count for phrase, count in phrases.items() if count > len(texts) // 8}
