"""Distribution functions of counts, tabulated once a row: scores and quantiles read from them.

Counts below ``N_TABULATED`` are added up one by one. Beyond, where probabilities change slowly
from count to count, they are a function of real numbers: known at the nodes of a Gauss-Legendre
rule, on a scale w where the counts' spread is about 1 everywhere, and summed by the Euler-Maclaurin
formula.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from posterity.distributions import _count_integrals as integrals
from posterity.distributions._rows import FloatArray, rowwise

N_TABULATED = 64
COUNTS = np.arange(N_TABULATED, dtype=np.float64)
# Numbers of first counts that are tabulated, where none beyond has any probability.
SIZES = (12, 16, 24, 32, 48, N_TABULATED)
REACH = 8.0
BLOCK_ROWS = 128
# Numbers of nodes of the trapezoidal rule over eta's distribution: as many as needed.
RULES = (24, 40, 64, 112, 200)
# Values in a block that stays in the cache.
CACHED = 20_000
NEWTON_STEPS = 12
MOST_DOUBLINGS = 1100
# An upper bound of the table's error.
TABLE_ERROR = 1e-7
# Larger variances of the log rate, and logs of counts, have no table.
LARGEST_LOG_VARIANCE, LARGEST_LOG = 400.0, 600.0
# Larger counts lose too many digits by cancellation at shared nodes.
LARGEST_SHARED_COUNT = 1e7


class Rows(NamedTuple):
    """Mean and variance (n,) of the log rates, and dispersion (n,)."""

    mean: FloatArray
    variance: FloatArray
    dispersion: FloatArray

    def take(self, which: NDArray[np.bool_]) -> Rows:
        return Rows(*(operand[which] for operand in self))


def _make_quadrature_rule(n: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Nodes on [-1, 1], weights of their barycentric interpolation, integrals and derivatives.

    ``values @ integrals`` are those from -1 to each node and, last, to 1; Legendre series are
    integrated exactly.
    """
    nodes, weights = np.polynomial.legendre.leggauss(n)
    legendre = np.polynomial.legendre.legvander(nodes, n - 1)
    series = (np.arange(n) + 0.5)[:, None] * (weights[:, None] * legendre).T  # values to series
    ends = np.append(nodes, 1.0)
    each = np.eye(n)
    whole = np.polynomial.legendre.legval(ends, np.polynomial.legendre.legint(each, lbnd=-1)).T
    slopes = np.polynomial.legendre.legval(nodes, np.polynomial.legendre.legder(each)).T
    barycentric = (-1.0) ** np.arange(n) * np.sqrt((1.0 - nodes**2) * weights)
    return (
        np.asarray(nodes),
        np.asarray(barycentric, dtype=np.float64),
        np.asarray((whole @ series).T),
        np.asarray((slopes @ series).T),
    )


PLACES, BARYCENTRIC, INTEGRALS, DERIVATIVES = _make_quadrature_rule(48)


