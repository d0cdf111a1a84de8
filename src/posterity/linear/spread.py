"""Noise that depends on the features, ``noise="linear"``, around the mean's posterior."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator

from posterity import evidence
from posterity.evidence.bounded import RareFeatureScales
from posterity.forgetting import Adaptive, Changepoint, Window
from posterity.forgetting.words import read_forgetting
from posterity.kernel.values import is_word
from posterity.likelihoods import LogPrecision
from posterity.noise import KnownNoise
from posterity.posteriors import (
    EvidencePosterior,
    GeneralizedPosterior,
    HeteroscedasticPosterior,
    LinearPosterior,
)
from posterity.priors import GaussianPrior

NOISES = ("constant", "linear")


def noise_depends(model: BaseEstimator) -> bool:
    """Return True if the noise depends on the features; ``ValueError`` for an unknown ``noise``.

    Examples
    --------
    >>> from posterity import BayesianLinearRegression
    >>> noise_depends(BayesianLinearRegression(noise="linear"))
    True
    """
    if not is_word(model.noise, *NOISES):
        raise ValueError(f"noise is {model.noise!r}: it must be 'constant' or 'linear'")
    if model.noise == "constant":
        return False
    if model.noise_precision is not None:
        raise ValueError(
            f"noise_precision is {model.noise_precision}, and noise is 'linear': such noise is "
            "learned; leave noise_precision out"
        )
    return True


def with_spread(fresh: LinearPosterior, forgetting: Any, shapes: Any) -> LinearPosterior:
    """A posterior of mean and log variance, around that of the mean, which has seen nothing.

    What only fades, fades in both. Where forgetting is learned or coefficients wander, it is the
    mean that changes, and the noise with it in size; how the noise depends on the features stays.
    ``Adaptive`` averages over discounts alone. At a change point both begin anew, and of a window
    both know only the rows in it.
    """
    inner = EvidencePosterior.learned(
        evidence.Bounded(),
        GaussianPrior(0.0, 0.0),
        KnownNoise(1.0),
        fresh.n_coefficients - int(fresh.intercept),
        intercept=True,
        shapes=shapes,
    )
    forgetting = read_forgetting(forgetting)
    spread: Any = GeneralizedPosterior.wrap(inner, LogPrecision(), "moments")
    if getattr(forgetting, "only_discounts", False):
        spread = forgetting.begin(spread)
    spread.inner.state.scales = RareFeatureScales.before_data(len(inner.mean))
    if isinstance(forgetting, Changepoint | Window):
        return forgetting.begin(HeteroscedasticPosterior.wrap(fresh, spread))
    if isinstance(forgetting, Adaptive):
        forgetting = forgetting.over_discounts(fresh.n_coefficients)
    mean = fresh if forgetting is None else forgetting.begin(fresh)
    return HeteroscedasticPosterior.wrap(mean, spread)
