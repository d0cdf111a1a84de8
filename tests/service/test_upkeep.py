"""What time alone brings: rows that are unlearned, features that are erased, older tables."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the service needs posterity[service]")
pytest.importorskip("httpx")

import numpy as np

from posterity import BayesianLinearRegression
from posterity.files import dumps, loads
from posterity.service.engine import Engine
from posterity.service.messages import Row
from posterity.service.run import audit
from posterity.service.store import Store
from tests.service.harness import ARMS, Service, with_service

URL, PREDICTOR = "/v1/experiments/e", "/v1/predictors/p"


@pytest.fixture(autouse=True)
def slow_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The service looks at the clock when it is told to, and does a little at once."""
    monkeypatch.setattr("posterity.service.upkeep.LOOK_EVERY", 3600.0)
    for module in ("upkeep", "store"):
        monkeypatch.setattr(f"posterity.service.{module}.AT_ONCE", 20)


def rebuilt(folder: Path) -> bytes:
    """The model of the first name, from the database alone."""
    store = Store(f"sqlite:///{folder / 'posterity.db'}")
    content = dumps(Engine(store).restore(store.read_models()[0]).model)
    store.close()
    return content


def test_rows_are_unlearned_after_their_time(tmp_path: Path) -> None:
    now = [1000.0]

    async def do(service: Service) -> bytes:
        await service.put(PREDICTOR, {"features": ["a"], "forget_after": 10.0})
        rng = np.random.default_rng(3)
        rows = rng.normal(size=(60, 2))
        for n, (a, y) in enumerate(rows.tolist()):
            now[0] = 1000.0 + n / 10
            await service.post(f"{PREDICTOR}/learn", {"id": str(n), "x": [a], "y": y})
        await service.post(f"{PREDICTOR}/unlearn", {"id": "0"})
        now[0] = 1000.0 + 4.95 + 10.0
        assert await service.engine.upkeep.forget("p") == 49
        assert await service.engine.upkeep.forget("p") == 0
        content: bytes = (await service.ask("GET", f"{PREDICTOR}/model")).content
        left = BayesianLinearRegression()
        for a, y in rows[50:].tolist():
            left.learn_one(np.array([a]), y)
        X = np.array([[0.3], [-1.0]])
        told, want = loads(content).predict_distribution(X), left.predict_distribution(X)
        np.testing.assert_allclose(told.mean(), want.mean(), atol=1e-9)
        np.testing.assert_allclose(told.std(), want.std(), rtol=1e-9)
        row = Row(id="one group", x=[1.0], y=1.0)
        there = (
            service.engine.record_row("p", "learn", row),
            service.engine.record_row("p", "unlearn", row),
        )
        await asyncio.gather(*there)
        due = service.engine.store.find_forgettable("p", 1e9)
        assert sorted(due) == [str(n) for n in range(50, 60)]
        return (await service.ask("GET", f"{PREDICTOR}/model")).content

    assert with_service(tmp_path, do, clock=lambda: now[0]) == rebuilt(tmp_path)


