"""Endpoints: paths, roles, bodies, and the functions that answer."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec
from starlette.datastructures import QueryParams
from starlette.responses import Response, StreamingResponse
from starlette.types import Scope

from posterity.service import batches, catalog, logs, personalizer
from posterity.service import messages as say
from posterity.service.build import read_upload
from posterity.service.engine import Engine, Served
from posterity.service.errors import RefusedError
from posterity.service.state import build_overview, find_alarms, format_metrics
from posterity.service.store import LogEntries
from posterity.service.tokens import Tokens
from posterity.service.work import Work
from posterity.service.writing import Group

# Streams of events that may be open at once.
MOST_STREAMS = 100
_NEVER = {"cache-control": "no-store"}


@dataclass
class Call:
    """A request that was let in: who asks, and what."""

    engine: Engine
    tokens: Tokens
    token: str
    body: Any
    kind: str  # "experiments" or "predictors", where it is about one
    named: list[str]
    scope: Scope

    @property
    def name(self) -> str:
        """The name of the model."""
        return self.named[0]

    @property
    def find(self) -> Callable[[str], Served]:
        """What finds a model of the kind by its name."""
        return self.engine.experiment if self.kind == "experiments" else self.engine.predictor

    @property
    def query(self) -> QueryParams:
        """The parameters after the question mark."""
        return QueryParams(self.scope["query_string"])


@dataclass(frozen=True)
class Endpoint:
    """Endpoint of the API; ``role`` "" admits everybody."""

    method: str
    path: str
    role: str
    body: Any
    answer: Callable[[Call], Awaitable[Any]]
    largest: int = 65_536
    status: int = 200

    @cached_property
    def fields(self) -> list[str]:
        """What the names and ids in its path are called."""
        return re.findall(r"{(\w+)}", self.path)

    @cached_property
    def kind(self) -> str:
        """What comes first in its path, as "experiments"."""
        return self.path.removeprefix("/v1").split("/")[1]

    @property
    def summary(self) -> str:
        """The first line of what its function says of itself."""
        return (self.answer.__doc__ or "").splitlines()[0]


async def put(call: Call) -> Any:
    """Create an experiment or a predictor; of an experiment also change settings."""
    return await catalog.put(call.engine, call.name, call.body, call.token)


async def get(call: Call) -> Any:
    """Settings, and how far it has learned; of a predictor also its schema and scores."""
    return call.find(call.name).describe()


async def delete(call: Call) -> Any:
    """Delete it with all that the log has of it."""
    return await catalog.delete(call.engine, call.find, call.name, call.token)


async def list_all(call: Call) -> Any:
    """All that there are, each with its settings."""
    call.engine.check_ready()
    return {call.kind: [one.describe() for one in call.engine.list_models(call.kind[:-1])]}


async def get_model(call: Call) -> Any:
    """The model as a model file, which ``posterity.load`` reads."""
    call.find(call.name)
    content = await call.engine.write_model(call.name)
    return Response(content, media_type="application/octet-stream", headers=_NEVER)


async def decide(call: Call) -> Any:
    """Choose an arm for a context; the same id again has the same answer."""
    return (await call.engine.decide(call.name, [call.body]))[0]


async def decide_batch(call: Call) -> Any:
    """Choose arms for up to 1,000 contexts, in one transaction."""
    return say.DecidedBatch(await call.engine.decide(call.name, call.body.decisions))


async def reward(call: Call) -> Any:
    """Learn what a decision earned, once for each event id."""
    return await call.engine.record_event(call.name, "reward", call.body)


async def take_back(call: Call) -> Any:
    """Unlearn a reward."""
    return await call.engine.record_event(call.name, "retraction", call.body)


async def activate(call: Call) -> Any:
    """Say that a decision was shown after all: its rewards are learned."""
    return await call.engine.record_event(call.name, "activate", call.body)


async def delete_decision(call: Call) -> Any:
    """Unlearn a decision, and erase its context."""
    asked = say.Activate(decision_id=call.named[1])
    return await call.engine.record_event(call.name, "delete", asked)


async def put_model(call: Call) -> Any:
    """Create a predictor from a model file; settings follow the question mark."""
    settings = await call.engine.read(read_upload, call.body, dict(call.query))
    return await catalog.put(call.engine, call.name, settings, call.token)


async def get_log(call: Call) -> Any:
    """The log from a number on, as lines of JSON, an Arrow stream or Parquet."""
    served, store = call.engine.experiment(call.name), call.engine.store
    given = call.query
    form, after = given.get("format", "ndjson"), given.get("after", "0")
    if not (after.isascii() and after.isdigit() and len(after) < 19):
        raise RefusedError(422, f"after is {after!r}: give the number of a decision", "after")
    if form not in ("ndjson", "arrow", "parquet"):
        raise RefusedError(422, f"format is {form!r}: give ndjson, arrow or parquet", "format")
    if form == "ndjson":
        pieces = logs.stream_lines(served, store, int(after))
        return StreamingResponse(pieces, media_type="application/x-ndjson")
    pieces = logs.stream_arrow(served, store, int(after), parquet=form == "parquet")
    kind = "vnd.apache.parquet" if form == "parquet" else "vnd.apache.arrow.stream"
    return StreamingResponse(pieces, media_type=f"application/{kind}")


async def evaluate(call: Call) -> Any:
    """Estimate what other policies would have earned, from the experiment's own log."""
    policies = call.query.getlist("policy") or ["uniform", "logged"]
    served, engine = call.engine.experiment(call.name), call.engine
    async with engine.evaluating:  # one at a time: each may read a long log
        return await engine.read(logs.evaluate_policies, served, engine.store, policies)


