"""What is not a model file is refused, and so is a model that no file can hold."""

from __future__ import annotations

import contextlib
import copy
import json
import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from files_models import X, Y, averaged, cases, taught
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from posterity import BayesianLinearRegression, load, save
from posterity.basis import RandomFourier
from posterity.files import ModelFileError, dumps, loads
from posterity.files.container import pack, unpack
from posterity.forgetting import Changepoint, Stabilized, Window

MODEL = BayesianLinearRegression(forgetting=Stabilized(discount=0.99)).fit(X, Y)


# ---- models --------------------------------------------------------------------------------------


class Own(Stabilized):
    """A strategy that is not posterity's own."""


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (BayesianLinearRegression, "the class BayesianLinearRegression is not a model"),
        ("model", "str is not a model: give an estimator of posterity"),
        (make_pipeline(StandardScaler(), BayesianLinearRegression()), "the model is a sklearn"),
        (BayesianLinearRegression(basis=PolynomialFeatures()), "basis is a sklearn.*Polynomial"),
        (
            BayesianLinearRegression(forgetting=Own(0.9)),
            "forgetting is a .*Own: a model file holds",
        ),
        (BayesianLinearRegression(prior_mean=lambda: 0), "prior_mean is the function or class"),
        (BayesianLinearRegression(prior_mean=np.zeros(1, complex)), "of the type complex128"),
        (BayesianLinearRegression(prior_mean=np.zeros(1, "M8[s]")), "of the type datetime64"),
        (
            BayesianLinearRegression(basis=RandomFourier(random_state=np.random.RandomState(0))),
            r"basis.random_state is a numpy.random.*RandomState",
        ),
    ],
)
def test_what_a_file_cannot_hold(model: Any, message: str) -> None:
    with pytest.raises(ModelFileError, match=message):
        dumps(model)


def test_where_it_is_in_an_average() -> None:
    model = averaged()
    model.models[1][1].basis = StandardScaler()
    with pytest.raises(ModelFileError, match=r"models\[1\]\[1\].basis is a sklearn"):
        dumps(model)


# ---- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [b"", b"x", b"\0" * 200, b"PK\x03\x04" + b"\0" * 200, b"\x80\x04\x95" + b"." * 200],
    ids=["empty", "short", "zeros", "zip", "pickle"],
)
def test_what_is_not_ours(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=r"model: this is not a model file of posterity"):
        load(path)


def test_a_safetensors_file_of_others() -> None:
    header = b'{"weight":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}}'
    with pytest.raises(ModelFileError, match="not a model file of posterity"):
        loads(struct.pack("<Q", len(header)) + header + b"\0" * 8)


def test_a_file_that_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "model"
    save(MODEL, path)
    whole = path.read_bytes()
    path.write_bytes(whole[:300])
    with pytest.raises(ModelFileError, match=r"should be [\d,]+ bytes long, and the file ends"):
        load(path)
    path.write_bytes(whole[:-1])
    with pytest.raises(ModelFileError, match="the file is damaged: its checksum does not match"):
        load(path)
    path.write_bytes(whole + b"\0")
    with pytest.raises(ModelFileError, match="the file is damaged"):
        load(path)


def test_a_file_that_is_too_new() -> None:
    document, arrays = unpack(dumps(MODEL))
    parts = json.loads(document) | {"schema": 99, "library": "7.0"}
    message = "the file has schema 99, written by posterity 7.0; .* upgrade posterity"
    with pytest.raises(ModelFileError, match=message):
        loads(pack(json.dumps(parts), arrays))


def test_a_missing_file_is_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "no")


# ---- corruption ----------------------------------------------------------------------------------


def damaged(content: bytes, rng: random.Random) -> bytes:
    """One random corruption of a file."""
    broken = bytearray(content)
    kind = rng.randrange(6)
    if kind == 0:  # flip a few bits
        for _ in range(rng.choice([1, 1, 1, 2, 8])):
            broken[rng.randrange(len(broken))] ^= 1 << rng.randrange(8)
    elif kind == 1:  # cut off
        del broken[rng.randrange(len(broken)) :]
    elif kind == 2:  # another length of the header
        broken[:8] = struct.pack("<Q", rng.choice([0, 1, rng.randrange(2**16), 2**63, 2**64 - 1]))
    elif kind == 3:  # noise, somewhere
        start = rng.randrange(len(broken))
        noise = rng.randbytes(rng.randrange(1, 200))
        broken[start : start + len(noise)] = noise
    elif kind == 4:  # a piece twice, or missing
        start, stop = sorted(rng.randrange(len(broken)) for _ in range(2))
        broken[start:stop] = broken[start:stop] * rng.choice([0, 2])
    else:  # a hostile header
        text = rng.choice([b"[" * 5000, b'{"a":' * 5000, b"NaN", b"{}", b"9" * 5000, b'"\\ud800"'])
        broken[8 : 8 + len(text)] = text
    return bytes(broken)


def refuses_or_is_the_same(content: bytes, broken: bytes) -> None:
    try:
        loaded = loads(broken)
    except ModelFileError:
        return
    assert dumps(loaded) == content


CONTENTS = {case.name: dumps(taught(case)) for case in cases()[::7]}


