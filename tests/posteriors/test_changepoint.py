"""Changepoints: exact where that can be enumerated, and found where they are."""

from __future__ import annotations

import copy
import math
import pickle
import re
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal, multivariate_t

from posterity import BayesianLinearRegression
from posterity.forgetting import Changepoint
from posterity.noise import KnownNoise, LearnedNoise
from posterity.posteriors._row_evidence import compute_evidence_gain
from posterity.posteriors.banked_runs import (
    JUDGING_ROWS,
    OUTLIER_PROBABILITY,
    OUTLIER_SCALE,
    ROWS_BETWEEN_LOOKS,
    BankedRuns,
)
from posterity.posteriors.ensemble import update_probabilities
from posterity.posteriors.gaussian import LinearPosterior
from posterity.posteriors.runs import Change, RunHistory, select_runs
from posterity.priors import GaussianPrior

KEEP_ALL: dict[str, Any] = {"max_runs": 100, "smallest_probability": 0.0}
PRIOR_PRECISION = 0.7


def posterior(strategy: Changepoint, noise: KnownNoise | LearnedNoise, n_features: int = 2) -> Any:
    """A posterior that has seen nothing, whose prior is proper."""
    prior = GaussianPrior(0.3, PRIOR_PRECISION)
    fresh = LinearPosterior.before_data(prior, noise, n_features, intercept=False)
    return strategy.begin(fresh)


def log_evidence(X: np.ndarray, y: np.ndarray, noise: KnownNoise | LearnedNoise) -> float:
    """log p(y) of one segment, by the joint distribution of its targets."""
    mean = X @ np.full(X.shape[1], 0.3)
    if isinstance(noise, KnownNoise):
        cov = np.eye(len(X)) / noise.known_precision + X @ X.T / PRIOR_PRECISION
        return float(multivariate_normal(mean, cov).logpdf(y))
    shape = (noise.rate / noise.shape) * (np.eye(len(X)) + X @ X.T / PRIOR_PRECISION)
    return float(multivariate_t(mean, shape, df=2.0 * noise.shape).logpdf(y))


def enumerate_segmentations(
    X: np.ndarray, y: np.ndarray, hazard: np.ndarray, noise: KnownNoise | LearnedNoise
) -> tuple[float, np.ndarray, np.ndarray]:
    """Log evidence, p(last run began at each row), p(change before each row), by brute force."""
    n = len(X)
    segments = {
        (i, j): log_evidence(X[i:j], y[i:j], noise) for i in range(n) for j in range(i + 1, n + 1)
    }
    log_joint, changes = [], []
    for changed in product([False, True], repeat=n - 1):
        edges = [0, *(1 + np.flatnonzero(changed)).tolist(), n]
        chance = np.where(changed, hazard[1:], 1.0 - hazard[1:])
        log_joint.append(
            float(np.log(chance).sum()) + sum(segments[edge] for edge in pairwise(edges))
        )
        changes.append([False, *changed])
    joint = np.array(log_joint)
    evidence = float(np.logaddexp.reduce(joint))
    weights, indicators = np.exp(joint - evidence), np.array(changes)
    last = np.where(indicators.any(axis=1), n - 1 - np.argmax(indicators[:, ::-1], axis=1), 0)
    return evidence, np.bincount(last, weights, minlength=n), weights @ indicators


def twelve_rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(12, 2))
    y = np.where(np.arange(12) < 7, 2.0, -2.0) * X[:, 0] + 0.7 * rng.normal(size=12)
    return X, y


@pytest.mark.parametrize("noise", [KnownNoise(2.0), LearnedNoise(1.5, 0.8)])
@pytest.mark.parametrize("elapsed", [np.ones(12), np.linspace(0.5, 9.0, 12)])
def test_posterior_equals_enumeration_of_all_segmentations(noise: Any, elapsed: Any) -> None:
    X, y = twelve_rows()
    found = posterior(Changepoint(hazard=0.05, **KEEP_ALL), noise)
    predictive = found.predict_then_learn(X, y[:, None], None, elapsed.copy())
    evidence, last, changed = enumerate_segmentations(X, y, 1.0 - 0.95**elapsed, noise)
    assert found.log_evidence == pytest.approx(evidence, abs=1e-9)
    assert predictive.logpdf(y).sum() == pytest.approx(evidence, abs=1e-9)
    runs = found.hypotheses
    assert runs.size == 12
    assert runs.first[:12].tolist() == list(range(12))
    assert np.allclose(runs.probability[:12], last, rtol=0.0, atol=1e-9)
    assert np.allclose(found.change_probability, changed, rtol=0.0, atol=1e-9)


