"""Columns that lie by themselves are appended and predicted as the array of the same numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posterity import kernel
from posterity.kernel.columns import READABLE, Columns

KINDS = [np.dtype(kind if kind != "b1" else "?") for kind in READABLE]


def layouts(X: np.ndarray) -> list[np.ndarray | Columns]:
    wide = np.empty((2 * len(X), X.shape[1] + 1))[::2, 1:]
    wide[...] = X
    backwards = np.ascontiguousarray(X[::-1])[::-1]
    fortran = np.asfortranarray(X)
    return [
        fortran,
        wide,
        backwards,
        Columns(tuple(fortran.T)),
        Columns(tuple(X.T)),
        Columns(tuple(backwards.T)),
    ]


@given(
    st.integers(0, 10**6),
    st.integers(0, 300),
    st.sampled_from([1, 2, 7, 8, 20, 39, 45, 70]),
    st.booleans(),
    st.booleans(),
)
def test_rows_are_the_same_in_any_layout(
    seed: int, n: int, m: int, intercept: bool, weighted: bool
) -> None:
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(n, m)), rng.normal(size=(n, 2))
    weights = rng.uniform(0.0, 2.0, size=n) if weighted else None

    def learned(rows: np.ndarray | Columns) -> np.ndarray:
        triangle = kernel.empty_triangle(m + intercept + 2)
        kernel.append_block(triangle, 2, rows, Y, weights, intercept)
        return triangle

    expected = learned(X)
    mean, leverage = kernel.predict_rows(expected, 2, X, intercept)
    scale = 1e-12 * np.abs(expected).max(initial=1.0) ** 2
    for rows in layouts(X):
        triangle = learned(rows)
        np.testing.assert_allclose(triangle.T @ triangle, expected.T @ expected, atol=scale)
        again = kernel.predict_rows(expected, 2, rows, intercept)
        np.testing.assert_allclose(again[0], mean, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(again[1], leverage, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("m", [6, 50])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_numbers_of_every_kind(kind: np.dtype, m: int) -> None:
    rng = np.random.default_rng(0)
    X = (
        100.0 * rng.random((300, m)) > 50.0
        if kind.kind == "b"
        else rng.normal(30.0, 20.0, (300, m))
    )
    X = np.clip(X, 0, 120).astype(kind)
    Y = rng.normal(size=(300, 1))
    triangles = []
    for rows in (X.astype(np.float64), Columns(tuple(X.T)), Columns(tuple(np.asfortranarray(X).T))):
        triangle = kernel.empty_triangle(m + 2)
        kernel.append_block(triangle, 1, rows, Y, None, True)
        triangles.append(triangle)
    for triangle in triangles[1:]:
        np.testing.assert_allclose(triangle, triangles[0], rtol=1e-9, atol=1e-9)


def test_what_is_no_column_of_numbers_is_refused() -> None:
    triangle, y = kernel.empty_triangle(3), np.zeros((2, 1))
    good = np.zeros(2)
    for bad in (np.zeros(3), np.zeros((2, 1)), np.zeros(2, complex), np.zeros(2, ">f8")):
        with pytest.raises((ValueError, TypeError), match=r"column 1"):
            kernel.append_block(triangle, 1, Columns((good, bad)), y, None, False)
    with pytest.raises(ValueError, match="3 columns"):
        kernel.append_block(triangle, 1, Columns((good, good, good)), y, None, False)


def test_columns_as_arrays() -> None:
    X = np.random.default_rng(0).normal(size=(10, 3))
    columns = Columns(tuple(X.T))
    np.testing.assert_array_equal(columns, X)
    np.testing.assert_array_equal(columns[2:7], X[2:7])
    np.testing.assert_array_equal(columns[::3], X[::3])
    np.testing.assert_array_equal(columns[4], X[4])
    np.testing.assert_array_equal(columns[X[:, 0] > 0.0], X[X[:, 0] > 0.0])
    np.testing.assert_array_equal(columns[2:7, [0, 2]], X[2:7][:, [0, 2]])
    with pytest.raises(ValueError, match="copy"):
        np.array(columns, copy=False)
