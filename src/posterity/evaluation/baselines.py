"""Baselines that any model must beat: the mean so far, the last value, and that of the season."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from posterity import kernel
from posterity.aliases import Array, Document
from posterity.distributions import StudentT
from posterity.evaluation import _scores as column
from posterity.evaluation._row_scores import row_scores
from posterity.evaluation._scores import Column

# Rows; absolute and squared errors of the baseline, then of the model; rows that both scored; log
# scores and CRPS of the baseline, then of the model.
N_SUMS = 10
# Logs of exposures whose squares are floats.
_LOGS = -300.0, 300.0


@dataclass(frozen=True)
class Baseline:
    """A forecast without features, scored on the same rows as the model.

    Its distribution is Student-t: around the mean so far with the spread so far (the prediction of
    a normal sample with unknown mean and variance); or around the last value, or that one season
    ago, with the root mean square of such steps so far. Where counts come from exposures, values
    are rates, and forecasts these times the exposure; the mean so far is the sum of the counts over
    that of the exposures, and the variance of a count grows with its exposure.

    Attributes
    ----------
    name : str
        "mean so far", "last value", or "value one season ago".
    n_rows : int
        Rows for which it had a value.
    mae, rmse : float
        Its errors, in units of y.
    model_mae, model_rmse : float
        The model's in the same rows.
    n_scored : int
        Rows for which both had a distribution with a density and a CRPS.
    log_score, crps : float
        Its mean scores in these rows: nats a row, and units of y.
    model_log_score, model_crps : float
        The model's in the same rows.
    """

    name: str
    n_rows: int
    mae: float
    rmse: float
    model_mae: float
    model_rmse: float
    n_scored: int
    log_score: float
    crps: float
    model_log_score: float
    model_crps: float

    @property
    def skill(self) -> float:
        """1 - model_mae / mae: 1 is perfect, 0 no better than the baseline, negative is worse."""
        return _skill(self.model_mae, self.mae)

    @property
    def skill_crps(self) -> float:
        """1 - model_crps / crps: the same of whole distributions.

        Gneiting and Raftery (2007), J. Am. Stat. Assoc. 102, 359-378, section 2.3.
        """
        return _skill(self.model_crps, self.crps)

    @property
    def log_score_gain(self) -> float:
        """model_log_score - log_score, in nats a row: above 0 is better than the baseline."""
        return self.model_log_score - self.log_score


class _RunningMean:
    """Forecasts by the mean and the spread of the targets so far."""

    def __init__(self, newest: int) -> None:
        self.reach = self.lag = newest
        self._sums = np.zeros(3)

    def forecasts(self, known: Array, exposures: Array, seen: int, m: int) -> StudentT:
        """Forecasts of the last m rows, `seen` rows having come before them and those without.

        `known` and `exposures` end in those rows; here all exposures are 1.
        """
        news = _before(known, self.lag, m)
        return StudentT(*kernel.running_mean(news, self._sums))


class _RunningRate:
    """Forecasts by the rate so far, times the exposure.

    The regression ``y / sqrt(e) = rate sqrt(e) + noise`` of rates ``y / e`` of exposure e; where
    all exposures are 1 it is :class:`_RunningMean`.
    """

    def __init__(self, newest: int) -> None:
        self.reach = self.lag = newest
        self._sums = np.zeros((4, 1))  # rows, exposures, counts, and their squares over exposures

    def forecasts(self, known: Array, exposures: Array, seen: int, m: int) -> StudentT:
        """As above, of rates and whatever exposures."""
        rate, exposure = (_before(one, self.lag, m) for one in (known, exposures))
        terms = np.stack([np.ones(len(rate)), exposure, rate * exposure, rate**2 * exposure])
        sums = np.cumsum(np.hstack([self._sums, terms]), axis=1)[:, 1:]
        self._sums = sums[:, -1:]
        count, total, events, squares = sums
        with np.errstate(divide="ignore", invalid="ignore"):
            spread = np.maximum(squares - events**2 / total, 0.0) / (count - 1.0)
        spread[count == 1.0] = math.inf
        ahead = exposures[len(exposures) - m :]
        scale = np.sqrt(spread * (ahead + ahead**2 / total))
        return StudentT(count - 1.0, events / total * ahead, scale)


class _LastValue:
    """Forecasts by the value `lag` rows ago, with the size of steps over so many rows so far."""

    def __init__(self, lag: int, newest: int) -> None:
        self.reach = lag + newest
        self.lag, self._newest = lag, newest
        self._sums = np.zeros(2)

    def forecasts(self, known: Array, exposures: Array, seen: int, m: int) -> StudentT:
        """As above."""
        ahead = exposures[len(exposures) - m :]
        loc = _before(known, self.lag, m) * ahead
        missing = max(self.reach - seen, 0) - max(self.lag - seen, 0)
        if missing >= m:
            return StudentT(0.0, loc, math.inf)
        some = m - missing
        steps = _before(known, self._newest, some) - _before(known, self.reach, some)
        df, scale = kernel.running_steps(steps, self._sums)
        if missing:
            df = np.concatenate([np.zeros(missing), df])
            scale = np.concatenate([np.full(missing, math.inf), scale])
        return StudentT(df, loc, scale * ahead)


def _before(known: Array, lag: int, n: int) -> Array:
    """Return the value `lag` rows before each of the last n rows."""
    end = len(known) - lag
    return np.ascontiguousarray(known[end - n : end])


class BaselineLedger:
    """Runs the baselines along a stream: memory for as many targets as the longest reach."""

    def __init__(self, delay: int, period: int | None) -> None:
        # The newest target known is that of the row before, or as many more ago as there is delay.
        newest = delay + 1
        self._runs: Document = {
            "mean so far": _RunningMean(newest),
            "last value": _LastValue(newest, newest),
        }
        if period is not None:
            # The newest row of the same season whose target is known.
            lag = period * (delay // period + 1)
            self._runs["value one season ago"] = _LastValue(lag, newest)
        self._reach = max(run.reach for run in self._runs.values())
        self._rate = _RunningRate(newest)
        self._recent = np.empty((2, 0))
        self._sums = {name: np.zeros(N_SUMS) for name in self._runs}
        self._seen = 0

    def add(self, y: Array, columns: list[Column], offsets: Array | None = None) -> None:
        """Score the next rows, whose targets are `y` and whose scores by the model `columns`.

        ``offsets`` (n,) are the logs of the exposures of counts.
        """
        exposures = np.ones(len(y)) if offsets is None else np.exp(np.clip(offsets, *_LOGS))
        recent = np.hstack([self._recent, [y / exposures, exposures]])
        known, all_exposures = np.ascontiguousarray(recent)
        runs = self._runs if offsets is None else self._runs | {"mean so far": self._rate}
        with np.errstate(over="ignore", invalid="ignore"):
            for name, run in runs.items():
                first = max(run.lag - self._seen, 0)
                if first < len(y):
                    forecasts = run.forecasts(known, all_exposures, self._seen, len(y) - first)
                    rows = columns if first == 0 else [each[first:] for each in columns]
                    self._sums[name] += _sums(forecasts, y[first:], rows)
        self._recent = recent[:, -self._reach :]
        self._seen += len(y)

    def results(self) -> dict[str, Baseline]:
        """Every baseline that could predict some row."""
        return {name: _baseline(name, sums) for name, sums in self._sums.items() if sums[0] > 0}


def _sums(forecasts: StudentT, y: Array, columns: list[Column]) -> Array:
    scores = row_scores(forecasts, y, ())
    errors = [
        len(y),
        np.abs(scores.error).sum(),
        np.einsum("i,i", scores.error, scores.error),  # not BLAS: its threads cost more
        columns[column.ABSOLUTE].sum(),
        columns[column.SQUARED].sum(),
    ]
    has_density, has_crps = columns[column.WITH_DENSITY], columns[column.WITH_CRPS]
    four = [scores.log_score, scores.crps, columns[column.LOG_SCORE], columns[column.CRPS]]
    count, sums = len(y), [values.sum() for values in four]
    if not (math.isfinite(sums[0] + sums[1]) and has_density.all() and has_crps.all()):
        both = np.logical_and(has_density, has_crps)
        both &= np.isfinite(scores.log_score) & np.isfinite(scores.crps)
        count, sums = int(both.sum()), [values[both].sum() for values in four]
    return np.array([*errors, count, *sums], dtype=np.float64)


def _baseline(name: str, sums: Array) -> Baseline:
    rows, absolute, squared, model_absolute, model_squared, scored, *scores = sums.tolist()
    return Baseline(
        name,
        int(rows),
        absolute / rows,
        math.sqrt(squared / rows),
        model_absolute / rows,
        math.sqrt(model_squared / rows),
        int(scored),
        *(score / scored if scored else math.nan for score in scores),
    )


def _skill(of_model: float, of_baseline: float) -> float:
    return 1.0 - of_model / of_baseline if 0.0 < of_baseline < math.inf else math.nan
