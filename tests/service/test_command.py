"""`posterity serve` and `posterity audit` as they are typed, and the client beside them."""

from __future__ import annotations

import asyncio
import doctest
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("starlette", reason="the service needs posterity[service]")
pytest.importorskip("uvicorn")
pytest.importorskip("click", reason="needs click (posterity[cli])")

from posterity.service import AsyncClient, Client
from tests.service.test_crashes import Served

pytestmark = pytest.mark.processes


class Typed(Served):
    """The command itself, on a port of its own."""

    def start(self) -> None:
        typed = ["posterity", "serve", str(self.folder), "--port", str(self.port)]
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", *typed], stdout=subprocess.PIPE, text=True, env=environment
        )
        assert self.process.stdout is not None
        first = self.process.stdout.readline()
        if not self.token:
            assert first.startswith("token, shown once: ")
            self.token = first.split()[-1]
            first = self.process.stdout.readline()
        assert first == f"listening on http://127.0.0.1:{self.port}/\n"
        for _ in range(600):
            try:
                self.ask("GET", "/readyz")
                return
            except OSError:
                time.sleep(0.05)
        raise AssertionError("the server did not start")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Typed]:
    served = Typed(tmp_path)
    yield served
    if served.process.poll() is None:
        served.end(signal.SIGTERM)


def typed(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "posterity", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_client_decides_rewards_predicts_and_learns(server: Typed) -> None:
    client = Client(server.token, f"http://127.0.0.1:{server.port}")
    client.put("experiments", "an experiment", arms=["red", "blue"], features=["age"])
    made = client.decide("an experiment", {"age": 0.5}, id="one")
    assert client.decide("an experiment", [0.5], id="one") == made
    assert client.reward("an experiment", "one", 1.0) == {"status": "new", "total": 1.0}
    assert client.reward("an experiment", "one", 1.0)["status"] == "duplicate"
    with pytest.raises(ValueError, match=r"409: value: .*correct=true"):
        client.reward("an experiment", "one", 2.0)
    client.put("predictors", "p", features=["a"])
    for n in range(5):
        told: Any = client.learn("p", str(n), {"a": n}, 2.0 * n)
        assert told["status"] == "new"
    assert client.predict("p", [3.0])["mean"] == pytest.approx(6.0, abs=0.5)
    assert client.predict("p", {"a": np.float32(3.0)}) == client.predict("p", [3])
    with pytest.raises(ValueError, match="'a' is null"):
        client.predict("p", {"a": np.nan})
    with pytest.raises(ValueError, match="y is nan"):
        client.learn("p", "none", [1.0], np.nan)
    with pytest.raises(TypeError, match=r"to_dict\('records'\)"):
        client.predict("p", pd.DataFrame({"a": [1.0]}))  # type: ignore[arg-type]
    assert client.state("predictors", "p")["kind"] == "predictor"
    rows = [(f"b{n}", {"a": np.int64(n)}, 2.0 * n) for n in range(5)]
    assert [one["status"] for one in client.learn_batch("p", rows)] == ["new"] * 5
    assert client.unlearn("p", "b4")["status"] == "unlearned"
    content = client.download("predictors", "p")
    assert client.upload("again", content, level=0.5) == {"name": "again", "version": 1}

    assert [one["name"] for one in client.models("predictors")] == ["p", "again"]

    waits = AsyncClient(client.token, client.url)

    async def ask() -> tuple[Any, Any]:
        batch = waits.predict_batch("again", [[3.0]])
        return await asyncio.gather(waits.predict("p", [3.0]), batch)

    one, (same,) = asyncio.run(ask())
    assert (same["mean"], same["level"]) == (one["mean"], 0.5)
    assert client.delete("predictors", "p") == {"status": "deleted", "total": None}
    assert [one["name"] for one in asyncio.run(waits.models("predictors"))] == ["again"]
    with pytest.raises(ValueError, match="401"):
        Client("nobody", client.url).state("predictors", "p")


def test_what_the_client_cannot_send_is_told_before_it_asks() -> None:
    client, row = Client("a token", "http://127.0.0.1:1", tries=1), {"id": "1", "x": [0.0], "y": 1}
    for kind in ("predictor", "models"):
        with pytest.raises(ValueError, match=f"kind is '{kind}': give 'experiments' or"):
            client.models(kind)
        with pytest.raises(ValueError, match=f"kind is '{kind}': give 'experiments' or"):
            client.delete(kind, "p")
    for wrong in (("1", [0.0]), row):
        with pytest.raises(TypeError, match=r"a row to learn is .*: give \(id, x, y\)"):
            client.learn_batch("p", [wrong])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="a row is None: give its values by name"):
        client.decide("e", None)  # type: ignore[arg-type]


