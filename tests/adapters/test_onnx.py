"""Exported graphs, run by ONNX Runtime, say what the model says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from posterity import BayesianLinearRegression, BayesianPoissonRegression, basis, forgetting
from posterity.adapters import to_onnx

onnx: Any = pytest.importorskip("onnx", reason="needs onnx: pip install 'posterity[onnx]'")
runtime: Any = pytest.importorskip("onnxruntime", reason="needs onnxruntime to run the graphs")


def rows(n: int, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 4)) * [1.0, scale, 1.0, 1.0] + [0.0, scale, 0.0, 5.0]
    return X, 3.0 + X @ [1.0, 2.0 / scale, -1.0, 0.0] + rng.normal(size=n)


def served(exported: Any, X: np.ndarray) -> list[np.ndarray]:
    session = runtime.InferenceSession(
        exported.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = ["mean", "std", "lower", "upper"]
    return session.run(names, {"X": np.asarray(X, dtype=np.float64)})


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
    told = served(to_onnx(model, level=0.9), queries)
    mean, std = model.predict(queries, return_std=True)
    interval = model.predict_interval(queries, level=0.9)
    for ours, wanted in zip(told, (mean, std, interval[:, 0], interval[:, 1]), strict=True):
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
    with pytest.raises(TypeError, match="to_onnx exports a BayesianLinearRegression, not a Bayes"):
        to_onnx(BayesianPoissonRegression())
    curve = BayesianLinearRegression(basis=basis.Polynomial(degree=2)).fit(X, y)
    with pytest.raises(ValueError, match="to_onnx has no operators for a basis: transform the"):
        to_onnx(curve)
    averaged = BayesianLinearRegression(forgetting=forgetting.Adaptive()).fit(X, y)
    with pytest.raises(ValueError, match="to_onnx needs a posterior that is one factor, and"):
        to_onnx(averaged)
    short = BayesianLinearRegression(prior_precision=0.0).fit(X[:3], y[:3])
    with pytest.raises(ValueError, match="to_onnx needs a proper posterior, and a direction"):
        to_onnx(short)
    unsure = BayesianLinearRegression(prior_precision=0.0).fit(X[:5], y[:5])
    with pytest.raises(ValueError, match="nothing is known of the noise so far"):
        to_onnx(unsure)
