"""HilbertSpaceGP and RandomFourier against exact Gaussian-process regression."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Matern

from posterity import BayesianLinearRegression
from posterity.basis import HilbertSpaceGP, RandomFourier

Array = np.ndarray
SIGNAL, NOISE = 4.0, 0.04
KERNELS: dict[str, Callable[[Any], Kernel]] = {
    "squared_exponential": lambda scale: RBF(scale),
    "matern52": lambda scale: Matern(scale, nu=2.5),
    "matern32": lambda scale: Matern(scale, nu=1.5),
}
every_kernel = pytest.mark.parametrize("kernel", list(KERNELS))


def draw(kernel: Kernel, seed: int, n: int = 300, d: int = 1) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.0, 10.0, size=(n, d))
    root = np.linalg.cholesky(SIGNAL * kernel(x) + 1e-8 * np.eye(n))
    return x, root @ rng.normal(size=n) + np.sqrt(NOISE) * rng.normal(size=n)


def exact(kernel: Kernel, x: Array, y: Array, at: Array) -> tuple[Array, Array]:
    model = GaussianProcessRegressor(ConstantKernel(SIGNAL) * kernel, alpha=NOISE, optimizer=None)
    return model.fit(x, y).predict(at, return_std=True)


def of_columns(
    columns: Array, precisions: Array, y: Array, at: Array, batch: int | None = None
) -> tuple[Array, Array]:
    """Mean and sd of the function, without the noise."""
    model = BayesianLinearRegression(
        prior_precision=precisions / SIGNAL, noise_precision=1.0 / NOISE, fit_intercept=False
    )
    for start in range(0, len(y), batch or len(y)):
        rows = slice(start, start + (batch or len(y)))
        model.partial_fit(columns[rows], y[rows])
    variance = np.einsum("ij,jk,ik->i", at, model.posterior_.cov, at)
    return model.predict(at), np.sqrt(variance)


def errors(basis: Any, kernel: Kernel, seed: int, d: int = 1) -> tuple[float, float]:
    """Largest errors of mean and sd, in sds of the signal."""
    x, y = draw(kernel, seed, d=d)
    low, high = x.min(axis=0), x.max(axis=0)
    at = low + (high - low) * np.random.default_rng(seed + 1).uniform(size=(400, d))
    basis = basis.fit(x)
    assert len(basis.prior_precisions()) == 1
    ours = of_columns(basis.transform(x), basis.prior_precisions()[0], y, basis.transform(at), 64)
    mean, std = (np.abs(a - b).max() for a, b in zip(ours, exact(kernel, x, y, at), strict=True))
    return mean / np.sqrt(SIGNAL), std / np.sqrt(SIGNAL)


@every_kernel
@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0, 10.0])
def test_the_hilbert_space_is_the_process_within_one_percent(
    kernel: str, scale: float, report: Callable[[str], None]
) -> None:
    basis = HilbertSpaceGP(kernel=kernel, length_scale=scale)
    found = [errors(basis, KERNELS[kernel](scale), seed) for seed in (0, 2)]
    mean, std = np.max(found, axis=0)
    columns = len(basis.get_feature_names_out())
    report(
        f"HilbertSpaceGP {kernel}, length scale {scale}, {columns} columns: largest error of the "
        f"mean {mean:.4f}, of the sd {std:.4f} signal sds"
    )
    assert max(mean, std) < 0.01


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0])
def test_a_thousand_random_waves_are_the_process_within_five_percent(
    scale: float, report: Callable[[str], None]
) -> None:
    found = [
        errors(
            RandomFourier(n_functions=1000, length_scale=scale, random_state=seed), RBF(scale), seed
        )
        for seed in (0, 2)
    ]
    mean, std = np.max(found, axis=0)
    report(f"RandomFourier, length scale {scale}: mean {mean:.4f}, sd {std:.4f} signal sds")
    assert max(mean, std) < 0.05


def test_two_features_with_length_scales_of_their_own() -> None:
    scales = np.array([2.0, 5.0])
    basis = HilbertSpaceGP(length_scale=scales)
    assert max(errors(basis, RBF(scales), 0, d=2)) < 0.01
    assert basis.transform([[1.0, 2.0]]).shape[1] < 300
    assert (
        max(errors(RandomFourier(n_functions=1000, length_scale=scales), RBF(scales), 0, 2)) < 0.05
    )


def test_a_sum_of_processes() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(0.0, 10.0, size=(40, 2))
    basis = HilbertSpaceGP(length_scale=2.0, additive=True).fit(x)
    columns = basis.transform(x)
    covariance = columns @ (columns / basis.prior_precisions()[0]).T
    expected = sum(RBF(2.0)(x[:, [f]]) for f in range(2))
    np.testing.assert_allclose(covariance, expected, atol=1e-4)
    assert basis.get_feature_names_out()[0] == "x0_gp1"


@every_kernel
@pytest.mark.parametrize("d", [1, 3])
def test_the_prior_of_the_waves_is_the_kernel(kernel: str, d: int) -> None:
    x = np.random.default_rng(0).uniform(0.0, 3.0, size=(30, d))
    waves = RandomFourier(n_functions=20_000, kernel=kernel, length_scale=1.3).fit(x)
    columns = waves.transform(x)
    np.testing.assert_allclose(columns @ columns.T, KERNELS[kernel](1.3)(x), atol=0.03)
    many = RandomFourier(n_functions=20_000, kernel=kernel, domain=(0.0, 3.0)).fit(x)
    columns = many.transform(x)
    for scale, row in zip(many.length_scales_, many.prior_precisions(), strict=True):
        assert scale[0] == scale[-1]
        covariance = columns @ (columns / row).T
        np.testing.assert_allclose(covariance, KERNELS[kernel](scale[0])(x), atol=0.15)
        np.testing.assert_allclose(np.diag(covariance), 1.0, rtol=1e-3)


@every_kernel
@pytest.mark.parametrize("d", [1, 2, 10])
@pytest.mark.parametrize(
    "basis", [HilbertSpaceGP(), HilbertSpaceGP(additive=True), RandomFourier()]
)
def test_precisions_for_every_candidate(basis: Any, kernel: str, d: int) -> None:
    x = np.random.default_rng(0).normal(size=(20, d)) * 1e-6
    basis = basis.set_params(kernel=kernel).fit(x)
    precisions = basis.prior_precisions()
    half = np.ptp(x, axis=0) / 2.0
    assert precisions.shape == (12, basis.transform(x).shape[1])
    assert basis.length_scales_.shape == (12, d)
    np.testing.assert_allclose(basis.length_scales_[-1], half)
    assert (np.diff(basis.length_scales_, axis=0) > 0.0).all()
    assert np.isfinite(precisions).all()
    assert (precisions > 0.0).all()
    assert (precisions.max(axis=1) / precisions.min(axis=1)).max() <= 1e12 * (1.0 + 1e-9)
    np.testing.assert_allclose(basis.prior_precisions(basis.length_scales_[3:5]), precisions[3:5])


@given(scale=st.floats(1e-12, 1e12), kernel=st.sampled_from(sorted(KERNELS)))
def test_precisions_are_finite_for_any_length_scale(scale: float, kernel: str) -> None:
    precisions = (
        HilbertSpaceGP(kernel=kernel, domain=(0.0, 1.0)).fit([[0.0]]).prior_precisions([scale])
    )
    assert np.isfinite(precisions).all()
    assert (precisions > 0.0).all()


def test_functions_are_those_of_lowest_frequency() -> None:
    basis = HilbertSpaceGP(n_functions=4, domain=((0.0, 1.0), (0.0, 2.0))).fit([[0.0, 0.0]])
    assert basis.indices_.tolist()[0] == [1, 1]
    assert sorted(basis.indices_.tolist()) == [[1, 1], [1, 2], [2, 1], [2, 2]]
    longer = basis.set_params(length_scale=[0.3, 3.0], boundary_factor=2.0, n_functions=3)
    # In length scales the second feature's functions are far apart: they come later.
    assert longer.fit([[0.0, 0.0]]).indices_.tolist() == [[1, 1], [2, 1], [3, 1]]
    many = HilbertSpaceGP(n_functions=200).fit(np.random.default_rng(0).normal(size=(9, 3)))
    assert len(np.unique(many.indices_, axis=0)) == 200


def test_length_scales_that_no_frequencies_were_drawn_for() -> None:
    basis = RandomFourier(length_scale=2.0).fit([[0.0]])
    with pytest.raises(
        ValueError, match=r"length scale 5 of feature 0 is not between 2 and 2, .* with this one"
    ):
        basis.prior_precisions([5.0])
    with pytest.raises(ValueError, match="length_scales is empty: give at least one"):
        basis.prior_precisions([])
    with pytest.raises(ValueError, match="it must be a positive number, or one for each of 1 feat"):
        basis.prior_precisions([-1.0])


def test_models_fitted_apart_have_the_same_waves() -> None:
    domain = (-3.0, 3.0)
    one, other = (RandomFourier(domain=domain).fit([[start]]) for start in (0.0, 1.0))
    np.testing.assert_array_equal(one.transform([[0.3]]), other.transform([[0.3]]))


def test_a_hundred_thousand_rows_in_batches() -> None:
    rng = np.random.default_rng(0)
    basis = HilbertSpaceGP(length_scale=1.0, domain=(0.0, 10.0)).fit([[0.0]])
    model = BayesianLinearRegression(
        prior_precision=basis.prior_precisions()[0] / SIGNAL,
        noise_precision=1.0 / NOISE,
        fit_intercept=False,
    )
    for _ in range(10):
        x = rng.uniform(0.0, 10.0, size=(10_000, 1))
        y = 2.0 * np.sin(x[:, 0]) + np.sqrt(NOISE) * rng.normal(size=10_000)
        model.partial_fit(basis.transform(x), y)
    at = np.linspace(0.0, 10.0, 201)[:, None]
    assert np.abs(model.predict(basis.transform(at)) - 2.0 * np.sin(at[:, 0])).max() < 0.02
