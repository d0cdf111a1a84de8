"""What is loaded goes on, bit for bit, as what was saved would have."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from files_models import BASES, COUNTS, LABELS, Case, X, Y, cases, numbers, one_by_one, taught

import posterity
from posterity import BayesianLinearRegression, BayesianLogisticRegression, load, save
from posterity.basis import Spline
from posterity.files import ModelFileError, dumps, load_with_notes, loads


@pytest.mark.parametrize("case", cases(), ids=str)
def test_a_loaded_model_goes_on_bit_for_bit(case: Case) -> None:
    model = taught(case)
    content = dumps(model)
    loaded = loads(content)
    assert dumps(loaded) == content
    y = case.y
    predictive = []
    for each in (model, loaded):
        first = (
            each.predict_distribution(X[150:]) if hasattr(each, "predict_distribution") else None
        )
        each.partial_fit(X[150:170], y[150:170])
        one_by_one(each, y, range(170, 190))
        later = each.predict_then_learn(X[190:220], y[190:220])
        said = [numbers(later, y[190:220])]
        predictive.append(said if first is None else [*said, numbers(first, y[150:])])
    for mine, theirs in zip(*predictive, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert dumps(loaded) == dumps(model)


@pytest.mark.parametrize("case", cases(), ids=str)
def test_a_model_that_knows_nothing_comes_back(case: Case) -> None:
    loaded = loads(dumps(case.make()))
    assert type(loaded) is type(case.make())
    assert loaded.get_params(deep=False).keys() == case.make().get_params(deep=False).keys()
    assert dumps(loaded.fit(X[:60], case.y[:60])) == dumps(case.make().fit(X[:60], case.y[:60]))


def test_predicting_does_not_change_the_file() -> None:
    model = BayesianLinearRegression().fit(X, Y)
    before = dumps(model)
    model.predict_distribution(X)
    assert dumps(model) == before


@pytest.mark.processes
def test_the_same_model_has_the_same_bytes_in_another_process(tmp_path: Path) -> None:
    program = (
        "import numpy as np, sys\n"
        "from posterity import BayesianLinearRegression, save\n"
        "rng = np.random.default_rng(0)\n"
        "X = rng.normal(size=(50, 3))\n"
        "save(BayesianLinearRegression().fit(X, X[:, 0]), sys.argv[1])\n"
    )
    contents = []
    for name in ("one", "two"):
        path = tmp_path / name
        subprocess.run([sys.executable, "-c", program, str(path)], check=True)
        contents.append(path.read_bytes())
    assert contents[0] == contents[1]


def test_feature_names_and_parameters_come_back(tmp_path: Path) -> None:
    frame = pd.DataFrame(X, columns=["age", "höhe", 'a "b"\\\n'])
    model = BayesianLinearRegression(prior_mean=[0.0, 1.0, 2.0], prior_precision=2.0).fit(frame, Y)
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.feature_names_in_.tolist() == frame.columns.tolist()
    assert loaded.get_params() == model.get_params()
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame[frame.columns[::-1]])


def test_labels_of_classes_come_back() -> None:
    for labels in (LABELS, LABELS == "yes", np.array(["a", 1], dtype=object)[(LABELS == "no") * 0]):
        if len(set(labels.tolist())) < 2:
            continue
        model = BayesianLogisticRegression().fit(X, labels)
        loaded = loads(dumps(model))
        assert loaded.classes_.dtype == model.classes_.dtype
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_what_is_shared_is_shared_again() -> None:
    model = loads(dumps(BayesianLinearRegression(prior_precision=1.0).fit(X, Y)))
    model.learn_one(X[0], Y[0])
    model.partial_fit(X[1:3], Y[1:3])
    model.learn_one(X[3], Y[3])
    assert model.n_observations_ == len(X) + 4


def test_splines_are_made_anew() -> None:
    loaded = loads(dumps(BayesianLinearRegression(basis=Spline()).fit(X, Y)))
    assert loaded.posterior_.names[1:3] == ("x0_line", "x0_spline1")


def test_notes_come_back(tmp_path: Path) -> None:
    notes = {
        "target": "fare",
        "levels": {"zone": ("a", "b")},
        "mean": np.array([1.0, np.nan]),
        "n": 3,
    }
    save(BayesianLinearRegression(), tmp_path / "model", notes=notes)
    back = load_with_notes(tmp_path / "model")[1]
    np.testing.assert_array_equal(back.pop("mean"), notes.pop("mean"))
    assert back == notes


def test_a_long_chain_of_changes() -> None:
    from posterity.forgetting import Changepoint

    rng = np.random.default_rng(0)
    n = 12_000
    y = np.repeat(rng.normal(size=n // 6) * 100.0, 6) + rng.normal(size=n)
    model = BayesianLinearRegression(
        prior_precision=1.0, forgetting=Changepoint(hazard=0.2, max_runs=6)
    ).fit(np.zeros((n, 1)), y)
    assert len(model.changes_) > 1000
    np.testing.assert_array_equal(loads(dumps(model)).changes_, model.changes_)


# ---- the file ------------------------------------------------------------------------------------


def test_an_existing_file_keeps_its_mode_and_its_links(tmp_path: Path) -> None:
    path, link = tmp_path / "model", tmp_path / "link"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to(path)
    save(BayesianLinearRegression(), link)
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert isinstance(load(path), BayesianLinearRegression)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["link", "model"]


def test_a_new_file_has_the_mode_of_any_other(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    save(BayesianLinearRegression(), tmp_path / "model")
    assert (tmp_path / "model").stat().st_mode == (tmp_path / "other").stat().st_mode


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failure_leaves_the_old_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    path = tmp_path / "model"
    save(BayesianLinearRegression(), path)
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(OSError, match="No space left"):
        save(BayesianLinearRegression().fit(X, Y), path)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["model"]


def test_only_what_must_be_durable_waits_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[int] = []
    monkeypatch.setattr(os, "fsync", waited.append)
    save(BayesianLinearRegression(), tmp_path / "model", durable=False)
    assert not waited
    save(BayesianLinearRegression(), tmp_path / "model")
    assert waited


KILLED = """
import os, random, signal, sys, time
import numpy as np
from posterity import BayesianLinearRegression, load, save

