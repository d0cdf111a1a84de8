"""The floors: imports point down only."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import posterity

# As in the docstring of posterity; `test_docstring_lists_the_floors` holds the two together.
FLOORS = {
    "kernel": 0,
    "safety": 0,
    "transaction": 0,
    "other_names": 0,
    "sequential": 0,
    "moments": 0,
    "aliases": 0,
    "datasets": 0,
    "distributions": 0,
    "factor": 1,
    "noise": 1,
    "likelihoods": 1,
    "basis": 1,
    "plots": 1,
    "priors": 2,
    "evidence": 2,
    "posteriors": 3,
    "forgetting": 4,
    "linear": 5,
    "forecasting": 5,
    "generalized": 6,
    "grouped": 6,
    "averaging": 6,
    "files": 6,
    "evaluation": 7,
    "calibration": 7,
    "bandits": 7,
    "rewards": 7,
    "words": 7,
    "io": 7,
    "off_policy": 8,
    "experiments": 8,
    "sparse": 7,
    "factorization": 7,
    "model": 8,
    "report": 8,
    "adapters": 8,
    "service": 9,
    "cli": 10,
}
PACKAGE = Path(posterity.__file__).parent
FILES = sorted(
    path for path in PACKAGE.rglob("*.py*") if path.suffix in {".py", ".pyx"}
)  # compiled files and stubs hold nothing to parse
# The package itself, and `python -m posterity`, reach everything.
MODULES = [path for path in FILES if path.parent != PACKAGE or not path.stem.startswith("__")]


def module_of(path: Path) -> tuple[str, ...]:
    """Return the dotted name, in parts: ``("posterity", "linear", ...)``."""
    parts = ("posterity", *path.relative_to(PACKAGE).with_suffix("").parts)
    return parts[:-1] if parts[-1] == "__init__" else parts


@cache
def parse(path: Path) -> ast.Module:
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".pyx":  # Cython is not Python: keep the lines that import
        lines = re.findall(r"^\s*((?:from\s+\S+\s+)?c?import\s+[^#(\n]+)", source, re.MULTILINE)
        source = "\n".join(line.strip().replace("cimport", "import") for line in lines)
    return ast.parse(source)


def imports_of(tree: ast.AST, package: tuple[str, ...]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield (line, absolute name in parts) of every import, wherever in the module it stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, tuple(alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            # One dot is the package itself, each dot more is one package up.
            stem = package[: len(package) - node.level + 1] if node.level else ()
            stem += tuple(node.module.split(".")) if node.module else ()
            for alias in node.names:
                yield node.lineno, (*stem, alias.name)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if called in {"import_module", "__import__"}:
                yield node.lineno, tuple(str(node.args[0].value).split("."))


def room_of(name: tuple[str, ...]) -> str:
    """Return the room that a module, or a public name of posterity, lives in."""
    if len(name) == 1:
        return "posterity"
    room = name[1]
    if room in posterity.__all__ and not room.startswith("__"):
        room = getattr(posterity, room).__module__.split(".")[1]
    return room


def rooms_used(tree: ast.AST, package: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """Yield (line, room) for every import of something of posterity outside the own room."""
    for line, name in imports_of(tree, package):
        if name[0] == "posterity" and name != ("posterity", "__version__"):
            room = room_of(name)
            if room != room_of(package):
                yield line, room


def complaints(tree: ast.AST, module: tuple[str, ...], package: tuple[str, ...]) -> list[str]:
    """Return a line for every import of ``module`` that does not point down."""
    if room_of(module) not in FLOORS:
        return [
            f"{'.'.join(module)} stands on no floor: name posterity.{room_of(module)} in the "
            f"docstring of posterity and in FLOORS of {Path(__file__).name}"
        ]
    own = FLOORS[room_of(module)]
    top = max(FLOORS.values()) + 1  # the package itself reaches everything
    return [
        f"{'.'.join(module)} (floor {own}), line {line}: imports {room}, which is not below it"
        for line, room in rooms_used(tree, package)
        if FLOORS.get(room, top) >= own
    ]


def package_of(path: Path) -> tuple[str, ...]:
    return module_of(path) if path.name == "__init__.py" else module_of(path)[:-1]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: ".".join(module_of(path)[1:]))
def test_imports_point_down(path: Path) -> None:
    assert complaints(parse(path), module_of(path), package_of(path)) == []


def test_no_floor_is_empty_of_reasons() -> None:
    """Each room stands right above what it imports: the floors are those that the imports make."""
    below: dict[str, int] = dict.fromkeys(FLOORS, -1)
    for path in MODULES:
        room = room_of(module_of(path))
        used = [FLOORS[one] for _, one in rooms_used(parse(path), package_of(path))]
        below[room] = max([below[room], *used])
    assert {room: floor + 1 for room, floor in below.items()} == FLOORS


# Names of types alone, still in a circle.
LEFT = {
    (
        "posterity.generalized._heavy_tails_row",
        "posterity.generalized._heavy_tails",
    )
}


def test_modules_of_a_room_never_import_in_a_circle() -> None:
    """Wherever imports stand: in functions, and for the names of types, too."""
    names = {module_of(path) for path in MODULES}
    graph: dict[str, set[str]] = {}
    for path in MODULES:
        module, used = module_of(path), set()
        for _, name in imports_of(parse(path), package_of(path)):
            target = name if name in names else name[:-1]
            if target in names and target != module and room_of(target) == room_of(module):
                used.add(".".join(target))
        graph[".".join(module)] = {one for one in used if (".".join(module), one) not in LEFT}
    TopologicalSorter(graph).prepare()  # raises CycleError, naming the circle


def test_docstring_lists_the_floors() -> None:
    assert posterity.__doc__ is not None
    listed: dict[str, int] = {}
    for line in posterity.__doc__.splitlines():
        words = line.split()
        if words and words[0].isdigit():
            listed.update(dict.fromkeys(words[2:], int(words[0])))
    assert listed == FLOORS


@pytest.mark.parametrize(
    "source",
    [
        "import posterity.linear",
        "from posterity import linear",
        "from posterity.linear import anything",
        "from posterity import BayesianLinearRegression",
        "import posterity",
        "from .. import linear",
        "from ..linear import anything",
        "from ..linear.inner import anything",
        "def f():\n    from posterity.cli import main",
        "if TYPE_CHECKING:\n    from posterity.evaluation import anything",
        "import importlib\nimportlib.import_module('posterity.report')",
    ],
)
def test_an_import_that_points_up_is_caught(source: str) -> None:
    found = complaints(ast.parse(source), ("posterity", "factor", "x"), ("posterity", "factor"))
    assert len(found) == 1
    assert "posterity.factor.x (floor 1), line " in found[0]
    assert "which is not below it" in found[0]


@pytest.mark.parametrize(
    "source",
    [
        "import numpy",
        "from posterity.kernel import anything",
        "from ..kernel import anything",
        "from . import sibling",
        "from .sibling import anything",
        "from posterity import __version__",
    ],
)
def test_an_import_that_points_down_is_fine(source: str) -> None:
    tree = ast.parse(source)
    assert complaints(tree, ("posterity", "factor", "x"), ("posterity", "factor")) == []


def test_a_module_on_no_floor_is_caught() -> None:
    (found,) = complaints(ast.parse(""), ("posterity", "attic"), ("posterity",))
    assert found.startswith("posterity.attic stands on no floor: name posterity.attic in the")
