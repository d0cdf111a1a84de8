"""A predictive distribution in river's interface."""

from __future__ import annotations

import math
import random
from functools import cached_property
from typing import Any

import numpy as np
from river import proba, stats

from posterity.adapters._rows import RowMoments
from posterity.distributions import Normal, StudentT
from posterity.noise import KnownNoise, Predictive


class PredictedTarget(proba.base.ContinuousDistribution):
    """Distribution of a target where river has no family for it: a Student-t, a mixture.

    Parameters
    ----------
    told
        A distribution of one row.
    n_samples
        Sum of the weights of the rows that were learned.
    seed
        Of :meth:`sample`.

    Examples
    --------
    >>> from posterity.distributions import StudentT
    >>> student = StudentT(np.array([5.0]), np.array([1.0]), np.array([3.0]))
    >>> predictive = PredictedTarget(student, 6.0)
    >>> predictive.mu, round(predictive.sigma, 3), round(predictive.cdf(1.0), 3)
    (1.0, 3.873, 0.5)
    """

    def __init__(self, predictive: Predictive, n_samples: float, seed: int | None = None) -> None:
        # Not super().__init__: it seeds a generator for each prediction; few ever draw.
        self.seed = seed
        self._n_samples = n_samples
        self._generator: random.Random | None = None
        self._given = predictive

    @property
    def _predictive(self) -> Predictive:
        return self._given

    @property
    def n_samples(self) -> float:
        """Sum of the weights of the rows that were learned."""
        return self._n_samples

    @property
    def mu(self) -> float:
        """Mean."""
        return float(self._predictive.mean()[0])

    @property
    def sigma(self) -> float:
        """Standard deviation; infinite with up to two degrees of freedom."""
        return float(self._predictive.std()[0])

    @property
    def mode(self) -> float:
        """The centre."""
        return self.mu

    def __call__(self, x: float) -> float:
        return float(self._predictive.pdf(np.array([x]))[0])

    def log_pdf(self, x: float) -> float:
        """Log of the density."""
        return float(self._predictive.logpdf(np.array([x]))[0])

    def cdf(self, x: float) -> float:
        """Probability of a target up to ``x``."""
        return float(self._predictive.cdf(np.array([x]))[0])

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Ends of the central interval that holds the target with this probability."""
        low, high = self._predictive.interval(level)
        return float(low[0]), float(high[0])

    def sample(self) -> float:
        """Draw a target."""
        if self._generator is None:
            self._generator = random.Random(self.seed)
        return float(self._predictive.ppf(np.array([self._generator.random()]))[0])

    def update(self, x: float) -> None:
        """Refuse: the model learns, not its prediction."""
        raise NotImplementedError("a prediction does not learn: call the model's learn_one")

    def revert(self, x: float) -> None:
        """Refuse, as :meth:`update`."""
        raise NotImplementedError("a prediction does not unlearn: call a method of the model")

    def __repr__(self) -> str:
        return f"{type(self._predictive).__name__}(μ={self.mu:.3f}, σ={self.sigma:.3f})"


class PredictedStudentT(PredictedTarget):
    """The Student-t of a single factor: kept as three numbers until more of it is asked.

    Parameters
    ----------
    df, loc, scale
        Degrees of freedom, centre, and scale; at 0 degrees of freedom nothing is known.
    n_samples, seed
        As of :class:`PredictedTarget`.

    Examples
    --------
    >>> predictive = PredictedStudentT(5.0, 1.0, 3.0, 6.0)
    >>> predictive.mu, round(predictive.sigma, 3), round(predictive.cdf(1.0), 3)
    (1.0, 3.873, 0.5)
    """

    def __init__(
        self, df: float, loc: float, scale: float, n_samples: float, seed: int | None = None
    ) -> None:
        self.seed = seed
        self._n_samples = n_samples
        self._generator = None
        self._numbers = df, loc, scale

    @cached_property
    def _predictive(self) -> Predictive:
        df, loc, scale = self._numbers
        return StudentT(np.array([df]), np.array([loc]), np.array([scale]))

    @property
    def mu(self) -> float:
        """Mean."""
        return self._numbers[1]

    @property
    def sigma(self) -> float:
        """Standard deviation; infinite with up to two degrees of freedom."""
        df, _, scale = self._numbers
        if df > 2.0:
            return scale * math.sqrt(df / (df - 2.0))
        return 0.0 if scale == 0.0 else math.inf


# Not typed: what is an attribute there is computed on demand here.
Gaussian: Any = proba.Gaussian


class PredictedGaussian(Gaussian):
    """river's Gaussian of a known mean and variance, which makes its generator when asked to draw.

    Examples
    --------
    >>> PredictedGaussian(1.0, 4.0)
    𝒩(μ=1.000, σ=2.000)
    """

    def __init__(self, mean: float, variance: float, seed: int | None = None) -> None:
        self.seed = seed
        self._state = mean, variance

    @property
    def mu(self) -> float:
        """Mean."""
        return self._state[0]

    @property
    def sigma(self) -> float:
        """Standard deviation."""
        return math.sqrt(self._state[1])

    # What river's own methods read.
    @cached_property
    def _var(self) -> Any:
        return stats.Var._from_state(1, *self._state, ddof=0)

    @cached_property
    def _rng(self) -> random.Random:
        return random.Random(self.seed)


def make_river_distribution(predictive: Predictive, n_samples: float) -> Any:
    """river's Gaussian of a Normal of one row, or :class:`PredictedTarget`."""
    if isinstance(predictive, Normal):
        return PredictedGaussian(float(predictive.loc[0]), float(predictive.scale[0]) ** 2)
    return PredictedTarget(predictive, n_samples)


def make_row_distribution(row: RowMoments) -> Any:
    """The same of one factor, as ``noise.predictive`` has it, without an array in between."""
    mean, leverage, noise, residual_df, residual, seen = row
    if isinstance(noise, KnownNoise):  # Bishop 2006, eq. 3.58-3.59
        return PredictedGaussian(mean, (1.0 + leverage) / noise.known_precision)
    df = residual_df + 2.0 * noise.shape
    if df <= 0.0 or math.isinf(leverage):
        return PredictedStudentT(max(df, 0.0), mean, math.inf, seen)
    scale = math.sqrt((residual + 2.0 * noise.rate) * (1.0 + leverage) / df)
    return PredictedStudentT(df, mean, scale, seen)
