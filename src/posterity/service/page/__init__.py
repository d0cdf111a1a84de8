"""The live page: files as they are, which ask this host only and run no other script."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

FILES = {
    "/": ("index.html", "text/html"),
    "/page/page.css": ("page.css", "text/css"),
    "/page/charts.js": ("charts.js", "text/javascript"),
    "/page/page.js": ("page.js", "text/javascript"),
    "/page/icon.svg": ("icon.svg", "image/svg+xml"),
}

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",
}


def page_routes() -> list[Route]:
    """A route for each file of the page; they hold no data, so nobody is asked for a token."""
    return [Route(path, _file(*file), methods=["GET"]) for path, file in FILES.items()]


def _file(name: str, media_type: str) -> Callable[[Request], Awaitable[Response]]:
    content = files(__package__).joinpath(name).read_bytes()

    async def answer(_: Request) -> Response:
        return Response(content, media_type=media_type, headers=HEADERS)

    return answer
