"""Many classes in one pass: sites against quadrature, intervals against the truth, bounded work."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import expit

from posterity import BayesianLogisticRegression
from posterity.forgetting import Exponential
from posterity.generalized import _many
from posterity.posteriors import _softmax_rule
from posterity.posteriors._softmax_likelihood import helmert
from posterity.posteriors._softmax_recent import SIZE
from posterity.posteriors._softmax_sites import place_around_row


def drawn(seed: int, n_classes: int, p: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, labels, and (n, K) probabilities, of coefficients from N(0, 1)."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    eta = rng.normal(size=n_classes) + X @ rng.normal(size=(p, n_classes))
    y = np.argmax(eta + rng.gumbel(size=eta.shape), axis=1)
    shares = np.exp(eta - eta.max(axis=1, keepdims=True))
    return X, y, shares / shares.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("variance", [0.1, 1.0, 9.0])
@pytest.mark.parametrize("mean", [-2.0, 0.0, 2.0])
def test_a_label_of_two_is_learned_as_by_quadrature(mean: float, variance: float) -> None:
    linear_moments = np.array([mean]), np.array([[variance]]), helmert(2)
    around = place_around_row((np.array([1]), 1.0), *linear_moments, averaged=True)
    axis = np.linspace(mean - 40.0, mean + 40.0, 40_001)
    density = expit(np.sqrt(2.0) * axis) * np.exp(-0.5 * (axis - mean) ** 2 / variance)
    density /= density.sum()
    expected = density @ axis
    spread = density @ (axis - expected) ** 2
    assert around.moved is not None
    width = np.mean(np.square(around.moved))
    assert abs(around.place[0, 0] - expected) < 0.03 * np.sqrt(spread)
    assert 0.9 < width / spread < 1.03  # less at the mode


def test_two_classes_row_by_row_are_the_log_odds() -> None:
    """The same rows as a softmax of two classes, and as log odds by equal moments."""
    X, y, _ = drawn(0, 2, 3, 200)
    binary = BayesianLogisticRegression(prior_precision=0.5, approximation="moments").fit(X, y)
    many = _many.begin_posterior(2, 3, intercept=True, precision=1.0, forgetting=None)
    many.append(X[:50], y[:50, None], None, np.zeros(50))
    many.predict_then_learn(X[50:], y[50:, None], None, np.zeros(150))
    odds = np.diff(many.coefficients(), axis=0)[0, 1:]
    sds = many.joint(tuple("abcd"), ("0", "1")).std()[1:]
    expected = binary.posterior_.std()[1:]
    assert np.abs((odds - binary.coef_[0]) / expected).max() < 0.15
    assert np.abs(sds / expected - 1.0).max() < 0.06


def test_first_rows_end_where_scale_and_sites_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the scale moves little in each turn, it still has far to go."""
    X, y, _ = drawn(1003, 3, 20, 8)

    def learn() -> np.ndarray:
        model = BayesianLogisticRegression()
        model.partial_fit(X[:1], y[:1], classes=[0, 1, 2])
        for features, label in zip(X[1:], y[1:], strict=True):
            model.learn_one(features, label)
        frame = model.summary()
        return np.array([frame["mean"], frame["sd"]])

    (mean, sd), turns = learn(), _softmax_rule.MOST_TURNS
    monkeypatch.setattr(_softmax_rule, "AGREE", 1e-3)
    monkeypatch.setattr(_softmax_rule, "MOST_TURNS", 20 * turns)
    exact, width = learn()
    assert np.abs((mean - exact) / width).max() < 0.1
    assert np.abs(sd / width - 1.0).max() < 0.06


def test_intervals_of_batches_hold_when_features_are_many() -> None:
    held = []
    for seed in range(2):
        X, y, truth = drawn(seed, 6, 10, 440)
        model = BayesianLogisticRegression()
        for start in range(0, 400, 100):
            model.partial_fit(X[start : start + 100], y[start : start + 100], classes=range(6))
        low, high = np.moveaxis(model.predict_interval(X[400:]), 2, 0)
        held.append(np.mean((low <= truth[400:]) & (truth[400:] <= high)))
    assert np.mean(held) > 0.87


