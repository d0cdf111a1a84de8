"""The kernel for many groups and its NumPy twin agree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from twins import groups as groups_twin

from posterity import kernel
from posterity.factor.grouped import GroupBank
from posterity.factor.grouped_rows import GroupedRows, number_keys, sort_rows
from posterity.factor.packed import packed, unpacked

SEEDS = st.integers(0, 10**6)


def bank_of(rng: np.random.Generator, groups: int, q: int, rank: int | None = None) -> np.ndarray:
    """Return triangles (groups, q, ld) of a few random rows each."""
    bank = np.array([kernel.empty_triangle(q) for _ in range(groups)]).reshape(groups, q, -1)
    for triangle in bank:
        n = int(rng.integers(0, 2 * q)) if rank is None else rank
        rows = rng.normal(size=(n, q))
        targets = np.ascontiguousarray(rows[:, q - 1 :])
        kernel.append_block(triangle, 1, rows[:, : q - 1], targets, None, False)
    return bank


def tallies_of(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    return np.zeros(size), np.zeros(size), np.zeros(size, dtype=np.int64), 5


def squares(bank: np.ndarray) -> np.ndarray:
    assert not bank[:, :, bank.shape[1] :].any(), "the padding is no longer zero"
    return np.swapaxes(bank, 1, 2) @ bank


def rows_of(
    rng: np.random.Generator, n: int, m: int, groups: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    X, y = rng.normal(size=(n, m)), rng.normal(size=n)
    weights = rng.choice([0.5, 1.0, 2.0], size=n)
    return X, y, weights, rng.integers(0, groups, size=n).astype(np.int32)


@given(st.lists(st.integers(-(2**62), 2**62) | st.integers(0, 9), max_size=3000))
def test_numbering_keys(keys: list[int]) -> None:
    array = np.array(keys, dtype=np.int64)
    numbers, distinct = kernel.number_keys(array)
    expected_numbers, expected = groups_twin.number_keys(array)
    assert np.array_equal(numbers, expected_numbers)
    assert np.array_equal(distinct, expected)
    if len(keys):
        near = array % 50 - 25
        numbers, distinct = kernel.number_range(near, -25, 50)
        expected_numbers, expected = groups_twin.number_keys(near)
        assert np.array_equal(numbers, expected_numbers)
        assert np.array_equal(distinct, expected)


def test_numbering_many_keys_on_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = 10**12 * np.random.default_rng(0).integers(0, 5000, size=400_000)
    monkeypatch.setenv("POSTERITY_NUM_THREADS", "3")
    numbers, distinct = number_keys(keys)
    assert np.array_equal(distinct[numbers], keys)
    assert np.array_equal(distinct, groups_twin.number_keys(keys)[1])
    order = sort_rows(numbers, np.arange(5000))
    monkeypatch.setenv("POSTERITY_NUM_THREADS", "1")
    one = sort_rows(numbers, np.arange(5000))
    assert order.shares(4) == one.shares(4)
    assert list(order.order) == list(one.order) == np.argsort(numbers, kind="stable").tolist()


@given(SEEDS, st.integers(1, 12), st.sampled_from([1.0, 0.9]), st.booleans(), st.booleans())
def test_learning(seed: int, m: int, discount: float, weighted: bool, intercept: bool) -> None:
    rng = np.random.default_rng(seed)
    groups, q = 7, m + 1 + intercept
    X, y, weights, numbers = rows_of(rng, int(rng.integers(1, 900)), m, groups)
    w = weights if weighted else None
    slots = rng.permutation(groups)
    theirs = np.zeros((groups, q, kernel.leading_dimension(q)))
    ours = packed(theirs)
    mine, twins = tallies_of(groups), tallies_of(groups)
    order = sort_rows(numbers, slots)
    for share in order.shares(3):
        kernel.learn_groups(ours, order, X, y, w, intercept, discount, mine, share)
    groups_twin.learn_groups(theirs, numbers, slots, X, y, w, intercept, discount, twins)
    scale = 1.0 + np.abs(squares(theirs)).max()
    assert np.allclose(squares(unpacked(ours, q)), squares(theirs), rtol=1e-9, atol=1e-10 * scale)
    for one, other in zip(mine[:3], twins[:3], strict=True):
        assert np.allclose(one, other)


@given(SEEDS, st.integers(1, 9), st.sampled_from([1.0, 0.9]), st.booleans())
def test_telling(seed: int, m: int, discount: float, weighted: bool) -> None:
    rng = np.random.default_rng(seed)
    groups, q = 4, m + 2
    X, y, weights, numbers = rows_of(rng, int(rng.integers(1, 120)), m, groups)
    w = weights if weighted else None
    slots, priors = np.arange(groups), bank_of(rng, 2, q, rank=2 * q)
    priors[:, -1] = 0.0
    theirs = np.zeros((groups, q, kernel.leading_dimension(q)))
    ours = packed(theirs)
    mine, twins, predictive = tallies_of(groups), tallies_of(groups), np.ones((4, len(X)))
    order = sort_rows(numbers, slots)
    for share in order.shares(2):
        kernel.predict_then_learn_groups(
            ours, priors, order, X, y, w, True, discount, mine, share, predictive
        )
    expected = groups_twin.predict_then_learn_groups(
        theirs, priors, numbers, slots, X, y, w, True, discount, twins
    )
    assert np.allclose(squares(unpacked(ours, q)), squares(theirs), rtol=1e-9, atol=1e-8)
    assert np.allclose(predictive[3], expected[3])
    if discount == 1.0:
        assert np.allclose(predictive[:3], expected[:3], rtol=1e-7, atol=1e-7)
    else:  # between calls the prior is exact, within one it may weigh a little more
        total = np.bincount(numbers, predictive[2], minlength=groups)
        exact = np.bincount(numbers, expected[2], minlength=groups)
        assert np.allclose(total, exact, rtol=1e-7, atol=1e-7)


@given(SEEDS, st.integers(1, 20), st.booleans())
def test_triangles(seed: int, p: int, flat: bool) -> None:
    rng = np.random.default_rng(seed)
    q = p + 1
    bank, other = bank_of(rng, 5, q), bank_of(rng, 3, q)
    priors = bank_of(rng, 2, q, rank=p // 2 if flat else 2 * q)
    slots = rng.permutation(5)[:4]
    posterior = np.empty((4, q * (q + 1) // 2))
    for share in [(0, 2), (2, 4)]:
        kernel.stack_groups(packed(bank), slots, priors, share, posterior)
    expected = groups_twin.stack_groups(bank, priors)[slots]
    assert np.allclose(squares(unpacked(posterior, q)), squares(expected))
    full = bank_of(rng, 3, q, rank=2 * q)
    solved = kernel.solve_groups(packed(full), p)
    assert np.allclose(solved, groups_twin.solve_groups(full), rtol=1e-5, atol=1e-8)
    ours, theirs = packed(bank), bank.copy()
    kernel.merge_groups(ours, packed(other), np.array([4, 0, 2]), p)
    groups_twin.merge_groups(theirs, other, np.array([4, 0, 2]))
    assert np.allclose(squares(unpacked(ours, q)), squares(theirs))


@given(st.lists(st.integers(-9, 9) | st.integers(-(2**63), 2**63 - 1), max_size=300))
def test_places_of_keys(keys: list[int]) -> None:
    distinct = list(dict.fromkeys(keys))
    half = len(distinct) // 2
    table = kernel.KeyTable(np.array(distinct[:half], dtype=np.int64))
    asked = np.array(distinct, dtype=np.int64)
    known = [*range(half), *[-1] * (len(distinct) - half)]
    assert table.places(asked, False).tolist() == known
    assert table.places(asked[::-1].copy(), True).tolist()[::-1][:half] == known[:half]
    assert len(table) == len(distinct)
    assert table.is_distinct
    assert [table.place(key) for key in table.keys.tolist()] == list(range(len(distinct)))
    table.cut(half)
    assert table.places(asked, False).tolist() == known
    assert table.keys.tolist() == distinct[:half]
    assert kernel.KeyTable(np.array([*distinct, *distinct[:1]])).is_distinct == (not distinct)


@given(SEEDS, st.integers(1, 12), st.booleans())
def test_single_rows(seed: int, m: int, intercept: bool) -> None:
    rng = np.random.default_rng(seed)
    p = m + intercept
    X, y, weights, _ = rows_of(rng, 5, m, 2)
    bank, other = GroupBank(p), GroupBank(p)
    bank.grow(2)
    other.grow(2)
    prior = bank_of(rng, 1, p + 1, rank=2 * p)[0]
    path = kernel.GroupPath(p, intercept)
    for i in range(5):
        rows = GroupedRows(
            X[[i]], y[[i]], weights[[i]], intercept, np.zeros(1, dtype=np.int32), np.array([i % 2])
        )
        predictive = other.predict_then_learn_rows(rows, prior[None])
        mean, leverage = path.predict_in(bank, i % 2, X[i], prior)
        assert mean == pytest.approx(y[i] - predictive[0, 0], abs=1e-9)
        assert leverage == pytest.approx(predictive[1, 0], abs=1e-9)
        path.learn_in(bank, i % 2, X[i], y[i], weights[i])
    assert np.allclose(squares(bank.triangles), squares(other.triangles))
    for one, two in zip(bank._arrays[1:], other._arrays[1:], strict=True):
        assert np.allclose(one[:2], two[:2])
    mean, leverage = path.predict_in(bank, -1, X[0], prior)
    expected = kernel.predict_rows(prior, 1, X[:1], intercept)
    assert (mean, leverage) == (pytest.approx(expected[0][0, 0]), pytest.approx(expected[1][0]))
    with pytest.raises(ValueError, match="no slot 9"):
        path.predict_in(bank, 9, X[0], prior)


@given(SEEDS, st.integers(1, 12), st.integers(1, 15))
def test_integrating_coefficients(seed: int, p: int, h: int) -> None:
    rng = np.random.default_rng(seed)
    root = np.triu(rng.normal(size=(p, p)))
    np.fill_diagonal(root, 0.5 + rng.random(p))
    rows = rng.normal(size=(6, h, p + 1))
    rows[0] = 0.0
    rows[1, h // 2 :] = 0.0
    white, logs = np.empty_like(rows), np.empty(6)
    kernel.whiten_groups(root, rows, (0, 4), white, logs)
    kernel.whiten_groups(root, rows, (4, 6), white, logs)
    products, expected = groups_twin.whiten_groups(root, rows)
    assert np.allclose(np.swapaxes(white, 1, 2) @ white, products, rtol=1e-6, atol=1e-8)
    assert np.allclose(logs, expected)


def test_predicting() -> None:
    rng = np.random.default_rng(0)
    X, y, weights, numbers = rows_of(rng, 300, 3, 6)
    bank = np.zeros((6, 15))
    tallies = tallies_of(6)
    order = sort_rows(numbers, np.arange(6))
    kernel.learn_groups(bank, order, X, y, weights, True, 1.0, tallies, (0, 6))
    mean, leverage = np.empty(300), np.empty(300)
    slots = numbers.astype(np.intp)
    slots[:10] = -1
    whole = unpacked(bank, 5)
    kernel.predict_groups(bank, whole[2], X, slots, True, (0, 300), mean, leverage)
    for i in (0, 20, 299):
        expected = kernel.predict_rows(whole[2 if i < 10 else numbers[i]], 1, X[[i]], True)
        assert mean[i] == pytest.approx(expected[0][0, 0])
        assert leverage[i] == pytest.approx(expected[1][0])


def test_what_does_not_fit_is_refused() -> None:
    bank, X, y = np.zeros((2, 6)), np.ones((4, 1)), np.ones(4)
    with pytest.raises(ValueError, match="a row is of a group that has no slot"):
        sort_rows(np.array([0, 5, 0, 0], dtype=np.int32), np.arange(2))
    order = sort_rows(np.array([0, 1, 0, 0], dtype=np.int32), np.array([0, 2]))
    with pytest.raises(ValueError, match="a slot is outside the bank"):
        kernel.learn_groups(bank, order, X, y, None, True, 1.0, tallies_of(2), (0, 2))
    with pytest.raises(ValueError, match="triangles of 1 coefficients are packed in 6 numbers"):
        kernel.learn_groups(bank, order, X, y, None, False, 1.0, tallies_of(2), (0, 2))
