"""Gamma: amounts whose shape is learned beside their mean."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from posterity import BayesianGeneralizedLinear
from posterity.files import load, save
from posterity.forgetting import Adaptive, Stabilized
from posterity.likelihoods import Gamma

TRUE = np.array([0.5, -0.3])


def simulate(n: int, shape: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, rng.gamma(shape, np.exp(1.0 + X @ TRUE) / shape)


@pytest.mark.parametrize("shape", [0.5, 4.0, 1e4])
def test_it_agrees_with_maximum_likelihood_where_rows_are_many(shape: float) -> None:
    sm = pytest.importorskip("statsmodels.api")
    X, y = simulate(800, shape)
    model = BayesianGeneralizedLinear(Gamma(), prior_precision=0.0).fit(X, y)
    family = sm.families.Gamma(sm.families.links.Log())
    peer = sm.GLM(y, sm.add_constant(X), family=family).fit()
    sd = model.posterior_.std()
    assert np.abs(np.append(model.intercept_, model.coef_) - peer.params) / sd == pytest.approx(
        0.0, abs=0.1
    )
    np.testing.assert_allclose(sd, peer.bse, rtol=0.1)
    # The maximum of the likelihood over the shape, at the fitted means.
    logs = np.linspace(np.log(shape) - 1.0, np.log(shape) + 1.0, 4001)
    mean = np.exp(model.intercept_ + X @ model.coef_)
    likelihoods = [stats.gamma(a, scale=mean / a).logpdf(y).sum() for a in np.exp(logs)]
    known = model.likelihood_parameters_["shape"]
    best = logs[np.argmax(likelihoods)]
    assert np.log(known.median()) == pytest.approx(best, abs=0.2 * known.args[0])


def test_a_mean_and_a_shape_are_those_of_quadrature() -> None:
    y = np.random.default_rng(1).gamma(2.0, 3.0 / 2.0, size=25)
    eta, t = np.linspace(-1.0, 3.0, 401), np.linspace(-2.0, 4.0, 401)
    a, e = np.exp(t), eta[:, None]
    log = stats.norm(1.0, 2.0).logpdf(t) + sum(
        stats.gamma(a, scale=np.exp(e) / a).logpdf(y_i) for y_i in y
    )
    mass = np.exp(log - log.max())
    mass /= mass.sum()
    model = BayesianGeneralizedLinear(Gamma()).fit(np.zeros((25, 1)), y)
    for values, shares, mean, sd in (
        (eta, mass.sum(axis=1), model.intercept_, model.posterior_.std()[0]),
        (t, mass.sum(axis=0), *log_moments(model)),
    ):
        exact = shares @ values
        exact_sd = np.sqrt(shares @ (values - exact) ** 2)
        assert mean == pytest.approx(exact, abs=0.1 * exact_sd)
        assert sd == pytest.approx(exact_sd, rel=0.1)


def log_moments(model: BayesianGeneralizedLinear) -> tuple[float, float]:
    known = model.likelihood_parameters_["shape"]
    return float(np.log(known.median())), float(known.args[0])


@pytest.mark.parametrize("forgetting", [None, Stabilized(0.99), Adaptive()], ids=str)
def test_rows_one_by_one_tell_nearly_the_same(forgetting: object) -> None:
    X, y = simulate(150, 4.0)
    model = BayesianGeneralizedLinear(Gamma(), forgetting=forgetting)
    model.partial_fit(X[:130], y[:130])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x, target in zip(X[130:], y[130:], strict=True):
            model.learn_one(x, target)
    whole = BayesianGeneralizedLinear(Gamma()).fit(X, y)
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=2.0 * whole.posterior_.std().max())
    assert abs(log_moments(model)[0] - log_moments(whole)[0]) < 2.0 * log_moments(whole)[1]


def test_it_is_saved_merged_and_unlearned(tmp_path: Path) -> None:
    X, y = simulate(120, 4.0)
    new = BayesianGeneralizedLinear(Gamma()).fit(X[:80], y[:80])
    save(new, tmp_path / "amounts")
    again = load(tmp_path / "amounts")
    np.testing.assert_array_equal(again.predict(X), new.predict(X))
    assert log_moments(again) == log_moments(new)
    rest = BayesianGeneralizedLinear(Gamma()).fit(X[80:], y[80:])
    whole = BayesianGeneralizedLinear(Gamma()).fit(X, y)
    sd = whole.posterior_.std()[1:]
    assert np.abs(again.merge(rest).coef_ - whole.coef_).max() < 0.3 * sd.max()
    assert np.abs(whole.unlearn(X[80:], y[80:]).coef_ - new.coef_).max() < 0.3 * sd.max()


def test_what_is_no_amount_is_refused() -> None:
    with pytest.raises(ValueError, match="y in row 1 is 0: an amount under Gamma must be positive"):
        BayesianGeneralizedLinear(Gamma()).fit([[0.0], [1.0]], [1.0, 0.0])
    with pytest.raises(ValueError, match="shape is -1"):
        Gamma(-1.0)
    with pytest.raises(ValueError, match="give Gamma"):
        Gamma().log_density(np.ones(1), np.ones(1))
    assert BayesianGeneralizedLinear(Gamma(2.0)).fit([[0.0]], [1.0]).likelihood_parameters_ == {}


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("shape", [0.5, 4.0, 100.0])
@pytest.mark.parametrize("n", [12, 40, 200])
def test_intervals_hold(shape: float, n: int) -> None:
    held = []
    for seed in range(100):
        X, y = simulate(n + 20, shape, seed)
        model = BayesianGeneralizedLinear(Gamma()).fit(X[:n], y[:n])
        low, high = model.predict_interval(X[n:], 0.9).T
        known = model.likelihood_parameters_["shape"]
        least, most = np.array(model.posterior_.interval(0.9))[1:].T
        held.append(
            [
                np.mean((low <= y[n:]) & (y[n:] <= high)),
                float(known.ppf(0.05) <= shape <= known.ppf(0.95)),
                np.mean((least <= TRUE) & (most >= TRUE)),
            ]
        )
    shares = np.mean(held, axis=0)
    # Few uneven rows shrink an effect of two standard errors: the page has the figures.
    assert (shares > [0.85, 0.82, 0.84 if n == 200 else 0.72]).all(), shares
