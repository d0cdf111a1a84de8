"""A browser for pages."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SEE_PAGE = Path(__file__).with_name("see_page.py")


@pytest.fixture
def look(tmp_path: Path) -> Callable[[str, str], dict[str, Any]]:
    """Open a page; screenshots are kept in the folder POSTERITY_ARTEFACTS, if that is set."""
    if importlib.util.find_spec("PyQt6") is None or not importlib.util.find_spec(
        "PyQt6.QtWebEngineCore"
    ):
        pytest.skip("no browser: needs the dependency group `browser` (Qt WebEngine)")
    folder = Path(os.environ.get("POSTERITY_ARTEFACTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)

    def see(html: str, name: str) -> dict[str, Any]:
        path, screenshot = tmp_path / f"{name}.html", folder / f"{name}.png"
        path.write_text(html, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, str(SEE_PAGE), str(path), str(screenshot)],
            capture_output=True,
            text=True,
            check=False,
            timeout=180,
        )
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if not lines and "cannot open shared object file" in done.stderr:
            pytest.skip(f"the browser does not start here: {done.stderr.splitlines()[-1]}")
        assert lines, done.stderr
        return {**json.loads(lines[-1]), "screenshot": screenshot}

    return see
