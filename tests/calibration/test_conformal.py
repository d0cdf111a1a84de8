"""Conformal wrappers: the contract, the published recursions, and what is guaranteed."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from posterity import (
    Averaged,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegression,
)
from posterity.basis import Polynomial
from posterity.calibration import Conformal
from posterity.evaluation import progressive_validation
from posterity.forgetting import Adaptive, Exponential

Array = NDArray[np.float64]
METHODS = ("pid", "aci", "dtaci")


def stream(n: int = 3000, seed: int = 0) -> tuple[Array, Array]:
    """Skewed noise that grows and shrinks: a model of constant normal noise is wrong."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    size = 1.0 + 0.9 * np.sin(np.arange(n) / 150.0)
    return X, 1.0 + X @ [1.0, -2.0] + size * rng.standard_exponential(n)


def known(**parameters: Any) -> BayesianLinearRegression:
    """Normal predictions: scores are standardised errors."""
    settings = {"prior_precision": 1.0, "noise_precision": 4.0, "fit_intercept": False}
    return BayesianLinearRegression(**(settings | parameters))


def held(predictive: Any, y: Array, level: float = 0.95) -> NDArray[np.bool_]:
    low, high = predictive.interval(level)
    return (low <= y) & (y <= high)


# ---- scikit-learn's contract ---------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_scikit_learn_accepts_it(method: Any) -> None:
    check_estimator(Conformal(BayesianLinearRegression(), method=method), on_skip=None)


def test_scikit_learn_accepts_a_pipeline_inside() -> None:
    pipeline = make_pipeline(StandardScaler(), BayesianLinearRegression())
    check_estimator(Conformal(pipeline), on_skip=None)


def test_parameters_of_the_model_are_nested() -> None:
    model = Conformal(known(), method="aci")
    assert model.get_params()["model__prior_precision"] == 1.0
    twin = clone(model).set_params(model__prior_precision=2.0, level=0.5)
    assert twin.model.prior_precision == 2.0
    assert model.model.prior_precision == 1.0
    assert twin.method == "aci"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_copy_goes_its_own_way(copied: Any, method: Any) -> None:
    X, y = stream(300)
    model = Conformal(known(), method=method).fit(X, y)
    before = model.predict_interval(X)
    twin = copied(model)
    np.testing.assert_array_equal(twin.predict_interval(X), before)
    twin.partial_fit(X, 100.0 * y)
    np.testing.assert_array_equal(model.predict_interval(X), before)
    assert not np.allclose(twin.predict_interval(X), before)


def test_a_prediction_can_be_pickled() -> None:
    X, y = stream(50)
    predictive = Conformal(known()).predict_then_learn(X, y)
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(predictive)).interval(0.9), predictive.interval(0.9)
    )


# ---- in batches, row by row, and in one call -----------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("noise_precision", [4.0, None])
def test_batches_and_rows_agree(method: Any, noise_precision: float | None) -> None:
    X, y = stream(120)
    start = Conformal(known(noise_precision=noise_precision), method=method, memory=60)
    whole, batches, rows = clone(start), clone(start), clone(start)
    predictive = whole.predict_then_learn(X, y)
    parts = [batches.predict_then_learn(X[i : i + 50], y[i : i + 50]) for i in (0, 50, 100)]
    ends = np.concatenate([np.stack(part.interval(0.9)) for part in parts], axis=1)
    np.testing.assert_allclose(ends, np.stack(predictive.interval(0.9)), rtol=1e-9)
    for i, (x, target) in enumerate(zip(X, y, strict=True)):
        if i > 2:
            np.testing.assert_allclose(rows.predict_interval(X[i : i + 1], 0.9)[0], ends[:, i])
        rows.learn_one(x, target)
    fitted = clone(start).fit(X, y)
    for model in (batches, rows, fitted):
        np.testing.assert_allclose(model.predict_interval(X), whole.predict_interval(X), rtol=1e-9)


@pytest.mark.parametrize(
    "model",
    [
        BayesianLinearRegression(prior_precision=0.0),
        BayesianLinearRegression(prior_precision=1.0, forgetting=Exponential(0.99)),
        BayesianLinearRegression(prior_precision=1.0, basis=Polynomial(degree=2)),
    ],
)
def test_single_rows_are_batches_of_one(model: Any) -> None:
    X, y = stream(150)
    one, batch = Conformal(model).fit(X[:50], y[:50]), Conformal(model).fit(X[:50], y[:50])
    for x, target in zip(X[50:], y[50:], strict=True):
        one.learn_one(x, target, weight=0.5)
        batch.partial_fit(x[None], [target], sample_weight=[0.5])
    np.testing.assert_allclose(one.predict_interval(X), batch.predict_interval(X), rtol=1e-9)
    assert one.predict_one(X[0]) == pytest.approx(batch.predict(X[:1])[0], rel=1e-9)


