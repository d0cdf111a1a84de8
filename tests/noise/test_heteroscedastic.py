"""Noise whose log variance is linear in the features: laws, constant noise, streams, files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from posterity import BayesianLinearRegression
from posterity.basis import Polynomial
from posterity.distributions import Normal, StudentT
from posterity.files import load, save
from posterity.forgetting import (
    Adaptive,
    Changepoint,
    Directional,
    Exponential,
    RandomWalk,
    Stabilized,
    Window,
)
from posterity.likelihoods import LogPrecision, Poisson
from posterity.posteriors._noise_scores import compute_squared_scores, in_own_units

SLOPES = np.array([1.0, 0.0, -0.5])


def drawn(seed: int, n: int, slopes: Any = SLOPES, level: float = 0.3) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, len(slopes)))
    log_variance = level + X @ np.asarray(slopes)
    y = 1.0 + X @ np.array([2.0, -3.0, 0.0]) + np.exp(0.5 * log_variance) * rng.normal(size=n)
    return X, y


def linear(**settings: Any) -> BayesianLinearRegression:
    return BayesianLinearRegression(noise="linear", **settings)


def held(predictive: Any, y: Any, level: float = 0.95) -> Any:
    low, high = predictive.interval(level)
    return (low <= y) & (y <= high)


# ---- what is found ---------------------------------------------------------------------------


@pytest.mark.parametrize("learn", ["fit", "predict_then_learn"])
def test_slopes_of_the_log_variance_are_found(learn: str) -> None:
    X, y = drawn(0, 2000)
    model = linear()
    getattr(model, learn)(X, y)
    np.testing.assert_allclose(model.noise_coef_, SLOPES, atol=0.1)
    assert abs(model.noise_intercept_ - 0.3) < 0.1
    np.testing.assert_allclose(model.coef_, [2.0, -3.0, 0.0], atol=0.06)
    std = model.predict_distribution(X).std()
    truth = np.exp(0.5 * (0.3 + X @ SLOPES))
    assert np.abs(np.log(std / truth)).max() < 0.4


def test_fit_with_flat_priors_is_restricted_maximum_likelihood() -> None:
    """Harvey's (1976) model by direct maximisation of its restricted likelihood."""
    X, y = drawn(1, 3000)
    Z = np.column_stack([np.ones(len(X)), X])

    def loss(gamma: Any) -> float:
        weight = np.exp(-(Z @ gamma))
        information = (Z * weight[:, None]).T @ Z
        error = y - Z @ np.linalg.solve(information, (Z * weight[:, None]).T @ y)
        restricted = np.linalg.slogdet(information)[1]
        return 0.5 * float(np.sum(Z @ gamma + weight * error * error) + restricted)

    found = minimize(loss, np.zeros(4), method="BFGS").x
    model = linear(prior_precision=0.0).fit(X, y)
    se = np.sqrt(2.0 / len(X))
    np.testing.assert_allclose(model.noise_coef_, found[1:], atol=0.2 * se)
    assert abs(model.noise_intercept_ - found[0]) < 0.3 * se


@pytest.mark.parametrize("size", [1, 7, 63])
def test_first_rows_of_a_stream_are_fitted_together(size: int) -> None:
    X, y = drawn(2, 63)
    fitted, streamed = linear().fit(X, y), linear()
    for first in range(0, 63, size):
        streamed.partial_fit(X[first : first + size], y[first : first + size])
    sd = fitted.posterior_.std()[1:]
    if size != 7:  # else not due at the end
        assert (np.abs(streamed.coef_ - fitted.coef_) < 1e-2 * sd).all()
        np.testing.assert_allclose(streamed.noise_coef_, fitted.noise_coef_, atol=1e-2)
    streamed.unlearn(X[:20], y[:20])
    rest = linear().fit(X[20:], y[20:])
    # Features' scales are still those of all rows that ever came.
    assert (np.abs(streamed.coef_ - rest.coef_) < 2e-2 * sd).all()
    np.testing.assert_allclose(streamed.noise_coef_, rest.noise_coef_, atol=3e-2)


