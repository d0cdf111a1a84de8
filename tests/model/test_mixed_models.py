"""Models of formulas beside lme4, whose figures stand here, and beside a Gibbs sampler."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from gibbs_mixed import sample_mixed_model
from mixed_tables import (
    make_cattle,
    make_dyestuff,
    make_pastes,
    make_penicillin,
    make_sleep,
)

from posterity import Model
from posterity.evaluation import progressive_classification, progressive_validation

# Estimates of lme4 1.1-31, lmer(), by restricted maximum likelihood.
REML = {
    "y ~ days + (days | subject)": (make_sleep, [24.740658, 5.922138, 0.065551, 25.591796]),
    "y ~ days + (days || subject)": (make_sleep, [25.051328, 5.988187, 25.565279]),
    "y ~ 1 + (1 | plate) + (1 | sample)": (make_penicillin, [0.846703, 1.931614, 0.549923]),
    "y ~ 1 + (1 | batch)": (make_dyestuff, [42.000595, 49.510100]),
    "y ~ 1 + (1 | batch / cask)": (make_pastes, [1.287366, 2.904077, 0.823408]),
}


@pytest.mark.parametrize("formula", REML)
def test_likeliest_variances_are_those_of_lme4(formula: str) -> None:
    make, expected = REML[formula]
    found = Model(formula).fit(make()).variance_components()
    assert found["reml"].to_numpy() == pytest.approx(expected, rel=1e-3)
    assert ((found["low"] < found["mean"]) & (found["mean"] < found["high"])).all()


def test_fixed_effects_of_the_sleep_study() -> None:
    """Those of lmer; the standard errors are larger by what is not known of variances."""
    found = Model("y ~ days + (days | subject)").fit(make_sleep()).summary()
    assert found["mean"].to_numpy() == pytest.approx([251.405105, 10.467286], rel=1e-6)
    assert (found["sd"].to_numpy() / [6.824597, 1.545790]).tolist() == pytest.approx(
        [1.172, 1.088], abs=0.01
    )


def test_results_do_not_depend_on_where_a_slope_has_its_zero() -> None:
    formula, frame = "y ~ days + (days | subject)", make_sleep()
    moved = frame.assign(days=frame["days"] + 2000.0)
    one, other = (Model(formula).fit(some) for some in (frame, moved))
    rows = ["sd(days | subject)", "sd(residual)"]
    tables = [model.variance_components().loc[rows, ["mean", "low"]] for model in (one, other)]
    np.testing.assert_allclose(*tables, rtol=1e-6)
    new = pd.DataFrame({"days": [-5.0, 0.0, 9.0], "subject": -1})
    ends = one.predict_interval(new), other.predict_interval(new.assign(days=new["days"] + 2000.0))
    np.testing.assert_allclose(*ends, rtol=1e-6)


def check(found: pd.Series, draws: np.ndarray) -> None:
    """Mean and interval within a tenth of the draws' standard deviation."""
    ends = np.quantile(draws, [0.025, 0.975])
    off = np.array([found["mean"], found["low"], found["high"]]) - [draws.mean(), *ends]
    assert np.abs(off).max() < 0.1 * draws.std()
    assert found["sd"] == pytest.approx(draws.std(), rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "formula", "group"),
    [
        (make_sleep, "y ~ days + (days | subject)", "subject"),
        (make_dyestuff, "y ~ 1 + (1 | batch)", "batch"),
    ],
)
def test_posterior_is_that_of_a_gibbs_sampler(make: object, formula: str, group: str) -> None:
    frame = make()  # type: ignore[operator]
    columns = [np.ones(len(frame)), *([frame["days"]] if "days" in frame else [])]
    X, k = np.stack(columns, axis=1), len(columns)
    numbers = pd.factorize(frame[group])[0]
    draws = sample_mixed_model(frame["y"].to_numpy(), X, X, numbers, 40_000)
    model = Model(formula).fit(frame)
    fixed, variances = model.summary(), model.variance_components()
    for place in range(k):
        check(fixed.iloc[place], draws["b"][:, place])
        check(variances.iloc[place], np.exp(draws["at"][:, place]))
    if k == 2:
        check(variances.iloc[2], np.tanh(draws["at"][:, 2]))
    check(variances.iloc[-1], np.sqrt(draws["noise"]))
    effects = model.group_effects(group)
    every = draws["u"].transpose(0, 2, 1).reshape(len(draws["u"]), -1)
    for place in range(len(effects)):
        check(effects.iloc[place], every[:, place])