async def predict(call: Call) -> Any:
    """Predict a row; nothing is learned or kept."""
    return await call.engine.predict(call.name, call.body)


async def learn(call: Call) -> Any:
    """Predict a row, then learn it, once for each id."""
    return await call.engine.record_row(call.name, "learn", call.body)


async def predict_batch(call: Call) -> Any:
    """Predict up to 1,000 rows; nothing is learned or kept."""
    return say.PredictedBatch(await call.engine.predict_rows(call.name, call.body.rows))


async def learn_batch(call: Call) -> Any:
    """Learn up to 1,000 rows in one transaction: all of them, or none."""
    return say.LearnedBatch(await batches.learn(call.engine, call.name, call.body.rows))


async def unlearn(call: Call) -> Any:
    """Take a row back."""
    return await call.engine.record_row(call.name, "unlearn", call.body)


async def make_token(call: Call) -> Any:
    """Make a token; it is shown once."""
    asked = call.body

    def do(_: LogEntries, group: Group) -> Any:
        made = call.tokens.make(group, asked.name, asked.role, asked.expires)
        call.engine.add_audit(group, call.token, f"token {asked.name}", None, asked.role)
        return made

    made, record = await call.engine.submit(Work(do))
    call.tokens.add(record)
    return say.MadeToken(made)


async def revoke_token(call: Call) -> Any:
    """Revoke a token."""
    name = call.body.name

    def do(_: LogEntries, group: Group) -> say.Outcome:
        call.tokens.revoke(group, name)
        call.engine.add_audit(group, call.token, f"token {name}", None, "revoked")
        return say.Outcome("revoked")

    return await call.engine.submit(Work(do))


async def get_audit(call: Call) -> Any:
    """Who changed which settings, and when."""
    return await call.engine.read(call.engine.store.read_audit)


async def check_health(call: Call) -> Any:
    """Check that the process lives."""
    return {"status": "alive"}


async def check_readiness(call: Call) -> Any:
    """Check that the service has read its log and can write."""
    if not call.engine.ready:
        raise RefusedError(
            503,
            "not ready: the log is being read, or the database can't be reached; try again",
            retry_after=1,
        )
    return {"status": "ready"}


async def get_metrics(call: Call) -> Any:
    """Counters and gauges, as Prometheus reads them."""
    return Response(format_metrics(call.engine), media_type="text/plain; version=0.0.4")


async def get_overview(call: Call) -> Any:
    """All models at a glance: traffic, rewards, propensities, scores along time."""
    return await call.engine.read(build_overview, call.engine)


async def stream_events(call: Call) -> Any:
    """Server-Sent Events: "changed" when something was written, "alarms" when these change."""
    if len(call.engine.changed) >= MOST_STREAMS:
        message = f"{MOST_STREAMS} streams of events are open: close one, or ask now and then"
        raise RefusedError(503, message, retry_after=60)
    changes = _watch_changes(call.engine, lambda: call.tokens.is_valid(call.token))
    return StreamingResponse(changes, media_type="text/event-stream", headers=_NEVER)


