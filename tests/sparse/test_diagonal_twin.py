"""The kernel of diagonal models beside its slow twin, and beside quadrature."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from numpy.typing import NDArray
from scipy.special import expit
from twins.diagonal import DiagonalTwin

from posterity.likelihoods import Bernoulli, Gaussian, Likelihood, Poisson, moment_sites
from posterity.posteriors._sparse_rows import Observations, SparseRows
from posterity.posteriors.diagonal import SCALES, DiagonalPosterior
from posterity.transaction import Undo

Array = NDArray[np.float64]
P, COLUMNS = 12, 4
OWNERS = np.array([1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3], dtype=np.int32)


def problem(
    likelihood: Likelihood, n: int = 80, seed: int = 0
) -> tuple[SparseRows, Array, Array, Array]:
    rng = np.random.default_rng(seed)
    active = [np.sort(rng.choice(P, rng.integers(0, 5), replace=False)) for _ in range(n)]
    starts = np.concatenate([[0], np.cumsum([len(one) for one in active])]).astype(np.int64)
    features = np.concatenate(active).astype(np.int32)
    rows = SparseRows(starts, features + 1, OWNERS[features], rng.normal(size=len(features)))
    y = rng.normal(size=n)
    if isinstance(likelihood, Bernoulli | Poisson):
        y = (y > 0.3).astype(float)
    return rows, y, rng.choice([0.5, 1.0, 2.0], n), rng.choice([0.7, 1.0], n)


def begun(likelihood: Likelihood, precision: float | None, *, forgets: bool) -> DiagonalPosterior:
    known = DiagonalPosterior.before_data(likelihood, precision, intercept=True, forgets=forgets)
    known.precision[0] = 0.3  # the intercept's
    known.grow(1 + P, OWNERS, COLUMNS)
    return known


def label_site(y: float, mean: float, variance: float) -> tuple[float, float, float]:
    """By so many nodes that nothing is left to gain."""
    z = np.linspace(-12.0, 12.0, 4001)
    share = np.exp(-0.5 * z**2) * expit((2.0 * y - 1.0) * (mean + np.sqrt(variance) * z))
    total = share.sum()
    middle = np.sum(share * z) / total
    ratio = np.sum(share * z**2) / total - middle**2
    precision = (1.0 / ratio - 1.0) / variance
    log_density = np.log(total / np.exp(-0.5 * z**2).sum())
    return precision, mean + np.sqrt(variance) * middle / (1.0 - ratio), float(log_density)


def twin(likelihood: Likelihood, known: DiagonalPosterior, member: int) -> DiagonalTwin:
    unit = likelihood.precision if isinstance(likelihood, Gaussian) else 1.0

    def find(y: float, mean: float, variance: float, weight: float) -> tuple[float, float, float]:
        if isinstance(likelihood, Gaussian):  # in units of the noise, whose weights are variances
            spread = (variance + 1.0 / weight) / unit
            density = -0.5 * ((y - mean) ** 2 / spread + np.log(2.0 * np.pi * spread))
            return weight, y, float(density)
        if likelihood == Bernoulli() and weight == 1.0:
            return label_site(y, mean, variance)
        site = moment_sites(likelihood, [y], [mean], [variance], [weight])
        return float(site.precision[0]), float(site.target[0]), float(site.log_normalizer[0])

    zeros = np.zeros(1 + P)
    return DiagonalTwin(
        find,
        zeros.copy(),
        zeros.copy(),
        known.precision[:, member].copy(),
        known.information[:, member].copy(),
        np.zeros((COLUMNS, 2)),
        known.learns,
        known.intercept,
        score=float(known.scores[member]),
    )


@pytest.mark.parametrize("likelihood", [Bernoulli(), Bernoulli("probit"), Poisson(), Gaussian(1.0)])
@pytest.mark.parametrize("precision", [None, 2.0])
@pytest.mark.parametrize("forgets", [False, True])
@pytest.mark.parametrize("spread", [0.0, 1.5])
def test_kernel_is_its_twin(
    likelihood: Likelihood, precision: float | None, forgets: bool, spread: float
) -> None:
    rows, y, weights, discounts = problem(likelihood)
    discounts = discounts if forgets else np.ones(len(y))
    known = begun(likelihood, precision, forgets=forgets)
    twins = [twin(likelihood, known, member) for member in range(known.members)]
    offsets = spread * np.random.default_rng(5).normal(size=len(y))
    given = discounts if forgets else None, offsets if spread else None
    data = Observations(rows, y, weights, *given)
    predictive = known.learn_centred(data, Undo(), predict=True)
    assert predictive is not None
    for g, one in enumerate(twins):
        for i in range(len(y)):
            some = slice(rows.starts[i], rows.starts[i + 1])
            row = list(zip(rows.features[some], rows.columns[some], rows.values[some], strict=True))
            added = offsets[i] - offsets[0]  # less their centre
            linear_moments = one.learn(row, y[i], weights[i], discounts[i], added)
            np.testing.assert_allclose(predictive[i, :2, g], linear_moments, rtol=1e-5, atol=1e-6)
        beliefs = known.discounted_beliefs()[: 1 + P].reshape(-1, 2, 4)[:, :, g]
        np.testing.assert_allclose(beliefs[:, 0], one.known, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(beliefs[:, 1], one.shift, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(known.precision[:, g], one.precision, rtol=1e-6)
        assert known.scores[g] == pytest.approx(one.score, rel=1e-6)


def test_a_row_gives_the_exact_moments() -> None:
    """Mean and variance of each weight given one label, by quadrature in three dimensions."""
    x, prior, start = np.array([1.5, -0.7]), 0.4, np.array([0.8, -0.3])
    known = DiagonalPosterior.before_data(Bernoulli(), prior, intercept=True)
    known.precision[0] = 0.6
    known.grow(3, np.ones(2, np.int32), 2)
    known.beliefs.reshape(-1, 2, 4)[1:3, 1] = start[:, None]
    rows = SparseRows(np.array([0, 2]), np.array([1, 2], np.int32), None, x)
    variances = np.array([1.0 / 0.6, 1.0 / prior, 1.0 / prior])
    means = variances * np.array([0.0, *start])
    known.learn_centred(Observations(rows, np.ones(1)), Undo(), predict=False)
    nodes, shares = hermegauss(60)
    w = np.meshgrid(*(m + np.sqrt(v) * nodes for m, v in zip(means, variances, strict=True)))
    share = np.prod(np.meshgrid(shares, shares, shares), axis=0)
    share *= expit(w[0] + x[0] * w[1] + x[1] * w[2])
    share /= share.sum()
    mean, variance = known.marginals(3)
    exact = np.array([np.sum(share * one) for one in w])
    np.testing.assert_allclose(mean, exact, rtol=1e-7)
    spread = [np.sum(share * (one - m) ** 2) for one, m in zip(w, exact, strict=True)]
    np.testing.assert_allclose(variance, spread, rtol=1e-7)


def test_scales_find_the_truth() -> None:
    """One column of weights N(0, 0.5^2), one of N(0, 2^2), by many labels."""
    rng = np.random.default_rng(1)
    n, levels = 40_000, 400
    ids = rng.integers(0, levels, size=(n, 2))
    weights = rng.normal(size=(levels, 2)) * [0.5, 2.0]
    y = (rng.random(n) < expit(weights[ids[:, 0], 0] + weights[ids[:, 1], 1])).astype(float)
    known = DiagonalPosterior.before_data(Bernoulli(), None, intercept=False)
    known.grow(1 + 2 * levels, np.repeat([1, 2], levels).astype(np.int32), 3)
    features = (1 + ids + [0, levels]).astype(np.int32).ravel()
    columns = np.tile(np.array([1, 2], np.int32), n)
    rows = SparseRows(np.arange(0, 2 * n + 1, 2), features, columns, np.ones(2 * n))
    known.learn_centred(Observations(rows, y), Undo(), predict=False)
    scales = np.exp(-0.5 * np.log(known.precision[1:]) @ known.weights)
    np.testing.assert_allclose(scales, weights.std(axis=0), rtol=0.15)
    assert len(SCALES) == known.members
