"""Logistic regression of two classes: outside truth, laws, labels and extremes."""

from __future__ import annotations

import copy
import pickle
import warnings
from functools import reduce
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.special import expit, log_expit
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from posterity import BayesianLogisticRegression, BayesianPoissonRegression
from posterity.basis import Polynomial, Spline
from posterity.files import dumps
from posterity.forgetting import Adaptive, Exponential, Stabilized

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
Y = (X @ [1.0, -2.0, 0.5] + RNG.logistic(size=300) > 0.4).astype(int)
CANCER, MALIGNANT = load_breast_cancer(return_X_y=True)
CANCER = (CANCER - CANCER.mean(axis=0)) / CANCER.std(axis=0)


def test_scikit_learn_accepts_it() -> None:
    check_estimator(BayesianLogisticRegression(), on_skip=None)


@pytest.mark.parametrize("alpha", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_mode_is_that_of_scikit_learn(alpha: float, fit_intercept: bool) -> None:
    weights = RNG.uniform(0.5, 2.0, len(CANCER))
    expected = LogisticRegression(
        C=1.0 / alpha,
        fit_intercept=fit_intercept,
        tol=1e-12,
        max_iter=10_000,
        solver="newton-cholesky",
    ).fit(CANCER, MALIGNANT, sample_weight=weights)
    model = BayesianLogisticRegression(
        prior_precision=alpha, fit_intercept=fit_intercept, approximation="laplace"
    )
    model.fit(CANCER, MALIGNANT, sample_weight=weights)
    assert model.coef_.shape == expected.coef_.shape
    assert np.allclose(model.coef_, expected.coef_, rtol=0.0, atol=1e-6)
    assert np.allclose(model.intercept_, expected.intercept_, rtol=0.0, atol=1e-6)
    assert model.score(CANCER, MALIGNANT) == pytest.approx(
        expected.score(CANCER, MALIGNANT), abs=0.01
    )


def test_a_flat_prior_is_maximum_likelihood() -> None:
    expected = sm.GLM(Y, sm.add_constant(X), family=sm.families.Binomial()).fit(tol=1e-14)
    model = BayesianLogisticRegression(prior_precision=0.0, approximation="laplace").fit(X, Y)
    assert np.allclose(model.posterior_.mean, expected.params, rtol=0.0, atol=1e-6)
    assert np.allclose(model.posterior_.std(), expected.bse, rtol=1e-6)


def test_probabilities_are_integrated_over_the_posterior() -> None:
    """One coefficient, learned from y = 1 at x = 1 three times: at x = 10 nothing is certain."""

    def density(w: float) -> float:
        return float(np.exp(3.0 * log_expit(w) + stats.norm.logpdf(w, scale=0.1**-0.5)))

    total = integrate.quad(density, -20.0, 40.0, points=[0.0])[0]
    exact = integrate.quad(lambda w: density(w) * expit(10.0 * w), -20.0, 40.0, points=[0.0])[0]
    model = BayesianLogisticRegression(prior_precision=0.1, fit_intercept=False)
    model.partial_fit(np.ones((3, 1)), [1, 1, 1], classes=[0, 1])
    # A Gaussian of the right mean and variance, where the posterior is skewed.
    assert model.predict_proba([[10.0]])[0, 1] == pytest.approx(exact / total, abs=0.02)


def test_predictions_agree_with_draws() -> None:
    model = BayesianLogisticRegression(prior_precision=1.0).fit(X[:30], Y[:30])
    draws = model.posterior_.rvs(200_000, random_state=np.random.default_rng(1))
    for x in ([0.0, 0.0, 0.0], [3.0, -3.0, 1.0]):
        drawn = expit(draws[:, 0] + draws[:, 1:] @ x)
        assert model.predict_proba([x])[0, 1] == pytest.approx(drawn.mean(), abs=0.003)
        ends = np.quantile(drawn, [0.05, 0.95])
        assert np.allclose(model.predict_interval([x], level=0.9)[0], ends, atol=0.01)


def test_what_is_predicted_is_consistent() -> None:
    model = BayesianLogisticRegression().fit(X, Y)
    predictive = model.predict_distribution(X)
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert np.allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))
    assert np.array_equal(model.predict(X), (model.decision_function(X) > 0.0).astype(int))
    assert np.allclose(predictive.logpmf(Y), predictive.logpdf(Y))
    low, high = model.predict_interval(X).T
    assert ((low < model.predict_proba(X)[:, 1]) & (model.predict_proba(X)[:, 1] < high)).all()
    one = model.predict_proba_one(X[0])
    assert one[1] == pytest.approx(model.predict_proba(X[:1])[0, 1])
    assert model.predict_one(X[0]) == model.predict(X[:1])[0]


