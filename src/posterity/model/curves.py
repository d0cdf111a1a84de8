"""Curves ``s(x)``: cubic B-splines whose second differences are penalised (Eilers & Marx 1996).

Coefficients whose second differences are 0 are a straight line, which is a fixed effect. What is
left of them are the differences u, independent with one standard deviation: B pinv(D) u.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline

from posterity.linear.keys import Keys
from posterity.model.factors import Frame, compute_numbers
from posterity.model.grammar import Node, refuse
from posterity.sparse.parts import Part, check_values

Array = NDArray[np.float64]

# Number of splines, the least and the most; the number of points at which a curve is read.
SPLINES, LEAST_SPLINES, MOST_SPLINES, POINTS = 30, 5, 1000, 100
DEGREE = 3


def begin_curve(curve: Node, frame: Frame) -> Array:
    """What the first rows fix of a curve: where it begins and ends, and the number of splines."""
    x, count = read_places(curve, frame), SPLINES
    for argument in curve.parts[1:]:
        name, value = argument.parts if argument.kind == "=" else (argument, argument)
        number = int(value.text) if value.text.isdigit() else 0
        if name.text != "k" or not LEAST_SPLINES <= number <= MOST_SPLINES:
            raise refuse(
                frame.formula,
                argument.at,
                f"a curve has a column and k, a number of splines from {LEAST_SPLINES} to "
                f"{MOST_SPLINES:,}, as in s(x, k=40)",
            )
        count = number
    if not x.min() < x.max():
        raise refuse(frame.formula, curve.at, f"{curve.parts[0]} has one value in all first rows")
    return np.array([x.min(), x.max(), count], dtype=np.float64)


def read_places(curve: Node, frame: Frame) -> Array:
    """(n,) the numbers that a curve is over."""
    if not curve.parts:
        raise refuse(frame.formula, curve.at, "a curve is over a column, as in s(x)")
    return check_values(compute_numbers(curve.parts[0], frame), str(curve.parts[0]))


def is_curve(kept: Array) -> bool:
    """Whether this may be what the first rows fixed of a curve."""
    possible = kept.shape == (3,) and LEAST_SPLINES <= kept[2] <= MOST_SPLINES
    return bool(possible and kept[0] < kept[1])


def make_curve_parts(curve: Node, x: Array, kept: Array) -> list[Part]:
    """The straight line of a curve, and what bends it; beyond the first rows it goes straight on.

    Examples
    --------
    >>> from posterity.model.grammar import parse
    >>> kept = np.array([0.0, 1.0, 7])
    >>> line, bends = make_curve_parts(parse("s(x)"), np.linspace(0.0, 1.0, 9), kept)
    >>> line.name, bends.name, len(bends.keys.labels)
    ('s(x): line', 's(x)', 5)
    """
    low, high, count = kept
    bases = int(count)
    step = (high - low) / (bases - DEGREE)
    knots = low + step * np.arange(-DEGREE, bases + 1)
    bends = np.linalg.pinv(np.diff(np.eye(bases), 2, axis=0))
    splines, inside = BSpline(knots, bends, DEGREE), np.clip(x, low, high)
    values = splines(inside) + (x - inside)[:, None] * splines.derivative()(inside)
    n, k = values.shape
    keys = Keys(np.tile(np.arange(k, dtype=np.int32), n), np.arange(k), ("numbers",))
    rows = np.repeat(np.arange(n), k)
    line = Part(f"{curve}: line", None, None, x)
    return [line, Part(str(curve), rows, keys, values.ravel())]


__all__ = ["POINTS", "begin_curve", "is_curve", "make_curve_parts", "read_places"]
