"""The OpenAI adapter through the real SDK against a server on loopback."""

from __future__ import annotations

import base64
import json
import time
from email.utils import formatdate

import anyio
import openai  # noqa: F401  # loaded first, so that no time limit below includes it
import pytest

from tests.model.server import Answer, Server, call, calls, chunk, refuses, says, sse
from tropa.errors import ModelError, UsageError
from tropa.messages import Assistant, Call, Observation, Text, user
from tropa.model import Delta, Price, Profile, RawCall, Request, ToolSpec, load_model, parse_arguments
from tropa.model.openai import OpenAI
from tropa.model.retry import Pace

pytestmark = pytest.mark.anyio

LS = ToolSpec("ls", "List files.", {"type": "object", "properties": {}})
CAT = ToolSpec("cat", "Show a file.", {"type": "object", "properties": {"p": {"type": "string"}}})


def asking(text="hi", **more):
    return Request("Be brief.", (user(text),), **more)


async def gather(model, request=None):
    items = [item async for item in model.ask(request or asking())]
    return items[:-1], items[-1]


async def reply_of(model, request=None):
    return (await gather(model, request))[1]


@pytest.fixture
def quick(monkeypatch):
    """Waits are taken but shortened, and kept."""
    waits = []
    sleep = anyio.sleep

    async def short(seconds):
        waits.append(seconds)
        await sleep(min(seconds, 0.01))

    monkeypatch.setattr(anyio, "sleep", short)
    return waits


async def test_only_what_was_set_is_in_the_body():
    async with Server([says()]) as server:
        model = OpenAI("m", base_url=server.url)
        await reply_of(model, Request("Be brief.", (user("hi"),), options={"temperature": 0.5, "top_k": 7}))
        await model.close()
    assert server.bodies == [
        {
            "model": "m",
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}],
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": 0.5,
            "top_k": 7,
        }
    ]
    assert server.asked[0].path == "/v1/chat/completions"


@pytest.mark.parametrize("option", ["max_tokens", "n", "stream", "messages"])
async def test_options_cannot_set_what_the_runtime_sets(option):
    with pytest.raises(UsageError, match=f"option `{option}` cannot be set"):
        await reply_of(OpenAI("m", base_url="http://127.0.0.1:9/v1"), asking(options={option: 1}))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("space", ["", " "])
