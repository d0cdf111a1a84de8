"""The noise that is followed at several memories: the kernel and its obvious twin."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posterity.kernel import track_noise

Rows = tuple[np.ndarray, np.ndarray, np.ndarray]


def plainly(
    state: np.ndarray,
    rates: np.ndarray,
    caps: np.ndarray,
    grace: float,
    persistence: float,
    prior: tuple[float, float],
    rows: Rows,
) -> tuple[np.ndarray, np.ndarray]:
    """A row at a time, in the order of the formulas."""
    sums, counts, scores, seen = state
    predictive = []
    for error, spread, weight in zip(*rows, strict=True):
        residual_df, variance = counts + prior[0], np.full(len(rates), np.inf)
        if (residual_df > 0.0).all():
            variance = (sums + prior[1]) / residual_df
        known = bool(((variance > 1e-290) & (variance < 1e290)).all())
        if known:
            share = np.exp(scores - scores.max())
            share /= share.sum()
            # Each memory's log variance: mean log(variance) + 1 / freed, variance 2 / freed.
            centre = share @ np.log(variance)
            spread_of_logs = share @ (np.square(np.log(variance) - centre) + 2.0 / residual_df)
            df = max(2.0 / spread_of_logs, residual_df.min())
            predictive.append((df, np.exp(centre + share @ (1.0 / residual_df) - 1.0 / df)))
        else:
            predictive.append((residual_df[0], variance[0]))
        if weight == 0.0 or not np.isfinite(spread):
            continue
        if known and residual_df.min() > 2.0:
            x = residual_df / 2.0
            gammas = -1.0 / (8.0 * x) + 1.0 / (192.0 * x**3) - 1.0 / (640.0 * x**5)
            surprise = np.log1p(error**2 / spread / (residual_df * variance))
            density = gammas - np.log(variance) / 2.0 - (residual_df + 1.0) / 2.0 * surprise
            scores[:] = persistence * scores + weight * density
            scores -= scores.max()
        squares = np.full(len(rates), error**2 / (1.0 + weight * (spread - 1.0)))
        if known and seen[0] > grace:
            squares = np.minimum(squares, caps * variance)
        kept = rates**weight
        gain = (1.0 - kept) / (1.0 - rates)
        counts[:] = kept * counts + gain
        sums[:] = kept * sums + gain * squares
        seen += weight
    return np.array(predictive)[:, 0], np.array(predictive)[:, 1]


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 80),
    m=st.integers(1, 8),
    prior=st.sampled_from([(0.0, 0.0), (3.0, 2.0)]),
    weighted=st.booleans(),
    size=st.sampled_from([1e-60, 1.0, 1e60]),
)
def test_as_the_twin_in_any_pieces(
    seed: int, n: int, m: int, prior: tuple[float, float], weighted: bool, size: float
) -> None:
    rng = np.random.default_rng(seed)
    rates = 1.0 - 1.0 / np.geomspace(4.0, 1000.0, m)
    caps = np.where(np.arange(m) == 0, 1e150, 25.0)
    error = size * rng.standard_t(2.0, size=n)
    spread = 1.0 + rng.gamma(1.0, size=n)
    spread[rng.random(n) < 0.1] = np.inf
    weights = rng.integers(0, 3, size=n) * 0.75 if weighted else np.ones(n)
    prior = (prior[0], prior[1] * size**2)
    states = np.zeros((4, m)), np.zeros((4, m))
    expected = plainly(states[0], rates, caps, 9.0, 0.98, prior, (error, spread, weights))
    half = n // 2
    parts = [
        track_noise(
            states[1],
            rates,
            caps,
            9.0,
            0.98,
            prior,
            error[part],
            spread[part],
            weights[part] if weighted else None,
        )
        for part in (slice(0, half), slice(half, n))
    ]
    for ours, theirs in zip(zip(*parts, strict=True), expected, strict=True):
        assert np.allclose(np.concatenate(ours), theirs, rtol=1e-7, atol=0.0)
    assert np.allclose(states[1][:2], states[0][:2], rtol=1e-9)


def test_a_row_of_weight_two_is_two_rows() -> None:
    """The same error twice, where the prediction's own variance is nothing."""
    ones, rates, caps = np.ones(1), np.array([0.9, 0.99]), np.full(2, 1e300)
    twice, double = np.zeros((4, 2)), np.zeros((4, 2))
    for _ in range(2):
        track_noise(twice, rates, caps, 0.0, 1.0, (0.0, 0.0), 3.0 * ones, ones, None)
    track_noise(double, rates, caps, 0.0, 1.0, (0.0, 0.0), 3.0 * ones, ones, 2.0 * ones)
    assert double[[0, 1, 3]] == pytest.approx(twice[[0, 1, 3]])


def test_arguments_that_do_not_fit() -> None:
    ones, state = np.ones(3), np.zeros((4, 2))
    with pytest.raises(ValueError, match="1 to 8 memories"):
        track_noise(state, ones, ones, 0.0, 1.0, (0.0, 0.0), ones, ones, None)
    with pytest.raises(ValueError, match="same rows"):
        track_noise(state, ones[:2] / 2, ones[:2], 0.0, 1.0, (0.0, 0.0), ones, np.ones(2), None)
