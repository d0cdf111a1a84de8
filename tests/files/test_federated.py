"""Sites that exchange model files, never rows, end in the model of all their rows."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("click", reason="needs click (posterity[cli])")
pytest.importorskip("rich", reason="needs rich (posterity[cli])")
pytest.importorskip("pyarrow", reason="needs PyArrow (posterity[cli])")

from click.testing import CliRunner

from posterity import BayesianLinearRegression, BayesianLogisticRegression, save
from posterity.cli.commands import posterity
from posterity.files import dumps, load_with_notes, loads

SITES = ("north", "east", "south")
# The digits that sites and the pooled fit agree in.
ALIKE = {"rel": 1e-10, "abs": 1e-10}


def command(*arguments: object, fails: bool = False) -> str:
    predictive = CliRunner().invoke(posterity, [str(argument) for argument in arguments])
    assert predictive.exit_code == (2 if fails else 0), predictive.stderr
    return predictive.stderr if fails else predictive.stdout


def apart(*arguments: object) -> str:
    """The command in a process of its own."""
    line = [sys.executable, "-m", "posterity", *map(str, arguments)]
    predictive = subprocess.run(line, capture_output=True, text=True, check=False)
    assert predictive.returncode == 0, predictive.stderr
    return predictive.stdout


def table(n: int, zones: str = "abc", seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"age": rng.normal(50.0, 9.0, n).round(1), "dose": rng.gamma(2.0, 1.0, n)})
    frame["zone"] = rng.choice(list(zones), n)
    frame["y"] = 0.1 * frame["age"] - frame["dose"] + (frame["zone"] == "b") + rng.normal(size=n)
    return frame


@pytest.fixture
def pooled(tmp_path: Path) -> Path:
    """A table, and beside it its parts by site, of unequal sizes and doses."""
    frame = table(400).sort_values("dose", ignore_index=True)
    parts = frame.iloc[:40], frame.iloc[40:150], frame.iloc[150:]
    for site, part in zip(SITES, parts, strict=True):
        part.to_csv(tmp_path / f"{site}.csv", index=False)
    frame.to_csv(tmp_path / "pooled.csv", index=False)
    return tmp_path / "pooled.csv"


def shown(predictive: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(predictive)
    found.pop("file")
    return found


def predicted(predictive: str) -> np.ndarray:
    rows = csv.reader(io.StringIO(predictive))
    next(rows)
    return np.array([[float(value) for value in row] for row in rows])


def check_alike(merged: Path, whole: Path, file: Path, run: Callable[..., str] = command) -> None:
    one, other = (shown(run("show", model, "--json")) for model in (merged, whole))
    for name in ("noise_std", "noise_precision", "log_evidence", "n_observations", "n_effective"):
        assert one.pop(name) == pytest.approx(other.pop(name), **ALIKE)
    for mine, theirs in zip(one.pop("coefficients"), other.pop("coefficients"), strict=True):
        assert mine.pop("name") == theirs.pop("name")
        assert list(mine.values()) == pytest.approx(list(theirs.values()), **ALIKE)
    learned = [predictive.pop("prior_std_learned", None) or [] for predictive in (one, other)]
    assert learned[0] == pytest.approx(learned[1], **ALIKE)
    assert one == other  # class, target, settings, features, columns, levels
    mine, theirs = (predicted(run("predict", model, file)) for model in (merged, whole))
    np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("run", "options"),
    [
        pytest.param(apart, (), marks=pytest.mark.processes),
        (command, ("--prior-precision", "ard")),
        (command, ("--prior-precision", "2", "--noise-precision", "1.5")),
        (command, ("--prior-precision", "0", "--no-intercept")),
    ],
    ids=["processes", "ard", "known", "flat"],
)
def test_three_sites_agree_with_the_pooled_fit(
    pooled: Path, run: Callable[..., str], options: tuple[str, ...]
) -> None:
    folder = pooled.parent
    for name in (*SITES, "pooled"):
        learn = ("fit", folder / f"{name}.csv", "--target", "y", *options)
        run(*learn, "--output", folder / f"{name}.posterity")
    sites = [folder / f"{site}.posterity" for site in SITES]
    run("merge", *sites, "--output", folder / "all.posterity")
    check_alike(folder / "all.posterity", folder / "pooled.posterity", pooled, run)


def test_a_plan_fixes_the_levels_that_a_site_does_not_have(tmp_path: Path) -> None:
    plan = BayesianLinearRegression()
    names = ["age", "dose", "zone=b", "zone=c", "zone=d"]
    # A row of weight 0 names the features, and teaches nothing.
    plan.partial_fit(pd.DataFrame(np.zeros((1, 5)), columns=names), [0.0], sample_weight=[0.0])
    save(plan, tmp_path / "plan", notes={"target": "y", "left_out": ["zone=a"]})
    tables = [table(60, zones, seed) for seed, zones in enumerate(("abc", "ad", "bcd"))]
    for i, frame in enumerate([*tables, pd.concat(tables)]):
        frame.to_csv(tmp_path / f"{i}.csv", index=False)
        command("update", tmp_path / "plan", tmp_path / f"{i}.csv", "--output", tmp_path / f"{i}")
    command("merge", *(tmp_path / str(i) for i in range(3)), "--output", tmp_path / "all")
    check_alike(tmp_path / "all", tmp_path / "3", tmp_path / "3.csv")
    # The plan itself adds nothing, and any site may join it first.
    command("merge", tmp_path / "plan", tmp_path / "2", tmp_path / "0", tmp_path / "1",
            "--output", tmp_path / "again")  # fmt: skip
    check_alike(tmp_path / "again", tmp_path / "3", tmp_path / "3.csv")


def test_sites_whose_features_differ_are_refused(pooled: Path) -> None:
    folder = pooled.parent
    rest = pd.read_csv(folder / "east.csv")
    rest.rename(columns={"dose": "grams"}).to_csv(folder / "renamed.csv", index=False)
    rest[rest["zone"] != "c"].to_csv(folder / "fewer.csv", index=False)
    rest[rest["zone"] != "a"].to_csv(folder / "another.csv", index=False)
    for name in ("north", "renamed", "fewer", "another"):
        command("fit", folder / f"{name}.csv", "--target", "y", "--output", folder / name)
    # Levels need not be the same: those of both are in the merged model.
    command("merge", *(folder / one for one in ("north", "fewer", "another")),
            "--output", folder / "all")  # fmt: skip
    parts = [pd.read_csv(folder / f"{one}.csv") for one in ("north", "fewer", "another")]
    pd.concat(parts).to_csv(folder / "whole.csv", index=False)
    command("fit", folder / "whole.csv", "--target", "y", "--output", folder / "whole")
    check_alike(folder / "all", folder / "whole", folder / "whole.csv")
    (folder / "all").unlink()
    for name, words in (
        ("renamed", "only the other model has 'grams'; only this model has 'dose'"),
    ):
        line = command(
            "merge", folder / "north", folder / name, "--output", folder / "all", fails=True
        )
        assert words in line
        assert f"{folder / name}" in line
    assert not (folder / "all").exists()


def test_weights_and_notes_travel_in_the_file(tmp_path: Path) -> None:
    frame = table(300).drop(columns="zone")
    X, y = frame[["age", "dose"]], frame["y"].to_numpy()
    weights = np.random.default_rng(1).uniform(0.0, 3.0, 300)
    weights[::7] = 0.0
    whole = BayesianLinearRegression().fit(X, y, weights)
    for i, part in enumerate((slice(0, 20), slice(20, 21), slice(21, 300))):
        site = BayesianLinearRegression().partial_fit(X[part], y[part], weights[part])
        save(site, tmp_path / str(i), notes={"site": i})
    merged, notes = load_with_notes(tmp_path / "0")
    for i in (1, 2):
        merged.merge(load_with_notes(tmp_path / str(i))[0])
    assert notes == {"site": 0}
    for name in ("coef_", "intercept_", "noise_precision_", "log_evidence_", "n_observations_"):
        assert getattr(merged, name) == pytest.approx(getattr(whole, name), rel=1e-10)
    one, other = merged.predict_distribution(X), whole.predict_distribution(X)
    np.testing.assert_allclose(one.logpdf(y), other.logpdf(y), rtol=1e-10)


def test_classifiers_of_sites_are_near_the_pooled_fit() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    y = rng.random(3000) < 1.0 / (1.0 + np.exp(-X @ [1.0, -2.0, 0.5]))
    whole = BayesianLogisticRegression(prior_precision=1.0).fit(X, y)
    sites = [
        loads(dumps(BayesianLogisticRegression(prior_precision=1.0).fit(X[i::3], y[i::3])))
        for i in range(3)
    ]
    merged = sites[0].merge(sites[1]).merge(sites[2])
    error = np.sqrt(np.diag(whole.posterior_.cov))[1:]
    # Not exact: what a row said depended on what its site knew. A part of a standard error.
    assert (np.abs(merged.coef_ - whole.coef_) < 0.25 * error).all()
