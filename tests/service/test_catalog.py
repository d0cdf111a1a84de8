"""Models are listed and deleted: nothing of them is left, and their names are free again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the service needs posterity[service]")
pytest.importorskip("httpx")

import sqlalchemy as sql

from posterity.service import schema
from tests.service.harness import ARMS, Service, with_service

EXPERIMENT, PREDICTOR = "/v1/experiments/e", "/v1/predictors/p"
TABLES = {schema.decision: "model", schema.event: "model", schema.row: "model"}
TABLES |= {schema.snapshot: "model", schema.model: "name"}


def count_rows(service: Service, name: str) -> dict[str, int]:
    """What each table has of a model."""
    with service.engine.store.engine.connect() as connection:
        return {
            table.name: connection.scalar(
                sql.select(sql.func.count()).select_from(table).where(table.c[column] == name)
            )
            for table, column in TABLES.items()
        }


async def fill(service: Service) -> None:
    await service.put(EXPERIMENT, ARMS)
    await service.put(PREDICTOR, {"features": ["a"]})
    for n in range(20):
        made = await service.post(f"{EXPERIMENT}/decide", {"context": [0.5], "id": f"{n}"})
        await service.post(f"{EXPERIMENT}/reward", {"decision_id": made["id"], "value": n % 2})
        await service.post(f"{PREDICTOR}/learn", {"id": f"{n}", "x": [n], "y": 2.0 * n})


async def list_names(service: Service) -> list[list[str]]:
    found = []
    for kind in ("experiments", "predictors"):
        told = (await service.ask("GET", f"/v1/{kind}")).json()[kind]
        found.append([one["name"] for one in told])
    return found


def test_what_is_deleted_leaves_nothing_and_frees_its_name(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        await fill(service)
        await service.put("/v1/predictors/q", {"features": ["a"]})
        assert await list_names(service) == [["e"], ["p", "q"]]
        for url, name in ((EXPERIMENT, "e"), (PREDICTOR, "p")):
            state = (await service.ask("GET", url)).json()
            listed = (await service.ask("GET", url.rpartition("/")[0])).json()
            assert state in next(iter(listed.values()))
            answer = await service.ask("DELETE", url)
            assert (answer.status_code, answer.json()["status"]) == (200, "deleted"), answer.text
            left = {"decision": 0, "event": 0, "row": 0, "snapshot": 0, "model": 1}
            assert count_rows(service, name) == left
            for method in ("GET", "DELETE"):
                assert (await service.ask(method, url)).status_code == 404
        assert await list_names(service) == [[], ["q"]]
        assert (await service.ask("DELETE", f"{EXPERIMENT}x")).status_code == 404
        assert (await service.ask("DELETE", "/v1/experiments/q")).status_code == 404
        told = (await service.ask("GET", "/v1/audit")).json()
        assert [one["what"] for one in told if one["after"] == "deleted"] == [
            "experiment e",
            "predictor p",
        ]
        for restart in (service.stop, service.crash):
            await restart()
            await service.start()
            assert await list_names(service) == [[], ["q"]]
        # As another kind, with the same ids: it knows nothing of what was there.
        assert (await service.put("/v1/predictors/e", {"features": ["b"]}))["version"] == 3
        assert (await service.put("/v1/experiments/p", {**ARMS, "arms": ["one"]}))["version"] == 3
        first = {"id": "1", "x": [1.0], "y": 1.0}
        told = await service.post("/v1/predictors/e/learn", first)
        assert (told["status"], told["mean"]) == ("new", None)
        asked = {"context": [0.5], "id": "1"}
        assert (await service.post("/v1/experiments/p/decide", asked))["arm"] == "one"
        await service.crash()
        await service.start()
        assert await list_names(service) == [["p"], ["q", "e"]]
        assert (await service.ask("GET", "/v1/predictors/e")).json()["version"] == 3

    with_service(tmp_path, do)


def test_requests_beside_a_deletion_are_done_before_it_or_refused(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        await fill(service)
        asked: list[Any] = []
        for n in range(20, 60):
            asked.append(("POST", f"{PREDICTOR}/learn", {"id": f"{n}", "x": [n], "y": 2.0 * n}))
            asked.append(("POST", f"{EXPERIMENT}/decide", {"context": [0.5], "id": f"{n}"}))
            reward = {"decision_id": f"{n % 20}", "event_id": f"{n}", "value": 1.0}
            asked.append(("POST", f"{EXPERIMENT}/reward", reward))
            if n in (30, 45):
                asked += [("DELETE", EXPERIMENT, None), ("DELETE", PREDICTOR, None)]
                asked += [("PUT", EXPERIMENT, ARMS), ("PUT", PREDICTOR, {"features": ["a"]})]
        answers = await asyncio.gather(*(service.ask(*one) for one in asked))
        assert {one.status_code for one in answers} <= {200, 404, 409}, [
            one.text for one in answers
        ]
        before = [
            (await service.ask("GET", f"{url}/model")).content for url in (EXPERIMENT, PREDICTOR)
        ]
        await service.crash()
        await service.start()
        after = [
            (await service.ask("GET", f"{url}/model")).content for url in (EXPERIMENT, PREDICTOR)
        ]
        assert after == before
        assert service.engine.counts["failures"] == 0

    with_service(tmp_path, do)


def test_a_model_that_cannot_be_restored_is_deleted_too(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        await fill(service)
        with service.engine.store.engine.begin() as connection:
            connection.execute(
                schema.model.update().values(settings="{}").where(schema.model.c.name == "e")
            )
        await service.crash()
        await service.start()
        assert (await service.ask("GET", EXPERIMENT)).status_code == 503
        assert (await service.ask("DELETE", EXPERIMENT)).status_code == 200
        assert (await service.put(EXPERIMENT, ARMS))["version"] == 3

    with_service(tmp_path, do)


def test_only_role_admin_deletes(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        await fill(service)
        made = (await service.post("/v1/tokens", {"name": "shop", "role": "decide"}))["token"]
        headers = {"authorization": f"Bearer {made}"}
        assert (await service.ask("DELETE", EXPERIMENT, headers=headers)).status_code == 403
        assert (await service.ask("GET", "/v1/predictors", headers=headers)).status_code == 200

    with_service(tmp_path, do)
