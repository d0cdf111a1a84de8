"""Estimators of a policy's value: their formulas, their laws, and what they say without support."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from posterity import BayesianLogisticRegression
from posterity.off_policy import Always, Log, evaluate
from posterity.off_policy.sums import METHODS

Array = NDArray[np.float64]


class Made:
    """A log of ``n`` decisions among ``k`` arms, with all that formulas ask for."""

    def __init__(self, seed: int, n: int = 3000, k: int = 4) -> None:
        rng = np.random.default_rng(seed)
        self.X = rng.normal(size=(n, 2))
        self.logged = 0.9 * rng.dirichlet(np.ones(k), size=n) + 0.1 / k
        self.policy = rng.dirichlet(np.ones(k), size=n)
        self.arms = (self.logged.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
        self.rewards = 0.3 * self.arms + self.X[:, 0] + rng.normal(size=n)
        self.expected = rng.normal(size=(n, k))
        rows = np.arange(n)
        self.propensity = self.logged[rows, self.arms]
        self.weight = self.policy[rows, self.arms] / self.propensity
        self.match = self.policy[rows, self.arms]
        self.direct = np.sum(self.policy * self.expected, axis=1)
        self.error = self.rewards - self.expected[rows, self.arms]
        self.n = n
        # Row numbers as a context, so that a function can look the rest up.
        self.log = Log.of(
            rows[:, None], self.arms, self.rewards, propensities=self.logged, names=range(k)
        )

    def value(self, method: str, **how: Any) -> Any:
        predictive = evaluate(
            self.log,
            {"policy": lambda X: self.policy[X[:, 0].astype(int)]},
            [method],
            reward_model=lambda X: self.expected[X[:, 0].astype(int)],
            **how,
        )
        return predictive["policy", method]


def by_hand(made: Made, method: str) -> float:
    """As in the papers (and Open Bandit Pipeline): means of whole arrays."""
    w, r, q, d = made.weight, made.rewards, made.error, made.direct
    if method == "replay":
        return float(np.sum(made.match * r) / np.sum(made.match))
    if method == "ips":
        return float(np.mean(w * r))
    if method == "snips":
        return float(np.mean(w * r) / np.mean(w))
    if method == "dm":
        return float(np.mean(d))
    if method == "dr":
        return float(np.mean(d + w * q))
    if method == "switch_dr":
        return float(np.mean(d + (w <= 3.0) * w * q))
    return float(np.mean(d + 7.0 * w / (w**2 + 7.0) * q))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(3))
def test_formulas_of_the_papers(method: str, seed: int) -> None:
    made = Made(seed)
    predictive = made.value(method, switch=3.0, shrinkage=7.0)
    assert predictive.value == pytest.approx(by_hand(made, method), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("method", ["ips", "dm", "dr"])
def test_interval_is_that_of_a_mean(method: str) -> None:
    made = Made(0)
    scores = {
        "ips": made.weight * made.rewards,
        "dm": made.direct,
        "dr": made.direct + made.weight * made.error,
    }[method]
    predictive = made.value(method)
    assert predictive.std_error == pytest.approx(np.std(scores) / np.sqrt(made.n), rel=1e-10)
    assert predictive.low < predictive.value < predictive.high
    assert predictive.anytime_low < predictive.low
    assert predictive.anytime_high > predictive.high


def test_interval_of_a_ratio_is_the_jackknifes() -> None:
    made = Made(1, n=400)
    total, mass = np.sum(made.weight * made.rewards), np.sum(made.weight)
    without = (total - made.weight * made.rewards) / (mass - made.weight)
    jackknife = np.sqrt((made.n - 1) * np.var(without))
    assert made.value("snips").std_error == pytest.approx(jackknife, rel=0.02)


@pytest.mark.parametrize("method", ["switch_dr", "dr_shrinkage"])
def test_threshold_is_that_of_the_least_squared_error(method: str) -> None:
    made = Made(2)
    thresholds = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, np.inf)
    if method == "dr_shrinkage":
        thresholds = (1.0, 10.0, 100.0, 1000.0, 10000.0, np.inf)
    w, errors = made.weight, {}
    for t in thresholds:
        left = w * (w <= t) if method == "switch_dr" else w / (1.0 + w**2 / t)
        scores = made.direct + left * made.error
        bias = np.mean((w - left) * made.error)
        errors[float(np.mean(scores))] = bias**2 + np.var(scores) / made.n
    assert made.value(method).value == pytest.approx(min(errors, key=lambda v: errors[v]), rel=1e-9)


# ---- laws ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["replay", "ips", "snips", "dr", "switch_dr"])
def test_the_policy_of_the_log_has_its_mean_reward(method: str) -> None:
    made = Made(3)
    predictive = evaluate(made.log, ["logged"], [method])["logged", method]
    assert predictive.value == pytest.approx(made.rewards.mean(), rel=1e-12)


def test_a_policy_of_the_same_probabilities_has_its_mean_reward() -> None:
    made = Made(3)
    made.policy[:] = made.logged
    for method in ("ips", "snips"):
        assert made.value(method).value == pytest.approx(made.rewards.mean(), rel=1e-12)


def test_doubly_robust_without_a_model_is_inverse_propensity_scoring() -> None:
    made = Made(4)
    made.expected[:] = 0.0
    assert made.value("dr").value == pytest.approx(made.value("ips").value, rel=1e-12)


def test_doubly_robust_without_weights_is_the_direct_method() -> None:
    made = Made(5)
    tiny = made.value("switch_dr", switch=1e-12).value
    assert tiny == pytest.approx(made.value("dm").value, rel=1e-12)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), shift=st.floats(-1e3, 1e3), scale=st.floats(0.01, 100.0))
def test_units_of_rewards_make_no_difference(seed: int, shift: float, scale: float) -> None:
    made = Made(seed, n=300)
    changed = Log.of(
        made.X, made.arms, shift + scale * made.rewards, propensities=made.logged, names=range(4)
    )
    plain = Log.of(made.X, made.arms, made.rewards, propensities=made.logged, names=range(4))
    for method in ("replay", "snips"):
        one = evaluate(plain, ["uniform"], [method])["uniform", method]
        other = evaluate(changed, ["uniform"], [method])["uniform", method]
        assert other.value == pytest.approx(shift + scale * one.value, rel=1e-9, abs=1e-9)
        assert other.std_error == pytest.approx(scale * one.std_error, rel=1e-6)


def test_batches_make_no_difference() -> None:
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    made = Made(6)
    frame = pd.DataFrame({"x": made.X[:, 0], "arm": made.arms, "reward": made.rewards})
    frame["p"] = made.propensity
    predictive = []
    for rows in (50, 7, 100_000):
        log = Log.open(frame, propensity="p", batch_rows=rows)
        predictive.append(evaluate(log, ["uniform"], ["ips", "snips"]).to_frame()["value"].tolist())
    assert predictive[0] == pytest.approx(predictive[1], rel=1e-12)
    assert predictive[0] == pytest.approx(predictive[2], rel=1e-12)


def test_folds_are_honest_too() -> None:
    """A model of each row's own reward would have DM and DR equal the mean of what was learned."""
    made = Made(7)
    predictive = evaluate(made.log, ["uniform"], ["dr"], folds=4)["uniform", "dr"]
    ips = evaluate(made.log, ["uniform"], ["ips"])["uniform", "ips"]
    assert abs(predictive.value - ips.value) < 3.0 * ips.std_error