def test_classes_that_are_not_named_before_make_little_difference() -> None:
    """A prior chosen from the two rows before the third class came would be no prior at all."""
    X, y, _ = drawn(0, 7, 18, 150)
    late, named = BayesianLogisticRegression(), BayesianLogisticRegression()
    named.partial_fit(X[:1], y[:1], classes=range(7))
    late.learn_one(X[0], int(y[0]))
    for row, label in zip(X[1:100], y[1:100], strict=True):
        late.learn_one(row, int(label))
        named.learn_one(row, int(label))
    scores = [model.predict_log_proba(X[100:])[np.arange(50), y[100:]] for model in (late, named)]
    assert abs(np.mean(scores[0] - scores[1])) < 0.05
    assert np.abs(late.coef_).max() < 5.0


def test_intervals_of_rows_hold() -> None:
    held = []
    for seed in range(2):
        X, y, truth = drawn(seed, 4, 4, 240)
        model = BayesianLogisticRegression()
        model.predict_then_learn(X[:200], y[:200], classes=range(4))
        low, high = np.moveaxis(model.predict_interval(X[200:]), 2, 0)
        held.append(np.mean((low <= truth[200:]) & (truth[200:] <= high)))
    assert np.mean(held) > 0.87


@pytest.mark.parametrize("largest_full", [600, 0])
def test_rows_that_fill_what_is_kept_are_a_batch(
    largest_full: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_many, "LARGEST_FULL", largest_full)
    X, y, _ = drawn(0, 3, 2, SIZE)
    batch = BayesianLogisticRegression(prior_precision=1.0).partial_fit(X, y)
    rows = BayesianLogisticRegression(prior_precision=1.0)
    predictive = rows.predict_then_learn(X, y, classes=range(3))
    one = BayesianLogisticRegression(prior_precision=1.0)
    one.partial_fit(X[:1], y[:1], classes=range(3))
    for row, label in zip(X[1:], y[1:], strict=True):
        one.predict_interval(X[:1])  # reads change nothing
        one.learn_one(row, label)
    assert np.array_equal(one.coef_, rows.coef_)
    assert np.allclose(rows.coef_, batch.coef_, atol=1e-3 * np.abs(batch.coef_).max())
    assert rows.log_evidence_ == pytest.approx(batch.log_evidence_, abs=1e-2)
    assert len(rows._posterior_or_none.recent.X) == 0  # type: ignore[attr-defined]
    assert rows.n_observations_ == SIZE
    assert predictive.probabilities.shape == (SIZE, 3)


def test_rows_in_small_batches_are_learned_together() -> None:
    X, y, truth = drawn(1, 5, 8, 240)
    model = BayesianLogisticRegression(prior_precision=1.0)
    for start in range(0, 200, 5):
        part = slice(start, start + 5)
        model.partial_fit(X[part], y[part], classes=range(5))
    low, high = np.moveaxis(model.predict_interval(X[200:]), 2, 0)
    assert np.mean((low <= truth[200:]) & (truth[200:] <= high)) > 0.88
    whole = BayesianLogisticRegression(prior_precision=1.0)
    whole.partial_fit(X[:200], y[:200], classes=range(5))
    assert np.allclose(model.coef_, whole.coef_, atol=1e-3 * np.abs(whole.coef_).max())


def test_rows_that_are_kept_are_bounded_and_fade() -> None:
    X, y, _ = drawn(2, 3, 2, SIZE + 60)
    model = BayesianLogisticRegression(prior_precision=1.0, forgetting=Exponential(discount=0.9))
    model.partial_fit(X[: SIZE - 20], y[: SIZE - 20], classes=range(3))
    for row, label in zip(X[SIZE - 20 :], y[SIZE - 20 :], strict=True):
        model.learn_one(row, label)
    kept = model._posterior_or_none.recent  # type: ignore[attr-defined]
    assert len(kept.X) == 60
    assert np.allclose(kept.weights, 0.9 ** np.arange(59, -1, -1))
    assert model.n_effective_ == pytest.approx(10.0, rel=1e-3)