def test_weight_two_is_the_row_twice() -> None:
    weights = RNG.integers(0, 3, len(X))
    once = BayesianLogisticRegression().fit(X, Y, sample_weight=weights)
    twice = BayesianLogisticRegression().fit(np.repeat(X, weights, axis=0), np.repeat(Y, weights))
    assert np.allclose(once.coef_, twice.coef_, rtol=1e-5)
    assert once.log_evidence_ == pytest.approx(twice.log_evidence_, rel=1e-6)
    assert once.n_observations_ == twice.n_observations_ == weights.sum()


@given(st.integers(1, 299))
def test_one_pass_does_not_depend_on_how_calls_are_cut(cut: int) -> None:
    whole = BayesianLogisticRegression(prior_precision=1.0)
    parts = clone(whole)
    predictive = whole.predict_then_learn(X, Y)
    first = parts.predict_then_learn(X[:cut], Y[:cut], classes=[0, 1])
    second = parts.predict_then_learn(X[cut:], Y[cut:])
    assert np.allclose(predictive[:cut].probabilities, first.probabilities)
    assert np.allclose(predictive[cut:].probabilities, second.probabilities)
    assert np.allclose(whole.coef_, parts.coef_)


def test_one_pass_comes_near_the_batch() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(5000, 10))
    y = x @ rng.normal(size=10) / 2.0 + rng.logistic(size=5000) > 0.0
    batch = BayesianLogisticRegression(prior_precision=1.0).fit(x, y)
    std = batch.posterior_.std()
    for approximation, most in (("moments", 0.3), ("laplace", 0.5)):
        online = BayesianLogisticRegression(prior_precision=1.0, approximation=approximation)
        online.predict_then_learn(x, y)
        off = np.abs(online.posterior_.mean - batch.posterior_.mean) / std
        assert np.sqrt(np.mean(off**2)) < most
        assert np.allclose(online.posterior_.std(), std, rtol=0.06)
    batches = BayesianLogisticRegression(prior_precision=1.0)
    for start in range(0, 5000, 100):
        batches.partial_fit(x[start : start + 100], y[start : start + 100])
    off = np.abs(batches.posterior_.mean - batch.posterior_.mean) / std
    assert np.sqrt(np.mean(off**2)) < 0.1


def test_rows_one_by_one() -> None:
    one = BayesianLogisticRegression(prior_precision=1.0)
    assert one.predict_one(X[0]) is None
    assert one.predict_proba_one(X[0]) == {}
    for x, y in zip(X, Y, strict=True):
        one.learn_one(x, int(y))
    many = BayesianLogisticRegression(prior_precision=1.0)
    many.predict_then_learn(X, Y, classes=[0, 1])
    assert np.allclose(np.abs(one.coef_), np.abs(many.coef_), rtol=1e-6)
    assert np.allclose(one.predict_proba(X), many.predict_proba(X), atol=1e-6)
    named = BayesianLogisticRegression().learn_one({"b": 1.0, "a": 2.0}, "yes")
    named.learn_one({"a": 2.0, "b": 0.0}, "no")
    assert list(named.feature_names_in_) == ["b", "a"]
    assert named.predict_one({"a": 2.0, "b": 5.0}) == "yes"


