"""Laws that hold for every way to forget, or for those that they name."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from posterity import BayesianLinearRegression
from posterity.forgetting import (
    Adaptive,
    Changepoint,
    Directional,
    Exponential,
    Forgetting,
    RandomWalk,
    Smoothing,
    Stabilized,
    Window,
)

FADING = [
    Exponential(0.97),
    Exponential(half_life=8.0),
    Stabilized(0.97),
    Stabilized(half_life=8.0),
    Directional(0.97),
    Smoothing(0.8),
    RandomWalk(0.01),
]
EXACT = [*FADING, Window(size=30), Window(duration=12.5)]
EVERY = [*EXACT, Adaptive(), Changepoint()]
# Prior and noise; the intercept's prior is flat in all that have one.
MODELS: dict[str, dict[str, Any]] = {
    "noise learned": {},
    "noise known": {"noise_precision": 4.0},
    "flat": {"prior_precision": 0.0},
    "precise": {"prior_precision": [3.0, 0.5, 1.0], "prior_mean": 1.0, "noise_prior": (2.0, 1.0)},
    "no intercept": {"fit_intercept": False, "noise_precision": 4.0},
}


def stream(n: int = 90, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, 1.0 + X @ [2.0, -1.0, 0.5] + 0.5 * rng.normal(size=n)


def assert_same_model(
    a: BayesianLinearRegression, b: BayesianLinearRegression, rel: float = 1e-9
) -> None:
    """The same posterior, to rounding."""
    points = stream(7, seed=99)[0]
    assert a.coef_ == pytest.approx(b.coef_, rel=rel, abs=rel)
    assert a.intercept_ == pytest.approx(b.intercept_, rel=rel, abs=rel)
    assert a.n_effective_ == pytest.approx(b.n_effective_, rel=rel)
    assert a.noise_precision_ == pytest.approx(b.noise_precision_, rel=rel, nan_ok=True)
    spread, expected = (m.predict_distribution(points).std() for m in (a, b))
    assert np.array_equal(np.isinf(spread), np.isinf(expected))
    known = np.isfinite(expected)
    assert spread[known] == pytest.approx(expected[known], rel=rel)


@pytest.mark.parametrize("settings", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("strategy", EXACT, ids=str)
def test_at_once_in_chunks_and_by_row(strategy: Forgetting, settings: dict[str, Any]) -> None:
    X, y = stream()
    once = BayesianLinearRegression(forgetting=strategy, **settings).fit(X, y)
    chunks = BayesianLinearRegression(forgetting=strategy, **settings)
    by_row = BayesianLinearRegression(forgetting=strategy, **settings)
    for part in np.array_split(np.arange(len(X)), [1, 2, 19, 55, 56, 71]):
        chunks.predict_then_learn(X[part], y[part])
    for x, target in zip(X, y, strict=True):
        by_row.learn_one(x, target)
    assert_same_model(once, chunks)
    assert_same_model(once, by_row)
    assert once.n_observations_ == by_row.n_observations_ == 90.0


@pytest.mark.parametrize("strategy", [s for s in EXACT if not isinstance(s, Stabilized)], ids=str)
def test_predictions_do_not_depend_on_the_chunks(strategy: Forgetting) -> None:
    X, y = stream()
    whole = BayesianLinearRegression(forgetting=strategy).predict_then_learn(X, y)
    model = BayesianLinearRegression(forgetting=strategy)
    parts = [
        model.predict_then_learn(X[part], y[part])
        for part in np.array_split(np.arange(len(X)), [1, 9, 40, 41])
    ]
    means = np.concatenate([part.mean() for part in parts])
    scales = np.concatenate([part.std() for part in parts])
    assert means == pytest.approx(whole.mean(), rel=1e-8, abs=1e-9)
    assert np.array_equal(np.isinf(scales), np.isinf(whole.std()))
    known = np.isfinite(scales)
    assert scales[known] == pytest.approx(whole.std()[known], rel=1e-8)


def test_stabilized_predictions_are_a_little_more_cautious_within_a_call() -> None:
    """Between rows the prior weighs 1 to 1.1 / 0.6 times its own, and never less."""
    X, y = stream(300)
    settings = {"noise_precision": 4.0, "fit_intercept": False}
    strategy = Stabilized(0.9)
    model = BayesianLinearRegression(prior_precision=1.0, forgetting=strategy, **settings)
    within = model.predict_then_learn(X, y)
    for i in (5, 80, 299):
        weights = 0.9 ** np.arange(i, 0, -1.0)
        for weight, sign in ((1.0, 1.0), (1.1 / 0.6, -1.0)):
            exact = BayesianLinearRegression(prior_precision=weight, **settings)
            exact.fit(X[:i], y[:i], sample_weight=weights)
            bound = exact.predict_distribution(X[i : i + 1]).std()[0]
            assert sign * within.std()[i] <= sign * bound * (1.0 + sign * 1e-9)


def test_adaptive_hardly_depends_on_the_chunks() -> None:
    """Its members are Stabilized, and their predictions within a call decide on its weights."""
    X, y = stream(400)
    once = BayesianLinearRegression(forgetting=Adaptive()).fit(X, y)
    chunks = BayesianLinearRegression(forgetting=Adaptive())
    for part in np.array_split(np.arange(len(X)), 23):
        chunks.partial_fit(X[part], y[part])
    assert once.coef_ == pytest.approx(chunks.coef_, abs=2e-3)
    assert once.noise_precision_ == pytest.approx(chunks.noise_precision_, rel=0.02)


@pytest.mark.parametrize("strategy", EVERY, ids=str)
def test_a_prediction_knows_nothing_of_later_rows(strategy: Forgetting) -> None:
    X, y = stream()
    whole = BayesianLinearRegression(forgetting=strategy).predict_then_learn(X, y)
    changed = y.copy()
    changed[60:] += 100.0
    other = BayesianLinearRegression(forgetting=strategy).predict_then_learn(X, changed)
    # A mean is its target minus the error: the same up to rounding of the target.
    assert whole.mean()[:61] == pytest.approx(other.mean()[:61], rel=1e-12, abs=1e-12)
    assert whole.std()[:61] == pytest.approx(other.std()[:61], rel=1e-9)


@pytest.mark.parametrize("strategy", EVERY, ids=str)
def test_times_one_apart_are_no_times(strategy: Forgetting) -> None:
    X, y = stream()
    timed = BayesianLinearRegression(forgetting=strategy)
    for part in (slice(0, 33), slice(33, 89)):
        timed.partial_fit(X[part], y[part], times=np.arange(100.0, 190.0)[part])
    timed.learn_one(X[89], y[89], time=189.0)
    plain = BayesianLinearRegression(forgetting=strategy)
    for part in (slice(0, 33), slice(33, 89)):
        plain.partial_fit(X[part], y[part])
    plain.learn_one(X[89], y[89])
    assert_same_model(timed, plain)


@pytest.mark.parametrize("strategy", FADING, ids=str)
def test_time_without_rows_forgets_as_rows_do(strategy: Forgetting) -> None:
    """A gap of 10 is 10 times the forgetting: rows of weight 0 stand for what did not come."""
    X, y = stream(50)
    times = np.arange(50.0) + 9.0 * (np.arange(50) >= 40)
    gap = BayesianLinearRegression(forgetting=strategy).fit(X, y, times=times)
    filled = np.repeat(np.arange(50), np.where(np.arange(50) == 40, 10, 1))
    weights = np.ones(59)
    weights[40:49] = 0.0
    model = BayesianLinearRegression(forgetting=strategy)
    model.fit(X[filled], y[filled], sample_weight=weights, times=np.arange(59.0))
    assert_same_model(gap, model)


@pytest.mark.parametrize("strategy", EVERY, ids=str)
def test_a_row_of_weight_zero_is_no_row(strategy: Forgetting) -> None:
    """Without times it takes none, and no place in a window; it is predicted all the same."""
    X, y = stream(50)
    plain = BayesianLinearRegression(forgetting=strategy)
    expected = plain.predict_then_learn(X, y)
    model = BayesianLinearRegression(forgetting=strategy)
    twice = np.repeat(np.arange(50), 2)
    predictive = model.predict_then_learn(X[twice], y[twice], sample_weight=np.arange(100) % 2)
    if isinstance(strategy, Stabilized | Adaptive):  # within a call they are a little cautious
        assert model.coef_ == pytest.approx(plain.coef_, rel=0.02)
        return
    assert predictive.mean()[1::2] == pytest.approx(expected.mean(), rel=1e-6, abs=1e-6)
    assert_same_model(model, plain, rel=1e-6)


@pytest.mark.parametrize("kind", [Exponential, Stabilized])
def test_a_gap_of_ten_is_ten_discounts(kind: type) -> None:
    X, y = stream(40)
    model = BayesianLinearRegression(forgetting=kind(0.9))
    model.fit(X, y, times=np.append(np.arange(39.0), 48.0))
    faded = 0.9**10 * (1.0 - 0.9**39) / 0.1
    assert model.n_effective_ == pytest.approx(faded + 1.0, rel=1e-12)


@pytest.mark.parametrize("kind", [Exponential, Stabilized, Directional])
def test_a_half_life_is_a_discount(kind: type) -> None:
    X, y = stream()
    a = BayesianLinearRegression(forgetting=kind(half_life=7.0)).fit(X, y)
    b = BayesianLinearRegression(forgetting=kind(0.5 ** (1.0 / 7.0))).fit(X, y)
    assert_same_model(a, b, rel=1e-12)


@pytest.mark.parametrize("strategy", [*FADING, Window(duration=12.5)], ids=str)
@pytest.mark.parametrize("settings", MODELS.values(), ids=MODELS)
def test_weight_two_is_the_row_twice_at_one_time(
    strategy: Forgetting, settings: dict[str, Any]
) -> None:
    X, y = stream(60)
    weights = np.random.default_rng(3).integers(0, 4, size=60)
    weights[0] = 1
    times = np.arange(60.0)
    weighted = BayesianLinearRegression(forgetting=strategy, **settings)
    weighted.fit(X, y, sample_weight=weights, times=times)
    # A row that weighs nothing still lets its time pass: keep those, with weight 0.
    often = np.repeat(np.arange(60), np.maximum(weights, 1))
    repeated = BayesianLinearRegression(forgetting=strategy, **settings)
    repeated.fit(
        X[often], y[often], sample_weight=(weights[often] > 0).astype(float), times=times[often]
    )
    assert_same_model(weighted, repeated, rel=1e-8)


@pytest.mark.parametrize("strategy", [Directional(0.97), RandomWalk(0.01)], ids=str)
def test_rows_before_which_the_noise_is_nothing_add_no_evidence(strategy: Forgetting) -> None:
    """Rows that come again before there are four say that the noise is 0, whatever comes next."""
    X, y = stream(60)
    often = np.repeat(np.arange(60), np.where(np.arange(60) < 4, 3, 1))
    model = BayesianLinearRegression(forgetting=strategy, prior_precision=0.0)
    predicted = model.predict_then_learn(X[often], y[often], times=often.astype(float))
    with np.errstate(all="ignore"):
        densities = predicted.logpdf(y[often])[13:]
    assert model.log_evidence_ == pytest.approx(densities.sum(), rel=1e-9)


@pytest.mark.parametrize(
    "strategy",
    [Exponential(1.0), Stabilized(1.0), Directional(1.0), RandomWalk(0.0), Window(size=90)],
    ids=str,
)
@pytest.mark.parametrize("settings", MODELS.values(), ids=MODELS)
def test_forgetting_nothing_is_no_forgetting(
    strategy: Forgetting, settings: dict[str, Any]
) -> None:
    X, y = stream()
    ours = BayesianLinearRegression(forgetting=strategy, **settings)
    plain = BayesianLinearRegression(**settings)
    predicted, expected = ours.predict_then_learn(X, y), plain.predict_then_learn(X, y)
    assert predicted.mean() == pytest.approx(expected.mean(), rel=1e-9, abs=1e-9)
    assert_same_model(ours, plain)
    if isinstance(strategy, Directional | RandomWalk):
        # Theirs is the sum over rows, and the first rows of an improper prior add nothing to it.
        assert ours.log_evidence_ == pytest.approx(predicted.logpdf(y).sum(), rel=1e-9)
    else:
        assert ours.log_evidence_ == pytest.approx(plain.log_evidence_, rel=1e-9)


@given(
    seed=st.integers(0, 10**6),
    discount=st.floats(0.3, 1.0),
    n=st.integers(1, 60),
    cut=st.integers(0, 60),
)
def test_effective_rows(seed: int, discount: float, n: int, cut: int) -> None:
    """Sum of the weights as they have faded, whatever the chunks."""
    X, y = stream(n, seed)
    weights = np.random.default_rng(seed).uniform(0.1, 2.0, size=n)
    faded = discount ** np.arange(n - 1, -1, -1.0)
    # The rows that found intercept and slopes count one each, which does not fade.
    spent = np.arange(n) < 4
    expected = float(weights @ faded)
    strategies = {
        Exponential(discount): expected,
        Stabilized(discount): expected,
        Directional(discount): float((weights - spent) @ faded + spent.sum()),
    }
    for strategy, expected in strategies.items():
        model = BayesianLinearRegression(forgetting=strategy)
        for part in (slice(0, cut), slice(cut, n)):
            if len(y[part]):
                model.partial_fit(X[part], y[part], sample_weight=weights[part])
        assert model.n_effective_ == pytest.approx(expected, rel=1e-12)
        assert model.n_observations_ == pytest.approx(weights.sum(), rel=1e-12)


def test_effective_rows_of_the_others() -> None:
    X, y = stream()
    smoothing = BayesianLinearRegression(forgetting=Smoothing(0.8)).fit(X, y)
    assert smoothing.n_effective_ == pytest.approx(1.0, abs=1e-6)  # never more than one row
    window = BayesianLinearRegression(forgetting=Window(size=30)).fit(X, y)
    assert window.n_effective_ == 30.0
    random_walk = BayesianLinearRegression(forgetting=RandomWalk(0.1)).fit(X, y)
    assert random_walk.n_effective_ == 90.0
    adaptive = BayesianLinearRegression(forgetting=Adaptive()).fit(X, y)
    assert 1.0 < adaptive.n_effective_ <= 90.0 * (1.0 + 1e-12)


@pytest.mark.parametrize("noise_precision", [None, 4.0])
def test_merging_stabilized_models_pools_their_data(noise_precision: float | None) -> None:
    """Prior once, and the rows of both as they have faded."""
    X, y = stream(120)
    settings: dict[str, Any] = {"prior_mean": 0.3, "noise_precision": noise_precision}
    settings["prior_precision"] = 1.0
    halves = [
        BayesianLinearRegression(forgetting=Stabilized(0.95), **settings).fit(X[part], y[part])
        for part in (slice(0, 50), slice(50, 120))
    ]
    weights = 0.95 ** np.concatenate([np.arange(49, -1, -1.0), np.arange(69, -1, -1.0)])
    pooled = BayesianLinearRegression(**settings).fit(X, y, sample_weight=weights)
    merged = halves[0].merge(halves[1])
    assert_same_model(merged, pooled)
    assert merged.log_evidence_ == pytest.approx(pooled.log_evidence_, rel=1e-9)
    assert merged.n_observations_ == 120.0


def spoilt(kind: str, X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Arguments that must be refused."""
    X, y = X.copy(), y.copy()
    if kind == "NaN":
        X[3, 1] = np.nan
    elif kind == "infinite target":
        y[4] = np.inf
    elif kind == "overflow":
        X[5, 2] = 1e200
    elif kind == "width":
        X = X[:, :2]
    weights = np.full(len(X), -1.0) if kind == "weights" else None
    return {"X": X, "y": y, "sample_weight": weights}


