"""One bad request is told so, and takes nothing of what others asked along."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the service needs posterity[service]")
pytest.importorskip("httpx")

import numpy as np
import sqlalchemy as sql

from posterity.bandits import Bandit
from posterity.service.experiments import Experiment
from posterity.service.predictors import Predictor
from posterity.service.store import Store
from posterity.service.writing import Group
from tests.service.harness import ARMS, Service, with_service

URL, OTHER, PREDICTOR = "/v1/experiments/e", "/v1/experiments/f", "/v1/predictors/p"


def fails_after(plain: Callable[..., Any], error: Exception, value: float) -> Callable[..., Any]:
    """A method of a model that learns, and then fails where it learned a value."""

    def learn(self: Any, x: Any, *given: Any) -> Any:
        result = plain(self, x, *given)
        if value in given:
            raise error
        return result

    return learn


async def model_of(service: Service, url: str) -> bytes:
    content: bytes = (await service.ask("GET", f"{url}/model")).content
    return content


async def log_of(service: Service, url: str = URL) -> list[dict[str, Any]]:
    lines = (await service.ask("GET", f"{url}/log")).text.splitlines()
    return [json.loads(line) for line in lines]


def test_what_fails_half_way_fails_alone_and_leaves_its_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def do(service: Service) -> None:
        for url in (URL, OTHER):
            await service.put(url, ARMS)
            asked = [{"id": str(n), "context": [n / 10]} for n in range(20)]
            await service.post(f"{url}/decide/batch", {"decisions": asked})
        await service.post(f"{URL}/reward", {"decision_id": "0", "value": 1.0})
        broken = fails_after(Bandit.learn_one, IndexError("nobody thought of it"), 13.0)
        monkeypatch.setattr(Bandit, "learn_one", broken)
        values = [1.0, 2.0, 13.0, 3.0, 13.0, 4.0]
        rewards = [
            service.ask("POST", f"{url}/reward", {"decision_id": str(n), "value": value})
            for n, value in enumerate(values, 1)
            for url in (URL, OTHER)
        ]
        others = [service.ask("POST", f"{URL}/decide", {"context": [0.5]}) for _ in range(5)]
        answers = await asyncio.gather(*rewards, *others)
        wanted = [200 if value < 13.0 else 500 for value in values for _ in (URL, OTHER)]
        assert [one.status_code for one in answers] == wanted + [200] * 5
        assert "nothing was done" in answers[4].text
        assert service.engine.ready
        assert (await service.ask("GET", "/readyz")).status_code == 200
        before = [await model_of(service, url) for url in (URL, OTHER)]
        rewarded = [one["reward"] for one in await log_of(service)]
        assert rewarded[:7] == [1.0, 1.0, 2.0, None, 3.0, None, 4.0]
        await service.crash()
        await service.start()
        assert [await model_of(service, url) for url in (URL, OTHER)] == before

    with_service(tmp_path, do)


@pytest.mark.parametrize("error", [ValueError, KeyError, OverflowError, MemoryError], ids=str)
def test_a_row_that_can_not_be_learned_leaves_the_rows_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    async def do(service: Service) -> None:
        await service.put(PREDICTOR, {"features": ["a"]})
        kind = type(service.engine.predictor("p").model)
        monkeypatch.setattr(kind, "learn_one", fails_after(kind.learn_one, error("no"), 13.0))
        asked = [
            service.ask("POST", f"{PREDICTOR}/learn", {"id": str(n), "x": [n % 3], "y": float(n)})
            for n in range(10, 20)
        ]
        answers = await asyncio.gather(*asked)
        wrong = 500 if error is KeyError else 422
        assert [one.status_code for one in answers] == [200] * 3 + [wrong] + [200] * 6
        if error is not ValueError:  # which a model raises before it changes anything
            assert service.engine.predictor("p").model.n_observations_ == 9.0
        assert (await service.ask("GET", PREDICTOR)).json()["learned_through"] > 9

    with_service(tmp_path, do)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "{url}/personalizer/v1.0/events/%00/reward"),
        ("POST", "{url}/personalizer/v1.0/events/a%00/activate"),
        ("DELETE", "{url}/decisions/%00"),
        ("DELETE", "{url}/decisions/" + "x" * 257),
        ("GET", "/v1/experiments/%00"),
        ("GET", "/v1/predictors/a%00/model"),
        ("PUT", "/v1/experiments/%00"),
    ],
)
def test_ids_in_paths_are_checked_as_those_in_bodies(
    tmp_path: Path, method: str, path: str
) -> None:
    async def do(service: Service) -> None:
        await service.put(URL, ARMS)
        body = {"value": 1.0} if path.endswith("/reward") else ARMS
        answer = await service.ask(method, path.format(url=URL), body)
        assert answer.status_code == 422
        assert answer.json()["field"] in ("id", "name")
        assert service.engine.counts["failures"] == 0

    with_service(tmp_path, do)


@pytest.mark.parametrize("model", ["poisson", "negative binomial"])
@pytest.mark.parametrize("count", [1e99, 2.0**53 + 2.0, -1.0, 1.5])
def test_what_is_no_count_is_refused_and_others_go_on(
    tmp_path: Path, model: str, count: float
) -> None:
    async def do(service: Service) -> None:
        await service.put(PREDICTOR, {"features": ["x"], "model": model})
        for n in range(5):
            await service.post(f"{PREDICTOR}/learn", {"id": f"{n}", "x": [n], "y": float(n % 4)})
        for n in range(3):
            row = {"id": f"h{n}", "x": [1.0], "y": count}
            answer = await service.ask("POST", f"{PREDICTOR}/learn", row)
            assert (answer.status_code, answer.json()["field"]) == (422, "y")
            assert "give a count" in answer.text
        await service.post(f"{PREDICTOR}/learn", {"id": "good", "x": [1.0], "y": 2.0})

    with_service(tmp_path, do)


@pytest.mark.parametrize(
    ("model", "value"), [("linear", 1e101), ("poisson", 1e99), ("poisson", 0.5), ("logistic", 2.0)]
)
def test_a_reward_that_the_model_can_not_learn_is_refused(
    tmp_path: Path, model: str, value: float
) -> None:
    async def do(service: Service) -> None:
        await service.put(URL, {**ARMS, "model": model})
        await service.post(f"{URL}/decide", {"id": "0", "context": [1.0]})
        reward = {"decision_id": "0", "value": value}
        answer = await service.ask("POST", f"{URL}/reward", reward)
        assert (answer.status_code, answer.json()["field"]) == (422, "value")
        await service.post(f"{URL}/reward", {"decision_id": "0", "value": 1.0})

    with_service(tmp_path, do)


def test_a_batch_that_is_refused_adds_nothing(tmp_path: Path) -> None:
    now = [1000.0]

    async def do(service: Service) -> None:
        await service.put(URL, {**ARMS, "horizon": 1.0, "default_reward": 5.0})
        await service.post(f"{URL}/decide", {"id": "old", "context": [1.0]})
        new = [{"id": f"n{n}", "context": [3.0]} for n in range(20)]
        asked = {"decisions": [{"id": "old", "context": [2.0]}, *new]}
        for decisions in (asked, {"decisions": asked["decisions"][::-1]}):
            answer = await service.ask("POST", f"{URL}/decide/batch", decisions)
            assert answer.status_code == 409
        now[0] += 8.0
        assert await service.engine.upkeep.expire("e") == 1
        assert [(one["id"], one["reward"]) for one in await log_of(service)] == [("old", 5.0)]

    with_service(tmp_path, do, clock=lambda: now[0])


def test_two_requests_for_one_new_id_are_told_apart(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        await service.put(URL, ARMS)
        asked = [{"id": "one", "context": [x]} for x in (1.0, 2.0, 1.0)]
        batch = {"decisions": [{"id": "two", "context": [1.0]}, asked[1]]}
        answers = await asyncio.gather(
            *(service.ask("POST", f"{URL}/decide", one) for one in asked),
            service.ask("POST", f"{URL}/decide/batch", batch),
            service.ask("POST", f"{URL}/decide", {"id": "two", "context": [7.0]}),
        )
        assert [one.status_code for one in answers] == [200, 409, 200, 409, 200]
        assert answers[0].json() == answers[2].json()
        assert [one["x_age"] for one in await log_of(service)] == [1.0, 7.0]

    with_service(tmp_path, do)


def test_a_look_up_that_fails_fails_the_request_that_needs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Store.find

    def find(self: Store, decisions: Any, rows: Any, *others: Any) -> Any:
        decisions = list(decisions)
        if any(id == "poison" for _, id in decisions):
            raise sql.exc.DataError("SELECT", None, ValueError("it has a character of number 0"))
        return plain(self, decisions, rows, *others)

    async def do(service: Service) -> None:
        await service.put(URL, ARMS)
        monkeypatch.setattr(Store, "find", find)
        ids = ["a", "poison", "b"]
        asked = [service.ask("POST", f"{URL}/decide", {"id": id, "context": [1.0]}) for id in ids]
        assert [one.status_code for one in await asyncio.gather(*asked)] == [200, 500, 200]
        assert {one["id"] for one in await log_of(service)} == {"a", "b"}

    with_service(tmp_path, do)


def test_what_the_database_does_not_take_is_told_to_the_request_that_brought_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Store.commit

    def commit(self: Store, group: Group) -> None:
        if any(record.get("id") == "poison" for _, record in group.inserts):
            raise sql.exc.DataError("INSERT", None, ValueError("value out of range"))
        plain(self, group)

    async def do(service: Service) -> None:
        await service.put(URL, ARMS)
        await service.post(f"{URL}/decide", {"id": "0", "context": [1.0]})
        monkeypatch.setattr(Store, "commit", commit)
        ids = ["a", "poison", "b"]
        asked = [service.ask("POST", f"{URL}/decide", {"id": id, "context": [1.0]}) for id in ids]
        reward = service.ask("POST", f"{URL}/reward", {"decision_id": "0", "value": 2.0})
        answers = await asyncio.gather(*asked, reward)
        assert [one.status_code for one in answers] == [200, 500, 200, 200]
        assert {one["id"] for one in await log_of(service)} == {"0", "a", "b"}
        before = await model_of(service, URL)
        await service.crash()
        await service.start()
        assert await model_of(service, URL) == before

    with_service(tmp_path, do)


def test_a_model_that_can_not_be_written_fails_no_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from posterity.files import dumps

    def write(model: Any, notes: Any = None) -> bytes:
        if isinstance(model, Bandit):
            raise RecursionError("it can't be written")
        return dumps(model, notes)

    monkeypatch.setattr("posterity.service.engine.SNAPSHOT_EVERY", 5)

    async def do(service: Service) -> None:
        await service.put(URL, ARMS)
        await service.put(PREDICTOR, {"features": ["a"]})
        for n in range(12):
            await service.post(f"{URL}/decide", {"id": f"{n}", "context": [1.0]})
        monkeypatch.setattr("posterity.service.groups.dumps", write)
        for n in range(12):
            await service.post(f"{URL}/reward", {"decision_id": f"{n}", "value": 1.0})
            await service.post(f"{PREDICTOR}/learn", {"id": f"{n}", "x": [n], "y": 1.0})
        assert set(service.engine.store.read_snapshot_numbers()) == {"p"}
        before = await model_of(service, URL)
        # What erases may not do without a snapshot: it is refused, and nothing is erased.
        assert (await service.ask("DELETE", f"{URL}/decisions/3")).status_code == 500
        assert await model_of(service, URL) == before
        assert len(await log_of(service)) == 12
        monkeypatch.setattr("posterity.service.groups.dumps", dumps)
        assert (await service.ask("DELETE", f"{URL}/decisions/3")).status_code == 200
        assert set(service.engine.store.read_snapshot_numbers()) == {"e", "p"}

    with_service(tmp_path, do)


def test_a_row_that_can_not_be_predicted_leaves_those_that_were_asked_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Predictor.predict

    def predict(self: Predictor, rows: Any) -> Any:
        if np.array([13.0]).tobytes() in rows:
            raise FloatingPointError("the variance is not finite")
        return plain(self, rows)

    monkeypatch.setattr(Predictor, "predict", predict)

    async def do(service: Service) -> None:
        await service.put(PREDICTOR, {"features": ["a"]})
        for n in range(5):
            await service.post(f"{PREDICTOR}/learn", {"id": f"{n}", "x": [n], "y": float(n)})
        asked = [service.ask("POST", f"{PREDICTOR}/predict", {"x": [x]}) for x in (1.0, 13.0, 2.0)]
        assert [one.status_code for one in await asyncio.gather(*asked)] == [200, 422, 200]

    with_service(tmp_path, do)


@pytest.mark.parametrize("kind", [IndexError, FloatingPointError])
def test_decisions_that_fail_are_refused_and_not_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[Exception]
) -> None:
    plain = Experiment.propensities

    def propensities(self: Experiment, X: Any, allowed: Any) -> Any:
        if (X == 13.0).any():
            raise kind("of this context")
        chances, means, widths = plain(self, X, allowed)
        chances[X[:, 0] == 17.0] = float("nan")
        return chances, means, widths

    monkeypatch.setattr(Experiment, "propensities", propensities)

    async def do(service: Service) -> None:
        await service.put(URL, ARMS)
        contexts = [1.0, 13.0, 17.0, 2.0]
        asked = [service.ask("POST", f"{URL}/decide", {"context": [x]}) for x in contexts]
        answers = await asyncio.gather(*asked)
        wrong = 500 if kind is IndexError else 422
        assert [one.status_code for one in answers] == [200, wrong, 422, 200]
        assert [one["x_age"] for one in await log_of(service)] == [1.0, 2.0]
        batch = {"decisions": [{"context": [x]} for x in contexts]}
        assert (await service.ask("POST", f"{URL}/decide/batch", batch)).status_code == wrong
        assert len(await log_of(service)) == 2

    with_service(tmp_path, do)


def test_what_fails_in_upkeep_is_set_aside_and_others_are_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr("posterity.service.upkeep.LOOK_EVERY", 3600.0)
    monkeypatch.setattr("posterity.service.upkeep.FIRST_PAUSE", 0.0)
    plain = Predictor.unlearn

    def unlearn(self: Predictor, asked: Any, *given: Any) -> Any:
        outcome = plain(self, asked, *given)
        if asked.id == "7":
            raise IndexError("of this row")
        return outcome

    monkeypatch.setattr(Predictor, "unlearn", unlearn)

    async def do(service: Service) -> None:
        await service.put(PREDICTOR, {"features": ["a"], "forget_after": 4.0})
        for n in range(12):
            await service.post(f"{PREDICTOR}/learn", {"id": f"{n}", "x": [n % 5], "y": n / 3})
        now[0] += 10.0
        for n in range(12, 16):
            await service.post(f"{PREDICTOR}/learn", {"id": f"{n}", "x": [n % 5], "y": n / 3})
        assert await service.engine.upkeep.forget("p") == 11
        for _ in range(6):
            assert await service.engine.upkeep.forget("p") == 0
        due = service.engine.store.find_forgettable("p", 1e9)
        assert sorted(due) == ["12", "13", "14", "15"]
        audit = (await service.ask("GET", "/v1/audit")).json()[-1]
        assert audit["token"] == "upkeep"
        assert "7 is no longer due" in audit["what"]
        assert service.engine.predictor("p").model.n_observations_ == 5.0

    with_service(tmp_path, do, clock=lambda: now[0])


def test_a_default_that_can_not_be_learned_is_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr("posterity.service.upkeep.LOOK_EVERY", 3600.0)
    monkeypatch.setattr("posterity.service.upkeep.FIRST_PAUSE", 0.0)

    async def do(service: Service) -> None:
        await service.put(URL, {**ARMS, "horizon": 5.0, "default_reward": 13.0})
        await service.post(f"{URL}/decide", {"id": "0", "context": [1.0]})
        broken = fails_after(Bandit.learn_one, IndexError("of this reward"), 13.0)
        monkeypatch.setattr(Bandit, "learn_one", broken)
        now[0] += 10.0
        for _ in range(6):
            assert await service.engine.upkeep.expire("e") == 0
        assert service.engine.store.find_expired("e", 1e9, 0.0) == []
        assert "0 is no longer due" in (await service.ask("GET", "/v1/audit")).text
        await service.post(f"{URL}/reward", {"decision_id": "0", "value": 1.0})

    with_service(tmp_path, do, clock=lambda: now[0])


def test_features_of_one_experiment_are_erased_by_its_own_settings(tmp_path: Path) -> None:
    now = [1000.0]

    async def do(service: Service) -> None:
        settings = {"arms": ["red", "blue"], "features": ["age", "hour"]}
        await service.put(URL, {**settings, "erase_after": {"age": 1.0}})
        await service.put(OTHER, {**settings, "erase_after": {"hour": 1.0}})
        for url in (URL, OTHER):
            await service.post(f"{url}/decide", {"id": "0", "context": [30.0, 7.0]})
        now[0] += 5.0
        upkeep = service.engine.upkeep
        reward = {"decision_id": "0", "value": 1.0}
        await asyncio.gather(upkeep.erase("e"), service.ask("POST", f"{OTHER}/reward", reward))
        assert [one["x_age"] for one in await log_of(service, URL)] == [None]
        assert [one["x_hour"] for one in await log_of(service, OTHER)] == [7.0]

    with_service(tmp_path, do, clock=lambda: now[0])


def test_twelve_clients_beside_one_that_sends_poison(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("posterity.service.engine.SNAPSHOT_EVERY", 50)

    async def do(service: Service) -> None:
        await service.put(URL, {**ARMS, "model": "poisson"})
        await service.put(PREDICTOR, {"features": ["a"], "model": "negative binomial"})
        await service.post(f"{URL}/decide", {"id": "bad", "context": [1.0]})
        broken = fails_after(Bandit.learn_one, IndexError("nobody thought of it"), 13.0)
        monkeypatch.setattr(Bandit, "learn_one", broken)
        statuses: list[int] = []

        async def ask_on(client: int) -> None:
            for n in range(8):
                asked = {"id": f"{client}-{n}", "context": [n / 10]}
                answers = [await service.ask("POST", f"{URL}/decide", asked)]
                reward = {"decision_id": f"{client}-{n}", "value": 1.0}
                answers.append(await service.ask("POST", f"{URL}/reward", reward))
                row = {"id": f"{client}-{n}", "x": [n % 3], "y": float(n % 4)}
                answers.append(await service.ask("POST", f"{PREDICTOR}/learn", row))
                answers.append(await service.ask("POST", f"{PREDICTOR}/predict", {"x": [1.0]}))
                statuses.extend(one.status_code for one in answers)

        async def poison() -> list[int]:
            sent = [
                ("reward", {"decision_id": "bad", "value": 13.0}),
                ("personalizer/v1.0/events/%00/reward", {"value": 1.0}),
                ("personalizer/v1.0/events/a%00/activate", None),
                ("reward", {"decision_id": "bad", "value": 1e99}),
            ]
            told = []
            for n in range(20):
                path, body = sent[n % 4]
                told.append((await service.ask("POST", f"{URL}/{path}", body)).status_code)
                row = {"id": "h", "x": [1.0], "y": 1e99}
                told.append((await service.ask("POST", f"{PREDICTOR}/learn", row)).status_code)
            return told

        told = (await asyncio.gather(poison(), *map(ask_on, range(12))))[0]
        assert set(statuses) == {200}
        assert len(statuses) == 12 * 8 * 4
        assert set(told) == {422, 500}
        assert told.count(500) == 5
        assert sum(one["reward"] is not None for one in await log_of(service)) == 96
        before = await model_of(service, PREDICTOR)
        await service.crash()
        await service.start()
        assert await model_of(service, PREDICTOR) == before

    with_service(tmp_path, do)


@pytest.mark.processes
def test_a_server_beside_one_client_that_sends_poison_refuses_nobody_else(tmp_path: Path) -> None:
    from tests.service.test_crashes import Served, tried

    server = Served(tmp_path)
    try:
        server.ask("PUT", URL, ARMS)
        settings = {"features": ["x"], "model": "negative binomial", "forget_after": 1.0}
        server.ask("PUT", PREDICTOR, settings)
        for n in range(30):
            server.ask("POST", f"{PREDICTOR}/learn", {"id": f"{n}", "x": [n % 4], "y": n % 5})

        def ask_on(client: int) -> list[int]:
            asked = [{"id": f"{client}-{n}", "context": [n / 50]} for n in range(40)]
            return [tried(server, f"{URL}/decide", one) for one in asked]

        def poison(_: int) -> list[int]:
            events = f"{URL}/personalizer/v1.0/events"
            return [
                tried(server, *sent)
                for n in range(10)
                for sent in (
                    (f"{events}/%00/reward", {"value": 1.0}),
                    (f"{events}/a%00/activate", None),
                    (f"{PREDICTOR}/learn", {"id": f"h{n}", "x": [1.0], "y": 1e99}),
                    (f"{URL}/decide", {"context": [1e99]}),
                    (f"{URL}/reward", {"decision_id": "0-0", "value": 1e30, "correct": True}),
                )
            ]

        with ThreadPoolExecutor(13) as pool:
            bad = pool.submit(poison, 0)
            statuses = [status for some in pool.map(ask_on, range(12)) for status in some]
        assert all(status < 500 for status in bad.result())
        # What believes in a reward of 1e30 may have no probabilities; nobody is turned away.
        assert len(statuses) == 480
        assert set(statuses) <= {200, 422}
        server.ask("POST", f"{URL}/take-back", {"decision_id": "0-0"})
        server.ask("POST", f"{URL}/decide", {"context": [1.0]})
        server.ask("GET", "/v1/overview")
    finally:
        server.end(signal.SIGKILL)
