"""Numbers beside levels: answers are the same wherever their zero is, and in any unit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from posterity.factorization import BayesianFactorizationClassifier, BayesianFactorizationMachine

RNG = np.random.default_rng(0)
N = 160
ANN, TEA = RNG.integers(0, 12, N), RNG.integers(0, 8, N)
YEAR, PRICE = 3.0 * RNG.normal(size=N), RNG.normal(size=N)
ETA = RNG.normal(size=12)[ANN] + (0.5 + 0.3 * RNG.normal(size=8)[TEA]) * YEAR + PRICE
Y = ETA + 0.3 * RNG.normal(size=N)
LEARNED, READ = slice(0, 120), slice(120, N)

Model = type[BayesianFactorizationMachine] | type[BayesianFactorizationClassifier]
MODELS = [BayesianFactorizationMachine, BayesianFactorizationClassifier]


def make_rows(offset: float = 0.0, unit: float = 1.0) -> Any:
    return np.column_stack([ANN, TEA, unit * (YEAR + offset)]).astype(object)


def predict(kind: Model, X: Any, way: str) -> Any:
    y = Y if kind is BayesianFactorizationMachine else (Y > 0.0) * 1
    model: Any = kind(2, numeric=[2], max_sweeps=10)
    if way == "fit":
        model.fit(X[LEARNED], y[LEARNED])
    elif way == "batches":
        for start in range(0, 120, 30):
            model.partial_fit(X[start : start + 30], y[start : start + 30])
    else:
        for row, target in zip(X[LEARNED].tolist(), y[LEARNED].tolist(), strict=True):
            model.learn_one(row, target)
    if kind is BayesianFactorizationClassifier:
        return model.predict_proba(X[READ])
    return np.stack(model.predict(X[READ], return_std=True))


@pytest.mark.slow
@pytest.mark.parametrize("way", ["fit", "batches", "rows"])
@pytest.mark.parametrize("kind", MODELS)
def test_zero_is_anywhere(kind: Model, way: str) -> None:
    known = predict(kind, make_rows(), way)
    for offset in (-2020.0, 3e6):
        np.testing.assert_allclose(predict(kind, make_rows(offset), way), known, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["fit", "batches"])
@pytest.mark.parametrize("kind", MODELS)
def test_unit_is_any(kind: Model, way: str) -> None:
    known = predict(kind, make_rows(), way)
    for unit in (1e-6, 1e6):
        np.testing.assert_allclose(predict(kind, make_rows(unit=unit), way), known, atol=1e-6)


def test_weights_are_of_numbers_as_they_come() -> None:
    X = np.column_stack([ANN, TEA, YEAR + 20.0, PRICE - 5.0]).astype(object)
    model = BayesianFactorizationMachine(2, numeric=[2, 3]).fit(X, Y)
    row = model.predict(X[:5])
    for i in range(5):
        places = [
            model.levels_[side].tolist().index(X[i, side]) if side < 2 else 0 for side in range(4)
        ]
        values = [1.0, 1.0, X[i, 2], X[i, 3]]
        eta = model.intercept_
        for side, (place, x) in enumerate(zip(places, values, strict=True)):
            eta += model.weights_[side][place] * x
            for other in range(side):
                ends = model.factors_[side][place] @ model.factors_[other][places[other]]
                eta += ends * x * values[other]
        assert eta == pytest.approx(row[i], rel=1e-9)


def test_column_of_one_value() -> None:
    X = np.column_stack([ANN, np.full(N, 0.1)]).astype(object)
    model = BayesianFactorizationMachine(1, numeric=[1]).fit(X, Y)
    plain = BayesianFactorizationMachine(0).fit(X[:, :1], Y)
    np.testing.assert_allclose(model.predict(X[:9]), plain.predict(X[:9, :1]), atol=0.05)


@pytest.mark.parametrize("kind", MODELS)
def test_first_rows_have_a_weight(kind: Model) -> None:
    with pytest.raises(ValueError, match="weight"):
        kind(1).partial_fit([["ann", "tea"]] * 2, [1, 0], [0.0, 0.0])
