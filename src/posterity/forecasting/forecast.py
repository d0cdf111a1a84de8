"""Forecasts: the joint predictive distribution of the next steps of each series."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from posterity.aliases import AnyArray, Array, Mask
from posterity.distributions._limits import check_single_level, find_series
from posterity.forecasting.bounds import Bounds, choose_end
from posterity.forecasting.calendar import Calendar
from posterity.forecasting.dependence import ShockCorrelation
from posterity.forecasting.effects import compute_effects
from posterity.forecasting.forms import Form
from posterity.forecasting.log_scale import LARGEST_LOG, LOGARITHMS
from posterity.forecasting.marginals import Component, Marginals
from posterity.forecasting.paths import Paths
from posterity.forecasting.steps import StepDistribution, StepsAhead, make_frame
from posterity.safety import check_memory

if TYPE_CHECKING:
    from posterity.forecasting.components import Components, Explanation


# Values in the covariances that are computed at once.
BLOCK = 4_000_000
# Matrices of all pairs of steps that are held at once for a sum.
COVARIANCES = 4
# Sums of steps that reach a bound: sample paths, and what they are smoothed by, in standard
# deviations. Less than this probability at the bound does not count.
SUMS, SMOOTHING, NEGLIGIBLE = 4_000, 0.05, 1e-4
SMALLEST_DENSITY = 1e-300
# The calendar of forecasts without times.
NUMBERS = Calendar("numbers", 1, 0)


@dataclass(frozen=True, eq=False, repr=False)
class Forecast(StepsAhead):
    """The joint distribution of the next h steps of S series.

    A mixture over forms, by ``weights`` (S, F), and over draws of each form's coefficients and
    noise, of Gaussian paths: what is uncertain is the noise, the parameters and the form. The noise
    of several series is correlated as their residuals were.

    Attributes
    ----------
    ids : tuple
        Names of the series.
    times : (S, h) array
        Times of the steps; (h,) of a single series.
    forms : tuple of Form
        Forms that were averaged.
    weights : (S, F) array
        How much each counts.
    shocks : ShockCorrelation
        Correlations (S, S) of the series' noise at one time: ``shocks.correlation()``.

    Examples
    --------
    >>> import numpy as np
    >>> from posterity.forecasting import Forecaster
    >>> y = np.sin(np.arange(96) * 2 * np.pi / 12) + np.arange(96) / 50
    >>> forecast = Forecaster(seasonality=12).fit(y).forecast(3)
    >>> forecast.times.tolist()
    [96, 97, 98]
    >>> low, high = forecast.interval(0.9)
    >>> bool((low < forecast.median()).all())
    True
    """

    forms: tuple[Form, ...]
    paths: tuple[Paths, ...]
    shocks: ShockCorrelation
    explanation: Explanation | None = None

    @classmethod
    def of(
        cls,
        ids: tuple[Any, ...],
        times: AnyArray,
        forms: Sequence[Form],
        paths: Sequence[Paths],
        weights: Array,
        *,
        single: bool,
        bounds: Bounds | None = None,
        shocks: ShockCorrelation | None = None,
        calendar: Calendar = NUMBERS,
        explanation: Explanation | None = None,
        closed: Mask | None = None,
    ) -> Forecast:
        """Return a forecast of each form's paths, weights (S, F), and bounds of values (2, S).

        Series are independent unless the correlation of their ``shocks`` is given. Components come
        of its ``explanation``. Steps that are ``closed`` (S, h) are 0.
        """
        marginals = Marginals([some.steps for some in paths], weights).within(bounds)
        marginals = marginals if closed is None else marginals.close(closed)
        shocks = shocks or ShockCorrelation.none(len(weights))
        each = tuple(forms), tuple(paths), shocks, explanation
        return cls(ids, marginals, single, times, calendar, *each)

    @property
    def weights(self) -> Array:
        """(S, F) weights of the forms, (F,) of a single series."""
        return self._reshape(self.marginals.weights)

    @property
    def horizon(self) -> int:
        """h, how many steps are forecast."""
        return self.paths[0].mean.shape[2]

    def select(self, series: Sequence[Any]) -> Forecast:
        """The forecast of some of the series, by their names, in the order that they have here."""
        names = [series] if isinstance(series, str) else series
        which = np.array([number for number, name in enumerate(self.ids) if name in names])
        if len(which) == len(self.ids):
            return self
        return replace(
            self,
            ids=tuple(self.ids[number] for number in which),
            marginals=self.marginals.select(which),
            times=self.times[which],
            paths=tuple(path.part(which) for path in self.paths),
            shocks=self.shocks.select(which),
        )

    def rvs(self, size: int = 1000, random_state: Any = None, *, rng: Any = None) -> Array:
        """Sample paths (size, S, h), (size, h) of a single series: series and steps are joint."""
        rng = np.random.default_rng(random_state if rng is None else rng)
        weights = self.marginals.weights
        series, h = len(weights), self.horizon
        below = np.cumsum(weights, axis=1)
        below /= below[:, -1:]
        which = (rng.random((size, series, 1)) > below).sum(axis=2)
        draw = rng.integers(self.paths[0].noise.shape[1], size=(size, series))
        shocks = self.shocks.draw(rng, size, h)
        drawn = np.empty((size, series, h))
        for number, (path, moved) in enumerate(
            zip(self.paths, self.marginals.components, strict=True)
        ):
            at, of = np.nonzero(which == number)
            k = draw[at, of]
            errors = _filter_shocks(path.responses[of, k], shocks[at, of])
            if path.early is not None:
                before = rng.standard_normal((len(of), path.early.shape[3], 1))
                errors += (path.early[of, k] @ before)[:, :, 0]
            errors *= path.noise[of, k, None]
            if self.marginals.bounds is not None:
                errors *= moved.sd[of, k] / np.where(path.sd > 0.0, path.sd, 1.0)[of, k]
            values = moved.mean[of, k] + errors
            drawn[at, of] = path.scale.values(values) if path.log else values
        if self.marginals.bounds is not None:
            np.clip(drawn, *self.marginals.bounds[:, :, None], out=drawn)
        if self.marginals.closed is not None:
            drawn[:, self.marginals.closed] = 0.0
        return drawn[:, 0] if self.single else drawn

    def covariance(self) -> Array:
        """(h, S, S) covariances of the series, step by step.

        Those of forms in logarithms are to first order in the shocks.
        """
        covariance = self._sum_products() * self.shocks.correlation()
        series = np.arange(covariance.shape[1])
        covariance[:, series, series] = self.marginals.variance().T
        return covariance

    def total(self, steps: slice | int | None = None) -> StepDistribution:
        """Distribution of the sum over all steps, or the first ``steps``.

        Of forms on the scale of the values it is a mixture of Gaussians, by formula. The sum of
        what is Gaussian in logarithms is taken for lognormal, with the mean and the variance that
        the sum has (Fenton 1960); :meth:`rvs` is free of that. Where steps reach a bound of the
        values, or have a capacity, it is that of 4,000 sample paths, always the same.
        """
        chosen = choose_steps(steps, self.horizon)
        counted = np.zeros((len(self.ids), self.horizon))
        counted[:, chosen] = 1.0
        if self.marginals.closed is not None:
            counted[self.marginals.closed] = 0.0
        parts = [_sum_steps(path, counted) for path in self.paths]
        sums = Marginals(parts, self.marginals.weights)
        reached = self._find_drawn_series(chosen)
        if reached.any():
            sums = self._draw_sums(sums, reached, chosen)
        return StepDistribution(self.ids, sums, self.single)

    def get_history(self, series: Any = None) -> tuple[AnyArray, Array]:
        """Times and values of the learned rows (n,) of a series; none of a forecast without them.

        Raises
        ------
        ValueError
            If there are several series and none is named, or there is none of that name.
        """
        number = find_series(self.ids, series)
        if self.explanation is None:
            return np.asarray(self.times).reshape(len(self.ids), -1)[number, :0], np.zeros(0)
        return self.explanation.get_history(self.ids[number])

    def components(self) -> Components:
        """What the forecast is the sum of: a trend, seasons, holidays, exogenous columns.

        Each is a distribution over the steps. That of the trend is of where it may go; others say
        how well their course is known, without the noise of single steps.

        Raises
        ------
        ValueError
            If the forecast is of no :class:`Forecaster`, or components take too much memory.

        Examples
        --------
        >>> import numpy as np
        >>> from posterity.forecasting import Forecaster
        >>> y = 10 + np.sin(np.arange(96) * 2 * np.pi / 12) + np.arange(96) / 50
        >>> components = Forecaster(seasonality=12).fit(y).forecast(12).components()
        >>> np.abs(components["season 12"].mean()).max().round(1)
        np.float64(1.0)
        """
        return self._get_explanation().compute(self.ids, single=self.single)

    def effects(self, level: float = 0.95) -> Any:
        """What each exogenous column, holiday and event adds to a step: a pandas data frame.

        Columns are ``unique_id``, ``effect``, ``mean``, ``std``, and ``low`` and ``high``,
        the ends of an interval at a probability ``level``. The effect of a column of numbers is
        that of 1 more, that of a level of text beyond the most common level. Effects that are
        multiplied with the level of the series are those at the first step.

        Raises
        ------
        ValueError
            If the forecast is of no :class:`Forecaster`.
        ImportError
            If pandas is not installed.

        Examples
        --------
        >>> import numpy as np
        >>> from posterity.forecasting import Forecaster
        >>> rng = np.random.default_rng(0)
        >>> sale = (rng.random(120) < 0.2) * 1.0
        >>> y = 50 + 10 * sale + rng.normal(size=120)
        >>> forecast = Forecaster(seasonality=()).fit(y, sale[:, None]).forecast(1, [[0.0]])
        >>> forecast.effects()[["effect", "mean"]].round(0).to_dict("records")
        [{'effect': 'x0', 'mean': 10.0}]
        """
        level = check_single_level(level)
        return make_frame(compute_effects(self._get_explanation(), self.ids, level))

    # ---- inner ---------------------------------------------------------------------------------

    def _get_explanation(self) -> Explanation:
        if self.explanation is None:
            raise ValueError("this forecast was put together by hand, and has no components")
        return self.explanation

    def _sum_products(self) -> Array:
        """(h, S, S) products of two series' mean effects of shocks, summed over shocks so far."""
        h, weights = self.horizon, self.marginals.weights
        effects = np.zeros((len(weights), h, h))
        for weight, path in zip(weights.T, self.paths, strict=True):
            some = weight > 0.0
            effects[some] += weight[some, None, None] * path.shock_effects()[some]
        # An effect at a step of the shock so many steps before: later ones are not there yet.
        products = np.empty((h, len(weights), len(weights)))
        for step in range(h):
            some = effects[:, step, : step + 1]
            products[step] = some @ some.T
        if self.marginals.closed is not None:
            shut = self.marginals.closed.T
            products[shut[:, :, None] | shut[:, None]] = 0.0
        return products

    def _find_drawn_series(self, steps: slice) -> Mask:
        """(S,) whether sums have no formula: with log odds, or where a bound is probable."""
        odds = np.array([path.scale != LOGARITHMS for path in self.paths])
        drawn = np.asarray((self.marginals.weights[:, odds] > 0.0).any(axis=1))
        if self.marginals.bounds is None:
            return drawn
        reached = self.marginals.at_bounds()[:, :, steps]
        return np.asarray(drawn | (reached > NEGLIGIBLE).any(axis=(0, 2)))

    def _draw_sums(self, sums: Marginals, reached: Mask, steps: slice) -> Marginals:
        """The same, but of some series a mixture of narrow normals at the sums of sample paths."""
        drawn = draw_sums(self, steps)[:, :, None]
        # The mean of a sum is exactly the sum of means, without the error of draws.
        count = len(range(self.horizon)[steps])
        free = np.array([[-np.inf], [np.inf]])
        own = free if self.marginals.bounds is None else self.marginals.bounds
        bounds = np.where(reached, count * own, free)
        exact = self.marginals.mean()[:, steps].sum(axis=1, keepdims=True)
        sign, end, _ = choose_end(bounds, exact)
        over = sign * (drawn[:, :, 0] - end)
        found = over.mean(axis=1, keepdims=True)
        ratio = np.where(
            reached[:, None] & (found > 0.0),
            sign * (exact - end) / np.maximum(found, SMALLEST_DENSITY),
            1.0,
        )
        drawn = (end + sign * over * ratio)[:, :, None]
        # Sums are drawn together as they are smoothed, which leaves their variance as it was.
        mean = drawn.mean(axis=1, keepdims=True)
        narrow = np.broadcast_to(SMOOTHING * drawn.std(axis=1, keepdims=True), drawn.shape)
        drawn = mean + np.sqrt(1.0 - SMOOTHING**2) * (drawn - mean)
        weights = np.hstack([np.where(reached[:, None], 0.0, sums.weights), reached[:, None]])
        return Marginals([*sums.components, Component(drawn, narrow, log=False)], weights, bounds)


