"""Calls of one reply: readers together, the rest in order, results in the order of the calls; cancelled in the middle."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time

import anyio
import pytest

from tests.session.history import results, texts, well_formed
from tropa import Agent, tool
from tropa import open as open_store
from tropa.gate import RUN
from tropa.model.scripted import Scripted, calls

pytestmark = pytest.mark.anyio


def free(proposed):
    return RUN


class Shop:
    """Tools that note when they ran."""

    def __init__(self, seconds=0.05):
        self.spans = []

        async def span(name):
            began = time.monotonic()
            try:
                await asyncio.sleep(seconds / (1 + len(name)))
            finally:
                self.spans.append((name, began, time.monotonic()))
            return name

        @tool(read_only=True)
        async def read(name: str) -> str:
            return await span(name)

        @tool
        async def write(name: str) -> str:
            return await span(name)

        @tool(read_only=True)
        def block(name: str) -> str:
            began = time.monotonic()
            time.sleep(seconds)
            self.spans.append((name, began, time.monotonic()))
            return name

        self.tools = [read, write, block]

    def overlap(self, a, b):
        (first,) = [span for span in self.spans if span[0] == a]
        (second,) = [span for span in self.spans if span[0] == b]
        return min(first[2], second[2]) - max(first[1], second[1])


@pytest.mark.parametrize("kind", ["read", "block"])
async def test_neighbours_that_read_run_at_once(kind):
    shop = Shop(0.2)
    names = ["a", "bb", "ccc"]
    one = Agent("x", model=Scripted([calls(*[(kind, {"name": name}) for name in names]), "ok"]), tools=shop.tools)
    async with open_store(":memory:") as store:
        assert (await one.run("go", store=store, thread="t")).ok
        messages = (await store.thread("t")).state.messages
    assert shop.overlap("a", "bb") > 0
    assert shop.overlap("a", "ccc") > 0
    assert texts(one.setup.model.requests[1].messages) == names  # though the longest name ends first
    assert texts(messages) == names


async def test_a_call_with_side_effects_runs_alone_and_in_its_place():
    shop = Shop(0.1)
    order = [("read", "a"), ("read", "b"), ("write", "c"), ("write", "d"), ("read", "e"), ("read", "f")]
    one = Agent(
        "x",
        model=Scripted([calls(*[(kind, {"name": name}) for kind, name in order]), "ok"]),
        tools=shop.tools,
        policy=free,
    )
    async with open_store(":memory:") as store:
        assert (await one.run("go", store=store, thread="t")).ok
    assert shop.overlap("a", "b") > 0
    assert shop.overlap("e", "f") > 0
    for before, after in [("a", "c"), ("b", "c"), ("c", "d"), ("d", "e"), ("d", "f")]:
        assert shop.overlap(before, after) <= 0


class Slow:
    """One quick reader, then a writer and a reader that hang."""

    def __init__(self):
        self.inside = asyncio.Event()
        self.count = {"quick": 0, "hang": 0, "later": 0}

        @tool(read_only=True)
        def quick() -> str:
            self.count["quick"] += 1
            return "done"

        @tool
        async def hang() -> str:
            self.count["hang"] += 1
            self.inside.set()
            await asyncio.sleep(60)
            return "never"

        @tool(read_only=True)
        async def listen() -> str:
            self.inside.set()
            await asyncio.sleep(60)
            return "never"

        @tool
        def later() -> str:
            self.count["later"] += 1
            return "late"

        self.tools = [quick, hang, listen, later]


async def test_a_cancelled_run_answers_every_call_and_the_thread_goes_on():
    """C-02, second variant: one call done, one inside, one not begun."""
    slow = Slow()
    one = Agent(
        "x",
        model=Scripted([calls(("quick", {}), ("hang", {}), ("later", {})), "went on", "third"]),
        tools=slow.tools,
        policy=free,
    )
    async with open_store(":memory:") as store:
        task = asyncio.create_task(one.run("go", store=store, thread="t"))
        await slow.inside.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await store.run("t")).status == "cancelled"
        run = await one.run("go on", store=store, thread="t")
        assert run.answer == "went on"
        request = one.setup.model.requests[-1].messages
        assert well_formed(request)
        assert [item.status for item in results(request)] == ["ok", "unknown", "cancelled"]
        assert "not known" in texts(request)[1]
        assert "not run" in texts(request)[2]
        length = len((await store.thread("t")).state.messages)
        await one.run("once more", store=store, thread="t")
        assert len((await store.thread("t")).state.messages) == length + 2  # the repair is not made twice
        assert [item.kind for item in await store.pending("t")] == ["unknown"]
    assert slow.count == {"quick": 1, "hang": 1, "later": 0}


async def test_cancelling_readers_in_a_batch_leaves_no_doubt():
    slow = Slow()
    one = Agent("x", model=Scripted([calls(("quick", {}), ("listen", {}), ("listen", {})), "ok"]), tools=slow.tools)
    async with open_store(":memory:") as store:
        task = asyncio.create_task(one.run("go", store=store, thread="t"))
        await slow.inside.wait()
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        messages = (await store.thread("t")).state.messages
        assert [item.status for item in results(messages)] == ["ok", "cancelled", "cancelled"]
        assert await store.pending() == []
        assert (await one.resume("t", store=store)).ok


async def test_a_scope_that_cancels_again_and_again_still_leaves_the_thread_in_order():
    slow = Slow()
    one = Agent("x", model=Scripted([calls(("hang", {})), "ok"]), tools=slow.tools, policy=free)
    async with open_store(":memory:") as store:
        with anyio.move_on_after(0.2) as scope:
            await one.run("go", store=store, thread="t")
        assert scope.cancelled_caught
        assert (await store.run("t")).status == "cancelled"
        assert results((await store.thread("t")).state.messages)[0].status == "unknown"


async def test_a_request_that_was_cancelled_is_kept_as_far_as_it_was_said_and_asked_again_on_resume():
    model = Scripted(["half", "whole"], delay=0.3)
    one = Agent("x", model=model)
    async with open_store(":memory:") as store:
        with anyio.move_on_after(0.1):
            await one.run("go", store=store, thread="t")
        run = await store.run("t")
        assert (run.status, run.usage.estimated) == ("cancelled", True)
        run = await one.resume("t", store=store)
    assert run.answer == "whole"


SCRIPT = """
import asyncio, sys, time
from tropa import Agent, tool
from tropa.gate import RUN
from tropa.model.scripted import Scripted, calls

@tool
def pay(amount: int) -> str:
    print("inside", flush=True)
    time.sleep(30)
    return "paid"

one = Agent("x", model=Scripted([calls(("pay", {"amount": 5}), ("pay", {"amount": 6}))]), tools=[pay], policy=lambda _: RUN)
one.run_sync("go", store=sys.argv[1], thread="t")
"""


async def test_ctrl_c_leaves_a_thread_whose_outcome_is_unknown_and_that_can_go_on(tmp_path):
    import signal

    path = tmp_path / "c.db"
    child = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        assert child.stdout.readline() == b"inside\n"
        child.send_signal(signal.SIGINT)
        assert child.wait(10) != 0
    finally:
        child.kill()
        child.stdout.close()
    async with open_store(path) as store:
        assert (await store.run("t")).status == "cancelled"
        messages = (await store.thread("t")).state.messages
        assert well_formed(messages)
        assert [item.status for item in results(messages)] == ["unknown", "cancelled"]
        (item,) = await store.pending()
        await store.resolve(item.id, "not_done", by="me")
        assert await store.journal.verify("t") > 0
