"""What bad settings and impossible requests are told."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from posterity import BayesianLinearRegression
from posterity.forgetting import (
    Adaptive,
    Changepoint,
    Directional,
    Exponential,
    Forgetting,
    RandomWalk,
    Smoothing,
    Stabilized,
    Window,
)

EVERY = [
    Exponential(0.9),
    Stabilized(0.9),
    Directional(0.9),
    Smoothing(0.9),
    RandomWalk(0.1),
    Window(size=5),
    Adaptive(),
    Changepoint(),
]
X, Y = [[0.0], [1.0], [2.0], [4.0]], [1.0, 3.0, 5.0, 8.0]


@pytest.mark.parametrize("kind", [Exponential, Stabilized, Directional])
def test_a_discount_or_a_half_life(kind: type) -> None:
    name = kind.__name__
    with pytest.raises(ValueError, match=f"^{name} needs either a discount or a half_life: give"):
        kind()
    with pytest.raises(ValueError, match=f"^{name} needs either a discount or a half_life: give"):
        kind(0.9, half_life=3.0)
    for discount in (0.0, -0.5, 1.01, math.nan):
        with pytest.raises(ValueError, match=r"it must be above 0 and at most 1, as in 0.99"):
            kind(discount)
    for half_life in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match=r"half_life is .*: it must be positive and finite"):
            kind(half_life=half_life)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Smoothing(1.0), "gamma is 1.0: it must lie between 0 and 1, as in 0.8"),
        (lambda: Smoothing(math.nan), "gamma is nan: it must lie between 0 and 1"),
        (lambda: RandomWalk(-1.0), "variance is -1.0: it must be a number, or one for each"),
        (lambda: RandomWalk((0.1, math.inf)), "finite and not negative"),
        (lambda: RandomWalk([[0.1]]), "it must be a number, or one for each feature"),
        (lambda: Window(), "Window needs either a size, in rows, or a duration"),
        (lambda: Window(size=3, duration=2.0), "Window needs either a size, in rows, or a dur"),
        (lambda: Window(size=0), "size is 0: it must be a whole number of rows, at least 1"),
        (lambda: Window(size=2.5), "size is 2.5: it must be a whole number of rows"),  # type: ignore[arg-type]
        (lambda: Window(duration=0.0), "duration is 0.0: it must be positive and finite"),
        (lambda: Adaptive(discounts=()), r"discounts is \(\): each must be above 0"),
        (lambda: Adaptive(discounts=(0.9, 1.1)), "each must be above 0 and at most 1"),
        (lambda: Adaptive(persistence=(0.0,)), r"persistence is \(0.0,\): each must be above 0"),
        (lambda: Changepoint(0.0), "hazard is 0.0: it must lie between 0 and 1"),
        (lambda: Changepoint(hazard=1.0), "hazard is 1.0: it must lie between 0 and 1"),
        (lambda: Changepoint(max_runs=1), "max_runs is 1: it must be a whole number, at least 2"),
        (lambda: Adaptive(outer_persistence=2.0), "outer_persistence is .*: each must be above 0"),
    ],
)
def test_bad_settings(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_variances_must_fit_the_features() -> None:
    model = BayesianLinearRegression(forgetting=RandomWalk((0.1, 0.2, 0.3)))
    with pytest.raises(ValueError, match="give one, or one for each of the 1 features"):
        model.fit(X, Y)
    assert not hasattr(model, "n_features_in_")


def test_what_is_no_strategy_is_refused() -> None:
    for wrong in (0.99, "exponential", Exponential):
        model = BayesianLinearRegression(forgetting=wrong)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"it must be None or a strategy from posterity.forget"):
            model.fit(X, Y)


@pytest.mark.parametrize("strategy", EVERY, ids=lambda strategy: type(strategy).__name__)
def test_strategies_are_frozen_and_equal_by_value(strategy: Forgetting) -> None:
    assert isinstance(strategy, Forgetting)
    same = dataclasses.replace(strategy)  # type: ignore[type-var]
    assert same == strategy
    assert hash(same) == hash(strategy)
    field = dataclasses.fields(strategy)[0].name  # type: ignore[arg-type]
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(strategy, field, 0.5)
    assert BayesianLinearRegression(forgetting=strategy).get_params()["forgetting"] is strategy


@pytest.mark.parametrize("strategy", EVERY, ids=lambda strategy: type(strategy).__name__)
def test_unlearning_is_refused(strategy: Forgetting) -> None:
    model = BayesianLinearRegression(forgetting=strategy).fit(X, Y)
    before = model.coef_
    with pytest.raises(ValueError, match=f"can't unlearn rows under {type(strategy).__name__}: "):
        model.unlearn(X[:1], Y[:1])
    assert np.array_equal(model.coef_, before)
    assert model.n_observations_ == 4.0


@pytest.mark.parametrize(
    "strategy",
    [strategy for strategy in EVERY if not isinstance(strategy, Stabilized)],
    ids=lambda strategy: type(strategy).__name__,
)
def test_merging_is_refused(strategy: Forgetting) -> None:
    model, other = (BayesianLinearRegression(forgetting=strategy).fit(X, Y) for _ in range(2))
    before = model.coef_
    with pytest.raises(ValueError, match=f"can't merge models under {type(strategy).__name__}: "):
        model.merge(other)
    assert np.array_equal(model.coef_, before)
    assert model.n_observations_ == 4.0


def test_models_that_forget_differently_cannot_be_merged() -> None:
    model = BayesianLinearRegression(forgetting=Stabilized(0.9)).fit(X, Y)
    for strategy in (Stabilized(0.8), Exponential(0.9), None):
        other = BayesianLinearRegression(forgetting=strategy).fit(X, Y)
        with pytest.raises(ValueError, match="only models with the same settings can"):
            model.merge(other)
        with pytest.raises(ValueError, match="only models with the same settings can"):
            other.merge(model)


@pytest.mark.parametrize("strategy", EVERY, ids=lambda strategy: type(strategy).__name__)
def test_times_that_make_no_sense(strategy: Forgetting) -> None:
    model = BayesianLinearRegression(forgetting=strategy)
    with pytest.raises(
        ValueError, match=r"times is 1.0 in row 2: times must be finite and must not"
    ):
        model.fit(X, Y, times=[0.0, 2.0, 1.0, 3.0])
    with pytest.raises(ValueError, match=r"times is nan in row 1: times must be finite"):
        model.fit(X, Y, times=[0.0, math.nan, 1.0, 3.0])
    with pytest.raises(ValueError, match=r"times has shape \(2,\): expected \(4,\)"):
        model.fit(X, Y, times=[0.0, 1.0])
    model.fit(X, Y, times=[0.0, 1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="give times for these as well"):
        model.partial_fit(X, Y)
    with pytest.raises(
        ValueError, match=r"times is 2.0 in row 0: times must be finite and must not"
    ):
        model.partial_fit(X, Y, times=[2.0, 3.0, 4.0, 5.0])
    assert model.n_observations_ == 4.0
