"""Who may work on a thread, and what becomes of a run that was left behind."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from tests.session.history import results, well_formed
from tropa import Agent, Budget, Conflict, ThreadNotFound, ThreadWaiting, tool
from tropa import open as open_store
from tropa.errors import ModelError, NotStorable
from tropa.gate import RUN
from tropa.messages import User
from tropa.model.scripted import Scripted, calls

pytestmark = pytest.mark.anyio


def said(messages):
    return ["".join(part.text for part in message.parts) for message in messages]


def echo(gate=None):
    async def reply(request):
        text = next(message for message in reversed(request.messages) if isinstance(message, User)).parts[0].text
        if gate is not None:
            await gate.wait()
        return f"re {text}"

    return Agent("echo", model=Scripted(reply))


async def test_of_two_runs_at_once_one_is_refused_without_a_trace():
    """C-01, in one process."""
    gate = asyncio.Event()
    one = echo(gate)
    async with open_store(":memory:") as store:
        first = asyncio.create_task(one.run("A", store=store, thread="t"))
        await asyncio.sleep(0.05)
        with pytest.raises(Conflict):
            await one.run("B", store=store, thread="t")
        gate.set()
        assert (await first).answer == "re A"
        assert said((await store.thread("t")).state.messages) == ["A", "re A"]


async def test_a_run_may_wait_for_its_turn():
    """C-01: both in series, each reply after its own question."""
    async with open_store(":memory:") as store:
        one = echo()
        runs = await asyncio.gather(*[one.run(text, store=store, thread="t", wait=10) for text in "ABCD"])
        messages = said((await store.thread("t")).state.messages)
    assert sorted(run.answer for run in runs) == ["re A", "re B", "re C", "re D"]
    assert len(messages) == 8
    assert all(messages[n + 1] == f"re {messages[n]}" for n in range(0, 8, 2))


CHILD = """
import asyncio, sys, time
from tropa import Agent, Conflict
from tropa.model.scripted import Scripted
path, text, wait = sys.argv[1], sys.argv[2], float(sys.argv[3])
async def reply(request):
    await asyncio.sleep(0.5)
    return "re " + text
async def main():
    agent = Agent("x", model=Scripted(reply))
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        run = await agent.run(text, store=path, thread="t", wait=wait)
        print(run.answer)
    except Conflict:
        print("conflict")
