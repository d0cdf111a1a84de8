"""Names of columns: two of one name, and names that are no text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from posterity import BayesianLinearRegression
from posterity.factorization import BayesianFactorizationClassifier, BayesianFactorizationMachine
from posterity.sparse import (
    DiagonalLinearRegression,
    DiagonalLogisticRegression,
    DiagonalPoissonRegression,
    SparseLinearRegression,
    SparseLogisticRegression,
    SparsePoissonRegression,
)

pandas = pytest.importorskip("pandas")

WIDE = [
    DiagonalLinearRegression,
    DiagonalLogisticRegression,
    DiagonalPoissonRegression,
    SparseLinearRegression,
    SparseLogisticRegression,
    SparsePoissonRegression,
]
MACHINES = [BayesianFactorizationMachine, BayesianFactorizationClassifier]
Y = np.arange(24) % 2
NUMBERS = np.random.default_rng(0).normal(size=(24, 3)) + 0.3 * Y[:, None]
LEVELS = np.stack([list("abcabcab") * 3, list("xyzxxy") * 4], axis=1).astype(object)


@pytest.mark.parametrize("model", WIDE + MACHINES)
def test_two_columns_of_one_name_are_refused(model: Any) -> None:
    X = pandas.DataFrame(LEVELS, columns=["shop", "shop"])
    with pytest.raises(ValueError, match="X has two columns of the name 'shop'"):
        model().fit(X, Y)
    learned = model().fit(X.set_axis(["shop", "site"], axis=1), Y)
    with pytest.raises(ValueError, match="X has two columns of the name 'site'"):
        learned.predict(X.set_axis(["site", "site"], axis=1))


@pytest.mark.parametrize("model", [*WIDE, BayesianLinearRegression])
def test_columns_without_text_for_names_go_by_place(model: Any) -> None:
    X = pandas.DataFrame(NUMBERS)
    learned = model().fit(X, Y)
    expected = learned.predict(X)
    for names in ([2, 0, 1], [10, 11, 12], [("a", 1), ("a", 2), ("b", 1)]):
        predicted = learned.predict(X.set_axis(names, axis=1))
        np.testing.assert_allclose(predicted, expected, rtol=1e-14)
    turned = X[[2, 1, 0]]
    by_place = learned.predict(turned.set_axis([0, 1, 2], axis=1))
    np.testing.assert_allclose(learned.predict(turned), by_place, rtol=1e-14)
    assert not np.array_equal(learned.predict(turned), expected)
    with pytest.raises(TypeError, match=r"string|text"):
        learned.predict(X.set_axis(["a", 1, 2], axis=1))


@pytest.mark.parametrize("model", MACHINES)
def test_sides_without_text_for_names_go_by_place(model: Any) -> None:
    X = pandas.DataFrame(LEVELS)
    learned = model(rank=1).fit(X, Y)
    np.testing.assert_array_equal(learned.predict(X.set_axis([1, 0], axis=1)), learned.predict(X))


def test_a_column_that_is_asked_for_as_levels_is_there_or_refused() -> None:
    X = pandas.DataFrame(np.arange(24.0).reshape(-1, 2) % 3)
    by_place = SparseLinearRegression(categorical_features=["1"]).fit(X, Y[:12])
    assert by_place.feature_names_[0] == "0"
    assert all(name.startswith("1=") for name in by_place.feature_names_[1:])
    with pytest.raises(ValueError, match="categorical_features names 1, which X lacks"):
        SparseLinearRegression(categorical_features=[1]).fit(X, Y[:12])
