"""Models of many features in the command: columns with as many levels as come."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("click", reason="needs click (posterity[cli])")
pytest.importorskip("rich", reason="needs rich (posterity[cli])")
pytest.importorskip("pyarrow", reason="needs PyArrow (posterity[cli])")
from click.testing import CliRunner, Result

import posterity
from posterity.cli import clicks
from posterity.cli.commands import posterity as command
from posterity.sparse import DiagonalLinearRegression, DiagonalLogisticRegression

N = 1200


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def done(*arguments: object) -> str:
    result = invoke(*arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def complaint(*arguments: object) -> str:
    result = invoke(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    return result.stderr


def views(n: int = N) -> pd.DataFrame:
    """Sites, of which new ones come all the time, ads, and a number."""
    rng = np.random.default_rng(0)
    site, ad = rng.integers(0, 5 + np.arange(n)), rng.integers(0, 8, n)
    hour = rng.normal(size=n).round(3)
    eta = rng.normal(size=n + 5)[site] + 0.7 * rng.normal(size=8)[ad] + 0.5 * hour
    clicked = np.where(eta + rng.logistic(size=n) > 0.0, "yes", "no")
    sites, ads = [f"s{s}" for s in site], [f"a{a}" for a in ad]
    paid = (eta + rng.normal(size=n)).round(3)
    return pd.DataFrame(
        {"site": sites, "ad": ads, "hour": hour, "code": ad, "clicked": clicked, "paid": paid}
    )


@pytest.fixture
def table(tmp_path: Path) -> Path:
    views().to_csv(path := tmp_path / "views.csv", index=False)
    return path


LABELS = ("--target", "clicked", "--drop", "paid", "--model", "logistic")
WIDE = ("--structure", "diagonal")


def test_evaluate_scores_as_python_does(table: Path) -> None:
    rows = views()
    X = rows.drop(columns=["clicked", "paid"])
    found = json.loads(done("evaluate", table, *LABELS, *WIDE, "--json"))
    # A stream of batches meets the labels in their order.
    model = DiagonalLogisticRegression()
    predictive = model.predict_then_learn(X, rows["clicked"].to_numpy())
    assert found["log_loss"] == pytest.approx(-predictive.logpmf(rows["clicked"]).mean())
    assert found["features"] == ["site", "ad", "hour", "code"]
    batches = json.loads(done("evaluate", table, *LABELS, *WIDE, "--json", "--batch-rows", 100))
    assert batches["log_loss"] == pytest.approx(found["log_loss"], rel=1e-9)

    settings = ("--target", "paid", "--drop", "clicked", *WIDE, "--categories", "code")
    found = json.loads(done("evaluate", table, *settings, "--json"))
    numbers = DiagonalLinearRegression(categorical_features=["code"])
    predicted = numbers.predict_then_learn(X, rows["paid"])
    assert found["mae"] == pytest.approx(np.abs(rows["paid"] - predicted.mean()).mean())


@pytest.mark.parametrize("structure", ["diagonal", "sparse"])
def test_a_model_in_a_file(tmp_path: Path, structure: str) -> None:
    rows = views(n := 240)
    table, first, later = (tmp_path / f"{name}.csv" for name in ("table", "first", "later"))
    rows.to_csv(table, index=False)
    rows[:150].to_csv(first, index=False)
    rows[150:].to_csv(later, index=False)
    model, whole = tmp_path / "m.posterity", tmp_path / "whole.posterity"
    settings = (*LABELS, "--structure", structure, "--interactions", "ad:hour")
    done("fit", first, *settings, "--output", model)
    done("update", model, later)
    done("fit", table, *settings, "--output", whole)
    one, other = posterity.load(model), posterity.load(whole)
    X = rows.drop(columns=["clicked", "paid"])
    tolerance = 1e-9 if structure == "diagonal" else 1e-4  # where the search for scales ends
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=tolerance)
    assert one.n_features_ == other.n_features_

    predicted = done("predict", model, table, "--keep", "site").splitlines()
    assert predicted[0] == "row,site,label,p=no,p=yes"
    assert float(predicted[1].split(",")[-1]) == pytest.approx(one.predict_proba(X[:1])[0, 1])
    shown = json.loads(done("show", model, "--json"))
    assert shown["n_features"] == one.n_features_
    assert len(shown["coefficients"]) == 30
    assert "features, those furthest from 0" in done("show", model)
    done("fit", later, *settings, "--output", later_model := tmp_path / "later.posterity")
    if structure == "diagonal":
        assert "can't unlearn" in complaint("unlearn", model, first)
        done("merge", model, later_model, "--output", tmp_path / "all.posterity")
        assert posterity.load(tmp_path / "all.posterity").n_observations_ == n + 90
        return
    done("unlearn", model, first)
    left, fresh = posterity.load(model), posterity.load(later_model)
    assert left.n_observations_ == fresh.n_observations_ == n - 150
    known = X[150:]
    np.testing.assert_allclose(left.predict_proba(known), fresh.predict_proba(known), atol=1e-3)


def test_hashes_bound_the_features(table: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.posterity"
    done("fit", table, *LABELS, *WIDE, "--hash", "2^8", "--interactions", 2, "--output", model)
    assert posterity.load(model).n_features_ == 256
    done("show", model)


def test_missing_values(table: Path, tmp_path: Path) -> None:
    rows = views()
    rows.loc[3, "site"] = None
    rows.to_csv(text := tmp_path / "text.csv", index=False)
    rows.loc[7, "hour"] = np.nan
    rows.to_csv(both := tmp_path / "both.csv", index=False)
    error = complaint("evaluate", both, *LABELS, *WIDE)
    assert "line 5, column 'site' is missing; use --missing skip" in error
    found = json.loads(done("evaluate", both, *LABELS, *WIDE, "--missing", "skip", "--json"))
    assert (found["n_rows"], found["n_rows_skipped"]) == (N - 2, 2)
    assert found["n_missing"] == {"site": 1, "hour": 1}
    assert "line 9, column 'hour'" in complaint(
        "evaluate", both, *LABELS, *WIDE, "--missing", "level"
    )
    model = tmp_path / "m.posterity"
    done("fit", text, *LABELS, *WIDE, "--missing", "level", "--output", model)
    assert "site=missing" in posterity.load(model).feature_names_
    assert "is not for models of many features" in complaint(
        "evaluate", text, *LABELS, *WIDE, "--missing", "mean"
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--hash", "2^9"), "--hash is for --structure diagonal or sparse"),
        (("--interactions", "2"), "--interactions is for --structure"),
        ((*WIDE, "--hash", "2^31"), "write a whole number below 2^31"),
        ((*WIDE, "--hash", "many"), "write a whole number below 2^31"),
        ((*WIDE, "--interactions", "site"), "as in user:item"),
        ((*WIDE, "--lag", "1"), "--lag does not go with --structure diagonal"),
        ((*WIDE, "--slice", "ad"), "--slice does not go with"),
        ((*WIDE, "--model", "robust"), "robust does not go with --structure diagonal"),
        ((*WIDE, "--model", "linear+spline"), "spline does not go with --structure"),
        ((*WIDE, "--model", "poisson", "--noise-precision", "2"), "no noise precision"),
        ((*WIDE, "--noise", "linear"), "--noise linear does not go with"),
        ((*WIDE, "--prior-precision", "ard"), "must be 'auto' or a positive number"),
        ((*WIDE, "--forgetting", "adaptive"), "only Stabilized"),
        (("--structure", "sparse"), "take --structure diagonal, or posterity fit and predict"),
    ],
)
def test_what_does_not_go_together_is_said(
    table: Path, options: tuple[Any, ...], said: str
) -> None:
    assert said in complaint("evaluate", table, "--target", "paid", *options)


def test_demo_of_clicks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(clicks, "ROWS", 40_000)
    output = tmp_path / "clicks.png"
    rows = {
        line[:24].strip(): line.split()
        for line in done("demo", "clicks", "--output", output).splitlines()
    }
    loss = {
        name: float(line[-3])
        for name, line in rows.items()
        if len(line) > 3
        and name in ("share of clicks so far", "diagonal model", "true probability")
    }
    assert loss["true probability"] < loss["diagonal model"] < loss["share of clicks so far"] - 0.05
    assert float(rows["diagonal model"][-1]) < 0.01
    assert output.read_bytes().startswith(b"\x89PNG")
