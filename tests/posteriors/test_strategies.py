"""Ways to forget side by side: what each is for, and that rows one by one are as rows at once."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pandas as pd
import pytest

from posterity import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegression,
    GroupedRegression,
)
from posterity.files import dumps
from posterity.forgetting import (
    Adaptive,
    Changepoint,
    Exponential,
    RandomWalk,
    Stabilized,
    Window,
)
from posterity.forgetting.fading import SlopeWalk
from posterity.forgetting.words import parse
from posterity.likelihoods import Bernoulli
from posterity.noise import KnownNoise
from posterity.posteriors import LinearPosterior
from posterity.posteriors._site_rows import learn_each_row, learn_rows, make_site_rows
from posterity.posteriors.strategies import Strategies
from posterity.priors import GaussianPrior
from posterity.sparse import DiagonalLinearRegression

Array = np.ndarray
SLOPES = np.array([1.0, -1.0, 0.5])


def stream(kind: str, seed: int, n: int = 400) -> tuple[Array, Array, Array]:
    """Rows, targets, and what is expected of these; noise has the standard deviation 1."""
    rng = np.random.default_rng(seed)
    X, slopes = rng.normal(size=(n, 3)), np.tile(SLOPES, (n, 1))
    level = np.cumsum(rng.normal(size=n)) if kind == "level walks" else np.zeros(n)
    if kind == "jump":
        slopes[n // 2 :, 0] += 4.0
    expected = level + np.sum(X * slopes, axis=1)
    return X, expected + rng.normal(size=n), expected


def lose(forgetting: Any, kind: str, first: int, seeds: int = 4) -> float:
    """Nats a row below the true density, which knows the expected target, from row ``first`` on."""
    lost = []
    for seed in range(seeds):
        X, y, expected = stream(kind, seed)
        predictive = BayesianLinearRegression(forgetting=forgetting).predict_then_learn(X, y)
        truth = -0.5 * np.log(2.0 * np.pi) - 0.5 * np.square(y - expected)
        lost.append((truth - predictive.logpdf(y))[first:].mean())
    return float(np.mean(lost))


FADING = Adaptive(Adaptive.grid(4))


def test_slopes_are_not_forgotten_while_a_level_walks() -> None:
    # A Kalman filter that is told the variances loses 0.48 against what knows the level.
    assert lose("adaptive", "level walks", 100) < 0.53
    assert lose(FADING, "level walks", 100) > 0.75
    X, y, _ = stream("level walks", 0)
    model = BayesianLinearRegression(forgetting="adaptive").fit(X, y)
    assert model.coef_ == pytest.approx(SLOPES, abs=0.2)


def test_a_slope_that_walks_alone_is_followed_and_its_unit_and_offset_do_not_matter() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4))
    slope = np.cumsum(0.2 * rng.normal(size=500))
    y = 1.0 + slope * X[:, 1] + X[:, 0] + rng.normal(size=500)
    scores = [
        BayesianLinearRegression(forgetting=one).predict_then_learn(rows, y).logpdf(y)[100:].mean()
        for one, rows in (
            ("adaptive", X),
            ("adaptive", X * [1.0, 1e3, 1.0, 1.0] + [0.0, 1e4, 0.0, 5.0]),
            (Adaptive(Adaptive.grid(5)), X),
        )
    ]
    assert scores[0] == pytest.approx(scores[1], abs=1e-4)
    assert scores[0] > scores[2] + 0.05


def test_a_slopes_walk_is_a_step_of_its_covariance() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    X[:, 1] += 5.0
    prior = GaussianPrior(0.0, 1.0)
    fresh = LinearPosterior.before_data(prior, KnownNoise(1.0), 3, intercept=True)
    walk = fresh.with_memory(SlopeWalk.of(2, 4, 0.15))
    walk.append(X, y[:, None], None, np.ones(30))
    rows, mean = np.hstack([np.ones((30, 1)), X]), np.zeros(4)
    covariance = np.diag([1e10, 1.0, 1.0, 1.0])
    for i, row in enumerate(rows):
        if i:
            away = np.array([-rows[:i, 2].mean(), 0.0, 1.0, 0.0])
            visit = 10.0 * (away @ row) ** 2 * covariance[2, 2]
            covariance += covariance[2, 2] * min(0.15, visit) * np.outer(away, away)
        gain = covariance @ row / (1.0 + row @ covariance @ row)
        mean, covariance = (
            mean + gain * (y[i] - row @ mean),
            covariance - np.outer(gain, row @ covariance),
        )
    assert walk.coefficients() == pytest.approx(mean, abs=1e-4)


def test_a_jump_is_over_soon() -> None:
    assert lose("adaptive", "jump", 280) < 0.05
    assert lose(FADING, "jump", 280) > 0.08


def test_calm_costs_little() -> None:
    assert lose("adaptive", "calm", 100) < 0.04


@pytest.mark.parametrize(
    ("settings", "within"),
    [
        ({"prior_precision": 0.0}, 1e-9),
        ({"prior_precision": 0.0, "noise_precision": 1.0}, 1e-9),
        # Priors within a call weigh up to 1.84 times their own.
        ({}, 0.02),
        ({"fit_intercept": False}, 0.05),
    ],
)
def test_rows_in_any_pieces_and_one_by_one(settings: dict[str, Any], within: float) -> None:
    X, y, _ = stream("level walks", 1, 120)
    whole, pieces, lean = (
        BayesianLinearRegression(forgetting="adaptive", **settings) for _ in range(3)
    )
    predictive = whole.predict_then_learn(X, y)
    for part in np.array_split(np.arange(120), 7):
        pieces.partial_fit(X[part], y[part])
    for i in range(120):
        if i > 10:
            assert lean.predict_one(X[i]) == pytest.approx(predictive.mean()[i], abs=5.0 * within)
        lean.learn_one(X[i], y[i])
    assert whole.log_evidence_ == pytest.approx(predictive.logpdf(y).sum(), abs=1e-6)
    for other in (pieces, lean):
        assert other.coef_ == pytest.approx(whole.coef_, abs=within)
        assert other.n_observations_ == 120.0
        if within < 1e-6:
            assert other.log_evidence_ == pytest.approx(whole.log_evidence_, abs=1e-6)


def test_a_row_that_some_members_learned_is_learned_by_all() -> None:
    X, y, _ = stream("calm", 0, 60)
    model, twin = (BayesianLinearRegression(forgetting="adaptive") for _ in range(2))
    for one in (model, twin):
        one.fit(X[:50], y[:50]).learn_one(X[50], y[50])
    path: Any = model._row_path
    second, interrupts = path.paths[1], iter([KeyboardInterrupt])

    class Interrupted:
        def learn(self, *row: Any) -> bool:
            for interrupt in interrupts:
                raise interrupt
            return bool(second.learn(*row))

    path.paths[1] = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        model.learn_one(X[51], y[51])
    twin.learn_one(X[51], y[51])
    assert model.log_evidence_ == twin.log_evidence_
    assert np.array_equal(model.coef_, twin.coef_)
    posterior: Any = model._posterior
    counts = {one.n_observations for one in posterior.hypotheses.members}
    assert counts == {52.0}


def test_an_interrupt_before_weights_are_learned_leaves_none_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(52, 2))
    y = X @ [1.0, -1.0] + rng.normal(size=52)
    model = BayesianLinearRegression(forgetting="adaptive")
    for x, target in zip(X[:51], y[:51], strict=True):
        model.learn_one(x, target)
    twin = copy.deepcopy(model).learn_one(X[51], y[51])
    read, interrupts = Strategies.n_waiting.fget, iter([KeyboardInterrupt])  # type: ignore[attr-defined]

    def interrupted(self: Any) -> Any:
        for interrupt in interrupts:
            raise interrupt
        return read(self)

    monkeypatch.setattr(Strategies, "n_waiting", property(interrupted))
    with pytest.raises(KeyboardInterrupt):
        model.learn_one(X[51], y[51])
    assert np.array_equal(model.predict(X), twin.predict(X))
    assert model.log_evidence_ == twin.log_evidence_


def test_levels_join() -> None:
    rng = np.random.default_rng(0)
    zone = np.where(np.arange(300) < 200, "a", rng.choice(["a", "b"], 300))
    rows = pd.DataFrame({"x": rng.normal(size=300), "zone": zone})
    y = rows["x"].to_numpy() + 3.0 * (zone == "b") + rng.normal(size=300)
    model = BayesianLinearRegression(forgetting="adaptive").fit(rows[:200], y[:200])
    model.partial_fit(rows[200:], y[200:])
    means = model.predict(pd.DataFrame({"x": [0.0, 0.0], "zone": ["a", "b"]}))
    assert means[1] - means[0] == pytest.approx(3.0, abs=0.7)


def test_labels_and_counts_are_averaged_without_changes() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 1))
    eta = np.where(np.arange(200) < 100, 1.0, -1.0) + X[:, 0]
    labels = (rng.random(200) < 1.0 / (1.0 + np.exp(-eta))).astype(int)
    for model, y in (
        (BayesianLogisticRegression(forgetting="adaptive"), labels),
        (BayesianPoissonRegression(forgetting="adaptive"), rng.poisson(np.exp(eta))),
    ):
        model.fit(X, y)
        assert model.intercept_ < 0.0 < model.coef_.ravel()[0]
        posterior: Any = model._posterior
        assert len(posterior.hypotheses.members) == 5  # discounts, the level and the slope


def observations(kind: str, n: int = 150) -> tuple[Array, Array]:
    """Rows, and labels or counts whose level changes once."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    eta = np.where(np.arange(n) < n // 2, 1.0, -0.5) + X[:, 0]
    if kind == "labels":
        return X, np.array(["no", "yes"])[(rng.random(n) < 1.0 / (1.0 + np.exp(-eta))).astype(int)]
    return X, rng.poisson(np.exp(eta)).astype(float)


@pytest.mark.parametrize("precision", [1.0, "auto"])
@pytest.mark.parametrize("kind", ["labels", "counts"])
@pytest.mark.parametrize(
    "forgetting", ["adaptive", RandomWalk((0.03, 0.0, 0.0, 0.0)), RandomWalk(0.01)], ids=repr
)
def test_labels_and_counts_in_any_pieces_and_one_by_one(
    forgetting: Any, kind: str, precision: Any
) -> None:
    X, y = observations(kind)
    make = BayesianLogisticRegression if kind == "labels" else BayesianPoissonRegression
    whole, pieces, lean = (make(forgetting=forgetting, prior_precision=precision) for _ in range(3))
    for model in (whole, pieces, lean):
        model.fit(X[:20], y[:20])
    predictive = whole.predict_then_learn(X[20:], y[20:])
    assert len(predictive.mean() if kind == "counts" else predictive.logpmf(y[20:])) == 130
    for part in np.array_split(np.arange(20, 150), 7):
        pieces.partial_fit(X[part], y[part])
    for i in range(20, 150):
        lean.learn_one(X[i], y[i])
    within = 0.02 if forgetting == "adaptive" else 1e-8  # priors weigh more within a call
    for other in (pieces, lean):
        assert other.coef_ == pytest.approx(whole.coef_, abs=within)
        assert other.log_evidence_ == pytest.approx(whole.log_evidence_, abs=10.0 * within)
        assert other.n_observations_ == 150.0


