"""Connections: bounded in number, and closed where no whole header comes, or nothing is read."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# Connections that may be open at once: a process may often have 1,024 files, the database's too.
MOST_CONNECTIONS = 900
# Bytes of a header with its path, and seconds until the whole of it has come.
LARGEST_HEADER, LONGEST_HEADER = 65_536, 10.0
# Seconds between two requests of a connection, and those that an answer may wait to be read.
LONGEST_IDLE = 60


class BoundedProtocol(HttpToolsProtocol):
    """Uvicorn's protocol, with bounds on what comes before a request is there.

    Once it is, the body has bounds of its own. All connections are looked at together, once a
    second: a timer for each request would cost more than the header.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._in_message = False  # from the end of a header to that of its body
        self._size = 0  # bytes that have come since a header began
        self._late_at: float | None = None  # when it is closed

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a header, unless there are too many that do."""
        super().connection_made(transport)
        self._late_at = time.monotonic() + LONGEST_HEADER
        if len(self.connections) > MOST_CONNECTIONS:
            self._refuse("503 Service Unavailable", "too many connections: try again later")

    def data_received(self, data: bytes) -> None:
        """Read what has come."""
        if self._late_at is None and not self._in_message:
            self._late_at, self._size = time.monotonic() + LONGEST_HEADER, 0
        self._size += len(data)
        super().data_received(data)
        waits = self._late_at is not None and not self._in_message
        if waits and self._size > LARGEST_HEADER and not self.transport.is_closing():
            self._refuse_header()

    def on_headers_complete(self) -> None:
        """Let a request in; as the parser calls it."""
        # Few bytes hold no large header; many may be bodies, or several requests.
        if self._size > LARGEST_HEADER and self._measure_header() > LARGEST_HEADER:
            self._refuse_header()
            raise ValueError("the header is too large")
        self._in_message, self._late_at = True, None
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Begin to wait for the next; as the parser calls it."""
        self._in_message, self._late_at = False, None
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Say that what came is no request, unless the client was told something else."""
        if not self.transport.is_closing():
            super().send_400_response(msg)

    def pause_writing(self) -> None:
        """Wait until the client reads; as the transport calls it."""
        super().pause_writing()
        self._late_at = time.monotonic() + LONGEST_IDLE

    def resume_writing(self) -> None:
        """Go on; as the transport calls it."""
        super().resume_writing()
        self._late_at = None

    def close_if_late(self, now: float) -> None:
        """End the connection if its time is over."""
        answered = self.cycle is not None and self.cycle.response_complete
        if self._late_at is None and self._in_message and answered:
            self._late_at = now + LONGEST_HEADER  # for the rest of a body that nobody reads
        if self._late_at is not None and self._late_at < now:
            self.transport.abort()

    def _measure_header(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _refuse_header(self) -> None:
        message = f"the header is larger than {LARGEST_HEADER} bytes: send less"
        self._refuse("431 Request Header Fields Too Large", message)

    def _refuse(self, status: str, message: str) -> None:
        content = f'{{"error":"{message}","field":""}}'
        self.transport.write(
            f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\nretry-after: 1\r\n"
            f"content-length: {len(content)}\r\nconnection: close\r\n\r\n{content}".encode()
        )
        self.transport.close()


def close_late(connections: Iterable[Any]) -> None:
    """End those of the connections whose time is over."""
    now = time.monotonic()
    for one in list(connections):
        one.close_if_late(now)
