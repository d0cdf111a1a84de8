"""Quantiles of mixtures: Halley's method on the scale of normal scores, and a bracket if it fails.

Put u(x) = Phi^-1(F(x)): for one hill it is nearly a straight line, tails included. Then

    u' = f / phi(u),    u''/u' = f'/f + u u',

and Halley's step, e / (1 + e u''/(2 u')) with e = (u_p - u)/u', triples the digits. The
distribution function is evaluated for the lower tail only (an upper quantile is a lower one of the
mirror image), so that small probabilities keep their digits.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from posterity.distributions._mixture_terms import (
    MixtureComponent,
    MixtureComponents,
    all_ordinary,
    flattened,
    has_flat_component,
    has_point_mass,
    lower_tail,
    shape_of,
    total,
    total_at,
)
from posterity.distributions._rows import FloatArray

_ROOT_2_PI = math.sqrt(2.0 * math.pi)
# The error after a step e is about e^3 (in units of the spread): 1e-14 at most.
_LAST_STEP = 2e-5
_FREE_STEPS = 5
_BRACKETED_STEPS = 300


def quantile(p: FloatArray, terms: MixtureComponents) -> Any:
    """Lower quantiles of a block, p <= 1/2; (b,), or 0-d if nothing varies."""
    if all_ordinary(terms) and p.min() > 0.0:
        return _solve_continuous(p, terms)
    shape = shape_of(terms, p)
    probability = np.broadcast_to(p, shape).reshape(-1)
    rows = flattened(terms, shape)
    x = np.full(probability.shape, math.nan)
    flat = has_flat_component(rows)
    centre = total(rows, lambda term: term.loc)
    x[flat] = np.where(probability < 0.5, -math.inf, centre)[flat]
    odd = has_point_mass(rows) | ~(probability > 0.0)
    plain, odd = ~flat & ~odd, ~flat & odd
    if plain.any():
        x[plain] = _solve_continuous(probability[plain], [term.take(plain) for term in rows])
    if odd.any():
        x[odd] = _solve_with_point_masses(probability[odd], [term.take(odd) for term in rows])
    return np.where(np.isnan(probability), math.nan, x).reshape(shape)


# ---- ordinary rows ------------------------------------------------------------------------------


class _Score(NamedTuple):
    """Distance of x from the quantile, on the scale of normal scores."""

    step: FloatArray  # Halley's
    bend: FloatArray  # the step over the shorter of spread and radius of curvature
    above: Any  # whether x is above the quantile


def _solve_continuous(p: FloatArray, terms: MixtureComponents) -> FloatArray:
    u = np.asarray(ndtri(p))
    x = np.atleast_1d(_start(u, terms))
    x += np.clip(_score(x, u, terms, rough=True).step, -1e300, 1e300)
    answer = x
    rows: Any = np.arange(x.size)
    for _ in range(_FREE_STEPS):
        score = _score(x, u, terms, rough=False)
        x = x + score.step
        answer[rows] = x
        left = ~(score.bend < _LAST_STEP)
        if not left.any():
            return answer
        rows, x = rows[left], x[left]
        u = u if u.ndim == 0 else u[left]
        p = p if p.ndim == 0 else p[left]
        terms = [term.take(left) for term in terms]
    answer[rows] = _solve_in_bracket(p, u, terms)
    return answer


def _start(u: FloatArray, terms: MixtureComponents) -> FloatArray:
    """The normal quantile that mean and variance give, each t as wide as at its own quantile."""
    centre = total_at(u, terms, lambda term: term.loc)

    def square(term: MixtureComponent) -> FloatArray:
        offset = term.loc - centre
        if term.df is None:
            return term.scale * term.scale + offset * offset
        a = np.maximum(term.df - 0.5, 0.5)
        u2 = np.maximum(u * u, 1e-8)
        stretch = np.expm1(np.minimum(u2 / a, 600.0)) * (a / u2)
        return term.scale * term.scale * stretch + offset * offset

    return np.asarray(centre + u * np.sqrt(total_at(u, terms, square)))


def _score(x: FloatArray, u_p: FloatArray, terms: MixtureComponents, *, rough: bool) -> _Score:
    def rise(term: MixtureComponent) -> FloatArray:
        family, z, shape = term.family(), term.standardize(x), term.shape_parameters()
        height = family.pdf(z, *shape) / term.scale
        return np.stack([height, height * family.log_slope(z, *shape) / term.scale])

    density, slope = total_at(x, terms, rise)
    lower = lower_tail(x, terms, rough=rough)
    u = np.asarray(ndtri(lower))
    steepness = density * (_ROOT_2_PI * np.exp(0.5 * u * u))
    e = (u_p - u) / steepness
    curvature = slope / density + u * steepness
    step = e / (1.0 + np.clip(0.5 * e * curvature, -0.5, 1.0))
    return _Score(step, np.abs(e) * np.maximum(steepness, np.abs(curvature)), u > u_p)


def _solve_in_bracket(p: FloatArray, u: FloatArray, terms: MixtureComponents) -> FloatArray:
    """Find quantiles between the components' least and greatest; a step beyond is halved."""
    # With less than a hundredth of a degree of freedom quantiles overflow.
    low, high = np.clip(_bound_by_components(p, terms), -1e300, 1e300)
    x = low + 0.5 * (high - low)
    settled = np.zeros(x.shape, dtype=bool)
    for _ in range(_BRACKETED_STEPS):
        score = _score(x, u, terms, rough=False)
        high = np.where(score.above & ~settled, x, high)
        low = np.where(~score.above & ~settled, x, low)
        middle = _bisect(low, high, terms)
        proposal = x + score.step
        inside = (proposal >= low) & (proposal <= high)
        # Floating point can't narrow a bracket of a few units in the last place.
        closed = high - low <= 4e-16 * np.maximum(np.abs(low), np.abs(high))
        x = np.where(settled, x, np.where(inside, proposal, middle))
        settled |= closed | (inside & (score.bend < _LAST_STEP))
        if settled.all():
            break
    return x


