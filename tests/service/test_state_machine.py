"""Whatever is sent in whatever order, and however often: what is learned is each reward once."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("starlette", reason="the service needs posterity[service]")
pytest.importorskip("httpx")

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from posterity.bandits import Bandit
from posterity.files import loads
from tests.service.harness import ARMS, Service

URL = "/v1/experiments/e"
IDS = st.integers(0, 5).map(str)
VALUES = st.integers(-3, 3).map(float)


class Http(RuleBasedStateMachine):
    """The reference: for each decision its context and arm, and a value for each event."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.service = Service(Path(self.folder.name))
        self.loop = asyncio.new_event_loop()
        self.loop.run_until_complete(self.service.start())
        self.decided: dict[str, Any] = {}
        self.events: dict[str, dict[str, float]] = {}
        self.deleted: set[str] = set()
        assert self.ask("PUT", "", ARMS)[0] == 200

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        answer = self.loop.run_until_complete(self.service.ask(method, URL + path, body))
        return answer.status_code, answer.json()

    def missing(self, id: str) -> int:
        return 404 if id not in self.decided else 410 if id in self.deleted else 0

    @rule(id=IDS, age=st.sampled_from([-1.0, 0.5, 2.0]))
    def decide(self, id: str, age: float) -> None:
        status, answer = self.ask("POST", "/decide", {"id": id, "context": [age]})
        if id in self.deleted:
            assert status == 410
        elif id not in self.decided:
            self.decided[id], self.events[id] = (age, answer), {}
            assert status == 200
        elif self.decided[id][0] == age:
            assert (status, answer) == (200, self.decided[id][1])
        else:
            assert status == 409

    @rule(id=IDS, event=st.sampled_from(["a", "b"]), value=VALUES, correct=st.booleans())
    def reward(self, id: str, event: str, value: float, correct: bool) -> None:
        body = {"decision_id": id, "event_id": event, "value": value, "correct": correct}
        status, answer = self.ask("POST", "/reward", body)
        if self.missing(id):
            assert status == self.missing(id)
        elif self.events[id].get(event, value) != value and not correct:
            assert status == 409
        else:
            self.events[id][event] = value
            assert (status, answer["total"]) == (200, sum(self.events[id].values()))

    @rule(id=IDS, event=st.sampled_from(["a", "b"]))
    def take_back(self, id: str, event: str) -> None:
        status, _ = self.ask("POST", "/take-back", {"decision_id": id, "event_id": event})
        if self.missing(id):
            assert status == self.missing(id)
        else:
            assert status in (200, 404)
            assert self.events[id].pop(event, None) is None or status == 200

    @rule(id=IDS)
    def delete(self, id: str) -> None:
        status, _ = self.ask("DELETE", f"/decisions/{id}")
        assert status == (self.missing(id) or 200)
        if status == 200:
            self.deleted.add(id)
            self.events[id] = {}

    @precondition(lambda self: self.decided)
    @rule(kill=st.booleans())
    def restart(self, kill: bool) -> None:
        before = self.model()
        end = self.service.crash if kill else self.service.stop
        self.loop.run_until_complete(end())
        self.loop.run_until_complete(self.service.start())
        assert self.model() == before

    def model(self) -> bytes:
        answer = self.loop.run_until_complete(self.service.ask("GET", f"{URL}/model"))
        content: bytes = answer.content
        return content

    @invariant()
    def each_reward_is_learned_once(self) -> None:
        live = [id for id, events in self.events.items() if events]
        if not live:
            return
        X = np.array([[self.decided[id][0]] for id in live])
        arms = [self.decided[id][1]["arm"] for id in live]
        totals = [sum(self.events[id].values()) for id in live]
        want = Bandit(arms=["red", "blue"], rng=0).learn(X, arms, totals)
        at = np.array([[0.3], [-1.0]])
        means = loads(self.model()).beliefs(at).mean
        np.testing.assert_allclose(means, want.beliefs(at).mean, atol=1e-5)

    def teardown(self) -> None:
        self.loop.run_until_complete(self.service.stop())
        self.loop.close()
        self.folder.cleanup()


TestHttp = Http.TestCase
TestHttp.settings = settings(max_examples=10, stateful_step_count=20, deadline=None)
