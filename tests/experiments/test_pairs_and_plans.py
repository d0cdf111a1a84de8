"""Pairs of arms with their lifts, sentences, and how many rows to plan."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posterity.experiments import AnytimeValid, Experiment, Pair, Rows, plan
from posterity.experiments.pairs import compute_lifts
from posterity.sequential import compute_power, sequence_radius


def shop(rates: dict[str, float], n: int, seed: int = 0, **settings: Any) -> Experiment:
    """Visitors who buy or not, in three batches."""
    rng = np.random.default_rng(seed)
    arms = rng.choice(list(rates), size=n)
    bought = 1.0 * (rng.random(n) < np.vectorize(rates.__getitem__)(arms))
    test = Experiment(list(rates), **settings)
    for rows in np.array_split(np.arange(n), 3):
        test = test.observe_rows(arms[rows], bought[rows])
    return test


def test_pairs_are_all_pairs_and_agree_with_the_effects() -> None:
    test = shop({"a": 0.1, "b": 0.13, "c": 0.1}, 12_000)
    pairs = {(pair.arm, pair.other): pair for pair in test.pairs_}
    assert len(pairs) == 3
    assert {frozenset(key) for key in pairs} == {frozenset(key) for key in ("ab", "ac", "bc")}
    first = pairs["b", "a"]
    assert (first.low, first.high) == pytest.approx(test.interval_["b"])
    assert first.effect == pytest.approx(test.effect_["b"])
    assert first.lift == pytest.approx(test.mean_["b"] / test.mean_["a"] - 1.0)
    assert first.lift_low < first.lift < first.lift_high
    assert all(pair.effect >= 0.0 for pair in test.pairs_)


@given(
    st.floats(0.1, 10.0),
    st.floats(0.1, 10.0),
    st.floats(0.01, 2.0),
    st.floats(0.01, 2.0),
    st.floats(1.5, 5.0),
)
def test_a_lift_leaves_out_no_lift_where_the_difference_leaves_out_nothing(
    one: float, other: float, sd: float, other_sd: float, errors: float
) -> None:
    means, own = np.array([one, other]), np.square([sd, other_sd])
    variances = np.array([[0.0, own.sum(), own[0]], [own.sum(), 0.0, own[1]], [*own, 0.0]])
    low, high = compute_lifts(means, variances, np.full((2, 2), errors))
    assert np.isinf(low[0, 1]) == np.isinf(high[0, 1])
    if np.isfinite(low[0, 1]):
        distance = abs(one - other) - errors * np.sqrt(own.sum())
        if abs(distance) > 1e-6:
            assert (low[0, 1] <= 0.0 <= high[0, 1]) == (distance < 0.0)
        # An end is a ratio whose difference is just so many standard errors away.
        for ratio in (low[0, 1] + 1.0, high[0, 1] + 1.0):
            error = errors * np.sqrt(own[0] + ratio**2 * own[1])
            assert abs(one - ratio * other) == pytest.approx(error, rel=1e-5, abs=1e-9)


@pytest.mark.slow
def test_lifts_hold_at_every_look() -> None:
    """60 experiments with 20 looks: at most 5%, but for three standard errors."""
    missed = 0
    for seed in range(60):
        rng, test = np.random.default_rng(seed), Experiment(["a", "b"])
        held = True
        for _ in range(20):
            arms = rng.choice(["a", "b"], size=300)
            spent = np.exp(rng.normal(size=300)) * np.where(arms == "b", 1.2, 1.0)
            test = test.observe_rows(arms, spent)
            (pair,) = test.pairs_
            lift = 0.2 if pair.arm == "b" else 1.0 / 1.2 - 1.0
            held = held and pair.lift_low <= lift <= pair.lift_high
        missed += not held
    assert missed <= 60 * 0.05 + 3.0 * np.sqrt(60 * 0.05 * 0.95)


def test_sentences_say_what_is_known() -> None:
    test = shop({"old": 0.1, "new": 0.15}, 9_000)
    first, second = test.report().splitlines()
    assert first.startswith("Decided after ")
    assert "new is better" in first
    assert second.startswith("new beats old: +")
    assert " points (" in second
    assert "%" in second
    open_ = shop({"old": 0.1, "new": 0.102}, 3_000)
    assert "Nothing is decided" in open_.report()
    assert "not decided" in open_.report()
    assert "too few rows yet" in Experiment(["old", "new"]).report()


def test_sentence_of_a_pair() -> None:
    pair = Pair("B", "C", 0.002, -0.001, 0.005, 0.2, -0.1, 0.6, 24_000.0, 10_000, True)
    assert str(pair) == (
        "B against C: not decided, +0.20 points (-0.10 to +0.50), +20% (-10 to +60%); about 14,000 "
        "more rows would tell."
    )


def test_a_difference_that_is_not_worth_having_ends_a_test_too() -> None:
    rates, stop = {"a": 0.1, "b": 0.1, "c": 0.07}, AnytimeValid(smallest_effect=0.02)
    test = shop(rates, 40_000, stop=stop | Rows(100_000))
    alike = {frozenset((pair.arm, pair.other)): pair for pair in test.pairs_}[frozenset("ab")]
    assert alike.is_alike
    assert not alike.is_decided
    assert "no difference worth having" in str(alike)
    assert test.decision_ is not None
    assert test.decision_.arm in ("a", "b")
    early = shop(rates, 6_000, stop=stop)
    assert early.decision_ is None
    # Less is needed to take an arm than to call two of them alike.
    assert early.expected_rows_ <= max(pair.expected_rows for pair in early.pairs_)
    without = shop(rates, 40_000).pairs_
    assert not any(pair.is_alike for pair in without)


def test_rewards_around_zero_have_no_lift() -> None:
    rng = np.random.default_rng(0)
    arms = rng.choice(["a", "b"], size=4_000)
    test = Experiment(["a", "b"]).observe_rows(arms, rng.normal(size=4_000))
    (pair,) = test.pairs_
    assert np.isinf(pair.lift_low)
    assert np.isinf(pair.lift_high)
    assert "%" not in str(pair)


def test_decision_is_found_on_the_way_also_in_one_call() -> None:
    rng = np.random.default_rng(0)
    arms = rng.choice(["a", "b"], size=50_000)
    test = Experiment(["a", "b"]).observe_rows(arms, (arms == "b") + rng.normal(size=50_000))
    assert test.decision_ is not None
    assert test.decision_.rows < 1_000
    course = test.effects_over_time()
    assert list(course.columns) == ["rows", "arm", "effect", "low", "high"]
    assert course["rows"].is_monotonic_increasing
    assert course["rows"].iloc[-1] == 50_000
    assert course["high"].iloc[-1] == pytest.approx(test.interval_["b"][1])


def test_looks_that_are_kept_do_not_grow_with_calls() -> None:
    rng, test = np.random.default_rng(0), Experiment(["a", "b"])
    for _ in range(1_500):
        test = test.observe_rows(rng.choice(["a", "b"], size=1), rng.normal(size=1))
    assert len(test.effects_over_time()) < 300


def test_a_cap_makes_large_rewards_count_as_it() -> None:
    rng = np.random.default_rng(1)
    arms = rng.choice(["a", "b"], size=20_000)
    buys = rng.random(20_000) < np.where(arms == "b", 0.045, 0.03)
    spent = buys * np.exp(rng.normal(3.0, 1.5, size=20_000))
    capped = Experiment(["a", "b"], cap=200.0, planned_rows=20_000).observe_rows(arms, spent)
    by_hand = Experiment(["a", "b"], planned_rows=20_000)
    by_hand = by_hand.observe_rows(arms, np.minimum(spent, 200.0))
    assert capped.pairs_ == by_hand.pairs_
    assert spent.max() > 1_000.0
    # Beside the interval of a t-test that is looked at once.
    cut = np.minimum(spent, 200.0)
    error = np.sqrt(sum(cut[arms == arm].var() / np.sum(arms == arm) for arm in "ab"))
    low, high = capped.interval_["b"]
    assert high - low < 1.5 * 2 * 1.96 * error
    with pytest.raises(ValueError, match="cap is nan"):
        Experiment(["a", "b"], cap=float("nan"))


def test_power_is_that_of_random_walks() -> None:
    rng, level, drift, steps = np.random.default_rng(0), 0.95, 3.0, 400
    walks = np.cumsum(rng.normal(drift / steps, 1.0 / np.sqrt(steps), size=(4_000, steps)), axis=1)
    time = np.arange(1, steps + 1) / steps
    bound = sequence_radius(time, steps * time, level, planned_rows=steps)
    found = float(np.any(walks > bound, axis=1).mean())
    assert found == pytest.approx(compute_power(drift, level), abs=0.04)


def test_plan_finds_the_effect_with_its_power() -> None:
    rows = plan(0.1, 0.03, power=0.8)
    found = [
        shop({"a": 0.1, "b": 0.13}, rows, seed, planned_rows=rows).pairs_[0].is_decided
        for seed in range(60)
    ]
    assert 0.65 < np.mean(found) < 0.95


def test_plan_grows_with_arms_and_power() -> None:
    assert plan(0.1, 0.03, 0.8) < plan(0.1, 0.03, 0.95) < plan(0.1, 0.03, 0.95, arms=4)
    assert plan(0.1, 0.03) < plan(0.1, 0.03, level=0.99)
    one = plan(5.0, 1.0, standard_deviation=10.0)
    assert plan(5.0, -1.0, standard_deviation=10.0) == one
    assert plan(5.0, 0.5, standard_deviation=10.0) == pytest.approx(4 * one, rel=0.02)


def test_plans_of_few_rows_count_what_is_not_believed_of_few() -> None:
    """Below some 60 rows of an arm the spread is not believed to be as small as it seems."""
    rows = plan(0.0, 0.8, standard_deviation=1.0)
    assert 110 < rows < 160
    found = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        arms = rng.choice(["a", "b"], size=rows)
        test = Experiment(["a", "b"], planned_rows=rows)
        test = test.observe_rows(arms, 0.8 * (arms == "b") + rng.normal(size=rows))
        found += test.pairs_[0].is_decided
    assert found >= 33


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"baseline": 1.2, "effect": 0.1}, "shares lie between 0 and 1"),
        ({"baseline": 0.5, "effect": 0.0}, "worth finding"),
        ({"baseline": 0.5, "effect": float("nan")}, "worth finding"),
        ({"baseline": 0.5, "effect": 0.1, "power": 1.0}, "between 0 and 1"),
        ({"baseline": 0.5, "effect": 0.1, "arms": 1}, "at least two"),
        ({"baseline": 0.0, "effect": 1.0}, "no reward would vary"),
        ({"baseline": 5.0, "effect": 1.0, "standard_deviation": 0.0}, "above 0"),
        ({"baseline": 0.5, "effect": 1e-9}, "give a larger one"),
    ],
)
def test_plan_refuses_what_cannot_be(settings: dict[str, float], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        plan(**settings)  # type: ignore[arg-type]
