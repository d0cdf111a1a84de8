"""Residuals that a validation keeps: the same rows whatever the batches, and what they are."""

import numpy as np
import pytest
from scipy.stats import norm

from posterity import BayesianLinearRegression, BayesianPoissonRegression
from posterity.evaluation import merge_validations, progressive_validation
from posterity.evaluation.residuals import MOST_ROWS, ResidualLedger

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3000, 2))
Y = X @ [1.0, -2.0] + RNG.normal(size=3000)


def model():
    return BayesianLinearRegression(prior_precision=1.0, noise_prior=(1.0, 1.0))


def test_they_are_normal_quantiles_of_what_was_predicted():
    found = progressive_validation(model(), X, Y).residuals
    predictive = model().predict_then_learn(X, Y)
    assert MOST_ROWS / 2 <= len(found.row) <= MOST_ROWS
    assert (np.diff(found.row) == 4).all() or (found.row[0] > 0 and np.ptp(np.diff(found.row)) == 0)
    np.testing.assert_allclose(found.predicted, predictive.mean()[found.row], atol=1e-9)
    expected = norm.ppf(predictive.cdf(Y))[found.row]
    np.testing.assert_allclose(found.standardised, expected, atol=1e-7)


@pytest.mark.parametrize("batch_rows", [1, 7, 999])
def test_which_rows_are_kept_does_not_depend_on_batches(batch_rows):
    some = slice(0, 1000)
    whole = progressive_validation(model(), X[some], Y[some]).residuals
    parts = progressive_validation(model(), X[some], Y[some], batch_rows=batch_rows).residuals
    np.testing.assert_array_equal(whole.row, parts.row)
    np.testing.assert_allclose(whole.standardised, parts.standardised, atol=1e-9)


def test_with_a_delay_they_are_of_the_same_rows():
    at_once = progressive_validation(model(), X, Y).residuals
    late = progressive_validation(model(), X, Y, delay=5).residuals
    same = np.isin(at_once.row, late.row)
    assert same.sum() == len(late.row) >= len(at_once.row) - 2
    off = np.abs(late.predicted - at_once.predicted[same])[10:]
    assert off.max() < 0.5


def test_the_ledger_keeps_every_so_many_th():
    ledger = ResidualLedger(most=10)
    for start in range(0, 100, 9):
        n = min(9, 100 - start)
        rows = start + np.arange(n)
        ledger.add(rows.astype(float), np.full(n, 0.5), np.ones(n, dtype=bool))
    assert ledger.result().row.tolist() == [0, 16, 32, 48, 64, 80, 96]
    assert ledger.result().predicted.tolist() == [0, 16, 32, 48, 64, 80, 96]


def test_what_has_none():
    counts = RNG.poisson(1.0, 200)
    assert progressive_validation(BayesianPoissonRegression(), X[:200], counts).residuals is None
    parts = [progressive_validation(model(), X[:50], Y[:50])] * 2
    assert merge_validations(parts).residuals is None


def test_the_running_mean_bends_with_the_function():
    bent = progressive_validation(model(), X, np.square(X[:, 0]) + 3.0 * X[:, 0])
    _, mean = bent.residuals.running_mean()
    assert mean[0] > 0.5
    assert mean[len(mean) // 2] < -0.2
    assert mean[-1] > 0.3
    _, straight = progressive_validation(model(), X, Y).residuals.running_mean()
    assert np.abs(straight).max() < 0.6