def test_predictions_average_over_the_runs_and_a_change_to_come() -> None:
    X, y = twelve_rows()
    noise = LearnedNoise(1.5, 0.8)
    found = posterior(Changepoint(hazard=0.05, **KEEP_ALL), noise)
    found.append(X[:-1], y[:-1, None], None, np.ones(11))
    before = found.log_evidence
    ahead = found.predictive(X[-1:])
    assert found.predict_mean(X[-1:]) == pytest.approx(ahead.mean(), rel=1e-12)
    found.append(X[-1:], y[-1:, None], None, np.ones(1))
    assert ahead.logpdf(y[-1:])[0] == pytest.approx(found.log_evidence - before, abs=1e-9)


def test_weight_two_is_the_row_twice_within_a_run() -> None:
    """Time that does not pass brings no change: rows at one time are of one run."""
    X, y = twelve_rows()
    X, y = X[:6], y[:6]
    strategy, noise = Changepoint(hazard=0.05, **KEEP_ALL), LearnedNoise(1.5, 0.8)
    once, twice = posterior(strategy, noise), posterior(strategy, noise)
    once.append(X, y[:, None], np.full(6, 2.0), np.ones(6))
    elapsed = np.tile([1.0, 0.0], 6)
    twice.append(np.repeat(X, 2, axis=0), np.repeat(y, 2)[:, None], None, elapsed)
    assert twice.log_evidence == pytest.approx(once.log_evidence, abs=1e-9)
    assert twice.hypotheses.size == once.hypotheses.size
    assert np.allclose(twice.hypotheses.probability, once.hypotheses.probability, atol=1e-9)
    assert (twice.hypotheses.first == 2 * once.hypotheses.first).all()
    assert twice.n_observations == once.n_observations == 12.0
    assert twice.n_effective == pytest.approx(once.n_effective)


@pytest.mark.parametrize("noise", [KnownNoise(2.0), LearnedNoise(1.5, 0.8)])
def test_one_run_is_the_plain_posterior(noise: Any) -> None:
    """Without time passing there is no change: fractional weights too add up to the evidence."""
    X, y = twelve_rows()
    weights = np.linspace(0.0, 3.0, 12)
    runs = posterior(Changepoint(), noise)
    plain = LinearPosterior.before_data(runs.belief, noise, 2, intercept=False)
    runs.append(X, y[:, None], weights, np.zeros(12))
    plain.append(X, y[:, None], weights, np.zeros(12))
    assert runs.log_evidence == pytest.approx(plain.log_evidence, abs=1e-10)
    assert runs.hypotheses.size == 1
    assert np.array_equal(runs.change_probability, np.zeros(12))
    assert runs.n_effective == pytest.approx(weights.sum())


# ---- through the estimator, with its default settings --------------------------------------------


def stream(kind: str, seed: int, n: int = 500, at: int = 300) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X, noise, after = rng.normal(size=(n, 2)), rng.normal(size=n), np.arange(n) >= at
    slope, level, sd = 1.0 * np.ones(n), np.zeros(n), np.ones(n)
    if kind == "slope":
        slope[after] = -1.0
    elif kind == "level":
        level[after] = 3.0
    elif kind == "louder":
        sd[after] = 4.0
    elif kind == "quieter":
        sd[~after] = 4.0
    return X, 2.0 + level + slope * X[:, 0] - 2.0 * X[:, 1] + sd * noise


# What of the prior is given makes triangles in one bank of all runs; "auto" is in test_regimes.
FLAT: dict[str, Any] = {"prior_precision": 0.0}