@pytest.mark.parametrize("labels", [["no", "yes"], [3, -1], [True, False], [1.0, 2.0]])
def test_labels_of_any_kind(labels: list[object]) -> None:
    named = np.array(labels)[Y]
    model = BayesianLogisticRegression(prior_precision=1.0).fit(X, named)
    assert np.array_equal(model.classes_, np.unique(named))
    plain = BayesianLogisticRegression(prior_precision=1.0).fit(X, Y)
    flip = np.array_equal(model.classes_, np.array(labels))
    assert np.allclose(model.coef_, plain.coef_ if flip else -plain.coef_, atol=1e-8)
    assert set(model.predict(X)) <= set(named.tolist())


def test_a_class_that_comes_late_and_sorts_first() -> None:
    names = np.where(Y == 1, "a", "b")
    order = np.argsort(names != "b", kind="stable")[:150]  # a start of b alone
    late = BayesianLogisticRegression(prior_precision=1.0)
    late.partial_fit(X[order[:20]], names[order[:20]])
    assert late.classes_.tolist() == ["b"]
    assert late.predict(X[:2]).tolist() == ["b", "b"]
    assert late.predict_proba(X[:2]).tolist() == [[1.0], [1.0]]
    late.partial_fit(X, names)
    known = BayesianLogisticRegression(prior_precision=1.0)
    known.partial_fit(X[order[:20]], names[order[:20]], classes=["a", "b"])
    known.partial_fit(X, names)
    assert late.classes_.tolist() == known.classes_.tolist() == ["a", "b"]
    assert np.allclose(late.coef_, known.coef_, rtol=1e-6)
    assert np.allclose(late.intercept_, known.intercept_, rtol=1e-6)
    assert np.allclose(late.posterior_.mean, known.posterior_.mean, rtol=1e-6)
    assert np.allclose(late.predict_proba(X), known.predict_proba(X))
    assert np.allclose(late.predict_interval(X), known.predict_interval(X))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_copy_goes_its_own_way(copied: object) -> None:
    model = BayesianLogisticRegression().partial_fit(X[:50], Y[:50])
    assert callable(copied)
    twin = copied(model)
    before = model.coef_.copy()
    twin.partial_fit(X[50:], Y[50:])
    assert np.array_equal(model.coef_, before)
    assert twin.n_observations_ == 300.0


def test_pipelines_and_frames() -> None:
    scores = cross_val_score(make_pipeline(StandardScaler(), BayesianLogisticRegression()), X, Y)
    assert scores.min() > 0.7
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = BayesianLogisticRegression().fit(frame, pd.Series(np.where(Y, "yes", "no")))
    assert model.posterior_.names == ("intercept", "a", "b", "c")
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["b", "a", "c"]])


def test_curves_by_a_basis() -> None:
    ring = (np.sum(X[:, :2] ** 2, axis=1) < 1.4).astype(int)
    model = BayesianLogisticRegression(basis=Polynomial(degree=2)).fit(X[:, :2], ring)
    assert model.score(X[:, :2], ring) > 0.95


@pytest.mark.parametrize("strategy", [Stabilized(discount=0.98), Exponential(half_life=50.0)])
def test_forgetting_follows_what_turns(strategy: object) -> None:
    turned = np.concatenate([Y, 1 - Y])
    twice = np.concatenate([X, X])
    forgets = BayesianLogisticRegression(prior_precision=1.0, forgetting=strategy)
    forgets.predict_then_learn(twice, turned)
    assert forgets.score(X, 1 - Y) > 0.75
    assert forgets.n_observations_ == 600.0
    assert forgets.n_effective_ < 110.0


