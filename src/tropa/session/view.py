"""Runs and proposals as people see them, read from the journal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from tropa.errors import ThreadNotFound
from tropa.events import Event, RunStatus, Stop
from tropa.gate import Origin, Proposal
from tropa.journal import Journal, PendingRow
from tropa.messages import Assistant, JsonObject, decode
from tropa.session.outcome import Run
from tropa.session.record import RunRecord


async def load_record(journal: Journal, thread: str, start: int) -> RunRecord:
    """The record of the run that event `start` began."""
    record = RunRecord()
    async for entry in journal.events(thread, after=start - 1):
        record.apply(entry)
    return record


async def run_of(journal: Journal, thread: str, record: RunRecord | None = None) -> Run:
    """The latest run of a thread as it stands. Raises `ThreadNotFound` when the thread has none."""
    status: RunStatus = "waiting"
    if record is None or record.finished is None:
        head = await journal.head(thread)
        if not head.run:
            raise ThreadNotFound(f"thread {thread!r} has no run in this store; `tropa trail list` shows the threads")
        status = cast("RunStatus", head.status)
        record = record or await load_record(journal, thread, head.run)
    end = record.finished
    status = status if end is None else cast("RunStatus", end["status"])
    pending = tuple(await proposals(journal, await journal.pending(thread))) if end is None else ()
    return Run(
        thread=thread,
        status=status,
        stop=None if end is None else cast("Stop", end["stop"]),
        answer=await _answer(journal, thread, end, record),
        output=None if end is None else end.get("output"),
        usage=record.usage,
        steps=record.spent.steps,
        seconds=record.spent.seconds if end is None else cast("float", end["seconds"]),
        pending=pending,
        error=None if end is None else cast("str | None", end.get("error")),
        seq=record.seq,
    )


async def proposals(journal: Journal, rows: Sequence[PendingRow]) -> list[Proposal]:
    """What waits, in full: each row with its arguments and where their values come from."""
    return [await _proposal(journal, row) for row in rows]


async def _proposal(journal: Journal, row: PendingRow) -> Proposal:
    proposed = await _proposed(journal, row)
    origins = cast("dict[str, JsonObject]", proposed.get("origins", {}))
    reason = proposed.get("reason")
    if row.kind == "unknown":
        doubt = await _only(journal, row.thread, row.seq)
        reason = doubt.body["why"]
    return Proposal(
        id=row.id,
        thread=row.thread,
        call_id=row.call,
        tool=row.tool,
        arguments=cast("JsonObject", proposed["arguments"]),
        digest=cast("str", proposed.get("digest", "")),
        kind=row.kind,
        origins={path: Origin(**value) for path, value in origins.items()},  # type: ignore[arg-type]
        reason=cast("str | None", reason),
        asked=row.time,
        expires=cast("float | None", proposed.get("expires")) if row.kind == "approval" else None,
    )


async def _proposed(journal: Journal, row: PendingRow) -> JsonObject:
    if row.kind == "approval":
        return (await _only(journal, row.thread, row.seq)).body
    kinds = ("call.proposed",)
    async for entry in journal.events(row.thread, until=row.seq, kinds=kinds, newest_first=True):
        if entry.body["call"] == row.call:
            return entry.body
    raise ThreadNotFound(f"the proposal of call `{row.call}` is not in thread {row.thread!r}")


async def _only(journal: Journal, thread: str, seq: int) -> Event:
    async for entry in journal.events(thread, after=seq - 1, until=seq):
        return entry
    raise ThreadNotFound(f"event {seq} is not in thread {thread!r}")


async def _answer(journal: Journal, thread: str, end: JsonObject | None, record: RunRecord) -> str:
    if end is None or "answer" not in end:
        return ""
    seq = cast("int", end["answer"])
    for reply in reversed(record.replies):
        if reply.seq == seq:
            return reply.text
    entry = await _only(journal, thread, seq)
    return cast("Assistant", decode(cast("JsonObject", entry.body["message"]))).text
