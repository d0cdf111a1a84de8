"""The file is a safetensors file, and the files of every version so far can be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from files_models import X, cases, taught

from posterity import load
from posterity.files import dumps, load_with_notes
from posterity.files.container import unpack

KEPT = Path(__file__).parent / "data"
EXPECTED = json.loads((KEPT / "expected.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", cases()[::5], ids=str)
def test_the_library_of_the_format_reads_the_same(case: Any, tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors")
    from safetensors.numpy import load as load_arrays

    content = dumps(taught(case))
    document, arrays = unpack(content)
    theirs = load_arrays(content)
    assert theirs.keys() == arrays.keys()
    for name, array in arrays.items():
        assert theirs[name].dtype == array.dtype
        np.testing.assert_array_equal(theirs[name], array)
    (tmp_path / "model").write_bytes(content)
    with safetensors.safe_open(tmp_path / "model", "np") as file:
        assert file.metadata()["posterity"] == document


def test_the_document_tells_what_it_is() -> None:
    parts = json.loads(unpack(dumps(taught(cases()[0])))[0])
    assert parts["format"] == "posterity model"
    assert parts["schema"] == 1
    assert parts["class"] == "BayesianLinearRegression"
    assert parts["library"] == __import__("posterity").__version__


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_kept_files_predict_what_they_did(name: str) -> None:
    model, notes = load_with_notes(KEPT / name)
    expected = EXPECTED[name]
    assert type(model).__name__ == expected["class"]
    assert notes == {"kept": "for ever"}
    predictive = (
        model.predict_distribution(X[:3]).mean()
        if expected["told"] == "mean"
        else (model.predict_proba(X[:3])[:, 0])
    )
    np.testing.assert_allclose(predictive, expected["values"], rtol=1e-9)
    assert model.n_effective_ == pytest.approx(expected["n_effective"], rel=1e-12)


def test_a_file_of_every_schema_is_kept() -> None:
    from posterity.files.schemas import READERS

    kept = {
        json.loads(unpack(path.read_bytes())[0])["schema"] for path in KEPT.glob("*.safetensors")
    }
    assert kept == READERS.keys()
    assert {path.name for path in KEPT.glob("*.safetensors")} == EXPECTED.keys()


def test_a_kept_file_goes_on_learning() -> None:
    model = load(KEPT / "schema_1_linear_auto.safetensors")
    before = model.n_observations_
    y = X[:10] @ [1.0, -0.5, 0.25]
    assert model.partial_fit(X[:10], y).n_observations_ == before + 10


@pytest.mark.parametrize("room", ["", ".basis", ".calibration", ".forgetting", ".likelihoods"])
def test_every_model_basis_and_strategy_has_a_name_in_files(room: str) -> None:
    """A class that is new must be given one, or it can't be saved."""
    import importlib
    from dataclasses import is_dataclass

    from sklearn.base import BaseEstimator

    from posterity.files.registry import name_of

    module = importlib.import_module(f"posterity{room}")
    public = [getattr(module, name) for name in module.__all__]
    strategies = room in (".forgetting", ".likelihoods")
    saved = [
        one
        for one in public
        if isinstance(one, type)
        and (
            issubclass(one, BaseEstimator)
            or (strategies and hasattr(one, "begin"))
            or (room == ".likelihoods" and is_dataclass(one) and hasattr(one, "log_density"))
        )
        and not getattr(one, "_is_protocol", False)
    ]
    assert room == ".likelihoods" or saved
    assert [one.__name__ for one in saved if name_of(one) is None] == []
