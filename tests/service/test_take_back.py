"""Rewards and rows of any size: taken back, the model is the one that never saw them."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("starlette", reason="the service needs posterity[service]")
pytest.importorskip("httpx")

from hypothesis import example, given, settings
from hypothesis import strategies as st

from posterity import BayesianLinearRegression
from posterity.bandits import Bandit
from posterity.files import loads
from posterity.service.sizes import Sizes
from tests.service.harness import ARMS, Service, with_service

URL, PREDICTOR = "/v1/experiments/e", "/v1/predictors/p"
AT = np.array([[0.3], [-1.0]])


async def model_of(service: Service, url: str = URL) -> Any:
    return loads((await service.ask("GET", f"{url}/model")).content)


def assert_same(told: Any, want: Any) -> None:
    np.testing.assert_allclose(told.mean, want.mean, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(told.std, want.std, rtol=1e-6)


@pytest.mark.parametrize("value", [1e12, 1e16, 1e20, 1e30, -1e75])
def test_a_very_large_reward_is_taken_back_and_breaks_no_page(tmp_path: Path, value: float) -> None:
    async def do(service: Service) -> None:
        await service.put(URL, ARMS)
        asked = [{"id": f"d{n}", "context": [n % 3]} for n in range(8)]
        await service.post(f"{URL}/decide/batch", {"decisions": asked})
        for n in range(7):
            reward = {"decision_id": f"d{n}", "value": 1.0 + n % 3 / 10}
            await service.post(f"{URL}/reward", reward)
        before = (await model_of(service)).beliefs(AT)
        await service.post(f"{URL}/reward", {"decision_id": "d7", "value": value})
        for n in range(5):
            answer = await service.ask("POST", f"{URL}/decide", {"context": [n]})
            assert answer.status_code in (200, 422)
            if answer.status_code == 200:
                chances = answer.json()["propensities"].values()
                assert sum(chances) == pytest.approx(1.0)
        assert (await service.ask("GET", "/v1/overview")).status_code == 200
        taken = await service.post(f"{URL}/take-back", {"decision_id": "d7"})
        assert taken == {"status": "taken back", "total": None}
        told = (await model_of(service)).beliefs(AT)
        assert_same(told, before)
        content = (await service.ask("GET", f"{URL}/model")).content
        await service.crash()
        await service.start()
        assert (await service.ask("GET", f"{URL}/model")).content == content
        assert (await service.ask("GET", "/v1/overview")).status_code == 200

    with_service(tmp_path, do)


def test_events_of_one_group_wait_for_what_is_learned_anew(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        await service.put(URL, ARMS)
        asked = [{"id": f"d{n}", "context": [n % 3]} for n in range(8)]
        made = await service.post(f"{URL}/decide/batch", {"decisions": asked})
        for n in range(4):
            await service.post(f"{URL}/reward", {"decision_id": f"d{n}", "value": 1.0 + n})
        await service.post(f"{URL}/reward", {"decision_id": "d7", "value": 1e30})
        together = [
            ("reward", {"decision_id": "d4", "value": 2.0}),
            ("take-back", {"decision_id": "d7"}),
            ("reward", {"decision_id": "d5", "value": 3.0}),
            ("reward", {"decision_id": "d3", "value": 9.0, "correct": True}),
        ]
        answers = await asyncio.gather(
            *(service.ask("POST", f"{URL}/{path}", body) for path, body in together)
        )
        assert [one.status_code for one in answers] == [200] * 4
        want = Bandit(arms=["red", "blue"], rng=0)
        arms = [one["arm"] for one in made["decisions"]]
        for n, value in enumerate([1.0, 2.0, 3.0, 9.0, 2.0, 3.0]):
            want.learn_one(np.array([n % 3.0]), arms[n], value)
        assert_same((await model_of(service)).beliefs(AT), want.beliefs(AT))

    with_service(tmp_path, do)


@pytest.mark.parametrize("y", [1e12, 1e20, 1e40])
def test_a_very_large_row_is_unlearned(tmp_path: Path, y: float) -> None:
    async def do(service: Service) -> None:
        await service.put(PREDICTOR, {"features": ["a"]})
        rows = np.random.default_rng(5).normal(size=(12, 2)).tolist()
        for n, (a, target) in enumerate(rows):
            if n == 6:
                await service.post(f"{PREDICTOR}/learn", {"id": "far", "x": [2.0], "y": y})
                await service.post(f"{PREDICTOR}/learn", {"id": "wide", "x": [y], "y": 1.0})
            await service.post(f"{PREDICTOR}/learn", {"id": f"{n}", "x": [a], "y": target})
        await service.post(f"{PREDICTOR}/unlearn", {"id": "far"})
        await service.post(f"{PREDICTOR}/unlearn", {"id": "wide"})
        want = BayesianLinearRegression()
        for a, target in rows:
            want.learn_one(np.array([a]), target)
        told = (await model_of(service, PREDICTOR)).predict_distribution(AT)
        np.testing.assert_allclose(told.mean(), want.predict_distribution(AT).mean(), atol=1e-6)
        np.testing.assert_allclose(told.std(), want.predict_distribution(AT).std(), rtol=1e-6)
        answer = await service.post(f"{PREDICTOR}/learn", {"id": "far", "x": [2.0], "y": 1.0})
        assert answer["status"] == "new"

    with_service(tmp_path, do)


def test_a_snapshot_before_it_is_where_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("posterity.service.engine.SNAPSHOT_EVERY", 5)
    monkeypatch.setattr("posterity.service.groups.KEPT_EVERY", 10)

    async def do(service: Service) -> None:
        await service.put(URL, ARMS)
        want = Bandit(arms=["red", "blue"], rng=0)
        asked = [{"id": str(n), "context": [n % 3]} for n in range(60)]
        decided = (await service.post(f"{URL}/decide/batch", {"decisions": asked}))["decisions"]
        for n, made in enumerate(decided):
            value = 1e25 if n == 40 else n % 5
            await service.post(f"{URL}/reward", {"decision_id": f"{n}", "value": value})
            if n != 40:
                want.learn_one(np.array([n % 3.0]), made["arm"], float(n % 5))
        read: list[int] = []
        plain = service.engine.store.read_events

        def read_events(name: str, after: int, *others: Any) -> Any:
            read.append(after)
            return plain(name, after, *others)

        monkeypatch.setattr(service.engine.store, "read_events", read_events)
        await service.post(f"{URL}/take-back", {"decision_id": "40"})
        assert len(read) == 1
        assert read[0] > 60  # after all decisions
        assert_same((await model_of(service)).beliefs(AT), want.beliefs(AT))

    with_service(tmp_path, do)


SIZES = st.sampled_from([-2.0, 0.0, 1.0, 3.0, 1e6, 1e9, -1e14, 1e20, 1e25, 1e30])
STEPS = st.lists(st.tuples(st.integers(0, 5), st.one_of(st.none(), SIZES)), max_size=15)


@settings(max_examples=10, deadline=None)
@example([(0, 1.0), (1, 1e30), (2, 1e25), (3, 1e20), (1, None), (2, None), (3, None), (4, 2.0)])
@example([(0, 1e30), (1, 1.0), (0, 1e25), (2, 1.0), (0, 2.0), (3, 1.0)])
@given(STEPS)
def test_what_was_taken_back_was_never_seen(steps: list[tuple[int, float | None]]) -> None:
    """A step is a reward of a decision, which corrects one that is there, or takes it back."""

    async def do(service: Service) -> None:
        await service.put(URL, ARMS)
        asked = [{"id": str(n), "context": [n % 3]} for n in range(6)]
        made = (await service.post(f"{URL}/decide/batch", {"decisions": asked}))["decisions"]
        live: dict[int, float] = {}
        for n, value in steps:
            if value is None:
                answer = await service.ask("POST", f"{URL}/take-back", {"decision_id": str(n)})
                assert answer.status_code in (200, 404)
                live.pop(n, None)
            else:
                reward = {"decision_id": str(n), "value": value, "correct": True}
                await service.post(f"{URL}/reward", reward)
                live[n] = value
        want = Bandit(arms=["red", "blue"], rng=0)
        for n, value in live.items():
            want.learn_one(np.array([n % 3.0]), made[n]["arm"], value)
        told, belief = (await model_of(service)).beliefs(AT), want.beliefs(AT)
        known = np.isfinite(belief.std)
        scale = np.where(known, belief.std, 1.0) + abs(np.nan_to_num(belief.mean)) + 1.0
        assert np.all(known == np.isfinite(told.std))
        assert np.all((abs(told.mean - belief.mean) <= 1e-6 * scale)[known])

    with tempfile.TemporaryDirectory() as folder:
        with_service(Path(folder), do)


def test_sizes_are_kept_in_a_snapshot() -> None:
    sizes = Sizes()
    for arm, x, y in ((0, [1.0, 0.0], 3.0), (1, [2.0, 1e9], 1e30), (1, [2.0, 1e9], -2.0)):
        sizes.add(arm, x, y)
    again = Sizes(sizes.notes)
    assert again.drowns(1, [2.0, 1e9], 1e30)
    assert not again.drowns(0, [1.0, 0.0], 3.0)
    again.remove(1, [2.0, 1e9], 1e30)
    # What was once learned has left its rounding.
    assert again.drowns(1, [2.0, 1e9], -2.0)
    assert Sizes(again.notes).drowns(1, [2.0, 1e9], -2.0)
    assert not Sizes().drowns(0, [1.0], 1.0)


def test_rows_counted_together_are_counted_as_one_by_one() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1200, 3)) * 10.0 ** rng.integers(-300, 300, size=(1200, 3))
    rows[rng.random(rows.shape) < 0.1] = 0.0
    together, alone = Sizes(), Sizes()
    for number, (y, *x) in enumerate(rows.tolist()):
        together.add(number % 7, x, y)
        alone.add(number % 7, x, y)
        assert alone.notes["sizes"].shape[1] == 4  # which counts what waits
    assert set(map(tuple, together.notes["sizes"])) == set(map(tuple, alone.notes["sizes"]))
