"""Triangular systems are solved without LAPACK's threads."""

from __future__ import annotations

import numpy as np
import pytest

from posterity.distributions.triangles import solve_triangle


@pytest.mark.parametrize("p", [0, 1, 3, 40])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (5,)])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
def test_a_triangle_is_solved(
    p: int, shape: tuple[int, ...], lower: bool, transposed: bool
) -> None:
    rng = np.random.default_rng(p)
    full = rng.standard_normal((p, p)) + 3.0 * np.sqrt(p) * np.eye(p)
    right = rng.standard_normal((p, *shape))
    triangle = np.tril(full) if lower else np.triu(full)
    found = solve_triangle(full, right, lower=lower, transposed=transposed)
    assert found.shape == right.shape
    np.testing.assert_allclose((triangle.T if transposed else triangle) @ found, right, atol=1e-12)
