"""Single rows that are predicted and then learned: paths tell what copies of posteriors do."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from posterity import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegression,
)
from posterity.forgetting import Adaptive, Changepoint, RandomWalk

SETTINGS = {
    "auto": {"forgetting": "adaptive"},
    "given": {"forgetting": "adaptive", "prior_precision": 1.0},
    "known noise": {"forgetting": "adaptive", "noise_precision": 1.0},
    "no intercept": {"forgetting": "adaptive", "fit_intercept": False},
    "discounts": {"forgetting": Adaptive(discounts=(1.0, 0.9))},
    "changes": {"forgetting": Changepoint()},
}


def make_stream(n=40, m=3):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, m))
    y = X @ rng.normal(size=m) + rng.normal(size=n)
    y[n // 2 :] += 4.0 * X[n // 2 :, 0]
    return X, y


SLOW = pytest.param(
    {"forgetting": "adaptive", "prior_precision": "ard"}, id="ard", marks=pytest.mark.slow
)


@pytest.mark.parametrize(
    "settings", [*(pytest.param(one, id=name) for name, one in SETTINGS.items()), SLOW]
)
def test_a_path_tells_what_the_general_way_predicts(settings):
    X, y = make_stream()
    one, batch, twin = (BayesianLinearRegression(**settings).fit(X[:8], y[:8]) for _ in range(3))
    for i in range(8, len(X)):
        row = X[i : i + 1], y[i : i + 1]
        told = one.predict_then_learn_one(X[i], y[i])
        of_batch = batch.predict_then_learn(*row)
        expected = twin.predict_then_learn(*row, sample_weight=[1.0])  # weights: the general way
        assert of_batch.shape == (1,)
        assert told.shape == ()
        for read in ("mean", "std"):
            slow = getattr(expected, read)()[0]
            assert_allclose(getattr(told, read)(), slow, rtol=1e-9, atol=1e-9)
            assert_allclose(getattr(of_batch, read)()[0], slow, rtol=1e-9, atol=1e-9)
        assert_allclose(told.logpdf(y[i]), expected.logpdf(y[i])[0], rtol=1e-9, atol=1e-9)
    assert_allclose(one.coef_, twin.coef_, rtol=1e-9)
    assert_allclose(one.log_evidence_, twin.log_evidence_, rtol=1e-9)


def test_a_path_tells_it_from_the_first_row_on():
    X, y = make_stream(12)
    one, twin = (BayesianLinearRegression(forgetting="adaptive") for _ in range(2))
    for i in range(len(X)):
        told = one.predict_then_learn_one(X[i], y[i])
        expected = twin.predict_then_learn(X[i : i + 1], y[i : i + 1], sample_weight=[1.0])[0]
        assert told.is_flat() == expected.is_flat()
        assert_allclose(told.mean(), expected.mean(), atol=1e-9)
        assert_allclose(told.logpdf(y[i]), expected.logpdf(y[i]), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("forgetting", ["adaptive", "exponential:0.98", RandomWalk(0.01)])
@pytest.mark.parametrize("together", [True, False])
def test_labels_are_told_as_the_general_way_predicts_them(forgetting, together):
    X, y = make_stream(30)
    labels = np.where(y > 0.0, "yes", "no")
    one, twin = (BayesianLogisticRegression(forgetting=forgetting) for _ in range(2))
    for model in (one, twin):
        if together:
            model.fit(X[:12], labels[:12])
        for i in range(12 * together, 16):
            model.learn_one(X[i], labels[i])
    for i in range(16, len(X)):
        told = one.predict_then_learn_one(X[i], labels[i])
        row = X[i : i + 1], labels[i : i + 1]
        expected = twin.predict_then_learn(*row, sample_weight=[1.0])[0]
        for label in ("yes", "no"):  # averages over eta have nine digits
            assert_allclose(told.pmf(label), expected.pmf(label), atol=1e-8)
    assert_allclose(one.coef_, twin.coef_, rtol=1e-9)


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("kind", [BayesianLogisticRegression, BayesianPoissonRegression])
def test_members_that_predict_at_once_predict_as_each(kind, together, monkeypatch):
    X, y = make_stream(25)
    counts = (y > 0.0).astype(np.int64)  # whole numbers, as targets of learn_one too
    model = kind(forgetting="adaptive")
    if together:
        model.fit(X, counts)
    else:
        for x, count in zip(X, counts, strict=True):
            model.learn_one(x, count)
    at_once = model.predict_distribution(X)
    monkeypatch.setattr("posterity.posteriors.generalized.MOST_ROWS_AT_ONCE", 0)
    each = model.predict_distribution(X)
    assert_allclose(at_once.logpmf(1), each.logpmf(1), rtol=1e-12)


def test_a_refused_row_changes_nothing_and_says_why():
    X, y = make_stream(20)
    model, twin = (BayesianLinearRegression(forgetting="adaptive").fit(X, y) for _ in range(2))
    for x, target, complaint in (
        ([1.0, np.nan, 2.0], 1.0, "nan"),
        ([1.0, 2.0], 1.0, "shape"),
        (X[0], np.inf, "y"),
        (X[0], "many", "many"),
    ):
        with pytest.raises((ValueError, TypeError), match=f"(?i){complaint}"):
            model.predict_then_learn_one(x, target)
    assert model.log_evidence_ == twin.log_evidence_
    assert_allclose(model.predict(X), twin.predict(X), rtol=0)
