"""Compiled passes over the rows of a log, beside plain formulas."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from posterity.kernel import judge_rows, moderated_sums


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(0, 40),
    k=st.integers(1, 12),
    constant=st.booleans(),
    with_model=st.booleans(),
    with_all=st.booleans(),
)
@settings(deadline=None)
def test_rows_are_judged_as_by_formulas(
    seed: int, n: int, k: int, constant: bool, with_model: bool, with_all: bool
) -> None:
    rng = np.random.default_rng(seed)
    chances = rng.dirichlet(np.ones(k), size=n)
    if constant:
        chances = np.broadcast_to(rng.dirichlet(np.ones(k)), (n, k))
    expected = rng.normal(size=(n, k)) if with_model else None
    logged = rng.integers(2, size=(n, k)).astype(float) if with_all else None
    arms, rows = rng.integers(k, size=n), np.arange(n)
    match, own, direct, mass, unsupported, bad = judge_rows(chances, expected, logged, arms)
    np.testing.assert_array_equal(match, chances[rows, arms])
    np.testing.assert_allclose(mass, chances.sum(axis=0), rtol=1e-12)
    assert bad == -1
    if expected is None:
        assert not own.any()
        assert not direct.any()
    else:
        np.testing.assert_array_equal(own, expected[rows, arms])
        np.testing.assert_allclose(direct, np.sum(chances * expected, axis=1), atol=1e-12)
    lacking = np.zeros(k) if logged is None else np.sum(chances * (logged <= 0.0), axis=0)
    np.testing.assert_allclose(unsupported, lacking, rtol=1e-12)


@pytest.mark.parametrize("row", [[0.5, 0.6], [-0.1, 1.1], [np.nan, 1.0], [0.0, 0.0]])
def test_the_first_row_that_is_no_policy_is_named(row: list[float]) -> None:
    chances = np.full((5, 2), 0.5)
    chances[3] = chances[4] = row
    assert judge_rows(chances, None, None, np.zeros(5, dtype=np.intp))[-1] == 3


@given(seed=st.integers(0, 10**6), n=st.integers(0, 40), count=st.integers(1, 8))
@settings(deadline=None)
def test_moderated_sums_are_those_of_whole_arrays(seed: int, n: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    weight, error, direct = rng.gamma(1.0, 3.0, size=n), rng.normal(size=n), rng.normal(size=n)
    thresholds = np.append(rng.gamma(1.0, 5.0, size=count - 1) + 0.01, np.inf)
    for shrinks in (False, True):
        share = 1.0 * (weight <= thresholds[:, None])
        if shrinks:
            share = 1.0 / (1.0 + np.square(weight) / thresholds[:, None])
        left = share * error
        plain = [left.sum(axis=1), left @ direct, np.square(left).sum(axis=1)]
        found = moderated_sums(weight, error, direct, thresholds, shrinks)
        np.testing.assert_allclose(found, plain, rtol=1e-11, atol=1e-11)


def test_arrays_that_do_not_fit_are_refused() -> None:
    both, arms = np.full((3, 2), 0.5), np.zeros(3, dtype=np.intp)
    with pytest.raises(ValueError, match="side by side"):
        judge_rows(np.asfortranarray(both), None, None, arms)
    with pytest.raises(ValueError, match="expected must be 3 rows of 2"):
        judge_rows(both, both[:, :1].copy(), None, arms)
    with pytest.raises(ValueError, match="row 1 has arm 2"):
        judge_rows(both, None, None, np.array([0, 2, 0]))
    three = np.ones(3)
    with pytest.raises(ValueError, match="same length"):
        moderated_sums(three, three[:2].copy(), three, three, False)
    with pytest.raises(ValueError, match="there are 9 thresholds"):
        moderated_sums(three, three, three, np.ones(9), False)
