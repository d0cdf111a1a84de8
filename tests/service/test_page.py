"""The files of the live page, what an overview tells it, and the traffic of the demonstration."""

from __future__ import annotations

import asyncio
import contextlib
import re
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the service needs posterity[service]")
pytest.importorskip("httpx")

from posterity.service.demo import EXPERIMENT, PREDICTOR, demo_traffic
from posterity.service.endpoints import _watch_changes
from posterity.service.page import FILES
from tests.service.harness import ARMS, Service, with_service


def test_files_come_with_their_types_and_a_strict_policy(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        for path, (_, media_type) in FILES.items():
            answer = await service.ask("GET", path, headers={})
            assert answer.status_code == 200
            assert answer.headers["content-type"].startswith(media_type)
            assert answer.headers["x-content-type-options"] == "nosniff"
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert service.token not in answer.text
        assert (await service.ask("GET", "/page/__init__.py", headers={})).status_code == 404

    with_service(tmp_path, do)


def test_nothing_is_inline_or_from_elsewhere(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        texts = [(await service.ask("GET", path, headers={})).text for path in FILES]
        page = texts[0]
        assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", page)
        for text in texts:
            assert set(re.findall(r"https?://[^\s\"']+", text)) <= {"http://www.w3.org/2000/svg"}
            assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write", text)

    with_service(tmp_path, do)


def test_an_overview_has_a_course_of_each_arm_with_bands_and_costs(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        await service.put("/v1/experiments/e", ARMS)
        for n in range(200):
            asked = {"context": [n % 3 - 1.0], "id": str(n)}
            made = await service.post("/v1/experiments/e/decide", asked)
            if n % 2:
                told = {"decision_id": str(n), "value": float(made["arm"] == "red")}
                await service.post("/v1/experiments/e/reward", told)
        one = (await service.ask("GET", "/v1/overview")).json()["experiments"][0]
        courses = ("starts", "traffic", "propensities", "rewards", "lows", "highs", "regrets")
        courses = (*courses, "arm_rewards")
        assert {len(one[course]) for course in courses} == {len(one["times"])}
        assert sum(map(sum, one["traffic"])) == one["decisions"] == 200
        assert sum(one["delay_counts"]) == one["rewarded"] == 100
        assert [arm["mean"] for arm in one["arms"]] in ([1.0, 0.0], [1.0, None])
        assert one["arm_rewards"][-1] in ([1.0, 0.0], [1.0, None])
        assert one["reward"]["low"] < one["reward"]["mean"] < one["reward"]["high"]
        assert 1.0 <= one["effective"] <= 200.0
        assert all(cost is None or cost >= 0.0 for cost in one["regrets"])

    with_service(tmp_path, do)


def test_decisions_of_one_batch_are_one_stretch_of_a_course(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        await service.put("/v1/experiments/e", ARMS)
        for _ in range(3):
            batch = {"decisions": [{"context": [0.5]}] * 50}
            await service.post("/v1/experiments/e/decide/batch", batch)
        one = (await service.ask("GET", "/v1/overview")).json()["experiments"][0]
        assert [sum(counts) for counts in one["traffic"]] == [50, 50, 50]
        assert one["starts"] == one["times"] == sorted(set(one["times"]))

    with_service(tmp_path, do)


def test_a_drift_is_told_with_its_time(tmp_path: Path) -> None:
    now = [0.0]

    async def do(service: Service) -> None:
        url = "/v1/predictors/p"
        await service.put(url, {"features": ["a"]})
        for n in range(400):
            now[0] = float(n)
            y = (0.1 if n < 300 else 3.0) * (-1) ** n
            await service.post(f"{url}/learn", {"id": str(n), "x": [n % 7], "y": y})
        one = (await service.ask("GET", "/v1/overview")).json()["predictors"][0]
        (drift,) = one["drift"]
        assert 290.0 <= drift["start"] <= 320.0
        assert drift["end"] == 399.0
        assert drift["ratio"] > 5.0
        assert sum(one["rows"]) == one["scores"]["n"]
        assert all(300.0 <= row["at"] <= 399.0 for row in one["alarms"])
        # Intervals that are too narrow by now are an alarm, with what chance explains beside.
        assert one["alarm"].startswith("intervals of 90% hold")
        recent = one["recent_coverage"]
        assert recent["low"] < recent["mean"] < recent["high"] < 0.9
        assert len(one["newest"]) == recent["n"] == 200
        assert {len(one[course]) for course in ("coverage", "errors", "times")} == {60}
        assert one["newest"][-1]["y"] == -3.0
        assert one["ends"][-1] == one["scores"]["n"] - 1 == drift["last"]
        assert [row["row"] for row in one["alarms"]] == sorted(row["row"] for row in one["alarms"])
        told = [row["told"] for row in one["events"]]
        assert [row.partition(":")[0] for row in told] == ["coverage too high", "coverage too low"]
        assert one["unusual"] == [told[-1]] == [f"coverage too low: {one['alarm']}"]
        events = service.engine.changed
        stream = _watch_changes(service.engine)
        assert "hello" in await anext(stream)
        events[-1].set()
        assert "changed" in await anext(stream)
        assert "intervals of 90% hold" in await anext(stream)
        await stream.aclose()

    with_service(tmp_path, do, clock=lambda: now[0])


def test_the_demonstration_has_traffic_and_leaves_the_clock_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("posterity.service.demo.BEFORE", 60.0)
    monkeypatch.setattr("posterity.service.demo.EVERY", 0.5)

    async def do(service: Service) -> None:
        clock = service.engine.clock
        task = asyncio.create_task(demo_traffic(service.engine))
        seen = 0
        while seen <= 121:
            assert not task.done()
            await asyncio.sleep(0.05)
            seen = service.engine.counts["decisions"]
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        assert service.engine.clock is clock
        told = (await service.ask("GET", "/v1/overview")).json()
        assert [one["name"] for one in told["experiments"]] == [EXPERIMENT]
        assert [one["name"] for one in told["predictors"]] == [PREDICTOR]

    with_service(tmp_path, do)
