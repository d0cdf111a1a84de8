"""What the tests share: reference data, report lines and Hypothesis profiles."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# Wall-clock deadlines say more about the machine than about the code.
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(
    "same", parent=settings.get_profile("explore"), derandomize=True, max_examples=20
)
settings.register_profile("thorough", parent=settings.get_profile("explore"), max_examples=1000)
# The same few examples in every run; `make test-all` looks for new ones, and more.
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

REPORT_LINES = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[REPORT_LINES] = []


@pytest.fixture(scope="session")
def report(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Add text to what is printed after the tests, passed or failed: ``report("a line")``."""
    lines = request.config.stash[REPORT_LINES]
    return lambda text: lines.extend(text.splitlines() or [""])


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand the lines of a worker process over to the one that prints."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["report"] = session.config.stash[REPORT_LINES]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    node.config.stash[REPORT_LINES] += getattr(node, "workeroutput", {}).get("report", [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    lines = terminalreporter.config.stash.get(REPORT_LINES, [])
    if lines:
        terminalreporter.section("report")
        for line in lines:
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Return the folder of reference data; tests that ask for it skip where there is none."""
    named = os.environ.get("POSTERITY_DATA")
    if not named:
        pytest.skip("no reference data: set POSTERITY_DATA to the folder that holds it")
    folder = Path(named)
    if not folder.is_dir():
        pytest.fail(f"POSTERITY_DATA names {named}, which is not a folder")
    return folder
