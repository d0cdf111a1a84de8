"""Single rows of robust and quantile models: as in an array, and fast."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from posterity import BayesianQuantileRegression, BayesianRobustRegression
from posterity.files import dumps, loads
from posterity.forgetting import Exponential, Window
from posterity.generalized._asymmetric_laplace_noise import AsymmetricLaplaceNoise
from posterity.generalized._heavy_tails import HeavyTailedPosterior
from posterity.generalized._laplace_noise import DoubleExponentialNoise
from posterity.generalized._noise_tally import NoiseSums
from posterity.generalized._student_t_noise import StudentTNoise
from posterity.transaction import atomic

Array = NDArray[np.float64]

MODELS: dict[str, Callable[..., Any]] = {
    "student_t": BayesianRobustRegression,
    "laplace": lambda **given: BayesianRobustRegression(likelihood="laplace", **given),
    "quantile": lambda **given: BayesianQuantileRegression(quantile=0.8, **given),
}
MODEL = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
NOISES = [
    StudentTNoise(4.0),
    StudentTNoise(1.0),
    DoubleExponentialNoise(),
    AsymmetricLaplaceNoise(0.9),
]


def stream(seed: int, n: int, p: int) -> tuple[Array, Array, Array]:
    """X, y and weights; a feature that begins to vary on the way, outliers, and zero weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    X[: n // 3, 0] = 1.0
    y = X @ rng.normal(size=p) + rng.normal(size=n)
    y[rng.random(n) < 0.1] += 30.0
    return X, y, rng.choice([0.0, 0.5, 1.0, 1.0, 2.0], n)


def read(model: Any, X: Array) -> Array:
    predictive = [model.intercept_, *model.coef_, model.noise_scale_, model.log_evidence_]
    return np.concatenate([predictive, *model.predict(X, return_std=True)])


@MODEL
@pytest.mark.parametrize("precision", ["auto", 0.0])
@settings(max_examples=3, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10**6), p=st.integers(1, 3), n=st.integers(1, 90))
def test_rows_one_by_one_are_rows_in_an_array(
    make: Callable[..., Any], precision: Any, seed: int, p: int, n: int
) -> None:
    X, y, weights = stream(seed, n + 20, p)
    loop, batch = make(prior_precision=precision), make(prior_precision=precision)
    for i in range(n):
        one = loop.predict_one(X[i])
        assert i == 0 or one == pytest.approx(loop.predict(X[i : i + 1])[0], rel=1e-9, abs=1e-9)
        loop.learn_one(X[i], y[i], weights[i])
    batch.partial_fit(X[:n], y[:n], weights[:n])
    np.testing.assert_allclose(read(loop, X), read(batch, X), rtol=1e-7, atol=1e-9)
    predictive = [model.predict_then_learn(X[n:], y[n:]).logpdf(y[n:]) for model in (loop, batch)]
    np.testing.assert_allclose(predictive[0], predictive[1], rtol=1e-7, atol=1e-9)