def test_successes_of_trials() -> None:
    """Within .1 sd of rstanarm 2.21.3, with the same prior of fixed effects (8,000 draws)."""
    frame = make_cattle()
    model = Model("cases / animals ~ C(period) + (1 | herd)", "binomial").fit(frame)
    found = model.summary()
    assert found.index.tolist() == ["intercept", "C(period)[2]", "C(period)[3]", "C(period)[4]"]
    labels = frame.loc[frame.index.repeat(frame["animals"])]
    place = np.concatenate([np.arange(count) for count in frame["animals"]])
    labels = labels.assign(case=place < labels["cases"].to_numpy())
    same = Model("case ~ C(period) + (1 | herd)", "bernoulli").fit(labels)
    assert same.summary()["mean"].to_numpy() == pytest.approx(found["mean"].to_numpy(), abs=0.02)
    assert same.variance_components()["mean"].iloc[0] == pytest.approx(
        model.variance_components()["mean"].iloc[0], rel=0.03
    )


@pytest.mark.parametrize("likelihood", ["normal", "bernoulli", "poisson"])
def test_batches_rows_and_merged_models_agree(likelihood: str) -> None:
    rng = np.random.default_rng(0)
    group, x = rng.integers(0, 8, 60), rng.normal(size=60)
    eta = 0.5 * x + rng.normal(size=8)[group]
    y = {
        "normal": eta + rng.normal(size=60),
        "bernoulli": (rng.random(60) < 1.0 / (1.0 + np.exp(-eta))).astype(int),
        "poisson": rng.poisson(np.exp(eta)),
    }[likelihood]
    frame = pd.DataFrame({"y": y, "x": x, "g": group})
    formula, parts = "y ~ x + (1 | g)", [frame[:20], frame[20:]]
    whole = Model(formula, likelihood).fit(frame)
    stream = Model(formula, likelihood)
    for part in parts:
        stream.partial_fit(part)
    merged, other = (Model(formula, likelihood).partial_fit(part) for part in parts)
    merged.merge(other)
    more = Model(formula, likelihood).fit(pd.concat([frame, frame[:5]])).unlearn(frame[:5])
    expected = whole.predict_interval(frame, of="mean")
    for model in (stream, merged, more):
        assert model.predict_interval(frame, of="mean") == pytest.approx(expected, rel=1e-3)


def test_new_levels_are_as_wide_as_levels_are() -> None:
    model = Model("y ~ days + (days | subject)").fit(make_sleep())
    asked = pd.DataFrame({"days": [0.0, 9.0], "subject": [-1, -1]})
    found = model.predict_distribution(asked)
    known = model.predict_distribution(asked.assign(subject=3))
    assert (found.std() > 1.25 * known.std()).all()
    model.learn_one({"y": 300.0, "days": 0.0, "subject": 999})
    assert len(model.group_effects("subject")) == 2 * 19


def test_rows_are_predicted_and_then_learned_in_turns() -> None:
    frame = make_sleep()
    model = Model("y ~ days + (1 | subject)")
    predicted = model.predict_then_learn(frame)
    assert len(predicted) == model.n_observations_ == len(frame)
    later = predicted[40:]
    low, high = later.interval(0.95)
    assert 0.85 < np.mean((low < frame["y"][40:]) & (frame["y"][40:] < high)) < 1.0
    whole = Model("y ~ days + (1 | subject)").fit(frame)
    assert model.predict(frame) == pytest.approx(whole.predict(frame))


