"""Laws of learning: however the rows come, the posterior is the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posterity import BayesianLinearRegression


@st.composite
def settings_and_rows(
    draw: st.DrawFn, most_features: int = 12
) -> tuple[dict[str, Any], np.ndarray, np.ndarray, np.ndarray]:
    """Any prior and noise, with rows and weights; sometimes fewer rows than features."""
    m, n = draw(st.integers(1, most_features)), draw(st.integers(2, 60))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    root = rng.normal(size=(m, m))
    precision = draw(st.sampled_from(["number", "diagonal", "matrix"]))
    settings = {
        "prior_precision": {
            "number": float(10.0 ** rng.uniform(-3, 3)),
            "diagonal": 10.0 ** rng.uniform(-3, 3, size=m),
            "matrix": root @ root.T + 0.01 * np.eye(m),
        }[precision],
        "prior_mean": draw(st.sampled_from([0.0, 2.0, rng.normal(size=m)])),
        "noise_precision": draw(st.sampled_from([None, 0.1, 25.0])),
        "noise_prior": draw(st.sampled_from([(0.0, 0.0), (2.0, 3.0)])),
        "fit_intercept": draw(st.booleans()),
    }
    X = rng.normal(size=(n, m))
    y = X @ rng.normal(size=m) + rng.normal(size=n) + 3.0
    weights = rng.choice([0.25, 1.0, 2.0, 3.5], size=n)
    return settings, X, y, weights


def assert_same(
    a: BayesianLinearRegression, b: BayesianLinearRegression, tolerance: float = 1e-10
) -> None:
    """Mean, covariance, noise, counts and evidence agree, relative to their own size."""
    ours, theirs = a.posterior_, b.posterior_
    assert np.allclose(
        ours.mean, theirs.mean, rtol=tolerance, atol=tolerance * np.abs(theirs.mean).max()
    )
    scale = np.sqrt(np.diag(theirs.cov))
    if np.isfinite(scale).all() and (scale > 0.0).all():
        assert np.allclose(
            ours.cov / np.outer(scale, scale), theirs.cov / np.outer(scale, scale), atol=tolerance
        )
    assert a.n_observations_ == pytest.approx(b.n_observations_)
    size = np.abs(theirs.mean).max()
    noise = [model.noise_precision_**-0.5 if model.noise_precision_ else np.inf for model in (a, b)]
    assert noise[0] == pytest.approx(noise[1], rel=tolerance, abs=tolerance * size, nan_ok=True)
    if min(noise) <= tolerance * size:  # no noise but rounding: its logarithm means nothing
        return
    assert a.log_evidence_ == pytest.approx(b.log_evidence_, rel=tolerance, abs=tolerance)


@given(settings_and_rows())
def test_batch_equals_loop_equals_mini_batches(problem: Any) -> None:
    settings, X, y, weights = problem
    batch = BayesianLinearRegression(**settings).fit(X, y, weights)
    loop, lean, chunks, first_predicted = (BayesianLinearRegression(**settings) for _ in range(4))
    for x, target, weight in zip(X, y, weights, strict=True):
        loop.partial_fit(x[None, :], [target], [weight])
        lean.learn_one(x, target, weight)
    for start in range(0, len(X), 7):
        part = slice(start, start + 7)
        chunks.partial_fit(X[part], y[part], weights[part])
    first_predicted.predict_then_learn(X, y, weights)
    for model in (loop, lean, chunks, first_predicted):
        assert_same(model, batch)


@given(settings_and_rows(), st.data())
def test_batch_equals_any_partition_merged(problem: Any, data: st.DataObject) -> None:
    settings, X, y, weights = problem
    parts = data.draw(st.lists(st.integers(0, 3), min_size=len(X), max_size=len(X)).map(np.array))
    batch = BayesianLinearRegression(**settings).fit(X, y, weights)
    merged = BayesianLinearRegression(**settings)
    for part in np.unique(parts):
        rows = parts == part
        merged.merge(BayesianLinearRegression(**settings).fit(X[rows], y[rows], weights[rows]))
    assert_same(merged, batch)


@pytest.mark.parametrize("m", [1, 7, 20, 60])
@pytest.mark.parametrize("n", [5, 61, 300])
@pytest.mark.parametrize("noise_precision", [None, 4.0])
def test_the_same_for_many_features(m: int, n: int, noise_precision: float | None) -> None:
    rng = np.random.default_rng(m * n)
    X, y = rng.normal(size=(n, m)), rng.normal(size=n)
    batch = BayesianLinearRegression(noise_precision=noise_precision).fit(X, y)
    loop = BayesianLinearRegression(noise_precision=noise_precision)
    halves = BayesianLinearRegression(noise_precision=noise_precision).fit(X[: n // 2], y[: n // 2])
    loop.predict_then_learn(X, y)
    halves.merge(
        BayesianLinearRegression(noise_precision=noise_precision).fit(X[n // 2 :], y[n // 2 :])
    )
    assert_same(loop, batch)
    assert_same(halves, batch)


@given(settings_and_rows())
def test_weight_two_is_the_row_twice(problem: Any) -> None:
    settings, X, y, _ = problem
    weights = np.arange(len(X)) % 3
    weighted = BayesianLinearRegression(**settings).fit(X, y, weights)
    repeated = BayesianLinearRegression(**settings).fit(
        X.repeat(weights, axis=0), y.repeat(weights)
    )
    assert_same(weighted, repeated)


@given(settings_and_rows(most_features=5))
def test_log_predictives_add_up_to_the_log_evidence(problem: Any) -> None:
    settings, X, y, _ = problem
    if settings["noise_precision"] is None:
        settings["noise_prior"] = (1.5, 2.0)  # an improper prior has no evidence of its first rows
    model = BayesianLinearRegression(**settings)
    predicted = model.predict_then_learn(X, y)
    assert np.sum(predicted.logpdf(y)) == pytest.approx(model.log_evidence_, rel=1e-9, abs=1e-9)


@given(settings_and_rows(most_features=5), st.integers(2, 30))
def test_predictions_are_those_of_a_model_that_has_not_seen_the_row(problem: Any, at: int) -> None:
    settings, X, y, weights = problem
    at = min(at, len(X) - 1)
    predicted = BayesianLinearRegression(**settings).predict_then_learn(X, y, weights)
    before = BayesianLinearRegression(**settings).fit(X[:at], y[:at], weights[:at])
    expected = before.predict_distribution(X[at : at + 1])
    assert predicted.mean()[at] == pytest.approx(expected.mean()[0], rel=1e-8, abs=1e-8)
    assert predicted.std()[at] == pytest.approx(expected.std()[0], rel=1e-8)
    changed = y.copy()
    changed[at:] += 100.0
    again = BayesianLinearRegression(**settings).predict_then_learn(X, changed, weights)
    assert again.mean()[at] == pytest.approx(predicted.mean()[at], rel=1e-8, abs=1e-8)


@given(settings_and_rows())
def test_learn_then_unlearn_is_the_identity(problem: Any) -> None:
    settings, X, y, weights = problem
    half = len(X) // 2
    model = BayesianLinearRegression(**settings).fit(X, y, weights)
    model.unlearn(X[half:], y[half:], weights[half:])
    assert_same(
        model, BayesianLinearRegression(**settings).fit(X[:half], y[:half], weights[:half]), 1e-6
    )


def test_unlearning_everything_gives_the_prior_back_exactly() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    model = BayesianLinearRegression(noise_precision=2.0).fit(X, y)
    model.unlearn(X, y)
    assert model.n_observations_ == 0.0
    assert np.array_equal(model.coef_, np.zeros(3))
    again = BayesianLinearRegression(noise_precision=2.0).fit(X, y)
    assert_same(model.partial_fit(X, y), again)


def test_unlearning_400_of_1000_rows_in_random_order() -> None:
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(1000, 10)), rng.normal(size=1000)
    order = rng.permutation(1000)
    gone, kept = order[:400], order[400:]
    model = BayesianLinearRegression(prior_precision=0.0).fit(X, y)
    for row in gone:
        model.unlearn(X[row : row + 1], y[row : row + 1])
    assert_same(model, BayesianLinearRegression(prior_precision=0.0).fit(X[kept], y[kept]), 1e-8)


@pytest.mark.parametrize("settings", [{}, {"prior_precision": 0.0}, {"noise_precision": 3.0}])
def test_a_row_never_learned_is_refused(settings: dict[str, Any]) -> None:
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    model = BayesianLinearRegression(**settings).fit(X, y)
    before = model._posterior.factor.triangle.copy()
    for strange, target in (([[9.0, 9.0, 9.0]], 0.0), (X[:1], 1e3)):
        with pytest.raises(ValueError, match="never learned"):
            model.unlearn(strange, [target])
    with pytest.raises(ValueError, match="total weight 41: only 40 was learned"):
        model.unlearn(np.vstack([X, X[:1]]), [*y, y[0]])
    assert np.array_equal(model._posterior.factor.triangle, before)
    assert model.n_observations_ == 40.0


def test_the_prior_is_not_eaten_by_rows_that_never_came() -> None:
    # With a strong prior the rotations alone would let this row out.
    model = BayesianLinearRegression(prior_precision=100.0, fit_intercept=False)
    model.fit([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="never learned"):
        model.unlearn([[0.0, 1.0]], [0.0])


def test_lost_digits_are_told() -> None:
    X = np.array([[1e9], [1.0], [2.0], [3.0]])
    y = np.array([1e3, 1.0, 2.0, 3.1])
    model = BayesianLinearRegression(prior_precision=0.0, fit_intercept=False).fit(X, y)
    with pytest.warns(UserWarning, match="digits were lost"):
        model.unlearn(X[:1], y[:1])


@pytest.mark.parametrize("prior", ["auto", 0.0, 1.0, 1e-8])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.filterwarnings("ignore:the rows that were unlearned")
@given(seed=st.integers(0, 10**6))
def test_what_alone_carried_a_direction_can_be_unlearned(
    prior: Any, fit_intercept: bool, seed: int
) -> None:
    """Rare categories: without their only row nothing is known of them, as before it came."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 40))
    levels = np.where(np.arange(n) < n - 3, rng.integers(0, 4, n), 4 + rng.integers(0, 2, n))
    X = np.column_stack([np.eye(6)[levels], rng.normal(size=n)])
    y = rng.normal(size=n) + levels
    settings = {"prior_precision": prior, "fit_intercept": fit_intercept}
    model = BayesianLinearRegression(**settings).fit(X, y).unlearn(X[n - 3 :], y[n - 3 :])
    rest = BayesianLinearRegression(**settings).fit(X[: n - 3], y[: n - 3])
    predictive, expected = model.predict_distribution(X), rest.predict_distribution(X)
    known = np.isfinite(expected.std())
    assert np.array_equal(np.isfinite(predictive.std()), known)
    assert predictive.mean()[known] == pytest.approx(expected.mean()[known], rel=1e-3, abs=1e-3)
    assert predictive.std()[known] == pytest.approx(expected.std()[known], rel=1e-4)
    empty = BayesianLinearRegression(**settings).fit(X, y).unlearn(X, y)
    assert empty.n_observations_ == 0.0
    assert np.isinf(empty.predict_distribution(X).std()).all()


