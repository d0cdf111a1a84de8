"""What a service tells of itself: the state of a model, an overview of all, metrics."""

from __future__ import annotations

import json
import math
from collections import deque
from itertools import islice
from typing import Any

import numpy as np

from posterity.service.engine import Engine, Served
from posterity.service.experiments import Experiment
from posterity.service.predictors import Predictor
from posterity.service.store import Record, Store

# Stretches that a course along time is told in, and decisions that are told one by one.
STRETCHES = 60
LAST = 20
# Decisions, or rows, that an overview reads: the newest.
RECENT = 5_000


def state_of(served: Served) -> dict[str, Any]:
    """Settings and what was learned, in short."""
    told: dict[str, Any] = {
        "name": served.name,
        "kind": served.kind,
        "version": served.version,
        "settings": json_of(served.settings),
        "learned_through": served.learned_through,
    }
    if isinstance(served, Predictor):
        told["scores"] = served.scores.state()
    return told


def json_of(settings: Any) -> Any:
    """Settings as JSON has them."""
    import msgspec

    return msgspec.to_builtins(settings)


def overview(engine: Engine) -> dict[str, Any]:
    """All that a page shows, of the newest decisions and rows."""
    told: dict[str, list[Any]] = {"experiments": [], "predictors": []}
    for served in list(engine.models.values()):
        if isinstance(served, Experiment):
            told["experiments"].append(_experiment(engine.store, served))
        else:
            told["predictors"].append(_predictor(engine.store, served))
    return {**told, "counts": dict(engine.counts), "ready": engine.ready, "at": engine.clock()}


def _experiment(store: Store, served: Experiment) -> dict[str, Any]:
    newest = store.last_decisions(served.name, RECENT)
    after = newest[-1]["seq"] - 1 if newest else 0
    log = list(store.decisions(served.name, after, RECENT))
    arms = served.settings.arms
    rewards: list[list[float]] = [[] for _ in arms]
    for one in log:
        if one["reward"] is not None:
            rewards[one["arm"]].append(one["reward"])
    stretches = [log[part] for part in _parts(len(log))]
    chances = [
        np.mean([np.frombuffer(one["propensities"]) for one in part], axis=0) for part in stretches
    ]
    earned = [[one["reward"] for one in part if one["reward"] is not None] for part in stretches]
    return {
        **state_of(served),
        "arms": [
            {
                "arm": arm,
                "pulls": sum(one["arm"] == place for one in log),
                "mean": _mean(rewards[place]),
                "sd": float(np.std(rewards[place], ddof=1)) if len(rewards[place]) > 1 else None,
            }
            for place, arm in enumerate(arms)
        ],
        "decisions": len(log),
        "rewarded": sum(map(len, rewards)),
        "times": [part[-1]["at"] for part in stretches],
        "propensities": [one.tolist() for one in chances],
        "rewards": [_mean(one) for one in earned],
        "support": _support(log),
        "last": [_reasons(served, one) for one in log[-LAST:][::-1]],
        "delays": _delays(store, served.name, log),
    }


def _support(log: list[Record]) -> float | None:
    """The smallest probability that an allowed arm was picked with."""
    chances = [np.frombuffer(one["propensities"]) for one in log]
    return min((float(one[one > 0].min()) for one in chances), default=None)


def _reasons(served: Experiment, one: Record) -> dict[str, Any]:
    answer = json_of(served.answer(one))
    return {**answer, "at": one["at"], "reward": one["reward"]}


def _delays(store: Store, name: str, log: list[Record]) -> dict[str, float] | None:
    """Quantiles of the seconds between a decision and its first reward."""
    if not log:
        return None
    decided = {one["id"]: one["at"] for one in log}
    waited: dict[str, float] = {}
    for one in islice(store.learned(name, log[0]["seq"]), RECENT):
        if one["kind"] == "reward" and one["decision_id"] in decided:
            waited.setdefault(one["decision_id"], one["at"] - decided[one["decision_id"]])
    if not waited:
        return None
    levels = (0.5, 0.9, 0.99)
    values = np.quantile(list(waited.values()), levels)
    return {f"{level:.0%}": float(value) for level, value in zip(levels, values, strict=True)}


def _predictor(store: Store, served: Predictor) -> dict[str, Any]:
    newest = deque(store.rows(served.name, max(0, served.learned_through - RECENT)), RECENT)
    log = [one for one in newest if one["log_score"] is not None]
    stretches = [log[part] for part in _parts(len(log))]
    surprising = [
        {"id": one["row_id"], "y": one["y"], "mean": one["mean"], "log_score": one["log_score"]}
        for one in log
        if abs(one["y"] - one["mean"]) > 3.0 * (one["high"] - one["low"])
    ]
    return {
        **state_of(served),
        "times": [part[-1]["at"] for part in stretches],
        "errors": [
            math.sqrt(np.mean([(one["y"] - one["mean"]) ** 2 for one in part]))
            for part in stretches
        ],
        "coverage": [
            float(np.mean([one["low"] <= one["y"] <= one["high"] for one in part]))
            for part in stretches
        ],
        "log_scores": [_mean([one["log_score"] for one in part]) for part in stretches],
        "alarms": surprising[-LAST:],
    }


def _parts(n: int) -> list[slice]:
    edges = np.unique(np.linspace(0, n, min(n, STRETCHES) + 1).astype(int))
    return [slice(*pair) for pair in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)]


def _mean(values: list[float]) -> float | None:
    return float(np.mean(values)) if values else None


def metrics(engine: Engine) -> str:
    """Counters and gauges, as Prometheus reads them."""
    lines = []
    for name, value in engine.counts.items():
        lines += [f"# TYPE posterity_{name}_total counter", f"posterity_{name}_total {value}"]
    lines += ["# TYPE posterity_waiting gauge", f"posterity_waiting {engine.waiting}"]
    lines += ["# TYPE posterity_predictor_rmse gauge"]
    for served in engine.models.values():
        if isinstance(served, Predictor) and served.scores.n:
            label = json.dumps(served.name)
            lines.append(
                f"posterity_predictor_rmse{{name={label}}} {served.scores.state()['rmse']}"
            )
    return "\n".join(lines) + "\n"
