"""Running a tool's function: off the event loop where it is synchronous, within its time, and never fatal to the caller."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import threading
from collections.abc import Awaitable, Callable, Collection
from typing import cast

import anyio

from tropa.errors import NotStorable, ToolFailed
from tropa.messages import Text
from tropa.tool.faults import scrub, shorten
from tropa.tool.hints import Hints
from tropa.tool.result import Result, to_parts

_TEXT = 1000


async def execute(
    call: Callable[[], object],
    *,
    name: str,
    hints: Hints,
    timeout: float | None,  # noqa: ASYNC109  # the outcome at the limit depends on the hints: ours to decide
    transactional: bool,
    secrets: Collection[str],
) -> Result:
    """Run `call` and read its result. Only cancellation and `KeyboardInterrupt` come out as exceptions.

    A synchronous call runs in a thread of its own. After `timeout` seconds an asynchronous one is cancelled and a
    synchronous one is left behind, its result ignored; a transactional one is waited for, since it holds the connection.
    """
    try:
        with anyio.move_on_after(timeout) as scope:
            value = await _value(call, name, wait=transactional)
            return _read(value, hints)
    except asyncio.CancelledError as error:
        # A tool may raise this itself, with nobody cancelling: that is its own failure.
        if (task := asyncio.current_task()) is None or task.cancelling():
            raise
        return _failed(error, secrets)
    except BaseException as error:
        if any(isinstance(leaf, KeyboardInterrupt) for leaf in _leaves(error)):
            raise
        return _failed(error, secrets)
    assert scope.cancelled_caught
    text = f"timed out after {timeout:g} s"
    if hints.repeatable or transactional:
        return Result("error", (Text(text),), "TimeoutError")
    return Result("unknown", (Text(f"{text}; whether it took effect is not known"),), "TimeoutError")


async def _value(call: Callable[[], object], name: str, *, wait: bool) -> object:
    if is_async(call):
        return await cast("Awaitable[object]", call())
    value: object = None
    with anyio.CancelScope(shield=wait):
        value = await _in_thread(call, name)
    return await value if inspect.isawaitable(value) else value


def is_async(call: Callable[..., object]) -> bool:
    """Whether calling it gives a coroutine: a function, a method, a partial, or an object's `__call__`."""
    while isinstance(call, functools.partial):
        call = cast("functools.partial[object]", call).func
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(getattr(call, "__call__", None))  # noqa: B004


async def _in_thread(call: Callable[[], object], name: str) -> object:
    # A thread of its own, and a daemon: a tool that hangs must neither use up a shared pool nor keep the process alive.
    loop = asyncio.get_running_loop()
    done: asyncio.Future[tuple[bool, object]] = loop.create_future()
    context = contextvars.copy_context()

    def settle(outcome: tuple[bool, object]) -> None:
        if not done.done():
            done.set_result(outcome)

    def work() -> None:
        try:
            outcome = (True, context.run(call))
        except BaseException as error:
            outcome = (False, error)
        try:
            loop.call_soon_threadsafe(settle, outcome)
        except RuntimeError:
            pass  # the loop is closed: nobody waits any more

    threading.Thread(target=work, name=f"tool {name}", daemon=True).start()
    ok, value = await done
    if ok:
        return value
    if isinstance(value, StopIteration):
        # It cannot travel through a coroutine: Python would turn it into a RuntimeError about generators.
        raise _Stopped(value)
    raise cast("BaseException", value)


class _Stopped(Exception):
    """Carries a `StopIteration` out of a coroutine."""

    def __init__(self, inner: StopIteration) -> None:
        super().__init__(str(inner))
        self.inner = inner


def _read(value: object, hints: Hints) -> Result:
    try:
        return Result("ok", to_parts(value))
    except NotStorable as error:
        fault = str(error)
    except Exception as error:
        fault = f"{type(error).__name__}: {error}"
    text = (Text(shorten(f"the tool ran; its result could not be read: {fault}", _TEXT)),)
    # The effect is done and must be recorded so; only a read-only tool can be said to have failed.
    return Result("error" if hints.read_only else "ok", text, "NotStorable")


def _failed(error: BaseException, secrets: Collection[str]) -> Result:
    found = _leaves(error)
    text = "; ".join(dict.fromkeys(_text(one) for one in found[:3]))
    names = found[0].inner if isinstance(found[0], _Stopped) else found[0]
    return Result("error", (Text(shorten(scrub(text, secrets), _TEXT)),), type(names).__name__)


def _leaves(error: BaseException) -> list[BaseException]:
    """A group says only how many errors it holds; its members say what happened."""
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    members = cast("tuple[BaseException, ...]", cast("BaseExceptionGroup[BaseException]", error).exceptions)
    return [leaf for member in members for leaf in _leaves(member)]


def _text(error: BaseException) -> str:
    if isinstance(error, _Stopped):
        error = error.inner
    try:
        message = str(error)
    except Exception:
        message = ""
    if isinstance(error, ToolFailed) and message:
        return message
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
