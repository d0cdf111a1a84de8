"""Run the examples of README.md and docs/ as tests; settings that every test shares."""

from __future__ import annotations

import os
import sys
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE
from typing import Any

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

os.environ.setdefault("MPLBACKEND", "Agg")  # no test opens a window


def close_figures(namespace: dict[str, Any]) -> None:
    """After a page: what it drew is let go."""
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


pytest_collect_file = Sybil(
    parsers=[
        PythonCodeBlockParser(doctest_optionflags=ELLIPSIS | NORMALIZE_WHITESPACE),
        SkipParser(),
    ],
    patterns=["README.md", "docs/**/*.md", "docs/*.md"],
    excludes=["docs/_build/**"],
    teardown=close_figures,
).pytest()
