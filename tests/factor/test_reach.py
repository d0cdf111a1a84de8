"""How far features reach, found from rows side by side."""

from __future__ import annotations

import numpy as np
import pytest

from posterity.factor.rows import SiteRows


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 1000])
@pytest.mark.parametrize("order", ["C", "F"])
def test_reach_is_the_largest_distance_from_zero(n: int, order: str) -> None:
    X = np.asarray(np.random.default_rng(n).normal(size=(n, 3)) - 1.0, order=order)  # type: ignore[call-overload]
    nothing = np.zeros(n)
    rows = SiteRows(X, nothing, nothing, nothing, nothing)
    np.testing.assert_array_equal(rows.reach, np.abs(X).max(axis=0, initial=0.0))
