"""What is predicted where a feature that never varied moves: intervals of the mean, and draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from posterity import BayesianLinearRegression, BayesianRobustRegression
from posterity.forgetting import Adaptive, Exponential

LEVELS = 12


def rows(seed: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Dummies of levels, of which the last two come to no row; and effects with an sd of 2."""
    rng = np.random.default_rng(seed)
    level = rng.integers(0, LEVELS - 2, n)
    effects = 2.0 * rng.normal(size=LEVELS)
    return np.eye(LEVELS)[level], effects[level] + rng.normal(size=n), effects


@pytest.mark.parametrize(
    "model",
    [
        BayesianLinearRegression(),
        BayesianLinearRegression(forgetting=Exponential(0.99)),
        BayesianLinearRegression(forgetting=Adaptive()),
        BayesianRobustRegression(),
    ],
    ids=["plain", "exponential", "adaptive", "robust"],
)
def test_the_mean_of_a_new_level_is_as_open_as_levels_differ(model: Any) -> None:
    X, y, _ = rows(0, 200)
    model.fit(X, y)
    seen, new = np.eye(LEVELS)[[0, LEVELS - 1]]
    of_seen, of_new = (
        model.predict_interval(np.atleast_2d(row), of="mean")[0] for row in (seen, new)
    )
    assert np.ptp(of_seen) < 3.0
    assert 4.0 < np.ptp(of_new) < 20.0
    # An observation's interval is that of the mean, and the noise's.
    assert np.ptp(of_new) < np.ptp(model.predict_interval(new[None])[0]) < np.ptp(of_new) + 4.0


def test_draws_of_the_mean_have_its_spread_and_share_the_level() -> None:
    X, y, _ = rows(1, 200)
    model = BayesianLinearRegression().fit(X, y)
    points = np.eye(LEVELS)[[0, LEVELS - 1, LEVELS - 1, LEVELS - 2]]
    draws = model.sample_mean(points, 4000, rng=0)
    low, high = np.quantile(draws, (0.025, 0.975), axis=0)
    ends = model.predict_interval(points, of="mean")
    assert high - low == pytest.approx(np.ptp(ends, axis=1), rel=0.15)
    assert np.array_equal(draws[:, 1], draws[:, 2])
    assert abs(np.corrcoef(draws[:, 1], draws[:, 3])[0, 1]) < 0.3


def test_several_targets_are_open_too() -> None:
    X, y, _ = rows(2, 200)
    model = BayesianLinearRegression().fit(X, np.column_stack([y, -y + 0.1 * X[:, 0]]))
    new = np.eye(LEVELS)[[LEVELS - 1]]
    alone = BayesianLinearRegression().fit(X, y).predict_interval(new, of="mean")[0]
    assert model.predict_interval(new, of="mean")[0, 0] == pytest.approx(alone, rel=1e-6)
    draws = model.sample_mean(new, 4000, rng=0)
    assert draws[:, 0].std(axis=0)[0] == pytest.approx(np.ptp(alone) / 3.92, rel=0.15)


def test_a_move_has_a_sign() -> None:
    """Rows on both sides of a constant feature's value go opposite ways in a draw."""
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.normal(size=50), np.full(50, 5.0)])
    model = BayesianLinearRegression().fit(X, X[:, 0] + rng.normal(size=50))
    draws = model.sample_mean([[0.0, 5.0], [0.0, 8.0], [0.0, 2.0]], 1000, rng=0)
    up, down = draws[:, 1] - draws[:, 0], draws[:, 2] - draws[:, 0]
    assert up == pytest.approx(-down)
    assert up.std() > 0.1


@pytest.mark.slow
def test_95_percent_intervals_of_new_levels_hold() -> None:
    held = []
    for seed in range(200):
        X, y, effects = rows(seed, 60)
        ends = BayesianLinearRegression().fit(X, y).predict_interval(np.eye(LEVELS), of="mean")
        held.append((ends[-2:, 0] <= effects[-2:]) & (effects[-2:] <= ends[-2:, 1]))
    assert 0.92 < np.mean(held) < 0.985