async def _watch_changes(
    engine: Engine, is_allowed: Callable[[], bool] = lambda: True
) -> AsyncIterator[str]:
    changed = asyncio.Event()
    if len(engine.changed) >= MOST_STREAMS:  # others began meanwhile
        return
    engine.changed.append(changed)
    try:
        yield "event: hello\ndata: {}\n\n"
        alarms: dict[str, str] = {}
        while not engine.closing:
            with suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), 1.0)
            if not is_allowed():
                return
            if not changed.is_set():
                continue
            changed.clear()
            yield "event: changed\ndata: {}\n\n"
            before, alarms = alarms, find_alarms(engine)
            if alarms != before:
                yield f"event: alarms\ndata: {msgspec.json.encode(alarms).decode()}\n\n"
            await asyncio.sleep(0.2)  # five a second are enough for a page
    finally:
        engine.changed.remove(changed)


_EXPERIMENT, _PREDICTOR = "/v1/experiments/{name}", "/v1/predictors/{name}"
_RANK = _EXPERIMENT + "/personalizer/v1.0/rank"
_EVENT = _EXPERIMENT + "/personalizer/v1.0/events/{id}"
_BATCH_BYTES, _FILE_BYTES = 1_048_576, 16_777_216

ENDPOINTS = (
    Endpoint("GET", "/v1/experiments", "read", None, list_all),
    Endpoint("PUT", _EXPERIMENT, "admin", say.ExperimentSettings, put, _BATCH_BYTES),
    Endpoint("GET", _EXPERIMENT, "read", None, get),
    Endpoint("DELETE", _EXPERIMENT, "admin", None, delete),
    Endpoint("POST", _EXPERIMENT + "/decide", "decide", say.Decide, decide),
    Endpoint(
        "POST", _EXPERIMENT + "/decide/batch", "decide", say.DecideBatch, decide_batch, _BATCH_BYTES
    ),
    Endpoint("POST", _EXPERIMENT + "/reward", "decide", say.Reward, reward),
    Endpoint("POST", _EXPERIMENT + "/take-back", "decide", say.TakeBack, take_back),
    Endpoint("POST", _EXPERIMENT + "/activate", "decide", say.Activate, activate),
    Endpoint("DELETE", _EXPERIMENT + "/decisions/{id}", "admin", None, delete_decision),
    Endpoint("GET", _EXPERIMENT + "/log", "read", None, get_log),
    Endpoint("GET", _EXPERIMENT + "/evaluate", "read", None, evaluate),
    Endpoint("GET", _EXPERIMENT + "/model", "read", None, get_model),
    Endpoint("POST", _RANK, "decide", say.RankRequest, personalizer.rank, status=201),
    Endpoint(
        "POST",
        _EVENT + "/reward",
        "decide",
        say.EventReward,
        personalizer.reward_event,
        status=204,
    ),
    Endpoint("POST", _EVENT + "/activate", "decide", None, personalizer.activate_event, status=204),
    Endpoint("GET", "/v1/predictors", "read", None, list_all),
    Endpoint("PUT", _PREDICTOR, "admin", say.PredictorSettings, put, _BATCH_BYTES),
    Endpoint("GET", _PREDICTOR, "read", None, get),
    Endpoint("DELETE", _PREDICTOR, "admin", None, delete),
    Endpoint("POST", _PREDICTOR + "/learn", "decide", say.Row, learn),
    Endpoint(
        "POST", _PREDICTOR + "/learn/batch", "decide", say.LearnBatch, learn_batch, _BATCH_BYTES
    ),
    Endpoint("POST", _PREDICTOR + "/predict", "read", say.Predict, predict),
    Endpoint(
        "POST", _PREDICTOR + "/predict/batch", "read", say.PredictBatch, predict_batch, _BATCH_BYTES
    ),
    Endpoint("POST", _PREDICTOR + "/unlearn", "decide", say.Unlearn, unlearn),
    Endpoint("PUT", _PREDICTOR + "/model", "admin", bytes, put_model, _FILE_BYTES),
    Endpoint("GET", _PREDICTOR + "/model", "read", None, get_model),
    Endpoint("POST", "/v1/tokens", "admin", say.NewToken, make_token),
    Endpoint("POST", "/v1/tokens/revoke", "admin", say.Revoke, revoke_token),
    Endpoint("GET", "/v1/audit", "admin", None, get_audit),
    Endpoint("GET", "/v1/overview", "read", None, get_overview),
    Endpoint("GET", "/v1/events", "read", None, stream_events),
    Endpoint("GET", "/healthz", "", None, check_health),
    Endpoint("GET", "/readyz", "", None, check_readiness),
    Endpoint("GET", "/metrics", "read", None, get_metrics),
)
