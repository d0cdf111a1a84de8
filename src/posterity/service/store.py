"""The database: what is read from it, and how a group of changes is written to it."""

from __future__ import annotations

import fcntl
import sqlite3
import time
from collections import ChainMap, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, BinaryIO

import sqlalchemy as sql

from posterity.service import schema
from posterity.service.errors import ClaimedError
from posterity.service.schema import (
    LEARNER_LOCK,
    NUMBER_LOCK,
    audit,
    decision,
    event,
    meta,
    model,
    row,
    snapshot,
    token,
)
from posterity.service.writing import Group, Record

Key = tuple[str, str]

# Rows that are read, or looked up, at once.
_PAGE = 10_000
_KEYS = 500
# Seconds that are spent looking for damaged pages.
LONGEST_CHECK = 3.0
# Decisions or rows that expire in one group.
AT_ONCE = 500


@dataclass
class LogEntries:
    """The entries of the log that a group of requests names, and those that the group adds."""

    decisions: ChainMap[Key, Record] = field(default_factory=ChainMap)
    events: ChainMap[Key, list[Record]] = field(default_factory=ChainMap)
    rows: ChainMap[Key, Record] = field(default_factory=ChainMap)
    # The log itself, for a request before which all that its model has learned is committed.
    log: Store | None = None

    def layer(self) -> LogEntries:
        """The same entries: what is added to the layer stays out of these."""
        return LogEntries(
            self.decisions.new_child(), self.events.new_child(), self.rows.new_child()
        )

    def join(self, layer: LogEntries) -> None:
        """Take over what was added to a layer."""
        self.decisions.maps[0].update(layer.decisions.maps[0])
        self.events.maps[0].update(layer.events.maps[0])
        self.rows.maps[0].update(layer.rows.maps[0])


