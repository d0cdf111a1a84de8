"""The same log on PostgreSQL, by a server of its own where this machine has one."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the service needs posterity[service]")
pytest.importorskip("httpx")
pytest.importorskip("psycopg", reason="PostgreSQL needs psycopg")

import sqlalchemy as sql

from posterity.files import dumps
from posterity.service import schema
from posterity.service.engine import Engine
from posterity.service.run import serve
from posterity.service.store import Store
from posterity.service.writing import Group
from tests.service.harness import ARMS, Service, with_service
from tests.service.test_crashes import killed

URL = "/v1/experiments/e"


def program(name: str) -> str:
    """A program of the server, which Debian does not put where programs are looked for."""
    folders = sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin")), reverse=True)
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join(folders)) or ""


class Postgres:
    """A server in a folder of its own, which never listens beyond this machine."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        # PostgreSQL refuses to be run by root.
        self.user: dict[str, Any] = {}
        if os.getuid() == 0:
            shutil.chown(folder, "postgres")
            self.user = {"user": "postgres", "group": "postgres"}
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            self.port = one.getsockname()[1]
        self.run("initdb", "-D", f"{folder}/data", "-A", "trust", "-U", "posterity", "--no-sync")

    @property
    def url(self) -> str:
        return f"postgresql://posterity@127.0.0.1:{self.port}/postgres"

    def run(self, name: str, *given: str) -> None:
        nothing = subprocess.DEVNULL
        subprocess.run(
            [program(name), *given],
            check=True,
            cwd=self.folder,
            stdout=nothing,
            stderr=nothing,
            **self.user,
        )

    def start(self) -> None:
        given = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1"
        log = f"{self.folder}/log"
        self.run("pg_ctl", "-D", f"{self.folder}/data", "-o", given, "-l", log, "-w", "start")

    def kill(self) -> None:
        """The first of its processes; the others end when they see that it is gone."""
        with open(f"{self.folder}/data/postmaster.pid") as file:
            pid = int(file.readline())
        os.kill(pid, signal.SIGKILL)
        while os.path.exists(f"/proc/{pid}"):
            time.sleep(0.01)
        for _ in range(100):
            try:
                self.start()
            except subprocess.CalledProcessError:  # not all of them are gone
                time.sleep(0.1)
            else:
                return
        raise AssertionError("the server did not start again")

    def stop(self, mode: str = "fast") -> None:
        self.run("pg_ctl", "-D", f"{self.folder}/data", "-m", mode, "-w", "stop")


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    if not (program("initdb") and program("pg_ctl")):
        pytest.skip("needs the programs of a PostgreSQL server: initdb and pg_ctl")
    folder = tempfile.mkdtemp(prefix="posterity-postgres-")
    try:
        server = Postgres(folder)
        server.start()
        yield server
        server.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def url(postgres: Postgres) -> Iterator[str]:
    """An empty database."""
    yield postgres.url
    engine = sql.create_engine(postgres.url.replace("postgresql", "postgresql+psycopg"))
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP SCHEMA public CASCADE")
        connection.exec_driver_sql("CREATE SCHEMA public")
    engine.dispose()


def test_a_dump_that_is_made_while_it_runs_restores_all_that_was_answered(
    tmp_path: Path, url: str, postgres: Postgres
) -> None:
    if not (program("pg_dump") and program("psql")):
        pytest.skip("needs the programs pg_dump and psql")
    dump = f"{postgres.folder}/dump.sql"

    async def do(service: Service) -> bytes:
        await service.put(URL, ARMS)
        await played(service, 0, 12)
        await asyncio.to_thread(postgres.run, "pg_dump", "-f", dump, url)
        before: bytes = (await service.ask("GET", f"{URL}/model")).content
        await played(service, 12, 3)
        return before

    before = with_service(tmp_path, do, database=url)
    postgres.run("createdb", "-h", "127.0.0.1", "-p", f"{postgres.port}", "-U", "posterity", "copy")
    other = url.replace("/postgres", "/copy")
    postgres.run("psql", "-q", "-f", dump, other)

    async def restored() -> None:
        service = Service(tmp_path, database=other)
        await service.start()
        assert not service.token  # it has those of the first
        model = service.engine.experiment("e").model
        assert dumps(model) == before
        await service.stop()

    asyncio.run(restored())


