"""Numbers near the ends of double precision: a right answer, or an error that says what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from posterity import BayesianLinearRegression, BayesianLogisticRegression
from posterity.forgetting import Adaptive, Exponential, Stabilized, Window

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 2))
y = X @ [1.0, 2.0] + rng.normal(size=60)
WAYS: list[Any] = [
    None,
    Stabilized(discount=0.9),
    Exponential(discount=0.9),
    Window(20),
    Adaptive(),
]


def refusal(model: BayesianLinearRegression, X: np.ndarray, y: np.ndarray) -> str:
    """What is said against the rows; nothing where they are learned."""
    try:
        model.fit(X, y)
    except ValueError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("forgetting", WAYS, ids=lambda way: type(way).__name__)
@pytest.mark.parametrize("unit", [1e-60, 1e-100, 1e-120, 1e-150, 1e-160, 1e-200, 1e-300])
def test_features_of_any_unit(unit: float, forgetting: Any) -> None:
    usual = BayesianLinearRegression(forgetting=forgetting).fit(X, y).predict(X[:5])
    model = BayesianLinearRegression(forgetting=forgetting)
    if said := refusal(model, unit * X, y):
        assert unit < 1e-70
        assert "column 0 of X has no values beyond" in said
        assert "use smaller units, so that the numbers are larger" in said
    else:
        np.testing.assert_allclose(model.predict(unit * X[:5]), usual, atol=2e-3)


@pytest.mark.parametrize("unit", [1e-100, 1e-160, 1e-300])
def test_targets_of_any_unit(unit: float) -> None:
    usual = BayesianLinearRegression().fit(X, y).predict(X[:5])
    model = BayesianLinearRegression()
    if said := refusal(model, X, unit * y):
        assert unit < 1e-140
        assert "y has no values beyond" in said
    else:
        np.testing.assert_allclose(model.predict(X[:5]) / unit, usual, atol=1e-6)


@pytest.mark.parametrize("model", [BayesianLinearRegression(), BayesianLogisticRegression()])
def test_weights_that_vanish(model: Any) -> None:
    labels = np.asarray(y > 0.0, dtype=float)
    with pytest.raises(ValueError, match=r"no sample_weight is larger than 1e-300: .* multiply"):
        model.fit(X, labels, sample_weight=np.full(60, 1e-300))
