"""Calling: validate, gate, record the start, execute, record the outcome."""

from __future__ import annotations

import asyncio
import copy
import hashlib
import inspect
import time
from collections.abc import Awaitable, Callable, Sequence
from types import MappingProxyType
from typing import TypeAlias, cast

from tropa.errors import InvalidArguments
from tropa.events import NewEvent, event
from tropa.messages import Call, Data, JsonObject, Media, Observation, Status, Text, encode
from tropa.session import repair
from tropa.session.gating import SECRETS_LOST, digest_of, given, is_proposed, propose, secrets_lost
from tropa.session.held import Held
from tropa.session.record import CallRecord
from tropa.tool import Arguments, Result, Tool, ToolContext, to_parts

Parts: TypeAlias = "tuple[Text | Data | Media, ...]"


EXPIRED = "Not approved: nobody decided in time, and the request for approval expired. It was not run."


async def run(session: Held, calls: Sequence[Call]) -> bool:
    """Take the calls of one reply as far as they may go. See `Session.call`."""
    await propose(session, calls)
    index = 0
    while index < len(calls):
        batch = _together(session, calls, index)
        if not await _run_batch(session, batch):
            return False
        index += len(batch)
    return True


def _together(session: Held, calls: Sequence[Call], start: int) -> Sequence[Call]:
    """The calls from `start` that may run at once: neighbours that only read, else one."""
    end = start
    while end < len(calls) and _reads(session, calls[end]):
        end += 1
    return calls[start : max(end, start + 1)]


def _reads(session: Held, call: Call) -> bool:
    record = session.record.calls[call.id]
    tool = session.setup.toolbox.get(call.tool)
    free = record.finished is not None or record.proposed["verdict"] == "run"
    return free and (record.finished is not None or (tool is not None and tool.hints.read_only))


async def _run_batch(session: Held, batch: Sequence[Call]) -> bool:
    """Run the calls of a batch at once; `False` when the (single) call must wait for a person."""
    ready: list[tuple[Call, Tool, Arguments]] = []
    for call in batch:
        record = session.record.calls[call.id]
        tool = session.setup.toolbox.get(record.tool)
        if record.finished is not None:
            continue
        if (why := _doubt(session, record, tool)) is not None:
            await session.note(repair.doubted(session.thread, record, why), durable=True)
            return False
        if record.expired(time.time()):
            await _end(session, call, "rejected", EXPIRED, "expired")
            continue
        if record.id_waiting is not None:
            return False
        if await _settle(session, call, record, tool) or tool is None:
            continue
        try:
            ready.append((call, tool, _arguments(session, call, record, tool)))
        except InvalidArguments as error:
            await _end(session, call, "error", f"not run: {error}", "invalid_arguments")
    if not ready:
        return True
    await session.write(lambda: [_started(session, call, tool) for call, tool, _ in ready], durable=_durable(ready))
    if len(ready) == 1:
        await _execute(session, *ready[0])
    else:
        try:
            async with asyncio.TaskGroup() as group:
                for call, tool, arguments in ready:
                    group.create_task(_execute(session, call, tool, arguments))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
    return True


def _doubt(session: Held, record: CallRecord, tool: Tool | None) -> str | None:
    """Why it is not known whether the call took effect, where a person must be asked about it (again)."""
    if record.doubted is not None:
        # What a fork's origin asked about its call, and what it was told, says nothing here.
        same = record.doubted["id"] == repair.doubt_id(session.thread, record)
        return None if same else cast("str", record.doubted["why"])
    if not (record.running and record.effect):
        return None
    if tool is not None and tool.hints.repeatable and is_proposed(session, record):
        return None
    return "it was started and the process ended before its outcome was recorded"


async def _settle(session: Held, call: Call, record: CallRecord, tool: Tool | None) -> bool:
    """Give the call its observation where it ends without being run (again). Returns whether it does."""
    decided = record.resolution or record.approval or {}
    decision = decided.get("decision")
    if decision == "done":
        await _end(session, call, "ok", _by_person(decided, "A person confirmed that this was done."))
    elif decision == "not_done":
        await _end(session, call, "cancelled", _by_person(decided, "A person confirmed that this was not done."))
    elif decision == "reject":
        await _end(session, call, "rejected", _by_person(decided, "The user rejected this call."), "rejected")
    elif tool is None:
        await _end(session, call, "error", f"the tool `{record.tool}` no longer exists; not run", "unknown_tool")
    elif record.proposed["verdict"] == "dry":
        await _pretend(session, call, tool)
    else:
        return False
    return True


def _arguments(session: Held, call: Call, record: CallRecord, tool: Tool) -> Arguments:
    """The arguments that run: those that were approved, to the byte. Raises `InvalidArguments` where they are not."""
    approved = record.arguments
    bound = (record.approval or record.proposed).get("digest")
    if secrets_lost(session, call, tool):
        raise InvalidArguments(SECRETS_LOST.removeprefix("not run: "))
    if bound is not None and bound != digest_of(session, call.id, tool, approved):
        raise InvalidArguments("what was approved is not what would run now; propose the call again")
    real = session.setup.secret(session.thread, call.id) or {}
    return tool.validate({**approved, **{name: real[name] for name in tool.secret if name in real}})


