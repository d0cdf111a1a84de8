"""Poisson counts whose log rate is normally distributed."""

from __future__ import annotations

from typing import Self

from numpy.typing import ArrayLike

from posterity.distributions._rows import FloatArray
from posterity.distributions.log_normal_counts import LogNormalCounts


class PoissonLogNormal(LogNormalCounts):
    """Poisson distributions whose log rates are normal, one per row: predictions of counts.

    ``y | eta ~ Poisson(exp(eta))`` with ``eta ~ Normal(log_mean, log_variance)`` (Aitchison and Ho
    1989, "The multivariate Poisson-log normal distribution"). Its variance is
    ``mean + mean^2 (exp(log_variance) - 1)``: more than a Poisson's, for the rate is uncertain.

    Parameters
    ----------
    log_mean : array_like
        Mean of the log rate, (n,), exposure included.
    log_variance : array_like
        Variance of the log rate, (n,), >= 0. Infinite: nothing is known yet.

    Notes
    -----
    Where ``log_variance`` is beyond 10 the mean is 150 medians and more. Unless it is less than 1,
    that says that nothing is known yet: then it is infinite. So is the CRPS beyond 10.
    Probabilities are integrals over the rate, worked out to about ten digits; CRPS to about seven.
    ``pmf`` and ``logpmf`` are ``pdf`` and ``logpdf``; a ``y`` that is no count has probability 0.

    Examples
    --------
    >>> predictive = PoissonLogNormal([0.0, 3.0], [0.0, 0.1])
    >>> predictive.mean().round(3), predictive.var().round(3)
    (array([ 1.   , 21.115]), array([ 1.   , 68.007]))
    >>> predictive.pmf([0, 20]).round(4)
    array([0.3679, 0.0513])
    >>> low, high = predictive.interval(0.9)
    >>> low, high
    (array([ 0., 10.]), array([ 3., 36.]))
    """

    __slots__ = ()

    def __init__(self, log_mean: ArrayLike, log_variance: ArrayLike) -> None:
        self._set(log_mean, log_variance, 0.0)

    def __repr__(self) -> str:
        return f"PoissonLogNormal(log_mean={self.log_mean}, log_variance={self.log_variance})"

    def like(self, log_mean: FloatArray, log_variance: FloatArray, dispersion: FloatArray) -> Self:
        """Return counts of the same kind with other log rates."""
        return type(self)(log_mean, log_variance)
