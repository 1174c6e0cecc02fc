"""Ending a run from outside: one that is worked on, one that is parked, one whose process is gone."""

from __future__ import annotations

import asyncio
import time

import pytest

from tests.session.history import results, well_formed
from tropa import Agent, Conflict, ThreadNotFound, tool
from tropa import open as open_store
from tropa.gate import RUN
from tropa.model.scripted import Scripted, calls

pytestmark = pytest.mark.anyio


async def test_a_run_that_is_worked_on_stops_within_seconds_and_the_next_message_is_taken(tmp_path):
    """F-06."""
    inside, ended = asyncio.Event(), []

    @tool
    async def build() -> str:
        inside.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(1)
        return "built"

    one = Agent("x", model=Scripted([calls(("build", {}), ("build", {})), "new"]), tools=[build], policy=lambda _: RUN)
    async with open_store(tmp_path / "c.db") as store, open_store(tmp_path / "c.db") as other:
        task = asyncio.create_task(one.run("go", store=store, thread="t"))
        await inside.wait()
        with pytest.raises(Conflict):
            await one.run("me too", store=other, thread="t")
        began = time.monotonic()
        run = await other.cancel("t", by="boss")
        assert time.monotonic() - began < 5
        assert (run.status, run.stop) == ("cancelled", "cancelled")
        assert ended == [1]
        assert (await task).status == "cancelled"
        assert (await other.cancel("t", by="boss")).status == "cancelled"  # harmless
        messages = (await store.thread("t")).state.messages
        assert [item.status for item in results(messages)] == ["unknown", "cancelled"]
        assert (await one.run("something new", store=other, thread="t")).answer == "new"
        assert well_formed((await store.thread("t")).state.messages)


async def test_a_parked_run_ends_here_and_now_and_its_proposals_are_gone():
    ran = []

    @tool
    def pay() -> str:
        ran.append(1)
        return "paid"

    one = Agent("x", model=Scripted([calls(("pay", {}), ("pay", {})), "next"]), tools=[pay])
    async with open_store(":memory:") as store:
        run = await one.run("go", store=store, thread="t")
        await store.approve(run.pending[0].id, by="me")
        assert (await store.cancel("t", by="boss")).status == "cancelled"
        assert await store.pending() == []
        messages = (await store.thread("t")).state.messages
        assert [item.status for item in results(messages)] == ["cancelled", "cancelled"]
        assert all("boss" in str(item.value) for item in results(messages))
        assert (await one.run("again", store=store, thread="t")).ok
    assert ran == []


async def test_cancelling_a_run_whose_process_died_in_a_read_leaves_no_doubt_and_in_a_write_does():
    class Dead(BaseException):
        pass

    @tool(read_only=True)
    def look() -> str:
        return "seen"

    @tool
    def act() -> str:
        return "done"

    for name, status in (("look", "cancelled"), ("act", "unknown")):
        one = Agent("x", model=Scripted([calls((name, {}))]), tools=[look, act], policy=lambda _: RUN)
        async with open_store(":memory:") as store:
            kept = store.journal.append

            async def dies(thread, expect, events, **more):
                if events[0].kind == "call.finished":
                    raise Dead
                return await kept(thread, expect, events, **more)

            store.journal.append = dies
            with pytest.raises(Dead):
                await one.run("go", store=store, thread="t")
            del store.journal.append
            await store.journal.append("t", (await store.thread("t")).seq, [], release=True)
            await store.cancel("t", by="boss")
            assert [item.status for item in results((await store.thread("t")).state.messages)] == [status]
            assert len(await store.pending()) == (status == "unknown")


async def test_a_thread_that_is_not_there_cannot_be_cancelled():
    async with open_store(":memory:") as store:
        with pytest.raises(ThreadNotFound, match="nobody"):
            await store.cancel("nobody", by="me")
