"""Poisson regression: outside truth, exposure, counts of any size."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import r2_score
from sklearn.utils.estimator_checks import check_estimator

from posterity import (
    BayesianGeneralizedLinear,
    BayesianNegativeBinomialRegression,
    BayesianPoissonRegression,
)
from posterity.evaluation import progressive_validation
from posterity.forgetting import Stabilized
from posterity.likelihoods import LinearNegativeBinomial, NegativeBinomial, Poisson

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
HOURS = RNG.uniform(0.5, 4.0, 300)
Y = RNG.poisson(HOURS * np.exp(0.7 + X @ [0.3, -0.2, 0.5]))


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


@pytest.mark.filterwarnings("ignore:the counts vary")  # they do, for what is left out
def test_scikit_learn_accepts_it() -> None:
    check_estimator(BayesianPoissonRegression(), expected_failed_checks=OF_FRACTIONS, on_skip=None)


@pytest.mark.filterwarnings("ignore:the counts vary")  # they do, for what is left out
@pytest.mark.parametrize("alpha", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_mode_is_that_of_scikit_learn(alpha: float, fit_intercept: bool) -> None:
    """Its penalty is relative to the sum of the weights, its exposure a rate with a weight."""
    expected = PoissonRegressor(
        alpha=alpha / HOURS.sum(),
        fit_intercept=fit_intercept,
        tol=1e-12,
        max_iter=10_000,
        solver="newton-cholesky",
    ).fit(X, Y / HOURS, sample_weight=HOURS)
    model = BayesianPoissonRegression(
        prior_precision=alpha, fit_intercept=fit_intercept, approximation="laplace"
    )
    model.fit(X, Y, exposure=HOURS)
    assert np.allclose(model.coef_, expected.coef_, rtol=0.0, atol=1e-6)
    assert model.intercept_ == pytest.approx(expected.intercept_, abs=1e-6)
    rates = np.exp(model.intercept_ + X @ model.coef_)
    assert np.allclose(rates, expected.predict(X), rtol=1e-6)
    assert np.allclose(model.predict(X, exposure=HOURS), HOURS * model.predict(X), rtol=1e-12)


def test_a_flat_prior_is_maximum_likelihood() -> None:
    family = sm.families.Poisson()
    expected = sm.GLM(Y, sm.add_constant(X), family=family, exposure=HOURS).fit(tol=1e-14)
    model = BayesianPoissonRegression(prior_precision=0.0, approximation="laplace")
    model.fit(X, Y, exposure=HOURS)
    assert np.allclose(model.posterior_.mean, expected.params, rtol=0.0, atol=1e-6)
    assert np.allclose(model.posterior_.std(), expected.bse, rtol=1e-6)


def test_predictions_agree_with_draws() -> None:
    model = BayesianPoissonRegression(prior_precision=1.0).fit(X[:20], Y[:20], exposure=HOURS[:20])
    x = np.array([1.0, 1.0, -1.0])
    rates = model.sample_mean([x], 400_000, rng=1, exposure=3.0)[:, 0]
    counts = np.random.default_rng(2).poisson(rates)
    predictive = model.predict_distribution([x], exposure=3.0)
    assert predictive.mean()[0] == pytest.approx(rates.mean(), rel=0.01)
    assert predictive.var()[0] == pytest.approx(counts.var(), rel=0.05)
    assert predictive.pmf([2])[0] == pytest.approx(np.mean(counts == 2), abs=0.003)
    assert predictive.cdf([4])[0] == pytest.approx(np.mean(counts <= 4), abs=0.003)
    low, high = model.predict_interval([x], 0.9, exposure=3.0)[0]
    assert np.mean((counts >= low) & (counts <= high)) >= 0.9
    ends = np.quantile(rates, [0.05, 0.95])
    rate = model.predict_interval([x], 0.9, exposure=3.0, of="rate")[0]
    assert np.allclose(rate, ends, rtol=0.02)


def test_coverage_of_new_counts() -> None:
    model = BayesianPoissonRegression().fit(X[:200], Y[:200], exposure=HOURS[:200])
    low, high = model.predict_interval(X[200:], 0.9, exposure=HOURS[200:]).T
    assert np.mean((low <= Y[200:]) & (Y[200:] <= high)) > 0.85


def test_weight_two_is_the_row_twice() -> None:
    weights = RNG.integers(0, 3, 300)
    once = BayesianPoissonRegression().fit(X, Y, sample_weight=weights, exposure=HOURS)
    rows = np.repeat(np.arange(300), weights)
    twice = BayesianPoissonRegression().fit(X[rows], Y[rows], exposure=HOURS[rows])
    assert np.allclose(once.coef_, twice.coef_, rtol=1e-5)
    assert once.log_evidence_ == pytest.approx(twice.log_evidence_, rel=1e-6)


def test_one_pass_in_pieces_and_by_rows() -> None:
    whole = BayesianPoissonRegression(prior_precision=1.0)
    parts = clone(whole)
    predictive = whole.predict_then_learn(X, Y, exposure=HOURS)
    pieces = [
        parts.predict_then_learn(X[part], Y[part], exposure=HOURS[part])
        for part in (slice(0, 70), slice(70, 300))
    ]
    logs = np.concatenate(
        [pieces[0].logpmf(Y[:70]), pieces[1].logpmf(Y[70:])],
    )
    assert np.allclose(predictive.logpmf(Y), logs)
    assert np.allclose(whole.coef_, parts.coef_)
    one = clone(whole)
    for x, y in zip(X[:50], Y[:50], strict=True):
        one.learn_one(x, y)
    many = clone(whole)
    many.predict_then_learn(X[:50], Y[:50])
    assert np.allclose(one.coef_, many.coef_, rtol=1e-6)
    assert one.predict_one(X[60]) == pytest.approx(one.predict(X[60:61])[0])
    batch = BayesianPoissonRegression(prior_precision=1.0).fit(X, Y, exposure=HOURS)
    off = np.abs(whole.posterior_.mean - batch.posterior_.mean) / batch.posterior_.std()
    assert off.max() < 1.0


@pytest.mark.filterwarnings("ignore:the counts vary")  # they do, for what is left out
def test_forgetting_and_merging() -> None:
    model = BayesianPoissonRegression(prior_precision=1.0, forgetting=Stabilized(discount=0.95))
    model.predict_then_learn(np.zeros((200, 1)), np.repeat([2, 20], 100))
    assert model.predict([[0.0]])[0] == pytest.approx(20.0, rel=0.1)
    half = BayesianPoissonRegression(prior_precision=1.0).fit(X[:150], Y[:150])
    half.merge(BayesianPoissonRegression(prior_precision=1.0).fit(X[150:], Y[150:]))
    whole = BayesianPoissonRegression(prior_precision=1.0).fit(X, Y)
    off = np.abs(half.posterior_.mean - whole.posterior_.mean) / whole.posterior_.std()
    assert off.max() < 0.35
    assert half.n_observations_ == 300.0


def test_progressive_validation() -> None:
    counts = np.random.default_rng(5).poisson(np.exp(0.7 + X @ [0.3, -0.2, 0.5]))
    result = progressive_validation(BayesianPoissonRegression(), X, counts)
    assert result.n_rows == 300
    assert 0.9 < result.coverage[0.95] <= 1.0
    # The first rows, of whose rates nothing is known, have no score, and no part in the others'.
    assert 0.5 * result.mae < result.crps < result.mae
    assert result.mae < 2.0 * np.mean(np.sqrt(counts))


def overdispersed(n: int, dispersion: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    rate = np.exp(1.5 + X @ [0.3, -0.2])
    if dispersion > 0.0:
        rate = rate * rng.gamma(1.0 / dispersion, dispersion, size=n)
    return X, rng.poisson(rate)


@pytest.mark.parametrize("prior_precision", [0.0, 1.0, "auto"])
@pytest.mark.parametrize("dispersion", [0.0, 0.5])
def test_dispersion_is_pearson_s_on_every_path(prior_precision: object, dispersion: float) -> None:
    X, y = overdispersed(2000, dispersion)
    fitted = sm.GLM(y, sm.add_constant(X), family=sm.families.Poisson()).fit()
    expected = fitted.pearson_chi2 / fitted.df_resid
    model = BayesianPoissonRegression(prior_precision=prior_precision)
    with warnings.catch_warnings():
        warnings.simplefilter("error" if dispersion == 0.0 else "ignore")
        batch = clone(model).fit(X, y)
        halves = clone(model).fit(X[:1000], y[:1000]).merge(clone(model).fit(X[1000:], y[1000:]))
    assert batch.dispersion_ == pytest.approx(expected, rel=1e-3)
    assert halves.dispersion_ == pytest.approx(expected, rel=0.02)
    rows, stream = clone(model), clone(model)
    for x, count in zip(X, y, strict=True):
        rows.learn_one(x, count)
    stream.predict_then_learn(X, y)
    assert rows.dispersion_ == pytest.approx(stream.dispersion_, rel=1e-3)
    assert stream.dispersion_ == pytest.approx(expected, rel=0.1)
    assert np.isnan(clone(model).partial_fit(X[:1], y[:1]).dispersion_)


def test_fit_warns_of_counts_that_vary_more() -> None:
    X, y = overdispersed(400, 0.5)
    said = "the counts vary more than Poisson's: .* is 3.* BayesianNegativeBinomialRegression"
    with pytest.warns(UserWarning, match=said):
        BayesianPoissonRegression().fit(X, y)


@given(st.integers(0, 10_000), st.sampled_from([-3.0, 0.0, 3.0]), st.sampled_from([30, 300]))
@settings(max_examples=30)
def test_fit_does_not_warn_of_poisson_counts(seed: int, level: float, n: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = rng.poisson(np.exp(level + X @ [0.3, -0.2]))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="the counts vary")
        warnings.filterwarnings("ignore", message="the mode was not reached")
        BayesianPoissonRegression().fit(X, y)


def test_counts_of_any_size() -> None:
    x = np.linspace(0.0, 1.0, 20)[:, None]
    large = np.round(1e9 * np.exp(x[:, 0]))
    model = BayesianPoissonRegression(prior_precision=1e-3).fit(x, large)
    assert model.coef_[0] == pytest.approx(1.0, abs=1e-6)
    assert np.allclose(model.predict(x), large, rtol=1e-4)
    assert np.isfinite(model.predict_distribution(x).logpmf(large)).all()
    online = BayesianPoissonRegression(prior_precision=1e-3)
    online.predict_then_learn(x, large)
    assert np.isfinite(online.coef_).all()
    none = BayesianPoissonRegression(prior_precision=1.0).partial_fit(x, np.zeros(20))
    assert none.predict(x).max() < 0.1
    far = BayesianPoissonRegression(prior_precision=1.0).fit(1e6 * x, np.ones(20))
    assert np.isfinite(far.predict(1e6 * x)).all()


@pytest.mark.filterwarnings("ignore:the counts vary")  # they do, for what is left out
def test_frames_and_names() -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = BayesianPoissonRegression().fit(frame, Y)
    assert model.posterior_.names == ("intercept", "a", "b", "c")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"exposure": [1.0, 0.0]}, "exposure is 0.0 in row 1"),
        ({"exposure": [1.0, 1.0, 1.0]}, r"exposure has shape \(3,\): expected \(2,\)"),
        ({"y": [1, -1]}, "y in row 1 is -1: a count must be a whole number, 0 or more"),
        ({"y": [1.0, np.inf]}, "infinity in row 1"),
        ({"sample_weight": [0.0, 0.0]}, "every sample_weight is zero"),
    ],
)
def test_what_can_not_be_used_is_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BayesianPoissonRegression().fit(**{"X": [[0.0], [1.0]], "y": [1, 2], **arguments})


def test_a_call_that_raises_leaves_the_model_as_it_was() -> None:
    model = BayesianPoissonRegression(prior_precision=1.0).partial_fit(X, Y)
    before = model.coef_
    with pytest.raises(ValueError, match="y in row 1 is -2"):
        model.predict_then_learn(X[:2], [1, -2])
    assert np.array_equal(model.coef_, before)
    with pytest.raises(ValueError, match="it must be 'observation' or 'mean'"):
        model.predict_interval(X, of="line")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "kind",
    [BayesianPoissonRegression, BayesianNegativeBinomialRegression],
    ids=lambda k: k.__name__,
)
def test_an_open_direction_is_predicted_as_it_is_met(kind: type) -> None:
    """A flat prior, and a feature that was never seen: what is said of the row that brings it."""
    model = kind(prior_precision=0.0).partial_fit([[0.0], [0.0]], [1, 2])
    said = model.predict_distribution([[1.0]])
    low, high = model.predict_interval([[1.0]])[0]
    met = model.predict_then_learn([[1.0]], [3])
    np.testing.assert_allclose(said.logpmf([3]), met.logpmf([3]))
    assert (low, high) == (met.interval(0.95)[0][0], met.interval(0.95)[1][0])
    assert np.isfinite(high)


def test_a_feature_that_begins_to_vary_is_met_where_its_count_lies() -> None:
    """A rare level comes with a count far above the others'."""
    rng = np.random.default_rng(0)
    X = np.zeros((40, 2))
    X[[15, 25, 30], 0], X[[18, 22], 1] = 1.0, 1.0
    y = rng.poisson(np.where(X[:, 0] > 0.0, 30.0, 0.8))
    stream = BayesianPoissonRegression()
    for row, count in zip(X, y, strict=True):
        stream.learn_one(row, count)
    fit = BayesianPoissonRegression().fit(X, y)
    there = np.array([[1.0, 0.0]])
    assert abs(np.log(stream.predict(there) / fit.predict(there))[0]) < 0.1
    assert 20.0 < stream.predict(there)[0] < 45.0


