"""Durable decisions a second of a service, and the cost of each.

    python benchmarks/serve.py [--connections 64] [--seconds 5] [--batch 100] [--mlflow PYTHON]
    python benchmarks/serve.py --rates 500 1000 2000 [--learn-batches 500]

It starts a server of its own in a folder of its own, and speaks plain HTTP over kept connections.
With rates it sends so many decisions a second, whether the last ones were answered or not, a reward
for one in four and a row to learn for one in ten, and tells how long decisions took from when they
were due; twice a second it may have a batch of so many rows learned beside. With the Python of an
environment that has MLflow, it measures MLflow's scoring server beside it, on a linear regression
of as many features.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
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
    tokens: list[str],
    path: str,
    bodies: Iterator[Any],
    connections: int,
    seconds: float,
    port: int = PORT,
) -> list[float]:
    """Seconds that each request took, until the time is over or all bodies are sent."""
    times: list[float] = []
    until = time.perf_counter() + seconds

    async def one(token: str) -> None:
        stream = await asyncio.open_connection("127.0.0.1", port)
        for body in bodies:
            begun = time.perf_counter()
            await ask(stream, "POST", path, token, body)
            times.append(time.perf_counter() - begun)
            if time.perf_counter() > until:
                break
        stream[1].close()

    await asyncio.gather(*(one(tokens[n % len(tokens)]) for n in range(connections)))
    return times


async def paced(
    token: str, rate: float, connections: int, seconds: float, batch: int = 0
) -> list[float]:
    """Seconds from when each decision was due, of so many a second while models learn."""
    free: asyncio.Queue[Any] = asyncio.Queue()
    for _ in range(connections):
        free.put_nowait(await asyncio.open_connection("127.0.0.1", PORT))
    times, ids, context = [], [], [0.1 * n for n in range(FEATURES)]
    decide, reward = "/v1/experiments/e/decide", "/v1/experiments/e/reward"

    async def send(path: str, body: Any) -> bytes:
        stream = await free.get()
        answer = await ask(stream, "POST", path, token, body)
        free.put_nowait(stream)
        return answer

    async def one(n: int, due: float) -> None:
        answer = await send(decide, {"context": context})
        times.append(time.perf_counter() - due)
        ids.append(json.loads(answer)["id"])
        if n % 4 == 0:
            await send(reward, {"decision_id": ids.pop(0), "value": n % 7 / 7})
        if n % 10 == 0:
            row = {"id": f"{rate} {n}", "x": context, "y": n % 7 / 7}
            await send("/v1/predictors/p/learn", row)

    asked: list[asyncio.Task[None]] = []
    loop, begun = asyncio.get_running_loop(), time.perf_counter()

    def begin(n: int) -> None:
        asked.append(asyncio.create_task(one(n, begun + n / rate)))

    def tick() -> None:  # in a thread of its own: the timers of a loop are a millisecond late
        for n in range(int(rate * seconds)):
            time.sleep(max(begun + n / rate - time.perf_counter(), 0.0))
            loop.call_soon_threadsafe(begin, n)

    async def learn_batches() -> None:
        for k in range(int(2 * seconds) if batch else 0):
            rows = [{"id": f"{rate} {k} {n}", "x": context, "y": n % 7 / 7} for n in range(batch)]
            due = time.perf_counter() + 0.5
            await send("/v1/predictors/p/learn/batch", {"rows": rows})
            await asyncio.sleep(due - time.perf_counter())

    sys.setswitchinterval(0.0001)
    await asyncio.gather(asyncio.to_thread(tick), learn_batches())
    await asyncio.gather(*asked)
    return sorted(times)


def tell_paced(
    process: subprocess.Popen[str],
    token: str,
    rates: list[float],
    connections: int,
    seconds: float,
    batch: int,
) -> None:
    """Ask at each rate, and print what decisions took."""
    for rate in rates:
        before = processor(process)
        times = asyncio.run(paced(token, rate, connections, seconds, batch))
        spent = (processor(process) - before) / len(times)
        shares = zip(("median", "p99", "p99.9"), (0.5, 0.99, 0.999), strict=True)
        told = [f"{name} {times[int(share * len(times))] * 1e3:.1f} ms" for name, share in shares]
        told.append(f"slowest {times[-1] * 1e3:.1f} ms, {spent * 1e6:.0f} us of processor each")
        print(f"{rate:,.0f} decisions a second: {', '.join(told)}", flush=True)


def processor(process: subprocess.Popen[str]) -> float:
    """Seconds of processor that a process, and those that it started, have had."""
    spent: dict[int, tuple[int, float]] = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as stat:
                fields = stat.read().rsplit(") ", 1)[1].split()
        except OSError:  # it has ended
            continue
        ticks = int(fields[11]) + int(fields[12])
        spent[int(pid)] = int(fields[1]), ticks / os.sysconf("SC_CLK_TCK")

    def of(pid: int) -> float:
        children = [one for one, (parent, _) in spent.items() if parent == pid]
        return spent[pid][1] + sum(map(of, children))

    return of(process.pid)


def started(folder: str, token: str = "") -> tuple[subprocess.Popen[str], str, float]:
    command = f"from posterity.service.run import serve; serve({folder!r}, port={PORT})"
    begun = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", command], stdout=subprocess.PIPE, text=True)
    if not token:
        assert process.stdout is not None
        token = process.stdout.readline().split()[-1]

    until_ready("/readyz", PORT, token)
    return process, token, time.perf_counter() - begun


def scoring_server(python: str, folder: str) -> subprocess.Popen[str]:
    """MLflow's, on a linear regression."""
    code = (
        "import mlflow, numpy as np; from sklearn.linear_model import LinearRegression; "
        f"X = np.random.default_rng(0).normal(size=(200, {FEATURES})); "
        f"mlflow.sklearn.save_model(LinearRegression().fit(X, X[:, 0]), {folder!r})"
    )
    subprocess.run([python, "-c", code], check=True, stderr=subprocess.DEVNULL)
    serve = ["models", "serve", "-m", folder, "-p", str(PORT + 1), "--env-manager", "local"]
    bin = os.path.dirname(python)
    return subprocess.Popen(
        [python, "-m", "mlflow", *serve],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        env={**os.environ, "PATH": f"{bin}:{os.environ['PATH']}"},
    )


