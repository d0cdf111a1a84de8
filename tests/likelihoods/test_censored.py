"""Targets of which only an interval is known."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from posterity import BayesianGeneralizedLinear
from posterity.files import dumps, loads
from posterity.forgetting import Window
from posterity.likelihoods import (
    Censored,
    Exponential,
    Gamma,
    Gaussian,
    LogLogistic,
    LogNormal,
    Poisson,
    Tweedie,
    Weibull,
)
from posterity.likelihoods.censored import score_ends

LIFETIME = Censored(Weibull())
ENDED = np.array([[1.0, 1.0], [2.0, np.inf], [3.0, 3.0]])


def make_rows(n=120, seed=3):
    """Features, and lifetimes of which about half are cut off."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    life = np.exp(2.0 + X @ [0.4, -0.2]) * rng.weibull(1.5, n)
    end = rng.uniform(0.0, 15.0, n)
    seen = np.minimum(life, end)
    return X, np.column_stack([seen, np.where(life < end, seen, np.inf)])


def fit(X, y, likelihood=LIFETIME, **how):
    return BayesianGeneralizedLinear(likelihood, **how).fit(X, y)


LIKELIHOODS = [Weibull(1.5), LogNormal(0.8), LogLogistic(2.0), Exponential(), Gamma(2.0)]
ETA = np.linspace(-3.0, 5.0, 9)


@pytest.mark.parametrize("inner", [*LIKELIHOODS, Gaussian(4.0)], ids=str)
def test_what_is_not_seen_has_the_probability_of_its_interval(inner):
    given = inner.distribution(ETA)
    for low, high in ((1.0, 2.5), (-np.inf, 2.0), (3.0, np.inf)):
        y = np.broadcast_to([low, high], (len(ETA), 2))
        expected = given.cdf(high) - given.cdf(low)
        assert_allclose(
            np.exp(Censored(inner).log_density(y, ETA)), expected, rtol=1e-9, atol=1e-15
        )
    observed = np.full((len(ETA), 2), 2.0)
    assert_allclose(Censored(inner).log_density(observed, ETA), given.logpdf(2.0))


def test_both_ends_of_an_interval_of_counts_belong_to_it():
    y = np.broadcast_to([2.0, 4.0], (len(ETA), 2))
    counts = stats.poisson(np.exp(ETA)).pmf(np.array([[2], [3], [4]])).sum(axis=0)
    assert_allclose(np.exp(Censored(Poisson()).log_density(y, ETA)), counts, rtol=1e-9)


@pytest.mark.parametrize("inner", [*LIKELIHOODS, Gaussian(4.0)], ids=str)
@pytest.mark.parametrize("ends", [(50.0, np.inf), (-np.inf, 1e-4), (40.0, 41.0)])
def test_tails_stay_finite_and_pull_eta_the_right_way(inner, ends):
    eta = np.array([-40.0, -8.0, 8.0, 40.0])
    y = np.broadcast_to(ends, (4, 2))
    slope, curvature = Censored(inner).derivatives(y, eta)
    assert np.isfinite(Censored(inner).log_density(y, eta)).all()
    assert np.isfinite(slope).all()
    assert (curvature >= 0.0).all()


@pytest.mark.parametrize("inner", [Weibull(1.5), Weibull()], ids=str)
def test_rows_batches_and_one_fit_say_the_same(inner):
    X, y = make_rows(80)
    whole = fit(X, y, Censored(inner))
    batches, rows = (BayesianGeneralizedLinear(Censored(inner)) for _ in range(2))
    for start in range(0, len(X), 40):
        batches.partial_fit(X[start : start + 40], y[start : start + 40])
    rows.fit(X[:70], y[:70])
    for x, ends in zip(X[70:], y[70:], strict=True):
        rows.learn_one(x, tuple(ends))
    for other in (batches, rows):
        assert_allclose(other.coef_, whole.coef_, atol=0.2 * whole.posterior_.std()[1])
        assert_allclose(other.posterior_.std(), whole.posterior_.std(), rtol=0.15)


