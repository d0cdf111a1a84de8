"""Products of rows by BLAS: those of NumPy, in the upper triangle, of rows in either order."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from posterity.kernel import add_products


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(("n", "q"), [(1, 1), (1, 5), (5, 1), (7, 3), (3, 7), (0, 4), (1000, 50)])
def test_they_are_those_of_numpy(n: int, q: int, order: Literal["C", "F"]) -> None:
    rng = np.random.default_rng(n + q)
    room = np.array(rng.normal(size=(n + 3, q)), order=order)
    rows, total = room[:n], np.asfortranarray(rng.normal(size=(q, q)))
    expected = np.triu(total + rows.T @ rows) + np.tril(total, -1)
    add_products(total, rows)
    np.testing.assert_allclose(total, expected, rtol=1e-13, atol=1e-13)


def test_other_rows_are_refused() -> None:
    total = np.zeros((3, 3), order="F")
    with pytest.raises(ValueError, match="rows of 2 columns have"):
        add_products(total, np.ones((4, 2)))
    with pytest.raises(ValueError, match="copy them first"):
        add_products(total, np.ones((8, 6))[::2, ::2])
    np.testing.assert_array_equal(total, 0.0)