def _bound_by_components(p: FloatArray, terms: MixtureComponents) -> tuple[FloatArray, FloatArray]:
    """Return the least and the greatest quantile of the components, which bound the mixture's."""
    ends = np.stack(np.broadcast_arrays(*(np.atleast_1d(t.distribution().ppf(p)) for t in terms)))
    return ends.min(axis=0), ends.max(axis=0)


def _bisect(low: FloatArray, high: FloatArray, terms: MixtureComponents) -> FloatArray:
    """Return the middle; in orders of magnitude if the ends are far apart (few df)."""
    unit = np.min([np.broadcast_to(term.scale, low.shape) for term in terms], axis=0)
    orders = unit * np.sinh(0.5 * (np.arcsinh(low / unit) + np.arcsinh(high / unit)))
    wide = (high - low > 0.5 * np.maximum(np.abs(low), np.abs(high))) & np.isfinite(orders)
    return np.where(wide, np.clip(orders, low, high), low + 0.5 * (high - low))


# ---- rows with point masses, and probabilities of zero ------------------------------------------


def _solve_with_point_masses(p: FloatArray, terms: MixtureComponents) -> FloatArray:
    """The least x whose probability is p: on a point mass, or between two of them by bisection."""
    distributions = [term.distribution() for term in terms]

    def probability(x: FloatArray) -> Any:
        return sum(t.weight * d.cdf(x) for t, d in zip(terms, distributions, strict=True))

    low, high = _bound_by_components(p, terms)
    answer = np.where(p > 0.0, math.nan, low)
    for term in terms:
        mass = sum(t.weight * ((t.scale == 0.0) & (t.loc == term.loc)) for t in terms)
        there = probability(term.loc)
        hit = (term.scale == 0.0) & (there - mass < p) & (p <= there) & np.isnan(answer)
        answer = np.where(hit, term.loc, answer)
    for _ in range(_BRACKETED_STEPS):
        middle = low + 0.5 * (high - low)
        if not (np.isnan(answer) & (low < middle) & (middle < high)).any():
            break
        reached = probability(middle) >= p
        high, low = np.where(reached, middle, high), np.where(reached, low, middle)
    return np.where(np.isnan(answer), high, answer)
