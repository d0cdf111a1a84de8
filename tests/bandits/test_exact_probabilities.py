"""Integrals of independent arms in C: beside quadrature of scipy's, NumPy's twin, and draws."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import integrate, stats

from posterity import kernel
from posterity.bandits import (
    Bandit,
    Greedy,
    InformationDirected,
    RandomizedUpperConfidenceBound,
    ThompsonSampling,
    TopTwo,
    UpperConfidenceBound,
)
from posterity.bandits.beliefs import Beliefs, StudentBeliefs, get_beliefs
from posterity.bandits.probability_best import shares_by_draws
from posterity.distributions import Mixture, Normal, StudentT
from posterity.posteriors.grouped import ONE_SD

Array = NDArray[np.float64]
RNG = np.random.default_rng


def beliefs_like(seed: int, n: int, k: int, df: float, spread: float = 1.0) -> StudentBeliefs:
    rng = RNG(seed)
    allowed = rng.random((n, k)) < 0.8
    allowed[np.arange(n), rng.integers(k, size=n)] = True
    scale = 10.0 ** rng.uniform(-spread, 0.0, size=(n, k))
    return StudentBeliefs(rng.normal(size=(n, k)), scale, np.full((n, k), df), allowed)


def sums(beliefs: StudentBeliefs) -> Array:
    may = beliefs.allowed.view(np.uint8)
    return kernel.best_arms(beliefs.mean, beliefs.scale, beliefs.df, may)[1]


@given(
    seed=st.integers(0, 10**6),
    k=st.sampled_from([1, 2, 3, 10, 30, 100]),
    df=st.sampled_from([0.7, 1.0, 2.0, 5.0, 30.0, 1e3, 1e6, 1e8, 1e12, np.inf]),
    spread=st.sampled_from([0.0, 1.0, 4.0]),
)
@settings(max_examples=60, deadline=None)
def test_chances_sum_to_one(seed: int, k: int, df: float, spread: float) -> None:
    beliefs = beliefs_like(seed, 5, k, df, spread)
    assert np.abs(sums(beliefs)).max() < 1e-10
    predictive = beliefs.probability_best()
    np.testing.assert_allclose(predictive.sum(axis=1), 1.0, rtol=1e-14)
    assert (predictive[~beliefs.allowed] == 0.0).all()


@pytest.mark.parametrize("df", [1.5, 4.0, 40.0, np.inf])
def test_chances_are_those_of_adaptive_quadrature(df: float) -> None:
    rng = RNG(0)
    loc, scale = rng.normal(size=4), rng.uniform(0.05, 1.0, size=4)
    arms = [
        stats.norm(m, s) if df == np.inf else stats.t(df, m, s)
        for m, s in zip(loc, scale, strict=True)
    ]
    predictive = StudentBeliefs(
        loc[None], scale[None], np.full((1, 4), df), np.ones((1, 4), dtype=bool)
    ).probability_best()[0]
    for a, arm in enumerate(arms):

        def mass(x: float, a: int = a, arm: Any = arm) -> float:
            return float(arm.pdf(x) * np.prod([o.cdf(x) for b, o in enumerate(arms) if b != a]))

        parts = [-np.inf, *np.sort(np.concatenate([loc - 6 * scale, loc, loc + 6 * scale])), np.inf]
        exact = sum(
            integrate.quad(mass, low, high, epsabs=1e-13)[0] for low, high in pairwise(parts)
        )
        np.testing.assert_allclose(predictive[a], exact, atol=1e-10)


@pytest.mark.parametrize("k", [2, 9, 40])
@pytest.mark.parametrize("df", [3.0, 200.0, np.inf])
def test_chances_are_those_of_the_twin(k: int, df: float) -> None:
    beliefs = beliefs_like(1, 4, k, df, 2.0)
    arms = [StudentT(df, beliefs.mean[:, a], beliefs.scale[:, a]) for a in range(k)]
    twin = Beliefs(arms, beliefs.allowed).probability_best()
    np.testing.assert_allclose(beliefs.probability_best(), twin, atol=1e-6 if df == 3.0 else 1e-10)


def test_which_beliefs_are_student() -> None:
    both = np.ones((2, 2), dtype=bool)
    normal, student = Normal([0.0, 1.0], 1.0), StudentT(5.0, 0.5, [1.0, 2.0])
    beliefs = get_beliefs([normal, student], both)
    assert isinstance(beliefs, StudentBeliefs)
    plain = Beliefs(
        [Normal([0.0, 1.0], [1.0, 1.0]), StudentT([5.0, 5.0], [0.5, 0.5], [1.0, 2.0])], both
    )
    for what in ("mean", "std", "unknown"):
        np.testing.assert_allclose(getattr(beliefs, what), getattr(plain, what))
    np.testing.assert_allclose(beliefs.quantile(0.9), plain.quantile(0.9), rtol=1e-12)
    np.testing.assert_allclose(beliefs.probability_best(), plain.probability_best(), atol=1e-8)
    draws = beliefs.scale_deviations(0.5).sample(20_000, RNG(0))
    np.testing.assert_allclose(draws.std(axis=0), 0.5 * beliefs.std, rtol=0.05)
    mixture = Mixture([normal, student], [0.5, 0.5])
    assert isinstance(get_beliefs([normal, mixture], both), Beliefs)


# ---- what the best arm would tell ----------------------------------------------------------------


@pytest.mark.parametrize("df", [6.0, np.inf])
def test_what_is_told_and_regret_are_those_of_draws(df: float) -> None:
    k, m = 4, 1_000_000
    beliefs = beliefs_like(3, 1, k, df)
    may = np.ones((1, k), dtype=np.uint8)
    shares, regret, predictive = kernel.information_directed_shares(
        beliefs.mean, beliefs.scale, beliefs.df, may
    )
    whole = StudentBeliefs(beliefs.mean, beliefs.scale, beliefs.df, may.astype(bool))
    draws = whole.sample(m, RNG(0))[:, 0]
    best = draws.argmax(axis=1)
    np.testing.assert_allclose(regret[0], draws.max(axis=1).mean() - draws.mean(axis=0), atol=0.01)
    variance = sum(
        np.mean(best == b) * np.square(draws[best == b].mean(axis=0) - draws.mean(axis=0))
        for b in range(k)
        if (best == b).any()
    )
    np.testing.assert_allclose(predictive[0], variance, rtol=0.03, atol=3e-4)
    np.testing.assert_allclose(shares.sum(), 1.0)


def test_two_normal_arms_tell_in_closed_form() -> None:
    # E[max(A, B)] (Clark 1961), and what is told: E[A | A > B] - E[A] = var / sd * pdf / p.
    loc, scale = np.array([0.3, 0.0]), np.array([0.5, 1.2])
    sd = np.hypot(*scale)
    z = (loc[0] - loc[1]) / sd
    p, density = stats.norm.cdf(z), stats.norm.pdf(z)
    most = loc[0] * p + loc[1] * (1.0 - p) + sd * density
    moved = np.square(scale) / sd * density
    predictive = np.square(moved) * (1.0 / p + 1.0 / (1.0 - p))
    found = kernel.information_directed_shares(
        loc[None], scale[None], np.full((1, 2), np.inf), np.ones((1, 2), dtype=np.uint8)
    )
    np.testing.assert_allclose(found[1][0], most - loc, rtol=1e-12)
    np.testing.assert_allclose(found[2][0], predictive, rtol=1e-11)


@pytest.mark.parametrize("df", [6.0, np.inf])
def test_mixtures_tell_as_their_only_component(df: float) -> None:
    """Quadrature between quantiles, beside the kernel's from the top; an arm is not allowed."""
    whole = beliefs_like(5, 6, 4, df)
    whole.allowed[:, 2] = False
    parts = [StudentT(whole.df[:, a], whole.mean[:, a], whole.scale[:, a]) for a in range(4)]
    if df == np.inf:
        parts = [Normal(whole.mean[:, a], whole.scale[:, a]) for a in range(4)]
    mixed = Beliefs([Mixture([part], [1.0]) for part in parts], whole.allowed)
    policy = InformationDirected(floor=0.0)
    np.testing.assert_allclose(
        policy.propensities(mixed, RNG(0)), policy.propensities(whole, RNG(0)), atol=1e-4
    )


