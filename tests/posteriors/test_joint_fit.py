"""The prior of rows that come together is found by products, and once more by rotations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from posterity import BayesianLogisticRegression, BayesianPoissonRegression
from posterity.evidence.secant import SecantSteps
from posterity.factor import Factor
from posterity.factor.rows import SiteRows
from posterity.kernel import SiteSweeps
from posterity.likelihoods import (
    Bernoulli,
    NegativeBinomial,
    Poisson,
    Quantile,
    StudentT,
)
from posterity.posteriors import _averaged_fit, _joint_fit, _near_mode, _site_fit, _site_mode
from posterity.priors import GaussianPrior

Array = np.ndarray


def rows_of(kind: type, n: int, m: int, mean: float) -> tuple[Array, Array]:
    rng = np.random.default_rng(5)
    X = mean + rng.normal(size=(n, m)) * np.geomspace(0.1, 10.0, m)
    eta = (X - mean) @ (0.5 * rng.normal(size=m) / np.geomspace(0.1, 10.0, m)) / np.sqrt(m)
    if kind is BayesianLogisticRegression:
        return X, (rng.uniform(size=n) < 1.0 / (1.0 + np.exp(-2.0 * eta))).astype(float)
    return X, rng.poisson(np.exp(eta)).astype(float)


def without_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each round by rotations, until the prior moves by a millionth: the plain way."""
    monkeypatch.setattr(_joint_fit, "search_near_mode", lambda *_: None)
    monkeypatch.setattr(_joint_fit, "TOLERANCE", 1e-9)
    monkeypatch.setattr(_near_mode, "NEGLIGIBLE_SHARE", 1e-6)


