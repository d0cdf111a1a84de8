"""Decisions that were just made are known without the log, and only as long as it has them so."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the service needs posterity[service]")
pytest.importorskip("httpx")

from posterity.service import recent
from posterity.service.store import Store
from tests.service.harness import ARMS, Service, with_service

EXPERIMENT = "/v1/experiments/e"


async def live(service: Service) -> list[Any]:
    """Decisions with all that may come for one; the answers, and the log at the end."""
    await service.put(EXPERIMENT, ARMS)
    answers = []

    async def send(path: str, **body: Any) -> None:
        answer = await service.ask("POST", f"{EXPERIMENT}/{path}", body)
        answers.append((answer.status_code, answer.json()))

    for n in range(6):
        await send("decide", id=f"{n}", context=[n / 3], activate=n != 4)
    for n, value in itertools.product(range(6), (1.0, 1.0, 0.5)):
        await send("reward", decision_id=f"{n}", value=value)
    await send("reward", decision_id="1", value=0.25, correct=True)
    await send("reward", decision_id="1", value=2.0, event_id="second")
    await send("take-back", decision_id="2")
    await send("activate", decision_id="4")
    deleted = await service.ask("DELETE", f"{EXPERIMENT}/decisions/3")
    answers.append((deleted.status_code, deleted.json()))
    for n in range(7):
        await send("decide", id=f"{n}", context=[n / 3])
        await send("reward", decision_id=f"{n}", value=2.0, event_id="last")
    return [*answers, (await service.ask("GET", f"{EXPERIMENT}/log")).text]


@pytest.mark.parametrize("bytes_kept", [0, 3 * recent.BYTES_EACH])
def test_what_is_known_is_what_the_log_has(
    tmp_path: Path, bytes_kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One clock and one secret, so that the logs are the same.
    monkeypatch.setattr(Store, "read_secret", lambda *_: "secret")
    folders = tmp_path / "all", tmp_path / "few"
    for folder in folders:
        folder.mkdir()
    known = with_service(folders[0], live, lambda: 1e9)
    monkeypatch.setattr(recent, "MOST_BYTES", bytes_kept)
    assert with_service(folders[1], live, lambda: 1e9) == known


def test_the_log_is_not_read_for_what_was_just_decided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up: list[Any] = []
    find = Store.find

    def note(store: Store, decisions: Any, rows: Any, found: Any = None) -> Any:
        looked_up.extend(decisions)
        return find(store, decisions, rows, found)

    async def do(service: Service) -> None:
        await service.put(EXPERIMENT, ARMS)
        made = await service.post(f"{EXPERIMENT}/decide", {"context": [0.5]})
        reward = {"decision_id": made["id"], "value": 1.0}
        statuses = [await service.post(f"{EXPERIMENT}/reward", reward) for _ in range(2)]
        assert [one["status"] for one in statuses] == ["new", "duplicate"]
        assert not looked_up
        # What was erased in the log is not kept here.
        await service.ask("DELETE", f"{EXPERIMENT}/decisions/{made['id']}")
        answer = await service.ask("POST", f"{EXPERIMENT}/reward", reward)
        assert answer.status_code == 410
        assert looked_up == [("e", made["id"])]

    monkeypatch.setattr(Store, "find", note)
    with_service(tmp_path, do)
