"""Logs of other services become experiments of ours, each line once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("starlette", reason="the service needs posterity[service]")
pytest.importorskip("httpx")
pytest.importorskip("uvicorn")

from posterity.bandits import Bandit
from posterity.files import dumps
from posterity.service.imports import import_dsjson
from posterity.service.run import audit, lock_folder
from tests.service.harness import Service, with_service

URL = "/v1/experiments/e"


def line(n: int, **more: Any) -> str:
    """A line as Personalizer logs it: the chosen arm first."""
    arms = [{"id": "news"}, {"id": "sport"}, {"id": "show"}]
    order = [2, 1] if n % 3 == 0 else [1, 3, 2]
    told = {
        "_label_cost": -float(n % 4),
        "_label_probability": 0.7,
        "EventId": f"e{n}",
        "Timestamp": f"2019-10-01T12:00:{n % 60:02d}.2840420Z",
        "a": order,
        "c": {
            "FromUrl": [{"hour": n % 24}, {"device": "mobile" if n % 2 else "desktop"}],
            "_multi": [{"i": arm} for arm in arms],
        },
        "p": [0.7, 0.3] if len(order) == 2 else [0.7, 0.2, 0.1],
    }
    return json.dumps(told | more)


def test_a_log_is_imported_once_and_learned_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("posterity.service.imports._AT_ONCE", 7)
    path, folder = tmp_path / "log.dsjson", tmp_path / "served"
    lines = [line(n) for n in range(40)]
    path.write_text("\n".join([*lines[:20], json.dumps({"RewardValue": 1.0})]))
    assert import_dsjson(str(path), str(folder), "e") == {"decisions": 20, "rewards": 20}
    path.write_text("\n".join([*lines, line(40, _skipLearn=True)]))
    assert import_dsjson(str(path), str(folder), "e") == {"decisions": 21, "rewards": 20}
    assert import_dsjson(str(path), str(folder), "e") == {"decisions": 0, "rewards": 0}
    names = ["hour", "device=desktop", "device=mobile"]
    want = Bandit(arms=["news", "show", "sport"], rng=0)
    for n in range(40):
        x = np.array([n % 24, float(n % 2 == 0), float(n % 2)])
        want.learn_one(x, "sport" if n % 3 == 0 else "news", float(n % 4))

    async def do(service: Service) -> None:
        state = (await service.ask("GET", URL)).json()
        assert state["settings"]["features"] == names
        assert (await service.ask("GET", f"{URL}/model")).content == dumps(want)
        log = [json.loads(one) for one in (await service.ask("GET", f"{URL}/log")).iter_lines()]
        assert [one["id"] for one in log] == [f"e{n}" for n in range(41)]
        assert log[3]["p_sport"] == pytest.approx(0.7)
        assert log[3]["p_show"] == 0.0
        assert log[40]["reward"] is None
        assert log[1]["at"] == pytest.approx(1569931201.284042)
        again = {"id": "e1", "context": [1.0, 0.0, 1.0]}
        told = await service.post(f"{URL}/decide", again)
        assert (told["arm"], told["propensity"]) == ("news", pytest.approx(0.7))
        answer = await service.ask("GET", f"{URL}/evaluate?policy=uniform&policy=logged")
        assert answer.status_code == 200, answer.text
        assert (await service.ask("GET", "/v1/overview")).status_code == 200
        asked = {"contextFeatures": [{"hour": 3, "device": "mobile"}]}
        asked |= {"actions": [{"id": "news"}, {"id": "show"}]}  # type: ignore[dict-item]
        answer = await service.ask("POST", f"{URL}/personalizer/v1.0/rank", asked)
        assert answer.status_code == 201

    with_service(folder, do)
    with pytest.raises(ValueError, match="imported: another service made it"):
        audit(str(folder), "e", "e1")


def test_what_cannot_be_imported_is_refused(tmp_path: Path) -> None:
    path, folder = tmp_path / "log.dsjson", tmp_path / "served"
    path.write_text("\n".join(line(n) for n in range(3)))
    import_dsjson(str(path), str(folder), "e")
    path.write_text(line(3, c={"_multi": [{"i": {"id": "other"}}] * 3}))
    with pytest.raises(ValueError, match="has an arm 'other'"):
        import_dsjson(str(path), str(folder), "e")
    path.write_text(line(3).replace("hour", "minute"))
    with pytest.raises(ValueError, match="unknown feature 'minute'"):
        import_dsjson(str(path), str(folder), "e")
    path.write_text("{}")
    with pytest.raises(ValueError, match="contains no decisions"):
        import_dsjson(str(path), str(folder), "other")
    with (
        lock_folder(str(folder)),
        pytest.raises(ValueError, match="another server uses"),
    ):
        import_dsjson(str(path), str(folder), "e")


def test_the_command_imports(tmp_path: Path) -> None:
    testing = pytest.importorskip("click.testing", reason="needs click (posterity[cli])")
    from posterity.cli.commands import posterity

    path = tmp_path / "log.dsjson"
    path.write_text(line(0) + "\n" + line(1))
    words = ["import", "dsjson", str(path), str(tmp_path / "served"), "e"]
    answer = testing.CliRunner().invoke(posterity, words)
    assert answer.output == "2 new decisions, 2 rewards learned\n", answer.output