def test_any_estimator_can_be_the_reward_model() -> None:
    made = Made(8)
    log = Log.of(
        made.X, made.arms, 1.0 * (made.rewards > 0.5), propensities=made.logged, names=range(4)
    )
    plain = evaluate(log, [0], ["dr"])["0", "dr"]
    modelled = evaluate(log, [0], ["dr"], reward_model=BayesianLogisticRegression())["0", "dr"]
    ips = evaluate(log, [0], ["ips"])["0", "ips"]
    for predictive in (plain, modelled):
        assert predictive.std_error < ips.std_error
        assert abs(predictive.value - ips.value) < 3.0 * ips.std_error


class Named:
    """What is asked of a bandit: its arms, and their probabilities."""

    def __init__(self, arms: list[str], chances: list[float]) -> None:
        self.arms_ = arms
        self._chances = chances

    def propensities(self, X: Array) -> Array:
        return np.tile(self._chances, (len(X), 1))


def test_arms_of_a_bandit_are_found_by_their_names() -> None:
    rng = np.random.default_rng(11)
    arms = rng.choice(["a", "b"], size=500)
    every = np.full((500, 2), 0.5)
    log = Log.of(np.zeros((500, 1)), arms, rng.random(500), None, every, names=["a", "b"])
    predictive = evaluate(
        log, {"b": Named(["b", "a"], [1.0, 0.0]), "c": Named(["c", "a"], [0.4, 0.6])}
    )
    assert predictive["b", "ips"] == evaluate(log, {"b": "b"})["b", "ips"]
    assert predictive.support["c"].without_support == pytest.approx(0.4)
    assert np.isnan(predictive["c", "ips"].value)


