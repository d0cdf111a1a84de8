"""Many classes: scikit-learn's answer, quadrature by draws, classes that come late."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.utils import Bunch

from posterity import BayesianLogisticRegression
from posterity.basis import Spline
from posterity.forgetting import Stabilized
from posterity.generalized import _many
from posterity.posteriors._softmax_likelihood import compute_root, helmert, integrated


def standardised(data: Bunch) -> tuple[np.ndarray, np.ndarray]:
    return (data.data - data.data.mean(axis=0)) / (data.data.std(axis=0) + 1e-12), data.target


IRIS, KIND = standardised(load_iris())
ORDER = np.random.default_rng(0).permutation(len(KIND))
IRIS, KIND = IRIS[ORDER], KIND[ORDER]
NAMES = np.array(["setosa", "versicolor", "virginica"])[KIND]


@pytest.mark.parametrize("alpha", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("largest_full", [600, 0])
def test_the_mode_is_that_of_scikit_learn(
    alpha: float, fit_intercept: bool, largest_full: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both forms; scikit-learn's intercepts are free up to a number common to all."""
    monkeypatch.setattr(_many, "LARGEST_FULL", largest_full)
    x, y = standardised(load_wine())
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    expected = LogisticRegression(
        C=1.0 / alpha, fit_intercept=fit_intercept, tol=1e-12, max_iter=10_000, solver="newton-cg"
    ).fit(x, y, sample_weight=weights)
    model = BayesianLogisticRegression(prior_precision=alpha, fit_intercept=fit_intercept)
    model.fit(x, y, sample_weight=weights)
    assert np.allclose(model.coef_, expected.coef_, rtol=0.0, atol=1e-6)
    free = expected.intercept_ - np.mean(expected.intercept_)
    assert np.allclose(model.intercept_, free, rtol=0.0, atol=1e-6)


@pytest.mark.slow
def test_digits_by_both_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    data = load_digits()
    x, y = data.data / 16.0, data.target
    full = BayesianLogisticRegression(prior_precision=1.0).fit(x[:1000], y[:1000])
    monkeypatch.setattr(_many, "LARGEST_FULL", 0)
    shared = BayesianLogisticRegression(prior_precision=1.0).fit(x[:1000], y[:1000])
    assert np.allclose(full.coef_, shared.coef_, atol=1e-8)
    ratios = shared.posterior_.std() / full.posterior_.std()
    assert 0.9 < np.mean(ratios) < 1.1  # right on average, not for each class
    assert min(full.score(x[1000:], y[1000:]), shared.score(x[1000:], y[1000:])) > 0.9


def test_two_classes_are_the_log_odds() -> None:
    """The contrast of two classes is the log odds over the square root of 2."""
    y = (KIND == 2).astype(int)
    binary = BayesianLogisticRegression(prior_precision=0.5, approximation="laplace").fit(IRIS, y)
    many = _many.begin_posterior(2, 4, intercept=True, precision=1.0, forgetting=None)
    many.fit(IRIS, y[:, None], None, np.zeros(150))
    odds = np.diff(many.coefficients(), axis=0)
    assert np.allclose(odds[0, 1:], binary.coef_, atol=1e-7)
    assert np.allclose(odds[0, 0], binary.intercept_, atol=1e-7)
    assert many.log_evidence == pytest.approx(binary.log_evidence_ - 0.5 * np.log(2.0), abs=1e-6)


def test_probabilities_agree_with_draws() -> None:
    rng = np.random.default_rng(0)
    for k in (2, 3, 8):
        mean, root = rng.normal(size=k), rng.normal(size=(k, k))
        drawn = mean + rng.normal(size=(400_000, k)) @ root.T
        expected = softmax(drawn @ helmert(k + 1).T, axis=1).mean(axis=0)
        covariance = (root @ root.T)[None]
        predictive = np.exp(integrated(mean[None], compute_root(covariance), helmert(k + 1)))
        assert np.allclose(predictive, expected, atol=0.012)
    model = BayesianLogisticRegression(prior_precision=1.0).fit(IRIS[:40], NAMES[:40])
    draws = model.posterior_.rvs(100_000, random_state=rng).reshape(-1, 2, 5)
    x = np.array([1.0, 2.0, -1.0, 0.5, 1.0])
    eta = np.column_stack([np.zeros(len(draws)), draws @ x])
    expected = softmax(eta, axis=1)
    assert np.allclose(model.predict_proba(x[None, 1:]), expected.mean(axis=0), atol=0.01)
    ends = np.quantile(expected, [0.1, 0.9], axis=0).T
    assert np.allclose(model.predict_interval(x[None, 1:], level=0.8)[0], ends, atol=0.03)


