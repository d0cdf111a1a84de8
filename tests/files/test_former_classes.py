"""Files of many classes from before one posterior held every way to forget."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from posterity import load
from posterity.files import dumps, loads

KEPT = Path(__file__).parent / "data" / "classes"
EXPECTED = json.loads((KEPT / "expected.json").read_text(encoding="utf-8"))
# Quadrature over the predictors of many classes has other points than it had over contrasts.
MANY = {"forty", "many_by_rows"}


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_they_read_the_same(name: str) -> None:
    model, expected = load(KEPT / f"{name}.safetensors"), EXPECTED[name]
    X, close = expected["X"], {"rtol": 1e-9, "atol": 1e-12}
    many = {"rtol": 0.05, "atol": 5e-3} if name in MANY else close
    np.testing.assert_allclose(model.predict_proba(X), expected["probabilities"], **many)
    if name not in MANY:
        np.testing.assert_allclose(model.predict_interval(X), expected["intervals"], **close)
        assert model.log_evidence_ == pytest.approx(expected["log_evidence"], rel=1e-9)
    np.testing.assert_allclose(model.posterior_.std()[:12], expected["std"], rtol=1e-9)
    np.testing.assert_allclose(model.coef_[:, :3], expected["coef"], rtol=1e-9, atol=1e-12)
    assert model.n_observations_ == pytest.approx(expected["n_observations"], rel=1e-12)
    assert model.n_effective_ == pytest.approx(expected["n_effective"], rel=1e-12)
    np.testing.assert_allclose(model.prior_precision_, expected["prior_precision"], rtol=1e-9)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_they_go_on_and_are_written_anew(name: str) -> None:
    model, X = load(KEPT / f"{name}.safetensors"), np.array(EXPECTED[name]["X"])
    before = model.n_observations_
    model.predict_then_learn(X, model.classes_[: len(X)])
    for x in X:
        model.learn_one(x, model.classes_[0])
    assert model.n_observations_ == pytest.approx(before + 2 * len(X))
    again = loads(dumps(model))
    np.testing.assert_allclose(again.predict_proba(X), model.predict_proba(X), rtol=1e-12)
