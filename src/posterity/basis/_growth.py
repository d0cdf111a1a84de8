"""Bases whose functions reach over rows beyond the domain: on the old one they are nearly the same.

On a piece of its domain a smooth function is a sum of the functions that resolve more there. So
those of a wider domain are found from those of the old one by least squares, at places all over it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Self

import numpy as np

from posterity.aliases import Array, Mask
from posterity.basis._domain import SAME, DomainTransformer, join_ranges

# Where this many rows are known, one does not widen the domain that is so many times its length
# away; as many, twice as many.
ENOUGH_ROWS, MOST_SPANS = 50, 4.0
# The largest share of a first batch that may be far from all others.
MOST_FAR = 0.05
# By how much a domain is longer with each step: a stream widens it now and then.
STEP = 1.25
# Places for each function, and the share of the largest singular value that is rounding.
PLACES_EACH, ROUNDING, TINY = 4, 1e-7, 1e-100


class GrowingDomain(DomainTransformer):
    """A transformer whose domain, where it is not given, grows with the rows that a model learns.

    A kind of basis says how it is on another domain (``_over``).
    """

    _first_domain: Array | None = None

    def reaching(self, X: Array, known: float = 0.0) -> Self:
        """Return the basis for rows ``X`` (n, d), too: this one, where its domain has them.

        Of a model that knows so many rows, a few far away shall not widen it.
        """
        low, high = self.domain_.T
        outside = np.less(X, low) | np.greater(X, high)
        if not (np.count_nonzero(outside) and self._grows):
            return self
        room = (high - low) * count_spans(outside, known)
        near = np.where((low - room <= X) & (high + room >= X), X, low)
        beyond = np.stack([low - near.min(axis=0), near.max(axis=0) - high], axis=1) > 0.0
        if not beyond.any():
            return self
        ends = self._find_ends(np.stack([near.min(axis=0), near.max(axis=0)], axis=1))
        new = self._over(np.where(beyond, ends, self.domain_))
        new._first_domain = self._get_first_domain()
        return new

    def _get_first_domain(self) -> Array:
        return self.domain_ if self._first_domain is None else self._first_domain

    def _find_ends(self, reached: Array) -> Array:
        """Ends (d, 2) beyond what was reached: by steps that are the same whoever comes first.

        With the k-th the domain is ``STEP**k`` times as long as it was at first.
        """
        first = self._get_first_domain()
        length = np.ptp(first, axis=1)[:, None]
        beyond = np.maximum((reached - first) * [-1.0, 1.0] / length, 0.0)
        steps = np.ceil(np.log1p(beyond) / math.log(STEP) - SAME)
        return first + length * (STEP**steps - 1.0) * [-1.0, 1.0]

    def joined(self, other: Self) -> Self:
        """Return the basis for the domains of both, whichever is asked."""
        return self._over(join_ranges(self.domain_, other.domain_)) if self._grows else self

    def columns_of(self, other: Self) -> Array:
        """Columns of a basis of a wider domain, by these: M (1 + m, 1 + m').

        ``[1, other.transform(x)] = [1, self.transform(x)] @ M`` on this domain, as nearly as least
        squares can.
        """
        return match_columns(self._list_places(other), self._columns, other._columns)

    def _list_places(self, wider: Self) -> Array:
        """Places (n, d) at which columns are to be those of a wider domain."""
        return spread_evenly(self.domain_, PLACES_EACH * self._columns(self.domain_.T).shape[1])

    def _find_domain(self, X: Array) -> Array:
        near = np.clip(X, *find_near(X).T) if self._grows else X
        return super()._find_domain(near)

    @property
    def _grows(self) -> bool:
        return self.domain is None and self.outside == "extend"

    def _over(self, domain: Array) -> Self:
        """The basis of this domain (d, 2)."""
        raise NotImplementedError  # each kind says how


def count_spans(outside: Mask, known: float) -> Array:
    """(d,) how many lengths of the domain away rows may be, some of which (n, d) are outside.

    Of a model that knows so many rows.
    """
    least = MOST_SPANS if known >= ENOUGH_ROWS else np.inf
    return np.asarray(least * (1.0 + np.count_nonzero(outside, axis=0) / max(known, 1.0)))


def find_near(X: Array) -> Array:
    """Range (d, 2) of each feature of a first batch, without a few rows far from all others.

    From the middle half of the rows it is widened as by rows that come later.
    """
    whole = np.stack([X.min(axis=0), X.max(axis=0)], axis=1)
    if len(X) < ENOUGH_ROWS:
        return whole
    ends, before = np.quantile(X, [0.25, 0.75], axis=0), None
    while before is None or (ends != before).any():
        (low, high), before = ends, ends
        outside = (low > X) | (high < X)
        room = (high - low) * count_spans(outside, len(X))
        near = np.where((low - room <= X) & (high + room >= X), X, low)
        ends = np.stack([near.min(axis=0), near.max(axis=0)])
    few = (outside.mean(axis=0) <= MOST_FAR) & (low < high)
    return np.where(few[:, None], ends.T, whole)


def spread_evenly(domain: Array, count: int) -> Array:
    """Places (count, d) all over a domain (d, 2), those of each feature evenly (McKay 1979)."""
    random, shares = np.random.default_rng(0), np.linspace(0.0, 1.0, count)
    each = np.column_stack([random.permutation(shares) for _ in domain])
    return np.asarray((1.0 - each) * domain[:, 0] + each * domain[:, 1])


def match_columns(
    places: Array, mine: Callable[[Array], Array], its: Callable[[Array], Array]
) -> Array:
    """M with ``[1, its(x)] = [1, mine(x)] @ M``, as nearly as can be at places x (n, d)."""
    one, other = (np.column_stack([np.ones(len(places)), each(places)]) for each in (mine, its))
    size = np.maximum(np.sqrt(np.mean(one**2, axis=0)), TINY)
    return np.asarray(np.linalg.lstsq(one / size, other, rcond=ROUNDING)[0] / size[:, None])
