"""The verbs around model files, as a user and as a script meets them."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("click", reason="needs click (posterity[cli])")
pytest.importorskip("rich", reason="needs rich (posterity[cli])")
pytest.importorskip("pyarrow", reason="needs PyArrow (posterity[cli])")
import pyarrow as pa
import pyarrow.parquet as pq
from click.testing import CliRunner, Result
from pyarrow.csv import read_csv as csv_to_table

import posterity
from posterity.cli.commands import posterity as command
from posterity.forgetting import Adaptive, Stabilized
from posterity.io import learn_stream, predict_stream

VERBS = ("fit", "update", "predict", "show", "merge", "unlearn")


def invoke(*arguments: object, **keywords: Any) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments], **keywords)


def done(*arguments: object, **keywords: Any) -> Result:
    result = invoke(*arguments, **keywords)
    assert result.exit_code == 0, result.stderr
    return result


def run(*arguments: object, **keywords: Any) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "posterity", *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, check=False, **keywords)


def complaint(result: Result | subprocess.CompletedProcess[str]) -> str:
    code = result.exit_code if isinstance(result, Result) else result.returncode
    assert (code, result.stdout) == (2, "")
    assert result.stderr.startswith("posterity: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def write_table(path: Path, first: int, last: int, columns: str = "a,zone,y") -> Path:
    rng = np.random.default_rng(0)
    size = 600
    a, zone = rng.normal(size=size).round(6), rng.integers(3, size=size)
    y = (1.0 + 2.0 * a - 1.0 * (zone == 1) + 0.5 * rng.normal(size=size)).round(6)
    every = {"a": a.tolist(), "zone": ["nse"[z] for z in zone], "y": y.tolist()}
    names = columns.split(",")
    rows = zip(*(every[name][first:last] for name in names), strict=True)
    path.write_text("\n".join([columns, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


@pytest.fixture
def first(tmp_path: Path) -> Path:
    return write_table(tmp_path / "first.csv", 0, 400)


@pytest.fixture
def second(tmp_path: Path) -> Path:
    return write_table(tmp_path / "second.csv", 400, 600, "y,zone,a")


@pytest.fixture
def model(first: Path, tmp_path: Path) -> Path:
    path = tmp_path / "m.posterity"
    done("fit", first, "--target", "y", "--output", path)
    return path


def read_csv(text: str) -> dict[str, np.ndarray]:
    rows = list(csv.DictReader(io.StringIO(text)))
    return {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}


def predicted(model: object, table: Path, **keywords: Any) -> dict[str, np.ndarray]:
    (batch,) = predict_stream(model, table, output="numpy", **keywords)
    found: dict[str, np.ndarray] = batch
    return found


# ---- what they do ----


def test_fit_and_update_are_one_fit(model: Path, first: Path, second: Path) -> None:
    expected = learn_stream(posterity.BayesianLinearRegression(), first, "y", levels="model")
    table = csv_to_table(first)
    fitted = posterity.BayesianLinearRegression().fit(table.drop(["y"]), table["y"])
    np.testing.assert_allclose(expected.coef_, fitted.coef_, rtol=1e-12)
    assert posterity.load(model).coef_.tolist() == expected.coef_.tolist()
    result = done("update", model, second)
    assert (result.stdout, result.stderr) == ("", f"200 rows learned into {model}\n")
    expected = learn_stream(expected, second, "y")
    assert posterity.load(model).coef_.tolist() == expected.coef_.tolist()
    assert posterity.load(model).n_observations_ == 600.0


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        (["--prior-precision", "7.5"], {"prior_precision": 7.5}),
        (["--noise-precision", "4"], {"noise_precision": 4.0}),
        (["--forgetting", "stabilized:0.9"], {"forgetting": Stabilized(0.9)}),
        (["--no-intercept"], {"fit_intercept": False}),
    ],
)
def test_settings_reach_the_model(
    first: Path, tmp_path: Path, options: list[str], parameters: dict[str, Any]
) -> None:
    done("fit", first, "--target", "y", "--output", tmp_path / "m", *options, "--quiet")
    found = posterity.load(tmp_path / "m").get_params(deep=False)
    assert {name: found[name] for name in parameters} == parameters


def test_without_an_intercept_every_level_has_a_coefficient(first: Path, tmp_path: Path) -> None:
    done("fit", first, "--target", "y", "--no-intercept", "--output", tmp_path / "m")
    names = [
        one["name"]
        for one in json.loads(done("show", tmp_path / "m", "--json").stdout)["coefficients"]
    ]
    assert names == ["a", "zone=e", "zone=n", "zone=s"]


def test_features_drop_and_missing_are_kept(first: Path, tmp_path: Path) -> None:
    first.write_text(first.read_text() + ",n,1\n")
    path = tmp_path / "m"
    fit = ("fit", first, "--target", "y", "--output", path, "--missing", "skip")
    assert done(*fit, "--drop", "zone").stderr.startswith("note: 1 row was left out")
    assert posterity.load(path).feature_names_in_.tolist() == ["a"]
    assert "note: 1 row was left out" in done("update", path, first).stderr
    assert done("update", path, first, "--quiet").stderr == ""
    assert "line 402, column 'a' is missing" in complaint(
        invoke("update", path, first, "--missing", "error")
    )


def test_predictions_are_those_of_the_model(model: Path, second: Path, tmp_path: Path) -> None:
    options = ("--level", 0.5, "--quantile", 0.1, "--quantile", 0.9)
    expected = predicted(posterity.load(model), second, level=0.5, quantiles=(0.1, 0.9))
    found = read_csv(done("predict", model, second, *options).stdout)
    assert list(found) == ["row", "mean", "std", "lower", "upper", "q0.1", "q0.9"]
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values)
    done("predict", model, second, *options, "--output", tmp_path / "p.csv")
    assert read_csv((tmp_path / "p.csv").read_text())["q0.9"].tolist() == found["q0.9"].tolist()
    done("predict", model, second, *options, "--output", tmp_path / "p.parquet")
    assert pq.read_table(tmp_path / "p.parquet")["upper"].to_pylist() == found["upper"].tolist()
    done("predict", model, second, *options, "--output", tmp_path / "p.arrow", "--batch-rows", 7)
    with pa.ipc.open_file(tmp_path / "p.arrow") as opened:
        assert opened.read_all()["row"].to_pylist() == list(range(200))


def test_a_classifier_tells_labels(first: Path, tmp_path: Path) -> None:
    path = tmp_path / "zone.posterity"
    classifier = learn_stream(
        posterity.BayesianLogisticRegression(), write_table(first, 0, 300, "a,zone"), "zone"
    )
    posterity.save(classifier, path)
    lines = done("predict", path, first).stdout.splitlines()
    assert lines[0] == "row,label,p=e,p=n,p=s"
    assert sum(map(float, lines[1].split(",")[2:])) == pytest.approx(1.0)
    assert "does not contain the name of its target: give --target" in complaint(
        invoke("update", path, first)
    )
    assert "300 rows learned" in done("update", path, first, "--target", "zone").stderr
    assert "zone=" not in done("show", path).stdout


def test_levels_that_the_model_does_not_know_are_noted(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,zone\n1,e\n1,w\n")
    result = done("predict", model, path)
    assert result.stderr == (
        "note: 1 value of 'zone' was not among the levels of the model, and counted as none of "
        "them: 'w'\n"
    )


def test_unlearn_takes_rows_back(model: Path, second: Path, tmp_path: Path) -> None:
    before = posterity.load(model)
    done("update", model, second, "--output", tmp_path / "more")
    assert posterity.load(model).n_observations_ == 400.0
    result = done("unlearn", tmp_path / "more", second)
    assert result.stderr == f"200 rows taken out of {tmp_path / 'more'}\n"
    after = posterity.load(tmp_path / "more")
    np.testing.assert_allclose(after.coef_, before.coef_, rtol=1e-9)
    assert after.n_observations_ == 400.0


def test_merged_models_have_learned_all(
    model: Path, first: Path, second: Path, tmp_path: Path
) -> None:
    done("fit", second, "--target", "y", "--features", "a,zone", "--output", tmp_path / "n")
    result = done("merge", model, tmp_path / "n", "--output", tmp_path / "all")
    assert result.stderr == f"2 models merged into {tmp_path / 'all'}\n"
    done("update", model, second)
    merged, whole = posterity.load(tmp_path / "all"), posterity.load(model)
    np.testing.assert_allclose(merged.coef_, whole.coef_, rtol=1e-9)
    assert merged.n_observations_ == 600.0


def test_show_tells_what_was_learned(model: Path) -> None:
    text = done("show", model).stdout
    assert text.startswith(f"{model}, predicts y\n")
    for line in ("rows learned            400", "coefficients of         y",
                 "columns                 a, zone"):  # fmt: skip
        assert line in text
    assert "levels left out" not in text
    for name in ("intercept", "zone=e", "zone=n", "zone=s"):
        assert f"\n{name} " in text
    predictive = json.loads(done("show", model, "--json", "--level", 0.5).stdout)
    fitted = posterity.load(model)
    table = fitted.summary(0.5)
    names = ["intercept", "a", "zone=e", "zone=n", "zone=s"]
    assert [one["name"] for one in predictive["coefficients"]] == names == table.index.tolist()
    for key, column in (("mean", "mean"), ("upper", "high")):
        shown = [one[key] for one in predictive["coefficients"]]
        np.testing.assert_allclose(shown, table[column].astype(float), rtol=1e-12)
    assert predictive["noise_std"] == pytest.approx(fitted.noise_precision_**-0.5)
    assert (predictive["target"], predictive["missing"], predictive["n_effective"]) == (
        "y",
        "error",
        400.0,
    )


def test_what_is_not_known_yet_is_no_number(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,y\n1,2\n2,3\n")
    options = ("--prior-precision", 0, "--output", tmp_path / "m")
    done("fit", path, "--target", "y", *options)
    predictive = json.loads(done("show", tmp_path / "m", "--json").stdout)
    assert predictive["coefficients"][0]["upper"] is None
    assert "?: not known yet" in done("show", tmp_path / "m").stdout


@pytest.mark.parametrize("forgetting", ["adaptive", "window:50", "changepoint", "random-walk:0.01"])
def test_every_way_to_forget_goes_through(
    first: Path, second: Path, tmp_path: Path, forgetting: str
) -> None:
    path = tmp_path / "m"
    done("fit", first, "--target", "y", "--output", path, "--forgetting", forgetting)
    done("update", path, second)
    assert len(read_csv(done("predict", path, second).stdout)["mean"]) == 200
    predictive = json.loads(done("show", path, "--json").stdout)
    assert predictive["n_observations"] == 600.0
    assert (predictive["n_effective"] < 600.0) == (not forgetting.startswith("random-walk"))


def test_standard_input(model: Path, first: Path, second: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    done("fit", "-", "--target", "y", "--output", other, input=first.read_bytes())
    assert other.read_bytes() == model.read_bytes()
    done("update", other, "-", input=second.read_bytes())
    assert posterity.load(other).n_observations_ == 600.0
    done("unlearn", other, "-", input=second.read_bytes())
    expected = done("predict", model, second).stdout
    assert done("predict", model, "-", input=second.read_bytes()).stdout == expected
    assert done("predict", "-", second, input=model.read_bytes()).stdout == expected
    assert done("show", "-", input=model.read_bytes()).stdout.startswith("standard input, pred")
    text = complaint(invoke("update", model, "-", input=b"a,zone,y\n1,n,\n"))
    assert "posterity: standard input: line 2, column 'y' is missing" in text
    assert "standard input is empty" in complaint(invoke("update", model, "-", input=b""))


# ---- what goes wrong ----


def test_a_wrong_file_column_or_model(model: Path, second: Path, tmp_path: Path) -> None:
    old = model.read_bytes()
    for verb in ("update", "unlearn", "predict"):
        missing = complaint(invoke(verb, model, tmp_path / "no.csv"))
        assert missing == f"posterity: {tmp_path / 'no.csv'}: no such file; check the path\n"
        missing = complaint(invoke(verb, tmp_path / "no", second))
        assert missing == f"posterity: {tmp_path / 'no'}: no such file; check the path\n"
        other = write_table(tmp_path / "other.csv", 0, 9, "a,zone,y")
        wrong = invoke(verb, second, other, "--output", tmp_path / "new.csv")
        assert f"{second}: this is not a model file" in complaint(wrong)
        assert "is a folder: give a model file" in complaint(invoke(verb, tmp_path, second))
        narrow = write_table(tmp_path / "narrow.csv", 0, 9, "a,y")
        assert "feature 'zone' is not a column of the file" in complaint(
            invoke(verb, model, narrow)
        )
    no_target = write_table(tmp_path / "narrow.csv", 0, 9, "a,zone")
    assert "target 'y' is not a column" in complaint(invoke("update", model, no_target))
    assert "no such file" in complaint(invoke("show", tmp_path / "no"))
    assert "is not a model file" in complaint(invoke("show", second))
    assert model.read_bytes() == old


def test_a_row_that_cannot_be_used_leaves_the_old_model(model: Path, second: Path) -> None:
    old = model.read_bytes()
    second.write_text(second.read_text() + "inf,n,1\n")
    line = complaint(invoke("update", model, second, "--batch-rows", 10))
    assert "line 202, column 'y' is infinite" in line
    assert model.read_bytes() == old


def test_fit_that_cannot_be(first: Path, tmp_path: Path) -> None:
    fit = ("fit", first, "--target", "y", "--output")
    assert "is not a folder: create it first" in complaint(invoke(*fit, tmp_path / "no" / "m"))
    assert "is a folder: give --output a file in it" in complaint(invoke(*fit, tmp_path))
    assert "did you mean 'y'?" in complaint(
        invoke("fit", first, "--target", "Y", "--output", tmp_path / "m")
    )
    assert "Missing option '--output'. (see posterity fit --help)" in complaint(
        invoke("fit", first, "--target", "y")
    )
    first.write_text("a,y\n1,\n2,\n")
    line = complaint(invoke(*fit, tmp_path / "m", "--missing", "skip"))
    assert "there is none to learn or predict (column, holes in 2 rows: 'y' 2)" in line
    assert not (tmp_path / "m").exists()


def test_predictions_that_cannot_be(model: Path, second: Path, tmp_path: Path) -> None:
    predict = ("predict", model, second)
    line = complaint(invoke(*predict, "--output", tmp_path / "p.xlsx"))
    assert "unknown ending; use one of .csv, .parquet, .pq, .arrow, .feather" in line
    assert "only one of MODEL and FILE" in complaint(invoke("predict", "-", "-"))
    second.write_text("a,zone\n,n\n")
    output = tmp_path / "p.parquet"
    line = complaint(invoke(*predict, "--missing", "skip", "--output", output))
    assert "there is none to learn or predict (column, holes in 1 row: 'a' 1)" in line
    assert not output.exists()


def test_models_that_cannot_be_merged(model: Path, first: Path, tmp_path: Path) -> None:
    other, output = tmp_path / "other", ("--output", tmp_path / "all")
    assert "give two model files or more" in complaint(invoke("merge", model, *output))
    assert "is given twice" in complaint(invoke("merge", model, model, *output))
    done("fit", first, "--target", "a", "--output", other)
    assert "differ in their target, 'y' and 'a'" in complaint(
        invoke("merge", model, other, *output)
    )
    done("fit", first, "--target", "y", "--output", other, "--prior-precision", 3)
    line = complaint(invoke("merge", model, other, *output))
    assert f"{other} can't join {model}: the models differ in prior" in line


def test_unlearning_more_than_was_learned(model: Path, first: Path) -> None:
    old = model.read_bytes()
    line = complaint(invoke("unlearn", model, write_table(first, 0, 600)))
    assert "can't unlearn rows of total weight 600: only 400 was learned" in line
    assert model.read_bytes() == old


def test_a_model_that_changed_meanwhile(
    model: Path, second: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done("update", model, second, "--output", tmp_path / "other")
    real = posterity.BayesianLinearRegression.partial_fit

    def slow(*arguments: Any, **keywords: Any) -> Any:
        os.replace(tmp_path / "other", model)
        return real(*arguments, **keywords)

    monkeypatch.setattr(posterity.BayesianLinearRegression, "partial_fit", slow)
    assert "was changed by another process in the meantime" in complaint(
        invoke("update", model, second)
    )
    assert posterity.load(model).n_observations_ == 600.0


# ---- settings in a file ----


def test_settings_in_a_file(first: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("posterity.toml").write_text(
        'target = "y"\nquiet = true\n'
        '[fit]\nprior-precision = 3\nfeatures = ["a"]\noutput = "kept"\n'
        "[evaluate]\nlevel = [0.5, 0.8]\n"
    )
    assert done("fit", first).stderr == ""
    fitted = posterity.load("kept")
    assert (fitted.prior_precision, fitted.feature_names_in_.tolist()) == (3.0, ["a"])
    done("fit", first, "--prior-precision", "ard", "--features", "zone,a")
    assert posterity.load("kept").prior_precision == "ard"
    assert list(json.loads(done("evaluate", first, "--json").stdout)["coverage"]) == ["0.5", "0.8"]
    Path("other.toml").write_text('[fit]\nforgetting = "adaptive"\n')
    done("--settings", "other.toml", "fit", first, "--target", "y", "--output", "kept")
    assert isinstance(posterity.load("kept").forgetting, Adaptive)


def test_what_one_verb_does_not_take_is_for_the_others(
    first: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("posterity.toml").write_text("missing = 'mean'\n")
    done("fit", first, "--target", "y", "--output", "m")
    assert json.loads(done("show", "m", "--json").stdout)["missing"] == "mean"
    part = write_table(tmp_path / "part.csv", 0, 100)
    assert "100 rows taken out" in done("unlearn", "m", part).stderr


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("target = ", "posterity.toml is not TOML"),
        ("[fitt]", "[fitt] is not a verb; give one of audit, compare, demo, evaluate"),
        ("[fit]\nlevel = 0.5", "'level' is not an option of posterity fit; give one of batch-rows"),
        ("colour = 1", "'colour' is not an option of any verb"),
        ("missing = 'zero'", "missing can't be 'zero'; give one of error, level, mean, skip"),
        ("[fit]\nmissing = 'zero'", "'zero' is not one of 'error', 'skip', 'mean'"),
    ],
)
def test_settings_that_cannot_be(
    first: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("posterity.toml").write_text(written)
    assert words in complaint(invoke("fit", first, "--target", "y", "--output", "m"))
    assert "no.toml: no such file" in complaint(invoke("--settings", "no.toml", "show", "m"))


# ---- in processes of their own ----


@pytest.mark.processes
def test_every_verb_in_a_process(first: Path, second: Path, tmp_path: Path) -> None:
    m, n = tmp_path / "m", tmp_path / "n"
    lines = [
        ("fit", first, "--target", "y", "--output", m),
        ("update", m, second),
        ("unlearn", m, second),
        ("fit", second, "--target", "y", "--features", "a,zone", "--output", n, "--quiet"),
        ("merge", m, n, "--output", tmp_path / "all"),
    ]
    for line in lines:
        result = run(*line)
        assert (result.returncode, result.stdout) == (0, ""), result.stderr
    shown = run("show", tmp_path / "all", "--json")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert json.loads(shown.stdout)["n_observations"] == 600.0
    predictive = run("predict", tmp_path / "all", "-", input=second.read_text())
    assert (predictive.returncode, predictive.stderr) == (0, "")
    assert len(predictive.stdout.splitlines()) == 201
    assert "no such file" in complaint(run("update", m, tmp_path / "no.csv"))


@pytest.mark.processes
@pytest.mark.parametrize("verb", ["predict", "show"])
def test_a_closed_pipe_is_quiet(model: Path, second: Path, verb: str) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    arguments = [str(model), str(second)] if verb == "predict" else [str(model)]
    line = [sys.executable, "-m", "posterity", verb, *arguments]
    result = subprocess.run(line, stdout=write_end, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write_end)
    assert (result.stderr, result.returncode) == ("", 1)


# Forks, so that a round costs an update and not an interpreter; the parent has no threads yet.
KILLER = """
import os, random, signal, sys, time
import pyarrow.csv, pyarrow.parquet, rich.console
import posterity.cli.learn
from posterity.cli.commands import posterity

