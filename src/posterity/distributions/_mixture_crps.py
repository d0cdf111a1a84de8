"""The continuous ranked probability score of mixtures.

    crps(y) = E|X - y| - E|X - X'| / 2,    E|X - X'| / 2 = integral of F (1 - F).

The first half is a sum over components. The second is a sum over pairs of normals (Grimit,
Gneiting, Berrocal and Johnson 2006, eq. 5); for Student-t components there is no closed form, and
the integral is done by the trapezoidal rule, which converges geometrically for analytic integrands:
points are added between the points until they no longer matter. Where they would be too many (hills
far apart for their width, point masses) the pairs are integrated one by one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from posterity.distributions import _standard_t
from posterity.distributions._mixture_terms import (
    BLOCK_ROWS,
    MixtureComponent,
    MixtureComponents,
    absolute_error,
    all_ordinary,
    flattened,
    has_flat_component,
    has_point_mass,
    least_df,
    lower_tail,
    shape_of,
    swap_rows,
    total,
)
from posterity.distributions._rows import FloatArray

_FIRST_POINTS = 16
_DOUBLINGS = 5
# If doubling the points changes the integral by less, the doubled rule's error is smaller still.
_AGREEMENT = 5e-7
_NEGLIGIBLE = 1e-7
_PAIR_POINTS = 256


def crps(y: FloatArray, terms: MixtureComponents) -> Any:
    """Compute the scores of a block."""
    if len(terms) == 1:
        return terms[0].distribution().crps(y)
    if terms[0].df is None and all_ordinary(terms):
        return absolute_error(y, terms) - 0.5 * _sum_pair_differences(terms)
    shape = shape_of(terms, y)
    y = np.broadcast_to(y, shape).reshape(-1)
    rows = flattened(terms, shape)
    least = least_df(rows)
    score = np.full(y.shape, math.inf)
    point = has_point_mass(rows)
    proper = ~has_flat_component(rows) & (least > 1.0)
    ordinary, point = proper & ~point, proper & point
    if ordinary.all():
        return (absolute_error(y, rows) - _integrate(rows, least)).reshape(shape)
    if ordinary.any():
        some = [term.take(ordinary) for term in rows]
        half = _integrate(some, least[ordinary])
        score[ordinary] = absolute_error(y[ordinary], some) - half
    if point.any():
        some, y_there = [term.take(point) for term in rows], y[point]
        score[point] = total(some, lambda term: _compute_mean_error(y_there, term))
        score[point] -= 0.5 * _sum_pair_differences(some)
    return np.where(np.isnan(y), math.nan, score).reshape(shape)


# ---- the integral of F (1 - F) ------------------------------------------------------------------


def _integrate(terms: MixtureComponents, least_df: FloatArray) -> FloatArray:
    """Integrate by the trapezoidal rule in s, for x = centre + scale * stretched(s)."""
    centre = total(terms, lambda term: term.loc)
    scale = np.sqrt(total(terms, lambda t: np.square(t.scale) + np.square(t.loc - centre)))
    ends = [
        np.abs(t.loc - centre) + t.scale * _compute_tail_length(_list_degrees_of_freedom(t))
        for t in terms
    ]
    reach = _unstretch(np.max(ends, axis=0) / scale, least_df)
    needed = _count_points(terms, centre, scale, reach, least_df)
    answer = np.empty(centre.shape)
    rows: Any = np.arange(centre.size)
    coarse, summed = np.full(centre.shape, math.inf), np.zeros(centre.shape)
    points, fractions = _FIRST_POINTS, np.arange(0, _FIRST_POINTS, 2) / _FIRST_POINTS
    for _ in range(_DOUBLINGS + 1):
        for fraction in _columns(fractions, centre.size):
            x, pace = _map_points(reach * fraction, least_df)
            pace *= np.where(fraction > 0.0, 1.0, 0.5)  # the centre belongs to both sides
            for side in (-1.0, 1.0):
                # The smaller of F and 1 - F: heavy tails matter where the other is 1 already.
                there = side * centre - scale * x
                mirrored = [term.reflect(np.asarray(side)) for term in terms]
                tail = lower_tail(there, mirrored, rough=True)
                summed = summed + (tail * (1.0 - tail) * pace).sum(axis=0)
        fine = summed * (2.0 * reach / points) * scale
        answer[rows] = fine
        left = ~((np.abs(fine - coarse) <= _AGREEMENT * fine) & (points >= needed))
        if not left.any():
            return answer
        rows, coarse, summed, reach = rows[left], fine[left], summed[left], reach[left]
        centre, scale, least_df = centre[left], scale[left], least_df[left]
        terms, needed = [term.take(left) for term in terms], needed[left]
        fractions = (np.arange(0, points, 2) + 1.0) / points
        points *= 2
    answer[rows] = 0.5 * _sum_pair_differences(terms)
    return answer


def _count_points(
    terms: MixtureComponents,
    centre: FloatArray,
    scale: FloatArray,
    reach: FloatArray,
    least_df: FloatArray,
) -> FloatArray:
    """Count the points at which the step is no longer than the scale of any component there.

    Then no narrow component goes unseen by two rules in a row. To miss the step that F takes there
    costs its height, the weight, times the distance of points.
    """
    narrowest = scale
    for term in terms:
        offset = (term.loc - centre) / scale
        width = term.scale / np.sqrt(1.0 + offset * offset / least_df)
        narrowest = np.where(term.weight > _NEGLIGIBLE, np.minimum(narrowest, width), narrowest)
    return 2.0 * reach * scale / narrowest


def _columns(fractions: FloatArray, rows: int) -> list[FloatArray]:
    """Yield points as columns, against the rows: one at a time if these are many, else more."""
    together = max(BLOCK_ROWS // max(rows, 1), 1)
    return [fractions[i : i + together, None] for i in range(0, fractions.size, together)]


def _map_points(s: FloatArray, df: FloatArray) -> tuple[FloatArray, FloatArray]:
    """x(s) and x'(s): straight for many degrees of freedom, many orders of magnitude for few.

    x = r sinh(t + t^3/36), t = s/r, r = sqrt(df): in t the spread of a Student-t is 2 log cosh t,
    and its tails fall geometrically; the cube makes up for tails whose mean hardly exists.
    """
    root = np.sqrt(df)
    t = s / root
    bent = t * (1.0 + t * t / 36.0)
    return root * np.sinh(bent), np.cosh(bent) * (1.0 + t * t / 12.0)


def _unstretch(x: FloatArray, df: FloatArray) -> FloatArray:
    """s(x) for positive x: t + t^3/36 = asinh(x/r), by the hyperbolic solution of the cubic."""
    root = np.sqrt(df)
    bent = np.arcsinh(x / root)
    t = 2.0 * math.sqrt(12.0) * np.sinh(np.arcsinh(1.5 * bent / math.sqrt(12.0)) / 3.0)
    return np.asarray(root * t)


def _compute_tail_length(df: FloatArray) -> FloatArray:
    """Return how far tails matter, at scale 1: beyond it they hold about 1e-8 of the integral.

    Six for the normal and sqrt(df expm1(36/df)) for its like; a tail as heavy as x^-df leaves
    T^(1 - df) beyond T.
    """
    heavy = np.exp(np.minimum(20.0 / (df - 1.0), 300.0))
    return np.maximum(np.sqrt(df * np.expm1(36.0 / df)), heavy)


# ---- pairs --------------------------------------------------------------------------------------


def _sum_pair_differences(terms: MixtureComponents) -> Any:
    """Return E|X - X'| as the sum over pairs of components, including point masses."""
    result: Any = 0.0
    for i, one in enumerate(terms):
        result = result + one.weight * one.weight * _pair(one, one)
        for other in terms[:i]:
            result = result + 2.0 * one.weight * other.weight * _pair(one, other)
    return result


