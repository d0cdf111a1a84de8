"""The power of Tweedie, learned beside the dispersion."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from posterity import BayesianGeneralizedLinear
from posterity.files import dumps, loads
from posterity.likelihoods import Tweedie

LEARNED = Tweedie(None)


def make_rows(n=400, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    amounts = Tweedie(1.6, 2.0).distribution(1.0 + X @ [0.5, -0.3])
    return X, amounts.rvs(random_state=rng)


def test_power_dispersion_and_effects_are_those_of_mgcv():
    # gam(y ~ x1 + x2, family = tw(), method = "ML") of these rows, mgcv 1.8.
    X, y = make_rows()
    model = BayesianGeneralizedLinear(LEARNED, prior_precision=0.0).fit(X, y)
    power, dispersion = (model.likelihood_parameters_[name] for name in ("power", "dispersion"))
    assert_allclose(power.mean(), 1.630041, atol=0.1 * power.std())
    assert_allclose(dispersion.mean(), 2.030083, atol=0.2 * dispersion.std())
    means, sds = [0.9610021, 0.5503357, -0.3402599], [0.06029121, 0.06120804, 0.06011167]
    assert_allclose(model.posterior_.mean, means, atol=0.05 * sds[0])
    assert_allclose(model.posterior_.std(), sds, rtol=0.02)


def test_batches_merged_unlearned_and_stored_models_know_the_same_power():
    X, y = make_rows()
    whole = BayesianGeneralizedLinear(LEARNED).fit(X, y).likelihood_parameters_["power"]
    parts = [BayesianGeneralizedLinear(LEARNED).fit(X[some], y[some]) for some in (
        slice(0, 200), slice(200, 400)
    )]  # fmt: skip
    merged = loads(dumps(parts[0].merge(parts[1])))
    batches = BayesianGeneralizedLinear(LEARNED).fit(X[:200], y[:200]).partial_fit(X[200:], y[200:])
    rows = BayesianGeneralizedLinear(LEARNED).fit(X[:350], y[:350])
    rows.predict_then_learn(X[350:], y[350:])
    for model in (merged, batches, rows):
        power = model.likelihood_parameters_["power"]
        assert_allclose(power.mean(), whole.mean(), atol=0.2 * whole.std())
        assert_allclose(power.std(), whole.std(), rtol=0.1)
    fewer = BayesianGeneralizedLinear(LEARNED).fit(X[20:], y[20:]).likelihood_parameters_["power"]
    left = BayesianGeneralizedLinear(LEARNED).fit(X, y).unlearn(X[:20], y[:20])
    power = left.likelihood_parameters_["power"]
    assert_allclose(power.mean(), fewer.mean(), atol=0.1 * fewer.std())


def test_predictions_know_that_the_power_is_not():
    X, y = make_rows(60)
    told = BayesianGeneralizedLinear(LEARNED).fit(X, y).predict_distribution(X[:3])
    given = BayesianGeneralizedLinear(Tweedie(1.6)).fit(X, y).predict_distribution(X[:3])
    assert_allclose(told.mean(), given.mean(), rtol=0.1)
    assert_allclose(told.cdf(0.0), given.cdf(0.0), atol=0.05)
    assert np.all(np.isfinite(told.logpdf(y[:3])))


def test_a_power_is_between_1_and_2():
    for power in (1.0, 2.0, 3.0):
        with pytest.raises(ValueError, match=r"must lie between 1\.02 and 1\.99"):
            Tweedie(power)
    with pytest.raises(ValueError, match="dispersion of Tweedie"):
        LEARNED.distribution(np.zeros(1)).mean()
