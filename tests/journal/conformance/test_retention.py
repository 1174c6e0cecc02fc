"""Deleting, pruning, vacuuming: what is gone is gone, and what somebody needs is not."""

from __future__ import annotations

import pytest

from tests.journal.build import AGENT, add, collect, decided, field, finished, observed, parked, rows, turn
from tropa.errors import Conflict, CorruptStore, StoreError, ThreadNotFound, UsageError
from tropa.events import NewEvent
from tropa.journal import new_owner

pytestmark = pytest.mark.anyio
LARGE = "static " * 30_000


def traces(journal, name):
    """Every cell of every table that holds the name."""
    found = []
    for table in ("threads", "events", "blobs", "runs", "pending", "fields"):
        for row in rows(journal, f"SELECT * FROM tropa_{table}"):
            found += [(table, cell) for cell in row if name in (cell if isinstance(cell, str) else "")
                      or name.encode() in (bytes(cell) if isinstance(cell, (bytes, memoryview)) else b"")]  # fmt: skip
    return found


async def cut_window(journal, thread, start):
    head = await journal.head(thread)
    await journal.append(thread, head.seq, [NewEvent("window.cut", {"start": start, "tokens": 1})])


async def test_nothing_of_a_deleted_thread_is_left(journal):
    """C-04."""
    await turn(journal, "needle-thread", text=LARGE, fields=[field("needle-field", 1)])
    await parked(journal, "needle-thread")
    await turn(journal, "other")
    await journal.delete("needle-thread")
    assert traces(journal, "needle") == []
    assert traces(journal, "static static") == []
    assert await journal.text(AGENT)  # the other thread's runs name it too
    assert await journal.verify("other") == 5
    with pytest.raises(ThreadNotFound):
        await journal.delete("needle-thread")
    await turn(journal, "needle-thread")
    assert await journal.verify("needle-thread") == 5


async def test_the_last_thread_takes_the_last_text_with_it(journal):
    await turn(journal, "t")
    await journal.delete("t")
    for table in ("threads", "events", "blobs", "runs", "pending", "fields"):
        assert rows(journal, f"SELECT count(*) FROM tropa_{table}") == [(0,)]


async def test_forks_outlive_their_origin(journal):
    for number in range(3):
        await turn(journal, "a", number, text=LARGE, fields=[field("n", number)])
    await journal.fork("a", 12, "b")
    await journal.fork("a", 6, "c")
    await journal.fork("b", 12, "d")
    await journal.fork("c", 3, "e")
    await turn(journal, "b", 7)
    await turn(journal, "d", 8)
    states = {name: await journal.state(name) for name in "bcde"}
    before = {name: await collect(journal.events(name)) for name in "bcde"}
    await journal.delete("a")
    for name in "bcde":
        assert await journal.state(name) == states[name]
        assert await collect(journal.events(name)) == before[name]
        assert await journal.verify(name) == len(before[name])
    assert traces(journal, "thread a") == []
    await journal.delete("b")
    await journal.delete("c")
    await turn(journal, "e", 9)
    assert (await journal.verify("d"), await journal.verify("e")) == (16, 7)
    assert (await journal.state("d")).fields == {"n": 1}
    assert [row.thread for row in await journal.runs()] == ["e", "d"]


async def test_a_thread_that_is_worked_on_is_neither_deleted_nor_pruned(journal):
    await turn(journal, "t")
    await journal.append("t", 5, [NewEvent("x.y", {})], owner=new_owner())
    for work in (journal.delete("t"), journal.prune("t")):
        with pytest.raises(Conflict, match="worked on"):
            await work
    assert await journal.verify("t") == 6


