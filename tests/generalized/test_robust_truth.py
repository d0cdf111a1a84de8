"""Robust regression against its own posterior, by slow means: quadrature and Gibbs sampling."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from posterity.generalized import BayesianQuantileRegression, BayesianRobustRegression

Array = NDArray[np.float64]

# Calls in Belgium, in tens of millions, 1950 to 1973; some years count minutes (Rousseeuw and
# Leroy 1987, table 2).
CALLS = 0.1 * np.array(
    [
        *(4.4, 4.7, 4.7, 5.9, 6.6, 7.3, 8.1, 8.8, 10.6, 12.0, 13.5, 14.9),
        *(16.1, 21.2, 119.0, 124.0, 142.0, 159.0, 182.0, 212.0, 43.0, 24.0, 27.0, 29.0),
    ]
)


def gibbs(
    X: Array, y: Array, likelihood: str, precision: float = 0.0, n: int = 600, chains: int = 20
) -> tuple[Array, Array]:
    """Means and sds of [intercept, coefficients, log scale], noises as mixtures of normals.

    The prior of the scale is flat in its logarithm, and that of the coefficients relative to it.
    """
    rng = np.random.default_rng(0)
    rows = np.column_stack([np.ones(len(X)), X])
    N, P = rows.shape
    prior = np.append(0.0, np.full(P - 1, precision))
    k = int(np.count_nonzero(prior))
    fit = np.linalg.lstsq(rows, y, rcond=None)[0]
    w = np.tile(fit, (chains, 1))
    s = np.full(chains, np.std(y - rows @ fit)) * np.exp(rng.normal(size=chains))
    kept = []
    for turn in range(n):
        e = (y - w @ rows.T) / s[:, None]
        if likelihood == "student_t":
            weight = rng.gamma(2.5, size=e.shape) / (2.0 + 0.5 * e * e)
        else:  # exp(-|e|): a normal of exponential variance
            weight = rng.wald(1.0 / np.maximum(np.abs(e), 1e-9), 1.0)
        A = np.einsum("cn,ni,nj->cij", weight, rows, rows) + np.diag(prior)
        mean = np.linalg.solve(A, ((weight * y) @ rows)[..., None])[..., 0]
        root = np.swapaxes(np.linalg.cholesky(A), 1, 2)
        w = mean + s[:, None] * np.linalg.solve(root, rng.normal(size=(chains, P, 1)))[..., 0]
        e = y - w @ rows.T
        squares = np.sum(weight * e * e, axis=1) + np.sum(prior * w * w, axis=1)
        # Given the mixture's weights the normal part says all; those of Laplace noise are relative.
        s = np.sqrt(0.5 * squares / rng.gamma(0.5 * (N + k), size=chains))
        if turn >= n // 5:
            kept.append(np.column_stack([w, np.log(s)]))
    draws = np.concatenate(kept)
    return draws.mean(axis=0), draws.std(axis=0)


def check(model: BayesianRobustRegression, mean: Array, sd: Array, wide: float = 0.15) -> None:
    predictive = np.append(model.intercept_, model.coef_)
    assert (np.abs(predictive - mean[:-1]) < 0.13 * sd[:-1]).all()  # 0.1, and the sampler's error
    assert np.allclose(model.posterior_.std(), sd[:-1], rtol=wide)
    assert abs(np.log(model.noise_scale_) - mean[-1]) < 0.15 * sd[-1]


def standardised(X: Array) -> Array:
    return np.asarray((X - X.mean(axis=0)) / X.std(axis=0))


@pytest.mark.parametrize(("likelihood", "wide"), [("student_t", 0.1), ("laplace", 0.2)])
def test_phone_calls_by_quadrature(likelihood: str, wide: float) -> None:
    """Two hills: the narrow noise of a few rows is far less probable than the wide one."""
    x = standardised(np.arange(50.0, 74.0)[:, None])
    model = BayesianRobustRegression(likelihood=likelihood, prior_precision=0.0).fit(x, CALLS)
    a, b = np.meshgrid(np.linspace(-4, 14, 73), np.linspace(-6, 13, 73), indexing="ij")
    log_s = np.linspace(-5.0, 4.0, 61)
    error = CALLS - a[..., None] - b[..., None] * x[:, 0]
    noise = stats.t(4.0) if likelihood == "student_t" else stats.laplace()
    logs = np.stack([noise.logpdf(error / np.exp(t)).sum(-1) - 24 * t for t in log_s])
    density = np.exp(logs - logs.max())
    density /= density.sum()
    places = [np.broadcast_to(v, density.shape) for v in (a, b, log_s[:, None, None])]
    mean = np.array([np.sum(density * v) for v in places])
    sd = np.sqrt([np.sum(density * (v - m) ** 2) for v, m in zip(places, mean, strict=True)])
    check(model, mean, sd, wide)


@pytest.mark.parametrize("likelihood", ["student_t", "laplace"])
def test_stackloss_and_engel(likelihood: str) -> None:
    sm = pytest.importorskip("statsmodels.api")
    data = sm.datasets.engel.load_pandas().data
    stack = sm.datasets.stackloss.load_pandas()
    for X, y in (
        (data[["income"]].to_numpy(float), data["foodexp"].to_numpy(float)),
        (stack.exog.to_numpy(float), stack.endog.to_numpy(float)),
    ):
        X = standardised(X)
        model = BayesianRobustRegression(likelihood=likelihood, prior_precision=0.0).fit(X, y)
        check(model, *gibbs(X, y, likelihood))


@pytest.mark.slow
@pytest.mark.parametrize("likelihood", ["student_t", "laplace"])
@pytest.mark.parametrize("precision", [0.0, 1.0])
def test_half_as_many_coefficients_as_rows(likelihood: str, precision: float) -> None:
    rng = np.random.default_rng(40)
    X = rng.normal(size=(40, 19))
    noise = rng.standard_t(4, size=40) if likelihood == "student_t" else rng.laplace(size=40)
    y = 1.0 + X @ rng.normal(size=19) + noise
    model = BayesianRobustRegression(likelihood=likelihood, prior_precision=precision).fit(X, y)
    # A Laplace prior is relative to half its scale, the mean check loss.
    check(model, *gibbs(X, y, likelihood, precision * (1.0 if likelihood == "student_t" else 4.0)))


@pytest.mark.parametrize("likelihood", ["student_t", "laplace"])
@pytest.mark.parametrize("share", [0.3, 0.49])
def test_gross_errors_of_nearly_half_the_rows(likelihood: str, share: float) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3))
    y = 1.0 + X @ [1.0, 2.0, 3.0] + rng.normal(size=300)
    bad = np.arange(300) < share * 300
    y[bad] += 1e30 * rng.normal(size=int(bad.sum()))
    model = BayesianRobustRegression(likelihood=likelihood).fit(X, y)
    assert np.abs(np.append(model.intercept_, model.coef_) - [1.0, 1.0, 2.0, 3.0]).max() < 0.3
    assert model.core_std_ == pytest.approx(1.0, abs=0.15)
    assert model.posterior_.std().max() < 0.15


@pytest.mark.parametrize("likelihood", ["student_t", "laplace"])
def test_targets_too_small_to_square(likelihood: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = X @ [1.0, 2.0] + rng.normal(size=40)
    model = BayesianRobustRegression(likelihood=likelihood).fit(X, y)
    before = model.coef_.copy()
    with pytest.raises(ValueError, match="too small to square"):
        model.fit(X, 1e-160 * y)
    assert np.array_equal(model.coef_, before)
    assert np.allclose(model.fit(X, 1e-110 * y).coef_, 1e-110 * before, rtol=1e-9, atol=0.0)


@pytest.mark.slow
@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("model", [BayesianRobustRegression, BayesianQuantileRegression])
def test_as_many_coefficients_as_rows_are_not_taken_for_the_truth(model: Any, rows: bool) -> None:
    """They could explain every row without noise."""
    rng = np.random.default_rng(3)
    n = 60
    X = rng.normal(size=(n + 200, n))
    line = X[:, :4].sum(axis=1) / 2.0
    y = line[:n] + 0.5 * rng.standard_t(4, size=n)
    learned = model().partial_fit(X[:n], y) if rows else model().fit(X[:n], y)
    of = "mean" if model is BayesianRobustRegression else "quantile"
    low, high = learned.predict_interval(X[n:], of=of).T
    assert np.mean((low <= line[n:]) & (line[n:] <= high)) > 0.8
    assert np.median(high - low) < 6.0  # of a line whose standard deviation is 1
    assert 0.1 < learned.noise_scale_ < 1.5
