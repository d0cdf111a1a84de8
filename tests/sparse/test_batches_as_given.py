"""Batches that are centred and learned in one compiled step: as in parts, each centred apart."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from posterity.forgetting import Stabilized
from posterity.posteriors.diagonal import DiagonalPosterior
from posterity.sparse import DiagonalLinearRegression, DiagonalPoissonRegression

N, LEARN = 60, DiagonalPosterior.learn


def learn_in_parts(posterior, data, pairs, undo, *, predict):
    """The slow twin: rows are centred by NumPy, in parts between which centres move."""
    return LEARN(posterior, data, lambda rows, centres: rows, undo, predict=predict)


def make_rows(kind):
    rng = np.random.default_rng(0)
    numbers = rng.normal(5.0, 2.0, (N, 2)) * (rng.random((N, 2)) < [0.95, 0.3])
    y = rng.poisson(2.0, N).astype(float)
    if kind == "matrix":
        return csr_array(np.hstack([numbers, rng.normal(size=(N, 1))])), y
    levels = [f"l{level}" for level in rng.integers(0, 5, N)]
    return pd.DataFrame({"a": numbers[:, 0], "level": levels, "b": numbers[:, 1]}), y


@pytest.mark.parametrize("kind", ["frame", "matrix"])
@pytest.mark.parametrize("forgetting", [None, Stabilized(0.9)])
@pytest.mark.parametrize("model", [DiagonalLinearRegression, DiagonalPoissonRegression])
@pytest.mark.parametrize("weighted", [False, True])
def test_one_step_is_all_parts(monkeypatch, kind, forgetting, model, weighted):
    X, y = make_rows(kind)
    weights = np.random.default_rng(1).integers(0, 3, N).astype(float) if weighted else None
    one, other = model(forgetting=forgetting), model(forgetting=forgetting)
    told = one.predict_then_learn(X, y, weights)
    monkeypatch.setattr(model._structure, "learn", learn_in_parts)
    twin = other.predict_then_learn(X, y, weights)
    np.testing.assert_allclose(told.mean(), twin.mean(), rtol=1e-9)
    mine, theirs = one._posterior, other._posterior
    np.testing.assert_allclose(mine.beliefs, theirs.beliefs, rtol=1e-8, atol=1e-9)
    for name in ("values", "sums", "counts", "n_rows", "weight", "due"):
        found, expected = getattr(mine.centres, name), getattr(theirs.centres, name)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(mine.n_effective, theirs.n_effective)
    rows = one._number(*one._read(X), new=False)
    by_parts = mine.moments(rows, lambda rows, centres: rows)
    np.testing.assert_allclose(one._eta(X)[0], by_parts[0], rtol=1e-9)
