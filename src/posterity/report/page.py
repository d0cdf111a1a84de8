"""A self-contained HTML page: text, tables and charts, safe whatever names they contain."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape
from typing import Any

from posterity.aliases import Document
from posterity.report.charts import VEGA_LITE

Spec = Document

# What the page may do: run what is in it, and load nothing.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src data:; font-src data:"
)
STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; margin: 0 auto;
  max-width: 62rem; padding: 1rem 1.25rem 4rem; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 1rem 0 .25rem; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .5rem; border-bottom: 2px solid #0072b2; }
h3 { font-size: 1rem; margin: 1.5rem 0 .25rem; }
p, li { max-width: 46rem; }
.skip { position: absolute; left: -999rem; }
.skip:focus { left: 1rem; top: .5rem; background: #fff; padding: .5rem; }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(14rem, 1fr)); gap: .75rem;
  padding: 0; margin: 1rem 0; }
.cards div { border: 1px solid #767676; border-radius: 6px; padding: .6rem .8rem; }
.cards dt { color: #444; font-size: .9rem; }
.cards dd { margin: 0; }
.cards dd:first-of-type { font-size: 1.6rem; font-weight: 650; }
.cards dd + dd { font-size: .9rem; color: #333; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .5rem 0; }
caption { text-align: left; color: #444; padding-bottom: .25rem; min-width: 16rem;
  max-width: calc(100vw - 2.5rem); }
th, td { padding: .2rem .9rem .2rem 0; border-bottom: 1px solid #ccc; text-align: left;
  vertical-align: top; overflow-wrap: break-word; }
thead th { vertical-align: bottom; }
.number { text-align: right; }
td.number { white-space: nowrap; }
.wide { overflow-x: auto; }
figure { margin: 1rem 0; }
figure .chart { width: 100%; min-height: 200px; }
figcaption { color: #444; font-size: .95rem; max-width: 46rem; }
code { background: #f2f2f2; padding: .15rem .35rem; border-radius: 4px; white-space: pre-wrap; }
summary { cursor: pointer; color: #00507d; }
:focus-visible { outline: 3px solid #d55e00; outline-offset: 2px; }
@media (max-width: 34rem) { th, td { padding-right: .5rem; font-size: .8rem; } }
@media (prefers-color-scheme: dark) { :root { color-scheme: dark; }
  body { color: #e6e6e6; background: #161616; }
  .chart svg { filter: invert(.92) hue-rotate(180deg); }
  .cards dt, .cards dd + dd, caption, figcaption { color: #bbb; } th, td { border-color: #444; }
  code, .skip:focus { background: #2a2a2a; } summary { color: #8cc8f0; } }
@media print { body { max-width: none; font-size: 11pt; } details, .skip { display: none; }
  figure, .cards div, tr { break-inside: avoid; } h2 { break-after: avoid; } }
"""
EMBED = """
document.querySelectorAll(".chart").forEach(function (place) {
  var spec = JSON.parse(document.getElementById(place.dataset.spec).textContent);
  vegaEmbed(place, spec, {renderer: "svg", actions: false, mode: "vega-lite"});
});
"""


class Html(str):
    """Text that is HTML already; every other text is escaped."""

    __slots__ = ()


def text(value: object) -> Html:
    """Return any value as text.

    Examples
    --------
    >>> text("<script>")
    '&lt;script&gt;'
    """
    return value if isinstance(value, Html) else Html(escape(str(value)))


def tag(name: str, *content: Any, **attributes: Any) -> Html:
    """An element; ``class_`` is its class, ``data_spec`` its data-spec.

    Examples
    --------
    >>> tag("p", "1 < 2", class_="note")
    '<p class="note">1 &lt; 2</p>'
    """
    attributes_text = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
    )
    return Html(f"<{name}{attributes_text}>{''.join(text(part) for part in content)}</{name}>")


