"""Calling: validate, gate, record the start, execute, record the outcome."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Sequence
from types import MappingProxyType
from typing import cast

from tropa.errors import InvalidArguments
from tropa.events import NewEvent, event
from tropa.messages import Call, JsonObject, Observation, Status, Text, encode
from tropa.session import repair
from tropa.session.gating import digest_of, given, propose
from tropa.session.held import Held
from tropa.session.record import CallRecord
from tropa.tool import Arguments, Result, Tool, ToolContext, masked, to_parts


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
        if record.finished is not None:
            continue
        tool = session.setup.toolbox.get(record.tool)
        if tool is None:
            await _end(session, call, "error", f"the tool `{record.tool}` no longer exists; not run", "unknown_tool")
            continue
        if not await _may_run(session, call, record, tool):
            if session.record.calls[call.id].finished is None:
                return False
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


async def _may_run(session: Held, call: Call, record: CallRecord, tool: Tool) -> bool:
    """Whether the call may start now. Where it ends without running, its observation is recorded here."""
    verdict, decided = record.proposed["verdict"], record.decided
    if verdict == "dry":
        await _pretend(session, call, tool, record)
        return False
    if record.running and not tool.hints.idempotent and not tool.hints.read_only:
        why = "it was started and the process ended before its outcome was recorded"
        await session.note(repair.doubted(session.thread, record, why), durable=True)
        return False
    decision = decided["decision"] if decided is not None else None
    if record.doubted is not None:
        if decision == "done":
            await _end(session, call, "ok", _by_person(decided, "A person confirmed that this was done."))
        elif decision == "not_done":
            await _end(session, call, "cancelled", _by_person(decided, "A person confirmed that this was not done."))
        return decision == "retry"
    if verdict == "ask" and not record.attempts:
        if decision == "reject":
            await _end(session, call, "rejected", _by_person(decided, "The user rejected this call."), "rejected")
            return False
        if decision is None:
            return False
    return True


def _arguments(session: Held, call: Call, record: CallRecord, tool: Tool) -> Arguments:
    """The arguments that run: those that were approved, to the byte. Raises `InvalidArguments` where they are not."""
    approved = record.arguments
    if tool.secret:
        real = session.setup.secrets.get(f"{session.thread}\0{call.id}")
        if real is None:
            raise InvalidArguments("a secret argument is kept in memory only, and that process is gone; call again")
        approved = {**approved, **{name: real[name] for name in tool.secret if name in real}}
    arguments = tool.validate(approved)
    digest = digest_of(session, call.id, tool, masked(tool, arguments.canonical))
    bound = (record.decided or {}).get("digest") if record.proposed["verdict"] == "ask" else None
    if bound is not None and digest != bound:
        raise InvalidArguments("what was approved is not what would run now; propose the call again")
    return arguments


def _started(session: Held, call: Call, tool: Tool) -> NewEvent:
    attempt = session.record.calls[call.id].attempts + 1
    if tool.hints.read_only:
        return event("call.started", {"call": call.id, "attempt": attempt})
    return event("call.started", {"call": call.id, "attempt": attempt, "key": _key(session, call)})


def _durable(ready: Sequence[tuple[Call, Tool, Arguments]]) -> bool:
    return any(not tool.hints.read_only for _, tool, _ in ready)


def _key(session: Held, call: Call) -> str:
    """The idempotency key: the same for every attempt of this call in this thread, and for no other."""
    return hashlib.sha256(f"{session.thread}\0{call.id}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


async def _execute(session: Held, call: Call, tool: Tool, arguments: Arguments) -> None:
    context = ToolContext(
        thread=session.thread,
        run=f"r{session.record.seq}",
        call_id=call.id,
        key=_key(session, call),
        attempt=session.record.calls[call.id].attempts,
        fields=MappingProxyType(session.fields),
    )
    limit = session.record.budget.seconds
    left = None if limit is None else max(0.0, limit - session.record.seconds(time.time()))
    began = time.monotonic()
    try:
        async with asyncio.timeout(left):
            result = await tool.run(arguments, context)
    except TimeoutError:
        status, more = ("error", "") if tool.hints.read_only else ("unknown", "; whether it took effect is not known")
        text = f"stopped: the run's time is used up{more}"
        result = Result(cast("Status", status), (Text(text),), "TimeoutError")  # type: ignore[arg-type]
    await _finish(session, call, result, time.monotonic() - began)


async def _finish(session: Held, call: Call, result: Result, seconds: float) -> None:
    record = session.record.calls[call.id]
    body: JsonObject = {
        "call": call.id,
        "message": encode(Observation(call.id, record.tool, result.status, result.parts)),
        "seconds": round(seconds, 6),
    }
    if result.error is not None:
        body["error"] = result.error
    events = [event("call.finished", body)]  # type: ignore[arg-type]
    if result.status == "unknown":
        events.insert(0, repair.doubted(session.thread, record, _text(result)))
    await session.note(*events, durable=result.status == "unknown")


async def _end(session: Held, call: Call, status: Status, text: str, error: str | None = None) -> None:
    await _finish(session, call, Result(status, (Text(text),), error), 0.0)  # type: ignore[arg-type]


async def _pretend(session: Held, call: Call, tool: Tool, record: CallRecord) -> None:
    """A dry run: the tool's preview, or a plain statement, stands for the result."""
    arguments = tool.validate(given(session, call))
    text = f"[dry run] `{tool.name}` was not executed; it would run with these arguments."
    parts = (Text(text),)
    if tool.preview is not None:
        preview = tool.preview.function if isinstance(tool.preview, Tool) else tool.preview
        try:
            parts = (Text("[dry run] not executed; expected result:"), *to_parts(preview(**arguments.native)))
        except Exception as error:
            parts = (Text(f"{text} Its preview failed: {type(error).__name__}: {error}"),)
    await _finish(session, call, Result("ok", parts), 0.0)


def _by_person(decided: JsonObject | None, text: str) -> str:
    reason = (decided or {}).get("reason")
    return f"{text} Reason: {reason}" if reason else text


def _text(result: Result) -> str:
    return " ".join(part.text for part in result.parts if isinstance(part, Text))
