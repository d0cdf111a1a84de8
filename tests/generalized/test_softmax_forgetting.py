"""Three and more classes under every way to forget that has one memory, and every prior rule."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from posterity import BayesianLogisticRegression
from posterity.evidence import Integrated, Maximized, Relevance
from posterity.forgetting import (
    Directional,
    Exponential,
    Forgetting,
    RandomWalk,
    Smoothing,
    Stabilized,
    Window,
)
from posterity.generalized import _many
from posterity.noise import KnownNoise
from posterity.posteriors import LinearPosterior, _softmax_likelihood
from posterity.posteriors._contrast_parts import pass_time
from posterity.posteriors._softmax_likelihood import Rows, helmert
from posterity.posteriors._softmax_mode import Objective
from posterity.priors import GaussianPrior

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
ETA = 2.0 * X @ RNG.normal(size=(3, 3))
Y = np.argmax(ETA + RNG.gumbel(size=ETA.shape), axis=1)
# After the first half the classes have other names.
TURNED = np.where(np.arange(80) < 40, Y, (Y + 1) % 3)
ONE_MEMORY: list[Forgetting] = [
    Exponential(discount=0.95),
    Stabilized(half_life=13.0),
    Directional(discount=0.9),
    RandomWalk(variance=0.1),
    RandomWalk(variance=(0.1, 0.1, 0.1)),
    Window(size=30),
    Window(duration=30.0),
]
# These let nothing go: each row is learned alone, from all rows before it.
KEEPING: list[Forgetting] = [Directional(discount=1.0), RandomWalk(0.0)]


def learned(strategy: object, precision: object = 1.0, n: int = 80) -> BayesianLogisticRegression:
    model = BayesianLogisticRegression(prior_precision=precision, forgetting=strategy)
    model.predict_then_learn(X[:n], TURNED[:n], classes=range(3))
    return model


@pytest.mark.parametrize("strategy", ONE_MEMORY, ids=str)
def test_a_world_that_turns_is_followed(strategy: Forgetting) -> None:
    model = learned(strategy)
    assert model.n_observations_ == pytest.approx(80.0)
    assert model.score(X[40:], TURNED[40:]) > 0.6
    assert learned(None).score(X[40:], TURNED[40:]) < 0.6
    read = model.predict_proba(X[:5])
    assert np.array_equal(model.predict_proba(X[:5]), read)


@pytest.mark.parametrize("strategy", [*ONE_MEMORY, Smoothing(0.9)], ids=str)
def test_rows_one_by_one_are_one_call(strategy: Forgetting) -> None:
    whole = BayesianLogisticRegression(prior_precision=1.0, forgetting=strategy)
    predictive = whole.predict_then_learn(X[:40], Y[:40], classes=range(3))
    one = BayesianLogisticRegression(prior_precision=1.0, forgetting=strategy)
    one.partial_fit(X[:1], Y[:1], classes=range(3))
    for x, y in zip(X[1:40], Y[1:40], strict=True):
        one.learn_one(x, y)
    assert np.allclose(one.coef_, whole.coef_, rtol=1e-9, atol=1e-12)
    assert one.n_effective_ == pytest.approx(whole.n_effective_)
    # The evidence of what is forgotten is that of the rows as they came.
    assert whole.log_evidence_ == pytest.approx(predictive.logpmf(Y[:40]).sum())
    assert one.log_evidence_ == pytest.approx(whole.log_evidence_)


@pytest.mark.parametrize("strategy", ONE_MEMORY, ids=str)
def test_a_class_that_comes_late_is_met(strategy: Forgetting) -> None:
    model = BayesianLogisticRegression(forgetting=strategy)
    order = np.argsort(Y[:40] == 2, kind="stable")
    for x, y in zip(X[:40][order], Y[:40][order], strict=True):
        model.learn_one(x, y)
    assert model.classes_.tolist() == [0, 1, 2]
    assert np.isfinite(model.coef_).all()
    assert model.n_observations_ == pytest.approx(40.0)
    model.partial_fit(X[40:], Y[40:])
    assert model.score(X[40:], Y[40:]) > 0.6


def test_without_forgetting_they_agree() -> None:
    first, *others = [learned(strategy, n=40) for strategy in KEEPING]
    for other in others:
        assert np.allclose(other.coef_, first.coef_, rtol=1e-6, atol=1e-9)
        assert other.n_effective_ == pytest.approx(40.0)
        assert other.log_evidence_ == pytest.approx(first.log_evidence_)


@pytest.mark.parametrize("strategy", [Window(size=7), Window(duration=6.0)], ids=str)
def test_a_window_knows_the_rows_in_it(strategy: Window) -> None:
    model = learned(strategy, n=30)
    alone = BayesianLogisticRegression(prior_precision=1.0)
    alone.partial_fit(X[23:30], TURNED[23:30], classes=range(3))
    assert np.allclose(model.coef_, alone.coef_, atol=0.05)
    assert np.allclose(model.posterior_.std(), alone.posterior_.std(), rtol=0.05)
    assert model.n_effective_ == pytest.approx(7.0)
    late = BayesianLogisticRegression(prior_precision=1.0, forgetting=strategy)
    late.partial_fit(X[:30], Y[:30]).partial_fit(X[30:31], [3])
    late.partial_fit(X[31:37], Y[31:37])
    assert late.n_effective_ == pytest.approx(7.0)


def test_time_without_rows_forgets() -> None:
    for strategy in (Stabilized(discount=0.9), Window(duration=5.0), RandomWalk(0.1)):
        model = BayesianLogisticRegression(prior_precision=1.0, forgetting=strategy)
        model.partial_fit(X[:40], Y[:40], classes=range(3), times=np.arange(40.0))
        before = model.posterior_.std()
        model.partial_fit(X[40:41], Y[40:41], times=[140.0])
        assert np.mean(model.posterior_.std()) > np.mean(before)


def test_all_directions_of_a_row_fade_once() -> None:
    """D - (1 - d) D X'(X D X')^-1 X D, for the rows X that a label is."""
    rng = np.random.default_rng(1)
    flat = LinearPosterior.before_data(GaussianPrior(0.0, 0.0), KnownNoise(1.0), 6, intercept=False)
    data = Directional(discount=0.8).begin(flat)
    data.absorb(rng.normal(size=(20, 6)), rng.normal(size=(20, 1)), None, np.zeros(20))
    known = data.factor.root.T @ data.factor.root
    rows = np.kron(np.eye(2), rng.normal(size=(1, 3)))
    middle = np.linalg.inv(rows @ known @ rows.T)
    expected = known - 0.2 * known @ rows.T @ middle @ rows @ known
    pass_time(data, rows, 1.0)
    assert np.allclose(data.factor.root.T @ data.factor.root, expected)
    # Of 20 rows 6 were needed to determine the coefficients: they do not fade.
    assert data.n_effective == pytest.approx(6.0 + 0.8 * 14.0)


def test_models_that_fade_are_merged() -> None:
    left, right = learned(Stabilized(discount=0.95)), learned(Stabilized(discount=0.95))
    assert left.merge(right).n_effective_ == pytest.approx(2.0 * right.n_effective_)


@pytest.mark.parametrize("rule", ["auto", "ard", Integrated(), Maximized(), Relevance(4)], ids=str)
def test_every_prior_rule(rule: object) -> None:
    rng = np.random.default_rng(2)
    noise = rng.normal(size=(80, 3))
    rows = np.hstack([X, noise])
    model = BayesianLogisticRegression(prior_precision=rule).fit(rows, Y)
    plain = BayesianLogisticRegression(prior_precision=1.0).fit(rows, Y)
    assert model.score(rows, Y) > plain.score(rows, Y) - 0.05
    assert model.log_evidence_ > plain.log_evidence_ - 2.0
    precision = np.asarray(model.prior_precision_)
    if precision.ndim == 2:  # one for each contrast and feature
        assert np.median(precision[:, 3:]) > np.median(precision[:, :3])
    assert np.isfinite(model.posterior_.std()).all()
    model.partial_fit(rows[:20], Y[:20])
    assert model.n_observations_ == 100.0


def test_the_second_derivative_is_that_of_the_gradient() -> None:
    rng = np.random.default_rng(3)
    rows = Rows(rng.normal(size=(30, 2)), rng.integers(0, 4, 30), rng.uniform(size=30))
    roots, moments = rng.normal(size=(1, 6, 6)), rng.normal(size=(1, 6))
    w, direction = rng.normal(size=(2, 3, 2))
    for moved, direct in product((None, rng.normal(size=(30, 5, 3))), (True, False)):
        objective = Objective(rows, helmert(4), roots, moments, moved, direct)
        ends = (objective.evaluate(w + sign * 1e-5 * direction) for sign in (1.0, -1.0))
        (up, down), here = ends, objective.evaluate(w)
        slope = np.sum(here.gradient * direction)
        assert (up.value - down.value) / 2e-5 == pytest.approx(slope, rel=1e-6)
        # Newton's step undoes the second derivative.
        found = here.step(1e-6 * (down.gradient - up.gradient) / 2e-5, 0.0)
        assert found is not None
        assert np.allclose(1e6 * found, direction, rtol=1e-5, atol=1e-5)


def test_a_posterior_of_classes_tells_a_distribution_of_places() -> None:
    posterior = _many.begin_posterior(
        3, 3, intercept=True, precision=1.0, forgetting=Window(size=50)
    )
    before = posterior.copy()
    predictive = posterior.predict_then_learn(X, Y[:, None], None, np.ones(80))
    assert predictive.logpdf(Y).shape == (80,)
    assert np.allclose(np.exp(predictive.log_probabilities).sum(axis=1), 1.0)
    before.copy_from(posterior)
    assert np.array_equal(before.coefficients(), posterior.coefficients())


@pytest.fixture
def many_points(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A quadrature whose error is far below what the test looks at."""
    monkeypatch.setattr(_softmax_likelihood, "N_POINTS", 4096)
    _softmax_likelihood.spread_points.cache_clear()
    yield
    _softmax_likelihood.spread_points.cache_clear()


@pytest.mark.usefixtures("many_points")
def test_rare_classes_among_many_have_wide_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has its own curvature: as wide as with all of the covariance, or a little wider."""
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(800, 3))
    eta = np.linspace(-2.5, 2.5, 12) + 0.5 * rows @ rng.normal(size=(3, 12))
    y = np.argmax(eta + rng.gumbel(size=eta.shape), axis=1)
    whole = BayesianLogisticRegression(prior_precision=4.0).fit(rows, y)
    monkeypatch.setattr(_many, "LARGEST_FULL", 0)
    apart = BayesianLogisticRegression(prior_precision=4.0).fit(rows, y)
    assert np.allclose(whole.coef_, apart.coef_, atol=1e-6)
    ends = [np.diff(model.predict_interval(rows[:50]), axis=2) for model in (whole, apart)]
    ratios = np.mean(ends[1] / ends[0], axis=0)
    assert ratios.min() > 0.95
    assert ratios.max() < 1.15