def test_coefficients_are_drawn() -> None:
    model = BayesianLogisticRegression(prior_precision=1.0).fit(IRIS, NAMES)
    draws = model.sample_coefficients(20_000, rng=0)
    assert draws.shape == (20_000, 3, 4)
    assert np.allclose(draws.mean(axis=0), model.coef_, atol=0.03)
    two = BayesianLogisticRegression(prior_precision=1.0).fit(IRIS, KIND == 1)
    assert np.allclose(two.sample_coefficients(20_000, rng=0).mean(axis=0), two.coef_, atol=0.03)


def test_laplace_evidence_of_three_classes() -> None:
    """Without features: counts of three labels under Normal(0, 1/alpha) contrasts, on a grid."""
    counts = np.array([12, 5, 8])
    alpha = 0.7
    model = BayesianLogisticRegression(prior_precision=alpha, fit_intercept=False)
    model.fit(np.ones((25, 1)), np.repeat([0, 1, 2], counts))
    axis = np.linspace(-8.0, 8.0, 801)
    v = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1)
    eta = v @ helmert(3).T
    log_p = eta - np.log(np.sum(np.exp(eta), axis=-1, keepdims=True))
    logs = log_p @ counts - 0.5 * alpha * np.sum(v**2, axis=-1) + np.log(alpha / (2.0 * np.pi))
    exact = np.log(np.sum(np.exp(logs)) * (axis[1] - axis[0]) ** 2)
    assert model.log_evidence_ == pytest.approx(exact, abs=0.05)


def test_laws_of_rows() -> None:
    weights = np.random.default_rng(2).integers(0, 3, len(KIND))
    once = BayesianLogisticRegression().fit(IRIS, NAMES, sample_weight=weights)
    twice = BayesianLogisticRegression().fit(
        np.repeat(IRIS, weights, axis=0), np.repeat(NAMES, weights)
    )
    assert np.allclose(once.coef_, twice.coef_, atol=1e-5)
    assert once.n_observations_ == twice.n_observations_ == weights.sum()
    whole = BayesianLogisticRegression(prior_precision=1.0)
    parts = BayesianLogisticRegression(prior_precision=1.0)
    predictive = whole.predict_then_learn(IRIS, NAMES)
    first = parts.predict_then_learn(IRIS[:60], NAMES[:60], classes=np.unique(NAMES))
    second = parts.predict_then_learn(IRIS[60:], NAMES[60:])
    assert np.allclose(predictive.probabilities[:60], first.probabilities)
    assert np.allclose(predictive.probabilities[60:], second.probabilities)
    one = BayesianLogisticRegression(prior_precision=1.0)
    one.partial_fit(IRIS[:1], NAMES[:1], classes=np.unique(NAMES))
    for x, y in zip(IRIS[1:], NAMES[1:], strict=True):
        one.learn_one(x, y)
    assert np.allclose(one.coef_, whole.coef_, atol=1e-8)
    assert one.log_evidence_ == pytest.approx(whole.log_evidence_)


@pytest.mark.parametrize("precision", [1.0, "auto"])
def test_one_pass_predicts_well(precision: float | str) -> None:
    model = BayesianLogisticRegression(prior_precision=precision)
    predictive = model.predict_then_learn(IRIS, NAMES)
    assert -predictive.logpmf(NAMES).mean() < 0.42
    assert model.score(IRIS, NAMES) > 0.94
    # With Laplace's method the evidence is the sum of the predictive densities, nearly.
    assert model.log_evidence_ == pytest.approx(predictive.logpmf(NAMES).sum(), abs=3.0)


