"""The scripted model: replies as data, a ruler of its own, limits honoured."""

from __future__ import annotations

import pytest

from tropa.errors import ModelError
from tropa.messages import Assistant, Call, Data, Notice, Observation, Reasoning, Text, User, user
from tropa.model import Delta, Price, Profile, RawCall, Reply, Request, Scripted, ToolSpec, Usage, calls

pytestmark = pytest.mark.anyio


async def reply_of(model, request=None):
    items = [item async for item in model.ask(request or Request("", (user("hi"),)))]
    assert [type(item) for item in items[:-1]] == [Delta] * (len(items) - 1)
    return items[-1]


async def test_items_are_replied_in_order_and_requests_are_kept():
    model = Scripted(["one", Reply("two", model="m"), [("stock", {"sku": "A-113"})], calls(("a", {}), ("b", {}))])
    assert (await reply_of(model)).text == "one"
    assert (await reply_of(model)).model == "m"
    third = await reply_of(model)
    assert third.calls == (RawCall("stock", {"sku": "A-113"}),)
    assert third.finish == "calls"
    assert [call.name for call in (await reply_of(model)).calls] == ["a", "b"]
    assert len(model.requests) == 4


async def test_running_out_of_replies_says_so():
    model = Scripted(["only"])
    await reply_of(model)
    with pytest.raises(ModelError, match=r"asked 2 times but its script has 1 replies"):
        await reply_of(model)


async def test_an_exception_is_raised():
    with pytest.raises(ModelError, match="down"):
        await reply_of(Scripted([ModelError("down", status=503)]))


async def test_functions_sync_and_async_see_the_request():
    async def later(request):
        return f"async {request.messages[0].parts[0].text}"

    assert (await reply_of(Scripted(lambda request: request.messages[0].parts[0].text * 2))).text == "hihi"
    assert (await reply_of(Scripted(later))).text == "async hi"


async def test_a_shape_that_is_no_reply_is_refused():
    for item in [5, None, [5], [("a", {}, 1)], [("a", [1])]]:
        with pytest.raises(ModelError, match="scripted"):
            await reply_of(Scripted(lambda request, item=item: item))


async def test_text_is_cut_to_the_limit_as_a_server_would():
    request = Request("", (user("hi"),), max_output=100)
    reply = await reply_of(Scripted(["x" * 20_200]), request)
    assert (len(reply.text), reply.finish, reply.usage.output) == (400, "length", 100)
    reply = await reply_of(Scripted(["x" * 20_200], ignore_limits=True), request)
    assert (len(reply.text), reply.finish, reply.usage.output) == (20_200, "stop", 5_050)


async def test_a_reply_that_claims_more_tokens_than_allowed_is_held_to_the_limit():
    reply = await reply_of(Scripted([Reply("short", usage=Usage(10, 5_050))]), Request("", (), max_output=60))
    assert (reply.finish, reply.usage) == ("length", Usage(10, 60))


async def test_a_call_is_cut_inside_its_arguments():
    request = Request("", (), max_output=6)
    reply = await reply_of(Scripted([[("write", {"text": "y" * 500}), ("delete", {})]]), request)
    assert reply.finish == "length"
    assert [call.name for call in reply.calls] == ["write"]
    assert reply.calls[0].arguments == '{"text":"yyyyyyyyyy'


async def test_counts_add_up_over_parts():
    model = Scripted([], profile=Profile(image_tokens=7))
    messages = (
        User((Text("12345"),)),
        Assistant((Reasoning("not sent"), Call("c1_0", "stock", {"a": 1}))),
        Observation("c1_0", "stock", "ok", (Data({"n": 2}),)),
        Notice("1234"),
    )
    assert (await model.count(Request("1234", messages))).tokens == 1 + 2 + 3 + 2 + 1
    assert (await model.count(Request("", (), (ToolSpec("t", "abc", {}),)))).tokens == 2
    assert (await model.count(Request("", ()))).exact


async def test_usage_and_cost_are_filled_when_a_reply_gives_none():
    reply = await reply_of(Scripted(["x" * 40], price=Price(1.0, 2.0)), Request("s" * 40, ()))
    assert reply.usage == Usage(10, 10, cost=30e-6)