@pytest.mark.parametrize("done", [True, False])
async def test_b08_characters_split_between_chunks_stay_whole(end, space, done):
    body = sse(
        chunk({"content": "naïve 杭州"}),
        chunk({"content": " 🦀"}),
        chunk({"tool_calls": [call("weather", '{"city":')]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": '"杭州"}'}}]}, finish="tool_calls"),
        end=end,
        space=space,
        done=done,
        closed=False,
        before=f": ping{end}{end}",
    )
    async with Server([Answer(body, piece=1)]) as server:
        reply = await reply_of(OpenAI("m", base_url=server.url))
    assert (reply.text, reply.finish) == ("naïve 杭州 🦀", "calls")
    assert reply.calls == (RawCall("weather", '{"city":"杭州"}', "c0"),)


async def test_deltas_come_as_they_arrive_and_reasoning_apart():
    body = sse(
        chunk({"reasoning_content": "hm", "reasoning": "hm"}), chunk({"content": "a"}), chunk({"content": "b"}, "stop")
    )
    async with Server([Answer(body)]) as server:
        deltas, reply = await gather(OpenAI("m", base_url=server.url))
    assert deltas == [Delta("reasoning", "hm"), Delta("text", "a"), Delta("text", "b")]
    assert (reply.text, reply.reasoning, reply.finish, reply.model) == ("ab", "hm", "stop", "served-1")


async def test_b11_off_protocol_calls_are_read():
    given = [{"a": 1}, "[1]", '"x"', "5", None, '{"a":1}{"a":2}', [1]]
    items = [{"function": {"name": "t", "arguments": each}} for each in given] + [{"function": {"name": "t"}}]
    async with Server([calls(*items)]) as server:
        reply = await reply_of(OpenAI("m", base_url=server.url))
    read = [parse_arguments(each) for each in reply.calls]
    assert [each[0] for each in read] == [{"a": 1}, {}, {}, {}, {}, {}, {}, {}]
    assert [each[2] is None for each in read] == [True, False, False, False, True, False, False, True]


async def test_b06_repeated_ids_and_indexes_stay_apart():
    items = [
        call("s", '{"q":1}', 0, "s:0"),
        call("s", '{"q":2}', 0, "s:0"),
        call("s", "{}", 1, None),
        call("s", "{}", 2, ""),
    ]
    async with Server([calls(*items)]) as server:
        reply = await reply_of(OpenAI("m", base_url=server.url))
    assert [each.arguments for each in reply.calls] == ['{"q":1}', '{"q":2}', "{}", "{}"]


async def test_a_server_that_does_not_stream_answers_whole():
    message = {"role": "assistant", "content": None, "tool_calls": [call("ls", {"p": 1})]}
    body = {
        "object": "chat.completion",
        "choices": [{"message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2},
    }
    async with Server([Answer(json.dumps(body).encode(), type="application/json")]) as server:
        reply = await reply_of(OpenAI("m", base_url=server.url))
    assert (reply.calls, reply.usage.tokens) == ((RawCall("ls", {"p": 1}, "c0"),), 5)


async def test_b03_the_finish_reason_length_is_kept_and_visible_cuts_are_cuts():
    whole, cut = call("write", '{"path":"a"}'), call("delete", '{"glob": "tmp/', 1, "c1")
    answers = [
        calls(whole, call("delete", '{"glob":"tmp/*"}', 1, "c1"), finish="length"),
        calls(whole, cut),
        calls(whole),
    ]
    async with Server(answers) as server:
        model = OpenAI("m", base_url=server.url)
        assert (await reply_of(model)).finish == "length"
        assert (await reply_of(model)).finish == "length"
        assert (await reply_of(model)).finish == "calls"
        assert (await reply_of(model, asking(max_output=5))).finish == "length"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('{"name":"ls","arguments":{}}\n{"name":"cat","arguments":{"p":"a"}}', ["ls", "cat"]),
        ('```json\n{"name":"ls","parameters":{}}\n```', ["ls"]),
        ('<tool_call>\n{"name": "ls"}\n</tool_call>', ["ls"]),
        ('Use {"name":"ls"} to list files.', []),
        ('{"name":"rm","arguments":{}}', []),
        ('{"name":"ls","sku":4}', []),
    ],
)
async def test_b01_calls_written_as_text(text, names):
    async with Server([says(text)]) as server:
        reply = await reply_of(OpenAI("m", base_url=server.url), asking(tools=(LS, CAT)))
        off = await reply_of(OpenAI("m", base_url=server.url, profile=Profile(rescue_calls=False)), asking(tools=(LS,)))
        none = await reply_of(OpenAI("m", base_url=server.url), asking())
    assert [each.name for each in reply.calls] == names
    assert (reply.text, reply.finish) == (("", "calls") if names else (text, "stop"))
    assert (off.text, off.calls) == (none.text, none.calls) == (text, ())


@pytest.mark.parametrize(
    ("tail", "estimated"),
    [
        ([chunk(finish="stop"), chunk(usage={"prompt_tokens": 10, "completion_tokens": 5})], False),
        (
            [
                chunk(
                    {"role": "assistant", "content": None}, "stop", usage={"prompt_tokens": 10, "completion_tokens": 5}
                )
            ],
            False,
        ),
        ([chunk(finish="stop", usage={"prompt_tokens": None, "completion_tokens": None})], True),
        ([chunk(finish="stop", usage=None)], True),
        ([chunk(finish="stop", usage={"prompt_tokens": 0, "completion_tokens": 0})], True),
    ],
)
async def test_j01_usage_in_all_its_places(tail, estimated):
    async with Server([Answer(sse(chunk({"content": "hello there"}), *tail))]) as server:
        reply = await reply_of(OpenAI("m", base_url=server.url))
    assert reply.text == "hello there"
    assert reply.usage.estimated is estimated
    if estimated:
        assert reply.usage.input >= 5
        assert reply.usage.output >= 2
    else:
        assert (reply.usage.input, reply.usage.output) == (10, 5)


@pytest.mark.parametrize(
    ("word", "request_", "profile"),
    [
        ("stream_options", asking(), Profile()),
        ("parallel_tool_calls", asking(tools=(LS,)), Profile(parallel_calls=False)),
        (
            "strict",
            asking(tools=(ToolSpec("a", "", {"type": "object", "properties": {}, "additionalProperties": False}),)),
            Profile(strict_schema=True),
        ),
        ("response_format", asking(output_schema={"type": "object"}), Profile()),
    ],
)
async def test_l04_a_parameter_of_ours_that_is_refused_is_left_out_and_remembered(word, request_, profile):
    def answer(asked):
        return (
            refuses(f"Unsupported parameter: '{word}'") if f'"{word}"' in json.dumps(asked.body) else says(usage=None)
        )

    async with Server(answer) as server:
        model = OpenAI("m", base_url=server.url, profile=profile)
        first, second = await reply_of(model, request_), await reply_of(model, request_)
    assert len(server.asked) == 3
    assert any(word in warning for warning in first.warnings)
    assert not any(word in warning for warning in second.warnings)
    assert first.usage.estimated


async def test_l04_max_tokens_becomes_max_completion_tokens():
    def answer(asked):
        if "max_tokens" in asked.body:
            return refuses(
                "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", param="max_tokens"
            )
        return says()

    async with Server(answer) as server:
        await reply_of(OpenAI("m", base_url=server.url), asking(max_output=50))
    assert server.bodies[1]["max_completion_tokens"] == 50
    assert "max_tokens" not in server.bodies[1]


async def test_l04_what_the_user_set_is_never_dropped():
    async with Server([refuses("Unsupported parameter: parallel_tool_calls")]) as server:
        model = OpenAI("m", base_url=server.url, profile=Profile(parallel_calls=False))
        with pytest.raises(ModelError, match="parallel_tool_calls"):
            await reply_of(model, asking(tools=(LS,), options={"parallel_tool_calls": False}))
        with pytest.raises(ModelError, match="HTTP 400"):
            await reply_of(model, asking(options={"temperature": 9}))
    assert len(server.asked) == 2


async def test_l04_too_large_a_limit_is_an_error_and_not_a_refused_parameter():
    async with Server([refuses("max_tokens is too large: 900 > 512")]) as server:
        with pytest.raises(ModelError, match="too large"):
            await reply_of(OpenAI("m", base_url=server.url), asking(max_output=900))
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("headers", "low", "high"),
    [
        ({"Retry-After": "2"}, 1.9, 2.4),
        ({"Retry-After": "0"}, 0, 0.01),
        ({"retry-after-ms": "150"}, 0.12, 0.18),
        ({"Retry-After": "Wed, 21 Oct 2099 07:28:00 GMT"}, 4, 5),
        ({"Retry-After": "-5"}, 0.3, 0.7),
        ({"Retry-After": "abc"}, 0.3, 0.7),
        ({"Retry-After": "nan"}, 0.3, 0.7),
        ({}, 0.3, 0.7),
    ],
)
async def test_l05_the_wait_that_a_server_asks_for_is_taken_within_the_cap(quick, monkeypatch, headers, low, high):
    held = []
    monkeypatch.setattr(Pace, "hold", lambda self, seconds: held.append(seconds))
    async with Server([refuses("slow down", 429, headers), says()]) as server:
        assert (await reply_of(OpenAI("m", base_url=server.url, max_wait=5))).text == "fine"
    assert low <= held[0] <= high


async def test_l05_a_date_ahead_is_waited_for():
    async with Server(
        [refuses("slow", 429, {"Retry-After": formatdate(time.time() + 2, usegmt=True)}), says()]
    ) as server:
        await reply_of(OpenAI("m", base_url=server.url))
    assert 0.9 <= server.asked[1].at - server.asked[0].at <= 4


async def test_l05_the_last_error_carries_status_body_and_header():
    async with Server([refuses("easy now", 429, {"Retry-After": "0"})]) as server:
        with pytest.raises(ModelError, match=r"HTTP 429 after 3 attempts: easy now \(retry-after: 0\)") as caught:
            await reply_of(OpenAI("m", base_url=server.url, retries=2))
    assert (caught.value.status, caught.value.retryable) == (429, True)
    assert len(server.asked) == 3


async def test_l05_an_exhausted_quota_is_not_tried_again():
    async with Server([refuses("Quota exhausted for this month", 429, code="insufficient_quota")]) as server:
        with pytest.raises(ModelError, match="Quota exhausted") as caught:
            await reply_of(OpenAI("m", base_url=server.url))
    assert len(server.asked) == 1
    assert not caught.value.retryable


async def test_l05_cancelling_ends_the_wait():
    async with Server([refuses("slow", 429, {"Retry-After": "25"})]) as server:
        start = time.monotonic()
        with anyio.move_on_after(0.3) as scope:
            await reply_of(OpenAI("m", base_url=server.url))
        assert scope.cancelled_caught
        assert time.monotonic() - start < 1


async def test_l05_children_under_one_key_do_not_multiply_the_load():
    limited_until = time.monotonic() + 1.0

    def answer(asked):
        if time.monotonic() < limited_until:
            return refuses("slow", 429, {"retry-after-ms": "300"})
        return says()

    async with Server(answer) as server:
        models = [OpenAI("m", base_url=server.url, retries=6) for _ in range(3)]
        async with anyio.create_task_group() as group:
            for model in models:
                group.start_soon(reply_of, model)
    # three at first, then one request per window of 0.3 s, then the three that succeed
    assert len(server.asked) <= 3 + 4 + 3


async def test_a_server_error_is_tried_again_and_a_broken_reply_is_not(quick):
    async with Server([refuses("oops", 503), Answer(b"", breaks=True), says()]) as server:
        assert (await reply_of(OpenAI("m", base_url=server.url))).text == "fine"
    assert len(server.asked) == 3
    assert quick
    begun = sse(chunk({"content": "half a"}), done=False)
    for breaks in (True, False):
        async with Server([Answer(begun, breaks=breaks)]) as server:
            with pytest.raises(ModelError, match="broke|ended in the middle") as caught:
                await reply_of(OpenAI("m", base_url=server.url))
        assert caught.value.retryable
        assert len(server.asked) == 1


async def test_an_error_inside_the_stream_is_an_error():
    async with Server(
        [Answer(sse(chunk({"content": "a"}), {"error": {"message": "out of memory", "code": 500}}))]
    ) as server:
        with pytest.raises(ModelError, match="HTTP 500: out of memory"):
            await reply_of(OpenAI("m", base_url=server.url))


def alternating(asked):
    """The rule of Mistral's template: users and plain assistants take turns; a system message only at the start."""
    turn = 0
    for index, message in enumerate(asked.body["messages"]):
        if message["role"] == "system" and index:
            return refuses("System message must be at the beginning", 500)
        if message["role"] in ("system", "tool") or "tool_calls" in message:
            continue
        if (message["role"] == "user") != (turn % 2 == 0):
            return refuses("Jinja Exception: conversation roles must alternate user/assistant", 500)
        turn += 1
    return says()


async def test_l01_a_template_that_demands_alternation_is_served_by_its_profile(quick):
    messages = (
        user("one"),
        user("two"),
        Assistant((Call("c1_0", "ls", {}),)),
        Observation("c1_0", "ls", "rejected", (Text("no"),)),
        user("three"),
    )
    request = Request("S", messages)
    async with Server(alternating) as server:
        assert (
            await reply_of(OpenAI("m", base_url=server.url, profile=Profile(merge_roles=True)), request)
        ).text == "fine"
        assert len(server.asked) == 1
        with pytest.raises(ModelError, match=r"must alternate user/assistant; use a profile with `merge_roles=True`"):
            await reply_of(OpenAI("m", base_url=server.url), request)
    assert len(server.asked) == 3
    assert server.bodies[0]["messages"][1]["content"] == "one\n\ntwo"


def only_three_roles(asked):
    roles = {message["role"] for message in asked.body["messages"]}
    return says() if roles <= {"system", "user", "assistant", "tool"} else refuses("role 'developer' is not known", 422)


@pytest.mark.parametrize("name", ["o9-x", "glm-5", "my-local"])
async def test_l07_the_switch_alone_decides_about_the_developer_role(name):
    async with Server(only_three_roles) as server:
        assert (await reply_of(OpenAI(name, base_url=server.url))).text == "fine"
        with pytest.raises(ModelError, match=r"use a profile with `system_role='system'`"):
            await reply_of(OpenAI(name, base_url=server.url, profile=Profile(system_role="developer")))
    assert len(server.asked) == 2


async def test_l02_one_system_message_or_none():
    async with Server([says()]) as server:
        await reply_of(OpenAI("m", base_url=server.url, profile=Profile(system_role="first-user")))
    assert server.bodies[0]["messages"] == [{"role": "user", "content": "Be brief.\n\nhi"}]


def strict_history(asked):
    for message in asked.body["messages"]:
        for each in message.get("tool_calls", []):
            try:
                assert isinstance(json.loads(each["function"]["arguments"]), dict)
            except (ValueError, AssertionError):
                return refuses("arguments of a past call are not an object")
    return says()


async def test_b02_a_poisoned_call_goes_back_without_its_text():
    raw = '{"path": "a'
    arguments, kept, fault = parse_arguments(RawCall("write", raw))
    messages = (
        user("x"),
        Assistant((Call("c1_0", "write", arguments, kept, fault),)),
        Observation("c1_0", "write", "error", (Text(fault),)),
        user("go on"),
    )
    async with Server(strict_history) as server:
        assert (await reply_of(OpenAI("m", base_url=server.url), Request("", messages))).text == "fine"
    assert kept == raw
    assert server.bodies[0]["messages"][1]["tool_calls"][0]["function"]["arguments"] == "{}"


async def test_j05_no_secret_is_in_an_error_or_a_representation():
    token = base64.b64encode(b"user:pw-9").decode()
    echo = "bad key sk-TEST-123 for user:pw-9 with T-9"
    async with Server([refuses(echo, 401)]) as server:
        model = OpenAI(
            "m", base_url=server.url.replace("//", "//user:pw-9@"), api_key="sk-TEST-123", headers={"X-Token": "T-9"}
        )
        with pytest.raises(ModelError) as caught:
            await reply_of(model)
    assert server.asked[0].headers["authorization"] == f"Basic {token}"
    assert server.asked[0].headers["x-token"] == "T-9"
    closed = OpenAI("m", base_url=server.url.replace("//", "//user:pw-9@"), api_key="sk-TEST-123", retries=0)
    with pytest.raises(ModelError, match=rf"127\.0\.0\.1:{server.port}") as refused:
        await reply_of(closed)
    shown = "".join(
        map(
            str,
            [caught.value, refused.value, repr(model), vars(model), vars(model._connection), caught.value.__cause__],
        )
    )
    assert "HTTP 401" in shown
    for secret in ("sk-TEST-123", "pw-9", "T-9", token):
        assert secret not in shown


async def test_without_a_key_openai_itself_is_not_asked(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(UsageError, match="set OPENAI_API_KEY"):
        load_model("openai:gpt-4o")
    with pytest.raises(UsageError, match="base URL"):
        OpenAI("m", base_url="ftp://x")


async def test_names_and_addresses_and_the_environment(monkeypatch):
    async with Server([says()]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert (await reply_of(load_model("openai:my@model"))).text == "fine"
        assert (await reply_of(load_model(f"openai:other@{server.url}"))).text == "fine"
    assert [body["model"] for body in server.bodies] == ["my@model", "other"]


async def test_j03_cached_tokens_are_billed_once():
    usage = {
        "prompt_tokens": 20_000,
        "completion_tokens": 1_000,
        "prompt_tokens_details": {"cached_tokens": 16_000},
        "completion_tokens_details": {"reasoning_tokens": 800},
    }
    async with Server([says(usage=usage)]) as server:
        reply = await reply_of(OpenAI("m", base_url=server.url, price=Price(1.0, 4.0, 0.1)))
    assert reply.usage.cost == pytest.approx(0.0096)
    assert (reply.usage.cached, reply.usage.reasoning) == (16_000, 800)


async def test_counts_are_exact_where_the_server_tokenizes_and_probed_once():
    def llama_cpp(asked):
        if asked.path == "/apply-template":
            return Answer(json.dumps({"prompt": "p" * 7}).encode(), type="application/json")
        assert asked.path == "/tokenize"
        return Answer(json.dumps({"tokens": list(asked.body["content"])}).encode(), type="application/json")

    async with Server(llama_cpp) as server:
        count = await OpenAI("m", base_url=server.url).count(asking(tools=(LS,)))
    assert (count.tokens, count.exact) == (7, True)
    assert "tools" in server.bodies[0]
    async with Server([refuses("no such page", 404)]) as server:
        model = OpenAI("m", base_url=server.url)
        assert not (await model.count(asking())).exact
        await model.count(asking())
    assert [asked.path for asked in server.asked] == ["/apply-template", "/tokenize"]


async def test_an_estimate_follows_what_was_reported():
    async with Server(
        lambda asked: (
            says(usage={"prompt_tokens": 60, "completion_tokens": 1}) if "chat" in asked.path else refuses("", 404)
        )
    ) as server:
        model = OpenAI("m", base_url=server.url)
        before = (await model.count(asking())).tokens
        for _ in range(6):
            await reply_of(model)
        after = (await model.count(asking())).tokens
    assert before < 40 < 60 <= after < 75


def test_one_instance_serves_several_event_loops_in_turn():
    model = None

    async def once():
        nonlocal model
        async with Server([says()]) as server:
            model = OpenAI("m", base_url=server.url) if model is None else model
            model._connection.url = server.url
            assert (await reply_of(model)).text == "fine"

    anyio.run(once)
    anyio.run(once)


async def test_a_web_page_is_no_answer_and_the_remedy_is_named():
    async with Server([Answer(b"<html>Welcome</html>", type="text/html")]) as server:
        with pytest.raises(ModelError, match="web page; check the model's name and the base URL"):
            await reply_of(OpenAI("m", base_url=server.url))
    assert len(server.asked) == 1


async def test_a_watcher_who_leaves_frees_the_connection():
    body = sse(*[chunk({"content": "word "})] * 200)
    async with Server([Answer(body, piece=50), says()]) as server:
        model = OpenAI("m", base_url=server.url)
        stream = model.ask(asking())
        assert (await anext(stream)).text == "word "
        await stream.aclose()
        assert (await reply_of(model)).text == "fine"
        await model.close()
        await model.close()
        assert (await reply_of(model)).text == "fine"