def table(header: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = "") -> Html:
    """A table whose first column names its rows; columns of numbers are set flush right."""
    cells = [[str(cell) for cell in row] for row in rows]
    right = [k > 0 and all(_is_number(row[k]) for row in cells) for k in range(len(header))]
    head = tag(
        "tr",
        *(_format_cell("th", cell, r, scope="col") for cell, r in zip(header, right, strict=True)),
    )
    body = [
        tag(
            "tr",
            tag("th", row[0], scope="row"),
            *(_format_cell("td", cell, r) for cell, r in zip(row[1:], right[1:], strict=True)),
        )
        for row in cells
    ]
    title = [tag("caption", caption)] if caption else []
    inner = tag("table", *title, tag("thead", head), tag("tbody", *body))
    label = caption or "table"
    return tag("div", inner, class_="wide", tabindex="0", role="region", aria_label=label)


def _format_cell(name: str, cell: str, right: bool, **attributes: str) -> Html:
    return tag(name, cell, **attributes, **({"class_": "number"} if right else {}))


def _is_number(cell: str) -> bool:
    return cell in ("none", "open", "best") or cell.lstrip("-<").replace(",", "")[:1].isdigit()


def bullets(items: Iterable[Any]) -> Html:
    """A list."""
    return tag("ul", *(tag("li", item) for item in items))


def paragraphs(lines: str) -> Html:
    """A paragraph for each line."""
    return Html("".join(tag("p", line) for line in lines.splitlines()))


def cards(items: Iterable[tuple[str, str, str]]) -> Html:
    """Return numbers in large type: name, value, meaning."""
    boxes = [
        tag("div", tag("dt", name), tag("dd", value), tag("dd", meaning))
        for name, value, meaning in items
    ]
    return tag("dl", *boxes, class_="cards")


@dataclass
class Page:
    """A page that is written from top to bottom."""

    title: str
    parts: list[Html] = field(default_factory=list)
    specs: list[Spec] = field(default_factory=list)

    def section(self, title: str, *content: Any) -> None:
        """Add a section with a heading of its own."""
        name = f"section-{len(self.parts)}"
        heading = tag("h2", title, id=name)
        self.parts.append(tag("section", heading, *content, aria_labelledby=name))

    def chart(self, spec: Spec, caption: str, numbers: Html) -> Html:
        """A Vega-Lite chart, its caption, and its numbers as a table that can be opened."""
        self.specs.append(spec)
        place = tag("div", class_="chart", data_spec=f"spec-{len(self.specs)}")
        details = tag("details", tag("summary", "The numbers of this chart"), numbers)
        title = tag("h3", spec["description"])
        return tag("figure", title, place, tag("figcaption", caption), details)

    def html(self) -> str:
        """The page, a few hundred kilobytes of which are the library that draws its charts.

        Raises
        ------
        ModuleNotFoundError
            vl-convert-python is not installed.
        """
        scripts = [Html(f"<script>{_load_vega()}</script>")] if self.specs else []
        specs = [
            Html(f'<script type="application/json" id="spec-{i}">{_escape_json(spec)}</script>')
            for i, spec in enumerate(self.specs, start=1)
        ]
        embed = [Html(f"<script>{EMBED}</script>")] if self.specs else []
        head = (
            f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{text(self.title)}</title><style>{STYLE}</style>"
        )
        quiet = tag(
            "noscript", tag("p", "Charts need JavaScript; their numbers are in tables below them.")
        )
        skip = tag("a", "To the content", href="#main", class_="skip")
        main = tag("main", tag("h1", self.title), quiet, *self.parts, id="main")
        body = "".join([skip, main, *specs, *scripts, *embed])
        return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>{body}</body></html>\n'


def _escape_json(spec: Spec) -> str:
    """Escape JSON so that no string can end its element."""
    encoded = json.dumps(spec, allow_nan=False, separators=(",", ":"))
    return encoded.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def _load_vega() -> str:
    """Vega, Vega-Lite and Vega-Embed in one script; vl-convert takes a second to make it."""
    try:
        import vl_convert
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "reports need vl-convert-python: pip install 'posterity[report]'", name="vl_convert"
        ) from error
    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed=vegaEmbed;", vl_version=VEGA_LITE)
    return bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")
