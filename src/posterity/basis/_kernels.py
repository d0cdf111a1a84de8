"""Stationary covariance functions, by their spectral densities."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import Array
from posterity.basis._domain import check_positive

# Smoothness nu; the squared exponential is its limit.
SMOOTHNESS = {"squared_exponential": math.inf, "matern52": 2.5, "matern32": 1.5}
KERNELS = tuple(SMOOTHNESS)

# Variance to variance: beyond this a function is out of the game whatever the data say, and exact
# figures would only cost digits: the prior's factor has their roots, 1 to 1e6, on its diagonal.
LARGEST_RATIO = 1e12


def log_spectral_density(kernel: str, squares: Array, dimensions: int) -> Array:
    """Log of the spectral density at frequency w, for unit variance, less ``sum_i log l_i``.

    ``squares`` is ``sum_i (l_i w_i)^2``. With d dimensions (Rasmussen and Williams 2006, eq. 4.15)

        S(w) = prod l_i (2 pi)^(d/2) exp(-squares / 2)
        S(w) = prod l_i 2^d pi^(d/2) Gamma(nu + d/2) / Gamma(nu) (2 nu)^nu
               (2 nu + squares)^-(nu + d/2)

    so that S / (2 pi)^d is a density in w: normal, or Student-t with 2 nu degrees of freedom.
    """
    nu, d = SMOOTHNESS[kernel], dimensions
    if math.isinf(nu):
        return 0.5 * d * math.log(2.0 * math.pi) - 0.5 * squares
    constant = (
        d * math.log(2.0)
        + 0.5 * d * math.log(math.pi)
        + math.lgamma(nu + 0.5 * d)
        - math.lgamma(nu)
        + nu * math.log(2.0 * nu)
    )
    return constant - (nu + 0.5 * d) * np.log(2.0 * nu + squares)


def precisions(log_variances: Array) -> Array:
    """1 / variance, (L, m): finite, and at most 1e12 times the smallest of its row."""
    logs = -np.asarray(log_variances)
    smallest = logs.min(axis=1, keepdims=True)
    # 1e260 either way: room for the model to multiply by a precision of its own.
    logs = np.clip(logs, None, smallest + math.log(LARGEST_RATIO))
    return np.exp(np.clip(logs, -600.0, 600.0))


def read_length_scales(length_scales: ArrayLike | Sequence[ArrayLike], n_features: int) -> Array:
    """(L,) or (L, d) candidates as an (L, d) array; ``ValueError`` unless all are positive."""
    candidates = list(np.atleast_1d(np.asarray(length_scales, dtype=np.float64)))
    if not candidates:
        raise ValueError("length_scales is empty: give at least one")
    return np.array([check_positive("length_scales", one, n_features) for one in candidates])


def read_length_scale(length_scale: object, n_features: int) -> Array | None:
    """Return ``length_scale`` as (d,), or None if it is learned from data."""
    if isinstance(length_scale, str):
        if length_scale not in ("auto", "ard"):
            raise ValueError(
                f"length_scale is {length_scale!r}: it must be 'auto', 'ard' or a number"
            )
        return None
    return check_positive("length_scale", length_scale, n_features)
