"""Posteriors of many series at once, beside those of the library's own regression."""

from __future__ import annotations

import numpy as np
import pytest

from posterity import BayesianLinearRegression
from posterity.evidence import Integrated
from posterity.factor import Factor
from posterity.forecasting import shared
from posterity.forecasting.forms import Form
from posterity.forecasting.panel import Panel
from posterity.forecasting.posterior import NOISE_ROWS, Posterior, Prior
from posterity.forecasting.rows import Levels, learn, make_bank


def make_form(count: int) -> Form:
    """A form of so many lags, and nothing else."""
    return Form(1, tuple(range(2, count + 2)), drift=False)


def triangles_of(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    factor = Factor(X.shape[1])
    factor.append(X, y[:, None])
    return factor.triangle[None, :, : X.shape[1] + 1].copy()


def test_coefficients_are_those_of_the_regression_with_an_averaged_prior() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = X @ [1.0, 0.0, -0.5, 0.2] + rng.normal(size=60)
    naive = float(np.mean(y**2))
    model = BayesianLinearRegression(
        prior_precision=Integrated(),
        fit_intercept=False,
        noise_prior=(0.5 * NOISE_ROWS, 0.5 * NOISE_ROWS * naive),
    ).fit(X, y)
    posterior = Posterior.of(triangles_of(X, y), np.array([60.0]), None, make_form(4))
    np.testing.assert_allclose(posterior.coefficients()[0], model.coef_, atol=2e-3)


def test_draws_do_not_depend_on_how_directions_are_turned(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    # The columns have equal sums of squares and products of zero: any directions will do.
    X = 3.0 * np.linalg.qr(rng.normal(size=(80, 3)))[0]
    triangles, count, form = triangles_of(X, rng.normal(size=80)), np.array([80.0]), make_form(3)
    before = Posterior.of(triangles, count, None, form).draws(32)
    decompose, turn = np.linalg.svd, np.linalg.qr(rng.normal(size=(3, 3)))[0]

    def decompose_otherwise(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        left, values, right = decompose(matrix)
        return left @ turn, values, turn.T @ right

    monkeypatch.setattr(np.linalg, "svd", decompose_otherwise)
    after = Posterior.of(triangles, count, None, form).draws(32)
    np.testing.assert_allclose(after.coefficients, before.coefficients, atol=1e-10)


def test_draws_have_the_moments_of_the_posterior() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 3))
    y = X @ [1.0, 0.0, -0.5] + rng.normal(size=80)
    count, form = np.array([80.0]), make_form(3)
    posterior = Posterior.of(triangles_of(X, y), count, None, form)
    draws = posterior.draws(4096)
    np.testing.assert_allclose(
        draws.coefficients[0].mean(axis=0), posterior.coefficients()[0], atol=0.005
    )
    # Of a prior that is nearly flat, the textbook's.
    flat = Posterior.of(triangles_of(X, y), count, Prior(np.zeros(3), 1e4 * np.eye(3)), form)
    wide = flat.draws(4096)
    residual = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
    shape = 0.5 * (80.0 + NOISE_ROWS)
    rate = 0.5 * (residual @ residual + NOISE_ROWS * np.mean(y**2))
    variance = rate / (shape - 1.0)
    np.testing.assert_allclose(np.mean(wide.noise**2), variance, rtol=0.01)
    np.testing.assert_allclose(
        np.cov(wide.coefficients[0].T), variance * np.linalg.inv(X.T @ X), rtol=0.12, atol=2e-4
    )


def test_a_shared_prior_finds_what_series_have_in_common() -> None:
    rng = np.random.default_rng(2)
    mean, sd = np.array([0.8, -0.3]), np.array([0.1, 0.2])
    triangles, truths = [], []
    for _ in range(400):
        X = rng.normal(size=(15, 2))
        noise = rng.uniform(0.7, 1.3)
        truths.append(mean + noise * sd * rng.normal(size=2))
        triangles.append(triangles_of(X, X @ truths[-1] + noise * rng.normal(size=15))[0])
    prior = shared.learn_prior(np.array(triangles), np.full(400, 15.0))
    assert prior is not None
    np.testing.assert_allclose(prior.mean, mean, atol=0.05)
    # The search ends before the smallest variances are found: rather too wide than too sure.
    np.testing.assert_allclose(np.sqrt(np.diag(prior.root @ prior.root.T)), sd, rtol=0.45)
    together, alone = (
        Posterior.of(np.array(triangles), np.full(400, 15.0), one, make_form(2)).coefficients()
        for one in (prior, None)
    )
    assert np.square(together - truths).mean() < 0.5 * np.square(alone - truths).mean()


def test_rows_are_what_the_form_says() -> None:
    """A triangle of rows that are written down one by one."""
    y = np.array([3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0])
    form = Form(2, (1, 3))
    levels = Levels.of(Panel.of_arrays({"a": y}), log=False)
    bank = make_bank(form, levels)
    learn(bank, levels, form, 0, len(y))
    rows, targets = [], []
    for t in range(3, len(y)):
        rows.append([y[t - 1] - y[t - 2], y[t - 3] - y[t - 2], 1.0])
        targets.append(y[t] - y[t - 2])
    np.testing.assert_allclose(
        np.abs(bank.triangles[:, :, :4]), np.abs(triangles_of(np.array(rows), np.array(targets)))
    )
    assert bank.count.tolist() == [5.0]


def test_what_is_missing_is_not_learned_and_lags_bridge_it() -> None:
    y = np.array([3.0, 1.0, np.nan, 1.5, 5.0, 9.0])
    form = Form(1, (1, 2), drift=False)
    levels = Levels.of(Panel.of_arrays({"a": y}), log=False)
    bank = make_bank(form, levels)
    learn(bank, levels, form, 0, len(y))
    filled = np.array([3.0, 1.0, 1.0, 1.5, 5.0, 9.0])
    at = np.array([3, 4, 5])
    X = (filled[at - 2] - filled[at - 1])[:, None]
    np.testing.assert_allclose(
        np.abs(bank.triangles[:, :, :2]), np.abs(triangles_of(X, filled[at] - filled[at - 1]))
    )


def test_what_is_old_counts_for_less() -> None:
    y = np.array([3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0])
    form = Form(1, (2,), drift=False, discount=0.8)
    levels = Levels.of(Panel.of_arrays({"a": y}), log=False)
    at_once, in_parts = make_bank(form, levels), make_bank(form, levels)
    learn(at_once, levels, form, 0, len(y))
    for column in range(len(y)):
        learn(in_parts, levels, form, column, column + 1)
    at = np.arange(2, len(y))
    weights = np.sqrt(0.8 ** (len(y) - 1.0 - at))
    X = ((y[at - 2] - y[at - 1]) * weights)[:, None]
    expected = triangles_of(X, (y[at] - y[at - 1]) * weights)
    for bank in (at_once, in_parts):
        np.testing.assert_allclose(np.abs(bank.triangles[:, :, :2]), np.abs(expected))
        np.testing.assert_allclose(bank.count, np.square(weights).sum())
