"""Negative binomial counts whose log rate is normally distributed."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from posterity.distributions._rows import FloatArray
from posterity.distributions.log_normal_counts import LogNormalCounts


class NegativeBinomialLogNormal(LogNormalCounts):
    """Negative binomial distributions whose log rates are normal, one per row.

    ``y | eta`` is negative binomial of mean ``rate = exp(eta)`` and variance
    ``rate + dispersion * rate^2`` (NB2; Cameron and Trivedi 2013, "Regression analysis of count
    data", section 3.3): a Poisson count whose rate varies as a Gamma of shape ``1 / dispersion``.
    ``eta ~ Normal(log_mean, log_variance)``.

    Parameters
    ----------
    log_mean : array_like
        Mean of the log rate, (n,), exposure included.
    log_variance : array_like
        Variance of the log rate, (n,), >= 0. Infinite: nothing is known yet.
    dispersion : array_like
        (n,) or a number, >= 0: ``alpha`` of statsmodels, 1 / ``size`` of R. 0 is
        :class:`PoissonLogNormal`.

    Notes
    -----
    As of :class:`PoissonLogNormal`.

    Examples
    --------
    >>> predictive = NegativeBinomialLogNormal([0.0, 3.0], [0.0, 0.1], 0.5)
    >>> predictive.mean().round(3), predictive.var().round(3)
    (array([ 1.   , 21.115]), array([  1.5  , 314.381]))
    >>> predictive.pmf([0, 20]).round(4)
    array([0.4444, 0.0237])
    >>> predictive.interval(0.9)
    (array([0., 3.]), array([ 3., 55.]))
    """

    __slots__ = ()

    def __init__(self, log_mean: ArrayLike, log_variance: ArrayLike, dispersion: ArrayLike) -> None:
        self._set(log_mean, log_variance, dispersion)
        if not (np.isfinite(self.dispersion) & (self.dispersion >= 0.0)).all():
            raise ValueError(
                "a dispersion is negative or not finite: give finite numbers from 0 up"
            )

    def __repr__(self) -> str:
        return (
            f"NegativeBinomialLogNormal(log_mean={self.log_mean}, "
            f"log_variance={self.log_variance}, dispersion={self.dispersion})"
        )

    def like(self, log_mean: FloatArray, log_variance: FloatArray, dispersion: FloatArray) -> Self:
        """Return counts of the same kind with other log rates."""
        return type(self)(log_mean, log_variance, dispersion)
