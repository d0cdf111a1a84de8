"""Rows of a category that comes for the first time: what is not known of them is wide."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from posterity import BayesianLinearRegression, BayesianLogisticRegression
from posterity.forgetting import Stabilized

LEVELS = 12


def rows(seed: int, n: int, effect: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    levels = rng.integers(0, LEVELS, n)
    effects = effect * rng.normal(size=LEVELS)
    return np.eye(LEVELS)[levels], effects[levels] + rng.normal(size=n), levels


@pytest.mark.parametrize("effect", [1.0, 10.0])
def test_first_rows_of_a_category_are_held(effect: float) -> None:
    held = []
    for seed in range(25):
        X, y, levels = rows(seed, 60, effect)
        low, high = BayesianLinearRegression().predict_then_learn(X, y).interval(0.95)
        first = np.unique(levels, return_index=True)[1]
        first = first[first > 1]
        held += list((low[first] <= y[first]) & (y[first] <= high[first]))
    assert 0.91 <= np.mean(held) <= 0.99


@pytest.mark.parametrize("effect", [1.0, 10.0])
def test_categories_that_fit_has_not_seen_are_held(effect: float) -> None:
    held = []
    for seed in range(60):
        X, y, levels = rows(seed, 60, effect)
        model = BayesianLinearRegression().fit(X[levels < 9], y[levels < 9])
        low, high = model.predict_distribution(X[levels >= 9]).interval(0.95)
        held += list((low <= y[levels >= 9]) & (y[levels >= 9] <= high))
    assert 0.90 <= np.mean(held) <= 0.99


@pytest.mark.parametrize("forgetting", [None, Stabilized(0.99)])
@pytest.mark.parametrize("unit", [1.0, 1e3])
def test_the_effect_of_others_says_how_wide(forgetting: Any, unit: float) -> None:
    """In any unit, for two-valued features; and nothing changes for rows that bring nothing new."""
    X, y, levels = rows(0, 200, 5.0)
    old = levels < LEVELS - 1
    model = BayesianLinearRegression(forgetting=forgetting).fit(unit * X[old], y[old])
    predictive = model.predict_distribution(unit * X).std()
    assert (predictive[~old] > 3.0).all()
    assert (predictive[~old] < 15.0).all()
    assert (predictive[old] < 1.6).all()
    assert model.predict(unit * X[~old]) == pytest.approx(
        model.predict_distribution(unit * X[~old]).mean(), rel=1e-12
    )


def test_a_number_that_begins_to_vary_may_do_what_others_do() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3)) * [1.0, 1.0, 40.0]
    y = X @ [2.0, -2.0, 0.05] + 0.5 * rng.normal(size=60)
    X[:, 2] += 300.0
    early = X.copy()
    early[:, 2] = 300.0
    model = BayesianLinearRegression().fit(early, y)
    predictive = model.predict_distribution(X).std()
    assert (predictive > 1.2 * model.predict_distribution(early).std()).all()
    assert (predictive < 12.0).all()


def test_new_categories_are_less_certain_in_classes_too() -> None:
    X, y, levels = rows(3, 400, 4.0)
    old = levels < LEVELS - 1
    model = BayesianLogisticRegression().fit(X[old], (y > 0.0)[old])
    widths = np.diff(model.predict_interval(X), axis=1)[:, 0]
    assert widths[~old].min() > 0.6