def fitted(X: np.ndarray, y: np.ndarray, **settings: Any) -> BayesianLinearRegression:
    return BayesianLinearRegression(forgetting=Changepoint(), **(FLAT | settings)).fit(X, y)


@pytest.mark.parametrize("kind", ["slope", "level", "louder", "quieter"])
def test_a_change_is_found_where_it_is(kind: str) -> None:
    found, near, early = [], [], []
    for seed in range(20):
        model = fitted(*stream(kind, seed))
        assert np.abs(model.changes_ - 300).min() <= 10
        found.append(len(model.changes_))
        near.append(model.change_probability_[285:316].sum())
        early.append(model.change_probability_[:280].sum())
        assert model.n_effective_ == pytest.approx(200.0, abs=30.0)
    assert sum(found) <= 22  # 20, and a few of the rows after each change are taken for another
    assert np.mean(near) == pytest.approx(1.0, abs=0.15)
    assert max(early) < 0.2


@pytest.mark.parametrize(
    "settings",
    [
        {"prior_precision": 1.0},
        {"prior_precision": 0.0},
        {"prior_precision": 1.0, "noise_precision": 1.0},
        {"prior_precision": 1.0, "noise_prior": (2.0, 2.0)},
        {"fit_intercept": False, "prior_precision": 0.1},
    ],
)
def test_nothing_is_found_where_nothing_changes(settings: dict[str, Any]) -> None:
    alarms, dearer = [], []
    for seed in range(20):
        X, y = stream("none", seed)
        if not settings.get("fit_intercept", True):
            y = y - 2.0
        model = BayesianLinearRegression(forgetting=Changepoint(), **settings)
        predictive = model.predict_then_learn(X, y)
        alarms.append(len(model.changes_))
        plain = BayesianLinearRegression(**settings).fit(X, y)
        dearer.append(plain.log_evidence_ - predictive.logpdf(y).sum())
    assert sum(alarms) <= 2  # in 10,000 rows
    # Calm costs what the possibility of a change is worth, and little more.
    assert np.mean(dearer) == pytest.approx(-500 * math.log1p(-1.0 / 250.0), abs=1.5)


