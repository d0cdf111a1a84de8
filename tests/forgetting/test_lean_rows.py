"""Single rows under one memory: the lean path is what one call over all rows is."""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posterity import BayesianLinearRegression
from posterity.factor import Factor
from posterity.forgetting import Directional, Exponential, RandomWalk, Stabilized, Window
from posterity.kernel import DirectionalPath, WindowPath, empty_triangle

PRECISIONS: list[Any] = [0.0, 1.0, np.diag([1.0, 2.0, 3.0])]


@given(
    seed=st.integers(0, 2**32 - 1),
    strategy=st.sampled_from(
        [Exponential(0.95), Exponential(half_life=2.0), Stabilized(0.95), Stabilized(half_life=2.0)]
    ),
    precision=st.sampled_from(PRECISIONS),
    intercept=st.booleans(),
)
def test_rows_are_one_call(seed: int, strategy: Any, precision: Any, intercept: bool) -> None:
    rng = np.random.default_rng(seed)
    X, weights = rng.normal(size=(60, 3)), rng.integers(0, 3, size=60).astype(float)
    y = X @ [1.0, 2.0, 0.0] + rng.normal(size=60)
    settings = {
        "prior_precision": precision,
        "forgetting": strategy,
        "fit_intercept": intercept,
        "noise_prior": (1.0, 1.0),
    }
    lean, whole = (BayesianLinearRegression(**settings) for _ in range(2))
    for row, target, weight in zip(X, y, weights, strict=True):
        lean.learn_one(row, target, weight)
    whole.partial_fit(X, y, weights)
    assert "_fast_learn_one" in lean.__dict__
    np.testing.assert_allclose(lean.coef_, whole.coef_, rtol=1e-9, atol=1e-12)
    assert lean.n_effective_ == pytest.approx(whole.n_effective_, rel=1e-12)
    assert lean.n_observations_ == weights.sum()
    predictive, twin = (model.predict_distribution(X[:4]) for model in (lean, whole))
    np.testing.assert_allclose(predictive.scale, twin.scale, rtol=1e-9)
    assert lean.log_evidence_ == pytest.approx(whole.log_evidence_, rel=1e-9, abs=1e-9)


WAYS: list[Any] = [
    Window(size=7),
    Window(duration=9.5),
    Directional(0.9),
    Directional(half_life=3.0),
    RandomWalk(0.01),
    RandomWalk([0.1, 0.0, 0.01]),
]


@given(
    seed=st.integers(0, 2**32 - 1),
    strategy=st.sampled_from(WAYS),
    prior=st.sampled_from([*PRECISIONS, "auto"]),
    intercept=st.booleans(),
    noise=st.sampled_from([None, 2.0]),
    weighted=st.booleans(),
)
def test_rows_are_many_calls(
    seed: int, strategy: Any, prior: Any, intercept: bool, noise: float | None, weighted: bool
) -> None:
    rng = np.random.default_rng(seed)
    X, weights = rng.normal(size=(40, 3)), rng.integers(0, 3, size=40).astype(float)
    weights = weights if weighted else np.ones(40)
    y = X @ [1.0, 2.0, 0.0] + rng.normal(size=40)
    settings = {
        "prior_precision": prior,
        "forgetting": strategy,
        "fit_intercept": intercept,
        "noise_precision": noise,
        "noise_prior": (1.0, 1.0),
    }
    lean, whole = (BayesianLinearRegression(**settings) for _ in range(2))
    for x, target, weight in zip(X, y, weights, strict=True):
        ahead = lean.predict_one(x), whole.predict_one(x)
        assert ahead[0] == pytest.approx(ahead[1], rel=1e-9, abs=1e-9)
        lean.learn_one(x, target, weight)
        whole.partial_fit(x[None], [target], [weight])
    if not weighted:
        assert "_fast_learn_one" in lean.__dict__
    np.testing.assert_allclose(lean.coef_, whole.coef_, rtol=1e-9, atol=1e-9)
    assert lean.n_effective_ == pytest.approx(whole.n_effective_, rel=1e-12)
    assert lean.n_observations_ == weights.sum()
    predictive, twin = (model.predict_distribution(X[:4]) for model in (lean, whole))
    np.testing.assert_allclose(predictive.scale, twin.scale, rtol=1e-9)
    assert lean.log_evidence_ == pytest.approx(whole.log_evidence_, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("strategy", WAYS, ids=repr)
@pytest.mark.parametrize("prior", [1.0, "auto"])
def test_reads_and_refused_rows_change_nothing(strategy: Any, prior: Any) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 3))
    y = X @ [1.0, 0.0, -1.0] + rng.normal(size=30)
    model, twin = (
        BayesianLinearRegression(prior_precision=prior, forgetting=strategy) for _ in range(2)
    )
    for x, target in zip(X, y, strict=True):
        model.learn_one(x, target)
        twin.learn_one(x, target)
        model.predict_one(x + 1.0)
        copy = pickle.loads(pickle.dumps(model)).learn_one(
            x, 5.0
        )  # of which the model knows nothing
        for bad in ((np.array([0.0, np.nan, 1.0]), 1.0), (x, np.inf), (x, 1.0, -1.0)):
            with pytest.raises(ValueError, match="finite"):
                model.learn_one(*bad)
    assert copy.n_observations_ == 31.0
    assert model.coef_.tolist() == twin.coef_.tolist()
    assert model.log_evidence_ == twin.log_evidence_


