"""Permissions by bearer tokens, of which only hashes are kept."""

from __future__ import annotations

import hashlib
import secrets
import time
from dataclasses import dataclass, field
from typing import Any

from posterity.service.errors import RefusedError
from posterity.service.schema import token as table
from posterity.service.writing import Group, Record, revoke_token_named

# Each role may do what those before it may.
ROLES = ("read", "decide", "admin")
# Requests that a token may make at once, and that it is given again each second.
BURST, RATE = 20_000.0, 10_000.0


def hash_token(token: str) -> str:
    """Return the hash of a token that is kept: 256 random bits need no salt."""
    return hashlib.sha256(token.encode()).hexdigest()


@dataclass
class Bucket:
    """Token bucket: the requests that a token may still make, refilled as time goes by."""

    left: float = BURST
    at: float = field(default_factory=time.monotonic)

    def take(self, rate: float = RATE, burst: float = BURST) -> bool:
        """Take one request from the bucket; return True if it may be made."""
        now = time.monotonic()
        self.left, self.at = min(burst, self.left + rate * (now - self.at)), now
        if self.left < 1.0:
            return False
        self.left -= 1.0
        return True


class Tokens:
    """All tokens, in memory; changes go through the writer."""

    def __init__(self, known: list[Record]) -> None:
        self._buckets: dict[str, Bucket] = {}
        self.read(known)

    def read(self, known: list[Record]) -> None:
        """Let in those that the database has."""
        self._by_hash = {one["hash"]: one for one in known}

    def __len__(self) -> int:
        return len(self._by_hash)

    def make(
        self, group: Group, name: str, role: str, expires: float | None = None
    ) -> tuple[str, Record]:
        """A new token, which is shown once, and what is kept of it: to be added once written."""
        if any(one["name"] == name for one in self._by_hash.values()):
            raise RefusedError(409, f"there is, or was, a token {name!r}: use another name", "name")
        made = secrets.token_urlsafe(32)
        record: dict[str, Any] = {
            "hash": hash_token(made),
            "name": name,
            "role": role,
            "created": time.time(),
            "expires": expires,
            "revoked": None,
        }
        group.add(table, **record)
        return made, record

    def add(self, record: Record) -> None:
        """Let a token in from now on."""
        self._by_hash[record["hash"]] = record

    def revoke(self, group: Group, name: str) -> None:
        """Refuse a token from now on; one of role admin must be left."""
        for one in self._by_hash.values():
            if one["name"] == name:
                if one["role"] == "admin" and not any(
                    other is not one and other["role"] == "admin" and _is_valid(other)
                    for other in self._by_hash.values()
                ):
                    raise RefusedError(
                        409, f"{name!r} is the last token of role admin: make another first", "name"
                    )
                one["revoked"] = time.time()
                group.statements.append(revoke_token_named(name))
                return
        raise RefusedError(404, f"there is no token {name!r}", "name")

    def is_valid(self, name: str) -> bool:
        """Return True if a token of this name has neither been revoked nor expired."""
        return any(one["name"] == name and _is_valid(one) for one in self._by_hash.values())

    def check(self, header: str, role: str) -> str:
        """The name of the token in an ``Authorization`` header that may act in this role."""
        kind, _, given = header.partition(" ")
        # By its hash: how long looking it up takes tells nothing of the token.
        known = self._by_hash.get(hash_token(given)) if kind.lower() == "bearer" else None
        if known is None or known["revoked"] is not None:
            raise RefusedError(401, "give a token: Authorization: Bearer TOKEN")
        if known["expires"] is not None and known["expires"] <= time.time():
            raise RefusedError(401, f"the token {known['name']!r} has expired: ask for a new one")
        if ROLES.index(known["role"]) < ROLES.index(role):
            raise RefusedError(403, f"this needs a token of role {role!r}: use another token")
        if not self._buckets.setdefault(known["hash"], Bucket()).take():
            raise RefusedError(429, "too many requests: try again later", retry_after=1)
        return str(known["name"])


def _is_valid(token: Record) -> bool:
    """Return True if a token has neither been revoked nor expired."""
    expires = token["expires"]
    return token["revoked"] is None and (expires is None or expires > time.time())
