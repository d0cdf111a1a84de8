"""Sphinx configuration."""

from __future__ import annotations

import posterity

project = "posterity"
author = "posterity developers"
copyright = "2026, posterity developers"
version = release = posterity.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
]
exclude_patterns = ["_build"]
# No intersphinx: the build needs no network.
nitpicky = False

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_typehints = "none"  # numpydoc's parameter tables say the types
autosummary_generate = True
numpydoc_show_class_members = False

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_title = f"posterity {version}"
