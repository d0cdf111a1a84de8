"""Files of models with one thing changed, and what becomes of each in a process of its own."""

from __future__ import annotations

import contextlib
import copy
import importlib
import json
import os
import random
import resource
import select
import signal
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from files_kinds import Kind

from posterity.files import ModelFileError, loads
from posterity.files.container import pack, unpack

# Seconds and bytes that one file may take, beyond those of the process.
SECONDS, BYTES = 20.0, 1 << 30
# Alike places that are tried, the same field of objects of the same class: in one file, and in how
# many kinds of files.
ALIKE, ALIKE_KINDS = 2, 4
# Places that may have any name: under another one a series is another series.
NAMES = frozenset({"Panel.ids"})
NUMBERS = [
    -1, 0, 3, 1_000_000, 2**31 - 1, 2**62, float("nan"), float("inf"), -1.0, 1e308, 1e-320,
]  # fmt: skip
PLAIN = [*NUMBERS, None, True, "x", [], {"list": [1.0]}, {"dict": []}]
PLACES = {"first": slice(1), "last": slice(-1, None), "all": slice(None)}
OTHER_TYPES = (np.float32, np.int32, np.int64, np.float64, np.uint8, np.bool_)

Arrays = dict[str, Any]
# Which place was changed ("" for several), how, and the file.
Variant = tuple[str, str, bytes]


# ---- what is changed -----------------------------------------------------------------------------


def change_array(array: Any) -> Iterator[tuple[str, Any]]:
    """An array with one thing changed."""
    if array.ndim:
        yield "shorter", array[:-1]
        yield "empty", array[:0]
        yield "twice", np.concatenate([array, array])
    yield "one more dimension", array[None]
    for dtype in OTHER_TYPES:
        if array.dtype != dtype:
            yield f"as {dtype.__name__}", array.astype(dtype)
    if array.ndim > 1:
        yield "narrower", array[..., :-1]
        yield "turned", np.swapaxes(array, -1, -2)
    for number in NUMBERS if array.size else ():
        if array.dtype.kind in "iu" and not abs(number) <= np.iinfo(array.dtype).max:
            continue
        for where in ("first", "last", "all"):
            changed = array.copy().reshape(-1)
            changed[{"first": slice(1), "last": slice(-1, None), "all": slice(None)}[where]] = (
                number
            )
            yield f"{where} {number}", changed.reshape(array.shape)


def find_values(node: Any) -> Iterator[tuple[Any, Any]]:
    """What holds each plain value in the fields of an object, and its key there."""
    for key, value in node.items() if isinstance(node, dict) else enumerate(node):
        if isinstance(value, dict | list):
            yield from find_values(value)
        elif key != "object":
            yield node, key


def change_file(content: bytes, rng: random.Random) -> Iterator[Variant]:
    """All files with one array, value or reference changed."""
    document, arrays = unpack(content)
    parts = json.loads(document)
    owners = _name_owners(parts["objects"])
    yield from _change_arrays(parts, arrays, owners)
    yield from _change_values(parts, arrays, owners)
    yield from _swap_references(parts, arrays, rng)
    for number in range(40):
        yield "", f"damage {number}", damage(parts, arrays, rng)


def _name_owners(objects: list[Any]) -> dict[int, str]:
    """Class and field by which each object is found first."""
    owners: dict[int, str] = {}

    def follow(node: Any, name: str) -> None:
        if isinstance(node, dict) and type(node.get("object")) is int:
            owners.setdefault(node["object"], name)
        for inner in node.values() if isinstance(node, dict) else node:
            if isinstance(inner, dict | list):
                follow(inner, name)

    for node in objects:
        for key, value in node.get("fields", {}).items():
            follow([value], f"{node['class']}.{key}")
    return owners


