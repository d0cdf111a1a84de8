"""Models that have learned rows without weight alone, or have none left: the prior's answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from posterity import BayesianLinearRegression
from posterity.forgetting import Stabilized
from posterity.sparse import (
    DiagonalLinearRegression,
    DiagonalLogisticRegression,
    DiagonalPoissonRegression,
    SparseLinearRegression,
    SparseLogisticRegression,
    SparsePoissonRegression,
)

SPARSE = [SparseLinearRegression, SparseLogisticRegression, SparsePoissonRegression]
DIAGONAL = [DiagonalLinearRegression, DiagonalLogisticRegression, DiagonalPoissonRegression]
RNG = np.random.default_rng(0)
NAMED = [{"shop": "abc"[i % 3], "price": 0.1 * i - 0.3} for i in range(20)]
ROWS: dict[str, Any] = {
    "names": NAMED,
    "tokens": [[one["shop"]] for one in NAMED],
    "matrix": csr_array(RNG.integers(0, 3, (20, 4)).astype(float)),
}
Y = np.arange(20) % 2
NOTHING = np.zeros(20)
SETTINGS = [{}, {"fit_intercept": False}, {"prior_precision": 2.0}]


def check_prior_answers(model: Any, X: Any, *, exact: bool) -> None:
    """Effects of mean 0 with the spread of the prior, and no NaN in whatever is read."""
    np.testing.assert_array_equal(model.coef_, 0.0)
    assert model.intercept_ == 0.0
    assert not np.isnan(model.coef_std_).any()
    assert not np.isnan(model.predict_interval(X)).any()
    assert model.n_observations_ == pytest.approx(0.0, abs=1e-9)
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(model.predict_proba(X), 0.5, rtol=1e-12)
    elif "Linear" in type(model).__name__:
        np.testing.assert_array_equal(model.predict(X), 0.0)
        assert np.isinf(model.predict_interval(X)).all() or model.noise_precision is not None
    else:
        assert (model.predict(X) >= 1.0).all()
    if exact and not model.fit_intercept and "Linear" not in type(model).__name__:
        expected = 1.0 if model.prior_precision == "auto" else 0.5**0.5
        np.testing.assert_allclose(model.coef_std_, expected)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("model", SPARSE + DIAGONAL)
def test_rows_without_weight_tell_nothing(model: Any, kind: str, setting: dict[str, Any]) -> None:
    X = ROWS[kind]
    learned = model(**setting).partial_fit(X, Y, NOTHING)
    check_prior_answers(learned, X, exact=model in SPARSE)
    learned.partial_fit(X, Y)
    other = model(**setting).partial_fit(X, Y)
    np.testing.assert_allclose(learned.predict(X), other.predict(X), rtol=1e-6)


@pytest.mark.parametrize("model", DIAGONAL)
def test_rows_without_weight_are_predicted_by_the_prior(model: Any) -> None:
    told = model().predict_then_learn(NAMED, Y, NOTHING)
    assert not np.isnan(
        np.asarray(told.mean() if hasattr(told, "mean") else told.probabilities)
    ).any()


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("model", SPARSE)
def test_nothing_is_left_of_rows_that_are_all_unlearned(
    model: Any, kind: str, setting: dict[str, Any]
) -> None:
    X, weights = ROWS[kind], np.linspace(0.1, 1.3, 20)
    learned = model(**setting).partial_fit(X, Y, weights)
    learned.predict(X)  # scales are learned, too
    for some in (slice(0, 7), slice(7, 20)):
        learned.unlearn(X[some], Y[some], weights[some])
    check_prior_answers(learned, X, exact=True)
    learned.partial_fit(X, Y + 4 * ("Linear" in model.__name__))
    other = model(**setting).partial_fit(X, Y + 4 * ("Linear" in model.__name__))
    np.testing.assert_allclose(learned.predict(X), other.predict(X), rtol=1e-5)


@pytest.mark.parametrize("known", [None, 4.0])
def test_with_noise_known_or_not_it_is_what_a_dense_model_says(known: float | None) -> None:
    X = ROWS["matrix"]
    dense = BayesianLinearRegression(noise_precision=known).partial_fit(X.toarray(), Y, NOTHING)
    for model in (SparseLinearRegression, DiagonalLinearRegression):
        learned = model(noise_precision=known).partial_fit(X, Y, NOTHING)
        np.testing.assert_array_equal(learned.predict(X), dense.predict(X.toarray()))
        expected = dense.predict_interval(X.toarray())
        np.testing.assert_array_equal(learned.predict_interval(X), expected)
        np.testing.assert_equal(learned.noise_precision_, dense.noise_precision_)


@pytest.mark.parametrize("model", SPARSE + DIAGONAL)
def test_what_is_forgotten_entirely_is_not_known(model: Any) -> None:
    learned = model(forgetting=Stabilized(half_life=1.0))
    learned.partial_fit(NAMED, Y, times=np.arange(20.0))
    for later in (1e5, 2e5):
        learned.partial_fit(NAMED[:1], Y[:1], np.zeros(1), times=[later])
    assert not np.isnan(learned.predict(NAMED)).any()
    learned.partial_fit(NAMED, Y, times=np.full(20, 3e5))
    assert np.isfinite(np.asarray(learned.predict(NAMED), dtype=float)).all()


@pytest.mark.parametrize("model", SPARSE)
def test_a_level_without_rows_has_the_prior_scale_of_a_column_that_is_new(model: Any) -> None:
    X = [{"shop": s, "day": d} for s in "abcdef" for d in "xyz"]
    y = np.arange(18) % 2
    more = [{"site": s} for s in "pqrstu"]
    learned = model(fit_intercept=False).partial_fit(X, y)
    expected = learned.predict_interval(X)
    learned.partial_fit(more, [1, 1, 0, 1, 1, 1]).predict(X)
    learned.unlearn(more, [1, 1, 0, 1, 1, 1])
    np.testing.assert_allclose(learned.predict_interval(X), expected, rtol=1e-4)
    assert learned.coef_[-6:] == pytest.approx(np.zeros(6), abs=1e-9)


@pytest.mark.parametrize(
    ("model", "weight"),
    [*((model, 1e-100) for model in SPARSE + DIAGONAL), *((m, 1e20) for m in DIAGONAL)]
    + [(SparseLinearRegression, weight) for weight in (1e12, 1e20, 1e100)],
)
def test_weights_at_the_ends(model: Any, weight: float) -> None:
    learned = model().partial_fit(NAMED, Y, np.full(20, weight))
    assert not np.isnan(np.asarray(learned.predict(NAMED), dtype=float)).any()
    with pytest.raises(ValueError, match=r"sample_weight is 1e\+308 in row 1"):
        model().partial_fit(NAMED[:2], Y[:2], [1.0, 1e308])
    beside = model().partial_fit(NAMED, Y, [1.0] * 19 + [5e-324])
    without = model().partial_fit(NAMED, Y, [1.0] * 19 + [0.0])
    np.testing.assert_array_equal(beside.predict(NAMED), without.predict(NAMED))
