"""Rows that come again: they say no more of the noise, where coefficients could meet all rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from posterity import BayesianLinearRegression, BayesianRobustRegression
from posterity.basis import HilbertSpaceGP, RandomFourier
from posterity.evidence import Integrated, Maximized


def draw(n: int, p: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, X[:, 0] + rng.normal(size=n)


@pytest.mark.parametrize("prior", ["auto", "ard", Integrated(), Maximized()])
@pytest.mark.parametrize("times", [2, 3])
def test_all_rows_again_are_the_rows(prior: Any, times: int) -> None:
    X, y = draw(40, 50)
    once = BayesianLinearRegression(prior_precision=prior).fit(X, y)
    again = BayesianLinearRegression(prior_precision=prior).fit(
        np.tile(X, (times, 1)), np.tile(y, times)
    )
    for one, other in zip(
        once.predict(X[:5] + 1.0, return_std=True),
        again.predict(X[:5] + 1.0, return_std=True),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    assert again.n_observations_ == times * 40
    # What all rows say, so that models of the same rows can be compared.
    expected = (times * 40 - 1) / 39 * once.log_evidence_
    np.testing.assert_allclose(again.log_evidence_, expected, rtol=1e-6)


@pytest.mark.parametrize("again", [1, 8, 40])
def test_some_rows_again_by_every_way(again: int) -> None:
    X, y = draw(40, 50)
    rows = np.r_[np.arange(40), np.arange(again)]
    noise = BayesianLinearRegression().fit(X, y).noise_precision_ ** -0.5
    fitted = BayesianLinearRegression().fit(X[rows], y[rows])
    weighed = BayesianLinearRegression().fit(X, y, sample_weight=1.0 + (np.arange(40) < again))
    streamed, merged = BayesianLinearRegression(), BayesianLinearRegression()
    for row in rows:
        streamed.learn_one(X[row], y[row])
    merged.partial_fit(X[rows[:30]], y[rows[:30]])
    merged.merge(BayesianLinearRegression().fit(X[rows[30:]], y[rows[30:]]))
    for model in (fitted, weighed, streamed, merged):
        np.testing.assert_allclose(model.predict(X + 1.0), fitted.predict(X + 1.0), rtol=1e-6)
        np.testing.assert_allclose(model.noise_precision_**-0.5, noise, rtol=0.2)


@pytest.mark.parametrize(
    "basis", [HilbertSpaceGP(), HilbertSpaceGP(length_scale="ard"), RandomFourier(), "auto"]
)
def test_functions_of_rows_that_come_again(basis: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(120, 4))
    line = X @ [1.5, -1.5, 0.5, 0.0]
    y = line + 0.5 * rng.normal(size=120)
    for again in (10, 120):
        rows = np.r_[np.arange(120), np.arange(again)]
        model = BayesianLinearRegression(basis=basis).fit(X[rows], y[rows])
        assert 0.4 < model.noise_precision_**-0.5 < 0.6
        assert np.sqrt(np.mean((model.predict(X) - line) ** 2)) < 0.45


@pytest.mark.parametrize("likelihood", ["student_t", "laplace"])
def test_heavy_tails_of_rows_that_come_again(likelihood: str) -> None:
    X, y = draw(40, 50)
    rows = np.r_[np.arange(40), np.arange(8)]
    once = BayesianRobustRegression(likelihood=likelihood).fit(X, y)
    again = BayesianRobustRegression(likelihood=likelihood).fit(X[rows], y[rows])
    np.testing.assert_allclose(again.noise_scale_, once.noise_scale_, rtol=0.2)


def test_rows_without_noise_still_say_so() -> None:
    x = np.arange(30.0)[:, None]
    line = BayesianLinearRegression().fit(x, 2.0 * x[:, 0] + 1.0)
    np.testing.assert_allclose(line.predict([[100.0]]), 201.0, rtol=1e-9)
    assert line.noise_precision_**-0.5 < 1e-6
    # Dummies of all levels and an intercept leave a direction open, however many rows there are.
    levels = np.eye(3)[np.arange(60) % 3]
    model = BayesianLinearRegression().fit(levels, levels @ [1.0, 5.0, -2.0])
    np.testing.assert_allclose(model.predict(levels[:3]), [1.0, 5.0, -2.0], atol=1e-5)
