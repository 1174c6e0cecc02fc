"""Forks share history, copy nothing, and carry no approval over."""

from __future__ import annotations

import pytest

from tests.journal.build import add, collect, decided, field, observed, parked, rows, said, turn, user
from tropa.errors import Conflict, StoreError
from tropa.events import NewEvent

pytestmark = pytest.mark.anyio


async def test_a_fork_shares_history_and_copies_nothing(journal):
    for number in range(4):
        await turn(journal, "t", number, fields=[field("n", number)])
    before = rows(journal, "SELECT count(*) FROM tropa_events")
    await journal.fork("t", 12, "f")
    assert rows(journal, "SELECT count(*) FROM tropa_events") == before
    assert [event.body for event in await collect(journal.events("f"))] == [
        event.body for event in await collect(journal.events("t", until=12))
    ]
    await turn(journal, "f", 9, fields=[field("n", "nine")])
    await turn(journal, "t", 4, fields=[field("n", 4)])
    assert (await journal.fields("f"))["n"] == "nine"
    assert (await journal.fields("t"))["n"] == 4
    assert (await journal.state("f", at=11)).fields == {"n": 1}
    assert [event.thread for event in await collect(journal.events("f"))] == ["f"] * 17
    assert (await journal.verify("t"), await journal.verify("f")) == (26, 17)


async def test_every_point_of_a_thread_can_be_forked_and_reads_as_it_was(journal):
    await turn(journal, "t", 0, fields=[field("a", 1), field("b", [1], "append")])
    await parked(journal, "t")
    await add(journal, "t", decided(), observed(), NewEvent("window.cut", {"start": 9, "tokens": 3}))
    end = await turn(journal, "t", 1, fields=[field("a", 2), field("b", [2], "append")])
    for at in range(1, end + 1):
        await journal.fork("t", at, f"f{at}")
        past = await journal.state("t", at)
        assert await journal.fields(f"f{at}") == past.fields
        assert (await journal.state(f"f{at}")).messages == past.messages
        assert await journal.verify(f"f{at}") == at
    assert (await journal.head("f11")).status == "running"
    assert (await journal.head("f12")).status == "waiting"
    assert (await journal.head("f15")).window == 9


async def test_a_fork_of_a_fork_reads_through_both(journal):
    await turn(journal, "a", 0)
    await journal.fork("a", 4, "b")
    await turn(journal, "b", 1)
    await journal.fork("b", 6, "c")
    await journal.fork("b", 3, "d")  # before b's own events
    await turn(journal, "c", 2)
    assert [event.kind for event in await collect(journal.events("c", newest_first=True, limit=5))] == [
        *("run.finished", "model.replied", "message.added", "run.started", "message.added")
    ]
    assert [len(await collect(journal.events(name))) for name in "abcd"] == [5, 8, 10, 3]
    for name in "abcd":
        await journal.verify(name)


async def test_what_waits_in_a_thread_does_not_wait_in_its_fork(journal):
    await parked(journal, "t")
    await journal.fork("t", 5, "f")
    assert [row.thread for row in await journal.pending()] == ["t"]
    await journal.append("f", 5, [decided()])  # even said outright, it decides nothing of the origin
    assert [row.id for row in await journal.pending("t")] == ["p1"]
    assert await journal.runs("f") == []
    assert await journal.verify("f") == 6


async def test_a_fork_that_cannot_be_made_leaves_nothing(journal):
    await turn(journal, "t")
    await turn(journal, "u")
    for at in (0, 6, -1):
        with pytest.raises(StoreError, match="events 1 to 5"):
            await journal.fork("t", at, "f")
    with pytest.raises(Conflict, match="exists"):
        await journal.fork("t", 2, "u")
    with pytest.raises(Conflict):
        await journal.fork("t", 2, "t")
    assert {head.thread for head in await journal.threads()} == {"t", "u"}


async def test_writers_of_a_thread_and_its_fork_do_not_meet(journal):
    await turn(journal, "t")
    await journal.fork("t", 5, "f")
    await journal.append("t", 5, [user("only here")], owner="a")
    await journal.append("f", 5, [said("only there")], owner="b")
    assert (await collect(journal.events("t")))[-1].kind == "message.added"
    assert (await collect(journal.events("f")))[-1].kind == "model.replied"