def test_the_score_of_counts_of_an_exposure() -> None:
    rng = np.random.default_rng(0)
    X, hours = rng.normal(size=(60, 2)), rng.uniform(0.5, 20.0, size=60)
    y = rng.poisson(hours * np.exp(0.3 * X[:, 0]))
    model = BayesianPoissonRegression().fit(X, y, exposure=hours)
    weights = rng.uniform(size=60)
    expected = r2_score(y, model.predict(X, exposure=hours), sample_weight=weights)
    assert model.score(X, y, weights, exposure=hours) == pytest.approx(expected)
    assert model.score(X, y) == pytest.approx(r2_score(y, model.predict(X)))


def test_a_level_joins_by_a_row_with_an_exposure() -> None:
    rows = [({"x": 1.0, "zone": "north"}, 2), ({"x": 2.0, "zone": "south"}, 3)]
    one, other = BayesianPoissonRegression(), BayesianPoissonRegression()
    for x, y in rows:
        one.learn_one(x, y, exposure=1.0)
        other.learn_one(x, y)
    assert one.posterior_.names == other.posterior_.names
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-9)


@pytest.mark.parametrize("seed", [4, 5, 6])
def test_a_level_of_zeros_is_low_however_rows_come(seed: int) -> None:
    rng = np.random.default_rng(seed)
    levels = rng.integers(4, size=60)
    rows = np.column_stack([levels[:, None] == [1, 2, 3], rng.normal(size=60)]).astype(float)
    counts = rng.poisson(np.exp(0.7 + 0.3 * rows[:, 3] - 0.2 * rows[:, 0]))
    counts[levels == 3] = 0
    whole = BayesianPoissonRegression().fit(rows, counts)
    halves = BayesianPoissonRegression().partial_fit(rows[:30], counts[:30])
    halves.partial_fit(rows[30:], counts[30:])
    merged = BayesianPoissonRegression().fit(rows[:30], counts[:30])
    merged.merge(BayesianPoissonRegression().fit(rows[30:], counts[30:]))
    for model in (halves, merged):
        np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-3)


