"""Poisson regression with many features."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from posterity.distributions import Normal
from posterity.distributions._limits import interval_ends
from posterity.distributions.log_normal_counts import compute_mean
from posterity.forgetting import Stabilized
from posterity.likelihoods import Likelihood, Poisson
from posterity.likelihoods.counts import MOST_COUNT
from posterity.posteriors.diagonal import hypothesis_weights, match_moments
from posterity.sparse.base import DiagonalModel
from posterity.sparse.checks import Interactions, make_row
from posterity.sparse.parts import Levels

Array = NDArray[np.float64]
# Beyond, a rate is no number.
LARGEST_LOG = 700.0


class DiagonalPoissonRegression(RegressorMixin, DiagonalModel):
    """Poisson regression for sparse rows with up to millions of features.

    Parameters
    ----------
    prior_precision : "auto" or float, default "auto"
    fit_intercept : bool, default True
        Whether to learn an intercept; its prior is Normal(0, 10^2).
    interactions, hash_size, categorical_features, forgetting
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
    """

    def __init__(
        self,
        *,
        prior_precision: float | str = "auto",
        fit_intercept: bool = True,
        interactions: Interactions = None,
        hash_size: int | None = None,
        categorical_features: Levels = "auto",
        forgetting: Stabilized | None = None,
    ) -> None:
        self.prior_precision = prior_precision
        self.fit_intercept = fit_intercept
        self.interactions = interactions
        self.hash_size = hash_size
        self.categorical_features = categorical_features
        self.forgetting = forgetting

    def predict(self, X: Any) -> Array:
        """(n,) expected counts: the mean of :meth:`predict_distribution`.

        Averaged over what is not known of the weights. Where that is infinite, as where nothing is
        known of a rate, it is the rate at their mean.
        """
        mean, variance = self._match_eta(X)
        expected, flat = compute_mean(mean, variance), np.exp(np.minimum(mean, LARGEST_LOG))
        return np.where(expected < np.inf, expected, flat)

    def predict_distribution(self, X: Any) -> Any:
        """Distribution of new counts, one a row."""
        return self._likelihood().predictive(*self._match_eta(X))

    def predict_interval(
        self, X: Any, level: float = 0.95, *, of: Literal["observation", "mean"] = "observation"
    ) -> Array:
        """(n, 2) ends of the central interval that holds a new count with this probability.

        With ``of="mean"`` that of the expected count.
        """
        if of not in ("observation", "mean"):
            raise ValueError(f"of is {of!r}: it must be 'observation' or 'mean'")
        if of == "mean":
            mean, variance = self._match_eta(X)
            ends = interval_ends(Normal(mean, np.sqrt(variance)), level)
            return np.exp(np.minimum(ends, LARGEST_LOG))
        return interval_ends(self.predict_distribution(X), level)

    def predict_one(self, x: Any) -> float:
        """Expected count at one row, a mapping, a list of tokens or a 1-D array."""
        return float(self.predict(make_row(x))[0])

    # ---- inner -----------------------------------------------------------------------------------

    def _likelihood(self) -> Likelihood:
        return Poisson()

    def _target(self, y: Any) -> float | None:
        return float(y) if type(y) is int and 0 <= y <= MOST_COUNT else None

    def _prediction(self, moments: Array, y: Array, weights: Array | None) -> Any:
        some = slice(0, self._posterior.members)
        shares = hypothesis_weights(moments[:, 2, some])
        return self._likelihood().predictive(
            *match_moments(moments[:, 0, some], moments[:, 1, some], shares)
        )
