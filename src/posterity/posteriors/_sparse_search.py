"""The prior precisions of the largest evidence, and the sites of rows: one fixed point.

The gradient of the log evidence by the log of a column's precision is half of what its features are
known to by data, less what their squares have of the prior's precision. Fisher's scoring steps
along it, and every row's site steps towards its moments, in the same sweep. Where sites have
settled that is the gradient of the evidence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray

from posterity.aliases import Array, Indices, Mask
from posterity.posteriors._sparse_sites import PriorPrecision, ProductSums, SiteRows, Sweep

# Limits of the log of a learned precision, on values of mean square 1, and of one step of it.
LEAST_LOG, LARGEST_LOG, LONGEST_STEP = -12.0, 16.0, 3.0
# Number of weights that tell a scale; and weight of what a scale is drawn to, in weights.
ENOUGH_WEIGHTS, KNOWN_WEIGHTS = 5, 1.0
# The variance that numbers share above which its prior falls, as of dense models.
SMALL_SIGNAL = 0.002
# Tolerances of the evidence's gain, in nats, by one more step of precisions; and the most steps.
NEGLIGIBLE, NEGLIGIBLE_A_ROW, MOST_STEPS = 1e-7, 1e-7, 100
# The change of sites, in posterior standard deviations, that ends a search.
TOLERANCE = 1e-5
# If the last change of sites, the gain of one more step, or the length of any is larger than these,
# accelerated steps have diverged; the size and number of the damped steps that are then made.
DIVERGED_CHANGE, DIVERGED_GAIN, DIVERGED_LENGTH = 0.1, 0.01, 1e6
DAMPING, MOST_DAMPED_STEPS = 0.3, 400
# Size of a step that is not accelerated, as all rows move at once; it shrinks where steps grow.
FIRST_STEP_SIZE, STEP_SIZE_DECAY, SMALLEST_STEP_SIZE = 0.8, 0.7, 0.05
# Number of earlier steps that accelerate the next, and the largest ratio of two steps' lengths. A
# log moves by at least, and at most, these shares of its own step, and never backwards.
ANDERSON_MEMORY, GROWTH_LIMIT = 6, 3.0
LEAST_SHARE, LARGEST_SHARE = 0.5, 5.0


class Step(NamedTuple):
    """Where coordinates of the prior (c,) would go, the evidence's gain, and a metric of steps."""

    step: Array
    gain: float
    metric: Array


class PriorRule(Protocol):
    """A prior that depends on few coordinates, by which its evidence has a gradient."""

    def prior(self, at: Array) -> PriorPrecision:
        """The prior at these coordinates."""
        ...

    def step(self, at: Array, sweep: Sweep, noise: float) -> Step:
        """The step from there, given a sweep and the noise's precision."""
        ...

    def limit(self, at: Array) -> Array:
        """The nearest coordinates that are allowed."""
        ...


class GivenPrior(NamedTuple):
    """A prior without coordinates."""

    precision: PriorPrecision

    def prior(self, at: Array) -> PriorPrecision:
        """The prior that is given."""
        return self.precision

    def step(self, at: Array, sweep: Sweep, noise: float) -> Step:
        """No step."""
        return Step(at, 0.0, at)

    def limit(self, at: Array) -> Array:
        """No coordinates."""
        return at


class Columns(NamedTuple):
    """Features (p,) by their columns, and the columns (c,) whose precisions are learned."""

    owners: NDArray[np.int32]
    learned: Indices
    scale: Array  # (columns,) what precisions are relative to
    # How many weights beside its own each column (columns,) is given, on values of mean square 1,
    # the precision of these, and whether they are given as it has few of its own.
    known: Array
    usual: float
    few: Mask
    given: Array  # (columns,) precisions of those that are not learned
    # Those of one number each (columns,), whose weights are Cauchy around a scale that they share.
    numbers: Mask

    def spread(self, precisions: Array) -> Array:
        """(p,) prior precision of each feature."""
        return np.asarray((precisions * self.scale)[self.owners])

    def prior(self, logs: Array) -> PriorPrecision:
        """The prior under these logs (c,) of the precisions of learned columns."""
        return PriorPrecision.of_diagonal(self.spread(self.complete(logs)))

    def complete(self, logs: Array) -> Array:
        """(columns,) precisions, of which those of learned columns have these logs."""
        precisions = self.given.copy()
        precisions[self.learned] = np.exp(logs)
        return precisions

    def step(self, logs: Array, sweep: Sweep, noise: float) -> Step:
        """Fisher's scoring, under this precision of the noise."""
        gradient, information = self.score(self.complete(logs), sweep.mean, sweep.variance, noise)
        step = np.clip(gradient / information, -LONGEST_STEP, LONGEST_STEP)
        step = self.limit(logs + step) - logs
        return Step(step, float(np.abs(gradient @ step)), np.sqrt(information))

    def limit(self, logs: Array) -> Array:
        """The logs, where they are beyond what is allowed moved to its end."""
        return np.clip(logs, LEAST_LOG, LARGEST_LOG)

    def score(
        self, precisions: Array, mean: Array, variance: Array, noise: float
    ) -> tuple[Array, Array]:
        """Return the log evidence's gradient by log precisions (c,), and Fisher's information.

        Of weights of this posterior mean and variance (p,), the latter in units of the noise's.
        """
        prior = self.spread(precisions)
        by_data = 1.0 - prior * variance
        taken = noise * prior * np.square(mean)
        usual = np.where(self.numbers, self._find_shared(precisions), self.usual)
        relative, known = (precisions / usual)[self.learned], self.known[self.learned]
        gradient = self.sum(by_data - taken) + known * (1.0 - relative)
        information = self.sum(np.square(by_data)) + known * np.maximum(relative, 1.0)
        return 0.5 * gradient, 0.5 * information + 1e-12

    def _find_shared(self, precisions: Array) -> float:
        """The likeliest precision that numbers share, given those of each.

        These are gamma of shape 1/2 around it, which makes weights Cauchy. Its prior is that of
        dense models (:mod:`posterity.evidence.hyperprior`), so that it can't run away.
        """
        n, total = np.count_nonzero(self.numbers), float(precisions[self.numbers].sum())
        return total / (n + 2.0 / (1.0 + n / (SMALL_SIGNAL * total))) if n else self.usual

    @property
    def uncertain(self) -> Mask:
        """(p,) features whose variance depends on scales that are known little."""
        return np.asarray(self.few[self.owners] | (self.owners == 0))

    def sum(self, values: Array) -> Array:
        """(c,) sums over the features of each learned column."""
        sums = np.bincount(self.owners, values, len(self.scale))
        return np.asarray(sums, dtype=np.float64)[self.learned]