@pytest.mark.parametrize("n", [2, 4, 6, 9])
def test_a_row_after_a_fit_of_few_keeps_intervals_finite(n: int) -> None:
    """Rows of leverage 1 say nothing of the noise; one more row alone has no spread."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n + 11, 5))
    y = X.sum(axis=1) + rng.normal(size=n + 11)
    model = linear().fit(X[:n], y[:n])
    model.learn_one(X[n], y[n])
    usual = BayesianLinearRegression().fit(X[: n + 1], y[: n + 1])
    found, expected = (one.predict_interval(X[n + 1 :], 0.5) for one in (model, usual))
    np.testing.assert_allclose(found, expected, rtol=0.1, atol=0.1)


def test_fit_and_rows_agree_to_half_a_standard_error() -> None:
    """Each row of a stream is weighed by what was known before it: the bound that is stated."""
    X, y = drawn(2, 4000)
    fitted, streamed = linear().fit(X, y), linear()
    streamed.predict_then_learn(X, y)
    se = np.sqrt(2.0 / len(X))
    assert np.abs(fitted.noise_coef_ - streamed.noise_coef_).max() < 0.75 * se
    sd = fitted.posterior_.marginal().std()[1:]
    assert (np.abs(fitted.coef_ - streamed.coef_) < 0.75 * sd).all()


def test_rows_one_by_one_are_rows_together_in_order() -> None:
    X, y = drawn(3, 120)
    together, alone = linear(), linear()
    predictive = together.predict_then_learn(X, y)
    for row in range(len(X)):
        if row in (7, 60):
            before = alone.predict_distribution(X[row : row + 1])
            np.testing.assert_allclose(
                before.loc, predictive.loc[row : row + 1], rtol=0.2, atol=0.2
            )
        alone.learn_one(X[row], y[row])
    np.testing.assert_allclose(alone.noise_coef_, together.noise_coef_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(alone.coef_, together.coef_, rtol=1e-6, atol=1e-8)


# ---- constant noise --------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "p"), [(50, 1), (50, 10), (50, 50), (200, 10)])
@pytest.mark.parametrize("rows", [False, True])
def test_nothing_is_lost_where_noise_is_constant(n: int, p: int, rows: bool) -> None:
    loss = []
    for seed in range(6):
        rng = np.random.default_rng([seed, n, p])
        X = rng.normal(size=(n + 400, p))
        y = X @ rng.normal(size=p) + rng.normal(size=n + 400)
        model = linear()
        (model.predict_then_learn if rows else model.fit)(X[:n], y[:n])
        plain = BayesianLinearRegression().fit(X[:n], y[:n])
        scores = [m.predict_distribution(X[n:]).logpdf(y[n:]).mean() for m in (plain, model)]
        loss.append(scores[0] - scores[1])
    assert np.mean(loss) < 0.005 + 2.0 * np.std(loss) / np.sqrt(len(loss))
    assert np.median(loss) < 0.005


def test_evidence_of_constant_noise_is_that_of_the_ordinary_model() -> None:
    X, y = drawn(4, 500, slopes=np.zeros(3))
    plain, model = BayesianLinearRegression().fit(X, y), linear().fit(X, y)
    assert abs(plain.log_evidence_ - model.log_evidence_) < 3.0
    X, y = drawn(4, 500)
    plain, model = BayesianLinearRegression().fit(X, y), linear().fit(X, y)
    assert model.log_evidence_ > plain.log_evidence_ + 50.0


@settings(max_examples=8, deadline=None)
@given(size=st.floats(-20.0, 20.0), offset=st.floats(-1e3, 1e3))
def test_units_of_the_target_change_nothing_but_units(size: float, offset: float) -> None:
    X, y = drawn(5, 40)
    unit = np.exp(size)
    model, other = linear().fit(X, y), linear().fit(X, unit * (y + offset))
    np.testing.assert_allclose(other.noise_coef_, model.noise_coef_, atol=1e-3)
    assert abs(other.noise_intercept_ - model.noise_intercept_ - 2.0 * size) < 1e-2


# ---- few rows, slices ------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
def test_few_rows_are_the_ordinary_model(n: int) -> None:
    X, y = drawn(6, 60)
    model, plain = linear().fit(X[:n], y[:n]), BayesianLinearRegression().fit(X[:n], y[:n])
    predictive, usual = model.predict_distribution(X[50:]), plain.predict_distribution(X[50:])
    np.testing.assert_allclose(predictive.mean(), usual.mean(), rtol=0.02, atol=0.02)
    np.testing.assert_allclose(predictive.interval(0.5), usual.interval(0.5), rtol=0.05, atol=0.05)


def test_the_quietest_and_the_loudest_rows_are_covered() -> None:
    X, y = drawn(7, 1500)
    model = linear()
    predictive = model.predict_then_learn(X[:1000], y[:1000])
    inside = held(model.predict_distribution(X[1000:]), y[1000:])
    order = np.argsort(X[1000:] @ SLOPES)
    for part in (order[:150], order[-150:]):
        assert 0.90 < inside[part].mean() < 0.99
    assert 0.93 < held(predictive[50:], y[50:1000]).mean() < 0.985
    plain = BayesianLinearRegression().predict_then_learn(X[:1000], y[:1000])
    gained = predictive.logpdf(y[:1000])[100:].mean() - plain.logpdf(y[:1000])[100:].mean()
    assert gained > 0.25


# ---- forgetting, weights, merging ------------------------------------------------------------

WAYS = [
    None,
    Stabilized(discount=0.99),
    Exponential(half_life=70.0),
    Adaptive(discounts=(1.0, 0.98, 0.9)),
    Directional(discount=0.99),
    RandomWalk(variance=1e-4),
]


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("intercept", [True, False])
def test_all_ways_to_forget_learn_slopes_and_survive_a_file(
    way: Any, intercept: bool, tmp_path: Path
) -> None:
    X, y = drawn(8, 460)
    model = linear(forgetting=way, fit_intercept=intercept).fit(X[:300], y[:300])
    model.partial_fit(X[300:380], y[300:380]).learn_one(X[380], y[380])
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    for one in (model, again):
        one.predictive = one.predict_then_learn(X[381:], y[381:]).logpdf(y[381:])
    np.testing.assert_array_equal(model.predictive, again.predictive)
    assert model.noise_coef_[0] > 0.4
    assert model.n_observations_ == 460.0
    assert np.isfinite(model.predictive).all()


@pytest.mark.parametrize("way", [None, Stabilized(discount=0.999)], ids=str)
@pytest.mark.parametrize("prior", ["auto", 1.0, 0.0])
def test_models_of_sorted_parts_merge_in_the_same_units(way: Any, prior: Any) -> None:
    X, y = drawn(9, 3000)
    order = np.argsort(X[:, 0])
    parts = [linear(forgetting=way, prior_precision=prior) for _ in range(2)]
    for model, some in zip(parts, (order[:1500], order[1500:]), strict=True):
        model.fit(X[np.sort(some)], y[np.sort(some)])
    merged = parts[0].merge(parts[1])
    assert merged.n_observations_ == 3000.0
    np.testing.assert_allclose(merged.noise_coef_, SLOPES, atol=0.15)
    assert abs(merged.noise_intercept_ - 0.3) < 0.2
    np.testing.assert_allclose(merged.coef_, [2.0, -3.0, 0.0], atol=0.1)


def test_weight_two_is_the_row_twice_and_weight_zero_is_no_row() -> None:
    X, y = drawn(10, 200)
    weights = np.where(np.arange(200) % 3 == 0, 2.0, np.where(np.arange(200) % 3 == 1, 0.0, 1.0))
    model = linear().fit(X, y, sample_weight=weights)
    rows = np.repeat(np.arange(200), weights.astype(int))
    twice = linear().fit(X[rows], y[rows])
    # What is corrected for leverage differs: a row of weight two is one row to it.
    np.testing.assert_allclose(model.noise_coef_, twice.noise_coef_, atol=0.02)
    np.testing.assert_allclose(model.coef_, twice.coef_, atol=0.01)


def test_with_a_basis_the_log_variance_is_a_curve() -> None:
    rng = np.random.default_rng(11)
    x = rng.uniform(-2.0, 2.0, size=(1500, 1))
    y = x[:, 0] + np.exp(0.5 * (1.0 - x[:, 0] ** 2)) * rng.normal(size=1500)
    model = linear(basis=Polynomial(degree=2)).fit(x, y)
    std = model.predict_distribution([[-2.0], [0.0], [2.0]]).std()
    np.testing.assert_allclose(np.log(std), [-1.5, 0.5, -1.5], atol=0.25)


# ---- refusals, reads -------------------------------------------------------------------------


def test_reads_change_nothing(tmp_path: Path) -> None:
    X, y = drawn(12, 90)
    model, read = linear(), linear()
    for one in (model, read):
        one.predict_then_learn(X[:70], y[:70])
    read.predict_distribution(X)
    read.predict_one(X[0])
    read.noise_coef_, read.posterior_  # noqa: B018
    np.testing.assert_array_equal(
        model.predict_then_learn(X[70:], y[70:]).logpdf(y[70:]),
        read.predict_then_learn(X[70:], y[70:]).logpdf(y[70:]),
    )


def test_rows_are_unlearned() -> None:
    """Those of a fit nearly, with their noise, and all of them entirely."""
    X, y = drawn(14, 300)
    some = np.arange(0, 300, 20)
    rest = np.setdiff1d(np.arange(300), some)
    left, whole = linear().fit(X, y), linear().fit(X[rest], y[rest])
    evidence = left.log_evidence_
    left.unlearn(X[some], y[some])
    sd = whole.posterior_.std()
    assert np.abs((left.posterior_.mean - whole.posterior_.mean) / sd).max() < 0.05
    np.testing.assert_allclose(left.posterior_.std(), sd, rtol=0.02)
    np.testing.assert_allclose(left.noise_coef_, whole.noise_coef_, atol=0.02)
    np.testing.assert_allclose(left.noise_intercept_, whole.noise_intercept_, atol=0.01)
    assert abs(left.log_evidence_ - whole.log_evidence_) < 0.5 < abs(evidence - left.log_evidence_)
    last = linear().fit(X[:299], y[:299]).partial_fit(X[299:], y[299:]).unlearn(X[299:], y[299:])
    before = linear().fit(X[:299], y[:299])
    np.testing.assert_allclose(last.coef_, before.coef_, rtol=1e-3)
    with pytest.raises(ValueError, match="only 285 was learned"):
        left.unlearn(X, y)
    assert left.unlearn(X[rest], y[rest]).n_observations_ == 0.0


def test_what_is_refused_says_why_and_changes_nothing() -> None:
    X, y = drawn(13, 60)
    model = linear().fit(X, y)
    with pytest.raises(AttributeError, match="noise_coef_"):
        model.noise_precision_  # noqa: B018
    with pytest.raises(AttributeError, match="only with noise='linear'"):
        BayesianLinearRegression().fit(X, y).noise_coef_  # noqa: B018
    with pytest.raises(ValueError, match="leave noise_precision out"):
        linear(noise_precision=1.0).fit(X, y)
    with pytest.raises(ValueError, match="must be 'constant' or 'linear'"):
        BayesianLinearRegression(noise="quadratic").fit(X, y)  # type: ignore[arg-type]
    before = model.predict_distribution(X).logpdf(y)
    bad = y.copy()
    bad[30] = np.nan
    for learn in (model.partial_fit, model.predict_then_learn):
        with pytest.raises(ValueError, match="row 30"):
            learn(X, bad)
    np.testing.assert_array_equal(model.predict_distribution(X).logpdf(y), before)


@pytest.mark.slow  # a fit of the rows in the window for each row
def test_a_window_keeps_rows_in_units_of_their_noise() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(3000, 2))
    drift = np.cumsum(0.03 * rng.normal(size=3000))
    y = X @ [1.0, 2.0] + drift + np.exp(0.7 * X[:, 0]) * rng.normal(size=3000)
    model = linear(forgetting=Window(size=300))
    predictive = model.predict_then_learn(X, y)[500:]
    low, high = predictive.interval(0.95)
    held = (low <= y[500:]) & (y[500:] <= high)
    for some in (X[500:, 0] < -0.5, np.abs(X[500:, 0]) <= 0.5, X[500:, 0] > 0.5):
        assert 0.91 < held[some].mean() < 0.98
    constant = BayesianLinearRegression(forgetting=Window(size=300)).predict_then_learn(X, y)[500:]
    assert predictive.logpdf(y[500:]).mean() > constant.logpdf(y[500:]).mean() + 0.3
    assert model.n_effective_ == 300.0


@pytest.mark.slow  # a posterior for each place where the world may have changed
def test_at_a_change_mean_and_noise_begin_anew() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(240, 1))
    before = np.arange(240) < 120
    spread = np.exp(np.where(before, 0.8, -0.8) * X[:, 0])
    y = np.where(before, 3.0, -3.0) * X[:, 0] + spread * rng.normal(size=240)
    model = linear(forgetting=Changepoint(hazard=0.01)).fit(X, y)
    assert np.abs(model.changes_ - 120).min() <= 3
    assert abs(model.coef_[0] + 3.0) < 0.5
    assert model.noise_coef_[0] < -0.5


# ---- the parts -------------------------------------------------------------------------------


@given(square=st.floats(1e-3, 1e3), eta=st.floats(-5.0, 5.0))
def test_log_precision_is_the_normal_density_of_the_residual(square: float, eta: float) -> None:
    likelihood = LogPrecision()
    offset = likelihood.offsets(np.array([square]))
    points = np.array([eta, eta + 1.0])
    density = likelihood.log_density(np.full(2, 0.5), points + offset)
    exact = Normal(0.0, np.exp(-0.5 * points)).logpdf(np.sqrt(square))
    np.testing.assert_allclose(np.diff(density), np.diff(exact), rtol=1e-9, atol=1e-9)
    assert likelihood.kernel_code == Poisson().kernel_code


@given(df=st.floats(0.2, 1e4), t=st.floats(-50.0, 50.0))
def test_scores_have_the_probability_of_the_error(df: float, t: float) -> None:
    predictive = StudentT(np.array([df]), [1.0], [2.0])
    square, known = compute_squared_scores(predictive, np.array([1.0 + 2.0 * t]))
    assert known.all() == bool(df > 0.0)
    inside = predictive.cdf(1.0 + 2.0 * abs(t)) - predictive.cdf(1.0 - 2.0 * abs(t))
    score = Normal(0.0, 1.0)
    if square < 24.9:
        root = np.sqrt(square)
        np.testing.assert_allclose(score.cdf(root) - score.cdf(-root), inside, atol=1e-9)


def test_an_uncertain_log_precision_is_nearly_its_mixture() -> None:
    """Against quadrature over the log precision: intervals, and the log density."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    for df in (8.0, 1e6):
        for variance in (0.05, 0.3):
            predictive = in_own_units(
                StudentT([df], [0.0], [1.0]), np.zeros(1), np.full(1, variance)
            )
            scales = np.exp(0.5 * np.sqrt(variance) * nodes)
            points = np.linspace(-3.0, 3.0, 7)
            exact = [weights @ StudentT(df, 0.0, scales).pdf(point) for point in points]
            np.testing.assert_allclose(np.log(predictive.pdf(points)), np.log(exact), atol=0.06)


