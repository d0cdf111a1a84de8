"""Progressive validation n steps ahead: every row is forecast before it is learned."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from posterity.aliases import Array, Mask
from posterity.forecasting.borrowing import find_loan, lend
from posterity.forecasting.bounds import Bounds
from posterity.forecasting.combining import find_counted, find_usable
from posterity.forecasting.ensemble import (
    FormLevels,
    Learner,
    begin_learners,
    is_steady,
    join_paths,
    make_levels,
)
from posterity.forecasting.forms import Form
from posterity.forecasting.marginals import Marginals, scale_spread
from posterity.forecasting.panel import STEP, Panel
from posterity.forecasting.paths import Paths
from posterity.forecasting.trials import (
    FEW_SERIES,
    MOST_WINDOWS,
    Trials,
    TrialScores,
    choose_draws,
    choose_windows,
    extend_columns,
    get_outcomes_from,
)
from posterity.forecasting.weighing import CommonScores

# Weights of forms are updated when the series have grown by this share, and by a horizon, and at
# the latest after so many rows, and when all windows in which forms are tried are new.
GROWTH, MOST_ROWS = 0.1, 240
# Values in the paths of the forecasts that are made together.
BLOCK = 1_000_000

Ends = Callable[[int, Array], tuple[Array, Array]]


@dataclass(frozen=True, eq=False)
class Progress:
    """Forecasts made before each new row, and outcomes: (n, S, h), NaN beyond the end.

    Entry [i, s, k] was forecast knowing all rows before the i-th new one, of the row k after it.

    Attributes
    ----------
    ids : tuple
        Names of the series.
    level : float
        Of the intervals from ``low`` to ``high``.
    median, low, high, crps, outcomes : (n, S, h) array
    pit : (n, S, h) array
        Probabilities, by the forecasts, of no more than what came.

    Examples
    --------
    A value that no forecast of one step expected:

    >>> from posterity.forecasting import Forecaster, Form
    >>> y = np.cumsum(np.random.default_rng(0).normal(size=80))
    >>> y[70] += 12.0
    >>> walk = Forecaster(forms=[Form(drift=False)]).fit(y[:50])
    >>> strange = walk.forecast_then_learn(y[50:], h=1).p_values()[:, 0, 0]
    >>> int(strange.argmin()), bool(strange.min() < 1e-6)
    (20, True)
    """

    ids: tuple[Any, ...]
    level: float
    median: Array
    low: Array
    high: Array
    crps: Array
    outcomes: Array
    pit: Array

    def p_values(self) -> Array:
        """(n, S, h) probabilities of outcomes at least as extreme: small for anomalies.

        Twice the probability of the tail that the outcome is in. Entries [:, :, 0] say it of each
        new row before it is learned.
        """
        return 2.0 * np.minimum(self.pit, 1.0 - self.pit)

    def by_step(self) -> dict[str, Array]:
        """(h,) mean absolute error, mean CRPS and coverage for each step ahead."""
        held = (self.low <= self.outcomes) & (self.outcomes <= self.high)
        known = np.isfinite(self.outcomes) & np.isfinite(self.median)
        count = np.maximum(known.sum(axis=(0, 1)), 1)

        def mean(values: Array) -> Array:
            return np.asarray(np.where(known, values, 0.0).sum(axis=(0, 1)) / count)

        return {
            "mae": mean(np.abs(self.median - self.outcomes)),
            "crps": mean(self.crps),
            "coverage": mean(held.astype(np.float64)),
        }


def compute_progress(
    whole: Panel,
    observed: Array,
    first: int,
    h: int,
    forms: tuple[Form, ...],
    size: int,
    level: float,
    ends: Ends | None = None,
    bounds: Bounds | None = None,
) -> Progress:
    """Make all of these forecasts, and compare them with ``observed`` values (S, T) of the panel.

    A value that is missing from the panel alone is not learned. ``bounds`` are those of its values.
    ``ends`` may say the probabilities (h,) below the ends of the intervals of each forecast, by its
    number and by ``pit`` of those before: of what came until then.
    """
    n, series = whole.length - first, len(whole)
    median, low, high, crps, pit = (np.full((n, series, h), np.nan) for _ in range(5))
    outcomes = get_outcomes_from(observed, range(first, whole.length), h).swapaxes(0, 1)
    ends = ends or (lambda _number, _pit: _find_interval_tails(level, h))
    for columns, unbounded in _forecast_stretches(whole, first, h, forms, size):
        now = slice(columns.start, columns.stop)
        marginals = unbounded.within(None if bounds is None else bounds.before(now))
        marginals = marginals.close(_find_closed(whole, columns, h))
        rows = slice(columns.start - first, columns.stop - first)
        shape = (len(columns), series, h)
        y = outcomes[rows].reshape(-1, h)
        known = np.isfinite(y)
        centre = marginals.quantile(0.5)
        came = np.where(known, y, centre)
        median[rows] = np.where(_mark_inside(columns, whole, h), centre.reshape(shape), np.nan)
        crps[rows] = np.where(known, marginals.crps(came), np.nan).reshape(shape)
        pit[rows] = np.where(known, marginals.cdf(came), np.nan).reshape(shape)
        ends_of_rows = np.array([ends(number, pit) for number in range(rows.start, rows.stop)])
        for side, end in enumerate((low, high)):
            found = marginals.quantile(np.repeat(ends_of_rows[:, side], series, axis=0))
            end[rows] = np.where(_mark_inside(columns, whole, h), found.reshape(shape), np.nan)
    return Progress(whole.ids, level, median, low, high, crps, outcomes, pit)


# ---- inner ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Stretch:
    """Columns before which forms have the same weights, but for what they can say.

    These are by trials of so many ``steps`` from ``origins`` on, in the panel as it is ``now``.
    """

    columns: range
    now: Panel
    origins: list[int]
    steps: int


def _plan_stretches(whole: Panel, first: int, h: int) -> list[Stretch]:
    """The stretches of all columns from ``first`` on."""
    stretches = []
    while first < whole.length:
        now = whole.before(whole.length - first)
        typical = now.select_typical()
        back, steps = choose_windows(int(typical.lengths.max()), h, len(typical))
        grown = min(int(GROWTH * first), max(MOST_ROWS, MOST_WINDOWS * h))
        columns = range(first, min(first + max(h, grown), whole.length))
        stretches.append(Stretch(columns, now, [first - one for one in back], steps))
        first = columns.stop
    return stretches


def _forecast_stretches(
    whole: Panel, first: int, h: int, forms: tuple[Form, ...], size: int
) -> Iterator[tuple[range, Marginals]]:
    """Forecasts right before each column from ``first`` on, of many columns together (n S, h)."""
    most = max(1, BLOCK // (len(whole) * len(forms) * size * h))
    stretches = _plan_stretches(whole, first, h)
    tried = {origin for stretch in stretches for origin in stretch.origins}
    learners, _ = begin_learners(forms, whole.before(whole.length - first))
    trials = Trials.of(forms, h)
    steady, few = is_steady(whole, forms), len(whole) <= FEW_SERIES
    for together in [stretches] if steady else [[one] for one in stretches]:
        now, first, stop = together[0].now, together[0].columns.start, together[-1].columns.stop
        # Effects of columns, and by how much levels have moved, are known better by now.
        if whole.columns.shape[2] or (now.left_out is not None and (now.left_out >= STEP).any()):
            learners, _ = begin_learners(forms, now)
        levels = make_levels(forms, whole.before(whole.length - stop), first)
        for learner in learners:
            learner.priors.clear()
        # Of few series earlier trials are drawn with all the rest.
        earlier = sorted(tried - set(range(first, stop))) if steady and few else []
        for start in range(first, stop, most):
            columns = range(start, min(start + most, stop))
            drawn = Drawn.of(learners, levels, whole, [*earlier, *columns], h, size)
            earlier = []
            drawn.part([column for column in drawn.columns if column in tried]).add_to(trials)
            for stretch in together:
                some = [column for column in columns if column in stretch.columns]
                if some:
                    scores = _try(trials, stretch, whole, size)
                    yield range(some[0], some[-1] + 1), drawn.part(some).mix(scores, whole)


def _try(trials: Trials, stretch: Stretch, whole: Panel, size: int) -> TrialScores:
    """Scores by which the forms of a stretch are weighed; what was not yet tried is."""
    missing = [origin for origin in stretch.origins if origin not in trials.of_columns]
    if missing:
        draws = choose_draws(size, int(stretch.now.typical.sum()))
        trials.run(*begin_learners(trials.forms, stretch.now), whole, missing, draws)
    return trials.scores(stretch.now, stretch.origins, stretch.steps)


@dataclass(frozen=True, eq=False)
class Drawn:
    """Paths of each form right before n columns, (n S, K, h), and whether it has rows enough.

    ``knows`` are (n S,); the series that are ``typical`` (S,) are weighed together.
    """

    columns: Sequence[int]
    typical: Mask
    knows: list[Mask]
    paths: list[Paths]

    @classmethod
    def of(
        cls,
        learners: Sequence[Learner],
        levels: FormLevels,
        whole: Panel,
        columns: Sequence[int],
        h: int,
        size: int,
    ) -> Drawn:
        """Draw before each of these columns, which are learned on the way."""
        exogenous = extend_columns(whole, h)
        drawn = cls(columns, learners[0].typical, [], [])
        for learner in learners:
            start = learner.find_origins(levels[learner.form], columns, exogenous, h)
            drawn.knows.append(start.has_enough_rows)
            drawn.paths.append(join_paths(learner.draw_paths_from(start, size)))
        return drawn

    def part(self, columns: Sequence[int]) -> Drawn:
        """The same before some of the columns."""
        n_series = len(self.typical)
        at = np.searchsorted(self.columns, columns)
        rows = (at[:, None] * n_series + np.arange(n_series)).reshape(-1)
        knows = [known[rows] for known in self.knows]
        return Drawn(columns, self.typical, knows, [path.part(rows) for path in self.paths])

    def add_to(self, trials: Trials) -> None:
        """Have trials of these columns, if there are any."""
        if self.columns:
            for number, (knows, path) in enumerate(zip(self.knows, self.paths, strict=True)):
                trials.add(number, self.columns, knows, path)

    def mix(self, scores: TrialScores, panel: Panel) -> Marginals:
        """The mixtures of all forms, weighed by scores."""
        n_series = len(self.typical)
        usable = find_usable(self.knows, [[path] for path in self.paths])
        usable = usable.reshape(len(self.paths), len(self.columns), -1)
        shares, factors = _weigh(scores, usable, self.typical)
        counted = find_counted(shares)
        loans = [
            find_loan(panel.values[:, : self.columns[row]], series, self.typical).later(
                row * n_series
            )
            for row, series in np.argwhere(~usable.any(axis=0))
        ]
        lent, shares = lend([self.paths[number] for number in counted], shares[:, counted], loans)
        return Marginals([scale_spread(path.steps, factors) for path in lent], shares)


def _weigh(scores: TrialScores, usable: Mask, typical: Mask) -> tuple[Array, Array]:
    """(n S, F) weights and (n S,) factors of the spread, where (F, n, S) forms are usable."""
    shares: list[Array] = []
    factors: list[Array] = []
    for row in range(usable.shape[1]):
        now = usable[:, row]
        if row and (now == usable[:, row - 1]).all():
            shares.append(shares[-1])
            factors.append(factors[-1])
            continue
        common = CommonScores.of(scores, now, typical)
        shares.append(common.weigh(scores, now))
        factors.append(np.full(now.shape[1], common.factor))
    return np.concatenate(shares), np.concatenate(factors)


def _find_interval_tails(level: float, h: int) -> tuple[Array, Array]:
    return np.full(h, 0.5 - 0.5 * level), np.full(h, 0.5 + 0.5 * level)


def _find_closed(whole: Panel, columns: range, h: int) -> Mask:
    """(n S, h) which steps from these columns on are known to be 0."""
    back = [
        np.broadcast_to(np.arange(1, h + 1) - whole.length + at, (len(whole), h)) for at in columns
    ]
    known = np.nan_to_num(extend_columns(whole, h))
    future = [known[:, at : at + h] for at in columns]
    found = [whole.find_closed(*each) for each in zip(future, back, strict=True)]
    return np.concatenate(found)


def _mark_inside(columns: range, whole: Panel, h: int) -> Mask:
    """(n, 1, h) which steps from these columns on are rows of the panel."""
    return (np.array(columns)[:, None] + np.arange(h) < whole.length)[:, None]
