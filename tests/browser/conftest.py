"""A browser without a window: what a page says, asks for and shows."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox",  # containers have none
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
LONG = 8000  # pixels
# Where screenshots are kept.
ARTIFACTS = Path(os.environ.get("POSTERITY_ARTIFACTS", "build/screenshots"))


@dataclass
class Browser:
    """Pages of one browser, opened one after the other.

    `console` has what the page of the moment wrote or raised, `requests` the addresses that it
    asked for outside of the disk and of `host`; they get no answer.
    """

    chromium: Any
    host: str | None = None
    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    _page: Any = None
    _look: tuple[int, str] = (0, "")

    def open(
        self, path: Path | str, *, query: str = "", width: int = 1280, scheme: str = "light"
    ) -> Any:
        """Playwright's page, loaded."""
        if self._look != (width, scheme):
            self._page, self._look = self._new_page(width, scheme), (width, scheme)
        self._page.mouse.move(0, 0)
        self.console.clear()
        self.requests.clear()
        address = path if isinstance(path, str) else path.resolve().as_uri()
        self._page.goto(address + query)
        return self._page

    def keep(self, page: Any, name: str) -> Path:
        """Write a screenshot of the page, or of where it begins if it is long."""
        path = ARTIFACTS / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        height = page.evaluate("document.documentElement.scrollHeight")
        page.screenshot(path=path, full_page=height < LONG)
        return path

    def overflow(self, page: Any) -> int:
        """By how many pixels the page is wider than its window."""
        wider = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        return int(page.evaluate(wider))

    def _new_page(self, width: int, scheme: str) -> Any:
        for old in self.chromium.contexts:
            old.close()
        context = self.chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme
        )
        context.route(self._elsewhere, self._refuse)
        page = context.new_page()
        page.on("console", lambda message: self.console.append(message.text))
        page.on("pageerror", lambda error: self.console.append(str(error)))
        return page

    def _elsewhere(self, url: str) -> bool:
        return not url.startswith(tuple(filter(None, ("file:", "data:", "blob:", self.host))))

    def _refuse(self, route: Any) -> None:
        self.requests.append(route.request.url)
        route.abort()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium; tests that ask for it skip where there is none."""
    api = pytest.importorskip("playwright.sync_api", reason="no browser: needs playwright")
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("no browser: install chromium (Debian, Ubuntu: apt-get install chromium)")
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield Browser(chromium)
        chromium.close()
