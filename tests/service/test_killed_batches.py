"""A kill in the middle of batches, uploads and deletions: each is whole, or was never there."""

from __future__ import annotations

import random
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the service needs posterity[service]")
pytest.importorskip("httpx")

import numpy as np

from posterity import BayesianLinearRegression
from posterity.files import dumps
from posterity.service import Client
from posterity.service.engine import Engine
from posterity.service.run import open_store
from tests.service.test_crashes import Served

pytestmark = [pytest.mark.processes, pytest.mark.slow]

ROWS = 150
FITTED = BayesianLinearRegression().fit(np.arange(40.0).reshape(20, 2) % 7, np.arange(20.0))
FILE = dumps(FITTED)


def list_rows(name: str) -> list[tuple[str, list[float], float]]:
    n = int(name.split()[1])
    return [(f"{name} {k}", [float(k), n % 5.0], k * 0.1) for k in range(ROWS)]


def send(client: Client, kind: str, stop: threading.Event, told: dict[str, str]) -> None:
    """Send one after the other until the server is gone; what was answered is noted by name."""
    done = sum(name.startswith(kind) for name in told)
    for name in (f"{kind} {n}" for n in range(done, 10_000)):
        told[name] = "sent"
        try:
            if kind == "batch":
                client.learn_batch("p", list_rows(name))
            elif kind == "upload":
                client.upload(name, FILE)
            else:
                client.put("predictors", name, features=["a"])
                client.learn(name, "1", [1.0], 1.0)
                client.delete("predictors", name)
        except OSError:
            return
        told[name] = "answered"
        if stop.is_set():
            return


def check(client: Client, told: dict[str, str]) -> None:
    names = {one["name"] for one in client.models("predictors")}
    for name, status in told.items():
        if name.startswith("batch"):
            answers = {one["status"] for one in client.learn_batch("p", list_rows(name))}
            assert answers == {"duplicate"} or (answers, status) == ({"new"}, "sent")
            told[name] = "answered"
        elif status == "answered":
            assert (name in names) == name.startswith("upload")
        if name.startswith("upload") and name in names:
            assert client.download("predictors", name) == FILE


def test_what_was_answered_is_whole_after_kills(tmp_path: Path) -> None:
    server, told = Served(tmp_path), dict[str, str]()
    client = Client(server.token, f"http://127.0.0.1:{server.port}", tries=1)
    client.put("predictors", "p", features=["a", "b"])
    for _ in range(4):
        stop = threading.Event()
        threads = [
            threading.Thread(target=send, args=(client, kind, stop, told))
            for kind in ("batch", "upload", "delete")
        ]
        for one in threads:
            one.start()
        threads[0].join(random.SystemRandom().uniform(0.3, 1.5))
        server.end(signal.SIGKILL)
        stop.set()
        for one in threads:
            one.join()
        server.start()
        check(client, told)
    model = client.download("predictors", "p")
    server.end(signal.SIGTERM)
    store = open_store(str(tmp_path), None)
    with store.engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM snapshot")
    kept: Any = next(one for one in store.read_models() if one["name"] == "p")
    assert dumps(Engine(store).restore(kept).model) == model
    store.close()