class Store:
    """A database; one thread writes at a time.

    Parameters
    ----------
    url : str
        As SQLAlchemy has it: ``sqlite:///folder/posterity.db`` or ``postgresql://...``.
    """

    def __init__(self, url: str) -> None:
        self.engine = schema.connect(url)
        # Other servers may decide beside this one.
        self._shared = self.engine.dialect.name == "postgresql"
        self._guard: sql.Connection | None = None
        self._file: BinaryIO | None = None
        self._insertions: dict[sql.Table, tuple[str, list[str] | None]] = {}

    def claim(self) -> None:
        """Make this the only server that learns.

        Of SQLite the file itself is locked, wherever it lies. Of PostgreSQL the connection that
        holds the lock is the one that writes. Where it is lost the lock is lost with it, and
        nothing can be written before it is claimed again.

        Raises
        ------
        ClaimedError
            Another server learns from this database.
        """
        if not self._shared:
            return self._claim_file()
        if self._guard is not None and not self._guard.invalidated:
            return
        self._release()
        guard = self.engine.connect()
        taken = guard.scalar(sql.select(sql.func.pg_try_advisory_lock(LEARNER_LOCK)))
        guard.commit()  # the lock is the connection's, not the transaction's
        if not taken:
            guard.close()
            raise ClaimedError("another server uses this database: stop it first")
        self._guard = guard

    def _claim_file(self) -> None:
        file = self.engine.url.database
        if self._file is not None or not file or file == ":memory:":
            return
        self._file = open(file, "rb")  # noqa: SIM115 - until the process ends
        try:
            # Another kind of lock than SQLite's own, which the two do not see of each other.
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.close()
            self._file = None
            raise ClaimedError(
                f"another server learns from {file}: stop it first, or start this one with "
                "--decide-only"
            ) from error

    def _release(self) -> None:
        if self._guard is not None:
            self._guard.close()
            self._guard = None

    def check_pages(self) -> None:
        """Look for damaged pages of a file of SQLite, for some seconds at most.

        Raises
        ------
        DatabaseError
            There is one.
        """
        if self._shared:
            return
        until = time.monotonic() + LONGEST_CHECK
        asked = "PRAGMA quick_check(1)"
        with self.engine.connect() as connection:
            driver: Any = connection.connection.driver_connection
            driver.set_progress_handler(lambda: time.monotonic() > until, 10_000)
            try:
                told = connection.exec_driver_sql(asked).scalar()
            except sql.exc.OperationalError as error:
                if "interrupted" not in str(error):
                    raise
                told = "ok"  # the time is over: what was looked at is sound
            finally:
                driver.set_progress_handler(None, 0)
        if told != "ok":
            damage = sqlite3.DatabaseError(f"the image on the disk is malformed: {told}")
            raise sql.exc.DatabaseError(asked, None, damage)

    def close(self) -> None:
        """Close all connections."""
        self._release()
        self.engine.dispose()
        if self._file is not None:
            self._file.close()
        self._file = None

    # ---- writing ---------------------------------------------------------------------------------

    def commit(self, group: Group) -> None:
        """Write all of it or nothing, and return when it is on the disk."""
        tables: dict[sql.Table, list[Record]] = defaultdict(list)
        for table, record in group.inserts:
            tables[table].append(record)
        with self._writing() as connection:
            for statement in group.statements:  # what goes, before the snapshots that come
                connection.execute(statement)
            if decision in tables and self._shared:
                _number(connection, tables[decision])
            for table, records in tables.items():
                connection.exec_driver_sql(*self._insertion(table, records))
            for update, values in group.updates:
                connection.execute(update, values)

    @contextmanager
    def _writing(self) -> Iterator[sql.Connection]:
        """A transaction of the one thread that writes.

        It keeps its connection: taking one from the pool and giving it back costs as much as the
        rows of a small group.
        """
        if self._guard is None and self._shared:  # a server that only decides
            with self.engine.begin() as connection:
                yield connection
            return
        if self._guard is None:
            self._guard = self.engine.connect()
        if self._guard.invalidated:  # it would come back without its lock
            raise ClaimedError(
                "the connection to the database was lost, and its lock with it: try again"
            )
        with self._guard.begin():
            yield self._guard

    def _insertion(self, table: sql.Table, records: list[Record]) -> tuple[str, list[Any]]:
        """The statement and its parameters as the driver takes them: no more work for each row."""
        if table not in self._insertions:
            made: Any = table.insert().compile(dialect=self.engine.dialect)
            self._insertions[table] = made.string, made.positiontup
        statement, order = self._insertions[table]
        if order is None:  # parameters by name
            return statement, records
        return statement, [*map(itemgetter(*order), records)]

    # ---- reading ---------------------------------------------------------------------------------

    def read_last_number(self) -> int:
        """The largest number of any row."""
        return max(self._read_largest(*schema.NUMBERED))

    def find(
        self, decisions: Iterable[Key], rows: Iterable[Key], found: LogEntries | None = None
    ) -> LogEntries:
        """Decisions with their events, and rows, by model and id; they are added to ``found``."""
        found = LogEntries() if found is None else found
        with self._writing() as connection:
            for name, ids in _by_model(decisions):
                for one in _where(connection, _DECISIONS, name, ids):
                    found.decisions[name, one["id"]] = one
                known = [one for one in ids if (name, one) in found.decisions]
                events: dict[Key, list[Record]] = defaultdict(list)
                for one in _where(connection, _EVENTS, name, known):
                    events[name, one["decision_id"]].append(one)
                found.events.update(events)
            for name, ids in _by_model(rows):
                for one in _where(connection, _ROWS, name, ids):
                    found.rows[name, one["row_id"]] = one  # the last one counts
        return found

    def read_models(self) -> list[Record]:
        """The newest settings of every model."""
        asked = sql.select(model).order_by(model.c.seq)
        return [*{one["name"]: one for one in self._all(asked)}.values()]

    def read_versions(self) -> dict[str, int]:
        """The newest version of the settings of every model."""
        newest = sql.func.max(model.c.version).label("version")
        asked = sql.select(model.c.name, newest).group_by(model.c.name)
        return {one["name"]: one["version"] for one in self._all(asked)}

    def read_settings(self, name: str, version: int) -> Record:
        """Return one version of a model's settings."""
        return self._all(sql.select(model).filter_by(name=name, version=version))[0]

    def read_snapshot(self, name: str, through: int | None = None) -> Record | None:
        """The newest snapshot of a model, or the newest that had learned no more than that."""
        asked = sql.select(snapshot).where(snapshot.c.model == name)
        if through is not None:
            asked = asked.where(snapshot.c.learned_through <= through)
        found = self._all(asked.order_by(snapshot.c.learned_through.desc()).limit(1))
        return found[0] if found else None

    def find_first_entry(self, name: str, id: str) -> int | None:
        """The number of the first event of a decision, or of the first entry of a row."""
        asked = [
            sql.select(sql.func.min(table.c.seq))
            .where((table.c.model == name) & (column == id))
            .scalar_subquery()
            for table, column in ((event, event.c.decision_id), (row, row.c.row_id))
        ]
        with self.engine.connect() as connection:
            first = connection.execute(sql.select(*asked)).one()
        return min((number for number in first if number is not None), default=None)

    def read_snapshot_numbers(self) -> dict[str, int]:
        """The number of the newest snapshot of each model that has one."""
        newest = sql.func.max(snapshot.c.learned_through)
        asked = sql.select(snapshot.c.model, newest.label("number")).group_by(snapshot.c.model)
        return {one["model"]: one["number"] for one in self._all(asked)}

    def read_events(
        self, name: str, after: int, through: int | None = None, limit: int | None = None
    ) -> Iterator[Record]:
        """Events of an experiment in order, each with the arm and context of its decision."""
        together = (event.c.model == decision.c.model) & (event.c.decision_id == decision.c.id)
        asked = (
            sql.select(event, decision.c.context, decision.c.arm)
            .join(decision, together)
            .where(event.c.model == name)
        )
        return self._pages(asked, event.c.seq, after, through, limit)

    def read_rows(
        self, name: str, after: int, through: int | None = None, limit: int | None = None
    ) -> Iterator[Record]:
        """Rows of a predictor in order."""
        asked = sql.select(row).where(row.c.model == name)
        return self._pages(asked, row.c.seq, after, through, limit)

    def read_decisions(
        self, name: str, after: int = 0, limit: int | None = None
    ) -> Iterator[Record]:
        """Read decisions in order, each with the reward learned, None where there is none."""
        asked = sql.select(decision, _REWARD).where(decision.c.model == name)
        return self._pages(asked, decision.c.seq, after, None, limit)

    def read_rewarded(self, name: str, after: int, page: int) -> Iterator[Record]:
        """Read arm, propensities and reward of decisions that have one and were not deleted."""
        own = decision.c
        asked = sql.select(own.seq, own.arm, own.propensities, _REWARD).where(
            (own.model == name) & own.context.is_not(None)
        )
        for one in self._pages(asked, own.seq, after, None, page=page):
            if one["reward"] is not None:
                yield one

    def find_number(self, name: str, count: int) -> int:
        """The number before the newest so many decisions; 0 where there are no more."""
        own = decision.c
        asked = sql.select(own.seq).where(own.model == name).order_by(own.seq.desc())
        found = self._all(asked.offset(count).limit(1))
        return found[0]["seq"] if found else 0

    def find_expired(self, name: str, now: float, after: float) -> list[str]:
        """Ids of active decisions whose horizon has passed and of which nothing was learned."""
        heard = sql.exists().where(
            (event.c.model == decision.c.model)
            & (event.c.decision_id == decision.c.id)
            & (event.c.kind != "activate")
        )
        asked = sql.select(decision.c.id).where(
            (decision.c.model == name) & (decision.c.expires > after) & (decision.c.expires <= now)
        )
        return self._list_ids(asked.where(~heard))

    def find_erasable(self, name: str, now: float) -> list[str]:
        """Ids of decisions with a feature whose time has passed."""
        due = (decision.c.model == name) & (decision.c.forget <= now)
        return self._list_ids(sql.select(decision.c.id).where(due))

    def find_forgettable(self, name: str, now: float) -> list[str]:
        """Ids of learned rows whose time has passed."""
        due = (row.c.model == name) & (row.c.forget <= now)
        return self._list_ids(sql.select(row.c.row_id).where(due))

    def read_newest(self) -> tuple[int, ...]:
        """Return the newest numbers of settings, event and row, which show others the changes."""
        return self._read_largest(model, event, row)

    def read_tokens(self) -> list[Record]:
        """Return all tokens, by the hash of each."""
        return self._all(sql.select(token))

    def read_audit(self) -> list[Record]:
        """Return who changed which settings, and when."""
        return self._all(sql.select(audit).order_by(audit.c.seq))

    def read_secret(self, made: str) -> str:
        """Return the secret that arms are drawn by; without one, keep ``made`` unless it is ""."""
        asked = sql.select(meta.c.value).where(meta.c.name == "secret")
        with self.engine.begin() as connection:
            known = connection.scalar(asked)
            if known is None and made:
                connection.execute(meta.insert(), {"name": "secret", "value": made})
            return str(known or made)

    def _read_largest(self, *tables: sql.Table) -> tuple[int, ...]:
        """The largest number of each table's rows, 0 where there is none."""
        asked = [sql.select(sql.func.max(one.c.seq)).scalar_subquery() for one in tables]
        with self.engine.connect() as connection:
            return tuple(number or 0 for number in connection.execute(sql.select(*asked)).one())

    def _all(self, asked: Any) -> list[Record]:
        with self.engine.connect() as connection:
            return [dict(one) for one in connection.execute(asked).mappings()]

    def _list_ids(self, asked: Any) -> list[str]:
        with self.engine.connect() as connection:
            return [*connection.scalars(asked.limit(AT_ONCE))]

    def _pages(
        self,
        asked: Any,
        number: Any,
        after: int,
        through: int | None,
        limit: int | None = None,
        page: int = _PAGE,
    ) -> Iterator[Record]:
        """Yield all rows in order; no transaction is held open between pages."""
        if through is not None:
            asked = asked.where(number <= through)
        left = limit
        while left is None or left > 0:
            size = page if left is None else min(page, left)
            rows = self._all(asked.where(number > after).order_by(number).limit(size))
            yield from rows
            if len(rows) < size:
                return
            after = rows[-1]["seq"]
            left = None if left is None else left - len(rows)