def test_a_single_row_that_is_refused_is_named_and_changes_nothing() -> None:
    X, y = stream(60)
    model = Conformal(BayesianLinearRegression()).fit(pd.DataFrame(X, columns=["age", "height"]), y)
    before = model.predict_interval(pd.DataFrame(X, columns=["age", "height"]))
    bad = [1.0, np.nan]
    with pytest.raises(ValueError, match="NaN in row 0, column 'height'"):
        model.predict_one(bad)
    with pytest.raises(ValueError, match="NaN in row 0, column 'height'"):
        model.learn_one(bad, 1.0)
    with pytest.raises(ValueError, match="y is nan: it must be finite"):
        model.learn_one([1.0, 1.0], np.nan)
    with pytest.raises(ValueError, match="weights must be finite and not negative"):
        model.learn_one([1.0, 1.0], 1.0, weight=-1.0)
    after = model.predict_interval(pd.DataFrame(X, columns=["age", "height"]))
    np.testing.assert_array_equal(after, before)


def test_what_is_told_is_the_models_but_for_intervals() -> None:
    X, y = stream(200)
    predictive, plain = (
        Conformal(known()).predict_then_learn(X, y),
        known().predict_then_learn(X, y),
    )
    for name in ("mean", "std", "var", "median"):
        np.testing.assert_array_equal(getattr(predictive, name)(), getattr(plain, name)())
    np.testing.assert_array_equal(predictive.logpdf(y), plain.logpdf(y))
    np.testing.assert_array_equal(predictive.crps(y), plain.crps(y))
    assert len(predictive) == 200
    low, _ = predictive[10:20].interval(0.8)
    np.testing.assert_array_equal(low, predictive.interval(0.8)[0][10:20])
    assert predictive[3].interval(0.8)[1] == predictive.interval(0.8)[1][3]


def test_progressive_validation_takes_it() -> None:
    X, y = stream(2000)
    plain, wrapped = (
        progressive_validation(model, X, y, levels=(0.8, 0.95))
        for model in (known(), Conformal(known()))
    )
    assert plain.mae == wrapped.mae
    assert abs(wrapped.coverage[0.95] - 0.95) < 0.005 < abs(plain.coverage[0.95] - 0.95)
    assert abs(wrapped.coverage[0.8] - 0.8) < 0.01


@pytest.mark.parametrize("noise_precision", [4.0, None])
def test_it_starts_as_the_model(noise_precision: float | None) -> None:
    X, y = stream(12)
    model = Conformal(known(noise_precision=noise_precision, noise_prior=(5.0, 5.0)))
    predictive = model.predict_then_learn(X, y)
    plain = known(noise_precision=noise_precision, noise_prior=(5.0, 5.0)).predict_then_learn(X, y)
    for level in (0.3, 0.5, 0.95, 0.999):
        ours, theirs = predictive[0].interval(level), plain[0].interval(level)
        np.testing.assert_allclose(ours, theirs, rtol=0.03)
    assert predictive.interval(1.0)[1][5] == np.inf


def test_rows_of_weight_zero_teach_nothing() -> None:
    X, y = stream(200)
    weights = np.tile([1.0, 0.0], 100)
    model = Conformal(known()).fit(X, y, weights)
    other = Conformal(known()).fit(X[::2], y[::2])
    np.testing.assert_allclose(model.predict_interval(X), other.predict_interval(X))


def test_a_mapping_of_names() -> None:
    X, y = stream(30)
    frame = pd.DataFrame(X, columns=["a", "b"])
    model, other = Conformal(known()).fit(frame, y), Conformal(known())
    for row, target in zip(X, y, strict=True):
        other.learn_one({"a": row[0], "b": row[1]}, target)
    np.testing.assert_allclose(other.predict_interval(frame), model.predict_interval(frame))
    assert other.predict_one({"b": 2.0, "a": 1.0}) == pytest.approx(model.predict_one([1.0, 2.0]))
    assert list(other.feature_names_in_) == ["a", "b"]


@pytest.mark.parametrize(
    "model",
    [
        BayesianLinearRegression(),
        BayesianLinearRegression(forgetting=Adaptive()),
        Averaged([known(), known(prior_precision=9.0)]),
        make_pipeline(StandardScaler(), BayesianLinearRegression()),
    ],
    ids=["auto", "mixtures", "averaged", "pipeline"],
)
def test_any_regressor_can_be_wrapped(model: Any) -> None:
    X, y = stream(2500)
    predictive = Conformal(model).predict_then_learn(X, y)
    assert abs(held(predictive, y).mean() - 0.95) < 0.006
    low, high = predictive.interval(0.95)
    assert np.isfinite(high - low)[5:].all()


