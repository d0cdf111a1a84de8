"""Experiments: estimates, intervals that hold at all times, stopping, and arms that come wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from scipy.special import gammaln

from posterity import BayesianLogisticRegression
from posterity.experiments import AnytimeValid, ExpectedLoss, Experiment, Rows
from posterity.experiments.ratio import SampleRatio
from posterity.moments import compute_moments, merge_moments
from posterity.sequential import sequence_radius

Array = NDArray[np.float64]


def nothing(X: Array) -> Array:
    """A reward model that expects 0 of each of two arms: no work for simulations."""
    return np.zeros((len(X), 2))


def watched(seed: int, effect: float, looks: int = 100, rows: int = 20) -> Experiment:
    """Looked at often: 100 times, after each 20 rows; it stops as soon as it may."""
    rng = np.random.default_rng(seed)
    test = Experiment([0, 1], nothing)
    for _ in range(looks):
        arms = rng.integers(2, size=rows)
        test = test.observe_rows(arms, effect * arms + rng.normal(size=rows))
        if test.decision_ is not None:
            break
    return test


@pytest.mark.slow
def test_arms_that_are_alike_are_rarely_told_apart_however_often_one_looks() -> None:
    """At most 5% of 60 experiments, but for three standard errors."""
    predictive = sum(watched(seed, 0.0).decision_ is not None for seed in range(60))
    assert predictive <= 60 * 0.05 + 3.0 * np.sqrt(60 * 0.05 * 0.95)


def test_a_difference_is_found_about_as_soon_as_by_a_fixed_sample() -> None:
    """Half a standard deviation: a t-test of 80% power takes 126 rows."""
    made = [watched(seed, 0.5) for seed in range(30)]
    assert all(test.decision_ is not None and test.decision_.arm == 1 for test in made)
    assert np.median([test.n_observations_ for test in made]) < 2.0 * 126


def whole(n: int = 3000, seed: int = 0) -> tuple[NDArray[np.intp], Array, Array]:
    rng = np.random.default_rng(seed)
    arms = rng.choice(3, size=n, p=[0.5, 0.3, 0.2])
    X = rng.normal(size=(n, 2))
    return arms, 10.0 + 2.0 * X[:, 0] + 0.3 * arms + rng.normal(size=n), X


SHARES = {0: 0.5, 1: 0.3, 2: 0.2}


def test_effects_and_covariates() -> None:
    """The truth is inside; covariates that explain four fifths halve the width at least."""
    arms, rewards, X = whole()
    plain = Experiment([0, 1, 2], allocation=SHARES).observe_rows(arms, rewards)
    adjusted = Experiment([0, 1, 2], allocation=SHARES).observe_rows(arms, rewards, X)
    for test in (plain, adjusted):
        for arm, (low, high) in test.interval_.items():
            assert low < 0.3 * arm < high
            assert low < test.effect_[arm] < high
        assert list(test.mean_.values()) == pytest.approx([10.0, 10.3, 10.6], abs=0.3)
    widths = [test.interval_[2][1] - test.interval_[2][0] for test in (plain, adjusted)]
    assert widths[1] < 0.55 * widths[0]


def test_interval_is_that_of_means_where_nothing_is_adjusted() -> None:
    """With rewards expected to be 0 and equal shares: the sequence of 2 s r, s = 1 or -1."""
    rng = np.random.default_rng(1)
    arms, rewards = rng.integers(2, size=500), rng.normal(size=500)
    test = Experiment([0, 1], nothing)
    for start in range(0, 500, 16):
        part = slice(start, start + 16)
        test = test.observe_rows(arms[part], rewards[part])
    scores = (np.where(arms == 1, 2.0, -2.0) * rewards)[
        test.n_observations_ - test._contrasts.rows :
    ]
    radius = sequence_radius(np.sum((scores - scores.mean()) ** 2), len(scores), 0.95) / len(scores)
    assert test.interval_[1] == pytest.approx((scores.mean() - radius, scores.mean() + radius))


def test_probability_best_and_expected_loss_of_two_arms() -> None:
    arms, rewards, _ = whole()
    test = Experiment([0, 1], nothing).observe_rows(arms[arms < 2], rewards[arms < 2] - 10.0)
    squares, rows = test._contrasts.squares[1, 0], test._contrasts.sums[0, 1, 0]
    delta, width = test.effect_[1], np.sqrt(squares) / rows
    z = delta / width
    assert test.probability_best_[1] == pytest.approx(stats.norm.cdf(z), abs=0.01)
    loss = width * stats.norm.pdf(z) - delta * stats.norm.sf(z)
    assert test.expected_loss_[1] == pytest.approx(loss, rel=0.1, abs=1e-4)


def test_order_of_arms_permutes_everything() -> None:
    arms, rewards, X = whole()
    one = Experiment([0, 1, 2], allocation=SHARES).observe_rows(arms, rewards, X)
    other = Experiment([0, 2, 1], allocation=SHARES).observe_rows(arms, rewards, X)
    for arm in (1, 2):
        assert one.interval_[arm] == pytest.approx(other.interval_[arm], rel=1e-6)


@pytest.mark.slow
def test_rows_of_a_bandit() -> None:
    """Propensities change with every row; the intervals hold the truth, whoever chose."""
    held = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        test = Experiment(["a", "b"], lambda X: np.zeros((len(X), 2)), allocation="given")
        shares = np.array([0.5, 0.5])
        ever = True
        for _ in range(25):
            chosen = rng.choice(2, size=20, p=shares)
            rewards = 0.3 * chosen + rng.normal(size=20)
            names = np.array(["a", "b"])[chosen]
            test = test.observe_rows(names, rewards, None, np.tile(shares, (20, 1)))
            low, high = test.interval_["b"]
            ever &= low <= 0.3 <= high
            best = test.probability_best_["b"]
            shares = np.array([1.0 - best, best]) * 0.9 + 0.05
        held += ever
        assert test.sample_ratio_p_value_ > 1e-4
    assert held >= 40 * 0.95 - 3.0 * np.sqrt(40 * 0.05 * 0.95)


# ---- stopping ------------------------------------------------------------------------------------


def test_rules_of_stopping() -> None:
    rng = np.random.default_rng(2)
    arms = rng.integers(2, size=20_000)
    rewards = rng.normal(size=20_000)

    def reason(stop: Any) -> str:
        test = Experiment([0, 1], nothing, stop=stop).observe_rows(arms, rewards)
        assert test.decision_ is not None
        return test.decision_.reason

    assert reason(AnytimeValid(smallest_effect=0.2)) == "is beaten by no other by 0.2 or more"
    assert reason(ExpectedLoss(0.05)).startswith("has an expected loss of")
    assert "has the largest mean of" in reason(AnytimeValid() | Rows(10_000))
    none = Experiment([0, 1], nothing, stop=Rows(30_000)).observe_rows(arms, rewards)
    assert none.decision_ is None
    with pytest.raises(ValueError, match="must be 0 or more"):
        AnytimeValid(smallest_effect=-1.0)


def test_a_decision_stays() -> None:
    rng = np.random.default_rng(3)
    test = Experiment([0, 1], nothing, stop=Rows(50))
    test = test.observe_rows(rng.integers(2, size=60), rng.normal(size=60))
    first = test.decision_
    test = test.observe_rows(rng.integers(2, size=60), rng.normal(size=60))
    assert test.decision_ is first


# ---- arms that come as they should ---------------------------------------------------------------


def test_sample_ratio_is_the_bayes_factor_of_a_multinomial() -> None:
    """Lindon and Malek's: Dirichlet's prior, 100 rows' worth of the shares that were asked for."""
    rng = np.random.default_rng(4)
    shares = np.array([0.5, 0.3, 0.2])
    arms = rng.choice(3, size=400, p=shares)
    test = SampleRatio(3)
    for part in (slice(0, 100), slice(100, 101), slice(101, 400)):
        test.add(arms[part], np.broadcast_to(shares, (len(arms[part]), 3)))
    prior, counts = 100.0 * shares, np.bincount(arms)
    factor = gammaln(100.0) - gammaln(500.0) + np.sum(gammaln(prior + counts) - gammaln(prior))
    assert test.log_wealth == pytest.approx(factor - np.sum(counts * np.log(shares)), abs=1e-9)


