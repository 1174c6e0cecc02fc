"""A trail as people read it."""

from __future__ import annotations

import asyncio

import pytest

from tests.session.history import well_formed
from tropa import Agent, ToolFailed, tool
from tropa import open as open_store
from tropa.events import Event
from tropa.gate import ASK, RUN
from tropa.model import Reply
from tropa.model.scripted import Scripted, calls
from tropa.trail import trail_of

pytestmark = pytest.mark.anyio


async def test_every_failed_call_is_seen_with_its_error_its_attempt_and_its_step():
    """J-04: six failures and one success."""

    @tool(read_only=True)
    def add(n: int) -> int:
        return n + 1

    @tool(read_only=True)
    def crash() -> str:
        raise KeyError("shelf")

    @tool(read_only=True, timeout=0.05)
    async def slow() -> str:
        await asyncio.sleep(5)
        return "late"

    @tool
    def pay(amount: int) -> str:
        return "paid"

    @tool(read_only=True)
    def server() -> str:
        raise ToolFailed("isError: the server refused")

    batch = calls(
        ("nope", {}), ("add", {"n": "many"}), ("crash", {}), ("slow", {}), ("server", {}), ("pay", {"amount": 5})
    )
    one = Agent(
        "x",
        model=Scripted(
            [
                Reply("I try all.", batch and tuple(batch), reasoning="Let me see.", finish="calls"),
                calls(("add", {"n": "1"})),
                "done",
            ]
        ),
        tools=[add, crash, slow, pay, server],
    )
    async with open_store(":memory:") as store:
        run = await one.run("go", store=store, thread="t")
        await store.reject(run.pending[0].id, by="me", reason="too much")
        run = await one.resume("t", store=store)
        trail = await store.trail("t")
    assert run.ok
    (only,) = trail.runs
    failed = [call for call in only.calls.values() if call.failed]
    assert [(call.tool, call.error, call.attempts) for call in failed] == [
        ("nope", "unknown_tool", 0),
        ("add", "invalid_arguments", 0),
        ("crash", "KeyError", 1),
        ("slow", "TimeoutError", 1),
        ("server", "ToolFailed", 1),
        ("pay", "rejected", 0),
    ]
    assert [call.observation.status for call in failed] == ["error"] * 5 + ["rejected"]
    assert "shelf" in str(failed[2].observation.value)
    (fine,) = [call for call in only.calls.values() if not call.failed]
    assert (fine.given, fine.arguments, fine.attempts) == ({"n": "1"}, {"n": 1}, 1)
    assert [len(step.calls) for step in trail] == [6, 1, 0]
    assert trail.runs[0].steps[0].message.reasoning == "Let me see."
    assert well_formed(trail.messages)
    assert (only.paused, only.resumed, only.status, only.stop, only.answer) == (1, 1, "completed", "answered", "done")


async def test_each_run_has_its_own_steps_and_usage_and_an_open_one_the_sum_so_far():
    @tool
    def pay() -> str:
        return "paid"

    one = Agent("x", model=Scripted(["hello", calls(("pay", {}))]), tools=[pay])
    async with open_store(":memory:") as store:
        first = await one.run("hi", store=store, thread="t")
        second = await one.run("pay", store=store, thread="t")
        trail = await store.trail("t")
    assert [run.usage for run in trail.runs] == [first.usage, second.usage]
    assert [run.status for run in trail.runs] == ["completed", "waiting"]
    assert [run.input.parts[0].text for run in trail.runs] == ["hi", "pay"]
    assert [step.prompt_tokens for step in trail] == [first.usage.input, second.usage.input]


async def test_parallel_results_stand_in_the_order_of_their_calls():
    @tool(read_only=True)
    async def wait(ms: int) -> int:
        await asyncio.sleep(ms / 1000)
        return ms

    one = Agent("x", model=Scripted([calls(*[("wait", {"ms": ms}) for ms in (90, 40, 5)]), "ok"]), tools=[wait])
    async with open_store(":memory:") as store:
        await one.run("go", store=store, thread="t")
        trail = await store.trail("t")
    assert well_formed(trail.messages)
    assert [call.observation.value for call in trail.runs[0].steps[0].calls] == [90, 40, 5]


async def test_what_a_person_says_long_after_goes_to_the_call_it_is_about():
    @tool(timeout=0.02)
    async def pay() -> str:
        await asyncio.sleep(5)
        return "paid"

    one = Agent("x", model=Scripted([calls(("pay", {})), "unclear", "hello"]), tools=[pay], policy=lambda p: RUN)
    async with open_store(":memory:") as store:
        await one.run("go", store=store, thread="t")
        await one.run("hi", store=store, thread="t")
        (item,) = await store.pending()
        await store.resolve(item.id, "done", by="me")
        trail = await store.trail("t")
    assert trail.runs[0].calls[item.call_id].decision["decision"] == "done"
    assert trail.runs[0].calls[item.call_id].doubt


async def test_a_call_that_came_to_the_gate_twice_is_one_call():
    def pay_of(text):
        @tool(description=text)
        def pay() -> str:
            return "paid"

        return pay

    async with open_store(":memory:") as store:
        run = await Agent("x", model=Scripted([calls(("pay", {}))]), tools=[pay_of("Pay.")], policy=lambda p: ASK).run(
            "go", store=store, thread="t"
        )
        await store.approve(run.pending[0].id, by="me")
        await Agent("x", model=Scripted(["ok"]), tools=[pay_of("Pay all.")]).resume("t", store=store)
        trail = await store.trail("t")
    assert len(trail.runs[0].calls) == 1
    assert len(trail.runs[0].steps[0].calls) == 1
    assert trail.runs[0].steps[0].calls[0].decision is None


def test_kinds_from_a_newer_version_are_kept_and_say_nothing():
    events = [
        Event("t", 1, 0.0, "thread.opened", {"version": 1}),
        Event("t", 2, 0.0, "weather.changed", {"to": "rain"}),
    ]
    trail = trail_of("t", events)
    assert trail.events == events
    assert trail.runs == []
