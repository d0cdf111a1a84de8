"""The live page of a service, in Chromium."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the service needs posterity[service]")
pytest.importorskip("httpx")

from tests.service.test_command import Typed

EVIL = ["<img src=x onerror=alert(1)>", "</script><script>alert(2)</script>", "\u202e<b>&amp;"]
NAME = "<i>e<b>"
PLACE = "/v1/experiments/%3Ci%3Ee%3Cb%3E"
LOOKS = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]
SHOWN = "Number(document.querySelectorAll('.tile dd')[2].nextSibling.textContent.split(' ')[0])"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Typed]:
    served = Typed(tmp_path_factory.mktemp("served"))
    try:
        served.ask("PUT", PLACE, {"arms": EVIL, "features": ["age"]})
        served.ask("PUT", "/v1/predictors/p", {"features": ["a"]})
        for n in range(40):
            visit(served, n)
            served.ask("POST", "/v1/predictors/p/learn", {"id": str(n), "x": [n % 5], "y": n % 7})
        yield served
    finally:
        served.end(signal.SIGTERM)


def visit(served: Typed, n: int | str) -> None:
    made = served.ask("POST", f"{PLACE}/decide", {"context": [1.0], "id": f"visit {n}"})
    told = {"decision_id": made["id"], "value": float(EVIL.index(made["arm"]))}
    served.ask("POST", f"{PLACE}/reward", told)


def until(page: Any, true: str) -> None:
    """Wait; Playwright's own way is refused by the page's policy."""
    for _ in range(300):
        if page.evaluate(true):
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"never: {true}")


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_it_is_whole_follows_and_escapes(
    width: int, scheme: str, browser: Any, server: Typed
) -> None:
    browser.host = f"http://127.0.0.1:{server.port}/"
    page = browser.open(browser.host, width=width, scheme=scheme)
    page.evaluate("sessionStorage.clear()")
    page.reload()
    page.fill("#token", server.token)
    page.click("#login button")
    page.wait_for_selector(".plot svg")
    before = page.evaluate(SHOWN)
    loads = page.evaluate("performance.getEntriesByType('navigation')[0].startTime")
    for n in range(3):
        visit(server, f"{width} {scheme} {n}")
    until(page, f"{SHOWN} === {before + 3}")
    assert page.evaluate("performance.getEntriesByType('navigation')[0].startTime") == loads
    shown = page.evaluate("[...document.querySelectorAll('.legend bdi')].map(n => n.textContent)")
    assert shown == EVIL
    assert page.evaluate("document.querySelector('h2 bdi').textContent") == NAME
    assert (
        page.evaluate("document.querySelectorAll('main img, main script, main b > b').length") == 0
    )
    assert browser.overflow(page) == 0
    assert page.evaluate("document.querySelectorAll('.tick').length") > 20
    browser.keep(page, f"service-{width}-{scheme}")
    assert (browser.console, browser.requests) == ([], [])


def test_a_token_that_is_refused_is_said_so(browser: Any, server: Typed) -> None:
    browser.host = f"http://127.0.0.1:{server.port}/"
    page = browser.open(browser.host)
    page.evaluate("sessionStorage.clear()")
    page.reload()
    page.fill("#token", "<b>nobody</b>")
    page.click("#login button")
    until(page, "document.getElementById('refused').textContent.includes('not known here')")
    assert page.is_visible("#login")
    assert page.evaluate("JSON.stringify(sessionStorage)") == json.dumps({})
    assert browser.requests == []
