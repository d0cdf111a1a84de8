"""JSON lines of Vowpal Wabbit and Azure Personalizer ("dsjson"), as a table, and from a log."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import numpy as np

from posterity.aliases import Document
from posterity.io import TableError
from posterity.io.rounds import Rounds

_AT_ONCE = 8192


class DsjsonTable:
    """A file of lines as a table: context, ``arm``, ``reward``, ``propensity`` and ``p:`` + arm.

    Columns and arms are looked for in the whole file once, and it is read again at each use.
    """

    def __init__(self, path: str, arms: Sequence[Hashable] | None = None) -> None:
        self._path = path
        self._kinds: dict[str, type] = {}
        found: dict[str, None] = {}
        for row in decisions_in(path):
            found.update(dict.fromkeys(row["p"]))
            for name, value in row["context"].items():
                kind = str if isinstance(value, str) else float
                self._kinds[name] = str if self._kinds.get(name) is str else kind
        if not found:
            raise TableError(
                f"{path} has no line with _label_cost, so it contains no decisions: give a "
                "dsjson log"
            )
        self.arms = tuple(sorted(found, key=arm_order)) if arms is None else tuple(map(str, arms))
        unknown = sorted(set(found).difference(self.arms))
        if unknown:
            raise TableError(
                f"{path} has an arm {unknown[0]!r}, which is not among {self.arms}: name all arms"
            )

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """A new stream of all lines (the Arrow C stream interface)."""
        import pyarrow as pa

        kinds: dict[str, Any] = {
            name: pa.string() if kind is str else pa.float64() for name, kind in self._kinds.items()
        }
        kinds |= {"arm": pa.string(), "reward": pa.float64(), "propensity": pa.float64()}
        kinds |= {f"p:{arm}": pa.float64() for arm in self.arms}
        schema = pa.schema(list(kinds.items()))

        def batches() -> Iterator[Any]:
            rows = decisions_in(self._path)
            while some := list(islice(rows, _AT_ONCE)):
                flat = [self._flat(row) for row in some]
                yield pa.RecordBatch.from_pylist(flat, schema=schema)

        reader = pa.RecordBatchReader.from_batches(schema, batches())
        return reader.__arrow_c_stream__(requested_schema)

    def _flat(self, row: Document) -> Document:
        """A row of all columns; a number that is not there is 0, as in the file's sparse form."""
        record = row["context"]
        flat = {
            name: str(record.get(name, "")) if kind is str else float(record.get(name, 0.0))
            for name, kind in self._kinds.items()
        }
        flat |= {f"p:{arm}": row["p"].get(arm, 0.0) for arm in self.arms}
        return flat | {key: row[key] for key in ("arm", "reward", "propensity")}


def decisions_in(path: str) -> Iterator[Document]:
    """Yield the decisions of a file's lines, in order.

    Raises
    ------
    TableError
        A line is no decision: with its number.
    """
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
                row = _decision(record) if "_label_cost" in record else None
            except (ValueError, KeyError, TypeError, IndexError) as error:
                raise TableError(
                    f"{path}, line {number} is not a dsjson decision ({error!r}): correct "
                    "or remove that line"
                ) from error
            if row is not None:
                yield {**row, "id": row["id"] or f"line {number}"}


def _decision(record: Mapping[str, Any]) -> Document:
    """Return event, time, context, the chosen arm, its reward and all propensities of a line."""
    context, choices = record["c"], record["c"].get("_multi", [])
    names = [_name(choice, place) for place, choice in enumerate(choices, 1)]
    order, chances = record["a"], record["p"]
    names = names or [str(number) for number in sorted(order)]
    chosen = names[order[0] - 1]
    total = sum(chances)
    return {
        "id": str(record.get("EventId", "")),
        "at": _seconds(record.get("Timestamp")),
        "active": not record.get("_skipLearn", False),
        "context": dict(_features(context)),
        "arm": chosen,
        "reward": -float(record["_label_cost"]),
        "propensity": float(record.get("_label_probability", chances[0])),
        "p": {names[a - 1]: p / total for a, p in zip(order, chances, strict=True)},
    }


def _seconds(time: str | None) -> float | None:
    """Seconds since 1970; a time without a zone is in UTC."""
    if time is None:
        return None
    at = datetime.fromisoformat(time)
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def _name(choice: Mapping[str, Any], place: int) -> str:
    """Return the name of an arm: its tag, its id, its only word, or its number."""
    if "_tag" in choice:
        return str(choice["_tag"])
    inner = choice.get("i")
    if isinstance(inner, Mapping) and "id" in inner:
        return str(inner["id"])
    words = [(name, value) for name, value in _features(choice) if isinstance(value, str)]
    return words[0][1] if len(words) == 1 else str(place)


def _features(record: Any, above: str = "") -> Iterator[tuple[str, float | str]]:
    """Names and values of what is shared by all arms; those of lists count up from 0."""
    pairs: Iterable[tuple[Any, Any]] = (
        record.items() if isinstance(record, Mapping) else enumerate(record)
    )
    for name, value in pairs:
        if isinstance(name, str) and name.startswith("_"):
            continue
        full = f"{above}.{name}" if above else str(name)
        if isinstance(value, Mapping | list):
            yield from _features(value, full)
        elif isinstance(value, str):
            yield full, value
        elif value is not None:
            yield full, float(value)


_NUMBERED = re.compile(r"^(?:FromUrl\.)?\d+\.")


def flatten_features(record: Any) -> Iterator[tuple[str, float]]:
    """Numbers of a context by name; a word is 1 in the feature ``name=word``.

    That a feature stood in a list, or in a URL, is not in its name.

    Examples
    --------
    >>> list(flatten_features([{"hour": 7, "user": {"kind": "new"}}]))
    [('hour', 7.0), ('user.kind=new', 1.0)]
    """
    for name, value in _features(record):
        short = _NUMBERED.sub("", name)
        yield (f"{short}={value}", 1.0) if isinstance(value, str) else (short, value)


def arm_order(name: str) -> tuple[int, str]:
    """Arms that are numbers in their order, before words in the order of the alphabet."""
    return (int(name), "") if name.isdigit() else (1 << 60, name)


def write_dsjson(
    path: str, rounds: Iterable[Rounds], arms: Sequence[Hashable], features: Sequence[str]
) -> None:
    """Write a line for each decision; of the propensities only the chosen arm's may be known."""
    choices = [{"_tag": str(arm)} for arm in arms]
    with open(path, "w", encoding="utf-8") as out:
        for some in rounds:
            for row in range(len(some)):
                out.write(json.dumps(_line(some, row, choices, features)) + "\n")


def _line(
    some: Rounds, row: int, choices: list[dict[str, str]], features: Sequence[str]
) -> Document:
    arm, own = int(some.arms[row]), float(some.propensity[row])  # type: ignore[index]
    if some.propensities is None:
        rest = (1.0 - own) / max(len(choices) - 1, 1)
        chances = np.full(len(choices), rest)
        chances[arm] = own
    else:
        chances = some.propensities[row]
    order = [arm, *(other for other in range(len(choices)) if other != arm)]
    return {
        "_label_cost": -float(some.rewards[row]),
        "_label_probability": own,
        "_label_Action": arm + 1,
        "_labelIndex": arm,
        "EventId": str(some.first + row),
        "a": [place + 1 for place in order],
        "c": {**dict(zip(features, some.X[row].tolist(), strict=True)), "_multi": choices},
        "p": [float(chances[place]) for place in order],
    }
