"""Rewards of which each arm learns a parameter of its own."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from posterity import BayesianGeneralizedLinear
from posterity.bandits import Bandit
from posterity.likelihoods import StudentT


@pytest.mark.parametrize("family", ["gamma", "lognormal", "weibull", "beta", "ordinal:3"])
def test_expected_rewards_are_those_of_a_model_for_each_arm(family: str) -> None:
    rng = np.random.default_rng(0)
    contexts, arms = rng.normal(size=(24, 1)), np.arange(24) % 2
    positive, share = rng.gamma(2.0, size=24), rng.beta(2.0, 3.0, size=24)
    rewards = {"beta": share, "ordinal:3": np.floor(3.0 * share)}.get(family, positive)
    bandit = Bandit(BayesianGeneralizedLinear(family), arms=["a", "b"], rng=0)
    assert bandit.decide(contexts[0]).arm in bandit.arms_
    names = np.array(["a", "b"])[arms]
    for some in (slice(0, 12), slice(12, 24)):
        bandit.learn(contexts[some], names[some], rewards[some])
    for arm in (0, 1):
        model = BayesianGeneralizedLinear(family)
        for some in (slice(0, 12), slice(12, 24)):
            own = arms[some] == arm
            model.partial_fit(contexts[some][own], rewards[some][own])
        expected = bandit.decide(contexts[:3]).expected[:, arm]
        assert_allclose(expected, model.predict(contexts[:3]), rtol=0.05)


def test_contexts_together_have_the_rewards_of_a_model_with_student_t_noise() -> None:
    rng = np.random.default_rng(0)
    contexts, names = rng.normal(size=(24, 1)), np.tile(["a", "b"], 12)
    rewards = contexts[:, 0] + rng.standard_t(4.0, size=24)
    bandit = Bandit(BayesianGeneralizedLinear(StudentT(4.0, 1.0)), arms=["a", "b"], rng=0)
    decided = bandit.learn(contexts, names, rewards).decide(contexts)
    for arm, name in enumerate("ab"):
        own = names == name
        model = BayesianGeneralizedLinear(StudentT(4.0, 1.0)).partial_fit(
            contexts[own], rewards[own]
        )
        assert_allclose(decided.expected[:, arm], model.predict(contexts), rtol=1e-6)
