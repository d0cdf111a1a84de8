"""No file, however it was made, crashes the process, hangs it, or makes a model that gives NaN."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
import pandas as pd
import pytest
from files_fuzzing import fuzz, judge
from files_kinds import Kind, kinds
from numpy.typing import NDArray

from posterity import BayesianLinearRegression, Forecaster
from posterity.files import ModelFileError, dumps, loads
from posterity.files.container import pack, unpack
from posterity.files.registry import HOMES, class_of, name_of
from posterity.sparse import (
    DiagonalLogisticRegression,
    SparseLinearRegression,
    SparseLogisticRegression,
)

KINDS = kinds()
# Of files from before: what is written now is another class, or a cache.
ONLY_READ = {"SharedPrior"}
FEW = (
    "linear None auto", "linear Window(size=50, duration=None) 1.0", "softmax", "conformal dtaci",
    "linear of pairs", "sparse linear of mappings", "sparse logistic of pairs", "grouped",
    "series", "bandit ThompsonSampling", "delayed rewards", "machine",
)  # fmt: skip
needs_processes = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes")


@needs_processes
@pytest.mark.filterwarnings("ignore")
def test_some_changed_files() -> None:
    outcomes = fuzz([kind for kind in KINDS if kind.name in FEW], stride=151)
    assert not outcomes.faults, outcomes


@pytest.mark.slow
@needs_processes
@pytest.mark.filterwarnings("ignore")
def test_all_changed_files(capsys: pytest.CaptureFixture[str]) -> None:
    """Every change of every kind; ``POSTERITY_FUZZ`` = 9 tries each ninth of them."""
    stride = int(os.environ.get("POSTERITY_FUZZ", "25"))
    outcomes = fuzz(KINDS, stride)
    with capsys.disabled():
        print(f"\nchanged files: {outcomes}")
    assert not outcomes.faults


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_every_class_is_in_one_of_the_files() -> None:
    met = set()
    for kind in KINDS:
        objects = json.loads(unpack(kind.content())[0])["objects"]
        met |= {node["class"] for node in objects if "class" in node}
    written = {name for name in HOMES if name_of(class_of(name)) == name}
    assert written - met == ONLY_READ


# ---- files that crashed the process --------------------------------------------------------------

ROWS = [{"site": "abcd"[i % 4]} for i in range(40)]
LINEAR = SparseLinearRegression().fit(ROWS, np.arange(40.0) % 7)
LOGISTIC = SparseLogisticRegression().fit(ROWS, np.arange(40) % 3 > 0)


def change(model: object, field: str, array: NDArray[np.generic]) -> bytes:
    """The file of a model with another array in a field."""
    document, arrays = unpack(dumps(model))
    parts = json.loads(document)
    kind, key = field.split(".")
    node = next(node for node in parts["objects"] if node.get("class") == kind)
    name = parts["objects"][node["fields"][key]["object"]]["array"]
    assert arrays[name].dtype == array.dtype
    return pack(json.dumps(parts), {**arrays, name: array})


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("FeatureLevels.features", [-1, 2, 3, 4]),
        ("FeatureLevels.features", [1, 2, 3, 2**31 - 1]),
        ("FeatureLevels.features", [1, 2, 3, 3]),
        ("FeatureLevels.features", [1, 2, 3]),
        ("SparsePosterior.owners", [0, 2, 2, 2]),
        ("SparsePosterior.owners", [0, 2, 2, 2, 9]),
        ("SparsePosterior.owners", [0, 2, 2, 2, -1]),
        ("SparseRows.features", [2**31 - 1] * 13),
        ("SparseRows.features", [-1] * 13),
    ],
)
def test_features_out_of_range_are_refused(field: str, values: list[int]) -> None:
    kind = Kind("sparse", lambda: LINEAR, (lambda model: model.partial_fit(ROWS[:7], np.zeros(7)),))
    content = change(LINEAR, field, np.array(values, dtype=np.int32))
    assert judge(kind, content)[0] == "refused when loaded"


@pytest.mark.parametrize("starts", [[1, 40], [0, 41], [0, 2**62], [0, 30, 20, 40], [-1, 40], [0]])
def test_starts_of_rows_that_do_not_fit_are_refused(starts: list[int]) -> None:
    kind = Kind("sparse", lambda: LOGISTIC, ())
    content = change(LOGISTIC, "SparseRows.starts", np.array(starts, dtype=np.int64))
    assert judge(kind, content)[0] == "refused when loaded"


def test_a_matrix_is_not_made_of_features_out_of_range() -> None:
    model = loads(dumps(LINEAR))
    model._posterior_or_none.rows.features[-1] = 1000
    with pytest.raises(ValueError, match="a row has feature 1000, and the model has 5"):
        model.partial_fit(ROWS[:7], np.zeros(7))


def change_value(model: object, kind: str, key: str, value: Any) -> bytes:
    """The file of a model with another value in a field."""
    document, arrays = unpack(dumps(model))
    parts = json.loads(document)
    next(node for node in parts["objects"] if node.get("class") == kind)["fields"][key] = value
    return pack(json.dumps(parts), arrays)


MONTHS = [f"{2020 + i // 12}-{i % 12 + 1:02}" for i in range(40)]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("zone", "x"),
        ("zone", "../../etc/passwd"),
        ("form", "{year.__class__}"),
        ("form", "{year:99999999999}"),
        ("kind", "date"),
    ],
)
def test_times_are_written_in_no_other_way_than_they_are_read(key: str, value: str) -> None:
    model = Forecaster().fit(pd.DataFrame({"ds": MONTHS, "y": np.arange(40.0) % 7}))
    assert len(loads(dumps(model)).forecast(1).times) == 1
    with pytest.raises(ModelFileError):
        loads(change_value(model, "Writing", key, value))


def test_parameters_that_cannot_be_are_refused_when_loaded() -> None:
    for key, value in (("n_draws", 0), ("forgetting", "x"), ("forgetting", {"dict": []})):
        with pytest.raises(ModelFileError):
            loads(change_value(Forecaster().fit(np.arange(40.0) % 7), "Forecaster", key, value))


def test_a_factor_whose_squares_are_0_is_refused() -> None:
    model = BayesianLinearRegression(prior_precision=1.0).fit(np.eye(3), np.ones(3))
    document, arrays = unpack(dumps(model))
    name = json.loads(document)["objects"]
    (place,) = {node["factor"] for node in name if "factor" in node and "values" not in node}
    small = np.where(arrays[place] != 0.0, 1e-320, 0.0)
    with pytest.raises(ModelFileError, match="no finite solution"):
        loads(pack(document, {**arrays, place: small}))


def test_what_rounding_leaves_of_nothing_is_read() -> None:
    model = DiagonalLogisticRegression().fit(ROWS, np.arange(40) % 3 > 0)
    for precision, is_read in ((-1e-17, True), (0.0, True), (-1.0, False)):
        changed = loads(dumps(model))
        changed._posterior_or_none.beliefs.reshape(-1, 2, 4)[1] = [[precision] * 4, [0.0] * 4]
        if is_read:
            assert np.isfinite(loads(dumps(changed)).predict_proba(ROWS)).all()
        else:
            with pytest.raises(ModelFileError):
                loads(dumps(changed))


def test_a_clock_that_is_late_goes_on() -> None:
    X, y = np.random.default_rng(0).normal(size=(2, 60, 3))[0], np.arange(60.0) % 7
    model = BayesianLinearRegression().partial_fit(X, y)
    document, arrays = unpack(dumps(model))
    parts = json.loads(document)["objects"]
    known = next(node for node in parts if node.get("class") == "EvidenceState")
    name = parts[known["fields"]["clock"]["object"]]["array"]
    late = loads(pack(document, {**arrays, name: np.array([60, 3])}))
    assert np.isfinite(late.predict_then_learn(X, y).mean()).all()
