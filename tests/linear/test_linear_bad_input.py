"""Bad input: each kind has its own message, and the model stays as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import NotFittedError

from posterity import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    Forecaster,
    GroupedRegression,
)
from posterity.forgetting import Window
from posterity.sparse import SparseLinearRegression

X = np.random.default_rng(0).normal(size=(20, 3))
Y = X @ [1.0, 2.0, 3.0]


def changed(value: float, row: int = 4, column: int = 2) -> np.ndarray:
    copy = X.copy()
    copy[row, column] = value
    return copy


def state(model: BayesianLinearRegression) -> tuple[Any, ...]:
    return model.log_evidence_, model.n_observations_, *model.coef_, *model.posterior_.cov.ravel()


BAD_ROWS: dict[str, tuple[Any, Any, Any, str]] = {
    "NaN in X": (
        changed(np.nan),
        Y,
        None,
        r"X contains NaN in row 4, column 2 \(the first of 1\): drop",
    ),
    "infinity in X": (changed(-np.inf), Y, None, "X contains infinity in row 4, column 2"),
    "huge X": (changed(1e200), Y, None, r"X is 1e\+200 in row 4, column 2: .* smaller units"),
    "NaN in y": (X, np.where(np.arange(20) == 7, np.nan, Y), None, "y contains NaN in row 7"),
    "infinity in y": (
        X,
        np.where(np.arange(20) == 7, np.inf, Y),
        None,
        "y contains infinity in row 7",
    ),
    "NaN weight": (X, Y, [1.0] * 19 + [np.nan], "sample_weight is nan in row 19: weights must be"),
    "infinite weight": (X, Y, [np.inf] + [1.0] * 19, "sample_weight is inf in row 0"),
    "negative weight": (X, Y, [1.0] * 5 + [-1.0] + [1.0] * 14, "sample_weight is -1.0 in row 5"),
    "too few weights": (X, Y, [1.0], r"sample_weight has shape \(1,\): expected \(20,\)"),
    "too wide": (np.hstack([X, X]), Y, None, "6 features.* expecting 3"),
    "too narrow": (X[:, :2], Y, None, "2 features.* expecting 3"),
    "one row as a vector": (X[0], Y[:1], None, "Expected 2D array"),
    "lengths differ": (X, Y[:5], None, "inconsistent numbers of samples"),
    "no rows": (X[:0], Y[:0], None, r"Found array with 0 sample\(s\)"),
    "no columns": (X[:, :0], Y, None, r"Found array with 0 feature\(s\)"),
    "text in y": (X, ["red"] * 20, None, "y has a value that is not a number: .*'red'"),
    "no y": (X, None, None, "the target y is None"),
    "complex": (X + 1j, Y, None, "Complex data not supported"),
}
text = X.astype(object)
text[3, 1] = "red"
BAD_ROWS["text"] = (
    text,
    Y,
    None,
    "could not convert 'red' to a number: row 3, column 1; drop the column",
)

LEARNING: dict[str, Callable[..., Any]] = {
    "fit": BayesianLinearRegression.fit,
    "partial_fit": BayesianLinearRegression.partial_fit,
    "predict_then_learn": BayesianLinearRegression.predict_then_learn,
    "unlearn": BayesianLinearRegression.unlearn,
}


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        (method, kind)
        for method in LEARNING
        for kind in BAD_ROWS
        if not (method == "fit" and kind in ("too wide", "too narrow"))  # fit forgets the old width
    ],
)
def test_rows_that_cannot_be_learned(method: str, kind: str) -> None:
    rows, targets, weights, message = BAD_ROWS[kind]
    model = BayesianLinearRegression().fit(X, Y + 0.1 * np.sin(np.arange(20)))
    before = state(model)
    with pytest.raises(ValueError, match=message):
        LEARNING[method](model, rows, targets, weights)
    assert state(model) == before


@pytest.mark.parametrize("kind", ["NaN in X", "infinity in X", "too wide", "text", "no rows"])
def test_points_that_cannot_be_predicted(kind: str) -> None:
    rows, _, _, message = BAD_ROWS[kind]
    model = BayesianLinearRegression().fit(X, Y)
    for method in (model.predict, model.predict_distribution, model.predict_interval):
        with pytest.raises(ValueError, match=message):
            method(rows)


def test_a_fresh_model_that_fails_stays_fresh() -> None:
    model = BayesianLinearRegression()
    for method in LEARNING.values():
        if method is not BayesianLinearRegression.unlearn:
            with pytest.raises(ValueError, match="NaN"):
                method(model, changed(np.nan), Y)
    with pytest.raises(ValueError, match="x in column 0 is not finite"):
        model.learn_one([np.nan], 1.0)
    assert not hasattr(model, "coef_")
    assert not hasattr(model, "n_features_in_")


def test_a_failing_fit_keeps_what_was_learned_before() -> None:
    model = BayesianLinearRegression().fit(X, Y)
    before = state(model)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(changed(np.nan)[:, 1:], Y)
    assert model.n_features_in_ == 3
    assert state(model) == before


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_names_of_features(frame: Callable[..., Any]) -> None:
    def table(*names: str) -> Any:
        return frame({name: X[:, column] for column, name in enumerate(names)})

    model = BayesianLinearRegression().fit(table("a", "b", "c"), Y)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    before = state(model)
    for wrong, message in (
        (("c", "b", "a"), r"same order.*\n.*as in X\[list\(model.feature_names_in_\)\]"),
        (("a", "b", "z"), "unseen at fit time:\n- z"),
    ):
        with pytest.raises(ValueError, match=message):
            model.partial_fit(table(*wrong), Y)
        with pytest.raises(ValueError, match=message):
            model.predict(table(*wrong))
    broken = {name: X[:, column].copy() for column, name in enumerate("abc")}
    broken["b"][2] = np.nan
    with pytest.raises(ValueError, match="X contains NaN in row 2, column 'b'"):
        model.partial_fit(frame(broken), Y)
    words = {"a": X[:, 0], "b": ["red"] * 20, "c": X[:, 2]}
    with pytest.raises(ValueError, match="could not convert 'red' to a number: row 0, column 'b'"):
        model.partial_fit(frame(words), Y)
    assert state(model) == before


@pytest.mark.parametrize(
    ("x", "y", "weight", "message"),
    [
        (
            [1.0, np.nan, 2.0],
            1.0,
            1.0,
            r"x in column 'b' is not finite \(nan\): remove the row or fill",
        ),
        ([1.0, 2.0, np.inf], 1.0, 1.0, "x in column 'c' is not finite"),
        ([1.0, 1e200, 2.0], 1.0, 1.0, r"x in column 'b' is 1e\+200: beyond 1e\+75"),
        ([1.0, 2.0], 1.0, 1.0, r"x has shape \(2,\): expected \(3,\)"),
        ([[1.0, 2.0, 3.0]], 1.0, 1.0, r"x has shape \(1, 3\): expected \(3,\)"),
        (["a", "b", "c"], 1.0, 1.0, "x in column 'a' is 'a', which is not a number"),
        ({"a": 1.0, "b": 2.0}, 1.0, 1.0, "missing 'c'"),
        ({"a": 1.0, "b": 2.0, "z": 3.0}, 1.0, 1.0, "missing 'c'; unexpected 'z'"),
        ({"a": 1.0, "b": 2.0, "c": 3.0, "d": 0.0}, 1.0, 1.0, "unexpected 'd'"),
        ([1.0, 2.0, 3.0], np.nan, 1.0, "y is not finite"),
        ([1.0, 2.0, 3.0], 1e200, 1.0, "y is 1e.200: beyond 1e.75"),
        ([1.0, 2.0, 3.0], 1.0, -1.0, "weight is -1.0: it must be finite and not negative"),
        ([1.0, 2.0, 3.0], 1.0, np.nan, "weight is nan"),
    ],
)
def test_the_lean_path(x: Any, y: float, weight: float, message: str) -> None:
    model = BayesianLinearRegression()
    for row, target in zip(X, Y, strict=True):
        model.learn_one(dict(zip("abc", row, strict=True)), target)
    before = state(model)
    with pytest.raises(ValueError, match=message):
        model.learn_one(x, y, weight)
    assert state(model) == before
    if "y" not in message and "weight" not in message:
        with pytest.raises(ValueError, match=message):
            model.predict_one(x)


def test_names_for_a_model_without_them() -> None:
    model = BayesianLinearRegression().fit(X, Y)
    with pytest.raises(TypeError, match="the model learned from rows without names"):
        model.learn_one({"a": 1.0, "b": 2.0, "c": 3.0}, 1.0)


def test_predicting_before_anything_is_known() -> None:
    model = BayesianLinearRegression()
    for ask in (
        lambda: model.predict(X),
        lambda: model.predict_distribution(X),
        lambda: model.unlearn(X, Y),
        lambda: model.merge(BayesianLinearRegression()),
        lambda: model.sample_coefficients(3),
    ):
        with pytest.raises(NotFittedError, match="has learned nothing yet: call fit, partial_fit"):
            ask()
    flat = BayesianLinearRegression(prior_precision=0.0).fit(X[:2], Y[:2])
    assert np.isinf(flat.predict_distribution(X).std()).all()
    with pytest.raises(ValueError, match="the posterior is improper"):
        flat.sample_coefficients(3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"prior_precision": -1.0}, "prior_precision is negative: use 0"),
        (
            {"prior_precision": [1.0, 2.0]},
            r"prior_precision has shape \(2,\): expected a number, \(3,\)",
        ),
        ({"prior_precision": np.nan}, "prior_precision is not finite"),
        ({"prior_precision": np.diag([1.0, 1.0, -1.0])}, "negative eigenvalue -1"),
        ({"prior_precision": np.triu(np.ones((3, 3)))}, "prior_precision is not symmetric"),
        (
            {"prior_mean": [1.0]},
            r"prior_mean has shape \(1,\): expected a number or one for each of 3",
        ),
        ({"prior_mean": np.inf}, "prior_mean is not finite"),
        (
            {"noise_precision": 0.0},
            "noise_precision is 0.0: it must be positive and finite, or None",
        ),
        (
            {"noise_prior": (-1.0, 1.0)},
            r"noise_prior is \(-1.0, 1.0\): shape and rate must be finite",
        ),
    ],
)
def test_settings_out_of_range(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BayesianLinearRegression(**settings).fit(X, Y)


@pytest.mark.parametrize("name", ["prior_precision", "prior_mean"])
def test_a_prior_that_is_no_number_is_named(name: str) -> None:
    for value, error in ((Window(30), TypeError), ([[1.0], [1.0, 2.0]], ValueError)):
        with pytest.raises(error, match=rf"{name} is .*: it must be a number, or a number for"):
            BayesianLinearRegression(**{name: value}).fit(X, Y)


def test_merging_what_does_not_belong_together() -> None:
    model = BayesianLinearRegression().fit(X, Y)
    before = state(model)
    for other, message in (
        (BayesianLinearRegression().fit(X[:, :2], Y), "has 2 features, this one 3"),
        (
            BayesianLinearRegression(prior_precision=2.0).fit(X, Y),
            "only models with the same settings",
        ),
        (
            BayesianLinearRegression(noise_precision=1.0).fit(X, Y),
            "differ in prior, noise, intercept",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            model.merge(other)
    named = BayesianLinearRegression().fit(pd.DataFrame(X, columns=list("abc")), Y)
    swapped = BayesianLinearRegression().fit(pd.DataFrame(X, columns=list("acb")), Y)
    with pytest.raises(ValueError, match="same features in the same order"):
        named.merge(swapped)
    assert state(model) == before


def test_merging_what_is_no_model_of_the_kind() -> None:
    for model in (BayesianLinearRegression(), GroupedRegression(), SparseLinearRegression()):
        name = type(model).__name__
        for other in (None, 3):
            with pytest.raises(TypeError, match=f"other is a .*: merge another {name} into a"):
                model.fit(X, Y).merge(other)
    forecaster = Forecaster().fit(Y)
    with pytest.raises(TypeError, match="other is a int: merge another Forecaster"):
        forecaster.merge(3)


def test_a_data_frame_is_no_row() -> None:
    frame = pd.DataFrame(X, columns=list("abc"))
    model = BayesianLinearRegression().fit(frame, Y)
    before = state(model)
    for call in (model.predict_one, lambda x: model.learn_one(x, 1.0)):
        with pytest.raises(TypeError, match=r"x is a DataFrame of shape \(1, 3\): .*x.iloc\[0\]"):
            call(frame[:1])
    assert state(model) == before
    assert model.predict_one(frame.iloc[0]) == pytest.approx(model.predict(frame[:1])[0])


def test_labels_of_no_rows() -> None:
    with pytest.raises(ValueError, match="no rows: give at least one row, with its label"):
        BayesianLogisticRegression().fit(X[:0], [])
