"""Problems that the tests of the evidence share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from posterity.factor import Factor

Rows = tuple[np.ndarray, np.ndarray]


def rows(n: int, m: int, seed: int = 0, *, signal: float = 1.0, kept: int | None = None) -> Rows:
    """X (n, m) and y (n,): a line through the first ``kept`` features, noise of variance 1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m))
    slopes = signal * rng.normal(size=m)
    slopes[m if kept is None else kept :] = 0.0
    return X, 3.0 + X @ slopes + rng.normal(size=n)


def factor_of(X: np.ndarray, y: np.ndarray, *, intercept: bool) -> Factor:
    """The data's factor, without a prior."""
    data = Factor(X.shape[1] + (1 if intercept else 0))
    data.append(np.ascontiguousarray(X), np.ascontiguousarray(y[:, None]), intercept=intercept)
    return data


@pytest.fixture(scope="session")
def make_rows() -> Callable[..., Rows]:
    return rows


@pytest.fixture(scope="session")
def make_factor() -> Callable[..., Factor]:
    return factor_of
