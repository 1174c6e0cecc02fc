"""A recorded run answers again; what differs is named."""

from __future__ import annotations

import pytest

from tropa.errors import ReplayMismatch
from tropa.messages import Assistant, Text, user
from tropa.model import Recorded, Replay, Reply, Request, ToolSpec, describe, request_digest

pytestmark = pytest.mark.anyio

TOOL = ToolSpec("stock", "How much is there.", {"type": "object", "properties": {"sku": {"type": "string"}}})
REQUEST = Request("Be brief.", (user("one"), Assistant((Text("two"),)), user("three")), (TOOL,), max_output=50)


def changed(**fields):
    return Request(
        **{"system": REQUEST.system, "messages": REQUEST.messages, "tools": REQUEST.tools, "max_output": 50, **fields}
    )


async def reply_of(model, request=REQUEST):
    return [item async for item in model.ask(request)][-1]


def recorded(described=True, count=1):
    return [
        Recorded(request_digest(REQUEST), Reply(f"answer {n}"), describe(REQUEST) if described else None)
        for n in range(count)
    ]


async def test_the_same_asks_get_the_recorded_replies_in_order():
    model = Replay([*recorded(count=2), (request_digest(REQUEST), Reply("third"))])
    assert [(await reply_of(model)).text for _ in range(3)] == ["answer 0", "answer 1", "third"]
    assert model.remaining == 0
    with pytest.raises(ReplayMismatch, match="ask 4 is one more than the 3"):
        await reply_of(model)


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        (changed(system="Be brief!"), r'`request.system` at character 8: was "Be brief\.", is "Be brief!"'),
        (
            changed(messages=REQUEST.messages[:2]),
            r"`request.messages` had 3 items and has 2; the first unmatched is .*three",
        ),
        (changed(messages=(*REQUEST.messages, user("x"))), r"had 3 items and has 4; the first unmatched is .*x"),
        (
            changed(messages=(user("one"), user("two"))),
            r'`request.messages\[1\].role` at character 0: was "assistant", is "user"',
        ),
        (changed(max_output=40), "`request.max_output` was 50, is 40"),
        (changed(options={"seed": 1}), "`request.options.seed` is 1 and was not there"),
        (changed(output_schema={}), "`request.output_schema` was null, is {}"),
        (
            changed(tools=(ToolSpec("stock", "How much is there.", {"type": "object"}),)),
            "`request.tools\\[0\\].schema.properties` was .* and is missing",
        ),
    ],
)
async def test_the_first_difference_is_named_with_both_sides(request_, says):
    with pytest.raises(ReplayMismatch, match=says):
        await reply_of(Replay(recorded()), request_)


async def test_without_the_recorded_request_the_digests_are_named():
    with pytest.raises(ReplayMismatch, match="its digest is .* the recorded request was not kept"):
        await reply_of(Replay(recorded(described=False)), changed(system="x"))
    with pytest.raises(ReplayMismatch, match="only the digest differs"):
        await reply_of(Replay([Recorded("0" * 64, Reply("a"), describe(REQUEST))]))


def test_digests_do_not_depend_on_the_order_of_keys_and_survive_any_text():
    one = Request("", (user("\ud800"),), options={"a": 1, "b": 2})
    two = Request("", (user("\ud800"),), options={"b": 2, "a": 1})
    assert request_digest(one) == request_digest(two) != request_digest(Request("", ()))
