"""Models with a sparse factor: beside dense models, mixed models and quadrature."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit

from posterity import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegression,
    safety,
)
from posterity.files import dumps, loads
from posterity.forgetting import Stabilized
from posterity.posteriors import _sparse_search
from posterity.sparse import (
    DiagonalLinearRegression,
    SparseLinearRegression,
    SparseLogisticRegression,
    SparsePoissonRegression,
)

Array = NDArray[np.float64]
MODELS = [SparseLinearRegression, SparseLogisticRegression, SparsePoissonRegression]


def problem(seed: int = 0, n: int = 200, p: int = 20) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * (rng.random((n, p)) < 0.2)
    y = 5.0 + X @ rng.normal(size=p) + rng.normal(size=n)
    return X, y, rng.random(n)


def crossed(n: int = 300) -> tuple[pd.DataFrame, Array]:
    rng = np.random.default_rng(0)
    plate, sample = rng.integers(0, 24, n), rng.integers(0, 6, n)
    y = 20.0 + 0.85 * rng.normal(size=24)[plate] + 1.9 * rng.normal(size=6)[sample]
    rows = pd.DataFrame({"plate": plate, "sample": sample, "age": rng.normal(size=n)})
    return rows, y + 0.55 * rng.normal(size=n)


@pytest.mark.parametrize("noise_precision", [None, 2.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_answer_is_that_of_the_dense_model(
    noise_precision: float | None, fit_intercept: bool
) -> None:
    X, y, weights = problem()
    settings = {
        "prior_precision": 1.5,
        "noise_precision": noise_precision,
        "fit_intercept": fit_intercept,
    }
    ours = SparseLinearRegression(**settings).fit(sparse.csr_array(X), y, weights)
    full = BayesianLinearRegression(**settings).fit(X, y, weights)
    np.testing.assert_allclose(ours.coef_, full.coef_, rtol=1e-10, atol=1e-12)
    assert ours.intercept_ == pytest.approx(full.intercept_, rel=1e-10)
    assert ours.noise_precision_ == pytest.approx(full.noise_precision_, rel=1e-10)
    new = np.random.default_rng(1).normal(size=(5, 20))
    np.testing.assert_allclose(ours.predict_interval(new), full.predict_interval(new), rtol=1e-10)


def test_forgetting_is_that_of_the_dense_model() -> None:
    X, y, _ = problem()
    settings = {"prior_precision": 1.5, "forgetting": Stabilized(half_life=30.0)}
    ours, full = SparseLinearRegression(**settings), BayesianLinearRegression(**settings)
    for some in (slice(0, 120), slice(120, 200)):
        ours.partial_fit(sparse.csr_array(X[some]), y[some])
        full.partial_fit(X[some], y[some])
    np.testing.assert_allclose(ours.coef_, full.coef_, rtol=1e-9)
    assert ours.noise_precision_ == pytest.approx(full.noise_precision_, rel=1e-9)


@pytest.mark.parametrize("kind", MODELS)
def test_batches_rows_and_merged_models_agree(kind: Any) -> None:
    rows, y = crossed(120)
    y = y if kind is SparseLinearRegression else (y > 20.0).astype(float)
    settings = {"categorical_features": ["plate", "sample"], "prior_precision": 0.7}
    whole = kind(**settings).fit(rows, y)
    one, other = kind(**settings).fit(rows[:50], y[:50]), kind(**settings).fit(rows[50:], y[50:])
    batches = kind(**settings).partial_fit(rows[:50], y[:50])
    batches.predict(rows)  # a read changes nothing
    batches.partial_fit(rows[50:], y[50:])
    single = kind(**settings)
    for place in range(120):
        single.partial_fit(rows[place : place + 1], y[place : place + 1])
    backwards = kind(**settings).fit(rows[::-1], y[::-1])
    for model in (batches, single, backwards, one.merge(other), loads(dumps(whole))):
        np.testing.assert_allclose(model.predict(rows), whole.predict(rows), rtol=1e-5)
        assert model.n_observations_ == 120
    np.testing.assert_allclose(one.predict(rows), batches.predict(rows), rtol=1e-5)
    low, high = whole.predict_interval(rows).T
    assert np.all(low <= high)


def test_scales_are_those_of_a_mixed_model() -> None:
    """Crossed effects of statsmodels' MixedLM, by restricted maximum likelihood."""
    mixed = pytest.importorskip("statsmodels.regression.mixed_linear_model").MixedLM
    rows, y = crossed()
    rows = rows[["plate", "sample"]]
    model = SparseLinearRegression(categorical_features="all").fit(rows, y)
    frame = rows.assign(y=y, one=1)
    parts = {"plate": "0 + C(plate)", "sample": "0 + C(sample)"}
    theirs = mixed.from_formula("y ~ 1", groups="one", vc_formula=parts, data=frame).fit(reml=True)
    posterior = model._posterior
    variance = posterior.rates[0] / posterior.shape
    assert variance == pytest.approx(theirs.scale, rel=1e-4)
    scales = np.array([model.prior_scales_[name] for name in ("plate", "sample")])
    np.testing.assert_allclose(variance * scales**2, theirs.vcomp, rtol=2e-3)
    assert model.intercept_ == pytest.approx(theirs.fe_params.iloc[0], rel=1e-5)


