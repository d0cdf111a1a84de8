"""Signals in units of their own errors, as the rows of a vector autoregression."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from posterity.aliases import Array, Mask
from posterity.factor import Factor
from posterity.forecasting import minnesota
from posterity.forecasting.checks import FEWEST_VALUES, check_enough, find_constant
from posterity.forecasting.panel import Panel


@dataclass(frozen=True, eq=False)
class Signals:
    """Signals ``values`` (n, q) by rows, and the scale of each.

    ``unit`` (q,) are the sizes of their AR(1) errors, ``centre`` (q,) their means, and ``varies``
    (q,) whether they ever changed: those that did not are left out of regressions, and forecast at
    their value. So are those with too few values, of which nothing is known: their mean is NaN.
    """

    values: Array
    unit: Array
    centre: Array
    varies: Mask

    @classmethod
    def of(cls, panel: Panel) -> Signals:
        """The series of a panel; raises ``ValueError`` where all have too few values."""
        check_enough(panel)
        seen = panel.observed >= FEWEST_VALUES
        scales = [
            _estimate_scale(one) if enough else (1.0, np.nan)
            for one, enough in zip(panel.values, seen, strict=True)
        ]
        unit, centre = (np.array(one) for one in zip(*scales, strict=True))
        return cls(panel.values.T, unit, centre, seen & ~find_constant(panel))

    def in_units(self, values: Array) -> Array:
        """(n, q') of values (n, q): those that vary."""
        return np.asarray(((values - self.centre) / self.unit)[:, self.varies])

    def intercept(self, some: Array, effects: Array) -> Array:
        """(q,) intercepts of values, from those (q',) in units and ``effects`` (q, q) on values."""
        return self.as_given(some) - effects @ np.nan_to_num(self.centre)

    def as_given(self, some: Array) -> Array:
        """(..., q) values of those that vary, (..., q') in units; others stay at theirs."""
        whole = np.zeros((*some.shape[:-1], len(self.unit)))
        whole[..., self.varies] = some
        return np.asarray(whole * self.unit + self.centre)

    def responses(self, some: Array) -> Array:
        """(..., q, q) of all signals to unit shocks; (..., q', q') are of those that vary."""
        whole = np.zeros((*some.shape[:-2], len(self.unit), len(self.unit)))
        whole[..., np.outer(self.varies, self.varies)] = some.reshape(*some.shape[:-2], -1)
        return np.asarray(whole * self.unit[:, None])

    def effects(self, some: Array) -> Array:
        """(..., q, q) of values on values, from those (..., q', q') in units."""
        return self.responses(some) / self.unit

    def system(self, lags: int) -> minnesota.System:
        """The rows of those that vary; raises ``ValueError`` where there are too few."""
        values = self.in_units(self.values)
        rows = _build_rows(values, lags)
        q = values.shape[1]
        if len(rows) < 2:
            raise ValueError(
                f"of {len(values)} rows {len(rows)} can be learned, which lack no value of the "
                f"{len(self.unit)} signals or of their {lags} lags: give more rows, or take fewer "
                "lags"
            )
        if not q:
            return minnesota.System(np.sqrt([[float(len(rows))]]), len(rows), lags)
        p = rows.shape[1] - q
        factor = Factor(p, q)
        factor.append(rows[:, :p].copy(), rows[:, p:].copy())
        return minnesota.System(factor.triangle[:, : p + q].copy(), len(rows), lags)


# ---- inner ---------------------------------------------------------------------------------------


def _build_rows(values: Array, lags: int) -> Array:
    """Rows [1, lag 1 of all, lag 2 of all, ..., now] without those that lack a value."""
    n = len(values)
    if n <= lags:
        return np.zeros((0, 1 + values.shape[1] * (lags + 1)))
    past = [values[lags - lag : n - lag] for lag in range(1, lags + 1)]
    rows = np.hstack([np.ones((n - lags, 1)), *past, values[lags:]])
    return np.asarray(rows[np.isfinite(rows).all(axis=1)])


def _estimate_scale(values: Array) -> tuple[float, float]:
    """The size of the AR(1) errors of a signal (n,), and its mean.

    Where an AR(1) says all, the size is that of the steps.
    """
    known = values[np.isfinite(values)]
    if known.max() == known.min():
        return 1.0, float(known[0])
    centre = float(known.mean())
    rows = _build_rows(values[:, None] - centre, 1)
    if not len(rows):
        return float(known.std()), centre
    solution = np.linalg.lstsq(rows[:, :2], rows[:, 2], rcond=None)[0]
    errors = rows[:, 2] - rows[:, :2] @ solution
    size = np.sqrt(np.square(errors).sum() / max(len(rows) - 2, 1))
    if size > 1e-12 * np.abs(known).max():
        return float(size), centre
    steps = float(np.sqrt(np.square(rows[:, 2] - rows[:, 1]).mean()))
    return steps or float(known.std()), centre
