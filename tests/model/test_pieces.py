"""The pure parts of the adapters: usage, rescue, events, assembly, waits, estimates, prices."""

from __future__ import annotations

import json
import time

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.model.server import call, chunk
from tropa.model import Price, RawCall, Usage
from tropa.model.accounting import read_usage
from tropa.model.assemble import Assembly
from tropa.model.estimate import estimate_body, estimate_text
from tropa.model.failures import Failure, model_error, redacted
from tropa.model.prices import price_of
from tropa.model.rescue import rescue
from tropa.model.retry import Pace, backoff, retry_after
from tropa.model.sse import Events


def openai_shape(prompt, cached, completion, reasoning=0, **more):
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
        **more,
    }


@pytest.mark.parametrize(
    "reported",
    [
        openai_shape(20_000, 16_000, 1_000, 800),
        {"input_tokens": 4_000, "cache_read_input_tokens": 16_000, "output_tokens": 1_000},
        {"input_tokens": 20_000, "input_tokens_details": {"cached_tokens": 16_000}, "output_tokens": 1_000},
        {"prompt_tokens": 20_000, "cache_read_input_tokens": 16_000, "completion_tokens": 1_000},
        {"prompt_tokens": 20_000, "prompt_cache_hit_tokens": 16_000, "completion_tokens": 1_000},
        openai_shape(20_000, 16_000, 200, 800, total_tokens=21_000),
    ],
)
def test_j03_every_shape_bills_cached_and_reasoning_tokens_once(reported):
    usage, remark = read_usage(reported, input=1, output=1)
    assert (usage.input, usage.cached, usage.output, usage.estimated, remark) == (20_000, 16_000, 1_000, False, None)
    assert Price(1.0, 4.0, 0.1).of(usage) == pytest.approx(0.0096)


@pytest.mark.parametrize(
    ("reported", "usage"),
    [
        (openai_shape(20_000, 30_000, 10), Usage(20_000, 10, 20_000, estimated=True)),
        (openai_shape(100, 0, 10, 50), Usage(100, 10, 0, 10, estimated=True)),
        ({"prompt_tokens": -5, "completion_tokens": "x"}, Usage(7, 9, estimated=True)),
        ({"prompt_tokens": True, "completion_tokens": 3}, Usage(7, 3, estimated=True)),
        ({"prompt_tokens": 5, "prompt_tokens_details": None, "completion_tokens": 3}, Usage(5, 3)),
        (None, Usage(7, 9, estimated=True)),
    ],
)
def test_j01_j03_what_is_missing_or_contradicts_itself_is_flagged(reported, usage):
    read, remark = read_usage(reported, input=7, output=9)
    assert read == usage
    assert (remark is not None) == usage.estimated


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "prompt_tokens",
                "input_tokens",
                "completion_tokens",
                "total_tokens",
                "cache_read_input_tokens",
                "prompt_tokens_details",
                "completion_tokens_details",
            ]
        ),
        st.none()
        | st.integers(-5, 50)
        | st.floats()
        | st.text(max_size=2)
        | st.dictionaries(st.sampled_from(["cached_tokens", "reasoning_tokens"]), st.integers(-5, 99)),
    )
)
def test_no_report_makes_usage_negative_or_a_part_larger_than_its_whole(reported):
    usage, _ = read_usage(reported, input=7, output=9)
    assert 0 <= usage.cached <= usage.input
    assert 0 <= usage.reasoning <= usage.output


OFFERED = {"ls", "cat"}


