"""Forecasts: the joint predictive distribution of the next steps of each series."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posterity.distributions._limits import check_single_level, find_series
from posterity.distributions.guesses import refuse_guess
from posterity.distributions.joint_distribution import require_pandas
from posterity.forecasting.bounds import Bounds, choose_end
from posterity.forecasting.calendar import Calendar
from posterity.forecasting.dependence import ShockCorrelation
from posterity.forecasting.forms import Form
from posterity.forecasting.marginals import LARGEST_LOG, Component, Marginals
from posterity.forecasting.panel import make_names_array
from posterity.forecasting.paths import Paths
from posterity.kernel.values import read_floats
from posterity.safety import check_memory

if TYPE_CHECKING:
    from posterity.forecasting.components import Components, Explanation

Array = NDArray[np.float64]

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
# Steps in the repr of a forecast.
SHOWN = 3
# Our names for those of pandas, statsmodels and others.
OUR_NAMES = {
    "sum": "total(steps)",
    "sample": "rvs(size), which has sample paths",
    "simulate": "rvs(size), which has sample paths",
    "conf_int": "interval(0.95)",
    "predict_interval": "interval(0.95)",
    "predicted_mean": "mean() or median()",
    "summary_frame": "to_frame()",
    "to_pandas": "to_frame()",
    "ppf": "quantile(q)",
    "plot": "posterity.plots.plot_forecast(forecast)",
}


@dataclass(frozen=True, eq=False, repr=False)
class StepDistribution:
    """Distributions over (series, step), each a mixture of normals and lognormals.

    Methods answer with arrays (S, h), or (h,) of a single series that has no name.
    """

    ids: tuple[Any, ...]
    marginals: Marginals
    single: bool

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Raise ``AttributeError``, with our name for one of other libraries."""
            return refuse_guess(self, name, OUR_NAMES)

    def __repr__(self) -> str:
        """Return the number of series and steps, and the forecast of the first series."""
        count, steps = self.marginals.components[0].mean[:, 0].shape
        what = f"{steps} step" + "s" * (steps != 1)
        if not self.single:
            what = f"{count} series, {what} each"
        low, high = (np.atleast_2d(end)[0] for end in self.interval())
        rows = zip(np.atleast_2d(self.median())[0], low, high, strict=True)
        shown = ", ".join(f"{middle:.4g} [{a:.4g}, {b:.4g}]" for middle, a, b in list(rows)[:SHOWN])
        more = ", ..." if steps > SHOWN else ""
        of = "" if self.single else f" of {self.ids[0]!r}"
        return f"{type(self).__name__}({what}; median{of} and 95% interval: {shown}{more})"

    def mean(self) -> Array:
        """Means. Of forms in logarithms they exist as long as the noise's draws are finite."""
        return self._reshape(self.marginals.mean())

    def var(self) -> Array:
        """Variances."""
        return self._reshape(self.marginals.variance())

    def std(self) -> Array:
        """Standard deviations."""
        return np.sqrt(self.var())

    def median(self) -> Array:
        """Medians: the point forecasts, for which absolute errors are least."""
        return self.quantile(0.5)

    def quantile(self, q: float) -> Array:
        """Quantiles, 0 < q < 1."""
        if not 0.0 < q < 1.0:
            raise ValueError(f"q is {q}: a quantile needs a probability between 0 and 1")
        return self._reshape(self.marginals.quantile(q))

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Ends of the central intervals of each step at a probability ``level``."""
        level = check_single_level(level)
        if not 0.0 < level < 1.0:
            raise ValueError(f"level is {level}: it must be between 0 and 1, as in 0.95")
        return self.quantile(0.5 - 0.5 * level), self.quantile(0.5 + 0.5 * level)

    def cdf(self, y: ArrayLike) -> Array:
        """Probabilities of no more than ``y``, a number or one for each step."""
        return self._reshape(self.marginals.cdf(self._read(y)))

    def p_value(self, y: ArrayLike) -> Array:
        """Probability of an outcome at least as extreme as ``y``: small for anomalies.

        Twice the probability of the tail that ``y`` is in, of each step by itself.
        """
        below = self.cdf(y)
        return 2.0 * np.minimum(below, 1.0 - below)

    def logpdf(self, y: ArrayLike) -> Array:
        """Marginal log densities of each step at outcomes ``y``."""
        return self._reshape(self.marginals.logpdf(self._read(y)))

    def crps(self, y: ArrayLike) -> Array:
        """Continuous ranked probability scores of outcomes ``y``, less is better.

        The integral is done numerically, to a thousandth of the score.
        """
        return self._reshape(self.marginals.crps(self._read(y)))

    # ---- inner ---------------------------------------------------------------------------------

    def _reshape(self, values: Array) -> Array:
        return values[0] if self.single else values

    def _read(self, y: ArrayLike) -> Array:
        some = self.marginals.components[0].mean
        shape = (some.shape[0], some.shape[2])
        return np.broadcast_to(read_floats(y, "y"), shape)


@dataclass(frozen=True, eq=False, repr=False)
class StepsAhead(StepDistribution):
    """The same of steps that have times, (S, h), or (h,) of a single series."""

    times: NDArray[Any]
    calendar: Calendar

    def to_columns(self, levels: Sequence[float] = (0.8, 0.95)) -> dict[str, NDArray[Any]]:
        """Columns of a long table, a row each series and step, for any library of data frames.

        Named as Nixtla's: ``unique_id``, ``ds`` (times as those of the learned rows are written, so
        that the two join), ``Forecaster`` (the median), and
        ``Forecaster-lo-95``, ``Forecaster-hi-95`` for each level.
        """
        h = np.shape(self.times)[-1]
        columns: dict[str, NDArray[Any]] = {
            "unique_id": np.repeat(make_names_array(self.ids), h),
            "ds": self.calendar.write(np.asarray(self.times).reshape(-1)),
            "Forecaster": self.median().reshape(-1),
        }
        for level in levels:
            for name, end in zip(("lo", "hi"), self.interval(level), strict=True):
                columns[f"Forecaster-{name}-{100 * level:g}"] = end.reshape(-1)
        return columns

    def to_frame(self, levels: Sequence[float] = (0.8, 0.95)) -> Any:
        """The same as a pandas data frame.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        return make_frame(self.to_columns(levels))


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
        times: NDArray[Any],
        forms: Sequence[Form],
        paths: Sequence[Paths],
        weights: Array,
        *,
        single: bool,
        bounds: Bounds | None = None,
        shocks: ShockCorrelation | None = None,
        calendar: Calendar = NUMBERS,
        explanation: Explanation | None = None,
        closed: NDArray[np.bool_] | None = None,
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
            drawn[at, of] = np.exp(np.minimum(values, LARGEST_LOG)) if path.log else values
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
        values, it is that of 4,000 sample paths, always the same.
        """
        chosen = choose_steps(steps, self.horizon)
        counted = np.zeros((len(self.ids), self.horizon))
        counted[:, chosen] = 1.0
        if self.marginals.closed is not None:
            counted[self.marginals.closed] = 0.0
        parts = [_sum_steps(path, counted) for path in self.paths]
        sums = Marginals(parts, self.marginals.weights)
        reached = self._find_censored_series(chosen)
        if reached.any():
            sums = self._draw_sums(sums, reached, chosen)
        return StepDistribution(self.ids, sums, self.single)

    def get_history(self, series: Any = None) -> tuple[NDArray[Any], Array]:
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
        if self.explanation is None:
            raise ValueError("this forecast was put together by hand, and has no components")
        return self.explanation.compute(self.ids, single=self.single)

    # ---- inner ---------------------------------------------------------------------------------

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

    def _find_censored_series(self, steps: slice) -> NDArray[np.bool_]:
        """(S,) whether a bound has more than a negligible probability at one of the steps."""
        if self.marginals.bounds is None:
            return np.zeros(len(self.marginals.weights), dtype=bool)
        reached = self.marginals.at_bounds()[:, :, steps]
        return np.asarray((reached > NEGLIGIBLE).any(axis=(0, 2)))

    def _draw_sums(self, sums: Marginals, reached: NDArray[np.bool_], steps: slice) -> Marginals:
        """The same, but of some series a mixture of narrow normals at the sums of sample paths."""
        assert self.marginals.bounds is not None
        drawn = draw_sums(self, steps)[:, :, None]
        # The mean of a sum is exactly the sum of means, without the error of draws.
        count = len(range(self.horizon)[steps])
        free = np.array([[-np.inf], [np.inf]])
        bounds = np.where(reached, count * self.marginals.bounds, free)
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


def make_frame(columns: dict[str, NDArray[Any]]) -> Any:
    """Columns as a pandas data frame; raises ``ImportError`` if pandas is not installed."""
    return require_pandas("to_frame", "to_columns()").DataFrame(as_lists(columns))


def as_lists(columns: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """The same with lists in place of arrays of objects: frames find out what these are."""
    return {name: one.tolist() if one.dtype == object else one for name, one in columns.items()}


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
