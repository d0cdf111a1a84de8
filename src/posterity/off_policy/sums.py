"""Estimators as sums over rows, which are all that is kept of a log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posterity.aliases import Array
from posterity.kernel import moderated_sums
from posterity.off_policy.targets import EvaluatedDecisions

# Of which one is chosen where none is given.
SWITCHES = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, np.inf)
SHRINKAGES = (1.0, 10.0, 100.0, 1000.0, 10000.0, np.inf)
# Rows that are kept to see what the model says of them in the end.
_SAMPLE_ROWS = 2048


@dataclass(frozen=True)
class EstimatorSums:
    """An estimate; ``squares`` is the sum of squared errors, whose sum ``mass`` divides.

    ``df`` are the degrees of freedom of the squares, where these are of few parts.
    """

    value: float
    squares: float
    mass: float
    df: float = np.inf

    @property
    def std_error(self) -> float:
        """Standard error, by the influence of each row."""
        return float(np.sqrt(max(self.squares, 0.0)) / self.mass)


class Sums:
    """An estimator's sums over rows; of most the squares alone say all about their errors."""

    def add(self, rows: EvaluatedDecisions) -> None:
        """Add more rows."""
        raise NotImplementedError

    def add_without(self, rows: EvaluatedDecisions, part: int) -> None:
        """The same rows, as expected without those of one part of the log."""

    def finish(self, predict: Callable[[Array], Iterator[Array]]) -> None:
        """All rows are here; ``predict`` gives what models expect now, of all rows and without."""

    def estimate(self) -> EstimatorSums | None:
        """The estimate; none where nothing was there to estimate from."""
        raise NotImplementedError


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
class Ratio(Sums):
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


def compute_jackknife_variance(means: Array) -> Array:
    """(T,) variances of T estimates by what they are (G, T) without each of G parts.

    The model is learned without the part as well, so its errors are in the variance (Quenouille
    1956; Tukey 1958).

    Examples
    --------
    >>> compute_jackknife_variance(np.array([[1.0], [2.0], [3.0]])).round(2)
    array([1.33])
    """
    off = means - means.mean(axis=0)
    return np.asarray((1.0 - 1.0 / len(means)) * np.square(off).sum(axis=0))


@dataclass
class RowSample:
    """A few rows, drawn evenly from all: those of the least numbers, once these are mixed."""

    most: int
    numbers: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    columns: list[Array] = field(default_factory=list)

    def add(self, numbers: NDArray[np.uint64], *columns: Array) -> None:
        """More rows, with numbers (n,) and whatever else is known of them."""
        rows: Any = slice(None)
        if len(self.numbers) == self.most:
            rows = np.flatnonzero(numbers < self.numbers.max())
        numbers = np.concatenate([self.numbers, numbers[rows]])
        kept: Any = slice(None)
        if len(numbers) > self.most:
            kept = np.argpartition(numbers, self.most - 1)[: self.most]
        before = self.columns or [column[:0] for column in columns]
        pairs = zip(before, columns, strict=True)
        self.columns = [np.concatenate([old, new[rows]])[kept] for old, new in pairs]
        self.numbers = numbers[kept]


@dataclass
class DirectMethod(Sums):
    """The mean of what the model expects when it has learned all rows.

    Of each row it is known what was expected before it was learned, and of a sample, which is all
    rows of a short log, what is in the end: its mean step is added.
    """

    n_arms: int
    parts: int
    pivot: float | None = None
    sums: Array = field(default_factory=lambda: np.zeros((0, 0)))  # (2, G) rows and their sums
    steps: Array = field(default_factory=lambda: np.zeros(0))  # (1 + G,) of all, without each part
    sample: RowSample = field(default_factory=lambda: RowSample(_SAMPLE_ROWS))

    def __post_init__(self) -> None:
        self.sums, self.steps = np.zeros((2, self.parts)), np.zeros(1 + self.parts)

    def add(self, rows: EvaluatedDecisions) -> None:
        """See :class:`Sums`."""
        direct = rows.expected
        if not len(direct):
            return
        if self.pivot is None:
            self.pivot = float(direct.mean())
        part = rows.compute_parts(self.parts)
        both = (None, direct - self.pivot)
        self.sums = self.sums + np.array([np.bincount(part, w, self.parts) for w in both])
        chances = rows.chances
        if chances is None:
            chances = np.eye(self.n_arms)[rows.rounds.arms]
        self.sample.add(rows.numbers, rows.rounds.X, chances, direct)

    def finish(self, predict: Callable[[Array], Iterator[Array]]) -> None:
        """See :class:`Sums`."""
        if self.pivot is None:
            return
        X, chances, direct = self.sample.columns
        part = self.sample.numbers % np.uint64(self.parts)
        for number, expected in enumerate(predict(X)):
            step = np.einsum("nk,nk->n", chances, expected) - direct
            kept = step[part != number - 1] if number else step
            self.steps[number] = kept.mean() if len(kept) else 0.0

    def estimate(self) -> EstimatorSums | None:
        """See :class:`Sums`."""
        rows, sums = self.sums
        n = float(rows.sum())
        if self.pivot is None:
            return None
        without = (sums.sum() - sums) / np.maximum(n - rows, 1.0) + self.steps[1:]
        variance = float(compute_jackknife_variance(without[:, None])[0])
        value = self.pivot + float(sums.sum()) / n + float(self.steps[0])
        return EstimatorSums(value, n**2 * variance, n, self.parts - 1.0)


