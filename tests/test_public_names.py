"""The way in: public names resolve, and importing is light until something is used."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import posterity

HEAVY = {"numpy", "scipy", "sklearn", "pandas", "polars", "pyarrow", "matplotlib"}


def modules_after(*arguments: str) -> set[str]:
    """Run a fresh interpreter and return the top-level modules it had imported at its end."""
    program = (
        "import atexit, json, sys\n"
        "atexit.register(lambda: print(json.dumps(sorted({n.split('.')[0] for n in sys.modules})),"
        " file=sys.stderr))\n"
        f"{arguments[0]}"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments[1:]],
        capture_output=True,
        text=True,
        check=False,
    )
    *said, modules = done.stderr.splitlines()
    assert done.returncode == 0, "\n".join(said)
    return set(json.loads(modules))


def test_import_is_light() -> None:
    assert modules_after("import posterity") & HEAVY == set()


def test_naming_is_light() -> None:
    assert modules_after("import posterity; dir(posterity); posterity.__version__") & HEAVY == set()


def test_help_of_the_command_is_light() -> None:
    pytest.importorskip("click", reason="the command needs posterity[cli]")
    run_module = "import runpy; runpy.run_module('posterity', run_name='__main__')"
    loaded = modules_after(run_module, "--help")
    assert "posterity" in loaded
    assert loaded & (HEAVY - {"numpy"}) == set()


@pytest.mark.parametrize("name", posterity.__all__)
def test_public_names_resolve(name: str) -> None:
    assert getattr(posterity, name) is not None
    assert name in dir(posterity)


def test_public_names_are_unique() -> None:
    assert len(set(posterity.__all__)) == len(posterity.__all__)


def test_unknown_name_says_so() -> None:
    with pytest.raises(AttributeError, match="module 'posterity' has no attribute 'Regressor'"):
        posterity.Regressor  # noqa: B018
