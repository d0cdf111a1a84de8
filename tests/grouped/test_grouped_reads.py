"""Reading changes nothing, and all that follows depends on the rows, not on who learned them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from posterity import GroupedRegression
from posterity.files import dumps, loads
from posterity.forgetting import Stabilized

KINDS: list[dict[str, Any]] = [
    {},
    {"prior_mean": 0.5, "prior_precision": [0.5, 2.0, 1.0]},
    {"noise_precision": 4.0},
    {"prior_mean": 0.0, "fit_intercept": False},
    {"prior_precision": 2.0},
    {"forgetting": Stabilized(half_life=20.0)},
]
N = 420
RNG = np.random.default_rng(11)
X = RNG.normal(size=(N, 3))
X[:150, 1] = 2.0  # begins to vary on the way
SHOPS = {few: RNG.integers(0, few, size=N) for few in (5, 30, 150)}
WEIGHTS = RNG.choice([0.5, 1.0, 2.0], N)

READS: list[Callable[[GroupedRegression, Any], Any]] = [
    lambda model, keys: model.predict(X[:7], groups=keys[:7]),
    lambda model, keys: model.predict(X, groups=keys),
    lambda model, keys: model.predict_distribution(X[:7], groups=keys[:7]).std(),
    lambda model, keys: model.predict_interval(X[:7], groups=keys[:7] + 1000),
    lambda model, keys: model.predict_one(X[3], group=int(keys[3])),
    lambda model, keys: model.predict_one(X[3], group=1000),
    lambda model, keys: model.model_of(int(keys[0])).coef_,
    lambda model, keys: (model.coef_, model.intercept_, model.shared_mean_),
    lambda model, keys: (model.shared_covariance_, model.noise_precision_, model.log_evidence_),
    lambda model, keys: (model.groups_, model.counts_, model.n_observations_),
]


def problem(groups: int) -> tuple[np.ndarray, np.ndarray]:
    keys = SHOPS[groups]
    w = np.random.default_rng(groups).normal(1.0, 0.5, size=(groups, 3))
    return np.sum(X * w[keys], axis=1) + 0.5 * np.random.default_rng(1).normal(size=N), keys


def answers(model: GroupedRegression, keys: Any, y: Any, start: int) -> np.ndarray:
    """What is read, and what is told of the rows that come next."""
    asked = np.append(keys[:20], [1000, 1001])
    read = model.predict_distribution(X[:22], groups=asked)
    read_ = [read.mean(), read.std(), [model.noise_precision_], model.coef_.ravel()]
    model = copy.deepcopy(model)
    rows = slice(start, start + 60)
    predictive = model.predict_then_learn(X[rows], y[rows], groups=keys[rows])
    return np.concatenate([*read_, predictive.mean(), predictive.std(), predictive.logpdf(y[rows])])


VERBS = ["fit", "partial_fit", "predict_then_learn"]


@pytest.mark.parametrize(("kind", "first"), list(zip(KINDS, 2 * VERBS, strict=True)), ids=str)
@pytest.mark.parametrize("groups", SHOPS)
def test_reads_change_neither_the_file_nor_what_follows(
    kind: dict[str, Any], groups: int, first: str
) -> None:
    y, keys = problem(groups)
    model = GroupedRegression(**kind)
    getattr(model, first)(X[:200], y[:200], groups=keys[:200])
    twin = copy.deepcopy(model)
    for i in range(200, 205):
        before = dumps(model)
        for j in range(len(READS)):
            READS[(i + j) % len(READS)](model, keys)
            assert dumps(model) == before
        one, many = (
            model.predict_one(X[i], group=int(keys[i])),
            model.predict(X[i : i + 1], groups=keys[i : i + 1]),
        )
        assert one == pytest.approx(many[0], rel=1e-9, abs=1e-12)
        if i % 4:
            model.learn_one(X[i], y[i], group=int(keys[i]))
            twin.learn_one(X[i], y[i], group=int(keys[i]))
        else:
            model.partial_fit(X[i : i + 1], y[i : i + 1], groups=keys[i : i + 1])
            twin.partial_fit(X[i : i + 1], y[i : i + 1], groups=keys[i : i + 1])
    saved = loads(dumps(model))
    expected = answers(twin, keys, y, 205)
    np.testing.assert_array_equal(answers(model, keys, y, 205), expected)
    np.testing.assert_array_equal(answers(saved, keys, y, 205), expected)


@pytest.mark.parametrize(("kind", "start"), list(zip(KINDS, 2 * [0, 3, 160], strict=True)), ids=str)
@pytest.mark.parametrize("groups", SHOPS)
def test_rows_are_the_same_whoever_learned_them(
    kind: dict[str, Any], groups: int, start: int
) -> None:
    y, keys = problem(groups)
    begun = GroupedRegression(**kind)
    if start:
        begun.fit(X[:start], y[:start], groups=keys[:start])
    loop, batch, predictive, parts = (copy.deepcopy(begun) for _ in range(4))
    stop = 300

    def learn(model: GroupedRegression, verb: str, first: int, last: int) -> None:
        some = slice(first, last)
        getattr(model, verb)(X[some], y[some], WEIGHTS[some], groups=keys[some])

    for i in range(start, stop):
        loop.learn_one(X[i], y[i], WEIGHTS[i], group=int(keys[i]))
        if i % 30 == 0:
            loop.predict_one(X[i], group=int(keys[i]))
    learn(batch, "partial_fit", start, stop)
    learn(predictive, "predict_then_learn", start, stop)
    learn(parts, "partial_fit", start, 170)
    learn(parts, "predict_then_learn", 170, 200)
    learn(parts, "partial_fit", 200, 210)
    learn(parts, "predict_then_learn", 210, 211)
    learn(parts, "partial_fit", 211, stop)
    expected = answers(batch, keys, y, stop)
    for model in (loop, predictive, parts):
        np.testing.assert_allclose(answers(model, keys, y, stop), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("groups", SHOPS)
def test_a_fit_is_read_from_all_rows(groups: int) -> None:
    y, keys = problem(groups)
    model = GroupedRegression().fit(X, y, groups=keys)
    points = np.zeros((model.n_groups_, 3))
    np.testing.assert_allclose(
        model.predict(points, groups=model.groups_), model.intercept_, rtol=1e-9, atol=1e-12
    )
    other = GroupedRegression().fit(X[::-1], y[::-1], groups=keys[::-1])
    np.testing.assert_allclose(
        model.predict(X, groups=keys), other.predict(X, groups=keys), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("groups", SHOPS)
def test_a_group_and_a_direction_may_leave(groups: int) -> None:
    """All rows of a group are unlearned, and those that alone carried a direction."""
    y, keys = problem(groups)
    rest = keys[:150] != keys[0]
    model = GroupedRegression().partial_fit(X[:150], y[:150], groups=keys[:150])
    model.predict_then_learn(X[150:154], y[150:154], groups=keys[150:154])
    model.unlearn(X[150:154], y[150:154], groups=keys[150:154])
    gone = ~rest
    model.unlearn(X[:150][gone], y[:150][gone], groups=keys[:150][gone])
    other = GroupedRegression().fit(X[:150][rest], y[:150][rest], groups=keys[:150][rest])
    assert set(model.groups_) == set(other.groups_)
    np.testing.assert_allclose(
        model.predict(X[:150], groups=keys[:150]),
        other.predict(X[:150], groups=keys[:150]),
        rtol=1e-4,
        atol=1e-4,
    )
    predictive = model.predict_then_learn(X[150:200], y[150:200], groups=keys[150:200])
    assert np.isfinite(predictive.std()[10:]).all()
    with pytest.raises(ValueError, match=r"never learned"):
        other.unlearn(X[200:201], y[200:201], groups=other.groups_[:1])


def test_intervals_of_the_mean_leave_out_the_noise() -> None:
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(300, 2)), rng.integers(30, size=300)
    model = GroupedRegression().fit(X, X[:, 0] + rng.normal(size=300), groups=groups)
    mean = model.predict_interval(X, 0.9, groups=groups, of="mean")
    predictive = model.predict_mean_distribution(X, groups=groups).interval(0.9)
    np.testing.assert_array_equal(mean, np.stack(predictive, axis=1))
    assert (np.ptp(mean, axis=1) < np.ptp(model.predict_interval(X, 0.9, groups=groups), 1)).all()
    with pytest.raises(ValueError, match="of is 'line': it must be 'observation' or 'mean'"):
        model.predict_interval(X, groups=groups, of="line")  # type: ignore[arg-type]


def test_the_table_of_one_group_by_its_name() -> None:
    pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    model = GroupedRegression().fit(X, y, groups=np.repeat(["s1", "s2"], 20))
    one, listed = model.summary(groups="s1"), model.summary(groups=["s1"])
    assert one.equals(listed)
    assert set(one["group"]) == {"s1"}
    with pytest.raises(ValueError, match="summary of no groups: name at least one"):
        model.summary(groups=[])
