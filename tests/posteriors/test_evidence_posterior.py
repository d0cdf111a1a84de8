"""Prior precisions learned along the way: the laws of the model hold with them, too."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posterity import BayesianLinearRegression
from posterity.evidence import Integrated, Maximized, Relevance
from posterity.forgetting import (
    Adaptive,
    Changepoint,
    Directional,
    Exponential,
    Forgetting,
    RandomWalk,
    Stabilized,
    Window,
)

LEARNED = ["auto", "ard", Maximized(), Integrated(most_nodes=2)]
FORGETTING = [
    Exponential(0.97),
    Stabilized(0.97),
    Directional(0.97),
    RandomWalk(1e-3),
    Window(size=30),
    Adaptive(),
    Changepoint(),
]


def problem(seed: int, n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * 10.0 ** rng.uniform(-2.0, 2.0, p) + rng.normal(size=p)
    w = rng.normal(size=p) * (rng.random(p) < 0.7) / X.std(axis=0).clip(1e-3)
    return X, 3.0 + X @ w + 0.5 * rng.normal(size=n)


def assert_same(
    one: BayesianLinearRegression, other: BayesianLinearRegression, X: np.ndarray, rel: float = 1e-7
) -> None:
    predictive, expected = one.predict_distribution(X), other.predict_distribution(X)
    size = np.abs(expected.mean()).max() + 1.0
    assert predictive.mean() == pytest.approx(expected.mean(), rel=rel, abs=rel * size)
    known = np.isfinite(expected.std())
    assert np.array_equal(known, np.isfinite(predictive.std()))
    assert predictive.std()[known] == pytest.approx(expected.std()[known], rel=rel)
    assert one.log_evidence_ == pytest.approx(other.log_evidence_, rel=rel, abs=rel)
    assert one.n_observations_ == pytest.approx(other.n_observations_)


CASES = {
    "seed": st.integers(0, 10**6),
    "n": st.integers(2, 40),
    "p": st.integers(1, 5),
    "learned": st.sampled_from(LEARNED),
    "noise_precision": st.sampled_from([None, 4.0]),
    "fit_intercept": st.booleans(),
}


@given(**CASES)
def test_batch_equals_loop_equals_chunks_equals_merged(
    seed: int, n: int, p: int, learned: Any, noise_precision: float | None, fit_intercept: bool
) -> None:
    X, y = problem(seed, n, p)
    settings = {
        "prior_precision": learned,
        "noise_precision": noise_precision,
        "fit_intercept": fit_intercept,
    }
    weights = np.random.default_rng(seed).choice([0.0, 0.5, 1.0, 2.0], n)
    weights[0] = 1.0
    batch = BayesianLinearRegression(**settings).fit(X, y, weights)
    chunks, loop, predictive = (BayesianLinearRegression(**settings) for _ in range(3))
    half = n // 2
    chunks.partial_fit(X[:half], y[:half], weights[:half])
    chunks.partial_fit(X[half:], y[half:], weights[half:])
    for i in range(n):
        loop.learn_one(X[i], y[i], weights[i])
        loop.predict_one(X[i])
    predictive.predict_then_learn(X, y, weights)
    merged = BayesianLinearRegression(**settings).partial_fit(X[:half], y[:half], weights[:half])
    merged.merge(
        BayesianLinearRegression(**settings).partial_fit(X[half:], y[half:], weights[half:])
    )
    for model in (chunks, loop, predictive, merged):
        assert_same(model, batch, X)


@given(**CASES)
def test_one_call_predicts_as_a_call_a_row(
    seed: int, n: int, p: int, learned: Any, noise_precision: float | None, fit_intercept: bool
) -> None:
    X, y = problem(seed, n, p)
    settings = {
        "prior_precision": learned,
        "noise_precision": noise_precision,
        "fit_intercept": fit_intercept,
    }
    whole = BayesianLinearRegression(**settings).predict_then_learn(X, y)
    model = BayesianLinearRegression(**settings)
    parts = [model.predict_then_learn(X[i : i + 1], y[i : i + 1]) for i in range(n)]
    means = np.concatenate([part.mean() for part in parts])
    scales = np.concatenate([part.std() for part in parts])
    assert means == pytest.approx(whole.mean(), rel=1e-7, abs=1e-7)
    assert np.array_equal(np.isinf(scales), np.isinf(whole.std()))
    known = np.isfinite(scales)
    assert scales[known] == pytest.approx(whole.std()[known], rel=1e-6)


@given(seed=st.integers(0, 10**6), n=st.integers(3, 60), learned=st.sampled_from(LEARNED))
def test_nothing_of_a_row_is_used_before_it(seed: int, n: int, learned: Any) -> None:
    X, y = problem(seed, n, 3)
    at = n // 2
    other, others = X.copy(), y.copy()
    other[at + 1 :], others[at:] = -7.0 * X[at + 1 :], 100.0 - y[at:]
    predictive = BayesianLinearRegression(prior_precision=learned).predict_then_learn(X, y)
    again = BayesianLinearRegression(prior_precision=learned).predict_then_learn(other, others)
    assert again.mean()[: at + 1] == pytest.approx(predictive.mean()[: at + 1], rel=1e-12)
    assert again.std()[: at + 1] == pytest.approx(predictive.std()[: at + 1], rel=1e-12)


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(4, 60),
    learned=st.sampled_from(["auto", "ard", Maximized()]),
    exponents=st.lists(st.integers(-6, 6), min_size=4, max_size=4),
)
def test_units_make_no_difference(seed: int, n: int, learned: Any, exponents: list[int]) -> None:
    X, y = problem(seed, n, 3)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    units, unit = 10.0 ** np.array(exponents[:3]), 10.0 ** exponents[3]
    plain = BayesianLinearRegression(prior_precision=learned)
    scaled = BayesianLinearRegression(prior_precision=learned)
    predictive = plain.predict_then_learn(X, y)
    other = scaled.predict_then_learn(X * units, y * unit)
    size = np.abs(y).max()
    assert other.mean() / unit == pytest.approx(predictive.mean(), rel=1e-8, abs=1e-8 * size)
    assert scaled.predict(X * units) / unit == pytest.approx(
        plain.predict(X), rel=1e-8, abs=1e-8 * size
    )


def test_the_intercept_is_not_shrunk() -> None:
    X, y = problem(0, 40, 2)
    near = BayesianLinearRegression().fit(X, y)
    far = BayesianLinearRegression().fit(X, y + 1e6)
    assert far.coef_ == pytest.approx(near.coef_, rel=1e-6)
    assert far.intercept_ == pytest.approx(near.intercept_ + 1e6, rel=1e-12)


@pytest.mark.parametrize("learned", LEARNED, ids=str)
def test_unlearning_undoes_learning(learned: Any) -> None:
    X, y = problem(1, 60, 3)
    model = BayesianLinearRegression(prior_precision=learned).fit(X, y)
    model.learn_one(X[0], y[0]).predict_one(X[0])
    model.unlearn(X[:20], y[:20]).unlearn(X[:1], y[:1])
    rest = BayesianLinearRegression(prior_precision=learned).fit(X[20:], y[20:])
    assert_same(model, rest, X, 1e-6)
    assert model.predict_one(X[3]) == pytest.approx(float(rest.predict(X[3:4])[0]), rel=1e-5)


def test_the_lean_path_goes_the_way_of_the_array() -> None:
    X, y = problem(2, 600, 4)
    passed, loop = BayesianLinearRegression(), BayesianLinearRegression()
    means = passed.predict_then_learn(X[:500], y[:500]).mean()
    for x, target, mean in zip(X[:500], y[:500], means, strict=True):
        assert loop.predict_one(x) == pytest.approx(mean, rel=1e-9, abs=1e-9)
        loop.learn_one(x, target)
    assert_same(loop, BayesianLinearRegression().fit(X[:500], y[:500]), X)
    predictive, expected = (m.predict_then_learn(X[500:], y[500:]) for m in (loop, passed))
    assert predictive.mean() == pytest.approx(expected.mean(), rel=1e-9, abs=1e-9)
    assert predictive.std() == pytest.approx(expected.std(), rel=1e-9)


def test_a_constant_feature_waits_until_it_varies() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 2))
    X[:200, 1] = 5.0
    y = X @ [1.0, 2.0] + 0.1 * rng.normal(size=400)
    model = BayesianLinearRegression()
    predictive = model.predict_then_learn(X, y)
    error = np.abs(predictive.mean() - y)
    assert np.isfinite(predictive.std()[5:]).all()
    assert error[20:200].mean() < 0.15
    assert error[215:].mean() < 0.15  # learned within a few rows, no schedule waited for
    early = BayesianLinearRegression().fit(X[:200], y[:200])
    assert early.coef_[1] == pytest.approx(0.0, abs=1e-9)


def test_the_joint_predicts_what_is_predicted() -> None:
    """x'M x of the joint's scale matrix, and the noise, make the scale of a prediction."""
    X, y = problem(4, 6, 2)
    model = BayesianLinearRegression(noise_precision=4.0).fit(X, y)
    joint, predictive = model.posterior_, model.predict_distribution(X)
    design = np.column_stack([np.ones(6), X])
    assert design @ joint.mean == pytest.approx(predictive.mean(), rel=1e-9)
    variance = np.einsum("ij,jk,ik->i", design, joint.cov, design) + 1.0 / 4.0
    assert np.sqrt(variance) == pytest.approx(predictive.std(), rel=1e-9)
    assert model.prior_precision_.shape == (2,)


def test_a_call_that_raises_changes_nothing() -> None:
    X, y = problem(5, 200, 3)
    for n in (5, 100):  # several nodes, one node
        model = BayesianLinearRegression()
        model.predict_then_learn(X[:n], y[:n])
        before = copy.deepcopy(model)
        bad = X.copy()
        bad[150, 1] = np.nan
        with pytest.raises(ValueError, match="row 150, column 1"):
            model.predict_then_learn(bad, y)
        with pytest.raises(ValueError, match="row 150, column 1"):
            model.partial_fit(bad, y)
        again = model.predict_then_learn(X[n:], y[n:]).mean()
        assert np.array_equal(again, before.predict_then_learn(X[n:], y[n:]).mean())


def test_copies_and_pickles_go_their_own_way() -> None:
    X, y = problem(6, 100, 3)
    model = BayesianLinearRegression()
    for i in range(60):
        model.learn_one(X[i], y[i])
    twins = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    expected = model.predict(X)
    for twin in twins:
        twin.learn_one(X[70], y[70])
        twin.predict_then_learn(X[70:], y[70:])
    assert np.array_equal(model.predict(X), expected)
    assert_same(twins[0], twins[1], X)


@pytest.mark.parametrize("strategy", FORGETTING, ids=lambda one: type(one).__name__)
def test_every_way_to_forget(strategy: Forgetting) -> None:
    X, y = problem(7, 400, 3)
    model = BayesianLinearRegression(forgetting=strategy)
    predictive = model.predict_then_learn(X, y)
    assert np.isfinite(predictive.mean()).all()
    assert np.isfinite(predictive.std()[20:]).all()
    off = np.abs(predictive.mean() - y)[50:].mean()
    flat = BayesianLinearRegression(prior_precision=0.0, forgetting=strategy)
    flat_off = np.abs(flat.predict_then_learn(X, y).mean() - y)[50:].mean()
    assert off <= flat_off * 1.02
    assert np.isfinite(model.log_evidence_)
    model.partial_fit(X, y)
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("strategy", [Stabilized(0.95), Adaptive()], ids=["Stabilized", "Adaptive"])
def test_a_quiet_feature_does_not_wind_up(strategy: Forgetting) -> None:
    """Its scale is that of all rows, so what is believed of it stays within the prior."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(20_000, 2))
    X[500:, 1] = 0.0
    y = X @ [1.0, 1.0] + rng.normal(size=20_000)
    model = BayesianLinearRegression(forgetting=strategy)
    model.predict_then_learn(X, y)
    # 20,000 rows dilute the scale of what was seen in 500 of them: sd 1 to 0.16.
    assert model.predict_distribution([[0.0, 0.16]]).std()[0] < 3.0