@pytest.mark.parametrize(
    ("text", "calls", "remaining"),
    [
        ('[{"name":"ls"},{"name":"cat","arguments":{"p":1}}]', [RawCall("ls", None), RawCall("cat", {"p": 1})], ""),
        ('{"type":"function","function":{"name":"ls","arguments":"{}"}}', [RawCall("ls", "{}")], ""),
        ('[TOOL_CALLS] [{"name":"ls","arguments":{}}]', [RawCall("ls", {})], ""),
        (
            'First.\n<tool_call>{"name":"ls"}</tool_call>\n<tool_call>{"name":"cat"}',
            [RawCall("ls", None), RawCall("cat", None)],
            "First.",
        ),
        ('Write <tool_call>{"name":"ls"}</tool_call> to list.', [], None),
        ('```\n<tool_call>{"name":"ls"}</tool_call>\n```', [], None),
        (
            '<tool_call>{"name":"ls"}</tool_call><tool_call>{"name":"cat"}</tool_call>',
            [RawCall("ls", None), RawCall("cat", None)],
            "",
        ),
        ('```json\n{"name":"ls"}\n```\nThat is the call.', [], None),
        ('{"name":"ls"} {"name":"rm"}', [], None),
        ('{"name":"ls","arguments":{"a":', [], None),
        ('{"name":"ls","size":3}', [], None),
        ("[]", [], None),
        ("{}", [], None),
        ("[" * 100_000, [], None),
        ("", [], None),
    ],
)
def test_b01_only_text_that_is_calls_becomes_calls(text, calls, remaining):
    assert rescue(text, OFFERED) == (calls, text if remaining is None else remaining)
    assert rescue(text, ()) == ([], text)


def test_b01_one_call_to_an_unknown_tool_leaves_all_of_the_text():
    text = '<tool_call>{"name":"ls"}</tool_call>\n<tool_call>{"name":"rm"}</tool_call>'
    assert rescue(text, OFFERED) == ([], text)


@given(
    st.lists(
        st.tuples(
            st.text(st.characters(exclude_characters="\r\n\x00", exclude_categories=["Cs"]), min_size=1)
            .map(str.strip)
            .filter(bool),
            st.sampled_from([b"\n", b"\r\n", b"\r"]),
        ),
        max_size=5,
    ),
    st.data(),
)
def test_b08_events_are_the_same_however_the_bytes_are_split(events, data):
    raw = b"".join(b"data: " + text.encode() + end + end for text, end in events)
    decoder, got = Events(), []
    while raw:
        size = data.draw(st.integers(1, len(raw)))
        got += decoder.feed(raw[:size])
        raw = raw[size:]
    assert [each.strip() for each in got + decoder.finish()] == [text for text, _ in events]


def test_b08_a_line_end_split_in_two_does_not_end_the_event():
    decoder, got = Events(), []
    for byte in b"event: x\r\ndata: a\r\ndata: b\r\n\r\n":
        got += decoder.feed(bytes([byte]))
    assert got == ["a\nb"]


def assembled(*deltas, ended="tool_calls"):
    assembly = Assembly()
    for delta in deltas:
        assembly.feed(chunk(delta))
    assembly.feed(chunk(finish=ended))
    return assembly


def test_calls_are_told_apart_without_an_index():
    pieces = [
        {"tool_calls": [{"id": "a", "function": {"name": "ls", "arguments": '{"p"'}}]},
        {"tool_calls": [{"function": {"arguments": ":1}"}}]},
        {"tool_calls": [{"id": "b", "function": {"name": "ls", "arguments": "{}"}}]},
        {"tool_calls": [{"function": {"name": "cat", "arguments": "{}"}}, {"function": {"name": "cat"}}]},
    ]
    assert assembled(*pieces).calls == (
        RawCall("ls", '{"p":1}', "a"),
        RawCall("ls", "{}", "b"),
        RawCall("cat", "{}"),
        RawCall("cat", ""),
    )


def test_calls_that_are_interleaved_and_repeat_their_id_and_name():
    pieces = [
        {"tool_calls": [call("ls", "", 0, "a"), call("cat", "", 1, "b")]},
        {"tool_calls": [call("ls", '{"p":', 0, "a")]},
        {
            "tool_calls": [
                call("cat", "{", 1, "b"),
                call("ls", "1}", 0, "a"),
                {"index": 1, "function": {"arguments": "}"}},
            ]
        },
    ]
    assert assembled(*pieces).calls == (RawCall("ls", '{"p":1}', "a"), RawCall("cat", "{}", "b"))


@pytest.mark.parametrize(
    ("ended", "finish"),
    [("tool_calls", "calls"), ("stop", "calls"), ("length", "length"), ("content_filter", "filter"), (None, "calls")],
)
def test_reasons_to_end_have_one_vocabulary(ended, finish):
    assert assembled({"tool_calls": [call("ls", "{}")]}, ended=ended).finish == finish


