"""Stuck or polling (F-01): one warning, then the run ends."""

from __future__ import annotations

import itertools

import pytest

from tests.session.history import results, well_formed
from tropa import Agent, ToolFailed, tool
from tropa import open as open_store
from tropa.messages import Media, Notice
from tropa.model.scripted import Scripted, calls

pytestmark = pytest.mark.anyio


async def play(script, *tools):
    turns = itertools.count()

    def reply(request):
        return script(next(turns)) if request.tools else "I stop here."

    one = Agent("looper", model=Scripted(reply), tools=tools)
    async with open_store(":memory:") as store:
        run = await one.run("go", store=store, thread="t")
        messages = (await store.thread("t")).state.messages
    assert well_formed(messages)
    warnings = [message for message in messages if isinstance(message, Notice) and "same" in message.text]
    return run, messages, len(warnings)


@tool(read_only=True)
def read(path: str) -> str:
    return f"text of {path}"


@tool(read_only=True)
def add(x: int, y: int) -> int:
    return x + y


async def test_reading_the_same_for_ever_is_warned_once_and_then_ended():
    run, messages, warnings = await play(lambda n: calls(("read", {"path": "a"})), read)
    assert (run.status, run.stop, warnings) == ("stopped", "repeat", 1)
    assert run.steps < 6
    assert run.answer == "I stop here."


async def test_polling_that_changes_goes_on_to_the_end():
    percent = itertools.count(10, 10)

    @tool(read_only=True)
    def status(job: int) -> str:
        return f"{next(percent)} %"

    run, messages, warnings = await play(lambda n: calls(("status", {"job": 7})) if n < 10 else "done", status)
    assert run.ok
    assert warnings == 0
    assert len(results(messages)) == 10


@pytest.mark.parametrize("length", [2, 3, 4])
async def test_going_round_in_a_cycle_is_a_repeat(length):
    run, _, warnings = await play(lambda n: calls(("read", {"path": "abcd"[n % length]})), read)
    assert (run.stop, warnings) == ("repeat", 1)
    assert run.steps <= 2 * length + 1


async def test_the_order_of_arguments_does_not_hide_a_repeat():
    pair = [{"x": 1, "y": 2}, {"y": 2, "x": 1}]
    run, _, _ = await play(lambda n: calls(("add", pair[n % 2])), add)
    assert run.stop == "repeat"
    assert run.steps == 3


async def test_the_same_failing_call_is_a_repeat():
    @tool(read_only=True)
    def broken() -> str:
        raise ToolFailed("the disk is full")

    run, _, _ = await play(lambda n: calls(("broken", {})), broken)
    assert run.stop == "repeat"


async def test_three_equal_calls_in_one_reply_are_one_step_and_all_are_answered():
    run, messages, warnings = await play(lambda n: calls(*[("read", {"path": "a"})] * 3) if n == 0 else "ok", read)
    assert run.ok
    assert warnings == 0
    assert [item.status for item in results(messages)] == ["ok"] * 3


async def test_after_progress_the_model_is_warned_anew():
    paths = "aabbcc"
    run, _, warnings = await play(lambda n: calls(("read", {"path": paths[n]})) if n < 6 else "ok", read)
    assert run.ok
    assert warnings == 3


async def test_pictures_that_differ_are_no_repeat():
    frames = itertools.count()

    @tool(read_only=True)
    def camera() -> Media:
        return Media("image/png", bytes([next(frames)]))

    run, _, warnings = await play(lambda n: calls(("camera", {})) if n < 5 else "ok", camera)
    assert run.ok
    assert warnings == 0


async def test_a_person_may_let_a_run_go_on_that_ended_as_a_repeat(tmp_path):
    def stuck(request):
        return calls(("read", {"path": "a"})) if request.tools else "closing"

    run = await Agent("l", model=Scripted(stuck), tools=[read]).run("go", store=tmp_path / "r.db", thread="t")
    assert run.stop == "repeat"
    model = Scripted([calls(("read", {"path": "b"})), "found"])
    run = await Agent("l", model=model, tools=[read]).resume("t", store=tmp_path / "r.db")
    assert (run.stop, run.answer) == ("answered", "found")
    assert isinstance(model.requests[0].messages[-1], Notice)  # the last word was the model's own closing
