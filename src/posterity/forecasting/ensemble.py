"""Forms that have learned the same series, and where each stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from posterity.aliases import Array, Indices, Mask
from posterity.factor.grouped import GroupBank
from posterity.forecasting import shared
from posterity.forecasting.checks import FEWEST_ROWS
from posterity.forecasting.forms import Form
from posterity.forecasting.panel import Panel
from posterity.forecasting.paths import Paths, paths
from posterity.forecasting.posterior import Posterior, Prior
from posterity.forecasting.rows import Levels, learn, learn_each, make_bank

# Values in the paths that are simulated at once.
BLOCK = 3_000_000
# Most steps between columns that are learned together, with those between.
NEAR = 16
# The number of trial for a forecast that is not one.
NO_TRIAL = -1

# The levels that each form learns; some forms learn the same.
FormLevels = Mapping[Form, Levels]
# Priors that series share, by form, and by the window they are for.
Priors = Mapping[Form, Mapping[int, Prior | None]]


@dataclass(eq=False)
class Learner:
    """One form: the triangles of all series' rows, up to some column of the panel.

    ``priors`` are those that series share, by trial: learned when a forecast first needs one, from
    the series that are ``typical`` (S,).
    """

    form: Form
    bank: GroupBank
    typical: Mask
    learned: int = 0
    priors: dict[int, Prior | None] = field(default_factory=dict)

    def copy(self) -> Learner:
        """An independent learner with the same rows."""
        return replace(self, bank=self.bank.copy(), priors=dict(self.priors))

    def learn_until(self, levels: Levels, column: int) -> None:
        """Learn the targets before ``column`` that were not yet learned."""
        if column <= self.learned:
            return
        if self.form.rows is not None:
            self.bank, self.learned = make_bank(self.form, levels), max(column - self.form.rows, 0)
        learn(self.bank, levels, self.form, self.learned, column)
        self.learned = column

    def find_origins(
        self, levels: Levels, columns: Sequence[int], exogenous: Array, h: int
    ) -> ForecastOrigin:
        """Return the state that forecasts before each of these columns start from, while learning.

        Of one column after another, as if so many series; ``exogenous`` (S, T + h, m) are the
        columns of all steps, NaN where they are not known.
        """
        known = [(bank.triangles, bank.count.copy()) for bank in self._learn_along(levels, columns)]
        at, p = np.array(columns, dtype=np.intp), self.bank.n_coefficients
        behind, end = levels.find_behind(at), np.repeat(at, self.bank.size)
        places = (end - behind)[:, None] + np.arange(h + int(behind.max(initial=0)))
        return ForecastOrigin(
            np.concatenate([triangles[:, :, : p + 1] for triangles, _ in known]),
            np.concatenate([count for _, count in known]),
            levels.find_last(end - behind - 1, self.form.length),
            levels.find_ahead(np.minimum(places, end[:, None] + h - 1), exogenous, self.form),
            levels.find_offsets(at[:, None] + np.arange(h), exogenous),
            behind,
            levels.moves.find_errors(at),
        )

    def _learn_along(self, levels: Levels, columns: Sequence[int]) -> Iterator[GroupBank]:
        """Yield banks of what is known before these columns; near ones are learned together."""
        series, apart = np.arange(self.bank.size), NEAR if self.form.rows is None else 0
        for run in np.split(np.array(columns), np.flatnonzero(np.diff(columns) > apart) + 1):
            self.learn_until(levels, column := int(run[0]))
            for some in (self.bank, *learn_each(self.bank, levels, self.form, column, run[-1])):
                after = column + some.size // len(series)
                wanted = run[(column <= run) & (run < after)] - column
                column = after
                yield some.select((wanted[:, None] * len(series) + series).reshape(-1))
            self.bank, self.learned = some.select(series - len(series)), int(run[-1])

    def find_origin(self, levels: Levels, future: Array) -> ForecastOrigin:
        """Return the state that forecasts from the last column learned start from.

        ``future`` (S, h, m) are the exogenous columns of the next steps.
        """
        exogenous = np.concatenate([levels.exogenous[:, : self.learned], future], axis=1)
        return self.find_origins(levels, [self.learned], exogenous, future.shape[1])

    def prior(self, start: ForecastOrigin, trial: int = NO_TRIAL) -> Prior | None:
        """Return the prior that series share, learned when it is first needed."""
        if self.form.shared and trial not in self.priors:
            free = self.form.n_free
            triangles, _ = start.in_units(self.form)
            which = np.flatnonzero(self.typical)  # before the first column, if there are several
            self.priors[trial] = shared.learn_prior(
                triangles[which, free:, free:], start.count[which] - free
            )
        return self.priors.get(trial)

    def paths(
        self, levels: Levels, future: Array, size: int, trial: int = NO_TRIAL
    ) -> Iterator[Paths]:
        """Paths of all series from the last column learned on, some at a time."""
        return self.draw_paths_from(self.find_origin(levels, future), size, trial)

    def draw_paths_from(
        self, start: ForecastOrigin, size: int, trial: int = NO_TRIAL
    ) -> Iterator[Paths]:
        """Paths of series that stand somewhere, some at a time."""
        form, h = self.form, start.offsets.shape[1]
        triangles, scale = start.in_units(form)
        prior = self.prior(start, trial)
        costs = size * (form.length + 3 * (h + start.behind)) / BLOCK
        for which in _split_by_cost(costs):
            posterior = Posterior.of(triangles[which], start.count[which], prior, form)
            unit = scale[which, None]
            draws, last = posterior.draws(size), start.last[which] / unit
            behind = start.behind[which]
            steps = h + int(behind.max())
            found = paths(form, draws, last, start.ahead[which, :steps], steps)
            found = found.skip(behind, h).in_units(unit)
            found = found.shift(start.offsets[which]) if start.offsets.any() else found
            errors = start.errors[which, None, None]
            yield found.add_shocks(errors.repeat(h, axis=1)) if errors.any() else found

    def coefficients(self, levels: Levels, which: Indices) -> Array:
        """(s, p) posterior means of the coefficients of some series, in the units of the levels."""
        origin, form = self.find_origin(levels, levels.exogenous[:, :0]), self.form
        triangles, scale = origin.in_units(form)
        posterior = Posterior.of(triangles[which], origin.count[which], self.prior(origin), form)
        means = posterior.coefficients() * scale[which, None]
        means[:, form.n_free : form.n_free + form.n_lags] /= scale[which, None]
        return means

    @property
    def has_enough_rows(self) -> Mask:
        """(S,) of which series there are rows enough by now."""
        return np.asarray(self.bank.count >= FEWEST_ROWS)


@dataclass(frozen=True, eq=False)
class ForecastOrigin:
    """The statistics and last values that forecasts of a form start from.

    Triangles (S, q, q) of ``count`` (S,) rows, the ``last`` levels (S, L) up to one that was
    observed, ``behind`` (S,) steps ago, and ``ahead`` (S, b + h, q), the known columns of the form
    in the steps since then, b the longest of these times; ``offsets`` (S, h) are added to the
    steps, and ``errors`` (S,) are the standard errors of their level.
    """

    triangles: Array
    count: Array
    last: Array
    ahead: Array
    offsets: Array
    behind: Indices
    errors: Array

    @property
    def has_enough_rows(self) -> Mask:
        """(S,) of which series there are rows enough."""
        return np.asarray(self.count >= FEWEST_ROWS)

    def in_units(self, form: Form) -> tuple[Array, Array]:
        """Triangles in the series' own units, and these (S,): the naive forecast's errors."""
        free = form.n_free
        squares = np.square(self.triangles[:, free:, -1]).sum(axis=1)
        scale = np.sqrt(squares / np.maximum(self.count - free, 1.0))
        scale = np.where(scale > 0.0, scale, 1.0)
        triangles = self.triangles.copy()
        triangles[:, :, free : free + form.n_lags] /= scale[:, None, None]
        triangles[:, :, -1] /= scale[:, None]
        return triangles, scale


def begin_learners(
    forms: Sequence[Form], panel: Panel, priors: Priors | None = None
) -> tuple[list[Learner], FormLevels]:
    """A learner for each form, and the levels it learns; ``priors`` that were learned elsewhere."""
    levels = make_levels(forms, panel)
    learners = [
        Learner(
            form,
            make_bank(form, levels[form]),
            panel.typical,
            priors=dict((priors or {}).get(form, {})),
        )
        for form in forms
    ]
    return learners, levels


def is_steady(panel: Panel, forms: Sequence[Form]) -> bool:
    """Whether forms learn the values of a panel as they are, whatever else comes."""
    plain = np.isfinite(panel.values).all() and not panel.columns.shape[2]
    scales = {form.scale for form in forms if form.log}
    inside = all(np.isfinite(scale.find(panel.values)).all() for scale in scales)
    return bool(plain and inside and not any(form.shared for form in forms))


def make_levels(forms: Sequence[Form], panel: Panel, first: int | None = None) -> FormLevels:
    """The levels that each form learns; those from column ``first`` on are not known before.

    They are less the effects of exogenous columns, as a form of no lags knows them. So the lags
    of a form look at what columns do not explain: a sale has no echo. A form still learns by how
    much these effects are off.
    """
    periods = sorted({form.difference for form in forms} - {0, 1})
    known_as = {form: (form.log, form.scale) for form in forms}
    plain = {
        (log, scale): Levels.of(panel, log=log, scale=scale, first=first, periods=periods)
        for log, scale in set(known_as.values())
    }
    if not panel.columns.shape[2]:
        return {form: plain[known_as[form]] for form in forms}
    known = panel.length if first is None else first
    seasons = next((form.waves for form in forms if not form.difference), ())
    simple = {form: _make_effects_form(form, seasons) for form in forms}
    levels = {own: plain[known_as[form]].with_lags(own.column_lags) for form, own in simple.items()}
    levels = {
        form: own.less_columns(_estimate_effects(own, form, known)) for form, own in levels.items()
    }
    return {form: levels[simple[form]] for form in forms}


def _make_effects_form(form: Form, seasons: tuple[tuple[float, int], ...]) -> Form:
    """The form that learns the effects of exogenous columns: beside seasons, if it has any."""
    waves = () if form.difference > 1 else seasons
    kept = {name: getattr(form, name) for name in ("log", "between", "column_lags")}
    return Form(form.difference, waves=waves, **kept)


def _estimate_effects(levels: Levels, form: Form, column: int) -> Array:
    """(S, m) posterior means of the exogenous columns' effects, from the rows before a column."""
    series = np.arange(len(levels.observed))
    learner = Learner(form, make_bank(form, levels), np.ones(len(series), dtype=bool))
    learner.learn_until(levels, column)
    first, m = form.n_free + form.n_lags, levels.columns.shape[2]
    return learner.coefficients(levels, series)[:, first : first + m]


def join_paths(parts: Iterator[Paths]) -> Paths:
    """Paths of all series from those of some at a time."""
    each = list(parts)
    early = None
    if any(one.early is not None for one in each):
        none = [np.zeros((*one.mean.shape, 0)) if one.early is None else one.early for one in each]
        early = np.concatenate(_pad_to_longest(none, axis=3))
    return Paths(
        np.concatenate([one.mean for one in each]),
        np.concatenate([one.responses for one in each]),
        np.concatenate([one.noise for one in each]),
        each[0].log,
        early,
        each[0].scale,
    )


def _pad_to_longest(arrays: Sequence[Array], axis: int) -> list[Array]:
    """Arrays with zeros at the end of an axis, so that all are as long."""
    longest = max(one.shape[axis] for one in arrays)
    return [
        np.pad(one, [(0, (longest - one.shape[axis]) * (i == axis)) for i in range(one.ndim)])
        for one in arrays
    ]


def _split_by_cost(costs: Array) -> Iterator[slice]:
    """Stretches of series that cost 1 together, or are a single one; ``costs`` (S,)."""
    first, total = 0, 0.0
    for number, cost in enumerate(costs.tolist()):
        if number > first and total + cost > 1.0:
            yield slice(first, number)
            first, total = number, 0.0
        total += cost
    if len(costs):
        yield slice(first, len(costs))
