"""Sphinx configuration."""

from __future__ import annotations

import sys
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

import posterity

sys.path.insert(0, str(Path(__file__).parent))

project = "posterity"
author = "posterity developers"
copyright = "2026, posterity developers"
version = release = posterity.__version__

extensions = [
    "mathml",
    "myst_parser",
    "notebooks",
    "numpydoc",
    "reference_pages",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "_notebooks"]
# No intersphinx: the build needs no network.
nitpicky = False

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

html_math_renderer = "mathml"

autodoc_typehints = "none"  # numpydoc's parameter tables say the types
autosummary_generate = False  # reference_pages writes them
numpydoc_show_class_members = False

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_title = f"posterity {version}"
html_static_path = ["_style"]
html_css_files = ["posterity.css"]
html_search_scorer = str(Path(__file__).parent / "_style" / "search.js")


def trim(app: Sphinx, page: nodes.document) -> None:
    """Examples end with an empty line, which ends what they print; it is not shown."""
    for block in page.findall(nodes.literal_block):
        block.rawsource = block.rawsource.rstrip()
        block[:] = [nodes.Text(block.astext().rstrip())]


def setup(app: Sphinx) -> None:
    app.connect("doctree-read", trim)