def test_a_model_that_cannot_unlearn_is_refused_to_forget(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        asked = {"features": ["a"], "model": "quantile", "forget_after": 10.0}
        answer = await service.ask("PUT", PREDICTOR, asked)
        assert (answer.status_code, answer.json()["field"]) == (422, "forget_after")

    with_service(tmp_path, do)


def test_features_are_erased_after_their_time_and_what_was_learned_stays(tmp_path: Path) -> None:
    now = [1000.0]
    settings = {**ARMS, "features": ["age", "hour"], "erase_after": {"age": 10.0}}

    async def do(service: Service) -> bytes:
        await service.put(URL, settings)
        for n in range(5):
            asked = {"id": str(n), "context": {"age": 30.0 + n, "hour": 7.0}}
            await service.post(f"{URL}/decide", asked)
            await service.post(f"{URL}/reward", {"decision_id": str(n), "value": float(n)})
        now[0] += 6.0
        late = {"id": "late", "context": {"age": 50.0, "hour": 7.0}}
        decided = await service.post(f"{URL}/decide", late)
        before = (await service.ask("GET", f"{URL}/model")).content
        assert await service.engine.upkeep.erase("e") == 0
        now[0] += 5.0
        assert await service.engine.upkeep.erase("e") == 5
        assert await service.engine.upkeep.erase("e") == 0
        assert (await service.ask("GET", f"{URL}/model")).content == before
        await service.crash()
        await service.start()
        assert (await service.ask("GET", f"{URL}/model")).content == before
        lines = (await service.ask("GET", f"{URL}/log")).text.splitlines()
        log = [json.loads(line) for line in lines]
        assert [one["x_age"] for one in log] == [None] * 5 + [50.0]
        assert {one["x_hour"] for one in log} == {7.0}
        # The same request again has the same answer; another one has another context.
        assert await service.post(f"{URL}/decide", late) == decided
        again = {"id": "3", "context": {"age": 33.0, "hour": 7.0}}
        assert (await service.ask("POST", f"{URL}/decide", again)).status_code == 200
        again["context"] = {"age": 33.0, "hour": 8.0}
        assert (await service.ask("POST", f"{URL}/decide", again)).status_code == 409
        correction = {"decision_id": "3", "value": 9.0, "correct": True}
        answer = await service.ask("POST", f"{URL}/reward", correction)
        assert answer.status_code == 410
        assert "expired" in answer.json()["error"]
        assert (await service.ask("GET", f"{URL}/evaluate?policy=uniform")).status_code == 200
        form = await service.ask("GET", f"{URL}/log?format=arrow")
        assert form.status_code == 200
        return before

    content = with_service(tmp_path, do, clock=lambda: now[0])
    assert rebuilt(tmp_path) == content
    assert np.float64(33.0).tobytes() not in (tmp_path / "posterity.db").read_bytes()
    with pytest.raises(ValueError, match="has expired"):
        audit(str(tmp_path), "e", "3")
    assert audit(str(tmp_path), "e", "late")["same"]


@pytest.mark.parametrize(
    ("settings", "field"),
    [({"erase_after": {"x": 1.0}}, "erase_after.x"), ({"horizon": 5.0}, "erase_after.age")],
)
def test_what_cannot_expire_is_refused(tmp_path: Path, settings: dict, field: str) -> None:
    async def do(service: Service) -> None:
        answer = await service.ask("PUT", URL, {**ARMS, "erase_after": {"age": 1.0}, **settings})
        assert (answer.status_code, answer.json()["field"]) == (422, field)

    with_service(tmp_path, do)


def test_a_database_of_the_first_version_is_migrated(tmp_path: Path) -> None:
    async def played(service: Service) -> bytes:
        await service.put(URL, {**ARMS, "horizon": 60.0})
        for n in range(5):
            await service.post(f"{URL}/decide", {"id": str(n), "context": [float(n)]})
        await service.post(f"{URL}/reward", {"decision_id": "3", "value": 1.0})
        await service.put(PREDICTOR, {"features": ["a"]})
        await service.post(f"{PREDICTOR}/learn", {"id": "0", "x": [1.0], "y": 2.0})
        return (await service.ask("GET", f"{URL}/model")).content

    content = with_service(tmp_path, played)
    # The tables as version 1 had them.
    base = sqlite3.connect(tmp_path / "posterity.db")
    for table, index in (("decision", "decision_forget"), ("row", "row_forget")):
        base.execute(f"DROP INDEX {index}")
        base.execute(f'ALTER TABLE "{table}" DROP COLUMN forget')
    base.execute("DROP INDEX decision_due")
    base.execute("CREATE INDEX decision_expires ON decision (model, expires)")
    base.execute("UPDATE meta SET value = '1' WHERE name = 'version'")
    base.commit()
    base.close()

    async def again(service: Service) -> None:
        assert (await service.ask("GET", "/readyz")).status_code == 200
        assert service.engine.store.find([("e", "3")], []).decisions["e", "3"]["forget"] is None
        assert dumps(service.engine.models["e"].model) == content
        with service.engine.store.engine.connect() as connection:
            asked = "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
            names = {one[0] for one in connection.exec_driver_sql(asked)}
        assert names >= {"decision_due", "decision_forget", "row_forget"}
        assert "decision_expires" not in names
        engine = service.engine
        assert await engine.upkeep.expire("e") == 0
        now = engine.clock()
        engine.clock = lambda: now + 100.0
        assert await engine.upkeep.expire("e") == 4

    with_service(tmp_path, again)
