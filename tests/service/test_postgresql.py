"""The same log on PostgreSQL, by a server of its own where this machine has one."""

from __future__ import annotations

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

from posterity.service import schema
from posterity.service.store import Group, Store
from tests.service.harness import ARMS, Service, with_service
from tests.service.test_crashes import killed

URL = "/v1/experiments/e"


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
        self.run("initdb", "-D", f"{folder}/data", "-A", "trust", "-U", "posterity")

    @property
    def url(self) -> str:
        return f"postgresql://posterity@127.0.0.1:{self.port}/postgres"

    def run(self, *command: str) -> None:
        nothing = subprocess.DEVNULL
        subprocess.run(
            command, check=True, cwd=self.folder, stdout=nothing, stderr=nothing, **self.user
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
    if shutil.which("initdb") is None or shutil.which("pg_ctl") is None:
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
        with pytest.raises(ValueError, match="another server has this database"):
            second.claim()
        postgres.stop("immediate")
        postgres.start()
        second.claim()
        group = Group()
        group.add(schema.meta, name="written", value="by the first")
        with pytest.raises(sql.exc.SQLAlchemyError):
            first.commit(group)
        first.last_number()  # it may read, by other connections
        with pytest.raises(ValueError, match="another server has this database"):
            first.claim()
    finally:
        first.close()
        second.close()


def test_nothing_is_lost_where_the_service_and_the_database_are_killed(
    tmp_path: Path, url: str, postgres: Postgres
) -> None:
    def away(kill: int) -> None:
        if kill % 2:
            postgres.kill()

    assert killed(tmp_path, kills=2, seconds=1.0, database=url, away=away) > 0


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_two_hundred_kills(tmp_path: Path, url: str, postgres: Postgres) -> None:
    def away(kill: int) -> None:
        if kill % 4 == 0:
            postgres.kill()

    assert killed(tmp_path, kills=200, seconds=1.0, database=url, away=away) > 200
