"""Predictors of features that are categories: text, whose levels the settings name."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the service needs posterity[service]")
pytest.importorskip("httpx")

import numpy as np
import pandas as pd

from posterity import BayesianLinearRegression, BayesianQuantileRegression
from tests.service.harness import Service, with_service

PREDICTOR = "/v1/predictors/load"
DAYS = ["Mon", "Tue", "Wed"]
RNG = np.random.default_rng(0)
WHICH, B = RNG.integers(0, 3, 60), RNG.normal(size=60)
Y = np.array([0.0, 2.0, 4.0])[WHICH] + B + 0.3 * RNG.normal(size=60)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("linear", {}), ("quantile", {}), ("linear", {"forgetting": "stabilized:0.9"})],
)
def test_text_is_learned_as_by_the_model(
    tmp_path: Path, name: str, parameters: dict[str, str]
) -> None:
    async def do(service: Service) -> list[dict[str, float]]:
        settings = {"features": ["day", "b"], "levels": {"day": DAYS}, "model": name}
        settings["parameters"] = parameters
        await service.put(PREDICTOR, settings)
        for i, (day, b, y) in enumerate(zip(WHICH.tolist(), B.tolist(), Y.tolist(), strict=True)):
            x = {"b": b, "day": DAYS[day]} if i % 2 else [DAYS[day], b]
            await service.post(f"{PREDICTOR}/learn", {"id": f"{i}", "x": x, "y": y})
        asked = [{"x": {"day": day, "b": 0.0}} for day in ("Tue", "Sun")]
        return [(await service.post(f"{PREDICTOR}/predict", one)) for one in asked]

    known, new = with_service(tmp_path, do)
    kind = BayesianLinearRegression if name == "linear" else BayesianQuantileRegression
    model = kind(categorical_features={"day": DAYS}, **parameters)
    for day, b, y in zip(WHICH.tolist(), B.tolist(), Y.tolist(), strict=True):
        model.learn_one({"day": DAYS[day], "b": b}, y)
    frame = pd.DataFrame({"day": ["Tue", "Sun"], "b": [0.0, 0.0]})
    np.testing.assert_allclose([known["mean"], new["mean"]], model.predict(frame), rtol=1e-6)
    assert new["high"] - new["low"] > 1.5 * (known["high"] - known["low"])


def test_what_is_refused(tmp_path: Path) -> None:
    async def do(service: Service) -> list[tuple[int, str, str]]:
        good = {"features": ["day", "b"], "levels": {"day": DAYS}}
        await service.put(PREDICTOR, good)
        asked = [
            ("PUT", f"{PREDICTOR}2", {**good, "levels": {"week": DAYS}}),
            ("PUT", f"{PREDICTOR}2", {**good, "levels": {"day": ["a", "a"]}}),
            ("POST", f"{PREDICTOR}/learn", {"id": "1", "x": ["Sun", 1.0], "y": 1.0}),
            ("POST", f"{PREDICTOR}/learn", {"id": "1", "x": ["Mon", "1"], "y": 1.0}),
            ("POST", f"{PREDICTOR}/predict", {"x": {"b": 1.0}}),
        ]
        answers = [await service.ask(*one) for one in asked]
        return [(one.status_code, one.json()["field"], one.json()["error"]) for one in answers]

    answers = with_service(tmp_path, do)
    assert [one[:2] for one in answers] == [
        (422, "levels.week"),
        (422, "levels.day"),
        (422, "x.day"),
        (422, "x.b"),
        (422, "x.day"),
    ]
    assert answers[2][2] == "'day' has an unknown level: give one of Mon, Tue, Wed"
    assert answers[3][2].startswith("'b' is text: give a number, or name its levels")