@MODEL
def test_rows_are_learned_on_the_lean_path(
    make: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for those at which a fit, or the prior, is due: those of the start and a few more."""
    X, y, _ = stream(0, 400, 3)
    model = make(basis=None)
    slow = 0
    general = type(model)._learn_row

    @atomic
    def counted(self: Any, *row: Any) -> None:
        nonlocal slow
        slow += 1
        general(self, *row)

    monkeypatch.setattr(type(model), "_learn_row", counted)
    model.learn_one(dict(zip("abc", X[0], strict=True)), y[0])
    for x, target in zip(X[1:], y[1:], strict=True):
        model.learn_one({"a": x[0], "b": x[1], "c": x[2]}, target)
    assert slow < 30
    assert model.n_observations_ == 400.0


@MODEL
def test_the_first_rows_take_few_fits(
    make: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """64 rows of ten features, predicted and learned: fitted where a fraction more have come."""
    X, y, _ = stream(1, 64, 10)
    fitted: list[int] = []
    fit = HeavyTailedPosterior._fit_mode

    def counted(self: Any, kept: Any, *how: Any, **more: Any) -> Any:
        fitted.append(len(kept.y))
        return fit(self, kept, *how, **more)

    monkeypatch.setattr(HeavyTailedPosterior, "_fit_mode", counted)
    model = make()
    for x, target in zip(X, y, strict=True):
        model.predict_one(x)
        model.learn_one(x, target)
    assert 5 < len(fitted) <= 28, fitted


@MODEL
def test_a_row_that_is_refused_changes_nothing(make: Callable[..., Any]) -> None:
    X, y, _ = stream(2, 100, 2)
    model = make().partial_fit(X[:80], y[:80])
    for i in range(80, 90):
        model.learn_one(X[i], y[i])
    before = dumps(model)
    for x, target, weight in (
        ([np.nan, 1.0], 1.0, 1.0),
        ([1.0, 1.0], np.inf, 1.0),
        ([1.0, 1.0], 1.0, -1.0),
        ([1.0], 1.0, 1.0),
        ([1e200, 1.0], 1.0, 1.0),
    ):
        with pytest.raises(ValueError, match=r"finite|shape|weight|1e.75|infinity|NaN"):
            model.learn_one(x, target, weight)
        assert dumps(model) == before


@MODEL
def test_single_rows_after_a_copy_a_merge_and_an_array(make: Callable[..., Any]) -> None:
    """The lean path follows whatever else learns."""
    X, y, _ = stream(3, 300, 2)
    model, twin = make().fit(X[:100], y[:100]), make().fit(X[:100], y[:100])
    model.learn_one(X[100], y[100])
    twin.partial_fit(X[100:101], y[100:101])
    other = make().fit(X[200:], y[200:])
    branch = copy.deepcopy(model)
    for one in (model, twin):
        one.merge(other)
    for i in range(101, 110):
        model.learn_one(X[i], y[i])
        branch.learn_one(X[i], y[i])
    twin.partial_fit(X[101:110], y[101:110])
    np.testing.assert_allclose(read(model, X), read(twin, X), rtol=1e-7, atol=1e-9)
    assert branch.n_observations_ == 110.0
    assert model.n_observations_ == 210.0


@MODEL
@pytest.mark.parametrize("n", [4, 30, 80])
def test_a_model_from_a_file_goes_on_as_if_nothing_had_happened(
    make: Callable[..., Any], n: int
) -> None:
    X, y, _ = stream(5, 100, 2)
    model = make().partial_fit(X[:n], y[:n])
    twin = loads(dumps(model))
    for one in (model, twin):
        for i in range(n, 100):
            one.learn_one(X[i], y[i])
    np.testing.assert_allclose(read(model, X), read(twin, X), rtol=1e-9)


@MODEL
def test_an_error_beyond_all_squares(make: Callable[..., Any]) -> None:
    X, y, _ = stream(6, 120, 2)  # more than the first rows, which are fitted together
    model = make().partial_fit(X, y)
    before = read(model, X)[:3]
    model.learn_one(X[0], 1e75)
    assert (np.abs(read(model, X)[:3] - before) < 0.5).all()


@MODEL
@pytest.mark.parametrize("forgetting", [Exponential(0.98), Window(size=40)])
def test_what_forgets_predicts_single_rows_as_arrays(
    make: Callable[..., Any], forgetting: Any
) -> None:
    X, y, _ = stream(4, 90, 2)
    model = make(forgetting=forgetting).partial_fit(X[:80], y[:80])
    for i in range(80, 90):
        one = model.predict_one(X[i])
        assert one == pytest.approx(model.predict(X[i : i + 1])[0], rel=1e-9)
        model.learn_one(X[i], y[i])


NUMBER = st.floats(-1e3, 1e3) | st.floats(-1e-3, 1e-3)
LEVERAGE = st.sampled_from([0.0, np.inf]) | st.floats(1e-9, 1e3)
SCALE = st.floats(1e-3, 1e3) | st.just(np.inf)


@pytest.mark.parametrize("noise", NOISES, ids=repr)
@given(error=NUMBER, leverage=LEVERAGE, scale=SCALE, df=st.sampled_from([5.0, np.inf]))
def test_plain_numbers_are_one_row_of_an_array(
    noise: Any, error: float, leverage: float, scale: float, df: float
) -> None:
    rows = np.array([error]), np.array([leverage]), np.array([scale])
    predictive = noise.log_density_one(error, leverage, scale, df)
    with np.errstate(all="ignore"):
        assert predictive == pytest.approx(noise.log_density(*rows, df)[0], rel=1e-8, abs=1e-8)
    if math.isinf(scale) or math.isinf(leverage):
        return
    weight, shift = (each[0] for each in noise.sites(*rows))
    found = noise.site(error, leverage, scale)
    assert found[0] == pytest.approx(weight, rel=1e-8)
    assert found[1] == pytest.approx(shift, rel=1e-7, abs=1e-9 * (scale + abs(error)))
    assert noise.scale_term(error, leverage) == pytest.approx(noise.scale_terms(*rows[:2])[0])


@pytest.mark.parametrize("noise", NOISES, ids=repr)
@pytest.mark.parametrize("known", [None, 2.0])
@given(rows=st.lists(st.tuples(NUMBER, LEVERAGE, st.floats(0.1, 3.0)), min_size=1, max_size=8))
def test_sums_of_the_noise_row_by_row(
    noise: Any, known: float | None, rows: list[tuple[float, float, float]]
) -> None:
    one = whole = NoiseSums(noise, known, 1)
    for error, leverage, g in rows:
        arrays = np.array([error]), np.array([leverage]), np.array([g])
        whole, still = whole.copy(), np.ones(1)
        nothing = whole.compute_scales_before(np.zeros((5, 1)), still)
        np.testing.assert_allclose([one.scale, one.core], [nothing.scale[0], nothing.core[0]])
        whole.learn(whole.compute_terms(*arrays, nothing), still)
        one = one.with_row(error, leverage, g)
        assert one.spread == pytest.approx(whole.spread)
        assert one.count == pytest.approx(whole.count)
        assert one.core_square == pytest.approx(whole.core_square)
        assert one.core_weight == pytest.approx(whole.core_weight)
