"""Sparse matrices give dense models the same answer as their rows with zeros do."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from posterity import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegression,
    BayesianQuantileRegression,
    BayesianRobustRegression,
    GroupedRegression,
)
from posterity.forgetting import Exponential
from posterity.linear import matrices

Array = NDArray[np.float64]


def rows(n: int = 60, p: int = 4, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * (rng.random((n, p)) < 0.4)
    return X, 1.0 + X.sum(axis=1) + rng.normal(size=n)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
@pytest.mark.parametrize(
    "model",
    [
        BayesianLinearRegression(),
        BayesianLinearRegression(noise="linear"),
        BayesianQuantileRegression(),
        GroupedRegression(),
        BayesianRobustRegression(),
    ],
    ids=repr,
)
def test_sparse_is_dense(model, kind) -> None:
    X, y = rows()
    dense = type(model)(**model.get_params()).fit(X, y)
    ours = type(model)(**model.get_params()).fit(kind(X), y)
    np.testing.assert_allclose(ours.coef_, dense.coef_, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(ours.predict(kind(X)), dense.predict(X), rtol=1e-10)


@pytest.mark.parametrize("model", [BayesianLogisticRegression, BayesianPoissonRegression])
def test_sparse_labels_and_counts(model) -> None:
    X, y = rows()
    labels = (y > 1.0).astype(int)
    dense, ours = model().fit(X, labels), model().fit(sparse.csr_array(X), labels)
    np.testing.assert_allclose(ours.coef_, dense.coef_, rtol=1e-10)
    np.testing.assert_allclose(ours.predict(sparse.csc_array(X)), dense.predict(X), rtol=1e-10)


@pytest.mark.parametrize("forgetting", [None, Exponential(discount=0.99)])
def test_many_rows_are_read_in_parts(monkeypatch: pytest.MonkeyPatch, forgetting) -> None:
    X, y = rows(200)
    weights = np.random.default_rng(1).random(200)
    dense = BayesianLinearRegression(forgetting=forgetting).fit(X, y, weights)
    seen = []
    whole = matrices.check_matrix

    def watched(part):
        seen.append(part.shape[0])
        return whole(part)

    monkeypatch.setattr(matrices, "BLOCK", 4 * 30)
    monkeypatch.setattr(matrices, "check_matrix", watched)
    ours = BayesianLinearRegression(forgetting=forgetting)
    ours.partial_fit(sparse.csr_array(X[:100]), y[:100], weights[:100])
    ours.partial_fit(sparse.csr_array(X[100:]), y[100:], weights[100:])
    assert max(seen) == 30  # what is made dense
    np.testing.assert_allclose(ours.coef_, dense.coef_, rtol=1e-10)
    ours.fit(sparse.csr_array(X), y, weights)
    np.testing.assert_allclose(ours.coef_, dense.coef_, rtol=1e-10)
    assert ours.n_observations_ == pytest.approx(weights.sum())
    before = ours.coef_
    y[150] = np.nan
    with pytest.raises(ValueError, match="y contains NaN in row 150"):
        ours.partial_fit(sparse.csr_array(X), y)
    np.testing.assert_array_equal(ours.coef_, before)


def test_duplicates_are_summed_and_left_alone() -> None:
    twice = sparse.csr_array((np.ones(4), ([0, 0, 0, 1]), [0, 3, 4]), shape=(2, 2))
    dense = BayesianLinearRegression(prior_precision=1.0).fit(twice.toarray(), [1.0, 2.0])
    ours = BayesianLinearRegression(prior_precision=1.0).fit(twice, [1.0, 2.0])
    np.testing.assert_allclose(ours.coef_, dense.coef_, rtol=1e-12)
    assert twice.nnz == 4


def test_what_is_wrong_is_said() -> None:
    X = sparse.csr_array(np.array([[1.0, 0.0], [0.0, np.nan]]))
    with pytest.raises(ValueError, match="Input X contains NaN in row 1, column 1"):
        BayesianLinearRegression().fit(X, [1.0, 2.0])
    X.data[1], X.indices[0] = 1.0, -1
    with pytest.raises(ValueError, match="entry with index -1: they must lie between 0 and 1"):
        BayesianLinearRegression().fit(X, [1.0, 2.0])
    with pytest.raises(ValueError, match=r"3,000 columns.*posterity\.sparse.*Diagonal"):
        BayesianLogisticRegression().fit(sparse.csr_array((5, 3000)), [0, 1, 0, 1, 0])
