"""`posterity compare`, and the pages that both commands write."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("click", reason="needs click (posterity[cli])")
pytest.importorskip("rich", reason="needs rich (posterity[cli])")
pytest.importorskip("pyarrow", reason="needs PyArrow (posterity[cli])")
from click.testing import CliRunner, Result

from posterity import BayesianLinearRegression
from posterity.basis import HilbertSpaceGP, Polynomial, Spline
from posterity.cli.commands import posterity
from posterity.evaluation import compare_predictions
from posterity.words import build_model, parse


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(posterity, [str(argument) for argument in arguments])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(500, 2)).round(6)
    y = (X[:, 0] ** 2 + 0.1 * rng.normal(size=500)).round(6)
    path = tmp_path / "table.csv"
    rows = [",".join(map(str, (*x, target))) for x, target in zip(X, y, strict=True)]
    path.write_text("a,<b>,y\n" + "\n".join(rows) + "\n")
    return path


def test_words_make_models() -> None:
    made = [build_model(words) for words in parse("auto,flat,prior:2+spline:5,hsgp+adaptive")]
    assert made[0].get_params() == BayesianLinearRegression(prior_precision="auto").get_params()
    assert made[1].prior_precision == 0.0
    assert (made[2].prior_precision, made[2].basis.n_knots) == (2.0, 5)
    assert isinstance(made[2].basis, Spline)
    assert isinstance(made[3].basis, HilbertSpaceGP)
    assert made[3].basis.additive
    assert made[3].forgetting == "adaptive"
    (_, window) = (build_model(words) for words in parse("polynomial:2,ard+window:50"))
    assert window.forgetting == "window:50"
    assert isinstance(build_model(parse("polynomial:2,auto")[0]).basis, Polynomial)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("auto", "give two models or more, as in auto,flat"),
        ("auto,auto", "has the same model twice"),
        (
            "auto,forest",
            "'forest' in 'forest' does not describe a model: give linear, robust, quantile",
        ),
        ("auto,ard+flat", "'ard+flat' has two settings for its prior: give one"),
        ("auto,spline:many", "'many' is not a whole number; as in spline:8"),
        ("auto,prior:-1", "'-1' is not a number from 0 up; as in prior:1"),
        ("auto,flat:3", "flat takes no number; write flat alone"),
        ("auto,window", "window needs a number of rows, as in window:500"),
    ],
)
def test_words_that_make_none(text: str, message: str, table: Path) -> None:
    result = invoke("compare", table, "--target", "y", "--models", text)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_compare_is_the_librarys(table: Path) -> None:
    result = invoke("compare", table, "--target", "y", "--models", "auto,polynomial:2", "--json")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["best"] == "polynomial:2"
    X = np.loadtxt(table, delimiter=",", skiprows=1)
    library = compare_predictions(
        {
            "auto": BayesianLinearRegression(),
            "polynomial:2": BayesianLinearRegression(
                basis=Polynomial(degree=2, interactions=False)
            ),
        },
        X[:, :2],
        X[:, 2],
    )
    expected = library.between("auto", "polynomial:2")
    behind = document["models"][1]
    assert behind["name"] == "auto"
    assert behind["behind"] == pytest.approx(expected.mean)
    assert behind["standard_error"] == pytest.approx(expected.standard_error)


def test_compare_says_who_is_best(table: Path) -> None:
    result = invoke("compare", table, "--target", "y", "--models", "auto,spline", "--quiet")
    assert result.exit_code == 0, result.stderr
    assert "spline predicted best" in result.stdout
    assert "more than chance explains" in result.stdout
    assert result.stderr == ""


@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_report_is_written(command: str, table: Path, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert", reason="reports need posterity[report]")
    page = tmp_path / "page.html"
    models = ["--models", "auto,spline"] if command == "compare" else ["--period", "24"]
    result = invoke(command, table, "--target", "y", *models, "--report", page)
    assert result.exit_code == 0, result.stderr
    assert result.stderr == f"The report is in {page}\n"
    html = page.read_text(encoding="utf-8")
    assert html.startswith("<!DOCTYPE html>")
    assert f"posterity {command} {table} --target y" in html
    assert "<td>a, &lt;b&gt;</td>" in html
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.html", "table.csv"]


def test_report_that_cannot_be_written_is_refused_first(table: Path, tmp_path: Path) -> None:
    for place, message in (
        (tmp_path / "nowhere" / "page.html", "is not a folder: create it first, or give another"),
        (tmp_path, "is a folder: give --report a file in it"),
    ):
        result = invoke("evaluate", table, "--target", "y", "--report", place)
        assert result.exit_code == 2
        assert message in " ".join(result.stderr.split())


def test_report_without_its_package_names_the_cure(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("posterity.cli.pages.find_spec", lambda name: None)
    result = invoke("evaluate", table, "--target", "y", "--report", tmp_path / "page.html")
    assert result.exit_code == 2
    assert "pip install 'posterity[report]'" in result.stderr


def test_help_lists_the_words() -> None:
    said = invoke("compare", "--help").stdout
    assert "auto (the default), ard, flat, prior:NUMBER" in said
    assert "--drop pickup --missing skip --models auto,flat,ard" in said


# ---- slices, and coefficients along the stream ----


@pytest.fixture
def rides(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    n = 2000
    distance, zone = rng.uniform(0.0, 8.0, n).round(3), rng.integers(0, 3, n)
    noise = np.where(zone == 2, 3.0, 0.5) * rng.normal(size=n)
    fare = (2.0 + 1.5 * distance + zone + noise).round(4)
    path = tmp_path / "rides.csv"
    rows = [f"{d},{'abc'[z]},{f}" for d, z, f in zip(distance, zone, fare, strict=True)]
    path.write_text("distance,zone,fare\n" + "\n".join(rows) + "\n")
    return path


def test_slices_of_numbers_and_of_categories(rides: Path) -> None:
    asked = ("--target", "fare", "--slice", "distance", "--slice", "zone")
    result = invoke("evaluate", rides, *asked, "--json")
    assert result.exit_code == 0, result.stderr
    slices = json.loads(result.stdout)["slices"]
    assert [len(slices[name]["n_rows"]) for name in ("distance", "zone")] == [4, 4]
    assert slices["zone"]["names"] == ["another", "a", "b", "c"]
    zones = [line.split(",")[1] for line in rides.read_text().splitlines()[1:]]
    assert slices["zone"]["n_rows"] == [0, *(zones.count(zone) for zone in "abc")]
    mae = slices["zone"]["mae"]
    assert mae[3] > 2.0 * mae[1]
    coverage = slices["zone"]["coverage"]["0.95"]
    assert coverage[3] < 0.9 < coverage[1]
    shown = invoke("evaluate", rides, *asked)
    assert "by zone" in shown.stdout
    assert "another" in shown.stdout
    assert f"{100 * coverage[3]:.1f}%" in shown.stdout


def test_slices_of_several_models(rides: Path) -> None:
    asked = ("--target", "fare", "--models", "auto,spline", "--slice", "zone")
    shown = invoke("compare", rides, *asked)
    assert shown.exit_code == 0, shown.stderr
    assert shown.stdout.count("by zone") == 2


def test_slices_of_what_is_not_there(rides: Path) -> None:
    result = invoke("evaluate", rides, "--target", "fare", "--slice", "tip")
    assert result.exit_code == 2
    assert "--slice 'tip' is not a feature: slice by distance, zone" in result.stderr


def test_the_report_follows_coefficients_and_slices(rides: Path, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert", reason="reports need posterity[report]")
    page = tmp_path / "report.html"
    result = invoke(
        "evaluate", rides, "--target", "fare", "--slice", "zone", "--report", page, "--quiet"
    )
    assert result.exit_code == 0, result.stderr
    html = page.read_text()
    assert "Coefficients along the stream, with intervals" in html
    assert "By zone" in html
    assert "another" in html
