"""Predictions of any kind, mixed: as SciPy, quadrature and the exact mixture have it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from posterity.distributions import (
    Categorical,
    Mixture,
    NegativeBinomialLogNormal,
    Normal,
    PoissonLogNormal,
    StudentT,
)
from posterity.distributions.any_mixture import AnyCounts, AnyMixture, AskedTogether
from posterity.distributions.in_sequence import InSequence, in_sequence
from posterity.distributions.mixing import mix_exactly, mix_predictions
from posterity.likelihoods import Bernoulli, Gamma, Predictive
from posterity.likelihoods.labels import Labels

WEIGHTS = np.array([[0.5, 0.2, 0.3], [0.1, 0.9, 0.0], [0.0, 0.0, 1.0]])
PARTS = [
    Normal([0.0, 1.0, 2.0], [1.0, 0.5, 2.0]),
    StudentT(6.0, [3.0, -1.0, 0.0], [0.5, 1.0, 1.0]),
    Normal([-4.0, 0.0, 1.0], 1.5),
]
Q = np.array([0.01, 0.3, 0.975])


def test_a_mixture_of_any_is_the_mixture_of_densities() -> None:
    general, exact = AnyMixture(PARTS, WEIGHTS), Mixture(PARTS, WEIGHTS)
    y = np.array([0.3, 2.0, -5.0])
    for name in ("mean", "std", "median"):
        assert np.allclose(getattr(general, name)(), getattr(exact, name)(), atol=1e-9)
    for name in ("logpdf", "cdf", "sf"):
        assert np.allclose(getattr(general, name)(y), getattr(exact, name)(y), atol=1e-12)
    assert np.allclose(general.ppf(Q), exact.ppf(Q), atol=1e-9)
    assert np.allclose(general.interval(0.9), exact.interval(0.9), atol=1e-9)
    assert np.allclose(general.crps(y), exact.crps(y), rtol=1e-3)
    assert np.allclose(general[1:].mean(), exact[1:].mean())


def test_the_score_is_its_integral() -> None:
    predictive = AnyMixture([stats.laplace([0.0], 1.0), stats.expon([2.0], 0.5)], [0.6, 0.4])
    t = np.linspace(-40.0, 60.0, 400_001)
    cdf = 0.6 * stats.laplace.cdf(t) + 0.4 * stats.expon(2.0, 0.5).cdf(t)
    for y in (-3.0, 0.1, 2.2, 7.0):
        expected = integrate.trapezoid(np.square(cdf - (t >= y)), t)
        assert predictive.crps([y])[0] == pytest.approx(expected, rel=2e-3)


COUNTS = [
    PoissonLogNormal([0.0, 1.0, 9.0], [0.1, 0.5, 0.1]),
    NegativeBinomialLogNormal([2.0, 3.0, 9.5], [0.1, 0.5, 0.3], 0.4),
]


def test_the_score_of_counts_is_their_sum() -> None:
    predictive = mix_exactly(COUNTS, [0.3, 0.7])[:2]
    counts = np.arange(100_000.0)[:, None]
    for y in (0.0, 3.0, 400.0):
        expected = np.square(predictive.cdf(counts) - (counts >= y)).sum(axis=0)
        assert predictive.crps(y) == pytest.approx(expected, rel=1e-9)
    assert predictive.crps(2.25) == pytest.approx(
        0.75 * predictive.crps(2.0) + 0.25 * predictive.crps(3.0)
    )
    whole = mix_exactly(COUNTS, [0.3, 0.7])  # the third row has too many
    y = np.array([[1.0, 2.0, 5000.0], [0.0, 9.0, 4e4]])
    assert np.array_equal(whole.crps(y)[:, :2], predictive.crps(y[:, :2]))
    assert whole.crps(y)[:, 2] == pytest.approx(AnyMixture._crps(whole[2:], y[:, 2:])[:, 0])


AMOUNTS = [
    Predictive(Gamma(2.0), np.array([0.0, 1.0, 9.0]), np.array([0.1, 0.0, 0.1])),
    Predictive(Gamma(2.0), np.array([2.0, 3.0, 9.5]), np.zeros(3)),
]


@pytest.mark.parametrize("weights", [[0.3, 0.7], [[0.3, 0.7], [0.0, 1.0], [1.0, 0.0]]])
@pytest.mark.parametrize(
    ("parts", "kind", "density", "last"),
    [(COUNTS, AnyCounts, "logpmf", -3.0), (AMOUNTS, AnyMixture, "logpdf", 3.0)],
)
def test_components_asked_together_answer_as_one_by_one(
    parts: Any, kind: Any, density: str, last: float, weights: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    together, y = mix_exactly(parts, weights), np.array([[1.0, 4.0, 9000.0], [0.5, 2.5, last]])
    apart = kind(parts, weights)
    assert isinstance(together, AskedTogether)
    for name in ("mean", "var"):
        assert np.allclose(getattr(together, name)(), getattr(apart, name)(), rtol=1e-15)
    for name in (density, "cdf", "sf"):
        assert np.allclose(getattr(together, name)(y), getattr(apart, name)(y), rtol=1e-13)
    assert np.allclose(together.interval(0.9), apart.interval(0.9), rtol=1e-12)
    monkeypatch.setattr("posterity.distributions.any_mixture.MOST_AT_ONCE", 0)
    assert np.allclose(together.cdf(y), apart.cdf(y), rtol=1e-13)


def test_draws_are_from_the_mixture() -> None:
    predictive = AnyCounts(
        [PoissonLogNormal([0.0], [0.2]), PoissonLogNormal([3.0], [0.1])], [0.7, 0.3]
    )
    draws = predictive.rvs((4000, 1), random_state=0)[:, 0]
    assert abs(draws.mean() - predictive.mean()[0]) < 4.0 * predictive.std()[0] / np.sqrt(4000.0)
    values, counts = np.unique(draws, return_counts=True)
    assert np.allclose(predictive.pmf(values[:, None])[:, 0][:3], counts[:3] / 4000.0, atol=0.03)
    low, high = predictive.interval(0.9)
    assert predictive.cdf(low)[0] >= 0.05 > predictive.cdf(low - 1.0)[0]
    assert predictive.cdf(high)[0] >= 0.95 > predictive.cdf(high - 1.0)[0]


def test_each_kind_is_mixed_in_its_way() -> None:
    two = [0.25, 0.75]
    densities = mix_predictions([PARTS[0], Mixture(PARTS[1:], [0.5, 0.5])], two)
    assert isinstance(densities, Mixture)
    assert densities.weights.tolist() == [0.25, 0.375, 0.375]
    labels = mix_predictions([Labels(np.log([p]), np.log([1.0 - p])) for p in (0.2, 0.9)], two)
    assert labels.mean() == pytest.approx([0.25 * 0.2 + 0.75 * 0.9])
    classes = [Categorical(["a", "b"], np.log([[p, 1.0 - p]])) for p in (0.2, 0.9)]
    assert mix_predictions(classes, two).probabilities[0, 0] == pytest.approx(0.725)
    counts = [NegativeBinomialLogNormal([m], [v], 0.5) for m, v in ((0.0, 0.1), (1.0, 0.3))]
    matched = mix_predictions(counts, two)
    assert matched.log_mean == pytest.approx([0.75])
    assert matched.log_variance == pytest.approx([0.25 * 0.1 + 0.75 * 0.3 + 0.1875])
    exact = mix_exactly(counts, two)
    assert exact.pmf([3]) == pytest.approx(0.25 * counts[0].pmf([3]) + 0.75 * counts[1].pmf([3]))
    assert isinstance(mix_predictions([PARTS[0], counts[0]], two), AnyMixture)
    assert mix_predictions([labels], [1.0]) is labels


def test_own_predictions_need_nothing_of_the_library() -> None:
    predictive = mix_predictions(
        [stats.norm([0.0, 1.0], 1.0), stats.norm([2.0, 3.0], 1.0)], [0.5, 0.5]
    )
    assert predictive.mean().tolist() == [1.0, 2.0]
    assert not predictive.is_flat().any()


@pytest.mark.parametrize(
    "whole",
    [
        StudentT(5.0, np.arange(6.0), 2.0),
        PoissonLogNormal(np.linspace(0.0, 2.0, 6), np.full(6, 0.3)),
        Mixture([Normal(np.arange(6.0), 1.0), Normal(np.zeros(6), 2.0)], [0.5, 0.5]),
        Bernoulli().predictive(np.linspace(-2.0, 2.0, 6), np.ones(6)),
    ],
    ids=lambda one: type(one).__name__,
)
def test_rows_in_sequence_are_the_rows(whole: Any) -> None:
    parts = in_sequence([whole[:1], whole[1:4], whole[4:]])
    assert isinstance(parts, InSequence)
    assert len(parts) == 6
    y = np.array([0.0, 1.0, 0.0, 1.0, 0.0, 1.0])
    assert np.array_equal(parts.mean(), whole.mean())
    assert np.array_equal(parts.std(), whole.std())
    for name in ("logpdf", "cdf", "crps"):
        assert np.allclose(getattr(parts, name)(y), getattr(whole, name)(y), rtol=1e-12)
    assert np.allclose(parts.ppf(0.9), whole.ppf(0.9), rtol=1e-12)
    assert np.allclose(parts.interval(0.9), whole.interval(0.9), rtol=1e-12)
    index: Any
    for index in (slice(2, 5), np.array([5, 0, 3]), np.arange(6) % 2 == 0):
        assert np.array_equal(parts[index].mean(), whole[index].mean())
    assert parts[4].mean() == whole[4].mean()
    assert parts.rvs(random_state=0).shape == (6,)
    assert in_sequence([whole]) is whole
