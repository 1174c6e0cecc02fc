"""Opening stores of other versions, and files of something else."""

from __future__ import annotations

import sqlite3

import psycopg
import pytest

from tests.journal.build import rows, turn
from tropa.errors import StoreError, StoreTooNew
from tropa.journal import PostgresJournal, SqliteJournal, schema
from tropa.journal.postgres import database as postgres_database
from tropa.journal.sqlite import database as sqlite_database

pytestmark = pytest.mark.anyio
STEP = ["ALTER TABLE tropa_threads ADD COLUMN colour TEXT"]


@pytest.fixture
def a_newer_schema(monkeypatch):
    def scripts(store):
        return [*schema.scripts(store), STEP]

    for module in (sqlite_database, postgres_database):
        monkeypatch.setattr(module, "scripts", scripts)
    return monkeypatch


async def test_an_older_store_is_brought_forward_with_what_it_holds(store, monkeypatch):
    if store.kind == "memory":
        pytest.skip("nothing older is in memory")
    old = store()
    await turn(old, "t")
    newer = lambda name: [*schema.scripts(name), STEP]
    for module in (sqlite_database, postgres_database):
        monkeypatch.setattr(module, "scripts", newer)
    new = store()
    assert rows(new, "SELECT colour FROM tropa_threads") == [(None,)]
    assert await new.verify("t") == 5
    await turn(new, "t", 1)
    store()  # once is enough


async def test_a_newer_sqlite_store_is_refused_in_one_sentence(a_newer_schema, tmp_path):
    await SqliteJournal(tmp_path / "new.db").close()
    a_newer_schema.undo()
    before = (tmp_path / "new.db").read_bytes()
    with pytest.raises(StoreTooNew, match=r"schema 2, this Tropa knows up to 1; upgrade Tropa"):
        SqliteJournal(tmp_path / "new.db")
    assert (tmp_path / "new.db").read_bytes() == before


async def test_a_newer_postgres_store_is_refused_in_one_sentence(a_newer_schema, postgres_url):
    await PostgresJournal(postgres_url).close()
    a_newer_schema.undo()
    with pytest.raises(StoreTooNew, match=r"schema 2, this Tropa knows up to 1; upgrade Tropa"):
        PostgresJournal(postgres_url)
    with psycopg.connect(postgres_url) as db:
        assert db.execute("SELECT max(version) FROM tropa_schema").fetchone() == (2,)


def test_a_file_of_something_else_is_refused_unchanged(tmp_path):
    db = sqlite3.connect(tmp_path / "recipes.db")
    db.execute("CREATE TABLE recipes (name TEXT)")
    db.commit()
    db.close()
    before = (tmp_path / "recipes.db").read_bytes()
    with pytest.raises(StoreError, match="something else"):
        SqliteJournal(tmp_path / "recipes.db")
    assert (tmp_path / "recipes.db").read_bytes() == before


@pytest.mark.parametrize(
    "content", [b"not a database, but long enough to look like one " * 100, b"SQLite format 3\0" + b"\xff" * 5000]
)
def test_a_file_that_is_no_database_is_refused(tmp_path, content):
    (tmp_path / "notes.txt").write_bytes(content)
    with pytest.raises(StoreError, match="cannot open the journal"):
        SqliteJournal(tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_bytes() == content


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(StoreError, match="cannot open"):
        SqliteJournal(tmp_path)
