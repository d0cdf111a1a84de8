"""Grouped models of text: the first level is the base of the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import posterity
from posterity import GroupedRegression

RNG = np.random.default_rng(1)
SUBJECT = np.repeat(np.arange(30), 20)
INCONGRUENT = RNG.random(600) < 0.5
TIME = (
    (600.0 + 85.0 * RNG.normal(size=30))[SUBJECT]
    + (40.0 + 30.0 * RNG.normal(size=30))[SUBJECT] * INCONGRUENT
    + 80.0 * RNG.normal(size=600)
)
TRIALS = pd.DataFrame(
    {"subject": SUBJECT, "condition": np.where(INCONGRUENT, "incongruent", "congruent")}
)


def test_text_is_learned_as_its_column_of_zeros_and_ones(tmp_path: Any) -> None:
    model = GroupedRegression(by="subject").fit(TRIALS, TIME)
    plain = GroupedRegression().fit(INCONGRUENT[:, None] * 1.0, TIME, groups=SUBJECT)
    table = model.shared_posterior_.to_frame()
    assert table.index.tolist() == ["intercept", "condition=incongruent"]
    np.testing.assert_allclose(table["mean"], plain.shared_posterior_.to_frame()["mean"])
    np.testing.assert_allclose(
        model.predict_interval(TRIALS[:9]),
        plain.predict_interval(INCONGRUENT[:9, None] * 1.0, groups=SUBJECT[:9]),
    )
    effects = model.average_effects(TRIALS)
    assert effects.index.tolist() == ["condition=incongruent"]
    np.testing.assert_allclose(
        effects["mean"], plain.average_effects(INCONGRUENT[:, None] * 1.0, groups=SUBJECT)["mean"]
    )
    row = {"subject": 3, "condition": "incongruent"}
    np.testing.assert_allclose(model.predict_one(row), model.predict(pd.DataFrame([row]))[0])
    posterity.save(model, tmp_path / "trials.posterity")
    again = posterity.load(tmp_path / "trials.posterity")
    assert again.learn_one(row, 700.0).n_observations_ == 601.0


def test_levels_of_one_group_against_a_base() -> None:
    model = GroupedRegression(by="subject").fit(TRIALS, TIME)
    first = model.summary(groups=[3], base="first")["mean"]
    assert first["condition=congruent"] == 0.0
    np.testing.assert_allclose(first["condition=incongruent"], model.coef_[3, 0])
    assert "condition=congruent" not in model.summary(groups=[3]).index
    mean = model.summary(groups=[3], base="mean")["mean"]
    np.testing.assert_allclose(mean["condition=incongruent"], 0.5 * model.coef_[3, 0])


def test_levels_that_were_not_named() -> None:
    model = GroupedRegression(by="subject").fit(TRIALS, TIME)
    neutral = TRIALS[:2].assign(condition="neutral")
    for use in (model.predict, lambda X: model.partial_fit(X, [1.0, 2.0])):
        with pytest.raises(ValueError, match="'condition' has a level in row 0 that was not learn"):
            use(neutral)
    assert model.n_observations_ == 600.0
    both = [GroupedRegression(by="subject").fit(X, TIME[:20]) for X in (TRIALS[:20], TRIALS[:20])]
    assert both[0].merge(both[1]).n_observations_ == 40.0
    with pytest.raises(ValueError, match="the models differ in the levels of their categories"):
        model.merge(GroupedRegression(by="subject").fit(TRIALS.assign(condition="a"), TIME))
