"""Triangles of products, where their condition says that no digit is lost, and only there."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posterity import kernel
from posterity.factor import Factor
from posterity.factor.gram import compute_reliable_triangle
from posterity.kernel.columns import Columns

N, M = 3_000, 50


def problem(seed: int = 0, noise: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, M)) * np.logspace(-6, 6, M) + rng.normal(size=M) * np.logspace(-4, 8, M)
    Y = (X / np.abs(X).max(axis=0)).sum(axis=1, keepdims=True) + noise * rng.normal(size=(N, 2))
    return X, Y


def by_panels(X, Y, weights, known, intercept) -> np.ndarray:
    triangle = kernel.empty_triangle(len(known))
    triangle[:, : len(known)] = known
    kernel.append_block(triangle, Y.shape[1], np.asarray(X), Y, weights, intercept)
    return triangle[:, : len(known)]


@given(st.integers(0, 10**6), st.booleans(), st.booleans(), st.booleans())
def test_it_is_the_triangle_of_panels(
    seed: int, intercept: bool, weighted: bool, prior: bool
) -> None:
    X, Y = problem(seed)
    X -= 0.0 if intercept else X.mean(axis=0)
    weights = np.random.default_rng(seed).choice([0.0, 0.5, 2.0], size=N) if weighted else None
    known = np.zeros((M + intercept + 2,) * 2)
    if prior:
        known[range(int(intercept), M), range(int(intercept), M)] = 3.0
    expected = by_panels(X, Y, weights, known, intercept)
    scale = np.sqrt(np.square(expected).sum(axis=0))
    columns = Columns(tuple(X.T))
    for rows in (X, np.asfortranarray(X), columns):
        triangle = compute_reliable_triangle(rows, Y, weights, known, intercept=intercept)
        assert triangle is not None
        np.testing.assert_allclose(triangle / scale, expected / scale, atol=1e-13)
        assert not np.tril(triangle, -1).any()
        assert (np.diagonal(triangle) > 0.0).all()
        # The residuals, which are what is left when the targets' squares are nearly used up.
        diagonal = np.diagonal(triangle)[-2:]
        np.testing.assert_allclose(diagonal, np.diagonal(expected)[-2:], rtol=1e-11)


@pytest.mark.parametrize(
    "what",
    [
        "collinear",
        "constant",
        "no noise",
        "a mean without an intercept",
        "not a number",
        "infinite",
        "too large to square",
        "too small to square",
        "few rows",
        "known more than precisions",
        "a row that decides",
    ],
)
def test_panels_are_left_what_they_know_better(what: str) -> None:
    X, Y = problem()
    known, intercept, n = np.zeros((M + 3, M + 3)), True, N
    if what == "collinear":
        X[:, 3] = X[:, 4] * (1.0 + 1e-3 * np.random.default_rng(1).normal(size=N))
    elif what == "constant":
        X[:, 3] = 7.0
    elif what == "no noise":
        Y[:, 1] = X[:, 0] + 1e-4 * Y[:, 1] * X[:, 0].std()
    elif what == "a mean without an intercept":
        X, known, intercept = X + 1e9, np.zeros((M + 2, M + 2)), False
    elif what == "not a number":
        X[17, 5] = np.nan
    elif what == "infinite":
        Y[17, 0] = np.inf
    elif what == "too large to square":
        X[17, 5] = 1e160
    elif what == "too small to square":
        X *= 1e-150
    elif what == "few rows":
        n = M
    elif what == "known more than precisions":
        known[3, 5] = 1.0
    elif what == "a row that decides":
        X[17, 5] = X[17, 6] = 1e12
    assert compute_reliable_triangle(X[:n], Y[:n], None, known, intercept=intercept) is None


def test_a_factor_is_the_same_either_way() -> None:
    X, Y = problem()
    whole, parts = Factor(M + 1, 2), Factor(M + 1, 2)
    whole.append(X, Y, intercept=True)
    for start in range(0, N, 60):  # too few rows for products
        parts.append(X[start : start + 60], Y[start : start + 60], intercept=True)
    assert whole.count == parts.count
    np.testing.assert_allclose(whole.coefficients(), parts.coefficients(), rtol=1e-9)
    whole.append(X, Y, intercept=True)  # now much is known
    np.testing.assert_allclose(whole.residual(), 2.0 * parts.residual(), rtol=1e-10)