@pytest.mark.parametrize("kind", [BayesianLogisticRegression, BayesianPoissonRegression])
@pytest.mark.parametrize(
    ("n", "m", "mean", "within"),
    [(400, 3, 0.0, 1e-5), (3000, 40, 0.0, 1e-5), (3000, 12, 1e4, 1e-5), (8000, 12, 0.0, 1e-4)],
)
def test_the_answer_is_that_of_rotations(
    kind: type, n: int, m: int, mean: float, within: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = rows_of(kind, n, m, mean)
    fast = kind(approximation="laplace").fit(X, y)
    without_products(monkeypatch)
    slow = kind(approximation="laplace").fit(X, y)
    sd = np.sqrt(np.diag(slow.posterior_.cov))
    off = (fast.posterior_.mean - slow.posterior_.mean) / sd
    np.testing.assert_allclose(off, 0.0, atol=0.2 * within)
    np.testing.assert_allclose(fast.prior_precision_, slow.prior_precision_, rtol=within)
    assert fast.log_evidence_ == pytest.approx(slow.log_evidence_, abs=1e-3)


def test_many_rows_are_multiplied_once_and_never_rotated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of the rows tell the curvature; all of them are needed where the search ends."""
    multiplied, rotated = [], []
    gram, append = _site_mode.gram, Factor.append

    def multiply(X: Array, *rest: Any, **how: Any) -> Array:
        multiplied.append(len(X))
        return gram(X, *rest, **how)

    def rotate(self: Factor, X: Array, *rest: Any, **how: Any) -> None:
        rotated.append(len(X))
        append(self, X, *rest, **how)

    X, y = rows_of(BayesianLogisticRegression, 20_000, 20, 0.0)
    monkeypatch.setattr(_site_mode, "gram", multiply)
    monkeypatch.setattr(Factor, "append", rotate)
    BayesianLogisticRegression(approximation="laplace").fit(X, y)
    assert multiplied.count(20_000) == 1
    assert not rotated


def test_rows_that_follow_a_fit_keep_what_it_found(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = rows_of(BayesianPoissonRegression, 4000, 8, 0.0)

    def in_two() -> Any:
        model = BayesianPoissonRegression(approximation="laplace").fit(X[:2500], y[:2500])
        return model.partial_fit(X[2500:], y[2500:])

    fast = in_two()
    without_products(monkeypatch)
    slow = in_two()
    np.testing.assert_allclose(fast.coef_, slow.coef_, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(("n", "m"), [(40, 8), (300, 60), (600, 150), (2000, 4)])
@pytest.mark.parametrize("kind", [BayesianLogisticRegression, BayesianPoissonRegression])
def test_the_prior_of_matched_rows_is_that_of_plain_rounds(
    kind: type, n: int, m: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps along the chord, and sites that settle last, end where short steps do, sooner."""
    X, y = rows_of(kind, n, m, 0.0)
    sweeps = []

    class Counted(_site_fit.PlainSweeps):
        def _predict(self, *given: Any) -> Array:
            sweeps.append(1)
            return super()._predict(*given)

    monkeypatch.setattr(_site_fit, "_prepare_sweeps", Counted)
    fast, n_fast = kind(approximation="moments").fit(X, y), len(sweeps)
    for name, value in (("SITE_TO_PRIOR_TOLERANCE", 1e-3), ("PRIOR_TOLERANCE", 1e-6)):
        monkeypatch.setattr(_joint_fit, name, value)
    monkeypatch.setattr(SecantSteps, "lengthen", lambda steps, move: (move, steps))
    slow = kind(approximation="moments").fit(X, y)
    assert n_fast <= len(sweeps) - n_fast
    off = (fast.coef_ - slow.coef_) / np.sqrt(np.diag(slow.posterior_.cov))[1:]
    np.testing.assert_allclose(off, 0.0, atol=1e-3)
    np.testing.assert_allclose(fast.prior_precision_, slow.prior_precision_, rtol=1e-3)
    assert fast.log_evidence_ == pytest.approx(slow.log_evidence_, abs=1e-2)


LIKELIHOODS = [
    Bernoulli(),
    Poisson(),
    NegativeBinomial(0.5),
    StudentT(4.0, 1.5),
    Quantile(0.3, 0.7),
]


@settings(max_examples=30)
@given(st.data())
@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=lambda one: type(one).__name__)
def test_compiled_sweeps_are_the_plain_ones(likelihood: Any, data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    n, m = data.draw(st.integers(1, 90)), data.draw(st.integers(0, 12))
    intercept = data.draw(st.booleans()) or m == 0
    step = data.draw(st.sampled_from([1.0, 0.7]))
    X, weights = rng.normal(size=(n, m)), rng.integers(0, 3, n) * 1.0
    if data.draw(st.booleans()):
        X = np.asfortranarray(X)
    y = rng.integers(0, 2, n) * 1.0
    before = GaussianPrior(0.0, 1.0, 0.0, data.draw(st.sampled_from([0.0, 0.1]))).factor(
        m, intercept=intercept
    )
    rows = SiteRows(X, y, weights, np.zeros(n), 0.3 * rng.normal(size=n))
    ones = before.lacks_intercept_column(X, intercept)
    given_rows = rows.X, rows.y, rows.weights, rows.offsets
    fast = SiteSweeps(before.triangle, *likelihood.kernel_code, *given_rows, ones)
    slow = _site_fit.PlainSweeps(before, likelihood, rows, intercept)
    first = rng.uniform(0.1, 1.0, n), rng.normal(size=n)
    now = fast.start(*first)
    np.testing.assert_allclose(now, slow.start(*first), rtol=1e-9, atol=1e-12)
    for _ in range(3):
        (now, change), (plain, expected) = fast.advance(now, step), slow.advance(now, step)
        np.testing.assert_allclose(now, plain, rtol=1e-8, atol=1e-11)
        np.testing.assert_allclose(fast.triangle, slow.triangle, rtol=1e-8, atol=1e-8)
        assert change == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_a_prior_that_is_drawn_is_not_searched_for_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rounds: list[int] = []
    known = _near_mode.WarmStart.continue_from

    def count(self: Any, *how: Any) -> Any:
        rounds.append(1)
        return known(self, *how)

    monkeypatch.setattr(_near_mode.WarmStart, "continue_from", count)
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(90, 10)), rng.normal(size=10) / np.sqrt(10.0)
    y = rng.random(90) < 1.0 / (1.0 + np.exp(-X @ w))
    BayesianLogisticRegression(prior_precision="ard").fit(X[:60], y[:60])
    assert len(rounds) < 40


@pytest.mark.parametrize("kind", [BayesianLogisticRegression, BayesianPoissonRegression])
def test_averages_that_follow_the_mean_are_those_of_plain_rounds(
    kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = rows_of(kind, 3000, 30, 0.0)
    weights = np.arange(3000) % 3
    followed = []
    follow = _averaged_fit._follow_mean

    def counted(*given: Any) -> Array:
        followed.append(1)
        return follow(*given)

    def fit() -> Any:
        return kind().fit(X, y, weights).partial_fit(X + 0.1, y)

    for module in (_averaged_fit, _joint_fit):
        monkeypatch.setattr(module, "SMALL_VARIANCE", 1e-3)
    monkeypatch.setattr(_averaged_fit, "_follow_mean", counted)
    fast, n_fast = fit(), len(followed)
    monkeypatch.setattr(_joint_fit, "average_near_mode", lambda *_: None)
    slow = fit()
    assert 0 < n_fast == len(followed)
    sd = np.sqrt(np.diag(slow.posterior_.cov))
    np.testing.assert_allclose((fast.posterior_.mean - slow.posterior_.mean) / sd, 0.0, atol=1e-3)
    np.testing.assert_allclose(np.sqrt(np.diag(fast.posterior_.cov)), sd, rtol=1e-4)
    assert fast.log_evidence_ == pytest.approx(slow.log_evidence_, abs=1e-3)
