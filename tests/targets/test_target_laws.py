"""Several targets are as many single models, with the same rows in whatever way they come."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posterity import BayesianLinearRegression
from posterity.basis import Polynomial
from posterity.evidence import Integrated, Maximized, SharedScale
from posterity.files import dumps, loads
from posterity.forgetting import (
    Adaptive,
    Changepoint,
    Directional,
    Exponential,
    RandomWalk,
    Smoothing,
    Stabilized,
    Window,
)

PRIORS: list[dict[str, Any]] = [
    {"prior_precision": 0.0},
    {"prior_precision": 2.0, "noise_prior": (2.0, 3.0)},
    {"prior_precision": 2.0, "noise_precision": 4.0, "prior_mean": 1.0},
    {"prior_precision": [1.0, 2.0, 0.5], "fit_intercept": False},
    {"prior_precision": "auto"},
    {"prior_precision": "auto", "noise_prior": (2.0, 3.0)},
    {"prior_precision": "auto", "noise_precision": 4.0},
    {"prior_precision": "ard"},
    {"prior_precision": Maximized()},
    {"prior_precision": Integrated(most_nodes=1)},
]
TOGETHER = {"prior_precision": SharedScale()}
FORGETTING = [
    Exponential(discount=0.9),
    Stabilized(discount=0.9),
    Directional(discount=0.9),
    RandomWalk(variance=0.01),
    Smoothing(gamma=0.9),
    Window(size=20),
]
GIVEN = {"prior_precision": 2.0, "noise_prior": (2.0, 3.0)}


def data(n: int = 40, p: int = 3, q: int = 3, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    mixing = rng.normal(size=(q, q))
    y = X @ rng.normal(size=(p, q)) * np.arange(q) + rng.normal(size=(n, q)) @ mixing + 2.0
    return X, y, rng.choice([0.5, 1.0, 2.0], size=n)


def assert_single(many: Any, singles: list[Any], X: Any, tolerance: float = 1e-10) -> None:
    """Each target is predicted, and its coefficients known, as by a model of its own."""
    prediction = many.predict_distribution(X)
    for j, one in enumerate(singles):
        theirs, mine = one.predict_distribution(X), prediction.marginal(j)
        scale = theirs.scale
        assert np.allclose(mine.loc, theirs.loc, atol=tolerance * (1.0 + np.abs(theirs.loc).max()))
        assert np.allclose(mine.scale, scale, rtol=tolerance)
        if hasattr(theirs, "df"):
            assert np.allclose(mine.df, theirs.df, rtol=tolerance)
        size = 1.0 + np.abs(one.coef_).max()
        assert np.allclose(many.coef_[j], one.coef_, atol=tolerance * size)
        assert many.intercept_[j] == pytest.approx(one.intercept_, rel=tolerance, abs=tolerance)
        assert np.allclose(many.predict(X)[:, j], one.predict(X), atol=10 * tolerance * size)
        ours = many.posterior_.marginal(j)
        assert np.allclose(ours.std(), one.posterior_.std(), rtol=tolerance)
        assert many.noise_precision_[j] == pytest.approx(
            one.noise_precision_, rel=tolerance, nan_ok=True
        )


@pytest.mark.parametrize("settings", PRIORS, ids=str)
def test_q_targets_are_q_single_models(settings: dict[str, Any]) -> None:
    X, y, weights = data()
    many = BayesianLinearRegression(**settings).fit(X, y, weights)
    singles = [BayesianLinearRegression(**settings).fit(X, one, weights) for one in y.T]
    assert_single(many, singles, X[:7])


@pytest.mark.parametrize("settings", PRIORS, ids=str)
def test_rows_of_a_stream_are_predicted_as_by_single_models(settings: dict[str, Any]) -> None:
    X, y, weights = data(60)
    many = BayesianLinearRegression(**settings)
    singles = [BayesianLinearRegression(**settings) for _ in y.T]
    for part in (slice(0, 25), slice(25, 26), slice(26, 60)):
        predictive = many.predict_then_learn(X[part], y[part], weights[part])
        for j, one in enumerate(singles):
            theirs = one.predict_then_learn(X[part], y[part, j], weights[part])
            assert np.allclose(predictive.marginal(j).loc, theirs.loc, atol=1e-8)
            assert np.allclose(predictive.marginal(j).scale, theirs.scale, rtol=1e-8)
        assert predictive.correlation.shape == (len(X[part]), 3, 3)
    assert_single(many, singles, X[:7], 1e-8)


@pytest.mark.parametrize("precision", [2.0, "auto"])
@pytest.mark.parametrize("forgetting", FORGETTING, ids=str)
def test_forgetting(forgetting: Any, precision: Any) -> None:
    X, y, _ = data(60)
    settings = {"prior_precision": precision, "forgetting": forgetting}
    many = BayesianLinearRegression(**settings).fit(X[:40], y[:40])
    singles = [BayesianLinearRegression(**settings).fit(X[:40], one[:40]) for one in y.T]
    assert_single(many, singles, X[:7], 1e-8)
    for x, row in zip(X[40:], y[40:], strict=True):
        many.learn_one(x, row)
        for one, value in zip(singles, row, strict=True):
            one.learn_one(x, value)
    assert_single(many, singles, X[:7], 1e-8)
    predictive = many.predict_then_learn(X[:5], y[:5])
    for j, one in enumerate(singles):
        theirs = one.predict_then_learn(X[:5], y[:5, j])
        assert np.allclose(predictive.marginal(j).mean(), theirs.mean(), atol=1e-8)
        assert np.allclose(predictive.marginal(j).scale, theirs.scale, rtol=1e-8)


@pytest.mark.parametrize("settings", [*PRIORS, TOGETHER], ids=str)
def test_however_the_rows_come(settings: dict[str, Any]) -> None:
    X, y, weights = data()
    whole = BayesianLinearRegression(**settings).fit(X, y, weights)
    rows = BayesianLinearRegression(**settings)
    for x, row, weight in zip(X, y, weights, strict=True):
        rows.learn_one(x, row, weight)
    batches = BayesianLinearRegression(**settings)
    batches.partial_fit(X[:11], y[:11], weights[:11]).partial_fit(X[11:], y[11:], weights[11:])
    half = BayesianLinearRegression(**settings).fit(X[:11], y[:11], weights[:11])
    half.merge(BayesianLinearRegression(**settings).fit(X[11:], y[11:], weights[11:]))
    more = BayesianLinearRegression(**settings).fit(
        np.vstack([X, X[:5] + 1.0]), np.vstack([y, y[:5]]), np.append(weights, np.ones(5))
    )
    more.unlearn(X[:5] + 1.0, y[:5])
    ours = whole.predict_distribution(X[:6])
    for other in (rows, batches, half, more):
        theirs = other.predict_distribution(X[:6])
        assert np.allclose(ours.mean(), theirs.mean(), atol=1e-8)
        assert np.allclose(ours.scale, theirs.scale, rtol=1e-7)
        assert np.allclose(ours.correlation, theirs.correlation, atol=1e-7)
        assert other.log_evidence_ == pytest.approx(whole.log_evidence_, rel=1e-7, abs=1e-7)


@pytest.mark.parametrize(
    "copied", [lambda m: pickle.loads(pickle.dumps(m)), lambda m: loads(dumps(m))]
)
@pytest.mark.parametrize("settings", [*PRIORS, *({"forgetting": f} for f in FORGETTING)], ids=str)
def test_files_and_pickles(settings: dict[str, Any], copied: Any) -> None:
    pd = pytest.importorskip("pandas")
    X, y, _ = data()
    frame = pd.DataFrame(y, columns=["A", "B", "C"])
    model = BayesianLinearRegression(**settings).fit(X, frame)
    model.predict(X[:2])
    other = copied(model)
    assert list(other.target_names_) == ["A", "B", "C"]
    for one in (model, other):
        one.partial_fit(X[:3], frame[:3])
    ours, theirs = model.predict_distribution(X[:5]), other.predict_distribution(X[:5])
    assert np.array_equal(ours.mean(), theirs.mean())
    assert np.array_equal(ours.cov, theirs.cov, equal_nan=True)
    assert ours.names == theirs.names == ("A", "B", "C")


@pytest.mark.parametrize("settings", PRIORS, ids=str)
def test_one_column_is_the_vector(settings: dict[str, Any]) -> None:
    X, y, weights = data(q=1)
    column = BayesianLinearRegression(**settings).fit(X, y, weights)
    vector = BayesianLinearRegression(**settings).fit(X, y[:, 0], weights)
    assert column.coef_.shape == (1, 3)
    assert column.predict(X).shape == (40, 1)
    assert_single(column, [vector], X[:5])
    assert column.log_evidence_ == pytest.approx(vector.log_evidence_, rel=1e-10)
    column.learn_one(X[0], y[0]).partial_fit(X[:1], y[:1])
    vector.learn_one(X[0], y[0, 0]).partial_fit(X[:1], y[:1, 0])
    assert_single(column, [vector], X[:5])
    assert column.predict_one(X[0]).shape == (1,)


@given(seed=st.integers(0, 10**6), q=st.integers(1, 5), n=st.integers(3, 30), known=st.booleans())
def test_evidence_is_the_sum_of_joint_predictions(seed: int, q: int, n: int, known: bool) -> None:
    X, y, _ = data(n, q=q, seed=seed)
    settings = {"prior_precision": 2.0, "fit_intercept": False}
    noise = {"noise_precision": 0.5} if known else {"noise_prior": (2.0, 3.0)}
    model = BayesianLinearRegression(**settings, **noise)
    predictive = model.predict_then_learn(X, y)
    assert model.log_evidence_ == pytest.approx(predictive.logpdf(y).sum(), rel=1e-9)


def test_a_stream_knows_correlations_before_each_row() -> None:
    X, y, weights = data()
    model = BayesianLinearRegression(**GIVEN)
    predictive = model.predict_then_learn(X, y, weights)
    before = BayesianLinearRegression(**GIVEN).fit(X[:20], y[:20], weights[:20])
    assert np.allclose(predictive.cov[20], before.predict_distribution(X[20:21]).cov[0], rtol=1e-9)


def test_one_precision_for_all_targets() -> None:
    X, y, weights = data(14)
    settings = {"prior_precision": SharedScale(most_nodes=1), "noise_prior": (2.0, 3.0)}
    model = BayesianLinearRegression(**settings).fit(X, y, weights)
    precision = model.prior_precision_
    assert np.allclose(precision, precision[0])
    fixed = {"prior_precision": precision[0], "noise_prior": (2.0, 3.0)}
    same = BayesianLinearRegression(**fixed).fit(X, y, weights)
    ours, theirs = model.predict_distribution(X), same.predict_distribution(X)
    assert np.allclose(ours.cov, theirs.cov, rtol=1e-9)
    assert np.allclose(ours.mean(), theirs.mean(), atol=1e-9)
    assert model.log_evidence_ == pytest.approx(same.log_evidence_, rel=1e-9)
    # The precision is where the evidence of the joint model, by its formula, is large.
    factors = np.exp(np.linspace(-12.0, 12.0, 49))
    evidence = np.array(
        [
            BayesianLinearRegression(**fixed | {"prior_precision": factor * precision[0]})
            .fit(X, y, weights)
            .log_evidence_
            for factor in factors
        ]
    )
    likely = np.log(factors)[evidence > evidence.max() - 2.0]
    assert likely.min() < 0.0 < likely.max()


def test_one_precision_for_all_targets_in_a_stream() -> None:
    X, y, weights = data(60)
    whole = BayesianLinearRegression(prior_precision=SharedScale()).fit(X, y, weights)
    stream = BayesianLinearRegression(prior_precision=SharedScale())
    split = BayesianLinearRegression(prior_precision=SharedScale())
    predictive = stream.predict_then_learn(X, y, weights)
    for part in (slice(0, 7), slice(7, 8), slice(8, 60)):
        some = split.predict_then_learn(X[part], y[part], weights[part])
        assert np.allclose(some.loc, predictive.loc[part], atol=1e-8)
        assert np.allclose(some.scale, predictive.scale[part], rtol=1e-8)
    for other in (stream, split, loads(dumps(whole))):
        assert np.allclose(other.predict(X), whole.predict(X), atol=1e-9)
    vector = BayesianLinearRegression(prior_precision=SharedScale()).fit(X, y[:, 0])
    one_scale = BayesianLinearRegression(prior_precision=Integrated()).fit(X, y[:, 0])
    assert np.array_equal(vector.coef_, one_scale.coef_)
    fading = BayesianLinearRegression(prior_precision=SharedScale(), forgetting=Window(size=20))
    fading.fit(X, y)
    assert np.allclose(fading.prior_precision_, fading.prior_precision_[0])
    assert np.isfinite(fading.predict_then_learn(X[:3], y[:3]).scale).all()


def test_bases_and_names() -> None:
    X, y, _ = data()
    many = BayesianLinearRegression(basis=Polynomial(degree=2)).fit(X[:, :1], y)
    singles = [BayesianLinearRegression(basis=Polynomial(degree=2)).fit(X[:, :1], o) for o in y.T]
    assert_single(many, singles, X[:7, :1])
    rows = BayesianLinearRegression(prior_precision=1.0)
    for x, row in zip(X, y, strict=True):
        rows.learn_one({"a": x[0], "b": x[1], "c": x[2]}, {"A": row[0], "B": row[1], "C": row[2]})
    predictive = rows.predict_one({"a": 0.0, "b": 1.0, "c": 0.0})
    assert list(predictive) == ["A", "B", "C"]
    assert predictive["B"] == pytest.approx(rows.intercept_[1] + rows.coef_[1, 1])


@pytest.mark.parametrize("forgetting", [Adaptive(), Changepoint()])
def test_what_follows_one_target_refuses_several(forgetting: Any) -> None:
    X, y, _ = data()
    with pytest.raises(ValueError, match="a single target: fit a model for each column"):
        BayesianLinearRegression(forgetting=forgetting).fit(X, y)
    with pytest.raises(ValueError, match="a single target"):
        BayesianLinearRegression(noise="linear").fit(X, y)
