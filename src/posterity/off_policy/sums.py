"""Estimators as sums over rows, which are all that is kept of a log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from posterity.kernel import moderated_sums
from posterity.off_policy.targets import EvaluatedDecisions

Array = NDArray[np.float64]

# Of which one is chosen where none is given.
SWITCHES = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, np.inf)
SHRINKAGES = (1.0, 10.0, 100.0, 1000.0, 10000.0, np.inf)


@dataclass(frozen=True)
class EstimatorSums:
    """An estimate; ``squares`` is the sum of squared errors, whose sum ``mass`` divides."""

    value: float
    squares: float
    mass: float

    @property
    def std_error(self) -> float:
        """Standard error, by the influence of each row."""
        return float(np.sqrt(max(self.squares, 0.0)) / self.mass)


class Sums(Protocol):
    """The interface of an estimator's sums over rows."""

    def add(self, rows: EvaluatedDecisions) -> None:
        """Add more rows."""
        ...

    def estimate(self) -> EstimatorSums | None:
        """The estimate; none where nothing was there to estimate from."""
        ...


# Scores (n,) and what they are divided by: (n,), or None for a mean.
Scores = Callable[[EvaluatedDecisions], tuple[Array, Array | None]]


def _replay(rows: EvaluatedDecisions) -> tuple[Array, Array | None]:
    return rows.match * rows.rewards, rows.match


def _estimate_ips(rows: EvaluatedDecisions) -> tuple[Array, Array | None]:
    return _weights(rows) * rows.rewards, None


def _estimate_snips(rows: EvaluatedDecisions) -> tuple[Array, Array | None]:
    return _weights(rows) * rows.rewards, _weights(rows)


def _estimate_dm(rows: EvaluatedDecisions) -> tuple[Array, Array | None]:
    return rows.expected, None


def _estimate_dr(rows: EvaluatedDecisions) -> tuple[Array, Array | None]:
    return rows.expected + _weights(rows) * (rows.rewards - rows.own), None


def estimate_correction(rows: EvaluatedDecisions) -> tuple[Array, Array | None]:
    """Return the terms that "dr" adds to the rewards earned."""
    scores, _ = _estimate_dr(rows)
    return scores - rows.rewards, None


def _weights(rows: EvaluatedDecisions) -> Array:
    assert rows.weight is not None  # whoever needs weights was refused before
    return rows.weight


@dataclass
class Ratio:
    """A sum of scores over a sum of what they are divided by.

    Squares are taken about a pivot, the estimate of the first rows, so that a large mean costs no
    digits of a small variance.
    """

    scores: Scores
    rows: int = 0
    pivot: float | None = None
    # of s, u, s^2, s u, u^2, where s are scores less the pivot times u
    sums: Array = field(default_factory=lambda: np.zeros(5))

    def add(self, rows: EvaluatedDecisions) -> None:
        """See :class:`Sums`."""
        s, u = self.scores(rows)
        n = len(s)
        if not n:
            return
        total = float(n) if u is None else float(u.sum())
        if self.pivot is None and total > 0.0:
            self.pivot = float(s.sum()) / total
        pivot = self.pivot or 0.0
        if u is None:
            s = s - pivot
            first = float(s.sum())
            self.sums += np.array([first, n, s @ s, first, n])
        else:
            s = s - pivot * u
            self.sums += np.array([s.sum(), total, s @ s, s @ u, u @ u])
        self.rows += n

    def estimate(self) -> EstimatorSums | None:
        """See :class:`Sums`."""
        s, u, ss, su, uu = self.sums
        if not u > 0.0:
            return None
        shift = s / u
        squares = ss - 2.0 * shift * su + shift**2 * uu
        return EstimatorSums(float((self.pivot or 0.0) + shift), float(squares), float(u))


@dataclass
class ModeratedDoublyRobust:
    """Doubly robust with weights that are moderated, by the best of several thresholds.

    A weight w is kept whole up to a threshold t and dropped beyond (Wang and others 2017), or, if
    ``shrinks``, multiplied by t / (w^2 + t) (Su and others 2020). The threshold is that of the
    least squared error, as estimated: squared mean of what is taken away, plus the variance.
    """

    shrinks: bool
    thresholds: Array
    rows: int = 0
    pivot: float | None = None
    plain: Array = field(default_factory=lambda: np.zeros(3))  # of d, d^2 and e
    moderated: Array = field(default_factory=lambda: np.zeros((0, 0)))  # of g e, g e d, g^2 e^2

    def __post_init__(self) -> None:
        self.moderated = np.zeros((3, len(self.thresholds)))

    def add(self, rows: EvaluatedDecisions) -> None:
        """See :class:`Sums`."""
        if not len(rows.rewards):
            return
        weight = _weights(rows)
        error = weight * (rows.rewards - rows.own)
        if self.pivot is None:
            self.pivot = float(rows.expected.mean())
        direct = rows.expected - self.pivot
        self.plain += (direct.sum(), direct @ direct, error.sum())
        self.moderated += moderated_sums(weight, error, direct, self.thresholds, self.shrinks)
        self.rows += len(weight)

    def estimate(self) -> EstimatorSums | None:
        """See :class:`Sums`."""
        n = self.rows
        if not n:
            return None
        mean = (self.plain[0] + self.moderated[0]) / n
        squares = self.plain[1] + 2.0 * self.moderated[1] + self.moderated[2] - n * mean**2
        bias = (self.plain[2] - self.moderated[0]) / n
        best = int(np.argmin(np.square(bias) + np.maximum(squares, 0.0) / n**2))
        return EstimatorSums(
            float((self.pivot or 0.0) + mean[best]), float(squares[best]), float(n)
        )


RATIOS: dict[str, Scores] = {
    "replay": _replay,
    "ips": _estimate_ips,
    "snips": _estimate_snips,
    "dm": _estimate_dm,
    "dr": _estimate_dr,
}
METHODS = (*RATIOS, "switch_dr", "dr_shrinkage")
# Those that do without a reward model, and without propensities.
WITHOUT_MODEL = {"replay", "ips", "snips"}
WITHOUT_PROPENSITIES = {"replay", "dm"}
# Those that trust a reward model, of whose errors their squares say nothing.
BIASED = {"dm", "switch_dr", "dr_shrinkage"}


def choose_estimator(method: str, switch: float | None, shrinkage: float | None) -> Sums:
    """Sums for a method by its name; raises ``ValueError`` for a name that there is not."""
    if method == "switch_dr":
        return ModeratedDoublyRobust(False, np.array(SWITCHES if switch is None else [switch]))
    if method == "dr_shrinkage":
        return ModeratedDoublyRobust(
            True, np.array(SHRINKAGES if shrinkage is None else [shrinkage])
        )
    if method not in RATIOS:
        raise ValueError(f"{method!r} is not a method: give one of {', '.join(METHODS)}")
    return Ratio(RATIOS[method])


__all__ = [
    "BIASED",
    "METHODS",
    "WITHOUT_MODEL",
    "WITHOUT_PROPENSITIES",
    "EstimatorSums",
    "Ratio",
    "Sums",
    "estimate_correction",
]