def test_small_batches_know_what_one_fit_does():
    """First rows are kept until half as many more have come, though each batch is fitted again."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(112, 2))
    life = np.exp(0.5 + X @ [0.4, -0.3]) * rng.weibull(1.5, size=112)
    end = rng.exponential(4.0, size=112)
    y = np.column_stack([np.minimum(life, end), np.where(life <= end, life, np.inf)])
    whole, batches = fit(X, y, Censored(Weibull())), BayesianGeneralizedLinear(Censored(Weibull()))
    for start in range(0, 112, 7):
        batches.partial_fit(X[start : start + 7], y[start : start + 7])
    assert_allclose(batches.coef_, whole.coef_, atol=0.2 * whole.posterior_.std()[1])
    assert batches.log_evidence_ == pytest.approx(whole.log_evidence_, abs=0.2)


def test_merged_halves_and_a_weight_of_two():
    X, y = make_rows()
    whole = fit(X, y)
    halves = fit(X[:60], y[:60]).merge(fit(X[60:], y[60:]))
    assert_allclose(halves.coef_, whole.coef_, atol=0.05 * whole.posterior_.std()[1])
    twice = fit(np.repeat(X, 2, axis=0), np.repeat(y, 2, axis=0))
    assert_allclose(fit(X, y).fit(X, y, np.full(len(X), 2.0)).coef_, twice.coef_, atol=1e-3)


@pytest.mark.parametrize("n", [40, 120])
def test_unlearned_rows_leave_what_the_others_say(n):
    X, y = make_rows(n)
    left, others = fit(X, y).unlearn(X[:10], y[:10]), fit(X[10:], y[10:])
    assert_allclose(left.coef_, others.coef_, atol=0.1 * others.posterior_.std()[1])
    with pytest.raises(ValueError, match="never learned"):
        fit(X[:40], y[:40]).unlearn(X[:1], [[1.0, 2.0]])


@pytest.mark.parametrize("n", [30, 120])
def test_a_file_goes_on_as_the_model_does(n):
    X, y = make_rows(n)
    model = fit(X, y)
    again = loads(dumps(model))
    assert_allclose(again.learn_one(X[0], y[0]).coef_, model.learn_one(X[0], y[0]).coef_, rtol=0)


@pytest.mark.parametrize("forgetting", ["exponential:0.99", "adaptive"])
def test_memories(forgetting):
    X, y = make_rows(60)
    model = fit(X, y, Censored(Weibull(1.5)), forgetting=forgetting)
    assert model.coef_[0] > 0.0
    assert model.n_effective_ < len(X)


def test_more_rows_than_are_predicted_at_once():
    X, y = make_rows(1500)
    model = BayesianGeneralizedLinear(Censored(Weibull())).fit(X[:100], y[:100])
    ahead = model.predict_then_learn(X[100:], y[100:])
    assert_allclose(ahead[1200:1201].mean(), ahead.mean()[1200:1201])


REFUSED = [
    ((5.0, 2.0), r"row 3 is \(5, 2\): the lower end must not be above"),
    ((5.0, np.nan), "NaN in row 3, column 1"),
    ((np.inf, np.inf), "row 3 .* one end must be finite"),
    ((-np.inf, np.inf), "row 3 .* one end must be finite"),
    ((0.0, 0.0), "row 3 is 0: Weibull knows positive"),
    ((-1.0, -1.0), "row 3 is -1: Weibull knows positive"),
    ((-np.inf, 0.0), "row 3 .* Weibull has no targets between"),
    ((-3.0, -1.0), "row 3 .* Weibull has no targets between"),
]


@pytest.mark.parametrize(("ends", "message"), REFUSED, ids=str)
def test_bad_targets_are_named_and_leave_the_model_as_it_was(ends, message):
    X, y = make_rows(20)
    model = fit(X, y)
    before = dumps(model)
    bad = y.copy()
    bad[3] = ends
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X, bad)
    assert dumps(model) == before


def test_a_target_must_have_two_numbers():
    X, y = make_rows(20)
    for one in (y[:, 0], y[:, :1], np.column_stack([y, y])):
        with pytest.raises(ValueError, match="a target consists of 2 numbers"):
            fit(X, one)
    with pytest.raises(ValueError, match="a target consists of 2 numbers"):
        fit(X, y).learn_one(X[0], 3.0)
    with pytest.raises(TypeError, match="Censored needs an instance"):
        Censored("weibull")


@pytest.mark.parametrize("shape", [1.5, None])
def test_a_window_of_censored_rows_knows_the_last_ones(shape):
    rng = np.random.default_rng(0)
    X, life = rng.normal(size=(30, 1)), rng.weibull(1.5, 30)
    y = np.column_stack([np.minimum(life, 1.0), np.where(life < 1.0, life, np.inf)])
    y[5, 0] = -np.inf if np.isfinite(y[5, 1]) else y[5, 0]
    window = BayesianGeneralizedLinear(Censored(Weibull(shape)), forgetting=Window(20))
    for x, ends in zip(X, y, strict=True):
        window.learn_one(x, ends)
    last = BayesianGeneralizedLinear(Censored(Weibull(shape))).fit(X[10:], y[10:])
    assert_allclose(window.coef_, last.coef_, atol=1e-3)


def test_scores_of_targets_with_two_ends_are_log_scores_or_say_where_they_are():
    model = BayesianGeneralizedLinear(Censored(Exponential())).fit(np.zeros((3, 1)), ENDED)
    assert model.score(np.zeros((3, 1)), ENDED) == pytest.approx(
        np.mean(score_ends(model.predict_distribution(np.zeros((3, 1))), *ENDED.T))
    )
    with pytest.raises(ValueError, match="score_survival"):
        model.predict_distribution(np.zeros((3, 1))).crps(ENDED)
    with pytest.raises(ValueError, match="lower end"):
        model.score(np.zeros((1, 1)), [[2.0, 1.0]])


def test_amounts_of_which_only_a_limit_is_known_are_learned_under_tweedie() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 1))
    mean = np.exp(0.5 + 0.3 * X[:, 0])
    number = rng.poisson(2.0 * np.sqrt(mean))
    y = rng.gamma(np.maximum(number, 1e-9), 0.5 * np.sqrt(mean)) * (number > 0)
    limit = rng.exponential(4.0, 120)
    ends = np.column_stack([np.minimum(y, limit), np.where(y < limit, y, np.inf)])
    model = BayesianGeneralizedLinear(Censored(Tweedie(1.5, 1.0))).fit(X, ends)
    whole = BayesianGeneralizedLinear(Tweedie(1.5, 1.0)).fit(X, y)
    assert model.intercept_ == pytest.approx(whole.intercept_, abs=0.15)
    assert model.coef_ == pytest.approx(whole.coef_, abs=0.1)