def test_the_row_that_was_never_learned_is_named() -> None:
    X = np.column_stack([np.eye(4)[[0, 0, 1, 1, 2]], np.arange(5.0)])
    y = np.arange(5.0)
    model = BayesianLinearRegression(prior_precision=0.0).fit(X, y)
    strange = X[:5].copy()
    strange[3, 3] = 1.0  # a category that never came
    with pytest.raises(ValueError, match="row 3 was never learned"):
        model.unlearn(strange, y)


@given(seed=st.integers(0, 10**6), lean=st.booleans())
def test_beside_collinear_columns_what_is_identified_has_a_finite_sd(seed: int, lean: bool) -> None:
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(20, 200)), int(rng.integers(3, 7))
    # Whole numbers: their sums are exact, and so is the collinearity.
    Z = rng.integers(-50, 50, size=(n, p)) + rng.choice([0, 100, 10_000], p)
    X = np.column_stack([Z, Z[:, 0] + 2 * Z[:, 1], np.full(n, 3)]).astype(float)
    y = rng.normal(size=n)
    model = BayesianLinearRegression(prior_precision=0.0)
    if lean:
        for row, target in zip(X, y, strict=True):
            model.learn_one(row, target)
    else:
        model.fit(X, y)
    open_ = np.array([True, True, True, *[False] * (p - 2), True, True])
    assert np.array_equal(np.isinf(model.posterior_.std()), open_)


def test_a_time_is_checked_and_counted_on_the_lean_path_too() -> None:
    model = BayesianLinearRegression()
    for i in range(5):
        model.learn_one([float(i % 3)], float(i), time=float(i))
    with pytest.raises(ValueError, match="times must be finite and must not decrease"):
        model.learn_one([1.0], 1.0, time=2.0)
    with pytest.raises(ValueError, match="times must be finite and must not decrease"):
        model.learn_one([1.0], 1.0, time=float("nan"))
    with pytest.raises(ValueError, match="earlier rows had times: give times for these as well"):
        model.learn_one([1.0], 1.0)
    assert model.n_observations_ == 5.0
    assert model.learn_one([1.0], 1.0, time=7.0).n_observations_ == 6.0


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e8])
def test_the_joint_of_features_far_from_zero(offset: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9, 2))
    y = X @ [1.0, 2.0] + 3.0 + rng.normal(size=9)
    near = BayesianLinearRegression().fit(X, y).posterior_.std()
    far = BayesianLinearRegression().fit(X + offset, y).posterior_.std()
    assert far[1:] == pytest.approx(near[1:], rel=1e-6)
