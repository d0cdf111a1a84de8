"""The verbs for decisions: experiment and off-policy."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("click", reason="needs click (posterity[cli])")
pytest.importorskip("rich", reason="needs rich (posterity[cli])")
pytest.importorskip("pyarrow", reason="needs PyArrow (posterity[cli])")
pytest.importorskip("pandas", reason="needs pandas")
import pandas as pd
from click.testing import CliRunner, Result

import posterity
from posterity import BayesianLinearRegression
from posterity.bandits import Bandit
from posterity.cli.commands import posterity as command
from posterity.experiments import Experiment
from posterity.off_policy import Log, evaluate


def invoke(*arguments: object, **keywords: Any) -> Result:
    return CliRunner().invoke(command, list(map(str, arguments)), **keywords)


def complaint(*arguments: object) -> str:
    result = invoke(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1
    return result.stderr


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"variant": rng.choice(["A", "B"], 3000)})
    frame["device"] = rng.choice(["m", "d"], 3000)
    chance = 0.2 + 0.3 * (frame["device"] == "m") + 0.1 * (frame["variant"] == "B")
    frame["bought"] = (rng.random(3000) < chance).astype(int)
    path = tmp_path / "visits.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture
def decisions(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    age = rng.normal(size=3000)
    red = np.where(age > 0.0, 0.7, 0.3)
    chosen = rng.random(3000) < red
    frame = pd.DataFrame({"age": age, "arm": np.where(chosen, "red", "blue")})
    frame["reward"] = np.where(chosen, age, 0.0) + rng.normal(size=3000)
    frame["p_red"], frame["p_blue"] = red, 1.0 - red
    path = tmp_path / "decisions.csv"
    frame.to_csv(path, index=False)
    return path


EXPERIMENT = ("--arm", "variant", "--reward", "bought")


def test_experiment_says_what_the_library_says(visits: Path) -> None:
    result = invoke("experiment", visits, *EXPERIMENT, "--covariates", "device", "--json")
    predictive = json.loads(result.stdout)
    test = Experiment(["A", "B"]).observe(
        visits, arm="variant", reward="bought", covariates=["device"]
    )
    low, high = test.interval_["B"]
    assert predictive["arms"][1]["low"] == pytest.approx(low)
    assert predictive["arms"][1]["high"] == pytest.approx(high)
    assert predictive["decision"]["arm"] == "B"
    shown = invoke("experiment", visits, *EXPERIMENT).stdout
    assert re.search(
        r"Decided after [\d,]+ of [\d,]+ rows so far: B is better than all others\.", shown
    )
    assert "B beats A: +" in shown
    assert predictive["pairs"][0]["arm"] == "B"
    assert "control" in shown


def test_experiment_with_another_control_and_shares(visits: Path) -> None:
    result = invoke("experiment", visits, *EXPERIMENT, "--control", "B", "--shares", "A=0.9,B=0.1")
    assert "Nothing is decided: arms did not come as often as they should have" in result.stdout
    assert result.stdout.index("\nB ") < result.stdout.index("\nA ")
    assert "not an arm of column 'variant'" in complaint(
        "experiment", visits, *EXPERIMENT, "--control", "C"
    )
    assert "write a name and its number" in complaint(
        "experiment", visits, *EXPERIMENT, "--shares", "A"
    )
    assert "'boght' is not a column of the file; did you mean 'bought'" in complaint(
        "experiment", visits, "--arm", "variant", "--reward", "boght"
    )


def test_covariates_may_be_missing_and_arms_may_not(visits: Path) -> None:
    frame = pd.read_csv(visits)
    frame["age"] = np.arange(3000) % 50
    frame.loc[1::60, "age"], frame.loc[2::70, "device"] = np.nan, None
    frame["bought"] = np.where(frame["bought"] == 1, "yes", "no")
    frame.to_csv(visits, index=False)
    covariates = ("--covariates", "device,age")
    assert "--missing mean" in complaint("experiment", visits, *EXPERIMENT, *covariates)
    options = (*covariates, "--missing", "level", "--json")
    shown = json.loads(invoke("experiment", visits, *EXPERIMENT, *options).stdout)
    assert shown["n_rows"] == 3000
    test = Experiment(["A", "B"]).observe(
        frame, arm="variant", reward="bought", covariates=["device", "age"], missing="level"
    )
    assert shown["arms"][1]["low"] == pytest.approx(test.interval_["B"][0])
    for arms in (frame["variant"], frame["variant"].map({"A": 0, "B": 1}).astype(float)):
        names, broken = arms.unique().tolist(), frame.assign(variant=arms.where(frame.index != 9))
        with pytest.raises(posterity.io.TableError, match="'variant' has missing values"):
            Experiment(names).observe(
                broken, arm="variant", reward="bought", covariates="age", missing="level"
            )


def test_experiment_writes_a_page(visits: Path, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    page = tmp_path / "page.html"
    result = invoke("experiment", visits, *EXPERIMENT, "--model", "logistic", "--report", page)
    assert result.exit_code == 0, result.stderr
    text = page.read_text(encoding="utf-8")
    assert "B is better than all others" in text
    assert "As rows came" in text


def test_ratios_other_metrics_and_segments(visits: Path) -> None:
    rng = np.random.default_rng(2)
    frame = pd.read_csv(visits).assign(sessions=1 + rng.poisson(2.0, 3000))
    frame["seconds"] = rng.normal(5.0, 1.0, 3000)
    frame.to_csv(visits, index=False)
    more = ("--per", "sessions", "--segment", "device", "--also", "sessions")
    more += ("--guardrail", "seconds=0.5")
    text = invoke("experiment", visits, *EXPERIMENT, *more).stdout
    assert "bought per sessions by variant" in text
    assert "Guardrail seconds (may rise by 0.5) is kept by B" in text
    assert "effect of B differs between segments" in text
    assert text.index("Other metrics") < text.index("Effect of B by device")
    shown = json.loads(invoke("experiment", visits, *EXPERIMENT, *more, "--json").stdout)
    ratio = Experiment(["A", "B"]).observe(
        frame, arm="variant", reward="bought", per="sessions", segment="device"
    )
    assert shown["arms"][1]["low"] == pytest.approx(ratio.interval_["B"][0])
    assert list(shown["metrics"]) == ["bought", "sessions", "seconds"]
    assert shown["guardrails"][0]["is_kept"]
    assert [one["segment"] for one in shown["segments"]["B"]["effects"]] == ["d", "m"]
    for wrong, said in (
        (("--also", "bought"), "'bought' is the reward"),
        (("--guardrail", "seconds=0"), "a change that is allowed, not 0"),
        (("--per", "device"), "the denominator 'device' holds text"),
    ):
        assert said in complaint("experiment", visits, *EXPERIMENT, *wrong)


def test_rows_are_planned_before_an_experiment(visits: Path) -> None:
    assert invoke("plan", "--baseline", "0.05", "--effect", "0.005").stdout.startswith(
        "104,000 rows"
    )
    assert (
        "Rewards above 0.5 count as 0.5"
        in invoke("experiment", visits, *EXPERIMENT, "--cap", "0.5").stdout
    )
    assert "shares lie between 0 and 1" in complaint("plan", "--baseline", "5", "--effect", "1")
    shown = [
        json.loads(invoke("experiment", visits, *EXPERIMENT, *more, "--json").stdout)
        for more in ((), ("--planned-rows", "4000"))
    ]
    widths = [each["arms"][1]["high"] - each["arms"][1]["low"] for each in shown]
    assert widths[1] != widths[0]


def test_off_policy_says_what_the_library_says(decisions: Path) -> None:
    options = ("--propensities", "p_*", "--policy", "red", "--policy", "logged")
    result = invoke("off-policy", decisions, *options, "--method", "dr", "--json")
    predictive = json.loads(result.stdout)
    log = Log.open(decisions, propensities="p_*")
    whole = evaluate(log, {"red": "red", "logged": "logged"}, ["dr"])
    for one in predictive["estimates"]:
        assert one["value"] == pytest.approx(whole[one["policy"], "dr"].value)
    shown = invoke("off-policy", decisions, *options).stdout
    assert "effective rows" in shown
    assert "3,000 decisions among 2 arms." in shown


def test_off_policy_without_propensities(decisions: Path) -> None:
    result = invoke("off-policy", decisions, "--drop", "p_red,p_blue", "--policy", "uniform")
    assert "name their column in --propensity" in result.stdout
    assert "the log has no propensities" in result.stdout
    assert "'green' is not a policy" in complaint(
        "off-policy", decisions, "--propensities", "p_*", "--policy", "green"
    )
    assert "write two numbers" in complaint(
        "off-policy", decisions, "--policy", "red", "--reward-range", "1"
    )


def test_off_policy_draws_arms_that_hardly_came(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    path, page = tmp_path / "log.csv", tmp_path / "page.html"
    rows = [f"{'red' if row % 9 else 'blue'},{row % 2},{row}" for row in range(60)]
    path.write_text("\n".join(["arm,reward,age", *rows]), encoding="utf-8")
    result = invoke("off-policy", path, "--report", page)
    assert result.exit_code == 0, result.stderr
    assert "What each arm earned" in page.read_text(encoding="utf-8")


def test_off_policy_reads_lines_of_personalizer(decisions: Path, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    path, page = tmp_path / "log.dsjson", tmp_path / "page.html"
    Log.open(decisions, propensities="p_*").to_dsjson(path)
    options = ("--policy", "red", "--method", "ips", "--reward-range", "-9,9", "--report", page)
    result = invoke("off-policy", path, *options)
    assert result.exit_code == 0, result.stderr
    assert "3,000 decisions" in page.read_text(encoding="utf-8")


def test_off_policy_judges_a_saved_bandit_by_the_names_of_its_features(
    decisions: Path, tmp_path: Path
) -> None:
    frame = pd.read_csv(decisions).assign(noise=0.0)
    frame["noise"] = np.random.default_rng(0).normal(size=len(frame))
    frame.to_csv(decisions, index=False)
    bandit = Bandit(arms=["blue", "red"], policy="greedy", rng=0)
    bandit.learn(frame[["noise", "age"]], frame["arm"], frame["reward"])  # not the log's order
    model = tmp_path / "new.posterity"
    posterity.save(bandit, model)
    options = ("--propensities", "p_*", "--policy", model, "--method", "snips", "--json")
    predictive = json.loads(invoke("off-policy", decisions, *options).stdout)
    expected = frame["age"].clip(lower=0.0).mean()  # what the right arm pays
    assert predictive["estimates"][0]["value"] == pytest.approx(expected, abs=0.1)
    assert "'age', which is not a feature of the log" in complaint(
        "off-policy", decisions, *options, "--drop", "age"
    )
    regression = tmp_path / "regression.posterity"
    posterity.save(BayesianLinearRegression().fit(frame[["age"]], frame["reward"]), regression)
    assert "give a Bandit" in complaint(
        "off-policy", decisions, "--propensities", "p_*", "--policy", regression
    )


def test_off_policy_without_a_policy_asks_for_each_arm_and_draws_all(
    decisions: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    options = ("--propensities", "p_*", "--report", page, "--json")
    document = json.loads(invoke("off-policy", decisions, *options).stdout)
    policies = {one["policy"] for one in document["estimates"]}
    assert policies == {"always blue", "always red", "uniform", "logged"}
    assert document["answer"]
    assert document["next"]
    text = page.read_text(encoding="utf-8")
    for title in ("Side by side", "How probable each arm was", "What each arm earned"):
        assert f">{title}</h2>" in text


def test_a_shop_looks_every_week_and_acts_by_what_it_reads(tmp_path: Path) -> None:
    """A/B/C with 2% of buyers: the file grows, and each look keeps what earlier ones said."""
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({"variant": rng.choice(["A", "B", "C"], 40_000)})
    chance = frame["variant"].map({"A": 0.02, "B": 0.035, "C": 0.02})
    frame["bought"] = np.where(rng.random(40_000) < chance, "yes", "no")
    path, verdicts = tmp_path / "visits.csv", []
    for rows in (2_000, 25_000, 40_000):
        frame.iloc[:rows].to_csv(path, index=False)
        options = (*EXPERIMENT, "--planned-rows", "40000", "--smallest-effect", "0.008")
        shown = invoke("experiment", path, *options)
        assert shown.exit_code == 0, shown.stderr
        document = json.loads(invoke("experiment", path, *options, "--json").stdout)
        verdicts.append(document["decision"])
        advice = "take B." if document["decision"] else "go on"
        assert f"What to do next: {advice}" in shown.stdout
    assert verdicts[0] is None
    assert verdicts[-1]["arm"] == "B"
    assert verdicts[-1]["rows"] < 40_000
    assert verdicts[-2] in (None, verdicts[-1])
    assert {pair["other"] for pair in document["pairs"][:2]} == {"A", "C"}
    assert "no difference worth having" in shown.stdout
