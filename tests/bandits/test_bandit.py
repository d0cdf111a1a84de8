"""Laws of deciding and learning, of every policy and many models."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from posterity import (
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
    Policy,
    Softmax,
    ThompsonSampling,
    TopTwo,
    UpperConfidenceBound,
)
from posterity.bandits.decisions import ranking_probability
from posterity.basis import Polynomial
from posterity.files import dumps, loads
from posterity.forgetting import Exponential
from posterity.posteriors.grouped import ONE_SD

Array = NDArray[np.float64]

POLICIES: list[Policy] = [
    ThompsonSampling(),
    ThompsonSampling(width=0.5, floor=0.1),
    UpperConfidenceBound(),
    Greedy(),
    EpsilonGreedy(),
    Softmax(),
    InverseGap(),
    TopTwo(),
    InformationDirected(),
]
GIVEN = BayesianLinearRegression(prior_precision=1.0, noise_precision=4.0)
SQUARES = Polynomial(degree=2, domain=(-4.0, 4.0))
MODELS: dict[str, dict[str, Any]] = {
    "learned": {},
    "learned in whole": {"model": GroupedRegression()},
    "known noise": {"model": GroupedRegression(noise_precision=4.0)},
    "given": {"model": GIVEN},
    "linear": {"model": BayesianLinearRegression()},
    "logistic": {"model": BayesianLogisticRegression()},
    "poisson": {"model": BayesianPoissonRegression()},
    "basis": {
        "model": BayesianLinearRegression(
            prior_precision=1.0, basis=Polynomial(degree=2, domain=(-4.0, 4.0))
        )
    },
    "fading": {
        "model": BayesianLinearRegression(prior_precision=1.0, forgetting=Exponential(half_life=50))
    },
    "all": {"model": BayesianLinearRegression(), "sharing": "all"},
    "all, given": {"model": GIVEN, "sharing": "all"},
}
# Those whose rows can be learned in any order, and unlearned: exactly, and as near as sites allow.
EXACT = [
    "learned",
    "learned in whole",
    "known noise",
    "given",
    "linear",
    "basis",
    "all",
    "all, given",
]
ARMS = ["red", "green", "blue"]


def rows_of(seed: int, n: int, kind: str) -> tuple[Array, list[str], Array]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    places = np.concatenate([[0, 1, 2], rng.integers(3, size=n - 3)])
    slopes = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.5]])
    rewards = np.sum(slopes[places] * X, axis=1) + rng.normal(scale=0.5, size=n)
    if kind in ("logistic", "poisson"):
        rewards = (rewards > 0.0).astype(float)
    return X, [ARMS[place] for place in places], rewards


def bandit_of(kind: str, policy: Policy | None = None, n: int = 60, seed: int = 0) -> Bandit:
    bandit = Bandit(arms=ARMS, policy=policy, rng=1, **MODELS[kind])
    return bandit.learn(*rows_of(seed, n, kind)) if n else bandit


def predictive(bandit: Bandit, X: Array) -> Array:
    """Means and quantiles of what is expected."""
    beliefs, _ = bandit._beliefs(X, None)
    if not beliefs.are_independent:
        return beliefs.mean
    return np.concatenate([beliefs.mean, beliefs.quantile(0.9)])


POINTS = np.array([[0.3, -0.2], [1.5, 1.0], [-1.0, 0.0]])


# ---- deciding ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_decisions_follow_their_propensities(policy: Policy, kind: str) -> None:
    n = 400
    bandit = bandit_of(kind, policy)
    decisions = bandit.decide(np.repeat(POINTS[:1], n, axis=0))
    predictive = decisions.propensities
    np.testing.assert_allclose(predictive.sum(axis=1), 1.0, rtol=1e-12)
    assert (predictive >= policy.floor / 3.0 - 1e-12).all()
    picked = decisions.arms[:, None] == np.array(ARMS)
    spread = np.sqrt(np.sum(predictive * (1.0 - predictive), axis=0))
    assert (np.abs((picked - predictive).sum(axis=0)) < 4.5 * spread + 1e-9).all()
    np.testing.assert_allclose(decisions.propensity, predictive[picked])
    assert decisions.ids.tolist() == list(range(n))


@pytest.mark.parametrize("kind", MODELS)
def test_one_decision_follows_its_propensities(kind: str) -> None:
    bandit = bandit_of(kind)
    decisions = [bandit.decide(POINTS[0]) for _ in range(100)]
    for decision in decisions[:3]:
        np.testing.assert_allclose(decision.propensities.sum(), 1.0, rtol=1e-12)
        place = ARMS.index(decision.arm)
        np.testing.assert_allclose(decision.propensity, decision.propensities[place])
    assert len({decision.id for decision in decisions}) == 100
    mean = np.mean([decision.arm == "red" for decision in decisions])
    share = bandit.propensities(POINTS[:1])[0, 0]
    assert abs(mean - share) < 4.5 * np.sqrt(share * (1.0 - share) / 100) + 0.05


def test_many_decisions_of_one_context_match_exact_propensities() -> None:
    bandit = bandit_of("learned", ThompsonSampling(width=0.7, floor=0.05), n=40)
    n = 100_000
    x = np.array([0.2, -0.1])
    decisions = bandit.decide(np.repeat(x[None], n, axis=0))
    exact = bandit.propensities(x[None])[0]
    assert exact.min() > 0.02
    counts = [np.count_nonzero(decisions.arms == arm) for arm in ARMS]
    assert stats.chisquare(counts, n * exact).pvalue > 1e-4


@given(seed=st.integers(0, 10**6))
@settings(max_examples=20)
def test_two_arms_in_closed_form(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(6, 2)), rng.normal(size=6)
    arms = ["a", "b"] * 3
    bandit = Bandit(GIVEN, arms=["a", "b"], policy=ThompsonSampling(floor=0.0)).learn(X, arms, y)
    models = [
        BayesianLinearRegression(prior_precision=1.0, noise_precision=4.0).fit(X[i::2], y[i::2])
        for i in range(2)
    ]
    one, other = (model.predict_mean_distribution(POINTS) for model in models)
    sd = np.hypot(one.std(), other.std())
    exact = stats.norm.cdf((one.mean() - other.mean()) / sd)
    np.testing.assert_allclose(bandit.propensities(POINTS)[:, 0], exact, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", ["learned", "given", "linear"])
@pytest.mark.parametrize("policy", [p for p in POLICIES if not hasattr(p, "n_draws")], ids=repr)
def test_names_and_order_of_arms_do_not_matter(policy: Policy, kind: str) -> None:
    X, arms, rewards = rows_of(0, 40, kind)
    bandit = bandit_of(kind, policy, n=40)
    other = Bandit(arms=[2, 0, 1], policy=policy, rng=1, **MODELS[kind])
    numbers = {"red": 0, "green": 1, "blue": 2}
    other.learn(X, [numbers[arm] for arm in arms], rewards)
    tolerance = 1e-7
    np.testing.assert_allclose(
        other.propensities(POINTS), bandit.propensities(POINTS)[:, [2, 0, 1]], atol=tolerance
    )


def test_an_arm_that_is_there_twice_shares_what_one_had() -> None:
    X, y = np.ones((40, 1)), np.random.default_rng(0).normal(size=40)
    one = Bandit(GIVEN, arms=["a", "b"], policy=Greedy(floor=0.0))
    two = Bandit(GIVEN, arms=["a", "b", "c"], policy=Greedy(floor=0.0))
    arms = ["a"] * 20 + ["b"] * 20
    one.learn(X, arms, y + 3.0 * (np.array(arms) == "a"))
    two.learn(X, arms, y + 3.0 * (np.array(arms) == "a"))
    two.learn(X[:20], ["c"] * 20, y[:20] + 3.0)
    assert one.propensities([[1.0]]).tolist() == [[1.0, 0.0]]
    np.testing.assert_allclose(two.propensities([[1.0]]), [[0.5, 0.0, 0.5]])


@pytest.mark.parametrize("kind", ["learned", "linear"])
@pytest.mark.parametrize("scale", [0.01, 100.0])
def test_the_unit_of_rewards_does_not_matter(kind: str, scale: float) -> None:
    X, arms, rewards = rows_of(0, 60, kind)
    plain, scaled = (Bandit(arms=ARMS, rng=0, **MODELS[kind]) for _ in range(2))
    plain.learn(X, arms, rewards)
    scaled.learn(X, arms, scale * rewards + 3.0 * scale)
    np.testing.assert_allclose(scaled.propensities(POINTS), plain.propensities(POINTS), atol=2e-3)


@pytest.mark.parametrize("kind", MODELS)
def test_deciding_changes_nothing_that_is_known(kind: str) -> None:
    bandit = bandit_of(kind)
    before = dumps(bandit)
    bandit.decide(POINTS)
    bandit.decide(POINTS[0])
    bandit.decide(POINTS, k=2)
    bandit.propensities(POINTS)
    bandit.probability_best(POINTS)
    bandit._decided = 0  # which numbers decisions
    assert dumps(bandit) == before


@pytest.mark.parametrize("kind", MODELS)
def test_before_any_reward_all_arms_are_alike(kind: str) -> None:
    bandit = bandit_of(kind, n=0)
    np.testing.assert_allclose(bandit.propensities(POINTS), 1.0 / 3.0)
    decisions = bandit.decide(np.zeros((300, 2)))
    assert min(np.count_nonzero(decisions.arms == arm) for arm in ARMS) > 60
    assert bandit.decide([0.0, 1.0]).propensity == pytest.approx(1.0 / 3.0)


@pytest.mark.parametrize("kind", ["learned", "learned in whole", "known noise", "linear"])
def test_arms_that_all_paid_nothing_are_alike(kind: str) -> None:
    X, arms, _ = rows_of(0, 30, kind)
    bandit = bandit_of(kind, ThompsonSampling(), n=0).learn(X, arms, np.zeros(30))
    decisions = bandit.decide(np.repeat(POINTS[:1], 600, axis=0))
    counts = [np.count_nonzero(decisions.arms == arm) for arm in ARMS]
    predictive = decisions.propensities[0]
    np.testing.assert_allclose(predictive.sum(), 1.0)
    assert stats.chisquare(counts, 600 * predictive).pvalue > 1e-4
    assert predictive.min() > 0.02


@pytest.mark.parametrize("kind", MODELS)
def test_the_same_seed_gives_the_same_decisions(kind: str) -> None:
    one, two = bandit_of(kind), bandit_of(kind)
    assert one.decide(POINTS).arms.tolist() == two.decide(POINTS).arms.tolist()
    again = loads(dumps(one))
    X = np.repeat(POINTS, 20, axis=0)
    assert again.decide(X).arms.tolist() == one.decide(X).arms.tolist()
    assert again.decide(POINTS[0]).id == one.decide(POINTS[0]).id
    assert dumps(again) == dumps(one)
    again = pickle.loads(pickle.dumps(one))
    assert again.decide(X).arms.tolist() == one.decide(X).arms.tolist()


def test_a_mask_leaves_arms_out() -> None:
    bandit = bandit_of("learned")
    mask = np.array([[True, False, True], [False, True, False], [True, True, True]])
    for _ in range(20):
        decisions = bandit.decide(POINTS, allowed=mask)
        assert decisions.arms[0] != "green"
        assert decisions.arms[1] == "green"
        assert (decisions.propensities[~mask] == 0.0).all()
    only = bandit.decide(POINTS[0], allowed=[False, False, True])
    assert (only.arm, only.propensity) == ("blue", 1.0)


def test_rankings() -> None:
    bandit = bandit_of("learned")
    decisions = bandit.decide(np.repeat(POINTS[:1], 2000, axis=0), k=2)
    assert decisions.arms.shape == (2000, 2)
    assert (decisions.arms[:, 0] != decisions.arms[:, 1]).all()
    p = decisions.propensities[0]
    here = (decisions.arms == ["blue", "green"]).all(axis=1)
    expected = p[2] * p[1] / (1.0 - p[2])
    np.testing.assert_allclose(decisions.propensity[here], expected)
    assert abs(here.mean() - expected) < 5.0 * np.sqrt(expected / 2000)
    one = bandit.decide(POINTS[0], k=3)
    assert sorted(one.arm) == sorted(ARMS)
    assert 0.0 < one.propensity < 1.0


@pytest.mark.parametrize(
    "policy", [ThompsonSampling(floor=0.3), TopTwo(floor=0.3), Greedy(floor=0.3)]
)
def test_rankings_come_as_often_as_their_propensities_say(policy: Policy) -> None:
    n, mask = 4000, np.array([True, True, False, True])
    X = np.random.default_rng(1).normal(size=(20, 2))
    bandit = Bandit(arms=[0, 1, 2, 3], policy=policy, rng=3)
    bandit.learn(X, [0, 1, 2, 3] * 5, np.sin(np.arange(20.0)))
    made = bandit.decide(np.repeat(X[:1], n, axis=0), allowed=mask, k=2)
    total = 0.0
    for ranking in itertools.permutations([0, 1, 3], 2):
        here = (made.arms == ranking).all(axis=1)
        expected = ranking_probability(made.propensities, np.tile(ranking, (n, 1)))
        np.testing.assert_allclose(made.propensity[here], expected[here], rtol=1e-12)
        share = expected.mean()
        assert abs(here.mean() - share) < 5.0 * np.sqrt(share / n)
        total += share
    assert abs(total - 1.0) < 1e-10


# ---- the lean way --------------------------------------------------------------------------------


def stretch_of_unequal_arms(bandit: Any) -> Any:
    """Scales of Student-t arms of unequal noise, as of normal ones; df are those of the update."""
    posterior: Any = bandit._arms.model._posterior
    own = posterior.reading().prior.own_noise
    if own is None:
        return 1.0
    then = posterior.bank.count if posterior.sample is None else posterior.sample.counts
    df = np.array([own[slot, 0] + then[slot] for slot in bandit._arms.slots])
    return stats.t.ppf(ONE_SD, df) / stats.norm.ppf(ONE_SD)


@pytest.mark.parametrize("kind", ["learned", "learned in whole", "known noise"])
def test_the_lean_way_believes_what_the_model_does(kind: str) -> None:
    bandit = bandit_of(kind, n=5)
    rng = np.random.default_rng(0)
    for _ in range(40):
        x = rng.normal(size=2)
        lean = bandit._open_arms_path()
        assert lean is not None
        _, mean, scale = lean.decide(x, np.ones(3, dtype=np.uint8), (0, 1.0), 0.0, 0, 0)
        predictive = bandit._arms.beliefs(x[None], np.ones((1, 3), dtype=bool), rng)
        np.testing.assert_allclose(mean, predictive.mean[0], rtol=1e-8, atol=1e-10)
        expected = predictive.scale[0] * stretch_of_unequal_arms(bandit)
        np.testing.assert_allclose(scale, expected, rtol=1e-7)
        bandit.learn_one(x, ARMS[rng.integers(3)], rng.normal())


def test_many_decisions_are_those_of_one_after_the_other() -> None:
    one, many = bandit_of("learned"), bandit_of("learned")
    X = np.random.default_rng(0).normal(size=(50, 2))
    decisions = many.decide(X)
    each = [one.decide(x) for x in X]
    assert decisions.arms.tolist() == [decision.arm for decision in each]
    assert decisions.ids.tolist() == [decision.id for decision in each]
    np.testing.assert_allclose(decisions.expected, [d.expected for d in each], rtol=1e-10)
    np.testing.assert_allclose(decisions.propensities[7], each[7].propensities, atol=1e-9)


def test_what_is_told_of_a_decision_is_what_was_known_then() -> None:
    bandit = bandit_of("learned")
    before = bandit.propensities(POINTS)
    decisions, one = bandit.decide(POINTS), bandit.decide(POINTS[0])
    bandit.learn(*rows_of(9, 50, "learned"))
    for _ in range(30):
        bandit.learn_one(POINTS[0], "red", 5.0)
    np.testing.assert_allclose(decisions.propensities, before, atol=1e-9)
    np.testing.assert_allclose(one.propensities, before[0], atol=1e-9)


# ---- learning ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", EXACT)
def test_order_and_batches_do_not_matter(kind: str) -> None:
    X, arms, rewards = rows_of(0, 60, kind)
    order = np.random.default_rng(1).permutation(60)
    other = bandit_of(kind, n=0)
    for some in np.array_split(order, 4):
        other.learn(X[some], [arms[row] for row in some], rewards[some])
    assert_same(kind, other, bandit_of(kind))


@pytest.mark.parametrize("kind", EXACT)
def test_one_by_one_is_all_at_once(kind: str) -> None:
    other = bandit_of(kind, n=0)
    for x, arm, reward in zip(*rows_of(0, 60, kind), strict=True):
        other.learn_one(x, arm, reward)
    assert_same(kind, other, bandit_of(kind))


@pytest.mark.parametrize("kind", EXACT)
def test_merged_is_learned_together(kind: str) -> None:
    X, arms, rewards = rows_of(0, 60, kind)
    one, other = (bandit_of(kind, n=0) for _ in range(2))
    one.learn(X[:30], arms[:30], rewards[:30])
    other.learn(X[30:], arms[30:], rewards[30:])
    assert_same(kind, one.merge(other), bandit_of(kind))


@pytest.mark.parametrize("kind", EXACT)
def test_unlearned_is_never_learned(kind: str) -> None:
    bandit, more = bandit_of(kind), rows_of(7, 10, kind)
    assert_same(kind, bandit.learn(*more).unlearn(*more), bandit_of(kind))


def assert_same(kind: str, one: Bandit, other: Bandit) -> None:
    """All but the prior of streams, which is learned at certain numbers of rows, is the same."""
    if isinstance(one._arms.model if hasattr(one._arms, "model") else None, GroupedRegression):
        models = [bandit._arms.model for bandit in (one, other)]
        keys = [model.groups_.argsort() for model in models]
        for what in ("coef_", "intercept_", "counts_"):
            a, b = (getattr(m, what)[key] for m, key in zip(models, keys, strict=True))
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
        a, b = (
            m._posterior.bank.posteriors(np.zeros((1, 4, 8)))[k]
            for m, k in zip(models, keys, strict=True)
        )
        np.testing.assert_allclose(np.abs(a), np.abs(b), rtol=1e-8, atol=1e-9)
        return
    np.testing.assert_allclose(
        predictive(one, POINTS), predictive(other, POINTS), rtol=1e-6, atol=1e-8
    )


def test_given_priors_are_models_apart() -> None:
    X, arms, rewards = rows_of(0, 60, "given")
    bandit = bandit_of("given")
    for place, arm in enumerate(ARMS):
        some = np.array(arms) == arm
        model = BayesianLinearRegression(prior_precision=1.0, noise_precision=4.0)
        model.fit(X[some], rewards[some])
        apart = model.predict_mean_distribution(POINTS)
        beliefs, _ = bandit._beliefs(POINTS, None)
        np.testing.assert_allclose(beliefs.mean[:, place], apart.mean(), rtol=1e-12)
        np.testing.assert_allclose(beliefs.std[:, place], apart.std(), rtol=1e-12)


def test_arms_that_share_all_are_drawn_jointly() -> None:
    features = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    bandit = Bandit(GIVEN, arms=ARMS, sharing="all", arm_features=features, rng=0)
    bandit.learn(*rows_of(0, 30, "given"))
    beliefs, _ = bandit._beliefs(POINTS, None)
    draws = beliefs.sample(64, np.random.default_rng(0))
    np.testing.assert_allclose(draws[:, :, 0], draws[:, :, 1], rtol=1e-10)


def test_rows_of_decisions_have_weights_and_times() -> None:
    X, arms, rewards = rows_of(0, 30, "given")
    twice = Bandit(GIVEN, arms=ARMS).learn(X, arms, rewards, np.full(30, 2.0))
    again = Bandit(GIVEN, arms=ARMS).learn(X, arms, rewards).learn(X, arms, rewards)
    np.testing.assert_allclose(predictive(twice, POINTS), predictive(again, POINTS), rtol=1e-9)
    bandit = Bandit(arms=ARMS, **MODELS["fading"]).learn(X, arms, rewards, times=np.arange(30.0))
    assert np.isfinite(predictive(bandit, POINTS)).all()
    with pytest.raises(ValueError, match="times"):
        Bandit(arms=ARMS).learn(X, arms, rewards, times=np.arange(30.0))


# ---- arms that come and go -----------------------------------------------------------------------


def test_a_new_arm_starts_from_what_arms_share() -> None:
    rng = np.random.default_rng(0)
    names = list(range(12))
    bandit = Bandit(GroupedRegression(), arms=names, policy=ThompsonSampling(), rng=0)
    X, arms = rng.normal(size=(600, 1)), rng.integers(12, size=600)
    bandit.learn(X, arms, 5.0 + 2.0 * X[:, 0] + rng.normal(scale=0.3, size=600))
    bandit.add_arm("new")
    beliefs, _ = bandit._beliefs([[1.0]], None)
    np.testing.assert_allclose(beliefs.mean[0, -1], 7.0, atol=0.3)
    assert {bandit.decide([1.0]).arm for _ in range(300)} >= {"new"}
    bandit.learn_one([1.0], "new", 7.0)
    assert bandit.decide([1.0]).expected.shape == (13,)


def test_arms_retire_and_return() -> None:
    bandit = bandit_of("learned").retire_arm("red")
    assert bandit.retired_ == ["red"]
    assert "red" not in {bandit.decide(POINTS[1]).arm for _ in range(200)}
    assert bandit.propensities(POINTS)[:, 0].max() == 0.0
    bandit.learn_one(POINTS[0], "red", 1.0)
    assert bandit.add_arm("red").retired_ == []
    bandit.retire_arm("red").retire_arm("blue")
    with pytest.raises(ValueError, match="last arm"):
        bandit.retire_arm("green")
    with pytest.raises(ValueError, match="already"):
        bandit.add_arm("green")
    with pytest.raises(ValueError, match="no arm 'pink'"):
        bandit.retire_arm("pink")


def test_arms_of_features_come_with_theirs() -> None:
    bandit = Bandit(GIVEN, arms=["a", "b"], sharing="all", arm_features=[[0.0], [1.0]])
    bandit.learn([[1.0], [1.0]], ["a", "b"], [0.0, 1.0]).add_arm("c", [2.0])
    assert bandit.decide([[1.0]]).expected[0].argmax() == 2
    with pytest.raises(ValueError, match="arm_features"):
        bandit.add_arm("d")
    with pytest.raises(ValueError, match="finite"):
        bandit.add_arm("d", [1.0, 2.0])
    with pytest.raises(ValueError, match="sharing"):
        Bandit(arms=["a"]).add_arm("b", [1.0])


def test_single_rows_of_many_features() -> None:
    """More than the kernel keeps side by side: learned one by one as all at once."""
    rng = np.random.default_rng(0)
    X, arms = rng.normal(size=(300, 45)), np.arange(300) % 3
    rewards = X[:, 0] * (arms - 1) + rng.normal(size=300)
    one, whole = (Bandit(arms=[0, 1, 2], rng=0) for _ in range(2))
    for x, arm, y in zip(X, arms.tolist(), rewards, strict=True):
        one.decide(x)
        one.learn_one(x, arm, y)
    whole.learn(X, arms, rewards)
    one.learn(X[:3], arms[:3], rewards[:3])
    whole.learn(X[:3], arms[:3], rewards[:3])
    np.testing.assert_allclose(predictive(one, X[:5]), predictive(whole, X[:5]), rtol=1e-6)


def test_a_prior_of_many_features_explains_no_more_than_ten_times_the_noise() -> None:
    rng = np.random.default_rng(1)
    X, arms = rng.normal(size=(4000, 100)), np.arange(4000) % 40
    bandit = Bandit(arms=list(range(40)), rng=0).learn(X, arms, rng.normal(size=4000))
    covariance = np.diag(bandit._arms.model.shared_covariance_)[1:]
    noise = 1.0 / bandit._arms.model.noise_precision_
    assert np.sum(covariance) / noise == pytest.approx(10.0, rel=0.1)


def test_features_may_have_any_mean() -> None:
    rng = np.random.default_rng(0)
    x, arms = rng.normal(size=300), rng.integers(2, size=300)
    rewards = np.where(arms == 1, x, -x) + 0.5 * rng.normal(size=300)
    plain = Bandit(arms=[0, 1], rng=0).learn(x[:, None], arms, rewards)
    for mean, sd in [(50.0, 5.0), (2022.0, 3.0), (1e6, 1.0)]:
        moved = Bandit(arms=[0, 1], rng=0).learn(mean + sd * x[:, None], arms, rewards)
        for at in (-1.0, 2.0):
            one, two = plain.beliefs([[at]]), moved.beliefs([[mean + sd * at]])
            assert np.allclose(one.mean, two.mean, atol=1e-5)
            assert np.allclose(one.scale, two.scale, rtol=1e-5)


def test_a_decision_and_its_reward_are_its_context_its_arm_and_the_reward() -> None:
    rng = np.random.default_rng(0)
    one, two = Bandit(arms=["a", "b"], rng=0), Bandit(arms=["a", "b"], rng=0)
    for x in rng.normal(size=(30, 2)):
        reward = float(rng.normal())
        decision = one.decide(x)
        two.decide(x)
        one.learn_one(decision, reward)
        two.learn_one(x, decision.arm, reward)
    with pytest.raises(TypeError, match="rewards are missing"):
        one.learn_one(decision, None)
    x = rng.normal(size=2)
    np.testing.assert_array_equal(one.beliefs(x).mean, two.beliefs(x).mean)
