"""Routing of paths to endpoints: each part is looked up once, quoted as it was sent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import unquote_to_bytes

from posterity.service.endpoints import Endpoint


@dataclass
class Node:
    """The parts that may follow a part of a path, and the endpoints that end there, by method."""

    parts: dict[str, Node] = field(default_factory=dict)
    anything: Node | None = None
    methods: dict[str, Endpoint] = field(default_factory=dict)


class Routes:
    """A tree of the parts of paths.

    Parts are separated before they are unquoted, so a name may hold a slash, sent as ``%2F``.

    Parameters
    ----------
    endpoints : iterable of Endpoint
    """

    def __init__(self, endpoints: Iterable[Endpoint]) -> None:
        self._root = Node()
        for endpoint in endpoints:
            node = self._root
            for part in endpoint.path.split("/")[1:]:
                if part.startswith("{"):
                    node.anything = node = node.anything or Node()
                else:
                    node = node.parts.setdefault(part, Node())
            node.methods[endpoint.method] = endpoint

    def find(self, path: bytes) -> tuple[dict[str, Endpoint], list[str]]:
        """Endpoints by method, and the names and ids in the path.

        Raises
        ------
        KeyError
            No endpoint has such a path.
        """
        node, values = self._root, []
        for part in path.decode("latin-1").split("/")[1:]:
            after = node.parts.get(part)
            if after is None:
                after = node.anything
                if after is None or not part:
                    raise KeyError(part)
                values.append(_unquote(part))
            node = after
        if not node.methods:
            raise KeyError(path)
        return node.methods, values


def _unquote(part: str) -> str:
    try:
        return unquote_to_bytes(part.encode("latin-1")).decode() if "%" in part else part
    except UnicodeDecodeError as error:
        raise KeyError(part) from error
