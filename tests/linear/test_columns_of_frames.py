"""Data frames, tables and arrays of other numbers say what the same numbers in an array do."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pandas as pd
import pytest

from posterity import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    GroupedRegression,
)
from posterity.basis import Spline
from posterity.forgetting import Exponential

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 4))
X[:, 3] = RNG.integers(0, 2, size=400)
X[:, 1] = RNG.integers(-50, 50, size=400)
Y = X @ np.array([1.0, -0.1, 0.5, 2.0]) + RNG.normal(size=400)
NAMES = list("abcd")
MIXED = {
    "a": X[:, 0].copy(),
    "b": X[:, 1].astype(np.int16),
    "c": X[:, 2].copy(),
    "d": X[:, 3] > 0.0,
}

FRAMES: dict[str, Any] = {
    "Fortran order": np.asfortranarray(X),
    "every second": np.repeat(X, 2, axis=0)[::2],
    "pandas, one block": pd.DataFrame(X, columns=NAMES),
    "pandas, in columns": pd.DataFrame(np.asfortranarray(X), columns=NAMES),
    "pandas, mixed": pd.DataFrame(MIXED),
    "pandas, nullable": pd.DataFrame(MIXED).convert_dtypes(),
    "Polars": pl.DataFrame(X, schema=NAMES),
    "Polars, mixed": pl.DataFrame(MIXED),
    "Polars, in pieces": pl.concat([pl.DataFrame(X[:150]), pl.DataFrame(X[150:])], rechunk=False),
    "Arrow": pl.DataFrame(MIXED).to_arrow(),
    "Arrow, in pieces": pa.concat_tables([pa.table(MIXED).slice(0, 9), pa.table(MIXED).slice(9)]),
}


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"prior_precision": 1.0},
        {"prior_precision": "ard"},
        {"prior_precision": 1.0, "forgetting": Exponential(0.99)},
        {"basis": Spline()},
        {"noise": "linear"},
    ],
    ids=str,
)
def test_a_frame_is_its_array(name: str, settings: dict[str, Any]) -> None:
    def model() -> BayesianLinearRegression:
        return BayesianLinearRegression(**settings)

    frame, half = FRAMES[name], np.arange(400) < 200
    expected = model().fit(X, Y).partial_fit(X, Y)
    ours = model().fit(frame, Y).partial_fit(frame, Y)
    assert np.allclose(ours.predict(frame), expected.predict(X), rtol=1e-8)
    predictive = ours.predict_distribution(frame).std()
    assert np.allclose(predictive, expected.predict_distribution(X).std(), rtol=1e-8)
    weighted = model().fit(frame, Y, half.astype(float)).predict(frame)
    assert np.allclose(weighted, model().fit(X, Y, half.astype(float)).predict(X), rtol=1e-8)


@pytest.mark.parametrize("name", FRAMES)
def test_in_other_models(name: str) -> None:
    frame, label, keys = FRAMES[name], Y > 0.0, np.arange(400) % 5
    both = np.column_stack([Y, -Y])
    for ours, theirs in (
        (lambda Z: BayesianLogisticRegression().fit(Z, label).predict_proba(Z), X),
        (lambda Z: BayesianLinearRegression().fit(Z, both).predict(Z), X),
        (lambda Z: GroupedRegression().fit(Z, Y, groups=keys).predict(Z, groups=keys), X),
        (lambda Z: BayesianLinearRegression().predict_then_learn(Z, Y).mean(), X),
    ):
        assert np.allclose(ours(frame), ours(theirs), rtol=1e-8)


@pytest.mark.parametrize("kind", ["f4", "f2", "i1", "i8", "u2", "?", ">f8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_other_numbers(kind: str, order: Any) -> None:
    numbers = np.array(X, dtype=kind, order=order)
    same = numbers.astype(np.float64)
    for settings in ({"prior_precision": 1.0}, {}):
        ours = BayesianLinearRegression(**settings).fit(numbers, Y)
        expected = BayesianLinearRegression(**settings).fit(same, Y)
        assert np.allclose(ours.predict(numbers), expected.predict(same), rtol=1e-8)


def test_what_is_missing_is_refused_by_name() -> None:
    holes = X.copy()
    holes[17, 2] = np.nan
    frames = {
        "pandas": pd.DataFrame(holes, columns=NAMES),
        "nullable": pd.DataFrame(holes, columns=NAMES).convert_dtypes(),
        "Polars": pl.DataFrame(MIXED).with_columns(pl.Series("c", [*X[:17, 2], None, *X[18:, 2]])),
    }
    for frame in frames.values():
        model = BayesianLinearRegression(prior_precision=1.0)
        with pytest.raises(ValueError, match=r"NaN in row 17, column 'c'"):
            model.fit(frame, Y)
        model.fit(FRAMES["pandas, mixed"], Y)
        with pytest.raises(ValueError, match=r"NaN in row 17, column 'c'"):
            model.partial_fit(frame, Y)
        assert model.n_observations_ == 400.0


def test_a_fit_makes_no_copy_of_the_columns() -> None:
    n, m = 20_000, 12
    data = {f"x{j}": np.arange(n, dtype=np.float64) % (j + 7) for j in range(m)}
    data["x0"] = data["x0"].astype(np.float32)
    data["x5"] = np.arange(n) % 3
    y = np.arange(n) % 11.0
    for frame in (
        pl.DataFrame(data),
        pl.DataFrame(data).to_arrow(),
        np.ones((n, m), np.float32) * (np.arange(n)[:, None] % np.arange(3, m + 3)),
    ):
        BayesianLinearRegression(prior_precision=1.0).fit(frame, y)
        tracemalloc.start()
        BayesianLinearRegression(prior_precision=1.0).fit(frame, y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 0.1 * 8 * n * m
