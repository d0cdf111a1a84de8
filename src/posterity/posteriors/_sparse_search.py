"""The prior precisions of the largest evidence, and the sites of rows: one fixed point.

The gradient of the log evidence by the log of a column's precision is half of what its features are
known to by data, less what their squares have of the prior's precision. Fisher's scoring steps
along it, and every row's site steps towards its moments, in the same sweep. Where sites have
settled that is the gradient of the evidence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray

from posterity.posteriors._sparse_sites import ProductSums, SiteRows, Sweep

Array = NDArray[np.float64]

# Limits of the log of a learned precision, on values of mean square 1, and of one step of it.
LEAST_LOG, LARGEST_LOG, LONGEST_STEP = -12.0, 16.0, 3.0
# Tolerances of the evidence's gain, in nats, by one more step of precisions; and the most steps.
NEGLIGIBLE, NEGLIGIBLE_A_ROW, MOST_STEPS = 1e-7, 1e-7, 100
# The change of sites, in posterior standard deviations, that ends a search.
TOLERANCE = 1e-5
# If the last change of sites is larger than this, accelerated steps have diverged; the size and
# number of the damped steps that are then made.
DIVERGED_CHANGE, DAMPING, MOST_DAMPED_STEPS = 0.1, 0.3, 400
# Size of a step that is not accelerated, as all rows move at once; it shrinks where steps grow.
FIRST_STEP_SIZE, STEP_SIZE_DECAY, SMALLEST_STEP_SIZE = 0.8, 0.7, 0.05
# Number of earlier steps that accelerate the next, and the largest ratio of two steps' lengths. A
# log moves by at least, and at most, these shares of its own step, and never backwards.
ANDERSON_MEMORY, GROWTH_LIMIT = 6, 3.0
LEAST_SHARE, LARGEST_SHARE = 0.5, 5.0


class Columns(NamedTuple):
    """Features (p,) by their columns, and the columns (c,) whose precisions are learned."""

    owners: NDArray[np.int32]
    learned: NDArray[np.intp]
    scale: Array  # (columns,) what precisions are relative to
    # How many weights beside its own each column (columns,) is given, on values of mean square 1,
    # the precision of these, and whether they are given as it has few of its own.
    known: Array
    usual: float
    few: NDArray[np.bool_]

    def spread(self, precisions: Array) -> Array:
        """(p,) prior precision of each feature."""
        return np.asarray((precisions * self.scale)[self.owners])

    def step(
        self, precisions: Array, mean: Array, variance: Array, noise: float
    ) -> tuple[Array, Array]:
        """Return the log evidence's gradient by log precisions (c,), and Fisher's information.

        Of weights of this posterior mean and variance (p,), the latter in units of the noise's.
        """
        prior = self.spread(precisions)
        by_data = 1.0 - prior * variance
        taken = noise * prior * np.square(mean)
        relative, known = precisions[self.learned] / self.usual, self.known[self.learned]
        gradient = self.sum(by_data - taken) + known * (1.0 - relative)
        information = self.sum(np.square(by_data)) + known * np.maximum(relative, 1.0)
        return 0.5 * gradient, 0.5 * information + 1e-12

    def sum(self, values: Array) -> Array:
        """(c,) sums over the features of each learned column."""
        sums = np.bincount(self.owners, values, len(self.scale))
        return np.asarray(sums, dtype=np.float64)[self.learned]


def search(
    data: ProductSums | SiteRows,
    columns: Columns,
    precisions: Array,
    noise: Callable[[Sweep, Array], float | None],
    negligible: float,
) -> tuple[Sweep, Array]:
    """The posterior, and precisions (columns,) of the largest evidence, beginning with these.

    ``noise``: the noise's precision given a sweep and its prior; None where data don't tell of it.
    Where accelerated steps lead away from it, as with labels of very strong effects, short ones are
    taken from the start.
    """
    settings = data, columns, precisions, noise, negligible
    try:
        sweep, found = _iterate(*settings, Acceleration(), MOST_STEPS)
        if sweep.change <= DIVERGED_CHANGE:
            return sweep, found
    except LinAlgError:  # no matrix of sites that went astray is positive definite
        pass
    return _iterate(*settings, Damping(), MOST_DAMPED_STEPS)


def _iterate(
    data: ProductSums | SiteRows,
    columns: Columns,
    precisions: Array,
    noise: Callable[[Sweep, Array], float | None],
    negligible: float,
    method: Acceleration | Damping,
    most: int,
) -> tuple[Sweep, Array]:
    learned, sites = columns.learned, data.start(columns.spread(precisions))
    for _ in range(most):
        prior = columns.spread(precisions)
        sweep = data.sweep(prior, sites)
        logs = np.log(precisions[learned])
        step, gain, metric = np.zeros(len(logs)), 0.0, np.ones(len(logs))
        tau = noise(sweep, prior)
        if tau is not None:
            gradient, information = columns.step(precisions, sweep.mean, sweep.variance, tau)
            step = np.clip(gradient / information, -LONGEST_STEP, LONGEST_STEP)
            step = np.clip(logs + step, LEAST_LOG, LARGEST_LOG) - logs
            gain, metric = float(np.abs(gradient @ step)), np.sqrt(information)
        if gain < negligible and sweep.change < TOLERANCE:
            break
        new = method.advance(
            np.concatenate([logs, sites]),
            np.concatenate([step, sweep.step]),
            np.concatenate([metric, sweep.metric]),
        )
        ends = np.sort([LEAST_SHARE * step, LARGEST_SHARE * step], axis=0)
        moved = np.clip(np.clip(new[: len(logs)] - logs, *ends), -LONGEST_STEP, LONGEST_STEP)
        precisions = precisions.copy()
        precisions[learned] = np.exp(np.clip(logs + moved, LEAST_LOG, LARGEST_LOG))
        sites = new[len(logs) :]
    return sweep, precisions


class Damping:
    """Fixed-point iteration with damped steps: slow and sure."""

    def advance(self, at: Array, step: Array, metric: Array) -> Array:
        """Return the next point, given a point and its step."""
        return at + DAMPING * step


class Acceleration:
    """Anderson's acceleration of a fixed-point iteration (Walker & Ni 2011).

    The next point is the mixture of the last ones whose steps, linearly mixed, would be shortest.
    Where a step is much longer than the last, the memory is dropped, and the pace is reduced.

    Examples
    --------
    >>> at, method = np.array([4.0, 1.0]), Acceleration()
    >>> for _ in range(5):
    ...     at = method.advance(at, np.array([0.9, 0.5]) * at - at, np.ones(2))
    >>> bool(np.abs(at).max() < 1e-9)
    True
    """

    def __init__(self) -> None:
        self._step_size, self._length = FIRST_STEP_SIZE, np.inf
        self._points: list[Array] = []
        self._steps: list[Array] = []

    def advance(self, at: Array, step: Array, metric: Array) -> Array:
        """Return the next point, given a point and its step; ``metric`` measures distances."""
        length = float(np.linalg.norm(metric * step))
        if length > GROWTH_LIMIT * self._length:
            self._points, self._steps = [], []
            self._step_size = max(STEP_SIZE_DECAY * self._step_size, SMALLEST_STEP_SIZE)
        self._length = length
        self._points = [*self._points[-ANDERSON_MEMORY:], at]
        self._steps = [*self._steps[-ANDERSON_MEMORY:], step]
        if len(self._points) == 1:
            return at + self._step_size * step
        steps, points = np.diff(self._steps, axis=0).T, np.diff(self._points, axis=0).T
        mixture = np.linalg.lstsq(metric[:, None] * steps, metric * step, rcond=1e-10)[0]
        return at + step - (points + steps) @ mixture


__all__ = ["NEGLIGIBLE", "NEGLIGIBLE_A_ROW", "Acceleration", "Columns", "search"]
