"""Forms that have learned the same series, and what each has been worth at the horizon."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from posterity.factor.grouped import GroupBank
from posterity.forecasting import shared
from posterity.forecasting.checks import FEWEST_ROWS
from posterity.forecasting.forms import Form
from posterity.forecasting.marginals import crps_of_one
from posterity.forecasting.panel import Panel
from posterity.forecasting.paths import Paths, paths
from posterity.forecasting.posterior import Posterior, Prior
from posterity.forecasting.rows import Levels, learn, learn_each, new_bank

Array = NDArray[np.float64]

# Windows that forms are weighed on, the last of each series; more where there are few series.
WINDOWS, MOST_WINDOWS, FEW_SERIES = 3, 10, 10
# Numbers in the paths that are made at once.
BLOCK = 3_000_000
# The occasion of a forecast that is no trial.
NOW = -1

# Priors that series share, by form, and by the window they are for.
Priors = Mapping[Form, Mapping[int, Prior | None]]


@dataclass(eq=False)
class Learner:
    """One form: the triangles of all series' rows, up to some column of the panel.

    ``priors`` are those that series share, by occasion: learned when a forecast first needs one.
    """

    form: Form
    bank: GroupBank
    learned: int = 0
    priors: dict[int, Prior | None] = field(default_factory=dict)

    def learn_until(self, levels: Levels, column: int) -> None:
        """Learn the targets before ``column`` that were not yet learned."""
        if column <= self.learned:
            return
        if self.form.rows is not None:
            self.bank, self.learned = new_bank(self.form, levels), max(column - self.form.rows, 0)
        learn(self.bank, levels, self.form, self.learned, column)
        self.learned = column

    def standings(
        self, levels: Levels, columns: range, future: Callable[[int], Array]
    ) -> Iterator[ArmSummaries]:
        """Where it stands right before each of these columns, learning them on the way.

        ``future`` says the exogenous columns (S, h, m) from a column on.
        """
        self.learn_until(levels, columns.start)
        if self.form.rows is not None:
            for column in columns:
                self.learn_until(levels, column)
                yield self.standing(levels, future(column))
            return
        one_by_one = learn_each(self.bank, levels, self.form, columns.start, columns.stop - 1)
        for column in columns:
            if column > columns.start:
                self.bank, self.learned = next(one_by_one), column
            yield self.standing(levels, future(column))

    def standing(self, levels: Levels, future: Array) -> ArmSummaries:
        """What forecasts from the last column learned on start from.

        ``future`` (S, h, m) are the exogenous columns of the next steps.
        """
        known = levels.until(self.learned)
        p = self.bank.n_coefficients
        return ArmSummaries(
            self.bank.triangles[:, :, : p + 1],
            self.bank.count.copy(),
            known.last(self.form.length),
            known.ahead(future, self.form.difference),
        )

    def prior(self, start: ArmSummaries, occasion: int = NOW) -> Prior | None:
        """What series share, learned when it is first asked for."""
        if self.form.shared and occasion not in self.priors:
            triangles, _ = start.in_units(self.form.window.shape[1])
            self.priors[occasion] = shared.learned(triangles, start.count)
        return self.priors.get(occasion)

    def paths(
        self, levels: Levels, future: Array, size: int, occasion: int = NOW
    ) -> Iterator[Paths]:
        """Paths of all series from the last column learned on, some at a time."""
        return self.paths_from(self.standing(levels, future), size, occasion)

    def paths_from(self, start: ArmSummaries, size: int, occasion: int = NOW) -> Iterator[Paths]:
        """Paths of series that stand somewhere, some at a time."""
        form, h = self.form, start.ahead.shape[1]
        triangles, scale = start.in_units(form.window.shape[1])
        prior = self.prior(start, occasion)
        share = max(1, BLOCK // (size * (form.length + 3 * h)))
        for first in range(0, len(triangles), share):
            which = slice(first, first + share)
            posterior = Posterior.of(triangles[which], start.count[which], prior)
            unit = scale[which, None]
            draws, last = posterior.draws(size), start.last[which] / unit
            yield paths(form, draws, last, start.ahead[which], h).in_units(unit)

    @property
    def knows(self) -> NDArray[np.bool_]:
        """(S,) of which series there are rows enough by now."""
        return np.asarray(self.bank.count >= FEWEST_ROWS)


@dataclass(frozen=True, eq=False)
class ArmSummaries:
    """Where forecasts of a form start.

    Triangles (S, q, q) of ``count`` (S,) rows, the ``last`` levels (S, L), and ``ahead`` (S, h, m),
    the exogenous columns of the next steps as the form takes them.
    """

    triangles: Array
    count: Array
    last: Array
    ahead: Array

    @classmethod
    def stacked(cls, some: Sequence[ArmSummaries]) -> ArmSummaries:
        """The same of series at several times, as if they were so many series."""
        return cls(
            np.concatenate([one.triangles for one in some]),
            np.concatenate([one.count for one in some]),
            np.concatenate([one.last for one in some]),
            np.concatenate([one.ahead for one in some]),
        )

    @property
    def knows(self) -> NDArray[np.bool_]:
        """(S,) of which series there are rows enough."""
        return np.asarray(self.count >= FEWEST_ROWS)

    def in_units(self, lags: int) -> tuple[Array, Array]:
        """Triangles in the series' own units, and these (S,): the naive forecast's errors."""
        squares = np.square(self.triangles[:, :, -1]).sum(axis=1)
        scale = np.sqrt(squares / np.maximum(self.count, 1.0))
        scale = np.where(scale > 0.0, scale, 1.0)
        triangles = self.triangles.copy()
        triangles[:, :, :lags] /= scale[:, None, None]
        triangles[:, :, -1] /= scale[:, None]
        return triangles, scale


@dataclass(frozen=True, eq=False)
class TrialScores:
    """What forms said of the last windows of a panel before they learned them.

    ``mean``, ``sd`` (F, S, W, h): of the one normal nearest to a forecast, in logarithms where
    ``log`` (F,); ``crps`` (F, S, W, h), NaN where nothing was forecast or observed; ``outcomes``
    (S, W, h).
    """

    mean: Array
    sd: Array
    crps: Array
    outcomes: Array
    log: NDArray[np.bool_]

    @property
    def n_windows(self) -> int:
        """W."""
        return self.crps.shape[2]

    def without(self, window: int) -> TrialScores:
        """What was said of the other windows."""
        some = np.arange(self.n_windows) != window
        return TrialScores(
            self.mean[:, :, some],
            self.sd[:, :, some],
            self.crps[:, :, some],
            self.outcomes[:, some],
            self.log,
        )


def begun(
    forms: Sequence[Form], panel: Panel, priors: Priors | None = None
) -> tuple[list[Learner], dict[bool, Levels]]:
    """A learner for each form, and the levels it learns; ``priors`` that were learned elsewhere."""
    levels = {log: Levels.of(panel, log=log) for log in {form.log for form in forms}}
    learners = [
        Learner(form, new_bank(form, levels[form.log]), 0, dict((priors or {}).get(form, {})))
        for form in forms
    ]
    return learners, levels


def tried(
    learners: list[Learner],
    levels: dict[bool, Levels],
    panel: Panel,
    h: int,
    size: int,
    n_series: int | None = None,
) -> TrialScores:
    """Have learners learn the panel, and forecast its last windows of ``h`` steps on the way.

    Series may be some of ``n_series`` that are forecast.
    """
    origins, h = windows(panel.length, h, n_series or len(panel))
    trials = Trials.of(learners, h)
    trials.run(learners, levels, panel, origins, size)
    for learner in learners:
        learner.learn_until(levels[learner.form.log], panel.length)
    return trials.scores(panel, origins, h)


@dataclass(frozen=True, eq=False)
class Trials:
    """What forms, in logarithms where ``log`` (F,), said of the next ``h`` steps, by column.

    ``said`` has (3, F, S, h) for each column right before which they were tried: mean, sd and crps
    of :class:`TrialScores`.
    """

    log: NDArray[np.bool_]
    h: int
    said: dict[int, Array] = field(default_factory=dict)

    @classmethod
    def of(cls, learners: Sequence[Learner], h: int) -> Trials:
        """Nothing said yet."""
        return cls(np.array([learner.form.log for learner in learners]), h)

    def run(
        self,
        learners: Sequence[Learner],
        levels: dict[bool, Levels],
        panel: Panel,
        origins: Sequence[int],
        size: int,
    ) -> None:
        """Have learners learn up to each of these columns, and forecast from there."""
        for number, learner in enumerate(learners):
            waiting = []
            for window, origin in enumerate(origins):
                own = levels[learner.form.log]
                learner.learn_until(own, origin)
                waiting.append(learner.standing(own, columns_from(panel, origin, self.h)))
                # Of few series all windows are forecast together, as if they were more series.
                if learner.form.shared or len(panel) > FEW_SERIES or origin == origins[-1]:
                    start = ArmSummaries.stacked(waiting)
                    found = together(learner.paths_from(start, size, window))
                    before = list(origins[window + 1 - len(waiting) : window + 1])
                    self.add(number, before, start.knows, found, panel)
                    waiting = []

    def add(
        self,
        number: int,
        columns: Sequence[int],
        knows: NDArray[np.bool_],
        found: Paths,
        panel: Panel,
    ) -> None:
        """Paths (n S, K, h) of a form from n columns on, and how they did."""
        y = outcomes_from(panel, columns, self.h).swapaxes(0, 1).reshape(-1, self.h)
        mean, sd = found.steps.matched()
        known = knows[:, None]
        crps = crps_of_one(mean, sd, np.where(known, y, np.nan), log=found.log)
        each = np.stack([np.where(known, mean, np.nan), np.where(known, sd, np.nan), crps])
        for column, one in zip(columns, np.split(each, len(columns), axis=1), strict=True):
            if column not in self.said:
                self.said[column] = np.full((3, len(self.log), *one.shape[1:]), np.nan)
            self.said[column][:, number] = one

    def scores(self, panel: Panel, origins: Sequence[int], h: int) -> TrialScores:
        """What was said of the first ``h`` steps from these columns on."""
        shape = (3, len(self.log), len(panel), 0, h)
        some = [self.said[origin][..., None, :h] for origin in origins]
        mean, sd, crps = np.concatenate([np.empty(shape), *some], axis=3)
        return TrialScores(mean, sd, crps, outcomes_from(panel, origins, h), self.log)


def columns_from(panel: Panel, column: int, h: int) -> Array:
    """(S, h, m) exogenous columns from a column on; NaN beyond the end."""
    known = panel.columns[:, column : column + h]
    short = h - known.shape[1]
    if not short:
        return known
    return np.pad(known, ((0, 0), (0, short), (0, 0)), constant_values=np.nan)


def outcomes_from(panel: Panel, columns: Sequence[int], h: int) -> Array:
    """(S, n, h) values from each of these columns on; NaN beyond the end."""
    padded = np.pad(panel.values, ((0, 0), (0, h)), constant_values=np.nan)
    return padded[:, np.asarray(columns, dtype=np.intp)[:, None] + np.arange(h)]


def windows(length: int, h: int, n_series: int) -> tuple[list[int], int]:
    """Columns right before which forms forecast, and how many steps, at most a quarter of all."""
    h = min(h, max(length // 4, 1))
    most = WINDOWS if n_series > FEW_SERIES else MOST_WINDOWS
    return [length - h * k for k in range(most, 0, -1) if h * k <= length // 2], h


def together(parts: Iterator[Paths]) -> Paths:
    """Paths of all series from those of some at a time."""
    each = list(parts)
    return Paths(
        np.concatenate([one.mean for one in each]),
        np.concatenate([one.responses for one in each]),
        np.concatenate([one.noise for one in each]),
        each[0].log,
    )
