"""The database's URL, and the messages where it can't be opened or read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

DATABASE_HELP = "give --database postgresql://USER@HOST/NAME, or leave it out for a file in FOLDER"


def read_url(folder: str, database: str | None) -> URL:
    """The address of the database that is named, or of the file in a folder.

    Raises
    ------
    ValueError
        It is no address, or one of a database that the service has no tables for.
    """
    if database is None:
        return URL.create("sqlite", database=str((Path(folder) / "posterity.db").resolve()))
    try:
        url = make_url(re.sub(r"^postgres://", "postgresql://", database))
    except (ArgumentError, ValueError) as error:
        shown = re.sub(r"://[^/]*@", "://***@", database)
        raise ValueError(
            f"--database {shown!r} is not the address of a database: {DATABASE_HELP}"
        ) from error
    kind = url.get_backend_name()
    if kind not in ("postgresql", "sqlite"):
        raise ValueError(
            f"--database {kind}://...: there are PostgreSQL and SQLite only; {DATABASE_HELP}"
        )
    return url


@contextmanager
def explain_failures(url: URL) -> Iterator[None]:
    """Have errors of a database say what is wrong, where, and what to do.

    Raises
    ------
    ValueError
        In place of any error of SQLAlchemy.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if url.get_backend_name() != "postgresql":
            raise
        message = f"PostgreSQL needs {error.name}: pip install 'psycopg[binary]'"
        raise ValueError(message) from error
    except SQLAlchemyError as error:
        reason = " ".join(str(getattr(error, "orig", None) or error).splitlines()[:1])
        told = _explain_file if url.get_backend_name() == "sqlite" else _explain_server
        raise ValueError(told(url, reason)) from error


def _explain_file(url: URL, reason: str) -> str:
    if re.search("disk is full|disk I/O error", reason):
        return (
            f"{url.database} can't be read or written ({reason}): make room on its disk; if there "
            "is room, restore a backup"
        )
    if re.search("not a database|malformed", reason):
        return (
            f"{url.database} is damaged, or is no database ({reason}): restore a backup in its "
            "place, or give another folder"
        )
    if "locked" in reason:
        return f"{url.database} is in use by another process ({reason}): stop it first"
    return (
        f"the database {url.database} can't be used ({reason}): make a folder that you may write "
        "to, or give another one"
    )


def _explain_server(url: URL, reason: str) -> str:
    shown = url.render_as_string()  # without the password
    if re.search(r'database ".*" does not exist', reason):
        return (
            f"PostgreSQL has no database {url.database!r} ({shown}): create it "
            f"(createdb {url.database}), or correct --database"
        )
    return (
        f"the database {shown} can't be used ({reason}): start PostgreSQL, or correct the host, "
        "port, user and password in --database"
    )
