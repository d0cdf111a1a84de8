"""What a kill, or a database that is away, may do: nothing."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the service needs posterity[service]")
pytest.importorskip("httpx")

import numpy as np

from posterity import BayesianLinearRegression
from posterity.bandits import Bandit
from posterity.files import dumps
from posterity.service.engine import Engine
from posterity.service.run import audit, open_store
from posterity.service.store import Store
from posterity.service.writing import Group
from tests.service.harness import ARMS, Service, with_service

URL, ROWS_URL = "/v1/experiments/e", "/v1/predictors/p"


def test_a_commit_that_fails_was_never_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def do(service: Service) -> None:
        await service.put(URL, ARMS)
        one = (await service.post(f"{URL}/decide", {"context": [1.0]}))["id"]
        before = (await service.ask("GET", f"{URL}/model")).content
        commit = Store.commit

        def full(_: Store, __: Group) -> None:
            raise OSError("no space left on device")

        monkeypatch.setattr(Store, "commit", full)
        asked = {"decision_id": one, "value": 1.0}
        answer = await service.ask("POST", f"{URL}/reward", asked)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        monkeypatch.setattr(Store, "commit", commit)
        while not service.engine.ready:
            await asyncio.sleep(0.01)
        assert (await service.ask("GET", f"{URL}/model")).content == before
        assert (await service.post(f"{URL}/reward", asked))["status"] == "new"

    with_service(tmp_path, do)


def test_the_log_alone_makes_the_same_model_and_an_audit_the_same_decisions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("posterity.service.engine.SNAPSHOT_EVERY", 25)
    made = []

    async def do(service: Service) -> bytes:
        await service.put(URL, ARMS)
        rng = np.random.default_rng(1)
        for n in range(60):
            asked = {"context": [float(rng.normal())], "id": str(n)}
            one = await service.post(f"{URL}/decide", asked)
            made.append(one)
            reward = {"decision_id": str(rng.integers(n + 1)), "value": float(rng.normal())}
            await service.post(f"{URL}/reward", {**reward, "correct": True})
            if n % 10 == 9:
                await service.crash()
                await service.start()
        content: bytes = (await service.ask("GET", f"{URL}/model")).content
        return content

    content = with_service(tmp_path, do)
    store = Store(f"sqlite:///{tmp_path / 'posterity.db'}")
    engine = Engine(store)
    kept = store.read_models()[0]
    assert dumps(engine.restore(kept).model) == content
    with store.engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM snapshot")
    assert dumps(engine.restore(kept).model) == content
    for one in made[::7]:
        answer = audit(str(tmp_path), "e", one["id"])
        assert answer["same"], answer
        assert answer["arm"] == one["arm"]
    store.close()
    with pytest.raises(ValueError, match="no decision 'nothing'"):
        audit(str(tmp_path), "e", "nothing")


def test_a_database_of_another_version_is_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'posterity.db'}"
    store = Store(url)
    with store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE meta SET value = '99' WHERE name = 'version'")
    store.close()
    with pytest.raises(ValueError, match="version 99"):
        Store(url)


# ---- a process that is killed --------------------------------------------------------------------


class Served:
    """``posterity serve`` in a process of its own."""

    def __init__(self, folder: Path, token: str = "", database: str | None = None) -> None:
        self.folder, self.token, self.database = folder, token, database
        self.port = random.SystemRandom().randrange(20_000, 60_000)
        self.start()

    def start(self) -> None:
        command = (
            "from posterity.service.run import serve; "
            f"serve({str(self.folder)!r}, port={self.port}, database={self.database!r})"
        )
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", command],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        if not self.token:
            assert self.process.stdout is not None
            self.token = self.process.stdout.readline().rsplit(" ", 1)[-1].strip()
        for _ in range(3600):
            assert self.process.poll() is None, f"ended by {self.process.returncode} at its start"
            try:
                self.ask("GET", "/readyz")
                return
            except OSError:
                time.sleep(0.05)
        raise AssertionError("the server did not start")

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        content = self.bytes(method, path, body)
        return json.loads(content)

    def bytes(self, method: str, path: str, body: Any = None) -> bytes:
        plain = body is None or isinstance(body, bytes)
        given = body if plain else json.dumps(body).encode()
        headers = {"authorization": f"Bearer {self.token}"}
        url = f"http://127.0.0.1:{self.port}{path}"
        request = urllib.request.Request(url, given, headers, method=method)
        with urllib.request.urlopen(request, timeout=20) as answer:
            content: bytes = answer.read()
            return content

    def end(self, how: int) -> int:
        self.process.send_signal(how)
        code = self.process.wait(30)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


def load(server: Served, seed: int, stop: threading.Event, sent: dict[str, Any]) -> None:
    """Decide and reward until the server is gone; keep what was acknowledged."""
    rng = random.Random(seed)
    n = 0
    while not stop.is_set():
        id, age = f"{seed}-{n}", rng.uniform(-1.0, 1.0)
        n += 1
        try:
            answer = server.ask("POST", f"{URL}/decide", {"id": id, "context": [age]})
            sent[id] = {"decided": answer, "age": age}
            value = rng.uniform(0.0, 1.0)
            sent[id]["tried"] = value
            server.ask("POST", f"{URL}/reward", {"decision_id": id, "value": value})
            sent[id]["rewarded"] = value
            rows = [{"id": f"{id}.{one}", "x": {"a": age + one}, "y": age} for one in range(5)]
            server.ask("POST", f"{ROWS_URL}/learn/batch", {"rows": rows})
            sent[id]["learned"] = True
            if n % 10 == 5:
                server.ask("PUT", f"/v1/predictors/{id}/model", FILE)
                sent[id]["uploaded"] = True
        except urllib.error.HTTPError as error:
            sent.setdefault(id, {"age": age})["refused"] = error.code
            time.sleep(0.05)
        except (OSError, http.client.HTTPException):  # the answer was cut off
            return


def check(server: Served, sent: dict[str, Any]) -> None:
    """All that was acknowledged is in the log, once, and the model is what the log makes."""
    lines = server.bytes("GET", f"{URL}/log").splitlines()
    log = [json.loads(line) for line in lines]
    assert len({one["id"] for one in log}) == len(log)
    by_id = {one["id"]: one for one in log}
    for id, one in sent.items():
        assert one.get("refused", 503) == 503  # the database was away
        if "decided" not in one:
            continue
        assert by_id[id]["arm"] == one["decided"]["arm"]
        assert by_id[id]["propensity"] == one["decided"]["propensity"]
        if "rewarded" in one:
            assert by_id[id]["reward"] == one["rewarded"]
        asked = {"id": id, "context": [one["age"]]}
        if id.endswith("0"):
            assert server.ask("POST", f"{URL}/decide", asked) == one["decided"]
    check_rows(server, sent)
    store = open_store(str(server.folder), server.database)
    bandit = Bandit(arms=["red", "blue"], rng=0)
    for happened in store.read_events("e", 0):  # each reward once, in the order of the log
        arm = ("red", "blue")[happened["arm"]]
        bandit.learn_one(np.frombuffer(happened["context"]), arm, happened["total"])
    store.close()
    assert server.bytes("GET", f"{URL}/model") == dumps(bandit)


FILE = dumps(BayesianLinearRegression().fit([[0.0], [1.0], [3.0]], [0.0, 1.0, 2.0]))


def check_rows(server: Served, sent: dict[str, Any]) -> None:
    """Each batch is in the log as a whole or not at all, and so is each file."""
    store = open_store(str(server.folder), server.database)
    rows = list(store.read_rows("p", 0))
    store.close()
    batches = Counter(one["row_id"].split(".")[0] for one in rows)
    assert set(batches.values()) <= {5}
    assert len({one["row_id"] for one in rows}) == len(rows)
    model = BayesianLinearRegression()
    for one in rows:
        model.learn_one(json.loads(one["x"])[0], one["y"])
    if rows:
        assert server.bytes("GET", f"{ROWS_URL}/model") == dumps(model)
    for id, one in sent.items():
        assert id in batches or "learned" not in one
        if "uploaded" in one:
            assert server.bytes("GET", f"/v1/predictors/{id}/model") == FILE


def killed(
    folder: Path,
    kills: int,
    seconds: float,
    database: str | None = None,
    away: Callable[[int], None] = lambda _: None,
) -> int:
    """Kill a server under load so many times; how many decisions were acknowledged.

    ``away`` is called with the number of the kill while the load goes on, before the kill.
    """
    server = Served(folder, database=database)
    sent: dict[str, Any] = {}
    try:
        server.ask("PUT", URL, ARMS)
        server.ask("PUT", ROWS_URL, {"features": {"a": "number"}})
        for kill in range(kills):
            stop = threading.Event()
            threads = [
                threading.Thread(target=load, args=(server, 100 * kill + one, stop, sent))
                for one in range(4)
            ]
            for thread in threads:
                thread.start()
            time.sleep(random.Random(kill).uniform(0.2 * seconds, seconds))
            away(kill)
            server.end(signal.SIGKILL)
            stop.set()
            for thread in threads:
                thread.join(60)
            server.start()
            check(server, sent)
        assert server.end(signal.SIGTERM) == 0
        server.start()
        check(server, sent)
    finally:
        if server.process.poll() is None:
            server.end(signal.SIGKILL)
    return len(sent)


def test_nothing_acknowledged_is_lost_or_counted_twice_after_a_kill(tmp_path: Path) -> None:
    assert killed(tmp_path, kills=2, seconds=1.0) > 0


def tried(server: Served, path: str, body: Any) -> int:
    """The status of an answer."""
    try:
        server.ask("POST", path, body)
    except urllib.error.HTTPError as error:
        return error.code
    return 200


def test_a_full_disk_is_503_and_all_goes_on_when_there_is_room(tmp_path: Path) -> None:
    server = Served(tmp_path)
    pid, unlimited = server.process.pid, resource.RLIM_INFINITY
    try:
        server.ask("PUT", URL, ARMS)
        body = {"decisions": [{"context": [0.1], "id": f"{one}"} for one in range(20)]}
        assert tried(server, f"{URL}/decide/batch", body) == 200
        assert tried(server, f"{URL}/reward", {"decision_id": "7", "value": 1.0}) == 200
        # No file may be larger than this: what a write then says is what a full disk says.
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (400_000, unlimited))
        done, refused = 1, 0
        while refused < 3:
            assert done < 400
            body = {"decisions": [{"context": [0.1], "id": f"{done}-{one}"} for one in range(20)]}
            status = tried(server, f"{URL}/decide/batch", body)
            assert status in (200, 503)
            done, refused = done + (status == 200), refused + (status == 503)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (unlimited, unlimited))
        for _ in range(200):
            status = tried(server, f"{URL}/decide", {"context": [0.1], "id": "after"})
            if status == 200:
                break
            time.sleep(0.1)
        assert status == 200
        check(server, {})
        assert len(server.bytes("GET", f"{URL}/log").splitlines()) == 20 * done + 1
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (400_000, unlimited))
        assert server.end(signal.SIGTERM) == 0  # its snapshots are not kept, and nothing is lost
        server.start()
        check(server, {})
    finally:
        server.end(signal.SIGKILL)


def test_a_copy_that_is_made_under_load_is_of_one_moment(tmp_path: Path) -> None:
    server = Served(tmp_path / "first")
    sent: dict[str, Any] = {}
    stop = threading.Event()
    threads = [threading.Thread(target=load, args=(server, one, stop, sent)) for one in range(2)]
    try:
        server.ask("PUT", URL, ARMS)
        server.ask("PUT", ROWS_URL, {"features": {"a": "number"}})
        for thread in threads:
            thread.start()
        while sum("rewarded" in one for one in [*sent.values()]) < 20:
            time.sleep(0.01)
        before = {id: dict(one) for id, one in [*sent.items()] if "rewarded" in one}
        (tmp_path / "second").mkdir()
        copy = str(tmp_path / "second" / "posterity.db")
        with contextlib.closing(sqlite3.connect(tmp_path / "first" / "posterity.db")) as base:
            base.execute("VACUUM INTO ?", [copy])
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
        server.end(signal.SIGKILL)
    copied = Served(tmp_path / "second", server.token)
    try:
        check(copied, before)  # what was answered before the copy, and the model of its own log
        copied.ask("POST", f"{URL}/decide", {"context": [0.1]})
    finally:
        copied.end(signal.SIGTERM)


def test_a_clock_that_jumps_back_changes_no_order_and_learns_no_default_twice(
    tmp_path: Path,
) -> None:
    now = [1000.0]

    async def do(service: Service) -> None:
        await service.put(URL, {**ARMS, "horizon": 10.0, "default_reward": -1.0})
        for n, at in enumerate((1000.0, 500.0, 2000.0, 1.0)):
            now[0] = at
            await service.post(f"{URL}/decide", {"context": [1.0], "id": str(n)})
        told = await service.post(f"{URL}/reward", {"decision_id": "0", "value": 2.0})
        assert told == {"status": "new", "total": 2.0}
        for at in (1011.0, 3.0, 1011.0, 3000.0, 3000.0):
            now[0] = at
            await service.engine.upkeep.expire("e")
        lines = (await service.ask("GET", f"{URL}/log")).text.splitlines()
        log = [json.loads(line) for line in lines]
        assert [one["id"] for one in log] == ["0", "1", "2", "3"]
        assert [one["reward"] for one in log] == [2.0, -1.0, -1.0, -1.0]
        before = (await service.ask("GET", f"{URL}/model")).content
        await service.crash()
        await service.start()
        assert (await service.ask("GET", f"{URL}/model")).content == before
        events = list(service.engine.store.read_events("e", 0))
        assert len(events) == 4

    with_service(tmp_path, do, clock=lambda: now[0])


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_two_hundred_kills(tmp_path: Path) -> None:
    assert killed(tmp_path, kills=200, seconds=1.0) > 200
