"""Change points under any posterior: as the bank of runs where that serves, and found anywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from posterity import (
    BayesianGeneralizedLinear,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegression,
    BayesianPoissonRegression,
    BayesianQuantileRegression,
    BayesianRobustRegression,
)
from posterity.evidence import Maximized
from posterity.files import dumps, loads
from posterity.forgetting import Changepoint
from posterity.likelihoods import Gaussian, StudentT
from posterity.noise import KnownNoise, LearnedNoise, Noise
from posterity.posteriors import LinearPosterior, MixedPosterior
from posterity.posteriors.banked_runs import BankedRuns
from posterity.posteriors.regimes import Regimes
from posterity.priors import GaussianPrior

N, AT = 90, 50
RNG = np.random.default_rng(4)
X = RNG.normal(size=(N, 2))
SIGN = np.where(np.arange(N) < AT, 1.0, -1.0)
Y = 1.0 + 3.0 * SIGN * X[:, 0] + 0.5 * RNG.normal(size=N)
LABELS = np.where(4.0 * SIGN * X[:, 0] + RNG.logistic(size=N) > 0.0, "yes", "no")
COUNTS = RNG.poisson(np.exp(1.0 + 1.2 * SIGN * X[:, 0])).astype(float)
FEW_RUNS = Changepoint(hazard=0.01, max_runs=8)


def linear() -> BayesianLinearRegression:
    """With a prior that each run learns."""
    return BayesianLinearRegression(prior_precision=Maximized(), forgetting=FEW_RUNS)


MODELS: dict[str, tuple[Callable[[], Any], Any]] = {
    "linear, its prior learned": (
        lambda: BayesianLinearRegression(prior_precision=Maximized(), forgetting=FEW_RUNS),
        Y,
    ),
    "logistic": (lambda: BayesianLogisticRegression(forgetting=FEW_RUNS), LABELS),
    "logistic, a given prior": (
        lambda: BayesianLogisticRegression(forgetting=FEW_RUNS, prior_precision=0.5),
        LABELS,
    ),
    "poisson": (lambda: BayesianPoissonRegression(forgetting=FEW_RUNS), COUNTS),
    "a likelihood": (
        lambda: BayesianGeneralizedLinear(Gaussian(4.0), forgetting=FEW_RUNS),
        Y,
    ),
}
SLOW: dict[str, tuple[Callable[[], Any], Any]] = {
    "negative binomial": (lambda: BayesianNegativeBinomialRegression(forgetting=FEW_RUNS), COUNTS),
    "robust": (lambda: BayesianRobustRegression(forgetting=FEW_RUNS, prior_precision=0.1), Y),
    "laplace": (
        lambda: BayesianRobustRegression(
            forgetting=FEW_RUNS, prior_precision=0.1, likelihood="laplace"
        ),
        Y,
    ),
    "a likelihood with heavy tails": (
        lambda: BayesianGeneralizedLinear(
            StudentT(4.0, 0.5), forgetting=FEW_RUNS, prior_precision=1.0
        ),
        Y,
    ),
    "quantile": (lambda: BayesianQuantileRegression(forgetting=FEW_RUNS, prior_precision=0.1), Y),
}


def both(noise: Noise, strategy: Changepoint) -> tuple[MixedPosterior, MixedPosterior]:
    fresh = LinearPosterior.before_data(GaussianPrior(0.3, 0.7), noise, 2, intercept=False)
    return (
        MixedPosterior.of(BankedRuns.before_data(fresh, strategy)),
        MixedPosterior.of(Regimes.before_data(fresh, strategy)),
    )


@pytest.mark.parametrize("noise", [KnownNoise(2.0), LearnedNoise(1.5, 0.8)])
@pytest.mark.parametrize("pieces", [1, 7, N])
def test_it_is_the_bank_of_runs(noise: Noise, pieces: int) -> None:
    """With a proper prior nothing stands in for anything, and without pruning both are exact."""
    everything = Changepoint(hazard=0.02, max_runs=200, smallest_probability=0.0)
    elapsed = np.tile([1.0, 2.5, 0.0], N // 3)
    bank, general = both(noise, everything)
    y = Y[:, None] - 1.0
    fast = bank.predict_then_learn(X, y, None, elapsed)
    for part in np.array_split(np.arange(N), pieces):
        slow = general.predict_then_learn(X[part], y[part], None, elapsed[part])
        expected = fast[part]
        assert np.allclose(slow.mean(), expected.mean(), atol=1e-8)
        assert np.allclose(slow.std(), expected.std(), rtol=1e-8)
        assert np.allclose(slow.logpdf(y[part, 0]), expected.logpdf(y[part, 0]), atol=1e-8)
    assert general.log_evidence == pytest.approx(bank.log_evidence, abs=1e-8)
    k, runs, banked = general.hypotheses.size, general.hypotheses, bank.hypotheses
    assert banked.size == k
    assert runs.first.tolist() == banked.first[:k].tolist()
    assert np.allclose(runs.probability, banked.probability[:k], atol=1e-9)
    assert general.changes.tolist() == bank.changes.tolist()
    assert np.allclose(general.coefficients(), bank.coefficients(), atol=1e-8)
    assert general.n_effective == pytest.approx(bank.n_effective)
    assert general.noise_precision == pytest.approx(bank.noise_precision)
    ahead = general.predictive(X[:5]), bank.predictive(X[:5])
    assert np.allclose(ahead[0].std(), ahead[1].std(), rtol=1e-8)
    assert np.allclose(general.predict_mean(X[:5]), ahead[1].mean(), atol=1e-8)
    if pieces == 1:
        assert np.allclose(general.change_probability, bank.change_probability, atol=1e-8)


def check_finds(make: Callable[[], Any], y: Any) -> None:
    whole, rows = make(), make()
    predictive = whole.predict_then_learn(X, y)
    for i in range(N):
        rows.learn_one(X[i], y[i])
    assert np.abs(whole.changes_ - AT).min() <= 4
    assert whole.change_probability_[AT - 4 : AT + 5].sum() > 0.8
    assert np.asarray(
        predictive.logpmf(y) if hasattr(predictive, "logpmf") else predictive.logpdf(y)
    ).sum() == (pytest.approx(whole.log_evidence_, rel=1e-9))
    assert whole.n_effective_ == pytest.approx(N - AT, abs=10.0)
    assert np.ravel(whole.coef_)[0] < -0.5
    assert np.isfinite(whole.posterior_.std()).all()
    assert rows.changes_.tolist() == whole.changes_.tolist()
    assert rows.log_evidence_ == pytest.approx(whole.log_evidence_, rel=1e-9)
    assert np.allclose(rows.coef_, whole.coef_, rtol=1e-9)
    # Reads change nothing, and what is saved goes on as it would have.
    content = dumps(whole)
    ahead = whole.predict(X[:5]), whole.predict_interval(X[:5]), whole.predict_one(X[0])
    assert whole.predict(X[:1])[0] == pytest.approx(ahead[2]) if y is not LABELS else True
    assert np.isfinite(ahead[1]).all()
    assert dumps(whole) == content
    loaded = loads(content)
    assert dumps(loaded) == content
    for one in (whole, loaded):
        one.partial_fit(X[:20], y[:20])
    assert dumps(loaded) == dumps(whole)


@pytest.mark.parametrize("name", MODELS)
def test_a_change_is_found(name: str) -> None:
    check_finds(*MODELS[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_a_change_is_found_by_the_dear_ones(name: str) -> None:
    check_finds(*SLOW[name])


def test_nothing_is_found_where_nothing_changes() -> None:
    alarms = 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(150, 2))
        model = BayesianLinearRegression(forgetting=Changepoint(max_runs=8))
        alarms += len(model.fit(X, X[:, 0] + rng.normal(size=150)).changes_)
        labels = BayesianLogisticRegression(forgetting=Changepoint(max_runs=8))
        alarms += len(labels.fit(X, X[:, 0] + rng.logistic(size=150) > 0.0).changes_)
    assert alarms == 0


def test_flat_runs_predict_as_all_targets_so_far() -> None:
    """Units do not matter, and no improper density of 1 wins."""
    plain, other = (
        BayesianLinearRegression(prior_precision=Maximized(), forgetting=FEW_RUNS).fit(
            X[:60], unit * Y[:60]
        )
        for unit in (1.0, 1e6)
    )
    assert plain.changes_.tolist() == other.changes_.tolist()
    assert np.allclose(plain.change_probability_, other.change_probability_, atol=1e-6)
    assert np.isfinite(plain.predict_distribution(X[:3]).std()).all()


def test_what_rests_on_the_order_is_refused() -> None:
    model = BayesianLogisticRegression(forgetting=FEW_RUNS).fit(X[:20], LABELS[:20])
    with pytest.raises(ValueError, match="can't unlearn rows under Changepoint: where changes"):
        model.unlearn(X[:1], LABELS[:1])
    with pytest.raises(ValueError, match="can't merge models under Changepoint: changes lie"):
        model.merge(BayesianLogisticRegression(forgetting=FEW_RUNS).fit(X[:20], LABELS[:20]))


def test_a_bad_row_leaves_the_model_as_it_was() -> None:
    model = BayesianPoissonRegression(forgetting=FEW_RUNS).fit(X[:20], COUNTS[:20])
    before = dumps(model)
    bad = COUNTS[:20].copy()
    bad[17] = -1.0
    with pytest.raises(ValueError, match="y in row 17 is -1"):
        model.partial_fit(X[:20], bad)
    assert dumps(model) == before
