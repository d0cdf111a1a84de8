"""Whole posteriors of families, beside those of long chains of Metropolis."""

from __future__ import annotations

from typing import Any

import long_chains
import numpy as np
import pytest

from posterity import BayesianGeneralizedLinear
from posterity.likelihoods import (
    Beta,
    BetaBinomial,
    Binomial,
    Censored,
    Gamma,
    Geometric,
    Hurdle,
    InverseGaussian,
    LinearNegativeBinomial,
    LogLogistic,
    LogNormal,
    NegativeBinomial,
    Ordinal,
    Poisson,
    SkewNormal,
    StudentT,
    Truncated,
    Tweedie,
    VonMises,
    Weibull,
    ZeroInflated,
)

Array = np.ndarray
# The likelihood, and how far means and quantiles may lie apart, in standard deviations: of the
# coefficients, and of the logs of its parameters.
CASES: dict[str, tuple[Any, tuple[float, float], tuple[float, float]]] = {
    "Gamma, uneven": (Gamma(), (0.05, 0.15), (0.10, 0.20)),
    "Gamma": (Gamma(), (0.05, 0.10), (0.05, 0.10)),
    "InverseGaussian": (InverseGaussian(), (0.05, 0.25), (0.05, 0.10)),
    "LogNormal": (LogNormal(), (0.05, 0.10), (0.15, 0.15)),
    "Weibull": (Weibull(), (0.05, 0.25), (0.15, 0.25)),
    "Weibull, 70% cut off": (Censored(Weibull()), (0.05, 0.50), (0.05, 0.10)),
    "LogLogistic": (LogLogistic(), (0.05, 0.10), (0.10, 0.15)),
    "Tweedie": (Tweedie(1.5), (0.05, 0.10), (0.05, 0.10)),
    "Beta": (Beta(), (0.05, 0.10), (0.05, 0.10)),
    "BetaBinomial": (BetaBinomial(8), (0.05, 0.10), (0.05, 0.10)),
    "NegativeBinomial": (NegativeBinomial(), (0.05, 0.10), (0.05, 0.10)),
    "LinearNegativeBinomial": (LinearNegativeBinomial(), (0.10, 0.25), (0.05, 0.10)),
    "Geometric": (Geometric(), (0.05, 0.10), (0.05, 0.10)),
    "Binomial": (Binomial(8), (0.05, 0.10), (0.05, 0.10)),
    "Ordinal, logit": (Ordinal(5), (0.05, 0.10), (0.10, 0.15)),
    "Ordinal, probit": (Ordinal(4, link="probit"), (0.05, 0.10), (0.05, 0.10)),
    "ZeroInflated, Poisson": (ZeroInflated(Poisson()), (0.05, 0.10), (0.05, 0.10)),
    # Along a curved ridge: fewer zeros of the second kind and more dispersion.
    "ZeroInflated, NegativeBinomial": (
        ZeroInflated(NegativeBinomial()),
        (0.30, 0.90),
        (0.45, 2.15),
    ),
    "Hurdle, Gamma": (Hurdle(Gamma()), (0.05, 0.10), (0.05, 0.10)),
    "Truncated, Poisson": (Truncated(Poisson(), low=1), (0.05, 0.10), (0.05, 0.10)),
    "VonMises": (VonMises(), (0.05, 0.20), (0.05, 0.10)),
    "SkewNormal": (SkewNormal(4.0, 0.7), (0.05, 0.15), (0.05, 0.10)),
    "StudentT": (StudentT(4.0, 0.7), (0.05, 0.10), (0.05, 0.10)),
}


def read(model: BayesianGeneralizedLinear, n: int) -> tuple[Array, Array]:
    """Means of n coefficients and logs of parameters, and their quantiles (3, ...)."""
    told = model.summary()
    mean, low, high = (np.asarray(told[name], float)[:n] for name in ("mean", "low", "high"))
    middle = np.asarray(model.summary(level=1e-9)["low"], float)[:n]
    logs = [np.log(one.ppf([0.025, 0.5, 0.975])) for one in model.likelihood_parameters_.values()]
    grid = (np.arange(2000) + 0.5) / 2000
    means = [np.log(one.ppf(grid)).mean() for one in model.likelihood_parameters_.values()]
    quantiles = np.column_stack([low, middle, high]).T
    return np.append(mean, means), np.column_stack([quantiles, *logs])


@pytest.mark.parametrize("name", CASES)
def test_a_posterior_is_that_of_long_chains(name: str) -> None:
    likelihood, *bounds = CASES[name]
    case, chains = long_chains.CASES[name], long_chains.read()[name]
    X, y = case.make()
    known = likelihood.with_parameters(np.array(case.truth)) if case.truth else likelihood
    eta, t = 0.3 * np.sin(np.arange(case.n)), [np.full((1, 1), np.log(one)) for one in case.truth]
    np.testing.assert_allclose(
        known.log_density(y, eta), case.log_density(y, eta[None], *t)[0], rtol=1e-9, atol=1e-9
    )
    model = BayesianGeneralizedLinear(likelihood, prior_precision=long_chains.PRECISION)
    found = read(model.fit(X, y), case.p + 1)
    for mine, exact, which in zip(
        found, (chains["mean"], chains["quantiles"]), (0, 1), strict=True
    ):
        off = np.abs(mine - np.array(exact)) / np.array(chains["sd"])
        assert off[..., : case.p + 1].max() < bounds[0][which]
        assert off[..., case.p + 1 :].max(initial=0.0) < bounds[1][which]
