"""Laws of the factorization machine, and what it says beside outside truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from posterity import BayesianLinearRegression, files
from posterity.distributions import Normal, StudentT
from posterity.factorization import BayesianFactorizationMachine
from posterity.factorization._sweeps import (
    LevelWeights,
    SideRows,
    compute_moments,
    sum_moments,
    update_levels,
)
from posterity.kernel import MachineRows

Array = NDArray[np.float64]


def rated(seed: int = 0, n: int = 1500, rank: int = 2) -> tuple[NDArray[np.intp], Array]:
    """Ratings of 40 users and 30 items."""
    rng = np.random.default_rng(seed)
    users, items = rng.normal(size=(40, rank)), rng.normal(size=(30, rank))
    X = np.stack([rng.integers(0, 40, n), rng.integers(0, 30, n)], axis=1)
    means = 3.0 + rng.normal(size=40)[X[:, 0]] + (users[X[:, 0]] * items[X[:, 1]]).sum(axis=1)
    return X, means + rng.normal(scale=0.5, size=n)


def random_sides(seed: int, sizes: list[int], rank: int, spread: float = 0.2) -> LevelWeights:
    rng, p = np.random.default_rng(seed), rank + 1
    roots = [spread * rng.normal(size=(size, p, p)) for size in sizes]
    return LevelWeights(
        [rng.normal(size=(size, p)) for size in sizes],
        [root @ root.transpose(0, 2, 1) for root in roots],
        [np.zeros((size, p, p)) for size in sizes],
        [np.zeros((size, p)) for size in sizes],
        0.3 * rng.normal(size=(len(sizes), p)),
        rng.uniform(0.5, 3.0, size=(len(sizes), p)),
        0.7,
        0.0,
    )


@pytest.mark.parametrize("n_sides", [1, 2, 3])
@pytest.mark.parametrize("rank", [0, 3])
def test_the_bound_rises(n_sides: int, rank: int) -> None:
    rng = np.random.default_rng(n_sides)
    X = rng.integers(0, 12, size=(300, n_sides))
    y = rng.normal(size=12)[X].sum(axis=1) + X.prod(axis=1) / 40.0 + rng.normal(size=300)
    model = BayesianFactorizationMachine(rank, tolerance=0.0).fit(X, y)
    assert len(model.bounds_) > 1
    assert np.diff(model.bounds_).min() > -1e-8 * np.abs(model.bounds_).max()


@given(seed=st.integers(0, 10_000), rank=st.integers(0, 4), noise=st.floats(0.1, 10.0))
@settings(deadline=None, max_examples=25)
def test_one_side_fixed_is_linear_regression(seed: int, rank: int, noise: float) -> None:
    rng, sizes = np.random.default_rng(seed), [3, 5, 2]
    sides = random_sides(seed, sizes, rank, spread=0.0)
    codes = np.stack([rng.integers(0, size, 40) for size in sizes], axis=1)
    values = np.stack([np.ones(40), np.ones(40), rng.normal(size=40)], axis=1)
    y = rng.normal(size=40)
    theta = [sides.means[s][codes[:, s]] * values[:, s, None] for s in (1, 2)]
    features = np.column_stack([np.ones(40), theta[0][:, 1:] + theta[1][:, 1:]])
    rest = y - 0.7 - theta[0][:, 0] - theta[1][:, 0]
    rest -= (theta[0][:, 1:] * theta[1][:, 1:]).sum(axis=1)
    rows = SideRows.of(0, codes, values, y, sizes)
    update_levels(rows, sides, noise, sum_moments(rows, sides))
    for level in np.unique(codes[:, 0]):
        own = codes[:, 0] == level
        plain = BayesianLinearRegression(
            prior_mean=sides.prior_means[0],
            prior_precision=sides.prior_precisions[0],
            noise_precision=noise,
            fit_intercept=False,
        ).fit(features[own], rest[own])
        np.testing.assert_allclose(sides.means[0][level], plain.coef_, rtol=1e-10, atol=1e-10)
        points = rng.normal(size=(20, rank + 1))
        spread = np.einsum("ni,ij,nj->n", points, sides.covariances[0][level], points)
        variance = plain.predict_distribution(points).std() ** 2 - 1.0 / noise
        np.testing.assert_allclose(spread, variance, rtol=1e-10, atol=1e-10)


def test_moments_are_those_of_draws() -> None:
    rng, sizes = np.random.default_rng(0), [2, 3, 2]
    sides = random_sides(1, sizes, 2, spread=0.4)
    codes, values = np.array([[0, 2, 1]]), np.array([[1.0, 1.0, -0.6]])
    drawn = [
        values[0, s]
        * rng.multivariate_normal(sides.means[s][c], sides.covariances[s][c], size=400_000)
        for s, c in enumerate(codes[0])
    ]
    outcome = 0.7 + sum(one[:, 0] for one in drawn)
    for s in range(3):
        for t in range(s):
            outcome = outcome + (drawn[s][:, 1:] * drawn[t][:, 1:]).sum(axis=1)
    mean, variance = compute_moments(codes, values, sides)
    error = outcome.std() / np.sqrt(len(outcome))
    assert abs(mean[0] - outcome.mean()) < 4.0 * error
    assert variance[0] == pytest.approx(outcome.var(), rel=0.02)


@given(seed=st.integers(0, 10_000))
@settings(deadline=None, max_examples=20)
def test_rotated_factors_predict_the_same(seed: int) -> None:
    rng, sizes = np.random.default_rng(seed), [4, 5]
    sides = random_sides(seed, sizes, 3)
    turn = np.eye(4)
    turn[1:, 1:] = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    turned = sides.copy()
    for s in range(2):
        turned.means[s] = sides.means[s] @ turn
        turned.covariances[s] = turn.T @ sides.covariances[s] @ turn
    codes = np.stack([rng.integers(0, size, 20) for size in sizes], axis=1)
    for mine, theirs in zip(
        compute_moments(codes, np.ones((20, 2)), sides),
        compute_moments(codes, np.ones((20, 2)), turned),
        strict=True,
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10)


def test_rank_zero_is_crossed_effects() -> None:
    """The posterior of a dense Bayesian regression on indicators, of the learned precisions."""
    X, y = rated(n=600)
    model = BayesianFactorizationMachine(0, tolerance=1e-13, max_sweeps=5000).fit(X, y)
    known = model._posterior
    indicators = np.hstack([np.eye(40)[X[:, 0]], np.eye(30)[X[:, 1]]])
    assert [len(one) for one in model.levels_] == [40, 30]
    precision = np.repeat(known.prior_precisions[:, 0], [40, 30]) / known.unit**2
    dense = BayesianLinearRegression(
        prior_precision=precision, noise_precision=model.noise_precision_
    ).fit(indicators, y)
    np.testing.assert_allclose(model.predict(X), dense.predict(indicators), atol=1e-4)


def test_users_and_items_may_be_swapped() -> None:
    X, y = rated()
    one = BayesianFactorizationMachine(0, tolerance=1e-12, max_sweeps=2000).fit(X, y)
    other = BayesianFactorizationMachine(0, tolerance=1e-12, max_sweeps=2000).fit(X[:, ::-1], y)
    np.testing.assert_allclose(one.predict(X), other.predict(X[:, ::-1]), atol=1e-5)
    np.testing.assert_allclose(
        one.predict_interval(X), other.predict_interval(X[:, ::-1]), atol=1e-4
    )


def test_factors_find_what_weights_cannot_and_intervals_hold() -> None:
    X, y = rated(n=2400)
    train, test = slice(0, 2000), slice(2000, None)
    flat = BayesianFactorizationMachine(0).fit(X[train], y[train])
    model = BayesianFactorizationMachine("auto").fit(X[train], y[train])
    error = np.sqrt(np.mean((model.predict(X[test]) - y[test]) ** 2))
    assert model.rank_ in (2, 4)
    assert error < 0.6 < np.sqrt(np.mean((flat.predict(X[test]) - y[test]) ** 2))
    low, high = model.predict_interval(X[test]).T
    assert 0.92 < np.mean((low <= y[test]) & (y[test] <= high)) < 0.98


def test_a_new_level_is_wider() -> None:
    X, y = rated()
    model = BayesianFactorizationMachine(2).fit(X, y)
    sd = model.predict_distribution([[0, 0], [99, 0], [0, 99], [99, 99]]).std()
    assert sd[0] < sd[1] < sd[3]
    assert sd[0] < sd[2] < sd[3]


def test_numbers_of_any_size() -> None:
    X, y = rated(n=500)
    size = np.random.default_rng(1).normal(size=500)
    answers = []
    for scale in (1e-6, 1.0, 1e6):
        table = np.column_stack([X, scale * size])
        model = BayesianFactorizationMachine(3, numeric=[2]).fit(table, y + size)
        mean, sd = model.predict(table, return_std=True)
        assert np.isfinite(mean).all()
        assert np.isfinite(sd).all()
        assert model.weights_[2][0] * scale == pytest.approx(1.0, abs=0.2)
        answers.append(mean)
    np.testing.assert_allclose(answers[0], answers[2], rtol=1e-6)


def test_units_of_the_target() -> None:
    X, y = rated(n=500)
    one = BayesianFactorizationMachine(2).fit(X, y)
    other = BayesianFactorizationMachine(2).fit(X, 1e6 * y)
    np.testing.assert_allclose(1e6 * one.predict(X), other.predict(X), rtol=1e-8)


def test_from_a_file_it_is_itself(tmp_path: object) -> None:
    X, y = rated(n=300)
    names = np.array([f"user {u}" for u in X[:, 0]], dtype=object)
    table = np.column_stack([names, X[:, 1].astype(object), np.arange(300.0).astype(object)])
    model = BayesianFactorizationMachine(2, numeric=[2]).fit(table, y)
    again = files.loads(files.dumps(model))
    assert np.array_equal(again.predict_interval(table), model.predict_interval(table))
    more = [["user 1", 77, 3.0]]
    assert np.array_equal(
        again.partial_fit(more, [2.0]).predict(table), model.partial_fit(more, [2.0]).predict(table)
    )


@pytest.mark.parametrize("noise", [None, 4.0])
def test_kinds_of_predictions(noise: float | None) -> None:
    X, y = rated(n=200)
    predictive = (
        BayesianFactorizationMachine(1, noise_precision=noise).fit(X, y).predict_distribution(X)
    )
    assert isinstance(predictive, StudentT if noise is None else Normal)
    assert (predictive.std() >= 0.5).all() or noise is None


@given(seed=st.integers(0, 10_000), rank=st.integers(0, 4), n_sides=st.integers(1, 3))
@settings(deadline=None, max_examples=25)
def test_a_row_adds_what_a_sweep_of_it_sums(seed: int, rank: int, n_sides: int) -> None:
    """The compiled row against the sweep of one row: its levels' sums, means and covariances."""
    rng, sizes = np.random.default_rng(seed), [3, 4, 2][:n_sides]
    sides = random_sides(seed, sizes, rank)
    codes = np.array([[rng.integers(0, size) for size in sizes]])
    values, y = rng.normal(size=(1, n_sides)), rng.normal(size=1)
    slow, fast = sides.copy(), sides.copy()
    for side in range(n_sides):
        rows = SideRows.of(side, codes, values, y, sizes)
        update_levels(rows, slow, 1.7, sum_moments(rows, slow))
    path = MachineRows(
        fast.means,
        fast.covariances,
        fast.precisions,
        fast.products,
        fast.prior_means,
        fast.prior_precisions,
        fast.offset,
        fast.offset_variance,
        1.7,
    )
    assert path.learn(codes, values, y, np.ones(1)) == 1
    for name in ("means", "covariances", "precisions", "products"):
        for mine, theirs in zip(getattr(fast, name), getattr(slow, name), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9, err_msg=name)
    mean = compute_moments(codes, values, fast)[0][0]
    assert path.mean_of_one(codes[0].tolist(), values[0].tolist()) == pytest.approx(mean, rel=1e-12)


