"""Bandits at any size of rewards: probabilities, what is taken back, and what is refused."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from posterity import (
    BayesianGeneralizedLinear,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegression,
    GroupedRegression,
)
from posterity.bandits import (
    Bandit,
    EpsilonGreedy,
    Greedy,
    InformationDirected,
    InverseGap,
    RandomizedUpperConfidenceBound,
    Softmax,
    ThompsonSampling,
    TopTwo,
    UpperConfidenceBound,
)
from posterity.bandits.beliefs import StudentBeliefs
from posterity.files import dumps

POLICIES = [
    EpsilonGreedy(), Greedy(), InformationDirected(), InverseGap(),
    RandomizedUpperConfidenceBound(), Softmax(), ThompsonSampling(), ThompsonSampling(width=0.5),
    TopTwo(), UpperConfidenceBound(),
]  # fmt: skip
SIZES = st.floats(-150.0, 150.0).map(lambda power: 10.0**power)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@given(
    means=st.lists(st.tuples(st.sampled_from([-1.0, 0.0, 1.0]), SIZES), min_size=2, max_size=4),
    scales=st.lists(st.one_of(st.just(0.0), SIZES), min_size=4, max_size=4),
    df=st.sampled_from([1.5, 4.0, np.inf]),
)
@settings(max_examples=60, deadline=None)
def test_propensities_are_probabilities_at_any_size(
    policy: Any, means: list[tuple[float, float]], scales: list[float], df: float
) -> None:
    mean = np.array([[sign * size for sign, size in means]])
    scale = np.array([scales[: len(means)]])
    allowed = np.ones(mean.shape, dtype=bool)
    beliefs = StudentBeliefs(mean, scale, np.full(mean.shape, df), allowed)
    found = policy.propensities(beliefs, np.random.default_rng(0))
    assert np.isfinite(found).all()
    assert found.sum() == pytest.approx(1.0)
    assert found.min() >= policy.floor / len(means) - 1e-12


def test_an_arm_far_above_the_others_is_the_best() -> None:
    for far in (1e19, 3e19, 1e30, 1e150):
        beliefs = StudentBeliefs(
            np.array([[far, 0.9, 0.0]]), np.array([[0.5, 0.9, 0.0]]), np.full((1, 3), np.inf),
            np.ones((1, 3), dtype=bool),
        )  # fmt: skip
        policy = ThompsonSampling(floor=0.0)
        found = policy.propensities(beliefs, np.random.default_rng(0))
        assert found.tolist() == [[1.0, 0.0, 0.0]]


def refuse(call: Callable[[], Any]) -> str | None:
    """What a call says if it is refused, which must be as a wrong type or value."""
    try:
        call()
    except (TypeError, ValueError) as error:
        return str(error)
    return None


def learned(model: Any = None, rewards: float = 1.0, **how: Any) -> Bandit:
    draws = np.random.default_rng(0)
    bandit = Bandit(model, arms=["a", "b"], rng=0, **how)
    for i in range(8):
        bandit.learn_one([float(draws.integers(0, 4))], "ab"[i % 2], rewards * draws.integers(0, 2))
    return bandit


@pytest.mark.parametrize("reward", [1e3, 1e6, 1e9, 1e12, 1e16, 1e20, 1e30])
@pytest.mark.parametrize("sharing", ["learned", "none", "all"])
def test_a_reward_of_any_size_is_taken_back_or_refused(reward: float, sharing: Any) -> None:
    bandit = learned(sharing=sharing)
    before, sd = bandit.beliefs([[1.0]]).mean, bandit.beliefs([[1.0]]).std
    bandit.learn([[1.0]], ["a"], [reward])
    told = bandit.beliefs([[1.0]])
    for policy in POLICIES:
        assert np.isfinite(policy.propensities(told, np.random.default_rng(0))).all()
    with_it = dumps(bandit)
    refusal = refuse(lambda: bandit.unlearn([[1.0]], ["a"], [reward]))
    if refusal:
        assert "lost in their rounding" in refusal
        assert reward > 1e6
        assert dumps(bandit) == with_it
    else:
        np.testing.assert_array_less(np.abs(bandit.beliefs([[1.0]]).mean - before), 1e-3 * sd)


@pytest.mark.parametrize("reward", [1e3, 1e6, 1e9, 1e12, 1e16, 1e20])
@pytest.mark.parametrize("kind", ["linear", "grouped"])
def test_a_row_of_any_size_is_unlearned_or_refused(reward: float, kind: str) -> None:
    draws = np.random.default_rng(1)
    X = draws.normal(size=(40, 2))
    y = X @ [1.0, 0.3] + 0.3 * draws.normal(size=40)
    groups = {"groups": np.arange(40) % 4} if kind == "grouped" else {}
    one = {"groups": [1]} if kind == "grouped" else {}
    make: Callable[[], Any] = GroupedRegression if kind == "grouped" else BayesianLinearRegression
    model, without = make().fit(X, y, **groups), make().fit(X, y, **groups)
    model.partial_fit(X[:1] + 1.0, [reward], **one)
    refusal = refuse(lambda: model.unlearn(X[:1] + 1.0, [reward], **one))
    if refusal:
        assert "lost in their rounding" in refusal
        assert reward > 1e6
    else:
        found, right = (m.predict_distribution(X, **groups) for m in (model, without))
        tolerance = 1e-3 if kind == "linear" else 5e-2  # the noise is learned with the groups
        np.testing.assert_array_less(np.abs(found.mean() - right.mean()), tolerance * right.std())


def test_the_only_reward_that_is_not_zero_is_unlearned() -> None:
    draws = np.random.default_rng(2)
    X, y = draws.normal(size=(9, 2)), np.zeros(9)
    y[4] = 25.0
    model = BayesianLinearRegression().fit(X, y).unlearn(X[4:5], y[4:5])
    assert np.abs(model.coef_).max() < 1e-12


@pytest.mark.parametrize("size", [1e3, 1e9, 1e20])
def test_the_only_row_of_a_level_takes_no_others_along(size: float) -> None:
    draws = np.random.default_rng(3)
    X = np.column_stack([draws.normal(size=12), np.arange(12) == 11])
    y = draws.normal(size=12)
    y[11] = size
    model = BayesianLinearRegression().fit(X, y)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        refusal = refuse(lambda: model.unlearn(X[11:], y[11:]))
    if not refusal and not any("digits" in str(one.message) for one in told):
        right = BayesianLinearRegression().fit(X[:11], y[:11])
        np.testing.assert_allclose(model.coef_, right.coef_, rtol=1e-5, atol=1e-12)
    assert bool(refusal) == (size == 1e20)


def test_the_floor_holds_while_an_arm_is_unknown() -> None:
    for policy in (ThompsonSampling(), RandomizedUpperConfidenceBound()):
        bandit = Bandit(arms=["a", "b"], policy=policy, sharing="none", rng=0)
        bandit.learn([[1.0], [2.0], [3.0]], ["a"] * 3, [1.0, 2.0, 3.0])
        decided = bandit.decide(np.ones((20_000, 1)))
        np.testing.assert_allclose(decided.propensities[0], [0.01, 0.99])
        assert 0.007 < np.mean(decided.arms == "a") < 0.013


def test_evidence_follows_rewards_that_were_learned_one_by_one() -> None:
    draws = np.random.default_rng(0)
    bandit = Bandit(arms=["a", "b"], rng=0)
    X = draws.normal(size=(60, 2))
    bandit.learn(X, draws.choice(["a", "b"], 60), X[:, 0] + draws.normal(size=60))
    model = bandit._arms.model  # type: ignore[attr-defined]
    for _ in range(4):
        x = draws.normal(size=2)
        before = model.log_evidence_, model.noise_precision_
        bandit.learn_one(x, bandit.decide(x).arm, 50.0)
        assert model.log_evidence_ != before[0]
        assert model.noise_precision_ != before[1]


BAD: dict[str, tuple[Any, ...]] = {
    "shape": (np.zeros(3), "a", 1.0, 1.0),
    "matrix": ([[1.0, 2.0], [3.0, 4.0]], "a", 1.0, 1.0),
    "text": ("ab", "a", 1.0, 1.0),
    "nothing": (None, "a", 1.0, 1.0),
    "nan": (np.array([np.nan, 0.0]), "a", 1.0, 1.0),
    "huge": (np.full(2, 1e151), "a", 1.0, 1.0),
    "arm": (np.zeros(2), "z", 1.0, 1.0),
    "reward": (np.zeros(2), "a", "x", 1.0),
    "reward nan": (np.zeros(2), "a", np.nan, 1.0),
    "reward huge": (np.zeros(2), "a", 1e151, 1.0),
    "reward beyond floats": (np.zeros(2), "a", 10**400, 1.0),
    "weight": (np.zeros(2), "a", 1.0, -1.0),
    "weight nan": (np.zeros(2), "a", 1.0, np.nan),
    "weight text": (np.zeros(2), "a", 1.0, "q"),
}
MODELS = {
    "default": lambda: None,
    "linear": BayesianLinearRegression,
    "logistic": BayesianLogisticRegression,
    "poisson": BayesianPoissonRegression,
}


@pytest.mark.parametrize("rows", [0, 1, 8])
@pytest.mark.parametrize("model", MODELS)
def test_what_is_refused_changes_nothing(model: str, rows: int) -> None:
    draws = np.random.default_rng(0)
    bandit = Bandit(MODELS[model](), arms=["a", "b"], rng=0)
    for i in range(rows):
        bandit.learn_one(draws.normal(size=2), "ab"[i % 2], float(draws.integers(0, 2)))

    def go_on(one: Bandit) -> bytes:
        """The bandit after two more rewards: what was prepared for them is no change."""
        return dumps(one.learn_one(np.ones(2), "a", 1.0).learn_one(np.zeros(2), "b", 0.0))

    right = go_on(copy.deepcopy(bandit))
    for name, (x, arm, reward, weight) in BAD.items():
        calls: list[Callable[[Any], Any]] = [
            partial(Bandit.learn_one, x=x, arm=arm, reward=reward, weight=weight),
            partial(Bandit.learn, X=[x], arms=[arm], rewards=[reward], sample_weight=[weight]),
            partial(Bandit.decide, X=x),
            partial(Bandit.beliefs, X=[x]),
        ]
        for call in calls:
            trial = copy.deepcopy(bandit)
            if refuse(lambda call=call, trial=trial: call(trial)) is not None:
                assert go_on(trial) == right, name


@pytest.mark.parametrize("seed", [268, 292, 316, 373])
def test_an_arm_without_rewards_beside_some_whose_noise_differs(seed: int) -> None:
    """Nothing is known of it: its width is not a number of negative degrees of freedom."""
    rng, bandit, late = np.random.default_rng(seed), Bandit(arms=list("abcd"), rng=seed), []
    earned = np.array(
        [[1.0, 0.2, 0.1, 0.0], [0.7, 0.6, 0.0, 0.2], [0.9, 0.9, -0.2, 0.1], [1.1, -0.3, 0.2, 0.3]]
    )
    with np.errstate(all="raise"):
        for i in range(20):
            x = np.array([float(rng.random() < 0.4), rng.normal(), rng.normal()])
            arm = bandit.decide(x).arm
            reward = float(earned["abcd".index(arm)] @ [1.0, *x] + 0.5 * rng.normal())
            late.append((i + rng.lognormal(np.log(3.0), 1.0), x, arm, reward))
            for one in [one for one in late if one[0] <= i]:
                bandit.learn_one(*one[1:])
            late = [one for one in late if one[0] > i]
    assert not np.isnan(bandit.beliefs(np.zeros((1, 3))).std).any()


@pytest.mark.parametrize("family", ["poisson", "gamma"])
@pytest.mark.filterwarnings("error")
def test_counts_and_amounts_of_which_nearly_nothing_is_known_have_propensities(family: str) -> None:
    # Their means are then beyond 1e200: the squares of these are no floats.
    policy = InformationDirected(floor=0.0)
    bandit = Bandit(BayesianGeneralizedLinear(family), arms=[*"abc"], policy=policy, rng=0)
    draws = np.random.default_rng(0)
    for _ in range(8):
        decision = bandit.decide(draws.normal(size=2))
        assert np.isfinite(decision.propensities).all()
        bandit.learn_one(decision.context, decision.arm, 1.0 + draws.poisson(2.0))
