"""Other targets than numbers with noise, dates, and levels named beforehand, in the command."""

from __future__ import annotations

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
from posterity.evaluation import progressive_classification, progressive_validation

N = 300


def invoke(*arguments: object, **keywords: Any) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments], **keywords)


def done(*arguments: object) -> str:
    result = invoke(*arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def complaint(*arguments: object) -> str:
    result = invoke(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    return result.stderr


def problem() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    size = rng.normal(size=N).round(4)
    eta = 0.5 + size
    bought = np.where(eta + rng.logistic(size=N) > 0.0, "yes", "no")
    paid = (2.0 * size + rng.standard_t(3, size=N)).round(4)
    return {"size": size, "bought": bought, "visits": rng.poisson(np.exp(eta)), "paid": paid}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    columns = problem()
    path = tmp_path / "visits.csv"
    lines = [
        ",".join(columns),
        *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True)),
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def features() -> np.ndarray:
    return problem()["size"][:, None]


def test_labels_are_scored_as_in_python(table: Path) -> None:
    asked = ("evaluate", table, "--target", "bought", "--features", "size", "--model", "logistic")
    document = json.loads(done(*asked, "--json"))
    model = posterity.BayesianLogisticRegression()
    expected = progressive_classification(model, features(), problem()["bought"])
    assert document["accuracy"] == expected.accuracy
    assert document["log_loss"] == pytest.approx(expected.log_loss, rel=1e-9)
    assert f"{100 * expected.accuracy:.1f}% were right" in done(*asked)


@pytest.mark.parametrize("option", [("--delay", 3), ("--slice", "size"), ("--report", "x.html")])
def test_what_labels_do_not_have(table: Path, option: tuple[str, object]) -> None:
    asked = ("evaluate", table, "--target", "bought", "--features", "size", "--model", "logistic")
    said = complaint(*asked, *option)
    assert f"{option[0]} is for targets that are numbers" in said


@pytest.mark.parametrize(
    ("words", "target", "model"),
    [
        ("poisson", "visits", posterity.BayesianPoissonRegression()),
        ("negative-binomial", "visits", posterity.BayesianNegativeBinomialRegression()),
        (
            "negative-binomial:0.5",
            "visits",
            posterity.BayesianNegativeBinomialRegression(dispersion=0.5),
        ),
        ("robust:3", "paid", posterity.BayesianRobustRegression(df=3.0)),
    ],
)
def test_other_numbers_are_scored_as_in_python(
    table: Path, words: str, target: str, model: Any
) -> None:
    asked = ("--target", target, "--features", "size", "--model", words, "--json")
    document = json.loads(done("evaluate", table, *asked))
    expected = progressive_validation(model, features(), problem()[target].astype(float))
    assert document["crps"] == pytest.approx(expected.crps, rel=1e-9)
    assert np.isfinite(document["mae"])


def test_a_classifier_in_a_file(table: Path, tmp_path: Path) -> None:
    path = tmp_path / "bought.posterity"
    asked = ("--target", "bought", "--features", "size", "--model", "logistic", "--output", path)
    done("fit", table, *asked)
    by_hand = posterity.BayesianLogisticRegression()
    by_hand.partial_fit(features(), problem()["bought"])
    np.testing.assert_allclose(posterity.load(path).coef_, by_hand.coef_, rtol=1e-6)
    first = done("predict", path, table).splitlines()[:2]
    assert first[0] == "row,label,p=no,p=yes"
    done("update", path, table)
    assert posterity.load(path).n_observations_ == 2 * N


def test_models_of_labels_are_not_compared(table: Path) -> None:
    asked = ("--target", "visits", "--features", "size", "--models", "linear,logistic")
    assert "logistic predicts labels" in complaint("compare", table, *asked)


def test_words_that_make_no_model(table: Path) -> None:
    for words, said in (
        ("lin", "'lin' in 'lin' does not describe a model"),
        ("linear,robust", "names several models"),
        ("logistic:2", "logistic takes no number"),
        ("quantile:x", "'x' is not a number"),
    ):
        result = invoke("evaluate", table, "--target", "visits", "--model", words)
        assert result.exit_code == 2
        assert said in " ".join(result.stderr.split())
    asked = ("--target", "visits", "--features", "size", "--model", "robust")
    said = complaint("evaluate", table, *asked, "--noise-precision", 2)
    assert "a robust model has no noise precision" in said


def test_dates_count_days_where_that_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "days.csv"
    lines = [f"2024-01-{day:02d},{2 * day}" for day in range(1, 29)]
    path.write_text("\n".join(["day,y", *lines]) + "\n")
    model = tmp_path / "days.posterity"
    assert "--dates days" in complaint("fit", path, "--target", "y", "--output", model)
    done("fit", path, "--target", "y", "--output", model, "--dates", "days")
    assert posterity.load(model).coef_[0] == pytest.approx(2.0, rel=1e-3)
    done("update", model, path)


def test_sites_that_name_their_levels_can_be_merged(tmp_path: Path) -> None:
    paths = []
    for site, zones in enumerate(("ab", "bc")):
        rows = [f"{zones[i % 2]},{i % 7},{site + i}" for i in range(40)]
        table = tmp_path / f"{site}.csv"
        table.write_text("\n".join(["zone,size,y", *rows]) + "\n")
        paths.append(tmp_path / f"{site}.posterity")
        levels = ("--levels", "zone=a,b,c")
        done("fit", table, "--target", "y", "--output", paths[-1], *levels)
    whole = tmp_path / "whole.posterity"
    done("merge", *paths, "--output", whole)
    merged = posterity.load(whole)
    assert list(merged.feature_names_in_) == ["zone", "size"]
    assert merged.categories_.each[0].levels == ("a", "b", "c")


@pytest.mark.parametrize("written", ["zone", "zone=", "=a,b"])
def test_levels_that_are_none(table: Path, written: str) -> None:
    result = invoke("evaluate", table, "--target", "visits", "--levels", written)
    assert "as in zone=a,b,c" in " ".join(result.stderr.split())
