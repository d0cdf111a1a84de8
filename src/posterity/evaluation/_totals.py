"""Sums over the rows of a stream, from which its scores are means; sums of parts add up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from posterity.aliases import Array
from posterity.evaluation import _scores as column
from posterity.evaluation.baselines import Baseline
from posterity.evaluation.slices import SliceSums

MOST_STRETCHES = 128


@dataclass(frozen=True, eq=False)
class Totals:
    """Sums of scores over a validation.

    Attributes
    ----------
    levels : tuple of float
    overall : (c,) array
        Sums of the columns that `_scores` names.
    stretches : (s, c) array
        The same over consecutive stretches.
    most : (s,) array
        Greatest absolute error in each.
    counts : (100,) int array or None
        Of the PIT.
    slices : dict of feature to SliceSums
    baselines : dict of name to Baseline
        They know the rows before; sums of parts do not, and have none.
    """

    levels: tuple[float, ...]
    overall: Array
    stretches: Array
    most: Array
    counts: NDArray[np.int64] | None
    slices: dict[str, SliceSums] = field(default_factory=dict)
    baselines: dict[str, Baseline] = field(default_factory=dict)


def add_totals(parts: Sequence[Totals]) -> Totals:
    """Sums over consecutive parts of a stream."""
    first = parts[0]
    for part in parts[1:]:
        _check_alike(first, part)
    counts = [part.counts for part in parts if part.counts is not None]
    stretches, most = _coarsen(
        np.concatenate([part.stretches for part in parts]),
        np.concatenate([part.most for part in parts]),
    )
    with np.errstate(over="ignore", invalid="ignore"):
        return Totals(
            first.levels,
            np.sum([part.overall for part in parts], axis=0),
            stretches,
            most,
            np.sum(counts, axis=0) if len(counts) == len(parts) else None,
            {
                name: replace(each, sums=np.sum([part.slices[name].sums for part in parts], axis=0))
                for name, each in first.slices.items()
            },
        )


def _check_alike(one: Totals, other: Totals) -> None:
    if one.levels != other.levels:
        raise ValueError(
            f"merge results of the same levels: one has {one.levels}, another {other.levels}"
        )
    if one.slices.keys() != other.slices.keys():
        raise ValueError(
            f"merge results with slices of the same features: one has {list(one.slices)}, another "
            f"{list(other.slices)}"
        )
    for name, each in one.slices.items():
        same = other.slices[name]
        if each.levels != same.levels or not np.array_equal(each.edges, same.edges):
            raise ValueError(
                f"merge results with the same slices of {name!r}: give their edges instead of "
                "their number, which finds other edges in each part"
            )


def _coarsen(sums: Array, most: Array) -> tuple[Array, Array]:
    """Neighbours joined until there are at most `MOST_STRETCHES` of them."""
    if len(sums) <= MOST_STRETCHES:
        return sums, most
    before = np.cumsum(sums[:, column.ROWS]) - sums[:, column.ROWS]
    wanted = before[-1] / MOST_STRETCHES
    # A stretch belongs where it starts: so many equal places, some of which may stay empty.
    place = np.minimum(before // max(wanted, 1.0), MOST_STRETCHES - 1)
    starts = np.flatnonzero(np.diff(place, prepend=-1.0))
    with np.errstate(over="ignore", invalid="ignore"):
        return np.add.reduceat(sums, starts, axis=0), np.maximum.reduceat(most, starts)
