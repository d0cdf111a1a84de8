"""What is known of a likelihood's parameter: a Gaussian over its log t, learned beside the rest.

It is learned as a row's site is: at a few nodes of t the rows say how likely they are, integrated
over what was believed of their eta, and the moments of t are matched again (assumed-density
filtering, Opper 1998).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import digamma, gammaln

from posterity.aliases import Array
from posterity.evidence.secant import SecantSteps
from posterity.likelihoods import Likelihood
from posterity.likelihoods.averages import look
from posterity.likelihoods.parameter import MOST_SKEWED, Parameter, average
from posterity.noise import LOG_2PI
from posterity.posteriors._site_rows import find_sites
from posterity.posteriors.gaussian import LinearPosterior

# Number of nodes, and how many standard deviations they reach on both sides: of a stream, which
# keeps them, of a fit, which they follow, and where it is narrow, and so nearly Gaussian.
KEPT, FOLLOWING, FEW = (17, 4.0), (13, 4.0), (3, 1.0)
NEARLY_GAUSSIAN, FURTHEST = 0.15, 4.0
# Nodes are placed anew where the posterior is so much narrower, those of a fit also where its mean
# is further away. Narrower than these, in steps of the nodes, it is not seen.
NARROW, NARROW_FIT, FAR, LEAST_STEPS = 0.35, 0.5, 1.5, 0.3
LONG_WAY = 2.5  # of a log, between two rounds
BENT = 0.2  # what a square of standard deviations times one may be, for a log to be a parabola
MOST_ROUNDS = 30
# The standard deviation of a log that is known well, and the most that one row tells of it: 1.8 of
# the shape of lifetimes, and 1/2 to 1 of other logs.
WELL_KNOWN, MOST_TOLD = 0.3, 2.0
# Values in force agree: relative to one, or to what is known.
TOLERANCE, SHARE_OF_SD = 1e-4, 3e-3
# Of a value, what moves no coefficient; and of what is known, what the next change may be then.
SMALL_CHANGE, AHEAD = 1e-3, 5e-3
# The parameter in force is that of all rows whenever these have grown by an eighth.
GROWTH_DIVISOR = 8
# Distance from the mode, in standard deviations, that leaves a log density eleven digits.
CLOSE = 1e-6
# Shares of a variance that an observation explains, and steps of eta, of which squares are nothing.
NARROW_VARIANCE, NARROW_STEP = 1e-2, 1e-2
# Of fewer rows compiled code finds the modes in less time than calls of NumPy take.
MANY_ROWS = 64
# Rows times values of the parameter that are looked at in one call.
MOST_VALUES = 2**16


class BelievedRows(NamedTuple):
    """Targets, means and variances of their eta without them, and how often each counts (n,).

    Several parameters are learned with the coefficients, by the features (n, m) and the offsets
    that eta contains; without these as if the coefficients did not depend on them.
    """

    y: Array
    mean: Array
    variance: Array
    weights: Array
    X: Array = np.zeros(0)
    offsets: Array = np.zeros(0)

    @property
    def n_rows(self) -> float:
        """Number of rows that count."""
        return float(np.count_nonzero(self.weights))

    def log_densities(self, likelihood: Likelihood, values: Array) -> Array:
        """(k,) log predictive densities of all rows under each value of the parameter."""
        n, given = len(self.y), (self.y, self.mean, self.variance)
        compiled = likelihood.with_parameter(1.0).kernel_code is not None
        # Compiled code knows one value at a time; for others a call costs more than its rows.
        n_together = 1 if compiled else max(MOST_VALUES // max(n, 1), 1)
        logs = []
        for some in np.split(values, range(n_together, len(values), n_together)):
            value = some.item() if len(some) == 1 else np.repeat(some, n)
            repeated = (np.concatenate([each] * len(some)) for each in given)
            found = _compute_log_densities(likelihood.with_parameter(value), *repeated)
            logs.append(found.reshape(len(some), n) @ self.weights)
        return np.concatenate(logs)


class ApartFromCoefficients:
    """What is known of parameters of which the coefficients' posterior does not depend."""

    # True if what is known of the coefficients depends on it. Rows that come together, too, then
    # meet a vague prior where all is open.
    moves_coefficients: ClassVar[bool] = False

    def search_from(self, prior: Self) -> Self:
        """Where the search begins when rows that told this are fitted again."""
        return self

    def settle_in(self, inner: LinearPosterior, before: Self | None = None) -> tuple[Self, float]:
        """Find t and the coefficients in ``inner`` together; the log of what evidence gains."""
        return self, 0.0

    def extrapolate(self, last: Self, steps: SecantSteps) -> tuple[Self, SecantSteps]:
        """What to try next, where this was found with ``last`` in force, and the state after it."""
        return self, steps

    def move_to(self, near: Self, inner: LinearPosterior) -> float:
        """Let ``inner`` say what it says of the coefficients given what is in force ``near``.

        Returns the log of what the evidence of ``inner`` loses, though it is of the same rows.
        """
        return 0.0

    def marginalize(self, inner: LinearPosterior) -> LinearPosterior:
        """What is known of the coefficients whatever t is, from what is known given t."""
        return inner

    def spread(self, find_node: Callable[[], LinearPosterior], X: Array) -> Array | None:
        """Moves of eta and values (k, n, 1 + d) that stand for all t; None for what is in force."""
        return None


