"""How many durable decisions a second a service makes, and what each costs.

    python benchmarks/serve.py [--connections 64] [--seconds 5] [--batch 100]

It starts a server of its own in a folder of its own, and speaks plain HTTP over kept connections.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from typing import Any

ARMS, FEATURES, PORT = 10, 10, 17067


async def ask(stream: Any, method: str, path: str, token: str, body: Any = None) -> bytes:
    reader, writer = stream
    content = b"" if body is None else json.dumps(body).encode()
    head = (
        f"{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
    )
    writer.write(head.encode() + content)
    given = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    assert " 200 " in given.splitlines()[0], given
    length = int(given.split("content-length: ")[1].split("\r\n")[0])
    answer: bytes = await reader.readexactly(length)
    return answer


async def measured(
    token: str, path: str, body: Any, connections: int, seconds: float
) -> list[float]:
    """Seconds that each request took."""
    times: list[float] = []
    until = time.perf_counter() + seconds

    async def one() -> None:
        stream = await asyncio.open_connection("127.0.0.1", PORT)
        while (begun := time.perf_counter()) < until:
            await ask(stream, "POST", path, token, body)
            times.append(time.perf_counter() - begun)
        stream[1].close()

    await asyncio.gather(*(one() for _ in range(connections)))
    return times


def processor(process: subprocess.Popen[str]) -> float:
    """Seconds of processor that a process has had."""
    with open(f"/proc/{process.pid}/stat") as stat:
        fields = stat.read().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def started(folder: str, token: str = "") -> tuple[subprocess.Popen[str], str, float]:
    command = f"from posterity.service.run import serve; serve({folder!r}, port={PORT})"
    begun = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", command], stdout=subprocess.PIPE, text=True)
    if not token:
        assert process.stdout is not None
        token = process.stdout.readline().split()[-1]

    async def wait() -> None:
        while True:
            try:
                await ask(await asyncio.open_connection("127.0.0.1", PORT), "GET", "/readyz", token)
                return
            except OSError:
                await asyncio.sleep(0.01)

    asyncio.run(wait())
    return process, token, time.perf_counter() - begun


async def prepared(token: str) -> None:
    stream = await asyncio.open_connection("127.0.0.1", PORT)
    settings = {
        "arms": [f"a{n}" for n in range(ARMS)],
        "features": [f"x{n}" for n in range(FEATURES)],
    }
    await ask(stream, "PUT", "/v1/experiments/e", token, settings)
    for n in range(200):
        context = [((n * 7 + j * 3) % 11) / 5 - 1 for j in range(FEATURES)]
        answer = json.loads(
            await ask(stream, "POST", "/v1/experiments/e/decide", token, {"context": context})
        )
        reward = {"decision_id": answer["id"], "value": (n % 7) / 7}
        await ask(stream, "POST", "/v1/experiments/e/reward", token, reward)
    stream[1].close()


def sync_time(folder: str) -> float:
    """Milliseconds of a commit of one row."""
    base = sqlite3.connect(f"{folder}/sync.db", isolation_level=None)
    base.execute("PRAGMA journal_mode=WAL")
    base.execute("PRAGMA synchronous=FULL")
    base.execute("CREATE TABLE t (x)")
    begun = time.perf_counter()
    for n in range(50):
        base.execute("INSERT INTO t VALUES (?)", (n,))
    base.close()
    return (time.perf_counter() - begun) / 50 * 1e3


def copied(folder: str, rows: int) -> None:
    """Make the log as long as asked, by copies of its decisions."""
    base = sqlite3.connect(f"{folder}/posterity.db")
    names = [one[1] for one in base.execute("PRAGMA table_info(decision)")]
    others = ", ".join(name for name in names if name not in ("seq", "id"))
    top, count = base.execute("SELECT max(seq), count(*) FROM decision").fetchone()
    left = rows - count
    while left > 0:
        base.execute(
            f"INSERT INTO decision (seq, id, {others}) SELECT ? + row_number() OVER (), "
            f"'c' || (? + row_number() OVER ()), {others} FROM decision LIMIT ?",
            (top + 10, top, left),
        )
        top, count = base.execute("SELECT max(seq), count(*) FROM decision").fetchone()
        left = rows - count
    base.commit()
    base.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--rows", type=int, default=100_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(f"load {os.getloadavg()[0]:.1f}; a commit takes {sync_time(folder):.1f} ms")
        process, token, _ = started(folder)
        asyncio.run(prepared(token))
        one = {"context": [0.1 * n for n in range(FEATURES)]}
        asked = [
            ("decide", "/v1/experiments/e/decide", one, 1, given.connections),
            (
                f"decide/batch of {given.batch}",
                "/v1/experiments/e/decide/batch",
                {"decisions": [one] * given.batch},
                given.batch,
                4,
            ),
        ]
        for name, path, body, each, connections in asked:
            before, begun = processor(process), time.perf_counter()
            times = sorted(asyncio.run(measured(token, path, body, connections, given.seconds)))
            took, spent = time.perf_counter() - begun, processor(process) - before
            count = len(times) * each
            print(
                f"{name}: {count / took:,.0f} decisions/s, {spent / count * 1e6:.0f} us of "
                f"processor each, p99 {times[int(0.99 * len(times))] * 1e3:.1f} ms"
            )
        process.send_signal(signal.SIGKILL)
        process.wait()
        copied(folder, given.rows)
        process, _, took = started(folder, token)
        print(f"restart with {given.rows:,} decisions: {took:.2f} s, imports and all")
        process.send_signal(signal.SIGTERM)
        process.wait()


if __name__ == "__main__":
    main()
