"""Leaving a thread in order: every call answered, every run ended or parked. Pure functions from a record to events."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection

from tropa.events import NewEvent, RunStatus, Stop, event
from tropa.messages import Call, Json, JsonObject, Observation, Status, Text, encode
from tropa.session.record import CallRecord, ReplyRecord, RunRecord


def doubt_id(thread: str, record: CallRecord) -> str:
    """The name under which people find a call whose outcome is not known."""
    seed = f"{thread}\0{record.call}\0{record.attempts}\0doubt"
    return hashlib.sha256(seed.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def doubted(thread: str, record: CallRecord, why: str) -> NewEvent:
    """The call was started, and nobody knows whether it took effect."""
    return event("call.doubted", {"call": record.call, "id": doubt_id(thread, record), "tool": record.tool, "why": why})


def close_calls(thread: str, record: RunRecord, why: str) -> list[NewEvent]:
    """Give every open call its observation: not run, cancelled, or unknown where it was inside a side effect."""
    events: list[NewEvent] = []
    for item in record.open_calls():
        if isinstance(item, Call):
            proposed: JsonObject = {"call": item.id, "tool": item.tool, "arguments": item.arguments}
            events.append(event("call.proposed", {**proposed, "verdict": "refuse", "reason": "interrupted"}))  # type: ignore[typeddict-item]
            events.append(_finished(item.id, item.tool, "cancelled", f"not run: {why}"))
            continue
        if item.doubted is not None:
            events.append(_finished(item.call, item.tool, "unknown", f"{why}; whether it ran is not known"))
        elif not item.running:
            events.append(_finished(item.call, item.tool, "cancelled", f"not run: {why}"))
        elif not item.effect:
            events.append(_finished(item.call, item.tool, "cancelled", f"cancelled: {why}"))
        else:
            events.append(doubted(thread, item, f"it was started; {why}"))
            events.append(_finished(item.call, item.tool, "unknown", f"{why}; whether it ran is not known"))
    return events


def waiting(record: RunRecord) -> list[str]:
    """The ids that a person must decide on, in the order of the calls."""
    return [
        item.id_waiting for item in record.open_calls() if isinstance(item, CallRecord) and item.id_waiting is not None
    ]


def can_go_on(record: RunRecord, inbox: Collection[str]) -> bool:
    """Whether the first open call is free to go on: it does not wait for anything that lies in the thread's `inbox`.

    What a fork's origin waited for does not lie in the fork's inbox: there it is asked anew. What expired waits no more.
    """
    first = next(iter(record.open_calls()), None)
    return not isinstance(first, CallRecord) or first.id_waiting not in inbox or first.expired(time.time())


def paused(record: RunRecord) -> list[NewEvent]:
    """The pause event, or nothing when the first open call has been decided meanwhile and can go on."""
    waits = waiting(record)
    return [] if can_go_on(record, waits) else [event("run.paused", {"waits": list[Json](waits)})]


def parked(record: RunRecord) -> NewEvent:
    """This process lets go of the run between two steps; any other may go on with it at once."""
    return event("run.paused", {"waits": list[Json](waiting(record))})


def finished(
    record: RunRecord,
    stop: Stop,
    now: float,
    reply: ReplyRecord | None = None,
    output: Json = None,
    error: str | None = None,
) -> NewEvent:
    """The end of a run, at `now` (seconds since 1970)."""
    statuses: dict[str, RunStatus] = {"answered": "completed", "cancelled": "cancelled", "error": "failed"}
    body: JsonObject = {
        "status": statuses.get(stop, "stopped"),
        "stop": stop,
        "usage": record.usage.to_json(),
        "seconds": round(record.seconds(now), 6),
    }
    if reply is not None:
        body["answer"] = reply.seq
    if output is not None:
        body["output"] = output
    if error is not None:
        body["error"] = error
    return event("run.finished", body)  # type: ignore[arg-type]


def _finished(call: str, tool: str, status: Status, text: str) -> NewEvent:
    observation = Observation(call, tool, status, (Text(text),))
    return event("call.finished", {"call": call, "message": encode(observation), "error": "interrupted"})