@pytest.mark.parametrize(
    ("kind", "dense"),
    [
        (SparseLogisticRegression, BayesianLogisticRegression),
        (SparsePoissonRegression, BayesianPoissonRegression),
    ],
)
def test_labels_and_counts_have_the_moments_of_the_dense_model(kind: Any, dense: Any) -> None:
    X, y, weights = problem()
    y = (y > 5.0).astype(float)
    settings = {"prior_precision": 1.5, "fit_intercept": False}
    ours = kind(**settings).fit(sparse.csr_array(X), y, weights)
    full = dense(**settings, approximation="moments").fit(X, y, weights)
    np.testing.assert_allclose(ours.coef_, full.coef_.ravel(), rtol=1e-4, atol=1e-5)
    new = np.random.default_rng(1).normal(size=(5, 20))
    np.testing.assert_allclose(ours.predict_interval(new), full.predict_interval(new), rtol=1e-4)


def test_a_label_seldom_seen_has_its_exact_mean() -> None:
    """One row of one level: quadrature, where the mode is nearer to zero than the mean."""
    model = SparseLogisticRegression(prior_precision=0.25, fit_intercept=False)
    model = model.fit([["often"], ["seldom"], ["often"]], [0, 1, 1])
    w = np.linspace(-30.0, 30.0, 100_001)
    density = expit(w) * np.exp(-0.125 * w**2)
    mean = np.sum(w * density) / np.sum(density)
    assert model.coef_[1] == pytest.approx(mean, rel=1e-6)
    assert model.coef_std_[1] ** 2 == pytest.approx(
        np.sum((w - mean) ** 2 * density) / np.sum(density), rel=1e-6
    )


def test_what_was_never_seen_has_its_columns_prior() -> None:
    rows, y = crossed()
    rows = rows.astype({"plate": "category", "sample": "category"})
    model = SparseLinearRegression().fit(rows, y)
    row = pd.DataFrame({"plate": pd.Categorical([3]), "age": [0.1]})
    new = model._eta(row.assign(sample=pd.Categorical([77])))
    assert new == model._eta(row.assign(sample=pd.Categorical([77]), another=2.0))
    other = model._eta(row.assign(sample=pd.Categorical([78])))
    assert new == other
    assert new[1][0, 0] > model.prior_scales_["sample"] ** 2
    named = SparseLinearRegression().fit(rows.astype(str).to_dict("records"), y)
    known = named._eta([{"plate": "3"}])
    far = named._eta([{"plate": "3", "sample": "77"}])
    assert far[0] == known[0]
    assert (far[1] - known[1])[0, 0] == pytest.approx(named.prior_scales_["sample"] ** 2)


def test_memory_is_refused_before_anything_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, _ = problem()
    model = SparseLinearRegression()
    monkeypatch.setattr(safety, "machine_memory", lambda: 1000.0)
    with pytest.raises(ValueError, match=r"a sparse factor of .* numbers needs"):
        model.fit(sparse.csr_array(X), y)
    assert model._posterior_or_none is None


