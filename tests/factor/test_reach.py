"""How far features reach, found from rows side by side."""

from __future__ import annotations

import numpy as np
import pytest

from posterity.factor.rows import SiteRows


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 1000])
@pytest.mark.parametrize("order", ["C", "F"])
def test_reach_is_the_largest_distance_from_mean_or_zero(
    n: int, order: str, intercept: bool
) -> None:
    X = np.asarray(np.random.default_rng(n).normal(size=(n, 3)) - 1.0, order=order)  # type: ignore[call-overload]
    nothing = np.zeros(n)
    rows = SiteRows(X, nothing, nothing, nothing, nothing)
    middle = X.mean(axis=0) if intercept and n else 0.0
    farthest = np.abs(X - middle).max(axis=0, initial=0.0)
    np.testing.assert_allclose(rows.measure_reach(intercept=intercept), farthest, rtol=1e-13)
