"""Likelihoods of shares: eta is the log odds of their mean."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, logit

from posterity.aliases import Array
from posterity.likelihoods.likelihood import (
    Likelihood,
)

# A share of a distribution that is so near 0 or 1 has no density there.
NEAREST = 1e-150


class Share(Likelihood):
    """A number whose mean is a known whole times sigmoid(eta)."""

    @property
    def whole(self) -> float:
        """What a share of 1 is."""
        return 1.0

    @property
    def ratio(self) -> str:
        """Eta is the log odds of the mean."""
        return "odds_ratio"

    def start(self, y: Array) -> Array:
        """Return starting values: the log odds of the target, shrunk to the mean."""
        return np.asarray(logit((0.5 * (y + np.mean(y)) + 0.01) / (self.whole + 0.02)))

    def mean(self, eta: Array) -> Array:
        """The whole times sigmoid(eta)."""
        return np.asarray(self.whole * expit(eta))

    def link_function(self, mean: Array) -> Array:
        """The log odds of the mean."""
        return np.asarray(logit(np.asarray(mean) / self.whole))


def split_precision(precision: Any, eta: Array) -> tuple[Array, Array]:
    """Both parameters of a beta distribution."""
    with np.errstate(under="ignore"):
        return tuple(np.maximum(precision * expit(each), NEAREST) for each in (eta, -eta))
