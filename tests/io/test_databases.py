"""Tables in databases, with the real engines."""

from __future__ import annotations

import os
import shutil
import socket
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow", reason="needs PyArrow (posterity[cli])")

from posterity import BayesianLinearRegression  # noqa: E402
from posterity.io import TableError, learn_stream, open_table, predict_stream  # noqa: E402

N = 20_000
RNG = np.random.default_rng(1)
KM = RNG.gamma(2.0, 2.0, size=N).round(3)
ZONE = np.array(["a", "b", "c"])[RNG.integers(0, 3, size=N)]
STOPS = RNG.integers(0, 5, size=N)
FARE = (3.0 + 1.5 * KM + 2.0 * (ZONE == "b") + 0.5 * STOPS + RNG.normal(size=N)).round(3)
ROWS = list(zip(KM.tolist(), ZONE.tolist(), STOPS.tolist(), FARE.tolist(), strict=True))
QUERY = "SELECT km, zone, stops, fare FROM rides"
CREATE = "CREATE TABLE rides (km DOUBLE PRECISION, zone TEXT, stops INTEGER, fare DOUBLE PRECISION)"
EXPECTED = BayesianLinearRegression().fit(
    np.column_stack([KM, ZONE == "b", ZONE == "c", STOPS]).astype(float), FARE
)


def check(table: Any) -> None:
    model = learn_stream(BayesianLinearRegression(), table, "fare", batch_rows=3000)
    assert model.feature_names_in_.tolist() == ["km", "zone=b", "zone=c", "stops"]
    assert model.n_observations_ == N
    np.testing.assert_allclose(model.coef_, EXPECTED.coef_, rtol=1e-9)


@pytest.fixture
def sqlite(tmp_path: Path) -> Path:
    path = tmp_path / "rides.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute(CREATE)
        connection.executemany("INSERT INTO rides VALUES (?, ?, ?, ?)", ROWS)
    connection.close()
    return path


def test_sqlite_by_its_cursor(sqlite: Path) -> None:
    connection = sqlite3.connect(sqlite)
    check(connection.execute(QUERY))
    connection.close()


def test_sqlite_by_adbc(sqlite: Path) -> None:
    dbapi = pytest.importorskip("adbc_driver_sqlite.dbapi", reason="needs adbc-driver-sqlite")
    with dbapi.connect(str(sqlite)) as connection, connection.cursor() as cursor:
        cursor.execute(QUERY)
        check(cursor)


def test_a_cursor_that_has_not_run(sqlite: Path) -> None:
    connection = sqlite3.connect(sqlite)
    with pytest.raises(TableError, match="the cursor has no rows: execute a query that selects"):
        open_table(connection.cursor(), "fare")
    connection.close()


def test_a_column_of_sqlite_whose_type_changes() -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (x, y)")
    rows = [(float(i), 1.0) for i in range(9000)] + [("late", 1.0)]
    connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
    message = "column 'x' of the query holds double at first, and something else after row 8192"
    with pytest.raises(TableError, match=message):
        learn_stream(BayesianLinearRegression(), connection.execute("SELECT * FROM t"), "y")
    connection.close()


def test_duckdb() -> None:
    duckdb = pytest.importorskip("duckdb", reason="needs duckdb")
    connection = duckdb.connect()
    rides = pa.table({"km": KM, "zone": ZONE, "stops": STOPS, "fare": FARE})  # noqa: F841
    relation = connection.sql("SELECT * FROM rides")
    check(relation)
    check(relation)  # a relation is a query, which can be run again
    model = learn_stream(BayesianLinearRegression(), relation, "fare")
    batches = list(predict_stream(model, connection.sql("SELECT zone, km, stops FROM rides")))
    assert sum(batch.num_rows for batch in batches) == N
    assert isinstance(batches[0], pa.RecordBatch)


# ---- PostgreSQL ----------------------------------------------------------------------------------


def _program(name: str) -> str:
    found = shutil.which(name)
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    candidates = ([found] if found else []) + [str(folder / name) for folder in folders]
    for candidate in candidates:
        if os.access(candidate, os.X_OK):
            return candidate
    pytest.skip(f"PostgreSQL's server is not installed: no {name} on this machine")


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of its own on a free port of the loopback interface; yields its address."""
    pytest.importorskip("adbc_driver_postgresql", reason="needs adbc-driver-postgresql")
    initdb, control = _program("initdb"), _program("pg_ctl")
    folder = tmp_path_factory.mktemp("postgres")
    copy_from: dict[str, Any] = {}
    if os.geteuid() == 0:  # the server refuses to run as root
        import pwd

        try:
            statistics = pwd.getpwnam("postgres")
        except KeyError:
            pytest.skip("PostgreSQL does not run as root, and there is no account postgres")
        copy_from = {"user": statistics.pw_uid, "group": statistics.pw_gid, "extra_groups": []}
        os.chown(folder, statistics.pw_uid, statistics.pw_gid)
        for parent in folder.parents:
            if parent.owner() == "root" and not parent.stat().st_mode & 0o001:
                parent.chmod(parent.stat().st_mode | 0o001)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data = folder / "data"

    def run(*command: str) -> None:
        done = subprocess.run(
            command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            check=False, **copy_from,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    run(initdb, "-D", str(data), "-A", "trust", "-U", "tester", "--no-sync")
    options = f"-p {port} -c listen_addresses=127.0.0.1 -k {folder} -F"
    run(control, "-D", str(data), "-o", options, "-l", str(folder / "log"), "-w", "start")
    try:
        yield f"postgresql://tester@127.0.0.1:{port}/postgres"
    finally:
        run(control, "-D", str(data), "-m", "immediate", "-w", "stop")


def test_postgresql_by_adbc(postgres: str) -> None:
    import adbc_driver_postgresql.dbapi as dbapi

    rides = pa.table({"km": KM, "zone": ZONE, "stops": STOPS, "fare": FARE})
    with dbapi.connect(postgres) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("rides", rides)
        cursor.execute(QUERY)
        check(cursor)
        cursor.execute("SELECT km, zone, stops, NULL::float8 AS fare FROM rides LIMIT 3")
        with pytest.raises(TableError, match="the query: row 0, column 'fare' is missing"):
            learn_stream(BayesianLinearRegression(), cursor, "fare")
