"""The estimator: learns series, and forecasts n steps ahead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from numpy.typing import ArrayLike
from sklearn.exceptions import NotFittedError

from posterity.aliases import Array
from posterity.distributions._limits import check_single_level
from posterity.forecasting import reading
from posterity.forecasting.checks import (
    FEWEST_VALUES,
    check_enough,
    check_far,
    check_horizon,
    find_unchanged,
)
from posterity.forecasting.combining import make_forecast
from posterity.forecasting.forecast import Forecast
from posterity.forecasting.learned import LearnedSeries
from posterity.forecasting.progress import GROWTH, Ends, Progress, compute_progress
from posterity.forecasting.recent import (
    align_to_calendar,
    append_rows,
    read_following_rows,
    read_next_row,
)
from posterity.forecasting.remarks import warn_of_still
from posterity.forecasting.trials import run_trials
from posterity.transaction import atomic


class Forecaster(LearnedSeries):
    """Forecasts the next n steps of one or more series, as a joint distribution.

    Nothing has to be chosen but the horizon. Several autoregressions, of other lags, differences
    and scales, learn each series exactly, with a learned prior; they are averaged by how well they
    have forecast the series' last windows at the horizon that is asked for. Where there are many
    series that are short, they also come with a prior that is learned over all of them.

    Parameters
    ----------
    seasonality : float or sequence of float, optional
        Seasonal periods, in steps. By default they follow from the distance between times (an hour:
        24 and 168; a day: 7; a week: 52; a month: 12; a quarter: 4; and where there are two years,
        that of a year, as 365.2425 days), and without times from the autocorrelations. ``()`` says
        that there are none.
    forms : sequence of Form, optional
        What to average instead of what is chosen by the length and the periods.
    holidays : str or sequence of str, optional
        Countries whose public holidays have effects, as "DE"; with a part, as "DE-BY" or "US-CA";
        or stock exchanges, as "XNYS". Beside each holiday's effect there are those of any holiday,
        one at a weekend, the days before and after, and of days between a holiday and a weekend.
        Needs the package holidays (the extra ``holidays``).
    events : mapping or data frame, optional
        Own days that have effects, past and coming ones: a mapping of names to dates, as
        ``{"sale": ["2026-11-27"]}``, or a frame with ``ds`` and ``event``, and with
        ``lower_window`` and ``upper_window`` for days around them (-1 and 2: from the day before to
        two days after, each with an effect of its own).
    forgetting : optional
        How forms forget: ``Exponential``, ``Stabilized`` or ``Window`` of
        :mod:`posterity.forgetting`, or ``Adaptive`` or ``Changepoint``: then each form comes with
        several memories, which are weighed, as forms are, by how they have forecast at the
        horizon. May be given in words, as "exponential:0.99". By default nothing is forgotten,
        but differences and exponential means follow levels that move.
    lower_bound : "auto", float or None, default "auto"
        Where values end below. Forecasts that go below count as being there: ends of intervals,
        quantiles, means and sample paths. "auto" is 0 for a series that has no negative value, and
        has whole numbers only or a value of 0: counts, demand, rain; or that would have passed 0 if
        it could, and whose errors are more alike in logarithms: see ``upper_bound``. A value below
        ends a bound. None: there is no bound, as of temperatures in whole degrees.
    upper_bound : "auto", float or None, default "auto"
        Where values end above, as shares do. "auto" is 1 or 100 for a series whose values all lie
        from 0 to there, and that would have passed it if it could: a walk, or what returns to its
        mean or season, with the errors so far, would have with a probability of 86%, and log odds
        are a scale on which errors are more alike, by a likelihood ratio of 3,000. If more than a
        twentieth of the values are at the top, the first has to be 99.9% instead. Prices near 100
        have no bound, nor have a series of 0 and 1 and one that was divided by its largest value.
    outliers : "ignore" or "learn", default "ignore"
        What to do with single values that are far from all before them, as a sensor's glitch or a
        typing error is: forecasts ignore them as if they were missing, or learn them. Values whose
        exogenous columns are beyond those before are always learned: these may explain them.
    censored : optional
        Name of a column of zeros and ones: 1 where the value is the least that there was, as the
        sales of a day on which the shelf was empty. Such values are learned as what they are
        expected to be, given that they are no less. The column has no effect, and no plan.
    capacity : float, optional
        What the values can grow to and never reach: customers of a town, or 1 of shares. Forms in
        logarithms are then in log odds, log (y - floor) / (capacity - y), on which such growth is a
        line; forecasts stay between floor and capacity, and bounds may not be given.
    floor : float, default 0.0
        Where values with a capacity end below.
    n_draws : int, default 32
        Draws of coefficients and noise of each form, of a fixed set of points of low discrepancy:
        the same data give the same forecast.

    Attributes
    ----------
    ids_ : tuple
        Names of the series, sorted.
    periods_ : tuple of float
        Seasonal periods in use.
    forms_ : tuple of Form
        Forms that are averaged.
    values_ : (S, n) array
        Values learned, the last of each series at the end.
    times_ : (S, n) array
        Their times.
    outliers_ : (S, n) array
        Which of them forecasts ignore, as they are far from all before them.
    steps_ : (S, n) array
        Which of these begin a new level, to which all values before are moved.
    exogenous_ : tuple of str
        Names of the exogenous columns.
    n_observations_ : int
        Observed values learned, of all series.

    Notes
    -----
    Given the draws each form is a mixture of Gaussian paths, whose noise is integrated by formula.
    Draws that explode are left out. What is weighed, how wide the mixture is made, and the formulas
    are in `docs/forecasting.md`. The model keeps the series that it has learned: learning rows in
    parts, and merging, give the forecast of all rows at once.

    Examples
    --------
    >>> import numpy as np
    >>> from posterity.forecasting import Forecaster
    >>> rng = np.random.default_rng(0)
    >>> t = np.arange(120)
    >>> y = 10 + 0.05 * t + np.sin(2 * np.pi * t / 12) + 0.1 * rng.normal(size=120)
    >>> forecaster = Forecaster().fit(y)
    >>> forecaster.periods_
    (12,)
    >>> forecast = forecaster.forecast(24)
    >>> forecast.median().shape, forecast.rvs(500, random_state=0).shape
    ((24,), (500, 24))
    >>> low, high = forecast.total(12).interval(0.95)  # of the sum of the next twelve
    >>> bool(low[0] < 12 * 16.4 < high[0])
    True
    """

    # ---- learning --------------------------------------------------------------------------------

    def fit(self, y: Any, X: Any = None) -> Self:
        """Forget everything and learn these series.

        Parameters
        ----------
        y : array, mapping or data frame
            (n,) array: one series. (n, k) array, or a mapping of names to arrays: several. Frame
            (pandas, Polars or Arrow) with a column ``y``: a long one, with ``ds`` (times: dates or
            whole numbers), ``unique_id`` (which series; optional) and exogenous columns. Any other
            frame: a series each column, but for ``ds``. Times may be in a pandas index instead of
            ``ds``: dates, or whole numbers that have a name or are not 0, 1, ... in this order. NaN
            was not observed: it is not learned, and lags bridge it. Where rows have times, their
            order does not matter.
        X : (n, m) array or data frame, optional
            Exogenous columns of a single series. What they are in the next steps, too, must be
            known then. A column of text is its levels, each a column of zeros and ones.

        Raises
        ------
        ValueError
            If a time comes twice or lies between steps, a value is infinite, no number or not
            between floor and capacity, or all series have fewer than four values; the message
            names series and time.

        Warns
        -----
        GapWarning
            If times are missing.

        Notes
        -----
        A series with fewer than four values is forecast from the others, at the level of its
        values: see :meth:`forecast`.
        """
        self._check_parameters()
        return self._copy_from(reading.read(y, X))

    @atomic
    def partial_fit(self, y: Any, X: Any = None) -> Self:
        """Learn later rows of these series, or new series. Parameters and errors as in :meth:`fit`.

        Rows without times follow the last ones of their series. All is as if they had been fitted.
        """
        if self._panel is None:
            return self.fit(y, X)
        rows = read_following_rows(self._fitted_panel, y, X)
        return self._copy_from(self._fitted_panel.append(rows))

    @atomic
    def learn_one(
        self, y: float, x: ArrayLike | Mapping[str, float] | None = None, *, series: Any = None
    ) -> Self:
        """Learn the next value of one series; ``x`` are its exogenous columns.

        Parameters
        ----------
        y : float
            The value; NaN was not observed.
        x : (m,) array or mapping, optional
            Exogenous columns, where there are any: in the order of ``exogenous_``, or by name.
        series : optional
            Its name, where several were learned.

        Notes
        -----
        Of several series, what all say together (which forms there are, the prior they share, the
        factor of their spreads) is learned anew when a tenth more values have come, and by
        :meth:`partial_fit`. What is a series' own is always that of all of its rows.

        Examples
        --------
        >>> from posterity.forecasting import Forecaster
        >>> Forecaster().fit([1.0, 3.0, 2.0, 4.0]).learn_one(3.0).n_observations_
        5
        """
        if self._panel is None:
            raise NotFittedError(
                "This Forecaster has learned nothing yet, and one value is too little to begin "
                "with: call fit first"
            )
        row = read_next_row(self._panel, self._recent, series, y, x)
        self._check_values(row)
        if self._panel.single and series is None:
            return self._copy_from(self._panel.append(row))
        recent = row if self._recent is None else self._recent.append(row)
        many = recent.observed.sum() > GROWTH * self._panel.observed.sum()
        if many or recent.names != self._panel.names:
            return self._copy_from(self._panel.append(recent))
        self._recent = recent
        return self

    @atomic
    def merge(self, other: Self) -> Self:
        """Learn what ``other`` has learned: other series, or later rows of the same."""
        if not isinstance(other, Forecaster):
            raise TypeError(f"other is a {type(other).__name__}: merge another Forecaster")
        mine, theirs = self._fitted_panel, other._fitted_panel
        if mine.calendar != theirs.calendar:
            theirs = align_to_calendar(theirs, mine)
        return self._copy_from(mine.append(theirs))

    # ---- forecasting -----------------------------------------------------------------------------

    def forecast(
        self, h: int, X_future: Any = None, *, series: Sequence[Any] | None = None
    ) -> Forecast:
        """The joint distribution of the next ``h`` steps of each series.

        Parameters
        ----------
        h : int
            The horizon: how many steps, from the last row of each series on.
        X_future : (h, m) array or data frame, optional
            Exogenous columns of these steps, if there were any; of several series a long frame
            with ``unique_id`` and ``ds``.
        series : sequence, optional
            Names of those to forecast. All series have been learned, and tried at the horizon,
            once; then some cost what they cost, not what all do.

        Raises
        ------
        ValueError
            If ``h`` is not positive, an exogenous column is missing, a series is not known, or the
            machine's memory is too small for so many series, draws and steps at once.

        Warns
        -----
        ForecastWarning
            If a series is constant, or so short that only the simplest forms can learn it; if a
            value is left out; or if a series has fewer than four values. Its forecast is then made
            from those of eight other series or more, brought to the level of the few values; NaN
            where there are fewer, or no value at all.
        """
        check_horizon(h)
        h, size = int(h), self.n_draws
        self._check_size(1, h)
        if self._recent is None and series is None:
            panel, common = self._used, None
            plan = self._read_plan(X_future, panel, h)
            tried, loans = self._run_trials(h)
        else:
            forms, priors, common, used = self._get_common_scores(h)
            panel, loans = self._select(series, forms)
            plan = self._read_plan(X_future, panel, h)
            tried = run_trials(forms, panel, h, size, used, priors)
        bounds = self._find_bounds(panel, self._learned).before(-1)
        forecast = make_forecast(tried, plan, h, size, common, bounds, loans, self.periods_)
        plan.warn(stacklevel=2)
        warn_of_still(forecast, find_unchanged(panel))
        return forecast if series is None else forecast.select(series)

    def predict(
        self, h: int, X_future: Any = None, *, series: Sequence[Any] | None = None
    ) -> Array:
        """Point forecasts, the medians, of the next ``h`` steps (S, h), or (h,) of one series.

        Parameters and errors as in :meth:`forecast`, which has intervals, dates and frames, too.
        """
        return self.forecast(h, X_future, series=series).median()

    @atomic
    def forecast_then_learn(
        self, y: Any, h: int, X: Any = None, *, level: float = 0.95
    ) -> Progress:
        """Forecast ``h`` steps before each new row, then learn it: progressive validation.

        Nothing that is forecast has seen what it is compared with: the row k steps ahead is learned
        k rows after its forecast. Forms learn each row exactly, and are weighed anew when a tenth
        more rows have come, or 240 or ten horizons more.

        Parameters
        ----------
        y, X
            New rows, as in :meth:`partial_fit`, as many of each series that is known, and no more
            of new ones. A forecaster that has learned nothing yet learns the first quarter without
            forecasting it.
        h : int
            The horizon.
        level : float
            Of the intervals that are compared with what came.

        Examples
        --------
        >>> import numpy as np
        >>> from posterity.forecasting import Forecaster, Form
        >>> y = np.cumsum(np.random.default_rng(0).normal(size=60))
        >>> walk = Forecaster(forms=[Form(drift=False)]).fit(y[:50])
        >>> progress = walk.forecast_then_learn(y[50:], h=2)
        >>> progress.median.shape, progress.by_step()["mae"].shape
        ((10, 1, 2), (2,))
        """
        return self._compute_progress(y, h, X, level)

    def _compute_progress(
        self, y: Any, h: int, X: Any, level: float, ends: Ends | None = None
    ) -> Progress:
        check_horizon(h)
        level = check_single_level(level)
        if self._panel is None:
            self._check_parameters()
            whole = reading.read(y, X)
            first = max(whole.length // 4, 2 * FEWEST_VALUES)
            check_enough(whole.before(max(whole.length - first, 0)))
        else:
            whole, first = append_rows(self._fitted_panel, y, X), self._fitted_panel.length
        check_far(h, first)
        self._check_values(whole)
        prepared = self._prepare(whole)
        used = prepared.leave_out(prepared.events.add_to(whole))
        forms = self._list_forms(used.before(whole.length - first))
        bounds = self._find_bounds(used, whole)
        forecasts = compute_progress(
            used, whole.values, first, h, forms, self.n_draws, level, ends, bounds
        )
        self._copy_from(whole)
        return forecasts