def test_what_a_sparse_factor_does_not_do_is_said() -> None:
    model = SparseLinearRegression().fit([["a"], ["b"]], [1.0, 2.0])
    with pytest.raises(ValueError, match="call predict and then partial_fit"):
        model.predict_then_learn([["a"]], [1.0])
    with pytest.raises(ValueError, match="were not learned"):
        SparseLogisticRegression().fit([["a"], ["b"]], [0, 1]).unlearn([["a"]], [1])
    forgets = SparseLogisticRegression(forgetting=Stabilized(half_life=9.0))
    with pytest.raises(ValueError, match="a model with forgetting can't unlearn"):
        forgets.fit([["a"], ["b"]], [0, 1]).unlearn([["a"]], [0])
    with pytest.raises(ValueError, match="differ in prior"):
        model.merge(SparseLinearRegression(prior_precision=2.0).fit([["a"]], [1.0]))


@pytest.mark.parametrize("precision", [0.7, "auto"])
def test_unlearning_undoes_learning(precision: float | str) -> None:
    rows, y = crossed(200)
    weights = np.random.default_rng(1).random(200)
    settings = {"categorical_features": ["plate", "sample"], "prior_precision": precision}
    whole = SparseLinearRegression(**settings).fit(rows, y, weights)
    less = whole.unlearn(rows[150:], y[150:], weights[150:])
    fresh = SparseLinearRegression(**settings).fit(rows[:150], y[:150], weights[:150])
    assert less.n_observations_ == pytest.approx(fresh.n_observations_)
    np.testing.assert_allclose(less.predict(rows), fresh.predict(rows), rtol=1e-5)
    np.testing.assert_allclose(less.predict_interval(rows), fresh.predict_interval(rows), rtol=1e-4)
    before = dumps(less)
    with pytest.raises(ValueError, match="were not learned"):
        less.unlearn(rows[:5].assign(age=100.0), y[:5])
    with pytest.raises(ValueError, match="never learned"):
        less.unlearn(rows[:5].assign(plate=99), y[:5])
    assert dumps(less) == before


@pytest.mark.parametrize("kind", [SparseLogisticRegression, SparsePoissonRegression])
@pytest.mark.parametrize("precision", [0.7, "auto"])
def test_unlearning_labels_and_counts_leaves_the_model_of_the_other_rows(
    kind: Any, precision: float | str
) -> None:
    rows, y = crossed(200)
    labels, weights = (y > 20.0).astype(int), np.random.default_rng(1).integers(1, 3, 200)
    settings = {"categorical_features": ["plate", "sample"], "prior_precision": precision}
    whole = kind(**settings).fit(rows, labels, weights)
    taken = np.random.default_rng(2).permutation(200)[:50]
    left = np.setdiff1d(np.arange(200), taken)
    less = whole.unlearn(rows.iloc[taken], labels[taken], weights[taken])
    fresh = kind(**settings).fit(rows.iloc[left], labels[left], weights[left])
    assert less.n_observations_ == pytest.approx(fresh.n_observations_)
    np.testing.assert_allclose(less.predict(rows), fresh.predict(rows), rtol=1e-3)
    before = dumps(less)
    one = rows.iloc[taken[:1]]
    for row, label, weight in ((one, labels[taken[:1]], 1.0), (rows.iloc[left[:1]], [7], 1.0)):
        with pytest.raises(ValueError, match=r"were not learned|more than two"):
            less.unlearn(row, label, [weight])
    assert dumps(less) == before
    again = less.partial_fit(rows.iloc[taken], labels[taken], weights[taken])
    fresh = kind(**settings).fit(rows, labels, weights)
    np.testing.assert_allclose(again.predict(rows), fresh.predict(rows), rtol=1e-3)


