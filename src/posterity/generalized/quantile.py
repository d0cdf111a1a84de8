"""Quantile regression, Bayesian and online."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import Array
from posterity.distributions import Mixture, Normal
from posterity.distributions._limits import interval_ends
from posterity.generalized._asymmetric_laplace_noise import AsymmetricLaplaceNoise
from posterity.generalized._heavy_tailed_regression import HeavyTailedRegression
from posterity.generalized._quantile_posterior import QuantilePosterior
from posterity.generalized._quantiles_posterior import QuantilesPosterior
from posterity.posteriors import LinearPosterior

# Where fewer rows are expected beyond the quantile, they don't tell how far away it is.
FEWEST_BEYOND = 1.0 - 1e-9


@dataclass(kw_only=True, eq=False, repr=False)
class BayesianQuantileRegression(HeavyTailedRegression):
    """Quantile regression: estimates the value that the target stays below with probability q.

    Parameters
    ----------
    quantile : float or increasing list of floats, default 0.5
        q, in (0, 1); 0.5 is the median. Several are learned side by side, and predicted without
        crossings: there is a column for each in what is predicted, and a row in ``coef_``.
    prior_mean, prior_precision, prior, fit_intercept, basis, forgetting, categorical_features,
    missing
        As in :class:`posterity.BayesianLinearRegression`; a prior precision given as a number is
        relative to 1 / noise_scale_^2 where the scale is learned. "auto" learns one scale for all
        coefficients, and uses its best value.
    noise_scale : float, optional
        Scale b of the working likelihood, in units of the target; None: learned.

    Attributes
    ----------
    coef_, intercept_, prior_precision_, n_observations_, n_effective_
        As in :class:`posterity.BayesianLinearRegression`.
    posterior_ : MultivariateNormal
        Joint posterior of [intercept, coefficients], with the adjusted covariance; of several
        quantiles a :class:`posterity.posteriors.TargetCoefficients`, which has one for each.
    noise_scale_ : float
        Scale b: the mean check loss; of several quantiles (q,).
    log_evidence_ : float
        Of the working likelihood: after :meth:`fit` Laplace's approximation of log p(y | X) with
        the scale plugged in; of rows that came one after another, the sum of their log predictive
        densities; both together where rows came after a fit. Of one quantile only.

    Notes
    -----
    Targets are worked with as if they had asymmetric Laplace noise (Yu and Moyeed 2001), whose mode
    with a flat prior is the quantile regression of Koenker and Bassett (1978): ``fit`` finds it
    exactly, by an interior-point method. Nobody believes in that noise: the width of its posterior
    depends on its scale, and means nothing. So the covariance S is adjusted to
    q (1 - q) / b^2 S X'X S, which makes intervals valid whatever the noise (Yang, Wang and He 2016,
    eq. 5); the density at the quantile that b stands for is that of the rows nearest to it
    (Siddiqui 1960), and of few rows the intervals are as much wider as Student's are. In
    simulations 95% intervals held 94% or more after ``fit`` (n from 50, skewed noise, q from .1 to
    .95), and 91% or more after one pass over 200 rows. What is learned row by row is matched by
    moments, in order; the first 64 rows (4 for each coefficient, if that is more) are kept, and
    fitted anew whenever half as many more have come, and more often while there are fewer than 4
    rows a coefficient. Of the quantile q they are 1 / (4 q (1 - q)) times as many, at most 4,096.
    Rows can be unlearned while all are kept.

    Several quantiles are models of their own, whose predictions, and the ends of their intervals,
    are sorted at each row (Chernozhukov, Fernandez-Val and Galichon 2010): that never takes them
    further from the true quantiles, and no interval holds less. :meth:`model_of` gives one of them,
    unsorted. There is no distribution of all: what needs one, as ``predict_then_learn`` and scores
    do, takes a model of one quantile.

    Examples
    --------
    >>> import numpy as np
    >>> from posterity.generalized import BayesianQuantileRegression
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(size=(2000, 1))
    >>> y = 1.0 + x[:, 0] + (1.0 + x[:, 0]) * rng.normal(size=2000)
    >>> model = BayesianQuantileRegression(quantile=0.9).fit(x, y)
    >>> share_below = np.mean(y <= model.predict(x))
    >>> bool(abs(share_below - 0.9) < 0.01)
    True
    >>> model = BayesianQuantileRegression(quantile=[0.1, 0.5, 0.9]).fit(x, y)
    >>> model.predict(x[:2]).shape
    (2, 3)
    """

    _label_of_outputs: ClassVar[str] = "quantile"

    quantile: float | Sequence[float] = 0.5

    def model_of(self, quantile: float) -> Self:
        """A model of one of the quantiles, as it was learned: a copy.

        Raises
        ------
        ValueError
            If it is not one of them.

        Examples
        --------
        >>> model = BayesianQuantileRegression(quantile=[0.1, 0.9])
        >>> model = model.fit([[0], [1], [2], [3]], [0.1, 1.0, 1.9, 3.1])
        >>> model.model_of(0.9)
        BayesianQuantileRegression(quantile=0.9): 4 rows, 1 feature
        """
        self._posterior  # noqa: B018 - not fitted comes first
        quantiles = self._quantiles()
        if quantile not in quantiles:
            raise ValueError(
                f"quantile is {quantile}: give one that the model has learned, "
                f"{', '.join(map(str, quantiles))}"
            )
        return self._models()[quantiles.index(quantile)]

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """D^2 of the check loss: the share of it that the features explain, at most 1.

        Of several quantiles their mean.

        Examples
        --------
        >>> model = BayesianQuantileRegression(prior_precision=0.0)
        >>> round(model.fit([[0], [1], [2]], [1, 3, 5]).score([[0], [1], [2]], [1, 3, 5]), 6)
        1.0
        """
        from sklearn.metrics import d2_pinball_score

        columns = np.reshape(self.predict(X), (-1, len(self._quantiles()))).T
        scores = [
            d2_pinball_score(y, predicted, sample_weight=sample_weight, alpha=quantile)
            for quantile, predicted in zip(self._quantiles(), columns, strict=True)
        ]
        return float(np.mean(scores))

    def predict_quantile(self, X: Any) -> Normal | Mixture:
        """Posterior of the quantile at ``X`` (n, m); infinitely wide where it is not determined.

        Examples
        --------
        >>> model = BayesianQuantileRegression().fit([[0], [1], [2], [3]], [0.1, 1.0, 1.9, 3.1])
        >>> model.predict_quantile([[1.0]]).mean().shape
        (1,)
        """
        columns = self._read_points(X)
        return self._posterior.mixture_of(lambda one: one.quantile_distribution(columns))

    def predict_interval(  # type: ignore[override]
        self, X: Any, level: float = 0.95, *, of: Literal["quantile", "observation"] = "quantile"
    ) -> Array:
        """(n, 2) ends of the interval that holds the quantile itself with this probability.

        Of several quantiles (n, q, 2). With ``of="observation"`` that of a new observation under
        the asymmetric Laplace noise that quantile regression works with, which is not what the
        targets' noise is like.

        Where fewer than one row is expected beyond the quantile, as at 0.99 of 50 rows, nothing
        tells how far away it is: that end is infinite.

        Examples
        --------
        >>> model = BayesianQuantileRegression().fit([[0], [1], [2], [3]], [0.1, 1.0, 1.9, 3.1])
        >>> model.predict_interval([[1.0]]).shape
        (1, 2)
        """
        if of not in ("quantile", "observation"):
            raise ValueError(f"of is {of!r}: it must be 'quantile' or 'observation'")
        if self._has_single_quantile and of == "quantile":
            ends = interval_ends(self.predict_quantile(X), level)
            (q,), n = self._quantiles(), self._posterior.n_effective
            open_ = np.array([n * q, n * (1.0 - q)]) < FEWEST_BEYOND
            return np.where(open_, [-np.inf, np.inf], ends)
        if of == "observation":
            return interval_ends(self.predict_distribution(X), level)
        return np.sort([one.predict_interval(X, level) for one in self._models()], axis=0).swapaxes(
            0, 1
        )

    def predict(  # type: ignore[override]
        self, X: Any, return_std: bool = False
    ) -> Array | tuple[Array, Array]:
        """The quantile at ``X`` (n, m), and with ``return_std`` its own sd as well.

        Of several quantiles (n, q), none below the one before it.

        Examples
        --------
        >>> model = BayesianQuantileRegression(prior_precision=0.0)
        >>> model.fit([[0], [1], [2]], [1, 3, 5]).predict([[3.0]]).round(6)
        array([7.])
        """
        if not return_std:
            return super().predict(X)
        if self._has_single_quantile:
            quantiles = self.predict_quantile(X)
            return quantiles.mean(), quantiles.std()
        each = [one.predict_quantile(X) for one in self._models()]
        means = np.column_stack([one.mean() for one in each])
        order = np.argsort(means, axis=1)
        stds = np.column_stack([one.std() for one in each])
        return np.take_along_axis(means, order, axis=1), np.take_along_axis(stds, order, axis=1)

    # ---- inner -----------------------------------------------------------------------------------

    _kind = QuantilePosterior

    def _means_and_variances(
        self, X: Any, size: int, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        raise ValueError(
            "R^2 is of means, and this model learns a quantile: score(X, y) is its D^2"
        )

    @property
    def _has_single_quantile(self) -> bool:
        return np.ndim(self.quantile) == 0

    def _quantiles(self) -> tuple[float, ...]:
        """Return all quantiles; raises ``ValueError`` unless they increase from the lowest."""
        try:
            found = np.asarray(self.quantile, dtype=np.float64)
        except (TypeError, ValueError):
            found = np.empty(0)
        if found.ndim > 1 or not found.size:
            raise ValueError(
                f"quantile is {self.quantile!r}: it must be a number, as in 0.9, or a list of them"
            )
        for one in found.ravel().tolist():
            if not 0.0 < one < 1.0:
                raise ValueError(f"quantile is {one}: it must lie between 0 and 1, as in 0.9")
        if not (np.diff(found.ravel()) > 0.0).all():
            raise ValueError(
                f"quantile is {self.quantile!r}: several must increase, as in [0.1, 0.5, 0.9]"
            )
        return tuple(found.ravel().tolist())

    def _outputs(self) -> list[str]:
        return (
            [] if self._has_single_quantile else [f"{quantile:g}" for quantile in self._quantiles()]
        )

    def _working_noise(self) -> AsymmetricLaplaceNoise:
        return AsymmetricLaplaceNoise(*self._quantiles())

    def _forgetting(self) -> LinearPosterior:
        quantiles = self._quantiles()
        if self._has_single_quantile:
            return super()._forgetting()
        each = tuple(self._make_single_quantile(quantile)._forgetting() for quantile in quantiles)
        return cast(LinearPosterior, QuantilesPosterior(quantiles, each))

    def _models(self) -> list[Self]:
        """A model of each quantile, with a copy of what is known of it."""
        if self._has_single_quantile:
            return [copy.copy(self)]
        quantiles = cast(QuantilesPosterior, self._posterior).copy()
        models = [self._make_single_quantile(quantile) for quantile in quantiles.quantiles]
        for model, posterior in zip(models, quantiles.each, strict=True):
            model._posterior_or_none, model._now = posterior, self._now
        return models

    def _make_single_quantile(self, quantile: float) -> Self:
        """A model of one quantile that has learned nothing, of these features and this basis."""
        alone = type(self)(**{**self.get_params(deep=False), "quantile": quantile})
        alone._set_columns_of(self)
        return alone
