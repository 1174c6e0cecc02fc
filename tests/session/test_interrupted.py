"""A run that is cancelled at every point where it waits for its store: each call is answered, truthfully."""

from __future__ import annotations

import asyncio
import shutil

import anyio
import pytest

from tests.session.crash import Fuse, World, by_exception, said
from tests.session.history import results, well_formed
from tropa import Agent, Store, tool
from tropa.gate import RUN
from tropa.journal import SqliteJournal
from tropa.messages import Assistant
from tropa.model.scripted import Scripted, calls

pytestmark = pytest.mark.anyio


class SlowJournal(SqliteJournal):
    """A store over a network: it takes a while before it writes, and another until it says so."""

    def __init__(self, path, cancel_at=0, task=None):
        super().__init__(path)
        self.cancel_at = cancel_at
        self.task = task
        self.passed = 0

    async def _wait(self):
        self.passed += 1
        if self.passed == self.cancel_at:
            self.task.cancel()
        await asyncio.sleep(0)

    async def append(self, *args, **more):
        await self._wait()
        seq = await super().append(*args, **more)
        await self._wait()
        return seq


async def cancelled_at(folder, at):
    """One run, cancelled at point `at`, then resumed. Returns whether the point was reached."""
    world = World(folder, Fuse(0, by_exception))
    journal = SlowJournal(folder / "i.db")
    store = Store(journal)
    agent = Agent("mover", model=Scripted(said), tools=world.tools(), policy=lambda _: RUN)
    task = asyncio.create_task(agent.run("do it all", store=store, thread="t"))
    journal.cancel_at, journal.task = at, task
    reached = False
    try:
        await task
    except asyncio.CancelledError:
        reached = True
    try:
        if not (await journal.head("t")).seq:
            return reached  # cancelled before the message was accepted: nothing was done
        messages = (await store.thread("t")).state.messages
        if reached and any(isinstance(message, Assistant) for message in messages):
            assert (await store.run("t")).status in {"cancelled", "completed"}
        head = await journal.head("t")
        if head.owner is not None:  # cancelled between the claim and the first step
            await journal.append("t", head.seq, [], release=True)
        run = await agent.resume("t", store=store)
        assert (run.status, run.answer) == ("completed", "All done."), (at, run)
        messages = (await store.thread("t")).state.messages
        assert well_formed(messages)
        happened = [what for what, _ in world.happened()]
        assert all(happened.count(what) <= 1 for what in ("move x", "free y", "put k", "move z")), happened
        made = {call.id: call for message in messages if isinstance(message, Assistant) for call in message.calls}
        for result in results(messages):
            call = made[result.call_id]
            what = f"{call.tool} {call.arguments['name']}"
            if result.status == "ok":
                assert what in happened
            elif what in happened and call.tool != "read":
                assert result.status == "unknown", (at, what, result)
        assert await journal.verify("t") > 0
        return reached
    finally:
        await store.close()


async def test_at_every_point_the_history_is_whole_and_says_what_happened(ram):
    at = 0
    while True:
        at += 1
        folder = ram / str(at)
        folder.mkdir()
        reached = await cancelled_at(folder, at)
        shutil.rmtree(folder)
        if not reached:
            break
    assert at > 30


async def test_a_scope_that_cancels_every_wait_still_lets_the_end_be_written(ram):
    store = Store(SlowJournal(ram / "s.db"))

    @tool
    async def read(name: str) -> str:
        await asyncio.sleep(30)
        return name

    agent = Agent("x", model=Scripted([calls(("read", {"name": "x"}))]), tools=[read], policy=lambda _: RUN)
    with anyio.move_on_after(0.3):
        await agent.run("go", store=store, thread="t")
    run = await store.run("t")
    messages = (await store.thread("t")).state.messages
    await store.close()
    assert run.status == "cancelled"
    assert [item.status for item in results(messages)] == ["unknown"]