def test_counts_can_be_wrapped() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2500, 1))
    y = rng.negative_binomial(1.0, 1.0 / (1.0 + np.exp(1.0 + 0.5 * X[:, 0])))  # not Poisson
    plain = BayesianPoissonRegression().predict_then_learn(X, y)
    predictive = Conformal(BayesianPoissonRegression()).predict_then_learn(X, y)
    assert held(plain, y).mean() < 0.87
    assert (
        abs(held(predictive, y).mean() - 0.95) < 0.03
    )  # ties: a bound can't hold a part of a count
    assert (predictive.interval(0.95)[0] >= 0.0).all()


# ---- the published recursions --------------------------------------------------------------------


def standardised(X: Array, y: Array) -> Array:
    predictive = known().predict_then_learn(X, y)
    return (y - predictive.mean()) / predictive.std()


@pytest.mark.parametrize("share", [0.4, 2.0])
def test_aci_is_the_published_recursion(share: float) -> None:
    """Gibbs and Candes (2021), eq. 2, on either side: alpha += gamma (a - err)."""
    X, y = stream(900)
    scores = standardised(X, y)
    predictive = Conformal(
        known(), level=0.9, method="aci", rate=share, memory=200
    ).predict_then_learn(X, y)
    low, high = ((end - predictive.mean()) / predictive.std() for end in predictive.interval(0.9))
    tail, compared = 0.05, 0
    gamma = share * tail
    for side, ends in ((-1.0, -low), (1.0, high)):
        alpha = tail
        for t, score in enumerate(side * scores):
            window = side * scores[max(t - 200, 0) : t]
            if t >= 200 and alpha >= 1.0 / 201.0:  # before, the model's own word is among them
                expected = np.quantile(window, max(1.0 - alpha, 0.0), method="weibull")
                assert ends[t] == pytest.approx(expected, abs=1e-12)
                compared += 1
            alpha = min(alpha + gamma * (tail - (score > ends[t])), 1.0)
    assert compared > 1000


def test_dtaci_is_the_published_recursion() -> None:
    """Gibbs and Candes (2024), algorithm 1, with the tail aimed at the mean of the experts'."""
    X = np.ones((120, 1))
    y = np.random.default_rng(0).uniform(-1.0, 1.0, size=120)  # no score beyond the first ones
    scores = standardised(X, y)
    predictive = Conformal(known(), level=0.8, method="dtaci", memory=100).predict_then_learn(X, y)
    high = (predictive.interval(0.8)[1] - predictive.mean()) / predictive.std()
    tail, rates = 0.1, 0.01 * 2.0 ** np.arange(8) * 0.1
    spread = (1 - tail) ** 2 * tail**3 + tail**2 * (1 - tail) ** 3
    eta = np.sqrt(3.0 / 500.0) * np.sqrt((np.log(8 * 500.0) + 2.0) / spread)
    sigma = 1.0 / 1000.0
    alphas, weights = np.full(8, tail), np.full(8, 1.0 / 8.0)
    window = list(stats.norm.ppf((np.arange(100) + 0.5) / 100.0))
    order = np.argsort(-np.abs(window), kind="stable")[::-1]
    window = [window[i] for i in order]
    for t in range(95):
        bound = np.quantile(window, min(1.0 - weights @ alphas, 100.0 / 101.0), method="weibull")
        if weights @ alphas > 1.0 / 101.0:
            assert high[t] == pytest.approx(bound, abs=1e-9)
        # The largest alpha whose bound still holds the score: the inverse of that quantile.
        ranked = np.sort(window)
        rank = np.interp(scores[t], ranked, np.arange(1.0, 101.0))
        beta = 1.0 if scores[t] <= ranked[0] else 1.0 - rank / 101.0
        pinball = tail * (beta - alphas) - np.minimum(beta - alphas, 0.0)
        tilted = weights * np.exp(-eta * pinball)
        weights = (1.0 - sigma) * tilted / tilted.sum() + sigma / 8.0
        alphas = np.minimum(alphas + rates * (tail - (beta < alphas)), 1.0)
        window = [*window[1:], scores[t]]
        assert weights.sum() == pytest.approx(1.0)


