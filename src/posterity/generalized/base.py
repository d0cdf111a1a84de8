"""Base of estimators of classes and counts, beyond :class:`LinearModel`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, cast

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import Array
from posterity.distributions.row_distribution import RowDistribution
from posterity.distributions.transformed import Transformed
from posterity.factor import Rows
from posterity.factor.usable import check_rows
from posterity.kernel import SitePath
from posterity.likelihoods import Likelihood
from posterity.linear.estimator import LinearEstimator, Way, learn
from posterity.linear.inputs import read_target
from posterity.linear.targets import fill_missing_targets
from posterity.noise import KnownNoise, Noise
from posterity.posteriors import LinearPosterior
from posterity.posteriors.generalized import GeneralizedPosterior

Approximation = Literal["auto", "laplace", "moments"]

# Levels that draws are moved between, from one distribution to another.
WITHIN = 1e-15, 1.0 - 1e-15


@dataclass(kw_only=True, eq=False, repr=False)
class GeneralizedModel(LinearEstimator):
    """A scikit-learn estimator around one :class:`GeneralizedPosterior`."""

    # Rows are learned in several passes, each at the cost of the columns squared.
    _n_waves: ClassVar[int | None] = 60

    _expects_eta: ClassVar[bool] = False
    _noise_parameter: ClassVar[str | None] = None

    approximation: Approximation = "auto"

    @property
    def noise_precision_(self) -> float:
        """Raises: the noise is part of the likelihood."""
        raise AttributeError(
            f"{type(self).__name__} has no noise_precision_: its likelihood has no Gaussian noise"
        )

    # ---- inner -----------------------------------------------------------------------------------

    def _likelihood(self) -> Likelihood:
        raise NotImplementedError

    def _get_learned_likelihood(self) -> Likelihood:
        """The likelihood with the mean of the parameter that was learned."""
        likelihood = self._likelihood()
        if not self._learns_parameter:
            return likelihood
        return likelihood.with_parameter(
            self._posterior.average_of(lambda one: one.statistics.phi.value)
        )

    def _compute_expected(self, eta: RowDistribution) -> RowDistribution:
        """Distribution of the mean of targets, from that of eta."""
        likelihood = self._get_learned_likelihood()
        return Transformed(eta, likelihood.mean, likelihood.link_function)

    def _open_beliefs(self) -> tuple[SitePath | None, float] | None:
        """The path that tells mean and variance of eta until more is learned, and the mean's sign.

        As a stream's next rows are predicted by one triangle. No path where many rows came
        together, of which moments tell as much; None where eta is not normal.
        """
        if self._learns_parameter:
            return None
        if self._has_fast_predict_one:
            return cast(SitePath, self._open_row_path()), 1.0
        return (None, 1.0) if self._posterior.predicts_normally else None

    def _match_predictors(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance (n,) of eta at rows, matched to what all rows say."""
        columns, shift = self._prepare_rows(X, None)
        known: Any = self._posterior
        mean, variance = known.marginal.linear_moments(columns[:, self._offset :])
        return mean + shift, variance

    def _means_and_variances(
        self, X: Any, size: int, rng: np.random.Generator, *, offset: ArrayLike | None = None
    ) -> tuple[Array, Array]:
        likelihood, eta = self._get_learned_likelihood(), self._eta_draws(X, size, rng, offset)
        around = likelihood.predictive(eta, np.zeros_like(eta))
        return likelihood.mean(eta), np.asarray(around.var()).mean(axis=1)

    def _noise(self) -> Noise:
        return KnownNoise(1.0)  # the rows that stand for observations are in units of their own

    def _check_approximation(self) -> None:
        if self.approximation not in ("auto", "laplace", "moments"):
            raise ValueError(
                f"approximation is {self.approximation!r}: it must be 'auto', 'laplace' or "
                "'moments'"
            )

    # True if the first rows of a stream are kept, to be fitted together again.
    _keeps_start: ClassVar[bool] = True

    def _before_data(self) -> LinearPosterior:
        inner = super()._before_data()
        self._check_approximation()
        approximation = "moments" if self.approximation == "auto" else self.approximation
        likelihood = self._likelihood()
        return GeneralizedPosterior.wrap(
            inner,
            likelihood,
            approximation,
            keeps_start=self._keeps_start,
            learns_parameter=self._learns_parameter,
        )

    @property
    def _learns_parameter(self) -> bool:
        """True if the likelihood's parameter is learned."""
        return self._likelihood().learns_parameter

    @property
    def _numbers_of_target(self) -> int:
        return self._likelihood().n_numbers

    def _read_target(self, y: Any) -> Array:
        numbers = self._numbers_of_target
        return super()._read_target(y) if numbers == 1 else read_target([y], numbers)

    def _update_posterior(self, way: Way, rows: Rows) -> Any:
        rows = replace(rows, X=np.asarray(rows.X))
        check_rows(rows.X, fill_missing_targets(self, rows.y), rows.weights)
        posterior: Any = self._posterior
        if self._learns_parameter and way == "append" and len(rows) > 1:
            # Moments of fewer rows than features let prior and parameter run away.
            way = "append" if posterior.n_observations else "fit"
        if way == "fit" and self.approximation == "auto":
            posterior = posterior.with_averages()
        return learn(posterior, way, rows)

    def _correct(
        self, columns: Array, normal: Any, shift: Array | float = 0.0, *, of_rows: bool = True
    ) -> RowDistribution:
        return self._posterior.correct(columns, normal, shift, of_rows=of_rows)

    def _eta_draws(
        self, X: Any, size: int, rng: int | np.random.Generator | None, added: ArrayLike | None
    ) -> Array:
        """As of all linear models; where a row's eta is not normal, draws keep their ranks."""
        draws = super()._eta_draws(X, size, rng, added)
        rows, shift = self._prepare_rows(X, added)
        normal = self._joint().project(rows, shift)
        corrected: Any = self._correct(rows, normal, shift)
        if corrected is normal:
            return draws
        bent = corrected.bent
        levels = np.clip(normal[bent].cdf(draws[:, bent]), *WITHIN)
        draws[:, bent] = corrected[bent].ppf(levels)
        return draws

    def _eta(self, X: Any, added: ArrayLike | None) -> RowDistribution:
        """Distribution of the linear predictor at ``X``; if normal, with the same two moments."""
        posterior: Any = self._posterior
        columns = self._read_points(X)
        return posterior.linear_predictor(columns, self._eta_offsets(added, len(columns)))

    def _ratio(self) -> str:
        return self._likelihood().ratio
