"""Mixtures of normals and lognormals, beside quadrature and the library's own mixture."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import integrate, stats

from posterity.distributions import Mixture, Normal
from posterity.forecasting.marginals import Component, Marginals, compute_normal_crps
from posterity.forecasting.mixtures import SeriesStepMarginals

MEAN = np.array([[[0.0], [1.0]]])
SD = np.array([[[1.0], [0.5]]])
WEIGHTS = np.array([[0.3, 0.7]])
NORMALS = Marginals([Component(MEAN, SD, False)], np.ones((1, 1)))
MIXED = Marginals([Component(MEAN, SD, False), Component(0.5 * MEAN, 0.4 * SD, True)], WEIGHTS)
PLAIN = Mixture([Normal([0.0], 1.0), Normal([1.0], 0.5)], [0.5, 0.5])


def density(x: float) -> float:
    normal = stats.norm.pdf(x, [0.0, 1.0], [1.0, 0.5]).mean()
    if x <= 0.0:
        return 0.3 * float(normal)
    log = stats.norm.pdf(np.log(x), [0.0, 0.5], [0.4, 0.2]).mean() / x
    return float(0.3 * normal + 0.7 * log)


def below(x: float) -> float:
    return integrate.quad(density, -12.0, x, points=[0.0], limit=400)[0]


@pytest.mark.parametrize("y", [-1.0, 0.3, 1.0, 4.0])
def test_of_normals_it_is_the_mixture_that_there_is(y: float) -> None:
    at = np.array([[y]])
    np.testing.assert_allclose(NORMALS.cdf(at)[0], PLAIN.cdf([y]), rtol=1e-12)
    np.testing.assert_allclose(NORMALS.logpdf(at)[0], PLAIN.logpdf([y]), rtol=1e-12)
    np.testing.assert_allclose(NORMALS.crps(at)[0], PLAIN.crps([y]), rtol=1e-4)
    np.testing.assert_allclose(NORMALS.mean()[0], PLAIN.mean())
    np.testing.assert_allclose(NORMALS.variance()[0], PLAIN.var())


@pytest.mark.parametrize("q", [0.001, 0.025, 0.5, 0.9, 0.999])
def test_quantiles(q: float) -> None:
    np.testing.assert_allclose(NORMALS.quantile(q)[0], PLAIN.ppf([q]), rtol=1e-7, atol=1e-9)
    assert below(float(MIXED.quantile(q)[0, 0])) == pytest.approx(q, abs=1e-6)


@pytest.mark.parametrize("y", [-0.5, 1.2, 3.0])
def test_of_normals_and_lognormals_it_is_quadrature(y: float) -> None:
    at = np.array([[y]])
    assert MIXED.cdf(at)[0, 0] == pytest.approx(below(y), abs=1e-7)
    assert np.exp(MIXED.logpdf(at)[0, 0]) == pytest.approx(density(y), rel=1e-9)
    mean = integrate.quad(lambda x: x * density(x), -12.0, 60.0, points=[0.0, 1.0], limit=400)[0]
    assert MIXED.mean()[0, 0] == pytest.approx(mean, rel=1e-6)
    square = integrate.quad(
        lambda x: (x - mean) ** 2 * density(x), -12.0, 60.0, points=[0.0, 1.0], limit=400
    )[0]
    assert MIXED.variance()[0, 0] == pytest.approx(square, rel=1e-6)
    grid = np.linspace(-8.0, 20.0, 280_001)
    cdf = np.concatenate([MIXED.cdf(np.array([[x]]))[0] for x in grid[::100]])
    crps = np.trapezoid(np.square(cdf - (grid[::100] >= y)), grid[::100])
    assert MIXED.crps(at)[0, 0] == pytest.approx(crps, rel=0.01)


@pytest.mark.parametrize("log", [False, True])
def test_score_of_one_normal_in_closed_form(log: bool) -> None:
    part = Component(np.array([[[0.4]]]), np.array([[[0.6]]]), log)
    y = np.array([[1.7]])
    exact = Marginals([part], np.ones((1, 1))).crps(y)
    np.testing.assert_allclose(compute_normal_crps(*part.matched(), y, log=log), exact, rtol=1e-4)


def _score_by_scipy(
    cells: SeriesStepMarginals, y: NDArray[np.float64], which: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    cdf, density = np.zeros(y.shape), np.zeros(y.shape)
    for part in cells.parts:
        with np.errstate(divide="ignore"):
            x = np.log(np.maximum(y, 0.0)) if part.log else y
        slope = 1.0 / np.where(y > 0.0, y, np.inf) if part.log else np.ones(y.shape)
        normals = stats.norm(part.mean[which, None], 1.0 / part.precision[which, None])
        weight = part.weight[which, None]
        cdf += (weight * normals.cdf(x[:, :, None])).sum(axis=2)
        density += slope * (weight * normals.pdf(x[:, :, None])).sum(axis=2)
    return cdf, density


@given(seed=st.integers(0, 10**6), size=st.integers(1, 70), far=st.sampled_from([1.0, 8.0, 1e3]))
def test_the_kernel_sums_as_scipy_does(seed: int, size: int, far: float) -> None:
    rng = np.random.default_rng(seed)
    shape = (2, size, 3)
    parts = [
        Component(rng.normal(size=shape), np.exp(rng.normal(size=shape)), log)
        for log in (False, True)
    ]
    cells = Marginals(parts, rng.dirichlet([0.5, 0.5], size=2))._cells
    y = far * rng.normal(size=(6, 4))
    which = rng.permutation(6)
    for mine, slow in zip(cells.score(y, which), _score_by_scipy(cells, y, which), strict=True):
        np.testing.assert_allclose(mine, slow, rtol=1e-12, atol=1e-300)


def test_a_width_of_zero_is_a_point() -> None:
    point = Marginals([Component(np.ones((1, 2, 1)), np.zeros((1, 2, 1)), False)], np.ones((1, 1)))
    assert point.quantile(0.1)[0, 0] == point.quantile(0.9)[0, 0] == 1.0
