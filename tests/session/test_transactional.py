"""A transactional tool's effect and the record of its call are stored together, or not at all."""

import os
import sqlite3

import pytest

from tropa import Agent, Budget, ToolContext, ToolFailed, open, tool
from tropa.model.scripted import Scripted

pytestmark = pytest.mark.anyio

PAY = [[("pay", {"amount": 5})], "Paid."]


@tool(transactional=True)
def pay(amount: int, ctx: ToolContext) -> str:
    """Pay an amount."""
    ctx.connection.execute("CREATE TABLE IF NOT EXISTS paid (amount INTEGER, key TEXT)")
    ctx.connection.execute("INSERT INTO paid VALUES (?, ?)", (amount, ctx.key))
    if amount < 0:
        raise ToolFailed("only what is owed can be paid")
    return "paid"


def paid(path):
    with sqlite3.connect(path) as db:
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name='paid'").fetchone():
            return []
        return [amount for (amount,) in db.execute("SELECT amount FROM paid")]


async def approve_all(agent, store, thread):
    run = await agent.resume(thread, store=store)
    while run.status == "waiting":
        for proposal in run.pending:
            await store.approve(proposal.id, by="tester")
        run = await agent.resume(thread, store=store)
    return run


@pytest.mark.parametrize("where", ["file", "memory"])
async def test_the_effect_is_in_the_journals_own_database(tmp_path, where):
    path = str(tmp_path / "trail.db") if where == "file" else ":memory:"
    async with open(path) as store:
        agent = Agent("till", model=Scripted(PAY), tools=[pay])
        await agent.run("Pay 5", store=store, thread="t")
        run = await approve_all(agent, store, "t")
        assert run.answer == "Paid."
        assert await store.journal.verify("t")
    if where == "file":
        assert paid(path) == [5]


async def test_what_a_failing_tool_wrote_is_rolled_back_and_the_model_is_told(tmp_path):
    path = str(tmp_path / "trail.db")
    async with open(path) as store:
        agent = Agent("till", model=Scripted([[("pay", {"amount": -1})], "Could not."]), tools=[pay])
        await agent.run("Pay -1", store=store, thread="t")
        run = await approve_all(agent, store, "t")
        assert run.ok
        call = (await store.trail("t")).runs[0].steps[0].calls[0]
        assert (call.observation.status, call.observation.value) == ("error", "only what is owed can be paid")
    assert paid(path) == []


@pytest.mark.parametrize("where", ["inside", "before the end", "after"])
async def test_a_crash_leaves_all_or_nothing_and_the_resumed_run_pays_once(tmp_path, where, monkeypatch):
    path = str(tmp_path / "trail.db")
    child = os.fork()
    if child == 0:
        import asyncio

        from tropa.session.held import Held

        async def die():
            @tool(name="pay", transactional=True)
            def dying(amount: int, ctx: ToolContext) -> str:
                """Pay an amount."""
                pay(amount, ctx)
                if where == "inside":
                    os._exit(9)
                return "paid"

            if where == "after":
                take = Held._take

                def last(self, events):
                    if any(one.kind == "call.finished" for one in events):
                        os._exit(9)
                    take(self, events)

                Held._take = last
            if where == "before the end":
                from tropa.journal.journal import _Transaction

                async def never(self, *given, **more):
                    os._exit(9)

                _Transaction.append = never
            async with open(path) as store:
                agent = Agent("till", model=Scripted(PAY), tools=[dying])
                await agent.run("Pay 5", store=store, thread="t")
                await approve_all(agent, store, "t")

        asyncio.run(die())
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert paid(path) == ([5] if where == "after" else [])
    async with open(path) as store:
        agent = Agent("till", model=Scripted(["Paid."]), tools=[pay])
        run = await approve_all(agent, store, "t")
        assert run.answer == "Paid."
        assert not await store.pending()
    assert paid(path) == [5]


async def test_a_cancelled_request_in_the_middle_leaves_nothing_behind(tmp_path):
    path = str(tmp_path / "trail.db")

    @tool(name="pay", transactional=True)
    async def slow(amount: int, ctx: ToolContext) -> str:
        """Pay an amount."""
        import asyncio

        pay(amount, ctx)
        await asyncio.sleep(30)
        return "paid"

    async with open(path) as store:
        agent = Agent("till", model=Scripted([*PAY]), tools=[slow], budget=Budget(seconds=0.5))
        await agent.run("Pay 5", store=store, thread="t")
        run = await approve_all(agent, store, "t")
        assert run.stop == "max_seconds"
        call = (await store.trail("t")).runs[0].steps[0].calls[0]
        assert call.observation.status == "error"
        assert call.doubt is None
    assert paid(path) == []
