"""The bandit as river's policy: river's own loop, arms that come, contexts as they may be."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("river", reason="needs river: pip install 'posterity[river]'")

from posterity import bandits
from posterity.adapters.river import Bandit


def test_pulls_are_those_of_the_bandit_itself() -> None:
    rng = np.random.default_rng(0)
    policy, core = Bandit(seed=3), bandits.Bandit(arms=["a", "b"], rng=3)
    for _ in range(60):
        x = rng.normal(size=2)
        context = {"one": x[0], "two": x[1]}
        arm = policy.pull(["a", "b"], context)
        decision = core.decide(x)
        assert arm == decision.arm
        assert policy.decision is not None
        np.testing.assert_allclose(policy.decision.propensities, decision.propensities)
        reward = float(x[0] if arm == "a" else x[1])
        policy.update(arm, context, reward)
        core.learn_one(x, arm, reward)
    assert set(policy.ranking) == {"a", "b"}


def test_arms_come_and_are_left_out() -> None:
    policy = Bandit(seed=0)
    context = {"one": 1.0}
    for arm, reward in [("a", 1.0), ("b", 0.0), ("a", 0.9), ("b", 0.1)]:
        policy.update(arm, context, reward)
    assert {policy.pull(["b"], context) for _ in range(5)} == {"b"}
    assert policy.decision is not None
    assert policy.decision.propensity == 1.0
    assert "c" in {policy.pull(["a", "b", "c"], context) for _ in range(300)}
    assert policy.bandit is not None
    assert policy.bandit.arms_ == ["a", "b", "c"]


def test_features_that_are_absent_are_zero_and_new_ones_are_refused() -> None:
    policy = Bandit(seed=0)
    policy.update("a", {"one": 1.0, "two": 2.0}, 1.0)
    policy.update("a", {"two": 2.0}, 1.0)
    with pytest.raises(ValueError, match="'three'"):
        policy.pull(["a"], {"three": 1.0})
    with pytest.raises(ValueError, match="context"):
        policy.pull(["a"], None)


def test_burn_in_and_clones_are_rivers() -> None:
    policy = Bandit(policy=bandits.UpperConfidenceBound(), burn_in=2, seed=1)
    context = {"one": 1.0}
    pulled = []
    for _ in range(4):
        pulled.append(policy.pull(["a", "b"], context))
        policy.update(pulled[-1], context, 1.0)
    assert pulled == ["a", "a", "b", "b"]
    assert policy.decision is None
    fresh = policy.clone()
    assert fresh.bandit is None
    assert fresh.burn_in == 2
    assert fresh.policy == bandits.UpperConfidenceBound()