def test_mixtures_tell_as_many_draws() -> None:
    both = Mixture([Normal([-1.0], [0.3]), Normal([1.5], [0.5])], [0.6, 0.4])
    arms = [both, Normal([0.4], [0.4]), StudentT([5.0], [0.0], [0.8])]
    allowed = np.ones((1, 3), dtype=bool)
    beliefs = Beliefs(arms, allowed)
    drawn = shares_by_draws(beliefs.sample(1_000_000, RNG(0)), allowed)
    exact = InformationDirected(floor=0.0).propensities(beliefs, RNG(0))
    np.testing.assert_allclose(exact, drawn, atol=0.02)
    again = InformationDirected(floor=0.0, n_draws=1).propensities(beliefs, RNG(1))
    np.testing.assert_array_equal(exact, again)  # nothing is drawn


@given(seed=st.integers(0, 10**6), k=st.integers(1, 6))
@settings(max_examples=50, deadline=None)
def test_no_pair_is_cheaper(seed: int, k: int) -> None:
    rng = RNG(seed)
    regret, predictive = rng.gamma(1.0, size=(1, k)), rng.gamma(0.5, size=(1, k))
    shares = kernel.cheapest_pairs(regret, predictive, np.ones((1, k), dtype=np.uint8))[0]
    np.testing.assert_allclose(shares.sum(), 1.0)
    assert (shares >= 0.0).all()
    assert np.count_nonzero(shares) <= 2
    least = (shares @ regret[0]) ** 2 / (shares @ predictive[0])
    q = np.linspace(0.0, 1.0, 201)[:, None, None]
    cost = q * regret[0][:, None] + (1.0 - q) * regret[0]
    gain = q * predictive[0][:, None] + (1.0 - q) * predictive[0]
    assert least <= np.min(cost**2 / gain) * (1.0 + 1e-12)


