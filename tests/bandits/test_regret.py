"""How regret grows, and what drift does to it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from posterity import BayesianLinearRegression
from posterity.bandits import Bandit, Greedy, ThompsonSampling
from posterity.bandits.beliefs import StudentBeliefs
from posterity.forgetting import Exponential

Array = NDArray[np.float64]


def lost(bandit: Bandit, X: Array, slopes: Array, rng: np.random.Generator) -> Array:
    """Regret of each round (n,), of expected rewards with slopes (n, K, m)."""
    regret = np.empty(len(X))
    for row, x in enumerate(X):
        expected = slopes[row] @ x
        arm = bandit.decide(x).arm
        bandit.learn_one(x, arm, float(expected[arm] + rng.normal()))
        regret[row] = expected.max() - expected[arm]
    return regret


@pytest.mark.slow
def test_regret_grows_like_the_root_of_rounds_at_most() -> None:
    """Thompson sampling in a linear world: the slope in logarithms, of 20 worlds."""
    n, sums = 4000, np.zeros(4000)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, slopes = rng.normal(size=(n, 5)), 0.3 * rng.normal(size=(5, 5))
        bandit = Bandit(arms=list(range(5)), policy=ThompsonSampling(floor=0.0), rng=seed)
        sums += np.cumsum(lost(bandit, X, np.broadcast_to(slopes, (n, 5, 5)), rng))
    slope = np.log(sums[-1] / sums[499]) / np.log(n / 500)
    assert 0.2 < slope < 0.65


@pytest.mark.slow
def test_forgetting_loses_less_where_rewards_drift() -> None:
    n, means = 300, []
    for how in (None, Exponential(half_life=30)):
        sums = 0.0
        for seed in range(2):
            rng = np.random.default_rng(seed)
            X = rng.normal(size=(n, 2))
            turn = np.where(np.arange(n) < n // 2, 1.0, -1.0)[:, None, None]
            slopes = turn * np.array([[1.0, 0.0], [-1.0, 0.0]])
            model: Any = BayesianLinearRegression(prior_precision=1.0, forgetting=how)
            bandit = Bandit(model, arms=[0, 1], policy=ThompsonSampling(), rng=seed)
            sums += float(np.sum(lost(bandit, X, slopes, rng)))
        means.append(sums)
    assert means[1] < 0.7 * means[0]


def test_narrow_draws_are_greedy() -> None:
    rng = np.random.default_rng(0)
    beliefs = StudentBeliefs(
        rng.normal(size=(20, 4)), np.ones((20, 4)), np.full((20, 4), 9.0), np.ones((20, 4), bool)
    )
    narrow = ThompsonSampling(width=1e-9).propensities(beliefs, rng)
    np.testing.assert_allclose(narrow, Greedy().propensities(beliefs, rng), atol=1e-12)
