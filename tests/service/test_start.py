"""What `posterity serve` says where it can't start: a line that tells what to do."""

from __future__ import annotations

import signal
import socket
import sqlite3
import threading
import urllib.request
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the service needs posterity[service]")
pytest.importorskip("uvicorn")
pytest.importorskip("click", reason="needs click (posterity[cli])")

import numpy as np
from click.testing import CliRunner
from sqlalchemy.exc import DatabaseError, OperationalError

from posterity.cli.commands import posterity
from posterity.service import run
from posterity.service.databases import explain_failures, read_url
from posterity.service.store import Store
from tests.service.harness import ARMS, Service, with_service


def refuse(folder: Path, *words: str) -> str:
    """What is said of a start that fails, in one line."""
    done = CliRunner().invoke(posterity, ["serve", str(folder), "--port", "0", *words])
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert "Traceback" not in line
    return line


@pytest.mark.parametrize(
    ("database", "told"),
    [
        ("foo", "'foo' is not the address of a database: give --database postgresql://"),
        ("postgresql://h:port/x", "is not the address"),
        ("postgresql://me:hidden@h:port/x", "://***@h:port/x"),
        ("mysql://h/x", "there are PostgreSQL and SQLite only"),
        ("postgresql://me:hidden@127.0.0.1:1/x", "start PostgreSQL, or correct"),
        ("postgres://me:hidden@127.0.0.1:1/x", "start PostgreSQL, or correct"),
        ("sqlite:////nowhere/x.db", "the database /nowhere/x.db can't be used"),
    ],
)
def test_a_database_that_is_not_there(tmp_path: Path, database: str, told: str) -> None:
    if "127.0.0.1" in database:
        pytest.importorskip("psycopg")
    line = refuse(tmp_path, "--database", database)
    assert told in line
    assert "hidden" not in line


def test_databases_are_named_by_their_kind(tmp_path: Path) -> None:
    assert read_url("", "postgres://db/x") == read_url("", "postgresql://db/x")
    assert read_url(str(tmp_path), None).database == str(tmp_path / "posterity.db")


def test_a_database_that_the_server_does_not_have_is_to_be_created() -> None:
    url = read_url("", "postgresql://me:hidden@db/shop")
    reason = Exception('connection failed: FATAL:  database "shop" does not exist\nmore')
    with pytest.raises(ValueError, match=r"createdb shop") as caught, explain_failures(url):
        raise OperationalError("", {}, reason)
    assert "hidden" not in str(caught.value)
    assert "more" not in str(caught.value)


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "posterity.db").write_text("a letter, and no database " * 10)
    assert "restore a backup" in refuse(tmp_path)


@pytest.mark.parametrize("left", [0.1, 0.9])
def test_a_file_that_was_cut(tmp_path: Path, left: float) -> None:
    path = tmp_path / "posterity.db"
    Store(f"sqlite:///{path}").close()
    content = path.read_bytes()
    path.write_bytes(content[: int(left * len(content))])
    line = refuse(tmp_path)
    assert str(path) in line
    assert "restore a backup" in line


def test_damaged_pages_are_found_when_it_starts(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        await service.put("/v1/experiments/e", ARMS)
        asked = [{"id": str(n), "context": [n / 7]} for n in range(400)]
        await service.post("/v1/experiments/e/decide/batch", {"decisions": asked})

    with_service(tmp_path, do)
    path = tmp_path / "posterity.db"
    content, rng = path.read_bytes(), np.random.default_rng(0)
    base = sqlite3.connect(path)
    asked = "SELECT DISTINCT pageno FROM dbstat WHERE name IN ('decision', 'decision_seq')"
    try:
        pages = [one[0] for one in base.execute(asked)]
    except sqlite3.OperationalError:  # this SQLite has no table of pages
        pages = list(range(2, len(content) // 4096))
    base.close()
    found = 0
    for page in pages[:12]:
        place = 4096 * (page - 1)
        # The cells that the page says it has are somewhere else.
        damaged = bytearray(content)
        damaged[place + 8 : place + 72] = rng.bytes(64)
        path.write_bytes(damaged)
        store = Store(f"sqlite:///{path}")
        try:
            store.check_pages()
        except DatabaseError:
            found += 1
        store.close()
    assert found >= 10
    line = refuse(tmp_path)
    assert str(path) in line
    assert "is damaged" in line
    assert "restore a backup" in line
    path.write_bytes(content)
    with_service(tmp_path, Service.pause)


def test_looking_for_damaged_pages_ends(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("posterity.service.store.LONGEST_CHECK", -1.0)
    with_service(tmp_path, Service.pause)


def test_an_error_after_the_database_was_opened(tmp_path: Path, monkeypatch: Any) -> None:
    def fail(_: Store) -> int:
        raise OperationalError("", {}, sqlite3.DatabaseError("database disk image is malformed"))

    monkeypatch.setattr(Store, "read_last_number", fail)
    assert "restore a backup" in refuse(tmp_path)


@pytest.mark.parametrize("reason", ["database or disk is full", "disk I/O error"])
def test_a_disk_without_room(reason: str) -> None:
    url = read_url("served", None)
    error = OperationalError("", {}, sqlite3.OperationalError(reason))
    with pytest.raises(ValueError, match="make room on its disk"), explain_failures(url):
        raise error


@pytest.mark.parametrize("port", ["70000", "http"])
def test_a_port_that_can_not_be(tmp_path: Path, port: str) -> None:
    assert "--port" in refuse(tmp_path, "--port", port)


def test_a_port_that_is_in_use_is_said_before_anything_else(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        line = refuse(tmp_path, "--port", str(port))
    assert f"port {port} of 127.0.0.1 is in use" in line
    assert "--port" in line
    assert not (tmp_path / "posterity.db").exists()


def test_an_address_of_another_machine(tmp_path: Path) -> None:
    assert "can't listen on" in refuse(tmp_path, "--host", "192.0.2.1", "--public")


def test_it_says_that_it_listens_once_it_does(tmp_path: Path, monkeypatch: Any) -> None:
    said: list[str] = []
    servers: list[Any] = []
    answers: list[int] = []

    def ask(address: str) -> None:
        with urllib.request.urlopen(f"{address}healthz", timeout=10) as answer:
            answers.append(answer.status)
        servers[0].handle_exit(signal.SIGTERM, None)

    def say(words: str) -> None:
        said.append(words)
        if words.startswith("listening on "):
            threading.Thread(target=ask, args=[words.split()[-1]]).start()

    class Kept(run._Server):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            servers.append(self)

    monkeypatch.setattr(run, "_print_line", say)
    monkeypatch.setattr(run, "_Server", Kept)
    # Not in the main thread, where it would end the tests by the signal.
    served = threading.Thread(target=run.serve, args=[str(tmp_path)], kwargs={"port": 0})
    served.start()
    served.join(30.0)
    assert answers == [200]
    assert [words.split()[0] for words in said] == ["token,", "listening"]
    assert not said[-1].endswith(":0/")


def test_a_folder_that_can_not_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    line = refuse(tmp_path / "file" / "served")
    assert f"{tmp_path / 'file' / 'served'} can't be made" in line
    assert "give a folder that you may write to" in line


def test_a_folder_that_may_not_be_written_to(tmp_path: Path, monkeypatch: Any) -> None:
    def fail(path: Path, *_: Any) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", fail)
    assert "lock can't be made (Permission denied): give a folder" in refuse(tmp_path)