def test_nothing_is_paid_where_nothing_can_be_told() -> None:
    regret, predictive = np.array([[0.0, 1.0]]), np.zeros((1, 2))
    both = np.ones((1, 2), dtype=np.uint8)
    np.testing.assert_allclose(kernel.cheapest_pairs(regret, predictive, both), [[1.0, 0.0]])
    certain = StudentBeliefs(np.zeros((1, 2)), np.zeros((1, 2)), np.full((1, 2), 9.0), both > 0)
    predictive = InformationDirected(floor=0.0).propensities(certain, RNG(0))
    np.testing.assert_allclose(predictive.sum(), 1.0)


def test_certain_arms_beside_others() -> None:
    loc, scale = np.array([[1.0, 1.0, 0.5, 0.0]]), np.array([[0.0, 0.0, 1.0, 0.0]])
    beliefs = StudentBeliefs(loc, scale, np.full((1, 4), np.inf), np.ones((1, 4), dtype=bool))
    above = stats.norm.sf(1.0, 0.5, 1.0)
    predictive = beliefs.probability_best()[0]
    np.testing.assert_allclose(
        predictive, [0.5 - above / 2, 0.5 - above / 2, above, 0.0], atol=1e-13
    )


def test_the_second_of_two_draws() -> None:
    beliefs = beliefs_like(5, 3, 4, 9.0)
    p = beliefs.probability_best()
    predictive = TopTwo(share=0.0, floor=0.0).propensities(beliefs, RNG(0))
    rows, k = p.shape
    for row in range(rows):
        exact = [
            sum(p[row, b] * p[row, a] / (1.0 - p[row, b]) for b in range(k) if b != a and p[row, b])
            for a in range(k)
        ]
        np.testing.assert_allclose(predictive[row], exact, atol=1e-9)
    far = StudentBeliefs(np.array([[9.0, 0.0, 0.0]]), np.full((1, 3), 0.1), np.full((1, 3), np.inf),
                         np.ones((1, 3), dtype=bool))  # fmt: skip
    predictive = TopTwo(floor=0.0).propensities(far, RNG(0))
    np.testing.assert_allclose(predictive, [[0.5, 0.25, 0.25]], atol=1e-9)


# ---- bounds whose width is drawn -----------------------------------------------------------------


@given(seed=st.integers(0, 10**6), k=st.integers(1, 9))
@settings(max_examples=30, deadline=None)
def test_bounds_of_drawn_width_are_the_best_so_often(seed: int, k: int) -> None:
    beliefs = beliefs_like(seed, 2, k, np.inf)
    predictive = RandomizedUpperConfidenceBound(width=0.7, floor=0.0).propensities(beliefs, RNG(0))
    np.testing.assert_allclose(predictive.sum(axis=1), 1.0, rtol=1e-14)
    z = 0.7 * stats.norm.ppf(0.5 + 0.5 * (np.arange(20_000) + 0.5) / 20_000)[:, None, None]
    values = np.where(beliefs.allowed, beliefs.mean + z * beliefs.quantile_margins(0.841), -np.inf)
    best = values == values.max(axis=2, keepdims=True)
    np.testing.assert_allclose(predictive, best.mean(axis=0), atol=1e-3)


def test_arms_that_are_alike_share_the_envelope() -> None:
    shares = kernel.envelope_shares(
        np.array([[1.0, 1.0, 0.5]]), np.ones((1, 3)), np.ones((1, 3), dtype=np.uint8), 1.0
    )
    np.testing.assert_allclose(shares, [[0.5, 0.5, 0.0]])


# ---- the lean way of many arms -------------------------------------------------------------------

LEAN = [
    ThompsonSampling(width=0.8),
    UpperConfidenceBound(),
    RandomizedUpperConfidenceBound(),
    Greedy(),
]


def bandit_of_many(policy: Any, seed: int = 0) -> tuple[Bandit, Array]:
    """Eleven arms, more than fill the lanes of a vector, and a feature that has been 0 always."""
    rng = RNG(seed)
    X = rng.normal(size=(120, 3))
    X[:, 2] = 0.0
    bandit = Bandit(arms=list(range(11)), policy=policy, rng=3)
    return bandit.learn(X, np.arange(120) % 11, 0.3 * rng.normal(size=120)), X


@pytest.mark.parametrize("policy", LEAN, ids=repr)
def test_lean_decisions_follow_their_propensities(policy: Any) -> None:
    bandit, X = bandit_of_many(policy)
    n = 40_000
    decisions = bandit.decide(np.repeat(X[:1], n, axis=0))
    predictive = decisions.propensities[0]
    counts = np.bincount(decisions.arms, minlength=11)
    assert stats.chisquare(counts, n * predictive).pvalue > 1e-4
    assert bandit_of_many(policy)[0].decide(X[0]).arm == decisions.arms[0]


def test_what_was_never_seen_is_unknown_in_the_lanes_too() -> None:
    bandit, X = bandit_of_many(ThompsonSampling())
    new = np.array([0.1, 0.2, 1.0])
    decision = bandit.decide(new)
    np.testing.assert_allclose(decision.propensities, 1.0 / 11.0)
    lean = bandit._open_arms_path()
    assert lean is not None
    for x in (X[0], new):
        _, mean, scale = lean.decide(x, np.ones(11, dtype=np.uint8), (1, 0.0), 0.0, 0, 0)
        beliefs: Any = bandit._arms.beliefs(x[None], np.ones((1, 11), dtype=bool), RNG(0))
        np.testing.assert_allclose(mean, beliefs.mean[0], rtol=1e-9, atol=1e-12)
        margins = beliefs.quantile_margins(ONE_SD)
        # Degrees of freedom of arms whose noise differs are those of the last update.
        lean_sd = scale * StudentT([lean.df]).ppf(ONE_SD)
        np.testing.assert_allclose(
            lean_sd, np.where(beliefs.unknown, np.inf, margins)[0], rtol=1e-3
        )


def test_lean_rows_are_learned_as_others_are() -> None:
    policy = ThompsonSampling()
    (lean, X), (slow, _) = bandit_of_many(policy), bandit_of_many(policy)
    rng = RNG(9)
    for step in range(150):
        x, arm, reward = X[step % 120], int(rng.integers(11)), float(rng.normal())
        lean.decide(x)
        lean.learn_one(x, arm, reward, 1.0 + step % 3)
        slow._learn_one(x, arm, reward, 1.0 + step % 3)
        if step == 60:  # a branch that fails leaves nothing behind, but closes the way once
            with pytest.raises(ValueError, match="finite"):
                lean.learn(X[:2], [0, 1], [1.0, np.nan])
    a, b = (bandit._beliefs(X, None)[0] for bandit in (lean, slow))
    np.testing.assert_allclose(a.mean, b.mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(a.scale, b.scale, rtol=1e-9)
    assert lean._arms.model.counts_.sum() == slow._arms.model.counts_.sum()


@pytest.mark.parametrize(
    ("x", "reward", "weight"),
    [
        ([0.0, 0.0], 1.0, 1.0),
        ([0.0, np.nan, 0.0], 1.0, 1.0),
        ([0.0] * 3, np.inf, 1.0),
        ([0.0] * 3, 1.0, -1.0),
    ],
)
def test_what_the_lean_way_refuses_changes_nothing(x: Any, reward: float, weight: float) -> None:
    bandit, X = bandit_of_many(ThompsonSampling())
    for step in range(3):
        bandit.decide(X[0])
        bandit.learn_one(X[step], 0, 1.0)
    bandit.decide(X[0])
    before = bandit._arms.model.counts_.sum(), bandit.propensities(X[:1])
    with pytest.raises(ValueError, match=r"x has|x in column|reward is|weight"):
        bandit.learn_one(np.array(x), 0, reward, weight)
    assert bandit._arms.model.counts_.sum() == before[0]
    np.testing.assert_array_equal(bandit.propensities(X[:1]), before[1])
