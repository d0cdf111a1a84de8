"""Unlearning under any likelihood: the site that a row has in what is known is taken out."""

from __future__ import annotations

import numpy as np
import pytest

from posterity import (
    BayesianGeneralizedLinear,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegression,
    BayesianPoissonRegression,
)
from posterity.files import dumps
from posterity.forgetting import Stabilized
from posterity.likelihoods import Gaussian, LaplaceNoise, Likelihood, Quantile, StudentT

Array = np.ndarray
RNG = np.random.default_rng(5)
X = RNG.normal(size=(300, 4))
ETA = X @ [0.8, -0.5, 0.3, 0.0] + 0.3
TARGETS = {
    "labels": (RNG.random(300) < 1.0 / (1.0 + np.exp(-ETA))).astype(float),
    "counts": RNG.poisson(np.exp(ETA)).astype(float),
    "spread": RNG.negative_binomial(2.0, 2.0 / (2.0 + np.exp(ETA))).astype(float),
    "tails": ETA + RNG.standard_t(3.0, size=300),
}
PRIORS = [1.0, 0.0, "auto"]


def models(prior: float | str) -> dict[str, object]:
    one: dict[str, Likelihood] = {
        "student": StudentT(4.0, 1.0),
        "laplace": LaplaceNoise(1.0),
        "quantile": Quantile(0.7, 0.5),
    }
    return {
        "labels": BayesianLogisticRegression(prior_precision=prior),
        "labels at their mode": BayesianLogisticRegression(
            prior_precision=prior, approximation="laplace"
        ),
        "counts": BayesianPoissonRegression(prior_precision=prior),
        "spread": BayesianNegativeBinomialRegression(prior_precision=prior),
        **{
            f"tails {name}": BayesianGeneralizedLinear(likelihood, prior_precision=prior)
            for name, likelihood in one.items()
        },
    }


NAMES = list(models(1.0))


def off(one: object, other: object) -> tuple[float, float]:
    """How far means are apart, in standard deviations, and these, relative to each other."""
    mine, its = one.posterior_, other.posterior_  # type: ignore[attr-defined]
    sd = np.sqrt(np.diag(its.cov))
    wider = np.sqrt(np.diag(mine.cov)) / sd - 1.0
    return float(np.abs((mine.mean - its.mean) / sd).max()), float(np.abs(wider).max())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("prior", PRIORS)
def test_rows_of_a_stream_leave_last_first_without_a_trace(name: str, prior: float | str) -> None:
    y = TARGETS[name.split()[0]]
    model, without = models(prior)[name], models(prior)[name]
    model.predict_then_learn(X, y)
    without.predict_then_learn(X[:280], y[:280])
    model.unlearn(X[280:], y[280:])
    # The dispersion, and a prior that is learned, were others when the rows came.
    close = 0.02 if name == "spread" else 2e-3 if prior == "auto" else 1e-5
    assert max(off(model, without)) < close
    assert model.n_observations_ == 280.0
    if name != "spread" and prior != "auto":
        np.testing.assert_allclose(model.log_evidence_, without.log_evidence_, rtol=1e-6)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("prior", PRIORS)
def test_a_fit_without_some_of_its_rows_is_near_the_fit_of_the_others(
    name: str, prior: float | str
) -> None:
    y = TARGETS[name.split()[0]]
    some = np.arange(300) % 20 == 7
    model = models(prior)[name].fit(X, y).unlearn(X[some], y[some])
    without = models(prior)[name].fit(X[~some], y[~some])
    moved, wider = off(model, without)
    assert moved < (0.1 if name == "tails student" else 0.05)
    assert wider < 0.03
    assert abs(model.log_evidence_ - without.log_evidence_) < 0.2


@pytest.mark.parametrize("prior", PRIORS)
def test_half_of_the_labels_of_a_fit_leave(prior: float | str) -> None:
    y = TARGETS["labels"]
    # Of so few labels the default would find the sites in another way than of all.
    for_mode_search = {"prior_precision": prior, "approximation": "laplace"}
    model = BayesianLogisticRegression(**for_mode_search).fit(X, y).unlearn(X[150:], y[150:])
    without = BayesianLogisticRegression(**for_mode_search).fit(X[:150], y[:150])
    moved, wider = off(model, without)
    assert moved < 0.2
    assert wider < 0.12


