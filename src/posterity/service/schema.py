"""The tables, on SQLite and PostgreSQL alike: a log to which is only appended, and snapshots."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sql
from sqlalchemy import Column, Float, Index, Integer, LargeBinary, String, Table, Text

from posterity.service.errors import ClaimedError

# Of the tables below; an older database is brought to it, a newer one is refused.
VERSION = 2

metadata = sql.MetaData()

# SQLite numbers rows itself only where the key is an INTEGER; everywhere else 64 bits.
Sequence = sql.BigInteger().with_variant(Integer(), "sqlite")

meta = Table("meta", metadata, Column("name", String, primary_key=True), Column("value", Text))

# Settings as they were, version by version; the newest counts.
DELETED = "deleted"  # the kind of a last version, which has none
model = Table(
    "model",
    metadata,
    Column("seq", Sequence, primary_key=True, autoincrement=False),
    Column("name", String, nullable=False),
    Column("version", Integer, nullable=False),
    Column("kind", String, nullable=False),
    Column("settings", Text, nullable=False),
    Column("at", Float, nullable=False),
    sql.UniqueConstraint("name", "version"),
)

decision = Table(
    "decision",
    metadata,
    Column("seq", Sequence, primary_key=True, autoincrement=False),
    Column("model", String, nullable=False),
    Column("id", String, nullable=False),
    Column("at", Float, nullable=False),
    Column("learned_through", Sequence, nullable=False),
    Column("settings_version", Integer, nullable=False),
    Column("context", LargeBinary),  # float64; NULL once it was erased
    Column("allowed", LargeBinary),  # a byte an arm; NULL: all
    Column("arm", Integer, nullable=False),
    Column("propensities", LargeBinary, nullable=False),
    Column("means", LargeBinary, nullable=False),
    Column("widths", LargeBinary, nullable=False),
    Column("active", Integer, nullable=False),
    Column("expires", Float),
    Column("forget", Float),  # when the next of its features is erased
    sql.UniqueConstraint("model", "id"),
    Index("decision_seq", "model", "seq"),
)

# What came for a decision. `former` and `total` are what was learned of it before and after.
event = Table(
    "event",
    metadata,
    Column("seq", Sequence, primary_key=True, autoincrement=False),
    Column("model", String, nullable=False),
    Column("decision_id", String, nullable=False),
    Column("event_id", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("value", Float),
    Column("former", Float),
    Column("total", Float),
    Column("at", Float, nullable=False),
    Index("event_decision", "model", "decision_id"),
    Index("event_seq", "model", "seq"),
)

# Rows of predictors: what was learned or unlearned, and what had been predicted.
row = Table(
    "row",
    metadata,
    Column("seq", Sequence, primary_key=True, autoincrement=False),
    Column("model", String, nullable=False),
    Column("row_id", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("x", LargeBinary, nullable=False),
    Column("y", Float, nullable=False),
    Column("mean", Float),
    Column("low", Float),
    Column("high", Float),
    Column("log_score", Float),
    Column("at", Float, nullable=False),
    Column("forget", Float),  # when it is unlearned
    Index("row_id", "model", "row_id"),
    Index("row_seq", "model", "seq"),
)


def _where_set(name: str, table: Table, column: str) -> Index:
    """An index of the rows that have a value: the others cost nothing."""
    has = table.c[column].is_not(None)
    return Index(name, table.c.model, table.c[column], sqlite_where=has, postgresql_where=has)


DUE = (
    _where_set("decision_due", decision, "expires"),
    _where_set("decision_forget", decision, "forget"),
    _where_set("row_forget", row, "forget"),
)

snapshot = Table(
    "snapshot",
    metadata,
    Column("model", String, primary_key=True),
    Column("learned_through", Sequence, primary_key=True, autoincrement=False),
    Column("file", LargeBinary, nullable=False),
    Column("at", Float, nullable=False),
)

token = Table(
    "token",
    metadata,
    Column("hash", String, primary_key=True),
    Column("name", String, nullable=False, unique=True),
    Column("role", String, nullable=False),
    Column("created", Float, nullable=False),
    Column("expires", Float),
    Column("revoked", Float),
)

audit = Table(
    "audit",
    metadata,
    Column("seq", Sequence, primary_key=True, autoincrement=False),
    Column("at", Float, nullable=False),
    Column("token", String, nullable=False),
    Column("what", String, nullable=False),
    Column("before", Text),
    Column("after", Text),
)

# Advisory locks of PostgreSQL: of the server that learns, and of who numbers decisions.
LEARNER_LOCK, NUMBER_LOCK = 7067, 7068

# Tables whose rows have numbers of the one sequence.
NUMBERED = (model, decision, event, row, audit)


def connect(url: str) -> sql.Engine:
    """Open a database and make its tables; commits reach the disk before they return.

    Raises
    ------
    ValueError
        The database was made by a newer version of the service, or another server has it while
        its tables must change.
    """
    if url.startswith("postgresql://"):
        url = url.replace("postgresql://", "postgresql+psycopg://", 1)
    # A connection that was idle may have ended with its server: it is tried before it is used.
    engine = sql.create_engine(url, pool_pre_ping=not url.startswith("sqlite"))
    if engine.dialect.name == "sqlite":
        sql.event.listen(engine, "connect", _set_pragmas)
    with engine.begin() as connection:
        metadata.create_all(connection)
        found = connection.scalar(sql.select(meta.c.value).where(meta.c.name == "version"))
        if found is None:
            connection.execute(meta.insert(), {"name": "version", "value": str(VERSION)})
        elif int(found) > VERSION:
            raise ValueError(
                f"the database has schema version {found}, and this posterity has version "
                f"{VERSION}: use the version of posterity that created it"
            )
        elif int(found) < VERSION:
            _migrate(connection)
    return engine


def _migrate(connection: sql.Connection) -> None:
    """Bring the tables of version 1 to version 2: decisions and rows may expire in part."""
    if connection.dialect.name == "postgresql" and not connection.scalar(
        sql.text("SELECT pg_try_advisory_xact_lock(:key)"), {"key": LEARNER_LOCK}
    ):
        raise ClaimedError(
            "another server uses this database, whose tables must change: stop it first"
        )
    for table in (decision, row):
        connection.exec_driver_sql(f'ALTER TABLE "{table.name}" ADD COLUMN forget FLOAT')
    connection.exec_driver_sql("DROP INDEX decision_expires")
    for index in DUE:
        index.create(connection)
    version = meta.update().where(meta.c.name == "version")
    connection.execute(version.values(value=str(VERSION)))


def _set_pragmas(connection: Any, _: Any) -> None:
    cursor = connection.cursor()
    for setting in (
        "journal_mode=WAL",
        "synchronous=FULL",
        "busy_timeout=5000",
        "secure_delete=ON",
    ):
        cursor.execute(f"PRAGMA {setting}")
    cursor.close()