# ---- truth ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_unbiased_over_many_logs() -> None:
    """Fixed propensities: 100 logs of 300 rounds."""
    rng = np.random.default_rng(0)
    chances = np.array([0.7, 0.2, 0.1])
    errors = []
    for _ in range(100):
        arms = rng.choice(3, size=300, p=chances)
        rewards = 1.0 * arms + rng.normal(size=300)
        every = np.tile(chances, (300, 1))
        log = Log.of(np.zeros((300, 0)), arms, rewards, propensities=every, names=range(3))
        predictive = evaluate(log, ["uniform"], ["ips", "dr"])
        errors.append([predictive["uniform", m].value - 1.0 for m in ("ips", "dr")])
    bias = np.mean(errors, axis=0)
    assert np.all(np.abs(bias) < 4.0 * np.std(errors, axis=0) / np.sqrt(len(errors)))
    assert np.std(errors, axis=0)[1] < 0.8 * np.std(errors, axis=0)[0]


def test_policies_and_methods_as_they_may_be_given() -> None:
    made = Made(0, n=500)
    whole = evaluate(made.log, {"policy": lambda X: made.policy[X[:, 0].astype(int)]}, ["ips"])
    for same in (made.policy, made.policy[:, :, None]):  # the second as obp has them
        predictive = evaluate(made.log, same, "IPS")
        assert predictive["policy", "ips"] == whole["policy", "ips"]
    names = evaluate(made.log, {"policy": lambda X: 1 + 0 * X[:, 0].astype(int)}, "ips")
    assert names["policy", "ips"] == evaluate(made.log, {"policy": 1}, "ips")["policy", "ips"]
    assert evaluate(made.log, "uniform", "ips")["uniform", "ips"].value > 0.0
    with pytest.raises(ValueError, match="probabilities of 100 rows"):
        evaluate(made.log, made.policy[:100], "ips")


# ---- where a log can't tell ----------------------------------------------------------------------


def test_without_support_there_is_a_reason_and_no_number() -> None:
    n = 500
    rng = np.random.default_rng(0)
    chances = np.tile([0.5, 0.5, 0.0], (n, 1))
    arms = rng.integers(2, size=n)
    log = Log.of(np.zeros((n, 1)), arms, rng.random(n), None, chances, names=range(3))
    predictive = evaluate(log, {"new": Always(2), "half": "uniform"})
    for estimate in predictive.estimates:
        assert np.isnan(estimate.value)
        assert "no support for" in estimate.note
    assert predictive.support["new"].without_support == pytest.approx(1.0)
    assert predictive.support["half"].without_support == pytest.approx(1.0 / 3.0)


def test_weights_that_average_too_little_are_told() -> None:
    """Only the chosen arm's propensity is known: the rest shows in the mean of the weights."""
    rng = np.random.default_rng(1)
    X = rng.choice([-1.0, 1.0], size=(4000, 1))
    arms = np.where(X[:, 0] > 0.0, 1, rng.integers(2, size=4000))  # arm 0 only where x is -1
    propensity = np.where(X[:, 0] > 0.0, 1.0, 0.5)
    log = Log.of(X, arms, rng.random(4000), propensity)
    predictive = evaluate(log, {"zero": 0}, ["ips"])
    assert predictive.support["zero"].without_support == pytest.approx(0.5, abs=0.05)
    assert np.isnan(predictive["zero", "ips"].value)


def test_weights_that_average_too_much_are_told() -> None:
    rng = np.random.default_rng(2)
    arms = rng.integers(2, size=2000)
    log = Log.of(np.zeros((2000, 1)), arms, rng.random(2000), np.full(2000, 0.3))
    assert "propensities right" in evaluate(log, ["uniform"], ["ips"])["uniform", "ips"].note


def test_without_propensities_replay_and_the_direct_method_work() -> None:
    made = Made(9)
    log = Log.of(made.X, made.arms, made.rewards)
    predictive = evaluate(log, ["uniform"])
    for method in METHODS:
        estimate = predictive["uniform", method]
        if method in ("replay", "dm"):
            assert np.isfinite(estimate.value)
        else:
            assert estimate.note == "the log has no propensities"


