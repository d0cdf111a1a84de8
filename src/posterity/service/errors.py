"""Refusals of the service: a status of HTTP, the field, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class RefusedError(Exception):
    """A request that changed nothing.

    Parameters
    ----------
    status : int
        Of HTTP: 4xx what was asked for can't be, 503 not now.
    message : str
    field : str
        What it is about; "" where it is about no field.
    retry_after : int, optional
        Seconds after which the same request may do.
    """

    def __init__(
        self, status: int, message: str, field: str = "", retry_after: int | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.field = status, message, field
        self.retry_after = retry_after


@contextmanager
def naming_place(field: str, place: int, count: int) -> Iterator[None]:
    """Say of a refusal which of several requests is meant."""
    try:
        yield
    except RefusedError as refused:
        if count > 1:
            refused.field = f"{field}[{place}].{refused.field}".rstrip(".")
        raise


class ClaimedError(ValueError):
    """A database that another server has."""


class NotYetError(Exception):
    """A request that has changed nothing, and is done in a later group."""


class NeedsLogError(NotYetError):
    """What is to be learned needs the log, with all that came before it committed."""