def _change_arrays(parts: Any, arrays: Arrays, owners: dict[int, str]) -> Iterator[Variant]:
    seen: Counter[str] = Counter()
    for number, node in enumerate(parts["objects"]):
        for key in ("array", "factor", "values", "size", "bank", "groups", "tallies"):
            for name in np.ravel(node.get(key, [])).tolist():
                place = f"{owners.get(number)}:{key} {arrays[name].ndim}"
                seen[place] += 1
                if seen[place] > ALIKE:
                    continue
                for what, changed in change_array(arrays[name]):
                    contiguous = np.array(changed, order="C")
                    yield place, what, pack(json.dumps(parts), {**arrays, name: contiguous})


def _change_values(parts: Any, arrays: Arrays, owners: dict[int, str]) -> Iterator[Variant]:
    seen: Counter[str] = Counter()
    for number, node in enumerate(parts["objects"]):
        if "class" in node:
            each = [(f"{node['class']}.{key}", one) for key, one in _find_in_fields(node["fields"])]
        else:
            each = [(f"{owners.get(number)}:{next(iter(node))}", one) for one in find_values(node)]
        for name, (holder, key) in each:
            seen[name] += 1
            if seen[name] > ALIKE or name in NAMES:
                continue
            before = holder[key]
            for value in PLAIN:
                if value != before or type(value) is not type(before):
                    holder[key] = _encode(value)
                    yield name, f"= {value}", pack(json.dumps(parts), arrays)
            holder[key] = before


def _find_in_fields(fields: Any) -> Iterator[tuple[str, tuple[Any, Any]]]:
    for key, value in fields.items():
        if isinstance(value, dict | list):
            yield from ((key, one) for one in find_values(value))
        else:
            yield key, (fields, key)


def _encode(value: Any) -> Any:
    if isinstance(value, float) and not np.isfinite(value):
        return {"float": repr(value)}
    return {"list": []} if value == [] else value


def _swap_references(parts: Any, arrays: Arrays, rng: random.Random) -> Iterator[Variant]:
    references = [
        (node["class"], holder, key)
        for node in parts["objects"]
        if "class" in node
        for holder, key in _find_references(node["fields"])
    ]
    for owner, holder, key in rng.sample(references, min(60, len(references))):
        before = holder[key]
        for number in rng.sample(range(len(parts["objects"])), min(3, len(parts["objects"]))):
            holder[key] = number
            yield "", f"{owner}: object {before} is {number}", pack(json.dumps(parts), arrays)
        holder[key] = before


def _find_references(node: Any) -> Iterator[tuple[Any, Any]]:
    for key, value in node.items() if isinstance(node, dict) else enumerate(node):
        if key == "object" and type(value) is int:
            yield node, key
        elif isinstance(value, dict | list):
            yield from _find_references(value)


def damage(parts: Any, arrays: Arrays, rng: random.Random) -> bytes:
    """The file with a few random bytes changed, in its numbers or its text."""
    if arrays and rng.random() < 0.7:
        name = rng.choice(sorted(arrays))
        content = bytearray(arrays[name].tobytes())
        for _ in range(rng.choice([1, 1, 3])):
            if content:
                content[rng.randrange(len(content))] = rng.randrange(256)
        changed = np.frombuffer(bytes(content), arrays[name].dtype).reshape(arrays[name].shape)
        return pack(json.dumps(parts), {**arrays, name: changed})
    text = bytearray(json.dumps(parts).encode("ascii"))
    for _ in range(rng.choice([1, 1, 3])):
        text[rng.randrange(len(text))] = rng.randrange(32, 127)
    return pack(text.decode("ascii"), copy.copy(arrays))


# ---- what becomes of it --------------------------------------------------------------------------


