"""Each row told from all others in closed form, against models that never saw it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from posterity import BayesianLinearRegression, BayesianQuantileRegression
from posterity.basis import Spline
from posterity.forgetting import Exponential

RNG = np.random.default_rng(0)
X = RNG.normal(size=(25, 3))
Y = X @ [1.0, -2.0, 0.0] + 0.5 * RNG.normal(size=25)


def refits(settings: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    predictive = []
    for row in range(len(Y)):
        others = np.arange(len(Y)) != row
        model = BayesianLinearRegression(**settings).fit(X[others], Y[others])
        predictive.append(model.predict_distribution(X[[row]]))
    means, stds = (
        np.array([getattr(one, what)()[0] for one in predictive]) for what in ("mean", "std")
    )
    return means, stds, np.array([one.logpdf(Y[[i]])[0] for i, one in enumerate(predictive)])


@pytest.mark.parametrize(
    "settings",
    [
        {"prior_precision": 0.0},
        {"prior_precision": 2.0, "prior_mean": 1.0},
        {"prior_precision": 2.0, "noise_precision": 4.0},
        {"prior_precision": 2.0, "noise_prior": (1.0, 0.3)},
        {"prior_precision": 2.0, "fit_intercept": False},
        {"prior_precision": 2.0, "basis": Spline(n_knots=3, domain=(-4.0, 4.0))},
    ],
    ids=repr,
)
def test_a_given_prior_is_as_refitted(settings: dict[str, Any]) -> None:
    ours = BayesianLinearRegression(**settings).fit(X, Y).leave_one_out(X, Y)
    means, stds, logs = refits(settings)
    np.testing.assert_allclose(ours.mean(), means, atol=1e-9)
    np.testing.assert_allclose(ours.std(), stds, rtol=1e-9)
    np.testing.assert_allclose(ours.logpdf(Y), logs, atol=1e-9)


def test_a_learned_prior_is_nearly_as_refitted() -> None:
    ours = BayesianLinearRegression().fit(X, Y).leave_one_out(X, Y)
    means, stds, logs = refits({})
    np.testing.assert_allclose(ours.mean(), means, atol=0.05)
    np.testing.assert_allclose(ours.std(), stds, rtol=0.05)
    assert ours.logpdf(Y).sum() == pytest.approx(logs.sum(), abs=0.2)


def test_a_row_that_alone_tells_of_a_direction_is_flat() -> None:
    alone = np.column_stack([X, np.arange(25) == 3])
    model = BayesianLinearRegression(prior_precision=0.0).fit(alone, Y)
    predictive = model.leave_one_out(alone, Y)
    assert np.flatnonzero(np.isinf(predictive.std())).tolist() == [3]


def test_reading_changes_nothing_and_what_is_refused() -> None:
    model = BayesianLinearRegression().fit(X, Y)
    before = model.coef_.copy()
    model.leave_one_out(X[:5], Y[:5])
    np.testing.assert_array_equal(model.coef_, before)
    with pytest.raises(ValueError, match="only 25 were learned"):
        model.leave_one_out(np.vstack([X, X]), np.concatenate([Y, Y]))
    for other in (
        BayesianLinearRegression(forgetting=Exponential(discount=0.9)),
        BayesianLinearRegression(noise="linear"),
        BayesianQuantileRegression(),
    ):
        with pytest.raises(ValueError, match="needs one target"):
            other.fit(X, Y).leave_one_out(X, Y)
    for columns in (np.column_stack([Y, Y]), Y[:, None]):
        joint = BayesianLinearRegression().fit(X, columns)
        with pytest.raises(ValueError, match="needs one target"):
            joint.leave_one_out(X, columns)
