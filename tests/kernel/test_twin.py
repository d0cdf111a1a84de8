"""The compiled kernel and its NumPy twin agree, on every shape and kind of row."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from twins import rows as twin

from posterity import kernel


def problem(
    seed: int, n: int, m: int, k: int, kind: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(n, m)), rng.normal(size=(n, k))
    weights = None
    if kind == "weighted":
        weights = rng.choice([0.0, 0.5, 1.0, 2.0], size=n)
    elif kind == "sparse":
        X *= rng.random(size=X.shape) < 0.3
    elif kind == "dependent" and m > 1:
        X[:, -1] = X[:, 0]
    elif kind == "scales":
        X *= np.logspace(-8, 8, m)
    return X, Y, weights


KINDS = st.sampled_from(["plain", "weighted", "sparse", "dependent", "scales"])
PROBLEMS = st.builds(
    problem,
    seed=st.integers(0, 10**6),
    n=st.integers(0, 200),
    m=st.integers(1, 40),
    k=st.integers(1, 3),
    kind=KINDS,
)
# So many columns that they are reduced by blocks.
WIDE = st.builds(
    problem,
    seed=st.integers(0, 10**6),
    n=st.integers(0, 300),
    m=st.integers(45, 90),
    k=st.sampled_from([1, 2, 11]),
    kind=KINDS,
)


def close(a: np.ndarray, b: np.ndarray, scale: float = 1.0) -> bool:
    return np.allclose(a, b, rtol=1e-8, atol=1e-9 * scale, equal_nan=False)


@given(PROBLEMS, st.booleans())
def test_learning_row_by_row(
    problem: tuple[np.ndarray, np.ndarray, np.ndarray | None], intercept: bool
) -> None:
    X, Y, weights = problem
    k, q = Y.shape[1], X.shape[1] + intercept + Y.shape[1]
    ours, theirs = kernel.empty_triangle(q), kernel.empty_triangle(q)
    got = kernel.learn_rows(ours, k, X, Y, weights, intercept)
    expected = twin.learn_rows(theirs, k, X, Y, weights, intercept)
    # Squares are what rotations keep; a triangle's own entries are loose where it is near singular.
    scale = 1.0 + np.abs(theirs).max(initial=0.0) ** 2
    assert close(ours.T @ ours, theirs.T @ theirs, scale)
    assert np.array_equal(np.isinf(got[1]), np.isinf(expected[1]))
    known = np.isfinite(expected[1]) & (expected[1] < 1e6)
    for ours_before, theirs_before in zip(got, expected, strict=True):
        assert close(ours_before[known], theirs_before[known], 100.0)


@given(st.one_of(PROBLEMS, WIDE), st.booleans())
def test_blocks(problem: tuple[np.ndarray, np.ndarray, np.ndarray | None], intercept: bool) -> None:
    X, Y, weights = problem
    k, q = Y.shape[1], X.shape[1] + intercept + Y.shape[1]
    ours, theirs = kernel.empty_triangle(q), kernel.empty_triangle(q)
    for part in (slice(0, len(X) // 3), slice(len(X) // 3, None)):
        part_weights = None if weights is None else weights[part]
        kernel.append_block(ours, k, X[part], Y[part], part_weights, intercept)
    twin.append_block(theirs, k, X, Y, weights, intercept)
    columns = np.sqrt(np.sum(theirs**2, axis=0)) + 1e-300
    assert np.allclose(
        (ours / columns).T @ (ours / columns), (theirs / columns).T @ (theirs / columns), atol=1e-12
    )
    assert (np.diag(ours) >= 0.0).all()
    assert not np.tril(ours[:, :q], -1).any()


@given(st.one_of(PROBLEMS, WIDE), st.booleans())
def test_prediction(
    problem: tuple[np.ndarray, np.ndarray, np.ndarray | None], intercept: bool
) -> None:
    X, Y, weights = problem
    k, q = Y.shape[1], X.shape[1] + intercept + Y.shape[1]
    triangle = kernel.empty_triangle(q)
    kernel.append_block(triangle, k, X, Y, weights, intercept)
    mean, leverage = kernel.predict_rows(triangle, k, X, intercept)
    expected_mean, expected_leverage = twin.predict_rows(triangle, k, X, intercept)
    assert np.array_equal(np.isinf(leverage), np.isinf(expected_leverage))
    known = np.isfinite(leverage)
    diagonal = np.abs(np.diag(triangle)[: q - k])
    lost = np.ptp(np.log(diagonal[diagonal > 0.0])) if diagonal.any() else 0.0
    assert close(leverage[known], expected_leverage[known], np.exp(lost))
    assert close(mean[known], expected_mean[known], 1e3 * np.exp(lost))


@given(st.integers(0, 10**6), st.integers(60, 200), st.integers(1, 12), st.booleans())
def test_removal(seed: int, n: int, m: int, intercept: bool) -> None:
    X, Y, _ = problem(seed, n, m, 2, "plain")
    weights = np.random.default_rng(seed).uniform(0.5, 2.0, size=n)
    q = m + intercept + 2
    ours = kernel.empty_triangle(q)
    kernel.append_block(ours, 2, X, Y, weights, intercept)
    theirs = ours.copy()
    gone = slice(0, n // 2)
    status, least = kernel.remove_rows(ours, 2, X[gone], Y[gone], weights[gone], intercept)
    expected = twin.remove_rows(theirs, 2, X[gone], Y[gone], weights[gone], intercept)
    assert status == expected[0] == 0
    assert least == pytest.approx(expected[1], rel=1e-6)
    assert np.allclose(ours, theirs, atol=1e-9)


def test_a_row_that_was_never_in_gives_its_number() -> None:
    triangle = kernel.empty_triangle(3)
    X, Y = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.ones((3, 1))
    kernel.append_block(triangle, 1, X, Y, None, False)
    strange = np.array([[1.0, 0.0], [0.0, 9.0]])
    status, _ = kernel.remove_rows(triangle, 1, strange, np.ones((2, 1)), None, False)
    assert status == 2


def test_columns_are_read_through_strides() -> None:
    wide = np.random.default_rng(0).normal(size=(50, 7))
    Y = np.ones((50, 1))
    a, b = kernel.empty_triangle(4), kernel.empty_triangle(4)
    kernel.append_block(a, 1, wide[:, 2:5], Y, None, False)
    kernel.append_block(b, 1, wide[:, 2:5].copy(), Y, None, False)
    assert np.array_equal(a, b)


@pytest.mark.parametrize("m", [5, 30, 70])
@pytest.mark.parametrize("intercept", [False, True])
def test_rows_in_any_order_of_memory(m: int, intercept: bool) -> None:
    X, Y, weights = problem(m, 300, m, 2, "weighted")
    orders = [X, np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2], X[::-1].copy()[::-1]]
    predictive = []
    for array in orders:
        triangle = kernel.empty_triangle(m + intercept + 2)
        kernel.append_block(triangle, 2, array[:200], Y[:200], weights[:200], intercept)
        before = kernel.learn_rows(triangle, 2, array[200:], Y[200:], weights[200:], intercept)
        said = kernel.predict_rows(triangle, 2, array, intercept)
        predictive.append([triangle, *before, *said])
    for other in predictive[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(predictive[0], other, strict=True))


@pytest.mark.parametrize("n", [8, 30, 129, 200])
def test_few_rows_never_pretend_to_a_rank_beyond_their_number(n: int) -> None:
    X, Y, _ = problem(n, n, 220, 1, "plain")
    triangle = kernel.empty_triangle(221)
    kernel.append_block(triangle, 1, X, Y, None, False)
    assert np.count_nonzero(np.diag(triangle)) == n
    columns = np.hstack([X, Y])
    assert np.allclose(triangle[:, :221].T @ triangle[:, :221], columns.T @ columns, atol=1e-12 * n)
    again = triangle.copy()
    kernel.append_block(again, 1, X, Y, None, False)
    assert np.count_nonzero(np.diag(again)[:220]) == n


@pytest.mark.parametrize("p", [20, 48, 60, 200])
def test_blocks_are_as_exact_as_lapack(p: int) -> None:
    X, Y, _ = problem(p, 3 * p + 100, p, 1, "plain")
    triangle = kernel.empty_triangle(p + 1)
    kernel.append_block(triangle, 1, X, Y, None, False)
    lapack = np.linalg.qr(np.hstack([X, Y]), mode="r")
    lapack *= np.sign(np.diag(lapack))[:, None]
    assert np.abs(triangle[:, : p + 1] - lapack).max() < 4e-15 * np.abs(lapack).max()


@pytest.mark.parametrize("function", [kernel.append_block, kernel.learn_rows, kernel.remove_rows])
def test_shapes_are_checked(function: object) -> None:
    triangle, X, Y = kernel.empty_triangle(3), np.ones((4, 2)), np.ones((4, 1))
    assert callable(function)
    with pytest.raises(ValueError, match="X has 3 columns: the triangle expects 2"):
        function(triangle, 1, np.ones((4, 3)), Y, None, False)
    with pytest.raises(ValueError, match=r"Y has shape \(3, 1\): expected \(4, 1\)"):
        function(triangle, 1, X, np.ones((3, 1)), None, False)
    with pytest.raises(ValueError, match="weights has length 5: expected 4"):
        function(triangle, 1, X, Y, np.ones(5), False)
    with pytest.raises(ValueError, match=r"triangle has shape \(3, 3\): expected \(q, 8\)"):
        function(np.zeros((3, 3)), 1, X, Y, None, False)


def test_tiny_and_huge_values_do_not_under_or_overflow() -> None:
    for unit in (1e-150, 1e140):
        triangle = kernel.empty_triangle(2)
        X, Y = unit * np.array([[3.0], [4.0]]), unit * np.array([[6.0], [8.0]])
        kernel.learn_rows(triangle, 1, X, Y, None, False)
        assert triangle[0, 0] / unit == pytest.approx(5.0, rel=1e-14)
        assert triangle[0, 1] / triangle[0, 0] == pytest.approx(2.0, rel=1e-14)


def test_extreme_weights_keep_their_predictions_exact() -> None:
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(60, 4)), rng.normal(size=(60, 1))
    weights = np.concatenate([np.ones(20), rng.choice([0.0, 1e-12, 1e-6, 1e9, 1e12], size=40)])
    ours, theirs = kernel.empty_triangle(6), kernel.empty_triangle(6)
    error, leverage, _ = kernel.learn_rows(ours, 1, X, Y, weights, True)
    expected = twin.learn_rows(theirs, 1, X, Y, weights, True)
    assert np.allclose(error[5:], expected[0][5:], rtol=1e-6, atol=1e-6)
    assert np.allclose(leverage[5:], expected[1][5:], rtol=1e-6)


@pytest.mark.parametrize("width", [12, 114])
@pytest.mark.parametrize("tiny", [1e-150, 1e-155, 1e-158, 1e-161])
def test_squares_that_vanish_leave_no_trace(width: int, tiny: float) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(150, width)), rng.normal(size=(150, 1))
    X[:, 3] *= tiny
    triangle = kernel.empty_triangle(width + 1)
    triangle[np.arange(width), np.arange(width)] = 1.0
    kernel.append_block(triangle, 1, X, y, None, False)
    rows = np.vstack([np.eye(width, width + 1), np.hstack([X, y])])
    expected = np.linalg.qr(rows, mode="r")
    expected *= np.where(np.diag(expected) < 0.0, -1.0, 1.0)[:, None]
    np.testing.assert_allclose(triangle[:, : width + 1], expected, atol=1e-12)


@pytest.mark.parametrize("width", [12, 114])
@pytest.mark.parametrize("weight", [1e-100, 1e-200, 1e-240, 1e-290])
def test_a_direction_of_next_to_no_weight(width: int, weight: float) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(150, width)), rng.normal(size=(150, 1))
    X[:149, 3] = 0.0
    weights = np.append(np.ones(149), weight)
    triangle = kernel.empty_triangle(width + 1)
    kernel.append_block(triangle, 1, X, y, weights, False)
    others = np.delete(np.hstack([X, y])[:149], 3, axis=1)
    expected = np.linalg.qr(others, mode="r")
    expected *= np.where(np.diag(expected) < 0.0, -1.0, 1.0)[:, None]
    kept = np.delete(np.arange(width + 1), 3)
    np.testing.assert_allclose(triangle[np.ix_(kept, kept)], expected, atol=1e-10)
    assert triangle[3, 3] == pytest.approx(abs(X[149, 3]) * weight**0.5, rel=1e-6, abs=1e-149)