def _number(connection: sql.Connection, decisions: list[Record]) -> None:
    """Number decisions in the order of their commits, whichever server commits them."""
    connection.execute(sql.select(sql.func.pg_advisory_xact_lock(NUMBER_LOCK)))
    last = connection.scalar(sql.select(sql.func.max(decision.c.seq))) or 0
    for number, one in enumerate(decisions, last + 1):
        one["seq"] = number


def _by_model(keys: Iterable[Key]) -> Iterator[tuple[str, list[str]]]:
    ids: dict[str, list[str]] = defaultdict(list)
    for name, one in dict.fromkeys(keys):
        ids[name].append(one)
    for name, some in ids.items():
        for start in range(0, len(some), _KEYS):
            yield name, some[start : start + _KEYS]


def _by_id(table: sql.Table, column: Any) -> Any:
    """The statement that reads rows of some ids: made once, as each making of it costs."""
    ids: Any = sql.bindparam("ids", expanding=True)
    return sql.select(table).where((table.c.model == sql.bindparam("name")) & column.in_(ids))


# What was learned of a decision, None where it is nothing.
_REWARD = (
    sql.select(event.c.total)
    .where((event.c.model == decision.c.model) & (event.c.decision_id == decision.c.id))
    .order_by(event.c.seq.desc())
    .limit(1)
    .scalar_subquery()
    .label("reward")
)
_DECISIONS = _by_id(decision, decision.c.id)
_EVENTS = _by_id(event, event.c.decision_id)
_ROWS = _by_id(row, row.c.row_id)


def _where(connection: sql.Connection, asked: Any, name: str, ids: Sequence[str]) -> list[Record]:
    if not ids:
        return []
    found = connection.execute(asked, {"name": name, "ids": ids}).mappings()
    # Sorted here: SQLite would read all of a model's rows in order, and look for ids among them.
    return sorted(map(dict, found), key=itemgetter("seq"))
