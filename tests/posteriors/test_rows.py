"""The container of rows, and the promise that nobody writes into what it holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from posterity import (
    BayesianGeneralizedLinear,
    BayesianLinearRegression,
    BayesianNegativeBinomialRegression,
    BayesianPoissonRegression,
    BayesianQuantileRegression,
    BayesianRobustRegression,
)
from posterity.factor import Rows
from posterity.forgetting import (
    Adaptive,
    Changepoint,
    Directional,
    Exponential,
    RandomWalk,
    Smoothing,
    Stabilized,
    Window,
)
from posterity.likelihoods import StudentT
from posterity.linear.estimator import LinearEstimator

RNG = np.random.default_rng(5)
N = 12
X = RNG.normal(size=(N, 2))
Y = RNG.poisson(np.exp(0.3 * X[:, :1])).astype(float)
WEIGHTS = np.where(np.arange(N) == 0, 0.0, 1.5)
ELAPSED = RNG.uniform(0.1, 2.0, size=N)
STRATEGIES = (
    None,
    Exponential(discount=0.9),
    Stabilized(discount=0.9),
    Directional(discount=0.9),
    Smoothing(0.8),
    RandomWalk(0.01),
    Window(5),
    Adaptive(),
    Changepoint(),
)
KINDS: dict[str, Any] = {
    "linear": BayesianLinearRegression,
    "Poisson": BayesianPoissonRegression,
    "negative binomial": BayesianNegativeBinomialRegression,
    "robust": BayesianRobustRegression,
    "quantile": BayesianQuantileRegression,
    "Student-t": lambda **given: BayesianGeneralizedLinear(StudentT(4.0), **given),
}


def locked(rows: Rows) -> Rows:
    """The same rows, in arrays that can't be written."""
    for array in (rows.X, rows.y, rows.weights, rows.elapsed, rows.offsets):
        if array is not None:
            array.setflags(write=False)
    return rows


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda given: type(given).__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_nobody_writes_into_rows(kind: str, strategy: Any) -> None:
    rows = locked(Rows(X.copy(), Y.copy(), WEIGHTS.copy(), ELAPSED.copy()))
    for way in ("fit", "append", "predict_then_learn"):
        if way == "fit" and kind in ("robust", "quantile"):
            continue  # these settle their first rows in a way of their own
        model: LinearEstimator = KINDS[kind](prior_precision=1.0, forgetting=strategy)
        model._set_features(2, None)
        model._start()
        model._predict_with(way, rows)  # type: ignore[arg-type]
        model._predict_with("append", rows)
        assert model.n_observations_ == pytest.approx(2.0 * rows.total)


def test_parts_of_rows() -> None:
    rows = Rows(X, Y, WEIGHTS, ELAPSED, X[:, 0], intercept=True)
    part = rows[2:5]
    assert len(part) == 3
    assert part.intercept
    for name in ("X", "y", "weights", "elapsed"):
        np.testing.assert_array_equal(getattr(part, name), getattr(rows, name)[2:5])
    np.testing.assert_array_equal(rows[rows.weights > 0.0].offsets, X[1:, 0])  # type: ignore[operator]
    assert (rows.first, rows.total) == (1, 1.5 * (N - 1))
    few = rows.thin(4)
    assert few.X.flags.c_contiguous
    np.testing.assert_array_equal(few.X, X[::4])
    np.testing.assert_array_equal(few.weights, 4.0 * WEIGHTS[::4])


def test_what_is_left_out_stays_out() -> None:
    rows = Rows(X, Y)[3:]
    assert rows.weights is None
    assert rows.offsets is None
    assert (rows.first, rows.total, len(rows.elapsed)) == (0, N - 3.0, 0)
