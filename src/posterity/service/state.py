"""State of the service: an overview of all models, alarms, and metrics."""

from __future__ import annotations

import json
import logging
import math
from collections import deque
from itertools import chain, islice, pairwise
from typing import Any

import msgspec
import numpy as np
from scipy.special import betaincinv, stdtrit

from posterity.evaluation.drift import drift_periods
from posterity.evaluation.stretches import Stretches
from posterity.service.engine import Engine, Served
from posterity.service.experiments import Experiment
from posterity.service.predictors import Predictor, is_surprising
from posterity.service.store import Store
from posterity.service.writing import Record

# Stretches of time on the page, and decisions listed one by one.
STRETCHES = 60
LAST = 20
# Rewards that a mean along time is of, at least.
NEWEST = 30
# Decisions, or rows, that an overview reads: the newest.
RECENT = 5_000
# Rows of which target and prediction are drawn, and whose coverage is told.
WINDOW = 200
_DRAWN = ("at", "y", "mean", "low", "high")
_TOLD = ("at", "y", "mean", "log_score")
MINUTE = 60.0
logger = logging.getLogger("posterity.service")
# Seconds that delays are counted between: a thousandth to a month.
DELAYS = [10.0**power for power in np.arange(-3.0, 6.75, 0.5).tolist()]


def build_overview(engine: Engine) -> dict[str, Any]:
    """Return all that a page shows, of the newest decisions and rows.

    Of a model whose log holds numbers that nothing can be computed from, it is what there is of an
    empty log.
    """
    state: dict[str, list[Any]] = {"experiments": [], "predictors": []}
    for served in list(engine.models.values()):
        read, describe, place = _READERS[type(served)]
        log = read(engine.store, served)
        try:
            with np.errstate(all="raise", under="ignore"):
                described = describe(engine, served, log)
        except (ArithmeticError, ValueError) as error:
            logger.error("no overview of %r", served.name, exc_info=error)
            described = describe(engine, served, [])
        state[place].append(described)
    return {**state, "counts": dict(engine.counts), "ready": engine.ready, "at": engine.clock()}


def _read_decisions(store: Store, served: Experiment) -> list[Record]:
    after = store.find_number(served.name, RECENT)
    return list(store.read_decisions(served.name, after, RECENT))


def _experiment(engine: Engine, served: Experiment, log: list[Record]) -> dict[str, Any]:
    now = engine.clock()
    rewarded = [one for one in log if one["reward"] is not None]
    return {
        **served.describe(),
        "arms": [_arm(arm, place, log) for place, arm in enumerate(served.settings.arms)],
        "decisions": len(log),
        "rewarded": len(rewarded),
        "reward": _interval([one["reward"] for one in rewarded]),
        "rate": sum(one["at"] > now - MINUTE for one in log) / MINUTE,
        **_along(log, len(served.settings.arms)),
        "support": _support(log),
        "effective": _effective(log),
        "drift": _drift(
            [one["at"] for one in rewarded],
            [one["reward"] - np.frombuffer(one["means"])[one["arm"]] for one in rewarded],
        ),
        "last": [_reasons(served, one) for one in log[-LAST:][::-1]],
        "waits": describe_waits(served),
        **_delays(engine.store, served.name, log),
    }


def _arm(arm: str, place: int, log: list[Record]) -> dict[str, Any]:
    """Count how often an arm was picked, and sum up what it earned."""
    mine = [one["reward"] for one in log if one["arm"] == place]
    rewards = [value for value in mine if value is not None]
    sd = float(np.std(rewards, ddof=1)) if len(rewards) > 1 else None
    state = {"arm": arm, "pulls": len(mine), "rewarded": len(rewards), "sd": sd}
    return {**state, **_interval(rewards)}


def _along(log: list[Record], n_arms: int) -> dict[str, list[Any]]:
    """Return means along time, over stretches of equal numbers of decisions."""
    stretches = _split(log)
    intervals, newest = [], list[float]()
    for part in stretches:
        earned = [one["reward"] for one in part if one["reward"] is not None]
        newest = [*newest, *earned][-max(len(earned), NEWEST) :]
        intervals.append(_interval(newest))
    return {
        "starts": [part[0]["at"] for part in stretches],
        "times": [part[-1]["at"] for part in stretches],
        "traffic": [
            np.bincount([one["arm"] for one in part], minlength=n_arms).tolist()
            for part in stretches
        ],
        "propensities": [
            np.mean([np.frombuffer(one["propensities"]) for one in part], axis=0).tolist()
            for part in stretches
        ],
        "rewards": [one["mean"] for one in intervals],
        "arm_rewards": _follow_arms(stretches, n_arms),
        "lows": [one["low"] for one in intervals],
        "highs": [one["high"] for one in intervals],
        "regrets": [_mean([*filter(math.isfinite, map(_regret, part))]) for part in stretches],
    }


