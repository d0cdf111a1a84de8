"""A file of a few bytes can't ask for much memory or time; a terminal obeys none of its text."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from posterity import BayesianLinearRegression
from posterity.basis import Spline
from posterity.files import ModelFileError, dumps, load, loads
from posterity.files.container import pack, unpack
from posterity.files.triangles import LARGEST_SPARSE

FRESH = BayesianLinearRegression(prior_precision=1.0).fit([[0.0], [1.0]], [0.0, 1.0])


def with_objects(*nodes: object, **arrays: np.ndarray) -> bytes:
    """The file of a small model, with more objects in front of its own."""
    document, kept = unpack(dumps(FRESH))
    parts = json.loads(document)
    parts["objects"] = [*parts["objects"], *nodes]
    return pack(json.dumps(parts), {**kept, **arrays})


def refused_within(content: bytes, megabytes: float) -> str:
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError) as caught:
            loads(content)
        assert tracemalloc.get_traced_memory()[1] < megabytes * 1e6
    finally:
        tracemalloc.stop()
    return str(caught.value)


def test_empty_triangles_do_not_fill_the_memory() -> None:
    q = LARGEST_SPARSE
    empty = {"places": np.zeros(0, np.int32), "values": np.zeros(0)}
    node = {"factor": "places", "values": "values", "size": "size", "targets": 1, "counts": [0, 0]}
    content = with_objects(*[node] * 40, size=np.array(q * (q + 1) // 2), **empty)
    assert len(content) < 10_000
    assert "far more memory" in refused_within(content, 600.0)


@pytest.mark.parametrize(
    "node",
    [
        {"bank": "stack", "capacity": 1_000_000},
        {"array": "one", "spread": [1_000_000, 1_000_000]},
        {"labels": ["a"] * 9, "dtype": "<U100000000", "shape": [9]},
    ],
)
def test_small_nodes_do_not_fill_the_memory(node: dict[str, object]) -> None:
    content = with_objects(node, stack=np.zeros((0, 500, 504)), one=np.zeros((1, 1)))
    assert "far more memory" in refused_within(content, 50.0)


def test_large_priors_are_saved_so_that_they_can_be_loaded() -> None:
    """What is written sparse is bounded as what is read."""
    model = BayesianLinearRegression(prior_precision=1.0).learn_one(np.zeros(3000), 0.0)
    content = dumps(model)
    assert len(content) < 1_000_000
    assert dumps(loads(content)) == content


def test_a_header_of_many_entries_is_refused_at_once() -> None:
    document, arrays = unpack(dumps(FRESH))
    with pytest.raises(ModelFileError, match="too many names, labels or keys"):
        pack(document + "{" * 600_000, arrays)


def test_a_file_larger_than_the_memory_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.write(dumps(FRESH)[:120])
        file.truncate(8 * 10**12)
    with pytest.raises(ModelFileError, match="needs 8,000 GB of memory"):
        load(path)


def test_escapes_in_a_file_are_not_printed_raw() -> None:
    document, arrays = unpack(dumps(FRESH))
    parts = json.loads(document)
    parts.update(schema=99, library="1.0\x1b[2J\x07")
    with pytest.raises(ModelFileError) as caught:
        loads(pack(json.dumps(parts), arrays))
    assert "1.0\\x1b[2J\\x07" in str(caught.value)
    assert str(caught.value).isprintable()


# ---- what is not a file, and sizes that are asked for --------------------------------------------


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_pipes_folders_and_devices_are_refused_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ModelFileError, match=r"pipe: this is a pipe or a device and not a file"):
        load(pipe)
    with pytest.raises(IsADirectoryError):
        load(tmp_path)
    with pytest.raises(ModelFileError, match=r"/dev/null: this is a pipe or a device"):
        load("/dev/null")


def test_a_long_header_takes_memory_in_proportion() -> None:
    document, arrays = unpack(dumps(FRESH))
    parts = json.loads(document) | {"format": "x" * 10_000_000}
    content = pack(json.dumps(parts), arrays)
    assert "not marked as a model" in refused_within(content, 50.0)


@pytest.mark.parametrize("degree", [31, 10_000])
def test_a_spline_of_a_high_degree_is_refused_before_it_is_made(degree: int) -> None:
    model = BayesianLinearRegression(basis=Spline()).fit(np.arange(9.0)[:, None], np.arange(9.0))
    document, arrays = unpack(dumps(model))
    parts = json.loads(document)
    for node in parts["objects"]:
        if node.get("class") == "Spline":
            node["fields"]["degree"] = degree
    message = refused_within(pack(json.dumps(parts), arrays), 5.0)
    assert f"degree is {degree}" in message
    with pytest.raises(ValueError, match=f"degree is {degree}: at most 30 makes sense"):
        Spline(degree=degree).fit([[0.0], [1.0]])