def test_a_wrong_ratio_is_found_and_a_right_one_is_not() -> None:
    small = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        right = SampleRatio(2)
        right.add(rng.integers(2, size=3000), np.full((3000, 2), 0.5))
        small += right.p_value < 0.05
    assert small <= 100 * 0.05
    wrong = SampleRatio(2)
    wrong.add((np.random.default_rng(0).random(5000) < 0.45).astype(int), np.full((5000, 2), 0.5))
    assert wrong.p_value < 1e-4


def test_arms_that_are_not_always_allowed() -> None:
    """The third arm joins later, and its effect is learned from the rows that could have it."""
    rng = np.random.default_rng(6)
    shares = np.repeat([[0.5, 0.5, 0.0], [0.4, 0.3, 0.3]], 1000, axis=0)
    arms = (shares.cumsum(axis=1) > rng.random((2000, 1))).argmax(axis=1)
    test = Experiment([0, 1, 2], allocation="given")
    test = test.observe_rows(arms, 1.0 * arms + rng.normal(size=2000), None, shares)
    for arm, (low, high) in test.interval_.items():
        assert low < arm < high
        assert high - low < 1.0
    assert test.sample_ratio_p_value_ > 0.05


# ---- tables, and what is refused -----------------------------------------------------------------


def test_frames_and_rows_are_the_same() -> None:
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    arms, rewards, X = whole()
    frame = pd.DataFrame({"arm": arms, "reward": rewards, "age": X[:, 0], "size": X[:, 1]})
    one = Experiment([0, 1, 2], allocation=SHARES).observe_rows(arms, rewards, X)
    other = Experiment([0, 1, 2], allocation=SHARES)
    for part in (frame[:1000], frame[1000:]):
        other = other.observe(part, covariates=["age", "size"])
    assert other.n_observations_ == 3000
    assert other.interval_[1] == pytest.approx(one.interval_[1], rel=0.02)
    predictive = one.to_frame()
    assert predictive.index.tolist() == [0, 1, 2]
    assert predictive["rows"].sum() == 3000
    with pytest.raises(ValueError, match="earlier rows had"):
        other.observe(frame, covariates=["age"])