@pytest.mark.parametrize(
    "kind", ["NaN", "infinite target", "overflow", "width", "weights", "times"]
)
# A window that is shorter than a call: the bad row has left it again at the end.
@pytest.mark.parametrize("strategy", [*EVERY, Window(size=3)], ids=str)
def test_a_call_that_fails_changes_nothing(strategy: Forgetting, kind: str) -> None:
    X, y = stream()
    times = np.arange(90.0)
    model = BayesianLinearRegression(forgetting=strategy)
    model.partial_fit(X[:40], y[:40], times=times[:40])
    before = copy.deepcopy(model)
    bad = spoilt(kind, X[40:60], y[40:60])
    wrong_times = times[30:50] if kind == "times" else times[40:60]
    for call in (model.partial_fit, model.predict_then_learn):
        with pytest.raises(ValueError, match=r"row|features|weights"):
            call(**bad, times=wrong_times)
    assert model.n_observations_ == 40.0
    for each in (model, before):
        each.partial_fit(X[60:], y[60:], times=times[60:])
    assert np.array_equal(model.coef_, before.coef_)
    points = X[:5]
    spread, expected = (m.predict_distribution(points).std() for m in (model, before))
    assert np.array_equal(spread, expected)
    assert model.n_effective_ == before.n_effective_


