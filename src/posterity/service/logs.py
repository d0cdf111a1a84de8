"""The log as others read it: rows of text, or an Arrow table; and what it says of policies."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec
import numpy as np

from posterity.service.errors import RefusedError
from posterity.service.experiments import Experiment
from posterity.service.inputs import list_names
from posterity.service.store import Store

_BATCH = 10_000
# Rows of the log that are in memory at once, each with as many numbers as there are arms.
_PAGE = 1_000
# Decisions that policies are judged by, and propensities of arms in all of them: the newest.
MOST_JUDGED, MOST_CHANCES = 100_000, 5_000_000


def read_log_rows(served: Experiment, store: Store, after: int) -> Iterator[dict[str, Any]]:
    """Decisions in order, with rewards, propensities and features; erased ones are left out."""
    arms, features = served.settings.arms, served.settings.features
    for one in store.read_decisions(served.name, after):
        if one["context"] is None:
            continue
        chances = np.frombuffer(one["propensities"]).tolist()
        row = {
            "seq": one["seq"],
            "id": one["id"],
            "at": one["at"],
            "arm": arms[one["arm"]],
            "propensity": chances[one["arm"]],
            "reward": one["reward"],
            "learned_through": one["learned_through"],
        }
        row |= {f"p_{arm}": chance for arm, chance in zip(arms, chances, strict=True)}
        if features:
            context = np.frombuffer(one["context"]).tolist()
            row |= {
                f"x_{name}": None if math.isnan(value) else value  # it has expired
                for name, value in zip(features, context, strict=True)
            }
        yield row


def stream_lines(served: Experiment, store: Store, after: int) -> Iterator[bytes]:
    """A line of JSON for each decision."""
    for row in read_log_rows(served, store, after):
        yield msgspec.json.encode(row) + b"\n"


def stream_arrow(served: Experiment, store: Store, after: int, *, parquet: bool) -> Iterator[bytes]:
    """An Arrow stream or a Parquet file, in pieces."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = _schema(pa, served)
    sink = _Pieces()
    writer = pq.ParquetWriter(sink, schema) if parquet else pa.ipc.new_stream(sink, schema)
    rows = read_log_rows(served, store, after)
    with writer:
        while batch := list(islice(rows, _BATCH)):
            writer.write_table(pa.Table.from_pylist(batch, schema))
            yield sink.take()
    yield sink.take()


def _schema(pa: Any, served: Experiment) -> Any:
    numbers = [f"p_{arm}" for arm in served.settings.arms]
    numbers += [f"x_{name}" for name in served.settings.features]
    fields = [("seq", pa.int64()), ("id", pa.string()), ("at", pa.float64()), ("arm", pa.string())]
    fields += [("propensity", pa.float64()), ("reward", pa.float64())]
    fields += [("learned_through", pa.int64())]
    return pa.schema([*fields, *((name, pa.float64()) for name in numbers)])


class _Pieces(io.RawIOBase):
    """A file that is taken away as it is written; its writer hears how far it has come."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._length = 0

    def writable(self) -> bool:
        """True."""
        return True

    def tell(self) -> int:
        """Return the number of bytes written."""
        return self._length

    def write(self, content: Any) -> int:
        """Keep it until it is taken."""
        part = bytes(content)
        self._parts.append(part)
        self._length += len(part)
        return len(part)

    def take(self) -> bytes:
        """Return the bytes written since the last call."""
        parts, self._parts = self._parts, []
        return b"".join(parts)


def evaluate_policies(served: Experiment, store: Store, policies: Sequence[str]) -> Any:
    """Estimate what policies would have earned, from the experiment's own log.

    Of a long log it reads the newest decisions.

    Raises
    ------
    RefusedError
        A policy that is none, or a log without rewards.
    """
    from posterity.off_policy import Log, evaluate

    arms = served.settings.arms
    for policy in policies:
        if policy not in (*arms, "uniform", "logged"):
            known = list_names(["uniform", "logged", *arms])
            raise RefusedError(422, f"there is no policy {policy!r}: give {known}", "policy")
    chosen, rewards, chances = _read_rewarded(served, store)
    if len(rewards) < 2:
        raise RefusedError(
            409, "fewer than two decisions have rewards: send more rewards to compare policies"
        )
    contexts = np.zeros((len(rewards), 1))  # these policies look at none
    table = Log.of(contexts, chosen, rewards, propensities=chances, names=arms)
    evaluation = evaluate(table, {policy: policy for policy in policies}, ["snips"])
    return [
        {
            "policy": one.policy,
            "method": one.method,
            "value": one.value,
            "low": one.low,
            "high": one.high,
        }
        for one in evaluation.estimates
    ]


def _read_rewarded(served: Experiment, store: Store) -> tuple[list[str], list[float], Any]:
    """Arms, rewards and propensities (n, K) of the newest decisions that have a reward."""
    arms = served.settings.arms
    most = min(MOST_JUDGED, max(MOST_CHANCES // len(arms), 2))
    chosen: list[str] = []
    rewards: list[float] = []
    chances = bytearray()
    for one in store.read_rewarded(served.name, store.find_number(served.name, most), _PAGE):
        given = np.frombuffer(one["propensities"])
        if given[one["arm"]] > 0.0 and np.isfinite(given).all():
            chosen.append(arms[one["arm"]])
            rewards.append(one["reward"])
            chances += one["propensities"]
    return chosen, rewards, np.frombuffer(chances).reshape(len(rewards), len(arms))
