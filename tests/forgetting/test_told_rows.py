"""Single rows that are predicted and then learned: paths tell what copies of posteriors do."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from posterity import BayesianLinearRegression
from posterity.forgetting import Adaptive, Changepoint

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
