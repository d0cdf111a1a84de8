"""Groups whose noise differs, groups that lie far off, and arms with noise of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from twins.unequal_groups import sample_groups

from posterity import GroupedRegression
from posterity.bandits import Bandit
from posterity.evidence.group_variances import Spread, learn_factors
from posterity.files import dumps, loads
from posterity.forgetting import Exponential, Stabilized

Array = NDArray[np.float64]
QUIET, LOUD = 0, 1


def table(seed: int = 0, rows: int = 30, sd: tuple[float, float] = (0.3, 3.0)) -> tuple[Any, ...]:
    """20 groups, every other one of which has the second sd of noise."""
    rng = np.random.default_rng(seed)
    groups = rng.permutation(np.repeat(np.arange(20), rows))
    X, level = rng.normal(size=(len(groups), 1)), 1.0 + 0.5 * rng.normal(size=20)
    expected = level[groups] + 0.5 * X[:, 0]
    return X, expected + np.array(sd)[groups % 2] * rng.normal(size=len(X)), groups, level


def read(model: GroupedRegression, X: Array, groups: Any) -> Array:
    return np.asarray(model.predict_interval(X, groups=groups))


X, y, groups, LEVEL = table()


def test_each_group_has_the_noise_of_its_rows() -> None:
    model = GroupedRegression().fit(X, y, groups=groups)
    order = np.argsort(model.groups_)
    sd = model.noise_precisions_[order] ** -0.5
    assert_allclose(sd[QUIET::2], 0.3, rtol=0.4)
    assert_allclose(sd[LOUD::2], 3.0, rtol=0.4)


def test_quiet_groups_are_known_as_well_as_by_gibbs_sampling() -> None:
    ours, right = [], []
    for seed in range(4):
        X, y, groups, level = table(seed, rows=10)
        model = GroupedRegression().fit(X, y, groups=groups)
        design = np.column_stack([np.ones(len(X)), X])
        drawn = sample_groups(design, y, groups, draws=300, seed=seed).coefficients.mean(axis=0)
        known = np.arange(0, 20, 2)
        ours.append(model.predict(np.zeros((10, 1)), groups=known) - level[known])
        right.append(drawn[known, 0] - level[known])
    assert np.square(ours).mean() < 1.1**2 * np.square(right).mean()


def test_groups_that_are_alike_have_one_noise() -> None:
    X, y, groups, _ = table(sd=(1.0, 1.0))
    model = GroupedRegression().fit(X, y, groups=groups)
    assert_allclose(model.noise_precisions_, model.noise_precision_, rtol=0.0)


@pytest.mark.parametrize("precision", ["shared", "unit information", 1.0])
def test_the_order_of_learning_makes_no_difference(precision: Any) -> None:
    def make() -> GroupedRegression:
        return GroupedRegression(prior_precision=precision)

    whole = make().fit(X, y, groups=groups)
    halves = make().fit(X[::2], y[::2], groups=groups[::2])
    halves.merge(make().fit(X[1::2], y[1::2], groups=groups[1::2]))
    assert_allclose(read(halves, X, groups), read(whole, X, groups), atol=1e-9)
    more = make().fit(X, y, groups=groups).partial_fit(X[:5] + 1.0, y[:5], groups=groups[:5])
    more.unlearn(X[:5] + 1.0, y[:5], groups=groups[:5])
    assert_allclose(read(more, X, groups), read(whole, X, groups), atol=1e-9)
    other = make().fit(X[::-1], y[::-1], groups=19 - groups[::-1])
    assert_allclose(read(other, X, 19 - groups), read(whole, X, groups), atol=1e-9)
    units = make().fit(X, 1e-6 * y, groups=groups)
    assert_allclose(1e6 * read(units, X, groups), read(whole, X, groups), atol=1e-9)


def test_rows_batches_and_predict_then_learn_agree() -> None:
    one, batches, through = GroupedRegression(), GroupedRegression(), GroupedRegression()
    through.predict_then_learn(X, y, groups=groups)
    for row in range(len(X)):
        one.learn_one(X[row], y[row], group=groups[row])
    for first in range(0, len(X), 70):
        some = slice(first, first + 70)
        batches.partial_fit(X[some], y[some], groups=groups[some])
    assert_allclose(read(one, X, groups), read(through, X, groups), atol=1e-9)
    assert_allclose(read(batches, X, groups), read(through, X, groups), atol=1e-9)
    before = dumps(one)
    assert_allclose(read(loads(before), X, groups), read(one, X, groups), atol=1e-12)
    assert dumps(one) == before


def test_the_next_row_is_predicted_with_the_noise_of_its_group() -> None:
    for forgetting in (None, Stabilized(discount=0.98)):
        model = GroupedRegression(forgetting=forgetting)
        sd = model.predict_then_learn(X, y, groups=groups).std()[300:]
        loud = groups[300:] % 2 == LOUD
        assert np.median(sd[~loud]) < 0.5
        assert 2.0 < np.median(sd[loud]) < 4.0


def test_a_single_model_and_average_effects_know_the_noise_of_the_group() -> None:
    model = GroupedRegression().fit(X, y, groups=groups)
    for group in (QUIET, LOUD):
        alone = model.model_of(group).predict_distribution([[0.7]])
        told = model.predict_distribution([[0.7]], groups=[group])
        assert_allclose([alone.mean(), alone.std()], [told.mean(), told.std()], rtol=1e-9)
        rows = groups == group
        effect = model.average_effects(X[rows], groups=groups[rows]).loc["x0"]
        slope = model.summary(groups=[group]).loc["x0"]
        for name in ("mean", "sd"):
            assert_allclose(float(effect[name]), float(slope[name]), rtol=0.15)


def test_a_new_group_has_a_variance_and_may_be_loud() -> None:
    new = GroupedRegression().fit(X, y, groups=groups).predict_distribution([[0.0]], groups=[99])
    assert np.isfinite(new.std()).all()
    assert 3.0 < new.ppf(0.975)[0] - new.mean()[0] < 12.0


def test_effects_of_a_new_group_vary_as_those_of_others() -> None:
    model = GroupedRegression().fit(X, y, groups=groups)
    low, high = model.predict_interval([[0.0]], groups=[99], of="mean")[0]
    assert 1.5 < high - low < 3.5  # 1.96 given the sd of levels, .5, and the means
    low, high = read(model, np.zeros((1, 1)), [99])[0]
    assert 8.5 < high - low < 12.0  # 10.0 given all variances


def test_first_rows_of_a_new_group_in_a_stream_and_one_by_one_agree() -> None:
    model = GroupedRegression()
    model.predict_then_learn(X, y, groups=groups)
    one = loads(dumps(model))
    through = model.predict_then_learn(X[:3], y[:3], groups=[99] * 3)
    for row in range(3):
        alone = one.predict_distribution(X[row : row + 1], groups=[99])
        assert_allclose(through.ppf(0.975)[row], alone.ppf(0.975)[0], rtol=0.05)
        one.learn_one(X[row], y[row], group=99)


@pytest.mark.parametrize("offset", [1e4, 1e6, 1e8])
def test_an_offset_of_targets_changes_no_width(offset: float) -> None:
    quiet = np.arange(0, 20, 2)
    near = read(GroupedRegression().fit(X, y, groups=groups), X[:10], quiet)
    far = read(GroupedRegression().fit(X, y + offset, groups=groups), X[:10], quiet)
    assert_allclose(np.diff(far), np.diff(near), rtol=1e-3)


def test_a_constant_group_is_known_to_be_quiet() -> None:
    more = np.random.default_rng(1).normal(size=(300, 1))
    model = GroupedRegression().fit(
        np.concatenate([X, more]), np.append(y, [5.0] * 300), groups=np.append(groups, [20] * 300)
    )
    low, high = read(model, more[:5], [20] * 5).T
    assert (low > 4.9).all()
    assert (high < 5.1).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("way", ["partial_fit", "predict_then_learn"])
def test_noise_of_groups_that_fade_is_known(way: str) -> None:
    for seed in (0, 5):
        rng = np.random.default_rng(seed)
        groups, X = rng.integers(0, 20, size=300), 3.0 * rng.normal(size=(300, 1))
        y = rng.normal(size=20)[groups] + np.where(groups % 2 == QUIET, 0.2, 2.0) * rng.normal(
            size=300
        )
        weights = np.repeat([100.0, 0.01], [200, 100])
        model = GroupedRegression(forgetting=Exponential(0.5))
        for some in (slice(200), slice(200, 300)):
            given = getattr(model, way)(
                X[some], y[some], groups=groups[some], sample_weight=weights[some]
            )
        assert np.isfinite(read(model, np.zeros((20, 1)), np.arange(20))).all()
        if way == "predict_then_learn":
            assert np.isfinite(given.interval(0.95)).all()


def test_known_noise_and_a_given_prior_of_it_are_common() -> None:
    for how in ({"noise_precision": 1.0}, {"noise_prior": (2.0, 2.0)}):
        model = GroupedRegression(**how).fit(X, y, groups=groups)
        assert np.ptp(model.noise_precisions_) == 0.0


@pytest.mark.parametrize("way", ["fit", "predict_then_learn"])
@pytest.mark.parametrize("noise", [None, 1.0])
def test_a_group_far_off_neither_moves_nor_widens_others(way: str, noise: Any) -> None:
    rng = np.random.default_rng(0)
    level = np.append(5.0, 0.3 * rng.normal(size=19))
    groups = rng.permutation(np.repeat(np.arange(20), [3] + [10] * 19))
    y = level[groups] + rng.normal(size=len(groups))
    model = GroupedRegression(fit_intercept=False, noise_precision=noise)
    getattr(model, way)(np.ones((len(y), 1)), y, groups=groups)
    low, high = model.predict_interval(np.ones((20, 1)), groups=np.arange(20), of="mean").T
    assert low[0] < 5.0 < high[0]
    assert abs(0.5 * (low[0] + high[0]) - y[groups == 0].mean()) < 0.5
    assert np.mean((high - low)[1:]) < 1.1  # 1.2 without a factor of its own


def test_factors_are_those_of_quadrature() -> None:
    rng = np.random.default_rng(0)
    spread = Spread(
        squares=np.square(2.0 * rng.normal(size=(6, 1))),
        own=np.ones((6, 1)),
        other=np.full((6, 1), 3.0),
        count=np.full(6, 9.0),
        residual=9.0 * np.array([0.1, 0.2, 0.1, 8.0, 9.0, 4.0]),
    )
    found = learn_factors(spread)
    assert found.df < 4.0

    logs = np.linspace(-8.0, 8.0, 4001)[:, None] + np.zeros(6)
    away = logs - np.log(found.scale)
    density = spread.log_density(logs) - 0.5 * found.df * (away + np.exp(-away))
    weights = np.exp(density - density.max(axis=0))
    precision = np.sum(weights * np.exp(-away), axis=0) / weights.sum(axis=0)
    assert_allclose(found.values, 1.0 / precision, rtol=0.12)


def test_arms_have_noise_of_their_own() -> None:
    rng, sd = np.random.default_rng(0), np.array([0.2, 0.2, 3.0])
    bandit = Bandit(arms=[0, 1, 2], rng=0)
    W = rng.normal(size=(3, 2))
    for _ in range(400):
        x = rng.normal(size=2)
        decision = bandit.decide(x)
        arm = decision.arm
        bandit = bandit.learn_one(x, arm, float(W[arm] @ x + sd[arm] * rng.normal()))
    beliefs = bandit.beliefs([[1.0, 0.0]])
    assert beliefs.std[0, 2] > 3.0 * beliefs.std[0, :2].max()
    again = loads(dumps(bandit))
    assert_allclose(again.beliefs([[1.0, 0.0]]).std, beliefs.std, rtol=1e-9)
    assert_allclose(again.propensities([[1.0, 0.0]]), bandit.propensities([[1.0, 0.0]]), atol=1e-9)


def test_arms_with_fewer_than_two_rewards_come_first() -> None:
    bandit = Bandit(arms=["a", "b", "c"], rng=0)
    bandit = bandit.learn([[1.0]] * 5, ["a", "a", "b", "b", "c"], [3.0, 2.8, 1.0, 1.2, 0.5])
    assert bandit.propensities([[1.0]])[0, 2] > 0.98
    assert bandit.propensities([[1.0]], policy="thompson")[0, 2] > 0.98
    chosen = [bandit.decide([1.0]).arm for _ in range(50)]
    assert chosen.count("c") > 45
    bandit = bandit.learn([[1.0]], ["c"], [0.4])
    assert bandit.propensities([[1.0]])[0, 2] < 0.5


def test_a_group_whose_targets_are_all_the_same_has_the_noise_of_a_new_one() -> None:
    """It may pay rarely, and has not yet."""
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1, 2], 12)
    y = np.where(groups == 2, 0.0, rng.normal(size=36))
    model = GroupedRegression(prior_mean=0.0, prior_precision="unit information")
    model.fit(np.ones((36, 1)), y, groups=groups)
    variances = 1.0 / model.noise_precisions_
    assert variances[2] > 0.5 * variances[:2].min()
    y[groups == 2] = 0.01 * rng.normal(size=12)
    varied = model.fit(np.ones((36, 1)), y, groups=groups)
    assert 1.0 / varied.noise_precisions_[2] < 0.2 * variances[:2].min()


@pytest.mark.parametrize("way", ["fit", "rows"])
@pytest.mark.parametrize("members", [[0, 1, 0], [0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 1, 2, 2]])
def test_intervals_of_groups_of_a_row_or_two_under_a_given_prior_hold(
    way: str, members: list[int]
) -> None:
    """Also where all other groups tell of the noise by one error."""
    inside, groups = [], np.array(members)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, slopes = rng.normal(size=(2, len(groups), 2)), 0.3 * rng.normal(size=(3, 2))
        y, new = (
            np.sum(rows * slopes[groups], axis=1) + 0.3 * rng.normal(size=len(groups)) + groups
            for rows in X
        )
        model = GroupedRegression(prior_mean=0.0, prior_precision=1.0)
        if way == "fit":
            model.fit(X[0], y, groups=groups)
        else:
            for row, target, group in zip(X[0], y, groups, strict=True):
                model.learn_one(row, target, group=group)
        low, high = model.predict_interval(X[1], 0.9, groups=groups).T
        assert np.isfinite(high - low).all()
        inside.append((low <= new) & (new <= high))
    assert 0.84 < np.mean(inside) < 0.97
