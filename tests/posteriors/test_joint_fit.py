"""The prior of rows that come together is found by products, and once more by rotations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from posterity import BayesianLogisticRegression, BayesianPoissonRegression
from posterity.evidence.secant import SecantSteps
from posterity.factor import Factor
from posterity.posteriors import _joint_fit, _site_fit

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
    monkeypatch.setattr(_joint_fit, "_search_near_mode", lambda *_: None)
    monkeypatch.setattr(_joint_fit, "TOLERANCE", 1e-9)
    monkeypatch.setattr(_joint_fit, "NEGLIGIBLE_SHARE", 1e-6)


@pytest.mark.parametrize("kind", [BayesianLogisticRegression, BayesianPoissonRegression])
@pytest.mark.parametrize(("n", "m", "mean"), [(400, 3, 0.0), (3000, 40, 0.0), (3000, 12, 1e4)])
def test_the_answer_is_that_of_rotations(
    kind: type, n: int, m: int, mean: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = rows_of(kind, n, m, mean)
    fast = kind(approximation="laplace").fit(X, y)
    without_products(monkeypatch)
    slow = kind(approximation="laplace").fit(X, y)
    sd = np.sqrt(np.diag(slow.posterior_.cov))
    off = (fast.posterior_.mean - slow.posterior_.mean) / sd
    np.testing.assert_allclose(off, 0.0, atol=2e-6)
    np.testing.assert_allclose(fast.prior_precision_, slow.prior_precision_, rtol=1e-5)
    assert fast.log_evidence_ == pytest.approx(slow.log_evidence_, abs=1e-3)


def test_rows_are_rotated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rotated = []
    append = Factor.append

    def counted(self: Factor, X: Array, *rest: Any, **how: Any) -> None:
        rotated.append(len(X))
        append(self, X, *rest, **how)

    monkeypatch.setattr(Factor, "append", counted)
    X, y = rows_of(BayesianLogisticRegression, 5000, 20, 0.0)
    BayesianLogisticRegression(approximation="laplace").fit(X, y)
    assert sum(rotated) == 5000


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
    with_sites = _site_fit._with_sites

    def counted(*given: Any) -> Factor:
        sweeps.append(1)
        return with_sites(*given)

    monkeypatch.setattr(_site_fit, "_with_sites", counted)
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