def test_replay_of_choices_that_were_not_uniform_is_told() -> None:
    made = Made(12)
    assert "uniform choices only" in made.value("replay").note
    assert evaluate(made.log, ["logged"], ["replay"])["logged", "replay"].note == ""
    made.logged[:] = 0.25
    alike = Log.of(made.X, made.arms, made.rewards, None, made.logged, names=range(4))
    assert evaluate(alike, ["uniform"], ["replay"])["uniform", "replay"].note == ""


def test_few_effective_rows_widen_the_interval() -> None:
    rng = np.random.default_rng(3)
    arms = (rng.random(2000) < 0.002).astype(int)
    arms[:3] = 1
    propensity = np.where(arms == 1, 0.002, 0.998)
    log = Log.of(np.zeros((2000, 0)), arms, rng.normal(size=2000), propensity)
    predictive = evaluate(log, {"rare": 1}, ["snips"])["rare", "snips"]
    assert "effective rows" in predictive.note
    assert predictive.high - predictive.low > 2.0 * 1.96 * predictive.std_error
    assert predictive.anytime_low == -np.inf


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_exact_sequence_holds_at_all_times(level: float) -> None:
    """Heavy weights, rewards in [0, 1]: of 150 logs, looked at six times each."""
    rng = np.random.default_rng(4)
    missed = 0
    for _ in range(150):
        arms = (rng.random(1000) < 0.05).astype(int)
        rewards = (rng.random(1000) < 0.5).astype(float)
        every = np.tile([0.95, 0.05], (1000, 1))
        contexts = np.zeros((1000, 0))
        outside = False
        for n in range(50, 1001, 190):
            log = Log.of(contexts[:n], arms[:n], rewards[:n], None, every[:n], names=[0, 1])
            predictive = evaluate(log, {"one": 1}, ["ips"], level=level, reward_range=(0.0, 1.0))
            estimate = predictive["one", "ips"]
            outside |= not estimate.anytime_low <= 0.5 <= estimate.anytime_high
        missed += outside
    assert missed <= 150 * (1.0 - level)


# ---- what is refused -----------------------------------------------------------------------------


def test_messages() -> None:
    made = Made(10, n=20)
    with pytest.raises(ValueError, match="'ipps' is not a method"):
        evaluate(made.log, ["uniform"], ["ipps"])
    with pytest.raises(TypeError, match="is not a policy"):
        evaluate(made.log, {"what": "greedy"})
    with pytest.raises(ValueError, match="sum to 1"):
        evaluate(made.log, {"bad": lambda X: np.full((len(X), 4), 0.5)}, ["ips"])
    with pytest.raises(ValueError, match=r"shape \(20, 2\)"):
        evaluate(made.log, {"bad": lambda X: np.full((len(X), 2), 0.5)}, ["ips"])
    with pytest.raises(ValueError, match="there are no policies"):
        evaluate(made.log, {})
    with pytest.raises(ValueError, match="outside of reward_range"):
        evaluate(made.log, ["uniform"], ["ips"], reward_range=(0.0, 1.0))
    with pytest.raises(ValueError, match="level is 95"):
        evaluate(made.log, ["uniform"], level=95.0)
    with pytest.raises(ValueError, match="folds is 1"):
        evaluate(made.log, ["uniform"], folds=1)
    with pytest.raises(TypeError, match="reward_model is"):
        evaluate(made.log, ["uniform"], reward_model="linear")
    with pytest.raises(KeyError, match=r"there is no estimate .*: give one of"):
        evaluate(made.log, ["uniform"], ["ips"])["uniform", "dr"]


@pytest.mark.parametrize("policy", [1, "uniform"])
def test_an_arm_without_any_rare_reward_has_an_interval(policy: object) -> None:
    n = 1000
    arms, rewards = (np.arange(n) % 10 == 0) * 1, (np.arange(n) % 100 == 7) * 1.0
    log = Log.of(np.zeros((n, 0)), arms, rewards, None, np.tile([0.9, 0.1], (n, 1)), names=[0, 1])
    for one in evaluate(log, policy, ["ips", "snips", "dr"]).estimates:
        assert one.low < 0.0
        assert one.high > 0.01
        assert one.anytime_high > 0.01
        assert "too few rewards that differ" in one.note