def test_a_window_goes_on_in_any_way() -> None:
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(200, 2)), rng.normal(size=200)
    rows, whole = (
        BayesianLinearRegression(prior_precision=1.0, forgetting=Window(size=20)) for _ in range(2)
    )
    for first in range(0, 200, 10):
        part = slice(first, first + 10)
        if first % 30 == 0:
            rows.partial_fit(X[part], y[part])
        else:
            for x, target in zip(X[part], y[part], strict=True):
                rows.learn_one(x, target)
            branch = rows._branch()  # shares what rows are kept, and goes its own way
            branch.learn_one(X[0], 1e3)
        whole.partial_fit(X[part], y[part])
        np.testing.assert_allclose(rows.coef_, whole.coef_, rtol=1e-9, atol=1e-9)
    assert rows._posterior.stored_rows.X.tolist() == X[-20:].tolist()


def test_times_leave_the_lean_path() -> None:
    X, y, times = np.eye(3), np.array([1.0, 2.0, 3.0]), [0.0, 2.5, 7.0]
    settings = {"prior_precision": 1.0, "forgetting": Stabilized(0.9), "noise_precision": 1.0}
    rows, whole = (BayesianLinearRegression(**settings) for _ in range(2))
    for x, target, time in zip(X, y, times, strict=True):
        rows.learn_one(x, target, time=time)
    whole.partial_fit(X, y, times=times)
    np.testing.assert_allclose(rows.coef_, whole.coef_, rtol=1e-12)
    with pytest.raises(ValueError, match="give times"):
        rows.learn_one(X[0], 1.0)


def test_what_does_not_fit_is_refused() -> None:
    path = Factor(2).row_path(True)
    for discount in (0.0, 1.5, float("nan")):
        with pytest.raises(ValueError, match="above 0 and at most 1"):
            path.fade(discount)
    with pytest.raises(ValueError, match="none of this triangle"):
        path.fade(0.9, empty_triangle(9))
    own = Factor(2).triangle, np.zeros(2), True, None
    with pytest.raises(ValueError, match="none of this triangle"):
        DirectionalPath(*own, 0.9, empty_triangle(9))
    with pytest.raises(ValueError, match="expected 2"):
        path.wander([0.1])
    kept = SimpleNamespace(X=np.empty((0, 2)))
    with pytest.raises(ValueError, match="expected 1"):
        WindowPath(*own, empty_triangle(3), kept, 5, np.inf)


@pytest.mark.parametrize("strategy", [Directional(0.9), RandomWalk(0.01)], ids=repr)
@pytest.mark.parametrize("prior", [0.0, 1.0, "auto"])
@pytest.mark.parametrize("intercept", [False, True])
def test_the_evidence_is_that_of_the_rows_that_count(
    strategy: Any, prior: Any, intercept: bool
) -> None:
    rng = np.random.default_rng(12)
    X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    weights = np.where(
        np.isin(np.arange(40), [0, 1, 7, 8, 39]), 0.0, rng.uniform(0.5, 2.0, size=40)
    )
    counts = weights > 0.0
    settings = {"prior_precision": prior, "forgetting": strategy, "fit_intercept": intercept}
    whole, pieces, some = (BayesianLinearRegression(**settings) for _ in range(3))
    whole.partial_fit(X, y, weights)
    for first in (0, 1, 5, 9):
        part = slice(first, {0: 1, 1: 5, 5: 9, 9: 40}[first])
        pieces.predict_then_learn(X[part], y[part], weights[part])
    some.partial_fit(X[counts], y[counts], weights[counts])
    assert np.isfinite(whole.log_evidence_)
    for model in (whole, pieces):
        assert model.log_evidence_ == pytest.approx(some.log_evidence_, rel=1e-9)