def until_ready(path: str, port: int, token: str) -> None:
    """Wait until a server answers."""

    async def wait() -> None:
        while True:
            try:
                await ask(await asyncio.open_connection("127.0.0.1", port), "GET", path, token)
                return
            except (OSError, asyncio.IncompleteReadError):
                await asyncio.sleep(0.01)

    asyncio.run(wait())


async def make_tokens(token: str) -> list[str]:
    """Several, as each may make 10,000 requests a second only."""
    stream = await asyncio.open_connection("127.0.0.1", PORT)
    bodies = [{"name": f"client {n}", "role": "decide"} for n in range(8)]
    made = [await ask(stream, "POST", "/v1/tokens", token, body) for body in bodies]
    stream[1].close()
    return [json.loads(one)["token"] for one in made]


async def decide_many(token: str, body: Any, batches: int) -> list[str]:
    """Ids of decisions that wait for a reward."""
    stream = await asyncio.open_connection("127.0.0.1", PORT)
    ids = []
    for _ in range(batches):
        answer = await ask(stream, "POST", "/v1/experiments/e/decide/batch", token, body)
        ids += [one["id"] for one in json.loads(answer)["decisions"]]
    stream[1].close()
    return ids


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
    path, settings = "/v1/predictors/p", {"features": settings["features"]}
    await ask(stream, "PUT", path, token, settings)
    for n in range(50):
        x = [((n * 7 + j * 3) % 11) / 5 - 1 for j in range(FEATURES)]
        await ask(stream, "POST", f"{path}/learn", token, {"id": str(n), "x": x, "y": x[0]})
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


def tell(
    name: str,
    process: subprocess.Popen[str],
    tokens: list[str],
    path: str,
    bodies: Iterator[Any],
    each: int,
    connections: int,
    seconds: float,
    port: int = PORT,
) -> None:
    """Ask over and over, and print what it took."""
    before, begun = processor(process), time.perf_counter()
    times = sorted(asyncio.run(measured(tokens, path, bodies, connections, seconds, port)))
    took, spent = time.perf_counter() - begun, processor(process) - before
    count = len(times) * each
    print(
        f"{name}: {count / took:,.0f} a second, {spent / count * 1e6:.0f} us of processor each, "
        f"p99 {times[int(0.99 * len(times))] * 1e3:.1f} ms",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--mlflow", metavar="PYTHON")
    parser.add_argument("--rates", type=float, nargs="*", default=[])
    parser.add_argument("--learn-batches", type=int, default=0, metavar="ROWS")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(f"load {os.getloadavg()[0]:.1f}; a commit takes {sync_time(folder):.1f} ms")
        process, token, _ = started(folder)
        asyncio.run(prepared(token))
        load = given.connections, given.seconds, given.learn_batches
        tell_paced(process, token, given.rates, *load)
        if given.rates:
            process.kill()
            return
        tokens = asyncio.run(make_tokens(token))
        one = {"context": [0.1 * n for n in range(FEATURES)]}
        decide, batch = "/v1/experiments/e/decide", {"decisions": [one] * given.batch}
        asked = [
            ("decide", decide, one, 1, given.connections),
            (f"decide/batch of {given.batch}", f"{decide}/batch", batch, given.batch, 4),
            ("predict", "/v1/predictors/p/predict", {"x": one["context"]}, 1, given.connections),
        ]
        for name, path, body, each, connections in asked:
            bodies = itertools.repeat(body)
            tell(name, process, tokens, path, bodies, each, connections, given.seconds)
        ids = asyncio.run(decide_many(token, batch, int(300 * given.seconds)))
        bodies = iter([{"decision_id": id, "value": 0.5} for id in ids])
        path = "/v1/experiments/e/reward"
        tell("reward", process, tokens, path, bodies, 1, given.connections, given.seconds)
        if given.mlflow:
            other = scoring_server(given.mlflow, f"{folder}/mlflow")
            try:
                until_ready("/ping", PORT + 1, "")
                body = {"inputs": [one["context"]]}
                seconds, port = given.seconds, PORT + 1
                bodies = itertools.repeat(body)
                tell("MLflow", other, [""], "/invocations", bodies, 1, 4, seconds, port)
            finally:
                os.killpg(other.pid, signal.SIGKILL)
        process.send_signal(signal.SIGKILL)
        process.wait()
        copied(folder, given.rows)
        process, _, took = started(folder, token)
        print(
            f"restart with {given.rows:,} decisions: {took:.2f} s, imports and all, of which "
            f"{processor(process):.2f} s of processor"
        )
        process.send_signal(signal.SIGTERM)
        process.wait()


if __name__ == "__main__":
    main()