def test_adaptive_averages_over_ways_to_forget() -> None:
    model = BayesianLogisticRegression(prior_precision=1.0, forgetting=Adaptive())
    predictive = model.predict_then_learn(np.concatenate([X, X]), np.concatenate([Y, 1 - Y]))
    assert predictive.probabilities.shape == (600, 2)
    assert model.score(X, 1 - Y) > 0.75
    assert model.predict_interval(X).shape == (300, 2)
    with pytest.raises(ValueError, match="supports only two classes"):
        model.partial_fit(X[:1], [2])
    assert model.classes_.tolist() == [0, 1]


def test_the_approximation_is_checked() -> None:
    with pytest.raises(ValueError, match="it must be 'auto', 'laplace' or 'moments'"):
        BayesianLogisticRegression(approximation="exact").fit(X, Y)  # type: ignore[arg-type]


def test_merged_models_know_the_rows_of_both() -> None:
    whole = BayesianLogisticRegression(prior_precision=1.0).fit(X, Y)
    half = BayesianLogisticRegression(prior_precision=1.0).fit(X[:150], Y[:150])
    half.merge(BayesianLogisticRegression(prior_precision=1.0).fit(X[150:], Y[150:]))
    off = np.abs(half.posterior_.mean - whole.posterior_.mean) / whole.posterior_.std()
    assert off.max() < 0.35
    assert half.n_observations_ == 300.0
    empty = BayesianLogisticRegression(prior_precision=1.0).merge(half)
    assert np.allclose(empty.coef_, half.coef_)
    with pytest.raises(ValueError, match="differ in their classes"):
        half.merge(BayesianLogisticRegression(prior_precision=1.0).fit(X, np.where(Y, "a", "b")))
    with pytest.raises(ValueError, match="differ in prior"):
        half.merge(BayesianLogisticRegression(prior_precision=2.0).fit(X, Y))


@pytest.mark.parametrize("learn", ["fit", "partial_fit"])
@pytest.mark.parametrize("parts", [(0, 20, 40, 63), (0, 20, 300), (0, 100, 300)], ids=str)
def test_parts_of_few_rows_merge_as_one_batch(learn: str, parts: tuple[int, ...]) -> None:
    models = [
        getattr(BayesianPoissonRegression(), learn)(X[first:last], Y[first:last])
        for first, last in pairwise(parts)
    ]
    merged = reduce(lambda one, two: one.merge(two), models)
    whole = getattr(BayesianPoissonRegression(), learn)(X[: parts[-1]], Y[: parts[-1]])
    off = np.abs(merged.coef_ - whole.coef_) / whole.posterior_.std()[1:]
    exact = learn == "partial_fit" and parts[-1] < 64
    assert off.max() < (1e-6 if exact else 0.1)
    assert merged.n_observations_ == parts[-1]


def test_a_large_first_batch_is_not_kept() -> None:
    rng = np.random.default_rng(3)
    Z = rng.normal(size=(3000, 2))
    counts = rng.poisson(np.exp(0.3 * Z[:, 0]))
    sizes = [
        len(dumps(BayesianPoissonRegression().partial_fit(Z[:n], counts[:n]))) for n in (300, 3000)
    ]
    assert sizes[1] - sizes[0] < 100  # digits of numbers; 2,700 rows would take 86,000 bytes


def test_separated_classes_and_extremes() -> None:
    x = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    model = BayesianLogisticRegression(prior_precision=1.0).fit(x, [0, 0, 1, 1])
    assert np.isfinite(model.posterior_.mean).all()
    assert 0.5 < model.predict_proba([[1e6]])[0, 1] <= 1.0
    assert np.isfinite(model.predict_log_proba([[-1e6], [1e6]])).all()
    for weight in (1e-12, 1e12):
        heavy = BayesianLogisticRegression(prior_precision=1.0)
        heavy.partial_fit(X, Y, sample_weight=np.full(300, weight))
        assert np.isfinite(heavy.coef_).all()
    far = BayesianLogisticRegression(prior_precision=1e-6)
    far.predict_then_learn(1e6 * X, Y)
    assert np.isfinite(far.predict_log_proba(1e6 * X)).all()


