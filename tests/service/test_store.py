"""What the database is asked: each question reads a few rows, however long the log is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sqlalchemy", reason="the service needs posterity[service]")

import sqlalchemy as sql

from posterity.service.store import Store


def test_no_question_reads_the_whole_log(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path / 'posterity.db'}")
    asked: list[tuple[str, Any]] = []

    @sql.event.listens_for(store.engine, "before_cursor_execute")
    def note(_: Any, __: Any, statement: str, given: Any, *___: Any) -> None:
        asked.append((statement, given))

    ids = [str(n) for n in range(20)]
    store.find([("e", id) for id in ids], [("p", id) for id in ids])
    store.find([("e", "1")], [("p", "1")])
    list(store.read_decisions("e", 5))
    list(store.read_events("e", 5))
    list(store.read_rows("p", 5))
    store.find_expired("e", 2.0, 1.0)
    store.find_erasable("e", 2.0)
    store.find_forgettable("p", 2.0)
    with store.engine.connect() as connection:
        for statement, given in asked.copy():
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", given).all()
            for step in (one[3] for one in plan):
                assert not step.startswith("SCAN"), (statement, step)
                if step.startswith("SEARCH"):  # by more than the name of the model
                    assert " AND " in step, (statement, step)
    store.close()
