"""What ``fit`` of the diagonal model does: rows that are there together are visited again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from posterity import BayesianLogisticRegression, BayesianPoissonRegression
from posterity.forgetting import Stabilized
from posterity.posteriors import _diagonal_sweeps
from posterity.sparse import (
    DiagonalLinearRegression,
    DiagonalLogisticRegression,
    DiagonalPoissonRegression,
    SparseLinearRegression,
)


def meetings(seed: int, n: int, size: float) -> tuple[np.ndarray, np.ndarray]:
    """Users and items, and the log odds of their meetings."""
    rng = np.random.default_rng(seed)
    X = np.stack([rng.integers(0, 40, n), rng.integers(0, 15, n)], axis=1)
    eta = size * (rng.normal(size=40)[X[:, 0]] + rng.normal(size=15)[X[:, 1]])
    return X, eta


def fitted(kind: Any, X: np.ndarray, y: np.ndarray, **how: Any) -> Any:
    return kind(categorical_features="all", **how).fit(X, y)


@pytest.mark.parametrize(
    ("ours", "full"),
    [
        (DiagonalLogisticRegression, BayesianLogisticRegression),
        (DiagonalPoissonRegression, BayesianPoissonRegression),
    ],
)
def test_with_one_feature_a_row_it_is_exact(ours: Any, full: Any) -> None:
    """Expectation propagation of the dense model, whose weights are then independent."""
    rng = np.random.default_rng(0)
    X, y = np.eye(5)[rng.integers(0, 5, 80)], rng.integers(0, 2, 80)
    one = ours(prior_precision=0.7, fit_intercept=False).fit(X, y)
    other = full(prior_precision=0.7, fit_intercept=False, approximation="moments").fit(X, y)
    sd = other.posterior_.std()
    assert one.coef_ == pytest.approx(np.ravel(other.coef_), abs=0.02 * sd.min())
    assert one.coef_std_ == pytest.approx(sd, rel=0.02)


@pytest.mark.parametrize(
    ("kind", "read", "how"),
    [
        (DiagonalLogisticRegression, lambda model, X: model.predict_proba(X)[:, 1], {}),
        (DiagonalPoissonRegression, lambda model, X: model.predict(X), {"of": "mean"}),
    ],
)
def test_the_order_of_rows_hardly_matters(kind: Any, read: Any, how: Any) -> None:
    X, eta = meetings(1, 600, 1.5)
    y = (np.random.default_rng(2).random(600) < expit(eta)).astype(int)
    order = np.argsort(y, kind="stable")  # one pass over sorted labels is far off
    one, other = fitted(kind, X, y), fitted(kind, X[order], y[order])
    # But for what the intercept and all weights of a column have in common, which rows hardly tell.
    ends = one.predict_interval(X[:99], **how)
    apart = read(one, X[:99]) - read(other, X[:99])
    assert np.abs(apart).mean() < 0.02 * np.ptp(ends, axis=1).mean()


def test_scales_are_learned_and_weights_of_rows_count() -> None:
    X, eta = meetings(3, 3_000, 2.0)
    y = (np.random.default_rng(4).random(3_000) < expit(eta)).astype(int)
    model = fitted(DiagonalLogisticRegression, X, y)
    assert all(1.2 < size < 3.0 for size in model.prior_scales_.values())
    times = np.arange(3_000) % 3
    weighted = DiagonalLogisticRegression(categorical_features="all").fit(X, y, sample_weight=times)
    repeated = fitted(DiagonalLogisticRegression, np.repeat(X, times, 0), np.repeat(y, times))
    apart = weighted.predict_proba(X[:99]) - repeated.predict_proba(X[:99])
    assert np.abs(apart).mean() < 0.02


@pytest.mark.parametrize("noise", [1.0, 0.1, 0.01])
@pytest.mark.parametrize("known", [False, True])
def test_numbers_are_predicted_as_by_the_exact_model(noise: float, known: bool) -> None:
    X, eta = meetings(9, 2_500, 1.0)
    y = 5.0 + eta + noise * np.random.default_rng(10).normal(size=2_500)
    how = {"noise_precision": noise**-2.0} if known else {}
    ours = fitted(DiagonalLinearRegression, X[:2_000], y[:2_000], **how)
    exact = SparseLinearRegression(categorical_features="all", **how).fit(X[:2_000], y[:2_000])
    assert ours.predict(X[2_000:]) == pytest.approx(exact.predict(X[2_000:]), abs=0.05 * noise)
    widths = (np.ptp(one.predict_interval(X[2_000:]), axis=1) for one in (ours, exact))
    assert next(widths) == pytest.approx(next(widths), rel=0.02)


def test_one_pass_has_to_do_where_rows_fade_or_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    X, eta = meetings(5, 200, 1.0)
    y = (np.random.default_rng(6).random(200) < expit(eta)).astype(int)
    how = {"categorical_features": "all", "forgetting": Stabilized(0.99)}
    once = DiagonalLogisticRegression(**how).partial_fit(X, y, classes=[0, 1])
    fit = DiagonalLogisticRegression(**how).fit(X, y)
    assert np.array_equal(fit.predict_proba(X), once.predict_proba(X))
    monkeypatch.setattr(_diagonal_sweeps, "MOST_ENTRIES", 10)
    many = fitted(DiagonalLogisticRegression, X, y)
    once = DiagonalLogisticRegression(categorical_features="all").partial_fit(X, y, classes=[0, 1])
    assert np.array_equal(many.predict_proba(X), once.predict_proba(X))
    line = fitted(DiagonalLinearRegression, X, eta)
    once = DiagonalLinearRegression(categorical_features="all").partial_fit(X, eta)
    assert np.array_equal(line.predict(X), once.predict(X))


def test_the_stream_goes_on() -> None:
    X, eta = meetings(7, 900, 1.5)
    y = (np.random.default_rng(8).random(900) < expit(eta)).astype(int)
    model = fitted(DiagonalLogisticRegression, X[:600], y[:600])
    before = model.predict_proba(X[600:])[:, 1]
    model.partial_fit(X[600:], y[600:])
    after = model.predict_proba(X[600:])[:, 1]
    assert model.n_observations_ == 900.0
    assert np.mean(np.log(np.where(y[600:] > 0, after, 1 - after))) > np.mean(
        np.log(np.where(y[600:] > 0, before, 1 - before))
    )


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows(n: int) -> None:
    X, y = [["a", "b"], ["a"], ["b", "c"]][:n], [1, 0, 1][:n]
    model = DiagonalPoissonRegression().fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    if n > 1:
        labels = DiagonalLogisticRegression().fit(X, y)
        low, high = labels.predict_interval(X).T
        probability = labels.predict_proba(X)[:, 1]
        assert ((low < probability) & (probability < high)).all()


def test_sweeps_that_go_astray_are_not_taken() -> None:
    """Of many correlated columns one pass is better than messages that overshoot."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(2_000, 200)) + 3.0 * rng.normal(size=(2_000, 1))
        probability = expit(X @ rng.normal(size=200) / 14.0)
        y = (rng.random(2_000) < probability).astype(int)
        once = DiagonalLogisticRegression().partial_fit(X[:1_500], y[:1_500], classes=[0, 1])
        fit = DiagonalLogisticRegression().fit(X[:1_500], y[:1_500])
        losses = [
            -np.mean(np.log(np.take_along_axis(one.predict_proba(X[1_500:]), y[1_500:, None], 1)))
            for one in (once, fit)
        ]
        assert losses[1] < losses[0] + 0.02
