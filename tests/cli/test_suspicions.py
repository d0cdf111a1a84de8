"""Quantiles scored as quantiles; leaks, far values and the worst row named on the terminal."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result
from sklearn.metrics import mean_pinball_loss

from posterity.cli.commands import posterity
from posterity.evaluation import progressive_validation
from posterity.evaluation.quantiles import progressive_quantiles
from posterity.generalized import BayesianQuantileRegression
from posterity.linear import BayesianLinearRegression


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(posterity, list(map(str, arguments)))


@pytest.fixture
def rides(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    km = rng.uniform(1.0, 9.0, size=600)
    fare = 3.0 + km * (1.0 + rng.exponential(0.3, size=600))
    path = tmp_path / "rides.csv"
    pd.DataFrame({"km": km, "fare": fare}).to_csv(path, index=False)
    return path


def test_a_quantile_is_scored_as_one(rides: Path) -> None:
    asked = ("evaluate", rides, "--target", "fare", "--model", "quantile:0.9")
    predictive = json.loads(invoke(*asked, "--json").stdout)
    frame = pd.read_csv(rides)
    X, y = frame[["km"]].to_numpy(), frame["fare"].to_numpy()
    predicted = BayesianQuantileRegression(quantile=0.9).predict_then_learn(X, y).ppf(0.9)
    scored = np.isfinite(predicted)
    assert predictive["n_unscored"] == (~scored).sum()
    y, predicted = y[scored], predicted[scored]
    assert predictive["share_below"] == pytest.approx(np.mean(y <= predicted))
    assert predictive["pinball_loss"] == pytest.approx(mean_pinball_loss(y, predicted, alpha=0.9))
    assert 0.2 < predictive["skill"] < 1.0
    shown = invoke(*asked).stdout
    assert f"{100 * predictive['share_below']:.1f}% of the targets were at or below" in shown
    assert "off by" not in shown
    line = invoke(*asked, "--report", rides.with_suffix(".html")).stderr
    assert "--report is for targets that are numbers, predicted by their mean" in line


def test_the_quantile_so_far_is_that_of_the_rows_before(monkeypatch: pytest.MonkeyPatch) -> None:
    y = np.random.default_rng(0).normal(size=5000)
    result = progressive_quantiles(BayesianQuantileRegression(quantile=0.2), np.zeros((5000, 1)), y)
    usual = np.array([np.quantile(y[:i], 0.2) for i in range(10, 5000)])
    exact = mean_pinball_loss(y[10:], usual, alpha=0.2)
    assert result.baseline_loss == pytest.approx(exact, rel=0.01)
    monkeypatch.setattr("posterity.evaluation.quantiles._KEPT", 500)
    few = progressive_quantiles(BayesianQuantileRegression(quantile=0.2), np.zeros((5000, 1)), y)
    assert few.baseline_loss == pytest.approx(exact, rel=0.02)
    with pytest.raises(ValueError, match="the stream is empty"):
        progressive_quantiles(BayesianQuantileRegression(), np.zeros((0, 1)), np.zeros(0))


def test_leaks_and_slips_are_named(rides: Path) -> None:
    frame = pd.read_csv(rides)
    frame["cents"], frame["rain"] = 100 * frame["fare"], np.linspace(0.0, 50.0, 600)
    frame.loc[431, "rain"] = 9831.3
    frame.to_csv(rides, index=False)
    result = invoke("evaluate", rides, "--target", "fare")
    leak, slip = sorted(result.stderr.splitlines())
    assert "'cents' is almost 'fare' itself" in leak
    assert slip.startswith("note: row 431 has 'rain' = 9831.3, 24 standard deviations")
    assert slip.endswith("all others are at most 50: is it a slip?")
    assert invoke("evaluate", rides, "--target", "fare", "--quiet").stderr == ""


def test_the_worst_rows_are_kept() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 2))
    y = X[:, 0] + rng.normal(size=900)
    y[700] += 200.0
    model = BayesianLinearRegression()
    predicted = BayesianLinearRegression().predict_then_learn(X, y).mean()
    errors = np.abs(y - predicted)
    result = progressive_validation(model, X, y, batch_rows=100)
    order = np.argsort(-errors)[:5]
    assert [one.row for one in result.worst] == order.tolist()
    np.testing.assert_allclose([one.error for one in result.worst], errors[order])
    assert [one.y for one in result.worst] == y[order].tolist()
    assert result.to_dict()["worst"][0]["row"] == 700


def test_a_row_that_leads_the_error_is_named(rides: Path) -> None:
    frame = pd.read_csv(rides)
    frame.loc[300, "fare"] = 5000.0
    frame.to_csv(rides, index=False)
    shown = invoke("evaluate", rides, "--target", "fare").stdout
    assert "Row 300 alone makes" in shown
    assert "its target is 5000" in shown


def test_counts_that_vary_too_much_are_named(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    path, page = tmp_path / "visits.csv", tmp_path / "page.html"
    counts = rng.negative_binomial(1.0, 1.0 / (1.0 + 5.0 * np.exp(0.3 * x)))
    pd.DataFrame({"x": x, "visits": counts}).to_csv(path, index=False)
    asked = ("evaluate", path, "--target", "visits", "--model")
    pytest.importorskip("vl_convert")
    assert "try --model negative-binomial" in invoke(*asked, "poisson", "--report", page).stderr
    html = page.read_text()
    assert "try --model negative-binomial" in html
    assert "log of visits per sd of the feature" in html
    assert "try --model" not in invoke(*asked, "negative-binomial").stderr
