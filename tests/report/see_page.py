"""Open a page in Chromium (Qt WebEngine, no window) and print, as JSON, what it did.

python see_page.py PAGE.html SCREENSHOT.png
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("QTWEBENGINE_CHROMIUM_FLAGS", "--disable-gpu --disable-dev-shm-usage")
os.environ.setdefault("QTWEBENGINE_DISABLE_SANDBOX", "1")  # containers have none

from PyQt6.QtCore import QTimer, QUrl
from PyQt6.QtWebEngineCore import (
    QWebEnginePage,
    QWebEngineSettings,
    QWebEngineUrlRequestInterceptor,
)
from PyQt6.QtWebEngineWidgets import QWebEngineView
from PyQt6.QtWidgets import QApplication

HOVER = """(function () {
  var mark = document.querySelector(".chart svg .mark-symbol path");
  if (mark) {
    var at = mark.getBoundingClientRect();
    ["pointerover", "pointermove", "mouseover", "mousemove"].forEach(function (kind) {
      mark.dispatchEvent(new MouseEvent(kind, {bubbles: true, view: window,
        clientX: at.x + at.width / 2, clientY: at.y + at.height / 2}));
    });
  }
  var tip = document.getElementById("vg-tooltip-element");
  return JSON.stringify({
    charts: document.querySelectorAll(".chart svg").length,
    tooltip: tip ? tip.innerText : "",
    images: document.querySelectorAll("img").length,
    overflow: document.documentElement.scrollWidth > window.innerWidth
  });
})()"""
SECONDS = 60


class Page(QWebEnginePage):
    said: list[str]

    def javaScriptConsoleMessage(  # noqa: N802
        self, level: Any, message: str | None, line: int, source: str | None
    ) -> None:
        self.said.append(f"{message} (line {line})")


class Requests(QWebEngineUrlRequestInterceptor):
    asked: list[str]

    def interceptRequest(self, info: Any) -> None:  # noqa: N802
        self.asked.append(info.requestUrl().toString())
        if info.requestUrl().scheme() not in ("file", "data", "blob"):
            info.block(True)


def main(path: str, screenshot: str) -> None:
    app = QApplication(sys.argv[:1])
    view = QWebEngineView()
    page, requests = Page(view), Requests()
    page.said, requests.asked = [], []
    page.setUrlRequestInterceptor(requests)
    view.setPage(page)
    # As in other browsers; without it a page from disk may not even ask, and nothing is seen.
    remote = QWebEngineSettings.WebAttribute.LocalContentCanAccessRemoteUrls
    page.settings().setAttribute(remote, True)
    view.resize(1100, 3600)
    url = QUrl.fromLocalFile(str(Path(path).resolve()))

    def finish(found: str) -> None:
        view.grab().save(screenshot)
        others = [asked for asked in requests.asked if asked != url.toString()]
        document = {**json.loads(found), "console": page.said, "requests": others}
        print(json.dumps(document))
        app.quit()

    def look(tries: int) -> None:
        def ready(drawn: bool) -> None:
            if drawn or tries == 0:
                page.runJavaScript(HOVER, lambda found: QTimer.singleShot(0, lambda: finish(found)))
            else:
                QTimer.singleShot(250, lambda: look(tries - 1))

        count = "document.querySelectorAll('.chart svg').length"
        page.runJavaScript(f"{count} === document.querySelectorAll('.chart').length", ready)

    page.loadFinished.connect(lambda loaded: QTimer.singleShot(250, lambda: look(80)))
    QTimer.singleShot(1000 * SECONDS, app.quit)
    view.load(url)
    view.show()
    app.exec()


if __name__ == "__main__":
    main(*sys.argv[1:])