def test_pid_is_the_published_recursion() -> None:
    """Angelopoulos, Candes and Tibshirani (2023): P, and I as in their eq. 7; D is the scale."""
    X, y = stream(400)
    scores = standardised(X, y)
    model = Conformal(known(), level=0.9, rate=0.03, memory=50, integral=1.5)
    low, high = (
        (end - predictive.mean()) / predictive.std()
        for predictive in [model.predict_then_learn(X, y)]
        for end in predictive.interval(0.9)
    )
    tail = 0.05
    start = stats.norm.isf(tail)
    eta = 0.03 / stats.norm.pdf(start)
    for side, ends in ((-1.0, -low), (1.0, high)):
        q, sum_of_errors, scale, rests_on = start, 0.0, 1.0, 10.0
        for t, score in enumerate(scores):
            x = sum_of_errors * np.log(t + 1.0) / (5.0 * (t + 1.0))
            assert ends[t] == pytest.approx(scale * (q + 1.5 * np.tan(x)), rel=1e-9)
            error = float(side * score > ends[t])
            q, sum_of_errors = q + eta * (error - tail), sum_of_errors + error - tail
            share = max(1.0 / (rests_on + 1.0), 1.0 / 50.0)
            rests_on += 1.0
            scale += share * (min(np.sqrt(np.pi / 2.0) * abs(score), 8.0 * scale) - scale)


