"""How y is read where it has columns: names, shapes, and what is refused."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from posterity import BayesianLinearRegression, BayesianQuantileRegression, GroupedRegression

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 2))
Y = X @ [[1.0, 0.0, 2.0], [0.5, -1.0, 0.0]] + 0.1 * RNG.normal(size=(30, 3))


def test_shapes_are_scikit_learns() -> None:
    ours = BayesianLinearRegression(prior_precision=0.0).fit(X, Y)
    theirs = LinearRegression().fit(X, Y)
    assert np.allclose(ours.coef_, theirs.coef_)
    assert np.allclose(ours.intercept_, theirs.intercept_)
    assert np.allclose(ours.predict(X), theirs.predict(X))
    assert ours.score(X, Y) == pytest.approx(theirs.score(X, Y))
    assert ours.predict_interval(X, level=0.9).shape == (30, 3, 2)
    mean, std = ours.predict(X, return_std=True)
    assert mean.shape == std.shape == (30, 3)
    plain = BayesianLinearRegression(fit_intercept=False).fit(X, Y)
    assert plain.intercept_.tolist() == [0.0, 0.0, 0.0]
    assert plain.prior_precision_.shape == (3, 2)


def test_vectors_are_as_they_were() -> None:
    model = BayesianLinearRegression().fit(X, Y[:, 0])
    assert model.coef_.shape == (2,)
    assert isinstance(model.intercept_, float)
    assert not hasattr(model, "n_targets_")
    assert model.fit(X, Y).n_targets_ == 3
    assert not hasattr(model.fit(X, Y[:, 0]), "n_targets_")
    with pytest.warns(match="column-vector"):
        model.partial_fit(X, Y[:, :1])


def test_names_of_a_frame() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(Y, columns=["A", "B", "C"])
    model = BayesianLinearRegression(prior_precision=1.0).fit(X, frame)
    assert model.predict_distribution(X[:2]).given({"A": 3.0}).names == ("B", "C")
    assert model.predict_then_learn(X[:2], Y[:2]).marginal("C").shape == (2,)
    assert model.posterior_.marginal("B").mean == pytest.approx(model.posterior_.mean[1])
    assert list(model.predict_one(X[0])) == ["A", "B", "C"]
    model.learn_one(X[0], {"A": 1.0, "C": 2.0, "B": 0.0}, time=None)
    model.learn_one(X[0], Y[0])
    with pytest.raises(ValueError, match=r"y has the columns 'B', 'A', 'C'; the model has learned"):
        model.partial_fit(X, frame[["B", "A", "C"]])
    with pytest.raises(ValueError, match="the model has learned 'A', 'B', 'C'"):
        model.learn_one(X[0], {"A": 1.0, "Z": 2.0, "B": 0.0})
    other = BayesianLinearRegression(prior_precision=1.0)
    other.fit(X, frame.rename(columns={"A": "Z"}))
    with pytest.raises(ValueError, match="the other model's targets are"):
        model.merge(other)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (Y[:, 0], r"y has shape \(30,\), and the model has learned 3 targets"),
        (Y[:, :2], "y has 2 columns, and the model has learned 3 targets"),
        (np.where(np.arange(90).reshape(30, 3) == 4, np.inf, Y), "infinity in row 1, column 1"),
        (np.full((30, 3), "a"), "y has a value that is not a number"),
        (Y[:4], "inconsistent numbers of samples"),
        (Y[:, :0], "y has 0 columns"),
        (Y[None], r"y has shape \(1, 30, 3\)"),
    ],
)
def test_what_is_refused_changes_nothing(y: Any, message: str) -> None:
    for settings in ({}, {"prior_precision": 1.0}):
        model = BayesianLinearRegression(**settings).fit(X, Y)
        before = model.predict_distribution(X)
        for learn in (model.partial_fit, model.predict_then_learn, model.unlearn):
            with pytest.raises(ValueError, match=message):
                learn(X, y)
        assert np.array_equal(model.predict_distribution(X).cov, before.cov)
        assert model.n_observations_ == 30.0


def test_single_rows_that_are_refused() -> None:
    for settings in ({}, {"prior_precision": 1.0}):
        model = BayesianLinearRegression(**settings).fit(X, Y)
        for y, message in (
            ([1.0, 2.0], r"y has shape \(2,\): expected \(3,\)"),
            ([1.0, np.inf, 2.0], "y of target 1 is not finite"),
            (1.0, r"y has shape \(\): expected \(3,\)"),
        ):
            with pytest.raises(ValueError, match=message):
                model.learn_one(X[0], y)
        with pytest.raises(TypeError, match="targets without names"):
            model.learn_one(X[0], {"A": 1.0, "B": 1.0, "C": 1.0})
        assert model.n_observations_ == 30.0


def test_models_of_one_target_refuse_columns() -> None:
    single = BayesianLinearRegression().fit(X, Y[:, 0])
    with pytest.raises(ValueError, match="learned a single target: call fit"):
        single.partial_fit(X, Y)
    with pytest.raises(
        ValueError, match="the other model has learned 3 targets, this one a single"
    ):
        single.merge(BayesianLinearRegression().fit(X, Y))
    for model in (BayesianQuantileRegression(), GroupedRegression()):
        with pytest.raises(ValueError, match="1d array"):
            model.fit(X, Y, *([np.arange(30) % 3] if model.__class__ is GroupedRegression else []))


def test_memory_is_checked() -> None:
    y = np.broadcast_to(0.0, (2, 3_000_000))
    with pytest.raises(ValueError, match="GB of memory"):
        BayesianLinearRegression().fit(X[:2], y)


@pytest.mark.parametrize(("name", "rows"), [("onnx", ()), ("arviz", (X, Y))])
def test_adapters_of_single_targets_refuse_several(name: str, rows: Any) -> None:
    pytest.importorskip(name)
    model = BayesianLinearRegression().fit(X, Y)
    send = getattr(importlib.import_module(f"posterity.adapters.{name}"), f"to_{name}")
    with pytest.raises(ValueError, match="needs a model of a single target"):
        send(model, *rows)
