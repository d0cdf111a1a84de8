"""Single rows of classes and counts: the lean path is the general one, told in other words."""

from __future__ import annotations

import copy
import itertools
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from posterity import BayesianLogisticRegression, BayesianPoissonRegression
from posterity.forgetting import Exponential, Stabilized
from posterity.likelihoods.moderation import log_odds_averaged
from posterity.posteriors.generalized import GeneralizedPosterior

N, P = 400, 4
NAMES = list("abcd")
Model = BayesianLogisticRegression | BayesianPoissonRegression
MODELS = [BayesianLogisticRegression, BayesianPoissonRegression]


def problem(kind: type[Model], seed: int = 0) -> tuple[Any, Any, Any]:
    """Rows, targets and weights; the third feature is constant for a while."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, P)) * [1.0, 3.0, 0.5, 1.0]
    X[:150, 2] = 2.0
    eta = 0.3 + X @ rng.normal(size=P) / 4.0
    counts = rng.poisson(np.exp(np.minimum(eta, 3.0)))
    y = (rng.random(N) < 1.0 / (1.0 + np.exp(-eta))).astype(int)
    targets = y if kind is BayesianLogisticRegression else counts
    return X, targets, rng.integers(0, 3, size=N).astype(float)


def begun(kind: type[Model], X: Any, y: Any, **settings: Any) -> Any:
    named = {"classes": [0, 1]} if kind is BayesianLogisticRegression else {}
    return kind(**settings).partial_fit(X[:1], y[:1], **named)


def beyond_the_start(**settings: Any) -> BayesianPoissonRegression:
    """A model whose first rows, which go another way, have come."""
    model = BayesianPoissonRegression(**settings)
    for _ in range(70):
        model.learn_one([1.0], 2.0)
    return model


def state(model: Any) -> list[Any]:
    known = model._posterior
    statistics = known.statistics
    sums = [statistics.log_sites, statistics.log_predictive, statistics.seen, statistics.effective]
    predictive = [np.ravel(model.coef_), np.ravel(model.intercept_), known.log_evidence, *sums]
    return [*predictive, model.prior_precision_]


@pytest.mark.parametrize("approximation", ["laplace", "moments"])
@pytest.mark.parametrize(
    ("prior_precision", "weighted"),
    [
        *itertools.product(["auto", 1.0, 0.0], [False, True]),
        pytest.param("ard", False, marks=pytest.mark.slow),
        ("ard", True),
    ],
)
@pytest.mark.parametrize("kind", MODELS)
def test_a_loop_is_the_pass_over_the_array(
    kind: type[Model], weighted: bool, prior_precision: Any, approximation: str
) -> None:
    X, y, weights = problem(kind)
    weights = weights if weighted else np.ones(N)
    settings = {"prior_precision": prior_precision, "approximation": approximation}
    passed, loop = begun(kind, X, y, **settings), begun(kind, X, y, **settings)
    passed.predict_then_learn(X[1:], y[1:], sample_weight=weights[1:])
    for x, target, weight in zip(X[1:], y[1:], weights[1:], strict=True):
        loop.learn_one(x, target, weight)
    assert "_fast_learn_one" in vars(loop)
    for one, other in zip(state(passed), state(loop), strict=True):
        assert np.allclose(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("prior_precision", ["auto", 1.0])
def test_names_arrays_and_lists_are_the_same_row(kind: type[Model], prior_precision: Any) -> None:
    X, y, _ = problem(kind)
    models = [kind(prior_precision=prior_precision) for _ in range(3)]
    for x, target in zip(X[:60], y[:60].tolist(), strict=True):
        ways = (x, x.tolist(), dict(zip(NAMES, x.tolist(), strict=True)))
        for model, way in zip(models, ways, strict=True):
            model.learn_one(way, target)
    expected = state(models[0])
    for model in models[1:]:
        for one, other in zip(expected, state(model), strict=True):
            assert np.array_equal(one, other)
    row = dict(zip(reversed(NAMES), X[70, ::-1].tolist(), strict=True))
    assert models[2].predict_one(row) == models[0].predict_one(X[70])


@pytest.mark.parametrize("forgetting", [None, Stabilized(0.99), Exponential(0.99)])
def test_single_rows_are_predicted_as_arrays(forgetting: Any) -> None:
    X, y, _ = problem(BayesianLogisticRegression)
    model = BayesianLogisticRegression(prior_precision=1.0, forgetting=forgetting)
    for i in range(N - 100):
        model.learn_one(X[i], y[i])
    predictive = [model.predict_proba_one(x) for x in X[-100:]]
    assert list(predictive[0]) == [0, 1]
    assert np.allclose([list(one.values()) for one in predictive], model.predict_proba(X[-100:]))
    X, y, _ = problem(BayesianPoissonRegression)
    rates = BayesianPoissonRegression(prior_precision=1.0, forgetting=forgetting)
    for i in range(N - 100):
        rates.learn_one(X[i], y[i])
    assert np.allclose([rates.predict_one(x) for x in X[-100:]], rates.predict(X[-100:]))


@pytest.mark.parametrize("approximation", ["laplace", "moments"])
@pytest.mark.parametrize("forgetting", [Exponential(0.98), Stabilized(0.98), Stabilized(0.5)])
@pytest.mark.parametrize("prior", [0.5, "auto"])
@pytest.mark.parametrize("kind", MODELS)
def test_fading_rows_are_learned_as_the_general_way_does(
    kind: type[Model],
    prior: Any,
    forgetting: Any,
    approximation: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y, weights = problem(kind)
    settings = {"prior_precision": prior, "approximation": approximation, "forgetting": forgetting}
    lean, plain = (begun(kind, X, y, **settings) for _ in range(2))
    for x, target, weight in zip(X[1:200], y[1:200], weights[1:200], strict=True):
        lean.learn_one(x, target, weight)
    assert "_fast_learn_one" in vars(lean)
    monkeypatch.setattr(GeneralizedPosterior, "has_fast_learn_one", False)
    for x, target, weight in zip(X[1:200], y[1:200], weights[1:200], strict=True):
        plain.learn_one(x, target, weight)
    assert "_fast_learn_one" not in vars(plain)
    for one, other in zip(state(lean), state(plain), strict=True):
        assert np.allclose(one, other, rtol=1e-9, atol=1e-9)


def test_under_a_learned_prior_a_row_is_predicted_as_in_the_pass_over_the_array() -> None:
    X, y, weights = problem(BayesianLogisticRegression)
    passed, loop, unread = (begun(BayesianLogisticRegression, X, y) for _ in range(3))
    expected = passed.predict_then_learn(X[1:], y[1:], sample_weight=weights[1:]).pmf(1)
    predictive = []
    for x, target, weight in zip(X[1:], y[1:], weights[1:], strict=True):
        predictive.append(loop.predict_proba_one(x)[1])
        loop.learn_one(x, target, weight)
        unread.learn_one(x, target, weight)
    # Where a feature begins to vary, more is open than the pass knows of.
    same = np.delete(np.arange(10, N - 1), 149 - 10)
    assert np.allclose(np.array(predictive)[same], expected[same], rtol=1e-9, atol=1e-12)
    assert all(np.array_equal(a, b) for a, b in zip(state(loop), state(unread), strict=True))


@given(
    st.floats(-60.0, 60.0), st.floats(1e-6, 1e4), st.sampled_from([("no", "yes"), ("yes", "no")])
)
def test_probabilities_are_those_of_the_twin(
    mean: float, variance: float, labels: tuple[str, str]
) -> None:
    # There the mixture's error, 2e-9, is passed on to the other tail.
    assume(abs(abs(mean) - variance) > 1e-6)
    model = BayesianLogisticRegression(
        prior_mean=mean, prior_precision=1.0 / variance, fit_intercept=False
    )
    model.partial_fit([[1.0]], [labels[0]], sample_weight=[0.0], classes=labels)
    predictive = model.predict_proba_one([1.0])
    yes, no = (np.exp(one[0]) for one in log_odds_averaged([mean], [variance]))
    assert predictive["yes"] == pytest.approx(yes, rel=1e-9, abs=1e-15)
    assert predictive["no"] == pytest.approx(no, rel=1e-9, abs=1e-15)


def test_the_lean_path_and_the_others_take_turns() -> None:
    X, y, _ = problem(BayesianLogisticRegression)
    mixed, plain = (begun(BayesianLogisticRegression, X, y) for _ in range(2))
    for i in range(1, 50):
        mixed.learn_one(X[i], y[i])
    mixed.predict_then_learn(X[50:90], y[50:90])
    mixed.learn_one(X[90], y[90], time=1.0)
    assert mixed._now == 1.0
    for i in range(91, 120):
        mixed.learn_one(X[i], y[i], time=float(i))
    with pytest.raises(ValueError, match="earlier rows had times: give times for these as well"):
        mixed.learn_one(X[120], y[120])
    plain.predict_then_learn(X[1:120], y[1:120])
    for one, other in zip(state(mixed), state(plain), strict=True):
        assert np.allclose(one, other, rtol=1e-9, atol=1e-9)


def test_a_third_label_and_one_that_sorts_first() -> None:
    model = BayesianLogisticRegression(prior_precision=1.0)
    for x, label in [(1.0, "m"), (-1.0, "a"), (0.5, "m"), (-0.5, "a")]:
        model.learn_one([x], label)
    assert model._flipped
    predictive = model.predict_proba_one([2.0])
    assert list(predictive) == ["a", "m"]
    assert predictive["m"] > 0.5
    assert predictive["m"] == pytest.approx(model.predict_proba([[2.0]])[0, 1])
    model.learn_one([0.0], "z")
    assert list(model.predict_proba_one([2.0])) == ["a", "m", "z"]
    assert "_fast_learn_one" not in vars(model)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
@pytest.mark.parametrize("kind", MODELS)
def test_a_copy_goes_its_own_way(kind: type[Model], copied: Any) -> None:
    X, y, _ = problem(kind)
    model = begun(kind, X, y)
    for i in range(1, 30):
        model.learn_one(X[i], y[i])
        model.predict_one(X[i])
    before = state(model)
    twin = copied(model)
    assert not {"_row_path", "_fast_learn_one", "_fast_predict_one"} & set(vars(twin))
    for i in range(30, 60):
        twin.learn_one(X[i], y[i])
    assert all(np.array_equal(a, b) for a, b in zip(before, state(model), strict=True))
    for i in range(30, 60):
        model.learn_one(X[i], y[i])
    assert all(np.array_equal(a, b) for a, b in zip(state(twin), state(model), strict=True))


REFUSED: list[tuple[Any, Any, float, str]] = [
    ([1.0, np.nan, 1.0, 1.0], 1, 1.0, "x in column 1 is not finite"),
    ([1.0, 1e200, 1.0, 1.0], 1, 1.0, "x in column 1 is 1e\\+200: beyond 1e.75"),
    ([1.0], 1, 1.0, "expected \\(4,\\), one value per feature"),
    ([0.0] * 4, 1, -1.0, "weight is -1.0: it must be finite and not negative"),
    ({"a": 1.0}, 1, 1.0, "x is a mapping of names"),
]


@pytest.mark.parametrize(("x", "y", "weight", "message"), REFUSED)
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("prior_precision", ["auto", 1.0])
def test_a_call_that_raises_changes_nothing(
    kind: type[Model], prior_precision: Any, x: Any, y: Any, weight: float, message: str
) -> None:
    X, targets, _ = problem(kind)
    model = begun(kind, X, targets, prior_precision=prior_precision)
    for i in range(1, 80):  # beyond the start, which goes another way
        model.learn_one(X[i], targets[i])
    before = state(model)
    with pytest.raises((ValueError, TypeError), match=message):
        model.learn_one(x, y, weight)
    if weight > 0.0:
        with pytest.raises((ValueError, TypeError), match=message):
            model.predict_one(x)
    assert all(np.array_equal(a, b) for a, b in zip(before, state(model), strict=True))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (-1.0, "y in row 0 is -1: a count must be a whole number, 0 or more"),
        (np.nan, "y is not finite"),
        (1e200, "y is 1e\\+200: beyond 1e.75"),
    ],
)
def test_what_is_no_count_is_refused(y: float, message: str) -> None:
    model = beyond_the_start(prior_precision=1.0)
    before = state(model)
    with pytest.raises(ValueError, match=message):
        model.learn_one([1.0], y)
    assert all(np.array_equal(a, b) for a, b in zip(before, state(model), strict=True))
    with pytest.raises(ValueError, match="a count must be a whole number"):
        model.learn_one([1.0], 2.5)


def test_rows_too_large_together_are_refused() -> None:
    model = BayesianPoissonRegression(prior_precision=1e-300).learn_one([1.0], 2.0)
    before = state(model)
    with pytest.raises(ValueError, match=r"with the weight 1e\+100: beyond 1e\+75"):
        model.learn_one([1e74], 1e10, 1e100)
    assert all(np.array_equal(a, b) for a, b in zip(before, state(model), strict=True))


@pytest.mark.parametrize("kind", MODELS)
def test_rows_that_say_little_are_kept_for_longer(kind: type[Model]) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(N, P))
    y = (rng.random(N) < 0.03).astype(int)
    passed, loop = begun(kind, X, y), begun(kind, X, y)
    passed.predict_then_learn(X[1:], y[1:])
    for x, target in zip(X[1:], y[1:], strict=True):
        loop.learn_one(x, target)
    for one, other in zip(state(passed), state(loop), strict=True):
        assert np.allclose(one, other, rtol=1e-9, atol=1e-9)
    for model in (passed, loop, pickle.loads(pickle.dumps(loop))):
        np.testing.assert_array_equal(model._posterior.statistics.start.X, X)
        model.unlearn(X[100:], y[100:])
        few = begun(kind, X, y).partial_fit(X[1:100], y[1:100])
        few._posterior._fit_again(few._posterior.statistics.start)
        assert np.allclose(model.coef_, few.coef_, rtol=1e-9, atol=1e-9)


def test_rows_are_kept_until_they_say_enough() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(5000, P))
    for share, kept in ((0.5, 0), (0.2, 0), (0.002, 5000)):
        model = BayesianLogisticRegression()
        model.predict_then_learn(X[:3000], rng.random(3000) < share, classes=[False, True])
        start = model._posterior.statistics.start
        assert (0 if start is None else len(start)) == min(kept, 3000)
        model.predict_then_learn(X[3000:], rng.random(2000) < share)
        assert model._posterior.statistics.start is None  # four thousand rows at most


def test_threads_keep_all_first_rows() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(N, P))
    model = BayesianLogisticRegression().partial_fit(X[:2], [0, 1])
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda x: model.learn_one(x, 0), X[2:]))
    start = model._posterior.statistics.start
    assert model.n_observations_ == len(start) == N
    np.testing.assert_array_equal(np.sort(start.X, axis=0), np.sort(X, axis=0))
