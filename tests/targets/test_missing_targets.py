"""Rows that lack some of the targets: the textbook's chain, however they come."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from posterity import BayesianLinearRegression
from posterity.distributions import StudentT
from posterity.files import dumps, loads
from posterity.forgetting import Exponential, Stabilized, Window

SETTINGS: list[dict[str, Any]] = [
    {"prior_precision": 0.0},
    {"prior_precision": 2.0, "noise_prior": (2.0, 3.0)},
    {"prior_precision": 2.0, "noise_precision": 4.0, "prior_mean": 1.0},
    {"prior_precision": [1.0, 2.0, 0.5], "fit_intercept": False},
    {},
    {"prior_precision": "ard"},
]
NAN = np.nan


def data(n: int = 60, p: int = 3, q: int = 3, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = X @ rng.normal(size=(p, q)) + rng.normal(size=(n, q)) @ rng.normal(size=(q, q)) + 2.0
    return X, y


def monotone(y: Any) -> Any:
    y = y.copy()
    y[:25, 2] = NAN
    y[5:15, 0] = NAN  # not the first in order; it still comes with all rows of the last
    return y


def scattered(y: Any, seed: int = 1) -> Any:
    return np.where(np.random.default_rng(seed).random(y.shape) < 0.3, NAN, y)


LACKING = {"monotone": monotone, "scattered": scattered}


class Textbook:
    """A conjugate regression y = x.w, by augmented rows: (nu, mean, scale) of a prediction."""

    def __init__(self, X: Any, y: Any, prior: Any, shape: float, rate: float, flat: int) -> None:
        rows, targets = np.vstack([X, prior]), np.concatenate([y, np.zeros(len(prior))])
        self.precision = rows.T @ rows
        self.w = np.linalg.solve(self.precision, rows.T @ targets)
        self.nu = len(X) - flat + 2.0 * shape
        self.s2 = (np.square(targets - rows @ self.w).sum() + 2.0 * rate) / self.nu

    def predict(self, x: Any) -> Any:
        spread = 1.0 + np.einsum("ni,ij,nj->n", x, np.linalg.inv(self.precision), x)
        return StudentT(np.full(len(x), self.nu), x @ self.w, np.sqrt(self.s2 * spread))


@given(seed=st.integers(0, 10**6), n=st.integers(12, 60), lacking=st.integers(1, 6))
def test_monotone_is_the_chain_of_the_textbook(seed: int, n: int, lacking: int) -> None:
    X, y = data(n, q=2, seed=seed)
    y[:lacking, 1] = NAN
    shape, rate, precision = 2.0, 3.0, 2.0
    model = BayesianLinearRegression(prior_precision=precision, noise_prior=(shape, rate))
    predictive = model.fit(X, y).predict_distribution(X[:4])

    ones = np.column_stack([np.ones(n), X])
    prior = np.sqrt(precision) * np.eye(4)[1:]
    first = Textbook(ones, y[:, 0], prior, shape, rate, 1).predict(ones[:4])
    assert np.allclose(predictive.mean()[:, 0], first.mean(), atol=1e-9)
    assert np.allclose(predictive.var()[:, 0], first.var(), rtol=1e-9)

    kept = slice(lacking, n)
    both = np.column_stack([ones, y[:, 0]])
    more = np.zeros((4, 5))
    more[:3, :4], more[3, 4] = prior, np.sqrt(2.0 * rate)
    # One more degree of freedom than the target by itself.
    link = Textbook(both[kept], y[kept, 1], more, shape + 0.5, rate, 1)
    # Its moments, over a fine grid of what the first may be: tails of a Student-t are long.
    u = np.linspace(-14.0, 14.0, 4001)
    for i in range(2):
        one = StudentT(first.df[i], first.loc[i], first.scale[i])
        z = one.loc + one.scale * np.sinh(u)
        share = np.exp(one.logpdf(z)) * one.scale * np.cosh(u) * (u[1] - u[0])
        given_z = link.predict(np.column_stack([np.tile(ones[i], (len(z), 1)), z]))
        mean = share @ given_z.mean()
        assert share.sum() == pytest.approx(1.0, rel=1e-9)
        assert predictive.mean()[i, 1] == pytest.approx(mean, rel=1e-8, abs=1e-8)
        second = share @ (given_z.var() + given_z.mean() ** 2)
        assert predictive.var()[i, 1] == pytest.approx(second - mean**2, rel=1e-5)
    assert np.allclose(
        predictive.mean()[:, 1], np.column_stack([ones[:4], predictive.mean()[:, 0]]) @ link.w
    )


@pytest.mark.parametrize(
    ("settings", "lacking"),
    [*((one, "monotone") for one in SETTINGS), *((SETTINGS[i], "scattered") for i in (1, 4))],
    ids=str,
)
def test_however_the_rows_come(settings: dict[str, Any], lacking: str) -> None:
    X, y = data()
    y, weights = LACKING[lacking](y), np.random.default_rng(0).choice([0.5, 1.0, 2.0], size=60)
    whole = BayesianLinearRegression(**settings).fit(X, y, weights)
    rows = BayesianLinearRegression(**settings)
    for x, row, weight in zip(X, y, weights, strict=True):
        rows.learn_one(x, row, weight)
    batches = BayesianLinearRegression(**settings)
    batches.partial_fit(X[:11], y[:11], weights[:11]).partial_fit(X[11:], y[11:], weights[11:])
    halves = [
        BayesianLinearRegression(**settings).fit(X[part], y[part], weights[part])
        for part in (slice(0, 40), slice(40, 60))
    ]
    backwards = [loads(dumps(half)) for half in halves[::-1]]
    more = BayesianLinearRegression(**settings).fit(
        np.vstack([X, X[:25] + 1.0]), np.vstack([y, y[:25]]), np.append(weights, np.ones(25))
    )
    more.unlearn(X[:25] + 1.0, y[:25])
    ours = whole.predict_distribution(X[:6])
    merged = halves[0].merge(halves[1]), backwards[0].merge(backwards[1])
    for other in (rows, batches, *merged, more, loads(dumps(whole))):
        theirs = other.predict_distribution(X[:6])
        assert np.allclose(ours.mean(), theirs.mean(), atol=1e-7)
        assert np.allclose(ours.scale, theirs.scale, rtol=1e-6)
        assert np.allclose(ours.correlation, theirs.correlation, atol=1e-6)
        assert other.n_observations_ == pytest.approx(whole.n_observations_)
    assert np.allclose(whole.predict(X[:6]), ours.loc, atol=1e-9)
    assert np.allclose(whole.posterior_.mean[:, -3:], whole.coef_, atol=1e-9)
    assert whole.sample_coefficients(5, rng=0).shape == (5, 3, 3)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_a_row_with_gaps_that_is_unlearned_leaves_no_trace(settings: dict[str, Any]) -> None:
    X, y = data()
    plain = BayesianLinearRegression(**settings).fit(X, y)
    ready = BayesianLinearRegression(**settings).fit(X, y)
    ready.learn_one(X[0], [NAN, *y[0, 1:]]).unlearn(X[:1], [[NAN, *y[0, 1:]]])
    ours, theirs = plain.predict_distribution(X), ready.predict_distribution(X)
    assert np.allclose(ours.loc, theirs.loc, atol=1e-12)
    assert np.allclose(ours.cov, theirs.cov, rtol=1e-12, atol=1e-12)
    assert ready.log_evidence_ == pytest.approx(plain.log_evidence_, rel=1e-12)


@pytest.mark.parametrize("settings", SETTINGS[:2], ids=str)
def test_progressive_validation_sees_nothing_of_its_row(settings: dict[str, Any]) -> None:
    X, y = data(16)
    y = scattered(y)
    model = BayesianLinearRegression(**settings)
    predictive = model.predict_then_learn(X, y)
    before = BayesianLinearRegression(**settings).fit(X[:12], y[:12])
    assert np.allclose(predictive.cov[12], before.predict_distribution(X[12:13]).cov[0], rtol=1e-8)
    whole = BayesianLinearRegression(**settings).fit(X, y)
    assert np.allclose(whole.coef_, model.coef_, atol=1e-8)


@given(seed=st.integers(0, 10**6), n=st.integers(3, 25), lacking=st.integers(1, 20))
def test_evidence_is_the_sum_over_the_chain(seed: int, n: int, lacking: int) -> None:
    """Rows that lack a target count for the others only: what they say of these is all."""
    X, y = data(n, q=2, seed=seed)
    settings = {"prior_precision": 2.0, "noise_prior": (2.0, 3.0)}
    y[: min(lacking, n), 1] = NAN
    model = BayesianLinearRegression(**settings).partial_fit(X, y)  # it may never come
    first = BayesianLinearRegression(**settings).fit(X, y[:, 0])
    kept = ~np.isnan(y[:, 1])
    expected = first.log_evidence_
    if kept.any():
        both = BayesianLinearRegression(**settings).fit(X[kept], y[kept])
        some = BayesianLinearRegression(**settings).fit(X[kept], y[kept, 0])
        expected += both.log_evidence_ - some.log_evidence_
    assert model.log_evidence_ == pytest.approx(expected, rel=1e-9)


def test_targets_that_never_come_together_are_learned_by_themselves() -> None:
    X, y = data(q=2)
    y[::2, 0], y[1::2, 1] = NAN, NAN
    model = BayesianLinearRegression(prior_precision=0.0).fit(X, y)
    for target, rows in enumerate((slice(1, None, 2), slice(0, None, 2))):
        alone = BayesianLinearRegression(prior_precision=0.0).fit(X[rows], y[rows, target])
        assert np.allclose(model.coef_[target], alone.coef_, atol=1e-9)


def test_targets_that_come_together_help_each_other() -> None:
    rng = np.random.default_rng(0)
    X, shared = rng.normal(size=(400, 2)), rng.normal(size=400)
    y = X @ [[1.0, -1.0], [2.0, 0.5]] + shared[:, None] + 0.1 * rng.normal(size=(400, 2))
    truth, y[30:, 1] = y[:, 1].copy(), NAN
    model = BayesianLinearRegression().fit(X, y)
    alone = BayesianLinearRegression().fit(X[:30], y[:30, 1])
    off = [np.square(one - [-1.0, 0.5]).sum() for one in (model.coef_[1], alone.coef_)]
    assert off[0] < 0.3 * off[1]
    predictive = model.predict_distribution(X[30:]).given(0, y[30:, 0])
    low, high = predictive.interval(0.95)
    assert ((low[:, 0] < truth[30:]) & (truth[30:] < high[:, 0])).mean() > 0.92


def test_a_row_without_any_target_is_no_row() -> None:
    X, y = data(20)
    gone = np.vstack([y, np.full((2, 3), NAN)])
    model = BayesianLinearRegression().fit(np.vstack([X, X[:2]]), gone)
    alone = BayesianLinearRegression().fit(X, y)
    assert model.n_observations_ == 20.0
    assert np.allclose(model.predict(X), alone.predict(X), atol=1e-12)
    model.learn_one(X[0], [NAN, NAN, NAN])
    assert model.n_observations_ == 20.0
    nothing = BayesianLinearRegression().partial_fit(X, np.full((20, 3), NAN))
    assert nothing.n_observations_ == 0.0
    assert not np.isfinite(nothing.predict_distribution(X).std()).any()


@pytest.mark.parametrize("lacking", LACKING)
@pytest.mark.parametrize("settings", SETTINGS[1:3])
def test_what_fades_is_weighed_by_its_age(settings: dict[str, Any], lacking: str) -> None:
    """Prior and discounted data: the same rows with weights, and nothing that forgets."""
    X, y = data()
    y = LACKING[lacking](y)
    some = ~np.isnan(y).all(axis=1)
    X, y = X[some], y[some]
    age = np.arange(len(X))[::-1]
    fades = BayesianLinearRegression(forgetting=Stabilized(discount=0.95), **settings)
    slow = BayesianLinearRegression(**settings).fit(X, y, sample_weight=0.95**age)
    one_by_one = clone(fades)
    for row in range(len(X)):
        one_by_one.partial_fit(X[row : row + 1], y[row : row + 1])
    for model in (clone(fades).fit(X, y), one_by_one, loads(dumps(one_by_one))):
        predictive, twin = model.predict_distribution(X[:4]), slow.predict_distribution(X[:4])
        np.testing.assert_allclose(predictive.mean(), twin.mean(), rtol=1e-7)
        np.testing.assert_allclose(predictive.std(), twin.std(), rtol=1e-7)
        np.testing.assert_allclose(model.n_effective_, slow.n_effective_)
        assert model.n_observations_ == len(X)


def test_rows_without_targets_take_their_time() -> None:
    X, y = data(20)
    y[3:6] = NAN
    model = BayesianLinearRegression(prior_precision=2.0, forgetting=Exponential(discount=0.9))
    age = 0.9 ** np.arange(20)[::-1]
    assert np.isclose(model.fit(X, y).n_effective_, age.sum() - age[3:6].sum())


def test_what_is_refused() -> None:
    X, y = data(20)
    lacking = scattered(y)
    with pytest.raises(ValueError, match="this way to forget does not support"):
        BayesianLinearRegression(forgetting=Window(size=9)).fit(X, lacking)
    with pytest.raises(ValueError, match="target 1 is NaN in all 20 rows"):
        BayesianLinearRegression().fit(X, np.where(np.arange(3) == 1, NAN, y))
    fading = BayesianLinearRegression(forgetting=Stabilized(discount=0.9)).fit(X, lacking)
    with pytest.raises(ValueError, match="can't unlearn rows under Stabilized"):
        fading.unlearn(X[:3], lacking[:3])
    with pytest.raises(ValueError, match="y is 1e\\+200 in row 3, column 1"):
        BayesianLinearRegression().fit(
            X, np.where(np.arange(60).reshape(20, 3) == 10, 1e200, lacking)
        )
    with pytest.raises(ValueError, match="X contains NaN in row 2"):
        BayesianLinearRegression().fit(np.where(np.arange(20)[:, None] == 2, NAN, X), lacking)
    with pytest.raises(ValueError, match="Input y contains NaN"):
        BayesianLinearRegression().fit(X, lacking[:, 0])
    model = BayesianLinearRegression().fit(X, lacking)
    before = model.predict(X)
    gaps = np.isnan(lacking).any(axis=1)
    with pytest.raises(ValueError, match="never learned"):
        model.unlearn(X[gaps] + 1.0, lacking[gaps])
    assert np.array_equal(model.predict(X), before)


def test_levels_may_join_after_rows_with_gaps() -> None:
    rng = np.random.default_rng(0)
    levels = np.array(["a", "b", "c"])[np.minimum(np.arange(60) // 15, 2)]
    frame = pd.DataFrame({"level": levels, "x": rng.normal(size=60)})
    y = rng.normal(size=(60, 2)) + frame[["x"]].to_numpy()
    y[5:9, 1], y[40:44, 0] = NAN, NAN
    whole = BayesianLinearRegression(prior_precision=1.0).fit(frame, y)
    parts = BayesianLinearRegression(prior_precision=1.0).fit(frame[:30], y[:30])
    parts.partial_fit(frame[30:], y[30:])
    np.testing.assert_allclose(parts.predict(frame), whole.predict(frame), atol=1e-6)