def _follow_arms(stretches: list[list[Record]], n_arms: int) -> list[list[float | None]]:
    """Mean of the newest rewards of each arm at the end of each stretch."""
    newest: list[deque[float]] = [deque(maxlen=NEWEST) for _ in range(n_arms)]
    means = []
    for part in stretches:
        for one in part:
            if one["reward"] is not None:
                newest[one["arm"]].append(one["reward"])
        means.append([_mean([*rewards]) for rewards in newest])
    return means


def _regret(one: Record) -> float:
    """Return a decision's expected loss against the best allowed arm, by the model's means."""
    allowed = _list_allowed(one)
    means = np.frombuffer(one["means"])[allowed]
    chances = np.frombuffer(one["propensities"])[allowed]
    return float(np.max(means) - chances @ means) if np.isfinite(means).all() else math.nan


def _list_allowed(one: Record) -> Any:
    """Return which arms (K,) a decision could pick."""
    if one["allowed"] is None:
        return np.ones(len(one["means"]) // 8, dtype=bool)
    return np.frombuffer(one["allowed"], dtype=bool)


def _support(log: list[Record]) -> float | None:
    """The smallest probability that an allowed arm was picked with."""
    chances = [np.frombuffer(one["propensities"]) for one in log]
    positive = [one[one > 0.0] for one in chances]
    return min((float(one.min()) for one in positive if one.size), default=None)


def _effective(log: list[Record]) -> float | None:
    """Return the effective number of decisions for judging a policy that picks arms uniformly.

    Kish's effective sample size of the importance weights.
    """
    chances = np.array([np.frombuffer(one["propensities"])[one["arm"]] for one in log])
    known = chances > 0.0  # and not NaN
    if not known.any():
        return None
    weights = 1.0 / (chances * [_list_allowed(one).sum() for one in log])[known]
    return float(weights.sum() ** 2 / (weights @ weights))


def _reasons(served: Experiment, one: Record) -> dict[str, Any]:
    answer = msgspec.to_builtins(served.answer(one))
    return {**answer, "at": one["at"], "reward": one["reward"]}


def _delays(store: Store, name: str, log: list[Record]) -> dict[str, Any]:
    """Seconds between a decision and its first reward: quantiles, and counts by powers of ten."""
    first_delays: dict[str, float] = {}
    decided = {one["id"]: one["at"] for one in log}
    events = islice(store.read_events(name, log[0]["learned_through"]), RECENT) if log else ()
    for one in events:
        if one["kind"] == "reward" and one["decision_id"] in decided:
            first_delays.setdefault(one["decision_id"], one["at"] - decided[one["decision_id"]])
    if not first_delays:
        return {"delays": None, "delay_counts": []}
    values = np.array(list(first_delays.values()))
    levels = (0.5, 0.9, 0.99)
    counts, _ = np.histogram(np.clip(values, DELAYS[0], DELAYS[-1]), DELAYS)
    quantiles = np.quantile(values, levels).tolist()
    return {
        "delays": {f"{level:.0%}": value for level, value in zip(levels, quantiles, strict=True)},
        "delay_edges": DELAYS,
        "delay_counts": counts.tolist(),
    }


def describe_waits(served: Experiment) -> dict[str, float] | None:
    """Seconds that the newest requests for decisions waited, since the server started."""
    levels = (0.5, 0.99, 1.0)
    if not served.waits:
        return None
    waits = np.quantile(served.waits, levels).tolist()
    return {f"{level:.0%}": value for level, value in zip(levels, waits, strict=True)}


def _read_rows(store: Store, served: Predictor) -> list[Record]:
    newest = deque(store.read_rows(served.name, max(0, served.learned_through - RECENT)), RECENT)
    return [one for one in newest if one["log_score"] is not None]


def _predictor(engine: Engine, served: Predictor, log: list[Record]) -> dict[str, Any]:
    parts = _parts(len(log))  # by rows: those of a batch have one time
    stretches = [log[part] for part in parts]
    held = [[one["low"] <= one["y"] <= one["high"] for one in part] for part in stretches]
    surprising = [
        {"id": one["row_id"], "row": place, **{name: one[name] for name in _TOLD}}
        for place, one in enumerate(log)
        if is_surprising(one)
    ]
    return {
        **served.describe(),
        "starts": [part[0]["at"] for part in stretches],
        "times": [part[-1]["at"] for part in stretches],
        "ends": [part.stop - 1 for part in parts],
        "rows": [len(part) for part in stretches],
        "errors": [
            math.sqrt(np.mean([(one["y"] - one["mean"]) ** 2 for one in part]))
            for part in stretches
        ],
        "coverage": [_share(part) for part in held],
        "recent_coverage": _share([*chain.from_iterable(held)][-WINDOW:]),
        "newest": [{name: one[name] for name in _DRAWN} for one in log[-WINDOW:]],
        "log_scores": [_mean([one["log_score"] for one in part]) for part in stretches],
        "drift": _drift([one["at"] for one in log], [one["y"] - one["mean"] for one in log]),
        "alarm": served.scores.find_alarm(served.settings.level),
        "alarms": surprising[-LAST:],
    }


def _drift(times: list[float], errors: list[float]) -> list[dict[str, float]]:
    """Find the periods in which errors were larger, by ``drift_periods`` of a stream."""
    known = [place for place, error in enumerate(errors) if math.isfinite(error)]
    if not known:
        return []
    times, error = [times[place] for place in known], np.array(errors)[known]
    parts = _parts(len(error))
    starts = [part.start for part in parts]
    rows = np.diff([*starts, len(error)])
    absolute = np.add.reduceat(np.abs(error), starts) / rows
    squared = np.sqrt(np.add.reduceat(error**2, starts) / rows)
    largest = np.maximum.reduceat(np.abs(error), starts)
    unknown = np.full(len(parts), np.nan)
    along = Stretches(
        row_end=np.cumsum(rows),
        n_rows=rows,
        n_unscored=np.zeros_like(rows),
        mae=absolute,
        rmse=squared,
        log_score=unknown,
        crps=unknown,
        coverage={},
        width={},
        max_error=largest,
    )
    return [
        {
            "start": times[one.row_start],
            "end": times[one.row_end - 1],
            "first": known[one.row_start],
            "last": known[one.row_end - 1],
            "ratio": one.ratio,
        }
        for one in drift_periods(along)
        if math.isfinite(one.ratio)
    ]


def _split(log: list[Record]) -> list[list[Record]]:
    """Split into stretches of about equal numbers of entries; those of one moment stay together."""
    changes = np.flatnonzero(np.diff([one["at"] for one in log])) + 1
    moments = np.append(changes, len(log))
    starts = moments[np.searchsorted(moments, [part.start for part in _parts(len(log))[1:]])]
    edges = np.unique([0, *starts, len(log)]).tolist()
    return [log[start:end] for start, end in pairwise(edges)]


def _parts(n: int) -> list[slice]:
    edges = np.unique(np.linspace(0, n, min(n, STRETCHES) + 1).astype(int))
    return [slice(*pair) for pair in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)]


