"""Predictions of yes or no."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import Array
from posterity.distributions.mixing import get_mixer, mix_logs


@dataclass(frozen=True, eq=False)
class Labels:
    """Predictive distributions of labels 0 and 1, stored as logs of both probabilities.

    Parameters
    ----------
    log_yes, log_no
        (n,) log probabilities of 1 and of 0.

    Examples
    --------
    >>> import numpy as np
    >>> labels = Labels(np.log([0.75]), np.log([0.25]))
    >>> labels.mean(), labels.var(), labels.logpmf([0]).round(4)
    (array([0.75]), array([0.1875]), array([-1.3863]))
    """

    log_yes: Array
    log_no: Array

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the rows."""
        return self.log_yes.shape

    def __len__(self) -> int:
        return len(self.log_yes)

    def __getitem__(self, index: Any) -> Labels:
        return Labels(self.log_yes[index], self.log_no[index])

    def mean(self) -> Array:
        """Probability of 1."""
        return np.exp(self.log_yes)

    def var(self) -> Array:
        """Variance of the label."""
        return np.exp(self.log_yes + self.log_no)

    def std(self) -> Array:
        """Standard deviation of the label."""
        return np.sqrt(self.var())

    def logpmf(self, y: ArrayLike) -> Array:
        """Log probability of labels; -inf for what is neither 0 nor 1."""
        y = np.asarray(y, dtype=np.float64)
        return np.where(y == 1.0, self.log_yes, np.where(y == 0.0, self.log_no, -math.inf))

    # What is not distinguished between counts and densities when models are compared.
    logpdf = logpmf

    def pmf(self, y: ArrayLike) -> Array:
        """Probability of labels."""
        return np.exp(self.logpmf(y))

    def cdf(self, y: ArrayLike) -> Array:
        """Probability of at most ``y``."""
        y = np.asarray(y, dtype=np.float64)
        return np.where(y < 0.0, 0.0, np.where(y < 1.0, np.exp(self.log_no), 1.0))

    def ppf(self, q: ArrayLike) -> Array:
        """Least label whose cdf is at least q; NaN where q is not in [0, 1]."""
        q = np.asarray(q, dtype=np.float64)
        label = np.where(q <= np.exp(self.log_no), 0.0, 1.0)
        return np.where((q >= 0.0) & (q <= 1.0), label, math.nan)

    def interval(self, level: float) -> tuple[Array, Array]:
        """Central interval of the label."""
        return self.ppf(0.5 - 0.5 * level), self.ppf(0.5 + 0.5 * level)

    def crps(self, y: ArrayLike) -> Array:
        """Continuous ranked probability score: of labels that of Brier, (y - P(1))^2."""
        return np.square(np.asarray(y, dtype=np.float64) - self.mean())

    def rvs(
        self,
        size: int | tuple[int, ...] | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> Array:
        """Independent draws; ``size`` ends in the shape of the rows."""
        rng = np.random.default_rng(random_state)
        uniform = rng.random(self.shape if size is None else size)
        return (uniform < self.mean()).astype(np.float64)


@get_mixer.register
def _mix_labels(first: Labels, parts: Sequence[Any], weights: Array) -> Labels:
    yes = mix_logs([one.log_yes for one in parts], weights)
    return Labels(yes, mix_logs([one.log_no for one in parts], weights))