@dataclass(frozen=True)
class LearnedParameter(ApartFromCoefficients):
    """The log of a parameter is Normal(mean, sd^2) by the first ``rows``; its prior, if by none.

    ``recent`` (k,) are the log likelihoods of ``n_recent`` more, at nodes around that. The
    parameter in force is ``value``, its posterior mean (that of its power: ``Parameter``), until
    there are ``due`` rows in all.
    """

    mean: float
    sd: float
    value: float
    rows: float = 0.0
    n_recent: float = 0.0
    due: float = 1.0
    recent: Array = field(default_factory=lambda: np.zeros(KEPT[0]))

    @classmethod
    def before_data(cls, likelihood: Likelihood) -> Self:
        """Begin from the prior, whose nodes reach from end to end."""
        low, high = _get_prior(likelihood).ends
        nothing = cls(0.5 * (low + high), 0.5 * (high - low) / KEPT[1], 1.0)
        return replace(nothing, value=nothing._find(likelihood).value)

    @property
    def n_missing(self) -> int:
        """The number of rows still to come before another value is in force."""
        return max(int(self.due - self.rows - self.n_recent), 1)

    @property
    def covariance(self) -> Array:
        """(1, 1) variance."""
        return np.full((1, 1), self.sd**2)

    def search_from(self, prior: Self) -> Self:
        """Where a fit begins, unless it is known well: of two solutions a wide one holds itself.

        So does one that a surprising row made narrower than so many rows can.
        """
        least = MOST_TOLD * (self.rows + self.n_recent)
        return self if self.sd < WELL_KNOWN and least * self.sd**2 > 1.0 else prior

    def agrees_with(self, last: Self, within: float = 0.0, rate: float = 1.0) -> bool:
        """Return True if sites found under ``last`` need not be found again; or within some sds.

        So too where the next change, the ``rate`` times this one, would be none.
        """
        away = abs(self.value / last.value - 1.0)
        ends = away <= SMALL_CHANGE and rate * away <= AHEAD * self.sd
        return ends or away <= max(TOLERANCE, max(SHARE_OF_SD, within) * self.sd)

    def extrapolate(self, last: Self, steps: SecantSteps) -> tuple[Self, SecantSteps]:
        """With another value in force: sites follow it, and it follows the sites.

        After a long way it is looked for as far around, or what was found for other sites holds it.
        """
        move = math.log(self.value / last.value)
        step, steps = steps.lengthen(move)
        sd = max(self.sd, abs(move)) if abs(move) > LONG_WAY else self.sd
        return replace(self, sd=sd, value=last.value * math.exp(step)), steps

    def learn(self, likelihood: Likelihood, rows: BelievedRows) -> Self:
        """Learn rows that came one after another."""
        logs = rows.log_densities(likelihood, np.exp(self._place(likelihood)))
        now = self.add(logs, rows.n_rows)
        if now.rows + now.n_recent < now.due:
            return now
        found = now._find(likelihood)
        if found.sd < NARROW * self.sd or abs(found.mean - self.mean) > FAR * self.sd:
            return found
        return replace(now, value=found.value, due=found.due)

    def add(self, logs: Array, rows: float) -> Self:
        """Learn so many rows, which are not yet due, by their log densities (k,) at the nodes."""
        return replace(self, recent=self.recent + logs, n_recent=self.n_recent + rows)

    def compile_nodes(self, likelihood: Likelihood) -> Array:
        """The parameters (k, 3) that compiled code has of the likelihood at the nodes."""
        each = (
            likelihood.with_parameter(one).kernel_code for one in np.exp(self._place(likelihood))
        )
        return np.array([code.parameters for code in each if code is not None])

    def learn_together(
        self, likelihood: Likelihood, near: Self, rows: BelievedRows
    ) -> tuple[Self, Callable[[], float]]:
        """Learn rows of which each eta is given by all others, with ``near.value`` in force.

        Returns what finds the log of their likelihood's integral, relative to that at this value.
        """
        known, now = self.settle(likelihood), near
        for _ in range(MOST_ROUNDS):
            last, few = now, now.sd < NEARLY_GAUSSIAN
            t = now._place(likelihood, FEW if few else FOLLOWING)
            logs = rows.log_densities(likelihood, np.exp(t)) + known._log_density(likelihood, t)
            match = self._match_parabola if few else self._match
            now, log_integral = match(likelihood, t, logs, known.rows + rows.n_rows)
            # A narrow parabola is right further away; where it is last found, it has hardly moved.
            far = max(FAR, math.sqrt(BENT / last.sd)) if few else FAR
            if now.sd > NARROW_FIT * last.sd and abs(now.mean - last.mean) < far * last.sd:
                break
        here = np.array([near.value])
        return now, lambda: log_integral - float(rows.log_densities(likelihood, here)[0])

    def settle(self, likelihood: Likelihood) -> Self:
        """The same as a Gaussian, of all rows."""
        return self._find(likelihood) if self.n_recent else self

    def moments(self, likelihood: Likelihood) -> Array:
        """Mean of t and of its square."""
        known = self.settle(likelihood)
        return np.array([known.mean, known.mean**2 + known.sd**2])

    def unlearn(self, likelihood: Likelihood, rows: BelievedRows) -> Self:
        """Unlearn rows: what they would tell if they came again."""
        known, again = self.settle(likelihood), self.learn_together(likelihood, self, rows)[0]
        left = max(known.rows - rows.n_rows, 0.0)
        return known._multiply(likelihood, known, again, left)

    def merge(self, other: Self, likelihood: Likelihood) -> Self:
        """Learn what ``other`` learned; the prior counts once."""
        mine, its = self.settle(likelihood), other.settle(likelihood)
        if not mine.rows or not its.rows:
            return mine if mine.rows else its
        prior = self.before_data(likelihood)._find(likelihood)
        return mine._multiply(likelihood, its, prior, mine.rows + its.rows)

    # ---- inner ---------------------------------------------------------------------------------

    def _place(self, likelihood: Likelihood, nodes: tuple[int, float] = KEPT) -> Array:
        """Equally spaced nodes of t."""
        (count, reach), (low, high) = nodes, _get_prior(likelihood).ends
        away = reach * self.sd
        return np.linspace(max(self.mean - away, low), min(self.mean + away, high), count)

    def _log_density(self, likelihood: Likelihood, t: Array) -> Array:
        if not self.rows:
            return _get_prior(likelihood).log_density(t)
        # Of a gamma variable to a power, whose log has this mean and sd.
        skewed = _get_prior(likelihood).exponent * self.sd
        skewed = math.copysign(min(abs(skewed), MOST_SKEWED), skewed)
        shape = 0.5 + skewed**-2.0
        log = digamma(shape) + (t - self.mean) * skewed / self.sd
        log_density = shape * log - np.exp(log) - gammaln(shape)
        return np.asarray(log_density + math.log(abs(skewed) / self.sd))

    def _find(self, likelihood: Likelihood) -> Self:
        t = self._place(likelihood)
        logs = self.recent + self._log_density(likelihood, t)
        return self._match(likelihood, t, logs, self.rows + self.n_recent)[0]

    def _match(
        self, likelihood: Likelihood, t: Array, logs: Array, rows: float
    ) -> tuple[Self, float]:
        """The Gaussian of a density at nodes, by so many rows, and the log of its integral."""
        most, step = float(logs.max()), float(t[1] - t[0])
        shares = np.exp(logs - most)
        shares[[0, -1]] *= 0.5  # the trapezoidal rule
        total = float(shares.sum())
        shares /= total
        mean, value = float(shares @ t), average(t, shares, _get_prior(likelihood).power)
        sd = max(math.sqrt(float(shares @ np.square(t - mean))), LEAST_STEPS * step)
        return self._after(mean, sd, value, rows), most + math.log(step * total)

    def _match_parabola(
        self, likelihood: Likelihood, t: Array, logs: Array, rows: float
    ) -> tuple[Self, float]:
        """The same of the parabola through three nodes."""
        step, slope = float(t[1] - t[0]), 0.5 * float(logs[2] - logs[0])
        curvature = max(2.0 * float(logs[1]) - float(logs[0] + logs[2]), LEAST_STEPS)
        # A sharp peak far from here moves by a unit of t, else it would be reached too late.
        furthest, variance = max(FURTHEST, 1.0 / step), step * step / curvature
        move = max(min(slope / curvature, furthest), -furthest)
        log_integral = float(logs[1]) + 0.5 * (slope * move + LOG_2PI + math.log(variance))
        return self._of(likelihood, float(t[1]) + step * move, variance, rows), log_integral

    def _multiply(self, likelihood: Likelihood, one: Self, less: Self, rows: float) -> Self:
        """The Gaussian times that of ``one`` over that of ``less``."""
        each = np.array([[of.sd**-2.0, of.mean * of.sd**-2.0] for of in (self, one, less)])
        precision, shift = (each[0] + each[1] - each[2]).tolist()
        variance = 1.0 / max(precision, self.before_data(likelihood).sd ** -2.0)
        return self._of(likelihood, shift * variance, variance, rows)

    def _of(self, likelihood: Likelihood, mean: float, variance: float, rows: float) -> Self:
        low, high = _get_prior(likelihood).ends
        log_value = mean + 0.5 * _get_prior(likelihood).power * variance
        mean, log_value = (min(max(one, low), high) for one in (mean, log_value))
        return self._after(mean, math.sqrt(variance), math.exp(log_value), rows)

    def _after(self, mean: float, sd: float, value: float, rows: float) -> Self:
        return type(self)(mean, sd, value, rows, due=rows + max(1.0, rows // GROWTH_DIVISOR))


def _compute_log_densities(known: Likelihood, y: Array, mean: Array, variance: Array) -> Array:
    """(n,) log predictive densities where eta ~ Normal(mean, variance), by Laplace's method.

    Where a likelihood hardly bends over what is believed, its mode is one Newton step away.
    """
    in_numpy = known.kernel_code is None or len(y) > MANY_ROWS
    if in_numpy and float(np.max(variance, initial=0.0)) < NARROW_VARIANCE:
        value, slope, curvature = look(known, y, mean)
        spread = 1.0 + variance * curvature
        step = variance * slope / spread
        if max(float(np.max(spread)) - 1.0, float(np.max(np.abs(step)))) < NARROW_STEP:
            return value + 0.5 * (slope * step - np.log(spread))
    ones = np.ones(len(y))
    return find_sites(known, "laplace", y, mean, variance, ones, CLOSE).log_normalizer


def _get_prior(likelihood: Likelihood) -> Parameter:
    if likelihood.parameter is None:
        raise TypeError(f"{type(likelihood).__name__} has no parameter that can be learned")
    return likelihood.parameter
