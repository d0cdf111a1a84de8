"""Counts with exposures and offsets in the command: columns that are named once, by fit."""

from __future__ import annotations

import io
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
from posterity import BayesianPoissonRegression
from posterity.cli.commands import posterity as command
from posterity.evaluation import compare, compare_predictions, progressive_validation
from posterity.io import learn_stream, open_table, predict_stream
from posterity.sparse import DiagonalPoissonRegression, SparsePoissonRegression

STRUCTURES = ["full", "diagonal", "sparse"]
COUNTS = ("--target", "claims", "--model", "poisson")


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


def policies(n: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    years, power = rng.gamma(2.0, size=n) + 0.1, rng.normal(size=n).round(2)
    zone = rng.integers(0, 4, n)
    claims = rng.poisson(years * np.exp(0.5 * rng.normal(size=4)[zone] + 0.2 * power - 0.5))
    zones = np.array(["a", "b", "c", "d"])[zone]
    frame = {"zone": zones, "power": power, "years": years, "added": np.log(years)}
    return pd.DataFrame({**frame, "claims": claims})


@pytest.fixture
def table(tmp_path: Path) -> Path:
    policies().to_csv(path := tmp_path / "policies.csv", index=False)
    return path


def fitted(table: Path, structure: str, *more: object) -> Path:
    path = table.with_name(f"{structure}.posterity")
    given = ("--drop", "added", "--exposure", "years", "--structure", structure, *more)
    done("fit", table, *COUNTS, *given, "--output", path)
    return path


def model_of(structure: str) -> Any:
    kinds = DiagonalPoissonRegression, SparsePoissonRegression
    return kinds[structure == "sparse"]()


@pytest.mark.parametrize("structure", STRUCTURES)
def test_every_verb_knows_the_exposure(table: Path, structure: str) -> None:
    rows = policies()
    path = fitted(table, structure)
    X, y, years = rows[["zone", "power"]], rows["claims"].to_numpy(), rows["years"].to_numpy()
    loaded = posterity.load(path)
    if structure != "full":
        ours = model_of(structure).partial_fit(X, y, exposure=years)
        np.testing.assert_allclose(
            loaded.predict(X, exposure=years), ours.predict(X, exposure=years), rtol=1e-6
        )
    predicted = pd.read_csv(io.StringIO(done("predict", path, table)))
    once = pd.read_csv(io.StringIO(done("predict", path, table, "--exposure", "")))
    np.testing.assert_allclose(predicted["mean"], years * once["mean"], rtol=1e-6)
    shown = json.loads(done("show", path, "--json"))
    assert shown["exposure"] == "years"
    assert shown["coefficients_of"] == "the log of the expected claims"
    assert "exposures               years" in done("show", path)

    rows["time"] = rows.pop("years")
    rows.to_csv(other := table.with_name("other.csv"), index=False)
    assert "years" in complaint("predict", path, other)
    renamed = pd.read_csv(io.StringIO(done("predict", path, other, "--exposure", "time")))
    np.testing.assert_allclose(renamed["mean"], predicted["mean"])
    done("update", path, other, "--exposure", "time", "--output", twice := table.with_name("2.p"))
    assert posterity.load(twice).n_observations_ == 800.0
    if structure != "diagonal":
        done("unlearn", twice, other, "--exposure", "time")
        assert posterity.load(twice).n_observations_ == 400.0


@pytest.mark.parametrize("structure", STRUCTURES)
def test_an_offset_is_the_log_of_an_exposure(table: Path, structure: str) -> None:
    expected = done("predict", fitted(table, structure), table)
    given = ("--drop", "years", "--offset", "added", "--structure", structure)
    path = table.with_name("offset.posterity")
    done("fit", table, *COUNTS, *given, "--output", path)
    found, expected = (
        pd.read_csv(io.StringIO(text)) for text in (done("predict", path, table), expected)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    refused = complaint("merge", path, fitted(table, structure), "--output", table.with_name("m"))
    assert "differ in their offset" in refused


@pytest.mark.parametrize("structure", ["full", "diagonal"])
def test_evaluate_scores_as_python_does(table: Path, structure: str) -> None:
    given = ("--drop", "added", "--exposure", "years", "--structure", structure)
    found = json.loads(done("evaluate", table, *COUNTS, *given, "--json"))
    rows = policies()
    if structure == "full":
        model, X = BayesianPoissonRegression(), pd.get_dummies(rows["zone"])
        X = np.column_stack([X, rows["power"]]).astype(float)
    else:
        model, X = DiagonalPoissonRegression(), rows[["zone", "power"]]
    years = rows["years"].to_numpy()
    ours = progressive_validation(model, X, rows["claims"], exposure=years)
    assert found["log_score"] == pytest.approx(ours.log_score, rel=1e-6)
    without = progressive_validation(type(model)(), X, rows["claims"])
    assert ours.log_score > without.log_score + 0.05
    if structure == "full":
        late = ("--delay", 5, *COUNTS, *given, "--json")
        delayed = json.loads(done("evaluate", table, *late))
        model = BayesianPoissonRegression()
        ours = progressive_validation(model, X, rows["claims"], exposure=years, delay=5)
        assert delayed["log_score"] == pytest.approx(ours.log_score, rel=1e-6)


def test_compare_knows_the_exposure(table: Path) -> None:
    given = ("--target", "claims", "--drop", "added", "--models", "poisson,poisson+flat")
    with_years = json.loads(done("compare", table, *given, "--exposure", "years", "--json"))
    without = json.loads(done("compare", table, *given, "--drop", "years", "--json"))
    assert with_years != without
    rows = policies()
    X, y = rows[["power"]].to_numpy(), rows["claims"].to_numpy()
    models = {
        "auto": BayesianPoissonRegression(),
        "1": BayesianPoissonRegression(prior_precision=1.0),
    }
    how: dict[str, Any] = {"exposure": rows["years"].to_numpy()}
    paired = compare_predictions(models, X, y, **how)
    alone = progressive_validation(BayesianPoissonRegression(), X, y, **how)
    assert paired.results["auto"].log_score == pytest.approx(alone.log_score)
    evidence = compare(models, X, y, **how)
    fitted = BayesianPoissonRegression().partial_fit(X, y, **how)
    assert evidence.log_scores[0] == pytest.approx(fitted.log_evidence_)


def test_tables_have_columns_of_exposure(table: Path) -> None:
    rows = policies()
    how: dict[str, Any] = {"drop": ["added"], "exposure": "years"}
    model = learn_stream(BayesianPoissonRegression(), table, "claims", batch_rows=150, **how)
    twin = learn_stream(
        BayesianPoissonRegression(), rows, "claims", batch_rows=150, drop=["years"], offset="added"
    )
    np.testing.assert_allclose(model.coef_, twin.coef_, rtol=1e-9)
    predicted = pd.concat(predict_stream(model, rows, exposure="years"))
    once = pd.concat(predict_stream(model, rows))
    np.testing.assert_allclose(predicted["mean"], rows["years"] * once["mean"], rtol=1e-9)
    (batch,) = open_table(rows, "claims", **how)
    assert batch[2:4] == (None, None)
    np.testing.assert_allclose(batch[4], rows["added"])
    scored = progressive_validation(BayesianPoissonRegression(), open_table(rows, "claims", **how))
    assert scored.n_rows == 400
    both = open_table(rows, "claims", weight="power", offset="added", exposure="years")
    with pytest.raises(ValueError, match="weights must be finite and not negative"):
        list(both)
    both = open_table(rows, "claims", offset="added", exposure="years")
    np.testing.assert_allclose(next(iter(both))[4], 2.0 * rows["added"])


def test_what_is_no_exposure(table: Path) -> None:
    rows = policies()
    rows.loc[7, "years"] = 0.0
    rows.to_csv(table, index=False)
    refused = complaint("fit", table, *COUNTS, "--exposure", "years", "--output", "x.posterity")
    assert "line 9, column 'years' is 0: an exposure must be positive and finite" in refused
    rows.loc[7, "years"] = np.nan
    rows.to_csv(table, index=False)
    refused = complaint("fit", table, *COUNTS, "--exposure", "years", "--output", "x.posterity")
    assert "column 'years' is missing: an exposure must be positive" in refused
    given = ("fit", table, "--target", "claims", "--exposure", "years", "--output", "x.posterity")
    assert "exposure is for models of counts, not for BayesianLinearRegression" in complaint(*given)
    for structure in ("diagonal", "sparse"):
        refused = complaint(*given, "--structure", structure)
        assert "exposure is for models of counts, not for" in refused
    lacking = complaint("fit", table, *COUNTS, "--exposure", "n", "--output", "x.p")
    assert "exposure 'n' is not a column of the file; its columns are 'zone'" in lacking
    again = complaint("fit", table, *COUNTS, "--exposure", "claims", "--output", "x.p")
    assert "'claims' is the target, and can't also be the exposure" in again
    with pytest.raises(TypeError, match="offset is for models of counts"):
        learn_stream(posterity.BayesianLinearRegression(), rows, "claims", offset="added")
    with pytest.raises(ValueError, match="offset and exposure are for arrays X and y"):
        progressive_validation(BayesianPoissonRegression(), [([[1.0]], [1])], exposure=2.0)
