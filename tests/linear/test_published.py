"""Figures that were published for this model on public data, reproduced.

Source: M. Halford, "Bayesian linear regression for practitioners" (2020). Its zero-mean class
remembers one row only and scores 4.6 on Boston; a model that learns does not.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import train_test_split

from posterity import BayesianLinearRegression

SETTINGS = {"prior_precision": 1.0 / 0.3, "noise_precision": 1.0, "fit_intercept": False}


@pytest.fixture(scope="module")
def california(data_folder: Path) -> tuple[np.ndarray, np.ndarray]:
    with np.load(data_folder / "housing" / "california_sklearn_form.npz") as stored:
        return stored["X"], stored["y"]


def test_boston_progressively(data_folder: Path) -> None:
    table = np.loadtxt(data_folder / "housing" / "boston_data.txt")
    X, y = table[:, :-1], table[:, -1]
    predicted = BayesianLinearRegression(**SETTINGS).predict_then_learn(X, y)
    assert np.mean(np.abs(y - predicted.mean())) == pytest.approx(3.78413, abs=5e-6)


@pytest.mark.parametrize("batch_rows", [1, 16, 10**6])
def test_california_by_row_in_batches_and_at_once(
    california: tuple[np.ndarray, np.ndarray], batch_rows: int
) -> None:
    X, X_test, y, y_test = train_test_split(
        *california, test_size=0.3, shuffle=True, random_state=42
    )
    model = BayesianLinearRegression(**SETTINGS)
    if batch_rows == 1:
        for x, target in zip(X, y, strict=True):
            model.learn_one(x, target)
    else:
        for start in range(0, len(X), batch_rows):
            part = slice(start, start + batch_rows)
            model.partial_fit(X[part], y[part])
    assert np.mean(np.abs(y_test - model.predict(X_test))) == pytest.approx(0.570093, abs=5e-7)


def test_california_intervals_cover_less_than_they_promise(
    california: tuple[np.ndarray, np.ndarray],
) -> None:
    X, y = california
    model = BayesianLinearRegression(prior_precision=1.0, noise_precision=5.0, fit_intercept=False)
    low, high = model.predict_then_learn(X, y).interval(0.95)
    assert np.mean((low <= y) & (y <= high)) == pytest.approx(0.81914, abs=5e-6)
