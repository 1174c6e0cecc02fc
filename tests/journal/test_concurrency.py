"""Many writers of one store: threads, event loops, processes."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sqlite3
import threading
import time

import pytest

from tests.journal.build import TEXTS, collect, finished, rows, said, started, turn, user
from tropa.errors import Conflict, StoreError
from tropa.events import NewEvent
from tropa.journal import PostgresJournal, SqliteJournal, new_owner

pytestmark = pytest.mark.anyio
SPAWN = multiprocessing.get_context("spawn")


def opened(place):
    return PostgresJournal(place) if str(place).startswith("postgres") else SqliteJournal(place)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def place(request, tmp_path):
    return request.getfixturevalue("postgres_url") if request.param == "postgres" else str(tmp_path / "trail.db")


async def whole_turn(journal, thread, name):
    """One turn through claim, write, release; tried until it goes through."""
    owner = new_owner()
    while True:
        head = await journal.head(thread)
        if head.owner is not None:
            await asyncio.sleep(0.005)
            continue
        try:
            seq = await journal.append(thread, head.seq, [started(name), user(name)], owner=owner, texts=TEXTS)
        except Conflict:
            continue
        await asyncio.sleep(0)
        await journal.append(thread, seq, [said(name), finished()], owner=owner, release=True)
        return


def write_turns(place, process, tasks, turns):
    async def main():
        journal = opened(place)

        async def one(task):
            for number in range(turns):
                await whole_turn(journal, "shared", f"{process}.{task}.{number}")

        await asyncio.gather(*(one(task) for task in range(tasks)))
        await journal.close()

    asyncio.run(main())


async def test_many_writers_of_one_thread_lose_nothing_and_never_interleave(place):
    """C-01: 2 processes of 8 writers."""
    await opened(place).close()
    workers = [SPAWN.Process(target=write_turns, args=(place, process, 8, 4)) for process in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        await asyncio.to_thread(worker.join, 60)
        assert worker.exitcode == 0
    journal = opened(place)
    events = await collect(journal.events("shared"))
    assert len(events) == 2 * 8 * 4 * 4
    seen = set()
    for at in range(0, len(events), 4):
        run, question, answer, end = events[at : at + 4]
        name = run.body["run"]
        assert question.body["message"]["parts"][0]["text"] == name == answer.body["message"]["parts"][0]["text"]
        assert end.kind == "run.finished"
        seen.add(name)
    assert len(seen) == 64
    assert await journal.verify("shared") == 256
    await journal.close()


def run_threads(path, process, threads, runs):
    """Python threads, each with an event loop of its own, on one journal."""
    journal = SqliteJournal(path)
    failed = []

    def work(thread):
        async def main():
            for run in range(runs):
                name = f"{process}.{thread}.{run}"
                seq = await journal.append(name, 0, [started(), user(name)], durable=True, texts=TEXTS, owner=name)
                for step in range(3):
                    seq = await journal.append(name, seq, [NewEvent("step", {"n": step})], owner=name)
                await journal.append(name, seq, [finished()], owner=name, release=True)

        try:
            asyncio.run(main())
        except BaseException as error:
            failed.append(error)

    workers = [threading.Thread(target=work, args=(thread,)) for thread in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failed == []


def hold(path, seconds, ready):
    db = sqlite3.connect(path, isolation_level=None, timeout=30)
    db.execute("BEGIN IMMEDIATE")
    ready.set()
    time.sleep(seconds)
    db.execute("COMMIT")


async def test_no_locked_database_reaches_anybody(tmp_path):
    """C-10: 2 processes of 8 threads, 200 runs of 5 appends, a reader, and somebody who holds the file for 3 s."""
    path = str(tmp_path / "trail.db")
    await SqliteJournal(path).close()
    ready = SPAWN.Event()
    holder = SPAWN.Process(target=hold, args=(path, 3, ready))
    holder.start()
    assert await asyncio.to_thread(ready.wait, 20)
    workers = [SPAWN.Process(target=run_threads, args=(path, process, 8, 13)) for process in range(2)]
    for worker in workers:
        worker.start()
    journal = SqliteJournal(path)
    while any(worker.is_alive() for worker in workers):
        for head in await journal.threads(limit=1000):
            assert len(await collect(journal.events(head.thread))) >= head.seq
        await journal.pending()
        await asyncio.sleep(0.02)
    assert [worker.exitcode for worker in (holder, *workers)] == [0, 0, 0]
    heads = await journal.threads(limit=1000)
    assert len(heads) == 208
    assert {(head.seq, head.status, head.owner) for head in heads} == {(6, "completed", None)}
    assert await journal.verify(heads[77].thread) == 6
    await journal.close()


async def test_a_wait_that_is_too_long_is_said_and_the_thread_goes_on_later(tmp_path):
    """C-10."""
    journal = SqliteJournal(tmp_path / "trail.db", patience=0.2)
    await turn(journal, "t")
    db = sqlite3.connect(tmp_path / "trail.db", isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="locked by another process for 0.2 s; nothing of this step was written"):
        await journal.append("t", 5, [user()])
    db.execute("ROLLBACK")
    assert await journal.append("t", 5, [user()]) == 6
    db.close()
    await journal.close()


async def test_one_journal_serves_several_event_loops_at_once(store):
    journal = store()
    failed = []

    def work(number):
        try:
            for _ in range(3):
                asyncio.run(turn(journal, f"t{number}"))
        except BaseException as error:
            failed.append(error)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        await asyncio.to_thread(worker.join)
    assert failed == []
    for number in range(6):
        assert await journal.verify(f"t{number}") == 13


def claim_and_wait(place, ready):
    async def main():
        journal = opened(place)
        owner = new_owner()
        await journal.append("t", 0, [user()], owner=owner)
        ready.set()
        await asyncio.sleep(60)

    asyncio.run(main())


def wake_late(place, ready, result):
    async def main():
        journal = opened(place)
        owner = new_owner()
        await journal.append("t", 0, [user()], owner=owner)
        ready.set()
        time.sleep(1.0)  # stopped in here, and woken after others took over
        try:
            await journal.append("t", 1, [said("too late")], owner=owner)
            result.put("written")
        except Conflict:
            result.put("fenced")

    asyncio.run(main())


async def test_the_claim_of_a_killed_process_ends_at_once(place):
    journal, ready = opened(place), SPAWN.Event()
    worker = SPAWN.Process(target=claim_and_wait, args=(place, ready))
    worker.start()
    assert await asyncio.to_thread(ready.wait, 20)
    with pytest.raises(Conflict):
        await journal.append("t", 1, [user()], owner=new_owner())
    worker.kill()
    await asyncio.to_thread(worker.join)
    assert await journal.append("t", 1, [user()], owner=new_owner()) == 2
    await journal.close()


async def test_a_stopped_worker_that_wakes_up_late_writes_nothing(place):
    journal, ready, result = opened(place), SPAWN.Event(), SPAWN.Queue()
    worker = SPAWN.Process(target=wake_late, args=(place, ready, result))
    worker.start()
    assert await asyncio.to_thread(ready.wait, 20)
    os.kill(worker.pid, signal.SIGSTOP)
    with pytest.raises(Conflict):  # it is alive as far as anybody knows
        await journal.append("t", 1, [user()], owner=new_owner())
    rows(journal, "UPDATE tropa_threads SET lease = lease - 16")
    other = new_owner()
    await journal.append("t", 1, [user()], owner=other)
    os.kill(worker.pid, signal.SIGCONT)
    assert await asyncio.to_thread(result.get, True, 20) == "fenced"
    await asyncio.to_thread(worker.join)
    assert await journal.append("t", 2, [said()], owner=other, release=True) == 3
    assert await journal.verify("t") == 3
    await journal.close()
