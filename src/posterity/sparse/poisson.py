"""Poisson regression with many features."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from posterity.aliases import Array
from posterity.distributions import Normal
from posterity.distributions._limits import interval_ends
from posterity.distributions.log_normal_counts import compute_mean
from posterity.distributions.row_distribution import RowDistribution
from posterity.distributions.transformed import Transformed
from posterity.likelihoods import Likelihood, Poisson
from posterity.likelihoods.counts import MOST_COUNT
from posterity.linear.learning import LearnsRates
from posterity.linear.offsets import RateOffsets
from posterity.linear.reader import predict_targets_or_means
from posterity.posteriors._wide import hypothesis_weights, match_moments
from posterity.sparse.base import DiagonalModel
from posterity.sparse.checks import make_row

# Beyond, a rate is no number.
LARGEST_LOG = 700.0


class DiagonalPoissonRegression(LearnsRates, RegressorMixin, DiagonalModel):
    """Poisson regression for sparse rows with up to millions of features.

    ``y ~ Poisson(exposure * exp(offset + intercept + x . w))``.

    Parameters
    ----------
    prior_precision : "auto" or float, default "auto"
    fit_intercept : bool, default True
        Whether to learn an intercept; its prior is Normal(0, 10^2).
    interactions, hash_size, categorical_features, missing, forgetting
        As in :class:`DiagonalLinearRegression`, as are rows and attributes.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> user = rng.integers(0, 30, size=3000)
    >>> y = rng.poisson(np.exp(0.5 * rng.normal(size=30))[user])
    >>> rows = [{"user": f"u{u}"} for u in user]
    >>> model = DiagonalPoissonRegression().fit(rows, y)
    >>> bool(abs(model.predict(rows).mean() - y.mean()) < 0.05)
    True
    >>> years = rng.gamma(2.0, size=3000)
    >>> claims = rng.poisson(0.1 * years)
    >>> model = DiagonalPoissonRegression().fit(rows, claims, exposure=years)
    >>> model.predict(rows[:1], exposure=20.0).round()
    array([2.])
    """

    # ---- learning --------------------------------------------------------------------------------

    def learn_one(
        self, x: Any, y: Any, weight: float = 1.0, time: float | None = None, **how: Any
    ) -> Self:
        """Learn one row: a mapping, a list of tokens, or a 1-D array.

        Its ``offset`` and ``exposure`` are numbers.

        Examples
        --------
        >>> model = DiagonalPoissonRegression(prior_precision=0.1)
        >>> for _ in range(20):
        ...     model = model.learn_one({"road": "a"}, 4, exposure=2.0)
        >>> model.predict_one({"road": "a"}, exposure=10.0) > 15.0
        True
        """
        added = RateOffsets.of_row(how) if how else None
        return self._learn_one(x, y, weight, time, added)

    # ---- predicting ------------------------------------------------------------------------------

    def predict(
        self, X: Any, *, offset: ArrayLike | None = None, exposure: ArrayLike | None = None
    ) -> Array:
        """(n,) expected counts: the mean of :meth:`predict_distribution`.

        Averaged over what is not known of the weights. Where that is infinite, as where nothing is
        known of a rate, it is the rate at their mean.

        Parameters
        ----------
        X
            Rows as in :meth:`fit`.
        offset, exposure : (n,) array or float, optional
            Of these rows, as in :meth:`fit`.
        """
        mean, variance = self._log_rates(X, offset, exposure)
        expected, flat = compute_mean(mean, variance), np.exp(np.minimum(mean, LARGEST_LOG))
        return np.where(expected < np.inf, expected, flat)

    def predict_mean_distribution(
        self, X: Any, *, offset: ArrayLike | None = None, exposure: ArrayLike | None = None
    ) -> RowDistribution:
        """Distribution of the expected counts: what is not known of them.

        Examples
        --------
        >>> model = DiagonalPoissonRegression().fit([["a"], ["b"], ["a"]], [1, 3, 2])
        >>> expected = model.predict_mean_distribution([["a"]], exposure=3.0)
        >>> bool(expected.std() < model.predict_distribution([["a"]], exposure=3.0).std())
        True
        """
        mean, variance = self._log_rates(X, offset, exposure)
        likelihood = self._likelihood()
        eta = Normal(mean, np.sqrt(variance))
        return Transformed(eta, likelihood.mean, likelihood.link_function)

    def predict_interval(
        self,
        X: Any,
        level: float = 0.95,
        *,
        offset: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
        of: Literal["observation", "mean"] = "observation",
    ) -> Array:
        """(n, 2) ends of the central interval that holds a new count with this probability.

        With ``of="mean"`` that of the expected count.
        """
        how = {"offset": offset, "exposure": exposure}
        return interval_ends(predict_targets_or_means(self, X, of, how), level)

    def predict_one(self, x: Any, **how: Any) -> float:
        """Expected count at one row, a mapping, a list of tokens or a 1-D array.

        Its ``offset`` and ``exposure`` are numbers.
        """
        return float(self.predict(make_row(x), **RateOffsets.of_row(how)._asdict())[0])

    # ---- inner -----------------------------------------------------------------------------------

    def _likelihood(self) -> Likelihood:
        return Poisson()

    def _predictive(self, X: Any, added: RateOffsets) -> RowDistribution:
        return self._likelihood().predictive(*self._log_rates(X, *added))

    def _log_rates(
        self, X: Any, offset: ArrayLike | None, exposure: ArrayLike | None
    ) -> tuple[Array, Array]:
        """Mean and variance (n,) of the log rates at rows."""
        mean, variance = self._match_eta(X)
        added = RateOffsets(offset, exposure).read(len(mean))
        return (mean if added is None else mean + added), variance

    def _target(self, y: Any) -> float | None:
        return float(y) if type(y) is int and 0 <= y <= MOST_COUNT else None

    def _prediction(self, moments: Array, y: Array, weights: Array | None) -> RowDistribution:
        mean, variance, scores, *_ = moments.swapaxes(0, 1)
        return self._likelihood().predictive(
            *match_moments(mean, variance, hypothesis_weights(scores))
        )