def test_odd_chunks_are_passed_over():
    assembly = Assembly()
    for odd in [
        {},
        {"choices": None},
        {"choices": [None]},
        {"choices": [{"delta": None}]},
        {"choices": [{"delta": {"content": None, "tool_calls": None}}]},
        {"usage": None, "model": 3},
    ]:
        assert assembly.feed(odd) == []
    assembly.feed(
        chunk(
            {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                    {"type": "text", "text": "a"},
                ],
                "refusal": None,
            }
        )
    )
    assert (assembly.text, assembly.reasoning) == ("a", "hm")
    assembly.feed(chunk({"refusal": "I can't."}))
    assert assembly.finish == "filter"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:10 GMT"}, 10),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:10 GMT"}, None),
        ({"retry-after": "Thu, 99 Jan 1970 00:00:10 GMT"}, None),
        ({"retry-after-ms": "150", "retry-after": "9"}, 0.15),
        ({"retry-after-ms": "x", "retry-after": "9"}, 9),
        ({}, None),
    ],
)
def test_l05_the_wait_a_server_names(headers, seconds):
    assert retry_after(headers, now=60.0) == (None if seconds is None else pytest.approx(seconds))


def test_l05_backoff_doubles_with_jitter():
    for attempt in range(1, 5):
        middle = 0.5 * 2 ** (attempt - 1)
        waits = {backoff(attempt) for _ in range(20)}
        assert len(waits) > 10
        assert all(0.75 * middle <= wait <= 1.25 * middle for wait in waits)


@pytest.mark.anyio
async def test_l05_a_held_pace_lets_one_through_at_a_time():
    pace, inside, most = Pace(), 0, 0

    async def one():
        nonlocal inside, most
        async with pace.turn():
            inside += 1
            most = max(most, inside)
            await anyio.sleep(0.01)
            inside -= 1

    pace.hold(0.1)
    start = time.monotonic()
    async with anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(one)
    assert most == 1
    assert time.monotonic() - start >= 0.1
    pace.free()
    async with anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(one)
    assert most == 4


@pytest.mark.parametrize(
    ("text", "tokens"),  # about what tokenizers of 100,000 entries and more make of it
    [
        ("The quick brown fox jumps over the lazy dog and runs away from the river bank.", 17),
        ('{"sku":"A-113","quantity":40,"source":"Hamburg","target":"Rotterdam"}', 22),
        ("\u4ed3\u5e93\u91cc\u8fd8\u6709\u56db\u5341\u4e2a\u96f6\u4ef6\u5417", 12),
        ("            return value\n" * 4, 20),
    ],
)
def test_estimates_are_on_the_safe_side_and_not_absurd(text, tokens):
    assert 0.9 * tokens <= estimate_text(text) <= 4 * tokens


def test_pictures_count_by_the_profile_and_not_by_their_bytes():
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 90_000}}
    assert estimate_body({"messages": [{"role": "user", "content": [picture]}]}, 700) < 730


def test_prices_are_known_for_hosted_models_and_unknown_otherwise():
    assert price_of("gpt-4o", provider="openai").cached < price_of("gpt-4o", provider="openai").input
    assert price_of("no-such-model", provider="openai") is None
    assert price_of("m", url="http://my-server:8080/v1") is None


def test_j05_secrets_are_cut_out_of_errors_and_the_rest_stays_useful():
    failure = Failure(
        "no key sk-abcdefgh123 at http://user:pw@h/v1, Bearer abc.def", status=500, headers={"retry-after": "3"}
    )
    text = str(model_error(failure, name="openai:m", where="h:80", attempts=2, secrets=["pw"]))
    assert "sk-abc" not in text and "pw" not in text and "abc.def" not in text
    assert text.startswith("`openai:m` at h:80: HTTP 500 after 2 attempts: no key")
    assert len(str(model_error(Failure("x" * 9_000), name="m", where="h", attempts=1, secrets=[]))) < 700
    assert redacted("a none b", ["", "no"]) == "a none b"
