"""Running: off the loop, within its time, and nothing a tool does ends the caller."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time

import anyio
import pytest

from tropa.errors import InvalidArguments, ToolFailed
from tropa.tool import Result, Tool, ToolContext, tool

pytestmark = pytest.mark.anyio
CONTEXT = ToolContext("thread", "run", "call", "key", fields={"language": "de"})


async def run(made: Tool, **arguments) -> Result:
    return await made.run(made.validate(arguments), CONTEXT)


def text(result: Result) -> str:
    return result.parts[0].text


async def test_synchronous_tools_leave_the_loop_free():
    @tool
    def wait() -> str:
        time.sleep(0.2)
        return threading.current_thread().name

    started = time.perf_counter()
    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(lambda: run(wait))
        await anyio.sleep(0.01)
        assert time.perf_counter() - started < 0.15
    assert time.perf_counter() - started < 0.8
    assert text(await run(wait)) == "tool wait"


async def test_context_variables_and_the_context_reach_the_tool():
    variable = contextvars.ContextVar("variable", default="unset")

    @tool
    def see(ctx: ToolContext) -> list[str]:
        return [variable.get(), ctx.call_id, ctx.key, ctx.fields["language"]]

    variable.set("set")
    assert (await run(see)).parts[0].value == ["set", "call", "key", "de"]
    with pytest.raises(TypeError):
        ToolContext("t", "r", "c", "k").fields["x"] = 1


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        ({}, "unknown", "timed out after 0.05 s; whether it took effect is not known"),
        ({"read_only": True}, "error", "timed out after 0.05 s"),
        ({"idempotent": True}, "error", "timed out after 0.05 s"),
    ],
)
async def test_a_timeout_says_whether_the_effect_is_in_doubt(options, status, words):
    release = threading.Event()

    @tool(timeout=0.05, **options)
    def block() -> None:
        release.wait(5)

    @tool(timeout=0.05, **options)
    async def sleep() -> None:
        await anyio.sleep(5)

    for made in (block, sleep):
        started = time.perf_counter()
        result = await run(made)
        assert time.perf_counter() - started < 2
        assert (result.status, text(result), result.error) == (status, words, "TimeoutError")
    release.set()


async def test_a_transactional_tool_is_not_left_behind_with_the_connection():
    finished = []

    @tool(timeout=0.05, transactional=True)
    def write() -> str:
        time.sleep(0.2)
        finished.append(True)
        return "written"

    result = await run(write)
    assert finished == [True]
    assert (result.status, text(result)) == ("ok", "written")


async def test_a_hanging_tool_does_not_keep_the_process_alive():
    @tool(timeout=0.05)
    def hang() -> None:
        threading.Event().wait(30)

    await run(hang)
    [thread] = [one for one in threading.enumerate() if one.name == "tool hang"]
    assert thread.daemon


class Custom(Exception): ...


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("error", "words", "name"),
    [
        (ValueError("no such site"), "ValueError: no such site", "ValueError"),
        (Custom(), "Custom", "Custom"),
        (ToolFailed("The site is closed."), "The site is closed.", "ToolFailed"),
        (StopIteration(3), "StopIteration: 3", "StopIteration"),
        (StopAsyncIteration(), "StopAsyncIteration", "StopAsyncIteration"),
        (SystemExit(2), "SystemExit: 2", "SystemExit"),
        (GeneratorExit(), "GeneratorExit", "GeneratorExit"),
        (TimeoutError("its own"), "TimeoutError: its own", "TimeoutError"),
        (asyncio.CancelledError(), "CancelledError", "CancelledError"),
        (Mute(), "Mute", "Mute"),
        (
            ExceptionGroup("g", [ValueError("a"), ExceptionGroup("h", [KeyError("b")])]),
            "ValueError: a; KeyError: 'b'",
            "ValueError",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_whatever_a_tool_raises_becomes_a_short_result(error, words, name):
    @tool(timeout=5)
    def fail() -> None:
        raise error

    @tool(timeout=5)
    async def fail_later() -> None:
        await anyio.sleep(0)
        raise error

    result = await run(fail)
    assert (result.status, text(result), result.error) == ("error", words, name)
    later = await run(fail_later)
    assert later.status == "error"
    assert "Traceback" not in text(later)
    # Python itself renames these two inside a coroutine.
    if not isinstance(error, (StopIteration, GeneratorExit, StopAsyncIteration)):
        assert (text(later), later.error) == (words, name)


async def test_keyboard_interrupt_goes_through():
    @tool
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await run(interrupt)


async def test_cancellation_goes_through_at_once():
    release = threading.Event()
    reached = []

    @tool
    def block() -> None:
        release.wait(5)

    @tool(timeout=10)
    async def sleep() -> None:
        await anyio.sleep(5)

    for made in (block, sleep):
        started = time.perf_counter()
        with anyio.move_on_after(0.05) as scope:
            await run(made)
            reached.append(made)
        assert scope.cancelled_caught
        assert time.perf_counter() - started < 1
    assert reached == []
    release.set()


async def test_secrets_are_not_in_what_a_tool_raises():
    """J-05."""

    @tool(secret=["password", "pin", "headers"])
    def login(password: str, pin: int = 0, headers: dict[str, str] = {}) -> None:  # noqa: B006
        raise ConnectionError(f"401 for https://u:{password}@host, {password!r}, pin {pin}, {headers}")

    result = await run(login, password="pa'ss wörd", pin=42, headers={"X-Token": "T-9-secret"})
    for secret in ("pa'ss", "wörd", "42", "T-9-secret"):
        assert secret not in text(result)
    assert "401" in text(result)
    assert "@host" in text(result)


async def test_long_error_texts_are_cut():
    @tool
    def fail() -> None:
        raise ValueError("x" * 100_000)

    assert len(text(await run(fail))) <= 1000


async def test_an_unreadable_result_of_an_effect_is_recorded_as_done():
    """C-05: the effect happened, so the call did not fail."""

    def leak(arguments):
        return {"a": {"b": [open("/dev/null")]}}

    words = (
        "the tool ran; its result could not be read: `result.a.b[0]` is of type `_io.TextIOWrapper`, which is not data"
    )
    for read_only, status in ((False, "ok"), (True, "error")):
        made = Tool.from_schema("leak", "", {"type": "object"}, leak, read_only=read_only)
        result = await run(made)
        assert (result.status, text(result), result.error) == (status, words, "NotStorable")


async def test_arguments_nested_beyond_reason_end_in_a_text_not_in_a_crash():
    deep: list = []
    for _ in range(950):
        deep = [deep]
    schema = {"type": "object", "properties": {"x": {"type": "array", "items": {"$ref": "#/properties/x"}}}}
    made = Tool.from_schema("t", "", schema, lambda arguments: "ran")

    @tool
    def typed(x: list[object]) -> str:
        return "ran"

    assert "nested too deeply" in text(await run(made, x=deep))
    with pytest.raises(InvalidArguments, match="nested"):
        typed.validate({"x": deep})


async def test_a_coroutine_from_a_synchronous_function_is_awaited():
    async def inner() -> int:
        return 4

    @tool
    def outer() -> object:
        return inner()

    assert (await run(outer)).parts[0].value == 4
