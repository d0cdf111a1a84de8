"""Experiments over HTTP: decide, reward, correct, take back, and what the log says of it."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

pytest.importorskip("starlette", reason="the service needs posterity[service]")
pytest.importorskip("httpx")

from posterity import BayesianLinearRegression, BayesianLogisticRegression
from posterity.bandits import Bandit
from posterity.files import dumps, loads
from posterity.service.run import audit
from tests.service.harness import ARMS, Service, with_service

URL = "/v1/experiments/e"


async def played(service: Service, rounds: int, seed: int = 0) -> list[dict[str, Any]]:
    """Decide and reward; blue is better where age is positive."""
    rng = np.random.default_rng(seed)
    made = []
    for n in range(rounds):
        age = float(rng.normal())
        one = await service.post(f"{URL}/decide", {"id": f"{seed}-{n}", "context": {"age": age}})
        value = (age if one["arm"] == "blue" else -age) + 0.1 * float(rng.normal())
        await service.post(f"{URL}/reward", {"decision_id": one["id"], "value": value})
        made.append({**one, "age": age, "value": value})
    return made


def test_it_learns_which_arm_is_better(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        await service.put(URL, ARMS)
        await played(service, 80)
        answer = await service.post(f"{URL}/decide", {"context": [2.0]})
        # The arm itself is drawn: one time in a hundred it is the other.
        assert answer["propensities"]["blue"] == pytest.approx(0.99)
        assert answer["propensity"] == answer["propensities"][answer["arm"]]
        assert answer["means"]["blue"] == pytest.approx(2.0, abs=0.2)
        assert answer["widths"]["blue"] > 0.0

    with_service(tmp_path, do)


def test_the_same_id_again_gives_the_same_answer_also_after_learning(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        await service.put(URL, ARMS)
        asked = {"id": "x", "context": {"age": 1.0}}
        first = await service.post(f"{URL}/decide", asked)
        await played(service, 20)
        assert await service.post(f"{URL}/decide", asked) == first
        other = await service.ask("POST", f"{URL}/decide", {"id": "x", "context": {"age": 2.0}})
        assert other.status_code == 409
        assert other.json()["field"] == "id"

    with_service(tmp_path, do)


def test_the_model_is_what_a_bandit_learns_by_itself(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        await service.put(URL, ARMS)
        made = await played(service, 30)
        bandit = Bandit(arms=["red", "blue"], rng=0)
        for one in made:
            bandit.learn_one(np.array([one["age"]]), one["arm"], one["value"])
        answer = await service.ask("GET", f"{URL}/model")
        assert answer.content == dumps(bandit)
        assert loads(answer.content).arms_ == ["red", "blue"]

    with_service(tmp_path, do)


def test_rewards_count_once_and_can_be_corrected_and_taken_back(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        await service.put(URL, ARMS)
        await played(service, 10)
        before = (await service.ask("GET", f"{URL}/model")).content
        one = (await service.post(f"{URL}/decide", {"context": [0.5]}))["id"]

        async def send(what: str, **fields: Any) -> Any:
            return await service.post(f"{URL}/{what}", {"decision_id": one, **fields})

        assert await send("reward", value=1.0) == {"status": "new", "total": 1.0}
        once = (await service.ask("GET", f"{URL}/model")).content
        assert once != before
        assert await send("reward", value=1.0) == {"status": "duplicate", "total": 1.0}
        assert (await service.ask("GET", f"{URL}/model")).content == once
        body = {"decision_id": one, "value": 3.0}
        refused = await service.ask("POST", f"{URL}/reward", body)
        assert (refused.status_code, refused.json()["field"]) == (409, "value")
        assert (await send("reward", value=3.0, correct=True))["status"] == "corrected"
        assert await send("reward", value=2.0, event_id="later") == {"status": "new", "total": 5.0}
        assert (await send("take-back"))["total"] == 2.0
        assert (await send("take-back", event_id="later")) == {
            "status": "taken back",
            "total": None,
        }
        assert (await send("take-back"))["status"] == "duplicate"
        after = loads((await service.ask("GET", f"{URL}/model")).content)
        want = loads(before).beliefs(np.array([[0.5]])).mean
        np.testing.assert_allclose(after.beliefs(np.array([[0.5]])).mean, want, atol=1e-9)

    with_service(tmp_path, do)


def test_a_decision_that_was_not_shown_is_learned_once_it_was(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        await service.put(URL, ARMS)
        asked = {"context": [1.0], "activate": False}
        one = (await service.post(f"{URL}/decide", asked))["id"]
        answer = await service.post(f"{URL}/reward", {"decision_id": one, "value": 1.0})
        assert answer == {"status": "new", "total": None}
        assert await service.post(f"{URL}/activate", {"decision_id": one}) == {
            "status": "activated",
            "total": 1.0,
        }

    with_service(tmp_path, do)


@pytest.mark.parametrize(("how", "total"), [("sum", 3.0), ("first", 1.0), ("last", 2.0)])
def test_rewards_of_a_decision_add_up_as_the_settings_say(
    tmp_path: Path, how: str, total: float
) -> None:
    async def do(service: Service) -> None:
        await service.put(URL, {**ARMS, "aggregation": how})
        one = (await service.post(f"{URL}/decide", {"context": [1.0]}))["id"]
        for event, value in (("a", 1.0), ("b", 2.0)):
            answer = await service.post(
                f"{URL}/reward", {"decision_id": one, "value": value, "event_id": event}
            )
        assert answer["total"] == total

    with_service(tmp_path, do)


def test_the_default_is_learned_at_the_horizon_and_a_late_reward_takes_its_place(
    tmp_path: Path,
) -> None:
    now = [1000.0]

    async def do(service: Service) -> None:
        await service.put(URL, {**ARMS, "horizon": 10.0, "default_reward": -1.0})
        one = (await service.post(f"{URL}/decide", {"context": [1.0]}))["id"]
        assert await service.engine.upkeep.expire("e") == 0
        now[0] += 11.0
        assert await service.engine.upkeep.expire("e") == 1
        assert await service.engine.upkeep.expire("e") == 0
        log = (await service.ask("GET", f"{URL}/log")).text
        assert '"reward":-1.0' in log
        answer = await service.post(f"{URL}/reward", {"decision_id": one, "value": 4.0})
        assert answer == {"status": "new", "total": 4.0}

    with_service(tmp_path, do, clock=lambda: now[0])


def test_models_of_shards_merge_into_the_model_of_all(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        rng = np.random.default_rng(5)
        for name in ("all", "east", "west"):
            await service.put(f"/v1/experiments/{name}", ARMS)
        for n in range(40):
            shard = "east" if n % 3 else "west"
            asked = {"id": str(n), "context": [float(rng.normal())]}
            arm = (await service.post(f"/v1/experiments/{shard}/decide", asked))["arm"]
            await service.post("/v1/experiments/all/decide", {**asked, "arms": [arm]})
            for name in ("all", shard):
                reward = {"decision_id": str(n), "value": float(n % 4)}
                await service.post(f"/v1/experiments/{name}/reward", reward)
        models = [
            loads((await service.ask("GET", f"/v1/experiments/{name}/model")).content)
            for name in ("all", "east", "west")
        ]
        X = np.array([[0.5], [-2.0]])
        want, told = models[0].beliefs(X), models[1].merge(models[2]).beliefs(X)
        np.testing.assert_allclose(told.mean, want.mean, atol=1e-10)
        np.testing.assert_allclose(told.std, want.std, rtol=1e-10)

    with_service(tmp_path, do)


def test_deleting_a_decision_unlearns_it_and_erases_its_context(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        await service.put(URL, ARMS)
        await played(service, 10)
        before = loads((await service.ask("GET", f"{URL}/model")).content)
        one = (await service.post(f"{URL}/decide", {"context": [7.0]}))["id"]
        await service.post(f"{URL}/reward", {"decision_id": one, "value": 1.0})
        await service.post(f"{URL}/decide", {"id": "between", "context": [1.0]})
        assert (await service.ask("DELETE", f"{URL}/decisions/{one}")).status_code == 200
        after = (await service.ask("GET", f"{URL}/model")).content
        X = np.array([[0.5]])
        np.testing.assert_allclose(loads(after).beliefs(X).mean, before.beliefs(X).mean, atol=1e-9)
        late = await service.ask("POST", f"{URL}/reward", {"decision_id": one, "value": 1.0})
        assert late.status_code == 410
        assert one not in (await service.ask("GET", f"{URL}/log")).text
        await service.crash()
        await service.start()
        assert (await service.ask("GET", f"{URL}/model")).content == after
        with pytest.raises(ValueError, match="was deleted"):
            audit(str(tmp_path), "e", one)
        with pytest.raises(ValueError, match="a learned decision was deleted with its features"):
            audit(str(tmp_path), "e", "between")
        assert audit(str(tmp_path), "e", "0-9")["same"]

    with_service(tmp_path, do)


def test_a_batch_is_one_commit_and_a_retry_of_it_the_same(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        await service.put(URL, ARMS)
        asked = {"decisions": [{"id": f"d{n}", "context": [n / 10]} for n in range(100)]}
        before = service.engine.counts["commits"]
        first = await service.post(f"{URL}/decide/batch", asked)
        assert service.engine.counts["commits"] == before + 1
        assert len(first["decisions"]) == 100
        assert await service.post(f"{URL}/decide/batch", asked) == first

    with_service(tmp_path, do)


def test_many_at_once_share_commits(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        await service.put(URL, ARMS)
        before = service.engine.counts["commits"]
        asked = {"id": "one", "context": [1.0]}
        same = [service.post(f"{URL}/decide", asked) for _ in range(20)]
        others = [service.post(f"{URL}/decide", {"context": [1.0]}) for _ in range(40)]
        answer = await asyncio.gather(*same, *others)
        assert all(one == answer[0] for one in answer[:20])
        assert service.engine.counts["commits"] - before < 30
        assert service.engine.counts["decisions"] == 41

    with_service(tmp_path, do)


def test_only_allowed_arms_are_chosen(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        await service.put(URL, ARMS)
        await played(service, 30)
        for _ in range(10):
            answer = await service.post(f"{URL}/decide", {"context": [2.0], "arms": ["red"]})
            assert (answer["arm"], answer["propensity"]) == ("red", 1.0)

    with_service(tmp_path, do)


@pytest.mark.parametrize(
    "settings",
    [
        {"policy": "upper confidence bound"},
        {"policy": "inverse gap"},
        {"policy": "ucb"},
        {"policy": "Epsilon-greedy"},
        {"policy": "softmax"},
        {"policy": "squarecb"},
        {"policy": "top two"},
        {"policy": "information directed"},
        {"policy": "ucb", "model": "linear+adaptive"},
        {"policy": "inverse gap", "model": "logistic+stabilized:0.99"},
        {"model": "logistic"},
        {"features": []},
    ],
    ids=str,
)
def test_every_policy_and_model_decides_and_learns(tmp_path: Path, settings: Any) -> None:
    async def do(service: Service) -> None:
        await service.put(URL, {**ARMS, **settings})
        context = [] if settings.get("features") == [] else [0.5]
        for n in range(12):
            answer = await service.post(f"{URL}/decide", {"context": context})
            await service.post(f"{URL}/reward", {"decision_id": answer["id"], "value": n % 2})
        assert sum(answer["propensities"].values()) == pytest.approx(1.0)

    with_service(tmp_path, do)


def test_the_log_is_read_as_arrow_and_parquet_and_judges_policies(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    async def do(service: Service) -> None:
        await service.put(URL, ARMS)
        made = await played(service, 40)
        arrow = (await service.ask("GET", f"{URL}/log?format=arrow")).content
        table = pa.ipc.open_stream(arrow).read_all()
        assert table["id"].to_pylist() == [one["id"] for one in made]
        assert table["reward"].to_pylist() == [one["value"] for one in made]
        assert table["p_red"].to_pylist() == [one["propensities"]["red"] for one in made]
        parquet = (await service.ask("GET", f"{URL}/log?format=parquet")).content
        assert pq.read_table(io.BytesIO(parquet)).equals(table)
        last = table["seq"][-2].as_py()
        rest = (await service.ask("GET", f"{URL}/log?after={last}")).text.splitlines()
        assert len(rest) == 1
        answer = (await service.ask("GET", f"{URL}/evaluate?policy=uniform&policy=blue")).json()
        assert {one["policy"] for one in answer} == {"uniform", "blue"}

    with_service(tmp_path, do)


@pytest.mark.parametrize(
    ("model", "unlearns"),
    [
        ("linear", True),
        ("robust", True),
        ("quantile", False),
        ("logistic", True),
        ("poisson", True),
        ("negative binomial", True),
    ],
)
def test_a_predictor_of_each_model_is_the_same_after_a_crash(
    tmp_path: Path, model: str, unlearns: bool
) -> None:
    url = "/v1/predictors/p"

    async def do(service: Service) -> None:
        await service.put(url, {"features": ["a"], "model": model})
        for n in range(80):
            row = {"id": str(n), "x": [n % 5 - 2.0], "y": float((7 * n) % 5 > 2)}
            await service.post(f"{url}/learn", row)
        if unlearns:
            await service.post(f"{url}/unlearn", {"id": "3"})
        told = await service.post(f"{url}/predict", {"x": [1.0]})
        assert told["low"] <= told["mean"] <= told["high"]
        before = (await service.ask("GET", f"{url}/model")).content
        scores = (await service.ask("GET", url)).json()["scores"]
        assert scores["n"] > 60
        assert scores["coverage"] > 0.5
        await service.crash()
        await service.start()
        assert (await service.ask("GET", f"{url}/model")).content == before
        assert (await service.ask("GET", url)).json()["scores"] == scores

    with_service(tmp_path, do)


def test_a_logistic_predictor_tells_the_probability_of_yes(tmp_path: Path) -> None:
    url = "/v1/predictors/p"

    async def do(service: Service) -> None:
        await service.put(url, {"features": ["a"], "model": "logistic"})
        first = await service.post(f"{url}/learn", {"id": "0", "x": [1], "y": 1})
        assert first["mean"] is None
        told = await service.post(f"{url}/predict", {"x": [1]})
        assert told["mean"] is None  # no row has been 0 yet
        model = BayesianLogisticRegression()
        model.learn_one([1.0], 1.0)
        for n in range(1, 40):
            x, y = n % 3 - 1.0, float(n % 3 == 2)
            await service.post(f"{url}/learn", {"id": str(n), "x": [x], "y": y})
            model.learn_one([x], y)
        told = await service.post(f"{url}/predict", {"x": [1]})
        assert told["mean"] == pytest.approx(model.predict_proba([[1.0]])[0, 1])
        assert (told["low"], told["high"]) == (float(told["mean"] > 0.95), 1.0)
        refused = await service.ask("POST", f"{url}/learn", {"id": "x", "x": [1], "y": 2})
        assert (refused.status_code, refused.json()["field"]) == (422, "y")
        assert "give 0 for no, or 1 for yes" in refused.json()["error"]

    with_service(tmp_path, do)


def test_a_predictor_learns_each_row_once_and_keeps_scores(tmp_path: Path) -> None:
    url = "/v1/predictors/p"

    async def do(service: Service) -> None:
        await service.put(url, {"features": ["a", "b"]})
        nothing = await service.ask("POST", f"{url}/predict", {"x": [1.0, 2.0]})
        assert nothing.status_code == 409
        rng = np.random.default_rng(0)
        X = rng.normal(size=(60, 2))
        y = X @ [1.0, -2.0] + 0.1 * rng.normal(size=60)
        model = BayesianLinearRegression()
        for n in range(60):
            row = {"id": str(n), "x": {"a": X[n, 0], "b": X[n, 1]}, "y": y[n]}
            first = await service.post(f"{url}/learn", row)
            again = await service.post(f"{url}/learn", row)
            assert again == {**first, "status": "duplicate"}
            model.learn_one(X[n], y[n])
        assert (await service.ask("GET", f"{url}/model")).content == dumps(model)
        answer = await service.post(f"{url}/predict", {"x": [1.0, 1.0]})
        assert answer["low"] < -1.0 < answer["high"]
        other = await service.ask("POST", f"{url}/learn", {"id": "3", "x": [1, 1], "y": 0})
        assert other.status_code == 409
        scores = (await service.ask("GET", url)).json()["scores"]
        assert 0.8 < scores["coverage"] <= 1.0
        await service.crash()
        await service.start()
        assert (await service.ask("GET", url)).json()["scores"] == scores
        assert (await service.ask("GET", f"{url}/model")).content == dumps(model)
        assert (await service.post(f"{url}/unlearn", {"id": "3"}))["status"] == "unlearned"
        assert (await service.post(f"{url}/unlearn", {"id": "3"}))["status"] == "duplicate"
        overview = (await service.ask("GET", "/v1/overview")).json()
        assert len(overview["predictors"][0]["coverage"]) > 10

    with_service(tmp_path, do)


def test_an_overview_tells_all_that_a_page_shows(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        await service.put(URL, ARMS)
        await played(service, 30)
        answer = (await service.ask("GET", "/v1/overview")).json()["experiments"][0]
        assert sum(arm["pulls"] for arm in answer["arms"]) == 30
        assert len(answer["propensities"]) == len(answer["rewards"]) == len(answer["times"]) == 30
        assert answer["last"][0]["means"].keys() == {"red", "blue"}
        assert answer["delays"]["50%"] >= 0.0
        assert 0.0 < answer["waits"]["50%"] <= answer["waits"]["99%"] <= answer["waits"]["100%"]
        assert answer["support"] == pytest.approx(0.01)

    with_service(tmp_path, do)


def test_events_say_that_something_changed(tmp_path: Path) -> None:
    from posterity.service.endpoints import _watch_changes

    async def do(service: Service) -> None:
        changes = _watch_changes(service.engine)
        assert "hello" in await anext(changes)
        waiting = asyncio.ensure_future(anext(changes))
        await asyncio.sleep(0)
        await service.put(URL, ARMS)
        assert "changed" in await asyncio.wait_for(waiting, 10)
        await changes.aclose()
        assert service.engine.changed == []

    with_service(tmp_path, do)


def test_names_and_ids_may_hold_what_is_quoted_in_a_path(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        for name in ("a/b", "é {name} ?", "{}", "experiments"):
            url = f"/v1/experiments/{quote(name, safe='')}"
            assert (await service.put(url, ARMS))["name"] == name
            await service.post(f"{url}/decide", {"context": [1.0], "id": "of/it"})
            assert (await service.ask("DELETE", f"{url}/decisions/of%2Fit")).status_code == 200
        overview = (await service.ask("GET", "/v1/overview")).json()
        assert [one["name"] for one in overview["experiments"]][:2] == ["a/b", "é {name} ?"]
        for path in ("/v1/experiments/", "/v1/experiments//log", "/v1/experiments/%ff", "/v1"):
            assert (await service.ask("GET", path)).status_code == 404
        for name in ("a%00b", "a" * 257):
            answer = await service.ask("PUT", f"/v1/experiments/{name}", ARMS)
            assert (answer.status_code, answer.json()["field"]) == (422, "name")
        wrong = await service.ask("POST", URL)
        assert (wrong.status_code, wrong.headers["allow"]) == (405, "PUT, GET, DELETE")

    with_service(tmp_path, do)


def test_rows_that_are_predicted_together_are_predicted_as_alone(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        url = "/v1/predictors/p"
        await service.put(url, {"features": ["a"]})
        first = await asyncio.gather(
            *(service.ask("POST", f"{url}/predict", {"x": [1.0]}) for _ in range(3))
        )
        assert {one.status_code for one in first} == {409}
        for n in range(20):
            row = {"id": str(n), "x": [float(n % 5)], "y": float(n % 7)}
            await service.post(f"{url}/learn", row)
        xs = [0.1 * n for n in range(20)]
        alone = [await service.post(f"{url}/predict", {"x": [x]}) for x in xs]
        together = await asyncio.gather(*(service.post(f"{url}/predict", {"x": [x]}) for x in xs))
        for one, other in zip(alone, together, strict=True):
            assert one == pytest.approx(other, rel=1e-12)

    with_service(tmp_path, do)


def test_errors_that_grow_and_a_row_that_is_far_off_are_in_the_scores(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        url = "/v1/predictors/p"
        await service.put(url, {"features": ["a"]})
        rng = np.random.default_rng(2)

        async def learn(n: int, noise: float) -> Any:
            for _ in range(n):
                a, number = rng.normal(), rng.integers(2**62)
                row = {"id": f"{number}", "x": [a], "y": a + noise * rng.normal()}
                await service.post(f"{url}/learn", row)
            return (await service.ask("GET", url)).json()["scores"]

        steady = await learn(200, noise=0.1)
        assert 0.7 < steady["error_ratio"] < 1.4
        await service.post(f"{url}/learn", {"id": "far", "x": [0.0], "y": 50.0})
        assert (await service.ask("GET", url)).json()["scores"]["surprising"] == (
            steady["surprising"] + 1
        )
        await service.crash()
        await service.start()
        assert (await learn(0, 0.0))["surprising"] == steady["surprising"] + 1
        metrics = (await service.ask("GET", "/metrics")).text
        surprising = f'posterity_predictor_surprising{{name="p"}} {steady["surprising"] + 1}\n'
        assert surprising in metrics
        assert (await learn(150, noise=3.0))["error_ratio"] > 1.3

    with_service(tmp_path, do)
