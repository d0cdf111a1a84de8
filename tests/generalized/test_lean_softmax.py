"""Single rows of several classes: the kernel's way is the general one, told in other words."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from posterity import BayesianLogisticRegression
from posterity.forgetting import Exponential
from posterity.posteriors.softmax import SoftmaxPosterior

N, P = 260, 4
SETTINGS: list[dict[str, Any]] = [
    {"prior_precision": 1.0},
    {},
    {"prior_precision": 0.5, "approximation": "laplace"},
    {"prior_precision": 2.0, "fit_intercept": False},
    {"prior_precision": 0.0},
]


def problem(n_classes: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """Rows, labels and weights, the third feature far from 0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, P)) * [1.0, 3.0, 0.5, 1.0] + [0.0, 0.0, 2.0, 0.0]
    eta = X @ rng.normal(size=(P, n_classes)) / 2.0
    y = np.argmax(eta + rng.gumbel(size=eta.shape), axis=1)
    return X, y, rng.choice([0.0, 0.5, 1.0, 2.0], size=N)


def begun(n_classes: int, X: Any, y: Any, **settings: Any) -> BayesianLogisticRegression:
    model, first = BayesianLogisticRegression(**settings), start(settings)
    return model.partial_fit(X[:first], y[:first], classes=range(n_classes))


def start(settings: dict[str, Any]) -> int:
    """Rows to begin with: without a prior so many that they do not separate the classes."""
    return 90 if settings.get("prior_precision") == 0.0 else 40


def state(model: Any) -> list[Any]:
    known = model._posterior
    prior, contrasts = known.prior, known.contrasts
    rows = [] if known.recent is None else [known.recent.X, known.recent.labels, known.recent.fresh]
    sums = [known.n_observations, known.n_effective, prior.count, prior.center, prior.squares]
    factor = contrasts.parts[0].factor
    squares = factor.root.T @ factor.root
    predictive = [model.coef_, model.intercept_, squares, model.log_evidence_, contrasts.constant]
    return [*predictive, *sums, *rows, known.next_prior_update]


def assert_close(one: Any, other: Any) -> None:
    for a, b in zip(state(one), state(other), strict=True):
        assert np.allclose(a, b, rtol=1e-9, atol=1e-9)


def assert_same(before: list[Any], model: Any) -> None:
    assert all(np.array_equal(a, b) for a, b in zip(before, state(model), strict=True))


def in_a_loop(model: Any, X: Any, y: Any, weights: Any) -> np.ndarray:
    predictive = []
    for x, label, weight in zip(X, y, weights, strict=True):
        predictive.append(list(model.predict_proba_one(x).values()))
        model.learn_one(x, label, weight)
    return np.array(predictive)


def refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have single rows go the general way."""
    monkeypatch.setattr(SoftmaxPosterior, "has_fast_learn_one", False)
    monkeypatch.setattr(SoftmaxPosterior, "has_fast_predict_one", False)


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("n_classes", [3, 5])
def test_a_loop_is_the_general_way_and_the_pass_over_an_array(
    n_classes: int, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y, weights = problem(n_classes)
    lean, passed, plain = (begun(n_classes, X, y, **settings) for _ in range(3))
    rows = tuple(values[start(settings) :] for values in (X, y, weights))
    predictive = in_a_loop(lean, *rows)
    assert "_fast_learn_one" in vars(lean) or settings.get("prior_precision") is None
    ahead = passed.predict_then_learn(rows[0], rows[1], rows[2])
    refused(monkeypatch)
    expected = in_a_loop(plain, *rows)
    assert np.allclose(predictive, expected, rtol=1e-9, atol=1e-12)
    assert np.allclose(np.exp(ahead.log_probabilities), expected, rtol=1e-9, atol=1e-12)
    assert_close(lean, plain)
    assert_close(passed, plain)


def test_most_rows_go_the_lean_way(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, _ = problem(4)
    model, general = begun(4, X, y, prior_precision=1.0), []
    learn = BayesianLogisticRegression._learn_row
    monkeypatch.setattr(
        BayesianLogisticRegression,
        "_learn_row",
        lambda self, *row: (general.append(row), learn(self, *row))[1],
    )
    for x, label in zip(X[40:], y[40:], strict=True):
        model.learn_one(x, label)
    assert len(general) < 20


def test_names_arrays_and_lists_are_the_same_row() -> None:
    X, y, _ = problem(3)
    models = [BayesianLogisticRegression(prior_precision=1.0) for _ in range(2)]
    for x, label in zip(X[:80], y[:80].tolist(), strict=True):
        models[0].learn_one(dict(zip("abcd", x.tolist(), strict=True)), label)
        models[1].learn_one(x.tolist(), label)
    assert_same(state(models[0]), models[1])
    predictive = models[0].predict_proba_one(dict(zip("dcba", X[90, ::-1].tolist(), strict=True)))
    assert predictive == models[1].predict_proba_one(X[90])


@pytest.mark.parametrize("forgetting", [None, Exponential(0.99)])
def test_single_rows_are_predicted_as_arrays(forgetting: Any) -> None:
    X, y, _ = problem(3)
    model = begun(3, X, y, prior_precision=1.0, forgetting=forgetting)
    for x, label in zip(X[40:80], y[40:80], strict=True):
        model.learn_one(x, label)
    before = state(model)
    predictive = [list(model.predict_proba_one(x).values()) for x in X[100:110]]
    assert np.allclose(predictive, model.predict_proba(X[100:110]), rtol=1e-9, atol=1e-12)
    assert_same(before, model)


def test_reads_between_rows_change_nothing() -> None:
    X, y, _ = problem(3)
    read, left = begun(3, X, y), begun(3, X, y)
    for x, label in zip(X[40:], y[40:], strict=True):
        read.predict_one(x)
        read.predict_interval(x[None])
        read.learn_one(x, label)
        left.learn_one(x, label)
    assert_same(state(read), left)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_goes_its_own_way(copied: Any) -> None:
    X, y, _ = problem(3)
    model = begun(3, X, y, prior_precision=1.0)
    for x, label in zip(X[40:75], y[40:75], strict=True):
        model.learn_one(x, label)
        model.predict_one(x)
    before, twin = state(model), copied(model)
    branch = model._posterior.copy()
    for x, label in zip(X[75:100], y[75:100], strict=True):
        twin.learn_one(x, label)
    assert_same(before, model)
    predictive = branch.log_probabilities(branch.design(X[:5]))
    for x, label in zip(X[75:100], y[75:100], strict=True):
        model.learn_one(x, label)
    assert np.array_equal(predictive, branch.log_probabilities(branch.design(X[:5])))
    assert_close(twin, model)


REFUSED: list[tuple[Any, float, str]] = [
    ([1.0, np.nan, 1.0, 1.0], 1.0, "x in column 1 is not finite"),
    ([1.0, 1e200, 1.0, 1.0], 1.0, "x in column 1 is 1e\\+200: beyond 1e.75"),
    ([1.0], 1.0, "expected \\(4,\\), one value per feature"),
    ([0.0] * 4, -1.0, "weight is -1.0: it must be finite and not negative"),
    ({"a": 1.0}, 1.0, "x is a mapping of names"),
]


@pytest.mark.parametrize(("x", "weight", "message"), REFUSED)
def test_a_call_that_raises_changes_nothing(x: Any, weight: float, message: str) -> None:
    X, y, _ = problem(3)
    model = begun(3, X, y, prior_precision=1.0)
    for row, label in zip(X[40:70], y[40:70], strict=True):
        model.learn_one(row, label)
    assert "_fast_learn_one" in vars(model)
    before = state(model)
    with pytest.raises((ValueError, TypeError), match=message):
        model.learn_one(x, 1, weight)
    if weight > 0.0:
        with pytest.raises((ValueError, TypeError), match=message):
            model.predict_one(x)
    assert_same(before, model)


def test_a_class_that_comes_late_is_met_the_general_way() -> None:
    X, y, _ = problem(3)
    model = begun(3, X, y, prior_precision=1.0)
    for x, label in zip(X[40:60], y[40:60], strict=True):
        model.learn_one(x, label)
    model.learn_one(X[60], 7)
    assert list(model.predict_proba_one(X[61])) == [0, 1, 2, 7]
    assert sum(model.predict_proba_one(X[61]).values()) == pytest.approx(1.0)


def test_a_first_row_of_any_weight_has_no_spread() -> None:
    """The rounding of its mean is not taken for one."""
    X, y, _ = problem(3)
    one, other = (BayesianLogisticRegression() for _ in range(2))
    one.partial_fit(X[:1], y[:1], [1.6039131126133221], classes=range(3))
    other.partial_fit(X[:1], y[:1], [1.0], classes=range(3))
    assert np.allclose(one.prior_precision_, other.prior_precision_)