def test_labels_and_categories() -> None:
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"variant": rng.choice(["A", "B"], size=2000)})
    frame["device"] = rng.choice(["mobile", "desktop"], size=2000)
    chance = 0.2 + 0.3 * (frame["device"] == "mobile") + 0.15 * (frame["variant"] == "B")
    frame["bought"] = rng.random(2000) < chance
    test = Experiment(["A", "B"], BayesianLogisticRegression())
    test = test.observe(frame, arm="variant", reward="bought", covariates=["device"])
    low, high = test.interval_["B"]
    assert low < 0.15 < high
    assert test.decision_ is not None
    assert test.decision_.arm == "B"


def test_messages_and_nothing_changed() -> None:
    test = Experiment(["A", "B"]).observe_rows(["A", "B"] * 50, np.arange(100.0))
    before = test.interval_, test.n_observations_, test.sample_ratio_p_value_
    with pytest.raises(ValueError, match="the arm in row 1 is 'C'"):
        test.observe_rows(["A", "C"], [0.0, 1.0])
    with pytest.raises(ValueError, match="reward in row 30 is nan"):
        test.observe_rows(["A"] * 40, np.where(np.arange(40) == 30, np.nan, 1.0))
    with pytest.raises(ValueError, match="rewards, X and propensities must have the same length"):
        test.observe_rows(["A"], [0.0, 1.0])
    with pytest.raises(ValueError, match="earlier rows had"):
        test.observe_rows(["A"], [0.0], [[1.0]])
    assert (test.interval_, test.n_observations_, test.sample_ratio_p_value_) == before
    given = Experiment(["A", "B"], allocation="given")
    with pytest.raises(ValueError, match="the rows have no propensities"):
        given.observe_rows(["A"], [0.0])
    assert given.n_observations_ == 0
    with pytest.raises(ValueError, match="give at least two"):
        Experiment(["A", "A"])
    with pytest.raises(ValueError, match="shares must be above 0 and sum to 1"):
        Experiment(["A", "B"], allocation={"A": 0.5, "B": 0.6})
    with pytest.raises(ValueError, match="give a share of each"):
        Experiment(["A", "B"], allocation={"A": 1.0})
    with pytest.raises(ValueError, match='or "given"'):
        Experiment(["A", "B"], allocation="adaptive")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="level is 95"):
        Experiment(["A", "B"], level=95.0)
    with pytest.raises(TypeError, match="stop is 'loss': give a rule"):
        Experiment(["A", "B"], stop="loss")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="planned_rows is 0"):
        Experiment(["A", "B"], planned_rows=0)