model, table, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
old = open(model, "rb").read()

def begin():
    child = os.fork()
    if child == 0:
        try:
            posterity(["update", model, table, "--quiet"], standalone_mode=False)
        finally:
            os._exit(0)
    return child

begun = time.monotonic()
os.waitpid(begin(), 0)
took = time.monotonic() - begun
new = open(model, "rb").read()
assert new != old
random.seed(0)
found = {"old": 0, "new": 0, "neither": 0}
for _ in range(rounds):
    with open(model, "wb") as file:
        file.write(old)
    child = begin()
    time.sleep(random.uniform(0.0, 1.3 * took))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    content = open(model, "rb").read()
    found["old" if content == old else "new" if content == new else "neither"] += 1
print(found["old"], found["new"], found["neither"])
"""


@pytest.mark.processes
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("rounds", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_a_killed_update_leaves_the_old_model_or_the_new(
    model: Path, second: Path, rounds: int
) -> None:
    line = [sys.executable, "-c", KILLER, str(model), str(second), str(rounds)]
    result = subprocess.run(line, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    old, new, neither = map(int, result.stdout.split())
    assert (old + new, neither) == (rounds, 0)
    assert old > 0


# ---- help ----


@pytest.mark.parametrize("verb", VERBS)
def test_help_teaches(verb: str) -> None:
    text = done(verb, "--help").stdout
    assert f"Usage: posterity {verb}" in text
    assert f"Examples:\n    posterity {verb} " in text
    assert f"\n  {verb} " in done("--help").stdout


def test_the_shell_completes() -> None:
    line = [sys.executable, "-c", "from posterity.cli import main; main()"]
    words = {"COMP_WORDS": "posterity up", "COMP_CWORD": "1"}
    environment = {**os.environ, "_POSTERITY_COMPLETE": "bash_complete", **words}
    result = subprocess.run(line, capture_output=True, text=True, check=False, env=environment)
    assert (result.stdout, result.stderr) == ("plain,update\n", "")
