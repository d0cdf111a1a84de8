"""Rounds of sites in the kernel beside their NumPy twins."""

from __future__ import annotations

import numpy as np
import pytest
from twins import mixing as twin

from posterity import kernel
from posterity.factor import Factor


def make_sites(rng: np.random.Generator, n: int) -> np.ndarray:
    """Sites (2, n), of positive precisions."""
    return np.array([rng.uniform(0.1, 2.0, n), rng.normal(size=n)])


# Of few rows the last changes do not differ in enough ways to tell all of their shares.
@pytest.mark.parametrize(("n", "rounds"), [(1, 3), (12, 12), (40, 12)])
@pytest.mark.parametrize("weighted", [False, True])
def test_next_sites_are_those_of_the_twin(n: int, rounds: int, weighted: bool) -> None:
    rng = np.random.default_rng(n)
    weights = rng.integers(0, 3, n).astype(float) if weighted else np.ones(n)
    ours, its = kernel.Mixing(weights), twin.Mixing(weights)
    sites = make_sites(rng, n)
    for number in range(rounds):
        wanted = 0.4 * sites + make_sites(rng, n)
        given = wanted, rng.normal(size=n), rng.uniform(0.1, 1.0, n)
        sites, same = ours.extrapolate(sites, *given), its.extrapolate(sites, *given)
        np.testing.assert_allclose(sites, same, rtol=1e-7, atol=1e-9)
        if number == 7:
            ours.restart()
            its.restart()


def test_rounds_that_do_not_differ_are_told_apart() -> None:
    sites, ones = np.ones((2, 3)), np.ones(3)
    mixing = kernel.Mixing(ones)
    for _ in range(8):
        np.testing.assert_array_equal(mixing.extrapolate(sites, sites, ones, ones), sites)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("n", [0, 2, 30])
def test_a_round_moves_what_is_known_as_in_the_twin(n: int, intercept: bool) -> None:
    rng = np.random.default_rng(n)
    known, X = Factor(4 + intercept), np.asfortranarray(rng.normal(size=(n, 4)))
    known.append(np.ascontiguousarray(X), rng.normal(size=(n, 1)), intercept=intercept)
    given = make_sites(rng, n), make_sites(rng, n), rng.normal(size=n), rng.uniform(size=n)
    ours = kernel.measure_round(known.triangle, X, *given)
    np.testing.assert_allclose(ours, twin.measure_round(known, X, *given), rtol=1e-9, atol=1e-12)


def test_moments_of_a_mixture_are_those_of_the_twin() -> None:
    rng = np.random.default_rng(0)
    X, factors, shares = rng.normal(size=(25, 3)), [Factor(4) for _ in range(3)], [0.2, 0.3, 0.5]
    for one in factors:
        one.append(rng.normal(size=(9, 3)), rng.normal(size=(9, 1)), intercept=True)
    added, triangles = rng.uniform(size=(3, 25)), [one.triangle for one in factors]
    ours = kernel.mix_moments(triangles, np.array(shares), X, added)
    its = twin.mix_moments(factors, np.array(shares), X, added)
    np.testing.assert_allclose(ours, its, rtol=1e-9)


def test_a_direction_without_information_has_infinite_variance() -> None:
    known, nothing = Factor(2), Factor(2)
    known.append(np.eye(2), np.ones((2, 1)))
    both, shares = [known.triangle, nothing.triangle], np.array([1.0, 0.0])
    assert np.isinf(kernel.mix_moments(both, shares, np.ones((1, 2)))[1]).all()


def test_arrays_of_other_lengths_are_refused() -> None:
    known, ones = Factor(2), np.ones(3)
    with pytest.raises(ValueError, match="sites have shape"):
        kernel.Mixing(ones).extrapolate(np.ones((2, 2)), np.ones((2, 3)), ones, ones)
    sites = np.ones((2, 2))
    with pytest.raises(ValueError, match="mean has length 3: expected 2"):
        kernel.measure_round(known.triangle, np.ones((2, 2)), sites, sites, ones, ones)
    with pytest.raises(ValueError, match="a triangle, a share"):
        kernel.mix_moments([known.triangle], ones, np.ones((1, 2)))
    with pytest.raises(ValueError, match="has length 3: expected 2"):
        kernel.find_largest_difference(np.ones(2), ones)


def test_the_largest_difference_passes_over_no_nan() -> None:
    assert kernel.find_largest_difference(np.array([0.0, 3.0]), np.array([1.0, -1.0])) == 4.0
    assert np.isnan(kernel.find_largest_difference(np.array([np.nan, 0.0]), np.zeros(2)))