path, durable, rng = sys.argv[1], sys.argv[2] == "True", np.random.default_rng(0)
X = rng.normal(size=(300, 60))
models = [BayesianLinearRegression().fit(X, X[:, i]) for i in range(2)]
save(models[0], path)
sizes = []
for i in range(200):
    child = os.fork()
    if child == 0:
        while True:
            save(models[1], path, durable=durable)
            save(models[0], path, durable=durable)
    time.sleep(random.uniform(0.0, 0.02))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    sizes.append(int(np.argmax(np.abs(load(path).coef_))))
print(sorted(set(sizes)))
"""


@pytest.mark.processes
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("durable", [True, False])
def test_a_writer_killed_at_random_leaves_one_model_or_the_other(
    tmp_path: Path, durable: bool
) -> None:
    path = tmp_path / "model"
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(path), str(durable)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in ("[0]", "[0, 1]", "[1]")


def test_a_model_that_cannot_be_saved_leaves_the_old_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "model"
    save(BayesianLinearRegression(), path)
    before = path.read_bytes()
    with pytest.raises(ModelFileError, match="forgetting is the function or class"):
        save(BayesianLinearRegression(forgetting=print), path)
    assert path.read_bytes() == before


def test_the_names_at_the_top_are_these() -> None:
    assert posterity.save is save
    assert posterity.load is load
    assert {"save", "load"} <= set(posterity.__all__)


def test_every_basis_is_among_the_cases() -> None:
    import posterity.basis

    transformers = {
        name for name in posterity.basis.__all__ if not name.startswith(("Basis", "Growing"))
    }
    assert {type(basis).__name__ for basis in BASES} == transformers
    assert len(COUNTS) == len(X)


@pytest.mark.parametrize("forgetting", ["adaptive", "changepoint", "window:5", "stabilized:0.9"])
def test_a_stream_of_one_row_is_a_file(forgetting: str) -> None:
    model = BayesianLinearRegression(forgetting=forgetting).learn_one({"a": 1.0, "b": 2.0}, 1.0)
    again = loads(dumps(model))
    for x, y in (({"a": 0.0, "b": 1.0}, 0.5), ({"a": 2.0, "b": 0.0}, 3.0)):
        model.learn_one(x, y)
        again.learn_one(x, y)
    assert dumps(again) == dumps(model)