@pytest.mark.parametrize("kind", MODELS)
@given(seed=st.integers(0, 10**6), first=st.integers(1, 20), second=st.integers(1, 20))
@settings(deadline=None, max_examples=10)
def test_unlearning_undoes_merging(kind: Any, seed: int, first: int, second: int) -> None:
    rng = np.random.default_rng(seed)
    rows = [[f"a{rng.integers(4)}", f"b{rng.integers(3)}"] for _ in range(first + second)]
    y = rng.integers(0, 2, first + second)
    y[0], y[first] = 0, 1
    known = {"prior_precision": 1.5, "fit_intercept": False}
    one, other = kind(**known), kind(**known)
    named = {} if kind is not SparseLogisticRegression else {"classes": [0, 1]}
    one.partial_fit(rows[:first], y[:first], **named)
    other.partial_fit(rows[first:], y[first:], **named)
    before, seen = one.predict(rows[:first]), one.n_observations_
    merged = deepcopy(one).merge(other)
    merged.predict(rows)
    merged.unlearn(rows[first:], y[first:])
    assert merged.n_observations_ == seen
    np.testing.assert_allclose(merged.predict(rows[:first]), before, rtol=1e-4, atol=1e-6)


def test_equal_rows_are_unlearned_one_by_one() -> None:
    model = SparseLogisticRegression(prior_precision=1.0).fit([["a"]] * 3 + [["b"]], [1, 1, 0, 1])
    other = SparseLogisticRegression(prior_precision=1.0)
    other.fit([["a"]] * 2 + [["b"]], [1, 0, 1])
    model.unlearn([["a"]], [1])
    np.testing.assert_allclose(
        model.predict_proba([["a"], ["b"]]), other.predict_proba([["a"], ["b"]]), rtol=1e-6
    )
    with pytest.raises(ValueError, match="were not learned"):
        model.unlearn([["a"]] * 2, [1, 1])


def test_other_features_may_meet_after_rows_were_unlearned() -> None:
    """As many entries are not zero, but other ones."""
    settings = {"prior_precision": 1.0, "noise_precision": 1.0}
    first = [["a", "b"], ["c"], ["d"]]
    model = SparseLinearRegression(**settings).fit(first, [1.0, 2.0, 3.0])
    model.predict(first)
    later = [["c", "d"], ["a"], ["b"]]
    model.partial_fit(later, [4.0, 5.0, 6.0]).unlearn(first, [1.0, 2.0, 3.0])
    fresh = SparseLinearRegression(**settings).fit(later, [4.0, 5.0, 6.0])
    np.testing.assert_allclose(model.predict(first), fresh.predict(first), rtol=1e-9)
    np.testing.assert_allclose(model.predict(later), fresh.predict(later), rtol=1e-9)


@pytest.mark.parametrize("kind", MODELS)
def test_the_least_data(kind: Any) -> None:
    model = kind().partial_fit([["a"]], [1])
    assert np.isfinite(np.asarray(model.predict([["a"], ["b"], []]), dtype=float)).all()
    model.partial_fit([[]], [0])
    model.learn_one(["b"], 1)
    assert np.isfinite(model.coef_).all()
    assert model.n_observations_ == 3.0


def test_covariances_are_what_the_diagonal_neglects() -> None:
    """Two columns that are nearly the same depend on each other."""
    rng = np.random.default_rng(0)
    one = rng.normal(size=400)
    X = np.stack([one, one + 0.1 * rng.normal(size=400)], axis=1)
    y = 3.0 + X @ [1.0, -1.0] + 0.1 * rng.normal(size=400)
    exact, diagonal = (
        kind().fit(X, y) for kind in (SparseLinearRegression, DiagonalLinearRegression)
    )
    least = BayesianLinearRegression(prior_precision=0.0).fit(X, y)
    np.testing.assert_allclose(exact.coef_std_, least.posterior_.std()[1:], rtol=0.02)
    assert np.all(diagonal.coef_std_ < 0.5 * exact.coef_std_)


def test_a_search_that_goes_astray_is_made_again_by_short_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 8, size=(300, 2))
    y = (rng.random(300) < 1.0 / (1.0 + np.exp(-(X[:, 0] - X[:, 1])))).astype(int)
    how = {"categorical_features": "all"}
    expected = SparseLogisticRegression(**how).fit(X, y).predict_proba(X)
    monkeypatch.setattr(
        _sparse_search.Acceleration, "advance", lambda _, at, step, metric: at - step
    )
    found = SparseLogisticRegression(**how).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(found, expected, atol=1e-3)
