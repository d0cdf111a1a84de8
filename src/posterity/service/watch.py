"""Features that change: the newest hundred rows beside all that a predictor learned before."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from scipy.special import fdtri

from posterity.aliases import Array

# Rows that are looked at together, features that are looked at, and events that are kept.
BLOCK, MOST_FEATURES, MOST_EVENTS = 100, 200, 20
# Parts of a number's values, and rows of the first block that a level of its own needs.
PARTS, FEWEST_ROWS = 5, 10
# Blocks of independent rows that are taken to have come before the first.
INDEPENDENT = 3.0
# How often chance alone makes an alarm of any feature: once in a thousand blocks.
CHANCE = 1e-3


class Feature(msgspec.Struct):
    """What the blocks so far say of one feature.

    Attributes
    ----------
    edges : list of float
        Between the parts of its numbers: quantiles of the first block. A value that comes often,
        as 0 may, is twice among them, and is a part of its own.
    levels : list of str
        Of text, those that a tenth of the first block has.
    blocks : int
        How many blocks came after the first.
    mean, scatter : list
        Of their counts, by part: the mean of roots (m,), and their sums of products (m, m).
    """

    edges: list[float]
    levels: list[str]
    blocks: int = 0
    mean: list[float] = []
    scatter: list[list[float]] = []

    def look(self, name: str, values: Sequence[Any], chance: float) -> str:
        r"""Add a block of values; return what is unusual about it, "" where nothing is.

        Its counts of the parts, :math:`n_j`, become :math:`\sqrt{n_j} + \sqrt{n_j + 1}`, whose
        variances are near 1 (Freeman and Tukey 1950). With their mean over k blocks before, and
        their covariance C, the squared distance :math:`d^2 / (1 + 1/k)` is about
        :math:`\mathrm{tr}(C) F(\nu, \nu (k - 1))`, where
        :math:`\nu = \mathrm{tr}(C)^2 / \mathrm{tr}(C^2)` (Box 1954). So neighbours that are alike,
        as hours of one day are, are no drift.
        """
        counts = self._count(values)
        roots = np.sqrt(counts) + np.sqrt(counts + 1.0)
        mean, scatter, k = np.array(self.mean or roots), self._read_scatter(len(roots)), self.blocks
        away = roots - mean
        told, strayed = "", away @ away * k / (k + 1.0) / _find_bound(scatter, k, chance)
        if strayed > 1.0:
            place = int(np.argmax(away))
            usual = ((mean[place] ** 2 - 1.0) / (2.0 * mean[place])) ** 2 / BLOCK
            told = f"{name}: {counts[place] / BLOCK:.0%} of {BLOCK} rows {self._describe(place)}, "
            told += f"{usual:.0%} before"
        self.blocks = k + 1
        # What was unusual says how blocks differ no more than the bound does.
        added = np.outer(away, away) * k / (k + 1.0) / max(strayed, 1.0)
        self.scatter = (scatter + added).tolist()
        self.mean = (mean + away / (k + 1.0)).tolist()
        return told

    def _read_scatter(self, size: int) -> Array:
        return np.array(self.scatter) if self.scatter else np.zeros((size, size))

    def _count(self, values: Sequence[Any]) -> Array:
        """How many values each part has (m,); the last counts those that are missing."""
        parts = Counter(map(self._find_part, values))
        size = len(self.edges or self.levels) + 2
        return np.array([parts[place] for place in range(size)], np.float64)

    def _find_part(self, value: Any) -> int:
        if value is None:
            return len(self.edges or self.levels) + 1
        if isinstance(value, str):
            return self.levels.index(value) if value in self.levels else len(self.levels)
        # Between the two edges of a value that comes often, else below its edge.
        return (bisect_left(self.edges, value) + bisect_right(self.edges, value)) // 2

    def _describe(self, place: int) -> str:
        known = self.edges or self.levels
        if place > len(known):
            return "have it missing"
        if not self.edges:
            return f"have {known[place]!r}" if place < len(known) else "have another level"
        before, own, after = [None, *known, None, None][place : place + 3]
        if own is not None and before == own:
            return f"are {own:.4g}"
        low = "" if before is None else f"above {before:.4g}"
        high = "" if own is None else f"{'below' if own == after else 'up to'} {own:.4g}"
        return " ".join(filter(None, ["lie", low, high]))


def _find_bound(scatter: Array, k: int, chance: float) -> float:
    """The squared distance beyond which a block of the same kind as k others lies by chance."""
    n, size = k - 1.0 + INDEPENDENT, len(scatter)
    # Of independent rows the roots have variance 1 but for what their sum has.
    covariance = (scatter + INDEPENDENT * (1.0 - 1.0 / size) * np.eye(size)) / n
    trace = float(np.trace(covariance))
    df = trace**2 / float(np.sum(covariance**2))
    # Not less than chance makes of rows that are independent.
    return float(fdtri(df, df * n, 1.0 - chance)) * max(trace, size - 2.0)


class Watch(msgspec.Struct):
    """All features of a predictor, a function of the rows that were learned.

    Attributes
    ----------
    features : dict of str to Feature
    waiting : list of list
        The values of rows that are no whole block yet.
    alarms : list of str
        What was unusual about the last block.
    events : list of (float, str)
        When something became unusual, and what: the newest.
    count : int
        How often something did.

    Examples
    --------
    >>> watch = Watch()
    >>> for n in range(1_000):
    ...     told = watch.add({"heat": n % 17.0 if n < 900 else 20.0})
    >>> told
    ['heat: 100% of 100 rows lie above 13, 18% before']
    """

    features: dict[str, Feature] = {}
    waiting: list[list[Any]] = []
    alarms: list[str] = []
    events: list[tuple[float, str]] = []
    count: int = 0

    def add(self, values: Mapping[str, Any]) -> list[str] | None:
        """Take a row's values, None where missing; return what is unusual once a block is whole."""
        self.waiting.append([*values.values()][:MOST_FEATURES])
        if len(self.waiting) < BLOCK:
            return None
        columns, self.waiting = [*zip(*self.waiting, strict=True)], []
        found = []
        for name, column in zip(values, columns, strict=False):
            if name in self.features:
                found.append(self.features[name].look(name, column, CHANCE / len(columns)))
            else:
                self.features[name] = _begin(column)
        return [*filter(None, found)]

    def note(self, at: float, alarms: list[str]) -> None:
        """Keep what is unusual now; an event is what was not before."""
        known = {one.partition(":")[0] for one in self.alarms}
        begun = [(at, one) for one in alarms if one.partition(":")[0] not in known]
        self.alarms, self.count = alarms, self.count + len(begun)
        self.events = [*self.events, *begun][-MOST_EVENTS:]


def _begin(values: Sequence[Any]) -> Feature:
    """The parts of a feature, by the first block."""
    numbers = [value for value in values if not isinstance(value, str | None)]
    if numbers:
        inner = np.linspace(0.0, 1.0, PARTS + 1)[1:-1]
        edges, times = np.unique(np.quantile(numbers, inner, method="lower"), return_counts=True)
        return Feature(np.repeat(edges, np.minimum(times, 2)).tolist(), [])
    levels = Counter(value for value in values if value is not None)
    return Feature([], [level for level, count in levels.items() if count >= FEWEST_ROWS])
