"""What likelihoods of positive targets, whose eta is a log, have in common."""

from __future__ import annotations

import numpy as np

from posterity.aliases import Array
from posterity.likelihoods.likelihood import named_row

# Beyond this the square of exp, times that of a shape, overflows.
LARGEST_LOG = 300.0


def exp_up_to(largest: float, eta: Array) -> Array:
    """The exponential, as that of ``largest`` beyond it."""
    with np.errstate(under="ignore"):
        return np.asarray(np.exp(np.minimum(eta, largest)))


def bounded_exp(eta: Array) -> Array:
    """The exponential, which does not overflow, nor do products of it."""
    return exp_up_to(LARGEST_LOG, eta)


def as_scale(eta: Array) -> Array:
    """The same, never 0: of a scale of 0 SciPy's distributions know nothing."""
    return bounded_exp(np.maximum(eta, -LARGEST_LOG))


def log_near_mean(y: Array, more: float = 0.0) -> Array:
    """Logs (n,) of targets that are shrunk to their mean: where generalized linear models begin."""
    return np.asarray(np.log(0.5 * (y + np.mean(y)) + more))


def log_both_tails(y: Array, up_to: Array, above: Array) -> tuple[Array, Array]:
    """Logs of the probabilities of at most y, and of more, of what is never negative."""
    below = np.asarray(y) < 0.0
    with np.errstate(divide="ignore"):
        return np.log(np.where(below, 0.0, up_to)), np.log(np.where(below, 1.0, above))


def check_positive(y: Array, name: str) -> None:
    """Raise ``ValueError`` unless all are positive and finite, naming the first row."""
    named_row(
        y,
        (y > 0.0) & (y < np.inf),
        f"{name} knows positive and finite numbers: leave zeros out, or model whether there is "
        "more than nothing on its own",
    )