def find_numbers(counts: Indices) -> Mask:
    """Columns of one weight, by their number of weights, where they are enough to share a scale."""
    single = counts == 1
    return single & (np.count_nonzero(single) > ENOUGH_WEIGHTS)


class Close(NamedTuple):
    """Where a search ends: the gain of one more step in nats, and its change of sites."""

    gain: float
    change: float = TOLERANCE


class Found(NamedTuple):
    """The end of a search: the posterior there, the coordinates of the prior and the sites."""

    sweep: Sweep
    at: Array
    sites: Array
    gain: float  # of one more step of the coordinates, in nats


def search(
    data: ProductSums | SiteRows,
    rule: PriorRule,
    begun: Array,
    noise: Callable[[Sweep, PriorPrecision], float | None],
    close: Close,
    sites: Array | None = None,
) -> Found:
    """The posterior under the prior of the largest evidence, beginning at some coordinates (c,).

    ``noise``: the noise's precision given a sweep and its prior; None where data don't tell of it.
    ``sites``: those to begin with; None: Laplace's. Where accelerated steps lead away, as with
    labels of very strong effects, short ones are taken from the mode near these.
    """
    if sites is None:
        sites = data.start(rule.prior(begun))
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # where steps lead away
            found = _iterate(data, rule, begun, sites, noise, close, Acceleration(), MOST_STEPS)
        if found.sweep.change <= DIVERGED_CHANGE and found.gain <= DIVERGED_GAIN:
            return found
    except LinAlgError:  # no matrix of sites that went astray is positive definite
        pass
    sites = data.start(rule.prior(begun), sites)
    return _iterate(data, rule, begun, sites, noise, close, Damping(), MOST_DAMPED_STEPS)


def _iterate(
    data: ProductSums | SiteRows,
    rule: PriorRule,
    at: Array,
    sites: Array,
    noise: Callable[[Sweep, PriorPrecision], float | None],
    close: Close,
    method: Acceleration | Damping,
    most: int,
) -> Found:
    for _ in range(most):
        prior = rule.prior(at)
        sweep = data.sweep(prior, sites)
        step, gain, metric = np.zeros(len(at)), 0.0, np.ones(len(at))
        tau = noise(sweep, prior)
        if tau is not None:
            step, gain, metric = rule.step(at, sweep, tau)
        found = Found(sweep, at, sites, gain)
        if gain < close.gain and sweep.change < close.change:
            break
        new = method.advance(
            np.concatenate([at, sites]),
            np.concatenate([step, sweep.step]),
            np.concatenate([metric, sweep.metric]),
        )
        ends = np.sort([LEAST_SHARE * step, LARGEST_SHARE * step], axis=0)
        moved = np.clip(np.clip(new[: len(at)] - at, *ends), -LONGEST_STEP, LONGEST_STEP)
        at, sites = rule.limit(at + moved), new[len(at) :]
    return found


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
        if not length < DIVERGED_LENGTH:  # what comes back from there is another mode, if any
            raise LinAlgError("the steps lead away")
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


__all__ = [
    "ENOUGH_WEIGHTS",
    "KNOWN_WEIGHTS",
    "NEGLIGIBLE",
    "NEGLIGIBLE_A_ROW",
    "Acceleration",
    "Close",
    "Columns",
    "Found",
    "GivenPrior",
    "PriorRule",
    "Step",
    "find_numbers",
    "search",
]
