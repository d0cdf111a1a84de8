"""Normal equations are those of the rows, and are refused where they lack the digits."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from posterity.factor import Factor
from posterity.factor.gram import Products, gram, solve


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 3000), m=st.integers(1, 40))
def test_they_are_those_of_the_factor(seed: int, n: int, m: int) -> None:
    rng = np.random.default_rng(seed)
    X, y, weights = rng.normal(size=(n, m)), rng.normal(size=n), rng.integers(0, 3, size=n) * 1.0
    for intercept in (False, True):
        factor = Factor(m + intercept)
        factor.append(X, y[:, None], weights, intercept=intercept)
        matrix = gram(X, weights, intercept=intercept)
        np.testing.assert_allclose(matrix, factor.root.T @ factor.root, atol=1e-9 * n)
        solution = solve(matrix, factor.root.T @ factor.moments[:, 0])
        if solution is not None:
            np.testing.assert_allclose(solution, factor.coefficients()[:, 0], rtol=1e-5, atol=1e-7)


def test_columns_that_nearly_depend_on_each_other_are_refused() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2))
    for apart in (0.0, 1e-6):
        near = np.column_stack([X, X[:, 0] + apart * rng.normal(size=50)])
        assert solve(gram(near, np.ones(50), intercept=True), np.ones(4)) is None
    assert solve(np.array([[np.inf]]), np.ones(1)) is None
    assert solve(np.zeros((1, 1)), np.ones(1)) is None


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 300), m=st.integers(1, 20))
def test_triangles_of_products_are_those_of_the_rows(seed: int, n: int, m: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, m)) * np.exp(rng.normal(size=m)), rng.normal(size=(n, 1))
    factor = Factor(m)
    factor.append(X, y)
    found = Products(X.T @ X, X.T @ y, float(np.sum(y * y))).triangle()
    if n >= 20 * m:
        assert found is not None
    if found is not None:
        for ours, theirs in zip(found, (factor.root, factor.moments), strict=False):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9 * np.abs(theirs).max())
        np.testing.assert_allclose(found[2], factor.residual_root, atol=1e-5)


def test_triangles_that_would_lose_digits_are_refused() -> None:
    X = np.random.default_rng(0).normal(size=(50, 2))
    near = np.column_stack([X, X[:, 0] + 1e-2 * X[:, 1]])
    assert Products(near.T @ near, np.ones((3, 1)), 1.0).triangle() is None
    assert Products(np.zeros((1, 1)), np.ones((1, 1)), 1.0).triangle() is None
