"""The peers, each called the way that suits it best, and all on the same problem.

The problem: weights with a standard normal prior, noise of precision 1, no intercept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import polars as pl
import polars_ds
import polars_ols
from numpy.typing import NDArray
from river.linear_model import BayesianLinearRegression as RiverRegression
from scipy import stats

Array = NDArray[np.float64]


def problem(n: int, p: int, seed: int = 0) -> tuple[Array, Array]:
    """Rows X (n, p) and targets y (n,)."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, X @ rng.normal(size=p) + rng.normal(size=n)


def as_dicts(X: Array) -> list[dict[str, float]]:
    """The rows as river takes them: names to Python floats."""
    names = feature_names(X.shape[1])
    return [dict(zip(names, row, strict=True)) for row in X.tolist()]


def as_frame(X: Array, y: Array) -> pl.DataFrame:
    """The rows as Polars likes them: a column of float64 each."""
    return pl.DataFrame(X, schema=feature_names(X.shape[1])).with_columns(y=pl.Series(y))


def feature_names(p: int) -> list[str]:
    return [f"x{column}" for column in range(p)]


def polars_ds_recursive(frame: pl.DataFrame) -> pl.DataFrame:
    """Coefficients and a prediction for each row. It does not know variances."""
    features = frame.columns[:-1]
    return frame.select(
        polars_ds.recursive_lin_reg(*features, target="y", start_with=len(features), l2_reg=1.0)
    )


def polars_ols_recursive(frame: pl.DataFrame) -> pl.DataFrame:
    """A prediction for each row. It does not know variances."""
    return frame.select(
        polars_ols.compute_recursive_least_squares(
            pl.col("y"),
            *map(pl.col, frame.columns[:-1]),
            mode="predictions",
            rls_kwargs=polars_ols.RLSKwargs(half_life=None, initial_state_covariance=1.0),
        )
    )


def river_loop(rows: list[dict[str, float]], targets: list[float], with_dist: bool) -> Any:
    """Predict, then learn, each row."""
    model = RiverRegression(alpha=1, beta=1)
    predict, learn = model.predict_one, model.learn_one
    for x, y in zip(rows, targets, strict=True):
        predict(x, with_dist=with_dist)
        learn(x, y)
    return model


def inversion_loop(X: Array, y: Array) -> Array:
    """Predict (mean and standard deviation), then learn, each row: one inversion a row, bare."""
    p = X.shape[1]
    precision, natural, covariance = np.eye(p), np.zeros(p), np.eye(p)
    mean = np.zeros(p)
    for row, target in zip(X, y, strict=True):
        _prediction = row @ mean, np.sqrt(1.0 + row @ covariance @ row)
        precision += np.outer(row, row)
        natural += target * row
        covariance = np.linalg.inv(precision)
        mean = covariance @ natural
    return mean


@numba.njit(fastmath=True)
def compiled_loop(X: Array, y: Array, means: Array, deviations: Array) -> Array:
    """The shortest way that keeps a covariance, compiled: recursive least squares, noise known."""
    p = X.shape[1]
    mean, covariance, gain = np.zeros(p), np.eye(p), np.empty(p)
    for row in range(len(X)):
        x = X[row]
        for i in range(p):
            gain[i] = np.dot(covariance[i], x)
        variance = 1.0 + np.dot(x, gain)
        means[row], deviations[row] = np.dot(x, mean), np.sqrt(variance)
        error = (y[row] - means[row]) / variance
        for i in range(p):
            mean[i] += error * gain[i]
            share = gain[i] / variance
            for j in range(p):
                covariance[i, j] -= share * gain[j]
    return mean


def compiled(X: Array, y: Array) -> tuple[Array, Array, Array]:
    """Coefficients, and a mean and a standard deviation for each row."""
    means, deviations = np.empty(len(X)), np.empty(len(X))
    return compiled_loop(X, y, means, deviations), means, deviations


class HalfordRegression:
    """The class of the well-known blog post (Halford 2020), as published: each step inverts."""

    def __init__(self, n_features: int, alpha: float, beta: float) -> None:
        self.beta = beta
        self.mean = np.zeros(n_features)
        self.cov_inv = np.identity(n_features) / alpha

    def learn(self, x: Array, y: float) -> None:
        cov_inv = self.cov_inv + self.beta * np.outer(x, x)
        cov = np.linalg.inv(cov_inv)
        self.mean = cov @ (self.cov_inv @ self.mean + self.beta * y * x)
        self.cov_inv = cov_inv

    def predict(self, x: Array) -> Any:
        w_cov = np.linalg.inv(self.cov_inv)
        variance = 1 / self.beta + x @ w_cov @ x.T
        return stats.norm(loc=x @ self.mean, scale=variance**0.5)


def halford_loop(X: Array, y: Array) -> Array:
    """Predict (a distribution), then learn, each row."""
    model = HalfordRegression(X.shape[1], alpha=1.0, beta=1.0)
    for row, target in zip(X, y, strict=True):
        model.predict(row)
        model.learn(row, target)
    return model.mean


def check_agreement(ours: Callable[[Array, Array], Array]) -> None:
    """Raise unless all of them find the coefficients that `ours` finds: the problem is the same."""
    X, y = problem(500, 10)
    wanted = ours(X, y)
    frame, rows = as_frame(X, y), as_dicts(X)
    river = river_loop(rows, y.tolist(), with_dist=True)
    recursive = polars_ds_recursive(frame).to_series().struct.field("coeffs")
    names = feature_names(10)
    found = {
        "polars-ds": np.asarray(recursive[-1]),
        "river": np.array([river.predict_one({name: 1.0}) for name in names]),
        "one inversion a row": inversion_loop(X, y),
        "compiled loop": compiled(X, y)[0],
        "Halford": halford_loop(X, y),
    }
    for name, coefficients in found.items():
        if not np.allclose(coefficients, wanted, rtol=1e-6, atol=1e-9):
            raise RuntimeError(f"{name} solves another problem: {coefficients} is not {wanted}")
