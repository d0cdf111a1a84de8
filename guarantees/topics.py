"""The modules beside this one that have checks: each has a function ``checks() -> list[Check]``."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from guarantees.check import Check

NAMES = sorted(
    path.stem
    for path in Path(__file__).parent.glob("*.py")
    if path.stem not in {"__init__", "__main__", "check", "topics"}
)


def checks(names: list[str] | None = None) -> list[Check]:
    """All checks of these modules, by default of all."""
    return [
        check for name in names or NAMES for check in import_module(f"guarantees.{name}").checks()
    ]
