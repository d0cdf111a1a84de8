"""What a model file holds, in words or in JSON."""

from __future__ import annotations

import json
import math
from typing import Any

import click
import numpy as np
from sklearn.exceptions import NotFittedError

from posterity.cli.model_files import ModelFile, read_model
from posterity.cli.text import escape


def run(model: str, *, level: float, as_json: bool) -> None:
    """Read, tell."""
    kept = read_model(model)
    try:
        told = _document(kept, level)
    except NotFittedError:
        raise ValueError(f"{kept.path} holds a model that has learned nothing yet") from None
    if as_json:
        click.echo(json.dumps(told, allow_nan=False))
    else:
        _print(told)


def _document(kept: ModelFile, level: float) -> dict[str, Any]:
    model = kept.model
    told: dict[str, Any] = {
        "file": kept.path,
        "class": type(model).__name__,
        "target": kept.notes.get("target"),
        "missing": kept.notes.get("missing"),
        "weight": kept.notes.get("weight"),
        "time": kept.notes.get("time"),
        "settings": {
            name: value if isinstance(value, int | float | str | None) else repr(value)
            for name, value in model.get_params(deep=False).items()
        },
        "features": [str(name) for name in getattr(model, "feature_names_in_", [])],
        "columns": list(kept.notes.get("columns") or []),
        "left_out": list(kept.notes.get("left_out") or []),
        "level": level,
        "coefficients": _coefficients(model, level),
    }
    for name in ("n_observations", "n_effective", "noise_precision", "log_evidence"):
        told[name] = _number(getattr(model, f"{name}_", None))
    precision = told["noise_precision"]
    told["noise_std"] = None if not precision else _number(1.0 / math.sqrt(precision))
    return told


def _coefficients(model: Any, level: float) -> list[dict[str, Any]]:
    joint = model.posterior_
    each = joint.marginal()
    mean, std = np.atleast_1d(each.mean()), np.atleast_1d(each.std())
    lower, upper = map(np.atleast_1d, each.interval(level))
    names = joint.names or [f"x{i}" for i in range(len(mean))]
    return [
        {
            "name": name, "mean": _number(mean[i]), "std": _number(std[i]),
            "lower": _number(lower[i]), "upper": _number(upper[i]),
        }
        for i, name in enumerate(names)
    ]  # fmt: skip


def _number(value: Any) -> float | None:
    """A number that JSON has, or None: infinite is what nothing is known of."""
    if value is None or np.ndim(value) or not math.isfinite(value):
        return None
    return float(value)


def _print(told: dict[str, Any]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, soft_wrap=True)
    target = "" if told["target"] is None else f", predicts {told['target']}"
    console.print(f"[bold]{escape(told['file'] + target)}[/bold]")
    for name, value in _facts(told):
        console.print(f"{name:<24}{escape(value)}")
    share = f"{100 * told['level']:g}%"
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("coefficient", no_wrap=True)
    for heading in ("mean", "std", f"{share} from", "to"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in told["coefficients"]:
        cells = [_shown(one[key]) for key in ("mean", "std", "lower", "upper")]
        table.add_row(escape(one["name"]), *cells)
    console.print()
    console.print(table)
    if any(one["std"] is None for one in told["coefficients"]):
        console.print("\n?: not known yet; the rows learned so far leave it open.")


def _facts(told: dict[str, Any]) -> list[tuple[str, str]]:
    settings = told["settings"]
    facts = [
        ("model", told["class"]),
        ("rows learned", _shown(told["n_observations"], "{:,.6g}")),
        ("effective sample size", _shown(told["n_effective"], "{:,.6g}")),
        ("noise, std", _shown(told["noise_std"])),
        ("log evidence", _shown(told["log_evidence"], "{:.6g}")),
        ("prior precision", str(settings.get("prior_precision", ""))),
        ("forgetting", str(settings.get("forgetting") or "none")),
        ("missing values", told["missing"] or ""),
        ("weights", told["weight"] or ""),
        ("times", told["time"] or ""),
        ("columns", ", ".join(told["columns"] or told["features"])),
        ("levels left out", ", ".join(told["left_out"])),
    ]
    return [(name, value) for name, value in facts if value not in ("", "?")]


def _shown(value: float | None, how: str = "{:.4g}") -> str:
    return "?" if value is None else how.format(value)
