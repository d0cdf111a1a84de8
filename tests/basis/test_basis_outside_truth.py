"""Bases against SciPy, scikit-learn and what was published."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.interpolate import BSpline
from sklearn.preprocessing import PolynomialFeatures

from posterity import BayesianLinearRegression
from posterity.basis import Fourier, Polynomial, RadialBasis, Spline

X = np.random.default_rng(0).uniform(-1.0, 2.0, size=(50, 2))


@pytest.mark.parametrize("degree", [0, 1, 2, 5])
def test_monomials_are_those_of_scikit_learn(degree: int) -> None:
    ours = Polynomial(degree=degree, family="monomial").fit(X)
    theirs = PolynomialFeatures(degree, include_bias=degree == 0).fit(X)
    expected = theirs.transform(X)[:, : ours.powers_.shape[0]]
    np.testing.assert_allclose(ours.transform(X), expected, rtol=1e-12)
    if degree:
        assert list(ours.get_feature_names_out()) == list(theirs.get_feature_names_out())
    else:
        assert ours.transform(X).shape == (50, 0)


@pytest.mark.parametrize("domain", [(0.0, 1.0), (1.7e9, 1.8e9), (-1e-6, 3e-6)])
def test_legendre_polynomials_are_orthonormal_on_the_domain(domain: tuple[float, float]) -> None:
    nodes, weights = np.polynomial.legendre.leggauss(12)
    values = np.mean(domain) + nodes * np.ptp(domain) / 2.0
    a, b = np.meshgrid(values, values)
    weight = np.multiply.outer(weights, weights).ravel() / 4.0
    basis = Polynomial(degree=4, domain=domain).fit(np.zeros((1, 2)))
    columns = basis.transform(np.column_stack([a.ravel(), b.ravel()]))
    assert columns.shape[1] == 14
    products = columns.T @ (weight[:, None] * columns)
    np.testing.assert_allclose(products, np.eye(14), atol=1e-6)  # 1.7e9 itself has 7 digits here


def test_without_interactions_features_stay_apart() -> None:
    basis = Polynomial(degree=3, interactions=False).fit(X)
    assert basis.powers_.tolist() == [[1, 0], [0, 1], [2, 0], [0, 2], [3, 0], [0, 3]]
    assert basis.get_feature_names_out()[2:4].tolist() == ["P2(x0)", "P2(x1)"]


def test_splines_are_those_of_scipy() -> None:
    basis = Spline(n_knots=5, degree=3, domain=(0.0, 4.0), smooth=False).fit([[1.0]])
    x = np.linspace(0.0, 4.0, 41)
    knots = np.arange(-3.0, 8.0)
    expected = BSpline.design_matrix(x[:-1], knots, 3).toarray()
    np.testing.assert_allclose(basis.transform(x[:-1, None]), expected[:, :-1], atol=1e-14)


def test_bumps_by_feature_and_around_points() -> None:
    centers = np.array([0.0, 0.5, 2.0])
    apart = RadialBasis(centers=centers, width=[0.1, 0.3]).fit(X).transform(X)
    expected = np.exp(-0.5 * ((X[:, [1]] - centers) / 0.3) ** 2)
    np.testing.assert_allclose(apart[:, 3:], expected, rtol=1e-12)
    points = np.array([[0.0, 1.0], [0.5, -1.0]])
    joint = RadialBasis(centers=points, width=0.4).fit(X).transform(X)
    distance = np.linalg.norm(X[:, None] - points, axis=2)
    np.testing.assert_allclose(joint, np.exp(-0.5 * (distance / 0.4) ** 2), rtol=1e-12)


def test_fourier_keeps_its_digits_far_from_the_origin() -> None:
    hours = np.arange(24.0)[:, None]
    basis = Fourier(n_frequencies=4, period=24.0).fit(hours)
    later = hours + 24.0 * 1e9
    np.testing.assert_allclose(basis.transform(later), basis.transform(hours), atol=1e-12)
    k = np.arange(1, 5) * 2.0 * np.pi / 24.0
    np.testing.assert_allclose(basis.transform(hours)[:, ::2], np.sin(hours * k), atol=1e-13)


# ---- polynomials of a sinusoid, and their evidence -----------------------------------------------


def best_degree(x: np.ndarray, y: np.ndarray, *, shrink_intercept: bool) -> int:
    evidence = []
    for degree in range(10):
        columns = Polynomial(degree=degree, family="monomial").fit(x).transform(x)
        one = np.ones((len(x), 1)) if shrink_intercept else np.zeros((len(x), 0 if degree else 1))
        model = BayesianLinearRegression(
            prior_precision=0.005, noise_precision=1.0 / 0.09, fit_intercept=not shrink_intercept
        ).fit(np.hstack([one, columns]), y)
        evidence.append(model.log_evidence_)
    return int(np.argmax(evidence))


@pytest.mark.slow
@pytest.mark.parametrize("shrink_intercept", [True, False])
def test_the_evidence_picks_a_polynomial_for_a_sinusoid(
    shrink_intercept: bool, report: Callable[[str], None]
) -> None:
    """Ten points, evenly over [0, 1], of 0.5 + sin(2 pi x) with noise variance 0.09.

    A constant column whose coefficient is shrunk with the others (Bishop 2006, section 3.5), or an
    intercept with a flat prior: the same degrees. At points drawn at random, in whose gaps a curve
    may do anything, 64% are of degree 3 to 5.
    """
    x = np.linspace(0.0, 1.0, 10)[:, None]
    picked = []
    for seed in range(200):
        noise = np.random.default_rng(seed).normal(scale=0.3, size=10)
        y = 0.5 + np.sin(2.0 * np.pi * x[:, 0]) + noise
        picked.append(best_degree(x, y, shrink_intercept=shrink_intercept))
    counts = np.bincount(picked, minlength=10)
    share = counts[3:6].sum() / 200.0
    report(f"degrees picked for a sinusoid: {counts.tolist()}, 3 to 5: {share:.1%}")
    assert share >= 0.9


def test_years_as_they_come_are_well_conditioned() -> None:
    x = np.linspace(1950.0, 2025.0, 76)[:, None]
    u = (x[:, 0] - 1987.5) / 37.5
    y = 1.0 + u - 2.0 * u**2 + 0.5 * u**7
    model: Any = BayesianLinearRegression(prior_precision=0.0)
    fitted = model.fit(Polynomial(degree=9).fit(x).transform(x), y)
    np.testing.assert_allclose(
        fitted.predict(Polynomial(degree=9).fit(x).transform(x)), y, atol=1e-12
    )
