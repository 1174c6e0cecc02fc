"""SmolLM2-135M-Instruct, a model without tools of its own, behind a real llama.cpp server."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import jsonschema_rs
import pytest

pytest.importorskip("xllamacpp", reason="the `llama` extra is not installed: pip install 'tropa[llama]'")

from tests.model.needle_requests import MOVE, SITE, SKU, STOCK
from tropa.errors import ModelError
from tropa.messages import Assistant, Call, Data, Observation, Text, User, user
from tropa.model import Reply, Request, ToolSpec
from tropa.model.llama import Llama, fetch_smollm2
from tropa.model.prompted import union_schema

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(900)]
CONTEXT = 4096
ORDER = ToolSpec(
    "order",
    "Order an article from a supplier.",
    {
        "type": "object",
        "properties": {
            "sku": SKU,
            "lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}, "maxItems": 2},
            "express": {"type": "boolean"},
        },
        "required": ["sku", "lines"],
        "$defs": {
            "Line": {
                "type": "object",
                "properties": {"site": SITE, "pieces": {"type": "integer"}},
                "required": ["site"],
            }
        },
    },
)
REPORT = ToolSpec("report", "Write the stock report.", {"type": "object", "properties": {}})
TOOLS = (STOCK, MOVE, ORDER, REPORT)
ASKS = (
    "How many {} are in Hamburg?",
    "Move 4 of {} to Gdansk.",
    "Order {}.",
    "Report on {}!",
    "Was ist mit {} los? 在庫 🦀",
)


@pytest.fixture(scope="module")
def gguf() -> Path:
    cache = os.environ.get("TROPA_CACHE")
    try:
        return fetch_smollm2(Path(cache) if cache else Path.home() / ".cache" / "tropa" / "models")
    except ModelError as error:
        pytest.skip(f"the model cannot be fetched: {error}")


@pytest.fixture
async def llama(gguf):
    model = Llama(gguf, context=CONTEXT)
    yield model
    await model.close()


async def ask(model: Llama, request: Request) -> Reply:
    item = None
    async for item in model.ask(request):
        pass
    assert isinstance(item, Reply)
    return item


async def test_fifty_prompts_give_calls_and_answers_of_the_union_schema(llama):
    whole = calls = 0
    for number in range(50):
        tools = TOOLS[: 3 + number % 2]
        text = ASKS[number % len(ASKS)].format(f"A-{number}")
        request = Request("You work in a warehouse.", (user(text),), tools, max_output=96, options={"seed": number})
        reply = await ask(llama, request)
        if reply.finish == "length":
            assert reply.calls == ()
            continue
        whole += 1
        calls += len(reply.calls)
        said = (
            {"tool": reply.calls[0].name, "arguments": reply.calls[0].arguments}
            if reply.calls
            else {"answer": reply.text}
        )
        jsonschema_rs.validate(union_schema(tools), said)
    print(f"{whole} of 50 whole, {calls} calls")
    assert whole >= 25


async def test_the_count_is_what_the_server_counts(llama):
    # case D-03
    texts = ("在庫はいくつですか", "🦀🧵", "def f(x):\n\tif x:\n        return {'a': 1}", "<|im_end|>", "plain words")
    messages: list[object] = []
    for number in range(8):
        call = Call(str(number), "stock", {"sku": f"A-{number}", "site": "Hamburg"})
        messages += [user(texts[number % 5]), Assistant((call,))]
        messages += [Observation(call.id, "stock", "ok", (Data({"n": number, "text": texts[(number + 1) % 5]}),))]
        messages += [Assistant((Text(texts[(number + 2) % 5]),))]
    for tools in ((), TOOLS):
        for length in (1, 5, 29):
            part = tuple(messages[: length - 1]) + (user(texts[length % 5]),)
            request = Request("Answer in {language}.", part, tools, max_output=4)
            count, reply = await llama.count(request), await ask(llama, request)
            assert count.exact
            assert count.tokens == reply.usage.input


async def test_a_request_over_the_context_is_not_sent(llama):
    # case D-03
    request = Request("", (User((Text("pallet " * CONTEXT),)),), TOOLS)
    assert (await llama.count(request)).tokens > CONTEXT
    with pytest.raises(ModelError, match="the context of llama:SmolLM2"):
        await ask(llama, request)


async def test_the_profile_tells_the_context_of_the_server(llama):
    await llama.count(Request("", (user("hi"),)))
    assert (llama.profile.context, llama.profile.parallel_calls) == (CONTEXT, False)


async def test_a_killed_server_is_started_again(llama):
    request = Request("", (user("hi"),), max_output=4)
    await ask(llama, request)
    os.kill(llama.pid, signal.SIGKILL)
    time.sleep(0.2)
    assert (await ask(llama, request)).text
