"""The models of a service: created, changed and deleted."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import msgspec

from posterity.service.changes import check_name, check_predictor, check_ranges, refuse_other
from posterity.service.engine import Engine, Served
from posterity.service.errors import NeedsLogError, RefusedError
from posterity.service.messages import ExperimentSettings, Outcome
from posterity.service.schema import DELETED, model
from posterity.service.store import LogEntries
from posterity.service.work import Work
from posterity.service.writing import Group, Record, delete_model


async def put(engine: Engine, name: str, settings: Any, token: str) -> Record:
    """Create a model, or change its settings; an experiment's arms and features stay."""
    kind = "experiment" if isinstance(settings, ExperimentSettings) else "predictor"
    check_name(name, "name")
    # In another thread, as a file takes its time.
    made, written = await engine.read(_prepare, engine, name, settings)

    def do(_: LogEntries, group: Group) -> Record:
        if name in engine.broken:
            raise RefusedError(503, engine.explain_failure(name), "name")
        before = engine.models.get(name)
        version = 1 + (before.version if before else engine.deleted.get(name, 0))
        if before is not None:
            if msgspec.structs.asdict(before.settings) == msgspec.structs.asdict(settings):
                return {"name": name, "version": before.version}
            refuse_other(before, kind, settings)
        served = deepcopy(made)  # it may be done again
        served.version = version
        if before is not None:
            served.take_over(before)
        kept = {"name": name, "version": version, "kind": kind, "settings": written}
        group.add(model, seq=engine.next_number(), at=engine.clock(), **kept)
        was, now = (
            one and msgspec.json.encode(one.describe_settings()).decode()
            for one in (before, served)
        )
        engine.add_audit(group, token, f"{kind} {name}", was, now)
        engine.models[name] = served
        return {"name": name, "version": version}

    answer: Record = await engine.submit(Work(do, name))
    return answer


def _prepare(engine: Engine, name: str, settings: Any) -> tuple[Served, str]:
    """A model of its first version, and its settings as they are kept; raises where it can't be."""
    check = check_ranges if isinstance(settings, ExperimentSettings) else check_predictor
    check(settings)
    served = engine.build(name, 1, settings)
    served.check_settings()
    return served, msgspec.json.encode(settings).decode()


async def delete(engine: Engine, find: Callable[[str], Served], name: str, token: str) -> Outcome:
    """Delete a model with all that the log has of it; also one that can't be restored.

    What is left are lines of the audit, and a last version of its settings, which says that it is
    deleted: another model of this name goes on counting, and no server mistakes it for the old one.
    """

    def do(found: LogEntries, group: Group) -> Outcome:
        if found.log is None:  # all that is asked of it before must be in the log
            raise NeedsLogError
        what = f"model {name}" if name in engine.broken else f"{find(name).kind} {name}"
        number, last = engine.next_number(), found.log.read_versions()[name]
        kept = {"name": name, "version": last + 1, "kind": DELETED, "settings": ""}
        group.add(model, seq=number, at=engine.clock(), **kept)
        group.updates += delete_model(name, number)
        engine.add_audit(group, token, what, None, DELETED)
        engine.forget_model(name, last + 1)
        return Outcome(DELETED)

    answer: Outcome = await engine.submit(Work(do, name))
    return answer
