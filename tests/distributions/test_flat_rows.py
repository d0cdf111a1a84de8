"""Which rows are flat: nothing is known about them yet."""

from __future__ import annotations

import numpy as np
import pytest

from posterity.distributions import Mixture, Normal, StudentT

INF = np.inf


@pytest.mark.parametrize(
    ("distribution", "flat"),
    [
        (Normal([0.0, 1.0, 2.0], [1.0, INF, 0.0]), [False, True, False]),
        (StudentT([1.0, 0.0, 5.0], [0.0, 0.0, 0.0], [1.0, 1.0, INF]), [False, True, True]),
        (StudentT(0.0, [0.0, 1.0], 1.0), [True, True]),
        (Mixture([Normal([0.0, 0.0], [INF, 1.0]), Normal(0.0, 1.0)], [0.5, 0.5]), [True, False]),
        (Mixture([Normal(0.0, INF), Normal(0.0, 1.0)], [[0.0, 1.0], [1.0, 0.0]]), [False, True]),
        (Normal(0.0, INF), True),
    ],
)
def test_flat_rows_are_told(distribution: Normal | StudentT | Mixture, flat: list[bool]) -> None:
    assert np.array_equal(distribution.is_flat(), flat)
    assert np.array_equal(np.isneginf(distribution.interval(0.5)[0]), flat)