class Table:
    """The distribution functions of a few rows.

    ``below`` (n, N_TABULATED) at the first counts; beyond ``start`` (n,), as functions of w, at the
    places and at the start: probability, its second derivative, the distribution function at a half
    more than the count, and the integral of that.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        n = len(rows.mean)
        self.scale = np.sqrt(np.maximum(rows.dispersion + rows.variance, 1e-12))
        middle = self._transform_to_unit_scale(np.exp(np.minimum(rows.mean, 700.0)))
        # A Gamma's dispersion reaches further down than a normal.
        down = REACH + 7.0 * rows.dispersion / np.square(self.scale)
        first = np.floor(self._count(np.maximum(middle - down, 0.0)))
        last = np.ceil(np.minimum(self._count(middle + REACH), _bound_largest_count(rows))) + 20.0
        self.few = first <= N_TABULATED
        self.many = last > N_TABULATED
        self.below = np.zeros((n, N_TABULATED))
        if self.few.any():
            masses = self._compute_first_counts(self.few, last[self.few])
            self.below[self.few] = np.minimum(np.cumsum(masses, axis=1), 1.0)
        before = np.where(self.few, self.below[:, -1], 0.0)
        self.start = np.where(self.few, N_TABULATED - 0.5, first - 0.5)
        self.low = self._transform_to_unit_scale(self.start)
        self.high = self._transform_to_unit_scale(np.maximum(last, N_TABULATED + 1.0))
        if self.many.any():
            self._beyond(before)

    def _transform_to_unit_scale(self, count: FloatArray) -> FloatArray:
        """The scale on which standard deviations are about 1: dw = dt / sqrt(t + scale^2 t^2)."""
        return 2.0 * np.arcsinh(self.scale * np.sqrt(count)) / self.scale

    def _count(self, w: FloatArray) -> FloatArray:
        scale = self.scale if w.ndim == 1 else self.scale[:, None]
        return np.square(np.sinh(np.minimum(0.5 * scale * w, 340.0)) / scale)

    def _compute_first_counts(self, which: NDArray[np.bool_], last: FloatArray) -> FloatArray:
        """Probabilities (k, N_TABULATED) of the first counts, up to the last that has any."""
        masses = np.zeros((len(last), N_TABULATED))
        rows = self.rows.take(which)
        sizes = np.minimum(np.searchsorted(SIZES, last - 10.0), len(SIZES) - 1)
        for place in np.unique(sizes):
            some, size = sizes == place, SIZES[place]
            counts = np.broadcast_to(COUNTS[:size], (int(some.sum()), size))
            masses[some, :size] = _masses(counts, rows.take(some))
        return masses

    def _beyond(self, before: FloatArray) -> None:
        n, half = len(before), 0.5 * (self.high - self.low)
        self.half = half
        w = np.column_stack([self.low[:, None] + half[:, None] * (1.0 + PLACES), self.low])
        count = self._count(w)
        count[:, -1] = self.start
        stretch = np.sqrt(count + np.square(self.scale[:, None] * count))  # dt / dw
        mass = np.zeros(count.shape)
        if self.many.any():
            mass[self.many] = _masses(count[self.many], self.rows.take(self.many))
        rate = half[:, None] * stretch[:, :-1]

        def integrate(values: FloatArray) -> FloatArray:
            """Integrate from the start to each place, and at last to the end."""
            return (values[:, :-1] * rate) @ INTEGRALS

        def slope(values: FloatArray) -> FloatArray:
            inner = values[:, :-1] @ DERIVATIVES / rate
            # The polynomial through the places, at the start.
            return np.column_stack([inner, _between(inner, np.full(n, -1.0))])

        falls = slope(mass)
        bend = slope(falls)
        third = slope(bend)
        start = slice(-1, None)
        grown = np.column_stack([integrate(mass)[:, :-1], np.zeros(n)])
        grown -= (falls - falls[:, start]) / 24.0 - 7.0 * (third - third[:, start]) / 5760.0
        self.reached = np.minimum(before[:, None] + grown, 1.0)
        total = integrate(self.reached)
        self.total, self.to_the_end = total[:, :-1], total[:, -1]
        missing = np.square(1.0 - self.reached)
        self.missing = integrate(missing)[:, -1]
        self.mass, self.bend = mass, bend

    # ---- reading -------------------------------------------------------------------------------

    def crps(self, y: FloatArray) -> FloatArray:
        """Sum over all counts of (cdf - [count >= y])^2; ``y`` (n,) whole, not negative."""
        few = np.square(self.below - (y[:, None] <= COUNTS)).sum(axis=1)
        few = np.where(self.few, few, 0.0)
        # Beyond the first counts none is likely, but those up to y count.
        beyond = np.maximum(y - N_TABULATED, 0.0)
        return few + (
            np.where(self.many, self._interpolate_rows(y), beyond) if self.many.any() else beyond
        )

    def _interpolate_rows(self, y: FloatArray) -> FloatArray:
        first = self.start + 0.5
        at = slice(-1, None)
        p, reached, bend = (x[:, at][:, 0] for x in (self.mass, self.reached, self.bend))
        short = 1.0 - reached
        # Euler-Maclaurin: the sum of f(start + 1), f(start + 2), ... is its integral from start
        # - f / 2 - f' / 12 + f''' / 720 there; f = (1 - P)^2.
        value = self.missing - 0.5 * short * short + short * p / 6.0
        value += (6.0 * self._compute_slope_at_start() * p - 2.0 * short * bend) / 720.0
        # Counts below y are to be P^2 instead: 2 P - 1 more, each.
        end = np.clip(y - 0.5, self.start, None)
        last = np.minimum(end, self._count(self.high))
        there = (self._transform_to_unit_scale(last) - self.low) / self.half - 1.0
        total, high, mass, second = (
            _between(values, there)
            for values in (self.total, self.reached[:, :-1], self.mass[:, :-1], self.bend[:, :-1])
        )
        more = total + 0.5 * (high - reached) + (mass - p) / 12.0 - (second - bend) / 720.0
        more = 2.0 * more - (last - self.start) + (end - last)
        value += np.where(end > self.start, more, 0.0)
        return value + np.maximum(np.where(self.few, 0.0, first) - y, 0.0)

    def _compute_slope_at_start(self) -> FloatArray:
        inner = self.mass[:, :-1] @ DERIVATIVES
        return _between(inner, np.full(len(inner), -1.0)) / (
            self.half * np.sqrt(self.start + np.square(self.scale * self.start))
        )

    def quantile(self, level: FloatArray) -> FloatArray:
        """The least count (n,) whose distribution function reaches ``level`` (n,)."""
        found = np.minimum((self.below < level[:, None]).sum(axis=1), N_TABULATED - 1.0)
        few = self.few & (self.below[:, -1] >= level)
        if not few.all() and self.many.any():
            found = np.where(few, found, self._search_quantile(level))
        unsure = ~(few | self.many)
        unsure |= self._evaluate_cdf(found) < level + TABLE_ERROR
        unsure |= self._evaluate_cdf(found - 1.0) > level - TABLE_ERROR
        if unsure.any():
            rows = self.rows.take(unsure)
            found[unsure] = _make_exact(found[unsure], level[unsure], rows)
        return found

    def _evaluate_cdf(self, count: FloatArray) -> FloatArray:
        """The distribution function (n,) at ``count`` (n,), from -1 up."""
        place = np.clip(count, 0, N_TABULATED - 1).astype(np.intp)
        cdf = np.where(count < 0.0, 0.0, self.below[np.arange(len(count)), place])
        beyond = (count >= N_TABULATED) | ~self.few
        if not beyond.any() or not self.many.any():
            return cdf
        there = (
            self._transform_to_unit_scale(np.maximum(count + 0.5, self.start)) - self.low
        ) / self.half - 1.0
        many = _between(self.reached[:, :-1], np.minimum(there, 1.0))
        return np.where(beyond, many, cdf)

    def _search_quantile(self, level: FloatArray) -> FloatArray:
        """Find the quantile by Newton's method on w, kept inside a bracket."""
        reached = self.reached[:, :-1]
        place = np.clip((reached < level[:, None]).sum(axis=1), 0, len(PLACES) - 1)
        low = np.where(place > 0, PLACES[place - 1], -1.0)
        high = PLACES[place]
        high = np.where(reached[:, -1] < level, 1.0, high)
        x = 0.5 * (low + high)
        for _ in range(NEWTON_STEPS):
            off = _between(reached, x) - level
            low, high = np.where(off < 0.0, x, low), np.where(off < 0.0, high, x)
            count = self._count(self.low + self.half * (1.0 + x))
            slope = _between(self.mass[:, :-1], x) * self.half
            slope *= np.sqrt(count + np.square(self.scale * count))
            there = x - off / np.maximum(slope, 1e-300)
            x = np.where((there > low) & (there < high), there, 0.5 * (low + high))
        count = self._count(self.low + self.half * (1.0 + x))
        return np.maximum(np.ceil(count - 0.5), np.where(self.few, N_TABULATED, 0.0))


