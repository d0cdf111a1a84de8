"""Curves and surfaces: cubic B-splines whose second differences are penalised (Eilers & Marx 1996).

Coefficients whose second differences are 0 are a straight line, which is a fixed effect. What is
left of them are the differences u, independent with one standard deviation: B pinv(D) u. Of a
surface the products of lines are fixed effects. Bends of one column times lines of the other, and
bends of both, are terms of their own (Wood, Scheipl & Faraway 2013).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
from scipy.interpolate import BSpline

from posterity.aliases import Array
from posterity.linear.keys import Keys, list_labels
from posterity.model.factors import Factor, Frame, check_finite, compute_numbers
from posterity.model.formula import LEAST_SPLINES, MOST_SPLINES, Curve
from posterity.model.grammar import refuse
from posterity.sparse.parts import Part

# Number of points at which a curve is read, and of each column of a surface.
POINTS, SURFACE_POINTS = 100, 30
DEGREE = 3
# Singular values of differences that are rounding, relative to the largest.
ROUNDING = 1e-9


def begin_curve(curve: Curve, frame: Frame) -> Array:
    """What the first rows fix: of each column both ends and the number of splines; (3,) of one."""
    kept = []
    for node, x in zip(curve.over, read_places(curve, frame), strict=True):
        low, high = (x.min(), x.max()) if curve.period is None else (0.0, curve.period)
        if not low < high:
            raise refuse(frame.formula, node.at, f"{node} has one value in all first rows")
        kept.append([low, high, curve.count])
    return np.array(kept if len(kept) > 1 else kept[0], dtype=np.float64)


def read_places(curve: Curve, frame: Frame) -> list[Array]:
    """The numbers (n,) that a curve is over, of each column."""
    return [check_finite(compute_numbers(node, frame), node, frame) for node in curve.over]


def is_curve(kept: Array) -> bool:
    """Whether this may be what the first rows fixed of a curve."""
    return kept.shape in {(3,), (2, 3)} and all(
        low < high and LEAST_SPLINES <= count <= MOST_SPLINES
        for low, high, count in kept.reshape(-1, 3).tolist()
    )


def make_curve_parts(
    curve: Curve, places: Sequence[Array], kept: Array, by: Factor | None, apart: Sequence[Any]
) -> list[Part]:
    """The lines of a curve, and what bends it; beyond the first rows it goes straight on.

    ``apart``: levels of ``by`` whose bends have a scale each, instead of one for all levels.

    Examples
    --------
    >>> from posterity.model.formula import read_formula
    >>> kept, curve = np.array([0.0, 1.0, 7]), read_formula("y ~ s(x)").curves[0]
    >>> line, bends = make_curve_parts(curve, [np.linspace(0.0, 1.0, 9)], kept, None, ())
    >>> line.name, bends.name, len(bends.keys.labels)
    ('s(x): line', 's(x)', 5)
    """
    lines, bends = _compute(curve, places, kept)
    if by is not None and by.keys is not None:
        return _make_keyed_parts(by, by.keys, lines, bends, apart)
    if by is not None:
        z = by.columns[0][1]
        lines = {name: x * z for name, x in lines.items()}
        bends = {name: values * z[:, None] for name, values in bends.items()}
    parts = [Part(name, None, None, x) for name, x in lines.items()]
    for name, values in bends.items():
        n, k = values.shape
        rows, keys = np.repeat(np.arange(n), k), _number_columns(n, k)
        parts.append(Part(name, rows, keys, values.ravel()))
    return parts


# ---- inner ---------------------------------------------------------------------------------------


def _make_keyed_parts(
    by: Factor, keys: Keys, lines: dict[str, Array], bends: dict[str, Array], apart: Sequence[Any]
) -> list[Part]:
    """A line for each level of ``by``, and bends for each."""
    each, labels = np.arange(len(keys.numbers)), list_labels(keys.labels)
    parts = [Part(f"{by.name}:{name}", each, keys, x) for name, x in lines.items()]
    for name, values in bends.items():
        k = values.shape[1]
        for label in apart:
            own = labels.index(label) if label in labels else -1
            some = np.flatnonzero(keys.numbers == own)
            rows, columns = np.repeat(some, k), _number_columns(len(some), k)
            parts.append(Part(f"{name}[{label}]", rows, columns, values[some].ravel()))
        if not apart:
            numbers = (keys.numbers[:, None] * k + np.arange(k)).ravel().astype(np.int32)
            pairs = [(label, column) for label in labels for column in range(k)]
            both = Keys(numbers, pairs, (*keys.kinds, "numbers"))
            parts.append(Part(name, np.repeat(each, k), both, values.ravel()))
    return parts


def _number_columns(n: int, k: int) -> Keys:
    """The keys of n rows of k columns, each a level."""
    labels = np.arange(k if n else 0)
    return Keys(np.tile(np.arange(k, dtype=np.int32), n), labels, ("numbers",))


def _compute(
    curve: Curve, places: Sequence[Array], kept: Array
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Lines (n,) and bends (n, k) of a curve, by name."""
    each = list(zip(places, kept.reshape(-1, 3).tolist(), strict=True))
    splines = [_bend(x, low, high, int(k), curve.period) for x, (low, high, k) in each]
    near = [(2.0 * x - low - high) / (high - low) for x, (low, high, _) in each]
    straight = [np.stack([np.ones_like(x), x], axis=1) for x in near]
    lines = {
        name: places[some[0]] if len(some) == 1 else np.prod([near[at] for at in some], axis=0)
        for name, some in curve.lines.items()
    }
    bends = {
        name: reduce(
            _cross, [splines[at] if at in some else straight[at] for at in range(len(near))]
        )
        for name, some in curve.bends.items()
    }
    return lines, bends


def _bend(x: Array, low: float, high: float, size: int, period: float | None) -> Array:
    """(n, k) what bends a curve: splines of coefficients with one second difference each."""
    if period is None:
        step, inside = (high - low) / (size - DEGREE), np.clip(x, low, high)
        bends = np.linalg.pinv(np.diff(np.eye(size), 2, axis=0), rcond=ROUNDING)
    else:  # the last splines are the first ones again
        inside = x = np.mod(x, period)
        step, one = (high - low) / size, np.eye(size)
        differences = np.roll(one, 1, axis=1) - 2.0 * one + np.roll(one, -1, axis=1)
        bends = np.linalg.pinv(differences, rcond=ROUNDING)[np.arange(size + DEGREE) % size]
    knots = low + step * np.arange(-DEGREE, len(bends) + 1)
    splines = BSpline(knots, bends, DEGREE)
    return np.asarray(splines(inside) + (x - inside)[:, None] * splines.derivative()(inside))


def _cross(one: Array, other: Array) -> Array:
    """(n, k l) products of a column of each, by rows."""
    return np.asarray((one[:, :, None] * other[:, None, :]).reshape(len(one), -1))
