"""What is written to the database in one transaction."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sql

from posterity.service.schema import decision, event, model, row, snapshot, token

Record = dict[str, Any]


@dataclass
class Group:
    """Statements of one transaction."""

    inserts: list[tuple[sql.Table, Record]] = field(default_factory=list)
    statements: list[Any] = field(default_factory=list)
    # Each with the values that it is executed with, row by row.
    updates: list[tuple[Any, list[Record]]] = field(default_factory=list)
    # Models that get a snapshot in the same transaction: the log alone no longer makes them.
    snapshots: set[str] = field(default_factory=set)

    def add(self, table: sql.Table, **values: Any) -> None:
        """Add one row."""
        self.inserts.append((table, values))

    def join(self, other: Group) -> None:
        """Add all that another group has."""
        self.inserts += other.inserts
        self.statements += other.statements
        self.updates += other.updates
        self.snapshots |= other.snapshots

    def __bool__(self) -> bool:
        return bool(self.inserts or self.statements or self.updates)


def erase_decisions(name: str, ids: Sequence[str]) -> list[Any]:
    """Statements that take the contexts of decisions, and all snapshots that knew them, away."""
    gone = decision.update().where((decision.c.model == name) & decision.c.id.in_(ids))
    return [
        gone.values(context=None, forget=None),
        snapshot.delete().where(snapshot.c.model == name),
    ]


def delete_model(name: str, number: int) -> list[tuple[Any, list[Record]]]:
    """Statements that delete all that there is of a model before a number of the log.

    Decisions have numbers of their own where several servers decide: all of them go.
    """
    of: Any = sql.bindparam("of")
    before: Any = sql.bindparam("before")
    numbered = [
        table.delete().where((table.c.model == of) & (table.c.seq < before))
        for table in (event, row)
    ]
    settings = model.delete().where((model.c.name == of) & (model.c.seq < before))
    whole = [table.delete().where(table.c.model == of) for table in (decision, snapshot)]
    return [
        *((one, [{"of": name, "before": number}]) for one in (*numbered, settings)),
        *((one, [{"of": name}]) for one in whole),
    ]


def replace_contexts() -> Any:
    """The statement that replaces contexts, by the number of the decision."""
    gone = decision.update().where(decision.c.seq == sql.bindparam("number"))
    return gone.values(context=sql.bindparam("left"), forget=sql.bindparam("next"))


def keep_row() -> Any:
    """The statement by which a row is no longer due to be unlearned."""
    asked = (row.c.model == sql.bindparam("of")) & (row.c.row_id == sql.bindparam("one"))
    return row.update().where(asked).values(forget=None)


def drop_deadline() -> Any:
    """The statement by which a decision is no longer due to have its default learned."""
    asked = (decision.c.model == sql.bindparam("of")) & (decision.c.id == sql.bindparam("one"))
    return decision.update().where(asked).values(expires=None)


def thin_snapshots(name: str, former: int) -> Any:
    """The statement that deletes a snapshot which a newer one replaces."""
    return snapshot.delete().where(
        (snapshot.c.model == name) & (snapshot.c.learned_through == former)
    )


def revoke_token_named(name: str) -> Any:
    """The statement that revokes a token."""
    return token.update().where(token.c.name == name).values(revoked=time.time())