def crps(y: FloatArray, rows: Rows) -> FloatArray:
    """Continuous ranked probability scores (n,) of whole numbers y >= 0 (n,).

    Examples
    --------
    >>> zero = np.zeros(1)
    >>> crps(zero + 1.0, Rows(zero, zero, zero)).round(4)
    array([0.212])
    """
    return rowwise(lambda y, *some: Table(Rows(*some)).crps(y), y, *rows, block_rows=BLOCK_ROWS)


def quantile(level: FloatArray, rows: Rows) -> FloatArray:
    """The least counts (n,) whose distribution functions reach ``level`` (n,), in (0, 1).

    Examples
    --------
    >>> zero = np.zeros(1)
    >>> quantile(zero + 0.9, Rows(zero, zero, zero))
    array([2.])
    """

    def search(level: FloatArray, *some: FloatArray) -> FloatArray:
        block, wide = Rows(*some), some[1] > LARGEST_LOG_VARIANCE
        result = np.empty(level.shape)
        if wide.any():
            result[wide] = _find_wide(level[wide], block.take(wide))
        if not wide.all():
            result[~wide] = Table(block.take(~wide)).quantile(level[~wide])
        return result

    return rowwise(search, level, *rows, block_rows=BLOCK_ROWS)


def _find_wide(level: FloatArray, rows: Rows) -> FloatArray:
    """Quantiles where the log rate is so open that no table reaches; infinite beyond all floats."""
    log_rate = rows.mean + np.sqrt(rows.variance) * ndtri(level)
    found = np.floor(np.exp(np.minimum(log_rate, LARGEST_LOG)))
    return np.where(log_rate > LARGEST_LOG, np.inf, _make_exact(found, level, rows))