def _started(session: Held, call: Call, tool: Tool) -> NewEvent:
    attempt = session.record.calls[call.id].attempts + 1
    if tool.hints.read_only:
        return event("call.started", {"call": call.id, "attempt": attempt})
    body: JsonObject = {"call": call.id, "attempt": attempt, "key": _key(session, call)}
    if tool.transactional:
        body["atomic"] = True
    return event("call.started", body)  # type: ignore[arg-type]


def _durable(ready: Sequence[tuple[Call, Tool, Arguments]]) -> bool:
    return any(not tool.hints.read_only for _, tool, _ in ready)


def _key(session: Held, call: Call) -> str:
    """The idempotency key: the same for every attempt of this call in this thread, and for no other."""
    return hashlib.sha256(f"{session.thread}\0{call.id}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


async def _execute(session: Held, call: Call, tool: Tool, arguments: Arguments) -> None:
    """Run the tool and record what came of it: a transactional tool's effect and its record in one transaction."""
    if not tool.transactional:
        status, parts, error, seconds = await _outcome(session, call, tool, arguments, None)
        events = _finished(session, call, status, parts, error, seconds)
        # The last result of a step is followed at once by the next request; a read may share its transaction.
        await session.write(lambda: events, durable=status == "unknown", later=_last_read(session, call, tool))
        return
    undone: list[NewEvent] = []

    async def work(connection: object) -> Sequence[NewEvent]:
        status, parts, error, seconds = await _outcome(session, call, tool, arguments, connection)
        events = _finished(session, call, status, parts, error, seconds)
        if status == "ok":
            return events
        undone.extend(events)
        return ()

    await session.atomically(work)
    if undone:
        await session.note(*undone)


def _last_read(session: Held, call: Call, tool: Tool) -> bool:
    """Whether this read is the last open call of the newest reply."""
    calls, newest = session.record.calls, session.record.replies[-1].calls
    return (
        tool.hints.read_only
        and call in newest
        and all(one.id == call.id or (one.id in calls and calls[one.id].finished is not None) for one in newest)
    )


async def _outcome(
    session: Held, call: Call, tool: Tool, arguments: Arguments, connection: object | None
) -> tuple[Status, Parts, str | None, float]:
    context = ToolContext(
        thread=session.thread,
        run=f"r{session.record.seq}",
        call_id=call.id,
        key=_key(session, call),
        attempt=session.record.calls[call.id].attempts,
        connection=connection,
        fields=MappingProxyType(copy.deepcopy(session.fields)),
    )
    limit = session.record.budget.seconds
    left = None if limit is None else max(0.0, limit - session.record.seconds(time.time()))
    began = time.monotonic()
    try:
        async with asyncio.timeout(left):
            result = await tool.run(arguments, context)
    except TimeoutError:
        text = "stopped: the run's time is used up"
        result = Result("error", (Text(text),), "TimeoutError")
        if not (tool.hints.repeatable or tool.transactional):
            result = Result("unknown", (Text(f"{text}; whether it took effect is not known"),), "TimeoutError")
    return result.status, result.parts, result.error, time.monotonic() - began


def _finished(
    session: Held, call: Call, status: Status, parts: Parts, error: str | None = None, seconds: float = 0.0
) -> list[NewEvent]:
    record = session.record.calls[call.id]
    body: JsonObject = {
        "call": call.id,
        "message": encode(Observation(call.id, record.tool, status, parts)),
        "seconds": round(seconds, 6),
    }
    if error is not None:
        body["error"] = error
    events = [event("call.finished", body)]  # type: ignore[arg-type]
    if status == "unknown":
        why = " ".join(part.text for part in parts if isinstance(part, Text))
        events.insert(0, repair.doubted(session.thread, record, why))
    return events


async def _end(session: Held, call: Call, status: Status, text: str, error: str | None = None) -> None:
    await session.note(*_finished(session, call, status, (Text(text),), error))


async def _pretend(session: Held, call: Call, tool: Tool) -> None:
    """A dry run: the tool's preview, or a plain statement, stands for the result."""
    arguments = tool.validate(given(session, call))
    text = f"[dry run] `{tool.name}` was not executed; it would run with these arguments."
    parts: Parts = (Text(text),)
    if tool.preview is not None:
        try:
            shown = cast("Callable[..., object]", tool.preview)(**arguments.native)
            value: object = await cast("Awaitable[object]", shown) if inspect.isawaitable(shown) else shown
            parts = (Text("[dry run] not executed; expected result:"), *to_parts(value))
        except Exception as error:
            parts = (Text(f"{text} Its preview failed: {type(error).__name__}: {error}"),)
    await session.note(*_finished(session, call, "ok", parts))


def _by_person(decided: JsonObject, text: str) -> str:
    reason = decided.get("reason")
    return f"{text} Reason: {reason}" if reason else text
