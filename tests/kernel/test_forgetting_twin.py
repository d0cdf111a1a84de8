"""The kernel's ways to forget beside their NumPy twins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from twins import rows as twin

from posterity import kernel

SIZES = {
    "seed": st.integers(0, 10**6),
    "n": st.integers(1, 60),
    "m": st.integers(1, 12),
    "k": st.integers(1, 2),
    "intercept": st.booleans(),
    "weighted": st.booleans(),
}
Arguments = tuple[int, np.ndarray, np.ndarray, np.ndarray | None, bool]


class Problem:
    """Rows, discounts and a proper prior."""

    def __init__(self, seed: int, n: int, m: int, k: int, intercept: bool, weighted: bool) -> None:
        rng = np.random.default_rng(seed)
        self.X, self.Y = rng.normal(size=(n, m)), rng.normal(size=(n, k))
        self.weights = rng.choice([0.0, 0.5, 1.0, 3.0], size=n) if weighted else None
        self.discounts = rng.choice([0.2, 0.9, 0.99, 1.0], size=n)
        self.elapsed = rng.choice([0.0, 0.5, 1.0, 20.0], size=n)
        self.k, self.p, self.intercept = k, m + intercept, intercept
        self.prior = kernel.empty_triangle(self.p + k)
        strength = rng.uniform(0.3, 2.0, size=(self.p, 1))
        rows = np.hstack([strength * np.eye(self.p), rng.normal(size=(self.p, k))])
        kernel.append_block(
            self.prior, k, np.ascontiguousarray(rows[:, : self.p]), rows[:, self.p :].copy(),
            None, False,
        )  # fmt: skip

    @property
    def rows(self) -> Arguments:
        return self.k, self.X, self.Y, self.weights, self.intercept


def gram(triangle: np.ndarray) -> np.ndarray:
    return triangle.T @ triangle


def assert_same(
    ours: tuple[np.ndarray, ...], theirs: tuple[np.ndarray, ...], *triangles: np.ndarray
) -> None:
    for mine, expected in zip(ours, theirs, strict=True):
        assert mine == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert gram(triangles[0]) == pytest.approx(gram(triangles[1]), rel=1e-9, abs=1e-9)


@given(**SIZES)
def test_fading(seed: int, n: int, m: int, k: int, intercept: bool, weighted: bool) -> None:
    problem = Problem(seed, n, m, k, intercept, weighted)
    ours, theirs = problem.prior.copy(), problem.prior.copy()
    assert_same(
        kernel.learn_rows(ours, *problem.rows, problem.discounts),
        twin.learn_rows(theirs, *problem.rows, problem.discounts),
        ours,
        theirs,
    )


@given(**SIZES)
def test_fading_towards_the_prior(
    seed: int, n: int, m: int, k: int, intercept: bool, weighted: bool
) -> None:
    """The same at the end; between rows the kernel's prior weighs 1 to 1.1 / 0.6 times its own."""
    problem = Problem(seed, n, m, k, intercept, weighted)
    problem.discounts = np.maximum(problem.discounts, 0.9)
    ours, theirs = problem.prior.copy(), problem.prior.copy()
    _, leverage, _ = kernel.learn_stabilized(ours, *problem.rows, problem.discounts, problem.prior)
    arguments = *problem.rows, problem.discounts
    _, widest, _ = twin.learn_stabilized(theirs, *arguments, problem.prior)
    assert gram(ours) == pytest.approx(gram(theirs), rel=1e-9, abs=1e-9)
    heavy = np.sqrt(1.1 / 0.6) * problem.prior
    _, narrowest, _ = twin.learn_stabilized(heavy.copy(), *arguments, heavy)
    assert (leverage <= widest * (1.0 + 1e-9)).all()
    assert (leverage >= narrowest * (1.0 - 1e-9)).all()