def test_a_class_never_seen() -> None:
    model = BayesianLogisticRegression(prior_precision=1.0)
    model.partial_fit(X, np.zeros(300), classes=[0, 1])
    assert model.predict_proba(X).shape == (300, 2)
    assert model.predict_proba(X)[:, 1].max() < 0.1
    weightless = BayesianLogisticRegression(prior_precision=1.0)
    weightless.fit(X, Y, sample_weight=(Y == 0).astype(float))
    assert weightless.predict_proba(X)[:, 1].max() < 0.1


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0.5, 1.0], "Unknown label type: y is 0.5 in row 0"),
        ([1.0, np.nan], "NaN in row 1"),
        (["a", None], "None in row 1"),
        (np.array(["a", 1], dtype=object), "mixes text and numbers"),
    ],
)
def test_what_is_no_label_is_refused(y: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BayesianLogisticRegression().fit([[0.0], [1.0]], y)


def test_a_call_that_raises_leaves_the_model_as_it_was() -> None:
    model = BayesianLogisticRegression(prior_precision=1.0).partial_fit(X, Y)
    before = model.coef_
    bad = X[:3].copy()
    bad[1, 2] = np.nan
    for call in (model.partial_fit, model.predict_then_learn):
        with pytest.raises(ValueError, match="NaN in row 1, column 2"):
            call(bad, [0, 5, 1])
    with pytest.raises(ValueError, match="which is not in classes"):
        model.partial_fit(X[:1], [7], classes=[0, 1])
    with pytest.raises(ValueError, match="give only text, or only numbers"):
        model.partial_fit(X[:1], ["a"])
    assert model.classes_.tolist() == [0, 1]
    assert np.array_equal(model.coef_, before)
    assert model.n_observations_ == 300.0


def test_separated_digits_under_a_flat_prior() -> None:
    X, y = load_digits(return_X_y=True)
    X, y = X[:300], y[:300] % 2
    with pytest.warns(UserWarning, match="the likelihood has no maximum"):
        model = BayesianLogisticRegression(prior_precision=0.0).fit(X, y)
    assert (model.predict(X) == y).all()


def test_fit_refuses_a_single_class() -> None:
    X = np.arange(6.0)[:, None]
    with pytest.raises(
        ValueError, match="all labels are 'a': a classifier needs rows of at least two"
    ):
        BayesianLogisticRegression().fit(X, ["a"] * 6)
    begun = BayesianLogisticRegression().partial_fit(X, ["a"] * 6, classes=["a", "b"])
    assert 0.5 < begun.predict_proba([[2.0]])[0, 0] < 1.0


@pytest.mark.parametrize(("n", "p"), [(30, 1), (300, 1), (3000, 1), (600, 4), (3000, 4)])
def test_labels_that_a_line_separates_leave_no_doubt(n: int, p: int) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n, p))
    labels = rows.sum(axis=1) > 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = BayesianLogisticRegression().fit(rows, labels)
    far = np.full((1, p), 2.0 / np.sqrt(p))
    assert model.predict_proba(far)[0, 1] > 0.98
    assert model.predict_interval(far)[0, 0] > 0.95
    assert model.summary()["probability_positive"].iloc[1:].min() > 0.95
    assert model.predict_proba(rows)[np.arange(n), labels.astype(int)].mean() > 0.97


def test_the_first_label_is_predicted_and_learned() -> None:
    model = BayesianLogisticRegression()
    assert model.predict_then_learn_one([0.5], "a").probabilities.tolist() == [[1.0]]
    assert model.predict_then_learn_one([1.5], "b").classes.tolist() == ["a", "b"]


def test_rows_without_weight_fix_no_basis() -> None:
    X, y = np.array([[0.0], [1.0], [2.0], [3.0], [100.0]]), [0, 1, 0, 1, 1]
    model = BayesianLogisticRegression(basis=Spline()).fit(X, y, [1, 1, 1, 1, 0])
    assert model.basis_.domain_.tolist() == [[0.0, 3.0]]
