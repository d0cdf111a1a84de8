"""Requests made up from the service's own description: none is answered by an error of its own."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

pytest.importorskip("starlette", reason="the service needs posterity[service]")
pytest.importorskip("httpx")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from posterity.service.app import describe_api
from tests.service.harness import ARMS, Service, with_service

API = describe_api()
NAMES = ("e", "p", "none", "..", "a/b", "é", "1", "%00")
# Streams that end only with their connection.
ENDLESS = ("/v1/events",)

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
numbers = st.floats(allow_nan=False, allow_infinity=False) | st.floats(-3.0, 3.0)


def of_schema(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that a schema describes, as far as the service's own schemas go."""
    if "$ref" in schema:
        return of_schema(API["components"]["schemas"][schema["$ref"].rsplit("/", 1)[-1]])
    if "anyOf" in schema:
        return st.one_of(*map(of_schema, schema["anyOf"]))
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kind = schema.get("type")
    if kind == "object" and "properties" in schema:
        needed = set(schema.get("required", ()))
        fields = {name: of_schema(one) for name, one in schema["properties"].items()}
        return st.fixed_dictionaries(
            {name: one for name, one in fields.items() if name in needed},
            optional={name: one for name, one in fields.items() if name not in needed},
        )
    if kind == "object":
        values = of_schema(schema.get("additionalProperties") or {})
        return st.dictionaries(st.sampled_from(["age", "size", "a"]), values, max_size=3)
    if kind == "array":
        most = min(schema.get("maxItems", 3), 3)
        parts = schema.get("prefixItems")
        if parts:
            return st.tuples(*map(of_schema, parts)).map(list)
        return st.lists(
            of_schema(schema.get("items") or {}),
            min_size=min(schema.get("minItems", 0), 3),
            max_size=most,
        )
    simple: dict[Any, st.SearchStrategy[Any]] = {
        "number": numbers,
        "integer": st.integers(),
        "boolean": st.booleans(),
        "null": st.none(),
        "string": st.sampled_from(["red", "blue", "one", "two"]) | st.text(max_size=6),
    }
    return simple.get(kind, anything)


def _body(operation: dict[str, Any]) -> st.SearchStrategy[Any]:
    content = operation.get("requestBody")
    if content is None:
        return st.none()
    (schema,) = (one["schema"] for one in content["content"].values())
    described = of_schema(schema)
    return st.one_of(described, described, described, anything)


requests = st.one_of(
    *(
        st.tuples(
            st.just(method.upper()),
            st.just(path),
            st.lists(st.sampled_from(NAMES), min_size=2, max_size=2),
            _body(operation),
        )
        for path, methods in API["paths"].items()
        for method, operation in methods.items()
        if path not in ENDLESS
    )
)


def test_operations_have_names_of_their_own_and_say_what_they_do() -> None:
    operations = [one for methods in API["paths"].values() for one in methods.values()]
    names = [one["operationId"] for one in operations]
    assert len(set(names)) == len(names)
    assert {"put_experiment", "list_all_predictor", "delete_predictor", "decide"} <= set(names)
    assert all(one["summary"].endswith(".") for one in operations)


def test_the_examples_run_in_their_order(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        for path, methods in API["paths"].items():
            for method, operation in methods.items():
                content = operation.get("requestBody", {"content": {}})["content"]
                if "application/json" not in content:
                    continue
                place = path.replace("{name}", "load").replace("{id}", "visit 2")
                place = place.replace("experiments/load", "experiments/headlines")
                body = content["application/json"]["example"]
                answer = await service.ask(method.upper(), place, body)
                assert answer.status_code < 300, (method, path, answer.text)

    with_service(tmp_path, do)


@settings(
    deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(requests, min_size=1, max_size=30))
def test_no_request_is_an_error_of_the_services_own(
    tmp_path_factory: pytest.TempPathFactory, asked: list[tuple[str, str, list[str], Any]]
) -> None:
    folder = tmp_path_factory.mktemp("served")
    asyncio.run(ask_all(folder, asked))


async def ask_all(folder: Path, asked: list[tuple[str, str, list[str], Any]]) -> None:
    service = Service(folder)
    await service.start()
    try:
        await service.put("/v1/experiments/e", ARMS)
        await service.put("/v1/predictors/p", {"features": ["age", "size"]})
        for method, path, (name, id), body in asked:
            place = path.replace("{name}", quote(name, safe="")).replace("{id}", quote(id, safe=""))
            answer = await service.ask(method, place, body)
            assert answer.status_code < 500, (method, place, body, answer.text)
            if answer.status_code >= 400:
                refused = json.loads(answer.text)
                assert refused["error"]
                assert set(refused) == {"error", "field"}
        assert (await service.ask("GET", "/readyz")).status_code == 200
        assert service.engine.counts["failures"] == 0
    finally:
        await service.stop()
