"""Policies: probabilities that sum to 1, and are in closed form where there is one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from posterity.bandits import (
    EpsilonGreedy,
    Greedy,
    InformationDirected,
    InverseGap,
    Policy,
    Softmax,
    ThompsonSampling,
    TopTwo,
    UpperConfidenceBound,
    probability_best,
)
from posterity.bandits.beliefs import Beliefs, JointBeliefs
from posterity.bandits.decisions import draw_rankings, ranking_probability
from posterity.bandits.probability_best import shares_of_best
from posterity.distributions import Mixture, Normal, StudentT

POLICIES = [
    ThompsonSampling(),
    ThompsonSampling(width=0.5),
    UpperConfidenceBound(),
    Greedy(),
    EpsilonGreedy(),
    Softmax(),
    InverseGap(),
    TopTwo(),
    InformationDirected(),
]
# Those whose probabilities don't hang on draws.
PLAIN = [policy for policy in POLICIES if not hasattr(policy, "n_draws")]


def beliefs_of(seed: int, n: int, k: int) -> Beliefs:
    rng = np.random.default_rng(seed)
    arms = [Normal(rng.normal(size=n), 10.0 ** rng.uniform(-3.0, 1.0, size=n)) for _ in range(k)]
    allowed = rng.random((n, k)) < 0.7
    allowed[np.arange(n), rng.integers(k, size=n)] = True
    return Beliefs(arms, allowed)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 4), k=st.integers(1, 6))
def test_probabilities(policy: Policy, seed: int, n: int, k: int) -> None:
    beliefs = beliefs_of(seed, n, k)
    predictive = policy.propensities(beliefs, np.random.default_rng(0))
    np.testing.assert_allclose(predictive.sum(axis=1), 1.0, rtol=1e-12)
    least = policy.floor / beliefs.allowed.sum(axis=1, keepdims=True)
    assert (predictive >= beliefs.allowed * least * (1.0 - 1e-12)).all()
    assert (predictive[~beliefs.allowed] == 0.0).all()
    draws = beliefs.sample(64, np.random.default_rng(1))
    joint = policy.propensities(
        JointBeliefs(draws, draws.mean(axis=0), beliefs.allowed), np.random.default_rng(0)
    )
    np.testing.assert_allclose(joint.sum(axis=1), 1.0, rtol=1e-12)
    assert (joint[~beliefs.allowed] == 0.0).all()


@pytest.mark.parametrize("policy", PLAIN, ids=repr)
@given(seed=st.integers(0, 10**6))
def test_what_arms_are_called_does_not_matter(policy: Policy, seed: int) -> None:
    beliefs, order = beliefs_of(seed, 3, 5), np.random.default_rng(seed).permutation(5)
    turned = Beliefs([beliefs.arms[arm] for arm in order], beliefs.allowed[:, order])
    rng = np.random.default_rng(0)
    np.testing.assert_allclose(
        policy.propensities(turned, rng), policy.propensities(beliefs, rng)[:, order], atol=1e-12
    )


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_all_of_the_floor_is_uniform(policy: Policy) -> None:
    whole = type(policy)(floor=1.0)
    beliefs = beliefs_of(0, 4, 3)
    predictive = whole.propensities(beliefs, np.random.default_rng(0))
    np.testing.assert_allclose(
        predictive, beliefs.allowed / beliefs.allowed.sum(axis=1, keepdims=True)
    )
    with pytest.raises(ValueError, match="floor"):
        type(policy)(floor=1.5)


def test_two_arms_in_closed_form() -> None:
    means, widths = (
        np.array([[0.3, -0.2], [1.0, 1.0], [0.0, 5.0]]),
        np.array([[0.5, 2.0], [1e-4, 3.0], [1.0, 1.0]]),
    )
    arms = [Normal(means[:, arm], widths[:, arm]) for arm in range(2)]
    exact = stats.norm.cdf((means[:, 0] - means[:, 1]) / np.hypot(*widths.T))
    predictive = probability_best(arms, np.ones((3, 2), dtype=bool))
    np.testing.assert_allclose(predictive[:, 0], exact, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("k", [2, 10, 40])
def test_chances_sum_to_one_before_they_are_made_to(
    k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    widths = 10.0 ** rng.uniform(-4.0, 0.0, size=(k, 5))
    arms = [Normal(rng.normal(size=5), width) for width in widths]
    arms[1] = StudentT(8.0, rng.normal(size=5), np.full(5, 0.3))
    predictive = probability_best(arms, np.ones((5, k), dtype=bool))
    draws = np.stack([arm.rvs((100_000, 5), random_state=rng) for arm in arms], axis=2)
    shares = shares_of_best(draws, np.ones((5, k), dtype=bool))
    np.testing.assert_allclose(predictive, shares, atol=0.008)


def test_mixtures_have_chances() -> None:
    one = Mixture([Normal([0.0], [1.0]), Normal([3.0], [0.1])], [0.5, 0.5])
    predictive = probability_best([one, Normal([1.0], [0.01])], np.ones((1, 2), dtype=bool))
    expected = 0.5 * stats.norm.sf(1.0, 0.0, np.hypot(1.0, 0.01)) + 0.5
    np.testing.assert_allclose(predictive[0, 0], expected, rtol=1e-5)


def test_an_arm_that_cannot_win_has_the_floor_alone() -> None:
    beliefs = Beliefs([Normal([0.0], [0.1]), Normal([9.0], [0.1])], np.ones((1, 2), dtype=bool))
    for policy in POLICIES:
        if isinstance(policy, InverseGap | TopTwo | InformationDirected | Softmax):
            continue
        predictive = policy.propensities(beliefs, np.random.default_rng(0))
        np.testing.assert_allclose(predictive[0, 0], policy.floor / 2.0)


def test_thompson_draws_match_the_exact_chances() -> None:
    beliefs = beliefs_of(3, 2, 4)
    rng = np.random.default_rng(0)
    predictive = ThompsonSampling(floor=0.0).propensities(beliefs, rng)
    draws = beliefs.sample(40_000, rng)
    np.testing.assert_allclose(predictive, shares_of_best(draws, beliefs.allowed), atol=0.01)


def test_top_two_in_closed_form() -> None:
    beliefs = Beliefs([Normal([0.0], [1.0]), Normal([0.0], [1.0])], np.ones((1, 2), dtype=bool))
    predictive = TopTwo(floor=0.0, n_draws=10_000).propensities(beliefs, np.random.default_rng(0))
    np.testing.assert_allclose(predictive, 0.5, atol=0.02)


def test_information_directed_prefers_what_tells() -> None:
    # The second arm pays as much and is unknown; the third is known to pay less.
    beliefs = Beliefs(
        [Normal([1.0], [1e-9]), Normal([1.0], [1.0]), Normal([0.5], [1e-9])],
        np.ones((1, 3), dtype=bool),
    )
    predictive = InformationDirected(floor=0.0).propensities(beliefs, np.random.default_rng(0))
    assert predictive[0, 1] > 0.9


@given(seed=st.integers(0, 10**6))
def test_what_is_picked_follows_the_probabilities(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.ones(4), size=1)
    repeated = np.repeat(shares, 4_000, axis=0)
    arms = draw_rankings(repeated, 1, rng)
    counts = np.bincount(arms[:, 0], minlength=4)
    assert stats.chisquare(counts, 4_000 * shares[0]).pvalue > 1e-6
    np.testing.assert_allclose(ranking_probability(repeated, arms), shares[0, arms[:, 0]])


def test_rankings() -> None:
    rng = np.random.default_rng(0)
    shares = np.array([0.5, 0.3, 0.2, 0.0])
    repeated = np.tile(shares, (20_000, 1))
    arms = draw_rankings(repeated, 2, rng)
    chance = ranking_probability(repeated, arms)
    assert (arms[:, 0] != arms[:, 1]).all()
    assert not (arms == 3).any()
    here = (arms == [1, 0]).all(axis=1)
    np.testing.assert_allclose(here.mean(), 0.3 * 0.5 / 0.7, atol=0.01)
    np.testing.assert_allclose(chance[here], 0.3 * 0.5 / 0.7)


def test_values_that_are_certain_have_probabilities() -> None:
    arms = [Normal([1.0], [0.0]), Normal([1.0], [0.0]), Normal([0.5], [1.0]), Normal([0.0], [0.0])]
    predictive = probability_best(arms, np.ones((1, 4), dtype=bool))[0]
    above = stats.norm.sf(1.0, 0.5, 1.0)
    np.testing.assert_allclose(
        predictive, [0.5 - above / 2, 0.5 - above / 2, above, 0.0], atol=1e-10
    )
    alone = probability_best(arms[:2], np.ones((1, 2), dtype=bool))
    np.testing.assert_allclose(alone, 0.5)
