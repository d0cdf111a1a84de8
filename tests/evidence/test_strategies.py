"""What holds for every strategy: units don't matter, nothing breaks, answers are usable."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from posterity.evidence import Choice, Integrated, Maximized, Relevance, Strategy
from posterity.factor import Factor
from posterity.noise import KnownNoise, LearnedNoise, Noise

from .conftest import factor_of, rows

STRATEGIES = [Integrated(), Maximized(), Relevance()]
EVERY = [*STRATEGIES, Maximized(standardize=False)]
NOISES = [LearnedNoise(), LearnedNoise(1.0, 2.0), KnownNoise(3.0)]


def one_feature_constant(X: np.ndarray, y: np.ndarray) -> None:
    X[:, :1] = 7.7


def one_feature_zero(X: np.ndarray, y: np.ndarray) -> None:
    X[:, :1] = 0.0


def two_features_alike(X: np.ndarray, y: np.ndarray) -> None:
    X[:, 1:2] = 2.0 * X[:, :1]


def target_constant(X: np.ndarray, y: np.ndarray) -> None:
    y[:] = 5.3


def target_zero(X: np.ndarray, y: np.ndarray) -> None:
    y[:] = 0.0


def target_exact(X: np.ndarray, y: np.ndarray) -> None:
    y[:] = 1.0 + X.sum(axis=1)


def far_from_zero(X: np.ndarray, y: np.ndarray) -> None:
    X += 1e7
    y += 1e7


def large_units(X: np.ndarray, y: np.ndarray) -> None:
    X *= 1e100


def nothing_special(X: np.ndarray, y: np.ndarray) -> None:
    pass


KINDS = [
    nothing_special,
    one_feature_constant,
    one_feature_zero,
    two_features_alike,
    target_constant,
    target_zero,
    target_exact,
    far_from_zero,
    large_units,
]


@pytest.mark.parametrize("strategy", EVERY, ids=repr)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_answers_are_usable(strategy: Strategy, kind: Callable[..., None], noise: Noise) -> None:
    for n in (0, 1, 2, 3, 6, 60):
        for m in (0, 1, 3, 8):
            for intercept in (True, False):
                X, y = rows(n, m, seed=n)
                kind(X, y)
                data = factor_of(X, y, intercept=intercept)
                choice = strategy.choose(data, noise, intercept=intercept, mean=np.zeros(m))
                check_usable(choice, m)


def check_usable(choice: Choice, m: int) -> None:
    assert choice.precisions.shape == (len(choice.weights), m)
    assert (choice.precisions > 0.0).all()
    assert (choice.precisions < 1e301).all()  # their roots are rows of a factor
    assert choice.weights.sum() == pytest.approx(1.0)
    assert (choice.weights >= 0.0).all()
    assert choice.pinned.shape == (m,)
    assert not np.isnan(choice.log_evidence)
    assert np.isfinite(choice.ratios).all()
    kinds = {"integrated", "interior", "no signal", "no noise", "undetermined", "sampled"}
    assert choice.found in kinds


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("n", "m"), [(4, 2), (5, 8), (30, 3)])
@given(units=arrays(float, 8, elements=st.floats(-6.0, 6.0)), target=st.floats(-6.0, 6.0))
def test_units_do_not_matter(
    strategy: Strategy, intercept: bool, n: int, m: int, units: np.ndarray, target: float
) -> None:
    """Law: rescaling columns by u and the target rescales precisions by u^2 and nothing else."""
    X, y = rows(n, m, seed=7)
    scale, size = 10.0 ** units[:m], 10.0**target
    noise = LearnedNoise()
    ours, theirs = (
        strategy.choose(data, noise, intercept=intercept, mean=np.zeros(m))
        for data in (
            factor_of(X, y, intercept=intercept),
            factor_of(X * scale, y * size, intercept=intercept),
        )
    )
    # Relative to what the data say: precisions far below or above it may wander.
    squares = np.square(X - X.mean(axis=0) if intercept else X).sum(axis=0)
    assert ours.pinned.tolist() == theirs.pinned.tolist()
    assert np.allclose(ours.weights, theirs.weights, atol=1e-8)
    shares = [
        choice / (choice + squares) for choice in (ours.precisions, theirs.precisions / scale**2)
    ]
    assert np.allclose(*shares, rtol=1e-8, atol=1e-10)
    residual_df = n - 1 if intercept else n
    assert ours.log_evidence == pytest.approx(
        theirs.log_evidence + residual_df * np.log(size), rel=1e-8, abs=1e-8
    )


@pytest.mark.parametrize("strategy", EVERY, ids=repr)
@given(seed=st.integers(0, 1000))
def test_the_order_of_rows_does_not_matter(strategy: Strategy, seed: int) -> None:
    X, y = rows(25, 4, seed=seed)
    order = np.random.default_rng(seed).permutation(25)
    one, other = (
        strategy.choose(data, LearnedNoise(), intercept=True, mean=np.zeros(4))
        for data in (
            factor_of(X, y, intercept=True),
            factor_of(X[order], y[order], intercept=True),
        )
    )
    assert one.log_evidence == pytest.approx(other.log_evidence, rel=1e-9)


@pytest.mark.parametrize("strategy", EVERY, ids=repr)
def test_the_intercept_is_never_shrunk(strategy: Strategy) -> None:
    """A shifted target chooses the same."""
    X, y = rows(30, 3)
    one, other = (
        strategy.choose(
            factor_of(X, shifted, intercept=True), LearnedNoise(), intercept=True, mean=np.zeros(3)
        )
        for shifted in (y, y + 1e5)
    )
    assert np.allclose(one.precisions, other.precisions, rtol=1e-6)
    assert one.log_evidence == pytest.approx(other.log_evidence, rel=1e-7)


@pytest.mark.parametrize("strategy", EVERY, ids=repr)
def test_the_prior_mean_is_where_coefficients_shrink_to(strategy: Strategy) -> None:
    """Coefficients equal to the prior's mean are no signal at all."""
    X = rows(40, 3)[0]
    mean = np.array([1.0, -2.0, 3.0])
    y = X @ mean + np.random.default_rng(1).normal(size=40)
    data = factor_of(X, y, intercept=True)
    predictive = strategy.choose(data, LearnedNoise(), intercept=True, mean=mean)
    blind = strategy.choose(data, LearnedNoise(), intercept=True, mean=np.zeros(3))
    assert predictive.n_parameters < 0.5 * blind.n_parameters
    assert predictive.log_evidence > blind.log_evidence


@pytest.mark.parametrize("strategy", EVERY, ids=repr)
def test_constant_features_are_pinned(strategy: Strategy) -> None:
    X, y = rows(40, 4, signal=3.0)
    X[:, 1], X[:, 2] = 5.0, 0.0
    data = factor_of(X, y, intercept=True)
    choice = strategy.choose(data, LearnedNoise(), intercept=True, mean=np.zeros(4))
    assert choice.pinned.tolist() == [False, True, True, False]
    assert (choice.precisions[:, 1] >= 1e12 * 40 * 25.0 * 0.999).all()
    without = strategy.choose(
        factor_of(X[:, [0, 3]], y, intercept=True), LearnedNoise(), intercept=True, mean=np.zeros(2)
    )
    assert choice.log_evidence == pytest.approx(without.log_evidence, rel=1e-10)
    assert np.allclose(choice.precisions[:, [0, 3]], without.precisions, rtol=1e-8)


def test_an_empty_factor_of_no_features() -> None:
    for strategy in EVERY:
        check_usable(
            strategy.choose(Factor(1), LearnedNoise(), intercept=True, mean=np.zeros(0)), 0
        )
