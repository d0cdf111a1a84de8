"""Survey of a whole table before its partitions are learned apart.

A partition knows only its own levels, means and ranges. Each tells what it has in a short text;
their sum is the same whatever the partitions are, and so is what is made of it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from posterity.io.arrow import pa
from posterity.io.columns import MOST_LEVELS
from posterity.io.conversions import as_numbers, get_codes
from posterity.io.errors import TableError


@dataclass(frozen=True)
class Questions:
    """Columns to look at.

    Attributes
    ----------
    levels : tuple of str
        Categories whose levels are asked for.
    numbers : tuple of str
        Columns whose sum, count and range are asked for.
    labels : str or None
        Target of a classifier.
    """

    levels: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    labels: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns to ask about; empty where there is nothing to ask."""
        labels = () if self.labels is None else (self.labels,)
        return tuple(dict.fromkeys((*self.levels, *self.numbers, *labels)))


@dataclass
class Answers:
    """Answers: counts of levels, ``[sum, count, least, greatest]`` of numbers, labels."""

    levels: dict[str, dict[str, int]] = field(default_factory=dict)
    numbers: dict[str, list[float]] = field(default_factory=dict)
    labels: list[Any] = field(default_factory=list)

    def get_range(self, column: str) -> tuple[float, float]:
        """Least and greatest value of a column."""
        _, _, least, greatest = self.numbers[column]
        return least, greatest


def survey(questions: Questions, batches: Iterable[pa.RecordBatch]) -> str:
    """Answers of one partition's record batches, as text.

    Raises
    ------
    TableError
        Where a column has too many levels to be categories.

    Examples
    --------
    >>> import pyarrow as pa
    >>> rides = pa.record_batch({"zone": ["a", "b", "a", None]})
    >>> survey(Questions(levels=("zone",)), [rides])
    '{"levels": {"zone": {"a": 2, "b": 1}}, "numbers": {}, "labels": []}'
    """
    levels: dict[str, Counter[str]] = {name: Counter() for name in questions.levels}
    numbers = {name: [0.0, 0.0, np.inf, -np.inf] for name in questions.numbers}
    labels: set[Any] = set()
    for batch in batches:
        for name, counts in levels.items():
            _count(batch.column(name), counts)
            _check_levels(name, counts)
        for name, sums in numbers.items():
            _summarize(batch.column(name), sums)
        if questions.labels is not None:
            labels.update(batch.column(questions.labels).unique().drop_null().to_pylist())
    ordered = {name: dict(sorted(counts.items())) for name, counts in levels.items()}
    return json.dumps(asdict(Answers(ordered, numbers, sorted(labels))))


def merge_answers(surveys: Iterable[str]) -> Answers:
    """Merge the answers of all partitions; their order does not matter, but for rounding."""
    found = Answers()
    labels: set[Any] = set()
    for text in surveys:
        one = Answers(**json.loads(text))
        for name, counts in one.levels.items():
            sums = Counter(found.levels.get(name, {}))
            sums.update(counts)
            _check_levels(name, sums)
            found.levels[name] = dict(sorted(sums.items()))
        for name, (total, count, least, greatest) in one.numbers.items():
            so_far = found.numbers.get(name, [0.0, 0.0, np.inf, -np.inf])
            found.numbers[name] = [
                so_far[0] + total,
                so_far[1] + count,
                min(so_far[2], least),
                max(so_far[3], greatest),
            ]
        labels.update(one.labels)
    found.labels = sorted(labels)
    return found


def _count(values: pa.Array, counts: Counter[str]) -> None:
    codes, words = get_codes(values)
    found = np.bincount(codes, minlength=len(words) + 1)
    for word, count in zip(words, found.tolist(), strict=False):
        if count:
            counts[str(word)] += count


def _summarize(values: pa.Array, sums: list[float]) -> None:
    column = as_numbers(values)
    finite = column[np.isfinite(column)]
    if len(finite):
        sums[0] += float(finite.sum())
        sums[1] += float(len(finite))
        sums[2] = min(sums[2], float(finite.min()))
        sums[3] = max(sums[3], float(finite.max()))


def _check_levels(name: str, counts: Counter[str]) -> None:
    if len(counts) > MOST_LEVELS:
        raise TableError(
            f"column {name!r} has more than {MOST_LEVELS} different values, too many for "
            f"categories: leave it out (drop=[{name!r}]), or turn it into numbers"
        )
