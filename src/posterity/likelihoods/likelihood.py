"""What a likelihood is: one observation depends on the coefficients through eta = x.w only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Variance given to eta where nothing is known of it: on the scale of log odds and log rates that
# is nearly nothing, and makes a first observation's posterior proper.
VAGUE_VARIANCE = 100.0


class Likelihood(Protocol):
    """One observation's density, given its linear predictor eta = x.w.

    To add a likelihood, write a frozen dataclass with these four methods; everything else of the
    library then works with it. All of them broadcast and must not warn.

    Examples
    --------
    Waiting times that are exponential with the rate exp(-eta), in full:

    >>> import numpy as np
    >>> from dataclasses import dataclass
    >>> from posterity.distributions import Normal
    >>> from posterity.likelihoods import laplace_sites
    >>> @dataclass(frozen=True)
    ... class Waiting:
    ...     def log_density(self, y, eta):
    ...         return -eta - y * np.exp(-eta)
    ...     def derivatives(self, y, eta):
    ...         share = y * np.exp(-eta)
    ...         return share - 1.0, share
    ...     def check_targets(self, y):
    ...         bad = np.flatnonzero(~(np.asarray(y) > 0.0))
    ...         if bad.size:
    ...             raise ValueError(f"y in row {bad[0]} is {y[bad[0]]}: waits are positive")
    ...     def predictive(self, mean, variance):  # matched moments: mean e^(m + v/2)
    ...         expected = np.exp(mean + variance / 2.0)
    ...         return Normal(expected, expected * np.sqrt(2.0 * np.exp(variance) - 1.0))
    >>> sites = laplace_sites(Waiting(), np.array([2.0]), np.zeros(1), np.ones(1))
    >>> sites.precision.round(4)
    array([1.3748])
    """

    def log_density(self, y: Array, eta: Array) -> Array:
        """log p(y | eta)."""

    def derivatives(self, y: Array, eta: Array) -> tuple[Array, Array]:
        """d log p / d eta, and -d^2 log p / d eta^2, not negative (0 where it would be)."""

    def check_targets(self, y: Array) -> None:
        """Raise ``ValueError``, naming the row, when a target is none that can be observed."""

    def predictive(self, mean: Array, variance: Array) -> Any:
        """Distribution of the targets when eta ~ Normal(mean, variance), one a row."""


class Kernel(NamedTuple):
    """How the kernel knows a built-in likelihood: a code and up to three parameters."""

    code: int
    parameters: tuple[float, float, float] = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Sites:
    """What observations say of their eta, as Gaussian rows.

    Each stands for the likelihood up to a constant: exp(-precision (eta - target)^2 / 2).

    Parameters
    ----------
    precision
        (n,) not negative; 0 where an observation says nothing.
    target
        (n,) pseudo-targets, in units of eta.
    log_normalizer
        (n,) log of the integral of the likelihood over what was believed of eta: the log
        predictive density of the observation.

    Examples
    --------
    >>> import numpy as np
    >>> sites = Sites(np.ones(1), np.ones(1), np.full(1, -1.5))
    >>> sites.log_scale(np.zeros(1), np.ones(1)).round(4)
    array([-0.9034])
    """

    precision: Array
    target: Array
    log_normalizer: Array

    def log_scale(self, mean: Array, variance: Array) -> Array:
        """(n,) log of the constant, given what was believed of eta: Normal(mean, variance).

        log Z = log constant + log of the integral of Normal(eta; mean, variance) times
        exp(-precision (eta - target)^2 / 2); with spread = 1 + precision variance, that is
        -(log spread + precision (target - mean)^2 / spread) / 2.
        """
        known = np.isfinite(variance)
        spread = 1.0 + self.precision * np.where(known, variance, 0.0)
        off = self.target - mean
        value = 0.5 * (np.log(spread) + self.precision * off * off / spread)
        # What was not known at all had density 1 everywhere, or was vague and is in the site.
        with np.errstate(divide="ignore"):
            whole = 0.5 * np.log(self.precision / (2.0 * np.pi))
        value = np.where(known, value, np.where(self.precision > 0.0, whole, 0.0))
        return self.log_normalizer + value


def is_noise(likelihood: Likelihood) -> bool:
    """Whether eta is where the target lies, but for noise: one observation then tells of it."""
    return bool(getattr(likelihood, "is_noise", False))


def vague_variance(likelihood: Likelihood) -> float:
    """Variance of eta where nothing is known of it."""
    return float(getattr(likelihood, "vague_variance", VAGUE_VARIANCE))


def kernel_of(likelihood: Likelihood) -> Kernel | None:
    """The kernel's code of a built-in likelihood, None of any other."""
    known: Kernel | None = getattr(likelihood, "_kernel", None)
    return known


def named_row(y: Array, good: NDArray[np.bool_], what: str) -> None:
    """Raise ``ValueError`` for the first target that is not good."""
    bad = np.flatnonzero(~good)
    if len(bad):
        value = np.ravel(y)[bad[0]]
        raise ValueError(f"y in row {bad[0]} is {value:g}: {what}")
