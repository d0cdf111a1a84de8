"""Likelihoods of targets given the linear predictor eta = x.w.

A likelihood is a frozen dataclass without data; see :class:`Likelihood` for how to add one. What an
observation says of eta is a *site*: a Gaussian row, found in one dimension by Laplace's method
(:func:`laplace_sites`) or by matching moments (:func:`moment_sites`).

Examples
--------
>>> laplace_sites(Bernoulli(), [1.0], [0.0], [4.0]).precision.round(4)
array([0.1927])
"""

from posterity.likelihoods.angles import VonMises
from posterity.likelihoods.beta import Beta
from posterity.likelihoods.censored import Censored
from posterity.likelihoods.classes import Bernoulli
from posterity.likelihoods.counts import (
    Geometric,
    LinearNegativeBinomial,
    NegativeBinomial,
    Poisson,
)
from posterity.likelihoods.gamma import Gamma
from posterity.likelihoods.inverse_gaussian import InverseGaussian
from posterity.likelihoods.labels import Labels
from posterity.likelihoods.likelihood import Likelihood
from posterity.likelihoods.log_lifetimes import LogLogistic, LogNormal
from posterity.likelihoods.log_precision import LogPrecision
from posterity.likelihoods.noises import Gaussian, LaplaceNoise, Quantile, StudentT
from posterity.likelihoods.ordinal import Levels, Ordinal
from posterity.likelihoods.predictive import Predictive, PredictiveCounts
from posterity.likelihoods.site import Sites
from posterity.likelihoods.sites import laplace_sites, moment_sites
from posterity.likelihoods.skewed import SkewNormal
from posterity.likelihoods.successes import BetaBinomial, Binomial
from posterity.likelihoods.truncated import Truncated
from posterity.likelihoods.tweedie import Tweedie
from posterity.likelihoods.weibull import Exponential, Weibull
from posterity.likelihoods.zeros import Hurdle, ZeroInflated

__all__ = [
    "Bernoulli",
    "Beta",
    "BetaBinomial",
    "Binomial",
    "Censored",
    "Exponential",
    "Gamma",
    "Gaussian",
    "Geometric",
    "Hurdle",
    "InverseGaussian",
    "Labels",
    "LaplaceNoise",
    "Levels",
    "Likelihood",
    "LinearNegativeBinomial",
    "LogLogistic",
    "LogNormal",
    "LogPrecision",
    "NegativeBinomial",
    "Ordinal",
    "Poisson",
    "Predictive",
    "PredictiveCounts",
    "Quantile",
    "Sites",
    "SkewNormal",
    "StudentT",
    "Truncated",
    "Tweedie",
    "VonMises",
    "Weibull",
    "ZeroInflated",
    "laplace_sites",
    "moment_sites",
]
