"""Recalibrated distributions: the contract, laws of the distribution, and what it is worth."""

from __future__ import annotations

import copy
import math
import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import integrate, stats
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from posterity import BayesianLinearRegression, BayesianPoissonRegression
from posterity.calibration import Recalibrated, RecalibratedDistribution
from posterity.calibration.recalibrated_distribution import EDGES, N_BINS, WIDTHS
from posterity.distributions import Normal, StudentT
from posterity.evaluation import progressive_validation
from posterity.forgetting import Adaptive

Array = NDArray[np.float64]


def known() -> BayesianLinearRegression:
    return BayesianLinearRegression(prior_precision=1.0, noise_precision=4.0)


def stream(n: int = 4000, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, 1.0 + X @ [1.0, -2.0] + rng.standard_exponential(n)


def some(base: Any = None, seed: int = 0) -> RecalibratedDistribution:
    """Three rows, two maps."""
    rng = np.random.default_rng(seed)
    masses = rng.dirichlet(0.5 + 20.0 * WIDTHS, size=2)
    base = Normal([0.0, 5.0, -1.0], [1.0, 2.0, 0.1]) if base is None else base
    return RecalibratedDistribution(base, masses, np.array([0, 1, 1]))


# ---- the distribution ----------------------------------------------------------------------------


@given(seed=st.integers(0, 10**6), q=st.floats(1e-6, 1.0 - 1e-6))
def test_quantiles_invert_probabilities(seed: int, q: float) -> None:
    predictive = some(seed=seed)
    np.testing.assert_allclose(predictive.cdf(predictive.ppf(q)), q, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(
        predictive.cdf(predictive.ppf(q)) + predictive.sf(predictive.ppf(q)), 1.0
    )
    low, high = predictive.interval(0.9)
    np.testing.assert_allclose(predictive.cdf(high) - predictive.cdf(low), 0.9, rtol=1e-6)


def integrated(predictive: RecalibratedDistribution, of: Any) -> float:
    """Outside truth for one row: SciPy's quadrature of the density, bin by bin."""
    base = predictive.model
    edges = [float(base.ppf(u)) for u in EDGES[1:-1]]
    wide = 40.0 * float(base.std())
    edges = [edges[0] - wide, *edges, edges[-1] + wide]
    return math.fsum(
        integrate.quad(lambda t: of(t) * float(predictive.pdf(t)), a, b)[0]
        for a, b in pairwise(edges)
    )


@pytest.mark.parametrize("row", [0, 1, 2])
def test_moments_and_crps_are_integrals(row: int) -> None:
    predictive = some()[row]
    assert integrated(predictive, lambda t: 1.0) == pytest.approx(1.0, abs=1e-6)
    mean = integrated(predictive, lambda t: t)
    spread = math.sqrt(integrated(predictive, lambda t: (t - mean) ** 2))
    assert predictive.mean() == pytest.approx(mean, abs=3e-3 * spread)
    assert predictive.std() == pytest.approx(spread, rel=3e-3)
    y = float(predictive.model.mean() + 0.3 * predictive.model.std())
    grid = np.linspace(y - 15.0 * spread, y + 15.0 * spread, 60_001)
    crps = integrate.trapezoid((predictive.cdf(grid) - (grid >= y)) ** 2, grid)
    assert predictive.crps(y) == pytest.approx(crps, rel=5e-3)


@pytest.mark.parametrize(
    "base", [Normal([0.0, 1.0], [1.0, 3.0]), StudentT(5.0, [0.0, 1.0], [1.0, 3.0])]
)
def test_the_identity_changes_nothing(base: Any) -> None:
    predictive = RecalibratedDistribution(base, WIDTHS[None], np.zeros(2, dtype=int))
    y = np.array([0.5, -4.0])
    np.testing.assert_allclose(predictive.logpdf(y), base.logpdf(y), rtol=1e-12)
    np.testing.assert_allclose(predictive.cdf(y), base.cdf(y), rtol=1e-12)
    np.testing.assert_allclose(predictive.interval(0.99), base.interval(0.99), rtol=1e-6)
    np.testing.assert_allclose(predictive.crps(y), base.crps(y), rtol=2e-3)
    np.testing.assert_allclose(predictive.mean(), base.mean(), atol=1e-9)
    np.testing.assert_allclose(predictive.std(), base.std(), rtol=1e-2)


def test_draws_follow_it() -> None:
    predictive = some()
    draws = predictive.rvs(size=(20_000, 3), random_state=0)
    for row in range(3):
        assert stats.kstest(draws[:, row], lambda t, row=row: predictive[row].cdf(t)).pvalue > 1e-3


def test_rows_about_which_nothing_is_known() -> None:
    predictive = some(StudentT([0.0, 3.0, 2.0], [0.0, 5.0, 1.0], [1.0, 2.0, np.inf]))
    assert predictive.is_flat().tolist() == [True, False, True]
    assert np.isinf(predictive.std()).tolist() == [True, False, True]
    assert np.isinf(predictive.crps(np.zeros(3))).tolist() == [True, False, True]
    assert np.isfinite(predictive.mean()).all()
    assert predictive.interval(0.9)[1][0] == np.inf


# ---- the wrapper ---------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [BayesianLinearRegression(), make_pipeline(StandardScaler(), BayesianLinearRegression())],
)
def test_scikit_learn_accepts_it(model: Any) -> None:
    check_estimator(Recalibrated(model), on_skip=None)


def test_batches_rows_and_copies_agree() -> None:
    X, y = stream(230)
    whole, batches, rows = (Recalibrated(known()) for _ in range(3))
    predictive = whole.predict_then_learn(X, y)
    cuts = [0, 30, 50, 170, 230]
    for a, b in pairwise(cuts):
        part = batches.predict_then_learn(X[a:b], y[a:b])
        np.testing.assert_allclose(part.interval(0.9), np.stack(predictive.interval(0.9))[:, a:b])
    for i in range(230):
        if i > 0:
            np.testing.assert_allclose(
                rows.predict_interval(X[i : i + 1], 0.9)[0],
                np.stack(predictive.interval(0.9))[:, i],
            )
        rows.learn_one(X[i], y[i])
    twin = pickle.loads(pickle.dumps(copy.deepcopy(whole)))
    for model in (batches, rows, twin, Recalibrated(known()).fit(X, y)):
        np.testing.assert_allclose(model.predict(X), whole.predict(X))
    assert rows.predict_one(X[0]) == pytest.approx(whole.predict(X[:1])[0])


def test_each_row_is_told_by_rows_before_it() -> None:
    X, y = stream(300)
    changed = y.copy()
    changed[200:] += 100.0
    one = Recalibrated(known()).predict_then_learn(X, y)
    other = Recalibrated(known()).predict_then_learn(X, changed)
    np.testing.assert_allclose(one.ppf(0.1)[:201], other.ppf(0.1)[:201], rtol=1e-9)


def test_skewed_noise_is_learned() -> None:
    X, y = stream()
    plain, mapped = (
        progressive_validation(model, X, y, levels=(0.5, 0.95))
        for model in (known(), Recalibrated(known()))
    )
    assert mapped.log_score > plain.log_score + 0.4
    assert mapped.crps < 0.97 * plain.crps
    for level in (0.5, 0.95):
        assert abs(mapped.coverage[level] - level) < 0.05 < abs(plain.coverage[level] - level)


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6))
def test_a_model_that_is_right_loses_little(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2000, 1))
    y = X[:, 0] + 0.5 * rng.normal(size=2000)
    predictive = Recalibrated(known()).predict_then_learn(X, y)
    loss = known().predict_then_learn(X, y).logpdf(y).mean() - predictive.logpdf(y).mean()
    assert loss < 0.03
    # The bound: log((trust + rows remembered) / trust) for any one row.
    gap = known().predict_then_learn(X, y).logpdf(y) - predictive.logpdf(y)
    assert gap.max() <= math.log((100.0 + 526.0) / 100.0)


def test_mixtures_can_be_recalibrated() -> None:
    X, y = stream(300)
    model = Recalibrated(BayesianLinearRegression(forgetting=Adaptive()))
    predictive = model.predict_then_learn(X, y)
    assert np.isfinite(predictive.logpdf(y)[5:]).all()
    assert predictive.masses.shape[1] == N_BINS


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"memory": 1.0}, "memory is 1.0: it must be a number of rows above 1"),
        ({"trust": 0.0}, "trust is 0.0: it must be positive and finite"),
    ],
)
def test_parameters_out_of_range(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Recalibrated(known(), **parameters).fit([[0.0]], [0.0])


def test_counts_are_refused() -> None:
    model = Recalibrated(BayesianPoissonRegression())
    with pytest.raises(TypeError, match="needs continuous predictions, not PoissonLogNormal: wrap"):
        model.fit([[0.0], [1.0]], [1, 2])
    assert not hasattr(model, "model_")
