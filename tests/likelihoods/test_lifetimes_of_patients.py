"""Survival with lung cancer (Loprinzi and others 1994), beside R's survival::survreg."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from posterity import BayesianGeneralizedLinear
from posterity.evaluation import score_survival
from posterity.likelihoods import Censored, Exponential, LogLogistic, LogNormal, Weibull

TABLE = np.loadtxt(Path(__file__).with_name("lung.csv"), delimiter=",", skiprows=1)
TIME, DIED = TABLE[:, 0], TABLE[:, 1] == 1.0
X = np.column_stack([(TABLE[:, 2] - 60.0) / 10.0, TABLE[:, 3:]])  # age, sex, ECOG score
Y = np.column_stack([TIME, np.where(DIED, TIME, np.inf)])

# survreg(Surv(time, status) ~ I((age - 60) / 10) + sex + ph.ecog, dist, scale), survival 3.5:
# coefficients, intercept first, and standard errors.
SURVREG = {
    Weibull(4.0 / 3.0): (
        [5.8186252210, -0.0766811817, 0.4091641749, -0.3446108062],
        [0.1931964310, 0.0691869054, 0.1253766142, 0.0847444828],
    ),
    Exponential(): (
        [5.760381563, -0.102173606, 0.509061400, -0.405016990],
        [0.2581714311, 0.0917689478, 0.1671611893, 0.1126974551],
    ),
    LogNormal(1.0): (
        [5.341256614, -0.190515180, 0.515787627, -0.351658559],
        [0.2340540772, 0.0809279837, 0.1480369779, 0.1001466574],
    ),
    LogLogistic(1.0 / 0.6): (
        [5.448995479, -0.093678716, 0.505779828, -0.412902893],
        [0.2300446226, 0.0816283677, 0.1474124965, 0.1017810786],
    ),
}


def fit(likelihood, **how):
    return BayesianGeneralizedLinear(Censored(likelihood), prior_precision=0.0, **how).fit(X, Y)


@pytest.mark.parametrize("likelihood", SURVREG, ids=str)
def test_mode_and_standard_deviations_are_those_of_survreg(likelihood):
    model = fit(likelihood, approximation="laplace")
    coefficients, errors = SURVREG[likelihood]
    assert_allclose([model.intercept_, *model.coef_], coefficients, rtol=1e-5)
    assert_allclose(model.posterior_.std(), errors, rtol=1e-4)


def test_a_shape_that_is_learned_has_the_mean_and_spread_of_its_likelihood():
    model = fit(Weibull())  # survreg: log(scale) is -0.313, with the standard error 0.0613
    shape = model.likelihood_parameters_["shape"]
    low, high = np.log(shape.interval(0.6827))
    assert_allclose(np.log(shape.median()), 0.313, atol=0.5 * 0.0613)
    assert_allclose(0.5 * (high - low), 0.0613, rtol=0.05)
    assert_allclose(model.coef_, [-0.0748, 0.4011, -0.3396], atol=0.015)
    assert_allclose(model.posterior_.std()[1:], [0.0676, 0.1237, 0.0835], rtol=0.05)


def test_scores_are_those_of_r():
    model = fit(Weibull(4.0 / 3.0), approximation="laplace")
    eta = model.intercept_ + X @ model.coef_
    known = Weibull(4.0 / 3.0).predictive(eta, np.zeros(len(X)))
    scores = score_survival(known, Y, [100.0, 200.0, 400.0, 600.0])
    assert_allclose(scores.concordance, 0.637085, atol=1e-6)  # survival::concordance
    # By R, with the Kaplan-Meier estimate of censoring in which deaths at a time come first.
    brier = [0.109688996, 0.194969, 0.223122642, 0.161739137]
    assert_allclose(scores.brier, brier, atol=1e-6)
    assert (scores.n_rows, scores.n_events) == (len(X), int(DIED.sum()))
    assert scores.pit.n_rows == len(X)


def test_survival_falls_its_band_holds_it_and_the_hazard_grows():
    model, times = fit(Weibull()), np.array([0.0, 100.0, 300.0, 900.0])
    alive = model.predict_survival(X[:5], times)
    low, high = np.moveaxis(model.predict_survival_interval(X[:5], times, 0.9), -1, 0)
    assert alive.shape == (5, 4)
    assert_allclose(alive[:, 0], 1.0)
    assert (np.diff(alive) < 0.0).all()
    assert (low[:, 1:] < alive[:, 1:]).all()
    assert (alive[:, 1:] < high[:, 1:]).all()
    assert (np.diff(model.predict_hazard(X[:5], times[1:])) > 0.0).all()
    middle = model.predict_distribution(X[:5]).median()
    assert_allclose(np.diag(model.predict_survival(X[:5], middle)), 0.5)


def test_hazards_of_the_first_time_and_of_times_that_no_life_reaches() -> None:
    rng = np.random.default_rng(0)
    X, lives = rng.normal(size=(60, 1)), rng.gamma(3.0, size=60)
    model = BayesianGeneralizedLinear(Weibull(1.7)).fit(X, lives)
    hazards = model.predict_hazard([[0.0]], [0.0, 10.0, 20.0, 60.0])[0]
    # By Gauss and Hermite's rule of 80 nodes, but for the last, 1.58, which rounding makes 3e-20.
    assert_allclose(hazards, [0.0, 1.040548, 1.415812, np.nan], rtol=1e-5, atol=1e-100)
    model = BayesianGeneralizedLinear(Exponential()).fit(X, lives)
    first, second = model.predict_hazard([[0.0]], [0.0, 1e-6])[0]
    assert first == pytest.approx(second, rel=1e-5)