def test_classes_that_come_late() -> None:
    late = BayesianLogisticRegression(prior_precision=1.0)
    two = KIND != 0  # the class that sorts first comes last
    late.partial_fit(IRIS[two][:60], NAMES[two][:60])
    assert late.coef_.shape == (1, 4)
    late.partial_fit(IRIS, NAMES)
    assert late.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert late.coef_.shape == (3, 4)
    assert np.allclose(late.coef_.sum(axis=0), 0.0, atol=1e-9)
    assert late.n_observations_ == 210.0
    assert late.score(IRIS, NAMES) > 0.93
    known = BayesianLogisticRegression(prior_precision=1.0)
    known.partial_fit(IRIS[two][:60], NAMES[two][:60], classes=np.unique(NAMES))
    known.partial_fit(IRIS, NAMES)
    assert np.abs(late.predict_proba(IRIS) - known.predict_proba(IRIS)).mean() < 0.1
    four = late.partial_fit(IRIS[:3], ["arctica", "setosa", "versicolor"])
    assert four.predict_proba(IRIS).shape == (150, 4)
    assert four.classes_.tolist()[0] == "arctica"
    assert np.mean(four.predict(IRIS) == NAMES) > 0.9


@pytest.mark.parametrize("strategy", [None, Stabilized(discount=0.99)])
@pytest.mark.parametrize("precision", [1.0, "auto"])
def test_a_new_class_row_by_row(strategy: object, precision: float | str) -> None:
    model = BayesianLogisticRegression(prior_precision=precision, forgetting=strategy)
    for x, y in zip(IRIS, NAMES, strict=True):
        model.learn_one(x, y)
    assert sorted(model.predict_proba_one(IRIS[0])) == sorted(set(NAMES))
    assert model.score(IRIS, NAMES) > 0.9


def test_a_class_never_seen() -> None:
    model = BayesianLogisticRegression(prior_precision=1.0)
    model.partial_fit(IRIS, NAMES, classes=[*np.unique(NAMES), "xerica"])
    assert model.predict_proba(IRIS)[:, 3].max() < 0.2
    assert np.isfinite(model.predict_log_proba(1e6 * IRIS)).all()


def test_forgetting_and_merging() -> None:
    turned = (KIND + 1) % 3
    model = BayesianLogisticRegression(prior_precision=1.0, forgetting=Stabilized(discount=0.97))
    model.predict_then_learn(np.vstack([IRIS, IRIS]), np.concatenate([KIND, turned]))
    assert model.score(IRIS, turned) > 0.85
    assert model.n_effective_ == pytest.approx(1.0 / 0.03, rel=0.05)
    half = BayesianLogisticRegression(prior_precision=1.0).fit(IRIS[:75], NAMES[:75])
    half.merge(BayesianLogisticRegression(prior_precision=1.0).fit(IRIS[75:], NAMES[75:]))
    whole = BayesianLogisticRegression(prior_precision=1.0).fit(IRIS, NAMES)
    assert half.n_observations_ == 150.0
    assert np.allclose(half.predict_proba(IRIS), whole.predict_proba(IRIS), atol=0.15)


@pytest.mark.parametrize("prior", [1.0, "auto"])
@pytest.mark.parametrize("way", ["fit", "partial_fit"])
def test_rows_are_unlearned(way: str, prior: float | str) -> None:
    """Those of a fit nearly, the last one exactly, all of them entirely."""
    some = np.arange(0, 150, 20)
    rest = np.setdiff1d(np.arange(150), some)

    def learned(rows: Any) -> BayesianLogisticRegression:
        model = BayesianLogisticRegression(prior_precision=prior)
        return getattr(model, way)(IRIS[rows], NAMES[rows])

    def off(one: Any, other: Any) -> float:
        return float(
            np.abs((one.posterior_.mean - other.posterior_.mean) / other.posterior_.std()).max()
        )

    left, whole = learned(slice(None)), learned(rest)
    before = off(left, whole)
    left.unlearn(IRIS[some], NAMES[some])
    assert left.n_observations_ == len(rest)
    assert off(left, whole) < (0.6 * before if prior == 1.0 else 0.2)  # "auto" is chosen anew
    one_more = learned(rest).partial_fit(IRIS[:1], NAMES[:1]).unlearn(IRIS[:1], NAMES[:1])
    assert off(one_more, whole) < 0.1
    with pytest.raises(ValueError, match="only 142 was learned"):
        left.unlearn(IRIS, NAMES)
    nothing = left.unlearn(IRIS[rest], NAMES[rest])
    assert nothing.n_observations_ == 0.0
    assert not nothing.coef_.any()


def test_what_many_classes_can_not_have() -> None:
    with pytest.raises(ValueError, match="it must be 'auto', 'laplace' or 'moments'"):
        BayesianLogisticRegression(approximation="nonsense").fit(IRIS, NAMES)
    with pytest.raises(ValueError, match="it must be 'auto' or 'ard', a strategy"):
        BayesianLogisticRegression(prior_precision="arg").fit(IRIS, NAMES)


