"""The `posterity` command (needs click, rich and PyArrow)."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command; if its packages are missing, print what to install."""
    try:
        from posterity.cli.commands import posterity
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in ("click", "rich"):
            raise
        sys.stderr.write(f"posterity: the command needs {package}: pip install 'posterity[cli]'\n")
        sys.exit(1)
    posterity(prog_name="posterity")


__all__ = ["main"]
