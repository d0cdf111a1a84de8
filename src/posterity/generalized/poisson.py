"""Bayesian Poisson regression: how many."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from posterity.generalized._count_regression import CountRegression
from posterity.likelihoods import Likelihood, Poisson
from posterity.transaction import atomic

# What is warned of: counts that vary so many times more than a Poisson's, which makes 95% intervals
# hold 91%, and more than chance would have it, in standard errors.
OVERDISPERSED = 1.3
DISPERSION_STANDARD_ERRORS = 4.0


class BayesianPoissonRegression(CountRegression):
    """Poisson regression with a log link and a Gaussian prior, online or in batches.

    ``y ~ Poisson(exposure * exp(offset + intercept + x . coef))``. Each row is learned as a
    Gaussian row that stands for its likelihood, so that learning online, forgetting, weights and
    the evidence work as in :class:`posterity.BayesianLinearRegression`.

    Parameters
    ----------
    prior_mean, prior_precision, prior, fit_intercept, approximation, basis, forgetting,
    categorical_features, missing
        As in :class:`posterity.BayesianGeneralizedLinear`. With approximation "laplace", ``fit``
        ends where scikit-learn's PoissonRegressor does with alpha = prior_precision / n.

    Attributes
    ----------
    coef_ : (m,) array
        Posterior mean (with "laplace" the mode) of the coefficients, in log rate per unit.
    intercept_ : float
    posterior_ : MultivariateNormal, or MultivariateMixture where the prior is learned
        Joint posterior of [intercept, coefficients].
    dispersion_ : float
        How many times more the counts vary than a Poisson's: Pearson's chi-square over its degrees
        of freedom, of the rows learned on any path. About 1 where Poisson holds; intervals are too
        narrow by its root. :meth:`fit` warns when it is large: then learn with
        :class:`posterity.BayesianNegativeBinomialRegression`.
    prior_precision_, log_evidence_, n_observations_, n_effective_, forgotten_
        As in :class:`posterity.BayesianLinearRegression`.

    Notes
    -----
    Rows that come online sorted by their count are learned badly: 95% intervals of coefficients
    then held 21% to 29% in simulations, in random order 91% to 97%. Shuffle them, or :meth:`fit`,
    which knows no order.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> hours = rng.uniform(1.0, 10.0, size=500)
    >>> y = rng.poisson(hours * np.exp(0.5 + X @ [0.3, -0.2]))
    >>> model = BayesianPoissonRegression().fit(X, y, exposure=hours)
    >>> model.coef_.round(1).tolist(), round(model.intercept_, 1)
    ([0.3, -0.2], 0.5)
    >>> model.predict([[0.0, 0.0]], exposure=10.0).round(0)
    array([16.])
    """

    @property
    def dispersion_(self) -> float:
        """Pearson's chi-square over its degrees of freedom; NaN while there are none."""
        return self._pearson[0]

    @atomic
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        offset: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
        times: ArrayLike | None = None,
    ) -> Self:
        """As :meth:`CountRegression.fit`; warns of counts that vary more than a Poisson's."""
        super().fit(X, y, sample_weight, offset=offset, exposure=exposure, times=times)
        dispersion, freedom = self._pearson
        if dispersion > OVERDISPERSED:
            # Of Poisson counts the terms of the statistic have variance 2 + 1 / rate.
            expected = self.predict_mean_distribution(X, offset=offset, exposure=exposure)
            rates = expected.ppf(0.5)
            with np.errstate(divide="ignore", over="ignore"):
                rarest = float(np.mean(1.0 / rates))
            if dispersion > 1.0 + DISPERSION_STANDARD_ERRORS * np.sqrt((2.0 + rarest) / freedom):
                warnings.warn(
                    f"the counts vary more than Poisson's: their variance is {dispersion:.3g} "
                    "times as large, so intervals of coefficients and counts are too narrow; use "
                    "BayesianNegativeBinomialRegression, which learns the variance",
                    stacklevel=3,
                )
        return self

    @property
    def _pearson(self) -> tuple[float, float]:
        posterior: Any = self._posterior
        return posterior.pearson

    def _likelihood(self) -> Likelihood:
        return Poisson()
