"""The pages of `posterity evaluate` and `posterity compare`, opened from disk in Chromium."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("click", reason="needs click (posterity[cli])")
pytest.importorskip("rich", reason="needs rich (posterity[cli])")
pytest.importorskip("pyarrow", reason="needs PyArrow (posterity[cli])")
pytest.importorskip("vl_convert", reason="needs vl-convert (posterity[report])")

from click.testing import CliRunner

from posterity.cli.commands import posterity

EVIL = ["<script>alert(1)</script>", "a\"b'<img src=x onerror=alert(2)>", "</script><b>&amp;"]
TARGET = "<i>fare</i>"
COMMANDS = {
    "evaluate": ("--level", "0.5", "--level", "0.95"),
    "compare": ("--models", "auto,flat,prior:100"),
}
CHARTS = "document.querySelectorAll('.chart').length"
DRAWN = "document.querySelectorAll('.chart svg').length"
# Where a mark of the chart can be pointed at: one with nothing over it, of the most numerous kind.
MARK = """chart => {
  chart.scrollIntoView({block: "center"});
  const groups = [...chart.querySelectorAll(".mark-symbol, .mark-rect")];
  const most = groups.map(group => [...group.querySelectorAll("path")])
    .reduce((a, b) => b.length > a.length ? b : a, []);
  const middle = mark => {
    const at = mark.getBoundingClientRect();
    return [at.x + at.width / 2, at.y + at.height / 2];
  };
  const free = most.filter(mark => document.elementFromPoint(...middle(mark)) === mark);
  return free.length ? middle(free[Math.floor(free.length / 2)]) : [0, 0];
}"""
TIP = "#vg-tooltip-element.visible"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What the commands write about a stream whose line is lifted for a while."""
    folder = tmp_path_factory.mktemp("reports")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    y = X @ [1.0, -2.0, 0.5] + rng.normal(size=2000)
    y[1000:1200] += 5.0
    table = folder / "table.csv"
    with table.open("w", newline="") as file:
        csv.writer(file).writerows([[*EVIL, TARGET], *np.column_stack([X, y]).tolist()])
    written = {}
    for command, options in COMMANDS.items():
        page = folder / f"{command}.html"
        arguments = [command, str(table), "--target", TARGET, *options, "--report", str(page)]
        result = CliRunner().invoke(posterity, arguments)
        assert result.exit_code == 0, result.output
        written[command] = page
    return written


def told_by(page: Any, chart: Any) -> str:
    """The text beside the pointer over a chart; charts that just found their width move once."""
    for _ in range(50):
        page.mouse.move(0, 0)
        page.mouse.move(*chart.evaluate(MARK))
        page.wait_for_timeout(100)
        tip = page.locator(TIP)
        if tip.count():
            return str(tip.inner_text())
    return ""


def test_the_browser_would_tell(browser: Any, tmp_path: Path) -> None:
    careless = tmp_path / "careless.html"
    careless.write_text('<img src="http://127.0.0.1:9/x.png"><script>undefined.x</script>')
    browser.open(careless)
    assert browser.requests == ["http://127.0.0.1:9/x.png"]
    assert any("Cannot read properties of undefined" in said for said in browser.console)


@pytest.mark.parametrize("command", COMMANDS)
def test_charts_are_drawn_and_tell_values(
    command: str, browser: Any, pages: dict[str, Path]
) -> None:
    page = browser.open(pages[command])
    page.wait_for_function(f"{CHARTS} > 0 && {CHARTS} === {DRAWN}")
    for chart in page.locator(".chart").all():
        assert any(character.isdigit() for character in told_by(page, chart))
    page.mouse.move(0, 0)
    browser.keep(page, command)
    assert browser.console == []
    assert browser.requests == []


@pytest.mark.parametrize("command", COMMANDS)
def test_names_from_the_file_stay_text(command: str, browser: Any, pages: dict[str, Path]) -> None:
    page = browser.open(pages[command])
    assert page.locator("img, b, i").count() == 0
    assert EVIL[0] in page.locator("main, body").first.inner_text()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_phone_is_wide_enough(command: str, browser: Any, pages: dict[str, Path]) -> None:
    page = browser.open(pages[command], width=390)
    page.wait_for_function(f"{CHARTS} === {DRAWN}")
    browser.keep(page, f"{command}-phone")
    assert browser.overflow(page) == 0