@pytest.mark.parametrize("value", ["evidence", "Auto", ""])
def test_names_that_mean_nothing(value: str) -> None:
    with pytest.raises(ValueError, match="it must be 'auto' or 'ard', a strategy from"):
        BayesianLinearRegression(prior_precision=value).fit([[0.0], [1.0]], [0.0, 1.0])


def test_a_class_is_no_strategy() -> None:
    with pytest.raises(TypeError, match=r"give an instance, as in Relevance\(\)"):
        BayesianLinearRegression(prior_precision=Relevance).fit([[0.0], [1.0]], [0.0, 1.0])


def test_models_that_learn_their_priors_differently_do_not_merge() -> None:
    X, y = problem(9, 20, 2)
    one = BayesianLinearRegression().fit(X, y)
    with pytest.raises(ValueError, match="differ in prior"):
        one.merge(BayesianLinearRegression(prior_precision="ard").fit(X, y))
    with pytest.raises(ValueError, match="differ in prior"):
        one.merge(BayesianLinearRegression(prior_precision=1.0).fit(X, y))


@pytest.mark.parametrize("strategy", ["auto", "ard", Maximized()], ids=str)
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_before_any_data_the_mean_is_the_priors(strategy: Any, fit_intercept: bool) -> None:
    """Said without choosing a precision; the nodes, whose mean it is otherwise, are the twin."""
    model = BayesianLinearRegression(
        prior_mean=[2.0, -1.0], prior_precision=strategy, fit_intercept=fit_intercept
    )
    known: Any = model._make_from_row([1.0, 3.0])._posterior
    np.testing.assert_allclose(known.coefficients(), known.nodes.coefficients, rtol=1e-12)
    assert model.predict_one([1.0, 3.0]) == pytest.approx(-1.0)
    model.fit([[1.0, 3.0]], [5.0]).unlearn([[1.0, 3.0]], [5.0])
    known = model._posterior
    np.testing.assert_allclose(known.coefficients(), known.nodes.coefficients, rtol=1e-9)
