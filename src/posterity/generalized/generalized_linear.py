"""Bayesian regression under any likelihood, the library's or one's own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from posterity.aliases import Array
from posterity.distributions._limits import interval_ends
from posterity.distributions.bent_log import make_bent_log
from posterity.distributions.expected import expect
from posterity.distributions.row_distribution import RowDistribution
from posterity.generalized._relativities import HasRelativities
from posterity.generalized._survival import PredictsSurvival
from posterity.generalized.base import GeneralizedModel
from posterity.likelihoods import Likelihood
from posterity.likelihoods.words import read_likelihood
from posterity.linear.offsets import read_offset
from posterity.other_names import accept_other_names


class GeneralizedRegression(HasRelativities, RegressorMixin, GeneralizedModel):
    """Base of models of numbers, whose rows may have offsets."""

    @property
    def likelihood_parameters_(self) -> dict[str, Any]:
        """What is known of the likelihood's parameters that are learned, by name.

        Distributions as SciPy's, with the mean and the standard deviation (``args[0]``) of the
        parameter's log. Of up to 400 rows they have the posterior's own skewed shape. Of more they
        are powers of gamma variables (``scipy.stats.gengamma``), and log-normal ones where much or
        nothing is known. What forgets learns the parameter from all rows.

        Examples
        --------
        >>> from posterity.likelihoods import Gamma
        >>> y = np.random.default_rng(0).gamma(4.0, size=400)
        >>> model = BayesianGeneralizedLinear(Gamma()).fit(np.zeros((400, 1)), y)
        >>> model.likelihood_parameters_["shape"].interval(0.9)[0].round(1)
        np.float64(3.8)
        """
        likelihood, posterior = self._likelihood(), self._posterior
        if not self._learns_parameter:
            return {}
        told = posterior.average_of(lambda one: one.tell_parameters())
        return {
            parameter.name: parameter.distribution(mean, math.sqrt(square - mean * mean))
            if np.isnan(quantiles).any()
            else make_bent_log(quantiles)
            for parameter, (mean, square, *quantiles) in zip(
                likelihood.parameters, told.T, strict=True
            )
        }

    # ---- learning --------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        offset: ArrayLike | None = None,
        times: ArrayLike | None = None,
    ) -> Self:
        """Learn these rows together, to convergence, starting from the prior.

        Parameters
        ----------
        X, sample_weight, times
            As in :meth:`BayesianLinearRegression.fit`.
        y : (n,) array
            Targets, which the likelihood must know.
        offset : (n,) array or float, optional
            Added to eta, known and without a coefficient.

        Examples
        --------
        >>> from posterity.likelihoods import Bernoulli
        >>> model = BayesianGeneralizedLinear(Bernoulli("probit"), prior_precision=1.0)
        >>> model.fit([[-1.0], [1.0]], [0, 1]).predict([[0.0]]).round(6)
        array([0.5])
        """
        self._learn_rows("fit", (X, y, sample_weight), times, offset)
        return self

    def partial_fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        offset: ArrayLike | None = None,
        times: ArrayLike | None = None,
    ) -> Self:
        """Learn more rows together, starting from the posterior; parameters as in :meth:`fit`."""
        self._learn_rows("append", (X, y, sample_weight), times, offset)
        return self

    def learn_one(
        self,
        x: ArrayLike | Mapping[str, float],
        y: Any,
        weight: float = 1.0,
        time: float | None = None,
        *,
        offset: float | None = None,
    ) -> Self:
        """Learn one row, in a microsecond or two; with an offset in half a millisecond.

        Parameters as in :meth:`posterity.BayesianLinearRegression.learn_one`, and the row's
        ``offset`` as in :meth:`fit`.

        Examples
        --------
        >>> from posterity.likelihoods import Gaussian
        >>> model = BayesianGeneralizedLinear(Gaussian(1.0), prior_precision=0.0)
        >>> round(model.learn_one([0.0], 3.0, offset=2.0).predict_one([0.0]), 1)
        1.0
        """
        if offset is None:
            return super().learn_one(x, y, weight, time)
        self._learn_row(x, y, weight, time, offset)
        return self

    def predict_then_learn(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        offset: ArrayLike | None = None,
        times: ArrayLike | None = None,
    ) -> Any:
        """Predict each row before it is learned, then learn it: one pass, row after row.

        Returns the distribution of each target given all the rows before it.

        Examples
        --------
        >>> from posterity.likelihoods import StudentT
        >>> model = BayesianGeneralizedLinear(StudentT(4.0))
        >>> predictive = model.predict_then_learn([[0], [0]], [4, 4])
        >>> predictive[1:].mean().round(3)
        array([4.])
        """
        return self._learn_rows("predict_then_learn", (X, y, sample_weight), times, offset)

    def unlearn(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        offset: ArrayLike | None = None,
    ) -> Self:
        """Unlearn rows: remove their likelihood as it is now, given all others.

        Exact for the row that was learned last, and for rows that came one after another and leave
        last first, as rows of one call do, but for a prior that was learned again in between. Of
        rows that were fitted together the others keep what they said beside them: 5% of 400 rows
        leave the means within 0.01 of their standard deviations of a fit without them, half of the
        rows within 0.2. Rows from the start of a stream said less then, when little was known,
        than is taken out now: intervals are then rather too wide.

        Parameters as when the rows were learned.

        Raises
        ------
        ValueError
            If the rows can't have been learned; under any way to forget.

        Examples
        --------
        >>> from posterity.likelihoods import Gaussian
        >>> model = BayesianGeneralizedLinear(Gaussian(1.0), prior_precision=1.0)
        >>> model = model.fit([[0], [1], [2], [3]], [1, 3, 5, 99]).unlearn([[3]], [99])
        >>> model.coef_.round(6) == BayesianGeneralizedLinear(
        ...     Gaussian(1.0), prior_precision=1.0
        ... ).fit([[0], [1], [2]], [1, 3, 5]).coef_.round(6)
        array([ True])
        """
        return self._unlearn_rows((X, y, sample_weight), offset)

    # ---- predicting ------------------------------------------------------------------------------

    def predict(self, X: Any, *, offset: ArrayLike | None = None) -> Array:
        """(n,) expected targets: the mean of :meth:`predict_distribution`.

        Where that is infinite, as of counts of which hardly anything is known, or of log-logistic
        lifetimes of a shape of 1 or less, it is the median.

        Examples
        --------
        >>> from posterity.likelihoods import Gaussian
        >>> model = BayesianGeneralizedLinear(Gaussian(1.0), prior_precision=0.0)
        >>> model.fit([[0], [1], [2]], [1, 3, 5]).predict([[3]], offset=0.5).round(6)
        array([7.5])
        """
        return expect(self._predictive(X, offset))

    def predict_distribution(self, X: Any, *, offset: ArrayLike | None = None) -> Any:
        """Distribution of new targets, integrated over the posterior: one a row of ``X``.

        Of the kind that the likelihood has; of your own, without ``predictive``, by quadrature.

        Examples
        --------
        >>> from posterity.likelihoods import NegativeBinomial
        >>> model = BayesianGeneralizedLinear(NegativeBinomial(0.5)).fit([[0], [1], [2]], [1, 3, 8])
        >>> model.predict_distribution([[1.0]]).pmf([3]).shape
        (1,)
        """
        return self._predictive(X, offset)

    def predict_interval(
        self,
        X: Any,
        level: float = 0.95,
        *,
        offset: ArrayLike | None = None,
        of: Literal["observation", "mean", "eta"] = "observation",
    ) -> Array:
        """(n, 2) ends of the central interval of a new target, or of its mean.

        Parameters
        ----------
        X : (n, m) array or data frame
        level : float, default 0.95
        offset : (n,) array or float, optional
        of : "observation", "mean" or "eta"
            The intervals of the expected target and of the linear predictor eta know the
            coefficients' uncertainty only; an observation varies more. "target" is another word
            for "observation".

        Examples
        --------
        >>> from posterity.likelihoods import Gaussian
        >>> model = BayesianGeneralizedLinear(Gaussian(4.0), fit_intercept=False, prior_precision=4)
        >>> model.fit([[1.0]], [0.0]).predict_interval([[0.0]]).round(2)
        array([[-0.98,  0.98]])
        """
        predictive: RowDistribution
        if of == "eta":
            predictive = self._eta(X, offset)
        elif of in ("observation", "target"):
            predictive = self._predictive(X, offset)
        elif of == "mean":
            predictive = self._compute_expected(self._eta_distribution(X, offset))
        else:
            raise ValueError(f"of is {of!r}: it must be 'observation', 'mean' or 'eta'")
        return interval_ends(predictive, level)

    def predict_mean_distribution(
        self, X: Any, *, offset: ArrayLike | None = None
    ) -> RowDistribution:
        """Distribution of the expected target at ``X`` (n, m), which must rise with eta.

        A count's rate, the probability of a 1: what is not known of it. Its mean is ``predict``.

        Examples
        --------
        >>> from posterity.likelihoods import Poisson
        >>> model = BayesianGeneralizedLinear(Poisson()).fit([[0], [1], [2]], [1, 3, 8])
        >>> rate = model.predict_mean_distribution([[1.0]])
        >>> bool(abs(rate.cdf(3.0)[0] + rate.sf(3.0)[0] - 1.0) < 1e-12)
        True
        """
        return self._compute_expected(self._eta_distribution(X, offset))

    @accept_other_names
    def sample_mean(
        self,
        X: Any,
        size: int,
        rng: int | np.random.Generator | None = None,
        *,
        offset: ArrayLike | None = None,
    ) -> Array:
        """Draw ``size`` times the expected target at all rows of ``X`` (n, m): (size, n).

        Each draw is of one coefficient vector, intercept included, so that rows belong together.

        Examples
        --------
        >>> from posterity.likelihoods import Poisson
        >>> model = BayesianGeneralizedLinear(Poisson()).fit([[0], [1], [2]], [1, 3, 8])
        >>> model.sample_mean([[0.0], [3.0]], 5, rng=0).shape
        (5, 2)
        """
        return self._get_learned_likelihood().mean(self._eta_draws(X, size, rng, offset))

    def predict_one(
        self, x: ArrayLike | Mapping[str, float], *, offset: float | None = None
    ) -> float:
        """Expected target at one row ``x``, as of :meth:`predict`; before any data, the prior's.

        Examples
        --------
        >>> from posterity.likelihoods import Bernoulli
        >>> round(BayesianGeneralizedLinear(Bernoulli()).predict_one([3.0]), 6)
        0.5
        """
        model = self if self._posterior_or_none is not None else self._make_from_row(x)
        posterior: Any = model._posterior
        columns, offsets = model._columns(model._path.values(x)), model._eta_offsets(offset, 1)
        return float(expect(posterior.predictive(columns, offsets))[0])

    # ---- inner -----------------------------------------------------------------------------------

    def _eta_offsets(self, added: ArrayLike | None, n: int) -> Array | None:
        return read_offset(added, n)

    def _predictive(self, X: Any, added: ArrayLike | None) -> Any:
        """Distribution of new targets at the rows of ``X``."""
        posterior: Any = self._posterior
        columns = self._read_points(X)
        return posterior.predictive(columns, self._eta_offsets(added, len(columns)))


@dataclass(eq=False, repr=False)
class BayesianGeneralizedLinear(PredictsSurvival, GeneralizedRegression):
    """Generalised linear regression with any likelihood and a Gaussian prior, online or in batches.

    ``y ~ likelihood(eta)`` with ``eta = intercept + x . coef + offset``. Each row is learned as a
    Gaussian row that stands for its likelihood, so that learning online, forgetting, weights and
    the evidence work as in :class:`posterity.BayesianLinearRegression`.

    Parameters
    ----------
    likelihood : Likelihood or str
        A name, as "bernoulli", "weibull" or "tweedie:1.6"; one of
        :mod:`posterity.likelihoods`, as ``Bernoulli("probit")``; or your own. What it has as
        parameters (a scale, a dispersion) is taken as known, but for those that are left open, as
        in ``Gamma()``: these are learned.
    prior_mean : float, (m,) array or dict, default 0.0
        Prior mean of the coefficients.
    prior_precision : "auto", "ard", strategy, float, (m,) or (m, m) array, or dict, default "auto"
        Prior precision of the coefficients, in 1 / coefficient units squared; "auto" learns it
        from the evidence. 0.0 is a flat prior: maximum likelihood.
    prior : dict of posterity.distributions.Normal, optional
        Both in one, by feature name, as in ``{"price": Normal(-1.0, 0.5)}``. Features that neither
        it nor a dict of precisions names have a flat prior.
    fit_intercept : bool, default True
        Whether to learn an intercept. Its prior is flat in :meth:`fit`; online the first row is met
        with Normal(0, 10^2), or with what the target tells where eta is its location.
    approximation : "auto", "laplace" or "moments", default "auto"
        The Gaussian that stands for a row. "laplace": at the mode, so that ``fit`` ends in the mode
        (maximum a posteriori). "moments": of equal moments, so that it ends near the posterior mean
        (expectation propagation). "auto" is "moments" in all that comes online. In ``fit``, and of
        the first rows of a stream, which are fitted together again (with "moments", too), it
        averages each row's likelihood over the posterior (a variational approximation, Opper and
        Archambeau 2009): with a canonical link and an intercept, the expected targets of the rows
        learned then add up to the targets. Where a log density has a kink, it is "moments".
    basis : transformer from posterity.basis, optional
        Functions of the features to be linear in.
    forgetting : strategy from posterity.forgetting, optional
        How old rows lose weight. None: they never do.
    categorical_features, missing
        As in :class:`posterity.BayesianLinearRegression`.

    Attributes
    ----------
    coef_ : (m,) array
        Posterior mean (with "laplace" the mode) of the coefficients, in units of eta per unit.
    intercept_ : float
    posterior_ : MultivariateNormal, or MultivariateMixture where the prior is learned
        Joint posterior of [intercept, coefficients].
    prior_precision_, log_evidence_, n_observations_, n_effective_, forgotten_
        As in :class:`posterity.BayesianLinearRegression`. ``log_evidence_`` compares likelihoods,
        too, and values of their parameters.

    Raises
    ------
    TypeError, ValueError
        When it learns, if ``likelihood`` is none, or a name that there isn't.

    Examples
    --------
    Of ten trials each, how many succeed:

    >>> import numpy as np
    >>> from dataclasses import dataclass
    >>> from scipy import special, stats
    >>> from posterity.likelihoods import Likelihood
    >>> @dataclass(frozen=True)
    ... class Successes(Likelihood):
    ...     trials: int
    ...     def distribution(self, eta):
    ...         return stats.binom(self.trials, special.expit(eta))
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = rng.binomial(10, special.expit(0.5 + X @ [1.0, -0.5]))
    >>> model = BayesianGeneralizedLinear(Successes(10)).fit(X, y)
    >>> model.coef_.round(1), round(model.intercept_, 1)
    (array([ 1. , -0.5]), 0.5)
    >>> model.predict([[0.0, 0.0]]).round(0)
    array([6.])
    >>> model.predict_interval([[0.0, 0.0]], level=0.9)
    array([[4., 9.]])
    """

    likelihood: Likelihood | str

    def _likelihood(self) -> Likelihood:
        return read_likelihood(self.likelihood)
