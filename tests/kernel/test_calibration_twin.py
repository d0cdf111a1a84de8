"""The calibration kernel beside its twin."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from twins import calibration as twin

from posterity import kernel

SEEDS = st.integers(0, 10**6)


def scores_of(rng: np.random.Generator, n: int) -> np.ndarray:
    scores = rng.standard_t(2.0, size=n) * rng.choice([0.1, 1.0, 30.0]) + rng.choice([0.0, 3.0])
    scores[rng.uniform(size=n) < 0.05] = np.nan
    return np.where(rng.uniform(size=n) < 0.1, 1.0, scores)  # ties


def assert_same(arguments: list[Any], function: str) -> None:
    ours, theirs = copy.deepcopy(arguments), copy.deepcopy(arguments)
    predictive = getattr(kernel, function)(*ours, True)
    expected = getattr(twin, function)(*theirs, True)
    np.testing.assert_allclose(predictive, expected, rtol=1e-9, atol=1e-9)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
    assert getattr(kernel, function)(*copy.deepcopy(arguments), False) is None


@given(seed=SEEDS, n=st.integers(0, 80), levels=st.integers(1, 6), gain=st.sampled_from([0.0, 2.0]))
def test_tracking(seed: int, n: int, levels: int, gain: float) -> None:
    rng = np.random.default_rng(seed)
    tails = np.sort(rng.uniform(0.001, 0.49, size=levels))[::-1].copy()
    bounds = np.tile(stats.norm.isf(tails), (2, 1))
    arguments = [
        scores_of(rng, n), tails, rng.uniform(0.01, 1.0, size=levels), (gain, 5.0), 0.05,
        bounds, np.zeros_like(bounds), np.array([1.0, 20.0, 0.0]),
    ]  # fmt: skip
    assert_same(arguments, "track")


@given(seed=SEEDS, n=st.integers(0, 60), experts=st.sampled_from([1, 8]), levels=st.integers(1, 3))
def test_adapting(seed: int, n: int, experts: int, levels: int) -> None:
    rng = np.random.default_rng(seed)
    tails = np.sort(rng.uniform(0.01, 0.4, size=levels))[::-1].copy()
    capacity = int(rng.integers(10, 40))
    held = int(rng.integers(2, capacity + 1))
    window, recent = np.zeros(capacity), np.zeros(capacity)
    recent[:held] = rng.normal(size=held)
    window[:held] = np.sort(recent[:held])
    arguments = [
        scores_of(rng, n), tails, rng.uniform(0.01, 1.0, size=experts),
        np.full(levels, 3.0), 0.001, np.tile(tails[None, :, None], (2, 1, experts)),
        np.full((2, levels, experts), 1.0 / experts), window, recent, np.array([held, 0]),
    ]  # fmt: skip
    assert_same(arguments, "adapt")


@given(seed=SEEDS, student=st.booleans())
def test_scores_and_back(seed: int, student: bool) -> None:
    rng = np.random.default_rng(seed)
    n = 40
    y, loc, scale = rng.normal(size=n) * 5.0, rng.normal(size=n), rng.uniform(0.1, 9.0, size=n)
    df = rng.choice([0.5, 3.0, 40.0, 1e6, np.inf], size=n) if student else None
    scores = kernel.normal_scores(y, loc, scale, df)
    np.testing.assert_allclose(scores, twin.normal_scores(y, loc, scale, df), rtol=1e-9, atol=1e-12)
    back = kernel.targets_at(scores, loc, scale, df)
    np.testing.assert_allclose(back, y, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(back, twin.targets_at(scores, loc, scale, df), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize(("df", "close"), [(3.0, 0.06), (10.0, 0.012), (1000.0, 1e-5)])
def test_scores_are_normal_quantiles(df: float, close: float) -> None:
    """Against SciPy: Phi^-1 of the Student-t cdf."""
    t = np.linspace(-6.0, 6.0, 25)
    scores = kernel.normal_scores(t, np.zeros(1), np.ones(1), np.array([df]))
    truth = -stats.norm.isf(stats.t.cdf(t, df))
    np.testing.assert_allclose(scores, truth, atol=close)


def test_rows_without_a_score() -> None:
    scale = np.array([1.0, 0.0, np.inf, 1.0, 1.0])
    df = np.array([3.0, 3.0, 3.0, 0.0, 3.0])
    weights = np.array([1.0, 1.0, 1.0, 1.0, 0.0])
    scores = kernel.normal_scores(np.ones(5), np.zeros(1), scale, df, weights)
    assert np.isnan(scores).tolist() == [False, True, True, True, True]


def test_what_does_not_fit_is_refused() -> None:
    one, two, many = np.ones(1), np.ones(2), np.ones(33)
    with pytest.raises(ValueError, match="scale has length 2: expected 3, or 1 for all rows"):
        kernel.normal_scores(np.ones(3), one, two)

    def track(tails: np.ndarray, columns: int) -> None:
        bounds = np.ones((2, columns))
        kernel.track(one, tails, tails, (0.0, 5.0), 0.1, bounds, bounds.copy(), np.ones(3), True)

    with pytest.raises(ValueError, match="bounds has length 2: expected 1"):
        track(one, 2)
    with pytest.raises(ValueError, match="the kernel takes from 1 to 32 levels, not 33"):
        track(many, 33)