def test_nothing_is_told_of_few_rows() -> None:
    test = Experiment(["A", "B"]).observe_rows(["A", "B"] * 5, np.arange(10.0))
    assert test.interval_["B"] == (-np.inf, np.inf)
    assert test.probability_best_ == {"A": 0.5, "B": 0.5}
    assert test.expected_loss_ == {"A": np.inf, "B": np.inf}
    assert test.decision_ is None


def test_an_arm_without_any_rare_reward_is_not_known_exactly() -> None:
    arms = np.array(["old", "new"])[(np.arange(1000) % 10 == 0).astype(int)]
    bought = 1.0 * (np.arange(1000) % 50 == 7)  # never in a row of "new"
    test = Experiment(["old", "new"], allocation={"old": 0.9, "new": 0.1})
    test = test.observe_rows(arms, bought)
    low, high = test.interval_["new"]
    assert low < -0.02 < 0.0 < high
    nobody = Experiment(["old", "new"]).observe_rows(np.tile(["old", "new"], 100), np.zeros(200))
    assert nobody.interval_["new"] == (-np.inf, np.inf)


def test_rows_that_are_no_rows_of_arms_are_refused() -> None:
    arms, rewards = ["a", "b", "a"], [1.0, 0.0, 1.0]
    experiment = Experiment(["a", "b"])
    for changed, message in (
        ({"arms": {"a": 1.0}}, r"arms has shape \(\): give the name of one arm a row"),
        ({"rewards": [1.0, 10**400, 0.0]}, "a reward is not a number"),
        ({"X": np.array([[1.0], [10**400], [0.0]], object)}, "X has a value that is not a number"),
        ({"propensities": np.full((3, 3), 1 / 3)}, r"propensities has shape \(3, 3\): it must be"),
    ):
        with pytest.raises(ValueError, match=message):
            experiment.observe_rows(**{"arms": arms, "rewards": rewards, **changed})
    assert experiment.n_observations_ == 0


def pay(rng: np.random.Generator, n: int, share: float, price: float) -> np.ndarray:
    return price * (rng.random(n) < share)


@pytest.mark.parametrize(
    ("one", "other", "rows"),
    [((0.05, 20.0), (0.005, 200.0), 200), ((0.5, 2.0), (0.002, 500.0), 100)],
)
def test_no_winner_before_an_arm_has_shown_its_rare_rewards(
    one: tuple[float, float], other: tuple[float, float], rows: int
) -> None:
    """Both arms earn 1.00 a row; one of them rarely, and then much."""
    wrong = 0
    for seed in range(30):
        rng, test = np.random.default_rng(seed), Experiment(["monthly", "yearly"], nothing)
        for _ in range(12):
            often = rng.random(rows) < 0.5
            paid = np.where(often, pay(rng, rows, *one), pay(rng, rows, *other))
            test = test.observe_rows(np.where(often, "monthly", "yearly"), paid)
        wrong += test.decision_ is not None
    assert wrong <= 2


def test_planned_end_finds_more_and_keeps_what_it_found() -> None:
    """By the planned rows, a t-test would find the effect in .9, and this in .8 at least."""
    found, runs, rows = 0, 60, 2000
    effect = (1.96 + 1.28) * 2.0 / np.sqrt(rows)
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        test = Experiment(["a", "b"], nothing, planned_rows=rows)
        for _ in range(21):  # the last look is past the end
            arms = rng.integers(2, size=100)
            test = test.observe_rows(
                np.array(["a", "b"])[arms], effect * arms + rng.normal(size=100)
            )
        found += test.decision_ is not None
    assert found >= 0.72 * runs


def test_looks_that_miss_the_planned_rows_know_what_was_known_then() -> None:
    rng = np.random.default_rng(3)
    arms, rewards = rng.integers(2, size=1100), rng.normal(size=1100)
    exact = Experiment([0, 1], nothing, planned_rows=1000).observe_rows(arms[:1000], rewards[:1000])
    past = Experiment([0, 1], nothing, planned_rows=1000).observe_rows(arms, rewards)
    low, high = exact.interval_[1]
    assert past.interval_[1][0] >= low - 1e-12
    assert past.interval_[1][1] <= high + 1e-12