# ---- what is guaranteed --------------------------------------------------------------------------


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), kind=st.sampled_from(["t", "jumps", "trend", "periods"]))
def test_misses_of_pid_add_up_on_any_stream(seed: int, kind: str) -> None:
    """Share of misses = tail + (bound_T - bound_0) / (step T), with the bound in scales."""
    rng = np.random.default_rng(seed)
    n = 600
    y = {
        "t": lambda: rng.standard_t(1.5, size=n),
        "jumps": lambda: rng.normal(size=n) + 50.0 * (np.arange(n) // 100 % 2),
        "trend": lambda: np.exp(np.arange(n) / 50.0) * rng.normal(size=n),
        "periods": lambda: rng.normal(size=n) * (0.01 + np.sin(np.arange(n) / 20.0) ** 2),
    }[kind]()
    X = np.ones((n, 1))
    model = Conformal(known(), level=0.9)
    predictive = model.predict_then_learn(X, y)
    low, high = predictive.interval(0.9)
    assert np.isfinite(high - low).all()
    tail, start = 0.05, stats.norm.isf(0.05)
    step = 0.025 / stats.norm.pdf(start)
    scale, rests_on = 1.0, 10.0
    for score in (y - predictive.mean()) / predictive.std():
        share = max(1.0 / (rests_on + 1.0), 0.01)
        rests_on += 1.0
        scale += share * (min(np.sqrt(np.pi / 2.0) * abs(score), 8.0 * scale) - scale)
    last = model.predict_distribution(X[:1])
    ends = [(end[0] - last.mean()[0]) / last.std()[0] / scale for end in last.interval(0.9)]
    assume(ends[0] < ends[1])
    for missed, bound in ((y < low, -ends[0]), (y > high, ends[1])):
        assert missed.mean() == pytest.approx(tail + (bound - start) / (step * n), abs=1e-9)


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), n=st.integers(200, 2000))
def test_coverage_is_within_the_bound_of_the_paper(seed: int, n: int) -> None:
    """Angelopoulos et al. (2023), proposition 1: |misses / T - a| <= (b + eta) / (eta T).

    Their b bounds the scores and the start; here scores are of bounded ratio to their scale.
    """
    rng = np.random.default_rng(seed)
    size = rng.choice([0.3, 1.0, 3.0], size=n // 100 + 1).repeat(100)[:n]
    y = size * rng.uniform(-1.0, 1.0, size=n)
    X = np.ones((n, 1))
    model = known(prior_precision=1e9)  # predicts 0 with sd 1/2: scores are 2 y
    tail, start = 0.05, stats.norm.isf(0.05)
    step = 0.025 / stats.norm.pdf(start)
    low, high = Conformal(model, level=0.9).predict_then_learn(X, y).interval(0.9)
    # A scale is at least a tenth of an old size after 100 rows, so no score is beyond 60 of them.
    bound = (60.0 + start + step) / (step * n)
    assert abs(np.mean(y > high) - tail) <= bound
    assert abs(np.mean(y < low) - tail) <= bound
    gamma = 0.4 * tail
    low, high = Conformal(model, level=0.9, method="aci").predict_then_learn(X, y).interval(0.9)
    # Gibbs and Candes (2021), proposition 4.1: (max(alpha, 1 - alpha) + gamma) / (gamma T).
    assert abs(np.mean(y > high) - tail) <= (1.0 - tail + gamma) / (gamma * n)
    assert abs(np.mean(y < low) - tail) <= (1.0 - tail + gamma) / (gamma * n)


@pytest.mark.parametrize("method", METHODS)
def test_it_holds_where_the_model_is_wrong(method: Any) -> None:
    X, y = stream(6000)
    assert held(known().predict_then_learn(X, y), y).mean() < 0.75
    predictive = Conformal(known(), method=method, level=[0.8, 0.95]).predict_then_learn(X, y)
    for level in (0.8, 0.95):
        inside = held(predictive, y, level)
        assert abs(inside.mean() - level) < 0.015
        stretches = inside[1000:].reshape(-1, 1000).mean(axis=1)
        assert np.abs(stretches - level).max() < 0.035


def test_wider_levels_lie_around_narrower_ones() -> None:
    X, y = stream(2000)
    predictive = Conformal(known(), level=[0.5, 0.6, 0.7]).predict_then_learn(X, y)
    levels = [0.0, 0.2, 0.5, 0.55, 0.6, 0.7, 0.9, 0.999, 1.0]
    lows, highs = zip(*(predictive.interval(level) for level in levels), strict=True)
    assert (np.diff(highs, axis=0) >= 0.0).all()
    assert (np.diff(lows, axis=0) <= 0.0).all()
    assert (highs[0] >= lows[0]).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("target", [0.0, 1e70, np.nan], ids=["perfect", "huge", "alternating"])
def test_strange_streams_stay_finite(method: Any, target: float) -> None:
    n = 500
    y = np.full(n, target) if np.isfinite(target) else 1e30 * (-1.0) ** np.arange(n)
    predictive = Conformal(known(), method=method).predict_then_learn(np.ones((n, 1)), y)
    low, high = predictive.interval(0.95)
    assert np.isfinite(low).all()
    assert np.isfinite(high).all()
    assert (low <= high).all()


def test_what_the_model_does_not_know_stays_open() -> None:
    X, y = stream(20)
    predictive = Conformal(BayesianLinearRegression(prior_precision=0.0)).predict_then_learn(X, y)
    low, high = predictive.interval(0.95)
    assert low[0] == -np.inf
    assert high[0] == np.inf
    assert predictive.is_flat()[0]
    assert np.isfinite(high[4:]).all()


# ---- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"method": "split"}, "method is 'split': it must be 'pid', 'aci', 'dtaci'"),
        ({"level": 95}, "level is 95: levels must lie between 0 and 1, as in 0.95"),
        ({"level": []}, "level has 0 values: give from 1 to 32 levels"),
        ({"rate": 0.0}, "rate is 0.0: it must be positive and finite"),
        ({"memory": 1}, "memory is 1: it must be a whole number of rows, at least 2"),
        ({"integral": -1.0}, "integral is -1.0: it must be finite and not negative"),
    ],
)
def test_parameters_out_of_range(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Conformal(known(), **parameters).fit([[0.0]], [0.0])


def test_what_can_not_be_wrapped() -> None:
    with pytest.raises(
        TypeError, match="model 'ridge' is a Ridge, which has no partial_fit and no"
    ):
        Conformal(Ridge()).fit([[0.0]], [0.0])
    with pytest.raises(TypeError, match="a classifier: labels have no intervals; give a regressor"):
        Conformal(BayesianLogisticRegression()).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(TypeError, match="give an instance, BayesianLinearRegression"):
        Conformal(BayesianLinearRegression).fit([[0.0]], [0.0])


def test_nothing_learned_yet() -> None:
    with pytest.raises(NotFittedError, match="This Conformal has learned nothing yet: call fit"):
        Conformal(known()).predict_interval([[0.0]])


def test_a_refused_row_changes_nothing() -> None:
    X, y = stream(100)
    frame = pd.DataFrame(X, columns=["age", "height"])
    model = Conformal(known()).fit(frame, y)
    before = model.predict_interval(frame)
    bad = frame.copy()
    bad.loc[7, "height"] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN in row 7, column 'height'"):
        model.partial_fit(bad, y)
    with pytest.raises(ValueError, match="The feature names should match"):
        model.partial_fit(frame[["height", "age"]], y)
    with pytest.raises(ValueError, match="every sample_weight is zero"):
        model.fit(frame, y, np.zeros(100))
    np.testing.assert_array_equal(model.predict_interval(frame), before)


def test_a_level_out_of_range() -> None:
    model = Conformal(known()).fit([[0.0], [1.0]], [0.0, 1.0])
    with pytest.raises(ValueError, match="level must lie between 0 and 1, but it is 95"):
        model.predict_interval([[0.0]], level=95)
