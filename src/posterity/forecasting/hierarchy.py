"""Forecasts that add up: parts and their sums, made coherent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from posterity.aliases import AnyArray, Array
from posterity.forecasting.bounds import Bounds
from posterity.forecasting.calendar import format_time
from posterity.forecasting.forecast import NEGLIGIBLE, Forecast, choose_steps, draw_sums
from posterity.forecasting.marginals import Marginals
from posterity.forecasting.steps import StepDistribution, StepsAhead
from posterity.forecasting.vector_forecast import VectorForecast


@dataclass(frozen=True, eq=False, repr=False)
class CoherentForecast(StepsAhead):
    """The joint distribution of parts and sums, in which each sum is that of its parts.

    Means and variances are those of ``maps`` times the forecast that was reconciled, and marginals
    the normals that have them, censored at the bounds of the parts together; :meth:`rvs` maps its
    paths, whatever their distribution.

    Attributes
    ----------
    ids : tuple
        Names of all series: those that were forecast, then sums that were not.
    times : (S, h) array
    maps : (h, S, s) array
        From the s series that were forecast to these, step by step.
    """

    base: Forecast | VectorForecast
    maps: Array

    def rvs(self, size: int = 1000, random_state: Any = None, *, rng: Any = None) -> Array:
        """Sample paths (size, S, h): in each, parts add up to their sums."""
        return np.einsum("hij,njh->nih", self.maps, self.base.rvs(size, random_state, rng=rng))

    def covariance(self) -> Array:
        """(h, S, S) covariances of the series, step by step."""
        return self.maps @ self.base.covariance() @ np.swapaxes(self.maps, 1, 2)

    def total(self, steps: slice | int | None = None) -> StepDistribution:
        """Distribution of the sum over all steps, or the first ``steps``, of each series.

        Normal, as the steps are: with the mean that the steps have, and the standard deviation of
        the sums of 4,000 sample paths, always the same, which is right to about 1%.
        """
        chosen = choose_steps(steps, np.shape(self.times)[1])
        mean = self.mean()[:, chosen].sum(axis=1)
        sd = draw_sums(self, chosen).std(axis=1)
        normals = Marginals.of_normals(mean[:, None, None], sd[:, None, None])
        bounds = self.marginals.bounds
        if bounds is not None:
            normals = normals.within(_make_bounds(np.arange(len(self.maps))[chosen].size * bounds))
        return StepDistribution(self.ids, normals, False)


def reconcile(
    forecast: Forecast | VectorForecast,
    groups: Mapping[Any, Sequence[Any]],
    *,
    bottom_up: bool = False,
) -> CoherentForecast:
    """Have the forecasts of parts and of their sums agree.

    A sum that was forecast itself says something of its parts, too: the joint distribution is
    conditioned on each sum being that of its parts. With A y = 0 these equations, m and W mean and
    covariance of a step,

        m' = m - W A' (A W A')^-1 A m ,    W' = W - W A' (A W A')^-1 A W ,

    which is the reconciliation of least variance, MinT (Wickramasuriya, Athanasopoulos and Hyndman
    2019, where W is that of the forecasts). A sum that was not forecast is added, from its parts.

    Parameters
    ----------
    forecast : Forecast or VectorForecast
        Of several series.
    groups : mapping
        Names of sums to the names of their parts, which may be sums.
    bottom_up : bool, default False
        Whether forecasts of sums are thrown away, and all follows from parts that are no sums.

    Raises
    ------
    ValueError
        For a forecast of a single series without a name, parts that are not known or are forecast
        for different times, and sums that are parts of themselves.

    Examples
    --------
    >>> import numpy as np
    >>> from posterity.forecasting import Forecaster, reconcile
    >>> rng = np.random.default_rng(0)
    >>> shops = {"Bern": 20 + rng.normal(size=60), "Lyon": 50 + 3 * rng.normal(size=60)}
    >>> both = Forecaster().fit(shops | {"all": shops["Bern"] + shops["Lyon"]}).forecast(3)
    >>> week = reconcile(both, {"all": ["Bern", "Lyon"]})
    >>> week.ids
    ('Bern', 'Lyon', 'all')
    >>> bool(np.allclose(week.mean()[2], week.mean()[:2].sum(axis=0)))
    True
    """
    if forecast.single:
        raise ValueError("there is a single series: reconcile needs the forecast of several")
    known = forecast.ids
    added = [name for name in groups if name not in known]
    sums = {name: _count_occurrences(name, groups, known) for name in groups}
    for name, counts in sums.items():
        _check_times(name, counts, forecast)
    upward = np.array(list(sums.values())).reshape(-1, len(known))
    places = [known.index(name) for name in groups if name in known]
    inner = np.array([name in known for name in groups], dtype=bool)
    own = np.eye(len(known))
    if bottom_up:
        own[places] = upward[inner]
        steps = np.broadcast_to(own, (np.shape(forecast.times)[1], *own.shape))
    else:
        steps = _condition(forecast.covariance(), own[places] - upward[inner])
    # Series that are not sums are kept; sums that were not forecast follow from the coherent ones.
    maps = np.vstack([np.eye(len(known)), upward[~inner]]) @ steps
    mean = np.einsum("hij,jh->ih", maps, forecast.mean())
    covariance = maps @ forecast.covariance() @ np.swapaxes(maps, 1, 2)
    sd = np.sqrt(np.maximum(np.einsum("hii->ih", covariance), 0.0))
    leaves = np.vstack([np.eye(len(known)), upward[~inner]])
    leaves[places] = upward[inner]
    bounds = _add_bounds(forecast.marginals, leaves)
    marginals = Marginals.of_normals(mean[:, None], sd[:, None]).within(bounds)
    last = np.asarray(forecast.times)
    times = np.vstack([last, *([_get_times(sums[name], last) for name in added])])
    ids = (*known, *added)
    return CoherentForecast(ids, marginals, False, times, forecast.calendar, forecast, maps)


# ---- inner ---------------------------------------------------------------------------------------


def _count_occurrences(
    name: Any,
    groups: Mapping[Any, Sequence[Any]],
    known: Sequence[Any],
    above: tuple[Any, ...] = (),
) -> Array:
    """(s,) how often each series that is no sum is in a sum."""
    if name in above:
        raise ValueError(f"the sum {name!r} is a part of itself: leave it out of its parts")
    counts = np.zeros(len(known))
    if name not in groups:
        if name not in known:
            raise ValueError(
                f"{name!r}, a part of {above[-1]!r}, was not forecast, and is not a sum: "
                "forecast it, or leave it out"
            )
        counts[known.index(name)] = 1.0
        return counts
    if not len(groups[name]):
        raise ValueError(f"the sum {name!r} has no parts: name at least one")
    return np.sum(
        [_count_occurrences(part, groups, known, (*above, name)) for part in groups[name]], axis=0
    )


def _check_times(name: Any, counts: Array, forecast: Forecast | VectorForecast) -> None:
    """Raise ``ValueError`` where a sum and its parts are not forecast for the same times."""
    known, times = list(forecast.ids), np.asarray(forecast.times)
    members = [*np.flatnonzero(counts), *([known.index(name)] if name in known else [])]
    for other in members[1:]:
        if (times[other] != times[members[0]]).any():
            pair = " and ".join(
                f"{known[number]!r} for {format_time(times[number, 0])} to "
                f"{format_time(times[number, -1])}"
                for number in (members[0], other)
            )
            raise ValueError(
                f"the sum {name!r} would add up different times: {pair} was forecast; give all of "
                "its series up to the same time, with NaN where nothing was observed"
            )


def _condition(covariance: Array, equations: Array) -> Array:
    """(h, s, s) I - W A' (A W A')^-1 A: what makes A y = 0 with as little variance as can be."""
    turned = covariance @ equations.T
    among = equations @ turned
    pulled = turned @ np.linalg.pinv(among, hermitian=True)
    return np.eye(covariance.shape[1]) - pulled @ equations


def _add_bounds(marginals: Marginals, leaves: Array) -> Bounds:
    """Bounds of sums of ``leaves`` (S, s), from forecasts of these: their bounds together.

    A leaf that is never below 0 has 0 as its lower one, if only by its forecast.
    """
    ends = np.outer([-np.inf, np.inf], np.ones(leaves.shape[1]))
    ends = ends if marginals.bounds is None else marginals.bounds.copy()
    never = (marginals.cdf(np.zeros(marginals.shape)) <= NEGLIGIBLE).all(axis=1)
    ends[0] = np.maximum(ends[0], np.where(never, 0.0, -np.inf))
    return _make_bounds((leaves * np.where(leaves > 0.0, ends[:, None], 0.0)).sum(axis=2))


def _make_bounds(ends: Array) -> Bounds:
    """Bounds (2, S) that change no mean: as if they were often reached."""
    return Bounds(ends, np.isfinite(ends))


def _get_times(counts: Array, times: AnyArray) -> AnyArray:
    """Times of the first part."""
    return np.asarray(times[int(np.flatnonzero(counts)[0])])
