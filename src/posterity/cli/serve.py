"""Serve a folder, and audit a decision of it."""

from __future__ import annotations

import json
import sys
from typing import Any

import click


def run(folder: str, **how: Any) -> None:
    """Serve until told to stop."""
    try:
        from posterity.service.run import serve
    except ModuleNotFoundError as error:
        sys.stderr.write(f"posterity: serve needs {error.name}: pip install 'posterity[service]'\n")
        sys.exit(1)
    serve(folder, **how)


def run_audit(folder: str, experiment: str, decision: str, database: str | None) -> None:
    """Compute a decision again, print both, and exit with 0 if they agree."""
    from posterity.service.run import audit

    audited = audit(folder, experiment, decision, database)
    click.echo(json.dumps(audited, indent=2))
    if not audited["same"]:
        sys.exit(1)


def run_import(path: str, folder: str, experiment: str, database: str | None) -> None:
    """Import a log, and print how much of it is new."""
    from posterity.service.imports import import_dsjson

    counts = import_dsjson(path, folder, experiment, database)
    click.echo(f"{counts['decisions']:,} new decisions, {counts['rewards']:,} rewards learned")
