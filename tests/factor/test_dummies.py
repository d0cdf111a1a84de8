"""Dummies among columns: found whatever stands beside them, and whatever the weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posterity.factor import Factor
from posterity.factor.dummies import Dummies, find_dummies, find_sums_to_one


def make_root(X: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    data = Factor(X.shape[1] + 1)
    data.append(X.astype(float), np.zeros((len(X), 1)), weights, intercept=True)
    return np.asarray(data.root)


def make_dummies(rng: np.random.Generator, n: int, levels: int, *, drop: int = 0) -> np.ndarray:
    level = np.concatenate([np.arange(levels), rng.integers(0, levels, n - levels)])
    return rng.permutation(level)[:, None] == np.arange(drop, levels)


def read(found: list[Dummies]) -> list[tuple[list[int], bool]]:
    return [(each.columns.tolist(), each.is_whole) for each in found]


@given(
    seed=st.integers(0, 2**32 - 1),
    sizes=st.lists(st.integers(2, 6), min_size=1, max_size=3),
    weighted=st.booleans(),
)
def test_all_levels_of_categories_are_found(seed: int, sizes: list[int], weighted: bool) -> None:
    rng = np.random.default_rng(seed)
    n = 60
    numbers = rng.normal(size=(n, 1))
    X = np.hstack([numbers, *[make_dummies(rng, n, size) for size in sizes]])
    weights = rng.gamma(1.0, size=n) + 1e-3 if weighted else None
    found = find_dummies(make_root(X, weights))
    ends = 2 + np.cumsum(sizes)
    expected = [list(range(end - size, end)) for size, end in zip(sizes, ends, strict=True)]
    assert read(found) == [(columns, True) for columns in expected]
    assert [columns.tolist() for columns in find_sums_to_one(make_root(X, weights))] == expected


def test_a_dropped_base_is_no_whole_set() -> None:
    rng = np.random.default_rng(0)
    X = np.hstack([make_dummies(rng, 80, 4, drop=1), make_dummies(rng, 80, 3, drop=1)])
    assert read(find_dummies(make_root(X))) == [([1, 2, 3], False), ([4, 5], False)]


def test_a_level_of_no_row_stands_between_others() -> None:
    X = np.insert(make_dummies(np.random.default_rng(2), 80, 4).astype(float), 2, 0.0, axis=1)
    assert read(find_dummies(make_root(X))) == [([1, 2, 4, 5], True)]


def test_a_flag_before_a_category_does_not_hide_it() -> None:
    rng = np.random.default_rng(1)
    levels = make_dummies(rng, 60, 4)
    flag = levels[:, 1:2] & (rng.random((60, 1)) < 0.5)  # with the second level alone
    assert read(find_dummies(make_root(np.hstack([flag, levels])))) == [([2, 3, 4, 5], True)]


@pytest.mark.parametrize("column", [np.zeros(20), np.ones(20), np.arange(20.0)])
def test_other_columns_are_none(column: np.ndarray) -> None:
    assert find_dummies(make_root(column[:, None])) == []
    assert find_dummies(make_root(np.column_stack([column, np.arange(20) % 2]))) == []
