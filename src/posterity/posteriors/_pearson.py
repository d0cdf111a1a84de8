"""Overdispersion of counts, by Pearson's statistic from what a posterior keeps anyway."""

from __future__ import annotations

import math

import numpy as np

from posterity.distributions.triangles import solve_triangle
from posterity.posteriors.gaussian import LinearPosterior


def compute_pearson_dispersion(rows: LinearPosterior, n: float) -> tuple[float, float]:
    """Pearson's chi-square over its degrees of freedom, and these.

    A Poisson count's site has precision mu and target eta + (y - mu) / mu: its squared residual is
    (y - mu)^2 / mu. So the residual sum of squares of ``rows``, the site rows of n counts, is
    Pearson's statistic; the prior's own part is taken out. n less the coefficients that the counts
    determined, p - trace(prior precision x posterior covariance), are its degrees of freedom.

    Examples
    --------
    >>> from posterity.noise import KnownNoise
    >>> from posterity.priors import GaussianPrior
    >>> flat = GaussianPrior(0.0, 0.0)
    >>> rows = LinearPosterior.before_data(flat, KnownNoise(1.0), 1, intercept=False)
    >>> rows.append(np.ones((3, 1)), np.array([[1.0], [2.0], [3.0]]), None, np.zeros(3))
    >>> tuple(round(float(x), 6) for x in compute_pearson_dispersion(rows, 3.0))
    (1.0, 2.0)
    """
    factor, prior = rows.factor, rows.prior
    known = factor.determined
    off = prior.root @ factor.coefficients()[:, 0] - prior.moments[:, 0]
    statistic = float(factor.residual()[0, 0]) - float(off @ off)
    inverse = solve_triangle(factor.root[np.ix_(known, known)], np.eye(int(known.sum())))
    of_prior = float(np.square(prior.root[:, known] @ inverse).sum())
    freedom = n - (factor.rank - of_prior)
    return (max(statistic, 0.0) / freedom if freedom > 0.0 else math.nan), freedom
