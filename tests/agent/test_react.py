"""The loop: decide, call, observe, until something stops it."""

from __future__ import annotations

import json

import pytest

from tests.model.server import Server, refuses, says
from tests.model.server import call as server_call
from tests.model.server import calls as server_calls
from tests.session.history import results, texts, well_formed
from tropa import Agent, Budget, ToolFailed, tool
from tropa import open as open_store
from tropa.messages import Reasoning
from tropa.model import Profile, RawCall, Reply, Usage
from tropa.model.openai import OpenAI
from tropa.model.scripted import Scripted, calls

pytestmark = pytest.mark.anyio


@tool(read_only=True)
def stock(sku: str) -> int:
    """Pieces of a product."""
    return len(sku)


def agent(replies, tools=(stock,), **more):
    return Agent("clerk", model=Scripted(replies), tools=tools, **more)


async def state_of(one, text="go", **more):
    async with open_store(":memory:") as store:
        run = await one.run(text, store=store, thread="t", **more)
        thread = await store.thread("t")
        assert well_formed(thread.state.messages)
        return run, thread.state.messages, await store.trail("t")


async def test_reasoning_is_recorded_beside_the_calls_of_its_step():
    first = Reply("", (RawCall("stock", {"sku": "A-1"}),), reasoning="First look.", finish="calls")
    run, messages, _ = await state_of(agent([first, "Three."]))
    assert run.ok
    assert run.answer == "Three."
    assert messages[1].parts[0] == Reasoning("First look.")
    assert messages[1].calls[0].arguments == {"sku": "A-1"}
    assert results(messages)[0].value == 3


async def test_an_empty_reply_is_asked_again_with_a_notice_and_at_last_given_up():
    one = agent(["", " ", "Here."])
    run, _, trail = await state_of(one)
    assert run.answer == "Here."
    assert [bool(step.notices) for step in trail] == [True, True, False]
    run, _, _ = await state_of(agent(["", "", ""]))
    assert (run.status, run.stop, run.ok) == ("stopped", "empty_reply", False)


async def test_a_filtered_reply_is_a_refusal_and_a_cut_answer_is_truncated():
    run, _, _ = await state_of(agent([Reply("", finish="filter")]))
    assert (run.status, run.stop) == ("stopped", "refused")
    run, _, _ = await state_of(agent([Reply("The answer is", finish="length")]))
    assert (run.stop, run.answer) == ("truncated", "The answer is")


async def test_cut_calls_never_run_and_three_cuts_stop_the_run():
    """B-03."""
    ran = []

    @tool
    def delete(glob: str) -> str:
        ran.append(glob)
        return "gone"

    @tool(read_only=True)
    def look(path: str) -> str:
        ran.append(path)
        return "seen"

    cut = Reply("", (RawCall("look", {"path": "a"}), RawCall("delete", {"glob": "tmp/*"})), finish="length")
    one = agent([cut, cut, cut, cut, cut, cut], tools=[delete, look])
    run, messages, _ = await state_of(one)
    assert ran == []
    assert run.stop == "truncated"
    assert len([text for text in texts(messages) if "cut off" in text]) == 6
    assert len(one.setup.model.requests) == 4  # three cuts and the closing answer, which was cut as well
    assert one.setup.model.requests[-1].tools == ()


async def test_arguments_that_end_in_the_middle_never_run_whatever_the_finish_says():
    """B-03, variant."""
    cut = Reply("", (RawCall("stock", '{"sku": "A-'),), finish="calls")
    run, messages, _ = await state_of(agent([cut, "ok"]))
    assert run.ok
    assert results(messages)[0].status == "error"


async def test_unknown_tools_are_answered_shortly_with_near_names_and_never_ask_anybody():
    """B-09."""

    @tool
    def central_get_sites() -> str:
        return "none"

    wrong = calls(*[("central_list_sites", {})] * 3, ("functions.central_get_sites", {}))
    run, messages, _ = await state_of(agent([wrong, "ok"], tools=[central_get_sites]))
    assert run.ok
    assert run.pending == ()
    assert len(results(messages)) == 4
    assert all(item.status == "error" for item in results(messages))
    assert all("central_get_sites" in text and len(text) < 300 for text in texts(messages))


async def test_the_same_unknown_tool_again_and_again_is_a_repeat():
    run, _, _ = await state_of(agent(lambda request: calls(("nope", {})) if request.tools else "I give up."))
    assert run.stop == "repeat"
    assert run.answer == "I give up."