@pytest.mark.parametrize("variance", [(0.03, 0.0, 0.0, 0.0), (0.1, 0.0, 0.02, 0.0)])
def test_walks_of_labels_are_those_found_row_by_row(variance: tuple[float, ...]) -> None:
    X, y = observations("labels")
    rows = make_site_rows(X, (y == "yes")[:, None] * 1.0, None, np.ones(150), np.full(150, 0.2))
    fresh = LinearPosterior.before_data(GaussianPrior(0.0, 1.0), KnownNoise(1.0), 3, intercept=True)
    mine, plain = (fresh.copy().with_memory(RandomWalk(variance)) for _ in range(2))
    learned = learn_rows(mine, Bernoulli(), "moments", rows)
    expected = learn_each_row(plain, Bernoulli(), "moments", rows)
    assert learned.mean == pytest.approx(expected.mean, abs=1e-10)
    assert learned.variance == pytest.approx(expected.variance, rel=1e-10)
    assert mine.coefficients() == pytest.approx(plain.coefficients(), abs=1e-10)


def test_a_label_that_is_new_or_a_count_that_is_none_changes_nothing() -> None:
    for kind, bad in (("labels", "maybe"), ("counts", -1.0)):
        X, y = observations(kind, 40)
        make = BayesianLogisticRegression if kind == "labels" else BayesianPoissonRegression
        model = make(forgetting="adaptive").fit(X, y).learn_one(X[0], y[0])
        before = dumps(model)
        with pytest.raises(ValueError, match=r"maybe|class|-1"):
            model.learn_one(X[0], bad)
        assert dumps(model) == before


def test_words_for_strategies() -> None:
    X, y, _ = stream("calm", 0, 60)
    for words, strategy in (
        ("adaptive", Adaptive()),
        ("exponential:0.99", Exponential(0.99)),
        ("stabilized:0.95", Stabilized(0.95)),
        ("window:20", Window(20)),
        ("changepoint", Changepoint()),
        ("random-walk:0.01", RandomWalk(0.01)),
        ("none", None),
    ):
        assert parse(words) == strategy
        by_name, given = (
            BayesianLinearRegression(forgetting=one).fit(X, y) for one in (words, strategy)
        )
        assert np.array_equal(by_name.coef_, given.coef_)
        assert by_name.get_params()["forgetting"] == words
    keys, wide = np.arange(60) % 3, pd.DataFrame({"x": X[:, 0]})
    groups = [
        GroupedRegression(forgetting=one).fit(X, y, groups=keys).coef_
        for one in ("exponential:0.9", Exponential(0.9))
    ]
    assert np.array_equal(groups[0], groups[1])
    means = [
        np.asarray(DiagonalLinearRegression(forgetting=one).fit(wide, y).predict(wide))
        for one in ("stabilized:0.9", Stabilized(0.9))
    ]
    assert np.array_equal(means[0], means[1])
    with pytest.raises(TypeError, match=r"exponential needs a discount, as in exponential:0\.99"):
        BayesianLinearRegression(forgetting="exponential").fit(X, y)
