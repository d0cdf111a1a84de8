"""Clients of Personalizer: they change the address that they ask, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the service needs posterity[service]")
pytest.importorskip("httpx")

from tests.service.harness import Service, with_service

SETTINGS = {
    "arms": ["NewsArticle", "SportsArticle", "EntertainmentArticle"],
    "features": ["timeOfDay=Morning", "timeOfDay=Evening", "user.age"],
}
# The example of its documentation, with a number more.
ASKED: dict[str, Any] = {
    "contextFeatures": [{"timeOfDay": "Morning"}, {"user": {"age": 30}}],
    "actions": [
        {"id": "NewsArticle", "features": [{"type": "News"}]},
        {"id": "SportsArticle", "features": [{"type": "Sports"}]},
        {"id": "EntertainmentArticle", "features": [{"type": "Entertainment"}]},
    ],
    "excludedActions": ["SportsArticle"],
    "eventId": "75269AD0-BFEE-4598-8196-C57383D38E10",
    "deferActivation": False,
}
RANK, EVENTS = "/personalizer/v1.0/rank", "/personalizer/v1.0/events"


def test_a_client_of_personalizer_ranks_and_rewards(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        await service.put("/v1/experiments/personalizer", {**SETTINGS, "aggregation": "first"})
        key = {"ocp-apim-subscription-key": service.token}
        answer = await service.ask("POST", RANK, ASKED, headers=key)
        assert answer.status_code == 201
        told = answer.json()
        assert told["eventId"] == ASKED["eventId"]
        assert told["rewardActionId"] == told["ranking"][0]["id"] != "SportsArticle"
        assert told["ranking"][-1] == {"id": "SportsArticle", "probability": 0.0}
        assert sum(one["probability"] for one in told["ranking"]) == pytest.approx(1.0)
        again = await service.ask("POST", RANK, ASKED, headers=key)
        assert again.json() == told
        reward = f"{EVENTS}/{told['eventId']}/reward"
        for value in (1.0, 1.0, 0.5):  # the second is a retry; of several the first counts
            answer = await service.ask("POST", reward, {"value": value}, headers=key)
            assert (answer.status_code, answer.content) == (204, b"")
        log = (await service.ask("GET", "/v1/experiments/personalizer/log")).json()
        assert log["reward"] == 1.0
        assert log["x_timeOfDay=Morning"] == 1.0
        assert (log["x_timeOfDay=Evening"], log["x_user.age"]) == (0.0, 30.0)
        unknown = f"{EVENTS}/nothing/reward"
        assert (await service.ask("POST", unknown, {"value": 1.0})).status_code == 404
        assert (await service.ask("POST", RANK, ASKED, headers={})).status_code == 401

    with_service(tmp_path, do)


def test_an_experiment_of_any_name_is_asked_under_its_own_address(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        url = "/v1/experiments/front%20page"
        await service.put(url, SETTINGS)
        deferred = {**ASKED, "eventId": None, "deferActivation": True, "excludedActions": []}
        told = (await service.ask("POST", url + RANK, deferred)).json()
        assert {one["id"] for one in told["ranking"]} == set(SETTINGS["arms"])
        event = f"{url}{EVENTS}/{told['eventId']}"
        assert (await service.ask("POST", f"{event}/reward", {"value": 2})).status_code == 204
        assert (await service.ask("GET", f"{url}/log")).json()["reward"] is None
        assert (await service.ask("POST", f"{event}/activate")).status_code == 204
        assert (await service.ask("GET", f"{url}/log")).json()["reward"] == 2.0

    with_service(tmp_path, do)


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"actions": [{"id": "other"}]}, "actions[0].id"),
        ({"actions": [{"id": "NewsArticle"}] * 2}, "actions"),
        ({"contextFeatures": [{"timeOfDay": "Noon"}]}, "contextFeatures.timeOfDay=Noon"),
        ({"contextFeatures": [{"hour": 7}]}, "contextFeatures.hour"),
        ({"excludedActions": SETTINGS["arms"]}, "excludedActions"),
        ({"contextFeatures": [{"user.age": 10**400}]}, "contextFeatures"),
        ({"more": 1}, "more"),
    ],
)
def test_what_the_experiment_does_not_have_is_refused(
    tmp_path: Path, changed: dict[str, Any], field: str
) -> None:
    async def do(service: Service) -> None:
        await service.put("/v1/experiments/personalizer", SETTINGS)
        answer = await service.ask("POST", RANK, {**ASKED, **changed})
        assert (answer.status_code, answer.json()["field"]) == (422, field)

    with_service(tmp_path, do)
