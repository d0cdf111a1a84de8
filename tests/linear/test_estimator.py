"""The scikit-learn estimator, and the lean path for single rows."""

from __future__ import annotations

import copy
import pickle
from types import MappingProxyType

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from posterity import BayesianLinearRegression
from posterity.distributions import Normal, StudentT

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = 1.0 + X @ [1.0, 2.0, 3.0] + 0.1 * RNG.normal(size=60)


def test_scikit_learn_accepts_it() -> None:
    check_estimator(BayesianLinearRegression(), on_skip=None)


def test_clone_pipeline_and_cross_validation() -> None:
    model = BayesianLinearRegression(prior_precision=0.5, noise_precision=2.0)
    assert clone(model).get_params() == model.get_params()
    scores = cross_val_score(make_pipeline(StandardScaler(), model), X, Y)
    assert scores.min() > 0.9


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_copy_goes_its_own_way(copied: object) -> None:
    model = BayesianLinearRegression().learn_one([1.0, 2.0], 3.0).learn_one([0.0, 1.0], 1.0)
    assert callable(copied)
    twin = copied(model)
    assert np.array_equal(twin.coef_, model.coef_)
    twin.learn_one([5.0, 5.0], 100.0)
    assert model.n_observations_ == 2.0
    assert twin.n_observations_ == 3.0
    assert not np.array_equal(twin.coef_, model.coef_)


def test_what_was_learned_is_read_off() -> None:
    model = BayesianLinearRegression(prior_precision=[1.0, 2.0, 3.0]).fit(X, Y)
    assert model.coef_.shape == (3,)
    assert isinstance(model.intercept_, float)
    assert model.posterior_.mean.shape == (4,)
    assert model.posterior_.names == ("intercept", "x0", "x1", "x2")
    assert list(model.prior_precision_) == [1.0, 2.0, 3.0]
    assert model.n_observations_ == model.n_effective_ == 60.0
    assert isinstance(model.predict_distribution(X), StudentT)
    assert isinstance(
        clone(model).set_params(noise_precision=1.0).fit(X, Y).predict_distribution(X), Normal
    )
    mean, std = model.predict(X, return_std=True)
    assert np.allclose(mean, model.predict(X))
    assert np.allclose(std, model.predict_distribution(X).std())
    draws = model.sample_coefficients(4000, rng=1)
    assert draws.shape == (4000, 3)
    assert np.allclose(draws.mean(axis=0), model.coef_, atol=0.01)
    assert np.array_equal(draws, model.sample_coefficients(4000, rng=1))


def test_no_intercept() -> None:
    model = BayesianLinearRegression(fit_intercept=False).fit(X, Y)
    assert model.intercept_ == 0.0
    assert model.posterior_.mean.shape == (3,)
    assert np.allclose(model.predict(X), X @ model.coef_)


def test_parameters_set_later_count_from_the_next_fit() -> None:
    model = BayesianLinearRegression().fit(X, Y)
    model.set_params(fit_intercept=False, noise_precision=1.0)
    assert model.posterior_.mean.shape == (4,)
    assert model.fit(X, Y).posterior_.mean.shape == (3,)


def test_rows_as_arrays_mappings_and_lists() -> None:
    names = ["a", "b", "c"]
    settings = {"prior_precision": 1.0}
    expected = BayesianLinearRegression(**settings).fit(pd.DataFrame(X, columns=names), Y)
    kinds = {
        "array": lambda x: x,
        "strided": lambda x: np.repeat(x, 2)[::2],
        "float32": lambda x: x.astype(np.float64),
        "list": list,
        "dict": lambda x: dict(zip(names, map(float, x), strict=True)),
        "other order": lambda x: dict(zip(names[::-1], map(float, x[::-1]), strict=True)),
        "mapping": lambda x: MappingProxyType(dict(zip(names, map(float, x), strict=True))),
    }
    for kind, made in kinds.items():
        model = BayesianLinearRegression(**settings)
        model.fit(pd.DataFrame(X[:1], columns=names), Y[:1])
        for x, y in zip(X[1:], Y[1:], strict=True):
            model.learn_one(made(x), y)
        assert np.allclose(model.coef_, expected.coef_, rtol=1e-12), kind
        assert model.predict_one(made(X[0])) == pytest.approx(
            expected.predict(pd.DataFrame(X[:1], columns=names))[0]
        )


def test_a_fresh_model_takes_its_names_from_the_first_mapping() -> None:
    model = BayesianLinearRegression(prior_mean=2.0)
    assert model.predict_one({"b": 1.0, "a": 3.0}) == 8.0
    assert not hasattr(model, "feature_names_in_")
    model.learn_one({"b": 1.0, "a": 3.0}, 8.0)
    assert list(model.feature_names_in_) == ["b", "a"]
    assert model.predict_one({"a": 3.0, "b": 1.0}) == pytest.approx(8.0)


def test_the_lean_path_and_the_others_take_turns() -> None:
    mixed = BayesianLinearRegression()
    mixed.learn_one(X[0], Y[0])
    mixed.partial_fit(X[1:20], Y[1:20])
    mixed.learn_one(X[20], Y[20])
    mixed.predict_then_learn(X[21:40], Y[21:40])
    mixed.merge(BayesianLinearRegression().fit(X[40:], Y[40:]))
    mixed.learn_one(X[0], Y[0]).unlearn(X[:1], Y[:1])
    expected = BayesianLinearRegression().fit(X, Y)
    assert np.allclose(mixed.coef_, expected.coef_, rtol=1e-10)
    assert mixed.n_observations_ == 60.0
    mixed.fit(X[:30], Y[:30])
    mixed.learn_one(X[30], Y[30])
    assert np.allclose(
        mixed.coef_, BayesianLinearRegression().fit(X[:31], Y[:31]).coef_, rtol=1e-10
    )


def test_a_weight_of_zero_leaves_the_row_out() -> None:
    model = BayesianLinearRegression().fit(X, Y)
    before = model.coef_
    model.learn_one(X[0], 1e6, 0.0)
    assert np.array_equal(model.coef_, before)
    assert model.n_observations_ == 60.0


def test_a_single_row_and_a_constant_feature() -> None:
    one = BayesianLinearRegression().fit([[1.0, 1.0]], [5.0])
    assert one.predict([[1.0, 1.0]])[0] == pytest.approx(5.0)
    assert np.isinf(one.predict_distribution([[1.0, 1.0]]).std()[0])
    # The intercept and a constant feature share what both could explain: with a flat prior the
    # later of the two is left out, and predictions stay known.
    constant = np.column_stack([X, np.full(60, 7.0)])
    flat = BayesianLinearRegression(prior_precision=0.0).fit(constant, Y)
    assert flat.coef_[3] == 0.0
    assert np.allclose(
        flat.predict(constant), BayesianLinearRegression(prior_precision=0.0).fit(X, Y).predict(X)
    )
    assert np.isfinite(flat.predict_distribution(constant).std()).all()
