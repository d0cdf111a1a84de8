"""Laws of memory that hold for every likelihood: windows, merging, and that memories differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from posterity import (
    BayesianGeneralizedLinear,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegression,
    BayesianPoissonRegression,
    BayesianQuantileRegression,
    BayesianRobustRegression,
)
from posterity.files import dumps, loads
from posterity.forgetting import (
    Directional,
    Exponential,
    Forgetting,
    RandomWalk,
    Smoothing,
    Stabilized,
    Window,
)
from posterity.likelihoods import StudentT

Array = np.ndarray
Make = Callable[..., Any]
N = 200
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
ETA = X @ [0.8, -0.5] + 0.2
NUMBERS = ETA + 0.3 * RNG.normal(size=N)
LABELS = (RNG.random(N) < 1.0 / (1.0 + np.exp(-ETA))).astype(int)
CLASSES = np.argmax(np.column_stack([ETA, -ETA, 0.0 * ETA]) + RNG.gumbel(size=(N, 3)), axis=1)
COUNTS = RNG.poisson(np.exp(ETA)).astype(float)


def with_noise(**given: Any) -> BayesianLinearRegression:
    return BayesianLinearRegression(noise="linear", **given)


def laplace(**given: Any) -> BayesianRobustRegression:
    return BayesianRobustRegression(likelihood="laplace", **given)


def any_likelihood(**given: Any) -> BayesianGeneralizedLinear:
    return BayesianGeneralizedLinear(StudentT(4.0, 0.3), **given)


# Each with its targets, and others that are as possible.
MODELS: dict[str, tuple[Make, Array, Array]] = {
    "linear": (BayesianLinearRegression, NUMBERS, NUMBERS + 1.0),
    "noise that varies": (with_noise, NUMBERS, NUMBERS + 1.0),
    "robust": (BayesianRobustRegression, NUMBERS, NUMBERS + 1.0),
    "Laplace": (laplace, NUMBERS, NUMBERS + 1.0),
    "quantile": (BayesianQuantileRegression, NUMBERS, NUMBERS + 1.0),
    "two classes": (BayesianLogisticRegression, LABELS, 1 - LABELS),
    "three classes": (BayesianLogisticRegression, CLASSES, (CLASSES + 1) % 3),
    "Poisson": (BayesianPoissonRegression, COUNTS, COUNTS + 2.0),
    "negative binomial": (BayesianNegativeBinomialRegression, COUNTS, COUNTS + 2.0),
    "any likelihood": (any_likelihood, NUMBERS, NUMBERS + 1.0),
}
every_model = pytest.mark.parametrize("name", MODELS)


def learned(make: Make, y: Array, rows: slice, **how: Any) -> Any:
    classes = {"classes": np.unique(y)} if y.dtype.kind == "i" else {}
    return make(**how).partial_fit(X[rows], y[rows], **classes)


def assert_same(one: Any, other: Any, **tolerance: float) -> None:
    for model_one, model_other in ((one, other), (loads(dumps(one)), other)):
        for read in (
            lambda model: model.coef_,
            lambda model: model.posterior_.std(),
            lambda model: model.predict_interval(X[:5]),
            lambda model: model.n_effective_,
        ):
            np.testing.assert_allclose(read(model_one), read(model_other), **tolerance)


# ---- windows -------------------------------------------------------------------------------------


@every_model
def test_a_window_remembers_nothing_of_rows_that_have_left(name: str) -> None:
    make, y, others = MODELS[name]
    other = np.where(np.arange(N) < 10, others, y)
    one, two = (learned(make, t, slice(0, 40), forgetting=Window(size=20)) for t in (y, other))
    assert one.n_effective_ == 20.0
    assert_same(one, two, rtol=1e-12, atol=1e-12)


@settings(max_examples=3, deadline=None)
@given(st.integers(12, 30), st.integers(0, 60), st.integers(1, 40))
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ("two classes", "quantile") else pytest.mark.slow)
        for name in MODELS
        if name != "linear"
    ],
)
def test_a_window_is_a_model_of_the_rows_in_it(name: str, size: int, n: int, more: int) -> None:
    make, y, _ = MODELS[name]
    window = learned(make, y, slice(0, n + 1), forgetting=Window(size=size))
    window.partial_fit(X[n + 1 : n + size + more], y[n + 1 : n + size + more])
    kept = slice(n + more, n + size + more)
    assert_same(window, learned(make, y, kept, forgetting=Window(size=size)), rtol=1e-12)
    assert window.n_observations_ == n + size + more


@pytest.mark.slow
@every_model
def test_a_window_predicts_each_row_from_those_before_it(name: str) -> None:
    make, y, others = MODELS[name]
    other = np.where(np.arange(N) < 10, others, y)
    classes = {"classes": np.unique(y)} if y.dtype.kind == "i" else {}
    one, two = (make(forgetting=Window(size=20)) for _ in range(2))
    before = one.predict_then_learn(X[:45], y[:45], **classes)
    after = two.predict_then_learn(X[:45], other[:45], **classes)
    np.testing.assert_allclose(before.logpdf(y[:45])[30:], after.logpdf(y[:45])[30:], rtol=1e-10)
    assert_same(one, two, rtol=1e-12, atol=1e-12)
    if name not in ("linear", "noise that varies"):
        batch = learned(make, y, slice(0, 45), forgetting=Window(size=20))
        assert_same(one, batch, rtol=1e-12, atol=1e-12)
        single = learned(make, y, slice(0, 44), forgetting=Window(size=20)).learn_one(X[44], y[44])
        assert_same(single, batch, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["robust", "three classes", "Poisson"])
def test_a_window_of_time_counts_from_the_last_row(name: str) -> None:
    make, y, _ = MODELS[name]
    classes = {"classes": np.unique(y)} if y.dtype.kind == "i" else {}
    model = make(forgetting=Window(duration=15.5))
    model.partial_fit(X[:30], y[:30], times=np.arange(30.0), **classes)
    assert model.n_effective_ == 16.0
    late = model.predict_then_learn(X[30:31], y[30:31], times=[40.0])
    rest = learned(make, y, slice(25, 30))
    fresh = make(forgetting=Window(size=9)).partial_fit(X[25:30], y[25:30], **classes)
    assert late.logpdf(y[30:31]) == pytest.approx(
        fresh.predict_distribution(X[30:31]).logpdf(y[30:31])
    )
    assert rest.n_observations_ == 5.0
    assert model.n_effective_ == 6.0


def test_a_window_keeps_offsets_and_refuses_bad_rows_without_a_trace() -> None:
    exposure = np.exp(RNG.normal(size=N))
    model = BayesianPoissonRegression(forgetting=Window(size=20))
    model.partial_fit(X[:40], COUNTS[:40], exposure=exposure[:40])
    kept = BayesianPoissonRegression(forgetting=Window(size=20))
    kept.partial_fit(X[20:40], COUNTS[20:40], exposure=exposure[20:40])
    assert_same(model, kept, rtol=1e-12)
    before = dumps(model)
    with pytest.raises(ValueError, match="row 1"):
        model.partial_fit(X[:3], [1.0, -1.0, 2.0])
    assert dumps(model) == before


def test_a_class_that_comes_late_joins_the_rows_in_a_window() -> None:
    order = np.argsort(CLASSES[:40] == 2, kind="stable")
    rows, y = X[:40][order], CLASSES[:40][order]
    late = BayesianLogisticRegression(forgetting=Window(size=30)).partial_fit(rows[:15], y[:15])
    late.partial_fit(rows[15:38], y[15:38])
    for x, label in zip(rows[38:], y[38:], strict=True):
        late.learn_one(x, label)
    named = BayesianLogisticRegression(forgetting=Window(size=30))
    named.partial_fit(rows, y, classes=range(3))
    assert_same(late, named, rtol=1e-9, atol=1e-12)


# ---- merging -------------------------------------------------------------------------------------

MEMORIES: list[Forgetting] = [
    Exponential(0.95),
    Stabilized(0.95),
    Directional(0.95),
    Smoothing(0.95),
    RandomWalk(0.01),
    Window(30),
]


@pytest.mark.parametrize("n", [30, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("memory", MEMORIES, ids=str)
@every_model
def test_models_merge_under_stabilized_only(name: str, memory: Forgetting, n: int) -> None:
    make, y, _ = MODELS[name]
    one = learned(make, y, slice(0, n // 2), forgetting=memory)
    other = learned(make, y, slice(n // 2, n), forgetting=memory)
    if isinstance(memory, Stabilized):
        assert one.merge(other).n_observations_ == n
        return
    before = dumps(one)
    with pytest.raises(ValueError, match=f"can't merge models under {type(memory).__name__}"):
        one.merge(other)
    assert dumps(one) == before


@pytest.mark.parametrize("n", [30, 200])
@every_model
def test_rows_are_unlearned_but_of_a_quantile_only_the_first(name: str, n: int) -> None:
    make, y, _ = MODELS[name]
    model = learned(make, y, slice(0, n))
    if name == "quantile" and n == 200:
        with pytest.raises(ValueError, match="can't unlearn rows of a quantile model with more"):
            model.unlearn(X[:3], y[:3])
    else:
        assert model.unlearn(X[:3], y[:3]).n_observations_ == n - 3


@pytest.mark.parametrize("memory", MEMORIES, ids=str)
@every_model
def test_no_rows_are_unlearned_under_a_memory(name: str, memory: Forgetting) -> None:
    make, y, _ = MODELS[name]
    model = learned(make, y, slice(0, 20), forgetting=memory)
    with pytest.raises(ValueError, match=f"can't unlearn rows under {type(memory).__name__}"):
        model.unlearn(X[:3], y[:3])


# ---- memories differ -----------------------------------------------------------------------------


@pytest.mark.slow
@every_model
def test_every_memory_differs_from_every_other(name: str) -> None:
    """Under a prior that says much: Exponential and Smoothing fade it, others keep it."""
    make, y, _ = MODELS[name]
    how = {"prior_precision": 5.0}
    stds = [
        np.ravel(learned(make, y, slice(0, N), forgetting=memory, **how).posterior_.std())
        for memory in (*MEMORIES, None)
    ]
    for i, one in enumerate(stds):
        for other in stds[:i]:
            assert np.abs(np.log(one / other)).max() > 0.01


@pytest.mark.parametrize("way", ["fit", "partial_fit", "predict_then_learn"])
@pytest.mark.parametrize("y", [LABELS, CLASSES], ids=["two", "three"])
def test_exponential_fades_the_prior_of_all_classes(y: Array, way: str) -> None:
    def sds(memory: Forgetting) -> Array:
        model = BayesianLogisticRegression(prior_precision=5.0, forgetting=memory)
        classes = {} if way == "fit" else {"classes": np.unique(y)}
        getattr(model, way)(X[:100], y[:100], **classes)
        assert np.ravel(model.prior_precision_) == pytest.approx(5.0)
        return np.asarray(model.posterior_.std()).reshape(-1, 3)[:, 1:]  # of the slopes

    assert np.all(sds(Exponential(0.9)) > 1.5 * sds(Stabilized(0.9)))
