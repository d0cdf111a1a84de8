"""Predictors of counts that come from exposures: features that are named as such."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("starlette", reason="the service needs posterity[service]")
pytest.importorskip("httpx")

from posterity import BayesianNegativeBinomialRegression, BayesianPoissonRegression
from tests.service.harness import Service, with_service

URL = "/v1/predictors/claims"
FEATURES = {"features": ["power", "years", "added"], "exposure": "years", "offset": "added"}
MODELS = {
    "poisson": BayesianPoissonRegression,
    "negative binomial": BayesianNegativeBinomialRegression,
}


def policies(n: int = 50) -> Any:
    rng = np.random.default_rng(0)
    power, years, added = rng.normal(size=n), rng.gamma(2.0, size=n) + 0.1, rng.normal(size=n)
    return power, years, added, rng.poisson(years * np.exp(0.3 * power + added))


@pytest.mark.parametrize("model", MODELS)
def test_a_predictor_learns_rates(tmp_path: Path, model: str) -> None:
    power, years, added, claims = policies()

    async def do(service: Service) -> None:
        await service.put(URL, {**FEATURES, "model": model})
        twin = MODELS[model]()
        for n in range(50):
            x = {"power": power[n], "years": years[n], "added": added[n]}
            row = {"id": str(n), "x": x, "y": int(claims[n])}
            told = await service.post(f"{URL}/learn", row)
            if n > 20:
                how = {"exposure": years[n], "offset": added[n]}
                expected = twin.predict_distribution([[power[n]]], **how)
                assert told["mean"] == pytest.approx(float(expected.mean()[0]), rel=1e-6)
            twin.learn_one([power[n]], claims[n], exposure=years[n], offset=added[n])
        told = await service.post(f"{URL}/predict", {"x": [0.5, 10.0, 0.0]})
        once = await service.post(f"{URL}/predict", {"x": [0.5, 1.0, 0.0]})
        assert told["mean"] == pytest.approx(10.0 * once["mean"])
        assert told["mean"] == pytest.approx(twin.predict([[0.5]], exposure=10.0)[0], rel=1e-6)
        settings = (await service.ask("GET", URL)).json()["settings"]
        assert (settings["exposure"], settings["offset"]) == ("years", "added")
        await service.crash()
        await service.start()
        assert await service.post(f"{URL}/predict", {"x": [0.5, 10.0, 0.0]}) == told
        await service.post(f"{URL}/unlearn", {"id": "49"})
        twin.unlearn([[power[49]]], [claims[49]], exposure=years[49:], offset=added[49:])
        left = await service.post(f"{URL}/predict", {"x": [0.5, 10.0, 0.0]})
        assert left["mean"] == pytest.approx(twin.predict([[0.5]], exposure=10.0)[0], rel=1e-6)

    with_service(tmp_path, do)


def test_what_is_no_exposure(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        async def refuse(method: str, url: str, body: Any) -> tuple[str, str]:
            answer = await service.ask(method, url, body)
            assert answer.status_code == 422
            return answer.json()["field"], answer.json()["error"]

        field, error = await refuse("PUT", URL, {"features": ["a", "b"], "exposure": "b"})
        assert field == "exposure"
        assert "exposure is for models of counts, poisson and negative binomial" in error
        poisson = {"features": ["a", "b"], "model": "poisson"}
        field, error = await refuse("PUT", URL, {**poisson, "exposure": "c"})
        assert (field, "exposure is 'c', which is not a feature" in error) == ("exposure", True)
        field, error = await refuse("PUT", URL, {**poisson, "exposure": "a", "offset": "a"})
        assert (field, "are the same feature" in error) == ("offset", True)
        field, error = await refuse("PUT", URL, {**poisson, "exposure": "a", "offset": "b"})
        assert (field, "no feature is left beside" in error) == ("features", True)
        await service.put(URL, {**poisson, "exposure": "b"})
        for number in (0.0, -2.0):
            row = {"id": "1", "x": {"a": 1.0, "b": number}, "y": 1}
            field, error = await refuse("POST", f"{URL}/learn", row)
            assert (field, "an exposure must be above 0" in error) == ("x.b", True)

    with_service(tmp_path, do)
