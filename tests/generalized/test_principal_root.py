"""The kernel's principal axes are those of NumPy: single rows and many are predicted the same."""

from __future__ import annotations

import numpy as np
import pytest

from posterity import BayesianLogisticRegression


@pytest.mark.parametrize("n_classes", [3, 4, 6, 12])
def test_single_rows_are_predicted_as_many(n_classes: int) -> None:
    rng = np.random.default_rng(n_classes)
    X = rng.normal(size=(300, 3)) * [1.0, 5.0, 0.2]
    eta = X @ rng.normal(size=(3, n_classes))
    y = np.argmax(eta + rng.gumbel(size=eta.shape), axis=1)
    model = BayesianLogisticRegression(prior_precision=1.0).fit(X, y)
    places = 3.0 * rng.normal(size=(20, 3))
    single = [list(model.predict_proba_one(x).values()) for x in places]
    np.testing.assert_allclose(single, model.predict_proba(places), rtol=1e-9)


def test_a_row_that_was_just_predicted_is_learned_as_any_other() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 3)), rng.integers(0, 3, 90)
    quiet, curious = (
        BayesianLogisticRegression(prior_precision=1.0).fit(X[:50], y[:50]) for _ in range(2)
    )
    for x, label in zip(X[50:], y[50:], strict=True):
        quiet.learn_one(x, label)
        curious.predict_proba_one(x)
        curious.predict_proba_one(X[0])
        curious.predict_proba_one(x)
        curious.learn_one(x, label)
    np.testing.assert_array_equal(quiet.coef_, curious.coef_)
