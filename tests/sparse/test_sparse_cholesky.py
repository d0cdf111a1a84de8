"""The sparse factor beside dense algebra."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.linalg import LinAlgError

from posterity.factor.sparse_cholesky import SparseCholesky
from posterity.factor.sparse_pattern import find_sparsity_pattern


@given(seed=st.integers(0, 10**6), p=st.integers(1, 40), density=st.floats(0.0, 0.4))
def test_factor_is_that_of_dense_algebra(seed: int, p: int, density: float) -> None:
    rng = np.random.default_rng(seed)
    X = sparse.csr_array(sparse.random_array((50, p), density=density, rng=rng))
    A = sparse.csc_array(X.T @ X + sparse.eye_array(p))
    pattern = find_sparsity_pattern(A)
    factor = SparseCholesky(pattern.gather(A), pattern)
    inverse, right = np.linalg.inv(A.toarray()), rng.normal(size=(p, 3))
    np.testing.assert_allclose(factor.solve(right), inverse @ right, atol=1e-10)
    np.testing.assert_allclose(factor.solve(right[:, 0]), inverse @ right[:, 0], atol=1e-10)
    forms = np.einsum("ik,ij,jk->k", right, inverse, right)
    np.testing.assert_allclose(np.square(factor.whiten(right)).sum(axis=0), forms, rtol=1e-9)
    entries = factor.inverse_entries()
    np.testing.assert_allclose(entries[pattern.diagonal], np.diag(inverse), rtol=1e-9)
    own = pattern.pair(X) @ entries
    dense = X.toarray()
    np.testing.assert_allclose(own, np.einsum("ij,jk,ik->i", dense, inverse, dense), atol=1e-10)


def test_levels_that_do_not_meet_fill_nothing_in() -> None:
    arrow = sparse.lil_array(sparse.eye_array(500))
    arrow[0, :] = arrow[:, 0] = 0.01
    assert find_sparsity_pattern(sparse.csc_array(arrow)).n_numbers < 1100


def test_a_matrix_that_is_not_positive_definite_is_refused() -> None:
    for A in (np.diag([1.0, -1.0]), np.array([[1.0, 2.0], [2.0, 1.0]])):
        matrix = sparse.csc_array(A)
        pattern = find_sparsity_pattern(matrix)
        with pytest.raises(LinAlgError, match="not positive definite"):
            SparseCholesky(pattern.gather(matrix), pattern)