def _pair(one: MixtureComponent, other: MixtureComponent) -> Any:
    """Return E|X - Y| of draws from two components."""
    if one.df is None or other.df is None:
        normal = MixtureComponent(np.ones(()), other.loc, np.hypot(one.scale, other.scale), None)
        return _compute_mean_error(one.loc, normal)
    swap = one.scale > other.scale
    certain = one._replace(weight=np.ones(()))
    narrow, wide = swap_rows(swap, certain, other), swap_rows(~swap, certain, other)
    # E over the narrow one of the error of the wide one, whose kink is no sharper than the density.
    df = _list_degrees_of_freedom(narrow)
    reach = _unstretch(_compute_tail_length(df), df)
    result: Any = 0.0
    fractions = (np.arange(_PAIR_POINTS) + 0.5) / _PAIR_POINTS
    for fraction in _columns(fractions, df.size):
        x, pace = _map_points(reach * (2.0 * fraction - 1.0), df)
        error = _compute_mean_error(narrow.loc + narrow.scale * x, wide)
        result = result + (_standard_t.pdf(x, df) * pace * error).sum(axis=0)
    return result * (2.0 * reach / _PAIR_POINTS)


def _list_degrees_of_freedom(term: MixtureComponent) -> FloatArray:
    return np.asarray(_standard_t.MOST_DF) if term.df is None else term.df


def _compute_mean_error(y: FloatArray, term: MixtureComponent) -> Any:
    """Return E|X - y| of one component, which may be a point mass."""
    certain = term._replace(weight=np.ones(()))
    return np.where(term.scale == 0.0, np.abs(y - term.loc), absolute_error(y, [certain]))
