"""The documentation as it is built, opened from disk in Chromium."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import pytest

for package in ("sphinx", "furo", "myst_parser", "numpydoc", "py_mini_racer", "nbclient"):
    pytest.importorskip(package, reason="needs the dependency group `docs`")

# The first test builds all pages, and runs their notebooks: minutes on a slow machine.
pytestmark = pytest.mark.timeout(900)

DOCS = Path(__file__).parents[2] / "docs"
if not DOCS.is_dir():
    pytest.skip("no documentation beside these tests", allow_module_level=True)

# Widths of a desk's screen and of a phone's.
LOOKS = [(1280, "light"), (390, "dark")]
# What is cut off: wider than its place, and without a bar to scroll it.
THINGS = "article table, article pre, article .math, article img"
CUT = f"""() => [...document.querySelectorAll("{THINGS}")]
  .filter(thing => {{
    let box = thing;
    while (box && !["auto", "scroll"].includes(getComputedStyle(box).overflowX))
      box = box.parentElement;
    const at = thing.getBoundingClientRect();
    return !box && at.width > 0 && at.right > window.innerWidth + 1;
  }})
  .map(thing => thing.outerHTML.slice(0, 80))"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages, built as `make docs` does."""
    folder = tmp_path_factory.mktemp("docs")
    build = ["-W", "--keep-going", "-q", "-b", "html", "-d", str(folder / "trees")]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *build, str(DOCS), str(folder / "html")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder / "html"


def names(site: Path) -> list[str]:
    return sorted(str(path.relative_to(site).with_suffix("")) for path in site.rglob("*.html"))


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_every_page_is_whole(width: int, scheme: str, browser: Any, site: Path) -> None:
    """No error, no request, every picture there, nothing cut off."""
    found = names(site)
    assert len(found) > 30
    for name in found:
        page = browser.open(site / f"{name}.html", width=width, scheme=scheme)
        assert browser.console == [], name
        assert browser.requests == [], name
        assert page.title(), name
        missing = "() => [...document.images].filter(i => !i.naturalWidth).map(i => i.src)"
        assert page.evaluate(missing) == [], name
        assert browser.overflow(page) == 0, name
        assert page.evaluate(CUT) == [], name
        if scheme == "light":
            browser.keep(page, f"docs/{name}")


def test_pictures_are_described(site: Path) -> None:
    for name in names(site):
        html = (site / f"{name}.html").read_text(encoding="utf-8")
        for image in re.findall(r"<img[^>]*>", html):
            assert re.search(r'alt="[^"]{10,}"', image), f"{name}: {image}"


def test_formulas_are_markup(browser: Any, site: Path) -> None:
    page = browser.open(site / "math.html")
    assert page.locator("math").count() > 30
    assert page.evaluate(
        "document.fonts.ready.then(() => document.fonts.check('1em \"STIX Two Math\"'))"
    )
    matrix = page.locator("mtable").first.bounding_box()
    bracket = page.locator("mo", has_text="[").first.bounding_box()
    assert bracket["height"] > 0.9 * matrix["height"]


def test_a_tutorial_is_a_notebook_that_has_run(site: Path) -> None:
    pages = [*(site / "tutorials").glob("*.html"), site / "start.html", site / "next_week.html"]
    assert len(pages) > 5
    for page in pages:
        links = re.findall(r'href="([^"]+\.ipynb)"', page.read_text(encoding="utf-8"))
        assert len(links) == 1, page
        notebook = json.loads((page.parent / links[0]).read_text(encoding="utf-8"))
        code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        assert all(cell["execution_count"] for cell in code), page
        kinds = {output["output_type"] for cell in code for output in cell["outputs"]}
        assert "execute_result" in kinds, page
        assert kinds <= {"execute_result", "display_data"}, page


# What users type, and the page that is found first.
SEARCHES = {
    "prediction interval": "calibration",
    "ridge": "coming_from",
    "random effects": "mixed",
    "mixed model": "mixed",
    "lme4": "coming_from",
    "GAM": "smooth",
    "Prophet": "coming_from",
    "Thompson sampling": "bandits",
    "A/B test": "experiments",
    "drift": "forgetting",
    "partial_fit": "start",
    "uncertainty": "start",
    "explain": "start",
    "survival": "lifetimes",
    "Tweedie": "insurance",
    "gamma regression": "likelihoods",
    "revenue": "experiments",
}


def test_search_works_from_disk_and_finds_the_page(browser: Any, site: Path) -> None:
    found = {}
    for typed in SEARCHES:
        page = browser.open(site / "search.html", query=f"?q={quote_plus(typed)}")
        page.locator(".search-summary").filter(has_text="found").wait_for(timeout=10_000)
        link = page.locator("ul.search > li > a").first.get_attribute("href")
        found[typed] = link.partition(".html")[0]
    assert found == SEARCHES
    assert browser.requests == []


def test_a_picture_leads_from_the_gallery_to_its_page(browser: Any, site: Path) -> None:
    page = browser.open(site / "gallery" / "index.html")
    cards = page.locator("article a:has(img)")
    assert cards.count() >= 10
    cards.first.click()
    page.wait_for_url(re.compile(r"/gallery/(?!index)"))
    assert page.locator("article img").count() >= 1
