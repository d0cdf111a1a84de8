"""Every example in a docstring runs, on the package that is installed."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
from pathlib import Path

import pytest

import posterity

PACKAGE = Path(posterity.__file__).parent
NAMES = sorted(
    ".".join(("posterity", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(
        ".__init__"
    )
    for path in PACKAGE.rglob("*.py")
    if path.name != "__main__.py"
)
# What the rooms need beyond the hard dependencies: the extras of pyproject.toml.
EXTRAS = {
    "cli": {"click", "rich", "pyarrow"},
    "io": {"pyarrow"},
    "plots": {"matplotlib"},
    "report": {"vl_convert"},
    "service": {"msgspec", "sqlalchemy", "starlette", "uvicorn"},
    "adapters.dask": {"dask", "pandas", "pyarrow"},
    "adapters._partitions": {"pyarrow"},
    "adapters._planning": {"pyarrow"},
    "adapters._survey": {"pyarrow"},
    "adapters.nixtla": {"pandas"},
    "adapters.river": {"river", "pandas"},
    "adapters.sktime": {"sktime", "pandas"},
    "adapters._river_bandit": {"river"},
    "adapters._river_distribution": {"river"},
    "adapters._river_features": {"river"},
    "adapters._river_wide": {"river"},
}


def missing_extras(name: str) -> set[str]:
    parts = name.split(".")[1:3]
    extras = {extra for n in (1, 2) for extra in EXTRAS.get(".".join(parts[:n]), set())}
    return {extra for extra in extras if importlib.util.find_spec(extra) is None}


@pytest.mark.parametrize("name", NAMES)
def test_examples_run(name: str) -> None:
    if missing := missing_extras(name):
        pytest.skip(f"needs an extra that is not installed: {', '.join(sorted(missing))}")
    module = importlib.import_module(name)
    failures: list[str] = []
    runner = doctest.DocTestRunner(
        optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE, verbose=False
    )
    for test in doctest.DocTestFinder(exclude_empty=True).find(module, name):
        runner.run(test, out=failures.append)
    assert not failures, "".join(failures)
