"""The way in: public names resolve, and importing is light until something is used."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module

import numpy as np
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
    run_module = "import runpy; runpy.run_module('posterity.cli', run_name='__main__')"
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


def test_a_former_name_warns_and_is_the_class() -> None:
    with pytest.warns(FutureWarning, match="BayesianRobustRegression now"):
        former = posterity.RobustBayesianRegression
    assert former is posterity.BayesianRobustRegression
    with pytest.warns(FutureWarning):
        assert posterity.generalized.RobustBayesianRegression is former


@pytest.mark.parametrize(
    ("module", "former", "now"),
    [
        ("posterity.evaluation", "merged", "merge_validations"),
        ("posterity.evidence", "matched", "match_moments"),
        ("posterity.evidence", "Together", "SharedScale"),
        ("posterity.report", "Survey", "ColumnSummaries"),
        ("posterity.report", "Line", "EstimateRow"),
    ],
)
def test_former_names_of_functions(module: str, former: str, now: str) -> None:
    home = import_module(module)
    with pytest.warns(FutureWarning, match=f"{former} is called {now} now"):
        assert getattr(home, former) is getattr(home, now)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        home.nothing  # noqa: B018


def test_former_names_of_methods() -> None:
    factor, other = posterity.factor.Factor(2), posterity.factor.Factor(2)
    factor.append(np.array([[1.0, 2.0]]), np.array([[3.0]]))
    with pytest.warns(FutureWarning, match=r"Factor.commit is called set_triangle now"):
        other.commit(factor.triangle, factor.count, factor.seen)
    assert other.count == factor.count
    means = import_module("posterity.io").ColumnMeans()
    with pytest.warns(FutureWarning, match=r"ColumnMeans.tallies is called get_sums now"):
        assert means.tallies() == means.get_sums()
