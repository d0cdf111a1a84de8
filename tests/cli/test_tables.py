"""Columns of weights and times, means that go on, and standard input, in the command."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("click", reason="needs click (posterity[cli])")
pytest.importorskip("rich", reason="needs rich (posterity[cli])")
pytest.importorskip("pyarrow", reason="needs PyArrow (posterity[cli])")
from click.testing import CliRunner, Result

import posterity
from posterity.cli.commands import posterity as command
from posterity.evaluation import progressive_validation
from posterity.forgetting import Exponential
from posterity.io import ColumnMeans, learn_stream, open_table

N = 300


def invoke(*arguments: object, **keywords: Any) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments], **keywords)


def done(*arguments: object, **keywords: Any) -> str:
    result = invoke(*arguments, **keywords)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def complaint(*arguments: object, **keywords: Any) -> str:
    result = invoke(*arguments, **keywords)
    assert (result.exit_code, result.stdout) == (2, "")
    return result.stderr


def write(path: Path, first: int = 0, last: int = N, hole: int | None = None) -> Path:
    rng = np.random.default_rng(0)
    a, w = rng.normal(size=N).round(6), rng.integers(0, 4, size=N)
    y = (1.0 + 2.0 * a + rng.normal(size=N)).round(6)
    lines = ["a,w,day,y"]
    for i in range(first, last):
        x = "" if hole is not None and i % hole == hole - 1 else f"{a[i]}"
        lines.append(f"{x},{w[i]},2024-{1 + i // 28:02d}-{1 + i % 28:02d},{y[i]}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    return write(tmp_path / "whole.csv")


def test_fit_and_update_keep_the_columns_of_weights_and_times(whole: Path, tmp_path: Path) -> None:
    first = write(tmp_path / "first.csv", 0, 200)
    second = write(tmp_path / "second.csv", 200, N)
    model = tmp_path / "m.posterity"
    how = ("--weight", "w", "--time", "day", "--forgetting", "exponential:0.99")
    done("fit", first, "--target", "y", *how, "--output", model)
    done("update", model, second)
    expected = posterity.BayesianLinearRegression(forgetting=Exponential(0.99))
    learn_stream(expected, whole, "y", weight="w", time="day")
    found = posterity.load(model)
    assert found.feature_names_in_.tolist() == ["a"]
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-9)
    assert found.n_effective_ == pytest.approx(expected.n_effective_, rel=1e-9)
    assert "column 'day' is" in complaint("update", model, first)
    shown = json.loads(done("show", model, "--json"))
    assert (shown["weight"], shown["time"]) == ("w", "day")


def test_unlearn_takes_weights_back(whole: Path, tmp_path: Path) -> None:
    first, second = write(tmp_path / "1.csv", 0, 200), write(tmp_path / "2.csv", 200, N)
    model, other = tmp_path / "m.posterity", tmp_path / "o.posterity"
    how = ("--target", "y", "--weight", "w", "--drop", "day")
    done("fit", whole, *how, "--output", model)
    done("fit", first, *how, "--output", other)
    done("unlearn", model, second)
    found, expected = posterity.load(model), posterity.load(other)
    assert found.n_observations_ == expected.n_observations_
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-6)


def test_a_weight_that_cannot_be_leaves_the_old_model(whole: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.posterity"
    done("fit", whole, "--target", "y", "--weight", "w", "--drop", "day", "--output", model)
    before = model.read_bytes()
    bad = tmp_path / "bad.csv"
    bad.write_text("a,w,y\n1,1,1\n1,-2,1\n")
    assert "bad.csv: line 3, column 'w' is -2: weights must be" in complaint("update", model, bad)
    assert model.read_bytes() == before
    bad.write_text("a,y\n1,1\n")
    assert "weight 'w' is not a column of the file" in complaint("update", model, bad)
    done("update", model, bad, "--weight", "")


@pytest.mark.parametrize("verb", [("evaluate",), ("compare", "--models", "auto,flat")])
def test_scores_with_weights(whole: Path, verb: tuple[str, ...]) -> None:
    how = ("--target", "y", "--weight", "w", "--drop", "day", "--json")
    predictive = json.loads(done(*verb, whole, *how))
    stream = open_table(whole, "y", weight="w", drop=["day"])
    expected = progressive_validation(posterity.BayesianLinearRegression(), stream)
    found = predictive if verb[0] == "evaluate" else predictive["models"][0]["validation"]
    assert found["log_score"] == pytest.approx(expected.log_score)


def test_scores_with_times(whole: Path, tmp_path: Path) -> None:
    how = ("--target", "y", "--weight", "w", "--time", "day", "--forgetting", "exponential:0.9")
    page = tmp_path / "page.html"
    predictive = json.loads(done("evaluate", whole, *how, "--json", "--report", page))
    ((X, y, weight, time),) = open_table(whole, "y", weight="w", time="day")
    model = posterity.BayesianLinearRegression(forgetting=Exponential(0.9))
    mean = model.predict_then_learn(X, y, weight, times=time).mean()
    assert predictive["features"] == ["a"]
    assert predictive["n_rows"] == N
    assert predictive["mae"] == pytest.approx(np.nanmean(np.abs(y - mean)), rel=0.05)
    assert page.exists()
    said = complaint("evaluate", whole, *how, "--delay", "3")
    assert "--time and --delay can't go together" in said


@pytest.mark.parametrize("verb", [("evaluate",), ("compare", "--models", "auto,flat")])
def test_scores_of_standard_input(whole: Path, verb: tuple[str, ...]) -> None:
    how = ("--target", "y", "--drop", "w,day", "--json")
    predictive = json.loads(done(*verb, "-", *how, input=whole.read_bytes()))
    expected = json.loads(done(*verb, whole, *how))
    assert predictive.pop("file") == "standard input"
    assert expected.pop("file") == str(whole)
    assert predictive == expected
    holes = "a,y\n1,2\n,3\n"
    said = complaint(*verb, "-", "--target", "y", input=holes)
    assert "posterity: standard input: line 3, column 'a' is missing; use --missing skip" in said


def test_means_go_on_from_file_to_file(tmp_path: Path) -> None:
    parts = [write(tmp_path / f"{i}.csv", i, i + 100, hole=7) for i in (0, 100, 200)]
    model = tmp_path / "m.posterity"
    how = ("--target", "y", "--missing", "mean", "--drop", "w,day")
    done("fit", parts[0], *how, "--output", model)
    done("update", model, parts[1])
    done("update", model, parts[2])
    expected = learn_stream(
        posterity.BayesianLinearRegression(),
        write(tmp_path / "whole.csv", hole=7),
        "y",
        missing="mean",
        drop=["w", "day"],
    )
    assert posterity.load(model).coef_ == pytest.approx(expected.coef_, rel=1e-9)

    asked = tmp_path / "asked.csv"
    asked.write_text("a\n\n5\nNA\n")
    means = ColumnMeans()
    for part in parts:
        for _ in open_table(part, "y", missing=means, drop=["w", "day"]):
            pass
    predictive = [
        float(row["mean"]) for row in csv.DictReader(io.StringIO(done("predict", model, asked)))
    ]
    assert predictive[1] == pytest.approx(
        expected.intercept_ + expected.coef_[0] * means.fixed["a"], rel=1e-6
    )


def test_merged_models_merge_their_means(tmp_path: Path) -> None:
    how = ("--target", "y", "--missing", "mean", "--drop", "w,day")
    models = [tmp_path / name for name in ("a.posterity", "b.posterity", "c.posterity")]
    for model, (first, last) in zip(models, [(0, 100), (100, N)], strict=False):
        done("fit", write(tmp_path / "t.csv", first, last, hole=7), *how, "--output", model)
    done("merge", *models[:2], "--output", models[2])
    means = ColumnMeans()
    for _ in open_table(write(tmp_path / "t.csv", hole=7), "y", missing=means, drop=["w", "day"]):
        pass
    _, notes = posterity.files.load_with_notes(models[2])
    assert ColumnMeans.of(notes["means"]).fixed["a"] == pytest.approx(means.fixed["a"], rel=1e-12)


def test_cures_are_options(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", hole=7)
    said = complaint("evaluate", path, "--target", "y", "--drop", "day")
    assert "use --missing skip to leave such rows out, or --missing mean to fill in" in said
    assert "leave it out (--drop day)" in complaint("evaluate", path, "--target", "y")