def test_ten_thousand_random_corruptions() -> None:
    rng = random.Random(2)
    for _ in range(10_000):
        content = rng.choice(list(CONTENTS.values()))
        refuses_or_is_the_same(content, damaged(content, rng))


# ---- hostile documents, with a checksum that is right --------------------------------------------

JUNK = [
    None, True, -1, 0, 1, 2**31, 2**63, 10**400, 0.5, -1e308, "", "x", "F64", [], {}, [[]], [1, 2],
    {"float": "nan"}, {"float": "x"}, {"object": 0}, {"object": -1}, {"object": 10**9}, {"list": 3},
    {"dict": [[[], 1]]}, {"class": "os.system", "fields": {}}, {"scalar": "F64", "of": "x"},
    {"tuple": [{"object": 1}]}, {"class": "Change", "fields": {"row": 1, "earlier": None}},
    {"factor": "0", "targets": 10**9, "counts": [1, 1]}, {"array": "0", "spread": [10**9, 10**9]},
]  # fmt: skip


def places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a document: what holds it, and its key or index there."""
    inner = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in inner:
        yield node, key
        if isinstance(value, dict | list):
            yield from places(value)


def hostile(content: bytes, rng: random.Random) -> bytes:
    document, arrays = unpack(content)
    parts = json.loads(document)
    for _ in range(rng.choice([1, 1, 2])):
        holder, key = rng.choice(list(places(parts)))
        if isinstance(holder, dict) and rng.random() < 0.3:
            holder[rng.choice(["class", "fields", "__init__", "predict", "_row_path"])] = (
                holder.pop(key)
            )
        else:
            holder[key] = copy.deepcopy(rng.choice(JUNK))
    if rng.random() < 0.3:
        name = rng.choice(list(arrays))
        changed = rng.choice(
            [np.zeros(0), np.full(7, np.nan), arrays[name].ravel()[:-1], np.array(3)]
        )
        arrays = arrays | {name: np.ascontiguousarray(changed)}
    return pack(json.dumps(parts), arrays)


def check_hostile(rng: random.Random, times: int) -> None:
    for _ in range(times):
        content = hostile(rng.choice(list(CONTENTS.values())), rng)
        try:
            model = loads(content)
        except ModelFileError:
            continue
        with np.errstate(all="ignore"):
            use(model)


def use(model: Any) -> None:
    """A document that was made up may make a model of no use, but none that breaks the process."""
    for method in (
        lambda: model.predict(X[:5]),
        lambda: model.partial_fit(X[:5], Y[:5]),
        lambda: model.predict_then_learn(X[:5], Y[:5]),
    ):
        with contextlib.suppress(Exception):
            method()


@pytest.mark.filterwarnings("ignore")
def test_documents_that_were_made_up() -> None:
    check_hostile(random.Random(3), 300)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_many_documents_that_were_made_up() -> None:
    check_hostile(random.Random(4), 5_000)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda o: o.update({"class": "os.system"}),
            "'os.system' is not a class that a model file may",
        ),
        (lambda o: o["fields"].pop("discount"), r"Stabilized has fields too few .*\['discount'\]"),
        (lambda o: o["fields"].update(discount="x"), "Stabilized.discount is 'x', which is not a"),
        (lambda o: o["fields"].update(discount=2.0), "discount is 2.0: it must be above 0"),
        (
            lambda o: o["fields"].update(discount={"object": 99}),
            "object 99 is used before it is defined",
        ),
    ],
)
def test_what_is_wrong_in_a_document_is_said(change: Callable[[Any], Any], message: str) -> None:
    document, arrays = unpack(dumps(MODEL))
    parts = json.loads(document)
    change(next(o for o in parts["objects"] if o.get("class") == "Stabilized"))
    with pytest.raises(ModelFileError, match=f"the file's content can't be read: .*{message}"):
        loads(pack(json.dumps(parts), arrays))


def test_attributes_can_not_be_smuggled_in() -> None:
    document, arrays = unpack(dumps(MODEL))
    for name in ("predict", "__class__", "_row_path", "not a name"):
        parts = json.loads(document)
        parts["objects"][-1]["fields"][name] = 1
        with pytest.raises(ModelFileError, match=f"has no attribute '{name}'"):
            loads(pack(json.dumps(parts), arrays))


@pytest.mark.parametrize("field", ["X", "y", "weights", "times"])
def test_parts_that_do_not_fit_together(field: str) -> None:
    model = BayesianLinearRegression(forgetting=Window(size=20), prior_precision=1.0).fit(X, Y)
    kept = model._posterior_or_none.stored_rows
    setattr(kept, field, getattr(kept, field)[:-1])
    with pytest.raises(
        ModelFileError, match="parts of a LinearPosterior do not have matching shapes"
    ):
        loads(dumps(model))


def test_runs_that_do_not_fit_together() -> None:
    model = BayesianLinearRegression(forgetting=Changepoint(), prior_precision=1.0).fit(X, Y)
    model._posterior_or_none.hypotheses.changes.append(None)
    with pytest.raises(ModelFileError, match="parts of a BankedRuns do not have matching shapes"):
        loads(dumps(model))
