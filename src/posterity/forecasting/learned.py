"""What a forecaster has learned, and what follows from it: seasons, forms, and how they did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from posterity.aliases import AnyArray, Array, Mask
from posterity.distributions.guesses import TellsCalls, TellsNames
from posterity.forecasting import reading
from posterity.forecasting.borrowing import Loan, find_loans
from posterity.forecasting.bounds import (
    Bounds,
    check_bounds,
    check_capacity,
    find_bounds,
    find_ends,
    get_top,
)
from posterity.forecasting.censoring import check_censored
from posterity.forecasting.checks import (
    check_enough,
    check_far,
    check_forms,
    check_parameters,
    find_unlearned,
    read_memories,
)
from posterity.forecasting.choosing import add_memories, choose_forms
from posterity.forecasting.combining import compute_common_scores
from posterity.forecasting.ensemble import Priors
from posterity.forecasting.forms import Form
from posterity.forecasting.holidays import Events, check_events, check_regions, list_regions
from posterity.forecasting.outliers import check_outliers
from posterity.forecasting.panel import Panel, find_steps
from posterity.forecasting.plans import Plan
from posterity.forecasting.preparing import Preparation, choose_periods
from posterity.forecasting.recent import select_series
from posterity.forecasting.remarks import (
    warn_of_bounds,
    warn_of_events,
    warn_of_outliers,
    warn_of_short,
    warn_of_unlearned,
)
from posterity.forecasting.trials import Tried, run_trials
from posterity.forecasting.weighing import CommonScores
from posterity.safety import check_memory
from posterity.transaction import AtomicModel

# Values that a forecast stores for each form, series, draw and step.
NUMBERS = 3
# What a forecast has, by the names that are tried on its forecaster.
_OUR_NAMES = {
    **dict.fromkeys(("components", "decompose", "seasonal_"), "forecast(h).components()"),
    **dict.fromkeys(("effects", "holiday_effects"), "forecast(h).effects()"),
    **dict.fromkeys(("interval", "predict_interval"), "forecast(h).interval(0.95)"),
    "plot": "posterity.plots.plot_forecast(forecaster.forecast(h))",
    "save": "posterity.save(forecaster, path)",
    "update": "partial_fit(y), or learn_one(value)",
}


@dataclass(kw_only=True, eq=False, repr=False)
class ForecastParameters:
    """Parameters that are kept as they are given."""

    seasonality: float | Sequence[float] | None = None
    forms: Sequence[Form] | None = None
    holidays: str | Sequence[str] | None = None
    events: Any = None
    forgetting: Any = None
    lower_bound: float | str | None = "auto"
    upper_bound: float | str | None = "auto"
    outliers: Literal["ignore", "learn"] = "ignore"
    censored: Any = None
    capacity: float | None = None
    floor: float = 0.0
    n_draws: int = 32


class LearnedSeries(ForecastParameters, AtomicModel, TellsCalls, TellsNames, BaseEstimator):
    """Series as they were learned, with the parameters of :class:`posterity.Forecaster`."""

    # The panel that was learned; with several series, also the single rows learned since.
    _panel: Panel | None = None
    _recent: Panel | None = None

    _our_names = _OUR_NAMES

    @property
    def ids_(self) -> tuple[Any, ...]:
        """Names of the series."""
        return self._learned.ids

    @property
    def values_(self) -> Array:
        """(S, n) values learned, the last of each series at the end; NaN was not observed."""
        return self._fitted_panel.values.copy()

    @property
    def times_(self) -> AnyArray:
        """(S, n) times of ``values_``."""
        posterior = self._fitted_panel
        return posterior.calendar.stamps(
            posterior.ends[:, None] + np.arange(1 - posterior.length, 1)
        )

    @property
    def outliers_(self) -> Mask:
        """(S, n) which of ``values_`` forecasts ignore."""
        return self._prepared.mark_left_out(self._fitted_panel) > 0

    @property
    def steps_(self) -> Mask:
        """(S, n) which of these begin a new level, to which all values before are moved."""
        return find_steps(self._prepared.mark_left_out(self._fitted_panel))

    @property
    def exogenous_(self) -> tuple[str, ...]:
        """Names of the exogenous columns."""
        return self._fitted_panel.names

    @property
    def n_observations_(self) -> int:
        """Observed values learned."""
        return int(self._fitted_panel.observed.sum())

    @property
    def periods_(self) -> tuple[float, ...]:
        """Seasonal periods in use."""
        return self._find_periods(self._used.select_typical())

    @property
    def forms_(self) -> tuple[Form, ...]:
        """Forms that are averaged."""
        return self._list_forms(self._used)

    def before(self, rows: int) -> Self:
        """A copy of the forecaster as it was ``rows`` rows of each series ago.

        Examples
        --------
        >>> import numpy as np
        >>> from posterity.forecasting import Forecaster
        >>> y = np.cumsum(np.random.default_rng(0).normal(size=80))
        >>> forecaster = Forecaster(seasonality=()).fit(y)
        >>> forecaster.before(5).forecast(5).crps(y[-5:]).shape  # what it would have predicted
        (5,)
        """
        if not 0 <= rows < self._fitted_panel.length:
            raise ValueError(
                f"rows is {rows}: it must be at least 0 and less than "
                f"{self._fitted_panel.length}, the number of learned rows"
            )
        return self._branch()._copy_from(self._fitted_panel.before(int(rows)))

    # ---- inner -----------------------------------------------------------------------------------

    @property
    def _learned(self) -> Panel:
        """The panel that was learned at once, from which the scores that series share come."""
        if self._panel is None:
            raise NotFittedError("This Forecaster has learned nothing yet: call fit first")
        return self._panel

    @property
    def _used(self) -> Panel:
        """The same as forms learn it."""
        return self._prepared.apply(self._learned)

    @property
    def _prepared(self) -> Preparation:
        return self._prepare(self._learned)

    def _prepare(self, panel: Panel) -> Preparation:
        """How panels become those that forms learn, by what is known of one."""
        events = Events.of(self.holidays, self.events, panel)
        periods, top = self._find_periods(panel), get_top(self._bounds[1])
        return Preparation(events, self.outliers, periods, self.censored, top)

    @property
    def _fitted_panel(self) -> Panel:
        """The panel that was learned."""
        learned = self._learned
        return learned if self._recent is None else learned.append(self._recent)

    def _read_plan(self, X_future: Any, panel: Panel, h: int) -> Plan:
        self._check_size(len(panel), h)
        given = reading.future(X_future, panel, h)
        steps = panel.ends[:, None] + np.arange(1, h + 1)
        events = self._prepared.events
        known = events.build_columns(panel.calendar, steps)
        m, columns = len(panel.names), np.concatenate([given, known], axis=2)
        groups, occasions = events.find_groups(m), events.find_occasions(m)
        return Plan.of(panel, columns, groups, events.find_holidays(m), occasions)

    def _check_size(self, n_series: int, h: int) -> None:
        """Raise ``ValueError`` where a forecast of so many series takes too much memory."""
        check_far(h, self._learned.length)
        numbers = NUMBERS * len(self.forms_) * n_series * self.n_draws * h
        check_memory(8.0 * numbers, f"a forecast of {n_series:,} series at once")

    def _select(
        self, series: Sequence[Any] | None, forms: Sequence[Form]
    ) -> tuple[Panel, list[Loan]]:
        """Select series, all by default, with those that they borrow from; and what they borrow."""
        if series is None:
            panel = self._prepared.apply(self._fitted_panel)
            return panel, find_loans(panel, find_unlearned(panel, forms))
        prepare = self._prepared.apply
        panel = prepare(select_series(self._learned, self._recent, series))
        short = [panel.ids[number] for number in find_unlearned(panel, forms)]
        if not short:
            return panel, []
        whole = prepare(self._fitted_panel)
        loans = find_loans(whole, [whole.ids.index(name) for name in short])
        lenders = dict.fromkeys(whole.ids[one] for loan in loans for one in loan.lenders)
        panel = prepare(select_series(self._learned, self._recent, [*panel.ids, *lenders]))
        return panel, [loan.move(whole.ids, panel.ids) for loan in loans]

    def _find_periods(self, panel: Panel) -> tuple[float, ...]:
        return choose_periods(self.seasonality, panel)

    def _find_bounds(self, panel: Panel, whole: Panel) -> Bounds:
        """Bounds of the values of a panel, with the periods of the whole one."""
        return find_bounds(panel.values, *self._bounds, self._find_periods(whole))

    @property
    def _bounds(self) -> tuple[Any, Any]:
        """The lower and the upper bound: floor and capacity, where there is one."""
        if self.capacity is None:
            return self.lower_bound, self.upper_bound
        return self.floor, self.capacity

    def _list_forms(self, panel: Panel) -> tuple[Form, ...]:
        return add_memories(self._choose_forms(panel), read_memories(self.forgetting))

    def _choose_forms(self, panel: Panel) -> tuple[Form, ...]:
        if self.forms is not None:
            return tuple(self.forms)
        some = panel.select_typical()
        n = int(np.median(some.observed))
        forms = choose_forms(
            n,
            self._find_periods(some),
            ends=find_ends(some.values, *self._bounds),
            n_series=len(some),
            columns=bool(panel.names),
        )
        # Growth to a capacity is a line in log odds, and bends wherever it is in values.
        return forms if self.capacity is None else tuple(form for form in forms if form.log)

    def _check_parameters(self) -> None:
        check_parameters(self.seasonality, self.forms, self.n_draws)
        read_memories(self.forgetting)
        check_bounds(self.lower_bound, self.upper_bound, self.floor, self.capacity)
        check_regions(list_regions(self.holidays))
        check_events(self.events)
        check_outliers(self.outliers)

    def _check_values(self, panel: Panel) -> None:
        check_censored(panel, self.censored)
        check_capacity(panel, self.floor, self.capacity)

    def _copy_from(self, panel: Panel) -> Self:
        check_enough(panel)
        self._check_values(panel)
        self._panel, self._recent = panel, None
        if not panel.single:
            self.__dict__.pop("_answers", None)
        self.__dict__.pop("_together", None)
        return self

    def _run_trials(self, h: int) -> tuple[Tried, list[Loan]]:
        """Learners of all rows, how they did at this horizon, and what series borrow.

        Kept until rows come; of a single series they go on from there.
        """
        asked = h, self.n_draws
        learned, before, loans = self.__dict__.get("_answers", {}).get(asked, (None, None, []))
        if learned is self._learned:
            return before, loans
        panel = self._used
        forms = self._list_forms(panel)
        warn_of_outliers(self._learned, self._prepared.mark_left_out(self._learned))
        periods = self._find_periods(panel.select_typical())
        warn_of_short(panel, sorted(periods)[:1] if self.seasonality is None else periods)
        warn_of_bounds(self._learned, *self._bounds)
        warn_of_events(self._prepared.events.unknown)
        if self.forms is not None:
            check_forms(panel, forms)
        loans = find_loans(panel, find_unlearned(panel, forms))
        warn_of_unlearned(panel, loans)
        tried = run_trials(forms, panel, h, self.n_draws, before=before)
        self.__dict__["_answers"] = {asked: (self._learned, tried, loans)}
        return tried, loans

    def _get_common_scores(self, h: int) -> tuple[list[Form], Priors, CommonScores, Panel]:
        """Return what all series share at this horizon, and the panel that they are.

        Cached until more is learned.
        """
        kept = self.__dict__.setdefault("_together", {})
        if h not in kept:
            tried, _ = self._run_trials(h)
            used = tried.panel
            future = np.zeros((len(used), h, used.columns.shape[2]))
            common = compute_common_scores(tried, future, self.n_draws)
            priors = {learner.form: learner.priors for learner in tried.learners}
            kept[h] = [learner.form for learner in tried.learners], priors, common, used
        return kept[h]

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return {name: one for name, one in state.items() if name not in ("_answers", "_together")}