def test_every_change_of_many_is_found() -> None:
    rng = np.random.default_rng(3)
    X, t = rng.normal(size=(1000, 1)), np.arange(1000)
    y = np.where((t // 100) % 2 == 0, 1.0, -1.0) * X[:, 0] + 0.2 * rng.normal(size=1000)
    found = fitted(X, y).changes_
    assert len(found) == 9
    assert np.abs(found - np.arange(100, 1000, 100)).max() <= 3


@pytest.mark.parametrize("slope", [0.0, 2.0])
@pytest.mark.parametrize("settings", [FLAT, {}, {"prior_precision": 1.0, "noise_precision": 1.0}])
def test_an_outlier_is_no_change(slope: float, settings: dict[str, Any]) -> None:
    found, widths = [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, y = stream("none", seed)
        y += slope * X[:, 0] * (np.arange(500) >= 300)
        clean = fitted(X, y, **settings)
        y[rng.choice(500, 5, replace=False)] += 8.0
        model = fitted(X, y, **settings)
        found.append(len(model.changes_) - len(clean.changes_))
        widths.append(model.posterior_.std() / clean.posterior_.std())
    assert sum(found) <= 3  # two outliers among few rows are a change for a while
    assert np.median(widths) < 1.2


def test_an_outlier_counts_for_nothing_in_the_run_that_goes_on() -> None:
    X, y = stream("none", 0)
    y[400] += 50.0
    model = fitted(X, y)
    without = fitted(np.delete(X, 400, axis=0), np.delete(y, 400))
    assert model.coef_ == pytest.approx(without.coef_, abs=1e-3)
    runs, weights = model._posterior.hypotheses.ahead()
    assert runs[int(np.argmax(weights))].n_effective == 499.0
    assert model.n_observations_ == 500.0
    assert model.change_probability_[395:405].max() < 0.01


def test_pruning_changes_next_to_nothing() -> None:
    X, y = stream("level", 2, n=400)
    pruned = fitted(X, y)
    exact = BayesianLinearRegression(
        forgetting=Changepoint(max_runs=500, smallest_probability=0.0), **FLAT
    ).fit(X, y)
    assert exact.log_evidence_ == pytest.approx(pruned.log_evidence_, abs=0.01)
    assert np.allclose(exact.change_probability_, pruned.change_probability_, atol=1e-3)
    assert np.allclose(exact.coef_, pruned.coef_, atol=1e-4)


@pytest.mark.parametrize(
    "settings", [FLAT, FLAT | {"noise_precision": 1.0}, FLAT | {"noise_prior": (2.0, 1.0)}]
)
def test_row_by_row_is_the_same_as_in_one_call(settings: dict[str, Any]) -> None:
    X, y = stream("slope", 1, n=160, at=100)
    weights = np.random.default_rng(0).choice([0.5, 1.0, 2.0], size=len(X))
    whole, rows = (
        BayesianLinearRegression(forgetting=Changepoint(max_runs=20), **settings) for _ in range(2)
    )
    predictive = whole.predict_then_learn(X, y, weights)
    for i in range(len(X)):
        if i > 1:
            assert rows.predict_one(X[i]) == pytest.approx(
                predictive.mean()[i], rel=1e-9, abs=1e-12
            )
        rows.learn_one(X[i], y[i], weights[i])
    assert np.allclose(whole.coef_, rows.coef_, rtol=1e-10)
    assert whole.log_evidence_ == pytest.approx(rows.log_evidence_, rel=1e-10)
    assert whole.n_effective_ == pytest.approx(rows.n_effective_, rel=1e-10)
    assert whole.noise_precision_ == pytest.approx(rows.noise_precision_, rel=1e-10)
    assert whole.changes_.tolist() == rows.changes_.tolist()
    assert len(rows.change_probability_) == 1
    assert rows.change_probability_[0] == pytest.approx(whole.change_probability_[-1], rel=1e-9)


def test_a_row_of_weight_zero_is_no_row() -> None:
    X, y = stream("slope", 1, n=120, at=80)
    weights = np.ones(120)
    weights[[0, 1, 50, 80]] = 0.0
    model = BayesianLinearRegression(forgetting=Changepoint(), **FLAT).fit(X, y, weights)
    without = fitted(X[weights > 0.0], y[weights > 0.0])
    assert model.log_evidence_ == pytest.approx(without.log_evidence_, abs=0.01)
    assert np.allclose(model.coef_, without.coef_, atol=1e-3)
    assert model.n_observations_ == 116.0
    assert (model.change_probability_[weights == 0.0] == 0.0).all()


def test_times_without_rows_make_a_change_likelier() -> None:
    X, y = stream("slope", 3, n=120, at=60)
    times = np.arange(120.0)
    times[60:] += 1000.0
    strategy = Changepoint(hazard=0.001)
    model = BayesianLinearRegression(forgetting=strategy, **FLAT).fit(X, y, times=times)
    evenly = BayesianLinearRegression(forgetting=strategy, **FLAT).fit(X, y)
    assert model.changes_.tolist() == [60]
    assert model.change_probability_[60] > 0.9
    assert model.change_probability_[60] > evenly.change_probability_[60]


def test_units_do_not_matter() -> None:
    X, y = stream("level", 4)
    plain, other = fitted(X, y, prior_precision=0.0), fitted(3.0 * X, 1e6 * y, prior_precision=0.0)
    assert plain.changes_.tolist() == other.changes_.tolist()
    assert np.allclose(plain.change_probability_, other.change_probability_, atol=1e-7)


def test_joint_distribution_and_counts() -> None:
    X, y = stream("slope", 0)
    model = fitted(X, y)
    assert model.n_observations_ == 500.0
    assert model.posterior_.mean[1:] == pytest.approx(model.coef_)
    assert model.noise_precision_ == pytest.approx(1.0, abs=0.2)
    assert np.isfinite(model.predict(X[:3], return_std=True)[1]).all()
    low, high = model.predict_interval(X[300:], level=0.9).T
    assert np.mean((y[300:] >= low) & (y[300:] <= high)) == pytest.approx(0.9, abs=0.06)


def test_exact_data_and_point_masses_do_no_harm() -> None:
    X = np.random.default_rng(0).normal(size=(200, 1))
    for y in (np.zeros(200), np.where(np.arange(200) < 100, 5.0, 7.0), 2.0 * X[:, 0]):
        model = BayesianLinearRegression(forgetting=Changepoint())
        predictive = model.predict_then_learn(X, y)
        assert np.isfinite(predictive.mean()).all()
        assert np.isfinite(model.change_probability_).all()
        assert np.isfinite(model.log_evidence_)
        assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hazard": 0.0}, "hazard is 0.0: it must lie between 0 and 1, as in 1/250"),
        ({"hazard": 1.0}, "hazard is 1.0: it must lie between 0 and 1"),
        ({"hazard": float("nan")}, "hazard is nan: it must lie between 0 and 1"),
        ({"max_runs": 1}, "max_runs is 1: it must be a whole number, at least 2"),
        ({"max_runs": 2.5}, "max_runs is 2.5: it must be a whole number"),
        ({"smallest_probability": 1.0}, "smallest_probability is 1.0: it must be at least 0 and"),
        ({"smallest_probability": -0.1}, "smallest_probability is -0.1: it must be at least 0"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Changepoint(**settings)


def test_unlearn_and_merge_are_refused() -> None:
    X, y = stream("none", 0, n=30)
    model, other = fitted(X, y), fitted(X, y)
    with pytest.raises(ValueError, match="can't unlearn rows under Changepoint: where changes"):
        model.unlearn(X[:1], y[:1])
    with pytest.raises(ValueError, match="can't merge models under Changepoint: changes lie"):
        model.merge(other)


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e160])
def test_a_bad_row_leaves_the_model_as_it_was(bad: float) -> None:
    X, y = stream("slope", 0, n=60, at=40)
    model, twin = fitted(X, y), fitted(X, y)
    more = X[:5].copy()
    more[3, 1] = bad
    for learn in (model.partial_fit, model.predict_then_learn):
        with pytest.raises(ValueError, match=r"row 3, column 1"):
            learn(more, y[:5])
    assert model.log_evidence_ == twin.log_evidence_
    assert np.array_equal(model.coef_, twin.coef_)
    assert np.array_equal(model.change_probability_, twin.change_probability_)
    model.partial_fit(X, y)
    twin.partial_fit(X, y)
    assert model.log_evidence_ == twin.log_evidence_


def test_without_the_strategy_there_are_no_changes_to_report() -> None:
    X, y = stream("none", 0, n=10)
    model = BayesianLinearRegression().fit(X, y)
    for name in ("change_probability_", "changes_"):
        assert not hasattr(model, name)
        with pytest.raises(AttributeError, match=f"{name}.*forgetting=Changepoint"):
            getattr(model, name)


def learn_plainly(
    self: BankedRuns,
    X: np.ndarray,
    y: np.ndarray,
    weights: np.ndarray | None,
    elapsed: np.ndarray,
    *,
    with_predictions: bool,
) -> RunHistory:
    """What compiled code does, a row at a time."""
    history = RunHistory(len(X), len(self.first), with_predictions=with_predictions)
    hazards = self.strategy.hazards(elapsed)
    for i in range(len(X)):
        row, weight = slice(i, i + 1), 1.0 if weights is None else float(weights[i])
        with np.errstate(all="ignore"):
            start = self.start() if hazards[i] > 0.0 and self.seen > 0.0 else None
        history.record(i, self, 0.0 if start is None else hazards[i])
        k = self.size
        if start is not None:
            self.changes = [*self.changes, Change(self.row, self.last_change)]
            self.bank.push(start.triangle)
            self.first[k], self.residual_df[k], self.learned[k] = self.row, start.residual_df, 0.0
            self.probability[:k] *= 1.0 - hazards[i]
            self.probability[k] = hazards[i]
            k += 1
        some = None if weights is None else weights[row]
        before = self.bank.triangles[1:].copy()
        error, leverage, residual = self.bank.learn(
            X[row], y[row], some, intercept=self.fresh.intercept
        )
        known = error[1:, 0], leverage[1:], self.residual_df[:k].copy(), residual[1:, 0]
        if with_predictions:
            history.error[i, :k], history.leverage[i, :k] = known[:2]
            history.residual_df[i, :k], history.residual[i, :k] = known[2:]
        gain = compute_evidence_gain(self.fresh.noise, np.full(k, weight), *known)
        given, shape, rate = self.fresh.noise.parameters
        with np.errstate(all="ignore"):
            learned = (known[3] + 2.0 * rate) / (known[2] + 2.0 * shape)
            variance = (1.0 / given if given else learned) * (1.0 + known[1])
            scale = np.fmax(np.abs(known[0]) / np.sqrt(variance), OUTLIER_SCALE)
        away = compute_evidence_gain(
            self.fresh.noise, np.full(k, weight), known[0] / scale, *known[1:]
        )
        with np.errstate(invalid="ignore"):
            away += math.log(OUTLIER_PROBABILITY) - weight * np.log(scale)
        outlier = (self.learned[:k] >= JUDGING_ROWS) & np.isfinite(leverage[1:]) & (away > gain)
        with np.errstate(all="ignore"):
            _, added = update_probabilities(self.probability[:k], gain)
            gain = np.where(outlier, away, gain)
            self.probability[:k], _ = update_probabilities(self.probability[:k], gain)
        self.bank.triangles[1:][outlier] = before[outlier]
        self.log_evidence += added
        self.residual_df[:k] += np.where(outlier, 0.0, weight)
        self.learned[:k] += np.where(outlier, 0.0, weight)
        self.seen += weight
        self.row += 1
        rules = self.strategy.smallest_probability, self.strategy.max_runs
        looks = k > self.strategy.max_runs or self.row % ROWS_BETWEEN_LOOKS == 0
        kept = select_runs(self.probability[:k], *rules) if looks else None
        if kept is not None:
            self.bank.keep(np.concatenate([[True], kept]))
            left = self.size
            for values in (self.first, self.probability, self.residual_df, self.learned):
                values[:left] = values[:k][kept]
            self.probability[:left] /= self.probability[:left].sum()
            self.changes = [one for one, stays in zip(self.changes, kept, strict=True) if stays]
    self.found = history.find_changes(self)
    return history


@pytest.mark.parametrize(
    "settings",
    [
        {"prior_precision": 1.0},
        {},
        {"prior_precision": 1.0, "noise_precision": 1.0},
        {"prior_precision": 1.0, "noise_prior": (2.0, 1.0)},
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("exact", [False, True])
def test_rows_in_the_kernel_are_learned_as_one_by_one_outside(
    settings: dict[str, Any], weighted: bool, exact: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(300, 2))
    y = X[:, 0] * np.where(np.arange(300) < 150, 1.0, -1.0) + (not exact) * rng.normal(size=300)
    weights = rng.choice([0.5, 1.0, 2.0], size=300) if weighted else None
    found = []
    for plainly in (False, True):
        if plainly:
            monkeypatch.setattr(BankedRuns, "_learn", learn_plainly)
        model = BayesianLinearRegression(forgetting=Changepoint(max_runs=20), **settings)
        predictive = [
            model.predict_then_learn(
                X[part], y[part], sample_weight=None if weights is None else weights[part]
            )
            for part in (slice(0, 100), slice(100, 300))
        ]
        found.append((model, predictive))
    (ours, predictive), (theirs, expected) = found
    for mine, other in zip(predictive, expected, strict=True):
        assert mine.mean() == pytest.approx(other.mean(), abs=1e-8)
        assert mine.std() == pytest.approx(other.std(), abs=1e-8, nan_ok=True)
    assert ours.changes_.tolist() == theirs.changes_.tolist()
    assert ours.change_probability_ == pytest.approx(theirs.change_probability_, abs=1e-8)
    assert ours.coef_ == pytest.approx(theirs.coef_, abs=1e-9)
    assert ours.log_evidence_ == pytest.approx(theirs.log_evidence_, rel=1e-9)
    assert ours.n_effective_ == pytest.approx(theirs.n_effective_, rel=1e-8)
    assert ours.posterior_.weights == pytest.approx(theirs.posterior_.weights, abs=1e-8)


@pytest.mark.parametrize("settings", [{"prior_precision": 1.0}, {}, {"noise_precision": 1.0}])
@pytest.mark.parametrize("intercept", [False, True])
def test_single_rows_are_one_call(settings: dict[str, Any], intercept: bool) -> None:
    rng = np.random.default_rng(8)
    X = rng.normal(size=(250, 2))
    y = X[:, 0] * np.where(np.arange(250) < 120, 2.0, -2.0) + rng.normal(size=250)
    weights = rng.choice([0.0, 0.5, 1.0, 2.0], p=[0.05, 0.25, 0.5, 0.2], size=250)
    lean, whole, rows = (
        BayesianLinearRegression(
            forgetting=Changepoint(max_runs=15), fit_intercept=intercept, **settings
        )
        for _ in range(3)
    )
    predictive = []
    for i, (x, target, weight) in enumerate(zip(X, y, weights, strict=True)):
        predictive.append(lean.predict_one(x) if i else 0.0)
        lean.learn_one(x, float(target), float(weight))
        rows.partial_fit(x[None], [target], sample_weight=[weight])
        assert lean.change_probability_ == pytest.approx(rows.change_probability_, abs=1e-9)
        if i % 60 == 17:  # other ways of learning in between
            assert lean.coef_ == pytest.approx(rows.coef_, abs=1e-9)
            lean = pickle.loads(pickle.dumps(lean))
        if i == 100:
            lean.partial_fit(X[:3], y[:3])
            rows.partial_fit(X[:3], y[:3])
    assert "_fast_learn_one" in lean.__dict__
    assert lean.changes_.tolist() == rows.changes_.tolist()
    assert lean.posterior_.mean == pytest.approx(rows.posterior_.mean, abs=1e-9)
    assert lean.log_evidence_ == pytest.approx(rows.log_evidence_, rel=1e-9)
    assert lean.n_effective_ == pytest.approx(rows.n_effective_, rel=1e-9)
    assert lean.n_observations_ == pytest.approx(rows.n_observations_)
    whole.fit(X[:101], y[:101], sample_weight=weights[:101])
    ahead = whole.predict_then_learn(X[101:], y[101:], sample_weight=weights[101:])
    assert len(ahead) == 149
    x = rng.normal(size=2)
    assert lean.predict_one(x) == pytest.approx(lean.predict(x[None])[0], abs=1e-9)


def test_single_rows_that_can_not_be_learned_change_nothing() -> None:
    rng = np.random.default_rng(9)
    X = rng.normal(size=(40, 2))
    model = BayesianLinearRegression(forgetting=Changepoint()).fit(X, X[:, 0] + X[:, 1] ** 2)
    model.learn_one(X[0], 1.0)
    before = pickle.dumps(model)
    for x, y, weight in (
        ([math.nan, 1.0], 1.0, 1.0),
        ([1.0, 1.0], math.inf, 1.0),
        ([1e200, 1.0], 1.0, 1.0),
        ([1.0], 1.0, 1.0),
        ([1.0, 1.0], 1.0, -1.0),
    ):
        with pytest.raises((ValueError, FloatingPointError)):
            model.learn_one(x, y, weight)
    assert pickle.dumps(model) == before
    twin = copy.deepcopy(model)
    model.learn_one(X[1], 5.0)
    assert twin.n_observations_ == model.n_observations_ - 1.0
    twin.learn_one(X[1], 5.0)
    assert twin.coef_ == pytest.approx(model.coef_, abs=1e-12)


def test_targets_that_are_fitted_without_error_go_one_by_one() -> None:
    X = np.random.default_rng(10).normal(size=(30, 2))
    lean, whole = (BayesianLinearRegression(forgetting=Changepoint()) for _ in range(2))
    whole.fit(X, X @ [1.0, 2.0])
    for x in X:
        lean.learn_one(x, float(x @ [1.0, 2.0]))
    assert lean.coef_ == pytest.approx(whole.coef_, abs=1e-8)
    assert lean.n_observations_ == 30.0