async def played(service: Service, first: int, count: int) -> list[Any]:
    made = []
    for n in range(first, first + count):
        body = {"context": [0.1 * (n % 7)], "id": f"d{n}"}
        made.append(await service.post(f"{URL}/decide", body))
        await service.post(f"{URL}/reward", {"decision_id": f"d{n}", "value": float(n % 3)})
    return made


def test_the_model_after_a_crash_is_the_same_and_nothing_counts_twice(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("posterity.service.engine.SNAPSHOT_EVERY", 10)

    async def do(service: Service) -> None:
        await service.put(URL, {**ARMS, "horizon": 60.0})
        made = await played(service, 0, 12)
        before = (await service.ask("GET", f"{URL}/model")).content
        await service.crash()
        await service.start()
        assert (await service.ask("GET", f"{URL}/model")).content == before
        for n, one in enumerate(made):
            body = {"context": [0.1 * (n % 7)], "id": one["id"]}
            assert await service.post(f"{URL}/decide", body) == one
            reward = {"decision_id": one["id"], "value": float(n % 3)}
            assert (await service.post(f"{URL}/reward", reward))["status"] == "duplicate"
        batch = {"decisions": [{"context": [0.5]}] * 50}
        assert len((await service.post(f"{URL}/decide/batch", batch))["decisions"]) == 50
        deleted = await service.ask("DELETE", f"{URL}/decisions/d3")
        assert deleted.status_code == 200
        log = (await service.ask("GET", f"{URL}/log")).text.splitlines()
        assert len(log) == 12 + 50 - 1
        await service.put("/v1/predictors/p", {"features": ["a"]})
        for n in range(5):
            row = {"id": str(n), "x": [float(n)], "y": 2.0 * n}
            assert (await service.post("/v1/predictors/p/learn", row))["status"] == "new"
        assert (await service.post("/v1/predictors/p/unlearn", {"id": "2"}))["status"]
        overview = await service.ask("GET", "/v1/overview")
        assert overview.status_code == 200, overview.text
        assert (await service.ask("GET", f"{URL}/evaluate?policy=uniform")).status_code == 200

    with_service(tmp_path, do, database=url)


def test_a_server_that_is_killed_is_503_until_it_is_back(
    tmp_path: Path, url: str, postgres: Postgres
) -> None:
    async def do(service: Service) -> None:
        await service.put(URL, ARMS)
        await played(service, 0, 5)
        before = (await service.ask("GET", f"{URL}/model")).content
        postgres.stop("immediate")
        body = {"context": [1.0], "id": "late"}
        try:
            refused = await service.ask("POST", f"{URL}/decide", body)
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        finally:
            postgres.start()
        for _ in range(100):
            answer = await service.ask("POST", f"{URL}/decide", body)
            if answer.status_code == 200:
                break
            assert answer.status_code == 503
            await service.pause()
        assert answer.status_code == 200, answer.text
        assert (await service.ask("GET", f"{URL}/model")).content == before
        await played(service, 5, 3)

    with_service(tmp_path, do, database=url)


def test_a_second_server_of_one_database_is_refused_also_after_it_was_away(
    url: str, postgres: Postgres
) -> None:
    first, second = Store(url), Store(url)
    try:
        first.claim()
        with pytest.raises(ValueError, match="another server uses this database"):
            second.claim()
        postgres.stop("immediate")
        postgres.start()
        second.claim()
        group = Group()
        group.add(schema.meta, name="written", value="by the first")
        with pytest.raises(sql.exc.SQLAlchemyError):
            first.commit(group)
        first.read_last_number()  # it may read, by other connections
        with pytest.raises(ValueError, match="another server uses this database"):
            first.claim()
    finally:
        first.close()
        second.close()


@pytest.mark.slow
def test_nothing_is_lost_where_the_service_and_the_database_are_killed(
    tmp_path: Path, url: str, postgres: Postgres
) -> None:
    def away(kill: int) -> None:
        if kill % 2:
            postgres.kill()

    assert killed(tmp_path, kills=2, seconds=1.0, database=url, away=away) > 0


def test_servers_that_only_decide_follow_the_one_that_learns(tmp_path: Path, url: str) -> None:
    async def do(learner: Service) -> None:
        await learner.put(URL, ARMS)
        await played(learner, 0, 12)
        decider = Service(tmp_path, database=url, learns=False)
        decider.token = learner.token
        await decider.start()
        try:
            await followed(learner, decider)
        finally:
            await decider.stop()

    with_service(tmp_path, do, database=url)


async def same_model(learner: Service, decider: Service) -> None:
    await decider.engine.follower.catch_up()
    want = (await learner.ask("GET", f"{URL}/model")).content
    assert (await decider.ask("GET", f"{URL}/model")).content == want


async def followed(learner: Service, decider: Service) -> None:
    await same_model(learner, decider)
    # Whichever is asked has the same answer, also if both are asked at once.
    for body in ({"context": [0.3], "id": f"both {n}"} for n in range(20)):
        one, other = await asyncio.gather(
            decider.post(f"{URL}/decide", body), learner.ask("POST", f"{URL}/decide", body)
        )
        if other.status_code == 503:  # the other was quicker: it is sent again
            while not learner.engine.ready:
                await learner.pause()
            other = await learner.ask("POST", f"{URL}/decide", body)
        assert other.json() == one
    # What one decides the other learns, and the first follows.
    for n in range(5):
        one = await decider.post(f"{URL}/decide", {"context": [float(n)]})
        reward = {"decision_id": one["id"], "value": float(n)}
        refused = await decider.ask("POST", f"{URL}/reward", reward)
        assert refused.status_code == 421
        assert (await learner.post(f"{URL}/reward", reward))["status"] == "new"
    await same_model(learner, decider)
    assert (await learner.ask("DELETE", f"{URL}/decisions/d3")).status_code == 200
    await same_model(learner, decider)
    await learner.put(URL, {**ARMS, "policy": "greedy"})
    await learner.put("/v1/predictors/p", {"features": ["a"]})
    await learner.post("/v1/predictors/p/learn", {"id": "1", "x": [1.0], "y": 2.0})
    await same_model(learner, decider)
    assert decider.engine.models["e"].settings.policy == "greedy"
    answer = await decider.ask("POST", "/v1/predictors/p/predict", {"x": [1.0]})
    assert answer.status_code == 200
    # What is deleted there is gone here, also where its name has come back meanwhile.
    await learner.ask("DELETE", "/v1/predictors/p")
    assert await status_becomes(decider, 404, "/v1/predictors/p")
    for features in (["a"], ["a", "b"]):
        await learner.ask("DELETE", "/v1/predictors/p")
        await learner.put("/v1/predictors/p", {"features": features})
    assert (await decider.ask("DELETE", "/v1/predictors/p")).status_code == 421
    await same_model(learner, decider)
    assert decider.engine.models["p"].settings.features == ["a", "b"]
    # Many at once: the log has each of them once, numbered in the order of the commits.
    batch = {"decisions": [{"context": [0.5]}] * 50}
    asked = [one.post(f"{URL}/decide/batch", batch) for one in (learner, decider) * 4]
    await asyncio.gather(*asked)
    log = [json.loads(line) for line in (await decider.ask("GET", f"{URL}/log")).iter_lines()]
    assert len({one["id"] for one in log}) == len(log) == 12 - 1 + 20 + 5 + 400
    numbers = [one["seq"] for one in log]
    assert numbers == sorted(set(numbers))
    # A token that ends here ends there.
    made = await learner.post("/v1/tokens", {"name": "shop", "role": "decide"})
    decider.token = made["token"]
    assert await status_becomes(decider, 200)
    await learner.post("/v1/tokens/revoke", {"name": "shop"})
    assert await status_becomes(decider, 401)


async def status_becomes(service: Service, status: int, url: str = URL) -> bool:
    for _ in range(100):
        if (await service.ask("GET", url)).status_code == status:
            return True
        await service.pause()
    return False


def test_a_server_that_only_decides_needs_one_that_learns(tmp_path: Path, url: str) -> None:
    with pytest.raises(ValueError, match="--database postgresql"):
        serve(str(tmp_path), decide_only=True)
    store = Store(url)
    try:
        with pytest.raises(ValueError, match="start the server that learns first"):
            Engine(store, learns=False)._restore_all()
    finally:
        store.close()


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_two_hundred_kills(tmp_path: Path, url: str, postgres: Postgres) -> None:
    def away(kill: int) -> None:
        if kill % 4 == 0:
            postgres.kill()

    assert killed(tmp_path, kills=200, seconds=1.0, database=url, away=away) > 200
