"""``show`` says something of every model that a file can hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("click", reason="needs click (posterity[cli])")
pytest.importorskip("rich", reason="needs rich (posterity[cli])")
from click.testing import CliRunner

from posterity import (
    Averaged,
    BayesianLinearRegression,
    Forecaster,
    GroupedRegression,
    save,
)
from posterity.bandits import Bandit
from posterity.calibration import Conformal, Recalibrated
from posterity.cli.commands import posterity as command
from posterity.factorization import BayesianFactorizationMachine
from posterity.files import dumps
from posterity.files.container import pack, unpack
from posterity.forecasting import Form, VectorAutoregression
from posterity.sparse import DiagonalLinearRegression, SparseLinearRegression

N = 40
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
Y = X @ [1.0, -1.0] + RNG.normal(size=N)
PAIRS = np.column_stack([np.arange(N) % 5, np.arange(N) % 7]).astype(object)
ROWS = [{"site": "abc"[i % 3], "size": float(x)} for i, x in enumerate(X[:, 0])]
LINEAR = BayesianLinearRegression()
WITHOUT_TABLE: list[Any] = [
    GroupedRegression().fit(X, Y, groups=np.arange(N) % 4),
    Averaged([("one", LINEAR), ("two", BayesianLinearRegression(prior_precision=1.0))]).fit(X, Y),
    Conformal(LINEAR).fit(X, Y),
    Recalibrated(LINEAR).fit(X, Y),
    BayesianFactorizationMachine(2, max_sweeps=3).fit(PAIRS, Y),
    Forecaster(forms=[Form(1)], n_draws=4).fit(Y),
    VectorAutoregression(lags=1, n_draws=4).fit({"a": X[:, 0], "b": X[:, 1]}),
    Bandit(arms=["a", "b"], rng=0).learn(X, ["a", "b"] * (N // 2), Y),
]
WITH_TABLE: list[Any] = [
    LINEAR.fit(X, Y),
    BayesianLinearRegression(prior_precision=np.eye(2)).fit(X, Y),
    SparseLinearRegression().fit(ROWS, Y),
    DiagonalLinearRegression().fit(ROWS, Y),
]


def show(path: Path, *more: str) -> str:
    result = CliRunner().invoke(command, ["show", str(path), *more])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize("model", WITHOUT_TABLE, ids=lambda model: type(model).__name__)
def test_models_without_a_table_of_coefficients(model: Any, tmp_path: Path) -> None:
    path = tmp_path / "model"
    save(model, path)
    words, document = show(path), json.loads(show(path, "--json"))
    assert "This kind of model has no table of coefficients." in words
    assert type(model).__name__ in words
    assert document["coefficients"] == []
    assert document["settings"].keys() == model.get_params(deep=False).keys()
    assert document["n_observations"] == (2 * N if "Vector" in document["class"] else N)
    assert "rows learned" in words


@pytest.mark.parametrize("model", WITH_TABLE, ids=lambda model: type(model).__name__)
def test_models_with_a_table(model: Any, tmp_path: Path) -> None:
    path = tmp_path / "model"
    save(model, path)
    document = json.loads(show(path, "--json"))
    means = {one["name"]: one["mean"] for one in document["coefficients"]}
    for name, mean in model.summary()["mean"].items():
        if name in means:
            assert means[name] == pytest.approx(mean, rel=1e-12)
    assert len(means) >= 2
    assert "coefficient" in show(path)


@pytest.mark.parametrize("notes", [[1, 2], 3, None, "x"])
def test_notes_that_are_no_mapping_are_refused(notes: Any, tmp_path: Path) -> None:
    document, arrays = unpack(dumps(LINEAR))
    parts = json.loads(document) | {"notes": {"list": notes} if type(notes) is list else notes}
    path = tmp_path / "model"
    path.write_bytes(pack(json.dumps(parts), arrays))
    result = CliRunner().invoke(command, ["show", str(path)])
    assert result.exit_code == 2
    assert "its notes are not a mapping" in result.stderr


@pytest.mark.parametrize("noted", [[1, 2], 3, None, {"a": 1}])
@pytest.mark.parametrize(
    "name", ["target", "columns", "left_out", "missing", "weight", "structure"]
)
def test_notes_of_any_kind_are_shown(name: str, noted: Any, tmp_path: Path) -> None:
    path = tmp_path / "model"
    save(LINEAR, path, notes={name: noted})
    assert "BayesianLinearRegression" in show(path)
    assert json.loads(show(path, "--json"))["class"] == "BayesianLinearRegression"
