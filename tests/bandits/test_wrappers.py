"""Budgets that are kept, and policies that do not do much worse than what was done before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from posterity import BayesianLogisticRegression
from posterity.bandits import Bandit, Baseline, Budget, Greedy, ThompsonSampling
from posterity.files import dumps, loads

Array = NDArray[np.float64]
COSTS = {"call": 3.0, "letter": 1.0}


def known(policy: Any, seed: int = 0, **how: Any) -> Bandit:
    """A bandit of three arms that has learned 60 rows."""
    rng = np.random.default_rng(seed)
    X, arms = rng.normal(size=(60, 2)), ["call", "letter", "none"] * 20
    rewards = np.tile([1.0, 0.6, 0.2], 20) + 0.3 * X[:, 0] + 0.1 * rng.normal(size=60)
    return Bandit(arms=["call", "letter", "none"], policy=policy, rng=seed, **how).learn(
        X, arms, rewards
    )


def watches() -> list[Any]:
    return [
        Budget(costs=COSTS, total=1000.0, decisions=900),
        Budget(costs=COSTS, total=50.0, decisions=900, policy=Greedy()),
        Baseline(arm="none", allowance=0.05),
        Baseline(arm={"none": 0.5, "letter": 0.5}, allowance=0.01, policy="inverse gap"),
        Baseline(arm="call", apprentice=True),
    ]


@pytest.mark.parametrize("policy", watches(), ids=str)
def test_what_is_logged_is_what_was_picked_from(policy: Any) -> None:
    bandit = known(policy)
    made = bandit.decide(np.random.default_rng(1).normal(size=(900, 2)))
    np.testing.assert_allclose(made.propensities.sum(axis=1), 1.0, atol=1e-12)
    assert (made.propensities >= 0.0).all()
    for place, arm in enumerate(bandit.arms_):
        chances = made.propensities[:, place]
        count, spread = np.sum(made.arms == arm), np.sqrt(np.sum(chances * (1.0 - chances)))
        assert abs(count - chances.sum()) <= 4.5 * spread + 1e-9


@pytest.mark.parametrize("policy", watches(), ids=str)
@pytest.mark.parametrize("sharing", ["learned", "all"])
def test_many_decisions_keep_the_ledger_of_one_after_the_other(policy: Any, sharing: Any) -> None:
    X = np.random.default_rng(2).normal(size=(15, 2))
    many, one = (known(policy, sharing=sharing) for _ in range(2))
    made = many.decide(X)
    spent = 0.0
    for x in X:
        one.decide(x)
    for bandit in (many, one):
        assert bandit.ledger_.decisions == 15
    if isinstance(policy, Budget):
        spent = sum(COSTS.get(arm, 0.0) for arm in made.arms)
        assert many.ledger_.spent == pytest.approx(spent)
        assert many.ledger_.recent.shape == one.ledger_.recent.shape == (15, 3)
    else:
        assert many.ledger_.spent <= policy.allowance * 15 + 1e-12
        assert one.ledger_.spent <= policy.allowance * 15 + 1e-12


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 1000), st.floats(0.0, 30.0), st.booleans())
def test_a_budget_is_never_overspent(seed: int, total: float, at_once: bool) -> None:
    rng = np.random.default_rng(seed)
    bandit = known(Budget(costs=COSTS, total=total, decisions=30), seed)
    X = rng.normal(size=(30, 2))
    arms = bandit.decide(X).arms if at_once else [bandit.decide(x).arm for x in X]
    spent = sum(COSTS.get(arm, 0.0) for arm in arms)
    assert spent <= total
    assert bandit.ledger_.spent == pytest.approx(spent, abs=1e-9)


def test_a_price_earns_more_than_spending_until_nothing_is_left() -> None:
    """A call pays where x is large; with calls for a fifth only, they go to the largest x."""
    earned = {}
    for name, decisions in (("price", 300), ("none", 1)):  # none: all may be spent at once
        total = []
        for seed in range(2):
            rng = np.random.default_rng(seed)
            policy = Budget(costs={"call": 1.0}, total=60.0, decisions=decisions)
            bandit, sum_ = Bandit(arms=["call", "none"], policy=policy, rng=seed), 0.0
            for x in rng.normal(size=(300, 1)):
                decision = bandit.decide(x)
                mean = 1.0 + x[0] if decision.arm == "call" else 0.0
                bandit.learn_one(decision, mean + 0.3 * rng.normal())
                sum_ += mean
            total.append(sum_)
            assert 50.0 <= bandit.ledger_.spent <= 60.0
        earned[name] = np.mean(total)
    best = 300 * 0.2 * (1.0 + 1.4)  # the mean of the largest fifth of x is 1.4
    assert earned["none"] < 0.6 * best
    assert earned["price"] > 0.8 * best


def test_scaling_rewards_scales_the_price() -> None:
    rng = np.random.default_rng(3)
    X, arms, rewards = rng.normal(size=(60, 2)), ["a", "b"] * 30, rng.normal(size=60)
    policy = Budget(costs={"a": 1.0}, total=5.0, decisions=40)
    one = Bandit(arms=["a", "b"], policy=policy, rng=0).learn(X, arms, rewards)
    other = Bandit(arms=["a", "b"], policy=policy, rng=0).learn(X, arms, 1000.0 * rewards)
    for bandit in (one, other):
        bandit.decide(X[:20])
    np.testing.assert_allclose(one.propensities(X), other.propensities(X), atol=1e-6)


def test_nothing_affordable_changes_nothing() -> None:
    bandit = known(Budget(costs={"call": 2.0, "letter": 2.0}, total=3.0, decisions=5))
    before = dumps(bandit)
    with pytest.raises(ValueError, match="allow an arm that costs nothing"):
        bandit.decide(np.zeros((4, 2)), allowed=["call", "letter"])
    assert dumps(bandit) == before


def test_loss_beside_the_baseline_is_bounded_at_all_times() -> None:
    """The baseline is best: what is lost stays below the allowance in 19 of 20 runs or more."""
    broken, explored = 0, 0.0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        policy = Baseline(arm="old", allowance=0.05, policy=ThompsonSampling())
        bandit, lost = Bandit(arms=["old", "new", "third"], policy=policy, rng=seed), 0.0
        means, ever = {"old": 1.0, "new": 0.5, "third": 0.8}, False
        for row in range(60):
            decision = bandit.decide([1.0])
            chances = dict(zip(bandit.arms_, decision.propensities, strict=True))
            lost += sum(p * (1.0 - means[arm]) for arm, p in chances.items())
            ever = ever or lost > 0.05 * (row + 1)
            bandit.learn_one(decision, means[decision.arm] + 0.5 * rng.normal())
        broken += ever
        explored += lost
    assert broken <= 20 * 0.05 + 3.0 * np.sqrt(20 * 0.05 * 0.95)
    assert explored > 0.0


def test_a_baseline_that_is_worse_is_left() -> None:
    rng = np.random.default_rng(0)
    bandit = Bandit(arms=["old", "new"], policy=Baseline(arm="old", allowance=0.05), rng=0)
    for _ in range(200):
        decision = bandit.decide([1.0])
        bandit.learn_one(decision, (decision.arm == "new") + 0.3 * rng.normal())
    assert bandit.propensities([[1.0]])[0, 1] > 0.9


def test_arms_of_which_nothing_is_known_need_a_largest_loss() -> None:
    for largest, tried in ((np.inf, False), (1.0, True)):
        policy = Baseline(arm="a", allowance=0.1, largest_loss=largest)
        bandit = Bandit(BayesianLogisticRegression(), arms=["a", "b"], policy=policy, rng=0)
        bandit.learn(np.ones((10, 1)), "a", [0, 1] * 5)
        assert bool(bandit.propensities([[1.0]])[0, 1] > 0.0) is tried


def test_an_apprentice_learns_and_does_not_act() -> None:
    bandit = known(Baseline(arm="none", apprentice=True, policy=Greedy()))
    X = np.zeros((50, 2))
    assert set(bandit.decide(X).arms) == {"none"}
    would = bandit.propensities(X, policy=Greedy())
    assert would[0, 0] > 0.9
    assert bandit.ledger_.agreed == pytest.approx(would[:, 2].sum())


def test_files_keep_what_was_spent() -> None:
    for policy in watches():
        bandit = known(policy)
        bandit.decide(np.zeros((20, 2)))
        again = loads(dumps(bandit))
        assert again.ledger_.spent == bandit.ledger_.spent
        assert again.ledger_.decisions == 20
        x = np.ones(2)
        np.testing.assert_array_equal(again.decide(x).propensities, bandit.decide(x).propensities)


def test_messages() -> None:
    for policy, message in (
        (
            Budget(costs={"fax": 1.0}, total=1.0, decisions=1),
            "'fax', which is not an arm: give costs for some of",
        ),
        (Baseline(arm="fax"), "'fax', which is not an arm: give one of"),
        (Baseline(arm={"call": 0.5}), "sum to 1"),
    ):
        with pytest.raises(ValueError, match=message):
            known(policy).decide([0.0, 0.0])
    with pytest.raises(ValueError, match="leave k out"):
        known(Baseline(arm="call")).decide([0.0, 0.0], k=2)
    with pytest.raises(TypeError, match="can't be nested"):
        known(Baseline(arm="call", policy=Baseline(arm="call")))
    for made, message in (
        (lambda: Budget(costs={"a": -1.0}, total=1.0, decisions=1), "costs must be 0 or more"),
        (lambda: Budget(costs={}, total=1.0, decisions=0), "number of decisions"),
        (lambda: Baseline(arm="a", allowance=-1.0), "both must be 0"),
        (lambda: Baseline(arm="a", level=1.0), "level is 1.0"),
    ):
        with pytest.raises(ValueError, match=message):
            made()
