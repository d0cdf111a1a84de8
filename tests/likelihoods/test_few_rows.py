"""What few rows say under likelihoods with parameters, however they come."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from posterity import BayesianGeneralizedLinear
from posterity.likelihoods import (
    Bernoulli,
    Gamma,
    Hurdle,
    InverseGaussian,
    LinearNegativeBinomial,
    LogLogistic,
    LogNormal,
    NegativeBinomial,
    Poisson,
    Truncated,
    Tweedie,
    Weibull,
    ZeroInflated,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
MEAN = np.exp(0.3 + 0.4 * X[:, 0])
LABELS, COUNTS = (RNG.random(40) < MEAN / (1.0 + MEAN)).astype(float), RNG.poisson(MEAN) * 1.0
AMOUNTS = RNG.gamma(3.0, MEAN / 3.0)
WITH_ZEROS = np.where(RNG.random(40) < 0.3, 0.0, AMOUNTS)


def learn(likelihood: Any, X: Any, y: Any) -> BayesianGeneralizedLinear:
    model = BayesianGeneralizedLinear(likelihood)
    for x, target in zip(X, y, strict=True):
        model.learn_one(x, target)
    return model


@pytest.mark.parametrize(
    ("likelihood", "y"),
    [
        (Bernoulli(), LABELS),
        (Poisson(), COUNTS),
        (NegativeBinomial(), COUNTS),
        (ZeroInflated(Poisson()), COUNTS),
        (Gamma(), AMOUNTS),
        (InverseGaussian(), AMOUNTS),
        (Weibull(), AMOUNTS),
        (Hurdle(Gamma()), WITH_ZEROS),
    ],
    ids=lambda given: "" if isinstance(given, np.ndarray) else str(given),
)
def test_evidence_of_rows_and_batches_is_that_of_a_fit(likelihood: Any, y: Any) -> None:
    whole = BayesianGeneralizedLinear(likelihood).fit(X, y)
    batches = BayesianGeneralizedLinear(likelihood)
    for some in (slice(0, 15), slice(15, 40)):
        batches.partial_fit(X[some], y[some])
    rows = learn(likelihood, X, y)
    assert rows.log_evidence_ == pytest.approx(whole.log_evidence_, abs=0.3)
    assert batches.log_evidence_ == pytest.approx(whole.log_evidence_, abs=0.3)


@pytest.mark.parametrize("likelihood", [Gamma(), InverseGaussian()], ids=str)
@pytest.mark.parametrize(("seed", "m"), [(0, 2), (2, 3)])
def test_one_huge_amount_among_few_is_not_followed_without_end(
    likelihood: Any, seed: int, m: int
) -> None:
    rng = np.random.default_rng(seed)
    features, y = rng.normal(size=(8, m)), np.exp(rng.normal(size=8))
    y[seed % 8] = 1e6
    for model in (
        BayesianGeneralizedLinear(likelihood).fit(features, y),
        learn(likelihood, features, y),
    ):
        assert np.abs(model.coef_).max() < 40.0
        assert np.max(model.posterior_.std()) < 40.0


def test_noise_is_found_again_after_a_first_row_that_is_far_off() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(300, 1))
    y = np.exp(0.3 + 0.4 * features[:, 0] + 0.5 * rng.normal(size=300))
    y[0] *= 1e9
    scales = [
        model.likelihood_parameters_["scale"]
        for model in (
            BayesianGeneralizedLinear(LogNormal()).fit(features, y),
            learn(LogNormal(), features, y),
        )
    ]
    whole, rows = (float(one.mean()) for one in scales)
    assert abs(rows - whole) < 2.0 * float(scales[0].std())


@pytest.mark.parametrize("likelihood", [Poisson(), LinearNegativeBinomial(2.0)], ids=str)
@pytest.mark.parametrize("eta", [30.0, 36.0, 60.0])
def test_quantiles_of_counts_of_large_rates_are_numbers(likelihood: Any, eta: float) -> None:
    known = Truncated(likelihood, low=1.0)
    for variance in (0.0, 0.01):
        predictive = known.predictive(np.array([eta]), np.array([variance]))
        low, middle, high = (float(predictive.ppf(q)[0]) for q in (0.05, 0.5, 0.95))
        assert low <= middle <= high
        assert np.log(middle) == pytest.approx(eta, abs=1e-3)


def test_expected_targets_are_finite() -> None:
    predictive = LogLogistic(0.8).predictive(np.zeros(1), np.array([0.1]))
    assert predictive.mean() == np.inf
    features, y = X[:4, :1] * np.arange(1.0, 6.0), AMOUNTS[:4]
    for likelihood, targets in ((LogLogistic(), y), (NegativeBinomial(), COUNTS[:4])):
        model = BayesianGeneralizedLinear(likelihood).fit(features, targets)
        far = 30.0 * features
        assert np.isfinite(model.predict(far)).all()
        assert np.isfinite(model.predict_one(far[0]))


def test_the_dispersion_behind_a_hurdle_is_not_found_where_nothing_has_digits() -> None:
    y = np.where(RNG.random(40) < 0.3, 0.0, 1.0 + COUNTS)
    model = BayesianGeneralizedLinear(Hurdle(NegativeBinomial())).fit(X, y)
    assert model.likelihood_parameters_["dispersion"].ppf(0.9) < 5.0


def test_hurdles_of_tweedie_amounts_are_learned_by_rows() -> None:
    model = learn(Hurdle(Tweedie(1.5)), X, WITH_ZEROS)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.predict(X)).all()


def test_a_row_that_leads_alone_does_not_move_the_parameter_far_away() -> None:
    """One of six rows lies far from the others: what these say there is rounding."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(6, 1))
    mean = np.exp(0.3 + 0.6 * X[:, 0])
    y = rng.gamma(2.0, mean / 2.0)
    model = BayesianGeneralizedLinear(Gamma()).fit(X, y)
    assert model.log_evidence_ == pytest.approx(learn(Gamma(), X, y).log_evidence_, abs=0.3)
    low, high = model.predict_interval(X[:1])[0]
    assert 0.2 < low < y[0] < high < 4.0
