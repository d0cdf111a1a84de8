"""Take over the log of another service: its decisions, propensities and rewards."""

from __future__ import annotations

import asyncio
import math
from itertools import islice
from typing import Any

import numpy as np

from posterity.off_policy.dsjson import arm_order, decisions_in, flatten_features
from posterity.service.catalog import put
from posterity.service.databases import explain_failures
from posterity.service.engine import Engine
from posterity.service.errors import RefusedError
from posterity.service.experiments import Experiment
from posterity.service.messages import ExperimentSettings, Reward
from posterity.service.personalizer import to_vector
from posterity.service.run import lock_folder, open_store
from posterity.service.schema import decision
from posterity.service.store import LogEntries
from posterity.service.work import Work
from posterity.service.writing import Group

_AT_ONCE = 500


def import_dsjson(
    path: str, folder: str, experiment: str, database: str | None = None
) -> dict[str, Any]:
    """Import a dsjson log into an experiment; lines imported before are skipped.

    An experiment that is not there is created: its arms and features are those of the file, and
    a word is 1 in a feature ``name=word``. The logged propensities are kept. The rewards are
    learned in the order of the file, in the same transactions.

    Parameters
    ----------
    path : str
        A file of Vowpal Wabbit or Azure Personalizer, a decision a line.
    folder, database : str
        As in :func:`~posterity.service.run.serve`, which must not run meanwhile.
    experiment : str

    Returns
    -------
    dict
        Numbers of ``decisions`` and ``rewards`` that are new.

    Raises
    ------
    ValueError
        A line is no decision, names an arm or a feature that the experiment does not have, or a
        server uses the folder. Decisions of lines before it, by the five hundred, were imported.
    """
    with lock_folder(folder):
        store = open_store(folder, database)
        with explain_failures(store.engine.url):
            return asyncio.run(_import(path, experiment, Engine(store)))


async def _import(path: str, name: str, engine: Engine) -> dict[str, Any]:
    await engine.start()
    counts = {"decisions": 0, "rewards": 0}
    try:
        if name not in engine.models:
            await put(engine, name, infer_settings(path), "import")
        served = engine.experiment(name)
        rows = (_read(row, served) for row in decisions_in(path))
        while some := list(islice(rows, _AT_ONCE)):
            added = await engine.submit(_work(engine, served, some))
            counts = {key: counts[key] + count for key, count in added.items()}
    except RefusedError as refused:
        raise ValueError(f"{path}: {refused.message}") from refused
    finally:
        await engine.stop()
    return counts


def infer_settings(path: str) -> ExperimentSettings:
    """Arms and features of all lines of a file."""
    arms: set[str] = set()
    features: dict[str, None] = {}
    for row in decisions_in(path):
        arms.update(row["p"])
        features.update((name, None) for name, _ in flatten_features(row["context"]))
    if not arms:
        raise ValueError(
            f"{path} has no line with _label_cost, so it contains no decisions: give a dsjson log"
        )
    return ExperimentSettings(arms=sorted(arms, key=arm_order), features=list(features))


def _read(row: dict[str, Any], served: Experiment) -> dict[str, Any]:
    """A line as the experiment has its contexts and arms."""
    arms, features = served.settings.arms, served.settings.features
    unknown = [arm for arm in row["p"] if arm not in arms]
    if unknown:
        message = f"decision {row['id']!r} has an arm {unknown[0]!r}: the experiment has {arms}"
        raise RefusedError(422, message)
    named = list(flatten_features(row["context"]))
    context = to_vector(named, features, "context") if features else [1.0]
    if not math.isfinite(sum(context) + row["reward"]):
        raise RefusedError(
            422, f"decision {row['id']!r} has a number that is not finite: correct it"
        )
    return {**row, "context": np.array(context)}


def _work(engine: Engine, served: Experiment, rows: list[dict[str, Any]]) -> Work:
    """Decisions and rewards of one transaction."""

    def add(found: LogEntries, group: Group) -> dict[str, int]:
        counts = {"decisions": 0, "rewards": 0}
        for row in rows:
            key, now = (served.name, row["id"]), row["at"] or engine.clock()
            if key in found.decisions:
                continue
            made = served.import_decision(row, engine.next_number(), now)
            group.add(decision, **made)
            found.decisions[key] = made
            asked = Reward(decision_id=row["id"], value=row["reward"])
            served.record_event("reward", asked, found, group, engine.next_number(), now)
            counts["decisions"] += 1
            counts["rewards"] += row["active"]
        return counts

    return Work(add, decisions=tuple((served.name, row["id"]) for row in rows))
