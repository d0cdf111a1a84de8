"""Models of formulas in the verbs around model files."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("click", reason="needs click (posterity[cli])")
pytest.importorskip("rich", reason="needs rich (posterity[cli])")
pytest.importorskip("pyarrow", reason="needs PyArrow (posterity[cli])")
from click.testing import CliRunner, Result
from mixed_tables import make_cattle, make_sleep

from posterity import Model
from posterity.cli.commands import posterity as command
from posterity.files import load, save

MIXED = "y ~ days + (1 | subject)"


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(command, [*map(str, arguments), "--quiet"])


def done(*arguments: object) -> str:
    quiet = [] if arguments[0] == "show" else ["--quiet"]
    result = CliRunner().invoke(command, [*map(str, arguments), *quiet])
    assert result.exit_code == 0, result.stderr
    return result.stdout


@pytest.fixture
def sleep(tmp_path: Path) -> Path:
    frame = make_sleep()
    frame["subject"] = "s" + frame["subject"].astype(str)
    frame.to_csv(tmp_path / "sleep.csv", index=False)
    frame[:90].to_csv(tmp_path / "first.csv", index=False)
    frame[90:].to_csv(tmp_path / "second.csv", index=False)
    return tmp_path


def test_fit_predict_and_show_are_those_of_the_model(sleep: Path) -> None:
    table, kept = sleep / "sleep.csv", sleep / "m.posterity"
    done("fit", table, "--formula", MIXED, "--output", kept)
    frame = pd.read_csv(table)
    model = Model(MIXED).fit(frame)
    found = pd.read_csv(io.StringIO(done("predict", kept, table, "--quantile", 0.1)))
    np.testing.assert_allclose(found["mean"], model.predict(frame))
    ends = model.predict_interval(frame)
    np.testing.assert_allclose(found[["lower", "upper"]], ends, rtol=1e-6)
    assert (found["q0.1"] < found["mean"]).all()
    shown = done("show", kept)
    for part in (MIXED, "days", "sd(1 | subject)", "sd(residual)"):
        assert part in shown
    document = json.loads(done("show", kept, "--json"))
    assert [one["name"] for one in document["coefficients"]] == [
        "intercept",
        "days",
        "sd(1 | subject)",
        "sd(residual)",
    ]
    assert document["coefficients"][1]["mean"] == pytest.approx(model.summary()["mean"]["days"])


def test_update_unlearn_and_merge_have_the_rows_of_all(sleep: Path) -> None:
    first, second, both = (sleep / f"{name}.posterity" for name in ("first", "second", "both"))
    for place in (first, second):
        done("fit", place.with_suffix(".csv"), "--formula", MIXED, "--output", place)
    done("merge", first, second, "--output", both)
    done("update", first, sleep / "second.csv")
    frame = pd.read_csv(sleep / "sleep.csv")
    expected = Model(MIXED).fit(frame).predict(frame)
    for place in (first, both):
        np.testing.assert_allclose(load(place).predict(frame), expected, rtol=1e-6)
    done("unlearn", first, sleep / "second.csv")
    left = load(first)
    assert left.n_observations_ == pytest.approx(90.0)
    half = frame[:90]
    np.testing.assert_allclose(left.predict(half), Model(MIXED).fit(half).predict(half), rtol=1e-5)


def test_successes_of_trials_and_files_from_python(tmp_path: Path) -> None:
    frame, formula = make_cattle(), "cases / animals ~ C(period) + (1 | herd)"
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.drop(columns=["cases", "animals"]).to_csv(tmp_path / "asked.csv", index=False)
    done("fit", tmp_path / "t.csv", "--formula", formula, "--output", tmp_path / "m.posterity")
    model = Model(formula, "binomial").fit(frame)
    expected = model.predict(frame)
    save(model, tmp_path / "python.posterity")
    for name in ("m", "python"):
        text = done("predict", tmp_path / f"{name}.posterity", tmp_path / "asked.csv")
        found = pd.read_csv(io.StringIO(text))
        np.testing.assert_allclose(found["mean"], expected, rtol=1e-6)
        assert ((found["lower"] < found["mean"]) & (found["mean"] < found["upper"])).all()


@pytest.mark.parametrize(
    ("formula", "words", "likelihood", "forgetting"),
    [
        ("ms ~ days", "gamma", "gamma", "none"),
        ("Surv(ms, seen) ~ days", "lognormal", "log normal", "none"),
        ("seen ~ days", "poisson", "poisson", "exponential:0.99"),
    ],
)
def test_likelihoods_and_memories_by_words(
    tmp_path: Path, formula: str, words: str, likelihood: str, forgetting: str
) -> None:
    rng = np.random.default_rng(0)
    days = rng.normal(size=30)
    frame = pd.DataFrame({"days": days, "ms": rng.gamma(2.0, np.exp(days)), "seen": days > -0.5})
    frame["seen"] = frame["seen"].astype(int)
    frame.to_csv(tmp_path / "t.csv", index=False)
    kept, how = tmp_path / "m.posterity", ("--model", words, "--forgetting", forgetting)
    done("fit", tmp_path / "t.csv", "--formula", formula, *how, "--output", kept)
    memory = None if forgetting == "none" else forgetting
    expected = Model(formula, likelihood, forgetting=memory).fit(frame).predict(frame)
    found = pd.read_csv(io.StringIO(done("predict", kept, tmp_path / "t.csv")))
    np.testing.assert_allclose(found["mean"], expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--formula", MIXED, "--forgetting", "window:50"), "supports only Stabilized"),
        (("--formula", MIXED, "--features", "days"), "--features does not go with --formula"),
        (("--formula", MIXED, "--target", "y"), "--target does not go with --formula"),
        (("--formula", MIXED, "--model", "robust"), "take linear, logistic or poisson"),
        (("--formula", "y ~ hours + (1 | subject)"), "'hours'"),
        (("--formula", "days + subject"), "no '~'"),
        ((), "Missing option '--target'"),
    ],
)
def test_what_does_not_go_with_a_formula(sleep: Path, options: tuple[str], message: str) -> None:
    result = invoke("fit", sleep / "sleep.csv", *options, "--output", sleep / "m.posterity")
    assert result.exit_code == 2
    assert message in result.stderr
    assert not (sleep / "m.posterity").exists()
