"""Base of regressions of counts: exposure, rates, and predictions of whole numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Tags

from posterity.aliases import Array
from posterity.distributions.log_normal_counts import is_vague
from posterity.distributions.row_distribution import RowDistribution
from posterity.generalized.generalized_linear import GeneralizedRegression
from posterity.linear.learning import LearnsRates
from posterity.linear.offsets import RateOffsets
from posterity.other_names import accept_other_names

# Beyond this exp overflows.
LARGEST_LOG = 700.0


class CountRegression(LearnsRates, GeneralizedRegression):
    """A count of the rate ``exposure * exp(offset + intercept + x . coef)``.

    Its subclasses say which likelihood, in place of a parameter.
    """

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    # ---- learning --------------------------------------------------------------------------------

    def learn_one(
        self,
        x: ArrayLike | Mapping[str, float],
        y: Any,
        weight: float = 1.0,
        time: float | None = None,
        **how: Any,
    ) -> Self:
        """Learn one row, in a microsecond or two; with an exposure in half a millisecond.

        Parameters as in :meth:`posterity.BayesianLinearRegression.learn_one`, and the row's
        ``offset`` and ``exposure`` as in :meth:`fit`.

        Examples
        --------
        >>> from posterity import BayesianPoissonRegression
        >>> model = BayesianPoissonRegression().learn_one([0.0], 3, exposure=10.0)
        >>> model.n_observations_
        1.0
        """
        if not how:
            return super().learn_one(x, y, weight, time)
        self._learn_row(x, y, weight, time, RateOffsets.of_row(how))
        return self

    # ---- predicting ------------------------------------------------------------------------------

    def predict(
        self, X: Any, *, offset: ArrayLike | None = None, exposure: ArrayLike | None = None
    ) -> Array:
        """(n,) expected counts: the mean of :meth:`predict_distribution`.

        Averaged over what is not known of the coefficients. Where that is infinite, as where
        nothing is known of a rate, it is the rate at ``coef_``.

        Examples
        --------
        >>> from posterity import BayesianPoissonRegression
        >>> model = BayesianPoissonRegression().fit([[0], [1]], [1, 3])
        >>> model.predict([[0]], exposure=[2.0]).shape
        (1,)
        """
        posterior: Any = self._posterior
        columns = self._read_points(X)
        offsets = RateOffsets(offset, exposure).read(len(columns))
        expected = np.array(posterior.predictive(columns, offsets).mean())
        vague = np.isinf(expected)
        if vague.any():
            eta = posterior.predict_mean(columns[vague])
            eta = eta if offsets is None else eta + offsets[vague]
            expected[vague] = np.exp(np.minimum(eta, LARGEST_LOG))
        return expected

    def predict_interval(  # type: ignore[override]
        self,
        X: Any,
        level: float = 0.95,
        *,
        offset: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
        of: Literal["observation", "mean", "count", "rate"] = "observation",
    ) -> Array:
        """(n, 2) ends of the central interval of a new count, or of the expected count.

        Parameters
        ----------
        X : (n, m) array or data frame
        level : float, default 0.95
        offset, exposure : (n,) array or float, optional
        of : "observation" or "mean"
            The interval of the mean, the rate, knows the coefficients' uncertainty only; a count
            varies more. "count" and "rate" are other words for the two.

        Examples
        --------
        >>> from posterity import BayesianPoissonRegression
        >>> model = BayesianPoissonRegression().fit([[0], [1], [2]], [1, 3, 8])
        >>> low, high = model.predict_interval([[1.0]], level=0.9)[0]
        >>> bool(low < 3.0 < high)
        True
        """
        if of not in ("observation", "mean", "count", "rate"):
            raise ValueError(f"of is {of!r}: it must be 'observation' or 'mean'")
        if of in ("observation", "count"):
            return super().predict_interval(X, level, offset=RateOffsets(offset, exposure))
        with np.errstate(over="ignore"):
            return np.exp(
                super().predict_interval(X, level, offset=RateOffsets(offset, exposure), of="eta")
            )

    def predict_mean_distribution(
        self, X: Any, *, offset: ArrayLike | None = None, exposure: ArrayLike | None = None
    ) -> RowDistribution:
        """Posterior distribution of the expected counts at ``X`` (n, m).

        Examples
        --------
        >>> from posterity import BayesianPoissonRegression
        >>> model = BayesianPoissonRegression().fit([[0], [1], [2]], [1, 3, 8])
        >>> rate, count = model.predict_mean_distribution([[1]]), model.predict_distribution([[1]])
        >>> bool((rate.std() < count.std()).all())
        True
        """
        return super().predict_mean_distribution(X, offset=RateOffsets(offset, exposure))

    @accept_other_names
    def sample_mean(
        self,
        X: Any,
        size: int,
        rng: int | np.random.Generator | None = None,
        *,
        offset: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
    ) -> Array:
        """Draw ``size`` times the expected counts at all rows of ``X`` (n, m): (size, n).

        Each draw is of one coefficient vector, intercept included, so that rows belong together.

        Examples
        --------
        >>> from posterity import BayesianPoissonRegression
        >>> model = BayesianPoissonRegression().fit([[0], [1], [2]], [1, 3, 8])
        >>> bool((model.sample_mean([[0.0], [3.0]], 5, rng=0) > 0.0).all())
        True
        """
        return super().sample_mean(X, size, rng, offset=RateOffsets(offset, exposure))

    def predict_one(self, x: ArrayLike | Mapping[str, float], **how: Any) -> float:
        """Expected count at one row ``x``, as of :meth:`predict`; before any data, the prior's.

        Its ``offset`` and ``exposure`` are numbers.

        Examples
        --------
        >>> from posterity import BayesianPoissonRegression
        >>> BayesianPoissonRegression().predict_one([3.0])
        1.0
        """
        try:
            believe = self._fast_predict_one
        except AttributeError:
            model = self if self._posterior_or_none is not None else self._make_from_row(x)
            if not model._has_fast_predict_one:
                asked = RateOffsets.of_row(how)._asdict()
                return float(model.predict(model._row(x), **asked)[0])
            believe = model._open_fast_method("_fast_predict_one", "believe")
        believed = cast(tuple[float, float] | None, believe(x))
        added = RateOffsets.of_row(how).read_one() if how else 0.0
        if believed is None or added is None:
            return float(self.predict(self._row(x), **how)[0])
        mean, variance = believed[0] + added, believed[1]
        log_rate = mean + 0.5 * variance
        return math.exp(min(mean if is_vague(log_rate, variance) else log_rate, LARGEST_LOG))

    # ---- inner -----------------------------------------------------------------------------------

    def _means_and_variances(
        self,
        X: Any,
        size: int,
        rng: np.random.Generator,
        *,
        offset: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
    ) -> tuple[Array, Array]:
        return super()._means_and_variances(X, size, rng, offset=RateOffsets(offset, exposure))

    def _eta_offsets(self, added: Any, n: int) -> Array | None:
        return None if added is None else added.read(n)