@pytest.mark.parametrize("strategy", EVERY, ids=str)
def test_a_first_call_that_fails_leaves_a_model_without_knowledge(strategy: Forgetting) -> None:
    X, y = stream(20)
    model = BayesianLinearRegression(forgetting=strategy)
    with pytest.raises(ValueError, match="NaN in row 3, column 1"):
        model.partial_fit(**spoilt("NaN", X, y))
    assert not hasattr(model, "n_features_in_")
    model.fit(X, y)
    assert_same_model(model, BayesianLinearRegression(forgetting=strategy).fit(X, y))


@pytest.mark.parametrize("strategy", EVERY, ids=str)
def test_fit_starts_anew_and_copies_are_apart(strategy: Forgetting) -> None:
    X, y = stream()
    model = BayesianLinearRegression(forgetting=strategy).fit(X[:50], y[:50])
    other = copy.deepcopy(model)
    other.partial_fit(X[50:], y[50:])
    assert model.n_observations_ == 50.0
    fresh = clone(model).fit(X[50:], y[50:])
    assert_same_model(model.fit(X[50:], y[50:]), fresh, rel=1e-12)


@pytest.mark.parametrize("strategy", EVERY, ids=str)
def test_rows_are_given_as_they_are_and_stay_so(strategy: Forgetting) -> None:
    X, y = stream()
    times, weights = np.arange(90.0), np.ones(90)
    kept = [array.copy() for array in (X, y, times, weights)]
    model = BayesianLinearRegression(forgetting=strategy)
    model.fit(X, y, sample_weight=weights, times=times)
    for array, before in zip((X, y, times, weights), kept, strict=True):
        assert np.array_equal(array, before)
    X[:] = y[:] = 0.0  # what a window keeps is its own
    model.learn_one(kept[0][0], kept[1][0], time=90.0)
    again = BayesianLinearRegression(forgetting=strategy)
    again.fit(kept[0], kept[1], sample_weight=weights, times=times)
    assert_same_model(model, again.learn_one(kept[0][0], kept[1][0], time=90.0))


