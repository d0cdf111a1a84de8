"""Linear regression with many features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.base import RegressorMixin

from posterity.aliases import Array
from posterity.distributions._limits import interval_ends
from posterity.distributions.mixture import Mixture
from posterity.distributions.row_distribution import RowDistribution
from posterity.likelihoods import Gaussian, Likelihood
from posterity.linear.reader import predict_targets_or_means
from posterity.noise import KnownNoise, LearnedNoise
from posterity.posteriors._wide import hypothesis_weights
from posterity.sparse.base import DiagonalModel
from posterity.sparse.checks import make_row


@dataclass(kw_only=True, eq=False, repr=False)
class DiagonalLinearRegression(RegressorMixin, DiagonalModel):
    """Linear regression for sparse rows with up to millions of features.

    ``y = intercept + x . w + noise``. Each weight has a mean and a variance of its own, and nothing
    is kept of how they depend on each other: a row costs as much as it has active features, and
    memory grows with the features met. With one active feature a row (and no intercept) the answer
    is that of :class:`posterity.BayesianLinearRegression`; the more features meet in a row, the
    more is neglected. For up to a thousand features take that one, which is exact.

    Parameters
    ----------
    prior_precision : "auto" or float, default "auto"
        "auto" learns a prior scale for each column on the way, on values of mean square 1, from
        four starts that are weighed by how well they predict; in ``fit``, scales of more than five
        columns of numbers are Cauchy around one that they share. A number is given for all
        weights, as in :class:`posterity.BayesianLinearRegression`.
    noise_precision : float, optional
        1 / variance of the noise, if it is known. None: learned, and predictions are Student-t.
    noise_prior : (float, float), default (0.0, 0.0)
        Shape and rate of the Gamma prior of a learned noise precision.
    fit_intercept : bool, default True
        Whether to learn an intercept; its prior is flat.
    interactions : 2, list of pairs of columns, or None, default None
        Products of two active features as features of their own: of all, or of chosen columns. A
        pair of columns has a prior scale of its own.
    hash_size : int, optional
        Number features by a hash of their names, "column=level", into so many places, as
        scikit-learn's FeatureHasher does: memory is then bounded, and features may collide. None:
        exactly, in a vocabulary that grows.
    categorical_features : "auto", "all" or list of str, default "auto"
        Columns of a data frame whose values are levels, though they may be numbers. "auto": those
        of text, categories and dates; a list: these as well.
    missing : "error" or "level", default "error"
        What a missing value of these is: refused, or a level of its own, "missing".
    forgetting : Stabilized, optional
        How old rows lose weight; the prior does not. None: they never do.

    Attributes
    ----------
    coef_, coef_std_ : (p,) arrays
        Posterior mean and standard deviation of each weight.
    intercept_ : float
    feature_names_ : list of str
    n_features_ : int
        Number of features met so far.
    prior_scales_ : dict
        Prior standard deviation of the weights of each column, of (centred) values of mean square
        1, in units of the noise.
    noise_precision_ : float
    n_observations_, n_effective_ : float

    Notes
    -----
    Rows come as a sparse matrix of SciPy; as a data frame (pandas, Polars, Arrow), whose text and
    categories are levels; as mappings, {"site": "a", "age": 3.0}, where text is a level and keys
    come and go; or as lists of tokens. What is not active is 0. A key never met tells nothing when
    a row is predicted; a level never met of a known column has the column's prior.

    Assumed-density filtering: after each row every weight has its exact posterior mean and variance
    given the row, had all been independent before (Opper 1998; for labels of clicks Graepel et al.
    2010). In one pass the order of rows matters a little, and sorted rows are best shuffled;
    ``fit`` visits rows again. Columns of numbers are centred inside, and their centres follow the
    rows; ``coef_`` and ``intercept_`` are those of values as they come.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> shops, effect = rng.integers(0, 50, size=2000), rng.normal(size=50)
    >>> rows = [{"shop": f"s{shop}"} for shop in shops]
    >>> y = 3.0 + effect[shops] + 0.5 * rng.normal(size=2000)
    >>> model = DiagonalLinearRegression().fit(rows, y)
    >>> model.n_features_, round(model.noise_precision_**-0.5, 1)
    (50, 0.5)
    >>> low, high = model.predict_interval([{"shop": "never seen"}])[0]
    >>> bool(low < 3.0 < high and high - low > 3.0)
    True
    """

    noise_precision: float | None = None
    noise_prior: tuple[float, float] = (0.0, 0.0)

    # ---- predicting ------------------------------------------------------------------------------

    def predict(self, X: Any, return_std: bool = False) -> Array | tuple[Array, Array]:
        """(n,) means of new observations, and with ``return_std`` their standard deviations."""
        if return_std:
            predictive = self.predict_distribution(X)
            return predictive.mean(), predictive.std()
        return self._match_eta(X)[0]

    def predict_distribution(self, X: Any) -> RowDistribution:
        """Distribution of new observations, one a row: Normal or StudentT, or a mixture of them."""
        mean, variance = self._eta(X)
        return self._predictive(mean, variance, *self._noise_and_weights)

    def predict_mean_distribution(self, X: Any) -> RowDistribution:
        """Distribution of the expected target: what is not known of it, without the noise.

        Examples
        --------
        >>> model = DiagonalLinearRegression(noise_precision=1.0, fit_intercept=False)
        >>> model = model.partial_fit([["a"]], [1.0])
        >>> expected = model.predict_mean_distribution([["a"]])
        >>> bool(expected.std() < model.predict_distribution([["a"]]).std())
        True
        """
        mean, variance = self._eta(X)
        # As of a new observation without its own noise, the 1.
        return self._predictive(mean, variance - 1.0, *self._noise_and_weights)

    def predict_interval(
        self, X: Any, level: float = 0.95, *, of: Literal["observation", "mean"] = "observation"
    ) -> Array:
        """(n, 2) ends of the central interval that holds a new observation with this probability.

        With ``of="mean"`` that of the expected target, which leaves out the noise.

        Examples
        --------
        >>> model = DiagonalLinearRegression(noise_precision=1.0, fit_intercept=False)
        >>> model.partial_fit([["a"]], [1.0]).predict_interval([["a"]]).shape
        (1, 2)
        """
        return interval_ends(predict_targets_or_means(self, X, of, {}), level)

    def predict_one(self, x: Any) -> float:
        """Mean at one row, a mapping, a list of tokens or a 1-D array; before any data 0.0."""
        if self._posterior_or_none is None:
            return 0.0
        return float(self._match_eta(make_row(x))[0][0])

    @property
    def noise_precision_(self) -> float:
        """The known noise precision, or the posterior mean of the learned one."""
        self._posterior  # noqa: B018
        if self.noise_precision is not None:
            return KnownNoise(self.noise_precision).known_precision
        shape, rate = self._noise_posterior()
        return np.nan if shape <= 0.0 else shape / rate if rate > 0.0 else np.inf

    # ---- inner -----------------------------------------------------------------------------------

    def _likelihood(self) -> Likelihood:
        return Gaussian(1.0 if self.noise_precision is None else self.noise_precision)

    def _noise_prior(self) -> tuple[float, float] | None:
        return None if self.noise_precision is not None else self.noise_prior

    @property
    def _noise_and_weights(self) -> tuple[Array, float, Array]:
        """Weights of the members, and shape and rates (k,) of the noise's precision."""
        posterior = self._posterior
        return posterior.weights, posterior.shape, posterior.rates[: posterior.members]

    def _noise_posterior(self) -> tuple[float, float]:
        weights, shape, rates = self._noise_and_weights
        return shape, float(weights @ rates)

    def _noise_variance(self) -> float:
        if self.noise_precision is not None:
            return 1.0 / self.noise_precision_
        shape, rate = self._noise_posterior()
        return rate / shape if shape > 0.0 else np.inf

    def _unit(self) -> float:
        return 1.0 if self.noise_precision is None else self.noise_precision

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._noise()

    def _predictive(
        self, mean: Array, variance: Array, weights: Array, shape: Any, rates: Array
    ) -> RowDistribution:
        """Mixtures of the members' distributions, of which those are that are given: (n, k)."""
        noise = LearnedNoise() if self.noise_precision is None else self._noise()
        each = mean, variance, *(np.broadcast_to(2.0 * one, mean.shape) for one in (shape, rates))
        # A noise writes into what it is given.
        parts = [noise.predictive(*(one[:, g].copy() for one in each)) for g in range(len(mean.T))]
        return parts[0] if len(parts) == 1 else Mixture(parts, weights)

    def _prediction(self, moments: Array, y: Array, weights: Array | None) -> RowDistribution:
        mean, variance, scores, rates, shape, _ = moments.swapaxes(0, 1)
        return self._predictive(mean, variance, hypothesis_weights(scores), shape, rates)