def test_beyond_what_is_kept_whole_priors_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_many, "LARGEST_FULL", 0)
    with pytest.raises(ValueError, match="3 classes of 5 coefficients are too many"):
        BayesianLogisticRegression(prior_precision="ard").fit(IRIS, NAMES)


def test_the_shared_form_refuses_late_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_many, "LARGEST_FULL", 0)
    model = BayesianLogisticRegression(prior_precision=1.0).partial_fit(IRIS, NAMES)
    before = model.coef_
    with pytest.raises(ValueError, match="name all classes in the first call"):
        model.partial_fit(IRIS[:1], ["late"])
    assert np.array_equal(model.coef_, before)
    model.predict_then_learn(IRIS[:20], NAMES[:20])
    assert model.n_observations_ == 170.0


def test_separated_classes_with_a_flat_prior_warn() -> None:
    x = np.array([[-3.0], [-2.0], [0.0], [0.1], [2.0], [3.0]])
    with pytest.warns(UserWarning, match="separated"):
        BayesianLogisticRegression(prior_precision=0.0).fit(x, [0, 0, 1, 1, 2, 2])


@pytest.mark.parametrize("units", [1e6, 1e-6])
def test_units_do_not_matter_where_the_prior_is_learned(units: float) -> None:
    plain = BayesianLogisticRegression().fit(IRIS, NAMES)
    scaled = BayesianLogisticRegression().fit(units * IRIS, NAMES)
    assert np.allclose(units * scaled.coef_, plain.coef_, rtol=1e-3)
    one = BayesianLogisticRegression().predict_then_learn(IRIS, NAMES)
    other = BayesianLogisticRegression().predict_then_learn(units * IRIS, NAMES)
    # Before the first row the size of the features is not known.
    assert np.allclose(one.probabilities[1:], other.probabilities[1:], atol=1e-3)


@pytest.mark.parametrize("weight", [1e-12, 1e12])
def test_weights_of_any_size(weight: float) -> None:
    model = BayesianLogisticRegression(prior_precision=1.0)
    model.predict_then_learn(IRIS, NAMES, sample_weight=np.full(150, weight))
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.predict_log_proba(IRIS)).all()


def test_a_strong_feature_is_not_held_down_by_weak_ones() -> None:
    held, n, p = [], 400, 20
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, p))
        truth = 0.05 * rng.normal(size=(p, 3))
        truth[0] = [0.0, 0.64, -0.64]
        odds = np.exp(X @ truth)
        y = (odds.cumsum(axis=1) > odds.sum(axis=1)[:, None] * rng.random((n, 1))).argmax(axis=1)
        model = BayesianLogisticRegression().fit(X, y)
        low, high = model.posterior_.interval(0.95).reshape(2, p + 1, 2)[:, 1].T
        wanted = truth[0, 1:] - truth[0, 0]
        held.append((low <= wanted) & (wanted <= high))
    assert np.mean(held) > 0.8  # under one scale for all .5


def test_a_constant_column_changes_nothing_of_three_classes() -> None:
    """It is a second intercept, and has no part in the scale that the slopes share."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100, 3))
    eta = X @ np.array([[1.0, 0.0, -1.0], [0.0, 0.0, 0.0], [-1.0, 0.0, 1.0]])
    y = np.array(list("abc"))[(eta + rng.gumbel(size=(100, 3))).argmax(axis=1)]
    plain = BayesianLogisticRegression().fit(X, y)
    beside = BayesianLogisticRegression().fit(np.column_stack([X, np.full(100, 3.0)]), y)
    assert beside.coef_[:, :3] == pytest.approx(plain.coef_, abs=0.02)


def test_three_classes_keep_the_shapes_of_their_basis() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-2.0, 2.0, size=200)
    eta = np.column_stack([2.0 * np.sin(x), np.zeros(200), -2.0 * np.sin(x)])
    y = (eta + rng.gumbel(size=(200, 3))).argmax(axis=1)
    truth = np.exp(eta) / np.exp(eta).sum(axis=1, keepdims=True)
    model = BayesianLogisticRegression(basis=Spline()).fit(x[:, None], y)
    assert np.abs(model.predict_proba(x[:, None]) - truth).mean() < 0.06
