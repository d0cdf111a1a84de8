"""Single rows under one memory: the lean path is what one call over all rows is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posterity import BayesianLinearRegression
from posterity.factor import Factor
from posterity.forgetting import Exponential, Stabilized
from posterity.kernel import empty_triangle

PRECISIONS: list[Any] = [0.0, 1.0, np.diag([1.0, 2.0, 3.0])]


@given(
    seed=st.integers(0, 2**32 - 1),
    strategy=st.sampled_from(
        [Exponential(0.95), Exponential(half_life=2.0), Stabilized(0.95), Stabilized(half_life=2.0)]
    ),
    precision=st.sampled_from(PRECISIONS),
    intercept=st.booleans(),
)
def test_rows_are_one_call(seed: int, strategy: Any, precision: Any, intercept: bool) -> None:
    rng = np.random.default_rng(seed)
    X, weights = rng.normal(size=(60, 3)), rng.integers(0, 3, size=60).astype(float)
    y = X @ [1.0, 2.0, 0.0] + rng.normal(size=60)
    settings = {
        "prior_precision": precision,
        "forgetting": strategy,
        "fit_intercept": intercept,
        "noise_prior": (1.0, 1.0),
    }
    lean, whole = (BayesianLinearRegression(**settings) for _ in range(2))
    for row, target, weight in zip(X, y, weights, strict=True):
        lean.learn_one(row, target, weight)
    whole.partial_fit(X, y, weights)
    assert "_learn_lean" in lean.__dict__
    np.testing.assert_allclose(lean.coef_, whole.coef_, rtol=1e-9, atol=1e-12)
    assert lean.n_effective_ == pytest.approx(whole.n_effective_, rel=1e-12)
    assert lean.n_observations_ == weights.sum()
    told, twin = (model.predict_distribution(X[:4]) for model in (lean, whole))
    np.testing.assert_allclose(told.scale, twin.scale, rtol=1e-9)
    assert lean.log_evidence_ == pytest.approx(whole.log_evidence_, rel=1e-9, abs=1e-9)


def test_times_leave_the_lean_path() -> None:
    X, y, times = np.eye(3), np.array([1.0, 2.0, 3.0]), [0.0, 2.5, 7.0]
    settings = {"prior_precision": 1.0, "forgetting": Stabilized(0.9), "noise_precision": 1.0}
    rows, whole = (BayesianLinearRegression(**settings) for _ in range(2))
    for x, target, time in zip(X, y, times, strict=True):
        rows.learn_one(x, target, time=time)
    whole.partial_fit(X, y, times=times)
    np.testing.assert_allclose(rows.coef_, whole.coef_, rtol=1e-12)
    with pytest.raises(ValueError, match="give times"):
        rows.learn_one(X[0], 1.0)


def test_what_does_not_fit_is_refused() -> None:
    path = Factor(2).row_path(True)
    for discount in (0.0, 1.5, float("nan")):
        with pytest.raises(ValueError, match="above 0 and at most 1"):
            path.fade(discount)
    with pytest.raises(ValueError, match="none of this triangle"):
        path.fade(0.9, empty_triangle(9))