def _interval(values: list[float]) -> dict[str, float | None]:
    """The mean, and where it lies with 95% confidence by Student's t."""
    n, mean = len(values), _mean(values)
    if n < 2 or mean is None:
        return {"mean": mean, "low": None, "high": None}
    half = float(stdtrit(n - 1, 0.975) * np.std(values, ddof=1)) / math.sqrt(n)
    return {"mean": mean, "low": mean - half, "high": mean + half}


def _share(held: list[bool]) -> dict[str, float | None]:
    """How many of n intervals held their value, and where the share lies with 95% probability.

    Beyond n the prior is uniform, so the posterior is Beta(1 + k, 1 + n - k).
    """
    n, count = len(held), sum(held)
    if not n:
        return {"n": 0, "mean": None, "low": None, "high": None}
    low, high = betaincinv(1 + count, 1 + n - count, [0.025, 0.975]).tolist()
    return {"n": n, "mean": count / n, "low": low, "high": high}


def _mean(values: list[float]) -> float | None:
    return float(np.mean(values)) if values else None


# Values of models by their names.
Named = list[tuple[str, float | None]]

# How the log of a model is read and described, and where.
_READERS: dict[type[Served], tuple[Any, Any, str]] = {
    Experiment: (_read_decisions, _experiment, "experiments"),
    Predictor: (_read_rows, _predictor, "predictors"),
}

# Scores of predictors that alarms can be set on.
_SCORES = ("rmse", "coverage", "recent_coverage", "log_score", "error_ratio", "surprising")


def find_alarms(engine: Engine) -> dict[str, str]:
    """What is unusual about the features and the intervals of which predictor."""
    predictors = engine.list_models("predictor")
    return {one.name: "; ".join(one.watch.alarms) for one in predictors if one.watch.alarms}


def format_metrics(engine: Engine) -> str:
    """Counters and gauges, as Prometheus reads them."""
    lines = []
    for name, count in engine.counts.items():
        lines += [f"# TYPE posterity_{name}_total counter", f"posterity_{name}_total {count}"]
    lines += ["# TYPE posterity_waiting gauge", f"posterity_waiting {engine.waiting}"]
    lines.append("# TYPE posterity_decision_wait_seconds gauge")
    for served in engine.list_models("experiment"):
        label = json.dumps(served.name, ensure_ascii=False)
        for level, wait in (describe_waits(served) or {}).items():
            of = f"name={label},within={json.dumps(level)}"
            lines.append(f"posterity_decision_wait_seconds{{{of}}} {wait}")
    predictors = engine.list_models("predictor")
    scores = [(one.name, one.scores.state()) for one in predictors if one.scores.n]
    for score in _SCORES:
        lines += _list_metric(score, "gauge", [(name, told[score]) for name, told in scores])
    counts: Named = [(one.name, float(one.watch.count)) for one in predictors]
    return "\n".join([*lines, *_list_metric("events_total", "counter", counts)]) + "\n"


def _list_metric(what: str, kind: str, values: Named) -> list[str]:
    """A metric of predictors, by the name of each that has a value."""
    lines = [
        f"posterity_predictor_{what}{{name={json.dumps(name, ensure_ascii=False)}}} {value}"
        for name, value in values
        if value is not None
    ]
    return [f"# TYPE posterity_predictor_{what} {kind}", *lines]
