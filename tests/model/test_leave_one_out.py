"""Rows predicted from the others, beside models that are fitted without them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from posterity import Model
from posterity.likelihoods import NegativeBinomial


def make_table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x, group = rng.normal(size=60), rng.integers(0, 8, 60)
    eta = x + rng.normal(size=8)[group]
    frame = pd.DataFrame({"x": x, "group": group, "y": eta + 0.5 * rng.normal(size=60)})
    frame["label"] = np.where(rng.random(60) < 1.0 / (1.0 + np.exp(-eta)), "yes", "no")
    return frame.assign(count=rng.poisson(np.exp(0.5 * eta)), weight=1.0 + (x > 1.5))


def score_without(formula: str, likelihood: Any, frame: pd.DataFrame, some: Any) -> Any:
    """Log densities of some rows, of a model that is fitted to the others."""
    out, response = frame[some], formula.partition(" ")[0]
    model = Model(formula, likelihood).fit(frame[~some], sample_weight=frame["weight"][~some])
    predicted = model.predict_distribution(out)
    if likelihood == "bernoulli":
        which = np.searchsorted(["no", "yes"], out[response])
        return predicted.log_probabilities[np.arange(len(out)), which]
    score = predicted.logpdf if likelihood == "normal" else predicted.logpmf
    return score(out[response].to_numpy())


@pytest.mark.parametrize(
    ("formula", "likelihood", "off"),
    [
        ("y ~ x", "normal", 1e-7),
        ("y ~ x + (1 | group)", "normal", 0.005),
        ("label ~ x", "bernoulli", 0.02),
        ("label ~ x + (1 | group)", "bernoulli", 0.2),
        ("count ~ x + (1 | group)", "poisson", 0.05),
        ("count ~ x", NegativeBinomial(), 0.05),
    ],
)
def test_rows_are_scored_as_by_models_without_them(
    formula: str, likelihood: Any, off: float
) -> None:
    frame = make_table()
    model = Model(formula, likelihood).fit(frame, sample_weight=frame["weight"])
    found = model.leave_one_out(frame, sample_weight=frame["weight"])["log_density"]
    for row in (0, 17, int(frame["weight"].argmax())):
        expected = score_without(formula, likelihood, frame, frame.index == row)
        assert found[row] == pytest.approx(expected[0], abs=off)


@pytest.mark.parametrize(
    ("formula", "likelihood", "off"),
    [
        ("y ~ x", "normal", 1e-7),
        ("y ~ x + (1 | group)", "normal", 0.03),
        ("label ~ x + (1 | group)", "bernoulli", 0.1),
    ],
)
def test_groups_are_scored_as_by_models_without_them(
    formula: str, likelihood: str, off: float
) -> None:
    frame = make_table()
    model = Model(formula, likelihood).fit(frame, sample_weight=frame["weight"])
    found = model.leave_one_out(frame, sample_weight=frame["weight"], by="group")
    assert found["group"].tolist() == frame["group"].tolist()
    for group in (0, 3):
        some = (frame["group"] == group).to_numpy()
        expected = score_without(formula, likelihood, frame, some)
        assert found["log_density"][some].to_numpy() == pytest.approx(expected, abs=off)


def test_expected_targets_are_those_of_models_without_the_row() -> None:
    frame = make_table()
    for formula, likelihood, off in (
        ("y ~ x + (1 | group)", "normal", 1e-3),
        ("label ~ x", "bernoulli", 0.01),
    ):
        found = Model(formula, likelihood).fit(frame).leave_one_out(frame)["mean"]
        expected = Model(formula, likelihood).fit(frame[1:]).predict(frame[:1])
        assert found[0] == pytest.approx(expected[0], abs=off)


def test_other_rows_are_refused() -> None:
    frame = make_table()
    numbers, labels = Model("y ~ x").fit(frame), Model("label ~ x", "bernoulli").fit(frame)
    for model, rows in ((numbers, frame[1:]), (labels, frame[1:]), (labels, frame[::-1])):
        with pytest.raises(ValueError, match="not the rows"):
            model.leave_one_out(rows)
    with pytest.raises(ValueError, match="no column 'goup'; did you mean 'group'"):
        numbers.leave_one_out(frame, by="goup")
    trials = {"sick": [1, 2, 3], "all": [4, 5, 6]}
    with pytest.raises(ValueError, match="give a row for each trial"):
        Model("sick / all ~ 1", "binomial").fit(trials).leave_one_out(trials)
