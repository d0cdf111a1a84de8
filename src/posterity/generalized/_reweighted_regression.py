"""What robust and quantile regression share: an estimator around a reweighted posterior."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posterity.generalized._noise_tally import NoiseFading
from posterity.generalized._reweighted import ReweightedPosterior
from posterity.generalized._working_noise import WorkingNoise
from posterity.linear.inputs import explained, read_rows, read_times, refuse_no_weight
from posterity.linear.regression import BayesianLinearRegression
from posterity.noise import KnownNoise
from posterity.posteriors import LinearPosterior
from posterity.transaction import all_or_nothing

Array = NDArray[np.float64]


class ReweightedRegression(BayesianLinearRegression):
    """A linear model whose rows are reweighted; see the two that there are."""

    noise_scale: float | None

    # ---- learning --------------------------------------------------------------------------------

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        times: ArrayLike | None = None,
    ) -> Self:
        """Forget everything and learn these rows at once: their mode, iterated to convergence.

        With ``forgetting`` too: rows count by their age.

        Parameters
        ----------
        X : (n, m) array or data frame
        y : (n,) array
        sample_weight : (n,) array, optional
            Weights >= 0; weight 2 is the row twice.
        times : (n,) array, optional
            When each row came, not decreasing; what ``forgetting`` counts its time in.

        Raises
        ------
        ValueError
            If a value is not finite or not a number, a weight is negative, shapes disagree, or a
            parameter is out of its range; the message names the row and column.
        """
        refuse_no_weight(sample_weight)
        fresh = self._fresh()
        X, y, weights = read_rows(fresh, X, y, sample_weight, reset=True)
        elapsed, fresh._now = read_times(times, len(X), weights, None)
        fresh._begin(X)
        with explained(fresh, X, y):
            fresh._reweighted.settle(fresh._columns(X), y, weights, elapsed)
        return self._take_over(fresh)

    def learn_one(
        self,
        x: ArrayLike | Mapping[str, float],
        y: float,
        weight: float = 1.0,
        time: float | None = None,
    ) -> Self:
        """Learn one row: where nothing is forgotten, in some twenty microseconds.

        The first 64 rows, which are fitted anew now and then, take about a millisecond each.

        Parameters
        ----------
        x : (m,) array, or mapping of feature names to numbers
        y : float
        weight : float, default 1.0
        time : float, optional
            When the row came; see ``times`` of :meth:`fit`.

        Raises
        ------
        ValueError
            As :meth:`fit`; also when a mapping lacks a feature or has one too many.

        Examples
        --------
        >>> from posterity import RobustBayesianRegression
        >>> model = RobustBayesianRegression()
        >>> model.learn_one({"age": 1.0}, 3.0).learn_one({"age": 2.0}, 5.0).n_observations_
        2.0
        """
        return super().learn_one(x, y, weight, time)

    # ---- reading ---------------------------------------------------------------------------------

    @property
    def noise_scale_(self) -> float:
        """Scale of the noise, given or learned, in units of the target."""
        return float(self._known.average_of(lambda one: one.tally.scale)) * self._scale_unit

    # ---- inner -----------------------------------------------------------------------------------

    # The noise's own scale in units of the one inside.
    _scale_unit = 1.0

    @property
    def _reweighted(self) -> ReweightedPosterior:
        return cast(ReweightedPosterior, self._known)

    def _working_noise(self) -> WorkingNoise:
        raise NotImplementedError  # each model says

    def _before_data(self) -> LinearPosterior:
        scale = _checked_scale(self.noise_scale)
        if scale is not None:
            scale /= self._scale_unit
        # Rows and prior are relative to the noise; one node of the prior's precision is enough.
        inner = super()._before_data().single()
        posterior = self._kind(inner, self._working_noise(), scale, NoiseFading(None))
        return cast(LinearPosterior, posterior)

    _kind: ClassVar[type[ReweightedPosterior]] = ReweightedPosterior

    def _noise(self) -> KnownNoise:
        """The noise in whose units the prior is stated."""
        if self.noise_scale is None:
            return KnownNoise(1.0)
        return KnownNoise(_checked_scale(self.noise_scale) ** -2.0)  # type: ignore[operator]


def _checked_scale(noise_scale: float | None) -> float | None:
    if noise_scale is not None and not 0.0 < noise_scale < math.inf:
        raise ValueError(
            f"noise_scale is {noise_scale}: it must be positive and finite, or None to learn it"
        )
    return noise_scale
