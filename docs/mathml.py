"""Formulas become MathML when the pages are built: no script and no network to show them.

A renderer for Sphinx. KaTeX, from the package sphinxcontrib-katex, translates the LaTeX; what it
does not know is an error. The font is STIX Two Math, copied from the package ziamath.
"""

from __future__ import annotations

import json
import re
import unicodedata
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from docutils import nodes
from py_mini_racer import JSEvalException, MiniRacer
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.fileutil import copy_asset

FONT = "STIXTwoMath-Regular.ttf"
FUNCTION = r"<mi>\w\w+</mi><mo>\u2061</mo>"
THIN_SPACE = '<mspace width="0.167em"/>'
logger = logging.getLogger(__name__)


@cache
def _katex() -> MiniRacer:
    engine = MiniRacer()
    engine.eval(files("sphinxcontrib").joinpath("katex.min.js").read_text(encoding="utf-8"))
    return engine


def to_mathml(tex: str, *, display: bool) -> str:
    """Markup of a formula, in what browsers know of MathML (MathML Core)."""
    options = {"displayMode": display, "output": "mathml", "throwOnError": True, "strict": "error"}
    call = f"katex.renderToString({json.dumps(tex)}, {json.dumps(options)})"
    markup = str(_katex().eval(call))
    # Browsers know no letters by variant: they want the letters themselves.
    markup = re.sub(r'<mi mathvariant="script">([A-Z])</mi>', _script, markup)
    # KaTeX leaves spacing to the browser, which takes fences and signs for operators between two.
    markup = re.sub(
        r'<mo stretchy="false">([∣∥])</mo>',
        r'<mo stretchy="false" lspace="0" rspace="0">\1</mo>',
        markup,
    )
    markup = markup.replace("<mtext>\u2009</mtext>", THIN_SPACE)
    markup = markup.replace("<mo>=</mo><mo>−</mo>", '<mo>=</mo><mo form="prefix">−</mo>')
    markup = re.sub(rf"(?<!</mo>)(?<!<mrow>)({FUNCTION})", rf"{THIN_SPACE}\1", markup)
    return re.sub(rf"({FUNCTION})(?!<mo)", rf"\1{THIN_SPACE}", markup)


def _script(letter: re.Match[str]) -> str:
    name = f"SCRIPT CAPITAL {letter[1]}"
    try:
        character = unicodedata.lookup(f"MATHEMATICAL {name}")
    except KeyError:  # eight of them are older than the others
        character = unicodedata.lookup(name)
    return f"<mi>{character}</mi>"


def visit_math(translator: Any, node: nodes.math) -> None:
    """Write a formula in a line of text."""
    translator.body.append(_markup(node, display=False))
    raise nodes.SkipNode


def visit_math_block(translator: Any, node: nodes.math_block) -> None:
    """Write a formula of its own; a wide one scrolls within its box."""
    markup = _markup(node, display=True)
    translator.body.append(f'<div class="math" tabindex="0">{markup}</div>\n')
    raise nodes.SkipNode


def _markup(node: nodes.Element, *, display: bool) -> str:
    try:
        return to_mathml(node.astext(), display=display)
    except JSEvalException as error:
        logger.warning("%s", str(error).splitlines()[0], location=node)
        return ""


def copy_font(app: Sphinx, error: Exception | None) -> None:
    """Put the font beside the style sheet that names it."""
    if error is None and app.builder.format == "html":
        package = find_spec("ziamath")  # found, not imported: only its file is wanted
        if package is None or package.origin is None:
            raise ModuleNotFoundError("formulas need the font in ziamath: pip install ziamath")
        font = Path(package.origin).parent / "fonts" / FONT
        copy_asset(font, Path(app.outdir) / "_static")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer ``mathml``."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    app.connect("build-finished", copy_font)
    # The engine does not live through a fork: several processes that write would wait for ever.
    return {"parallel_read_safe": True, "parallel_write_safe": False}