async def test_a_pruned_thread_goes_on_and_says_what_is_gone(journal):
    """C-04: the last five runs are kept, with fields that were set long before."""
    await turn(journal, "t", 0, fields=[field("static", LARGE), field("notes", ["first"], "append")])
    for number in range(1, 30):
        await turn(journal, "t", number, text=f"question {number} " * 100)
    await turn(journal, "t", 30, fields=[field("notes", ["last"], "append")])
    head = await journal.head("t")
    starts = [event.seq for event in await collect(journal.events("t", kinds=("run.started",)))]
    await cut_window(journal, "t", starts[-3])
    states = {at: await journal.state("t", at) for at in (starts[-5] + 1, head.seq)}
    size = rows(journal, "SELECT sum(length(body)) FROM tropa_events")[0][0]

    assert await journal.prune("t", keep=5) == starts[-5] - 1
    assert await journal.prune("t", keep=5) == 0
    assert rows(journal, "SELECT sum(length(body)) FROM tropa_events")[0][0] < size / 3
    assert rows(journal, f"SELECT count(*) FROM tropa_blobs WHERE length(text) > {len(LARGE)}") == [(1,)]
    assert await journal.fields("t") == {"static": LARGE, "notes": ["first", "last"]}
    for at, state in states.items():
        assert (await journal.state("t", at)).fields == state.fields
        kept = (await journal.state("t", at)).messages
        assert kept == state.messages[-len(kept) :]
    with pytest.raises(StoreError, match="pruned"):
        await journal.state("t", starts[-5] - 2)
    with pytest.raises(StoreError, match="cannot be forked"):
        await journal.fork("t", starts[-5] - 1, "early")
    assert await journal.verify("t") == head.seq + 1 - (starts[-5] - 1)
    assert len(await journal.runs("t")) == 5

    await turn(journal, "t", 31, fields=[field("notes", ["more"], "append"), field("static", "small")])
    assert await journal.fields("t") == {"static": "small", "notes": ["first", "last", "more"]}
    await turn(journal, "t", 32)
    await cut_window(journal, "t", (await journal.head("t")).seq)
    assert await journal.prune("t", keep=1) > 0
    assert traces(journal, "static static") == []
    assert await journal.fields("t") == {"static": "small", "notes": ["first", "last", "more"]}
    await journal.verify("t")


async def test_what_the_window_and_the_waiting_need_is_never_pruned(journal):
    for number in range(6):
        await turn(journal, "t", number)
    assert await journal.prune("t", keep=1) == 0  # nothing was cut from the window: all of it is still sent
    await cut_window(journal, "t", 16)
    assert await journal.prune("t", keep=1) == 13  # the run that holds event 16 began at 14
    await parked(journal, "t")
    await cut_window(journal, "t", (await journal.head("t")).seq)
    await journal.prune("t", keep=1)
    row = (await journal.pending("t"))[0]
    assert (await collect(journal.events("t", after=row.seq - 1, until=row.seq)))[0].kind == "call.proposed"
    assert await journal.verify("t")
    await journal.append("t", (await journal.head("t")).seq, [decided(), observed(), finished()])
    assert await journal.pending() == []
    with pytest.raises(UsageError, match="at least one"):
        await journal.prune("t", keep=0)


async def test_pruning_leaves_forks_whole_and_forks_can_be_pruned(journal):
    for number in range(4):
        await turn(journal, "t", number, fields=[field("n", number)])
    await journal.fork("t", 18, "late")
    await journal.fork("t", 6, "early")
    await turn(journal, "late", 5)
    before = {name: await collect(journal.events(name)) for name in ("late", "early")}
    await cut_window(journal, "t", 24)
    assert await journal.prune("t", keep=1) == 16
    for name, events in before.items():
        assert await collect(journal.events(name)) == events
        assert await journal.verify(name) == len(events)
    assert await journal.verify("t") == 6
    await cut_window(journal, "late", 23)
    assert await journal.prune("late", keep=2) == 16  # the cut lies in what it shares: that part becomes its own
    assert await journal.verify("late") == 7
    assert await journal.verify("early") == 6
    assert await journal.fields("late") == {"n": 3}
    await turn(journal, "early", 6)
    await journal.delete("early")
    await journal.delete("t")
    assert await journal.verify("late") == 7
    assert rows(journal, "SELECT count(*) FROM tropa_events") == [(7,)]


async def test_vacuum_removes_only_what_nothing_names(journal):
    inner, outer = "inner " * 9, "outer"
    import hashlib

    digest = hashlib.sha256(inner.encode()).hexdigest()
    outer = f"outer names {digest}"
    top = hashlib.sha256(outer.encode()).hexdigest()
    lone = hashlib.sha256(b"lone").hexdigest()
    await turn(journal, "t", text=LARGE)
    texts = {digest: inner, top: outer, lone: "lone"}
    await journal.append("t", 5, [NewEvent("x.y", {"text": top})], texts=texts)
    assert await journal.vacuum() == 1
    assert await journal.text(digest) == inner
    with pytest.raises(CorruptStore):
        await journal.text(lone)
    assert await journal.vacuum() == 0
    assert await journal.verify("t") == 6
    await turn(journal, "t", 1)
    await journal.append("t", 10, [NewEvent("x.y", {"text": lone})], texts={lone: "lone"})
    assert await journal.text(lone) == "lone"


async def test_reading_goes_on_while_its_thread_is_pruned(journal):
    for number in range(300):
        await turn(journal, "t", number)
    await journal.fork("t", 900, "f")
    await cut_window(journal, "t", 1100)
    seen = []
    async for event in journal.events("f"):
        seen.append(event.seq)
        if event.seq == 500:
            await journal.delete("t")
    assert seen == list(range(1, 901))