def test_kept_rows_are_settled_in_a_merge_and_the_other_stays() -> None:
    X, y, _ = drawn(3, 3, 2, 60)
    left, right = (
        BayesianLogisticRegression(prior_precision=1.0).partial_fit(x, label, classes=range(3))
        for x, label in ((X[:30], y[:30]), (X[30:], y[30:]))
    )
    right.learn_one(X[0], y[0])
    before = right.coef_
    left.merge(right)
    assert left._posterior_or_none.recent is None  # type: ignore[attr-defined]
    assert right._posterior_or_none.recent is not None  # type: ignore[attr-defined]
    assert np.array_equal(right.coef_, before)
    assert left.n_observations_ == 61.0


def test_the_shared_factor_is_as_wide_as_the_full_one_on_average(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = np.argmax(0.3 * X @ rng.normal(size=(3, 8)) + rng.gumbel(size=(600, 8)), axis=1)
    full = BayesianLogisticRegression(prior_precision=1.0).fit(X, y)
    monkeypatch.setattr(_many, "LARGEST_FULL", 0)
    shared = BayesianLogisticRegression(prior_precision=1.0).fit(X, y)
    assert np.allclose(full.coef_, shared.coef_, atol=1e-6)
    ratio = np.mean(shared.posterior_.std()) / np.mean(full.posterior_.std())
    assert 0.9 < ratio < 1.1


def test_the_work_of_many_classes_is_bounded() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(130, 2)), rng.permutation(np.arange(130) % 110)
    model = BayesianLogisticRegression().partial_fit(X, y)  # minutes, with all of the covariance
    assert model.predict_proba(X[:5]).shape == (5, 110)
    late = BayesianLogisticRegression().partial_fit(X[:30], np.arange(30) % 3)
    before = late.coef_
    with pytest.raises(ValueError, match=r"110 in all: .* name all classes in the first call"):
        late.partial_fit(X, y)
    assert np.array_equal(late.coef_, before)


def test_a_stream_of_ten_classes_reaches_its_modes() -> None:
    # Warnings are errors here: the search used to stop before its last steps were short.
    rng = np.random.default_rng(2)
    truth, X = rng.normal(size=(10, 5)), rng.normal(size=(250, 4))
    eta = truth[:, 0] + X @ truth[:, 1:].T
    y = np.argmax(eta + rng.gumbel(size=eta.shape), axis=1)
    model = BayesianLogisticRegression()
    model.predict_then_learn(X, y, classes=np.arange(10))
    assert model.score(X, y) > 0.5


@pytest.mark.parametrize("precision", ["auto", 1.0])
@pytest.mark.parametrize("path", ["fit", "batches", "rows"])
def test_where_features_lie_changes_no_probability(path: str, precision: float | str) -> None:
    X, y, _ = drawn(4, 4, 3, 90)

    def learned(shift: float) -> BayesianLogisticRegression:
        model, there = BayesianLogisticRegression(prior_precision=precision), X + shift
        if path == "fit":
            return model.fit(there, y)
        size = 30 if path == "batches" else 1
        for start in range(0, len(y), size):
            rows = slice(start, start + size)
            model.partial_fit(there[rows], y[rows], classes=np.arange(4))
        return model

    plain, shifted = learned(0.0).predict_proba(X), learned(2e3).predict_proba(X + 2e3)
    np.testing.assert_allclose(shifted, plain, atol=1e-7)


@pytest.mark.parametrize(("seed", "n"), [(3, 40), (1, 12)])
def test_a_flat_prior_in_a_stream_believes_nearly_nothing(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.digitize(X[:, 0] + 0.7 * rng.normal(size=n), [-0.5, 0.5])
    model = BayesianLogisticRegression(prior_precision=0.0)
    predictive = model.predict_then_learn(X, y, classes=range(3))
    fitted = BayesianLogisticRegression(prior_precision=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # twelve rows may be separated
        fitted.fit(X, y)
    assert model.log_evidence_ == pytest.approx(predictive.logpmf(y).sum(), abs=3.0)
    # Six directions with densities of 0.04, which in a fit are 1.
    assert -30.0 < model.log_evidence_ - fitted.log_evidence_ < 0.0
    rows = BayesianLogisticRegression(prior_precision=0.0)
    rows.partial_fit(X[:1], y[:1], classes=range(3))
    for x, label in zip(X[1:], y[1:], strict=True):
        rows.learn_one(x, label)
    assert rows.log_evidence_ == pytest.approx(model.log_evidence_, abs=0.5)
    np.testing.assert_array_equal(rows.prior_precision_, np.zeros(2))
