"""Quantiles beyond which hardly a row is expected: their intervals are open there."""

from __future__ import annotations

import numpy as np
import pytest

from posterity.forgetting import Exponential
from posterity.generalized import BayesianQuantileRegression


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("rows", [False, True])
def test_the_end_beyond_all_rows_is_open(sign: float, rows: bool) -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(50, 1))
    y = sign * (1.0 + x[:, 0] + rng.standard_exponential(50))
    model = BayesianQuantileRegression(quantile=0.99 if sign > 0.0 else 0.01)
    model = model.partial_fit(x, y) if rows else model.fit(x, y)
    low, high = np.sort(sign * model.predict_interval([[0.5]])[0])
    assert high == np.inf
    assert 1.5 < low < sign * model.predict([[0.5]])[0] - 0.2


def test_where_a_row_is_expected_beyond_both_ends_are_finite() -> None:
    rng = np.random.default_rng(1)
    x = rng.uniform(size=(50, 1))
    y = x[:, 0] + rng.normal(size=50)
    ends = BayesianQuantileRegression(quantile=0.98).fit(x, y).predict_interval([[0.5]])
    assert np.isfinite(ends).all()
    both = BayesianQuantileRegression(quantile=[0.01, 0.5, 0.99]).fit(x, y)
    low, middle, high = both.predict_interval([[0.5]])[0]
    assert low[0] == -np.inf
    assert np.isfinite(middle).all()
    assert high[1] == np.inf


def test_rows_that_faded_are_none() -> None:
    rng = np.random.default_rng(2)
    x = rng.uniform(size=(300, 1))
    y = x[:, 0] + rng.normal(size=300)
    model = BayesianQuantileRegression(quantile=0.95, forgetting=Exponential(0.9))
    assert model.partial_fit(x, y).predict_interval([[0.5]])[0, 1] == np.inf


@pytest.mark.slow
@pytest.mark.parametrize(("q", "n"), [(0.9, 20), (0.95, 20), (0.98, 50), (0.99, 50), (0.01, 100)])
def test_intervals_of_few_rows_hold_the_quantile(q: float, n: int) -> None:
    held, sign = [], 1.0 if q > 0.5 else -1.0
    truth = 1.5 - sign * np.log(min(q, 1.0 - q))
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x = rng.uniform(size=(n, 1))
        y = 1.0 + x[:, 0] + sign * rng.standard_exponential(n)
        low, high = BayesianQuantileRegression(quantile=q).fit(x, y).predict_interval([[0.5]])[0]
        held.append(low <= truth <= high)
    assert np.mean(held) >= 0.88