@pytest.mark.parametrize("seed", [1, 2])
def test_batches_without_events_say_little_whatever_their_exposure(seed: int) -> None:
    rng, model = np.random.default_rng(seed), BayesianPoissonRegression()
    for _ in range(2):
        exposure = np.append(1e-3, rng.uniform(size=30))
        X = np.column_stack([rng.integers(0, 2, 31), np.log(exposure)])
        model.partial_fit(X, np.zeros(31), exposure=exposure)
        sd = model.posterior_.std()
        assert ((sd > 0.1) & (sd < 100.0)).all()
        assert (model.intercept_ + X @ model.coef_ < 0.0).all()


@pytest.mark.parametrize("kind", [Poisson(), NegativeBinomial(), LinearNegativeBinomial()])
@pytest.mark.parametrize("n", [5, 200])
def test_counts_that_are_all_0_say_how_large_a_rate_may_be(kind, n: int) -> None:
    X = np.random.default_rng(0).normal(size=(n, 2))
    model = BayesianGeneralizedLinear(kind)
    with pytest.warns(UserWarning, match="counts that are all 0"):
        model.fit(X, np.zeros(n))
    assert 1.0 < model.posterior_.std()[0] < 10.0
    assert (model.posterior_.std() < 10.0).all()
    assert (model.predict(X[:3]) < 1.0).all()


def test_a_level_whose_counts_are_all_0_is_rare_among_many_rows() -> None:
    """The mode lies where its rows say nothing: its effect was -34 (1e9), and its rate 1e303."""
    rng = np.random.default_rng(0)
    level, x = rng.integers(0, 2, 1000), rng.normal(size=1000)
    y = rng.poisson(np.exp(0.5 + 0.3 * x))
    y[:10], level[:10] = 0, 2
    frame = pd.DataFrame({"x": x, "level": level.astype(str)})
    rates = BayesianPoissonRegression().fit(frame, y).predict_mean_distribution(frame[:10])
    assert (rates.mean() > 0.01).all()
    assert (rates.mean() < 0.5).all()
    assert (rates.std() < 0.5).all()