def choose_steps(steps: slice | int | None, horizon: int) -> slice:
    """The steps of a horizon that are asked for; raises ``ValueError`` where there are none."""
    if steps is None or isinstance(steps, slice):
        chosen = slice(None) if steps is None else steps
    elif 1 <= operator.index(steps) <= horizon:
        chosen = slice(operator.index(steps))
    else:
        raise ValueError(
            f"steps is {steps}, but {horizon} were forecast: give 1 to {horizon}, or forecast more"
        )
    if not len(range(horizon)[chosen]):
        raise ValueError(f"there is no step in {steps}: give steps of the horizon, 1 to {horizon}")
    return chosen


def draw_sums(forecast: Any, steps: slice) -> Array:
    """(S, SUMS) sums over steps of sample paths, always the same."""
    series, h = np.atleast_2d(forecast.times).shape
    rng, size = np.random.default_rng(0), max(1, BLOCK // (series * h))
    drawn = [
        forecast.rvs(min(size, SUMS - start), rng=rng).reshape(-1, series, h)[:, :, steps]
        for start in range(0, SUMS, size)
    ]
    return np.concatenate([some.sum(axis=2) for some in drawn]).T


# ---- inner ---------------------------------------------------------------------------------------


def _filter_shocks(responses: Array, shocks: Array) -> Array:
    """(n, h) sums of shocks (n, h) by their responses (n, h)."""
    errors = np.zeros_like(shocks)
    for lag in range(shocks.shape[1]):
        errors[:, lag:] += responses[:, lag, None] * shocks[:, : shocks.shape[1] - lag]
    return errors


def _sum_steps(path: Paths, counted: Array) -> Component:
    """The sum over the steps that are ``counted`` (S, h), as a component with one step."""
    if not path.log:
        # The effects of a shock at a step, summed over the chosen steps from then on.
        root = np.stack(
            [
                (path.responses[:, :, : counted.shape[1] - shock] @ counted[:, shock:, None])[
                    :, :, 0
                ]
                for shock in range(counted.shape[1])
            ],
            axis=2,
        )
        squares = np.square(root).sum(axis=2)
        if path.early is not None:
            squares += np.square(np.einsum("skhb,sh->skb", path.early, counted)).sum(axis=2)
        sd = path.noise * np.sqrt(squares)
        return Component(path.mean @ counted[:, :, None], sd[:, :, None], log=False)
    size = path.noise.shape[1] * path.mean.shape[2] ** 2
    check_memory(8.0 * COVARIANCES * size, f"the sum of {path.mean.shape[2]:,} steps")
    mean, sd = np.empty(path.noise.shape), np.empty(path.noise.shape)
    share, steps = max(1, BLOCK // size), np.flatnonzero(counted.any(axis=0))
    for start in range(0, len(mean), share):
        which = slice(start, start + share)
        some = path.part(which)
        covariance = some.covariance()[:, :, steps[:, None], steps]
        means = some.mean[:, :, steps] + 0.5 * np.einsum("skii->ski", covariance)
        top = means.max(axis=2, keepdims=True, initial=-LARGEST_LOG)
        each = np.exp(means - top) * counted[which, None, steps]
        total = np.maximum(each.sum(axis=2), SMALLEST_DENSITY)
        variance = np.einsum("ski,skij,skj->sk", each, np.expm1(np.minimum(covariance, 36.0)), each)
        spread = np.log1p(variance / np.square(total))
        mean[which] = np.log(total) + top[:, :, 0] - 0.5 * spread
        sd[which] = np.sqrt(spread)
    return Component(mean[:, :, None], sd[:, :, None], log=True)
