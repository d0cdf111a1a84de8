"""Who is let in, what is refused and how, and that errors name the field."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the service needs posterity[service]")
pytest.importorskip("httpx")

from posterity.service.app import create_app
from posterity.service.engine import Engine
from posterity.service.errors import RefusedError
from posterity.service.run import refuse_public
from posterity.service.store import Store
from posterity.service.tokens import Bucket
from tests.service.harness import ARMS, Service, with_service

URL = "/v1/experiments/e"


def test_roles_expiry_and_revocation(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        assert (await service.ask("GET", "/v1/overview", headers={})).status_code == 401
        await service.put(URL, ARMS)
        made = {
            role: (await service.post("/v1/tokens", {"name": role, "role": role}))["token"]
            for role in ("read", "decide")
        }
        old = {"name": "old", "role": "admin", "expires": time.time() - 1}
        made["old"] = (await service.post("/v1/tokens", old))["token"]

        async def status(token: str, method: str, path: str, body: Any = None) -> int:
            headers = {"authorization": f"Bearer {made[token]}"}
            return (await service.ask(method, path, body, headers=headers)).status_code

        assert await status("read", "GET", URL) == 200
        assert await status("read", "POST", f"{URL}/decide", {"context": [1.0]}) == 403
        assert await status("decide", "POST", f"{URL}/decide", {"context": [1.0]}) == 200
        assert await status("decide", "PUT", URL, ARMS) == 403
        assert await status("old", "GET", URL) == 401
        await service.post("/v1/tokens/revoke", {"name": "read"})
        assert await status("read", "GET", URL) == 401
        again = await service.ask("POST", "/v1/tokens", {"name": "read", "role": "read"})
        assert again.status_code == 409
        await service.crash()
        await service.start()
        assert await status("read", "GET", URL) == 401
        assert await status("decide", "GET", URL) == 200
        audited = (await service.ask("GET", "/v1/audit")).json()
        assert audited[0]["what"] == "experiment e"
        assert audited[-1]["after"] == "revoked"

    with_service(tmp_path, do)
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"first" in written


def test_tokens_are_not_in_the_database(tmp_path: Path) -> None:
    async def do(service: Service) -> str:
        return service.token

    token = with_service(tmp_path, do)
    assert len(token) >= 43
    for path in tmp_path.iterdir():
        assert token.encode() not in path.read_bytes()


@pytest.mark.parametrize(
    ("path", "body", "status", "field"),
    [
        ("/decide", {"context": {"size": 1.0}}, 422, "context.size"),
        ("/decide", {"context": {}}, 422, "context.age"),
        ("/decide", {"context": {"age": 1000.0}}, 422, "context.age"),
        ("/decide", {"context": {"age": "old"}}, 422, "context.age"),
        ("/decide", {"context": [1.0, 2.0]}, 422, "context"),
        ("/decide", {"context": [1.0], "arms": ["green"]}, 422, "arms"),
        ("/decide", {"context": [1.0], "arms": []}, 422, "arms"),
        ("/decide", {"context": [1.0], "colour": 1}, 422, "colour"),
        ("/decide", {"context": [1.0], "id": ""}, 422, "id"),
        ("/decide", {"context": [1.0], "id": "x" * 300}, 422, "id"),
        ("/decide/batch", {"decisions": []}, 422, "decisions"),
        ("/reward", {"decision_id": "none", "value": 1.0}, 404, "decision_id"),
        ("/reward", {"decision_id": "none"}, 422, "value"),
        ("/reward", {"decision_id": "none", "value": None}, 422, "value"),
        (
            "/decide/batch",
            {"decisions": [{"context": [1.0]}, {"context": [9e9]}]},
            422,
            "decisions[1].context.age",
        ),
        (
            "/decide/batch",
            {"decisions": [{"context": [1.0]}, {"context": {"age": "old"}}]},
            422,
            "decisions[1].context.age",
        ),
        ("/decide/batch", {"decisions": [{"colour": 1}]}, 422, "decisions[0].colour"),
        ("/personalizer/v1.0/rank", {"actions": []}, 422, "actions"),
        (
            "/personalizer/v1.0/rank",
            {"actions": [{"id": "red"}], "excludedActions": ["red"]},
            422,
            "excludedActions",
        ),
    ],
    ids=str,
)
def test_errors_name_the_field(
    tmp_path: Path, path: str, body: Any, status: int, field: str
) -> None:
    async def do(service: Service) -> None:
        await service.put(URL, {**ARMS, "ranges": {"age": [-200, 200]}})
        answer = await service.ask("POST", URL + path, body)
        assert answer.status_code == status, answer.text
        assert answer.json()["field"].startswith(field)
        assert service.engine.counts["decisions"] == service.engine.counts["failures"] == 0

    with_service(tmp_path, do)


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"{", 400),
        (b"\xff", 400),
        (b"[" * 100_000, 413),
        (b"[" * 60_000, 422),
        (b"x" * 70_000, 413),
        (b'{"context": [1e999]}', 422),
        (b'{"context": [NaN]}', 400),
        (b'{"context": {"age": "old"}', 422),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_is_no_json_or_too_large_is_refused(
    tmp_path: Path, content: bytes, status: int
) -> None:
    async def do(service: Service) -> None:
        await service.put(URL, ARMS)
        headers = {"authorization": f"Bearer {service.token}"}
        answer = await service.client.post(f"{URL}/decide", content=content, headers=headers)
        assert answer.status_code in (status, 400), answer.text
        assert answer.json()["error"]
        assert ("JSON has no NaN" in answer.json()["error"]) == (b"NaN" in content)

    with_service(tmp_path, do)


@pytest.mark.parametrize(
    ("path", "content", "told"),
    [
        ("/decide", "", "the body is empty: send JSON"),
        ("/decide", "{", "it ends before it is complete"),
        ("/decide", r'{"id": "\ud800"}', "a surrogate pair may be incomplete"),
        ("/decide", "[]", "this is an array: give an object"),
        ("/decide", '{"colour": 1}', "unknown field 'colour': give context, id, arms, activate"),
        ("/decide", '{"context": ["old"]}', "this is text: give a number"),
        ("/decide", '{"context": [1], "id": 5}', "this is an integer: give text or null"),
        ("/decide", '{"context": [1], "id": ""}', "the wrong length: give at least 1 characters"),
        ("/decide", r'{"context": [1], "id": "\u0000"}', "this contains a NUL character"),
        ("/decide", '{"context": [1, 2]}', "expected 1 numbers, got 2"),
        ("/decide/batch", '{"decisions": [{"colour": 1}]}', "unknown field 'colour': give context"),
        ("/reward", '{"value": 1}', "'decision_id' is missing: send it"),
        ("/reward", '{"decision_id": "x", "value": 1e999}', "the number is out of range: give"),
    ],
)
def test_an_error_says_in_plain_words_what_to_send(
    tmp_path: Path, path: str, content: str, told: str
) -> None:
    async def do(service: Service) -> None:
        await service.put(URL, ARMS)
        headers = {"authorization": f"Bearer {service.token}"}
        answer = await service.client.post(URL + path, content=content, headers=headers)
        assert answer.status_code in (400, 422)
        assert told in answer.json()["error"]

    with_service(tmp_path, do)


def test_a_setting_of_a_few_words_lists_them(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        answer = await service.ask("PUT", URL, {**ARMS, "aggregation": "mean"})
        assert answer.json() == {
            "error": "unknown value 'mean': give 'first', 'last' or 'sum'",
            "field": "aggregation",
        }
        for field, words in [
            ("model", "does not describe a model: give linear"),
            ("policy", "ucb"),
        ]:
            answer = await service.ask("PUT", URL, {**ARMS, field: "tree"})
            assert (answer.status_code, answer.json()["field"]) == (422, field)
            assert words in answer.json()["error"]
        answer = await service.ask("PUT", URL, {**ARMS, "floor": 2})
        assert answer.json() == {"error": "out of range: give at most 1.0", "field": "floor"}

    with_service(tmp_path, do)


def test_the_last_token_of_role_admin_stays(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        answer = await service.ask("POST", "/v1/tokens/revoke", {"name": "first"})
        assert answer.status_code == 409
        assert "make another first" in answer.json()["error"]
        await service.post("/v1/tokens", {"name": "second", "role": "admin"})
        await service.post("/v1/tokens/revoke", {"name": "first"})
        assert (await service.ask("GET", "/v1/audit")).status_code == 401

    with_service(tmp_path, do)


def test_a_new_token_takes_the_place_of_one_that_was_lost(tmp_path: Path) -> None:
    with_service(tmp_path, Service.pause)
    said: list[str] = []

    async def start(new_token: bool) -> None:
        engine = Engine(Store(f"sqlite:///{tmp_path / 'posterity.db'}"))
        async with create_app(engine, announce=said.append, new_token=new_token).live():
            pass

    asyncio.run(start(False))
    assert not said
    asyncio.run(start(True))

    async def do(service: Service) -> None:
        service.token = said[0]
        assert (await service.ask("GET", "/v1/audit")).status_code == 200

    with_service(tmp_path, do)


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"arms": []}, "arms"),
        ({"arms": ["a", "a"]}, "arms"),
        ({"arms": [f"a{n}" for n in range(1001)]}, "arms"),
        ({**ARMS, "ranges": {"size": [0, 1]}}, "ranges.size"),
        ({**ARMS, "floor": 2.0}, "floor"),
        ({**ARMS, "features": ["a", "a"]}, "features"),
        ({**ARMS, "default_reward": 1e300}, "default_reward"),
        ({**ARMS, "default_reward": 0.5, "model": "logistic"}, "default_reward"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_settings_that_cannot_be_are_refused(tmp_path: Path, settings: Any, field: str) -> None:
    async def do(service: Service) -> None:
        answer = await service.ask("PUT", URL, settings)
        assert (answer.status_code, answer.json()["field"]) == (422, field)
        assert (await service.ask("GET", URL)).status_code == 404

    with_service(tmp_path, do)


def test_settings_change_by_versions_and_arms_stay(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        assert (await service.put(URL, ARMS))["version"] == 1
        assert (await service.put(URL, ARMS))["version"] == 1
        assert (await service.put(URL, {**ARMS, "floor": 0.5}))["version"] == 2
        answer = await service.ask("PUT", URL, {**ARMS, "arms": ["red", "green"]})
        assert (answer.status_code, answer.json()["field"]) == (409, "arms")

    with_service(tmp_path, do)


def test_a_full_queue_says_when_to_come_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def do(service: Service) -> None:
        await service.put(URL, ARMS)
        monkeypatch.setattr("posterity.service.engine.MOST_WAITING", 0)
        answer = await service.ask("POST", f"{URL}/decide", {"context": [1.0]})
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")

    with_service(tmp_path, do)


def test_a_body_that_does_not_come_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("posterity.service.bodies.LONGEST", 0.05)
    monkeypatch.setattr("posterity.service.bodies.LOOK_EVERY", 0.01)

    async def do(service: Service) -> None:
        await service.put(URL, ARMS)

        said: list[Any] = []
        waiting = [{"type": "http.request", "body": b'{"context": ', "more_body": True}]

        async def receive() -> Any:
            return waiting.pop() if waiting else await asyncio.Event().wait()

        async def send(message: Any) -> None:
            said.append(message)

        scope = {
            "type": "http",
            "method": "POST",
            "path": f"{URL}/decide",
            "raw_path": f"{URL}/decide".encode(),
            "query_string": b"",
            "headers": [(b"authorization", f"Bearer {service.token}".encode())],
        }
        await service.app(scope, receive, send)
        assert said[0]["status"] == 408
        assert b"send it again" in said[1]["body"]

    with_service(tmp_path, do)


def test_a_bucket_refuses_what_is_too_fast() -> None:
    bucket = Bucket(left=2.0)
    assert [bucket.take(rate=0.0, burst=2.0) for _ in range(3)] == [True, True, False]


def test_a_public_address_needs_to_be_said() -> None:
    for host in ("127.0.0.1", "::1", "localhost"):
        refuse_public(host, public=False)
    refuse_public("0.0.0.0", public=True)
    for host in ("0.0.0.0", "192.168.1.2", "example.org", "::"):
        with pytest.raises(ValueError, match="give --public"):
            refuse_public(host, public=False)


def test_health_metrics_and_openapi(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        await service.put(URL, ARMS)
        await service.post(f"{URL}/decide", {"context": [1.0]})
        assert (await service.ask("GET", "/healthz", headers={})).status_code == 200
        assert (await service.ask("GET", "/readyz", headers={})).status_code == 200
        metrics = (await service.ask("GET", "/metrics")).text
        assert "posterity_decisions_total 1\n" in metrics
        assert 'posterity_decision_wait_seconds{name="e",within="99%"} 0.0' in metrics
        answer = (await service.ask("GET", "/openapi.json", headers={})).json()
        assert "Decide" in answer["components"]["schemas"]
        assert answer["paths"]["/v1/experiments/{name}/decide"]["post"]["summary"]
        assert (await service.ask("GET", "/nothing")).json()["error"].startswith("Not Found")

    with_service(tmp_path, do)


def test_a_refusal_says_what_it_is() -> None:
    assert str(RefusedError(404, "nothing there", "id")) == "nothing there"