@pytest.mark.parametrize(("m", "k"), [(64, 1), (129, 2), (140, 1)])
@pytest.mark.parametrize("n", [1, 5])
def test_triangles_of_many_columns_are_appended_by_blocks(m: int, k: int, n: int) -> None:
    """A triangle that lacks rank, as the data of few rows, and one whose prior is dense."""
    problem, sparse = Problem(m, n, m, k, True, False), Problem(m, n, m, k, True, False)
    rows = np.random.default_rng(n).normal(size=(n + m + 1, m + k))
    targets = rows[:, m:].copy()
    kernel.append_block(problem.prior, k, rows[:, :m].copy(), targets, None, True)
    sparse.prior[m // 2] = 0.0
    for one in (problem, sparse):
        ours, before = one.prior.copy(), gram(one.prior)
        kernel.learn_stabilized(ours, *one.rows, one.discounts, one.prior)
        ages = np.cumprod(np.append(one.discounts[1:], 1.0)[::-1])[::-1]
        new = np.hstack([np.ones((n, 1)), one.X, one.Y])
        size = new.shape[1]
        expected = before[:size, :size] + (new.T * ages) @ new
        assert gram(ours)[:size, :size] == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_fading_towards_a_flat_prior_is_fading() -> None:
    rng = np.random.default_rng(2)
    X, Y, discounts = rng.normal(size=(50, 3)), rng.normal(size=(50, 1)), np.full(50, 0.9)
    triangles = [kernel.empty_triangle(5) for _ in range(3)]
    nothing = kernel.empty_triangle(5)
    ours = kernel.learn_stabilized(triangles[0], 1, X, Y, None, True, discounts, nothing)
    slowly = twin.learn_stabilized(triangles[1], 1, X, Y, None, True, discounts, nothing)
    fading = kernel.learn_rows(triangles[2], 1, X, Y, None, True, discounts)
    assert np.isinf(ours[1][:4]).all()
    for mine, twins, plain in zip(ours, slowly, fading, strict=True):
        assert mine[4:] == pytest.approx(plain[4:], rel=1e-11, abs=1e-13)
        assert mine[4:] == pytest.approx(twins[4:], rel=1e-9, abs=1e-9)


@given(**SIZES)
def test_fading_along_directions(
    seed: int, n: int, m: int, k: int, intercept: bool, weighted: bool
) -> None:
    problem = Problem(seed, n, m, k, intercept, weighted)
    ours, theirs = problem.prior.copy(), problem.prior.copy()
    arguments = *problem.rows, problem.discounts, problem.prior
    mine = kernel.learn_directional(ours, *arguments)
    expected = twin.learn_directional(theirs, *arguments)
    assert_same(mine, expected, ours, theirs)


@given(**SIZES)
def test_wandering(seed: int, n: int, m: int, k: int, intercept: bool, weighted: bool) -> None:
    problem = Problem(seed, n, m, k, intercept, weighted)
    variance = np.random.default_rng(seed).choice([0.0, 0.01, 2.0], size=problem.p)
    ours, theirs = problem.prior.copy(), problem.prior.copy()
    arguments = *problem.rows, problem.elapsed, variance
    mine = kernel.learn_random_walk(ours, *arguments)
    expected = twin.learn_random_walk(theirs, *arguments)
    assert_same(mine, expected, ours, theirs)


@given(size=st.integers(1, 40), share=st.floats(0.0, 1.0), **SIZES)
def test_sliding(
    seed: int,
    n: int,
    m: int,
    k: int,
    intercept: bool,
    weighted: bool,
    size: int,
    share: float,
) -> None:
    problem = Problem(seed, n, m, k, intercept, weighted)
    start = int(share * min(n, size))
    leave = np.maximum(np.arange(start, n + 1) - size, 0).astype(np.intp)
    triangles = []
    for module in (kernel, twin):
        triangle = problem.prior.copy()
        before = None if problem.weights is None else problem.weights[:start]
        module.learn_rows(triangle, k, problem.X[:start], problem.Y[:start], before, intercept)
        predictive = module.slide(triangle, *problem.rows, start, leave, problem.prior)
        triangles.append((triangle, predictive))
    (ours, mine), (theirs, expected) = triangles
    assert_same(mine, expected, ours, theirs)


@given(**SIZES)
def test_a_bank_is_its_triangles(
    seed: int, n: int, m: int, k: int, intercept: bool, weighted: bool
) -> None:
    problem = Problem(seed, n, m, k, intercept, weighted)
    bank = np.stack([scale * problem.prior for scale in (0.5, 1.0, 2.0)])
    apart = bank.copy()
    for i in range(n):
        weight = None if problem.weights is None else problem.weights[i : i + 1]
        row = k, problem.X[i : i + 1], problem.Y[i : i + 1], weight, intercept
        together = kernel.learn_bank(bank, *row)
        for j, triangle in enumerate(apart):
            for mine, expected in zip(together, twin.learn_rows(triangle, *row), strict=True):
                assert mine[j] == pytest.approx(expected[0], rel=1e-9, abs=1e-9)


def test_what_does_not_fit_is_refused() -> None:
    triangle, prior = kernel.empty_triangle(3), kernel.empty_triangle(3)
    X, Y, ones = np.ones((4, 2)), np.ones((4, 1)), np.ones(4)
    rows = 1, X, Y, None, False
    with pytest.raises(ValueError, match="discounts has length 5: expected 4"):
        kernel.learn_rows(triangle, *rows, np.ones(5))
    with pytest.raises(ValueError, match="variance has length 3: expected 2"):
        kernel.learn_random_walk(triangle, *rows, ones, np.ones(3))
    with pytest.raises(ValueError, match="leave has length 2: expected 5"):
        kernel.slide(triangle, *rows, 0, np.zeros(2, dtype=np.intp), prior)
    with pytest.raises(ValueError, match="leave must not decrease"):
        kernel.slide(triangle, *rows, 0, np.array([0, 2, 2, 2, 2]), prior)
    with pytest.raises(ValueError, match="a bank learns one at a time"):
        kernel.learn_bank(triangle[None].copy(), *rows)
