"""The algebra of factors: laws, read-outs, and what is legal without full rank."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posterity.factor import Factor, NotInFactorError
from posterity.factor.parallel import count_workers, split_rows
from posterity.factor.usable import check_usable


def rows(seed: int, n: int, m: int, k: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, m)), rng.normal(size=(n, k))


def learned(X: np.ndarray, Y: np.ndarray, weights: np.ndarray | None = None) -> Factor:
    factor = Factor(X.shape[1], Y.shape[1])
    factor.append(X, Y, weights)
    return factor


def same(a: Factor, b: Factor, tolerance: float = 1e-11) -> bool:
    return a.count == pytest.approx(b.count) and np.allclose(
        a.triangle, b.triangle, rtol=0.0, atol=tolerance * (1.0 + np.abs(b.triangle).max())
    )


SHAPES = {"seed": st.integers(0, 10**6), "n": st.integers(30, 90), "m": st.integers(1, 20)}


@given(**SHAPES, k=st.integers(1, 3))
def test_merge_is_associative_commutative_and_has_a_zero(seed: int, n: int, m: int, k: int) -> None:
    X, Y = rows(seed, 3 * n, m, k)
    a, b, c = (
        learned(X[part], Y[part]) for part in (slice(0, n), slice(n, 2 * n), slice(2 * n, None))
    )
    ab_c, bc_a, zero = a.copy(), b.copy(), Factor(m, k)
    ab_c.merge(b)
    ab_c.merge(c)
    bc_a.merge(c)
    bc_a.merge(a)
    zero.merge(ab_c)
    assert same(ab_c, learned(X, Y))
    assert same(ab_c, bc_a)
    assert same(zero, ab_c)


@given(**SHAPES)
def test_removing_undoes_appending(seed: int, n: int, m: int) -> None:
    X, Y = rows(seed, 2 * n, m)
    factor = learned(X, Y)
    factor.remove(X[n:], Y[n:])
    assert same(factor, learned(X[:n], Y[:n]), 1e-8)
    factor = learned(X, Y)
    factor.take_out(learned(X[:n], Y[:n]))
    assert same(factor, learned(X[n:], Y[n:]), 1e-8)


@given(**SHAPES, weight=st.floats(1e-6, 1e6))
def test_scaling_weights_every_row(seed: int, n: int, m: int, weight: float) -> None:
    X, Y = rows(seed, n, m)
    factor = learned(X, Y)
    factor.scale(weight)
    weighted = learned(X, Y, np.full(n, weight))
    assert np.allclose(factor.triangle, weighted.triangle, rtol=1e-9, atol=1e-9 * np.sqrt(weight))
    assert factor.count == pytest.approx(weighted.count)


def test_read_outs_are_those_of_linear_algebra() -> None:
    X, Y = rows(0, 50, 6, 2)
    factor = learned(X, Y)
    gram = X.T @ X
    coefficients = np.linalg.solve(gram, X.T @ Y)
    left = Y - X @ coefficients
    mean, leverage = factor.predict(X)
    assert np.allclose(factor.coefficients(), coefficients)
    assert np.allclose(factor.covariance(), np.linalg.inv(gram))
    assert np.allclose(factor.residual(), left.T @ left)
    assert factor.log_determinant() == pytest.approx(np.linalg.slogdet(gram)[1])
    assert np.allclose(mean, X @ coefficients)
    assert np.allclose(leverage, np.einsum("ij,jk,ik->i", X, np.linalg.inv(gram), X))
    assert factor.rank == 6


def test_the_empty_factor_knows_nothing_and_says_so() -> None:
    factor = Factor(3)
    mean, leverage = factor.predict(np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0]]))
    assert factor.rank == 0
    assert factor.count == 0.0
    assert factor.log_determinant() == 0.0
    assert not factor.coefficients().any()
    assert np.array_equal(mean, np.zeros((2, 1)))
    assert np.array_equal(leverage, [np.inf, 0.0])
    assert np.array_equal(np.diag(factor.covariance()), [np.inf] * 3)


def test_a_factor_may_have_no_coefficients() -> None:
    factor = Factor(0)
    factor.append(np.empty((3, 0)), np.array([[1.0], [2.0], [2.0]]))
    assert factor.residual()[0, 0] == pytest.approx(9.0)
    assert factor.coefficients().shape == (0, 1)
    assert factor.covariance().shape == (0, 0)


def test_a_repeated_column_is_left_out_and_what_is_known_stays_known() -> None:
    X, Y = rows(1, 40, 3)
    twice = np.column_stack([X, X[:, 1]])
    factor = learned(twice, Y)
    mean, leverage = factor.predict(twice)
    expected_mean, expected_leverage = learned(X, Y).predict(X)
    assert factor.rank == 3
    assert list(factor.determined) == [True, True, True, False]
    assert np.allclose(mean, expected_mean)
    assert np.allclose(leverage, expected_leverage)
    covariance = factor.covariance()
    assert np.array_equal(np.isinf(np.diag(covariance)), [False, True, False, True])
    assert np.isinf(factor.predict(np.array([[0.0, 1.0, 0.0, 0.0]]))[1][0])


@pytest.mark.parametrize("by_row", [False, True])
def test_fewer_rows_than_columns(by_row: bool) -> None:
    X, Y = rows(2, 4, 9)
    factor = Factor(9)
    if by_row:
        factor.learn(X, Y)
    else:
        factor.append(X, Y)
    mean, leverage = factor.predict(X)
    assert factor.rank == 4
    assert np.allclose(mean, Y)
    assert np.allclose(leverage, 1.0)
    assert np.isinf(factor.predict(rows(3, 5, 9)[0])[1]).all()
    assert factor.residual()[0, 0] == pytest.approx(0.0, abs=1e-25)


def test_what_was_predicted_before_each_row() -> None:
    X, Y = rows(4, 30, 3, 2)
    weights = np.random.default_rng(5).uniform(0.1, 3.0, size=30)
    factor = Factor(3, 2)
    before = factor.learn(X, Y, weights)
    assert np.isinf(before.leverage[:3]).all()
    for i in range(3, 30):
        so_far = learned(X[:i], Y[:i], weights[:i])
        mean, leverage = so_far.predict(X[i : i + 1])
        assert np.allclose(before.error[i], Y[i] - mean[0])
        assert before.leverage[i] == pytest.approx(leverage[0])
        assert np.allclose(before.residual[i], np.diag(so_far.residual()))
        assert before.count[i] == pytest.approx(so_far.count)
    assert same(factor, learned(X, Y, weights))


def test_rows_that_were_never_in_are_refused_and_nothing_changes() -> None:
    X, Y = rows(6, 20, 3)
    factor = learned(X, Y)
    before = factor.triangle.copy()
    with pytest.raises(NotInFactorError, match="row 1 is not in the factor") as refused:
        factor.remove(np.vstack([X[0], 10.0 * X[1]]), Y[:2])
    assert refused.value.row == 1
    assert np.array_equal(factor.triangle, before)
    assert factor.count == 20.0


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e200])
@pytest.mark.parametrize("method", ["append", "learn", "remove"])
def test_unusable_rows_change_nothing(bad: float, method: str) -> None:
    X, Y = rows(7, 300, 4)
    factor = learned(X, Y)
    before = factor.triangle.copy()
    X[150, 2] = bad
    with pytest.raises((FloatingPointError, NotInFactorError)):
        getattr(factor, method)(X, Y)
    assert np.array_equal(factor.triangle, before)
    assert factor.count == 300.0


def test_large_blocks_are_shared_among_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y = rows(8, 60_000, 12)
    alone, together = Factor(12), Factor(12)
    alone.append(X, Y, threads=1)
    together.append(X, Y, threads=4)
    assert same(together, alone)
    assert len(split_rows(60_000, 13, 4)) == 4
    assert len(split_rows(1_000, 13, 4)) == 1
    monkeypatch.setenv("POSTERITY_NUM_THREADS", "1")
    assert count_workers() == 1
    monkeypatch.setenv("POSTERITY_NUM_THREADS", "two")
    with pytest.raises(ValueError, match="POSTERITY_NUM_THREADS is 'two'"):
        count_workers()


def test_the_lock_is_released_while_rows_are_learned() -> None:
    X, Y = rows(9, 200_000, 30)
    ticks: list[int] = []
    done = threading.Event()

    def count() -> None:
        while not done.is_set():
            ticks.append(1)

    counter = threading.Thread(target=count)
    counter.start()
    start = len(ticks)
    Factor(30).append(X, Y, threads=1)
    moved = len(ticks) - start
    done.set()
    counter.join()
    assert moved > 100


@pytest.mark.parametrize("n", [1, 8192, 20_001])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1.01e150])
def test_what_can_not_be_learned_is_found_wherever_it_is(n: int, bad: float) -> None:
    check_usable(np.empty((0, 3)), np.full(n, 1e150), np.full((n, 2), -1e150)[:, :1])
    for place in {0, n // 2, n - 1}:
        values = np.ones(n)
        values[place] = bad
        with pytest.raises(FloatingPointError, match="not finite, or its square overflows"):
            check_usable(np.ones(2), values)
