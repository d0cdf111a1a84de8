"""Columns of few weights, which do not tell their scale: numbers, and text of two levels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from guarantees import slopes
from posterity.sparse import DiagonalLinearRegression, SparseLinearRegression


def test_a_small_slope_is_not_taken_for_none() -> None:
    """lme4: lmer says .070 +- .077."""
    rng = np.random.default_rng(0)
    shop, x = np.repeat(np.arange(20), 10), rng.normal(size=200)
    y = 1 + 0.3 * rng.normal(size=20)[shop] + 0.15 * x + rng.normal(size=200)
    frame = pd.DataFrame({"shop": shop, "x": x})
    model = SparseLinearRegression(categorical_features=["shop"]).fit(frame, y)
    found = model.summary().loc["x"]
    assert found["mean"] == pytest.approx(0.070, abs=0.004)
    assert found["sd"] == pytest.approx(0.077, abs=0.002)
    assert found["low"] == pytest.approx(-0.082, abs=0.005)
    assert found["high"] == pytest.approx(0.222, abs=0.005)


@pytest.mark.parametrize("kind", [SparseLinearRegression, DiagonalLinearRegression])
@pytest.mark.parametrize("columns", [1, 5])
def test_slopes_of_no_size_collapse(kind: Any, columns: int) -> None:
    rng = np.random.default_rng(1)
    for size in (0.0, 1.0, 2.0):
        X = rng.normal(size=(120, columns))
        frame = pd.DataFrame(X).add_prefix("x").assign(group=np.repeat(np.arange(12), 10))
        y = X.sum(axis=1) * size / 11.0 + rng.normal(size=120)
        table = kind(categorical_features=["group"]).fit(frame, y).summary()
        sd = table.loc[[f"x{place}" for place in range(columns)], "sd"]
        assert ((sd > 0.06) & (sd < 0.13)).all()


def test_two_arms_differ_as_their_means_do() -> None:
    rng = np.random.default_rng(2)
    arm = rng.integers(0, 2, 200)
    for size in (0.0, 0.5, 1.0, 3.0):
        y = 1.0 + size * 0.14 * arm + rng.normal(size=200)
        frame = pd.DataFrame({"arm": np.where(arm == 1, "new", "old")})
        weights = SparseLinearRegression().fit(frame, y).summary()["mean"]
        difference = weights["arm=new"] - weights["arm=old"]
        means = y[arm == 1].mean() - y[arm == 0].mean()
        assert difference == pytest.approx(means, rel=0.03)


def test_more_numbers_than_rows_are_drawn_to_0() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(140, 200))
    mean = X[:, :4] @ [1.0, -1.0, 1.0, -1.0]
    frame = pd.DataFrame(X).add_prefix("x")
    y = mean + rng.normal(size=140)
    model = SparseLinearRegression().fit(frame[:100], y[:100])
    assert np.sqrt(np.mean((model.predict(frame[100:]) - mean[100:]) ** 2)) < 1.0
    low, high = model.predict_interval(frame[100:]).T
    assert np.mean((low <= y[100:]) & (y[100:] <= high)) > 0.8


@pytest.mark.slow
@pytest.mark.parametrize("table", [(5, 6), (20, 10)])
@pytest.mark.parametrize("intercept", [False, True])
def test_intervals_beside_groups(table: tuple[int, int], intercept: bool) -> None:
    held = np.sum(
        [
            slopes.slopes(
                np.random.default_rng(seed),
                kind=SparseLinearRegression,
                table=table,
                intercept=intercept,
            )
            for seed in range(60)
        ],
        axis=0,
    )
    assert 0.91 < held[0] / held[1] < 0.985
