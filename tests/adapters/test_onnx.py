"""Exported graphs, run by ONNX Runtime, say what the model says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from posterity import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegression,
    BayesianQuantileRegression,
    BayesianRobustRegression,
    basis,
    forgetting,
)
from posterity.adapters import to_onnx
from posterity.calibration import Conformal, Recalibrated

onnx: Any = pytest.importorskip("onnx", reason="needs onnx: pip install 'posterity[onnx]'")
runtime: Any = pytest.importorskip("onnxruntime", reason="needs onnxruntime to run the graphs")


def rows(n: int, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 4)) * [1.0, scale, 1.0, 1.0] + [0.0, scale, 0.0, 5.0]
    return X, 3.0 + X @ [1.0, 2.0 / scale, -1.0, 0.0] + rng.normal(size=n)


def told_by(exported: Any, X: np.ndarray) -> dict[str, np.ndarray]:
    session = runtime.InferenceSession(
        exported.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    values = session.run(names, {"X": np.asarray(X, dtype=np.float64)})
    return dict(zip(names, values, strict=True))


def served(exported: Any, X: np.ndarray) -> list[np.ndarray]:
    predictive = told_by(exported, X)
    assert list(predictive) == ["mean", "std", "lower", "upper"]
    return list(predictive.values())


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"prior_precision": 0.0},
        {"prior_precision": 1.0, "noise_precision": 2.0, "fit_intercept": False},
        {"noise_precision": 2.0},
        {"prior_precision": "ard"},
        {"prior_precision": 0.5, "forgetting": forgetting.Exponential(discount=0.97)},
        {"forgetting": forgetting.Window(20)},
    ],
    ids=str,
)
@pytest.mark.parametrize("n", [12, 300])
def test_mean_deviation_and_interval_are_the_models(settings: dict[str, Any], n: int) -> None:
    X, y = rows(n, scale=1e3)
    model = BayesianLinearRegression(**settings).fit(X, y)
    queries = rows(50, scale=1e3)[0]
    predictive = served(to_onnx(model, level=0.9), queries)
    mean, std = model.predict(queries, return_std=True)
    interval = model.predict_interval(queries, level=0.9)
    for ours, wanted in zip(predictive, (mean, std, interval[:, 0], interval[:, 1]), strict=True):
        assert ours.shape == (50,)
        np.testing.assert_allclose(ours, wanted, rtol=1e-10, atol=1e-10)


def test_few_degrees_of_freedom_have_no_deviation_and_an_interval() -> None:
    X, y = rows(6)
    model = BayesianLinearRegression(prior_precision=0.0).fit(X, y)  # one degree of freedom
    _, std, lower, _ = served(to_onnx(model), X)
    assert np.isinf(std).all()
    np.testing.assert_allclose(lower, model.predict_interval(X)[:, 0], rtol=1e-9)


def test_names_and_level_are_kept() -> None:
    pd = pytest.importorskip("pandas")
    X, y = rows(20)
    model = BayesianLinearRegression().fit(pd.DataFrame(X, columns=list("abcd")), y)
    kept = {entry.key: entry.value for entry in to_onnx(model, level=0.5).metadata_props}
    assert kept == {"features": "a\nb\nc\nd", "level": "0.5"}


def test_what_has_no_graph_says_so() -> None:
    X, y = rows(20)
    for model, words in (
        (BayesianQuantileRegression().fit(X, y), "robust regressions, not a BayesianQuantile"),
        (Conformal(BayesianLinearRegression()), "can't export a Conformal, whose corrections"),
        (Recalibrated(BayesianLinearRegression()), "can't export a Recalibrated, whose"),
    ):
        with pytest.raises(TypeError, match=words):
            to_onnx(model)
    many = BayesianLogisticRegression().fit(X, np.arange(20) % 3)
    with pytest.raises(ValueError, match="this model has 3: probabilities of more are integrated"):
        to_onnx(many)
    one = BayesianLogisticRegression().partial_fit(X, np.zeros(20, dtype=int))
    with pytest.raises(ValueError, match="this model has 1: learn rows of another class"):
        to_onnx(one)
    with pytest.raises(ValueError, match=r"level is 1\.0: it must lie between 0 and 1"):
        to_onnx(BayesianLinearRegression().fit(X, y), level=1.0)
    forgetful = BayesianLogisticRegression(forgetting=forgetting.Adaptive()).fit(X, y > 0.0)
    with pytest.raises(ValueError, match="to_onnx needs a posterior that is one factor, and"):
        to_onnx(forgetful)
    curve = BayesianLinearRegression(basis=basis.Polynomial(degree=2)).fit(X, y)
    with pytest.raises(ValueError, match="no operators for a basis or categories: transform"):
        to_onnx(curve)
    averaged = BayesianLinearRegression(forgetting=forgetting.Adaptive()).fit(X, y)
    with pytest.raises(ValueError, match="to_onnx needs a posterior that is one factor, and"):
        to_onnx(averaged)
    short = BayesianLinearRegression(prior_precision=0.0).fit(X[:3], y[:3])
    with pytest.raises(ValueError, match="to_onnx needs a proper posterior, and a combination"):
        to_onnx(short)
    unsure = BayesianLinearRegression(prior_precision=0.0).fit(X[:5], y[:5])
    with pytest.raises(ValueError, match="nothing is known of the noise so far"):
        to_onnx(unsure)


# ---- other likelihoods -----------------------------------------------------------------------

LABELS = {
    "words": np.array(["no", "yes"]),
    "numbers": np.array([3, 7]),
    "truth": np.array([False, True]),
}


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("n", [8, 300])
def test_two_classes(kind: str, n: int) -> None:
    X, y = rows(n)
    labels = LABELS[kind][(y > 3.0).astype(int)]
    # What a fit of few rows knows of the posterior's skewness is not exported.
    model = BayesianLogisticRegression(prior_precision=0.1).fit(X[:-1], labels[:-1])
    model.learn_one(X[-1], labels[-1])
    far = np.geomspace(1e-3, 1e3, 200)[:, None] * rows(200)[0]
    predictive = told_by(to_onnx(model, level=0.8), far)
    # From variances of next to nothing to those of rows a thousand times as far out.
    wanted = model.predict_proba(far)
    shown = wanted > 1e-290
    np.testing.assert_allclose(predictive["probabilities"][shown], wanted[shown], rtol=1e-6)
    np.testing.assert_allclose(predictive["probabilities"], wanted, atol=1e-9)
    assert predictive["label"].tolist() == model.predict(far).tolist()
    ends = model.predict_interval(far, level=0.8)
    np.testing.assert_allclose(predictive["lower"], ends[:, 0], rtol=1e-6, atol=1e-300)
    np.testing.assert_allclose(predictive["upper"], ends[:, 1], rtol=1e-6, atol=1e-300)


@pytest.mark.parametrize("first", ["no", "yes"])
def test_the_class_that_came_first_makes_no_difference(first: str) -> None:
    X, y = rows(100)
    labels = np.where(y > 3.0, "yes", "no")
    start = labels == first
    model = BayesianLogisticRegression(forgetting=forgetting.Stabilized(discount=0.98))
    model.partial_fit(X[start][:3], labels[start][:3]).partial_fit(X, labels)
    predictive = told_by(to_onnx(model), X)
    np.testing.assert_allclose(predictive["probabilities"], model.predict_proba(X), rtol=1e-6)
    assert predictive["label"].tolist() == model.predict(X).tolist()


@pytest.mark.parametrize("n", [8, 300])
def test_counts(n: int) -> None:
    X, y = rows(n)
    counts = np.random.default_rng(0).poisson(np.exp(0.2 * y))
    model = BayesianPoissonRegression().fit(X[:-1], counts[:-1]).learn_one(X[-1], counts[-1])
    far = np.geomspace(0.1, 5.0, 200)[:, None] * rows(200)[0]
    predictive, wanted = told_by(to_onnx(model, level=0.8), far), model.predict_distribution(far)
    at_coefficients = np.exp(model.intercept_ + far @ model.coef_)
    np.testing.assert_allclose(predictive["rate"], at_coefficients, rtol=1e-9)
    np.testing.assert_allclose(predictive["mean"], wanted.mean(), rtol=1e-9)
    np.testing.assert_allclose(predictive["std"], wanted.std(), rtol=1e-9)
    ends = model.predict_interval(far, level=0.8, of="rate")
    np.testing.assert_allclose(
        np.stack([predictive["lower"], predictive["upper"]], axis=1), ends, rtol=1e-9
    )


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"likelihood": "laplace"},
        {"df": 2.0, "prior_precision": 0.0},
        {"noise_scale": 0.5, "prior_precision": 2.0},
        {"forgetting": forgetting.Stabilized(discount=0.97)},
    ],
    ids=str,
)
def test_heavy_tails(settings: dict[str, Any]) -> None:
    X, y = rows(200)
    y[::20] += 40.0
    model = BayesianRobustRegression(**settings).fit(X, y)
    mean, std = model.predict(X, return_std=True)
    ends = model.predict_interval(X, level=0.9)
    for ours, wanted in zip(
        served(to_onnx(model, level=0.9), X), (mean, std, ends[:, 0], ends[:, 1]), strict=True
    ):
        np.testing.assert_allclose(ours, wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("input_type", ["float64", "float32"])
def test_a_pipeline_of_affine_steps(named: bool, input_type: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal([1e6, 0.0, -3.0], [1e3, 1e-3, 2.0], size=(80, 3)).astype(np.float32)
    y = 1e-3 * X[:, 0] + X[:, 2] + rng.normal(size=80)
    table: Any = pd.DataFrame(X, columns=["a", "b", "c"]) if named else X
    pipe = make_pipeline(StandardScaler(), PCA(2), BayesianLinearRegression()).fit(table, y)
    exported = to_onnx(pipe, input_type=input_type)
    session = runtime.InferenceSession(exported.SerializeToString())
    mean, std, _, _ = session.run(None, {"X": X.astype(input_type)})
    expected = pipe.predict(table, return_std=True)
    np.testing.assert_allclose(mean, expected[0], rtol=1e-6)
    np.testing.assert_allclose(std, expected[1], rtol=1e-6)
    features = next(one.value for one in exported.metadata_props if one.key == "features")
    assert features.split("\n") == (["a", "b", "c"] if named else ["x0", "x1", "x2"])


def test_steps_that_are_not_affine() -> None:
    X, y = rows(30)
    pipe = make_pipeline(PolynomialFeatures(2), BayesianLinearRegression()).fit(X, y)
    with pytest.raises(ValueError, match="are affine, such as StandardScaler"):
        to_onnx(pipe)
    with pytest.raises(ValueError, match="'float64' or 'float32'"):
        to_onnx(BayesianLinearRegression().fit(X, y), input_type="int8")  # type: ignore[arg-type]
