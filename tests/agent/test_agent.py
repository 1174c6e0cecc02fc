"""The agent's own surface: scripts, dry runs, watching, definitions."""

from __future__ import annotations

import asyncio

import pytest

from tests.session.history import results, texts
from tropa import Agent, Budget, UsageError, tool
from tropa import open as open_store
from tropa.events import Event
from tropa.model import Delta
from tropa.model.scripted import Scripted, calls

pytestmark = pytest.mark.anyio


def test_a_script_runs_without_a_loop_and_more_than_once():
    one = Agent("x", model=Scripted(["one", "two"]))
    assert one.run_sync("a").answer == "one"
    assert one.run_sync("b", budget=Budget(steps=1)).answer == "two"


async def test_inside_a_loop_the_asynchronous_method_is_named_and_nothing_is_lost():
    """G-05, third."""
    model = Scripted(["one"])
    one = Agent("x", model=model)
    with pytest.raises(UsageError, match=r"await agent\.run"):
        one.run_sync("a")
    assert model.requests == []
    assert (await one.run("a")).answer == "one"


async def test_without_a_store_a_run_leaves_nothing_and_threads_get_unguessable_names():
    one = Agent("x", model=Scripted(["a", "b"]))
    names = {(await one.run("x")).thread for _ in range(2)}
    assert len(names) == 2
    assert all(len(name) >= 16 for name in names)


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "a'; DROP TABLE threads; --", "", "\ud800", "tab\tnul\0", "x" * 5000]
)
async def test_any_text_is_a_thread(tmp_path, name):
    one = Agent("x", model=Scripted(["a", "b"]))
    async with open_store(tmp_path / "n.db") as store:
        await one.run("x", store=store, thread=name)
        await one.run("y", store=store, thread=name)
        assert len((await store.thread(name)).state.messages) == 4


async def test_a_dry_run_executes_no_side_effect_and_shows_what_would_have_happened():
    done = []

    async def shown(sku: str, n: int) -> dict:
        return {"left": 10 - n}

    def broken(sku: str, n: int) -> str:
        raise ValueError("no idea")

    @tool(preview=shown)
    def move(sku: str, n: int) -> dict:
        done.append(sku)
        return {"left": 0}

    @tool(preview=broken)
    def sell(sku: str, n: int) -> str:
        done.append(sku)
        return "sold"

    @tool
    def drop(sku: str) -> str:
        done.append(sku)
        return "dropped"

    @tool(read_only=True)
    def look(sku: str) -> int:
        done.append(f"look {sku}")
        return 10

    script = [
        calls(
            ("look", {"sku": "a"}),
            ("move", {"sku": "a", "n": 3}),
            ("sell", {"sku": "a", "n": 1}),
            ("drop", {"sku": "a"}),
            ("move", {"sku": 1}),
        ),
        "ok",
    ]
    one = Agent("x", model=Scripted(script), tools=[move, sell, drop, look])
    async with open_store(":memory:") as store:
        run = await one.run("go", store=store, thread="t", dry_run=True)
        messages = (await store.thread("t")).state.messages
        trail = await store.trail("t")
    assert run.ok
    assert run.pending == ()
    assert done == ["look a"]
    found = results(messages)
    assert found[1].value == {"left": 7}
    assert "no idea" in texts(messages)[2]
    assert "not executed" in texts(messages)[3]
    assert found[4].status == "error"  # a dry run validates too
    assert trail.runs[0].dry
    assert [call.verdict for call in trail.runs[0].calls.values()] == ["run", "dry", "dry", "dry", "refuse"]
    assert [call.attempts for call in trail.runs[0].calls.values()] == [1, 0, 0, 0, 0]


async def test_who_watches_sees_each_piece_and_each_event_in_order():
    @tool(read_only=True)
    def look() -> int:
        return 1

    seen = []
    one = Agent("x", model=Scripted([calls(("look", {})), "That is all."]), tools=[look])
    async with open_store(":memory:") as store:
        await one.run("go", store=store, thread="t", watch=seen.append)
        events = (await store.trail("t")).events
    kinds = [item.kind for item in seen if isinstance(item, Event)]
    assert kinds == [entry.kind for entry in events]
    assert "".join(item.text for item in seen if isinstance(item, Delta) and item.kind == "text") == "That is all."


async def test_the_definition_of_an_agent_is_stored_once_and_by_content():
    one = Agent("x", model=Scripted(["ok"] * 3), instructions="Be brief.")
    async with open_store(":memory:") as store:
        for _ in range(3):
            await one.run("go", store=store, thread="t")
        starts = [entry for entry in (await store.trail("t")).events if entry.kind == "run.started"]
        assert len({entry.body["agent"] for entry in starts}) == 1
        assert "Be brief." in await store.journal.text(starts[0].body["agent"])


async def test_the_prefix_of_a_prompt_is_the_same_from_ask_to_ask():
    @tool(read_only=True)
    def look(n: int) -> int:
        return n

    one = Agent(
        "x",
        model=Scripted([calls(("look", {"n": 1})), calls(("look", {"n": 2})), "ok"]),
        tools=[look],
        instructions="Be brief.",
    )
    await one.run("go")
    first, second, third = one.setup.model.requests
    assert first.system == second.system == third.system
    assert first.tools == second.tools == third.tools
    assert second.messages[: len(first.messages)] == first.messages
    assert third.messages[: len(second.messages)] == second.messages


async def test_a_field_without_a_value_fails_the_run_in_words():
    run = await Agent("x", model=Scripted(["ok"]), instructions="In {tongue}.").run("go")
    assert (run.status, run.stop) == ("failed", "error")
    assert "`tongue`" in run.error


async def test_many_threads_at_once_do_not_mix(tmp_path):
    one = Agent("x", model=Scripted(lambda request: request.messages[-1].parts[0].text.upper(), delay=0.01))
    async with open_store(tmp_path / "many.db") as store:
        runs = await asyncio.gather(*[one.run(f"t{n}", store=store, thread=f"t{n}") for n in range(20)])
    assert [run.answer for run in runs] == [f"T{n}" for n in range(20)]
