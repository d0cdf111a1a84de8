"""Batches of rows, all or none, and model files that a service goes on with."""

from __future__ import annotations

import asyncio
import gzip
import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the service needs posterity[service]")
pytest.importorskip("httpx")

import numpy as np
import pandas as pd

from posterity import BayesianLinearRegression, GroupedRegression, Model
from posterity.bandits import Bandit
from posterity.files import container, dumps, schemas
from tests.service.harness import ARMS, Service, with_service

URL = "/v1/predictors/load"
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"shop": [*"abcab"] * 8, "heat": RNG.normal(size=40)})
Y = FRAME["heat"].to_numpy() + (FRAME["shop"] == "b") + 0.3 * RNG.normal(size=40)
X: list[Any] = FRAME.to_dict("records")
ROWS = [{"id": f"{n}", "x": x, "y": float(y)} for n, (x, y) in enumerate(zip(X, Y, strict=True))]
FEATURES = {"features": {"shop": "category", "heat": "number"}}


def test_a_batch_is_the_rows_one_by_one(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        await service.put(URL, FEATURES)
        await service.put(f"{URL}2", FEATURES)
        one_by_one = [await service.post(f"{URL}/learn", row) for row in ROWS]
        first = await service.post(f"{URL}2/learn/batch", {"rows": ROWS[:30]})
        rest = await service.post(f"{URL}2/learn/batch", {"rows": ROWS[25:]})  # some once more
        assert [one["status"] for one in rest["rows"]] == ["duplicate"] * 5 + ["new"] * 10
        assert first["rows"] + rest["rows"][5:] == one_by_one
        models = [(await service.ask("GET", f"{url}/model")).content for url in (URL, f"{URL}2")]
        assert models[0] == models[1]
        told = await service.post(f"{URL}/predict/batch", {"rows": X[:7]})
        singles = [await service.post(f"{URL}/predict", {"x": x}) for x in X[:7]]
        means = [one["mean"] for one in told["predictions"]]
        assert means == pytest.approx([one["mean"] for one in singles])
        await service.crash()
        await service.start()
        assert (await service.ask("GET", f"{URL}2/model")).content == models[0]

    with_service(tmp_path, do)


def test_decisions_and_rewards_do_not_wait_for_a_batch(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        await service.put(URL, FEATURES)
        await service.put(f"{URL}2", FEATURES)
        await service.put("/v1/experiments/e", ARMS)
        batch = asyncio.create_task(service.post(f"{URL}/learn/batch", {"rows": ROWS}))
        # A row of the same predictor that comes later is learned after the batch.
        last = {"id": "last", "x": X[0], "y": 1.0}
        follower = asyncio.create_task(service.post(f"{URL}/learn", last))
        answered = 0
        while not batch.done():
            asked = {"context": {"age": 0.5}, "id": f"{answered}"}
            made = await service.post("/v1/experiments/e/decide", asked)
            reward = {"decision_id": made["id"], "value": 1.0}
            await service.post("/v1/experiments/e/reward", reward)
            answered += not batch.done()
        assert answered > 2
        await asyncio.gather(batch, follower)
        for row in [*ROWS, last]:
            await service.post(f"{URL}2/learn", row)
        models = [(await service.ask("GET", f"{url}/model")).content for url in (URL, f"{URL}2")]
        assert models[0] == models[1]
        await service.crash()
        await service.start()
        assert (await service.ask("GET", f"{URL}/model")).content == models[0]

    with_service(tmp_path, do)


BAD_ROWS = [
    ({**ROWS[3], "x": {"shop": "a", "heat": "hot"}}, 422, "rows[3].x.heat"),
    ({**ROWS[3], "x": {"shop": "a"}}, 422, "rows[3].x.heat"),
    ({**ROWS[3], "y": 1e200}, 422, "rows[3].y"),
    ({**ROWS[0], "y": 7.0}, 409, "rows[3].id"),
    ({"id": "3", "x": X[3]}, 422, "rows[3].y"),
    ({**ROWS[3], "x": {"shop": ["a"], "heat": 1.0}}, 422, "rows[3].x.shop"),
]


def test_of_a_batch_with_a_bad_row_nothing_is_learned(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        await service.put(URL, FEATURES)
        await service.post(f"{URL}/learn", ROWS[39])
        before = (await service.ask("GET", f"{URL}/model")).content
        for bad, status, field in BAD_ROWS:
            rows = [*ROWS[:3], bad, *ROWS[4:10]]
            answer = await service.ask("POST", f"{URL}/learn/batch", {"rows": rows})
            assert (answer.status_code, answer.json()["field"]) == (status, field), answer.text
        rows = [*X[:3], {"shop": "a", "heat": None}]
        answer = await service.ask("POST", f"{URL}/predict/batch", {"rows": rows})
        assert (answer.status_code, answer.json()["field"]) == (422, "rows[3].x.heat")
        for rows in ([], [ROWS[0]] * 1001):
            assert (
                await service.ask("POST", f"{URL}/learn/batch", {"rows": rows})
            ).status_code == 422
        assert (await service.ask("GET", f"{URL}/model")).content == before
        assert (await service.ask("GET", URL)).json()["scores"]["n"] == 0
        await service.crash()
        await service.start()
        assert (await service.ask("GET", f"{URL}/model")).content == before
        assert (await service.post(f"{URL}/learn", ROWS[3]))["status"] == "new"

    with_service(tmp_path, do)


async def upload(service: Service, content: bytes, query: str = "") -> Any:
    headers = {"authorization": f"Bearer {service.token}"}
    return await service.client.put(f"{URL}/model{query}", content=content, headers=headers)


MODELS = {
    "table": BayesianLinearRegression(),
    "groups": GroupedRegression(by="shop"),
    "formula": Model("y ~ heat + (1 | shop)"),
}


@pytest.mark.parametrize("kind", MODELS)
def test_a_fitted_model_goes_on(tmp_path: Path, kind: str) -> None:
    model = MODELS[kind].fit(FRAME[:30], Y[:30])
    content = dumps(model)

    async def do(service: Service) -> dict[str, Any]:
        answer = await upload(service, content, "?level=0.5")
        assert answer.json() == {"name": "load", "version": 1}, answer.text
        assert (await service.ask("GET", f"{URL}/model")).content == content
        for row in ROWS[30:]:
            await service.post(f"{URL}/learn", row)
        state = (await service.ask("GET", URL)).json()
        assert state["settings"]["level"] == 0.5
        assert state["settings"]["file"] == f"{len(content):,} bytes"
        assert state["schema"] == FEATURES["features"]
        told = await service.post(f"{URL}/predict", {"x": X[0]})
        await service.crash()
        await service.start()
        assert await service.post(f"{URL}/predict", {"x": X[0]}) == told
        await service.post(f"{URL}/unlearn", {"id": "35"})
        audit = (await service.ask("GET", "/v1/audit")).text
        assert len(audit) < 2000
        return told

    told = with_service(tmp_path, do)
    for row in ROWS[30:]:
        model.learn_one(row["x"], row["y"])
    assert told["mean"] == pytest.approx(float(model.predict(FRAME[:1])[0]), rel=1e-6)


def test_a_model_of_arrays_goes_on(tmp_path: Path) -> None:
    model = BayesianLinearRegression().fit(FRAME[["heat"]].to_numpy(), Y)

    async def do(service: Service) -> float:
        assert (await upload(service, dumps(model))).status_code == 200
        assert (await service.ask("GET", URL)).json()["schema"] == {"x0": "number"}
        return (await service.post(f"{URL}/predict", {"x": [1.0]}))["mean"]

    assert with_service(tmp_path, do) == pytest.approx(model.predict([[1.0]])[0])


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    content = dumps(BayesianLinearRegression().fit(FRAME, Y))
    broken = bytearray(content)
    broken[-1] ^= 1
    document, arrays = schemas.write(BayesianLinearRegression().fit(FRAME, Y), {})
    newer = container.pack(document.replace('"schema":1', '"schema":99'), arrays)
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model", bytes(20_000_000))

    async def do(service: Service) -> None:
        for file, query, words in [
            (b"", "", "not a model file"),
            (b"something else", "", "not a model file"),
            (bomb.getvalue(), "", "not a model file"),
            (gzip.compress(content), "", "not a model file"),
            (pickle.dumps(FRAME), "", "not a model file"),
            ((2**62).to_bytes(8, "little") + content[8:], "", "was it cut off?"),
            (newer, "", "upgrade posterity"),
            *((content[:size], "", "") for size in range(1, len(content), len(content) // 20)),
            (content[:-20], "", ""),
            (bytes(broken), "", ""),
            (dumps(Bandit(arms=["a", "b"])), "", "does not learn rows"),
            (content, "?levels=3", "this is"),
            (content, "?level=2", "out of range"),
            (content, "?unknown=2", "unknown field 'unknown'"),
        ]:
            answer = await upload(service, file, query)
            assert answer.status_code == 422, answer.text
            assert words in answer.json()["error"], answer.text
        assert (await upload(service, bytes(17_000_000))).status_code == 413
        assert (await service.ask("GET", URL)).status_code == 404
        assert (await upload(service, content)).status_code == 200
        assert (await upload(service, content)).json()["version"] == 1
        other = dumps(BayesianLinearRegression().fit(FRAME[:20], Y[:20]))
        assert (await upload(service, other)).status_code == 409

    with_service(tmp_path, do)
