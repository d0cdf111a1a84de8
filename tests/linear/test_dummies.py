"""Dummies made by hand say what columns of text say, whichever level is left out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import posterity
from posterity import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegression,
    BayesianQuantileRegression,
    BayesianRobustRegression,
)


def draw(seed: int, n: int = 120) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    levels = np.concatenate([np.arange(5), rng.choice(5, n - 5, p=[0.05, 0.1, 0.3, 0.35, 0.2])])
    town = np.concatenate([np.arange(5), rng.integers(0, 7, n - 5)])
    table = pd.DataFrame(
        {
            "age": np.array(list("abcde"))[levels],
            "town": np.array(list("stuvwxy"))[town],
            "size": rng.normal(size=n) + 100.0,
        }
    )
    eta = np.array([0.9, 0.5, 0.1, 0.0, 0.15])[levels] + 0.3 * table["size"].to_numpy() - 30.0
    return table, eta + 0.2 * rng.normal(size=7)[town]


def make_dummies(table: pd.DataFrame, *, left_out: int) -> np.ndarray:
    """Columns of zeros and ones, without the level of this place in each category."""
    parts: list[Any] = []
    for name in ("age", "town"):
        all_levels = pd.get_dummies(table[name], dtype=float).to_numpy()
        parts.append(np.delete(all_levels, left_out, axis=1))
    return np.column_stack([*parts, table["size"]])


@given(seed=st.integers(0, 2**32 - 1), left_out=st.integers(0, 4), n=st.sampled_from([30, 120]))
def test_no_level_is_another_one_as_the_base(seed: int, left_out: int, n: int) -> None:
    table, eta = draw(seed, n)
    y = eta + np.random.default_rng(seed).normal(size=n)
    text = BayesianLinearRegression().fit(table, y)
    dummies = make_dummies(table, left_out=left_out)
    by_hand = BayesianLinearRegression().fit(dummies, y)
    mean, sd = text.predict(table, return_std=True)
    other_mean, other_sd = by_hand.predict(dummies, return_std=True)
    np.testing.assert_allclose(other_mean, mean, atol=1e-7)
    np.testing.assert_allclose(other_sd, sd, rtol=1e-7)
    assert by_hand.log_evidence_ == pytest.approx(text.log_evidence_, abs=1e-6)


@pytest.mark.parametrize("way", ["batches", "rows"])
def test_the_same_row_by_row(way: str) -> None:
    table, eta = draw(3)
    y = eta + np.random.default_rng(3).normal(size=len(eta))
    dummies = make_dummies(table, left_out=2)
    whole = BayesianLinearRegression().fit(dummies, y)
    model = BayesianLinearRegression()
    step = 40 if way == "batches" else 1
    for first in range(0, len(y), step):
        model.partial_fit(dummies[first : first + step], y[first : first + step])
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-8, atol=1e-10)
    ahead = BayesianLinearRegression().predict_then_learn(dummies, y)
    assert np.isfinite(np.asarray(ahead.loc)[20:]).all()


def test_counts_and_labels_do_alike() -> None:
    table, eta = draw(4, 400)
    rng = np.random.default_rng(4)
    dummies = make_dummies(table, left_out=0)
    counts = rng.poisson(np.exp(eta))
    text = BayesianPoissonRegression().fit(table, counts).predict(table)
    by_hand = BayesianPoissonRegression().fit(dummies, counts).predict(dummies)
    np.testing.assert_allclose(by_hand, text, rtol=2e-3)  # sites are searched for to 1e-4
    labels = (rng.random(len(eta)) < 1.0 / (1.0 + np.exp(-eta))).astype(int)
    chances = BayesianLogisticRegression().fit(table, labels).predict_proba(table)
    others = BayesianLogisticRegression().fit(dummies, labels).predict_proba(dummies)
    np.testing.assert_allclose(others, chances, atol=1e-3)


@pytest.mark.parametrize(
    "make",
    [
        BayesianRobustRegression,
        partial(BayesianRobustRegression, likelihood="laplace"),
        partial(BayesianQuantileRegression, quantile=0.5),
    ],
)
@pytest.mark.parametrize("left_out", [0, 3])
def test_heavy_tails_do_alike(make: Callable[[], Any], left_out: int) -> None:
    table, eta = draw(4)
    y = eta + np.random.default_rng(4).standard_t(3, size=len(eta))
    text = make().fit(table, y).predict(table)
    dummies = make_dummies(table, left_out=left_out)
    by_hand = make().fit(dummies, y)
    np.testing.assert_allclose(by_hand.predict(dummies), text, atol=1e-5)


@pytest.mark.parametrize("make", [BayesianLinearRegression, BayesianRobustRegression])
def test_a_saved_model_goes_on_alike(make: Callable[[], Any], tmp_path: Path) -> None:
    table, eta = draw(5)
    y = eta + np.random.default_rng(5).normal(size=len(eta))
    dummies = make_dummies(table, left_out=1)
    model = make()
    model.partial_fit(dummies[:60], y[:60])
    posterity.save(model, tmp_path / "model")
    again = posterity.load(tmp_path / "model")
    one = model.predict_then_learn(dummies[60:], y[60:])
    other = again.predict_then_learn(dummies[60:], y[60:])
    np.testing.assert_allclose(other.loc, one.loc, rtol=1e-12)
    np.testing.assert_allclose(again.coef_, model.coef_, rtol=1e-12)