@dataclass
class Outcomes:
    """Counts by outcome, and what should not have been."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        names = ("tried", "refused when loaded", "refused when used", "answered", "crash", "hang",
                 "other exception", "NaN")  # fmt: skip
        return ", ".join(f"{name} {self.counts[name]}" for name in names)

    def add(self, outcome: str, what: str, detail: str) -> None:
        """Count one file."""
        self.counts.update(["tried", outcome])
        if outcome in ("crash", "hang", "other exception", "NaN"):
            self.faults.append(f"{outcome}: {what}: {detail}")


def judge(kind: Kind, content: bytes) -> tuple[str, str]:
    """What becomes of a file: its outcome, and what was said."""
    try:
        model = loads(content)
    except ModelFileError as error:
        return "refused when loaded", str(error)
    except BaseException as error:
        return "other exception", f"when loaded: {error!r}"
    outcome = "answered"
    for place, use in enumerate(kind.uses):
        try:
            answer = use(model)
        except (ValueError, TypeError, FloatingPointError):  # the last: of values too small
            outcome = "refused when used"
        except BaseException as error:
            return "other exception", f"in use {place}: {_find_place(error)} {error!r}"
        else:
            if _has_nan(answer):
                return "NaN", f"in use {place}"
    return outcome, ""


def _find_place(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    code = None if trace is None else trace.tb_frame.f_code
    return "" if code is None or trace is None else f"{code.co_filename}:{trace.tb_lineno}"


def _has_nan(answer: Any) -> bool:
    if isinstance(answer, dict):
        return any(map(_has_nan, answer.values()))
    if isinstance(answer, list | tuple):
        return any(map(_has_nan, answer))
    if isinstance(answer, float | np.floating | np.ndarray):
        array = np.asarray(answer)
        return array.dtype.kind == "f" and bool(np.isnan(array).any())
    return False


def try_files(kind: Kind, variants: list[Variant], outcomes: Outcomes) -> None:
    """Load and use each file in a process that may crash or hang; another goes on after it."""
    start = 0
    while start < len(variants):
        start = _try_in_process(kind, variants, start, outcomes)


def _try_in_process(kind: Kind, variants: list[Variant], start: int, outcomes: Outcomes) -> int:
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(reader)
        _work(kind, variants, start, writer)
    os.close(writer)
    number, rest = start, b""
    while number < len(variants):
        ready, _, _ = select.select([reader], [], [], SECONDS)
        news = os.read(reader, 1 << 16) if ready else b""
        if not news:
            os.kill(process, signal.SIGKILL)
            outcomes.add("crash" if ready else "hang", _describe(kind, variants[number]), "")
            number += 1
            break
        *lines, rest = (rest + news).split(b"\n")
        for line in lines:
            outcome, detail = json.loads(line)
            outcomes.add(outcome, _describe(kind, variants[number]), detail)
            number += 1
    os.close(reader)
    os.waitpid(process, 0)
    return number


def _describe(kind: Kind, variant: Variant) -> str:
    return f"{kind.name}: {variant[0]} {variant[1]}"


def _work(kind: Kind, variants: list[Variant], start: int, writer: int) -> None:
    """The child: an answer a line for each file."""
    try:
        warnings.simplefilter("ignore")
        np.seterr(all="ignore")
        with contextlib.suppress(ImportError):  # whose own pool reserves more than it uses
            arrow = importlib.import_module("pyarrow")
            arrow.set_memory_pool(arrow.system_memory_pool())
        size = _read_size() + BYTES
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        for _, _, content in variants[start:]:
            os.write(writer, json.dumps(judge(kind, content)).encode() + b"\n")
    finally:
        os._exit(0)


def _read_size() -> int:
    """Bytes of address space that this process has."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def fuzz(
    kinds: list[Kind], stride: int, watch: Callable[[str], None] = lambda line: None
) -> Outcomes:
    """Try every ``stride``-th changed file of these kinds, in any order of them."""
    outcomes, met = Outcomes(), Counter[str]()
    for number, kind in enumerate(random.Random(0).sample(kinds, len(kinds))):
        each = change_file(kind.content(), random.Random(number))
        some = [one for place, one in enumerate(each) if place % stride == number % stride]
        variants = [one for one in some if met[one[0]] < ALIKE_KINDS]
        met.update({place for place, _, _ in variants if place})
        before = len(outcomes.faults)
        try_files(kind, variants, outcomes)
        watch(f"{kind.name}: {len(variants)} files, {len(outcomes.faults) - before} faults")
    return outcomes
