"""Trial forecasts: predictions of past windows by each form, and their scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from posterity.aliases import Array, Mask
from posterity.factor.parallel import run_in_parallel
from posterity.forecasting.choosing import LEVEL_ROWS
from posterity.forecasting.ensemble import (
    FormLevels,
    Learner,
    Priors,
    begin_learners,
    is_steady,
    join_paths,
)
from posterity.forecasting.forms import Form
from posterity.forecasting.log_scale import LogScale
from posterity.forecasting.marginals import compute_normal_crps
from posterity.forecasting.panel import Panel
from posterity.forecasting.paths import Paths
from posterity.forecasting.returning import compute_level_evidence

# Windows that forms are scored on, the last of each series; most windows, with few series.
WINDOWS, MOST_WINDOWS, FEW_SERIES = 3, 10, 10
# Draws in a window with many series.
FEW_DRAWS = 8
# Log odds of a level in short series before their values speak, and where these speak against it.
LEVEL_ODDS, NEVER = -np.log(3.0), -50.0


@dataclass(frozen=True, eq=False)
class TrialScores:
    """Predictions of the last windows of a panel before these were learned, and their scores.

    ``mean``, ``sd`` (F, S, W, h): of the one normal nearest to a forecast, in logarithms where
    ``log`` (F,), on the ``scales`` of the forms; ``crps`` (F, S, W, h), NaN where nothing was
    forecast or observed, and ``totals``, that of sums of the first steps; ``outcomes`` (S, W, h).
    ``log_odds`` (F, S) of forms by the values themselves, beside their scores; None where these
    say all.
    """

    mean: Array
    sd: Array
    crps: Array
    totals: Array
    outcomes: Array
    log: Mask
    log_odds: Array | None = None
    scales: Sequence[LogScale] = ()

    @property
    def n_windows(self) -> int:
        """W."""
        return self.crps.shape[2]

    def in_values(self) -> tuple[Array, Array]:
        """(F, S, W, h) means and sds in values: logarithms are taken for these by their slope."""
        mean, sd = self.mean.copy(), self.sd.copy()
        for form in np.flatnonzero(self.log).tolist():
            mean[form] = self.scales[form].values(mean[form])
            sd[form] *= self.scales[form].slopes(mean[form])
        return mean, sd

    def standardize_outcomes(self) -> Array:
        """(F, S, W, h) outcomes as standard normals, by what was forecast."""
        found = np.repeat(self.outcomes[None], len(self.mean), axis=0)
        for form in np.flatnonzero(self.log).tolist():
            found[form] = self.scales[form].find(found[form])
        return (found - self.mean) / self.sd

    def of_series(self, some: slice | Mask) -> TrialScores:
        """Return the scores of some of the series."""
        return self._select(some, slice(None))

    def without(self, window: int) -> TrialScores:
        """Return the scores of all windows but one."""
        return self._select(slice(None), np.arange(self.n_windows) != window)

    def _select(self, series: slice | Mask, windows: slice | Mask) -> TrialScores:
        forecasts = (self.mean, self.sd, self.crps, self.totals)
        mean, sd, crps, totals = (some[:, series, windows] for some in forecasts)
        odds = None if self.log_odds is None else self.log_odds[:, series]
        outcomes = self.outcomes[series, windows]
        return replace(
            self, mean=mean, sd=sd, crps=crps, totals=totals, outcomes=outcomes, log_odds=odds
        )


@dataclass(frozen=True, eq=False)
class Tried:
    """Learners of all rows of a panel, the levels that these learn, and how forms did before."""

    panel: Panel
    learners: list[Learner]
    levels: FormLevels
    trials: Trials
    scores: TrialScores

    def begins(self, panel: Panel, forms: Sequence[Form], h: int) -> bool:
        """Whether what was learned and tried is that of the first rows of this panel, too."""
        known = self.panel
        return (
            panel.single
            and is_steady(panel, forms)
            and (self.trials.forms, self.trials.h) == (tuple(forms), h)
            and np.array_equal(known.values, panel.values[:, : known.length])
            and bool(panel.ends[0] - panel.length == known.ends[0] - known.length)
        )


def run_trials(
    forms: Sequence[Form],
    panel: Panel,
    h: int,
    size: int,
    among: Panel | None = None,
    priors: Priors | None = None,
    before: Tried | None = None,
) -> Tried:
    """Have forms learn the panel, and forecast its last windows of ``h`` steps on the way.

    Series may be some of those of a panel ``among`` which they are forecast, with ``priors`` that
    were learned there. What was tried ``before``, on fewer rows of the same series, is kept.
    """
    typical = (among or panel).select_typical()
    back, steps = choose_windows(int(typical.lengths.max()), h, len(typical))
    origins = [panel.length - one for one in back]
    learners, levels = begin_learners(forms, panel, priors)
    trials = Trials.of(forms, h)
    if before is not None and before.begins(panel, forms, h):
        learners = [learner.copy() for learner in before.learners]
        kept = {at: one for at, one in before.trials.of_columns.items() if at >= origins[0]}
        trials.of_columns.update(kept)
    missing = [origin for origin in origins if origin not in trials.of_columns]
    if missing:
        if missing[0] < learners[0].learned:
            learners, _ = begin_learners(forms, panel)
        trials.run(learners, levels, panel, missing, choose_draws(size, len(typical)))
    for learner in learners:
        learner.learn_until(levels[learner.form], panel.length)
    return Tried(panel, learners, levels, trials, trials.scores(panel, origins, steps))


@dataclass(frozen=True, eq=False)
class Trials:
    """Trial forecasts of the next ``h`` steps of forms, by column.

    ``of_columns`` has (4, F, S, h) for each column right before which they were tried: of the
    normals nearest to steps and to their sums means and sds, as in :class:`TrialScores`.
    """

    forms: tuple[Form, ...]
    h: int
    of_columns: dict[int, Array] = field(default_factory=dict)

    @classmethod
    def of(cls, forms: Sequence[Form], h: int) -> Trials:
        """Return trials without any prediction."""
        return cls(tuple(forms), h)

    def run(
        self,
        learners: Sequence[Learner],
        levels: FormLevels,
        panel: Panel,
        origins: Sequence[int],
        size: int,
    ) -> None:
        """Have learners learn up to each of these columns, and forecast from there."""
        for column in origins:
            self._make_room(column, len(panel))
        exogenous = extend_columns(panel, self.h)

        def run_one(number: int) -> None:
            learner = learners[number]
            # With few series all windows are forecast together, as if they were more series.
            apart = learner.form.shared or len(panel) > FEW_SERIES
            for window, some in enumerate([[one] for one in origins] if apart else [origins]):
                start = learner.find_origins(levels[learner.form], some, exogenous, self.h)
                found = join_paths(learner.draw_paths_from(start, size, window))
                self.add(number, some, start.has_enough_rows, found)

        numbers = size * self.h * len(panel) * len(origins)
        work = sum(numbers * learner.form.length for learner in learners)
        run_in_parallel(run_one, range(len(learners)), work)

    def add(self, number: int, columns: Sequence[int], knows: Mask, found: Paths) -> None:
        """Paths (n S, K, h) of a form from n columns on, of series of which it ``knows`` enough."""
        normals = np.stack([*found.steps.matched(), *found.totals.matched()])
        normals[:, ~knows] = np.nan
        for column, one in zip(columns, np.split(normals, len(columns), axis=1), strict=True):
            self._make_room(column, one.shape[1])[:, number] = one

    def _make_room(self, column: int, n_series: int) -> Array:
        shape = (4, len(self.forms), n_series, self.h)
        return self.of_columns.setdefault(column, np.full(shape, np.nan))

    def scores(self, panel: Panel, origins: Sequence[int], h: int) -> TrialScores:
        """Return the scores of the first ``h`` steps after each of these columns."""
        shape = (4, len(self.forms), len(panel), 0, h)
        some = [self.of_columns[origin][..., None, :h] for origin in origins]
        mean, sd, total, total_sd = np.concatenate([np.empty(shape), *some], axis=3)
        outcomes = get_outcomes_from(panel.values, origins, h)
        log = np.array([form.log for form in self.forms])
        scales = [form.scale for form in self.forms]
        crps, kinds = np.empty(mean.shape), list(zip(log.tolist(), scales, strict=True))
        for is_log, scale in dict.fromkeys(kinds):
            which = np.array([kind == (is_log, scale) for kind in kinds])
            of_these = mean[which], sd[which], outcomes
            crps[which] = compute_normal_crps(*of_these, log=is_log, scale=scale)
        totals = compute_normal_crps(total, total_sd, np.cumsum(outcomes, axis=2), log=False)
        odds = compute_log_odds(self.forms, panel)
        return TrialScores(mean, sd, crps, totals, outcomes, log, odds, scales)


def compute_log_odds(forms: Sequence[Form], panel: Panel) -> Array:
    """(F, S) log odds of a level, for forms of nothing else; 0 of others, and in long series.

    Few windows hardly tell a level from a slow walk, and the values tell more.
    """
    odds = np.zeros((len(forms), len(panel)))
    short = panel.observed < LEVEL_ROWS
    for number, form in enumerate(forms):
        if form.is_level and short.any():
            values = panel.values[short]
            evidence = compute_level_evidence(form.scale.find(values) if form.log else values)
            odds[number, short] = np.where(evidence < 0.0, NEVER, evidence + LEVEL_ODDS)
    return odds


def extend_columns(panel: Panel, h: int) -> Array:
    """(S, T + h, m) exogenous columns; NaN beyond the end."""
    return np.pad(panel.columns, ((0, 0), (0, h), (0, 0)), constant_values=np.nan)


def get_outcomes_from(values: Array, columns: Sequence[int], h: int) -> Array:
    """(S, n, h) values from each of these columns on; NaN beyond the end."""
    padded = np.pad(values, ((0, 0), (0, h)), constant_values=np.nan)
    return padded[:, np.asarray(columns, dtype=np.intp)[:, None] + np.arange(h)]


def choose_draws(size: int, n_series: int) -> int:
    """Return the number of draws for each window, given ``size`` draws for a forecast."""
    return size if n_series <= FEW_SERIES else min(size, FEW_DRAWS)


def choose_windows(length: int, h: int, n_series: int) -> tuple[list[int], int]:
    """How far back forms forecast from, and how many steps, at most a quarter of all."""
    h = min(h, max(length // 4, 1))
    most = WINDOWS if n_series > FEW_SERIES else MOST_WINDOWS
    return [h * k for k in range(most, 0, -1) if h * k <= length // 2], h