asyncio.run(main())
"""


@pytest.mark.parametrize("wait", [0, 30])
async def test_two_processes_on_one_thread_never_lose_a_message(tmp_path, wait):
    """C-01, in two processes."""
    path = tmp_path / "two.db"
    async with open_store(path) as store:
        await echo().run("before", store=store, thread="t")
    pair = [
        subprocess.Popen(
            [sys.executable, "-c", CHILD, str(path), text, str(wait)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for text in "AB"
    ]
    try:
        for child in pair:
            assert child.stdout.readline() == "ready\n"
        for child in pair:
            child.stdin.write("\n")
            child.stdin.flush()
        answers = [child.communicate(timeout=60)[0].strip() for child in pair]
    finally:
        for child in pair:
            child.kill()
    async with open_store(path) as store:
        messages = said((await store.thread("t")).state.messages)[2:]
    done = [answer for answer in answers if answer != "conflict"]
    assert sorted(messages[1::2]) == sorted(done)
    assert all(messages[n + 1] == f"re {messages[n]}" for n in range(0, len(messages), 2))
    assert len(done) == (1 if wait == 0 else 2)


async def test_a_failed_run_keeps_its_input_and_can_be_resumed():
    model = Scripted([ModelError("the server is down"), "here"])
    one = Agent("x", model=model)
    async with open_store(":memory:") as store:
        run = await one.run("question", store=store, thread="t")
        assert (run.status, run.stop) == ("failed", "error")
        assert "server is down" in run.error
        run = await one.resume("t", store=store)
        assert run.answer == "here"
        assert (await one.resume("t", store=store)) == run  # an answered run stands as it is
        assert said((await store.thread("t")).state.messages) == ["question", "here"]


async def test_a_bug_in_a_policy_ends_the_run_in_order_and_is_raised():
    @tool
    def pay() -> str:
        return "paid"

    def policy(proposed):
        raise ZeroDivisionError("bug")

    one = Agent("x", model=Scripted([calls(("pay", {})), "ok"]), tools=[pay], policy=policy)
    async with open_store(":memory:") as store:
        with pytest.raises(ZeroDivisionError):
            await one.run("go", store=store, thread="t")
        assert (await store.run("t")).status == "failed"
        assert well_formed((await store.thread("t")).state.messages)


async def test_a_new_message_ends_an_interrupted_run_first():
    """C-02: the three calls are answered before the user speaks again; call 1 is not run twice."""

    class Killed(BaseException):
        pass

    ran = []

    @tool(read_only=True)
    def one_() -> str:
        ran.append(1)
        return "one"

    @tool
    def two() -> str:
        ran.append(2)
        raise Killed

    @tool
    def three() -> str:
        ran.append(3)
        return "three"

    agent = Agent(
        "x",
        model=Scripted([calls(("one_", {}), ("two", {}), ("three", {})), "on", "third"]),
        tools=[one_, two, three],
        policy=lambda _: RUN,
    )
    async with open_store(":memory:") as store:
        kept = store.journal.append

        async def dies(thread, expect, events, **more):
            if events[0].kind == "call.finished" and events[0].body["call"].endswith("_1"):
                raise Killed
            return await kept(thread, expect, events, **more)

        store.journal.append = dies
        with pytest.raises(BaseException):
            await agent.run("go", store=store, thread="t")
        del store.journal.append
        await store.journal.append("t", (await store.thread("t")).seq, [], release=True)
        assert (await store.run("t")).status == "running"
        run = await agent.run("go on", store=store, thread="t")
        request = agent.setup.model.requests[-1].messages
        assert run.answer == "on"
        assert well_formed(request)
        assert [item.status for item in results(request)] == ["ok", "unknown", "cancelled"]
        assert isinstance(request[-1], User)
        await agent.run("again", store=store, thread="t")
        assert len(results((await store.thread("t")).state.messages)) == 3
        trail = await store.trail("t")
        assert [one.status for one in trail.runs] == ["cancelled", "completed", "completed"]
    assert ran == [1, 2]


async def test_a_run_that_follows_an_interrupted_one_can_wait_for_a_person():
    """The end of the old run must not be taken for that of the new one."""

    @tool
    def pay() -> str:
        return "paid"

    agent = Agent("x", model=Scripted(["half", calls(("pay", {})), "ok"]), tools=[pay])
    async with open_store(":memory:") as store:
        kept = store.journal.append

        async def dies(thread, expect, events, **more):
            if events[-1].kind == "run.finished":
                raise KeyboardInterrupt
            return await kept(thread, expect, events, **more)

        store.journal.append = dies
        task = asyncio.get_running_loop().create_future()
        try:
            await agent.run("go", store=store, thread="t")
        except KeyboardInterrupt:
            task.set_result(None)
        await task
        del store.journal.append
        await store.journal.append("t", (await store.thread("t")).seq, [], release=True)
        run = await agent.run("now pay", store=store, thread="t")
        assert (run.status, run.stop, [item.tool for item in run.pending]) == ("waiting", None, ["pay"])


async def test_a_waiting_thread_takes_no_message_and_says_what_it_waits_for():
    @tool
    def pay() -> str:
        return "paid"

    one = Agent("x", model=Scripted([calls(("pay", {})), "ok", "and"]), tools=[pay])
    async with open_store(":memory:") as store:
        run = await one.run("go", store=store, thread="t")
        with pytest.raises(ThreadWaiting, match=run.pending[0].id):
            await one.run("hurry", store=store, thread="t", wait=5)
        assert (await one.resume("t", store=store)).status == "waiting"
        await store.approve(run.pending[0].id, by="me")
        with pytest.raises(ThreadWaiting, match="resume"):
            await one.run("hurry", store=store, thread="t")
        assert (await one.resume("t", store=store)).ok
        assert (await one.run("thanks", store=store, thread="t")).ok


async def test_a_value_that_cannot_be_stored_is_named_by_its_path_and_nothing_is_written():
    """C-05."""
    one = Agent("x", model=Scripted(["ok"] * 3), fields={"ctx": None})
    async with open_store(":memory:") as store:
        await one.run("fine", store=store, thread="t", ctx={"a": 1})
        before = (await store.thread("t")).seq
        with open("/dev/null") as file, pytest.raises(NotStorable, match=r"ctx\.a\.b\[0\].*TextIOWrapper"):
            await one.run("bad", store=store, thread="t", ctx={"a": {"b": [file]}})
        thread = await store.thread("t")
        assert (thread.seq, thread.state.ctx) == (before, {"a": 1})
        assert (await one.run("still fine", store=store, thread="t")).ok


async def test_a_tool_whose_result_cannot_be_stored_is_recorded_as_done():
    """C-05: the effect happened, so it is not called failed."""
    done = []

    @tool
    def send() -> object:
        done.append(1)
        return {"file": object()}

    one = Agent(
        "x",
        model=Scripted([calls(("send", {})), "ok"]),
        tools=[send],
        policy=lambda _: RUN,
    )
    async with open_store(":memory:") as store:
        assert (await one.run("go", store=store, thread="t")).ok
        (item,) = results((await store.thread("t")).state.messages)
    assert (item.status, done) == ("ok", [1])
    assert "result.file" in str(item.value)


async def test_data_that_looks_like_a_type_tag_comes_back_as_the_same_data(tmp_path):
    """I-01."""
    tricky = [
        {"lc": 1, "type": "constructor", "id": ["os", "system"], "kwargs": {}},
        {"type": "call", "id": "x"},
        {"__type__": "datetime", "v": "1"},
        {"__reduce__": ["os.system", "true"]},
        {"role": "user", "parts": []},
    ]

    @tool(read_only=True)
    def fetch() -> list:
        return tricky

    one = Agent("x", model=Scripted([calls(("fetch", {})), "ok"]), tools=[fetch], fields={"seen": None})
    async with open_store(tmp_path / "i.db") as store:
        await one.run("go", store=store, thread="t", seen=tricky)
    async with open_store(tmp_path / "i.db") as store:
        state = (await store.thread("t")).state
    assert results(state.messages)[0].value == tricky
    assert state.seen == tricky


async def test_a_thread_that_is_not_there_is_named():
    async with open_store(":memory:") as store:
        for look in (store.thread, store.run, store.trail):
            with pytest.raises(ThreadNotFound, match="'nobody'"):
                await look("nobody")
        with pytest.raises(ThreadNotFound, match="'nobody'"):
            await echo().resume("nobody", store=store)


async def test_who_watches_may_fail_and_the_thread_is_left_in_order():
    @tool(read_only=True)
    def look() -> int:
        return 1

    kinds = ["thread.opened", "model.requested", "call.proposed", "call.finished", "run.finished"]
    for number, kind in enumerate(kinds):

        def watch(item):
            if getattr(item, "kind", "") == kind:
                raise BrokenPipeError(kind)

        one = Agent("x", model=Scripted([calls(("look", {})), "ok", "ok"]), tools=[look])
        async with open_store(":memory:") as store:
            with pytest.raises(BrokenPipeError):
                await one.run("go", store=store, thread="t", watch=watch)
            run = await store.run("t")
            assert run.status == ("failed" if number < 4 else "completed")
            assert well_formed((await store.thread("t")).state.messages)
            assert (await one.resume("t", store=store)).ok


async def test_a_worker_that_lost_the_thread_stops_and_writes_nothing_more(monkeypatch):
    """A claim ends by itself; whoever takes the thread over then is not disturbed."""
    monkeypatch.setattr("tropa.session.held.LOOK", 0.02)
    monkeypatch.setattr("tropa.session.held.HEARTBEAT", 0.02)
    inside = asyncio.Event()

    @tool
    async def build() -> str:
        inside.set()
        await asyncio.sleep(30)
        return "built"

    one = Agent("x", model=Scripted([calls(("build", {})), "ok"]), tools=[build], policy=lambda _: RUN)
    async with open_store(":memory:") as store:
        task = asyncio.create_task(one.run("go", store=store, thread="t"))
        await inside.wait()
        await store.journal.append("t", (await store.thread("t")).seq, [], release=True)  # as when its time is over
        with pytest.raises(Conflict):
            await asyncio.wait_for(task, 5)
        assert task.cancelling() == 0
        assert (await store.run("t")).status == "running"
        run = await one.resume("t", store=store)
        assert (run.status, run.pending[0].kind) == ("waiting", "unknown")


async def test_a_person_may_decide_about_a_thread_while_it_is_worked_on():
    """Their write comes between two of the worker's: neither is lost."""
    async with open_store(":memory:") as store:

        @tool(timeout=0.02)
        async def pay() -> str:
            await asyncio.sleep(5)
            return "paid"

        @tool
        async def wait() -> str:
            (item,) = await store.pending()
            await store.resolve(item.id, "done", by="me")
            return "waited"

        one = Agent(
            "x",
            model=Scripted([calls(("pay", {})), calls(("wait", {})), "ok"]),
            tools=[pay, wait],
            policy=lambda _: RUN,
        )
        run = await one.run("go", store=store, thread="t")
        thread = await store.thread("t")
        assert run.ok
        assert await store.pending() == []
        assert [item.status for item in results(thread.state.messages)] == ["unknown", "ok"]
        assert any("was done" in getattr(message, "text", "") for message in one.setup.model.requests[-1].messages)
        assert await store.journal.verify("t") == thread.seq


async def test_waiting_for_people_is_not_working_time():
    @tool
    def pay() -> str:
        return "paid"

    one = Agent("x", model=Scripted([calls(("pay", {})), "ok"]), tools=[pay])
    async with open_store(":memory:") as store:
        run = await one.run("go", store=store, thread="t", budget=Budget(seconds=0.5))
        await asyncio.sleep(0.7)
        await store.approve(run.pending[0].id, by="me")
        run = await one.resume("t", store=store)
    assert run.ok
    assert run.seconds < 0.5