@pytest.mark.parametrize("strategy", EVERY, ids=str)
@pytest.mark.parametrize("learned", [False, True])
def test_the_lean_prediction_is_the_prediction(strategy: Forgetting, learned: bool) -> None:
    """Under a prior that is learned: that of the stream, whose prior is a few rows old."""
    X, y = stream(40)
    prior: Any = "auto" if learned else 1.0
    model = BayesianLinearRegression(prior_precision=prior, forgetting=strategy)

    def predictive(x: Any) -> float:
        twin = copy.deepcopy(model)
        return float((twin._posterior.predict_mean_ahead if learned else twin.predict)(x[None])[0])

    for x, target in zip(X, y, strict=True):
        model.predict_one(x)
        model.learn_one(x, target)
        assert model.predict_one(x) == pytest.approx(predictive(x), rel=1e-9)
    model.partial_fit(X, y)
    assert model.predict_one(X[0]) == pytest.approx(predictive(X[0]), rel=1e-9)


@pytest.mark.parametrize("strategy", [RandomWalk(0.05), Adaptive()], ids=str)
@pytest.mark.parametrize(
    "settings", [{"noise_precision": 4.0}, {"noise_prior": (2.0, 1.0)}], ids=str
)
def test_the_evidence_is_the_sum_of_the_log_predictive_densities(
    strategy: Forgetting, settings: dict[str, Any]
) -> None:
    """Where a strategy is a model of how the world changes, its evidence is that of the stream."""
    X, y = stream()
    model = BayesianLinearRegression(forgetting=strategy, fit_intercept=False, **settings)
    predicted = model.predict_then_learn(X, y)
    assert model.log_evidence_ == pytest.approx(predicted.logpdf(y).sum(), rel=1e-9)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
@pytest.mark.parametrize(
    "strategy",
    [
        Exponential(0.5),
        Stabilized(0.5),
        Smoothing(0.5),
        Directional(0.5),
        Window(size=5),
        Adaptive(),
    ],
    ids=str,
)
def test_what_is_unusable_is_refused_even_if_it_would_be_forgotten(
    strategy: Forgetting, value: float
) -> None:
    X, y = stream(3_000)
    y[3] = value
    with pytest.raises(ValueError, match="in row 3"):
        BayesianLinearRegression(forgetting=strategy).fit(X, y)
