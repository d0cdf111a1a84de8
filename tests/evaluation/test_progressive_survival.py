"""Lifetimes scored along a stream: in Python, in the command, and on its page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from posterity import BayesianGeneralizedLinear, Model
from posterity.evaluation import progressive_survival, progressive_validation, score_survival
from posterity.evaluation.survival import _estimate_survival
from posterity.likelihoods import Censored, Weibull

TIMES = [1.0, 2.0, 4.0]


def rentals(n: int = 120) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 1)).round(3)
    life = np.exp(1.0 + 0.8 * X[:, 0]) * rng.weibull(1.5, n)
    end = rng.uniform(0.5, 6.0, n)
    time = np.minimum(life, end).round(2) + 0.01  # some are equal
    return X, np.column_stack([time, np.where(life < end, time, np.inf)])


def known() -> BayesianGeneralizedLinear:
    return BayesianGeneralizedLinear(Censored(Weibull(1.5)))


def test_batches_score_as_all_rows_at_once() -> None:
    X, y = rentals()
    whole = score_survival(known().predict_then_learn(X, y), y, TIMES)
    parts = progressive_survival(known(), [(X[:50], y[:50]), (X[50:], y[50:])], times=TIMES)
    assert_allclose(parts.concordance, whole.concordance, atol=2e-3)
    assert_allclose(parts.brier, whole.brier, rtol=5e-3)
    assert_allclose(parts.log_score, whole.log_score, rtol=1e-3)
    assert (parts.n_rows, parts.n_events) == (120, whole.n_events)
    assert json.dumps(parts.to_dict(), allow_nan=False)


def test_concordance_and_brier_scores_are_those_of_their_definitions() -> None:
    X, y = rentals(60)
    predictive = stats.weibull_min(1.5, scale=np.exp(1.0 + 0.5 * X[:, 0].round(0)))  # ties
    scores = score_survival(predictive, y, [2.5])
    time, seen, median = y[:, 0], np.isfinite(y[:, 1]), predictive.median()
    agree, pairs = 0.0, 0
    for i in np.flatnonzero(seen):
        for j in range(60):
            if time[j] > time[i] or (time[j] == time[i] and not seen[j]):
                pairs += 1
                agree += (median[j] > median[i]) + 0.5 * (median[j] == median[i])
    assert_allclose(scores.concordance, agree / pairs, rtol=1e-12)
    total = 0.0
    for i in range(60):
        until = time[i] if seen[i] and time[i] <= 2.5 else 2.5
        cut = np.unique(time[~seen & ((time < until) | ((time == until) & (until == 2.5)))])
        at_risk = [np.sum((time > t) | ((time == t) & ~seen)) for t in cut]
        stay = np.prod(
            [1.0 - np.sum((time == t) & ~seen) / r for t, r in zip(cut, at_risk, strict=True)]
        )
        alive = predictive.sf(2.5)[i]
        if seen[i] and time[i] <= 2.5:
            total += alive**2 / stay
        elif time[i] > 2.5:
            total += (1.0 - alive) ** 2 / stay
    assert_allclose(scores.brier, [total / 60], rtol=1e-12)
    assert_allclose(score_survival(predictive, y, 2.5).brier, scores.brier)


def test_the_share_alive_and_its_variance_are_those_of_r() -> None:
    # summary(survfit(Surv(c(1, 2, 2, 3, 5, 8), c(1, 1, 0, 1, 0, 1)) ~ 1), times = c(1, 2, 4, 8))
    time, ended = np.array([1.0, 2, 2 + 1e-9, 3, 5 + 1e-9, 8]), np.array([1, 1, 0, 1, 0, 1]) == 1
    share, variance = _estimate_survival(time, ended, np.array([1.0, 2.0, 4.0]))
    assert_allclose(share, [0.8333333, 0.6666667, 0.4444444], atol=1e-7)
    assert_allclose(share * np.sqrt(variance), [0.1521452, 0.1924501, 0.2222222], atol=1e-7)


def test_groups_hold_what_was_predicted_where_the_model_is_right() -> None:
    X, y = rentals(2000)
    predictive = stats.weibull_min(1.5, scale=np.exp(1.0 + 0.8 * X[:, 0]))
    scores = score_survival(predictive, y, TIMES)
    held = [(one.low <= one.predicted) & (one.predicted <= one.high) for one in scores.groups]
    assert np.mean(held) > 0.8
    assert all(np.diff([one.predicted[1] for one in scores.groups]) > 0.0)
    late = score_survival(predictive, y, [100.0]).groups[0]
    assert np.isnan([late.observed[0], late.low[0], late.high[0]]).all()


def test_a_formula_is_scored_by_its_predictions() -> None:
    X, y = rentals(60)
    frame = pd.DataFrame({"x": X[:, 0], "time": y[:, 0], "ended": np.isfinite(y[:, 1])})
    model = Model("Surv(time, ended) ~ x", "weibull:1.5").fit(frame[:40])
    scores = score_survival(model.predict_distribution(frame[40:]), y[40:], TIMES)
    assert 0.5 < scores.concordance < 1.0


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.ones(120), r"y in batch 0 has shape \(120,\): lifetimes have a lower and an upper end"),
        (np.tile([1.0, np.inf], (120, 1)), "no lifetime in y, or in its first batch, ends"),
        (np.tile([2.0, 1.0], (120, 1)), "the lower end must not be above the upper one"),
    ],
)
def test_what_cannot_be_scored(y: np.ndarray, message: str) -> None:
    model, times = known(), TIMES if y.ndim == 2 and y[0, 1] < 2.0 else None
    with pytest.raises(ValueError, match=message):
        progressive_survival(model, rentals()[0], y, times=times)


def test_plain_scores_of_lifetimes_name_those_that_there_are() -> None:
    with pytest.raises(ValueError, match=r"progressive_survival\(model.*score_survival\(model"):
        progressive_validation(known(), *rentals())


# ---- the command ---------------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path: Path) -> Path:
    X, y = rentals()
    ended = np.isfinite(y[:, 1]).astype(int)
    frame = pd.DataFrame({"x": X[:, 0], "months": y[:, 0], "broke": ended})
    frame.to_csv(path := tmp_path / "rentals.csv", index=False)
    return path


def call(*arguments: Any) -> Any:
    pytest.importorskip("pyarrow", reason="needs PyArrow (posterity[cli])")
    testing = pytest.importorskip("click.testing", reason="needs click (posterity[cli])")
    from posterity.cli.commands import posterity as command

    return testing.CliRunner().invoke(command, [str(argument) for argument in arguments])


def test_the_command_scores_lifetimes(table: Path) -> None:
    how = ("--target", "Surv(months, broke)", "--model", "weibull:1.5")
    told = json.loads(call("evaluate", table, *how, "--json").stdout)
    expected = progressive_survival(known(), *rentals())
    assert_allclose(told["concordance"], expected.concordance)
    assert_allclose(told["brier"], expected.brier)
    assert told["features"] == ["x"]
    shown = call("evaluate", table, *how).stdout
    assert "120 lifetimes" in shown
    assert "predicted to last" in shown


def test_the_page_draws_who_was_alive(table: Path, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert", reason="reports need posterity[report]")
    how = ("--target", "Surv(months, broke)", "--model", "weibull:1.5")
    page = tmp_path / "page.html"
    result = call("evaluate", table, *how, "--report", page)
    assert result.exit_code == 0, result.stderr
    assert "Who was alive, by quarters of predicted lifetimes" in page.read_text()


def test_files_of_lifetimes_are_updated_unlearned_and_read(table: Path, tmp_path: Path) -> None:
    model, more = tmp_path / "rentals.posterity", tmp_path / "more.posterity"
    how = ("--target", "Surv(months, broke)", "--model", "weibull:1.5")
    assert call("fit", table, *how, "--output", model).exit_code == 0
    assert call("update", model, table, "--output", more).exit_code == 0
    assert call("unlearn", more, table).exit_code == 0
    told = call("predict", more, table, "--above", 2).stdout.splitlines()
    assert told[0] == "row,mean,std,lower,upper,above2"
    X, y = rentals()
    alive = known().fit(X, y).predict_survival(X[:1], [2.0])[0, 0]
    assert_allclose(float(told[1].split(",")[-1]), alive, rtol=1e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--target", "Surv(months, broke)"], "take --model weibull, log-normal or another"),
        (["--target", "Surv(months, x)", "--model", "gamma"], "'x' is .*: 1 says that the time"),
        (["--target", "Surv(x, broke)", "--model", "gamma"], "'x' is .*: a lifetime must be above"),
        (["--target", "Surv(month, broke)", "--model", "gamma"], "did you mean 'months'"),
        (["--target", "Surv(months, broke)", "--model", "weibull", "--lag", "1"], "leave --lag"),
        (["--target", "Surv(months, broke)", "--model", "weibull", "--delay", "1"], "--delay is"),
        (["--target", "Surv(months, broke)", "--structure", "diagonal"], "is a lifetime, some"),
        (["--target", "x", "--model", "gamma", "--batch-rows", "9"], "y in row .*rows 0 to 8 of"),
    ],
)
def test_what_the_command_refuses(table: Path, options: list[str], message: str) -> None:
    import re

    result = call("evaluate", table, *options)
    assert result.exit_code == 2
    assert re.search(message, result.stderr), result.stderr


def test_fit_says_in_which_rows_a_target_is_wrong(table: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(table)
    frame.loc[20, "months"] = 0.0
    frame.to_csv(table, index=False)
    how = ("--target", "months", "--model", "gamma", "--batch-rows", 9)
    told = call("fit", table, *how, "--output", tmp_path / "model").stderr
    assert "y in row 2 is 0" in told
    assert "in rows 18 to 26 of the stream" in told


def test_lifetimes_are_not_compared_as_numbers(table: Path) -> None:
    how = ("--target", "Surv(months, broke)", "--models", "weibull,gamma")
    assert "take posterity evaluate with one --model" in call("compare", table, *how).stderr
