"""The `posterity` command (needs click, rich and PyArrow)."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command; say what to install where its packages are missing."""
    try:
        from posterity.cli.commands import posterity
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("click", "rich"):
            raise
        sys.stderr.write(
            f"posterity: the command needs {error.name}: pip install 'posterity[cli]'\n"
        )
        sys.exit(1)
    posterity(prog_name="posterity")


__all__ = ["main"]
