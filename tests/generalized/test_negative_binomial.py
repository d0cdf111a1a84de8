"""Negative binomial regression: outside truth, what is learned of the dispersion, every path."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln, logsumexp
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from posterity import BayesianNegativeBinomialRegression, BayesianPoissonRegression
from posterity.evaluation import progressive_validation
from posterity.forgetting import Adaptive, Stabilized

Array = np.ndarray[Any, Any]


def problem(n: int, dispersion: float, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    rate = np.exp(1.0 + X @ [0.3, -0.2, 0.0])
    if dispersion > 0.0:
        rate = rate * rng.gamma(1.0 / dispersion, dispersion, size=n)
    return X, rng.poisson(rate).astype(float)


X, Y = problem(300, 0.5)
EXPOSURE = np.random.default_rng(1).uniform(0.5, 3.0, size=300)


def learned(**settings: Any) -> BayesianNegativeBinomialRegression:
    return BayesianNegativeBinomialRegression(prior_precision=1.0, **settings)


# Checks of scikit-learn that give fractions for counts.
OF_FRACTIONS = dict.fromkeys(
    (
        "check_n_features_in_after_fitting",
        "check_regressors_train",
        "check_regressor_data_not_an_array",
        "check_regressors_no_decision_function",
        "check_fit_idempotent",
        "check_fit_check_is_fitted",
        "check_n_features_in",
    ),
    "counts are whole numbers",
)


@pytest.mark.slow
def test_scikit_learn_accepts_it() -> None:
    check_estimator(
        BayesianNegativeBinomialRegression(), expected_failed_checks=OF_FRACTIONS, on_skip=None
    )


@pytest.mark.parametrize("dispersion", [0.1, 0.5, 2.0])
def test_the_dispersion_and_the_coefficients_of_statsmodels(dispersion: float) -> None:
    X, y = problem(2000, dispersion, seed=2)
    expected = sm.NegativeBinomial(y, sm.add_constant(X)).fit(disp=0, maxiter=200)
    flat = BayesianNegativeBinomialRegression(prior_precision=0.0)
    batch, stream = clone(flat).fit(X, y), clone(flat)
    stream.predict_then_learn(X, y)
    for model in (batch, stream):
        assert abs(model.dispersion_ - expected.params[-1]) < expected.bse[-1]
        off = np.abs(model.posterior_.mean - expected.params[:-1]) / expected.bse[:-1]
        assert off.max() < (0.1 if model is batch else 1.0)
    # Standard errors there are of the observed information, jointly with the dispersion.
    assert np.allclose(batch.posterior_.std(), expected.bse[:-1], rtol=0.05)


def test_a_known_dispersion_is_the_generalised_linear_model() -> None:
    family = sm.families.NegativeBinomial(alpha=0.7)
    y = np.round(Y)
    expected = sm.GLM(y, sm.add_constant(X), family=family, exposure=EXPOSURE).fit(tol=1e-14)
    model = BayesianNegativeBinomialRegression(
        dispersion=0.7, prior_precision=0.0, approximation="laplace"
    )
    model.fit(X, y, exposure=EXPOSURE)
    assert np.allclose(model.posterior_.mean, expected.params, atol=1e-6)
    assert model.dispersion_ == 0.7
    with pytest.raises(ValueError, match=r"dispersion is -1\.0: it must be positive"):
        BayesianNegativeBinomialRegression(dispersion=-1.0).fit(X, Y)


def test_the_dispersion_s_posterior_against_a_grid() -> None:
    """Rates known as good as exactly: what is learned is one number, by quadrature."""
    y = Y[:80]
    nothing = np.zeros((80, 1))
    model = BayesianNegativeBinomialRegression(prior_precision=1e12, fit_intercept=False)
    model.fit(nothing, y, exposure=np.exp(1.0 + X[:80] @ [0.3, -0.2, 0.0]))
    rate = np.exp(1.0 + X[:80] @ [0.3, -0.2, 0.0])
    logs = np.linspace(np.log(1e-5), np.log(100.0), 4001)
    r = np.exp(-logs)[:, None]
    terms = gammaln(y + r) - gammaln(r) - gammaln(y + 1.0)
    terms = terms + y * np.log(rate / (rate + r)) + r * np.log(r / (rate + r))
    predictive = terms.sum(axis=1) + 0.5 * logs - np.log(2.0) - np.exp(0.5 * logs)
    mean = np.exp(logsumexp(predictive + logs) - logsumexp(predictive))
    assert model.dispersion_ == pytest.approx(mean, rel=1e-3)
    evidence = logsumexp(predictive) + np.log(logs[1] - logs[0])
    assert model.log_evidence_ == pytest.approx(evidence, abs=0.02)


def test_where_counts_are_poisson_it_is_hardly_worse() -> None:
    X, y = problem(3000, 0.0, seed=3)
    logs = [
        kind().predict_then_learn(X, y).logpmf(y)[500:].mean()
        for kind in (BayesianNegativeBinomialRegression, BayesianPoissonRegression)
    ]
    assert logs[0] > logs[1] - 0.005
    assert BayesianNegativeBinomialRegression().fit(X, y).dispersion_ < 0.02


@pytest.mark.slow
@settings(max_examples=15)
@given(st.sampled_from([0.1, 0.5, 2.0]), st.integers(0, 10_000))
def test_intervals_hold_where_poisson_s_do_not(dispersion: float, seed: int) -> None:
    X, y = problem(500, dispersion, seed)
    model = BayesianNegativeBinomialRegression()
    low, high = model.predict_then_learn(X, y).interval(0.95)
    assert np.mean((low <= y) & (y <= high)) > 0.92


def test_paths_agree() -> None:
    whole, parts, rows = learned(), learned(), learned()
    predictive = whole.predict_then_learn(X, Y, exposure=EXPOSURE)
    pieces = [
        parts.predict_then_learn(X[part], Y[part], exposure=EXPOSURE[part])
        for part in (slice(0, 70), slice(70, 300))
    ]
    logs = np.concatenate([pieces[0].logpmf(Y[:70]), pieces[1].logpmf(Y[70:])])
    assert np.allclose(predictive.logpmf(Y), logs, rtol=1e-9)
    assert np.allclose(whole.coef_, parts.coef_, rtol=1e-9)
    assert whole.dispersion_ == pytest.approx(parts.dispersion_, rel=1e-9)
    # The first rows are fitted together again, and the vague prior of the intercept, under which
    # the first was predicted, Normal(0, 10^2), counts with density 1, as the flat one of a fit.
    one_by_one = predictive.logpmf(Y).sum() + 0.5 * np.log(2.0 * np.pi * 100.0)
    assert whole.log_evidence_ == pytest.approx(one_by_one, abs=0.5)
    many = learned()
    many.predict_then_learn(X[:60], Y[:60])
    for x, y in zip(X[:60], Y[:60], strict=True):
        rows.learn_one(x, y)
    assert np.allclose(rows.coef_, many.coef_, rtol=1e-9)
    assert rows.dispersion_ == pytest.approx(many.dispersion_, rel=1e-9)
    assert rows.predict_one(X[70]) == pytest.approx(rows.predict(X[70:71])[0], rel=1e-9)


def test_reads_change_nothing() -> None:
    quiet, asked = learned(), learned()
    for i in range(40):
        if i:
            asked.predict_distribution(X[i : i + 1])
        asked.predict_one(X[i])
        for model in (quiet, asked):
            model.learn_one(X[i], Y[i])
    assert np.array_equal(quiet.coef_, asked.coef_)
    assert quiet.dispersion_ == asked.dispersion_


def test_weights_and_merging() -> None:
    weights = np.random.default_rng(0).integers(0, 3, 300)
    rows = np.repeat(np.arange(300), weights)
    once = learned().fit(X, Y, sample_weight=weights, exposure=EXPOSURE)
    twice = learned().fit(X[rows], Y[rows], exposure=EXPOSURE[rows])
    assert np.allclose(once.coef_, twice.coef_, rtol=1e-5)
    assert once.dispersion_ == pytest.approx(twice.dispersion_, rel=1e-4)
    X4, y4 = problem(4000, 0.5, seed=4)
    half = learned().fit(X4[:2000], y4[:2000]).merge(learned().fit(X4[2000:], y4[2000:]))
    whole = learned().fit(X4, y4)
    assert half.dispersion_ == pytest.approx(whole.dispersion_, rel=0.01)
    off = np.abs(half.posterior_.mean - whole.posterior_.mean) / whole.posterior_.std()
    assert off.max() < 0.1
    assert learned().merge(half).dispersion_ == pytest.approx(half.dispersion_)
    with pytest.raises(ValueError, match="the models differ in prior"):
        whole.merge(BayesianNegativeBinomialRegression(prior_precision=2.0).fit(X, Y))


def test_later_batches_keep_what_was_learned() -> None:
    X4, y4 = problem(4000, 0.5, seed=4)
    model = learned()
    for part in np.split(np.arange(4000), 8):
        model.partial_fit(X4[part], y4[part])
    whole = learned().partial_fit(X4, y4)
    assert model.dispersion_ == pytest.approx(whole.dispersion_, rel=0.01)
    assert model.log_evidence_ == pytest.approx(whole.log_evidence_, abs=2.0)


def test_many_rows_begin_with_a_share_of_them() -> None:
    X, y = problem(24_000, 0.5, seed=6)
    model = learned().fit(X, y)
    assert model.dispersion_ == pytest.approx(0.5, rel=0.05)
    assert model.n_observations_ == 24_000


@pytest.mark.parametrize("forgetting", [Stabilized(discount=0.98), Adaptive(discounts=(1.0, 0.98))])
def test_forgetting(forgetting: Any) -> None:
    rng = np.random.default_rng(7)
    rate = np.repeat([2.0, 20.0], 400)
    y = rng.poisson(rate * rng.gamma(2.0, 0.5, size=800)).astype(float)
    model = learned(forgetting=forgetting)
    predictive = model.predict_then_learn(np.zeros((800, 1)), y)
    assert model.predict([[0.0]])[0] == pytest.approx(20.0, rel=0.4)
    low, high = predictive.interval(0.95)
    assert np.mean((low <= y) & (y <= high)) > 0.93


def test_a_call_that_raises_leaves_the_model_as_it_was() -> None:
    model = learned().partial_fit(X, Y)
    before, dispersion = model.coef_, model.dispersion_
    for learn in (model.predict_then_learn, model.partial_fit):
        with pytest.raises(ValueError, match="y in row 1 is -2"):
            learn(X[:2], [1, -2])
    assert np.array_equal(model.coef_, before)
    assert model.dispersion_ == dispersion


@pytest.mark.skipif("POSTERITY_DATA" not in os.environ, reason="POSTERITY_DATA is not set")
def test_bikes_by_the_hour() -> None:
    """Poisson's intervals hold half of them, and it says so."""
    path = Path(os.environ["POSTERITY_DATA"]) / "streams" / "bike-sharing-hour.csv"
    table = pd.read_csv(path).sample(6000, random_state=0)
    hours = pd.get_dummies(table.hr).to_numpy(float)[:, 1:]
    works = table.workingday.to_numpy(float)[:, None]
    weather = table[["temp", "hum", "windspeed", "yr"]].to_numpy(float)
    columns = np.column_stack([hours, works * hours, works, weather])
    y = table.cnt.to_numpy(float)
    held = []
    for model in (BayesianNegativeBinomialRegression(), BayesianPoissonRegression()):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            model.fit(columns[:4000], y[:4000])
        low, high = model.predict_interval(columns[4000:]).T
        held.append(np.mean((low <= y[4000:]) & (y[4000:] <= high)))
        poisson = isinstance(model, BayesianPoissonRegression)
        assert len(said) == int(poisson)
        if poisson:
            assert "vary more than Poisson's" in str(said[0].message)
    assert 0.93 < held[0] < 0.97
    assert held[1] < 0.7


def test_progressive_validation() -> None:
    result = progressive_validation(BayesianNegativeBinomialRegression(), X, Y)
    assert result.n_rows == 300
    assert 0.9 < result.coverage[0.95] <= 1.0
    assert result.crps < result.mae


@pytest.mark.slow
def test_a_first_batch_of_fewer_rows_than_features_does_not_run_away() -> None:
    """Moments let the prior and the dispersion grow without end: log rates of sd 10,000."""
    rng = np.random.default_rng([2, 60, 80])
    X = rng.normal(size=(40, 80))
    y = rng.poisson(np.exp(0.5 + X @ rng.normal(size=80) * 0.4) * rng.gamma(2.0, 0.5, 40))
    batch = BayesianNegativeBinomialRegression().partial_fit(X[:30], y[:30])
    whole = BayesianNegativeBinomialRegression().fit(X[:30], y[:30])
    found, expected = (one.predict_distribution(X[30:]) for one in (batch, whole))
    for level in (0.025, 0.5, 0.975):
        np.testing.assert_allclose(found.ppf(level), expected.ppf(level))
    assert (found.ppf(0.975) < np.exp(10.0)).all()
