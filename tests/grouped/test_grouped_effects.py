"""Average effects over groups, and the posterior of what they share: against the joint normal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from posterity import BayesianLinearRegression, GroupedRegression
from posterity.distributions import MultivariateNormal, MultivariateT

Array = NDArray[np.float64]
PRECISION = 4.0


def shops(n_groups: int, seed: int = 0) -> tuple[Array, Array, NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_groups), rng.integers(1, 8, n_groups))
    X = rng.normal(size=(len(groups), 2))
    w = np.array([3.0, -1.0, 0.5]) + rng.normal(size=(n_groups, 3)) * [1.0, 0.5, 0.2]
    y = np.einsum("ij,ij->i", np.column_stack([np.ones(len(X)), X]), w[groups])
    return X, y + 0.5 * rng.normal(size=len(X)), groups


def joint_of_all(X: Array, y: Array, groups: NDArray[np.int64], D: Array) -> tuple[Array, Array]:
    """Mean and covariance of [m, w_0, w_1, ...] given D: one large normal distribution."""
    rows, inverse, p = np.column_stack([np.ones(len(X)), X]), np.linalg.inv(D), len(D)
    count = int(groups.max()) + 1
    precision, shift = np.zeros((p * (count + 1),) * 2), np.zeros(p * (count + 1))
    for g in range(count):
        own, mine = slice(p * (g + 1), p * (g + 2)), groups == g
        precision[own, own] += PRECISION * rows[mine].T @ rows[mine] + inverse
        precision[:p, :p] += inverse
        precision[:p, own] -= inverse
        precision[own, :p] -= inverse
        shift[own] += PRECISION * rows[mine].T @ y[mine]
    covariance = np.linalg.inv(precision)
    return covariance @ shift, covariance


def covariance_predicted_with(model: GroupedRegression) -> Array:
    """D's mean over what the groups leave open: larger than the best D, `shared_covariance_`."""
    root = model._posterior.learn_exact_prior().prior.root
    expected: Array = np.linalg.inv(root.T @ root) / PRECISION
    assert np.linalg.eigvalsh(expected - model.shared_covariance_).min() > -1e-12
    return expected


@pytest.mark.parametrize("n_groups", [4, 30])  # each told by the others, and all told the same
def test_against_the_joint_normal_of_all_groups(n_groups: int) -> None:
    X, y, groups = shops(n_groups)
    model = GroupedRegression(noise_precision=PRECISION).fit(X, y, groups=groups)
    mean, covariance = joint_of_all(X, y, groups, covariance_predicted_with(model))
    shared = model.shared_posterior_
    assert isinstance(shared, MultivariateNormal)
    np.testing.assert_allclose(shared.mean, mean[:3], rtol=1e-8)
    np.testing.assert_allclose(shared.cov, covariance[:3, :3], rtol=1e-6, atol=1e-9)
    effects = model.average_effects(X, groups=groups)
    for feature in (1, 2):
        weights = np.zeros(len(mean))
        for g in range(n_groups):
            weights[3 * (g + 1) + feature] = np.mean(groups == g)
        told = effects.loc[f"x{feature - 1}"]
        assert told["mean"] == pytest.approx(weights @ mean, rel=1e-8)
        assert told["sd"] == pytest.approx(np.sqrt(weights @ covariance @ weights), rel=1e-6)


def test_unknown_groups_change_as_the_mean_does() -> None:
    X, y, groups = shops(30)
    model = GroupedRegression(noise_precision=PRECISION).fit(X, y, groups=groups)
    new = model.average_effects(X[:1], groups=[1000])
    shared = model.shared_posterior_
    np.testing.assert_allclose(new["mean"], shared.mean[1:])
    spread = np.diag(shared.cov + covariance_predicted_with(model))[1:]
    np.testing.assert_allclose(new["sd"], np.sqrt(spread))


