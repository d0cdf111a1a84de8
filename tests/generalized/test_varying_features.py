"""Rows whose features come and go: as if each had been 0 in the rows without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import posterity
from posterity import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegression,
    BayesianPoissonRegression,
)
from posterity.basis import Spline
from posterity.forgetting import Changepoint
from posterity.generalized import VaryingFeatures

RNG = np.random.default_rng(0)
ROWS = [{"a": float(RNG.normal())} for _ in range(8)]
ROWS += [{name: float(RNG.normal()) for name in RNG.permutation(["b", "a", "c"])[:2]}
         for _ in range(20)]  # fmt: skip
NAMES = ["a", *dict.fromkeys(name for row in ROWS[8:] for name in row if name != "a")]
WHOLE = pd.DataFrame(ROWS, columns=NAMES).fillna(0.0)
MODELS: dict[str, tuple[Any, Any]] = {
    "linear": (BayesianLinearRegression(prior_precision=1.0), RNG.normal(size=28)),
    "auto": (BayesianLinearRegression(), RNG.normal(size=28)),
    "counts": (BayesianPoissonRegression(prior_precision=1.0), RNG.poisson(3.0, size=28)),
    "labels": (BayesianLogisticRegression(prior_precision=1.0), RNG.integers(0, 2, size=28)),
}


@pytest.mark.parametrize("kind", MODELS)
def test_it_is_the_model_of_rows_filled_with_zeros(kind: str) -> None:
    estimator, targets = MODELS[kind]
    model, plain = VaryingFeatures(estimator), clone(estimator)
    if kind == "labels":
        targets[:2] = [0, 1]
    for row, target, (_, whole) in zip(ROWS, targets.tolist(), WHOLE.iterrows(), strict=True):
        model.learn_one(row, target)
        plain.learn_one(whole, target)
    assert model.model_.feature_names_in_.tolist() == NAMES
    np.testing.assert_allclose(model.model_.coef_, plain.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(model.predict_one(ROWS[-1]), plain.predict_one(WHOLE.iloc[-1]))
    ends = model.predict_interval_one(ROWS[-1])
    np.testing.assert_allclose(ends, plain.predict_interval_one(WHOLE.iloc[-1]), rtol=1e-6)


def test_a_prediction_at_an_unknown_feature_has_its_prior() -> None:
    model = VaryingFeatures(BayesianLinearRegression(prior_precision=4.0, noise_precision=1.0))
    model.learn_one({"a": 1.0}, 2.0).learn_one({"a": 2.0}, 3.0)
    before = model.model_
    known = model.predict_distribution_one({"a": 1.0})
    wider = model.predict_distribution_one({"a": 1.0, "z": 2.0})
    assert wider.mean() == pytest.approx(known.mean())
    assert wider.var() == pytest.approx(known.var() + 2.0**2 / 4.0)
    assert model.model_ is before


def test_what_is_ignored_and_refused() -> None:
    ignoring = VaryingFeatures(
        BayesianLinearRegression(basis=Spline(domain=(0, 1))), unknown="ignore"
    )
    ignoring.learn_one({"a": 0.5}, 1.0).learn_one({"b": 9.0, "a": 0.1}, 2.0)
    assert ignoring.model_.feature_names_in_.tolist() == ["a"]
    refusing = VaryingFeatures(BayesianLinearRegression(), unknown="refuse")
    refusing.learn_one({"a": 0.5}, 1.0).learn_one({}, 2.0)  # absent is 0
    with pytest.raises(ValueError, match="unknown features 'b': the model has learned 'a'"):
        refusing.learn_one({"b": 1.0}, 2.0)
    assert refusing.model_.n_observations_ == 2.0


def test_a_row_that_is_refused_changes_nothing() -> None:
    model = VaryingFeatures(BayesianLinearRegression()).learn_one({"a": 1.0}, 2.0)
    for row, target in (({"b": np.nan}, 1.0), ({"b": 1.0}, np.inf)):
        with pytest.raises(ValueError, match=r"finite|NaN|1e.75"):
            model.learn_one(row, target)
    assert model.model_.feature_names_in_.tolist() == ["a"]
    assert model.model_.n_observations_ == 1.0


@pytest.mark.parametrize(
    ("estimator", "settings", "message"),
    [
        (BayesianLinearRegression(), {"unknown": "drop"}, "'grow', 'ignore' or 'refuse'"),
        (BayesianLinearRegression(basis=Spline()), {}, "basis"),
        (BayesianLinearRegression(prior_precision={"a": 1.0}), {}, "one number for all"),
        (BayesianLinearRegression(prior_mean=[1.0]), {}, "one number for all"),
    ],
)
def test_settings_that_can_not_be(estimator: Any, settings: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        VaryingFeatures(estimator, **settings).learn_one({"a": 1.0}, 1.0)
    with pytest.raises(NotFittedError, match="learned nothing"):
        VaryingFeatures(estimator, **settings).predict_one({"a": 1.0})


@pytest.mark.parametrize(
    "estimator",
    [
        BayesianLinearRegression(prior_precision=1.0, forgetting=Changepoint()),
        BayesianLogisticRegression(prior_precision=1.0, forgetting=Changepoint()),
        BayesianPoissonRegression(prior_precision=1.0, forgetting=Changepoint()),
    ],
    ids=repr,
)
def test_features_join_while_changes_are_looked_for(estimator: Any) -> None:
    rng = np.random.default_rng(0)
    known, rows = clone(estimator), rng.normal(size=(32, 2))
    rows[:20, 1] = 0.0  # b is absent
    rate = np.exp(np.where(np.arange(32) < 26, 1.0, -1.0) * rows[:, 0] + rows[:, 1])
    y = (rate > 1.0).astype(int) if "Logistic" in repr(estimator) else rng.poisson(rate)
    model = VaryingFeatures(estimator)
    for i, row in enumerate(rows):
        model.learn_one({"a": row[0]} if i < 20 else dict(zip("ab", row, strict=True)), y[i])
        known.learn_one(row, y[i])
    assert model.model_.coef_ == pytest.approx(known.coef_, rel=1e-6, abs=1e-8)
    assert model.model_.changes_.tolist() == known.changes_.tolist()


def test_a_level_joins_while_changes_are_looked_for() -> None:
    rng = np.random.default_rng(0)
    zone = np.where(np.arange(200) < 120, "a", rng.choice(["a", "b"], 200))
    rows = pd.DataFrame({"x": rng.normal(size=200), "zone": zone})
    y = rows["x"].to_numpy() + 3.0 * (zone == "b") + 0.5 * rng.normal(size=200)
    model = BayesianLinearRegression(forgetting="changepoint").fit(rows[:120], y[:120])
    model.partial_fit(rows[120:], y[120:])
    means = model.predict(pd.DataFrame({"x": [0.0, 0.0], "zone": ["a", "b"]}))
    assert means[1] - means[0] == pytest.approx(3.0, abs=0.4)
    assert len(model.changes_) == 0


@pytest.mark.parametrize("kind", ["linear", "labels"])
def test_features_join_runs_between_changes(kind: str) -> None:
    estimator, targets = MODELS[kind]
    estimator = clone(estimator).set_params(forgetting=Changepoint())
    model, plain = VaryingFeatures(estimator), clone(estimator)
    for row, target, (_, whole) in zip(ROWS, targets.tolist(), WHOLE.iterrows(), strict=True):
        model.learn_one(row, target)
        plain.learn_one(whole, target)
    np.testing.assert_allclose(model.model_.coef_, plain.coef_, rtol=1e-3, atol=1e-3)


def test_it_is_kept_in_a_file(tmp_path: Path) -> None:
    model = VaryingFeatures(BayesianNegativeBinomialRegression())
    for row in ROWS:
        model.learn_one(row, 2)
    posterity.save(model, tmp_path / "m.posterity")
    again = posterity.load(tmp_path / "m.posterity")
    for one in (model, again):
        one.learn_one({"new": 1.0}, 3)
    assert again.predict_one({"new": 1.0}) == model.predict_one({"new": 1.0})
    assert again.unknown == "grow"
