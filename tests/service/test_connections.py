"""Connections that send nothing, or without end, are closed; those of a server are bounded."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the service needs posterity[service]")
pytest.importorskip("httpx")

from posterity.service.app import create_app
from posterity.service.engine import Engine
from posterity.service.run import bind, build_server
from posterity.service.store import Store
from tests.service.harness import ARMS, Service, with_service

URL = "/v1/experiments/e"
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Listening:
    """A server of this process, on a port of this machine only."""

    def __init__(self, folder: Path) -> None:
        self.engine = Engine(Store(f"sqlite:///{folder / 'posterity.db'}"))
        self.token = ""
        self.streams: list[Stream] = []

    async def run(self, do: Callable[[Listening], Coroutine[Any, Any, None]]) -> None:
        app = create_app(self.engine, announce=self._keep)
        with bind("127.0.0.1", 0) as listener:
            self.port = listener.getsockname()[1]
            self.server = build_server(self.engine, app, listener, "127.0.0.1")
            serving = asyncio.create_task(self.server.serve(sockets=[listener]))
            while not self.server.started:
                await asyncio.sleep(0.01)
            try:
                await do(self)
            finally:
                for _, writer in self.streams:
                    writer.close()
                self.server.should_exit = True
                await serving

    def _keep(self, token: str) -> None:
        self.token = token

    async def connect(self, sent: bytes = b"") -> Stream:
        stream = await asyncio.open_connection("127.0.0.1", self.port)
        self.streams.append(stream)
        stream[1].write(sent)
        return stream

    def head(self, method: str, path: str, length: int = 0, more: str = "") -> bytes:
        return (
            f"{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {self.token}\r\n"
            f"content-length: {length}\r\n{more}\r\n"
        ).encode()

    async def ask(
        self, stream: Stream, method: str, path: str, body: Any = None
    ) -> tuple[int, Any]:
        content = b"" if body is None else json.dumps(body).encode()
        stream[1].write(self.head(method, path, len(content)) + content)
        return await answer_of(stream)


async def answer_of(stream: Stream) -> tuple[int, Any]:
    given = (await asyncio.wait_for(stream[0].readuntil(b"\r\n\r\n"), 20)).decode().lower()
    length = int(given.split("content-length: ")[1].split("\r\n")[0])
    return int(given.split()[1]), json.loads(await stream[0].readexactly(length))


async def closed(stream: Stream) -> bytes:
    """What came before the end of a connection."""
    content = b""
    try:
        while more := await asyncio.wait_for(stream[0].read(65_536), 20):
            content += more
    except ConnectionError:
        pass
    return content


def with_server(folder: Path, do: Callable[[Listening], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(Listening(folder).run(do))


def test_what_sends_no_whole_header_is_closed_and_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("posterity.service.connections.LONGEST_HEADER", 0.3)

    async def do(server: Listening) -> None:
        good = await server.connect()
        assert (await server.ask(good, "PUT", URL, ARMS))[0] == 200
        silent = [await server.connect() for _ in range(20)]
        half = [await server.connect(b"GET / HTTP/1.1\r\nhost: x\r\n") for _ in range(20)]
        slow = await server.connect(server.head("GET", "/healthz"))
        assert (await answer_of(slow))[0] == 200
        slow[1].write(b"\r\n")  # which begins no request, and ends the rest after one
        for _ in range(30):
            assert (await server.ask(good, "POST", f"{URL}/decide", {"context": [1.0]}))[0] == 200
        for stream in (*silent, *half, slow):
            assert await closed(stream) == b""
        assert (await server.ask(await server.connect(), "GET", "/healthz"))[0] == 200

    with_server(tmp_path, do)


def test_what_is_too_large_for_a_header_is_refused(tmp_path: Path) -> None:
    async def do(server: Listening) -> None:
        for begun in (
            b"GET / HTTP/1.1\r\n" + b"X-000001: y\r\n" * 100_000,
            b"GET / HTTP/1.1\r\nX: " + b"y" * 2_000_000,
            b"GET /" + b"y" * 2_000_000,
            b"GET / HTTP/1.1\r\nX: " + b"y" * 70_000 + b"\r\n\r\n",
        ):
            told = await closed(await server.connect(begun))
            assert told.startswith(b"HTTP/1.1 431") or not told  # the rest may have ended it
        stream = await server.connect()
        assert (await server.ask(stream, "PUT", URL, ARMS))[0] == 200
        # A body may be larger than that, one that is not wanted too.
        features = [f"feature {n}" for n in range(8_000)]
        asked = {"arms": ["a"], "features": features}
        assert (await server.ask(stream, "PUT", "/v1/experiments/wide", asked))[0] == 422
        body = {"context": [1.0] * 60_000}
        assert (await server.ask(stream, "POST", f"{URL}/decide", body))[0] == 413
        assert server.engine.counts["failures"] == 0

    with_server(tmp_path, do)


def test_the_rest_of_a_body_that_nobody_reads_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("posterity.service.connections.LONGEST_HEADER", 0.3)

    async def do(server: Listening) -> None:
        stream = await server.connect(server.head("POST", "/nothing", 1_000) + b"x")
        assert (await answer_of(stream))[0] == 404
        assert await closed(stream) == b""

    with_server(tmp_path, do)


def test_connections_are_bounded_in_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("posterity.service.connections.MOST_CONNECTIONS", 5)

    async def do(server: Listening) -> None:
        first = [await server.connect() for _ in range(5)]
        for stream in first:
            assert (await server.ask(stream, "GET", "/healthz"))[0] == 200
        status, told = await answer_of(await server.connect())
        assert (status, told["error"]) == (503, "too many connections: try again later")
        assert (await server.ask(first[0], "GET", "/healthz"))[0] == 200
        first[1][1].close()
        for _ in range(100):
            if len(server.server.server_state.connections) < 5:
                break
            await asyncio.sleep(0.02)
        assert (await server.ask(await server.connect(), "GET", "/healthz"))[0] == 200

    with_server(tmp_path, do)


def test_an_answer_that_nobody_reads_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("posterity.service.connections.LONGEST_IDLE", 0.3)

    async def do(server: Listening) -> None:
        stream = await server.connect()
        features = [f"x{n}" for n in range(300)]
        settings = {"arms": ["a", "b"], "features": features}
        assert (await server.ask(stream, "PUT", URL, settings))[0] == 200
        decisions = {"decisions": [{"context": [0.5] * 300}] * 200}
        for _ in range(10):
            assert (await server.ask(stream, "POST", f"{URL}/decide/batch", decisions))[0] == 200
        _, writer = await server.connect(server.head("GET", f"{URL}/log"))
        for _ in range(500):
            await asyncio.sleep(0.02)
            if len(server.server.server_state.connections) < 2:
                break
        assert len(server.server.server_state.connections) == 1
        writer.close()

    with_server(tmp_path, do)


def test_a_stream_of_events_ends_with_its_token(tmp_path: Path) -> None:
    async def do(server: Listening) -> None:
        admin = await server.connect()
        made = {"name": "page", "role": "read"}
        brief = {"name": "brief", "role": "read", "expires": time.time() + 1.5}
        streams = []
        for asked in (made, brief):
            token = (await server.ask(admin, "POST", "/v1/tokens", asked))[1]["token"]
            head = f"GET /v1/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n"
            streams.append(await server.connect(head.encode()))
            await asyncio.wait_for(streams[-1][0].readuntil(b"hello"), 10)
        assert (await server.ask(admin, "PUT", URL, ARMS))[0] == 200
        await asyncio.wait_for(streams[0][0].readuntil(b"changed"), 10)
        revoked = await server.ask(admin, "POST", "/v1/tokens/revoke", {"name": "page"})
        assert revoked[0] == 200
        assert (await server.ask(admin, "PUT", URL, {**ARMS, "floor": 0.5}))[0] == 200
        ends = [await asyncio.wait_for(one[0].readuntil(b"0\r\n\r\n"), 10) for one in streams]
        assert ends[0].count(b"changed") <= 1  # of what came before
        assert server.engine.changed == []

    with_server(tmp_path, do)


def test_streams_of_events_are_bounded_in_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("posterity.service.endpoints.MOST_STREAMS", 2)

    async def do(server: Listening) -> None:
        for _ in range(2):
            stream = await server.connect(server.head("GET", "/v1/events"))
            await asyncio.wait_for(stream[0].readuntil(b"hello"), 10)
        status, told = await server.ask(await server.connect(), "GET", "/v1/events")
        assert status == 503
        assert "2 streams of events are open" in told["error"]

    with_server(tmp_path, do)


def test_policies_are_judged_by_the_newest_decisions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def do(service: Service) -> None:
        await service.put(URL, ARMS)
        for n in range(30):
            await service.post(f"{URL}/decide", {"id": f"{n}", "context": [1.0]})
            value = 100.0 if n < 10 else 1.0 + n % 2
            await service.post(f"{URL}/reward", {"decision_id": f"{n}", "value": value})
        ask = f"{URL}/evaluate?policy=logged"
        all_of_them = (await service.ask("GET", ask)).json()[0]["value"]
        assert all_of_them == pytest.approx((1000.0 + 30.0) / 30.0)
        monkeypatch.setattr("posterity.service.logs.MOST_JUDGED", 20)
        newest, again = await asyncio.gather(*(service.ask("GET", ask) for _ in range(2)))
        assert newest.json()[0]["value"] == again.json()[0]["value"] == pytest.approx(1.5)

    with_service(tmp_path, do)