def test_expected_rows_are_those_of_sums_that_go_on() -> None:
    """The same rows again and again: the verdict comes where it was expected, to a twelfth."""
    rng = np.random.default_rng(4)
    arms = rng.integers(2, size=2000)
    rewards = 0.05 * arms + rng.normal(size=2000)
    test = Experiment([0, 1], nothing)
    assert np.isinf(test.expected_rows_)
    test = test.observe_rows(arms, rewards)
    expected = test.expected_rows_
    assert test.decision_ is None
    assert expected > 2000
    while test.decision_ is None:
        test = test.observe_rows(arms, rewards)
    assert test.n_observations_ == pytest.approx(expected, rel=0.12, abs=2000)
    assert test.expected_rows_ == test.n_observations_


def test_it_says_what_a_verdict_waits_for() -> None:
    rng = np.random.default_rng(0)
    arms = np.where(rng.random(2000) < 0.5, "monthly", "yearly")
    paid = np.where(arms == "monthly", pay(rng, 2000, 0.5, 2.0), 0.0)
    paid[np.flatnonzero(arms == "yearly")[-3:]] = 500.0
    test = Experiment(["monthly", "yearly"]).observe_rows(arms, paid)
    assert test.decision_ is None
    assert np.isinf(test.interval_["yearly"]).all()
    assert test.undecided_reason_ == (
        "arm 'yearly' has shown 3 rewards, in effect, that tell its spread, and 20 are needed; "
        "give reward_range= if rewards have one"
    )
    known = Experiment(["monthly", "yearly"], reward_range=(0.0, 500.0)).observe_rows(arms, paid)
    assert np.isfinite(known.interval_["yearly"]).all()
    # Rewards of 0 and 1 have a range: nobody has to buy before it is known that few do.
    bought = (paid > 0.0) & (arms == "monthly")
    test = Experiment(["monthly", "yearly"]).observe_rows(arms, 1.0 * bought)
    assert test.decision_ is not None
    assert test.undecided_reason_ is None


def test_no_verdict_if_arms_came_in_other_shares() -> None:
    rng = np.random.default_rng(1)
    arms = rng.choice(["old", "new"], size=6000, p=[0.9, 0.1])
    earned = rng.normal(size=6000) + (arms == "new")
    test = Experiment(["old", "new"]).observe_rows(arms, earned)
    assert test.decision_ is None
    assert "arms did not come as often as they should have" in repr(test)
    forced = Experiment(["old", "new"], sample_ratio_level=0.0).observe_rows(arms, earned)
    assert forced.decision_ is not None
    told = Experiment(["old", "new"], allocation={"old": 0.9, "new": 0.1})
    assert told.observe_rows(arms, earned).decision_ is not None


def test_rewards_outside_of_their_range_are_refused() -> None:
    test = Experiment(["a", "b"], reward_range=(0.0, 1.0))
    with pytest.raises(ValueError, match="in row 1 is 3, outside of reward_range, 0 to 1"):
        test.observe_rows(["a", "b"] * 20, [0.5, 3.0] * 20)
    assert test.n_observations_ == 0
    with pytest.raises(ValueError, match="its first number must be the smaller one"):
        Experiment(["a", "b"], reward_range=(1.0, 1.0))
    with pytest.raises(ValueError, match="sample_ratio_level is 1"):
        Experiment(["a", "b"], sample_ratio_level=1.0)


@given(seed=st.integers(0, 2**32 - 1), cut=st.integers(0, 50), offset=st.sampled_from([0.0, 1e6]))
def test_moments_of_parts_are_those_of_the_whole(seed: int, cut: int, offset: float) -> None:
    rng = np.random.default_rng(seed)
    values = np.exp(rng.normal(size=50)) + offset
    arms = rng.integers(0, 3, 50)
    first, last = (compute_moments(values[s], arms[s], 3) for s in (slice(cut), slice(cut, 50)))
    whole = compute_moments(values, arms, 3)
    np.testing.assert_allclose(merge_moments(first, last), whole, rtol=1e-6, atol=1e-6)
