"""Run the examples of README.md and docs/ as tests; settings that every test shares."""

from __future__ import annotations

import os
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

os.environ.setdefault("MPLBACKEND", "Agg")  # no test opens a window

pytest_collect_file = Sybil(
    parsers=[
        PythonCodeBlockParser(doctest_optionflags=ELLIPSIS | NORMALIZE_WHITESPACE),
        SkipParser(),
    ],
    patterns=["README.md", "docs/**/*.md", "docs/*.md"],
    excludes=["docs/_build/**"],
).pytest()
