"""What a log of a bandit that learns says of another policy is right on average."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from posterity.bandits import (
    Bandit,
    EpsilonGreedy,
    Greedy,
    InformationDirected,
    InverseGap,
    Policy,
    RandomizedUpperConfidenceBound,
    Softmax,
    ThompsonSampling,
    TopTwo,
    UpperConfidenceBound,
)
from posterity.off_policy import Log, evaluate

Array = NDArray[np.float64]
POLICIES: list[Policy] = [
    UpperConfidenceBound(floor=0.1),
    RandomizedUpperConfidenceBound(floor=0.1),
    ThompsonSampling(floor=0.1),
    InverseGap(floor=0.1),
    InformationDirected(floor=0.1),
    TopTwo(floor=0.1),
    Softmax(floor=0.1),
    EpsilonGreedy(floor=0.1),
    Greedy(floor=0.1),
]
SLOPES = np.array([1.0, 0.0, -1.0])


def logged_while_learning(policy: Policy, seed: int, n: int = 48, step: int = 16) -> Array:
    """Errors of IPS and DR for "uniform", from the log of a bandit that learns every 16 rounds."""
    rng = np.random.default_rng(seed)
    bandit = Bandit(arms=[0, 1, 2], policy=policy, rng=seed)
    X, parts = rng.normal(size=(n, 1)), []
    for start in range(0, n, step):
        some = X[start : start + step]
        made = bandit.decide(some)
        arms = made.arms.astype(int)
        rewards = SLOPES[arms] * some[:, 0] + 0.5 + 0.5 * rng.normal(size=step)
        parts.append((arms, rewards, made.propensities))
        bandit = bandit.learn(some, made.arms, rewards)
    arms, rewards, chances = (np.concatenate(part) for part in zip(*parts, strict=True))
    log = Log.of(X, arms, rewards, propensities=chances, names=[0, 1, 2])
    result = evaluate(
        log,
        ["uniform"],
        ["ips", "dr"],
        reward_model=lambda some: 0.3 * some[:, :1] * SLOPES + 0.2,  # not the right one
        anytime=False,
    )
    truth = 0.5 + SLOPES.mean() * X[:, 0].mean()
    return np.array([result["uniform", method].value - truth for method in ("ips", "dr")])


def assert_unbiased(policy: Policy, logs: int) -> None:
    errors = np.array([logged_while_learning(policy, seed) for seed in range(logs)])
    standard_error = errors.std(axis=0) / np.sqrt(logs)
    assert np.all(np.abs(errors.mean(axis=0)) < 4.0 * standard_error)


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
def test_unbiased_while_the_logging_policy_learns(policy: Policy) -> None:
    assert_unbiased(policy, 24)


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
def test_unbiased_over_ten_thousand_logs(policy: Policy) -> None:
    assert_unbiased(policy, 10_000)
