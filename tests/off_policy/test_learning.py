"""Policies learned from logs, and the guard against worse ones."""

from __future__ import annotations

import numpy as np
import pytest

from posterity.bandits import ThompsonSampling
from posterity.off_policy import Log, NotBetterError, evaluate, learn
from posterity.off_policy.learning import _WAYS


def made(n: int = 3000, gain: float = 1.0, seed: int = 0) -> Log:
    """The best of two arms changes with the context; the log prefers one of them by another."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    first = np.where(X[:, 1] > 0.0, 0.7, 0.3)
    arms = (rng.random(n) > first).astype(int)
    rewards = gain * np.where(arms == 0, X[:, 0], -X[:, 0]) + rng.normal(size=n)
    return Log.of(X, arms, rewards, np.where(arms == 0, first, 1.0 - first))


@pytest.mark.parametrize("weighting", ["none", "inverse_propensity", "doubly_robust"])
def test_a_better_policy_is_learned(weighting: str) -> None:
    bandit = learn(made(), weighting=weighting, rng=0)  # type: ignore[arg-type]
    again = made(seed=1)
    predictive = evaluate(again, {"new": bandit, "old": "logged"}, ["dr"])
    assert predictive["new", "dr"].low > predictive["old", "dr"].high
    assert predictive["new", "dr"].value == pytest.approx(np.sqrt(2.0 / np.pi), abs=0.1)


def test_nothing_is_given_that_is_not_better() -> None:
    with pytest.raises(NotBetterError, match="does not prove it better") as caught:
        learn(made(gain=0.0))
    assert caught.value.low <= 0.0
    assert caught.value.bandit.propensities([[0.0, 0.0]]).shape == (1, 2)
    bandit = learn(made(gain=0.0), guard=None, policy=ThompsonSampling(), rng=1)
    assert bandit.decide([[0.0, 0.0]]).propensity[0] >= 0.01


def test_the_guard_errs_as_rarely_as_it_says() -> None:
    """Arms that are alike: at most one log in twenty gives a policy (but for three errors)."""
    given = 0
    for seed in range(40):
        try:
            learn(made(n=200, gain=0.0, seed=seed))
            given += 1
        except NotBetterError:
            pass
    assert given <= 40 * 0.05 + 3.0 * np.sqrt(40 * 0.05 * 0.95)


def test_weights_are_no_more_rows_than_they_are_worth() -> None:
    """What is believed to be known of an arm is Kish's number of its rows, not the sum of 1 / p."""
    log = made(n=1000)
    whole = log.collected()
    counts = {}
    for weighting, way in _WAYS.items():
        counts[weighting] = np.zeros(2)
        for _, arms, rewards, weights in way(log, None, False):
            weights = np.ones(len(rewards)) if weights is None else weights
            counts[weighting] += np.bincount(arms.astype(int), weights, minlength=2)
    for arm in (0, 1):
        weights = 1.0 / whole.propensity[whole.arms == arm]  # type: ignore[index]
        kish = weights.sum() ** 2 / np.sum(np.square(weights))
        assert counts["none"][arm] == len(weights)
        assert counts["inverse_propensity"][arm] == pytest.approx(kish)
        assert counts["doubly_robust"][arm] == pytest.approx(kish)


def test_messages() -> None:
    log = made(n=50)
    with pytest.raises(ValueError, match="weighting is 'ips'"):
        learn(log, weighting="ips")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="guard is 95"):
        learn(log, guard=95.0)
    whole = log.collected()
    without = Log.of(whole.X, whole.arms, whole.rewards)
    with pytest.raises(ValueError, match="no propensities"):
        learn(without)
    assert learn(without, guard=None).arms_ == [0, 1]
