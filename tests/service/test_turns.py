"""Batches that are learned a turn at a time, and what comes between two turns."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the service needs posterity[service]")
pytest.importorskip("httpx")

from sqlalchemy.exc import OperationalError

from posterity.service.messages import PredictorSettings
from posterity.service.predictors import Predictor
from posterity.service.store import Store
from tests.service.harness import ARMS, Service, with_service

URL, EXPERIMENT = "/v1/predictors/load", "/v1/experiments/e"
ROWS = [{"id": f"{n}", "x": [n % 5, n % 7], "y": float(n % 3)} for n in range(60)]
BATCH = {"rows": ROWS}
COMMIT = Store.commit


def refuse_bad(store: Store, group: Any) -> None:
    """Commit, unless a request of the group has the id "bad"."""
    if any(one.get("id") == "bad" for _, one in group.inserts):
        raise ValueError("it can't be written")
    COMMIT(store, group)


async def begin(service: Service) -> asyncio.Task[Any]:
    """Send a batch, and wait until some of its rows are learned."""
    await service.put(URL, {"features": ["a", "b"]})
    await service.put(EXPERIMENT, ARMS)
    batch = asyncio.create_task(service.ask("POST", f"{URL}/learn/batch", BATCH))
    waiting = service.engine._queue
    while not waiting._begun:
        await asyncio.sleep(0)
    return batch


async def decide(service: Service, id: str) -> Any:
    return await service.ask("POST", f"{EXPERIMENT}/decide", {"context": [0.5], "id": id})


def test_what_changes_the_model_waits_for_the_end_of_a_batch(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        batch = await begin(service)
        taken_back = asyncio.create_task(service.ask("POST", f"{URL}/unlearn", {"id": "7"}))
        again = asyncio.create_task(service.ask("POST", f"{URL}/learn/batch", BATCH))
        assert (await decide(service, "one")).status_code == 200
        assert not batch.done()
        answers = [one.json() for one in await asyncio.gather(batch, taken_back, again)]
        assert {one["status"] for one in answers[0]["rows"]} == {"new"}
        assert answers[1]["status"] == "unlearned"
        # The second batch has the row that was taken back once more.
        new = [n for n, one in enumerate(answers[2]["rows"]) if one["status"] == "new"]
        assert new == [7]
        content = (await service.ask("GET", f"{URL}/model")).content
        await service.crash()
        await service.start()
        assert (await service.ask("GET", f"{URL}/model")).content == content

    with_service(tmp_path, do)


def test_a_model_is_deleted_after_its_batch(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        batch = await begin(service)
        deleted = asyncio.create_task(service.ask("DELETE", URL))
        assert (await decide(service, "one")).status_code == 200
        answers = await asyncio.gather(batch, deleted)
        assert [one.status_code for one in answers] == [200, 200]
        assert (await service.ask("POST", f"{URL}/learn/batch", BATCH)).status_code == 404

    with_service(tmp_path, do)


def test_of_a_batch_nothing_is_learned_where_the_database_goes_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: Any) -> None:
        raise OperationalError("COMMIT", {}, Exception("the disk is full"))

    async def do(service: Service) -> None:
        batch = await begin(service)
        commit = Store.commit
        monkeypatch.setattr(Store, "commit", fail)
        assert (await decide(service, "one")).status_code == 503
        assert (await batch).status_code == 503
        monkeypatch.setattr(Store, "commit", commit)
        while not service.engine.ready:
            await service.pause()
        assert (await service.ask("GET", URL)).json()["scores"]["n"] == 0
        told = await service.post(f"{URL}/learn/batch", BATCH)
        assert {one["status"] for one in told["rows"]} == {"new"}
        assert (await decide(service, "one")).status_code == 200

    with_service(tmp_path, do)


def test_one_that_the_database_refuses_takes_no_batch_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def do(service: Service) -> None:
        batch = await begin(service)
        monkeypatch.setattr(Store, "commit", refuse_bad)
        answers = await asyncio.gather(decide(service, "bad"), decide(service, "good"), batch)
        assert [one.status_code for one in answers] == [500, 200, 200]
        models = [(await service.ask("GET", f"{URL}/model")).content]
        await service.put(f"{URL}2", {"features": ["a", "b"]})
        for row in ROWS:
            await service.post(f"{URL}2/learn", row)
        models.append((await service.ask("GET", f"{URL}2/model")).content)
        assert models[0] == models[1]

    with_service(tmp_path, do)


def test_a_batch_that_ended_beside_one_that_the_database_refuses_is_learned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def do(service: Service) -> None:
        await service.put(URL, {"features": ["a", "b"]})
        await service.put(EXPERIMENT, ARMS)
        monkeypatch.setattr(Store, "commit", refuse_bad)
        service.engine._groups._turn = 10.0  # the batch ends in its first turn
        batch = service.ask("POST", f"{URL}/learn/batch", BATCH)
        refused, learned = await asyncio.gather(decide(service, "bad"), batch)
        assert (refused.status_code, learned.status_code) == (500, 200)
        assert {one["status"] for one in learned.json()["rows"]} == {"new"}
        assert service.engine.predictor("load").model.n_observations_ == len(ROWS)
        content = (await service.ask("GET", f"{URL}/model")).content
        await service.crash()
        await service.start()
        assert (await service.ask("GET", f"{URL}/model")).content == content

    with_service(tmp_path, do)


def test_rewards_do_not_wait_for_batches_that_wait_for_a_batch(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        batch = await begin(service)
        others = []
        for name in ("b", "c"):
            service.engine.models[name] = Predictor(name, 1, PredictorSettings(features=["a", "b"]))
            others.append(service.ask("POST", f"/v1/predictors/{name}/learn/batch", BATCH))
        more = asyncio.gather(*others)
        await decide(service, "one")
        reward = {"decision_id": "one", "value": 1.0}
        assert (await service.ask("POST", f"{EXPERIMENT}/reward", reward)).status_code == 200
        assert not batch.done()
        await asyncio.gather(batch, more)

    with_service(tmp_path, do)


def test_a_snapshot_comes_after_so_many_entries_that_its_model_learned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("posterity.service.engine.SNAPSHOT_EVERY", 5)

    async def do(service: Service) -> None:
        await service.put(EXPERIMENT, ARMS)
        for n in range(12):
            await decide(service, f"{n}")
        assert service.engine.store.read_snapshot_numbers() == {}
        for n in range(12):
            reward = {"decision_id": f"{n}", "value": 1.0}
            await service.post(f"{EXPERIMENT}/reward", reward)
            # Another thread writes it, and the next group brings it.
            await asyncio.gather(*(file for *_, file in service.engine._groups._written.values()))
        (number,) = service.engine.store.read_snapshot_numbers().values()
        experiment = service.engine.models["e"]
        assert experiment.learned_through - 7 <= number < experiment.learned_through
        assert experiment.entries < 5

    with_service(tmp_path, do)


def test_a_service_that_is_stopped_learns_its_batch_first(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        batch = await begin(service)
        await service._life.__aexit__(None, None, None)
        assert (await batch).status_code == 200
        await service.start()
        assert (await service.ask("GET", URL)).json()["scores"]["n"] > 50

    with_service(tmp_path, do)