def _bound_largest_count(rows: Rows) -> FloatArray:
    """A count (n,) beyond which there is nothing: tails of the rate, of a Gamma, of a Poisson."""
    rate = np.exp(np.minimum(rows.mean + REACH * np.sqrt(rows.variance), 690.0))
    rate *= 1.0 + REACH * np.sqrt(rows.dispersion) + 0.5 * REACH**2 * rows.dispersion
    return rate + REACH * np.sqrt(rate)


def _masses(count: FloatArray, rows: Rows) -> FloatArray:
    """Probabilities (n, k) of ``count`` (n, k), each row increasing."""
    most = count.max(axis=1)
    needed = (
        2.0 * REACH * np.sqrt(1.0 + rows.variance * integrals.information(most, rows.dispersion))
    )
    needed[most > LARGEST_SHARED_COUNT] = np.inf
    sizes = np.searchsorted(RULES, needed)
    masses = np.empty(count.shape)
    for size in np.unique(sizes):
        which = sizes == size
        how = _place_nodes_per_count if size == len(RULES) else _place_shared_nodes
        masses[which] = how(count[which], rows.take(which), RULES[min(size, len(RULES) - 1)])
    return masses


def _place_shared_nodes(count: FloatArray, rows: Rows, nodes: int) -> FloatArray:
    """Place nodes over the range of eta, the same for all counts: sums of e^(A + B count)."""
    z = np.linspace(-REACH, REACH, nodes)
    weights = np.exp(-0.5 * z * z)
    weights /= weights.sum()
    a = rows.dispersion[:, None]
    eta = rows.mean[:, None] + np.sqrt(rows.variance)[:, None] * z
    rate = np.exp(np.minimum(eta, 600.0))
    # log(rate / (1 + a rate)), and r log(1 + a rate), which is the rate for a Poisson.
    share = eta - np.log1p(a * rate)
    none = np.where(a > 0.0, np.log1p(a * rate) / np.maximum(a, 1e-300), rate)
    own = np.log(np.maximum(count, 1e-300))
    top = np.where(count > 0.0, integrals.log_peak(count, a), 0.0)
    # At its own rate: y log(y / (1 + a y)) - r log(1 + a y).
    grown = np.log1p(a * count)
    top -= np.where(count > 0.0, count * (own - grown), 0.0)
    top += np.where(a > 0.0, grown / np.maximum(a, 1e-300), count)
    masses = np.empty(count.shape)
    step = max(1, CACHED // (count.shape[1] * nodes))
    for first in range(0, len(count), step):
        part = slice(first, first + step)
        exponent = count[part, :, None] * share[part, None, :]
        exponent -= none[part, None, :]
        exponent += top[part, :, None]
        np.exp(exponent, out=exponent)
        np.matmul(exponent, weights, out=masses[part])
    return masses


def _place_nodes_per_count(count: FloatArray, rows: Rows, nodes: int) -> FloatArray:
    """Place nodes over the range of eta, for each count its own."""
    wide = [np.broadcast_to(operand[:, None], count.shape).ravel() for operand in rows]
    return np.exp(integrals.log_mass(count.ravel(), *wide)).reshape(count.shape)


def _between(values: FloatArray, x: FloatArray) -> FloatArray:
    """Evaluate polynomials through ``values`` (n, k) at the places, at x (n,)."""
    off = x[:, None] - PLACES
    exact = off == 0.0
    weights = BARYCENTRIC / np.where(exact, 1.0, off)
    if exact.any():
        weights = np.where(exact.any(axis=1)[:, None], exact * 1.0, weights)
    return (weights * values).sum(axis=1) / weights.sum(axis=1)


def _make_exact(found: FloatArray, level: FloatArray, rows: Rows) -> FloatArray:
    """Quantiles (n,) made exact: where the neighbours are too near to the level for a table."""
    mass = np.exp(integrals.log_mass(found, *rows))
    step = np.maximum(1.0, np.ceil(TABLE_ERROR / np.maximum(mass, 1e-12)))
    # Of floats beyond 2^53 neighbours are further apart than one.
    step = np.maximum(step, 2.0 * np.spacing(found))
    low, high = np.maximum(found - step, -1.0), found.copy()

    def reaches(count: FloatArray, which: NDArray[np.bool_]) -> NDArray[np.bool_]:
        some = [operand[which] for operand in (count, *rows)]
        cdf = integrals.distribution_function(np.maximum(some[0], 0.0), *some[1:])
        return (cdf >= level[which]) & (some[0] >= 0.0)

    for _ in range(MOST_DOUBLINGS):
        every = np.ones(len(found), dtype=np.bool_)
        short = ~reaches(high, every)
        if not short.any():
            break
        low, high = np.where(short, high, low), np.where(short, high + step, high)
        step = np.where(short, 2.0 * step, step)
    step = np.maximum(found - low, 1.0)
    for _ in range(MOST_DOUBLINGS):
        wrong = reaches(low, np.ones(len(found), dtype=np.bool_))
        if not wrong.any():
            break
        high = np.where(wrong, low, high)
        step = np.where(wrong, 2.0 * step, step)
        low = np.where(wrong, np.maximum(low - step, -1.0), low)
    while True:
        middle = np.floor(0.5 * low + 0.5 * high)
        open_ = (middle > low) & (middle < high)
        if not open_.any():
            return high
        reached = np.zeros(len(found), dtype=np.bool_)
        reached[open_] = reaches(middle, open_)
        high = np.where(open_ & reached, middle, high)
        low = np.where(open_ & ~reached, middle, low)
