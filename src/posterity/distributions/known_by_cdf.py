"""Distributions of which a distribution function is known: their quantiles and scores."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from posterity.distributions._rows import FloatArray
from posterity.distributions.row_distribution import CountDistribution, RowDistribution

# Brackets of quantiles are narrowed to this share of the quantile.
TOLERANCE = 1e-13
MOST_STEPS, MOST_STUCK, FURTHEST_SCORE, LEAST = 200, 3, 38.0, 1e-300
# Where a quantile that is near 0 may be in its bracket.
NEAR = 1e-6
# Distances of normal scores: of a quantile, and of a place that only says where points are dense.
EXACT, ROUGH = 1e-13, 0.1
# Places exp(pi / 2 sinh x) beyond a start, in units of the distance over which a tail falls to an
# eighth (Takahasi and Mori 1974). Where every second one has another sum, as of hills apart, there
# are more between these.
FALL, STEP, AGREED = 0.125, 0.25, 0.001
LEVELS = np.array([0.5 * FALL, 0.5, 1.0 - 0.5 * FALL])
X = STEP * np.arange(-11.0, 12.0)
SHIFTS = (0.5,), (0.25, 0.75), (0.125, 0.375, 0.625, 0.875)
# Scores of counts are sums over so many at most, between these probabilities of the tails; and so
# many counts of all rows are asked for in one call.
MOST_COUNTS, LEAST_TAIL, MOST_AT_ONCE = 10_000, 1e-13, 200_000


def solved_quantile(
    cdf: Callable[[FloatArray], FloatArray],
    q: FloatArray,
    least: FloatArray,
    most: FloatArray,
    unit: float = 0.0,
    slack: float = EXACT,
) -> FloatArray:
    """Least number whose probability is at least q, between ``least`` and ``most``.

    By false position on normal scores of probabilities, and on logs of numbers that are
    positive; by bisection where that is slow. With ``unit`` 1 among whole numbers; with ``slack``
    one whose normal score is that near.

    Examples
    --------
    >>> from scipy.stats import norm
    >>> low, high = np.array([-9.0]), np.array([9.0])
    >>> solved_quantile(norm.cdf, np.array([0.975]), low, high).round(6)
    array([1.959964])
    """
    with np.errstate(all="ignore"):
        inside = (q > 0.0) & (q < 1.0)
        low, high, target, first = least - unit, most, ndtri(q), cdf(least)
        at_low, at_high = _score(cdf(low) if unit else first, target), _score(cdf(high), target)
        # There may be a mass at the least number, and nothing in the bracket.
        settled, found = ~inside | (high - low <= unit) | (first >= q), high
        found, last, before = np.where(first >= q, least, high), np.full(q.shape, -1), high
        stuck = np.zeros(q.shape)
        for _ in range(MOST_STEPS):
            if settled.all():
                break
            positive = (low + 2.0 * unit > 0.0) & (least >= 0.0)
            a, b = (_stretch(end, positive, unit) for end in (low, high))
            middle = a + np.where((low == 0.0) & (least == 0.0), NEAR, 0.5) * (b - a)
            t = b - at_high * (b - a) / (at_high - at_low)
            t = np.where((t > a) & (t < b) & (stuck < MOST_STUCK), t, middle)
            x = np.where(positive, np.exp(t) - 2.0 * unit, t)
            x = np.clip(np.rint(x), low + 1.0, high - 1.0) if unit else np.clip(x, low, high)
            reached = cdf(x)
            below, score = reached < q, _score(reached, target)
            # An end that stays twice weighs less (Anderson and Bjorck 1973).
            less = 1.0 - score / np.where(below, at_low, at_high)
            weight = np.where(below == last, np.where(less > 0.0, less, 0.5), 1.0)
            at_low = np.where(below, score, weight * at_low)
            at_high = np.where(below, weight * at_high, score)
            low, high, last = np.where(below, x, low), np.where(below, high, x), below
            wide = _stretch(high, positive, unit) - _stretch(low, positive, unit) > 0.5 * (b - a)
            stuck = np.where(wide & (stuck < MOST_STUCK), stuck + 1.0, 0.0)
            near = np.maximum(unit, TOLERANCE * np.maximum(np.abs(low), np.abs(high)))
            close = (np.abs(score) <= slack) | (np.abs(x - before) <= TOLERANCE * np.abs(x))
            close &= unit == 0.0
            found = np.where(settled, found, np.where(close, x, high))
            settled, before = settled | close | (high - low <= near), x
    return np.where(inside, found, np.select([q == 0.0, q == 1.0], [least, most], np.nan))


def _score(probability: FloatArray, target: FloatArray) -> FloatArray:
    """How far the normal score of a probability is above the one that is looked for."""
    return np.asarray(np.clip(ndtri(probability), -FURTHEST_SCORE, FURTHEST_SCORE) - target)


def _stretch(y: FloatArray, positive: Any, unit: float) -> FloatArray:
    """Numbers as they are, positive ones by their logs; counts are from -1 up."""
    return np.where(positive, np.log(y + 2.0 * unit), y)


class KnownByCdf(RowDistribution):
    """Distributions of rows that say their distribution function: the rest is solved for."""

    __slots__ = ()
    # The smallest distance of targets, and how many rows are scored together.
    _unit: ClassVar[float] = 0.0
    _block_rows: ClassVar[int] = 1 << 60

    def _solve(self, q: FloatArray, slack: float) -> FloatArray:
        """Quantiles, or numbers whose probability has a normal score that is so near."""
        raise NotImplementedError

    def _ppf(self, q: FloatArray) -> FloatArray:
        return self._solve(q, EXACT)

    def _guess(self, q: FloatArray) -> FloatArray:
        """Quantiles that only say where targets are dense."""
        return self._solve(q, ROUGH)

    def _shortfall(self, level: FloatArray) -> FloatArray:
        """The quantile, and what is beyond it: the integral of the tail."""
        parts = [self] if len(self._blocks()) < 2 else [self[rows] for rows in self._blocks()]
        return np.concatenate([np.atleast_1d(one._average_beyond(level)) for one in parts])

    def _crps(self, y: FloatArray) -> FloatArray:
        y, blocks = np.broadcast_to(y, np.broadcast_shapes(y.shape, self.shape)), self._blocks()
        if len(blocks) < 2:
            return self._score(y)
        return np.concatenate([self[rows]._score(y[..., rows]) for rows in blocks], axis=-1)

    def _blocks(self) -> list[slice]:
        n = self.shape[0] if len(self.shape) == 1 else 0
        return [slice(i, i + self._block_rows) for i in range(0, n, self._block_rows)]

    def _average_beyond(self, level: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"):
            least = self._ppf(level)
            beyond = least + self._excess(least) / (1.0 - level)
            return np.where(self.is_flat() | np.isinf(self._mean()), np.inf, beyond)

    def _excess(self, y: FloatArray) -> FloatArray:
        """E max(Y - y, 0)."""
        above = np.ones(np.shape(y))
        reach = np.abs(self._guess(1.0 - FALL * (1.0 - self._cdf(y))) - y)
        reach = np.where(np.isfinite(reach), reach, 0.0)
        return self._integrate_tail(y, above, reach, self._find_ends(), 0.0 * reach)[0]

    def _score(self, y: FloatArray) -> FloatArray:
        """The integral of the squares of both tails at the middle, moved to y.

        To move it changes it by |y - middle| less twice the integral of the tail between them.
        """
        with np.errstate(all="ignore"):
            low, middle, high = self._guess(LEVELS.reshape(3, *(1,) * len(self.shape)))
            reach = np.array([middle - low, high - middle])
            below, above = np.where(np.isfinite(reach), reach, 0.0)
            middle, below, above = np.broadcast_arrays(middle, below, above, y)[:3]
            far = np.where(y >= middle, above, below)
            side = [-1.0 + 0.0 * y, 1.0 + 0.0 * y, np.where(y >= middle, 1.0, -1.0)]
            tails, squares = self._integrate_tail(
                np.stack([middle, middle, y]),
                np.stack(side),
                np.stack([below, above, far]),
                self._find_ends(),
                FALL * (below + above),
            )
            between = np.where(y >= middle, tails[1], tails[0]) - tails[2]
            total = squares[0] + squares[1] + np.abs(y - middle) - 2.0 * between
        unbounded = self.is_flat() | np.isnan(total)
        return np.where(unbounded & ~np.isnan(y), np.inf, total)

    def _tail(self, y: FloatArray, side: FloatArray) -> FloatArray:
        """Probability beyond y: above where ``side`` is 1, up to it where that is -1."""
        below = self._cdf(y)
        return np.where(side > 0.0, 1.0 - below, below)

    def _find_ends(self) -> FloatArray:
        """The least and the largest number, (2, n)."""
        return self._ppf(np.array([0.0, 1.0]).reshape(2, *(1,) * len(self.shape)))

    def _integrate_tail(
        self,
        y: FloatArray,
        side: FloatArray,
        reach: FloatArray,
        ends: FloatArray,
        size: FloatArray,
    ) -> FloatArray:
        """Integrals (2, ...) of the tail beyond y, and of its square, to digits of ``size``."""
        room = np.maximum(side * (np.where(side > 0.0, ends[1], ends[0]) - y), LEAST)

        def sum_places(x: FloatArray) -> FloatArray:
            """Sums (2, 2, ...) over every second place, and over all."""
            place = np.exp(0.5 * np.pi * np.sinh(x)).reshape(-1, *(1,) * np.ndim(reach))
            pace = 0.5 * np.pi * STEP * np.cosh(x).reshape(place.shape) * place
            share = 1.0 / (1.0 + reach * place / room)  # no place is beyond the end
            tail = self._tail(y + side * reach * place * share, side)
            parts = np.array([tail, np.square(tail)]) * (reach * pace * np.square(share))
            return np.array([2.0 * parts[:, ::2].sum(axis=1), parts.sum(axis=1)])

        coarse, fine = sum_places(X)
        for shifts in SHIFTS:
            left = np.abs(fine - coarse) > AGREED * np.maximum(fine, size)
            if not left.any():
                break
            between = np.mean([sum_places(X + shift * STEP)[1] for shift in shifts], axis=0)
            coarse, fine = (
                np.where(left, fine, coarse),
                np.where(left, 0.5 * (fine + between), fine),
            )
        return fine


class CountsKnownByCdf(CountDistribution, KnownByCdf):
    """The same of whole numbers: integrals are sums."""

    __slots__ = ()
    _unit = 1.0

    def _excess(self, y: FloatArray) -> FloatArray:
        def add_up(part: Any, counts: FloatArray, y: FloatArray) -> FloatArray:
            left = np.cumsum((1.0 - part._cdf(counts))[::-1], axis=0)[::-1]
            return _read(left, y - counts[0])

        few, sums = self._over_counts(add_up, y)
        return sums if few.all() else np.where(few, sums, super()._excess(y))

    def _score(self, y: FloatArray) -> FloatArray:
        """The sum over counts of (cdf - [count >= y])^2, of rows of which so many are likely.

        Of all others by integrals, as for numbers.
        """

        def add_up(part: Any, counts: FloatArray, y: FloatArray) -> FloatArray:
            below, place = part._cdf(counts), y - counts[0]
            past = np.cumsum(np.square(below), axis=0) - np.square(below)
            to_come = np.cumsum(np.square(1.0 - below)[::-1], axis=0)[::-1]
            # Between two counts the score is linear.
            total = _read(past + to_come, place)
            return total + np.maximum(-place, 0.0) + np.maximum(place - len(counts) + 1.0, 0.0)

        few, sums = self._over_counts(add_up, y)
        return sums if few.all() else np.where(few, sums, super()._score(y))

    def _over_counts(self, add_up: Callable[..., FloatArray], y: FloatArray) -> tuple[Any, Any]:
        """Which rows have few counts, and ``add_up(part, counts, y)`` over these: (k, n) counts.

        Rows of which about as many are likely are asked for together.
        """
        ends = np.array([LEAST_TAIL, 1.0 - LEAST_TAIL]).reshape(2, *(1,) * len(self.shape))
        with np.errstate(all="ignore"):
            low, high = np.broadcast_to(self._guess(ends), (2, *self.shape))
            few = np.isfinite(low) & (high - low < MOST_COUNTS)
            first, span = np.where(few, low, 0.0), np.where(few, high - low, 0.0) + 2.0
            counts = np.arange(span.max(initial=0.0)).reshape(-1, *(1,) * len(self.shape))
            if counts.size * span.size <= MOST_AT_ONCE or len(self.shape) != 1:
                return few, add_up(self, first + counts, y)
            sums, order = np.empty(y.shape), np.argsort(span)
            for rows in np.array_split(order, math.ceil(counts.size * span.size / MOST_AT_ONCE)):
                some = counts[: int(span[rows].max())]
                sums[..., rows] = add_up(self[rows], first[rows] + some, y[..., rows])
        return few, sums


def _read(sums: FloatArray, place: FloatArray) -> FloatArray:
    """Values at places among the first axis; linear between two, and at an end beyond it."""
    sums = sums.reshape(len(sums), *(1,) * (np.ndim(place) - np.ndim(sums) + 1), *sums.shape[1:])
    inside = np.clip(np.nan_to_num(place), 0.0, len(sums) - 1.0)
    at = np.minimum(np.floor(inside), len(sums) - 2.0).astype(np.intp)[None]
    low, high = (np.take_along_axis(sums, at + k, axis=0)[0] for k in (0, 1))
    return np.where(np.isnan(place), np.nan, low + (high - low) * (inside - at[0]))
