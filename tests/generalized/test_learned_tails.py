"""Degrees of freedom of robust regression, learned from the rows."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from posterity.forgetting import Adaptive, Changepoint, Exponential
from posterity.generalized import BayesianRobustRegression
from posterity.generalized._core import compute_t_core
from posterity.generalized._learned_tails import CANDIDATES, LearnedTails
from posterity.generalized._student_t_noise import StudentTNoise

Array = NDArray[np.float64]


def rows(seed: int, n: int, share: float) -> tuple[Array, Array]:
    """Rows of which a share is wrong by ten standard deviations."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    wrong = 10.0 * (rng.random(n) < share) * rng.choice([-1.0, 1.0], size=n)
    return X, X @ [2.0, 0.5, -1.0] + rng.normal(size=n) + wrong


def test_all_candidates_have_the_same_core() -> None:
    for df in CANDIDATES:
        noise = LearnedTails(df)
        assert noise.core_ratio == pytest.approx(compute_t_core(4.0), rel=1e-12)


def test_a_candidate_is_student_t_noise_of_another_scale() -> None:
    learned, plain = LearnedTails(1.0), StudentTNoise(1.0)
    error, leverage, unit = np.array([0.3, -2.0, 9.0]), np.array([0.0, 0.2, 3.0]), learned.unit
    scale = np.full(3, 0.7)
    weight, shift = learned.sites(error, leverage, scale)
    wanted, moved = plain.sites(error, leverage / unit**2, scale * unit)
    np.testing.assert_allclose(weight, wanted / unit**2, rtol=1e-12)
    np.testing.assert_allclose(shift, moved, rtol=1e-12)
    density = learned.log_density(error, leverage, scale, 30.0)
    same = plain.log_density(error, leverage / unit**2, scale * unit, 30.0)
    np.testing.assert_allclose(density, same, rtol=1e-12)


@pytest.mark.parametrize(("share", "most"), [(0.0, 4.0), (0.1, 2.0), (0.2, 1.0)])
def test_more_outliers_have_heavier_tails(share: float, most: float) -> None:
    X, y = rows(3, 200, share)
    fitted = BayesianRobustRegression().fit(X, y)
    given = BayesianRobustRegression(df=4.0).fit(X, y)
    assert fitted.df_ <= most
    assert (fitted.df_ == 4.0) == (share == 0.0)
    assert fitted.log_evidence_ >= given.log_evidence_
    assert BayesianRobustRegression().partial_fit(X, y).df_ <= most
    assert given.df_ == 4.0


def test_rows_batches_and_parts_agree() -> None:
    X, y = rows(0, 300, 0.15)
    one, many = BayesianRobustRegression(), BayesianRobustRegression()
    for x, target in zip(X, y, strict=True):
        one.learn_one(x, target)
    for first in range(0, 300, 50):
        many.partial_fit(X[first : first + 50], y[first : first + 50])
    first, second = (BayesianRobustRegression().fit(X[i::2], y[i::2]) for i in (0, 1))
    other = BayesianRobustRegression().fit(X[1::2], y[1::2])
    other.merge(BayesianRobustRegression().fit(X[::2], y[::2]))
    first.merge(second)
    assert one.df_ == many.df_ == first.df_ == other.df_ == 1.0
    assert one.noise_scale_ == pytest.approx(many.noise_scale_, rel=1e-9)
    ends = [m.predict_interval(X[:5], outliers=True) for m in (one, many, first, other)]
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-8)
    np.testing.assert_allclose(ends[2], ends[3], rtol=1e-2)


def test_averages_do_not_learn_tails() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = X @ [1.0, 2.0] + rng.standard_t(3, size=60)
    fitted, batches, single, given = (
        BayesianRobustRegression(forgetting=Adaptive((1.0, 0.99, 0.9)), df=df)
        for df in (None, None, None, 4.0)
    )
    fitted.fit(X, y)
    given.fit(X, y)
    for first in range(0, 60, 20):
        batches.partial_fit(X[first : first + 20], y[first : first + 20])
    for x, target in zip(X, y, strict=True):
        single.learn_one(x, target)
    assert [one.df_ for one in (fitted, batches, single)] == pytest.approx([4.0] * 3)
    assert np.array_equal(fitted.coef_, given.coef_)
    ends = [one.predict_interval(X[:4], of="mean") for one in (fitted, batches, single)]
    sd = np.ptp(ends[0], axis=1).min() / 3.92
    # A row by itself knows its prior at its own weight, the many of a call at up to 1.84 times.
    for other, most in zip(ends[1:], (0.05, 0.3), strict=True):
        assert np.abs(other - ends[0]).max() < most * sd
    changing = BayesianRobustRegression(forgetting=Changepoint(max_runs=2)).fit(X[:5], y[:5])
    assert changing.df_ == pytest.approx(4.0)


def test_the_tails_of_today() -> None:
    (X, y), (Z, z) = rows(0, 300, 0.3), rows(1, 600, 0.0)
    kept, faded = (BayesianRobustRegression(forgetting=f) for f in (None, Exponential(0.97)))
    for model in (kept, faded):
        model.partial_fit(X, y)
        assert model.df_ <= 1.0
        for first in range(0, 600, 100):
            model.partial_fit(Z[first : first + 100], z[first : first + 100])
    assert faded.df_ == 4.0


def test_only_student_t_noise_has_degrees_of_freedom() -> None:
    model = BayesianRobustRegression(likelihood="laplace").fit([[0.0], [1.0], [2.0]], [0, 1, 3])
    with pytest.raises(AttributeError, match="no degrees of freedom"):
        model.df_  # noqa: B018


def test_of_a_given_scale_they_are_four() -> None:
    X, y = rows(3, 100, 0.3)
    assert BayesianRobustRegression(noise_scale=1.0).fit(X, y).df_ == 4.0