@pytest.mark.parametrize("way", ["fit", "predict_then_learn"])
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("name", ["labels", "counts", "spread"])
def test_without_all_rows_the_prior_is_left(name: str, prior: float | str, way: str) -> None:
    y = TARGETS[name]
    model = models(prior)[name]
    getattr(model, way)(X, y)
    model.unlearn(X, y)
    assert model.n_observations_ == model.n_effective_ == 0.0
    np.testing.assert_array_equal(model.posterior_.mean, 0.0)
    model.partial_fit(X, y)
    assert off(model, models(prior)[name].partial_fit(X, y))[0] < 0.05


@pytest.mark.parametrize("way", ["fit", "predict_then_learn"])
def test_an_error_leaves_nothing_behind(way: str) -> None:
    X4 = np.arange(4.0)[:, None]
    for y in ([1.0, 3.0, 5.0, 99.0], [1.0, 3.0, 5.0, -1e6]):
        model = BayesianGeneralizedLinear(Gaussian(1.0), prior_precision=1.0)
        getattr(model, way)(X4, y)
        model.unlearn(X4[3:], y[3:])
        without = BayesianGeneralizedLinear(Gaussian(1.0), prior_precision=1.0)
        getattr(without, way)(X4[:3], y[:3])
        np.testing.assert_allclose(model.coef_, without.coef_, rtol=1e-6)


def test_weights_exposure_and_single_rows() -> None:
    y, weights, exposure = TARGETS["counts"], RNG.integers(0, 4, size=300), np.exp(0.1 * X[:, 0])
    first = slice(0, 290)
    kept = BayesianPoissonRegression(prior_precision=1.0)
    kept.fit(X[first], y[first], weights[first], exposure=exposure[first])
    model = BayesianPoissonRegression(prior_precision=1.0)
    model.fit(X[first], y[first], weights[first], exposure=exposure[first])
    rows = slice(290, 300)
    model.predict_then_learn(X[rows], y[rows], weights[rows], exposure=exposure[rows])
    model.learn_one(X[0], 3.0)
    model.unlearn(X[:1], [3.0])
    model.unlearn(X[rows], y[rows], weights[rows], exposure=exposure[rows])
    assert max(off(model, kept)) < 1e-6
    assert model.n_observations_ == kept.n_observations_


def test_a_category_that_leaves_is_not_known_any_more() -> None:
    Z = np.column_stack([X[:, 0], np.zeros(300)])
    Z[:5, 1] = 1.0
    y = TARGETS["labels"]
    for prior in (1.0, "auto"):
        for way in ("fit", "predict_then_learn"):
            model = BayesianLogisticRegression(prior_precision=prior)
            getattr(model, way)(Z, y)
            model.unlearn(Z[:5], y[:5])
            without = BayesianLogisticRegression(prior_precision=prior)
            getattr(without, way)(Z[5:], y[5:])
            mine, its = model.posterior_, without.posterior_
            sd = np.sqrt(np.diag(mine.cov))
            assert (np.abs(mine.mean[:2] - its.mean[:2]) < 0.65 * sd[:2]).all()
            assert abs(mine.mean[2]) < sd[2]
            if (prior, way) == ("auto", "predict_then_learn"):
                continue  # where rows leave nearly, under a prior that says little, some is left
            before = dumps(model)
            with pytest.raises(ValueError, match="row 0 was never learned, or is unlearned"):
                model.unlearn(Z[:1], y[:1])
            assert dumps(model) == before


def test_refusals_change_nothing() -> None:
    y = TARGETS["labels"]
    model = BayesianLogisticRegression().fit(X, y)
    before = dumps(model)
    with pytest.raises(ValueError, match="rows of total weight 900: only 300 was learned"):
        model.unlearn(X, y, np.full(300, 3.0))
    with pytest.raises(
        ValueError, match=r"y is 2\.0 in row 1, which was never learned: unlearn only learned rows"
    ):
        model.unlearn(X[:2], [1.0, 2.0])
    fading = BayesianLogisticRegression(forgetting=Stabilized(0.99)).fit(X, y)
    with pytest.raises(ValueError, match="under Stabilized: the weight of a row depends on"):
        fading.unlearn(X[:1], y[:1])
    assert dumps(model) == before
