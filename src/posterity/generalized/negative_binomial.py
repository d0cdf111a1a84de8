"""Bayesian negative binomial regression: how many, where counts vary more than Poisson's."""

from __future__ import annotations

from dataclasses import dataclass

from posterity.generalized._count_regression import CountRegression
from posterity.likelihoods import NegativeBinomial


@dataclass(kw_only=True, eq=False, repr=False)
class BayesianNegativeBinomialRegression(CountRegression):
    """Negative binomial regression, for overdispersed counts; the dispersion is learned.

    ``y`` is negative binomial (NB2): a Poisson count whose rate varies as a Gamma of shape
    ``r = 1 / dispersion``. Its mean is ``rate = exposure * exp(offset + intercept + x . coef)``,
    its variance ``rate + dispersion * rate^2``. All else is as in
    :class:`posterity.BayesianPoissonRegression`, which this becomes as the dispersion goes to 0;
    where counts are Poisson it is hardly worse.

    Parameters
    ----------
    dispersion : float, optional
        ``alpha`` of statsmodels, 1 / ``size`` of R, > 0; None: learned. Its prior is exponential in
        its root, with mean 1 (Simpson et al. 2017), between 1e-5 and 100.
    prior_mean, prior_precision, prior, fit_intercept, approximation, basis, forgetting,
    categorical_features, missing
        As in :class:`posterity.BayesianPoissonRegression`. What is forgotten are rates, not the
        dispersion.

    Attributes
    ----------
    dispersion_ : float
        Posterior mean of the dispersion, or the known one; 1 / dispersion_ is the shape r.
    coef_, intercept_, posterior_
        As in :class:`posterity.BayesianPoissonRegression`, under this dispersion.
    prior_precision_, log_evidence_, n_observations_, n_effective_, forgotten_
        As in :class:`posterity.BayesianLinearRegression`. The evidence of :meth:`fit` is that of
        the dispersion, too: its prior is integrated over.

    Notes
    -----
    The information of coefficients and dispersion is diagonal (Lawless 1987, "Negative binomial
    and mixed Poisson regression"), so that each is learned as if the other were known. The log of
    the dispersion is Gaussian, matched in its moments; two such are multiplied when models are
    merged. Rows that come one after another are learned in stretches, each an eighth of the rows
    before it, with the dispersion that these tell.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 2))
    >>> rate = np.exp(1.0 + X @ [0.3, -0.2])
    >>> y = rng.poisson(rate * rng.gamma(2.0, 0.5, size=2000))
    >>> model = BayesianNegativeBinomialRegression().fit(X, y)
    >>> model.coef_.round(1).tolist(), round(model.dispersion_, 1)
    ([0.3, -0.2], 0.5)
    >>> model.predict_interval([[0.0, 0.0]])
    array([[0., 9.]])
    """

    dispersion: float | None = None

    @property
    def dispersion_(self) -> float:
        """Posterior mean of the dispersion, or the known one."""
        if self.dispersion is not None:
            return self.dispersion
        return float(self._posterior.average_of(lambda one: one.known.dispersion))

    @property
    def _learns_parameter(self) -> bool:
        return self.dispersion is None

    def _likelihood(self) -> NegativeBinomial:
        return NegativeBinomial(1.0 if self.dispersion is None else self.dispersion)