@pytest.mark.parametrize("labels", [[0, 1], ["no", "yes"]])
def test_labels_are_predicted_before_the_first(labels: list[object]) -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"x": rng.normal(size=40), "g": rng.integers(0, 4, 40)})
    frame["y"] = np.array(labels)[(rng.normal(size=40) < frame["x"]).astype(int)]
    model = Model("y ~ x + (1 | g)", "bernoulli")
    predicted = model.predict_then_learn(frame)
    assert predicted.classes.tolist() == labels
    assert predicted.probabilities[0].tolist() == pytest.approx([0.5, 0.5])
    assert model.n_observations_ == 40
    stream = Model("y ~ x + (1 | g)", "bernoulli")
    one_label = frame[frame["y"] == labels[1]]
    stream.predict_then_learn(one_label)
    assert len(stream.predict_then_learn(frame)) == 40
    fresh = Model("y ~ x + (1 | g)", "bernoulli")
    result = progressive_classification(fresh, frame, frame["y"])
    assert result.log_loss < 0.75
    with pytest.raises(TypeError, match="progressive_classification"):
        progressive_validation(Model("y ~ x", "bernoulli"), frame, frame["y"])


def test_parts_of_one_text_each_are_not_merged() -> None:
    """Nothing says which of two words comes first, where each part knows one."""
    parts = ({"x": [0.0, 1.0], "y": [word, word]} for word in ("no", "yes"))
    one, other = (Model("y ~ x", "bernoulli").partial_fit(part) for part in parts)
    with pytest.raises(ValueError, match="rows of both classes"):
        one.merge(other)


def test_what_too_few_rows_can_not_tell_is_nan() -> None:
    frame = {"y": [1.0, 2.0, 4.0], "g": ["a", "b", "a"]}
    one = Model("y ~ 1 + (1 | g)").learn_one({"y": 1.0, "g": "a"})
    none = Model("y ~ 1 + (1 | g)").fit(frame).unlearn(frame)
    for model in (one, none):
        assert model.variance_components().drop(columns="name").isna().all(axis=None)
        assert np.isinf(model.summary()["sd"]).all()
        assert np.isinf(model.predict_interval({"g": ["a"]})).all()
        assert model.explained_variance().isna().all(axis=None)


@pytest.mark.slow
@pytest.mark.parametrize(("n_groups", "n_rows"), [(5, 2), (5, 10), (20, 2), (20, 10), (100, 2)])
def test_intervals_hold(n_groups: int, n_rows: int) -> None:
    """Standard deviation, fixed effects and the mean of a new group, in 200 simulated tables."""
    rng, held = np.random.default_rng(n_groups + n_rows), []
    group = np.repeat(np.arange(n_groups), n_rows)
    for _ in range(200):
        x, effects = rng.normal(size=len(group)), rng.normal(size=n_groups)
        y = 1.0 + 0.5 * x + effects[group] + rng.normal(size=len(group))
        model = Model("y ~ x + (1 | g)").fit({"y": y, "x": x, "g": group})
        fixed, sds = model.summary(), model.variance_components()
        new = model.predict_interval({"x": [0.0], "g": [-1]}, of="mean")[0]
        ends = [*fixed[["low", "high"]].to_numpy(), *sds[["low", "high"]].to_numpy(), new]
        truth = [1.0, 0.5, 1.0, 1.0, 1.0 + rng.normal()]
        held.append([low < true < high for (low, high), true in zip(ends, truth, strict=True)])
    assert np.mean(held, axis=0).min() > 0.89  # 4 standard errors below .95


@pytest.mark.parametrize("labels", [(0, 1), (False, True), (1, 2)])
def test_parts_of_one_label_each_are_merged(labels: tuple[object, object]) -> None:
    """Also with an offset, which does not depend on which label came first."""
    rng = np.random.default_rng(0)
    x, added = rng.normal(size=(2, 200))
    second = rng.random(200) < 1.0 / (1.0 + np.exp(-x - added))
    frame = pd.DataFrame({"x": x, "added": added, "y": np.where(second, labels[1], labels[0])})
    formula = "y ~ x + offset(added)"
    whole = Model(formula, "bernoulli").fit(frame)
    parts = [Model(formula, "bernoulli").fit(frame[second == one]) for one in (True, False)]
    later = Model(formula, "bernoulli").fit(frame[second]).partial_fit(frame[~second])
    for model in (parts[0].merge(parts[1]), later):
        if labels != (1, 2):
            assert model.predict(frame) == pytest.approx(whole.predict(frame), abs=1e-4)
        found = model.predict_distribution(frame).classes.tolist()
        assert found == list(labels)