@pytest.mark.parametrize("rank", [0, 2])
@pytest.mark.parametrize("numeric", [False, True])
def test_batches_of_any_size_are_rows_one_by_one(rank: int, numeric: bool) -> None:
    X, y = rated(n=400)
    table = np.column_stack([X, np.random.default_rng(2).normal(size=400)]) if numeric else X
    first, more = slice(0, 60), range(60, 400)
    models = [
        BayesianFactorizationMachine(rank, numeric=[2] if numeric else None) for _ in range(3)
    ]
    for model in models:
        model.fit(table[first], y[first])
    models[0].partial_fit(table[60:], y[60:])
    for row in more:
        models[1].learn_one(list(table[row]), y[row])
    for start in range(60, 400, 37):
        models[2].partial_fit(table[start : start + 37], y[start : start + 37])
    for model in models[1:]:
        np.testing.assert_array_equal(
            model.predict_interval(table), models[0].predict_interval(table)
        )
        assert model.levels_[1].tolist() == models[0].levels_[1].tolist()


def test_a_row_too_large_changes_nothing() -> None:
    X, y = rated(n=100)
    model = BayesianFactorizationMachine(2).fit(X, y)
    before = files.dumps(model)
    with pytest.raises(ValueError, match="too large to learn"):
        model.learn_one(list(X[0]), 1e308)
    with pytest.raises(ValueError, match="too large to learn"):
        model.partial_fit(X[:2], [1.0, 1e308])
    assert files.dumps(model) == before


@given(seed=st.integers(0, 1000), rank=st.integers(0, 3))
@settings(deadline=None, max_examples=10)
def test_a_weight_of_two_is_the_row_twice(seed: int, rank: int) -> None:
    X, y = rated(seed, n=120)
    weights = np.random.default_rng(seed).integers(1, 4, size=120)
    options = {"max_sweeps": 20, "tolerance": 0.0}
    one = BayesianFactorizationMachine(rank, **options).fit(X, y, sample_weight=weights)
    other = BayesianFactorizationMachine(rank, **options).fit(
        np.repeat(X, weights, axis=0), np.repeat(y, weights)
    )
    # Levels are numbered by their first rows: the same in both.
    np.testing.assert_allclose(one.predict_interval(X), other.predict_interval(X), rtol=1e-6)
    assert one.log_evidence_ == pytest.approx(other.log_evidence_, rel=1e-8)