def test_one_group_with_a_given_prior_is_a_plain_model() -> None:
    X, y, _ = shops(10)
    settings: dict[str, Any] = {"prior_mean": 0.5, "prior_precision": 2.0}
    model = GroupedRegression(**settings).fit(X, y)
    plain = BayesianLinearRegression(**settings).fit(X, y)
    for per in ("unit", "sd"):
        ours = model.average_effects(X, per=per, level=0.9).drop(columns="name")
        theirs = plain.average_effects(X, per=per, level=0.9).drop(columns="name")
        np.testing.assert_allclose(ours.to_numpy(), theirs.to_numpy(), rtol=1e-6)
    with pytest.raises(ValueError, match="prior_mean is given"):
        model.shared_posterior_  # noqa: B018


def test_a_mean_learned_under_a_given_precision() -> None:
    X, y, groups = shops(30)
    model = GroupedRegression(prior_precision=2.0).fit(X, y, groups=groups)
    effects = model.average_effects(X, groups=groups)
    coefficients = model.coef_[model.places(groups)].mean(axis=0)
    # Each group by itself is told a little too much of the mean.
    np.testing.assert_allclose(effects["mean"], coefficients, rtol=0.01)
    assert (effects["sd"] > 0.0).all()
    assert (effects["sd"] < 0.5).all()


def test_names_and_learned_noise() -> None:
    X, y, groups = shops(30)
    frame = pd.DataFrame(X, columns=["price", "rain"]).assign(shop=groups)
    model = GroupedRegression(by="shop").fit(frame, y)
    shared = model.shared_posterior_
    assert isinstance(shared, MultivariateT)
    assert shared.names == ("intercept", "price", "rain")
    assert shared.probability("price < 0") > 0.99
    np.testing.assert_allclose(shared.mean, model.shared_mean_)
    assert model.average_effects(frame).index.tolist() == ["price", "rain"]


@pytest.mark.slow
def test_intervals_of_the_mean_hold_it() -> None:
    held = []
    for seed in range(60):
        X, y, groups = shops(25, seed)
        shared = GroupedRegression().fit(X, y, groups=groups).shared_posterior_
        ends = shared.interval(0.9)
        held.append((ends[:, 0] < [3.0, -1.0, 0.5]) & (ends[:, 1] > [3.0, -1.0, 0.5]))
    assert 0.84 < np.mean(held) < 0.96


def test_too_few_rows() -> None:
    model = GroupedRegression().fit([[0.0]], [1.0], groups=["a"])
    with pytest.raises(ValueError, match="do not determine the mean over groups"):
        model.shared_posterior_  # noqa: B018
    assert np.isinf(model.average_effects([[1.0]], groups=["a"])["sd"]).all()


def test_reading_changes_nothing() -> None:
    X, y, groups = shops(30)
    one, other = (GroupedRegression().partial_fit(X[:50], y[:50], groups=groups[:50])
                  for _ in range(2))  # fmt: skip
    one.average_effects(X, groups=groups)
    one.shared_posterior_  # noqa: B018
    for model in (one, other):
        model.partial_fit(X[50:], y[50:], groups=groups[50:])
    assert np.array_equal(one.predict(X, groups=groups), other.predict(X, groups=groups))


def test_an_offset_of_a_feature_changes_no_shared_slope() -> None:
    X, y, groups = shops(30)
    near = GroupedRegression().fit(X, y, groups=groups)
    slopes, effects = near.shared_posterior_["x1"], near.average_effects(X, groups=groups)
    for offset in (1e3, 1e6, 1e9):
        moved = X + np.array([0.0, offset])
        far = GroupedRegression().fit(moved, y, groups=groups)
        there = far.shared_posterior_["x1"]
        assert there.mean() == pytest.approx(slopes.mean(), rel=1e-6)
        assert there.std() == pytest.approx(slopes.std(), rel=1e-6)
        columns = ["mean", "sd"]
        found = far.average_effects(moved, groups=groups)[columns]
        np.testing.assert_allclose(found, effects[columns], rtol=1e-5)
