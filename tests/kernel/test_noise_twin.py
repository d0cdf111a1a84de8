"""The noises that are followed at several memories: the kernel and its obvious twin."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posterity.distributions import StudentT
from posterity.kernel import MemberNoises
from posterity.posteriors.ensemble import clip_log_densities, rank_predictions

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
    k=st.integers(1, 10),
    prior=st.sampled_from([(0.0, 0.0), (3.0, 2.0)]),
    weighted=st.booleans(),
    size=st.sampled_from([1e-60, 1.0, 1e60]),
)
def test_as_the_twin_in_any_pieces(
    seed: int, n: int, m: int, k: int, prior: tuple[float, float], weighted: bool, size: float
) -> None:
    rng = np.random.default_rng(seed)
    rates = 1.0 - 1.0 / np.geomspace(4.0, 1000.0, m)
    caps = np.where(np.arange(m) == 0, 1e150, 25.0)
    y, loc = size * rng.standard_t(2.0, size=n), 0.1 * size * rng.normal(size=(k, n))
    spread = 1.0 + rng.gamma(1.0, size=(k, n))
    spread[rng.random((k, n)) < 0.1] = np.inf
    weights = rng.integers(0, 3, size=n) * 0.75 if weighted else None
    prior = (prior[0], prior[1] * size**2)
    ours, theirs = ([np.zeros((4, m)) for _ in range(k)] for _ in range(2))
    noises = MemberNoises(ours, rates, caps, 9.0, 0.98, prior)
    scale, half = np.sqrt(spread), n // 2
    pieces = []
    for part in (slice(0, half), slice(half, n)):
        scales, some = scale[:, part].copy(), None if weights is None else weights[part]
        pieces.append((scales, *noises.score(y[part], loc[:, part].copy(), scales, some)))
    scales, freed, densities, ranks = (
        np.concatenate(each, axis=1) for each in zip(*pieces, strict=True)
    )
    weights = np.ones(n) if weights is None else weights
    for i in range(k):
        rows = y - loc[i], spread[i], weights
        df, variance = plainly(theirs[i], rates, caps, 9.0, 0.98, prior, rows)
        with np.errstate(invalid="ignore"):
            expected = scale[i] * np.sqrt(variance)
        expected[np.isnan(expected)] = np.inf
        assert np.allclose(freed[i], df, rtol=1e-7, atol=0.0)
        assert np.allclose(scales[i], expected, rtol=1e-7, atol=0.0)
        assert np.allclose(ours[i][:2], theirs[i][:2], rtol=1e-9)
        predictive = StudentT(freed[i], loc[i], scales[i])
        density = weights * clip_log_densities(predictive.logpdf(y))
        assert np.allclose(densities[i], density, rtol=1e-12, atol=1e-11)
        assert np.array_equal(ranks[i], rank_predictions(predictive))


@pytest.mark.parametrize("df", [1e-3, 0.7, 5.0, 63.9, 64.0, 1e3, 1e8])
@pytest.mark.parametrize("error", [0.0, 1e-9, 1.0, 1e3])
def test_densities_of_few_and_many_degrees_of_freedom(df: float, error: float) -> None:
    """The noise is known to this many, at which none of its rows is learned."""
    nothing, scale = np.zeros(1), np.full((1, 1), 2.0)
    noises = MemberNoises([np.zeros((4, 1))], np.array([0.9]), np.ones(1), 1.0, 1.0, (df, df))
    freed, density, _ = noises.score(np.array([error]), nothing[None], scale, np.ones(1))
    assert freed[0, 0] == pytest.approx(df, rel=1e-12)
    expected = clip_log_densities(StudentT(df, 0.0, 2.0).logpdf([error]))[0]
    assert density[0, 0] == pytest.approx(expected, rel=1e-12, abs=1e-13)


def test_a_row_of_weight_two_is_two_rows() -> None:
    """The same error twice, where the prediction's own variance is nothing."""
    one, rates, caps = np.ones(1), np.array([0.9, 0.99]), np.full(2, 1e300)
    twice, double = np.zeros((4, 2)), np.zeros((4, 2))

    def learn(state: np.ndarray, weights: np.ndarray | None) -> None:
        noises = MemberNoises([state], rates, caps, 0.0, 1.0, (0.0, 0.0))
        noises.score(3.0 * one, np.zeros((1, 1)), np.ones((1, 1)), weights)

    learn(twice, None)
    learn(twice, None)
    learn(double, 2.0 * one)
    assert double[[0, 1, 3]] == pytest.approx(twice[[0, 1, 3]])


def test_arguments_that_do_not_fit() -> None:
    ones, state, settings = np.ones(3), np.zeros((4, 2)), (0.0, 1.0, (0.0, 0.0))
    with pytest.raises(ValueError, match="1 to 8 memories"):
        MemberNoises([state], ones, ones, *settings)
    with pytest.raises(ValueError, match="1 to 8 memories"):
        MemberNoises([state, state[:, :1]], ones[:2], ones[:2], *settings)
    noises = MemberNoises([state], ones[:2] / 2, ones[:2], *settings)
    with pytest.raises(ValueError, match="so many members and rows"):
        noises.score(ones, np.ones((1, 3)), np.ones((2, 3)), None)
    with pytest.raises(ValueError, match="weights has length 2: expected 3"):
        noises.score(ones, np.ones((1, 3)), np.ones((1, 3)), np.ones(2))
