"""State, its fields and their reducers; time travel; forks."""

from __future__ import annotations

import pytest

from tropa import Agent, tool
from tropa import open as open_store
from tropa.errors import Conflict, UsageError
from tropa.messages import Media, Text
from tropa.model.scripted import Scripted, calls
from tropa.session import Field
from tropa.store import connect

pytestmark = pytest.mark.anyio


def speaker(**fields):
    return Agent(
        "speaker",
        model=Scripted(["ok"] * 20),
        instructions="Answer in {language}.",
        fields={"language": "English", **fields},
    )


async def test_a_field_that_is_not_passed_keeps_its_value_and_a_default_stands_until_it_is_set():
    one = speaker()
    async with open_store(":memory:") as store:
        await one.run("a", store=store, thread="t")
        assert (await store.thread("t")).state.language == "English"
        await one.run("b", store=store, thread="t", language="Spanish")
        for _ in range(3):
            await one.run("c", store=store, thread="t")
        assert (await store.thread("t")).state.language == "Spanish"
        await one.run("a", store=store, thread="u")
        assert (await store.thread("u")).state.language == "English"
    assert [request.system[10:17] for request in one.setup.model.requests] == ["English"] + ["Spanish"] * 4 + [
        "English"
    ]


async def test_reducers_append_overwrite_or_are_a_function():
    one = speaker(
        notes=Field([], "append"), total=Field(0, lambda before, given: before + given), tags=Field(["base"], "append")
    )
    async with open_store(":memory:") as store:
        await one.run("a", store=store, thread="t", notes=["x"], total=2, tags=["one"])
        await one.run("b", store=store, thread="t", notes=["y", "z"], total=3)
        state = (await store.thread("t")).state
        assert (state.notes, state.total, state.tags) == (["x", "y", "z"], 5, ["base", "one"])
        with pytest.raises(UsageError, match="list of items"):
            await one.run("c", store=store, thread="t", notes="text")
        with pytest.raises(UsageError, match="`speed`.*`language`"):
            await one.run("c", store=store, thread="t", speed=1)
        with pytest.raises(AttributeError, match="speed"):
            state.speed
        assert len((await store.thread("t")).state.messages) == 4


async def test_numbers_and_truth_values_are_different_values():
    one = speaker(flag=None)
    async with open_store(":memory:") as store:
        for value in (1, True, 1.5, False, 0):
            await one.run("a", store=store, thread="t", flag=value)
            assert repr((await store.thread("t")).state.flag) == repr(value)


async def test_a_state_that_is_set_again_to_the_same_value_is_not_written_again():
    one = speaker()
    async with open_store(":memory:") as store:
        for _ in range(3):
            await one.run("a", store=store, thread="t", language="Spanish")
        kinds = [entry.kind for entry in (await store.trail("t")).events]
    assert kinds.count("field.set") == 1


async def test_what_a_caller_tool_reducer_or_policy_does_to_its_copy_changes_nothing_that_is_kept():
    from tropa import ToolContext
    from tropa.gate import RUN

    @tool
    def spoil(box: dict[str, list[int]], context: ToolContext) -> str:
        context.fields["ctx"]["a"].append(99)
        return "spoilt"

    def policy(proposed):
        proposed.arguments["box"]["k"].append(7)
        return RUN

    model = Scripted([calls(("spoil", {"box": {"k": [1]}})), "ok", "ok", "ok"])
    one = Agent("x", model=model, tools=[spoil], policy=policy, fields={"ctx": None}, instructions="{ctx}")
    mine = {"a": [1]}
    async with open_store(":memory:") as store:
        await one.run("a", store=store, thread="t", ctx=mine)
        (call,) = (await store.trail("t")).runs[0].calls.values()
        assert call.arguments == {"box": {"k": [1]}}
        mine["a"].append(2)
        await one.run("b", store=store, thread="t")
        assert (await store.thread("t")).state.ctx == {"a": [1]}
        await one.run("c", store=store, thread="t", ctx=mine)
        assert (await store.thread("t")).state.ctx == {"a": [1, 2]}
    assert [request.system for request in model.requests] == ['{"a":[1]}'] * 3 + ['{"a":[1,2]}']


