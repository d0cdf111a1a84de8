"""Intervals from a log: how often they hold, how wide they are, and where rewards are few."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from posterity import BayesianLinearRegression
from posterity.io import TableError
from posterity.off_policy import Evaluation, Log, evaluate
from posterity.off_policy.sums import METHODS, RowSample, compute_jackknife_variance
from posterity.rewards import SharedRewards, reward_model

Array = NDArray[np.float64]
MODELLED = ("dm", "switch_dr", "dr_shrinkage")
WEIGHTED = ("ips", "snips", "dr")


def make_log(rng: np.random.Generator, n: int, p: float, draw: Callable[..., Array]) -> Log:
    """Arm 1 has probability ``p``; ``draw`` gives rewards of a generator, arms and their number."""
    arms = (rng.random(n) < p).astype(int)
    every = np.tile([1.0 - p, p], (n, 1))
    return Log.of(
        rng.normal(size=(n, 1)), arms, draw(rng, arms, n), propensities=every, names=[0, 1]
    )


def share(low: float, high: float) -> Callable[..., Array]:
    return lambda rng, arms, n: 1.0 * (rng.random(n) < np.where(arms == 1, high, low))


def log_normal(rng: np.random.Generator, arms: Any, n: int) -> Array:
    return np.exp(1.5 * rng.normal(size=n) - 1.125)


def revenue(rng: np.random.Generator, arms: Any, n: int) -> Array:
    return 20.0 * np.exp(1.2 * rng.normal(size=n) - 0.72) * (rng.random(n) < 0.05)


def simulate(
    make: Callable[[np.random.Generator], Log], truth: float, logs: int, methods: tuple[str, ...]
) -> tuple[dict[str, float], dict[str, float]]:
    """Share of intervals that hold, and mean half width over 1.96 root mean squared errors."""
    ends = np.zeros((logs, len(methods), 3))
    for seed in range(logs):
        result = evaluate(make(np.random.default_rng(seed)), {"new": 1}, methods, anytime=False)
        every = [result["new", method] for method in methods]
        ends[seed] = [(one.value, one.low, one.high) for one in every]
    value, low, high = np.moveaxis(ends, 2, 0)
    held = np.mean((low <= truth) & (truth <= high), axis=0)
    errors = np.sqrt(np.mean(np.square(value - truth), axis=0))
    width = np.mean(high - low, axis=0) / 2.0 / 1.96 / errors
    return dict(zip(methods, held, strict=True)), dict(zip(methods, width, strict=True))


# ---- the errors of the model ---------------------------------------------------------------------


def test_intervals_contain_the_errors_of_the_model() -> None:
    """A tenth buys of either arm, of which one came in 5% of 2,000 rows: 1.96 errors are .06."""
    result = evaluate(make_log(np.random.default_rng(0), 2000, 0.05, share(0.1, 0.1)), {"new": 1})
    for method in MODELLED:
        one = result["new", method]
        assert 0.04 < (one.high - one.low) / 2.0 < 0.09
        assert one.note == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("p", "low", "high"), [(0.05, 0.1, 0.1), (0.05, 0.1, 0.2), (0.2, 0.5, 0.5)]
)
def test_intervals_of_rates_hold(p: float, low: float, high: float) -> None:
    held, width = simulate(
        lambda rng: make_log(rng, 2000, p, share(low, high)), high, 200, MODELLED + WEIGHTED
    )
    for method in MODELLED + WEIGHTED:
        assert 0.90 <= held[method] <= 0.99
        assert 0.85 <= width[method] <= 1.3


@pytest.mark.slow
def test_intervals_hold_where_an_arm_is_rare_by_context() -> None:
    def make(rng: np.random.Generator) -> Log:
        X = rng.normal(size=(2000, 1))
        p = np.where(X[:, 0] > 0.0, 0.98, 0.02)
        arms = (rng.random(2000) < p).astype(int)
        every = np.column_stack([1.0 - p, p])
        return Log.of(X, arms, rng.normal(size=2000), propensities=every, names=[0, 1])

    held, _ = simulate(make, 0.0, 200, MODELLED + WEIGHTED)
    assert min(held.values()) >= 0.90


@pytest.mark.slow
def test_intervals_of_an_estimator_of_ones_own_hold() -> None:
    held = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        log = make_log(rng, 600, 0.1, lambda rng, arms, n: arms + rng.normal(size=n))
        model = BayesianLinearRegression(prior_precision=0.1)
        one = evaluate(log, {"new": 1}, ["dm"], reward_model=model)["new", "dm"]
        held += one.low <= 1.0 <= one.high
    assert held >= 52


def test_the_direct_method_predicts_by_the_final_model() -> None:
    """With equal arms in one context its value is the arm's own mean, but for the prior's row."""
    rng = np.random.default_rng(1)
    n = 2000
    arms, rewards = (rng.random(n) < 0.05).astype(int), rng.normal(size=n) + 3.0
    log = Log.of(np.zeros((n, 0)), arms, rewards, names=[0, 1])
    one = evaluate(log, {"new": 1}, ["dm"])["new", "dm"]
    own = rewards[arms == 1]
    assert one.value == pytest.approx(own.mean(), abs=0.02)
    assert one.std_error == pytest.approx(own.std() / np.sqrt(len(own)), rel=0.5)


def test_functions_and_folds_say_that_the_errors_of_the_model_are_left_out() -> None:
    log = make_log(np.random.default_rng(2), 1000, 0.3, share(0.3, 0.3))
    for how in ({"reward_model": lambda X: np.full((len(X), 2), 0.3)}, {"folds": 3}):
        result = evaluate(log, {"new": 1}, ["dm", "dr"], **how)  # type: ignore[arg-type]
        assert result["new", "dm"].note == "the interval leaves out the reward model's errors"
        assert result["new", "dr"].note == ""


def test_long_logs_predict_a_sample_by_the_final_model() -> None:
    rng = np.random.default_rng(3)
    n = 12_000
    X, arms = rng.normal(size=(n, 2)), rng.integers(2, size=n)
    rewards = X[:, 0] * arms + rng.normal(size=n)
    log = Log.of(X, arms, rewards, np.full((n, 2), 0.5))

    def best(X: Array) -> NDArray[np.intp]:
        return (X[:, 0] > 0.0).astype(int)

    one = evaluate(log, {"best": best}, ["dm"])["best", "dm"]
    model = SharedRewards(2)
    model.learn(X, arms, rewards)
    expected = model.predict(X)[np.arange(n), best(X)]
    assert one.value == pytest.approx(expected.mean(), abs=0.3 * one.std_error)


@given(seed=st.integers(0, 10**6), offset=st.sampled_from([0.0, 1e5]))
@settings(deadline=None, max_examples=10)
def test_sums_without_a_part_are_a_model_without_it(seed: int, offset: float) -> None:
    rng = np.random.default_rng(seed)
    X, arms = rng.normal(size=(300, 2)) + offset, rng.integers(3, size=300)
    rewards, parts = X[:, 0] - offset + arms + rng.normal(size=300), rng.integers(5, size=300)
    model = SharedRewards(3, 5)
    for some in (slice(100), slice(100, 300)):
        model.learn(X[some], arms[some], rewards[some], parts[some])
    for part, found in enumerate(model.predict_without(X[:5])):
        other = SharedRewards(3)
        kept = parts != part
        other.learn(X[kept], arms[kept], rewards[kept])
        # The prior is that of all rows: as much as one row.
        np.testing.assert_allclose(found, other.predict(X[:5]), atol=0.02)


@given(values=st.lists(st.floats(-100.0, 100.0), min_size=2, max_size=30))
def test_jackknife_of_a_mean_is_its_variance(values: list[float]) -> None:
    x = np.array(values)
    without = (x.sum() - x) / (len(x) - 1)
    expected = np.var(x, ddof=1) / len(x)
    assert compute_jackknife_variance(without[:, None])[0] == pytest.approx(expected, abs=1e-9)


@given(cut=st.integers(0, 60), seed=st.integers(0, 10**6))
def test_a_sample_of_rows_in_parts_is_that_of_all(cut: int, seed: int) -> None:
    numbers = np.random.default_rng(seed).permutation(60).astype(np.uint64)
    values = numbers.astype(float)
    whole, parts = RowSample(8), RowSample(8)
    whole.add(numbers, values)
    for some in (slice(cut), slice(cut, 60)):
        parts.add(numbers[some], values[some])
    assert sorted(whole.columns[0]) == sorted(parts.columns[0]) == list(range(8))


def test_rewards_far_from_zero_cost_no_width() -> None:
    """The first rows, of which a model knows nothing, once made it a thousand times as wide."""
    rng = np.random.default_rng(6)
    log = make_log(rng, 2000, 0.1, lambda rng, arms, n: 1e4 + rng.normal(size=n))
    for one in evaluate(log, {"new": 1}, ["snips", "dr", *MODELLED]).estimates:
        assert one.low <= 1e4 <= one.high
        assert one.high - one.low < 0.5


# ---- the range of rewards ------------------------------------------------------------------------


def test_few_rows_of_an_arm_are_not_continued_beyond_the_rewards() -> None:
    """Two rows of an arm once made a prediction of 353 for rewards of 0 and 1."""
    rng, n = np.random.default_rng(94), 200
    X, arms = rng.normal(size=(n, 1)), (rng.random(n) >= 0.95).astype(int)
    bought = 1.0 * (rng.random(n) < 0.1)
    log = Log.of(X, arms, bought, propensities=np.tile([0.95, 0.05], (n, 1)), names=[0, 1])
    result = evaluate(log, {"new": 1}, ["ips", "dr", "dm"])
    for method in ("dr", "dm"):
        assert 0.0 <= result["new", method].value <= 0.4
        assert result["new", method].low <= 0.1 <= result["new", method].high


def test_predictions_stay_within_the_rewards_seen_or_possible() -> None:
    X, arms = np.array([[0.0], [1.0], [2.0]]), np.array([0, 0, 0])
    far = np.array([[-50.0], [50.0]])
    for model in (None, BayesianLinearRegression(prior_precision=1e-3)):
        seen, possible = reward_model(model, 1), reward_model(model, 1, (-1.0, 4.0))
        for each in (seen, possible):
            each.learn(X, arms, np.array([0.0, 1.0, 2.0]))
        assert seen.predict(far)[:, 0].tolist() == [0.0, 2.0]
        assert possible.predict(far)[:, 0].tolist() == [-1.0, 4.0]


def test_values_outside_of_the_rewards_are_told_and_intervals_cut_to_their_range() -> None:
    arms = np.array([1, 1, 1, 0])
    log = Log.of(np.zeros((4, 0)), arms, [1.0, 1.0, 0.0, 1.0], propensities=np.full((4, 2), 0.5))
    free = evaluate(log, {"new": 1}, ["ips", "dr"])
    cut = evaluate(log, {"new": 1}, METHODS, reward_range=(0.0, 1.0))
    skewed = Log.of(
        np.zeros((4, 0)), arms, [1.0, 1.0, 1.0, 0.0], propensities=np.tile([0.7, 0.3], (4, 1))
    )
    one = evaluate(skewed, {"new": 1}, ["ips"])["new", "ips"]
    assert one.value == pytest.approx(2.5)
    assert "the value is outside of the rewards, 0 to 1" in one.note
    assert free["new", "ips"].high > 1.0
    for one in cut.estimates:
        assert 0.0 <= one.low <= one.high <= 1.0
        assert 0.0 <= one.anytime_low <= one.anytime_high <= 1.0


def test_rewards_outside_of_their_range_are_refused_by_every_method() -> None:
    log = make_log(np.random.default_rng(0), 50, 0.5, lambda rng, arms, n: np.arange(n) / 10.0)
    for method in METHODS:
        with pytest.raises(ValueError, match=r"reward in row 11 is 1\.1, outside of reward_range"):
            evaluate(log, {"new": 1}, [method], reward_range=(0.0, 1.0), anytime=False)


# ---- few and large rewards -----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("draw", [log_normal, revenue])
def test_intervals_of_skewed_rewards_hold_and_are_not_too_wide(draw: Callable[..., Array]) -> None:
    """Three times the largest reward of any arm made them 2.5 to 3 times too wide."""
    held, width = simulate(
        lambda rng: make_log(rng, 2000, 0.1, draw), 1.0, 200, WEIGHTED + MODELLED
    )
    assert min(held.values()) >= 0.92
    assert max(width[method] for method in WEIGHTED) <= 1.3


@pytest.mark.slow
@pytest.mark.parametrize("p", [0.1, 0.01])
def test_intervals_of_rare_rewards_hold(p: float) -> None:
    """1% buy, of 200 and of 20 rows of the arm."""
    held, _ = simulate(
        lambda rng: make_log(rng, 2000, p, share(0.01, 0.01)), 0.01, 200, WEIGHTED + MODELLED
    )
    assert min(held.values()) >= 0.92


def test_tails_that_may_be_heavier_than_all_arms_show_are_told() -> None:
    rng = np.random.default_rng(4)
    light = make_log(rng, 2000, 0.1, lambda rng, arms, n: rng.normal(size=n))
    heavy = make_log(
        rng,
        2000,
        0.1,
        lambda rng, arms, n: np.where(
            arms == 1, np.exp(2.5 * rng.normal(size=n) - 3.125), rng.normal(size=n)
        ),
    )
    told = "an arm has too few rewards that differ to tell their spread"
    for method in (*WEIGHTED, *MODELLED):
        assert evaluate(light, {"new": 1}, [method])["new", method].note == ""
        assert evaluate(heavy, {"new": 1}, [method])["new", method].note == told


@given(seed=st.integers(0, 10**6), cut=st.integers(1, 299))
@settings(deadline=None, max_examples=20)
def test_intervals_of_skewed_rewards_do_not_hang_on_batches(seed: int, cut: int) -> None:
    whole = make_log(np.random.default_rng(seed), 300, 0.2, log_normal)
    rows = whole.collected()
    parts = [rows.of(slice(cut)), rows.of(slice(cut, 300))]
    log = Log(lambda: parts, whole.arms, whole.feature_names, True)
    for method in ("ips", "snips"):
        one, other = (evaluate(each, {"new": 1}, [method])["new", method] for each in (whole, log))
        assert one.note == other.note
        for name in ("value", "low", "high"):
            assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-9, abs=1e-9)


def test_the_scale_of_another_arm_does_not_widen_an_interval() -> None:
    rng = np.random.default_rng(5)
    log = make_log(
        rng, 2000, 0.1, lambda rng, arms, n: np.where(arms == 1, 0.1, 100.0) * rng.normal(size=n)
    )
    one = evaluate(log, {"new": 1}, ["snips"])["new", "snips"]
    assert one.high - one.low < 0.04


# ---- what can't be -------------------------------------------------------------------------------


def test_one_row() -> None:
    log = Log.of([[1.0]], [1], [1.0], propensities=[[0.5, 0.5]], names=[0, 1])
    for one in evaluate(log, {"new": 1}).estimates:
        assert one.low == -np.inf
        assert "rests on 1.0 effective rows" in one.note


def test_an_arm_without_rows() -> None:
    n = 100
    every = np.tile([0.9, 0.1], (n, 1))
    log = Log.of(
        np.zeros((n, 1)), np.zeros(n, int), np.arange(n) % 2, propensities=every, names=[0, 1]
    )
    result = evaluate(log, {"new": 1})
    for one in result.estimates:
        assert np.isnan(one.value)
    assert result["new", "dr"].note == "no decision of the log is one that the policy would make"
    assert "no support for 100%" in result["new", "dm"].note


def test_rewards_that_are_all_alike() -> None:
    log = make_log(np.random.default_rng(0), 300, 0.3, lambda rng, arms, n: np.full(n, 0.1))
    result = evaluate(log, {"new": 1})
    for one in result.estimates:
        assert one.low == -np.inf
        assert "too few rewards that differ" in one.note
    assert "outside" not in result["new", "dm"].note
    with_range: Evaluation = evaluate(log, {"new": 1}, reward_range=(0.0, 1.0))
    assert all((one.low, one.high) == (0.0, 1.0) for one in with_range.estimates)


def test_no_rows_are_refused() -> None:
    with pytest.raises((ValueError, TableError), match="at least one row"):
        Log.of(np.zeros((0, 1)), [], [])
