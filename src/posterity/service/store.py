"""Everything that is read from the database or written to it: SQL stands here only."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sql

from posterity.service import schema
from posterity.service.schema import audit, decision, event, meta, model, row, snapshot, token

Record = dict[str, Any]
Key = tuple[str, str]

# Rows that are read, or looked up, at once.
_PAGE = 10_000
_KEYS = 500


@dataclass
class Group:
    """What is written in one transaction."""

    inserts: list[tuple[sql.Table, Record]] = field(default_factory=list)
    statements: list[Any] = field(default_factory=list)

    def add(self, table: sql.Table, **values: Any) -> None:
        """One row more."""
        self.inserts.append((table, values))

    def __bool__(self) -> bool:
        return bool(self.inserts or self.statements)


@dataclass
class ModeFit:
    """What the log knows of the decisions and rows that a group of requests names."""

    decisions: dict[Key, Record] = field(default_factory=dict)
    events: dict[Key, list[Record]] = field(default_factory=dict)
    rows: dict[Key, Record] = field(default_factory=dict)


class Store:
    """A database; one thread writes at a time.

    Parameters
    ----------
    url : str
        As SQLAlchemy has it: ``sqlite:///folder/posterity.db`` or ``postgresql://...``.
    """

    def __init__(self, url: str) -> None:
        self.engine = schema.connect(url)
        self._guard: sql.Connection | None = None

    def claim(self) -> None:
        """Be the only server of a PostgreSQL database; the folder's lock does so for SQLite."""
        if self.engine.dialect.name != "postgresql":
            return
        self._guard = self.engine.connect()
        if not self._guard.scalar(sql.text("SELECT pg_try_advisory_lock(7067)")):
            raise ValueError("another server uses this database: stop it first")

    def close(self) -> None:
        """Close all connections."""
        if self._guard is not None:
            self._guard.close()
        self.engine.dispose()

    # ---- writing ---------------------------------------------------------------------------------

    def commit(self, group: Group) -> None:
        """Write all of it or nothing, and return when it is on the disk."""
        tables: dict[sql.Table, list[Record]] = {}
        for table, record in group.inserts:
            tables.setdefault(table, []).append(record)
        with self.engine.begin() as connection:
            for statement in group.statements:  # what goes, before the snapshots that come
                connection.execute(statement)
            for table, records in tables.items():
                connection.execute(table.insert(), records)

    # ---- reading ---------------------------------------------------------------------------------

    def last_number(self) -> int:
        """The largest number of any row."""
        with self.engine.connect() as connection:
            numbers = [
                connection.scalar(sql.select(sql.func.max(table.c.seq)))
                for table in schema.NUMBERED
            ]
        return max(number or 0 for number in numbers)

    def find(self, decisions: Iterable[Key], rows: Iterable[Key]) -> ModeFit:
        """Decisions with their events, and rows, by model and id."""
        found = ModeFit()
        with self.engine.connect() as connection:
            for name, ids in _by_model(decisions):
                for one in _where(connection, decision, decision.c.id, name, ids):
                    found.decisions[name, one["id"]] = one
                known = [one for one in ids if (name, one) in found.decisions]
                for one in _where(connection, event, event.c.decision_id, name, known):
                    found.events.setdefault((name, one["decision_id"]), []).append(one)
            for name, ids in _by_model(rows):
                for one in _where(connection, row, row.c.row_id, name, ids):
                    found.rows[name, one["row_id"]] = one  # the last one counts
        return found

    def models(self) -> list[Record]:
        """The newest settings of every model."""
        newest: dict[str, Record] = {}
        for one in self._all(sql.select(model).order_by(model.c.seq)):
            newest[one["name"]] = one
        return list(newest.values())

    def settings(self, name: str, version: int) -> Record:
        """One version of a model's settings."""
        asked = sql.select(model).where((model.c.name == name) & (model.c.version == version))
        return self._all(asked)[0]

    def snapshot(self, name: str, through: int | None = None) -> Record | None:
        """The newest snapshot of a model, or the newest that had learned no more than that."""
        asked = sql.select(snapshot).where(snapshot.c.model == name)
        if through is not None:
            asked = asked.where(snapshot.c.learned_through <= through)
        found = self._all(asked.order_by(snapshot.c.learned_through.desc()).limit(1))
        return found[0] if found else None

    def learned(self, name: str, after: int, through: int | None = None) -> Iterator[Record]:
        """Events of an experiment in order, each with the arm and context of its decision."""
        together = (event.c.model == decision.c.model) & (event.c.decision_id == decision.c.id)
        asked = (
            sql.select(event, decision.c.context, decision.c.arm)
            .join(decision, together)
            .where(event.c.model == name)
        )
        return self._pages(asked, event.c.seq, after, through)

    def rows(self, name: str, after: int, through: int | None = None) -> Iterator[Record]:
        """Rows of a predictor in order."""
        return self._pages(sql.select(row).where(row.c.model == name), row.c.seq, after, through)

    def decisions(self, name: str, after: int = 0, limit: int | None = None) -> Iterator[Record]:
        """Decisions in order, each with what was learned of it, None where nothing was."""
        last = (
            sql.select(event.c.total)
            .where((event.c.model == decision.c.model) & (event.c.decision_id == decision.c.id))
            .order_by(event.c.seq.desc())
            .limit(1)
            .scalar_subquery()
        )
        asked = sql.select(decision, last.label("reward")).where(decision.c.model == name)
        return self._pages(asked, decision.c.seq, after, None, limit)

    def last_decisions(self, name: str, count: int) -> list[Record]:
        """The newest decisions, the newest first."""
        asked = sql.select(decision).where(decision.c.model == name)
        return self._all(asked.order_by(decision.c.seq.desc()).limit(count))

    def expired(self, name: str, now: float, after: float) -> list[str]:
        """Ids of active decisions whose horizon has passed and of which nothing was learned."""
        heard = sql.exists().where(
            (event.c.model == decision.c.model)
            & (event.c.decision_id == decision.c.id)
            & (event.c.kind != "activate")
        )
        asked = sql.select(decision.c.id).where(
            (decision.c.model == name) & (decision.c.expires > after) & (decision.c.expires <= now)
        )
        return [one["id"] for one in self._all(asked.where(~heard).limit(_KEYS))]

    def tokens(self) -> list[Record]:
        """All tokens, by the hash of each."""
        return self._all(sql.select(token))

    def audited(self) -> list[Record]:
        """Who changed which settings, and when."""
        return self._all(sql.select(audit).order_by(audit.c.seq))

    def secret(self, made: str) -> str:
        """What arms are drawn by; ``made`` where there is none yet."""
        asked = sql.select(meta.c.value).where(meta.c.name == "secret")
        with self.engine.begin() as connection:
            known = connection.scalar(asked)
            if known is None:
                connection.execute(meta.insert(), {"name": "secret", "value": made})
            return str(known or made)

    def _all(self, asked: Any) -> list[Record]:
        with self.engine.connect() as connection:
            return [dict(one) for one in connection.execute(asked).mappings()]

    def _pages(
        self, asked: Any, number: Any, after: int, through: int | None, limit: int | None = None
    ) -> Iterator[Record]:
        """All rows in order; no transaction is held open between pages."""
        if through is not None:
            asked = asked.where(number <= through)
        left = limit
        while left is None or left > 0:
            size = _PAGE if left is None else min(_PAGE, left)
            page = self._all(asked.where(number > after).order_by(number).limit(size))
            yield from page
            if len(page) < size:
                return
            after = page[-1]["seq"]
            left = None if left is None else left - len(page)


def erasures(name: str, ids: Sequence[str]) -> list[Any]:
    """Statements that take the contexts of decisions, and all snapshots that knew them, away."""
    gone = decision.update().where((decision.c.model == name) & decision.c.id.in_(ids))
    return [gone.values(context=None), snapshot.delete().where(snapshot.c.model == name)]


def revocation(name: str) -> Any:
    """The statement that revokes a token."""
    return token.update().where(token.c.name == name).values(revoked=time.time())


def _by_model(keys: Iterable[Key]) -> Iterator[tuple[str, list[str]]]:
    ids: dict[str, list[str]] = {}
    for name, one in dict.fromkeys(keys):
        ids.setdefault(name, []).append(one)
    for name, some in ids.items():
        for start in range(0, len(some), _KEYS):
            yield name, some[start : start + _KEYS]


def _where(
    connection: sql.Connection, table: sql.Table, column: Any, name: str, ids: Sequence[str]
) -> list[Record]:
    if not ids:
        return []
    asked = sql.select(table).where((table.c.model == name) & column.in_(ids))
    return [dict(one) for one in connection.execute(asked.order_by(table.c.seq)).mappings()]
