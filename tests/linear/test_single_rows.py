"""Single rows, the lean way, under learned priors, with a basis and under Adaptive."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posterity import BayesianLinearRegression
from posterity.basis import Polynomial, Spline
from posterity.evidence import Maximized
from posterity.factor import Factor
from posterity.files import dumps
from posterity.forgetting import Adaptive, Exponential, Stabilized
from posterity.kernel import MemberNoises, MembersPath
from posterity.posteriors.switching import TwoLevelWeights

SHORT = Adaptive(discounts=(1.0, 0.97, 0.8))
LEARNED: list[Any] = ["auto", "ard", Maximized()]
MODELS: dict[str, dict[str, Any]] = {
    "learned": {},
    "learned, known noise": {"noise_precision": 2.0},
    "learned, Exponential": {"forgetting": Exponential(0.95)},
    "learned, Stabilized": {"forgetting": Stabilized(0.95)},
    "learned, Maximized": {"prior_precision": Maximized(), "forgetting": Stabilized(0.95)},
    "learned, Adaptive": {"forgetting": SHORT},
    "learned, Adaptive, known noise": {"forgetting": SHORT, "noise_precision": 2.0},
    "given, Adaptive": {"prior_precision": 1.0, "forgetting": SHORT},
    "flat, Adaptive": {"prior_precision": 0.0, "forgetting": SHORT},
    "given, Adaptive, known noise": {
        "prior_precision": 1.0,
        "forgetting": SHORT,
        "noise_precision": 2.0,
    },
    "given, spline": {"prior_precision": 1.0, "basis": Spline(domain=(-2.0, 2.0), n_knots=4)},
    "learned, spline": {"basis": Spline(domain=(-2.0, 2.0), n_knots=4)},
    "learned, polynomial, Stabilized": {
        "basis": Polynomial(domain=(-2.0, 2.0), degree=2),
        "forgetting": Stabilized(0.95),
    },
}


def stream(seed: int, n: int = 60, *, waits: bool = True) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X, weights = rng.normal(size=(n, 3)), rng.choice([0.0, 0.5, 1.0, 1.0, 2.0], size=n)
    if waits:
        X[: n // 3, 1] = 2.0  # a feature that begins to vary on the way
    y = X @ [1.0, 2.0, 0.0] + rng.normal(size=n)
    y[n // 2 :] -= 2.0
    weights[0] = 1.0
    return X, y, weights


def assert_same(one: Any, other: Any, X: Any) -> None:
    np.testing.assert_allclose(one.predict(X), other.predict(X), rtol=1e-9, atol=1e-9)
    predictive, twin = (model.predict_distribution(X) for model in (one, other))
    np.testing.assert_allclose(predictive.std(), twin.std(), rtol=1e-9)
    assert one.n_observations_ == pytest.approx(other.n_observations_, rel=1e-12)
    assert one.n_effective_ == pytest.approx(other.n_effective_, rel=1e-9)
    assert one.log_evidence_ == pytest.approx(other.log_evidence_, rel=1e-9, abs=1e-9)


def ahead(model: Any, x: Any) -> float:
    """The ordinary way to say what ``predict_one`` does, on a copy that has no lean path."""
    twin = copy.deepcopy(model)
    return float(twin._posterior.predict_mean_ahead(twin._columns(x[None]))[0])


@pytest.mark.parametrize("name", MODELS)
@given(seed=st.integers(0, 2**32 - 1), fit_intercept=st.booleans())
def test_rows_one_by_one_are_arrays_of_one_row(name: str, seed: int, fit_intercept: bool) -> None:
    X, y, weights = stream(seed, 40)
    lean, ordinary = (
        BayesianLinearRegression(**MODELS[name], fit_intercept=fit_intercept) for _ in range(2)
    )
    for i in range(len(X)):
        lean.learn_one(X[i], y[i], weights[i])
        ordinary.partial_fit(X[i : i + 1], y[i : i + 1], weights[i : i + 1])
        predictive = lean.predict_one(X[i])
        if i % 5 == 0:
            for model in (lean, ordinary):
                assert predictive == pytest.approx(ahead(model, X[i]), rel=1e-9, abs=1e-9)
    assert_same(lean, ordinary, X[:9])


@given(
    seed=st.integers(0, 2**32 - 1),
    learned=st.sampled_from(LEARNED),
    forgetting=st.sampled_from([None, Exponential(0.95)]),
    fit_intercept=st.booleans(),
)
def test_predicted_and_learned_one_by_one_is_one_call(
    seed: int, learned: Any, forgetting: Any, fit_intercept: bool
) -> None:
    X, y, weights = stream(seed)
    settings = {
        "prior_precision": learned,
        "forgetting": forgetting,
        "fit_intercept": fit_intercept,
    }
    rows, whole = (BayesianLinearRegression(**settings) for _ in range(2))
    means = []
    for i in range(len(X)):
        means.append(rows.predict_one(X[i]))
        rows.learn_one(X[i], y[i], weights[i])
    predictive = whole.predict_then_learn(X, y, weights).mean()
    tolerance = 1e-6 if learned == "ard" else 1e-9  # looks for its maximum only so far
    np.testing.assert_allclose(means, predictive, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(rows.coef_, whole.coef_, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", MODELS)
def test_the_lean_path_is_gone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, _ = stream(0, 200, waits=False)
    model = BayesianLinearRegression(**MODELS[name]).fit(X[:20], y[:20])
    model.learn_one(X[20], y[20])
    monkeypatch.setattr(BayesianLinearRegression, "_learn_row", None)
    for i in range(21, 200):
        model.predict_one(X[i])
        model.learn_one(X[i], y[i])
    assert model.n_observations_ == 200.0


@pytest.mark.parametrize("name", MODELS)
def test_what_is_read_or_refused_changes_nothing(name: str) -> None:
    X, y, _ = stream(1, 50)
    names = ["a", "b", "c"]
    model = BayesianLinearRegression(**MODELS[name])
    for i in range(50):
        model.learn_one(dict(zip(names, X[i], strict=True)), y[i])
        before = dumps(model)
        model.predict_one(dict(zip(names, X[0], strict=True)))
        for x, target, weight in (
            ([np.nan, 1.0, 1.0], 1.0, 1.0),
            ([1.0, 1.0, 1.0], np.inf, 1.0),
            ([1e200, 1.0, 1.0], 1.0, 1.0),
            ([1.0, 1.0, 1.0], 1.0, -1.0),
            ([1.0, 1.0], 1.0, 1.0),
            ({"a": 1.0, "b": 1.0, "d": 1.0}, 1.0, 1.0),
        ):
            with pytest.raises(ValueError, match=r"."):
                model.learn_one(x, target, weight)
        assert dumps(model) == before
    twin = copy.deepcopy(model)
    model.predict_one(X[0])
    for one in (model, twin):
        one.learn_one(X[0], y[0])
    assert_same(model, twin, pd.DataFrame(X[:9], columns=names))


@pytest.mark.parametrize("learned", LEARNED, ids=str)
def test_a_row_is_predicted_nearly_as_it_is_read(learned: Any) -> None:
    """The prior of a stream is a few rows old: that is little beside what is not known."""
    X, y, _ = stream(2, 120, waits=False)
    model = BayesianLinearRegression(prior_precision=learned).fit(X, y)
    sd = model.predict_distribution(X).std()
    means = np.array([model.predict_one(x) for x in X])
    assert (np.abs(means - model.predict(X)) <= 0.05 * sd).all()


def test_what_does_not_fit_is_refused() -> None:
    small, large = Factor(2), Factor(9)
    with pytest.raises(ValueError, match="none of this triangle"):
        small.fading(large, 0.9)
    standing = TwoLevelWeights(np.zeros((1, 8)), np.zeros(8))

    def path(
        member: Factor, rates: tuple[float, ...] = (1.0,), noises: MemberNoises | None = None
    ) -> MembersPath:
        members = [member.fading(member, 0.9)]
        reader = Factor(1).row_path(False)
        how = noises, 1.0, standing, (rates, 0.9)
        return MembersPath(reader, 2, True, 1, lambda: members, *how)

    with pytest.raises(ValueError, match="so many members and rates"):
        path(small, (1.0, 0.9))
    two = MemberNoises([np.zeros((4, 1)) for _ in range(2)], *np.ones((2, 1)), 1.0, 1.0, (0.0, 0.0))
    with pytest.raises(ValueError, match="noises are not those of so many members"):
        path(small, noises=two)
    with pytest.raises(ValueError, match="not that of so many features"):
        path(large).predict_mean([1.0])
    assert path(small).predict_mean([1.0]) == 0.0
    with pytest.raises(ValueError, match="1 to 8 memories"):
        MemberNoises([np.zeros((4, 2))], np.ones(3), np.ones(3), 1.0, 1.0, (0.0, 0.0))
