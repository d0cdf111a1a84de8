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
CASES: dict[str, Any] = {
    "Gamma, uneven": Gamma(),
    "Gamma": Gamma(),
    "InverseGaussian": InverseGaussian(),
    "LogNormal": LogNormal(),
    "Weibull": Weibull(),
    "Weibull, 70% cut off": Censored(Weibull()),
    "LogLogistic": LogLogistic(),
    "Tweedie": Tweedie(1.5),
    "Beta": Beta(),
    "BetaBinomial": BetaBinomial(8),
    "NegativeBinomial": NegativeBinomial(),
    "LinearNegativeBinomial": LinearNegativeBinomial(),
    "Geometric": Geometric(),
    "Binomial": Binomial(8),
    "Ordinal, logit": Ordinal(5),
    "Ordinal, probit": Ordinal(4, link="probit"),
    "ZeroInflated, Poisson": ZeroInflated(Poisson()),
    "ZeroInflated, NegativeBinomial": ZeroInflated(NegativeBinomial()),
    "Hurdle, Gamma": Hurdle(Gamma()),
    "Truncated, Poisson": Truncated(Poisson(), low=1),
    "VonMises": VonMises(),
    "SkewNormal": SkewNormal(4.0, 0.7),
    "StudentT": StudentT(4.0, 0.7),
}
# How far means and quantiles may lie apart, in standard deviations.
OF_MEANS, OF_QUANTILES = 0.05, 0.1


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
    likelihood = CASES[name]
    case, chains = long_chains.CASES[name], long_chains.read()[name]
    X, y = case.make()
    known = likelihood.with_parameters(np.array(case.truth)) if case.truth else likelihood
    eta, t = 0.3 * np.sin(np.arange(case.n)), [np.full((1, 1), np.log(one)) for one in case.truth]
    np.testing.assert_allclose(
        known.log_density(y, eta), case.log_density(y, eta[None], *t)[0], rtol=1e-9, atol=1e-9
    )
    model = BayesianGeneralizedLinear(likelihood, prior_precision=long_chains.PRECISION)
    found = read(model.fit(X, y), case.p + 1)
    for mine, of, bound in zip(found, ("mean", "quantiles"), (OF_MEANS, OF_QUANTILES), strict=True):
        off = np.abs(mine - np.array(chains[of])) / np.array(chains["sd"])
        assert off.max() < bound
