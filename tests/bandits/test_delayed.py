"""Rewards that come late: learned once, corrected and taken back as if known at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from posterity import BayesianLinearRegression
from posterity.bandits import Bandit, DelayedRewards
from posterity.files import dumps, loads

ARMS = ["a", "b"]


def bandit_of() -> Bandit:
    model = BayesianLinearRegression(prior_precision=1.0, noise_precision=1.0)
    return Bandit(model, arms=ARMS, rng=0)


def predictive(bandit: Bandit) -> list[np.ndarray]:
    beliefs, _ = bandit._beliefs([[0.5, 1.0], [-1.0, 0.0]], None)
    return [beliefs.mean, beliefs.std]


@given(seed=st.integers(0, 10**6))
@settings(max_examples=25)
def test_late_and_corrected_rewards_are_as_if_known_at_once(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 12
    X, truth = rng.normal(size=(n, 2)), rng.normal(size=n)
    delayed = DelayedRewards(bandit_of(), horizon=3.0, default=-1.0)
    decided = [delayed.decide(x, at=float(time)) for time, x in enumerate(X)]
    late = delayed.expire(now=7.0)
    assert late == list(range(5))
    for name in rng.permutation(n):
        delayed.reward([name], [0.0])
        delayed.reward([name], [truth[name]])
    gone = rng.integers(n)
    delayed.take_back([decided[gone].id])
    rest = np.arange(n) != gone
    arms = np.array([decision.arm for decision in decided])
    known = bandit_of().learn(X[rest], arms[rest], truth[rest])
    for one, other in zip(predictive(delayed.bandit), predictive(known), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)


def test_nothing_is_learned_before_its_time() -> None:
    delayed = DelayedRewards(bandit_of(), horizon=10.0)
    decisions = delayed.decide(np.ones((5, 2)), at=0.0)
    before = dumps(delayed.bandit)
    assert delayed.expire(now=9.0) == []
    assert dumps(delayed.bandit) == before
    assert delayed.expire(now=10.0) == decisions.ids.tolist()
    assert delayed.expire(now=20.0) == []


def test_defaults_are_learned_by_every_model() -> None:
    delayed = DelayedRewards(Bandit(arms=ARMS, rng=0), horizon=1.0, default=0.5)
    rng = np.random.default_rng(0)
    delayed.decide(rng.normal(size=(30, 2)), at=0.0)
    delayed.expire(now=1.0)
    truth = rng.normal(size=30)
    delayed.reward(range(30), truth)
    held = list(delayed.held_.values())
    at_once = Bandit(arms=ARMS, rng=0).learn(
        [h.context for h in held], [h.arm for h in held], truth
    )
    models = [bandit._arms.model for bandit in (delayed.bandit, at_once)]
    coefficients = [model.coef_[model.groups_.argsort()] for model in models]
    np.testing.assert_allclose(*coefficients, rtol=1e-6, atol=1e-8)


def test_files_hold_what_is_held() -> None:
    delayed = DelayedRewards(bandit_of(), horizon=1.0)
    delayed.decide(np.eye(2), at=0.0, ids=["x", "y"])
    delayed.reward(["x"], [1.0])
    again = loads(dumps(delayed))
    again.reward(["x", "y"], [0.0, 2.0])
    delayed.reward(["x", "y"], [0.0, 2.0])
    for one, other in zip(predictive(again.bandit), predictive(delayed.bandit), strict=True):
        np.testing.assert_array_equal(one, other)
    assert again.release(before=1.0) == ["x", "y"]
    assert again.held_ == {}


def test_what_is_refused_changes_nothing() -> None:
    delayed = DelayedRewards(bandit_of(), horizon=1.0)
    delayed.decide([1.0, 2.0], at=0.0, ids="x")
    delayed.reward(["x"], [1.0])
    before = dumps(delayed)
    for message, change in (
        ("'x' is already waiting", lambda: delayed.decide([1.0, 2.0], at=1.0, ids="x")),
        ("not all different", lambda: delayed.decide(np.eye(2), at=1.0, ids=["y", "y"])),
        ("no decision 'z' is waiting", lambda: delayed.reward(["z"], [1.0])),
        ("not all different", lambda: delayed.reward(["x", "x"], [1.0, 2.0])),
        ("a number for each", lambda: delayed.reward(["x"], [np.nan])),
        ("a number for each", lambda: delayed.reward(["x"], [1.0, 2.0])),
        ("must be finite", lambda: delayed.reward(["x"], [np.inf])),
        ("no decision 'z'", lambda: delayed.take_back(["z"])),
    ):
        with pytest.raises(ValueError, match=message):
            change()
        assert dumps(delayed) == before
    decisions = delayed.bandit.decide(np.eye(2), k=2)
    with pytest.raises(ValueError, match="rankings"):
        delayed.hold(decisions, at=0.0)
    with pytest.raises(ValueError, match="1 ids"):
        delayed.hold(delayed.bandit.decide(np.eye(2)), at=0.0, ids=["one"])
    with pytest.raises(ValueError, match="finite"):
        delayed.hold(delayed.bandit.decide(np.eye(2)), at=np.nan)


def test_times_are_numbers() -> None:
    delayed = DelayedRewards(bandit_of(), horizon=1.0)
    with pytest.raises(ValueError, match="at is 'noon': it must be a finite number"):
        delayed.decide(np.ones(2), at="noon")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="now is nan: it must be a number"):
        delayed.expire(now=np.nan)
    with pytest.raises(ValueError, match="horizon is -1"):
        DelayedRewards(bandit_of(), horizon=-1.0).decide(np.ones(2), at=0.0)
    assert delayed.decide(np.ones(2), at=0.0).id == 0
