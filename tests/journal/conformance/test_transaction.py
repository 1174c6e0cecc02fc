"""A tool that writes through the journal's connection: its effect and its outcome, both or neither."""

from __future__ import annotations

import asyncio

import pytest

from tests.journal.build import observed, rows, turn, user
from tropa.errors import Conflict, NotStorable, StoreError, UsageError
from tropa.events import NewEvent
from tropa.journal import new_owner

pytestmark = pytest.mark.anyio


@pytest.fixture
async def journal(journal):
    await turn(journal, "t")
    rows(journal, "CREATE TABLE stock (sku TEXT PRIMARY KEY, n INTEGER)")
    return journal


def stock(journal):
    return rows(journal, "SELECT sku, n FROM stock")


async def test_effect_and_outcome_are_stored_together(journal):
    owner = new_owner()
    async with journal.transaction("t", 5, owner) as both:
        both.connection.execute("INSERT INTO stock VALUES ('A-113', 40)")
        assert await both.append([NewEvent("call.started", {"call": "c1", "attempt": 1})]) == 6
        assert await both.append([observed()], release=True) == 7
    assert stock(journal) == [("A-113", 40)]
    assert (await journal.head("t")).owner is None
    assert await journal.verify("t") == 7


async def test_an_exception_takes_both_back(journal):
    with pytest.raises(ZeroDivisionError):
        async with journal.transaction("t", 5, "me") as both:
            both.connection.execute("INSERT INTO stock VALUES ('A-113', 40)")
            await both.append([observed()])
            raise ZeroDivisionError
    with pytest.raises(NotStorable):
        async with journal.transaction("t", 5, "me") as both:
            both.connection.execute("INSERT INTO stock VALUES ('A-113', 40)")
            await both.append([NewEvent("x.y", {"x": float("nan")})])
    assert stock(journal) == []
    assert (await journal.head("t")).seq == 5
    assert await journal.append("t", 5, [user()]) == 6


async def test_a_cancelled_tool_takes_both_back(journal):
    began = asyncio.Event()

    async def work():
        async with journal.transaction("t", 5, "me") as both:
            both.connection.execute("INSERT INTO stock VALUES ('A-113', 40)")
            await both.append([observed()])
            began.set()
            await asyncio.sleep(60)

    task = asyncio.create_task(work())
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stock(journal) == []
    assert await journal.append("t", 5, [user()]) == 6


async def test_an_effect_without_an_event_is_taken_back(journal):
    with pytest.raises(UsageError, match="no record"):
        async with journal.transaction("t", 5, "me") as both:
            both.connection.execute("INSERT INTO stock VALUES ('A-113', 40)")
    assert stock(journal) == []


async def test_the_wrong_expectation_or_another_claim_stops_it_before_anything_ran(journal):
    with pytest.raises(Conflict):
        async with journal.transaction("t", 4, "me"):
            pytest.fail("ran")
    await journal.append("t", 5, [user()], owner=new_owner())
    with pytest.raises(Conflict, match="worked on"):
        async with journal.transaction("t", 6, "me"):
            pytest.fail("ran")


async def test_a_tool_cannot_end_the_transaction(journal):
    driver = type((await _raw(journal))).__module__
    with pytest.raises(Exception) as caught:
        async with journal.transaction("t", 5, "me") as both:
            both.connection.execute("INSERT INTO stock VALUES ('A-113', 40)")
            both.connection.execute("COMMIT")
            await both.append([observed()])
    if driver == "sqlite3":
        assert stock(journal) == []
    else:  # Postgres lets it pass; it is found before the event is written
        assert isinstance(caught.value, UsageError)
    assert (await journal.head("t")).seq == 5
    assert await journal.append("t", 5, [user()]) == 6


async def _raw(journal):
    with pytest.raises(UsageError):
        async with journal.transaction("t", 5, "me") as both:
            found = both.connection
    return found


async def test_other_threads_go_on_afterwards_and_readers_meanwhile(store, journal):
    async with journal.transaction("t", 5, "me") as both:
        both.connection.execute("INSERT INTO stock VALUES ('A-113', 40)")
        other = asyncio.create_task(turn(journal, "other"))
        await asyncio.sleep(0.05)
        assert (await journal.head("t")).seq == 5
        await both.append([observed()])
    assert await other == 5
    assert stock(journal) == [("A-113", 40)]
    assert await journal.verify("t") == 6


async def test_two_transactions_follow_one_another(journal):
    await turn(journal, "u")

    async def work(thread, sku):
        async with journal.transaction(thread, 5, thread) as both:
            both.connection.execute(f"INSERT INTO stock VALUES ('{sku}', 1)")
            await asyncio.sleep(0.02)
            await both.append([observed()])

    await asyncio.gather(work("t", "A"), work("u", "B"))
    assert sorted(stock(journal)) == [("A", 1), ("B", 1)]


async def test_an_error_of_the_tools_own_statement_is_the_tools(journal):
    with pytest.raises(Exception) as caught:
        async with journal.transaction("t", 5, "me") as both:
            await both.append([observed()])
            both.connection.execute("INSERT INTO nowhere VALUES (1)")
    assert "nowhere" in str(caught.value)
    assert type(caught.value).__module__.startswith(("sqlite3", "psycopg"))  # not a fault of the store
    assert (await journal.head("t")).seq == 5


async def test_a_tool_cannot_write_the_journals_own_rows_on_sqlite(journal):
    if not hasattr(journal._db, "_raw"):
        pytest.skip("Postgres has roles for that")
    with pytest.raises((StoreError, Exception), match="not authorized|prohibited"):
        async with journal.transaction("t", 5, "me") as both:
            both.connection.execute("DELETE FROM tropa_events")
    assert await journal.verify("t") == 5
