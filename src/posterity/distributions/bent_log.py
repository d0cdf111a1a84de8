"""Positive numbers whose logs are given by their quantiles."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from posterity.distributions.bent_normal import SHARES, BentNormal


class BentLog(stats.rv_continuous):
    """A positive number whose log has mean 0 and standard deviation ``sd``, and any shape.

    Parameters
    ----------
    curve : (57,) array
        Quantiles of the log where ``sd`` is 1, at the levels of :class:`BentNormal`.

    Examples
    --------
    >>> from posterity.distributions.bent_normal import NODES
    >>> BentLog(NODES)(0.5, scale=2.0).ppf([0.025, 0.5]).round(2)   # a straight line: log-normal
    array([0.75, 2.  ])
    """

    def __init__(self, curve: ArrayLike, **named: Any) -> None:
        self._curve = np.asarray(curve, dtype=np.float64)
        self._bent = BentNormal(self._curve)
        super().__init__(**{"a": 0.0, "name": "bent_log", **named})

    def _updated_ctor_param(self) -> dict[str, Any]:
        return {**super()._updated_ctor_param(), "curve": self._curve}

    def _argcheck(self, sd: Any) -> Any:
        return sd > 0.0

    def _pdf(self, x: Any, sd: Any) -> Any:
        return self._bent.pdf(np.log(x) / sd) / (x * sd)

    def _cdf(self, x: Any, sd: Any) -> Any:
        return self._bent.cdf(np.log(x) / sd)

    def _sf(self, x: Any, sd: Any) -> Any:
        return self._bent.sf(np.log(x) / sd)

    def _ppf(self, q: Any, sd: Any) -> Any:
        return np.exp(sd * self._bent.ppf(q))

    def _munp(self, n: int, sd: Any) -> Any:
        return np.exp(n * np.multiply.outer(sd, self._curve)) @ SHARES


def make_bent_log(quantiles: ArrayLike) -> Any:
    """The frozen distribution of a number whose log has these quantiles (57,)."""
    points = np.asarray(quantiles, dtype=np.float64)
    told = BentNormal(points)
    mean, sd = float(told.mean()), float(told.std())
    return BentLog((points - mean) / sd)(sd, scale=np.exp(mean))
