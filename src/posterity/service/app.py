"""The service's face: Starlette routes around the engine, every error as JSON with its field."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

import msgspec
from sqlalchemy.exc import SQLAlchemyError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from posterity import __version__
from posterity.service.bodies import Bodies
from posterity.service.changes import check_name
from posterity.service.decoding import Decoder
from posterity.service.endpoints import ENDPOINTS, Call, Endpoint
from posterity.service.engine import Engine
from posterity.service.errors import RefusedError
from posterity.service.groups import AWAY_ERRORS
from posterity.service.messages import EXAMPLES
from posterity.service.page import page_routes
from posterity.service.personalizer import DEFAULT_EXPERIMENT
from posterity.service.routing import Routes
from posterity.service.store import LogEntries
from posterity.service.tokens import Tokens
from posterity.service.work import Work, summarize_error
from posterity.service.writing import Group

# Seconds after which a server that only decides knows of a token, or of its end.
TOKENS_EVERY = 1.0
_encode = msgspec.json.Encoder().encode
_JSON = (b"content-type", b"application/json")


def create_app(
    engine: Engine,
    *,
    announce: Callable[[str], Any] = print,
    background: Callable[[Engine], Coroutine[Any, Any, None]] | None = None,
    visitor: bool = False,
    new_token: bool = False,
) -> App:
    """The application; it starts and stops the engine, and says the first admin token once.

    Parameters
    ----------
    engine : Engine
    announce : callable
        Is given the first token of a new database.
    background : callable, optional
        Is run once the engine has started, and cancelled when it stops.
    visitor : bool
        Whether a database that has tokens gets one more, for a day, which may read.
    new_token : bool
        Whether it gets one more of role admin, as where the first was lost.
    """
    tokens, bodies = Tokens([]), Bodies()

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await engine.start()
        tasks = [asyncio.create_task(bodies.watch())]
        tokens.read(await engine.read(engine.store.read_tokens))
        if not engine.learns:
            tasks.append(asyncio.create_task(_follow(engine, tokens)))
        elif not len(tokens):
            announce(await _make_token(engine, tokens, "first", "admin"))
        elif new_token:
            announce(await _make_token(engine, tokens, f"admin {time.time_ns()}", "admin"))
        elif visitor:  # to look at a demonstration that was there before
            announce(await _make_token(engine, tokens, f"demo {time.time_ns()}", "read", 86_400.0))
        if background is not None:
            tasks.append(asyncio.create_task(background(engine)))
        yield
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await engine.stop()

    pages = Starlette(
        routes=[Route("/openapi.json", _openapi, methods=["GET"]), *page_routes()],
        lifespan=lifespan,
        exception_handlers={HTTPException: _http_error, Exception: _failed},
    )
    return App(engine, tokens, bodies, pages)


class App:
    """Requests of endpoints are answered at once; Starlette has the pages, starts and stops.

    Parameters
    ----------
    engine : Engine
    tokens : Tokens
    bodies : Bodies
    pages : Starlette
    """

    def __init__(self, engine: Engine, tokens: Tokens, bodies: Bodies, pages: Starlette) -> None:
        self.pages = pages
        self._engine, self._tokens, self._routes = engine, tokens, Routes(ENDPOINTS)
        self._bodies = bodies
        kinds = {one.body for one in ENDPOINTS} - {None, bytes}
        self._decoders = {kind: Decoder(kind).decode for kind in kinds} | {bytes: bytes}

    def live(self) -> AbstractAsyncContextManager[Any]:
        """Return the context that starts the engine and stops it, without a server of ASGI."""
        return self.pages.router.lifespan_context(self.pages)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As ASGI has it."""
        if scope["type"] != "http":
            return await self.pages(scope, receive, send)
        try:
            methods, values = self._routes.find(_expand_path(scope["raw_path"]))
        except KeyError:
            return await self.pages(scope, receive, send)
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        if method not in methods:
            known = ", ".join(methods)
            refused = RefusedError(405, f"this path has no {method}: it has {known}")
            return await _respond_refused(refused, {"allow": known})(scope, receive, send)
        try:
            answer = await self._answer(methods[method], values, scope, receive)
        except RefusedError as refused:
            answer = _respond_refused(refused)
        except AWAY_ERRORS as error:  # while it was read
            message = f"the database can't be read ({summarize_error(error)}): try again"
            answer = _respond_refused(RefusedError(503, message, retry_after=1))
        except Exception:
            await _internal_error()(scope, receive, send)
            raise
        if isinstance(answer, Response):
            return await answer(scope, receive, send)
        content, status = _encode(answer), methods[method].status
        length = (b"content-length", str(len(content)).encode())
        await send({"type": "http.response.start", "status": status, "headers": [_JSON, length]})
        await send({"type": "http.response.body", "body": content})

    async def _answer(
        self, endpoint: Endpoint, named: list[str], scope: Scope, receive: Receive
    ) -> Any:
        token, body = "", None
        if endpoint.role:
            token = self._tokens.check(_read_authorization(scope), endpoint.role)
        for field, given in zip(endpoint.fields, named, strict=True):
            check_name(given, field)
        if endpoint.body is not None:
            content = await self._bodies.read(receive, endpoint.largest)
            body = self._decoders[endpoint.body](content)
        call = Call(self._engine, self._tokens, token, body, endpoint.kind, named, scope)
        return await endpoint.answer(call)


