"""One recursion weighs hypotheses: it is Bayes' rule, and its fast forms are the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from posterity.kernel import average_members, leading_dimension
from posterity.posteriors.ensemble import (
    HAS_VARIANCE,
    Ensemble,
    compute_probabilities,
    update_probabilities,
)


def some(seed: int, n: int, k: int, known: float = 0.8) -> tuple[np.ndarray, np.ndarray]:
    """Log densities and ranks (n, k); at least one knows each row."""
    rng = np.random.default_rng(seed)
    ranks = np.where(rng.random((n, k)) < known, HAS_VARIANCE, 0).astype(np.uint8)
    ranks[np.arange(n), rng.integers(k, size=n)] = HAS_VARIANCE
    return 3.0 * rng.normal(size=(n, k)) - 5.0, ranks


@given(seed=st.integers(0, 10**6), n=st.integers(1, 40), k=st.integers(1, 6))
def test_with_all_of_the_past_it_is_bayes_rule(seed: int, n: int, k: int) -> None:
    densities, ranks = some(seed, n, k, known=1.0)
    log_prior = np.log(np.random.default_rng(seed).dirichlet(np.ones(k)))
    weights, predictive, after = Ensemble.of(log_prior, 1.0).update(densities, ranks)
    joint = log_prior + np.cumsum(densities, axis=0)
    assert predictive.sum() == pytest.approx(logsumexp(joint[-1]), abs=1e-9)
    assert after.log_evidence == pytest.approx(logsumexp(joint[-1]), abs=1e-9)
    assert after.weights == pytest.approx(np.exp(joint[-1] - logsumexp(joint[-1])), abs=1e-12)
    probability, added = np.exp(log_prior), 0.0
    for i in range(n):  # a row at a time, as change points do it
        assert weights[i] == pytest.approx(probability, abs=1e-10)
        probability, one = update_probabilities(probability, densities[i])
        added += one
    assert added == pytest.approx(predictive.sum(), abs=1e-9)
    assert probability == pytest.approx(after.weights, abs=1e-10)


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 40),
    k=st.integers(1, 9),
    persistence=st.lists(st.sampled_from([1.0, 0.99, 0.9, 0.5]), min_size=1, max_size=4),
)
def test_the_kernels_two_levels_are_two_ensembles(
    seed: int, n: int, k: int, persistence: list[float]
) -> None:
    """One ensemble of the members for each rate, and one of the averages that these make."""
    densities, ranks = some(seed, n, k)
    inner = [
        Ensemble.of(np.full(k, -np.log(k)), one).update(densities, ranks) for one in persistence
    ]
    averages = np.stack([predictive for _, predictive, _ in inner], axis=1)
    everyone = np.full(averages.shape, HAS_VARIANCE, np.uint8)
    start = Ensemble.of(np.full(len(persistence), -np.log(len(persistence))), 0.95)
    rates, predictive, _ = start.update(averages, everyone)
    expected = sum(rates[:, [a]] * inner[a][0] for a in range(len(persistence)))
    scores = np.zeros((len(persistence), leading_dimension(k)))
    outer = np.zeros(leading_dimension(len(persistence)))
    weights, evidence = average_members(
        np.ascontiguousarray(densities.T),
        np.ascontiguousarray(ranks.T),
        scores,
        outer,
        np.array(persistence),
        0.95,
    )
    assert np.allclose(weights, expected, atol=1e-10)
    assert evidence == pytest.approx(predictive.sum(), rel=1e-10, abs=1e-9)


@given(seed=st.integers(0, 10**6), cut=st.integers(0, 30), persistence=st.sampled_from([1.0, 0.9]))
def test_rows_in_pieces_and_rows_of_no_weight(seed: int, cut: int, persistence: float) -> None:
    densities, ranks = some(seed, 30, 4)
    counts = (np.random.default_rng(seed).random(30) < 0.7).astype(float)
    start = Ensemble.of(np.log([0.1, 0.2, 0.3, 0.4]), persistence)
    whole, predictive, after = start.update(densities, ranks, counts)
    first, _, between = start.update(densities[:cut], ranks[:cut], counts[:cut])
    second, _, end = between.update(densities[cut:], ranks[cut:], counts[cut:])
    assert np.allclose(np.vstack([first, second]), whole, atol=1e-12)
    assert end.weights == pytest.approx(after.weights, abs=1e-12)
    only = counts > 0.0
    assert np.allclose(start.update(densities[only], ranks[only])[0], whole[only], atol=1e-12)
    assert (predictive[~only] == 0.0).all()


def test_those_that_know_less_wait_and_count_as_the_worst_of_the_others() -> None:
    densities, ranks = (
        np.log([[0.5, 0.1, 0.9]]),
        np.array([[HAS_VARIANCE, HAS_VARIANCE, 0]], np.uint8),
    )
    start = Ensemble.of(np.log([0.25, 0.25, 0.5]), 1.0)
    weights, predictive, after = start.update(densities, ranks)
    assert weights.tolist() == [[0.5, 0.5, 0.0]]
    assert np.exp(predictive) == pytest.approx([0.3])
    assert after.weights == pytest.approx(np.array([0.5, 0.1, 0.2]) / 0.8)


def test_point_masses_decide_as_the_prior_says() -> None:
    half = np.log([0.5, 0.25, 0.25])
    assert compute_probabilities(half, np.array([0.0, np.inf, np.inf])).tolist() == [0.0, 0.5, 0.5]
    assert compute_probabilities(half, np.full(3, -np.inf)).tolist() == [0.5, 0.25, 0.25]
    probability, added = update_probabilities(np.exp(half), np.array([0.0, np.inf, -1.0]))
    assert (probability.tolist(), added) == ([0.0, 1.0, 0.0], 0.0)