async def test_arguments_of_any_shape_become_a_result_and_never_an_exception():
    """B-11."""
    ran = []

    @tool(read_only=True)
    def free(a: int = 0) -> int:
        ran.append(a)
        return a

    shapes = [{"a": 1}, "[1]", '"x"', "5", None, "", '{"a":1}{"a":2}', '{"a": 7}', '{"a": NaN}']
    reply = Reply("", tuple(RawCall("free", shape) for shape in shapes), finish="calls")
    run, messages, _ = await state_of(agent([reply, "ok"], tools=[free]))
    assert run.ok
    assert sorted(ran) == [0, 0, 1, 7]
    status = [item.status for item in results(messages)]
    assert status == ["ok", "error", "error", "error", "ok", "ok", "error", "ok", "error"]


async def test_provider_ids_that_repeat_do_not_mix_calls_up():
    """B-06."""
    seen = []

    @tool(read_only=True)
    def search(q: str) -> str:
        seen.append(q)
        return f"found {q}"

    def round_of(*pairs):
        return Reply("", tuple(RawCall("search", {"q": q}, id) for q, id in pairs), finish="calls")

    rounds = [
        round_of(("a", "s:0"), ("b", "s:1")),
        round_of(("c", "s:0"), ("d", "s:1")),
        round_of(("e", "s:0"), ("f", "s:0")),
        round_of(("g", None), ("h", "")),
        "done",
    ]
    one = agent(rounds, tools=[search])
    run, messages, _ = await state_of(one)
    assert run.ok
    assert sorted(seen) == list("abcdefgh")
    assert texts(messages) == [f"found {q}" for q in "abcdefgh"]
    for request in one.setup.model.requests:
        assert well_formed(request.messages)


async def test_a_reply_of_many_calls_to_a_model_that_is_to_make_one_at_a_time_runs_the_first():
    model = Scripted(
        [calls(("stock", {"sku": "a"}), ("stock", {"sku": "bb"})), "ok"], profile=Profile(parallel_calls=False)
    )
    async with open_store(":memory:") as store:
        await Agent("x", model=model, tools=[stock]).run("go", store=store, thread="t")
        messages = (await store.thread("t")).state.messages
    assert [item.status for item in results(messages)] == ["ok", "error"]


async def test_a_tool_that_fails_is_a_result_and_the_run_goes_on():
    @tool(read_only=True)
    def read(path: str) -> str:
        if path == "x":
            raise ToolFailed("there is no x")
        raise KeyError(path)

    run, messages, trail = await state_of(
        agent([calls(("read", {"path": "x"}), ("read", {"path": "y"})), "ok"], tools=[read])
    )
    assert run.ok
    assert texts(messages)[0] == "there is no x"
    assert [call.error for call in trail.runs[0].calls.values()] == ["ToolFailed", "KeyError"]


async def test_poisoned_arguments_never_reach_a_strict_server_again(tmp_path):
    """B-02: also after a restart. The raw text stays in the trail."""

    def strict(asked):
        for message in asked.body["messages"]:
            for made in message.get("tool_calls") or ():
                try:
                    assert isinstance(json.loads(made["function"]["arguments"]), dict)
                except (ValueError, AssertionError):
                    return refuses("arguments are not an object")
        if not any(message["role"] == "tool" for message in asked.body["messages"]):
            return server_calls(server_call("stock", '{"sku": "a'))
        return says("fine")

    async with Server(strict) as server:
        for text in ("first", "second"):
            model = OpenAI("served", base_url=server.url, api_key="k")
            one = Agent("clerk", model=model, tools=[stock])
            run = await one.run(text, store=tmp_path / "t.db", thread="t")
            await one.close()
            assert (run.status, run.answer) == ("completed", "fine"), run.error
        async with open_store(tmp_path / "t.db") as store:
            trail = await store.trail("t")
    assert trail.runs[0].steps[0].message.calls[0].raw == '{"sku": "a'
    assert trail.runs[0].steps[0].calls[0].observation.status == "error"


async def test_a_closing_reply_that_still_calls_is_answered_not_run():
    ran = []

    @tool(read_only=True)
    def look(n: int) -> int:
        ran.append(n)
        return n

    one = agent([calls(("look", {"n": 1})), calls(("look", {"n": 2}))], tools=[look])
    run, messages, _ = await state_of(one, budget=Budget(steps=1))
    assert run.stop == "max_steps"
    assert ran == [1]
    assert results(messages)[1].status == "cancelled"


async def test_usage_of_a_run_is_the_sum_of_its_replies():
    replies = [
        Reply("", (RawCall("stock", {"sku": "a"}),), finish="calls", usage=Usage(100, 10, cached=5)),
        Reply("ok", usage=Usage(120, 3)),
    ]
    run, _, trail = await state_of(agent(replies))
    assert (run.usage.input, run.usage.output, run.usage.cached) == (220, 13, 5)
    assert trail.runs[0].usage == run.usage
