"""Arms whose rewards rise with a linear predictor are read by two numbers of it."""

from __future__ import annotations

import numpy as np
import pytest

from posterity import BayesianLogisticRegression, BayesianPoissonRegression
from posterity.bandits import Bandit
from posterity.bandits.beliefs import Beliefs, StudentBeliefs
from posterity.bandits.rising import RisingBeliefs
from posterity.distributions import Normal
from posterity.distributions.transformed import Transformed
from posterity.kernel import believe_arms
from posterity.likelihoods import Bernoulli

LIKELIHOOD = Bernoulli()


@pytest.fixture
def pair():
    """The same beliefs of two contexts and three arms, in both ways."""
    rng = np.random.default_rng(0)
    mean, sd = rng.normal(size=(2, 3)), rng.uniform(0.1, 1.0, size=(2, 3))
    allowed = np.array([[True, True, True], [True, False, True]])
    normals = StudentBeliefs(mean, sd, np.full((2, 3), np.inf), allowed)
    functions = LIKELIHOOD.mean, LIKELIHOOD.link_function
    arms = [Transformed(Normal(*each), *functions) for each in zip(mean.T, sd.T, strict=True)]
    return RisingBeliefs(normals, LIKELIHOOD), Beliefs(arms, allowed)


@pytest.mark.parametrize("name", ["mean", "std", "unknown", "first"])
def test_what_is_read_is_that_of_the_arms_one_by_one(pair, name):
    together, apart = (getattr(one, name) for one in pair)
    np.testing.assert_allclose(together, apart, rtol=1e-12)


def test_quantiles_and_sums_are_those_of_the_arms(pair):
    together, apart = pair
    np.testing.assert_allclose(together.quantile(0.9), apart.quantile(0.9), rtol=1e-12)
    weights = np.full((2, 3), 1.0 / 3.0)
    np.testing.assert_allclose(together.bound(weights, 0.9), apart.bound(weights, 0.9), rtol=1e-12)
    margins = [one.shift(np.array([0.1, 0.0, 0.2]), one.allowed).mean for one in pair]
    np.testing.assert_allclose(*margins, rtol=1e-12)


def test_the_best_arm_is_that_of_the_largest_predictor(pair):
    together, apart = pair
    np.testing.assert_allclose(together.probability_best(), apart.probability_best(), atol=1e-5)
    draws = together.sample(20_000, np.random.default_rng(1))
    np.testing.assert_allclose(draws.mean(axis=0), together.mean, atol=0.01)
    assert np.all((draws > 0.0) & (draws < 1.0))


@pytest.mark.parametrize("model", [BayesianLogisticRegression(), BayesianPoissonRegression()])
def test_a_stream_believes_about_what_all_rows_say(model):
    rng = np.random.default_rng(2)
    X, bandit = rng.normal(size=(300, 2)), Bandit(model, ["a", "b"])
    for i, x in enumerate(X):
        bandit.learn_one(x, "ab"[i % 2], float(rng.random() < 0.2 * (1 + i % 2)))
    beliefs = bandit.beliefs(X[:5])
    for k, arm in enumerate(bandit._arms.models):
        exact = arm.predict_mean_distribution(X[:5])
        for level in (0.25, 0.5, 0.75):  # further out the mean of exp(eta) hangs on the tails
            np.testing.assert_allclose(beliefs.quantile(level)[:, k], exact.ppf(level), rtol=0.35)


def test_one_context_is_believed_in_as_among_others():
    rng = np.random.default_rng(3)
    X, bandit = rng.normal(size=(80, 2)), Bandit(BayesianLogisticRegression(), [0, 1, 2])
    bandit.learn(X[:1], [0], [1.0])
    for x in X:
        bandit.learn_one(x, int(rng.integers(2)), float(rng.random() < 0.3))
    several, one = bandit.propensities(X[:4]), bandit.propensities(X[2:3])
    np.testing.assert_allclose(several[2], one[0], rtol=1e-12)
    assert np.all(several[:, 2] > 0.9)  # nothing is known of the third, which comes first


def test_a_label_that_came_first_keeps_its_side():
    X = np.random.default_rng(4).normal(size=(60, 1))
    model = BayesianLogisticRegression()
    for x in X:
        model.learn_one(x, float(x[0] > -0.7))
    assert model._flipped
    assert believe_arms([model._open_beliefs()], [[2.0]])[0, 0, 0] > 0.0


@pytest.mark.parametrize("model", [BayesianLogisticRegression(), BayesianPoissonRegression()])
def test_arms_of_many_rows_are_read_by_moments_as_well_as_by_all_that_is_known(model):
    rng = np.random.default_rng(5)
    X, arms = rng.normal(size=(400, 2)), np.tile([0, 1], 200)
    y = (rng.random(400) < 0.3 + 0.3 * arms).astype(float)
    bandit = Bandit(model, [0, 1]).learn(X, arms, y)
    beliefs = bandit.beliefs(X[:50])
    assert isinstance(beliefs, RisingBeliefs)
    for k, arm in enumerate(bandit._arms.models):
        exact = arm.predict_mean_distribution(X[:50])
        sd = exact.std()
        np.testing.assert_array_less(np.abs(beliefs.mean[:, k] - exact.mean()), 0.05 * sd)
        off = beliefs.quantile(0.841)[:, k] - exact.ppf(0.841)
        np.testing.assert_array_less(np.abs(off), 0.08 * sd)  # at the worst of the contexts


def test_an_arm_of_one_row_is_read_beside_the_others():
    rng = np.random.default_rng(6)
    bandit = Bandit(BayesianLogisticRegression(), [0, 1])
    for x in rng.normal(size=(40, 2)):
        bandit.learn_one(x, 0, float(rng.random() < 0.5))
    bandit.learn_one(rng.normal(size=2), 1, 1.0)
    X = rng.normal(size=(5, 2))
    beliefs, one = bandit.beliefs(X), bandit._arms.models[1].predict_mean_distribution(X)
    assert isinstance(beliefs, RisingBeliefs)
    np.testing.assert_array_less(np.abs(beliefs.mean[:, 1] - one.mean()), 0.3 * one.std())


@pytest.mark.parametrize("policy", [None, "ucb", "greedy", "thompson"])
def test_arms_are_picked_with_the_probabilities_that_are_told(policy):
    rng = np.random.default_rng(7)
    bandit = Bandit(BayesianLogisticRegression(), [0, 1, 2], policy=policy, rng=0)
    for i, x in enumerate(rng.normal(size=(90, 2))):
        bandit.learn_one(x, i % 3, float(rng.random() < 0.5))
    decisions = bandit.decide(np.tile([0.3, -0.2], (4000, 1)), allowed=[0, 2])
    share = np.bincount(decisions.arms, minlength=3) / 4000
    told = decisions.propensities[0]
    assert told[1] == 0.0
    np.testing.assert_array_less(
        np.abs(share - told), 1e-9 + 4.0 * np.sqrt(told * (1 - told) / 4000)
    )
