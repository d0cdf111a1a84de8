"""Bounds that hold at all times: their formulas, row by row, and how often they hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from posterity.sequential import LowerBound, sequence_radius


def row_by_row(x: list[float], alpha: float) -> float:
    """The bound as it is written, with sums over all rows for each row."""
    guesses, bets, best = [], [], 0.0
    for n in range(1, len(x) + 1):
        guess = min((0.5 + sum(x[: n - 1])) / n, 1.0)
        past = sum((a - b) ** 2 for a, b in zip(x, guesses, strict=False))
        variance = (0.25 + past) / n
        guesses.append(guess)
        bets.append(min(0.5, np.sqrt(2.0 * np.log(1.0 / alpha) / (variance * n * np.log(n + 1.0)))))
        won = sum(
            bet * a - (-np.log(1.0 - bet) - bet) * (a - b) ** 2
            for a, b, bet in zip(x, guesses, bets, strict=False)
        )
        best = max(best, (won + np.log(alpha)) / sum(bets))
    return min(best, 1.0)


@settings(max_examples=50, deadline=None)
@given(
    x=st.lists(st.floats(0.0, 20.0), min_size=1, max_size=25),
    cut=st.integers(0, 25),
    alpha=st.floats(0.001, 0.5),
)
def test_lower_bound_in_batches_is_the_bound_row_by_row(
    x: list[float], cut: int, alpha: float
) -> None:
    bound = LowerBound(alpha)
    bound.learn(np.array(x[:cut]))
    bound.learn(np.array(x[cut:]))
    assert bound.value == pytest.approx(row_by_row(x, alpha), rel=1e-9, abs=1e-9)


def test_lower_bound_holds_at_all_times_whatever_the_weights() -> None:
    """Mean 0.5 of weights 20 that are rare: of 400 streams, at most one in ten errs anywhere."""
    rng = np.random.default_rng(0)
    missed = 0
    for _ in range(400):
        bound = LowerBound(0.1)
        bound.learn(20.0 * (rng.random(2000) < 0.025))
        missed += bound.value > 0.5
    assert missed <= 40


@pytest.mark.parametrize("level", [0.8, 0.95, 0.999])
@pytest.mark.parametrize("n", [1.0, 50.0, 1e3, 3e4, 1e6, 1e9])
def test_radius_is_where_the_mixture_of_four_sizes_reaches_its_level(
    level: float, n: float
) -> None:
    """Each is Robbins' mixture, in closed form: a normal prior of the drift, tau^2 = c / size."""
    alpha = 1.0 - level
    reached = sequence_radius(n, n, level)
    c = -2.0 * np.log(alpha) + np.log(-2.0 * np.log(alpha)) + 1.0
    total = 0.0
    for size, weight in ((1e3, 0.4), (1e4, 0.3), (1e5, 0.2), (1e6, 0.1)):
        eta = size / c
        total += weight * np.sqrt(eta / (n + eta)) * np.exp(reached**2 / (2.0 * (n + eta)))
    assert total == pytest.approx(1.0 / alpha, rel=1e-9)


def test_needed_standard_errors_are_about_alike_from_a_thousand_to_a_million_rows() -> None:
    n = np.geomspace(1e3, 1e6, 50)
    needed = sequence_radius(n, n, 0.95) / np.sqrt(n)
    assert needed.min() > 3.2
    assert needed.max() < 3.5


@pytest.mark.parametrize("level", [0.8, 0.95, 0.999])
@pytest.mark.parametrize("time", [0.02, 1.5, 5.0])
def test_radius_of_planned_rows_is_where_the_mixture_reaches_its_level(
    level: float, time: float
) -> None:
    """Three tenths of the errors are its own; the other side adds nothing that counts."""
    planned = 300.0
    alpha = 0.3 * (1.0 - level)
    shift = np.sqrt(2.0 * np.log(2.0 / alpha))
    reached = sequence_radius(time, time * planned, level, planned)
    effects, weights = np.polynomial.hermite_e.hermegauss(80)
    either = [
        weights @ np.exp(effect * reached - effect**2 * time / 2.0) / np.sqrt(2.0 * np.pi)
        for effect in (effects + shift, effects - shift)
    ]
    assert 1.0 / alpha <= sum(either) / 2.0 * (1.0 + 1e-9)
    assert sum(either) / 2.0 <= 1.05 / alpha


@pytest.mark.parametrize("level", [0.8, 0.95, 0.999])
def test_near_the_planned_rows_the_radius_is_constant(level: float) -> None:
    """A walk crosses either of two lines with probability 4 Phi(-z) at most (reflection)."""
    n = np.array([800.0, 900.0, 1000.0])
    radius = sequence_radius(n, n, level, 1000.0)
    assert radius == pytest.approx(radius[0])
    crossed = 4.0 * stats.norm.sf(radius[0] / np.sqrt(1000.0))
    assert crossed == pytest.approx(0.7 * (1.0 - level))


def test_sequence_is_narrowest_at_the_planned_rows() -> None:
    """Of sequences that are planned for other numbers, or none, all are wider there."""
    here = sequence_radius(1000.0, 1000, 0.95, 1000.0)
    planned = (None, 250, 500, 2000, 4000)
    others = [sequence_radius(1000.0, 1000, 0.95, rows) for rows in planned]
    assert all(here < 1.01 * other for other in others)
    assert here < 0.95 * others[0]


@pytest.mark.parametrize("planned", [None, 300.0, 1000.0])
def test_sequence_holds_at_all_times(planned: float | None) -> None:
    rng = np.random.default_rng(1)
    n = np.arange(1.0, 3001.0)
    walks = np.cumsum(rng.normal(size=(1000, 3000)), axis=1)
    missed = np.any(np.abs(walks) > sequence_radius(n, n, 0.95, planned), axis=1).mean()
    assert missed <= 0.05
