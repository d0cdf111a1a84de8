"""Rows that fade, learned at once, are rows learned one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posterity.factor import Factor, Rows
from posterity.factor.forgetting import absorb_stabilized, learn_stabilized


def assert_same(one: Factor, other: Factor) -> None:
    gram, expected = (f.triangle.T @ f.triangle for f in (one, other))
    size = np.sqrt(np.outer(expected.diagonal(), expected.diagonal()))
    assert (np.abs(gram - expected) <= 1e-11 * size).all()
    assert one.count == pytest.approx(other.count, rel=1e-12)
    assert one.seen == other.seen


@given(
    seed=st.integers(0, 10**6),
    n=st.sampled_from([1, 2, 9, 70, 700]),
    rate=st.sampled_from([1.0, 0.999, 0.9, 0.5, 1e-3, 1e-200]),
    flat=st.booleans(),
    weighted=st.booleans(),
    intercept=st.booleans(),
)
def test_at_once_is_one_by_one(
    seed: int, n: int, rate: float, flat: bool, weighted: bool, intercept: bool
) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 3)), rng.normal(size=(n, 1))
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], size=n) if weighted else None
    elapsed = rng.choice([0.0, 1.0, 1.0, 7.0], size=n)
    prior = Factor(3 + intercept)
    if not flat:
        prior.append(rng.normal(size=(9, 3)), rng.normal(size=(9, 1)), intercept=intercept)
        prior.reset_counts()
    slowly, at_once = prior.copy(), prior.copy()
    for part in (slice(0, n // 3), slice(n // 3, n)):
        some = None if weights is None else weights[part]
        rows, discounts = Rows(X[part], y[part], some, intercept=intercept), rate ** elapsed[part]
        learn_stabilized(slowly, prior, rows, discounts)
        absorb_stabilized(at_once, prior, rows, discounts)
        assert_same(at_once, slowly)


def test_a_feature_that_went_quiet_is_known_as_it_would_be_row_by_row() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 2)), rng.normal(size=(3000, 1))
    X[500:, 1] = 0.0
    prior, slowly = Factor(2), Factor(2)
    at_once, discounts = Factor(2), np.full(3000, 0.98)
    learn_stabilized(slowly, prior, Rows(X, y), discounts)
    absorb_stabilized(at_once, prior, Rows(X, y), discounts)
    assert_same(at_once, slowly)
    assert 0.0 < at_once.root[1, 1] < 1e-9
    assert at_once.coefficients() == pytest.approx(slowly.coefficients(), rel=1e-9)


@pytest.mark.parametrize("bad", [np.nan, 1e200])
def test_rows_that_are_refused_change_nothing(bad: float) -> None:
    factor = Factor(2)
    X = np.ones((4, 2))
    X[1, 1] = bad
    with pytest.raises(FloatingPointError):
        absorb_stabilized(factor, Factor(2), Rows(X, np.ones((4, 1))), np.full(4, 0.9))
    assert not factor.triangle.any()
