"""The drift stream of a well-known tutorial, and its figures.

Source: M. Halford, "Bayesian linear regression for practitioners" (2020).
"""

from __future__ import annotations

import numpy as np
import pytest

from posterity import BayesianLinearRegression
from posterity.forgetting import Adaptive, Exponential, Forgetting, Smoothing, Stabilized, Window

Stream = tuple[np.ndarray, np.ndarray]


def scores(stream: Stream, forgetting: Forgetting | None) -> tuple[float, float]:
    """Mean absolute error and mean log score of predictions before their rows."""
    X, y = stream
    model = BayesianLinearRegression(
        prior_precision=0.5, noise_precision=25.0, fit_intercept=False, forgetting=forgetting
    )
    predicted = model.predict_then_learn(X, y)
    return float(np.mean(np.abs(y - predicted.mean()))), float(np.mean(predicted.logpdf(y)))


@pytest.mark.parametrize(
    ("forgetting", "published"), [(None, 0.50158), (Smoothing(0.8), 0.22810)], ids=str
)
def test_published_errors(drift: Stream, forgetting: Forgetting | None, published: float) -> None:
    assert scores(drift, forgetting)[0] == pytest.approx(published, abs=5e-6)


def test_the_best_discount_in_hindsight(drift: Stream) -> None:
    found = [scores(drift, Stabilized(discount)) for discount in np.linspace(0.5, 0.98, 49)]
    errors, log_scores = np.array(found).T
    assert errors.min() == pytest.approx(0.2234, abs=0.002)
    assert log_scores.max() == pytest.approx(-0.252, abs=0.01)


def test_without_a_knob_it_is_better_than_the_best_discount(drift: Stream) -> None:
    error, log_score = scores(drift, Adaptive())
    assert error <= 0.215
    assert log_score >= -0.16


@pytest.mark.parametrize(
    "forgetting", [Exponential(0.8), Stabilized(0.8), Window(size=15)], ids=str
)
def test_forgetting_halves_the_error(drift: Stream, forgetting: Forgetting) -> None:
    assert scores(drift, forgetting)[0] < 0.5 * scores(drift, None)[0]
