"""The search for the covariance that groups share ends at a maximum, and knows its slopes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime, minimize

from posterity.evidence._covariance_prior import CovariancePrior
from posterity.evidence._covariance_search import search
from posterity.evidence._group_deviance import Deviance
from posterity.evidence._group_frame import Frame
from posterity.evidence.groups import GroupSample
from posterity.factor.grouped import GroupBank
from posterity.factor.grouped_rows import GroupedRows
from posterity.noise import KnownNoise, LearnedNoise, Noise

NOISES: list[Noise] = [LearnedNoise(0.0, 0.0), LearnedNoise(2.0, 1.0), KnownNoise(4.0)]


def task_of(
    seed: int, p: int, groups: int, rows: int, noise: Noise, strength: float = 1.0
) -> Deviance:
    rng = np.random.default_rng(seed)
    numbers = rng.integers(0, groups, size=groups * rows).astype(np.int32)
    X = rng.normal(size=(len(numbers), p)) * rng.choice([0.1, 1.0, 10.0], size=p)
    w = 1.0 + rng.normal(size=(groups, p)) * rng.choice([0.0, 0.3, 2.0], size=p)
    y = np.sum(X * w[numbers], axis=1) + 0.5 * rng.normal(size=len(numbers))
    bank = GroupBank(p)
    bank.grow(groups)
    bank.learn(GroupedRows(X, y, None, False, numbers, np.arange(groups)))
    sample = GroupSample(bank.rows(), bank.count.copy(), bank.residuals())
    frame = Frame.of(sample, noise, intercept=False)
    prior = CovariancePrior(strength, frame.scale)
    return Deviance(frame, noise, np.zeros(p), np.ones(p, dtype=bool), prior)


@settings(max_examples=25)
@given(
    st.integers(0, 10**6),
    st.integers(1, 3),
    st.integers(2, 30),
    st.integers(2, 12),
    st.sampled_from(NOISES),
    st.sampled_from([1.0, 10.0, 1000.0]),
)
def test_nothing_near_is_better(
    seed: int, p: int, groups: int, rows: int, noise: Noise, strength: float
) -> None:
    task = task_of(seed, p, groups, rows, noise, strength)
    lower = np.tril_indices(len(task.frame.root))
    best = search(task, len(task.frame.root), 0.05, task.frame.scale, 1e-4).root
    found = task.value(best)

    def value(entries: np.ndarray) -> float:
        K = np.zeros((len(task.frame.root), len(task.frame.root)))
        K[lower] = entries
        if (np.diag(K) < 1e-6).any():
            return np.inf
        return task.value(best @ K)

    start = np.eye(len(task.frame.root))[lower]
    other = minimize(value, start, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12})
    assert other.fun > found - 1e-6


@pytest.mark.parametrize("strength", [1.0, 30.0])
@pytest.mark.parametrize("noise", NOISES)
def test_slopes_are_those_of_the_value(noise: Noise, strength: float) -> None:
    task = task_of(3, 3, 12, 6, noise, strength)
    lower = np.tril_indices(3)
    root = 0.7 * np.eye(3) + 0.1
    point = task.evaluate(root)
    assert point.value == pytest.approx(task.value(root))
    assert point.diagonalize().root @ point.diagonalize().root.T == pytest.approx(root @ root.T)

    def value(entries: np.ndarray) -> float:
        K = np.eye(3)
        K[lower] += entries
        return task.value(root @ K)

    expected = approx_fprime(np.zeros(6), value, 1e-7)
    assert np.allclose(2.0 * point.slope[lower], expected, rtol=1e-4, atol=1e-4)


def test_many_columns_end_at_a_maximum_too() -> None:
    task = task_of(1, 40, 150, 90, NOISES[0])
    best = search(task, 40, 0.05, task.frame.scale, 0.01).root
    point = task.evaluate(best).diagonalize()
    lower = np.tril_indices(40)
    steps = point.compute_units(lower).multiply_transposed(point.slope[lower])
    assert np.abs(steps).max() < 0.05
