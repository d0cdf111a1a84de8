"""Coefficients followed through a validation are those of a model that learned so many rows."""

from __future__ import annotations

import numpy as np
import pytest

from posterity import BayesianLinearRegression
from posterity.evaluation import follow_coefficients, progressive_validation


def stream(n: int, p: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    return X, 1.0 + X @ np.arange(1.0, p + 1.0) + rng.normal(size=n)


@pytest.mark.parametrize("n", [5, 33, 700, 5000])
def test_followed_coefficients_are_those_of_a_fit(n: int) -> None:
    X, y = stream(n)
    model = BayesianLinearRegression(prior_precision=1.0)
    path = progressive_validation(model, X, y, follow=16).path
    assert path is not None
    assert path.row_end[-1] == n
    assert len(path.row_end) <= 17
    assert np.all(np.diff(path.row_end) > 0)
    for k in {0, len(path.row_end) // 2, len(path.row_end) - 1}:
        rows = path.row_end[k]
        fitted = BayesianLinearRegression(prior_precision=1.0).fit(X[:rows], y[:rows])
        np.testing.assert_allclose(path.mean[k], fitted.posterior_.mean, rtol=1e-9)
        interval = fitted.posterior_.interval(0.95)
        np.testing.assert_allclose(path.low[k], interval[:, 0], rtol=1e-8)
        np.testing.assert_allclose(path.high[k], interval[:, 1], rtol=1e-8)


def test_streams_of_unknown_length_are_followed_evenly() -> None:
    X, y = stream(5000)
    batches = ((X[i : i + 70], y[i : i + 70]) for i in range(0, 5000, 70))
    path = progressive_validation(BayesianLinearRegression(), batches, follow=16).path
    assert path is not None
    assert 8 <= len(path.row_end) <= 17
    assert len(set(np.diff(path.row_end[:-1]).tolist())) == 1
    assert path.row_end[-1] == 5000


def test_following_changes_no_score() -> None:
    X, y = stream(3000)
    plain = progressive_validation(BayesianLinearRegression(), X, y, levels=(0.5, 0.95))
    followed = progressive_validation(
        BayesianLinearRegression(), X, y, levels=(0.5, 0.95), follow=20
    )
    assert followed.path is not None
    assert plain.path is None
    assert followed.log_score == pytest.approx(plain.log_score, rel=1e-9)
    assert followed.coverage == plain.coverage


def test_weights_and_names_go_along() -> None:
    pd = pytest.importorskip("pandas")
    X, y = stream(300)
    frame, weight = pd.DataFrame(X, columns=list("abc")), np.linspace(0.0, 2.0, 300)
    followed = progressive_validation(
        BayesianLinearRegression(), frame, y, sample_weight=weight, follow=8
    ).path
    assert followed is not None
    learned = follow_coefficients(
        BayesianLinearRegression(), frame, y, sample_weight=weight, points=1
    )
    assert followed.names == learned.names == ("intercept", "a", "b", "c")
    np.testing.assert_allclose(followed.mean[-1], learned.mean[-1], rtol=1e-9)


def test_what_cannot_be_followed() -> None:
    class Model:
        def predict_then_learn(self, X: object, y: object, sample_weight: object = None) -> None:
            return None

    X, y = stream(10)
    with pytest.raises(
        TypeError,
        match="Model has no posterior_, so there are no coefficients to follow: give a model of "
        "posterity",
    ):
        progressive_validation(Model(), X, y, follow=5)
    with pytest.raises(ValueError, match="follow must be at least 0, got -1"):
        progressive_validation(BayesianLinearRegression(), X, y, follow=-1)
