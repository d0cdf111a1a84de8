"""The service's face: Starlette routes around the engine, every error as JSON with its field."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from posterity import __version__
from posterity.service.endpoints import ENDPOINTS, Call, Endpoint
from posterity.service.engine import Engine, Work
from posterity.service.errors import RefusedError
from posterity.service.page import page_routes
from posterity.service.store import Group, LogEntries
from posterity.service.tokens import Tokens

_encode = msgspec.json.Encoder().encode


def create_app(
    engine: Engine,
    *,
    say: Callable[[str], Any] = print,
    beside: Callable[[Engine], Coroutine[Any, Any, None]] | None = None,
    visitor: bool = False,
) -> Starlette:
    """The application; it starts and stops the engine, and says the first admin token once.

    Parameters
    ----------
    engine : Engine
    say : callable
        Is given the first token of a new database.
    beside : callable, optional
        Is run once the engine has started, and cancelled when it stops.
    visitor : bool
        Whether a database that has tokens gets one more, for a day, which may read.
    """
    tokens = Tokens([])

    @asynccontextmanager
    async def life(_: Starlette) -> AsyncIterator[None]:
        await engine.start()
        tokens.__init__(await engine.read(engine.store.tokens))  # type: ignore[misc]
        if not len(tokens):
            say(await _first_token(engine, tokens))
        elif visitor:
            say(await _visitors_token(engine, tokens))
        tasks = [] if beside is None else [asyncio.create_task(beside(engine))]
        yield
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await engine.stop()

    routes = [
        Route(endpoint.path, _handler(endpoint, engine, tokens), methods=[endpoint.method])
        for endpoint in ENDPOINTS
    ]
    routes.append(Route("/openapi.json", _openapi, methods=["GET"]))
    routes += page_routes()
    return Starlette(
        routes=routes,
        lifespan=life,
        exception_handlers={HTTPException: _http_error, Exception: _failed},
    )


async def _first_token(engine: Engine, tokens: Tokens) -> str:
    def do(_: LogEntries, group: Group) -> Any:
        return tokens.make(group, "first", "admin")

    made, record = await engine.submit(Work(do))
    tokens.add(record)
    return str(made)


async def _visitors_token(engine: Engine, tokens: Tokens) -> str:
    """For who looks at a demonstration that was there before: to read, and for a day."""

    def do(_: LogEntries, group: Group) -> Any:
        return tokens.make(group, f"demo {time.time_ns()}", "read", time.time() + 86_400.0)

    made, record = await engine.submit(Work(do))
    tokens.add(record)
    return str(made)


def _handler(
    endpoint: Endpoint, engine: Engine, tokens: Tokens
) -> Callable[[Request], Awaitable[Response]]:
    decode = None if endpoint.body is None else msgspec.json.Decoder(endpoint.body).decode

    async def handle(request: Request) -> Response:
        try:
            token = ""
            if endpoint.role:
                token = tokens.check(request.headers.get("authorization", ""), endpoint.role)
            body = None
            if decode is not None:
                body = _decoded(decode, await _body(request, endpoint.largest))
            told = await endpoint.answer(Call(engine, tokens, request, token, body))
        except RefusedError as refused:
            return _refusal(refused)
        if isinstance(told, Response):
            return told
        return Response(_encode(told), media_type="application/json")

    return handle


async def _body(request: Request, largest: int) -> bytes:
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > largest:
            raise RefusedError(413, f"the body is larger than {largest} bytes")
        parts.append(part)
    return b"".join(parts)


def _decoded(decode: Callable[[bytes], Any], body: bytes) -> Any:
    try:
        return decode(body)
    except msgspec.ValidationError as error:
        said = str(error)
        found = re.search(r" - at `\$?\.?([^`]*)`", said)
        unknown = re.search(r"(?:unknown|required) field `([^`]*)`", said)
        at = [found.group(1) if found else "", unknown.group(1) if unknown else ""]
        raise RefusedError(422, said, ".".join(filter(None, at))) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RefusedError(400, f"the body is no JSON: {error}") from error


def _refusal(refused: RefusedError) -> Response:
    headers = {} if refused.retry_after is None else {"retry-after": str(refused.retry_after)}
    if refused.status == 401:
        headers["www-authenticate"] = "Bearer"
    told = {"error": refused.message, "field": refused.field}
    return JSONResponse(told, refused.status, headers)


async def _http_error(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    detail = error.detail if isinstance(error, HTTPException) else ""
    headers = dict(getattr(error, "headers", None) or {})
    said = f"{detail}: {request.method} {request.url.path}"
    return JSONResponse({"error": said, "field": ""}, status, headers)


async def _failed(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": "an error of the service's own", "field": ""}, 500)


async def _openapi(_: Request) -> Response:
    return JSONResponse(openapi())


def openapi() -> dict[str, Any]:
    """The description of all endpoints, as OpenAPI has it."""
    bodies = [endpoint.body for endpoint in ENDPOINTS if endpoint.body is not None]
    found, parts = msgspec.json.schema_components(
        bodies, ref_template="#/components/schemas/{name}"
    )
    described = dict(zip(bodies, found, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in ENDPOINTS:
        operation: dict[str, Any] = {
            "operationId": endpoint.answer.__name__,
            "summary": endpoint.summary,
            "parameters": [
                {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
                for name in re.findall(r"{(\w+)}", endpoint.path)
            ],
            "responses": {"200": {"description": "done"}, "4XX": {"description": "refused"}},
            "security": [{"token": []}] if endpoint.role else [],
        }
        if endpoint.body is not None:
            content = {"application/json": {"schema": described[endpoint.body]}}
            operation["requestBody"] = {"required": True, "content": content}
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "posterity", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": parts,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }
