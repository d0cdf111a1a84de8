"""Regression that outliers can't spoil: Student-t or Laplace noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import ndtr

from posterity.aliases import Array
from posterity.distributions._limits import interval_ends
from posterity.distributions.transformed import NODE_SHARES, NODES
from posterity.generalized._heavy_tailed_regression import HeavyTailedRegression
from posterity.generalized._laplace_noise import DoubleExponentialNoise
from posterity.generalized._learned_tails import LearnedTails, TailSums
from posterity.generalized._noise_tally import NoiseSums
from posterity.generalized._student_t_noise import StudentTNoise
from posterity.generalized._working_noise import WorkingNoise
from posterity.linear.inputs import read_rows, refuse_unusable
from posterity.linear.named import wrap_read_rows
from posterity.linear.reader import predict_targets_or_means


@dataclass(kw_only=True, eq=False, repr=False)
class BayesianRobustRegression(HeavyTailedRegression):
    """Linear regression with heavy-tailed noise, which down-weights outliers, online or in batches.

    ``y = intercept + x . coef + scale * noise``. A row far from its prediction gets a small weight
    (Student-t), or a bounded pull (Laplace), and is then a row like any other.

    Parameters
    ----------
    likelihood : "student_t" or "laplace", default "student_t"
        Distribution of the noise. "laplace" with a flat prior is least absolute deviations.
    df : float, optional
        Degrees of freedom of the Student-t: small expects many outliers, large few. None: learned,
        as the likeliest of 4, 2, 1 and 0.7; where ``noise_scale`` is given, and under ``Adaptive``
        and ``Changepoint``, 4.
    prior_mean, prior_precision, prior, fit_intercept, basis, forgetting, categorical_features,
    missing
        As in :class:`posterity.BayesianLinearRegression`; a prior precision given as a number is
        relative to 1 / s^2 where the scale is learned, s that of noise with 4 degrees of freedom
        and the same core (Laplace: to 4 / noise_scale_^2).
        "auto" learns one scale for all coefficients, and uses its best value.
    noise_scale : float, optional
        Scale of the noise, in units of the target; None: learned.

    Attributes
    ----------
    coef_, intercept_, posterior_, prior_precision_, n_observations_, n_effective_
        As in :class:`posterity.BayesianLinearRegression`.
    df_ : float
        Degrees of freedom, given or learned.
    noise_scale_ : float
        Scale of the Student-t or Laplace noise: its geometric mean over the posterior.
    core_std_ : float
        Standard deviation of the noise without its outliers, taken as normal.
    noise_precision_ : float
        1 / scale^2.
    log_evidence_ : float
        After :meth:`fit` log p(y | X) by expectation propagation, integrated over the scale; of
        rows that came one after another, the sum of their log predictive densities; both together
        where rows came after a fit.

    Notes
    -----
    ``fit`` finds means and covariance of the posterior, the scale's uncertainty included (its prior
    is flat in the logarithm), by expectation propagation (Minka 2001) from a wide and from a narrow
    noise; the evidence says which is right. Means are within 0.1 of their standard deviations, and
    those within 15% (of two coefficients under Laplace noise and 25% outliers 20%), of sampling, up
    to one coefficient for each two rows. Rows more than 300 scales away are left out where the
    evidence says that they are gross errors: nearly half of the rows may be.

    What ``partial_fit``, ``predict_then_learn`` and ``learn_one`` learn is weighed once, in order;
    but the first 64 rows (4 a coefficient, if that is more) are kept and fitted anew, roughly,
    whenever half as many more have come, and more often while there are fewer than 4 rows a
    coefficient, so that an early outlier does no lasting harm.
    These 64 take about a millisecond each, others some ten microseconds. ``unlearn`` takes out what
    a row says now, given all others; while all rows are kept it fits the others anew. Under
    ``forgetting`` the rows of ``fit``, too, count by their age.

    ``predict_distribution`` is for any new row, an outlier too, under the model's noise, while
    ``predict_interval`` is for rows that are no outliers: of those it holds 95%.

    Examples
    --------
    >>> import numpy as np
    >>> from posterity.generalized import BayesianRobustRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = 1.0 + X @ [2.0, -3.0] + rng.normal(scale=0.1, size=200)
    >>> y[::10] += 100.0
    >>> model = BayesianRobustRegression().fit(X, y)
    >>> model.coef_.round(1).tolist(), round(model.intercept_, 1)
    ([2.0, -3.0], 1.0)
    >>> round(model.core_std_, 1)
    0.1
    """

    likelihood: str = "student_t"
    df: float | None = None

    @property
    def df_(self) -> float:
        """Degrees of freedom of Student-t noise, given or learned."""
        if self.likelihood != "student_t":
            raise AttributeError("Laplace noise has no degrees of freedom, and so no df_")
        return float(self._posterior.average_of(lambda one: one.in_force.df))

    @property
    def core_std_(self) -> float:
        """Standard deviation of the noise without its outliers, in units of the target."""
        return float(self._posterior.average_of(lambda one: one.state.tally.core))

    def predict_interval(  # type: ignore[override]
        self,
        X: Any,
        level: float = 0.95,
        *,
        outliers: bool = False,
        of: Literal["observation", "mean"] = "observation",
    ) -> Array:
        """(n, 2) ends of the interval that holds a new observation with this probability.

        By default an observation that is no outlier; with ``outliers`` any, by the model's noise
        (the interval of :meth:`predict_distribution`). With ``of="mean"`` that of the line itself.

        Examples
        --------
        >>> model = BayesianRobustRegression().fit([[0], [1], [2], [3]], [0.1, 1.0, 1.9, 3.1])
        >>> model.predict_interval([[1.0]]).shape
        (1, 2)
        """
        if outliers or of != "observation":
            return interval_ends(predict_targets_or_means(self, X, of, {}), level)
        columns = self._read_points(X)
        predictive = self._posterior.mixture_of(lambda one: one.core_predictive(columns))
        return interval_ends(predictive, level)

    def row_weights(self, X: Any, y: Any) -> Array:
        """(n,) weight of each row: near 1 for rows near the line, small for outliers.

        The posterior mean of the weight that the row has in the noise's scale mixture, given what
        is known of the line. The model keeps no rows, so give those that were learned, or others.

        Parameters
        ----------
        X : (n, m) array or data frame
        y : (n,) array
            Their targets.

        Returns
        -------
        (n,) array
            Under Student-t noise the mean of (df + 1) / (df + e^2 / scale^2), e the error, which is
            1 + 1/df at most (Lange, Little and Taylor 1989). Under Laplace noise, whose pull is
            bounded, that of ``scale / abs(e)``, but 1 at most.

        Examples
        --------
        >>> X, y = np.arange(8.0)[:, None], [0.1, 1.0, 2.1, 30.0, 3.9, 5.1, 5.9, 7.2]
        >>> model = BayesianRobustRegression().fit(X, y)
        >>> (model.row_weights(X, y) < 0.5).nonzero()[0].tolist()
        [3]
        """
        self._posterior  # noqa: B018 - not fitted comes first
        X, targets, _ = read_rows(self, X, y, None, reset=False)
        refuse_unusable(self, X, targets)
        line, scale = self._eta_distribution(wrap_read_rows(self, X), None), self.noise_scale_
        # While the line is undetermined, a row has its full weight.
        known = np.isfinite(line.ppf(0.25)) & np.isfinite(scale)
        weights = np.zeros(len(X))
        for probability, share in zip(ndtr(NODES), NODE_SHARES, strict=True):
            with np.errstate(all="ignore"):
                off = np.abs(targets[:, 0] - line.ppf(probability)) / scale
                weights += share * self._compute_weight_at(off)
        return np.where(known, weights, 1.0)

    @property
    def weights_(self) -> Array:
        """Not here: the model keeps no rows, :meth:`row_weights` takes them."""
        raise AttributeError(
            "there is no weights_, as the model keeps no rows: row_weights(X, y) computes them"
        )

    def _compute_weight_at(self, off: Array) -> Array:
        """Weight of a row that is so many scales off."""
        if self.likelihood == "laplace":
            return 1.0 / np.maximum(off, 1.0)
        return (self.df_ + 1.0) / (self.df_ + np.square(off))

    def _means_and_variances(
        self, X: Any, size: int, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        if self.likelihood == "student_t" and self.df_ <= 2.0:
            raise ValueError(f"noise of df={self.df_:g} has no variance, as R^2 needs: give df > 2")
        spread = 2.0 if self.likelihood == "laplace" else self.df_ / (self.df_ - 2.0)
        return self._eta_draws(X, size, rng, None), np.full(size, spread * self.noise_scale_**2)

    @property
    def _scale_unit(self) -> float:  # type: ignore[override]
        # Laplace noise of scale b has mean check loss b / 2 at the median.
        return 2.0 if self.likelihood == "laplace" else 1.0

    def _make_sums(self, known_scale: float | None, n_flat: int) -> NoiseSums:
        if self.likelihood == "student_t" and self.df is None and known_scale is None:
            return TailSums(LearnedTails(), known_scale, n_flat)
        return super()._make_sums(known_scale, n_flat)

    def _working_noise(self) -> WorkingNoise:
        if self.likelihood == "laplace":
            return DoubleExponentialNoise()
        if self.likelihood != "student_t":
            raise ValueError(
                f"likelihood is {self.likelihood!r}: it must be 'student_t' or 'laplace'"
            )
        df = LearnedTails.df if self.df is None else self.df
        if not 0.0 < df < math.inf:
            raise ValueError(
                f"df is {df}: it must be positive and finite, or None to learn it; for normal "
                "noise use BayesianLinearRegression"
            )
        return StudentTNoise(df)
