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


def test_without_an_intercept_each_level_has_a_column() -> None:
    model = GroupedRegression(by="subject", fit_intercept=False).fit(TRIALS, TIME)
    beside = GroupedRegression(by="subject").fit(TRIALS, TIME)
    np.testing.assert_allclose(model.predict(TRIALS), beside.predict(TRIALS), rtol=0.05)
    names = ["condition=congruent", "condition=incongruent"]
    assert model.summary(groups=[3]).index.tolist() == names


# ---- levels that come later ----------------------------------------------------------------------

# The level that comes last is before the others in the alphabet.
CAME = (np.arange(600) > 400) & (RNG.random(600) < 0.5)
LATE = TRIALS.assign(dose=np.where(CAME, "a", np.where(RNG.random(600) < 0.5, "b", "c")))
FIRST = 383
MORE = TIME + 30.0 * (LATE["dose"] == "a")
NAMED = {"dose": ["b", "a", "c"], "condition": ["congruent", "incongruent"]}
KINDS: dict[str, tuple[dict[str, Any], Any]] = {
    "numbers": ({}, MORE),
    "given precision": ({"prior_precision": 1.0}, MORE),
    "unit information": ({"prior_precision": "unit information"}, MORE),
    "counts": ({"likelihood": "poisson"}, np.round(MORE / 300.0)),
    "labels": ({"likelihood": "bernoulli"}, MORE > 640.0),
    "fading": ({"forgetting": "stabilized:0.99"}, MORE),
}


@pytest.mark.parametrize("name", KINDS)
def test_a_level_may_come_at_any_time(name: str) -> None:
    settings, y = KINDS[name]
    late, named = (GroupedRegression(by="subject", **settings) for _ in range(2))
    named.set_params(categorical_features=NAMED)
    for model in (late, named):
        model.partial_fit(LATE[:300], y[:300]).partial_fit(LATE[300:], y[300:])
    assert late.categories_ == named.categories_
    # Sites are found again until they move by less than a fiftieth of a standard deviation.
    rtol = 0.05 if name == "labels" else 1e-6
    for each in ("coef_", "intercept_", "shared_mean_", "shared_covariance_", "log_evidence_"):
        np.testing.assert_allclose(getattr(late, each), getattr(named, each), rtol=rtol, atol=1e-8)
    np.testing.assert_allclose(late.predict_interval(LATE), named.predict_interval(LATE), rtol=rtol)


def test_a_level_may_come_by_rows_and_as_rows_are_predicted() -> None:
    y = np.asarray(MORE)
    late, named, both = (GroupedRegression(by="subject") for _ in range(3))
    middle, end = FIRST + 10, FIRST + 50
    rows = list(zip(LATE[FIRST:end].to_dict("records"), y[FIRST:end], strict=True))
    for row, target in rows:
        late.learn_one(row, target)
    named.set_params(categorical_features={one.name: one.levels for one in late.categories_.each})
    for row, target in rows:
        named.learn_one(row, target)
    np.testing.assert_allclose(late.coef_, named.coef_, rtol=1e-6)
    both.partial_fit(LATE[FIRST:middle], y[FIRST:middle])
    predicted = both.predict_then_learn(LATE[middle:end], y[middle:end])
    assert np.isinf(predicted.std()[LATE["dose"][middle:end].tolist().index("a")])
    np.testing.assert_allclose(both.predict(LATE[:end]), named.predict(LATE[:end]), rtol=1e-3)


def test_models_that_met_other_levels_merge_whatever_their_base() -> None:
    y, cut = np.asarray(MORE), 200
    parts = [
        GroupedRegression(by="subject").fit(LATE[:cut], y[:cut]),
        GroupedRegression(by="subject").fit(LATE[cut:], y[cut:]),
    ]
    assert [part.categories_.each[1].base for part in parts] == [("b",), ("a",)]
    merged = parts[0].merge(parts[1])
    whole = GroupedRegression(by="subject", categorical_features=NAMED).fit(LATE, y)
    assert merged.categories_ == whole.categories_
    np.testing.assert_allclose(merged.coef_, whole.coef_, rtol=1e-6)
    np.testing.assert_allclose(merged.log_evidence_, whole.log_evidence_)
    gone = merged.evict(groups=[3])
    merged.partial_fit(LATE[:20].assign(dose="d"), y[:20])
    assert merged.merge(gone).n_groups_ == 30
    assert merged.unlearn(LATE[:20].assign(dose="d"), y[:20]).n_observations_ == 600.0
    np.testing.assert_allclose(merged.predict(LATE), whole.predict(LATE), rtol=1e-6)


def test_of_a_level_that_never_came_a_group_knows_nothing() -> None:
    named = {"condition": ["congruent", "incongruent", "neutral"]}
    for settings, y in ({}, TIME), ({"likelihood": "bernoulli"}, TIME > 600.0):
        model = GroupedRegression(by="subject", categorical_features=named, **settings)
        table = model.fit(TRIALS, y).summary(groups=[3])
        plain = GroupedRegression(by="subject", **settings).fit(TRIALS, y).summary(groups=[3])
        assert table.loc["condition=neutral", "sd"] == np.inf
        np.testing.assert_allclose(table.loc[plain.index, "low"], plain["low"], rtol=1e-3)


def test_what_raises_or_only_predicts_brings_no_level() -> None:
    model = GroupedRegression(by="subject").fit(TRIALS, TIME)
    neutral = TRIALS[:2].assign(condition="neutral")
    with pytest.raises(ValueError, match="'condition' has a level in row 0 that was not learned"):
        model.predict(neutral)
    with pytest.raises(ValueError, match="y contains NaN"):
        model.partial_fit(neutral, [1.0, np.nan])
    with pytest.raises(ValueError, match="y contains NaN"):
        model.learn_one(neutral.iloc[0].to_dict(), np.nan)
    assert model.categories_.names == ["condition=incongruent"]
    assert model.n_observations_ == 600.0