@dataclass
class ModeratedDoublyRobust(Sums):
    """Doubly robust with weights that are moderated, by the best of several thresholds.

    A weight w is kept whole up to a threshold t and dropped beyond (Wang and others 2017), or, if
    ``shrinks``, multiplied by t / (w^2 + t) (Su and others 2020). The threshold is that of the
    least squared error, as estimated: squared mean of what is taken away, plus the variance. That
    is the larger one of the rows' own and that without ``parts`` of the log, which has the model's
    errors; where nothing is taken away, these are in the rows.
    """

    shrinks: bool
    thresholds: Array
    parts: int = 0
    rows: int = 0
    pivot: float | None = None
    plain: Array = field(default_factory=lambda: np.zeros(3))  # of d, d^2 and e
    moderated: Array = field(default_factory=lambda: np.zeros((0, 0)))  # of g e, g e d, g^2 e^2
    largest: float = 0.0  # weight
    without: Array = field(default_factory=lambda: np.zeros((0, 0)))  # (G, T) of d + g e
    others: Array = field(default_factory=lambda: np.zeros(0))  # (G,) rows of all other parts

    def __post_init__(self) -> None:
        self.moderated = np.zeros((3, len(self.thresholds)))
        self.without = np.zeros((self.parts, len(self.thresholds)))
        self.others = np.zeros(self.parts)

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
        self.largest = max(self.largest, float(weight.max()))

    def add_without(self, rows: EvaluatedDecisions, part: int) -> None:
        """See :class:`Sums`."""
        if not len(rows.rewards):
            return
        others = (rows.compute_parts(self.parts) != part).astype(np.float64)
        weight = _weights(rows)
        error = others * weight * (rows.rewards - rows.own)
        direct = others * (rows.expected - (self.pivot or 0.0))
        sums = moderated_sums(weight, error, direct, self.thresholds, self.shrinks)
        self.without[part] += direct.sum() + sums[0]
        self.others[part] += others.sum()

    def estimate(self) -> EstimatorSums | None:
        """See :class:`Sums`."""
        n = self.rows
        if not n:
            return None
        mean = (self.plain[0] + self.moderated[0]) / n
        squares = self.plain[1] + 2.0 * self.moderated[1] + self.moderated[2] - n * mean**2
        whole = self.thresholds >= (np.inf if self.shrinks else self.largest)
        if self.parts:
            means = self.without / np.maximum(self.others, 1.0)[:, None]
            larger = np.maximum(squares, n**2 * compute_jackknife_variance(means))
            squares = np.where(whole, squares, larger)
        squares = np.maximum(squares, 0.0) + np.square(self.plain[2] - self.moderated[0])
        best = int(np.argmin(squares))
        df = np.inf if whole[best] or not self.parts else self.parts - 1.0
        return EstimatorSums(
            float((self.pivot or 0.0) + mean[best]), float(squares[best]), float(n), df
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
# Those that trust a reward model.
MODERATED = {"switch_dr", "dr_shrinkage"}
BIASED = {"dm", *MODERATED}


def choose_estimator(
    method: str, switch: float | None, shrinkage: float | None, n_arms: int, parts: int
) -> Sums:
    """Sums for a method by its name; raises ``ValueError`` for a name that there is not.

    Where a model learns, it is known what it would say without each of so many ``parts``.
    """
    if method == "dm" and parts:
        return DirectMethod(n_arms, parts)
    if method == "switch_dr":
        thresholds = np.array(SWITCHES if switch is None else [switch])
        return ModeratedDoublyRobust(False, thresholds, parts)
    if method == "dr_shrinkage":
        thresholds = np.array(SHRINKAGES if shrinkage is None else [shrinkage])
        return ModeratedDoublyRobust(True, thresholds, parts)
    if method not in RATIOS:
        raise ValueError(f"{method!r} is not a method: give one of {', '.join(METHODS)}")
    return Ratio(RATIOS[method])
