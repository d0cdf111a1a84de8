"""Numbers no model can work with, and files that are damaged: one request, one model, fails."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the service needs posterity[service]")
pytest.importorskip("httpx")

from posterity.service.engine import Engine
from posterity.service.errors import ClaimedError
from posterity.service.experiments import Experiment
from posterity.service.store import Store
from tests.service.harness import ARMS, Service, with_service

URL, PREDICTOR = "/v1/experiments/e", "/v1/predictors/p"


@pytest.mark.parametrize(("x", "y"), [(9.9e149, 1.0), (1.0, -9e149)])
def test_numbers_whose_squares_overflow_are_refused(tmp_path: Path, x: float, y: float) -> None:
    async def do(service: Service) -> None:
        await service.put(PREDICTOR, {"features": ["a"]})
        answer = await service.ask("POST", f"{PREDICTOR}/learn", {"id": "0", "x": [x], "y": y})
        assert answer.status_code == 422
        assert "within 1e+75 of 0" in answer.text
        assert answer.json()["field"] in ("x.a", "y")

    with_service(tmp_path, do)


def test_a_tiny_feature_is_none(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        await service.put(URL, ARMS)
        await service.post(f"{URL}/decide", {"id": "0", "context": [1e-140]})
        await service.post(f"{URL}/reward", {"decision_id": "0", "value": 1.0})
        for _ in range(3):
            await service.post(f"{URL}/decide", {"context": [1.0]})

    with_service(tmp_path, do)


def test_a_context_that_can_not_be_decided_leaves_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Experiment.decide

    def decide(self: Experiment, asked: object, *others: object) -> object:
        if any(context[0] == 13.0 for _, _, context, _ in asked):  # type: ignore[attr-defined]
            raise FloatingPointError("the variance is not finite")
        return plain(self, asked, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(Experiment, "decide", decide)

    async def do(service: Service) -> None:
        await service.put(URL, ARMS)
        asked = [service.ask("POST", f"{URL}/decide", {"context": [x]}) for x in (1.0, 13.0, 2.0)]

        answers = await asyncio.gather(*asked)
        assert [one.status_code for one in answers] == [200, 422, 200]
        assert "the variance is not finite" in answers[1].text
        assert service.engine.counts["failures"] == 0

    with_service(tmp_path, do)


def test_a_damaged_snapshot_is_made_up_for_by_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("posterity.service.engine.SNAPSHOT_EVERY", 5)

    async def do(service: Service) -> bytes:
        await service.put(PREDICTOR, {"features": ["a"]})
        for n in range(23):
            row = {"id": str(n), "x": [n % 5], "y": float(n)}
            await service.post(f"{PREDICTOR}/learn", row)
        content: bytes = (await service.ask("GET", f"{PREDICTOR}/model")).content
        await service.stop()
        store = Store(service.database)
        with store.engine.begin() as connection:
            connection.exec_driver_sql("UPDATE snapshot SET file = X'00112233'")
        store.close()
        await service.start()
        assert (await service.ask("GET", f"{PREDICTOR}/model")).content == content
        return content

    with_service(tmp_path, do)


def test_a_model_that_can_not_be_restored_leaves_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def do(service: Service) -> None:
        await service.put(URL, ARMS)
        await service.put(PREDICTOR, {"features": ["a"]})
        await service.stop()
        plain = Engine.restore

        def restore(self: Engine, kept: dict[str, object], through: int | None = None) -> object:
            if kept["name"] == "p":
                raise ValueError("its rows make no model")
            return plain(self, kept, through)

        monkeypatch.setattr(Engine, "restore", restore)
        await service.start()
        await service.post(f"{URL}/decide", {"context": [1.0]})
        answer = await service.ask("POST", f"{PREDICTOR}/predict", {"x": [1.0]})
        assert answer.status_code == 503
        assert "its rows make no model" in answer.text
        answer = await service.ask("PUT", PREDICTOR, {"features": ["a", "b"]})
        assert answer.status_code == 503

    with_service(tmp_path, do)


def test_the_same_id_with_other_arms_is_another_decision(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        await service.put(URL, ARMS)
        asked = {"id": "0", "context": [1.0], "arms": ["red"]}
        first = await service.post(f"{URL}/decide", asked)
        assert await service.post(f"{URL}/decide", asked) == first
        answer = await service.ask("POST", f"{URL}/decide", {**asked, "arms": ["blue"]})
        assert answer.status_code == 409
        assert "other arms allowed" in answer.text

    with_service(tmp_path, do)


def test_models_that_are_too_large_are_refused(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        names = [f"x{j}" for j in range(3000)]
        arms = [f"arm {k}" for k in range(1000)]
        answer = await service.ask("PUT", URL, {"arms": arms, "features": names})
        assert answer.status_code == 422
        assert "256 MB is the most" in answer.text
        await service.put(URL, {"arms": arms, "features": names[:30]})

    with_service(tmp_path, do)


def test_what_was_all_unlearned_predicts_nothing(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        await service.put(PREDICTOR, {"features": ["a"]})
        await service.post(f"{PREDICTOR}/learn", {"id": "0", "x": [1.0], "y": 2.0})
        await service.post(f"{PREDICTOR}/unlearn", {"id": "0"})
        answer = await service.ask("POST", f"{PREDICTOR}/predict", {"x": [1.0]})
        assert answer.status_code == 409
        assert "learned nothing" in answer.text

    with_service(tmp_path, do)


def test_a_database_file_has_one_server_that_learns(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        link = tmp_path / "other.db"
        link.symlink_to(tmp_path / "posterity.db")
        second = Store(f"sqlite:///{link}")
        with pytest.raises(ClaimedError, match="another server learns from"):
            second.claim()
        second.close()

    with_service(tmp_path, do)
    third = Store(f"sqlite:///{tmp_path / 'posterity.db'}")
    third.claim()
    third.close()


@pytest.mark.parametrize(
    ("model", "parameters"),
    [
        ("linear", {"prior_precision": -1}),
        ("linear", {"basis": "os.system"}),
        ("linear", {"noise": "wild"}),
        ("quantile", {"quantile": 1.9}),
    ],
    ids=str,
)
def test_parameters_that_can_never_work_are_refused_at_once(
    tmp_path: Path, model: str, parameters: dict[str, object]
) -> None:
    async def do(service: Service) -> None:
        settings = {"features": ["a", "b"], "model": model, "parameters": parameters}
        answer = await service.ask("PUT", PREDICTOR, settings)
        assert answer.status_code == 422
        assert answer.json()["field"] == "parameters"
        assert next(iter(parameters)) in answer.text
        await service.put(PREDICTOR, {**settings, "parameters": {}})

    with_service(tmp_path, do)