async def test_time_travel_shows_the_state_as_it_was_and_changes_nothing():
    one = speaker()
    async with open_store(":memory:") as store:
        await one.run("first", store=store, thread="t", language="Spanish")
        then = (await store.thread("t")).seq
        await one.run("second", store=store, thread="t", language="French")
        thread = await store.thread("t")
        before = await thread.at(then)
        assert (before.language, len(before.messages)) == ("Spanish", 2)
        assert (thread.state.language, len(thread.state.messages)) == ("French", 4)
        assert (await store.thread("t")).seq == thread.seq


async def test_a_fork_shares_the_past_and_goes_its_own_way():
    one = speaker()
    async with open_store(":memory:") as store:
        await one.run("first", store=store, thread="t", language="Spanish")
        thread = await store.thread("t")
        await one.run("second", store=store, thread="t")
        fork = await thread.fork("f", at=thread.seq)
        assert [m.parts[0].text for m in fork.state.messages] == ["first", "ok"]
        await one.run("third", store=store, thread="f", language="French")
        assert (await store.thread("f")).state.language == "French"
        assert (await store.thread("t")).state.language == "Spanish"
        assert [m.parts[0].text for m in (await store.thread("t")).state.messages] == ["first", "ok", "second", "ok"]
        with pytest.raises(Conflict, match="'f'"):
            await thread.fork("f")
        assert await store.journal.verify("f") > 0


async def test_a_fork_may_be_made_at_every_event_of_a_run_and_goes_on_from_there():
    from tests.session.history import well_formed

    moved = []

    @tool
    def move(n: int) -> str:
        moved.append(n)
        return "moved"

    @tool(read_only=True)
    def look() -> int:
        return 3

    script = lambda request: [calls(("look", {}), ("move", {"n": 1})), "done"][len(request.messages) > 1]
    one = Agent("x", model=Scripted(script), tools=[move, look])
    async with open_store(":memory:") as store:
        run = await one.run("go", store=store, thread="t")
        await store.approve(run.pending[0].id, by="me")
        assert (await one.resume("t", store=store)).ok
        thread = await store.thread("t")
        for at in range(3, thread.seq + 1):  # from the message of the user on
            fork = await thread.fork(f"f{at}", at=at)
            run = await one.resume(fork.id, store=store)
            while run.status == "waiting":
                for item in run.pending:
                    if item.kind == "approval":
                        await store.approve(item.id, by="me")
                    else:
                        await store.resolve(item.id, "done", by="me")
                run = await one.resume(fork.id, store=store)
            assert run.ok, (at, run)
            assert well_formed((await store.thread(fork.id)).state.messages)


async def test_pictures_go_in_and_come_back_byte_for_byte(tmp_path):
    picture = Media("image/png", bytes(range(256)) * 300, "map.png")
    one = speaker()
    async with open_store(tmp_path / "p.db") as store:
        await one.run([Text("What is this?"), picture], store=store, thread="t")
    async with open_store(tmp_path / "p.db") as store:
        message = (await store.thread("t")).state.messages[0]
    assert message.parts == (Text("What is this?"), picture)
    assert one.setup.model.requests[0].messages[0].parts[1] == picture


async def test_a_long_thread_is_the_same_whether_it_is_read_or_remembered(tmp_path):
    """What a process remembers between turns is what the journal holds."""
    path = tmp_path / "m.db"
    async with open_store(path) as kept:
        for n in range(6):
            await speaker().run(f"turn {n}", store=kept, thread="a", language=str(n % 3))
            async with open_store(path) as fresh:
                await speaker().run(f"turn {n}", store=fresh, thread="b", language=str(n % 3))
        a, b = await kept.thread("a"), await kept.thread("b")
        kinds = [[entry.kind for entry in (await kept.trail(name)).events] for name in "ab"]
    assert a.state.messages == b.state.messages
    assert a.state.fields == b.state.fields
    assert kinds[0] == kinds[1]


def test_a_store_is_named_by_path_or_url(tmp_path):
    store = connect(f"sqlite:///{tmp_path}/x.db")
    assert (tmp_path / "x.db").exists()
    assert store.journal.path == f"{tmp_path}/x.db"
    with pytest.raises(UsageError, match="mysql"):
        connect("mysql://x")