def test_the_examples_of_the_client_and_of_its_page_run(server: Typed) -> None:
    client = Client(server.token, f"http://127.0.0.1:{server.port}")
    parsed = doctest.DocTestParser().get_doctest(
        str(Client.__doc__), {"client": client}, "client", None, 0
    )
    parsed.examples = parsed.examples[1:]  # a client of a server that is not there
    for one in parsed.examples:
        one.options.clear()  # they are skipped where there is no server
    assert doctest.DocTestRunner().run(parsed).failed == 0
    page = (Path(__file__).parents[2] / "docs" / "service.md").read_text()
    program = (
        page.partition("## The client in Python")[2].partition("```text\n")[2].partition("```")[0]
    )
    rng, hours = np.random.default_rng(0), []
    for at in pd.date_range("2026-02-16", periods=14 * 24, freq="h"):
        warm = None if rng.random() < 0.02 else float(rng.normal(20.0, 5.0))
        is_open = bool(8 <= at.hour < 20)
        load = 10.0 + 8.0 * np.sin(at.hour / 24.0 * 2.0 * np.pi) + 5.0 * is_open + rng.normal()
        hours.append({"at": f"{at:%Y-%m-%dT%H:%M}", "open": is_open, "heat": warm, "load": load})
    program = program.replace("Client(token)", "Client(token, url)")
    made: dict[str, Any] = {"token": client.token, "url": client.url, "hours": hours}
    exec(program, made)
    assert made["learned"]["status"] == "new"
    assert made["again"] == {**made["learned"], "status": "duplicate"}
    truth = 10.0 + 8.0 * np.sin(0.75 * 2.0 * np.pi) + 5.0
    assert made["expected"]["mean"] == pytest.approx(truth, abs=1.0)
    assert made["scores"]["rmse"] < 2.5
    after = client.predict("load", made["now"])
    server.end(signal.SIGKILL)
    server.start()
    assert client.predict("load", made["now"]) == after


def test_an_audit_finds_the_same_decision_after_a_restart(server: Typed) -> None:
    client = Client(server.token, f"http://127.0.0.1:{server.port}")
    client.put("experiments", "e", arms=["red", "blue"], features=["age"])
    for n in range(20):
        made = client.decide("e", [n / 10.0], id=str(n))
        client.reward("e", made["id"], 1.0)
    assert server.end(signal.SIGTERM) == 0
    server.start()
    folder = str(server.folder)
    done = typed("audit", folder, "e", "12")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["same"]
    assert told["arm"] == told["arm_again"] == client.decide("e", [1.2], id="12")["arm"]
    missing = typed("audit", folder, "e", "none")
    assert missing.returncode != 0
    assert "no decision 'none'" in missing.stderr
    second = typed("serve", folder, "--port", "0")
    assert second.returncode != 0
    assert "another server uses" in second.stderr


def test_an_address_that_others_reach_is_refused(tmp_path: Path) -> None:
    done = typed("serve", str(tmp_path), "--host", "0.0.0.0")
    assert done.returncode != 0
    assert "--public" in done.stderr