def _expand_path(path: bytes) -> bytes:
    """A path with the experiment that it means."""
    if path.startswith(b"/personalizer/"):
        return f"/v1/experiments/{DEFAULT_EXPERIMENT}".encode() + path
    return path


def _read_authorization(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"authorization":
            return str(value.decode("latin-1"))
        if name == b"ocp-apim-subscription-key":  # as clients of Personalizer send it
            return f"Bearer {value.decode('latin-1')}"
    return ""


async def _follow(engine: Engine, tokens: Tokens) -> None:
    """Let in, and refuse, whom the server that learns does."""
    while True:
        await asyncio.sleep(TOKENS_EVERY)
        with suppress(SQLAlchemyError):  # the database is away: there is a next time
            tokens.read(await engine.read(engine.store.read_tokens))


async def _make_token(
    engine: Engine, tokens: Tokens, name: str, role: str, seconds: float | None = None
) -> str:
    """A token that nobody asked for over HTTP."""
    expires = None if seconds is None else time.time() + seconds

    def do(_: LogEntries, group: Group) -> Any:
        return tokens.make(group, name, role, expires)

    made, record = await engine.submit(Work(do))
    tokens.add(record)
    return str(made)


def _respond_refused(refused: RefusedError, more: dict[str, str] | None = None) -> Response:
    headers = dict(more or {})
    if refused.retry_after is not None:
        headers["retry-after"] = str(refused.retry_after)
    if refused.status == 401:
        headers["www-authenticate"] = "Bearer"
    body = {"error": refused.message, "field": refused.field}
    return JSONResponse(body, refused.status, headers)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    what = f"{error.detail}: {request.method} {request.url.path}"
    message = f"{what}; /openapi.json lists all requests"
    return JSONResponse({"error": message, "field": ""}, error.status_code, error.headers)


async def _failed(request: Request, error: Exception) -> Response:
    return _internal_error()


def _internal_error() -> Response:
    return JSONResponse({"error": "an error of the service's own", "field": ""}, 500)


async def _openapi(_: Request) -> Response:
    return JSONResponse(describe_api())


def _describe_body(body: Any, described: Mapping[Any, Any]) -> dict[str, Any]:
    if body is bytes:
        file = {"schema": {"type": "string", "format": "binary"}}
        return {"content": {"application/octet-stream": file}}
    shown = {"schema": described[body], "example": EXAMPLES[body]}
    return {"required": True, "content": {"application/json": shown}}


def describe_api() -> dict[str, Any]:
    """The description of all endpoints, as OpenAPI has it."""
    bodies = [endpoint.body for endpoint in ENDPOINTS if endpoint.body not in (None, bytes)]
    found, parts = msgspec.json.schema_components(
        bodies, ref_template="#/components/schemas/{name}"
    )
    described = dict(zip(bodies, found, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    used = Counter(endpoint.answer.__name__ for endpoint in ENDPOINTS)
    for endpoint in ENDPOINTS:
        name = endpoint.answer.__name__
        operation: dict[str, Any] = {
            "operationId": name if used[name] == 1 else f"{name}_{endpoint.kind[:-1]}",
            "summary": endpoint.summary,
            "parameters": [
                {"name": field, "in": "path", "required": True, "schema": {"type": "string"}}
                for field in endpoint.fields
            ],
            "responses": {
                str(endpoint.status): {"description": "done"},
                "4XX": {"description": "refused"},
            },
            "security": [{"token": []}] if endpoint.role else [],
        }
        if endpoint.body is not None:
            operation["requestBody"] = _describe_body(endpoint.body, described)
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
