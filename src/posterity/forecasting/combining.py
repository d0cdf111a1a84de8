"""Forms together: the forecast of all of them, by how each has forecast before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from posterity.aliases import Array, Indices, Mask
from posterity.factor.parallel import run_in_parallel
from posterity.forecasting.borrowing import Loan, lend
from posterity.forecasting.bounds import Bounds
from posterity.forecasting.clock import count_steps, place_by_clock
from posterity.forecasting.components import Explanation
from posterity.forecasting.dependence import find_correlation
from posterity.forecasting.ensemble import join_paths
from posterity.forecasting.forecast import Forecast
from posterity.forecasting.log_scale import LOGARITHMS
from posterity.forecasting.paths import Paths
from posterity.forecasting.plans import Plan
from posterity.forecasting.trials import Tried
from posterity.forecasting.weighing import WIDEST_LOG, CommonScores


def make_forecast(
    tried: Tried,
    plan: Plan,
    h: int,
    size: int,
    common: CommonScores | None = None,
    bounds: Bounds | None = None,
    loans: Sequence[Loan] = (),
    periods: Sequence[float] = (),
) -> Forecast:
    """The forecast of forms that know a whole panel, weighed by how they did when they were tried.

    ``common`` is what all series say, where these are some of them; ``bounds`` (2, S)
    are those of their values. Series with ``loans`` borrow their forecasts from others. Components
    have seasons of these ``periods``.
    """
    panel, learners, levels, scores = tried.panel, tried.learners, tried.levels, tried.scores
    found: dict[int, Paths] = {}
    steps = count_steps(panel, h)
    future = place_by_clock(plan.values, steps)

    def draw(number: int) -> None:
        learner = learners[number]
        found[number] = join_paths(learner.paths(levels[learner.form], future, size))
        if panel.single and future.shape[1] == h:  # a trial, once its outcomes are known
            tried.trials.add(number, [panel.length], learner.has_enough_rows, found[number])

    work = len(panel) * h * size * sum(learner.form.length for learner in learners)
    run_in_parallel(draw, range(len(learners)), work)
    usable = find_usable(
        [learner.has_enough_rows for learner in learners],
        ([found[number]] for number in range(len(learners))),
    )
    common = common or CommonScores.of(scores, usable, panel.typical)
    shares = common.weigh(scores, usable)
    counted = find_counted(shares)
    # Each is released once its width has changed: with many series they are large.
    paths = [found.pop(int(number)).scale_spread(common.factor) for number in counted]
    found.clear()
    correlation = find_correlation(learners, levels, shares, panel)
    paths = [
        plan.widen(
            path.at_steps(steps), levels[learners[number].form].effects[:, : future.shape[2]]
        )
        for path, number in zip(paths, counted, strict=True)
    ]
    paths, lent = lend(paths, shares[:, counted], loans)
    times = panel.calendar.stamps(panel.ends[:, None] + np.arange(1, h + 1))
    closed = panel.find_closed(plan.values, steps)
    explanation = Explanation(
        [learners[number] for number in counted],
        levels,
        plan,
        future,
        steps,
        shares[:, counted],
        common.factor,
        size,
        tuple(sorted(period for period in periods if period < panel.length)),
        closed,
    )
    return Forecast.of(
        panel.ids,
        times[0] if panel.single else times,
        [learners[number].form for number in counted],
        paths,
        lent,
        single=panel.single,
        bounds=bounds,
        shocks=correlation,
        calendar=panel.calendar,
        explanation=explanation,
        closed=closed,
    )


def compute_common_scores(tried: Tried, future: Array, size: int) -> CommonScores:
    """Compute the scores that series share, the typical ones, from paths, some at a time."""
    each = [one.paths(tried.levels[one.form], future, size) for one in tried.learners]
    known = [learner.has_enough_rows for learner in tried.learners]
    return CommonScores.of(tried.scores, find_usable(known, each), tried.panel.typical)


def find_counted(shares: Array) -> Indices:
    """Return which forms have a weight in ``shares`` (S, F); the first where none has."""
    counted = np.flatnonzero(shares.max(axis=0) > 0.0)
    return counted if len(counted) else np.zeros(1, dtype=np.intp)


def find_usable(known: Sequence[Mask], each: Iterable[Iterable[Paths]]) -> Mask:
    """(F, S) whether a form says something of a series, and in logarithms something narrow.

    Of series that each form has rows enough of, ``known`` (S,), and of its paths.
    """
    usable, narrow = [], []
    for enough, parts in zip(known, each, strict=True):
        found = [
            (
                np.isfinite(path.mean).all(axis=(1, 2)),
                (not path.log)
                | (path.scale != LOGARITHMS)
                | (_find_widest_step(path) <= WIDEST_LOG),
            )
            for path in parts
        ]
        some = enough & np.concatenate([one for one, _ in found])
        usable.append(some)
        narrow.append(some & np.concatenate([one for _, one in found]))
    best = np.array(narrow)
    return np.where(best.any(axis=0), best, np.array(usable))


# ---- inner ---------------------------------------------------------------------------------------


def _find_widest_step(path: Paths) -> Array:
    """(S,) the largest standard deviation at a step, within draws or between them."""
    with np.errstate(over="ignore", invalid="ignore"):
        between = path.mean.std(axis=1).max(axis=1)
    return np.maximum(path.sd.max(axis=(1, 2)), between)