# ---- real streams ----------------------------------------------------------------------------


def test_bike_rentals_by_hour() -> None:
    """The first 6,000 hours of a public stream: nats gained a row, and the worst hour."""
    folder = os.environ.get("POSTERITY_DATA")
    if folder is None:
        pytest.skip("POSTERITY_DATA is not set")
    pandas = pytest.importorskip("pandas")
    table = pandas.read_csv(Path(folder) / "streams" / "bike-sharing-hour.csv", nrows=6000)
    dummies = [pandas.get_dummies(table[c], drop_first=True) for c in ("hr", "weekday")]
    X = np.ascontiguousarray(
        pandas.concat([*dummies, table[["workingday", "temp", "hum"]]], axis=1).to_numpy(float)
    )
    y, hours = table.cnt.to_numpy(float), table.hr.to_numpy()
    predictive = {}
    for noise in ("constant", "linear"):
        way = Stabilized(discount=0.999)
        model = BayesianLinearRegression(noise=noise, forgetting=way)
        predictive[noise] = model.predict_then_learn(X, y)[500:]
    scores = {noise: one.logpdf(y[500:]).mean() for noise, one in predictive.items()}
    assert scores["linear"] - scores["constant"] > 0.2
    inside = held(predictive["linear"], y[500:])
    worst = min(inside[hours[500:] == hour].mean() for hour in range(24))
    assert worst > 0.88


def test_one_loud_column_of_many_is_not_held_down() -> None:
    held_loud = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(1300, 50))
        y = X @ np.linspace(1.0, -1.0, 50) + np.exp(X[:, 0]) * rng.normal(size=1300)
        model = linear().fit(X[:300], y[:300])
        assert model.noise_coef_[0] > 5.0 * np.abs(model.noise_coef_[1:]).max()
        loud = X[300:, 0] > 1.3
        held_loud.append(held(model.predict_distribution(X[300:]), y[300:])[loud].mean())
    assert np.mean(held_loud) > 0.9
