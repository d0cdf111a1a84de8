"""Diagonal models for river: river's own checks, keys that come and go, text."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("river", reason="needs river: pip install 'posterity[river]'")
pd = pytest.importorskip("pandas", reason="needs pandas, as river's mini-batches do")

from river import checks, metrics  # noqa: E402

from posterity.adapters import river as adapted  # noqa: E402
from posterity.sparse import DiagonalLogisticRegression  # noqa: E402

MODELS = [
    adapted.DiagonalLinearRegression(),
    adapted.DiagonalLinearRegression(noise_precision=1.0, fit_intercept=False),
    adapted.DiagonalLogisticRegression(),
    adapted.DiagonalLogisticRegression(interactions=2),
]


@pytest.mark.parametrize(
    ("model", "check"),
    [
        pytest.param(model, check, id=f"{place}-{check.__name__}-{number}")
        for place, model in enumerate(MODELS)
        for number, check in enumerate(checks.yield_checks(model))
    ],
)
def test_rivers_own_checks(model: Any, check: Callable[[Any], None]) -> None:
    random.seed(0)  # some of them shuffle or drop features
    check(model.clone())


@pytest.mark.parametrize("model", MODELS)
def test_none_of_rivers_checks_is_skipped(model: Any) -> None:
    assert model._unit_test_skips() == set()


def test_rows_are_those_of_posteritys_own() -> None:
    rng = np.random.default_rng(0)
    rows = [
        {"site": f"s{s}", "ad": f"a{a}"} | ({"hour": 1.5} if s else {})
        for s, a in rng.integers(0, 5, size=(300, 2))
    ]
    y = [bool(row["site"] == "s1" or rng.random() < 0.3) for row in rows]
    ours, own = adapted.DiagonalLogisticRegression(), DiagonalLogisticRegression()
    metric = metrics.LogLoss()
    for row, label in zip(rows, y, strict=True):
        metric.update(label, ours.predict_proba_one(row))
        ours.learn_one(row, label)
    own.partial_fit(rows, y, classes=[False, True])
    assert metric.get() < 0.65
    assert ours.predict_proba_one(rows[0]) == pytest.approx(own.predict_proba_one(rows[0]))
    again = ours.to_estimator()
    ours.learn_one({"site": "new"}, True)
    assert "site=new" not in again.feature_names_


def test_frames() -> None:
    X = pd.DataFrame({"shop": ["a", "b"] * 20, "price": np.linspace(-1.0, 1.0, 40)})
    model = adapted.DiagonalLinearRegression()
    assert model.predict_many(X[:2]).tolist() == [0.0, 0.0]
    model.learn_many(X, pd.Series(np.where(X["shop"] == "a", 1.0, 3.0)))
    assert model.predict_many(X[:2]).round(0).tolist() == [1.0, 3.0]
    predictive = model.predict_one({"shop": "a", "price": 0.0}, with_dist=True)
    assert abs(predictive.mu - 1.0) < 3.0 * predictive.sigma
    labels = adapted.DiagonalLogisticRegression()
    labels.learn_many(X, X["shop"] == "a")
    assert labels.predict_proba_many(X).sum(axis=1).round(9).eq(1.0).all()
    assert labels.predict_many(X[:2]).tolist() == [True, False]
