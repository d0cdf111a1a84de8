"""The page that lists the public names lists all of them, and no others."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "api.md"
ROOMS = [
    "evidence",
    "basis",
    "forgetting",
    "distributions",
    "likelihoods",
    "evaluation",
    "factorization",
    "forecasting",
    "calibration",
    "bandits",
    "plots",
    "report",
    "io",
    "datasets",
    "files",
    "off_policy",
    "experiments",
    "sparse",
    "service",
]
DIRECTIVE = re.compile(
    r"\.\. (currentmodule|autoclass|autofunction|autoexception|py:class):: (\S+)"
)


def names_on_the_page() -> set[str]:
    module, names = "", set()
    for kind, name in DIRECTIVE.findall(PAGE.read_text(encoding="utf-8")):
        if kind == "currentmodule":
            module = name
        else:
            names.add(name if name.startswith("posterity.") else f"{module}.{name}")
    return names


@pytest.mark.skipif(not PAGE.exists(), reason="needs the documentation's sources")
@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_has_its_place(room: str) -> None:
    if room in {"plots", "io"}:
        pytest.importorskip({"plots": "matplotlib", "io": "pyarrow"}[room])
    module = importlib.import_module(f"posterity.{room}")
    public = {f"posterity.{room}.{name}" for name in module.__all__}
    listed = {name for name in names_on_the_page() if name.startswith(f"posterity.{room}.")}
    assert listed == public


@pytest.mark.skipif(not PAGE.exists(), reason="needs the documentation's sources")
def test_every_name_on_the_page_is_there() -> None:
    for name in names_on_the_page():
        module, _, last = name.rpartition(".")
        if module.split(".")[-1] in {"plots", "io"}:
            continue
        assert hasattr(importlib.import_module(module), last), name
