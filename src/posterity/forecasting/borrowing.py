"""Forecasts of series that have too few values for any form, from those of the others.

What is known of such a series is its level. So its forecast is that of the others, each brought to
that level: multiplied by the ratio of the few values to the other's values at the same steps, or
moved by their difference where some are not positive. The others' values there are as noisy as its
own are, so that the mixture over them is as uncertain of the level as few values leave it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from posterity.aliases import Array, Indices, Mask
from posterity.forecasting.choosing import FEWEST_SERIES
from posterity.forecasting.panel import Panel
from posterity.forecasting.paths import Paths

# Most series that one borrows from.
MOST_LENDERS = 32


@dataclass(frozen=True, eq=False)
class Loan:
    """The series whose forecasts stand for that of ``series``, at its level.

    Forecasts of the ``lenders`` (D,) are multiplied by ``change`` (D,) if ``scales``, else moved by
    it. No lenders: nothing can be said.
    """

    series: int
    lenders: Indices
    change: Array
    scales: bool

    def move(self, ids: Sequence[Any], to: Sequence[Any]) -> Loan:
        """The same where the series, of these ``ids``, are at the places they have in ``to``."""
        place = {name: number for number, name in enumerate(to)}
        lenders = np.array([place[ids[one]] for one in self.lenders], dtype=np.intp)
        return replace(self, series=place[ids[self.series]], lenders=lenders)

    def later(self, rows: int) -> Loan:
        """The same where the series are so many rows further down."""
        return replace(self, series=self.series + rows, lenders=self.lenders + rows)


def find_loan(values: Array, series: int, typical: Mask) -> Loan:
    """The loan of one series of ``values`` (S, T), from ``typical`` (S,) ones.

    None are lent where the series has no value, or fewer than eight series have one at each step
    where it has.
    """
    known = np.isfinite(values[series])
    theirs = values[:, known]
    able = typical & np.isfinite(theirs).all(axis=1)
    able[series] = False
    if not known.any() or np.count_nonzero(able) < FEWEST_SERIES:
        return Loan(series, np.zeros(0, dtype=np.intp), np.zeros(0), True)
    positive = able & (theirs > 0.0).all(axis=1)
    scales = bool((theirs[series] > 0.0).all() and np.count_nonzero(positive) >= FEWEST_SERIES)
    lenders = np.flatnonzero(positive if scales else able)
    lenders = lenders[:: -(-len(lenders) // MOST_LENDERS)]
    own, means = theirs[series].mean(), theirs[lenders].mean(axis=1)
    return Loan(series, lenders, own / means if scales else own - means, scales)


def find_loans(panel: Panel, which: Iterable[int]) -> list[Loan]:
    """The loans of some series of a panel."""
    return [find_loan(panel.values, int(series), panel.typical) for series in which]


def lend(paths: Sequence[Paths], shares: Array, loans: Sequence[Loan]) -> tuple[list[Paths], Array]:
    """Write paths that are borrowed over those of series with ``loans``; weights are (S, F).

    Series of which nothing can be said become NaN.
    """
    shares = shares.copy()
    slots = np.zeros((len(paths), len(loans), paths[0].noise.shape[1]), dtype=np.intp)
    for number, loan in enumerate(loans):
        weights = shares[loan.lenders]
        if not loan.scales:
            weights = weights * np.array([not path.log for path in paths])
        total = weights.sum()
        shares[loan.series] = weights.sum(axis=0) / total if total > 0.0 else 0.0
        for form in np.flatnonzero(shares[loan.series]):
            slots[form, number] = _choose_slots(weights[:, form], slots.shape[2])
    missing = ~shares.any(axis=1)
    for path, share, own in zip(paths, shares.T, slots, strict=True):
        _borrow(path, share, loans, own)
    shares[missing, 0] = 1.0
    paths[0].mean[missing] = np.nan
    # New ones, of which nothing was computed yet.
    return [replace(path) for path in paths], shares


# ---- inner ---------------------------------------------------------------------------------------


def _choose_slots(weights: Array, size: int) -> Indices:
    """Which of the lenders each of so many draws is of, in proportion to their weights (D,)."""
    below = np.cumsum(weights) / weights.sum()
    places = np.searchsorted(below, (np.arange(size) + 0.5) / size)
    return np.minimum(places, len(weights) - 1)


def _borrow(path: Paths, share: Array, loans: Sequence[Loan], slots: Indices) -> None:
    """Write the paths of loans over those of one form, where its weight (S,) is not 0."""
    draws = np.arange(path.noise.shape[1])
    for loan, slot in zip(loans, slots, strict=True):
        if share[loan.series] == 0.0:
            path.mean[loan.series] = path.responses[loan.series] = path.noise[loan.series] = 0.0
            continue
        of, change = loan.lenders[slot], loan.change[slot]
        mean, noise = path.mean[of, draws], path.noise[of, draws]
        if path.log:
            mean = mean + np.log(change)[:, None]
        elif loan.scales:
            mean, noise = mean * change[:, None], noise * change
        else:
            mean = mean + change[:, None]
        path.mean[loan.series], path.noise[loan.series] = mean, noise
        path.responses[loan.series] = path.responses[of, draws]
        if path.early is not None:
            path.early[loan.series] = path.early[of, draws]
