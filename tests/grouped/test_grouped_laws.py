"""The order, the batches and the place in which rows are learned make no difference."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from posterity import BayesianLinearRegression, GroupedRegression
from posterity.files import dumps, loads
from posterity.forgetting import Exponential, Stabilized

SEEDS = st.integers(0, 10**6)
GIVEN = {"prior_mean": 0.5, "prior_precision": [0.5, 2.0]}
KINDS: list[dict[str, Any]] = [
    {},
    GIVEN,
    {"noise_precision": 4.0},
    {**GIVEN, "noise_precision": 4.0, "fit_intercept": False},
    {"prior_mean": 0.0},
    {"prior_precision": 2.0},
]
SETTINGS = st.sampled_from(KINDS)


def problem(seed: int, n: int = 120, groups: int = 9) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    keys = rng.integers(0, groups, size=n)
    X = rng.normal(size=(n, 2))
    coefficients = rng.normal([1.0, -2.0], size=(groups, 2))
    y = np.sum(X * coefficients[keys], axis=1) + keys * 0.1 + 0.5 * rng.normal(size=n)
    return X, y, keys


def assert_same(one: GroupedRegression, other: GroupedRegression, rtol: float = 1e-5) -> None:
    assert sorted(one.groups_.tolist()) == sorted(other.groups_.tolist())
    points = np.random.default_rng(0).normal(size=(one.n_groups_ + 1, 2))
    keys = [*sorted(one.groups_.tolist()), 10_000]
    mine, theirs = (m.predict_distribution(points, groups=keys) for m in (one, other))
    assert np.allclose(mine.mean(), theirs.mean(), rtol=rtol, atol=rtol)
    assert np.allclose(mine.interval(0.5), theirs.interval(0.5), rtol=rtol, atol=rtol)
    assert one.noise_precision_ == pytest.approx(other.noise_precision_, rel=rtol)
    assert one.log_evidence_ == pytest.approx(other.log_evidence_, rel=rtol, abs=1e-4)
    assert one.n_observations_ == pytest.approx(other.n_observations_)


def settled(model: GroupedRegression) -> GroupedRegression:
    """The same, read from all rows: predictions of a stream are those of its last turn."""
    return GroupedRegression(**model.get_params()).merge(model)


@settings(max_examples=40)
@given(SEEDS, SETTINGS)
def test_batch_loop_stream_and_merge_agree(seed: int, kind: dict[str, Any]) -> None:
    X, y, keys = problem(seed)
    whole = GroupedRegression(**kind).fit(X, y, groups=keys)
    assert_same(whole, GroupedRegression(**kind).fit(X[::-1], y[::-1], groups=keys[::-1]))
    loop = GroupedRegression(**kind)
    for i in range(len(X)):
        loop.learn_one(X[i], y[i], group=keys[i])
        if i % 50 == 7:
            loop.predict_one(X[i], group=keys[i])
    assert_same(whole, settled(loop))
    stream = GroupedRegression(**kind)
    for part in (slice(0, 30), slice(30, 31), slice(31, 120)):
        stream.predict_then_learn(X[part], y[part], groups=keys[part])
    assert_same(whole, settled(stream))
    merged = GroupedRegression(**kind).fit(X[:50], y[:50], groups=keys[:50])
    merged.merge(GroupedRegression(**kind).fit(X[50:], y[50:], groups=keys[50:]))
    assert_same(whole, merged)


@given(SEEDS, SETTINGS)
def test_unlearning_undoes_learning(seed: int, kind: dict[str, Any]) -> None:
    X, y, keys = problem(seed)
    keys[100:] += 5  # some groups only in the rows that go
    whole = GroupedRegression(**kind).fit(X, y, groups=keys)
    whole.predict(X, groups=keys)
    rest = GroupedRegression(**kind).fit(X[:100], y[:100], groups=keys[:100])
    assert_same(whole.unlearn(X[100:], y[100:], groups=keys[100:]), rest)


@given(SEEDS, SETTINGS)
def test_weight_two_is_the_row_twice(seed: int, kind: dict[str, Any]) -> None:
    X, y, keys = problem(seed, n=60)
    weights = np.random.default_rng(seed).integers(0, 3, size=60)
    weighted = GroupedRegression(**kind).fit(X, y, weights, groups=keys)
    repeated = (np.repeat(array, weights, axis=0) for array in (X, y, keys))
    one, other, third = repeated
    assert_same(weighted, GroupedRegression(**kind).fit(one, other, groups=third))
    stream = GroupedRegression(**kind)
    stream.predict_then_learn(X, y, weights, groups=keys)
    assert_same(weighted, settled(stream))


@given(SEEDS, SETTINGS, st.booleans())
def test_evicting_and_merging_back_changes_nothing(
    seed: int, kind: dict[str, Any], saved: bool
) -> None:
    X, y, keys = problem(seed)
    keys[:60] %= 4
    whole = GroupedRegression(**kind).fit(X, y, groups=keys)
    model = copy.deepcopy(whole)
    gone = model.evict(groups=[0, 3]) if seed % 2 else model.evict(idle=8)
    assert gone.n_groups_ + model.n_groups_ == whole.n_groups_
    model.merge(loads(dumps(gone)) if saved else gone)
    assert_same(whole, model)


@given(SEEDS, st.booleans(), st.sampled_from([0.0, 1.5]))
def test_with_a_given_prior_each_group_is_a_model_of_its_own(
    seed: int, fit_intercept: bool, precision: float
) -> None:
    X, y, keys = problem(seed)
    kind = {
        "prior_mean": 0.3,
        "prior_precision": precision,
        "noise_precision": 4.0,
        "fit_intercept": fit_intercept,
    }
    model = GroupedRegression(**kind)
    predictive = model.predict_then_learn(X, y, groups=keys)
    evidence = 0.0
    for slot, key in enumerate(model.groups_):
        some = keys == key
        own = BayesianLinearRegression(**kind)
        before = own.predict_then_learn(X[some], y[some])
        assert np.allclose(predictive.mean()[some], before.mean(), atol=1e-7)
        assert np.allclose(predictive.std()[some], before.std(), rtol=1e-7)
        assert np.allclose(model.coef_[slot], own.coef_)
        assert np.allclose(model.intercept_[slot], own.intercept_)
        one = model.model_of(key)
        assert one.log_evidence_ == pytest.approx(own.log_evidence_)
        assert np.allclose(one.predict_interval(X[:5]), own.predict_interval(X[:5]))
        evidence += own.log_evidence_
    assert model.log_evidence_ == pytest.approx(evidence)


@given(SEEDS)
def test_one_group_without_a_prior_is_least_squares(seed: int) -> None:
    X, y, _ = problem(seed, n=20)
    ours = GroupedRegression().fit(X, y)
    plain = BayesianLinearRegression(prior_precision=0.0).fit(X, y)
    assert np.allclose(ours.coef_[0], plain.coef_)
    assert np.allclose(ours.predict_interval(X), plain.predict_interval(X))
    assert ours.noise_precision_ == pytest.approx(plain.noise_precision_)


@given(SEEDS, st.sampled_from([1e-6, 1e6]), st.integers(0, 1))
def test_units_do_not_matter(seed: int, unit: float, column: int) -> None:
    X, y, keys = problem(seed)
    plain = GroupedRegression().fit(X, y, groups=keys)
    scaled = X.copy()
    scaled[:, column] = unit * (X[:, column] + 3.0)
    other = GroupedRegression().fit(scaled, 100.0 * y, groups=keys)
    one = plain.predict_distribution(X, groups=keys)
    two = other.predict_distribution(scaled, groups=keys)
    assert np.allclose(100.0 * one.mean(), two.mean(), rtol=1e-4, atol=1e-3)
    assert np.allclose(100.0 * one.std(), two.std(), rtol=1e-4)


@settings(max_examples=20)
@given(SEEDS, st.sampled_from([Exponential, Stabilized]))
def test_data_fade_in_their_groups_and_the_prior_stays(seed: int, strategy: type) -> None:
    X, y, keys = problem(seed)
    kind = {**GIVEN, "noise_precision": 4.0, "fit_intercept": False}
    model = GroupedRegression(**kind, forgetting=strategy(discount=0.9))
    model.fit(X[:40], y[:40], groups=keys[:40])
    model.predict_then_learn(X[40:], y[40:], groups=keys[40:])
    for slot, key in enumerate(model.groups_):
        some = keys == key
        own = BayesianLinearRegression(**kind, forgetting=Stabilized(discount=0.9))
        own.fit(X[some], y[some])
        assert np.allclose(model.coef_[slot], own.coef_)
        assert model.counts_[slot] == pytest.approx(own.n_effective_)


@pytest.mark.parametrize("kind", [*KINDS, {"forgetting": Stabilized(half_life=20.0)}], ids=str)
@pytest.mark.parametrize("used", [False, True])
def test_a_saved_model_goes_on_bit_for_bit(kind: dict[str, Any], used: bool) -> None:
    X, y, keys = problem(3)
    model = GroupedRegression(**kind).fit(X[:80], y[:80], groups=keys[:80])
    if used:
        model.predict(X, groups=keys)
        model.partial_fit(X[80:85], y[80:85], groups=keys[80:85])
    content = dumps(model)
    copies = [loads(content), copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    expected = model.predict_then_learn(X[85:], y[85:], groups=keys[85:])
    for other in copies:
        assert dumps(other) == content
        predictive = other.predict_then_learn(X[85:], y[85:], groups=keys[85:])
        assert np.array_equal(predictive.logpdf(y[85:]), expected.logpdf(y[85:]))
        assert np.array_equal(other.coef_, model.coef_)


def test_a_plain_model_goes_on_where_its_group_stood() -> None:
    X, y, keys = problem(5, n=200)
    model = GroupedRegression().fit(X[:150], y[:150], groups=keys[:150])
    one = model.model_of(4)
    expected = model.predict_interval(X[:6], groups=[4] * 6)
    assert np.allclose(one.predict_interval(X[:6]), expected, rtol=1e-3)
    rows = np.flatnonzero(keys[150:] == 4) + 150
    assert one.partial_fit(X[rows], y[rows]).n_observations_ == np.count_nonzero(keys == 4)
    assert loads(dumps(one)).intercept_ == one.intercept_


def test_many_groups_in_few_or_many_calls_and_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    n, groups = 60_000, 3000
    keys, X = rng.integers(0, groups, size=n), rng.normal(size=(n, 2))
    y = (1.0 + rng.normal(size=groups))[keys] + X[:, 0] + rng.normal(size=n)
    predictive = []
    for threads in ("1", "3"):
        monkeypatch.setenv("POSTERITY_NUM_THREADS", threads)
        model = GroupedRegression()
        predictive.append(model.predict_then_learn(X, y, groups=keys).logpdf(y))
    assert np.allclose(predictive[0], predictive[1])
    whole = GroupedRegression().fit(X, y, groups=keys)
    assert np.allclose(model.coef_, whole.coef_, rtol=1e-4, atol=1e-4)
    assert model.log_evidence_ == pytest.approx(whole.log_evidence_, rel=1e-6)
    whole.partial_fit(X[:50], y[:50], groups=keys[:50])  # few rows: the prior may lag behind
    late = whole.predict(X[:100], groups=keys[:100])
    whole.coef_  # noqa: B018 - reads all, so that the prior is learned anew
    assert np.allclose(late, whole.predict(X[:100], groups=keys[:100]), atol=0.01)


def test_scikit_learn_accepts_it() -> None:
    check_estimator(GroupedRegression(), on_skip=None)
    model = GroupedRegression("shop", prior_mean=1.0, noise_precision=2.0)
    assert clone(model).get_params() == model.get_params()


@pytest.mark.parametrize("extra", ["constant", "zero", "repeated", "sum"])
def test_a_column_that_says_nothing_new_changes_nothing(extra: str) -> None:
    rng = np.random.default_rng(3)
    X, groups = rng.normal(size=(90, 2)), rng.integers(0, 12, size=90)
    y = 1.0 + X[:, 0] + 0.5 * groups + rng.normal(size=90)
    more = {
        "constant": np.full(90, 7.0),
        "zero": np.zeros(90),
        "repeated": X[:, 0],
        "sum": X[:, 0] + X[:, 1],
    }[extra]
    plain = GroupedRegression().fit(X, y, groups=groups)
    wide = np.column_stack([X, more])
    other = GroupedRegression().fit(wide, y, groups=groups)
    asked = np.append(groups[:8], [99, 99])
    ends = plain.predict_interval(X[:10], groups=asked)
    np.testing.assert_allclose(other.predict_interval(wide[:10], groups=asked), ends, rtol=1e-6)
    wide[:10, 2] += 1.0  # a direction that no row had
    assert np.isinf(other.predict_interval(wide[:10], groups=asked)).all()


@pytest.mark.parametrize("forgetting", [Exponential(0.97), Stabilized(0.97)])
def test_a_row_alone_fades_as_a_batch_of_one(forgetting: Any) -> None:
    X, y, keys = problem(0, n=160, groups=30)
    one = GroupedRegression(forgetting=forgetting).fit(X[:100], y[:100], groups=keys[:100])
    other = copy.deepcopy(one)
    weights = np.where(np.arange(160) % 5, 1.0, 2.0)
    for i in range(100, 160):
        here = slice(i, i + 1)
        one.learn_one(X[i], y[i], weights[i], group=keys[i])
        other.partial_fit(X[here], y[here], weights[here], groups=keys[here])
    mine, theirs = one._posterior.bank, other._posterior.bank
    np.testing.assert_allclose(mine.packed, theirs.packed, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(mine.count, theirs.count, rtol=1e-12)
    assert mine.last.tolist() == theirs.last.tolist()
    before = dumps(one)
    for x, value in (([np.nan, 0.0], 1.0), ([0.0, 0.0], np.nan), ([0.0, 1e200], 1.0)):
        with pytest.raises(ValueError, match=r"NaN|nan|finite|beyond"):
            one.learn_one(x, value, group=keys[0])
    assert dumps(one) == before
