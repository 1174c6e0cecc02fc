"""The engine's process as its parent sees it, with a fake engine that speaks the line protocol."""

from __future__ import annotations

import os
import signal
import sys
import textwrap
import time

import anyio
import pytest

from tropa.errors import ModelError
from tropa.messages import Assistant, Call, Observation, Text, user
from tropa.model import Reply, Request, ToolSpec
from tropa.model.needle import Needle

pytestmark = pytest.mark.anyio

FAKE = textwrap.dedent(
    """
    import json, os, sys, time
    print(json.dumps({"ready": True, "network": "not isolated"}), flush=True)
    for line in sys.stdin:
        ask = json.loads(line)
        text = ask["turns"][0]
        if text == "die":
            sys.stderr.write("out of memory"); sys.stderr.flush(); os._exit(9)
        if text == "sleep":
            time.sleep(60)
        if text == "stale":
            print(json.dumps({"id": -1, "response": {}}), flush=True)
        calls = [] if text == "nothing" else [{"name": "say", "arguments": {"text": text}}]
        answer = {"function_calls": calls, "suppressed_calls": [], "reasoning": str(os.getpid()), "turns": ask["turns"]}
        print(json.dumps({"id": ask["id"], "prefix": 10, "tokens": 5, "response": answer}), flush=True)
    """
)
SAY = ToolSpec("say", "Say something.", {"type": "object", "properties": {"text": {"type": "string"}}})


@pytest.fixture
async def needle(tmp_path):
    script = tmp_path / "engine.py"
    script.write_text(FAKE)
    model = Needle(command=(sys.executable, str(script)))
    yield model
    await model.close()


async def ask(model: Needle, text: str, *more, **kw) -> Reply:
    item = None
    async for item in model.ask(Request("", (user(text), *more), (SAY,), **kw)):
        pass
    assert isinstance(item, Reply)
    return item


async def test_it_starts_with_the_first_ask_and_only_then(needle):
    assert (needle.pid, needle.network) == (None, "not started")
    reply = await ask(needle, "hi")
    assert reply.calls[0].arguments == {"text": "hi"}
    assert reply.reasoning == str(needle.pid)
    assert needle.network == "not isolated"


async def test_a_killed_engine_is_started_again(needle):
    await ask(needle, "one")
    os.kill(needle.pid, signal.SIGKILL)
    time.sleep(0.1)
    assert (await ask(needle, "two")).calls[0].arguments == {"text": "two"}


async def test_the_ask_in_flight_when_it_dies_can_be_retried_and_says_why(needle):
    with pytest.raises(ModelError, match="out of memory") as caught:
        await ask(needle, "die")
    assert caught.value.retryable
    assert (await ask(needle, "again")).calls


async def test_a_cancelled_ask_leaves_no_answer_behind_for_the_next_one(needle):
    await ask(needle, "warm")
    with anyio.move_on_after(0.2) as scope:
        await ask(needle, "sleep")
    assert scope.cancelled_caught
    assert (await ask(needle, "next")).calls[0].arguments == {"text": "next"}


async def test_answers_to_somebody_else_are_skipped(needle):
    assert (await ask(needle, "stale")).calls[0].arguments == {"text": "stale"}


async def test_waiting_asks_take_turns_and_get_their_own_answers(needle):
    got = {}

    async def one(text):
        got[text] = (await ask(needle, text)).calls[0].arguments["text"]

    async with anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(one, f"n{number}")
    assert got == {f"n{n}": f"n{n}" for n in range(8)}


async def test_the_event_loop_goes_on_while_the_engine_thinks(needle):
    beats = 0
    with anyio.move_on_after(0.5):
        async with anyio.create_task_group() as group:
            group.start_soon(ask, needle, "sleep")
            while True:
                await anyio.sleep(0.01)
                beats += 1
    assert beats > 10


def test_several_event_loops_in_turn_may_use_one_needle(tmp_path):
    script = tmp_path / "engine.py"
    script.write_text(FAKE)
    model = Needle(command=(sys.executable, str(script)))
    for text in ("a", "b"):
        assert anyio.run(ask, model, text).calls[0].arguments == {"text": text}
    anyio.run(model.close)


async def test_closing_ends_the_process_and_twice_is_harmless(needle):
    await ask(needle, "hi")
    pid = needle.pid
    await needle.close()
    await needle.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_the_same_call_again_ends_the_turn_with_the_results(needle):
    call = Call("1", "say", {"text": "Hi "})
    done = Observation("1", "say", "ok", (Text("said"),))
    reply = await ask(needle, "hi", Assistant((call,)), done)
    assert (reply.calls, reply.finish) == ((), "stop")
    assert reply.text == "From the tool results:\n- say(text=Hi ): said"


@pytest.mark.parametrize("status", ["rejected", "cancelled", "unknown"])
async def test_after_a_no_or_a_doubt_the_engine_is_not_asked_again(needle, status):
    call = Call("1", "say", {"text": "other"})
    reply = await ask(needle, "hi", Assistant((call,)), Observation("1", "say", status, (Text("wrong site"),)))
    assert (reply.calls, needle.pid) == ((), None)
    assert "wrong site" in reply.text


async def test_nothing_proposed_is_said_in_words(needle):
    assert (await ask(needle, "nothing")).text.startswith("No call was made")


async def test_settings_without_effect_are_remarked(needle):
    reply = await ask(needle, "hi", options={"temperature": 0.5})
    assert reply.warnings == ("'temperature' has no effect on this model",)


async def test_a_request_over_the_context_is_refused_before_it_is_sent(needle):
    with pytest.raises(ModelError, match="shorten it"):
        await ask(needle, "word " * 9000)
    assert needle.pid is None
