"""What is predicted of counts is their mean: on rows that were fitted, the events that came."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from posterity.sparse import DiagonalPoissonRegression, SparsePoissonRegression


@pytest.mark.parametrize("kind", [DiagonalPoissonRegression, SparsePoissonRegression])
def test_a_prediction_is_the_mean_of_the_distribution(kind: Any) -> None:
    rows = [[f"shop {i % 6}"] for i in range(60)]
    model = kind().fit(rows, [3 if i % 6 == 0 else 0 for i in range(60)])
    expected = model.predict_distribution(rows).mean()
    np.testing.assert_allclose(model.predict(rows), expected, rtol=1e-12)
    assert model.predict_one(rows[1]) == pytest.approx(expected[1], rel=1e-12)
